/* Laws of a simulated pipeline, for every kind of schedule: within a region its step takes the time
   of the schedule's evaluation, to the nanosecond; between regions it sends the bytes counted by
   the job's pipeline; and a forecast equals the whole simulation, with any limit on events. */
#include "jobs.h"
#include "tests.h"
#include "geotrain/sim.h"
#include "geotrain/sim_shape.h"

#define STEPS   5
#define SAMPLES 1000
#define BATCH   24

static const char plain[] = "[{region: a}, {region: a}]",
                  folded[] = "[{region: a, last: [transformer.h.0, lm_head]}, "
                             "{region: a, last: [transformer.h.1, transformer.h.2]}]";
static const char plain_far[] = "[{region: a}, {region: b, workers: 2}, {region: a}]",
                  folded_far[] = "[{region: a, last: [transformer.h.0, lm_head]}, "
                                 "{region: b, last: [transformer.h.1, transformer.h.2]}]";
static const struct {
  const char *schedule, *near, *far;
  int ranks; /* of region a, where there is a region b */
} kinds[] = {{"gpipe", plain, plain_far, 3},  {"1f1b", plain, plain_far, 3},
             {"zb-h1", plain, plain_far, 3},  {"zb-h2", plain, plain_far, 3},
             {"zb-v", folded, folded_far, 2}, {"auto", plain, plain_far, 3}};
#define KINDS COUNT(kinds)

typedef struct {
  gt_job *job;
  gt_links *links;
  gt_sim_shape shape;
  gt_pipe_job *pipe;
  gt_sim_spec spec;
} fixture;

static double clip; /* train.clip of the fixtures */
static bool sent;   /* labels are sent, which a tied head does not allow */

static fixture open_fixture(const char *regions, const char *stages, const char *schedule,
                            int steps) {
  fixture f = {0};
  f.job = job_as(
      "name: law\nmodel: {name: gpt, layers: 4, width: 16, heads: 2, context: 128, untied: %s}\n"
      "data: {path: none.h5}\n"
      "train: {until: {steps: %d}, batch: %d, optimizer: {name: sgd, lr: 0.1}, clip: %g, "
      "eval_every: {epochs: 0}}\n"
      "regions: [%s]\npipeline: {stages: %s, micro_batches: 6, schedule: %s, labels: %s}\n"
      "compute: {step: 24 ms}\ncheckpoint: {every: {steps: 0}}\n"
      "wan: {default: {bandwidth: 100 Mbit/s, latency: 5 ms}}\n",
      sent ? "true" : "false", steps, BATCH, clip, regions, stages, schedule,
      sent ? "send" : "keep");
  must(gt_links_create(&f.links, f.job));
  must(gt_sim_shape_of(&f.shape, f.job));
  const gt_graph_spec model = gt_sim_shape_spec(&f.shape, f.job);
  must(gt_pipe_job_open(&f.pipe, f.job, &model, 0));
  f.spec = (gt_sim_spec){.job = f.job,
                         .links = f.links,
                         .parameters = f.shape.parameters,
                         .buffers = f.shape.buffers,
                         .samples = f.shape.samples,
                         .pipe = f.pipe};
  return f;
}

static void close_fixture(fixture *f) {
  gt_pipe_job_close(f->pipe);
  gt_sim_shape_close(&f->shape);
  gt_links_close(f->links);
  gt_job_close(f->job);
}

static fixture open_far(size_t kind) {
  char regions[128];
  snprintf(regions, sizeof regions, "{name: a, ranks: %d, samples: %d}, {name: b, ranks: %d }",
           kinds[kind].ranks, SAMPLES, kinds[kind].ranks);
  return open_fixture(regions, kinds[kind].far, kinds[kind].schedule, STEPS);
}

static void test_a_step_takes_what_its_schedule_takes(void) {
  for (size_t i = 0; i < KINDS; i++) {
    fixture f =
        open_fixture("{name: a, ranks: 3, samples: 1000}", kinds[i].near, kinds[i].schedule, 1);
    gt_sim *sim = NULL;
    gt_sim_totals t;
    gt_pipe_result result;
    must(gt_pipe_evaluate(&result, f.pipe->layout.schedule, &f.pipe->problem, 1));
    must(gt_sim_run(&sim, &f.spec));
    gt_sim_get_totals(sim, &t);
    assert_true(result.makespan > 0);
    if (gt_from_seconds(t.train_s) != result.makespan)
      fail_msg("%s: simulated %.9f s, evaluated %.9f s", kinds[i].schedule, t.train_s,
               gt_seconds(result.makespan));
    assert_int_equal(t.samples, BATCH);
    gt_sim_close(sim);
    gt_pipe_result_close(&result);
    close_fixture(&f);
  }
}

