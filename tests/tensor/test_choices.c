/* Layers with every supported method, against plain loops; choices by measurement, as text, and
   parsed again. */
#include <sys/wait.h>
#include <unistd.h>

#include "numbers.h"

#include <stdio.h>

static const gt_kernels *ref, *automatic;
static gt_prepared_context *context;

static gt_layer_spec conv_spec(gt_conv_shape s, bool bias, bool gradient) {
  s.P = (s.H + 2 * s.pad - s.R) / s.stride + 1;
  s.Q = (s.W + 2 * s.pad - s.S) / s.stride + 1;
  return (gt_layer_spec){.conv = {.shape = s, .bias = bias, .needs_input_gradient = gradient}};
}

static gt_layer_spec linear_spec(size_t I, size_t O) {
  return (gt_layer_spec){
      .linear = true,
      .conv = {
          .shape = {.H = 1, .W = 1, .C = I, .K = O, .R = 1, .S = 1, .P = 1, .Q = 1, .stride = 1},
          .bias = true,
          .needs_input_gradient = true}};
}

/* Returns a shape for each method, and two that most methods do not support. */
static gt_layer_spec spec_of(size_t i) {
  switch (i) {
  case 0:
    return conv_spec(
        (gt_conv_shape){.H = 14, .W = 14, .C = 6, .K = 16, .R = 5, .S = 5, .stride = 1}, true,
        true);
  case 1:
    return conv_spec(
        (gt_conv_shape){.H = 28, .W = 28, .C = 1, .K = 6, .R = 5, .S = 5, .stride = 1, .pad = 2},
        true, false);
  case 2:
    return conv_spec(
        (gt_conv_shape){.H = 9, .W = 8, .C = 3, .K = 8, .R = 3, .S = 3, .stride = 2, .pad = 1},
        false, true);
  case 3:
    return conv_spec(
        (gt_conv_shape){.H = 8, .W = 8, .C = 64, .K = 64, .R = 3, .S = 3, .stride = 1, .pad = 1},
        false, true);
  case 4:
    return conv_spec(
        (gt_conv_shape){.H = 7, .W = 7, .C = 40, .K = 48, .R = 3, .S = 3, .stride = 2, .pad = 1},
        false, true);
  case 5:
    return conv_spec(
        (gt_conv_shape){.H = 12, .W = 12, .C = 4, .K = 32, .R = 3, .S = 3, .stride = 1, .pad = 1},
        true, true);
  case 6:
    return linear_spec(120, 84);
  case 7:
    return conv_spec(
        (gt_conv_shape){.H = 7, .W = 10, .C = 32, .K = 48, .R = 3, .S = 3, .stride = 1, .pad = 0},
        true, true);
  case 8:
    return conv_spec(
        (gt_conv_shape){.H = 5, .W = 5, .C = 16, .K = 16, .R = 3, .S = 3, .stride = 1, .pad = 2},
        false, true);
  case 9:
    return conv_spec(
        (gt_conv_shape){.H = 1, .W = 2, .C = 16, .K = 32, .R = 3, .S = 3, .stride = 1, .pad = 1},
        false, true);
  default:
    return linear_spec(33, 7);
  }
}
enum { SPECS = 11 };

/* Compares all three passes of a layer with ref. */
static void check(gt_layer *layer, const gt_layer_spec *spec, size_t N) {
  const gt_conv_shape *s = &spec->conv.shape;
  const size_t nx = N * s->H * s->W * s->C, ny = N * s->P * s->Q * s->K,
               nw = s->R * s->S * s->C * s->K, nwork = gt_layer_work(layer, N);
  values y = values_of(GT_F32, ny), dx = values_of(GT_F32, nx), dw = values_of(GT_F32, nw),
         db = values_of(GT_F32, s->K);
  float *x = numbers(nx), *dy = numbers(ny), *w = numbers(nw), *b = numbers(s->K),
        *work = numbers(nwork), *right = numbers(nx + ny + nw), *right_b = numbers(s->K);
  const float *bias = spec->conv.bias ? b : NULL;
  float *grad_b = spec->conv.bias ? db.f : NULL;
  gt_layer_forward(layer, y.f, x, w, bias, N, work);
  if (spec->linear)
    ref->linear_forward(right, x, w, bias, N, s->C, s->K);
  else
    ref->conv_forward(right, x, w, bias, s, N, NULL);
  same_sums(&y, right, nw / s->K, "y");
  if (spec->conv.needs_input_gradient) {
    gt_layer_backward_input(layer, dx.f, dy, w, N, work);
    if (spec->linear)
      ref->linear_backward_input(right, dy, w, N, s->C, s->K);
    else
      ref->conv_backward_input(right, dy, w, s, N, NULL);
    same_sums(&dx, right, s->R * s->S * s->K, "dx");
  }
  gt_layer_backward_weight(layer, dw.f, grad_b, dy, x, N, work);
  if (spec->linear)
    ref->linear_backward_weight(right, right_b, dy, x, N, s->C, s->K);
  else
    ref->conv_backward_weight(right, right_b, dy, x, s, N, NULL);
  same_sums(&dw, right, N * s->P * s->Q, "dw");
  if (grad_b) same_sums(&db, right_b, N * s->P * s->Q, "db");
  release(right_b, s->K), release(right, nx + ny + nw), release(work, nwork), release(b, s->K),
      release(w, nw), release(dy, ny), release(x, nx);
  values_release(&db), values_release(&dw), values_release(&dx), values_release(&y);
}

