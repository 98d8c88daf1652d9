/* Skips time: adds the counts between two marks again, and advances the schedule of every link
   (outages, traces) by that time, while messages in flight stay the same. */
#include <math.h>

#include "geotrain/ps_skip.h"
#include "internal.h"

void gt_sim_mark_open(sim_mark *m, const gt_sim *sim) {
  *m = (sim_mark){.views = GT_NEW_ARRAY(gt_ps_view, sim->n),
                  .uses = GT_NEW_ARRAY(gt_time_use, sim->n),
                  .crossed = GT_NEW_ARRAY(sim_crossed, sim->n * sim->n)};
}

void gt_sim_mark_close(sim_mark *m) {
  gt_free(m->views);
  gt_free(m->uses);
  gt_free(m->crossed);
  *m = (sim_mark){0};
}

void gt_sim_mark_take(sim_mark *m, const gt_sim *sim, gt_ns at) {
  m->at = at;
  m->moved = sim->moved;
  m->events = sim->events;
  for (size_t a = 0; a < sim->n; a++) {
    gt_ps_get_view(sim->regions[a].ps, gt_timeline_now(sim->regions[a].timeline), &m->views[a]);
    m->uses[a] = sim->regions[a].split.use;
    for (size_t b = 0; b < sim->n; b++)
      if (a != b) {
        m->crossed[a * sim->n + b] = gt_sim_crossed_of(sim, a, b);
        m->crossed[a * sim->n + b].traffic.bytes_other -= gt_sim_once_bytes(sim, a, b);
      }
  }
}

/* Scales the growth of a count as `own` is scaled to `lead`. */
static int64_t in_step(int64_t from, int64_t to, int64_t own, int64_t lead) {
  return from + llround((double)(to - from) * (double)lead / (double)own);
}

void gt_sim_mark_align(sim_mark *to, const sim_mark *from, const gt_sim *sim, size_t ref) {
  const double exchanges =
      (double)(to->views[ref].steps - from->views[ref].steps) / (double)gt_sim_period(sim, ref);
  for (size_t r = 0; r < sim->n; r++) {
    gt_ps_view *v = &to->views[r];
    const gt_ps_view *f = &from->views[r];
    int64_t own = v->steps - f->steps, lead = llround(exchanges * (double)gt_sim_period(sim, r));
    if (!gt_ps_made_of(sim->regions[r].ps)->strategy->waits || own == lead || own <= 0 ||
        !sim->regions[r].training)
      continue;
    v->steps = in_step(f->steps, v->steps, own, lead);
    v->batches = in_step(f->batches, v->batches, own, lead);
    v->samples = in_step(f->samples, v->samples, own, lead);
  }
}

static void add_use(gt_time_use *use, const gt_time_use *from, const gt_time_use *to, int64_t n) {
  use->upload += n * (to->upload - from->upload);
  use->download += n * (to->download - from->download);
  use->training += n * (to->training - from->training);
}

static void add_crossed(sim_crossed *sum, const sim_crossed *from, const sim_crossed *to,
                        double n) {
  sum->traffic.messages += n * (to->traffic.messages - from->traffic.messages);
  sum->traffic.bytes_sent += n * (to->traffic.bytes_sent - from->traffic.bytes_sent);
  sum->traffic.bytes_other += n * (to->traffic.bytes_other - from->traffic.bytes_other);
  sum->wire_s += n * (to->wire_s - from->wire_s);
}

/* ---- stretches ------------------------------------------------------------------------------- */

void gt_sim_stretch_open(sim_stretch *x, const gt_sim *sim) {
  *x = (sim_stretch){.seen = GT_NEW_ARRAY(sim_crossed, sim->n * sim->n),
                     .added = GT_NEW_ARRAY(sim_crossed, sim->n * sim->n),
                     .batches = GT_NEW_ARRAY(double, sim->n),
                     .gone = GT_NEW_ARRAY(double, sim->n)};
}

void gt_sim_stretch_close(sim_stretch *x) {
  gt_free(x->seen);
  gt_free(x->added);
  gt_free(x->batches);
  gt_free(x->gone);
  *x = (sim_stretch){0};
}

static double batches_seen(const gt_sim *sim, size_t region) {
  gt_ps_view v;
  gt_ps_get_view(sim->regions[region].ps, 0, &v);
  return (double)v.batches - (sim->gone_batches ? sim->gone_batches[region] : 0);
}

void gt_sim_stretch_begin(sim_stretch *x, const gt_sim *sim) {
  for (size_t a = 0; a < sim->n; a++) {
    x->batches[a] = batches_seen(sim, a);
    x->gone[a] = sim->gone_batches ? sim->gone_batches[a] : 0;
    for (size_t b = 0; b < sim->n; b++) {
      size_t i = a * sim->n + b;
      if (a == b) continue;
      x->seen[i].traffic = gt_sim_traffic_of(sim, a, b);
      x->added[i] = sim->crossed ? sim->crossed[i] : (sim_crossed){0};
    }
  }
}

