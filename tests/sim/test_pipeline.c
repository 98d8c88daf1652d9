/* Laws of a simulated pipeline, for every kind of schedule: within a region its step takes what the
   evaluation of the schedule says, to the nanosecond; between regions it sends the bytes that the
   pipeline of the job counts; and a forecast is the whole simulation, however few events it may
   use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

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
#define KINDS (sizeof kinds / sizeof *kinds)

typedef struct {
  gt_job *job;
  gt_links *links;
  gt_sim_shape shape;
  gt_pipe_job *pipe;
  gt_sim_spec spec;
} fixture;

static void must(gt_status status) {
  if (status != GT_OK) fail_msg("%s", gt_error_text());
}

static fixture open_fixture(const char *regions, const char *stages, const char *schedule,
                            int steps) {
  char text[2048];
  fixture f = {0};
  snprintf(text, sizeof text,
           "name: law\nmodel: {name: gpt, layers: 4, width: 16, heads: 2, context: 128}\n"
           "data: {path: none.h5}\n"
           "train: {until: {steps: %d}, batch: %d, optimizer: {name: sgd, lr: 0.1}, eval_every: "
           "{epochs: 0}}\n"
           "regions: [%s]\npipeline: {stages: %s, micro_batches: 6, schedule: %s}\n"
           "compute: {step: 24 ms}\ncheckpoint: {every: {steps: 0}}\n"
           "wan: {default: {bandwidth: 100 Mbit/s, latency: 5 ms}}\n",
           steps, BATCH, regions, stages, schedule);
  must(gt_job_parse(&f.job, "test", text));
  must(gt_links_create(&f.links, f.job));
  must(gt_sim_shape_of(&f.shape, f.job));
  must(gt_sim_shape_pipe(&f.pipe, f.job, &f.shape));
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

static void test_a_step_takes_what_its_schedule_takes(void **state) {
  (void)state;
  for (size_t i = 0; i < KINDS; i++) {
    fixture f =
        open_fixture("{name: a, ranks: 3, samples: 1000}", kinds[i].near, kinds[i].schedule, 1);
    gt_sim *sim = NULL;
    gt_sim_totals t;
    gt_pipe_result result;
    must(gt_pipe_evaluate(&result, f.pipe->layout.schedule, &f.pipe->problem, 1));
    must(gt_sim_run(&sim, &f.spec));
    gt_sim_look(sim, &t);
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

static void test_what_crosses_the_wan(void **state) {
  (void)state;
  for (size_t i = 0; i < KINDS; i++) {
    fixture f = open_far(i);
    gt_sim *sim = NULL;
    gt_sim_totals t;
    gt_link_result link;
    must(gt_sim_run(&sim, &f.spec));
    gt_sim_look(sim, &t);
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

static void test_a_forecast_is_the_whole(void **state) {
  (void)state;
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

static void test_a_step_needs_its_samples(void **state) {
  (void)state;
  fixture f = open_fixture("{name: a, ranks: 3, samples: 23}", plain, "1f1b", 1);
  gt_sim *sim = NULL;
  assert_int_equal(gt_sim_run(&sim, &f.spec), GT_ERR_JOB);
  assert_string_equal(gt_error_text(), "region a has 23 samples, and a step of the pipeline takes "
                                       "24 (train.batch); as many samples or more are needed");
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_step_takes_what_its_schedule_takes),
      cmocka_unit_test(test_what_crosses_the_wan),
      cmocka_unit_test(test_a_forecast_is_the_whole),
      cmocka_unit_test(test_a_step_needs_its_samples),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
