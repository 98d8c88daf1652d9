/* Regions that hold the stages of a pipeline, or of several replicas of one.  Whatever the delays,
   the parameters are, to the bit, those of a computation without PSs: of one replica after every
   step; of several, with ssgd every round is a step with the weighted mean of the replicas'
   gradients, with sma the weighted mean of their models; with asgd and asgd-ga every update counts
   once in every replica, and with ama the model after every event is what steps and arrivals so far
   make of it.  A step that is not finite in one region is dropped in its replica alone, and is part
   of no round or message; replicas can have different numbers of steps; gradients are clipped by
   the norm of all stages, with ssgd that of the mean.  Checkpoints of a replica are of one step,
   for every opener of the round; a stop, also by limits.wan_bytes, or a crash does not change the
   result.  All this holds for every topology, except for the order of the sums of a tree and a
   ring.  The model that workers read does not change until they have answered; an evaluation is one
   pass of all. */
#include "cases.h"
#include "world.h"

static p_cases all;
static int64_t stops[2], crashes[2], replaced; /* of one replica, of several */

static void random_replicas(w_spec *s, gt_rng *rng) {
  static const char *const strategies[] = {"ssgd", "sma", "asgd", "asgd-ga", "ama"};
  s->replicas = 2 + (size_t)gt_rng_below(rng, P_REPLICAS - 1);
  s->places = 1 + (size_t)gt_rng_below(rng, 3);
  s->strategy = strategies[gt_rng_below(rng, 5)];
  s->options.gradients = gt_rng_below(rng, 2);
  if (s->replicas == 2 && gt_rng_below(rng, 2)) s->options.scale = 0.5; /* does not round */
  s->topology = gt_rng_below(rng, 2) ? (gt_topology)gt_rng_below(rng, 4) : GT_TOPOLOGY_MESH;
  if (s->topology == GT_TOPOLOGY_RING && p_is_free(s)) s->topology = GT_TOPOLOGY_TREE;
  s->options.period = 1 + (int64_t)gt_rng_below(rng, 4);
  for (size_t c = gt_rng_below(rng, 2) ? s->replicas : 1; c-- > 1;)
    s->steps[c] = 1 + (int64_t)gt_rng_below(rng, 14);
}

static w_spec random_spec(uint64_t seed, bool replicas) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 5, 0);
  w_spec s = {.seed = seed, .replicas = 1, .nonfinite_limit = 1000};
  s.places = 2 + (size_t)gt_rng_below(&rng, P_PLACES - 1);
  for (size_t c = 0; c < P_REPLICAS; c++)
    s.steps[c] = c ? s.steps[0] : 2 + (int64_t)gt_rng_below(&rng, 15);
  s.eval_every.steps = (int64_t)gt_rng_below(&rng, 5);
  s.test_samples = (size_t)gt_rng_below(&rng, 3) * 20;
  s.checkpoint_every.steps = (int64_t)gt_rng_below(&rng, 6);
  if (s.checkpoint_every.steps == 0 && !replicas) s.checkpoint_every.minutes = 0.0005;
  s.bad_every = gt_rng_below(&rng, 2) ? 40 : 0;
  s.rounds = gt_rng_below(&rng, 2) ? 0.05 : 0;
  s.no_data = !replicas && gt_rng_below(&rng, 16) == 0;
  s.clip = gt_rng_below(&rng, 2) ? 1.5 : 0;
  if (replicas) random_replicas(&s, &rng);
  return s;
}

static void finish(world *w) {
  const p_cases *c = p_cases_of(w);
  all.clipped += c->clipped;
  all.dropped += c->dropped;
  all.held += c->held;
  all.waited[0] += c->waited[0];
  all.waited[1] += c->waited[1];
  all.late += c->late;
  all.meanwhile += c->meanwhile;
  replaced += w->replaced;
  w_close(w);
}

static void step(world *w) {
  w_check(w, w_step(w));
}

