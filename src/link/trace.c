/* Traces: rate and latency over time, piecewise constant and periodic.  Computes the bits that pass
   until a time, and the time at which bits have passed.  Reads CSV (time, bandwidth, latency) and
   mahimahi's packet-delivery format (Netravali et al., USENIX ATC 2015; mm-link(1)). */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* ---- building -------------------------------------------------------------------------------- */

static void push(gt_link_trace *trace, gt_segment segment) {
  GT_GROW(trace->segments, trace->n, trace->capacity, 64);
  trace->segments[trace->n++] = segment;
}

/* Adds a segment, in ascending order of time from 0 on; equal adjacent segments are merged. */
static void trace_add(gt_link_trace *trace, double from_s, double rate_bps, double latency_s) {
  if (trace->n) {
    const gt_segment *last = &trace->segments[trace->n - 1];
    bool same_latency = last->latency_s == latency_s || (last->latency_s < 0.0 && latency_s < 0.0);
    if (last->rate_bps == rate_bps && same_latency) return;
  }
  push(trace, (gt_segment){.from_s = from_s, .rate_bps = rate_bps, .latency_s = latency_s});
}

/* Completes the trace. */
static void trace_end(gt_link_trace *trace, double period_s) {
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
    trace_add(to, s->from_s * by, s->rate_bps, s->latency_s);
  }
  trace_end(to, trace->segments[trace->n].from_s * by);
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

/* ---- files ----------------------------------------------------------------------------------- */

#define FILE_BYTES_MAX  ((size_t)16 << 20)
#define TIME_MAX_S      1e9  /* about 30 years: fits in nanoseconds */
#define RATE_MAX_BPS    1e15 /* keeps the bits of a period exact enough */
#define PERIOD_MIN_S    1e-3
#define PERIOD_MIN_BITS 8.0
#define PACKET_BITS     12000.0 /* 1,500 bytes: one delivery opportunity */
#define FIELDS          3

/* ---- the text -------------------------------------------------------------------------------- */

/* A file that is parsed line by line, in memory. */
typedef struct {
  const char *path;
  char *text, *next; /* text is NUL-terminated */
  size_t size, line; /* line: number of the last line taken */
} source;

static gt_status take_all(source *in, FILE *file) {
  size_t capacity = (size_t)1 << 16;
  in->text = gt_alloc(capacity, 1);
  for (;;) {
    in->size += fread(in->text + in->size, 1, capacity - 1 - in->size, file);
    if (ferror(file))
      return GT_FAIL(GT_ERR_JOB, "%s: cannot be read (%s)", in->path, strerror(errno));
    if (in->size < capacity - 1) return GT_OK;
    if (in->size > FILE_BYTES_MAX)
      return GT_FAIL(GT_ERR_JOB, "%s: has more than 16 MiB; expected a trace of at most 16 MiB",
                     in->path);
    char *larger = gt_alloc(2 * capacity, 1);
    memcpy(larger, in->text, in->size);
    gt_free(in->text);
    in->text = larger;
    capacity *= 2;
  }
}

static gt_status open_source(source *in, const char *path) {
  *in = (source){.path = path};
  FILE *file = fopen(path, "rb");
  if (!file)
    return GT_FAIL(GT_ERR_JOB, "%s: cannot be opened (%s); expected the file of a trace", path,
                   strerror(errno));
  gt_status status = take_all(in, file);
  fclose(file);
  GT_TRY(status);
  if (in->size > FILE_BYTES_MAX)
    return GT_FAIL(GT_ERR_JOB, "%s: has more than 16 MiB; expected a trace of at most 16 MiB",
                   path);
  if (memchr(in->text, '\0', in->size))
    return GT_FAIL(GT_ERR_JOB, "%s: has a zero byte; expected the text of a trace", path);
  in->next = in->text;
  return GT_OK;
}

static char *trim(char *text) {
  while (isspace((unsigned char)*text)) text++;
  size_t length = strlen(text);
  while (length > 0 && isspace((unsigned char)text[length - 1])) text[--length] = '\0';
  return text;
}

