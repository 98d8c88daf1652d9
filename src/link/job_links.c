/* The links of a job for the link model: every direction between two regions, with traces and
   outages. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define TRACE_PERIODS 8.0 /* in a shorter run, or all */
/* of a function */
#define UNLIMITED_BPS 1e15
#define AT_ONCE_S     1e-9

struct gt_links {
  size_t n;
  gt_link_spec *specs;         /* n x n, row: sender */
  gt_link_access *access;      /* n */
  gt_link_function *functions; /* n; NULL: none */
  gt_link_outage *outages;
  gt_link_trace **traces; /* one per file */
  const char **paths;
  size_t ntraces;
};

static gt_status trace_of(gt_links *links, const char *path, const gt_link_trace **out) {
  for (size_t i = 0; i < links->ntraces; i++)
    if (strcmp(links->paths[i], path) == 0) {
      *out = links->traces[i];
      return GT_OK;
    }
  GT_TRY(gt_link_trace_read(&links->traces[links->ntraces], path));
  links->paths[links->ntraces] = path;
  *out = links->traces[links->ntraces++];
  return GT_OK;
}

static int by_start(const void *a, const void *b) {
  double x = ((const gt_link_outage *)a)->from_s, y = ((const gt_link_outage *)b)->from_s;
  return (x > y) - (x < y);
}

/* Writes the outages of a pair to `room`, ascending, overlapping ones merged. */
static size_t outages_of(const gt_job *job, size_t a, size_t b, gt_link_outage *room) {
  size_t n = 0, kept = 0;
  for (size_t i = 0; i < job->wan.noutages; i++) {
    const gt_job_outage *o = &job->wan.outages[i];
    if ((o->ia == a && o->ib == b) || (o->ia == b && o->ib == a))
      room[n++] = (gt_link_outage){o->from_s, o->for_s};
  }
  qsort(room, n, sizeof *room, by_start);
  for (size_t i = 0; i < n; i++) {
    gt_link_outage *last = kept > 0 ? &room[kept - 1] : NULL;
    if (last && room[i].from_s <= last->from_s + last->for_s) {
      double end = room[i].from_s + room[i].for_s;
      if (end > last->from_s + last->for_s) last->for_s = end - last->from_s;
    } else
      room[kept++] = room[i];
  }
  return kept;
}

static gt_status fill(gt_links *links, const gt_job *job, const gt_job_link *const *table, size_t a,
                      size_t b, gt_link_outage *room) {
  const gt_job_link *l = table[a * links->n + b], *back = table[b * links->n + a];
  gt_link_spec *spec = &links->specs[a * links->n + b];
  if (l) {
    *spec = (gt_link_spec){.bandwidth_bps = l->bandwidth_bps,
                           .latency_s = l->latency_s,
                           .jitter_s = l->jitter_s,
                           .loss = l->loss,
                           .setup_rtts = l->setup_rtts,
                           .eager_bytes = l->eager_bytes,
                           .window_bytes = l->window_bytes,
                           .idle_s = l->idle_s};
    if (l->trace) GT_TRY(trace_of(links, l->trace, &spec->trace));
  }
  spec->back_s = back ? back->latency_s : 0;
  if (back && back->trace) {
    const gt_link_trace *trace;
    GT_TRY(trace_of(links, back->trace, &trace));
    spec->back_s = gt_trace_latency_mean(trace, back->latency_s);
  }
  spec->outages = room;
  spec->noutages = outages_of(job, a, b, room);
  return GT_OK;
}

/* An upload and a download, each with a request that the store answers. */
static void fill_stored(gt_links *links, const gt_job *job, size_t a, size_t b) {
  const gt_job_store from = gt_job_store_of(job, a), to = gt_job_store_of(job, b);
  const double put_s = from.latency_s + from.request_s, get_s = to.latency_s + to.request_s;
  gt_link_spec *spec = &links->specs[a * links->n + b];
  spec->latency_s = put_s + job->wan.store.lag_s + get_s;
  spec->back_s = spec->latency_s;
  spec->look_s = fmax(to.latency_s + get_s, 1e-9);
  spec->every_s = fmax(spec->look_s, gt_job_store_poll(job, b, a));
}

static gt_link_access access_of(const gt_job *job, size_t region) {
  const double bps = job->regions[region].access_bps;
  const gt_job_store store = gt_job_store_of(job, region);
  if (job->wan.transport != GT_WAN_STORE) return (gt_link_access){bps, bps};
  return (gt_link_access){gt_rate_lower(bps, store.upload_bps),
                          gt_rate_lower(bps, store.download_bps)};
}

