/* A pipeline over fewer regions equals the best one of the remaining regions, over their own links
   and accesses. */
#include "small.h"
#include "pipeline_search.h"

#define BATCH  8
#define PIECES 6
#define SITES  3

/* A region of one worker each: the first is not useful, and its access is slow. */
typedef struct {
  gt_pipe_search_problem problem; /* points into the rest */
  gt_pipe_piece pieces[PIECES];
  gt_pipe_site sites[SITES];
  double power[SITES], up_bps[SITES], down_bps[SITES];
  gt_link_spec links[SITES * SITES];
  gt_pipe_wan wan;
} world;

static void open_world(world *w) {
  static const double power[SITES] = {0.01, 1, 0.8}, up[SITES] = {1e4, 2e7, 1e7},
                      down[SITES] = {2e4, 3e7, 4e7};
  memset(w, 0, sizeof *w);
  for (size_t i = 0; i < PIECES; i++)
    w->pieces[i] = (gt_pipe_piece){
        .work = {0.01, 0.01, 0.01, 1e6, 1e5, 0, 1e5}, .samples = i == 0, .owner = SIZE_MAX};
  for (size_t s = 0; s < SITES; s++) {
    w->power[s] = power[s];
    w->up_bps[s] = up[s];
    w->down_bps[s] = down[s];
    w->sites[s] = (gt_pipe_site){
        .workers = 1, .power = &w->power[s], .memory_bytes = INFINITY, .starts = true};
  }
  for (size_t i = 0; i < SITES * SITES; i++)
    w->links[i] = (gt_link_spec){.latency_s = 0.001 * (double)(1 + i), .bandwidth_bps = 1e8};
  w->wan = (gt_pipe_wan){
      .nregions = SITES, .links = w->links, .up_bps = w->up_bps, .down_bps = w->down_bps};
  w->problem = (gt_pipe_search_problem){.pieces = w->pieces,
                                        .npieces = PIECES,
                                        .sites = w->sites,
                                        .nsites = SITES,
                                        .wan = &w->wan,
                                        .batch = BATCH,
                                        .kind = GT_PIPE_1F1B,
                                        .copies = 2};
}

/* The period of the best pipeline of the second and third region, which make a problem of two. */
static double period_of_two(const world *w) {
  const gt_link_spec links[] = {w->links[4], w->links[5], w->links[7], w->links[8]};
  const gt_pipe_wan wan = {
      .nregions = 2, .links = links, .up_bps = w->up_bps + 1, .down_bps = w->down_bps + 1};
  gt_pipe_search_problem two = w->problem;
  gt_pipe_search_result result;
  two.sites = w->sites + 1;
  two.nsites = 2;
  two.wan = &wan;
  two.idle = true;
  must(gt_pipe_search_run(&result, &two));
  const double period_s = result.found[0].period_s;
  gt_pipe_search_close(&result);
  return period_s;
}

static void test_the_others_keep_their_links_and_accesses(void) {
  static const size_t workers[SITES] = {0, 1, 1};
  world w;
  gt_planner_search s = {.asked = small_job("")};
  s.asked->train.batch = BATCH;
  open_world(&w);
  const double two_s = period_of_two(&w);
  gt_planner_find_fewer(&s, &w.problem, 2 * two_s);
  assert_float_equal((float)(s.fewer_per_s * two_s / BATCH), 1, 1e-6);
  assert_memory_equal(s.fewer, workers, sizeof workers);
  gt_free(s.fewer);
  gt_planner_find_fewer(&s, &w.problem, two_s); /* no gain */
  assert_true(s.fewer_per_s == 0);
  gt_free(s.fewer);
  gt_job_close(s.asked);
}

TESTS(test_the_others_keep_their_links_and_accesses)
