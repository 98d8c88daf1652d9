/* Kernels prepared by oneDNN against ref: convolutions by oneDNN's own kernels and by a matrix
   product, and linear layers, in float32 and bf16.  In bf16 ref gets the rounded factors, so that
   only the order of additions differs, and the last bit of results in bf16. */
#include "numbers.h"

static const gt_prepared_ops *ops; /* NULL: a build without oneDNN */
static const gt_kernels *ref;
static gt_prepared_context *context;

static bool absent(gt_precision precision) {
  const char *why;
  return !ops || (precision == GT_BF16 && !gt_kernels_bf16(&why));
}

static void round_to(gt_precision precision, float *x, size_t n) {
  if (precision == GT_F32) return;
  gt_bf16 *half = GT_NEW_ARRAY(gt_bf16, n);
  gt_to_bf16(half, x, n);
  gt_from_bf16(x, half, n);
  gt_free(half);
}

/* ---- convolutions ---- */

static gt_conv_shape sized(gt_conv_shape s) {
  if (s.H + 2 * s.pad < s.R) s.H = s.R;
  if (s.W + 2 * s.pad < s.S) s.W = s.S;
  s.P = (s.H + 2 * s.pad - s.R) / s.stride + 1;
  s.Q = (s.W + 2 * s.pad - s.S) / s.stride + 1;
  return s;
}

/* Shapes of ResNet and LeNet, with few pixels (computed by a product) and many; then random
   ones. */
static gt_conv_shape shape_of(size_t round) {
  static const gt_conv_shape fixed[] = {
      {.H = 4, .W = 4, .C = 64, .K = 32, .R = 3, .S = 3, .stride = 1, .pad = 1},
      {.H = 8, .W = 8, .C = 32, .K = 48, .R = 3, .S = 3, .stride = 1, .pad = 1},
      {.H = 8, .W = 8, .C = 16, .K = 32, .R = 3, .S = 3, .stride = 2, .pad = 1},
      {.H = 8, .W = 8, .C = 16, .K = 32, .R = 1, .S = 1, .stride = 2, .pad = 0},
      {.H = 16, .W = 16, .C = 3, .K = 64, .R = 3, .S = 3, .stride = 1, .pad = 1},
      {.H = 16, .W = 16, .C = 32, .K = 32, .R = 3, .S = 3, .stride = 1, .pad = 1},
      {.H = 28, .W = 28, .C = 1, .K = 6, .R = 5, .S = 5, .stride = 1, .pad = 2},
      {.H = 1, .W = 1, .C = 33, .K = 65, .R = 1, .S = 1, .stride = 1, .pad = 0},
      {.H = 2, .W = 2, .C = 128, .K = 64, .R = 3, .S = 3, .stride = 1, .pad = 1},
      /* gradient of the input by rotated weights */
      {.H = 7, .W = 9, .C = 64, .K = 128, .R = 3, .S = 3, .stride = 1, .pad = 1},
      {.H = 9, .W = 6, .C = 128, .K = 64, .R = 5, .S = 5, .stride = 1, .pad = 2},
      {.H = 8, .W = 8, .C = 64, .K = 64, .R = 3, .S = 3, .stride = 1, .pad = 0}};
  if (round < COUNT(fixed)) return sized(fixed[round]);
  return sized((gt_conv_shape){.H = between(1, 12),
                               .W = between(1, 12),
                               .C = between(1, 40),
                               .K = between(1, 40),
                               .R = between(1, 4),
                               .S = between(1, 4),
                               .stride = between(1, 3),
                               .pad = between(0, 1)});
}

/* One batch size of a prepared convolution.  Gradients of weights, and layers with bias, are
   float32. */
