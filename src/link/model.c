/* The link model: one direction of a WAN link, as a function of its state and a frame
   (docs/link-model.md). */
#include <math.h>

#include "geotrain/link.h"
#include "trace.h"

/* 146 years: a later time means never, and no sum overflows. */
#define FAR        (INT64_MAX / 2)
#define JITTER_CUT 3.0
#define SEGMENT_BITS                                                                               \
  (1448.0 * 8.0) /* 1500 bytes less the headers of IPv4 and of TCP with time stamps */
#define WINDOW_BYTES_MAX ((double)((size_t)1 << 30)) /* TCP's largest window (RFC 7323, 2.3) */
/* A link that loses all packets is very slow, not unlimited. */
#define LEFT_BY_LOSS_LEAST 1e-9

/* ---- times ----------------------------------------------------------------------------------- */

static gt_ns later(gt_ns a, gt_ns b) {
  return a > b ? a : b;
}

static gt_ns after(gt_ns t, double s) {
  if (t >= FAR || s * 1e9 >= (double)(FAR - t)) return FAR;
  return t + gt_from_seconds(s);
}

gt_link_state gt_link_start(uint64_t seed, size_t from, size_t to, gt_ns origin) {
  return (gt_link_state){.busy_until = origin,
                         .last_arrival = origin,
                         .origin = origin,
                         .window_from = origin,
                         .window_bytes = -1.0,
                         .rng = gt_rng_make(seed, GT_RNG_JITTER, from, to)};
}

void gt_link_shift(gt_link_state *state, gt_ns by) {
  state->busy_until += by;
  state->last_arrival += by;
  state->origin += by;
  state->window_from += by;
}

/* ---- the spec at a time ---------------------------------------------------------------------- */

static double life_s(const gt_link_state *state, gt_ns t) {
  return gt_seconds(t - state->origin);
}

static double latency_at(const gt_link_state *state, const gt_link_spec *spec, gt_ns t) {
  return spec->trace ? gt_trace_latency_at(spec->trace, life_s(state, t), spec->latency_s)
                     : spec->latency_s;
}

static double left_by_loss(const gt_link_spec *spec) {
  return fmax(1.0 - spec->loss, LEFT_BY_LOSS_LEAST);
}

/* Returns the rate in bit/s of one CUBIC stream (RFC 8312, 5.1, equation 6, C = 0.4), or of Reno if
   that is faster (Mathis et al. 1997, C = sqrt(3/2)), at this round trip; 0: unlimited. */
static double loss_ceiling(double loss, double rtt_s) {
  if (loss <= 0.0 || rtt_s <= 0.0) return 0.0;
  double cubic = 1.054 * pow(rtt_s / loss, 0.75), reno = sqrt(1.5 / loss);
  return fmax(cubic, reno) * SEGMENT_BITS / rtt_s;
}

static double goodput_at(const gt_link_spec *spec, double rtt_s) {
  double rate = spec->trace ? gt_trace_mean_bps(spec->trace) : spec->bandwidth_bps;
  return gt_rate_lower(rate * left_by_loss(spec), loss_ceiling(spec->loss, rtt_s));
}

double gt_link_goodput(const gt_link_spec *spec) {
  double latency_s =
      spec->trace ? gt_trace_latency_mean(spec->trace, spec->latency_s) : spec->latency_s;
  return goodput_at(spec, latency_s + spec->back_s);
}

double gt_link_stream_bps(const gt_link_spec *spec, double up_bps) {
  if (spec->look_s > 0.0) return 0.0;
  return gt_rate_lower(gt_link_goodput(spec), up_bps);
}

/* ---- service --------------------------------------------------------------------------------- */

/* A source of service: a trace scaled by 1 - loss, or a constant rate (0: infinitely fast). */
typedef struct {
  const gt_link_trace *trace;
  double share, rate_bps;
} server;

static double passes(const server *by, const gt_link_state *state, gt_ns from, gt_ns to) {
  if (by->trace)
    return by->share * (gt_link_trace_bits(by->trace, life_s(state, to)) -
                        gt_link_trace_bits(by->trace, life_s(state, from)));
  return by->rate_bps > 0.0 ? by->rate_bps * gt_seconds(to - from) : INFINITY;
}

