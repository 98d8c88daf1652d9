/* geotrain watch RUN-DIR...: shows the live line of runs from their files, on any host that can
   read them. */
#include "cli.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"
#include "options.h"

#define LOOK  (GT_SECOND / 2)
#define OFTEN 16 /* every OFTEN-th poll also checks finished runs, which could have been resumed */

typedef struct {
  char **arguments;
  size_t narguments;
  bool once, json;
  bool regions, color; /* a line a region, with colors: on a terminal */
  gt_live_mode mode;
} settings;

typedef struct {
  const settings *set;
  gt_squeue *queue;
  gt_board *board;
  gt_watched *runs;
  size_t n, looks;
  bool more; /* directories can get more runs */
} watch;

/* ---- which runs ---- */

static void close_runs(gt_watched *runs, size_t n) {
  for (size_t i = 0; i < n; i++) {
    gt_follow_close(runs[i].follow);
    gt_free(runs[i].path);
    gt_free(runs[i].regions);
  }
  gt_free(runs);
}

static gt_watched *find_run(const watch *w, const char *path) {
  for (size_t i = 0; i < w->n; i++)
    if (w->runs[i].path && strcmp(w->runs[i].path, path) == 0) return &w->runs[i];
  return NULL;
}

/* Adds the paths; known runs keep their state. */
static void take_paths(watch *w, const gt_watch_paths *paths, const bool *is_sweep) {
  gt_watched *runs = GT_NEW_ARRAY(gt_watched, paths->n);
  for (size_t i = 0; i < paths->n; i++) {
    gt_watched *known = find_run(w, paths->paths[i]);
    if (known) {
      runs[i] = *known;
      *known = (gt_watched){0};
    } else
      runs[i] = (gt_watched){.path = gt_strdup(paths->paths[i]),
                             .follow = gt_follow_create(paths->paths[i])};
    runs[i].is_sweep = is_sweep[i];
    runs[i].hasty = w->set->once;
  }
  close_runs(w->runs, w->n);
  w->runs = runs;
  w->n = paths->n;
}

static gt_status find_runs(watch *w) {
  gt_watch_paths paths = {0};
  bool sweeps[GT_WATCH_RUNS] = {0};
  w->more = false;
  for (size_t i = 0; i < w->set->narguments; i++) {
    bool again;
    size_t before = paths.n;
    gt_status status = gt_watch_find(&paths, w->set->arguments[i], &again);
    if (status == GT_OK && paths.n > GT_WATCH_RUNS)
      status = GT_FAIL(GT_ERR_JOB,
                       "watch: %s brings the runs to %zu; %zu at most can be watched at a time",
                       w->set->arguments[i], paths.n, GT_WATCH_RUNS);
    if (status != GT_OK) {
      gt_watch_paths_close(&paths);
      return status;
    }
    w->more |= again;
    if (again && paths.n > before + 1 &&
        strcmp(paths.paths[paths.n - 1], w->set->arguments[i]) == 0)
      sweeps[paths.n - 1] = true;
  }
  take_paths(w, &paths, sweeps);
  gt_watch_paths_close(&paths);
  return GT_OK;
}

/* ---- looking ---- */

static bool is_done(const gt_watched *run) {
  return run->line.over && run->code == GT_OK && !run->is_sweep;
}

/* Queries the jobs of all unfinished runs, without duplicates, with squeue. */
static void ask_queue(const watch *w) {
  size_t size = w->n * GT_WATCH_JOBS * 40 + 2, used = 1;
  char jobs[GT_WATCH_JOBS][40], key[48], *list = GT_NEW_ARRAY(char, size);
  list[0] = ',';
  for (size_t i = 0; i < w->n; i++) {
    size_t n = is_done(&w->runs[i]) ? 0 : gt_watch_jobs(w->runs[i].path, jobs, GT_WATCH_JOBS);
    for (size_t j = 0; j < n; j++) {
      snprintf(key, sizeof key, ",%.39s,", jobs[j]);
      if (!strstr(list, key)) used += (size_t)snprintf(list + used, size - used, "%s,", jobs[j]);
    }
  }
  list[used - 1] = '\0';
  gt_squeue_poll(w->queue, used > 1 ? list + 1 : "");
  gt_free(list);
}

