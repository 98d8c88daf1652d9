/* An exchange: the list of topologies, its open collectives, and the delivery of events to them. */
#include "internal.h"

#define DECLARE(constant, name, table, facts) extern const gt_topology_ops table;
#define TABLE(constant, name, table, facts)   [constant] = &table,
GT_TOPOLOGIES(DECLARE)
GT_TOPOLOGY_OF_CENTRAL(DECLARE)
static const gt_topology_ops *const tables[] = {GT_TOPOLOGIES(TABLE) GT_TOPOLOGY_OF_CENTRAL(TABLE)};

const gt_topology_ops *gt_topology_of(gt_topology topology) {
  return tables[topology];
}

bool gt_topology_per_worker(gt_topology topology) {
  return gt_topology_of(topology)->allreduce->part != NULL;
}

bool gt_topology_broadcasts(gt_topology topology) {
  return gt_topology_of(topology)->broadcast != NULL;
}

gt_exchange *gt_exchange_create(const gt_exchange_spec *spec) {
  const size_t n = spec->nregions;
  if (spec->self >= n || spec->inflight < 1)
    gt_bug("an exchange of region %zu of %zu, %zu in flight", spec->self, n, spec->inflight);
  gt_exchange *x = GT_NEW(gt_exchange);
  x->spec = *spec;
  x->topology = gt_topology_of(spec->topology);
  x->others = GT_NEW_ARRAY(size_t, n);
  x->done = GT_NEW_ARRAY(bool, n);
  x->late = GT_NEW_ARRAY(bool, n);
  x->wants = GT_NEW_ARRAY(gt_outbox_want, n);
  x->wanted = GT_NEW_ARRAY(size_t, n);
  gt_held_open(x);
  for (size_t r = 0, i = 0; r < n; r++)
    if (r != spec->self) x->others[i++] = r;
  if (x->topology->open) x->topology->open(x);
  return x;
}

void gt_exchange_close(gt_exchange *x) {
  if (!x) return;
  if (x->topology->close) x->topology->close(x);
  gt_held_close(x);
  gt_free(x->wanted);
  gt_free(x->wants);
  gt_free(x->late);
  gt_free(x->done);
  gt_free(x->others);
  gt_free(x);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool has_kind(const gt_collective *c, unsigned kind) {
  const bool answers = c->allreduce && c->x->topology->allreduce->answer && c->spec.answer;
  return kind == (unsigned)c->spec.kind || (answers && kind == (unsigned)c->spec.answer);
}

static gt_collective *collective_of(const gt_exchange *x, const gt_frame_header *head) {
  gt_collective *c = x->first;
  while (c && c->id != head->range) c = c->next;
  return c && has_kind(c, head->kind) ? c : NULL;
}

bool gt_exchange_takes(const gt_exchange *x, unsigned kind) {
  for (const gt_collective *c = x->first; c; c = c->next)
    if (has_kind(c, kind)) return true;
  return false;
}

bool gt_exchange_decodes(const gt_exchange *x, const gt_frame_header *head) {
  const gt_collective *c = collective_of(x, head);
  return head->codec == 0 || (c && c->coder && head->codec == gt_coder_kind(c->coder));
}

size_t gt_exchange_bytes(const gt_exchange *x, const gt_frame_header *head) {
  const gt_collective *c = collective_of(x, head);
  if (c && c->coder && head->codec) {
    const size_t most = gt_coder_bound(c->coder, 0);
    return head->message_bytes < most ? (size_t)head->message_bytes : most;
  }
  if (!c || !(head->flags & GT_FRAME_ROUTED)) return c ? c->n * sizeof(float) : 0;
  return head->route.offset <= c->n && head->route.count <= c->n - head->route.offset
             ? (size_t)head->route.count * sizeof(float)
             : 0;
}

gt_exchange_need gt_exchange_need_of(const gt_exchange_spec *spec, gt_cast cast, size_t n) {
  const gt_topology_ops *topology = gt_topology_of(spec->topology);
  return topology->need ? topology->need(spec, cast, n) : (gt_exchange_need){0};
}

size_t gt_exchange_unit(const gt_exchange *x) {
  size_t most = 1;
  for (const gt_collective *c = x->first; c && x->topology->unit; c = c->next) {
    const size_t unit = x->topology->unit(c);
    if (unit > most) most = unit;
  }
  return most;
}

size_t gt_exchange_body_max(const gt_exchange *x) {
  size_t most = 0;
  for (const gt_collective *c = x->first; c; c = c->next) {
    const size_t bytes = gt_exchange_body_bytes(c, c->n);
    if (bytes > most) most = bytes;
  }
  return most;
}

/* Returns GT_ERR_FAULT if the round has been applied already. */
static gt_status check_round(const gt_allreduce *r, const gt_frame_header *head) {
  if ((int64_t)head->value > r->applied) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "data is of step or round %lld; expected one after %lld",
                 (long long)head->value, (long long)r->applied);
}

