/* Regions are lost and return, at any event, also the decider, and also halves of the regions lose
   each other: the others continue, with equal models where the strategy makes them equal; a lost
   weight is in no divisor; no two halves are the run; nothing deadlocks. */
#include "cases.h"
#include "internal.h"
#include "world.h"
#include "../strategies.h"

#include <float.h>

#define NOTICE (80 * W_MS)
#define GRACE  GT_SECOND /* after which a minority ends */

/* ---- scenarios ------------------------------------------------------------------------------- */

static const char *const strategies[] = {"ssgd", "sma", "asgd", "asgd-ga", "ama"};
static const gt_codec_kind codecs[] = {GT_CODEC_NONE, GT_CODEC_TOPK, GT_CODEC_INT8, GT_CODEC_MASK,
                                       GT_CODEC_POWERSGD};

static w_spec scenario(uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 11, 0);
  const char *strategy = strategies[seed % 5];
  const bool waits = seed % 5 < 2, sma = seed % 5 == 1;
  const size_t n = 2 + (size_t)gt_rng_below(&rng, W_REGIONS - 1);
  w_spec s = w_random(strategy, gt_rng_below(&rng, 3) == 0, n, seed);
  s.until.epochs = 1 + (double)gt_rng_below(&rng, 2);
  s.test_samples = gt_rng_below(&rng, 3) ? 0 : 20;
  s.checkpoint_every.steps = 1 + (int64_t)gt_rng_below(&rng, 4);
  s.write_s = gt_rng_below(&rng, 2) ? 0.001 : 0.05;
  s.no_data = gt_rng_below(&rng, 8) == 0;
  s.change = true;
  s.tie = (size_t)gt_rng_below(&rng, n + 1);
  s.optim = gt_rng_below(&rng, 2) ? w_sgd(0.02, 0.5) : w_adamw();
  for (size_t i = 0; i < n; i++) {
    s.weights[i] = s.by_samples ? 0.5 + gt_rng_uniform(&rng) : 1;
    s.slow[i] = gt_rng_below(&rng, 4) ? 1 : 3;
  }
  if (gt_rng_below(&rng, 2))
    for (size_t i = 0; i < n; i++) s.lag[i] = gt_rng_below(&rng, 4) ? 2 * W_MS : 20 * W_MS;
  w_place_over(&s, w_topologies[gt_rng_below(&rng, waits ? 4 : W_FORWARDING)]);
  gt_codec_kind kind = codecs[gt_rng_below(&rng, waits ? 5 : 3)];
  if (s.topology == GT_TOPOLOGY_RING && kind != GT_CODEC_MASK && kind != GT_CODEC_POWERSGD)
    kind = GT_CODEC_NONE;
  if (strcmp(strategy, "ama") == 0) kind = GT_CODEC_NONE;
  if (kind != GT_CODEC_NONE) s.codec = w_codec(kind, 0.5);
  if (sma) {
    s.options.period = 2 + (int64_t)gt_rng_below(&rng, 3);
    s.options.fragments = kind == GT_CODEC_POWERSGD ? 1 : 1 + (int64_t)gt_rng_below(&rng, 2);
    s.options.delay = (int64_t)gt_rng_below(&rng, (uint64_t)s.options.period);
    s.options.outer = gt_rng_below(&rng, 2) ? GT_OUTER_NESTEROV : GT_OUTER_NONE;
    s.options.outer_lr = 0.7;
    s.options.outer_momentum = 0.5;
  }
  return s;
}

/* ---- a run with losses ----------------------------------------------------------------------- */

typedef struct {
  world *w;
  gt_rng rng;
  gt_ns alone[W_REGIONS]; /* since when a region is a minority or out */
  bool cut, holds;
  int64_t kills, returns, cuts, ends, held; /* how often each occurred */
} run;

static size_t alive(const world *w) {
  size_t n = 0;
  for (size_t i = 0; i < w->n; i++) n += !w->regions[i].dead;
  return n;
}

