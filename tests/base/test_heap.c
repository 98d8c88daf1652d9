/* Heaps of events: the smallest time first, among equal times the smallest key. */
#include "geotrain/base_heap.h"
#include "tests.h"

static void test_order(void) {
  gt_heap heap = {0};
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  for (uint32_t i = 0; i < 1000; i++)
    gt_heap_push(&heap, (gt_heap_entry){.at = (gt_ns)gt_rng_below(&rng, 100), .key = i, .a = i});
  gt_heap_entry before = gt_heap_pop(&heap);
  for (uint32_t i = 1; i < 1000; i++) {
    const gt_heap_entry e = gt_heap_pop(&heap);
    assert_true(before.at < e.at || (before.at == e.at && before.key < e.key));
    assert_true(e.a == e.key);
    before = e;
  }
  assert_int_equal(heap.n, 0);
  gt_heap_close(&heap);
}

TESTS(test_order)
