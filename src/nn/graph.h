/* Internals of the graph: operations, their table, and the builders for models.  Not for files
   outside src/nn, except tests. */
#ifndef GEOTRAIN_NN_GRAPH_H
#define GEOTRAIN_NN_GRAPH_H

#include "geotrain/nn_span.h"

#define GT_NO_VIEW  SIZE_MAX
#define GT_NO_SPAN  SIZE_MAX
#define GT_SAMPLES  SIZE_MAX /* as the input of an operation: the samples */
#define GT_PADDING  0        /* the id that pads samples of a model with padding */
#define GT_ROWS_ANY SIZE_MAX /* as gt_rows.n: any row may be non-zero */

/* The data of one batch at one operation; y and dy (n, out), of the operation's type.  An output
   that two operations read has two gradients, dy and dy2, one from each reader, which are added.
   Otherwise dy2 is NULL. */
typedef struct {
  const void *x, *second; /* the inputs; NULL: the samples, or there is none */
  void *y, *dy, *dy2;
  void *dx, *dsecond; /* where the gradients of the inputs are written; NULL: not needed */
  uint32_t *index;    /* (n, out), if has_index */
  float *state;       /* size in floats: see gt_op_kind.state */
  /* For slots: a second gradient, which is added to dy before the operation reads it; and the
     gradient of parameters that backward_input gives, until the pass that adds it up. */
  void *beside;
  float *kept;
} gt_activation;

/* Of a gradient with a row for each id, all rows are zero except those of the first n ids.  Or n is
   GT_ROWS_ANY. */
typedef struct {
  int32_t *ids;
  size_t n, capacity;
} gt_rows;

typedef struct gt_op gt_op;

/* The arguments of an operation in a pass.  All borrowed. */
typedef struct {
  const gt_kernels *kernels;
  const void *samples;    /* of the batch, as given */
  const void *x, *second; /* inputs (n, in); second: of an operation with two */
  void *dx, *dsecond;     /* where the gradients of the inputs are written; NULL: not needed */
  gt_activation *a;       /* this operation's */
  const float *w, *b;
  float *dw, *db;
  /* Of an operation with `ids`, which adds to dw: the rows that are not zero; NULL: dw is complete
     but for this operation's part.  first: the first batch of the step, which begins from 0. */
  gt_rows *rows;
  bool first;
  float *running; /* its buffers */
  float *work;    /* shared scratch */
  size_t n;
  bool train;
} gt_pass;

/* What a backward pass reads beside the gradient of the output and a->state. */
enum { GT_READS_INPUT = 1, GT_READS_OUTPUT = 2 };

/* A kind of operation.  backward_weight NULL: there are no parameters, or backward_input computes
   both gradients.  in_place: y is x (the input is not needed again) and dx is dy.  in_place_back:
   only dx is dy. */
typedef struct {
  const char *name, *kernel; /* kernel: its name in gt_kernels.family; NULL: it uses no kernel */
  bool in_place, in_place_back, has_index;
  bool keeps_signs;    /* in place, it keeps which values are above 0 */
  bool adds_gradients; /* takes dy2 */
  bool sums_gradients; /* and dy + dy2 in place of dy gives the same bits */
  bool no_gradient;    /* that of its parameters is 0 */
  bool needs_spread;   /* training needs two values per channel or more */
  bool reads_samples;  /* the samples themselves, beside its input */
  /* Its output has a row for each different id of a sample: what follows is not written. */
  bool packs;
  unsigned input_reads, weight_reads; /* of the backward passes: GT_READS_ */
  void (*forward)(const gt_op *op, const gt_pass *pass);
  void (*backward_input)(const gt_op *op, const gt_pass *pass);
  void (*backward_weight)(const gt_op *op, const gt_pass *pass);
  size_t (*state)(const gt_op *op, size_t n); /* floats of a->state, or NULL: none */
  /* The ids of a batch for gt_rows: backward_weight adds to dw.  NULL: it overwrites dw. */
  size_t (*ids)(const gt_op *op, size_t n);
  size_t (*work)(const gt_op *op, size_t n); /* scratch in floats, or NULL: none */
  size_t (*macs)(const gt_op *op);           /* multiply-adds forward per sample, or NULL: none */
} gt_op_kind;

/* A loss over the outputs of the last operation.  in_place: the gradient overwrites the outputs. */
typedef struct {
  bool in_place;
  /* dx: the gradient of the mean loss, or NULL.  Fills metrics->loss_sum and ->correct. */
  void (*run)(const gt_graph *graph, float *dx, const float *x, const void *samples,
              const int32_t *labels, size_t n, gt_metrics *metrics);
} gt_loss;