/* Returns a region that is dead, or one that is not; nregions: none. */
static size_t any(run *r, bool dead) {
  world *w = r->w;
  const size_t first = (size_t)gt_rng_below(&r->rng, w->n);
  for (size_t i = 0; i < w->n; i++)
    if (w->regions[(first + i) % w->n].dead == dead) return (first + i) % w->n;
  return w->n;
}

static void halve(run *r) {
  world *w = r->w;
  const uint64_t sides = gt_rng_below(&r->rng, (uint64_t)1 << w->n);
  r->cut = true;
  r->cuts++;
  for (size_t a = 0; a < w->n; a++)
    for (size_t b = a + 1; b < w->n; b++)
      if ((sides >> a & 1) != (sides >> b & 1) && !w->regions[a].dead && !w->regions[b].dead)
        w_cut(w, a, b, NOTICE);
}

/* What a region sends to another one arrives later: no region is lost. */
static void hold(run *r) {
  world *w = r->w;
  const size_t a = (size_t)gt_rng_below(&r->rng, w->n), b = (size_t)gt_rng_below(&r->rng, w->n);
  const w_link *back = &w->links[b][a];
  w_link *link = &w->links[a][b];
  if (a == b || w->regions[a].dead || w->regions[b].dead || link->cut || back->cut || link->down ||
      back->down || link->notice != GT_NEVER || back->notice != GT_NEVER)
    return;
  link->cut = true;
  link->heal = w->now + 1 + (gt_ns)gt_rng_below(&r->rng, (uint64_t)(4 * NOTICE));
  r->held++;
}

static void disturb(run *r) {
  world *w = r->w;
  if (r->holds && gt_rng_below(&r->rng, 2)) {
    hold(r);
    return;
  }
  const uint64_t what = gt_rng_below(&r->rng, 8);
  const size_t dead = any(r, true), region = any(r, false);
  if (what < 6 && region < w->n && alive(w) > 1 && (dead == w->n || what < 2)) {
    w_kill(w, region, NOTICE);
    r->kills++;
  } else if (what < 7 && dead < w->n && !w->regions[dead].refused) {
    w_return(w, dead, NOTICE);
    r->alone[dead] = w->now;
    r->returns++;
  } else if (!r->cut && alive(w) > 1) {
    halve(r);
  }
}

/* No region is left that could take another one in. */
static bool all_outside(const world *w) {
  for (size_t i = 0; i < w->n; i++)
    if (!w->regions[i].dead && !w_view(w, i).outside) return false;
  return true;
}

/* Ends the regions that can only stop. */
static void end_alone(run *r) {
  world *w = r->w;
  for (size_t i = 0; i < w->n; i++) {
    if (w->regions[i].dead) continue;
    const gt_ps_view v = w_view(w, i);
    if (v.phase == GT_PS_STOPPED || w->regions[i].refused) {
      w_kill(w, i, NOTICE);
      r->ends++;
    } else if (v.outside && (all_outside(w) || (r->cut && w->now > r->alone[i] + 5 * GRACE))) {
      w_kill(w, i, NOTICE);
    } else if (!v.minority && !v.out && !v.outside) {
      r->alone[i] = w->now;
    } else if (!v.outside && w->now > r->alone[i] + GRACE) {
      gt_ps_stop(w->regions[i].ps, GT_STOPPED, w->now);
      r->alone[i] = w->now;
    }
  }
}

/* Regions that have entered the same epoch have, after as many steps, the same parameters. */
static void check_steps(const world *w) {
  for (size_t a = 0; a < w->n; a++)
    for (size_t b = a + 1; b < w->n; b++) {
      const w_region *x = &w->regions[a], *y = &w->regions[b];
      if (x->dead || y->dead || gt_optim_steps(x->optim) != gt_optim_steps(y->optim)) continue;
      const gt_ps_view v = w_view(w, a), u = w_view(w, b);
      if (v.epoch == u.epoch && !v.entering && !u.entering)
        w_check(w, w_same(x->params, y->params, W_PARAMS));
    }
}

/* ---- steps in the group's model -------------------------------------------------------------- */

#define ROUNDS 64

