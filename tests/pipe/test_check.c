/* Problems and schedules that are refused, each with its sentence. */
#include "world.h"
#include "tests.h"

static void says(gt_status status, const char *text) {
  assert_int_equal(status, GT_ERR_JOB);
  must_contain(gt_error_text(), text);
}

/* Two stages, two micro-batches. */
static void small(world *w) {
  w_alike(w, 2, 1, 2, 1, 1, 1, 0);
}

/* Passes as text, "F0 F1 X0 X1" (X: BW), of one stage. */
static void add_all(gt_pipe_schedule *s, size_t span, const char *text) {
  for (; *text; text += text[2] ? 3 : 2) {
    gt_pass_kind kind = *text == 'F'   ? GT_PASS_F
                        : *text == 'B' ? GT_PASS_B
                        : *text == 'W' ? GT_PASS_W
                                       : GT_PASS_BW;
    gt_pipe_add(s, kind, span, (size_t)(text[1] - '0'));
  }
}

static gt_status check_lists(const world *w, const char *first, const char *second) {
  gt_pipe_schedule *s = gt_pipe_schedule_create(2, 1, 2);
  add_all(s, 0, first);
  add_all(s, 1, second);
  gt_status status = gt_pipe_check(s, &w->problem);
  gt_pipe_schedule_close(s);
  return status;
}

static void sound_schedules_pass(void) {
  world w;
  small(&w);
  must(check_lists(&w, "F0 F1 X0 X1", "F0 F1 X0 X1"));
  must(check_lists(&w, "F0 F1 B1 B0 W0 W1", "F0 F1 X1 X0"));
  must(check_lists(&w, "F1 F0 X0 B1 W1", "F1 B1 F0 B0 W0 W1"));
}

static void every_pass_once(void) {
  world w;
  small(&w);
  says(check_lists(&w, "F0 F1 X0", "F0 F1 X0 X1"), "stage 0 has no B of span 0, micro-batch 1");
  says(check_lists(&w, "F0 F1 X0 B1", "F0 F1 X0 X1"), "stage 0 has no W of span 0, micro-batch 1");
  says(check_lists(&w, "F0 X0", "F0 F1 X0 X1"), "stage 0 has no F of span 0, micro-batch 1");
  says(check_lists(&w, "F0 F1 F1 X0 X1", "F0 F1 X0 X1"),
       "stage 0 has F of span 0, micro-batch 1, twice");
  says(check_lists(&w, "F0 F1 X0 X1 W1", "F0 F1 X0 X1"), "W of span 0, micro-batch 1, twice");
  says(check_lists(&w, "F0 F1 X0 X1", "F0 F1 X0 X1 F2"),
       "stage 1 has a pass F of span 1, micro-batch 2, which is not its");
}

static void order_within_a_stage(void) {
  world w;
  small(&w);
  says(check_lists(&w, "F0 X1 F1 X0", "F0 F1 X0 X1"),
       "stage 0 has BW of span 0, micro-batch 1, before the pass that it needs");
  says(check_lists(&w, "F0 F1 X0 X1", "F0 W0 B0 F1 X1"),
       "stage 1 has W of span 1, micro-batch 0, before the pass that it needs");
}

static void deadlocks(void) {
  world w;
  small(&w);
  says(check_lists(&w, "F0 X0 F1 X1", "F0 F1 X0 X1"),
       "the schedule deadlocks: stage 0 cannot begin BW of span 0, micro-batch 0, before stage 1 "
       "has run B of span 1, and stage 1 has F of span 1, micro-batch 1, first");
  says(check_lists(&w, "F0 X0 F1 X1", "F1 X1 F0 X0"), "the schedule deadlocks");
  gt_pipe_schedule *s = gt_pipe_schedule_create(1, 2, 1);
  world folded;
  w_alike(&folded, 1, 2, 1, 1, 1, 1, 0);
  for (size_t k = 2; k-- > 0;) gt_pipe_add(s, GT_PASS_F, k, 0);
  for (size_t k = 2; k-- > 0;) gt_pipe_add(s, GT_PASS_BW, k, 0);
  says(gt_pipe_check(s, &folded.problem),
       "stage 0 cannot begin F of span 1, micro-batch 0, before stage 0 has run F of span 0");
  gt_pipe_schedule_close(s);
}

