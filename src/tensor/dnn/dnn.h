/* Declarations shared by the oneDNN files: engine, checks, scratch, and primitives with their
   memories. */
#pragma once

#include "calls.h"
#include "kernels.h"

/* Scratch that the operations of a graph share. */
typedef enum {
  GT_DNN_PACKED,
  GT_DNN_VALUES,
  GT_DNN_COLUMNS,
  GT_DNN_TILES,
  GT_DNN_WEIGHTS,
  GT_DNN_AREAS
} gt_dnn_area;

struct gt_prepared_context {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  bool amx; /* bf16 products use AMX tiles */
  void *areas[GT_DNN_AREAS];
  size_t bytes[GT_DNN_AREAS];
};

/* Ends the process with gt_bug if a call failed: shapes were checked before. */
void gt_dnn_check(dnnl_status_t status, const char *call);
#define GT_DNN(call) gt_dnn_check((call), #call)

/* Grows the area to at least `bytes`.  Called only while primitives are prepared, because the area
   can move. */
void gt_dnn_reserve(gt_prepared_context *dnn, gt_dnn_area area, size_t bytes);

/* A primitive and the memories of its arguments.  `pack`, unless NULL, converts plain float32
   weights to the layout that the primitive needs or, if it computes weights, back. */
typedef struct {
  dnnl_primitive_t run, pack;
  dnnl_memory_t x, w, y, b, plain;
} gt_dnn_stage;

void gt_dnn_stage_close(gt_dnn_stage *stage);
static inline dnnl_data_type_t gt_dnn_type(gt_precision precision) {
  return precision == GT_BF16 ? dnnl_bf16 : dnnl_f32;
}
dnnl_memory_t gt_dnn_memory(gt_prepared_context *dnn, const gt_dnn_layout *layout);
dnnl_primitive_t gt_dnn_reorder(gt_prepared_context *dnn, const gt_dnn_layout *from,
                                const gt_dnn_layout *to);
void gt_dnn_execute(gt_prepared_context *dnn, dnnl_primitive_t primitive,
                    const dnnl_exec_arg_t *args, int nargs);
void gt_dnn_point(dnnl_memory_t memory, const void *data);
/* Copies `from` into the layout of `to`. */
void gt_dnn_move(gt_prepared_context *dnn, const gt_dnn_stage *stage, dnnl_memory_t from,
                 dnnl_memory_t to);

/* A matrix product y (m,n) = a (m,k) b (k,n) [+ c (n)].  Factors are of `type` and can be stored
   transposed (ta, tb); y is of type `out`.  packed: b is given in float32 and converted to the
   library's layout in GT_DNN_PACKED at every run. */
typedef struct {
  size_t m, n, k, places;         /* places: number of products in a batch; 0: one */
  bool ta, tb, bias, packed, add; /* add: add to y */
  gt_precision type, out;
} gt_dnn_product;

void gt_dnn_product_open(gt_prepared_context *dnn, gt_dnn_stage *stage, const gt_dnn_product *p);
/* Runs the product.  b NULL (packed products only): uses the b that the last run of a packed
   product has left in GT_DNN_PACKED. */
void gt_dnn_product_run(gt_prepared_context *dnn, const gt_dnn_stage *stage, void *y, const void *a,
                        const void *b, const float *c);

/* Functions of gt_prepared_ops: context.c, conv.c. */
gt_prepared_context *gt_dnn_context_create(void);
void gt_dnn_context_close(gt_prepared_context *dnn);
size_t gt_dnn_context_bytes(const gt_prepared_context *dnn);
gt_algorithm gt_dnn_conv_rule(const gt_conv_spec *spec, size_t N, gt_pass_id pass);
bool gt_dnn_conv_can(const gt_conv_spec *spec, size_t N, gt_pass_id pass, gt_algorithm algorithm);
gt_prepared_conv *gt_dnn_conv_create(gt_prepared_context *dnn, const gt_conv_spec *spec,
                                     const gt_algorithm *algorithms);
void gt_dnn_conv_close(gt_prepared_conv *c);
void gt_dnn_conv_prepare(gt_prepared_conv *c, size_t N);
void gt_dnn_conv_forward(gt_prepared_conv *c, void *y, const void *x, const float *w,
                         const float *b, size_t N);
void gt_dnn_conv_backward_input(gt_prepared_conv *c, void *dx, const void *dy, const float *w,
                                size_t N);
void gt_dnn_conv_backward_weight(gt_prepared_conv *c, float *dw, float *db, const void *dy,
                                 const void *x, size_t N);
