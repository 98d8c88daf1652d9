/* Messages about keys: the range of a key, the known key nearest to an unknown one, the region
   nearest to an unknown one. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Appends as much of the text as fits. */
static void say(char *buf, size_t size, const char *text) {
  size_t used = strlen(buf), count = strnlen(text, size - used - 1);
  memcpy(buf + used, text, count);
  buf[used + count] = '\0';
}

void gt_job_path_join(char *buf, size_t size, const char *map, const char *key) {
  buf[0] = '\0';
  say(buf, size, map);
  if (*map) say(buf, size, ".");
  say(buf, size, key);
}

static const char *kind_text(const job_key *row) {
  switch (row->type) {
  case KEY_INT:
  case KEY_I64:
  case KEY_U64:
    return "an integer";
  case KEY_REAL:
    return "a number";
  case KEY_SPEED:
    return "a number of samples/s";
  case KEY_BOOL:
    return "true or false";
  case KEY_TIME:
    return "a time such as 25 ms";
  case KEY_RATE:
    return "a rate such as 100 Mbit/s";
  case KEY_SIZE:
    return "a size such as 1 GiB";
  case KEY_INTS:
    return "a list of integers";
  case KEY_REALS:
    return "a list of numbers";
  case KEY_STRINGS:
    return row->flags & KEY_SINGLE ? "a name or a list of names" : "a list of names";
  case KEY_CHOICES:
    return "a list, each ";
  case KEY_PAIR:
    return "a list of two names";
  case KEY_MAPS:
    return "a list of mappings";
  case KEY_STRING:
  case KEY_CHOICE:
    break;
  }
  return row->flags & KEY_WORD && !(row->flags & KEY_SCRIPT) ? "one word" : "text";
}

static void one_of(char *buf, size_t size, const job_key *row) {
  const size_t first = (size_t)row->min;
  if (row->values[first + 1]) say(buf, size, "one of ");
  for (size_t i = first; row->values[i]; i++) {
    if (i > first) say(buf, size, ", ");
    say(buf, size, row->values[i]);
  }
}

/* Larger upper bounds only exclude mistakes, and are not part of a range. */
#define UPPER_SAID 65536

static void limits(char *buf, size_t size, const job_key *row) {
  char unit[3] = "", text[96];
  bool upper = (row->flags & KEY_BELOW_MAX) || (row->max > 0 && row->max <= UPPER_SAID);
  if (row->type == KEY_TIME) strcpy(unit, " s");
  snprintf(text, sizeof text, row->flags & KEY_ABOVE_MIN ? "more than %g%s" : "%g%s or more",
           row->min, unit);
  say(buf, size, text);
  snprintf(text, sizeof text,
           row->flags & KEY_BELOW_MAX ? " and less than %g%s" : " and at most %g%s", row->max,
           unit);
  if (upper) say(buf, size, text);
  if (row->flags & KEY_AUTO) say(buf, size, " (or auto)");
}

char *gt_job_key_range(char *buf, size_t size, const job_key *row, bool full) {
  buf[0] = '\0';
  bool number = row->type == KEY_INT || row->type == KEY_I64 || row->type == KEY_U64 ||
                row->type == KEY_REAL || row->type == KEY_SPEED;
  bool quantity = row->type == KEY_TIME || row->type == KEY_RATE || row->type == KEY_SIZE;
  if (row->type == KEY_CHOICE) {
    one_of(buf, size, row);
    return buf;
  }
  if (!number || full) say(buf, size, kind_text(row));
  if (row->type == KEY_CHOICES) one_of(buf, size, row);
  if (row->type == KEY_MAPS && (row->flags & KEY_AUTO)) say(buf, size, " or auto");
  if (!number && !quantity) return buf;
  if (buf[0]) say(buf, size, ", ");
  limits(buf, size, row);
  return buf;
}

/* ---- unknown keys ---------------------------------------------------------------------------- */

