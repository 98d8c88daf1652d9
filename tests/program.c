/* The main function of a test program: calls the main function of the test file named by the first
   argument, and checks that no allocation is left.  GT_TESTS is a list of TEST(test_<thing>), which
   CMake writes. */
#include "geotrain/base.h"
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
