/* The graph's public interface: arrays and names, initial values, hash, errors, no allocation in a
   step, progress, and learning. */
#include "world.h"

static const gt_sample_shape mnist = {28, 28, 1, 10, 0};

static gt_graph *lenet(const gt_sample_shape *shape, size_t batch_max, const char *kernels) {
  return w_graph(&(gt_graph_spec){.model = "lenet5",
                                  .shape = *shape,
                                  .batch_max = batch_max,
                                  .kernels = gt_kernels_find(kernels)});
}

static void names_and_places(void) {
  static const struct {
    const char *name;
    size_t count;
  } right[] = {{"conv1.weight", 150}, {"conv1.bias", 6}, {"conv2.weight", 2400}, {"conv2.bias", 16},
               {"fc1.weight", 48000}, {"fc1.bias", 120}, {"fc2.weight", 10080},  {"fc2.bias", 84},
               {"fc3.weight", 840},   {"fc3.bias", 10}};
  const gt_kernels *automatic = gt_kernels_find("auto");
  gt_graph *graph = lenet(&mnist, 0, "auto"); /* arrays only */
  const gt_arrays *arrays = gt_graph_arrays(graph);
  assert_int_equal(arrays->nviews, 10);
  assert_int_equal(arrays->params.n, 61706);
  assert_int_equal(arrays->grads.n, 61706);
  assert_int_equal(arrays->buffers.n, 0);
  size_t at = 0;
  for (size_t v = 0; v < 10; v++) {
    assert_string_equal(arrays->views[v].name, right[v].name);
    assert_int_equal(arrays->views[v].count, right[v].count);
    assert_int_equal(arrays->views[v].offset, at); /* packed */
    at += right[v].count;
  }
  assert_int_equal((uintptr_t)arrays->params.data % 64, 0);
  /* 2 x (117600 + 240000 + 48000 + 10080 + 840) multiply-adds, three times, the first convolution
     twice */
  assert_int_equal(gt_graph_flops(graph), 2 * (2 * 117600 + 3 * (240000 + 48000 + 10080 + 840)));
  /* oneDNN's product if the rule selects it, which it does on no Arm CPU. */
  const bool dnn = gt_kernels_dnn_version() && automatic->prepares_linear(400, 120, GT_F32);
  assert_string_equal(gt_graph_kernels(graph),
                      dnn ? "conv=direct linear=dnn linear=blas pool=blas relu=blas"
                          : "conv=direct linear=blas pool=blas relu=blas");
  gt_graph_close(graph);
}

static void initial_values(void) {
  gt_graph *a = lenet(&mnist, 0, "ref"), *b = lenet(&mnist, 4, "blas"),
           *c = lenet(&(gt_sample_shape){32, 32, 3, 10, 0}, 0, "ref");
  gt_graph_init(a, 7);
  gt_graph_init(b, 7);
  gt_graph_init(c, 7);
  const gt_arrays *pa = gt_graph_arrays(a), *pb = gt_graph_arrays(b), *pc = gt_graph_arrays(c);
  /* whatever the batch and kernels */
  assert_memory_equal(pa->params.data, pb->params.data, pa->params.n * sizeof(float));
  const double fan_in[5] = {25, 150, 400, 120, 84};
  for (size_t v = 0; v < 10; v++) {
    const double bound = 1.0 / sqrt(fan_in[v / 2]);
    double sum = 0.0, squares = 0.0, most = 0.0;
    const size_t n = pa->views[v].count;
    for (size_t i = 0; i < n; i++) {
      const double value = (double)pa->params.data[pa->views[v].offset + i];
      sum += value, squares += value * value, most = fmax(most, fabs(value));
    }
    assert_true(most <= bound * 1.0000001);
    if (n < 800) continue;
    assert_true(most > 0.98 * bound);
    assert_true(fabs(sum / (double)n) < 4.0 * bound / sqrt(3.0 * (double)n));
    assert_true(fabs(squares / (double)n / (bound * bound / 3.0) - 1.0) < 0.1);
  }
  /* keyed by the tensor, not by its predecessors: fc2 is the same in a model with another first
     layer */
  assert_memory_equal(pa->params.data + pa->views[6].offset, pc->params.data + pc->views[6].offset,
                      10080 * sizeof(float));
  gt_graph_init(b, 8);
  assert_memory_not_equal(pa->params.data, pb->params.data, 64);
  gt_graph_close(a);
  gt_graph_close(b);
  gt_graph_close(c);
}

