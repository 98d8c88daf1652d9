/* Host lists: plain names, and Slurm's compressed form node[01-16,18]. */
#include "internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_DIGITS 9

/* Names are equal, or one is the other without its domain. */
static bool same_host(const char *pattern, size_t length, const char *host, size_t host_length) {
  const char *dot = memchr(pattern, '.', length), *host_dot = memchr(host, '.', host_length);
  if (!dot && host_dot) host_length = (size_t)(host_dot - host);
  if (dot && !host_dot) length = (size_t)(dot - pattern);
  return length == host_length && strncasecmp(pattern, host, length) == 0;
}

static gt_status malformed(const char *text, const char *what) {
  return GT_FAIL(GT_ERR_JOB,
                 "regions[].hosts has \"%s\": %s; names or a form like node[01-16,18] are needed",
                 text, what);
}

/* Reads digits at *at; their number is the width for leading zeros. */
static bool read_number(const char **at, const char *end, unsigned long *value, size_t *digits) {
  const char *start = *at;
  *value = 0;
  while (*at < end && isdigit((unsigned char)**at) && *at - start < MAX_DIGITS)
    *value = *value * 10 + (unsigned long)(*(*at)++ - '0');
  *digits = (size_t)(*at - start);
  return *digits > 0;
}

/* Whether the digits at the start of `host` are a number in low..high printed with at least `width`
   digits.  Returns the number of digits, or 0. */
static size_t number_matches(const char *host, size_t take, unsigned long low, unsigned long high,
                             size_t width) {
  unsigned long value = 0;
  for (size_t i = 0; i < take; i++) value = value * 10 + (unsigned long)(host[i] - '0');
  if (value < low || value > high) return 0;
  bool padded_right = take == width || (take > width && host[0] != '0');
  return padded_right ? take : 0;
}

static bool match_name(const char *pattern, const char *end, const char *host);

/* `pattern` is after '[': tries every range for the digits at the start of host, then matches the
   text after ']'. */
static bool match_ranges(const char *pattern, const char *end, const char *host) {
  const char *close = memchr(pattern, ']', (size_t)(end - pattern));
  size_t digits = 0;
  while (digits < MAX_DIGITS && isdigit((unsigned char)host[digits])) digits++;
  for (const char *at = pattern; at < close; at++) {
    unsigned long low, high;
    size_t width, unused;
    read_number(&at, close, &low, &width);
    high = low;
    if (*at == '-') {
      at++;
      read_number(&at, close, &high, &unused);
    }
    for (size_t take = width; take <= digits; take++) {
      if (number_matches(host, take, low, high, width) && match_name(close + 1, end, host + take))
        return true;
    }
  }
  return false;
}

static bool match_name(const char *pattern, const char *end, const char *host) {
  const char *open = memchr(pattern, '[', (size_t)(end - pattern));
  if (!open) return same_host(pattern, (size_t)(end - pattern), host, strlen(host));
  size_t prefix = (size_t)(open - pattern);
  return strncasecmp(pattern, host, prefix) == 0 && match_ranges(open + 1, end, host + prefix);
}

/* Checks the text inside one pair of brackets: numbers and ranges separated by commas. */
static gt_status check_ranges(const char *text, const char *at, const char *close) {
  for (;;) {
    unsigned long low, high;
    size_t digits;
    if (!read_number(&at, close, &low, &digits))
      return malformed(text, "a number is missing between the brackets");
    if (at < close && *at == '-') {
      at++;
      if (!read_number(&at, close, &high, &digits)) return malformed(text, "a range has no end");
      if (high < low) return malformed(text, "a range ends before it begins");
    }
    if (at == close) return GT_OK;
    if (*at++ != ',')
      return malformed(text, "only digits, '-' and ',' can stand between the brackets");
  }
}

/* The end of the name at `at`: the next comma outside brackets, or the end of the text. */
static gt_status name_end(const char *text, const char *at, const char **end) {
  const char *start = at;
  for (; *at && *at != ','; at++) {
    if (*at == ']') return malformed(text, "a ']' has no '['");
    if (isspace((unsigned char)*at)) return malformed(text, "it holds a space");
    if (*at != '[') continue;
    const char *close = strchr(at, ']');
    if (!close) return malformed(text, "a '[' has no ']'");
    GT_TRY(check_ranges(text, at + 1, close));
    at = close;
  }
  if (at == start) return malformed(text, "a name is empty");
  *end = at;
  return GT_OK;
}

gt_status gt_hosts_contain(const char *text, const char *host, bool *found) {
  *found = false;
  for (const char *at = text;;) {
    const char *end = at;
    GT_TRY(name_end(text, at, &end));
    if (match_name(at, end, host)) *found = true;
    if (*end == '\0') return GT_OK;
    at = end + 1;
  }
}

gt_status gt_region_has_host(const gt_region_plan *region, const char *host, bool *found) {
  const char *node = getenv("SLURMD_NODENAME");
  *found = false;
  for (size_t h = 0; h < region->nhosts; h++) {
    bool own, slurm = false;
    GT_TRY(gt_hosts_contain(region->hosts[h], host, &own));
    if (node && *node) GT_TRY(gt_hosts_contain(region->hosts[h], node, &slurm));
    *found = *found || own || slurm;
  }
  return GT_OK;
}
