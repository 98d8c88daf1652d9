/* One region at a time, its events by hand: packets and events that cannot be are refused with a
   sentence, and change nothing; what workers wait for; evaluations; nothing is allocated. */
#include "geotrain/pipe_region.h"
#include "tests.h"

#define FORWARD_MOST 20
#define FIRST_STEP   5

/* What the region has said last, and how often. */
typedef struct {
  gt_pipe_layout layout;
  gt_pipe_region *region;
  size_t passes, sent, landed, ended;
  gt_pipe_order order; /* pieces: one, below */
  gt_pipe_input piece;
  gt_pipe_packet packet;
} hand;

static void on_pass(void *ctx, size_t worker, const gt_pipe_order *order) {
  hand *h = ctx;
  (void)worker;
  h->passes++;
  h->order = *order;
  if (order->npieces > 0) h->piece = order->pieces[0];
}

static void on_send(void *ctx, size_t region, const gt_pipe_packet *packet) {
  hand *h = ctx;
  (void)region;
  h->sent++;
  h->packet = *packet;
}

static void on_land(void *ctx, const gt_pipe_packet *packet) {
  hand *h = ctx;
  h->landed++;
  h->packet = *packet;
}

static void on_ended(void *ctx, size_t worker) {
  hand *h = ctx;
  (void)worker;
  h->ended++;
}

/* Two stages, 3 micro-batches of 4 samples, 8 bytes each: stage 0 is worker 0 of region 0, stage 1
   workers 1 and 2 of region 1.  1F1B: F0 F1 X0 F2 X1 X2, and F0 X0 F1 X1 F2 X2. */
static gt_pipe_layout two_stages(void) {
  gt_pipe_layout l = {.nregions = 2,
                      .stages = 2,
                      .chunks = 1,
                      .micro_batches = 3,
                      .micro_samples = 4,
                      .places = GT_NEW_ARRAY(gt_pipe_place, 2),
                      .output_bytes = GT_NEW_ARRAY(size_t, 2),
                      .slots = GT_NEW_ARRAY(size_t, 2)};
  const gt_pipe_span spans[2] = {{.forward_s = 1, .activation = 1, .weight_share = 1},
                                 {.forward_s = 1, .activation = 1, .weight_share = 1}};
  const gt_pipe_hop hop = {0};
  const gt_pipe_problem problem = {
      .stages = 2, .chunks = 1, .micro_batches = 3, .spans = spans, .ahead = &hop, .back = &hop};
  must(gt_pipe_make(&l.schedule, GT_PIPE_1F1B, &problem, NULL));
  l.places[0] = (gt_pipe_place){0, 0, 1};
  l.places[1] = (gt_pipe_place){1, 1, 2};
  l.output_bytes[0] = l.output_bytes[1] = 8;
  for (size_t s = 0; s < 2; s++) {
    l.slots[s] = gt_pipe_slots(l.schedule, s);
    assert_true((double)l.slots[s] == gt_pipe_peak(l.schedule, &problem, s));
  }
  return l;
}

static void open_region(hand *h, size_t region) {
  const gt_pipe_region_spec spec = {.layout = &h->layout,
                                    .region = region,
                                    .first_step = FIRST_STEP,
                                    .forward_micro_batches = FORWARD_MOST,
                                    .host = {h, on_pass, on_send, on_land, on_ended}};
  must(gt_pipe_region_create(&h->region, &spec));
}

static void open_hand(hand *h, size_t region) {
  *h = (hand){.layout = two_stages()};
  open_region(h, region);
}

static void close_hand(hand *h) {
  gt_pipe_region_close(h->region);
  gt_pipe_layout_close(&h->layout);
  gt_pipe_layout_close(&h->layout);
}

static void done(hand *h, size_t worker) {
  must(gt_pipe_region_done(h->region, worker));
}

static void step(hand *h, size_t worker, int64_t number, size_t forward_micro_batches) {
  must(gt_pipe_region_step(h->region, worker, number, forward_micro_batches));
}

