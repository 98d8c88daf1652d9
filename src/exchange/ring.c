/* ring: all-reduce by reduce-scatter and all-gather (Patarasuk and Yuan 2009).  In a round each of
   R regions sends 2 (R - 1) messages to the next region.  Each is a chunk c: floats [c n/R, (c + 1)
   n/R).  Chunk c starts at region c.  Each region adds its part and forwards the sum; the region
   before c completes it, and the mean then travels around the ring.  Regions that do not take part
   in a round forward the chunks. */
#include "inbox.h"
#include "internal.h"

typedef struct {
  gt_allreduce base;
  size_t before, place; /* the previous region on the ring; hops from region 0 to this region */
  gt_inbox inbox;       /* messages from the previous region */
  /* Progress of the next round: 1 if its first chunk has been sent; number of messages taken, of 2
     (R - 1); weight of the regions that take part. */
  int64_t started, step;
  double weight;
} turns;

static turns *of(gt_allreduce *r) {
  return (turns *)r;
}

static size_t nregions_of(const turns *t) {
  return t->base.base.x->spec.nregions;
}

static void turns_open(gt_allreduce *r) {
  turns *t = of(r);
  const gt_exchange_spec *spec = &r->base.x->spec;
  for (size_t at = 0; at != spec->self; at = spec->next[at])
    if (++t->place >= spec->nregions) gt_bug("region %zu is not on the ring", spec->self);
  while (spec->next[t->before] != spec->self) t->before++;
  gt_inbox_open(&t->inbox, spec->nregions, 2, r->base.n / spec->nregions + 1, spec->with_memory,
                true);
}

static void turns_close(gt_allreduce *r) {
  gt_inbox_close(&of(r)->inbox);
}

static void turns_again(gt_allreduce *r) {
  (void)r;
}

static gt_vec chunk_of(const turns *t, size_t chunk) {
  const size_t n = t->base.base.n, from = chunk * n / nregions_of(t),
               to = (chunk + 1) * n / nregions_of(t);
  return gt_vec_range(t->base.mean, from, to - from);
}

static size_t first_of(const turns *t, size_t chunk) {
  return chunk * t->base.base.n / nregions_of(t);
}

/* Returns the chunk that starts `behind` regions before this one. */
static size_t chunk_behind(const turns *t, size_t behind) {
  return (t->place + 2 * nregions_of(t) - behind) % nregions_of(t);
}

static bool has_room(const turns *t, size_t floats) {
  const gt_exchange *x = t->base.base.x;
  return gt_exchange_can_post(&t->base.base, GT_ROOM_ANY, &x->spec.next[x->spec.self], 1, 1,
                              floats);
}

/* Gives the message a body for the chunk. */
static gt_vec fill(const turns *t, gt_message *m, size_t chunk) {
  return gt_exchange_fill(&t->base.base, m, chunk_of(t, chunk).n);
}

static void post(const turns *t, gt_message *m, size_t chunk, double weight) {
  const gt_allreduce *r = &t->base;
  const gt_exchange_spec *spec = &r->base.x->spec;
  m->value = (uint64_t)r->applied + 1;
  m->route = (gt_frame_route){
      .origin = (uint16_t)spec->self, .offset = first_of(t, chunk), .weight = weight};
  m->to = &spec->next[spec->self];
  m->nto = 1;
  gt_exchange_send(&r->base, m);
}

/* ---- reduce-scatter -------------------------------------------------------------------------- */

static bool takes_part(const turns *t) {
  return t->base.own == t->base.applied + 1;
}

static bool adds(const turns *t) {
  return takes_part(t) && !t->base.abstained;
}

/* Writes the sum of the received chunk and this region's part to the body of the message; returns
   the weight of the sum.  If no region has contributed yet, the sum has 0 floats. */
static double add_own_part(const turns *t, gt_message *m, gt_vec sum, size_t chunk,
                           const gt_inbox_slot *came) {
  const bool empty = !came || came->weight == 0;
  const double weight = empty ? 0 : came->weight;
  if (empty && !adds(t)) m->n = 0;
  if (!empty) gt_vec_copy(sum, came->vec);
  if (!adds(t)) return weight;
  const double own = t->base.base.x->spec.weights[t->base.base.x->spec.self];
  gt_allreduce_add_own(&t->base, sum, (float)own, first_of(t, chunk), empty);
  return weight + own;
}

