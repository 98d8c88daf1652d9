/* Pictures of a step: a line or a row per stage. */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

/* ---- text in memory -------------------------------------------------------------------------- */

typedef struct {
  FILE *to;
  char *text;
  size_t size;
} memory;

/* Opens a stream to *m, which must not move until it is closed. */
static void open_memory(memory *m) {
  m->text = NULL;
  m->size = 0;
  m->to = open_memstream(&m->text, &m->size);
  if (!m->to) gt_bug("no memory for a picture of a schedule");
}

static char *close_memory(memory *m) {
  fclose(m->to);
  char *copy = gt_strdup(m->text);
  free(m->text);
  return copy;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Returns the letter of a stage at a time within a pass. */
static char letter_at(const gt_pipe_schedule *s, const gt_pipe_problem *problem,
                      const gt_pass *pass, double since_s) {
  static const char *const letters[] = {"FBWB", "fbwb"};
  gt_pass_kind kind = pass->kind;
  if (kind == GT_PASS_BW && since_s >= problem->spans[pass->span].backward_s) kind = GT_PASS_W;
  return letters[pass->span / s->stages % 2][kind];
}

static void put_line(FILE *to, const gt_pipe_schedule *s, const gt_pipe_problem *problem,
                     const gt_pipe_result *result, size_t stage, size_t columns) {
  const gt_pipe_list *list = &s->lists[stage];
  const gt_pipe_time *times = result->stages[stage].times;
  size_t i = 0;
  fprintf(to, "stage %-3zu |", stage);
  for (size_t column = 0; column < columns; column++) {
    const double at = ((double)column + 0.5) * (double)result->makespan / (double)columns;
    while (i < list->n && (double)times[i].end <= at) i++;
    bool runs = i < list->n && (double)times[i].start <= at;
    fputc(runs ? letter_at(s, problem, &list->passes[i], (at - (double)times[i].start) * 1e-9)
               : '.',
          to);
  }
  fprintf(to, "|\n");
}

char *gt_pipe_text(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem,
                   const gt_pipe_result *result, size_t columns) {
  memory m;
  open_memory(&m);
  for (size_t s = 0; s < schedule->stages; s++)
    put_line(m.to, schedule, problem, result, s, columns);
  return close_memory(&m);
}

/* ---- SVG ------------------------------------------------------------------------------------- */

#define ROW_PX    24
#define GAP_PX    4
#define LABEL_PX  64
#define AXIS_PX   28
#define LETTER_PX 7.0 /* width of a digit */
#define TICKS     10

typedef struct {
  FILE *to;
  double px_per_ns;
} canvas;

static double x_of(const canvas *c, gt_ns at) {
  return LABEL_PX + c->px_per_ns * (double)at;
}

static size_t y_of(size_t stage) {
  return stage * (ROW_PX + GAP_PX) + GAP_PX;
}

/* Odd chunks are lighter. */
static void put_box(const canvas *c, const gt_pipe_schedule *s, size_t stage, const gt_pass *pass,
                    gt_pass_kind kind, gt_pipe_time time) {
  static const char *const colours[] = {
      [GT_PASS_F] = "#4c78a8", [GT_PASS_B] = "#54a24b", [GT_PASS_W] = "#e0a030"};
  static const char names[] = "FBW";
  const double x = x_of(c, time.start), width = x_of(c, time.end) - x;
  char number[24];
  int length = snprintf(number, sizeof number, "%u", pass->micro);
  fprintf(c->to,
          "<rect x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\" fill=\"%s\" "
          "fill-opacity=\"%s\" stroke=\"white\" stroke-width=\"0.5\"><title>%c %u, span %u, %.6g s "
          "to %.6g s</title></rect>\n",
          x, y_of(stage), width, ROW_PX, colours[kind], pass->span / s->stages % 2 ? "0.6" : "1",
          names[kind], pass->micro, pass->span, gt_seconds(time.start), gt_seconds(time.end));
  if (width >= LETTER_PX * (length + 1))
    fprintf(c->to, "<text x=\"%.2f\" y=\"%zu\" text-anchor=\"middle\" fill=\"white\">%s</text>\n",
            x + width / 2, y_of(stage) + ROW_PX - 7, number);
}

static void put_row(const canvas *c, const gt_pipe_schedule *s, const gt_pipe_problem *problem,
                    const gt_pipe_result *result, size_t stage) {
  const gt_pipe_list *list = &s->lists[stage];
  fprintf(c->to, "<text x=\"4\" y=\"%zu\">stage %zu</text>\n", y_of(stage) + ROW_PX - 7, stage);
  for (size_t i = 0; i < list->n; i++) {
    const gt_pass *pass = &list->passes[i];
    gt_pipe_time time = result->stages[stage].times[i], weight = time;
    if (pass->kind != GT_PASS_BW) {
      put_box(c, s, stage, pass, pass->kind, time);
      continue;
    }
    weight.start = time.end = time.start + gt_from_seconds(problem->spans[pass->span].backward_s);
    put_box(c, s, stage, pass, GT_PASS_B, time);
    put_box(c, s, stage, pass, GT_PASS_W, weight);
  }
}

static void put_axis(const canvas *c, gt_ns makespan, size_t y) {
  for (int i = 0; i <= TICKS; i++) {
    const gt_ns at = makespan / TICKS * i;
    fprintf(c->to, "<text x=\"%.2f\" y=\"%zu\" text-anchor=\"middle\">%.3g s</text>\n", x_of(c, at),
            y + AXIS_PX - 12, gt_seconds(at));
  }
}

char *gt_pipe_svg(const gt_pipe_schedule *schedule, const gt_pipe_problem *problem,
                  const gt_pipe_result *result, size_t width_px) {
  memory m;
  open_memory(&m);
  const size_t rows = y_of(schedule->stages), least = 4 * (size_t)LABEL_PX,
               width = width_px > least ? width_px : least;
  const gt_ns makespan = result->makespan > 0 ? result->makespan : 1;
  const canvas c = {m.to, (double)(width - 2 * (size_t)LABEL_PX) / (double)makespan};
  fprintf(m.to,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
          "font-family=\"sans-serif\" font-size=\"11\">\n",
          width, rows + AXIS_PX);
  for (size_t s = 0; s < schedule->stages; s++) put_row(&c, schedule, problem, result, s);
  put_axis(&c, result->makespan, rows);
  fprintf(m.to, "</svg>\n");
  return close_memory(&m);
}
