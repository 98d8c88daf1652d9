/* The inbox: first in, first out per peer, memory reused, saved and loaded. */
#include "inbox.h"
#include "tests.h"

static void push(gt_inbox *inbox, size_t peer, uint64_t value) {
  float data[2] = {(float)value, (float)peer};
  gt_inbox_push(inbox, peer, (int64_t)value, 0, gt_vec_of(data, 2));
}

static void assert_front(const gt_inbox *inbox, size_t peer, int64_t value) {
  const gt_inbox_slot *slot = gt_inbox_front(inbox, peer);
  assert_non_null(slot);
  assert_int_equal(slot->value, value);
  assert_true(slot->vec.data[0] == (float)value && slot->vec.data[1] == (float)peer);
}

static void test_order_and_reuse(void) {
  gt_inbox inbox;
  gt_inbox_open(&inbox, 3, 2, 2, true, false);
  assert_true(gt_inbox_empty(&inbox));
  assert_null(gt_inbox_front(&inbox, 1));
  push(&inbox, 0, 1);
  push(&inbox, 2, 1);
  push(&inbox, 2, 2);
  int64_t total = gt_alloc_total();
  for (uint64_t value = 3; value < 50; value++) {
    assert_front(&inbox, 2, (int64_t)value - 2);
    gt_inbox_pop(&inbox, 2);
    push(&inbox, 2, value);
  }
  assert_int_equal(gt_alloc_total(), total); /* no further allocation */
  assert_front(&inbox, 0, 1);
  gt_inbox_pop(&inbox, 0);
  push(&inbox, 1, 7); /* memory of one peer serves another */
  assert_int_equal(gt_alloc_total(), total);
  assert_front(&inbox, 1, 7);
  assert_false(gt_inbox_empty(&inbox));
  gt_inbox_close(&inbox);
}

static void test_grows_and_keeps_the_order(void) {
  gt_inbox inbox;
  gt_inbox_open(&inbox, 2, 2, 2, true, false);
  int64_t next = 1;
  for (uint64_t value = 1; value <= 90; value++) {
    push(&inbox, 1, value);
    if (value % 3)
      continue; /* two of three stay, so that growth occurs at every position of the
                                head */
    assert_front(&inbox, 1, next++);
    gt_inbox_pop(&inbox, 1);
  }
  for (; next <= 90; next++) {
    assert_front(&inbox, 1, next);
    gt_inbox_pop(&inbox, 1);
  }
  gt_inbox_close(&inbox);
}

static void test_save_and_load(void) {
  gt_inbox a, b;
  gt_inbox_open(&a, 2, 3, 2, true, false);
  gt_inbox_open(&b, 2, 1, 2, true, false); /* grows while it loads */
  for (uint64_t value = 1; value <= 3; value++) push(&a, 1, value);
  gt_inbox_pop(&a, 1);
  push(&a, 1, 4); /* wraps around */
  push(&b, 0, 9); /* the old contents are discarded */
  gt_state saved = {0};
  must(gt_inbox_state(&a, "sync/", (gt_state_direction){.to = &saved}));
  must(gt_inbox_state(&b, "sync/", (gt_state_direction){.from = &saved}));
  assert_null(gt_inbox_front(&b, 0));
  for (int64_t value = 2; value <= 4; value++) {
    assert_front(&b, 1, value);
    gt_inbox_pop(&b, 1);
  }
  assert_true(gt_inbox_empty(&b));
  a.queues[1].count = -1; /* `saved` borrows it */
  assert_int_equal(gt_inbox_state(&b, "sync/", (gt_state_direction){.from = &saved}), GT_ERR_CKPT);
  a.queues[1].count = 3;
  gt_state_close(&saved);
  gt_inbox_close(&a);
  gt_inbox_close(&b);
}

static void test_without_memory(void) {
  gt_inbox inbox;
  gt_inbox_open(&inbox, 2, 2, 1000, false, false);
  gt_inbox_push(&inbox, 1, 5, 0, gt_vec_of(NULL, 1000));
  assert_int_equal(gt_inbox_front(&inbox, 1)->value, 5);
  assert_null(gt_inbox_front(&inbox, 1)->vec.data);
  gt_inbox_close(&inbox);
}

TESTS(test_order_and_reuse, test_grows_and_keeps_the_order, test_save_and_load, test_without_memory)
