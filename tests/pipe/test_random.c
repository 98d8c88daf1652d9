/* 10,000 random pipelines (a quarter of them in the quick run): schedules end, hold memory, and the
   evaluator's times equal a second computation, from the definitions alone; the same input gives
   the same output. */
#include "cases.h"
#include "world.h"
#include "tests.h"

#define WAN_EVERY  4 /* every fourth pipeline is over links */
#define MICROS_MAX 8
#define VARIANTS   4

typedef struct {
  world w;
  size_t region[W_STAGES_MAX];
  gt_link_spec links[9];
  double up_bps[3], agree_s[9];
  gt_pipe_wan wan;
} any_case;

static double one_of(gt_rng *rng, double a, double b, double c) {
  const double all[] = {a, b, c};
  return all[gt_rng_below(rng, 3)];
}

/* Milliseconds, so that ties are frequent. */
static double any_time(gt_rng *rng, uint64_t most_ms) {
  return (double)gt_rng_below(rng, most_ms + 1) * 1e-3;
}

static void make_stages(any_case *c, gt_rng *rng, size_t chunks) {
  world *w = &c->w;
  const size_t p = 1 + gt_rng_below(rng, 5), m = 1 + gt_rng_below(rng, MICROS_MAX);
  w_alike(w, p, chunks, m, 0, 0, 0, 0);
  for (size_t k = 0; k < p * chunks; k++)
    w->spans[k] = (gt_pipe_span){.forward_s = 1e-3 + any_time(rng, 5),
                                 .backward_s = any_time(rng, 5),
                                 .weight_s = any_time(rng, 4),
                                 .activation = one_of(rng, 1, 1, 2.5),
                                 .weight_share = one_of(rng, 0, 0.5, 1),
                                 .output_bytes = one_of(rng, 0, 1000, 3e6)};
  for (size_t s = 0; s < p; s++) {
    w->ahead[s] = (gt_pipe_hop){any_time(rng, 6), one_of(rng, 0, 8e6, 8e9)};
    w->back[s] = (gt_pipe_hop){any_time(rng, 6), one_of(rng, 0, 8e6, 8e9)};
    w->update_s[s] = any_time(rng, 9);
    w->memory[s] = gt_rng_below(rng, 3) == 0 ? 0 : 5 + (double)gt_rng_below(rng, 12);
  }
  w->problem.memory = w->memory;
  w->problem.update_s = w->update_s;
}

static void make_case(any_case *c, gt_rng *rng, size_t number) {
  make_stages(c, rng, 1 + number % 2);
  if (number % WAN_EVERY >= 2) return;
  const size_t n = 1 + gt_rng_below(rng, 3);
  c->wan = (gt_pipe_wan){.nregions = n, .region = c->region, .links = c->links, .seed = number};
  for (size_t i = 0; i < n * n; i++)
    c->links[i] = (gt_link_spec){.bandwidth_bps = one_of(rng, 0, 1e8, 1e10),
                                 .latency_s = 1e-3 + any_time(rng, 5),
                                 .jitter_s = one_of(rng, 0, 0, 1e-3),
                                 .back_s = 1e-3};
  for (size_t i = 0; i < n; i++) c->up_bps[i] = one_of(rng, 0, 1e8, 1e9);
  c->wan.up_bps = c->wan.down_bps = c->up_bps;
  for (size_t s = 0; s < c->w.problem.stages; s++) c->region[s] = gt_rng_below(rng, n);
  c->w.problem.wan = &c->wan;
  for (size_t i = 0; i < n * n; i++) c->agree_s[i] = any_time(rng, 3);
  if (gt_rng_below(rng, 4) == 0) c->w.problem.agree_s = c->agree_s;
}

/* ---- a second computation -------------------------------------------------------------------- */

/* Ends of F and B, by span and micro-batch. */
typedef struct {
  gt_ns f[W_SPANS_MAX][MICROS_MAX], b[W_SPANS_MAX][MICROS_MAX];
} ends;

static size_t stage_of(const world *w, size_t span) {
  const size_t p = w->problem.stages, at = span % p;
  return (span / p) % 2 == 0 ? at : p - 1 - at;
}

/* Returns the time from the end of a pass of span `from` to that of its neighbor; over a link: the
   minimum. */
static gt_ns transfer(const any_case *c, size_t from, size_t to) {
  const world *w = &c->w;
  const size_t a = stage_of(w, from), b = stage_of(w, to);
  const double bytes = w->spans[from < to ? from : to].output_bytes;
  if (a == b) return 0;
  const gt_pipe_hop *hop = a < b ? &w->ahead[a] : &w->back[b];
  double s = hop->delay_s + (hop->bandwidth_bps > 0 ? 8 * bytes / hop->bandwidth_bps : 0);
  gt_ns ns = gt_from_seconds(s);
  if (w->problem.wan && c->region[a] != c->region[b])
    ns += gt_link_delay_min(&c->links[c->region[a] * c->wan.nregions + c->region[b]]);
  return ns;
}

/* Returns when the message that a pass needs can be there. */
static gt_ns needs_at(const any_case *c, const ends *e, const gt_pass *pass) {
  const size_t k = pass->span, i = pass->micro, n = c->w.problem.stages * c->w.problem.chunks;
  switch (pass->kind) {
  case GT_PASS_F:
    return k == 0 ? 0 : e->f[k - 1][i] + transfer(c, k - 1, k);
  case GT_PASS_B:
  case GT_PASS_BW:
    return k + 1 == n ? e->f[k][i] : e->b[k + 1][i] + transfer(c, k + 1, k);
  case GT_PASS_W:
    return e->b[k][i];
  }
  return 0;
}