static void check_conv(gt_prepared_conv *conv, const gt_conv_spec *spec, size_t N) {
  const gt_conv_shape *s = &spec->shape;
  const size_t nw = s->R * s->S * s->C * s->K, image = s->P * s->Q;
  values x = values_of(spec->in, N * s->H * s->W * s->C), dx = values_of(spec->in, x.n),
         y = values_of(spec->out, N * image * s->K), dy = values_of(spec->out, y.n),
         dw = values_of(GT_F32, nw), db = values_of(GT_F32, s->K);
  float *w = numbers(nw), *b = numbers(s->K), *right = numbers(x.n + y.n + nw),
        *right_b = numbers(s->K);
  float *rounded = numbers(nw);
  memcpy(rounded, w, nw * sizeof *w);
  round_to(spec->precision, rounded, nw);
  ops->conv_forward(conv, y.at, x.at, w, spec->bias ? b : NULL, N); /* rounds float32 input */
  round_to(spec->precision, x.f, x.n);
  ref->conv_forward(right, x.f, rounded, spec->bias ? b : NULL, s, N, NULL);
  values_read(&y);
  same_sums(&y, right, nw / s->K, "y");
  if (spec->needs_input_gradient) {
    ops->conv_backward_input(conv, dx.at, dy.at, w, N);
    ref->conv_backward_input(right, dy.f, rounded, s, N, NULL);
    values_read(&dx);
    same_sums(&dx, right, s->R * s->S * s->K, "dx");
  }
  ops->conv_backward_weight(conv, dw.f, spec->bias ? db.f : NULL, dy.at, x.at, N);
  ref->conv_backward_weight(right, right_b, dy.f, x.f, s, N, NULL);
  same_sums(&dw, right, N * image, "dw");
  if (spec->bias) same_sums(&db, right_b, N * image, "db");
  release(rounded, nw), release(right_b, s->K), release(right, x.n + y.n + nw), release(b, s->K),
      release(w, nw);
  values_release(&db), values_release(&dw), values_release(&dy), values_release(&y),
      values_release(&dx), values_release(&x);
}

/* Several batch sizes, more than are kept, and the first one again. */
static void convolutions(gt_precision precision) {
  size_t gemm = 0, own = 0;
  if (absent(precision)) skip();
  for (size_t round = 0; round < 60; round++) {
    gt_conv_spec spec = {.shape = shape_of(round),
                         .bias = precision == GT_F32 && round % 3 == 1,
                         .needs_input_gradient = round % 5 != 4};
    spec.precision = spec.in = spec.out = precision;
    if (!spec.needs_input_gradient) spec.in = GT_F32; /* samples */
    const gt_algorithm by_rule[GT_PASSES] = {GT_ALGORITHM_RULE};
    gt_prepared_conv *conv = ops->conv_create(context, &spec, by_rule);
    ++*(ops->conv_rule(&spec, 2, GT_PASS_WEIGHT) == GT_ALGORITHM_DNN ? &own : &gemm);
    ops->conv_prepare(conv, 2);
    check_conv(conv, &spec, 2);
    for (size_t N = 1; N < (round == 7 ? 12 : 4); N++) check_conv(conv, &spec, N);
    check_conv(conv, &spec, 2);
    ops->conv_close(conv);
  }
  assert_true(gemm > 5 && own > 5);
}

static void convolutions_f32(void) {
  convolutions(GT_F32);
}

static void convolutions_bf16(void) {
  convolutions(GT_BF16);
}

/* The norm of the difference relative to the norm of `right`. */
static double off(const float *found, const float *right, size_t n) {
  double difference = 0, length = 0;
  for (size_t i = 0; i < n; i++) {
    difference += ((double)found[i] - (double)right[i]) * ((double)found[i] - (double)right[i]);
    length += (double)right[i] * (double)right[i];
  }
  return sqrt(difference / length);
}

/* Winograd's method rounds transformed tiles, so results are near those of ref but not the same.
   Includes odd numbers of tiles. */
