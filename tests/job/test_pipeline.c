/* The section pipeline: values read, effects on other sections, its round trip, and each sentence
   with which it is refused. */
#include "world.h"

static const char plain[] =
    "name: tiny\nmodel: {name: gpt-tiny}\ndata: {path: d.h5}\ntrain: {until: {steps: 5}, batch: "
    "24, "
    "optimizer: {lr: 0.1}}\nregions: [{name: east, ranks: 4}, {name: west, ranks: 3}]\n";

static const char stages[] = "pipeline:\n"
                             "  stages:\n"
                             "    - {region: east, workers: 2, last: transformer.h.0}\n"
                             "    - {region: west, workers: 2, last: transformer.h.2}\n"
                             "    - {region: east}\n"
                             "  micro_batches: 6\n";

static gt_job *job_with(const char *more, const char *const *sets, size_t nsets) {
  return w_job(plain, more, sets, nsets);
}

/* A folded pipeline of two stages. */
static gt_job *folded(const char *schedule) {
  char kind[48];
  snprintf(kind, sizeof kind, "pipeline.schedule=%s", schedule);
  const char *const sets[] = {"pipeline.stages=[{region: east, workers: 3, last: [a, d]}, {region: "
                              "west, workers: 2, last: [b, c]}]",
                              kind, "train.batch=36"};
  return job_with(stages, sets, COUNT(sets));
}

/* ---- accepted values ------------------------------------------------------------------------- */

static void all_is_read(void) {
  gt_job *job = job_with(stages, (const char *[]){"pipeline.memory=2 GiB"}, 1);
  const gt_job_stage *s = job->pipeline.stages;
  assert_int_equal(job->pipeline.nstages, 3);
  assert_int_equal(job->pipeline.micro_batches, 6);
  assert_int_equal(job->pipeline.schedule, GT_PIPE_AUTO);
  assert_int_equal(job->pipeline.labels, GT_LABELS_KEEP);
  assert_true(job->pipeline.memory_bytes == 0x1p31);
  assert_true(s[0].id == 0 && s[1].id == 1 && s[2].id == 0);
  assert_true(s[0].workers == 2 && s[1].workers == 2 && s[2].workers == 1);
  assert_true(s[0].nlast == 1 && s[1].nlast == 1 && s[2].nlast == 0 && !s[2].last);
  assert_string_equal(s[1].last[0], "transformer.h.2");
  assert_int_equal(gt_job_chunks(job), 1);
  assert_int_equal(job->sync.strategy, GT_STRATEGY_NONE);
  gt_job_close(w_again(job));
  gt_job_close(job);
}

static void folded_pipelines(void) {
  gt_job *job = folded("zb-v");
  assert_int_equal(gt_job_chunks(job), 2);
  assert_int_equal(job->pipeline.stages[1].nlast, 2);
  assert_string_equal(job->pipeline.stages[1].last[1], "c");
  gt_job_close(w_again(job));
  gt_job_close(job);
  job = folded("auto");
  assert_int_equal(gt_job_chunks(job), 2);
  gt_job_close(job);
  /* The first stage's second part ends the model: it needs no name. */
  job = job_with(stages,
                 (const char *[]){"pipeline.stages=[{region: east, workers: 3, last: a}, {region: "
                                  "west, workers: 2, last: [b, c]}]",
                                  "pipeline.schedule=zb-v", "train.batch=36"},
                 3);
  assert_int_equal(job->pipeline.stages[0].nlast, 1);
  gt_job_close(job);
  /* No names: the model is divided evenly. */
  job = job_with(
      stages,
      (const char *[]){"pipeline.stages=[{region: east, workers: 3}, {region: west, workers: 2}]",
                       "pipeline.schedule=zb-v", "train.batch=36"},
      3);
  assert_int_equal(gt_job_chunks(job), 2);
  gt_job_close(w_again(job));
  gt_job_close(job);
}

/* Without a pipeline the resolved job is unchanged. */
static void no_pipeline(void) {
  gt_job *job = job_with("", NULL, 0);
  assert_int_equal(job->pipeline.nstages, 0);
  assert_int_equal(job->sync.strategy, GT_STRATEGY_ASGD_GA);
  char *text = gt_job_resolved(job), *flat = w_flat(job);
  assert_null(strstr(text, "pipeline"));
  assert_null(strstr(flat, "pipeline"));
  free(flat);
  gt_free(text);
  gt_job_close(job);
}

