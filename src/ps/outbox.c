/* What is sent to other regions, and what the exchange and the strategy ask of the PS. */
#include "internal.h"

/* ---- room ------------------------------------------------------------------------------------ */

/* There may be room for the exchange's messages to the region. */
static void room_at(gt_ps *ps, size_t region) {
  const size_t member = ps->twins.of[region];
  if (member != PS_NONE && gt_outbox_has_room(ps->outbox, region))
    gt_exchange_room(ps->exchange, member);
}

void gt_ps_outbox_retry(gt_ps *ps) {
  gt_outbox_retry(ps->outbox);
  for (size_t p = 0; p < ps->spec.nregions; p++)
    if (p != ps->spec.self) room_at(ps, p);
}

void gt_ps_outbox_departed(gt_ps *ps, size_t peer, uint64_t cookie) {
  if (gt_outbox_departed(ps->outbox, peer, cookie)) room_at(ps, peer);
}

void gt_ps_acknowledged(gt_ps *ps, size_t peer, int64_t sequence) {
  if (gt_outbox_acknowledged(ps->outbox, peer, sequence)) room_at(ps, peer);
}

void gt_ps_hold_outboxes(gt_ps *ps) {
  for (size_t p = 0; p < ps->spec.nregions; p++) gt_outbox_hold(ps->outbox, p, gt_ps_behind(ps, p));
}

/* ---- what an exchange tells ------------------------------------------------------------------ */

double gt_ps_part(const gt_ps *ps, unsigned kind, size_t n) {
  const size_t whole = ps->spec.params.n + (kind == GT_MSG_STATE ? ps->spec.buffers.n : 0);
  return (double)n / (double)whole;
}

static void filling(void *ctx) {
  gt_ps *ps = ctx;
  ps->encode_from = gt_ps_clock(ps);
}

static void filled(void *ctx, gt_msg_kind kind, size_t floats) {
  gt_ps *ps = ctx;
  ps->totals.encode +=
      gt_ps_worked(ps, GT_WORK_COPY, gt_ps_part(ps, kind, floats)) - ps->encode_from;
  ps->encode_from = gt_ps_clock(ps); /* of the next piece of the same body */
}

/* Messages that are not finite are dropped and counted; if no region can continue without them, the
   run ends. */
void gt_ps_count_nonfinite(gt_ps *ps, size_t from) {
  ps->totals.nonfinite++;
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_NONFINITE, (double)ps->totals.nonfinite,
                     -1 - (double)from);
  ps->peers[from].rejected = gt_ps_strategy(ps)->needs_all;
  if (ps->peers[from].rejected || ps->totals.nonfinite >= ps->spec.nonfinite_limit)
    ps->want_stop = GT_ERR_LIMIT;
}

static void nonfinite(void *ctx, size_t member) {
  gt_ps *ps = ctx;
  gt_ps_count_nonfinite(ps, ps->twins.regions[member]);
}

gt_exchange_events gt_ps_exchange_events(gt_ps *ps) {
  return (gt_exchange_events){
      .ctx = ps, .filling = filling, .filled = filled, .nonfinite = nonfinite};
}

/* ---- what a strategy sees -------------------------------------------------------------------- */

static void host_hold(void *ctx) {
  gt_ps_hold(ctx, PS_HOLDER_SYNC, true);
}

static void host_release(void *ctx) {
  gt_ps_hold(ctx, PS_HOLDER_SYNC, false);
}

static gt_link_view host_link(void *ctx, size_t member) {
  const gt_ps *ps = ctx;
  const gt_outbox_view v = gt_outbox_look(ps->outbox, ps->twins.regions[member]);
  return (gt_link_view){.queued = v.queued, .rate_bps = v.late_bps, .latency_s = v.late_latency_s};
}

static void host_timer(void *ctx, size_t id, gt_ns at) {
  gt_ps *ps = ctx;
  if (id >= GT_SYNC_TIMERS) gt_bug("timer %zu; there are %d", id, GT_SYNC_TIMERS);
  ps->timer_at[id] = at;
}

static void host_decided(void *ctx, const char *what, const char *choice, const char *why) {
  const gt_ps_host *host = &((const gt_ps *)ctx)->spec.host;
  if (host->decided) host->decided(host->ctx, what, choice, why);
}

gt_sync_host gt_ps_sync_host(gt_ps *ps) {
  const bool clips = ps->agree.of_means;
  return (gt_sync_host){.ctx = ps,
                        .hold = host_hold,
                        .release = host_release,
                        .timer = host_timer,
                        .decided = host_decided,
                        .link = host_link,
                        .moved = gt_ps_buffers_moved,
                        .tell_squares = clips ? gt_ps_agree_mean : NULL,
                        .norm = clips ? gt_ps_agree_norm : NULL};
}
