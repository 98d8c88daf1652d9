/* The graph from inside: operations, their table, and what models build with.  Files op_*.c and model_*.c see this; nobody else does. */
#ifndef GEOTRAIN_NN_GRAPH_H
#define GEOTRAIN_NN_GRAPH_H

#include "geotrain/nn.h"

/* Sets of activations, so that micro-batches fit later. */
#define GT_GRAPH_SLOTS 1
#define GT_NO_VIEW     SIZE_MAX
#define GT_SAMPLES     SIZE_MAX /* as an operation's input: the samples themselves */
#define GT_ROWS_ANY    SIZE_MAX /* rows of a gradient: it may be anything */

/* What one batch leaves behind at one operation; y, dy (n, out), of the operation's type.  An output that two operations read has two gradients, one from each
   reader, which add up: dy and dy2, else NULL. */
typedef struct {
  void *y, *dy, *dy2;
  void *dx, *dsecond; /* where the gradients of the inputs are written; NULL: nobody needs them */
  uint32_t *index;    /* (n, out), where the kind has one */
  float *state;       /* as many as the kind asks for */
  size_t rows;        /* of a table's gradient: no row is other than zero but those of so many ids in state; or GT_ROWS_ANY */
} gt_activation;

typedef struct gt_op gt_op;

/* What a pass hands to an operation.  All borrowed. */
typedef struct {
  const gt_kernels *kernels;
  const void *samples;    /* of the batch, as they were given */
  const void *x, *second; /* inputs (n, in); second: of an operation with two */
  void *dx, *dsecond;     /* where the gradients of the inputs are written; NULL: nobody needs it */
  gt_activation *a;       /* this operation's */
  const float *w, *b;
  float *dw, *db;
  float *running; /* its buffers */
  float *work;    /* shared scratch */
  size_t n;
  bool train;
} gt_pass;

/* A kind of operation.  A NULL backward_weight: no parameters, or backward_input yields both at once.  In place, forward: y is x, for the input is not needed again,
   and dx is dy; in_place_back: dx is dy alone. */
typedef struct {
  const char *name, *kernel; /* kernel: what the table calls it; NULL: none of its */
  bool in_place, in_place_back, has_index;
  bool keeps_signs;    /* of what it does in place: what was above 0 is above 0 still, and nothing else */
  bool adds_gradients; /* takes dy2 */
  bool needs_spread;   /* trains on two values of each channel or more */
  void (*forward)(const gt_op *op, const gt_pass *pass);
  void (*backward_input)(const gt_op *op, const gt_pass *pass);
  void (*backward_weight)(const gt_op *op, const gt_pass *pass);
  size_t (*state)(const gt_op *op, size_t n); /* floats of a->state, or NULL: none */
  size_t (*work)(const gt_op *op, size_t n);  /* scratch in floats, or NULL: none */
  size_t (*macs)(const gt_op *op);            /* multiply-adds forward, a sample, or NULL: none */
} gt_op_kind;

/* How a tensor lies in PyTorch: the same, as a convolution's, or as a linear layer's behind an image (H,W,C). */
typedef enum { GT_LAYOUT_SAME, GT_LAYOUT_CONV, GT_LAYOUT_IMAGE_ROWS } gt_layout;

/* Initial values: all `value`; uniform in [-value, value]; normal with standard deviation `value`. */
typedef enum { GT_INIT_CONSTANT, GT_INIT_UNIFORM, GT_INIT_NORMAL } gt_init_kind;
typedef struct {
  gt_init_kind kind;
  double value;
} gt_init;

/* What comes out of an operation. */
typedef struct {
  size_t h, w, c;
} gt_extent;

/* Of an operation on vectors by id: how many ids there are, how many a sample has, numbers of a vector. */
typedef struct {
  size_t ids, fields, width;
} gt_table;

struct gt_op {
  const gt_op_kind *kind;
  char name[48];
  size_t input, second;       /* operations whose outputs it reads, or GT_SAMPLES; second: GT_SAMPLES where there is none */
  gt_precision in_type, type; /* of x and of y */
  gt_extent extent;           /* of y */
  gt_conv_shape shape;        /* convolution and pooling */
  gt_table table;
  size_t in, out;              /* floats a sample; of a linear layer: inputs and outputs */
  size_t weight, bias, buffer; /* their views (buffer: the first), or GT_NO_VIEW */
  size_t inert;                /* parameters of an inert operation */
  bool relu;                   /* a ReLU is part of it: the signs of its output mask its gradient */
  gt_layer_spec spec;
  gt_layer *layer; /* of an operation with products, else NULL */
  gt_activation slots[GT_GRAPH_SLOTS];
};

extern const gt_op_kind gt_op_conv2d, gt_op_maxpool, gt_op_avgpool, gt_op_linear, gt_op_relu, gt_op_inert, gt_op_norm, gt_op_mean, gt_op_embedding,
    gt_op_fm, gt_op_add;

