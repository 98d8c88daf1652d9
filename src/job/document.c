/* Checks the whole tree against the table (unknown keys, kinds, values), then adds defaults. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* A position in the tree: the path as written ("regions.0.name") and as in the table
   ("regions[].name"). */
typedef struct {
  const char *source;
  char path[JOB_PATH_MAX], pattern[JOB_PATH_MAX];
} place;

static const char *origin(const place *at, const job_node *node) {
  return node->from_set ? "--set" : at->source;
}

static gt_status read_map(const place *at, job_node *map);

static const char *found_text(const job_node *node, char buf[96]) {
  if (node->kind == NODE_MAP) return "a mapping";
  if (node->kind == NODE_LIST) return "a list";
  snprintf(buf, 96, "\"%.80s\"", node->text);
  return buf;
}

static gt_status wrong_kind(const place *at, const job_node *node, const char *needed) {
  char found[96];
  return GT_FAIL(GT_ERR_JOB, "%s: %s is %s; expected %s", origin(at, node), at->path,
                 found_text(node, found), needed);
}

static gt_status read_value(const place *at, const job_key *row, job_node *node) {
  char text[4096], range[256];
  if (node->kind != NODE_SCALAR)
    return wrong_kind(at, node, gt_job_key_range(range, sizeof range, row, true));
  gt_status status = gt_job_value_read(row, at->path, node->text, text, sizeof text);
  if (status != GT_OK) return GT_FAIL(status, "%s: %s", origin(at, node), gt_error_text());
  gt_free(node->text);
  node->text = gt_strdup(text);
  return GT_OK;
}

/* Reports a single value instead of a list: usually the brackets were forgotten. */
static gt_status no_list(const place *at, const job_key *row, const job_node *node) {
  char range[256];
  gt_job_key_range(range, sizeof range, row, true);
  if (node->kind != NODE_SCALAR || row->type == KEY_MAPS) return wrong_kind(at, node, range);
  return GT_FAIL(GT_ERR_JOB, "%s: %s is \"%.80s\"; expected %s, in brackets: [%.80s]",
                 origin(at, node), at->path, node->text, range, node->text);
}

/* Makes a list of one from one value. */
static void enclose(job_node *node) {
  job_node *item = gt_job_node_new(NODE_SCALAR, NULL, NULL);
  item->text = node->text;
  item->plain = node->plain;
  item->from_set = node->from_set;
  node->kind = NODE_LIST;
  node->text = NULL;
  gt_job_node_add(node, item);
}

static bool is_auto(const job_key *row, const job_node *node) {
  return (row->flags & KEY_AUTO) && node->kind == NODE_SCALAR && strcmp(node->text, "auto") == 0;
}

static gt_status read_list(const place *at, const job_key *row, job_node *node) {
  if (is_auto(row, node)) return GT_OK;
  if ((row->flags & KEY_SINGLE) && node->kind == NODE_SCALAR) enclose(node);
  if (node->kind != NODE_LIST) return no_list(at, row, node);
  if (row->type == KEY_PAIR && node->n != 2)
    return GT_FAIL(GT_ERR_JOB, "%s: %s has %zu entries; expected two names of regions",
                   origin(at, node), at->path, node->n);
  if (row->type == KEY_MAPS && (double)node->n < row->min)
    return GT_FAIL(GT_ERR_JOB, "%s: %s is an empty list; expected %g or more entries",
                   origin(at, node), at->path, row->min);
  if (row->type == KEY_MAPS && (double)node->n > row->max)
    return GT_FAIL(GT_ERR_JOB, "%s: %s has %zu entries; expected at most %g", origin(at, node),
                   at->path, node->n, row->max);
  if ((row->flags & KEY_FILLED) && node->n == 0)
    return GT_FAIL(GT_ERR_JOB, "%s: %s is an empty list; expected 1 or more entries",
                   origin(at, node), at->path);
  for (size_t i = 0; i < node->n; i++) {
    place in = *at;
    char index[24];
    snprintf(index, sizeof index, "%zu", i);
    gt_job_path_join(in.path, sizeof in.path, at->path, index);
    snprintf(in.pattern, sizeof in.pattern, "%.*s[]", (int)(sizeof in.pattern - 3), at->pattern);
    if (row->type == KEY_MAPS && node->items[i]->kind != NODE_MAP)
      return wrong_kind(&in, node->items[i], "a mapping");
    GT_TRY(row->type == KEY_MAPS ? read_map(&in, node->items[i])
                                 : read_value(&in, row, node->items[i]));
  }
  return GT_OK;
}

