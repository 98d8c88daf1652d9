/* Random small problems of the search for a pipeline, and the best of all their pipelines. */
#include "world_search.h"
#include "tests.h"

#define WITHIN   1.02
#define VARIANTS 200 /* of each simulation, of the choice and of all others */

/* ---- a problem ------------------------------------------------------------------------------- */

static double drawn(gt_rng *rng, double from, double to) {
  return from + (to - from) * gt_rng_uniform(rng);
}

static void draw_piece(gt_pipe_piece *p, gt_rng *rng) {
  p->work.forward_s = drawn(rng, 0.05, 1);
  p->work.input_s = drawn(rng, 0.05, 1);
  p->work.weight_s = drawn(rng, 0.05, 1);
  p->work.parameter_bytes = drawn(rng, 0, 4);
  p->work.activation_bytes = drawn(rng, 0.5, 2);
  p->work.cut_bytes = drawn(rng, 1e4, 1e6);
  p->owner = SIZE_MAX;
}

static void draw_site(search_world *w, size_t s, size_t workers, gt_rng *rng) {
  const double slow = drawn(rng, 0.3, 1);
  for (size_t i = 0; i < workers; i++)
    w->power[s][i] = gt_rng_below(rng, 2) ? 1 : drawn(rng, slow, 1);
  w->sites[s] = (gt_pipe_site){.workers = workers,
                               .power = w->power[s],
                               .memory_bytes = INFINITY,
                               .local_s = drawn(rng, 0, 0.1),
                               .update_s = drawn(rng, 0, 0.2),
                               .starts = s == 0 || gt_rng_below(rng, 2)};
  if (gt_rng_below(rng, 3) == 0) w->sites[s].memory_bytes = drawn(rng, 30, 60);
}

static void draw_links(search_world *w, gt_rng *rng) {
  const size_t n = w->problem.nsites;
  static const double latencies[] = {0, 0.05, 0.5, 2};
  for (size_t i = 0; i < n * n; i++)
    w->links[i] = (gt_link_spec){.latency_s = latencies[gt_rng_below(rng, 4)],
                                 .bandwidth_bps = drawn(rng, 4e6, 6e7)};
  w->wan = (gt_pipe_wan){.nregions = n, .links = w->links, .seed = 1};
}

void ws_draw(search_world *w, uint64_t seed) {
  static const size_t batches[] = {4, 6, 8};
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 77, 0);
  const size_t pieces = 2 + gt_rng_below(&rng, 4), sites = 1 + gt_rng_below(&rng, 3);
  size_t workers = 4;
  memset(w, 0, sizeof *w);
  for (size_t i = 0; i < pieces; i++) draw_piece(&w->pieces[i], &rng);
  w->pieces[0].samples = true;
  if (gt_rng_below(&rng, 4) == 0) w->pieces[gt_rng_below(&rng, pieces)].alone = true;
  w->problem = (gt_pipe_search_problem){.pieces = w->pieces,
                                        .npieces = pieces,
                                        .sites = w->sites,
                                        .nsites = sites,
                                        .wan = &w->wan,
                                        .batch = batches[gt_rng_below(&rng, 3)],
                                        .kind = GT_PIPE_AUTO,
                                        .labels_stay = gt_rng_below(&rng, 4) > 0,
                                        .copies = 2,
                                        .scratch_bytes = 0.5,
                                        .seed = 3};
  for (size_t s = 0; s < sites; s++) {
    const size_t most = workers - (sites - 1 - s), n = 1 + gt_rng_below(&rng, most);
    draw_site(w, s, n < 3 ? n : 2, &rng);
    workers -= w->sites[s].workers;
  }
  draw_links(w, &rng);
}

void ws_large(search_world *w, size_t sites, size_t workers) {
  memset(w, 0, sizeof *w);
  w->problem = (gt_pipe_search_problem){.pieces = w->pieces,
                                        .npieces = 48,
                                        .sites = w->sites,
                                        .nsites = sites,
                                        .wan = &w->wan,
                                        .batch = 256,
                                        .kind = GT_PIPE_AUTO,
                                        .labels_stay = true,
                                        .copies = 2};
  for (size_t i = 0; i < 48; i++)
    w->pieces[i] = (gt_pipe_piece){
        .work = {0.01, 0.01, 0.01, 1e6, 1e5, 0, 1e5}, .samples = i == 0, .owner = SIZE_MAX};
  for (size_t s = 0; s < sites; s++) {
    for (size_t i = 0; i < workers; i++) w->power[s][i] = i % 3 == 2 ? 0.5 : 1;
    w->sites[s] = (gt_pipe_site){
        .workers = workers, .power = w->power[s], .memory_bytes = INFINITY, .starts = true};
  }
  for (size_t i = 0; i < sites * sites; i++)
    w->links[i] = (gt_link_spec){.latency_s = 0.02 + 0.001 * (double)i, .bandwidth_bps = 1e8};
  w->wan = (gt_pipe_wan){.nregions = sites, .links = w->links};
}

/* ---- all pipelines --------------------------------------------------------------------------- */

typedef struct {
  const search_world *w;
  double below_s, best_s;
  size_t variants, seen;
  gt_pipe_found f;        /* stages so far */
  size_t back[WS_PIECES]; /* of each stage, where its second part ends */
  size_t used[WS_SITES];
} brute;

