/* Random small problems of the search for a pipeline, and the best of all their pipelines. */
#ifndef GEOTRAIN_TEST_PIPE_WORLD_SEARCH_H
#define GEOTRAIN_TEST_PIPE_WORLD_SEARCH_H

#include "geotrain/pipe_search.h"
#include "search.h"

#define WS_PIECES  64
#define WS_SITES   8
#define WS_WORKERS 100

typedef struct {
  gt_pipe_search_problem problem; /* points into the rest: it stays where it is */
  gt_pipe_piece pieces[WS_PIECES];
  gt_pipe_site sites[WS_SITES];
  double power[WS_SITES][WS_WORKERS];
  gt_link_spec links[WS_SITES * WS_SITES];
  gt_pipe_wan wan;
} search_world;

/* Up to 5 pieces, 3 regions and 4 workers; links, speeds and memory are drawn. */
void ws_draw(search_world *w, uint64_t seed);

/* 48 operations alike, regions of so many workers, a third of them half as fast; each may start. */
void ws_large(search_world *w, size_t sites, size_t workers);

/* The least period of all pipelines that pass each region once, the first one perhaps again at the
   end, and use all workers.  Those whose bound is not below `below_s` are not simulated.  seen:
   their number.  A period below its bound fails the test.  INFINITY: none is below. */
double ws_best(const search_world *w, double below_s, size_t variants, size_t *seen);

/* The search of `cases` problems from a seed on against the best of all. */
void ws_compare(uint64_t seed, size_t cases, double effort);

#endif
