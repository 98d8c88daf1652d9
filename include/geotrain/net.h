/* net: communicators, roles, named waits, agreement, panic, the local plane.  Layer 2.  Only wan, setup, train and probe call MPI besides it.
   MPI_THREAD_FUNNELED: only the main thread communicates.  No wait spins: each sleeps between tests, and each has a name and a deadline. */
#ifndef GEOTRAIN_NET_H
#define GEOTRAIN_NET_H

#include <mpi.h>

#include "geotrain/base.h"

/* ---- start and end -------------------------------------------------------------------------------------------------- */

/* Ends the whole job: one line with this rank's identity, then MPI_Abort(code).  Never returns. */
_Noreturn void gt_panic(gt_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* MPI_ call failed: panic with MPI's text. */
void gt_mpi_check(int error, const char *call);
#define GT_MPI(call) gt_mpi_check((call), #call)

/* Before MPI_Init, from the environment alone: GT_ERR_JOB where a launcher started several processes that this MPI would not join in one world (srun without
   PMIx, another MPI's mpirun); the sentence says what was found and what starts them right.  Local; all processes come to the same. */
gt_status gt_launch_check(void);
/* Of the processes that were started together, the one that speaks where all have the same to say.  Local. */
bool gt_launch_first(void);

/* MPI_Init_thread under a watchdog; MPI errors return codes.  Collective over the world. */
void gt_net_start(double limit_s);
/* MPI_Finalize under a watchdog; limit_s: for the other ranks to come.  Collective over the world. */
void gt_net_finalize(double limit_s);

/* ---- agreement ------------------------------------------------------------------------------------------------------ */

/* Ends when every rank of `comm` holds the same status: the worst one (that of the lowest rank among equals), with its text in gt_error_text.
   Collective over comm.  Call it after local work and before the next exchange, never instead of one.  Waits sleep; deadline limit_s. */
gt_status gt_agree(MPI_Comm comm, gt_status local, double limit_s);

/* ---- waits ---------------------------------------------------------------------------------------------------------- */

/* Sleep that grows while nothing happens: 20 us, doubling to `cap`; where that is IDLE, to 1/256 of what it has slept in all, 4 ms at most. */
typedef struct {
  gt_ns sleep, slept;
} gt_backoff;
#define GT_BACKOFF_BUSY ((gt_ns)100000) /* a large transfer is pending */
#define GT_BACKOFF_IDLE ((gt_ns)1000000)
void gt_backoff_reset(gt_backoff *b);
/* How long to sleep next, not beyond `until` (GT_NEVER: no bound); and that sleep. */
gt_ns gt_backoff_next(gt_backoff *b, gt_ns cap, gt_ns until);
void gt_backoff_sleep(gt_backoff *b, gt_ns cap, gt_ns until);

/* Waits until all n requests are complete, testing and sleeping; `progress` (may be NULL) is called between tests.  Past the deadline: panic with 5,
   "waited N s for WHAT".  */
void gt_wait_all(MPI_Request *requests, int n, const char *what, double limit_s, void (*progress)(void *), void *context);

/* ---- roles ---------------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *name;
  int ranks;
  const char *const *hosts; /* nhosts names, or NULL */
  size_t nhosts;
} gt_region_plan;

typedef struct {
  MPI_Comm world, region, ps; /* ps: MPI_COMM_NULL on workers; ps rank == region id */
  int world_rank, world_size;
  int region_rank, region_size; /* rank 0 is the PS */
  size_t region_id, nregions;
  bool is_ps;
  bool is_lead; /* the PS of region 0 */
} gt_roles;

/* Maps ranks to regions (GEOTRAIN_REGION in the environment, else host lists, else contiguous blocks) and splits the world.  Collective over the world.  The same status
   on all ranks: GT_ERR_JOB says the number of ranks started and needed, the region that has too few or too many, or the name that is no region (and the nearest).
   A wrong number comes with the launcher's own words for the right one. */
gt_status gt_roles_create(gt_roles *out, const gt_region_plan *plan, size_t nregions, double limit_s);
/* Collective over the world; limit_s: for the other ranks to come. */
void gt_roles_close(gt_roles *roles, double limit_s);
/* The map as text, a line a region: "region shanghai: ranks 0 (PS), 1, 2 on hosta"; collective over the world; the text (gt_free) on world rank 0, NULL elsewhere. */
char *gt_roles_map(const gt_roles *roles, const gt_region_plan *plan);

/* ---- reachability ----------------------------------------------------------------------------------------------------- */

/* A value of the MPI library's settings (an MPI_T control variable, such as "btl_tcp_if_include") as text; false: this library has no setting of the name, or
   the component whose it is was not chosen.  Local; after gt_net_start. */
