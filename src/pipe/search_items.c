/* What stages consist of in a search: pieces, or in a folded pipeline pairs of runs of pieces. */
#include <math.h>

#include "search.h"

static double all_s(const gt_pipe_operation *o) {
  return o->forward_s + o->input_s + o->weight_s;
}

/* ---- the cuts -------------------------------------------------------------------------------- */

static void cut_plainly(gt_pipe_items *items) {
  for (size_t i = 0; i <= items->n; i++) {
    items->front[i] = i;
    items->back[i] = items->n;
  }
}

/* The side with fewer pieces has one in each item; the other one follows it in its share of the
   work. */
static void cut_folded(gt_pipe_items *items, size_t fold) {
  const gt_pipe_search_problem *p = items->problem;
  const bool fewer_front = fold < p->npieces - fold;
  size_t f = 0, b = p->npieces;
  double front_s = 0, back_s = 0, front_sum = 0, back_sum = 0;
  for (size_t i = 0; i < p->npieces; i++)
    *(i < fold ? &front_sum : &back_sum) += all_s(&p->pieces[i].work);
  items->front[0] = 0;
  items->back[0] = p->npieces;
  for (size_t i = 1; i <= items->n; i++) {
    const size_t left = items->n - i; /* items that need a piece of both sides */
    front_s += all_s(&p->pieces[f++].work);
    back_s += all_s(&p->pieces[--b].work);
    while (fewer_front && b > fold + left && (left == 0 || back_s * front_sum < front_s * back_sum))
      back_s += all_s(&p->pieces[--b].work);
    while (!fewer_front && f + left < fold &&
           (left == 0 || front_s * back_sum < back_s * front_sum))
      front_s += all_s(&p->pieces[f++].work);
    items->front[i] = f;
    items->back[i] = b;
  }
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void add_piece(gt_pipe_items *items, size_t item, size_t piece) {
  const gt_pipe_piece *p = &items->problem->pieces[piece];
  const gt_pipe_operation *o = &p->work;
  items->all_s[item + 1] += all_s(o);
  items->pass_s[item + 1] += o->forward_s + o->input_s;
  items->parameter_bytes[item + 1] += o->parameter_bytes;
  items->held_bytes[item + 1] += o->activation_bytes + o->kept_bytes;
  items->alone[item + 1] += p->alone;
  if (p->samples) items->first = item + 1;
}

static void add_sums(gt_pipe_items *items, size_t item) {
  items->all_s[item + 1] += items->all_s[item];
  items->pass_s[item + 1] += items->pass_s[item];
  items->parameter_bytes[item + 1] += items->parameter_bytes[item];
  items->held_bytes[item + 1] += items->held_bytes[item];
  items->alone[item + 1] += items->alone[item];
}

/* Bytes that cross in front of a piece. */
static double cut_at(const gt_pipe_search_problem *p, size_t piece) {
  return piece > 0 && piece < p->npieces ? p->pieces[piece].work.cut_bytes : 0;
}

static void find_sums(gt_pipe_items *items) {
  for (size_t i = 0; i < items->n; i++) {
    for (size_t k = items->front[i]; k < items->front[i + 1]; k++) add_piece(items, i, k);
    for (size_t k = items->back[i + 1]; k < items->back[i]; k++) add_piece(items, i, k);
    add_sums(items, i);
  }
  for (size_t i = 1; i < items->n; i++) {
    items->cut_bytes[i] = cut_at(items->problem, items->front[i]);
    if (items->chunks == 2) items->cut_bytes[i] += cut_at(items->problem, items->back[i]);
  }
}

size_t gt_pipe_items_fold(const gt_pipe_search_problem *problem, double share) {
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

bool gt_pipe_items_open(gt_pipe_items *items, const gt_pipe_search_problem *problem, size_t chunks,
                        size_t fold) {
  const size_t behind = problem->npieces - fold;
  *items = (gt_pipe_items){.problem = problem, .chunks = chunks};
  if (chunks == 2 && problem->npieces < 2) return false;
  items->n = chunks == 1 ? problem->npieces : fold < behind ? fold : behind;
  const size_t room = items->n + 1;
  items->front = GT_NEW_ARRAY(size_t, room);
  items->back = GT_NEW_ARRAY(size_t, room);
  items->all_s = GT_NEW_ARRAY(double, room);
  items->pass_s = GT_NEW_ARRAY(double, room);
  items->parameter_bytes = GT_NEW_ARRAY(double, room);
  items->held_bytes = GT_NEW_ARRAY(double, room);
  items->alone = GT_NEW_ARRAY(size_t, room);
  items->cut_bytes = GT_NEW_ARRAY(double, room);
  items->first = 1;
  if (chunks == 1)
    cut_plainly(items);
  else
    cut_folded(items, fold);
  find_sums(items);
  return true;
}

void gt_pipe_items_close(gt_pipe_items *items) {
  gt_free(items->front);
  gt_free(items->back);
  gt_free(items->all_s);
  gt_free(items->pass_s);
  gt_free(items->parameter_bytes);
  gt_free(items->held_bytes);
  gt_free(items->alone);
  gt_free(items->cut_bytes);
  *items = (gt_pipe_items){0};
}
