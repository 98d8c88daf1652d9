/* What the modules of net share: patience, the watchdog, host lists, and messages in pieces. */
#ifndef GEOTRAIN_NET_INTERNAL_H
#define GEOTRAIN_NET_INTERNAL_H

#include <stdatomic.h>

#include "geotrain/net.h"

/* ---- patience --------------------------------------------------------------------------------------------------------- */

/* A deadline that counts only time in which this process ran: after it was stopped and continued, the others get their time again. */
typedef struct {
  gt_ns limit, waited, seen;
} gt_patience;

void gt_patience_start(gt_patience *p, double limit_s);
/* Counts the time since the last call; true when the limit is passed. */
bool gt_patience_over(gt_patience *p);
/* How long to sleep at most after having waited that long: short while an answer is likely. */
gt_ns gt_patience_cap(const gt_patience *p);

/* ---- the watchdog ---------------------------------------------------------------------------- */

/* While a call that blocks inside MPI runs: when `limit_s` passes, one line "waited N s in NAME"
   and the process ends with 5. */
void gt_watch_begin(const char *name, double limit_s);
void gt_watch_end(void);

/* ---- launch ------------------------------------------------------------------------------------------------------------ */

/* gt_launch_check of an MPI library of this name; reads_pmi: it understands PMI-1 or PMI-2 beside PMIx. */
gt_status gt_launch_fits(const char *library, bool reads_pmi);
/* srun started this process itself, and no mpirun inside the allocation. */
bool gt_launch_by_srun(void);
/* How many processes the launcher says it started; 0: it does not say.  Local. */
int gt_launch_tasks(void);
/* How to start so many ranks by the launcher that started this one: "srun -n 4", "mpirun -n 4"; returns buf.  Local. */
char *gt_launch_advice(char *buf, size_t size, int ranks);
/* A rank that Slurm's step daemon started ends when that is killed.  Local; Linux. */
void gt_launch_follow(void);

/* ---- maps -------------------------------------------------------------------------------------------------------------- */

/* The parts of a map that need no communication.  This rank's own opinion of its region (GEOTRAIN_REGION, else host lists); -1: it has none. */
gt_status gt_roles_own(const gt_region_plan *plan, size_t nregions, int *region);
/* The world is of the size that the plan needs. */
gt_status gt_roles_fits(const gt_region_plan *plan, size_t nregions, int world_size);
/* From the opinions of all ranks the map: blocks where nobody has one.  Every region has the ranks that the plan says. */
gt_status gt_roles_fill(const gt_region_plan *plan, size_t nregions, int *map, int size);

/* ---- reachability ------------------------------------------------------------------------------------------------------ */

#define GT_REACH_TEXT 2048

/* reach_tcp.c: plain TCP connections between the hosts of the job, addresses exchanged by the launcher's name service (MPI_Publish_name).  own: this rank, port and addresses are
   filled in; ranks: on rank 0 room for all, filled as far as they were heard of.  False: some host cannot be reached; `text` says on rank 0 which, a line each.
   *tested: the launcher has such a service, and there was more than one host. */
bool gt_reach_tcp(gt_reach_rank *own, gt_reach_rank *ranks, const gt_region_plan *plan, size_t nregions, double limit_s, char text[GT_REACH_TEXT],
                  bool *tested);
/* "region eu (rank 2 on hostb)", or without the region where it is not known. */
void gt_reach_name(char *buf, size_t size, const gt_reach_rank *rank, int number, const gt_region_plan *plan, size_t nregions);

/* ---- host lists -------------------------------------------------------------------------------------------------------- */

/* Whether `host` is one of the hosts that `text` names: names separated by commas, plain or in Slurm's compressed form (node[01-16,18]).  Names are
   compared up to the first dot where one of them has no domain.  GT_ERR_JOB when the text is malformed. */
gt_status gt_hosts_contain(const char *text, const char *host, bool *found);

/* ---- messages in pieces ------------------------------------------------------------------------------------------------ */

/* MPI counts are int: an array of floats travels as pieces of at most this many. */
#define GT_PIECE_FLOATS ((size_t)1 << 28)
static inline size_t gt_pieces(size_t nfloats) {
  return (nfloats + GT_PIECE_FLOATS - 1) / GT_PIECE_FLOATS;
}
/* Start the pieces of an array; requests has room for gt_pieces(nfloats). */
void gt_pieces_send(const float *data, size_t nfloats, int rank, int tag, MPI_Comm comm, MPI_Request *requests);
void gt_pieces_receive(float *data, size_t nfloats, int rank, int tag, MPI_Comm comm, MPI_Request *requests);

