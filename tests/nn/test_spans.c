/* Spans: the properties of a model's operations, the possible ends of spans, arrays of some spans
   only, and the memory of slots. */
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

static const gt_sample_shape text = {1, 1, 9, 30, 30}, image = {28, 28, 1, 10, 0},
                             clicks = {1, 1, 5, 12, 13}, fields = {1, 1, 4, 2, 20};

static gt_graph_spec gpt(bool untied) {
  return (gt_graph_spec){
      .model = "gpt",
      .options = {.layers = 2, .width = 12, .heads = 2, .context = 8, .untied = untied},
      .shape = text,
      .kernels = gt_kernels_find("auto")};
}

static gt_graph_spec other(const char *model, gt_sample_shape shape) {
  return (gt_graph_spec){.model = model, .shape = shape, .kernels = gt_kernels_find("auto")};
}

/* ---- operations ------------------------------------------------------------------------------ */

static void check_operation(const gt_graph *graph, const char *name, gt_operation right) {
  const gt_operation is = gt_graph_operation(graph, w_operation(graph, name));
  assert_int_equal(is.params, right.params);
  assert_int_equal(is.buffers, right.buffers);
  assert_int_equal(is.output_bytes, right.output_bytes);
  assert_true(is.forward == right.forward && is.backward_input == right.backward_input &&
              is.backward_weight == right.backward_weight);
  assert_true(is.ends == right.ends && is.samples == right.samples);
  assert_int_equal(is.borrows, right.borrows);
}

static void operations(void) {
  gt_graph_spec spec = gpt(false);
  gt_graph *graph = w_graph(&spec);
  const size_t no = SIZE_MAX;
  check_operation(
      graph, "transformer.wte",
      (gt_operation){
          .params = 30 * 12 + 8 * 12, .output_bytes = 8 * 12 * 4, .samples = true, .borrows = no});
  check_operation(graph, "transformer.h.0.ln_1",
                  (gt_operation){.params = 24, .output_bytes = 8 * 12 * 4, .borrows = no});
  check_operation(graph, "transformer.h.1.mlp.c_fc",
                  (gt_operation){.params = 48 * 12 + 48,
                                 .output_bytes = 8 * 48 * 4,
                                 .forward = 8 * 48 * 12,
                                 .backward_input = 8 * 48 * 12,
                                 .backward_weight = 8 * 48 * 12,
                                 .borrows = no});
  check_operation(graph, "transformer.h.0.attn",
                  (gt_operation){.output_bytes = 8 * 12 * 4,
                                 .forward = 8 * 9 * 12,
                                 .backward_input = 2 * 8 * 9 * 12,
                                 .borrows = no});
  check_operation(graph, "transformer.h.0.mlp.sum",
                  (gt_operation){.output_bytes = 8 * 12 * 4, .ends = true, .borrows = no});
  check_operation(graph, "lm_head",
                  (gt_operation){.output_bytes = 8 * 30 * 4,
                                 .forward = 8 * 30 * 12,
                                 .backward_input = 8 * 30 * 12,
                                 .backward_weight = 8 * 30 * 12,
                                 .ends = true,
                                 .borrows = 0});
  gt_graph_close(graph);
  spec = other("resnet18", (gt_sample_shape){8, 8, 3, 10, 0});
  graph = w_graph(&spec);
  check_operation(graph, "conv1",
                  (gt_operation){.params = 27 * 64,
                                 .output_bytes = 64 * 64 * 4,
                                 .forward = 64 * 64 * 27,
                                 .backward_weight = 64 * 64 * 27,
                                 .ends = true,
                                 .samples = true,
                                 .borrows = no});
  check_operation(
      graph, "bn1",
      (gt_operation){
          .params = 128, .buffers = 128, .output_bytes = 64 * 64 * 4, .ends = true, .borrows = no});
  gt_graph_close(graph);
}

/* Checks the operations, the sums of their numbers, and the operations after which a span can
   end. */
static void check_model(gt_graph_spec spec, const char *ends, const char *samples) {
  gt_graph *graph = w_graph(&spec);
  char found[2][1024] = {"", ""};
  double work = 0.0;
  size_t params = 0, buffers = 0;
  for (size_t i = 0; i < gt_graph_operations(graph); i++) {
    const gt_operation op = gt_graph_operation(graph, i);
    params += op.params, buffers += op.buffers;
    work += op.forward + op.backward_input + op.backward_weight;
    if (op.ends) strcat(strcat(found[0], op.name), " ");
    if (op.samples) strcat(strcat(found[1], op.name), " ");
  }
  assert_string_equal(found[0], ends);
  assert_string_equal(found[1], samples);
  assert_int_equal(params, gt_graph_arrays(graph)->params.n);
  assert_int_equal(buffers, gt_graph_arrays(graph)->buffers.n);
  assert_true(2.0 * work == (double)gt_graph_flops(graph));
  gt_graph_close(graph);
}

