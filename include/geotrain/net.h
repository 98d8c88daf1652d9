/* net: groups of ranks, roles, named waits, panic, the local plane.  Layer 2.  Code that calls MPI
   itself includes net_mpi.h.  MPI_THREAD_FUNNELED: only the main thread communicates.  No wait
   spins: each sleeps between tests, and each has a name and a deadline. */
#pragma once

#include "geotrain/base.h"
#include "geotrain/net_peers.h"

/* ---- start and end --------------------------------------------------------------------------- */

/* Ends the whole job: prints one line with this rank's identity, then calls MPI_Abort(code).  Never
   returns. */
_Noreturn void gt_panic(gt_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Has gt_panic call a function before it ends the job; NULL: none. */
void gt_on_panic(void (*tell)(void *context, gt_status code), void *context);

/* Reads the environment; call before MPI_Init.  GT_ERR_JOB if a launcher started several processes
   that this MPI would not join into one world (srun without PMIx, another MPI's mpirun); the error
   text says what was found and which command starts them correctly.  Local; all processes get the
   same result. */
gt_status gt_launch_check(void);
/* True if this is the one process that prints messages common to all processes started together.
   Local. */
bool gt_launch_first(void);
/* Returns the number of processes according to the launcher; 0: unknown.  Local. */
int gt_launch_tasks(void);

/* Calls MPI_Init_thread under a watchdog; afterwards MPI errors return codes.  Returns all ranks of
   this MPI job, for gt_net_finalize to free.  Collective over them. */
gt_peers *gt_net_start(double limit_s);
/* Calls MPI_Finalize under a watchdog; limit_s: how long to wait for the other ranks.  Collective
   over the world. */
void gt_net_finalize(gt_peers *world, double limit_s);

/* ---- waits ----------------------------------------------------------------------------------- */

/* A growing sleep for idle loops: 20 us, doubling to `cap`.  If cap is GT_BACKOFF_IDLE, it grows
   further to 1/256 of the total time slept, at most 4 ms. */
typedef struct {
  gt_ns sleep, slept;
} gt_backoff;
#define GT_BACKOFF_BUSY ((gt_ns)100000) /* a large transfer is pending */
#define GT_BACKOFF_IDLE ((gt_ns)1000000)
void gt_backoff_reset(gt_backoff *b);
/* Returns the next sleep, ending at `until` at the latest (GT_NEVER: no bound).
   gt_backoff_sleep also sleeps. */
gt_ns gt_backoff_next(gt_backoff *b, gt_ns cap, gt_ns until);
void gt_backoff_sleep(gt_backoff *b, gt_ns cap, gt_ns until);

/* Watches a call that blocks inside MPI or the file system: after `limit_s`, not counting time in
   which the process was stopped, prints one line "waited N s in NAME" and ends the process with
   `code`.  One call at a time.  Local. */
void gt_watch_begin(const char *name, double limit_s, gt_status code);
void gt_watch_end(void);

/* ---- roles ----------------------------------------------------------------------------------- */

typedef struct {
  const char *name;
  int ranks;
  const char *const *hosts; /* nhosts host lists, or NULL */
  size_t nhosts;
} gt_region_plan;

/* Finds the region with this name.  GT_ERR_JOB: there is none; `given` says where the name comes
   from.  Local. */
gt_status gt_region_named(const char *given, const char *name, const gt_region_plan *plan,
                          size_t nregions, int *region);
/* Sets *found: true if the host of this name, or Slurm's name of this node, is in the region's host
   lists.  Reads every list.  GT_ERR_JOB: one is malformed.  Local. */
gt_status gt_region_has_host(const gt_region_plan *region, const char *host, bool *found);

typedef struct {
  gt_peers *world, *region,
      *ps; /* ps: NULL on workers; its ranks are region ids; world: borrowed */
  int world_rank, world_size;
  int region_rank, region_size; /* rank 0 is the PS */
  size_t region_id, nregions;
  bool is_ps;
  bool is_lead;     /* the PS of region 0 */
  bool reports;     /* the first rank of this MPI job's regions: the lead, or that of a site */
  gt_peers *joined; /* world, if regions are MPI jobs of their own; else NULL */
} gt_roles;

/* Maps ranks to regions (by GEOTRAIN_REGION in the environment, else host lists, else contiguous
   blocks) and splits the world.  Collective over the world.  The same status on all ranks.
   GT_ERR_JOB names the number of ranks started and expected, the region with too few or too many
   ranks, or the unknown region name (and the nearest).  For a wrong number it also gives the
   launcher command for the right one. */
gt_status gt_roles_create(gt_roles *out, gt_peers *world, const gt_region_plan *plan,
                          size_t nregions, double limit_s);
/* Gives all ranks of `world` the region of this name, which is an MPI job of its own; the run has
   no groups beyond the region until gt_roles_join.  Errors as gt_roles_create. */
gt_status gt_roles_create_alone(gt_roles *out, gt_peers *world, const gt_region_plan *plan,
                                size_t nregions, const char *name, double limit_s);
/* Joins the region with the others.  servers: the PS ranks of all regions, taken over; NULL on
   workers.  Local. */
void gt_roles_join(gt_roles *roles, gt_peers *servers, const gt_region_plan *plan);
/* Frees the groups of the roles.  Collective over the world; limit_s: how long to wait for the
   other ranks. */
void gt_roles_close(gt_roles *roles, double limit_s);
/* Returns the map as text, one line per region: "region shanghai: ranks 0 (PS), 1, 2 on hosta".
   late: of each region, that it is not there yet; NULL: all are.  Collective over the world;
   returns the text (free with gt_free) on world rank 0, NULL elsewhere. */
char *gt_roles_map(const gt_roles *roles, const gt_region_plan *plan, const bool *late);

/* ---- reachability ---------------------------------------------------------------------------- */

/* Returns the value of an MPI library setting (an MPI_T control variable, such as
   "btl_tcp_if_include") as text; false if the library has no such setting, or the component that
   owns it was not selected.  Local; after gt_net_start. */
bool gt_mpi_setting(const char *name, char *buf, size_t size);

#define GT_REACH_ADDRESSES 8

/* An IPv4 address of this host that MPI can use over TCP. */
typedef struct {
  char interface[16];
  uint32_t ip, mask; /* in network byte order */
} gt_net_address;

/* Returns the addresses of interfaces that are up, are not loopback, and are allowed by
   btl_tcp_if_include and btl_tcp_if_exclude (names, or networks as 10.0.0.0/8); writes at most
   `max` and returns their number.  Local. */
size_t gt_net_addresses(gt_net_address *out, size_t max);

/* A rank's description of itself, as sent to rank 0. */
typedef struct {
  int32_t region; /* -1: not given by the job */
  int32_t pid;
  char host[64];
  /* boot id: ranks with the same boot id share cores, even if their host names differ */
  char kernel[40];
  uint16_t port; /* listening port during the link test; 0: none */
  uint16_t naddresses;
  uint32_t addresses[GT_REACH_ADDRESSES];
} gt_reach_rank;

typedef struct {
  int size;
  gt_reach_rank *ranks; /* on world rank 0, NULL elsewhere */
  /* TCP connections were tested before MPI's own; addresses were exchanged through the launcher's
     name service */
  bool by_launcher;
} gt_reach;

/* Tests point to point, before any collective call or split, that messages pass between rank 0 and
   every rank, and between the PS ranks.  First tests plain TCP connections between hosts, because
   Open MPI ends the job if a connection is refused.  Waits by sleeping, about limit_s per stage at
   most.
   If a rank does not answer, the job ends with 7: world rank 0 calls `blocked` (NULL is allowed)
   with one line per failure, naming the ranks, then MPI_Abort.
   GT_ERR_NOGO, the same on all ranks: every link works, but the started ranks do not fit the
   regions (see gt_error_text).
   plan is NULL on a rank that cannot read the job: then rank 0's plan is used; if rank 0 has none,
   only its own links are tested.  Collective over the world. */
gt_status gt_net_reach(gt_reach *out, gt_peers *world, const gt_region_plan *plan, size_t nregions,
                       double limit_s, void (*blocked)(const char *reasons));
void gt_reach_close(gt_reach *reach);

/* ---- the local plane ------------------------------------------------------------------------- */

/* Orders from PS to worker.  `with_params`: parameters and buffers (nfloats) follow. */
typedef enum {
  GT_ORDER_TRAIN = 1,
  GT_ORDER_EVAL,
  GT_ORDER_VALIDATE, /* as EVAL, on the samples held back */
  GT_ORDER_KEEPALIVE,
  GT_ORDER_END,
  GT_ORDER_PASS /* run one pass of a pipeline, `pass` */
} gt_order_kind;
/* The arrays that the worker reads, with shared memory and an order with parameters: its own, the
   parameters common to all workers of a step, or the snapshot. */
typedef enum { GT_PLACE_OWN, GT_PLACE_COMMON, GT_PLACE_SNAPSHOT } gt_place;

#define GT_PASS_PIECES 8
/* Largest piece or output in bytes, because MPI counts are int. */
#define GT_PASS_BYTES_MAX ((uint64_t)1 << 30)

/* One input of a pass: `bytes` bytes at `from` in the activation area of worker `worker` (0 to
   nworkers - 1, possibly its own), copied to byte `to` of the input. */
typedef struct {
  uint64_t from, to, bytes;
  uint32_t worker, reserved;
} gt_pass_piece;

/* The pass of an order.  Pieces and output lie within areas of `nactivations` bytes; each has at
   most GT_PASS_BYTES_MAX bytes, and the pieces together at most nactivations.  The pieces' source
   must not change from the order until the worker's push; the area of the output must not change
   until all its readers have pushed. */
typedef struct {
  uint32_t kind, chunk, span, micro, slot; /* the schedule's pass (pipe.h); not used by net */
  uint32_t flags;                          /* not used by net */
  /* Position of the output in the worker's own area; 0 bytes: no output. */
  uint64_t out, out_bytes;
  uint32_t npieces;
  uint32_t shape; /* of its micro-batches (pipe_job.h); not used by net */
  gt_pass_piece pieces[GT_PASS_PIECES];
} gt_pass_msg; /* 304 bytes */

typedef struct {
  uint32_t kind, with_params;
  int64_t batch;       /* TRAIN: batch number; EVAL: first sample */
  int64_t count;       /* EVAL: number of samples */
  int64_t wan_wait_ns; /* the part of the wait ended by this order that the strategy caused */
  int64_t status;      /* END: exit code */
  /* TRAIN, if workers form the mean of their gradients: the number of the step (from 1, never
     reused), the number of workers that take part (0 to workers - 1), and whether the parameters
     are the same in all orders of this step with `common` set (the plane can then store them once
     for all). */
  int64_t step;
  uint32_t workers, common;
  uint32_t place; /* set by the plane: a gt_place */
  uint32_t reserved;
  gt_pass_msg pass; /* PASS */
} gt_order_msg;     /* 368 bytes */

/* Reports from worker to PS.  GRADIENT: gradients and buffers follow.  EVAL: scores follow unless
   their number is 0.  PASS: the output is in the worker's activation area. */
typedef enum {
  GT_PUSH_READY = 1,
  GT_PUSH_GRADIENT,
  GT_PUSH_EVAL,
  GT_PUSH_SIGNAL,
  GT_PUSH_PASS
} gt_push_kind;
typedef struct {
  uint32_t kind, signal; /* signal: the stop signal that this rank received, or 0 */
  int64_t batch;
  int64_t samples, correct;
  double loss_sum;
  int64_t compute_ns, wait_ns; /* for this batch; waited before this batch */
  int64_t nonfinite;           /* 1: loss or gradient is non-finite (the gradient is still sent) */
  int64_t scores;              /* EVAL: number of floats from gt_plane_worker_scores that follow */
  uint64_t out, out_bytes;     /* PASS: position of its output; 0 bytes: no output */
  /* The worker's memory: the peak so far, and before it had a model; 0: unknown. */
  uint64_t resident_peak, resident_start;
  int64_t reserved[3];
} gt_push_msg; /* 128 bytes */

/* The PS side: at most one pending push and one pending order per worker.  Workers are
   0..nworkers-1 (region rank - 1). */
typedef struct gt_plane_ps gt_plane_ps;
/* Floats [offset, offset + count). */
typedef struct {
  size_t offset, count;
} gt_plane_range;
/* The worker's ranges of the parameters (and so of the gradients) and of the buffers. */
typedef struct {
  const gt_plane_range *params, *buffers;
  size_t nparams, nbuffers; /* ranges */
} gt_plane_part;
/* Sizes, the same on all ranks of a region. */
typedef struct {
  /* Floats of a model's arrays; largest number of scores in an answer to EVAL. */
  size_t nparams, nbuffers, nscores;
  /* Bytes of each worker's activation area, which holds the inputs and outputs of a pipeline's
     passes; 0: none. */
  size_t nactivations;
  /* The parts of each worker, borrowed until the plane is closed; NULL: each has everything.
     Without shared memory only these parts are sent, and the rest of the arrays occupies no
     memory. */
  const gt_plane_part *parts;
} gt_plane_size;
/* Creates the plane.  If all ranks of a region are on one node, arrays and activation areas are in
   shared memory, where workers read each other's outputs, and only headers are messages.  Otherwise
   everything is sent: the PS holds a mirror of each worker's area (nworkers x nactivations bytes);
   an output goes to the mirror with its push, and pieces come from the mirrors with an order, so
   data between workers passes through the PS.  Create and close are collective over region, on the
   PS and on the workers; limit_s: how long to wait for the other ranks. */
gt_plane_ps *gt_plane_ps_create(const gt_peers *region, const gt_plane_size *size);
void gt_plane_ps_close(gt_plane_ps *plane, double limit_s);
size_t gt_plane_ps_workers(const gt_plane_ps *plane);
/* Sends an order.  with_params copies `params` and `buffers` (borrowed until return) to the
   worker's send buffer.  A PASS can have parameters too; its pieces are not copied.  Panic: unknown
   kind, or a pass that does not fit (gt_pass_msg). */
void gt_plane_ps_order(gt_plane_ps *plane, size_t worker, const gt_order_msg *order,
                       const float *params, const float *buffers);
/* Tests for arrived pushes and calls on_push for each, in worker order.  *floats (nparams
   gradients) and *buffers (nbuffers) of a GRADIENT stay valid until gt_plane_ps_taken(worker).  The
   scores of an EVAL are also passed as `floats`; they stay valid until the worker's next order.
   Returns true if anything was received. */
typedef void gt_on_push(void *context, size_t worker, const gt_push_msg *push, float *floats,
                        const float *buffers);
bool gt_plane_ps_poll(gt_plane_ps *plane, gt_on_push *on_push, void *context);
/* Returns the activation area of a worker, 64-byte aligned: in shared memory, or its mirror.  The
   PS reads outputs there after their PASS, and writes data from other regions there before it
   orders the pass that reads them. */
uint8_t *gt_plane_ps_area(gt_plane_ps *plane, size_t worker);
/* Releases the gradients of this worker's last push: its next push can overwrite them. */
void gt_plane_ps_taken(gt_plane_ps *plane, size_t worker);
/* Returns the mean (gt_vec_mean, weighted by samples) of the gradients of all workers of the last
   step ordered, if the workers form it; the PS computes the ranges that they have not yet done.
   nparams floats, valid until the next order.  NULL: not all gradients have arrived, or workers do
   not form the mean (several nodes, or only one worker). */
const float *gt_plane_ps_reduced(gt_plane_ps *plane);
/* Returns the shared memory from which all workers of a step read their parameters, or NULL.  A PS
   that changes its parameters only between steps can keep them there and pass this pointer as
   `params` of its orders; then nothing is copied. */
float *gt_plane_ps_home(const gt_plane_ps *plane);
/* Space for a model (nparams, nbuffers floats) that workers read while the live model changes.
   Orders with these `params` and `buffers` send no arrays if memory is shared (a PASS copies the
   buffers, because its worker can change them), and copy nothing otherwise.  The contents must not
   change until all workers with such an order have answered. */
typedef struct {
  float *params, *buffers;
} gt_plane_snapshot;
gt_plane_snapshot gt_plane_ps_snapshot(const gt_plane_ps *plane);
/* True if a push ends gt_plane_ps_sleep at once: only with shared memory. */
bool gt_plane_ps_wakes(const gt_plane_ps *plane);
/* Sleeps for ns.  If gt_plane_ps_wakes, a push since the start of the last poll or during the sleep
   ends it. */
void gt_plane_ps_sleep(gt_plane_ps *plane, gt_ns ns);

/* The worker side.  The plane owns the model's arrays: see gt_graph_adopt.  The addresses of
   parameters and buffers can differ between orders.  Parameters are read-only; so are the buffers
   of an EVAL with parameters. */
typedef struct gt_plane_worker gt_plane_worker;
gt_plane_worker *gt_plane_worker_create(const gt_peers *region, const gt_plane_size *size);
float *gt_plane_worker_params(const gt_plane_worker *plane);
float *gt_plane_worker_buffers(const gt_plane_worker *plane);
float *gt_plane_worker_grads(const gt_plane_worker *plane);
/* Returns space for nscores floats: fill it before pushing an EVAL, then leave it unchanged until
   the next order. */
float *gt_plane_worker_scores(const gt_plane_worker *plane);
/* Returns this worker's activation area, 64-byte aligned: outputs go there.  Without shared memory
   it holds nothing else; use gt_plane_worker_piece for inputs. */
uint8_t *gt_plane_worker_area(const gt_plane_worker *plane);
/* Returns piece i (below npieces) of the pass of the last order, `bytes` bytes to read until the
   next push: in the other worker's area, or where it was received (64-byte aligned there). */
const void *gt_plane_worker_piece(const gt_plane_worker *plane, size_t i);
void gt_plane_worker_close(gt_plane_worker *plane, double limit_s);
/* Call during a backward pass, with decreasing `first`: gradients [first, nparams) of the batch of
   `samples` samples are final.  The push implies the last call.  With shared memory the workers
   form the mean of all gradients (see gt_plane_ps_reduced), each computing a part: here, in
   gt_plane_worker_progress, and while they wait. */
void gt_plane_worker_gradients(gt_plane_worker *plane, size_t first, int64_t samples);
/* Starts sending; gradients, buffers and the output of a PASS must stay unchanged until the next
   order has arrived.  Panic: an output beyond the area. */
void gt_plane_worker_push(gt_plane_worker *plane, const gt_push_msg *push);
/* Waits for the next order other than KEEPALIVE.  Each KEEPALIVE restarts the deadline limit_s;
   after it: panic with 5.  A stop signal that arrives meanwhile is pushed as SIGNAL. */
void gt_plane_worker_wait(gt_plane_worker *plane, gt_order_msg *order, double limit_s);
/* Lets MPI make progress; pass it to gt_graph_on_progress. */
void gt_plane_worker_progress(void *plane);