/* Returns the next line that is neither empty nor a comment, trimmed; NULL at the end. */
static char *next_line(source *in) {
  while (in->next && *in->next) {
    char *line = in->next, *end = strchr(line, '\n');
    if (end) *end = '\0';
    in->next = end ? end + 1 : NULL;
    in->line++;
    line = trim(line);
    if (*line != '\0' && *line != '#') return line;
  }
  return NULL;
}

/* Returns at most 40 characters of the file's text, printable, for an error message. */
static const char *shown(const char *text, char buf[48]) {
  size_t i = 0;
  for (; text[i] && i < 40; i++) buf[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
  snprintf(buf + i, 48 - i, "%s", text[i] ? "..." : "");
  return buf;
}

static gt_status refuse(const source *in, const char *text, const char *needed) {
  char buf[48];
  return GT_FAIL(GT_ERR_JOB, "%s, line %zu: \"%s\" was found; expected %s", in->path, in->line,
                 shown(text, buf), needed);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

typedef struct {
  double time_s, rate_bps, latency_s;
} row;

/* Parses a non-negative number without a unit. */
static bool plain(const char *text, double *out) {
  if (!(isdigit((unsigned char)text[0]) || text[0] == '.') || strpbrk(text, "xX")) return false;
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || !isfinite(value)) return false;
  *out = value;
  return true;
}

typedef gt_status (*with_unit)(const char *text, double *out);

static gt_status read_number(const source *in, const char *text, with_unit parse, double max,
                             const char *needed, double *out) {
  if (!plain(text, out) && parse(text, out) != GT_OK) return refuse(in, text, needed);
  return *out <= max ? GT_OK : refuse(in, text, needed);
}

/* Splits a line at its commas; returns the number of fields, of which the first FIELDS are
   stored. */
static size_t cut(char *line, char *fields[FIELDS]) {
  size_t n = 0;
  for (char *field = line, *comma; field; field = comma) {
    comma = strchr(field, ',');
    if (comma) *comma++ = '\0';
    if (n < FIELDS) fields[n] = trim(field);
    n++;
  }
  return n;
}

/* *header: true if the line names the columns. */
static gt_status read_row(const source *in, char *line, bool first, row *out, bool *header) {
  char *fields[FIELDS] = {"", "", ""}, whole[48];
  shown(line, whole);
  size_t n = cut(line, fields);
  *header = first && strcmp(fields[0], "time_s") == 0;
  if (*header) return GT_OK;
  if (n < 2 || n > FIELDS) return refuse(in, whole, "\"time_s,bandwidth,latency\"");
  *out = (row){.latency_s = -1.0};
  GT_TRY(read_number(in, fields[0], gt_parse_time_s, TIME_MAX_S,
                     "a time from 0 to 1e9 s, as in \"1.5\" or \"90 s\",", &out->time_s));
  GT_TRY(read_number(in, fields[1], gt_parse_rate_bps, RATE_MAX_BPS,
                     "a rate from 0 to 1e15 bit/s, as in \"2e7\" or \"20 Mbit/s\",",
                     &out->rate_bps));
  if (*fields[2] == '\0') return GT_OK;
  return read_number(in, fields[2], gt_parse_time_s, TIME_MAX_S,
                     "a latency from 0 to 1e9 s, as in \"0.025\" or \"25 ms\", or nothing",
                     &out->latency_s);
}

static gt_status check_order(const source *in, const row *now, const row *before) {
  if (!before && now->time_s != 0.0)
    return GT_FAIL(GT_ERR_JOB, "%s, line %zu: the first time is %g s; expected 0", in->path,
                   in->line, now->time_s);
  if (before && now->time_s <= before->time_s)
    return GT_FAIL(GT_ERR_JOB,
                   "%s, line %zu: the time %.9g s follows %.9g s; expected ascending times",
                   in->path, in->line, now->time_s, before->time_s);
  return GT_OK;
}

static gt_status read_csv(source *in, gt_link_trace *trace) {
  row now, before = {0};
  size_t rows = 0;
  bool first = true;
  for (char *line; (line = next_line(in)); first = false) {
    bool header;
    GT_TRY(read_row(in, line, first, &now, &header));
    if (header) continue;
    GT_TRY(check_order(in, &now, rows ? &before : NULL));
    if (rows++) trace_add(trace, before.time_s, before.rate_bps, before.latency_s);
    before = now;
  }
  if (rows < 2)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: has %zu lines of \"time_s,bandwidth,latency\"; expected 2 or more, the "
                   "last one to end the period",
                   in->path, rows);
  trace_end(trace, before.time_s);
  return GT_OK;
}

