/* Loading valid job files: values, defaults, units, --set, the resolved job, differences, and every
   file in jobs/. */
#include <ctype.h>
#include <glob.h>
#include <unistd.h>

#include "world.h"
#include "internal.h"
#include "jobs.h"

static const char minimal[] = "name: tiny\nmodel: {name: lenet5}\ndata: {path: d.h5}\ntrain: "
                              "{until: {steps: 5}, optimizer: {lr: 0.1}}\n"
                              "regions:\n  - {name: a, ranks: 2}\n  - {name: b, ranks: 3}\n";

static gt_job *load(const char *text, const char *const *sets, size_t nsets) {
  return w_job(text, NULL, sets, nsets);
}

static void example_has_every_value(void) {
  gt_job *job = load(gt_job_example, NULL, 0);
  assert_string_equal(job->name, "lenet-2-regions");
  assert_string_equal(job->data.path, "datasets/fashion-mnist.h5");
  assert_int_equal(job->data.partition.nshares, 2);
  assert_true(job->data.partition.shares[0] == 2 && job->data.partition.shares[1] == 1);
  assert_true(job->train.until.epochs == 3 && job->train.until.steps == 0);
  assert_true(job->train.optimizer.lr == 0.02 && job->train.optimizer.momentum == 0.9);
  assert_int_equal(job->nregions, 2);
  assert_string_equal(job->regions[1].name, "chongqing");
  assert_int_equal(gt_job_ranks(job), 5);
  assert_int_equal(job->wan.nlinks, 1);
  const gt_job_link *link = link_between(job, 1, 0);
  assert_ptr_equal(link, &job->wan.links[0]);
  assert_string_equal(link->b, "chongqing");
  assert_true(link->ia == 0 && link->ib == 1);
  assert_true(link->bandwidth_bps == 100e6 && link->latency_s == 0.025 && link->jitter_s == 0.002);
  assert_true(job->wan.emulate);
  assert_true(job->checkpoint.every.epochs == 1 && job->checkpoint.keep == 2);
  gt_job_close(job);
}

static void defaults_are_those_of_the_table(void) {
  gt_job *job = load(minimal, NULL, 0);
  assert_int_equal(job->seed, 1);
  assert_int_equal(job->data.partition.by, GT_PART_SHARES);
  assert_null(job->data.partition.shares);
  assert_true(job->data.partition.alpha == 0.5);
  assert_int_equal(job->data.augment, GT_AUGMENT_NONE);
  assert_int_equal(job->train.batch, 64);
  assert_int_equal(job->train.optimizer.name, GT_OPTIMIZER_SGD);
  assert_true(job->train.optimizer.beta2 == 0.999 && job->train.optimizer.epsilon == 1e-8 &&
              !job->train.optimizer.nesterov);
  assert_true(job->train.eval_every.epochs == 1 && job->train.eval_every.steps == 0);
  assert_int_equal(job->train.schedule.name, GT_LR_CONSTANT);
  assert_int_equal(job->train.precision, GT_F32);
  assert_int_equal(job->train.kernels, GT_KERNELS_AUTO);
  assert_null(job->train.init);
  assert_int_equal(job->sync.local, GT_LOCAL_SYNC);
  assert_int_equal(job->sync.strategy, GT_STRATEGY_ASGD_GA);
  assert_int_equal(job->sync.period, 8);
  assert_int_equal(job->sync.scale, GT_SCALE_SUM);
  assert_int_equal(job->sync.weights, GT_WEIGHTS_SAMPLES);
  assert_int_equal(job->sync.period_unit, GT_PERIOD_STEP);
  assert_int_equal(job->sync.exchange, GT_EXCHANGED_UPDATE);
  assert_int_equal(job->sync.merge, GT_MERGE_WEIGHT);
  assert_false(job->wan.emulate);
  assert_int_equal(job->wan.outbox, 2);
  assert_true(job->checkpoint.every.epochs == 0 && job->checkpoint.every.steps == 0 &&
              job->checkpoint.every.minutes == 0);
  assert_true(job->limits.wan_patience_s == 300 && job->limits.local_s == 120 &&
              job->limits.wan_bytes == 0);
  assert_int_equal(job->limits.nonfinite, 3);
  assert_true(job->log.every_s == 10);
  assert_null(link_between(job, 0, 1));
  gt_job_close(job);
}