bool gt_mpi_setting(const char *name, char *buf, size_t size);

#define GT_REACH_ADDRESSES 8

/* An IPv4 address of this host that MPI over TCP may use. */
typedef struct {
  char interface[16];
  uint32_t ip, mask; /* network order */
} gt_net_address;

/* The addresses of interfaces that are up and no loopback, and that btl_tcp_if_include and btl_tcp_if_exclude (names, or networks as 10.0.0.0/8) leave; at most
   `max`; returns their number.  Local. */
size_t gt_net_addresses(gt_net_address *out, size_t max);

/* A rank as it told rank 0 about itself. */
typedef struct {
  int32_t region; /* -1: the job does not say */
  int32_t pid;
  char host[64];
  char kernel[40]; /* boot id: ranks with the same one share cores, whatever their hosts are called */
  uint16_t port;   /* where it listens while links are tested, 0: nowhere */
  uint16_t naddresses;
  uint32_t addresses[GT_REACH_ADDRESSES];
} gt_reach_rank;

typedef struct {
  int size;
  gt_reach_rank *ranks; /* on world rank 0, NULL elsewhere */
  bool by_launcher;     /* TCP connections were tested before MPI's own, with the launcher's name service to exchange addresses */
} gt_reach;

/* Tests that messages pass, point to point and before any collective call or split: rank 0 with every rank, the PS ranks with one another; and before that plain TCP
   connections between hosts, since Open MPI ends the job by itself when a connection is refused.  Sleeps, and never waits much longer than limit_s a stage.
   What does not answer ends the job with 7: `blocked` (may be NULL) is called on world rank 0 with one sentence a line and whom it concerns, then MPI_Abort.
   GT_ERR_NOGO, the same on all ranks: every link is fine, but the ranks that were started do not fit the regions (see gt_error_text).
   plan NULL on a rank whose job cannot be read: rank 0's decides, and where rank 0 has none only its own links are tested.  Collective over the world. */
gt_status gt_net_reach(gt_reach *out, const gt_region_plan *plan, size_t nregions, double limit_s, void (*blocked)(const char *reasons));
void gt_reach_close(gt_reach *reach);

/* ---- the local plane --------------------------------------------------------------------------------------------------- */

/* From PS to worker: do this.  `with_params`: parameters and buffers (nfloats) follow. */
typedef enum { GT_ORDER_TRAIN = 1, GT_ORDER_EVAL, GT_ORDER_KEEPALIVE, GT_ORDER_END } gt_order_kind;
/* Where memory is shared and parameters come with an order, what the worker reads: arrays of its own, the parameters that all workers of a step have in common, or
   the snapshot. */
typedef enum { GT_PLACE_OWN, GT_PLACE_COMMON, GT_PLACE_SNAPSHOT } gt_place;
typedef struct {
  uint32_t kind, with_params;
  int64_t batch;       /* TRAIN: batch number; EVAL: first sample */
  int64_t count;       /* EVAL: samples */
  int64_t wan_wait_ns; /* of the wait that this order ends, spent held by the strategy */
  int64_t status;      /* END: exit code */
  /* TRAIN, where workers' gradients become one: the number of the step (1 and up, never again the same), how many workers take part in it (0 to workers - 1),
     and whether the parameters are the same in all orders of this step that say so (they may then lie in one place for all). */
  int64_t step;
  uint32_t workers, common;
  uint32_t place; /* the plane's own: a gt_place */
  uint32_t reserved;
} gt_order_msg; /* 64 bytes */

/* From worker to PS: this is done.  GRADIENT: gradients and buffers follow; EVAL: scores do, if it says how many. */
typedef enum { GT_PUSH_READY = 1, GT_PUSH_GRADIENT, GT_PUSH_EVAL, GT_PUSH_SIGNAL } gt_push_kind;
typedef struct {
  uint32_t kind, signal; /* signal: a stop signal this rank received, or 0 */
  int64_t batch;
  int64_t samples, correct;
  double loss_sum;
  int64_t compute_ns, wait_ns; /* of this batch; waited before it */
  int64_t nonfinite;           /* 1: loss or gradient is not finite (the gradient is sent all the same) */
  int64_t scores;              /* EVAL: so many floats from gt_plane_worker_scores follow */
  int64_t reserved[7];
} gt_push_msg; /* 128 bytes */

