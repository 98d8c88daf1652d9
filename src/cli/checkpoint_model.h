/* The input model of a command: its file, and the model rebuilt from the contents of the file. */
#pragma once

#include "geotrain/ckpt.h"
#include "geotrain/data.h"
#include "geotrain/nn.h"

/* Writes the path of the model to path: `named` itself or, if it is a run directory, its final
   model (region NULL) or that of a region.  GT_ERR_CKPT: no such model; the text lists the existing
   ones.  GT_ERR_JOB: a region was given, but `named` is not a directory. */
gt_status gt_cli_run_model(char *path, size_t size, const char *named, const char *region);
/* A model's file, and the model with its parameters and buffers in place. */
typedef struct {
  char path[4096];
  gt_ckpt_info info;
  gt_state state;
  gt_sample_shape shape;
  gt_graph *graph; /* arrays only */
  size_t batch;    /* of the graphs for threads; set by the caller */
} gt_cli_model;
/* Reads the model of gt_cli_run_model.  The caller closes *out, also after an error.  Errors as
   gt_cli_run_model, gt_ckpt_read and gt_cli_checkpoint_model. */
gt_status gt_cli_model_open(gt_cli_model *out, const char *named, const char *region);
void gt_cli_model_close(gt_cli_model *model);
/* Creates a graph for batches of model->batch samples that shares the arrays of the gt_cli_model at
   `model`: for gt_cli_batches.  Errors as gt_cli_checkpoint_model. */
gt_status gt_cli_model_graph(void *model, gt_graph **out);
/* Reads the shape of the model's samples.  GT_ERR_CKPT: a number is not valid for a shape. */
gt_status gt_cli_checkpoint_shape(const char *path, const gt_ckpt_info *info,
                                  gt_sample_shape *shape);
/* Finds the normalisation of the images that the model was trained on: mean[c] and std[c], borrowed
   from the state. *said false: the file does not contain it (ids, float32, or an older file).
   GT_ERR_CKPT: it contains invalid values. */
gt_status gt_cli_checkpoint_norm(const char *path, const gt_state *state, size_t channels,
                                 bool *said, const float **mean, const float **std);
/* Reads the names of the classes; none if the file has none.  The caller frees names->text, also
   after an error.  GT_ERR_CKPT: their number is not that of the classes. */
gt_status gt_cli_model_class_names(const gt_cli_model *model, gt_class_names *names);
/* Returns GT_ERR_CKPT for the checkpoint of a region with stages of a pipeline, which holds only a
   part of the model. */
gt_status gt_cli_checkpoint_whole(const char *path, const gt_ckpt_info *info);
/* Creates the graph of its model, with `params` parameters, from *spec; sets model, options and
   kernels.  Errors as gt_cli_checkpoint_model. */
gt_status gt_cli_checkpoint_graph(gt_graph **out, const char *path, const gt_ckpt_info *info,
                                  size_t params, gt_graph_spec *spec);
/* Returns GT_ERR_CKPT if the definition of the whole model differs from that of the trained one. */
gt_status gt_cli_checkpoint_hash(const gt_graph *graph, const char *path, const gt_ckpt_info *info);
/* Builds the model for samples of this shape and batches of at most batch_max (0: arrays only),
   with its parameters and buffers in place.  The caller closes *out.  GT_ERR_CKPT: this program has
   no such model, its definition differs from that of the trained model, or the file holds a part of
   it. */
gt_status gt_cli_checkpoint_model(gt_graph **out, const char *path, const gt_ckpt_info *info,
                                  const gt_state *state, const gt_sample_shape *shape,
                                  size_t batch_max);
