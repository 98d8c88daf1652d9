/* A deterministic world of R regions in one process: each a PS with its workers, joined by links of
   the link model, with a checkpoint host.  Time is virtual.  world_host.h serves the PS,
   world_run.h moves the world, crashes it and brings it back. */
#ifndef GEOTRAIN_TESTS_PS_WORLD_H
#define GEOTRAIN_TESTS_PS_WORLD_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "geotrain/ps_state.h"

#define W_REGIONS 5
#define W_WORKERS 4
#define W_PARAMS  6
#define W_BUFFERS 2
#define W_MODEL   (W_PARAMS + W_BUFFERS)
#define W_RING    128
#define W_COPIES  16
#define W_BATCHES 256 /* numbers a region can be asked for */
#define W_MS      ((gt_ns)1000000)
#define W_TEST    32 /* test samples that a region can have */
#define W_PIECE   2  /* floats of a piece, where messages have pieces */

/* What a world is; 0 means the usual where there is one. */
typedef struct {
  const char *strategy;
  const gt_sync_ops *ops; /* NULL: those of `strategy` */
  /* samples: the region's part; 0 workers, and 0 samples: it only aggregates */
  size_t nregions, workers[W_REGIONS], samples[W_REGIONS];
  bool local_async, no_data, by_samples;
  size_t batch, outbox, window;
  int64_t period;
  double momentum;
  gt_ps_interval until, eval_every, checkpoint_every;
  size_t test_samples;
  gt_link_spec link;
  double slow[W_REGIONS]; /* factor of a region's compute time */
  double write_s;         /* longest time that a checkpoint takes to be durable */
  int nonfinite_limit;    /* 0: 3 */
  /* every such batch number of region 0 gives a gradient that is not finite */
  int64_t bad_every;
  int64_t poison;  /* region 0's so many-th data message is not finite */
  int64_t unsound; /* region 0 would not go on from this round */
  double wan_bytes_limit;
  gt_ns keepalive, heartbeat;
  gt_topology topology;
  size_t next[W_REGIONS]; /* as in gt_exchange_spec */
  uint64_t seed;
} w_spec;

typedef struct {
  gt_frame_header head;
  const float *borrowed; /* data: until it has departed */
  float body[W_MODEL];
  size_t bytes;
  uint64_t cookie;
  gt_ns at; /* of its arrival */
} w_frame;

typedef struct {
  w_frame frames[W_RING];
  size_t head, count;
} w_ring;

/* One direction: what waits, what is leaving, what is on its way. */
typedef struct {
  w_ring control, data, air;
  bool leaving;
  w_frame current;
  gt_ns depart, arrive;
  gt_link_state state;
  struct {
    uint64_t cookie;
    gt_ns at;
  } gone[W_RING]; /* departures that the PS is yet to be told of */
  size_t ngone;
  int64_t data_sent;
  /* newest sequence applied; strategy's numbers of the last message posted, applied */
  int64_t applied, posted_value, applied_value;
} w_link;

typedef enum { W_STARTING, W_IDLE, W_TRAINING, W_EVALUATING, W_PUSHED } w_work;

typedef struct {
  w_work work;
  gt_ns ready, heard;          /* when it answers; when it was last told anything */
  int64_t batch, first, count; /* first, count: test samples */
  const float *model;          /* that it evaluates; NULL: none yet */
  bool lent;                   /* its gradient is with the PS */
  float grads[W_PARAMS];
} w_worker;

/* What a region's file of a round holds. */
typedef struct {
  int64_t round;
  bool durable;
  gt_state state;
  int trained[W_BATCHES];
  int64_t applied[W_REGIONS], applied_value[W_REGIONS], posted_value[W_REGIONS];
} w_copy;

struct world;
typedef struct {
  struct world *world;
  size_t id;
  gt_ps *ps;
  gt_optim *optim;
  float params[W_PARAMS], grads[W_PARAMS], buffers[W_BUFFERS], snapshot[W_MODEL];
  w_worker workers[W_WORKERS];
  /* how often a batch has counted, since the beginning, over every resume */
  int trained[W_BATCHES];
  w_copy copies[W_COPIES];
  size_t ncopies;
  gt_ns written_at;
  int64_t writing;
  int64_t evals, orders, keepalives, nonfinite, nonfinite_messages, rounds, wholes;
  gt_ns wan_wait;
  int64_t decisions;
} w_region;

typedef struct world {
  w_spec spec;
  size_t n;
  gt_ns now;
  int64_t events, restarts;
  gt_rng rng;
  double weights[W_REGIONS];
  w_region regions[W_REGIONS];
  w_link links[W_REGIONS][W_REGIONS];
} world;

/* ---- the problem: batch b of region r has the target t(r, b) ; loss 1/2 sum (w - t)^2 -------- */

float w_target(size_t region, int64_t batch, size_t j);
gt_order w_order_of(const w_spec *spec, size_t region);
int64_t w_per_epoch(const w_spec *spec, size_t region);
/* Of a test sample, whatever the model. */
float w_score(int64_t i);
const int32_t *w_labels(void);
double w_auc(size_t n);

/* ---- rings ----------------------------------------------------------------------------------- */

w_frame *w_at(w_ring *ring, size_t k);
void w_push(w_ring *ring, const w_frame *frame);
w_frame w_pop(w_ring *ring);

/* ---- looks ----------------------------------------------------------------------------------- */

gt_ps_view w_look(const world *w, size_t region);
bool w_all_in(const world *w, gt_ps_phase phase);
/* Where everyone stands, for a test that is about to fail. */
void w_print(const world *w);
#define w_check(w, condition)                                                                      \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      w_print(w);                                                                                  \
      fail_msg("%s does not hold", #condition);                                                    \
    }                                                                                              \
  } while (0)

#endif
