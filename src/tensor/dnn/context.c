/* The use of oneDNN in this part: one engine and one stream per graph, and the scratch that the
   operations of the graph share. */
#include "dnn.h"

#include <stdlib.h>

/* From libgomp, which oneDNN links; NULL if oneDNN was built without OpenMP. */
extern void omp_set_num_threads(int n) __attribute__((weak));

void gt_dnn_check(dnnl_status_t status, const char *call) {
  if (status != dnnl_success) gt_bug("oneDNN: status %d from %.80s", (int)status, call);
}

gt_prepared_context *gt_dnn_context_create(void) {
  gt_prepared_context *dnn = GT_NEW(gt_prepared_context);
  /* A rank has one thread.  The user's setting takes precedence. */
  if (omp_set_num_threads && !getenv("OMP_NUM_THREADS")) omp_set_num_threads(1);
  dnn->amx = ((unsigned)dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) ==
             dnnl_cpu_isa_avx512_core_amx;
  GT_DNN(dnnl_engine_create(&dnn->engine, dnnl_cpu, 0));
  GT_DNN(dnnl_stream_create(&dnn->stream, dnn->engine, dnnl_stream_default_flags));
  return dnn;
}

void gt_dnn_context_close(gt_prepared_context *dnn) {
  if (!dnn) return;
  for (size_t i = 0; i < GT_DNN_AREAS; i++) gt_free(dnn->areas[i]);
  dnnl_stream_destroy(dnn->stream);
  dnnl_engine_destroy(dnn->engine);
  gt_free(dnn);
}

size_t gt_dnn_context_bytes(const gt_prepared_context *dnn) {
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
