/* central: one region, the root, adds up for all.  The contribution of every worker of another
   region is sent to the root separately (a part); the root answers with one copy of the new model
   for each of these workers.  This is the centralised architecture of Phalak et al. (2024),
   "Towards Geo-Distributed Training of ML Models in a Multi-Cloud Environment", section 3: nothing
   is added up before it crosses the WAN.  Parts are added in the order of regions and workers. */
#include <stdio.h>
#include <string.h>

#include "rounds.h"

#define MOST UINT16_MAX /* maximum messages of a contribution: a rank in a route has 16 bits */

typedef struct {
  int64_t about[2]; /* rank of the worker; samples behind x */
  gt_vec x;
} own_part;

/* Counters, saved in this order. */
typedef struct {
  int64_t given;       /* parts of this region's contribution; 0: the contribution is a and b */
  int64_t posts, sent; /* messages of this contribution, 0: not begun; number sent */
  /* Other regions: messages of the next answer received; all messages of the answer. */
  int64_t got, copies;
} counts;
#define COUNTS (sizeof(counts) / sizeof(int64_t))

typedef struct {
  gt_rounds rounds; /* at the root: parts, each with its samples as weight */
  /* At the root, nregions.  Samples behind the received parts of the region's next contribution, 0:
     none received; samples behind the whole contribution; partial: some parts are received, but not
     all. */
  int64_t *here, *whole;
  bool *partial;
  own_part *parts;         /* parts of this region's contribution */
  size_t nparts, capacity; /* nparts: entries with memory */
  counts n;
  double weight; /* sum over the regions that take part in the round */
} central;

static gt_exchange *x_of(const central *t) {
  return t->rounds.base.base.x;
}

static const size_t *root_of(const gt_exchange *x) {
  return &x->spec.next[x->spec.self];
}

static bool is_root(const gt_exchange *x) {
  return *root_of(x) == x->spec.self;
}

/* Returns the number of messages for a region: one per worker; a region without workers also has a
   model. */
static size_t workers_of(const gt_exchange *x, size_t region) {
  return x->spec.workers[region] > 0 ? x->spec.workers[region] : 1;
}

/* True if all messages of an answer have arrived, and it has not been applied yet. */
static bool has_answer(const central *t) {
  return t->n.got > 0 && t->n.got == t->n.copies;
}

static central *of(gt_allreduce *r) {
  return (central *)r;
}

static void central_open(gt_allreduce *r) {
  central *t = of(r);
  const gt_exchange_spec *spec = &r->base.x->spec;
  gt_inbox_open(&t->rounds.inbox, spec->nregions, 1, r->base.n, spec->with_memory, true);
  t->here = GT_NEW_ARRAY(int64_t, spec->nregions);
  t->whole = GT_NEW_ARRAY(int64_t, spec->nregions);
  t->rounds.partial = t->partial = GT_NEW_ARRAY(bool, spec->nregions);
}

static void central_close(gt_allreduce *r) {
  central *t = of(r);
  for (size_t i = 0; i < t->nparts; i++) gt_free(t->parts[i].x.data);
  gt_free(t->parts);
  gt_free(t->here);
  gt_free(t->whole);
  gt_free(t->partial);
  gt_inbox_close(&t->rounds.inbox);
}

/* ---- this region's contribution -------------------------------------------------------------- */

/* Returns the next part of this region's contribution, to be filled. */
static own_part *add_part(central *t) {
  const gt_allreduce *r = &t->rounds.base;
  if ((size_t)t->n.given == t->nparts) {
    GT_GROW(t->parts, t->nparts, t->capacity, 4);
    float *data = x_of(t)->spec.with_memory ? GT_NEW_ARRAY(float, r->a.n) : NULL;
    t->parts[t->nparts++].x = gt_vec_of(data, r->a.n);
  }
  return &t->parts[t->n.given++];
}

/* Returns the samples behind this region's contribution. */
static int64_t own_samples(const central *t) {
  int64_t sum = 0;
  for (int64_t i = 0; i < t->n.given; i++) sum += t->parts[i].about[1];
  if (t->n.given > 0) return sum;
  return t->rounds.base.samples > 0 ? t->rounds.base.samples : 1;
}

/* Returns the samples of message i.  Without parts, every message has a and b, and the samples are
   divided among the messages. */
static int64_t samples_of_part(const central *t, int64_t i) {
  if (t->n.given > 0) return t->parts[i].about[1];
  const int64_t all = own_samples(t);
  return all * (i + 1) / t->n.posts - all * i / t->n.posts;
}