/* ---- without disturbances -------------------------------------------------------------------- */

static void test_bits(void) {
  for (uint64_t seed = 0; seed < cases(900, 150); seed++) {
    w_spec s = random_spec(seed, seed % 3 == 0);
    if (seed % 12 == 1) s.places = 1;
    world *w = w_open(&s);
    w_run(w);
    p_check_end(w);
    for (size_t i = 0; i < w->n; i++) {
      const gt_ps_view v = w_view(w, i);
      w_check(w, v.loss_sum == p_loss(&w->regions[i]));
      w_check(w, v.done == 1 && gt_ps_steps_left(w->regions[i].ps) == 0);
    }
    finish(w);
  }
  assert_true(all.dropped > 0 && all.clipped > (int64_t)cases(600, 100) && all.meanwhile > 0);
}

/* Evaluations after every so many steps in every region, never after the last; a region without a
   judging stage takes part. */
static void test_evaluations(void) {
  for (uint64_t seed = 0; seed < 100; seed++) {
    w_spec s = random_spec(1000 + seed, seed % 4 == 0);
    s.eval_every.steps = 1 + (int64_t)(seed % 3);
    s.test_samples = 30;
    world *w = w_open(&s);
    w_run(w);
    p_check_end(w);
    for (size_t i = 0; i < w->n; i++)
      w_check(w, w->regions[i].evals ==
                     (s.steps[p_replica_of(&w->regions[i])] - 1) / s.eval_every.steps);
    finish(w);
  }
}

static void scored(void *ctx, const gt_ps_score *score) {
  w_region *r = ctx;
  r->evals = -1;
  p_check_score(r, score);
}

static bool all_scored(const world *w) {
  for (size_t i = 0; i < w->n; i++)
    if (w->regions[i].evals >= 0) return false;
  return true;
}

/* Opens a round as the lead does at the end, and waits until it is whole. */
static void last_round(world *w) {
  while (w_view(w, 0).whole_round < w_view(w, 0).round) step(w);
  gt_ps_last_round(w->regions[0].ps, w->now);
  const int64_t last = w_view(w, 0).round;
  for (size_t i = 0; i < w->n; i++)
    while (w_view(w, i).whole_round < last) step(w);
  w_check(w, p_steps_at(w, 0, last) == w->spec.steps[0]);
}

/* At the end of a run: a pass of the pipeline, then the last round; also after the run is lost and
   ends again, even before all workers have started. */
static void test_the_end(void) {
  int64_t early = 0;
  for (uint64_t seed = 0; seed < 100; seed++) {
    w_spec s = random_spec(2000 + seed, false);
    s.test_samples = 30;
    s.no_data = false;
    s.rounds = 0;
    world *w = w_open(&s);
    w_run(w);
    if (seed % 2) {
      last_round(w);
      w_crash(w);
      w_run(w);
    }
    for (size_t i = 0; i < w->n; i++) {
      w_region *r = &w->regions[i];
      early += gt_ps_absent(r->ps, 0);
      gt_ps_evaluate(r->ps, gt_vec_of(r->params, r->nparams), gt_vec_of(r->buffers, r->nbuffers),
                     scored, r, w->now);
    }
    while (!all_scored(w)) step(w);
    last_round(w);
    p_check_end(w);
    finish(w);
  }
  assert_true(early > 0);
}

/* ---- non-finite values ----------------------------------------------------------------------- */

