/* mesh: every region sends to all others.  An all-reduce adds contributions in region order, so
   that every region gets the same bits. */
#include "rounds.h"

static void post_to_others(const gt_collective *c, gt_message *m) {
  m->to = c->x->others;
  m->nto = c->x->spec.nregions - 1;
  gt_exchange_send(c, m);
}

static bool room(const gt_collective *c, gt_room_use use) {
  return gt_exchange_can_post(c, use, c->x->others, c->x->spec.nregions - 1, 1, c->n);
}

/* ---- all-reduce ------------------------------------------------------------------------------ */

static gt_rounds *of(gt_allreduce *r) {
  return (gt_rounds *)r;
}

static const gt_inbox *inbox_of(const gt_allreduce *r) {
  return &((const gt_rounds *)r)->inbox;
}

static void rounds_open(gt_allreduce *r) {
  const gt_exchange_spec *spec = &r->base.x->spec;
  gt_inbox_open(&of(r)->inbox, spec->nregions, spec->with_memory ? spec->inflight + 1 : 1,
                r->base.n, spec->with_memory, r->base.spec.abstains);
}

static void rounds_close(gt_allreduce *r) {
  gt_inbox_close(&of(r)->inbox);
}

static void post_own(gt_allreduce *r) {
  gt_message m = {.value = (uint64_t)r->own, .detail = (uint64_t)r->samples};
  gt_allreduce_copy_own(r, gt_exchange_fill(&r->base, &m, r->abstained ? 0 : r->base.n));
  r->posted = r->own;
  r->samples = 0;
  post_to_others(&r->base, &m);
}

/* Expects a round after those of the region's pending contributions. */
static gt_status rounds_check(const gt_allreduce *r, size_t from, const gt_frame_header *head) {
  const gt_inbox_slot *queued = gt_inbox_back(inbox_of(r), from);
  const gt_frame_header *held = NULL;
  if (gt_exchange_held(&r->base, from, &held))
    return gt_exchange_check_after(head, (int64_t)held->value);
  return gt_exchange_check_after(head, queued ? queued->value : r->applied);
}

static bool rounds_receive(gt_allreduce *r, size_t from, const gt_frame_header *head, gt_vec body) {
  gt_inbox_push(&of(r)->inbox, from, (int64_t)head->value, 0, body);
  return true;
}

/* Adds the region's contribution to the mean. */
static void add(gt_rounds *t, size_t region, float share) {
  gt_allreduce *r = &t->base;
  const bool first = r->empty;
  r->empty = false;
  if (region != r->base.x->spec.self) {
    gt_allreduce_add(r->mean, share, gt_inbox_front(&t->inbox, region)->vec, first);
    return;
  }
  r->share = share;
  if (r->base.coder)
    gt_allreduce_add(r->mean, share, gt_coder_sent(r->base.coder), first);
  else
    gt_allreduce_add_own(r, r->mean, share, 0, first);
}

/* Computes the mean.  Weights are divided by the sum of the weights of the regions that take part
   and do not abstain. */
static bool form(gt_allreduce *r) {
  const gt_exchange_spec *spec = &r->base.x->spec;
  gt_rounds *t = of(r);
  if (!gt_rounds_complete(t)) return false;
  const double total = gt_rounds_weight(t);
  r->empty = true;
  r->share = 0;
  for (size_t i = 0; i < spec->nregions; i++) {
    if (!gt_rounds_takes(t, i)) continue;
    if (!gt_rounds_abstains(t, i)) add(t, i, (float)(spec->weights[i] / total));
    if (i != spec->self) gt_inbox_pop(&t->inbox, i);
  }
  return true;
}

static bool rounds_next(gt_allreduce *r) {
  if (r->base.x->spec.nregions == 1) r->posted = r->own;
  if (r->own > r->posted && room(&r->base, GT_ROOM_ANY)) post_own(r);
  return form(r);
}

static bool rounds_settled(const gt_allreduce *r) {
  return gt_inbox_empty(inbox_of(r));
}

static gt_status rounds_state(gt_allreduce *r, const char *prefix, gt_state_direction direction) {
  (void)prefix;
  return gt_inbox_state(&of(r)->inbox, r->base.spec.owner, direction);
}

static const gt_allreduce_ops mesh_allreduce = {
    .size = sizeof(gt_rounds),
    .open = rounds_open,
    .close = rounds_close,
    .next = rounds_next,
    .receive = rounds_receive,
    .check = rounds_check,
    .again = gt_rounds_again,
    .settled = rounds_settled,
    .state = rounds_state,
};

/* ---- broadcast ------------------------------------------------------------------------------- */

static bool broadcast_room(const gt_broadcast *b) {
  return room(&b->base, b->replace ? GT_ROOM_REPLACING : GT_ROOM_ANY);
}

static void broadcast_post(gt_broadcast *b, gt_message *m) {
  m->replace = b->replace;
  post_to_others(&b->base, m);
}

static bool broadcast_receive(gt_broadcast *b, size_t from, const gt_frame_header *head,
                              gt_vec body) {
  (void)head;
  b->base.spec.received(b->base.spec.ctx, from, body);
  return true;
}

static const gt_broadcast_ops mesh_broadcast = {
    .size = sizeof(gt_broadcast),
    .room = broadcast_room,
    .post = broadcast_post,
    .receive = broadcast_receive,
};

/* The contributions of all other regions can be pending, and those of all but one to the next
   round.  A checkpoint has this region's contribution and, if the last one is missing, the
   others. */
static gt_exchange_need need(const gt_exchange_spec *spec, gt_cast cast, size_t n) {
  const size_t others = spec->nregions - 1, waiting = others > 0 ? 2 * others - 1 : 0;
  return (gt_exchange_need){.kept = cast == GT_CAST_ROUNDS ? (1 + waiting) * n : 0,
                            .bodies = (spec->inflight + GT_OUTBOX_SPARE) * n,
                            .saved = cast == GT_CAST_ROUNDS ? others * n : n};
}

const gt_topology_ops gt_topology_mesh = {
    .name = "mesh",
    .need = need,
    .allreduce = &mesh_allreduce,
    .broadcast = &mesh_broadcast,
};
