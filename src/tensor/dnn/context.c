/* oneDNN as this part uses it: one engine and one stream a graph, primitives made once a batch size, scratch shared. */
#include "dnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* libgomp's, which oneDNN brings along; where it was built without OpenMP there is nothing to set. */
extern void omp_set_num_threads(int n) __attribute__((weak));

void gt_dnn_check(dnnl_status_t status, const char *call) {
  if (status != dnnl_success) gt_bug("oneDNN: status %d from %.80s", (int)status, call);
}

const char *gt_kernels_dnn_version(void) {
  static char text[32];
  const dnnl_version_t *v = dnnl_version();
  snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
  return text;
}

/* oneDNN reads its own variable at its first use; a cap that a user set lower stays. */
void gt_dnn_cap(gt_isa isa) {
  static const char *const lower[] = {"SSE41", "AVX", "AVX2"};
  const char *user = getenv("ONEDNN_MAX_CPU_ISA");
  if (!user) user = getenv("DNNL_MAX_CPU_ISA");
  const size_t caps = isa == GT_ISA_PLAIN ? 1 : sizeof lower / sizeof *lower;
  for (size_t i = 0; user && i < caps; i++)
    if (strcasecmp(user, lower[i]) == 0) return;
  if (dnnl_set_max_cpu_isa(isa == GT_ISA_PLAIN ? dnnl_cpu_isa_sse41 : dnnl_cpu_isa_avx2) != dnnl_success)
    gt_log(GT_LOG_WARN, "GEOTRAIN_ISA is %s, and oneDNN is in use already: it goes on with all that this CPU has", gt_isa_name(isa));
}

bool gt_kernels_bf16(const char **why) {
  (void)gt_isa_used(); /* holds oneDNN to the set before it is asked */
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bf16")) {
    const unsigned has = (unsigned)dnnl_get_effective_cpu_isa(), needs = dnnl_cpu_isa_avx512_core_bf16;
    *why = "GEOTRAIN_ISA or DNNL_MAX_CPU_ISA keeps oneDNN from this CPU's bf16 arithmetic";
    return (has & needs) == needs;
  }
#endif
  *why = "this CPU has no bf16 arithmetic";
  return false;
}

static gt_prepared_context *create(void) {
  gt_prepared_context *dnn = GT_NEW(gt_prepared_context);
  if (omp_set_num_threads && !getenv("OMP_NUM_THREADS")) omp_set_num_threads(1); /* a rank is one thread; what the user sets stands */
  dnn->amx = ((unsigned)dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
  GT_DNN(dnnl_engine_create(&dnn->engine, dnnl_cpu, 0));
  GT_DNN(dnnl_stream_create(&dnn->stream, dnn->engine, dnnl_stream_default_flags));
  return dnn;
}

static void close_context(gt_prepared_context *dnn) {
  if (!dnn) return;
  for (size_t i = 0; i < GT_DNN_AREAS; i++) gt_free(dnn->areas[i]);
  dnnl_stream_destroy(dnn->stream);
  dnnl_engine_destroy(dnn->engine);
  gt_free(dnn);
}

static size_t bytes_of(const gt_prepared_context *dnn) {
  size_t bytes = 0;
  for (size_t i = 0; i < GT_DNN_AREAS; i++) bytes += dnn->bytes[i];
  return bytes;
}

void gt_dnn_reserve(gt_prepared_context *dnn, gt_dnn_area area, size_t bytes) {
  if (bytes <= dnn->bytes[area]) return;
  gt_free(dnn->areas[area]);
  dnn->areas[area] = gt_alloc(bytes, 1);
  dnn->bytes[area] = bytes;
}

/* ---- stages ---- */

void gt_dnn_stage_close(gt_dnn_stage *stage) {
  dnnl_memory_t memories[] = {stage->x, stage->w, stage->y, stage->b, stage->plain};
  if (stage->run) dnnl_primitive_destroy(stage->run);
  if (stage->pack) dnnl_primitive_destroy(stage->pack);
  for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
    if (memories[i]) dnnl_memory_destroy(memories[i]);
  *stage = (gt_dnn_stage){0};
}

dnnl_memory_t gt_dnn_memory(gt_prepared_context *dnn, const gt_dnn_layout *layout) {
  dnnl_memory_t memory;
  GT_DNN(dnnl_memory_create(&memory, layout, dnn->engine, DNNL_MEMORY_NONE));
  return memory;
}

dnnl_primitive_t gt_dnn_reorder(gt_prepared_context *dnn, const gt_dnn_layout *from, const gt_dnn_layout *to) {
  dnnl_primitive_desc_t desc;
  dnnl_primitive_t primitive;
  GT_DNN(dnnl_reorder_primitive_desc_create(&desc, from, dnn->engine, to, dnn->engine, NULL));
  GT_DNN(dnnl_primitive_create(&primitive, desc));
  dnnl_primitive_desc_destroy(desc);
  return primitive;
}

void gt_dnn_execute(gt_prepared_context *dnn, dnnl_primitive_t primitive, const dnnl_exec_arg_t *args, int nargs) {
  GT_DNN(dnnl_primitive_execute(primitive, dnn->stream, nargs, args));
  GT_DNN(dnnl_stream_wait(dnn->stream));
}

/* oneDNN takes what it only reads as writable, too. */
void gt_dnn_point(dnnl_memory_t memory, const void *data) {
  union {
    const void *given;
    void *taken;
  } u = {data};
  GT_DNN(dnnl_memory_set_data_handle(memory, u.taken));
}

void gt_dnn_move(gt_prepared_context *dnn, const gt_dnn_stage *stage, dnnl_memory_t from, dnnl_memory_t to) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  gt_dnn_execute(dnn, stage->pack, args, 2);
}

