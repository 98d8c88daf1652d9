/* Finds nodes and edges by linear search, because sessions are short. */
#include "session_graph.h"

size_t gt_session_graph_floats(size_t N, size_t T) {
  return (2 * N + 2 + 6 * N * T + 15) / 16 * 16;
}

/* Lays out the arrays, in a fixed order; the number of edges comes first. */
static gt_session_graph lay_out(float *memory, size_t N, size_t T) {
  gt_session_graph g = {.N = N, .first = (uint32_t *)(void *)memory + 1};
  g.last = g.first + N + 1;
  g.count = memory + 2 * N + 2;
  g.items = (int32_t *)(void *)(g.count + N * T);
  g.in = g.count + 2 * N * T;
  g.out = g.in + N * T;
  g.from = (uint32_t *)(void *)(g.out + N * T);
  g.to = g.from + N * T;
  return g;
}

/* Returns the node of an item of the session whose nodes begin at `first`; adds one if there is
   none. */
static uint32_t node_of(gt_session_graph *g, size_t first, int32_t item) {
  size_t j = first;
  while (j < g->M && g->items[j] != item) j++;
  if (j == g->M) {
    g->items[j] = item;
    g->count[j] = g->in[j] = g->out[j] = 0.0F;
    g->M++;
  }
  g->count[j] += 1.0F;
  return (uint32_t)j;
}

static void add_edge(gt_session_graph *g, size_t first, uint32_t from, uint32_t to) {
  for (size_t e = first; e < g->E; e++)
    if (g->from[e] == from && g->to[e] == to) return;
  g->from[g->E] = from;
  g->to[g->E++] = to;
  g->out[from] += 1.0F;
  g->in[to] += 1.0F;
}

/* Reads a session; padding can be anywhere among its T ids. */
static void read_session(gt_session_graph *g, size_t i, const int32_t *ids, size_t T) {
  const size_t edges = g->E;
  bool begun = false;
  g->first[i] = g->last[i] = (uint32_t)g->M;
  for (size_t t = 0; t < T; t++) {
    if (ids[t] == GT_PADDING) continue;
    const uint32_t node = node_of(g, g->first[i], ids[t]);
    if (begun) add_edge(g, edges, g->last[i], node);
    g->last[i] = node;
    begun = true;
  }
}

static float inverse(float n) {
  return n > 0.0F ? 1.0F / n : 0.0F;
}

gt_session_graph gt_session_graph_read(float *memory, const int32_t *samples, size_t N, size_t T) {
  gt_session_graph g = lay_out(memory, N, T);
  for (size_t i = 0; i < N; i++) read_session(&g, i, samples + i * T, T);
  g.first[N] = (uint32_t)g.M;
  g.first[-1] = (uint32_t)g.E;
  for (size_t j = 0; j < g.M; j++) {
    g.in[j] = inverse(g.in[j]);
    g.out[j] = inverse(g.out[j]);
  }
  return g;
}

gt_session_graph gt_session_clicks_read(float *memory, const int32_t *samples, size_t N, size_t T) {
  gt_session_graph g = lay_out(memory, N, T);
  for (size_t i = 0; i < N; i++) {
    g.first[i] = g.last[i] = (uint32_t)g.M;
    for (size_t t = 0; t < T; t++) {
      if (samples[i * T + t] == GT_PADDING) continue;
      g.items[g.M] = samples[i * T + t];
      g.count[g.M] = 1.0F;
      g.last[i] = (uint32_t)g.M++;
    }
  }
  g.first[N] = (uint32_t)g.M;
  g.first[-1] = 0;
  return g;
}

gt_session_graph gt_session_graph_at(float *memory, size_t N, size_t T) {
  gt_session_graph g = lay_out(memory, N, T);
  g.M = g.first[N];
  g.E = g.first[-1];
  return g;
}

gt_session_shape gt_session_graph_shape(const gt_session_graph *g, size_t H) {
  return (gt_session_shape){
      .N = g->N, .H = H, .first = g->first, .last = g->last, .count = g->count};
}
