/* Internals of the graph: operations, their table, and the builders for models.  Only for src/nn
   and its tests. */
#pragma once

#include "geotrain/nn_span.h"

#define GT_NO_VIEW  SIZE_MAX
#define GT_NO_SPAN  SIZE_MAX
#define GT_SAMPLES  SIZE_MAX /* as the input of an operation: the samples */
#define GT_PADDING  0        /* the id that pads samples of a model with padding */
#define GT_ROWS_ANY SIZE_MAX /* as gt_rows.n: any row may be non-zero */

/* The data of one batch at one operation; y and dy (n, out), of the operation's type.  An output
   with two readers has two gradients, dy and dy2, one from each reader, which are added. Otherwise
   dy2 is NULL. */
typedef struct {
  const void *x, *second; /* the inputs; NULL: the samples, or no input */
  void *y, *dy, *dy2;
  void *dx, *dsecond; /* destinations of the gradients of the inputs; NULL: not needed */
  uint32_t *index;    /* (n, out), if has_index */
  float *state;       /* size in floats: see gt_op_kind.state */
  /* For slots: a second gradient, added to dy before the operation reads it; and the gradient of
     parameters computed by backward_input, until the pass that accumulates it. */
  void *beside;
  float *kept;
} gt_activation;

/* The non-zero rows of a gradient with a row for each id: those of the first n ids, or any if n is
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
  void *dx, *dsecond;     /* destinations of the gradients of the inputs; NULL: not needed */
  gt_activation *a;       /* this operation's */
  const float *w, *b;
  float *dw, *db;
  /* For an operation with `ids`, which adds to dw: the non-zero rows; NULL: dw already has the
     gradients of all other operations.  first: the first batch of the step, which begins from 0. */
  gt_rows *rows;
  bool first;
  float *running; /* its buffers */
  float *work;    /* shared scratch */
  size_t n;
  bool train;
  uint64_t key; /* of this operation's random numbers */
} gt_pass;

/* The inputs of a backward pass, besides the gradient of the output and a->state. */
enum { GT_READS_INPUT = 1, GT_READS_OUTPUT = 2 };

/* A kind of operation.  backward_weight NULL: no parameters, or backward_input computes both
   gradients.  in_place: y is x (the input is not needed again) and dx is dy.  in_place_back: only
   dx is dy. */
