/* Reads the state of a run from the files of its directory only. */
#include "internal.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef struct {
  gt_follow *run;
  gt_tail *tail;
  gt_region_view view;   /* view.lead: the lead's record determines the state of the run */
  gt_region_view before; /* at the progress line before the last one */
} region;

struct gt_follow {
  char *dir;
  region **regions;             /* by name; addresses must not change: tails point to them */
  const gt_region_view **views; /* of regions */
  size_t n, room;
  gt_run_view view;
  gt_progress first; /* of this start */
  bool complete;     /* training has ended, summary.json is missing */
  bool seen;         /* had any activity; `alive` is the time of the last */
  gt_ns alive;
  time_t summary_at;
  ino_t summary_ino;
  gt_summary_file *summary;
};

gt_follow *gt_follow_create(const char *dir) {
  gt_follow *f = GT_NEW(gt_follow);
  f->dir = gt_strdup(dir);
  f->alive = gt_now();
  return f;
}

void gt_follow_close(gt_follow *f) {
  if (!f) return;
  for (size_t i = 0; i < f->n; i++) {
    gt_tail_close(f->regions[i]->tail);
    gt_free(f->regions[i]);
  }
  gt_summary_close(f->summary);
  gt_free((void *)f->views);
  gt_free(f->regions);
  gt_free(f->dir);
  gt_free(f);
}

/* ---- events ---- */

static void reset(region *r) {
  gt_region_view *v = &r->view;
  char name[sizeof v->name];
  memcpy(name, v->name, sizeof name);
  *v = (gt_region_view){.t_s = NAN,
                        .epoch = NAN,
                        .loss = NAN,
                        .compute_s = NAN,
                        .wait_s = NAN,
                        .wan_wait_s = NAN,
                        .done = NAN,
                        .samples_per_s = NAN,
                        .wan_waiting = NAN,
                        .local_waiting = NAN};
  memcpy(v->name, name, sizeof name);
}

static int64_t whole_of(const json_t *line, const char *name) {
  return json_integer_value(json_object_get(line, name));
}

static void copy_text(char *to, size_t size, const json_t *line, const char *name) {
  const char *text = json_string_value(json_object_get(line, name));
  snprintf(to, size, "%s", text ? text : "");
}

static void on_start(gt_follow *f, const json_t *line) {
  gt_run_view *v = &f->view;
  int64_t starts = v->starts;
  double every_s = gt_json_number_of(line, "every_s");
  *v = (gt_run_view){.state = GT_RUN_RUNNING,
                     .starts = starts + 1,
                     .resumes = whole_of(line, "resumes"),
                     .round = whole_of(line, "round")};
  v->every_s = every_s >= 1 ? every_s : 1;
  copy_text(v->job, sizeof v->job, line, "job");
  copy_text(v->clock, sizeof v->clock, line, "clock");
  f->complete = false;
}

static void on_progress(gt_follow *f, const json_t *line) {
  gt_progress *p = &f->view.progress;
  *p = (gt_progress){.elapsed_s = gt_json_number_of(line, "t"),
                     .epoch = gt_json_number_of(line, "epoch"),
                     .epochs = gt_json_number_of(line, "epochs"),
                     .done = gt_json_number_of(line, "done"),
                     .loss = gt_json_number_of(line, "loss"),
                     .accuracy = gt_json_number_of(line, "accuracy"),
                     .auc = gt_json_number_of(line, "auc"),
                     .recall20 = gt_json_number_of(line, "recall20"),
                     .mrr20 = gt_json_number_of(line, "mrr20"),
                     .samples_per_s = gt_json_number_of(line, "samples_per_s"),
                     .wan_bps = gt_json_number_of(line, "wan_bps"),
                     .wan_in_bps = gt_json_number_of(line, "wan_in_bps"),
                     .in_flight = whole_of(line, "under_way"),
                     .waiting = gt_json_number_of(line, "waiting"),
                     .step = whole_of(line, "step")};
  if (!f->view.has_progress) f->first = *p;
  f->view.has_progress = true;
}

