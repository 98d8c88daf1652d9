/* Times by hand: hops, occupied links, shared accesses, consecutive steps; and a run that uses the
   functions as a program would. */
#include "world.h"
#include "tests.h"

static gt_pipe_result evaluate(const world *w, gt_pipe_kind kind, size_t steps) {
  gt_pipe_schedule *s = w_make(w, kind, NULL);
  gt_pipe_result r;
  must(gt_pipe_evaluate(&r, s, &w->problem, steps));
  gt_pipe_schedule_close(s);
  return r;
}

static void starts_are(const gt_pipe_result *r, size_t stage, const double *starts_s, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (r->stages[stage].times[i].start != gt_from_seconds(starts_s[i]))
      fail_msg("stage %zu, pass %zu begins at %.9g s, not at %.9g s", stage, i,
               gt_seconds(r->stages[stage].times[i].start), starts_s[i]);
}

/* 1F1B, 2 stages, 2 micro-batches; 1 s ahead, 0.5 s back, and 8 s of output at the hop's rate. */
static void hops_have_directions_and_rates(void) {
  world w;
  w_alike(&w, 2, 1, 2, 1, 2, 3, 0);
  w.ahead[0] = (gt_pipe_hop){.delay_s = 1};
  w.back[0] = (gt_pipe_hop){.delay_s = 0.5, .bandwidth_bps = 1e6};
  w.spans[0].output_bytes = 1e6;
  gt_pipe_result r = evaluate(&w, GT_PIPE_1F1B, 1);
  /* F0 F1 BW0 BW1; F0 BW0 F1 BW1.  BW is one pass: the gradient leaves at its end. */
  static const double first[] = {0, 1, 16.5, 22.5}, second[] = {2, 3, 8, 9};
  starts_are(&r, 0, first, 4);
  starts_are(&r, 1, second, 4);
  assert_int_equal(r.makespan, gt_from_seconds(27.5));
  assert_int_equal(r.cost, gt_from_seconds(27.5));
  gt_pipe_result_close(&r);
}

/* Two regions; a link on which a message takes 3 s and then 1 s. */
typedef struct {
  world w;
  size_t region[W_STAGES_MAX];
  gt_link_spec links[9];
  double up_bps[3], down_bps[3];
  gt_pipe_wan wan;
} wide;

#define MESSAGE_BYTES ((size_t)1000000)
#define RATE_BPS      (8.0 * (double)(MESSAGE_BYTES + GT_FRAME_HEADER_MAX) / 3)

static void make_wide(wide *x, size_t stages, size_t micro_batches, size_t nregions) {
  w_alike(&x->w, stages, 1, micro_batches, 1, 1, 1, 0);
  x->wan = (gt_pipe_wan){nregions, x->region, x->links, x->up_bps, x->down_bps, 1};
  x->w.problem.wan = &x->wan;
  for (size_t s = 0; s < stages; s++) {
    x->region[s] = s % nregions;
    x->w.spans[s].output_bytes = (double)MESSAGE_BYTES;
  }
  for (size_t i = 0; i < nregions * nregions; i++)
    x->links[i] = (gt_link_spec){.bandwidth_bps = RATE_BPS, .latency_s = 1, .back_s = 1};
  for (size_t i = 0; i < nregions; i++) x->up_bps[i] = x->down_bps[i] = 0;
}

static void messages_occupy_a_link(void) {
  wide x;
  make_wide(&x, 2, 2, 2);
  gt_pipe_result r = evaluate(&x.w, GT_PIPE_GPIPE, 1);
  /* outputs reach the link at 1 and 2, and leave it at 4 and 7; gradients 11 and 13, 14 and 17 */
  static const double first[] = {0, 1, 15, 18}, second[] = {5, 8, 9, 11};
  starts_are(&r, 0, first, 4);
  starts_are(&r, 1, second, 4);
  assert_int_equal(r.makespan, 20 * GT_SECOND);
  gt_pipe_result_close(&r);
}

/* Regions that make steps together: the first one, whose gradients come last, continues when its
   own passes have ended and it has heard from the other, whichever is later; so does the other. */
