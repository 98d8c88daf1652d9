/* Parts that need no other rank: the regions of a job as input for the roles, and the folders of a
   path. */
#include <errno.h>
#include <sys/stat.h>

#include "world.h"

static void test_regions(void) {
  gt_job *job = NULL;
  static const char text[] = "name: r\nmodel: {name: lenet5}\ndata: {path: none.h5}\ntrain: "
                             "{until: {steps: 1}, optimizer: {lr: 1}}\n"
                             "regions: [{name: a, ranks: 3, hosts: [h1, h2]}, {name: b, ranks: 2, "
                             "hosts: [h3]}]\nsync: {strategy: none}\n";
  must(gt_job_parse(&job, "test", text));
  gt_region_plan *plan = gt_setup_regions(job);
  assert_string_equal(plan[0].name, "a");
  assert_string_equal(plan[1].name, "b");
  assert_true(plan[0].ranks == 3 && plan[1].ranks == 2 && plan[0].nhosts == 2 &&
              plan[1].nhosts == 1);
  assert_string_equal(plan[0].hosts[1], "h2");
  assert_string_equal(plan[1].hosts[0], "h3");
  gt_free(plan);
  gt_job_close(job);
}

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void test_folders(void) {
  char part[300];
  const char *path = in_folder("a/b/c");
  assert_true(gt_setup_make_folders(path, part, sizeof part));
  assert_true(is_folder(path));
  assert_true(gt_setup_make_folders(path, part, sizeof part)); /* there already */
  assert_true(gt_setup_make_folders(in_folder("d/e/"), part, sizeof part));
  assert_true(is_folder(in_folder("d/e")));
}

/* The first folder that cannot be created is named; those before it in the path are created. */
static void test_one_that_cannot_be(void) {
  char part[300];
  assert_true(gt_setup_make_folders(in_folder("f"), part, sizeof part));
  file_with("f/file", "");
  assert_false(gt_setup_make_folders(in_folder("f/file/g/h"), part, sizeof part));
  assert_int_equal(errno, ENOTDIR);
  assert_string_equal(part, in_folder("f/file/g"));
}

TESTS(test_regions, test_folders, test_one_that_cannot_be)
