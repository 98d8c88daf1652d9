/* Shared memory between the ranks of a region on one node: gradients and parameters of a worker are
   read and written in place. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* ---- bells: a rank wakes a sleeping rank on its node at once --------------------------------- */

_Static_assert(sizeof(gt_bell) == 64, "a line of its own");

void gt_bell_ring(gt_bell *bell) {
  if (!bell) return;
  atomic_fetch_add_explicit(&bell->rings, 1, memory_order_release);
  syscall(SYS_futex, &bell->rings, FUTEX_WAKE, 1, NULL, NULL, 0);
}

uint32_t gt_bell_heard(gt_bell *bell) {
  return bell ? atomic_load_explicit(&bell->rings, memory_order_acquire) : 0;
}

/* Returns early after a ring since `heard`, after a signal, or on a system without futexes: the
   caller tests again in any case. */
void gt_bell_sleep(gt_bell *bell, uint32_t heard, gt_ns ns) {
  if (!bell) {
    gt_sleep(ns);
    return;
  }
  if (ns <= 0) return;
  struct timespec left = {.tv_sec = (time_t)(ns / GT_SECOND), .tv_nsec = (long)(ns % GT_SECOND)};
  syscall(SYS_futex, &bell->rings, FUTEX_WAIT, heard, &left, NULL, 0);
}

/* ---- layout of shared memory ----------------------------------------------------------------- */

#define SETUP_LIMIT_S 120.0
#define PLACE         "/dev/shm" /* folder of shm_open on Linux */
#define PREFIX        "geotrain-"
/* Open MPI creates a segment of 4 MiB there for each rank on a node. */
#define MPI_BYTES     ((double)(4 << 20))
#define MPI_RANKS_MAX 64

static size_t float_bytes(size_t nfloats) {
  return gt_padded(nfloats) * sizeof(float);
}

/* Returns the size of a rank's segment.  It contains the rank's bell; on a worker then gradients,
   parameters, buffers, scores and activations; on the PS the snapshot and the data common to the
   workers. */
static size_t segment_bytes(const gt_shared *s, int rank) {
  const size_t params = float_bytes(s->n.nparams), buffers = float_bytes(s->n.nbuffers);
  if (rank > 0)
    return sizeof(gt_bell) + 2 * params + buffers + float_bytes(s->n.nscores) +
           gt_padded_bytes(s->n.nactivations);
  size_t bytes = sizeof(gt_bell) + 2 * params + buffers;
  if (s->nworkers > 1)
    bytes +=
        s->nworkers * sizeof(gt_announcement) + gt_chunks(s->n.nparams) * sizeof(gt_chunk) + params;
  return bytes;
}

/* Returns the start of a rank's segment.  Segments are contiguous, in rank order; those of workers
   have equal sizes. */
static size_t segment_start(const gt_shared *s, int rank) {
  return rank == 0 ? 0 : segment_bytes(s, 0) + (size_t)(rank - 1) * segment_bytes(s, 1);
}

