/* An exchange: the list of topologies, the collectives that are open, and who gets which event. */
#include "internal.h"

#define DECLARE(constant, name, table) extern const gt_topology_ops table;
#define TABLE(constant, name, table)   [constant] = &table,
GT_TOPOLOGIES(DECLARE)
static const gt_topology_ops *const tables[] = {GT_TOPOLOGIES(TABLE)};

const gt_topology_ops *gt_topology_of(gt_topology topology) {
  return tables[topology];
}

gt_exchange *gt_exchange_create(const gt_exchange_spec *spec) {
  if (spec->self >= spec->nregions || spec->inflight < 1)
    gt_bug("an exchange of region %zu of %zu, %zu in flight", spec->self, spec->nregions, spec->inflight);
  gt_exchange *x = GT_NEW(gt_exchange);
  x->spec = *spec;
  x->topology = gt_topology_of(spec->topology);
  x->others = GT_NEW_ARRAY(size_t, spec->nregions);
  for (size_t r = 0, n = 0; r < spec->nregions; r++)
    if (r != spec->self) x->others[n++] = r;
  return x;
}

void gt_exchange_close(gt_exchange *x) {
  if (!x) return;
  gt_free(x->others);
  gt_free(x);
}

void gt_exchange_add(gt_exchange *x, gt_collective *c, const gt_collective_spec *spec, size_t n) {
  c->x = x;
  c->spec = *spec;
  c->n = n;
  c->id = x->ncollectives++;
  if (x->last)
    x->last->next = c;
  else
    x->first = c;
  x->last = c;
}

bool gt_exchange_all_room(const gt_exchange *x) {
  const gt_exchange_host *host = &x->spec.host;
  for (size_t i = 0; i + 1 < x->spec.nregions; i++)
    if (!host->room(host->ctx, x->others[i])) return false;
  return true;
}

/* ---- events -------------------------------------------------------------------------------------- */

static void changed(gt_exchange *x) {
  for (gt_collective *c = x->first; c; c = c->next) c->spec.changed(c->spec.ctx);
}

void gt_exchange_start(gt_exchange *x) {
  changed(x);
}

void gt_exchange_room(gt_exchange *x, size_t region) {
  (void)region;
  changed(x);
}

static gt_collective *collective_of(const gt_exchange *x, const gt_frame_header *head) {
  gt_collective *c = x->first;
  while (c && c->id != head->range) c = c->next;
  return c && head->kind == c->spec.kind ? c : NULL;
}

size_t gt_exchange_bytes(const gt_exchange *x, const gt_frame_header *head) {
  const gt_collective *c = collective_of(x, head);
  return c ? c->n * sizeof(float) : 0;
}

gt_status gt_exchange_check(const gt_exchange *x, const gt_frame_header *head) {
  const gt_collective *c = collective_of(x, head);
  const int64_t round = (int64_t)head->value, applied = c->allreduce ? c->allreduce->applied : INT64_MIN;
  if (round > applied) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "data is of step or round %lld; one after %lld is needed", (long long)round, (long long)applied);
}

void gt_exchange_message(gt_exchange *x, size_t from, const gt_frame_header *head, gt_vec body) {
  gt_collective *c = collective_of(x, head);
  if (c->broadcast) {
    x->topology->broadcast->message(c->broadcast, from, head, body);
  } else {
    x->topology->allreduce->message(c->allreduce, from, head, body);
    c->spec.changed(c->spec.ctx);
  }
}

static void peer_of_rounds(gt_allreduce *r, size_t region, gt_peer_event event, int64_t rounds) {
  r->done[region] = event != GT_PEER_JOINED;
  if (event != GT_PEER_JOINED) return;
  r->base.x->topology->allreduce->again(r);
  if (r->unheard) r->unheard--;
  if (rounds > r->floor) r->floor = rounds;
}

void gt_exchange_peer(gt_exchange *x, size_t region, gt_peer_event event, int64_t rounds) {
  for (gt_collective *c = x->first; c; c = c->next) {
    if (!c->allreduce) continue;
    peer_of_rounds(c->allreduce, region, event, rounds);
    c->spec.changed(c->spec.ctx);
  }
}

int64_t gt_exchange_rounds(const gt_exchange *x) {
  int64_t rounds = 0;
  for (const gt_collective *c = x->first; c; c = c->next)
    if (c->allreduce && c->allreduce->applied > rounds) rounds = c->allreduce->applied;
  return rounds;
}
