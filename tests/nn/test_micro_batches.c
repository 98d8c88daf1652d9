/* Steps of micro-batches against fused steps: the sum and the mean of their gradients; empty
   micro-batches add nothing. */
#include "world_passes.h"

static gt_rng rng;

/* True if the gradient of the tensor's operation is accumulated row by row, or with that of a
   borrower. */
static bool adds_rows(const gt_graph *graph, size_t view) {
  for (size_t i = 0; i < graph->nops; i++)
    if (graph->ops[i].weight == view && graph->ops[i].kind->ids) return true;
  return false;
}

static bool lends(const gt_graph *graph, size_t view) {
  for (size_t i = 0; i < graph->nops; i++)
    if (graph->ops[i].weight == view && graph->ops[i].lends) return true;
  return false;
}

/* A graph of fused steps and one of micro-batches, with the same values. */
typedef struct {
  gt_graph *fused, *judge;
  const gt_arrays *f, *s;
  w_micros d;
} pair;

static pair open_pair(const w_bench *b, const char *table, size_t micro_batches) {
  gt_graph_spec spec = w_spec_of(b, table, GT_F32);
  pair p = {.fused = w_graph(&spec), .d = w_open_data(b)};
  spec.slots = 1, spec.micro_batches = micro_batches;
  p.judge = w_graph(&spec);
  gt_graph_init(p.fused, 3);
  gt_graph_init(p.judge, 3);
  p.f = gt_graph_arrays(p.fused), p.s = gt_graph_arrays(p.judge);
  return p;
}

static void close_pair(pair *p) {
  w_close_data(&p->d);
  gt_graph_close(p->judge);
  gt_graph_close(p->fused);
}

/* Checks that the gradient of a step of m micro-batches is the sum of those of m fused steps, with
   the same bits unless rows of a table are accumulated one by one.  With m = 1 only a lent table
   can differ, because the borrower's part comes last instead of first. */
static void check_sums(const w_bench *b, const char *table, size_t m) {
  pair p = open_pair(b, table, 0);
  const gt_arrays *f = p.f, *s = p.s;
  float *sum = GT_NEW_ARRAY(float, f->grads.n);
  gt_metrics metrics, right[W_MICROS];
  for (int step = 0; step < 2; step++) {
    w_draw(b, &rng, &p.d, m, gt_graph_least(p.fused));
    w_judge_step(p.judge, &p.d, right);
    for (size_t j = 0; j < m; j++) {
      gt_graph_step(p.fused, p.d.samples[j], p.d.labels[j], p.d.micro_batches[j].n, true, &metrics);
      assert_true(metrics.loss_sum == right[j].loss_sum && metrics.correct == right[j].correct);
      if (j == 0)
        memcpy(sum, f->grads.data, f->grads.n * sizeof *sum);
      else
        gt_vec_axpy(gt_vec_of(sum, f->grads.n), 1, f->grads);
    }
    for (size_t v = 0; v < f->nviews; v++) {
      const size_t at = f->views[v].offset, n = f->views[v].count;
      if (lends(p.judge, v) || (m > 1 && adds_rows(p.judge, v)))
        assert_true(w_difference(s->grads.data + at, sum + at, n) < 1e-5);
      else
        assert_memory_equal(s->grads.data + at, sum + at, n * sizeof *sum);
    }
    assert_memory_equal(s->buffers.data, f->buffers.data, f->buffers.n * sizeof(float));
  }
  close_pair(&p);
  gt_free(sum);
}

static void sums_of_fused_steps(void) {
  for (size_t t = 0; t < COUNT(w_pass_tables); t++)
    for (size_t b = 0; b < W_BENCHES; b++) {
      if (!gt_kernels_find(w_pass_tables[t]) || (w_benches[b].large && t != 1)) continue;
      if (all_cases()) check_sums(&w_benches[b], w_pass_tables[t], 1);
      check_sums(&w_benches[b], w_pass_tables[t], 3);
    }
}

/* Micro-batches of equal size: the mean of their gradients is that of the whole batch, unless a
   normalisation sees less of it. */
static void mean_of_the_batch(void) {
  for (size_t k = 0; k < W_BENCHES; k++) {
    w_bench b = w_benches[k];
    if (b.large) continue;
    const size_t size = b.shape.h * b.shape.w * b.shape.c, half = b.batch / 2;
    pair p = open_pair(&b, "auto", 2);
    w_micros *d = &p.d;
    gt_metrics metrics, right[W_MICROS];
    w_draw(&b, &rng, d, 1, b.batch);
    gt_graph_step(p.fused, d->samples[0], d->labels[0], b.batch, true, &metrics);
    d->m = 2;
    d->micro_batches[1] = (gt_micro_batch){(char *)d->samples[0] + half * size * sizeof(float),
                                           d->labels[0] + half, half};
    d->micro_batches[0].n = half;
    w_judge_step(p.judge, d, right);
    gt_vec_scale(p.s->grads, 0.5F);
    for (size_t v = 0; v < p.f->nviews; v++) {
      const gt_view *view = &p.f->views[v];
      assert_true(w_difference(p.s->grads.data + view->offset, p.f->grads.data + view->offset,
                               view->count) < 1e-4);
    }
    assert_true(fabs(right[0].loss_sum + right[1].loss_sum - metrics.loss_sum) <
                1e-5 * metrics.loss_sum);
    close_pair(&p);
  }
}

/* An empty micro-batch adds nothing, first or not. */
static void empty_micro_batches(void) {
  for (size_t k = 0; k < W_BENCHES; k++) {
    const w_bench *b = &w_benches[k];
    if (b->large) continue;
    gt_graph_spec spec = w_spec_of(b, "auto", GT_F32);
    spec.slots = 1, spec.micro_batches = W_MICROS;
    gt_graph *one = w_graph(&spec), *other = w_graph(&spec);
    const gt_arrays *a = gt_graph_arrays(one), *o = gt_graph_arrays(other);
    w_micros d = w_open_data(b), with = d;
    gt_metrics metrics[W_MICROS];
    gt_graph_init(one, 3);
    gt_graph_init(other, 3);
    for (int step = 0; step < 3; step++) {
      w_draw(b, &rng, &d, 2, 1);
      w_judge_step(one, &d, metrics);
      with.m = 4;
      with.micro_batches[0] = with.micro_batches[2] = (gt_micro_batch){.n = 0};
      with.micro_batches[1] = d.micro_batches[0];
      with.micro_batches[3] = d.micro_batches[1];
      w_judge_step(other, &with, metrics);
      assert_true(metrics[0].samples == 0 && metrics[0].loss_sum == 0.0);
      for (size_t i = 0; i < a->grads.n; i++) assert_true(a->grads.data[i] == o->grads.data[i]);
    }
    w_close_data(&d);
    gt_graph_close(one);
    gt_graph_close(other);
  }
}

int main(void) {
  rng = gt_rng_make(12, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, sums_of_fused_steps, mean_of_the_batch, empty_micro_batches);
}