static void takes(hand *h, gt_pipe_packet packet) {
  must(gt_pipe_region_message(h->region, &packet));
}

/* The error's text; that of a fault without the place in the source, which follows it. */
static const char *error_text(void) {
  static char text[GT_ERROR_TEXT_MAX];
  snprintf(text, sizeof text, "%s", gt_error_text());
  char *place = strstr(text, " (region");
  if (place) *place = '\0';
  return text;
}

/* The error's last words; nothing has been said or done. */
static void refuses(hand *h, gt_pipe_packet packet, const char *why) {
  const hand before = *h;
  char end[256];
  assert_int_equal(gt_pipe_region_message(h->region, &packet), GT_ERR_FAULT);
  const char *text = error_text();
  snprintf(end, sizeof end, "of stage %zu: %s", packet.to_stage, why);
  if (strlen(text) < strlen(end) || strcmp(text + strlen(text) - strlen(end), end) != 0)
    fail_msg("\"%s\" does not end with \"%s\"", text, end);
  assert_memory_equal(h, &before, sizeof before);
}

static void says(gt_status status, gt_status code, const char *text) {
  assert_int_equal(status, code);
  assert_string_equal(error_text(), text);
}

static void waits(const hand *h, size_t worker, const char *text) {
  char found[200];
  assert_string_equal(gt_pipe_region_text(h->region, worker, found, sizeof found), text);
}

/* From stage 0 to a worker of stage 1, and back. */
static gt_pipe_packet activation(size_t worker, uint32_t micro, int64_t number) {
  return (gt_pipe_packet){.span = 1,
                          .micro = micro,
                          .step = number,
                          .to_stage = 1,
                          .to_worker = worker,
                          .first = 2 * (worker - 1),
                          .count = 2,
                          .bytes = 16};
}

static gt_pipe_packet gradient(size_t worker, uint32_t micro, int64_t number) {
  return (gt_pipe_packet){.gradient = true,
                          .micro = micro,
                          .step = number,
                          .from_stage = 1,
                          .from_worker = worker,
                          .first = 2 * (worker - 1),
                          .count = 2,
                          .bytes = 16};
}

static gt_pipe_packet was_read(size_t worker, uint32_t micro, int64_t number) {
  gt_pipe_packet p = gradient(worker, micro, number);
  p.forward_only = true;
  p.bytes = 0;
  return p;
}

/* ---- packets --------------------------------------------------------------------------------- */

static void packets_from_and_to_the_wrong_place(void) {
  hand h;
  open_hand(&h, 1);
  gt_pipe_packet p = activation(1, 0, 5);
  p.span = 2;
  says(gt_pipe_region_message(h.region, &p), GT_ERR_FAULT,
       "region 1 got the activation of micro-batch 0, step 5, for span 2, from worker 0 of stage 0 "
       "to worker 1 of stage 1: the number of spans is 2");
  p.span = 0;
  refuses(&h, p, "the first span gets none");
  p = activation(1, 0, 5);
  p.gradient = true;
  refuses(&h, p, "the last span gets none");
  p = activation(1, 0, 5);
  p.to_stage = 0;
  refuses(&h, p, "the span is of stage 1");
  p = activation(1, 0, 5);
  p.from_stage = 1;
  refuses(&h, p, "stage 0 sends it");
  refuses(&h, gradient(1, 0, 5), "stage 0 is in region 0");
  p = activation(1, 0, 5);
  p.to_worker = 3;
  refuses(&h, p, "stage 1 has workers 1 to 2");
  p.to_worker = 0;
  refuses(&h, p, "stage 1 has workers 1 to 2");
  p = activation(1, 0, 5);
  p.from_worker = SIZE_MAX;
  refuses(&h, p, "stage 0 has workers 0 to 0");
  close_hand(&h);
}

