/* The internal interface of net: deadlines, the watchdog, host lists, and messages in pieces. */
#pragma once

#include <stdatomic.h>

#include "geotrain/net.h"
#include "geotrain/net_mpi.h"

/* ---- deadlines ------------------------------------------------------------------------------- */

/* A deadline that counts only time in which this process runs: time in which it was stopped
   (SIGSTOP) does not count. */
typedef struct {
  gt_ns limit, waited, seen;
} gt_patience;

void gt_patience_start(gt_patience *p, double limit_s);
/* Adds the time since the last call; true if the limit is exceeded. */
bool gt_patience_over(gt_patience *p);
/* Returns the longest sleep after the time waited so far: short while an answer is likely. */
gt_ns gt_patience_cap(const gt_patience *p);

/* Does gt_wait_all. */
void gt_wait_requests(MPI_Request *requests, int n, const gt_peers_wait *wait);

/* ---- launch ---------------------------------------------------------------------------------- */

/* Does gt_launch_check for an MPI library of this name; reads_pmi: it supports PMI-1 or PMI-2 as
   well as PMIx. */
gt_status gt_launch_fits(const char *library, bool reads_pmi);
/* True if srun started this process directly, without an mpirun inside the allocation. */
bool gt_launch_by_srun(void);
/* Returns the command that starts this many ranks with the launcher that started this process:
   "srun -n 4", "mpirun -n 4"; in buf.  Local. */
char *gt_launch_advice(char *buf, size_t size, int ranks);
/* Returns the name and version of this program's MPI library, in buf. */
char *gt_launch_library(char *buf, size_t size);
/* Returns GT_ERR_JOB: `tasks` processes were started, each a world of its own; the text says how
   to start one world of the `needed` ranks.  regions: "east 2, west 2"; library: as
   gt_launch_library. */
gt_status gt_launch_apart(const char *library, int tasks, int needed, const char *regions);
/* ---- maps ------------------------------------------------------------------------------------ */

/* The parts of a map that need no communication.  gt_roles_own finds this rank's own region
   (GEOTRAIN_REGION, else host lists); -1: unknown. */
gt_status gt_roles_own(const gt_region_plan *plan, size_t nregions, int *region);
/* Checks that the world has the size of the plan. */
gt_status gt_roles_fits(const gt_region_plan *plan, size_t nregions, int world_size);
/* Builds the map from the own regions of all ranks: contiguous blocks if no rank has one.  Checks
   that every region has the ranks of the plan. */
gt_status gt_roles_fill(const gt_region_plan *plan, size_t nregions, int *map, int size);

/* ---- reachability ---------------------------------------------------------------------------- */

#define GT_REACH_TEXT 2048

/* reach_tcp.c: tests plain TCP connections between the hosts of the job; addresses are exchanged
   through the launcher's name service (MPI_Publish_name).  own: this rank; port and addresses are
   filled in.  ranks: on rank 0, space for all ranks, filled in for those that have answered.
   False: some host cannot be reached; on rank 0 `text` names them, one per line.  *tested: the
   launcher has such a service, and there was more than one host. */
bool gt_reach_tcp(gt_reach_rank *own, gt_reach_rank *ranks, const gt_peers *world,
                  const gt_region_plan *plan, size_t nregions, double limit_s,
                  char text[GT_REACH_TEXT], bool *tested);
/* Writes "region eu (rank 2 on hostb)", without the region if it is unknown. */
void gt_reach_name(char *buf, size_t size, const gt_reach_rank *rank, int number,
                   const gt_region_plan *plan, size_t nregions);

/* ---- host lists ------------------------------------------------------------------------------ */

/* Sets *found: true if `host` is in the list `text`: names separated by commas, plain or in Slurm's
   compressed form (node[01-16,18]).  Only the parts before the first dot are compared if one name
   has no domain.  GT_ERR_JOB if the text is malformed. */
