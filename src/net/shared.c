/* Shared memory between the ranks of a region on one node: gradients and parameters of a worker are
   read and written in place. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define SETUP_LIMIT_S 120.0

/* Every rank has one segment.  It contains its bell; on a worker then gradients, parameters,
   buffers, scores and activations; on the PS the snapshot and the data common to the workers. */
static size_t segment_bytes(const gt_shared *s, int rank) {
  const size_t params = gt_padded(s->n.nparams), buffers = gt_padded(s->n.nbuffers);
  if (rank > 0)
    return sizeof(gt_bell) +
           (2 * params + buffers + gt_padded(s->n.nscores) + GT_LINE_FLOATS) * sizeof(float) +
           gt_padded_bytes(s->n.nactivations);
  size_t bytes = sizeof(gt_bell) + (2 * params + buffers + GT_LINE_FLOATS) * sizeof(float);
  if (s->nworkers > 1)
    bytes += s->nworkers * sizeof(gt_announcement) + gt_chunks(s->n.nparams) * sizeof(gt_chunk) +
             params * sizeof(float);
  return bytes;
}

/* Collective over region: true when all its ranks are on one node. */
static bool one_node(MPI_Comm region) {
  MPI_Comm node;
  int all, here;
  GT_MPI(MPI_Comm_size(region, &all));
  GT_MPI(MPI_Comm_split_type(region, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  GT_MPI(MPI_Comm_size(node, &here));
  GT_MPI(MPI_Comm_free(&node));
  return here == all;
}

static void *aligned_base(const gt_shared *s, int rank) {
  MPI_Aint size;
  int unit;
  char *base;
  GT_MPI(MPI_Win_shared_query(s->window, rank, &size, &unit, &base));
  return base + (64 - (uintptr_t)base % 64) % 64;
}

gt_bell *gt_shared_bell(const gt_shared *s, int rank) {
  return s->window == MPI_WIN_NULL ? NULL : aligned_base(s, rank);
}

/* The address after the bell. */
static void *arrays_base(const gt_shared *s, int rank) {
  return gt_shared_bell(s, rank) + 1;
}

gt_plane_snapshot gt_shared_snapshot(const gt_shared *s) {
  float *params = arrays_base(s, 0);
  return (gt_plane_snapshot){.params = params, .buffers = params + gt_padded(s->n.nparams)};
}

gt_common gt_shared_common(const gt_shared *s) {
  gt_common common = {0};
  if (s->window == MPI_WIN_NULL) return common;
  void *behind = gt_shared_snapshot(s).buffers + gt_padded(s->n.nbuffers);
  common.params = behind;
  if (s->nworkers < 2) return common;
  common.announced = behind;
  common.chunks = (gt_chunk *)(common.announced + s->nworkers);
  common.mean = (float *)(common.chunks + gt_chunks(s->n.nparams));
  common.params = common.mean + gt_padded(s->n.nparams);
  return common;
}

gt_segment gt_shared_segment(const gt_shared *s, int rank) {
  gt_segment a = {.grads = arrays_base(s, rank)};
  a.params = a.grads + gt_padded(s->n.nparams);
  a.buffers = a.params + gt_padded(s->n.nparams);
  a.scores = a.buffers + gt_padded(s->n.nbuffers);
  a.activations = (uint8_t *)(a.scores + gt_padded(s->n.nscores));
  return a;
}

/* Initialises bells and announcements; no rank uses them before all ranks see the initial
   values. */
static void clear(const gt_shared *s, MPI_Comm region, int rank) {
  gt_common common = gt_shared_common(s);
  atomic_init(&gt_shared_bell(s, rank)->rings, 0);
  for (size_t w = 0; rank == 0 && common.mean && w < s->nworkers; w++) {
    atomic_init(&common.announced[w].final, 0);
    atomic_init(&common.announced[w].samples, 0);
  }
  for (size_t c = 0; rank == 0 && common.mean && c < gt_chunks(s->n.nparams); c++)
    atomic_init(&common.chunks[c].state, 0);
  gt_shared_sync(s);
  GT_MPI(MPI_Barrier(region));
  gt_shared_sync(s);
}

void gt_shared_open(gt_shared *s, MPI_Comm region, const gt_plane_size *n) {
  int rank, size;
  GT_MPI(MPI_Comm_rank(region, &rank));
  GT_MPI(MPI_Comm_size(region, &size));
  *s = (gt_shared){.window = MPI_WIN_NULL, .nworkers = (size_t)size - 1, .n = *n};
  gt_watch_begin("the shared memory of a region", SETUP_LIMIT_S, GT_ERR_LOST);
  /* GEOTRAIN_LOCAL_PLANE=messages: no shared memory, as between nodes; for tests, and if shared
     memory is scarce. */
  const char *forced = getenv("GEOTRAIN_LOCAL_PLANE");
  bool wanted = !(forced && strcmp(forced, "messages") == 0);
  int agreed = wanted;
  GT_MPI(MPI_Allreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT, MPI_MIN, region));
  if (one_node(region) && agreed) {
    void *base;
    GT_MPI(MPI_Win_allocate_shared((MPI_Aint)segment_bytes(s, rank), (int)sizeof(float),
                                   MPI_INFO_NULL, region, &base, &s->window));
    GT_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, s->window));
    clear(s, region, rank);
  }
  gt_watch_end();
}

void gt_shared_close(gt_shared *s, double limit_s) {
  if (s->window == MPI_WIN_NULL) return;
  gt_watch_begin("the end of a region's shared memory", limit_s, GT_ERR_LOST);
  GT_MPI(MPI_Win_unlock_all(s->window));
  GT_MPI(MPI_Win_free(&s->window));
  gt_watch_end();
}

void gt_shared_sync(const gt_shared *s) {
  if (s->window != MPI_WIN_NULL) GT_MPI(MPI_Win_sync(s->window));
}