static void packets_of_the_wrong_size(void) {
  hand h;
  open_hand(&h, 1);
  gt_pipe_packet p = activation(2, 0, 5);
  p.first = 0;
  refuses(&h, p, "it has 2 samples from 0 on; expected 2 from 2 on");
  p = activation(1, 0, 5);
  p.count = 4;
  refuses(&h, p, "it has 4 samples from 0 on; expected 2 from 0 on");
  p = activation(1, 0, 5);
  p.bytes = 17;
  refuses(&h, p, "it has 17 bytes; expected 16");
  close_hand(&h);
  /* two workers each: the first of one has nothing for the second of the other */
  h = (hand){.layout = two_stages()};
  h.layout.places[0].workers = 2;
  open_region(&h, 1);
  p = activation(1, 0, 5);
  p.from_worker = 1;
  refuses(&h, p, "the two have no samples in common");
  close_hand(&h);
  h = (hand){.layout = two_stages()};
  h.layout.places[1].region = 0;
  open_region(&h, 0);
  refuses(&h, activation(1, 0, 5), "both stages are in this region");
  close_hand(&h);
}

static void activations_at_the_wrong_time(void) {
  hand h;
  open_hand(&h, 1);
  refuses(&h, activation(1, 0, 4), "the worker has ended that step");
  refuses(&h, activation(1, 0, INT64_MIN), "the worker has ended that step");
  refuses(&h, activation(1, 0, 6), "it is too early: the worker's next step is 5");
  refuses(&h, activation(1, 3, 5), "the number of micro-batches is 3");
  gt_pipe_packet p = activation(1, FORWARD_MOST, 5);
  p.forward_only = true;
  refuses(&h, p, "the number of micro-batches is 20");
  /* before its step */
  takes(&h, activation(1, 1, 5));
  assert_int_equal(h.packet.buffer, 0);
  refuses(&h, activation(1, 1, 5), "it is a duplicate");
  step(&h, 1, 5, 0);
  assert_int_equal(h.passes, 0);
  takes(&h, activation(1, 0, 5));
  assert_int_equal(h.packet.buffer, 1);
  assert_int_equal(h.passes, 1);
  assert_true(h.order.kind == GT_PASS_F && h.order.micro == 0 && h.order.out == GT_PIPE_NONE);
  assert_true(h.piece.landed && h.piece.buffer == 1 && h.piece.count == 2);
  refuses(&h, activation(1, 2, 5), "all of its 2 landing buffers are in use");
  refuses(&h, activation(1, 0, 5), "it is a duplicate");
  done(&h, 1);
  refuses(&h, activation(1, 0, 5), "it is a duplicate");
  p = activation(1, 2, 5);
  p.forward_only = true;
  refuses(&h, p, "the step is no evaluation");
  refuses(&h, activation(1, 0, 6), "it is too early: the worker has not run F of all of step 5");
  refuses(&h, activation(1, 0, 7), "it is too early: the worker's next step is 6");
  takes(&h, activation(1, 2, 5));
  for (size_t i = 0; i < 4; i++) done(&h, 1); /* F2 is the last of them */
  waits(&h, 1,
        "worker 1 of stage 1 waits for a free buffer for the output of BW of span 1, micro-batch "
        "2");
  must(gt_pipe_region_departed(h.region, 1, 0));
  assert_true(h.order.kind == GT_PASS_BW && h.order.micro == 2 && h.order.last);
  takes(&h, activation(1, 0, 6));
  refuses(&h, activation(1, 0, 6), "it is a duplicate");
  done(&h, 1);
  assert_int_equal(h.ended, 1);
  refuses(&h, activation(1, 0, 5), "the worker has ended that step");
  close_hand(&h);
}

