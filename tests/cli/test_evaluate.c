/* Evaluation by threads: bitwise equal results for any number of threads, the input of each thread,
   and the return of errors. */
#include <sched.h>
#include <unistd.h>

#include "cases.h"
#include "evaluate.h"
#include "tests.h"

#define NTEST ((size_t)1000) /* 15 full batches and one of 40 */

typedef struct {
  gt_graph *model;
  gt_sample_shape shape;
  int made, fail_at; /* fail_at: the graph whose creation fails; 0: none */
} source;

static gt_status create(const source *s, size_t batch_max, gt_graph **out) {
  const gt_graph_spec spec = {.model = "lenet5",
                              .shape = s->shape,
                              .batch_max = batch_max,
                              .kernels = gt_kernels_find("blas")};
  return gt_graph_create(out, &spec);
}

static gt_status make(void *ctx, gt_graph **out) {
  source *s = ctx;
  if (++s->made == s->fail_at) return GT_FAIL(GT_ERR_CKPT, "no graph number %d", s->made);
  must(create(s, GT_CLI_EVAL_BATCH, out));
  gt_graph_adopt(*out, gt_graph_arrays(s->model)->params.data, NULL, NULL);
  return GT_OK;
}

typedef struct {
  char path[64];
  source source;
  gt_dataset *dataset;
  gt_loader *loader;
} fixture;

static void begin(fixture *f, size_t classes) {
  *f = (fixture){.source = {.shape = {28, 28, 1, classes, 0}}};
  snprintf(f->path, sizeof f->path, "test_evaluate_%ld.h5", (long)getpid());
  gt_synth_spec synth = gt_synth_default();
  synth.classes = classes;
  synth.ntrain = 10;
  synth.ntest = NTEST;
  must(gt_data_synth(f->path, &synth));
  must(gt_dataset_open(&f->dataset, f->path));
  must(gt_loader_create(&f->loader, f->dataset, GT_SPLIT_TEST, NULL, NTEST));
  must(create(&f->source, 0, &f->source.model));
  gt_graph_init(f->source.model, 3);
}

static void end(fixture *f) {
  gt_graph_close(f->source.model);
  gt_loader_close(f->loader);
  gt_dataset_close(f->dataset);
  unlink(f->path);
}

static gt_status evaluate(fixture *f, size_t threads, gt_cli_score *score) {
  const bool two = f->source.shape.classes == 2;
  const gt_cli_evaluation e = {.make = make,
                               .ctx = &f->source,
                               .test = f->loader,
                               .ranking = gt_ranking_of("lenet5", two ? 2 : 10),
                               .labels = gt_dataset_labels(f->dataset, GT_SPLIT_TEST),
                               .shape = f->source.shape,
                               .batch = GT_CLI_EVAL_BATCH,
                               .threads = threads};
  f->source.made = 0;
  return gt_cli_evaluate(score, &e);
}

static void the_same_bits_with_any_threads(void) {
  for (size_t classes = 2; classes <= 10; classes += 8) {
    fixture f;
    gt_cli_score one, many;
    begin(&f, classes);
    must(evaluate(&f, 1, &one));
    assert_int_equal(one.sum.samples, NTEST);
    assert_true(one.sum.loss_sum > 0 && one.sum.correct > 0 && one.sum.correct < NTEST);
    assert_true(classes == 2 ? one.ranks.auc > 0 && one.ranks.auc < 1 : isnan(one.ranks.auc));
    for (size_t threads = 2; threads <= 9; threads += all_cases() ? 1 : 3) {
      must(evaluate(&f, threads, &many));
      assert_int_equal(f.source.made, threads);
      assert_memory_equal(&many.sum, &one.sum, sizeof one.sum);
      assert_memory_equal(&many.ranks.auc, &one.ranks.auc, sizeof one.ranks.auc);
    }
    end(&f);
  }
}

static void an_error_comes_back(void) {
  fixture f;
  gt_cli_score score;
  begin(&f, 10);
  for (int at = 1; at <= 3; at++) {
    char text[64];
    f.source.fail_at = at;
    snprintf(text, sizeof text, "no graph number %d", at);
    must_say(evaluate(&f, 3, &score), GT_ERR_CKPT, text);
  }
  end(&f);
}

static size_t chosen(size_t asked, size_t batches, const char *word) {
  const char *why;
  size_t n = gt_cli_threads(asked, batches, &why);
  must_contain(why, word);
  return n;
}

static void threads_are_chosen(void) {
  cpu_set_t all, one;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  const size_t cores = (size_t)CPU_COUNT(&all);
  unsetenv("OMP_NUM_THREADS");
  assert_int_equal(chosen(0, 1u << 20, "core"), cores);
  assert_int_equal(chosen(7, 1u << 20, "--threads"), 7);
  assert_int_equal(chosen(0, 1, cores > 1 ? "batch" : "core"), 1);
  setenv("OMP_NUM_THREADS", "1,2", 1);
  assert_int_equal(chosen(0, 1u << 20, cores > 1 ? "OMP_NUM_THREADS" : "core"), 1);
  assert_int_equal(chosen(7, 1u << 20, "--threads"), 7);
  setenv("OMP_NUM_THREADS", "4096", 1);
  assert_int_equal(chosen(0, 1u << 30, "core"), cores);
  unsetenv("OMP_NUM_THREADS");
  CPU_ZERO(&one);
  for (size_t c = 0; CPU_COUNT(&one) == 0; c++)
    if (CPU_ISSET(c, &all)) CPU_SET(c, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  assert_int_equal(chosen(0, 1u << 20, "core"), 1);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

TESTS(the_same_bits_with_any_threads, an_error_comes_back, threads_are_chosen)