/* ---- mahimahi -------------------------------------------------------------------------------- */

static gt_status read_millisecond(const source *in, const char *text, double *out) {
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || text[digits] != '\0' || digits > 15)
    return refuse(in, text, "a millisecond from 0 to 1e12");
  *out = strtod(text, NULL);
  return *out <= TIME_MAX_S * 1e3 ? GT_OK : refuse(in, text, "a millisecond from 0 to 1e12");
}

/* Adds the 1 ms bin that ends at `ms`, in which `packets` pass; nothing passes between it and the
   previous bin, which ended at after_ms. */
static void add_bin(gt_link_trace *trace, double after_ms, double ms, double packets) {
  if (packets <= 0.0) return;
  if (ms - 1.0 > after_ms) trace_add(trace, after_ms / 1e3, 0.0, -1.0);
  trace_add(trace, (ms - 1.0) / 1e3, packets * PACKET_BITS * 1e3, -1.0);
}

static gt_status read_mahimahi(source *in, gt_link_trace *trace) {
  double before = 0.0, after = 0.0, bin = 1.0, packets = 0.0, ms = 0.0;
  bool any = false;
  for (char *line; (line = next_line(in)); any = true) {
    GT_TRY(read_millisecond(in, line, &ms));
    if (ms < before)
      return GT_FAIL(GT_ERR_JOB, "%s, line %zu: %.0f follows %.0f; expected ascending milliseconds",
                     in->path, in->line, ms, before);
    before = ms;
    if (ms > bin) {
      add_bin(trace, after, bin, packets);
      if (packets > 0.0) after = bin;
      bin = ms;
      packets = 0.0;
    }
    packets += 1.0;
  }
  if (!any)
    return GT_FAIL(GT_ERR_JOB, "%s: has no line with a millisecond; expected one or more",
                   in->path);
  add_bin(trace, after, bin, packets);
  trace_end(trace, before / 1e3);
  return GT_OK;
}

/* ---- public ---------------------------------------------------------------------------------- */

static gt_status read_trace(source *in, gt_link_trace *trace) {
  size_t length = strlen(in->path);
  bool csv = length >= 4 && strcmp(in->path + length - 4, ".csv") == 0;
  GT_TRY(csv ? read_csv(in, trace) : read_mahimahi(in, trace));
  double period_s = gt_link_trace_period_s(trace);
  if (period_s < PERIOD_MIN_S)
    return GT_FAIL(GT_ERR_JOB, "%s: the trace ends after %g s; expected a period of 1 ms or more",
                   in->path, period_s);
  if (gt_trace_mean_bps(trace) * period_s < PERIOD_MIN_BITS)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: lets nothing pass in its %g s; expected a bandwidth above 0 somewhere",
                   in->path, period_s);
  return GT_OK;
}

gt_status gt_link_trace_read(gt_link_trace **out, const char *path) {
  *out = NULL;
  source in;
  gt_link_trace *trace = GT_NEW(gt_link_trace);
  gt_status status = open_source(&in, path);
  if (status == GT_OK) status = read_trace(&in, trace);
  gt_free(in.text);
  if (status == GT_OK)
    *out = trace;
  else
    gt_link_trace_close(trace);
  return status;
}
