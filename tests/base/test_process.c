/* The clock is monotonic and sleeps are precise; signals request a stop; fail points kill at the
   K-th pass. */
#include "geotrain/base.h"
#include "tests.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void the_clock_goes_on(void) {
  gt_ns before = gt_now();
  assert_true(before >= 0);
  for (int i = 0; i < 1000; i++) {
    gt_ns now = gt_now();
    assert_true(now >= before);
    before = now;
  }
  assert_int_equal(gt_from_seconds(0.025), 25 * GT_SECOND / 1000);
}

static int ascending(const void *a, const void *b) {
  gt_ns x = *(const gt_ns *)a, y = *(const gt_ns *)b;
  return (x > y) - (x < y);
}

/* A sleep is never too short.  The shortest of many shows that the kernel's slack of 50 us is off,
   whatever the load. */
static void a_sleep_is_never_short_and_can_be_precise(void) {
  gt_ns took[200];
  for (int i = 0; i < 200; i++) {
    gt_ns start = gt_now();
    gt_sleep(100000);
    took[i] = gt_now() - start;
  }
  qsort(took, 200, sizeof *took, ascending);
  assert_true(took[0] >= 100000);
  assert_true(took[0] < 140000);
  int slack = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
  if (slack >= 0) assert_int_equal(slack, 1000); /* -1: the kernel does not support it */
  gt_ns start = gt_now();
  gt_sleep(0);
  gt_sleep(-5);
  assert_true(gt_now() - start < GT_SECOND / 10);
}

static void on_alarm(int unused) {
  (void)unused;
}

static void a_signal_does_not_shorten_a_sleep(void) {
  struct sigaction action = {.sa_handler = on_alarm};
  sigaction(SIGALRM, &action, NULL);
  gt_ns start = gt_now();
  ualarm(5000, 0);
  gt_sleep(30000000);
  assert_true(gt_now() - start >= 30000000);
}

static void the_first_signal_is_kept(void) {
  gt_stop_install();
  assert_int_equal(gt_stop_requested(), 0);
  raise(SIGTERM);
  raise(SIGUSR1);
  raise(SIGINT);
  assert_int_equal(gt_stop_requested(), SIGTERM);
}

/* Returns what gt_stop_requested returns in a child that raises the signal; minus the signal if
   that ends the child. */
static int signal_to_child(int number, bool ignored) {
  pid_t child = fork();
  if (child == 0) {
    signal(number, ignored ? SIG_IGN : SIG_DFL);
    gt_stop_install();
    raise(number);
    _exit(gt_stop_requested());
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void a_closed_terminal_stops_the_run(void) {
  assert_int_equal(signal_to_child(SIGHUP, false), SIGHUP);
  assert_int_equal(signal_to_child(SIGHUP, true), 0); /* nohup */
}

/* Passes "write" three times in a child with GEOTRAIN_FAILPOINT set to `armed`; returns the number
   of passes survived, or -1 if it died in another way. */
static int passes_survived(const char *armed) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    setenv("GEOTRAIN_FAILPOINT", armed, 1);
    for (int i = 0; i < 3; i++) {
      gt_failpoint("other");
      gt_failpoint("write");
      if (write(ends[1], "x", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  int status, survived = 0;
  char x;
  while (read(ends[0], &x, 1) == 1) survived++;
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return killed == (survived < 3) ? survived : -1;
}

static void a_failpoint_kills_at_its_pass(void) {
  assert_int_equal(passes_survived("write"), 0);
  assert_int_equal(passes_survived("write:1"), 0);
  assert_int_equal(passes_survived("write:3"), 2);
  assert_int_equal(passes_survived("write:4"), 3);
  assert_int_equal(passes_survived("writer"), 3);
  assert_int_equal(passes_survived("wri"), 3);
  assert_int_equal(passes_survived(""), 3);
}

static void say_and_leave(const char *text) {
  _exit(strcmp(text, "3 is not 4") == 0 ? 42 : 43);
}

/* Returns the exit code of a child that calls gt_bug. */
static int exit_of_a_bug(void (*handler)(const char *)) {
  pid_t child = fork();
  if (child == 0) {
    gt_on_bug(handler);
    gt_bug("%d is not %d", 3, 4);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_broken_invariant_ends_the_process(void) {
  assert_int_equal(exit_of_a_bug(NULL), GT_ERR_FAULT);
  assert_int_equal(exit_of_a_bug(say_and_leave), 42);
}

TESTS(the_clock_goes_on, a_sleep_is_never_short_and_can_be_precise,
      a_signal_does_not_shorten_a_sleep, a_closed_terminal_stops_the_run, the_first_signal_is_kept,
      a_failpoint_kills_at_its_pass, a_broken_invariant_ends_the_process)