static void who_reads_data(void) {
  gt_job *job = job_with(stages, NULL, 0);
  assert_true(gt_job_reads(job, 0) && !gt_job_reads(job, 1));
  assert_true(gt_job_trains(job, 1));
  gt_job_close(job);
  job = job_with(stages, (const char *[]){"data.partition.shares=[3, 0]"}, 1);
  gt_job_close(job);
  job = job_with("", NULL, 0);
  assert_true(gt_job_reads(job, 0) && gt_job_reads(job, 1));
  gt_job_close(job);
  /* The west needs no data of its own. */
  job = job_with(
      stages,
      (const char *[]){"data.path=null", "regions.0.data.path=e.h5", "data.partition.by=file"}, 3);
  gt_job_close(job);
}

static void differences_are_named(void) {
  gt_job *a = job_with(stages, NULL, 0),
         *b = job_with(stages, (const char *[]){"pipeline.stages.1.last=transformer.h.1"}, 1);
  w_differ(a, b, false,
           "pipeline.stages.1.last is [transformer.h.1] there and [transformer.h.2] here");
  w_differ(a, b, true, ""); /* a resume can divide the model differently */
  gt_job_close(a);
  gt_job_close(b);
}

/* ---- refused values -------------------------------------------------------------------------- */

typedef struct {
  const char *sets[6];  /* up to the first NULL */
  const char *expected; /* follows the name of the file */
} refusal;

static void refused(const char *more, const refusal *r) {
  char sentence[512];
  size_t n = 0;
  while (n < COUNT(r->sets) && r->sets[n]) n++;
  snprintf(sentence, sizeof sentence, "@: %s", r->expected);
  w_refused(plain, more, r->sets, n, sentence);
}

static void wrong_regions(void) {
  static const refusal all[] = {
      {{"pipeline.stages.1.region=wets"},
       "pipeline.stages.1.region is \"wets\", which is not a region of the job; expected the name "
       "of one; did you mean west?"},
      {{"regions.1.ranks=1"},
       "pipeline.stages.1.region is west, which has no workers (regions.1.ranks is 1); expected a "
       "region with workers"},
      {{"regions.0.ranks=3"},
       "the stages of pipeline.stages in region east have 3 workers, and regions.0.ranks is 3, of "
       "which 2 are workers; expected the same number"},
      {{"regions.1.ranks=auto", "regions.1.devices=[{type: x, count: 2}]"},
       "regions.1.ranks is auto, and the stages of pipeline.stages in region west have 2 workers; "
       "expected 3 ranks, one for the parameter server"},
      {{"regions.2={name: south, ranks: 2}"},
       "pipeline.stages has no stage in region south; expected one or more in every region of the "
       "job"},
      {{"pipeline.stages=[{region: east, workers: 3}, {region: west, workers: 2}]"},
       "pipeline.labels is keep, the first stage is in region east and the last one, which needs "
       "the labels, in region west; expected both in one region, or labels: send"},
  };
  for (size_t i = 0; i < COUNT(all); i++) refused(stages, &all[i]);
  const char *const sent[] = {
      "pipeline.stages=[{region: east, workers: 3}, {region: west, workers: 2}]",
      "pipeline.labels=send", "train.batch=36"};
  gt_job_close(job_with(stages, sent, COUNT(sent)));
}

static void wrong_ends(void) {
  static const refusal all[] = {
      {{"pipeline.stages.0.last=null"},
       "pipeline.stages.0.last is missing, and other stages have it; expected one name in every "
       "stage, or none in any"},
      {{"pipeline.stages.0.last=[a, b]", "pipeline.stages.1.last=null"},
       "pipeline.stages.1.last is missing, and other stages have it; expected two names in every "
       "stage, or none in any"},
      {{"pipeline.stages.0.last=[a, b]", "pipeline.schedule=1f1b"},
       "pipeline.stages.0.last has 2 names, and the pipeline is not folded; expected one"},
      {{"pipeline.schedule=zb-v"},
       "pipeline.stages.1.last has 1 name, and the pipeline is folded: a stage has two parts of "
       "the model; expected two"},
      {{"pipeline.stages.0.last=[a, b, c]"},
       "pipeline.stages.0.last has 3 names, and the pipeline is folded: a stage has two parts of "
       "the model; expected one or two"},
  };
  for (size_t i = 0; i < COUNT(all); i++) refused(stages, &all[i]);
}