static void on_stopped(gt_follow *f, const json_t *line) {
  f->view.state = GT_RUN_STOPPED;
  f->view.code = (int)whole_of(line, "code");
  f->view.step = whole_of(line, "step");
  f->view.round = whole_of(line, "round");
}

/* Finds the shares between the last two progress lines.  wan_wait_s does not contain transfer_s;
   wait_s only contains waits of steps that have ended. */
static void measure_waits(region *r) {
  gt_region_view *v = &r->view;
  const gt_region_view *before = &r->before;
  const double waited = v->wait_s - before->wait_s, all = v->compute_s - before->compute_s + waited,
               wan = fmin(waited,
                          v->wan_wait_s - before->wan_wait_s + v->transfer_s - before->transfer_s);
  if (!(all > 0)) return;
  v->wan_waiting = fmax(0, wan / all);
  v->local_waiting = fmax(0, (waited - wan) / all);
}

static void on_region_progress(region *r, const json_t *line) {
  gt_region_view *v = &r->view;
  r->before = *v;
  v->step = whole_of(line, "step");
  v->samples = whole_of(line, "samples");
  v->t_s = gt_json_number_of(line, "t");
  v->epoch = gt_json_number_of(line, "epoch");
  if (json_is_number(json_object_get(line, "loss"))) v->loss = gt_json_number_of(line, "loss");
  v->compute_s = gt_json_number_of(line, "compute_s");
  v->wait_s = gt_json_number_of(line, "wait_s");
  v->wan_wait_s = gt_json_number_of(line, "wan_wait_s");
  const double took = v->t_s - r->before.t_s;
  if (took > 0) v->samples_per_s = (double)(v->samples - r->before.samples) / took;
  measure_waits(r);
}

/* Reads the line that follows a progress line of the same time. */
static void on_region_phases(region *r, const json_t *line) {
  const json_t *workers = json_object_get(line, "workers");
  r->view.transfer_s = 0;
  for (size_t w = 0; w < json_array_size(workers); w++)
    r->view.transfer_s += gt_json_number_of(json_array_get(workers, w), "transfer_s");
  measure_waits(r);
}

static void on_region(region *r, const char *event, const json_t *line) {
  gt_region_view *v = &r->view;
  if (strcmp(event, "start") == 0 || strcmp(event, "resumed") == 0) {
    reset(r);
    v->lead = json_is_true(json_object_get(line, "lead"));
  } else if (strcmp(event, "progress") == 0) {
    on_region_progress(r, line);
  } else if (strcmp(event, "phases") == 0) {
    on_region_phases(r, line);
  } else if (strcmp(event, "done") == 0) {
    v->trained = true;
  }
}

static void on_line(void *ctx, const json_t *line) {
  region *r = ctx;
  const char *event = json_string_value(json_object_get(line, "event"));
  if (!event) return;
  bool starts = strcmp(event, "start") == 0 || strcmp(event, "resumed") == 0;
  on_region(r, event, line);
  if (!r->view.lead) return;
  if (starts)
    on_start(r->run, line);
  else if (strcmp(event, "progress") == 0)
    on_progress(r->run, line);
  else if (strcmp(event, "stopped") == 0)
    on_stopped(r->run, line);
  else if (strcmp(event, "complete") == 0) {
    r->run->complete = true;
    r->run->view.state = GT_RUN_ENDING;
  }
}

/* Resets the region: its file was rewritten or replaced. */
static void on_anew(void *ctx) {
  region *r = ctx;
  const bool lead = r->view.lead;
  reset(r);
  if (!lead) return;
  r->run->view = (gt_run_view){.state = GT_RUN_NOTHING};
  r->run->complete = false;
}

/* ---- files ---- */