gt_status gt_exchange_check(const gt_exchange *x, size_t from, const gt_frame_header *head) {
  const gt_collective *c = collective_of(x, head);
  const gt_topology_ops *topology = x->topology;
  const bool routed = (head->flags & GT_FRAME_ROUTED) != 0;
  if (routed != topology->routed)
    return GT_FAIL(GT_ERR_FAULT, "data has %s route; expected over a %s %s", routed ? "a" : "no",
                   topology->name, topology->routed ? "one" : "none");
  if (c->allreduce) GT_TRY(check_round(c->allreduce, head));
  if (x->held.of[from].n > 0)
    return GT_OK; /* checked when the messages before it have been taken */
  if (c->allreduce && topology->allreduce->check)
    return topology->allreduce->check(c->allreduce, from, head);
  if (c->broadcast && topology->broadcast->check)
    return topology->broadcast->check(c->broadcast, from, head);
  return GT_OK;
}

gt_status gt_exchange_check_body(const gt_exchange *x, const gt_frame_header *head,
                                 const void *body) {
  const gt_collective *c = collective_of(x, head);
  const gt_codec_turn turn = {.round = head->value, .sender = head->from};
  if (!body || head->codec == 0) return GT_OK;
  return gt_coder_check(c->coder, &turn, body, (size_t)head->message_bytes);
}

static void changed(gt_exchange *x, size_t region) {
  for (gt_collective *c = x->first; c; c = c->next) {
    if (c->broadcast && x->topology->broadcast->progress)
      x->topology->broadcast->progress(c->broadcast, region);
    c->spec.changed(c->spec.ctx);
  }
}

/* Makes all possible progress after the outbox to `region` has room (nregions: after any other
   event).  Repeats until nothing changes. */
static void retry(gt_exchange *x, size_t region) {
  const size_t n = x->spec.nregions;
  bool moved = true;
  while (moved) {
    changed(x, region);
    moved = region < n && gt_held_retry(x, region);
    moved |= gt_held_retry(x, n);
  }
}

/* True if the message is finite.  Pieces of a broadcast are checked after they have been joined. */
static bool is_finite(const gt_collective *c, const gt_frame_header *head, const void *body) {
  const size_t bytes = (size_t)head->message_bytes;
  if (c->broadcast && c->x->topology->routed) return true;
  if (head->codec) return gt_coder_finite(c->coder, body, bytes);
  return gt_vec_finite(gt_vec_of((float *)(uintptr_t)body, bytes / sizeof(float)));
}

gt_receipt gt_exchange_receive(gt_exchange *x, size_t from, const gt_frame_header *head,
                               const void *body) {
  gt_collective *c = collective_of(x, head);
  if (!is_finite(c, head, body)) return GT_RECEIPT_NONFINITE;
  if (!gt_held_or_taken(x, c, from, head, body)) return GT_RECEIPT_HELD;
  if (c->allreduce) retry(x, x->spec.nregions);
  return GT_RECEIPT_TAKEN;
}

/* ---- other events ---------------------------------------------------------------------------- */

void gt_exchange_start(gt_exchange *x) {
  retry(x, x->spec.nregions);
}

void gt_exchange_room(gt_exchange *x, size_t region) {
  retry(x, region);
}

static void joined(gt_allreduce *r, int64_t rounds) {
  if (r->unheard) r->unheard--;
  if (rounds > r->floor) r->floor = rounds;
  r->base.x->topology->allreduce->again(r);
}

void gt_exchange_peer(gt_exchange *x, size_t region, gt_peer_event event, const int64_t *counts) {
  x->done[region] = event == GT_PEER_DONE || event == GT_PEER_LEFT;
  x->late[region] = event == GT_PEER_REJOINED;
  for (gt_collective *c = x->first; c; c = c->next) {
    if (event == GT_PEER_DONE) c->count[region] = counts[c->id];
    if (c->allreduce && !x->done[region]) joined(c->allreduce, counts[c->id]);
  }
  retry(x, x->spec.nregions);
}

int64_t gt_exchange_rounds(const gt_exchange *x, size_t range) {
  const gt_collective *c = x->first;
  while (c && c->id != range) c = c->next;
  const gt_allreduce *r = c ? c->allreduce : NULL;
  if (!r) return 0;
  const int64_t begun = x->topology->allreduce->begun ? x->topology->allreduce->begun(r) : 0;
  return begun > r->applied ? begun : r->applied;
}

static bool broadcasts(const gt_broadcast *b, bool (*holds)(const gt_broadcast *b)) {
  return !holds || holds(b);
}

bool gt_exchange_drained(const gt_exchange *x) {
  for (const gt_collective *c = x->first; c; c = c->next) {
    const gt_allreduce *r = c->allreduce;
    if (r && (r->own > r->posted || r->staged)) return false;
    if (c->broadcast && !broadcasts(c->broadcast, x->topology->broadcast->drained)) return false;
  }
  return true;
}

bool gt_exchange_settled(const gt_exchange *x) {
  for (const gt_collective *c = x->first; c; c = c->next) {
    if (c->allreduce &&
        (gt_allreduce_waiting(c->allreduce) || !x->topology->allreduce->settled(c->allreduce)))
      return false;
    if (c->broadcast && !broadcasts(c->broadcast, x->topology->broadcast->settled)) return false;
  }
  return x->held.n == 0;
}

size_t gt_exchange_ranges(const gt_exchange *x) {
  return x->ncollectives;
}

int64_t gt_exchange_count(const gt_exchange *x, size_t range) {
  const gt_collective *c = x->first;
  while (c->id != range) c = c->next;
  return c->allreduce ? c->allreduce->own : c->broadcast->posted;
}
