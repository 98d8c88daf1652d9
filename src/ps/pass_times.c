/* The time of a pipeline's workers by phase: every interval between two events of a worker is added
   to the phase of its state. */
#include "geotrain/ps_pass_times.h"

_Static_assert(GT_PHASE_FORWARD == (int)GT_PASS_F && GT_PHASE_BACKWARD_INPUT == (int)GT_PASS_B &&
                   GT_PHASE_BACKWARD_WEIGHT == (int)GT_PASS_W &&
                   GT_PHASE_BACKWARD == (int)GT_PASS_BW,
               "the first phases are the kinds of passes");

/* State of a worker. */
typedef enum {
  STARTING, /* no order yet */
  WAITING,  /* in a step, between passes */
  PASSING,
  ENDING, /* it sends its gradient */
  PUSHED, /* other workers continue the step, or it is being applied */
  EVALUATING
} doing;

typedef struct {
  doing doing;
  gt_pass_kind kind; /* of PASSING */
  gt_ns since;
  gt_phase_times sums;
} worker_times;

struct gt_pass_times {
  worker_times *workers;
  size_t nworkers;
  size_t npushed;  /* workers in PUSHED */
  gt_ns all_since; /* the last of all workers has pushed */
  bool begun, ended;
};

gt_pass_times *gt_pass_times_create(size_t nworkers) {
  gt_pass_times *t = GT_NEW(gt_pass_times);
  t->workers = GT_NEW_ARRAY(worker_times, nworkers);
  t->nworkers = nworkers;
  return t;
}

void gt_pass_times_close(gt_pass_times *t) {
  if (!t) return;
  gt_free(t->workers);
  gt_free(t);
}

/* ---- booking --------------------------------------------------------------------------------- */

static gt_ns at_most(gt_ns span, gt_ns limit) {
  return span < 0 ? 0 : span < limit ? span : limit;
}

/* Adds `part` of the interval to one phase, and the rest to another. */
static void book(gt_phase_times *sums, gt_ns span, gt_phase phase, gt_ns part, gt_phase rest) {
  const gt_ns booked = at_most(part, span);
  sums->of[phase] += booked;
  sums->of[rest] += span - booked;
}

/* Returns the part of the interval in which the worker waits for the step's end: until all workers
   of the region have pushed, and then while it is held for other regions.  The rest is the PS's own
   work. */
static gt_ns step_end(const gt_pass_times *t, const worker_times *w, gt_ns held, gt_ns now) {
  const bool all = t->npushed == t->nworkers || t->all_since >= w->since;
  return (all ? t->all_since : now) - w->since + held;
}

/* Adds the time since the worker's last event to its phases. */
static void settle(const gt_pass_times *t, const worker_times *w, gt_ns held, gt_ns now,
                   gt_phase_times *sums) {
  const gt_ns span = now - w->since;
  switch (w->doing) {
  case STARTING:
  case ENDING:
    sums->of[GT_PHASE_UPDATE] += span;
    break;
  case WAITING:
    sums->of[GT_PHASE_BUBBLE] += span;
    break;
  case PASSING:
    sums->of[w->kind] += span;
    break;
  case PUSHED:
    book(sums, span, GT_PHASE_STEP_END, step_end(t, w, held, now), GT_PHASE_UPDATE);
    break;
  case EVALUATING:
    sums->of[GT_PHASE_EVALUATION] += span;
    break;
  }
}

static void become(worker_times *w, doing what, gt_ns now) {
  w->doing = what;
  w->since = now;
}

/* ---- events ---------------------------------------------------------------------------------- */

void gt_pass_times_begin(gt_pass_times *t, gt_ns now) {
  for (size_t w = 0; w < t->nworkers && !t->begun; w++) become(&t->workers[w], STARTING, now);
  t->begun = true;
}

void gt_pass_times_ordered(gt_pass_times *t, size_t worker, bool evaluates, gt_ns held, gt_ns now) {
  worker_times *w = &t->workers[worker];
  if (t->ended) return;
  gt_pass_times_begin(t, now);
  settle(t, w, held, now, &w->sums);
  if (w->doing == PUSHED) t->npushed--;
  become(w, evaluates ? EVALUATING : WAITING, now);
}

void gt_pass_times_begins(gt_pass_times *t, size_t worker, gt_pass_kind kind, gt_ns sent,
                          gt_ns now) {
  worker_times *w = &t->workers[worker];
  if (t->ended || w->doing != WAITING) return;
  const gt_ns from = sent > w->since ? sent : w->since;
  book(&w->sums, now - w->since, GT_PHASE_TRANSFER, now - from, GT_PHASE_BUBBLE);
  become(w, PASSING, now);
  w->kind = kind;
}

void gt_pass_times_done(gt_pass_times *t, size_t worker, gt_ns compute, gt_ns now) {
  worker_times *w = &t->workers[worker];
  if (t->ended || w->doing != PASSING) return;
  book(&w->sums, now - w->since, (gt_phase)w->kind, compute, GT_PHASE_UPDATE);
  become(w, WAITING, now);
}

void gt_pass_times_ends(gt_pass_times *t, size_t worker, gt_ns now) {
  worker_times *w = &t->workers[worker];
  if (t->ended || w->doing != WAITING) return;
  settle(t, w, 0, now, &w->sums);
  become(w, ENDING, now);
}

void gt_pass_times_pushed(gt_pass_times *t, size_t worker, gt_ns now) {
  worker_times *w = &t->workers[worker];
  if (t->ended || w->doing != ENDING) return;
  settle(t, w, 0, now, &w->sums);
  become(w, PUSHED, now);
  if (++t->npushed == t->nworkers) t->all_since = now;
}

void gt_pass_times_end(gt_pass_times *t, const gt_ns *held, gt_ns now) {
  if (t->ended || !t->begun) return;
  for (size_t w = 0; w < t->nworkers; w++)
    settle(t, &t->workers[w], held[w], now, &t->workers[w].sums);
  t->ended = true;
}

/* ---- results --------------------------------------------------------------------------------- */

gt_phase_times gt_pass_times_of(const gt_pass_times *t, size_t worker, gt_ns held, gt_ns now) {
  const worker_times *w = &t->workers[worker];
  gt_phase_times sums = w->sums;
  if (t->begun && !t->ended) settle(t, w, held, now, &sums);
  return sums;
}

void gt_pass_times_add(gt_pass_times *t, size_t worker, const gt_phase_times *earlier) {
  for (size_t i = 0; i < GT_NPHASES; i++) t->workers[worker].sums.of[i] += earlier->of[i];
}
