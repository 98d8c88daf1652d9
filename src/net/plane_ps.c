/* The PS side of the local plane: receives pushes, sends orders.  Receives are posted in
   advance. */
#include "internal.h"

#include <string.h>

#define ORDER_LIMIT_S 120.0

_Static_assert(sizeof(gt_order_msg) == 368, "an order is 368 bytes");
_Static_assert(sizeof(gt_push_msg) == 128, "a push is 128 bytes");

typedef struct {
  gt_push_msg landing;  /* buffer for the header of the next push; its receive is always posted */
  gt_push_msg gradient; /* header of a push whose gradients are still arriving */
  gt_push_msg partial;  /* header of a push whose scores or output are still arriving */
  bool rest_due;        /* `partial` is valid */
  bool gradient_due;    /* `gradient` is valid */
  bool grads_posted;
  float *grads, *buffers; /* in shared memory or received; buffers NULL: the model has none */
  float *scores;          /* in shared memory or received */
  bool reads_common;      /* it has not pushed since it was ordered to use the common parameters */
  gt_order_msg order, alive; /* alive: the last KEEPALIVE */
  gt_bell *bell;             /* the worker's */
  gt_segment arrays;         /* the worker's, if memory is shared */
  float *floats;             /* otherwise: nparams + nbuffers floats, of which its part is sent */
  gt_plane_part part;        /* the worker's part, if memory is not shared */
  gt_plane_range whole[2];
  int ngrads, norders; /* numbers of requests */
  MPI_Request push_request;
  MPI_Request rest_request;    /* scores or output */
  MPI_Request *grads_requests; /* pieces of gradients and buffers */
  MPI_Request alive_request;
  MPI_Request *order_requests; /* 1 + pieces of parameters and buffers, then those of a pass */
} port;

struct gt_plane_ps {
  MPI_Comm comm;
  gt_shared shared;
  gt_bell *bell; /* the PS's */
  uint32_t heard;
  gt_mean mean;
  gt_plane_snapshot snapshot;
  int64_t common_step; /* the step of the common parameters */
  size_t nworkers, nparams, nbuffers, nscores;
  port *ports;
  uint8_t **areas; /* activation areas of the workers, or their mirrors */
};

static int rank_of(size_t worker) {
  return (int)worker + 1;
}

static void post_push(gt_plane_ps *plane, size_t worker) {
  port *p = &plane->ports[worker];
  GT_MPI(MPI_Irecv(&p->landing, (int)sizeof p->landing, MPI_BYTE, rank_of(worker), GT_TAG_PUSH,
                   plane->comm, &p->push_request));
}

static void post_grads(gt_plane_ps *plane, size_t worker) {
  port *p = &plane->ports[worker];
  p->grads_posted = true;
  if (plane->shared.segments) return;
  gt_part_receive(&p->part, p->grads, p->buffers, rank_of(worker), GT_TAG_GRADS, plane->comm,
                  p->grads_requests);
}

static MPI_Request *null_requests(int n) {
  MPI_Request *requests = GT_NEW_ARRAY(MPI_Request, (size_t)n + 1);
  for (int i = 0; i <= n; i++) requests[i] = MPI_REQUEST_NULL;
  return requests;
}

/* Finds or allocates the arrays for the worker's gradients and parameters. */
static void open_arrays(gt_plane_ps *plane, port *p, int rank) {
  if (plane->shared.segments) {
    p->arrays = gt_shared_segment(&plane->shared, rank);
    p->bell = gt_shared_bell(&plane->shared, rank);
    p->grads = p->arrays.grads;
    p->scores = p->arrays.scores;
    p->buffers = plane->nbuffers ? p->arrays.buffers : NULL;
    return;
  }
  p->scores = GT_NEW_ARRAY(float, plane->nscores + 1);
  p->grads = gt_reserve(plane->nparams + 1, sizeof *p->grads);
  p->buffers = plane->nbuffers ? GT_NEW_ARRAY(float, plane->nbuffers) : NULL;
  p->floats = gt_reserve(plane->nparams + plane->nbuffers + 1, sizeof *p->floats);
}

static void open_snapshot(gt_plane_ps *plane) {
  if (plane->shared.segments)
    plane->snapshot = gt_shared_snapshot(&plane->shared);
  else
    plane->snapshot = (gt_plane_snapshot){GT_NEW_ARRAY(float, plane->nparams + 1),
                                          GT_NEW_ARRAY(float, plane->nbuffers + 1)};
}

static void open_areas(gt_plane_ps *plane) {
  plane->areas = GT_NEW_ARRAY(uint8_t *, plane->nworkers);
  for (size_t w = 0; w < plane->nworkers; w++)
    plane->areas[w] = plane->shared.segments == NULL ? gt_reserve(plane->shared.n.nactivations, 1)
                                                     : plane->ports[w].arrays.activations;
}