/* Builders, in the order of the data.  The output of one is the input of the next (see gt_graph_from); the shape is followed.  GT_ERR_DATA when the window does
   not fit. */
gt_status gt_graph_add_conv2d(gt_graph *graph, const char *name, size_t K, size_t window, size_t stride, size_t pad);
/* For what a normalisation follows: no bias, initial values normal as He et al. 2015 (fan out), and bf16 where the graph computes in it. */
gt_status gt_graph_add_conv2d_plain(gt_graph *graph, const char *name, size_t K, size_t window, size_t stride, size_t pad);
gt_status gt_graph_add_maxpool(gt_graph *graph, const char *name, size_t window, size_t stride);
gt_status gt_graph_add_avgpool(gt_graph *graph, const char *name, size_t window, size_t stride);
/* The mean over (H,W). */
void gt_graph_add_mean(gt_graph *graph, const char *name);
/* Takes what comes before as one row a sample: flattening (H,W,C) is no operation. */
void gt_graph_add_linear(gt_graph *graph, const char *name, size_t O);
void gt_graph_add_relu(gt_graph *graph, const char *name);
/* Batch normalisation over (N,H,W); then plus the output of operation `add` (GT_SAMPLES: nothing), then ReLU if `relu`. */
void gt_graph_add_norm(gt_graph *graph, const char *name, size_t add, bool relu);
/* Passes on what comes, and owns `count` parameters that do nothing. */
void gt_graph_add_inert(gt_graph *graph, const char *name, size_t count);

/* For samples that are ids: a vector of K numbers of each, side by side; initial values normal. */
void gt_graph_add_embedding(gt_graph *graph, const char *name, size_t K, double deviation);
/* A factorization machine over the vectors of an embedding, which is what comes before; its first order is the tensor `weights`.weight, and the bias is called bias. */
void gt_graph_add_fm(gt_graph *graph, const char *name, const char *weights);
/* Plus the output of operation `other`, which is of the same size. */
void gt_graph_add_sum(gt_graph *graph, const char *name, size_t other);

/* The last operation; and from which one the next reads, for branches. */
size_t gt_graph_last(const gt_graph *graph);
void gt_graph_from(gt_graph *graph, size_t op);

/* For the builders, in graph_build.c: a zeroed operation at the end, a parameter (named op.what; or what, where op is ""), a buffer. */
gt_op *gt_graph_append(gt_graph *graph, const gt_op_kind *kind, const char *name);
size_t gt_graph_add_param(gt_graph *graph, const char *op, const char *what, gt_init init, gt_layout layout, int ndims, const size_t *shape);
size_t gt_graph_add_buffer(gt_graph *graph, const char *op, const char *what, double value, size_t count);
gt_extent gt_graph_extent(const gt_graph *graph);
void gt_graph_set_extent(gt_graph *graph, gt_extent extent);
/* The geometry of a square window over the current extent. */
gt_status gt_graph_window(const gt_graph *graph, const char *name, size_t window, size_t stride, size_t pad, gt_conv_shape *shape);
/* The layer behind the operation at the end, a convolution or a linear one: its passes go the ways that were chosen, or as the table's rule says. */
void gt_graph_open_layer(gt_graph *graph, gt_op *op, bool linear);

/* For operations on vectors by id, in op_embedding.c.  Before a batch's gradients are added to p->dw (ids,width): sets to zero what is not, and remembers the batch's ids
   in a->state, which has room for gt_graph_rows_state. */
void gt_graph_rows_renew(const gt_op *op, const gt_pass *p, size_t width);
size_t gt_graph_rows_state(const gt_op *op, size_t n);

/* A tensor of parameters or buffers beside its view. */
typedef struct {
  gt_view *views;
  gt_init *inits;
  gt_layout *layouts;
  gt_extent *images; /* of GT_LAYOUT_IMAGE_ROWS: what its columns are */
  size_t n, capacity, floats;
} gt_tensors;

struct gt_graph {
  char model[32];
  const gt_kernels *kernels;
  const gt_choices *choices; /* while it is built; NULL: by rule */
  gt_precision precision;
  gt_op *ops;
  size_t nops, ops_capacity;
  gt_tensors params, buffers;
  size_t from; /* what the next operation reads */
  gt_extent input;
  size_t classes, features, batch_max, batch;
  bool logistic; /* one logit for the second of two classes; else one a class */
  gt_arrays arrays;
  bool lent_params, lent_grads, lent_buffers;
  gt_arena *arena;
  const gt_prepared_ops *prepared; /* NULL: none */
  gt_prepared_context *context;    /* theirs, once there is something to prepare */
  float *work;
  char kernels_text[256];
  gt_progress_fn *progress;
  void *progress_context;
  gt_gradients_fn *gradients;
  void *gradients_context;
};

/* graph_memory.c: places for activations and scratch. */
void gt_graph_plan(gt_graph *graph);
/* graph_describe.c: fills kernels_text. */
void gt_graph_describe(gt_graph *graph);

#endif
