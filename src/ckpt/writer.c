/* Rounds on disk: a thread writes their files; others are listed and removed.  Also the final model
   of a run.  Files of other regions and unknown files are not touched. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

/* ---- rounds on disk -------------------------------------------------------------------------- */

char *gt_ckpt_path(char *buf, size_t size, const char *run_dir, int64_t round, const char *region) {
  snprintf(buf, size, "%s/ckpt/%lld/%s.h5", run_dir, (long long)round, region);
  return buf;
}

/* Returns the number in the name of a round's folder, or -1 for any other name. */
static int64_t round_of(const char *name) {
  size_t length = strlen(name);
  if (length == 0 || length > 18 || strspn(name, "0123456789") != length ||
      (name[0] == '0' && length > 1))
    return -1;
  return strtoll(name, NULL, 10);
}

/* True for a temporary file (gt_temporary_create) of "<region>.h5". */
static bool is_temporary(const char *name, const char *region) {
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

/* Returns all numbered folders of RUN_DIR/ckpt, ascending, *n of them; the caller frees. */
static int64_t *folders(const char *run_dir, size_t *n) {
  size_t capacity = 16;
  int64_t *rounds = GT_NEW_ARRAY(int64_t, capacity);
  DIR *dir = open_ckpt(run_dir);
  *n = 0;
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    int64_t round = round_of(entry->d_name);
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
  int64_t *all = folders(run_dir, &nall);
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

/* Removes the region's temporary files in one round's folder; returns true if there were any. */
static bool remove_temporaries(const char *run_dir, int64_t round, const char *region) {
  char folder[PATH_MAX];
  bool any = false;
  snprintf(folder, sizeof folder, "%s/ckpt/%lld", run_dir, (long long)round);
  DIR *dir = opendir(folder);
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    if (is_temporary(entry->d_name, region) && unlinkat(dirfd(dir), entry->d_name, 0) == 0)
      any = true;
  if (dir) closedir(dir);
  return any;
}

static void remove_folder_if_empty(const char *run_dir, int64_t round) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s/ckpt/%lld", run_dir, (long long)round);
  rmdir(folder);
}

/* Removes the leftovers of a killed run of this region: temporary files, and folders that become
   empty. */
static void sweep(const char *run_dir, const char *region) {
  size_t n;
  int64_t *rounds = folders(run_dir, &n);
  for (size_t i = 0; i < n; i++)
    if (remove_temporaries(run_dir, rounds[i], region)) remove_folder_if_empty(run_dir, rounds[i]);
  gt_free(rounds);
}

/* Removes the region's files of rounds below `oldest_kept`, but not of the round `spared`. */
static void remove_rounds(const char *run_dir, const char *region, int64_t oldest_kept,
                          int64_t spared) {
  size_t n;
  int64_t *rounds = folders(run_dir, &n);
  for (size_t i = 0; i < n && rounds[i] < oldest_kept; i++) {
    char path[PATH_MAX];
    if (rounds[i] == spared) continue;
    unlink(gt_ckpt_path(path, sizeof path, run_dir, rounds[i], region));
    remove_temporaries(run_dir, rounds[i], region);
    remove_folder_if_empty(run_dir, rounds[i]);
  }
  gt_free(rounds);
  gt_failpoint("ckpt.pruned");
}

/* ---- writer ---------------------------------------------------------------------------------- */

/* The writer: the caller's thread builds the image (HDF5 is not thread-safe), the writer's own
   thread makes it durable. */

struct gt_ckpt_writer {
  char *run_dir, *name; /* name of its files: the region's, or the final model's */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  gt_ckpt_progress progress; /* the members below are protected by the lock */
  bool closing;
  gt_ckpt_file file; /* used by the thread while BUSY */
  int64_t round;
  gt_status status;
  char text[GT_ERROR_TEXT_MAX];
};

static void *serve(void *context) {
  gt_ckpt_writer *writer = context;
  pthread_mutex_lock(&writer->lock);
  for (;;) {
    while (writer->progress != GT_CKPT_BUSY && !writer->closing)
      pthread_cond_wait(&writer->changed, &writer->lock);
    if (writer->progress != GT_CKPT_BUSY) break;
    pthread_mutex_unlock(&writer->lock);
    gt_ckpt_seal(&writer->file);
    gt_status status =
        gt_ckpt_file_write(&writer->file, writer->run_dir, writer->round, writer->name);
    gt_free(writer->file.bytes);
    pthread_mutex_lock(&writer->lock);
    writer->file = (gt_ckpt_file){0};
    writer->status = status;
    snprintf(writer->text, sizeof writer->text, "%s", status == GT_OK ? "" : gt_error_text());
    writer->progress = GT_CKPT_DONE;
  }
  pthread_mutex_unlock(&writer->lock);
  return NULL;
}

/* The thread blocks all signals: the thread that runs MPI handles stop requests. */
static int start_thread(gt_ckpt_writer *writer) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int error = pthread_create(&writer->thread, NULL, serve, writer);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

static gt_status make_directory(const char *path) {
  if (mkdir(path, 0777) == 0 || errno == EEXIST) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT, "%s: the checkpoint directory cannot be created: %s", path,
                 strerror(errno));
}

