/* The candidates of a search: for every number of micro-batches, order of regions and number of
   chunks, stages by dynamic programming. */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ORDERS_OF  ((size_t)3) /* up to this number of other regions, all orders are tried */
#define SPLITS_ALL ((size_t)9) /* up to this number of workers, all splits are tried */
#define ROUNDING   1e-12
#define HOPELESS   2.0          /* times the least bound: candidates above are not continued */
#define FOLDS_ALL  ((size_t)16) /* up to this number of pieces, all folds are tried */
#define LINES_KEPT ((size_t)12) /* lines tried with all numbers of micro-batches */

/* ---- items of stages: without folding a piece each.  In a folded pipeline an item is pieces from
   the front of the model and pieces from its back, which share a stage: items enclose each other,
   and the last one is the middle of the model. */

/* A cut between two items, and sums over the items outside it. */
typedef struct {
  size_t front, back;                 /* outside: pieces 0..front-1, and from back on */
  double all_s, pass_s;               /* of a sample: all passes; F and B */
  double parameter_bytes, held_bytes; /* held: of a sample in flight */
  size_t alone;                       /* number of items with pieces that are `alone` */
  double cut_bytes;                   /* of a sample at the cut, in one direction */
} item_cut;

typedef struct {
  const gt_pipe_search_problem *problem;
  size_t chunks, n;
  item_cut *cuts; /* n + 1 */
  size_t first;   /* minimum number of items of the first stage */
} item_list;

static double all_s(const gt_pipe_operation *o) {
  return o->forward_s + o->input_s + o->weight_s;
}

/* ---- the cuts -------------------------------------------------------------------------------- */

static void cut_plainly(item_list *items) {
  for (size_t i = 0; i <= items->n; i++) items->cuts[i] = (item_cut){.front = i, .back = items->n};
}

/* Makes items of a folded model.  The side with fewer pieces has one in each item; the other side
   follows by its share of the work. */
