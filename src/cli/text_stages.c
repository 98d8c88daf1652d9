/* A model of text in parts, one on each rank. */
#include "text_stages.h"

#include <stdio.h>
#include <string.h>

#include "checkpoint_model.h"
#include "geotrain/net_mpi.h"
#include "geotrain/nn_span.h"

#define LIMIT_S 300.0
enum { TAG_ACTIVATION = 1, TAG_LOGITS = 2 };

struct gt_text_stages {
  gt_peers *world;
  int rank;
  size_t nparts;           /* ranks with a part, the first ones */
  gt_graph *whole;         /* sizes only */
  gt_graph *part;          /* NULL: this rank has no part */
  float *params, *buffers; /* of the part, which has no gradients */
  size_t span;             /* of the part's graph: its operations */
  size_t in_bytes, out_bytes;
  size_t T, V;
  int32_t *order; /* (T+2): the requested position, or -1: the end; then the window */
  float *logits;  /* (V) */
};

/* ---- division into parts --------------------------------------------------------------------- */

/* Returns the end of the part that begins at `first` and has at most `most` parameters, or one
   piece that cannot be divided. */
static size_t part_end(const gt_graph *whole, size_t first, size_t most) {
  const size_t n = gt_graph_operations(whole);
  size_t end = first, sum = 0;
  for (size_t i = first; i < n; i++) {
    const gt_operation op = gt_graph_operation(whole, i);
    sum += op.params;
    if (!op.ends && i + 1 < n) continue;
    if (sum > most && end > first) break;
    end = i + 1;
  }
  return end;
}

static size_t parts_of(const gt_graph *whole, size_t most) {
  size_t n = 0;
  for (size_t at = 0; at < gt_graph_operations(whole); n++) at = part_end(whole, at, most);
  return n;
}

/* Returns the smallest limit of parameters per part with which the number of parts is at most that
   of the ranks. */
static size_t least_most(const gt_graph *whole, size_t ranks) {
  size_t low = 0, high = gt_graph_arrays(whole)->params.n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (parts_of(whole, middle) <= ranks)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static gt_span part_of(const gt_text_stages *s, size_t most) {
  gt_span span = {0, 0};
  for (int rank = 0; rank <= s->rank; rank++)
    span = (gt_span){span.end, part_end(s->whole, span.end, most)};
  return span;
}

/* ---- the own part ---------------------------------------------------------------------------- */

/* Returns the operation before the span whose weights the span borrows (a tied head); SIZE_MAX:
   none. */
static size_t lender(const gt_graph *whole, gt_span span) {
  for (size_t i = span.first; i < span.end; i++) {
    const size_t owner = gt_graph_operation(whole, i).borrows;
    if (owner < span.first) return owner;
  }
  return SIZE_MAX;
}

/* Reads parameters and buffers of the spans, one after the other. */
static gt_status load(const gt_text_stages *s, const gt_ckpt_source *from, const gt_span *spans,
                      size_t n) {
  for (int buffers = 0; buffers < 2; buffers++) {
    float *to = buffers ? s->buffers : s->params;
    for (size_t i = 0; i < n; i++) {
      const size_t at = gt_graph_span_floats(s->whole, (gt_span){0, spans[i].first}, buffers),
                   count = gt_graph_span_floats(s->whole, spans[i], buffers);
      GT_TRY(gt_ckpt_source_get(from, buffers, at, to, count));
      to += count;
    }
  }
  return GT_OK;
}

static gt_status open_part(gt_text_stages *s, const char *path, const gt_ckpt_source *from,
                           const gt_ckpt_info *info, gt_graph_spec *spec, gt_span own) {
  const size_t owner = lender(s->whole, own);
  gt_span spans[2] = {{owner, owner + 1}, own};
  bool runs[2] = {false, true};
  s->span = owner == SIZE_MAX ? 0 : 1;
  spec->sizes_only = false;
  spec->slots = spec->micro_batches = 1;
  spec->spans = spans + 1 - s->span;
  spec->runs = runs + 1 - s->span;
  spec->nspans = s->span + 1;
  spec->lent = true;
  GT_TRY(gt_cli_checkpoint_graph(&s->part, path, info, gt_ckpt_source_floats(from, false), spec));
  const gt_arrays *a = gt_graph_arrays(s->part);
  s->params = GT_NEW_ARRAY(float, a->params.n + 1);
  s->buffers = GT_NEW_ARRAY(float, a->buffers.n + 1);
  gt_graph_adopt(s->part, s->params, NULL, s->buffers);
  if (own.first > 0) s->in_bytes = gt_graph_operation(s->whole, own.first - 1).output_bytes;
  s->out_bytes = gt_graph_operation(s->whole, own.end - 1).output_bytes;
  return load(s, from, spec->spans, spec->nspans);
}

static gt_status open_here(gt_text_stages *s, const char *path, const gt_ckpt_source *from,
                           const gt_ckpt_info *info, const gt_sample_shape *shape) {
  gt_graph_spec spec = {.shape = *shape, .batch_max = 1, .sizes_only = true};
  GT_TRY(gt_cli_checkpoint_graph(&s->whole, path, info, gt_ckpt_source_floats(from, false), &spec));
  GT_TRY(gt_cli_checkpoint_hash(s->whole, path, info));
  const size_t most = least_most(s->whole, s->world->size);
  s->nparts = parts_of(s->whole, most);
  s->T = gt_graph_predictions(s->whole);
  s->V = gt_graph_outputs(s->whole);
  s->order = GT_NEW_ARRAY(int32_t, s->T + 2);
  s->logits = GT_NEW_ARRAY(float, s->V);
  if ((size_t)s->rank >= s->nparts) return GT_OK;
  return open_part(s, path, from, info, &spec, part_of(s, most));
}

gt_status gt_text_stages_open(gt_text_stages **out, gt_peers *world, gt_status status,
                              const char *path, const gt_ckpt_source *from,
                              const gt_ckpt_info *info, const gt_sample_shape *shape) {
  gt_text_stages *s = GT_NEW(gt_text_stages);
  s->world = world;
  s->rank = (int)world->rank;
  if (status == GT_OK) status = open_here(s, path, from, info, shape);
  status = gt_agree(world, status, LIMIT_S);
  if (status == GT_OK)
    *out = s;
  else
    gt_text_stages_close(s);
  return status;
}

void gt_text_stages_close(gt_text_stages *stages) {
  if (!stages) return;
  gt_graph_close(stages->part);
  gt_graph_close(stages->whole);
  gt_free(stages->params);
  gt_free(stages->buffers);
  gt_free(stages->order);
  gt_free(stages->logits);
  gt_free(stages);
}

size_t gt_text_stages_positions(const gt_text_stages *stages) {
  return stages->T;
}

/* ---- computing ------------------------------------------------------------------------------- */

static void take(gt_text_stages *s, void *to, size_t bytes, int from, int tag, const char *what) {
  MPI_Request request;
  GT_MPI(MPI_Irecv(to, (int)bytes, MPI_BYTE, from, tag, gt_peers_mpi(s->world), &request));
  gt_wait_all(&request, 1, what, LIMIT_S, NULL, NULL);
}

static void give(gt_text_stages *s, const void *data, size_t bytes, int to, int tag,
                 const char *what) {
  MPI_Request request;
  GT_MPI(MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, gt_peers_mpi(s->world), &request));
  gt_wait_all(&request, 1, what, LIMIT_S, NULL, NULL);
}

