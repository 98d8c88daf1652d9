/* The graph from inside: operations, their table, and what models build with.  Files op_*.c and model_*.c see this; nobody else does. */
#ifndef GEOTRAIN_NN_GRAPH_H
#define GEOTRAIN_NN_GRAPH_H

#include "geotrain/nn.h"

/* Sets of activations, so that micro-batches fit later. */
#define GT_GRAPH_SLOTS 1
#define GT_NO_VIEW     SIZE_MAX

/* What one batch leaves behind at one operation.  Shapes: y, dy (n, out); index (n, out) for max pooling. */
typedef struct {
  float *y, *dy;
  uint32_t *index;
} gt_activation;

typedef struct gt_op gt_op;

/* What a pass hands to an operation.  All borrowed; dx is NULL at the first operation. */
typedef struct {
  const gt_kernels *kernels;
  const float *x;   /* input (n, in) */
  float *dx;        /* gradient of the input */
  gt_activation *a; /* this operation's */
  const float *w, *b;
  float *dw, *db;
  float *work; /* shared scratch */
  size_t n;
} gt_pass;

/* A kind of operation.  A NULL backward_weight: no parameters.  in_place: y is x and dy is dx, for the input is not needed again. */
typedef struct {
  const char *name;
  bool in_place, has_index;
  void (*forward)(const gt_op *op, const gt_pass *pass);
  void (*backward_input)(const gt_op *op, const gt_pass *pass);
  void (*backward_weight)(const gt_op *op, const gt_pass *pass);
  size_t (*work)(const gt_op *op, const gt_kernels *kernels, size_t n); /* scratch in floats, or NULL: none */
  size_t (*macs)(const gt_op *op);                                      /* multiply-adds forward, a sample, or NULL: none */
} gt_op_kind;

struct gt_op {
  const gt_op_kind *kind;
  char name[48];
  gt_conv_shape shape; /* convolution and pooling */
  size_t in, out;      /* floats a sample; of a linear layer: inputs and outputs */
  size_t weight, bias; /* their views, or GT_NO_VIEW */
  size_t inert;        /* parameters of an inert operation */
  gt_activation slots[GT_GRAPH_SLOTS];
};

extern const gt_op_kind gt_op_conv2d, gt_op_maxpool, gt_op_avgpool, gt_op_linear, gt_op_relu, gt_op_inert;

/* Builders, in the order of the data.  The output of one is the input of the next; the shape is followed.  GT_ERR_DATA when the window does not fit. */
gt_status gt_graph_add_conv2d(gt_graph *graph, const char *name, size_t K, size_t window, size_t stride, size_t pad);
gt_status gt_graph_add_maxpool(gt_graph *graph, const char *name, size_t window, size_t stride);
gt_status gt_graph_add_avgpool(gt_graph *graph, const char *name, size_t window, size_t stride);
/* Takes what comes before as one row a sample: flattening (H,W,C) is no operation. */
void gt_graph_add_linear(gt_graph *graph, const char *name, size_t O);
void gt_graph_add_relu(gt_graph *graph, const char *name);
/* Passes on what comes, and owns `count` parameters that do nothing. */
void gt_graph_add_inert(gt_graph *graph, const char *name, size_t count);

/* For the builders, in graph_build.c: a zeroed operation at the end, and a parameter whose initial values are uniform in [-bound, bound]. */
gt_op *gt_graph_append(gt_graph *graph, const gt_op_kind *kind, const char *name);
size_t gt_graph_add_param(gt_graph *graph, const char *op, const char *what, double bound, int ndims, const size_t *shape);
/* What comes out of the last operation. */
typedef struct {
  size_t h, w, c;
} gt_extent;
gt_extent gt_graph_extent(const gt_graph *graph);
void gt_graph_set_extent(gt_graph *graph, gt_extent extent);
/* The geometry of a square window over the current extent. */
gt_status gt_graph_window(const gt_graph *graph, const char *name, size_t window, size_t stride, size_t pad, gt_conv_shape *shape);

struct gt_graph {
  char model[32];
  const gt_kernels *kernels;
  gt_op *ops;
  size_t nops, ops_capacity;
  gt_view *views;
  double *bounds; /* of initial values, a view */
  size_t nviews, views_capacity, nparams;
  gt_extent extent, input;
  size_t classes, batch_max;
  gt_arrays arrays;
  bool adopted; /* arrays are lent */
  gt_arena *arena;
  float *work;
  char kernels_text[256];
  gt_progress_fn *progress;
  void *progress_context;
};

#endif
