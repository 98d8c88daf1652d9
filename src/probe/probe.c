/* geotrain probe: measures links, devices, MPI and the checkpoint directory of a job on the ranks
   that would train.  The result is GO or NO-GO, and a profile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define LINK_LIMIT_S 10.0
#define WAIT_S       60.0

/* ---- helpers ---- */

static void say(const gt_probe_state *p, const char *what) {
  if (p->world->rank == 0) fprintf(stderr, "probe: %s\n", what);
}

static void print_blocked(const char *reasons) {
  printf("NO-GO\n");
  for (const char *line = reasons; *line;) {
    int n = (int)strcspn(line, "\n");
    printf("  %.*s\n", n, line);
    line += n + (line[n] == '\n');
  }
}

/* ---- reachability ---- */

static gt_status reach(gt_probe_state *p) {
  const gt_probe_options *o = p->options;
  gt_job *job = NULL;
  gt_region_plan *plan = NULL;
  size_t n = 0;
  /* A job that cannot be read is refused later, by all ranks together. */
  if (gt_job_load(&job, o->job_path, o->sets, o->nsets) == GT_OK &&
      gt_job_check_run(job) == GT_OK) {
    n = job->nregions;
    plan = gt_setup_regions(job);
  }
  gt_status status =
      gt_net_reach(&p->reach, p->world, plan, n,
                   o->link_limit_s > 0 ? o->link_limit_s : LINK_LIMIT_S, print_blocked);
  gt_free(plan);
  gt_job_close(job);
  return status;
}

/* ---- the verdict ---- */

static gt_status verdict(gt_probe_state *p) {
  char *reasons = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&reasons, &size);
  if (!memory) return GT_FAIL(GT_ERR_FAULT, "no memory for the verdict");
  const char *out = p->options->out ? p->options->out : "profile.yaml";
  p->access_bps = GT_NEW_ARRAY(double, p->run.job->nregions);
  gt_probe_access(p->all_links, p->run.job->nregions, p->access_bps);
  gt_probe_report(p, stdout);
  gt_status status = gt_probe_profile(p, out);
  printf("\n");
  if (status == GT_OK)
    printf("profile: %s (use: geotrain train %s --set profile=%s)\n", out, p->options->job_path,
           out);
  if (p->options->fleet) printf("fleet: geotrain fleet %s\n", out);
  gt_probe_warnings(p, stdout);
  size_t n = gt_probe_reasons(p, memory);
  if (status != GT_OK && ++n) fprintf(memory, "  %s\n", gt_error_text());
  fclose(memory);
  printf("%s\n%s", n ? "NO-GO" : "GO", reasons);
  free(reasons);
  return n ? GT_FAIL(GT_ERR_NOGO, "NO-GO") : GT_OK;
}

/* ---- entry point ---- */

/* Reports that the ranks do not fit the job; then no rank knows its role, and nothing can be
   measured. */
static gt_status refuse(const gt_probe_state *p, gt_status status) {
  status = gt_job_blame(p->run.job, status);
  if (p->world->rank == 0 && gt_launch_first()) printf("NO-GO\n  %s\n", gt_error_text());
  return status;
}

/* Gathers all measurements: p->ranks, p->all_links.  Collective over the world. */
static void gather(gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  size_t n = p->run.job->nregions;
  static const char what[] = "the measurements of all ranks";
  gt_probe_link *rows = GT_NEW_ARRAY(gt_probe_link, n * (size_t)roles->world_size);
  p->ranks = GT_NEW_ARRAY(gt_probe_rank, (size_t)roles->world_size);
  gt_peers_gather(roles->world, &p->own, sizeof p->own, p->ranks, what, p->limit_s);
  gt_peers_gather(roles->world, p->links, n * sizeof *rows, rows, what, p->limit_s);
  p->all_links = GT_NEW_ARRAY(gt_probe_link, n * n);
  for (int i = 0; i < roles->world_size; i++)
    if (p->ranks[i].region_rank == 0)
      memcpy(&p->all_links[(size_t)p->ranks[i].region * n], &rows[(size_t)i * n], n * sizeof *rows);
  gt_free(rows);
}

