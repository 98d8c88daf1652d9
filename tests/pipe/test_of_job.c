/* The pipeline of a job: its layout, times, problem, memory, traffic and schedule for a small GPT
   with figures computed by hand; even divisions against all divisions; each refusal. */
#include "geotrain/pipe_job.h"
#include "jobs.h"
#include "tests.h"

/* 4 blocks of width D, T positions, V ids; multiply-adds of a sample:
   a block: linear 12 T D D, attention T (T + 1) D, whose gradient is one pass of twice as many;
   the head: T D V. */
enum {
  D = 16,
  T = 8,
  V = 256,
  LINEAR = 12 * T * D * D,
  ATTENTION = T * (T + 1) * D,
  HEAD = T * D * V,
  BLOCK_F = LINEAR + ATTENTION,
  BLOCK_B = LINEAR + 2 * ATTENTION,
  BLOCK_W = LINEAR,
  ALL = 3 * (4 * BLOCK_F + HEAD)
};

/* A sample takes a microsecond for each multiply-add: compute.step is ALL us times the batch. */
static const char head[] =
    "name: small\nseed: 3\nmodel: {name: gpt, layers: 4, width: 16, heads: 2, context: 8}\n"
    "data: {path: d.h5}\ntrain: {until: {steps: 5}, batch: 24, optimizer: {lr: 0.1}}\n"
    "regions: [{name: east, ranks: 4}, {name: west, ranks: 3}]\n"
    "wan: {links: [{from: east, to: west, bandwidth: 100 Mbit/s, latency: 20 ms}, {from: west, to: "
    "east, bandwidth: 50 Mbit/s, latency: 30 ms}]}\n";

static const char three[] = "pipeline:\n"
                            "  stages:\n"
                            "    - {region: east, workers: 2, last: transformer.h.0}\n"
                            "    - {region: west, workers: 2, last: transformer.h.2}\n"
                            "    - {region: east}\n"
                            "  micro_batches: 6\n";

static gt_job *job_of(const char *pipeline, const char *more) {
  return job_as("%scompute: {step: %.9g s%s}\n%s", head, ALL * 24e-6, more, pipeline);
}

static gt_graph_spec model_of(const gt_job *job) {
  gt_graph_spec spec = gt_graph_spec_of(job);
  spec.shape = (gt_sample_shape){1, 1, T + 1, V, V};
  spec.text = true;
  spec.kernels = gt_kernels_find("ref");
  return spec;
}

static gt_pipe_job *open_pipe(const gt_job *job) {
  gt_pipe_job *p = NULL;
  const gt_graph_spec model = model_of(job);
  must(gt_pipe_job_open(&p, job, &model, 0));
  must(gt_pipe_layout_check(&p->layout));
  return p;
}

static void refused(gt_job *job, const char *expected) {
  gt_pipe_job *p = NULL;
  const gt_graph_spec model = model_of(job);
  if (gt_pipe_job_open(&p, job, &model, 0) != GT_ERR_JOB) fail_msg("not refused: %s", expected);
  assert_null(p);
  assert_string_equal(gt_error_text(), expected);
  gt_job_close(job);
}

static const char *last_name(const gt_pipe_job *p, size_t span) {
  return gt_graph_operation(p->graph, p->spans[span].end - 1).name;
}

/* Seconds for this many multiply-adds. */
static void assert_takes(gt_ns found, double macs) {
  if (fabs((double)found - macs * 1e3) > 1.0)
    fail_msg("%lld ns; %.0f are expected", (long long)found, macs * 1e3);
}

/* ---- layout ---------------------------------------------------------------------------------- */

static void places_and_spans(void) {
  gt_job *job = job_of(three, "");
  gt_pipe_job *p = open_pipe(job);
  const gt_pipe_layout *l = &p->layout;
  assert_true(l->nregions == 2 && l->stages == 3 && l->chunks == 1 && l->micro_batches == 6);
  assert_int_equal(l->micro_samples, 4);
  static const gt_pipe_place places[] = {{0, 0, 2}, {1, 0, 2}, {0, 2, 1}};
  for (size_t s = 0; s < COUNT(places); s++)
    assert_true(l->places[s].region == places[s].region &&
                l->places[s].first_worker == places[s].first_worker &&
                l->places[s].workers == places[s].workers);
  assert_string_equal(last_name(p, 0), "transformer.h.0.mlp.sum");
  assert_string_equal(last_name(p, 1), "transformer.h.2.mlp.sum");
  assert_string_equal(last_name(p, 2), "lm_head");
  assert_int_equal(p->spans[0].first, 0);
  assert_true(p->spans[1].first == p->spans[0].end && p->spans[2].first == p->spans[1].end);
  assert_true(l->output_bytes[0] == 4 * T * D && l->output_bytes[1] == 4 * T * D);
  assert_int_equal(l->output_bytes[2], 4 * T * V);
  for (size_t s = 0; s < 3; s++) assert_int_equal(l->slots[s], gt_pipe_slots(l->schedule, s));
  gt_pipe_job_close(p);
  gt_job_close(job);
}

