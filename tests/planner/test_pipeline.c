/* The plan of a pipeline: its figures are those of the pipeline's own evaluation, the run's follow
   from them; what is printed, written as JSON and drawn. */
#include <jansson.h>

#include "jobs.h"
#include "pipeline.h"

static const char text[] =
    "name: piped\nseed: 2\nmodel: {name: gpt-tiny, layers: 4, width: 32}\n"
    "train: {until: {epochs: 2}, batch: 16, optimizer: {lr: 0.1}}\n"
    "regions: [{name: east, ranks: 3, samples: 100, price: 3.6, ps_price: 1.8}, {name: west, "
    "ranks: "
    "3, price: 3.6, ps_price: 1.8}]\n"
    "pipeline:\n  stages: [{region: east, last: transformer.h.0}, {region: west, last: "
    "transformer.h.1}, {region: west, last: transformer.h.2}, {region: east}]\n"
    "  micro_batches: 8\n"
    "wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\n"
    "compute: {step: 400 ms}\nplan: {start: 0 s, billing: 1 ms}\n";

static gt_job *job_with(const char *more) {
  return job_as("%s%s", text, more);
}

static gt_planner_pipeline *plan_of(const gt_job *job) {
  gt_planner_pipeline *p = NULL;
  must(gt_planner_pipeline_make(&p, job));
  return p;
}

static bool near(double a, double b) {
  return fabs(a - b) <= 1e-9 * fabs(b);
}

static void figures(void) {
  gt_job *job = job_with("");
  gt_planner_pipeline *p = plan_of(job);
  gt_pipe_result own;
  must(gt_pipe_evaluate(&own, p->pipe->layout.schedule, &p->pipe->problem, GT_PIPE_STEADY));
  assert_true(own.period == p->result.period && own.makespan == p->result.makespan);
  gt_pipe_result_close(&own);
  /* 100 samples in batches of 16: 6 steps a pass, because all batches are full. */
  assert_int_equal(p->steps, 12);
  assert_true(near(p->wall_s, 12 * gt_seconds(p->result.period)));
  assert_true(near(gt_planner_pipeline_rate(p), 16 / gt_seconds(p->result.period)));
  /* Two cuts between the regions, 8 micro-batches of 2 samples, each one frame: outputs one way,
     gradients the other. */
  const double step = 2 * 8 * (2 * 128 * 32 * 4 + 96);
  assert_true(p->step_bytes[1] == step && p->step_bytes[2] == step);
  assert_true(p->bytes[1] == 12 * step && p->step_bytes[0] == 0);
  /* 4 workers at 3.6 USD an hour, 2 servers at 1.8. */
  assert_true(fabs(p->cost.usd - p->wall_s * (4 * 3.6 + 2 * 1.8) / 3600) < 1e-5);
  gt_planner_pipeline_close(p);
  gt_job_close(job);
}

/* `auto` is no slower than any other schedule; zb-v is for folded pipelines. */
static void other_schedules(void) {
  gt_job *job = job_with("");
  gt_planner_pipeline *p = plan_of(job);
  const gt_planner_schedule *chosen = &p->schedules[GT_PIPE_AUTO];
  assert_int_equal(p->nschedules, 6);
  assert_true(chosen->fits && chosen->period == p->result.period);
  for (size_t i = 0; i < p->nschedules; i++) {
    const gt_planner_schedule *s = &p->schedules[i];
    assert_int_equal(s->kind, i);
    assert_int_equal(s->fits, i != GT_PIPE_ZB_V);
    if (s->fits) assert_true(s->period >= chosen->period && s->memory > 0 && s->slots > 0);
  }
  assert_string_equal(p->schedules[GT_PIPE_ZB_V].why,
                      "schedule zb-v needs 2 spans per stage; pipeline.stages has 1");
  assert_int_equal(p->schedules[GT_PIPE_GPIPE].slots, 8);
  assert_int_equal(p->schedules[GT_PIPE_1F1B].slots, 4);
  gt_planner_pipeline_close(p);
  gt_job_close(job);
}

/* Two copies of one stage: a step takes 400 ms, and every eighth one, or every one, sends the model
   there and back at once, which takes its bytes over the link and 25 ms. */
static gt_planner_pipeline *plan_of_replicas(gt_job **job, const char *sync) {
  *job = job_as(
      "name: copied\nseed: 2\nmodel: {name: gpt-tiny, layers: 4, width: 32}\n"
      "train: {until: {epochs: 2}, batch: 16, optimizer: {lr: 0.1}}\n"
      "regions: [{name: east, ranks: 2, samples: 160}, {name: west, ranks: 2, samples: 320}]\n"
      "pipeline: {stages: [{region: east}], copies: [{regions: west}], micro_batches: 1}\n"
      "wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\n"
      "compute: {step: 400 ms}\nplan: {start: 0 s, billing: 1 ms}\nsync: {%s}\n",
      sync);
  return plan_of(*job);
}

