/* Optimizers against float64 sequences computed here from the papers; schedules; the content of
   acc; saved and loaded state. */
#include "tests.h"
#include "geotrain/nn.h"

enum { N = 37, STEPS = 25 };

static double gradient(size_t i, int t) {
  return sin((double)(i + 1) * 0.7 + (double)t * 0.3) + 0.1;
}

/* Computes the value of one parameter after `steps` steps, in float64. */
static double path(const gt_optim_spec *s, double w, size_t i, int steps) {
  double v = 0.0, m = 0.0, q = 0.0;
  for (int t = 1; t <= steps; t++) {
    double g = (double)(float)gradient(i, t);
    const double lr = s->schedule.lr;
    if (s->kind == GT_OPTIMIZER_ADAMW)
      w *= 1.0 - lr * s->weight_decay;
    else
      g += s->weight_decay * w;
    if (s->kind == GT_OPTIMIZER_SGD) {
      v = s->momentum * v + g;
      w -= lr * (s->nesterov ? g + s->momentum * v : v);
      continue;
    }
    m = s->beta1 * m + (1.0 - s->beta1) * g;
    q = s->beta2 * q + (1.0 - s->beta2) * g * g;
    w -= lr * (m / (1.0 - pow(s->beta1, t))) / (sqrt(q / (1.0 - pow(s->beta2, t))) + s->epsilon);
  }
  return w;
}

static const gt_optim_spec specs[] = {
    {.kind = GT_OPTIMIZER_SGD, .schedule = {.lr = 0.05}},
    {.kind = GT_OPTIMIZER_SGD, .schedule = {.lr = 0.05}, .weight_decay = 0.1},
    {.kind = GT_OPTIMIZER_SGD, .schedule = {.lr = 0.05}, .momentum = 0.9},
    {.kind = GT_OPTIMIZER_SGD, .schedule = {.lr = 0.05}, .momentum = 0.9, .weight_decay = 0.1},
    {.kind = GT_OPTIMIZER_SGD,
     .schedule = {.lr = 0.05},
     .momentum = 0.9,
     .weight_decay = 0.1,
     .nesterov = true},
    {.kind = GT_OPTIMIZER_ADAM,
     .schedule = {.lr = 0.01},
     .beta1 = 0.9,
     .beta2 = 0.999,
     .epsilon = 1e-8},
    {.kind = GT_OPTIMIZER_ADAM,
     .schedule = {.lr = 0.01},
     .beta1 = 0.8,
     .beta2 = 0.99,
     .epsilon = 1e-3,
     .weight_decay = 0.1},
    {.kind = GT_OPTIMIZER_ADAMW,
     .schedule = {.lr = 0.01},
     .beta1 = 0.9,
     .beta2 = 0.999,
     .epsilon = 1e-8,
     .weight_decay = 0.3},
};
enum { NSPECS = COUNT(specs) };

static void start(float *w) {
  for (size_t i = 0; i < N; i++) w[i] = 0.5f + (float)i / (float)N;
}

static void gradients(float *g, int t) {
  for (size_t i = 0; i < N; i++) g[i] = (float)gradient(i, t);
}

static void sequences(void) {
  for (size_t k = 0; k < NSPECS; k++) {
    gt_optim *optim;
    must(gt_optim_create(&optim, &specs[k], N, true));
    float w[N], w0[N], g[N], acc[N] = {0};
    start(w);
    start(w0);
    for (int t = 1; t <= STEPS; t++) {
      gradients(g, t);
      gt_optim_step(optim, gt_vec_of(w, N), gt_vec_of(g, N), gt_vec_of(acc, N));
    }
    assert_int_equal(gt_optim_steps(optim), STEPS);
    for (size_t i = 0; i < N; i++) {
      const double right = path(&specs[k], (double)w0[i], i, STEPS);
      if (fabs((double)w[i] - right) > 2e-5)
        fail_msg("spec %zu: w[%zu] is %.8g; %.8g is right", k, i, (double)w[i], right);
      if (fabs((double)w[i] - right) > 0.5 * fabs((double)w0[i] - right))
        fail_msg("spec %zu moved nothing", k);
      /* acc is the change of the parameters */
      assert_true(fabs((double)acc[i] - ((double)w[i] - (double)w0[i])) < 5e-6);
    }
    gt_optim_close(optim);
  }
}

/* acc NULL does not change the bits of the parameters; after one step, acc is exactly the
   change. */