static void gradients_at_the_wrong_time(void) {
  hand h;
  open_hand(&h, 0);
  refuses(&h, gradient(1, 0, 5), "it is too early: the worker has not begun that step");
  step(&h, 0, 5, 0);
  refuses(&h, gradient(1, 0, 5), "the worker has not run F of it");
  done(&h, 0);
  assert_int_equal(h.sent, 2);
  refuses(&h, gradient(1, 1, 5), "the worker has not run F of it");
  refuses(&h, gradient(1, 2, 5), "the worker has not run F of it");
  takes(&h, gradient(2, 0, 5));
  assert_true(h.packet.buffer == 0 && h.packet.at == 2);
  refuses(&h, gradient(2, 0, 5), "it is a duplicate");
  takes(&h, gradient(1, 0, 5));
  refuses(&h, gradient(1, 0, 6), "it is too early: the worker has not begun that step");
  done(&h, 0);
  assert_true(h.order.kind == GT_PASS_BW && h.order.micro == 0 && h.order.first);
  must(gt_pipe_region_departed(h.region, 0, 0));
  must(gt_pipe_region_departed(h.region, 0, 0));
  done(&h, 0);
  refuses(&h, gradient(1, 0, 5), "it is a duplicate");
  close_hand(&h);
}

/* ---- other events ---------------------------------------------------------------------------- */

static void events_that_cannot_be(void) {
  hand h;
  open_hand(&h, 1);
  says(gt_pipe_region_step(h.region, 0, 5, 0), GT_ERR_FAULT,
       "worker 0 of region 1 has no stage of the pipeline");
  says(gt_pipe_region_step(h.region, 3, 5, 0), GT_ERR_FAULT,
       "worker 3 of region 1 has no stage of the pipeline");
  says(gt_pipe_region_step(h.region, 1, 6, 0), GT_ERR_FAULT,
       "worker 1 of region 1 cannot begin step 6: it has ended 4");
  says(gt_pipe_region_step(h.region, 1, 5, 21), GT_ERR_FAULT,
       "step 5 is an evaluation of 21 micro-batches; expected at most 20");
  says(gt_pipe_region_done(h.region, 1), GT_ERR_FAULT,
       "worker 1 of region 1 has ended a pass, but runs none");
  says(gt_pipe_region_departed(h.region, 1, 0), GT_ERR_FAULT,
       "a packet has left from buffer 0 of worker 1 of region 1, where none waits");
  says(gt_pipe_region_departed(h.region, 1, 99), GT_ERR_FAULT,
       "a packet has left from buffer 99 of worker 1 of region 1, where none waits");
  gt_pipe_packet p = activation(1, 7, 5);
  p.forward_only = true;
  takes(&h, p);
  says(gt_pipe_region_step(h.region, 1, 5, 0), GT_ERR_FAULT,
       "step 5 is a training step for worker 1 of region 1; stage 0 has it as an evaluation");
  says(gt_pipe_region_step(h.region, 1, 5, 7), GT_ERR_FAULT,
       "step 5 is an evaluation of 7 micro-batches for worker 1 of region 1; stage 0 has sent "
       "micro-batch 7");
  step(&h, 1, 5, 8);
  says(gt_pipe_region_step(h.region, 1, 6, 8), GT_ERR_FAULT,
       "worker 1 of region 1 cannot begin step 6: it has not ended 5");
  close_hand(&h);
}

static void what_workers_wait_for(void) {
  hand h;
  open_hand(&h, 0);
  waits(&h, 1, "worker 1 has no stage");
  waits(&h, 0, "stage 0 waits for step 5 to begin");
  step(&h, 0, 5, 0);
  waits(&h, 0, "stage 0 runs F of span 0, micro-batch 0");
  done(&h, 0);
  done(&h, 0);
  waits(&h, 0, "stage 0 waits for the gradient of micro-batch 0 from stage 1");
  /* gradients that come back before it is said that their outputs have left */
  for (size_t r = 1; r <= 2; r++) takes(&h, gradient(r, 0, 5));
  done(&h, 0);
  waits(&h, 0, "stage 0 waits for a free buffer for the output of F of span 0, micro-batch 2");
  assert_int_equal(gt_pipe_region_stalls(h.region), 1);
  for (size_t i = 0; i < 2; i++) must(gt_pipe_region_departed(h.region, 0, 1));
  waits(&h, 0, "stage 0 runs F of span 0, micro-batch 2");
  assert_int_equal(h.order.out, 1);
  assert_int_equal(h.order.slot, 0);
  close_hand(&h);
  open_hand(&h, 1);
  step(&h, 2, 5, 0);
  waits(&h, 2, "worker 2 of stage 1 waits for the activation of micro-batch 0 from stage 0");
  close_hand(&h);
}

