/* A deterministic world of regions that hold the stages of one pipeline, in one process: each a PS
   with the workers of its stages, joined by links with random delays.  Time is virtual.  What the
   PSs must come to is computed beforehand, step by step, without any of them. */
#ifndef GEOTRAIN_TESTS_PS_WORLD_STAGES_H
#define GEOTRAIN_TESTS_PS_WORLD_STAGES_H

#include "world_host.h"

#define S_REGIONS 4
#define S_STAGES  3 /* of a region */
#define S_WORKERS 9 /* of a region */
#define S_PARAMS  24
#define S_BUFFERS 6
#define S_RANGES  4
#define S_TENSORS 3 /* of a region */
#define S_STEPS   32
#define S_ROUNDS  256
#define S_COPIES  32
#define S_RING    512

typedef struct {
  size_t nregions, batch, test_samples;
  int64_t steps, eval_every, checkpoint_every; /* 0: never */
  double minutes;                              /* or by time; 0: no */
  int64_t bad_every;                           /* one of so many pushes is not finite; 0: none */
  int nonfinite_limit;
  double clip;   /* largest norm of a gradient; 0: any */
  double rounds; /* chance of a round that a region opens at an event */
  bool no_data;
  uint64_t seed;
} s_spec;

/* The stages of a region. */
typedef struct {
  size_t nstages, nworkers, nparams, nbuffers;
  gt_ps_stage stages[S_STAGES];
  gt_ps_range params[S_STAGES][S_RANGES], buffers[S_STAGES][S_RANGES];
  gt_view tensors[S_TENSORS];
  size_t ntensors;
} s_shape;

/* What a region has after a step. */
typedef struct {
  float params[S_PARAMS], buffers[S_BUFFERS];
  int64_t samples, nonfinite;
  double loss_sum;
} s_after;

typedef struct {
  gt_frame_header head;
  double numbers[S_TENSORS];
  gt_ns at;
} s_frame;

/* One direction, first in, first out. */
typedef struct {
  s_frame frames[S_RING];
  size_t head, count;
  gt_ns delay, jitter, last;
} s_link;

typedef enum { S_STARTING, S_IDLE, S_TRAINING, S_EVALUATING, S_PUSHED } s_work;

typedef struct {
  s_work work;
  gt_ns ready;
  int64_t batch;
  float grads[S_PARAMS], buffers[S_BUFFERS];
} s_worker;

typedef struct {
  int64_t round, steps;
  bool durable;
  gt_state state;
} s_copy;

struct s_world;
typedef struct {
  struct s_world *world;
  size_t id;
  s_shape shape;
  gt_ps *ps;
  gt_optim *optim;
  float params[S_PARAMS], grads[S_PARAMS], buffers[S_BUFFERS], snapshot[S_PARAMS + S_BUFFERS];
  s_worker workers[S_WORKERS];
  s_copy copies[S_COPIES];
  size_t ncopies;
  int64_t writing, evaluated; /* evaluated: the step after which the last evaluation was ordered */
  gt_ns written_at;
  int64_t nonfinite, evals;
  bool scored; /* by gt_ps_evaluate */
} s_region;

typedef struct s_world {
  s_spec spec;
  size_t n;
  gt_ns now;
  gt_rng rng;
  double weights[S_REGIONS];
  size_t owners[S_REGIONS * S_TENSORS], nowners;
  s_region regions[S_REGIONS];
  s_link links[S_REGIONS][S_REGIONS];
  s_after after[S_REGIONS][S_STEPS + 1]; /* what must be */
  int64_t rounds_at[S_ROUNDS];           /* steps of the checkpoints of a round; -1: none yet */
  int64_t newest, events;                /* newest: round that was ever taken */
  /* checkpoints within a step that was told; ROUND that had to wait for a step */
  int64_t within, waited;
  int64_t clipped; /* steps that must be */
} s_world;

/* ---- the problem ----------------------------------------------------------------------------- */

/* What a worker pushes for a batch, with these parameters and buffers.  Floats that are not its
   stage's are not finite. */
gt_ps_push s_push(const s_world *w, const s_region *r, size_t worker, int64_t batch,
                  const float *params, const float *buffers, float *grads, float *after);

size_t s_stage_of(const s_shape *shape, size_t worker);
/* The worker's gradient is not finite. */
bool s_bad(const s_world *w, size_t region, size_t worker, int64_t batch);
/* Draws the stages of all regions.  The first one of region 0 reads the data; the loss is in some
   other or the same region. */
void s_shapes(s_world *w);
/* Computes w->after of all regions. */
void s_judge(s_world *w);
gt_optim *s_optim(const s_region *r, bool with_memory);
/* What the region has before the first step. */
void s_begin(const s_region *r, s_after *a);

/* ---- the world ------------------------------------------------------------------------------- */

s_world *s_open(const s_spec *spec);
void s_close(s_world *w);
gt_ps_view s_look(const s_world *w, size_t region);
bool s_all_in(const s_world *w, gt_ps_phase phase);
void s_print(const s_world *w);
#define s_check(w, condition)                                                                      \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      s_print(w);                                                                                  \
      fail_msg("%s does not hold", #condition);                                                    \
    }                                                                                              \
  } while (0)

/* The next event. */
void s_step(s_world *w);
/* Until every region is in `phase`, or has stopped; a world that does not come there in ten minutes
   of its time is locked. */
void s_run_until(s_world *w, gt_ps_phase phase);
/* All regions are lost, and come back from the newest round that is whole everywhere. */
void s_crash(s_world *w);
/* The region has what it must have after the steps that it has made. */
void s_check_region(const s_world *w, const s_region *r);
/* The score is the mean of what the workers of stages that judge have answered; else there is
   none. */
void s_check_score(const s_region *r, const gt_ps_score *score);

#endif