/* Returns the distinct keys directly below a map in the table; a list is one key. */
static size_t children(const char *pattern, char names[JOB_KEYS_MAX][64]) {
  size_t n = 0, skip = strlen(pattern) + (*pattern ? 1 : 0);
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const char *path = gt_job_keys[i].path;
    if (*pattern && (strncmp(path, pattern, skip - 1) != 0 || path[skip - 1] != '.')) continue;
    size_t length = strcspn(path + skip, ".[");
    if (n && strlen(names[n - 1]) == length && memcmp(names[n - 1], path + skip, length) == 0)
      continue;
    memcpy(names[n], path + skip, length);
    names[n++][length] = '\0';
  }
  return n;
}

static const char *last_word(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot ? dot + 1 : path;
}

static bool below(const char *path, const char *pattern) {
  size_t n = strlen(pattern);
  return n == 0 || (strncmp(path, pattern, n) == 0 && strchr(".[", path[n]));
}

/* Returns the key with this last word: one below the given map, else the one with the shortest
   path. */
static const char *elsewhere(const char *word, const char *pattern) {
  const char *best = NULL;
  for (size_t i = 0; word && i < gt_job_nkeys; i++) {
    const char *path = gt_job_keys[i].path;
    if (strcmp(last_word(path), word) != 0) continue;
    bool nearer = best && below(path, pattern) != below(best, pattern)
                      ? below(path, pattern)
                      : best && strlen(path) < strlen(best);
    if (!best || nearer) best = path;
  }
  return best;
}

static const char *nearest_word(const char *key) {
  const char *words[JOB_KEYS_MAX];
  for (size_t i = 0; i < gt_job_nkeys; i++) words[i] = last_word(gt_job_keys[i].path);
  return gt_nearest(key, words, gt_job_nkeys);
}

/* Returns the key as written at this place, or NULL: in a list entry only keys of that entry can be
   suggested. */
static const char *from_here(char *path, const char *near, const char *map, const char *pattern) {
  if (!near || (strchr(pattern, '[') && !below(near, pattern))) return NULL;
  if (!*pattern || !below(near, pattern)) return near;
  gt_job_path_join(path, 2 * JOB_PATH_MAX, map, near + strlen(pattern) + 1);
  return path;
}

gt_status gt_job_key_unknown(const char *source, const char *map, const char *pattern,
                             const char *key) {
  char names[JOB_KEYS_MAX][64], full[JOB_PATH_MAX], path[2 * JOB_PATH_MAX], list[512] = "";
  const char *pointers[JOB_KEYS_MAX];
  size_t n = children(pattern, names);
  for (size_t i = 0; i < n; i++) pointers[i] = names[i];
  gt_job_path_join(full, sizeof full, map, key);
  const char *near = from_here(path, elsewhere(key, pattern), map, pattern);
  if (!near) {
    near = gt_nearest(key, pointers, n);
    if (near)
      gt_job_path_join(path, sizeof path, map, near), near = path;
    else if (!*pattern)
      near = elsewhere(nearest_word(key), pattern);
  }
  if (near) return GT_FAIL(GT_ERR_JOB, "%s: unknown key %s; did you mean %s?", source, full, near);
  for (size_t i = 0; i < n; i++)
    say(list, sizeof list, i ? ", " : ""), say(list, sizeof list, names[i]);
  return GT_FAIL(GT_ERR_JOB, "%s: unknown key %s; expected one of %s there", source, full, list);
}

/* ---- names of regions ------------------------------------------------------------------------ */

gt_status gt_job_check_region(const gt_job *job, const char *source, const char *key,
                              const char *value) {
  const char **names = GT_NEW_ARRAY(const char *, job->nregions);
  bool found = false;
  for (size_t r = 0; r < job->nregions; r++) {
    names[r] = job->regions[r].name;
    found |= strcmp(names[r], value) == 0;
  }
  const char *near = found ? NULL : gt_nearest(value, names, job->nregions);
  gt_free(names);
  if (found) return GT_OK;
  return GT_FAIL(
      GT_ERR_JOB,
      "%s: %s is \"%s\", which is not a region of the job; expected the name of one%s%s%s", source,
      key, value, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}