static void set_overrides(void) {
  const char *sets[] = {"sync.period=3",
                        "train.until.epochs=2.5",
                        "regions.0.ranks=7",
                        "regions.2={name: c, ranks: 2, hosts: []}",
                        "regions.1.data.path=other.h5",
                        "data.partition={by: label, shares: [1, 2, 3.5]}",
                        "data.partition.shares.0=9",
                        "train.eval_every.steps=50",
                        "wan.links.0={between: [a, c], latency: 40 ms}",
                        "limits.wan_bytes=1.5 GiB",
                        "train.init=x=y.h5",
                        "seed=18446744073709551615",
                        "checkpoint.every.minutes=1.5",
                        "wan.emulate=yes"};
  gt_job *job = load(minimal, sets, COUNT(sets));
  assert_int_equal(job->sync.period, 3);
  assert_true(job->train.until.epochs == 2.5 && job->train.until.steps == 0);
  assert_int_equal(job->regions[0].ranks, 7);
  assert_int_equal(job->nregions, 3);
  assert_string_equal(job->regions[2].name, "c");
  assert_string_equal(job->regions[1].data_path, "other.h5");
  assert_int_equal(job->data.partition.by, GT_PART_LABEL);
  assert_true(job->data.partition.shares[0] == 9 && job->data.partition.shares[2] == 3.5);
  assert_true(job->train.eval_every.steps == 50 && job->train.eval_every.epochs == 0);
  assert_true(job->wan.links[0].latency_s == 0.04 && job->wan.links[0].bandwidth_bps == 0 &&
              job->wan.links[0].ib == 2);
  assert_true(job->limits.wan_bytes == 1.5 * 0x1p30);
  assert_string_equal(job->train.init, "x=y.h5");
  assert_true(job->seed == UINT64_MAX);
  assert_true(job->checkpoint.every.minutes == 1.5);
  assert_true(job->wan.emulate);
  gt_job_close(job);
  const char *out[] = {"train.init=a.h5", "train.init=null", "sync=null", "sync.strategy=sma"};
  job = load(minimal, out, 4);
  assert_null(job->train.init);
  assert_int_equal(job->sync.strategy, GT_STRATEGY_SMA);
  gt_job_close(job);
}

/* Removing one of several exclusive keys leaves the others unchanged. */
static void set_to_nothing_leaves_the_others(void) {
  gt_job *job = NULL;
  const char *const sets[] = {"train.until.epochs=2", "train.until.steps=null"};
  job = load(minimal, sets, 2);
  assert_true(job->train.until.epochs == 2 && job->train.until.steps == 0);
  gt_job_close(job);
}

static void check_round_trip(gt_job *job) {
  gt_job *again = w_again(job);
  assert_memory_equal(&job->train.optimizer.lr, &again->train.optimizer.lr, sizeof(double));
  assert_memory_equal(&job->train.optimizer.epsilon, &again->train.optimizer.epsilon,
                      sizeof(double));
  assert_memory_equal(&job->limits, &again->limits, sizeof job->limits);
  assert_memory_equal(&job->checkpoint, &again->checkpoint, sizeof job->checkpoint);
  assert_memory_equal(&job->train.until, &again->train.until, sizeof(gt_job_interval));
  assert_memory_equal(&job->train.eval_every, &again->train.eval_every, sizeof(gt_job_interval));
  assert_memory_equal(&job->compute, &again->compute, sizeof job->compute);
  assert_true(job->compute_variation == again->compute_variation &&
              job->compute_emulate == again->compute_emulate);
  assert_int_equal(job->wan.nlinks, again->wan.nlinks);
  for (size_t i = 0; i < job->wan.nlinks; i++) {
    const gt_job_link *x = &job->wan.links[i], *y = &again->wan.links[i];
    assert_memory_equal(&x->ia, &y->ia, offsetof(gt_job_link, trace) - offsetof(gt_job_link, ia));
    assert_memory_equal(&x->setup_rtts, &y->setup_rtts,
                        sizeof *x - offsetof(gt_job_link, setup_rtts));
    assert_true((x->from != NULL) == (y->from != NULL) && (x->trace != NULL) == (y->trace != NULL));
  }
  assert_int_equal(job->wan.noutages, again->wan.noutages);
  for (size_t i = 0; i < job->wan.noutages; i++)
    assert_memory_equal(&job->wan.outages[i].ia, &again->wan.outages[i].ia,
                        sizeof(gt_job_outage) - offsetof(gt_job_outage, ia));
  for (size_t i = 0; i < job->nregions; i++) {
    assert_memory_equal(&job->regions[i].compute, &again->regions[i].compute,
                        sizeof(gt_job_compute));
    assert_int_equal(job->regions[i].nspeeds, again->regions[i].nspeeds);
  }
  gt_job_close(again);
}

