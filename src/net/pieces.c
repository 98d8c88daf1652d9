/* Arrays of floats as MPI messages with counts that fit in an int. */
#include "internal.h"

static int piece_count(size_t nfloats, size_t offset) {
  size_t left = nfloats - offset;
  return (int)(left < GT_PIECE_FLOATS ? left : GT_PIECE_FLOATS);
}

void gt_pieces_send(const float *data, size_t nfloats, int rank, int tag, MPI_Comm comm,
                    MPI_Request *requests) {
  for (size_t at = 0; at < nfloats; at += GT_PIECE_FLOATS)
    GT_MPI(MPI_Isend(data + at, piece_count(nfloats, at), MPI_FLOAT, rank, tag, comm, requests++));
}

void gt_pieces_receive(float *data, size_t nfloats, int rank, int tag, MPI_Comm comm,
                       MPI_Request *requests) {
  for (size_t at = 0; at < nfloats; at += GT_PIECE_FLOATS)
    GT_MPI(MPI_Irecv(data + at, piece_count(nfloats, at), MPI_FLOAT, rank, tag, comm, requests++));
}
