/* The world crashes and resumes, or one of its regions does. */
#include "world.h"

int64_t w_whole_round(world *w, int64_t *newest) {
  int64_t whole = 0;
  *newest = 0;
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->regions[i].ncopies; k++) {
      int64_t round = w->regions[i].copies[k].round;
      bool all = true;
      if (w->regions[i].copies[k].durable && round > *newest) *newest = round;
      for (size_t p = 0; p < w->n; p++) all &= w_find_copy(&w->regions[p], round) != NULL;
      if (all && round > whole) whole = round;
    }
  return whole;
}

static void load(w_region *r, int64_t round) {
  world *w = r->world;
  const w_copy *c = w_find_copy(r, round);
  assert_non_null(c);
  r->kept = c->kept;
  must(gt_state_get(&c->state, "model/", "params", GT_TYPE_F32, r->params, r->nparams));
  must(gt_state_get(&c->state, "model/", "buffers", GT_TYPE_F32, r->buffers, r->nbuffers));
  must(gt_ps_load(r->ps, w->now, &c->state));
  w_check(w, w_view(w, r->id).steps == c->kept.steps);
}

int64_t w_crash(world *w) {
  int64_t newest, round = w_whole_round(w, &newest);
  w->restarts++;
  for (size_t i = 0; i < w->n; i++) w_drop(&w->regions[i]);
  w_quiet(w);
  for (size_t i = 0; i < w->n; i++) {
    w_region *r = &w->regions[i];
    while (r->ncopies &&
           (r->copies[r->ncopies - 1].round > round || !r->copies[r->ncopies - 1].durable))
      w_forget_copy(r, r->ncopies - 1);
    w_open_ps(r, newest, false);
    if (round > 0) load(r, round);
    if (w->problem->resumed) w->problem->resumed(r, round, newest);
  }
  for (size_t i = 0; i < w->n; i++) gt_ps_start(w->regions[i].ps, w->now);
  return round;
}

void w_crash_now(world *w, size_t opener) {
  const gt_ns limit = w->now + 600 * GT_SECOND;
  int64_t newest;
  gt_ps_last_round(w->regions[opener].ps, w->now);
  const int64_t round = w_view(w, opener).round;
  while (w_whole_round(w, &newest) < round) w_check(w, w_step(w) && w->now < limit);
  w_check(w, w_crash(w) == round);
}

void w_end_writing(w_region *r) {
  r->writing = 0;
  r->written_at = GT_NEVER;
  while (r->ncopies && !r->copies[r->ncopies - 1].durable) w_forget_copy(r, r->ncopies - 1);
}

void w_restart(w_region *r) {
  const int64_t round = r->ncopies > 0 ? r->copies[r->ncopies - 1].round : 0;
  w_drop(r);
  w_open_ps(r, round, true);
  if (round > 0) load(r, round);
  w_start_workers(r);
  gt_ps_start(r->ps, r->world->now);
}
