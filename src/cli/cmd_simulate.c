/* geotrain simulate JOB.yaml: predicts a job's times and traffic without training. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "geotrain/job_prices.h"
#include "cli.h"
#include "evaluate.h"
#include "geotrain/data.h"
#include "geotrain/plan_job.h"
#include "geotrain/ps.h"
#include "geotrain/sim.h"
#include "geotrain/sim_choose.h"
#include "geotrain/sim_shape.h"
#include "options.h"

#define TABLE_REGIONS GT_TOLD_REGIONS /* with more regions only sums are shown */
#define LABEL         15              /* columns of the name of a total */

typedef struct {
  gt_job_words words;
  const char *out, *regions_csv;
  bool train;
  size_t threads;
} simulate_options;

enum { OUT = GT_OPTION_SET + 1, REGIONS_CSV, TRAIN, THREADS };
const struct option gt_options_simulate[] = {
    {"set", required_argument, NULL, GT_OPTION_SET},       {"out", required_argument, NULL, OUT},
    {"regions-csv", required_argument, NULL, REGIONS_CSV}, {"train", no_argument, NULL, TRAIN},
    {"threads", required_argument, NULL, THREADS},         {NULL, 0, NULL, 0}};

static gt_status take(void *ctx, int option, const char *argument) {
  simulate_options *o = ctx;
  if (option == THREADS) return gt_cli_threads_read(&o->threads, "simulate", argument);
  if (option == TRAIN)
    o->train = true;
  else
    *(option == OUT ? &o->out : &o->regions_csv) = argument;
  return GT_OK;
}

/* ---- output ---------------------------------------------------------------------------------- */

static gt_status write_and_print(const simulate_options *o, const gt_summary *summary) {
  /* a folder given by the user, not a run directory */
  if (o->out && gt_summary_write(o->out, summary) != GT_OK) return GT_ERR_JOB;
  gt_summary_print(stdout, summary);
  return GT_OK;
}

static void look_at_links(gt_told *told, const gt_sim *sim, size_t n) {
  gt_link_result l;
  for (size_t a = 0; a < n; a++)
    for (size_t b = 0; b < n; b++) {
      if (a == b) continue;
      gt_sim_link(sim, a, b, &l);
      gt_told_add(
          told, a, b,
          &(gt_link_traffic){l.messages, l.bytes_sent, l.bytes_other, l.bandwidth_bps_measured});
    }
}

/* Returns the links of all regions; the caller frees the result. */
static gt_link_result *links_told(gt_told *told, const gt_sim *sim, gt_summary *summary) {
  const gt_told_link *at = gt_told_links(told, &summary->nlinks);
  gt_link_result *links = GT_NEW_ARRAY(gt_link_result, summary->nlinks);
  for (size_t i = 0; i < summary->nlinks; i++) gt_sim_link(sim, at[i].from, at[i].to, &links[i]);
  summary->links = links;
  summary->links_left_out = gt_told_left_out(told);
  if (summary->links_left_out > 0) summary->traffic = gt_told_traffic(told);
  return links;
}

static gt_status show_table(const simulate_options *o, const gt_job *job, const gt_sim *sim,
                            gt_summary *summary) {
  size_t n = job->nregions;
  gt_region_result *regions = GT_NEW_ARRAY(gt_region_result, n);
  gt_told *told = gt_told_create(n);
  for (size_t r = 0; r < n; r++) gt_sim_region(sim, r, &regions[r]);
  look_at_links(told, sim, n);
  gt_link_result *links = links_told(told, sim, summary);
  char *adapted = gt_adapted_text(regions, n);
  summary->adapted = adapted;
  summary->regions = regions;
  summary->nregions = n;
  summary->unwritten = !o->out;
  gt_status status = write_and_print(o, summary);
  gt_free(adapted);
  gt_free(links);
  gt_told_close(told);
  gt_free(regions);
  return status;
}