/* Returns the period of a long run, without its start and end. */
static double simulated_period_s(fixture *f, const char *regions, const char *stages,
                                 const char *schedule) {
  double end_s[2];
  for (int i = 0; i < 2; i++) {
    gt_sim *sim = NULL;
    gt_sim_totals t;
    *f = open_fixture(regions, stages, schedule, 10 + 10 * i);
    must(gt_sim_run(&sim, &f->spec));
    gt_sim_get_totals(sim, &t);
    end_s[i] = t.train_s;
    gt_sim_close(sim);
    if (i == 0) close_fixture(f);
  }
  return (end_s[1] - end_s[0]) / 10;
}

/* Steps follow each other as planned: the regions wait for each other in both, with and without the
   squares for clipping.  One worker per stage: with more, a plan sends one message for all. */
static void test_the_period_is_as_planned(void) {
  static const char apart[] = "[{region: a}, {region: b}, {region: a}]";
  for (size_t i = 0; i < 2 * KINDS; i++) {
    char regions[256];
    const size_t kind = i / 2;
    const char *stages = kinds[kind].far == plain_far ? apart : kinds[kind].far;
    clip = i % 2 ? 1 : 0;
    for (int far = 0; far < 2; far++) {
      fixture f;
      gt_pipe_result result;
      snprintf(regions, sizeof regions,
               far ? "{name: a, ranks: %d, samples: 1000}, {name: b, ranks: 2, compute: {step: 40 "
                     "ms}}"
                   : "{name: a, ranks: 3, samples: 1000}",
               kinds[kind].ranks);
      const double simulated_s =
          simulated_period_s(&f, regions, far ? stages : kinds[kind].near, kinds[kind].schedule);
      must(gt_pipe_evaluate(&result, f.pipe->layout.schedule, &f.pipe->problem, GT_PIPE_STEADY));
      const double planned_s = gt_seconds(result.period);
      if (fabs(simulated_s - planned_s) > 2e-5 * planned_s)
        fail_msg("%s, %d, clip %g: simulated %.9f s, planned %.9f s", kinds[kind].schedule, far,
                 clip, simulated_s, planned_s);
      gt_pipe_result_close(&result);
      close_fixture(&f);
    }
  }
  clip = 0;
}

/* Returns the mean over a region's stages of the evaluation's prediction. */
static double predicted_s(const fixture *f, const gt_pipe_result *result, size_t region,
                          size_t phase) {
  gt_ns sum = 0;
  size_t n = 0;
  for (size_t s = 0; s < f->pipe->layout.stages; s++) {
    if (f->pipe->layout.places[s].region != region) continue;
    sum += result->stages[s].phases[phase];
    n++;
  }
  return gt_seconds(sum) / (double)n;
}

/* Heartbeats have priority and are not part of the evaluation: in this time two each way. */
#define HEARTBEAT_S (8 * 64 / 100e6)

/* Checks every phase of a step, except the wait for its end elsewhere, which no stage of a schedule
   has. */
static void phases_are_predicted(fixture *f, const char *what) {
#define KEY(constant, key, title) key,
  static const char *const keys[] = {GT_PHASE_LIST(KEY)};
#undef KEY
  gt_sim *sim = NULL;
  gt_pipe_result result;
  must(gt_pipe_evaluate(&result, f->pipe->layout.schedule, &f->pipe->problem, 1));
  must(gt_sim_run(&sim, &f->spec));
  for (size_t r = 0; r < f->job->nregions; r++) {
    gt_region_result found;
    gt_sim_region(sim, r, &found);
    for (size_t p = 0; p < GT_NPHASES; p++) {
      if (p == GT_PHASE_STEP_END) continue;
      const double needed = predicted_s(f, &result, r, p);
      const bool waits = f->job->nregions > 1 && p > GT_PHASE_BACKWARD;
      if (fabs(found.phase_s[p] - needed) > (waits ? 4 * HEARTBEAT_S : 0))
        fail_msg("%s, region %zu: %s is %.9f s, evaluated %.9f s", what, r, keys[p],
                 found.phase_s[p], needed);
    }
    assert_true(found.phase_s[GT_PHASE_BUBBLE] > 0);
    assert_true(f->job->nregions == 1 || found.phase_s[GT_PHASE_TRANSFER] > 0);
  }
  gt_sim_close(sim);
  gt_pipe_result_close(&result);
}

static void test_phases_are_those_of_the_schedule(void) {
  for (size_t i = 0; i < KINDS; i++) {
    const bool is_folded = kinds[i].near == folded;
    fixture near =
        open_fixture("{name: a, ranks: 3, samples: 1000}", kinds[i].near, kinds[i].schedule, 1);
    fixture far =
        is_folded ? open_fixture("{name: a, ranks: 2, samples: 1000}, {name: b, ranks: 2}",
                                 folded_far, kinds[i].schedule, 1)
                  : open_fixture("{name: a, ranks: 3, samples: 1000}, {name: b, ranks: 2}",
                                 "[{region: a}, {region: b}, {region: a}]", kinds[i].schedule, 1);
    phases_are_predicted(&near, kinds[i].schedule);
    phases_are_predicted(&far, kinds[i].schedule);
    close_fixture(&far);
    close_fixture(&near);
  }
}