/* True if all ranks of the region are on one node.  Collective over region. */
static bool one_node(MPI_Comm region) {
  MPI_Comm node;
  int all, here;
  GT_MPI(MPI_Comm_size(region, &all));
  GT_MPI(MPI_Comm_split_type(region, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  GT_MPI(MPI_Comm_size(node, &here));
  GT_MPI(MPI_Comm_free(&node));
  return here == all;
}

gt_bell *gt_shared_bell(const gt_shared *s, int rank) {
  return s->segments ? (gt_bell *)(void *)(s->segments + segment_start(s, rank)) : NULL;
}

/* Returns the address after the bell. */
static void *arrays_base(const gt_shared *s, int rank) {
  return gt_shared_bell(s, rank) + 1;
}

gt_plane_snapshot gt_shared_snapshot(const gt_shared *s) {
  float *params = arrays_base(s, 0);
  return (gt_plane_snapshot){.params = params, .buffers = params + gt_padded(s->n.nparams)};
}

gt_common gt_shared_common(const gt_shared *s) {
  gt_common common = {0};
  if (!s->segments) return common;
  void *behind = gt_shared_snapshot(s).buffers + gt_padded(s->n.nbuffers);
  common.params = behind;
  if (s->nworkers < 2) return common;
  common.announced = behind;
  common.chunks = (gt_chunk *)(common.announced + s->nworkers);
  common.mean = (float *)(common.chunks + gt_chunks(s->n.nparams));
  common.params = common.mean + gt_padded(s->n.nparams);
  return common;
}

gt_segment gt_shared_segment(const gt_shared *s, int rank) {
  gt_segment a = {.grads = arrays_base(s, rank)};
  a.params = a.grads + gt_padded(s->n.nparams);
  a.buffers = a.params + gt_padded(s->n.nparams);
  a.scores = a.buffers + gt_padded(s->n.nbuffers);
  a.activations = (uint8_t *)(a.scores + gt_padded(s->n.nscores));
  return a;
}

/* Initialises bells and announcements; no rank uses them before all ranks see the initial
   values. */
static void clear(const gt_shared *s, MPI_Comm region, int rank) {
  gt_common common = gt_shared_common(s);
  atomic_init(&gt_shared_bell(s, rank)->rings, 0);
  for (size_t w = 0; rank == 0 && common.mean && w < s->nworkers; w++) {
    atomic_init(&common.announced[w].final, 0);
    atomic_init(&common.announced[w].samples, 0);
  }
  for (size_t c = 0; rank == 0 && common.mean && c < gt_chunks(s->n.nparams); c++)
    atomic_init(&common.chunks[c].state, 0);
  gt_shared_sync(s);
  GT_MPI(MPI_Barrier(region));
  gt_shared_sync(s);
}

/* ---- reservation ----------------------------------------------------------------------------- */

/* Allocates pages now: a page missing at its first access would end a process with SIGBUS.  Returns
   0 or an error number. */
static int reserve(int fd, size_t at, size_t bytes) {
  int error;
  if (bytes == 0) return 0;
  do error = posix_fallocate(fd, (off_t)at, (off_t)bytes);
  while (error == EINTR);
  return error;
}

/* The stages of a pipeline form no mean of their gradients. */
static int reserve_ps(const gt_shared *s, int fd) {
  const size_t params = float_bytes(s->n.nparams), all = segment_bytes(s, 0);
  if (!s->n.parts || s->nworkers < 2) return reserve(fd, 0, all);
  const int error = reserve(fd, 0, all - 2 * params);
  return error != 0 ? error : reserve(fd, all - params, params);
}

/* Gradients and parameters outside the worker's part occupy no memory. */
static int reserve_worker(const gt_shared *s, int fd, int rank) {
  const size_t start = segment_start(s, rank), arrays = start + sizeof(gt_bell),
               params = float_bytes(s->n.nparams), rest = arrays + 2 * params;
  gt_plane_range whole[2];
  const gt_plane_part part = gt_part_of(&s->n, (size_t)rank - 1, whole);
  int error = reserve(fd, start, sizeof(gt_bell));
  for (size_t i = 0; error == 0 && i < part.nparams; i++) {
    const size_t at = arrays + part.params[i].offset * sizeof(float),
                 bytes = part.params[i].count * sizeof(float);
    error = reserve(fd, at, bytes);
    if (error == 0) error = reserve(fd, at + params, bytes);
  }
  return error != 0 ? error : reserve(fd, rest, start + segment_bytes(s, rank) - rest);
}

/* Checks that MPI's own segments, which are not reserved, have room.  A file system without a limit
   reports no blocks.  Returns 0 or an error number. */
static int check_room(int fd) {
  int ranks;
  struct statvfs left;
  GT_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
  const double room = MPI_BYTES * (double)(ranks < MPI_RANKS_MAX ? ranks : MPI_RANKS_MAX);
  if (fstatvfs(fd, &left) != 0 || left.f_blocks == 0) return 0;
  return (double)left.f_bavail * (double)left.f_frsize < room ? ENOSPC : 0;
}

/* Reserves this rank's segment and maps those of all ranks. */
static int map(gt_shared *s, int fd, int rank) {
  int error = rank == 0 ? reserve_ps(s, fd) : reserve_worker(s, fd, rank);
  if (error == 0) error = check_room(fd);
  if (error != 0) return error;
  void *segments = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (segments == MAP_FAILED) return errno;
  s->segments = segments;
  return 0;
}

/* ---- the object ------------------------------------------------------------------------------ */

/* Removes names left by processes that were killed between shm_open and shm_unlink, which are never
   further apart than SETUP_LIMIT_S. */
static void remove_leftovers(void) {
  DIR *dir = opendir(PLACE);
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    struct stat at;
    if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0 &&
        fstatat(dirfd(dir), entry->d_name, &at, AT_SYMLINK_NOFOLLOW) == 0 &&
        at.st_uid == geteuid() && (double)(time(NULL) - at.st_mtime) > 2 * SETUP_LIMIT_S)
      unlinkat(dirfd(dir), entry->d_name, 0);
  }
  if (dir) closedir(dir);
}