static void ends_and_samples(void) {
  const char *const decoder = "transformer.h.0.attn.sum transformer.h.0.mlp.sum "
                              "transformer.h.1.attn.sum transformer.h.1.mlp.sum transformer.ln_f "
                              "lm_head ";
  check_model(gpt(false), decoder, "transformer.wte ");
  check_model(gpt(true), decoder, "transformer.wte ");
  check_model(other("lenet5", image),
              "conv1 pool1 relu1 conv2 pool2 relu2 fc1 relu3 fc2 relu4 fc3 ", "conv1 ");
  check_model(other("lstm", clicks), "embedding lstm fc ", "embedding lstm ");
  check_model(other("deepfm", fields), "embedding logit ", "embedding fm ");
  check_model(other("niser", clicks), "readout linear_transform session scores ",
              "embedding gnn readout ");
  check_model(other("resnet18", (gt_sample_shape){8, 8, 3, 10, 0}),
              "conv1 bn1 layer1.0.bn2 layer1.1.bn2 layer2.0.bn2 layer2.1.bn2 layer3.0.bn2 "
              "layer3.1.bn2 layer4.0.bn2 layer4.1.bn2 avgpool fc ",
              "conv1 ");
}

/* ---- refused spans --------------------------------------------------------------------------- */

static void refused(gt_graph_spec spec, size_t n, const gt_span *spans, const char *sentence) {
  gt_graph *graph = NULL;
  spec.spans = spans, spec.nspans = n;
  must_say(gt_graph_create(&graph, &spec), GT_ERR_JOB, sentence);
}

#define SPANS(...)                                                                                 \
  sizeof((gt_span[]){__VA_ARGS__}) / sizeof(gt_span), (const gt_span[]) {                          \
    __VA_ARGS__                                                                                    \
  }

static void cuts_that_are_refused(void) {
  refused(gpt(false), SPANS({0, 2}, {2, 23}),
          "a span of model gpt ends after transformer.h.0.ln_1, but transformer.h.0.attn.sum "
          "behind it also needs the output of transformer.wte; expected a cut behind "
          "transformer.h.0.attn.sum");
  refused(gpt(false), SPANS({0, 1}, {1, 23}),
          "a span of model gpt ends after transformer.wte, which takes the gradients of its two "
          "readers one by one; expected a cut behind transformer.h.0.attn.sum");
  refused(other("deepfm", fields), SPANS({0, 2}, {2, 10}),
          "a span of model deepfm ends after fm, but mlp.0 behind it also needs the output of "
          "embedding; expected a cut behind embedding");
  refused(other("niser", clicks), SPANS({0, 1}, {1, 6}),
          "a span of model niser ends after embedding, whose output has a varying number of rows; "
          "expected a cut behind readout");
}

