/* Broadcast over a hub or a tree: a region forwards each message to its other neighbors.
   Updates are forwarded piece by piece, as soon as the outboxes to all other neighbors have room,
   and are acknowledged only then; so the outbox of their origin bounds the messages in flight.  The
   region's own updates have a separate outbox (GT_ROOM_OWN) and alternate with forwarded ones:
   after an own update, the next one waits until an update of each region with pending updates has
   been forwarded.
   Models are forwarded whole, to each neighbor at its own pace.  A newer model replaces one whose
   sending has not begun. */
#include "tree.h"

#include <stdio.h>

#define ORIGIN_NUMBERS 3 /* got, value, samples: consecutive members */

/* Messages of one region: the one whose pieces are arriving, and the last whole one. */
typedef struct {
  int64_t got;     /* number of received pieces of `next` */
  int64_t value;   /* of the last whole message */
  int64_t samples; /* of the last whole message */
  /* the received pieces; the last whole message (only models) */
  gt_vec next, last;
  bool waits;  /* its next piece waits for room */
  bool passed; /* an update of it has been forwarded since this region's own last update */
} origin;

typedef struct {
  gt_broadcast base;
  origin *origins; /* nregions */
  size_t *to;      /* nneighbours, scratch */
  /* nneighbours x nregions: the region's last model is still to be sent to the neighbor */
  bool *due;
  size_t *ndue;  /* nneighbours: number of models due at the neighbor */
  size_t *turn;  /* nneighbours: the first region to consider for the next model */
  float **spare; /* nspare unused bodies, at most nregions */
  size_t nspare;
} casts;

static casts *of(gt_broadcast *b) {
  return (casts *)b;
}

static gt_exchange *x_of(const casts *c) {
  return c->base.base.x;
}

/* Returns the floats of one of as many equal pieces of a message, rounded up. */
static size_t each_of(const casts *c) {
  return (c->base.base.n + c->base.base.npieces - 1) / c->base.base.npieces;
}

static size_t floats_of(const casts *c, size_t piece) {
  return c->base.base.starts[piece + 1] - c->base.base.starts[piece];
}

/* Gives the vector memory, except in a simulation. */
static void give_body(casts *c, gt_vec *v) {
  v->n = c->base.base.n;
  if (v->data || !x_of(c)->spec.with_memory) return;
  v->data = c->nspare ? c->spare[--c->nspare] : GT_NEW_ARRAY(float, v->n);
}

static void take_body(casts *c, gt_vec *v) {
  if (v->data) c->spare[c->nspare++] = v->data;
  v->data = NULL;
}

static void casts_open(gt_broadcast *b) {
  casts *c = of(b);
  const gt_exchange *x = x_of(c);
  const size_t n = x->spec.nregions, nneighbours = x->tree.nneighbours;
  c->origins = GT_NEW_ARRAY(origin, n);
  c->spare = GT_NEW_ARRAY(float *, n);
  c->to = GT_NEW_ARRAY(size_t, nneighbours + 1);
  c->turn = GT_NEW_ARRAY(size_t, nneighbours + 1);
  c->ndue = GT_NEW_ARRAY(size_t, nneighbours + 1);
  if (b->replace) c->due = GT_NEW_ARRAY(bool, nneighbours *n + 1);
}

