/* The candidates of a search: for every number of micro-batches, order of regions and number of
   chunks, stages by the dynamic programme. */
#include <math.h>
#include <stdlib.h>

#include "search.h"

#define ROUNDING   1e-12
#define HOPELESS   2.0          /* times the least bound: no more like it are looked at */
#define FOLDS_ALL  ((size_t)16) /* pieces of which all places of a fold are tried */
#define LINES_KEPT ((size_t)12) /* lines for which all numbers of micro-batches are tried */

static bool is_there(const gt_pipe_candidates *c, const gt_pipe_found *f) {
  for (size_t i = c->n; i-- > 0;)
    if (c->found[i].bound_s == f->bound_s && gt_pipe_found_same(&c->found[i], f)) return true;
  return false;
}

/* Takes it, or closes it.  false: its bound is far from the least one. */
static bool add(gt_pipe_candidates *c, gt_pipe_found *f) {
  c->looked++;
  const bool may =
      gt_pipe_found_allowed(c->problem, f) && gt_pipe_found_bound(c->problem, f) && !is_there(c, f);
  const double bound_s = may ? f->bound_s : 0;
  if (may) {
    GT_GROW(c->found, c->n, c->capacity, 64);
    c->found[c->n++] = *f;
    c->least_s = fmin(c->least_s, bound_s);
  } else
    gt_pipe_found_close(f);
  return bound_s <= HOPELESS * c->least_s;
}

/* Latency may make it worth while that the slowest stage is slower than it must be. */
static const double slacks[] = {1, 1.1, 1.3, 1.7, 2.5, INFINITY};

static void add_line(gt_pipe_candidates *c, const gt_pipe_items *items, const gt_pipe_line *line,
                     size_t micros, size_t flight) {
  const double least_s = gt_pipe_cuts_least(items, line, micros, flight) * (1 + ROUNDING);
  if (least_s == INFINITY || (double)micros * least_s > HOPELESS * c->least_s) return;
  for (size_t i = 0; i < sizeof slacks / sizeof *slacks; i++) {
    gt_pipe_found f;
    if (!gt_pipe_cuts_find(&f, items, line, micros, flight, slacks[i] * least_s)) return;
    if (!add(c, &f)) return;
  }
}

static bool is_limited(const gt_pipe_search_problem *p) {
  for (size_t s = 0; s < p->nsites; s++)
    if (p->sites[s].memory_bytes < INFINITY) return true;
  return false;
}