/* All regions drop the same steps, and end the run together, with the same code. */
static void test_limit(void) {
  int64_t ended = 0;
  const size_t n = cases(300, 50);
  for (uint64_t seed = 0; seed < n; seed++) {
    w_spec s = random_spec(3000 + seed, false);
    s.bad_every = 10;
    s.nonfinite_limit = 1 + (int)(seed % 3);
    world *w = w_open(&s);
    w_run(w);
    const gt_ps_view first = w_view(w, 0);
    for (size_t i = 0; i < w->n; i++) {
      const gt_ps_view v = w_view(w, i);
      w_check(w, v.steps == first.steps && v.nonfinite == first.nonfinite);
      w_check(w, v.phase == first.phase && v.stop_code == first.stop_code);
      p_check_region(&w->regions[i]);
    }
    if (first.steps < s.steps[0]) /* else it could have ended first */
      w_check(w, first.stop_code == GT_ERR_LIMIT && first.nonfinite >= s.nonfinite_limit);
    ended += first.phase == GT_PS_STOPPED;
    finish(w);
  }
  assert_true(ended > (int64_t)n / 3);
}

/* ---- rounds, stops, crashes ------------------------------------------------------------------ */

/* Requests a stop: a settled region stops at once; in the middle of a step, after it, or with
   another region. */
static void ask(world *w, size_t region, gt_status code) {
  const gt_ps_view before = w_view(w, region);
  gt_ps_stop(w->regions[region].ps, code, w->now);
  const gt_ps_view after = w_view(w, region);
  if (w->spec.replicas == 1 && before.stop_code == GT_OK && before.round == before.whole_round &&
      before.phase != GT_PS_COMPLETE)
    w_check(w, (after.stop_code != GT_OK) == !before.held);
}

/* Of one replica some regions are asked to stop, at times for different reasons, and all end with
   the gravest that was in time; what they have saved is of the same step.  Regions of different
   replicas stop after steps of their own, with the same round and code; of two that open the same
   round only one may stop the run: until others hear of it they make steps.  Or the run comes to
   its end first. */
static void stop(world *w, gt_rng *rng) {
  const bool single = w->spec.replicas == 1;
  for (size_t i = single ? 1 + (size_t)gt_rng_below(rng, w->n) : 1; i > 0; i--) {
    const gt_status code = gt_rng_below(rng, 4) || !single ? GT_STOPPED : GT_ERR_LIMIT;
    ask(w, (size_t)gt_rng_below(rng, w->n), code);
    for (uint64_t k = gt_rng_below(rng, 10); k > 0 && !w_all_in(w, GT_PS_STOPPED); k--) step(w);
  }
  w_run(w);
  if (w_all_in(w, GT_PS_COMPLETE)) return;
  const gt_ps_view first = w_view(w, 0);
  for (size_t i = 0; i < w->n; i++) {
    const gt_ps_view v = w_view(w, i);
    const int64_t saved = p_steps_at(w, p_replica_of(&w->regions[i]), v.round);
    w_check(w, v.stop_code == first.stop_code && v.round == first.round);
    w_check(w, v.whole_round == v.round && saved <= v.steps);
    if (single) w_check(w, v.steps == first.steps && saved == v.steps);
  }
  stops[!single]++;
}

static void interrupt(const w_spec *s, uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 6, 0);
  world *w = w_open(s);
  for (uint64_t left = 1 + gt_rng_below(&rng, 3); left > 0; left--) {
    for (uint64_t k = gt_rng_below(&rng, s->replicas > 1 ? 600 : 400);
         k > 0 && !w_all_in(w, GT_PS_COMPLETE); k--)
      step(w);
    if (w_all_in(w, GT_PS_COMPLETE)) break;
    if (gt_rng_below(&rng, 2) && w_view(w, 0).phase == GT_PS_TRAINING)
      stop(w, &rng);
    else
      crashes[s->replicas > 1]++;
    w_crash(w);
  }
  w_run(w);
  p_check_end(w);
  finish(w);
}

/* Over a hub, the first piece of the next mean arrives while a mean waits for the norm of all
   stages. */
static void test_mean_waits_for_norm(void) {
  const w_spec s = random_spec(20421, true);
  assert_true(s.replicas == 3);
  interrupt(&s, 421);
}