/* ---- shared memory ----------------------------------------------------------------------------------------------------- */

#define GT_LINE_FLOATS ((size_t)16) /* 64 bytes */
static inline size_t gt_padded(size_t nfloats) {
  return (nfloats + GT_LINE_FLOATS - 1) / GT_LINE_FLOATS * GT_LINE_FLOATS;
}

/* window MPI_WIN_NULL: the region spans nodes, and arrays travel as messages. */
typedef struct {
  MPI_Win window;
  size_t nworkers;
  gt_plane_size n;
} gt_shared;

/* In shared memory, one a rank: who waits for a message sleeps on its own; who has sent one rings it.  NULL: memory is not shared, and sleeps end by themselves. */
typedef struct {
  _Alignas(64) _Atomic uint32_t rings;
} gt_bell;

void gt_bell_ring(gt_bell *bell);
/* To be read before looking for what the ring tells of. */
uint32_t gt_bell_heard(gt_bell *bell);
/* Sleeps ns, or until a ring after `heard`. */
void gt_bell_sleep(gt_bell *bell, uint32_t heard, gt_ns ns);

/* What a worker has of its own. */
typedef struct {
  float *grads, *params, *buffers, *scores;
} gt_segment;

/* What workers have in common, in the PS's segment; each line is written by few, so that none waits for another's cache. */
typedef struct {
  _Alignas(64) _Atomic uint64_t final; /* step << GT_CHUNK_BITS | how many of its chunks are final, counted from the end */
  _Atomic int64_t samples;             /* of the batch, told before */
} gt_announcement;
typedef struct {
  _Alignas(64) _Atomic uint64_t state; /* step << 1 | 1 while somebody adds it, step << 1 when its mean is there */
} gt_chunk;
typedef struct {
  gt_announcement *announced; /* a worker */
  gt_chunk *chunks;
  float *mean, *params;
} gt_common;

#define GT_CHUNK_FLOATS ((size_t)1 << 16)
#define GT_CHUNK_BITS   24
static inline size_t gt_chunks(size_t nparams) {
  return (nparams + GT_CHUNK_FLOATS - 1) / GT_CHUNK_FLOATS;
}

/* Both collective over region. */
void gt_shared_open(gt_shared *s, MPI_Comm region, const gt_plane_size *size);
void gt_shared_close(gt_shared *s, double limit_s);
/* The arrays of a worker rank (1 or more), in this process's addresses. */
gt_segment gt_shared_segment(const gt_shared *s, int rank);
/* The bell of a rank, or NULL. */
gt_bell *gt_shared_bell(const gt_shared *s, int rank);
/* In the PS's segment; only where memory is shared. */
gt_plane_snapshot gt_shared_snapshot(const gt_shared *s);
/* All NULL where memory is not shared; with one worker all but params. */
gt_common gt_shared_common(const gt_shared *s);
/* What this process wrote is visible to the others before, and theirs to it after, a message that follows or came. */
void gt_shared_sync(const gt_shared *s);

/* ---- the mean of a step ------------------------------------------------------------------------------------------------- */

/* One rank's view of how the workers of a step form the mean of their gradients, chunk by chunk from the end: a chunk that is final at all of them is added by the
   worker that it falls to, or at the end by the PS; whoever claims it first does it.  A chunk that was claimed is left to its claimant, whatever the step. */
typedef struct {
  gt_common common;
  size_t nparams, nchunks, self; /* self: number of this worker; of the PS: nworkers */
  const float **grads;           /* a worker: all of them */
  const float **parts;           /* of a chunk */
  int64_t *samples;
  uint64_t step; /* 0: none that has a mean */
  size_t workers;
  size_t left; /* of this worker's chunks those below are still to do */
} gt_mean;

void gt_mean_open(gt_mean *m, const gt_shared *s, size_t self);
void gt_mean_close(gt_mean *m);
/* An order begins this step, or belongs to it. */
void gt_mean_begin(gt_mean *m, const gt_order_msg *order);
/* This worker's gradients [first, nparams) are final. */
void gt_mean_announce(gt_mean *m, size_t first, int64_t samples);
/* Adds this worker's chunks that can be added now; true: there were some. */
bool gt_mean_work(gt_mean *m);
/* For the PS: adds what nobody has added.  NULL: not all workers have announced everything, or one that claimed a chunk does not go on. */
const float *gt_mean_finish(gt_mean *m);

/* Tags of the local plane. */
enum { GT_TAG_PUSH = 1, GT_TAG_GRADS, GT_TAG_ORDER, GT_TAG_PARAMS, GT_TAG_SCORES };

#endif