/* Of each round and region: the region's steps at its last contribution, the epoch of the message,
   and the steps in the mean that was applied last; 0: none.  Of each region: the newest round
   applied, its start, and if it has returned and lacks the state of the group.  alone: some region
   was the only member. */
typedef struct {
  int64_t at[ROUNDS][W_REGIONS], epochs[ROUNDS][W_REGIONS], counts[ROUNDS][W_REGIONS];
  int64_t applied[W_REGIONS];
  uint64_t start[W_REGIONS];
  bool returning[W_REGIONS], alone;
  int64_t checked;
} ledger;
static ledger *known;

static void note_post(w_region *r, size_t to, const w_frame *f) {
  const int64_t round = (int64_t)f->head.value;
  w_plain.post(r, to, f);
  if (round >= ROUNDS) return;
  if (f->head.detail > 0) /* not when it is posted again */
    known->at[round][r->id] = w_view(r->world, r->id).steps;
  known->epochs[round][r->id] = f->head.epoch;
}

/* A round that is applied in the epoch of its messages; one whose result a region adopts has been
   applied by another region. */
static void note_means(const w_region *r, int64_t epoch, int64_t applied) {
  for (int64_t n = known->applied[r->id] + 1; n <= applied && n < ROUNDS; n++) {
    bool any = false;
    for (size_t i = 0; i < r->world->n; i++) any |= known->epochs[n][i] == epoch;
    for (size_t i = 0; any && i < r->world->n; i++)
      known->counts[n][i] = known->epochs[n][i] == epoch ? known->at[n][i] : 0;
  }
}

/* A region that has returned continues after its last contribution to the group's model; with sma
   it can repeat a few steps if members change again before it contributes, or contributions are
   void. */
static void check_position(const w_region *r, const gt_ps_view *v, int64_t applied) {
  const w_spec *s = &r->world->spec;
  const int64_t repeats = strcmp(s->strategy, "sma") == 0 ? 3 * s->options.period : 0;
  int64_t steps = 0;
  for (int64_t n = 1; n <= applied; n++)
    if (known->counts[n][r->id] > 0) steps = known->counts[n][r->id];
  w_check(r->world, v->steps <= steps && (v->steps >= steps - repeats || v->done >= 1));
  known->checked++;
}

static void note_round(w_region *r) {
  w_plain.event(r);
  if (r->dead) return;
  const gt_ps_view v = w_view(r->world, r->id);
  const int64_t applied = gt_exchange_progress_of(r->ps->exchange, 0).applied;
  if (known->start[r->id] == r->incarnation) note_means(r, v.epoch, applied);
  known->start[r->id] = r->incarnation;
  known->applied[r->id] = applied;
  known->alone |= v.members == 1 && !v.outside;
  if (known->returning[r->id] && !v.entering && v.phase == GT_PS_TRAINING && !known->alone &&
      applied < ROUNDS)
    check_position(r, &v, applied);
  known->returning[r->id] = v.outside || (known->returning[r->id] && v.entering);
}

/* ---- laws of the end ------------------------------------------------------------------------- */

/* The members' shares, which `ama` takes as they are, add up to 1. */
static void check_weights(const w_region *r, const gt_ps_view *v) {
  double sum = 0;
  for (size_t i = 0; i < v->members && v->epoch > 0; i++) sum += r->ps->epoch.weights[i];
  w_check(r->world, v->epoch == 0 || fabs(sum - 1) < 1e-12);
}

