/* nn: graph, operations, models, losses, optimizers, schedules.  Layer 3.  Everything is local. */
#pragma once

#include "geotrain/job.h"
#include "geotrain/tensor.h"

/* ---- models ---------------------------------------------------------------------------------- */

/* Shape of a sample: an image h x w x c in float32 or, if features > 0, h*w*c ids in int32, each
   below `features`.  classes: number of labels. */
typedef struct {
  size_t h, w, c, classes, features;
} gt_sample_shape;

typedef struct gt_graph gt_graph;

/* The options of a model that a job can set. */
typedef struct {
  int64_t parameters; /* total number, for a model of variable size; 0: the model's own */
  /* Length of the vector of an id, for a model with embeddings; 0: the model's own. */
  int64_t embedding;
  /* Width of the hidden state, for a recurrent model; 0: the model's own. */
  int64_t hidden;
  double scale; /* sigma, for a model whose scores are scaled cosines; 0: the model's own */
  /* For a decoder: blocks, width, heads of attention, positions, and whether the head has the
     weights of the embedding; 0: the model's own. */
  int64_t layers, width, heads, context;
  bool untied;
  bool positions; /* of clicks: a model of sessions */
  gt_stem stem;   /* for a model with stems of two sizes */
  double dropout; /* probability, for a model with dropout */
  /* Widths of the hidden layers, for a model with an MLP; NULL: the model's own. */
  const int64_t *mlp;
  size_t nmlp;
} gt_model_options;

/* A model: adds its operations to a graph.  One file per model; the list is GT_MODELS. */
typedef struct {
  const char *name;      /* "lenet5" */
  const char *source;    /* paper */
  gt_sample_shape usual; /* shape of its usual samples */
  bool sized;            /* its number of parameters can be set */
  bool embeds;           /* embedding can be set */
  bool layered;          /* mlp can be set */
  bool recurrent;        /* hidden can be set */
  bool scaled;           /* scale and positions can be set */
  bool decodes;          /* layers, width, heads, context and untied can be set */
  bool stemmed;          /* stem can be set */
  bool drops;            /* dropout can be set */
  bool ids;              /* takes samples of ids; else images */
  bool ranks;            /* recommends: it is judged by the ranks of the labels */
  /* Adds the operations for samples of this shape.  GT_ERR_DATA: the model does not support the
     shape; GT_ERR_JOB: it does not support the options. */
  gt_status (*build)(gt_graph *graph, const gt_sample_shape *shape,
                     const gt_model_options *options);
} gt_model;

const gt_model *gt_model_find(const char *name);
/* Returns GT_ERR_JOB for an unknown model name.  The error text lists the known names. */
gt_status gt_model_unknown(const char *name);

/* ---- graph ----------------------------------------------------------------------------------- */

/* Called between operations, so that communication makes progress. */
typedef void gt_progress_fn(void *context);

/* Operations [first, end) of a model, in its order; see nn_span.h. */
typedef struct {
  size_t first, end;
} gt_span;

/* All pointers are borrowed for the call, except `kernels`, which is a static table. */
typedef struct {
  const char *model;
  gt_model_options options;
  gt_sample_shape shape;
  /* The samples: windows of a text, without labels; or labelled samples.  Neither: unknown, because
     a model is described without data. */
  bool text, labelled;
  size_t batch_max; /* 0: arrays only, without activations (for PS ranks) */
  /* Without memory: arrays have no data and activations are only planned (to describe a model). */
  bool sizes_only;
  /* The usual batch size, used to look up choices and kernel names; 0: batch_max. */
  size_t batch;
  /* kernels of the layers, as measured; borrowed for the call; NULL: chosen by the rule of
     `kernels` */
  const gt_choices *choices;
  const gt_kernels *kernels;
  /* GT_BF16: for operations with bf16 kernels; the others compute in float32 */
  gt_precision precision;
  /* For passes over spans (nn_span.h).
     slots: number of micro-batches that a span can hold at a time; 0: only gt_graph_step is used.
     spans: nspans spans, in the model's order.  The flat arrays have only their tensors, with
     offsets from the start of the first span; nspans 0: the whole model.
     runs: true for spans that compute passes here, for which memory is planned; NULL: all.  A span
     without passes can begin and end anywhere, for example the one operation whose weights a later
     span borrows.
     fused: gt_graph_backward is the only backward pass, so slots need less memory.
     micro_batches: micro-batches of a step; if more than 1, the gradients of embeddings are cleared
     as a whole. */
  size_t slots;
  const gt_span *spans;
  const bool *runs;
  size_t nspans;
  bool fused;
  /* gt_graph_adopt will provide all arrays before the first pass: until then they have no data. */
  bool lent;
  size_t micro_batches;
  /* For a graph with slots: activations use this block, borrowed, 64-byte aligned, at least
     gt_graph_bytes.  Several graphs can share a block: call gt_graph_return before the first pass
     that follows a pass of another graph.  NULL: the graph owns its memory. */
  float *memory;
} gt_graph_spec;

