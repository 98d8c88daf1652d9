/* ps_of_job: what a job says of a PS.  Local. */
#ifndef GEOTRAIN_PS_OF_JOB_H
#define GEOTRAIN_PS_OF_JOB_H

#include "geotrain/ps.h"

/* Samples an EVAL order asks for: 1,024, and more of a large test set, up to 8,192, so that an order's
   way there and back is small beside its work. By the test set alone: what is added chunk by chunk
   must not depend on who scores it. */
size_t gt_ps_eval_chunk(size_t test_samples);

/* What the job says of the PS of region order->region; the caller puts in weights, vectors, optim, test_samples, keepalive, round and host.
   links: gt_links_from of the region; parameters: of the model. */
gt_ps_spec gt_ps_spec_of(const gt_job *job, const gt_order *order, const gt_link_spec *links, size_t parameters);
/* Shares of the regions in means, sum 1; samples: of every region.  The caller frees them. */
double *gt_ps_weights_of(const gt_job *job, const int64_t *samples);
/* The optimizer of a region; its rate ends with the region's steps, in lockstep with the longest region's. */
gt_optim_spec gt_ps_optim_of(const gt_job *job, size_t region, const int64_t *samples);

/* GT_ERR_JOB: the job's strategy cannot exchange by its topology. */
gt_status gt_ps_check_way(const gt_job *job);
/* `next` of its exchange (gt_topology_place); NULL with a mesh.  parameters: of the model.  The
   caller frees it. */
size_t *gt_ps_next_of(const gt_job *job, const gt_links *links, size_t parameters);

#endif
