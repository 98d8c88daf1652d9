/* Kernels blas and auto against ref, over random shapes.  ref itself is tested in tests/nn (finite
   differences in float64). */
#include "bf16.h"
#include "numbers.h"

#include <stdlib.h>

static const char *const fast[] = {"blas", "auto"};
enum { NFAST = 2 };

static void same(const float *a, const float *b, size_t n, size_t terms) {
  const double tolerance = 1.6e-5 * sqrt((double)terms + 1.0);
  for (size_t i = 0; i < n; i++)
    near(a[i], b[i], tolerance * (1.0 + fabs((double)b[i])), "element", i);
}

static gt_conv_shape random_shape(size_t round) {
  /* LeNet's shapes, shapes at the limits of each rule, then random ones */
  static const gt_conv_shape fixed[] = {
      {28, 28, 1, 6, 5, 5, 0, 0, 1, 2},   {14, 14, 6, 16, 5, 5, 0, 0, 1, 0},
      {9, 11, 3, 8, 3, 3, 0, 0, 1, 1},    {8, 8, 16, 16, 3, 3, 0, 0, 1, 1},
      {8, 8, 16, 32, 3, 3, 0, 0, 2, 1},   {7, 9, 5, 33, 3, 3, 0, 0, 1, 1},
      {12, 12, 40, 64, 1, 1, 0, 0, 1, 0}, {5, 5, 1, 1, 5, 5, 0, 0, 1, 0},
      {10, 10, 1, 7, 3, 3, 0, 0, 1, 0},   {33, 17, 2, 15, 4, 2, 0, 0, 3, 1},
      {6, 6, 32, 9, 5, 5, 0, 0, 1, 2},    {11, 11, 31, 1, 3, 3, 0, 0, 1, 1}};
  gt_conv_shape s;
  if (round < COUNT(fixed)) {
    s = fixed[round];
  } else {
    s = (gt_conv_shape){.H = between(1, 18),
                        .W = between(1, 30),
                        .C = between(1, 20),
                        .K = between(1, 40),
                        .R = between(1, 5),
                        .S = between(1, 5),
                        .stride = between(1, 3),
                        .pad = between(0, 2)};
    if (s.H + 2 * s.pad < s.R) s.H = s.R;
    if (s.W + 2 * s.pad < s.S) s.W = s.S;
  }
  s.P = (s.H + 2 * s.pad - s.R) / s.stride + 1;
  s.Q = (s.W + 2 * s.pad - s.S) / s.stride + 1;
  return s;
}

static void conv_matches_ref(void) {
  const gt_kernels *ref = gt_kernels_find("ref");
  for (size_t round = 0; round < 120; round++) {
    const gt_conv_shape s = random_shape(round);
    const size_t N = between(1, 5), nx = N * s.H * s.W * s.C, ny = N * s.P * s.Q * s.K,
                 nw = s.R * s.S * s.C * s.K;
    float *x = numbers(nx), *w = numbers(nw), *b = numbers(s.K), *dy = numbers(ny);
    float *y0 = numbers(ny), *dx0 = numbers(nx), *dw0 = numbers(nw), *db0 = numbers(s.K);
    float *y1 = numbers(ny), *dx1 = numbers(nx), *dw1 = numbers(nw), *db1 = numbers(s.K);
    const float *bias = round % 5 == 4 ? NULL : b;
    float *db = round % 7 == 6 ? NULL : db1;
    ref->conv_forward(y0, x, w, bias, &s, N, NULL);
    ref->conv_backward_input(dx0, dy, w, &s, N, NULL);
    ref->conv_backward_weight(dw0, db0, dy, x, &s, N, NULL);
    for (size_t k = 0; k < NFAST; k++) {
      const gt_kernels *kernels = gt_kernels_find(fast[k]);
      const size_t nwork = kernels->conv_work(&s, N);
      float *work = numbers(nwork);
      kernels->conv_forward(y1, x, w, bias, &s, N, work);
      same(y1, y0, ny, nw / s.K);
      kernels->conv_backward_input(dx1, dy, w, &s, N, work);
      same(dx1, dx0, nx, s.R * s.S * s.K);
      kernels->conv_backward_weight(dw1, db, dy, x, &s, N, work);
      same(dw1, dw0, nw, N * s.P * s.Q);
      if (db) same(db1, db0, s.K, N * s.P * s.Q);
      release(work, nwork);
    }
    release(x, nx), release(w, nw), release(b, s.K), release(dy, ny);
    release(y0, ny), release(dx0, nx), release(dw0, nw), release(db0, s.K);
    release(y1, ny), release(dx1, nx), release(dw1, nw), release(db1, s.K);
  }
}

