/* A group whose messages are collectives of an MPI communicator. */
#include "internal.h"

typedef struct {
  gt_peers peers;
  MPI_Comm comm;
  bool owned;
} group;

/* MPI counts are int. */
static int count_of(size_t bytes) {
  if (bytes > INT32_MAX) gt_bug("%zu bytes are more than a message holds", bytes);
  return (int)bytes;
}

static void gather(gt_peers *peers, const void *own, size_t bytes, void *all,
                   const gt_peers_wait *wait) {
  const int count = count_of(bytes);
  MPI_Request request;
  GT_MPI(MPI_Iallgather(own, count, MPI_BYTE, all, count, MPI_BYTE, gt_peers_mpi(peers), &request));
  gt_wait_requests(&request, 1, wait);
}

static void share(gt_peers *peers, size_t from, void *data, size_t bytes,
                  const gt_peers_wait *wait) {
  MPI_Request request;
  GT_MPI(MPI_Ibcast(data, count_of(bytes), MPI_BYTE, (int)from, gt_peers_mpi(peers), &request));
  gt_wait_requests(&request, 1, wait);
}

static void close_group(gt_peers *peers) {
  group *g = (group *)peers;
  if (g->owned) GT_MPI(MPI_Comm_free(&g->comm));
  gt_free(g);
}

static const gt_peers_ops by_mpi = {.gather = gather, .share = share, .close = close_group};

gt_peers *gt_peers_of_mpi(MPI_Comm comm, bool owned) {
  int rank, size;
  group *g = GT_NEW(group);
  GT_MPI(MPI_Comm_rank(comm, &rank));
  GT_MPI(MPI_Comm_size(comm, &size));
  *g = (group){.peers = {&by_mpi, (size_t)rank, (size_t)size}, .comm = comm, .owned = owned};
  return &g->peers;
}

MPI_Comm gt_peers_mpi(const gt_peers *peers) {
  if (peers->ops != &by_mpi) gt_bug("MPI is called for a group that has no communicator");
  return ((const group *)peers)->comm;
}
