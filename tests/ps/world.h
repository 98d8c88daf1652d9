/* A deterministic world of regions in one process: each a PS with its workers, joined by links, with
   a checkpoint host.  Time is virtual.  world.c serves the PSs, moves the world from event to event,
   crashes it and brings it back.  What workers compute, and what must hold, is a problem: world_plain.c
   has regions with whole models, world_pipe.c the stages of a pipeline, or of copies of one. */
#ifndef GEOTRAIN_TESTS_PS_WORLD_H
#define GEOTRAIN_TESTS_PS_WORLD_H

#include "tests.h"
#include "geotrain/ps_state.h"

#define W_PLACES  9 /* for regions */
#define W_DESKS   9 /* for workers of a region */
#define W_GONE    64
#define W_BATCHES 256 /* numbers a region can be asked for */
#define W_MS      ((gt_ns)1000000)

/* Regions with whole models, in random worlds at most so many. */
#define W_REGIONS 5
#define W_WORKERS 4
#define W_PARAMS  6
#define W_BUFFERS 2
#define W_MODEL   (W_PARAMS + W_BUFFERS)
#define W_TEST    32 /* test samples that a region can have */
#define W_PIECE   2  /* floats of a piece, where messages have pieces */

/* Regions of a pipeline. */
#define P_COPIES  3
#define P_PLACES  4 /* regions of a copy */
#define P_STAGES  3 /* of a region */
#define P_RANGES  4
#define P_TENSORS 3 /* of a region */
#define P_PARAMS  24
#define P_BUFFERS 6
#define P_FLOATS  (P_PARAMS + P_BUFFERS)
#define P_STEPS   32

/* What a world is; 0 means the usual where there is one. */
typedef struct {
  const char *strategy;   /* of a pipeline: between its copies */
  const gt_sync_ops *ops; /* NULL: those of `strategy` */
  /* samples: the region's part; 0 workers, and 0 samples: it only aggregates */
  size_t nregions, workers[W_REGIONS], samples[W_REGIONS];
  bool local_async, no_data, by_samples;
  size_t batch, outbox, window;
  int64_t period;
  double momentum;
  gt_ps_interval until, eval_every, checkpoint_every;
  size_t test_samples;
  gt_link_spec link;
  double slow[W_REGIONS]; /* factor of a region's compute time */
  double write_s;         /* longest time that a checkpoint takes to be durable */
  int nonfinite_limit;    /* 0: 3 */
  /* every such batch number of region 0 gives a gradient that is not finite; of a pipeline one of so
     many pushes */
  int64_t bad_every;
  int64_t poison;  /* region 0's so many-th data message is not finite */
  int64_t unsound; /* region 0 would not go on from this round */
  double wan_bytes_limit;
  gt_ns keepalive, heartbeat;
  gt_topology topology;
  size_t next[W_REGIONS]; /* as in gt_exchange_spec */
  uint64_t seed;
  /* A pipeline, if places > 0: copies * places regions, those of place 0 first.  Links delay at
     random, and control overtakes data. */
  size_t copies, places;
  int64_t steps[P_COPIES];
  bool gradients, means; /* sync.exchange gradient, sync.scale mean */
  double clip;           /* train.clip */
  double rounds;         /* chance of a round that a region opens at an event */
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
  gt_ns at; /* of its arrival */
} w_frame;

typedef struct {
  w_frame *frames;
  size_t capacity, head, count;
} w_ring;

/* One direction: what waits, what is leaving, what is on its way. */
typedef struct {
  w_ring control, data, air[2]; /* air[0]: control that overtakes data */
  bool leaving;
  w_frame current;
  gt_ns depart, arrive, delay[2], last[2]; /* delay, last arrival: of control, of data */
  gt_link_state state;
  struct {
    uint64_t cookie;
    gt_ns at;
  } gone[W_GONE]; /* departures that the PS is yet to be told of */
  size_t ngone;
  int64_t data_sent;
} w_link;

