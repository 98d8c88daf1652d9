/* The operations of the job's model on all workers at once. */
#include <stdio.h>

#include "fleet.h"

typedef struct {
  gt_probe_state *p;
  gt_graph *graph;
  gt_span *spans;
  size_t n; /* spans */
  gt_loader *loader;
  float *x;
  int32_t *y;
  gt_micro_batch batch;
} bench;

/* ---- open and close -------------------------------------------------------------------------- */

static gt_status load(bench *b) {
  const gt_run *run = &b->p->run;
  const size_t n = run->batch;
  b->x = GT_NEW_ARRAY(float, n * run->data.h * run->data.w * run->data.c);
  b->y = GT_NEW_ARRAY(int32_t, n);
  GT_TRY(gt_setup_loader(run, n, &b->loader));
  gt_loader_range(b->loader, 0, n, b->x, b->y);
  b->batch = (gt_micro_batch){b->x, b->y, n};
  return GT_OK;
}

static gt_status open_bench(bench *b, gt_probe_state *p) {
  const gt_run *run = &p->run;
  gt_graph_spec spec = gt_setup_graph_spec(run);
  *b = (bench){.p = p, .n = gt_probe_spans(run->graph, NULL)};
  b->spans = GT_NEW_ARRAY(gt_span, b->n);
  gt_probe_spans(run->graph, b->spans);
  if (run->roles.is_ps) return GT_OK;
  spec.batch_max = run->batch;
  spec.slots = 1;
  spec.spans = b->spans;
  spec.nspans = b->n;
  spec.micros = 1;
  GT_TRY(gt_graph_create(&b->graph, &spec));
  gt_graph_init(b->graph, run->job->seed);
  gt_graph_prepare(b->graph, run->batch);
  return load(b);
}

static void close_bench(bench *b) {
  gt_graph_close(b->graph);
  gt_loader_close(b->loader);
  gt_free(b->spans);
  gt_free(b->x);
  gt_free(b->y);
}

/* ---- all ranks ------------------------------------------------------------------------------- */

static void gather(gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  const int bytes = (int)(p->noperations * sizeof *p->passes);
  MPI_Request request;
  if (roles->world_rank == 0)
    p->all_passes = GT_NEW_ARRAY(gt_probe_passes, (size_t)roles->world_size * p->noperations);
  GT_MPI(MPI_Igather(p->passes, bytes, MPI_BYTE, p->all_passes, bytes, MPI_BYTE, 0, roles->world,
                     &request));
  gt_wait_all(&request, 1, "the operations' times of all workers", p->limit_s, NULL, NULL);
}

void gt_probe_operations(gt_probe_state *p) {
  bench b;
  const gt_status status = gt_agree(p->run.roles.world, open_bench(&b, p), p->limit_s);
  if (status == GT_OK) {
    p->noperations = b.n;
    p->passes = GT_NEW_ARRAY(gt_probe_passes, b.n);
    gt_probe_meet(p, "the other ranks before the operations");
    if (!p->run.roles.is_ps) gt_probe_passes_of(b.graph, b.spans, b.n, &b.batch, p->passes);
    gt_probe_meet(p, "the operations of other workers");
    gather(p);
  } else {
    snprintf(p->operations_error, sizeof p->operations_error, "%s", gt_error_text());
  }
  close_bench(&b);
}