static void show_sums(const gt_job *job, const gt_sim *sim, const gt_sim_totals *t) {
  gt_region_result r;
  double compute = 0, wan = 0, local = 0, wall = 0;
  for (size_t i = 0; i < job->nregions; i++) {
    gt_sim_region(sim, i, &r);
    if (r.workers == 0) continue; /* the region only aggregates */
    compute += r.compute_s, wan += r.wan_wait_s, local += r.local_wait_s, wall += r.wall_s;
  }
  printf("%s: %s, %zu regions, %s, simulated\n\n", job->name, gt_model_names[job->model.name],
         job->nregions, gt_strategy_names[job->sync.strategy]);
  printf("time           %.3f s\n", t->virtual_s);
  printf("samples/s      %.1f  (%" PRId64 " samples, %" PRId64 " steps)\n",
         (double)t->samples / t->virtual_s, t->samples, t->steps);
  gt_print_wrapped(stdout, LABEL,
                   "a worker       computes %.1f %%, waits for the WAN %.1f %%, for its region "
                   "%.1f %% (mean over regions)",
                   100 * compute / wall, 100 * wan / wall, 100 * local / wall);
  printf("WAN traffic    %.2f MB in %" PRId64 " messages, %.3f MB other\n",
         1e-6 * (double)t->bytes_sent, t->messages, 1e-6 * (double)t->bytes_other);
}

static void cost_of(gt_cost_result *out, const gt_sim_spec *spec, const gt_job_prices *prices,
                    const gt_sim *sim, const gt_sim_totals *t) {
  const gt_job *job = spec->job;
  double *bytes = gt_sim_link_bytes(sim);
  gt_region_result *regions = GT_NEW_ARRAY(gt_region_result, job->nregions);
  for (size_t r = 0; r < job->nregions; r++) gt_sim_region(sim, r, &regions[r]);
  gt_plan_job_cost(out, job, prices, t->virtual_s, bytes, regions);
  gt_plan_job_terms(out, job, spec->links, prices, t->virtual_s, regions);
  gt_free(regions);
  gt_free(bytes);
}

static gt_status show(const simulate_options *o, const gt_job *job, const gt_sim_shape *shape,
                      const gt_sim *sim, double wall_s, const gt_cost_result *cost,
                      const gt_fault_result *faults) {
  gt_sim_totals t;
  gt_sim_get_totals(sim, &t);
  if (shape->assumed)
    gt_print_wrapped(stdout, 2,
                     "no data set found: samples are those of regions[].samples, in the model's "
                     "usual shape, and nothing is evaluated");
  if (job->nregions > TABLE_REGIONS && !o->out) {
    show_sums(job, sim, &t);
    if (faults) gt_print_faults(stdout, faults);
    if (cost)
      gt_print_wrapped(stdout, LABEL, "cost           %.6g USD%s", cost->usd,
                       cost->nmissing ? "  (not all prices are known: --out DIR says which)" : "");
    return GT_OK;
  }
  const gt_sim_model *model = gt_sim_model_of(sim);
  gt_summary summary = {.job = job->name,
                        .strategy = gt_strategy_names[job->sync.strategy],
                        .clock = "virtual",
                        .wall_s = wall_s,
                        .virtual_s = t.virtual_s,
                        .samples = t.samples,
                        .samples_per_s = (double)t.samples / t.virtual_s,
                        .test_accuracy = model->score.accuracy,
                        .test_loss = model->score.loss,
                        .test_auc = model->score.auc,
                        .test_recall20 = model->score.recall20,
                        .test_mrr20 = model->score.mrr20,
                        .test_perplexity = model->score.perplexity,
                        .version = GT_VERSION,
                        .kernels = "simulated",
                        .precision = gt_precision_names[job->train.precision],
                        .blas_core = "none",
                        .model = gt_model_names[job->model.name],
                        .parameters = (int64_t)shape->parameters,
                        .cost = cost,
                        .faults = faults};
  snprintf(summary.params_sha256, sizeof summary.params_sha256, "%s", model->params_sha256);
  return show_table(o, job, sim, &summary);
}

static gt_status show_with_cost(const simulate_options *o, const gt_sim_spec *spec,
                                const gt_job_prices *prices, const gt_sim_shape *shape,
                                const gt_sim *sim, double wall_s, const gt_fault_result *faults) {
  gt_sim_totals t;
  gt_cost_result cost;
  if (!prices->known) return show(o, spec->job, shape, sim, wall_s, NULL, faults);
  gt_sim_get_totals(sim, &t);
  cost_of(&cost, spec, prices, sim, &t);
  gt_status status = show(o, spec->job, shape, sim, wall_s, &cost, faults);
  gt_plan_job_cost_close(&cost);
  return status;
}

