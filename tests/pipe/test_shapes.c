/* The numbers of micro-batches to which a pipeline can change: their list, that each can be run,
   the memory planned for all of them; the time of a pass besides its samples; the refusal of models
   with running statistics. */
#include "cases.h"
#include "geotrain/pipe_job.h"
#include "jobs.h"
#include "tests.h"

#define STAGES 3

/* 24 samples a step.  Each stage's workers get samples of 2, 3, 4, 6 or 12 micro-batches. */
static gt_job *job_of(const char *adapt, int micro_batches, const char *more) {
  return job_as(
      "name: small\nseed: 3\nmodel: {name: gpt, layers: 4, width: 16, heads: 2, context: 8}\n"
      "data: {path: d.h5}\ntrain: {until: {steps: 5}, batch: 24, optimizer: {lr: 0.1}}\n"
      "regions: [{name: east, ranks: 4}, {name: west, ranks: 3}]\n"
      "wan: {default: {bandwidth: 100 Mbit/s, latency: 20 ms}}\n"
      "compute: {step: 0.1 s%s}\n"
      "pipeline: {stages: [{region: east, workers: 2, last: transformer.h.0}, {region: west, "
      "workers: 2, last: transformer.h.2}, {region: east}], micro_batches: %d, adapt: %s}\n",
      more, micro_batches, adapt);
}

static gt_graph_spec model_of(const gt_job *job) {
  gt_graph_spec spec = gt_graph_spec_of(job);
  spec.shape = (gt_sample_shape){1, 1, 9, 256, 256};
  spec.text = true;
  spec.kernels = gt_kernels_find("ref");
  return spec;
}

static gt_pipe_job *open_pipe(const gt_job *job) {
  gt_pipe_job *p = NULL;
  const gt_graph_spec model = model_of(job);
  must(gt_pipe_job_open(&p, job, &model, 0));
  return p;
}

static void says(const gt_pipe_job *p, const char *numbers) {
  char text[64];
  assert_string_equal(gt_pipe_job_shapes_text(p, text, sizeof text), numbers);
}

static void all_that_divide(void) {
  gt_job *job = job_of("micro_batches", 6, "");
  gt_pipe_job *p = open_pipe(job);
  says(p, "2, 3, 4, 6 or 12");
  assert_int_equal(gt_pipe_job_shapes(p), 5);
  assert_ptr_equal(gt_pipe_job_shape(p, 0), p);
  for (size_t i = 0; i < 5; i++) {
    const gt_pipe_job *shape = gt_pipe_job_shape(p, i);
    const gt_pipe_layout *l = &shape->layout;
    assert_int_equal(gt_pipe_job_shape_of(p, l->micro_batches), i);
    assert_int_equal(l->micro_batches * l->micro_samples, 24);
    assert_int_equal(shape->problem.micro_batches, l->micro_batches);
    assert_true(l->adapts);
    must(gt_pipe_layout_check(l));
  }
  gt_pipe_job_close(p);
  job->pipeline.adapt = GT_ADAPT_ORDER;
  p = open_pipe(job);
  says(p, "6");
  gt_pipe_job_close(p);
  gt_job_close(job);
}