static void resolved_is_a_fixed_point(void) {
  const char *odd[] = {"train.optimizer.lr=0.30000000000000004",
                       ("wan.links.0={between: [b, a], bandwidth: 33333333.333333332 bit/s, "
                        "latency: 0.1234567890123457 s}"),
                       "limits.wan_patience=100000 s",
                       "limits.local=1e-9 s",
                       "limits.wan_bytes=12345678901 B",
                       "name=\"null\"",
                       "train.eval_every.epochs=0",
                       "train.optimizer.epsilon=4.9406564584124654e-324",
                       "data.path=\"a: b # 'c' \\\"d\\\" é\"",
                       "compute.step=3.7 ms",
                       "regions.0.hosts=[n1, \"02\"]",
                       "regions.1.hosts=[~x]"};
  gt_job *job = load(minimal, odd, COUNT(odd));
  assert_string_equal(job->name, "null");
  assert_string_equal(job->data.path, "a: b # 'c' \"d\" é");
  assert_true(job->train.eval_every.epochs == 0 && job->train.eval_every.steps == 0);
  check_round_trip(job);
  gt_job_close(job);
  job = load(gt_job_example, NULL, 0);
  char *text = gt_job_resolved(job);
  must_contain(text, "bandwidth: 100 Mbit/s, latency: 25 ms, jitter: 2 ms");
  must_contain(text, "wan_patience: 300 s");
  must_contain(text, "until: {epochs: 3}");
  gt_free(text);
  gt_job_close(job);
}

static void jobs_all_load(void) {
  glob_t found;
  char pattern[1024];
  snprintf(pattern, sizeof pattern, "%.*s/jobs/*.yaml",
           (int)(strlen(__FILE__) - strlen("/tests/job/test_load.c")), __FILE__);
  assert_int_equal(glob(pattern, 0, NULL, &found), 0);
  assert_true(found.gl_pathc >= 13);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    gt_job *job = NULL;
    must(gt_job_load(&job, found.gl_pathv[i], NULL, 0));
    check_round_trip(job);
    bool planned = gt_job_check_ranks(job) == GT_OK; /* others are for `geotrain plan` */
    assert_true(!planned || gt_job_ranks(job) == 3 || gt_job_ranks(job) == 4 ||
                gt_job_ranks(job) == 6 || gt_job_ranks(job) == 8 ||
                strstr(found.gl_pathv[i], "gaia-11"));
    for (size_t r = 0; r < job->nregions; r++) { /* needed by `geotrain simulate` */
      const gt_job_compute c = gt_job_compute_of(job, r);
      if (c.step_s <= 0 && c.samples_per_s <= 0)
        fail_msg("%s: compute says nothing of region %s", found.gl_pathv[i], job->regions[r].name);
    }
    gt_job_close(job);
  }
  globfree(&found);
}

