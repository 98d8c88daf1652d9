/* A deterministic world of regions in one process: each a PS with its workers, joined by links,
   with a checkpoint host.  Time is virtual.  world.c serves the PSs, advances the world from event
   to event, crashes and resumes it.  A problem defines the workers' computation and the laws:
   world_plain.c has regions with whole models, world_pipe.c the stages of a pipeline, or of
   replicas of one. */
#pragma once

#include "geotrain/ps_state.h"
#include "tests.h"

#define W_PLACES  9 /* for regions */
#define W_DESKS   9 /* for workers of a region */
#define W_GONE    64
#define W_BATCHES 256 /* batch numbers of a region, from 0 */
#define W_MS      ((gt_ns)1000000)
#define W_EPOCHS  256
#define W_ROUNDS  256

/* Largest number of regions with whole models in random worlds. */
#define W_REGIONS 5
#define W_WORKERS 4
#define W_PARAMS  18
#define W_BUFFERS 2
#define W_MODEL   (W_PARAMS + W_BUFFERS)
#define W_TEST    32 /* test samples that a region can have */
#define W_PIECE   6  /* floats of a piece, if messages have pieces */

/* Regions of a pipeline. */
#define P_REPLICAS 3
#define P_PLACES   4 /* regions of a replica */
#define P_STAGES   3 /* of a region */
#define P_RANGES   4
#define P_TENSORS  3 /* of a region */
#define P_PARAMS   24
#define P_BUFFERS  6
#define P_FLOATS   (P_PARAMS + P_BUFFERS)
#define P_STEPS    32

/* The specification of a world; 0 means the default, if there is one. */
typedef struct {
  const char *strategy;   /* of a pipeline: between its replicas */
  const gt_sync_ops *ops; /* NULL: those of `strategy` */
  /* samples: the region's share; 0 workers, and 0 samples: it only aggregates */
  size_t nregions, workers[W_REGIONS], samples[W_REGIONS];
  double weights[W_REGIONS]; /* all 0: equal, or by_samples */
  bool local_async, no_data, by_samples;
  size_t batch, outbox, window;
  gt_sync_options options; /* period, scale 0: 1; of a pipeline: between its replicas */
  gt_exchange_codec codec; /* between regions with whole models; kind GT_CODEC_NONE: float32 */
  gt_optim_spec optim;     /* without a schedule: SGD with its momentum */
  gt_ps_interval until, eval_every, checkpoint_every;
  /* of each region, if there is no `until`; of a pipeline: of each replica */
  int64_t steps[W_REGIONS];
  size_t test_samples;
  size_t validation; /* samples of every region with workers; 0: no validation */
  int patience;
  gt_link_spec link;
  /* Instead of `link`, if lag[0] > 0: messages take random times, those from and to a region one or
     two of its lags, and control overtakes data. */
  gt_ns lag[W_REGIONS];
  double slow[W_REGIONS]; /* factor of a region's compute time */
  double write_s;         /* longest time that a checkpoint takes to be durable */
  int nonfinite_limit;    /* 0: 3 */
  /* every such batch number of region 0 gives a non-finite gradient; of a pipeline one of so many
     pushes */
  int64_t bad_every;
  int64_t poison;  /* the number of region 0's data message that is non-finite */
  int64_t unsound; /* the round that region 0 considers unsound */
  double wan_bytes_limit;
  gt_ns keepalive, heartbeat;
  bool change; /* members change; tie: as in gt_ps_members */
  size_t tie;
  gt_topology topology;
  size_t next[W_REGIONS]; /* as in gt_exchange_spec */
  size_t piece;           /* likewise; 0: W_PIECE */
  uint64_t seed;
  /* A pipeline, if places > 0: copies * places regions, those of place 0 first.  Links delay at
     random, and control overtakes data. */
  size_t replicas, places;
  double clip;   /* train.clip */
  double rounds; /* chance of a round that a region opens at an event */
} w_spec;

typedef struct {
  gt_frame_header head;
  const void *borrowed; /* data: until it has departed */
  union {
    float floats[P_FLOATS];
    double numbers[P_FLOATS / 2];
  } body;
  size_t bytes;
  uint64_t cookie;
  gt_ns at;  /* of its arrival */
  void *big; /* a body that is larger; owned */
} w_frame;

typedef struct {
  w_frame *frames;
  size_t capacity, head, count;
} w_ring;