/* In loss.c.  One logit per class; one logit, for the second of two classes; at each position but
   the last, one logit per id for the next id. */
extern const gt_loss gt_loss_softmax, gt_loss_logistic, gt_loss_next;

/* The layout of a tensor in PyTorch, compared with ours: the same; that of a convolution; that of a
   linear layer behind an image (H,W,C). */
typedef enum { GT_LAYOUT_SAME, GT_LAYOUT_CONV, GT_LAYOUT_IMAGE_ROWS } gt_layout;

/* Initial values: all `value`; uniform in [-value, value]; normal with standard deviation
   `value`. */
typedef enum { GT_INIT_CONSTANT, GT_INIT_UNIFORM, GT_INIT_NORMAL } gt_init_kind;
typedef struct {
  gt_init_kind kind;
  double value;
} gt_init;

/* The shape of an operation's output, per sample. */
typedef struct {
  size_t h, w, c;
} gt_extent;

/* For embeddings and what reads their vectors: the number of ids, the ids per sample, the length of
   a vector; and the number of positions that have vectors. */
typedef struct {
  size_t ids, fields, width, context;
} gt_table;

struct gt_op {
  const gt_op_kind *kind;
  char name[48];
  /* Operations whose outputs it reads, or GT_SAMPLES.  second: GT_SAMPLES if there is none. */
  size_t input, second;
  gt_precision in_type, type; /* of x and of y */
  gt_extent extent;           /* of y */
  gt_conv_shape shape;        /* convolution and pooling */
  gt_table table;
  size_t in, out;              /* floats per sample */
  size_t rows;                 /* rows per sample of a linear layer and of a layer normalisation */
  size_t heads;                /* of attention */
  size_t weight, bias, buffer; /* their views (buffer: the first), or GT_NO_VIEW */
  float scale;                 /* a factor of its output */
  size_t inert;                /* parameters of an inert operation */
  /* It includes a ReLU: its gradient is masked by the signs of its output. */
  bool relu;
  bool padded; /* an embedding: the vector of GT_PADDING is 0 and stays 0 */
  /* Its weights are those of this earlier operation, which adds its own part to their gradient; or
     GT_NO_VIEW. */
  size_t borrows;
  bool lends; /* its weights are also a later operation's */
  gt_layer_spec spec;
  gt_layer *layer; /* of an operation with products, else NULL */
  /* The views that it owns, and their floats in the whole model. */
  size_t params_first, params_end, buffers_first, buffers_end;
  size_t params_floats, buffers_floats;
  size_t readers[2], nreaders; /* operations that read its output */
  size_t span;                 /* its span in graph->spans, or GT_NO_SPAN */
  gt_activation *slots;        /* one for each slot */
  gt_rows nonzero;             /* of the gradient of its weights, if the kind has `ids` */
  float *apart; /* for slots: the gradient of a lent weight without the borrower's; or NULL */
};

/* A span of a graph.  `input`, the gradient `dinput` and its second part `dinput2` are those of the
   operation before the span. */
typedef struct {
  void *input, *dinput, *dinput2;
} gt_span_ends;
typedef struct {
  gt_span ops;
  bool runs;           /* here: it has memory */
  size_t floats;       /* of a slot */
  float *memory;       /* (slots, floats) */
  gt_span_ends *slots; /* one for each slot */
} gt_graph_span;

extern const gt_op_kind gt_op_conv2d, gt_op_maxpool, gt_op_linear, gt_op_relu, gt_op_inert,
    gt_op_norm, gt_op_mean, gt_op_embedding, gt_op_fm, gt_op_add, gt_op_lstm, gt_op_tokens,
    gt_op_layernorm, gt_op_gelu, gt_op_attention, gt_op_nodes, gt_op_gated_step, gt_op_readout,
    gt_op_unit, gt_op_cosine;

/* Builders, called in the order of the data.  The output of one is the input of the next (see
   gt_graph_from); the graph tracks the shape.  GT_ERR_DATA: the window does not fit. */
gt_status gt_graph_add_conv2d(gt_graph *graph, const char *name, size_t K, size_t window,
                              size_t stride, size_t pad);
/* A convolution before a normalisation: no bias, initial values normal as in He et al. 2015 (fan
   out), and bf16 if the graph computes in it. */