static void every_algorithm_computes_the_same(void) {
  size_t seen[GT_ALGORITHMS] = {0};
  for (size_t i = 0; i < SPECS; i++)
    for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++) {
      const gt_layer_spec spec = spec_of(i);
      /* The method if the pass supports it, else one that differs from those of the other
         passes. */
      gt_algorithm algorithms[GT_PASSES];
      for (int pass = 0; pass < GT_PASSES; pass++) {
        const bool can = gt_algorithm_can(&spec, 3, (gt_pass_id)pass, (gt_algorithm)algorithm);
        algorithms[pass] = can ? (gt_algorithm)algorithm : GT_ALGORITHM_BLAS;
        seen[algorithm] += can;
      }
      gt_layer *layer = gt_layer_create(automatic, &context, &spec, algorithms);
      gt_layer_prepare(layer, 3);
      check(layer, &spec, 3);
      check(layer, &spec, 1);
      gt_layer_close(layer);
    }
  for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++)
    if (automatic->prepared() || algorithm <= GT_ALGORITHM_BLAS) assert_true(seen[algorithm] > 0);
}

/* True if no method of a pass takes 30 times as long as another. */
static bool first_is_quick(void) {
  const gt_layer_spec spec = linear_spec(400, 120);
  gt_choices choices = {0};
  bool quick = true;
  gt_choices_add(&choices, &spec, 512);
  gt_choices_measure(&choices, automatic);
  for (int pass = 0; pass < GT_PASSES; pass++) {
    double least = 1, most = 0;
    for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++) {
      const double took = choices.items[0].seconds[pass][algorithm];
      if (took > 0 && took < least) least = took;
      if (took > most) most = took;
    }
    if (most <= 30 * least) continue;
    print_message("pass %s: %.3f ms in one way, %.3f ms in another\n",
                  gt_pass_name((gt_pass_id)pass), 1e3 * most, 1e3 * least);
    quick = false;
  }
  gt_choices_close(&choices);
  return quick;
}

/* Must run first, before any library has computed anything: some compile their code at the first
   product of the process, which takes 30 ms where this product takes 0.4 ms.  Other programs can
   delay one process, but not five. */
static void the_first_product_is_not_measured(void) {
  int status = 1;
  for (int i = 0; i < 5 && status != 0; i++) {
    const pid_t child = fork();
    if (child == 0) _exit(first_is_quick() ? 0 : 1);
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
  }
  assert_int_equal(status, 0);
}

static gt_choices measured(void) {
  gt_choices choices = {0};
  for (size_t i = 0; i < SPECS; i++) {
    const gt_layer_spec spec = spec_of(i);
    gt_choices_add(&choices, &spec, 4 + i);
    gt_choices_add(&choices, &spec, 4 + i); /* a second one is not added */
  }
  gt_choices_measure(&choices, automatic);
  return choices;
}

/* The chosen method is never slower than the rule in the measurement; passes that are not needed
   keep the rule. */
static void measuring(void) {
  gt_choices choices = measured();
  assert_int_equal(choices.n, SPECS);
  assert_true(choices.seconds > 0);
  for (size_t i = 0; i < choices.n; i++) {
    const gt_choice *c = &choices.items[i];
    for (int pass = 0; pass < GT_PASSES; pass++) {
      assert_true(gt_algorithm_can(&c->layer, c->batch, (gt_pass_id)pass, c->algorithms[pass]));
      if (pass == GT_PASS_INPUT && !c->layer.conv.needs_input_gradient) {
        assert_int_equal(c->algorithms[pass], GT_ALGORITHM_RULE);
        continue;
      }
      const double took = c->seconds[pass][c->algorithms[pass]]; /* 0: the rule's own method */
      assert_true(took <= c->seconds[pass][GT_ALGORITHM_RULE]);
    }
  }
  gt_choices_close(&choices);
}

