/* The search for a pipeline: against all pipelines of small problems (more in test_search_many.c);
   laws of any pipeline; refusals. */
#include "cases.h"
#include "world_search.h"
#include "tests.h"

static void small(void) {
  ws_compare(0, cases(100, 6), 0.3);
}

/* ---- laws ------------------------------------------------------------------------------------ */

static void laws(void) {
  search_world w;
  for (uint64_t seed = 0; seed < cases(60, 12); seed++) {
    gt_pipe_search_result r, again;
    ws_draw(&w, 5000 + seed);
    w.problem.effort = 0.01;
    if (gt_pipe_search_run(&r, &w.problem) != GT_OK) continue;
    must(gt_pipe_search_run(&again, &w.problem));
    for (size_t i = 0; i < r.n; i++) {
      gt_pipe_found f = gt_pipe_found_copy(&r.found[i]);
      size_t workers = 0, all = 0;
      assert_true(gt_pipe_found_allowed(&w.problem, &f) && gt_pipe_found_bound(&w.problem, &f));
      assert_true(f.bound_s <= f.period_s * (1 + 1e-6) + 1e-6 && f.period_s < INFINITY);
      assert_true(i == 0 || r.found[i - 1].period_s <= f.period_s);
      for (size_t s = 0; s < f.stages; s++) workers += f.places[s].workers;
      for (size_t s = 0; s < w.problem.nsites; s++) all += w.sites[s].workers;
      assert_int_equal(workers, all);
      assert_true(gt_pipe_found_same(&f, &again.found[i]));
      assert_true(f.period_s == again.found[i].period_s);
      gt_pipe_found_close(&f);
    }
    gt_pipe_search_close(&again);
    gt_pipe_search_close(&r);
  }
}

/* A slow region without other advantages gets fewer operations. */
static void unequal_regions(void) {
  search_world w;
  gt_pipe_search_result r;
  ws_large(&w, 2, 1);
  w.power[1][0] = 1.0 / 3;
  w.problem.micro_batches = 16;
  must(gt_pipe_search_run(&r, &w.problem));
  const gt_pipe_found *f = &r.found[0];
  size_t own[2] = {0, 0};
  for (size_t k = 0; k < f->stages * f->chunks; k++)
    own[f->places[gt_pipe_stage_of(f->stages, k)].region] +=
        f->ends[k] - (k > 0 ? f->ends[k - 1] : 0);
  assert_int_equal(own[0] + own[1], 48);
  assert_true(own[0] >= 34 && own[0] <= 38);
  gt_pipe_search_close(&r);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refused(search_world *w, const char *words) {
  gt_pipe_search_result r;
  must_fail(gt_pipe_search_run(&r, &w->problem), GT_ERR_JOB, words);
  assert_true(r.n == 0 && !r.found);
}

static void refusals(void) {
  search_world w;
  ws_large(&w, 2, 2);
  w.problem.micro_batches = 7;
  refused(&w, "7 micro-batches of a batch of 256 samples; expected a number that divides it");
  ws_large(&w, 2, 2);
  w.sites[0].starts = w.sites[1].starts = false;
  refused(&w, "no region may have the first stage");
  ws_large(&w, 2, 2);
  w.power[1][1] = 0;
  refused(&w, "worker 1 of region 1 has a power of 0");
  ws_large(&w, 2, 2);
  w.pieces[3].work.forward_s = -1;
  refused(&w, "piece 3 takes -1, ");
  ws_large(&w, 2, 2);
  w.sites[0].memory_bytes = w.sites[1].memory_bytes = 1e5;
  refused(&w, "no pipeline fits into the memory of the workers");
  ws_large(&w, 1, 7);
  w.problem.npieces = 1;
  refused(&w, "no pipeline can use all workers of all regions");
}

TESTS(small, laws, unequal_regions, refusals)
