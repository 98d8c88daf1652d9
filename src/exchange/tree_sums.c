/* All-reduce over a hub or a tree.  Sums travel piece by piece to the root, and means travel back.
   A region adds up and forwards each piece as soon as it has arrived from all its children.  It
   adds the sums of its children and its own contribution, the terms, in region order; so a hub
   gives the same bits as a mesh.  A sum is sent as the weighted mean of its regions, together with
   their weight.  With a quorum (only over a hub) the root begins a round without the regions whose
   contributions are late; its mean tells every region which contributions it contains. */
#include "inbox.h"
#include "tree.h"

#define NO_MORE    INT64_MAX /* the term will not contribute to any round */
#define LATE_DECAY 0.25 /* a contribution that is s rounds late has the weight w / (1 + s / 4) */

typedef struct {
  gt_allreduce base;
  gt_inbox inbox; /* sums of children that wait for other terms */
  int64_t *taken; /* nterms: last round in which the term took part */
  int64_t adding; /* the round that this region is adding up; 0: none */
  int64_t begun;  /* the newest round that this region has begun to add up */
  int64_t added;  /* number of pieces of that round that have been added up */
  bool *takes;    /* nterms: the term takes part in that round */
  double total;   /* weight of the terms that take part */
  /* Terms 0 to clear - 1 need not be examined again.  Between rounds: it is known whether they take
     part in the next round.  Within a round: their next piece has arrived. */
  size_t clear;
  int64_t got;   /* number of pieces of the next mean in `mean` */
  double weight; /* of all regions that take part in that mean's round */
} sums;

static sums *of(gt_allreduce *r) {
  return (sums *)r;
}

static const gt_exchange_spec *spec_of(const sums *t) {
  return &t->base.base.x->spec;
}

static const gt_tree *tree_of(const sums *t) {
  return &t->base.base.x->tree;
}

static bool is_root(const sums *t) {
  return tree_of(t)->parent == spec_of(t)->self;
}

static bool has_quorum(const sums *t) {
  return t->base.base.spec.quorum > 0;
}

static void sums_open(gt_allreduce *r) {
  sums *t = of(r);
  const gt_exchange_spec *spec = spec_of(t);
  const size_t nterms = tree_of(t)->nterms;
  gt_inbox_open(&t->inbox, spec->nregions, 1, r->base.piece, spec->with_memory, true);
  t->taken = GT_NEW_ARRAY(int64_t, nterms);
  for (size_t i = 0; i < nterms; i++) t->taken[i] = has_quorum(t) ? 0 : r->target;
  t->takes = GT_NEW_ARRAY(bool, nterms);
}

static void sums_close(gt_allreduce *r) {
  gt_free(of(r)->taken);
  gt_free(of(r)->takes);
  gt_inbox_close(&of(r)->inbox);
}

static void sums_again(gt_allreduce *r) {
  if (of(r)->adding == 0) of(r)->clear = 0;
}

/* ---- up: membership of a round --------------------------------------------------------------- */

/* Returns the round of this region's next contribution; 0: not known yet. */
static int64_t own_next(const sums *t) {
  const gt_allreduce *r = &t->base;
  if (r->own > r->posted) return r->own;
  return r->over && !r->rejoins ? NO_MORE : 0;
}

/* True if the region of the term is done, and all its contributions have been taken. */
static bool is_region_over(const sums *t, size_t term, size_t region) {
  const gt_allreduce *r = &t->base;
  const int64_t taken = has_quorum(t) ? gt_allreduce_applied(r, region) : t->taken[term];
  return r->base.x->done[region] && r->base.count[region] <= taken;
}

/* True if all regions of the term are done, and all their contributions have been taken. */
static bool is_over(const sums *t, size_t term) {
  const gt_exchange *x = t->base.base.x;
  for (size_t i = x->tree.begin[term]; i < x->tree.begin[term + 1]; i++) {
    const size_t region = x->tree.members[i];
    if (!is_region_over(t, term, region)) return false;
  }
  return true;
}

/* Returns the round of the term's next contribution; 0: not known yet.  With a quorum it is not
   known before all pieces have arrived, and a late one is of the next round. */