static void winograd_bf16(void) {
  if (absent(GT_BF16)) skip();
  const gt_algorithm algorithms[GT_PASSES] = {GT_ALGORITHM_DNN_WINOGRAD, GT_ALGORITHM_DNN_WINOGRAD,
                                              GT_ALGORITHM_DNN_WINOGRAD};
  const gt_conv_spec spec = {
      .shape = sized(
          (gt_conv_shape){.H = 5, .W = 6, .C = 32, .K = 48, .R = 3, .S = 3, .stride = 1, .pad = 1}),
      .needs_input_gradient = true,
      .in = GT_BF16,
      .out = GT_BF16,
      .precision = GT_BF16};
  const gt_conv_shape *s = &spec.shape;
  gt_prepared_conv *conv = ops->conv_create(context, &spec, algorithms);
  /* 9, 297 and 585 tiles: the last in several groups with a smaller last one */
  for (size_t N = 1; N <= 65; N += 32) {
    const size_t nw = s->R * s->S * s->C * s->K, nx = N * s->H * s->W * s->C,
                 ny = N * s->P * s->Q * s->K;
    values x = values_of(GT_BF16, nx), dx = values_of(GT_BF16, nx), y = values_of(GT_BF16, ny),
           dy = values_of(GT_BF16, ny);
    float *w = numbers(nw), *dw = numbers(nw), *right = numbers(nx + ny + nw);
    ops->conv_forward(conv, y.at, x.at, w, NULL, N);
    ref->conv_forward(right, x.f, w, NULL, s, N, NULL);
    values_read(&y);
    assert_true(off(y.f, right, ny) < 0.01);
    ops->conv_backward_input(conv, dx.at, dy.at, w, N);
    ref->conv_backward_input(right, dy.f, w, s, N, NULL);
    values_read(&dx);
    assert_true(off(dx.f, right, nx) < 0.01);
    ops->conv_backward_weight(conv, dw, NULL, dy.at, x.at, N);
    ref->conv_backward_weight(right, NULL, dy.f, x.f, s, N, NULL);
    assert_true(off(dw, right, nw) < 0.01);
    release(right, nx + ny + nw), release(dw, nw), release(w, nw);
    values_release(&dy), values_release(&y), values_release(&dx), values_release(&x);
  }
  ops->conv_close(conv);
}

/* ---- linear layers ---- */

static void check_linear(gt_prepared_linear *linear, gt_precision precision, bool bias, size_t B,
                         size_t I, size_t O) {
  values y = values_of(GT_F32, B * O), dx = values_of(GT_F32, B * I), dw = values_of(GT_F32, O * I),
         db = values_of(GT_F32, O);
  float *x = numbers(B * I), *dy = numbers(B * O), *w = numbers(O * I), *b = numbers(O),
        *right = numbers(B * (I + O) + O * I), *sums = numbers(O);
  ops->linear_forward(linear, y.f, x, w, bias ? b : NULL, B);
  ops->linear_backward_input(linear, dx.f, dy, w, B);
  ops->linear_backward_weight(linear, dw.f, db.f, dy, x, B);
  ref->linear_backward_weight(right, sums, dy, x, B, I, O); /* from unrounded numbers */
  same_sums(&db, sums, B, "db");
  round_to(precision, x, B * I), round_to(precision, dy, B * O), round_to(precision, w, O * I);
  ref->linear_forward(right, x, w, bias ? b : NULL, B, I, O);
  same_sums(&y, right, I, "y");
  ref->linear_backward_input(right, dy, w, B, I, O);
  same_sums(&dx, right, O, "dx");
  ref->linear_backward_weight(right, NULL, dy, x, B, I, O);
  same_sums(&dw, right, B, "dw");
  release(sums, O), release(right, B * (I + O) + O * I), release(b, O), release(w, O * I),
      release(dy, B * O), release(x, B * I);
  values_release(&db), values_release(&dw), values_release(&dx), values_release(&y);
}

static void linear_layers(void) {
  for (gt_precision precision = GT_F32; precision <= GT_BF16; precision++) {
    if (absent(precision)) continue;
    for (size_t round = 0; round < 40; round++) {
      const size_t I = between(1, 130), O = between(1, 130);
      const bool bias = round % 3 != 1;
      gt_prepared_linear *linear = ops->linear_create(context, I, O, bias, precision);
      ops->linear_prepare(linear, 3);
      for (size_t B = 1; B < (round == 0 ? 12 : 4); B++)
        check_linear(linear, precision, bias, B * B, I, O);
      check_linear(linear, precision, bias, 1, I, O);
      ops->linear_close(linear);
    }
  }
}

int main(void) {
  rng = gt_rng_make(21, GT_RNG_TEST, 0, 0);
  ref = gt_kernels_find("ref");
  ops = gt_kernels_find("dnn") ? gt_kernels_find("dnn")->prepared() : NULL;
  if (ops) context = ops->create();
  const int failed =
      RUN_TESTS(NULL, NULL, convolutions_f32, convolutions_bf16, winograd_bf16, linear_layers);
  if (ops) ops->close(context);
  return failed;
}