static void casts_close(gt_broadcast *b) {
  casts *c = of(b);
  for (size_t r = 0; r < x_of(c)->spec.nregions; r++) {
    gt_free(c->origins[r].next.data);
    gt_free(c->origins[r].last.data);
  }
  while (c->nspare) gt_free(c->spare[--c->nspare]);
  gt_free(c->spare);
  gt_free(c->origins);
  gt_free(c->to);
  gt_free(c->turn);
  gt_free(c->ndue);
  gt_free(c->due);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Posts all pieces of a message that has the whole body. */
static void post_whole(const casts *c, size_t region, gt_message *m) {
  gt_payload *body = m->payload; /* NULL: each piece is encoded into one of its own */
  if (body) body->refs++;        /* keeps it from being reused between two pieces */
  for (size_t k = 0; k < c->base.base.npieces; k++) {
    m->first = c->base.base.starts[k];
    m->n = floats_of(c, k);
    m->route = (gt_frame_route){.origin = (uint16_t)region, .offset = m->first};
    gt_exchange_send(&c->base.base, m);
  }
  if (body) body->refs--;
}

/* Writes all neighbors except one to c->to; returns their number. */
static size_t all_but(const casts *c, size_t neighbour) {
  const gt_tree *tree = &x_of(c)->tree;
  size_t n = 0;
  for (size_t i = 0; i < tree->nneighbours; i++)
    if (tree->neighbours[i] != neighbour) c->to[n++] = tree->neighbours[i];
  return n;
}

/* Makes the region's last model due at all neighbors except `but`. */
static void make_due(casts *c, size_t region, uint64_t value, uint64_t samples, size_t but) {
  const gt_exchange *x = x_of(c);
  c->origins[region].value = (int64_t)value;
  c->origins[region].samples = (int64_t)samples;
  for (size_t i = 0; i < x->tree.nneighbours; i++) {
    bool *due = &c->due[i * x->spec.nregions + region];
    if (x->tree.neighbours[i] == but || *due) continue;
    *due = true;
    c->ndue[i]++;
  }
}

/* Returns the region whose model is sent next to neighbor i, in turn. */
static size_t next_due(const casts *c, size_t i) {
  const size_t n = x_of(c)->spec.nregions;
  size_t region = c->turn[i] % n;
  while (!c->due[i * n + region]) region = (region + 1) % n;
  return region;
}

/* Sends neighbor i the next model that is due.  False: none is due, or the outbox has no room. */
static bool send_due(casts *c, size_t i) {
  gt_exchange *x = x_of(c);
  if (c->ndue[i] == 0 || !gt_exchange_can_post(&c->base.base, GT_ROOM_ANY, &x->tree.neighbours[i],
                                               1, c->base.base.npieces, each_of(c)))
    return false;
  const size_t region = next_due(c, i);
  const origin *o = &c->origins[region];
  gt_message m = {.of = region == x->spec.self ? GT_BODY_OWN : GT_BODY_PASSED,
                  .value = (uint64_t)o->value,
                  .detail = (uint64_t)o->samples,
                  .to = &x->tree.neighbours[i],
                  .nto = 1};
  gt_vec_copy(gt_exchange_fill(&c->base.base, &m, c->base.base.n), o->last);
  c->due[i * x->spec.nregions + region] = false;
  c->ndue[i]--;
  c->turn[i] = region + 1;
  post_whole(c, region, &m);
  return true;
}

static void casts_progress(gt_broadcast *b, size_t region) {
  casts *c = of(b);
  const gt_tree *tree = &x_of(c)->tree;
  const bool all = region == x_of(c)->spec.nregions;
  for (size_t i = 0; c->due && i < tree->nneighbours; i++)
    while ((all || tree->neighbours[i] == region) && send_due(c, i)) continue;
}

static bool casts_room(const gt_broadcast *b) {
  const casts *c = (const casts *)b;
  gt_exchange *x = x_of(c);
  for (size_t r = 0; !b->replace && r < x->spec.nregions; r++)
    if (c->origins[r].waits && !c->origins[r].passed) return false;
  return gt_exchange_can_post(&b->base, b->replace ? GT_ROOM_REPLACING : GT_ROOM_OWN,
                              x->tree.neighbours, x->tree.nneighbours, c->base.base.npieces,
                              each_of(c));
}

/* Returns the vector of this region's model; a model in it that has not been sent yet is
   overwritten. */
static gt_vec casts_begin(gt_broadcast *b) {
  casts *c = of(b);
  gt_vec *own = &c->origins[x_of(c)->spec.self].last;
  if (!b->replace) return gt_vec_of(NULL, 0);
  give_body(c, own);
  return *own;
}

static void casts_post(gt_broadcast *b, gt_message *m) {
  casts *c = of(b);
  const gt_exchange *x = x_of(c);
  if (!b->replace) {
    for (size_t r = 0; r < x->spec.nregions; r++) c->origins[r].passed = false;
    m->to = x->tree.neighbours;
    m->nto = x->tree.nneighbours;
    post_whole(c, x->spec.self, m);
    return;
  }
  make_due(c, x->spec.self, m->value, m->detail, x->spec.self);
  casts_progress(b, x->spec.nregions);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Forwards a piece of an update to the other neighbors.  False: an outbox has no room. */
static bool pass_on(casts *c, size_t from, const gt_frame_header *head, gt_vec body) {
  gt_exchange *x = x_of(c);
  const size_t nto = all_but(c, from);
  origin *o = &c->origins[head->route.origin];
  if (nto == 0) return true;
  const bool can = gt_exchange_can_post(&c->base.base, GT_ROOM_FORWARDED, c->to, nto, 1, body.n);
  o->waits = !can && x->full < x->spec.nregions;
  if (!can) return false;
  o->passed |= o->got + 1 == (int64_t)c->base.base.npieces;
  gt_message m = {.of = GT_BODY_PASSED,
                  .value = head->value,
                  .detail = head->detail,
                  .route = {.origin = head->route.origin, .offset = head->route.offset},
                  .to = c->to,
                  .nto = nto,
                  .exact = head->codec == 0};
  gt_vec_copy(gt_exchange_fill(&c->base.base, &m, body.n), body);
  gt_exchange_send(&c->base.base, &m);
  return true;
}

static gt_status casts_check(const gt_broadcast *b, size_t from, const gt_frame_header *head) {
  const casts *c = (const casts *)b;
  const gt_exchange *x = x_of(c);
  const size_t region = head->route.origin;
  const int64_t npieces = (int64_t)b->base.npieces;
  bool near = false;
  for (size_t i = 0; i < x->tree.nneighbours; i++) near |= x->tree.neighbours[i] == from;
  if (!near || region >= x->spec.nregions || region == x->spec.self)
    return GT_FAIL(GT_ERR_FAULT, "data of origin %zu cannot come from here", region);
  const origin *o = &c->origins[region];
  int64_t pieces = o->got, last = o->value;
  size_t i = 0;
  for (const gt_frame_header *m; (m = gt_exchange_next_held(&b->base, from, &i));)
    if (m->route.origin == region && ++pieces % npieces == 0) last = (int64_t)m->value;
  const size_t piece = (size_t)(pieces % npieces);
  GT_TRY(gt_exchange_check_after(head, last));
  return gt_exchange_check_part(head, b->base.starts[piece], floats_of(c, piece));
}

static bool casts_receive(gt_broadcast *b, size_t from, const gt_frame_header *head, gt_vec body) {
  casts *c = of(b);
  origin *o = &c->origins[head->route.origin];
  if (!b->replace && !pass_on(c, from, head, body)) return false;
  give_body(c, &o->next);
  gt_vec_copy(gt_vec_range(o->next, (size_t)head->route.offset, body.n), body);
  if (++o->got < (int64_t)c->base.base.npieces) return true;
  o->got = 0;
  o->value = (int64_t)head->value;
  /* also if it is non-finite, because the DONE of its origin counts it in every region */
  if (b->replace) {
    give_body(c, &o->last);
    gt_vec_copy(o->last, o->next);
    make_due(c, head->route.origin, head->value, head->detail, from);
  }
  if (gt_vec_finite(o->next))
    b->base.spec.received(b->base.spec.ctx, head->route.origin, o->next);
  else if (x_of(c)->spec.events.nonfinite)
    x_of(c)->spec.events.nonfinite(x_of(c)->spec.events.ctx, head->route.origin);
  take_body(c, &o->next);
  casts_progress(b, x_of(c)->spec.nregions);
  return true;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool is_due(const casts *c, size_t region) {
  const gt_exchange *x = x_of(c);
  for (size_t i = 0; c->due && i < x->tree.nneighbours; i++)
    if (c->due[i * x->spec.nregions + region]) return true;
  return false;
}

static bool casts_drained(const gt_broadcast *b) {
  return !is_due((const casts *)b, b->base.x->spec.self);
}

/* True if the last message of every other region has arrived and has been forwarded. */
static bool casts_settled(const gt_broadcast *b) {
  const casts *c = (const casts *)b;
  const gt_exchange *x = x_of(c);
  for (size_t r = 0; r < x->spec.nregions; r++) {
    if (is_due(c, r) || c->origins[r].got > 0) return false;
    if (r != x->spec.self && (!x->done[r] || c->origins[r].value < b->base.count[r])) return false;
  }
  return true;
}

/* ---- state ----------------------------------------------------------------------------------- */

static gt_status posts_state(casts *c, const char *prefix, gt_state_direction direction) {
  const size_t n = x_of(c)->spec.nregions, ndue = x_of(c)->tree.nneighbours * n;
  const gt_state_field posted = {"posted", GT_TYPE_I64, &c->base.posted, 1};
  GT_TRY(gt_state_fields(direction, prefix, &posted, 1));
  if (!c->due) return GT_OK;
  GT_TRY(gt_state_flags(direction, prefix, "due", c->due, ndue));
  for (size_t i = 0; direction.from && i < ndue; i++) c->ndue[i / n] += c->due[i];
  return GT_OK;
}

/* Saves or loads a vector if it is in use. */
static gt_status body_state(casts *c, gt_vec *v, bool there, const char *prefix, const char *name,
                            gt_state_direction direction) {
  if (!there) return GT_OK;
  give_body(c, v);
  const gt_state_field field = {name, GT_TYPE_F32, v->data, v->n};
  return gt_state_fields(direction, prefix, &field, 1);
}

static gt_status origin_state(casts *c, size_t r, const char *prefix,
                              gt_state_direction direction) {
  origin *o = &c->origins[r];
  char name[3][32];
  static const char *const parts[] = {"numbers", "next", "last"};
  for (size_t i = 0; i < 3; i++) snprintf(name[i], sizeof name[i], "%zu/%s", r, parts[i]);
  const gt_state_field numbers = {name[0], GT_TYPE_I64, &o->got, ORIGIN_NUMBERS};
  GT_TRY(gt_state_fields(direction, prefix, &numbers, 1));
  if (o->got < 0 || (uint64_t)o->got >= c->base.base.npieces)
    return GT_FAIL(GT_ERR_CKPT, "state \"%s%s\" has %lld pieces; expected fewer than %zu", prefix,
                   name[0], (long long)o->got, c->base.base.npieces);
  GT_TRY(body_state(c, &o->next, o->got > 0, prefix, name[1], direction));
  return body_state(c, &o->last, is_due(c, r), prefix, name[2], direction);
}

static gt_status casts_state(gt_broadcast *b, const char *prefix, gt_state_direction direction) {
  casts *c = of(b);
  if (direction.from) GT_TRY(posts_state(c, prefix, direction));
  for (size_t r = 0; r < x_of(c)->spec.nregions; r++) GT_TRY(origin_state(c, r, prefix, direction));
  return direction.to ? posts_state(c, prefix, direction) : GT_OK;
}

const gt_broadcast_ops gt_tree_broadcast = {
    .size = sizeof(casts),
    .open = casts_open,
    .close = casts_close,
    .room = casts_room,
    .begin = casts_begin,
    .post = casts_post,
    .receive = casts_receive,
    .check = casts_check,
    .progress = casts_progress,
    .drained = casts_drained,
    .settled = casts_settled,
    .state = casts_state,
};
