/* Numbered exchanges in which every active region takes part once: the barrier and the weighted mean. */
#include "rounds.h"
#include "internal.h"

void gt_rounds_open(gt_rounds *r, const gt_sync *s, size_t n) {
  *r = (gt_rounds){.env = &s->env};
  bool with_memory = s->env.params.data != NULL;
  gt_inbox_open(&r->inbox, s->env.nregions, with_memory ? s->env.inflight + 1 : 1, n, with_memory);
  r->done = GT_NEW_ARRAY(bool, s->env.nregions);
  r->mean = gt_sync_vec(s, n);
}

void gt_rounds_close(gt_rounds *r) {
  gt_free(r->mean.data);
  gt_free(r->done);
  gt_inbox_close(&r->inbox);
}

void gt_rounds_contribute(gt_rounds *r) {
  r->clear = 0;
  if (r->rejoins) r->own = r->posted = r->applied;
  r->rejoins = false;
  r->over = 0;
  r->own++;
  if (r->env->nregions == 1) r->posted = r->own;
}

void gt_rounds_leave(gt_rounds *r) {
  r->over = 1;
  r->rejoins = false;
}

void gt_rounds_peer(gt_rounds *r, size_t peer, gt_peer_event event, int64_t value) {
  r->done[peer] = event != GT_PEER_JOINED;
  if (event != GT_PEER_JOINED) return;
  r->clear = 0;
  if (r->unheard) r->unheard--;
  if (value > r->floor) r->floor = value;
}

bool gt_rounds_can_post(const gt_rounds *r, const gt_sync *s) {
  return r->own > r->posted && gt_sync_all_room(s);
}

typedef enum { OUT, IN, AWAITED } part;

/* Whether region i takes part in the round that is next. */
static part takes_part(const gt_rounds *r, size_t i, int64_t round) {
  if (i == r->env->self) {
    if (round <= r->own) return r->posted >= round ? IN : AWAITED;
    return (r->over && !r->rejoins) || round <= r->floor ? OUT : AWAITED;
  }
  const gt_inbox_slot *slot = gt_inbox_front(&r->inbox, i);
  if (!slot)
    return r->done[i] || round <= r->floor ? OUT : AWAITED; /* what was sent before the resume is here, what comes is of rounds after the floor */
  if (slot->value < round) gt_bug("region %zu's oldest message is of round %lld; round %lld is next", i, (long long)slot->value, (long long)round);
  return slot->value == round ? IN : OUT;
}

/* The contribution of every region that takes part in `round`, the next, is here, and there is at least one.  What is known of a region stays so until the round is applied,
   but for peers' joining: a thousand messages look at a thousand regions once, not each. */
static bool is_complete(gt_rounds *r, int64_t round) {
  if (r->unheard) return false;
  while (r->clear < r->env->nregions && takes_part(r, r->clear, round) != AWAITED) r->clear++;
  if (r->clear < r->env->nregions) return false;
  for (size_t i = 0; i < r->env->nregions; i++)
    if (takes_part(r, i, round) == IN) return true;
  return false;
}

static void add(gt_vec sum, float share, gt_vec x, bool first) {
  if (first)
    gt_vec_set_scaled(sum, share, x);
  else
    gt_vec_axpy(sum, share, x);
}

bool gt_rounds_next(gt_rounds *r, gt_vec a, gt_vec b) {
  int64_t round = r->applied + 1;
  if (!is_complete(r, round)) return false;
  double total = 0;
  for (size_t i = 0; i < r->env->nregions; i++) {
    if (takes_part(r, i, round) == IN) total += r->env->weights[i];
  }
  bool first = true;
  r->share = 0;
  for (size_t i = 0; i < r->env->nregions; i++) {
    if (takes_part(r, i, round) != IN) continue;
    float share = (float)(r->env->weights[i] / total);
    if (i == r->env->self) {
      r->share = share;
      add(gt_vec_range(r->mean, 0, a.n), share, a, first);
      if (b.n) add(gt_vec_range(r->mean, a.n, b.n), share, b, first);
    } else {
      add(r->mean, share, gt_inbox_front(&r->inbox, i)->vec, first);
      gt_inbox_pop(&r->inbox, i);
    }
    first = false;
  }
  r->applied = round;
  r->clear = 0;
  return true;
}

bool gt_rounds_waiting(const gt_rounds *r) {
  return r->own > r->applied;
}

void gt_rounds_hold(gt_rounds *r) {
  const gt_sync_host *host = &r->env->host;
  bool was = r->held;
  r->held = gt_rounds_waiting(r) || (r->rejoins && (r->unheard || r->applied < r->floor));
  if (r->held)
    host->hold(host->ctx);
  else if (was)
    host->release(host->ctx);
}

bool gt_rounds_drained(const gt_rounds *r) {
  return r->own == r->posted;
}

bool gt_rounds_settled(const gt_rounds *r) {
  return !gt_rounds_waiting(r) && gt_inbox_empty(&r->inbox);
}

void gt_rounds_save(gt_rounds *r, gt_state *state) {
  gt_sync_save_count(state, "rounds/own", &r->own);
  gt_sync_save_count(state, "rounds/posted", &r->posted);
  gt_sync_save_count(state, "rounds/applied", &r->applied);
  gt_sync_save_count(state, "rounds/samples", &r->samples);
  gt_sync_save_count(state, "rounds/over", &r->over);
  gt_inbox_save(&r->inbox, state);
}

gt_status gt_rounds_load(gt_rounds *r, const gt_state *state) {
  GT_TRY(gt_sync_load_count(state, "rounds/own", &r->own));
  GT_TRY(gt_sync_load_count(state, "rounds/posted", &r->posted));
  GT_TRY(gt_sync_load_count(state, "rounds/applied", &r->applied));
  GT_TRY(gt_sync_load_count(state, "rounds/samples", &r->samples));
  GT_TRY(gt_sync_load_count(state, "rounds/over", &r->over));
  r->rejoins = r->over != 0;
  r->clear = 0;
  r->floor = r->applied;
  r->unheard = r->env->nregions - 1;
  return gt_inbox_load(&r->inbox, state);
}
