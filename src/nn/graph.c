/* A model as a static graph: built once, memory planned once, nothing allocated in a step (DESIGN 2.8). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

/* Places for the activations of one slot: an in-place operation has its input's. */
static void plan_memory(gt_graph *graph) {
  const size_t n = graph->batch_max;
  size_t work = 0;
  size_t(*tickets)[3] = gt_alloc(graph->nops, sizeof *tickets);
  graph->arena = gt_arena_create();
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    const size_t needs = op->kind->work ? op->kind->work(op, graph->kernels, n) : 0;
    if (needs > work) work = needs;
    if (op->kind->in_place && i > 0) {
      memcpy(tickets[i], tickets[i - 1], sizeof *tickets);
      continue;
    }
    tickets[i][0] = gt_arena_reserve(graph->arena, n * op->out);
    tickets[i][1] = gt_arena_reserve(graph->arena, n * op->out);
    tickets[i][2] = op->kind->has_index ? gt_arena_reserve(graph->arena, n * op->out) : 0;
  }
  const size_t scratch = gt_arena_reserve(graph->arena, work);
  gt_arena_commit(graph->arena);
  for (size_t i = 0; i < graph->nops; i++) {
    gt_activation *a = &graph->ops[i].slots[0];
    a->y = gt_arena_at(graph->arena, tickets[i][0]);
    a->dy = gt_arena_at(graph->arena, tickets[i][1]);
    if (graph->ops[i].kind->has_index) a->index = (uint32_t *)(void *)gt_arena_at(graph->arena, tickets[i][2]);
  }
  graph->work = gt_arena_at(graph->arena, scratch);
  gt_free(tickets);
}

/* "conv=direct linear=blas pool=blas relu=blas": each kind of operation and each family once. */
static void describe_kernels(gt_graph *graph) {
  static const struct {
    const gt_op_kind *kind;
    const char *name, *as;
  } kinds[] = {{&gt_op_conv2d, "conv", "conv"},
               {&gt_op_linear, "linear", "linear"},
               {&gt_op_maxpool, "maxpool", "pool"},
               {&gt_op_avgpool, "avgpool", "avgpool"},
               {&gt_op_relu, "relu", "relu"}};
  char *text = graph->kernels_text;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (size_t i = 0; i < graph->nops; i++) {
      if (graph->ops[i].kind != kinds[k].kind) continue;
      char entry[48];
      snprintf(entry, sizeof entry, "%s=%s", kinds[k].as, graph->kernels->family(kinds[k].name, &graph->ops[i].shape));
      if (strstr(text, entry)) continue;
      const size_t used = strlen(text);
      snprintf(text + used, sizeof graph->kernels_text - used, "%s%s", used ? " " : "", entry);
    }
}

static gt_status unknown_model(const char *model) {
  const char *const *names = gt_model_names();
  size_t n = 0;
  while (names[n]) n++;
  const char *near = gt_nearest(model, names, n);
  return GT_FAIL(GT_ERR_JOB, "model.name is \"%s\"; %s%s%s is needed", model, near ? "\"" : "one of geotrain's models (such as \"",
                 near ? near : names[0], near ? "\"" : "\")");
}

