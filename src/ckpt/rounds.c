/* Rounds on disk: lists and removes them.  Files of other regions and unknown files are left
   alone. */
#include "internal.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *gt_ckpt_path(char *buf, size_t size, const char *run_dir, int64_t round, const char *region) {
  snprintf(buf, size, "%s/ckpt/%lld/%s.h5", run_dir, (long long)round, region);
  return buf;
}

int64_t gt_ckpt_round_of(const char *name) {
  size_t length = strlen(name);
  if (length == 0 || length > 18 || strspn(name, "0123456789") != length ||
      (name[0] == '0' && length > 1))
    return -1;
  return strtoll(name, NULL, 10);
}

bool gt_ckpt_is_temporary(const char *name, const char *region) {
  char of[NAME_MAX + 4];
  snprintf(of, sizeof of, "%s.h5", region);
  return gt_temporary_is(name, of);
}

static DIR *open_ckpt(const char *run_dir) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/ckpt", run_dir);
  return opendir(path);
}

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

int64_t *gt_ckpt_folders(const char *run_dir, size_t *n) {
  size_t capacity = 16;
  int64_t *rounds = GT_NEW_ARRAY(int64_t, capacity);
  DIR *dir = open_ckpt(run_dir);
  *n = 0;
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    int64_t round = gt_ckpt_round_of(entry->d_name);
    if (round < 0) continue;
    GT_GROW(rounds, *n, capacity, 16);
    rounds[(*n)++] = round;
  }
  if (dir) closedir(dir);
  qsort(rounds, *n, sizeof *rounds, ascending);
  return rounds;
}

size_t gt_ckpt_rounds(const char *run_dir, const char *region, int64_t *rounds, size_t max) {
  size_t nall, n = 0;
  int64_t *all = gt_ckpt_folders(run_dir, &nall);
  for (size_t i = 0; i < nall; i++) {
    char path[PATH_MAX];
    struct stat at;
    if (stat(gt_ckpt_path(path, sizeof path, run_dir, all[i], region), &at) == 0 &&
        S_ISREG(at.st_mode))
      all[n++] = all[i];
  }
  size_t given = n < max ? n : max; /* the newest, if there are more */
  memcpy(rounds, all + (n - given), given * sizeof *rounds);
  gt_free(all);
  return given;
}

/* Removes the region's temporary files in one round's folder; returns whether there were any. */
static bool remove_temporaries(const char *run_dir, int64_t round, const char *region) {
  char folder[PATH_MAX];
  bool any = false;
  snprintf(folder, sizeof folder, "%s/ckpt/%lld", run_dir, (long long)round);
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    if (gt_ckpt_is_temporary(entry->d_name, region) && unlinkat(dirfd(dir), entry->d_name, 0) == 0)
      any = true;
  if (dir) closedir(dir);
  return any;
}

static void remove_folder_if_empty(const char *run_dir, int64_t round) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s/ckpt/%lld", run_dir, (long long)round);
  rmdir(folder);
}

void gt_ckpt_sweep(const char *run_dir, const char *region) {
  size_t n;
  int64_t *rounds = gt_ckpt_folders(run_dir, &n);
  for (size_t i = 0; i < n; i++)
    if (remove_temporaries(run_dir, rounds[i], region)) remove_folder_if_empty(run_dir, rounds[i]);
  gt_free(rounds);
}

void gt_ckpt_remove_rounds(const char *run_dir, const char *region, int64_t oldest_kept) {
  size_t n;
  int64_t *rounds = gt_ckpt_folders(run_dir, &n);
  for (size_t i = 0; i < n && rounds[i] < oldest_kept; i++) {
    char path[PATH_MAX];
    unlink(gt_ckpt_path(path, sizeof path, run_dir, rounds[i], region));
    remove_temporaries(run_dir, rounds[i], region);
    remove_folder_if_empty(run_dir, rounds[i]);
  }
  gt_free(rounds);
  gt_failpoint("ckpt.pruned");
}
