/* session_graph: the graphs of the sessions of a batch (Wu et al. 2019, 3.2), packed: the distinct
   items of a session are its nodes; each click on an item, after another or the same one, is an
   edge, counted once.  Local. */
#pragma once

#include "graph.h"

/* The longest session: the search for an item takes time in proportion to the length. */
#define GT_SESSION_MOST 1024

/* M nodes, those of session i from first[i] to first[i+1], in the order of their first occurrence;
   E edges. */
typedef struct {
  size_t N, M, E;
  uint32_t *first, *last; /* (N+1); (N): the node of the last item, if any */
  float *count;           /* (M): how often the item occurs */
  int32_t *items;         /* (M) */
  float *in, *out;        /* (M): 1 / the number of edges to a node, and from it; 0: no edges */
  uint32_t *from, *to;    /* (E): nodes */
} gt_session_graph;

/* Returns the floats of memory for N sessions of T items. */
size_t gt_session_graph_floats(size_t N, size_t T);
/* Reads samples (N,T) of ids; GT_PADDING is skipped anywhere.  The graph is in `memory`. */
gt_session_graph gt_session_graph_read(float *memory, const int32_t *samples, size_t N, size_t T);
/* The same, but every click is a node of its own, and there are no edges. */
gt_session_graph gt_session_clicks_read(float *memory, const int32_t *samples, size_t N, size_t T);
/* Returns the graph that was last read there. */
gt_session_graph gt_session_graph_at(float *memory, size_t N, size_t T);
gt_session_shape gt_session_graph_shape(const gt_session_graph *graph, size_t H);
