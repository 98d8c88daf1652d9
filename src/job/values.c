/* Checks one value against the type and range of its key, and makes its canonical text. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void gt_job_number_text(char *buf, size_t size, key_type type, double value) {
  static const struct {
    key_type type;
    const char *unit;
    double factor;
  } units[] = {{KEY_TIME, "h", 3600},     {KEY_TIME, "min", 60},     {KEY_TIME, "s", 1},
               {KEY_TIME, "ms", 1e-3},    {KEY_TIME, "us", 1e-6},    {KEY_RATE, "Gbit/s", 1e9},
               {KEY_RATE, "Mbit/s", 1e6}, {KEY_RATE, "kbit/s", 1e3}, {KEY_RATE, "bit/s", 1},
               {KEY_SIZE, "GiB", 0x1p30}, {KEY_SIZE, "MiB", 0x1p20}, {KEY_SIZE, "KiB", 1024},
               {KEY_SIZE, "B", 1}};
  gt_status (*parse)(const char *, double *) = type == KEY_TIME   ? gt_parse_time_s
                                               : type == KEY_RATE ? gt_parse_rate_bps
                                                                  : gt_parse_size_bytes;
  const char *base = type == KEY_TIME    ? "s"
                     : type == KEY_RATE  ? "bit/s"
                     : type == KEY_SIZE  ? "B"
                     : type == KEY_SPEED ? "samples/s"
                                         : NULL;
  double back = NAN;
  /* prefers a whole number of a larger unit if it reads back to the same number; minutes and hours
     only from 1000 s */
  for (size_t i = 0; base && value > 0 && i < sizeof units / sizeof *units; i++) {
    double count = value / units[i].factor;
    if (units[i].type != type || fabs(count - round(count)) > 1e-9 * count || count < 0.5 ||
        (units[i].factor >= 60 && type == KEY_TIME && value < 1000))
      continue;
    snprintf(buf, size, "%.0f %s", count, units[i].unit);
    if (parse(buf, &back) == GT_OK && back == value) return;
  }
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(buf, size, "%.*g", digits, value);
    if (strtod(buf, NULL) == value) break;
  }
  if (base) snprintf(buf + strlen(buf), size - strlen(buf), " %s", base);
}

void gt_job_bare_text(char *buf, size_t size, double value) {
  for (int decimals = 0; decimals <= 330; decimals++) {
    snprintf(buf, size, "%.*f", decimals, value);
    if (strtod(buf, NULL) == value) return;
  }
}

/* Reports "PATH is VALUE; expected RANGE", with quotes if the value is not a number. */
static gt_status refuse(const job_key *row, const char *path, const char *text, bool is_number) {
  char range[256];
  const char *quote = is_number ? "" : "\"";
  return GT_FAIL(GT_ERR_JOB, "%s is %s%.80s%s; expected %s%s%s", path, quote, text, quote,
                 gt_job_key_range(range, sizeof range, row, !is_number), row->why ? ": " : "",
                 row->why ? row->why : "");
}

static gt_status read_choice(const job_key *row, const char *path, const char *text, char *buf,
                             size_t size) {
  const char *const *values = row->values + (size_t)row->min;
  size_t n = 0;
  for (; values[n]; n++) {
    if (strcmp(values[n], text) == 0) {
      snprintf(buf, size, "%s", text);
      return GT_OK;
    }
  }
  const char *near = row->why ? NULL : gt_nearest(text, values, n);
  if (!near) return refuse(row, path, text, false);
  char range[256];
  return GT_FAIL(GT_ERR_JOB, "%s is \"%.80s\"; expected %s; did you mean %s?", path, text,
                 gt_job_key_range(range, sizeof range, row, false), near);
}

static bool in_range(const job_key *row, double value) {
  if (!isfinite(value) || value < row->min || (value == row->min && (row->flags & KEY_ABOVE_MIN)))
    return false;
  return row->max <= 0 || value < row->max || (value == row->max && !(row->flags & KEY_BELOW_MAX));
}

