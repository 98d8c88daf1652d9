/* The dynamic programme that cuts a line of workers and the items into stages.

   value[a][u]: of the best stages of items a.. on workers u.. of the line; a stage has items a..e-1
   and workers u..u+d-1 of one region:

     value[a][u] = least over e, d of  stage(a, e, u, d) * hop(e) * value[e][u + d]

   where * is max of busy times, or the sum of times for which a micro-batch passes, over what is
   not busier than the limit; hop(e) is there where the next stage is in another region.  All
   workers have a stage, but those that may be idle. */
#include <math.h>

#include "search.h"

/* From the worker before to a worker, of another region: seconds for a byte in the slower
   direction, and in both; latencies of both. */
typedef struct {
  double busy_s, both_s, latency_s;
} crossing;

typedef struct {
  size_t item, workers, next; /* the stage's end, its workers, the next stage's first one */
} move;

typedef struct {
  const gt_pipe_items *items;
  const gt_pipe_line *line;
  size_t samples, flight; /* of a micro-batch */
  bool passing;
  double limit_s;
  double *value; /* (items + 1) x (workers + 1) */
  move *moves;
  crossing *crossings; /* of each worker */
} cutter;

static size_t at(const cutter *c, size_t item, size_t worker) {
  return item * (c->line->n + 1) + worker;
}

static void find_crossings(cutter *c) {
  const gt_pipe_line *l = c->line;
  const gt_pipe_wan *wan = c->items->problem->wan;
  for (size_t u = 1; u < l->n; u++) {
    const size_t a = l->site[u - 1], b = l->site[u];
    if (a == b) continue;
    const double there_s = gt_pipe_wan_occupied_s(wan, a, b, 1),
                 back_s = gt_pipe_wan_occupied_s(wan, b, a, 1);
    c->crossings[u] =
        (crossing){fmax(there_s, back_s), there_s + back_s,
                   gt_pipe_wan_transfer_s(wan, a, b, 0) + gt_pipe_wan_transfer_s(wan, b, a, 0)};
  }
}