static void text_and_back(void) {
  gt_choices choices = measured(), back = {0};
  bool found = false;
  char *text = gt_choices_text(&choices), *again;
  must(gt_choices_parse(&back, "text", text, &found));
  assert_true(found);
  back.seconds = choices.seconds;
  again = gt_choices_text(&back);
  assert_string_equal(text, again);
  for (size_t i = 0; i < SPECS; i++) {
    const gt_layer_spec spec = spec_of(i);
    assert_non_null(gt_choices_find(&back, &spec, 4 + i));
    assert_null(gt_choices_find(&back, &spec, 5 + i));
  }
  gt_free(again);
  gt_free(text);
  gt_choices_close(&back);
  gt_choices_close(&choices);
}

/* In bf16 the rule computes small linear layers in float32, which cannot be chosen by name: the
   text says `rule`. */
static void bf16_and_back(void) {
  const char *why;
  gt_choices choices = {0}, back = {0};
  gt_layer_spec small = linear_spec(64, 7), large = linear_spec(64, 40), conv = spec_of(3);
  bool found = false;
  if (!automatic->prepared() || !gt_kernels_bf16(&why)) return;
  small.conv.precision = large.conv.precision = GT_BF16;
  conv.conv.in = conv.conv.out = conv.conv.precision = GT_BF16;
  gt_choices_add(&choices, &small, 4), gt_choices_add(&choices, &large, 4),
      gt_choices_add(&choices, &conv, 4);
  gt_choices_measure(&choices, automatic);
  char *text = gt_choices_text(&choices);
  must(gt_choices_parse(&back, "text", text, &found));
  assert_true(found);
  assert_int_equal(back.n, 3);
  gt_free(text);
  gt_choices_close(&back);
  gt_choices_close(&choices);
}

static void of_another_machine(void) {
  gt_choices choices = {0};
  bool found = true;
  must(gt_choices_parse(
      &choices, "text",
      "machine another\nlinear batch=4 inputs=3 outputs=2 bias=1 gradient=1 types=f32,f32,f32: "
      "forward=blas input=blas weight=blas\n",
      &found));
  assert_false(found);
  assert_int_equal(choices.n, 0);
  gt_choices_close(&choices);
}

static void mistakes(void) {
  static const char layer[] =
      "machine m\nlinear batch=4 inputs=3 outputs=2 bias=1 gradient=1 types=f32,f32,f32: ";
  static const char *const texts[][2] = {
      {"", "f holds no line `machine ...`"},
      {"linear batch=4", "f, line 1: \"linear batch=4\" stands before any line `machine ...`"},
      {"machine m\n# words\n\nlinear batch=4", "f, line 4: \"linear batch=4\" is not a choice"},
      {"machine m\nlinear batch=0 inputs=3 outputs=2 bias=1 gradient=1 types=f32,f32,f32: "
       "forward=blas input=blas weight=blas",
       "is not a choice"},
      {"machine m\nlinear batch=4 inputs=3 outputs=2 bias=1 gradient=1 types=f32,f32,f16: "
       "forward=blas input=blas weight=blas",
       "is not a choice"},
      {"machine m\nconv batch=4 image=2x2x1 channels=6 window=5x5 stride=1 pad=0 bias=1 gradient=0 "
       "types=f32,f32,f32: forward=blas input=rule "
       "weight=blas",
       "is not a choice"},
      {"machine m\nconv batch=4 image=9x9x1 channels=6 window=5x5 stride=0 pad=0 bias=1 gradient=0 "
       "types=f32,f32,f32: forward=blas input=rule "
       "weight=blas",
       "is not a choice"},
      {"+forward=blas input=blas", "is not a choice"},
      {"+forward=blas input=blas weight=best",
       "f, line 2: weight=best is not available for this layer"},
      {"+forward=direct input=blas weight=blas",
       "f, line 2: forward=direct is not available for this layer"},
      {"+forward=blas input=dnn-turned weight=blas",
       "f, line 2: input=dnn-turned is not available for this layer"},
  };
  for (size_t i = 0; i < COUNT(texts); i++) {
    char text[512];
    gt_choices choices = {.machine = "m"};
    bool found;
    snprintf(text, sizeof text, "%s%s", texts[i][0][0] == '+' ? layer : "",
             texts[i][0] + (texts[i][0][0] == '+'));
    must_fail(gt_choices_parse(&choices, "f", text, &found), GT_ERR_JOB, texts[i][1]);
    gt_choices_close(&choices);
  }
}

int main(void) {
  rng = gt_rng_make(23, GT_RNG_TEST, 0, 0);
  ref = gt_kernels_find("ref");
  automatic = gt_kernels_find("auto");
  const int failed =
      RUN_TESTS(NULL, NULL, the_first_product_is_not_measured, every_algorithm_computes_the_same,
                measuring, text_and_back, bf16_and_back, of_another_machine, mistakes);
  if (context) automatic->prepared()->close(context);
  return failed;
}