static void regions_wait_for_each_other(void) {
  wide x;
  double agree_s[4] = {0, 2.5, 0.5, 0};
  make_wide(&x, 2, 1, 2);
  for (size_t i = 0; i < 4; i++) x.links[i] = (gt_link_spec){.latency_s = 1, .back_s = 1};
  x.w.update_s[0] = 0.25;
  x.w.update_s[1] = 0;
  x.w.problem.update_s = x.w.update_s;
  gt_pipe_result r = evaluate(&x.w, GT_PIPE_GPIPE, 1);
  assert_int_equal(r.makespan, 8 * GT_SECOND); /* BW from 3 to 5 in region 1, 6 to 8 in region 0 */
  assert_int_equal(r.period, gt_from_seconds(8.25));
  gt_pipe_result_close(&r);
  x.w.problem.agree_s = agree_s;
  r = evaluate(&x.w, GT_PIPE_GPIPE, 1);
  assert_int_equal(r.makespan, 8 * GT_SECOND);
  assert_int_equal(r.period, gt_from_seconds(10.5)); /* region 1 hears from region 0 */
  gt_pipe_result_close(&r);
  /* the output of the next step's F comes to region 1 at 10.25, and waits */
  r = evaluate(&x.w, GT_PIPE_GPIPE, 6);
  assert_int_equal(r.period, gt_from_seconds(8.5));
  gt_pipe_result_close(&r);
  agree_s[2] = 4; /* region 1 ends at 5: region 0 hears from it at 9 */
  r = evaluate(&x.w, GT_PIPE_GPIPE, 6);
  assert_int_equal(r.period, gt_from_seconds(9.25));
  gt_pipe_result_close(&r);
  gt_pipe_schedule *s = w_make(&x.w, GT_PIPE_GPIPE, NULL);
  agree_s[1] = -1;
  assert_int_equal(gt_pipe_evaluate(&r, s, &x.w.problem, 1), GT_ERR_JOB);
  gt_pipe_schedule_close(s);
}

/* A hop before the link: from a stage to its region's gateway. */
static void a_hop_comes_before_the_link(void) {
  wide x;
  make_wide(&x, 2, 1, 2);
  x.w.ahead[0].delay_s = 0.25;
  gt_pipe_result r = evaluate(&x.w, GT_PIPE_GPIPE, 1);
  static const double second[] = {5.25};
  starts_are(&r, 1, second, 1);
  gt_pipe_result_close(&r);
}

/* An access at one end, and a link without a limit: messages are ready at 1 and 2, and each takes 3
   at either access. */
static void messages_occupy_an_access(void) {
  for (int up = 0; up < 2; up++) {
    wide x;
    make_wide(&x, 2, 2, 2);
    for (size_t i = 0; i < 4; i++) x.links[i].bandwidth_bps = 0;
    if (up)
      x.up_bps[0] = RATE_BPS;
    else
      x.down_bps[1] = RATE_BPS;
    gt_pipe_result r = evaluate(&x.w, GT_PIPE_GPIPE, 1);
    static const double second[] = {5, 8};
    starts_are(&r, 1, second, 2);
    gt_pipe_result_close(&r);
  }
}

/* 2.5 MiB are three frames, each with a header, and take 1 s on the link; the receiver's access has
   half its rate, and the first bit is there at 2. */
static void long_messages_go_in_frames(void) {
  wide x;
  make_wide(&x, 2, 1, 2);
  const double bytes = 2.5 * (double)GT_FRAME_PAYLOAD_MAX, wire = bytes + 3.0 * GT_FRAME_HEADER_MAX;
  x.w.spans[0].output_bytes = bytes;
  x.links[1].bandwidth_bps = 8 * wire;
  x.down_bps[1] = 4 * wire;
  gt_pipe_result r = evaluate(&x.w, GT_PIPE_GPIPE, 1);
  assert_true(fabs(gt_seconds(r.stages[1].times[0].start) - 4) < 1e-8);
  gt_pipe_result_close(&r);
}

/* Stage 1's messages in both directions share a link if both neighbors are in one region, and its
   region's access otherwise. */
static void neighbours_share(void) {
  wide apart, together, access;
  make_wide(&apart, 3, 12, 3);
  make_wide(&together, 3, 12, 3);
  make_wide(&access, 3, 12, 3);
  together.region[2] = 0;
  access.up_bps[1] = RATE_BPS;
  gt_pipe_result a = evaluate(&apart.w, GT_PIPE_ZB_H2, 1),
                 b = evaluate(&together.w, GT_PIPE_ZB_H2, 1),
                 c = evaluate(&access.w, GT_PIPE_ZB_H2, 1);
  assert_true(a.makespan < b.makespan && a.makespan < c.makespan);
  gt_pipe_result_close(&a);
  gt_pipe_result_close(&b);
  gt_pipe_result_close(&c);
}

