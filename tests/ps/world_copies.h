/* A deterministic world of several copies of a pipeline in one process: every region is a PS with
   one worker and one stage, and links delay messages at random, so that control overtakes data.
   What the PSs must come to is computed without any of them: at the end (test_copies.c), and with
   strategies that wait for nobody after every event (c_follow), from what has arrived. */
#ifndef GEOTRAIN_TESTS_PS_WORLD_COPIES_H
#define GEOTRAIN_TESTS_PS_WORLD_COPIES_H

#include "world_host.h"

#define C_COPIES  3
#define C_PLACES  3
#define C_REGIONS 9
#define C_PARAMS  5
#define C_BUFFERS 2
#define C_FLOATS  (C_PARAMS + C_BUFFERS)
#define C_TENSORS 2 /* of a region */
#define C_RING    256
#define C_SAVES   1024
#define C_ROUNDS  1024

typedef struct {
  size_t copies, places;
  int64_t steps[C_COPIES], checkpoint_every, period, eval_every;
  gt_strategy strategy;
  bool gradients, means; /* sync.exchange gradient, sync.scale mean */
  double clip;           /* train.clip */
  gt_topology topology;
  double wan_limit;  /* limits.wan_bytes; 0: none */
  int64_t bad_every; /* one of so many pushes is not finite; 0: none */
  double rounds;     /* chance of a round that a region opens at an event */
  uint64_t seed;
} c_spec;

typedef struct {
  gt_frame_header head;
  float body[C_FLOATS];
  size_t bytes;
  uint64_t cookie;
  gt_ns begins, departs, at; /* departs: GT_NEVER: it has */
} c_frame;

/* One direction, and one kind of messages: first in, first out. */
typedef struct {
  c_frame frames[C_RING];
  size_t head, count;
  gt_ns delay, free, last;
} c_link;

typedef struct {
  int64_t round;
  bool durable;
  gt_state state;
  int64_t seen[C_REGIONS];
} c_save;

struct c_world;
typedef struct {
  struct c_world *world;
  size_t id, copy, place;
  size_t mates[C_PLACES], twins[C_COPIES], next[C_REGIONS];
  gt_ps_stage stage;
  gt_ps_range params_range, buffers_range;
  gt_ps *ps;
  gt_optim *optim;
  float params[C_PARAMS], grads[C_PARAMS], buffers[C_BUFFERS], snapshot[C_FLOATS];
  enum { C_STARTING, C_IDLE, C_TRAINING, C_EVALUATING, C_PUSHED } work;
  gt_ns ready, written_at;
  int64_t batch, writing;
  /* What the worker was lent for the batch, and what was there then. */
  const float *lent_params, *lent_buffers;
  float lent[C_FLOATS];
  float pushed[C_PARAMS], after[C_BUFFERS];
  float gave[2][C_PARAMS]; /* pushed for the last two batches: [batch % 2] */
  /* Where nobody waits: the model that must be, the last message of each region that is in it, steps
     and dropped steps, and what messages have done to buffers since the worker was ordered: of the
     last two batches, the last one of which is `train`. */
  float must[C_FLOATS], add[2][C_BUFFERS], keep[2];
  int64_t train;
  int64_t seen[C_REGIONS], made, bad;
  gt_optim *judge;
  c_save saves[C_SAVES];
  size_t nsaves;
} c_region;

typedef struct c_world {
  c_spec spec;
  size_t n;
  gt_ns now;
  gt_rng rng;
  double weights[C_COPIES];
  c_region regions[C_REGIONS];
  c_link links[C_REGIONS][C_REGIONS][2]; /* control, data */
  int64_t rounds_at[C_COPIES][C_ROUNDS]; /* steps of a copy's checkpoints; -1: none yet */
  size_t owners[C_COPIES][C_TENSORS * C_PLACES];
  int64_t newest;
  /* checkpoints while the strategy held the region; rounds of another copy that waited for a step;
     acknowledgements that came before the own checkpoint; models that a newer one replaced; messages
     that came while the worker computed */
  int64_t held, waited, late, replaced, meanwhile;
  double bytes; /* of data, that were posted */
} c_world;

/* What the worker pushes for a batch. */
gt_ps_push c_push(const c_world *w, const c_region *r, int64_t batch, const float *params,
                  const float *buffers, float *grads, float *after);
/* A gradient of this batch is not finite in some region of the copy. */
bool c_dropped(const c_world *w, size_t copy, int64_t batch);
void c_begin(const c_region *r, float *params, float *buffers);
gt_optim *c_optim(const c_world *w);
/* No region waits for another copy. */
bool c_free(const c_spec *spec);
/* And messages are not forwarded, so that every event is followed. */
bool c_followed(const c_spec *spec);
/* The norm of a gradient of which each place has a part; 0: steps are not clipped. */
double c_norm(const c_world *w, const gt_optim *optim, const float *const *parts);

/* Bit for bit. */
bool c_same(const void *x, const void *y, size_t bytes);

c_world *c_open(const c_spec *spec);
void c_open_ps(c_world *w, c_region *r);
/* Workers come up, links are quiet. */
void c_quiet(c_world *w);
void c_drop(c_region *r);
void c_forget(c_region *r, size_t save);
void c_close(c_world *w);
gt_ps_view c_look(const c_world *w, size_t region);
bool c_all_in(const c_world *w, gt_ps_phase phase);
void c_print(const c_world *w);
#define c_check(w, condition)                                                                      \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      c_print(w);                                                                                  \
      fail_msg("%s does not hold", #condition);                                                    \
    }                                                                                              \
  } while (0)
/* c_followed: a message arrives at the region; something has happened there. */
void c_hear(c_world *w, c_region *r, size_t from, const gt_frame_header *head, const float *body);
void c_follow(c_world *w, c_region *r);
void c_step(c_world *w);
/* Until every region is complete, or every one has stopped. */
void c_run(c_world *w);
/* All regions are lost, and come back from the newest round that is whole everywhere. */
void c_crash(c_world *w);

#endif
