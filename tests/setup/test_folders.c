/* Parts that need no other rank: the regions of a job as input for the roles, and the folders of a
   path. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "world.h"

static void test_regions(void) {
  gt_job *job = NULL;
  static const char text[] = "name: r\nmodel: {name: lenet5}\ndata: {path: none.h5}\ntrain: "
                             "{until: {steps: 1}, optimizer: {lr: 1}}\n"
                             "regions: [{name: a, ranks: 3, hosts: [h1, h2]}, {name: b, ranks: 2, "
                             "hosts: [h3]}]\nsync: {strategy: none}\n";
  if (gt_job_parse(&job, "test", text) != GT_OK) fail_msg("%s", gt_error_text());
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
  const char *path = w_path("a/b/c");
  assert_true(gt_setup_make_folders(path, part, sizeof part));
  assert_true(is_folder(path));
  assert_true(gt_setup_make_folders(path, part, sizeof part)); /* there already */
  assert_true(gt_setup_make_folders(w_path("d/e/"), part, sizeof part));
  assert_true(is_folder(w_path("d/e")));
}

/* The first folder that cannot be created is named; those before it in the path are created. */
static void test_one_that_cannot_be(void) {
  char part[300];
  const char *file = w_path("f/file");
  assert_true(gt_setup_make_folders(w_path("f"), part, sizeof part));
  int fd = open(file, O_WRONLY | O_CREAT, 0666);
  assert_true(fd >= 0 && close(fd) == 0);
  assert_false(gt_setup_make_folders(w_path("f/file/g/h"), part, sizeof part));
  assert_int_equal(errno, ENOTDIR);
  assert_string_equal(part, w_path("f/file/g"));
}

TESTS_BETWEEN(w_make_folder, w_remove_folder, test_regions, test_folders, test_one_that_cannot_be)
