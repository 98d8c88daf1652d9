/* links: ps
   The saved state of strategies is sufficient, over every topology: a round at any event of a run,
   and a crash when it is whole, change no bit of ssgd and sma, and lose or duplicate no update of
   the others. */
#include "cases.h"
#include "ps/world.h"
#include "strategies.h"

static const w_spec specs[] = {
    {.nregions = 3,
     .steps = {8, 5, 0},
     .options.period = 3,
     .outbox = 1,
     .lag = {2 * W_MS, 40 * W_MS, 2 * W_MS},
     .seed = 21},
    {.nregions = 2,
     .steps = {6, 9},
     .options = {.period = 2, .scale = 0.5},
     .outbox = 1,
     .window = 1,
     .weights = {2, 1},
     .lag = {2 * W_MS, 2 * W_MS},
     .seed = 22},
    {.nregions = 4,
     .steps = {3, 7, 7, 6},
     .window = 1,
     .lag = {2 * W_MS, 2 * W_MS, 60 * W_MS, 2 * W_MS},
     .seed = 23},
    {.nregions = 3, /* the last only aggregates */
     .steps = {4, 3, 0},
     .weights = {2, 1, 0},
     .outbox = 1,
     .lag = {2 * W_MS, 2 * W_MS, 2 * W_MS},
     .seed = 24},
    {.nregions = 1, .steps = {7}, .options.period = 2, .lag = {2 * W_MS}, .seed = 25},
};
#define SPECS (COUNT(specs))

static int64_t duplicates;

/* Crashes at every `step`th event, from `first` on, and runs to the end. */
static void crash_everywhere(const w_spec *spec, int64_t first, int64_t step,
                             void (*law)(world *w, const world *quiet)) {
  world *quiet = w_finished(spec);
  for (int64_t event = first % step; event < quiet->events; event += step) {
    world *w = w_open(spec);
    w_steps(w, event);
    w_crash_now(w, (size_t)event % w->n);
    w_run_until(w, GT_PS_COMPLETE);
    w_check_heard(w);
    law(w, quiet);
    duplicates += w->duplicates;
    w_close(w);
  }
  w_close(quiet);
}

static void is_same(world *w, const world *quiet) {
  if (!w->spec.no_data) w_check_same(w, quiet);
  for (size_t i = 0; i < w->n; i++)
    for (size_t k = 0; k < w->n; k++)
      w_check(w, w->regions[i].kept.applied[k] == quiet->regions[i].kept.applied[k]);
}

static void is_identical(world *w, const world *quiet) {
  (void)quiet;
  w_check_identical(w);
}

static void is_conserved(world *w, const world *quiet) {
  const bool mesh = w->spec.topology == GT_TOPOLOGY_MESH;
  (void)quiet;
  if (!w->spec.no_data) w_check_conserved(w);
  for (size_t i = 0; i < w->n && mesh; i++)
    for (size_t k = 0; k < w->n; k++)
      w_check(w,
              i == k || w->regions[i].kept.samples[k] == w->spec.steps[k] * (int64_t)w->spec.batch);
}

/* The last model of every region has arrived (w_check_heard). */
static void is_over(world *w, const world *quiet) {
  (void)w, (void)quiet;
}

static w_spec spec_of(const char *strategy, size_t s, size_t workers) {
  w_spec spec = specs[s];
  spec.strategy = strategy;
  spec.write_s = 0.01;
  spec.local_async = workers > 1;
  for (size_t i = 0; i < spec.nregions; i++) {
    spec.workers[i] = workers;
    spec.samples[i] = 100;
  }
  return spec;
}