static void cut_folded(item_list *items, size_t fold) {
  const gt_pipe_search_problem *p = items->problem;
  const bool fewer_front = fold < p->npieces - fold;
  size_t f = 0, b = p->npieces;
  double front_s = 0, back_s = 0, front_sum = 0, back_sum = 0;
  for (size_t i = 0; i < p->npieces; i++)
    *(i < fold ? &front_sum : &back_sum) += all_s(&p->pieces[i].work);
  items->cuts[0] = (item_cut){.front = 0, .back = p->npieces};
  for (size_t i = 1; i <= items->n; i++) {
    const size_t left = items->n - i; /* remaining items, each with a piece of both sides */
    front_s += all_s(&p->pieces[f++].work);
    back_s += all_s(&p->pieces[--b].work);
    while (fewer_front && b > fold + left && (left == 0 || back_s * front_sum < front_s * back_sum))
      back_s += all_s(&p->pieces[--b].work);
    while (!fewer_front && f + left < fold &&
           (left == 0 || front_s * back_sum < back_s * front_sum))
      front_s += all_s(&p->pieces[f++].work);
    items->cuts[i] = (item_cut){.front = f, .back = b};
  }
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void add_piece(item_list *items, size_t item, size_t piece) {
  const gt_pipe_piece *p = &items->problem->pieces[piece];
  const gt_pipe_operation *o = &p->work;
  item_cut *behind = &items->cuts[item + 1];
  behind->all_s += all_s(o);
  behind->pass_s += o->forward_s + o->input_s;
  behind->parameter_bytes += o->parameter_bytes;
  behind->held_bytes += o->activation_bytes + o->kept_bytes;
  behind->alone += p->alone;
  if (p->samples) items->first = item + 1;
}

/* Returns the bytes that cross before a piece. */
static double cut_at(const gt_pipe_search_problem *p, size_t piece) {
  return piece > 0 && piece < p->npieces ? p->pieces[piece].work.cut_bytes : 0;
}

static void find_sums(item_list *items) {
  for (size_t i = 0; i < items->n; i++) {
    const item_cut *before = &items->cuts[i];
    item_cut *behind = &items->cuts[i + 1];
    for (size_t k = before->front; k < behind->front; k++) add_piece(items, i, k);
    for (size_t k = behind->back; k < before->back; k++) add_piece(items, i, k);
    behind->all_s += before->all_s;
    behind->pass_s += before->pass_s;
    behind->parameter_bytes += before->parameter_bytes;
    behind->held_bytes += before->held_bytes;
    behind->alone += before->alone;
    if (i + 1 == items->n) continue;
    behind->cut_bytes = cut_at(items->problem, behind->front);
    if (items->chunks == 2) behind->cut_bytes += cut_at(items->problem, behind->back);
  }
}

/* Returns the piece before which the model is folded, so that about `share` of the work is before
   it. */
static size_t fold_at(const gt_pipe_search_problem *problem, double share) {
  const gt_pipe_search_problem *p = problem;
  double sum = 0, before = 0;
  size_t at = 1;
  for (size_t i = 0; i < p->npieces; i++) sum += all_s(&p->pieces[i].work);
  for (size_t i = 0; i + 1 < p->npieces; i++) {
    before += all_s(&p->pieces[i].work);
    if (before <= share * sum) at = i + 1;
  }
  return at;
}

/* Makes items. fold: with 2 chunks the first piece after the fold, 1 or more.  The caller frees the
   cuts. */
static item_list make_items(const gt_pipe_search_problem *problem, size_t chunks, size_t fold) {
  const size_t behind = problem->npieces - fold;
  item_list items = {.problem = problem,
                     .chunks = chunks,
                     .n = chunks == 1     ? problem->npieces
                          : fold < behind ? fold
                                          : behind,
                     .first = 1};
  items.cuts = GT_NEW_ARRAY(item_cut, items.n + 1);
  if (chunks == 1)
    cut_plainly(&items);
  else
    cut_folded(&items, fold);
  find_sums(&items);
  return items;
}

/* ---- lines: the orders of regions ------------------------------------------------------------

   A line is all workers in the order in which the pipeline passes them. */

typedef struct {
  size_t n;              /* workers */
  size_t *site, *number; /* region of each, and its number there */
  size_t *end;           /* of each: the first worker after its segment, which is in one region */
  bool *idle;            /* of each: the segment from it on can remain unused */
} worker_line;

typedef struct {
  worker_line *lines;
  size_t n, capacity;
  size_t nsites; /* regions with workers */
} line_list;

/* ---- one line -------------------------------------------------------------------------------- */

static void add_segment(worker_line *line, size_t site, size_t first, size_t end, bool idle) {
  const size_t behind = line->n + end - first;
  for (size_t w = first; w < end; w++) {
    line->site[line->n] = site;
    line->number[line->n] = w;
    line->end[line->n] = behind;
    line->idle[line->n++] = idle;
  }
}

/* Adds a line. split: number of workers of the first region at its start; the others are at its
   end; all: none is. */
static void add_line(line_list *lines, const gt_pipe_search_problem *p, const size_t *order,
                     size_t split) {
  size_t room = 0;
  for (size_t s = 0; s < p->nsites; s++) room += p->sites[s].workers;
  GT_GROW(lines->lines, lines->n, lines->capacity, 16);
  worker_line *line = &lines->lines[lines->n++];
  *line = (worker_line){.site = GT_NEW_ARRAY(size_t, room),
                        .number = GT_NEW_ARRAY(size_t, room),
                        .end = GT_NEW_ARRAY(size_t, room),
                        .idle = GT_NEW_ARRAY(bool, room)};
  const size_t all = p->sites[order[0]].workers;
  add_segment(line, order[0], 0, split, p->idle && split == all);
  for (size_t i = 1; i < lines->nsites; i++)
    add_segment(line, order[i], 0, p->sites[order[i]].workers, p->idle);
  add_segment(line, order[0], split, all, p->idle);
}

/* True for splits that are tried: of many workers only the first, the last, and some shares. */
static bool is_tried(size_t split, size_t workers) {
  if (workers <= SPLITS_ALL) return true;
  for (size_t k = 1; k < 8; k++)
    if (split == workers * k / 8) return true;
  return split <= 2 || split + 2 >= workers;
}

static void add_order(line_list *lines, const gt_pipe_search_problem *p, const size_t *order,
                      size_t chunks) {
  const size_t workers = p->sites[order[0]].workers;
  const bool several = lines->nsites > 1;
  if (!several || chunks == 2 || !p->labels_stay) add_line(lines, p, order, workers);
  for (size_t split = 1; several && chunks == 1 && split < workers; split++)
    if (is_tried(split, workers)) add_line(lines, p, order, split);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void swap(size_t *a, size_t *b) {
  const size_t kept = *a;
  *a = *b;
  *b = kept;
}

/* Adds all orders of order[at..]. */
static void add_orders(line_list *lines, const gt_pipe_search_problem *p, size_t *order, size_t at,
                       size_t chunks) {
  if (at >= lines->nsites) {
    add_order(lines, p, order, chunks);
    return;
  }
  for (size_t i = at; i < lines->nsites; i++) {
    swap(&order[at], &order[i]);
    add_orders(lines, p, order, at + 1, chunks);
    swap(&order[at], &order[i]);
  }
}

/* Returns the seconds of a mean cut of a micro-batch of one sample in the slower direction. */
static double distance(const gt_pipe_search_problem *p, size_t a, size_t b) {
  double bytes = 0;
  for (size_t i = 1; i < p->npieces; i++) bytes += p->pieces[i].work.cut_bytes / (double)p->npieces;
  return fmax(gt_pipe_wan_transfer_s(p->wan, a, b, bytes),
              gt_pipe_wan_transfer_s(p->wan, b, a, bytes));
}

/* Adds the order in which each region is followed by the nearest remaining one. */
static void add_nearest(line_list *lines, const gt_pipe_search_problem *p, size_t *order,
                        size_t chunks) {
  for (size_t at = 1; at < lines->nsites; at++) {
    size_t best = at;
    for (size_t i = at + 1; i < lines->nsites; i++)
      if (distance(p, order[at - 1], order[i]) < distance(p, order[at - 1], order[best])) best = i;
    swap(&order[at], &order[best]);
  }
  add_order(lines, p, order, chunks);
}

/* Makes all lines to try.  With 1 chunk and labels_stay, lines over several regions end in the
   region in which they start. */
static void make_lines(line_list *lines, const gt_pipe_search_problem *problem, size_t chunks) {
  size_t n = 0, *used = GT_NEW_ARRAY(size_t, problem->nsites),
         *order = GT_NEW_ARRAY(size_t, problem->nsites);
  for (size_t i = 0; i < problem->nsites; i++)
    if (problem->sites[i].workers > 0) used[n++] = i;
  *lines = (line_list){.nsites = n};
  for (size_t start = 0; start < n; start++) {
    if (!problem->sites[used[start]].starts) continue;
    memcpy(order, used, n * sizeof *order);
    swap(&order[0], &order[start]);
    if (n <= ORDERS_OF + 1)
      add_orders(lines, problem, order, 1, chunks);
    else
      add_nearest(lines, problem, order, chunks);
  }
  gt_free(used);
  gt_free(order);
}

static void close_lines(line_list *lines) {
  for (size_t i = 0; i < lines->n; i++) {
    gt_free(lines->lines[i].site);
    gt_free(lines->lines[i].number);
    gt_free(lines->lines[i].end);
    gt_free(lines->lines[i].idle);
  }
  gt_free(lines->lines);
  *lines = (line_list){0};
}

/* ---- cuts: the dynamic programme over items and the workers of a line ------------------------

   value[a][u]: of the best stages of items a.. on workers u.. of the line; a stage has items a..e-1
   and workers u..u+d-1 of one region:

     value[a][u] = least over e, d of  stage(a, e, u, d) * hop(e) * value[e][u + d]

   where * is max of busy times, or the sum of times for which a micro-batch passes, over what is
   not busier than the limit; hop(e) is there where the next stage is in another region.  All
   workers have a stage, but those that may be idle. */

/* From the previous worker to a worker of another region: seconds per byte in the slower direction,
   and in both; latencies of both. */
typedef struct {
  double busy_s, both_s, latency_s;
} crossing;

typedef struct {
  size_t item, workers, next; /* end of the stage, its workers, first worker of the next stage */
} move;

typedef struct {
  const item_list *items;
  const worker_line *line;
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
  const worker_line *l = c->line;
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
  const double bytes = (double)c->samples * c->items->cuts[item].cut_bytes;
  if (bytes * x->busy_s > c->limit_s) return INFINITY;
  if (!c->passing) return bytes * x->busy_s;
  return (double)c->items->chunks * x->latency_s + bytes * x->both_s;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* The workers of a stage, before its items are chosen. */
typedef struct {
  size_t first, workers, next;
  double share, power; /* samples per worker; power of the slowest */
} crew;

static bool fits(const cutter *c, const crew *w, size_t a, size_t e) {
  const item_list *t = c->items;
  const gt_pipe_search_problem *p = t->problem;
  const double memory = p->sites[c->line->site[w->first]].memory_bytes,
               parameters = t->cuts[e].parameter_bytes - t->cuts[a].parameter_bytes,
               held = t->cuts[e].held_bytes - t->cuts[a].held_bytes;
  if (memory == INFINITY) return true;
  return p->copies * parameters + w->share * (p->scratch_bytes + (double)c->flight * held) <=
         memory;
}

/* Returns the value after stage a..e-1: the hop and the best following stages. */
static double rest_s(const cutter *c, const crew *w, size_t e) {
  const double rest = c->value[at(c, e, w->next)];
  if (rest == INFINITY || w->next == c->line->n || w->next < c->line->end[w->first]) return rest;
  const double hop = hop_s(c, e, w->next);
  return c->passing ? hop + rest : fmax(hop, rest);
}

static void place(cutter *c, const crew *w, size_t a) {
  const item_list *t = c->items;
  const size_t here = at(c, a, w->first);
  for (size_t e = a + 1; e <= t->n; e++) {
    const double busy = w->share * (t->cuts[e].all_s - t->cuts[a].all_s) / w->power;
    const bool beyond = c->passing ? busy > c->limit_s : busy >= c->value[here];
    if (beyond || (w->workers > 1 && t->cuts[e].alone > t->cuts[a].alone) || !fits(c, w, a, e))
      return;
    if (a == 0 && e < t->first) continue;
    const double rest = rest_s(c, w, e),
                 pass = w->share * (t->cuts[e].pass_s - t->cuts[a].pass_s) / w->power,
                 value = c->passing ? pass + rest : fmax(busy, rest);
    if (!(value < c->value[here])) continue;
    c->value[here] = value;
    c->moves[here] = (move){e, w->workers, w->next};
  }
}

/* Tries all stages that start with an item and a worker. */
static void begin(cutter *c, size_t a, size_t u) {
  const worker_line *l = c->line;
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

static gt_pipe_found written(const cutter *c, size_t micro_batches) {
  const item_list *t = c->items;
  size_t stages = 0;
  for (size_t a = 0, u = 0; a < t->n; stages++) {
    const move *m = &c->moves[at(c, a, u)];
    a = m->item;
    u = m->next;
  }
  gt_pipe_found f = {.stages = stages,
                     .chunks = t->chunks,
                     .micro_batches = micro_batches,
                     .places = GT_NEW_ARRAY(gt_pipe_place, stages),
                     .ends = GT_NEW_ARRAY(size_t, stages * t->chunks)};
  for (size_t s = 0, a = 0, u = 0; s < stages; s++) {
    const move *m = &c->moves[at(c, a, u)];
    f.places[s] = (gt_pipe_place){c->line->site[u], c->line->number[u], m->workers};
    f.ends[s] = t->cuts[m->item].front;
    if (t->chunks == 2) f.ends[2 * stages - 1 - s] = t->cuts[a].back;
    a = m->item;
    u = m->next;
  }
  return f;
}

static void open_cutter(cutter *c, const item_list *items, const worker_line *line,
                        size_t micro_batches, size_t flight) {
  const size_t places = (items->n + 1) * (line->n + 1);
  *c = (cutter){.items = items,
                .line = line,
                .samples = items->problem->batch / micro_batches,
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

/* ---- candidates ------------------------------------------------------------------------------ */

static bool is_there(const gt_pipe_candidates *c, const gt_pipe_found *f) {
  for (size_t i = c->n; i-- > 0;)
    if (c->found[i].bound_s == f->bound_s && gt_pipe_found_same(&c->found[i], f)) return true;
  return false;
}

double gt_pipe_candidates_add(gt_pipe_candidates *c, gt_pipe_found *f) {
  c->looked++;
  const bool may = gt_pipe_found_allowed(c->problem, f) && gt_pipe_found_bound(c->problem, f);
  const double bound_s = may ? f->bound_s : INFINITY;
  if (may && !is_there(c, f)) {
    GT_GROW(c->found, c->n, c->capacity, 64);
    c->found[c->n++] = *f;
    c->least_s = fmin(c->least_s, bound_s);
  } else
    gt_pipe_found_close(f);
  return bound_s;
}

/* A slower slowest stage can be worthwhile because of latencies. */
static const double slacks[] = {1, 1.1, 1.3, 1.7, 2.5, INFINITY};
#define SLACKS (sizeof slacks / sizeof *slacks)

/* Tries the stages of a line with memory for `flight` micro-batches everywhere: for each factor on
   the slowest stage of the best ones, those with the shortest pass of a micro-batch.  Returns the
   bound of the first ones; INFINITY: none. */
static double try_line(gt_pipe_candidates *c, const item_list *items, const worker_line *line,
                       size_t micro_batches, size_t flight, size_t nslacks) {
  cutter t;
  double first_s = INFINITY;
  open_cutter(&t, items, line, micro_batches, flight);
  const double least_s = run(&t, false, INFINITY) * (1 + ROUNDING);
  bool near = least_s < INFINITY && (double)micro_batches * least_s <= HOPELESS * c->least_s;
  for (size_t i = 0; near && i < nslacks && run(&t, true, slacks[i] * least_s) < INFINITY; i++) {
    gt_pipe_found f = written(&t, micro_batches);
    const double bound_s = gt_pipe_candidates_add(c, &f);
    if (i == 0) first_s = bound_s;
    near = bound_s <= HOPELESS * c->least_s || bound_s == INFINITY;
  }
  close_cutter(&t);
  return first_s;
}

static bool is_limited(const gt_pipe_search_problem *p) {
  for (size_t s = 0; s < p->nsites; s++)
    if (p->sites[s].workers > 0 && p->sites[s].memory_bytes < INFINITY) return true;
  return false;
}

/* With limited memory, tries 1, 2, 4, .. micro-batches in flight. */
static void add_flights(gt_pipe_candidates *c, const item_list *items, const worker_line *line,
                        size_t micro_batches) {
  const size_t most = is_limited(c->problem) ? items->chunks * micro_batches : 1;
  for (size_t flight = items->chunks;; flight *= 2) {
    try_line(c, items, line, micro_batches, flight < most ? flight : most, SLACKS);
    if (flight >= most) return;
  }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Returns the numbers of micro-batches that divide the batch, ascending, or the given one.  The
   caller frees them. */
static size_t *find_micro_batches(const gt_pipe_search_problem *p, size_t *n) {
  size_t *counts = GT_NEW_ARRAY(size_t, p->batch);
  *n = 0;
  for (size_t m = 1; m <= p->batch; m++)
    if (p->batch % m == 0 && (p->micro_batches == 0 || m == p->micro_batches)) counts[(*n)++] = m;
  return counts;
}

/* A line with the least bound of its even stages for some numbers of micro-batches. */
typedef struct {
  double bound_s;
  size_t line;
} standing;

static int by_standing(const void *a, const void *b) {
  const standing *x = a, *y = b;
  if (x->bound_s != y->bound_s) return x->bound_s > y->bound_s ? 1 : -1;
  return (x->line > y->line) - (x->line < y->line);
}

/* Returns the best lines first, those to try with all numbers of micro-batches; compares many lines
   by the numbers one third and two thirds of the way through.  The caller frees the list. */
static standing *rank_lines(gt_pipe_candidates *c, const item_list *items, const line_list *lines,
                            const size_t *counts, size_t ncounts) {
  standing *list = GT_NEW_ARRAY(standing, lines->n + 1);
  for (size_t i = 0; i < lines->n; i++) {
    list[i] = (standing){INFINITY, i};
    for (size_t third = 1; third < 3 && lines->n > LINES_KEPT; third++)
      list[i].bound_s =
          fmin(list[i].bound_s,
               try_line(c, items, &lines->lines[i], counts[third * ncounts / 3], items->chunks, 1));
  }
  qsort(list, lines->n, sizeof *list, by_standing);
  return list;
}

static void add_micro_batches(gt_pipe_candidates *c, const item_list *items,
                              const line_list *lines) {
  const size_t n = lines->n < LINES_KEPT ? lines->n : LINES_KEPT;
  size_t ncounts, *counts = find_micro_batches(c->problem, &ncounts);
  standing *list = rank_lines(c, items, lines, counts, ncounts);
  for (size_t m = 0; m < ncounts; m++)
    for (size_t i = 0; i < n; i++) add_flights(c, items, &lines->lines[list[i].line], counts[m]);
  gt_free(list);
  gt_free(counts);
}

/* True for places of the fold that are tried: of many pieces only some. */
static bool is_fold(const gt_pipe_search_problem *p, size_t chunks, size_t fold) {
  static const double shares[] = {1.0 / 2, 1.0 / 3, 2.0 / 3};
  if (chunks == 1) return fold == 0;
  bool tried = p->npieces <= FOLDS_ALL;
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
    tried |= fold == fold_at(p, shares[i]);
  return tried && fold > 0;
}

static void add_chunks(gt_pipe_candidates *c, size_t chunks) {
  const size_t of_kind = gt_pipe_chunks(c->problem->kind);
  line_list lines;
  if ((of_kind > 0 && of_kind != chunks) || c->problem->npieces < chunks) return;
  make_lines(&lines, c->problem, chunks);
  for (size_t fold = 0; fold < c->problem->npieces; fold++) {
    if (!is_fold(c->problem, chunks, fold)) continue;
    const item_list items = make_items(c->problem, chunks, fold);
    add_micro_batches(c, &items, &lines);
    gt_free(items.cuts);
  }
  close_lines(&lines);
}

void gt_pipe_candidates_find(gt_pipe_candidates *candidates,
                             const gt_pipe_search_problem *problem) {
  *candidates = (gt_pipe_candidates){.problem = problem, .least_s = INFINITY};
  add_chunks(candidates, 1);
  add_chunks(candidates, 2);
}

void gt_pipe_candidates_keep(gt_pipe_candidates *candidates, size_t n) {
  while (candidates->n > n) gt_pipe_found_close(&candidates->found[--candidates->n]);
}