static void same_value(const float *a, const float *b, size_t i, gt_precision type) {
  const float x = gt_load1(a, i, type), y = gt_load1(b, i, type);
  assert_true(x == y || (isnan(x) && isnan(y)));
}

static void pooling_matches_ref(void) {
  const gt_kernels *ref = gt_kernels_find("ref");
  for (size_t round = 0; round < 200; round++) {
    gt_conv_shape s = {
        .H = between(2, 13), .W = between(2, 13), .C = between(1, 40), .R = 2, .S = 2, .stride = 2};
    const gt_precision type = round % 4 == 3 ? GT_BF16 : GT_F32;
    if (round % 3 == 2)
      s.R = s.S = between(1, 3), s.stride = between(1, 3), s.pad = between(0, s.R - 1);
    if (s.H + 2 * s.pad < s.R) s.H = s.R;
    if (s.W + 2 * s.pad < s.R) s.W = s.R;
    s.K = s.C;
    s.P = (s.H + 2 * s.pad - s.R) / s.stride + 1;
    s.Q = (s.W + 2 * s.pad - s.S) / s.stride + 1;
    const size_t N = between(1, 4), nx = N * s.H * s.W * s.C, ny = N * s.P * s.Q * s.C;
    float *x = numbers(nx), *dy = numbers(ny), *y0 = numbers(ny), *y1 = numbers(ny),
          *dx0 = numbers(nx), *dx1 = numbers(nx);
    /* Many ties: the first maximum counts. */
    for (size_t i = 0; i < nx; i++) x[i] = roundf(x[i] * 2.0f);
    for (size_t i = 0; round % 10 == 0 && i < nx / 4; i++) x[between(0, nx - 1)] = NAN;
    if (type == GT_BF16) gt_to_bf16((gt_bf16 *)(void *)x, x, nx);
    if (type == GT_BF16) gt_to_bf16((gt_bf16 *)(void *)dy, dy, ny);
    float *i0 = numbers(ny), *i1 = numbers(ny);
    ref->maxpool_forward(y0, (uint32_t *)(void *)i0, x, type, &s, N);
    ref->maxpool_backward(dx0, dy, (uint32_t *)(void *)i0, type, &s, N);
    for (size_t k = 0; k < NFAST; k++) {
      const gt_kernels *kernels = gt_kernels_find(fast[k]);
      kernels->maxpool_forward(y1, (uint32_t *)(void *)i1, x, type, &s, N);
      assert_memory_equal(i1, i0, ny * sizeof *i0);
      for (size_t i = 0; i < ny; i++) same_value(y1, y0, i, type);
      kernels->maxpool_backward(dx1, dy, (uint32_t *)(void *)i1, type, &s, N);
      for (size_t i = 0; i < nx; i++) same_value(dx1, dx0, i, type);
    }
    release(x, nx), release(dy, ny), release(y0, ny), release(y1, ny), release(dx0, nx),
        release(dx1, nx);
    release(i0, ny), release(i1, ny);
  }
}

static void linear_matches_ref(void) {
  const gt_kernels *ref = gt_kernels_find("ref");
  for (size_t round = 0; round < 100; round++) {
    const size_t B = between(1, 70), I = between(1, 90), O = between(1, 130);
    float *x = numbers(B * I), *w = numbers(O * I), *b = numbers(O), *dy = numbers(B * O);
    float *y0 = numbers(B * O), *y1 = numbers(B * O), *dx0 = numbers(B * I), *dx1 = numbers(B * I);
    float *dw0 = numbers(O * I), *dw1 = numbers(O * I), *db0 = numbers(O), *db1 = numbers(O);
    const float *bias = round % 5 == 4 ? NULL : b;
    float *db = round % 7 == 6 ? NULL : db1;
    ref->linear_forward(y0, x, w, bias, B, I, O);
    ref->linear_backward_input(dx0, dy, w, B, I, O);
    ref->linear_backward_weight(dw0, db0, dy, x, B, I, O);
    for (size_t k = 0; k < NFAST; k++) {
      const gt_kernels *kernels = gt_kernels_find(fast[k]);
      kernels->linear_forward(y1, x, w, bias, B, I, O);
      kernels->linear_backward_input(dx1, dy, w, B, I, O);
      kernels->linear_backward_weight(dw1, db, dy, x, B, I, O);
      same(y1, y0, B * O, I);
      same(dx1, dx0, B * I, O);
      same(dw1, dw0, O * I, B);
      if (db) same(db1, db0, O, B);
    }
    release(x, B * I), release(w, O * I), release(b, O), release(dy, B * O), release(y0, B * O),
        release(y1, B * O);
    release(dx0, B * I), release(dx1, B * I), release(dw0, O * I), release(dw1, O * I),
        release(db0, O), release(db1, O);
  }
}

