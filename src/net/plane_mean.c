/* The mean of a step's gradients, computed by its workers in shared memory during their backward
   passes.  Every rank uses gt_vec_mean, so the bits do not depend on which rank computes a chunk,
   or when. */
#include "internal.h"

#include "geotrain/tensor.h"

/* a chunk takes far less; a stopped claimant could take for ever */
#define CLAIMANT_PATIENCE_NS ((gt_ns)50000000)

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics work between processes");
_Static_assert(sizeof(gt_announcement) == 64 && sizeof(gt_chunk) == 64, "a line each");

void gt_mean_open(gt_mean *m, const gt_shared *s, size_t self) {
  *m = (gt_mean){.common = gt_shared_common(s),
                 .nparams = s->n.nparams,
                 .nchunks = gt_chunks(s->n.nparams),
                 .self = self};
  if (!m->common.mean) return;
  if (m->nchunks >> GT_CHUNK_BITS) gt_bug("%zu parameters have too many chunks", m->nparams);
  m->grads = GT_NEW_ARRAY(const float *, s->nworkers);
  m->parts = GT_NEW_ARRAY(const float *, s->nworkers);
  m->samples = GT_NEW_ARRAY(int64_t, s->nworkers);
  for (size_t w = 0; w < s->nworkers; w++) m->grads[w] = gt_shared_segment(s, (int)w + 1).grads;
}

void gt_mean_close(gt_mean *m) {
  gt_free(m->grads);
  gt_free(m->parts);
  gt_free(m->samples);
}

void gt_mean_begin(gt_mean *m, const gt_order_msg *order) {
  bool any = m->common.mean && order->workers > 1;
  if (any && (uint64_t)order->step == m->step) return;
  m->step = any ? (uint64_t)order->step : 0;
  m->workers = order->workers;
  m->left = any ? m->nchunks : 0;
}

void gt_mean_announce(gt_mean *m, size_t first, int64_t samples) {
  if (m->step == 0) return;
  gt_announcement *own = &m->common.announced[m->self];
  uint64_t final = m->step << GT_CHUNK_BITS | (m->nchunks - gt_chunks(first));
  if (atomic_load_explicit(&own->final, memory_order_relaxed) == final) return;
  atomic_store_explicit(&own->samples, samples, memory_order_relaxed);
  atomic_store_explicit(&own->final, final, memory_order_release);
}

/* True if chunk c and all later chunks are final on every worker of this step, and no worker is in
   a later step. */
static bool ready(const gt_mean *m, size_t c) {
  for (size_t w = 0; w < m->workers; w++) {
    uint64_t final = atomic_load_explicit(&m->common.announced[w].final, memory_order_acquire);
    uint64_t step = final >> GT_CHUNK_BITS, chunks = final & (((uint64_t)1 << GT_CHUNK_BITS) - 1);
    if (step != m->step || chunks < m->nchunks - c) return false;
  }
  return true;
}

/* Claims the chunk.  False: another rank has claimed it, in this step or in an earlier one without
   finishing. */
static bool claim(const gt_mean *m, size_t c) {
  _Atomic uint64_t *state = &m->common.chunks[c].state;
  uint64_t seen = atomic_load_explicit(state, memory_order_relaxed);
  if ((seen & 1) || seen >> 1 >= m->step) return false;
  return atomic_compare_exchange_strong_explicit(state, &seen, m->step << 1 | 1,
                                                 memory_order_acquire, memory_order_relaxed);
}

static void add(const gt_mean *m, size_t c) {
  size_t at = c * GT_CHUNK_FLOATS, left = m->nparams - at,
         n = left < GT_CHUNK_FLOATS ? left : GT_CHUNK_FLOATS;
  for (size_t w = 0; w < m->workers; w++) {
    m->parts[w] = m->grads[w] + at;
    m->samples[w] = atomic_load_explicit(&m->common.announced[w].samples, memory_order_relaxed);
  }
  gt_vec_mean(gt_vec_of(m->common.mean + at, n), m->parts, m->samples, m->workers);
  atomic_store_explicit(&m->common.chunks[c].state, m->step << 1, memory_order_release);
}

bool gt_mean_work(gt_mean *m) {
  bool any = false;
  for (; m->left > 0; m->left--) {
    size_t c = m->left - 1;
    if (c % m->workers != m->self) continue;
    if (!ready(m, c)) break;
    if (!claim(m, c)) continue;
    add(m, c);
    any = true;
  }
  return any;
}

/* Waits until the claimants have finished their chunks. */
static bool all_there(const gt_mean *m) {
  gt_backoff backoff = {0};
  gt_ns until = gt_now() + CLAIMANT_PATIENCE_NS;
  for (size_t c = 0; c < m->nchunks; c++)
    while (atomic_load_explicit(&m->common.chunks[c].state, memory_order_acquire) != m->step << 1) {
      if (gt_now() > until) return false;
      gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, until);
    }
  return true;
}

const float *gt_mean_finish(gt_mean *m) {
  if (m->step == 0 || !ready(m, 0)) return NULL;
  for (size_t c = 0; c < m->nchunks; c++)
    if (claim(m, c)) add(m, c);
  return all_there(m) ? m->common.mean : NULL;
}
