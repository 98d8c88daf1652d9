/* The worker's side of the local plane: pushes what is done, waits for what to do next. */
#include "inside.h"

#define CLOSE_LIMIT_S 120.0

struct gt_plane_worker {
  MPI_Comm comm;
  gt_shared shared;
  gt_bell *bell, *ps_bell; /* this worker's; the PS's */
  gt_segment arrays;       /* in shared memory, or this process's own */
  float *params;           /* of the last order: there, or common to the workers */
  gt_mean mean;
  size_t nparams, nbuffers;
  gt_push_msg push, signal;
  gt_order_msg order;
  bool signal_sent;
  int npushes, nfloats;        /* requests */
  MPI_Request *push_requests;  /* header, pieces of gradients and buffers */
  MPI_Request *float_requests; /* pieces of parameters and buffers */
  MPI_Request signal_request;
};

static MPI_Request *null_requests(int n) {
  MPI_Request *requests = GT_NEW_ARRAY(MPI_Request, (size_t)n + 1);
  for (int i = 0; i <= n; i++) requests[i] = MPI_REQUEST_NULL;
  return requests;
}

static gt_segment own_arrays(size_t nparams, size_t nbuffers) {
  return (gt_segment){.grads = GT_NEW_ARRAY(float, nparams), .params = GT_NEW_ARRAY(float, nparams), .buffers = GT_NEW_ARRAY(float, nbuffers)};
}

gt_plane_worker *gt_plane_worker_create(MPI_Comm region, size_t nparams, size_t nbuffers) {
  gt_plane_worker *plane = GT_NEW(gt_plane_worker);
  int rank;
  GT_MPI(MPI_Comm_rank(region, &rank));
  plane->comm = region;
  gt_shared_open(&plane->shared, region, nparams, nbuffers);
  plane->bell = gt_shared_bell(&plane->shared, rank);
  plane->ps_bell = gt_shared_bell(&plane->shared, 0);
  plane->arrays = plane->shared.window == MPI_WIN_NULL ? own_arrays(nparams, nbuffers) : gt_shared_segment(&plane->shared, rank);
  plane->nparams = nparams;
  plane->nbuffers = nbuffers;
  plane->params = plane->arrays.params;
  gt_mean_open(&plane->mean, &plane->shared, (size_t)rank - 1);
  plane->npushes = 1 + (int)(gt_pieces(nparams) + gt_pieces(nbuffers));
  plane->nfloats = (int)(gt_pieces(nparams) + gt_pieces(nbuffers));
  plane->push_requests = null_requests(plane->npushes);
  plane->float_requests = null_requests(plane->nfloats);
  plane->signal_request = MPI_REQUEST_NULL;
  return plane;
}

void gt_plane_worker_close(gt_plane_worker *plane) {
  if (!plane) return;
  gt_wait_all(&plane->signal_request, 1, "the PS to take a signal", CLOSE_LIMIT_S, NULL, NULL);
  gt_wait_all(plane->push_requests, plane->npushes, "the PS to take the last push", CLOSE_LIMIT_S, NULL, NULL);
  if (plane->shared.window == MPI_WIN_NULL) {
    gt_free(plane->arrays.grads);
    gt_free(plane->arrays.params);
    gt_free(plane->arrays.buffers);
  }
  gt_mean_close(&plane->mean);
  gt_shared_close(&plane->shared);
  gt_free(plane->push_requests);
  gt_free(plane->float_requests);
  gt_free(plane);
}

float *gt_plane_worker_params(const gt_plane_worker *plane) {
  return plane->params;
}

float *gt_plane_worker_buffers(const gt_plane_worker *plane) {
  return plane->arrays.buffers;
}

float *gt_plane_worker_grads(const gt_plane_worker *plane) {
  return plane->arrays.grads;
}

void gt_plane_worker_gradients(gt_plane_worker *plane, size_t first, int64_t samples) {
  gt_mean_announce(&plane->mean, first, samples);
  gt_mean_work(&plane->mean);
}

