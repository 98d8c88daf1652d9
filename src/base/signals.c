/* Signals: SIGUSR1, SIGTERM, SIGINT or SIGHUP request a stop, which takes effect at the next
   step. */
#include "geotrain/base.h"

#include <signal.h>

static volatile sig_atomic_t first_signal;

static void remember(int number) {
  if (first_signal == 0) first_signal = number;
}

/* SA_RESTART: these signals interrupt no read, write or wait, neither geotrain's nor a library's.
   SIGHUP stays ignored under nohup. */
void gt_stop_install(void) {
  static const int numbers[] = {SIGUSR1, SIGTERM, SIGINT, SIGHUP};
  struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART}, before;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (sigaction(numbers[i], &action, &before) == 0 && numbers[i] == SIGHUP &&
        before.sa_handler == SIG_IGN)
      sigaction(numbers[i], &before, NULL);
}

int gt_stop_requested(void) {
  return first_signal;
}
