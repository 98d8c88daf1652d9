/* The interface between world_pipe.c and the laws of world_pipe_laws.c. */
#pragma once

#include "world.h"

#define P_ROUNDS 1024

typedef struct {
  size_t replica, place, next[W_PLACES], stage_group[P_PLACES], replicas[P_REPLICAS];
  int64_t evaluated; /* the step after which the last evaluation was ordered */
  /* With every event followed: the expected model, steps and dropped steps. */
  float must[P_FLOATS];
  int64_t committed, bad;
  gt_optim *judge;
} p_member;

struct pipeline {
  p_member members[W_PLACES];
  p_shape shapes[P_PLACES];
  double replica_weights[P_REPLICAS];
  /* the positions of the model's tensors, and their regions in each replica */
  size_t tensors[P_PLACES * P_TENSORS], owners[P_REPLICAS][P_PLACES * P_TENSORS], ntensors;
  int64_t steps_at[P_REPLICAS][P_ROUNDS];
  float after[P_PLACES][P_STEPS + 1][P_FLOATS]; /* of a single replica: the expected models */
  p_cases cases;
};

p_member *p_member_of(const w_region *r);
const w_region *p_region_at(const world *w, size_t place, size_t replica);
const gt_sync_ops *p_between(const w_spec *spec);
/* True if the exchange sums messages: then numbers are used whose sums do not round. */
bool p_is_exact(const w_spec *spec);
gt_optim *p_open_optim(const w_region *r, bool with_memory);
void p_begin_model(const w_region *r, float *params, float *buffers);

/* ---- pushes of workers ----------------------------------------------------------------------- */

const gt_ps_stage *p_stage_of(const w_region *r, size_t worker);
/* True if a gradient of the region, or of the replica, is non-finite. */
bool p_any_bad(const w_region *r, int64_t batch);
bool p_is_dropped(const world *w, size_t replica, int64_t batch);
int64_t p_samples_of(const w_region *r, size_t worker, int64_t batch);
double p_loss_of(const w_region *r, size_t worker, int64_t batch);
/* Makes a push; floats outside the stage are non-finite. */
void p_push_of(const w_region *r, size_t worker, int64_t batch, const float *params,
               const float *buffers, p_push *to);

/* ---- expected models ------------------------------------------------------------------------- */

/* Computes `after`. */
void p_judge_single(world *w);
/* Called before data is applied; and after any event. */
void p_hear(w_region *r, size_t from, const w_frame *f);
void p_follow(w_region *r);