static void add_region(gt_follow *f, const char *path) {
  for (size_t i = 0; i < f->n; i++)
    if (strcmp(gt_tail_path(f->regions[i]->tail), path) == 0) return;
  if (f->n == f->room) {
    size_t room = f->room ? 2 * f->room : 8;
    region **more = GT_NEW_ARRAY(region *, room);
    if (f->n > 0) memcpy(more, f->regions, f->n * sizeof *more);
    gt_free(f->regions);
    gt_free((void *)f->views);
    f->regions = more;
    f->views = GT_NEW_ARRAY(const gt_region_view *, room);
    f->room = room;
  }
  region *r = GT_NEW(region);
  *r = (region){.run = f, .tail = gt_tail_create(path)};
  const char *name = strrchr(path, '/') + 1;
  snprintf(r->view.name, sizeof r->view.name, "%.*s", (int)(strlen(name) - strlen(".jsonl")), name);
  gt_text_flatten(r->view.name);
  reset(r);
  size_t at = f->n++;
  for (; at > 0 && strcmp(f->regions[at - 1]->view.name, r->view.name) > 0; at--)
    f->regions[at] = f->regions[at - 1];
  f->regions[at] = r;
  for (at = 0; at < f->n; at++) f->views[at] = &f->regions[at]->view;
}

static void find_regions(gt_follow *f) {
  char path[PATH_MAX];
  DIR *dir = opendir(f->dir);
  if (!dir) return;
  for (const struct dirent *entry; (entry = readdir(dir));) {
    size_t n = strlen(entry->d_name);
    if (entry->d_name[0] == '.' || n <= 6 || strcmp(entry->d_name + n - 6, ".jsonl") != 0) continue;
    int length = snprintf(path, sizeof path, "%s/%s", f->dir, entry->d_name);
    if (length > 0 && (size_t)length < sizeof path) add_region(f, path);
  }
  closedir(dir);
}

/* Sets the time of the last activity.  At the first poll it is the file's modification time, as far
   as the hosts' clocks agree. */
static void note_life(gt_follow *f, const region *r, bool first) {
  gt_ns at = gt_now();
  double age = difftime(time(NULL), gt_tail_changed(r->tail).tv_sec);
  if (first && age > 0) at -= gt_from_seconds(age);
  if (!f->seen || at > f->alive) f->alive = at;
  f->seen = true;
}

static void look_at_regions(gt_follow *f) {
  for (size_t i = 0; i < f->n; i++) {
    region *r = f->regions[i];
    bool first = gt_tail_changed(r->tail).tv_sec == 0;
    if (gt_tail_poll(r->tail, on_anew, on_line, r) == GT_TAIL_MORE) note_life(f, r, first);
  }
}

/* Finds the share of each region's training that is done: by epochs or, if steps or samples end it,
   by its steps relative to the lead's. */
static void measure_regions(gt_follow *f) {
  const gt_progress *lead = &f->view.progress;
  for (size_t i = 0; i < f->n; i++) {
    gt_region_view *v = &f->regions[i]->view;
    double done = v->epoch / lead->epochs;
    if (!isfinite(lead->epochs))
      done = lead->step > 0 ? lead->done * (double)v->step / (double)lead->step : lead->done;
    v->done = v->trained ? 1 : f->view.has_progress ? fmin(1, fmax(0, done)) : NAN;
  }
}

/* The number of resumes agrees, or the directory has no other files.  A region that is a job of its
   own can have returned: then its earlier starts agree. */
static bool is_of_this_start(const gt_follow *f) {
  const gt_summary *s = gt_summary_of(f->summary);
  if (f->n == 0 || s->resumes == f->view.resumes) return true;
  for (size_t r = 0; f->n == 1 && r < s->nregions; r++)
    if (strcmp(s->regions[r].name, f->regions[0]->view.name) == 0)
      return s->regions[r].earlier_starts == f->view.starts - 1;
  return false;
}

/* Reads the summary, if the training is complete. */
static void look_at_summary(gt_follow *f) {
  char path[PATH_MAX];
  struct stat at;
  snprintf(path, sizeof path, "%s/summary.json", f->dir);
  if ((!f->complete && f->n > 0) || stat(path, &at) != 0) return;
  if (at.st_mtime != f->summary_at || at.st_ino != f->summary_ino) {
    f->summary_at = at.st_mtime;
    f->summary_ino = at.st_ino;
    gt_summary_close(f->summary);
    if (gt_summary_read(&f->summary, f->dir) != GT_OK) return;
  }
  if (f->summary && is_of_this_start(f)) f->view.state = GT_RUN_DONE;
}