/* Creates the object.  name "": failed, and *error says why. */
static int create(char *name, size_t size, int *error) {
  uint64_t random = 0;
  remove_leftovers();
  if (getrandom(&random, sizeof random, 0) != sizeof random) return *error = errno, -1;
  snprintf(name, size, "/" PREFIX "%ld-%016" PRIx64, (long)getpid(), random);
  const int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd >= 0) return fd;
  *error = errno;
  name[0] = '\0';
  return -1;
}

/* Returns the largest error number of all ranks; 0: no rank failed. */
static int worst_of(MPI_Comm region, int error) {
  GT_MPI(MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_INT, MPI_MAX, region));
  return error;
}

/* Warns once per region, on its PS. */
static void say_why(const gt_shared *s, int error) {
  char needed[32], has[32] = "unknown";
  struct statvfs at;
  if (statvfs(PLACE, &at) == 0)
    gt_format_size(has, sizeof has, (double)at.f_blocks * (double)at.f_frsize);
  gt_log(
      GT_LOG_WARN,
      "too little shared memory: this region needs %s of %s, whose size is %s (%s); its ranks "
      "exchange arrays by messages, with the same results but slower; make it larger (docker run "
      "--shm-size)",
      gt_format_size(needed, sizeof needed, (double)s->bytes), PLACE, has, strerror(error));
}

/* Collective over region: all its ranks map all segments, or none does.  The object's name is
   removed as soon as all ranks have it open, and pages are allocated only then, so a killed rank
   leaves no memory behind. */
static void map_all(gt_shared *s, MPI_Comm region, int rank) {
  char name[48] = "";
  int error = 0, fd = rank == 0 ? create(name, sizeof name, &error) : -1;
  GT_MPI(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, region));
  gt_failpoint("shared.named");
  if (rank > 0 && name[0] && (fd = shm_open(name, O_RDWR, 0)) < 0) error = errno;
  error = worst_of(region, error);
  if (rank == 0 && name[0]) shm_unlink(name);
  if (error == 0) error = worst_of(region, map(s, fd, rank));
  if (fd >= 0) close(fd);
  if (error == 0) return;
  if (rank == 0) say_why(s, error);
  gt_shared_close(s);
}

void gt_shared_open(gt_shared *s, MPI_Comm region, const gt_plane_size *n) {
  int rank, size;
  GT_MPI(MPI_Comm_rank(region, &rank));
  GT_MPI(MPI_Comm_size(region, &size));
  *s = (gt_shared){.nworkers = (size_t)size - 1, .n = *n};
  s->bytes = segment_start(s, size);
  gt_watch_begin("the shared memory of a region", SETUP_LIMIT_S, GT_ERR_LOST);
  /* GEOTRAIN_LOCAL_PLANE=messages: no shared memory, as between nodes; for tests. */
  const char *forced = getenv("GEOTRAIN_LOCAL_PLANE");
  int agreed = !(forced && strcmp(forced, "messages") == 0);
  GT_MPI(MPI_Allreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT, MPI_MIN, region));
  if (one_node(region) && agreed) map_all(s, region, rank);
  if (s->segments) clear(s, region, rank);
  gt_watch_end();
}

void gt_shared_close(gt_shared *s) {
  if (s->segments) munmap(s->segments, s->bytes);
  s->segments = NULL;
}

void gt_shared_sync(const gt_shared *s) {
  if (s->segments) atomic_thread_fence(memory_order_seq_cst);
}
