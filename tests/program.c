/* The main function of a test program: calls the main function of the test file named by the first
   argument, and checks that no allocation is left.  GT_TESTS is a list of TEST(test_<thing>), which
   CMake writes.  And what all tests share: calls that must succeed or fail, and their folder. */
#include <ftw.h>
#include <unistd.h>

#include "tests.h"

#define MOST 64 /* tests per file */

static void call(void **state) {
  (**(const test_function **)state)();
}

int run_functions(const char *names, const test_function *tests, size_t n, CMFixtureFunction setup,
                  CMFixtureFunction teardown) {
  struct CMUnitTest list[MOST] = {0};
  char *copy = strdup(names), *rest = copy;
  if (!copy || n > MOST) abort();
  for (size_t i = 0; i < n; i++)
    list[i] = (struct CMUnitTest){.name = strtok_r(rest, ", ", &rest),
                                  .test_func = call,
                                  .initial_state = (void *)(uintptr_t)&tests[i]};
  const int failed = _cmocka_run_group_tests("tests", list, n, setup, teardown);
  free(copy);
  return failed;
}

void must_return(gt_status found, gt_status expected, const char *words, bool whole,
                 const char *file, int line) {
  const char *text = found == GT_OK ? "" : gt_error_text();
  const bool said = !words || (whole ? strcmp(text, words) == 0 : strstr(text, words) != NULL);
  if (found == expected && said) return;
  print_error("status %d, \"%s\"; expected status %d%s%s\n", (int)found, text, (int)expected,
              !words  ? ""
              : whole ? " and the text "
                      : " and a text with ",
              words ? words : "");
  _fail(file, line);
}

void must_have(const char *text, const char *part, const char *file, int line) {
  if (text && strstr(text, part)) return;
  print_error("\"%s\"\nis not in:\n%s\n", part, text ? text : "nothing");
  _fail(file, line);
}

static char folder[256];
static bool made;

static int remove_entry(const char *path, const struct stat *at, int kind, struct FTW *ftw) {
  (void)at, (void)kind, (void)ftw;
  return remove(path);
}

static void remove_folder(void) {
  if (made) nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void use_folder(const char *path) {
  snprintf(folder, sizeof folder, "%s", path);
}

const char *in_folder(const char *name) {
  static char path[256][512];
  static size_t n;
  char full[512];
  if (!folder[0]) {
    use_folder("/tmp/geotrain-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    made = true;
  }
  snprintf(full, sizeof full, "%s%s%s", folder, *name ? "/" : "", name);
  for (size_t i = 0; i < n; i++)
    if (strcmp(path[i], full) == 0) return path[i];
  assert_true(n < sizeof path / sizeof *path);
  return strcpy(path[n++], full);
}

void write_bytes(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

void write_text(const char *path, const char *text) {
  write_bytes(path, text, strlen(text));
}

const char *file_with(const char *name, const char *text) {
  const char *path = in_folder(name);
  write_text(path, text);
  return path;
}

FILE *open_text(char **text) {
  static size_t size;
  FILE *to = open_memstream(text, &size);
  assert_non_null(to);
  return to;
}

size_t read_file(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  const size_t n = fread(text, 1, size - 1, file);
  fclose(file);
  text[n] = '\0';
  return n;
}

#define TEST(thing) int main_of_##thing(void);
#include GT_TESTS
#undef TEST

#define TEST(thing) {#thing, main_of_##thing},
static const struct {
  const char *name;
  int (*run)(void);
} tests[] = {
#include GT_TESTS
};

/* Runs a file's tests, which must free everything they have allocated. */
static int run_file(int (*run)(void)) {
  const int failed = run();
  remove_folder();
  const int64_t left = gt_alloc_alive();
  if (left != 0) fprintf(stderr, "%lld allocations are left\n", (long long)left);
  return failed ? failed : left != 0;
}

int main(int argc, char **argv) {
  const size_t ntests = sizeof tests / sizeof *tests;
  for (size_t i = 0; argc == 2 && i < ntests; i++)
    if (strcmp(argv[1], tests[i].name) == 0) return run_file(tests[i].run);
  fprintf(stderr, "usage: %s TEST, where TEST is one of\n", argv[0]);
  for (size_t i = 0; i < ntests; i++) fprintf(stderr, "  %s\n", tests[i].name);
  return 2;
}
