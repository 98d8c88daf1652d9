/* Tests if a checkpoint can be written to the run directory, and how fast: a file of its size is
   written, made durable, renamed and removed, as ckpt does it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "geotrain/sync.h"
#include "internal.h"

#define CHUNK ((size_t)1 << 20)

/* Returns the length of the part of the path that already exists. */
static int existing(const char *path) {
  char part[1200];
  int n = snprintf(part, sizeof part, "%s", path);
  while (n > 0) {
    part[n] = '\0';
    if (access(part, F_OK) == 0) return n;
    while (n > 0 && part[n - 1] != '/') n--;
    while (n > 0 && part[n - 1] == '/') n--;
  }
  return 0;
}

/* Writes the folder of a run's checkpoints. */
static void folder_of(char folder[1200], const char *run_dir) {
  snprintf(folder, 1200, "%s/ckpt", run_dir);
}

void gt_probe_disk_before(gt_probe_state *p) {
  char folder[1200] = "runs"; /* the run's own is new */
  if (p->options->run_dir) folder_of(folder, p->options->run_dir);
  p->kept = existing(folder);
}

/* Removes the new folders from the end of the path while they are empty; another region may have
   removed some. */
void gt_probe_disk_after(gt_probe_state *p) {
  char part[1200];
  if (!p->run.run_dir[0]) return;
  folder_of(part, p->run.run_dir);
  int n = (int)strlen(part);
  while (n > p->kept && (rmdir(part) == 0 || errno == ENOENT)) {
    while (n > 0 && part[n - 1] != '/') n--;
    while (n > 0 && part[n - 1] == '/') n--;
    part[n] = '\0';
  }
}

static bool write_all(int fd, size_t bytes) {
  char *chunk = gt_alloc(CHUNK, 1);
  memset(chunk, 0x5a, CHUNK); /* a disk or file system may skip zeros */
  bool ok = true;
  while (ok && bytes > 0) {
    ssize_t n = write(fd, chunk, bytes < CHUNK ? bytes : CHUNK);
    if (n < 0 && errno == EINTR) continue;
    ok = n > 0;
    if (ok) bytes -= (size_t)n;
  }
  gt_free(chunk);
  return ok;
}

/* Writes, syncs, renames, syncs the folder; removes both names in any case. */
static gt_status write_file(const char *folder, const char *region, size_t bytes) {
  char path[1400], temporary[1500];
  snprintf(path, sizeof path, "%s/%s.probe", folder, region);
  int fd = gt_temporary_create(temporary, sizeof temporary, path);
  bool ok = fd >= 0 && write_all(fd, bytes) && fsync(fd) == 0;
  int error = errno;
  if (fd >= 0 && close(fd) != 0 && ok) {
    ok = false;
    error = errno;
  }
  if (ok && (rename(temporary, path) != 0 || !gt_name_sync(path))) {
    ok = false;
    error = errno;
  }
  if (fd >= 0) unlink(temporary);
  unlink(path);
  return ok ? GT_OK : GT_FAIL(GT_ERR_CKPT, "%s cannot be written: %s", path, strerror(error));
}

/* Returns the size of this region's checkpoint, as far as it depends on the model. */
static double checkpoint_bytes(const gt_probe_state *p) {
  if (!p->run.graph) return 0;
  const gt_arrays *a = gt_graph_arrays(p->run.graph);
  const gt_optim_spec optim = {.kind = p->run.job->train.optimizer.name,
                               .momentum = p->run.job->train.optimizer.momentum};
  const double moments = (double)gt_optim_arrays(&optim);
  /* the accumulated updates, or the last model sent */
  double kept = gt_sync_of(p->run.job->sync.strategy)->sends ? 1 : 0;
  return ((1 + moments + kept) * (double)a->params.n + (double)a->buffers.n) * sizeof(float) +
         65536;
}

void gt_probe_disk(gt_probe_state *p) {
  gt_run *run = &p->run;
  char folder[1200], part[1200];
  if (p->folder_error[0] || !run->roles.is_ps) return;
  double bytes = checkpoint_bytes(p);
  p->own.checkpoint_bytes = bytes > 0 ? bytes : (double)CHUNK;
  /* setup failed before it reached the run directory, for example at the data */
  if (!run->run_dir[0])
    snprintf(run->run_dir, sizeof run->run_dir, "%s%s",
             p->options->run_dir ? p->options->run_dir : "runs/",
             p->options->run_dir ? "" : run->job->name);
  folder_of(folder, run->run_dir);
  const bool made = gt_setup_make_folders(folder, part, sizeof part);
  gt_status status =
      made ? GT_OK : GT_FAIL(GT_ERR_CKPT, "%s cannot be made: %s", part, strerror(errno));
  gt_ns from = gt_now();
  if (status == GT_OK) status = write_file(folder, run->region, (size_t)p->own.checkpoint_bytes);
  p->own.checkpoint_s = gt_seconds(gt_now() - from);
  if (status != GT_OK)
    snprintf(p->own.checkpoint_error, sizeof p->own.checkpoint_error, "%.399s", gt_error_text());
}
