/* Where a stage is in its schedule: which message a pass needs and sends, and which pass is next.
   A run and its evaluation both go by this. */
#include "internal.h"

/* ---- messages -------------------------------------------------------------------------------- */

static size_t spans_of(const gt_pipe_schedule *s) {
  return s->stages * s->chunks;
}

bool gt_pipe_needs(const gt_pipe_schedule *schedule, const gt_pass *pass,
                   gt_pipe_message *message) {
  *message = (gt_pipe_message){pass->kind != GT_PASS_F, pass->span, pass->micro};
  if (pass->kind == GT_PASS_W) return false;
  return message->gradient ? pass->span + 1 < spans_of(schedule) : pass->span > 0;
}

bool gt_pipe_sends(const gt_pipe_schedule *schedule, const gt_pass *pass,
                   gt_pipe_message *message) {
  *message = (gt_pipe_message){pass->kind != GT_PASS_F, pass->span, pass->micro};
  if (pass->kind == GT_PASS_W) return false;
  bool sends = message->gradient ? pass->span > 0 : pass->span + 1 < spans_of(schedule);
  if (sends) message->span = message->gradient ? pass->span - 1 : pass->span + 1;
  return sends;
}

size_t gt_pipe_message_place(const gt_pipe_schedule *schedule, const gt_pipe_message *message) {
  return (message->gradient * spans_of(schedule) + message->span) * schedule->micros +
         message->micro;
}

gt_pipe_message gt_pipe_message_at(const gt_pipe_schedule *schedule, size_t place) {
  const size_t spans = spans_of(schedule), row = place / schedule->micros;
  return (gt_pipe_message){row >= spans, (uint32_t)(row % spans),
                           (uint32_t)(place % schedule->micros)};
}

/* ---- progress -------------------------------------------------------------------------------- */

gt_pipe_progress gt_pipe_progress_open(const gt_pipe_schedule *schedule, size_t stage) {
  return (gt_pipe_progress){.schedule = schedule,
                            .stage = stage,
                            .arrived =
                                GT_NEW_ARRAY(uint64_t, 2 * schedule->chunks * schedule->micros)};
}

void gt_pipe_progress_close(gt_pipe_progress *progress) {
  if (!progress) return;
  gt_free(progress->arrived);
  progress->arrived = NULL;
}

static uint64_t *arrivals(const gt_pipe_progress *p, const gt_pipe_message *message) {
  const gt_pipe_schedule *s = p->schedule;
  size_t chunk = message->span / s->stages;
  return &p->arrived[(message->gradient * s->chunks + chunk) * s->micros + message->micro];
}

void gt_pipe_arrived(gt_pipe_progress *progress, const gt_pipe_message *message) {
  ++*arrivals(progress, message);
}

bool gt_pipe_has(const gt_pipe_progress *progress, const gt_pipe_message *message) {
  return *arrivals(progress, message) > (uint64_t)progress->step;
}

const gt_pass *gt_pipe_next(const gt_pipe_progress *progress) {
  const gt_pipe_list *list = &progress->schedule->lists[progress->stage];
  if (progress->counter >= list->n) return NULL;
  const gt_pass *pass = &list->passes[progress->counter];
  gt_pipe_message message;
  bool waits = gt_pipe_needs(progress->schedule, pass, &message);
  return waits && !gt_pipe_has(progress, &message) ? NULL : pass;
}

void gt_pipe_begun(gt_pipe_progress *progress) {
  progress->counter++;
}

void gt_pipe_next_step(gt_pipe_progress *progress) {
  progress->counter = 0;
  progress->step++;
}
