/* Failures: the process is killed at every named point of a write, the disk is full, the directory
   is not writable; the previous round stays complete. */
#include "fixture.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

/* Run in a child process: writes round 2, then prunes round 1. */
static int write_and_prune(const char *run_dir) {
  gt_ckpt_writer *writer;
  if (gt_ckpt_writer_create(&writer, run_dir, "shanghai") != GT_OK ||
      write_round(writer, 2) != GT_OK)
    return 9;
  gt_ckpt_prune(writer, 2, 0);
  gt_ckpt_writer_close(writer);
  return 0;
}

static int run_child(const char *run_dir, const char *failpoint) {
  pid_t child = fork();
  if (child == 0) {
    if (failpoint) setenv("GEOTRAIN_FAILPOINT", failpoint, 1);
    _exit(write_and_prune(run_dir));
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static size_t hidden_files(const char *run_dir) {
  char command[256];
  size_t n = 0;
  snprintf(command, sizeof command, "find %s -name '.*' -type f", run_dir);
  FILE *found = popen(command, "r");
  for (char line[256]; fgets(line, sizeof line, found);) n++;
  pclose(found);
  return n;
}

typedef struct {
  const char *name;
  bool new_whole, old_kept; /* expected files after a kill at this point */
  size_t temporaries;
} drill;

static void test_kill_at_every_point(void) {
  static const drill drills[] = {
      {"ckpt.begin", false, true, 0},   {"ckpt.open", false, true, 1},
      {"ckpt.half", false, true, 1},    {"ckpt.written", false, true, 1},
      {"ckpt.fsynced", false, true, 1}, {"ckpt.renamed", true, true, 0},
      {"ckpt.done", true, true, 0},     {"ckpt.pruned", true, false, 0},
  };
  for (size_t i = 0; i < COUNT(drills); i++) {
    const char *run = new_folder();
    char path[256];
    int64_t rounds[4];
    gt_ckpt_writer *writer;
    must(gt_ckpt_writer_create(&writer, run, "shanghai"));
    must(write_round(writer, 1));
    gt_ckpt_writer_close(writer);
    int status = run_child(run, drills[i].name);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
      fail_msg("%s was not reached (status %d)", drills[i].name, status);
    assert_int_equal(holds_round(gt_ckpt_path(path, sizeof path, run, 1, "shanghai"), 1),
                     drills[i].old_kept);
    assert_int_equal(holds_round(gt_ckpt_path(path, sizeof path, run, 2, "shanghai"), 2),
                     drills[i].new_whole);
    assert_int_equal(gt_ckpt_rounds(run, "shanghai", rounds, 4),
                     (size_t)drills[i].old_kept + drills[i].new_whole);
    assert_int_equal(hidden_files(run), drills[i].temporaries);
    /* The next run removes the leftovers, writes, and both rounds are complete. */
    must(gt_ckpt_writer_create(&writer, run, "shanghai"));
    assert_int_equal(hidden_files(run), 0);
    must(write_round(writer, 2));
    gt_ckpt_writer_close(writer);
    assert_true(holds_round(path, 2));
  }
}

static void test_child_without_failpoint_succeeds(void) {
  assert_int_equal(run_child(new_folder(), NULL), 0);
}

/* Temporary files of another region, or with similar names, are not removed. */
static void test_sweep_is_careful(void) {
  static const char *const names[] = {".shanghai.h5.tmp-12", ".shanghai.h5.tmp-",
                                      ".shanghai.h5.tmp-1x", ".shanghai2.h5.tmp-12-0",
                                      "shanghai.h5.tmp-12"};
  const char *run = new_folder();
  char path[256];
  gt_ckpt_writer *writer;
  must(gt_ckpt_writer_create(&writer, run, "shanghai"));
  must(write_round(writer, 1));
  gt_ckpt_writer_close(writer);
  for (int i = 0; i < 5; i++) {
    snprintf(path, sizeof path, "%s/ckpt/1/%s", run, names[i]);
    fclose(fopen(path, "w"));
  }
  must(gt_ckpt_writer_create(&writer, run, "shanghai"));
  gt_ckpt_writer_close(writer);
  for (int i = 0; i < 5; i++) {
    snprintf(path, sizeof path, "%s/ckpt/1/%s", run, names[i]);
    assert_int_equal(access(path, F_OK) == 0, i != 0);
  }
  assert_true(holds_round(gt_ckpt_path(path, sizeof path, run, 1, "shanghai"), 1));
}

static void test_unwritable_run_directory(void) {
  const char *run = new_folder();
  char path[128];
  gt_ckpt_writer *writer = NULL;
  snprintf(path, sizeof path, "%s/file", run);
  fclose(fopen(path, "w"));
  must_fail(gt_ckpt_writer_create(&writer, path, "shanghai"), GT_ERR_CKPT, path);
  assert_null(writer);
  assert_int_equal(gt_ckpt_writer_create(&writer, run, "a/b"), GT_ERR_CKPT);
}

/* ---- mounts ---- */

/* Run in a separate mount namespace.  Each returns 0, the number of the failed step, or 77 if
   mounting is not permitted. */

static bool mount_tmpfs(const char *at) {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("gt", at, "tmpfs", 0, "size=64k") == 0;
}

/* Space for two rounds of 25 KB but not for three: the third fails, and its temporary file and
   folder are removed. */
static int full_disk(const char *at) {
  char path[256];
  int64_t rounds[4];
  gt_ckpt_writer *writer;
  if (!mount_tmpfs(at)) return 77;
  if (gt_ckpt_writer_create(&writer, at, "shanghai") != GT_OK) return 1;
  if (write_round(writer, 1) != GT_OK || write_round(writer, 2) != GT_OK) return 2;
  if (write_round(writer, 3) != GT_ERR_CKPT) return 3;
  if (!strstr(gt_error_text(), strerror(ENOSPC)) || !strstr(gt_error_text(), at)) return 4;
  if (gt_ckpt_rounds(at, "shanghai", rounds, 4) != 2) return 5;
  if (!holds_round(gt_ckpt_path(path, sizeof path, at, 1, "shanghai"), 1)) return 6;
  if (!holds_round(gt_ckpt_path(path, sizeof path, at, 2, "shanghai"), 2)) return 7;
  snprintf(path, sizeof path, "%s/ckpt/3", at);
  if (access(path, F_OK) == 0) return 8;
  gt_ckpt_prune(writer, 2, 0); /* free space again: the writer still works */
  if (write_round(writer, 4) != GT_OK ||
      !holds_round(gt_ckpt_path(path, sizeof path, at, 4, "shanghai"), 4))
    return 9;
  gt_ckpt_writer_close(writer);
  return gt_alloc_alive() == 0 ? 0 : 10;
}

static int read_only(const char *at) {
  char path[256];
  gt_ckpt_writer *writer, *second;
  if (!mount_tmpfs(at)) return 77;
  if (gt_ckpt_writer_create(&writer, at, "shanghai") != GT_OK || write_round(writer, 1) != GT_OK)
    return 1;
  if (mount(NULL, at, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0) return 77;
  if (write_round(writer, 2) != GT_ERR_CKPT || !strstr(gt_error_text(), strerror(EROFS)) ||
      !strstr(gt_error_text(), at))
    return 2;
  if (!holds_round(gt_ckpt_path(path, sizeof path, at, 1, "shanghai"), 1)) return 3;
  snprintf(path, sizeof path, "%s/other", at);
  if (gt_ckpt_writer_create(&second, path, "shanghai") != GT_ERR_CKPT ||
      !strstr(gt_error_text(), path))
    return 4;
  gt_ckpt_writer_close(writer);
  return gt_alloc_alive() == 0 ? 0 : 5;
}

static void in_namespace(int (*body)(const char *at)) {
  const char *at = new_folder();
  int status = 0;
  pid_t child = fork();
  if (child == 0) _exit(body(at));
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    print_message("a tmpfs may not be mounted here: skipped\n");
    skip();
  }
  assert_int_equal(status, 0);
}

static void test_full_disk(void) {
  in_namespace(full_disk);
}

static void test_read_only_mount(void) {
  in_namespace(read_only);
}

TESTS(test_child_without_failpoint_succeeds, test_kill_at_every_point, test_sweep_is_careful,
      test_unwritable_run_directory, test_full_disk, test_read_only_mount)
