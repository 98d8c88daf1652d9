/* Repeated stretches of a run: how often each is repeated, and how large the error of that may
   be. */
#include <math.h>

#include "stride.h"

#define GOLDEN 0.6180339887498949
#define SILVER 0.4142135623730951

void gt_sim_spread_add(spread *x, double time_s, double work, double n, double pace_s) {
  if (x->time_s > 0) {
    double d = work - x->work * time_s / x->time_s, off_s = d * pace_s;
    x->pairs++;
    x->relative2 += d * d > work * work ? 0.5 : work > 0 ? d * d / (work * work) / 2 : 0;
    x->var_s2 += n * n * off_s * off_s / 2;
  } else
    x->alone_s2 += n * n * time_s * time_s;
  x->time_s = time_s;
  x->work = work;
}

void gt_sim_spread_forget(spread *x) {
  x->time_s = 0;
}

double gt_sim_spread_variance_s2(const spread *x) {
  return x->var_s2 + (x->pairs > 0 ? x->alone_s2 * x->relative2 / (double)x->pairs : 0);
}

static double next_often(turns *t) {
  t->carry += t->often;
  double n = floor(t->carry);
  t->carry -= n;
  return n;
}

static double next_of_time(turns *t, double time_s) {
  t->sum_s += time_s;
  t->n++;
  t->phase = fmod(t->phase + GOLDEN, 1);
  t->carry = fmod(t->carry + SILVER, 1);
  return floor(t->often * (0.5 + t->phase) * t->sum_s / t->n / time_s + t->carry);
}

double gt_sim_turns_next(turns *t, bool links_change, double time_s) {
  if (!isfinite(t->often)) return t->often;
  return links_change ? next_of_time(t, time_s) : next_often(t);
}
