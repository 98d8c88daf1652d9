/* The world: its problem, and what tests look at. */
#include "world.h"

/* ---- the problem: batch b of region r has the target t(r, b) ; loss 1/2 sum (w - t)^2 -------- */

float w_target(size_t region, int64_t batch, size_t j) {
  return (float)((int)((region * 5 + j * 2) % 7) - 3) +
         0.125f * (float)((batch * 7 + (int64_t)j) % 5);
}

gt_order w_order_of(const w_spec *spec, size_t region) {
  return (gt_order){
      .seed = spec->seed, .region = region, .n = spec->samples[region], .batch = spec->batch};
}

int64_t w_per_epoch(const w_spec *spec, size_t region) {
  gt_order order = w_order_of(spec, region);
  return gt_order_batches_per_epoch(&order);
}

float w_score(int64_t i) {
  return (float)((7 * i) % 11);
}

const int32_t *w_labels(void) {
  static const int32_t labels[W_TEST] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0,
                                         1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0};
  return labels;
}

double w_auc(size_t n) {
  float scores[W_TEST];
  uint32_t scratch[W_TEST];
  for (size_t i = 0; i < n; i++) scores[i] = w_score((int64_t)i);
  return gt_auc(scores, w_labels(), n, scratch);
}

/* ---- rings ----------------------------------------------------------------------------------- */

w_frame *w_at(w_ring *ring, size_t k) {
  return &ring->frames[(ring->head + k) % W_RING];
}

void w_push(w_ring *ring, const w_frame *frame) {
  assert_true(ring->count < W_RING);
  *w_at(ring, ring->count++) = *frame;
}

w_frame w_pop(w_ring *ring) {
  w_frame frame = *w_at(ring, 0);
  ring->head = (ring->head + 1) % W_RING;
  ring->count--;
  return frame;
}

/* ---- looks ----------------------------------------------------------------------------------- */

gt_ps_view w_look(const world *w, size_t region) {
  gt_ps_view view;
  gt_ps_look(w->regions[region].ps, w->now, &view);
  return view;
}

bool w_all_in(const world *w, gt_ps_phase phase) {
  for (size_t i = 0; i < w->n; i++)
    if (w_look(w, i).phase != phase) return false;
  return true;
}

static const char *w_phase_name(gt_ps_phase phase) {
  static const char *const names[] = {"training", "draining", "following", "complete", "stopped"};
  return names[phase];
}

void w_print(const world *w) {
  const w_spec *s = &w->spec;
  fprintf(stderr,
          "%s %s over %s, seed %llu, %zu regions, period %lld, outbox %zu, window %zu, at %.3f s, "
          "%lld events, %lld restarts\n",
          s->strategy, s->local_async ? "async" : "sync", gt_topology_names[s->topology],
          (unsigned long long)s->seed, w->n, (long long)s->period, s->outbox, s->window,
          gt_seconds(w->now), (long long)w->events, (long long)w->restarts);
  for (size_t i = 0; i < w->n; i++) {
    gt_ps_view v = w_look(w, i);
    fprintf(stderr,
            "  region %zu: %s%s, %lld steps, %lld batches, %lld samples of %zu, round %lld whole "
            "%lld stop %d\n",
            i, w_phase_name(v.phase), v.held ? " held" : "", (long long)v.steps,
            (long long)v.batches, (long long)v.samples, s->samples[i], (long long)v.round,
            (long long)v.whole_round, (int)v.stop_code);
  }
}
