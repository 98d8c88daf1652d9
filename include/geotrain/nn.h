/* nn: graph, operations, models, losses, optimizers, schedules.  Layer 3.  Everything is local. */
#ifndef GEOTRAIN_NN_H
#define GEOTRAIN_NN_H

#include "geotrain/job.h"
#include "geotrain/tensor.h"

/* ---- models ----------------------------------------------------------------------------------------------------- */

/* What a sample looks like: images h x w x c in float32, or (features > 0) h*w*c ids in int32, each below `features`; and how many classes labels count. */
typedef struct {
  size_t h, w, c, classes, features;
} gt_sample_shape;

typedef struct gt_graph gt_graph;

/* What a job may say of a model. */
typedef struct {
  int64_t parameters; /* how many in all, of a model that takes any number; 0: its own */
  int64_t embedding;  /* numbers of an id's vector, of a model that has them; 0: its own */
  const int64_t *mlp; /* widths of the hidden layers, of a model that takes them; NULL: its own */
  size_t nmlp;
} gt_model_options;

/* A model: how its operations are added to a graph.  One file a model; the list is GT_MODELS. */
typedef struct {
  const char *name;      /* "lenet5" */
  const char *source;    /* paper */
  gt_sample_shape usual; /* samples that it is usually shown */
  bool sized;            /* takes a number of parameters */
  bool layered;          /* takes embedding and mlp */
  bool ids;              /* takes samples of ids; else images */
  /* Adds the operations for samples of this shape; GT_ERR_DATA when the model cannot take it, GT_ERR_JOB when it cannot have these options. */
  gt_status (*build)(gt_graph *graph, const gt_sample_shape *shape, const gt_model_options *options);
} gt_model;

const gt_model *gt_model_find(const char *name);
/* GT_ERR_JOB: no model has this name; the text says which there are. */
gt_status gt_model_unknown(const char *name);

/* ---- graph ------------------------------------------------------------------------------------------------------ */

/* Called between operations so that messages move on. */
typedef void gt_progress_fn(void *context);

/* Everything is borrowed for the call but `kernels`, a table. */
typedef struct {
  const char *model;
  gt_model_options options;
  gt_sample_shape shape;
  size_t batch_max; /* 0: arrays only, no activations: what a PS rank needs */
  /* The usual number of samples, which choices and the names of kernels are for; 0: batch_max. */
  size_t batch;
  const gt_choices *choices; /* how products are computed; borrowed for the call; NULL: by the rule of `kernels` */
  const gt_kernels *kernels;
  gt_precision precision; /* GT_BF16: for operations that have kernels for it; the others compute in float32 */
} gt_graph_spec;

/* The job's model and its options; borrows from the job.  The rest is the caller's to say. */
gt_graph_spec gt_graph_spec_of(const gt_job *job);

/* Builds a model for batches of at most batch_max samples, with memory planned once.  Parameters are zero until gt_graph_init.  The caller owns
   *out and closes it.  GT_ERR_JOB: the model or its options; GT_ERR_DATA: it cannot take such samples. */
gt_status gt_graph_create(gt_graph **out, const gt_graph_spec *spec);
void gt_graph_close(gt_graph *graph);
/* Makes ready what kernels need for batches of exactly n samples, so that the first such step allocates nothing; steps of other sizes make it ready themselves. */
void gt_graph_prepare(gt_graph *graph, size_t n);
void gt_graph_on_progress(gt_graph *graph, gt_progress_fn *progress, void *context);
/* Called during a backward pass whenever more gradients are final: those of params [first, end) are, and will not change before the next step.  `first` falls to 0. */
typedef void gt_gradients_fn(void *context, size_t first);
void gt_graph_on_gradients(gt_graph *graph, gt_gradients_fn *gradients, void *context);

/* Adds the graph's layers with products, each once, at a batch of so many samples. */
void gt_graph_layers(const gt_graph *graph, size_t batch, gt_choices *out);
/* The flat arrays; owned by the graph. */
const gt_arrays *gt_graph_arrays(const gt_graph *graph);
/* From now on the graph works on arrays that the caller lends (NULL: this one stays) (of the same sizes, 64-byte aligned), for instance in shared memory.  Nobody else writes the gradients
   as long as they are lent: of a table of vectors a step writes only the rows of its own and of the last batch, for the others are zero already. */
void gt_graph_adopt(gt_graph *graph, float *params, float *grads, float *buffers);
/* Fills the parameters as the model's source says, from numbers keyed by (seed, tensor): the same on every rank. */
void gt_graph_init(gt_graph *graph, uint64_t seed);
/* Which kernels serve which operation: "conv=blas linear=blas pool=ref"; owned by the graph. */
const char *gt_graph_kernels(const gt_graph *graph);
/* SHA-256 of the model's name, operations and parameter shapes. */
void gt_graph_hash(const gt_graph *graph, char hex[GT_SHA256_HEX]);
size_t gt_graph_flops(const gt_graph *graph); /* multiply-adds x 2 of forward and backward, a sample */
/* The fewest samples that a step can train on: 2 where a normalisation has a single value of each
   channel and sample, for the variance of one value is none; else 1. */