typedef enum { W_STARTING, W_IDLE, W_TRAINING, W_EVALUATING, W_PUSHED } w_work;

/* What a worker of a pipeline pushes for a batch. */
typedef struct {
  float grads[P_PARAMS], buffers[P_BUFFERS];
  int64_t samples;
} p_push;

typedef struct {
  w_work work;
  gt_ns ready, heard;          /* when it answers; when it was last told anything */
  int64_t batch, first, count; /* first, count: test samples */
  const float *model;          /* that it evaluates; NULL: none yet */
  bool lent;                   /* its gradient is with the PS */
  float grads[P_PARAMS], buffers[P_BUFFERS];
  /* of a pipeline: what it was ordered to train on, as it was then; its last two pushes, and what
     messages have done to buffers since it was ordered: [batch % 2] */
  gt_vec params_lent, buffers_lent;
  float then[P_FLOATS], add[2][P_BUFFERS], keep[2];
  p_push pushed[2];
} w_worker;

/* What a region knows, and saves with a checkpoint, beside its PS. */
typedef struct {
  int64_t steps;
  int trained[W_BATCHES]; /* how often a batch has counted, since the beginning */
  /* of each peer: newest sequence applied; strategy's numbers of the last message applied; of the
     last one posted to it */
  int64_t applied[W_PLACES], applied_value[W_PLACES], posted_value[W_PLACES];
} w_kept;

/* What a region's file of a round holds. */
typedef struct {
  int64_t round;
  bool durable;
  gt_state state;
  w_kept kept;
} w_copy;

struct world;
struct pipeline;
typedef struct {
  struct world *world;
  size_t id, nworkers, nparams, nbuffers;
  gt_ps *ps;
  gt_optim *optim;
  float params[P_PARAMS], grads[P_PARAMS], buffers[P_BUFFERS], snapshot[P_FLOATS];
  w_worker workers[W_DESKS];
  w_kept kept;
  w_copy *copies;
  size_t ncopies;
  gt_ns written_at;
  int64_t writing;
  int64_t evals, orders, keepalives, nonfinite, nonfinite_messages, rounds, wholes;
  gt_ns wan_wait;
  int64_t decisions;
} w_region;

/* What workers compute, and what must hold. */
typedef struct {
  /* Once, when the world opens, before anything else; and when it closes. */
  void (*open)(struct world *w);
  void (*close)(struct world *w);
  /* The region as it begins: its parameters, its optimizer, and all of the spec but `round` and
     `host`. */
  void (*begin)(w_region *r, gt_ps_spec *spec);
  gt_ns (*compute_time)(w_region *r);
  /* An order to train or evaluate came to a worker; its answer is due. */
  void (*order)(w_region *r, w_worker *worker, const gt_ps_order *o);
  void (*train)(w_region *r, w_worker *worker);
  void (*evaluate)(w_region *r, w_worker *worker);
  void (*note)(w_region *r, gt_ps_note note, double b);
  void (*checkpoint)(w_region *r, int64_t round);
  /* Data is about to be applied. */
  void (*hear)(w_region *r, size_t from, const w_frame *f);
  /* A message has arrived; `before`: the view of before. */
  void (*arrived)(w_region *r, size_t from, const w_frame *f, const gt_ps_view *before);
  /* The region has loaded a round, 0: none.  `newest`: that was durable anywhere. */
  void (*resumed)(w_region *r, int64_t round, int64_t newest);
  /* Something has happened at the region. */
  void (*event)(w_region *r);
} w_problem;
extern const w_problem w_plain, w_pipe;

typedef struct world {
  w_spec spec;
  const w_problem *problem;
  size_t n;
  gt_ns now;
  int64_t events, restarts;
  gt_rng rng;
  double weights[W_PLACES];
  w_region regions[W_PLACES];
  w_link links[W_PLACES][W_PLACES];
  int64_t replaced;      /* messages by newer ones, before they left */
  double bytes;          /* of data that was posted */
  struct pipeline *pipe; /* NULL: regions have whole models */
} world;

