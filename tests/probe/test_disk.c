/* The checkpoint directory is tested and left as it was before; an unusable directory is named. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "world.h"

static void nobody(void) {}

/* The result for a PS of a run in this directory; `other` happens before its test. */
static gt_probe_rank try_beside(const char *run_dir, const char *error, void (*other)(void)) {
  const gt_probe_options options = {.run_dir = run_dir};
  gt_probe_state *p = w_found("[{name: east, ranks: 2}]", "{}");
  p->options = &options;
  p->run.region = "east";
  p->run.roles.is_ps = true;
  snprintf(p->folder_error, sizeof p->folder_error, "%s", error);
  gt_probe_disk_before(p);
  other();
  gt_probe_disk(p);
  gt_probe_disk_after(p);
  const gt_probe_rank found = p->own;
  w_close(p);
  return found;
}

static gt_probe_rank try(const char *run_dir, const char *error) {
  return try_beside(run_dir, error, nobody);
}

static size_t entries(const char *path) {
  size_t n = 0;
  DIR *dir = opendir(path);
  assert_non_null(dir);
  while (readdir(dir)) n++;
  closedir(dir);
  return n - 2;
}

static void test_a_new_one(void) {
  const gt_probe_rank found = try(in_folder("a/b/run"), "");
  assert_string_equal(found.checkpoint_error, "");
  assert_true(found.checkpoint_s > 0 && found.checkpoint_bytes > 0);
  assert_int_equal(entries(in_folder("")), 0);
}

static void test_one_that_is_there(void) {
  const char *path = in_folder("old"), *kept = in_folder("old/ckpt");
  assert_int_equal(mkdir(path, 0777), 0);
  assert_int_equal(mkdir(kept, 0777), 0);
  assert_string_equal(try(path, "").checkpoint_error, "");
  assert_int_equal(entries(path), 1);
  assert_int_equal(entries(kept), 0);
  assert_int_equal(rmdir(kept), 0);
  assert_string_equal(try(path, "").checkpoint_error, "");
  assert_int_equal(entries(path), 0); /* ckpt was created, and removed */
  assert_int_equal(rmdir(path), 0);
}

static void make_folders(void) {
  assert_int_equal(mkdir(in_folder("run"), 0777), 0);
  assert_int_equal(mkdir(in_folder("run/ckpt"), 0777), 0);
}

/* Another region has created the folders first. */
static void test_one_of_two_regions(void) {
  assert_string_equal(try_beside(in_folder("run"), "", make_folders).checkpoint_error, "");
  assert_int_equal(entries(in_folder("")), 0);
}

static void test_one_that_cannot_be(void) {
  char needed[400];
  const char *file = file_with("file", "");
  const gt_probe_rank found = try(in_folder("file/run"), "");
  snprintf(needed, sizeof needed, "%s/run cannot be made: Not a directory", file);
  assert_string_equal(found.checkpoint_error, needed);
  assert_int_equal(entries(in_folder("")), 1);
  assert_int_equal(unlink(file), 0);
}

/* An error that the run itself reported is not reported again. */
static void test_not_tried_twice(void) {
  const gt_probe_rank found = try(in_folder("run"), "read-only");
  assert_true(found.checkpoint_s == 0 && !found.checkpoint_error[0]);
  assert_int_equal(entries(in_folder("")), 0);
}

TESTS(test_a_new_one, test_one_that_is_there, test_one_of_two_regions, test_one_that_cannot_be,
      test_not_tried_twice)
