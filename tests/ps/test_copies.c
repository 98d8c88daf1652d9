/* Several copies of a pipeline: whatever the delays, the parameters at the end are, to the bit, those
   of a computation without PSs: with ssgd every round is a step with the weighted mean of the copies'
   gradients, with sma the weighted mean of their models; with asgd and asgd-ga every update counts
   once in every copy, and with ama the model after every event is what steps and arrivals so far make
   of it.  A step that is not finite in one region is dropped in its copy alone, and is part of no
   round or message; copies may have different numbers of steps; gradients are clipped by the norm of
   all stages, with ssgd that of the mean.  Checkpoints of a copy are of one step, whoever opens the
   round; a stop, also by limits.wan_bytes, or a crash changes nothing of the result.  All this is so
   over every topology, but for the order of the sums of a tree and a ring.  What workers read of the
   model does not change until they have answered. */
#include "cases.h"
#include "world_copies.h"

static int64_t held, waited, late, replaced, meanwhile, stops, crashes, dropped, clipped;

static c_spec random_spec(uint64_t seed) {
  static const gt_strategy strategies[] = {GT_STRATEGY_SSGD, GT_STRATEGY_SMA, GT_STRATEGY_ASGD,
                                           GT_STRATEGY_ASGD_GA, GT_STRATEGY_AMA};
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 5, 0);
  c_spec s = {.seed = seed};
  s.copies = 2 + (size_t)gt_rng_below(&rng, C_COPIES - 1);
  s.places = 1 + (size_t)gt_rng_below(&rng, C_PLACES);
  s.strategy = strategies[gt_rng_below(&rng, 5)];
  s.gradients = gt_rng_below(&rng, 2);
  s.means = s.copies == 2 && gt_rng_below(&rng, 2); /* 1/2 does not round */
  s.clip = gt_rng_below(&rng, 2) ? 0.9 : 0;
  s.topology = gt_rng_below(&rng, 2) ? (gt_topology)gt_rng_below(&rng, 4) : GT_TOPOLOGY_MESH;
  if (s.topology == GT_TOPOLOGY_RING && c_free(&s)) s.topology = GT_TOPOLOGY_TREE;
  s.period = 1 + (int64_t)gt_rng_below(&rng, 4);
  s.checkpoint_every = (int64_t)gt_rng_below(&rng, 6);
  s.bad_every = gt_rng_below(&rng, 2) ? 20 : 0;
  s.rounds = gt_rng_below(&rng, 2) ? 0.05 : 0;
  s.eval_every = (int64_t)gt_rng_below(&rng, 4);
  const int64_t steps = 2 + (int64_t)gt_rng_below(&rng, 12);
  const bool alike = gt_rng_below(&rng, 2);
  for (size_t c = 0; c < s.copies; c++)
    s.steps[c] = alike ? steps : 1 + (int64_t)gt_rng_below(&rng, 14);
  return s;
}

/* ---- what must be: rounds -------------------------------------------------------------------- */

typedef struct {
  float model[C_FLOATS]; /* parameters, buffers */
  float gives[C_FLOATS]; /* to the round: a gradient, or a model */
  gt_optim *optim;
} judged;

typedef struct {
  judged of[C_PLACES][C_COPIES];
  bool takes_part[C_COPIES];
  int64_t next[C_COPIES]; /* batch */
} judgement;

static bool averages(const c_world *w) {
  return w->spec.strategy == GT_STRATEGY_SMA;
}

/* A step of all places of a copy, clipped by the norm of all. */
static void step(const c_world *w, judgement *all, size_t copy, float (*grads)[C_FLOATS]) {
  const float *parts[C_PLACES];
  for (size_t p = 0; p < w->spec.places; p++) parts[p] = grads[p];
  const double norm = c_norm(w, all->of[0][copy].optim, parts);
  clipped += norm > w->spec.clip;
  for (size_t p = 0; p < w->spec.places; p++)
    gt_optim_step_of(all->of[p][copy].optim, gt_vec_of(all->of[p][copy].model, C_PARAMS),
                     gt_vec_of(grads[p], C_PARAMS), gt_vec_of(NULL, C_PARAMS), norm);
}

/* The copy's next contribution, from its next steps that are not dropped. */
static void contribute(const c_world *w, judgement *all, size_t copy) {
  const int64_t most = averages(w) ? w->spec.period : 1, end = w->spec.steps[copy];
  float grads[C_PLACES][C_FLOATS] = {0}, after[C_BUFFERS];
  all->takes_part[copy] = false;
  for (int64_t made = 0; made < most && all->next[copy] < end; all->next[copy]++) {
    if (c_dropped(w, copy, all->next[copy])) {
      dropped++;
      continue;
    }
    for (size_t p = 0; p < w->spec.places; p++) {
      float *model = all->of[p][copy].model;
      c_push(w, &w->regions[p * w->spec.copies + copy], all->next[copy], model, model + C_PARAMS,
             grads[p], after);
      memcpy(model + C_PARAMS, after, sizeof after);
    }
    if (averages(w)) step(w, all, copy, grads);
    all->takes_part[copy] = true;
    made++;
  }
  for (size_t p = 0; p < w->spec.places; p++)
    memcpy(all->of[p][copy].gives, averages(w) ? all->of[p][copy].model : grads[p],
           sizeof grads[p]);
}