/* Blocks 0 and 3 in the first stage, 1 and 2 in the second; the head is in the first. */
static void folded(void) {
  gt_job *job = job_of("pipeline:\n  stages: [{region: east, workers: 3, last: [transformer.h.0, "
                       "lm_head]}, {region: west, workers: 2, last: [transformer.h.1, "
                       "transformer.h.2]}]\n  micro_batches: 4\n  schedule: zb-v\n",
                       "");
  gt_pipe_job *p = open_pipe(job);
  assert_int_equal(p->layout.chunks, 2);
  assert_string_equal(last_name(p, 0), "transformer.h.0.mlp.sum");
  assert_string_equal(last_name(p, 1), "transformer.h.1.mlp.sum");
  assert_string_equal(last_name(p, 2), "transformer.h.2.mlp.sum");
  assert_string_equal(last_name(p, 3), "lm_head");
  assert_takes(gt_pipe_job_time(p, 3, GT_PASS_F, 2, 0), 2.0 * (BLOCK_F + HEAD));
  gt_pipe_job_close(p);
  gt_job_close(job);
}

/* ---- times ----------------------------------------------------------------------------------- */

static void times_of_passes(void) {
  gt_job *job = job_of(three, ", local: 3 ms, update: 8 ms");
  gt_pipe_job *p = open_pipe(job);
  assert_true(p->timed);
  assert_takes(gt_pipe_job_time(p, 0, GT_PASS_F, 2, 1), 2.0 * BLOCK_F);
  assert_takes(gt_pipe_job_time(p, 0, GT_PASS_B, 2, 1), 2.0 * BLOCK_B);
  assert_takes(gt_pipe_job_time(p, 0, GT_PASS_W, 2, 1), 2.0 * BLOCK_W);
  assert_takes(gt_pipe_job_time(p, 1, GT_PASS_F, 2, 0), 2.0 * 2 * BLOCK_F);
  assert_takes(gt_pipe_job_time(p, 2, GT_PASS_F, 4, 0), 4.0 * (BLOCK_F + HEAD));
  assert_takes(gt_pipe_job_time(p, 2, GT_PASS_W, 4, 0), 4.0 * (BLOCK_W + HEAD));
  assert_int_equal(gt_pipe_job_time(p, 2, GT_PASS_BW, 4, 0),
                   gt_pipe_job_time(p, 2, GT_PASS_B, 4, 0) +
                       gt_pipe_job_time(p, 2, GT_PASS_W, 4, 0));
  /* All passes of a sample take the time of its step. */
  gt_ns sum = 0;
  for (size_t k = 0; k < 3; k++)
    sum += gt_pipe_job_time(p, k, GT_PASS_F, 1, 0) + gt_pipe_job_time(p, k, GT_PASS_BW, 1, 0);
  if (fabs((double)sum - ALL * 1e3) > 9.0) fail_msg("%lld ns a sample", (long long)sum);
  /* Updates: 3 ms, and 8 ms in all by parameters; the server of east has those of two stages. */
  const gt_ns east = gt_from_seconds(p->update_s[0]), west = gt_from_seconds(p->update_s[1]);
  assert_int_equal(gt_from_seconds(p->update_s[2]), east);
  if (fabs((double)(east + west) - (2 * 3 + 8) * 1e6) > 3.0)
    fail_msg("%lld and %lld ns", (long long)east, (long long)west);
  const double block = 12.0 * D * D + 13.0 * D,
               all = 4 * block + 2.0 * D + (double)(V + T) * D; /* the head is tied */
  assert_true(fabs((double)gt_from_seconds(p->update_s[1]) - (3e6 + 8e6 * 2 * block / all)) < 2.0);
  gt_pipe_job_close(p);
  gt_job_close(job);
}