/* All phases of a region's workers add up to the time of its training, which `split` has, too. */
static void test_phases_add_up(void) {
  for (size_t i = 0; i < KINDS; i++) {
    fixture f = open_far(i);
    gt_sim *sim = NULL;
    f.spec.tests = (gt_ps_tests[3]){{40, false, 0}, {40, false, 0}, {40, false, 0}};
    must(gt_sim_run(&sim, &f.spec));
    for (size_t r = 0; r < 2; r++) {
      gt_region_result found;
      double sum = 0, split;
      gt_sim_region(sim, r, &found);
      for (size_t p = 0; p < GT_NPHASES; p++) sum += found.phase_s[p];
      split = (found.split_train_s + found.split_upload_s + found.split_aggregate_s +
               found.split_download_s) *
              (double)found.steps;
      if (sum <= 0 || fabs(sum - split) > 1e-9)
        fail_msg("%s, region %zu: phases have %.9f s, the split %.9f s", kinds[i].schedule, r, sum,
                 split);
      assert_true(fabs(found.compute_s - found.phase_s[GT_PHASE_FORWARD] -
                       found.phase_s[GT_PHASE_BACKWARD_INPUT] -
                       found.phase_s[GT_PHASE_BACKWARD_WEIGHT] - found.phase_s[GT_PHASE_BACKWARD]) <
                  1e-9);
    }
    gt_sim_close(sim);
    close_fixture(&f);
  }
}

static void test_what_crosses_the_wan(void) {
  for (size_t i = 0; i < KINDS; i++) {
    fixture f = open_far(i);
    gt_sim *sim = NULL;
    gt_sim_totals t;
    gt_link_result link;
    must(gt_sim_run(&sim, &f.spec));
    gt_sim_get_totals(sim, &t);
    assert_int_equal(t.steps, 2 * STEPS);
    assert_int_equal(t.samples, STEPS * BATCH);
    for (size_t from = 0; from < 2; from++) {
      gt_sim_link(sim, from, 1 - from, &link);
      assert_int_equal(link.bytes_sent, STEPS * gt_pipe_job_bytes(f.pipe, from, 1 - from));
      assert_true(link.bytes_sent > 0);
    }
    gt_sim_close(sim);
    close_fixture(&f);
  }
}

/* The last stage is in another region than the data: labels are in the messages there, and not in
   those back. */
static void test_labels_that_travel(void) {
  sent = true;
  for (size_t i = 0; i < KINDS; i++) {
    if (strcmp(kinds[i].schedule, "zb-v") == 0) continue;
    fixture f = open_fixture("{name: a, ranks: 2, samples: 1000}, {name: b, ranks: 3}",
                             "[{region: a}, {region: b, workers: 2}]", kinds[i].schedule, STEPS);
    gt_sim *sim = NULL;
    gt_link_result there, back;
    must(gt_sim_run(&sim, &f.spec));
    gt_sim_link(sim, 0, 1, &there);
    gt_sim_link(sim, 1, 0, &back);
    assert_int_equal(there.bytes_sent, STEPS * gt_pipe_job_bytes(f.pipe, 0, 1));
    assert_int_equal(back.bytes_sent, STEPS * gt_pipe_job_bytes(f.pipe, 1, 0));
    assert_int_equal(there.bytes_sent - back.bytes_sent, STEPS * BATCH * 129 * sizeof(int32_t));
    gt_sim_close(sim);
    close_fixture(&f);
  }
  sent = false;
}

static void test_a_forecast_is_the_whole(void) {
  for (size_t i = 0; i < KINDS; i++) {
    fixture f = open_far(i);
    gt_sim_forecast whole, part;
    must(gt_sim_predict(&whole, &f.spec, 0));
    must(gt_sim_predict(&part, &f.spec, 50));
    assert_true(whole.part == 1 && part.part == 1 && part.error_s == 0);
    assert_true(part.virtual_s == whole.virtual_s);
    assert_int_equal(part.totals.bytes_sent, whole.totals.bytes_sent);
    gt_sim_forecast_close(&part);
    gt_sim_forecast_close(&whole);
    close_fixture(&f);
  }
}

static void test_a_step_needs_its_samples(void) {
  fixture f = open_fixture("{name: a, ranks: 3, samples: 23}", plain, "1f1b", 1);
  gt_sim *sim = NULL;
  must_say(gt_sim_run(&sim, &f.spec), GT_ERR_JOB,
           "train.batch: region a has 23 samples, and a step of the "
           "pipeline takes 24; expected as many samples or more");
  close_fixture(&f);
}

TESTS(test_a_step_takes_what_its_schedule_takes, test_the_period_is_as_planned,
      test_phases_are_those_of_the_schedule, test_phases_add_up, test_what_crosses_the_wan,
      test_labels_that_travel, test_a_forecast_is_the_whole, test_a_step_needs_its_samples)