/* One direction: queued messages, the one that leaves, those in flight. */
typedef struct {
  w_ring control, data, air[2]; /* air[0]: control that overtakes data */
  bool leaving;
  w_frame current;
  /* delay, last arrival: of control, of data; delay 0: that of a gt_link */
  gt_ns depart, arrive, delay[2], last[2];
  gt_link_state state;
  struct {
    uint64_t cookie;
    gt_ns at;
  } gone[W_GONE]; /* departures not yet reported to the PS */
  size_t ngone;
  int64_t data_sent; /* messages */
  double bytes_sent; /* of these */
  /* cut: nothing moves; down: the sender has noticed, and its messages go nowhere; notice: when the
     receiver notices; heal: when both ends are connected again */
  bool cut, down;
  gt_ns notice, heal;
} w_link;

typedef enum { W_STARTING, W_IDLE, W_TRAINING, W_SCORING, W_PUSHED } w_work;

/* A pipeline worker's push for a batch. */
typedef struct {
  float grads[P_PARAMS], buffers[P_BUFFERS];
  int64_t samples;
} p_push;

typedef struct {
  w_work work;
  gt_ns ready, heard;          /* when it answers; when it last got a message */
  int64_t batch, first, count; /* first, count: test samples */
  const float *model;          /* under evaluation; NULL: none yet */
  bool validates;              /* it is evaluated on the samples held back */
  bool lent;                   /* its gradient is with the PS */
  float grads[P_PARAMS], buffers[P_BUFFERS];
  /* of a pipeline: what it was ordered to train on, as it was then; its last two pushes, and what
     messages have done to buffers since it was ordered: [batch % 2] */
  gt_vec params_lent, buffers_lent;
  float then[P_FLOATS], add[2][P_BUFFERS], keep[2];
  p_push pushed[2];
} w_worker;

/* A region's state, saved with a checkpoint, in addition to its PS's. */
typedef struct {
  int64_t steps;
  int trained[W_BATCHES]; /* how often each batch was counted, since the beginning */
  /* of each peer: newest sequence applied; strategy's numbers of the last message applied; of the
     last one posted to it; samples behind the messages applied */
  int64_t applied[W_PLACES], applied_value[W_PLACES], posted_value[W_PLACES], samples[W_PLACES];
  /* sums over the gradients used: of -lr g, of its size; of the updates posted to one peer */
  double given[W_PARAMS], moved[W_PARAMS], posted[W_PARAMS];
} w_kept;

/* The contents of a region's file of a round. */
typedef struct {
  int64_t round;
  bool durable;
  gt_state state;
  w_kept kept;
} w_copy;

/* How a round was judged; loss 0: it was not.  steps: of all regions at their checkpoints. */
typedef struct {
  int64_t best, steps;
  double loss, best_loss;
} w_judged;

struct world;
struct pipeline;
typedef struct {
  struct world *world;
  size_t id, nworkers, nparams, nbuffers;
  gt_ps *ps;
  double applied; /* messages, as parts of whole ones */
  gt_optim *optim;
  float params[P_PARAMS], grads[P_PARAMS], buffers[P_BUFFERS], snapshot[P_FLOATS];
  w_worker workers[W_DESKS];
  w_kept kept;
  int ever[W_BATCHES]; /* like kept.trained, but losses do not undo it */
  w_copy *copies;
  size_t ncopies;
  gt_ns written_at;
  int64_t writing;
  int64_t evals, orders, keepalives, nonfinite, nonfinite_messages, rounds, wholes;
  gt_ns wan_wait;
  int64_t decisions;
  bool dead;       /* crashed, or ended as a minority */
  int64_t refused; /* as a region that returns */
  uint64_t incarnation;
  int64_t promised; /* the newest number that it has made durable */
} w_region;