/* The flat job of `minimal` contains each line of `lines`. */
static void flat_is_for_scripts(void) {
  static const char *const sets[] = {
      "slurm.time=90 min",
      "slurm.memory_per_cpu=2 GiB",
      "slurm.options=[--exclusive, --gres gpu:1]",
      "slurm.prologue=[module load mpi, 'export A=\"$HOME\" # mine']",
      "regions.1.slurm.nodes=2",
      "train.optimizer.lr=1e-7",
      "wan.links=[{between: [a, b], bandwidth: 2.5 Gbit/s, latency: 1500 us}]"};
  static const char *const lines[] = {
      "name=tiny\n",
      "\nslurm.time=5400\n",
      "\nslurm.memory_per_cpu=2147483648\n",
      "\nslurm.options.0=--exclusive\nslurm.options.1=--gres gpu:1\n",
      "\nslurm.prologue.0=module load mpi\nslurm.prologue.1=export A=\"$HOME\" # mine\n",
      "\nregions.0.name=a\n",
      "\nregions.1.slurm.nodes=2\n",
      "\nslurm.signal_before=120\n",
      "\ntrain.optimizer.lr=0.0000001\n",
      ("\nwan.links.0.between.0=a\nwan.links.0.between.1=b\nwan.links.0.bandwidth=2500000000\n"
       "wan.links.0.latency=0.0015\n")};
  gt_job *job = load(minimal, sets, COUNT(sets));
  char *text = w_flat(job);
  for (size_t i = 0; i < COUNT(lines); i++) must_contain(text, lines[i]);
  assert_null(strstr(text, "slurm.account"));
  assert_null(strstr(text, "regions.0.slurm"));
  free(text);
  gt_job_close(job);
}

/* True if a site that adds the setting fits one without it; or, if both give the key, one with the
   other value. */
static bool sites_fit(const char *set, const char *other) {
  gt_job *a = load(minimal, &other, other ? 1 : 0), *b = load(minimal, &set, 1);
  char *here = gt_job_common(a), *there = gt_job_common(b);
  const bool fit = strcmp(here, there) == 0;
  gt_free(here);
  gt_free(there);
  gt_job_close(a);
  gt_job_close(b);
  return fit;
}

static void sites_differ_in_places_only(void) {
  assert_true(sites_fit("data.path=x.h5", NULL));
  assert_true(
      sites_fit("slurm={partition: eu, time: 2 h, mpi: pmi2, options: [--exclusive]}", NULL));
  assert_true(sites_fit("regions.1.slurm={partition: eu, nodes: 3}", NULL));
  assert_true(sites_fit("train.init=x.h5", "train.init=y.h5"));
  assert_false(sites_fit("train.init=x.h5", NULL));
  assert_false(sites_fit("regions.1.data.path=x.h5", NULL));
  assert_false(sites_fit("regions.1.ranks=9", NULL));
  assert_false(sites_fit("train.until.steps=9", NULL));
  assert_false(sites_fit("seed=9", "seed=8"));
}

static void check_difference(const char *set, bool for_resume, const char *expected) {
  gt_job *a = load(minimal, NULL, 0), *b = load(minimal, &set, 1);
  w_differ(a, b, for_resume, expected);
  gt_job_close(a);
  gt_job_close(b);
}

