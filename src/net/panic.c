/* Ends every rank at once: MPI failed, a deadline passed or an invariant is broken. */
#include "internal.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define ABORT_LIMIT_S 30

static bool mpi_is_up(void) {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  if (begun) MPI_Finalized(&ended);
  return begun && !ended;
}

void gt_panic(gt_status code, const char *format, ...) {
  char text[GT_ERROR_TEXT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  gt_log(GT_LOG_ERROR, "%s", text);
  if (mpi_is_up()) {
    signal(SIGALRM, SIG_DFL);
    alarm(ABORT_LIMIT_S); /* MPI_Abort itself may block if the launcher is gone */
    MPI_Abort(MPI_COMM_WORLD, (int)code);
  }
  _exit((int)code);
}

void gt_mpi_check(int error, const char *call) {
  if (error == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS)
    snprintf(text, sizeof text, "MPI error %d", error);
  gt_panic(GT_ERR_LOST, "%s failed: %s", call, text);
}