static void test_interruptions(void) {
  const int64_t least = all_cases() ? 100 : 10;
  for (uint64_t seed = 0; seed < cases(3000, 400); seed++) {
    const w_spec s = random_spec(10000 + seed, false);
    interrupt(&s, seed);
  }
  all.held = 0;
  for (uint64_t seed = 0; seed < cases(1500, 100); seed++) {
    const w_spec s = random_spec(20000 + seed, true);
    interrupt(&s, seed);
  }
  print_message("stops %lld %lld, crashes %lld %lld, held %lld, waited %lld %lld, late %lld, "
                "replaced %lld, meanwhile %lld\n",
                (long long)stops[0], (long long)stops[1], (long long)crashes[0],
                (long long)crashes[1], (long long)all.held, (long long)all.waited[0],
                (long long)all.waited[1], (long long)all.late, (long long)replaced,
                (long long)all.meanwhile);
  /* all cases occurred */
  assert_true(stops[0] > 100 && crashes[0] > 100 && all.waited[0] > 100);
  assert_true(stops[1] > least && crashes[1] > least && all.held > least && all.waited[1] > least);
  assert_true(all.late > least && replaced > least && all.meanwhile > least);
}

/* All stop with the same code when the limit on bytes is reached, and continue with a higher
   limit. */
static void test_wan_bytes(void) {
  size_t ended = 0;
  const size_t n = cases(200, 60);
  for (uint64_t seed = 0; seed < n; seed++) {
    w_spec s = random_spec(30000 + seed, true);
    gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 7, 0);
    s.wan_bytes_limit = 200 + (double)gt_rng_below(&rng, 8000);
    world *w = w_open(&s);
    w_run(w);
    if (!w_all_in(w, GT_PS_COMPLETE)) {
      for (size_t i = 0; i < w->n; i++) w_check(w, w_view(w, i).stop_code == GT_ERR_LIMIT);
      w_check(w, w->bytes > s.wan_bytes_limit);
      ended++;
      w->spec.wan_bytes_limit = 0;
      w_crash(w);
      w_run(w);
    }
    p_check_end(w);
    finish(w);
  }
  assert_true(ended > n / 4 && ended < n);
}

/* ---- messages -------------------------------------------------------------------------------- */

typedef struct {
  gt_frame_header head;
  const char *words;
} refusal;

/* A world of two regions, in the middle of a run. */
static world *open_two(double clip) {
  const w_spec s = {.replicas = 1, .places = 2, .steps = {8}, .seed = 4, .clip = clip};
  world *w = w_open(&s);
  while (w_view(w, 1).steps < 3 || w_view(w, 1).held) step(w);
  return w;
}

static void refuse(world *w, const refusal *bad, size_t n) {
  static const float body[P_PARAMS];
  const gt_ps_view before = w_view(w, 1);
  for (; n > 0; n--, bad++) {
    must_fail(gt_ps_message(w->regions[1].ps, 0, &bad->head, body, w->now), GT_ERR_FAULT,
              bad->words);
    const gt_ps_view after = w_view(w, 1);
    assert_true(after.round == before.round && after.steps == before.steps);
  }
}

static void close_two(world *w) {
  w_run(w);
  p_check_end(w);
  w_close(w);
}

/* Invalid squares of tensors, from a region that has some. */
static void test_squares_refused(void) {
  world *w = open_two(0.5);
  const uint64_t next = (uint64_t)w_view(w, 1).steps + 1,
                 tensors = p_shape_of(&w->regions[0])->ntensors;
  static const char squares[] = "the squares of";
  const refusal bad[] = {
      {{.kind = GT_MSG_STRATEGY, .value = next}, squares}, /* told, and no squares before it */
      {{.kind = GT_MSG_STRATEGY, .value = next, .message_bytes = 8 * tensors + 8}, squares},
      {{.kind = GT_MSG_STRATEGY, .value = next, .message_bytes = 4}, "4 bytes; expected 0"},
      {{.kind = GT_MSG_STRATEGY, .value = next, .message_bytes = 8 * tensors, .range = 1}, squares},
      {{.kind = GT_MSG_STRATEGY, .value = next - 1, .message_bytes = 8 * tensors}, squares},
      {{.kind = GT_MSG_STRATEGY, .value = next + 1, .message_bytes = 8 * tensors}, squares},
      {{.kind = GT_MSG_STRATEGY, .value = UINT64_MAX, .message_bytes = 8 * tensors}, squares},
  };
  refuse(w, bad, COUNT(bad));
  close_two(w);
}