/* ---- evaluations ----------------------------------------------------------------------------- */

/* The sender keeps an output until both workers have read it. */
static void outputs_are_kept_until_read(void) {
  hand h;
  open_hand(&h, 0);
  const int64_t allocations = gt_alloc_total();
  step(&h, 0, 5, 3);
  refuses(&h, was_read(1, 0, 5), "the worker has not run F of it");
  done(&h, 0);
  refuses(&h, was_read(1, 1, 5), "the worker has not run F of it");
  done(&h, 0);
  assert_int_equal(h.sent, 4);
  assert_true(h.packet.forward_only && !h.packet.gradient && h.packet.buffer == 1);
  for (size_t i = 0; i < 4; i++) must(gt_pipe_region_departed(h.region, 0, i / 2));
  waits(&h, 0, "stage 0 waits for a free buffer for the output of F of span 0, micro-batch 2");
  gt_pipe_packet p = was_read(1, 0, 5);
  p.bytes = 16;
  refuses(&h, p, "it has 16 bytes; expected 0");
  refuses(&h, gradient(1, 0, 5), "the step is an evaluation");
  takes(&h, was_read(1, 0, 5));
  refuses(&h, was_read(1, 0, 5), "it is a duplicate");
  assert_int_equal(h.passes, 2);
  takes(&h, was_read(2, 0, 5));
  assert_int_equal(h.passes, 3);
  assert_true(h.order.last && h.order.micro == 2 && h.order.out == 0 && h.order.slot == 0);
  refuses(&h, was_read(2, 0, 5), "it is a duplicate");
  done(&h, 0);
  waits(&h, 0, "stage 0 waits until its outputs have been read");
  for (size_t i = 0; i < 2; i++) must(gt_pipe_region_departed(h.region, 0, 0));
  for (size_t r = 1; r <= 2; r++) takes(&h, was_read(r, 2, 5));
  takes(&h, was_read(1, 1, 5));
  assert_int_equal(h.ended, 0);
  takes(&h, was_read(2, 1, 5));
  assert_int_equal(h.ended, 1);
  assert_int_equal(h.landed, 0);
  assert_int_equal(gt_alloc_total(), allocations);
  close_hand(&h);
}

