/* Choices of methods: a list of layers, and its text form for files and other ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

#include <cblas.h>
#undef I /* complex.h defines I, here the number of inputs of a linear layer */

/* ---- the list ---- */

static bool same_layer(const gt_layer_spec *a, const gt_layer_spec *b) {
  const gt_conv_shape *s = &a->conv.shape, *t = &b->conv.shape;
  return a->linear == b->linear && s->H == t->H && s->W == t->W && s->C == t->C && s->K == t->K &&
         s->R == t->R && s->S == t->S && s->stride == t->stride && s->pad == t->pad &&
         a->conv.bias == b->conv.bias &&
         a->conv.needs_input_gradient == b->conv.needs_input_gradient && a->conv.in == b->conv.in &&
         a->conv.out == b->conv.out && a->conv.precision == b->conv.precision;
}

const gt_choice *gt_choices_find(const gt_choices *choices, const gt_layer_spec *layer,
                                 size_t batch) {
  for (size_t i = 0; i < choices->n; i++)
    if (choices->items[i].batch == batch && same_layer(&choices->items[i].layer, layer))
      return &choices->items[i];
  return NULL;
}

gt_choice *gt_choices_add(gt_choices *choices, const gt_layer_spec *layer, size_t batch) {
  for (size_t i = 0; i < choices->n; i++)
    if (choices->items[i].batch == batch && same_layer(&choices->items[i].layer, layer))
      return &choices->items[i];
  GT_GROW(choices->items, choices->n, choices->capacity, 16);
  choices->items[choices->n] = (gt_choice){.layer = *layer, .batch = batch};
  return &choices->items[choices->n++];
}

void gt_choices_close(gt_choices *choices) {
  gt_free(choices->items);
  *choices = (gt_choices){0};
}

/* ---- the machine ---- */

void gt_machine_key(char *text, size_t size) {
  char cpu[128], blas[32] = "?";
  const char *dnn = gt_kernels_dnn_version();
  gt_cpu_kind(cpu, sizeof cpu, "/proc/cpuinfo");
  (void)sscanf(openblas_get_config(), "OpenBLAS %31s", blas);
  snprintf(text, size, "cpu=\"%s\" isa=%s openblas=%s-%s onednn=%s", cpu,
           gt_isa_name(gt_isa_used()), blas, gt_kernels_blas_core(), dnn ? dnn : "none");
}

/* ---- text ---- */

static const char *type_name(gt_precision type) {
  return type == GT_BF16 ? "bf16" : "f32";
}

static void print_choice(FILE *to, const gt_choice *c) {
  const gt_conv_spec *v = &c->layer.conv;
  const gt_conv_shape *s = &v->shape;
  if (c->layer.linear)
    fprintf(to, "linear batch=%zu inputs=%zu outputs=%zu", c->batch, s->C, s->K);
  else
    fprintf(to, "conv batch=%zu image=%zux%zux%zu channels=%zu window=%zux%zu stride=%zu pad=%zu",
            c->batch, s->H, s->W, s->C, s->K, s->R, s->S, s->stride, s->pad);
  fprintf(to, " bias=%d gradient=%d types=%s,%s,%s:", v->bias, v->needs_input_gradient,
          type_name(v->in), type_name(v->out), type_name(v->precision));
  for (int pass = 0; pass < GT_PASSES; pass++)
    fprintf(to, " %s=%s", gt_pass_name((gt_pass_id)pass), gt_algorithm_name(c->algorithms[pass]));
  fputc('\n', to);
}

char *gt_choices_text(const gt_choices *choices) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (!to) gt_bug("no memory for the text of %zu choices", choices->n);
  if (choices->seconds > 0) fprintf(to, "# measured in %.2f s\n", choices->seconds);
  fprintf(to, "machine %s\n", choices->machine);
  for (size_t i = 0; i < choices->n; i++) print_choice(to, &choices->items[i]);
  fclose(to);
  char *copy = gt_strdup(text);
  free(text);
  return copy;
}

static bool read_type(const char *name, gt_precision *type) {
  *type = strcmp(name, "bf16") == 0 ? GT_BF16 : GT_F32;
  return *type == GT_BF16 || strcmp(name, "f32") == 0;
}

static bool read_algorithm(const char *name, gt_algorithm *algorithm) {
  for (int w = 0; w < GT_ALGORITHMS; w++)
    if (strcmp(gt_algorithm_name((gt_algorithm)w), name) == 0) {
      *algorithm = (gt_algorithm)w;
      return true;
    }
  return false;
}

