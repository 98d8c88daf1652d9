/* The topology and routes between the regions of a run: one region decides when the run starts, all
   others adopt its decision, and a resumed run keeps it. */
#include <stdio.h>
#include <string.h>

#include "geotrain/ps_of_job.h"
#include "internal.h"

/* The lead's decision, as sent to the others. */
typedef struct {
  int64_t by, topology, next[GT_MAX_REGIONS]; /* next: unused with a mesh */
} decision;

enum { BY_JOB, BY_CHOICE, BY_CHECKPOINT };

/* True if the job determines the topology and the position of each region in it. */
static bool said(const gt_job *job) {
  return gt_topology_has(job->sync.topology, GT_ALL_WITH_ALL); /* also with sync.central */
}

static gt_routes routes_of(const decision *d, size_t nregions) {
  gt_routes routes = {.topology = (gt_topology)d->topology};
  if (gt_topology_has(routes.topology, GT_ALL_WITH_ALL)) return routes;
  routes.next = GT_NEW_ARRAY(size_t, nregions);
  for (size_t r = 0; r < nregions; r++) routes.next[r] = (size_t)d->next[r];
  return routes;
}

/* ---- at the start ---------------------------------------------------------------------------- */

/* Reads it from the lead's file; *there false: the file has none. */
static gt_status kept_routes(gt_server *s, int64_t round, bool *there) {
  gt_run *run = s->run;
  const size_t n = run->job->nregions;
  decision d = {0};
  *there = false;
  if (round == 0 || gt_setup_read_round(run, round) > GT_ROUND_DOUBTFUL) return GT_OK;
  const gt_state_item *item = gt_state_find(&run->kept.state, "train/", "topology");
  if (!item || item->type != GT_TYPE_I64 || item->count != n + 1) return GT_OK;
  memcpy(&d.topology, item->data, (n + 1) * sizeof(int64_t));
  *there = true;
  if (d.topology >= 0 && d.topology < (int64_t)GT_TOPOLOGY_KINDS) s->routes = routes_of(&d, n);
  if (s->routes.topology == d.topology && gt_ps_routes_sound(run->job, &s->routes)) return GT_OK;
  return GT_FAIL(
      GT_ERR_CKPT,
      "checkpoint round %lld of region %s: state \"train/topology\" is not a topology of %zu "
      "regions",
      (long long)round, run->region, n);
}

/* Decides, on the lead. */
static gt_status decide(gt_server *s, int64_t round) {
  const gt_run *run = s->run;
  const gt_arrays *a = gt_graph_arrays(run->model);
  const gt_model_sizes sizes = {a->params.n, a->buffers.n, a->views, a->nviews};
  bool there;
  s->wired_by = BY_CHECKPOINT;
  GT_TRY(kept_routes(s, round, &there));
  if (there) return GT_OK;
  s->wired_by = gt_topology_has(run->job->sync.topology, GT_CHOSEN) ? BY_CHOICE : BY_JOB;
  if (s->wired_by == BY_JOB) return gt_routes_of(&s->routes, run->job, run->links, &sizes);
  GT_TRY(gt_topology_choose(&s->choice, run->job, run->links, &sizes));
  s->routes = gt_routes_copy(&s->choice.of[s->choice.best].routes, run->job->nregions);
  return GT_OK;
}

static void share(gt_server *s) {
  const gt_run *run = s->run;
  const size_t n = run->job->nregions;
  decision d = {.by = s->wired_by, .topology = s->routes.topology};
  for (size_t r = 0; s->routes.next && r < n; r++) d.next[r] = (int64_t)s->routes.next[r];
  gt_peers_share(run->roles.ps, 0, &d, sizeof d, "the lead's topology", run->start_limit_s);
  if (run->roles.is_lead) return;
  s->routes = routes_of(&d, n);
  s->wired_by = (int)d.by;
}

/* Stores it as an array that outlives the writing of a checkpoint. */
static void keep(gt_server *s) {
  const size_t n = s->run->job->nregions;
  s->saved_routes = GT_NEW_ARRAY(int64_t, n + 1);
  s->saved_routes[0] = s->routes.topology;
  for (size_t r = 0; s->routes.next && r < n; r++)
    s->saved_routes[r + 1] = (int64_t)s->routes.next[r];
}

gt_status gt_server_settle_routes(gt_server *s, gt_status status, int64_t round) {
  const gt_run *run = s->run;
  if (said(run->job)) {
    return status == GT_OK ? gt_routes_of(&s->routes, run->job, run->links, &(gt_model_sizes){0})
                           : status;
  }
  if (status == GT_OK && run->roles.is_lead) status = decide(s, round);
  GT_TRY(gt_agree(run->roles.ps, status, run->start_limit_s));
  share(s);
  keep(s);
  return GT_OK;
}

void gt_server_save_routes(gt_server *s, gt_state *state) {
  if (s->saved_routes)
    gt_state_add(state, "train/", "topology", GT_TYPE_I64, s->saved_routes,
                 s->run->job->nregions + 1);
}

/* ---- the record ------------------------------------------------------------------------------ */

/* Lists for each region the name of its next one. */
static char *names_of(const gt_routes *routes, const gt_job *job) {
  size_t used = 1, size = 3;
  if (!routes->next) return gt_strdup("null");
  for (size_t r = 0; r < job->nregions; r++) size += strlen(job->regions[routes->next[r]].name) + 3;
  char *text = GT_NEW_ARRAY(char, size);
  text[0] = '[';
  for (size_t r = 0; r < job->nregions; r++)
    used += (size_t)snprintf(text + used, size - used, "%s\"%s\"", r ? "," : "",
                             job->regions[routes->next[r]].name);
  snprintf(text + used, size - used, "]");
  return text;
}

#define SECONDS(constant, name, ops, facts) name "_s", 'f', of[constant].seconds,
void gt_server_tell_routes(const gt_server *s) {
  const gt_job *job = s->run->job;
  const gt_topology_score *of = s->choice.of;
  char text[512];
  if (said(job)) return;
  static const char *const by[] = {"job", "choice", "checkpoint"};
  const bool chosen = s->wired_by == BY_CHOICE && s->run->roles.is_lead;
  char *next = names_of(&s->routes, job);
  const gt_status status =
      gt_record_line(s->record, s->elapsed_s, "topology", "topology", 's',
                     gt_topology_names[s->routes.topology], "by", 's', by[s->wired_by], "next", 'j',
                     next, chosen ? "exact" : NULL, 'b', (int)s->choice.exact, "estimated", 'b',
                     (int)s->choice.estimated, GT_TOPOLOGIES(SECONDS) NULL);
  gt_free(next);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
  if (!chosen) return;
  gt_topology_choice_text(&s->choice, job, text, sizeof text);
  gt_log_job(GT_LOG_INFO, "sync.topology auto: %s", text);
}