static void judge_micro_batches(brute *b, size_t micro_batches) {
  gt_pipe_found *f = &b->f;
  f->micro_batches = micro_batches;
  b->seen++;
  if (!gt_pipe_found_allowed(&b->w->problem, f) || !gt_pipe_found_bound(&b->w->problem, f) ||
      f->bound_s >= b->below_s)
    return;
  const double period_s = gt_pipe_search_period(&b->w->problem, f, b->variants);
  if (period_s < f->bound_s * (1 - 1e-6) - 1e-6)
    fail_msg("a period of %.9g s, and its bound is %.9g s", period_s, f->bound_s);
  b->best_s = fmin(b->best_s, period_s);
}

static void judge(brute *b) {
  const gt_pipe_search_problem *p = &b->w->problem;
  for (size_t s = 0; s < p->nsites; s++)
    if (b->used[s] < p->sites[s].workers) return;
  for (size_t s = 0; s < b->f.stages && b->f.chunks == 2; s++)
    b->f.ends[2 * b->f.stages - 1 - s] = b->back[s];
  for (size_t m = 1; m <= p->batch; m++)
    if (p->batch % m == 0) judge_micro_batches(b, m);
}

/* True if the region can follow: regions come in one piece each; the first one can come again. */
static bool may_follow(const brute *b, size_t site) {
  const gt_pipe_search_problem *p = &b->w->problem;
  const size_t n = b->f.stages;
  if (b->used[site] == p->sites[site].workers) return false;
  if (n == 0) return p->sites[site].starts;
  const size_t last = b->f.places[n - 1].region, first = b->f.places[0].region;
  bool left = false;
  for (size_t s = 0; s < n; s++) left |= b->f.places[s].region != first;
  if (last == site) return true;
  const bool whole = b->used[last] == p->sites[last].workers;
  if (last == first) return !left && (whole || b->f.chunks == 1);
  if (!whole) return false;
  return site != first ? b->used[site] == 0 : b->f.chunks == 1;
}

/* Stages of pieces from..to-1 of the model's middle. */
static void place(brute *b, size_t from, size_t to) {
  const gt_pipe_search_problem *p = &b->w->problem;
  if (from == to) {
    judge(b);
    return;
  }
  const size_t n = b->f.stages, folded = b->f.chunks == 2;
  for (size_t site = 0; site < p->nsites; site++) {
    if (!may_follow(b, site)) continue;
    const size_t first = b->used[site];
    for (size_t d = 1; first + d <= p->sites[site].workers; d++)
      for (size_t a = from + 1; a <= to; a++)
        for (size_t e = folded ? a : to; e <= to; e++) {
          if (folded && e == to) continue; /* its second part would be empty */
          b->f.places[n] = (gt_pipe_place){site, first, d};
          b->f.ends[n] = a;
          b->back[n] = to;
          b->used[site] = first + d;
          b->f.stages = n + 1;
          place(b, a, e);
          b->f.stages = n;
          b->used[site] = first;
        }
  }
}

double ws_best(const search_world *w, double below_s, size_t variants, size_t *seen) {
  brute b = {.w = w, .below_s = below_s, .best_s = INFINITY, .variants = variants};
  gt_pipe_place places[WS_PIECES];
  size_t ends[WS_PIECES];
  b.f.places = places;
  b.f.ends = ends;
  for (b.f.chunks = 1; b.f.chunks <= 2; b.f.chunks++) place(&b, 0, w->problem.npieces);
  *seen = b.seen;
  return b.best_s;
}

/* ---- the search against them ----------------------------------------------------------------- */

void ws_compare(uint64_t seed, size_t cases, double effort) {
  search_world w;
  size_t solved = 0, all = 0, same = 0;
  double worst = 1;
  for (uint64_t i = 0; i < cases; i++) {
    gt_pipe_search_result r;
    size_t seen;
    ws_draw(&w, seed + i);
    w.problem.effort = effort;
    const gt_status status = gt_pipe_search_run(&r, &w.problem);
    const double chosen_s = status == GT_OK
                                ? gt_pipe_search_period(&w.problem, &r.found[0], VARIANTS)
                                : INFINITY,
                 best_s = ws_best(&w, chosen_s, VARIANTS, &seen);
    if (status != GT_OK && best_s < INFINITY)
      fail_msg("case %zu: a pipeline takes %.6g s, and %s", (size_t)i, best_s, gt_error_text());
    all += seen;
    solved += status == GT_OK;
    same += status == GT_OK && !(best_s < chosen_s);
    worst = fmax(worst, status == GT_OK ? chosen_s / best_s : 1);
    if (status == GT_OK && chosen_s > best_s * WITHIN)
      print_error("case %zu: %.6g s were found, and %.6g s are possible\n", (size_t)i, chosen_s,
                  best_s);
    gt_pipe_search_close(&r);
  }
  print_message(
      "%zu of %zu problems have a pipeline, of %zu in all; the best one was found in %zu, "
      "and at worst one of %.4f times its period\n",
      solved, cases, all, same, worst);
  assert_true(solved > cases / 2);
  assert_true(worst <= WITHIN);
}