size_t gt_graph_least(const gt_graph *graph);
/* The logits of the last pass (n, gt_graph_outputs), owned by the graph: one a class, or a single one for the second of two classes. */
const float *gt_graph_scores(const gt_graph *graph);
size_t gt_graph_outputs(const gt_graph *graph);
/* Bytes of activations, scratch and packed weights. */
size_t gt_graph_bytes(const gt_graph *graph);

/* Parameters, then buffers, as PyTorch knows them: i below gt_graph_tensors.  `as` receives its name and shape there (offset: 0); `out`, unless NULL, as->count
   floats in PyTorch's layout (convolutions (K,C,R,S), linear layers behind images with columns in (C,H,W) order). */
size_t gt_graph_tensors(const gt_graph *graph);
void gt_graph_tensor(const gt_graph *graph, size_t i, gt_view *as, float *out);

typedef struct {
  double loss_sum; /* sum over samples of the loss */
  size_t correct, samples;
} gt_metrics;

/* One pass over n <= batch_max samples (train: gt_graph_least or more): x (n,h,w,c) of float, or of int32_t where the samples are ids; labels (n); both borrowed.  `train` also runs backward:
   the gradients of the mean loss over the n samples are written to arrays.grads, and the statistics of normalisations go on in arrays.buffers; else these are
   used as they are.  `metrics` is written. */
void gt_graph_step(gt_graph *graph, const void *x, const int32_t *labels, size_t n, bool train, gt_metrics *metrics);

/* ---- ranking ---------------------------------------------------------------------------------------------------- */

/* The area under the ROC curve: how often one of label 1 has the higher score than one of label 0, of all pairs, ties counted half (Mann and Whitney 1947).  Exact, in
   at most 32 n steps; n below 2^32; scratch (n) is written.  NaN when all have the same label or a score is NaN. */
double gt_auc(const float *scores, const int32_t *labels, size_t n, uint32_t *scratch);
/* What gt_auc ranks the n samples of a model's last pass by, into scores (n): the logit of the second of two classes, over that of the first where there is one. */
void gt_graph_auc_scores(const gt_graph *graph, size_t n, float *scores);

/* ---- schedules -------------------------------------------------------------------------------------------------- */

/* A part of a cosine's way from lr to lr_min: from `step` on, where `share` of it (0 to 1) is behind, to its end at step `end`.  end 0: there is no such part. */
typedef struct {
  int64_t step, end;
  double share;
} gt_lr_part;

/* lr(step): linear warm-up over `warmup_steps`, then constant; or times `gamma` every `step_every` steps; or a cosine from lr to `lr_min` at total_steps. */
typedef struct {
  gt_lr_kind kind;
  double lr, gamma, lr_min;
  int64_t warmup_steps, step_every, total_steps;
  gt_lr_part now, before; /* of a cosine that was spread anew: its part since then, and the one before that; else total_steps is the end */
} gt_lr_schedule;

double gt_lr_at(const gt_lr_schedule *schedule, int64_t step);
/* The share of a cosine's way from lr to lr_min that is behind it at this step: 0 to 1, 0 while it warms up. */
double gt_lr_share(const gt_lr_schedule *schedule, int64_t step);
/* A cosine goes on with this part, the warm-up keeps its own steps.  Steps before the part go by what was.  Other kinds stay as they are. */
void gt_lr_spread(gt_lr_schedule *schedule, const gt_lr_part *part);

/* ---- optimizers ------------------------------------------------------------------------------------------------- */

typedef struct gt_optim gt_optim;

typedef struct {
  gt_optimizer kind;
  gt_lr_schedule schedule;
  double momentum, weight_decay, beta1, beta2, epsilon;
  bool nesterov;
} gt_optim_spec;

/* Arrays of n floats that an optimizer of this kind keeps beside the parameters. */
size_t gt_optim_arrays(const gt_optim_spec *spec);
/* An optimizer for n parameters.  with_memory false: for simulation, no state arrays.  SGD as in PyTorch: v = momentum v + (g + decay w); w -= lr v. */
gt_status gt_optim_create(gt_optim **out, const gt_optim_spec *spec, size_t n, bool with_memory);
void gt_optim_close(gt_optim *optim);
/* Adds this step's update u to params: params += u; and, unless acc.data is NULL, acc += u.  The step count goes up by one.
   All three vectors have n elements. */
void gt_optim_step(gt_optim *optim, gt_vec params, gt_vec grads, gt_vec acc);
int64_t gt_optim_steps(const gt_optim *optim);
double gt_optim_lr(const gt_optim *optim); /* the rate of the next step */
/* Its schedule; borrowed, and it may be changed between steps. */
gt_lr_schedule *gt_optim_schedule(gt_optim *optim);
/* Names: "optim/steps", "optim/momentum", ..., and "optim/schedule" where the schedule was spread anew. */
void gt_optim_save(gt_optim *optim, gt_state *state);
gt_status gt_optim_load(gt_optim *optim, const gt_state *state);

#endif