static void check_end(run *r) {
  world *w = r->w;
  const bool waits = w_lockstep(&w->spec), sma = strcmp(w->spec.strategy, "sma") == 0,
             rounds = sma || strcmp(w->spec.strategy, "ssgd") == 0;
  /* a region that returns can leave out batches that an earlier start has trained */
  const bool moves = rounds && !w->spec.local_async && w->spec.options.quorum <= 0;
  size_t first = w->n;
  for (size_t i = 0; i < w->n; i++) {
    const w_region *x = &w->regions[i];
    const gt_ps_view v = w_view(w, i);
    if (x->dead || v.minority) continue; /* others can have continued from an earlier round */
    check_weights(x, &v);
    const int64_t total = (int64_t)w->spec.until.epochs * w_per_epoch(&w->spec, i);
    for (int64_t b = 0; b < W_BATCHES; b++)
      w_check(w, moves ? (x->ever[b] > 0) == (b < total) : x->kept.trained[b] == (b < total));
    w_check(w, v.batches == total);
    if (first == w->n) first = i;
    w_check(w, gt_vec_finite(gt_vec_of((float *)(uintptr_t)x->params, W_PARAMS)));
    if (waits) w_check(w, w_same(w->regions[first].params, x->params, W_PARAMS));
    if (sma && !w->spec.no_data)
      w_check(w, w_same(w->regions[first].buffers, x->buffers, W_BUFFERS));
  }
}

static bool is_over(const world *w) {
  for (size_t a = 0; a < w->n; a++)
    for (size_t b = 0; b < w->n; b++)
      if (w->links[a][b].notice != GT_NEVER && !w->regions[b].dead) return false;
  for (size_t i = 0; i < w->n; i++)
    if (!w->regions[i].dead && w_view(w, i).entering) return false;
  return w_all_in(w, GT_PS_COMPLETE);
}

/* most: of losses, returns and cuts. */
static void lose_in(const w_spec *spec, const w_problem *problem, uint64_t most, run *sum) {
  const w_spec s = *spec;
  run r = {
      .w = w_open(spec), .rng = gt_rng_make(spec->seed, GT_RNG_TEST, 12, 0), .holds = sum->holds};
  world *w = r.w;
  w->problem = problem;
  const bool ssgd = strcmp(s.strategy, "ssgd") == 0 && !s.no_data;
  const uint64_t calm = 1 + gt_rng_below(&r.rng, 4) * 60;
  int64_t left = 1 + (int64_t)gt_rng_below(&r.rng, most);
  int64_t next = (int64_t)gt_rng_below(&r.rng, 400);
  gt_ns limit = w->now + 120 * GT_SECOND;
  while (!is_over(w)) {
    w_check(w, w->now < limit);
    if (alive(w) == 0 || !w_step(w)) break;
    if (ssgd) check_steps(w);
    end_alone(&r);
    if (left > 0 && w->events >= next) {
      disturb(&r);
      left--;
      next = w->events + (int64_t)gt_rng_below(&r.rng, calm * 5 + 20);
      limit = w->now + 120 * GT_SECOND;
    }
  }
  check_end(&r);
  sum->kills += r.kills;
  sum->returns += r.returns;
  sum->cuts += r.cuts;
  sum->ends += r.ends;
  sum->held += r.held;
  w_close(w);
}

static void lose(uint64_t seed, uint64_t most, run *sum) {
  const w_spec s = scenario(seed);
  lose_in(&s, &w_plain, most, sum);
}

/* Runs random worlds; with SEED in the environment, only that one. */
static void lose_many(uint64_t first, size_t worlds, uint64_t most) {
  const char *only = getenv("SEED");
  run sum = {0};
  if (only) first = strtoull(only, NULL, 10), worlds = 1;
  for (size_t i = 0; i < worlds; i++) lose(first + i, most, &sum);
  printf("%lld kills, %lld returns, %lld cuts, %lld ends of a minority\n", (long long)sum.kills,
         (long long)sum.returns, (long long)sum.cuts, (long long)sum.ends);
}

static void test_losses(void) {
  lose_many(0, cases(6000, 1200), 5);
}

/* Also the worlds in which faults were found. */
static void test_more_losses(void) {
  static const uint64_t found[] = {1571, 6921, 17951, 29191, 35841, 59201, 62163};
  const size_t n = getenv("SEED") ? 0 : sizeof found / sizeof *found;
  for (size_t i = 0; i < n; i++) lose_many(found[i], 1, 14);
  lose_many(60000, cases(6000, 300), 14);
}

