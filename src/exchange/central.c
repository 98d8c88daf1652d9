/* central: one region adds up for all.  The contribution of every worker of another region goes to
   it singly, and what it makes of the mean comes back once for each of these workers.  This is the
   centralised architecture of Phalak et al. (2024), "Towards Geo-Distributed Training of ML Models
   in a Multi-Cloud Environment", section 3: nothing is added up before it crosses the WAN.
   Contributions are added in the order of regions and workers. */
#include "central.h"

static gt_central *of(gt_allreduce *r) {
  return (gt_central *)r;
}

static void central_open(gt_allreduce *r) {
  gt_central *t = of(r);
  const gt_exchange_spec *spec = &r->base.x->spec;
  gt_inbox_open(&t->rounds.inbox, spec->nregions, 1, r->base.n, spec->with_memory, true);
  t->here = GT_NEW_ARRAY(int64_t, spec->nregions);
  t->whole = GT_NEW_ARRAY(int64_t, spec->nregions);
  t->rounds.partial = t->partial = GT_NEW_ARRAY(bool, spec->nregions);
}

static void central_close(gt_allreduce *r) {
  gt_central *t = of(r);
  for (size_t i = 0; i < t->nparts; i++) gt_free(t->parts[i].x.data);
  gt_free(t->parts);
  gt_free(t->here);
  gt_free(t->whole);
  gt_free(t->partial);
  gt_inbox_close(&t->rounds.inbox);
}

static void central_part(gt_allreduce *r, size_t rank, gt_vec x, uint64_t samples) {
  gt_own_part *p = gt_central_add_part(of(r));
  p->about[0] = (int64_t)rank;
  p->about[1] = (int64_t)samples;
  gt_vec_copy(p->x, x);
}

/* ---- the central region ---------------------------------------------------------------------- */

static bool take_part(gt_central *t, size_t from, const gt_frame_header *head, gt_vec body) {
  t->here[from] += (int64_t)head->detail;
  t->whole[from] = (int64_t)head->route.weight;
  t->partial[from] = t->here[from] < t->whole[from];
  gt_inbox_push(&t->rounds.inbox, from, (int64_t)head->value, (double)head->detail, body);
  return true;
}

/* Adds what was computed from so many of all samples of a region's contribution. */
static void add(gt_central *t, size_t region, double samples, int64_t all, gt_vec x, bool *first) {
  const double weight = gt_central_x(t)->spec.weights[region] * (samples / (double)all);
  gt_allreduce_add(t->rounds.base.mean, (float)(weight / t->weight), x, *first);
  *first = false;
}

static void add_own(gt_central *t, bool *first) {
  gt_allreduce *r = &t->rounds.base;
  const size_t self = gt_central_x(t)->spec.self;
  const int64_t all = gt_central_samples(t);
  r->share = (float)(gt_central_x(t)->spec.weights[self] / t->weight);
  if (t->n.given == 0) gt_allreduce_add_own(r, r->mean, r->share, 0, *first);
  for (int64_t i = 0; i < t->n.given; i++)
    add(t, self, (double)t->parts[i].about[1], all, t->parts[i].x, first);
  *first = false;
  r->samples = t->n.given = 0;
}

static void add_region(gt_central *t, size_t region, bool *first) {
  gt_inbox *inbox = &t->rounds.inbox;
  for (const gt_inbox_slot *s; (s = gt_inbox_front(inbox, region)); gt_inbox_pop(inbox, region))
    add(t, region, s->weight, t->whole[region], s->vec, first);
  t->here[region] = t->whole[region] = 0;
}

/* A region that is done needs its model once. */
static size_t copies_for(const gt_exchange *x, size_t region) {
  return x->done[region] ? 1 : gt_central_workers(x, region);
}

static bool can_answer(const gt_collective *c) {
  gt_exchange *x = c->x;
  size_t copies = 0;
  for (size_t i = 0; i + 1 < x->spec.nregions; i++) {
    const size_t region = x->others[i];
    if (!gt_exchange_room_at(x, &region, 1, copies_for(x, region), GT_ROOM_ANY)) return false;
    copies += copies_for(x, region);
  }
  return gt_exchange_affords(x, copies, c->n);
}