static void wrong_batches(void) {
  static const refusal all[] = {
      {{"pipeline.micro_batches=5"},
       "pipeline.micro_batches is 5 and train.batch 24; expected a number that divides the batch"},
      {{"pipeline.micro_batches=8"},
       "pipeline.stages.0.workers is 2 and a micro-batch 3 samples (train.batch 24 in 8); expected "
       "a number that divides them"},
      {{"pipeline.micro_batches=null"},
       "pipeline.micro_batches is missing or auto, and pipeline.stages is a list; expected a "
       "number, or stages: auto"},
  };
  for (size_t i = 0; i < COUNT(all); i++) refused(stages, &all[i]);
}

/* ---- stages to be found ---------------------------------------------------------------------- */

static void found_later(void) {
  gt_job *job = job_with("pipeline: {stages: auto}\n", NULL, 0);
  assert_true(job->pipeline.search && job->pipeline.nstages == 0 && !job->pipeline.stages);
  assert_int_equal(job->pipeline.micro_batches, 0);
  assert_int_equal(job->sync.strategy, GT_STRATEGY_NONE);
  assert_true(gt_job_reads(job, 0) && gt_job_reads(job, 1));
  must_fail(gt_job_check_run(job), GT_ERR_JOB,
            ": pipeline.stages is auto; `geotrain plan JOB --write OUT.yaml` finds the stages");
  gt_job_close(w_again(job));
  gt_job_close(job);
  job = job_with("pipeline: {stages: auto, micro_batches: 6, schedule: zb-h1}\n",
                 (const char *[]){"regions.1.samples=10"}, 1);
  assert_int_equal(job->pipeline.micro_batches, 6);
  assert_int_equal(job->pipeline.schedule, GT_PIPE_ZB_H1);
  assert_true(!gt_job_reads(job, 0) && gt_job_reads(job, 1));
  gt_job_close(w_again(job));
  gt_job_close(job);
}

static void wrong_searches(void) {
  static const char automatic[] = "pipeline: {stages: auto}\n";
  static const refusal all[] = {
      {{"regions.0.samples=5", "regions.1.samples=5"},
       "pipeline.stages is auto, region east has samples and region west has samples; a pipeline "
       "reads the data of one region, so expected one of the two"},
      {{"regions.1.ranks=1"},
       "pipeline.stages is auto and region west has no workers (regions.1.ranks is 1); a pipeline "
       "has stages in every region"},
      {{"pipeline.micro_batches=5"},
       "pipeline.micro_batches is 5 and train.batch 24; expected a number that divides the batch"},
      {{"sync.strategy=sma"},
       "sync.strategy is sma with a pipeline of one replica, which exchanges nothing by a "
       "strategy; expected none, or pipeline.copies"},
      {{"pipeline.copies=[{regions: west}]"},
       "pipeline.stages is auto with pipeline.copies, whose regions correspond to those of stages; "
       "expected a list of stages, or no copies"},
  };
  for (size_t i = 0; i < COUNT(all); i++) refused(automatic, &all[i]);
}

