/* The adapter's state: a loaded state is saved again item by item, so no item is missing. */
#include "geotrain/pipe_adapt.h"
#include "tests.h"

#define STAGES  2
#define REGIONS 2
#define LINKS   (REGIONS * REGIONS)

static const size_t regions[STAGES] = {0, 1};

/* Two regions with a stage each. */
typedef struct {
  gt_pipe_problem problem; /* points into the rest */
  gt_pipe_span spans[STAGES];
  gt_pipe_hop hops[STAGES];
  gt_pipe_wan wan;
  gt_link_spec links[LINKS];
  gt_pipe_schedule *plan;
} world;

static void open_world(world *w) {
  *w = (world){.problem = {.stages = STAGES,
                           .chunks = 1,
                           .micro_batches = 4,
                           .spans = w->spans,
                           .ahead = w->hops,
                           .back = w->hops,
                           .wan = &w->wan},
               .wan = {.nregions = REGIONS, .region = regions, .links = w->links, .seed = 1}};
  for (size_t k = 0; k < STAGES; k++)
    w->spans[k] = (gt_pipe_span){0.02, 0.02, 0.02, 1, 1, 270000, 0};
  for (size_t i = 0; i < LINKS; i++)
    w->links[i] = (gt_link_spec){.bandwidth_bps = 100e6, .latency_s = 0.025, .back_s = 0.025};
  const gt_pipe_search search = {.aim = GT_PIPE_PERIOD, .seed = 1, .variants = 20};
  must(gt_pipe_make(&w->plan, GT_PIPE_AUTO, &w->problem, &search));
}

static gt_pipe_adapt *new_adapt(const world *w) {
  const gt_pipe_adapt_spec spec = {.problem = &w->problem,
                                   .schedule = w->plan,
                                   .search = {.seed = 1, .variants = 20},
                                   .decides = true};
  return gt_pipe_adapt_create(&spec);
}

static void assert_same_items(const gt_state *a, const gt_state *b) {
  assert_int_equal(a->n, b->n);
  for (size_t i = 0; i < a->n; i++) {
    const gt_state_item *x = &a->items[i], *y = gt_state_find(b, "", x->name);
    assert_non_null(y);
    assert_int_equal(x->count, y->count);
    if (x->count && memcmp(x->data, y->data, x->count * gt_type_size(x->type)) != 0)
      fail_msg("%s differs after it was loaded", x->name);
  }
}

/* After every one of 12 steps, in which the links change. */
static void what_is_loaded_is_saved_again(void) {
  world w;
  open_world(&w);
  gt_pipe_adapt *a = new_adapt(&w);
  for (int step = 0; step < 12; step++) {
    gt_pipe_cost costs[LINKS];
    for (size_t i = 0; i < LINKS; i++)
      costs[i] = (gt_pipe_cost){100e6 / (1 + step + (double)i), 0.02 + 0.001 * step};
    gt_pipe_adapt_step(a, costs);
    gt_state before = {0}, after = {0};
    bool used;
    gt_pipe_adapt *b = new_adapt(&w);
    gt_pipe_adapt_save(a, &before);
    must(gt_pipe_adapt_load(b, &before, &used));
    assert_true(used);
    gt_pipe_adapt_save(b, &after);
    assert_same_items(&before, &after);
    gt_state_close(&after);
    gt_state_close(&before);
    gt_pipe_adapt_close(b);
  }
  gt_pipe_adapt_close(a);
  gt_pipe_schedule_close(w.plan);
}

/* A state of earlier programs has no version. */
static void another_version_is_refused(void) {
  world w;
  open_world(&w);
  gt_pipe_adapt *a = new_adapt(&w);
  for (int without = 0; without < 2; without++) {
    gt_state state = {0}, other = {0};
    bool used;
    gt_pipe_adapt_save(a, &state);
    for (size_t i = 0; i < state.n; i++) {
      const gt_state_item *item = &state.items[i];
      if (strcmp(item->name, "adapt/version") == 0) *(int64_t *)item->data = 3;
      if (!without || strcmp(item->name, "adapt/version") != 0)
        gt_state_add(&other, "", item->name, item->type, item->data, item->count);
    }
    must_say(gt_pipe_adapt_load(a, &other, &used), GT_ERR_CKPT,
             without ? "adapt/version is 1; expected 2: resume with the geotrain that "
                       "wrote the checkpoint, or with --set pipeline.adapt=false"
                     : "adapt/version is 3; expected 2: resume with the geotrain that "
                       "wrote the checkpoint, or with --set pipeline.adapt=false");
    gt_state_close(&other);
    gt_state_close(&state);
  }
  gt_pipe_adapt_close(a);
  gt_pipe_schedule_close(w.plan);
}

TESTS(what_is_loaded_is_saved_again, another_version_is_refused)
