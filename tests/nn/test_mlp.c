/* The perceptron: names and numbers of its parameters for a table, and refusals. */
#include "world.h"

static gt_status create(gt_graph **graph, const int64_t *mlp, size_t nmlp, size_t features) {
  return gt_graph_create(graph, &(gt_graph_spec){.model = "mlp",
                                                 .options = {.mlp = mlp, .nmlp = nmlp},
                                                 .shape = {1, 1, 20, 3, features},
                                                 .kernels = gt_kernels_find("ref")});
}

static void names(void) {
  static const struct {
    const char *name;
    size_t count;
  } right[] = {{"mlp.0.weight", 20 * 7}, {"mlp.0.bias", 7},    {"mlp.2.weight", 7 * 5},
               {"mlp.2.bias", 5},        {"mlp.4.weight", 15}, {"mlp.4.bias", 3}};
  const int64_t widths[] = {7, 5};
  gt_graph *graph;
  assert_int_equal(create(&graph, widths, 2, 0), GT_OK);
  const gt_arrays *arrays = gt_graph_arrays(graph);
  assert_int_equal(arrays->nviews, 6);
  for (size_t v = 0; v < 6; v++) {
    assert_string_equal(arrays->views[v].name, right[v].name);
    assert_int_equal(arrays->views[v].count, right[v].count);
  }
  gt_graph_close(graph);
  assert_int_equal(create(&graph, NULL, 0, 0), GT_OK);
  assert_int_equal(gt_graph_arrays(graph)->params.n, 20 * 256 + 256 + 256 * 256 + 256 + 771);
  gt_graph_close(graph);
}

static void refused(void) {
  const int64_t widths[] = {7, 0};
  gt_graph *graph;
  assert_int_equal(create(&graph, widths, 2, 0), GT_ERR_JOB);
  must_contain(gt_error_text(), "mlp.1 is 0");
  assert_int_equal(create(&graph, NULL, 0, 50), GT_ERR_DATA);
  must_contain(gt_error_text(), "model mlp takes images");
}

TESTS(names, refused)
