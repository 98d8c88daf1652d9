/* Tests of several ranks: the world that all of them see, and their main function. */
#pragma once

#include "geotrain/net_mpi.h"
#include "tests.h"

#define LIMIT_S 30.0

static gt_peers *world;
static int rank, size;

/* Acts as the PS on rank 0 and as a worker on the others: once in shared memory, once with
   messages. */
static inline void both_planes(void (*ps)(void), void (*worker)(void)) {
  for (int messages = 0; messages < 2; messages++) {
    if (messages) setenv("GEOTRAIN_LOCAL_PLANE", "messages", 1);
    (rank == 0 ? ps : worker)();
    unsetenv("GEOTRAIN_LOCAL_PLANE");
  }
}

/* The main function of a file whose tests need the world.  The arguments are function names. */
#define RANK_TESTS(...)                                                                            \
  int main(void) {                                                                                 \
    world = gt_net_start(LIMIT_S);                                                                 \
    rank = (int)world->rank;                                                                       \
    size = (int)world->size;                                                                       \
    const int failed = RUN_TESTS(NULL, NULL, __VA_ARGS__);                                         \
    gt_net_finalize(world, LIMIT_S);                                                               \
    return failed;                                                                                 \
  }