static gt_status measure(gt_probe_state *p) {
  gt_run *run = &p->run;
  gt_probe_host(p);
  say(p, "first messages");
  gt_probe_first_messages(p);
  if (run->graph) {
    say(p, "compute");
    gt_probe_compute(p);
  }
  say(p, "inside the regions");
  gt_probe_inside(p);
  if (p->options->fleet) {
    say(p, "fleet");
    gt_probe_fleet(p);
  }
  say(p, "links between regions");
  gt_probe_links(p);
  say(p, "checkpoint directory");
  gt_probe_disk(p);
  gather(p);
  gt_status status = run->roles.world_rank == 0 ? verdict(p) : GT_OK;
  return gt_agree(run->roles.world, status, WAIT_S);
}

/* Turns an error that prevents a run into a reason of the verdict, if the rest can still be
   measured. */
static bool can_go_on(gt_probe_state *p, gt_status status) {
  if (!p->run.links || !p->run.roles.world) return false;
  /* otherwise it is the checkpoint of train.init */
  bool folder = status == GT_ERR_CKPT && p->run.graph && p->run.run_dir[0];
  if (folder)
    snprintf(p->folder_error, sizeof p->folder_error, "%s", gt_error_text());
  else if (status == GT_ERR_DATA || status == GT_ERR_CKPT)
    snprintf(p->data_error, sizeof p->data_error, "%s", gt_error_text());
  return status == GT_OK || status == GT_ERR_DATA || status == GT_ERR_CKPT;
}

/* Workers of a pipeline have parts of the model, and their links carry the packets of a schedule.
   The probe measures the whole model, and messages of its size. */
static gt_status check_whole(const gt_run *run) {
  if (run->job->pipeline.nstages == 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "pipeline.stages is given, and probe measures steps of the whole "
                             "model on every worker; expected a job without the key pipeline");
}

/* Checks that probe has something to write, before it waits for the other sites. */
static gt_status check_out(const gt_probe_options *o) {
  gt_job *job = NULL;
  gt_status status = gt_job_load(&job, o->job_path, o->sets, o->nsets);
  if (status == GT_OK) status = gt_probe_store_check(job, o->out);
  gt_job_close(job);
  return status;
}

static gt_status probe(gt_probe_state *p) {
  const gt_probe_options *o = p->options;
  gt_status status = GT_OK;
  if (!o->region) status = reach(p);
  if (o->region && o->out) status = check_out(o);
  if (status != GT_OK) return refuse(p, status);
  p->setup = (gt_setup_options){.job_path = o->job_path,
                                .sets = o->sets,
                                .nsets = o->nsets,
                                .run_dir = o->run_dir,
                                .region = o->region,
                                .resume = GT_RESUME_AUTO};
  gt_probe_disk_before(p);
  status = gt_setup_open(&p->run, p->world, &p->setup);
  if (!can_go_on(p, status)) return refuse(p, status);
  status = o->region ? GT_OK : check_whole(&p->run);
  if (status != GT_OK) return refuse(p, status);
  status = o->region ? gt_probe_sites(p) : measure(p);
  gt_probe_meet(p, "the end of the other ranks' measurements");
  if (p->run.roles.is_ps) gt_probe_disk_after(p);
  return status;
}

gt_status gt_probe(const gt_probe_options *options) {
  gt_probe_state *p = GT_NEW(gt_probe_state);
  *p = (gt_probe_state){.options = options, .limit_s = WAIT_S, .world = gt_net_start(120)};
  gt_status status = probe(p);
  fflush(stdout);
  gt_peers *world = p->world;
  gt_setup_close(&p->run);
  gt_reach_close(&p->reach);
  gt_free(p->links);
  gt_free(p->ranks);
  gt_free(p->all_links);
  gt_free(p->pairs);
  gt_free(p->all_pairs);
  gt_free(p->passes);
  gt_free(p->all_passes);
  gt_free(p->access_bps);
  gt_free(p);
  gt_net_finalize(world, 120);
  return status;
}