/* At most four times as many, and at least a quarter. */
static void not_too_far(void) {
  gt_job *job = job_of("micro_batches", 12, "");
  gt_pipe_job *p = open_pipe(job);
  says(p, "3, 4, 6 or 12");
  gt_pipe_job_close(p);
  gt_job_close(job);
  job = job_of("micro_batches", 2, "");
  p = open_pipe(job);
  says(p, "1, 2, 3, 4 or 6");
  gt_pipe_job_close(p);
  gt_job_close(job);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t most_of(const gt_pipe_job *p) {
  size_t most = 0;
  for (size_t s = 0; s < STAGES; s++)
    if (gt_pipe_job_memory(p, s) > most) most = gt_pipe_job_memory(p, s);
  return most;
}

/* For each part the maximum over all shapes: slots and scratch are one block. */
static void memory_is_for_the_largest(void) {
  gt_job *job = job_of("micro_batches", 6, "");
  gt_pipe_job *p = open_pipe(job);
  for (size_t s = 0; s < STAGES; s++) {
    const gt_pipe_need all = gt_pipe_job_need(p, p->layout.schedule, s);
    size_t block = 0, areas = 0;
    for (size_t i = 0; i < gt_pipe_job_shapes(p); i++) {
      gt_pipe_job alone = *gt_pipe_job_shape(p, i);
      alone.nothers = 0;
      const gt_pipe_need n = gt_pipe_job_need(&alone, alone.layout.schedule, s);
      assert_int_equal(n.arrays, all.arrays);
      assert_int_equal(n.slots, alone.layout.micro_batches);
      if (n.scratch + n.slots * n.slot > block) block = n.scratch + n.slots * n.slot;
      if (n.areas > areas) areas = n.areas;
    }
    assert_int_equal(all.scratch + all.slots * all.slot, block);
    assert_int_equal(all.areas, areas);
    assert_int_equal(all.all, all.arrays + block + areas + all.samples);
  }
  gt_pipe_job_close(p);
  gt_job_close(job);
}

static bool has(const gt_pipe_job *p, size_t micro_batches) {
  for (size_t i = 0; i < gt_pipe_job_shapes(p); i++)
    if (gt_pipe_job_shape(p, i)->layout.micro_batches == micro_batches) return true;
  return false;
}

/* With enough memory for all of them, and with enough for the job's own only. */
static void what_does_not_fit_is_left_out(void) {
  gt_job *job = job_of("micro_batches", 12, "");
  gt_pipe_job *p = open_pipe(job);
  const size_t all = most_of(p);
  gt_pipe_job_close(p);
  job->pipeline.memory_bytes = (double)all;
  p = open_pipe(job);
  says(p, "3, 4, 6 or 12");
  assert_true(most_of(p) <= all);
  gt_pipe_job_close(p);
  job->pipeline.adapt = GT_ADAPT_NOTHING;
  job->pipeline.memory_bytes = 0;
  job->pipeline.schedule = GT_PIPE_1F1B;
  p = open_pipe(job);
  const size_t least = most_of(p);
  assert_true(least < all);
  gt_pipe_job_close(p);
  job->pipeline.adapt = GT_ADAPT_MICRO_BATCHES;
  job->pipeline.schedule = GT_PIPE_AUTO;
  /* split gradients need more than those of 1F1B */
  for (job->pipeline.memory_bytes = (double)least; job->pipeline.memory_bytes < (double)all;
       job->pipeline.memory_bytes *= all_cases() ? 1.05 : 1.2) {
    const gt_graph_spec model = model_of(job);
    if (gt_pipe_job_open(&p, job, &model, 0) != GT_OK) continue;
    assert_true((double)most_of(p) <= job->pipeline.memory_bytes);
    assert_true(has(p, 12) && !has(p, 3));
    gt_pipe_job_close(p);
    break;
  }
  assert_true(job->pipeline.memory_bytes < (double)all);
  gt_job_close(job);
}

/* ---- times and refusals ---------------------------------------------------------------------- */

static void a_pass_takes_more_than_its_samples(void) {
  gt_job *job = job_of("false", 6, ""), *more = job_of("false", 6, ", pass: 3 ms");
  gt_pipe_job *p = open_pipe(job), *q = open_pipe(more);
  const gt_ns ms = GT_SECOND / 1000;
  for (size_t k = 0; k < STAGES; k++)
    for (size_t n = 1; n <= 4; n++) {
      static const gt_pass_kind kinds[] = {GT_PASS_F, GT_PASS_B, GT_PASS_W, GT_PASS_BW};
      for (size_t i = 0; i < 4; i++) {
        const gt_ns extra =
            gt_pipe_job_time(q, k, kinds[i], n, 0) - gt_pipe_job_time(p, k, kinds[i], n, 0);
        assert_in_range(extra, (kinds[i] == GT_PASS_BW ? 6 : 3) * ms - 2,
                        (kinds[i] == GT_PASS_BW ? 6 : 3) * ms + 2);
      }
    }
  assert_true(q->problem.spans[1].forward_s > p->problem.spans[1].forward_s + 0.0029);
  gt_pipe_job_close(p);
  gt_pipe_job_close(q);
  gt_job_close(job);
  gt_job_close(more);
}

static void statistics_are_refused(void) {
  gt_job *job = job_of("micro_batches", 6, "");
  gt_pipe_job *p = NULL;
  job->model.name = GT_MODEL_RESNET18;
  job->model.layers = job->model.width = job->model.heads = job->model.context = 0;
  for (size_t s = 0; s < STAGES; s++) job->pipeline.stages[s].workers = 1;
  static char *const names[] = {"layer1", "layer2"};
  for (size_t s = 0; s < 2; s++) {
    gt_free(job->pipeline.stages[s].last[0]);
    job->pipeline.stages[s].last[0] = gt_strdup(names[s]);
  }
  gt_graph_spec model = model_of(job);
  model.shape = (gt_sample_shape){32, 32, 3, 10, 0};
  model.text = false;
  must_say(
      gt_pipe_job_open(&p, job, &model, 0), GT_ERR_JOB,
      "small: pipeline.adapt is micro_batches, and bn1 keeps statistics of micro-batches, which "
      "depend on their size; expected false, true or another model");
  assert_null(p);
  gt_job_close(job);
}

TESTS(all_that_divide, not_too_far, memory_is_for_the_largest, what_does_not_fit_is_left_out,
      a_pass_takes_more_than_its_samples, statistics_are_refused)
