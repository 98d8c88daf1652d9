/* The final model of a run: a file beside the rounds; and the list of models in a run directory. */
#include "internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTED 8 /* files listed by name; the rest is only counted */

/* "final", or "final-<region>". */
static void name_final(char name[256], const char *region) {
  snprintf(name, 256, "final%s%s", region ? "-" : "", region ? region : "");
}

char *gt_ckpt_final_model_path(char *buf, size_t size, const char *run_dir, const char *region) {
  char name[256];
  name_final(name, region);
  snprintf(buf, size, "%s/%s.h5", run_dir, name);
  return buf;
}

gt_status gt_ckpt_write_final_model(gt_ckpt_writer **out, const char *run_dir, const char *region,
                                    const gt_ckpt_info *info, const gt_state *state) {
  char name[256];
  name_final(name, region);
  *out = NULL;
  GT_TRY(gt_ckpt_writer_open(out, run_dir, name));
  gt_status status = gt_ckpt_writer_begin(*out, CKPT_NO_ROUND, info, state);
  if (status == GT_OK) return GT_OK;
  gt_ckpt_writer_close(*out);
  *out = NULL;
  return status;
}

void gt_ckpt_remove_final_model(const char *run_dir, const char *region) {
  char path[PATH_MAX], name[256];
  name_final(name, region);
  unlink(gt_ckpt_final_model_path(path, sizeof path, run_dir, region));
  DIR *dir = opendir(run_dir);
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    if (gt_ckpt_is_temporary(entry->d_name, name)) unlinkat(dirfd(dir), entry->d_name, 0);
  if (dir) closedir(dir);
}

/* ---- listing --------------------------------------------------------------------------------- */

typedef struct {
  char *text;
  size_t size, n;
} listing;

static void add(listing *l, const char *prefix, const char *name) {
  if (l->n++ >= LISTED) return;
  size_t used = strlen(l->text);
  snprintf(l->text + used, l->size - used, "%s%s%s", used ? ", " : "", prefix, name);
}

static bool is_model(const char *name, const char *begin) {
  size_t length = strlen(name);
  return strncmp(name, begin, strlen(begin)) == 0 && name[0] != '.' && length > 3 &&
         strcmp(name + length - 3, ".h5") == 0;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the models in the folder whose names have this beginning, sorted by name. */
static void add_folder(listing *l, const char *folder, const char *begin, const char *prefix) {
  size_t n = 0, capacity = 0;
  char **names = NULL;
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    if (!is_model(entry->d_name, begin)) continue;
    GT_GROW(names, n, capacity, 8);
    names[n++] = gt_strdup(entry->d_name);
  }
  if (dir) closedir(dir);
  if (n) qsort(names, n, sizeof *names, by_name);
  for (size_t i = 0; i < n; i++) {
    add(l, prefix, names[i]);
    gt_free(names[i]);
  }
  gt_free(names);
}

char *gt_ckpt_list(char *buf, size_t size, const char *run_dir) {
  listing l = {.text = buf, .size = size};
  size_t n;
  int64_t *rounds = gt_ckpt_folders(run_dir, &n);
  buf[0] = '\0';
  add_folder(&l, run_dir, "final", "");
  while (n-- > 0) {
    char folder[PATH_MAX], prefix[64];
    snprintf(prefix, sizeof prefix, "ckpt/%lld/", (long long)rounds[n]);
    snprintf(folder, sizeof folder, "%s/%s", run_dir, prefix);
    add_folder(&l, folder, "", prefix);
  }
  gt_free(rounds);
  size_t used = strlen(buf);
  if (l.n > LISTED) snprintf(buf + used, size - used, " and %zu more", l.n - LISTED);
  if (l.n == 0) snprintf(buf, size, "nothing");
  return buf;
}