static void post_part(const central *t, int64_t i) {
  const gt_allreduce *r = &t->rounds.base;
  const gt_exchange *x = x_of(t);
  const bool given = t->n.given > 0;
  gt_message m = {.of = GT_BODY_OWN,
                  .value = (uint64_t)r->own,
                  .detail = (uint64_t)samples_of_part(t, i),
                  .route = {.origin = (uint16_t)x->spec.self,
                            .origin_rank = (uint16_t)(given ? t->parts[i].about[0] : i + 1),
                            .destination = (uint16_t)*root_of(x),
                            .weight = (double)own_samples(t)},
                  .to = root_of(x),
                  .nto = 1};
  const gt_vec body = gt_exchange_fill(&r->base, &m, r->base.n);
  if (given)
    gt_vec_copy(body, t->parts[i].x);
  else
    gt_allreduce_copy_own(r, body);
  gt_exchange_send(&r->base, &m);
}

/* Posts each message when the outbox has room.  Does not require room for all, because after a
   resume the region can have more messages than workers. */
static void post_own(central *t) {
  gt_allreduce *r = &t->rounds.base;
  gt_exchange *x = x_of(t);
  if (t->n.posts == 0)
    t->n.posts = t->n.given > 0 ? t->n.given : (int64_t)workers_of(x, x->spec.self);
  for (; t->n.sent < t->n.posts &&
         gt_exchange_can_post(&r->base, GT_ROOM_ANY, root_of(x), 1, 1, r->base.n);
       t->n.sent++)
    post_part(t, t->n.sent);
  if (t->n.sent < t->n.posts) return;
  r->posted = r->own;
  r->samples = t->n.given = t->n.posts = t->n.sent = 0;
}

static void central_part(gt_allreduce *r, size_t rank, gt_vec x, uint64_t samples) {
  own_part *p = add_part(of(r));
  p->about[0] = (int64_t)rank;
  p->about[1] = (int64_t)samples;
  gt_vec_copy(p->x, x);
}

/* ---- the root -------------------------------------------------------------------------------- */

static bool take_part(central *t, size_t from, const gt_frame_header *head, gt_vec body) {
  t->here[from] += (int64_t)head->detail;
  t->whole[from] = (int64_t)head->route.weight;
  t->partial[from] = t->here[from] < t->whole[from];
  gt_inbox_push(&t->rounds.inbox, from, (int64_t)head->value, (double)head->detail, body);
  return true;
}

/* Adds a part x, computed from `samples` of all `all` samples of a region's contribution. */
static void add(central *t, size_t region, double samples, int64_t all, gt_vec x, bool *first) {
  const double weight = x_of(t)->spec.weights[region] * (samples / (double)all);
  gt_allreduce_add(t->rounds.base.mean, (float)(weight / t->weight), x, *first);
  *first = false;
}

static void add_own(central *t, bool *first) {
  gt_allreduce *r = &t->rounds.base;
  const size_t self = x_of(t)->spec.self;
  const int64_t all = own_samples(t);
  r->share = (float)(x_of(t)->spec.weights[self] / t->weight);
  if (t->n.given == 0) gt_allreduce_add_own(r, r->mean, r->share, 0, *first);
  for (int64_t i = 0; i < t->n.given; i++)
    add(t, self, (double)t->parts[i].about[1], all, t->parts[i].x, first);
  *first = false;
  r->samples = t->n.given = 0;
}

static void add_region(central *t, size_t region, bool *first) {
  gt_inbox *inbox = &t->rounds.inbox;
  for (const gt_inbox_slot *s; (s = gt_inbox_front(inbox, region)); gt_inbox_pop(inbox, region))
    add(t, region, s->weight, t->whole[region], s->vec, first);
  t->here[region] = t->whole[region] = 0;
}

/* Returns the copies of an answer for a region; one that is done needs one. */
static size_t copies_for(const gt_exchange *x, size_t region) {
  return x->done[region] ? 1 : workers_of(x, region);
}

static bool can_answer(const gt_collective *c) {
  gt_exchange *x = c->x;
  for (size_t i = 0; i + 1 < x->spec.nregions; i++)
    gt_exchange_want(x, x->others[i], copies_for(x, x->others[i]));
  return gt_exchange_can_post_wanted(c, GT_ROOM_ANY, c->n);
}

/* Computes the mean.  Weights are divided by the sum of the weights of the regions that take
   part. */