typedef struct {
  const char *name, *kernel; /* kernel: its name in gt_kernels.family; NULL: no kernel */
  bool in_place, in_place_back, has_index;
  bool keeps_signs;    /* if in place, stores which values are above 0 */
  bool adds_gradients; /* reads dy2 */
  bool sums_gradients; /* dy + dy2 instead of dy gives the same bits */
  bool no_gradient;    /* the gradient of its parameters is 0 */
  bool without_effect; /* on what a trained model computes: it is not in the model's hash */
  bool needs_spread;   /* training needs at least two values per channel */
  bool reads_samples;  /* reads the samples themselves, besides its input */
  /* Its output has a row for each distinct id of a sample; the rest of the output is not
     written. */
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

/* For embeddings and the operations that read their vectors: the number of ids, the ids per sample,
   the length of a vector; and the number of positions with vectors.  clicks: of sessions, a row for
   each click; else for each distinct item. */
typedef struct {
  size_t ids, fields, width, context;
  bool clicks;
} gt_table;

struct gt_op {
  const gt_op_kind *kind;
  char name[48];
  /* Operations whose outputs it reads, or GT_SAMPLES.  second: GT_SAMPLES if unused. */
  size_t input, second;
  gt_precision in_type, type; /* of x and of y */
  gt_extent extent;           /* of y */
  gt_conv_shape shape;        /* convolution and pooling */
  gt_table table;
  size_t in, out;              /* floats per sample */
  size_t rows;                 /* rows per sample of a linear layer or a layer normalisation */
  size_t heads;                /* of attention */
  size_t weight, bias, buffer; /* their views (buffer: the first), or GT_NO_VIEW */
  float scale;                 /* a factor of its output */
  double dropped;              /* probability, of a dropout */
  size_t inert;                /* parameters of an inert operation */
  /* It includes a ReLU: its gradient is masked by the signs of its output. */
  bool relu;
  bool padded; /* an embedding: the vector of GT_PADDING is 0 and stays 0 */
  /* The earlier operation whose weights it uses, and which adds its own part to their gradient; or
     GT_NO_VIEW. */
  size_t borrows;
  bool lends; /* a later operation uses its weights, too */
  gt_layer_spec spec;
  gt_layer *layer; /* of an operation with products, else NULL */
  /* Its views, and their floats in the whole model. */
  size_t params_first, params_end, buffers_first, buffers_end;
  size_t params_floats, buffers_floats;
  size_t readers[2], nreaders; /* operations that read its output */
  size_t span;                 /* its span in graph->spans, or GT_NO_SPAN */
  gt_activation *slots;        /* one for each slot */
  gt_rows nonzero;             /* of the gradient of its weights, if the kind has `ids` */
  float *apart; /* for slots: the gradient of a lent weight without the borrower's; or NULL */
};

/* The ends of a span.  `input`, the gradient `dinput` and its second part `dinput2` belong to the
   operation before the span. */
typedef struct {
  void *input, *dinput, *dinput2;
} gt_span_ends;
typedef struct {
  gt_span ops;
  bool runs;           /* it has passes here, and memory */
  size_t floats;       /* of a slot */
  float *memory;       /* (slots, floats) */
  gt_span_ends *slots; /* one for each slot */
} gt_graph_span;

extern const gt_op_kind gt_op_conv2d, gt_op_maxpool, gt_op_linear, gt_op_relu, gt_op_inert,
    gt_op_norm, gt_op_mean, gt_op_embedding, gt_op_fm, gt_op_add, gt_op_lstm, gt_op_tokens,
    gt_op_layernorm, gt_op_gelu, gt_op_attention, gt_op_nodes, gt_op_gated_step, gt_op_readout,
    gt_op_unit, gt_op_cosine, gt_op_dropout, gt_op_clicks;

/* Builders, called in the order of the data.  The output of one is the input of the next (see
   gt_graph_from); the graph tracks the shape.  GT_ERR_DATA: the window does not fit. */
gt_status gt_graph_add_conv2d(gt_graph *graph, const char *name, size_t K, size_t window,
                              size_t stride, size_t pad);
/* Adds a convolution before a normalisation: no bias, initial values normal as in He et al. 2015
   (fan out), and bf16 if the graph computes in it. */
gt_status gt_graph_add_conv2d_plain(gt_graph *graph, const char *name, size_t K, size_t window,
                                    size_t stride, size_t pad);
gt_status gt_graph_add_maxpool(gt_graph *graph, const char *name, size_t window, size_t stride,
                               size_t pad);
/* Adds the mean over (H,W). */
void gt_graph_add_mean(gt_graph *graph, const char *name);
/* Adds a linear layer on one row per sample: flattening (H,W,C) needs no operation. */
void gt_graph_add_linear(gt_graph *graph, const char *name, size_t O);
/* Adds a linear layer with initial values, also of the bias, uniform within 1/sqrt(fan). */
void gt_graph_add_linear_within(gt_graph *graph, const char *name, size_t O, size_t fan);
void gt_graph_add_relu(gt_graph *graph, const char *name);
/* Adds dropout, of float32, with probability p; none if p is 0. */
void gt_graph_add_dropout(gt_graph *graph, const char *name, double p);
/* Adds batch normalisation over (N,H,W), then the sum with the output of operation `add`
   (GT_SAMPLES: no sum), then ReLU if `relu`. */
void gt_graph_add_norm(gt_graph *graph, const char *name, size_t add, bool relu);
/* Adds an operation that copies its input and owns `count` parameters without effect. */
void gt_graph_add_inert(gt_graph *graph, const char *name, size_t count);

/* Adds, for samples of ids, the concatenated vectors of K numbers of a sample's ids; initial values
   normal. */
void gt_graph_add_embedding(gt_graph *graph, const char *name, size_t K, double deviation);
/* Adds the same; the vector of GT_PADDING is 0 and stays 0 (PyTorch's padding_idx). */
void gt_graph_add_embedding_padded(gt_graph *graph, const char *name, size_t K, double deviation);
/* Adds an LSTM with H hidden units over the vectors of an embedding, its input; its output is the
   last hidden state.  Leading ids GT_PADDING of a sample are skipped. */
void gt_graph_add_lstm(gt_graph *graph, const char *name, size_t H);
/* Adds the nodes of the graphs of sessions (session_graph.h): vectors of K numbers with length 1,
   packed. A later operation that uses the table, too, must write its gradient; initial values
   uniform within 1/sqrt(K).  The next two work on such nodes: a gated step; the readout of each
   session, 2K numbers, with the parameters `one`, `two` (weight and bias) and `three` (weight). */
void gt_graph_add_nodes(gt_graph *graph, const char *name, size_t K);
void gt_graph_add_gated_step(gt_graph *graph, const char *name);
void gt_graph_add_clicks(gt_graph *graph, const char *name);
void gt_graph_add_readout(gt_graph *graph, const char *one, const char *two, const char *three);
/* Adds a scaling of each sample to length 1. */
void gt_graph_add_unit(gt_graph *graph, const char *name);
/* Adds sigma times the products with the rows of the table of operation `table`, except the first,
   scaled to length 1. */
void gt_graph_add_cosine(gt_graph *graph, const char *name, size_t table, float sigma);
/* Adds a factorization machine over the vectors of an embedding, its input.  Its first-order
   weights are the tensor `weights`.weight; its bias is named bias. */
void gt_graph_add_fm(gt_graph *graph, const char *name, const char *weights);
/* Adds the sum with the output of operation `other`, which has the same size. */
void gt_graph_add_sum(gt_graph *graph, const char *name, size_t other);

/* Adds, for samples of T + 1 ids, the vectors of K numbers of the first T, plus that of each
   position, at most `context`; initial values of both normal.  Its output and those of the next
   four builders are (T,1,K): T rows. */
void gt_graph_add_tokens(gt_graph *graph, const char *ids, const char *positions, size_t K,
                         size_t context, double deviation);
/* Adds layer normalisation of each row. */
void gt_graph_add_layernorm(gt_graph *graph, const char *name);
void gt_graph_add_gelu(gt_graph *graph, const char *name);
/* Adds causal attention; its input rows hold queries, keys and values. */
void gt_graph_add_attention(gt_graph *graph, const char *name, size_t heads);
/* Adds a linear layer on each row: weights normal, bias 0. */
void gt_graph_add_rows_linear(gt_graph *graph, const char *name, size_t O, double deviation);
/* Adds a linear layer without bias on each row, to a logit for each id.  `tied`: GT_SAMPLES, or the
   operation of gt_graph_add_tokens whose vectors are its weights.  The loss is gt_loss_next. */
void gt_graph_add_next(gt_graph *graph, const char *name, size_t tied, double deviation);

/* Returns the index of the last operation.  The second function sets the input of the next
   operation, for branches. */
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
/* Finds the geometry of a square window over the current extent. */
gt_status gt_graph_window(const gt_graph *graph, const char *name, size_t window, size_t stride,
                          size_t pad, gt_conv_shape *shape);
/* Creates the layer of the last operation, a convolution or a linear one.  Its passes use the
   chosen methods, or the table's rule. */
void gt_graph_open_layer(gt_graph *graph, gt_op *op, bool linear);

/* For embeddings and factorization machines, in op_embedding.c.  Called before a batch's gradients
   are added to p->dw (ids,width), with its ids (n): the first batch of a step zeroes the non-zero
   rows; the ids are added to p->rows. */
void gt_graph_rows_renew(const gt_op *op, const gt_pass *p, const int32_t *ids, size_t n,
                         size_t width);
size_t gt_graph_sample_ids(const gt_op *op, size_t n);

/* The tensors of the parameters or of the buffers. */
typedef struct {
  gt_view *views;
  gt_init *inits;
  gt_layout *layouts;
  gt_extent *images; /* GT_LAYOUT_IMAGE_ROWS: the shape of its columns */
  size_t *numbers;   /* numbers of the tensors in the whole model, the keys of the initial values */
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
  gt_view alias; /* second name of the parameter alias_of; "": none */
  size_t alias_of;
  size_t from; /* input of the next operation */
  uint64_t key;
  gt_extent input;
  size_t classes, features, batch_max, batch;
  const gt_loss *loss;
  size_t outputs, predictions; /* logits of a prediction, predictions of a sample */
  gt_arrays arrays;
  bool lent_params, lent_grads, lent_buffers;
  char hash[GT_SHA256_HEX];
  /* Spans of the model whose tensors are here; slots 0: gt_graph_step, else passes of spans. */
  gt_graph_span *spans;
  size_t nspans, slots, micro_batches;
  bool sizes_only;
  bool fused;                 /* backward passes are never split */
  gt_activation *activations; /* (nops, slots or 1) */
  gt_span_ends *ends;         /* (nspans, slots) */
  const float *scores;        /* of the last pass, for slots */
  float *added;               /* scratch: a gradient before it is added to the others */
  float *shared;              /* (shared_floats): memory that slots use within a pass only */
  size_t shared_floats;
  gt_arena *arena;
  float *memory;                   /* memory lent to the arena; NULL: its own */
  const gt_prepared_ops *prepared; /* NULL: none */
  gt_prepared_context *context;    /* of `prepared`; NULL until a layer is prepared */
  float *work;
  char kernels_text[256];
  gt_progress_fn *progress;
  void *progress_context;
  gt_gradients_fn *gradients;
  void *gradients_context;
};

/* graph_build.c: adds another name of a tensor, under which it is exported once more. */
void gt_graph_alias(gt_graph *graph, const char *name, size_t param);
/* graph_memory.c: plans the memory of activations and scratch, and allocates it unless the graph
   has sizes only. */
void gt_graph_plan(gt_graph *graph);
/* graph_memory.c: finds the readers of each output. */
void gt_graph_link(gt_graph *graph);
/* graph_spans.c: checks the spans of the spec and keeps only their tensors. */
gt_status gt_graph_narrow(gt_graph *graph, const gt_graph_spec *spec);
/* True if passes of the operation run here. */
bool gt_graph_runs(const gt_graph *graph, const gt_op *op);
/* Returns the part of the flat gradients that backward passes of an operation overwrite: not the
   rows of ids, and only the weights if they are borrowed. */
gt_vec gt_graph_written(const gt_graph *graph, const gt_op *op);