static void what_a_pipeline_fixes(void) {
  static const refusal all[] = {
      {{"sync.strategy=sma"},
       "sync.strategy is sma with a pipeline of one replica, which exchanges nothing by a "
       "strategy; expected none, or pipeline.copies"},
      {{"sync.local=async"},
       "sync.local is async with a pipeline, whose workers run in step; expected sync"},
      {{"sync.topology=ring"},
       "sync.topology is ring with a pipeline, which has its own topology; remove the key"},
      {{"sync.central=east"},
       "sync.central is east with a pipeline, which has its own topology; remove the key"},
      {{"plan.strategies=[sma]"},
       "plan.strategies is given with a pipeline, for which a plan compares nothing; remove the "
       "key"},
      {{"plan.periods=[4]"},
       "plan.periods is given with a pipeline, for which a plan compares nothing; remove the key"},
      {{"plan.codecs=[int8]"},
       "plan.codecs is given with a pipeline, for which a plan compares nothing; remove the key"},
      {{"compute.variation=0.1"},
       "compute.variation is 0.1 with a pipeline, whose passes take the time that compute gives; "
       "expected 0"},
      {{"regions.1.data.path=w.h5"},
       "regions.1.data.path is given, and region west does not have the first stage of the "
       "pipeline, which alone reads data; expected no data.path"},
      {{"regions.1.samples=100"},
       "regions.1.samples is given, and region west does not have the first stage of the pipeline, "
       "which alone reads data; expected no samples"},
      {{"data.partition.shares=[2, 1]"},
       "data.partition.shares.1 is 1, and region west does not have the first stage of the "
       "pipeline, which alone reads data; expected 0"},
      {{"data.partition.shares=[0, 0]"},
       "data.partition.shares.0 is 0, and region east trains; expected a number above 0"},
  };
  for (size_t i = 0; i < COUNT(all); i++) refused(stages, &all[i]);
  gt_job_close(job_with(stages, (const char *[]){"sync.strategy=none"}, 1));
}

/* ---- several replicas ------------------------------------------------------------------------ */

#define SOUTH "regions.2={name: south, ranks: 3}"
#define NORTH "regions.3={name: north, ranks: 4}"
#define TWO   "pipeline.copies=[{regions: [north, south]}]"

/* North is in the places of east, south in that of west. */
static void copies_are_read(void) {
  gt_job *job = job_with(stages, NULL, 0);
  assert_true(gt_job_replicas(job) == 1 && gt_job_replica_of(job, 1) == 0);
  assert_int_equal(gt_job_replica(job, 1, 0), 1);
  gt_job_close(job);
  job = job_with(stages, (const char *[]){SOUTH, NORTH, TWO, "sync.strategy=sma"}, 4);
  static const size_t replica[] = {0, 0, 1, 1}, first[] = {0, 1, 1, 0}, second[] = {3, 2, 2, 3};
  assert_int_equal(gt_job_replicas(job), 2);
  for (size_t r = 0; r < 4; r++) {
    assert_int_equal(gt_job_replica_of(job, r), replica[r]);
    assert_int_equal(gt_job_replica(job, r, 0), first[r]);
    assert_int_equal(gt_job_replica(job, r, 1), second[r]);
    assert_int_equal(gt_job_reads(job, r), r == 0 || r == 3);
  }
  for (size_t s = 0; s < 3; s++) {
    assert_int_equal(gt_job_stage_region(job, 0, s), s == 1 ? 1 : 0);
    assert_int_equal(gt_job_stage_region(job, 1, s), s == 1 ? 2 : 3);
  }
  gt_job_close(w_again(job));
  gt_job_close(job);
}

static void copies_may_adapt(void) {
  static const char *const adapts[] = {"pipeline.adapt=true", "pipeline.adapt=micro_batches"};
  for (size_t i = 0; i < COUNT(adapts); i++) {
    gt_job *job =
        job_with(stages, (const char *[]){SOUTH, NORTH, TWO, "sync.strategy=sma", adapts[i]}, 5);
    assert_int_equal(job->pipeline.adapt, i == 0 ? GT_ADAPT_ORDER : GT_ADAPT_MICRO_BATCHES);
    gt_job_close(w_again(job));
    gt_job_close(job);
  }
}

static void is_called(const gt_job *job, size_t replica, size_t size, const char *name) {
  char text[GT_REPLICA_TEXT];
  assert_string_equal(gt_job_replica_text(job, replica, text, size), name);
}

static void copies_have_names(void) {
  gt_job *job = job_with(stages, (const char *[]){SOUTH, NORTH, TWO, "sync.strategy=sma"}, 4);
  is_called(job, 0, GT_REPLICA_TEXT, "replica 1 (east, west)");
  is_called(job, 1, GT_REPLICA_TEXT, "replica 2 (north, south)");
  is_called(job, 1, 27, "replica 2 (north, ...)");
  is_called(job, 1, 23, "replica 2 (north, ...)");
  is_called(job, 1, 21, "replica 2 (...)");
  gt_job_close(job);
}

