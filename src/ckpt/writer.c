/* The writer: the caller's thread builds the image (HDF5 is not thread-safe), the writer's own
   thread makes it durable. */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

/* The thread blocks all signals: stop requests are for the thread that runs MPI. */
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
  return GT_FAIL(GT_ERR_CKPT, "%s: the directory for checkpoints cannot be made: %s", path,
                 strerror(errno));
}

gt_status gt_ckpt_writer_open(gt_ckpt_writer **out, const char *run_dir, const char *name) {
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
  gt_ckpt_sweep(run_dir, region);
  return gt_ckpt_writer_open(out, run_dir, region);
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

gt_status gt_ckpt_writer_begin(gt_ckpt_writer *writer, int64_t round, const gt_ckpt_info *info,
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
                   "round %lld of region %s was to be written while round %lld is under way",
                   (long long)info->round, writer->name, (long long)writer->round);
  if (progress == GT_CKPT_DONE)
    return GT_FAIL(
        GT_ERR_FAULT,
        "round %lld of region %s was to be written before the result of round %lld was asked for",
        (long long)info->round, writer->name, (long long)writer->round);
  if (info->round < 0)
    return GT_FAIL(GT_ERR_FAULT, "the round of a checkpoint is %lld; 0 or more is needed",
                   (long long)info->round);
  return gt_ckpt_writer_begin(writer, info->round, info, state);
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

void gt_ckpt_prune(gt_ckpt_writer *writer, int64_t oldest_kept) {
  gt_ckpt_remove_rounds(writer->run_dir, writer->name, oldest_kept);
}
