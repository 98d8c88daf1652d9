/* links: ps
   The list of strategies; every saved item is required. */
#include "internal.h"
#include "ps/world.h"
#include "strategies.h"

static void test_names_and_tables_agree(void) {
  for (const char *const *name = gt_strategy_names; *name; name++) {
    const gt_sync_ops *ops = sync_named(*name);
    assert_non_null(ops);
    assert_string_equal(ops->name, *name);
    assert_non_null(ops->source);
    assert_int_equal(ops->sends != 0, strategy_has(*name, GT_SENDS));
    assert_true(ops->state || !ops->sends);
    assert_true(ops->size >= sizeof(gt_sync));
  }
  assert_null(sync_named("sgd"));
  assert_null(sync_named(""));
}

static void send_nothing(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                         size_t bytes, uint64_t cookie) {
  (void)ctx, (void)peer, (void)head, (void)payload, (void)bytes, (void)cookie;
}

/* Checks that the load requires every item that a region's strategy saves, with an error text;
   returns their number. */
static size_t assert_all_needed(const w_region *r, gt_ns now) {
  gt_state own = {0}, saved = {0};
  size_t n = 0;
  gt_ps_spec spec = *gt_ps_made_of(r->ps);
  spec.host.gateway.send = send_nothing;
  must(gt_sync_state(r->ps->sync, (gt_state_direction){.to = &own}));
  gt_ps_save(r->ps, &saved);
  for (size_t missing = 0; missing < saved.n; missing++) {
    char *name = saved.items[missing].name;
    if (strncmp(name, "sync/", 5) != 0) continue;
    name[0] = '?';
    gt_ps *fresh = gt_ps_create(&spec);
    must_fail(gt_ps_load(fresh, now, &saved), GT_ERR_CKPT, name + 1);
    gt_ps_close(fresh);
    name[0] = 's';
    n++;
  }
  assert_int_equal(n, own.n);
  gt_state_close(&own);
  gt_state_close(&saved);
  return n;
}

/* Checks it between any two events; returns the largest number of items that the region saved. */
static size_t most_items(const w_spec *spec, size_t region) {
  world *w = w_open(spec);
  size_t seen = 0;
  do {
    size_t n = assert_all_needed(&w->regions[region], w->now);
    seen = n > seen ? n : seen;
  } while (!w_all_in(w, GT_PS_COMPLETE) && w_step(w));
  w_close(w);
  return seen;
}

static void test_load_needs_every_item(void) {
  for (size_t s = 0; gt_strategy_names[s]; s++) {
    w_spec spec = {.strategy = gt_strategy_names[s],
                   .nregions = 3,
                   .workers = {1, 1, 1},
                   .samples = {100, 100, 100},
                   .steps = {6, 6, 6},
                   .lag = {2 * W_MS, 2 * W_MS, 2 * W_MS},
                   .options.period = 2,
                   .outbox = 1,
                   .seed = 3};
    /* with one message in the inbox and the own gradient, or two messages */
    const gt_sync_ops *ops = sync_named(spec.strategy);
    assert_true(most_items(&spec, 0) >= (ops->waits ? 5 + 3 + 1 + 2 : ops->sends ? 3 : 0));
    if (!ops->waits) continue;
    spec.topology = GT_TOPOLOGY_CENTRAL;
    for (size_t r = 0; r < 3; r++) spec.workers[r] = 2;
    /* with a message in the inbox; with the own gradient, or one of two copies of an answer */
    assert_true(most_items(&spec, 0) >= 5 + 4 + 3 + 4);
    assert_true(most_items(&spec, 1) >= 5 + 4 + 3 + 1);
  }
}

TESTS(test_names_and_tables_agree, test_load_needs_every_item)