/* Also directions in which nothing arrives for a time. */
static void test_holds(void) {
  const char *only = getenv("SEED");
  run sum = {.holds = true};
  const uint64_t worlds = only ? 1 : cases(6000, 300),
                 first = only ? strtoull(only, NULL, 10) : 100000;
  for (uint64_t k = first; k < first + worlds; k++) lose(k, 24, &sum);
  printf("%lld kills, %lld returns, %lld cuts, %lld holds\n", (long long)sum.kills,
         (long long)sum.returns, (long long)sum.cuts, (long long)sum.held);
}

/* Rounds of sma that do not wait for all: contributions are in flight, late, or in means that a
   region lacks. */
static void test_quorum(void) {
  const char *only = getenv("SEED");
  run sum = {0};
  const uint64_t worlds = only ? 1 : cases(6000, 150), first = only ? strtoull(only, NULL, 10) : 0;
  for (uint64_t k = first; k < first + worlds; k++) {
    w_spec s = scenario(5 * k + 1);
    w_place_over(&s, GT_TOPOLOGY_HUB);
    if (s.codec.kind && gt_codec_has(s.codec.kind, GT_RESUMS)) s.codec = (gt_exchange_codec){0};
    s.options.quorum = 0.51 + 0.09 * (double)(k % 5);
    s.options.grace = (gt_ns)(k % 3) * 10 * W_MS;
    lose_in(&s, &w_plain, 14, &sum);
  }
  printf("%lld kills, %lld returns\n", (long long)sum.kills, (long long)sum.returns);
}

/* A region that returns continues from what the group has of it: ssgd and sma, with a step of all
   workers at a time. */
static void test_positions(void) {
  if (getenv("SEED")) return;
  const size_t worlds = cases(12000, 4000);
  w_problem problem = w_plain;
  run sum = {0};
  int64_t checked = 0;
  problem.post = note_post;
  problem.event = note_round;
  for (uint64_t k = 0; k < worlds; k++) {
    w_spec s = scenario(5 * (k / 2) + k % 2);
    w_place_over(&s, GT_TOPOLOGY_MESH);
    s.codec = (gt_exchange_codec){0};
    s.local_async = false;
    s.options.fragments = 1;
    s.until.epochs = 3;
    known = calloc(1, sizeof *known);
    assert_non_null(known);
    for (size_t i = 0; i < ROUNDS * W_REGIONS; i++)
      known->epochs[i / W_REGIONS][i % W_REGIONS] = -1;
    lose_in(&s, &problem, 20, &sum);
    checked += known->checked;
    free(known);
  }
  printf("%lld positions\n", (long long)checked);
  assert_true(checked > (int64_t)worlds / 8);
}

/* ---- divisors -------------------------------------------------------------------------------- */

/* Of each round and region: the gradient that the region has posted last, and the epoch of the
   post.  Of each region: parameters and steps after the last event, and if it was entering an
   epoch. */
typedef struct {
  float grads[ROUNDS][W_REGIONS][W_PARAMS];
  int64_t epochs[ROUNDS][W_REGIONS];
  float params[W_REGIONS][W_PARAMS];
  int64_t steps[W_REGIONS];
  bool entering[W_REGIONS];
  int64_t checked;
} history;
static history *past;

static void keep_post(w_region *r, size_t to, const w_frame *f) {
  const int64_t round = (int64_t)f->head.value;
  w_plain.post(r, to, f);
  if (round >= ROUNDS || f->bytes != sizeof past->grads[0][0]) return;
  memcpy(past->grads[round][r->id], f->borrowed, f->bytes);
  past->epochs[round][r->id] = f->head.epoch;
}

/* The step of a round: by the weighted mean of the gradients posted in the epoch, in float64. */
static void check_mean(const w_region *r, const gt_ps_view *v) {
  const world *w = r->world;
  const int64_t round = past->steps[r->id] + 1;
  for (size_t j = 0; j < W_PARAMS; j++) {
    double sum = 0, size = 0, weight = 0;
    for (size_t i = 0; i < w->n; i++) {
      if (past->epochs[round][i] != v->epoch) continue;
      sum += w->weights[i] * (double)past->grads[round][i][j];
      size += w->weights[i] * fabs((double)past->grads[round][i][j]);
      weight += w->weights[i];
    }
    const double before = (double)past->params[r->id][j], lr = gt_optim_lr(r->optim),
                 expected = before - lr * sum / weight;
    w_check(w, fabs((double)r->params[j] - expected) <=
                   8 * (double)FLT_EPSILON * (fabs(before) + lr * size / weight));
  }
  past->checked++;
}