/* Returns a spec with the job's model and options, borrowed from the job.  The caller sets the
   other fields. */
gt_graph_spec gt_graph_spec_of(const gt_job *job);

/* Builds a model for batches of at most batch_max samples, with memory planned once.  Parameters
   are zero until gt_graph_init.  The caller owns *out and closes it.  GT_ERR_JOB: invalid model,
   options or spans; GT_ERR_DATA: the model does not support such samples. */
gt_status gt_graph_create(gt_graph **out, const gt_graph_spec *spec);
/* Returns the number of parameters of such a graph, and its bytes: parameters, gradients, buffers
   and gt_graph_bytes.  Allocates none of them.  Errors as gt_graph_create. */
gt_status gt_graph_size(const gt_graph_spec *spec, size_t *parameters, size_t *bytes);
void gt_graph_close(gt_graph *graph);
/* Prepares the kernels for batches of exactly n samples, so that the first such step does not
   allocate.  A step with another size prepares them implicitly. */
void gt_graph_prepare(gt_graph *graph, size_t n);
/* Sets the key of the random numbers of dropout, for the passes that follow.  Passes of spans
   (nn_span.h) do not support dropout. */
void gt_graph_set_key(gt_graph *graph, uint64_t key);
void gt_graph_on_progress(gt_graph *graph, gt_progress_fn *progress, void *context);
/* Called during a backward pass whenever more gradients are final: those of params [first, end) do
   not change before the next step.  `first` decreases to 0.  Passes over spans do not call it. */
typedef void gt_gradients_fn(void *context, size_t first);
void gt_graph_on_gradients(gt_graph *graph, gt_gradients_fn *gradients, void *context);

/* Adds the graph's convolutions and linear layers to `out` at this batch size, without duplicates;
   of a graph with spans, only those with passes here. */
void gt_graph_layers(const gt_graph *graph, size_t batch, gt_choices *out);
/* Returns the flat arrays; owned by the graph. */
const gt_arrays *gt_graph_arrays(const gt_graph *graph);
/* Makes the graph use the caller's arrays, for instance in shared memory.  They must have the same
   sizes and be 64-byte aligned; NULL keeps the current array.  Only the graph may write lent
   gradients: for the gradient of an embedding, a step writes only the rows of its own and the
   previous batch, and assumes that the others are zero. */
void gt_graph_adopt(gt_graph *graph, float *params, float *grads, float *buffers);
/* Invalidates what earlier passes left in the memory and the gradients.  Call it after another
   graph has used them. */
void gt_graph_return(gt_graph *graph);
/* Sets the initial parameters as in the model's paper, from random numbers keyed by (seed, tensor):
   the same on every rank. */
void gt_graph_init(gt_graph *graph, uint64_t seed);
/* Returns the kernel of each operation: "conv=blas linear=blas pool=ref"; owned by the graph. */
const char *gt_graph_kernels(const gt_graph *graph);
/* Writes the SHA-256 of the name, operations and parameter shapes of the whole model, independent
   of spans. */
void gt_graph_hash(const gt_graph *graph, char hex[GT_SHA256_HEX]);
/* Returns 2 x the multiply-adds of forward and backward, per sample. */
size_t gt_graph_flops(const gt_graph *graph);
/* Returns the smallest batch that a step can train on: 2 if a normalisation has one value per
   channel and sample (one value has no variance), else 1. */
size_t gt_graph_least(const gt_graph *graph);
/* Returns the logits of the last pass (n, gt_graph_outputs), owned by the graph: one per class, or
   one for the second of two classes.  For a model that predicts the next id: (n,
   gt_graph_predictions, gt_graph_outputs), one per id, valid only after a pass without `train`.
   With slots: the logits of the last forward pass over the model's last operation here. */
const float *gt_graph_scores(const gt_graph *graph);
size_t gt_graph_outputs(const gt_graph *graph);
/* Returns the number of attention heads; 0: no attention.  Tensor shapes do not determine it. */
size_t gt_graph_heads(const gt_graph *graph);
/* Returns the planned bytes of activations, scratch and packed weights; of the packed weights, only
   those that a library keeps once its kernels are prepared. */