/* The second worker of the first stage has half the speed, and east a quarter of it. */
static void times_of_workers(void) {
  gt_job *job = job_of(three, "");
  static double speeds[] = {1, 0.5, 1};
  job->regions[0].speeds = speeds;
  job->regions[0].nspeeds = 3;
  job->regions[0].compute.speed = 0.25;
  gt_pipe_job *p = open_pipe(job);
  assert_takes(gt_pipe_job_time(p, 0, GT_PASS_F, 2, 0), 4 * 2.0 * BLOCK_F);
  assert_takes(gt_pipe_job_time(p, 0, GT_PASS_F, 2, 1), 8 * 2.0 * BLOCK_F);
  assert_takes(gt_pipe_job_time(p, 1, GT_PASS_F, 2, 1), 2 * 2.0 * BLOCK_F);
  assert_takes(gt_from_seconds(p->problem.spans[0].forward_s), 8 * 2.0 * BLOCK_F);
  gt_pipe_job_close(p);
  job->regions[0].speeds = NULL;
  job->regions[0].nspeeds = 0;
  gt_job_close(job);
}

static void the_problem(void) {
  gt_job *job = job_of(three, "");
  gt_pipe_job *p = open_pipe(job);
  const gt_pipe_problem *q = &p->problem;
  assert_true(q->stages == 3 && q->chunks == 1 && q->micro_batches == 6 && !q->memory);
  for (size_t k = 0; k < 3; k++) {
    const size_t n = 4 / p->layout.places[k].workers;
    assert_int_equal(gt_from_seconds(q->spans[k].forward_s),
                     gt_pipe_job_time(p, k, GT_PASS_F, n, 0));
    assert_int_equal(gt_from_seconds(q->spans[k].backward_s),
                     gt_pipe_job_time(p, k, GT_PASS_B, n, 0));
    assert_int_equal(gt_from_seconds(q->spans[k].weight_s),
                     gt_pipe_job_time(p, k, GT_PASS_W, n, 0));
    assert_true(q->spans[k].activation == 1 && q->spans[k].weight_share == 1);
  }
  assert_true(q->spans[0].output_bytes == 4 * 4 * T * D);
  assert_true(q->wan->nregions == 2 && q->wan->region[0] == 0 && q->wan->region[1] == 1 &&
              q->wan->region[2] == 0);
  assert_true(q->wan->links[1].latency_s == 0.02 && q->wan->links[2].latency_s == 0.03);
  /* one frame without a payload */
  assert_true(q->agree_s[0] == 0 && q->agree_s[3] == 0);
  assert_true(q->agree_s[1] == 0.02 + 8 * 64 / gt_link_goodput(&q->wan->links[1]));
  assert_true(q->agree_s[2] == 0.03 + 8 * 64 / gt_link_goodput(&q->wan->links[2]));
  assert_true(q->wan->links[1].bandwidth_bps == 1e8 && q->wan->links[2].bandwidth_bps == 5e7);
  gt_pipe_job_close(p);
  gt_job_close(job);
}

/* One micro-batch: there and back, one pass after the other.  A message takes its frame's time on
   the link and the latency. */
static void a_step_by_hand(void) {
  gt_job *job = job_of(three, "");
  job->pipeline.micro_batches = 1;
  job->pipeline.schedule = GT_PIPE_1F1B;
  gt_pipe_job *p = open_pipe(job);
  gt_pipe_result result;
  must(gt_pipe_evaluate(&result, p->layout.schedule, &p->problem, 1));
  const double passes_us =
                   12.0 * 3 * BLOCK_F + 12.0 * 2 * 3 * BLOCK_F + 24.0 * 3 * (BLOCK_F + HEAD),
               bits = 8.0 * (24 * 4 * T * D + 96),
               ways_us = 2 * (2e4 + bits / 100) + 2 * (3e4 + bits / 50);
  assert_true(fabs((double)result.makespan - 1e3 * (passes_us + ways_us)) < 20);
  gt_pipe_result_close(&result);
  gt_pipe_job_close(p);
  gt_job_close(job);
}

/* Without compute only `auto` is refused. */
static void without_times(void) {
  gt_job *job = job_of(three, "");
  job->compute.step_s = 0;
  job->regions[1].compute.samples_per_s = 100;
  job->pipeline.schedule = GT_PIPE_1F1B;
  gt_pipe_job *p = open_pipe(job);
  assert_true(!p->timed && gt_pipe_job_time(p, 1, GT_PASS_F, 2, 0) == 0);
  assert_true(p->layout.slots[0] == 3 && p->layout.slots[1] == 2 && p->layout.slots[2] == 1);
  gt_pipe_job_close(p);
  job->pipeline.schedule = GT_PIPE_AUTO;
  refused(
      job,
      "small: pipeline.schedule is auto and compute.step is not given for region east; expected "
      "it, as in --set 'compute.step=10 ms', or a profile of `geotrain probe`, or a schedule "
      "such as 1f1b");
}

