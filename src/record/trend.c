/* The training loss over time, and the check at its end that the model learnt. */
#include <math.h>
#include <stdio.h>

#include "geotrain/record.h"

#define LAST (GT_TREND_PARTS - GT_TREND_PARTS / 5) /* the first part of the last 20 % */
/* with fewer steps in these parts the run has hardly begun: no result */
#define FEW_STEPS 50
/* maximum relative distance from ln(classes) */
#define GUESSING 0.02
#define GREW     3.0

void gt_trend_add(gt_trend *t, double done, double loss_sum, int64_t samples) {
  size_t part = done > 0 ? (size_t)(done * GT_TREND_PARTS) : 0;
  if (samples <= 0 || !isfinite(loss_sum)) return;
  if (part >= GT_TREND_PARTS) part = GT_TREND_PARTS - 1;
  t->loss_sum[part] += loss_sum;
  t->samples[part] += samples;
  t->steps[part]++;
}

static double loss_of(const gt_trend *t, size_t part) {
  return t->loss_sum[part] / (double)t->samples[part];
}

/* Computes the lowest, highest and mean loss of the last 20 %; false if it has too few steps. */
static bool end_of(const gt_trend *t, double *lowest, double *highest, double *mean) {
  int64_t steps = 0, samples = 0;
  double sum = 0;
  *lowest = INFINITY;
  *highest = -INFINITY;
  for (size_t i = LAST; i < GT_TREND_PARTS; i++) {
    if (t->samples[i] == 0) continue;
    *lowest = fmin(*lowest, loss_of(t, i));
    *highest = fmax(*highest, loss_of(t, i));
    steps += t->steps[i];
    samples += t->samples[i];
    sum += t->loss_sum[i];
  }
  *mean = sum / (double)samples;
  return steps >= FEW_STEPS;
}

static double least_of(const gt_trend *t) {
  double least = INFINITY;
  for (size_t i = 0; i < GT_TREND_PARTS; i++)
    if (t->samples[i] > 0) least = fmin(least, loss_of(t, i));
  return least;
}

bool gt_trend_collapsed(const gt_trend *t, size_t classes, char *text, size_t size) {
  double lowest, highest, mean, guess = log((double)classes), least = least_of(t);
  text[0] = '\0';
  if (!end_of(t, &lowest, &highest, &mean)) return false;
  if (lowest >= (1 - GUESSING) * guess && highest <= (1 + GUESSING) * guess)
    snprintf(text, size,
             "loss %.3f in the last 20 %% of the training: guessing among %zu classes gives %.3f",
             mean, classes, guess);
  else if (lowest > GREW * least)
    snprintf(text, size,
             "loss %.3f in the last 20 %% of the training: above 3 times its minimum, %.3f", mean,
             least);
  return text[0] != '\0';
}
