/* Several copies of a pipeline: whatever the delays, the parameters at the end are, to the bit, those
   of a computation without PSs: with ssgd every round is a step with the weighted mean of the copies'
   gradients, with sma the weighted mean of their models; a step that is not finite in one region is
   dropped in its copy alone, and is part of no round; copies may have different numbers of steps.
   Checkpoints of a copy are of one step, whoever opens the round, and a stop or a crash changes
   nothing of the result. */
#include "world_copies.h"

static int64_t held, waited, late, stops, crashes, dropped;

static c_spec random_spec(uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 5, 0);
  c_spec s = {.seed = seed};
  s.copies = 2 + (size_t)gt_rng_below(&rng, C_COPIES - 1);
  s.places = 1 + (size_t)gt_rng_below(&rng, C_PLACES);
  s.averages = gt_rng_below(&rng, 2);
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

/* ---- what must be ---------------------------------------------------------------------------- */

typedef struct {
  float model[C_FLOATS]; /* parameters, buffers */
  float gives[C_FLOATS]; /* to the round: a gradient, or a model */
  bool takes_part;
  int64_t next; /* batch */
  gt_optim *optim;
} judged;

/* The copy's next contribution, from its next steps that are not dropped. */
static void contribute(const c_world *w, const c_region *r, judged *j) {
  const int64_t most = w->spec.averages ? w->spec.period : 1, end = w->spec.steps[r->copy];
  float grads[C_PARAMS] = {0}, after[C_BUFFERS];
  j->takes_part = false;
  for (int64_t made = 0; made < most && j->next < end; j->next++) {
    if (c_dropped(w, r->copy, j->next)) {
      dropped++;
      continue;
    }
    c_push(w, r, j->next, j->model, j->model + C_PARAMS, grads, after);
    memcpy(j->model + C_PARAMS, after, sizeof after);
    if (w->spec.averages)
      gt_optim_step(j->optim, gt_vec_of(j->model, C_PARAMS), gt_vec_of(grads, C_PARAMS),
                    gt_vec_of(NULL, C_PARAMS));
    j->takes_part = true;
    made++;
  }
  memcpy(j->gives, w->spec.averages ? j->model : grads,
         w->spec.averages ? sizeof j->gives : sizeof grads);
}

static bool form(const c_world *w, const judged *all, float *mean, size_t n) {
  double total = 0;
  bool first = true;
  for (size_t c = 0; c < w->spec.copies; c++)
    if (all[c].takes_part) total += w->weights[c];
  for (size_t c = 0; c < w->spec.copies; c++) {
    if (!all[c].takes_part) continue;
    const float share = (float)(w->weights[c] / total);
    const gt_vec x = gt_vec_of((float *)(uintptr_t)all[c].gives, n), sum = gt_vec_of(mean, n);
    if (first)
      gt_vec_set_scaled(sum, share, x);
    else
      gt_vec_axpy(sum, share, x);
    first = false;
  }
  return !first;
}

/* What the regions with this place have at the end. */
static void judge(const c_world *w, size_t place, judged *all) {
  const size_t copies = w->spec.copies, n = w->spec.averages ? C_FLOATS : C_PARAMS;
  float mean[C_FLOATS];
  for (size_t c = 0; c < copies; c++) {
    all[c] = (judged){.optim = c_optim()};
    c_begin(&w->regions[place * copies + c], all[c].model, all[c].model + C_PARAMS);
  }
  for (;;) {
    for (size_t c = 0; c < copies; c++) contribute(w, &w->regions[place * copies + c], &all[c]);
    if (!form(w, all, mean, n)) break;
    for (size_t c = 0; c < copies; c++)
      if (w->spec.averages)
        memcpy(all[c].model, mean, sizeof mean);
      else
        gt_optim_step(all[c].optim, gt_vec_of(all[c].model, C_PARAMS), gt_vec_of(mean, C_PARAMS),
                      gt_vec_of(NULL, C_PARAMS));
  }
  for (size_t c = 0; c < copies; c++) gt_optim_close(all[c].optim);
}

static void check_end(c_world *w) {
  judged must[C_COPIES];
  c_check(w, c_all_in(w, GT_PS_COMPLETE));
  for (size_t i = 0; i < w->n; i++) {
    const c_region *r = &w->regions[i];
    const gt_ps_view v = c_look(w, i);
    int64_t bad = 0;
    for (int64_t b = 0; b < w->spec.steps[r->copy]; b++) bad += c_dropped(w, r->copy, b);
    c_check(w, v.steps == w->spec.steps[r->copy] && v.nonfinite == bad);
    c_check(w, v.samples == (r->place == 0 ? 10 * (v.steps - bad) : 0));
    judge(w, r->place, must);
    c_check(w, memcmp(r->params, must[r->copy].model, sizeof r->params) == 0);
    c_check(w, memcmp(r->buffers, must[r->copy].model + C_PARAMS, sizeof r->buffers) == 0);
    c_check(w, memcmp(r->params, w->regions[r->twins[0]].params, sizeof r->params) == 0);
  }
}

static void finish(c_world *w) {
  held += w->held;
  waited += w->waited;
  late += w->late;
  c_close(w);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_bits(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 300; seed++) {
    const c_spec s = random_spec(seed);
    c_world *w = c_open(&s);
    c_run(w);
    check_end(w);
    finish(w);
  }
  assert_true(dropped > 0);
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
  for (uint64_t seed = 0; seed < 1500; seed++) {
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
  assert_true(stops > 100 && crashes > 100);
  assert_true(held > 100 && waited > 100 && late > 100); /* all cases were there */
}

/* Data comes from twins alone, and news of a step from mates. */
static void test_refused(void **state) {
  (void)state;
  const c_spec s = {.copies = 2, .places = 2, .steps = {4, 4}, .period = 1, .seed = 1};
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
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
