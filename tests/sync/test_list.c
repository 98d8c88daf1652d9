/* The list of strategies; `none`; every saved item is required. */
#include "world_run.h"
#include "../strategies.h"

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

/* Alone, with any strategy, a region does the same as its optimizer; so does every region under
   `none`. */
static void test_alone_is_the_optimizer(void) {
  for (const char *const *name = gt_strategy_names; *name; name++) {
    size_t nregions = strcmp(*name, "none") == 0 ? 3 : 1;
    w_spec spec = {.strategy = *name,
                   .nregions = nregions,
                   .steps = {9, 4, 0},
                   .period = 2,
                   .scale = 1,
                   .optim = w_sgd(0.1, 0.9),
                   .seed = 5};
    world *w = w_run(&spec);
    for (size_t i = 0; i < nregions; i++) {
      float params[W_PARAMS], grads[W_PARAMS];
      gt_optim *optim = NULL;
      assert_int_equal(gt_optim_create(&optim, &spec.optim, W_PARAMS, true), GT_OK);
      for (size_t j = 0; j < W_PARAMS; j++) params[j] = w_start(j);
      for (int64_t step = 0; step < spec.steps[i]; step++) {
        for (size_t j = 0; j < W_PARAMS; j++) grads[j] = w_gradient(i, j, params[j]);
        gt_optim_step(optim, gt_vec_of(params, W_PARAMS), gt_vec_of(grads, W_PARAMS),
                      gt_vec_of(NULL, W_PARAMS));
      }
      assert_memory_equal(params, w->regions[i].params, sizeof params);
      assert_int_equal(gt_optim_steps(w->regions[i].optim), spec.steps[i]);
      gt_optim_close(optim);
    }
    w_close(w);
  }
}

/* Checks that the load requires every item that a region saves, with an error text; returns their
   number. */
static size_t assert_all_needed(world *w, w_region *r) {
  gt_state saved = {0};
  assert_int_equal(gt_sync_state(r->sync, (gt_state_direction){.to = &saved}), GT_OK);
  for (size_t missing = 0; missing < saved.n; missing++) {
    assert_memory_equal(saved.items[missing].name, "sync/", 5);
    saved.items[missing].name[0] = '?';
    gt_sync_env env = w_env(w, r);
    env.exchange = w_exchange(w, r);
    gt_sync *fresh = gt_sync_create(r->sync->ops, &env);
    assert_int_equal(gt_sync_state(fresh, (gt_state_direction){.from = &saved}), GT_ERR_CKPT);
    assert_non_null(strstr(gt_error_text(), saved.items[missing].name + 1));
    gt_sync_close(fresh);
    gt_exchange_close(env.exchange);
    saved.items[missing].name[0] = 's';
  }
  size_t n = saved.n;
  gt_state_close(&saved);
  return n;
}

/* Checks it between any two events; returns the largest number of items that the region saved. */
static size_t most_items(const w_spec *spec, size_t region) {
  world *w = w_open(spec);
  w_begin(w);
  size_t seen = 0;
  do {
    size_t n = assert_all_needed(w, &w->regions[region]);
    seen = n > seen ? n : seen;
  } while (w_step(w));
  w_assert_finished(w);
  w_close(w);
  return seen;
}

static void test_load_needs_every_item(void) {
  for (size_t s = 0; gt_strategy_names[s]; s++) {
    w_spec spec = {.strategy = gt_strategy_names[s],
                   .nregions = 3,
                   .steps = {6, 6, 6},
                   .period = 2,
                   .scale = 1,
                   .outbox = 1,
                   .seed = 3};
    /* with one message in the inbox and the own gradient, or two messages */
    const gt_sync_ops *ops = sync_named(spec.strategy);
    assert_true(most_items(&spec, 0) >= (ops->waits ? 5 + 3 + 1 + 2 : ops->sends ? 3 : 0));
    if (!ops->waits) continue;
    spec.topology = GT_TOPOLOGY_CENTRAL;
    for (size_t r = 0; r < 3; r++) spec.ranks[r] = 2;
    /* with a message in the inbox; with the own gradient, or one of two copies of an answer */
    assert_true(most_items(&spec, 0) >= 5 + 4 + 3 + 4);
    assert_true(most_items(&spec, 1) >= 5 + 4 + 3 + 1);
  }
}

TESTS(test_names_and_tables_agree, test_alone_is_the_optimizer, test_load_needs_every_item)
