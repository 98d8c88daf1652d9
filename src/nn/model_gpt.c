/* GPT: a decoder of pre-norm blocks (Vaswani et al. 2017; Radford et al. 2019) that predicts the
   next id at each position.  Attention weights have no dropout; other dropout, biases, GELU's tanh
   form and initial values are those of GPT-2: weights normal with standard deviation 0.02, those of
   the projections into the residual stream with 0.02 / sqrt(2 layers), biases 0.  Presets differ in
   sizes only. */
#include <math.h>
#include <stdio.h>

#include "graph.h"
#include "models.h"

#define DEVIATION   0.02
#define CONTEXT_MAX 65536
#define LAYERS_MAX  1024

typedef struct {
  size_t layers, width, heads, context;
} sizes;

static size_t given(int64_t option, size_t usual) {
  return option ? (size_t)option : usual;
}

static gt_status check_count(const char *option, int64_t count, int64_t most) {
  if (count >= 0 && count <= most) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "model.%s is %lld; expected 1 to %lld", option, (long long)count,
                 (long long)most);
}

/* Takes the job's sizes, and those of the preset for the rest. */
static gt_status take_sizes(sizes *s, const gt_sample_shape *shape,
                            const gt_model_options *options) {
  const size_t T = shape->h * shape->w * shape->c - 1;
  GT_TRY(check_count("layers", options->layers, LAYERS_MAX));
  GT_TRY(gt_model_check_width("width", options->width, 0));
  GT_TRY(gt_model_check_width("heads", options->heads, 0));
  GT_TRY(check_count("context", options->context, CONTEXT_MAX));
  *s = (sizes){given(options->layers, s->layers), given(options->width, s->width),
               given(options->heads, s->heads), given(options->context, s->context)};
  if (s->width % s->heads != 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "model.width is %zu and model.heads %zu; expected a width that is a multiple of the heads",
        s->width, s->heads);
  if (T < 1 || T > s->context)
    return GT_FAIL(
        GT_ERR_DATA,
        "samples are %zu ids each, so %zu positions; with model.context %zu, expected 2 to %zu ids",
        T + 1, T, s->context, s->context + 1);
  return GT_OK;
}

/* Writes "transformer.h.3.attn.c_attn". */
static const char *named(char name[48], size_t layer, const char *what) {
  snprintf(name, 48, "transformer.h.%zu.%s", layer, what);
  return name;
}

/* Adds the last operation's output, after dropout, to the residual stream, the output of operation
   `stream`. */
static size_t join(gt_graph *graph, size_t layer, const char *what, size_t stream, double dropout) {
  char name[48];
  gt_graph_add_dropout(graph, named(name, layer, "dropout"), dropout);
  gt_graph_add_sum(graph, named(name, layer, what), stream);
  return gt_graph_last(graph);
}

static size_t add_block(gt_graph *graph, const sizes *s, size_t layer, size_t stream,
                        double dropout) {
  const double into = DEVIATION / sqrt(2.0 * (double)s->layers);
  char name[48];
  gt_graph_add_layernorm(graph, named(name, layer, "ln_1"));
  gt_graph_add_rows_linear(graph, named(name, layer, "attn.c_attn"), 3 * s->width, DEVIATION);
  gt_graph_add_attention(graph, named(name, layer, "attn"), s->heads);
  gt_graph_add_rows_linear(graph, named(name, layer, "attn.c_proj"), s->width, into);
  stream = join(graph, layer, "attn.sum", stream, dropout);
  gt_graph_add_layernorm(graph, named(name, layer, "ln_2"));
  gt_graph_add_rows_linear(graph, named(name, layer, "mlp.c_fc"), 4 * s->width, DEVIATION);
  gt_graph_add_gelu(graph, named(name, layer, "mlp.gelu"));
  gt_graph_add_rows_linear(graph, named(name, layer, "mlp.c_proj"), s->width, into);
  return join(graph, layer, "mlp.sum", stream, dropout);
}

static gt_status build_sizes(gt_graph *graph, const gt_sample_shape *shape,
                             const gt_model_options *options, sizes s) {
  GT_TRY(take_sizes(&s, shape, options));
  gt_graph_add_tokens(graph, "transformer.wte", "transformer.wpe", s.width, s.context, DEVIATION);
  const size_t tokens = gt_graph_last(graph);
  gt_graph_add_dropout(graph, "transformer.drop", options->dropout);
  size_t stream = gt_graph_last(graph);
  for (size_t layer = 0; layer < s.layers; layer++)
    stream = add_block(graph, &s, layer, stream, options->dropout);
  gt_graph_add_layernorm(graph, "transformer.ln_f");
  gt_graph_add_next(graph, "lm_head", options->untied ? GT_SAMPLES : tokens, DEVIATION);
  return GT_OK;
}

#define SOURCE                                                                                     \
  "Radford et al. 2019: Language Models are Unsupervised Multitask Learners (GPT-2), a decoder "   \
  "after Vaswani et al. 2017, without dropout of attention"

/* Defines a model with these default sizes. */
#define PRESET(table, text, IDS, V, ...)                                                           \
  static gt_status build_##table(gt_graph *graph, const gt_sample_shape *shape,                    \
                                 const gt_model_options *options) {                                \
    return build_sizes(graph, shape, options, (sizes){__VA_ARGS__});                               \
  }                                                                                                \
  const gt_model gt_model_##table = {.name = (text),                                               \
                                     .source = SOURCE,                                             \
                                     .usual = {1, 1, (IDS), (V), (V)},                             \
                                     .decodes = true,                                              \
                                     .drops = true,                                                \
                                     .ids = true,                                                  \
                                     .build = build_##table}

PRESET(gpt, "gpt", 129, 256, 4, 128, 4, 256);
PRESET(gpt_tiny, "gpt-tiny", 129, 256, 4, 128, 4, 256);
PRESET(gpt_small, "gpt-small", 129, 256, 6, 384, 6, 256);
PRESET(gpt_124m, "gpt-124m", 1025, 50257, 12, 768, 12, 1024);
