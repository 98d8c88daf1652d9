/* The search for the pipeline of a job: its predicted period equals that of the job with the
   pipeline found; names of stages; memory; fleets of a profile; refusals. */
#include "cases.h"
#include "geotrain/pipe_search.h"
#include "tests.h"

#define T 8

static const char text[] =
    "name: small\nseed: 3\nmodel: {name: gpt, layers: 4, width: 16, heads: 2, context: 8}\n"
    "data: {path: d.h5}\ntrain: {until: {steps: 5}, batch: 24, optimizer: {lr: 0.1}}\n"
    "regions: [{name: east, ranks: 4, compute: {speeds: [1, 0.5, 0.5]}}, {name: west, ranks: 3}]\n"
    "wan: {links: [{from: east, to: west, bandwidth: 100 Mbit/s, latency: 2 ms}, {from: west, to: "
    "east, bandwidth: 50 Mbit/s, latency: 3 ms}]}\n"
    "compute: {step: 240 ms, local: 1 ms, update: 7 ms}\npipeline: {stages: auto}\n";

static gt_status load(gt_job **job, const char *const *sets, size_t nsets) {
  return gt_job_load(job, file_with("job.yaml", text), sets, nsets);
}

static gt_job *job_with(const char *const *sets, size_t nsets) {
  gt_job *job = NULL;
  must(load(&job, sets, nsets));
  return job;
}

static gt_graph_spec model_of(const gt_job *job) {
  gt_graph_spec spec = gt_graph_spec_of(job);
  spec.shape = (gt_sample_shape){1, 1, T + 1, 256, 256};
  spec.text = true;
  spec.kernels = gt_kernels_find("ref");
  return spec;
}

static gt_pipe_job_search *open_search(const gt_job *job) {
  gt_pipe_job_search *s = NULL;
  const gt_graph_spec model = model_of(job);
  must(gt_pipe_job_search_open(&s, job, &model));
  return s;
}

/* Checks that the job with the pipeline found has the period given by the search, for any kind of
   schedule. */
static void check_found(const gt_pipe_job_search *s, const gt_pipe_found *f) {
  char *sets[GT_PIPE_SETS];
  const size_t n = gt_pipe_job_search_sets(s, f, sets);
  gt_job *job = job_with((const char *const *)sets, n);
  const gt_graph_spec model = model_of(job);
  gt_pipe_job *pipe = NULL;
  if (gt_pipe_job_open(&pipe, job, &model, 0) != GT_OK)
    fail_msg("%s: %s", sets[0], gt_error_text());
  assert_int_equal(pipe->layout.stages, f->stages);
  assert_int_equal(pipe->layout.chunks, f->chunks);
  for (size_t k = 0; k < f->stages * f->chunks; k++)
    assert_int_equal(pipe->spans[k].end, s->spans[f->ends[k] - 1].end);
  static const gt_pipe_kind kinds[] = {GT_PIPE_GPIPE, GT_PIPE_1F1B, GT_PIPE_ZB_H1, GT_PIPE_ZB_V};
  for (size_t i = 0; i < COUNT(kinds); i++) {
    gt_pipe_schedule *schedule = NULL;
    gt_pipe_result result;
    gt_pipe_search_problem problem = s->problem;
    if (gt_pipe_chunks(kinds[i]) > 0 && gt_pipe_chunks(kinds[i]) != f->chunks) continue;
    problem.kind = kinds[i];
    must(gt_pipe_job_schedule(&schedule, pipe, kinds[i]));
    must(gt_pipe_evaluate(&result, schedule, &pipe->problem, GT_PIPE_STEADY));
    const double own = gt_pipe_search_period(&problem, f, 2);
    /* times are rounded to nanoseconds, of each pass alike */
    assert_true(fabs(own - gt_seconds(result.period)) <= 1e-9 * 6 * (double)f->micro_batches);
    gt_pipe_result_close(&result);
    gt_pipe_schedule_close(schedule);
  }
  gt_pipe_job_close(pipe);
  gt_job_close(job);
  for (size_t i = 0; i < n; i++) gt_free(sets[i]);
}

static void takes_what_the_job_takes(void) {
  gt_job *job = job_with(NULL, 0);
  gt_pipe_job_search *s = open_search(job);
  gt_pipe_search_result r;
  s->problem.effort = 0.05;
  must(gt_pipe_search_run(&r, &s->problem));
  assert_true(r.n > 1);
  for (size_t i = 0; i < r.n; i += cases(1, 3)) check_found(s, &r.found[i]);
  gt_pipe_search_close(&r);
  gt_pipe_job_search_close(s);
  gt_job_close(job);
}

