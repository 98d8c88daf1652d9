/* ranks: 5; processors: 1 */
/* One requested instruction set for all ranks, the precision of each, and the texts on how ranks
   compute. */
#include "world.h"

#define REGIONS "[{name: a, ranks: 3}, {name: b, ranks: 2}]"

static gt_run run;

static void begin(const char *train) {
  w_begin(&run, NULL, REGIONS, "path: none.h5", train);
}

static void end(void) {
  gt_setup_close(&run);
}

static void opened(void) {
  must(gt_setup_open_machine(&run));
}

static void check_sets(const char *a, const char *b) {
  assert_string_equal(run.isas[0], a);
  assert_string_equal(run.isas[1], b);
}

/* ---- instruction sets ------------------------------------------------------------------------ */

/* Must be the first test: no set has been chosen yet.  Only rank 0's environment requests one. */
static void test_the_wish_of_rank_0(void) {
  begin("");
  if (w_rank == 0) setenv("GEOTRAIN_ISA", "plain", 1);
  opened();
  assert_int_equal(gt_isa_used(), GT_ISA_PLAIN);
  check_sets("plain", "plain");
  end();
}

/* A rank whose own environment requests a set keeps it. */
static void test_an_own_wish(void) {
  const char *best = gt_isa_name(gt_isa_best());
  char both[64];
  begin("");
  if (w_rank == 4) {
    setenv("GEOTRAIN_ISA", best, 1);
    must(gt_isa_choose(best));
  }
  opened();
  assert_int_equal(gt_isa_used(), w_rank == 4 ? gt_isa_best() : GT_ISA_PLAIN);
  snprintf(both, sizeof both, gt_isa_best() > GT_ISA_PLAIN ? "plain+%s" : "%s", best);
  check_sets("plain", both);
  unsetenv("GEOTRAIN_ISA");
  end();
}

/* No rank requests a set: each keeps its default, and each set of a region is named once. */
static void test_no_wish(void) {
  begin("");
  must(gt_isa_choose(w_rank < 3 ? NULL : "plain"));
  opened();
  assert_int_equal(gt_isa_used(), w_rank < 3 ? gt_isa_best() : GT_ISA_PLAIN);
  check_sets(gt_isa_name(gt_isa_best()), "plain");
  end();
}

static void test_no_such_set(void) {
  begin("");
  if (w_rank == 0) setenv("GEOTRAIN_ISA", "avx3", 1);
  must_fail(gt_setup_open_machine(&run), GT_ERR_JOB,
            "GEOTRAIN_ISA is \"avx3\"; expected one of plain, avx2, avx512");
  unsetenv("GEOTRAIN_ISA");
  end();
}

/* ---- precision ------------------------------------------------------------------------------- */

static void test_precision(void) {
  begin("");
  gt_setup_open_precision(&run, gt_kernels_find("auto"));
  assert_int_equal(run.precision, GT_F32);
  end();
  begin("precision: bf16, kernels: blas"); /* this table has no bf16 */
  gt_setup_open_precision(&run, gt_kernels_find("blas"));
  assert_int_equal(run.precision, GT_F32);
  end();
  const char *why;
  begin("precision: bf16");
  gt_setup_open_precision(&run, gt_kernels_find("auto"));
  assert_int_equal(run.precision,
                   gt_kernels_find("auto")->prepared && gt_kernels_bf16(&why) ? GT_BF16 : GT_F32);
  end();
}

/* ---- builds ---------------------------------------------------------------------------------- */

/* Only workers are counted: the PS does not compute. */
static void test_builds(void) {
  begin("");
  gt_graph_spec spec = gt_graph_spec_of(run.job);
  spec.shape = (gt_sample_shape){.h = 28, .w = 28, .c = 1, .classes = 10};
  spec.kernels = gt_kernels_find("ref");
  must(gt_graph_create(&run.graph, &spec));
  run.precision = w_rank == 0 || w_rank == 2 || w_rank == 4 ? GT_BF16 : GT_F32;
  gt_setup_gather_builds(&run);
  assert_string_equal(run.builds[0].precision, "f32+bf16");
  assert_string_equal(run.builds[1].precision, "bf16");
  assert_string_equal(run.builds[2].precision, "f32+bf16");
  for (size_t i = 0; i < 3; i++) {
    /* the same for all: listed once */
    assert_string_equal(run.builds[i].kernels, gt_graph_kernels(run.graph));
    assert_string_equal(run.builds[i].blas_core, gt_kernels_blas_core());
  }
  end();
}

TESTS_BETWEEN(w_start_ranks, w_end_ranks, test_the_wish_of_rank_0, test_an_own_wish, test_no_wish,
              test_no_such_set, test_precision, test_builds)