static void show_end(const gt_job *job, const gt_sim *sim, double wall_s) {
  gt_sim_totals t;
  struct rusage use;
  gt_sim_get_totals(sim, &t);
  getrusage(RUSAGE_SELF, &use);
  printf("simulated in   %.3f s, %" PRId64 " events, %.2f GB of memory at most\n", wall_s, t.events,
         (double)use.ru_maxrss * 1024e-9);
  if (t.code == GT_ERR_LIMIT && job->limits.wan_bytes > 0)
    gt_print_wrapped(
        stdout, 2,
        "limits.wan_bytes stops this run at %.1f s, before its end (train exits with %d)",
        t.virtual_s, (int)t.code);
  else if (t.code != GT_OK && t.code != GT_ERR_LIMIT)
    gt_print_wrapped(
        stdout, 2,
        "the run ends at %.1f s with %d, before its training is done: a region that is lost does "
        "not return",
        t.virtual_s, (int)t.code);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Chooses the topology, if the job leaves it open, and logs it. */
static gt_status choose(gt_sim_spec *spec, gt_topology_choice *choice) {
  char text[512];
  if (!gt_topology_has(spec->job->sync.topology, GT_CHOSEN)) return GT_OK;
  const gt_model_sizes sizes = {spec->parameters, spec->buffers, spec->tensors, spec->ntensors};
  GT_TRY(gt_topology_choose(choice, spec->job, spec->links, &sizes));
  spec->routes = &choice->of[choice->best].routes;
  gt_topology_choice_text(choice, spec->job, text, sizeof text);
  gt_print_wrapped(stdout, LABEL, "topology       %s", text);
  return GT_OK;
}

/* Returns the region with the data of this region's replica of the pipeline. */
static size_t data_of(const gt_job *job, size_t region) {
  return gt_job_stage_region(job, gt_job_replica_of(job, region), 0);
}

/* Logs a decision; the region with the first stage gives the reason. */
static void say_decision(const gt_job *job, size_t region, int64_t step, const char *what,
                         const char *choice, const char *why) {
  const size_t replica = gt_job_replica_of(job, region);
  char text[GT_REPLICA_TEXT] = "";
  if (region != gt_job_stage_region(job, replica, 0)) return;
  if (gt_job_replicas(job) > 1) gt_job_replica_text(job, replica, text, sizeof text);
  gt_print_wrapped(stdout, 2, "%s%sstep %" PRId64 ": %s is %s: %s", text, *text ? ", " : "", step,
                   what, choice, why);
}

static gt_status open_arithmetic(gt_sim_arithmetic **out, const simulate_options *o,
                                 const gt_job *job, const gt_sim_shape *shape) {
  size_t workers = 0;
  for (size_t r = 0; r < job->nregions; r++) workers += gt_job_workers(job, r);
  return gt_sim_arithmetic_open(out, job, shape, gt_cli_threads_choose(o->threads, workers));
}

/* Values that are not finite have ended the training, or are in its result. */
static gt_status check_model(const gt_job *job, const gt_sim *sim) {
  const size_t bad = gt_sim_model_of(sim)->bad;
  gt_sim_totals t;
  gt_sim_get_totals(sim, &t);
  if (t.code == GT_ERR_LIMIT && job->limits.wan_bytes <= 0)
    return GT_FAIL(GT_ERR_LIMIT,
                   "the training ends at %.1f s: %d gradients or messages of a region are not "
                   "finite (limits.nonfinite).  Try a lower learning rate (train.optimizer.lr)",
                   t.virtual_s, job->limits.nonfinite);
  if (bad == job->nregions) return GT_OK;
  return GT_FAIL(GT_ERR_LIMIT,
                 "the final model of region %s is not finite: there is no final model.  Try a "
                 "lower learning rate (train.optimizer.lr)",
                 job->regions[bad].name);
}

static gt_status simulate(const simulate_options *o, const gt_job *job, const gt_job_prices *prices,
                          const gt_links *links) {
  gt_sim_shape shape;
  gt_sim *sim = NULL;
  gt_ns from = gt_now();
  const bool piped = job->pipeline.nstages > 0;
  GT_TRY(gt_sim_shape_of(&shape, job));
  gt_job_warn(job, gt_job_warning);
  if (job->sync.min_regions > 0)
    gt_job_warning(
        "sync.min_regions does nothing here: all regions begin; a region that comes late "
        "is an entry of faults, {region: NAME, lost: 0 s, back: TIME}");
  for (size_t r = 0; r < job->nregions && job->nregions <= TABLE_REGIONS; r++)
    gt_job_warn_region(job, r, shape.samples[piped ? data_of(job, r) : r], gt_job_warning);
  gt_sim_spec spec = {.job = job,
                      .links = links,
                      .parameters = shape.parameters,
                      .tensors = shape.tensors,
                      .ntensors = shape.ntensors,
                      .buffers = shape.buffers,
                      .samples = shape.samples,
                      .held = shape.held,
                      .tests = shape.tests};
  gt_topology_choice choice = {0};
  gt_status status = gt_sim_shape_pipes(&spec.pipes, job, &shape);
  spec.pipe = spec.pipes ? spec.pipes[0] : NULL;
  if (spec.pipe) spec.decided = say_decision;
  if (status == GT_OK) status = choose(&spec, &choice);
  if (status == GT_OK && o->train) status = open_arithmetic(&spec.arithmetic, o, job, &shape);
  gt_sim_totals undisturbed;
  gt_fault_result faults;
  const bool disturbed = job->nfaults > 0;
  if (status == GT_OK)
    status =
        disturbed ? gt_sim_run_faults(&sim, &faults, &undisturbed, &spec) : gt_sim_run(&sim, &spec);
  double wall_s = gt_seconds(gt_now() - from);
  if (status == GT_OK)
    status = show_with_cost(o, &spec, prices, &shape, sim, wall_s, disturbed ? &faults : NULL);
  if (status == GT_OK) show_end(job, sim, wall_s);
  if (status == GT_OK && o->train) status = check_model(job, sim);
  gt_sim_close(sim);
  gt_sim_arithmetic_close(spec.arithmetic);
  gt_sim_pipes_close(spec.pipes, job);
  gt_topology_choice_close(&choice);
  gt_sim_shape_close(&shape);
  return status;
}

/* Called before the simulation, which may take long.  made: the folder did not exist. */
static gt_status make_out(const char *out, bool *made) {
  *made = out && mkdir(out, 0777) == 0;
  if (!out || *made || errno == EEXIST) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "simulate: --out %s cannot be created: %s; expected a folder that can be written",
                 out, strerror(errno));
}