gt_plane_ps *gt_plane_ps_create(const gt_peers *region, const gt_plane_size *n) {
  gt_plane_ps *plane = GT_NEW(gt_plane_ps);
  plane->comm = gt_peers_mpi(region);
  plane->nworkers = region->size - 1;
  plane->nparams = n->nparams;
  plane->nbuffers = n->nbuffers;
  plane->nscores = n->nscores;
  gt_shared_open(&plane->shared, plane->comm, n);
  open_snapshot(plane);
  plane->bell = gt_shared_bell(&plane->shared, 0);
  gt_mean_open(&plane->mean, &plane->shared, plane->nworkers);
  plane->ports = GT_NEW_ARRAY(port, plane->nworkers + 1);
  for (size_t w = 0; w < plane->nworkers; w++) {
    port *p = &plane->ports[w];
    open_arrays(plane, p, rank_of(w));
    p->part = gt_part_of(n, w, p->whole);
    p->ngrads = (int)gt_part_pieces(&p->part);
    p->norders = 1 + p->ngrads + GT_PASS_PIECES;
    p->rest_request = p->alive_request = MPI_REQUEST_NULL;
    p->grads_requests = null_requests(p->ngrads);
    p->order_requests = null_requests(p->norders);
    post_push(plane, w);
    post_grads(plane, w);
  }
  open_areas(plane);
  return plane;
}

static void cancel(MPI_Request *request) {
  if (*request == MPI_REQUEST_NULL) return;
  GT_MPI(MPI_Cancel(request));
  GT_MPI(MPI_Wait(request, MPI_STATUS_IGNORE)); /* completes a cancelled receive: local */
}

void gt_plane_ps_close(gt_plane_ps *plane, double limit_s) {
  if (!plane) return;
  for (size_t w = 0; w < plane->nworkers; w++) {
    port *p = &plane->ports[w];
    gt_wait_all(p->order_requests, p->norders, "a worker to take its last order", limit_s, NULL,
                NULL);
    gt_wait_all(&p->alive_request, 1, "a worker to take its last order", limit_s, NULL, NULL);
    cancel(&p->push_request);
    cancel(&p->rest_request);
    for (int i = 0; i < p->ngrads; i++) cancel(&p->grads_requests[i]);
    if (!plane->shared.segments) {
      gt_free(p->grads);
      gt_free(p->buffers);
      gt_free(p->scores);
      gt_free(plane->areas[w]);
    }
    gt_free(p->floats);
    gt_free(p->grads_requests);
    gt_free(p->order_requests);
  }
  if (!plane->shared.segments) {
    gt_free(plane->snapshot.params);
    gt_free(plane->snapshot.buffers);
  }
  gt_mean_close(&plane->mean);
  gt_shared_close(&plane->shared);
  gt_free(plane->areas);
  gt_free(plane->ports);
  gt_free(plane);
}

size_t gt_plane_ps_workers(const gt_plane_ps *plane) {
  return plane->nworkers;
}

/* True if no earlier order to the worker is pending. */
static bool orders_done(port *p) {
  int done = 0;
  GT_MPI(MPI_Testall(p->norders, p->order_requests, &done, MPI_STATUSES_IGNORE));
  return done != 0;
}

static void send_arrays(gt_plane_ps *plane, size_t worker, const float *params,
                        const float *buffers) {
  port *p = &plane->ports[worker];
  int rank = rank_of(worker);
  if (params != plane->snapshot.params) {
    gt_part_copy(&p->part, p->floats, p->floats + plane->nparams, params, buffers);
    params = p->floats;
    buffers = p->floats + plane->nparams;
  }
  gt_part_send(&p->part, params, buffers, rank, GT_TAG_PARAMS, plane->comm, &p->order_requests[1]);
}

static bool common_is_read(const gt_plane_ps *plane) {
  for (size_t w = 0; w < plane->nworkers; w++)
    if (plane->ports[w].reads_common) return true;
  return false;
}

/* Stores the parameters of a step once for all its workers, unless a worker still computes with
   those of another step. */
static bool place_common(gt_plane_ps *plane, const gt_order_msg *order, const float *params) {
  if (!order->common || !plane->mean.common.params) return false;
  if (params == plane->mean.common.params) return true; /* the caller keeps them there */
  if (plane->common_step != order->step) {
    if (common_is_read(plane)) return false;
    memcpy(plane->mean.common.params, params, plane->nparams * sizeof *params);
    plane->common_step = order->step;
  }
  return true;
}