static bool form(const c_world *w, const judgement *all, size_t place, float *mean, size_t n) {
  double total = 0;
  bool first = true;
  for (size_t c = 0; c < w->spec.copies; c++)
    if (all->takes_part[c]) total += w->weights[c];
  for (size_t c = 0; c < w->spec.copies; c++) {
    if (!all->takes_part[c]) continue;
    const float share = (float)(w->weights[c] / total);
    const gt_vec x = gt_vec_of((float *)(uintptr_t)all->of[place][c].gives, n),
                 sum = gt_vec_of(mean, n);
    if (first)
      gt_vec_set_scaled(sum, share, x);
    else
      gt_vec_axpy(sum, share, x);
    first = false;
  }
  return !first;
}

/* false: no copy has taken part. */
static bool make_round(const c_world *w, judgement *all) {
  const size_t n = averages(w) ? C_FLOATS : C_PARAMS;
  float means[C_PLACES][C_FLOATS] = {0};
  for (size_t c = 0; c < w->spec.copies; c++) contribute(w, all, c);
  for (size_t p = 0; p < w->spec.places; p++)
    if (!form(w, all, p, means[p], n)) return false;
  for (size_t c = 0; c < w->spec.copies; c++)
    if (!averages(w)) step(w, all, c, means);
  for (size_t p = 0; averages(w) && p < w->spec.places; p++)
    for (size_t c = 0; c < w->spec.copies; c++)
      memcpy(all->of[p][c].model, means[p], sizeof means[p]);
  return true;
}

/* What all regions have at the end. */
static void judge(const c_world *w, judgement *all) {
  const size_t copies = w->spec.copies;
  *all = (judgement){0};
  for (size_t i = 0; i < w->n; i++) {
    judged *j = &all->of[i / copies][i % copies];
    j->optim = c_optim(w);
    c_begin(&w->regions[i], j->model, j->model + C_PARAMS);
  }
  while (make_round(w, all)) continue;
  for (size_t i = 0; i < w->n; i++) gt_optim_close(all->of[i / copies][i % copies].optim);
}

/* A tree and a ring add in another order. */
static bool is_same(const c_world *w, const float *x, const float *must, size_t n) {
  const bool ordered = w->spec.topology == GT_TOPOLOGY_MESH || w->spec.topology == GT_TOPOLOGY_HUB;
  if (ordered) return c_same(x, must, n * sizeof *x);
  for (size_t j = 0; j < n; j++)
    if (fabsf(x[j] - must[j]) > 1e-4f) return false;
  return true;
}

static void check_rounds(c_world *w) {
  judgement must;
  judge(w, &must);
  for (size_t i = 0; i < w->n; i++) {
    const c_region *r = &w->regions[i];
    const float *model = must.of[r->place][r->copy].model;
    c_check(w, is_same(w, r->params, model, C_PARAMS));
    c_check(w, is_same(w, r->buffers, model + C_PARAMS, C_BUFFERS));
    c_check(w, c_same(r->params, w->regions[r->twins[0]].params, sizeof r->params));
  }
}

/* ---- what must be: updates ------------------------------------------------------------------- */

/* The sum of the gradients of all steps of a region. */
static void sum_up(const c_world *w, const c_region *r, float *sum) {
  float grads[C_PARAMS], after[C_BUFFERS];
  memset(sum, 0, C_PARAMS * sizeof *sum);
  for (int64_t b = 0; b < w->spec.steps[r->copy]; b++) {
    if (c_dropped(w, r->copy, b)) continue;
    c_push(w, r, b, r->params, r->buffers, grads, after);
    for (size_t j = 0; j < C_PARAMS; j++) sum[j] += grads[j];
  }
}

/* Every update is there once: no sum of them rounds, and gradients do not depend on parameters. */
static void check_updates(const c_world *w) {
  const float lr = 0.125f, share = w->spec.means ? 0.5f : 1;
  for (size_t i = 0; i < w->n; i++) {
    const c_region *r = &w->regions[i];
    float must[C_PARAMS], buffers[C_BUFFERS], sum[C_PARAMS];
    c_begin(r, must, buffers);
    for (size_t c = 0; c < w->spec.copies; c++) {
      sum_up(w, &w->regions[r->twins[c]], sum);
      for (size_t j = 0; j < C_PARAMS; j++) must[j] -= lr * (c == r->copy ? 1 : share) * sum[j];
    }
    for (size_t j = 0; j < C_PARAMS; j++) c_check(w, r->params[j] == must[j]);
  }
}

/* ---- the end --------------------------------------------------------------------------------- */