static int64_t next_of(const sums *t, size_t term) {
  const size_t region = tree_of(t)->terms[term];
  if (region == spec_of(t)->self) return own_next(t);
  const gt_inbox_slot *slot = gt_inbox_front(&t->inbox, region);
  if (!slot) return is_over(t, term) ? NO_MORE : 0;
  if (!has_quorum(t)) return slot->value;
  if (gt_inbox_count(&t->inbox, region) < (int64_t)t->base.base.npieces) return 0;
  return slot->value > t->base.applied ? slot->value : t->base.applied + 1;
}

/* True if all active regions of the term were done before a resume and now make steps again.  Such
   regions take part only after the newest round that any region had begun. */
static bool only_later(const sums *t, size_t term) {
  const gt_exchange *x = t->base.base.x;
  if (t->base.unheard) return false;
  if (tree_of(t)->terms[term] == x->spec.self) return t->base.rejoins;
  for (size_t i = x->tree.begin[term]; i < x->tree.begin[term + 1]; i++) {
    const size_t region = x->tree.members[i];
    if (!x->late[region] && !is_region_over(t, term, region)) return false;
  }
  return true;
}

/* Returns the weight of a contribution that was begun for round `from` in the round `round`. */
static double late_weight(double weight, int64_t round, int64_t from) {
  return weight / (1 + LATE_DECAY * (double)(round - from));
}

/* Returns the weight of the term's contribution in the round that is being added up. */
static double weight_of(const sums *t, size_t term) {
  const size_t region = tree_of(t)->terms[term];
  const bool own = region == spec_of(t)->self;
  const gt_inbox_slot *slot = own ? NULL : gt_inbox_front(&t->inbox, region);
  const double weight = own ? gt_allreduce_weight(&t->base) : slot->weight;
  if (!has_quorum(t) || !is_root(t)) return weight;
  return late_weight(weight, t->adding, own ? t->base.quorum.from : slot->value);
}

/* True if a round need not wait for the terms whose contributions have not arrived: it has a
   quorum, and its grace is over. */
static bool is_enough(sums *t) {
  const gt_tree *tree = tree_of(t);
  gt_allreduce *r = &t->base;
  const gt_ns now = gt_outbox_now(spec_of(t)->outbox);
  double here = 0, all = 0;
  if (!has_quorum(t) || !is_root(t)) return false;
  for (size_t i = 0; i < tree->nterms; i++) {
    const int64_t next = next_of(t, i);
    const double weight = next == NO_MORE ? 0 : spec_of(t)->weights[tree->terms[i]];
    all += weight;
    if (next != 0) here += weight;
  }
  if (here == 0 || here < r->base.spec.quorum * all) return false;
  if (r->quorum.grace == GT_NEVER) r->quorum.grace = now + r->base.spec.grace;
  return now >= r->quorum.grace;
}

/* Opens the next round.  False: it is not known yet which terms take part. */
static bool open_round(sums *t) {
  const size_t nterms = tree_of(t)->nterms;
  while (t->clear < nterms && (next_of(t, t->clear) != 0 || only_later(t, t->clear))) t->clear++;
  if (t->clear < nterms && !is_enough(t)) return false;
  int64_t round = NO_MORE;
  bool later = false;
  for (size_t i = 0; i < nterms; i++) {
    const int64_t next = next_of(t, i);
    later |= next == 0 && only_later(t, i);
    if (next != 0 && next < round) round = next;
  }
  if (round == NO_MORE || (later && round > gt_allreduce_floor(&t->base, true))) return false;
  t->adding = t->begun = round;
  t->added = 0;
  t->clear = 0;
  t->total = 0;
  t->base.quorum.grace = GT_NEVER;
  for (size_t i = 0; i < nterms; i++) {
    t->takes[i] = next_of(t, i) == round;
    if (t->takes[i]) t->total += weight_of(t, i);
  }
  return true;
}

/* ---- up: pieces ------------------------------------------------------------------------------ */

/* True if the next piece of every term that takes part has arrived. */
static bool piece_is_here(sums *t) {
  const gt_tree *tree = tree_of(t);
  while (t->clear < tree->nterms) {
    const size_t region = tree->terms[t->clear];
    if (t->takes[t->clear] && region != spec_of(t)->self && !gt_inbox_front(&t->inbox, region))
      return false;
    t->clear++;
  }
  return true;
}