/* True if the next round exists and this region knows whether it takes part in the round. */
static bool can_start(const turns *t) {
  const gt_allreduce *r = &t->base;
  const gt_inbox_slot *came = gt_inbox_front(&t->inbox, t->before);
  if (takes_part(t)) return true;
  if (!came) return false;
  return (r->over && !r->rejoins) ||
         (r->rejoins && !r->unheard && r->applied + 1 <= gt_allreduce_floor(r, true));
}

static bool start(turns *t) {
  if (t->started || !can_start(t)) return t->started;
  if (!has_room(t, chunk_of(t, t->place).n)) return false;
  gt_message m = {.of = GT_BODY_OWN};
  const gt_vec body = fill(t, &m, t->place);
  post(t, &m, t->place, add_own_part(t, &m, body, t->place, NULL));
  t->started = 1;
  if (takes_part(t)) {
    t->base.posted = t->base.own;
    t->base.samples = 0;
  }
  return true;
}

/* Computes the mean of a chunk, in the last region that adds to it. */
static void finish(turns *t, size_t chunk, const gt_inbox_slot *came) {
  gt_message m = {.of = GT_BODY_SUM};
  const gt_vec body = fill(t, &m, chunk);
  const double weight = add_own_part(t, &m, body, chunk, came);
  if (weight > 0) {
    gt_vec_scale(body, (float)(1 / weight));
    gt_vec_copy(chunk_of(t, chunk), body);
  }
  t->weight = weight;
  post(t, &m, chunk, weight);
}

static void pass_sum(const turns *t, size_t chunk, const gt_inbox_slot *came) {
  gt_message m = {.of = GT_BODY_SUM};
  const gt_vec body = fill(t, &m, chunk);
  post(t, &m, chunk, add_own_part(t, &m, body, chunk, came));
}

/* ---- all-gather ------------------------------------------------------------------------------ */

static void take_mean(turns *t, size_t chunk, const gt_inbox_slot *came, bool pass_on) {
  if (came->vec.n) gt_vec_copy(chunk_of(t, chunk), came->vec);
  if (!pass_on) return;
  gt_message m = {.of = GT_BODY_PASSED};
  gt_vec_copy(gt_exchange_fill(&t->base.base, &m, came->vec.n), came->vec);
  post(t, &m, chunk, came->weight);
}

/* Takes the next message.  False: it has not arrived, or the outbox has no room for the message to
   forward. */
static bool take(turns *t) {
  const int64_t hops = (int64_t)nregions_of(t) - 1;
  const gt_inbox_slot *came = gt_inbox_front(&t->inbox, t->before);
  const bool last = t->step == 2 * hops - 1;
  const size_t chunk = chunk_behind(t, (size_t)(t->step + 1) % nregions_of(t));
  if (!came || (!last && !has_room(t, chunk_of(t, chunk).n))) return false;
  if (t->step < hops - 1)
    pass_sum(t, chunk_behind(t, (size_t)t->step + 1), came);
  else if (t->step == hops - 1)
    finish(t, chunk_behind(t, (size_t)hops), came);
  else
    take_mean(t, chunk_behind(t, (size_t)(t->step - hops)), came, !last);
  gt_inbox_pop(&t->inbox, t->before);
  t->step++;
  return true;
}

static bool alone(turns *t) {
  gt_allreduce *r = &t->base;
  if (!takes_part(t)) return false;
  r->empty = !adds(t);
  if (!r->empty) gt_allreduce_add_own(r, r->mean, 1, 0, true);
  r->posted = r->own;
  r->share = r->empty ? 0 : 1;
  return true;
}

static bool turns_next(gt_allreduce *r) {
  turns *t = of(r);
  const size_t n = nregions_of(t);
  if (n == 1) return alone(t);
  if (!start(t)) return false;
  while (t->step < 2 * (int64_t)(n - 1))
    if (!take(t)) return false;
  t->step = t->started = 0;
  r->empty = t->weight == 0;
  r->share = adds(t) ? (float)(gt_allreduce_weight(r) / t->weight) : 0;
  return true;
}

