/* A schedule: lists of passes, and which stage holds which span. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING 1e-9

size_t gt_pipe_stage_of(size_t stages, size_t span) {
  size_t at = span % stages;
  return span / stages % 2 ? stages - 1 - at : at;
}

size_t gt_pipe_span_of(size_t stages, size_t chunk, size_t stage) {
  return chunk * stages + (chunk % 2 ? stages - 1 - stage : stage);
}

double gt_pipe_limit(const gt_pipe_problem *problem, size_t stage) {
  const double limit = problem->memory ? problem->memory[stage] : 0.0;
  return limit > 0.0 ? limit * (1.0 + ROUNDING) : INFINITY;
}

gt_pipe_schedule *gt_pipe_schedule_create(size_t stages, size_t chunks, size_t micros) {
  gt_pipe_schedule *s = GT_NEW(gt_pipe_schedule);
  *s = (gt_pipe_schedule){stages, chunks, micros, GT_NEW_ARRAY(gt_pipe_list, stages)};
  return s;
}

void gt_pipe_schedule_close(gt_pipe_schedule *schedule) {
  if (!schedule) return;
  for (size_t s = 0; s < schedule->stages; s++) gt_free(schedule->lists[s].passes);
  gt_free(schedule->lists);
  gt_free(schedule);
}

void gt_pipe_add(gt_pipe_schedule *schedule, gt_pass_kind kind, size_t span, size_t micro) {
  gt_pipe_list *list = &schedule->lists[gt_pipe_stage_of(schedule->stages, span)];
  GT_GROW(list->passes, list->n, list->capacity, 3 * schedule->chunks * schedule->micros);
  list->passes[list->n++] = (gt_pass){kind, (uint32_t)span, (uint32_t)micro};
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What a pass adds when it begins, and takes away when it has ended. */
static void hold(const gt_pipe_span *span, gt_pass_kind kind, double *held, double *peak) {
  const double kept = span->activation * span->weight_share;
  if (kind == GT_PASS_F) *held += span->activation;
  *peak = fmax(*peak, *held);
  if (kind == GT_PASS_B) *held -= span->activation - kept;
  if (kind == GT_PASS_W) *held -= kept;
  if (kind == GT_PASS_BW) *held -= span->activation;
}

double gt_pipe_peak(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem,
                    size_t stage) {
  const gt_pipe_list *list = &schedule->lists[stage];
  double held = 0.0, peak = 0.0;
  for (size_t i = 0; i < list->n; i++)
    hold(&problem->spans[list->passes[i].span], list->passes[i].kind, &held, &peak);
  return peak;
}

/* ---- hash ------------------------------------------------------------------------------------ */

static void put(uint8_t **to, size_t number) {
  for (size_t i = 0; i < 4; i++) *(*to)++ = (uint8_t)(number >> (8 * i));
}

/* Numbers of 32 bits, little endian: stages, chunks, micros; a stage: its count, then kind, span
   and micro of each pass. */
void gt_pipe_hash(const gt_pipe_schedule *schedule, char hex[GT_SHA256_HEX]) {
  size_t numbers = 3;
  for (size_t s = 0; s < schedule->stages; s++) numbers += 1 + 3 * schedule->lists[s].n;
  uint8_t *bytes = GT_NEW_ARRAY(uint8_t, 4 * numbers), *to = bytes;
  put(&to, schedule->stages);
  put(&to, schedule->chunks);
  put(&to, schedule->micros);
  for (size_t s = 0; s < schedule->stages; s++) {
    const gt_pipe_list *list = &schedule->lists[s];
    put(&to, list->n);
    for (size_t i = 0; i < list->n; i++) {
      put(&to, (size_t)list->passes[i].kind);
      put(&to, list->passes[i].span);
      put(&to, list->passes[i].micro);
    }
  }
  gt_sha256_hex(bytes, 4 * numbers, hex);
  gt_free(bytes);
}

uint64_t gt_pipe_mark(const gt_pipe_schedule *schedule) {
  char hex[GT_SHA256_HEX];
  gt_pipe_hash(schedule, hex);
  hex[16] = '\0';
  return strtoull(hex, NULL, 16);
}