static void hash_tells_models_apart(void) {
  char a[GT_SHA256_HEX], b[GT_SHA256_HEX];
  gt_graph *one = lenet(&mnist, 0, "ref"), *two = lenet(&mnist, 16, "auto"),
           *other = lenet(&(gt_sample_shape){28, 28, 1, 11, 0}, 0, "ref");
  gt_graph_hash(one, a);
  gt_graph_hash(two, b);
  assert_string_equal(a, b);
  gt_graph_hash(other, b);
  assert_string_not_equal(a, b);
  gt_graph_close(one);
  gt_graph_close(two);
  gt_graph_close(other);
}

static void what_is_refused(void) {
  gt_graph *graph;
  const gt_kernels *ref = gt_kernels_find("ref");
  must_fail(gt_graph_create(
                &graph,
                &(gt_graph_spec){.model = "lenet", .shape = mnist, .batch_max = 1, .kernels = ref}),
            GT_ERR_JOB, "lenet5");
  static const struct {
    gt_sample_shape shape;
    const char *says;
  } bad[] = {{{11, 28, 1, 10, 0}, "11 x 28"},
             {{1, 1, 1, 10, 0}, "images of 1 x 1 are too small for model lenet5"},
             {{28, 28, 1, 1, 0}, "samples are 28 x 28 x 1 with 1 classes"},
             {{28, 28, 0, 10, 0}, "samples are 28 x 28 x 0 with 10 classes"}};
  for (size_t i = 0; i < COUNT(bad); i++)
    must_fail(gt_graph_create(&graph, &(gt_graph_spec){.model = "lenet5",
                                                       .shape = bad[i].shape,
                                                       .batch_max = 1,
                                                       .kernels = ref}),
              GT_ERR_DATA, bad[i].says);
  gt_graph_close(lenet(&(gt_sample_shape){12, 12, 1, 2, 0}, 1, "ref"));
  gt_graph_close(NULL);
  assert_non_null(gt_model_find("lenet5"));
  must_contain(gt_model_find("lenet5")->source, "sqrt(5)");
  for (const char *const *name = gt_model_names; *name; name++)
    assert_string_equal(gt_model_find(*name)->name, *name);
}

static void count(void *context) {
  ++*(int *)context;
}

/* One colour per class, which can be learned.  The step does not allocate, and short batches count
   only their own samples. */
static void learns_without_allocating(void) {
  enum { B = 8 };
  gt_graph *graph = lenet(&(gt_sample_shape){12, 14, 1, 3, 0}, B, "auto");
  const gt_arrays *arrays = gt_graph_arrays(graph);
  gt_optim *optim;
  const gt_optim_spec spec = {
      .kind = GT_OPTIMIZER_SGD, .schedule = {.kind = GT_LR_CONSTANT, .lr = 0.05}, .momentum = 0.9};
  must(gt_optim_create(&optim, &spec, arrays->params.n, true));
  gt_graph_init(graph, 3);
  float x[B * 168];
  int32_t labels[B];
  int passes = 0;
  gt_graph_on_progress(graph, count, &passes);
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  const int64_t total = gt_alloc_total();
  gt_metrics metrics = {0};
  double first = 0.0;
  for (int step = 0; step < 60; step++) {
    for (size_t i = 0; i < B; i++) {
      labels[i] = (int32_t)gt_rng_below(&rng, 3);
      for (size_t k = 0; k < 168; k++)
        x[i * 168 + k] = (float)(labels[i] - 1) + 0.1f * (float)gt_rng_normal(&rng);
    }
    gt_graph_step(graph, x, labels, B, true, &metrics);
    if (step == 0) first = metrics.loss_sum;
    gt_optim_step(optim, arrays->params, arrays->grads, gt_vec_of(NULL, arrays->params.n));
  }
  assert_true(passes >= 60 * 20);
  assert_true(metrics.loss_sum < 0.1 * first);
  assert_int_equal(metrics.correct, B);
  /* evaluation does not change the gradients; a batch gives the sum of its halves */
  const float kept = arrays->grads.data[100];
  gt_metrics whole, half, rest;
  gt_graph_step(graph, x, labels, B, false, &whole);
  gt_graph_step(graph, x, labels, 3, false, &half);
  gt_graph_step(graph, x + 3 * 168, labels + 3, B - 3, false, &rest);
  assert_true(arrays->grads.data[100] == kept);
  assert_int_equal(half.samples, 3);
  assert_int_equal(whole.correct, half.correct + rest.correct);
  assert_true(fabs(whole.loss_sum - half.loss_sum - rest.loss_sum) < 1e-5 * (1.0 + whole.loss_sum));
  assert_int_equal(gt_alloc_total(), total);
  /* a NaN in the data appears in the gradients and in the loss */
  x[40] = NAN;
  gt_graph_step(graph, x, labels, B, true, &metrics);
  assert_true(isnan(metrics.loss_sum));
  assert_false(gt_vec_finite(arrays->grads));
  gt_optim_close(optim);
  gt_graph_close(graph);
}

