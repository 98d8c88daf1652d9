/* Convolutions and linear layers.  Each pass is computed by the table's rule or with a chosen
   method. */
#include <string.h>

#include "direct.h"
#include "kernels.h"
#include "winograd.h"

struct gt_layer {
  const gt_kernels *kernels;
  const gt_prepared_ops *ops; /* NULL: nothing is prepared */
  gt_layer_spec spec;
  gt_precision type;
  /* For each pass.  GT_ALGORITHM_RULE: the table's function; DIRECT, WINOGRAD, BLAS: these kernels;
     others: prepared.  A prepared convolution by rule selects the best method for each batch
     size. */
  gt_algorithm algorithms[GT_PASSES];
  gt_algorithm asked[GT_PASSES];
  gt_prepared_conv *conv;
  gt_prepared_linear *linear;
};

const char *gt_algorithm_name(gt_algorithm algorithm) {
  static const char *const names[GT_ALGORITHMS] = {
      "rule", "direct", "winograd", "blas", "dnn", "dnn-gemm", "dnn-turned", "dnn-winograd"};
  return names[algorithm];
}

const char *gt_pass_name(gt_pass_id pass) {
  static const char *const names[GT_PASSES] = {"forward", "input", "weight"};
  return names[pass];
}

/* ---- open and close ---- */

/* True if the table's rule prepares the layer, for passes without a chosen method. */
static bool prepares(const gt_kernels *kernels, const gt_layer_spec *spec) {
  if (!kernels->prepared || !kernels->prepared()) return false;
  if (spec->linear)
    return kernels->prepares_linear(spec->conv.shape.C, spec->conv.shape.K, spec->conv.precision);
  return kernels->prepares_conv(&spec->conv);
}

/* Sets the method of each pass.  A pass by rule is prepared if by_rule, else it uses the table's
   function. */
static void settle(gt_layer *l, const gt_algorithm *algorithms, bool by_rule) {
  for (int pass = 0; pass < GT_PASSES; pass++) {
    l->asked[pass] = algorithms ? algorithms[pass] : GT_ALGORITHM_RULE;
    l->algorithms[pass] = l->asked[pass] != GT_ALGORITHM_RULE ? l->asked[pass]
                          : by_rule                           ? GT_ALGORITHM_DNN
                                                              : GT_ALGORITHM_RULE;
  }
}

static bool is_prepared(gt_algorithm algorithm) {
  return algorithm >= GT_ALGORITHM_DNN && algorithm < GT_ALGORITHMS;
}

static void open_prepared(gt_layer *l, gt_prepared_context **context) {
  bool any = false;
  for (int pass = 0; pass < GT_PASSES; pass++) any = any || is_prepared(l->algorithms[pass]);
  if (!any) return;
  l->ops = l->kernels->prepared();
  if (!*context) *context = l->ops->create();
  if (l->spec.linear) {
    l->linear = l->ops->linear_create(*context, l->spec.conv.shape.C, l->spec.conv.shape.K,
                                      l->spec.conv.bias, l->spec.conv.precision);
    return;
  }
  gt_algorithm algorithms[GT_PASSES];
  /* GT_ALGORITHM_DIRECT: passes that other kernels compute are not prepared. */
  for (int pass = 0; pass < GT_PASSES; pass++)
    algorithms[pass] = is_prepared(l->algorithms[pass]) ? l->asked[pass] : GT_ALGORITHM_DIRECT;
  l->conv = l->ops->conv_create(*context, &l->spec.conv, algorithms);
}

gt_layer *gt_layer_create(const gt_kernels *kernels, gt_prepared_context **context,
                          const gt_layer_spec *spec, const gt_algorithm *algorithms) {
  gt_layer *l = GT_NEW(gt_layer);
  const bool by_rule = prepares(kernels, spec);
  *l = (gt_layer){.kernels = kernels, .spec = *spec};
  l->type = by_rule && !spec->linear ? spec->conv.out : GT_F32;
  settle(l, algorithms, by_rule);
  open_prepared(l, context);
  return l;
}

void gt_layer_close(gt_layer *l) {
  if (!l) return;
  if (l->conv) l->ops->conv_close(l->conv);
  if (l->linear) l->ops->linear_close(l->linear);
  gt_free(l);
}

gt_precision gt_layer_type(const gt_layer *l) {
  return l->type;
}

size_t gt_layer_work(const gt_layer *l, size_t N) {
  const gt_conv_shape *s = &l->spec.conv.shape;
  size_t most = 0;
  if (l->spec.linear) return 0;
  for (int pass = 0; pass < GT_PASSES; pass++) {
    size_t needs = 0;
    if (l->algorithms[pass] == GT_ALGORITHM_RULE) needs = l->kernels->conv_work(s, N);
    if (l->algorithms[pass] == GT_ALGORITHM_DIRECT) needs = gt_direct_work(s);
    if (l->algorithms[pass] == GT_ALGORITHM_WINOGRAD) needs = gt_winograd_work(s, N);
    if (l->algorithms[pass] == GT_ALGORITHM_BLAS) needs = gt_kernels_blas.conv_work(s, N);
    if (needs > most) most = needs;
  }
  return most;
}

void gt_layer_prepare(gt_layer *l, size_t N) {
  if (l->conv) l->ops->conv_prepare(l->conv, N);
  if (l->linear) l->ops->linear_prepare(l->linear, N);
}

/* Returns the family of a pass that the table's function computes. */
static const char *slot_family(const gt_layer *l) {
  return l->kernels->family(l->spec.linear ? "linear" : "conv", &l->spec.conv.shape);
}

