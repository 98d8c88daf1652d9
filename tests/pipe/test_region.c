/* The stages of a region as driven by a run: pass times are those of the evaluation; random
   pipelines over several regions end, and no buffer is reused before it has been read; invalid
   packets are refused. */
#include "cases.h"
#include "world.h"
#include "world_region.h"
#include "tests.h"

#define MICROS_MAX 8
#define VARIANTS   2

static const size_t six_steps[GT_PIPE_STEADY] = {0};

/* A layout of the schedule, which it takes; places and bytes are copied. */
static gt_pipe_layout layout_of(gt_pipe_schedule *s, size_t nregions, size_t samples,
                                const gt_pipe_place *places, const size_t *bytes) {
  gt_pipe_layout l = {.nregions = nregions,
                      .stages = s->stages,
                      .chunks = s->chunks,
                      .micro_batches = s->micro_batches,
                      .micro_samples = samples,
                      .places = GT_NEW_ARRAY(gt_pipe_place, s->stages),
                      .output_bytes = GT_NEW_ARRAY(size_t, s->stages * s->chunks),
                      .slots = GT_NEW_ARRAY(size_t, s->stages),
                      .schedule = s};
  memcpy(l.places, places, s->stages * sizeof *places);
  memcpy(l.output_bytes, bytes, s->stages * s->chunks * sizeof *bytes);
  for (size_t i = 0; i < s->stages; i++) l.slots[i] = gt_pipe_slots(s, i);
  return l;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* One worker per stage; stages of a region are numbered in it, without hops between them. */
static gt_pipe_layout plain_layout(world *w, gt_pipe_schedule *s, const size_t *region,
                                   size_t nregions, size_t samples) {
  gt_pipe_place places[W_STAGES_MAX];
  size_t taken[R_REGIONS_MAX] = {0}, bytes[W_SPANS_MAX];
  for (size_t i = 0; i < s->stages; i++)
    places[i] = (gt_pipe_place){region[i], taken[region[i]]++, 1};
  for (size_t k = 0; k < s->stages * s->chunks; k++)
    bytes[k] = (size_t)w->spans[k].output_bytes / samples;
  gt_pipe_layout l = layout_of(s, nregions, samples, places, bytes);
  l.label_bytes = (size_t)w->spans[0].label_bytes / samples;
  return l;
}

static void no_hops_inside(world *w, const size_t *region) {
  for (size_t s = 0; s + 1 < w->problem.stages; s++)
    if (region[s] == region[s + 1]) w->ahead[s] = w->back[s] = (gt_pipe_hop){0};
}

static gt_ns period_of(const r_world *r, size_t steps) {
  const size_t half = steps / 2;
  return (r->finish[steps - 1] - (half > 0 ? r->finish[half - 1] : 0)) / (gt_ns)(steps - half);
}

/* The regions' times are the evaluation's, to the nanosecond. */
static void compare_times(world *w, gt_pipe_kind kind, const size_t *region, size_t nregions,
                          uint64_t seed) {
  const gt_pipe_search search = {.aim = GT_PIPE_PERIOD, .variants = VARIANTS, .seed = seed};
  gt_pipe_schedule *s;
  gt_pipe_result e;
  no_hops_inside(w, region);
  must(gt_pipe_make(&s, kind, &w->problem, &search));
  must(gt_pipe_evaluate(&e, s, &w->problem, GT_PIPE_STEADY));
  gt_pipe_layout l = plain_layout(w, s, region, nregions, 4);
  r_world r;
  r_open(&r,
         &(r_spec){
             .layout = &l, .problem = &w->problem, .steps = six_steps, .nsteps = GT_PIPE_STEADY});
  r_run(&r);
  for (size_t i = 0; i < s->stages; i++)
    for (size_t k = 0; k < s->lists[i].n; k++) {
      assert_int_equal(r.times[i][k].start, e.stages[i].times[k].start);
      assert_int_equal(r.times[i][k].end, e.stages[i].times[k].end);
    }
  assert_int_equal(r.makespan, e.makespan);
  assert_int_equal(period_of(&r, GT_PIPE_STEADY), e.period);
  assert_int_equal(r.stalls, 0);
  r_close(&r);
  gt_pipe_layout_close(&l);
  gt_pipe_result_close(&e);
}

static const size_t apart[] = {0, 1, 2, 3, 4, 5, 6, 7}, halves[] = {0, 0, 1, 1},
                    alone[W_STAGES_MAX] = {0};
static const double at_once[1];
static const gt_link_spec no_link[1];
static const gt_pipe_wan one_region = {.nregions = 1, .region = alone, .links = no_link};

/* Pipelines with known figures; `apart`: every stage in its own region, with hops in between. */
static void times_of_known_pipelines(void) {
  for (gt_pipe_kind kind = 0; gt_pipe_names[kind]; kind++) {
    world w;
    const bool folded = gt_pipe_chunks(kind) == 2;
    w_alike(&w, 8, folded ? 2 : 1, 24, 18.522, 18.086, 9.337, 0.601);
    compare_times(&w, kind, apart, 8, 1);
    w_alike(&w, 4, folded ? 2 : 1, 16, 1, 1, 1, 0);
    w.ahead[1].delay_s = w.back[1].delay_s = 4;
    w.update_s[0] = w.update_s[2] = 3;
    w.problem.update_s = w.update_s;
    compare_times(&w, kind, halves, 2, 1);
    compare_times(&w, kind, alone, 1, 1);
    w.problem.wan = &one_region;
    w.problem.agree_s = at_once;
    compare_times(&w, kind, alone, 1, 1);
  }
}

static double ms(gt_rng *rng, uint64_t most) {
  return (double)gt_rng_below(rng, most + 1) * 1e-3;
}

static void random_times(world *w, gt_rng *rng, size_t chunks) {
  static const double bytes[] = {0, 1000, 3000000};
  const size_t p = 1 + gt_rng_below(rng, 5);
  const double labels = gt_rng_below(rng, 2) ? 400000 : 0;
  w_alike(w, p, chunks, 1 + gt_rng_below(rng, MICROS_MAX), 0, 0, 0, 0);
  for (size_t k = 0; k < p * chunks; k++)
    w->spans[k] = (gt_pipe_span){.forward_s = 1e-3 + ms(rng, 5),
                                 .backward_s = ms(rng, 5),
                                 .weight_s = ms(rng, 4),
                                 .activation = 1,
                                 .weight_share = 1,
                                 .output_bytes = bytes[gt_rng_below(rng, 3)],
                                 .label_bytes = labels};
  for (size_t s = 0; s < p; s++) {
    w->ahead[s].delay_s = ms(rng, 6);
    w->back[s].delay_s = ms(rng, 6);
    w->update_s[s] = ms(rng, 9);
  }
  w->problem.update_s = w->update_s;
}

/* Random pipelines over links that several stages share, with limited access and jitter. */
static void times_over_links(void) {
  const size_t wans = cases(400, 200);
  gt_rng rng = gt_rng_make(3, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < wans; i++) {
    world w;
    gt_link_spec links[9];
    double access[3], agree_s[9];
    size_t region[W_STAGES_MAX];
    const size_t n = 2 + gt_rng_below(&rng, 2);
    const gt_pipe_wan wan = {.nregions = n,
                             .region = region,
                             .links = links,
                             .up_bps = access,
                             .down_bps = access,
                             .seed = i};
    random_times(&w, &rng, 1 + i % 2);
    for (size_t k = 0; k < n * n; k++)
      links[k] = (gt_link_spec){.bandwidth_bps = gt_rng_below(&rng, 2) ? 1e9 : 1e10,
                                .latency_s = 1e-3 + ms(&rng, 5),
                                .jitter_s = gt_rng_below(&rng, 3) ? 0 : 1e-3,
                                .back_s = 1e-3};
    for (size_t k = 0; k < n * n; k++) agree_s[k] = ms(&rng, 3);
    if (gt_rng_below(&rng, 2)) w.problem.agree_s = agree_s;
    for (size_t k = 0; k < n; k++) access[k] = gt_rng_below(&rng, 2) ? 1e9 : 0;
    for (size_t s = 0; s < w.problem.stages; s++) region[s] = gt_rng_below(&rng, n);
    w.problem.wan = &wan;
    for (gt_pipe_kind kind = 0; gt_pipe_names[kind]; kind++) {
      const size_t chunks = gt_pipe_chunks(kind);
      if (chunks == 0 || chunks == w.problem.chunks) compare_times(&w, kind, region, n, i);
    }
  }
}

/* ---- random pipelines ------------------------------------------------------------------------ */

typedef struct {
  world w;
  gt_pipe_layout layout;
  size_t steps[6], nsteps;
} any_case;

static gt_pipe_kind any_kind(gt_rng *rng, size_t chunks) {
  for (;;) {
    const gt_pipe_kind kind = (gt_pipe_kind)gt_rng_below(rng, GT_PIPE_AUTO + 1);
    const size_t needs = gt_pipe_chunks(kind);
    if (needs == 0 || needs == chunks) return kind;
  }
}

static void make_case(any_case *c, gt_rng *rng, size_t number) {
  static const size_t bytes[W_SPANS_MAX] = {8, 24, 8, 0, 16, 8, 8, 40, 8, 8, 8, 8, 8, 8, 8, 8};
  const gt_pipe_search search = {
      .aim = (gt_pipe_aim)(number % 3), .variants = VARIANTS, .seed = number};
  const size_t nregions = 1 + gt_rng_below(rng, 3);
  size_t taken[3];
  gt_pipe_place places[W_STAGES_MAX];
  gt_pipe_schedule *s;
  random_times(&c->w, rng, 1 + number % 2);
  for (size_t i = 0; i < c->w.problem.stages; i++) {
    const double memory = 2 + (double)gt_rng_below(rng, 9);
    c->w.memory[i] = gt_rng_below(rng, 2) ? 0 : memory;
  }
  c->w.problem.memory = c->w.memory;
  gt_pipe_kind kind = any_kind(rng, c->w.problem.chunks);
  if (gt_pipe_make(&s, kind, &c->w.problem, &search) != GT_OK)
    must(gt_pipe_make(&s, GT_PIPE_AUTO, &c->w.problem, &search));
  for (size_t i = 0; i < 3; i++) taken[i] = gt_rng_below(rng, 2);
  for (size_t i = 0; i < s->stages; i++) {
    const size_t r = gt_rng_below(rng, nregions), d = 1 + gt_rng_below(rng, 3);
    places[i] = (gt_pipe_place){r, taken[r], d};
    taken[r] += d + (gt_rng_below(rng, 8) == 0);
  }
  c->layout = layout_of(s, nregions, 6 * (1 + gt_rng_below(rng, 2)), places, bytes);
  c->nsteps = 1 + gt_rng_below(rng, 6);
  for (size_t i = 0; i < c->nsteps; i++)
    c->steps[i] = gt_rng_below(rng, 3) ? 0 : 1 + gt_rng_below(rng, R_FORWARD_MOST);
}

static r_world run_case(const any_case *c, uint64_t seed, bool late) {
  r_world r;
  r_open(&r, &(r_spec){.layout = &c->layout,
                       .seed = seed,
                       .late = late,
                       .steps = c->steps,
                       .nsteps = c->nsteps});
  r_run(&r);
  r_close(&r);
  return r;
}

/* Training steps and evaluations mixed, replicas of any number, packets that overtake others. */
static void random_pipelines_end(void) {
  gt_rng rng = gt_rng_make(2, GT_RNG_TEST, 0, 0);
  const size_t most = cases(4000, 500);
  size_t sent = 0, early = 0, full_out = 0, full_landing = 0, stalls = 0;
  for (size_t i = 0; i < most; i++) {
    any_case c;
    make_case(&c, &rng, i);
    const r_world r = run_case(&c, i, false);
    assert_int_equal(r.stalls, 0);
    sent += r.sent;
    early += r.early;
    full_out += r.full_out;
    full_landing += r.full_landing;
    if (i % 10 == 0) assert_true(run_case(&c, i, false).trace == r.trace);
    if (i % 4 == 1) stalls += run_case(&c, i, true).stalls;
    gt_pipe_layout_close(&c.layout);
  }
  /* the tested cases do occur */
  assert_true(sent > 20 * most && early > most / 4);
  assert_true(full_out > most && full_landing > most && stalls > most / 100);
}

TESTS(times_of_known_pipelines, times_over_links, random_pipelines_end)