gt_status gt_graph_add_conv2d_plain(gt_graph *graph, const char *name, size_t K, size_t window,
                                    size_t stride, size_t pad);
gt_status gt_graph_add_maxpool(gt_graph *graph, const char *name, size_t window, size_t stride);
/* The mean over (H,W). */
void gt_graph_add_mean(gt_graph *graph, const char *name);
/* Takes its input as one row per sample: flattening (H,W,C) needs no operation. */
void gt_graph_add_linear(gt_graph *graph, const char *name, size_t O);
/* The same with initial values, also of the bias, uniform within 1/sqrt(fan). */
void gt_graph_add_linear_within(gt_graph *graph, const char *name, size_t O, size_t fan);
void gt_graph_add_relu(gt_graph *graph, const char *name);
/* Batch normalisation over (N,H,W), then the sum with the output of operation `add` (GT_SAMPLES: no
   sum), then ReLU if `relu`. */
void gt_graph_add_norm(gt_graph *graph, const char *name, size_t add, bool relu);
/* Passes its input on, and owns `count` parameters without effect. */
void gt_graph_add_inert(gt_graph *graph, const char *name, size_t count);

/* For samples of ids: the vectors of K numbers of a sample's ids, concatenated; initial values
   normal. */
void gt_graph_add_embedding(gt_graph *graph, const char *name, size_t K, double deviation);
/* The same; the vector of GT_PADDING is 0 and stays 0 (PyTorch's padding_idx). */
void gt_graph_add_embedding_padded(gt_graph *graph, const char *name, size_t K, double deviation);
/* An LSTM with H hidden units over the vectors of an embedding, which is its input; its output is
   the last hidden state.  Ids GT_PADDING in front of a sample are left out. */
void gt_graph_add_lstm(gt_graph *graph, const char *name, size_t H);
/* The nodes of the graphs of sessions (session_graph.h): vectors of K numbers with length 1,
   packed. The table's gradient must be written by a later operation that uses it too; initial
   values uniform within 1/sqrt(K).  Then, on such nodes: a gated step; the readout of each session,
   2K numbers, with the parameters `one`, `two` (weight and bias) and `three` (weight). */
void gt_graph_add_nodes(gt_graph *graph, const char *name, size_t K);
void gt_graph_add_gated_step(gt_graph *graph, const char *name);
void gt_graph_add_readout(gt_graph *graph, const char *one, const char *two, const char *three);
/* Scales a sample to length 1. */
void gt_graph_add_unit(gt_graph *graph, const char *name);
/* sigma times the products with the rows of the table of operation `table`, but the first, scaled
   to length 1. */
void gt_graph_add_cosine(gt_graph *graph, const char *name, size_t table, float sigma);
/* A factorization machine over the vectors of an embedding, which is its input.  Its first-order
   weights are the tensor `weights`.weight; its bias is named bias. */
void gt_graph_add_fm(gt_graph *graph, const char *name, const char *weights);
/* Adds the output of operation `other`, which has the same size. */
void gt_graph_add_sum(gt_graph *graph, const char *name, size_t other);

/* For samples of T + 1 ids: the vectors of K numbers of the first T, plus that of each position, of
   `context` or fewer; initial values of both normal.  Its output and those of the next four are
   (T,1,K): T rows. */
void gt_graph_add_tokens(gt_graph *graph, const char *ids, const char *positions, size_t K,
                         size_t context, double deviation);
/* Layer normalisation of each row. */
void gt_graph_add_layernorm(gt_graph *graph, const char *name);
void gt_graph_add_gelu(gt_graph *graph, const char *name);
/* Causal attention; its input rows hold queries, keys and values. */
void gt_graph_add_attention(gt_graph *graph, const char *name, size_t heads);
/* A linear layer on each row: weights normal, bias 0. */
void gt_graph_add_rows_linear(gt_graph *graph, const char *name, size_t O, double deviation);
/* A linear layer without bias on each row, to a logit for each id.  `tied`: GT_SAMPLES, or the
   operation of gt_graph_add_tokens whose vectors are its weights.  The loss is gt_loss_next. */
void gt_graph_add_next(gt_graph *graph, const char *name, size_t tied, double deviation);

/* The index of the last operation; and sets the operation that the next one reads, for branches. */
size_t gt_graph_last(const gt_graph *graph);
void gt_graph_from(gt_graph *graph, size_t op);

