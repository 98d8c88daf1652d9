/* The worker side of the local plane: pushes results, waits for orders. */
#include "internal.h"

struct gt_plane_worker {
  MPI_Comm comm;
  gt_shared shared;
  gt_bell *bell, *ps_bell; /* this worker's; the PS's */
  gt_segment arrays;       /* in shared memory, or private */
  /* of the last order with parameters: own arrays, common parameters or snapshot */
  float *params, *buffers;
  uint8_t **areas;  /* activation areas of all workers, if memory is shared; otherwise NULL */
  uint8_t *staging; /* otherwise: receive buffer of pieces */
  gt_mean mean;
  gt_plane_part part; /* this worker's part */
  gt_plane_range whole[2];
  gt_push_msg push, signal;
  gt_order_msg order;
  bool signal_sent;
  int npushes, nfloats; /* numbers of requests; nfloats: of parameters and buffers */
  /* header and pieces of gradients and buffers, or header and scores, or header and output */
  MPI_Request *push_requests;
  MPI_Request *array_requests; /* pieces of parameters and buffers, then those of a pass */
  MPI_Request signal_request;
};

static MPI_Request *null_requests(int n) {
  MPI_Request *requests = GT_NEW_ARRAY(MPI_Request, (size_t)n + 1);
  for (int i = 0; i <= n; i++) requests[i] = MPI_REQUEST_NULL;
  return requests;
}

static gt_segment own_arrays(const gt_plane_size *n) {
  return (gt_segment){.grads = gt_reserve(n->nparams, sizeof(float)),
                      .params = gt_reserve(n->nparams, sizeof(float)),
                      .buffers = GT_NEW_ARRAY(float, n->nbuffers),
                      .scores = GT_NEW_ARRAY(float, n->nscores),
                      .activations = gt_reserve(n->nactivations, 1)};
}

/* Finds or allocates the areas from which the pieces of passes are read. */
static void open_areas(gt_plane_worker *plane) {
  const gt_shared *s = &plane->shared;
  if (!s->segments) {
    plane->staging = gt_reserve(gt_pass_staging(s->n.nactivations), 1);
    return;
  }
  plane->areas = GT_NEW_ARRAY(uint8_t *, s->nworkers);
  for (size_t w = 0; w < s->nworkers; w++)
    plane->areas[w] = gt_shared_segment(s, (int)w + 1).activations;
}

gt_plane_worker *gt_plane_worker_create(const gt_peers *region, const gt_plane_size *n) {
  gt_plane_worker *plane = GT_NEW(gt_plane_worker);
  const int rank = (int)region->rank;
  plane->comm = gt_peers_mpi(region);
  gt_shared_open(&plane->shared, plane->comm, n);
  plane->bell = gt_shared_bell(&plane->shared, rank);
  plane->ps_bell = gt_shared_bell(&plane->shared, 0);
  plane->arrays =
      plane->shared.segments == NULL ? own_arrays(n) : gt_shared_segment(&plane->shared, rank);
  open_areas(plane);
  plane->part = gt_part_of(n, (size_t)rank - 1, plane->whole);
  plane->params = plane->arrays.params;
  plane->buffers = plane->arrays.buffers;
  gt_mean_open(&plane->mean, &plane->shared, (size_t)rank - 1);
  plane->nfloats = (int)gt_part_pieces(&plane->part);
  plane->npushes = 2 + plane->nfloats; /* a stage without parameters has an output, too */
  plane->push_requests = null_requests(plane->npushes);
  plane->array_requests = null_requests(plane->nfloats + GT_PASS_PIECES);
  plane->signal_request = MPI_REQUEST_NULL;
  return plane;
}

