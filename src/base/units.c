/* Units: parsing and printing of rates, times and sizes, and the nearest known name. */
#include "geotrain/base.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *name;
  double factor;
} unit;

/* Ascending: printing uses the largest unit that gives a value of at least 1. */
static const unit rate_units[] = {{"bit/s", 1},    {"kbit/s", 1e3},  {"Mbit/s", 1e6},
                                  {"Gbit/s", 1e9}, {"Tbit/s", 1e12}, {NULL, 0}};
static const unit time_units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                                  {"min", 60},  {"h", 3600},  {"d", 86400}, {NULL, 0}};
static const unit size_units[] = {{"B", 1},        {"kB", 1e3},     {"KB", 1e3},   {"MB", 1e6},
                                  {"GB", 1e9},     {"TB", 1e12},    {"KiB", 1024}, {"MiB", 0x1p20},
                                  {"GiB", 0x1p30}, {"TiB", 0x1p40}, {NULL, 0}};
static const unit size_steps[] = {{"B", 1},        {"KiB", 0x1p10}, {"MiB", 0x1p20},
                                  {"GiB", 0x1p30}, {"TiB", 0x1p40}, {NULL, 0}};

static gt_status refuse(const char *text, const char *kind, const char *example,
                        const unit *units) {
  char names[128] = "";
  for (const unit *u = units; u->name; u++) {
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", u->name);
  }
  return GT_FAIL(
      GT_ERR_JOB,
      "\"%s\" is not a %s; expected a number of 0 or more with one of the units %s, as in \"%s\"",
      text ? text : "", kind, names, example);
}

/* Checks the first character: strtod alone would accept "inf", "0x10" and a sign. */
static gt_status parse(const char *text, const char *kind, const char *example, const unit *units,
                       double *out) {
  if (!text || !(isdigit((unsigned char)text[0]) || text[0] == '.') || strpbrk(text, "xX"))
    return refuse(text, kind, example, units);
  char *end;
  double number = strtod(text, &end);
  if (end == text) return refuse(text, kind, example, units);
  while (*end == ' ') end++;
  for (const unit *u = units; u->name; u++) {
    if (strcmp(u->name, end) != 0) continue;
    double value = number * u->factor;
    if (!isfinite(value))
      return GT_FAIL(GT_ERR_JOB, "\"%s\" is too large; expected a %s such as \"%s\"", text, kind,
                     example);
    *out = value;
    return GT_OK;
  }
  return refuse(text, kind, example, units);
}

gt_status gt_parse_rate_bps(const char *text, double *out) {
  return parse(text, "rate", "100 Mbit/s", rate_units, out);
}

gt_status gt_parse_time_s(const char *text, double *out) {
  return parse(text, "time", "25 ms", time_units, out);
}

gt_status gt_parse_size_bytes(const char *text, double *out) {
  return parse(text, "size", "1 GiB", size_units, out);
}

/* whole: print the smallest unit (bits, bytes) without decimals.  The factor 0.99995 prints 1
   Mbit/s instead of "1000.0 kbit/s". */
static char *format_in(char *buf, size_t size, double value, const unit *units, bool whole) {
  const unit *best = units;
  for (const unit *u = units; u->name; u++) {
    if (fabs(value) >= 0.99995 * u->factor) best = u;
  }
  snprintf(buf, size, whole && best == units ? "%.0f %s" : "%.1f %s", value / best->factor,
           best->name);
  return buf;
}

char *gt_format_rate(char *buf, size_t size, double bps) {
  return format_in(buf, size, bps, rate_units, true);
}

char *gt_format_time(char *buf, size_t size, double s) {
  if (s == 0.0) {
    snprintf(buf, size, "0.0 s");
    return buf;
  }
  return format_in(buf, size, s, time_units, false);
}

char *gt_format_size(char *buf, size_t size, double bytes) {
  return format_in(buf, size, bytes, size_steps, true);
}

/* ---- nearest name ---------------------------------------------------------------------------- */

#define NAME_LIMIT ((size_t)96)

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Returns the edit distance with transpositions of adjacent characters (optimal string alignment),
   ignoring case. */
static size_t distance(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b);
  if (n > NAME_LIMIT || m > NAME_LIMIT) return SIZE_MAX;
  size_t rows[3][97] = {{0}}, *before = rows[0], *above = rows[1], *row = rows[2];
  for (size_t j = 0; j <= m; j++) above[j] = j;
  for (size_t i = 1; i <= n; i++) {
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      int ai = tolower((unsigned char)a[i - 1]), bj = tolower((unsigned char)b[j - 1]);
      row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (ai != bj));
      if (i > 1 && j > 1 && ai == tolower((unsigned char)b[j - 2]) &&
          tolower((unsigned char)a[i - 2]) == bj)
        row[j] = least(row[j], before[j - 2] + 1);
    }
    size_t *oldest = before;
    before = above, above = row, row = oldest;
  }
  return above[m];
}

/* Near: at most 1 + length / 3 edits, and fewer edits than the known name has characters. */
const char *gt_nearest(const char *name, const char *const *known, size_t n) {
  size_t best = 1 + strlen(name) / 3 + 1;
  const char *nearest = NULL;
  for (size_t i = 0; i < n; i++) {
    size_t d = distance(name, known[i]);
    if (d < best && d < strlen(known[i])) {
      best = d;
      nearest = known[i];
    }
  }
  return nearest;
}
