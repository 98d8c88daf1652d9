/* The world of world_copies.h: its events, crashes and resumes. */
#include <math.h>

#include "world_copies.h"

/* ---- where nobody waits ---------------------------------------------------------------------- */

/* The region has used what has arrived: an update, or a model. */
void c_hear(c_world *w, c_region *r, size_t from, const gt_frame_header *head, const float *body) {
  const c_spec *s = &w->spec;
  const gt_ps_view v = c_look(w, r->id);
  const bool frozen = v.stop_code != GT_OK || v.phase == GT_PS_STOPPED;
  if (!c_followed(s) || !gt_msg_is_data(head->kind)) return;
  if (frozen || (int64_t)head->sequence <= r->seen[from]) return;
  r->seen[from] = (int64_t)head->sequence;
  w->meanwhile += r->work == C_TRAINING;
  const gt_vec all = gt_vec_of((float *)(uintptr_t)body, C_FLOATS);
  const gt_vec params = gt_vec_of(r->must, C_PARAMS), theirs = gt_vec_range(all, 0, C_PARAMS);
  if (head->kind == GT_MSG_UPDATE) {
    const double rate = s->gradients ? -gt_optim_lr(r->judge) : 1;
    gt_vec_axpy(params, (float)((s->means ? 1 / (double)s->copies : 1) * rate), theirs);
    return;
  }
  const float share = (float)w->weights[w->regions[from].copy];
  gt_vec_lerp(params, share, theirs);
  for (size_t j = 0; j < C_BUFFERS; j++) {
    float *b = &r->must[C_PARAMS + j];
    *b += share * (body[C_PARAMS + j] - *b);
    float *add = &r->add[r->train % 2][j];
    *add = *add * (1 - share) + share * body[C_PARAMS + j];
  }
  r->keep[r->train % 2] *= 1 - share;
}

/* The step that the region has made, clipped by the norm of its copy's gradient. */
static void c_made(c_world *w, c_region *r) {
  const float *parts[C_PLACES];
  const int64_t batch = r->made;
  for (size_t p = 0; p < w->spec.places; p++) parts[p] = w->regions[r->mates[p]].gave[batch % 2];
  gt_optim_step_of(r->judge, gt_vec_of(r->must, C_PARAMS),
                   gt_vec_of((float *)(uintptr_t)parts[r->place], C_PARAMS),
                   gt_vec_of(NULL, C_PARAMS), c_norm(w, r->judge, parts));
  for (size_t j = 0; j < C_BUFFERS; j++)
    r->must[C_PARAMS + j] = r->after[j] * r->keep[batch % 2] + r->add[batch % 2][j];
}

void c_follow(c_world *w, c_region *r) {
  const gt_ps_view v = c_look(w, r->id);
  if (!c_followed(&w->spec)) return;
  c_check(w, v.steps <= r->made + 1);
  if (v.steps > r->made && v.nonfinite == r->bad) c_made(w, r);
  r->made = v.steps;
  r->bad = v.nonfinite;
  c_check(w, c_same(r->params, r->must, sizeof r->params));
  for (size_t j = 0; j < C_BUFFERS; j++)
    c_check(w, fabsf(r->buffers[j] - r->must[C_PARAMS + j]) < 1e-4f);
  memcpy(r->must + C_PARAMS, r->buffers, sizeof r->buffers); /* rounding does not add up */
}

/* ---- events ---------------------------------------------------------------------------------- */

static void c_answer(c_world *w, c_region *r) {
  const int work = (int)r->work;
  r->work = C_IDLE;
  if (work == C_STARTING) {
    gt_ps_ready(r->ps, 0, w->now);
  } else if (work == C_EVALUATING) {
    const gt_ps_push push = {.samples = 1, .correct = 1, .loss_sum = 1};
    gt_ps_evaluated(r->ps, 0, &push, w->now);
  } else {
    c_check(w, c_same(r->lent_params, r->lent, sizeof r->params));
    c_check(w, c_same(r->lent_buffers, r->lent + C_PARAMS, sizeof r->buffers));
    const gt_ps_push push =
        c_push(w, r, r->batch, r->lent_params, r->lent_buffers, r->pushed, r->after);
    memcpy(r->gave[r->batch % 2], r->pushed, sizeof r->pushed);
    r->work = C_PUSHED;
    gt_ps_gradient(r->ps, 0, &push, r->pushed, w->now);
  }
}

static void c_arrive(c_world *w, size_t a, size_t b, c_link *link) {
  c_frame f = link->frames[link->head];
  link->head = (link->head + 1) % C_RING;
  link->count--;
  const gt_ps_view v = c_look(w, b);
  if (v.phase == GT_PS_STOPPED) return; /* it has gone home */
  c_hear(w, &w->regions[b], a, &f.head, f.body);
  w->late += f.head.kind == GT_MSG_ACK && (int64_t)f.head.round > v.round;
  if (gt_ps_message(w->regions[b].ps, a, &f.head, f.body, w->now) != GT_OK) {
    c_print(w);
    fail_msg("from %zu to %zu: %s", a, b, gt_error_text());
  }
  w->waited += f.head.kind == GT_MSG_ROUND && w->regions[a].copy != w->regions[b].copy &&
               (int64_t)f.head.value > c_look(w, b).round;
}

