/* Keys without a value.  `null` (or ~) means that the key is not given; nothing at all is a mistake,
   usually a forgotten space or a decimal comma inside { }, where YAML makes a key of it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static bool is_number(const char *text) {
  return *text && !text[strspn(text, "0123456789")];
}

/* What was probably meant. */
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

/* NULL as pattern: the keys are not those of a job. */
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

gt_status gt_job_prune_value(job_node *value, const char *source, const char *path,
                             const char *pattern) {
  if (gt_job_node_null(value) && !*value->text)
    return GT_FAIL(GT_ERR_JOB,
                   "%s has no value; # begins a comment unless in quotes, as in %s='\"#1\"'",
                   source, path);
  return prune(value, source, path, pattern);
}
