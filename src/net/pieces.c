/* Arrays of floats as MPI messages with counts that fit in an int. */
#include "internal.h"

#include <string.h>

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

/* ---- parts ----------------------------------------------------------------------------------- */

gt_plane_part gt_part_of(const gt_plane_size *n, size_t worker, gt_plane_range whole[2]) {
  if (n->parts) return n->parts[worker];
  whole[0] = (gt_plane_range){0, n->nparams};
  whole[1] = (gt_plane_range){0, n->nbuffers};
  return (gt_plane_part){&whole[0], &whole[1], 1, 1};
}

static size_t pieces_of(const gt_plane_range *ranges, size_t n) {
  size_t sum = 0;
  for (size_t i = 0; i < n; i++) sum += gt_pieces(ranges[i].count);
  return sum;
}

size_t gt_part_pieces(const gt_plane_part *part) {
  return pieces_of(part->params, part->nparams) + pieces_of(part->buffers, part->nbuffers);
}

typedef void gt_pieces_fn(float *data, size_t nfloats, int rank, int tag, MPI_Comm comm,
                          MPI_Request *requests);

static void send_pieces(float *data, size_t nfloats, int rank, int tag, MPI_Comm comm,
                        MPI_Request *requests) {
  gt_pieces_send(data, nfloats, rank, tag, comm, requests);
}

static MPI_Request *move(gt_pieces_fn *how, const gt_plane_range *ranges, size_t n, float *data,
                         int rank, int tag, MPI_Comm comm, MPI_Request *requests) {
  for (size_t i = 0; i < n; i++) {
    if (ranges[i].count == 0) continue;
    how(data + ranges[i].offset, ranges[i].count, rank, tag, comm, requests);
    requests += gt_pieces(ranges[i].count);
  }
  return requests;
}

void gt_part_send(const gt_plane_part *part, const float *params, const float *buffers, int rank,
                  int tag, MPI_Comm comm, MPI_Request *requests) {
  float *a = (float *)(uintptr_t)params, *b = (float *)(uintptr_t)buffers;
  requests = move(send_pieces, part->params, part->nparams, a, rank, tag, comm, requests);
  move(send_pieces, part->buffers, part->nbuffers, b, rank, tag, comm, requests);
}

void gt_part_receive(const gt_plane_part *part, float *params, float *buffers, int rank, int tag,
                     MPI_Comm comm, MPI_Request *requests) {
  requests =
      move(gt_pieces_receive, part->params, part->nparams, params, rank, tag, comm, requests);
  move(gt_pieces_receive, part->buffers, part->nbuffers, buffers, rank, tag, comm, requests);
}

static void copy(const gt_plane_range *ranges, size_t n, float *to, const float *from) {
  for (size_t i = 0; i < n; i++)
    if (ranges[i].count > 0)
      memcpy(to + ranges[i].offset, from + ranges[i].offset, ranges[i].count * sizeof *to);
}

void gt_part_copy(const gt_plane_part *part, float *params, float *buffers,
                  const float *from_params, const float *from_buffers) {
  copy(part->params, part->nparams, params, from_params);
  copy(part->buffers, part->nbuffers, buffers, from_buffers);
}