static gt_place place_params(gt_plane_ps *plane, port *p, const float *params) {
  if (params == plane->snapshot.params) return GT_PLACE_SNAPSHOT;
  p->reads_common = place_common(plane, &p->order, params);
  if (p->reads_common) return GT_PLACE_COMMON;
  gt_plane_part own = p->part; /* only the worker's part is reserved */
  own.nbuffers = 0;
  gt_part_copy(&own, p->arrays.params, NULL, params, NULL);
  return GT_PLACE_OWN;
}

static void place_arrays(gt_plane_ps *plane, port *p, const float *params, const float *buffers) {
  p->order.place = place_params(plane, p, params);
  if (plane->nbuffers && (p->order.place != GT_PLACE_SNAPSHOT || p->order.kind == GT_ORDER_PASS))
    memcpy(p->arrays.buffers, buffers, plane->nbuffers * sizeof *buffers);
}

/* A pending order keeps the worker alive, too.  A keep-alive has a request of its own: the PS must
   not wait for a worker that does not take it, because then no other worker would hear from the PS
   either. */
static void keep_alive(gt_plane_ps *plane, size_t worker, const gt_order_msg *order) {
  port *p = &plane->ports[worker];
  int taken = 0;
  GT_MPI(MPI_Test(&p->alive_request, &taken, MPI_STATUS_IGNORE));
  if (!taken || !orders_done(p)) return;
  p->alive = *order;
  GT_MPI(MPI_Isend(&p->alive, (int)sizeof p->alive, MPI_BYTE, rank_of(worker), GT_TAG_ORDER,
                   plane->comm, &p->alive_request));
  gt_bell_ring(p->bell);
}

void gt_plane_ps_order(gt_plane_ps *plane, size_t worker, const gt_order_msg *order,
                       const float *params, const float *buffers) {
  port *p = &plane->ports[worker];
  if (gt_order_check(order, plane->nworkers, plane->shared.n.nactivations) != GT_OK)
    gt_panic(GT_ERR_FAULT, "for worker rank %d: %s", rank_of(worker), gt_error_text());
  if (order->kind == GT_ORDER_KEEPALIVE) {
    keep_alive(plane, worker, order);
    return;
  }
  if (!orders_done(p))
    gt_wait_all(p->order_requests, p->norders, "a worker to take its order", ORDER_LIMIT_S, NULL,
                NULL);
  p->order = *order;
  if (order->kind == GT_ORDER_TRAIN) gt_mean_begin(&plane->mean, order);
  if (order->with_params && plane->shared.segments != NULL) place_arrays(plane, p, params, buffers);
  /* Needed without arrays too: the PS must finish reading the worker's arrays before the worker can
     write them again. */
  gt_shared_sync(&plane->shared);
  int rank = rank_of(worker);
  GT_MPI(MPI_Isend(&p->order, (int)sizeof p->order, MPI_BYTE, rank, GT_TAG_ORDER, plane->comm,
                   &p->order_requests[0]));
  gt_bell_ring(p->bell);
  if (plane->shared.segments) return;
  if (order->with_params) send_arrays(plane, worker, params, buffers);
  if (order->kind == GT_ORDER_PASS)
    gt_pass_send(&p->order.pass, plane->areas, rank, plane->comm,
                 &p->order_requests[1 + p->ngrads]);
}

static void check_push(const gt_plane_ps *plane, size_t worker, const gt_push_msg *push) {
  const int rank = rank_of(worker);
  if (push->kind < GT_PUSH_READY || push->kind > GT_PUSH_PASS)
    gt_panic(GT_ERR_FAULT, "worker rank %d pushed unknown kind %u", rank, push->kind);
  if (push->kind == GT_PUSH_EVAL && (push->scores < 0 || (size_t)push->scores > plane->nscores))
    gt_panic(GT_ERR_FAULT, "worker rank %d pushed %lld scores; expected at most %zu", rank,
             (long long)push->scores, plane->nscores);
  if (push->kind == GT_PUSH_PASS &&
      gt_output_check(push->out, push->out_bytes, plane->shared.n.nactivations) != GT_OK)
    gt_panic(GT_ERR_FAULT, "from worker rank %d: %s", rank, gt_error_text());
}

/* The worker has taken its order, so the sends are complete or about to be; afterwards the source
   of the pieces can change. */
static void finish_order(port *p) {
  if (p->order.kind == GT_ORDER_PASS && !orders_done(p))
    gt_wait_all(p->order_requests, p->norders, "a worker to take its order", ORDER_LIMIT_S, NULL,
                NULL);
}

/* True if scores or an output follow the header; in shared memory they are already there. */
static bool has_rest(const gt_plane_ps *plane, const gt_push_msg *push) {
  if (plane->shared.segments) return false;
  return (push->kind == GT_PUSH_EVAL && push->scores > 0) ||
         (push->kind == GT_PUSH_PASS && push->out_bytes > 0);
}

