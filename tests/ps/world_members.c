/* The world of regions that are lost and return: the services for their PSs, and the losses. */
#include "world.h"

/* ---- services -------------------------------------------------------------------------------- */

/* No two epochs have one number, and each has a majority. */
void w_host_epoch(void *ctx, int64_t number, const bool *members) {
  w_region *r = ctx;
  world *w = r->world;
  uint32_t set = 0;
  double weight = 0;
  r->promised = number;
  if (!members) return;
  for (size_t i = 0; i < w->n; i++)
    if (members[i]) {
      set |= (uint32_t)1 << i;
      weight += w->weights[i];
    }
  w_check(w, number > 0 && number < W_EPOCHS && w->epochs[number] == 0 && members[r->id]);
  w_check(w, weight > 0.5 - 1e-9);
  w->epochs[number] = set;
  w->decided++;
}

/* Another placement for each set of members. */
void w_host_place(void *ctx, const size_t *regions, size_t n, size_t *next) {
  const w_spec *s = &((const w_region *)ctx)->world->spec;
  uint64_t of = s->seed;
  for (size_t i = 0; i < n; i++) of = 31 * of + regions[i];
  const size_t root = (size_t)(of % n);
  for (size_t i = 0; i < n; i++) {
    const size_t at = (root + i) % n; /* a ring, or a chain with branches */
    next[at] = (root + (s->topology == GT_TOPOLOGY_RING   ? i + 1
                        : s->topology == GT_TOPOLOGY_TREE ? i / 2
                                                          : 0)) %
               n;
  }
}

void w_host_fault(void *ctx, gt_status status) {
  w_region *r = ctx;
  w_check(r->world, status == GT_ERR_CKPT && r->world->spec.change);
  r->refused++;
}

/* ---- losses of regions ----------------------------------------------------------------------- */

/* A region notices that it has lost another one. */
void w_notice(world *w, size_t lost, size_t by) {
  w->links[lost][by].notice = GT_NEVER;
  w_clear_link(&w->links[lost][by]);
  w_clear_link(&w->links[by][lost]);
  w->links[by][lost].down = true;
  if (w_view(w, by).phase != GT_PS_STOPPED) gt_ps_lost(w->regions[by].ps, lost, w->now);
}

void w_kill(world *w, size_t region, gt_ns most) {
  w_region *r = &w->regions[region];
  r->dead = true;
  w_end_writing(r);
  for (size_t i = 0; i < w->n; i++) w->links[region][i].heal = w->links[i][region].heal = GT_NEVER;
  for (size_t i = 0; i < w->n; i++) {
    w_link *from = &w->links[region][i];
    if (i == region) continue;
    w_clear_link(&w->links[i][region]); /* a sender's bodies stay borrowed until it notices */
    w->links[i][region].cut = true;
    if (!w->regions[i].dead && from->notice == GT_NEVER && !w->links[i][region].down)
      from->notice = w->now + 1 + w_below(w, most);
    w_clear_queues(from); /* messages on their way arrive */
  }
}

void w_cut(world *w, size_t a, size_t b, gt_ns most) {
  for (int side = 0; side < 2; side++) {
    w_link *link = side ? &w->links[b][a] : &w->links[a][b];
    link->cut = true;
    link->heal = GT_NEVER;
    if (link->notice == GT_NEVER) link->notice = w->now + 1 + w_below(w, most);
  }
}

void w_heal(world *w, size_t returned, size_t other) {
  w_link *to = &w->links[returned][other], *from = &w->links[other][returned];
  to->heal = GT_NEVER;
  if (w->regions[returned].dead || w->regions[other].dead) return;
  to->cut = from->down = false;
}

void w_return(world *w, size_t region, gt_ns most) {
  w_region *r = &w->regions[region];
  assert_true(r->dead);
  for (size_t i = 0; i < w->n; i++)
    if (i != region && w->links[region][i].notice != GT_NEVER && !w->regions[i].dead)
      w_notice(w, region, i);
  for (size_t i = 0; i < w->n; i++) {
    w_link *to = &w->links[region][i], *from = &w->links[i][region];
    w_clear_link(to);
    w_clear_link(from);
    to->cut = to->down = from->cut = from->down = false;
    to->notice = from->notice = GT_NEVER;
    to->last[0] = to->last[1] = from->last[0] = from->last[1] = 0;
    to->heal = from->heal = GT_NEVER;
    /* until then this region's messages wait, and those of the other go nowhere */
    to->cut = from->down = true;
    if (w->regions[i].dead)
      to->down = true;
    else
      to->heal = w->now + 1 + w_below(w, most);
  }
  r->dead = false;
  w->restarts++;
  w_restart(r);
}

bool w_all_in(const world *w, gt_ps_phase phase) {
  for (size_t i = 0; i < w->n; i++)
    if (!w->regions[i].dead && w_view(w, i).phase != phase) return false;
  return true;
}
