/* Shared by the loops of both clocks: how a push is passed to the PS, how long another region may
   be silent, and when the run is over. */
#include <math.h>
#include <stdio.h>

#include "ending.h"
#include "stages.h"

gt_ns gt_server_keepalive(const gt_server *s) {
  double limit = s->run->job->limits.local_s;
  return gt_from_seconds(limit / 4 < 5 ? limit / 4 : 5);
}

static void pass_done(gt_server *s, size_t worker, const gt_push_msg *p) {
  if (!s->stages)
    gt_panic(GT_ERR_FAULT, "worker %zu of region %s pushed a pass, and there is no pipeline",
             worker, s->run->region);
  gt_ps_pass_done(s->ps, worker, p->compute_ns, p->wait_ns);
}

void gt_server_pushed(gt_server *s, size_t worker, const gt_push_msg *p, float *floats,
                      const float *buffers, gt_ns now) {
  if (s->stages) gt_server_stages_pushed(s->stages, worker, p);
  if (p->kind == GT_PUSH_PASS) {
    pass_done(s, worker, p);
    return;
  }
  gt_ps_push push = {.samples = p->samples,
                     .correct = p->correct,
                     .loss_sum = p->loss_sum,
                     .compute = p->compute_ns,
                     .scores = p->kind == GT_PUSH_EVAL ? floats : NULL,
                     .wait = p->wait_ns,
                     .buffers = buffers,
                     .nonfinite = p->nonfinite != 0};
  if (p->kind == GT_PUSH_EVAL)
    gt_ps_evaluated(s->ps, worker, &push, now);
  else {
    gt_server_learnt(s, &push);
    gt_ps_gradient(s->ps, worker, &push, floats, now);
  }
}

bool gt_server_at_work(const gt_server *s, size_t worker, gt_ns *since, int64_t *batch) {
  return gt_ps_computing(s->ps, worker, since, batch) &&
         (!s->stages || gt_server_stages_busy(s->stages, worker, since));
}

static bool receiving(const void *gateway, size_t peer) {
  return gt_gateway_receiving(gateway, peer);
}

void gt_server_account(gt_server *s, gt_ns now) {
  gt_time_split_account(&s->split, s->ps, receiving, s->gateway, now);
}

void gt_server_watch_regions(gt_server *s, gt_ns now) {
  gt_server_watch_members(s, now);
  if (gt_server_ending_released(s->ending)) return;
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    if (p == s->run->roles.region_id) continue;
    gt_ns heard = gt_gateway_heard(s->gateway, p);
    if (heard < s->watched_at) heard = s->watched_at;
    if (gt_seconds(now - heard) >= s->patience_s[p] && !gt_server_give_up(s, p, now))
      gt_panic(GT_ERR_LOST,
               "waited %.0f s (limits.wan_patience) for any sign of the PS of region %s",
               s->patience_s[p], s->run->job->regions[p].name);
  }
}

static bool any_at_work(const gt_server *s) {
  gt_ns since;
  int64_t batch;
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++)
    if (gt_server_at_work(s, w, &since, &batch)) return true;
  return s->written_round != 0 || gt_server_ending_writes(s->ending);
}

/* Everything that it adds up grows only. */
uint64_t gt_server_advance(void *server) {
  gt_server *s = server;
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  if (any_at_work(s)) s->beats_at_work++;
  uint64_t sum = s->beats_at_work + (uint64_t)(v.batches + v.round + v.whole_round + v.phase);
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    if (p == s->run->roles.region_id) continue;
    const gt_ledger_row *rows = gt_gateway_ledger(s->gateway, p);
    for (uint32_t k = 0; k < GT_LEDGER_KINDS; k++)
      if (k != GT_MSG_PING && k != GT_MSG_PONG) sum += (uint64_t)rows[k].wire_bytes;
  }
  return sum;
}

static void name_wait(const gt_server *s, char *text, size_t size) {
  const gt_ps_wait w = gt_ps_waits_for(s->ps);
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  const char *peer = w.peer < s->run->job->nregions ? s->run->job->regions[w.peer].name : "";
  const long long have = w.have, want = w.want;
  if (v.phase == GT_PS_COMPLETE)
    gt_server_ending_waits_for(s->ending, text, size);
  else if (w.kind == GT_WAIT_ROUND)
    snprintf(text, size, "checkpoint round %lld of region %s (it has %lld)", want, peer, have);
  else if (w.kind == GT_WAIT_ACK)
    snprintf(text, size, "the acknowledgement of %lld messages by region %s", want, peer);
  else if (w.kind == GT_WAIT_MESSAGES)
    snprintf(text, size, "message %lld of region %s, which is done (%lld came)", want, peer, have);
  else if (w.kind == GT_WAIT_DONE)
    snprintf(text, size, "the end of the training of region %s", peer);
  else
    snprintf(text, size, "the next messages of the other regions (%s)",
             gt_strategy_names[s->run->job->sync.strategy]);
}

#define LOSSES_IN_A_ROW 4

/* Seconds without any advance that are too long: limits.wan_patience, or longer for slow links.
   Members that change can lose one region after the other. */
static double patience_of(const gt_server *s) {
  const gt_link_spec *links = gt_links_from(s->run->links, s->run->roles.region_id);
  double most_s = s->run->job->limits.wan_patience_s, latency_s = 0;
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    if (p == s->run->roles.region_id) continue;
    most_s = fmax(most_s, s->patience_s[p]);
    latency_s = fmax(latency_s, links[p].latency_s);
  }
  /* A region that only waits for the end lets one that knows more speak first. */
  const bool waits_for_end = v.phase == GT_PS_COMPLETE && !s->run->roles.is_lead;
  return (most_s + 2 * latency_s) * (waits_for_end ? 1.5 : 1) *
         (gt_server_members_change(s) ? LOSSES_IN_A_ROW : 1);
}

void gt_server_watch_advance(const gt_server *s) {
  const double still_s = gt_seconds(gt_ps_still(s->ps));
  char text[200];
  if (still_s < patience_of(s) || s->alone_since) return;
  name_wait(s, text, sizeof text);
  gt_panic(
      GT_ERR_LOST,
      "waited %.0f s (limits.wan_patience), in which nothing moved between the regions, for %s",
      still_s, text);
}

bool gt_server_over(gt_server *s, gt_ns now, gt_status *code) {
  gt_ps_view v;
  if (gt_ckpt_lock_lost(s->lock))
    gt_panic(GT_ERR_CKPT, "another run has taken over the run directory %s (%s/%s.lock)",
             s->run->run_dir, s->run->run_dir, s->run->region);
  gt_ps_get_view(s->ps, now, &v);
  if (v.phase == GT_PS_STOPPED) {
    *code = v.stop_code;
    if (v.stop_code == GT_ERR_LIMIT)
      *code = GT_FAIL(GT_ERR_LIMIT,
                      "a limit ended the run (limits.nonfinite or limits.wan_bytes; the records in "
                      "%s say which); a checkpoint was written",
                      s->run->run_dir);
    return true;
  }
  return v.phase == GT_PS_COMPLETE && gt_server_ending_step(s->ending, now, code);
}

void gt_server_end_workers(gt_server *s, gt_status status) {
  gt_order_msg end = {.kind = GT_ORDER_END, .status = status};
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++)
    gt_plane_ps_order(s->plane, w, &end, NULL, NULL);
}
