/* MPI transfers between the first rank and the last, for netem/tcp.  Prints one line per case,
   "CASE BYTES SECONDS".  SECONDS is the time from the start of sending until the last byte has
   arrived: the measured time minus half of the least round trip, for the way back of the answer. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BIG = 32 << 20, SMALL = 1 << 20, ROUNDS = 5 };

typedef struct {
  int rank, last;
  char *buffer;
  double half_round_trip_s;
} transfer;

/* Sends `bytes` to the other side and receives one byte; returns the seconds at the sender.
   Collective over both. */
static double send_and_answer(const transfer *t, int bytes) {
  char answer = 0;
  double start = MPI_Wtime();
  if (t->rank == 0) {
    MPI_Send(t->buffer, bytes, MPI_CHAR, t->last, 0, MPI_COMM_WORLD);
    MPI_Recv(&answer, 1, MPI_CHAR, t->last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(t->buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&answer, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - start;
}

static void measure(const transfer *t, const char *name, int bytes) {
  double seconds = send_and_answer(t, bytes) - t->half_round_trip_s;
  if (t->rank == 0) printf("%s %d %.4f\n", name, bytes, seconds);
}

static void find_round_trip(transfer *t) {
  double least = 1e9;
  for (int i = 0; i < ROUNDS; i++) {
    double s = send_and_answer(t, 1);
    if (s < least) least = s;
  }
  t->half_round_trip_s = least / 2;
}

static void idle(void) {
  struct timespec pause = {.tv_sec = 1};
  nanosleep(&pause, NULL);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  transfer t = {.buffer = calloc(BIG, 1)};
  MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &t.last);
  t.last--;
  if (!t.buffer || t.last < 1) MPI_Abort(MPI_COMM_WORLD, 2);
  if (t.rank == 0 || t.rank == t.last) {
    find_round_trip(&t);
    measure(&t, "first", BIG);
    measure(&t, "next", BIG);
    idle();
    measure(&t, "idle", BIG);
    idle();
    measure(&t, "small", SMALL);
    measure(&t, "small-next", SMALL);
  }
  free(t.buffer);
  MPI_Finalize();
  return 0;
}