static void difference_names_key_and_values(void) {
  check_difference("sync.period=8", false, "");
  check_difference("sync.period=4", false, "sync.period is 4 there and 8 here");
  check_difference("sync.period=4", true, "sync.period is 4 there and 8 here");
  check_difference("sync.exchange=gradient", true,
                   "sync.exchange is gradient there and update here");
  check_difference("sync.period_unit=pass", true, "sync.period_unit is pass there and step here");
  check_difference("train.until.steps=9", false, "train.until.steps is 9 there and 5 here");
  check_difference("train.until.steps=9", true, "");
  check_difference("train.until.epochs=9", true, "");
  check_difference("regions.1.ranks=9", false, "regions.1.ranks is 9 there and 3 here");
  check_difference("regions.1.ranks=9", true, "");
  check_difference("regions.1.name=z", true, "regions.1.name is z there and b here");
  check_difference("regions.2={name: c, ranks: 2}", true,
                   "regions is a list of 3 there and a list of 2 here");
  check_difference("checkpoint.every.steps=3", true, "");
  check_difference("checkpoint.every.steps=3", false,
                   "checkpoint.every.steps is 3 there and not given here");
  check_difference("limits.wan_bytes=1 GiB", true, "");
  check_difference("data.partition.shares=[1, 2]", true,
                   "data.partition.shares is [1, 2] there and not given here");
  check_difference("train.init=x.h5", true, "train.init is x.h5 there and not given here");
  check_difference("regions.0.access=1 Mbit/s", true,
                   "regions.0.access is 1 Mbit/s there and not given here");
  check_difference("compute.step=1 ms", true, "compute.step is 1 ms there and not given here");
  check_difference("regions.1.compute.speed=0.5", true,
                   "regions.1.compute.speed is 0.5 there and not given here");
  check_difference("regions.1.compute.speeds=[1, 0.5]", false,
                   "regions.1.compute.speeds is [1, 0.5] there and not given here");
  /* the list depends on the number of ranks */
  check_difference("regions.1.compute.speeds=[1, 0.5]", true, "");
  check_difference("compute.variation=0.1", true, "compute.variation is 0.1 there and 0 here");
  check_difference("wan.outages=[{between: [a, b], for: 1 s}]", true,
                   "wan.outages is a list of 1 there and not given here");
  check_difference("model={name: dummy, parameters: 9}", true,
                   "model.name is dummy there and lenet5 here");
  check_difference("slurm.partition=eu", false, "slurm.partition is eu there and not given here");
  check_difference("slurm={partition: eu, time: 2 h, mpi: pmi2, options: [--exclusive]}", true, "");
  check_difference("regions.1.slurm={partition: eu, nodes: 3, options: [--exclusive]}", true, "");
  check_difference("wan.links=[{between: [a, b]}]", true,
                   "wan.links is a list of 1 there and not given here");
}

/* The jobs with measured links load from any folder; every direction has its values. */
static gt_job *load_measured(const char *name, size_t regions, int ranks) {
  char path[1024];
  snprintf(path, sizeof path, "%.*s/jobs/%s",
           (int)(strlen(__FILE__) - strlen("/tests/job/test_load.c")), __FILE__, name);
  gt_job *job = NULL;
  must(gt_job_load(&job, path, NULL, 0));
  assert_int_equal(job->nregions, regions);
  assert_int_equal(gt_job_ranks(job), ranks);
  assert_true(job->wan.emulate);
  for (size_t i = 0; i < regions * regions; i++) {
    if (i / regions == i % regions) continue;
    const gt_job_link *link = link_between(job, i / regions, i % regions);
    assert_non_null(link);
    assert_true(link->bandwidth_bps >= 20e6 && link->bandwidth_bps <= 2e9 &&
                link->latency_s > 0.005 && link->latency_s < 0.2);
    assert_true(gt_job_compute_of(job, i / regions).step_s == 0.01);
  }
  check_round_trip(job);
  return job;
}

static void measured_jobs_have_every_link(void) {
  gt_job *aws = load_measured("aws-4-regions.yaml", 4, 8),
         *gaia = load_measured("gaia-11-regions.yaml", 11, 22);
  assert_int_equal(aws->wan.nlinks, 12);
  assert_true(link_between(aws, 0, 3)->bandwidth_bps == 24.9e6 &&
              link_between(aws, 3, 0)->bandwidth_bps == 25.1e6);
  assert_int_equal(gaia->wan.nlinks, 110);
  assert_true(link_between(gaia, 1, 2)->bandwidth_bps == 1500e6 &&
              link_between(gaia, 2, 1)->bandwidth_bps == 1500e6);
  gt_job_close(aws);
  gt_job_close(gaia);
  gt_job_close(load_measured("paper-2-regions.yaml", 2, 4));
}

