/* The model of a checkpoint, built again from what the file says. */
#ifndef GEOTRAIN_CLI_CHECKPOINT_MODEL_H
#define GEOTRAIN_CLI_CHECKPOINT_MODEL_H

#include "geotrain/ckpt.h"
#include "geotrain/nn.h"

/* The shape of the samples that the model takes.  GT_ERR_CKPT: a number that no shape has. */
gt_status gt_cli_checkpoint_shape(const char *path, const gt_ckpt_info *info, gt_sample_shape *shape);
/* How the images that the model was trained on were normalised: mean[c] and std[c], borrowed from
   the state.  false: the file does not say (ids, float32, or written before files said it).
   GT_ERR_CKPT: what it says cannot be. */
gt_status gt_cli_checkpoint_norm(const char *path, const gt_state *state, size_t channels, bool *said, const float **mean, const float **std);
/* Builds the model for samples of this shape and batches of at most batch_max (0: arrays only), with its parameters and buffers in place.  The caller closes *out.
   GT_ERR_CKPT: this program has no such model, or it is another than the one that was trained. */
gt_status gt_cli_checkpoint_model(gt_graph **out, const char *path, const gt_ckpt_info *info, const gt_state *state, const gt_sample_shape *shape,
                                  size_t batch_max);

#endif