static void check_end(c_world *w) {
  c_check(w, c_all_in(w, GT_PS_COMPLETE));
  for (size_t i = 0; i < w->n; i++) {
    const c_region *r = &w->regions[i];
    const gt_ps_view v = c_look(w, i);
    int64_t bad = 0;
    for (int64_t b = 0; b < w->spec.steps[r->copy]; b++) bad += c_dropped(w, r->copy, b);
    c_check(w, v.steps == w->spec.steps[r->copy] && v.nonfinite == bad);
    c_check(w, v.samples == (r->place == 0 ? 10 * (v.steps - bad) : 0));
  }
  if (!c_free(&w->spec))
    check_rounds(w);
  else if (w->spec.strategy != GT_STRATEGY_AMA && w->spec.clip <= 0)
    check_updates(w);
}

static void finish(c_world *w) {
  held += w->held;
  waited += w->waited;
  late += w->late;
  replaced += w->replaced;
  meanwhile += w->meanwhile;
  c_close(w);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_bits(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < cases(300, 50); seed++) {
    const c_spec s = random_spec(seed);
    c_world *w = c_open(&s);
    c_run(w);
    check_end(w);
    finish(w);
  }
  assert_true(dropped > 0 && clipped > 0 && meanwhile > 0);
}

/* Regions of different copies stop after steps of their own, with the same round and code.  Of two
   that open the same round only one may stop the run: until others hear of it they make steps. */
static void stop(c_world *w, gt_rng *rng) {
  gt_ps_stop(w->regions[gt_rng_below(rng, w->n)].ps, GT_STOPPED, w->now);
  c_run(w);
  if (c_all_in(w, GT_PS_COMPLETE)) return;
  for (size_t i = 0; i < w->n; i++) {
    const gt_ps_view v = c_look(w, i);
    c_check(w, v.stop_code == GT_STOPPED && v.round == c_look(w, 0).round);
    c_check(w, v.whole_round == v.round && w->rounds_at[w->regions[i].copy][v.round] <= v.steps);
  }
  stops++;
}

static void test_interruptions(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < cases(1500, 100); seed++) {
    const c_spec s = random_spec(10000 + seed);
    gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 6, 0);
    c_world *w = c_open(&s);
    for (uint64_t left = 1 + gt_rng_below(&rng, 3); left > 0; left--) {
      for (uint64_t k = gt_rng_below(&rng, 600); k > 0 && !c_all_in(w, GT_PS_COMPLETE); k--)
        c_step(w);
      if (c_all_in(w, GT_PS_COMPLETE)) break;
      if (gt_rng_below(&rng, 2))
        stop(w, &rng);
      else
        crashes++;
      c_crash(w);
    }
    c_run(w);
    check_end(w);
    finish(w);
  }
  const int64_t least = all_cases() ? 100 : 10;
  assert_true(stops > least && crashes > least);
  /* all cases were there */
  print_message("held %lld, waited %lld, late %lld, replaced %lld, meanwhile %lld\n",
                (long long)held, (long long)waited, (long long)late, (long long)replaced,
                (long long)meanwhile);
  assert_true(held > least && waited > least && late > least && replaced > least &&
              meanwhile > least);
}

/* All stop with the same code when more has been sent than is allowed, and go on with a higher
   limit. */
static void test_wan_bytes(void **state) {
  (void)state;
  size_t ended = 0;
  const size_t n = cases(200, 60);
  for (uint64_t seed = 0; seed < n; seed++) {
    c_spec s = random_spec(20000 + seed);
    gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 7, 0);
    s.wan_limit = 200 + (double)gt_rng_below(&rng, 4000);
    c_world *w = c_open(&s);
    c_run(w);
    if (!c_all_in(w, GT_PS_COMPLETE)) {
      for (size_t i = 0; i < w->n; i++) c_check(w, c_look(w, i).stop_code == GT_ERR_LIMIT);
      c_check(w, w->bytes > s.wan_limit);
      ended++;
      w->spec.wan_limit = 0;
      c_crash(w);
      c_run(w);
    }
    check_end(w);
    finish(w);
  }
  assert_true(ended > n / 4 && ended < n);
}

/* Data comes from twins alone, and news of a step from mates. */
static void test_refused(void **state) {
  (void)state;
  const c_spec s = {.copies = 2,
                    .places = 2,
                    .steps = {4, 4},
                    .strategy = GT_STRATEGY_SSGD,
                    .period = 1,
                    .seed = 1};
  static const float body[C_FLOATS];
  c_world *w = c_open(&s);
  const gt_frame_header data = {
      .kind = GT_MSG_UPDATE, .sequence = 1, .value = 1, .message_bytes = C_PARAMS * sizeof(float)};
  const gt_frame_header told = {.kind = GT_MSG_STRATEGY, .value = 1};
  for (size_t from = 1; from < w->n; from++) {
    const bool twin = from == 1, mate = from == 2;
    assert_int_equal(gt_ps_message(w->regions[0].ps, from, &told, NULL, w->now),
                     mate ? GT_OK : GT_ERR_FAULT);
    if (twin) continue;
    assert_int_equal(gt_ps_message(w->regions[0].ps, from, &data, body, w->now), GT_ERR_FAULT);
    assert_non_null(strstr(gt_error_text(), "holds the same stages in another copy is needed"));
  }
  c_close(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bits),
      cmocka_unit_test(test_interruptions),
      cmocka_unit_test(test_wan_bytes),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