static void receive_rest(gt_plane_ps *plane, size_t worker, const gt_push_msg *push) {
  port *p = &plane->ports[worker];
  if (p->rest_due)
    gt_panic(GT_ERR_FAULT, "worker rank %d pushed twice without an order", rank_of(worker));
  p->partial = *push;
  p->rest_due = true;
  if (push->kind == GT_PUSH_EVAL)
    GT_MPI(MPI_Irecv(p->scores, (int)push->scores, MPI_FLOAT, rank_of(worker), GT_TAG_SCORES,
                     plane->comm, &p->rest_request));
  else
    GT_MPI(MPI_Irecv(plane->areas[worker] + push->out, (int)push->out_bytes, MPI_BYTE,
                     rank_of(worker), GT_TAG_OUTPUT, plane->comm, &p->rest_request));
}

static void hand_on(const gt_plane_ps *plane, size_t worker, const gt_push_msg *push,
                    gt_on_push *on_push, void *context) {
  const bool scored = push->kind == GT_PUSH_EVAL && push->scores > 0;
  on_push(context, worker, push, scored ? plane->ports[worker].scores : NULL, NULL);
}

static bool take_rest(gt_plane_ps *plane, size_t worker, gt_on_push *on_push, void *context) {
  port *p = &plane->ports[worker];
  int arrived = 0;
  if (!p->rest_due) return false;
  GT_MPI(MPI_Test(&p->rest_request, &arrived, MPI_STATUS_IGNORE));
  if (!arrived) return false;
  p->rest_due = false;
  const gt_push_msg push = p->partial;
  hand_on(plane, worker, &push, on_push, context);
  return true;
}

/* Handles a header that has arrived; calls on_push at once if nothing follows. */
static bool take_header(gt_plane_ps *plane, size_t worker, gt_on_push *on_push, void *context) {
  port *p = &plane->ports[worker];
  int arrived = 0;
  GT_MPI(MPI_Test(&p->push_request, &arrived, MPI_STATUS_IGNORE));
  if (!arrived) return false;
  /* for every kind: the next order writes to memory that the worker has read */
  gt_shared_sync(&plane->shared);
  const gt_push_msg push = p->landing;
  post_push(plane, worker);
  check_push(plane, worker, &push);
  if (push.kind != GT_PUSH_SIGNAL) finish_order(p);
  if (push.kind != GT_PUSH_GRADIENT) {
    if (has_rest(plane, &push))
      receive_rest(plane, worker, &push);
    else
      hand_on(plane, worker, &push, on_push, context);
    return true;
  }
  if (p->gradient_due)
    gt_panic(GT_ERR_FAULT, "worker rank %d pushed gradients twice without an order",
             rank_of(worker));
  p->gradient = push;
  p->gradient_due = true;
  return true;
}

static bool take_grads(gt_plane_ps *plane, size_t worker, gt_on_push *on_push, void *context) {
  port *p = &plane->ports[worker];
  if (!p->gradient_due || !p->grads_posted) return false;
  int arrived = 0;
  GT_MPI(MPI_Testall(p->ngrads, p->grads_requests, &arrived, MPI_STATUSES_IGNORE));
  if (!arrived) return false;
  p->gradient_due = p->grads_posted = p->reads_common = false;
  gt_push_msg push = p->gradient;
  on_push(context, worker, &push, p->grads, p->buffers);
  return true;
}

bool gt_plane_ps_poll(gt_plane_ps *plane, gt_on_push *on_push, void *context) {
  bool moved = false;
  plane->heard = gt_bell_heard(plane->bell);
  for (size_t w = 0; w < plane->nworkers; w++) {
    orders_done(&plane->ports[w]);
    moved |= take_header(plane, w, on_push, context);
    moved |= take_rest(plane, w, on_push, context);
    moved |= take_grads(plane, w, on_push, context);
  }
  return moved;
}

uint8_t *gt_plane_ps_area(gt_plane_ps *plane, size_t worker) {
  return plane->areas[worker];
}

void gt_plane_ps_taken(gt_plane_ps *plane, size_t worker) {
  if (!plane->ports[worker].grads_posted) post_grads(plane, worker);
}

const float *gt_plane_ps_reduced(gt_plane_ps *plane) {
  return gt_mean_finish(&plane->mean);
}

float *gt_plane_ps_home(const gt_plane_ps *plane) {
  return plane->mean.common.params;
}

gt_plane_snapshot gt_plane_ps_snapshot(const gt_plane_ps *plane) {
  return plane->snapshot;
}

bool gt_plane_ps_wakes(const gt_plane_ps *plane) {
  return plane->bell != NULL;
}

void gt_plane_ps_sleep(gt_plane_ps *plane, gt_ns ns) {
  gt_bell_sleep(plane->bell, plane->heard, ns);
}
