/* What the modules of planner share: candidates, sets of devices, and what simulations say of them.
   */
#ifndef GEOTRAIN_PLANNER_INTERNAL_H
#define GEOTRAIN_PLANNER_INTERNAL_H

#include "geotrain/job.h"
#include "geotrain/plan.h"
#include "geotrain/plan_job.h"
#include "geotrain/planner.h"
#include "geotrain/record.h"
#include "geotrain/sim.h"
#include "geotrain/sim_shape.h"

#define GT_PLANNER_TOLERANCE 0.01 /* a set is not slower than everything everywhere if it is by no more than this share */

/* What a region's set is chosen from: n counts from `first` on among those of all regions. */
typedef struct {
  size_t first, n;
  bool fixed; /* it keeps its ranks: its one count is that of its workers */
} gt_planner_pool;

/* A simulation of a set, and what it costs. */
typedef struct {
  bool known;           /* it was simulated; all else is 0 before */
  gt_figures figures;   /* of the run from its first step to its end; cost from the allocation to the end, NaN where no price is known */
  double error_s, part; /* what wall_s may be off, because only that part was simulated */
  gt_sim_doubt why;     /* that is more than a twentieth of wall_s */
  double train_s;       /* as gt_sim_forecast has it */
  double other_bytes;   /* of all links, beside figures.wan_bytes */
  int64_t samples, steps, messages;
  gt_cost_result cost; /* owned */
} gt_planner_outcome;

typedef enum { GT_PLANNER_LOW, GT_PLANNER_EXPECTED, GT_PLANNER_HIGH, GT_PLANNER_CASES } gt_planner_case;

/* Devices of all regions, and what is to be expected of them. */
typedef struct {
  int64_t *counts; /* NULL: there is none */
  gt_planner_outcome at[GT_PLANNER_CASES];
  gt_sim_forecast forecast; /* expected */
} gt_planner_set;

typedef struct {
  char *label;      /* "asgd-ga 8": its values, in the order of the axes; owned */
  char **overrides; /* what it sets in the job, as --set takes it: "sync.strategy=asgd-ga"; owned */
  size_t noverrides, room;
  gt_strategy strategy; /* of the job with that */
  int64_t period;       /* likewise; 0: the strategy has none */
  double factor;        /* times as many samples */
  gt_planner_set everything, set;
  bool whole;      /* the set is everything everywhere; set.counts is NULL then */
  bool fits;       /* deadline, budget and limits.wan_bytes hold; else `why` says which does not */
  bool *wan_bound; /* nregions: there the WAN and not computing sets the pace */
  int adjusted;    /* sets that a simulation showed to be too slow or too dear before this one */
  bool exact;      /* proven: every set there is was simulated, or cannot be better, and this one's bill is the best */
  double gap;      /* a set can be cheaper (or, with a budget and no deadline, faster) by this share at most; NAN: not known */
  int64_t sets;    /* so many sets were simulated */
  char why[256];
} gt_planner_candidate;

struct gt_planner {
  gt_planner_options options;
  gt_job *job; /* as given */
  gt_sim_shape shape;
  gt_job_prices prices;
  gt_planner_pool *pools;
  size_t ncounts;
  int64_t max_events; /* of a simulation */
  double sets_most;   /* with more sets than that they are not gone through one by one */
  gt_planner_candidate *candidates;
  size_t ncandidates, room;
  size_t cheapest, fastest, choice; /* of candidates */
  double slurm_s;                   /* what to ask Slurm for */
  char **notes;                     /* sentences for the end of the table; owned */
  size_t nnotes, notes_room;
};

/* planner.c: the job, its prices, its pools and its candidates, whose sets are not found yet.
   GT_ERR_JOB says what a plan cannot do with. The caller closes *out; after an error it is NULL. */
gt_status gt_planner_open(gt_planner **out, const gt_planner_options *options);

/* candidates.c */