gt_status gt_graph_create(gt_graph **out, const gt_graph_spec *spec) {
  const char *model = spec->model;
  const gt_model_options *options = &spec->options;
  const gt_sample_shape *shape = &spec->shape;
  const gt_model *found = gt_model_find(model);
  if (!found) return unknown_model(model);
  if (options->parameters != 0 && !found->sized)
    return GT_FAIL(GT_ERR_JOB, "model.parameters is %lld; model %s has a number of its own, so none is needed", (long long)options->parameters,
                   model);
  if (shape->h == 0 || shape->w == 0 || shape->c == 0 || shape->classes < 2)
    return GT_FAIL(GT_ERR_DATA, "samples are %zu x %zu x %zu with %zu classes; at least 1 x 1 x 1 with 2 classes is needed", shape->h, shape->w,
                   shape->c, shape->classes);
  gt_graph *graph = GT_NEW(gt_graph);
  snprintf(graph->model, sizeof graph->model, "%s", model);
  graph->kernels = spec->kernels;
  graph->input = graph->extent = (gt_extent){shape->h, shape->w, shape->c};
  graph->classes = shape->classes;
  graph->batch_max = spec->batch_max;
  const gt_status status = found->build(graph, shape, options);
  if (status != GT_OK) {
    gt_graph_close(graph);
    return status;
  }
  graph->arrays.params = gt_vec_of(GT_NEW_ARRAY(float, graph->nparams), graph->nparams);
  graph->arrays.grads = gt_vec_of(GT_NEW_ARRAY(float, graph->nparams), graph->nparams);
  graph->arrays.views = graph->views;
  graph->arrays.nviews = graph->nviews;
  if (spec->batch_max > 0) plan_memory(graph);
  describe_kernels(graph);
  *out = graph;
  return GT_OK;
}

static void free_arrays(gt_graph *graph) {
  if (graph->adopted) return;
  gt_free(graph->arrays.grads.data);
  gt_free(graph->arrays.params.data);
}

void gt_graph_adopt(gt_graph *graph, float *params, float *grads, float *buffers) {
  free_arrays(graph);
  graph->adopted = true;
  graph->arrays.params.data = params;
  graph->arrays.grads.data = grads;
  graph->arrays.buffers.data = buffers;
}

void gt_graph_close(gt_graph *graph) {
  if (!graph) return;
  gt_arena_close(graph->arena);
  free_arrays(graph);
  gt_free(graph->bounds);
  gt_free(graph->views);
  gt_free(graph->ops);
  gt_free(graph);
}

void gt_graph_on_progress(gt_graph *graph, gt_progress_fn *progress, void *context) {
  graph->progress = progress;
  graph->progress_context = context;
}

const gt_arrays *gt_graph_arrays(const gt_graph *graph) {
  return &graph->arrays;
}

void gt_graph_init(gt_graph *graph, uint64_t seed) {
  for (size_t t = 0; t < graph->nviews; t++) {
    gt_rng rng = gt_rng_make(seed, GT_RNG_INIT, t, 0);
    float *values = graph->arrays.params.data + graph->views[t].offset;
    for (size_t i = 0; i < graph->views[t].count; i++) values[i] = (float)(graph->bounds[t] * (2.0 * gt_rng_uniform(&rng) - 1.0));
  }
}

const char *gt_graph_kernels(const gt_graph *graph) {
  return graph->kernels_text;
}

void gt_graph_hash(const gt_graph *graph, char hex[GT_SHA256_HEX]) {
  const size_t size = 64 + 256 * (graph->nops + graph->nviews);
  char *text = GT_NEW_ARRAY(char, size);
  size_t used = (size_t)snprintf(text, size, "%s %zu %zu %zu %zu\n", graph->model, graph->input.h, graph->input.w, graph->input.c, graph->classes);
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    used += (size_t)snprintf(text + used, size - used, "%s %s %zu %zu window %zu %zu stride %zu pad %zu\n", op->kind->name, op->name, op->in, op->out,
                             op->shape.R, op->shape.S, op->shape.stride, op->shape.pad);
  }
  for (size_t v = 0; v < graph->nviews; v++) {
    used += (size_t)snprintf(text + used, size - used, "%s", graph->views[v].name);
    for (int d = 0; d < graph->views[v].ndims; d++) used += (size_t)snprintf(text + used, size - used, " %zu", graph->views[v].shape[d]);
    used += (size_t)snprintf(text + used, size - used, "\n");
  }
  gt_sha256_hex(text, used, hex);
  gt_free(text);
}

size_t gt_graph_flops(const gt_graph *graph) {
  size_t flops = 0;
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    const size_t macs = op->kind->macs ? op->kind->macs(op) : 0;
    flops += 2 * macs * (i == 0 ? 2 : 3); /* nobody needs the gradient of the samples */
  }
  return flops;
}
