/* The watchdog ends a process that hangs inside a call with 5 and a sentence, and does not end one
   that returns; back-off and deadlines. */
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"
#include "tests.h"

/* Runs `body` in a child; returns its exit code, and its stderr in text. */
static int in_child(void (*body)(void), char *text, size_t size) {
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t n; used < size - 1 && (n = read(ends[0], text + used, size - 1 - used)) > 0;)
    used += (size_t)n;
  text[used] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void hang(void) {
  gt_log_identity("shanghai rank 2", true);
  gt_watch_begin("MPI_Init", 0.2, GT_ERR_LOST);
  sleep(20);
}

static void hang_ends_with_5(void) {
  char text[256];
  gt_ns begin = gt_now();
  assert_int_equal(in_child(hang, text, sizeof text), GT_ERR_LOST);
  double took_s = gt_seconds(gt_now() - begin);
  assert_string_equal(text, "geotrain: shanghai rank 2: waited 0.2 s in MPI_Init\n");
  assert_true(took_s >= 0.2 && took_s < 5.0);
}

static void finish_in_time(void) {
  for (int i = 0; i < 20; i++) {
    gt_watch_begin("MPI_Comm_split", 0.5, GT_ERR_LOST);
    gt_watch_end();
  }
  gt_sleep(GT_SECOND * 7 / 10);
}

static void an_ended_watch_does_nothing(void) {
  char text[256];
  assert_int_equal(in_child(finish_in_time, text, sizeof text), 0);
  assert_string_equal(text, "");
}

static void panic_without_mpi(void) {
  gt_panic(GT_ERR_DATA, "no data for %s", "us");
}

static void panic_before_init_exits_with_its_code(void) {
  char text[256];
  assert_int_equal(in_child(panic_without_mpi, text, sizeof text), GT_ERR_DATA);
  assert_string_equal(text, "geotrain: no data for us\n");
}

/* Time in which a process was stopped does not count for its deadline. */
static void a_stopped_process_has_not_waited(void) {
  gt_patience patience;
  gt_patience_start(&patience, 2.0);
  patience.seen -= 100 * GT_SECOND;
  assert_false(gt_patience_over(&patience));
  patience.seen -= 100 * GT_SECOND;
  gt_patience_over(&patience);
  patience.seen -= 100 * GT_SECOND;
  assert_true(gt_patience_over(&patience));
}

static void backoff_doubles_to_its_cap(void) {
  gt_backoff b = {0};
  static const gt_ns expected[] = {20000, 40000, 80000, 100000, 100000};
  for (size_t i = 0; i < 5; i++) {
    gt_ns begin = gt_now();
    gt_backoff_sleep(&b, GT_BACKOFF_BUSY, GT_NEVER);
    assert_int_equal(b.sleep, expected[i]);
    assert_true(gt_now() - begin >= expected[i]);
  }
  for (int i = 0; i < 5; i++) gt_backoff_sleep(&b, GT_BACKOFF_IDLE, gt_now());
  assert_int_equal(b.sleep, GT_BACKOFF_IDLE);
  gt_backoff_reset(&b);
  gt_backoff_sleep(&b, GT_BACKOFF_IDLE, GT_NEVER);
  assert_int_equal(b.sleep, 20000);
}

TESTS(hang_ends_with_5, an_ended_watch_does_nothing, panic_before_init_exits_with_its_code,
      a_stopped_process_has_not_waited, backoff_doubles_to_its_cap)