/* For the builders, in graph_build.c: append a zeroed operation, a parameter (named op.what; or
   what, if op is "") and a buffer. */
gt_op *gt_graph_append(gt_graph *graph, const gt_op_kind *kind, const char *name);
size_t gt_graph_add_param(gt_graph *graph, const char *op, const char *what, gt_init init,
                          gt_layout layout, int ndims, const size_t *shape);
size_t gt_graph_add_buffer(gt_graph *graph, const char *op, const char *what, double value,
                           size_t count);
gt_extent gt_graph_extent(const gt_graph *graph);
void gt_graph_set_extent(gt_graph *graph, gt_extent extent);
/* The geometry of a square window over the current extent. */
gt_status gt_graph_window(const gt_graph *graph, const char *name, size_t window, size_t stride,
                          size_t pad, gt_conv_shape *shape);
/* Creates the layer of the last operation, a convolution or a linear one.  Its passes use the
   chosen ways, or the table's rule. */
void gt_graph_open_layer(gt_graph *graph, gt_op *op, bool linear);

/* For embeddings and factorization machines, in op_embedding.c.  Called before a batch's gradients
   are added to p->dw (ids,width), with its ids (n): the first batch of a step sets the rows that
   are not zero to zero; the ids are added to p->rows. */
void gt_graph_rows_renew(const gt_op *op, const gt_pass *p, const int32_t *ids, size_t n,
                         size_t width);
size_t gt_graph_sample_ids(const gt_op *op, size_t n);

/* The tensors of the parameters or of the buffers. */
typedef struct {
  gt_view *views;
  gt_init *inits;
  gt_layout *layouts;
  gt_extent *images; /* GT_LAYOUT_IMAGE_ROWS: the shape of its columns */
  size_t *numbers;   /* in the whole model, which key the initial values */
  size_t n, capacity, floats;
} gt_tensors;

struct gt_graph {
  char model[32];
  const gt_kernels *kernels;
  const gt_choices *choices; /* only during gt_graph_create; NULL: by rule */
  gt_precision precision;
  gt_op *ops;
  size_t nops, ops_capacity;
  gt_tensors params, buffers;
  gt_view alias; /* of a parameter with a second name, which `alias_of` tells; unless it is "" */
  size_t alias_of;
  size_t from; /* what the next operation reads */
  gt_extent input;
  size_t classes, features, batch_max, batch;
  const gt_loss *loss;
  size_t outputs, predictions; /* logits of a prediction, predictions of a sample */
  gt_arrays arrays;
  bool lent_params, lent_grads, lent_buffers;
  char hash[GT_SHA256_HEX];
  /* Spans of the model whose tensors are here; slots 0: gt_graph_step, else passes of spans. */
  gt_graph_span *spans;
  size_t nspans, slots, micros;
  bool sizes_only;
  bool fused;                 /* backward passes are never split */
  gt_activation *activations; /* (nops, slots or 1) */
  gt_span_ends *ends;         /* (nspans, slots) */
  const float *scores;        /* of the last pass, for slots */
  float *added;               /* scratch: a gradient that is added to the others */
  float *shared;              /* (shared_floats): memory of slots in use within a pass only */
  size_t shared_floats;
  gt_arena *arena;
  float *memory;                   /* of the arena, lent; NULL: its own */
  const gt_prepared_ops *prepared; /* NULL: none */
  gt_prepared_context *context;    /* of `prepared`; NULL until a layer is prepared */
  float *work;
  char kernels_text[256];
  gt_progress_fn *progress;
  void *progress_context;
  gt_gradients_fn *gradients;
  void *gradients_context;
};

/* graph_build.c: another name of a tensor, under which it is exported once more. */
void gt_graph_alias(gt_graph *graph, const char *name, size_t param);
/* graph_memory.c: plans the memory of activations and scratch, and allocates it unless the graph
   has sizes only. */
void gt_graph_plan(gt_graph *graph);
/* graph_memory.c: finds the readers of each output. */
void gt_graph_link(gt_graph *graph);
/* graph_spans.c: checks the spans of the spec and keeps only their tensors. */
gt_status gt_graph_narrow(gt_graph *graph, const gt_graph_spec *spec);
/* Whether passes of the operation run here. */
bool gt_graph_runs(const gt_graph *graph, const gt_op *op);
/* The part of the flat gradients that backward passes of an operation overwrite: not the rows of
   ids, and only the weights if they are borrowed. */
gt_vec gt_graph_written(const gt_graph *graph, const gt_op *op);
#endif