/* What candidates differ in: a key of the job. Another axis is one row of gt_planner_axes: the
   label, the job that is simulated and written, and the JSON follow from it. */
typedef struct {
  const char *key; /* as --set takes it; behind the dot stands its name in the JSON */
  bool number;     /* its values are whole numbers, in the JSON too */
  /* Value i of those that the plan goes through, as --set takes it; false: there are no more.  Where
     there is none the job keeps its own, and the label says nothing of it. */
  bool (*value)(char *text, size_t size, const gt_job *job, size_t i);
  /* Whether it says something with what the candidate has set already; NULL: always. */
  bool (*applies)(const gt_planner_candidate *c);
} gt_planner_axis;
/* In the order of the label; the key of the last is NULL. */
extern const gt_planner_axis gt_planner_axes[];
/* What the candidate sets the key to, borrowed; NULL: nothing. */
const char *gt_planner_value(const gt_planner_candidate *c, const char *key);

/* Adds every combination of the axes' values, once: labels and overrides.  GT_ERR_JOB: the job's own
   strategy exchanges nothing. */
gt_status gt_planner_list_candidates(gt_planner *p, const gt_planner_axis *axes);
/* What follows from the job of each: strategy, period, factor. */
gt_status gt_planner_open_candidates(gt_planner *p);
/* The job as given, with the candidate's overrides and `more` behind them; the caller closes it. */
gt_status gt_planner_load(gt_job **out, const gt_planner *p, const gt_planner_candidate *c, const char *const *more, size_t nmore);
/* The set that is proposed. */
const gt_planner_set *gt_planner_proposed(const gt_planner_candidate *c);

/* forecast.c: gives the candidate's job these devices, and as much to train with them. */
void gt_planner_fit(gt_job *job, const gt_planner *p, const gt_planner_candidate *c, const int64_t *counts);
/* Simulates a case of a set, unless it is known already. */
gt_status gt_planner_simulate(const gt_planner *p, const gt_planner_candidate *c, gt_planner_set *set, gt_planner_case which);
void gt_planner_set_close(gt_planner_set *set);
/* The cost that sets are compared by: USD, or machine hours where no price is known. */
double gt_planner_cost(const gt_planner *p, const gt_planner_outcome *o);
/* Ranks of a region with these counts, its server included. */
int64_t gt_planner_ranks(const gt_planner *p, size_t region, const int64_t *counts);

/* sets.c: finds and simulates the candidate's set. */
gt_status gt_planner_find(const gt_planner *p, gt_planner_candidate *c);

/* limits.c: what a set must hold, by its high figure. Is a deadline or a budget asked for; are
   these or bytes limited; seconds that the run may take (INFINITY: as many as it likes). All but
   these take a set that is simulated as expected and at the high figure. */
bool gt_planner_asked(const gt_planner *p);
bool gt_planner_limited(const gt_planner *p);
double gt_planner_allowed(const gt_job *job);
/* The factor by which it misses; 1 or less: it holds. */
double gt_planner_over(const gt_planner *p, const gt_planner_set *set);
/* whole: it is everything everywhere.  `why` says what does not hold. */
bool gt_planner_fits(const gt_planner *p, const gt_planner_set *set, bool whole, char *why, size_t size);

/* bill.c: of everything everywhere, the candidate's set and as many others as the candidate's share
   of events allows, the best by the simulated bill becomes the candidate's set, which may then have
   to be simulated. problem: what the regions' sets may be; power: of each of its devices, before
   simulations corrected it; limit_s: the run may take so long, as expected. */
gt_status gt_planner_bill_decide(const gt_planner *p, gt_planner_candidate *c, const gt_plan_problem *problem, const double *power, double limit_s);

/* choose.c: the cheapest, the fastest and the choice; the time to ask Slurm for. GT_ERR_JOB: no
   candidate keeps what is asked for. */
gt_status gt_planner_choose(gt_planner *p);
/* notes.c: what must be said beside the figures of the choice. */
void gt_planner_add_notes(gt_planner *p);

#endif