static size_t first_of(const sums *t, int64_t piece) {
  return t->base.base.starts[piece];
}

static gt_vec piece_of(const sums *t, int64_t piece) {
  const size_t first = first_of(t, piece);
  return gt_vec_range(t->base.mean, first, first_of(t, piece + 1) - first);
}

/* All regions of the term abstain. */
static bool is_empty(const sums *t, size_t term) {
  return t->base.base.spec.abstains && weight_of(t, term) == 0;
}

static void add_up(sums *t, gt_vec sum) {
  const gt_tree *tree = tree_of(t);
  bool first = true;
  for (size_t i = 0; i < tree->nterms; i++) {
    if (!t->takes[i]) continue;
    const size_t region = tree->terms[i];
    const bool own = region == spec_of(t)->self, empty = is_empty(t, i);
    const float share = empty ? 0 : (float)(weight_of(t, i) / t->total);
    if (own && !empty) gt_allreduce_add_own(&t->base, sum, share, first_of(t, t->added), first);
    if (!own && !empty) gt_allreduce_add(sum, share, gt_inbox_front(&t->inbox, region)->vec, first);
    if (!own) gt_inbox_pop(&t->inbox, region);
    first = first && empty;
  }
}

static gt_message message_of(const sums *t, gt_body of, int64_t round, int64_t piece,
                             double weight) {
  return (gt_message){.of = of,
                      .value = (uint64_t)round,
                      .route = {.origin = (uint16_t)spec_of(t)->self,
                                .offset = first_of(t, piece),
                                .weight = weight}};
}

/* Sends a piece of the mean to the children. */
static void send_down(const sums *t, gt_body of, gt_vec piece, int64_t round, int64_t number,
                      double weight) {
  const gt_tree *tree = tree_of(t);
  gt_message m = message_of(t, of, round, number, weight);
  m.detail = t->base.quorum.mask;
  m.to = tree->children;
  m.nto = tree->nchildren;
  if (tree->nchildren == 0) return;
  const gt_vec body = gt_exchange_fill(&t->base.base, &m, piece.n);
  if (piece.n) gt_vec_copy(body, piece);
  gt_exchange_send(&t->base.base, &m);
}

static bool can_send_down(const sums *t, size_t floats) {
  return gt_exchange_can_post(&t->base.base, GT_ROOM_ANY, tree_of(t)->children,
                              tree_of(t)->nchildren, 1, floats);
}

static void end_round(sums *t) {
  gt_allreduce *r = &t->base;
  for (size_t i = 0; i < tree_of(t)->nterms; i++) {
    if (!t->takes[i]) continue;
    t->taken[i] = t->adding;
    if (tree_of(t)->terms[i] != spec_of(t)->self) continue;
    r->posted = r->own;
    r->samples = 0;
  }
  t->adding = 0;
}

/* Returns the regions that take part in the round that is being added up, as bits; 0: there is no
   quorum. */
static uint64_t mask_of(const sums *t) {
  uint64_t mask = 0;
  for (size_t i = 0; has_quorum(t) && i < tree_of(t)->nterms; i++)
    if (t->takes[i]) mask |= UINT64_C(1) << tree_of(t)->terms[i];
  return mask;
}

/* Adds up the next piece and sends the sum.  False: a term's piece has not arrived, or the outbox
   has no room. */
static bool add_piece(sums *t) {
  const gt_tree *tree = tree_of(t);
  if (!piece_is_here(t)) return false;
  const gt_vec piece = piece_of(t, t->added), mean = t->total > 0 ? piece : gt_vec_of(NULL, 0);
  if (is_root(t)) {
    if (!can_send_down(t, piece.n)) return false;
    t->base.quorum.mask = mask_of(t);
    add_up(t, mean);
    send_down(t, GT_BODY_SUM, mean, t->adding, t->added, t->total);
    if (t->base.base.coder && mean.n)
      gt_vec_copy(mean,
                  gt_vec_range(gt_coder_sent(t->base.base.coder), first_of(t, t->added), mean.n));
    t->weight = t->total;
    t->got++;
  } else {
    if (!gt_exchange_can_post(&t->base.base, GT_ROOM_ANY, &tree->parent, 1, 1, piece.n))
      return false;
    const int64_t value = has_quorum(t) ? t->base.quorum.from : t->adding;
    gt_message m = message_of(t, GT_BODY_SUM, value, t->added, t->total);
    m.to = &tree->parent;
    m.nto = 1;
    add_up(t, gt_exchange_fill(&t->base.base, &m, mean.n));
    gt_exchange_send(&t->base.base, &m);
  }
  t->clear = 0;
  if (++t->added == (int64_t)t->base.base.npieces) end_round(t);
  return true;
}

