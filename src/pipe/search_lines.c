/* The orders in which a pipeline passes the workers of all regions. */
#include <math.h>
#include <string.h>

#include "search.h"

#define ORDERS_OF  ((size_t)3) /* other regions of which all orders are tried */
#define SPLITS_ALL ((size_t)9) /* workers of the first region of which all splits are tried */

double gt_pipe_wan_occupied_s(const gt_pipe_wan *wan, size_t from, size_t to, double bytes) {
  const double rates[] = {gt_link_goodput(&wan->links[from * wan->nregions + to]),
                          wan->up_bps ? wan->up_bps[from] : 0,
                          wan->down_bps ? wan->down_bps[to] : 0};
  double least = INFINITY;
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
    if (rates[i] > 0) least = fmin(least, rates[i]);
  return from == to ? 0 : 8 * bytes / least;
}

double gt_pipe_wan_transfer_s(const gt_pipe_wan *wan, size_t from, size_t to, double bytes) {
  if (from == to) return 0;
  return wan->links[from * wan->nregions + to].latency_s +
         gt_pipe_wan_occupied_s(wan, from, to, bytes);
}

/* ---- one line -------------------------------------------------------------------------------- */

static void add_segment(gt_pipe_line *line, size_t site, size_t first, size_t end, bool idle) {
  const size_t behind = line->n + end - first;
  for (size_t w = first; w < end; w++) {
    line->site[line->n] = site;
    line->number[line->n] = w;
    line->end[line->n] = behind;
    line->idle[line->n++] = idle;
  }
}

/* split: workers of the first region that begin the line; the others end it; all: none does. */
static void add_line(gt_pipe_lines *lines, const gt_pipe_search_problem *p, const size_t *order,
                     size_t split) {
  size_t room = 0;
  for (size_t s = 0; s < p->nsites; s++) room += p->sites[s].workers;
  GT_GROW(lines->lines, lines->n, lines->capacity, 16);
  gt_pipe_line *line = &lines->lines[lines->n++];
  *line = (gt_pipe_line){.site = GT_NEW_ARRAY(size_t, room),
                         .number = GT_NEW_ARRAY(size_t, room),
                         .end = GT_NEW_ARRAY(size_t, room),
                         .idle = GT_NEW_ARRAY(bool, room)};
  const size_t all = p->sites[order[0]].workers;
  add_segment(line, order[0], 0, split, p->idle && split == all);
  for (size_t i = 1; i < p->nsites; i++)
    add_segment(line, order[i], 0, p->sites[order[i]].workers, p->idle);
  add_segment(line, order[0], split, all, p->idle);
}

/* Of many workers only some splits: the first and the last ones, and shares. */
static bool is_tried(size_t split, size_t workers) {
  if (workers <= SPLITS_ALL) return true;
  for (size_t k = 1; k < 8; k++)
    if (split == workers * k / 8) return true;
  return split <= 2 || split + 2 >= workers;
}

static void add_order(gt_pipe_lines *lines, const gt_pipe_search_problem *p, const size_t *order,
                      size_t chunks) {
  const size_t workers = p->sites[order[0]].workers;
  const bool several = p->nsites > 1;
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

/* All orders of order[at..]. */
static void add_orders(gt_pipe_lines *lines, const gt_pipe_search_problem *p, size_t *order,
                       size_t at, size_t chunks) {
  if (at >= p->nsites) {
    add_order(lines, p, order, chunks);
    return;
  }
  for (size_t i = at; i < p->nsites; i++) {
    swap(&order[at], &order[i]);
    add_orders(lines, p, order, at + 1, chunks);
    swap(&order[at], &order[i]);
  }
}

/* Seconds of a mean cut of a micro-batch of one sample in the slower direction. */
static double distance(const gt_pipe_search_problem *p, size_t a, size_t b) {
  double bytes = 0;
  for (size_t i = 1; i < p->npieces; i++) bytes += p->pieces[i].work.cut_bytes / (double)p->npieces;
  return fmax(gt_pipe_wan_transfer_s(p->wan, a, b, bytes),
              gt_pipe_wan_transfer_s(p->wan, b, a, bytes));
}

/* From each region to the nearest one that is left. */
static void add_nearest(gt_pipe_lines *lines, const gt_pipe_search_problem *p, size_t *order,
                        size_t chunks) {
  for (size_t at = 1; at < p->nsites; at++) {
    size_t best = at;
    for (size_t i = at + 1; i < p->nsites; i++)
      if (distance(p, order[at - 1], order[i]) < distance(p, order[at - 1], order[best])) best = i;
    swap(&order[at], &order[best]);
  }
  add_order(lines, p, order, chunks);
}

void gt_pipe_lines_make(gt_pipe_lines *lines, const gt_pipe_search_problem *problem,
                        size_t chunks) {
  const size_t n = problem->nsites;
  size_t *order = GT_NEW_ARRAY(size_t, n);
  *lines = (gt_pipe_lines){0};
  for (size_t start = 0; start < n; start++) {
    if (!problem->sites[start].starts) continue;
    for (size_t i = 0; i < n; i++) order[i] = i;
    swap(&order[0], &order[start]);
    if (n <= ORDERS_OF + 1)
      add_orders(lines, problem, order, 1, chunks);
    else
      add_nearest(lines, problem, order, chunks);
  }
  gt_free(order);
}

void gt_pipe_lines_close(gt_pipe_lines *lines) {
  for (size_t i = 0; i < lines->n; i++) {
    gt_free(lines->lines[i].site);
    gt_free(lines->lines[i].number);
    gt_free(lines->lines[i].end);
    gt_free(lines->lines[i].idle);
  }
  gt_free(lines->lines);
  *lines = (gt_pipe_lines){0};
}