void gt_plane_worker_push(gt_plane_worker *plane, const gt_push_msg *push) {
  bool messages = push->kind == GT_PUSH_GRADIENT && plane->shared.window == MPI_WIN_NULL;
  plane->push = *push;
  if (push->kind == GT_PUSH_GRADIENT) gt_mean_announce(&plane->mean, 0, push->samples);
  gt_shared_sync(&plane->shared);
  GT_MPI(MPI_Isend(&plane->push, (int)sizeof plane->push, MPI_BYTE, 0, GT_TAG_PUSH, plane->comm, &plane->push_requests[0]));
  gt_bell_ring(plane->ps_bell);
  if (!messages) return;
  gt_pieces_send(plane->arrays.grads, plane->nparams, 0, GT_TAG_GRADS, plane->comm, &plane->push_requests[1]);
  gt_pieces_send(plane->arrays.buffers, plane->nbuffers, 0, GT_TAG_GRADS, plane->comm, &plane->push_requests[1 + gt_pieces(plane->nparams)]);
}

/* Once: the PS hears of a stop signal although this worker has nothing else to say. */
static void push_signal(gt_plane_worker *plane) {
  int number = gt_stop_requested();
  if (number == 0 || plane->signal_sent) return;
  plane->signal_sent = true;
  plane->signal = (gt_push_msg){.kind = GT_PUSH_SIGNAL, .signal = (uint32_t)number};
  GT_MPI(MPI_Isend(&plane->signal, (int)sizeof plane->signal, MPI_BYTE, 0, GT_TAG_PUSH, plane->comm, &plane->signal_request));
  gt_bell_ring(plane->ps_bell);
}

/* Meanwhile this worker's chunks of the mean become final at the others. */
static void wait_order(gt_plane_worker *plane, double limit_s) {
  MPI_Request request;
  GT_MPI(MPI_Irecv(&plane->order, (int)sizeof plane->order, MPI_BYTE, 0, GT_TAG_ORDER, plane->comm, &request));
  gt_backoff backoff = {0};
  gt_patience patience;
  gt_patience_start(&patience, limit_s);
  for (;;) {
    int arrived = 0;
    const uint32_t heard = gt_bell_heard(plane->bell);
    GT_MPI(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE));
    if (arrived) return;
    if (gt_patience_over(&patience)) gt_panic(GT_ERR_LOST, "waited %.0f s for an order from this region's PS", gt_seconds(patience.waited));
    push_signal(plane);
    if (gt_mean_work(&plane->mean)) gt_backoff_reset(&backoff);
    const bool rung = plane->bell && plane->mean.left == 0; /* nothing else to look for */
    gt_bell_sleep(plane->bell, heard, gt_backoff_next(&backoff, rung ? GT_BACKOFF_IDLE : gt_patience_cap(&patience), GT_NEVER));
  }
}

void gt_plane_worker_wait(gt_plane_worker *plane, gt_order_msg *order, double limit_s) {
  do {
    wait_order(plane, limit_s);
  } while (plane->order.kind == GT_ORDER_KEEPALIVE);
  gt_wait_all(plane->push_requests, plane->npushes, "this region's PS to take a push", limit_s, NULL, NULL);
  gt_shared_sync(&plane->shared);
  gt_mean_begin(&plane->mean, &plane->order);
  if (plane->order.with_params && plane->shared.window != MPI_WIN_NULL)
    plane->params = plane->order.common ? plane->mean.common.params : plane->arrays.params;
  if (plane->order.with_params && plane->shared.window == MPI_WIN_NULL) {
    gt_pieces_receive(plane->arrays.params, plane->nparams, 0, GT_TAG_PARAMS, plane->comm, plane->float_requests);
    gt_pieces_receive(plane->arrays.buffers, plane->nbuffers, 0, GT_TAG_PARAMS, plane->comm, plane->float_requests + gt_pieces(plane->nparams));
    gt_wait_all(plane->float_requests, plane->nfloats, "the parameters from this region's PS", limit_s, NULL, NULL);
  }
  *order = plane->order;
}

/* A probe that finds nothing lets MPI move on whatever is under way. */
void gt_plane_worker_progress(void *context) {
  gt_plane_worker *plane = context;
  gt_mean_work(&plane->mean);
  if (plane->shared.window != MPI_WIN_NULL) return; /* nothing is under way */
  int flag;
  GT_MPI(MPI_Iprobe(0, GT_TAG_ORDER, plane->comm, &flag, MPI_STATUS_IGNORE));
}