static void memory_is_held(void) {
  world w;
  small(&w);
  w_limit(&w, 2);
  must(check_lists(&w, "F0 F1 X0 X1", "F0 B0 F1 W0 X1"));
  w_limit(&w, 1.5);
  assert_int_equal(check_lists(&w, "F0 F1 X0 X1", "F0 F1 X0 X1"), GT_ERR_JOB);
  says(GT_ERR_JOB, "stage 0 holds 2 of activations at its peak; expected at most 1.5");
  gt_pipe_schedule *s;
  says(gt_pipe_make(&s, GT_PIPE_GPIPE, &w.problem, NULL), "stage 0 holds 2");
  assert_null(s);
  gt_pipe_schedule *one = w_make(&w, GT_PIPE_AUTO, NULL);
  assert_true(gt_pipe_peak(one, &w.problem, 0) <= 1.5);
  gt_pipe_schedule_close(one);
}

/* The peak is counted from the start of one pass to the end of another. */
static void peaks_by_hand(void) {
  world w;
  small(&w);
  gt_pipe_schedule *s = gt_pipe_schedule_create(2, 1, 2);
  add_all(s, 0, "F0 B0 F1 B1 W0 W1");
  add_all(s, 1, "F0 B0 W0 F1 X1");
  assert_true(gt_pipe_peak(s, &w.problem, 0) == 1.5);
  assert_true(gt_pipe_peak(s, &w.problem, 1) == 1);
  gt_pipe_schedule_close(s);
}

static void numbers_that_are_refused(void) {
  world w;
  gt_pipe_schedule *s;
  small(&w);
  w.spans[1].backward_s = -1;
  says(gt_pipe_make(&s, GT_PIPE_1F1B, &w.problem, NULL), "backward_s of span 1 is -1");
  small(&w);
  w.spans[0].weight_share = 1.5;
  says(gt_pipe_make(&s, GT_PIPE_1F1B, &w.problem, NULL),
       "weight_share of span 0 is 1.5; expected 0 to 1");
  small(&w);
  w.back[0].delay_s = NAN;
  says(gt_pipe_make(&s, GT_PIPE_1F1B, &w.problem, NULL), "delay_s of the hop back to stage 0 is");
  small(&w);
  w_limit(&w, 0.5);
  says(gt_pipe_make(&s, GT_PIPE_AUTO, &w.problem, NULL),
       "stage 0 has memory for 0.5 of activations; one micro-batch needs 1");
  small(&w);
  w.problem.micro_batches = 0;
  says(gt_pipe_make(&s, GT_PIPE_AUTO, &w.problem, NULL),
       "2 stages, 1 chunks per stage and 0 micro-");
  small(&w);
  const double agree_s[] = {0, 1, -2, 0};
  w.problem.agree_s = agree_s;
  says(gt_pipe_make(&s, GT_PIPE_AUTO, &w.problem, NULL), "agree_s is given without regions");
  size_t regions[] = {0, 1};
  const gt_pipe_wan wan = {.nregions = 2, .region = regions};
  w.problem.wan = &wan;
  says(gt_pipe_make(&s, GT_PIPE_AUTO, &w.problem, NULL), "agree_s is -2");
  small(&w);
  regions[1] = 3;
  w.problem.wan = &wan;
  says(gt_pipe_make(&s, GT_PIPE_AUTO, &w.problem, NULL),
       "stage 1 is in region 3; expected a number below 2");
}

static void shapes_that_do_not_fit(void) {
  world w, folded;
  gt_pipe_schedule *s;
  gt_pipe_result r;
  small(&w);
  w_alike(&folded, 2, 2, 2, 1, 1, 1, 0);
  says(gt_pipe_make(&s, GT_PIPE_ZB_V, &w.problem, NULL),
       "schedule zb-v is for 2 spans per stage; this pipeline has 1");
  says(gt_pipe_make(&s, GT_PIPE_GPIPE, &folded.problem, NULL),
       "schedule gpipe is for 1 spans per stage; this pipeline has 2");
  s = w_make(&w, GT_PIPE_GPIPE, NULL);
  says(gt_pipe_evaluate(&r, s, &folded.problem, 1), "the schedule is for 2 stages of 1 chunks");
  gt_pipe_result_close(&r);
  says(gt_pipe_evaluate(&r, s, &w.problem, 0), "0 steps");
  gt_pipe_schedule_close(s);
}

TESTS(sound_schedules_pass, every_pass_once, order_within_a_stage, deadlocks, memory_is_held,
      peaks_by_hand, numbers_that_are_refused, shapes_that_do_not_fit)