/* Reports a number above the upper bound of the table. */
static gt_status too_large(const job_key *row, const char *path, const char *text) {
  return GT_FAIL(GT_ERR_JOB, "%s is %.80s; expected at most %g", path, text,
                 row->max > 0 ? row->max : 1.8e19);
}

static gt_status read_integer(const job_key *row, const char *path, const char *text, char *buf,
                              size_t size) {
  if ((row->flags & KEY_AUTO) && strcmp(text, "auto") == 0) {
    snprintf(buf, size, "0");
    return GT_OK;
  }
  bool negative = text[0] == '-';
  const char *digits = text + (negative || text[0] == '+');
  if (!*digits || digits[strspn(digits, "0123456789")]) return refuse(row, path, text, false);
  errno = 0;
  unsigned long long value = strtoull(digits, NULL, 10);
  if (negative && value > 0) return refuse(row, path, text, true);
  if (!in_range(row, (double)value) && (double)value <= row->min)
    return refuse(row, path, text, true);
  if (errno == ERANGE || !in_range(row, (double)value)) return too_large(row, path, text);
  snprintf(buf, size, "%llu", value);
  return GT_OK;
}

static gt_status read_real(const job_key *row, const char *path, const char *text, char *buf,
                           size_t size) {
  char *end;
  double value = strtod(text, &end);
  if (!*text || *end || text[strspn(text, "0123456789+-.eE")])
    return refuse(row, path, text, false);
  bool upper_said = (row->flags & KEY_BELOW_MAX) || (row->max > 0 && row->max <= 1);
  if (!in_range(row, value))
    return value > row->min && !upper_said ? too_large(row, path, text)
                                           : refuse(row, path, text, true);
  gt_job_number_text(buf, size, KEY_REAL, value);
  return GT_OK;
}

/* Reads samples/s with an optional unit. */
static gt_status read_speed(const job_key *row, const char *path, const char *text, char *buf,
                            size_t size) {
  static const char unit[] = "samples/s";
  char number[96];
  size_t length = strlen(text), end = sizeof unit - 1;
  if (length > end && length < sizeof number && strcmp(text + length - end, unit) == 0) {
    for (length -= end; length && text[length - 1] == ' ';) length--;
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    text = number;
  }
  return read_real(row, path, text, buf, size);
}

/* Converts [DAYS-]HOURS:MINUTES:SECONDS, the time format of sbatch, to a time with a unit. */
static bool read_clock(const char *text, char *buf, size_t size) {
  unsigned days = 0, h, m, s;
  char more;
  if (sscanf(text, "%5u:%2u:%2u%c", &h, &m, &s, &more) != 3 &&
      sscanf(text, "%5u-%2u:%2u:%2u%c", &days, &h, &m, &s, &more) != 4)
    return false;
  gt_job_number_text(buf, size, KEY_TIME, 86400. * days + 3600. * h + 60. * m + s);
  return true;
}

static gt_status read_quantity(const job_key *row, const char *path, const char *text, char *buf,
                               size_t size) {
  double value = 0;
  gt_status status = row->type == KEY_TIME   ? gt_parse_time_s(text, &value)
                     : row->type == KEY_RATE ? gt_parse_rate_bps(text, &value)
                                             : gt_parse_size_bytes(text, &value);
  if (status != GT_OK) {
    char example[64];
    if (row->type == KEY_TIME && read_clock(text, example, sizeof example))
      return GT_FAIL(GT_ERR_JOB, "%s is \"%.80s\"; expected a time with its unit, as in %s", path,
                     text, example);
    return GT_FAIL(GT_ERR_JOB, "%s: %s", path, gt_error_text());
  }
  if (!in_range(row, value)) {
    if (value > row->min)
      return GT_FAIL(GT_ERR_JOB, "%s is %.80s; expected at most %g %s", path, text, row->max,
                     row->type == KEY_TIME ? "s" : "");
    return refuse(row, path, text, true);
  }
  gt_job_number_text(buf, size, KEY_REAL, value);
  return GT_OK;
}