/* ---- even divisions -------------------------------------------------------------------------- */

static double cost_of(const gt_pipe_job *p, size_t first, size_t end, size_t workers) {
  double sum = 0;
  for (size_t i = first; i < end; i++) {
    const gt_operation op = gt_graph_operation(p->graph, i);
    sum += op.forward + op.backward_input + op.backward_weight;
  }
  return sum / (double)workers;
}

/* Returns the lowest maximum cost of spans k.. from operation `first` on, over all divisions. */
static double least(const gt_pipe_job *p, size_t k, size_t first) {
  const size_t n = gt_graph_operations(p->graph), workers = p->layout.places[k].workers;
  if (k + 1 == p->layout.stages) return cost_of(p, first, n, workers);
  double best = INFINITY;
  for (size_t end = first + 1; end < n; end++)
    if (gt_graph_operation(p->graph, end - 1).ends)
      best = fmin(best, fmax(cost_of(p, first, end, workers), least(p, k + 1, end)));
  return best;
}

static void even_cuts(void) {
  static const char *const all[] = {
      "[{region: east, workers: 2}, {region: west, workers: 2}, {region: east}]",
      "[{region: east}, {region: west}, {region: west}, {region: east, workers: 2}]",
      "[{region: east}, {region: east}, {region: west, workers: 2}, {region: east}]",
  };
  for (size_t i = 0; i < COUNT(all); i++) {
    char text[256];
    snprintf(text, sizeof text, "pipeline: {micro_batches: 6, schedule: gpipe, stages: %s}\n",
             all[i]);
    gt_job *job = job_of(text, "");
    gt_pipe_job *p = open_pipe(job);
    double most = 0;
    size_t at = 0;
    for (size_t k = 0; k < p->layout.stages; at = p->spans[k++].end) {
      assert_true(p->spans[k].first == at && p->spans[k].end > at);
      assert_true(gt_graph_operation(p->graph, p->spans[k].end - 1).ends);
      most = fmax(most, cost_of(p, at, p->spans[k].end, p->layout.places[k].workers));
    }
    assert_int_equal(at, gt_graph_operations(p->graph));
    assert_true(fabs(most - least(p, 0, 0)) <= 1e-9 * most);
    gt_pipe_job_close(p);
    gt_job_close(job);
  }
}

/* ---- traffic --------------------------------------------------------------------------------- */

static void bytes_of_a_step(void) {
  gt_job *job = job_of(three, "");
  gt_pipe_job *p = open_pipe(job);
  /* Each way of each cut, 6 micro-batches; 2 packets of 2 samples between the first two stages (2
     workers each) and between the last two (2 and 1), outputs one way and gradients the other. */
  const size_t packet = 2 * 4 * T * D + 96;
  assert_int_equal(gt_pipe_job_bytes(p, 0, 1), 6 * (2 * packet + 2 * packet));
  assert_int_equal(gt_pipe_job_bytes(p, 1, 0), 6 * (2 * packet + 2 * packet));
  assert_int_equal(gt_pipe_job_bytes(p, 0, 0), 0);
  assert_int_equal(p->layout.label_bytes, 0); /* the loss is where the data are */
  gt_pipe_job_close(p);
  gt_job_close(job);
  /* 3 and 2 workers share 6 samples: 0-1, 2, 3, 4-5.  The ids of each go to west with it. */
  job = job_of("pipeline:\n  stages: [{region: east, workers: 3, last: transformer.h.1}, {region: "
               "west, workers: 2}]\n  micro_batches: 4\n  labels: send\n",
               "");
  job->model.untied = true;
  p = open_pipe(job);
  const size_t cut = 2 * (2 * 4 * T * D + 96) + 2 * (4 * T * D + 96), labels = 6 * 4 * (T + 1);
  assert_int_equal(p->layout.label_bytes, 4 * (T + 1));
  assert_true(p->problem.spans[0].label_bytes == (double)labels);
  assert_int_equal(gt_pipe_job_bytes(p, 0, 1), 4 * (cut + labels));
  assert_int_equal(gt_pipe_job_bytes(p, 1, 0), 4 * cut);
  gt_pipe_job_close(p);
  gt_job_close(job);
}