static void acc_is_the_update(void) {
  for (size_t k = 0; k < NSPECS; k++) {
    gt_optim *a, *b;
    must(gt_optim_create(&a, &specs[k], N, true));
    must(gt_optim_create(&b, &specs[k], N, true));
    float wa[N], wb[N], g[N];
    start(wa);
    start(wb);
    for (int t = 1; t <= 5; t++) {
      float acc[N] = {0}, before[N];
      memcpy(before, wa, sizeof before);
      gradients(g, t);
      gt_optim_step(a, gt_vec_of(wa, N), gt_vec_of(g, N), gt_vec_of(acc, N));
      gt_optim_step(b, gt_vec_of(wb, N), gt_vec_of(g, N), gt_vec_of(NULL, N));
      assert_memory_equal(wa, wb, sizeof wa);
      for (size_t i = 0; i < N; i++) assert_true(before[i] + acc[i] == wa[i] && acc[i] != 0.0f);
    }
    gt_optim_close(a);
    gt_optim_close(b);
  }
}

/* ---- clipping -------------------------------------------------------------------------------- */

/* Tensors of the N parameters, not all of one length. */
static const gt_view tensors[] = {
    {.offset = 0, .count = 5}, {.offset = 5, .count = 31}, {.offset = 36, .count = 1}};

static double norm(const float *g) {
  double sum = 0;
  for (size_t i = 0; i < N; i++) sum += (double)g[i] * (double)g[i];
  return sqrt(sum);
}

/* A step with clip on g, and one without on `scaled`, give the same bits; returns the factor. */
static float same_step(const gt_optim_spec *spec, const float *g, const float *scaled) {
  gt_optim_spec without = *spec;
  gt_optim *a, *b;
  float wa[N], wb[N], acca[N] = {0}, accb[N] = {0}, share = 0;
  without.clip = 0;
  must(gt_optim_create(&a, spec, N, true));
  must(gt_optim_create(&b, &without, N, true));
  start(wa);
  start(wb);
  for (int t = 0; t < 3; t++) { /* the state arrays, too, see the clipped gradient */
    share =
        gt_optim_step(a, gt_vec_of(wa, N), gt_vec_of((float *)(uintptr_t)g, N), gt_vec_of(acca, N));
    assert_true(gt_optim_step(b, gt_vec_of(wb, N), gt_vec_of((float *)(uintptr_t)scaled, N),
                              gt_vec_of(accb, N)) == 1);
  }
  assert_memory_equal(wa, wb, sizeof wa);
  assert_memory_equal(acca, accb, sizeof acca);
  gt_optim_close(a);
  gt_optim_close(b);
  return share;
}

/* Norms above, below and at the limit; the division into tensors does not change the norm. */
static void clipped(void) {
  float g[N], scaled[N];
  gradients(g, 3);
  const double limits[] = {norm(g) * 1e-3, norm(g) * 0.7, norm(g) * (1 + 1e-12), norm(g) * 4};
  for (size_t k = 0; k < NSPECS; k++)
    for (size_t l = 0; l < 4; l++)
      for (size_t n = 0; n < 2; n++) {
        gt_optim_spec spec = specs[k];
        spec.clip = limits[l];
        spec.tensors = tensors;
        spec.ntensors = n ? 3 : 0;
        const float share = l < 2 ? (float)(limits[l] / norm(g)) : 1;
        for (size_t i = 0; i < N; i++) scaled[i] = share * g[i];
        assert_float_equal(same_step(&spec, g, scaled), share, 1e-7F * share);
      }
}

/* Only the tensors count, not gaps between them. */
static void norm_is_of_tensors(void) {
  static const gt_view most[] = {{.offset = 0, .count = 5}, {.offset = 20, .count = 17}};
  float g[N], w[N];
  double sum = 0;
  gt_optim *optim;
  gradients(g, 1);
  start(w);
  for (size_t i = 0; i < N; i++)
    if (i < 5 || i >= 20) sum += (double)g[i] * (double)g[i];
  gt_optim_spec spec = specs[0];
  spec.clip = 0.5;
  spec.tensors = most;
  spec.ntensors = 2;
  must(gt_optim_create(&optim, &spec, N, true));
  const float share = gt_optim_step(optim, gt_vec_of(w, N), gt_vec_of(g, N), gt_vec_of(NULL, N));
  assert_float_equal(share, (float)(0.5 / sqrt(sum)), 1e-7F);
  gt_optim_close(optim);
}

/* Zeros stay zeros; squares beyond the largest float are summed; non-finite gradients are not
   changed. */
static void clipped_extremes(void) {
  gt_optim_spec spec = specs[2];
  float g[N] = {0}, scaled[N];
  spec.clip = 1;
  assert_true(same_step(&spec, g, g) == 1);
  for (size_t i = 0; i < N; i++) g[i] = i % 2 ? 1e30f : -1e30f;
  const float share = (float)(1 / norm(g));
  for (size_t i = 0; i < N; i++) scaled[i] = share * g[i];
  assert_true(same_step(&spec, g, scaled) == share);
  assert_float_equal(norm(scaled), 1, 1e-6);
  gradients(g, 1);
  g[7] = INFINITY;
  assert_true(same_step(&spec, g, g) == 1);
  g[7] = NAN;
  assert_true(same_step(&spec, g, g) == 1);
}