/* The greedy rules take the link into account: over one that is slower than the stages, they still
   make a sound schedule, and the best is no slower than the fixed orders. */
static void auto_over_a_slow_link(void) {
  wide x;
  make_wide(&x, 4, 8, 2);
  x.region[1] = 0;
  x.region[2] = x.region[3] = 1;
  const gt_pipe_kind kinds[] = {GT_PIPE_GPIPE, GT_PIPE_1F1B, GT_PIPE_ZB_H1, GT_PIPE_ZB_H2};
  const gt_pipe_search search = {.variants = 100};
  gt_pipe_result best = w_run(&x.w, GT_PIPE_AUTO, &search);
  for (size_t i = 0; i < 4; i++) {
    gt_pipe_result r = evaluate(&x.w, kinds[i], 1);
    assert_true(best.makespan <= r.makespan);
    gt_pipe_result_close(&r);
  }
  /* F on two stages, 8 outputs of 3 s, latency, F and B on two stages, the way back, B on two, W */
  assert_true(best.makespan >= (2 + 24 + 1 + 4 + 4 + 2 + 1) * GT_SECOND);
  gt_pipe_result_close(&best);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* together: the stages are of one region, which waits for all of them. */
static gt_ns period(gt_pipe_kind kind, double update_s, bool together) {
  static const size_t region[W_STAGES_MAX];
  static const gt_link_spec none[1];
  static const double agree_s[1];
  const gt_pipe_wan wan = {.nregions = 1, .region = region, .links = none};
  world w;
  w_alike(&w, 4, 1, 12, 1, 1, 1, 0);
  for (size_t s = 0; s < 4; s++) w.update_s[s] = update_s;
  w.problem.update_s = w.update_s;
  w.problem.wan = &wan;
  w.problem.agree_s = together ? agree_s : NULL;
  gt_pipe_result r = evaluate(&w, kind, 8);
  gt_ns found = r.period;
  assert_true(r.cost <= r.makespan);
  gt_pipe_result_close(&r);
  return found;
}

/* 36 s of work, 3 s until the last stage begins. */
static void periods_by_hand(void) {
  assert_int_equal(period(GT_PIPE_ZB_H2, 0, false), 36 * GT_SECOND);
  assert_int_equal(period(GT_PIPE_ZB_H2, 2, false), 38 * GT_SECOND);
  /* all stages wait for the last one, which has ended after 39 s */
  assert_int_equal(period(GT_PIPE_ZB_H2, 2, true), (39 + 2) * GT_SECOND);
  assert_int_equal(period(GT_PIPE_1F1B, 2, false), (3 * 15 + 2) * GT_SECOND);
}

static void one_step_has_its_own_end_as_period(void) {
  world w;
  w_alike(&w, 2, 1, 3, 1, 1, 1, 0);
  w.update_s[0] = 1, w.update_s[1] = 5;
  w.problem.update_s = w.update_s;
  gt_pipe_result r = evaluate(&w, GT_PIPE_1F1B, 1);
  assert_int_equal(r.makespan, 12 * GT_SECOND);
  assert_int_equal(r.period, 15 * GT_SECOND); /* stage 1 ends at 10 */
  gt_pipe_result_close(&r);
}

/* One stage that is twice as slow determines the pace: the bubble is that of the busiest stage. */
static void the_slowest_stage_sets_the_pace(void) {
  world w;
  w_alike(&w, 3, 1, 12, 1, 1, 1, 0);
  w.spans[1].forward_s = w.spans[1].backward_s = w.spans[1].weight_s = 2;
  const gt_pipe_search search = {.aim = GT_PIPE_PERIOD};
  gt_pipe_result r = w_run(&w, GT_PIPE_AUTO, &search);
  assert_int_equal(r.period, 12 * 6 * GT_SECOND);
  assert_true(r.period_bubble == 0);
  assert_int_equal(r.stages[1].work, 12 * 6 * GT_SECOND);
  assert_int_equal(r.stages[0].work, 12 * 3 * GT_SECOND);
  gt_pipe_result_close(&r);
}

/* ---- a run by the same functions ------------------------------------------------------------- */

/* Stages take turns without any clock; messages are in a queue that is read from either end. */
static void a_run_without_times_ends(void) {
  world w;
  w_alike(&w, 3, 2, 6, 1, 1, 1, 0);
  gt_pipe_schedule *s = w_make(&w, GT_PIPE_ZB_V, NULL);
  gt_pipe_progress at[3];
  gt_pipe_message queue[512];
  size_t nqueue = 0, ran = 0;
  gt_rng rng = gt_rng_make(3, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < 3; i++) at[i] = gt_pipe_progress_open(s, i);
  for (int turn = 0; turn < 100000 && ran < 2 * 3 * 36; turn++) {
    size_t i = gt_rng_below(&rng, 4);
    if (i == 3 && nqueue > 0) {
      size_t j = gt_rng_below(&rng, nqueue);
      gt_pipe_arrived(&at[gt_pipe_stage_of(3, queue[j].span)], &queue[j]);
      queue[j] = queue[--nqueue];
      continue;
    }
    const gt_pass *pass = i < 3 ? gt_pipe_next(&at[i]) : NULL;
    if (!pass) {
      if (i < 3 && at[i].counter == s->lists[i].n && at[i].step == 0) gt_pipe_next_step(&at[i]);
      continue;
    }
    gt_pipe_begun(&at[i]);
    ran++;
    assert_true(nqueue < 512);
    if (gt_pipe_sends(s, pass, &queue[nqueue])) nqueue++;
  }
  assert_int_equal(ran, 2 * 3 * 36);
  for (size_t i = 0; i < 3; i++) gt_pipe_progress_close(&at[i]);
  gt_pipe_schedule_close(s);
}

/* Every number of a schedule counts in its hash. */
static void hashes_tell_schedules_apart(void) {
  static const gt_pass lists[][2] = {{{GT_PASS_F, 0, 0}, {GT_PASS_F, 0, 1}},
                                     {{GT_PASS_F, 0, 1}, {GT_PASS_F, 0, 0}},
                                     {{GT_PASS_F, 0, 0}, {GT_PASS_F, 1, 1}},
                                     {{GT_PASS_F, 0, 0}, {GT_PASS_B, 0, 1}},
                                     {{GT_PASS_F, 0, 0}, {GT_PASS_F, 0, 1}}};
  char hex[5][GT_SHA256_HEX];
  for (size_t i = 0; i < 5; i++) {
    gt_pipe_schedule *s = gt_pipe_schedule_create(2, 1, 2);
    for (size_t j = 0; j < 2; j++)
      gt_pipe_add(s, lists[i][j].kind, lists[i][j].span, lists[i][j].micro);
    gt_pipe_hash(s, hex[i]);
    gt_pipe_schedule_close(s);
  }
  for (size_t i = 0; i < 4; i++)
    for (size_t j = 0; j < i; j++) assert_string_not_equal(hex[i], hex[j]);
  assert_string_equal(hex[0], hex[4]);
}

static void spans_and_stages(void) {
  static const size_t stages[] = {0, 1, 2, 2, 1, 0, 0, 1, 2};
  for (size_t k = 0; k < 9; k++) {
    assert_int_equal(gt_pipe_stage_of(3, k), stages[k]);
    assert_int_equal(gt_pipe_span_of(3, k / 3, stages[k]), k);
  }
}

static void closing_twice_is_nothing(void) {
  wide x;
  make_wide(&x, 3, 4, 3);
  const gt_pipe_search search = {.variants = 20};
  gt_pipe_result r = w_run(&x.w, GT_PIPE_AUTO, &search);
  gt_pipe_result_close(&r);
  gt_pipe_result_close(&r);
  gt_pipe_schedule_close(NULL);
}

TESTS(hops_have_directions_and_rates, messages_occupy_a_link, regions_wait_for_each_other,
      a_hop_comes_before_the_link, messages_occupy_an_access, long_messages_go_in_frames,
      neighbours_share, auto_over_a_slow_link, periods_by_hand, one_step_has_its_own_end_as_period,
      the_slowest_stage_sets_the_pace, a_run_without_times_ends, hashes_tell_schedules_apart,
      spans_and_stages, closing_twice_is_nothing)
