/* mesh: every region sends to every other.  An all-reduce adds in region order, so that every
   region gets the same bits.  Who takes part in a round is seen from what arrives: a region whose
   next message is of a later round, or that is done and has none, does not.  A region that is done
   follows: it applies what the others' rounds give.  One whose training was made longer takes part
   again from the round after the newest that anyone had applied when all resumed. */
#include "inbox.h"
#include "internal.h"

static void post_to_others(const gt_exchange *x, gt_payload *payload, const gt_frame_header *head,
                           bool replace) {
  const gt_exchange_message message = {.payload = payload,
                                       .n = payload->vec.n,
                                       .head = *head,
                                       .to = x->others,
                                       .nto = x->spec.nregions - 1,
                                       .replace = replace};
  x->spec.host.post(x->spec.host.ctx, &message);
}

static bool room(gt_exchange *x) {
  return gt_exchange_room_at(x, x->others, x->spec.nregions - 1, 1);
}

/* ---- all-reduce ------------------------------------------------------------------------------ */

typedef struct {
  gt_allreduce base;
  gt_inbox inbox; /* contributions that wait for others' */
  /* of the first so many regions it is known whether they take part in the next round */
  size_t clear;
} rounds;

static rounds *of(gt_allreduce *r) {
  return (rounds *)r;
}

static const gt_inbox *inbox_of(const gt_allreduce *r) {
  return &((const rounds *)r)->inbox;
}

static void rounds_open(gt_allreduce *r) {
  const gt_exchange_spec *spec = &r->base.x->spec;
  gt_inbox_open(&of(r)->inbox, spec->nregions, spec->with_memory ? spec->inflight + 1 : 1,
                r->base.n, spec->with_memory, false);
}

static void rounds_close(gt_allreduce *r) {
  gt_inbox_close(&of(r)->inbox);
}

static void post_own(gt_allreduce *r) {
  const gt_exchange *x = r->base.x;
  gt_payload *payload = gt_exchange_body(x, r->base.n);
  const gt_frame_header head = gt_collective_head(&r->base, (uint64_t)r->own, (uint64_t)r->samples);
  gt_vec_copy(gt_vec_range(payload->vec, 0, r->a.n), r->a);
  if (r->b.n) gt_vec_copy(gt_vec_range(payload->vec, r->a.n, r->b.n), r->b);
  r->posted = r->own;
  r->samples = 0;
  post_to_others(x, payload, &head, false);
}

static bool rounds_receive(gt_allreduce *r, size_t from, const gt_frame_header *head, gt_vec body) {
  gt_inbox_push(&of(r)->inbox, from, (int64_t)head->value, 0, body);
  return true;
}

static void rounds_again(gt_allreduce *r) {
  of(r)->clear = 0;
}

typedef enum { OUT, IN, AWAITED } part;

/* Whether the region takes part in the round that is next. */
static part takes_part(const gt_allreduce *r, size_t region, int64_t round) {
  if (region == r->base.x->spec.self) {
    if (round <= r->own) return r->posted >= round ? IN : AWAITED;
    return (r->over && !r->rejoins) || round <= r->floor ? OUT : AWAITED;
  }
  const gt_inbox_slot *slot = gt_inbox_front(inbox_of(r), region);
  /* After a resume, all earlier messages are here, and later ones are of rounds after the floor. */
  if (!slot) return r->base.x->done[region] || round <= r->floor ? OUT : AWAITED;
  if (slot->value < round)
    gt_bug("region %zu's oldest message is of round %lld; round %lld is next", region,
           (long long)slot->value, (long long)round);
  return slot->value == round ? IN : OUT;
}

/* The contribution of every region that takes part in the next round is here, and there is at least
   one.  What is known of a region stays so until the round is applied, but for peers' joining: a
   thousand messages look at a thousand regions once, not each. */
static bool is_complete(gt_allreduce *r, int64_t round) {
  const size_t n = r->base.x->spec.nregions;
  size_t *clear = &of(r)->clear;
  if (r->unheard) return false;
  while (*clear < n && takes_part(r, *clear, round) != AWAITED) ++*clear;
  if (*clear < n) return false;
  for (size_t i = 0; i < n; i++)
    if (takes_part(r, i, round) == IN) return true;
  return false;
}

/* Weights are renormalised over the regions that take part. */
static bool form(gt_allreduce *r) {
  const gt_exchange_spec *spec = &r->base.x->spec;
  const int64_t round = r->applied + 1;
  if (!is_complete(r, round)) return false;
  double total = 0;
  for (size_t i = 0; i < spec->nregions; i++)
    if (takes_part(r, i, round) == IN) total += spec->weights[i];
  bool first = true;
  r->share = 0;
  for (size_t i = 0; i < spec->nregions; i++) {
    if (takes_part(r, i, round) != IN) continue;
    float share = (float)(spec->weights[i] / total);
    if (i == spec->self) {
      r->share = share;
      gt_allreduce_add_own(r, r->mean, share, 0, first);
    } else {
      gt_allreduce_add(r->mean, share, gt_inbox_front(&of(r)->inbox, i)->vec, first);
      gt_inbox_pop(&of(r)->inbox, i);
    }
    first = false;
  }
  return true;
}

static bool rounds_next(gt_allreduce *r) {
  if (r->base.x->spec.nregions == 1) r->posted = r->own;
  if (r->own > r->posted && room(r->base.x)) post_own(r);
  return form(r);
}

static bool rounds_settled(const gt_allreduce *r) {
  return gt_inbox_empty(inbox_of(r));
}

static void rounds_save(gt_allreduce *r, const char *prefix, gt_state *state) {
  (void)prefix;
  gt_inbox_save(&of(r)->inbox, r->base.spec.owner, state);
}

static gt_status rounds_load(gt_allreduce *r, const char *prefix, const gt_state *state) {
  (void)prefix;
  return gt_inbox_load(&of(r)->inbox, r->base.spec.owner, state);
}

static const gt_allreduce_ops mesh_allreduce = {
    .size = sizeof(rounds),
    .open = rounds_open,
    .close = rounds_close,
    .next = rounds_next,
    .receive = rounds_receive,
    .again = rounds_again,
    .settled = rounds_settled,
    .save = rounds_save,
    .load = rounds_load,
};

/* ---- broadcast ------------------------------------------------------------------------------- */

/* What is replaced needs no room, only the bytes. */
static bool broadcast_room(const gt_broadcast *b) {
  const gt_exchange_host *host = &b->base.x->spec.host;
  return b->replace ? !host->afford || host->afford(host->ctx) : room(b->base.x);
}

static void broadcast_post(gt_broadcast *b, gt_payload *payload, const gt_frame_header *head) {
  post_to_others(b->base.x, payload, head, b->replace);
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

const gt_topology_ops gt_topology_mesh = {
    .name = "mesh",
    .allreduce = &mesh_allreduce,
    .broadcast = &mesh_broadcast,
};