typedef struct {
  enum { E_NONE, E_WORKER, E_DEPART, E_ARRIVE, E_WRITTEN, E_TICK } kind;
  gt_ns at;
  size_t a, b, d;
} c_event;

static void c_earlier(c_event *best, c_event e) {
  if (e.at < best->at) *best = e;
}

static c_event c_soonest(c_world *w) {
  c_event best = {.at = GT_NEVER};
  for (size_t a = 0; a < w->n; a++) {
    const c_region *r = &w->regions[a];
    const bool stopped = c_look(w, a).phase == GT_PS_STOPPED;
    if (!stopped && r->work != C_IDLE && r->work != C_PUSHED)
      c_earlier(&best, (c_event){E_WORKER, r->ready, a, 0, 0});
    c_earlier(&best, (c_event){E_WRITTEN, r->written_at, a, 0, 0});
    if (!stopped) c_earlier(&best, (c_event){E_TICK, gt_ps_next(r->ps), a, 0, 0});
    for (size_t b = 0; b < w->n; b++)
      for (size_t d = 0; d < 2; d++) {
        const c_link *link = &w->links[a][b][d];
        const c_frame *f = &link->frames[link->head];
        if (link->count == 0) continue;
        c_earlier(&best, (c_event){f->departs < f->at ? E_DEPART : E_ARRIVE,
                                   f->departs < f->at ? f->departs : f->at, a, b, d});
      }
  }
  return best;
}

static void c_depart(c_world *w, size_t a, size_t b, c_link *link) {
  c_frame *f = &link->frames[link->head];
  f->departs = GT_NEVER;
  if (c_look(w, a).phase != GT_PS_STOPPED) gt_ps_departed(w->regions[a].ps, b, f->cookie, w->now);
}

void c_step(c_world *w) {
  const c_event e = c_soonest(w);
  c_region *r = &w->regions[e.a];
  c_check(w, e.kind != E_NONE);
  if (e.at > w->now) w->now = e.at;
  if (e.kind == E_WORKER) c_answer(w, r);
  if (e.kind == E_DEPART) c_depart(w, e.a, e.b, &w->links[e.a][e.b][e.d]);
  if (e.kind == E_ARRIVE) c_arrive(w, e.a, e.b, &w->links[e.a][e.b][e.d]);
  if (e.kind == E_WRITTEN) {
    const int64_t round = r->writing;
    r->writing = 0;
    r->written_at = GT_NEVER;
    r->saves[r->nsaves - 1].durable = true;
    gt_ps_written(r->ps, round, w->now);
  }
  if (e.kind == E_TICK) gt_ps_tick(r->ps, w->now);
  c_follow(w, e.kind == E_ARRIVE ? &w->regions[e.b] : r);
  if (gt_rng_uniform(&w->rng) < w->spec.rounds)
    gt_ps_last_round(w->regions[gt_rng_below(&w->rng, w->n)].ps, w->now);
}

void c_run(c_world *w) {
  const gt_ns limit = w->now + 600 * GT_SECOND;
  while (!c_all_in(w, GT_PS_COMPLETE) && !c_all_in(w, GT_PS_STOPPED)) {
    c_step(w);
    c_check(w, w->now < limit);
  }
}

/* ---- crash and resume ------------------------------------------------------------------------ */

static c_save *c_save_of(c_region *r, int64_t round) {
  for (size_t i = 0; i < r->nsaves; i++)
    if (r->saves[i].round == round && r->saves[i].durable) return &r->saves[i];
  return NULL;
}

static void c_load(c_world *w, c_region *r, int64_t round) {
  while (r->nsaves && r->saves[r->nsaves - 1].round > round) c_forget(r, r->nsaves - 1);
  c_open_ps(w, r);
  c_begin(r, r->must, r->must + C_PARAMS);
  r->made = r->bad = 0;
  memset(r->seen, 0, sizeof r->seen);
  if (round == 0) return;
  const gt_state *state = &c_save_of(r, round)->state;
  assert_int_equal(gt_state_get(state, "model/", "params", GT_TYPE_F32, r->params, C_PARAMS),
                   GT_OK);
  assert_int_equal(gt_state_get(state, "model/", "buffers", GT_TYPE_F32, r->buffers, C_BUFFERS),
                   GT_OK);
  if (gt_ps_load(r->ps, w->now, state) != GT_OK) fail_msg("%s", gt_error_text());
  memcpy(r->must, r->params, sizeof r->params);
  memcpy(r->must + C_PARAMS, r->buffers, sizeof r->buffers);
  memcpy(r->seen, c_save_of(r, round)->seen, sizeof r->seen);
  r->made = c_look(w, r->id).steps;
  r->bad = c_look(w, r->id).nonfinite;
}

void c_crash(c_world *w) {
  int64_t whole = 0;
  for (size_t k = 0; k < w->regions[0].nsaves; k++) {
    const int64_t round = w->regions[0].saves[k].round;
    bool all = true;
    for (size_t p = 0; p < w->n; p++) all &= c_save_of(&w->regions[p], round) != NULL;
    if (all && round > whole) whole = round;
  }
  for (size_t i = 0; i < w->n; i++) c_drop(&w->regions[i]);
  c_quiet(w);
  for (size_t i = 0; i < w->n; i++) c_load(w, &w->regions[i], whole);
  for (size_t i = 0; i < w->n; i++) gt_ps_start(w->regions[i].ps, w->now);
}