gt_algorithm gt_layer_algorithm(const gt_layer *l, size_t N, gt_pass_id pass) {
  const gt_algorithm algorithm = l->algorithms[pass];
  if (algorithm == GT_ALGORITHM_RULE) {
    const char *family = slot_family(l);
    return strcmp(family, "direct") == 0 ? GT_ALGORITHM_DIRECT
           : strcmp(family, "blas") == 0 ? GT_ALGORITHM_BLAS
                                         : GT_ALGORITHM_RULE;
  }
  return l->conv && is_prepared(algorithm) && l->asked[pass] == GT_ALGORITHM_RULE
             ? l->ops->conv_rule(&l->spec.conv, N, pass)
             : algorithm;
}

const char *gt_layer_family(const gt_layer *l, size_t N, gt_pass_id pass) {
  const gt_algorithm algorithm = gt_layer_algorithm(l, N, pass);
  return algorithm == GT_ALGORITHM_RULE ? slot_family(l) : gt_algorithm_name(algorithm);
}

bool gt_algorithm_can(const gt_layer_spec *spec, size_t N, gt_pass_id pass,
                      gt_algorithm algorithm) {
  const gt_conv_spec *c = &spec->conv;
  const gt_prepared_ops *ops = gt_prepared_dnn();
  const bool f32 = c->precision == GT_F32 && c->in == GT_F32 && c->out == GT_F32;
  switch (algorithm) {
  case GT_ALGORITHM_RULE:
    return true;
  case GT_ALGORITHM_DIRECT:
    return f32 && !spec->linear && gt_direct_serves(&c->shape);
  case GT_ALGORITHM_WINOGRAD:
    return f32 && !spec->linear && gt_winograd_serves(&c->shape);
  case GT_ALGORITHM_BLAS:
    return spec->linear ? c->precision == GT_F32 : f32;
  default:
    return ops &&
           (spec->linear ? algorithm == GT_ALGORITHM_DNN : ops->conv_can(c, N, pass, algorithm));
  }
}

/* ---- passes ---- */

/* Returns the table for a pass that is not prepared. */
static const gt_kernels *table_of(const gt_layer *l, gt_pass_id pass) {
  return l->algorithms[pass] == GT_ALGORITHM_RULE ? l->kernels : &gt_kernels_blas;
}

void gt_layer_forward(gt_layer *l, void *y, const void *x, const float *w, const float *b, size_t N,
                      float *work) {
  const gt_conv_shape *s = &l->spec.conv.shape;
  const gt_algorithm algorithm = l->algorithms[GT_PASS_FORWARD];
  if (algorithm == GT_ALGORITHM_DIRECT)
    gt_direct_forward(y, x, w, b, s, N, work);
  else if (algorithm == GT_ALGORITHM_WINOGRAD)
    gt_winograd_forward(y, x, w, b, s, N, work);
  else if (!is_prepared(algorithm) && l->spec.linear)
    table_of(l, GT_PASS_FORWARD)->linear_forward(y, x, w, b, N, s->C, s->K);
  else if (!is_prepared(algorithm))
    table_of(l, GT_PASS_FORWARD)->conv_forward(y, x, w, b, s, N, work);
  else if (l->linear)
    l->ops->linear_forward(l->linear, y, x, w, b, N);
  else
    l->ops->conv_forward(l->conv, y, x, w, b, N);
}

void gt_layer_backward_input(gt_layer *l, void *dx, const void *dy, const float *w, size_t N,
                             float *work) {
  const gt_conv_shape *s = &l->spec.conv.shape;
  const gt_algorithm algorithm = l->algorithms[GT_PASS_INPUT];
  if (algorithm == GT_ALGORITHM_DIRECT)
    gt_direct_backward_input(dx, dy, w, s, N, work);
  else if (algorithm == GT_ALGORITHM_WINOGRAD)
    gt_winograd_backward_input(dx, dy, w, s, N, work);
  else if (!is_prepared(algorithm) && l->spec.linear)
    table_of(l, GT_PASS_INPUT)->linear_backward_input(dx, dy, w, N, s->C, s->K);
  else if (!is_prepared(algorithm))
    table_of(l, GT_PASS_INPUT)->conv_backward_input(dx, dy, w, s, N, work);
  else if (l->linear)
    l->ops->linear_backward_input(l->linear, dx, dy, w, N);
  else
    l->ops->conv_backward_input(l->conv, dx, dy, w, N);
}

void gt_layer_backward_weight(gt_layer *l, float *dw, float *db, const void *dy, const void *x,
                              size_t N, float *work) {
  const gt_conv_shape *s = &l->spec.conv.shape;
  const gt_algorithm algorithm = l->algorithms[GT_PASS_WEIGHT];
  if (algorithm == GT_ALGORITHM_DIRECT)
    gt_direct_backward_weight(dw, db, dy, x, s, N, work);
  else if (algorithm == GT_ALGORITHM_WINOGRAD)
    gt_winograd_backward_weight(dw, db, dy, x, s, N, work);
  else if (!is_prepared(algorithm) && l->spec.linear)
    table_of(l, GT_PASS_WEIGHT)->linear_backward_weight(dw, db, dy, x, N, s->C, s->K);
  else if (!is_prepared(algorithm))
    table_of(l, GT_PASS_WEIGHT)->conv_backward_weight(dw, db, dy, x, s, N, work);
  else if (l->linear)
    l->ops->linear_backward_weight(l->linear, dw, db, dy, x, N);
  else
    l->ops->conv_backward_weight(l->conv, dw, db, dy, x, N);
}
