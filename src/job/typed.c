/* Converts the checked tree to a job, row by row of the table, and frees a job by the same rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- scalars --------------------------------------------------------------------------------- */

static void write_int(const job_key *row, void *at, const char *text) {
  (void)row;
  int value = (int)strtol(text, NULL, 10);
  memcpy(at, &value, sizeof value);
}

static void write_i64(const job_key *row, void *at, const char *text) {
  (void)row;
  int64_t value = strtoll(text, NULL, 10);
  memcpy(at, &value, sizeof value);
}

static void write_u64(const job_key *row, void *at, const char *text) {
  (void)row;
  uint64_t value = strtoull(text, NULL, 10);
  memcpy(at, &value, sizeof value);
}

static void write_real(const job_key *row, void *at, const char *text) {
  (void)row;
  double value = strtod(text, NULL);
  memcpy(at, &value, sizeof value);
}

static void write_bool(const job_key *row, void *at, const char *text) {
  (void)row;
  bool value = strcmp(text, "true") == 0;
  memcpy(at, &value, sizeof value);
}

static void write_text(const job_key *row, void *at, const char *text) {
  (void)row;
  char *copy = gt_strdup(text);
  memcpy(at, &copy, sizeof copy);
}

static void write_choice(const job_key *row, void *at, const char *text) {
  int value = (int)row->min;
  while (strcmp(row->values[value], text) != 0) value++;
  memcpy(at, &value, sizeof value);
}

static void free_text(void *at) {
  gt_free(gt_job_pointer_at(at));
}

_Static_assert(sizeof(gt_strategy) == sizeof(int), "an enum is written as an int");

/* How a value of a key, or an entry of its list, is stored in memory.  The input is canonical
   text. */
static const struct {
  size_t size;
  void (*write)(const job_key *row, void *at, const char *text);
  void (*free)(void *at); /* NULL: nothing to free */
} kinds[] = {
    [KEY_STRING] = {sizeof(char *), write_text, free_text},
    [KEY_CHOICE] = {sizeof(int), write_choice, NULL},
    [KEY_INT] = {sizeof(int), write_int, NULL},
    [KEY_I64] = {sizeof(int64_t), write_i64, NULL},
    [KEY_U64] = {sizeof(uint64_t), write_u64, NULL},
    [KEY_REAL] = {sizeof(double), write_real, NULL},
    [KEY_BOOL] = {sizeof(bool), write_bool, NULL},
    [KEY_TIME] = {sizeof(double), write_real, NULL},
    [KEY_RATE] = {sizeof(double), write_real, NULL},
    [KEY_SIZE] = {sizeof(double), write_real, NULL},
    [KEY_SPEED] = {sizeof(double), write_real, NULL},
    [KEY_INTS] = {sizeof(int64_t), write_i64, NULL},
    [KEY_REALS] = {sizeof(double), write_real, NULL},
    [KEY_STRINGS] = {sizeof(char *), write_text, free_text},
    [KEY_CHOICES] = {sizeof(int), write_choice, NULL},
    [KEY_PAIR] = {sizeof(char *), write_text, free_text},
};

/* ---- rows ------------------------------------------------------------------------------------ */

static void write_rows(void *base, job_node *map, const char *prefix);
static void free_rows(void *base, const char *prefix);

/* The rows of one struct: below `prefix`, with no list in between. */
static bool is_of(const job_key *row, const char *prefix) {
  size_t skip = strlen(prefix);
  return strncmp(row->path, prefix, skip) == 0 && !strchr(row->path + skip, '[');
}

static size_t item_size(const job_key *row) {
  return row->type == KEY_MAPS ? row->item_size : kinds[row->type].size;
}

static void write_entries(const job_key *row, char *items, const job_node *list) {
  char prefix[JOB_PATH_MAX];
  snprintf(prefix, sizeof prefix, "%s[].", row->path);
  for (size_t i = 0; i < list->n; i++) {
    char *at = items + i * item_size(row);
    if (row->type == KEY_MAPS)
      write_rows(at, list->items[i], prefix);
    else
      kinds[row->type].write(row, at, list->items[i]->text);
  }
}

static void write_list(const job_key *row, char *base, const job_node *list) {
  if (list->n == 0) return;
  void *items = gt_alloc(list->n, item_size(row));
  memcpy(base + row->offset, &items, sizeof items);
  memcpy(base + row->count_offset, &list->n, sizeof list->n);
  write_entries(row, items, list);
}

static void write_rows(void *base, job_node *map, const char *prefix) {
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    job_node *node =
        is_of(row, prefix) ? gt_job_node_at(map, row->path + strlen(prefix), NULL) : NULL;
    if (!node) continue;
    if (node->kind == NODE_SCALAR && row->type == KEY_MAPS)
      ((char *)base)[row->auto_offset] = true;
    else if (node->kind == NODE_SCALAR)
      kinds[row->type].write(row, (char *)base + row->offset, node->text);
    else if (row->type == KEY_PAIR)
      write_entries(row, (char *)base + row->offset, node);
    else
      write_list(row, base, node);
  }
}

static void free_entries(const job_key *row, char *items, size_t n) {
  char prefix[JOB_PATH_MAX];
  snprintf(prefix, sizeof prefix, "%s[].", row->path);
  for (size_t i = 0; i < n; i++) {
    char *at = items + i * item_size(row);
    if (row->type == KEY_MAPS)
      free_rows(at, prefix);
    else if (kinds[row->type].free)
      kinds[row->type].free(at);
  }
}

static void free_list(const job_key *row, const char *base) {
  size_t n;
  memcpy(&n, base + row->count_offset, sizeof n);
  char *items = gt_job_pointer_at(base + row->offset);
  free_entries(row, items, n);
  gt_free(items);
}

static void free_rows(void *base, const char *prefix) {
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    if (!is_of(row, prefix)) continue;
    if (row->type == KEY_PAIR || !gt_job_key_list(row))
      free_entries(row, (char *)base + row->offset, row->type == KEY_PAIR ? 2 : 1);
    else
      free_list(row, base);
  }
}

/* ---- jobs ------------------------------------------------------------------------------------ */

gt_job *gt_job_typed(job_node *root) {
  gt_job *job = GT_NEW(gt_job);
  write_rows(job, root, "");
  return job;
}

void gt_job_close(gt_job *job) {
  if (!job) return;
  free_rows(job, "");
  gt_free(job->fleet);
  gt_free(job->source);
  gt_free(job);
}