static void spans_that_are_refused(void) {
  refused(other("lenet5", image), SPANS({0, 3}, {3, 3}),
          "span 1 of model lenet5 is operations 3 to 3; expected one or more of its 11 operations");
  refused(
      other("lenet5", image), SPANS({0, 3}, {3, 12}),
      "span 1 of model lenet5 is operations 3 to 12; expected one or more of its 11 operations");
  refused(
      other("lenet5", image), SPANS({0, 11}, {11, 12}),
      "span 1 of model lenet5 is operations 11 to 12; expected one or more of its 11 operations");
  refused(other("lenet5", image), SPANS({3, 6}, {4, 11}),
          "span 1 of model lenet5 begins at pool2, in the span before it; expected spans in the "
          "model's order that do not overlap");
  refused(gpt(false), SPANS({11, 23}),
          "lm_head of model gpt has the weights of transformer.wte, which is in none of the spans "
          "that are held here; expected its span too");
  refused(gpt(true), SPANS({3, 11}),
          "a span of model gpt ends after transformer.h.0.attn.c_attn, but "
          "transformer.h.0.attn.sum behind it also needs the output of transformer.wte; expected a "
          "cut behind transformer.h.0.attn.sum");
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Each span alone, and the first with the last: the whole model's tensors, values and hash. */
static void arrays_of_spans(void) {
  gt_graph_spec spec = other("resnet18", (gt_sample_shape){8, 8, 3, 10, 0});
  gt_graph *whole = w_graph(&spec);
  const size_t all = gt_graph_operations(whole), one = w_operation(whole, "layer1.1.bn2") + 1,
               two = w_operation(whole, "layer3.0.bn2") + 1;
  const gt_span spans[] = {{0, one}, {two, all}, {one, two}};
  const gt_arrays *w = gt_graph_arrays(whole);
  char hex[GT_SHA256_HEX], right[GT_SHA256_HEX];
  size_t params = 0, buffers = 0;
  gt_graph_init(whole, 9);
  gt_graph_hash(whole, right);
  for (size_t k = 0; k < 2; k++) {
    spec.spans = k ? spans + 2 : spans, spec.nspans = k ? 1 : 2;
    gt_graph *part = w_graph(&spec);
    const gt_arrays *a = gt_graph_arrays(part);
    size_t at = 0, v = 0;
    gt_graph_init(part, 9);
    gt_graph_hash(part, hex);
    assert_string_equal(hex, right);
    assert_int_equal(gt_graph_operations(part), all);
    assert_int_equal(gt_graph_tensors(part), a->nviews + a->nbuffer_views);
    for (size_t r = 0; r < w->nviews && v < a->nviews; r++) {
      if (strcmp(a->views[v].name, w->views[r].name) != 0) continue;
      assert_int_equal(a->views[v].offset, at);
      assert_memory_equal(a->params.data + at, w->params.data + w->views[r].offset,
                          w->views[r].count * sizeof(float));
      at += a->views[v++].count;
    }
    assert_int_equal(v, a->nviews);
    assert_int_equal(at, a->params.n);
    params += a->params.n, buffers += a->buffers.n;
    gt_graph_close(part);
  }
  assert_int_equal(params, w->params.n);
  assert_int_equal(buffers, w->buffers.n);
  gt_graph_close(whole);
}

/* A span without passes can begin and end anywhere. */
static void owner_alone(void) {
  const gt_span spans[] = {{0, 1}, {22, 23}};
  const bool runs[] = {false, true};
  gt_graph_spec spec = gpt(false);
  gt_graph *graph = NULL;
  spec.spans = spans, spec.nspans = 2, spec.batch_max = 2, spec.slots = 1;
  assert_int_equal(gt_graph_create(&graph, &spec), GT_ERR_JOB);
  spec.runs = runs;
  graph = w_graph(&spec);
  assert_int_equal(gt_graph_arrays(graph)->params.n, 30 * 12 + 8 * 12);
  assert_int_equal(gt_graph_span_bytes(graph, 0), 0);
  assert_true(gt_graph_span_bytes(graph, 1) > 0);
  gt_graph_close(graph);
}

/* The second name of a tied weight belongs to its owner. */
static void second_name(void) {
  gt_graph_spec spec = gpt(false);
  gt_graph *whole = w_graph(&spec);
  const size_t end = w_operation(whole, "transformer.h.0.mlp.sum") + 1,
               all = gt_graph_operations(whole);
  const gt_span spans[] = {{0, end}, {end, all - 1}};
  for (size_t k = 0; k < 2; k++) {
    spec.spans = spans + k, spec.nspans = 1;
    gt_graph *part = w_graph(&spec);
    const size_t n = gt_graph_tensors(part);
    gt_view view;
    assert_int_equal(n, gt_graph_arrays(part)->nviews + (k == 0));
    gt_graph_tensor(part, n - 1, &view, NULL);
    assert_string_equal(view.name, k == 0 ? "lm_head.weight" : "transformer.ln_f.bias");
    gt_graph_close(part);
  }
  gt_graph_close(whole);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void check_plan(gt_graph_spec spec) {
  gt_memory_plan first = {0};
  for (size_t slots = 1; slots <= 3; slots++) {
    spec.slots = slots;
    spec.sizes_only = false;
    gt_graph *graph = w_graph(&spec);
    spec.sizes_only = true;
    gt_graph *sizes = w_graph(&spec);
    const gt_memory_plan is = gt_graph_memory(graph), stated = gt_graph_memory(sizes);
    const gt_arrays *a = gt_graph_arrays(graph);
    size_t spans = 0;
    for (size_t s = 0; s < (spec.nspans ? spec.nspans : 1); s++)
      spans += gt_graph_span_bytes(graph, s);
    if (slots == 1) first = is;
    assert_memory_equal(&is, &first, sizeof is);
    assert_memory_equal(&is, &stated, sizeof is);
    assert_int_equal(gt_graph_bytes(graph), slots * is.slot + is.shared);
    assert_int_equal(gt_graph_bytes(sizes), gt_graph_bytes(graph));
    assert_int_equal(is.arrays, (2 * a->params.n + a->buffers.n) * sizeof(float));
    assert_int_equal(spans, is.slot);
    assert_null(gt_graph_arrays(sizes)->params.data);
    assert_null(sizes->spans[0].memory);
    gt_graph_close(graph);
    gt_graph_close(sizes);
  }
}

static void memory_is_stated(void) {
  static const gt_span spans[] = {{0, 3}, {3, 6}, {6, 11}};
  static const bool runs[] = {true, false, true};
  gt_graph_spec spec = other("lenet5", image);
  spec.batch_max = 4;
  check_plan(spec);
  spec.spans = spans, spec.nspans = 3, spec.runs = runs;
  check_plan(spec);
  spec = gpt(false);
  spec.batch_max = 3;
  check_plan(spec);
  spec = other("niser", clicks);
  spec.batch_max = 3;
  check_plan(spec);
}

/* A fused step reports its memory, too, without allocating it. */
static void fused_step_is_stated(void) {
  gt_graph_spec spec = gpt(false);
  spec.kernels = gt_kernels_find("ref");
  spec.batch_max = 3;
  gt_graph *graph = w_graph(&spec);
  spec.sizes_only = true;
  gt_graph *sizes = w_graph(&spec);
  assert_int_equal(gt_graph_bytes(graph), gt_graph_bytes(sizes));
  assert_true(gt_graph_bytes(graph) > 0);
  gt_graph_close(graph);
  gt_graph_close(sizes);
}

/* Bytes per sample of a slot of two blocks of a decoder, T x D = 96 floats of 4 bytes: the memory
   that each operation keeps from its forward to its last pass. */
static void what_a_slot_holds(void) {
  enum { TD = 96 * 4, SAMPLES = 16 };
  gt_graph_spec spec = gpt(true);
  spec.kernels = gt_kernels_find("ref");
  gt_graph *whole = w_graph(&spec);
  const size_t from = w_operation(whole, "transformer.h.0.mlp.sum") + 1,
               end = w_operation(whole, "transformer.h.1.mlp.sum") + 1;
  const gt_span block = {from, end};
  gt_graph_close(whole);
  spec.spans = &block, spec.nspans = 1;
  spec.batch_max = SAMPLES, spec.slots = 1, spec.sizes_only = true;
  size_t slot[2];
  for (int fused = 0; fused < 2; fused++) {
    spec.fused = fused;
    gt_graph *graph = w_graph(&spec);
    slot[fused] = gt_graph_memory(graph).slot / SAMPLES;
    gt_graph_close(graph);
  }
  /* Fused: the input, ln_1, 3 of qkv, attention, its sum, ln_2, 4 each before and after gelu, the
     output, whose gradient arrives while the output is still there; and a little for the
     normalisations. */
  assert_in_range(slot[1], 18 * TD, 18 * TD + TD);
  /* Split: besides the inputs of backward_weight, ln_1, attention, ln_2, the input of both
     normalisations and gelu's output, the gradients of all six products and normalisations. */
  assert_in_range(slot[0], 21 * TD, 23 * TD);
}

/* The contents of a slot are kept while others are used. */
static void slots_do_not_overlap(void) {
  enum { N = 3, SLOTS = 3 };
  gt_graph_spec spec = gpt(false);
  const gt_span spans[] = {{0, 11}, {11, 23}};
  spec.batch_max = N, spec.slots = SLOTS, spec.micro_batches = SLOTS;
  spec.spans = spans, spec.nspans = 2;
  gt_graph *graph = w_graph(&spec);
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  gt_metrics metrics;
  int32_t ids[SLOTS][N * 9];
  gt_graph_init(graph, 1);
  for (size_t j = 0; j < SLOTS; j++)
    for (size_t i = 0; i < N * 9; i++) ids[j][i] = (int32_t)gt_rng_below(&rng, 30);
  const size_t floats = graph->spans[0].floats, bytes = N * 8 * 12 * sizeof(float);
  float *was = GT_NEW_ARRAY(float, floats);
  for (size_t j = 0; j < SLOTS; j++) {
    const gt_micro_batch micro = {ids[j], NULL, N};
    gt_graph_forward(graph, 0, j, &micro, true, &metrics);
    float *own = graph->spans[0].memory + j * floats;
    memcpy(was, own, floats * sizeof *was);
    for (size_t other = 0; other < SLOTS; other++) {
      const gt_micro_batch rest = {ids[other], NULL, N};
      if (other == j) continue;
      gt_graph_forward(graph, 0, other, &rest, true, &metrics);
      memcpy(gt_graph_span_input(graph, 1, other), gt_graph_span_output(graph, 0, other), bytes);
      gt_graph_forward(graph, 1, other, &rest, true, &metrics);
      gt_graph_backward_input(graph, 1, other, &rest);
      memcpy(gt_graph_span_output_gradient(graph, 0, other),
             gt_graph_span_input_gradient(graph, 1, other), bytes);
      gt_graph_backward_weight(graph, 1, other, &rest, false);
      gt_graph_backward(graph, 0, other, &rest, false);
    }
    assert_memory_equal(own, was, floats * sizeof *was);
    /* and all slots have memory of their own */
    memset(own, 0x55, floats * sizeof *own);
  }
  gt_free(was);
  gt_graph_close(graph);
}

/* ---- evaluation, progress, misuse ------------------------------------------------------------ */

static void count(void *context) {
  ++*(size_t *)context;
}

/* A forward pass without training gives the scores and metrics of the whole model, and calls the
   progress function after every operation. */
static void evaluation(void) {
  enum { N = 4 };
  gt_graph_spec spec = other("lenet5", image);
  const gt_span spans[] = {{0, 6}, {6, 11}};
  spec.batch_max = N;
  gt_graph *whole = w_graph(&spec);
  spec.slots = 1, spec.spans = spans, spec.nspans = 2;
  gt_graph *graph = w_graph(&spec);
  float x[N * 784];
  const int32_t labels[N] = {1, 2, 3, 4};
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  gt_metrics metrics, right;
  size_t calls = 0;
  for (size_t i = 0; i < N * 784; i++) x[i] = (float)gt_rng_normal(&rng);
  gt_graph_init(whole, 1);
  gt_graph_init(graph, 1);
  gt_graph_on_progress(graph, count, &calls);
  gt_graph_step(whole, x, labels, N, false, &right);
  const gt_micro_batch first = {.samples = x, .n = N}, last = {.labels = labels, .n = N};
  gt_graph_forward(graph, 0, 0, &first, false, &metrics);
  assert_int_equal(calls, 6);
  memcpy(gt_graph_span_input(graph, 1, 0), gt_graph_span_output(graph, 0, 0),
         N * gt_graph_operation(graph, 5).output_bytes);
  gt_graph_forward(graph, 1, 0, &last, false, &metrics);
  assert_int_equal(calls, 11);
  assert_true(metrics.loss_sum == right.loss_sum && metrics.correct == right.correct);
  assert_memory_equal(gt_graph_scores(graph), gt_graph_scores(whole), N * 10 * sizeof(float));
  assert_ptr_equal(gt_graph_scores(graph), gt_graph_span_output(graph, 1, 0));
  assert_null(gt_graph_span_input(graph, 0, 0));
  assert_null(gt_graph_span_input_gradient(graph, 0, 0));
  assert_null(gt_graph_span_output_gradient(graph, 1, 0));
  gt_graph_close(graph);
  gt_graph_close(whole);
}

static const char *expected;

static void on_bug(const char *found) {
  _exit(strcmp(found, expected) == 0 ? 42 : 43);
}

static void misused(void (*use)(gt_graph *graph), gt_graph_spec spec, const char *sentence) {
  const pid_t child = fork();
  if (child == 0) {
    expected = sentence;
    gt_on_bug(on_bug);
    use(w_graph(&spec));
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 42);
}

static const gt_micro_batch empty;

static void use_step(gt_graph *graph) {
  gt_metrics metrics;
  gt_graph_step(graph, NULL, NULL, 0, true, &metrics);
}

static void use_part(gt_graph *graph) {
  gt_graph_backward_input(graph, 0, 0, &empty);
}

static void use_other(gt_graph *graph) {
  gt_graph_backward(graph, 0, 2, &empty, true);
}

static void misuse(void) {
  gt_graph_spec spec = other("lenet5", image);
  spec.batch_max = 2, spec.slots = 2;
  misused(use_step, spec, "a graph with slots has passes of spans only");
  misused(use_other, spec, "span 0, slot 2 do not run here (1 spans, 2 slots)");
  spec.fused = true;
  misused(use_part, spec, "backward passes are fused, so none can run in parts");
  spec.slots = 0;
  misused(use_other, spec, "a graph without slots was asked for a span");
}

TESTS(operations, ends_and_samples, cuts_that_are_refused, spans_that_are_refused, arrays_of_spans,
      second_name, owner_alone, memory_is_stated, fused_step_is_stated, what_a_slot_holds,
      slots_do_not_overlap, evaluation, misuse)