static bool form(central *t) {
  gt_exchange *x = x_of(t);
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

static void post_answer(const central *t, gt_message *m, size_t i, size_t copy) {
  const gt_allreduce *r = &t->rounds.base;
  const gt_exchange *x = x_of(t);
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
  if (!is_root(x) || x->spec.nregions == 1) return;
  gt_vec_copy(gt_exchange_fill(&r->base, &m, r->base.n), made);
  for (size_t i = 0; i + 1 < x->spec.nregions; i++)
    for (size_t copy = 0; copy < copies_for(x, x->others[i]); copy++)
      post_answer(of(r), &m, i, copy);
}

/* ---- the other regions ----------------------------------------------------------------------- */

/* Takes one copy of an answer; all copies are equal. */
static bool take_answer(central *t, const gt_frame_header *head, gt_vec body) {
  if (has_answer(t)) return false;
  if (t->n.got == 0) gt_vec_copy(t->rounds.base.mean, body);
  t->n.got++;
  t->n.copies = (int64_t)head->detail;
  t->weight = head->route.weight;
  return true;
}

static bool central_answered(const gt_allreduce *r) {
  return !is_root(r->base.x);
}

static bool central_receive(gt_allreduce *r, size_t from, const gt_frame_header *head,
                            gt_vec body) {
  return is_root(r->base.x) ? take_part(of(r), from, head, body) : take_answer(of(r), head, body);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static gt_status check_part(const central *t, size_t from, const gt_frame_header *head) {
  const gt_frame_route *route = &head->route;
  const gt_inbox_slot *begun = gt_inbox_front(&t->rounds.inbox, from);
  const double left = route->weight - (double)t->here[from];
  if (head->kind != t->rounds.base.base.spec.kind)
    return GT_FAIL(GT_ERR_FAULT, "a contribution is of kind %u; expected %d", head->kind,
                   (int)t->rounds.base.base.spec.kind);
  if (route->origin != from || route->origin_rank == 0 || route->destination_rank != 0)
    return GT_FAIL(GT_ERR_FAULT,
                   "a contribution is of rank %u of region %u; expected a worker of region %zu",
                   route->origin_rank, route->origin, from);
  if (begun && !t->partial[from])
    return GT_FAIL(GT_ERR_FAULT, "a contribution comes before the last one was answered");
  if (!(route->weight >= 1 && route->weight <= 0x1p53) || !((double)head->detail <= left) ||
      (begun && (begun->value != (int64_t)head->value || route->weight != (double)t->whole[from])))
    return GT_FAIL(GT_ERR_FAULT,
                   "a part of round %lld is behind %llu of %g samples; %lld of %lld are here",
                   (long long)head->value, (unsigned long long)head->detail, route->weight,
                   (long long)t->here[from], (long long)t->whole[from]);
  return GT_OK;
}

static gt_status check_answer(const central *t, size_t from, const gt_frame_header *head) {
  const gt_frame_route *route = &head->route;
  const gt_allreduce *r = &t->rounds.base;
  const gt_msg_kind kind = r->base.spec.answer ? r->base.spec.answer : r->base.spec.kind;
  int64_t before = t->n.got, copies = t->n.copies, round = r->applied + 1;
  size_t i = 0;
  for (const gt_frame_header *m; (m = gt_exchange_next_held(&r->base, from, &i));) {
    if (before > 0 && before == copies) before = 0, round++;
    before++;
    copies = (int64_t)m->detail;
  }
  if (before > 0 && before == copies) before = 0, round++;
  if (from != *root_of(x_of(t)) || head->kind != kind || route->origin != from ||
      route->origin_rank != 0)
    return GT_FAIL(GT_ERR_FAULT,
                   "data is of kind %u and region %zu; expected kind %d of region %zu", head->kind,
                   from, (int)kind, *root_of(x_of(t)));
  if ((int64_t)head->value != round || route->destination != x_of(t)->spec.self ||
      route->destination_rank != before + 1 || head->detail < route->destination_rank ||
      head->detail > MOST || (before > 0 && (int64_t)head->detail != copies))
    return GT_FAIL(GT_ERR_FAULT,
                   "the model of round %lld is for rank %u of %llu of region %u; expected that of "
                   "round %lld for rank %lld of region %zu",
                   (long long)head->value, route->destination_rank,
                   (unsigned long long)head->detail, route->destination, (long long)round,
                   (long long)before + 1, x_of(t)->spec.self);
  if (!(route->weight > 0 && route->weight < 2))
    return GT_FAIL(GT_ERR_FAULT, "a model has weight %g; expected above 0, and 1 at most",
                   route->weight);
  return GT_OK;
}

static gt_status central_check(const gt_allreduce *r, size_t from, const gt_frame_header *head) {
  const central *t = (const central *)r;
  GT_TRY(is_root(r->base.x) ? check_part(t, from, head) : check_answer(t, from, head));
  return gt_exchange_check_part(head, 0, r->base.n);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static bool central_next(gt_allreduce *r) {
  central *t = of(r);
  const gt_exchange_spec *spec = &r->base.x->spec;
  if (is_root(r->base.x)) {
    r->posted = r->own;
    return form(t);
  }
  if (r->own > r->posted) post_own(t);
  if (!has_answer(t)) return false;
  t->n.got = 0;
  r->share = r->own == r->applied + 1 ? (float)(spec->weights[spec->self] / t->weight) : 0;
  return true;
}

static bool central_settled(const gt_allreduce *r) {
  const central *t = (const central *)r;
  return gt_inbox_empty(&t->rounds.inbox) && t->n.got == 0 && gt_allreduce_is_last(r);
}

/* ---- state ----------------------------------------------------------------------------------- */

/* Saves or loads the counters. */
static gt_status counts_state(central *t, const char *prefix, gt_state_direction direction) {
  int64_t all[COUNTS];
  bool fit = true;
  const gt_state_field field = {"counts", GT_TYPE_I64, &t->n, COUNTS};
  GT_TRY(gt_state_fields(direction, prefix, &field, 1));
  memcpy(all, &t->n, sizeof all);
  for (size_t i = 0; i < COUNTS; i++) fit &= all[i] >= 0 && all[i] <= MOST;
  if (fit && t->n.sent <= t->n.posts && t->n.got <= t->n.copies &&
      (t->n.given == 0 || t->n.posts == 0 || t->n.posts == t->n.given))
    return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 "state \"%scounts\" has %lld parts, %lld of %lld messages sent and %lld of %lld "
                 "taken, which cannot be",
                 prefix, (long long)t->n.given, (long long)t->n.sent, (long long)t->n.posts,
                 (long long)t->n.got, (long long)t->n.copies);
}

/* Saves or loads the parts.  The data of parts that have been sent is in messages. */
static gt_status parts_state(central *t, const char *prefix, gt_state_direction direction) {
  const int64_t given = t->n.given;
  char part[96];
  if (direction.from) t->n.given = 0;
  for (int64_t i = 0; i < given; i++) {
    own_part *p = direction.from ? add_part(t) : &t->parts[i];
    const gt_state_field fields[] = {
        {"about", GT_TYPE_I64, p->about, 2},
        {i >= t->n.sent ? "data" : NULL, GT_TYPE_F32, p->x.data, p->x.n}};
    snprintf(part, sizeof part, "%spart/%lld/", prefix, (long long)i);
    GT_TRY(GT_STATE_FIELDS(direction, part, fields));
  }
  return GT_OK;
}

static gt_status central_state(gt_allreduce *r, const char *prefix, gt_state_direction direction) {
  central *t = of(r);
  const size_t n = r->base.x->spec.nregions;
  GT_TRY(counts_state(t, prefix, direction));
  GT_TRY(parts_state(t, prefix, direction));
  const gt_state_field fields[] = {
      {"weight", GT_TYPE_F64, &t->weight, 1},
      {t->n.got > 0 ? "mean" : NULL, GT_TYPE_F32, r->mean.data, r->mean.n},
      {"here", GT_TYPE_I64, t->here, n},
      {"whole", GT_TYPE_I64, t->whole, n}};
  GT_TRY(GT_STATE_FIELDS(direction, prefix, fields));
  for (size_t i = 0; i < n; i++) t->partial[i] = t->here[i] < t->whole[i];
  return gt_inbox_state(&t->rounds.inbox, r->base.spec.owner, direction);
}

static const gt_allreduce_ops central_allreduce = {
    .size = sizeof(central),
    .open = central_open,
    .close = central_close,
    .next = central_next,
    .receive = central_receive,
    .check = central_check,
    .again = gt_rounds_again,
    .settled = central_settled,
    .part = central_part,
    .answered = central_answered,
    .answer = central_answer,
    .state = central_state,
};

/* An exchange sends one message for each worker of a region over its link. */
static size_t unit(const gt_collective *c) {
  const gt_exchange *x = c->x;
  size_t most = 1;
  for (size_t r = 0; r < x->spec.nregions; r++)
    if (workers_of(x, r) > most) most = workers_of(x, r);
  return most;
}

const gt_topology_ops gt_topology_central = {
    .name = "central",
    .routed = true,
    .unit = unit,
    .allreduce = &central_allreduce,
};