size_t gt_graph_bytes(const gt_graph *graph);

/* Returns the number of parameter tensors and buffers.  The second function describes tensor i,
   parameters before buffers, as in PyTorch: `as` receives PyTorch's name and shape (offset: 0);
   `out`, unless NULL, receives as->count floats in PyTorch's layout (convolutions (K,C,R,S); linear
   layers behind images with columns in (C,H,W) order). */
size_t gt_graph_tensors(const gt_graph *graph);
void gt_graph_tensor(const gt_graph *graph, size_t i, gt_view *as, float *out);
/* Sets tensor i to values in PyTorch's layout. */
void gt_graph_set_tensor(gt_graph *graph, size_t i, const float *values);

/* Returns the predictions per sample: 1, or T for a model that predicts the next id from samples of
   T + 1 ids, where the label of position t is id t + 1.  Such a model does not read `labels`. */
size_t gt_graph_predictions(const gt_graph *graph);
/* True if the model predicts the next id. */
bool gt_graph_of_text(const gt_graph *graph);

/* loss_sum: the sum over samples of the loss, which is the mean over a sample's predictions;
   correct: the correct ones among all samples x gt_graph_predictions predictions. */
typedef struct {
  double loss_sum;
  size_t correct, samples;
} gt_metrics;

/* Runs one pass over n <= batch_max samples (with `train`, at least gt_graph_least).  x (n,h,w,c)
   holds float, or int32_t for samples of ids; labels (n); both are borrowed.  `train` also runs the
   backward pass: it writes the gradients of the mean loss over the n samples to arrays.grads, and
   updates the running statistics of normalisations in arrays.buffers.  Without `train`,
   normalisations use the running statistics.  `metrics` is written.  Only for a graph without
   slots. */
void gt_graph_step(gt_graph *graph, const void *x, const int32_t *labels, size_t n, bool train,
                   gt_metrics *metrics);

/* Runs the forward pass of a model that predicts the next id (gt_bug for another), without slots,
   over n <= batch_max sequences: ids (n,T+1), in the format of its samples; the last id of each is
   not read.  Returns the logits (n,T,V), V = gt_graph_outputs, of the id after each position; owned
   by the graph, valid until its next pass.  The logits of a position depend on no later id, so a
   shorter sequence can be padded with any ids below V. */
const float *gt_graph_infer(gt_graph *graph, const int32_t *ids, size_t n);

/* ---- ranking --------------------------------------------------------------------------------- */

/* Returns the area under the ROC curve: over all pairs of a sample of label 1 and one of label 0,
   the share in which the first has the higher score; ties count half (Mann and Whitney 1947).
   Exact, in at most 32 n steps; n below 2^32; scratch (n) is overwritten.  NaN if all samples have
   the same label or a score is NaN. */
double gt_auc(const float *scores, const int32_t *labels, size_t n, uint32_t *scratch);
/* Writes the scores (n) for gt_auc of the n samples of the last pass: the logit of the second of
   two classes, minus that of the first if the model has two outputs. */
void gt_graph_auc_scores(const gt_graph *graph, size_t n, float *scores);

/* Returns the rank of a label among n classes: 1 if its score is the highest.  Among equal scores,
   lower classes come first.  n + 1 if a score is NaN. */
size_t gt_rank(const float *scores, size_t n, size_t label);

/* The metrics that an evaluation computes from one number per test sample. */
typedef struct {
  double auc; /* NaN: not two classes */
  /* Recall@20, the share of samples whose label is among the 20 classes with the highest scores;
     MRR@20, the mean of 1 / rank, 0 for the other samples.  NaN: not a recommender. */
  double recall20, mrr20;
} gt_ranks;

/* Ranks a model's test samples. */
typedef struct {
  /* Writes one number per sample of the last pass. */
  void (*take)(const gt_graph *graph, const int32_t *labels, size_t n, float *numbers);
  /* Computes the metrics from the numbers of all n samples; scratch (n) is overwritten. */
  gt_ranks (*judge)(const float *numbers, const int32_t *labels, size_t n, uint32_t *scratch);
} gt_ranking;

/* Returns the AUC for two classes, Recall@20 and MRR@20 for a recommender; NULL: neither. */
const gt_ranking *gt_ranking_of(const char *model, size_t classes);
gt_ranks gt_ranks_none(void);

/* ---- schedules ------------------------------------------------------------------------------- */

