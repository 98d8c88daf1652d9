/* What the strategies share and nobody else sees: common.c. */
#ifndef GEOTRAIN_SYNC_INTERNAL_H
#define GEOTRAIN_SYNC_INTERNAL_H

#include "geotrain/sync.h"

/* Workers are held while the region waits.  The last thing in an event. */
void gt_sync_hold_while(gt_sync *s, bool waits);
/* n floats of zeroed memory, or NULL data where the parameters have none (simulation); freed with gt_free(vec.data). */
gt_vec gt_sync_vec(const gt_sync *s, size_t n);
/* An update that the parameters hold already is about to be sent: with env.average it becomes the region's share, and so much counts here too from now on. */
void gt_sync_share_out(gt_sync *s, gt_vec update);
/* A gt_optim_step that accumulates nothing. */
void gt_sync_step(gt_sync *s, gt_vec grads);
/* The region's model, parameters then buffers, into a payload or back. */
void gt_sync_copy_model_out(const gt_sync *s, gt_vec model);
void gt_sync_copy_model_in(gt_sync *s, gt_vec model);
/* Tells the host what an exchange makes of the buffers: keep times what they were, and `share` of
   `other`. */
void gt_sync_buffers_moved(const gt_sync *s, float keep, float share, gt_vec other);
/* A vector to and from named state; nothing when its data is NULL. */
void gt_sync_save_vec(gt_state *state, const char *name, gt_vec v);
gt_status gt_sync_load_vec(const gt_state *state, const char *name, gt_vec v);
/* A counter to and from named state. */
void gt_sync_save_count(gt_state *state, const char *name, int64_t *count);
gt_status gt_sync_load_count(const gt_state *state, const char *name, int64_t *count);

#endif