gt_link_access gt_links_access(const gt_links *links, size_t region) {
  return links->access[region];
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Returns the objects of a round for the region: a message of each worker of another one (central),
   or of each other region. */
static size_t objects_of(const gt_job *job, size_t region) {
  size_t n = 0;
  for (size_t r = 0; r < job->nregions; r++)
    if (r != region)
      n += job->sync.central && gt_job_workers(job, r) > 1 ? gt_job_workers(job, r) : 1;
  return n;
}

/* What regions of a store write once: all of them, or the function. */
static void find_functions(gt_links *links, const gt_job *job) {
  size_t r = 0;
  links->functions = GT_NEW_ARRAY(gt_link_function, links->n);
  for (size_t i = 0; i < links->n; i++) {
    const gt_job_store at = gt_job_store_of(job, i);
    links->functions[i] =
        (gt_link_function){.shares = job->wan.store.trigger == GT_TRIGGER_POLL,
                           .start = gt_from_seconds(job->wan.store.start_s),
                           .request = gt_from_seconds(2 * at.latency_s + at.request_s),
                           .back = gt_from_seconds(at.latency_s + at.request_s)};
  }
  while (r < links->n && !gt_job_is_function(job, r)) r++;
  if (r == links->n) return;
  links->functions[r].objects = objects_of(job, r);
  if (links->access[r].down_bps <= 0) links->access[r].down_bps = UNLIMITED_BPS;
  for (size_t a = 0; a < links->n; a++) { /* objects are read when they have come */
    gt_link_spec *spec = &links->specs[a * links->n + r];
    spec->look_s = spec->every_s = AT_ONCE_S;
  }
}

gt_link_function gt_links_function(const gt_links *links, size_t region) {
  return links->functions ? links->functions[region] : (gt_link_function){0};
}

int64_t gt_links_vain_looks(const gt_links *links, size_t region, double seconds, int64_t objects) {
  double looks = 0, often_s = INFINITY, look_s = 0;
  for (size_t p = 0; p < links->n; p++) {
    const gt_link_spec *coming = &links->specs[p * links->n + region];
    if (p == region) continue;
    looks += seconds / coming->every_s;
    often_s = fmin(often_s, coming->every_s);
    look_s = coming->look_s;
  }
  return (int64_t)fmax(0, looks - (double)objects * look_s / often_s);
}

gt_status gt_links_create(gt_links **out, const gt_job *job) {
  gt_links *links = GT_NEW(gt_links);
  gt_status status = GT_OK;
  size_t n = job->nregions, pairs = n * n;
  const gt_job_link **table = gt_job_link_table(job);
  const bool stored = job->wan.transport == GT_WAN_STORE;
  links->n = n;
  links->access = GT_NEW_ARRAY(gt_link_access, n);
  for (size_t r = 0; r < n; r++) links->access[r] = access_of(job, r);
  links->specs = GT_NEW_ARRAY(gt_link_spec, pairs);
  links->outages = GT_NEW_ARRAY(gt_link_outage, pairs * job->wan.noutages + 1);
  links->traces = GT_NEW_ARRAY(gt_link_trace *, job->wan.nlinks + 1);
  links->paths = GT_NEW_ARRAY(const char *, job->wan.nlinks + 1);
  *out = links;
  for (size_t i = 0; i < pairs && stored; i++)
    if (i / n != i % n) fill_stored(links, job, i / n, i % n);
  if (stored) find_functions(links, job);
  for (size_t i = 0; i < pairs && status == GT_OK && !stored; i++)
    if (i / n != i % n)
      status = fill(links, job, table, i / n, i % n, links->outages + i * job->wan.noutages);
  gt_free(table);
  return status;
}

gt_links *gt_links_among(const gt_links *links, const size_t *regions, size_t n) {
  gt_links *among = GT_NEW(gt_links);
  among->n = n;
  among->access = GT_NEW_ARRAY(gt_link_access, n);
  for (size_t i = 0; i < n; i++) among->access[i] = links->access[regions ? regions[i] : i];
  if (links->functions && !regions) {
    among->functions = GT_NEW_ARRAY(gt_link_function, n);
    memcpy(among->functions, links->functions, n * sizeof *among->functions);
  }
  among->specs = GT_NEW_ARRAY(gt_link_spec, n * n);
  for (size_t i = 0; i < n * n; i++) {
    const size_t a = regions ? regions[i / n] : i / n, b = regions ? regions[i % n] : i % n;
    among->specs[i] = gt_links_from(links, a)[b];
    among->specs[i].noutages = 0;
  }
  return among;
}

/* ---- a shorter run --------------------------------------------------------------------------- */

/* Returns the factor of a trace's period: whole periods are left out, and the shorter run still has
   TRACE_PERIODS, or all if there are fewer. */
static double trace_factor(double period_s, double run_s, double share) {
  const double n = run_s / period_s, least = fmax(fmin(n, TRACE_PERIODS), share * n);
  return share * n / (n - floor(n - least));
}

/* Returns the time of all outages before this time. */
static double down_before(const gt_job *job, double at_s) {
  double down_s = 0;
  for (size_t i = 0; i < job->wan.noutages; i++)
    down_s += fmax(0, fmin(job->wan.outages[i].for_s, at_s - job->wan.outages[i].from_s));
  return down_s;
}

gt_links *gt_links_shorter(const gt_links *links, const gt_job *job, double run_s, double share,
                           double outages) {
  const size_t pairs = links->n * links->n;
  gt_links *to = gt_links_among(links, NULL, links->n);
  size_t noutages = 0;
  for (size_t i = 0; i < pairs; i++) noutages += links->specs[i].noutages;
  gt_link_outage *next = to->outages = GT_NEW_ARRAY(gt_link_outage, noutages + 1);
  to->traces = GT_NEW_ARRAY(gt_link_trace *, links->ntraces + 1);
  for (; to->ntraces < links->ntraces; to->ntraces++) {
    const gt_link_trace *trace = links->traces[to->ntraces];
    to->traces[to->ntraces] =
        gt_trace_stretched(trace, trace_factor(gt_link_trace_period_s(trace), run_s, share));
  }
  for (size_t i = 0; i < pairs; i++) {
    const gt_link_spec *from = &links->specs[i];
    to->specs[i].outages = next;
    to->specs[i].noutages = outages > 0 ? from->noutages : 0;
    for (size_t k = 0; k < to->specs[i].noutages; k++) {
      const double at_s = from->outages[k].from_s, down_s = down_before(job, at_s);
      *next++ = (gt_link_outage){share * fmax(0, at_s - down_s) + outages * down_s,
                                 outages * from->outages[k].for_s};
    }
    for (size_t t = 0; t < links->ntraces; t++)
      if (from->trace == links->traces[t]) to->specs[i].trace = to->traces[t];
  }
  return to;
}

void gt_links_close(gt_links *links) {
  if (!links) return;
  for (size_t i = 0; i < links->ntraces; i++) gt_link_trace_close(links->traces[i]);
  gt_free(links->traces);
  gt_free(links->paths);
  gt_free(links->outages);
  gt_free(links->specs);
  gt_free(links->access);
  gt_free(links->functions);
  gt_free(links);
}

const gt_link_spec *gt_links_from(const gt_links *links, size_t region) {
  return &links->specs[region * links->n];
}

static double takes_s(size_t bytes, double bps) {
  return bps > 0 ? 8.0 * (double)bytes / bps : 0;
}

double gt_links_patience(const gt_links *links, size_t peer, size_t self, size_t message_bytes,
                         double least_s) {
  const gt_link_spec *link = &gt_links_from(links, peer)[self];
  double message_s = takes_s(message_bytes, gt_link_goodput(link));
  if (link->look_s > 0) /* a store: an upload, then a download */
    message_s = takes_s(message_bytes, links->access[peer].up_bps) +
                takes_s(message_bytes, links->access[self].down_bps);
  return fmax(least_s, 10 * message_s);
}

/* The largest window that Linux gives a connection by default (net.ipv4.tcp_wmem). */
#define WINDOW_BYTES 0x1p22

size_t gt_links_streams(const gt_links *links) {
  size_t most = 1;
  for (size_t i = 0; i < links->n * links->n; i++) {
    const gt_link_spec *spec = &links->specs[i];
    const double flight = spec->bandwidth_bps / 8 * 2 * spec->latency_s,
                 windows = fmin(ceil(flight / WINDOW_BYTES), (double)GT_STREAMS_MAX);
    const size_t streams = spec->bandwidth_bps > 0 ? (size_t)windows : GT_STREAMS_UNKNOWN;
    if (i / links->n != i % links->n && streams > most) most = streams;
  }
  return most;
}

/* Trace files with the same name can differ between hosts, so the hash covers their contents. */
void gt_links_hash(const gt_links *links, char hex[GT_SHA256_HEX]) {
  size_t n = 0;
  double *marks = GT_NEW_ARRAY(double, 6 * links->ntraces + 1);
  for (size_t i = 0; i < links->ntraces; i++) {
    double period_s = gt_link_trace_period_s(links->traces[i]);
    marks[n++] = period_s;
    marks[n++] = gt_link_trace_latency_min_s(links->traces[i]);
    for (int part = 1; part <= 4; part++)
      marks[n++] = gt_link_trace_bits(links->traces[i], period_s * part / 4);
  }
  gt_sha256_hex(marks, n * sizeof *marks, hex);
  gt_free(marks);
}

gt_status gt_links_timed(const gt_links *links, const gt_job *job, const char *why) {
  const bool stored = job->wan.transport == GT_WAN_STORE;
  for (size_t i = 0; i < links->n * links->n; i++) {
    const size_t a = i / links->n, b = i % links->n;
    if (a != b && gt_link_delay_min(&links->specs[i]) <= 0)
      return GT_FAIL(
          GT_ERR_JOB,
          "%s: the link from %s to %s has no latency; %s every pair of regions needs one "
          "above 0 (%s)",
          stored ? "wan.store" : "wan.links", job->regions[a].name, job->regions[b].name, why,
          stored ? "wan.store.latency" : "wan.links, wan.default");
  }
  return GT_OK;
}

void gt_links_delays(const gt_links *links, gt_ns *delay_min) {
  for (size_t i = 0; i < links->n * links->n; i++)
    delay_min[i] = i / links->n == i % links->n ? 0 : gt_link_delay_min(&links->specs[i]);
}