/* ---- down ------------------------------------------------------------------------------------ */

/* Takes a piece of the mean from the parent and forwards it.  False: the outbox to a child has no
   room. */
static bool take_mean(sums *t, const gt_frame_header *head, gt_vec body) {
  if (t->got == (int64_t)t->base.base.npieces || !can_send_down(t, body.n)) return false;
  t->base.quorum.mask = head->detail;
  send_down(t, GT_BODY_PASSED, body, (int64_t)head->value, t->got, head->route.weight);
  if (body.n) gt_vec_copy(piece_of(t, t->got), body);
  t->weight = head->route.weight;
  t->got++;
  return true;
}

/* Checks the round of a child's piece, which follows the newest pending one, `queued` or `held`.
   The pieces of a contribution are of one round, and with a quorum of the next round at most. */
static gt_status check_round(const sums *t, size_t term, const gt_frame_header *head, int64_t piece,
                             const gt_inbox_slot *queued, const gt_frame_header *held) {
  const gt_allreduce *r = &t->base;
  const int64_t round = (int64_t)head->value,
                newest = r->applied > r->target ? r->applied : r->target;
  const bool begun = t->adding && t->takes[term] && !has_quorum(t); /* a late one is not of it */
  const int64_t last = held     ? (int64_t)held->value
                       : queued ? queued->value
                       : begun  ? t->adding
                                : t->taken[term];
  if (has_quorum(t) && round > newest + 1)
    return GT_FAIL(GT_ERR_FAULT, "data is of round %lld; expected %lld at most", (long long)round,
                   (long long)newest + 1);
  if (piece == 0 || !(held || queued || begun)) return gt_exchange_check_after(head, last);
  if (round == last) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "data is of round %lld; expected %lld, as the pieces before it",
                 (long long)round, (long long)last);
}

/* Expects, from a child, the piece that follows its pending ones.  Expects, from the parent, the
   piece of the mean that follows the received ones; the next mean can begin before the last one is
   applied. */
static gt_status sums_check(const gt_allreduce *r, size_t from, const gt_frame_header *head) {
  const sums *t = (const sums *)r;
  const gt_tree *tree = tree_of(t);
  size_t term = 0;
  while (term < tree->nterms && tree->terms[term] != from) term++;
  const bool above = from == tree->parent;
  if (!above && term == tree->nterms)
    return GT_FAIL(GT_ERR_FAULT, "data of a sum is of a region that is no neighbour");
  const double weight = head->route.weight;
  if (!(weight > 0 && weight < 2) && !(weight == 0 && r->base.spec.abstains))
    return GT_FAIL(GT_ERR_FAULT, "data of a sum has weight %g; expected above 0, and 1 at most",
                   weight);
  const gt_frame_header *held = NULL;
  int64_t piece = gt_exchange_held(&r->base, from, &held);
  if (above)
    piece += t->got;
  else
    piece += gt_inbox_count(&t->inbox, from) + (t->adding && t->takes[term] ? t->added : 0);
  piece %= (int64_t)t->base.base.npieces;
  if (!above)
    GT_TRY(check_round(t, term, head, piece, gt_inbox_back(&t->inbox, from), held));
  else if (has_quorum(t))
    GT_TRY(gt_exchange_check_after(head, r->applied));
  const gt_vec expected = piece_of(t, piece);
  return gt_exchange_check_part(head, first_of(t, piece), weight > 0 ? expected.n : 0);
}

static bool sums_receive(gt_allreduce *r, size_t from, const gt_frame_header *head, gt_vec body) {
  if (from == tree_of(of(r))->parent) return take_mean(of(r), head, body);
  gt_inbox_push(&of(r)->inbox, from, (int64_t)head->value, head->route.weight, body);
  return true;
}