/* The workers' computation and the laws. */
typedef struct {
  /* Called once, when the world opens, before anything else; and when it closes. */
  void (*open)(struct world *w);
  void (*close)(struct world *w);
  /* Sets a region's initial state: its parameters, its optimizer, and what of the spec is the
     problem's own. */
  void (*begin)(w_region *r, gt_ps_spec *spec);
  gt_ns (*compute_time)(w_region *r);
  /* A worker got an order to train or evaluate; its answer is due. */
  void (*order)(w_region *r, w_worker *worker, const gt_ps_order *o);
  void (*train)(w_region *r, w_worker *worker);
  void (*evaluate)(w_region *r, w_worker *worker);
  /* A gradient has been used; a data message is posted. */
  void (*taken)(w_region *r, const w_worker *worker);
  void (*post)(w_region *r, size_t to, const w_frame *f);
  void (*note)(w_region *r, gt_ps_note note, double b);
  void (*checkpoint)(w_region *r, int64_t round);
  /* Called before data is applied. */
  void (*hear)(w_region *r, size_t from, const w_frame *f);
  /* Called after a message has arrived; `before`: the view before. */
  void (*arrived)(w_region *r, size_t from, const w_frame *f, const gt_ps_view *before);
  /* The region has loaded a round, 0: none.  `newest`: the newest durable in any region. */
  void (*resumed)(w_region *r, int64_t round, int64_t newest);
  /* Called after any event at the region. */
  void (*event)(w_region *r);
} w_problem;
extern const w_problem w_plain, w_pipe;

typedef struct world {
  w_spec spec;
  const w_problem *problem;
  size_t n;
  gt_ns now;
  int64_t events, restarts, duplicates; /* duplicates: messages that had been applied */
  gt_rng rng;
  double weights[W_PLACES];
  w_region regions[W_PLACES];
  w_link links[W_PLACES][W_PLACES];
  int64_t replaced; /* messages replaced by newer ones, before they left */
  double bytes;     /* of posted data */
  /* of each epoch decided: the members, as bits */
  uint32_t epochs[W_EPOCHS];
  size_t decided;
  w_judged judged[W_ROUNDS]; /* how the regions have judged each round */
  struct pipeline *pipe;     /* NULL: regions have whole models */
} world;

/* ---- the world ------------------------------------------------------------------------------- */

world *w_open(const w_spec *spec);
void w_close(world *w);
gt_ps_view w_view(const world *w, size_t region);
bool w_all_in(const world *w, gt_ps_phase phase);
/* True if equal bit for bit. */
static inline bool w_same(const float *x, const float *y, size_t n) {
  return memcmp((const void *)x, (const void *)y, n * sizeof *x) == 0;
}
/* Prints the state of all, for a test that is about to fail. */
void w_print(const world *w);
#define w_check(w, condition)                                                                      \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      w_print(w);                                                                                  \
      fail_msg("%s does not hold", #condition);                                                    \
    }                                                                                              \
  } while (0)

/* Processes one event; false: none is left. */
bool w_step(world *w);
void w_steps(world *w, int64_t events);
/* Runs until every region is in `phase`: a world that takes more than ten minutes of its time is
   deadlocked. */
void w_run_until(world *w, gt_ps_phase phase);
/* Runs until all are complete, or all have stopped. */
void w_run(world *w);
/* Opens a world, and runs until all are complete. */
world *w_finished(const w_spec *spec);

/* ---- crash and resume ------------------------------------------------------------------------ */

w_copy *w_find_copy(w_region *r, int64_t round);
/* Returns the newest round durable in every region, 0: none; *newest: the newest in any region. */
int64_t w_whole_round(world *w, int64_t *newest);
/* Crashes every region and loses everything in flight; resumes from the newest round that is whole
   everywhere, and returns it. */
int64_t w_crash(world *w);
/* A region opens a round now; when it is whole, every region crashes. */
void w_crash_now(world *w, size_t opener);

/* ---- losses of regions (world_members.c) ----------------------------------------------------- */

/* As gt_ps_host; epoch checks that no two epochs have one number, and each has a majority. */
void w_host_epoch(void *ctx, int64_t number, const bool *members);
void w_host_place(void *ctx, const size_t *regions, size_t n, size_t *next);
void w_host_fault(void *ctx, gt_status status);
/* A region that has returned is connected to another one. */
void w_heal(world *w, size_t returned, size_t other);
/* The region `by` notices that it has lost another one. */
void w_notice(world *w, size_t lost, size_t by);
/* Parts of world.c: copies are checkpoints; round: the newest that any region has taken. */
void w_drop(w_region *r);
void w_open_ps(w_region *r, int64_t round, bool returns);
void w_quiet(world *w);
void w_forget_copy(w_region *r, size_t i);
void w_start_workers(w_region *r);
/* Also: a number below n; discard everything on the link, or what has not left; end a checkpoint
   that is being written; start a region again, which then asks to return. */
gt_ns w_below(world *w, gt_ns n);
void w_clear_link(w_link *link);
void w_clear_queues(w_link *link);
void w_end_writing(w_region *r);
void w_restart(w_region *r);