static void test_rounds(void) {
  int64_t worlds = 0;
  for (size_t t = 0; t < W_TOPOLOGIES; t++)
    for (size_t n = 0; n < 3; n++)
      for (size_t s = 0; s < SPECS; s++) {
        w_spec spec = spec_of(n ? "sma" : "ssgd", s, 1);
        w_place_over(&spec, w_topologies[t]);
        spec.optim = s % 2 ? w_adamw() : w_sgd(0.05, 0.9);
        if (w_topologies[t] == GT_TOPOLOGY_CENTRAL) /* a message for each worker */
          for (size_t i = 0; i < spec.nregions; i++) spec.workers[i] = 1 + (i + s) % 3;
        if (n == 2)
          spec.options.outer = GT_OUTER_NESTEROV, spec.options.outer_lr = 0.7,
          spec.options.outer_momentum = 0.9;
        crash_everywhere(&spec, worlds++, stride(32), is_same);
        spec.local_async = true;
        spec.workers[0] = 2;
        crash_everywhere(&spec, worlds, stride(64), is_identical);
      }
  assert_true(duplicates > 0); /* the case did occur */
}

static void test_broadcasts(void) {
  static const char *const names[] = {"asgd", "asgd-ga", "ama"};
  int64_t worlds = 0;
  for (size_t t = 0; t < W_FORWARDING; t++)
    for (size_t n = 0; n < 3; n++)
      for (size_t s = 0; s < SPECS; s++)
        for (size_t variant = 0; variant < 3; variant++) {
          w_spec spec = spec_of(names[n], s, 1 + variant / 2);
          w_place_over(&spec, w_topologies[t]);
          spec.options.gradients = spec.options.halves = variant % 2;
          crash_everywhere(&spec, worlds++, stride(32), n == 2 ? is_over : is_conserved);
        }
}

/* Of a codec: residuals, payloads that wait for a round, factors. */
static void test_codecs(void) {
  static const struct {
    const char *strategy;
    gt_codec_kind kind;
  } coded[] = {{"sma", GT_CODEC_TOPK},      {"sma", GT_CODEC_MASK}, {"sma", GT_CODEC_POWERSGD},
               {"ssgd", GT_CODEC_POWERSGD}, {"ssgd", GT_CODEC_DGC}, {"asgd-ga", GT_CODEC_TOPK}};
  int64_t worlds = 0;
  for (size_t c = 0; c < 6; c++)
    for (size_t t = 0; t < (gt_codec_has(coded[c].kind, GT_RESUMS) ? 4 : W_FORWARDING); t++)
      for (size_t s = 0; s < SPECS; s++) {
        w_spec spec = spec_of(coded[c].strategy, s, 1);
        w_place_over(&spec, w_topologies[t]);
        spec.codec = w_codec(coded[c].kind, 0.5);
        crash_everywhere(&spec, worlds++, stride(32), w_lockstep(&spec) ? is_same : is_conserved);
      }
}

/* Rounds of fragments, and means that are not due yet. */
static void test_fragments(void) {
  int64_t worlds = 0;
  for (size_t t = 0; t < 4; t++)
    for (size_t s = 0; s < SPECS; s++)
      for (int64_t delay = 0; delay < 3; delay++) {
        w_spec spec = spec_of("sma", s, 1);
        w_place_over(&spec, w_topologies[t]);
        spec.options.period = 4;
        spec.options.fragments = 1 + (worlds + delay) % 2;
        spec.options.delay = delay;
        spec.codec = w_codec(t == 3 ? GT_CODEC_MASK : GT_CODEC_TOPK, 0.5);
        if (worlds % 2)
          spec.options.outer = GT_OUTER_NESTEROV, spec.options.outer_lr = 0.7,
          spec.options.outer_momentum = 0.5;
        crash_everywhere(&spec, worlds++, stride(32), is_same);
      }
}

static void test_without_data(void) {
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (size_t s = 0; s < SPECS; s++) {
      w_spec spec = spec_of(*name, s, 1);
      const gt_sync_ops *ops = sync_named(*name);
      spec.no_data = true;
      crash_everywhere(&spec, (int64_t)s, stride(32),
                       ops->waits || !ops->sends     ? is_same
                       : ops->sends == GT_MSG_UPDATE ? is_conserved
                                                     : is_over);
    }
}

TESTS(test_rounds, test_broadcasts, test_codecs, test_fragments, test_without_data)