/* Invalid messages of a region of a pipeline. */
static void test_refused(void) {
  world *w = open_two(0);
  const uint64_t steps = (uint64_t)w_view(w, 1).steps;
  static const char mark[] = "mark", made[] = "steps of the pipeline";
  const refusal bad[] = {
      {{.kind = GT_MSG_UPDATE, .sequence = 1, .message_bytes = P_PARAMS * sizeof(float)}, "kind 1"},
      {{.kind = GT_MSG_STATE, .sequence = 1, .message_bytes = P_PARAMS * sizeof(float)}, "kind 2"},
      {{.kind = GT_MSG_STRATEGY, .value = steps}, mark},
      {{.kind = GT_MSG_STRATEGY, .value = steps + 3}, mark},
      {{.kind = GT_MSG_STRATEGY, .value = steps + 1, .detail = 2}, mark},
      {{.kind = GT_MSG_STRATEGY, .value = UINT64_MAX}, mark},
      {{.kind = GT_MSG_STRATEGY, .value = steps + 1, .message_bytes = 8}, "squares of 1 tensors"},
      {{.kind = GT_MSG_ROUND, .value = 1, .sequence = steps - 1}, made},
      {{.kind = GT_MSG_ROUND, .value = 1, .sequence = steps + 1}, made},
      {{.kind = GT_MSG_ROUND, .value = 1, .sequence = UINT64_MAX}, made},
      {{.kind = GT_MSG_DONE, .value = steps + 1}, made},
      {{.kind = GT_MSG_DONE, .value = steps - 1}, made},
  };
  refuse(w, bad, COUNT(bad));
  /* a later round in a header opens none: ROUND does, and has its step */
  const gt_frame_header later = {.kind = GT_MSG_PING, .round = 1};
  must(gt_ps_message(w->regions[1].ps, 0, &later, NULL, w->now));
  assert_int_equal(w_view(w, 1).round, 0);
  close_two(w);
}

/* Data comes only from regions with the same stages, and messages about a step only from regions of
   the replica. */
static void test_groups(void) {
  const w_spec s = {.replicas = 2, .places = 2, .steps = {4, 4}, .strategy = "ssgd", .seed = 1};
  static const float body[P_FLOATS];
  world *w = w_open(&s);
  const gt_frame_header data = {.kind = GT_MSG_UPDATE,
                                .sequence = 1,
                                .value = 1,
                                .message_bytes = w->regions[0].nparams * sizeof(float)};
  const gt_frame_header told = {.kind = GT_MSG_STRATEGY, .value = 1};
  for (size_t from = 1; from < w->n; from++) {
    const bool replica = from == 1, member = from == 2;
    assert_int_equal(gt_ps_message(w->regions[0].ps, from, &told, NULL, w->now),
                     member ? GT_OK : GT_ERR_FAULT);
    if (replica) continue;
    assert_int_equal(gt_ps_message(w->regions[0].ps, from, &data, body, w->now), GT_ERR_FAULT);
    must_contain(gt_error_text(),
                 "expected one from a region that holds the same stages in another copy");
  }
  w_close(w);
}

TESTS(test_bits, test_evaluations, test_the_end, test_limit, test_mean_waits_for_norm,
      test_interruptions, test_wan_bytes, test_squares_refused, test_refused, test_groups)
