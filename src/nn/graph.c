/* A model as a static graph: built once, with memory planned once; a step does not allocate. */
#include <stdio.h>
#include <string.h>

#include "graph.h"

/* ---- description ----------------------------------------------------------------------------- */

/* Adds an entry such as "conv=dnn/bf16 " unless the text already has it. */
static void add_entry(gt_graph *graph, const char *kind, const char *family, gt_precision type) {
  char entry[48], *text = graph->kernels_text;
  snprintf(entry, sizeof entry, "%s=%s%s ", kind, family, type == GT_BF16 ? "/bf16" : "");
  if (strstr(text, entry)) return;
  const size_t used = strlen(text);
  snprintf(text + used, sizeof graph->kernels_text - used, "%s", entry);
}

/* Writes "conv=dnn conv=dnn-gemm linear=blas pool=blas relu=blas": each kind of operation with each
   of its families, once. */
static void describe(gt_graph *graph) {
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

static void digest(gt_graph *graph) {
  const size_t size = 64 + 256 * (graph->nops + graph->params.n);
  char *text = GT_NEW_ARRAY(char, size);
  size_t used = (size_t)snprintf(text, size, "%s %zu %zu %zu %zu\n", graph->model, graph->input.h,
                                 graph->input.w, graph->input.c, graph->classes);
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    if (op->kind->without_effect) continue;
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

/* ---- tensors in PyTorch's layouts ------------------------------------------------------------ */

/* Copies a value from our layout to PyTorch's, or back. */
static void pass_on(float *torch, float *own, bool back) {
  *(back ? own : torch) = back ? *torch : *own;
}

/* Convolutions: ours (R,S,C,K), PyTorch's (K,C,R,S). */
static void pass_conv(float *torch, float *own, const size_t shape[4], bool back) {
  const size_t R = shape[0], S = shape[1], C = shape[2], K = shape[3];
  for (size_t k = 0; k < K; k++)
    for (size_t c = 0; c < C; c++)
      for (size_t rs = 0; rs < R * S; rs++)
        pass_on(&torch[(k * C + c) * R * S + rs], &own[(rs * C + c) * K + k], back);
}

/* Rows of linear layers behind images: ours (H,W,C), PyTorch's (C,H,W). */
static void pass_image_rows(float *torch, float *own, size_t rows, gt_extent e, bool back) {
  const size_t pixels = e.h * e.w;
  for (size_t row = 0; row < rows; row++, own += pixels * e.c, torch += pixels * e.c)
    for (size_t c = 0; c < e.c; c++)
      for (size_t p = 0; p < pixels; p++) pass_on(&torch[c * pixels + p], &own[p * e.c + c], back);
}

size_t gt_graph_tensors(const gt_graph *graph) {
  return graph->params.n + graph->buffers.n + (graph->alias.name[0] ? 1 : 0);
}

/* The tensor of number i; its alias is that of another. */
static const gt_tensors *tensor_of(const gt_graph *graph, size_t *i) {
  if (*i == graph->params.n + graph->buffers.n) *i = graph->alias_of;
  if (*i < graph->params.n) return &graph->params;
  *i -= graph->params.n;
  return &graph->buffers;
}

static void pass_tensor(const gt_graph *graph, size_t i, float *torch, bool back) {
  const gt_tensors *t = tensor_of(graph, &i);
  const gt_view *view = &t->views[i];
  float *own = (t == &graph->buffers ? graph->arrays.buffers : graph->arrays.params).data;
  own += view->offset;
  if (t->layouts[i] == GT_LAYOUT_CONV)
    pass_conv(torch, own, view->shape, back);
  else if (t->layouts[i] == GT_LAYOUT_IMAGE_ROWS)
    pass_image_rows(torch, own, view->shape[0], t->images[i], back);
  else
    memcpy(back ? own : torch, back ? torch : own, view->count * sizeof *own);
}

void gt_graph_tensor(const gt_graph *graph, size_t i, gt_view *as, float *out) {
  size_t at = i;
  const gt_tensors *t = tensor_of(graph, &at);
  *as = t->views[at];
  as->offset = 0;
  if (at != i && t == &graph->params) memcpy(as->name, graph->alias.name, sizeof as->name);
  if (t->layouts[at] == GT_LAYOUT_CONV) {
    const size_t *own = t->views[at].shape, shape[4] = {own[3], own[2], own[0], own[1]};
    memcpy(as->shape, shape, sizeof shape);
  }
  if (out) pass_tensor(graph, i, out, false);
}

void gt_graph_set_tensor(gt_graph *graph, size_t i, const float *values) {
  pass_tensor(graph, i, (float *)(uintptr_t)values, true); /* only read */
}

/* ---- the graph ------------------------------------------------------------------------------- */

gt_status gt_model_unknown(const char *model) {
  const char *const *names = gt_model_names;
  size_t n = 0;
  while (names[n]) n++;
  char known[256] = "";
  for (size_t i = 0, at = 0; i < n; i++, at = strlen(known))
    snprintf(known + at, sizeof known - at, "%s%.31s", i ? ", " : "", names[i]);
  const char *near = gt_nearest(model, names, n);
  return GT_FAIL(GT_ERR_JOB, "model.name is \"%.80s\"; expected one of %s%s%s%s", model, known,
                 near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static gt_vec zeros(size_t n, bool size_only) {
  return gt_vec_of(size_only ? NULL : GT_NEW_ARRAY(float, n), n);
}

static void open_arrays(gt_graph *graph, bool sizes_only) {
  graph->arrays = (gt_arrays){.params = zeros(graph->params.floats, sizes_only),
                              .grads = zeros(graph->params.floats, sizes_only),
                              .buffers = zeros(graph->buffers.floats, sizes_only),
                              .views = graph->params.views,
                              .nviews = graph->params.n,
                              .buffer_views = graph->buffers.views,
                              .nbuffer_views = graph->buffers.n};
}

/* Checks that the samples are of the kind that the model takes: ids or images, labelled or not. */
static gt_status check_kind(const gt_model *model, const gt_graph_spec *spec) {
  const gt_sample_shape *shape = &spec->shape;
  if (model->ids && shape->features == 0)
    return GT_FAIL(
        GT_ERR_DATA,
        "samples are images of %zu x %zu x %zu; model %s takes ids, so expected a data set of ids",
        shape->h, shape->w, shape->c, model->name);
  if (!model->ids && shape->features > 0)
    return GT_FAIL(GT_ERR_DATA,
                   "samples are %zu ids each, below %zu; model %s takes images, so expected a data "
                   "set of images",
                   shape->h * shape->w * shape->c, shape->features, model->name);
  if (spec->text && !model->decodes)
    return GT_FAIL(GT_ERR_DATA,
                   "samples are windows of a text, which have no labels; model %s learns labels, "
                   "so expected a data set with labels, or a model like gpt",
                   model->name);
  if (spec->labelled && model->decodes)
    return GT_FAIL(GT_ERR_DATA,
                   "samples are %zu ids with a label of %zu classes; model %s predicts the next id "
                   "of a text and learns no labels, so expected a data set of a text, as `geotrain "
                   "data import text` writes it",
                   shape->h * shape->w * shape->c, shape->classes, model->name);
  return GT_OK;
}

/* Refuses options that the model does not have. */
static gt_status check_options(const gt_model *model, const gt_model_options *options) {
  const struct {
    const char *name;
    bool given, known;
  } all[] = {{"embedding", options->embedding != 0, model->embeds},
             {"mlp", options->mlp != NULL, model->layered},
             {"hidden", options->hidden != 0, model->recurrent},
             {"scale", options->scale != 0, model->scaled},
             {"layers", options->layers != 0, model->decodes},
             {"width", options->width != 0, model->decodes},
             {"heads", options->heads != 0, model->decodes},
             {"context", options->context != 0, model->decodes},
             {"untied", options->untied, model->decodes},
             {"positions", options->positions, model->scaled},
             {"stem", options->stem != GT_STEM_AUTO, model->stemmed},
             {"dropout", options->dropout > 0, model->drops}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].given && !all[i].known)
      return GT_FAIL(GT_ERR_JOB,
                     "model.%s is given; model %s has no such key, so it must not be given",
                     all[i].name, model->name);
  return GT_OK;
}

/* Completes the graph after all operations are built. */
static gt_status complete(gt_graph *graph, const gt_graph_spec *spec) {
  graph->sizes_only = spec->sizes_only;
  graph->slots = spec->slots;
  graph->micro_batches = spec->micro_batches ? spec->micro_batches : 1;
  graph->fused = spec->fused;
  graph->memory = spec->memory;
  gt_graph_link(graph);
  digest(graph);
  GT_TRY(gt_graph_narrow(graph, spec));
  open_arrays(graph, spec->sizes_only || spec->lent);
  if (spec->batch_max > 0) gt_graph_plan(graph);
  describe(graph);
  return GT_OK;
}

gt_status gt_graph_create(gt_graph **out, const gt_graph_spec *spec) {
  const char *model = spec->model;
  const gt_model_options *options = &spec->options;
  const gt_sample_shape *shape = &spec->shape;
  const gt_model *found = gt_model_find(model);
  if (!found) return gt_model_unknown(model);
  if (options->parameters != 0 && !found->sized)
    return GT_FAIL(GT_ERR_JOB,
                   "model.parameters is %lld; model %s has a fixed number, so it must not be given",
                   (long long)options->parameters, model);
  GT_TRY(check_options(found, options));
  if (shape->h == 0 || shape->w == 0 || shape->c == 0 || shape->classes < 2)
    return GT_FAIL(
        GT_ERR_DATA,
        "samples are %zu x %zu x %zu with %zu classes; expected at least 1 x 1 x 1 with 2 classes",
        shape->h, shape->w, shape->c, shape->classes);
  GT_TRY(check_kind(found, spec));
  gt_graph *graph = GT_NEW(gt_graph);
  snprintf(graph->model, sizeof graph->model, "%s", model);
  graph->kernels = spec->kernels;
  graph->prepared = spec->kernels && spec->kernels->prepared ? spec->kernels->prepared() : NULL;
  graph->precision = graph->prepared ? spec->precision : GT_F32;
  graph->from = GT_SAMPLES;
  graph->input = (gt_extent){shape->h, shape->w, shape->c};
  graph->classes = graph->outputs = shape->classes;
  graph->predictions = 1;
  graph->loss = &gt_loss_softmax;
  graph->features = shape->features;
  graph->batch_max = spec->batch_max;
  graph->batch = spec->batch ? spec->batch : spec->batch_max;
  graph->choices = spec->choices;
  gt_status status = found->build(graph, shape, options);
  if (status == GT_OK) status = complete(graph, spec);
  if (status != GT_OK) {
    gt_graph_close(graph);
    return status;
  }
  *out = graph;
  return GT_OK;
}

gt_status gt_graph_size(const gt_graph_spec *spec, size_t *parameters, size_t *bytes) {
  gt_graph_spec sizes = *spec;
  gt_graph *graph = NULL;
  sizes.sizes_only = true;
  const gt_status status = gt_graph_create(&graph, &sizes);
  if (!graph) return status;
  *parameters = graph->arrays.params.n;
  *bytes = gt_graph_memory(graph).arrays + gt_graph_bytes(graph);
  gt_graph_close(graph);
  return GT_OK;
}

/* `data` NULL: the array is not changed. */
static void adopt(gt_vec *array, bool *lent, float *data) {
  if (!data) return;
  if (!*lent) gt_free(array->data);
  *lent = true;
  array->data = data;
}

void gt_graph_adopt(gt_graph *graph, float *params, float *grads, float *buffers) {
  if (grads && grads != graph->arrays.grads.data)
    for (size_t i = 0; i < graph->nops; i++)
      if (!graph->ops[i].apart) graph->ops[i].nonzero.n = GT_ROWS_ANY;
  adopt(&graph->arrays.params, &graph->lent_params, params);
  adopt(&graph->arrays.grads, &graph->lent_grads, grads);
  adopt(&graph->arrays.buffers, &graph->lent_buffers, buffers);
}

void gt_graph_return(gt_graph *graph) {
  for (size_t i = 0; i < graph->nops; i++) graph->ops[i].nonzero.n = GT_ROWS_ANY;
}

static void close_tensors(gt_tensors *t) {
  gt_free(t->numbers);
  gt_free(t->images);
  gt_free(t->layouts);
  gt_free(t->inits);
  gt_free(t->views);
}

void gt_graph_close(gt_graph *graph) {
  if (!graph) return;
  gt_arena_close(graph->arena);
  gt_free(graph->activations);
  gt_free(graph->ends);
  gt_free(graph->spans);
  if (!graph->lent_buffers) gt_free(graph->arrays.buffers.data);
  if (!graph->lent_grads) gt_free(graph->arrays.grads.data);
  if (!graph->lent_params) gt_free(graph->arrays.params.data);
  for (size_t i = 0; i < graph->nops; i++) gt_layer_close(graph->ops[i].layer);
  if (graph->context) graph->prepared->close(graph->context);
  close_tensors(&graph->params);
  close_tensors(&graph->buffers);
  gt_free(graph->ops);
  gt_free(graph);
}

void gt_graph_prepare(gt_graph *graph, size_t n) {
  if (graph->batch_max == 0 || n == 0) return;
  for (size_t i = 0; i < graph->nops; i++)
    if (graph->ops[i].layer && gt_graph_runs(graph, &graph->ops[i]))
      gt_layer_prepare(graph->ops[i].layer, n * graph->ops[i].rows);
}

size_t gt_graph_least(const gt_graph *graph) {
  for (size_t i = 0; i < graph->nops; i++)
    if (graph->ops[i].kind->needs_spread && graph->ops[i].extent.h * graph->ops[i].extent.w == 1)
      return 2;
  return 1;
}

size_t gt_graph_bytes(const gt_graph *graph) {
  return (graph->arena ? gt_arena_bytes(graph->arena) : 0) +
         (graph->context ? graph->prepared->bytes(graph->context) : 0);
}

void gt_graph_on_progress(gt_graph *graph, gt_progress_fn *progress, void *context) {
  graph->progress = progress;
  graph->progress_context = context;
}

void gt_graph_on_gradients(gt_graph *graph, gt_gradients_fn *gradients, void *context) {
  graph->gradients = gradients;
  graph->gradients_context = context;
}

const gt_arrays *gt_graph_arrays(const gt_graph *graph) {
  return &graph->arrays;
}

static float initial(gt_init init, gt_rng *rng) {
  switch (init.kind) {
  case GT_INIT_UNIFORM:
    return (float)(init.value * (2.0 * gt_rng_uniform(rng) - 1.0));
  case GT_INIT_NORMAL:
    return (float)(init.value * gt_rng_normal(rng));
  case GT_INIT_CONSTANT:
    break;
  }
  return (float)init.value;
}

static void init_tensors(const gt_tensors *t, float *data, uint64_t seed) {
  for (size_t i = 0; i < t->n; i++) {
    gt_rng rng = gt_rng_make(seed, GT_RNG_INIT, t->numbers[i], 0);
    float *values = data + t->views[i].offset;
    for (size_t k = 0; k < t->views[i].count; k++) values[k] = initial(t->inits[i], &rng);
  }
}

/* Sets the vector of the padding to 0. */
static void clear_padding(gt_graph *graph) {
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    if (op->padded && op->weight != GT_NO_VIEW)
      gt_vec_zero(gt_vec_range(graph->arrays.params, graph->params.views[op->weight].offset,
                               op->table.width));
  }
}

void gt_graph_init(gt_graph *graph, uint64_t seed) {
  init_tensors(&graph->params, graph->arrays.params.data, seed);
  clear_padding(graph);
  init_tensors(&graph->buffers, graph->arrays.buffers.data, seed);
}

const char *gt_graph_kernels(const gt_graph *graph) {
  return graph->kernels_text;
}