/* All keys of the WAN and of compute, written and read back. */
static void wan_and_work(void) {
  const char *sets[] = {
      "wan.links.0={from: a, to: b, bandwidth: 10 Mbit/s, latency: 25 ms, loss: 0.001, setup: 1.5, "
      "eager: 64 KiB, idle: 200 ms}",
      "wan.links.1={from: b, to: a, trace: lte.up, jitter: 3 ms, window: 14600 B}",
      "wan.outages=[{between: [b, a], from: 20 s, for: 1 min}, {between: [a, b], from: 10 s, for: "
      "10 s}, {between: [a, b], for: 1 s}]",
      "regions.0.access=50 Mbit/s",
      "regions.1.compute={step: 20 ms, speed: 0.5, speeds: [1, 0.25], local: 1 ms, update: 2 ms, "
      "checkpoint: 1 Gbit/s, codec: {topk: {encode: 4 Gbit/s}}}",
      "compute={codec: {topk: {encode: 8 Gbit/s, decode: 16 Gbit/s}, bf16: {encode: 80 Gbit/s}}, "
      "samples_per_s: 1000, eval_samples_per_s: 9000, apply: 3 ms, encode: 4 ms, "
      "variation: 0.1, emulate: true}",
      "model={name: dummy, parameters: 11200000}"};
  gt_job *job = load(minimal, sets, COUNT(sets));
  const gt_job_link *ab = link_between(job, 0, 1), *ba = link_between(job, 1, 0);
  assert_ptr_equal(ab, &job->wan.links[0]);
  assert_ptr_equal(ba, &job->wan.links[1]);
  assert_null(ab->a);
  assert_true(ab->ia == 0 && ab->ib == 1 && ba->ia == 1 && ba->ib == 0);
  assert_true(ab->loss == 0.001 && ab->setup_rtts == 1.5 && ab->eager_bytes == 65536 &&
              ab->idle_s == 0.2 && ab->window_bytes == 0);
  assert_string_equal(ba->trace, "lte.up");
  assert_true(ba->bandwidth_bps == 0 && ba->latency_s == 0 && ba->window_bytes == 14600);
  assert_int_equal(job->wan.noutages, 3);
  assert_true(job->wan.outages[0].ia == 1 && job->wan.outages[0].ib == 0 &&
              job->wan.outages[0].from_s == 20 && job->wan.outages[0].for_s == 60);
  assert_true(job->wan.outages[2].from_s == 0);
  assert_true(job->regions[0].access_bps == 50e6 && job->regions[1].access_bps == 0);
  assert_true(job->regions[1].nspeeds == 2 && job->regions[1].speeds[1] == 0.25 &&
              job->regions[0].speeds == NULL);
  gt_job_compute a = gt_job_compute_of(job, 0), b = gt_job_compute_of(job, 1);
  assert_true(a.samples_per_s == 1000 && a.step_s == 0 && a.speed == 1 && a.local_s == 0 &&
              a.apply_s == 0.003 && a.checkpoint_bps == 0);
  assert_true(b.samples_per_s == 0 && b.step_s == 0.02 && b.speed == 0.5 && b.local_s == 0.001 &&
              b.apply_s == 0.003 && b.checkpoint_bps == 1e9);
  assert_true(a.codecs[GT_CODEC_TOPK].encode_bps == 8e9 &&
              a.codecs[GT_CODEC_BF16].encode_bps == 80e9 &&
              a.codecs[GT_CODEC_BF16].decode_bps == 0 && a.codecs[GT_CODEC_INT8].encode_bps == 0);
  assert_true(b.codecs[GT_CODEC_TOPK].encode_bps == 4e9 &&
              b.codecs[GT_CODEC_TOPK].decode_bps == 16e9);
  assert_true(b.update_s == 0.002 && b.encode_s == 0.004 && b.eval_samples_per_s == 9000);
  assert_true(job->compute_variation == 0.1 && job->compute_emulate);
  assert_int_equal(job->model.parameters, 11200000);
  check_round_trip(job);
  gt_job_close(job);
}

