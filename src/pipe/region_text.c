/* What a worker does or waits for, as text. */
#include "region.h"

#include <stdio.h>

#define WHO_MAX 80

static void name_worker(const gt_pipe_region *region, const gt_pipe_worker *w, char *who) {
  const gt_pipe_place *place = &region->layout->places[w->stage];
  if (place->workers == 1)
    snprintf(who, WHO_MAX, "stage %zu", w->stage);
  else
    snprintf(who, WHO_MAX, "worker %zu of stage %zu", place->first_worker + w->replica, w->stage);
}

/* The input of a micro-batch; with one chunk its span is clear. */
static void say_input(const gt_pipe_region *region, const gt_pipe_worker *w, bool gradient,
                      size_t chunk, size_t micro, char *text, size_t size) {
  const gt_pipe_layout *l = region->layout;
  char who[WHO_MAX], span[WHO_MAX] = "";
  name_worker(region, w, who);
  if (l->chunks > 1)
    snprintf(span, sizeof span, " for span %zu", gt_pipe_span_of(l->stages, chunk, w->stage));
  snprintf(text, size, "%s waits for the %s of micro-batch %zu%s from stage %zu", who,
           gradient ? "gradient" : "activation", micro, span,
           w->in[gradient * l->chunks + chunk].stage);
}

static void say_room(const gt_pipe_region *region, const gt_pipe_worker *w, const gt_pass *pass,
                     char *text, size_t size) {
  char who[WHO_MAX];
  name_worker(region, w, who);
  snprintf(text, size, "%s waits for a free buffer for the output of %s of span %u, micro-batch %u",
           who, gt_pass_names[pass->kind], pass->span, pass->micro);
}

static void say_evaluation(const gt_pipe_region *region, const gt_pipe_worker *w, char *text,
                           size_t size) {
  const gt_pipe_layout *l = region->layout;
  char who[WHO_MAX];
  for (size_t c = 0; c < l->chunks; c++) {
    if (w->next[c] >= w->forward_micros) continue;
    const gt_pipe_held *held =
        w->in[c].there ? gt_pipe_held_of(&w->in[c], w->step, w->next[c]) : NULL;
    const gt_pass pass = {GT_PASS_F, (uint32_t)gt_pipe_span_of(l->stages, c, w->stage), w->next[c]};
    if (w->in[c].there && (!held || held->waits > 0))
      say_input(region, w, false, c, w->next[c], text, size);
    else
      say_room(region, w, &pass, text, size);
    return;
  }
  name_worker(region, w, who);
  snprintf(text, size, "%s waits until its outputs have been read", who);
}

char *gt_pipe_region_text(const gt_pipe_region *region, size_t worker, char *text, size_t size) {
  const gt_pipe_worker *w = worker < region->nworkers ? &region->workers[worker] : NULL;
  char who[WHO_MAX];
  gt_pipe_message message;
  if (!w || w->stage == GT_PIPE_NONE) {
    snprintf(text, size, "worker %zu has no stage", worker);
    return text;
  }
  const gt_pipe_list *list = &region->schedule->lists[w->stage];
  name_worker(region, w, who);
  if (!w->runs) {
    snprintf(text, size, "%s waits for step %lld to begin", who, (long long)w->step + 1);
  } else if (w->busy) {
    snprintf(text, size, "%s runs %s of span %u, micro-batch %u", who, gt_pass_names[w->pass.kind],
             w->pass.span, w->pass.micro);
  } else if (w->forward_micros > 0) {
    say_evaluation(region, w, text, size);
  } else if (w->progress.counter == list->n) {
    snprintf(text, size, "%s has ended the passes of step %lld", who, (long long)w->step);
  } else {
    const gt_pass *pass = &list->passes[w->progress.counter];
    if (gt_pipe_needs(region->schedule, pass, &message) && !gt_pipe_has(&w->progress, &message))
      say_input(region, w, message.gradient, pass->span / region->layout->stages, pass->micro, text,
                size);
    else
      say_room(region, w, pass, text, size);
  }
  return text;
}
