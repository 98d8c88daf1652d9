/* Keys that only some values of a choice have (options of strategies and models), or only jobs with
   some list.  The rows of the table name the values or the list. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

static bool has(const job_key *row, const char *value) {
  const char *const *values = gt_job_key_find(row->choice)->values;
  for (size_t i = 0; values[i]; i++)
    if (strcmp(values[i], value) == 0) return (row->having >> i & 1) != 0;
  return false;
}

bool gt_job_key_used(const char *key, const char *value) {
  const job_key *row = gt_job_key_find(key);
  return !row->choice || has(row, value);
}

bool gt_job_key_fits(job_node *root, const job_key *row) {
  return !row->with || gt_job_node_at(root, row->with, NULL);
}

char *gt_job_key_owners(char *buf, size_t size, const job_key *row) {
  const char *const *values = row->choice ? gt_job_key_find(row->choice)->values : NULL;
  size_t used = 0;
  buf[0] = '\0';
  for (size_t i = 0; values && values[i] && used < size; i++)
    if (row->having >> i & 1)
      used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", values[i]);
  return buf;
}

/* Returns the value of the choice in this tree; NULL: a required one is missing. */
static const char *chosen(job_node *root, const job_key *row) {
  const job_node *node = gt_job_node_at(root, row->choice, NULL);
  return node ? node->text : gt_job_key_find(row->choice)->fallback;
}

/* True if the chosen value, or one that a plan compares with it, has the key. */
static bool is_used(job_node *root, const job_key *row) {
  const char *value = chosen(root, row);
  const job_node *others = row->compared ? gt_job_node_at(root, row->compared, NULL) : NULL;
  if (!value || has(row, value)) return true;
  for (size_t i = 0; others && i < others->n; i++)
    if (has(row, others->items[i]->text)) return true;
  return false;
}

static bool is_foreign(job_node *root, const job_key *row) {
  return row->choice && !(row->flags & KEY_LENIENT) && !is_used(root, row);
}

gt_status gt_job_check_owners(job_node *root, const char *source) {
  char owners[128];
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    const bool given = gt_job_node_at(root, row->path, NULL) != NULL;
    if (given && !gt_job_key_fits(root, row))
      return GT_FAIL(GT_ERR_JOB, "%s: %s is given and %s is not; expected both or neither", source,
                     row->path, row->with);
    if (!given || !is_foreign(root, row)) continue;
    return GT_FAIL(GT_ERR_JOB, "%s: %s is given and %s is %s; it is for %s %s only", source,
                   row->path, row->choice, chosen(root, row), row->choice,
                   gt_job_key_owners(owners, sizeof owners, row));
  }
  return GT_OK;
}

const char *gt_job_key_idle(job_node *root, const job_key *row) {
  return row->flags & KEY_LENIENT && !is_used(root, row) ? chosen(root, row) : NULL;
}

/* Drops the key, and its map if that is then empty. */
static void drop(job_node *root, job_node *map, const char *path) {
  char parent[64];
  gt_job_node_drop(map, strrchr(path, '.') + 1);
  if (map->n > 0) return;
  snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '.') - path), path);
  if (strchr(parent, '.') && gt_job_node_at(root, parent, &map))
    gt_job_node_drop(map, strrchr(parent, '.') + 1);
}

void gt_job_drop_foreign(job_node *root) {
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    job_node *map = NULL;
    if (is_foreign(root, row) && gt_job_node_at(root, row->path, &map)) drop(root, map, row->path);
  }
}
