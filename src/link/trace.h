/* trace: what the modules of link know of a trace beyond its public header. */
#ifndef GEOTRAIN_LINK_TRACE_H
#define GEOTRAIN_LINK_TRACE_H

#include "geotrain/link.h"

/* One stretch of constant rate and latency.  The last one of a trace is a sentinel at its period. */
typedef struct {
  double from_s, rate_bps, latency_s; /* latency negative: the link's own */
  double bits;                        /* that passed before from_s */
} gt_segment;

struct gt_link_trace {
  gt_segment *segments; /* n, and the sentinel */
  size_t n, capacity;
  double least_latency_s;    /* negative: none has its own */
  double latency_integral_s; /* of the segments that have their own: latency times duration */
  double latency_covers_s;   /* duration of these */
  bool latency_everywhere;
};

/* Building: segments in ascending order of time from 0 on; neighbours that are equal become one.  The end makes the trace whole. */
void gt_trace_add(gt_link_trace *trace, double from_s, double rate_bps, double latency_s);
void gt_trace_end(gt_link_trace *trace, double period_s);

double gt_trace_mean_bps(const gt_link_trace *trace);
/* The least and the mean latency of a link whose own latency is own_s. */
double gt_trace_latency_least(const gt_link_trace *trace, double own_s);
double gt_trace_latency_mean(const gt_link_trace *trace, double own_s);
/* The latency at t_s. */
double gt_trace_latency_at(const gt_link_trace *trace, double t_s, double own_s);
/* Seconds from t_s until `bits` more have passed. */
double gt_trace_wait_s(const gt_link_trace *trace, double t_s, double bits);

#endif
