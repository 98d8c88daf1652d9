/* The resolved job: every key with a value, except options that the job's strategy or model does
   not have, in table order, as text that reads back to the same job. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static const void *member(const void *base, size_t offset) {
  return (const char *)base + offset;
}

static double real_at(const void *at) {
  double value;
  memcpy(&value, at, sizeof value);
  return value;
}

static job_node *scalar(const char *text) {
  return gt_job_node_new(NODE_SCALAR, NULL, text);
}

/* larger than the text of any number in the table's ranges */
static job_node *number(key_type type, double value, bool bare) {
  char text[384];
  if (bare)
    gt_job_bare_text(text, sizeof text, value);
  else
    gt_job_number_text(text, sizeof text, type, value);
  return scalar(text);
}

static job_node *whole(const void *at) {
  char text[32];
  int64_t value;
  memcpy(&value, at, sizeof value);
  snprintf(text, sizeof text, "%" PRId64, value);
  return scalar(text);
}

static job_node *integer(const job_key *row, const void *at) {
  char text[32];
  int small = 0;
  int64_t wide = 0;
  uint64_t natural = 0;
  if (row->type == KEY_INT) memcpy(&small, at, sizeof small), wide = small;
  if (row->type == KEY_I64) memcpy(&wide, at, sizeof wide);
  if (row->type == KEY_U64) memcpy(&natural, at, sizeof natural);
  if (row->type == KEY_U64)
    snprintf(text, sizeof text, "%" PRIu64, natural);
  else
    snprintf(text, sizeof text, "%" PRId64, wide);
  if ((row->flags & KEY_AUTO) && wide == 0) return scalar("auto");
  /* A 0 is not written if the key excludes others, or if it is optional and 0 is below its range:
     it was not given. */
  bool unsaid = (row->flags & KEY_ONE_OF) || ((row->flags & KEY_OPTIONAL) && row->min > 0);
  return wide == 0 && unsaid ? NULL : scalar(text);
}

static job_node *choice(const job_key *row, const void *at) {
  int value;
  memcpy(&value, at, sizeof value);
  return value < (int)row->min ? NULL : scalar(row->values[value]);
}

static void write_rows(job_node *map, const char *prefix, const void *base, bool bare);

static job_node *list(const job_key *row, const void *base, bool bare) {
  const char *items = gt_job_pointer_at(member(base, row->offset));
  size_t n = 0;
  memcpy(&n, member(base, row->count_offset), sizeof n);
  if (n == 0 && (row->flags & KEY_OPTIONAL)) return NULL;
  job_node *node = gt_job_node_new(NODE_LIST, NULL, NULL);
  char prefix[JOB_PATH_MAX];
  snprintf(prefix, sizeof prefix, "%s[].", row->path);
  for (size_t i = 0; i < n; i++) {
    job_node *item = NULL;
    if (row->type == KEY_INTS)
      item = whole(items + i * sizeof(int64_t));
    else if (row->type == KEY_REALS)
      item = number(KEY_REAL, real_at(items + i * sizeof(double)), bare);
    else if (row->type == KEY_CHOICES)
      item = choice(row, items + i * sizeof(int));
    else if (row->type == KEY_STRINGS)
      item = scalar(gt_job_pointer_at(items + i * sizeof(char *)));
    else
      write_rows(item = gt_job_node_new(NODE_MAP, NULL, NULL), prefix, items + i * row->item_size,
                 bare);
    gt_job_node_add(node, item);
  }
  return node;
}

static job_node *pair(const void *at) {
  job_node *node = gt_job_node_new(NODE_LIST, NULL, NULL);
  for (size_t i = 0; i < 2; i++)
    gt_job_node_add(node, scalar(gt_job_pointer_at(member(at, i * sizeof(char *)))));
  return node;
}

/* True if the list is auto. */
static bool is_auto(const job_key *row, const void *base) {
  bool flag = false;
  if (row->type == KEY_MAPS && (row->flags & KEY_AUTO))
    memcpy(&flag, member(base, row->auto_offset), sizeof flag);
  return flag;
}

