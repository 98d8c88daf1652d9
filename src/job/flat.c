/* The resolved job for scripts: one value per line. */
#include <stdio.h>

#include "internal.h"

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
