/* Departures to a peer: the choice between control and data, the slots, the link. */
#include "internal.h"
#include "tests.h"

#define WINDOW   ((size_t)8)
#define RESERVED ((size_t)4) /* slots for control only */
#define MS       ((gt_ns)1000000)

static gt_slot slots[WINDOW];

static gt_sender idle_sender(void) {
  return (gt_sender){.slots = slots, .window = WINDOW};
}

static void close_sender(gt_sender *s) {
  gt_queue_close(&s->control);
  gt_queue_close(&s->bulk);
}

static void queue_control(gt_sender *s, gt_ns at) {
  *gt_queue_push(&s->control) = (gt_out_message){.queued = at};
}

static void queue_data(gt_sender *s, gt_ns at) {
  *gt_queue_push(&s->bulk) = (gt_out_message){.queued = at};
}

static void control_comes_first(void) {
  gt_sender s = idle_sender();
  assert_null(gt_sender_next_queue(&s, false, 5 * MS));
  assert_int_equal(gt_sender_due(&s, false), GT_NEVER);
  queue_data(&s, 1 * MS);
  assert_ptr_equal(gt_sender_next_queue(&s, false, 5 * MS), &s.bulk);
  queue_control(&s, 2 * MS);
  assert_ptr_equal(gt_sender_next_queue(&s, false, 5 * MS), &s.control);
  assert_int_equal(gt_sender_due(&s, false), 0);
  close_sender(&s);
}

/* The choice is as of the moment at which the link became free, however late the poll. */
static void a_modelled_link_takes_what_was_there(void) {
  gt_sender s = idle_sender();
  s.wire.link.busy_until = 10 * MS;
  queue_data(&s, 3 * MS);
  assert_null(gt_sender_next_queue(&s, true, 9 * MS));
  assert_int_equal(gt_sender_due(&s, true), 10 * MS);
  queue_control(&s, 12 * MS); /* the data should have begun to leave at 10 */
  assert_ptr_equal(gt_sender_next_queue(&s, true, 20 * MS), &s.bulk);
  assert_ptr_equal(gt_sender_next_queue(&s, false, 20 * MS), &s.control);
  s.wire.link.busy_until = 12 * MS;
  assert_ptr_equal(gt_sender_next_queue(&s, true, 20 * MS), &s.control);
  close_sender(&s);
}

static void data_leaves_slots_to_control(void) {
  gt_sender s = idle_sender();
  queue_data(&s, 0);
  queue_control(&s, 0);
  s.filled = s.launched = 7 + WINDOW - RESERVED - 1;
  s.told = s.freed = 7;
  assert_true(gt_sender_has_room(&s));
  s.filled++;
  assert_false(gt_sender_has_room(&s));
  assert_ptr_equal(gt_sender_next_queue(&s, false, 0), &s.control);
  gt_queue_pop(&s.control);
  assert_null(gt_sender_next_queue(&s, false, 0));
  assert_int_equal(gt_sender_due(&s, false), GT_NEVER);
  queue_control(&s, 0);
  s.filled = 7 + WINDOW;
  assert_null(gt_sender_next_queue(&s, false, 0));
  close_sender(&s);
}

/* A modelled link needs a poll when a frame leaves, and when it arrives. */
static void frames_are_due(void) {
  gt_sender s = idle_sender();
  s.wire.link.busy_until = 30 * MS;
  s.filled = 2;
  slots[0] = (gt_slot){.depart = 20 * MS, .arrive = 25 * MS};
  slots[1] = (gt_slot){.depart = 30 * MS, .arrive = 35 * MS};
  assert_int_equal(gt_sender_due(&s, true), 20 * MS);
  s.told = 1;
  assert_int_equal(gt_sender_due(&s, true), 25 * MS);
  s.launched = 1;
  assert_int_equal(gt_sender_due(&s, true), 30 * MS);
  s.told = 2;
  assert_int_equal(gt_sender_due(&s, true), 35 * MS);
  s.launched = 2;
  assert_int_equal(gt_sender_due(&s, true), GT_NEVER);
  assert_int_equal(gt_sender_due(&s, false), GT_NEVER);
}

TESTS(control_comes_first, a_modelled_link_takes_what_was_there, data_leaves_slots_to_control,
      frames_are_due)