/* Returns the value of a key as a node, or NULL if it has none. */
static job_node *value_node(const job_key *row, const void *base, bool bare) {
  const void *at = member(base, row->offset);
  bool flag = false;
  switch (row->type) {
  case KEY_CHOICE:
    return choice(row, at);
  case KEY_STRING:
    return gt_job_pointer_at(at) ? scalar(gt_job_pointer_at(at)) : NULL;
  case KEY_INT:
  case KEY_I64:
  case KEY_U64:
    return integer(row, at);
  case KEY_BOOL:
    memcpy(&flag, at, sizeof flag);
    return scalar(flag ? "true" : "false");
  case KEY_REAL:
  case KEY_TIME:
  case KEY_RATE:
  case KEY_SIZE:
  case KEY_SPEED:
    if (row->flags & KEY_UNSAID)
      return real_at(at) < 0 ? NULL : number(row->type, real_at(at), bare);
    return real_at(at) <= 0 && (row->flags & (KEY_OPTIONAL | KEY_ONE_OF))
               ? NULL
               : number(row->type, real_at(at), bare);
  case KEY_PAIR:
    return gt_job_pointer_at(at) ? pair(at) : NULL;
  case KEY_INTS:
  case KEY_REALS:
  case KEY_STRINGS:
  case KEY_CHOICES:
    return list(row, base, bare);
  case KEY_MAPS:
    return is_auto(row, base) ? scalar("auto") : list(row, base, bare);
  }
  return NULL;
}

/* Writes "never", because the default is another value. */
static void write_never(job_node *map, const gt_job *job) {
  const gt_job_interval *e = &job->train.eval_every;
  if (e->epochs <= 0 && e->steps == 0) gt_job_node_put(map, "train.eval_every.epochs", scalar("0"));
}

/* True if the job at `base` has the list that the row requires.  In an item of a list, `base` is
   the item, and such a row exists if it has a value. */
static bool has_list(const job_key *row, const void *base) {
  size_t n = 1;
  const bool of_job = !strchr(row->path, '[');
  const job_key *list = row->with && of_job ? gt_job_key_find(row->with) : NULL;
  if (list) memcpy(&n, member(base, list->count_offset), sizeof n);
  return n > 0 || is_auto(list, base);
}

static void write_rows(job_node *map, const char *prefix, const void *base, bool bare) {
  size_t skip = strlen(prefix);
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    if (strncmp(row->path, prefix, skip) != 0 || strchr(row->path + skip, '[')) continue;
    job_node *node = has_list(row, base) ? value_node(row, base, bare) : NULL;
    if (node) gt_job_node_put(map, row->path + skip, node);
  }
}

job_node *gt_job_tree(const gt_job *job, bool bare) {
  job_node *root = gt_job_node_new(NODE_MAP, NULL, NULL);
  write_rows(root, "", job, bare);
  write_never(root, job);
  gt_job_drop_foreign(root);
  return root;
}

char *gt_job_resolved(const gt_job *job) {
  job_node *root = gt_job_tree(job, false);
  char *text = gt_job_yaml_emit(root, false);
  gt_job_node_close(root);
  return text;
}

/* ---- what all sites have in common ----------------------------------------------------------- */

/* Removes from a map or list what differs between sites; `pattern` is its path in the table. */
static void keep_common(job_node *node, const char *pattern) {
  for (size_t i = node->n; i-- > 0;) {
    job_node *item = node->items[i];
    char path[JOB_PATH_MAX];
    if (node->kind == NODE_MAP)
      gt_job_path_join(path, sizeof path, pattern, item->key);
    else
      snprintf(path, sizeof path, "%.*s[]", (int)(sizeof path - 3), pattern);
    const job_key *row = gt_job_key_find(path);
    if (row && (row->flags & KEY_AT_SITE)) {
      gt_job_node_remove(node, i);
    } else if (row && (row->flags & KEY_PATH)) {
      gt_free(item->text);
      item->text = gt_strdup("a path of the site");
    } else if (item->n > 0) {
      keep_common(item, path);
      if (item->n == 0) gt_job_node_remove(node, i);
    }
  }
}

char *gt_job_common(const gt_job *job) {
  job_node *root = gt_job_tree(job, false);
  keep_common(root, "");
  char *text = gt_job_yaml_emit(root, false);
  gt_job_node_close(root);
  return text;
}

/* ---- for scripts: one value a line ----------------------------------------------------------- */

static void print_node(FILE *to, const job_node *node, const char *path) {
  if (node->kind == NODE_SCALAR) fprintf(to, "%s=%s\n", path, node->text);
  for (size_t i = 0; i < node->n; i++) {
    char item[JOB_PATH_MAX], index[24];
    snprintf(index, sizeof index, "%zu", i);
    gt_job_path_join(item, sizeof item, path, node->kind == NODE_MAP ? node->items[i]->key : index);
    print_node(to, node->items[i], item);
  }
}

void gt_job_flat(const gt_job *job, FILE *to) {
  job_node *root = gt_job_tree(job, true);
  print_node(to, root, "");
  gt_job_node_close(root);
}