/* The PS's side: one pending push a worker, one order under way a worker.  Workers are 0..nworkers-1 (region rank - 1). */
typedef struct gt_plane_ps gt_plane_ps;
/* What a plane carries, in floats: a model's arrays, and the most scores that a worker's answer to an EVAL has. */
typedef struct {
  size_t nparams, nbuffers, nscores;
} gt_plane_size;
/* Where all ranks of a region are on one node, arrays lie in memory that they share and only headers are messages; else both are.
   Both creates and closes are collective over region; limit_s: for its other ranks to come. */
gt_plane_ps *gt_plane_ps_create(MPI_Comm region, const gt_plane_size *size);
void gt_plane_ps_close(gt_plane_ps *plane, double limit_s);
size_t gt_plane_ps_workers(const gt_plane_ps *plane);
/* Sends an order; with_params copies `params` and `buffers` (borrowed until return) into the worker's send buffer. */
void gt_plane_ps_order(gt_plane_ps *plane, size_t worker, const gt_order_msg *order, const float *params, const float *buffers);
/* Tests for arrived pushes; calls on_push for each in worker order.  *floats (nparams gradients) and *buffers (nbuffers) of a GRADIENT stay untouched until
   gt_plane_ps_taken(worker); the scores of an EVAL, which come as `floats` likewise, until the worker's next order.
   Returns true when anything moved. */
typedef void gt_on_push(void *context, size_t worker, const gt_push_msg *push, float *floats, const float *buffers);
bool gt_plane_ps_poll(gt_plane_ps *plane, gt_on_push *on_push, void *context);
/* The gradients of this worker's last push are not needed any more: its next push may land. */
void gt_plane_ps_taken(gt_plane_ps *plane, size_t worker);
/* The gt_vec_mean, by samples, of the gradients of all workers of the last step that was ordered, where the workers form it: what they have not done yet is done
   here.  nparams floats, until the next order.  NULL: not all gradients have come, or the workers form none (as between nodes, or one worker alone). */
const float *gt_plane_ps_reduced(gt_plane_ps *plane);
/* Where all workers of a step read their parameters, in memory that they share, or NULL.  A PS that changes its parameters only between steps may keep them there, and
   nothing is copied: the `params` of its orders are then this. */
float *gt_plane_ps_home(const gt_plane_ps *plane);
/* Room for a model (nparams, nbuffers floats) that workers are to read while the live one changes.  Orders whose `params` and `buffers` are these send nothing where
   memory is shared, and copy nothing elsewhere; it stays as it is until all workers that were ordered so have answered. */
typedef struct {
  float *params, *buffers;
} gt_plane_snapshot;
gt_plane_snapshot gt_plane_ps_snapshot(const gt_plane_ps *plane);
/* Whether a push ends gt_plane_ps_sleep at once: where memory is shared. */
bool gt_plane_ps_wakes(const gt_plane_ps *plane);
/* Sleeps ns; a push that came since the last poll began, or comes meanwhile, ends it where gt_plane_ps_wakes. */
void gt_plane_ps_sleep(gt_plane_ps *plane, gt_ns ns);

/* The worker's side.  The plane owns the arrays that the model works on: see gt_graph_adopt.  Parameters and buffers of different orders may lie in different places.
   Parameters are only to be read, those that come with an EVAL and its buffers likewise. */
typedef struct gt_plane_worker gt_plane_worker;
gt_plane_worker *gt_plane_worker_create(MPI_Comm region, const gt_plane_size *size);
float *gt_plane_worker_params(const gt_plane_worker *plane);
float *gt_plane_worker_buffers(const gt_plane_worker *plane);
float *gt_plane_worker_grads(const gt_plane_worker *plane);
/* Room for nscores floats, to be filled before an EVAL is pushed and left alone until the next order. */
float *gt_plane_worker_scores(const gt_plane_worker *plane);
void gt_plane_worker_close(gt_plane_worker *plane, double limit_s);
/* Gradients [first, nparams) of the batch of `samples` samples are final; called in a backward pass, `first` falling, the last call may be left to the push.  In
   shared memory the workers form the mean of what all have (see gt_plane_ps_reduced), each a part of it: here, in gt_plane_worker_progress, and while they wait. */
void gt_plane_worker_gradients(gt_plane_worker *plane, size_t first, int64_t samples);
/* Starts sending; gradients and buffers must stay untouched until the next order has come. */
void gt_plane_worker_push(gt_plane_worker *plane, const gt_push_msg *push);
/* Waits for the next order but KEEPALIVE (each restarts the deadline limit_s; past it: panic with 5).  A stop signal that arrives meanwhile is pushed as SIGNAL. */
void gt_plane_worker_wait(gt_plane_worker *plane, gt_order_msg *order, double limit_s);
/* Lets MPI move messages on; given to gt_graph_on_progress. */
void gt_plane_worker_progress(void *plane);

#endif