/* A segment of a cosine schedule.  It starts at `step`, where `share` (0 to 1) of the cosine from
   lr to lr_min is done, and ends at step `end`.  end 0: unused. */
typedef struct {
  int64_t step, end;
  double share;
} gt_lr_part;

/* lr(step): linear warm-up over `warmup_steps`, then constant; or times `gamma` every `step_every`
   steps; or after
   `constant_steps` of lr a cosine from lr to `lr_min` at total_steps. */
typedef struct {
  gt_lr_kind kind;
  double lr, gamma, lr_min;
  int64_t warmup_steps, step_every, constant_steps, total_steps;
  /* For a cosine changed by gt_lr_spread: the current and the previous segment.  Otherwise the
     cosine ends at total_steps. */
  gt_lr_part now, before;
} gt_lr_schedule;

double gt_lr_at(const gt_lr_schedule *schedule, int64_t step);
/* Returns the share of the cosine from lr to lr_min that is done at this step: 0 to 1; 0 during
   warm-up. */
double gt_lr_share(const gt_lr_schedule *schedule, int64_t step);
/* Continues a cosine with this segment.  The rates of earlier steps and of the warm-up do not
   change.  No effect on other schedules. */
void gt_lr_spread(gt_lr_schedule *schedule, const gt_lr_part *part);

/* ---- optimizers ------------------------------------------------------------------------------ */

typedef struct gt_optim gt_optim;

typedef struct {
  gt_optimizer kind;
  bool nesterov;
  gt_lr_schedule schedule;
  double momentum, weight_decay, beta1, beta2, epsilon;
  double clip;            /* largest norm of a gradient; 0: unlimited */
  const gt_view *tensors; /* for `clip`: the parameter tensors, borrowed; none: the array is one
                             tensor */
  size_t ntensors;
} gt_optim_spec;

/* Returns the number of state arrays of n floats that such an optimizer keeps. */
size_t gt_optim_arrays(const gt_optim_spec *spec);
/* Creates an optimizer for n parameters; n 0: it only counts steps, without state arrays.
   with_memory false (simulation): the state arrays have no data.  SGD as in PyTorch: v = momentum v
   + (g + decay w); w -= lr v. */
gt_status gt_optim_create(gt_optim **out, const gt_optim_spec *spec, size_t n, bool with_memory);
void gt_optim_close(gt_optim *optim);
/* Adds this step's update u to params: params += u; and, unless acc.data is NULL, acc += u.
   Increments the step count.  All three vectors have n elements.  Returns the factor applied to the
   gradient: 1, or, if spec.clip is above 0, min(1, clip / its Euclidean norm) (Pascanu, Mikolov and
   Bengio 2013, Alg. 1).  Squares are summed in float64, per tensor and then in the order of the
   tensors, with the same bits for every instruction set.  The factor is 1 if the norm is not
   finite. */
float gt_optim_step(gt_optim *optim, gt_vec params, gt_vec grads, gt_vec acc);
/* Does gt_optim_step where params and grads are a part of the model's, and `norm` is the norm of
   the whole gradient. */
float gt_optim_step_of(gt_optim *optim, gt_vec params, gt_vec grads, gt_vec acc, double norm);
/* Sets the norm of the whole model's gradient for the next gt_optim_step, whose gradient is a part
   of it. */
void gt_optim_norm(gt_optim *optim, double norm);
/* Returns the number of tensors.  gt_optim_squares writes the sum of squares of each to `squares`;
   the root of their sum, in order, is the norm.  Writes nothing if grads has no data. */
size_t gt_optim_tensors(const gt_optim *optim);
void gt_optim_squares(const gt_optim *optim, gt_vec grads, double *squares);
/* Forgets all earlier gradients; steps and schedule continue. */
void gt_optim_renew(gt_optim *optim);
/* Counts a step of another optimizer, so that the schedule advances. */
void gt_optim_count(gt_optim *optim);
int64_t gt_optim_steps(const gt_optim *optim);
double gt_optim_lr(const gt_optim *optim); /* the learning rate of the next step */
/* Returns its schedule; borrowed.  The caller may change it between steps. */
gt_lr_schedule *gt_optim_schedule(gt_optim *optim);
/* Saves the state under the names "<owner>optim/steps", "<owner>optim/momentum", ..., and
   "<owner>optim/schedule" if gt_lr_spread has changed the schedule.  owner: "" for the optimizer of
   the parameters; another one, such as "sync/", ends with a slash. */
void gt_optim_save(gt_optim *optim, const char *owner, gt_state *state);
gt_status gt_optim_load(gt_optim *optim, const char *owner, const gt_state *state);
