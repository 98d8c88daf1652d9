/* What the rooms of net share: patience, host lists, and messages in pieces. */
#ifndef GT_NET_INSIDE_H
#define GT_NET_INSIDE_H

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
  size_t nparams, nbuffers;
} gt_shared;

typedef struct {
  float *grads, *params, *buffers;
} gt_segment;

/* Both collective over region. */
void gt_shared_open(gt_shared *s, MPI_Comm region, size_t nparams, size_t nbuffers);
void gt_shared_close(gt_shared *s);
/* The arrays of a worker rank (1 or more), in this process's addresses. */
gt_segment gt_shared_segment(const gt_shared *s, int rank);
/* What this process wrote is visible to the others before, and theirs to it after, a message that follows or came. */
void gt_shared_sync(const gt_shared *s);

/* Tags of the local plane. */
enum { GT_TAG_PUSH = 1, GT_TAG_GRADS, GT_TAG_ORDER, GT_TAG_PARAMS };

#endif