gt_status gt_hosts_contain(const char *text, const char *host, bool *found);

/* ---- messages in pieces ---------------------------------------------------------------------- */

/* MPI counts are int, so an array of floats is sent in pieces of at most this many. */
#define GT_PIECE_FLOATS ((size_t)1 << 28)
static inline size_t gt_pieces(size_t nfloats) {
  return (nfloats + GT_PIECE_FLOATS - 1) / GT_PIECE_FLOATS;
}
/* Returns the part of a worker (from 0); whole: space for its ranges if all workers have
   everything. */
gt_plane_part gt_part_of(const gt_plane_size *n, size_t worker, gt_plane_range whole[2]);
/* Parameters or gradients, then buffers, of a part: count the messages; start sending or receiving
   them; copy them between two pairs of arrays. */
size_t gt_part_pieces(const gt_plane_part *part);
void gt_part_send(const gt_plane_part *part, const float *params, const float *buffers, int rank,
                  int tag, MPI_Comm comm, MPI_Request *requests);
void gt_part_receive(const gt_plane_part *part, float *params, float *buffers, int rank, int tag,
                     MPI_Comm comm, MPI_Request *requests);
void gt_part_copy(const gt_plane_part *part, float *params, float *buffers,
                  const float *from_params, const float *from_buffers);

/* ---- shared memory --------------------------------------------------------------------------- */

#define GT_LINE_FLOATS ((size_t)16) /* 64 bytes */
static inline size_t gt_padded(size_t nfloats) {
  return (nfloats + GT_LINE_FLOATS - 1) / GT_LINE_FLOATS * GT_LINE_FLOATS;
}
static inline size_t gt_padded_bytes(size_t nbytes) {
  return (nbytes + 63) / 64 * 64;
}

/* segments: those of all ranks, mapped; NULL if the region spans several nodes or the node has too
   little shared memory: arrays are then sent as messages. */
typedef struct {
  char *segments;
  size_t bytes; /* of all segments */
  size_t nworkers;
  gt_plane_size n;
} gt_shared;

/* A wake-up bell, one per rank, in shared memory.  A rank that waits for a message sleeps on its
   own bell; the sender of the message rings it.  NULL: memory is not shared, and sleeps are not
   ended early. */
typedef struct {
  _Alignas(64) _Atomic uint32_t rings;
} gt_bell;

void gt_bell_ring(gt_bell *bell);
/* Returns the state of the bell; call it before testing for messages. */
uint32_t gt_bell_heard(gt_bell *bell);
/* Sleeps ns, or until a ring after `heard`. */
void gt_bell_sleep(gt_bell *bell, uint32_t heard, gt_ns ns);

/* Arrays of one worker. */
typedef struct {
  float *grads, *params, *buffers, *scores;
  uint8_t *activations; /* 64-byte aligned */
} gt_segment;

/* Data common to the workers, in the PS's segment.  Few ranks write each cache line, to avoid false
   sharing. */
typedef struct {
  /* step << GT_CHUNK_BITS | number of final chunks, counted from the end */
  _Alignas(64) _Atomic uint64_t final;
  _Atomic int64_t samples; /* of the batch, written before `final` */
} gt_announcement;
typedef struct {
  /* step << 1 | 1 while a rank computes its mean, step << 1 when the mean is complete */
  _Alignas(64) _Atomic uint64_t state;
} gt_chunk;
typedef struct {
  gt_announcement *announced; /* one per worker */
  gt_chunk *chunks;
  float *mean, *params;
} gt_common;

#define GT_CHUNK_FLOATS ((size_t)1 << 16)
#define GT_CHUNK_BITS   24
static inline size_t gt_chunks(size_t nparams) {
  return (nparams + GT_CHUNK_FLOATS - 1) / GT_CHUNK_FLOATS;
}

/* Opens the segments and reserves the memory that the ranks use, so that no later access fails: of
   gradients and parameters only the ranges of size->parts.  Collective over region. */
