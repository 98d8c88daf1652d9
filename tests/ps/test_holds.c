/* The view of a hold in progress: it grows with the hold, and becomes the wait that is counted. */
#include "world.h"

static gt_ns counted(world *w, gt_ns now) {
  return w_view(w, 0).wan_wait + gt_ps_held_now(w->regions[0].ps, now);
}

static void holds(const char *strategy, bool async) {
  w_spec spec = {.strategy = strategy,
                 .nregions = 2,
                 .workers = {2, 2},
                 .samples = {64, 64},
                 .local_async = async,
                 .batch = 4,
                 .outbox = 1,
                 .window = 1,
                 .options.period = 2,
                 .until = {.steps = 12},
                 .link = {.bandwidth_bps = 1e6, .latency_s = 0.3},
                 .seed = 7};
  world *w = w_open(&spec);
  gt_ns before = 0;
  int held = 0, growing = 0;
  while (w_view(w, 0).phase == GT_PS_TRAINING) {
    const gt_ns now = counted(w, w->now), later = counted(w, w->now + 100 * W_MS);
    w_check(w, now >= before && gt_ps_held_now(w->regions[0].ps, w->now) >= 0 && now <= 2 * w->now);
    held += w_view(w, 0).held;
    growing += later > now;
    w_check(w, w_view(w, 0).held || later == now);
    before = now;
    w_check(w, w_step(w));
  }
  w_check(w, held > 0 && growing > 0 && w_view(w, 0).wan_wait > 0);
  w_check(w, gt_ps_held_now(w->regions[0].ps, w->now) == 0);
  w_close(w);
}

static void test_holds(void) {
  for (int async = 0; async < 2; async++) {
    holds("sma", async);
    holds("ssgd", async);
    holds("asgd", async);
  }
}

TESTS(test_holds)
