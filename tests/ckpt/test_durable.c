/* wraps: fsync rename.  The order in which a checkpoint becomes durable: the bytes of the file, its
   name, the entries of its in_folder(""), the name of that folder; and the state that each failure
   leaves. */
#include "fixture.h"

#include <errno.h>

/* Calls since begin_calls: F fsync of a file, D of a directory, R rename. */
static char calls[16];
static size_t ncalls, fails_at; /* fails_at: the number of the call that fails; 0: none */
static off_t synced;            /* size of the file at its fsync */

int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);

/* Records a call.  In the writer's thread: no assertion here. */
static bool note_call(char what) {
  if (ncalls + 1 == sizeof calls) abort();
  calls[ncalls++] = what;
  calls[ncalls] = '\0';
  if (ncalls != fails_at) return true;
  errno = EIO;
  return false;
}

int __wrap_fsync(int fd) {
  struct stat at;
  if (fstat(fd, &at) != 0) return -1;
  if (!S_ISDIR(at.st_mode)) synced = at.st_size;
  return note_call(S_ISDIR(at.st_mode) ? 'D' : 'F') ? __real_fsync(fd) : -1;
}

int __wrap_rename(const char *from, const char *to) {
  return note_call('R') ? __real_rename(from, to) : -1;
}

static void begin_calls(size_t fails) {
  ncalls = 0;
  calls[0] = '\0';
  fails_at = fails;
  synced = -1;
}

/* Writes a round in a run directory of its own; `path` receives its file. */
static gt_status write_one(const char *run, char path[256]) {
  const char *run_dir = in_folder(run);
  gt_ckpt_writer *writer;
  gt_ckpt_path(path, 256, run_dir, 1, "shanghai");
  must(gt_ckpt_writer_create(&writer, run_dir, "shanghai"));
  const gt_status status = write_round(writer, 1);
  gt_ckpt_writer_close(writer);
  return status;
}

static void test_a_round_becomes_durable_in_order(void) {
  char path[256];
  struct stat at;
  begin_calls(0);
  must(write_one("good", path));
  assert_string_equal(calls, "FRDD");
  assert_int_equal(stat(path, &at), 0);
  assert_int_equal(at.st_size, synced); /* nothing was written after the fsync */
  assert_true(holds_round(path, 1));
}

/* Every failure is reported in the status; a file has its name only after its bytes are durable. */
static void test_a_failure_is_reported(void) {
  static const char *const order[] = {"F", "FR", "FRD", "FRDD"};
  for (size_t fails = 1; fails <= 4; fails++) {
    char run[16], path[256];
    snprintf(run, sizeof run, "bad-%zu", fails);
    begin_calls(fails);
    must_fail(write_one(run, path), GT_ERR_CKPT, strerror(EIO));
    assert_string_equal(calls, order[fails - 1]);
    assert_int_equal(access(path, F_OK), fails <= 2 ? -1 : 0);
  }
}

static void test_a_model_in_parts_becomes_durable_in_order(void) {
  static const float x[3] = {1, 2, 3};
  gt_ckpt_parts *parts;
  gt_ckpt_info info = {.job_yaml = (char *)(uintptr_t) "name: durable\n", .mean_of = 2};
  const gt_state rest = {0};
  char path[256];
  struct stat at;
  gt_ckpt_final_model_path(path, sizeof path, in_folder(""), NULL);
  must(gt_ckpt_parts_open(&parts, in_folder(""), 3, 0));
  must(gt_ckpt_parts_put(parts, false, 0, x, 3));
  begin_calls(0);
  must(gt_ckpt_parts_finish(parts, &info, &rest));
  assert_string_equal(calls, "FRD");
  assert_int_equal(stat(path, &at), 0);
  assert_int_equal(at.st_size, synced);
  gt_ckpt_parts_close(parts);
}

TESTS(test_a_round_becomes_durable_in_order, test_a_failure_is_reported,
      test_a_model_in_parts_becomes_durable_in_order)
