/* ZB-V (Qi et al. 2024, arXiv 2401.10241): a folded pipeline of two chunks per stage, with the
   memory of 1F1B; without a bubble if F, B and W take the same time.  The order is for at least 2 p
   - 1 micro-batches; with fewer, passes of the missing ones are omitted. */
#include "internal.h"

typedef struct {
  gt_pipe_schedule *schedule;
  size_t stage;
  size_t next[2][3]; /* of each chunk: micro-batch of F, B, W */
} writer;

static void put(writer *to, size_t chunk, gt_pass_kind kind) {
  gt_pipe_schedule *s = to->schedule;
  const size_t micro = to->next[chunk][kind]++;
  if (micro < s->micro_batches)
    gt_pipe_add(s, kind, gt_pipe_span_of(s->stages, chunk, to->stage), micro);
}

static void backward(writer *to, size_t chunk) {
  put(to, chunk, GT_PASS_B);
  put(to, chunk, GT_PASS_W);
}

/* Writes F until the first B can run, first of chunk 0 only. */
static void warm_up(writer *to, size_t p) {
  for (size_t i = 0; i < 2 * (p - to->stage) - 1; i++) put(to, 0, GT_PASS_F);
  for (size_t i = 0; i < to->stage; i++) {
    put(to, 1, GT_PASS_F);
    put(to, 0, GT_PASS_F);
  }
  for (size_t i = 0; i < p - to->stage; i++) {
    put(to, 1, GT_PASS_F);
    backward(to, 1);
  }
}

static void steady(writer *to, size_t m) {
  while (to->next[1][GT_PASS_F] < m) {
    if (to->next[0][GT_PASS_F] < m) put(to, 0, GT_PASS_F);
    backward(to, 0);
    put(to, 1, GT_PASS_F);
    backward(to, 1);
  }
}

/* Writes the last B first, because other stages wait for them. */
static void cool_down(writer *to, size_t p, size_t m) {
  for (size_t i = 0; i < to->stage; i++) {
    put(to, 0, GT_PASS_B);
    put(to, 1, GT_PASS_B);
  }
  for (size_t i = 0; i < p - to->stage; i++) backward(to, 0);
  while (to->next[1][GT_PASS_W] < m) put(to, 1, GT_PASS_W);
  while (to->next[0][GT_PASS_W] < m) put(to, 0, GT_PASS_W);
}

static void order(gt_pipe_schedule *s) {
  const size_t p = s->stages, m = s->micro_batches < 2 * p - 1 ? 2 * p - 1 : s->micro_batches;
  for (size_t stage = 0; stage < p; stage++) {
    writer to = {.schedule = s, .stage = stage};
    warm_up(&to, p);
    steady(&to, m);
    cool_down(&to, p, m);
  }
}

const gt_pipe_ops gt_pipe_zb_v = {.name = "zb-v", .chunks = 2, .order = order};
