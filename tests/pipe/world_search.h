/* Random small problems of the search for a pipeline, and the best of all their pipelines. */
#pragma once

#include "geotrain/pipe_search.h"
#include "search.h"

#define WS_PIECES  64
#define WS_SITES   8
#define WS_WORKERS 100

typedef struct {
  gt_pipe_search_problem problem; /* points into the rest, so it must not move */
  gt_pipe_piece pieces[WS_PIECES];
  gt_pipe_site sites[WS_SITES];
  double power[WS_SITES][WS_WORKERS];
  gt_link_spec links[WS_SITES * WS_SITES];
  gt_pipe_wan wan;
} search_world;

/* Draws a problem: up to 5 pieces, 3 regions and 4 workers; links, speeds and memory are random. */
void ws_draw(search_world *w, uint64_t seed);

/* Makes 48 equal operations, regions of so many workers, a third of them half as fast; each region
   can be the first. */
void ws_large(search_world *w, size_t sites, size_t workers);

/* Returns the lowest period of all pipelines that pass each region once, the first one optionally
   again at the end, and use all workers.  Those whose bound is not below `below_s` are not
   simulated.  seen: their number.  A period below its bound fails the test.  INFINITY: none is
   below. */
double ws_best(const search_world *w, double below_s, size_t variants, size_t *seen);

/* Compares the search of `cases` problems from a seed on with the best of all. */
void ws_compare(uint64_t seed, size_t cases, double effort);
