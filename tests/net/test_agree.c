/* ranks: 1 2 4; processors: 1 */
/* Agreement: each rank fails in turn, several fail at once, and all ranks get the same status and
   text. */
#include "geotrain/net.h"
#include "ranks.h"

static void all_well(void) {
  must(gt_agree(world, GT_OK, LIMIT_S));
}

static void each_rank_fails_in_turn(void) {
  for (int bad = 0; bad < size; bad++) {
    gt_status local = rank == bad ? GT_FAIL(GT_ERR_DATA, "rank %d has no data", bad) : GT_OK;
    assert_int_equal(gt_agree(world, local, LIMIT_S), GT_ERR_DATA);
    char expected[64];
    snprintf(expected, sizeof expected, "rank %d has no data", bad);
    assert_string_equal(gt_error_text(), expected);
  }
}

/* The worst status is chosen; among equals, that of the lowest rank. */
static void all_fail(void) {
  gt_status local = rank == size - 1 ? GT_FAIL(GT_ERR_CKPT, "checkpoint of rank %d", rank)
                                     : GT_FAIL(GT_ERR_JOB, "job of rank %d", rank);
  assert_int_equal(gt_agree(world, local, LIMIT_S), GT_ERR_CKPT);
  char expected[64];
  snprintf(expected, sizeof expected, "checkpoint of rank %d", size - 1);
  assert_string_equal(gt_error_text(), expected);

  must_say(gt_agree(world, GT_FAIL(GT_ERR_LIMIT, "limit of rank %d", rank), LIMIT_S), GT_ERR_LIMIT,
           "limit of rank 0");
}

/* The text of a fault contains its place in the source once, on every rank. */
static void a_fault_keeps_its_place(void) {
  gt_status local = rank == size - 1 ? GT_FAIL(GT_ERR_FAULT, "broken") : GT_OK;
  assert_int_equal(gt_agree(world, local, LIMIT_S), GT_ERR_FAULT);
  const char *place = strstr(gt_error_text(), " (test_agree.c:");
  assert_non_null(place);
  assert_ptr_equal(place, strstr(gt_error_text(), " ("));
  assert_null(strstr(place + 1, " ("));
}

RANK_TESTS(all_well, each_rank_fails_in_turn, all_fail, a_fault_keeps_its_place)
