/* Shared by the modules of planner: candidates, sets of devices, and the results of their
   simulations. */
#ifndef GEOTRAIN_PLANNER_INTERNAL_H
#define GEOTRAIN_PLANNER_INTERNAL_H

#include "geotrain/job.h"
#include "geotrain/plan.h"
#include "geotrain/plan_job.h"
#include "geotrain/planner.h"
#include "geotrain/record.h"
#include "geotrain/sim.h"
#include "geotrain/sim_choose.h"
#include "geotrain/sim_shape.h"

/* a set up to this share slower than everything everywhere counts as not slower */
#define GT_PLANNER_TOLERANCE 0.01

/* The devices from which a region's set is chosen: n counts from `first` on in the counts of all
   regions. */
typedef struct {
  size_t first, n;
  bool fixed; /* it keeps its ranks: its only count is the number of its workers */
} gt_planner_pool;

/* A simulation of a set, and its cost. */
typedef struct {
  bool known; /* it was simulated; all else is 0 until then */
  /* time from the first step to the end; cost from the allocation to the end, NaN if no price is
     known */
  gt_figures figures;
  double error_s, part; /* uncertainty of wall_s, because only `part` of the run was simulated */
  gt_sim_doubt why;     /* reason if error_s is more than a twentieth of wall_s */
  double train_s;       /* as in gt_sim_forecast */
  double other_bytes;   /* on all links, in addition to figures.wan_bytes */
  int64_t samples, steps, messages;
  gt_cost_result cost; /* owned */
} gt_planner_outcome;

typedef enum {
  GT_PLANNER_LOW,
  GT_PLANNER_EXPECTED,
  GT_PLANNER_HIGH,
  GT_PLANNER_CASES
} gt_planner_case;

/* Devices of all regions, and their predicted results. */
typedef struct {
  int64_t *counts; /* NULL: no set */
  gt_planner_outcome at[GT_PLANNER_CASES];
  gt_sim_forecast forecast; /* for the expected case */
} gt_planner_set;

typedef struct {
  char *label;      /* "asgd-ga 8": its values in the order of the axes; owned */
  char **overrides; /* settings of the job, in the form of --set: "sync.strategy=asgd-ga"; owned */
  size_t noverrides, room;
  gt_strategy strategy;        /* of the job with these overrides */
  int64_t period;              /* likewise; 0: the strategy has no period */
  double factor;               /* relative number of samples */
  gt_topology_choice topology; /* if sync.topology is auto or tree: what was chosen */
  bool chosen;
  gt_planner_set everything, set;
  bool whole; /* the set is everything everywhere; set.counts is then NULL */
  /* deadline, budget and limits.wan_bytes hold; otherwise `why` says which does not */
  bool fits;
  bool *wan_bound; /* nregions: the WAN, not computing, sets the pace */
  /* number of earlier sets that a simulation showed to be too slow or too expensive */
  int adjusted;
  /* proven: every other set was simulated or ruled out, and this one's bill is the best */
  bool exact;
  /* another set can be cheaper (or, with a budget and no deadline, faster) by at most this share;
     NAN: unknown */
  double gap;
  int64_t sets; /* number of simulated sets */
  char why[256];
} gt_planner_candidate;

struct gt_planner {
  gt_planner_options options;
  gt_job *job; /* as given by the user */
  gt_sim_shape shape;
  gt_job_prices prices;
  gt_planner_pool *pools;
  size_t ncounts;
  int64_t max_events; /* per simulation */
  double sets_most;   /* with more sets than this they are not enumerated */
  gt_planner_candidate *candidates;
  size_t ncandidates, room;
  size_t cheapest, fastest, choice; /* indices of candidates */
  double slurm_s;                   /* time limit for Slurm */
  char **notes;                     /* sentences after the table; owned */
  size_t nnotes, notes_room;
};

/* planner.c: the job, its prices, its pools and its candidates, still without sets.  GT_ERR_JOB
   says what the job lacks for a plan.  The caller closes *out; after an error it is NULL. */
