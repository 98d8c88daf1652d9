/* Finds the runs in a directory, and the Slurm jobs that were submitted for them. */
#include "watch.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_dir(const char *path) {
  struct stat at;
  return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

static bool holds(const char *dir, const char *name) {
  char path[PATH_MAX];
  int length = snprintf(path, sizeof path, "%s/%s", dir, name);
  return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

static int ends_in_jsonl(const struct dirent *entry) {
  size_t n = strlen(entry->d_name);
  return entry->d_name[0] != '.' && n > 6 && strcmp(entry->d_name + n - 6, ".jsonl") == 0;
}

static int is_visible(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static void free_entries(struct dirent **entries, int n) {
  for (int i = 0; i < n; i++) free(entries[i]);
  free(entries);
}

static bool holds_record(const char *dir) {
  struct dirent **entries = NULL;
  int n = scandir(dir, &entries, ends_in_jsonl, NULL);
  if (n >= 0) free_entries(entries, n);
  return n > 0;
}

/* True if a run has begun in this directory. */
static bool is_run(const char *dir) {
  return holds(dir, "job.yaml") || holds(dir, "summary.json") || holds_record(dir);
}

static void add(gt_watch_paths *runs, const char *path) {
  for (size_t i = 0; i < runs->n; i++)
    if (strcmp(runs->paths[i], path) == 0) return;
  if (runs->n == runs->room) {
    size_t room = runs->room ? 2 * runs->room : 8;
    char **more = GT_NEW_ARRAY(char *, room);
    if (runs->n > 0) memcpy(more, runs->paths, runs->n * sizeof *more);
    gt_free(runs->paths);
    runs->paths = more;
    runs->room = room;
  }
  runs->paths[runs->n++] = gt_strdup(path);
}

void gt_watch_paths_close(gt_watch_paths *runs) {
  for (size_t i = 0; i < runs->n; i++) gt_free(runs->paths[i]);
  gt_free(runs->paths);
  *runs = (gt_watch_paths){0};
}

/* Adds runs in subdirectories, sorted by name with numbers in numerical order; true if there is
   one. *told: at least one has its own list of jobs. */
static bool add_below(gt_watch_paths *runs, const char *path, bool *told) {
  struct dirent **entries = NULL;
  bool found = false;
  int n = scandir(path, &entries, is_visible, versionsort);
  for (int i = 0; i < n; i++) {
    char below[PATH_MAX];
    int length = snprintf(below, sizeof below, "%s/%s", path, entries[i]->d_name);
    if (length < 0 || (size_t)length >= sizeof below || !is_dir(below) ||
        !(is_run(below) || holds(below, "slurm-jobs")))
      continue;
    add(runs, below);
    *told |= holds(below, "slurm-jobs");
    found = true;
  }
  if (n >= 0) free_entries(entries, n);
  return found;
}

/* Writes the parent directory of a path, which need not exist. */
static void above(const char *path, char *out, size_t size) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  while (n > 0 && path[n - 1] != '/') n--;
  while (n > 1 && path[n - 1] == '/') n--;
  if (n == 0)
    snprintf(out, size, "%s",
             path[0] == '.' && (!path[1] || path[1] == '.') ? "/nonexistent" : ".");
  else
    snprintf(out, size, "%.*s", (int)n, path);
}

gt_status gt_watch_find(gt_watch_paths *runs, const char *path, bool *again) {
  char parent[PATH_MAX];
  bool told = false;
  *again = false;
  if (!is_dir(path)) {
    above(path, parent, sizeof parent);
    if (access(path, F_OK) == 0)
      return GT_FAIL(GT_ERR_JOB, "watch: %s is a file; expected a run directory", path);
    if (!holds(parent, "slurm-jobs"))
      return GT_FAIL(GT_ERR_JOB,
                     "watch: there is no directory %s, and no job was submitted that would make "
                     "it; give the --run-dir of a run",
                     path);
    add(runs, path);
    return GT_OK;
  }
  if (is_run(path)) {
    add(runs, path);
    return GT_OK;
  }
  *again = true;
  /* Elements of a sweep that have not begun have no directory, so the jobs of the whole sweep are
     queried. */
  if (!add_below(runs, path, &told) || (!told && holds(path, "slurm-jobs"))) add(runs, path);
  return GT_OK;
}

/* ---- jobs ---- */

/* Reads one submission: "JOBID EPOCH-SECONDS [array index]". */
static bool take_submission(const char *line, char job[40]) {
  long long id, at, index;
  int n = sscanf(line, "%lld %lld %lld", &id, &at, &index);
  if (n < 1 || id < 1) return false;
  if (n == 3)
    snprintf(job, 40, "%lld_%lld", id, index);
  else
    snprintf(job, 40, "%lld", id);
  return true;
}

static size_t read_jobs(const char *dir, char jobs[][40], size_t most) {
  char path[PATH_MAX], line[256];
  size_t n = 0;
  int length = snprintf(path, sizeof path, "%s/slurm-jobs", dir);
  FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
  if (!file) return 0;
  while (fgets(line, sizeof line, file)) {
    char job[40];
    if (!take_submission(line, job)) continue;
    if (n == most) memmove(jobs, jobs + 1, --n * sizeof *jobs);
    memcpy(jobs[n++], job, sizeof job);
  }
  fclose(file);
  return n;
}

size_t gt_watch_jobs(const char *path, char jobs[][40], size_t most) {
  char parent[PATH_MAX];
  size_t n = read_jobs(path, jobs, most);
  if (n > 0) return n;
  above(path, parent, sizeof parent);
  return read_jobs(parent, jobs, most);
}