static void check_divisor(w_region *r) {
  w_plain.event(r);
  if (r->dead) return;
  const gt_ps_view v = w_view(r->world, r->id);
  const int64_t steps = gt_optim_steps(r->optim);
  if (steps == past->steps[r->id] + 1 && steps < ROUNDS && !v.entering && !past->entering[r->id] &&
      v.members > 1)
    check_mean(r, &v);
  past->steps[r->id] = steps;
  past->entering[r->id] = v.entering;
  memcpy(past->params[r->id], r->params, sizeof r->params[0] * W_PARAMS);
}

static void test_divisors(void) {
  if (getenv("SEED")) return;
  const size_t worlds = cases(600, 120);
  w_problem problem = w_plain;
  int64_t checked = 0;
  run sum = {0};
  problem.post = keep_post;
  problem.event = check_divisor;
  for (uint64_t k = 0; k < worlds; k++) {
    w_spec s = scenario(5 * k);
    w_place_over(&s, GT_TOPOLOGY_MESH);
    s.codec = (gt_exchange_codec){0};
    s.no_data = false;
    s.optim = w_sgd(0.02, 0);
    past = calloc(1, sizeof *past);
    assert_non_null(past);
    for (size_t i = 0; i < ROUNDS * W_REGIONS; i++) past->epochs[i / W_REGIONS][i % W_REGIONS] = -1;
    for (size_t i = 0; i < W_REGIONS; i++)
      for (size_t j = 0; j < W_PARAMS; j++) past->params[i][j] = w_start(j);
    lose_in(&s, &problem, 5, &sum);
    checked += past->checked;
    free(past);
  }
  assert_true(checked > (int64_t)worlds);
}

/* ---- a member that was left out and does not know it ------------------------------------------ */

static void step_until(world *w, bool (*done)(const world *)) {
  const gt_ns limit = w->now + 120 * GT_SECOND;
  while (!done(w)) w_check(w, w->now < limit && w_step(w));
}

static bool has_begun(const world *w) {
  return w_view(w, 0).steps >= 4;
}

static bool have_gone_on(const world *w) {
  for (size_t i = 1; i < w->n; i++)
    if (w_view(w, i).epoch == 0 || w_view(w, i).steps < w_view(w, 0).steps + 6) return false;
  return true;
}

static bool is_out(const world *w) {
  return w_view(w, 0).out;
}

/* The members of the new epoch start again before they have told it: it leaves them the run, in
   which they are far ahead of it. */
static void test_forgotten(void) {
  w_spec s = w_random("sma", false, 3, 1);
  s.change = true;
  s.tie = s.nregions;
  s.options.period = 2;
  s.checkpoint_every.steps = 2;
  s.write_s = 0.001;
  s.until.epochs = 4;
  for (size_t i = 0; i < s.nregions; i++)
    s.weights[i] = s.slow[i] = 1, s.workers[i] = 1, s.samples[i] = 100;
  w_place_over(&s, GT_TOPOLOGY_MESH);
  world *w = w_open(&s);
  step_until(w, has_begun);
  for (size_t i = 1; i < w->n; i++) w_cut(w, 0, i, NOTICE);
  step_until(w, have_gone_on);
  for (size_t i = 1; i < w->n; i++) w_kill(w, i, NOTICE);
  for (size_t i = 1; i < w->n; i++) w_return(w, i, NOTICE);
  step_until(w, is_out);
  for (size_t i = 0; i < w->n; i++) w_check(w, w->regions[i].refused == 0);
  w_close(w);
}

TESTS(test_losses, test_more_losses, test_holds, test_quorum, test_positions, test_divisors,
      test_forgotten)