/* Crashes a region; the others notice within `most`.  Starts it again, from its newest durable
   checkpoint: the others have noticed then, and are connected to it within `most`. */
void w_kill(world *w, size_t region, gt_ns most);
void w_return(world *w, size_t region, gt_ns most);
/* Cuts the link between two regions for good; both notice within `most`. */
void w_cut(world *w, size_t a, size_t b, gt_ns most);

/* ---- regions with whole models --------------------------------------------------------------- */

/* Returns the gradient of parameter j for a batch: c (param - t), with a curvature c(region, j)
   from 0.5 to 1.25 and a target t(region, batch, j) of at most 4.  Parameters begin at
   w_start(j). */
double w_gradient(size_t region, int64_t batch, size_t j, double param);
float w_start(size_t j);
gt_optim_spec w_sgd(double lr, double momentum);
gt_optim_spec w_adamw(void);
gt_order w_order_of(const w_spec *spec, size_t region);
int64_t w_per_epoch(const w_spec *spec, size_t region);
/* Returns the AUC of the first n test samples, independent of the model. */
double w_auc(size_t n);
/* Checks that outboxes are bounded, and that every waiting worker gets keepalives. */
void w_check_bounds(world *w);
/* Checks that every batch number up to the end was trained exactly once, every sample `epochs`
   times; that every region has made so many steps.  Of both: that those without workers made no
   step and evaluated nothing. */
void w_check_epochs(world *w, int64_t epochs);
void w_check_steps(world *w, int64_t steps);
/* Returns the bytes of data that have left, all frames counted. */
double w_sent_bytes(const world *w);
bool w_lockstep(const w_spec *spec);
/* Checks that every region has received the last message of every other. */
void w_check_heard(world *w);
/* Checks that every region has the same bits. */
void w_check_identical(world *w);
/* Checks that the regions of both have the same bits. */
void w_check_same(world *w, const world *other);
/* Checks that every region has its start and all updates, those of others times the scale: each
   once. */
void w_check_conserved(world *w);
#define W_TOPOLOGIES 5
#define W_FORWARDING 3 /* the first so many forward updates and models; the others are for rounds */
extern const gt_topology w_topologies[W_TOPOLOGIES];
/* Returns a codec for regions with whole models: a matrix of 4 x 4, and 2 values. */
gt_exchange_codec w_codec(gt_codec_kind kind, double density);
/* Gives the world this topology, or a random one, with regions in random order. */
void w_place_over(w_spec *spec, gt_topology topology);
void w_place(w_spec *spec);
/* Makes the last one or two regions only aggregate; in half of the worlds the last is the hub. */
void w_aggregate(w_spec *spec);
/* Makes a random world with a mesh. */
w_spec w_random(const char *strategy, bool local_async, size_t nregions, uint64_t seed);
/* The same with a number of steps for each region, some none at all, and with lags. */
w_spec w_random_steps(const char *strategy, uint64_t seed);

/* ---- regions of a pipeline ------------------------------------------------------------------- */

/* The stages of a position, the same in all replicas. */
typedef struct {
  size_t nstages, nworkers, nparams, nbuffers;
  gt_ps_stage stages[P_STAGES];
  gt_ps_range params[P_STAGES][P_RANGES], buffers[P_STAGES][P_RANGES];
  gt_view tensors[P_TENSORS];
  size_t ntensors;
} p_shape;

/* How often a case occurred: steps that must be clipped, that must be dropped; checkpoints while
   the region was held; rounds of the same replica and of another one that waited for a step;
   acknowledgements that came before the region's checkpoint; messages that came while workers
   computed. */
typedef struct {
  int64_t clipped, dropped, held, waited[2], late, meanwhile;
} p_cases;

const p_shape *p_shape_of(const w_region *r);
const p_cases *p_cases_of(const world *w);
size_t p_replica_of(const w_region *r);
/* Returns the steps of the replica's checkpoints of a round; -1: none yet. */
int64_t p_steps_at(const world *w, size_t replica, int64_t round);
/* True if no region waits for another replica. */
bool p_is_free(const w_spec *spec);
/* Checks that the counts are those of the region's steps; for a single replica, also its model. */
void p_check_region(const w_region *r);
/* Checks that all replicas are complete, with the expected models. */
void p_check_end(world *w);
double p_loss(const w_region *r);
/* Checks that the score is the mean of the answers of workers of judging stages; none without
   them. */
void p_check_score(const w_region *r, const gt_ps_score *score);