static void several_replicas(void) {
  gt_job *often_job, *seldom_job;
  gt_planner_pipeline *often = plan_of_replicas(&often_job, "strategy: ssgd"),
                      *seldom = plan_of_replicas(&seldom_job, "strategy: sma, period: 8");
  const double model = (double)often->shape.parameters * 4, seconds = model * 8 / 100e6;
  assert_int_equal(often->nreplicas, 2);
  for (size_t c = 0; c < 2; c++) {
    const double more = often->replicas[c].period_s - 0.4;
    assert_true(gt_seconds(often->replicas[c].result.period) == 0.4);
    assert_int_equal(often->replicas[c].steps, c ? 40 : 20);
    if (more < 0.025 + seconds || more > 0.025 + 1.1 * seconds) fail_msg("%g s more", more);
    if (fabs(8 * (seldom->replicas[c].period_s - 0.4) / more - 1) > 0.01)
      fail_msg("%g and %g s", seldom->replicas[c].period_s, more);
  }
  for (size_t i = 1; i < 3; i++) {
    assert_true(often->step_bytes[i] > model && often->step_bytes[i] < 1.01 * model);
    assert_true(near(8 * seldom->step_bytes[i], often->step_bytes[i]));
    assert_true(near(often->bytes[i], 40 * often->step_bytes[i]));
  }
  /* without lockstep each replica sends as often as it makes steps */
  assert_true(near(seldom->bytes[1], 20 * seldom->step_bytes[1]));
  assert_true(near(seldom->bytes[2], 40 * seldom->step_bytes[2]));
  assert_true(near(often->wall_s, 40 * often->replicas[1].period_s));
  assert_true(near(gt_planner_pipeline_rate(often),
                   16 / often->replicas[0].period_s + 16 / often->replicas[1].period_s));
  gt_planner_pipeline_close(often);
  gt_planner_pipeline_close(seldom);
  gt_job_close(often_job);
  gt_job_close(seldom_job);
}

static void refusals(void) {
  gt_planner_pipeline *p = NULL;
  gt_job *job = job_with("");
  job->compute.step_s = 0;
  must_fail(gt_planner_pipeline_make(&p, job), GT_ERR_JOB,
            "compute.step is not given for region east");
  assert_null(p);
  gt_job_close(job);
  job = job_with("");
  job->pipeline.memory_bytes = 4096;
  must_fail(gt_planner_pipeline_make(&p, job), GT_ERR_JOB,
            "piped: pipeline.memory is 4 KiB, and a worker of stage 0");
  gt_job_close(job);
}

static void printed(void) {
  char *out;
  gt_job *job = job_with("");
  gt_planner_pipeline *p = plan_of(job);
  FILE *to = open_text(&out);
  assert_non_null(to);
  gt_planner_pipeline_print(to, p, 72);
  assert_int_equal(fclose(to), 0);
  static const char *const has[] = {"piped: gpt-tiny, ",
                                    "4 stages in 2 regions, schedule auto",
                                    "8 micro-batches of 2\n",
                                    "transformer.wte to transformer.h.0.mlp.sum\n",
                                    "transformer.h.3.ln_1 to lm_head\n",
                                    "\nstage 0   |F",
                                    "\n  not feasible: schedule zb-v ",
                                    "\neast -> west ",
                                    "the run: 12 steps, "};
  for (size_t i = 0; i < COUNT(has); i++) must_contain(out, has[i]);
  const char *line = strstr(out, "\nstage 0   |");
  assert_int_equal(strcspn(line + 1, "\n"), 72);
  free(out);
  gt_planner_pipeline_close(p);
  gt_job_close(job);
}

static void as_json(void) {
  char *out;
  gt_job *job = job_with("");
  gt_planner_pipeline *p = plan_of(job);
  FILE *to = open_text(&out);
  assert_non_null(to);
  must(gt_planner_pipeline_json(to, p));
  assert_int_equal(fclose(to), 0);
  json_t *root = json_loads(out, 0, NULL);
  assert_non_null(root);
  assert_true(
      near(json_real_value(json_object_get(root, "period_s")), gt_seconds(p->result.period)));
  assert_int_equal(json_integer_value(json_object_get(root, "steps")), 12);
  const json_t *stages = json_object_get(root, "stages");
  assert_int_equal(json_array_size(stages), 4);
  for (size_t s = 0; s < 4; s++) {
    const json_t *stage = json_array_get(stages, s);
    assert_int_equal(json_integer_value(json_object_get(stage, "memory_bytes")),
                     gt_pipe_job_memory(p->pipe, s));
    assert_string_equal(json_string_value(json_object_get(stage, "region")),
                        s == 0 || s == 3 ? "east" : "west");
  }
  assert_int_equal(json_array_size(json_object_get(root, "schedules")), 6);
  assert_int_equal(json_array_size(json_object_get(root, "links")), 2);
  json_decref(root);
  free(out);
  gt_planner_pipeline_close(p);
  gt_job_close(job);
}

static void drawn(void) {
  const char *path = in_folder("pipeline.svg");
  char begin[5];
  gt_job *job = job_with("");
  gt_planner_pipeline *p = plan_of(job);
  must(gt_planner_pipeline_svg(p, path));
  assert_int_equal(read_file(path, begin, sizeof begin), 4);
  assert_string_equal(begin, "<svg");
  must_say(gt_planner_pipeline_svg(p, "/nowhere/there/x.svg"), GT_ERR_JOB,
           "/nowhere/there/x.svg: No such file or directory; expected a file that can be written");
  gt_planner_pipeline_close(p);
  gt_job_close(job);
}

TESTS(figures, other_schedules, several_replicas, refusals, printed, as_json, drawn)