/* ---- memory and schedules -------------------------------------------------------------------- */

/* Traffic between stages: outputs of span k and their gradients, n(k) of each at both ends. */
static void what_a_worker_needs(void) {
  gt_job *job = job_of(three, "");
  gt_pipe_job *p = open_pipe(job);
  const gt_pipe_schedule *schedule = p->layout.schedule;
  const size_t u = 4 * T * D, n0 = gt_pipe_outstanding(schedule, 0),
               n1 = gt_pipe_outstanding(schedule, 1),
               areas[] = {2 * n0 * 2 * u, (2 * n0 + 2 * n1) * 2 * u, 2 * n1 * 4 * u};
  for (size_t s = 0; s < 3; s++) {
    const gt_pipe_need need = gt_pipe_job_need(p, schedule, s);
    assert_int_equal(need.arrays, p->holds[s].arrays);
    assert_int_equal(need.slots, p->layout.slots[s]);
    assert_int_equal(need.areas, areas[s]);
    assert_int_equal(need.samples, s == 1 ? 0 : (size_t)job->train.batch * sizeof(float) * (T + 2));
    assert_int_equal(need.all, need.arrays + need.scratch + need.slots * need.slot + need.areas +
                                   need.samples);
    assert_int_equal(gt_pipe_job_memory(p, s), need.all);
  }
  /* Parameters and gradients; the tied head's stage also has the embedding's. */
  const size_t block = 12 * D * D + 13 * D;
  assert_int_equal(p->holds[1].arrays, 2 * 4 * 2 * block);
  assert_int_equal(p->holds[2].arrays, 2 * 4 * (block + 2 * D + (V + T) * D));
  gt_pipe_job_close(p);
  gt_job_close(job);
}

/* The largest need of a worker with a schedule of this kind. */
static size_t largest_need(const gt_pipe_job *p, gt_pipe_kind kind) {
  gt_pipe_schedule *schedule = NULL;
  size_t most = 0;
  must(gt_pipe_job_schedule(&schedule, p, kind));
  for (size_t s = 0; s < 3; s++) {
    const size_t all = gt_pipe_job_need(p, schedule, s).all;
    if (all > most) most = all;
  }
  gt_pipe_schedule_close(schedule);
  return most;
}

static void memory_is_kept(void) {
  gt_job *job = job_of(three, "");
  gt_pipe_job *p = open_pipe(job);
  const size_t most = largest_need(p, GT_PIPE_1F1B);
  assert_true(largest_need(p, GT_PIPE_GPIPE) > most);
  gt_pipe_job_close(p);
  job->pipeline.memory_bytes = (double)most;
  p = open_pipe(job);
  for (size_t s = 0; s < 3; s++)
    assert_true(gt_pipe_job_memory(p, s) <= most && p->layout.slots[s] >= 1);
  gt_pipe_schedule *other = NULL;
  must(gt_pipe_job_schedule(&other, p, GT_PIPE_1F1B));
  gt_pipe_schedule_close(other);
  must_fail(gt_pipe_job_schedule(&other, p, GT_PIPE_GPIPE), GT_ERR_JOB, " with schedule gpipe: ");
  assert_null(other);
  must_say(gt_pipe_job_schedule(&other, p, GT_PIPE_ZB_V), GT_ERR_JOB,
           "small: schedule zb-v needs 2 spans per stage; pipeline.stages has 1");
  gt_pipe_job_close(p);
  const gt_graph_spec model = model_of(job);
  job->pipeline.memory_bytes = (double)(most - 1);
  job->pipeline.schedule = GT_PIPE_1F1B;
  p = NULL;
  must_fail(gt_pipe_job_open(&p, job, &model, 0), GT_ERR_JOB, " with schedule 1f1b: ");
  job->pipeline.memory_bytes = 1024;
  must_fail(gt_pipe_job_open(&p, job, &model, 0), GT_ERR_JOB,
            "small: pipeline.memory is 1 KiB, and a worker of stage 0 needs ");
  gt_job_close(job);
}

static void the_same_again(void) {
  char first[GT_SHA256_HEX], second[GT_SHA256_HEX];
  gt_job *job = job_of(three, "");
  gt_pipe_job *p = open_pipe(job), *q = open_pipe(job);
  gt_pipe_hash(p->layout.schedule, first);
  gt_pipe_hash(q->layout.schedule, second);
  assert_string_equal(first, second);
  gt_pipe_job_close(p);
  gt_pipe_job_close(q);
  gt_job_close(job);
}