/* Parses the layer, the text before the colon. */
static bool read_layer(const char *line, gt_layer_spec *layer, size_t *batch) {
  gt_conv_shape *s = &layer->conv.shape;
  int bias, gradient, at = 0;
  char in[8], out[8], precision[8];
  *layer = (gt_layer_spec){0};
  if (sscanf(line, "linear batch=%9zu inputs=%9zu outputs=%9zu%n", batch, &s->C, &s->K, &at) == 3) {
    layer->linear = true;
    s->H = s->W = s->R = s->S = s->stride = 1;
  } else if (sscanf(line,
                    "conv batch=%5zu image=%6zux%6zux%6zu channels=%6zu window=%4zux%4zu "
                    "stride=%4zu pad=%4zu%n",
                    batch, &s->H, &s->W, &s->C, &s->K, &s->R, &s->S, &s->stride, &s->pad,
                    &at) != 9) {
    return false;
  }
  if (sscanf(line + at, " bias=%1d gradient=%1d types=%7[^,],%7[^,],%7[^:]:", &bias, &gradient, in,
             out, precision) != 5)
    return false;
  layer->conv.bias = bias == 1;
  layer->conv.needs_input_gradient = gradient == 1;
  if (*batch == 0 || s->stride == 0 || s->H + 2 * s->pad < s->R || s->W + 2 * s->pad < s->S)
    return false;
  s->P = (s->H + 2 * s->pad - s->R) / s->stride + 1;
  s->Q = (s->W + 2 * s->pad - s->S) / s->stride + 1;
  return read_type(in, &layer->conv.in) && read_type(out, &layer->conv.out) &&
         read_type(precision, &layer->conv.precision);
}

static gt_status read_choice(gt_choices *choices, const char *source, size_t number,
                             const char *line) {
  const char *colon = strchr(line, ':');
  char names[GT_PASSES][16];
  gt_layer_spec layer;
  gt_algorithm algorithms[GT_PASSES];
  size_t batch;
  if (!colon || !read_layer(line, &layer, &batch) ||
      sscanf(colon, ": forward=%15s input=%15s weight=%15s", names[GT_PASS_FORWARD],
             names[GT_PASS_INPUT], names[GT_PASS_WEIGHT]) != GT_PASSES)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s, line %zu: \"%.100s\" is not a choice; expected a line as `geotrain info JOB "
        "--measure` writes it",
        source, number, line);
  for (int pass = 0; pass < GT_PASSES; pass++)
    if (!read_algorithm(names[pass], &algorithms[pass]) ||
        !gt_algorithm_can(&layer, batch, (gt_pass_id)pass, algorithms[pass]))
      return GT_FAIL(GT_ERR_JOB,
                     "%s, line %zu: %s=%s is not available for this layer; rule "
                     "always is",
                     source, number, gt_pass_name((gt_pass_id)pass), names[pass]);
  memcpy(gt_choices_add(choices, &layer, batch)->algorithms, algorithms, sizeof algorithms);
  return GT_OK;
}

gt_status gt_choices_parse(gt_choices *choices, const char *source, const char *text, bool *found) {
  bool machine = false, mine = false;
  size_t number = 0;
  *found = false;
  if (!choices->machine[0]) gt_machine_key(choices->machine, sizeof choices->machine);
  for (const char *next = text; *next;) {
    char line[512];
    const size_t length = strcspn(next, "\n");
    snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1),
             next);
    next += length + (next[length] == '\n');
    number++;
    if (!line[0] || line[0] == '#') continue;
    if (strncmp(line, "machine ", 8) == 0) {
      machine = true;
      mine = strcmp(line + 8, choices->machine) == 0;
      *found = *found || mine;
      continue;
    }
    if (!machine)
      return GT_FAIL(
          GT_ERR_JOB,
          "%s, line %zu: \"%.100s\" stands before any line `machine ...`, which must come first",
          source, number, line);
    gt_choices other = {0};
    const gt_status status = read_choice(mine ? choices : &other, source, number, line);
    gt_choices_close(&other);
    GT_TRY(status);
  }
  if (!machine)
    return GT_FAIL(GT_ERR_JOB,
                   "%s holds no line `machine ...`; expected a file as `geotrain info JOB "
                   "--measure --out FILE` writes it",
                   source);
  return GT_OK;
}