/* A repeated run with the same input gives the same bits. */
static void same_bits(void) {
  float x[5 * 784];
  const int32_t labels[5] = {1, 2, 3, 4, 5};
  gt_rng rng = gt_rng_make(2, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < 5 * 784; i++) x[i] = (float)gt_rng_normal(&rng);
  gt_graph *a = lenet(&mnist, 5, "auto"), *b = lenet(&mnist, 64, "auto");
  gt_graph_init(a, 1);
  gt_graph_init(b, 1);
  gt_metrics ma, mb;
  gt_graph_step(a, x, labels, 5, true, &ma);
  for (int i = 0; i < 3; i++) gt_graph_step(b, x, labels, 5, true, &mb);
  assert_true(ma.loss_sum == mb.loss_sum);
  /* the backward pass does not overwrite the scores */
  float scores[50];
  memcpy(scores, gt_graph_scores(a), sizeof scores);
  gt_graph_step(b, x, labels, 5, false, &mb);
  assert_memory_equal(scores, gt_graph_scores(b), sizeof scores);
  assert_memory_equal(gt_graph_arrays(a)->grads.data, gt_graph_arrays(b)->grads.data,
                      gt_graph_arrays(a)->grads.n * sizeof(float));
  gt_graph_close(a);
  gt_graph_close(b);
}

static gt_graph *dummy(int64_t parameters, size_t batch_max) {
  return w_graph(&(gt_graph_spec){.model = "dummy",
                                  .options = {.parameters = parameters},
                                  .shape = mnist,
                                  .batch_max = batch_max,
                                  .kernels = gt_kernels_find("auto")});
}

/* The model has as many parameters as requested.  The classifier learns, the others have no
   gradient, and neither affects the other. */
static void dummy_has_any_size(void) {
  enum { OWN = 7850, ALL = 20000 };
  char a[GT_SHA256_HEX], b[GT_SHA256_HEX];
  float x[4 * 784];
  const int32_t labels[4] = {1, 2, 3, 4};
  gt_rng rng = gt_rng_make(3, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < 4 * 784; i++) x[i] = (float)gt_rng_normal(&rng);
  gt_graph *small = dummy(0, 4), *exact = dummy(OWN, 0), *large = dummy(ALL, 4);
  const gt_arrays *ps = gt_graph_arrays(small), *pl = gt_graph_arrays(large);
  assert_int_equal(ps->params.n, OWN);
  assert_int_equal(gt_graph_arrays(exact)->params.n, OWN);
  assert_int_equal(pl->params.n, ALL);
  gt_graph_hash(small, a);
  gt_graph_hash(exact, b);
  assert_string_equal(a, b);
  gt_graph_hash(large, b);
  assert_string_not_equal(a, b);
  gt_graph_init(small, 1);
  gt_graph_init(large, 1);
  for (size_t i = 0; i < ALL; i++) pl->grads.data[i] = 1.0f;
  gt_metrics ms, ml;
  gt_graph_step(small, x, labels, 4, true, &ms);
  gt_graph_step(large, x, labels, 4, true, &ml);
  assert_true(ms.loss_sum == ml.loss_sum && ms.correct == ml.correct);
  assert_memory_equal(ps->grads.data, pl->grads.data, OWN * sizeof(float));
  float most = 0.0f;
  for (size_t i = OWN; i < ALL; i++) {
    assert_true(pl->grads.data[i] == 0.0f);
    most = fmaxf(most, fabsf(pl->params.data[i]));
  }
  assert_true(most > 0.009f && most <= 0.01f);
  assert_int_equal(gt_graph_flops(large), gt_graph_flops(small));
  gt_graph_close(small);
  gt_graph_close(exact);
  gt_graph_close(large);
}

static void sizes_that_are_refused(void) {
  w_refused("dummy", mnist, (gt_model_options){.parameters = 7849}, GT_ERR_JOB,
            "model.parameters is 7849; expected at least the 7850 of dummy's "
            "classifier of 28 x 28 x 1 samples in 10 classes");
  w_refused("dummy", mnist, (gt_model_options){.parameters = -1}, GT_ERR_JOB,
            "model.parameters is -1; expected at least the 7850 of dummy's "
            "classifier of 28 x 28 x 1 samples in 10 classes");
  w_refused("lenet5", mnist, (gt_model_options){.parameters = 61706}, GT_ERR_JOB,
            "model.parameters is 61706; model lenet5 has a fixed number, so it must not be given");
}

TESTS(names_and_places, initial_values, hash_tells_models_apart, what_is_refused,
      learns_without_allocating, same_bits, dummy_has_any_size, sizes_that_are_refused)