/* The reader runs micro-batches in order, and says what it has read. */
static void readers_say_so(void) {
  hand h;
  open_hand(&h, 1);
  const int64_t allocations = gt_alloc_total();
  step(&h, 1, 5, 2);
  gt_pipe_packet p = activation(1, 1, 5);
  p.forward_only = true;
  takes(&h, p);
  waits(&h, 1, "worker 1 of stage 1 waits for the activation of micro-batch 0 from stage 0");
  p.micro = 0;
  takes(&h, p);
  assert_int_equal(h.order.micro, 0);
  refuses(&h, p, "it is a duplicate");
  done(&h, 1);
  assert_true(h.sent == 1 && h.packet.gradient && h.packet.forward_only && h.packet.bytes == 0);
  assert_true(h.packet.span == 0 && h.packet.micro == 0 && h.packet.buffer == GT_PIPE_NONE);
  assert_true(h.packet.from_worker == 1 && h.packet.to_worker == 0 && h.packet.count == 2);
  refuses(&h, p, "it is a duplicate");
  p.micro = 2;
  refuses(&h, p, "the number of micro-batches is 2");
  done(&h, 1);
  assert_int_equal(h.ended, 1);
  assert_int_equal(gt_alloc_total(), allocations);
  close_hand(&h);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static void buffers_by_hand(void) {
  gt_pipe_layout l = two_stages();
  gt_pipe_buffers b = gt_pipe_out_buffers(&l, 0, 0, false);
  assert_true(b.first == 0 && b.count == 2 && b.bytes == 32);
  b = gt_pipe_out_buffers(&l, 0, 0, true);
  assert_int_equal(b.count, 0);
  b = gt_pipe_out_buffers(&l, 1, 0, true);
  assert_true(b.first == 0 && b.count == 2 && b.bytes == 16);
  b = gt_pipe_landing_buffers(&l, 1, 0, false);
  assert_true(b.first == 0 && b.count == 2 && b.bytes == 16);
  b = gt_pipe_landing_all(&l, 0);
  assert_true(b.count == 2 && b.bytes == 64);
  b = gt_pipe_out_all(&l, 1);
  assert_true(b.count == 2 && b.bytes == 32);
  assert_int_equal(gt_pipe_slots(l.schedule, 0), 2);
  assert_int_equal(gt_pipe_slots(l.schedule, 1), 1);
  l.places[1].region = 0;
  assert_int_equal(gt_pipe_landing_all(&l, 0).count, 0);
  assert_int_equal(gt_pipe_out_all(&l, 1).count, 2);
  gt_pipe_layout_close(&l);
}

static void layouts_that_are_refused(void) {
  gt_pipe_layout l = two_stages();
  must(gt_pipe_layout_check(&l));
  l.places[1].region = 2;
  says(gt_pipe_layout_check(&l), GT_ERR_JOB, "stage 1 is in region 2; expected a number below 2");
  l.places[1] = (gt_pipe_place){1, 0, 3};
  says(gt_pipe_layout_check(&l), GT_ERR_JOB,
       "stage 1 has 3 workers for 4 samples of a micro-batch; expected a number that divides them");
  l.places[1] = (gt_pipe_place){0, 0, 2};
  says(gt_pipe_layout_check(&l), GT_ERR_JOB, "stages 0 and 1 share a worker of region 0");
  l.places[1] = (gt_pipe_place){0, 1, 2};
  l.slots[0] = 1;
  says(gt_pipe_layout_check(&l), GT_ERR_JOB, "stage 0 has 1 slots; its schedule needs 2");
  l.slots[0] = 2;
  l.micro_batches = 4;
  says(gt_pipe_layout_check(&l), GT_ERR_JOB,
       "the schedule is for 2 stages of 1 chunks and 3 micro-batches; the layout has 2 of 1 and 4");
  l.micro_batches = 3;
  l.micro_samples = 0;
  says(gt_pipe_layout_check(&l), GT_ERR_JOB, "a micro-batch has no samples");
  l.micro_samples = 4;
  l.schedule->lists[1].n--;
  says(gt_pipe_layout_check(&l), GT_ERR_JOB, "stage 1 has no B of span 1, micro-batch 2");
  gt_pipe_region *region;
  gt_pipe_region_spec spec = {.layout = &l, .region = 2};
  assert_int_equal(gt_pipe_region_create(&region, &spec), GT_ERR_JOB);
  assert_null(region);
  l.schedule->lists[1].n++;
  says(gt_pipe_region_create(&region, &spec), GT_ERR_FAULT,
       "region 2 is to begin with step 0; there are 2 regions, and steps are numbered from 0");
  assert_null(region);
  gt_pipe_region_close(region);
  gt_pipe_layout_close(&l);
}

/* ---- another order --------------------------------------------------------------------------- */

static gt_pipe_schedule *all_forward_first(size_t micro_batches) {
  gt_pipe_schedule *s = gt_pipe_schedule_create(2, 1, micro_batches);
  for (uint32_t span = 0; span < 2; span++) {
    for (size_t m = 0; m < micro_batches; m++) gt_pipe_add(s, GT_PASS_F, span, m);
    for (size_t m = 0; m < micro_batches; m++) gt_pipe_add(s, GT_PASS_BW, span, m);
  }
  return s;
}

/* Between steps, if the layout allows it and it fits: 1F1B has two slots in stage 0, and there F2
   comes after BW0; with three slots all F come first. */
static void an_order_is_replaced_between_steps(void) {
  hand h = {.layout = two_stages()};
  gt_pipe_schedule *other = all_forward_first(3), *shorter = all_forward_first(2);
  open_region(&h, 0);
  says(gt_pipe_region_reorder(h.region, other), GT_ERR_FAULT,
       "the pipeline cannot change to a schedule of another shape");
  gt_pipe_region_close(h.region);
  h.layout.adapts = true;
  open_region(&h, 0);
  says(gt_pipe_region_reorder(h.region, shorter), GT_ERR_FAULT,
       "the pipeline cannot change to a schedule of another shape");
  says(gt_pipe_region_reorder(h.region, other), GT_ERR_FAULT,
       "stage 0 has 2 slots; the new schedule needs 3");
  gt_pipe_region_close(h.region);
  for (size_t s = 0; s < 2; s++) h.layout.slots[s] = 3;
  open_region(&h, 0);
  must(gt_pipe_region_reorder(h.region, other));
  step(&h, 0, FIRST_STEP, 0);
  for (size_t m = 0; m < 3; m++) {
    assert_true(h.order.kind == GT_PASS_F && h.order.micro == m && h.order.slot == m);
    done(&h, 0);
  }
  says(gt_pipe_region_reorder(h.region, h.layout.schedule), GT_ERR_FAULT,
       "the schedule cannot change while worker 0 of region 0 is in step 5");
  assert_int_equal(h.passes, 3);
  waits(&h, 0, "stage 0 waits for the gradient of micro-batch 0 from stage 1");
  gt_pipe_schedule_close(other);
  gt_pipe_schedule_close(shorter);
  close_hand(&h);
}

/* Another state machine has made steps 5 to 8; what comes of step 9 before it begins stays. */
static void steps_of_others_are_skipped(void) {
  hand h;
  open_hand(&h, 1);
  step(&h, 1, FIRST_STEP, 0);
  says(gt_pipe_region_skip(h.region, 9), GT_ERR_FAULT,
       "worker 1 of region 1 cannot continue with step 9: it has not ended 5");
  close_hand(&h);
  open_hand(&h, 1);
  must(gt_pipe_region_skip(h.region, 9));
  assert_false(gt_pipe_region_early(h.region));
  refuses(&h, activation(1, 0, 8), "the worker has ended that step");
  takes(&h, activation(1, 0, 9));
  assert_true(gt_pipe_region_early(h.region) && h.passes == 0);
  must(gt_pipe_region_skip(h.region, 9));
  says(gt_pipe_region_skip(h.region, 8), GT_ERR_FAULT,
       "worker 1 of region 1 cannot continue with step 8: it has ended 8");
  step(&h, 1, 9, 0);
  assert_false(gt_pipe_region_early(h.region));
  assert_true(h.passes == 1 && h.order.kind == GT_PASS_F && h.order.step == 9);
  close_hand(&h);
}

static void numbers_have_a_stride(void) {
  hand h = {.layout = two_stages()};
  gt_pipe_region_spec spec = {.layout = &h.layout, .forward_micro_batches = FORWARD_MOST};
  int64_t number;
  uint32_t micro;
  for (int wide = 0; wide < 2; wide++) {
    spec.stride = wide ? 100 : 7;
    must(gt_pipe_region_create(&h.region, &spec));
    const uint64_t found = gt_pipe_region_number(h.region, 6, 2);
    assert_int_equal(found, wide ? 602 : 6 * FORWARD_MOST + 2);
    gt_pipe_region_of_number(h.region, found, &number, &micro);
    assert_true(number == 6 && micro == 2);
    gt_pipe_region_close(h.region);
  }
  gt_pipe_layout_close(&h.layout);
}

TESTS(packets_from_and_to_the_wrong_place, packets_of_the_wrong_size, activations_at_the_wrong_time,
      gradients_at_the_wrong_time, events_that_cannot_be, what_workers_wait_for,
      outputs_are_kept_until_read, readers_say_so, buffers_by_hand, layouts_that_are_refused,
      an_order_is_replaced_between_steps, steps_of_others_are_skipped, numbers_have_a_stride)