void gt_plane_worker_close(gt_plane_worker *plane, double limit_s) {
  if (!plane) return;
  gt_wait_all(&plane->signal_request, 1, "the PS to take a signal", limit_s, NULL, NULL);
  gt_wait_all(plane->push_requests, plane->npushes, "the PS to take the last push", limit_s, NULL,
              NULL);
  if (!plane->shared.segments) {
    gt_free(plane->arrays.grads);
    gt_free(plane->arrays.params);
    gt_free(plane->arrays.buffers);
    gt_free(plane->arrays.scores);
    gt_free(plane->arrays.activations);
  }
  gt_free(plane->areas);
  gt_free(plane->staging);
  gt_mean_close(&plane->mean);
  gt_shared_close(&plane->shared);
  gt_free(plane->push_requests);
  gt_free(plane->array_requests);
  gt_free(plane);
}

float *gt_plane_worker_params(const gt_plane_worker *plane) {
  return plane->params;
}

float *gt_plane_worker_buffers(const gt_plane_worker *plane) {
  return plane->buffers;
}

float *gt_plane_worker_grads(const gt_plane_worker *plane) {
  return plane->arrays.grads;
}

float *gt_plane_worker_scores(const gt_plane_worker *plane) {
  return plane->arrays.scores;
}

uint8_t *gt_plane_worker_area(const gt_plane_worker *plane) {
  return plane->arrays.activations;
}

const void *gt_plane_worker_piece(const gt_plane_worker *plane, size_t i) {
  const gt_pass_msg *pass = &plane->order.pass;
  if (plane->order.kind != GT_ORDER_PASS || i >= pass->npieces)
    gt_bug("piece %zu of an order of kind %u with %u", i, plane->order.kind, pass->npieces);
  return plane->areas ? plane->areas[pass->pieces[i].worker] + pass->pieces[i].from
                      : plane->staging + gt_pass_staged_at(pass, i);
}

void gt_plane_worker_gradients(gt_plane_worker *plane, size_t first, int64_t samples) {
  gt_mean_announce(&plane->mean, first, samples);
  gt_mean_work(&plane->mean);
}

void gt_plane_worker_push(gt_plane_worker *plane, const gt_push_msg *push) {
  if (push->kind == GT_PUSH_PASS &&
      gt_output_check(push->out, push->out_bytes, plane->shared.n.nactivations) != GT_OK)
    gt_panic(GT_ERR_FAULT, "%s", gt_error_text());
  plane->push = *push;
  if (push->kind == GT_PUSH_GRADIENT) gt_mean_announce(&plane->mean, 0, push->samples);
  gt_shared_sync(&plane->shared);
  GT_MPI(MPI_Isend(&plane->push, (int)sizeof plane->push, MPI_BYTE, 0, GT_TAG_PUSH, plane->comm,
                   &plane->push_requests[0]));
  gt_bell_ring(plane->ps_bell);
  if (plane->shared.segments) return;
  if (push->kind == GT_PUSH_EVAL && push->scores > 0)
    GT_MPI(MPI_Isend(plane->arrays.scores, (int)push->scores, MPI_FLOAT, 0, GT_TAG_SCORES,
                     plane->comm, &plane->push_requests[1]));
  if (push->kind == GT_PUSH_PASS && push->out_bytes > 0)
    GT_MPI(MPI_Isend(plane->arrays.activations + push->out, (int)push->out_bytes, MPI_BYTE, 0,
                     GT_TAG_OUTPUT, plane->comm, &plane->push_requests[1]));
  if (push->kind != GT_PUSH_GRADIENT) return;
  gt_part_send(&plane->part, plane->arrays.grads, plane->arrays.buffers, 0, GT_TAG_GRADS,
               plane->comm, &plane->push_requests[1]);
}

/* Sends a stop signal to the PS once, even if this worker has nothing else to send. */
static void push_signal(gt_plane_worker *plane) {
  int number = gt_stop_requested();
  if (number == 0 || plane->signal_sent) return;
  plane->signal_sent = true;
  plane->signal = (gt_push_msg){.kind = GT_PUSH_SIGNAL, .signal = (uint32_t)number};
  GT_MPI(MPI_Isend(&plane->signal, (int)sizeof plane->signal, MPI_BYTE, 0, GT_TAG_PUSH, plane->comm,
                   &plane->signal_request));
  gt_bell_ring(plane->ps_bell);
}

