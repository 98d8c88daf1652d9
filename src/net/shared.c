/* Shared memory between the ranks of a region on one node: gradients and parameters of a worker are
   read and written in place. */
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define SETUP_LIMIT_S 120.0
#define PLACE         "/dev/shm" /* of shm_open, on Linux */
#define PREFIX        "geotrain-"
/* For each rank on a node Open MPI makes a segment of 4 MiB there. */
#define MPI_BYTES     ((double)(4 << 20))
#define MPI_RANKS_MAX 64

/* Every rank has one segment.  It contains its bell; on a worker then gradients, parameters,
   buffers, scores and activations; on the PS the snapshot and the data common to the workers. */
static size_t segment_bytes(const gt_shared *s, int rank) {
  const size_t params = gt_padded(s->n.nparams), buffers = gt_padded(s->n.nbuffers);
  if (rank > 0)
    return sizeof(gt_bell) +
           (2 * params + buffers + gt_padded(s->n.nscores) + GT_LINE_FLOATS) * sizeof(float) +
           gt_padded_bytes(s->n.nactivations);
  size_t bytes = sizeof(gt_bell) + (2 * params + buffers + GT_LINE_FLOATS) * sizeof(float);
  if (s->nworkers > 1)
    bytes += s->nworkers * sizeof(gt_announcement) + gt_chunks(s->n.nparams) * sizeof(gt_chunk) +
             params * sizeof(float);
  return bytes;
}

/* Collective over region: true when all its ranks are on one node. */
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
  return s->segments ? s->segments[rank].base : NULL;
}

/* The address after the bell. */
static void *arrays_base(const gt_shared *s, int rank) {
  return (gt_bell *)s->segments[rank].base + 1;
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

/* ---- the segments ---------------------------------------------------------------------------- */

/* What a rank offers to the others of its region. */
typedef struct {
  char name[48]; /* "": nothing could be reserved */
  int error;     /* why */
  uint64_t bytes;
} offer;

/* Removes what a process has left that was killed between shm_open and shm_unlink, which are never
   further apart than SETUP_LIMIT_S. */
static void remove_leftovers(void) {
  DIR *dir = opendir(PLACE);
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    struct stat at;
    if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0 &&
        fstatat(dirfd(dir), entry->d_name, &at, AT_SYMLINK_NOFOLLOW) == 0 &&
        at.st_uid == geteuid() && time(NULL) - at.st_mtime > 2 * SETUP_LIMIT_S)
      unlinkat(dirfd(dir), entry->d_name, 0);
  }
  if (dir) closedir(dir);
}

/* Reserves the bytes, as a page that is missing later ends a process with SIGBUS, and leaves room for
   MPI's own segments, which are not reserved.  Returns 0 or an error number. */
static int reserve(int fd, uint64_t bytes) {
  int ranks;
  struct statvfs left;
  GT_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
  int error;
  do error = posix_fallocate(fd, 0, (off_t)bytes);
  while (error == EINTR);
  if (error != 0) return error;
  const double room = MPI_BYTES * (double)(ranks < MPI_RANKS_MAX ? ranks : MPI_RANKS_MAX);
  return fstatvfs(fd, &left) == 0 && (double)left.f_bavail * (double)left.f_frsize < room ? ENOSPC
                                                                                          : 0;
}

static offer make_offer(uint64_t bytes) {
  offer o = {.bytes = bytes};
  uint64_t random = 0;
  remove_leftovers();
  if (getrandom(&random, sizeof random, 0) != sizeof random) return o.error = errno, o;
  snprintf(o.name, sizeof o.name, "/" PREFIX "%ld-%016" PRIx64, (long)getpid(), random);
  const int fd = shm_open(o.name, O_RDWR | O_CREAT | O_EXCL, 0600);
  o.error = fd < 0 ? errno : reserve(fd, bytes);
  if (fd >= 0) close(fd);
  if (o.error == 0) return o;
  if (fd >= 0) shm_unlink(o.name);
  o.name[0] = '\0';
  return o;
}

static int map_offer(gt_mapping *m, const offer *o) {
  const int fd = shm_open(o->name, O_RDWR, 0);
  if (fd < 0) return errno;
  m->base = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = m->base == MAP_FAILED ? errno : 0;
  if (error != 0) m->base = NULL;
  m->bytes = o->bytes;
  close(fd);
  return error;
}

static void unmap(gt_shared *s) {
  for (size_t r = 0; r <= s->nworkers; r++)
    if (s->segments[r].base) munmap(s->segments[r].base, s->segments[r].bytes);
  gt_free(s->segments);
  s->segments = NULL;
}

/* Once a region, by its PS. */
static void say_why(const gt_shared *s, const offer *offers, int error) {
  double bytes = 0;
  char needed[32], has[32] = "unknown";
  struct statvfs at;
  for (size_t r = 0; r <= s->nworkers; r++) bytes += (double)offers[r].bytes;
  if (statvfs(PLACE, &at) == 0)
    gt_format_size(has, sizeof has, (double)at.f_blocks * (double)at.f_frsize);
  gt_log(
      GT_LOG_WARN,
      "too little shared memory: this region needs %s of %s, whose size is %s (%s); its ranks "
      "exchange arrays by messages, with the same results but slower; make it larger (docker run "
      "--shm-size)",
      gt_format_size(needed, sizeof needed, bytes), PLACE, has, strerror(error));
}

/* Collective over region: all its ranks map all segments, or none does. */
static void map_all(gt_shared *s, MPI_Comm region, int rank) {
  offer *offers = GT_NEW_ARRAY(offer, s->nworkers + 1);
  const offer own = make_offer(segment_bytes(s, rank));
  int error = 0;
  GT_MPI(MPI_Allgather(&own, sizeof own, MPI_BYTE, offers, sizeof own, MPI_BYTE, region));
  s->segments = GT_NEW_ARRAY(gt_mapping, s->nworkers + 1);
  for (size_t r = 0; r <= s->nworkers; r++)
    if (error == 0) error = offers[r].error;
  gt_failpoint("shared.named");
  for (size_t r = 0; error == 0 && r <= s->nworkers; r++)
    error = map_offer(&s->segments[r], &offers[r]);
  GT_MPI(MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_INT, MPI_MAX, region));
  if (own.error == 0) shm_unlink(own.name);
  if (error != 0) {
    if (rank == 0) say_why(s, offers, error);
    unmap(s);
  }
  gt_free(offers);
}

void gt_shared_open(gt_shared *s, MPI_Comm region, const gt_plane_size *n) {
  int rank, size;
  GT_MPI(MPI_Comm_rank(region, &rank));
  GT_MPI(MPI_Comm_size(region, &size));
  *s = (gt_shared){.nworkers = (size_t)size - 1, .n = *n};
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
  if (s->segments) unmap(s);
}

void gt_shared_sync(const gt_shared *s) {
  if (s->segments) atomic_thread_fence(memory_order_seq_cst);
}