static double hop_s(const cutter *c, size_t item, size_t to) {
  const crossing *x = &c->crossings[to];
  const double bytes = (double)c->samples * c->items->cut_bytes[item];
  if (bytes * x->busy_s > c->limit_s) return INFINITY;
  if (!c->passing) return bytes * x->busy_s;
  return (double)c->items->chunks * x->latency_s + bytes * x->both_s;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* A stage's workers, before its items are chosen. */
typedef struct {
  size_t first, workers, next;
  double share, power; /* samples of a worker; of the slowest one */
} crew;

static bool fits(const cutter *c, const crew *w, size_t a, size_t e) {
  const gt_pipe_items *t = c->items;
  const gt_pipe_search_problem *p = t->problem;
  const double memory = p->sites[c->line->site[w->first]].memory_bytes,
               parameters = t->parameter_bytes[e] - t->parameter_bytes[a],
               held = t->held_bytes[e] - t->held_bytes[a];
  if (memory == INFINITY) return true;
  return p->copies * parameters + w->share * (p->scratch_bytes + (double)c->flight * held) <=
         memory;
}

/* What follows stage a..e-1: the hop and the best stages behind it. */
static double rest_s(const cutter *c, const crew *w, size_t e) {
  const double rest = c->value[at(c, e, w->next)];
  if (rest == INFINITY || w->next == c->line->n || w->next < c->line->end[w->first]) return rest;
  const double hop = hop_s(c, e, w->next);
  return c->passing ? hop + rest : fmax(hop, rest);
}

static void place(cutter *c, const crew *w, size_t a) {
  const gt_pipe_items *t = c->items;
  const size_t here = at(c, a, w->first);
  for (size_t e = a + 1; e <= t->n; e++) {
    const double busy = w->share * (t->all_s[e] - t->all_s[a]) / w->power;
    const bool beyond = c->passing ? busy > c->limit_s : busy >= c->value[here];
    if (beyond || (w->workers > 1 && t->alone[e] > t->alone[a]) || !fits(c, w, a, e)) return;
    if (a == 0 && e < t->first) continue;
    const double rest = rest_s(c, w, e), pass = w->share * (t->pass_s[e] - t->pass_s[a]) / w->power,
                 value = c->passing ? pass + rest : fmax(busy, rest);
    if (!(value < c->value[here])) continue;
    c->value[here] = value;
    c->moves[here] = (move){e, w->workers, w->next};
  }
}

/* All stages that begin with an item and a worker. */
static void begin(cutter *c, size_t a, size_t u) {
  const gt_pipe_line *l = c->line;
  const gt_pipe_site *site = &c->items->problem->sites[l->site[u]];
  crew w = {.first = u, .power = INFINITY};
  for (size_t d = 1; u + d <= l->end[u]; d++) {
    w.power = fmin(w.power, site->power[l->number[u + d - 1]]);
    if (c->samples % d != 0) continue;
    w.workers = d;
    w.share = (double)c->samples / (double)d;
    w.next = u + d;
    place(c, &w, a);
    if (!l->idle[u] || w.next == l->end[u]) continue;
    w.next = l->end[u];
    place(c, &w, a);
  }
}

static double run(cutter *c, bool passing, double limit_s) {
  const size_t n = c->items->n, workers = c->line->n;
  c->passing = passing;
  c->limit_s = limit_s;
  for (size_t i = 0; i < (n + 1) * (workers + 1); i++) c->value[i] = INFINITY;
  c->value[at(c, n, workers)] = 0;
  for (size_t a = n; a-- > 0;)
    for (size_t u = workers; u-- > 0;)
      if (a > 0 || u == 0) begin(c, a, u);
  return c->value[0];
}

/* ---- the result ------------------------------------------------------------------------------ */

static gt_pipe_found written(const cutter *c, size_t micros) {
  const gt_pipe_items *t = c->items;
  size_t stages = 0;
  for (size_t a = 0, u = 0; a < t->n; stages++) {
    const move *m = &c->moves[at(c, a, u)];
    a = m->item;
    u = m->next;
  }
  gt_pipe_found f = {.stages = stages,
                     .chunks = t->chunks,
                     .micros = micros,
                     .places = GT_NEW_ARRAY(gt_pipe_place, stages),
                     .ends = GT_NEW_ARRAY(size_t, stages * t->chunks)};
  for (size_t s = 0, a = 0, u = 0; s < stages; s++) {
    const move *m = &c->moves[at(c, a, u)];
    f.places[s] = (gt_pipe_place){c->line->site[u], c->line->number[u], m->workers};
    f.ends[s] = t->front[m->item];
    if (t->chunks == 2) f.ends[2 * stages - 1 - s] = t->back[a];
    a = m->item;
    u = m->next;
  }
  return f;
}

static void open_cutter(cutter *c, const gt_pipe_items *items, const gt_pipe_line *line,
                        size_t micros, size_t flight) {
  const size_t places = (items->n + 1) * (line->n + 1);
  *c = (cutter){.items = items,
                .line = line,
                .samples = items->problem->batch / micros,
                .flight = flight,
                .value = GT_NEW_ARRAY(double, places),
                .moves = GT_NEW_ARRAY(move, places),
                .crossings = GT_NEW_ARRAY(crossing, line->n)};
  find_crossings(c);
}

static void close_cutter(cutter *c) {
  gt_free(c->crossings);
  gt_free(c->moves);
  gt_free(c->value);
}

double gt_pipe_cuts_least(const gt_pipe_items *items, const gt_pipe_line *line, size_t micros,
                          size_t flight) {
  cutter c;
  open_cutter(&c, items, line, micros, flight);
  const double slowest_s = run(&c, false, INFINITY);
  close_cutter(&c);
  return slowest_s;
}

bool gt_pipe_cuts_find(gt_pipe_found *out, const gt_pipe_items *items, const gt_pipe_line *line,
                       size_t micros, size_t flight, double limit_s) {
  cutter c;
  open_cutter(&c, items, line, micros, flight);
  const bool there = run(&c, true, limit_s) < INFINITY;
  if (there) *out = written(&c, micros);
  close_cutter(&c);
  return there;
}