/* ---- products ---- */

static gt_dnn_layout *matrix(size_t places, size_t rows, size_t columns, bool transposed, gt_precision type, bool any) {
  const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns}, all = {(dnnl_dim_t)places, (dnnl_dim_t)rows, (dnnl_dim_t)columns};
  if (places > 0) return gt_dnn_layout_tagged(3, all, gt_dnn_type(type), any ? dnnl_format_tag_any : transposed ? dnnl_acb : dnnl_abc);
  return gt_dnn_layout_tagged(2, dims, gt_dnn_type(type), any ? dnnl_format_tag_any : transposed ? dnnl_ba : dnnl_ab);
}

/* Weights come plain and are packed into the layout that was chosen. */
static void open_packing(gt_prepared_context *dnn, gt_dnn_stage *stage, const gt_dnn_product *p, const gt_dnn_layout *chosen) {
  gt_dnn_layout *plain = matrix(p->places, p->k, p->n, p->tb, GT_F32, false);
  stage->plain = gt_dnn_memory(dnn, plain);
  stage->pack = gt_dnn_reorder(dnn, plain, chosen);
  gt_dnn_reserve(dnn, GT_DNN_PACKED, dnnl_memory_desc_get_size(chosen));
  gt_dnn_layout_close(plain);
}

void gt_dnn_product_open(gt_prepared_context *dnn, gt_dnn_stage *stage, const gt_dnn_product *p) {
  gt_dnn_layout *a = matrix(p->places, p->m, p->k, p->ta, p->type, false), *b = matrix(p->places, p->k, p->n, p->tb, p->type, p->packed),
                *y = matrix(p->places, p->m, p->n, false, p->out, false), *c = p->bias ? matrix(0, 1, p->n, false, GT_F32, false) : NULL;
  dnnl_primitive_desc_t primitive = gt_dnn_describe_product(dnn->engine, a, b, c, y, p->add);
  const gt_dnn_layout *chosen = dnnl_primitive_desc_query_md(primitive, dnnl_query_weights_md, 0);
  GT_DNN(dnnl_primitive_create(&stage->run, primitive));
  stage->x = gt_dnn_memory(dnn, a);
  stage->w = gt_dnn_memory(dnn, chosen);
  stage->y = gt_dnn_memory(dnn, y);
  if (c) stage->b = gt_dnn_memory(dnn, c);
  if (p->packed) open_packing(dnn, stage, p, chosen);
  dnnl_primitive_desc_destroy(primitive);
  gt_dnn_layout *const layouts[] = {a, b, y, c};
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) gt_dnn_layout_close(layouts[i]);
}

void gt_dnn_product_run(gt_prepared_context *dnn, const gt_dnn_stage *stage, void *y, const void *a, const void *b, const float *c) {
  dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, stage->x}, {DNNL_ARG_WEIGHTS, stage->w}, {DNNL_ARG_DST, stage->y}, {DNNL_ARG_BIAS, stage->b}};
  gt_dnn_point(stage->x, a);
  gt_dnn_point(stage->y, y);
  if (stage->b) gt_dnn_point(stage->b, c);
  gt_dnn_point(stage->w, stage->pack ? dnn->areas[GT_DNN_PACKED] : b);
  if (stage->pack && b) {
    gt_dnn_point(stage->plain, b);
    gt_dnn_move(dnn, stage, stage->plain, stage->w);
  }
  gt_dnn_execute(dnn, stage->run, args, stage->b ? 4 : 3);
}

static const gt_prepared_ops ops = {
    .create = create,
    .close = close_context,
    .bytes = bytes_of,
    .conv_create = gt_dnn_conv_create,
    .conv_close = gt_dnn_conv_close,
    .conv_prepare = gt_dnn_conv_prepare,
    .conv_forward = gt_dnn_conv_forward,
    .conv_backward_input = gt_dnn_conv_backward_input,
    .conv_backward_weight = gt_dnn_conv_backward_weight,
    .conv_rule = gt_dnn_conv_rule,
    .conv_can = gt_dnn_conv_can,
    .linear_create = gt_dnn_linear_create,
    .linear_close = gt_dnn_linear_close,
    .linear_prepare = gt_dnn_linear_prepare,
    .linear_forward = gt_dnn_linear_forward,
    .linear_backward_input = gt_dnn_linear_backward_input,
    .linear_backward_weight = gt_dnn_linear_backward_weight,
};

const gt_prepared_ops *gt_prepared_dnn(void) {
  return &ops;
}
