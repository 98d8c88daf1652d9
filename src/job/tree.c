/* The tree of a YAML text: create, find, insert, free. */
#include <string.h>

#include "internal.h"

job_node *gt_job_node_new(node_kind kind, const char *key, const char *text) {
  job_node *node = GT_NEW(job_node);
  node->kind = kind;
  node->key = gt_strdup(key);
  node->text = gt_strdup(text);
  node->plain = true;
  return node;
}

void gt_job_node_close(job_node *node) {
  if (!node) return;
  for (size_t i = 0; i < node->n; i++) gt_job_node_close(node->items[i]);
  gt_free(node->items);
  gt_free(node->key);
  gt_free(node->text);
  gt_free(node);
}

void gt_job_node_add(job_node *parent, job_node *child) {
  GT_GROW(parent->items, parent->n, parent->capacity, 8);
  parent->items[parent->n++] = child;
}

void gt_job_node_remove(job_node *parent, size_t index) {
  gt_job_node_close(parent->items[index]);
  parent->n--;
  memmove(parent->items + index, parent->items + index + 1,
          (parent->n - index) * sizeof *parent->items);
}

job_node *gt_job_node_find(const job_node *map, const char *key, size_t length) {
  if (map->kind != NODE_MAP) return NULL;
  for (size_t i = 0; i < map->n; i++) {
    const char *have = map->items[i]->key;
    if (strlen(have) == length && memcmp(have, key, length) == 0) return map->items[i];
  }
  return NULL;
}

job_node *gt_job_node_at(job_node *map, const char *path, job_node **parent) {
  for (const char *dot; map && (dot = strchr(path, '.')); path = dot + 1)
    map = gt_job_node_find(map, path, (size_t)(dot - path));
  if (parent) *parent = map;
  return map ? gt_job_node_child(map, path) : NULL;
}

void gt_job_node_put(job_node *map, const char *path, job_node *value) {
  for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
    job_node *next = gt_job_node_find(map, path, (size_t)(dot - path));
    if (!next) {
      char key[JOB_PATH_MAX] = "";
      memcpy(key, path, (size_t)(dot - path));
      next = gt_job_node_new(NODE_MAP, key, NULL);
      gt_job_node_add(map, next);
    }
    map = next;
  }
  gt_free(value->key);
  value->key = gt_strdup(path);
  gt_job_node_add(map, value);
}

job_node *gt_job_node_copy(const job_node *node) {
  job_node *copy = gt_job_node_new(node->kind, node->key, node->text);
  copy->plain = node->plain;
  copy->from_set = node->from_set;
  for (size_t i = 0; i < node->n; i++) gt_job_node_add(copy, gt_job_node_copy(node->items[i]));
  return copy;
}

void gt_job_node_drop(job_node *map, const char *key) {
  for (size_t i = map->n; i-- > 0;)
    if (strcmp(map->items[i]->key, key) == 0) gt_job_node_remove(map, i);
}

job_node *gt_job_node_list(job_node *map, const char *path) {
  job_node *at = map;
  for (const char *word = path; *word;) {
    size_t length = strcspn(word, ".");
    at = gt_job_node_find(at, word, length);
    word += length + (word[length] == '.');
    if (at) continue;
    at = gt_job_node_new(NODE_LIST, NULL, NULL);
    gt_job_node_put(map, path, at);
    break;
  }
  return at;
}

bool gt_job_node_null(const job_node *node) {
  static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
  if (node->kind != NODE_SCALAR || !node->plain) return false;
  for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
    if (strcmp(node->text, nulls[i]) == 0) return true;
  return false;
}