/* While waiting, computes this worker's chunks of the mean as they become final on the other
   workers. */
static void wait_order(gt_plane_worker *plane, double limit_s) {
  MPI_Request request;
  GT_MPI(MPI_Irecv(&plane->order, (int)sizeof plane->order, MPI_BYTE, 0, GT_TAG_ORDER, plane->comm,
                   &request));
  gt_backoff backoff = {0};
  gt_patience patience;
  gt_patience_start(&patience, limit_s);
  for (;;) {
    int arrived = 0;
    const uint32_t heard = gt_bell_heard(plane->bell);
    GT_MPI(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE));
    if (arrived) return;
    if (gt_patience_over(&patience))
      gt_panic(GT_ERR_LOST, "waited %.0f s for an order from this region's PS",
               gt_seconds(patience.waited));
    push_signal(plane);
    if (gt_mean_work(&plane->mean)) gt_backoff_reset(&backoff);
    /* nothing to do but wait for the order */
    const bool rung = plane->bell && plane->mean.left == 0;
    gt_bell_sleep(
        plane->bell, heard,
        gt_backoff_next(&backoff, rung ? GT_BACKOFF_IDLE : gt_patience_cap(&patience), GT_NEVER));
  }
}

/* Finds the arrays for the order's parameters and buffers. */
static void find_arrays(gt_plane_worker *plane) {
  const gt_segment *own = &plane->arrays;
  plane->params = own->params;
  plane->buffers = own->buffers;
  if (!plane->shared.segments) return;
  if (plane->order.place == GT_PLACE_COMMON) plane->params = plane->mean.common.params;
  if (plane->order.place != GT_PLACE_SNAPSHOT) return;
  plane->params = gt_shared_snapshot(&plane->shared).params;
  /* A PASS keeps its own buffers, because it belongs to a step in training. */
  if (plane->order.kind == GT_ORDER_PASS) return;
  plane->buffers = gt_shared_snapshot(&plane->shared).buffers;
}

/* Without shared memory parameters, buffers and pieces follow the order as messages. */
static void receive_arrays(gt_plane_worker *plane, double limit_s) {
  if (plane->order.with_params)
    gt_part_receive(&plane->part, plane->arrays.params, plane->arrays.buffers, 0, GT_TAG_PARAMS,
                    plane->comm, plane->array_requests);
  if (plane->order.kind == GT_ORDER_PASS)
    gt_pass_receive(&plane->order.pass, plane->staging, plane->comm,
                    plane->array_requests + plane->nfloats);
  gt_wait_all(plane->array_requests, plane->nfloats + GT_PASS_PIECES,
              "the parameters or inputs from this region's PS", limit_s, NULL, NULL);
}

void gt_plane_worker_wait(gt_plane_worker *plane, gt_order_msg *order, double limit_s) {
  do {
    wait_order(plane, limit_s);
  } while (plane->order.kind == GT_ORDER_KEEPALIVE);
  if (gt_order_check(&plane->order, plane->shared.nworkers, plane->shared.n.nactivations) != GT_OK)
    gt_panic(GT_ERR_FAULT, "from this region's PS: %s", gt_error_text());
  gt_wait_all(plane->push_requests, plane->npushes, "this region's PS to take a push", limit_s,
              NULL, NULL);
  gt_shared_sync(&plane->shared);
  gt_mean_begin(&plane->mean, &plane->order);
  if (plane->order.with_params) find_arrays(plane);
  if (!plane->shared.segments) receive_arrays(plane, limit_s);
  *order = plane->order;
}

/* MPI_Iprobe lets MPI make progress on pending messages. */
void gt_plane_worker_progress(void *context) {
  gt_plane_worker *plane = context;
  gt_mean_work(&plane->mean);
  if (plane->shared.segments) return; /* only headers are messages */
  int flag;
  GT_MPI(MPI_Iprobe(0, GT_TAG_ORDER, plane->comm, &flag, MPI_STATUS_IGNORE));
}