/* Where memory is limited: with room for 1, 2, 4, .. micro-batches. */
static void add_flights(gt_pipe_candidates *c, const gt_pipe_items *items, const gt_pipe_line *line,
                        size_t micros) {
  const size_t most = is_limited(c->problem) ? items->chunks * micros : 1;
  for (size_t flight = items->chunks;; flight *= 2) {
    add_line(c, items, line, micros, flight < most ? flight : most);
    if (flight >= most) return;
  }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static size_t count_micros(const gt_pipe_search_problem *p) {
  size_t n = 0;
  for (size_t m = 1; m <= p->batch; m++) n += p->batch % m == 0;
  return n;
}

/* The i-th number that divides the batch. */
static size_t micros_at(const gt_pipe_search_problem *p, size_t i) {
  size_t m = 1;
  for (;; m++)
    if (p->batch % m == 0 && i-- == 0) return m;
}

/* A line, and the least bound of its even stages with some numbers of micro-batches. */
typedef struct {
  double bound_s;
  size_t line;
} standing;

static int by_standing(const void *a, const void *b) {
  const standing *x = a, *y = b;
  if (x->bound_s != y->bound_s) return x->bound_s > y->bound_s ? 1 : -1;
  return (x->line > y->line) - (x->line < y->line);
}

static double bound_with(gt_pipe_candidates *c, const gt_pipe_items *items,
                         const gt_pipe_line *line, size_t micros) {
  const size_t flight = items->chunks;
  const double least_s = gt_pipe_cuts_least(items, line, micros, flight) * (1 + ROUNDING);
  gt_pipe_found f;
  if (least_s == INFINITY || (double)micros * least_s > HOPELESS * c->least_s ||
      !gt_pipe_cuts_find(&f, items, line, micros, flight, least_s))
    return INFINITY;
  const bool may = gt_pipe_found_allowed(c->problem, &f) && gt_pipe_found_bound(c->problem, &f);
  const double bound_s = may ? f.bound_s : INFINITY;
  add(c, &f);
  return bound_s;
}

/* The lines that are worth all numbers of micro-batches, the best first, of many only some: by the
   numbers a third and two thirds of the way through those that divide the batch.  The caller frees
   the list. */
static standing *rank_lines(gt_pipe_candidates *c, const gt_pipe_items *items,
                            const gt_pipe_lines *lines, size_t *n) {
  const gt_pipe_search_problem *p = c->problem;
  const size_t numbers = count_micros(p);
  standing *list = GT_NEW_ARRAY(standing, lines->n + 1);
  for (size_t i = 0; i < lines->n; i++) {
    list[i] = (standing){INFINITY, i};
    for (size_t third = 1; third < 3 && lines->n > LINES_KEPT; third++) {
      const size_t m = p->micros > 0 ? p->micros : micros_at(p, third * numbers / 3);
      list[i].bound_s = fmin(list[i].bound_s, bound_with(c, items, &lines->lines[i], m));
    }
  }
  qsort(list, lines->n, sizeof *list, by_standing);
  *n = lines->n < LINES_KEPT ? lines->n : LINES_KEPT;
  return list;
}

static void add_micros(gt_pipe_candidates *c, const gt_pipe_items *items,
                       const gt_pipe_lines *lines) {
  const gt_pipe_search_problem *p = c->problem;
  size_t n;
  standing *list = rank_lines(c, items, lines, &n);
  for (size_t m = 1; m <= p->batch; m++) {
    if (p->batch % m != 0 || (p->micros > 0 && m != p->micros)) continue;
    for (size_t i = 0; i < n; i++) add_flights(c, items, &lines->lines[list[i].line], m);
  }
  gt_free(list);
}

/* Of many pieces only some places of the fold. */
static bool is_fold(const gt_pipe_search_problem *p, size_t chunks, size_t fold) {
  static const double shares[] = {1.0 / 2, 1.0 / 3, 2.0 / 3};
  if (chunks == 1) return fold == 0;
  bool tried = p->npieces <= FOLDS_ALL;
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
    tried |= fold == gt_pipe_items_fold(p, shares[i]);
  return tried && fold > 0;
}

static void add_chunks(gt_pipe_candidates *c, size_t chunks) {
  const size_t of_kind = gt_pipe_chunks(c->problem->kind);
  gt_pipe_lines lines;
  if (of_kind > 0 && of_kind != chunks) return;
  gt_pipe_lines_make(&lines, c->problem, chunks);
  for (size_t fold = 0; fold < c->problem->npieces; fold++) {
    gt_pipe_items items;
    if (!is_fold(c->problem, chunks, fold)) continue;
    if (gt_pipe_items_open(&items, c->problem, chunks, fold)) add_micros(c, &items, &lines);
    gt_pipe_items_close(&items);
  }
  gt_pipe_lines_close(&lines);
}

void gt_pipe_candidates_find(gt_pipe_candidates *candidates,
                             const gt_pipe_search_problem *problem) {
  *candidates = (gt_pipe_candidates){.problem = problem, .least_s = INFINITY};
  add_chunks(candidates, 1);
  add_chunks(candidates, 2);
}

void gt_pipe_candidates_add(gt_pipe_candidates *candidates, gt_pipe_found *found) {
  add(candidates, found);
}

void gt_pipe_candidates_keep(gt_pipe_candidates *candidates, size_t n) {
  while (candidates->n > n) gt_pipe_found_close(&candidates->found[--candidates->n]);
}