static gt_ns served(const server *by, const gt_link_state *state, gt_ns from, double bits) {
  if (by->trace)
    return after(from, gt_trace_wait_s(by->trace, life_s(state, from), bits / by->share));
  return by->rate_bps > 0.0 ? after(from, bits / by->rate_bps) : from;
}

/* Returns the first outage that ends after t; noutages: none. */
static size_t outage_after(const gt_link_state *state, const gt_link_spec *spec, gt_ns t) {
  size_t low = 0, high = spec->noutages;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const gt_link_outage *o = &spec->outages[middle];
    if (after(state->origin, o->from_s + o->for_s) > t)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* Returns when `bits` have been served from t on, outages excluded; for bits 0, when service can
   begin. */
static gt_ns through_outages(const server *by, const gt_link_state *state, const gt_link_spec *spec,
                             gt_ns t, double bits) {
  for (size_t i = outage_after(state, spec, t); i < spec->noutages; i++) {
    gt_ns from = after(state->origin, spec->outages[i].from_s);
    if (t < from) {
      double before = passes(by, state, t, from);
      if (before >= bits) break;
      bits -= before;
    }
    t = after(state->origin, spec->outages[i].from_s + spec->outages[i].for_s);
  }
  return served(by, state, t, bits);
}

/* A link while it serves one frame. */
typedef struct {
  const gt_link_spec *spec;
  /* ceiling: with a trace, the rate that loss allows; a frame must pass both */
  server wire, ceiling;
  double rtt_s;
} line;

static line line_of(const gt_link_spec *spec, double rtt_s) {
  line l = {.spec = spec, .rtt_s = rtt_s};
  if (spec->trace) {
    l.wire = (server){.trace = spec->trace, .share = left_by_loss(spec)};
    l.ceiling.rate_bps = loss_ceiling(spec->loss, rtt_s);
  } else {
    l.wire.rate_bps = goodput_at(spec, rtt_s);
  }
  return l;
}

static gt_ns serve(const line *l, const gt_link_state *state, gt_ns t, double bytes) {
  gt_ns end = through_outages(&l->wire, state, l->spec, t, 8.0 * bytes);
  if (l->ceiling.rate_bps > 0.0)
    end = later(end, through_outages(&l->ceiling, state, l->spec, t, 8.0 * bytes));
  return end;
}

/* ---- slow start ------------------------------------------------------------------------------ */

static bool fills(const line *l, double window_bytes) {
  double rate = goodput_at(l->spec, l->rtt_s);
  return window_bytes >= WINDOW_BYTES_MAX || (rate > 0.0 && 8.0 * window_bytes >= rate * l->rtt_s);
}

/* Opens a window of window_bytes for the round trip that begins at t. */
static void open_window(gt_link_state *state, const line *l, gt_ns t, double window_bytes) {
  state->window_from = t;
  state->window_bytes = state->window_left = fills(l, window_bytes) ? 0.0 : window_bytes;
}

/* Slow start begins at the link's origin and again after idle_s.  It is off without the transport
   model or without a round-trip time. */
static void begin_window(gt_link_state *state, const line *l, gt_ns begin) {
  bool fresh = state->window_bytes < 0.0,
       off = l->spec->window_bytes <= 0.0 || gt_from_seconds(l->rtt_s) <= 0;
  bool idle = l->spec->idle_s > 0.0 && begin > after(state->busy_until, l->spec->idle_s);
  if (off)
    state->window_bytes = state->window_left = 0.0;
  else if (fresh || idle)
    open_window(state, l, begin, l->spec->window_bytes);
}

/* Serves *bytes in round trips until none are left or slow start ends.  A round trip ends after the
   round-trip time, or when its window is served if that takes longer.  The used part of a window is
   added to the next one. */
static gt_ns serve_windows(gt_link_state *state, const line *l, gt_ns t, double *bytes) {
  while (state->window_bytes > 0.0 && *bytes > 0.0 && t < FAR) {
    gt_ns over = after(state->window_from, l->rtt_s);
    if (state->window_left <= 0.0 || t >= over) {
      t = later(t, over);
      open_window(state, l, t, 2.0 * state->window_bytes - state->window_left);
      continue;
    }
    double part = fmin(*bytes, state->window_left);
    t = serve(l, state, t, part);
    *bytes -= part;
    state->window_left -= part;
  }
  return t;
}

/* ---- the step -------------------------------------------------------------------------------- */

static double delay_least_s(double latency_s, double jitter_s) {
  return fmax(latency_s - JITTER_CUT * jitter_s, latency_s / 10.0);
}

gt_ns gt_link_delay_min(const gt_link_spec *spec) {
  double latency_s =
      spec->trace ? gt_trace_latency_least(spec->trace, spec->latency_s) : spec->latency_s;
  return gt_from_seconds(delay_least_s(latency_s, spec->jitter_s));
}

/* One draw per frame, clamped and not redrawn: the jitter of frame n depends only on n. */
static double flight_s(gt_link_state *state, const gt_link_spec *spec, gt_ns depart) {
  double latency_s = latency_at(state, spec, depart);
  if (spec->jitter_s <= 0.0) return latency_s;
  double z = fmin(fmax(gt_rng_normal(&state->rng), -JITTER_CUT), JITTER_CUT);
  return fmax(latency_s + spec->jitter_s * z, delay_least_s(latency_s, spec->jitter_s));
}

/* The access serves the frame from the time at which the link could take it, without set-up and
   outage: a link that waits for these does not delay the others. */
static gt_ns pass_access(gt_access *up, size_t size_bytes, gt_ns given, gt_ns begin) {
  double takes_s = 8.0 * (double)size_bytes / up->rate_bps;
  up->busy_until = after(later(given, up->busy_until), takes_s);
  return later(up->busy_until, after(begin, takes_s));
}

/* Returns when the receiver finds an object that it could have had at t. */
static gt_ns found(const gt_link_state *state, const gt_link_spec *spec, gt_ns t) {
  const gt_ns first = after(state->last_arrival, spec->look_s),
              every = later(gt_from_seconds(spec->every_s), 1);
  if (spec->look_s <= 0.0 || t >= FAR) return later(state->last_arrival, t);
  return t <= first ? first : first + (t - first + every - 1) / every * every;
}

void gt_link_object(gt_link_objects *sum, uint32_t kind, size_t bytes) {
  if (!gt_msg_is_data(kind)) {
    sum->control++;
    return;
  }
  sum->data++;
  sum->data_bytes += (int64_t)bytes;
}

gt_link_times gt_link_step(gt_link_state *state, const gt_link_spec *spec, gt_access *up,
                           size_t size_bytes, gt_ns ready) {
  double rtt_s = latency_at(state, spec, ready) + spec->back_s, bytes = (double)size_bytes;
  line l = line_of(spec, rtt_s);
  gt_ns given = later(ready, state->busy_until), begin = given;
  if (spec->setup_rtts > 0.0 && bytes > spec->eager_bytes)
    begin = later(given, after(ready, spec->setup_rtts * rtt_s));
  begin = serve(&l, state, begin, 0.0);
  begin_window(state, &l, begin);
  gt_ns t = serve_windows(state, &l, begin, &bytes);
  gt_link_times times = {.depart = bytes > 0.0 ? serve(&l, state, t, bytes) : t};
  if (up && up->rate_bps > 0.0)
    times.depart = later(times.depart, pass_access(up, size_bytes, given, begin));
  times.arrive = found(state, spec, after(times.depart, flight_s(state, spec, times.depart)));
  state->busy_until = times.depart;
  state->last_arrival = times.arrive;
  return times;
}

/* ---- frames leaving over a link: the time in use --------------------------------------------- */

void gt_wire_add(gt_wire *wire, gt_ns from, gt_ns until) {
  from = later(from, wire->until);
  if (until <= from) return;
  wire->used += until - from;
  wire->until = until;
}

gt_link_times gt_wire_send(gt_wire *wire, const gt_link_spec *spec, gt_access *up,
                           size_t size_bytes, gt_ns ready) {
  const gt_ns from = later(wire->link.busy_until, ready);
  const gt_link_times times = gt_link_step(&wire->link, spec, up, size_bytes, ready);
  gt_wire_add(wire, from, times.depart);
  return times;
}

bool gt_wire_control_first(const gt_wire *wire, gt_ns control, gt_ns other) {
  return control <= later(other, wire->link.busy_until);
}
