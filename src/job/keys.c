/* Searches in the table of keys. */
#include "internal.h"

const job_key *gt_job_key_find(const char *path) {
  for (size_t i = 0; i < gt_job_nkeys; i++)
    if (strcmp(gt_job_keys[i].path, path) == 0) return &gt_job_keys[i];
  return NULL;
}

bool gt_job_key_list(const job_key *row) {
  return row->type >= KEY_INTS;
}

bool gt_job_key_prefix(const char *path) {
  size_t n = strlen(path);
  for (size_t i = 0; i < gt_job_nkeys; i++)
    if (strncmp(gt_job_keys[i].path, path, n) == 0 && gt_job_keys[i].path[n] == '.') return true;
  return n == 0;
}