/* Returns "" for a single run, else the last part of the path; *length: of the longest one. */
static const char *name_of(const char *path, int *length) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  size_t from = n;
  while (from > 0 && path[from - 1] != '/') from--;
  *length = (int)(n - from);
  return path + from;
}

static int name_width(const watch *w) {
  int widest = 0, length;
  for (size_t i = 0; i < w->n; i++) {
    name_of(w->runs[i].path, &length);
    if (length > widest) widest = length;
  }
  return w->n < 2 ? 0 : widest < 32 ? widest : 32;
}

static void put_line(gt_watched *run, int width) {
  int length;
  const char *name = name_of(run->path, &length);
  if (width > 0 && run->text[0])
    snprintf(run->line.text, sizeof run->line.text, "%-*.*s  %s", width,
             length < width ? length : width, name, run->text);
  else
    snprintf(run->line.text, sizeof run->line.text, "%s", run->text);
}

/* Polls all runs; true when every run is over. */
static bool look(watch *w) {
  int width = name_width(w);
  size_t columns = gt_board_width(w->board), prefix = width > 0 ? (size_t)width + 2 : 0;
  bool over = true, all = w->looks++ % OFTEN == 0;
  ask_queue(w);
  for (size_t i = 0; i < w->n; i++) {
    gt_watched *run = &w->runs[i];
    if (all || !is_done(run))
      gt_watch_judge(run, w->queue, columns > prefix + 20 ? columns - prefix : 20);
    put_line(run, width);
    over &= run->line.over;
  }
  return over;
}

/* Writes the lines of a run's regions, at most `most`; the last one counts those without a line.
   Returns the number of lines. */
static size_t put_regions(const watch *w, gt_watched *run, size_t most) {
  size_t n;
  const gt_region_view *const *views = gt_follow_regions(run->follow, &n);
  const size_t lines = run->line.over || run->is_sweep ? 0 : n < most ? n : most;
  int widest = 0;
  if (n > run->nregions) {
    gt_free(run->regions);
    run->regions = GT_NEW_ARRAY(gt_board_line, n);
    run->nregions = n;
  }
  for (size_t i = 0; i < n; i++)
    if ((int)strlen(views[i]->name) > widest) widest = (int)strlen(views[i]->name);
  for (size_t i = 0; i < lines; i++) {
    char *text = run->regions[i].text;
    if (i + 1 < lines || lines == n)
      gt_region_text(views[i], text, sizeof run->regions[i].text, widest, gt_board_width(w->board),
                     w->set->color);
    else
      snprintf(text, sizeof run->regions[i].text, "  and %zu more regions", n - i);
  }
  return lines;
}

static void show(const watch *w) {
  const size_t rows = gt_board_rows(w->board),
               most = rows > w->n ? (rows - w->n) / (w->n ? w->n : 1) : 0;
  size_t n = 0, room = 0;
  gt_board_line **lines = NULL;
  for (size_t i = 0; i < w->n; i++) {
    const size_t regions = w->set->regions ? put_regions(w, &w->runs[i], most) : 0;
    for (size_t k = 0; k <= regions; k++) {
      GT_GROW(lines, n, room, 64);
      lines[n++] = k == 0 ? &w->runs[i].line : &w->runs[i].regions[k - 1];
    }
  }
  gt_board_show(w->board, lines, n);
  gt_free((void *)lines);
}

static void print_json(const watch *w) {
  fputs("{\"runs\":[", stdout);
  for (size_t i = 0; i < w->n; i++) {
    const gt_watched *run = &w->runs[i];
    char *text =
        gt_follow_json(run->follow, run->path, run->line.over ? (int)run->code : -1, run->text);
    printf("%s%s", i ? ",\n" : "", text);
    gt_free(text);
  }
  puts("]}");
}