/* ---- refused pipelines ----------------------------------------------------------------------- */

static gt_job *with_ends(const char *a, const char *b, const char *c) {
  char text[512];
  snprintf(text, sizeof text,
           "pipeline:\n  stages: [{region: east, workers: 2, last: %s}, {region: west, workers: 2, "
           "last: %s}, {region: east%s%s}]\n  micro_batches: 6\n",
           a, b, c ? ", last: " : "", c ? c : "");
  return job_of(text, "");
}

static void wrong_cuts(void) {
  refused(with_ends("transformer.h.7", "transformer.h.2", NULL),
          "small: pipeline.stages.0.last is \"transformer.h.7\", which is not an operation of "
          "model gpt or a group of operations; expected a name such as transformer.wte");
  refused(
      with_ends("transformer.h.0.ln_1", "transformer.h.2", NULL),
      "small: pipeline.stages.0.last is transformer.h.0.ln_1, and the model cannot be cut after "
      "its operation transformer.h.0.ln_1; the nearest operation after which it can be cut: "
      "transformer.h.0.attn.sum");
  refused(with_ends("transformer.h.0.mlp.gelu", "transformer.h.2", NULL),
          "small: pipeline.stages.0.last is transformer.h.0.mlp.gelu, and the model cannot be cut "
          "after its operation transformer.h.0.mlp.gelu; the nearest operations after which it can "
          "be cut: transformer.h.0.attn.sum, transformer.h.0.mlp.sum");
  refused(with_ends("transformer.h.2", "transformer.h.1", NULL),
          "small: pipeline.stages.1.last is transformer.h.1, and the part of the model before ends "
          "with transformer.h.2.mlp.sum; expected one that ends later, so that the stage has "
          "operations");
  refused(with_ends("transformer.h.0", "lm_head", NULL),
          "small: pipeline.stages.2.last is not given, and the part of the model before ends with "
          "lm_head; expected one that ends later, so that the stage has operations");
  refused(with_ends("transformer.h.0", "transformer.h.1", "transformer.h.2"),
          "small: pipeline.stages.2.last is transformer.h.2, and the model continues after it; its "
          "last part ends with lm_head, or has no name");
  gt_job *job = with_ends("transformer.h.0", "transformer.h.1", "lm_head");
  gt_pipe_job_close(open_pipe(job));
  gt_job_close(job);
}

static void wrong_stages(void) {
  refused(
      job_of("pipeline:\n  stages: [{region: east, workers: 3, last: transformer.h.1}, {region: "
             "west, workers: 2}]\n  micro_batches: 4\n  labels: send\n",
             ""),
      "small: operation lm_head, in region west, has the weights of transformer.wte, in region "
      "east; expected both in stages of one region, or model.untied: true");
  gt_job *job = job_of("pipeline:\n  stages: [{region: east, workers: 2}, {region: west, workers: "
                       "2}, {region: east}]\n  micro_batches: 6\n",
                       "");
  job->model.layers = 1; /* divided after attn.sum, mlp.sum, ln_f */
  gt_pipe_job_close(open_pipe(job));
  gt_job_close(job);
}

/* ResNet-18's normalisations have running statistics. */
static void replicas_of_statistics(void) {
  gt_job *job = job_of("pipeline:\n  stages: [{region: east, workers: 2, last: layer1}, {region: "
                       "west, workers: 2, last: layer2}, {region: east}]\n  micro_batches: 6\n",
                       "");
  job->model.name = GT_MODEL_RESNET18;
  job->model.layers = job->model.width = job->model.heads = job->model.context = 0;
  gt_graph_spec model = model_of(job);
  model.shape = (gt_sample_shape){32, 32, 3, 10, 0};
  model.text = false;
  gt_pipe_job *p = NULL;
  must_say(gt_pipe_job_open(&p, job, &model, 0), GT_ERR_JOB,
           "small: pipeline.stages.0.workers is 2, and its operation bn1 has running "
           "statistics, which would differ between them; expected 1");
  gt_job_close(job);
}

TESTS(places_and_spans, folded, times_of_passes, times_of_workers, the_problem, a_step_by_hand,
      without_times, even_cuts, bytes_of_a_step, what_a_worker_needs, memory_is_kept,
      the_same_again, wrong_cuts, wrong_stages, replicas_of_statistics)
