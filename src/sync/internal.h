/* What the strategies share: common.c. */
#ifndef GEOTRAIN_SYNC_INTERNAL_H
#define GEOTRAIN_SYNC_INTERNAL_H

#include "geotrain/sync.h"

/* Workers are held while the region waits.  Call it last in an event. */
void gt_sync_hold_while(gt_sync *s, bool waits);
/* n zeroed floats, or NULL data where the parameters have none (simulation); freed with
   gt_free(vec.data). */
gt_vec gt_sync_vec(const gt_sync *s, size_t n);
/* Called before an update is sent that the parameters already contain.  With options.average, the
   update becomes the region's share of it, and from now on counts only that much here too. */
void gt_sync_share_out(gt_sync *s, gt_vec update);
/* gt_optim_step without accumulation. */
void gt_sync_step(gt_sync *s, gt_vec grads);
/* Makes a step, and adds to `sum` what other regions are sent of it: the update, or with
   options.gradients the gradient. */
void gt_sync_step_into(gt_sync *s, gt_vec grads, gt_vec sum);
/* `received` of a gt_collective_spec, ctx a gt_sync: applies such a sum of another region. */
void gt_sync_received(void *ctx, size_t origin, gt_vec sum);
/* Copies the region's model, parameters then buffers, into a payload or back. */
void gt_sync_copy_model_out(const gt_sync *s, gt_vec model);
void gt_sync_copy_model_in(gt_sync *s, gt_vec model);
/* Tells the host how an exchange changed the buffers: keep times the old ones plus `share` of
   `other`. */
void gt_sync_buffers_moved(const gt_sync *s, float keep, float share, gt_vec other);
/* The optimizer of options.outer, which is not GT_OUTER_NONE. */
gt_optim_spec gt_sync_outer_spec(const gt_sync_options *options);
/* A vector as state; left out if it is empty. */
gt_state_field gt_sync_field(const char *name, gt_vec v);

#endif