static gt_status read_bool(const job_key *row, const char *path, const char *text, char *buf,
                           size_t size) {
  static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};
  for (size_t i = 0; i < 3; i++) {
    if (strcasecmp(text, yes[i]) != 0 && strcasecmp(text, no[i]) != 0) continue;
    snprintf(buf, size, "%s", strcasecmp(text, yes[i]) == 0 ? "true" : "false");
    return GT_OK;
  }
  return refuse(row, path, text, false);
}

/* Checks text that follows #SBATCH in a batch script: quotes, comment characters and shell
   expansions would change the following lines. */
static gt_status check_script(const job_key *row, const char *path, const char *text) {
  if (row->flags & KEY_WORD && !(row->flags & KEY_SCRIPT) && strpbrk(text, " \t\n,"))
    return GT_FAIL(GT_ERR_JOB, "%s is \"%.80s\"; expected one word without space or comma", path,
                   text);
  if (!(row->flags & KEY_SCRIPT)) return GT_OK;
  const char *wrong = strpbrk(text, row->flags & KEY_WORD ? "\"'`\\$# \t\n" : "\"'`\\$#\t\n");
  if (wrong)
    return GT_FAIL(GT_ERR_JOB,
                   "%s is \"%.80s\" and has %s in it; expected text for a batch script, without "
                   "quotes, backslash, $, #%s",
                   path, text,
                   *wrong == ' '                      ? "a space"
                   : *wrong == '\t' || *wrong == '\n' ? "a tab or line break"
                                                      : (char[]){*wrong, '\0'},
                   row->flags & KEY_WORD ? " or space" : " or line break");
  if (row->type == KEY_STRINGS && text[0] != '-')
    return GT_FAIL(
        GT_ERR_JOB,
        "%s is \"%.80s\"; expected an option of sbatch, with its dashes, as in --exclusive", path,
        text);
  return GT_OK;
}

/* Limits the length: records and checkpoints have name fields of fixed size, and paths the system's
   limit. */
static gt_status read_string(const job_key *row, const char *path, const char *text, char *buf,
                             size_t size) {
  size_t length = strlen(text);
  if (length == 0) return GT_FAIL(GT_ERR_JOB, "%s is empty; expected text", path);
  if (length >= size)
    return GT_FAIL(GT_ERR_JOB, "%s has %zu letters; expected at most %zu", path, length, size - 1);
  GT_TRY(check_script(row, path, text));
  memcpy(buf, text, length + 1);
  return GT_OK;
}

gt_status gt_job_value_read(const job_key *row, const char *path, const char *text, char *buf,
                            size_t size) {
  job_key one = *row; /* type of one list entry: number or choice */
  one.type = row->type == KEY_INTS ? KEY_I64 : row->type == KEY_CHOICES ? KEY_CHOICE : KEY_REAL;
  switch (row->type) {
  case KEY_INTS:
    return read_integer(&one, path, text, buf, size);
  case KEY_REALS:
    return read_real(&one, path, text, buf, size);
  case KEY_CHOICE:
    return read_choice(row, path, text, buf, size);
  case KEY_INT:
  case KEY_I64:
  case KEY_U64:
    return read_integer(row, path, text, buf, size);
  case KEY_REAL:
    return read_real(row, path, text, buf, size);
  case KEY_TIME:
  case KEY_RATE:
  case KEY_SIZE:
    return read_quantity(row, path, text, buf, size);
  case KEY_BOOL:
    return read_bool(row, path, text, buf, size);
  case KEY_SPEED:
    return read_speed(row, path, text, buf, size);
  case KEY_CHOICES:
    return read_choice(&one, path, text, buf, size);
  case KEY_STRINGS:
  case KEY_STRING:
  case KEY_PAIR:
    return read_string(row, path, text, buf, size);
  case KEY_MAPS:
    break;
  }
  return GT_FAIL(GT_ERR_FAULT, "%s: a list has no value of its own", path);
}
