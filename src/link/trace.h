/* trace: the internal interface of a trace, for the files of link. */
#pragma once

#include "geotrain/link.h"

/* An interval of constant rate and latency.  The last one of a trace is a sentinel at the end of
   its period. */
typedef struct {
  double from_s, rate_bps, latency_s; /* negative latency: use the link's */
  double bits;                        /* bits that have passed before from_s */
} gt_segment;

struct gt_link_trace {
  gt_segment *segments; /* n, then the sentinel */
  size_t n, capacity;
  double least_latency_s;    /* negative: no segment has a latency */
  double latency_integral_s; /* over the segments with a latency: latency times duration */
  double latency_covers_s;   /* total duration of these segments */
  bool latency_everywhere;
};

/* Returns the trace with all times multiplied by `by`; the caller closes it. */
gt_link_trace *gt_trace_stretched(const gt_link_trace *trace, double by);

double gt_trace_mean_bps(const gt_link_trace *trace);
/* Returns the lowest and the mean latency over the period; own_s: the link's latency, used where
   the trace has none. */
double gt_trace_latency_least(const gt_link_trace *trace, double own_s);
double gt_trace_latency_mean(const gt_link_trace *trace, double own_s);
/* Returns the latency at t_s. */
double gt_trace_latency_at(const gt_link_trace *trace, double t_s, double own_s);
/* Returns the seconds from t_s until `bits` more bits have passed. */
double gt_trace_wait_s(const gt_link_trace *trace, double t_s, double bits);