const gt_run_view *gt_follow_poll(gt_follow *f) {
  find_regions(f);
  look_at_regions(f);
  look_at_summary(f);
  measure_regions(f);
  f->view.quiet_s = gt_seconds(gt_now() - f->alive);
  double patience_s = strcmp(f->view.clock, "virtual") == 0 ? 120 : fmax(30, 3 * f->view.every_s);
  f->view.silent = (f->view.state == GT_RUN_RUNNING || f->view.state == GT_RUN_ENDING) &&
                   f->view.quiet_s >= patience_s;
  return &f->view;
}

const gt_summary *gt_follow_summary(const gt_follow *f) {
  return f->view.state == GT_RUN_DONE ? gt_summary_of(f->summary) : NULL;
}

/* ---- for people ---- */

/* Counts starts in this directory, because a run that found no complete round starts again from the
   beginning. */
static void put_resumes(char *text, size_t size, const gt_run_view *v) {
  text[0] = '\0';
  if (v->starts > 1) snprintf(text, size, "  resumed %" PRId64 "x", v->starts - 1);
}

static void put_done(char *text, size_t size, const gt_follow *f) {
  const gt_summary *s = gt_summary_of(f->summary);
  char samples[32], resumes[32] = "", score[64] = "";
  if (isfinite(s->test_auc))
    snprintf(score, sizeof score, "  auc %.4f", s->test_auc);
  else if (isfinite(s->test_recall20))
    snprintf(score, sizeof score, "  recall@20 %.4f", s->test_recall20);
  else if (isfinite(s->test_accuracy))
    snprintf(score, sizeof score, "  accuracy %.4f", s->test_accuracy);
  if (s->resumes > 0) snprintf(resumes, sizeof resumes, "  resumed %" PRId64 "x", s->resumes);
  snprintf(text, size, "done: %.1f s  %s samples%s%s",
           gt_summary_is_virtual(s) ? s->virtual_s : s->wall_s,
           gt_format_count(samples, sizeof samples, (double)s->samples), score, resumes);
}

static void put_stopped(char *text, size_t size, const gt_run_view *v) {
  const char *why = v->code == (int)GT_STOPPED
                        ? "stopped by a signal"
                        : "ended by a limit (limits.nonfinite or limits.wan_bytes)";
  snprintf(text, size, "%s at step %" PRId64 ", checkpoint of round %" PRId64 " written", why,
           v->step, v->round);
}

/* Writes the live line, shortened by the texts before and after it. */
static void put_running(char *text, size_t size, const gt_follow *f, size_t width) {
  const gt_run_view *v = &f->view;
  char before[64] = "", behind[48], age[16];
  put_resumes(behind, sizeof behind, v);
  if (v->silent)
    snprintf(before, sizeof before, "no activity for %s  ",
             gt_format_ago(age, sizeof age, v->quiet_s));
  size_t used = strlen(before) + strlen(behind), left = width > used + 16 ? width - used : 16;
  int n = snprintf(text, size, "%s", before);
  if (v->has_progress)
    gt_live_format(text + n, size - (size_t)n, &v->progress, gt_live_left(&f->first, &v->progress),
                   left);
  else
    snprintf(text + n, size - (size_t)n, "started, no progress yet");
  size_t end = strlen(text);
  snprintf(text + end, size - end, "%s", behind);
}

void gt_follow_text(const gt_follow *f, char *text, size_t size, size_t width) {
  char age[16];
  switch (f->view.state) {
  case GT_RUN_NOTHING:
    snprintf(text, size, "no record yet");
    break;
  case GT_RUN_RUNNING:
    put_running(text, size, f, width < size ? width : size);
    break;
  case GT_RUN_ENDING:
    if (f->view.silent)
      snprintf(text, size, "no activity for %s  trained; its summary is missing",
               gt_format_ago(age, sizeof age, f->view.quiet_s));
    else
      snprintf(text, size, "trained; last evaluation and checkpoint");
    break;
  case GT_RUN_STOPPED:
    put_stopped(text, size, &f->view);
    break;
  case GT_RUN_DONE:
    put_done(text, size, f);
    break;
  }
}