static void wrong_copies(void) {
  static const refusal all[] = {
      {{SOUTH, NORTH, "pipeline.copies=[{regions: south}]", "sync.strategy=sma"},
       "pipeline.copies.0.regions has 1 name, and pipeline.stages has stages in 2 regions; "
       "expected the same number"},
      {{SOUTH, NORTH, "pipeline.copies=[{regions: [nort, south]}]", "sync.strategy=sma"},
       "pipeline.copies.0.regions.0 is \"nort\", which is not a region of the job; expected the "
       "name of one; did you mean north?"},
      {{SOUTH, NORTH, "pipeline.copies=[{regions: [north, east]}]", "sync.strategy=sma"},
       "pipeline.copies.0.regions.1 is east, which has stages already (pipeline.stages); expected "
       "a region that has none"},
      {{SOUTH, NORTH, "pipeline.copies=[{regions: [north, north]}]", "sync.strategy=sma"},
       "pipeline.copies.0.regions.1 is north, which has stages already (pipeline.copies); expected "
       "a region that has none"},
      {{SOUTH, NORTH, "pipeline.copies=[{regions: [south, north]}]", "sync.strategy=sma"},
       "the stages of pipeline.stages in region south have 3 workers, and regions.2.ranks is 3, of "
       "which 2 are workers; expected the same number"},
      {{SOUTH, NORTH, TWO},
       "sync.strategy is none with pipeline.copies, so that replicas would diverge; expected "
       "another strategy"},
      {{SOUTH, NORTH, TWO, "sync.strategy=ssgd", "sync.topology=auto"},
       "sync.topology is auto with pipeline.copies, for which no topology is chosen; expected "
       "mesh, hub, tree or ring"},
      {{SOUTH, NORTH, "sync.strategy=ssgd"},
       "pipeline.stages has no stage in region south; expected one or more in every region of the "
       "job"},
      {{SOUTH, NORTH, TWO, "sync.strategy=ssgd", "regions.2.data.path=s.h5"},
       "regions.2.data.path is given, and region south does not have the first stage of the "
       "pipeline, which alone reads data; expected no data.path"},
      {{SOUTH, NORTH, TWO, "sync.strategy=ssgd", "sync.central=east"},
       "sync.central is east with a pipeline, which has its own topology; remove the key"},
  };
  for (size_t i = 0; i < COUNT(all); i++) refused(stages, &all[i]);
}

static void keys_without_stages(void) {
  refused(
      "",
      &(refusal){
          {"pipeline.micro_batches=6"},
          "pipeline.micro_batches is given and pipeline.stages is not; expected both or neither"});
  refused("", &(refusal){
                  {"pipeline.memory=1 GiB"},
                  "pipeline.memory is given and pipeline.stages is not; expected both or neither"});
}

/* A mistake in --set is reported for --set, not for the file. */
static void wrong_values(void) {
  static const struct {
    const char *set, *expected;
  } all[] = {
      {"pipeline.stages=[]", "--set: pipeline.stages is an empty list; expected 1 or more entries"},
      {"pipeline.stages.0.last=[]",
       "--set: pipeline.stages.0.last is an empty list; expected 1 or more entries"},
      {"pipeline.stages.0.workers=0",
       "--set: pipeline.stages.0.workers is 0; expected 1 or more and at most 65535"},
      {"pipeline.stages.0.lats=x",
       "--set: unknown key pipeline.stages.0.lats; did you mean pipeline.stages.0.last?"},
      {"pipeline.schedule=zb-h3", "--set: pipeline.schedule is \"zb-h3\"; expected one of gpipe, "
                                  "1f1b, zb-h1, zb-h2, zb-v, auto; did you mean zb-h1?"},
  };
  for (size_t i = 0; i < COUNT(all); i++) w_refused(plain, stages, &all[i].set, 1, all[i].expected);
}

TESTS(all_is_read, folded_pipelines, no_pipeline, who_reads_data, differences_are_named,
      wrong_regions, wrong_ends, wrong_batches, found_later, wrong_searches, what_a_pipeline_fixes,
      copies_are_read, copies_may_adapt, copies_have_names, wrong_copies, keys_without_stages,
      wrong_values)
