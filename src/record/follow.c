/* Reads the state of a run from the files of its directory only. */
#include "internal.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef struct {
  gt_follow *run;
  gt_tail *tail;
  bool lead; /* of the lead region, which determines the state of the run */
} region;

struct gt_follow {
  char *dir;
  region **regions; /* addresses must not change: tails point to them */
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
  gt_free(f->regions);
  gt_free(f->dir);
  gt_free(f);
}

/* ---- events ---- */

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

static void on_line(void *ctx, const json_t *line) {
  region *r = ctx;
  const char *event = json_string_value(json_object_get(line, "event"));
  if (!event) return;
  bool starts = strcmp(event, "start") == 0 || strcmp(event, "resumed") == 0;
  if (starts) r->lead = json_is_true(json_object_get(line, "lead"));
  if (!r->lead) return;
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
  if (!r->lead) return;
  r->lead = false;
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
    f->regions = more;
    f->room = room;
  }
  region *r = GT_NEW(region);
  *r = (region){f, gt_tail_create(path), false};
  f->regions[f->n++] = r;
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

/* Reads the summary.  It belongs to this start if the training is complete and the number of
   resumes agrees, or if the directory has no other files. */
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
  if (f->summary && (f->n == 0 || gt_summary_of(f->summary)->resumes == f->view.resumes))
    f->view.state = GT_RUN_DONE;
}

const gt_run_view *gt_follow_poll(gt_follow *f) {
  find_regions(f);
  look_at_regions(f);
  look_at_summary(f);
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
