/* Describes a graph: its kernels as text, its hash, its operation count. */
#include <stdio.h>
#include <string.h>

#include "graph.h"

/* Adds an entry such as "conv=dnn/bf16 " unless the text has it already. */
static void add_entry(gt_graph *graph, const char *kind, const char *family, gt_precision type) {
  char entry[48], *text = graph->kernels_text;
  snprintf(entry, sizeof entry, "%s=%s%s ", kind, family, type == GT_BF16 ? "/bf16" : "");
  if (strstr(text, entry)) return;
  const size_t used = strlen(text);
  snprintf(text + used, sizeof graph->kernels_text - used, "%s", entry);
}

/* "conv=dnn conv=dnn-gemm linear=blas pool=blas relu=blas": each kind of operation and each family
   once. */
void gt_graph_describe(gt_graph *graph) {
  static const char *const kernels[][2] = {
      {"conv", "conv"},           {"linear", "linear"}, {"maxpool", "pool"},
      {"mean", "avgpool"},        {"norm", "norm"},     {"relu", "relu"},
      {"embedding", "embedding"}, {"fm", "fm"},         {"lstm", "lstm"},
      {"layernorm", "layernorm"}, {"gelu", "gelu"},     {"attention", "attention"},
      {"unit", "unit"},           {"gru", "gru"},       {"attend", "attend"}};
  graph->kernels_text[0] = '\0';
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
    for (size_t i = 0; i < graph->nops; i++) {
      const gt_op *op = &graph->ops[i];
      if (!op->kind->kernel || strcmp(op->kind->kernel, kernels[k][0]) != 0) continue;
      if (!op->layer)
        add_entry(graph, kernels[k][1], graph->kernels->family(op->kind->kernel, &op->shape),
                  op->type);
      for (int pass = 0; op->layer && pass < GT_PASSES; pass++)
        if (pass != GT_PASS_INPUT || op->input != GT_SAMPLES)
          add_entry(graph, kernels[k][1],
                    gt_layer_family(op->layer, (graph->batch ? graph->batch : 1) * op->rows,
                                    (gt_pass_id)pass),
                    op->type);
    }
  const size_t length = strlen(graph->kernels_text);
  if (length > 0) graph->kernels_text[length - 1] = '\0';
}

void gt_graph_digest(gt_graph *graph) {
  const size_t size = 64 + 256 * (graph->nops + graph->params.n);
  char *text = GT_NEW_ARRAY(char, size);
  size_t used = (size_t)snprintf(text, size, "%s %zu %zu %zu %zu\n", graph->model, graph->input.h,
                                 graph->input.w, graph->input.c, graph->classes);
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    used += (size_t)snprintf(text + used, size - used,
                             "%s %s %zu %zu window %zu %zu stride %zu pad %zu\n", op->kind->name,
                             op->name, op->in, op->out, op->shape.R, op->shape.S, op->shape.stride,
                             op->shape.pad);
    if (op->heads) used += (size_t)snprintf(text + used, size - used, "heads %zu\n", op->heads);
  }
  for (size_t v = 0; v < graph->params.n; v++) {
    const gt_view *view = &graph->params.views[v];
    used += (size_t)snprintf(text + used, size - used, "%s", view->name);
    for (int d = 0; d < view->ndims; d++)
      used += (size_t)snprintf(text + used, size - used, " %zu", view->shape[d]);
    used += (size_t)snprintf(text + used, size - used, "\n");
  }
  gt_sha256_hex(text, used, graph->hash);
  gt_free(text);
}

void gt_graph_hash(const gt_graph *graph, char hex[GT_SHA256_HEX]) {
  memcpy(hex, graph->hash, sizeof graph->hash);
}

size_t gt_graph_flops(const gt_graph *graph) {
  size_t flops = 0;
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    const size_t macs = op->kind->macs ? op->kind->macs(op) : 0;
    /* The gradient of the samples is not computed. */
    flops += 2 * macs * (op->input == GT_SAMPLES ? 2 : 3);
  }
  return flops;
}

size_t gt_graph_heads(const gt_graph *graph) {
  for (size_t i = 0; i < graph->nops; i++)
    if (graph->ops[i].heads > 0) return graph->ops[i].heads;
  return 0;
}