/* ---- the world ------------------------------------------------------------------------------- */

world *w_open(const w_spec *spec);
void w_close(world *w);
gt_ps_view w_look(const world *w, size_t region);
bool w_all_in(const world *w, gt_ps_phase phase);
/* Bit for bit. */
bool w_same(const float *x, const float *y, size_t n);
/* Where everyone stands, for a test that is about to fail. */
void w_print(const world *w);
#define w_check(w, condition)                                                                      \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      w_print(w);                                                                                  \
      fail_msg("%s does not hold", #condition);                                                    \
    }                                                                                              \
  } while (0)

/* One event; false when there is none. */
bool w_step(world *w);
/* Until every region is in `phase`: a world that does not come there in ten minutes of its time is
   locked. */
void w_run_until(world *w, gt_ps_phase phase);
/* Until all are complete, or all have stopped. */
void w_run(world *w);

/* ---- crash and resume ------------------------------------------------------------------------ */

w_copy *w_find_copy(w_region *r, int64_t round);
/* The newest round durable in every region, 0: none; in *newest the newest anywhere. */
int64_t w_whole_round(world *w, int64_t *newest);
/* Every region is lost with all that was under way, and comes back from the newest round that is
   whole everywhere, which is returned. */
int64_t w_crash(world *w);

/* ---- regions with whole models: batch b of region r has the target t(r, b); loss 1/2 sum (w - t)^2 */

float w_target(size_t region, int64_t batch, size_t j);
gt_order w_order_of(const w_spec *spec, size_t region);
int64_t w_per_epoch(const w_spec *spec, size_t region);
/* Of the first n test samples, whatever the model. */
double w_auc(size_t n);
/* Outboxes are bounded; nobody who waits is left without a word. */
void w_check_bounds(world *w);
/* Every batch number up to the end trained exactly once, every sample `epochs` times. */
void w_check_epochs(world *w, int64_t epochs);
bool w_lockstep(const w_spec *spec);
/* Every region has the same bits. */
void w_check_identical(world *w);
/* Gives the world a topology at random: mesh, hub, tree, and where there are rounds ring or
   central. */
void w_place(w_spec *spec);
/* A world at random, with a mesh. */
w_spec w_random(const char *strategy, bool local_async, size_t nregions, uint64_t seed);

/* ---- regions of a pipeline ------------------------------------------------------------------- */

/* The stages of a place, the same in all copies. */
typedef struct {
  size_t nstages, nworkers, nparams, nbuffers;
  gt_ps_stage stages[P_STAGES];
  gt_ps_range params[P_STAGES][P_RANGES], buffers[P_STAGES][P_RANGES];
  gt_view tensors[P_TENSORS];
  size_t ntensors;
} p_shape;

/* How often a case was there: steps that must be clipped, that must be dropped; checkpoints while
   the region was held; rounds of the same copy and of another one that waited for a step;
   acknowledgements that came before the own checkpoint; messages that came while workers
   computed. */
typedef struct {
  int64_t clipped, dropped, held, waited[2], late, meanwhile;
} p_cases;

const p_shape *p_shape_of(const w_region *r);
const p_cases *p_cases_of(const world *w);
size_t p_copy_of(const w_region *r);
/* Steps of the copy's checkpoints of a round; -1: none yet. */
int64_t p_steps_at(const world *w, size_t copy, int64_t round);
/* No region waits for another copy. */
bool p_is_free(const w_spec *spec);
/* The counts are those of the steps that the region has made; of a single copy, its model too. */
void p_check_region(const w_region *r);
/* All copies are complete, with the models that they must have. */
void p_check_end(world *w);
double p_loss(const w_region *r);
/* The score is the mean of what the workers of stages that judge have answered; else there is
   none. */
void p_check_score(const w_region *r, const gt_ps_score *score);

#endif