gt_status gt_planner_open(gt_planner **out, const gt_planner_options *options);

/* candidates.c */

/* A dimension in which candidates differ: a key of the job.  A new axis is one new row of
   gt_planner_axes; the label, the job that is simulated and written, and the JSON follow from
   it. */
typedef struct {
  const char *key; /* in the form of --set; the part after the dot is its name in the JSON */
  bool number;     /* its values are integers, also in the JSON */
  /* Value i of the plan's list, in the form of --set; false: there are no more.  Without any value
     the job keeps its own, and the label omits it. */
  bool (*value)(char *text, size_t size, const gt_job *job, size_t i);
  /* Whether the key has an effect together with the candidate's other settings; NULL: always. */
  bool (*applies)(const gt_planner_candidate *c);
} gt_planner_axis;
/* In the order of the label; ends with a NULL key. */
extern const gt_planner_axis gt_planner_axes[];
/* The candidate's value of the key, borrowed; NULL: not set. */
const char *gt_planner_value(const gt_planner_candidate *c, const char *key);

/* Adds every distinct combination of the axes' values: labels and overrides.  GT_ERR_JOB: the job's
   own strategy exchanges nothing. */
gt_status gt_planner_list_candidates(gt_planner *p, const gt_planner_axis *axes);
/* Sets strategy, period, factor and topology from each candidate's job.  GT_ERR_JOB: no topology
   can be chosen. */
gt_status gt_planner_open_candidates(gt_planner *p);
/* Loads the job as given, with the candidate's overrides and then `more`; the caller closes it. */
gt_status gt_planner_load(gt_job **out, const gt_planner *p, const gt_planner_candidate *c,
                          const char *const *more, size_t nmore);
/* The proposed set. */
const gt_planner_set *gt_planner_proposed(const gt_planner_candidate *c);

/* forecast.c: gives the candidate's job these devices, and the same amount of training. */
void gt_planner_fit(gt_job *job, const gt_planner *p, const gt_planner_candidate *c,
                    const int64_t *counts);
/* Simulates a case of a set, unless this was done before. */
gt_status gt_planner_simulate(const gt_planner *p, const gt_planner_candidate *c,
                              gt_planner_set *set, gt_planner_case which);
void gt_planner_set_close(gt_planner_set *set);
/* The cost by which sets are compared: USD, or machine hours if no price is known. */
double gt_planner_cost(const gt_planner *p, const gt_planner_outcome *o);
/* Ranks of a region with these counts, including its server. */
int64_t gt_planner_ranks(const gt_planner *p, size_t region, const int64_t *counts);

/* search.c: finds and simulates the candidate's set. */
gt_status gt_planner_find(const gt_planner *p, gt_planner_candidate *c);

/* limits.c: the limits of a set, by its high figure.  In this order: whether a deadline or a budget
   is asked for; whether these or bytes are limited; the seconds that the run may take (INFINITY: no
   limit).  The remaining functions take a set that is simulated for the expected and the high
   case. */
bool gt_planner_asked(const gt_planner *p);
bool gt_planner_limited(const gt_planner *p);
double gt_planner_allowed(const gt_job *job);
/* The factor by which it exceeds its limits; 1 or less: it fits. */
double gt_planner_over(const gt_planner *p, const gt_planner_set *set);
/* whole: the set is everything everywhere.  `why` names the limit that it exceeds. */
bool gt_planner_fits(const gt_planner *p, const gt_planner_set *set, bool whole, char *why,
                     size_t size);

/* planner.c: finds the cheapest candidate, the fastest and the choice, and the time limit for
   Slurm. GT_ERR_JOB: no candidate fits. */
gt_status gt_planner_choose(gt_planner *p);
/* write.c: writes the text of a job to a file, completely or not at all.  GT_ERR_JOB: it cannot be
   written, or is no job. */
gt_status gt_planner_put(const char *path, const char *text);

#endif
