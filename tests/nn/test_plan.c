/* Graphs that would silently have wrong gradients are rejected: the signs that mask a ReLU's
   gradient must be kept by the operations after it, and the parameters of the first operation must
   get gradients. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests.h"
#include "graph.h"

enum { FINE = 0, FAULT = 42, OTHER = 43 };
static const char *expected; /* text of the expected fault */

static void on_bug(const char *text) {
  if (expected && strcmp(text, expected) == 0) _exit(FAULT);
  print_error("found: %s\n", text);
  _exit(OTHER);
}

/* A graph for samples of 4 x 4 with 3 channels, without operations. */
static gt_graph *empty(void) {
  gt_graph *graph = GT_NEW(gt_graph);
  graph->kernels = gt_kernels_find("ref");
  graph->from = GT_SAMPLES;
  graph->input = (gt_extent){4, 4, 3};
  graph->classes = 5;
  graph->loss = &gt_loss_softmax;
  graph->batch_max = 2;
  return graph;
}

/* Returns the exit code of a child that builds the graph.  fault: the text of the expected fault,
   or NULL. */
static int ended(void (*build)(gt_graph *graph), const char *fault) {
  const pid_t child = fork();
  if (child == 0) {
    gt_graph *graph = empty();
    expected = fault;
    gt_on_bug(on_bug);
    build(graph);
    gt_graph_plan(graph);
    _exit(FINE);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Two branches from the samples; the next operation reads the second. */
static size_t branches(gt_graph *graph) {
  gt_graph_add_linear(graph, "beside", 5);
  const size_t beside = gt_graph_last(graph);
  gt_graph_from(graph, GT_SAMPLES);
  gt_graph_add_linear(graph, "main", 5);
  return beside;
}

static void sum_of_products(gt_graph *graph) {
  const size_t beside = branches(graph);
  gt_graph_add_sum(graph, "sum", beside);
}

static void sum_behind_relu(gt_graph *graph) {
  const size_t beside = branches(graph);
  gt_graph_add_relu(graph, "relu");
  gt_graph_add_sum(graph, "sum", beside);
}

static void sum_further_behind_relu(gt_graph *graph) {
  const size_t beside = branches(graph);
  gt_graph_add_relu(graph, "relu");
  gt_graph_add_inert(graph, "inert", 7);
  gt_graph_add_sum(graph, "sum", beside);
}

static void sum_behind_norm(gt_graph *graph) {
  const size_t beside = branches(graph);
  gt_graph_add_norm(graph, "norm", GT_SAMPLES, true);
  gt_graph_add_sum(graph, "sum", beside);
}

static void sum_behind_plain_norm(gt_graph *graph) {
  const size_t beside = branches(graph);
  gt_graph_add_norm(graph, "norm", GT_SAMPLES, false);
  gt_graph_add_sum(graph, "sum", beside);
}

static void what_keeps_signs(gt_graph *graph) {
  gt_graph_add_linear(graph, "main", 5);
  gt_graph_add_relu(graph, "relu");
  gt_graph_add_relu(graph, "again");
  gt_graph_add_inert(graph, "inert", 7);
  gt_graph_add_linear(graph, "last", 5);
}

static void norm_first(gt_graph *graph) {
  gt_graph_add_norm(graph, "norm", GT_SAMPLES, false);
  gt_graph_add_linear(graph, "last", 5);
}

static void inert_first(gt_graph *graph) {
  gt_graph_add_inert(graph, "inert", 7);
  gt_graph_add_linear(graph, "last", 5);
}

static void masks_outlive_what_is_in_place(void) {
  assert_int_equal(ended(sum_of_products, NULL), FINE);
  assert_int_equal(ended(sum_behind_plain_norm, NULL), FINE);
  assert_int_equal(ended(what_keeps_signs, NULL), FINE);
  assert_int_equal(
      ended(sum_behind_relu, "sum works in place and overwrites the mask of the gradient of relu"),
      FAULT);
  assert_int_equal(ended(sum_further_behind_relu,
                         "sum works in place and overwrites the mask of the gradient of relu"),
                   FAULT);
  assert_int_equal(
      ended(sum_behind_norm, "sum works in place and overwrites the mask of the gradient of norm"),
      FAULT);
}

static void parameters_of_the_first_operation(void) {
  assert_int_equal(ended(inert_first, NULL), FINE);
  assert_int_equal(
      ended(norm_first,
            "norm reads the samples, and writes its gradients only beside that of what it reads"),
      FAULT);
}

TESTS(masks_outlive_what_is_in_place, parameters_of_the_first_operation)
