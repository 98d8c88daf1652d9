/* A model of text in parts, one on each rank of an MPI run, so that none needs memory for all of it:
   rank 0 asks for logits, and the ids go from part to part as in a pipeline. */
#ifndef GEOTRAIN_CLI_TEXT_STAGES_H
#define GEOTRAIN_CLI_TEXT_STAGES_H

#include "geotrain/ckpt.h"
#include "geotrain/nn.h"

typedef struct gt_text_stages gt_text_stages;

/* This rank's part of the model, with its parameters; ranks beyond the places where the model can be
   cut have none.  Between gt_net_start and gt_net_finalize.  Collective over the world: all ranks
   get the same status.  status: of what this rank has done before; `from`, `info` and `shape` are not
   read if it is an error. */
gt_status gt_text_stages_open(gt_text_stages **out, gt_status status, const char *path,
                              const gt_ckpt_source *from, const gt_ckpt_info *info,
                              const gt_sample_shape *shape);
/* Takes NULL.  Local. */
void gt_text_stages_close(gt_text_stages *stages);
/* Returns T, the positions of the model.  V below: the size of its vocabulary. */
size_t gt_text_stages_positions(const gt_text_stages *stages);
/* On rank 0, while the others serve: the logits (V) of the id behind position `last` of the window
   (T+1), valid until the next call. */
const float *gt_text_stages_logits(gt_text_stages *stages, const int32_t *window, size_t last);
/* On the other ranks: computes until rank 0 ends it.  On rank 0: ends it. */
void gt_text_stages_serve(gt_text_stages *stages);

#endif
