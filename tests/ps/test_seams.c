/* What a strategy may ask of the PS: timers, decisions for the record, and how the links were of
   late. */
#include "world.h"
#include "../strategies.h"

static struct {
  int rang[GT_SYNC_TIMERS];
  gt_ns asked[GT_SYNC_TIMERS], at[GT_SYNC_TIMERS];
  gt_link_view link;
} seen[W_REGIONS];

static const gt_sync_ops *asgd(void) {
  return sync_named("asgd");
}

static w_spec two(const gt_sync_ops *ops) {
  memset(seen, 0, sizeof seen);
  return (w_spec){.strategy = "asgd",
                  .ops = ops,
                  .nregions = 2,
                  .workers = {1, 1},
                  .samples = {800, 800},
                  .batch = 4,
                  .outbox = 2,
                  .window = 1,
                  .until = {.steps = 60},
                  .slow = {100, 100}, /* steps of 0.2 to 1.2 s */
                  .link = {.bandwidth_bps = 1e6, .latency_s = 0.01, .back_s = 0.01},
                  .seed = 5};
}

/* ---- timers, decisions ---------------------------------------------------------------------- */

static void ask(gt_sync *s, size_t id, gt_ns at) {
  seen[s->env.self].asked[id] = at;
  s->env.host.timer(s->env.host.ctx, id, at);
}

/* With the first gradient: 1 before 0 before 3, which is asked for twice; 2 is taken back. */
static void asks(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  asgd()->on_gradient(s, now, grads, samples);
  if (seen[s->env.self].asked[0]) return;
  ask(s, 0, now + 50 * W_MS);
  ask(s, 1, now + 20 * W_MS);
  ask(s, 2, now + 30 * W_MS);
  ask(s, 2, GT_NEVER);
  ask(s, 3, now + 10 * W_MS);
  ask(s, 3, now + 70 * W_MS);
}

static void rings(gt_sync *s, gt_ns now, size_t id) {
  const size_t self = s->env.self;
  seen[self].at[id] = now;
  seen[self].rang[id]++;
  if (id != 0) return;
  s->env.host.decided(s->env.host.ctx, "period", "2", "a test");
}

static void test_requests(void) {
  gt_sync_ops ops = *asgd();
  ops.on_gradient = asks;
  ops.on_timer = rings;
  w_spec spec = two(&ops);
  world *w = w_finished(&spec);
  for (size_t r = 0; r < 2; r++) {
    for (size_t id = 0; id < GT_SYNC_TIMERS; id++) {
      assert_int_equal(seen[r].rang[id], id != 2);
      if (id != 2) assert_int_equal(seen[r].at[id], seen[r].asked[id]);
    }
    assert_int_equal(w->regions[r].decisions, 1);
  }
  w_close(w);
}

/* Only regions of a pipeline tell one another of steps. */
static void test_refused(void) {
  w_spec spec = two(asgd());
  world *w = w_open(&spec);
  const gt_frame_header head = {.kind = GT_MSG_STRATEGY, .value = 7};
  must_fail(gt_ps_message(w->regions[1].ps, 0, &head, NULL, w->now), GT_ERR_FAULT, "kind 25");
  const gt_frame_header note = {.kind = GT_MSG_ADAPT};
  must_fail(gt_ps_message(w->regions[1].ps, 0, &note, NULL, w->now), GT_ERR_FAULT, "kind 26");
  w_close(w);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void looks(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  asgd()->on_gradient(s, now, grads, samples);
  seen[s->env.self].link = s->env.host.link(s->env.host.ctx, 1 - s->env.self);
}

static void run_for(world *w, gt_ns time) {
  const gt_ns end = w->now + time;
  while (w->now < end && w_step(w)) continue;
}

static void assert_near(double is, double expected) {
  if (fabs(is - expected) > 0.2 * expected) fail_msg("%g; expected %g within 20 %%", is, expected);
}

/* The link becomes ten times slower and farther: a strategy sees it, and still does after a
   resume. */
static void test_links(void) {
  gt_sync_ops ops = *asgd();
  ops.on_gradient = looks;
  w_spec spec = two(&ops);
  spec.until = (gt_ps_interval){.steps = 180};
  spec.checkpoint_every = (gt_ps_interval){.steps = 10};
  world *w = w_open(&spec);
  run_for(w, 30 * GT_SECOND);
  assert_near(seen[0].link.latency_s, 0.01);
  const double before = seen[0].link.rate_bps; /* of messages that are as small as heartbeats */
  w->spec.link.bandwidth_bps /= 10;
  w->spec.link.latency_s *= 10;
  run_for(w, 90 * GT_SECOND);
  assert_near(seen[0].link.latency_s, 0.1);
  const double after = seen[0].link.rate_bps;
  assert_true(before > 0 && after > 0 && after < before / 5);
  gt_ps_link whole;
  gt_ps_get_link(w->regions[0].ps, 1, &whole);
  assert_near(whole.latency_s, 0.01); /* the shortest of the run */
  memset(seen, 0, sizeof seen);
  assert_true(w_crash(w) > 0);
  run_for(w, 2 * GT_SECOND); /* a step or two */
  assert_near(seen[0].link.latency_s, 0.1);
  assert_near(seen[0].link.rate_bps, after);
  w_run_until(w, GT_PS_COMPLETE);
  w_close(w);
}

TESTS(test_requests, test_refused, test_links)