static void relu_keeps_nan_and_works_in_place(void) {
  const float x[5] = {-1.0f, 0.0f, 2.0f, NAN, -0.5f}, dy[5] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
  for (size_t k = 0; k < 3; k++) {
    const gt_kernels *kernels = gt_kernels_find(k == 0 ? "ref" : fast[k - 1]);
    float y[5], dx[5];
    memcpy(y, x, sizeof y);
    memcpy(dx, dy, sizeof dx);
    kernels->relu_forward(y, y, 5);
    assert_true(y[0] == 0.0f && y[1] == 0.0f && y[2] == 2.0f && isnan(y[3]) && y[4] == 0.0f);
    kernels->relu_backward(dx, dx, y, 3);
    assert_true(dx[0] == 0.0f && dx[1] == 0.0f && dx[2] == 3.0f && dx[3] == 4.0f);
  }
}

static void softmax_against_double(void) {
  enum { B = 9, O = 11 };
  for (size_t k = 0; k < 3; k++) {
    const gt_kernels *kernels = gt_kernels_find(k == 0 ? "ref" : fast[k - 1]);
    float x[B * O], dx[B * O];
    int32_t labels[B];
    double loss = 0.0;
    size_t correct = 0, counted = 7;
    double right[B * O];
    for (size_t n = 0; n < B; n++) {
      labels[n] = (int32_t)between(0, O - 1);
      double sum = 0.0;
      size_t best = 0;
      for (size_t o = 0; o < O; o++) {
        x[n * O + o] = (float)(30.0 * gt_rng_normal(&rng));
        if (x[n * O + o] > x[n * O + best]) best = o;
      }
      for (size_t o = 0; o < O; o++) sum += exp((double)x[n * O + o] - (double)x[n * O + best]);
      for (size_t o = 0; o < O; o++)
        right[n * O + o] = (exp((double)x[n * O + o] - (double)x[n * O + best]) / sum -
                            (o == (size_t)labels[n] ? 1.0 : 0.0)) /
                           B;
      loss += log(sum) + (double)x[n * O + best] - (double)x[n * O + (size_t)labels[n]];
      correct += best == (size_t)labels[n];
    }
    const double found = kernels->softmax_xent(dx, x, labels, B, O, &counted);
    assert_true(fabs(found - loss) <= 1e-5 * (1.0 + loss));
    assert_int_equal(counted, 7 + correct);
    for (size_t i = 0; i < B * O; i++) assert_true(fabs((double)dx[i] - right[i]) < 1e-6);
    size_t again = 0;
    assert_true(kernels->softmax_xent(NULL, x, labels, B, O, &again) == found);
  }
}

/* A row with a NaN never counts as correct, whatever its label; its loss is NaN; other rows
   count. */
static void no_number_is_correct(void) {
  for (size_t k = 0; k < 3; k++) {
    const gt_kernels *kernels = gt_kernels_find(k == 0 ? "ref" : fast[k - 1]);
    const float rows[5][3] = {
        {NAN, NAN, NAN}, {NAN, NAN, NAN}, {1.0F, NAN, 0.0F}, {NAN, 1.0F, 0.0F}, {0.0F, 2.0F, 1.0F}};
    const float single[4] = {NAN, NAN, -1.0F, 1.0F};
    size_t correct = 0, logistic = 0;
    assert_true(isnan(
        kernels->softmax_xent(NULL, rows[0], (const int32_t[]){0, 2, 0, 0, 1}, 5, 3, &correct)));
    assert_int_equal(correct, 1);
    assert_true(
        isnan(kernels->logistic(NULL, single, (const int32_t[]){0, 1, 0, 1}, 4, &logistic)));
    assert_int_equal(logistic, 2);
  }
}

static void names(void) {
  assert_null(gt_kernels_find("blaz"));
  assert_string_equal(gt_kernels_find("ref")->name, "ref");
  assert_string_equal(gt_kernels_find("auto")->name, "auto");
  assert_true(strlen(gt_kernels_blas_core()) > 0);
  if (!getenv("OPENBLAS_CORETYPE")) assert_false(gt_kernels_blas_pinned());
  const gt_conv_shape narrow = {28, 28, 1, 6, 5, 5, 28, 28, 1, 2},
                      wide = {8, 8, 64, 64, 3, 3, 8, 8, 1, 1};
  assert_string_equal(gt_kernels_find("auto")->family("conv", &narrow), "direct");
  assert_string_equal(gt_kernels_find("auto")->family("conv", &wide), "blas");
  assert_string_equal(gt_kernels_find("ref")->family("conv", &narrow), "ref");
}

int main(void) {
  rng = gt_rng_make(20, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, conv_matches_ref, pooling_matches_ref, linear_matches_ref,
                   relu_keeps_nan_and_works_in_place, softmax_against_double, no_number_is_correct,
                   names);
}