static gt_status read_child(const place *at, const place *parent, job_node *child) {
  const job_key *row = strpbrk(child->key, ".[") ? NULL : gt_job_key_find(at->pattern);
  if (row) return gt_job_key_list(row) ? read_list(at, row, child) : read_value(at, row, child);
  if (strpbrk(child->key, ".[") || !gt_job_key_prefix(at->pattern))
    return gt_job_key_unknown(origin(at, child), parent->path, parent->pattern, child->key);
  if (child->kind != NODE_MAP) return wrong_kind(at, child, "a mapping of keys");
  return read_map(at, child);
}

static gt_status read_map(const place *at, job_node *map) {
  for (size_t i = 0; i < map->n; i++) {
    place in = *at;
    gt_job_path_join(in.path, sizeof in.path, at->path, map->items[i]->key);
    gt_job_path_join(in.pattern, sizeof in.pattern, at->pattern, map->items[i]->key);
    GT_TRY(read_child(&in, at, map->items[i]));
  }
  return GT_OK;
}

gt_status gt_job_values(job_node *root, const char *source) {
  place at = {.source = source};
  if (gt_job_node_null(root))
    return GT_FAIL(GT_ERR_JOB, "%s: is empty; expected a job (`geotrain help job` shows one)",
                   source);
  if (root->kind != NODE_MAP)
    return GT_FAIL(GT_ERR_JOB, "%s: is %s; expected a mapping of keys (`geotrain help job`)",
                   source, root->kind == NODE_LIST ? "a list" : "one value");
  return read_map(&at, root);
}

/* ---- defaults -------------------------------------------------------------------------------- */

#define STRATEGY "sync.strategy"

/* Handles all rows below `pattern` without a list in between. */
static gt_status fill(job_node *map, const char *pattern, const char *path, const char *source) {
  size_t skip = strlen(pattern) + (*pattern ? 1 : 0);
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    if (*pattern && (strncmp(row->path, pattern, skip - 1) != 0 || row->path[skip - 1] != '.'))
      continue;
    const char *rest = row->path + skip;
    if (strchr(rest, '[') || !gt_job_key_fits(map, row)) continue;
    job_node *parent, *node = gt_job_node_at(map, rest, &parent);
    char full[JOB_PATH_MAX], item[JOB_PATH_MAX], items[JOB_PATH_MAX], text[64], index[24];
    gt_job_path_join(full, sizeof full, path, rest);
    if (!node && (row->flags & KEY_REQUIRED))
      return GT_FAIL(GT_ERR_JOB, "%s: %s is missing; the job must give it: %s", source, full,
                     row->meaning);
    for (size_t k = 0; node && row->type == KEY_MAPS && k < node->n; k++) {
      snprintf(index, sizeof index, "%zu", k);
      gt_job_path_join(item, sizeof item, full, index);
      snprintf(items, sizeof items, "%.*s[]", (int)(sizeof items - 3), row->path);
      GT_TRY(fill(node->items[k], items, item, source));
    }
    if (!node && (row->flags & KEY_UNSAID))
      gt_job_node_put(map, rest, gt_job_node_new(NODE_SCALAR, NULL, "-1"));
    if (node || !row->fallback) continue;
    /* if one of several exclusive keys is given, the others are 0 instead of their defaults */
    bool other = (row->flags & KEY_ONE_OF) && parent && parent->n > 0;
    GT_TRY(gt_job_value_read(row, full, other ? "0" : row->fallback, text, sizeof text));
    gt_job_node_put(map, rest, gt_job_node_new(NODE_SCALAR, NULL, text));
  }
  return GT_OK;
}

/* Sets the default of sync.strategy to none with a pipeline. */
static void default_strategy(job_node *root) {
  if (gt_job_node_at(root, "pipeline.stages", NULL) && !gt_job_node_at(root, STRATEGY, NULL))
    gt_job_node_put(root, STRATEGY, gt_job_node_new(NODE_SCALAR, NULL, "none"));
}

gt_status gt_job_defaults(job_node *root, const char *source) {
  default_strategy(root);
  return fill(root, "", "", source);
}
