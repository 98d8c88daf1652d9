/* Traces: rate and latency over time, piecewise constant and periodic.  Computes the bits that pass
   until a time, and the time at which bits have passed. */
#include "trace.h"

#include <math.h>

/* ---- building -------------------------------------------------------------------------------- */

static void push(gt_link_trace *trace, gt_segment segment) {
  GT_GROW(trace->segments, trace->n, trace->capacity, 64);
  trace->segments[trace->n++] = segment;
}

void gt_trace_add(gt_link_trace *trace, double from_s, double rate_bps, double latency_s) {
  if (trace->n) {
    const gt_segment *last = &trace->segments[trace->n - 1];
    bool same_latency = last->latency_s == latency_s || (last->latency_s < 0.0 && latency_s < 0.0);
    if (last->rate_bps == rate_bps && same_latency) return;
  }
  push(trace, (gt_segment){.from_s = from_s, .rate_bps = rate_bps, .latency_s = latency_s});
}

void gt_trace_end(gt_link_trace *trace, double period_s) {
  push(trace, (gt_segment){.from_s = period_s, .latency_s = -1.0});
  trace->n--;
  trace->least_latency_s = -1.0;
  trace->latency_everywhere = true;
  for (size_t i = 0; i < trace->n; i++) {
    gt_segment *s = &trace->segments[i];
    double length_s = s[1].from_s - s->from_s;
    s[1].bits = s->bits + s->rate_bps * length_s;
    if (s->latency_s < 0.0) {
      trace->latency_everywhere = false;
      continue;
    }
    trace->latency_integral_s += s->latency_s * length_s;
    trace->latency_covers_s += length_s;
    if (trace->least_latency_s < 0.0 || s->latency_s < trace->least_latency_s)
      trace->least_latency_s = s->latency_s;
  }
}

void gt_link_trace_close(gt_link_trace *trace) {
  if (!trace) return;
  gt_free(trace->segments);
  gt_free(trace);
}

gt_link_trace *gt_trace_stretched(const gt_link_trace *trace, double by) {
  gt_link_trace *to = GT_NEW(gt_link_trace);
  for (size_t i = 0; i < trace->n; i++) {
    const gt_segment *s = &trace->segments[i];
    gt_trace_add(to, s->from_s * by, s->rate_bps, s->latency_s);
  }
  gt_trace_end(to, trace->segments[trace->n].from_s * by);
  return to;
}

/* ---- bits and times -------------------------------------------------------------------------- */

double gt_link_trace_period_s(const gt_link_trace *trace) {
  return trace->segments[trace->n].from_s;
}

static double period_bits(const gt_link_trace *trace) {
  return trace->segments[trace->n].bits;
}

double gt_trace_mean_bps(const gt_link_trace *trace) {
  return period_bits(trace) / gt_link_trace_period_s(trace);
}

/* Sets *whole such that x = whole * of + the result, which is in [0, of).  fmod is exact, so
   precision does not depend on the number of periods. */
static double split(double x, double of, double *whole) {
  double rest = fmod(x, of);
  if (rest < 0.0) rest += of;
  *whole = round((x - rest) / of);
  return rest;
}

/* Returns the segment that contains a position in the period. */
static const gt_segment *segment_at(const gt_link_trace *trace, double place_s) {
  /* Invariant: `low` begins at or before the position, `high` after it (or is the sentinel). */
  size_t low = 0, high = trace->n;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (trace->segments[middle].from_s <= place_s)
      low = middle;
    else
      high = middle;
  }
  return &trace->segments[low];
}

static double bits_at(const gt_link_trace *trace, double place_s) {
  const gt_segment *s = segment_at(trace, place_s);
  return s->bits + s->rate_bps * (place_s - s->from_s);
}

/* Returns the first position in the period at which `bits` (above 0, at most a period's) have
   passed. */
static double place_of(const gt_link_trace *trace, double bits) {
  /* Invariant: fewer than `bits` have passed before low, at least `bits` before high. */
  size_t low = 0, high = trace->n;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (trace->segments[middle].bits < bits)
      low = middle;
    else
      high = middle;
  }
  const gt_segment *s = &trace->segments[low];
  return fmin(s->from_s + (bits - s->bits) / s->rate_bps, s[1].from_s);
}

double gt_link_trace_bits(const gt_link_trace *trace, double t_s) {
  double whole, place_s = split(t_s, gt_link_trace_period_s(trace), &whole);
  return whole * period_bits(trace) + bits_at(trace, place_s);
}

double gt_trace_wait_s(const gt_link_trace *trace, double t_s, double bits) {
  if (bits <= 0.0) return 0.0;
  double whole, place_s = split(t_s, gt_link_trace_period_s(trace), &whole);
  double rest = split(bits_at(trace, place_s) + bits, period_bits(trace), &whole);
  if (rest <= 0.0) { /* the last bit of a period passes before a pause at its end */
    rest = period_bits(trace);
    whole -= 1.0;
  }
  return fmax(whole * gt_link_trace_period_s(trace) + place_of(trace, rest) - place_s, 0.0);
}

/* ---- latency --------------------------------------------------------------------------------- */

double gt_link_trace_latency_min_s(const gt_link_trace *trace) {
  return trace->least_latency_s;
}

double gt_trace_latency_least(const gt_link_trace *trace, double own_s) {
  if (trace->least_latency_s < 0.0) return own_s;
  return trace->latency_everywhere ? trace->least_latency_s : fmin(trace->least_latency_s, own_s);
}

double gt_trace_latency_mean(const gt_link_trace *trace, double own_s) {
  double period_s = gt_link_trace_period_s(trace);
  return (trace->latency_integral_s + fmax(period_s - trace->latency_covers_s, 0.0) * own_s) /
         period_s;
}

double gt_trace_latency_at(const gt_link_trace *trace, double t_s, double own_s) {
  if (trace->least_latency_s < 0.0) return own_s;
  double whole;
  const gt_segment *s = segment_at(trace, split(t_s, gt_link_trace_period_s(trace), &whole));
  return s->latency_s < 0.0 ? own_s : s->latency_s;
}