/* Returns the messages for this number of steps: one per step or per `each` steps, if that matches
   the seen number up to one message at either end; else the seen number. */
static double messages_of(double seen, double steps, double each) {
  if (fabs(seen - steps / each) <= 1) return steps / each;
  return fabs(seen - steps) <= 1 ? steps : seen;
}

/* Sets the strategy's messages by the number of steps, as in the whole stretch so far.  made: its
   simulated steps; times: skipped steps per simulated step. */
static void by_steps(gt_sim *sim, const sim_stretch *x, size_t a, size_t b, double made,
                     double times) {
  size_t i = a * sim->n + b;
  gt_sim_traffic now = gt_sim_traffic_of(sim, a, b), *sum = &sim->crossed[i].traffic;
  double seen = now.messages - x->seen[i].traffic.messages, more;
  if (seen <= 0) return;
  more = times * messages_of(seen, made, (double)gt_sim_period(sim, a));
  sum->messages = x->added[i].traffic.messages + more;
  sum->bytes_sent = x->added[i].traffic.bytes_sent +
                    more * (now.bytes_sent - x->seen[i].traffic.bytes_sent) / seen;
}

/* ---- skipping -------------------------------------------------------------------------------- */

/* A region near its end repeats less often than the others. */
static int64_t as_often(const sim_region *r, const sim_mark *from, const sim_mark *to, int64_t n) {
  double most = gt_ps_repeats(r->ps, &from->views[r->id], &to->views[r->id], false);
  return most < (double)n ? (int64_t)most : n;
}

/* Lets chunks of a test set that take longer than the skipped time still end on time. */
static void chunks_sooner(sim_region *r, gt_ns now, gt_ns gone) {
  const size_t workers = gt_job_workers(r->sim->spec.job, r->id);
  for (size_t w = 0; w < workers; w++) {
    gt_ns due = gt_timeline_due(r->timeline, w);
    if (due != GT_NEVER && r->orders[w].kind == GT_PS_EVAL && due >= now + gone)
      gt_timeline_sooner(r->timeline, w, gone);
  }
}

/* Moves earlier the work and messages that are in progress for longer than the skipped time. */
static void come_sooner(gt_sim *sim, gt_ns now, gt_ns gone) {
  for (size_t a = 0; a < sim->n; a++) {
    chunks_sooner(&sim->regions[a], now, gone);
    for (size_t b = 0; b < sim->n; b++)
      if (a != b) gt_sim_wire_sooner(&sim->regions[a], b, now, gone);
  }
  for (size_t a = 0; a < sim->n; a++) gt_sim_region_again(&sim->regions[a]);
}

static void skip_region(sim_region *r, const sim_mark *from, const sim_mark *to, int64_t n,
                        gt_ns gone, const sim_stretch *stretch) {
  gt_sim *sim = r->sim;
  const size_t a = r->id;
  const gt_ps_view *f = &from->views[a], *t = &to->views[a];
  const double made = stretch ? batches_seen(sim, a) - stretch->batches[a] : 0;
  gt_ps_skip(r->ps, f, t, n, gone);
  add_use(&r->split.use, &from->uses[a], &to->uses[a], n);
  sim->gone_batches[a] += (double)(n * (t->batches - f->batches));
  for (size_t b = 0; b < sim->n; b++) {
    if (a == b) continue;
    r->wires[b].wire.link.origin -= gone;
    add_crossed(&sim->crossed[a * sim->n + b], &from->crossed[a * sim->n + b],
                &to->crossed[a * sim->n + b], (double)n);
    if (stretch && made > 0 && t->batches > f->batches)
      by_steps(sim, stretch, a, b,
               made * (double)(t->steps - f->steps) / (double)(t->batches - f->batches),
               (sim->gone_batches[a] - stretch->gone[a]) / made);
  }
}

void gt_sim_skip(gt_sim *sim, const sim_mark *from, const sim_mark *to, int64_t n, gt_ns also,
                 const sim_stretch *stretch) {
  const gt_ns gone = n * (to->at - from->at) + also;
  if (!sim->crossed) {
    sim->crossed = GT_NEW_ARRAY(sim_crossed, sim->n * sim->n);
    sim->gone_batches = GT_NEW_ARRAY(double, sim->n);
  }
  const gt_ns now = to->at - sim->gone;
  sim->gone += gone;
  if (to->moved == from->moved) sim->moved -= gone; /* nothing moved in the skipped time either */
  for (size_t a = 0; a < sim->n; a++)
    skip_region(&sim->regions[a], from, to, as_often(&sim->regions[a], from, to, n), gone, stretch);
  come_sooner(sim, now, gone);
}
