/* Arrays and passes of a pipeline as messages in the local plane, with counts that fit in an int;
   checks of orders. */
#include <string.h>

#include "internal.h"

static int piece_count(size_t nfloats, size_t offset) {
  size_t left = nfloats - offset;
  return (int)(left < GT_PIECE_FLOATS ? left : GT_PIECE_FLOATS);
}

/* Start sending or receiving the pieces of an array; requests has room for gt_pieces(nfloats). */
static void pieces_send(const float *data, size_t nfloats, int rank, int tag, MPI_Comm comm,
                        MPI_Request *requests) {
  for (size_t at = 0; at < nfloats; at += GT_PIECE_FLOATS)
    GT_MPI(MPI_Isend(data + at, piece_count(nfloats, at), MPI_FLOAT, rank, tag, comm, requests++));
}

static void pieces_receive(float *data, size_t nfloats, int rank, int tag, MPI_Comm comm,
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

typedef void pieces_fn(float *data, size_t nfloats, int rank, int tag, MPI_Comm comm,
                       MPI_Request *requests);

static void send_pieces(float *data, size_t nfloats, int rank, int tag, MPI_Comm comm,
                        MPI_Request *requests) {
  pieces_send(data, nfloats, rank, tag, comm, requests);
}

static MPI_Request *move(pieces_fn *how, const gt_plane_range *ranges, size_t n, float *data,
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
  requests = move(pieces_receive, part->params, part->nparams, params, rank, tag, comm, requests);
  move(pieces_receive, part->buffers, part->nbuffers, buffers, rank, tag, comm, requests);
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

/* ---- passes ---------------------------------------------------------------------------------- */

typedef unsigned long long ull;

static bool within(uint64_t at, uint64_t bytes, size_t nactivations) {
  return at <= nactivations && bytes <= nactivations - at;
}

static gt_status check_bytes(const char *what, uint64_t bytes) {
  if (bytes <= GT_PASS_BYTES_MAX) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "%s of a pass has %llu bytes; expected at most %llu", what,
                 (ull)bytes, (ull)GT_PASS_BYTES_MAX);
}

gt_status gt_output_check(uint64_t out, uint64_t out_bytes, size_t nactivations) {
  GT_TRY(check_bytes("the output", out_bytes));
  if (within(out, out_bytes, nactivations)) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT,
                 "the output of a pass has %llu bytes at %llu; the activation area has %zu",
                 (ull)out_bytes, (ull)out, nactivations);
}

static gt_status check_pieces(const gt_pass_msg *pass, size_t nworkers, size_t nactivations) {
  uint64_t all = 0;
  if (pass->npieces > GT_PASS_PIECES)
    return GT_FAIL(GT_ERR_FAULT, "a pass has %u pieces; expected at most %d", pass->npieces,
                   GT_PASS_PIECES);
  for (size_t i = 0; i < pass->npieces; i++) {
    const gt_pass_piece *p = &pass->pieces[i];
    GT_TRY(check_bytes("a piece", p->bytes));
    if (p->worker >= nworkers || !within(p->from, p->bytes, nactivations))
      return GT_FAIL(GT_ERR_FAULT,
                     "a pass reads %llu bytes at %llu in the activation area of worker %u; %zu "
                     "workers have %zu bytes each",
                     (ull)p->bytes, (ull)p->from, p->worker, nworkers, nactivations);
    all += p->bytes;
  }
  if (all <= nactivations) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT,
                 "the pieces of a pass have %llu bytes together; expected at most %zu", (ull)all,
                 nactivations);
}

gt_status gt_order_check(const gt_order_msg *order, size_t nworkers, size_t nactivations) {
  if (order->kind < GT_ORDER_TRAIN || order->kind > GT_ORDER_PASS)
    return GT_FAIL(GT_ERR_FAULT, "an order has unknown kind %u", order->kind);
  if (order->kind != GT_ORDER_PASS) return GT_OK;
  GT_TRY(gt_output_check(order->pass.out, order->pass.out_bytes, nactivations));
  return check_pieces(&order->pass, nworkers, nactivations);
}

void gt_pass_send(const gt_pass_msg *pass, uint8_t *const *areas, int rank, MPI_Comm comm,
                  MPI_Request *requests) {
  for (size_t i = 0; i < pass->npieces; i++) {
    const gt_pass_piece *p = &pass->pieces[i];
    if (p->bytes)
      GT_MPI(MPI_Isend(areas[p->worker] + p->from, (int)p->bytes, MPI_BYTE, rank, GT_TAG_PIECES,
                       comm, &requests[i]));
  }
}

void gt_pass_receive(const gt_pass_msg *pass, uint8_t *staging, MPI_Comm comm,
                     MPI_Request *requests) {
  for (size_t i = 0; i < pass->npieces; i++) {
    const gt_pass_piece *p = &pass->pieces[i];
    if (p->bytes)
      GT_MPI(MPI_Irecv(staging + gt_pass_staged_at(pass, i), (int)p->bytes, MPI_BYTE, 0,
                       GT_TAG_PIECES, comm, &requests[i]));
  }
}

size_t gt_pass_staging(size_t nactivations) {
  return gt_padded_bytes(nactivations) + GT_PASS_PIECES * gt_padded_bytes(1);
}

size_t gt_pass_staged_at(const gt_pass_msg *pass, size_t i) {
  size_t at = 0;
  for (size_t k = 0; k < i; k++) at += gt_padded_bytes(pass->pieces[k].bytes);
  return at;
}