/* A list of integers, a key written only if given, and a job text in memory instead of a file. */
static void layers_of_a_model(void) {
  const char *sets[] = {"model={name: deepfm, mlp: [400, 100]}", "model.embedding=16",
                        "model.mlp.1=31", "model.mlp.2=8"};
  gt_job *plain = load(minimal, NULL, 0), *job = load(minimal, sets, 4), *again = NULL;
  assert_int_equal(job->model.embedding, 16);
  assert_int_equal(job->model.nmlp, 3);
  assert_memory_equal(job->model.mlp, ((int64_t[]){400, 31, 8}), 3 * sizeof(int64_t));
  check_round_trip(job);
  char *text = gt_job_resolved(job), *other = gt_job_resolved(plain);
  must(gt_job_parse(&again, "a text", text));
  assert_int_equal(again->model.embedding, 16);
  assert_memory_equal(again->model.mlp, job->model.mlp, 3 * sizeof(int64_t));
  assert_null(strstr(other, "embedding"));
  assert_null(strstr(other, "mlp"));
  gt_job_close(again);
  must_fail(gt_job_parse(&again, "a text", "name: x\nmodle: 4\n"), GT_ERR_JOB, "a text");
  gt_free(other);
  gt_free(text);
  gt_job_close(job);
  gt_job_close(plain);
}

static void help_names_every_key(void) {
  char *text;
  FILE *to = open_text(&text);
  gt_job_help(to);
  fclose(to);
  for (size_t i = 0; i < gt_job_nkeys; i++) must_contain(text, gt_job_keys[i].path);
  must_contain(text, "one of none, ssgd, asgd, asgd-ga, ama, sma");
  for (const char *line = text; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    assert_true(strcspn(line, "\n") <= 80);
  }
  free(text);
}

/* Regions that meet in a third one look seldom, but within the patience. */
static void looks_at_a_store(void) {
  static const struct {
    double poll_s, patience_s, seldom_s;
  } looks[] = {{0.2, 300, 2}, {0.2, 6, 1}, {2, 6, 2}, {30, 300, 50}};
  for (size_t i = 0; i < COUNT(looks); i++) {
    gt_job *job = job_as("%s  - {name: c, ranks: 2}\nsync: {topology: hub, hub: b}\n"
                         "wan: {transport: store, store: {url: file:///a, poll: %g s}}\n"
                         "limits: {wan_patience: %g s}\n",
                         minimal, looks[i].poll_s, looks[i].patience_s);
    assert_true(gt_job_store_poll(job, 0, 2) == looks[i].seldom_s);
    assert_true(gt_job_store_poll(job, 0, 1) == looks[i].poll_s);
    gt_job_close(job);
  }
}

/* Returns the number of lines that begin with a key. */
static size_t keys_of(const char *key, const char *first) {
  char *text;
  size_t n = 0;
  FILE *to = open_text(&text);
  assert_non_null(to);
  must(gt_job_help_key(to, key));
  fclose(to);
  assert_int_equal(strncmp(text, first, strlen(first)), 0);
  for (const char *line = text; *line; line += strcspn(line, "\n") + 1) n += isalpha(*line) != 0;
  free(text);
  return n;
}

static void help_has_keys_and_sections(void) {
  assert_int_equal(keys_of("sync.period", "sync.period  "), 1);
  assert_int_equal(keys_of("regions.0.ranks", "regions[].ranks  "), 1);
  assert_true(keys_of("wan", "wan.transport  ") > 8);
  assert_int_equal(keys_of("seed", "seed  "), 1);
  must_say(gt_job_help_key(stdout, "sync.perod"), GT_ERR_JOB,
           "sync.perod is not a key of a job file; `geotrain help job` "
           "lists them; did you mean sync.period?");
  assert_int_equal(gt_job_help_key(stdout, ""), GT_ERR_JOB);
}

TESTS(example_has_every_value, defaults_are_those_of_the_table, set_overrides,
      set_to_nothing_leaves_the_others, resolved_is_a_fixed_point, jobs_all_load,
      flat_is_for_scripts, difference_names_key_and_values, sites_differ_in_places_only,
      measured_jobs_have_every_link, wan_and_work, looks_at_a_store, layers_of_a_model,
      help_names_every_key, help_has_keys_and_sections)