/* Two optimizers with a part of the tensors each make the steps of one with all tensors, if they
   get the norm of all. */
static void clipped_in_parts(void) {
  enum { CUT = 36 }; /* the first two tensors */
  static const gt_view rest[] = {{.offset = 0, .count = 1}};
  for (size_t k = 0; k < NSPECS; k++) {
    gt_optim_spec spec = specs[k], low, high;
    gt_optim *all, *a, *b;
    float g[N], w[N], parts[N];
    spec.clip = 1.5;
    spec.tensors = tensors;
    spec.ntensors = 3;
    low = high = spec;
    low.ntensors = 2;
    high.tensors = rest;
    high.ntensors = 1;
    must(gt_optim_create(&all, &spec, N, true));
    must(gt_optim_create(&a, &low, CUT, true));
    must(gt_optim_create(&b, &high, N - CUT, true));
    start(w);
    start(parts);
    for (int t = 1; t <= 5; t++) {
      double squares[3];
      gradients(g, t);
      assert_true(gt_optim_tensors(a) == 2 && gt_optim_tensors(b) == 1);
      gt_optim_squares(a, gt_vec_of(g, CUT), squares);
      gt_optim_squares(b, gt_vec_of(g + CUT, N - CUT), squares + 2);
      const double of_all = sqrt(squares[0] + squares[1] + squares[2]);
      const gt_vec no_a = gt_vec_of(NULL, CUT), no_b = gt_vec_of(NULL, N - CUT);
      const float share = gt_optim_step(all, gt_vec_of(w, N), gt_vec_of(g, N), gt_vec_of(NULL, N));
      assert_true(share < 1);
      assert_true(gt_optim_step_of(a, gt_vec_of(parts, CUT), gt_vec_of(g, CUT), no_a, of_all) ==
                  share);
      assert_true(gt_optim_step_of(b, gt_vec_of(parts + CUT, N - CUT), gt_vec_of(g + CUT, N - CUT),
                                   no_b, of_all) == share);
      assert_memory_equal(w, parts, sizeof w);
    }
    gt_optim_close(all);
    gt_optim_close(a);
    gt_optim_close(b);
  }
}

static void saved_and_loaded(void) {
  for (size_t k = 0; k < NSPECS; k++) {
    gt_optim *a, *b;
    must(gt_optim_create(&a, &specs[k], N, true));
    must(gt_optim_create(&b, &specs[k], N, true));
    float wa[N], wb[N], g[N];
    start(wa);
    for (int t = 1; t <= 9; t++)
      gradients(g, t), gt_optim_step(a, gt_vec_of(wa, N), gt_vec_of(g, N), gt_vec_of(NULL, N));
    gt_state kept = {0};
    gt_optim_save(a, "", &kept);
    assert_non_null(gt_state_find(&kept, "optim/", "steps"));
    const size_t items = kept.n;
    gt_optim_save(b, "sync/", &kept); /* next to the first optimizer */
    assert_int_equal(kept.n, 2 * items);
    assert_non_null(gt_state_find(&kept, "sync/optim/", "steps"));
    must(gt_optim_load(b, "", &kept));
    memcpy(wb, wa, sizeof wb);
    for (int t = 10; t <= 15; t++) {
      gradients(g, t);
      gt_optim_step(a, gt_vec_of(wa, N), gt_vec_of(g, N), gt_vec_of(NULL, N));
      gt_optim_step(b, gt_vec_of(wb, N), gt_vec_of(g, N), gt_vec_of(NULL, N));
    }
    assert_memory_equal(wa, wb, sizeof wa);
    assert_int_equal(gt_optim_steps(b), 15);
    gt_optim *other;
    must(gt_optim_create(&other, &specs[k], N + 1, true));
    assert_int_equal(gt_optim_load(other, "", &kept), items > 1 ? GT_ERR_CKPT : GT_OK);
    gt_optim_close(other);
    gt_state_close(&kept);
    gt_optim_close(a);
    gt_optim_close(b);
  }
}

static void without_memory_only_steps_count(void) {
  gt_optim *optim;
  must(gt_optim_create(&optim, &specs[5], 1000000, false));
  const gt_vec none = gt_vec_of(NULL, 1000000);
  for (int t = 0; t < 3; t++) gt_optim_step(optim, none, none, none);
  assert_int_equal(gt_optim_steps(optim), 3);
  gt_optim_close(optim);
  gt_optim_close(NULL);
}

static void what_is_refused(void) {
  gt_optim *optim;
  assert_int_equal(gt_optim_create(&optim,
                                   &(gt_optim_spec){.kind = GT_OPTIMIZER_SGD, .nesterov = true}, 1,
                                   true),
                   GT_ERR_JOB);
  for (int kind = 0; gt_optimizer_names[kind]; kind++) {
    must(gt_optim_create(&optim, &(gt_optim_spec){.kind = (gt_optimizer)kind}, 1, true));
    gt_optim_close(optim);
  }
}