/* Creates a writer with its thread for files of this name; does not touch the disk. */
static gt_status open_writer(gt_ckpt_writer **out, const char *run_dir, const char *name) {
  gt_ckpt_writer *writer = GT_NEW(gt_ckpt_writer);
  writer->run_dir = gt_strdup(run_dir);
  writer->name = gt_strdup(name);
  pthread_mutex_init(&writer->lock, NULL);
  pthread_cond_init(&writer->changed, NULL);
  int error = start_thread(writer);
  if (error) {
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    gt_free(writer->name);
    gt_free(writer->run_dir);
    gt_free(writer);
    return GT_FAIL(GT_ERR_FAULT, "the thread that writes checkpoints could not start: %s",
                   strerror(error));
  }
  *out = writer;
  return GT_OK;
}

gt_status gt_ckpt_writer_create(gt_ckpt_writer **out, const char *run_dir, const char *region) {
  char path[PATH_MAX];
  *out = NULL;
  if (!*region || strchr(region, '/'))
    return GT_FAIL(GT_ERR_CKPT, "the region name '%s' cannot be a file name", region);
  int length = snprintf(path, sizeof path, "%s/ckpt", run_dir);
  if (length < 0 || (size_t)length + strlen(region) + 64 > sizeof path)
    return GT_FAIL(GT_ERR_CKPT, "%s: the path of the run directory is longer than %d bytes",
                   run_dir, PATH_MAX - 64);
  GT_TRY(make_directory(run_dir));
  GT_TRY(make_directory(path));
  sweep(run_dir, region);
  return open_writer(out, run_dir, region);
}

void gt_ckpt_writer_close(gt_ckpt_writer *writer) {
  if (!writer) return;
  pthread_mutex_lock(&writer->lock);
  writer->closing = true;
  pthread_cond_signal(&writer->changed);
  pthread_mutex_unlock(&writer->lock);
  pthread_join(writer->thread, NULL);
  pthread_cond_destroy(&writer->changed);
  pthread_mutex_destroy(&writer->lock);
  gt_free(writer->name);
  gt_free(writer->run_dir);
  gt_free(writer);
}

/* Does gt_ckpt_write for any round. */
static gt_status begin(gt_ckpt_writer *writer, int64_t round, const gt_ckpt_info *info,
                       const gt_state *state) {
  gt_ckpt_file file;
  GT_TRY(gt_ckpt_image_encode(&file, info, state));
  pthread_mutex_lock(&writer->lock);
  writer->file = file;
  writer->round = round;
  writer->progress = GT_CKPT_BUSY;
  pthread_cond_signal(&writer->changed);
  pthread_mutex_unlock(&writer->lock);
  return GT_OK;
}

gt_status gt_ckpt_write(gt_ckpt_writer *writer, const gt_ckpt_info *info, const gt_state *state) {
  pthread_mutex_lock(&writer->lock);
  gt_ckpt_progress progress = writer->progress;
  pthread_mutex_unlock(&writer->lock);
  if (progress == GT_CKPT_BUSY)
    return GT_FAIL(GT_ERR_FAULT,
                   "cannot write round %lld of region %s while round %lld is being written",
                   (long long)info->round, writer->name, (long long)writer->round);
  if (progress == GT_CKPT_DONE)
    return GT_FAIL(
        GT_ERR_FAULT,
        "cannot write round %lld of region %s before the result of round %lld is collected",
        (long long)info->round, writer->name, (long long)writer->round);
  if (info->round < 0)
    return GT_FAIL(GT_ERR_FAULT, "the round of a checkpoint is %lld; expected 0 or more",
                   (long long)info->round);
  return begin(writer, info->round, info, state);
}

gt_ckpt_progress gt_ckpt_poll(gt_ckpt_writer *writer, gt_status *result) {
  char text[GT_ERROR_TEXT_MAX];
  pthread_mutex_lock(&writer->lock);
  gt_ckpt_progress progress = writer->progress;
  gt_status status = writer->status;
  if (progress == GT_CKPT_DONE) {
    writer->progress = GT_CKPT_IDLE;
    memcpy(text, writer->text, sizeof text);
  }
  pthread_mutex_unlock(&writer->lock);
  if (progress != GT_CKPT_DONE) return progress;
  *result = status == GT_OK ? GT_OK : GT_FAIL(status, "%s", text);
  return GT_CKPT_DONE;
}

void gt_ckpt_prune(gt_ckpt_writer *writer, int64_t oldest_kept, int64_t spared) {
  remove_rounds(writer->run_dir, writer->name, oldest_kept, spared);
}

/* ---- final model ----------------------------------------------------------------------------- */

/* The final model of a run, in the run directory; and the list of models in a run directory. */

#define LISTED 8 /* files listed by name; the rest is only counted */

/* "final", or "final-<region>". */
static void name_final(char name[256], const char *region) {
  snprintf(name, 256, "final%s%s", region ? "-" : "", region ? region : "");
}

gt_status gt_ckpt_write_final_model(gt_ckpt_writer **out, const char *run_dir, const char *region,
                                    const gt_ckpt_info *info, const gt_state *state) {
  char name[256];
  name_final(name, region);
  *out = NULL;
  GT_TRY(open_writer(out, run_dir, name));
  gt_status status = begin(*out, CKPT_NO_ROUND, info, state);
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
    if (is_temporary(entry->d_name, name)) unlinkat(dirfd(dir), entry->d_name, 0);
  if (dir) closedir(dir);
}

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

/* Adds the models in the folder whose names begin with `begin`, sorted by name. */
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
  int64_t *rounds = folders(run_dir, &n);
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