/* ---- regions ---- */

const gt_region_view *const *gt_follow_regions(const gt_follow *f, size_t *n) {
  *n = f->n;
  return f->views;
}

static char *put_share(char *buf, size_t size, double share) {
  if (isfinite(share))
    snprintf(buf, size, "%3.0f%%", 100 * share);
  else
    snprintf(buf, size, "  - ");
  return buf;
}

void gt_region_text(const gt_region_view *v, char *text, size_t size, int name_width, size_t width,
                    bool color) {
  enum { BAR = 20 };
  const bool waits = color && v->wan_waiting >= 0.2;
  const char *const green = color ? "\033[32m" : "", *const plain = color ? "\033[0m" : "",
                    *const yellow = waits ? "\033[33m" : "", *const end = waits ? plain : "";
  char done[16], loss[24] = "-", count[24], rate[32] = "trained ", wan[16], local[16], figures[192];
  if (isfinite(v->loss)) snprintf(loss, sizeof loss, "%.4g", v->loss);
  if (!v->trained)
    snprintf(rate, sizeof rate, "%6s/s", gt_format_count(count, sizeof count, v->samples_per_s));
  snprintf(figures, sizeof figures, "%s  loss %-7s %s  waits: WAN %s%s%s, local %s",
           put_share(done, sizeof done, v->done), loss, rate, yellow,
           put_share(wan, sizeof wan, v->wan_waiting), end,
           put_share(local, sizeof local, v->local_waiting));
  const size_t used =
      (size_t)name_width + strlen("   [] ") + strlen(figures) - strlen(yellow) - strlen(end);
  const int bar = (int)fmax(0, fmin(BAR, (double)width - 1 - (double)used)),
            full = isfinite(v->done) ? (int)(bar * v->done) : 0;
  snprintf(text, size, "  %-*s [%s%.*s%s%.*s] %s", name_width, v->name, green, full,
           "####################", plain, bar - full, "....................", figures);
}

/* ---- for programs ---- */

static json_t *region_json(const gt_region_view *v) {
  return json_pack("{s:o, s:b, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                   gt_json_text(v->name), "lead", v->lead, "trained", v->trained, "step",
                   (json_int_t)v->step, "samples", (json_int_t)v->samples, "epoch",
                   gt_json_number(v->epoch), "done", gt_json_number(v->done), "loss",
                   gt_json_number(v->loss), "samples_per_s", gt_json_number(v->samples_per_s),
                   "wan_waiting", gt_json_number(v->wan_waiting), "local_waiting",
                   gt_json_number(v->local_waiting));
}

char *gt_follow_json(const gt_follow *f, const char *path, int code, const char *text) {
  static const char *const states[] = {"nothing", "running", "ending", "stopped", "done"};
  static const gt_progress none = {.done = NAN, .accuracy = NAN, .samples_per_s = NAN};
  const gt_run_view *v = &f->view;
  json_t *regions = json_array();
  for (size_t i = 0; i < f->n; i++) json_array_append_new(regions, region_json(f->views[i]));
  const gt_progress *p = v->has_progress ? &v->progress : &none;
  json_t *run = json_pack("{s:o, s:s, s:o, s:o, s:o, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:o}",
                          "path", gt_json_text(path), "state", states[v->state], "code",
                          code < 0 ? json_null() : json_integer(code), "text", gt_json_text(text),
                          "job", gt_json_text(v->job), "resumes", (json_int_t)v->resumes, "silent",
                          v->silent, "quiet_s", gt_json_number(v->quiet_s), "done",
                          gt_json_number(p->done), "accuracy", gt_json_number(p->accuracy),
                          "samples_per_s", gt_json_number(p->samples_per_s), "left_s",
                          gt_json_number(v->state == GT_RUN_RUNNING && v->has_progress
                                             ? gt_live_left(&f->first, &v->progress)
                                             : NAN),
                          "regions", regions);
  char *dumped = json_dumps(run, JSON_COMPACT | JSON_REAL_PRECISION(10)), *out = gt_strdup(dumped);
  free(dumped);
  json_decref(run);
  return out;
}