/* Weights are renormalised over the regions that take part. */
static bool form(gt_central *t) {
  gt_exchange *x = gt_central_x(t);
  if (!gt_rounds_complete(&t->rounds) || !can_answer(&t->rounds.base.base)) return false;
  bool first = true;
  t->rounds.base.share = 0;
  t->weight = gt_rounds_weight(&t->rounds);
  for (size_t i = 0; i < x->spec.nregions; i++) {
    if (!gt_rounds_takes(&t->rounds, i)) continue;
    if (i == x->spec.self)
      add_own(t, &first);
    else
      add_region(t, i, &first);
  }
  return true;
}

static void post_answer(const gt_central *t, gt_message *m, size_t i, size_t copy) {
  const gt_allreduce *r = &t->rounds.base;
  const gt_exchange *x = gt_central_x(t);
  m->kind = r->base.spec.answer;
  m->value = (uint64_t)r->applied;
  m->detail = copies_for(x, x->others[i]);
  m->route = (gt_frame_route){.origin = (uint16_t)x->spec.self,
                              .destination = (uint16_t)x->others[i],
                              .destination_rank = (uint16_t)(copy + 1),
                              .weight = t->weight};
  m->to = &x->others[i];
  m->nto = 1;
  gt_exchange_send(&r->base, m);
  m->again = true;
}

static void central_answer(gt_allreduce *r, gt_vec made) {
  const gt_exchange *x = r->base.x;
  gt_message m = {.of = GT_BODY_SUM};
  if (!gt_central_is_root(x) || x->spec.nregions == 1) return;
  gt_vec_copy(gt_exchange_fill(x, &m, r->base.n), made);
  for (size_t i = 0; i + 1 < x->spec.nregions; i++)
    for (size_t copy = 0; copy < copies_for(x, x->others[i]); copy++)
      post_answer(of(r), &m, i, copy);
}

/* ---- the other regions ----------------------------------------------------------------------- */

/* The copies of an answer are the same. */
static bool take_answer(gt_central *t, const gt_frame_header *head, gt_vec body) {
  if (gt_central_has_answer(t)) return false;
  if (t->n.got == 0) gt_vec_copy(t->rounds.base.mean, body);
  t->n.got++;
  t->n.copies = (int64_t)head->detail;
  t->weight = head->route.weight;
  return true;
}

static bool central_answered(const gt_allreduce *r) {
  return !gt_central_is_root(r->base.x);
}

static bool central_receive(gt_allreduce *r, size_t from, const gt_frame_header *head,
                            gt_vec body) {
  return gt_central_is_root(r->base.x) ? take_part(of(r), from, head, body)
                                       : take_answer(of(r), head, body);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static bool central_next(gt_allreduce *r) {
  gt_central *t = of(r);
  const gt_exchange_spec *spec = &r->base.x->spec;
  if (gt_central_is_root(r->base.x)) {
    r->posted = r->own;
    return form(t);
  }
  if (r->own > r->posted) gt_central_post_own(t);
  if (!gt_central_has_answer(t)) return false;
  t->n.got = 0;
  r->share = r->own == r->applied + 1 ? (float)(spec->weights[spec->self] / t->weight) : 0;
  return true;
}

static bool central_settled(const gt_allreduce *r) {
  const gt_central *t = (const gt_central *)r;
  return gt_inbox_empty(&t->rounds.inbox) && t->n.got == 0 && gt_allreduce_is_last(r);
}

static const gt_allreduce_ops central_allreduce = {
    .size = sizeof(gt_central),
    .open = central_open,
    .close = central_close,
    .next = central_next,
    .receive = central_receive,
    .check = gt_central_check,
    .again = gt_rounds_again,
    .settled = central_settled,
    .part = central_part,
    .answered = central_answered,
    .answer = central_answer,
    .save = gt_central_save,
    .load = gt_central_load,
};

/* An exchange puts a message for each worker of a region on its link. */
static size_t unit(const gt_exchange *x, size_t n) {
  (void)n;
  size_t most = 1;
  for (size_t r = 0; r < x->spec.nregions; r++)
    if (gt_central_workers(x, r) > most) most = gt_central_workers(x, r);
  return most;
}

/* The central region answers all others at a time. */
static gt_posts at_once(const gt_collective *c, size_t region) {
  gt_posts posts = {.floats = c->n};
  if (region != *gt_central_root(c->x)) return (gt_posts){1, c->n};
  for (size_t r = 0; r < c->x->spec.nregions; r++)
    if (r != region) posts.messages += gt_central_workers(c->x, r);
  return posts;
}

const gt_topology_ops gt_topology_central = {
    .name = "central",
    .routed = true,
    .unit = unit,
    .at_once = at_once,
    .allreduce = &central_allreduce,
};
