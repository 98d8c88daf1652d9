/* Values from the command line, and keys without a value. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- keys without a value -------------------------------------------------------------------- */

/* `null` (or ~) means not given.  A missing value is an error, usually a forgotten space or a
   decimal comma inside { }, where YAML makes a key of it. */

static bool is_number(const char *text) {
  return *text && !text[strspn(text, "0123456789")];
}

/* Writes the probable intention. */
static void guess(char *buf, size_t size, const job_node *map, size_t i) {
  const char *key = map->items[i]->key, *colon = strchr(key, ':');
  const job_node *before = i > 0 ? map->items[i - 1] : NULL;
  if (colon && colon[1])
    snprintf(buf, size, "a space must follow the colon: %.*s: %s", (int)(colon - key), key,
             colon + 1);
  else if (isdigit((unsigned char)*key) && before && before->kind == NODE_SCALAR &&
           is_number(before->text))
    snprintf(buf, size, "a decimal point instead of a comma: %s: %s.%s", before->key, before->text,
             key);
  else
    snprintf(buf, size, "give a value, or remove the key; # begins a comment unless in quotes");
}

static gt_status no_value(const job_node *map, size_t i, const char *source, const char *path) {
  const job_node *node = map->items[i];
  char line[32] = "", reason[192];
  if (!node->from_set) snprintf(line, sizeof line, ":%zu", node->line);
  guess(reason, sizeof reason, map, i);
  return GT_FAIL(GT_ERR_JOB, "%s%s: %s has no value; %s", source, line, path, reason);
}

static bool is_known(const char *pattern) {
  return gt_job_key_find(pattern) || gt_job_key_prefix(pattern);
}

/* NULL as pattern: the tree is not a job. */
static gt_status prune(job_node *node, const char *source, const char *path, const char *pattern) {
  for (size_t i = 0; i < node->n;) {
    job_node *child = node->items[i];
    char in[JOB_PATH_MAX], under[JOB_PATH_MAX] = "", index[24];
    snprintf(index, sizeof index, "%zu", i);
    gt_job_path_join(in, sizeof in, path, child->key ? child->key : index);
    if (pattern && child->key)
      gt_job_path_join(under, sizeof under, pattern, child->key);
    else if (pattern)
      snprintf(under, sizeof under, "%.*s[]", (int)(sizeof under - 3), pattern);
    if (child->key && gt_job_node_null(child)) {
      if (!*child->text) return no_value(node, i, source, in);
      if (pattern && (strpbrk(child->key, ".[") || !is_known(under)))
        return gt_job_key_unknown(source, path, pattern, child->key);
      gt_job_node_remove(node, i);
      continue;
    }
    GT_TRY(prune(child, source, in, pattern ? under : NULL));
    i++;
  }
  return GT_OK;
}

gt_status gt_job_prune(job_node *root, const char *source, bool of_job) {
  return prune(root, source, "", of_job ? "" : NULL);
}

/* Prunes the value of --set at a path and its pattern; the value itself can be null. */
static gt_status prune_value(job_node *value, const char *source, const char *path,
                             const char *pattern) {
  if (gt_job_node_null(value) && !*value->text)
    return GT_FAIL(GT_ERR_JOB,
                   "%s has no value; # begins a comment unless in quotes, as in %s='\"#1\"'",
                   source, path);
  return prune(value, source, path, pattern);
}

/* ---- --set a.b=value ------------------------------------------------------------------------- */

/* The value is YAML; the path has keys for maps and numbers for lists. */

static void mark(job_node *node) {
  node->from_set = true;
  for (size_t i = 0; i < node->n; i++) mark(node->items[i]);
}

static bool is_list(const char *pattern) {
  const job_key *row = gt_job_key_find(pattern);
  return row && gt_job_key_list(row);
}

/* Writes a hint for a list entry that is not given by number: the number of the entry with this
   name, or name and number of the first. */
static const char *entry_hint(char *buf, size_t size, const job_node *list, const char *path,
                              const char *word) {
  buf[0] = '\0';
  for (size_t i = list->n; i-- > 0 && word[strspn(word, "0123456789")];) {
    const job_node *name = gt_job_node_child(list->items[i], "name");
    if (!name || name->kind != NODE_SCALAR) continue;
    bool same = strcmp(name->text, word) == 0;
    if (same || i == 0)
      snprintf(buf, size, "; %s%.64s is %.150s.%zu", same ? "" : "they go by number: ", name->text,
               path, i);
    if (same) break;
  }
  return buf;
}

/* Finds the child for one word of the path, or creates it.  A new list entry must follow the last
   one. */
