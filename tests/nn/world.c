/* Refusals, hashes, names and shapes of tensors. */
#include "world.h"

const char *const w_tables[4] = {"ref", "blas", "auto", "dnn"};

size_t w_ntables(void) {
  return gt_kernels_find("dnn") ? 4 : 3;
}

const gt_optim_spec w_adam = {.kind = GT_OPTIMIZER_ADAM,
                              .schedule = {.kind = GT_LR_CONSTANT, .lr = 0.01},
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .epsilon = 1e-8};

void w_check_tensors(const gt_graph *graph, const w_tensor *right, size_t n) {
  assert_int_equal(gt_graph_tensors(graph), n);
  for (size_t i = 0; i < n; i++) {
    gt_view view;
    gt_graph_tensor(graph, i, &view, NULL);
    assert_string_equal(view.name, right[i].name);
    assert_int_equal(view.ndims, right[i].columns ? 2 : 1);
    assert_int_equal(view.shape[0], right[i].rows);
    if (right[i].columns) assert_int_equal(view.shape[1], right[i].columns);
  }
}

void w_check_hashes(gt_graph *const *graphs, size_t n) {
  char hex[16][GT_SHA256_HEX];
  assert_true(n <= 16);
  for (size_t i = 0; i < n; i++) {
    gt_graph_hash(graphs[i], hex[i]);
    for (size_t j = 0; j < i; j++) assert_string_not_equal(hex[i], hex[j]);
  }
  for (size_t i = 0; i < n; i++) gt_graph_close(graphs[i]);
}

void w_refused(const char *model, gt_sample_shape shape, gt_model_options options, gt_status status,
               const char *text) {
  gt_graph *graph = NULL;
  const gt_graph_spec spec = {.model = model,
                              .options = options,
                              .shape = shape,
                              .batch_max = 2,
                              .kernels = gt_kernels_find("ref")};
  assert_int_equal(gt_graph_create(&graph, &spec), status);
  assert_null(graph);
  assert_string_equal(gt_error_text(), text);
}
