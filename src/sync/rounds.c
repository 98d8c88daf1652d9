/* Numbered exchanges in which every active region takes part once: the barrier and the weighted mean. */
#include "rounds.h"
#include "private.h"

#include <stdio.h>
#include <stdlib.h>

void gt_rounds_open(gt_rounds *r, const gt_sync *s, size_t n) {
  *r = (gt_rounds){.env = &s->env};
  gt_inbox_open(&r->inbox, s->env.nregions, s->env.inflight + 1, n, s->env.params.data != NULL);
  r->last = GT_NEW_ARRAY(int64_t, s->env.nregions);
  for (size_t i = 0; i < s->env.nregions; i++) r->last[i] = INT64_MAX;
  r->mean = gt_sync_vec(s, n);
}

void gt_rounds_close(gt_rounds *r) {
  gt_free(r->mean.data);
  gt_free(r->last);
  gt_inbox_close(&r->inbox);
}

void gt_rounds_contribute(gt_rounds *r) {
  r->own++;
  if (r->env->nregions == 1) r->posted = r->own;
}

bool gt_rounds_can_post(const gt_rounds *r, const gt_sync *s) {
  return r->own > r->posted && gt_sync_all_room(s);
}

/* The contribution of every region that takes part in `round` is here, and there is at least one. */
static bool is_complete(const gt_rounds *r, int64_t round) {
  bool any = false;
  for (size_t i = 0; i < r->env->nregions; i++) {
    if (r->last[i] < round) continue;
    any = true;
    if (i == r->env->self) {
      if (r->posted < round) return false;
      continue;
    }
    const gt_inbox_slot *slot = gt_inbox_front(&r->inbox, i);
    if (!slot) return false;
    if (slot->value != round) {
      fprintf(stderr, "geotrain: fault: region %zu's oldest message is of round %lld; round %lld is next\n", i, (long long)slot->value,
              (long long)round);
      abort();
    }
  }
  return any;
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
    if (r->last[i] >= round) total += r->env->weights[i];
  }
  bool first = true;
  for (size_t i = 0; i < r->env->nregions; i++) {
    if (r->last[i] < round) continue;
    float share = (float)(r->env->weights[i] / total);
    if (i == r->env->self) {
      add(gt_vec_range(r->mean, 0, a.n), share, a, first);
      if (b.n) add(gt_vec_range(r->mean, a.n, b.n), share, b, first);
    } else {
      add(r->mean, share, gt_inbox_front(&r->inbox, i)->vec, first);
      gt_inbox_pop(&r->inbox, i);
    }
    first = false;
  }
  r->applied = round;
  return true;
}

bool gt_rounds_waiting(const gt_rounds *r) {
  return r->own > r->applied;
}

void gt_rounds_hold(gt_rounds *r) {
  const gt_sync_host *host = &r->env->host;
  bool was = r->held;
  r->held = gt_rounds_waiting(r);
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
  gt_state_add(state, "sync/", "rounds/last", GT_TYPE_I64, r->last, r->env->nregions);
  gt_inbox_save(&r->inbox, state);
}

gt_status gt_rounds_load(gt_rounds *r, const gt_state *state) {
  GT_TRY(gt_sync_load_count(state, "rounds/own", &r->own));
  GT_TRY(gt_sync_load_count(state, "rounds/posted", &r->posted));
  GT_TRY(gt_sync_load_count(state, "rounds/applied", &r->applied));
  GT_TRY(gt_sync_load_count(state, "rounds/samples", &r->samples));
  GT_TRY(gt_state_get(state, "sync/", "rounds/last", GT_TYPE_I64, r->last, r->env->nregions));
  return gt_inbox_load(&r->inbox, state);
}
