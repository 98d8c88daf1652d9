/* Functions that several strategies use (common.c). */
#pragma once

#include "geotrain/sync.h"

/* Holds the workers while the region waits.  Call it last in an event. */
void gt_sync_hold_while(gt_sync *s, bool waits);
/* Returns n zeroed floats, or NULL data if the parameters have none (simulation); the caller frees
   them with gt_free(vec.data). */
gt_vec gt_sync_vec(const gt_sync *s, size_t n);
/* Call before sending an update that the parameters already contain.  With options.average, scales
   the update to the region's share of it, and the region's parameters accordingly. */
void gt_sync_share_out(gt_sync *s, gt_vec update);
/* Calls gt_optim_step without accumulation. */
void gt_sync_step(gt_sync *s, gt_vec grads);
/* Makes a step, and adds its message for other regions to `sum`: the update, or with
   options.gradients the gradient. */
void gt_sync_step_into(gt_sync *s, gt_vec grads, gt_vec sum);
/* `received` of a gt_collective_spec, ctx a gt_sync: applies a sum of another region. */
void gt_sync_received(void *ctx, size_t origin, gt_vec sum);
/* Copies the region's model, parameters then buffers, into a payload. */
void gt_sync_copy_model_out(const gt_sync *s, gt_vec model);
/* Informs the host that an exchange changed the buffers from b to keep * b + share * other. */
void gt_sync_buffers_moved(const gt_sync *s, float keep, float share, gt_vec other);
/* True if contributions are judged. */
static inline bool gt_sync_guarded(const gt_sync_options *options) {
  return options->guard.clip > 0 || options->guard.outlier > 0;
}
/* True if regions send differences to the anchor. */
static inline bool gt_sync_anchored(const gt_sync_options *options) {
  return options->outer != GT_OUTER_NONE || options->lossy || gt_sync_guarded(options) ||
         options->quorum > 0;
}
/* Returns the optimizer of the anchor; GT_OUTER_NONE: sgd with rate 1. */
gt_optim_spec gt_sync_outer_spec(const gt_sync_options *options);
/* Returns a vector as a field of the state; empty vectors are left out. */
gt_state_field gt_sync_field(const char *name, gt_vec v);

/* The model, as gt_sync_ops.common. */
gt_status gt_sync_model(gt_sync *s, gt_state_direction direction);
/* The same for a strategy that sends updates.  A saved model is without those that other regions
   still get: `unsent`, and what a codec has left out.  copy: keeps the saved parameters; the caller
   frees its data.  A loaded model replaces what the region has left out, too. */
gt_status gt_sync_model_of_updates(gt_sync *s, const gt_broadcast *updates, gt_vec unsent,
                                   gt_vec *copy, gt_state_direction direction);
