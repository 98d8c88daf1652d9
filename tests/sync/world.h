/* A small deterministic world of R regions in one process: the PS's services for a strategy, FIFO
   links with seeded random delays, bounded outboxes, acknowledgements, DONE after everything before
   it, workers that compute gradients of a quadratic loss.  world_run.h advances it. */
#ifndef GEOTRAIN_TESTS_SYNC_WORLD_H
#define GEOTRAIN_TESTS_SYNC_WORLD_H

#include "geotrain/sync.h"
#include "tests.h"

#define W_REGIONS 6
#define W_WORKERS 3
#define W_QUEUE   128
#define W_PIECE   3 /* floats of a piece, if messages have pieces */
#define W_PARAMS  7
#define W_BUFFERS 3
#define W_MODEL   (W_PARAMS + W_BUFFERS)
#define W_SAMPLES 8 /* behind a gradient */

typedef struct {
  const char *strategy;
  size_t nregions;
  int64_t steps[W_REGIONS];
  double weights[W_REGIONS]; /* all 0: equal */
  int64_t period;
  double scale;
  bool average, gradients, halves; /* as in gt_sync_options */
  gt_outer outer;
  double outer_lr, outer_momentum;
  /* messages queued; messages in flight and not acknowledged */
  size_t outbox, window;
  size_t workers;         /* more than 1: gradients can be computed while workers are held */
  double slow[W_REGIONS]; /* factor of the delays of a region's links; 0: 1 */
  gt_topology topology;
  size_t next[W_REGIONS];   /* as in gt_exchange_spec; not with a mesh */
  size_t ranks[W_REGIONS];  /* gt_exchange_spec.workers */
  bool no_data, drain_late; /* drain_late: on_drain waits for the release */
  gt_optim_spec optim;      /* name NULL: plain SGD */
  uint64_t seed;
} w_spec;

typedef struct {
  const void *body; /* of the outbox, until it is acknowledged */
  uint64_t cookie;
  gt_frame_header head;
  gt_ns arrive, acked; /* GT_NEVER: not yet known */
  /* at the receiver; sent again after a crash, so that the receiver could have it already */
  bool here, resent;
} w_message;

/* One direction.  queue[0..flying) are in flight, the rest are queued. */
typedef struct {
  w_message queue[W_QUEUE];
  size_t count, flying;
  gt_ns depart, last_arrival, done_at; /* of the first queued message; of DONE */
  uint64_t received, applied;          /* last received; last taken by the receiver */
  uint64_t value;                      /* of the last message delivered */
  int64_t posted, delivered, replaced, duplicates, samples;
  bool done_here;
} w_link;

typedef enum { W_IDLE, W_COMPUTING, W_PENDING } w_work;

typedef struct {
  w_work work;
  gt_ns ready;
  float grads[W_PARAMS];
} w_worker;

struct world;
typedef struct {
  struct world *world;
  size_t id;
  gt_sync *sync;
  gt_outbox *outbox;
  gt_exchange *exchange;
  gt_optim *optim;
  float params[W_PARAMS], buffers[W_BUFFERS];
  double sent[W_PARAMS], moved[W_PARAMS]; /* sums over own gradients of -lr g and of its size */
  double posted[W_PARAMS];                /* sum of all posted updates */
  w_worker workers[W_WORKERS];
  int64_t assigned, given;
  bool held, draining, done;
  int64_t holds;
} w_region;

typedef struct world {
  w_spec spec;
  gt_sync_env env;
  size_t unit;     /* messages of an exchange on a link */
  size_t inflight; /* largest number of messages in flight on a link */
  double weights[W_REGIONS];
  w_region regions[W_REGIONS];
  w_link links[W_REGIONS][W_REGIONS];
  gt_rng rng;
  gt_ns now;
  int64_t events;
  bool crashed, resending; /* resending: outboxes are loaded */
} world;

gt_optim_spec w_sgd(double lr, double momentum);
gt_optim_spec w_adamw(void);

/* ---- the loss: sum over j of curvature/2 (w_j - target)^2, other numbers in each region ------ */

float w_curvature(size_t region, size_t j);
float w_target(size_t region, size_t j);
float w_start(size_t j);
float w_gradient(size_t region, size_t j, float w);

/* ---- the host -------------------------------------------------------------------------------- */

/* Draws a delay from `from` to `to`, mostly short, sometimes long. */
gt_ns w_delay(world *w, size_t from, size_t to);
/* Sets the departure time of the first queued message of a link when the window allows it. */
void w_arm(world *w, size_t from, size_t to);

/* ---- opening and closing --------------------------------------------------------------------- */

/* Returns the environment on the region's exchange. */
gt_sync_env w_env(world *w, w_region *r);
/* Opens another exchange, without collectives. */
gt_exchange *w_exchange(world *w, w_region *r);
void w_open_outbox(world *w, w_region *r);
void w_create_strategy(world *w, w_region *r);
world *w_open(const w_spec *spec);
void w_close(world *w);

#endif