static bool turns_receive(gt_allreduce *r, size_t from, const gt_frame_header *head, gt_vec body) {
  gt_inbox_push(&of(r)->inbox, from, (int64_t)head->value, head->route.weight, body);
  return true;
}

/* Expects the chunk that follows the pending ones.  A sum without contributions has 0 floats. */
static gt_status turns_check(const gt_allreduce *r, size_t from, const gt_frame_header *head) {
  const turns *t = (const turns *)r;
  const gt_frame_header *last = NULL;
  const int64_t hops = (int64_t)nregions_of(t) - 1,
                pending = gt_inbox_count(&t->inbox, from) + gt_exchange_held(&r->base, from, &last),
                step = (t->step + pending) % (2 * hops);
  const size_t chunk = chunk_behind(t, (size_t)(step < hops ? step + 1 : step - hops));
  const double weight = head->route.weight;
  if (from != t->before)
    return GT_FAIL(GT_ERR_FAULT, "data of a ring is of a region that is not the one before");
  const bool empty_mean = weight == 0 && step >= hops && !r->base.spec.abstains;
  if (!(weight >= 0 && weight < 2) || empty_mean)
    return GT_FAIL(GT_ERR_FAULT,
                   "data of a ring has weight %g; expected 0 to 1, and more than 0 of a mean",
                   weight);
  return gt_exchange_check_part(head, first_of(t, chunk), weight > 0 ? chunk_of(t, chunk).n : 0);
}

static bool turns_settled(const gt_allreduce *r) {
  const turns *t = (const turns *)r;
  return gt_inbox_empty(&t->inbox) && !t->started && gt_allreduce_is_last(r);
}

static int64_t turns_begun(const gt_allreduce *r) {
  return ((const turns *)r)->started ? r->applied + 1 : 0;
}

/* ---- state ----------------------------------------------------------------------------------- */

static gt_status turns_state(gt_allreduce *r, const char *prefix, gt_state_direction direction) {
  turns *t = of(r);
  const gt_state_field fields[] = {{"started", GT_TYPE_I64, &t->started, 1},
                                   {"step", GT_TYPE_I64, &t->step, 1},
                                   {"weight", GT_TYPE_F64, &t->weight, 1}},
                       mean = {"mean", GT_TYPE_F32, r->mean.data, r->mean.n};
  GT_TRY(GT_STATE_FIELDS(direction, prefix, fields));
  if (t->step < 0 || (uint64_t)t->step >= 2 * nregions_of(t))
    return GT_FAIL(GT_ERR_CKPT, "state \"%sstep\" is %lld; expected 0 to %zu", prefix,
                   (long long)t->step, 2 * nregions_of(t) - 1);
  if (t->step > 0) GT_TRY(gt_state_fields(direction, prefix, &mean, 1));
  return gt_inbox_state(&t->inbox, r->base.spec.owner, direction);
}

static const gt_allreduce_ops ring_allreduce = {
    .size = sizeof(turns),
    .open = turns_open,
    .close = turns_close,
    .next = turns_next,
    .receive = turns_receive,
    .check = turns_check,
    .again = turns_again,
    .settled = turns_settled,
    .begun = turns_begun,
    .state = turns_state,
};

/* With two chunks in flight, the second need not wait for the acknowledgement of the first. */
static size_t unit(const gt_collective *c) {
  (void)c;
  return 2;
}

/* The mean; one chunk being taken, one pending, two being sent. */
static gt_exchange_need need(const gt_exchange_spec *spec, gt_cast cast, size_t n) {
  (void)cast;
  const size_t chunk = n / spec->nregions + 1;
  return (gt_exchange_need){.kept = n + 2 * chunk, .bodies = 2 * chunk, .saved = chunk};
}

const gt_topology_ops gt_topology_ring = {
    .name = "ring",
    .need = need,
    .routed = true,
    .unit = unit,
    .allreduce = &ring_allreduce,
};
