/* Fits the transport term. gt_wire_send itself predicts each measured message; the sum of squared
   relative errors, each bounded, is minimised over set-up round trips, window, bandwidth and
   latency.  The simplest term that does nearly as well as the best is taken. */
#include <math.h>

#include "internal.h"

#define SEGMENT     1448.0 /* payload of a TCP segment on Ethernet */
#define EAGER_BYTES 65536.0
#define WINDOWS     26
#define NEARLY      0.01 /* relative error: a smaller gain does not justify another parameter */
#define BOUND       0.3
#define LEAST_STEP  0.002 /* smallest step of the search, relative */

const size_t gt_probe_sizes[GT_PROBE_SIZES] = {64,
                                               (size_t)16 << 10,
                                               (size_t)64 << 10,
                                               (size_t)256 << 10,
                                               (size_t)1 << 20,
                                               (size_t)4 << 20,
                                               (size_t)16 << 20};

/* Returns the one-way time of a message of this size after a pause; size 64 means a header
   alone. */
static double predict(const gt_link_spec *spec, size_t size, double pause_s) {
  gt_wire wire = {.link = gt_link_start(0, 0, 1, 0)};
  const gt_ns ready =
      gt_wire_send(&wire, spec, NULL, GT_FRAME_HEADER_BYTES, 0).arrive + gt_from_seconds(pause_s);
  size_t left = size > GT_FRAME_HEADER_BYTES ? size : 0;
  gt_ns arrive;
  do {
    const size_t bytes = gt_frame_take(&left, GT_FRAME_HEADER_BYTES, false);
    arrive = gt_wire_send(&wire, spec, NULL, bytes, ready).arrive;
  } while (left > 0);
  return gt_seconds(arrive - ready);
}

/* Returns the one-way time of the first message. */
static double predict_fresh(const gt_link_spec *spec) {
  gt_wire wire = {.link = gt_link_start(0, 0, 1, 0)};
  return gt_seconds(
      gt_wire_send(&wire, spec, NULL, GT_PROBE_FRESH + GT_FRAME_HEADER_BYTES, 0).arrive);
}

/* Computes the relative errors of all measured sizes; returns their number. */
static int errors(const gt_probe_link *l, gt_link_spec *spec, double e[GT_PROBE_SIZES]) {
  int n = 0;
  spec->back_s = spec->latency_s;
  for (int i = 0; i < GT_PROBE_SIZES; i++)
    if (l->time_s[i] > 0) e[n++] = predict(spec, gt_probe_sizes[i], l->pause_s) / l->time_s[i] - 1;
  return n;
}

/* Squared while errors are small, bounded for large ones (Geman and McClure 1987): a size that does
   not follow the others (a shaper's burst lets small messages pass at once) has limited weight. */
static double cost(const gt_probe_link *l, gt_link_spec *spec) {
  double e[GT_PROBE_SIZES], sum = 0;
  int n = errors(l, spec, e);
  for (int i = 0; i < n; i++) sum += e[i] * e[i] / (1 + e[i] * e[i] / (BOUND * BOUND));
  return n > 0 ? sqrt(sum / n) : 0;
}

static double mean_error(const gt_probe_link *l, gt_link_spec *spec) {
  double e[GT_PROBE_SIZES], sum = 0;
  int n = errors(l, spec, e);
  for (int i = 0; i < n; i++) sum += e[i] * e[i];
  return n > 0 ? sqrt(sum / n) : 0;
}

/* Varies bandwidth and latency in turn, by ever smaller factors, until the error is minimal. */
static double descend(const gt_probe_link *l, gt_link_spec *spec) {
  double least = cost(l, spec);
  for (double step = 0.3; step > LEAST_STEP;) {
    bool better = false;
    for (int k = 0; k < 4; k++) {
      gt_link_spec moved = *spec;
      double factor = k % 2 ? 1 / (1 + step) : 1 + step;
      *(k < 2 ? &moved.bandwidth_bps : &moved.latency_s) *= factor;
      double error = cost(l, &moved);
      if (error >= least) continue;
      least = error;
      *spec = moved;
      better = true;
    }
    if (!better) step /= 2;
  }
  return least;
}

typedef struct {
  gt_link_spec spec;
  double error;
} candidate;

static void consider(const gt_probe_link *l, double setup, double window, candidate *best) {
  gt_link_spec spec = {.bandwidth_bps = l->bandwidth_bps,
                       .latency_s = l->latency_s,
                       .setup_rtts = setup,
                       .eager_bytes = setup > 0 ? EAGER_BYTES : 0,
                       .window_bytes = window,
                       .idle_s = window > 0 ? l->pause_s / 2 : 0};
  double error = descend(l, &spec);
  if (error < best->error) *best = (candidate){spec, error};
}

/* Returns the w-th window of the grid: 0, then 2 to 1000 segments. */
static double window_of(int w) {
  return w == 0 ? 0 : SEGMENT * floor(2 * pow(500, (w - 1.0) / (WINDOWS - 1)) + 0.5);
}

/* Finds the best fit of each kind: neither, set-up, window, both. */
static void search(const gt_probe_link *l, candidate best[4]) {
  static const double setups[] = {0, 0.5, 1, 1.5, 2};
  for (int i = 0; i < 4; i++) best[i].error = INFINITY;
  for (size_t s = 0; s < sizeof setups / sizeof *setups; s++)
    for (int w = 0; w <= WINDOWS; w++) {
      consider(l, setups[s], window_of(w), &best[(s > 0) + 2 * (w > 0)]);
    }
}

/* Finds the initial window of a fresh connection: the one that predicts the first message best; 0:
   the first message needs none. */
static void fit_fresh(gt_probe_link *link, gt_link_spec *spec) {
  double least = link->fresh_s > 0 ? fabs(predict_fresh(spec) / link->fresh_s - 1) - NEARLY : 0;
  for (int w = 1; w <= WINDOWS && spec->window_bytes <= 0 && link->fresh_s > 0; w++) {
    gt_link_spec slow = *spec;
    slow.window_bytes = window_of(w);
    double error = fabs(predict_fresh(&slow) / link->fresh_s - 1);
    if (error >= least) continue;
    least = error;
    link->window_bytes = slow.window_bytes;
  }
  spec->window_bytes = link->window_bytes;
  link->fresh_predicted_s = predict_fresh(spec);
}

void gt_probe_fit(gt_probe_link *link) {
  candidate best[4];
  if (link->bandwidth_bps <= 0 || link->latency_s <= 0) return;
  search(link, best);
  double least = INFINITY;
  for (int i = 0; i < 4; i++) least = fmin(least, best[i].error);
  int taken = 0;
  while (best[taken].error > least + NEARLY) taken++;
  gt_link_spec *spec = &best[taken].spec;
  link->fit_bandwidth_bps = spec->bandwidth_bps;
  link->fit_latency_s = spec->latency_s;
  link->setup_rtts = spec->setup_rtts;
  link->eager_bytes = spec->eager_bytes;
  link->window_bytes = spec->window_bytes;
  link->fit_error = mean_error(link, spec);
  for (int i = 0; i < GT_PROBE_SIZES; i++)
    if (link->time_s[i] > 0) link->predicted_s[i] = predict(spec, gt_probe_sizes[i], link->pause_s);
  /* Linux resets the window after an idle time of one retransmission time-out: at least 200 ms plus
     a round trip. */
  link->idle_s = spec->window_bytes > 0 ? 0.2 + 2 * spec->latency_s : 0;
  fit_fresh(link, spec);
}
