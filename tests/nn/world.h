/* Shared by the tests of models: refusals, hashes, names and shapes of tensors, tables of kernels,
   gradients against finite differences, announced gradients. */
#pragma once

#include "tests.h"
#include "graph.h"

/* Tables of kernels to compare; without oneDNN the last one is omitted. */
extern const char *const w_tables[4];
size_t w_ntables(void);

/* Adam with a rate of 0.01 and its default parameters. */
extern const gt_optim_spec w_adam;

/* Creates the graph; fails with the error's text. */
gt_graph *w_graph(const gt_graph_spec *spec);
/* Returns the index of an operation; fails if the graph has none of this name. */
size_t w_operation(const gt_graph *graph, const char *name);

/* Return n normal random numbers times `scale`, or a copy in float64; the caller frees them. */
float *w_floats(gt_rng *rng, size_t n, double scale);
double *w_doubles(const float *x, size_t n);

typedef struct {
  const char *name;
  size_t rows, columns; /* 0: one dimension */
} w_tensor;
/* Checks that tensor i of the graph has this name and shape. */
void w_check_tensor(const gt_graph *graph, size_t i, w_tensor right);
/* Checks that the graph has exactly these tensors, in this order. */
void w_check_tensors(const gt_graph *graph, const w_tensor *right, size_t n);

/* Checks that any two hashes differ.  Closes the graphs. */
void w_check_hashes(gt_graph *const *graphs, size_t n);

/* Checks that the model is refused with this sentence. */
void w_refused(const char *model, gt_sample_shape shape, gt_model_options options, gt_status status,
               const char *text);

/* Returns the norm of a - b relative to that of b, or that of a - b if b is 0. */
double w_difference(const float *a, const float *b, size_t n);
/* Checks that the values of tensor i are within this bound and, if they are many, reach 0.8 of
   it. */
void w_check_uniform(const gt_graph *graph, size_t i, double bound);

/* How a graph of ids learns. */
typedef struct {
  const gt_optim_spec *optim;
  void (*fill)(int32_t *ids, int32_t *labels, size_t n); /* makes n samples */
  size_t batch, test, ids;                               /* samples; ids of each */
  int steps;
} w_course;
/* Trains the graph, of which no step may allocate, and returns the result on `test` other samples.
   scores: one of each, or NULL.  labels (test) is overwritten.  Closes nothing. */
gt_metrics w_learn(gt_graph *graph, const w_course *course, int32_t *labels, float *scores);

/* ---- gradients ------------------------------------------------------------------------------- */

/* Fails unless found is near right: `tolerance` times 1 + |right|. */
void w_near(double found, double right, double tolerance, const char *what, size_t i);

/* Returns the slope of a loss with respect to *at: central differences of h. */
double w_slope(double (*loss)(const void *ctx), const void *ctx, double *at, double h);

/* A batch of n samples, of ids or of numbers. */
typedef struct {
  const void *shape; /* sizes of the model, known to the loss */
  const int32_t *ids, *labels;
  const double *x;
  size_t n;
} w_batch;

/* How to judge the gradients of a model. */
typedef struct {
  /* Returns the mean loss, computed in float64; params in the order of the graph's. */
  double (*loss)(const double *params, const w_batch *batch);
  w_batch batch;
  double h;         /* of the finite differences */
  double near_loss; /* tolerance of the loss, relative */
  double near;      /* tolerance of float32, relative to the largest gradient of the tensor */
  double least;     /* the largest gradient of each tensor must be above */
  size_t stride;    /* every stride-th gradient of a tensor is checked; */
  size_t count;     /* 0, or about so many of each tensor instead */
  size_t padding;   /* so many parameters at the beginning have the gradient 0 */
} w_judge;

/* Checks the loss and the gradients that the graph's last step gave; rng picks the first gradient
   of each tensor. */
void w_check_gradients(const gt_graph *graph, const w_judge *judge, const gt_metrics *metrics,
                       gt_rng *rng);

/* The gradients of a graph as they were when they were announced as final. */
typedef struct {
  const gt_arrays *arrays;
  float *kept;
  size_t from, calls; /* from: the first one announced */
} w_announced;

/* Listens to the graph; the caller frees `kept`. */
void w_listen(w_announced *announced, gt_graph *graph);
/* Checks that all gradients of a step were announced, with their final values; begins again. */
void w_check_announced(w_announced *announced);