static void is(const gt_lr_schedule *s, int64_t step, double right) {
  assert_true(fabs(gt_lr_at(s, step) - right) < 1e-12);
}

static void schedules(void) {
  const gt_lr_schedule constant = {.kind = GT_LR_CONSTANT, .lr = 0.4, .warmup_steps = 4};
  is(&constant, 0, 0.1), is(&constant, 1, 0.2), is(&constant, 3, 0.4), is(&constant, 4, 0.4),
      is(&constant, 1000000, 0.4);
  const gt_lr_schedule steps = {.kind = GT_LR_STEP, .lr = 1.0, .gamma = 0.5, .step_every = 10};
  is(&steps, 0, 1.0), is(&steps, 9, 1.0), is(&steps, 10, 0.5), is(&steps, 19, 0.5),
      is(&steps, 35, 0.125);
  const gt_lr_schedule cosine = {
      .kind = GT_LR_COSINE, .lr = 1.0, .lr_min = 0.2, .warmup_steps = 2, .total_steps = 10};
  is(&cosine, 0, 0.5), is(&cosine, 2, 1.0), is(&cosine, 6, 0.6), is(&cosine, 10, 0.2),
      is(&cosine, 99, 0.2);
  is(&cosine, 4, 0.2 + 0.4 * (1.0 + sqrt(0.5)));
  gt_lr_schedule late = cosine;
  late.constant_steps = 4;
  is(&late, 0, 0.5), is(&late, 2, 1.0), is(&late, 6, 1.0), is(&late, 8, 0.6), is(&late, 10, 0.2);
  /* Spread at half of the cosine: it continues at the same rate and ends at the new last step. */
  for (int64_t left = 1; left < 20; left += 3) {
    gt_lr_schedule spread = cosine;
    gt_lr_spread(&spread, &(gt_lr_part){6, 6 + left, gt_lr_share(&cosine, 6)});
    is(&spread, 6, 0.6), is(&spread, 6 + left, 0.2);
    /* Earlier steps keep their rates, to the bit. */
    assert_true(gt_lr_at(&spread, 5) == gt_lr_at(&cosine, 5));
    if (left % 2 == 0) is(&spread, 6 + left / 2, gt_lr_at(&cosine, 8));
    gt_lr_spread(&spread, &(gt_lr_part){6, 10, gt_lr_share(&spread, 6)});
    is(&spread, 7, gt_lr_at(&cosine, 7)), is(&spread, 9, gt_lr_at(&cosine, 9));
  }
  /* During warm-up, the share of the cosine is 0. */
  gt_lr_schedule early = cosine;
  gt_lr_spread(&early, &(gt_lr_part){1, 22, gt_lr_share(&cosine, 1)});
  is(&early, 1, 1.0), is(&early, 2, 1.0), is(&early, 12, 0.6), is(&early, 22, 0.2);
  gt_optim *optim;
  must(gt_optim_create(&optim, &(gt_optim_spec){.kind = GT_OPTIMIZER_SGD, .schedule = constant}, 1,
                       true));
  float w = 0.0f, g = -1.0f;
  gt_optim_step(optim, gt_vec_of(&w, 1), gt_vec_of(&g, 1), gt_vec_of(NULL, 1));
  assert_true(w == 0.1f); /* the learning rate of step 0 */
  assert_true(fabs(gt_optim_lr(optim) - 0.2) < 1e-12);
  gt_optim_close(optim);
}

/* An optimizer of no parameters counts the steps of another one, and has no state but their
   number. */
static void one_that_counts(void) {
  gt_optim *optim = NULL;
  gt_optim_spec spec = {.kind = GT_OPTIMIZER_ADAM,
                        .schedule = {.kind = GT_LR_STEP, .lr = 1, .gamma = 0.5, .step_every = 2}};
  must(gt_optim_create(&optim, &spec, 0, true));
  for (int i = 0; i < 3; i++) gt_optim_count(optim);
  assert_int_equal(gt_optim_steps(optim), 3);
  assert_true(gt_optim_lr(optim) == 0.5);
  gt_state saved = {0};
  gt_optim_save(optim, "", &saved);
  assert_int_equal(saved.n, 1);
  assert_string_equal(saved.items[0].name, "optim/steps");
  must(gt_optim_load(optim, "", &saved));
  gt_state_close(&saved);
  gt_optim_close(optim);
}

TESTS(sequences, acc_is_the_update, saved_and_loaded, without_memory_only_steps_count,
      what_is_refused, schedules, one_that_counts, clipped, norm_is_of_tensors, clipped_extremes,
      clipped_in_parts)