/* Broadcasts rank 0's request; false: the end. */
static bool exchange_order(gt_text_stages *s) {
  gt_peers_share(s->world, 0, s->order, (s->T + 2) * sizeof *s->order, "the next ids from rank 0",
                 LIMIT_S);
  return s->order[0] >= 0;
}

/* Runs this rank's part of a pass.  The last part has the logits, and sends the requested ones to
   rank 0. */
static void run_part(gt_text_stages *s) {
  const int last = (int)s->nparts - 1;
  const gt_micro_batch batch = {.samples = s->order + 1, .n = 1};
  gt_metrics metrics;
  if (!s->part) return;
  if (s->rank > 0)
    take(s, gt_graph_span_input(s->part, s->span, 0), s->in_bytes, s->rank - 1, TAG_ACTIVATION,
         "an activation of the part before");
  gt_graph_forward(s->part, s->span, 0, &batch, false, &metrics);
  const void *output = gt_graph_span_output(s->part, s->span, 0);
  if (s->rank < last) {
    give(s, output, s->out_bytes, s->rank + 1, TAG_ACTIVATION,
         "the part behind to take an activation");
    return;
  }
  memcpy(s->logits, (const float *)output + (size_t)s->order[0] * s->V, s->V * sizeof(float));
  if (last > 0)
    give(s, s->logits, s->V * sizeof(float), 0, TAG_LOGITS, "rank 0 to take the logits");
}

const float *gt_text_stages_logits(gt_text_stages *s, const int32_t *window, size_t last) {
  s->order[0] = (int32_t)last;
  memcpy(s->order + 1, window, (s->T + 1) * sizeof *window);
  exchange_order(s);
  run_part(s);
  if (s->nparts > 1)
    take(s, s->logits, s->V * sizeof(float), (int)s->nparts - 1, TAG_LOGITS,
         "the logits of the last part");
  return s->logits;
}

void gt_text_stages_serve(gt_text_stages *s) {
  if (s->rank > 0) {
    while (exchange_order(s)) run_part(s);
    return;
  }
  s->order[0] = -1;
  exchange_order(s);
}
