/* Members of a run that change (sync.on_loss continue): the number of the epoch on this region's
   disk, places in the topology, regions that are lost, and the end of a minority
   (docs/membership.md). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/ps_of_job.h"
#include "internal.h"

#define DIAL_S 15.0 /* the others dial a region that returns at intervals of up to 5 s */

bool gt_server_members_change(const gt_server *s) {
  return s->run->endpoint && s->run->job->sync.on_loss == GT_ON_LOSS_CONTINUE;
}

/* ---- on disk --------------------------------------------------------------------------------- */

static const char *path_of(const gt_server *s, char *path, size_t size) {
  snprintf(path, size, "%s/%s.epoch", s->run->run_dir, s->run->region);
  return path;
}

gt_status gt_server_members(const gt_server *s, gt_ps_members *out) {
  char path[1200];
  *out = (gt_ps_members){
      .change = true, .incarnation = gt_endpoint_start(s->run->endpoint), .returns = s->returns};
  FILE *file = fopen(path_of(s, path, sizeof path), "r");
  if (!file && errno == ENOENT) return GT_OK;
  const bool read = file && fscanf(file, "%" SCNd64, &out->promised) == 1 && out->promised >= 0;
  if (file) fclose(file);
  if (read) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 "%s cannot be read; expected the number of the last epoch that this region has "
                 "accepted; restore the file",
                 path);
}

static void host_epoch(void *ctx, int64_t number, const bool *members) {
  gt_server *s = ctx;
  char path[1200], text[32];
  (void)members; /* they are in the checkpoints and in the record */
  const int n = snprintf(text, sizeof text, "%" PRId64 "\n", number);
  gt_failpoint("members.epoch");
  if (!gt_file_replace(path_of(s, path, sizeof path), text, (size_t)n))
    gt_panic(GT_ERR_CKPT, "%s cannot be written: %s", path, strerror(errno));
}

/* ---- the host of the PS ---------------------------------------------------------------------- */

static void host_place(void *ctx, const size_t *regions, size_t n, size_t *next) {
  const gt_server *s = ctx;
  gt_ps_place_members(s->run->job, s->run->links, s->routes.topology,
                      gt_graph_arrays(s->run->model)->params.n, regions, n, next);
}

static void host_fault(void *ctx, gt_status status) {
  (void)ctx;
  gt_panic(status, "%s", gt_error_text());
}

void gt_server_members_host(gt_ps_host *host) {
  host->epoch = host_epoch;
  host->place = host_place;
  host->fault = host_fault;
}

/* ---- losses ---------------------------------------------------------------------------------- */

bool gt_server_give_up(gt_server *s, size_t peer, gt_ns now) {
  if (!gt_server_members_change(s)) return false;
  if (gt_gateway_left(s->gateway, peer)) return true;
  gt_ps_view v;
  gt_ps_get_view(s->ps, now, &v);
  if (v.outside) return true; /* it waits for all: gt_server_watch_members */
  if (!gt_ps_is_member(s->ps, peer)) {
    gt_gateway_forget(s->gateway, peer);
    return true;
  }
  gt_log(GT_LOG_WARN, "region %s is lost: waited %.0f s (limits.wan_patience) for any sign of it",
         s->run->job->regions[peer].name, s->patience_s[peer]);
  gt_gateway_forget(s->gateway, peer);
  gt_ps_lost(s->ps, peer, now);
  return true;
}

void gt_server_begin_without(gt_server *s, gt_ns now) {
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    if (!gt_setup_is_late(s->run, p) || s->returns) continue;
    gt_gateway_forget(s->gateway, p);
    s->leaves_late = true;
    gt_ps_lost(s->ps, p, now);
    s->leaves_late = false;
  }
}

void gt_server_leave_others(gt_server *s, gt_ns now) {
  const bool alone = s->stop_told || s->alone_stopped;
  for (size_t p = 0; gt_server_members_change(s) && p < s->run->job->nregions; p++) {
    if (p == s->run->roles.region_id) continue;
    const double silent_s = gt_seconds(now - gt_gateway_heard(s->gateway, p));
    if (!gt_ps_is_member(s->ps, p) || (alone && silent_s > GT_LEAVE_S))
      gt_gateway_forget(s->gateway, p);
  }
}

/* True if a region that this one has found in the run can still take it back. */
static bool others_left(const gt_server *s, gt_ns now) {
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    if (p == s->run->roles.region_id || s->gone[p] || gt_gateway_left(s->gateway, p)) continue;
    if (gt_seconds(now - gt_gateway_heard(s->gateway, p)) < s->patience_s[p] + DIAL_S) return true;
  }
  return false;
}

/* The regions have moved on without this one, or cannot decide: it waits as long as for a region,
   and stops. */
void gt_server_watch_members(gt_server *s, gt_ns now) {
  gt_ps_view v;
  if (!gt_server_members_change(s) || s->stop_told) return;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  if (v.outside) {
    const double limit_s = others_left(s, now) ? s->run->start_limit_s : 0;
    if (gt_seconds(now - s->started) > limit_s)
      gt_panic(GT_ERR_LOST, "waited %.0f s for the other regions to take region %s back",
               gt_seconds(now - s->started), s->run->region);
    return;
  }
  if (!v.minority && !v.out) {
    s->alone_since = 0;
    return;
  }
  if (s->alone_since == 0) s->alone_since = now;
  const double limit_s = v.out ? 0 : s->run->job->limits.wan_patience_s;
  if (s->alone_stopped || gt_seconds(now - s->alone_since) < limit_s) return;
  s->alone_stopped = true;
  gt_log(GT_LOG_WARN,
         v.out ? "the other regions continue without region %s, which ends with a checkpoint; "
                 "start it with --resume to return"
               : "no majority of the weight is left with region %s, which ends with a checkpoint; "
                 "start it with --resume when it can reach the others",
         s->run->region);
  gt_ps_stop(s->ps, GT_STOPPED, gt_server_now(s));
}