/* The mean does not contain this region's contribution, which becomes one of the next round. */
static void become_late(sums *t) {
  gt_allreduce *r = &t->base;
  const bool is_posted = r->posted == r->own;
  if (t->adding == r->own) t->adding++;
  r->own++;
  r->posted = is_posted ? r->own : r->own - 1;
}

/* Counts the contributions of the next mean; returns the weight of this region's. */
static double count_included(sums *t) {
  gt_allreduce *r = &t->base;
  const size_t self = spec_of(t)->self, *regions = spec_of(t)->regions;
  const uint64_t mask = r->quorum.mask;
  const int64_t round = r->applied + 1;
  for (size_t i = 0; i < spec_of(t)->nregions; i++)
    r->quorum.included[regions ? regions[i] : i] += (int64_t)(mask >> i & 1);
  if (mask >> self & 1) {
    r->quorum.missed = 0;
    return late_weight(gt_allreduce_weight(r), round, r->quorum.from);
  }
  r->quorum.missed++;
  if (r->own == round)
    become_late(t);
  else
    r->own = r->posted = round;
  return 0;
}

static double own_weight(sums *t) {
  if (has_quorum(t)) return count_included(t);
  return t->base.own == t->base.applied + 1 ? gt_allreduce_weight(&t->base) : 0;
}

static bool sums_next(gt_allreduce *r) {
  sums *t = of(r);
  while (t->got < (int64_t)t->base.base.npieces)
    if ((t->adding == 0 && !open_round(t)) || !add_piece(t)) break;
  if (t->got < (int64_t)t->base.base.npieces) return false;
  t->got = 0;
  r->empty = t->weight == 0;
  const double weight = own_weight(t);
  r->share = r->empty ? 0 : (float)(weight / t->weight);
  return true;
}

static bool sums_settled(const gt_allreduce *r) {
  const sums *t = (const sums *)r;
  return gt_inbox_empty(&t->inbox) && t->got == 0 && t->adding == 0 && gt_allreduce_is_last(r);
}

static int64_t sums_begun(const gt_allreduce *r) {
  return ((const sums *)r)->begun;
}

/* ---- state ----------------------------------------------------------------------------------- */

static gt_status sums_state(gt_allreduce *r, const char *prefix, gt_state_direction direction) {
  sums *t = of(r);
  const gt_state_field taken = {"taken", GT_TYPE_I64, t->taken, tree_of(t)->nterms},
                       mean = {"mean", GT_TYPE_F32, r->mean.data, r->mean.n},
                       fields[] = {{"adding", GT_TYPE_I64, &t->adding, 1},
                                   {"begun", GT_TYPE_I64, &t->begun, 1},
                                   {"added", GT_TYPE_I64, &t->added, 1},
                                   {"got", GT_TYPE_I64, &t->got, 1},
                                   {"total", GT_TYPE_F64, &t->total, 1},
                                   {"weight", GT_TYPE_F64, &t->weight, 1}};
  GT_TRY(gt_state_fields(direction, prefix, &taken, 1));
  GT_TRY(gt_state_flags(direction, prefix, "takes", t->takes, tree_of(t)->nterms));
  GT_TRY(GT_STATE_FIELDS(direction, prefix, fields));
  if (t->got < 0 || t->added < 0 || (uint64_t)t->got >= t->base.base.npieces + has_quorum(t) ||
      (uint64_t)t->added >= t->base.base.npieces + (t->adding == 0))
    return GT_FAIL(GT_ERR_CKPT, "state \"%s\" has %lld and %lld pieces; expected fewer than %zu",
                   prefix, (long long)t->got, (long long)t->added, t->base.base.npieces);
  if (t->got > 0) GT_TRY(gt_state_fields(direction, prefix, &mean, 1));
  if (direction.from) t->clear = 0;
  return gt_inbox_state(&t->inbox, r->base.spec.owner, direction);
}

const gt_allreduce_ops gt_tree_allreduce = {
    .size = sizeof(sums),
    .open = sums_open,
    .close = sums_close,
    .next = sums_next,
    .receive = sums_receive,
    .check = sums_check,
    .again = sums_again,
    .settled = sums_settled,
    .begun = sums_begun,
    .state = sums_state,
};