/* Returns the worst status: lost, then a limit, then stopped. */
static gt_status code_of(const watch *w) {
  static const gt_status worst[] = {GT_ERR_LOST, GT_ERR_LIMIT, GT_STOPPED};
  for (size_t k = 0; k < sizeof worst / sizeof *worst; k++)
    for (size_t i = 0; i < w->n; i++)
      if (w->runs[i].line.over && w->runs[i].code == worst[k]) return worst[k];
  return GT_OK;
}

static void print_tables(const watch *w) {
  for (size_t i = 0; i < w->n; i++) {
    const gt_summary *summary = w->runs[i].is_sweep ? NULL : gt_follow_summary(w->runs[i].follow);
    if (!summary) continue;
    if (w->n > 1) printf("\n%s", w->runs[i].path);
    gt_summary_print(stdout, summary);
  }
}

/* Sleeps between two polls; longer with many runs. */
static void rest(const watch *w) {
  gt_ns until = gt_now() + (w->set->once ? LOOK / 10 : LOOK + (gt_ns)(w->n / 16) * LOOK);
  while (gt_now() < until && !gt_stop_requested()) gt_sleep(LOOK / 10);
}

static gt_status watch_all(watch *w) {
  bool over, ready;
  for (;;) {
    over = look(w);
    ready = !w->set->once || gt_squeue_is_settled(w->queue);
    if (ready && w->set->json) print_json(w);
    if (ready && !w->set->json) show(w);
    if (over || (w->set->once && ready) || gt_stop_requested()) break;
    rest(w);
    if (w->more) (void)find_runs(w);
  }
  gt_board_end(w->board);
  if (over && !w->set->once) print_tables(w);
  return code_of(w);
}

/* ---- the command ---- */

static gt_status read_progress(settings *set, const char *word) {
  static const char *const names[] = {"auto", "line", "log"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(word, names[i]) == 0) {
      set->mode = (gt_live_mode)i;
      return GT_OK;
    }
  return GT_FAIL(GT_ERR_JOB, "watch: --progress is \"%s\"; expected one of auto, line, log", word);
}

const struct option gt_options_watch[] = {{"once", no_argument, NULL, 'o'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"progress", required_argument, NULL, 'p'},
                                          {NULL, 0, NULL, 0}};

static gt_status read_options(settings *set, int argc, char **argv) {
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, "", gt_options_watch, NULL)) != -1;) {
    if (option == 'o' || option == 'j')
      set->once = true, set->json |= option == 'j';
    else if (option == 'p')
      GT_TRY(read_progress(set, optarg));
    else
      return gt_option_refused(argc, argv, "watch");
  }
  if (optind == argc)
    return GT_FAIL(GT_ERR_JOB,
                   "watch: expected a run directory, found none; see `geotrain help watch`");
  set->arguments = argv + optind;
  set->narguments = (size_t)(argc - optind);
  const char *no_color = getenv("NO_COLOR");
  set->regions = gt_board_in_place(stdout, set->mode);
  set->color = set->regions && !(no_color && no_color[0]); /* https://no-color.org */
  return GT_OK;
}

/* Prints errors of the command itself.  The lines of runs that ended with a status other than 0
   already have the reason. */
static gt_status refused(gt_status status) {
  gt_log(GT_LOG_ERROR, "%s", gt_error_text());
  return status;
}

gt_status gt_cmd_watch(int argc, char **argv) {
  settings set = {.mode = GT_LIVE_AUTO};
  if (read_options(&set, argc, argv) != GT_OK) return refused(GT_ERR_JOB);
  gt_stop_install();
  watch w = {.set = &set,
             .queue = gt_squeue_create(),
             .board = gt_board_create(stdout, set.once ? GT_LIVE_LOG : set.mode)};
  gt_status status = find_runs(&w);
  status = status == GT_OK ? watch_all(&w) : refused(status);
  gt_board_close(w.board);
  gt_squeue_close(w.queue);
  close_runs(w.runs, w.n);
  gt_end_by_signal(); /* ends only the watching */
  return status;
}