/* The head has the weights of the embedding, so both are in one region, also if labels are sent. */
static void tied(void) {
  gt_job *job = job_with((const char *[]){"pipeline.labels=send"}, 1);
  gt_pipe_job_search *s = open_search(job);
  const gt_pipe_piece *last = &s->pieces[s->problem.npieces - 1];
  gt_pipe_search_result r;
  assert_int_equal(last->owner, 0);
  /* ids and positions, parameters and gradients */
  assert_true(last->tied_bytes == 2.0 * 4 * (256 + T) * 16);
  assert_true(s->pieces[0].samples && !s->pieces[1].samples);
  s->problem.effort = 0.05;
  must(gt_pipe_search_run(&r, &s->problem));
  for (size_t i = 0; i < r.n; i++) {
    const gt_pipe_found *f = &r.found[i];
    const size_t end = gt_pipe_stage_of(f->stages, f->stages * f->chunks - 1);
    assert_int_equal(f->places[0].region, f->places[end].region);
  }
  gt_pipe_search_close(&r);
  gt_pipe_job_search_close(s);
  gt_job_close(job);
}

/* A pipeline found with a limit of memory fits into it, as the job computes memory. */
static void within_memory(void) {
  size_t least = SIZE_MAX;
  for (size_t kib = 1024; kib >= 16; kib = all_cases() ? kib * 3 / 4 : kib / 2) {
    char limit[64];
    snprintf(limit, sizeof limit, "pipeline.memory=%zu KiB", kib);
    gt_job *job = job_with((const char *[]){limit}, 1);
    gt_pipe_job_search *s = open_search(job);
    gt_pipe_search_result r;
    s->problem.effort = 0.02;
    if (gt_pipe_search_run(&r, &s->problem) == GT_OK) {
      least = kib;
      gt_pipe_search_close(&r);
    } else
      must_contain(gt_error_text(), "no pipeline fits into the memory");
    gt_pipe_job_search_close(s);
    gt_job_close(job);
  }
  assert_true(least > 16 && least < 1024);
}

/* ---- fleets ---------------------------------------------------------------------------------- */

/* A profile with a device for each of five workers and times of `runs` runs of operations. */
static void write_profile(const gt_pipe_job_search *s, const char *first, size_t runs) {
  FILE *to = fopen(in_folder("profile.yaml"), "w");
  assert_non_null(to);
  fprintf(to, "fleet:\n  devices:\n");
  const char *const names[] = {first, "east.1", "east.2", "west.0", "west.1"};
  for (size_t i = 0; i < 5; i++)
    fprintf(to, "    - {name: %s, power: %zu, memory: %zu B}\n", names[i], 100 + i,
            ((size_t)1 << 20) + i);
  fprintf(to, "  links:\n");
  for (size_t i = 0; i < 5; i++)
    fprintf(to, "    - {from: %s, small_us: [1, 1, 1, 1, 1], large_us: [9, 9, 9, 9, 9]}\n",
            names[i]);
  fprintf(to, "  operations:\n");
  for (size_t k = 0; k < runs; k++)
    fprintf(to,
            "    - {name: run%zu, first: %zu, last: %zu, forward_us: %zu, input_us: 20, weight_us: "
            "30}\n",
            k, s->spans[k].first, s->spans[k].end - 1, 10 + k);
  assert_int_equal(fclose(to), 0);
}

static void by_fleet(void) {
  gt_job *job = job_with(NULL, 0);
  gt_pipe_job_search *plain = open_search(job), *s = NULL;
  const size_t runs = plain->problem.npieces;
  const char *const named[] = {"profile=profile.yaml"};
  write_profile(plain, "east.0", runs);
  gt_job *with = job_with(named, 1);
  s = open_search(with);
  assert_true(s->by_fleet && !plain->by_fleet);
  assert_true(s->power[0][0] == 100 && s->power[0][2] == 102 && s->power[1][1] == 104);
  assert_true(fabs(s->pieces[3].work.forward_s - 13e-6) < 1e-12);
  assert_true(fabs(s->pieces[3].work.weight_s - 30e-6) < 1e-12);
  assert_true(s->memory_bytes == 0x1p20 && s->sites[1].memory_bytes == 0x1p20);
  gt_pipe_job_search_close(s);
  gt_job_close(with);

  gt_graph_spec model = model_of(job);
  write_profile(plain, "other.0", runs);
  with = job_with(named, 1);
  must_fail(gt_pipe_job_search_open(&s, with, &model), GT_ERR_JOB,
            "has no device east.0, and region east has 3 workers");
  gt_job_close(with);
  write_profile(plain, "east.0", runs - 1);
  with = job_with(named, 1);
  must_fail(gt_pipe_job_search_open(&s, with, &model), GT_ERR_JOB,
            "runs of operations, which are not those of model gpt");
  gt_job_close(with);
  gt_pipe_job_search_close(plain);
  gt_job_close(job);
}

static void without_times(void) {
  gt_pipe_job_search *s = NULL;
  gt_job *job = job_with((const char *[]){"compute=null"}, 1);
  const gt_graph_spec model = model_of(job);
  must_say(
      gt_pipe_job_search_open(&s, job, &model), GT_ERR_JOB,
      "small: pipeline.stages is auto and compute.step is not given for region east; expected it, "
      "as in --set 'compute.step=10 ms', or a profile of `geotrain probe`");
  assert_null(s);
  gt_job_close(job);
}

TESTS(takes_what_the_job_takes, tied, within_memory, by_fleet, without_times)