static gt_status step(job_node **at, char *path, char *pattern, const char *word) {
  char before[JOB_PATH_MAX], known[JOB_PATH_MAX], hint[320];
  snprintf(before, sizeof before, "%s", path);
  snprintf(known, sizeof known, "%s", pattern);
  gt_job_path_join(path, JOB_PATH_MAX, before, word);
  bool list = is_list(known);
  node_kind needed = list ? NODE_LIST : NODE_MAP;
  if ((*at)->kind != needed)
    return GT_FAIL(GT_ERR_JOB, "--set: %s is not a %s in the job file; %s cannot be set",
                   *before ? before : "the job", list ? "list" : "mapping", path);
  if (!list) {
    gt_job_path_join(pattern, JOB_PATH_MAX, known, word);
    if (strchr(word, '[') || (!gt_job_key_find(pattern) && !gt_job_key_prefix(pattern)))
      return gt_job_key_unknown("--set", before, known, word);
    job_node *child = gt_job_node_find(*at, word, strlen(word));
    if (!child)
      gt_job_node_add(*at,
                      child = gt_job_node_new(is_list(pattern) ? NODE_LIST : NODE_MAP, word, NULL));
    *at = child;
    return GT_OK;
  }
  snprintf(pattern, JOB_PATH_MAX, "%.*s[]", (int)(JOB_PATH_MAX - 3), known);
  char *end;
  unsigned long index = strtoul(word, &end, 10);
  if (*end || word[strspn(word, "0123456789")] || index > (*at)->n)
    return GT_FAIL(GT_ERR_JOB,
                   "--set: %s has entries 0 to %zu, the last one new; %s is none of them%s", before,
                   (*at)->n, path, entry_hint(hint, sizeof hint, *at, before, word));
  if (index == (*at)->n) gt_job_node_add(*at, gt_job_node_new(NODE_MAP, NULL, NULL));
  *at = (*at)->items[index];
  return GT_OK;
}

/* Replaces the contents of `node` by `value`, except the key. */
static void replace(job_node *node, job_node *value) {
  job_node old = *node;
  *node = *value;
  node->key = old.key;
  old.key = value->key;
  *value = old;
  gt_job_node_close(value);
}

/* Drops exclusive keys: "train.until.steps=9" on a job with epochs means steps instead of epochs;
   "=null" leaves the others. */
static void drop_others(job_node *parent, const job_node *node, const char *pattern,
                        const job_node *value) {
  const job_key *row = gt_job_key_find(pattern);
  if (!row || !(row->flags & KEY_ONE_OF) || gt_job_node_null(value)) return;
  for (size_t i = parent->n; i-- > 0;)
    if (parent->items[i] != node) gt_job_node_remove(parent, i);
}

static gt_status walk(job_node *root, const char *source, const char *words, job_node *value) {
  char path[JOB_PATH_MAX] = "", pattern[JOB_PATH_MAX] = "", rest[JOB_PATH_MAX];
  snprintf(rest, sizeof rest, "%s", words);
  job_node *at = root, *parent = root;
  for (char *word = rest, *dot; word; word = dot ? dot + 1 : NULL) {
    dot = strchr(word, '.');
    if (dot) *dot = '\0';
    parent = at;
    GT_TRY(step(&at, path, pattern, word));
  }
  mark(value);
  GT_TRY(prune_value(value, source, path, pattern));
  drop_others(parent, at, pattern, value);
  replace(at, value);
  return GT_OK;
}

gt_status gt_job_set(job_node *root, const char *assignment) {
  const char *equals = strchr(assignment, '=');
  if (!equals || equals == assignment)
    return GT_FAIL(GT_ERR_JOB, "--set %.200s: expected key=value, as in sync.period=4", assignment);
  size_t length = (size_t)(equals - assignment);
  char words[JOB_PATH_MAX];
  if (length >= sizeof words)
    return GT_FAIL(
        GT_ERR_JOB,
        "--set %.80s...: the key is longer than any known one; `geotrain help job` lists them",
        assignment);
  memcpy(words, assignment, length);
  words[length] = '\0';
  /* an empty shell variable would silently select the default */
  if (!equals[1 + strspn(equals + 1, " \t\n")])
    return GT_FAIL(GT_ERR_JOB,
                   "--set %s: nothing follows the =; expected a value, or null for the default",
                   words);
  char source[JOB_PATH_MAX + 16];
  snprintf(source, sizeof source, "--set %s", words);
  job_node *value = NULL;
  GT_TRY(gt_job_yaml_parse(&value, source, equals + 1, strlen(equals + 1)));
  gt_status status = walk(root, source, words, value);
  if (status != GT_OK) gt_job_node_close(value);
  return status;
}
