/* A model of text in parts, one on each rank of an MPI run, so that no rank needs memory for the
   whole model: rank 0 requests logits, and activations pass from part to part as in a pipeline. */
#pragma once

#include "geotrain/ckpt.h"
#include "geotrain/net_peers.h"
#include "geotrain/nn.h"

typedef struct gt_text_stages gt_text_stages;

/* Opens this rank's part of the model, with its parameters; if the model has fewer parts than there
   are ranks, the last ranks have none.  Collective over `world`, which is borrowed until the close:
   all ranks get the same status.  status: of this rank so far; `from`, `info` and `shape` are not
   read if it is an error. */
gt_status gt_text_stages_open(gt_text_stages **out, gt_peers *world, gt_status status,
                              const char *path, const gt_ckpt_source *from,
                              const gt_ckpt_info *info, const gt_sample_shape *shape);
/* NULL is allowed.  Local. */
void gt_text_stages_close(gt_text_stages *stages);
/* Returns T, the positions of the model.  V below: the size of its vocabulary. */
size_t gt_text_stages_positions(const gt_text_stages *stages);
/* Returns the logits (V) of the id after position `last` of the window (T+1), valid until the next
   call.  On rank 0, while the others serve. */
const float *gt_text_stages_logits(gt_text_stages *stages, const int32_t *window, size_t last);
/* Serves requests until rank 0 ends it.  On rank 0: ends it. */
void gt_text_stages_serve(gt_text_stages *stages);