void gt_shared_open(gt_shared *s, MPI_Comm region, const gt_plane_size *size);
void gt_shared_close(gt_shared *s); /* local */
/* Returns the arrays of a worker rank (1 or more), at addresses of this process. */
gt_segment gt_shared_segment(const gt_shared *s, int rank);
/* Returns the bell of a rank, or NULL. */
gt_bell *gt_shared_bell(const gt_shared *s, int rank);
/* Returns the snapshot in the PS's segment; only if memory is shared. */
gt_plane_snapshot gt_shared_snapshot(const gt_shared *s);
/* Returns the common data.  All NULL if memory is not shared; with one worker all NULL except
   params. */
gt_common gt_shared_common(const gt_shared *s);
/* Makes this process's writes visible to the others before a message is sent, and theirs to this
   process after a message has arrived. */
void gt_shared_sync(const gt_shared *s);

/* ---- the mean of a step ---------------------------------------------------------------------- */

/* One rank's view of the workers' mean of a step's gradients, computed chunk by chunk from the end.
   A chunk that is final on all workers is computed by the worker it is assigned to, or at the end
   by the PS; the rank that claims it first computes it.  A claimed chunk stays with its claimant,
   in later steps too. */
typedef struct {
  gt_common common;
  size_t nparams, nchunks, self; /* self: index of this worker; nworkers on the PS */
  const float **grads;           /* one per worker: all its gradients */
  const float **parts;           /* one per worker: its gradients of a chunk */
  int64_t *samples;
  uint64_t step; /* 0: no step with a mean */
  size_t workers;
  size_t left; /* this worker's chunks below this number are still to be done */
} gt_mean;

void gt_mean_open(gt_mean *m, const gt_shared *s, size_t self);
void gt_mean_close(gt_mean *m);
/* Starts the step of this order, unless it has already begun. */
void gt_mean_begin(gt_mean *m, const gt_order_msg *order);
/* Publishes that this worker's gradients [first, nparams) are final. */
void gt_mean_announce(gt_mean *m, size_t first, int64_t samples);
/* Computes this worker's chunks that are ready now; true if there were any. */
bool gt_mean_work(gt_mean *m);
/* Computes, on the PS, the chunks that no rank has claimed.  NULL: not all workers have published
   all gradients, or a claimant did not finish in time. */
const float *gt_mean_finish(gt_mean *m);

/* ---- passes of a pipeline -------------------------------------------------------------------- */

/* Checks that an order can be carried out in a region of this size; GT_ERR_FAULT: its kind is
   unknown, or its pass does not fit the activation areas. */
gt_status gt_order_check(const gt_order_msg *order, size_t nworkers, size_t nactivations);
/* Does the same for the position of an output. */
gt_status gt_output_check(uint64_t out, uint64_t out_bytes, size_t nactivations);
/* Without shared memory the pieces of a pass are messages.  Start sending them from the areas of
   all workers; start receiving them one after the other.  requests has room for GT_PASS_PIECES. */
void gt_pass_send(const gt_pass_msg *pass, uint8_t *const *areas, int rank, MPI_Comm comm,
                  MPI_Request *requests);
void gt_pass_receive(const gt_pass_msg *pass, uint8_t *staging, MPI_Comm comm,
                     MPI_Request *requests);
/* Return the bytes of the receive buffer for any pass that fits, and the position of piece i in
   it. */
size_t gt_pass_staging(size_t nactivations);
size_t gt_pass_staged_at(const gt_pass_msg *pass, size_t i);

/* Tags of the local plane. */
enum {
  GT_TAG_PUSH = 1,
  GT_TAG_GRADS,
  GT_TAG_ORDER,
  GT_TAG_PARAMS,
  GT_TAG_SCORES,
  GT_TAG_PIECES,
  GT_TAG_OUTPUT
};