static gt_ns takes(const any_case *c, const gt_pass *pass) {
  const gt_pipe_span *span = &c->w.spans[pass->span];
  const gt_ns b = gt_from_seconds(span->backward_s), w = gt_from_seconds(span->weight_s);
  return pass->kind == GT_PASS_F   ? gt_from_seconds(span->forward_s)
         : pass->kind == GT_PASS_B ? b
         : pass->kind == GT_PASS_W ? w
                                   : b + w;
}

static void note_ends(const gt_pipe_schedule *s, const gt_pipe_result *r, ends *e) {
  memset(e, 0xff, sizeof *e);
  for (size_t stage = 0; stage < s->stages; stage++)
    for (size_t i = 0; i < s->lists[stage].n; i++) {
      const gt_pass *pass = &s->lists[stage].passes[i];
      const gt_ns end = r->stages[stage].times[i].end;
      if (pass->kind == GT_PASS_F) e->f[pass->span][pass->micro] = end;
      if (pass->kind == GT_PASS_B || pass->kind == GT_PASS_BW) e->b[pass->span][pass->micro] = end;
    }
}

/* Memory at the begin of each pass, from counts. */
static double peak_of(const any_case *c, const gt_pipe_list *list) {
  double peak = 0;
  for (size_t n = 1; n <= list->n; n++) {
    double held = 0;
    for (size_t i = 0; i < n; i++) {
      const gt_pipe_span *span = &c->w.spans[list->passes[i].span];
      const double kept = span->activation * span->weight_share;
      bool over = i + 1 < n;
      gt_pass_kind kind = list->passes[i].kind;
      held += kind == GT_PASS_F            ? span->activation
              : over && kind == GT_PASS_BW ? -span->activation
              : over && kind == GT_PASS_B  ? kept - span->activation
              : over && kind == GT_PASS_W  ? -kept
                                           : 0;
    }
    peak = fmax(peak, held);
  }
  return peak;
}

/* Checks that without links each pass begins exactly when it can; with them, no earlier. */
static void check_times(const any_case *c, const gt_pipe_schedule *s, const gt_pipe_result *r) {
  ends e;
  gt_ns makespan = 0, cost = 0;
  note_ends(s, r, &e);
  for (size_t stage = 0; stage < s->stages; stage++) {
    const gt_pipe_list *list = &s->lists[stage];
    const gt_pipe_time *times = r->stages[stage].times;
    gt_ns free_at = 0;
    assert_true(list->n >= 2 * s->chunks * s->micro_batches &&
                list->n <= 3 * s->chunks * s->micro_batches);
    for (size_t i = 0; i < list->n; i++) {
      gt_ns needs = needs_at(c, &e, &list->passes[i]), can = needs > free_at ? needs : free_at;
      assert_true(c->w.problem.wan ? times[i].start >= can : times[i].start == can);
      free_at = times[i].end;
      assert_int_equal(free_at, times[i].start + takes(c, &list->passes[i]));
    }
    if (free_at > makespan) makespan = free_at;
    if (free_at - times[0].start > cost) cost = free_at - times[0].start;
    assert_true(fabs(r->stages[stage].peak - peak_of(c, list)) < 1e-9);
    double limit = c->w.memory[stage];
    assert_true(limit <= 0 || r->stages[stage].peak <= limit + 1e-6);
  }
  assert_int_equal(r->makespan, makespan);
  assert_int_equal(r->cost, cost);
}

/* ---- the cases ------------------------------------------------------------------------------- */

static bool same(const gt_pipe_result *a, const gt_pipe_result *b) {
  return a->makespan == b->makespan && a->cost == b->cost && a->period == b->period;
}

/* A fixed order can need more memory than available; it must not be refused for any other
   reason. */
static bool try_kind(const any_case *c, gt_pipe_kind kind, size_t number) {
  const bool twice = number % 10 == 0;
  const gt_pipe_search search = {
      .aim = (gt_pipe_aim)(number % 3), .variants = VARIANTS, .seed = number};
  gt_pipe_schedule *s, *t;
  gt_pipe_result r, q;
  if (gt_pipe_make(&s, kind, &c->w.problem, &search) != GT_OK) {
    if (!strstr(gt_error_text(), "of activations at its peak")) fail_msg("%s", gt_error_text());
    return false;
  }
  must(gt_pipe_evaluate(&r, s, &c->w.problem, 3));
  check_times(c, s, &r);
  if (twice) {
    char first[GT_SHA256_HEX], second[GT_SHA256_HEX];
    must(gt_pipe_make(&t, kind, &c->w.problem, &search));
    must(gt_pipe_evaluate(&q, t, &c->w.problem, 3));
    gt_pipe_hash(s, first);
    gt_pipe_hash(t, second);
    assert_string_equal(first, second);
    assert_true(same(&r, &q));
    gt_pipe_result_close(&q);
    gt_pipe_schedule_close(t);
  }
  gt_pipe_result_close(&r);
  gt_pipe_schedule_close(s);
  return true;
}

static void all_schedules_are_sound(void) {
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  size_t made = 0, refused = 0;
  const size_t n = cases(10000, 1000);
  for (size_t i = 0; i < n; i++) {
    any_case c;
    make_case(&c, &rng, i);
    for (gt_pipe_kind kind = 0; gt_pipe_names[kind]; kind++) {
      size_t chunks = gt_pipe_chunks(kind);
      if (chunks > 0 && chunks != c.w.problem.chunks) continue;
      bool ok = try_kind(&c, kind, i);
      made += ok;
      refused += !ok;
      assert_true(ok || kind != GT_PIPE_AUTO);
    }
  }
  /* the cases are neither all easy nor all refused */
  assert_true(made > 2 * n && refused > n / 10);
}

TESTS(all_schedules_are_sound)