static gt_status with_job(const simulate_options *o) {
  gt_job *job = NULL;
  gt_links *links = NULL;
  GT_TRY(gt_job_load_regions(&job, o->words.path, o->words.sets, o->words.nsets, o->regions_csv));
  gt_status status = gt_job_check_ranks(job);
  bool made = false;
  if (status == GT_OK) status = make_out(o->out, &made);
  gt_job_prices prices = {0};
  if (status == GT_OK) status = gt_job_prices_of(&prices, job);
  if (status == GT_OK) status = gt_links_create(&links, job);
  if (status == GT_OK) status = simulate(o, job, &prices, links);
  if (status != GT_OK && made) rmdir(o->out);
  status = gt_job_blame(job, status);
  gt_job_prices_close(&prices);
  gt_links_close(links);
  gt_job_close(job);
  return status;
}

gt_status gt_cmd_simulate(int argc, char **argv) {
  simulate_options o = {0};
  gt_status status = gt_job_words_read(&o.words, argc, argv, gt_options_simulate, take, &o);
  if (status == GT_OK && o.threads > 0 && !o.train)
    status = GT_FAIL(GT_ERR_JOB, "simulate: --threads is given without --train, and does nothing; "
                                 "expected both or none");
  gt_progress_begin("simulate");
  if (status == GT_OK) status = with_job(&o);
  gt_free(o.words.sets);
  return status;
}
