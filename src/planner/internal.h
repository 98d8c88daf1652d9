/* Shared by the modules of planner: candidates, sets of devices, and results of their
   simulations. */
#pragma once

#include "geotrain/job_prices.h"
#include "geotrain/plan.h"
#include "geotrain/plan_job.h"
#include "geotrain/planner.h"
#include "geotrain/record.h"
#include "geotrain/sim.h"
#include "geotrain/sim_choose.h"
#include "geotrain/sim_shape.h"

/* a set counts as not slower if it is at most this share slower than everything everywhere */
#define GT_PLANNER_TOLERANCE 0.01

/* The devices from which a region's set is chosen: n counts, from `first` on, in the counts of all
   regions. */
typedef struct {
  size_t first, n;
  bool fixed; /* it keeps its ranks; its only count is its number of workers */
} gt_planner_pool;

/* A simulation of a set, and its cost. */
typedef struct {
  bool known; /* it was simulated; until then all else is 0 */
  /* time from the first step to the end; cost from the allocation to the end, NaN if no price is
     known */
  gt_figures figures;
  double error_s, part; /* uncertainty of wall_s, because only `part` of the run was simulated */
  gt_sim_doubt why;     /* the reason, if error_s is more than a twentieth of wall_s */
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
  gt_strategy strategy; /* of the job with these overrides */
  int64_t period;       /* likewise; 0: the strategy has no period */
  gt_codec_kind codec;
  double factor; /* relative number of samples */
  /* Its codec is one of plan.codecs without a factor from a pilot run: it is shown, and never
     chosen.  After the search, false if it exceeds a limit anyway. */
  bool unproven;
  gt_topology_choice topology; /* the chosen topology, if sync.topology is auto or tree */
  bool chosen;
  gt_planner_set everything, set;
  bool whole; /* the set is everything everywhere; set.counts is then NULL */
  /* meets deadline, budget and limits.wan_bytes; otherwise `why` names the limit that it exceeds */
  bool fits;
  bool *wan_bound; /* nregions: the WAN, not computing, sets the pace */
  /* number of earlier sets that were too slow or too expensive in simulation */
  int adjusted;
  /* proven: every other set was simulated or ruled out, and this one's bill is the best */
  bool exact;
  /* another set can be cheaper (or, with a budget and no deadline, faster) by at most this share;
     NAN: unknown */
  double gap;
  int64_t sets; /* number of simulated sets */
  char why[256];
} gt_planner_candidate;

/* The run of the choice with the job's faults, simulated in full, and without them. */
typedef struct {
  bool known, endless;
  gt_status code; /* as in gt_sim_totals */
  double wall_s, undisturbed_s;
  gt_cost_result cost; /* owned */
  gt_fault_result found;
} gt_planner_faults;

struct gt_planner {
  gt_planner_options options;
  gt_job *job; /* as given by the user */
  gt_sim_shape shape;
  gt_job_prices prices;
  gt_planner_pool *pools;
  size_t ncounts;
  int64_t max_events; /* per simulation */
  double sets_most;   /* limit for enumerating all sets */
  gt_planner_candidate *candidates;
  size_t ncandidates, room;
  size_t cheapest, fastest, choice; /* indices of candidates */
  gt_planner_faults faults;
  double slurm_s; /* time limit for Slurm */
  char **notes;   /* sentences after the table; owned */
  size_t nnotes, notes_room;
};

/* planner.c: opens the job, its prices, pools and candidates, without sets.  GT_ERR_JOB names the
   data that the job lacks for a plan.  The caller closes *out; after an error it is NULL. */
gt_status gt_planner_open(gt_planner **out, const gt_planner_options *options);

/* candidates.c */

/* A dimension in which candidates differ: a key of the job.  A new axis is one new row of
   gt_planner_axes; label, simulated and written job, and JSON follow from it. */
typedef struct {
  const char *key;  /* in the form of --set */
  const char *name; /* in the JSON */
  bool number;      /* its values are integers, also in the JSON */
  /* Writes value i of the plan's list, in the form of --set; false: the list has ended.  Without
     values the job keeps its own, and the label omits it. */
  bool (*value)(char *text, size_t size, const gt_job *job, size_t i);
  /* True if the key has an effect with the candidate's other settings; NULL: always. */
  bool (*applies)(const gt_planner_candidate *c);
} gt_planner_axis;
/* In the order of the label; ends with a NULL key. */
extern const gt_planner_axis gt_planner_axes[];
/* Returns the candidate's value of the key, borrowed; NULL: not set. */
const char *gt_planner_value(const gt_planner_candidate *c, const char *key);

/* Adds every distinct combination of the axes' values: labels and overrides.  GT_ERR_JOB: the job's
   own strategy exchanges nothing. */
gt_status gt_planner_list_candidates(gt_planner *p, const gt_planner_axis *axes);
/* Sets strategy, period, factor and topology from each candidate's job.  GT_ERR_JOB: no topology
   can be chosen. */
gt_status gt_planner_open_candidates(gt_planner *p);
/* Loads the user's job with the candidate's overrides, then `more`; the caller closes it. */
gt_status gt_planner_load(gt_job **out, const gt_planner *p, const gt_planner_candidate *c,
                          const char *const *more, size_t nmore);
/* Returns the proposed set. */
const gt_planner_set *gt_planner_proposed(const gt_planner_candidate *c);

/* forecast.c: gives the candidate's job these devices, and the same amount of training. */
void gt_planner_fit(gt_job *job, const gt_planner *p, const gt_planner_candidate *c,
                    const int64_t *counts);
/* Simulates a case of a set, unless it is simulated already. */
gt_status gt_planner_simulate(const gt_planner *p, const gt_planner_candidate *c,
                              gt_planner_set *set, gt_planner_case which);
void gt_planner_set_close(gt_planner_set *set);
/* Simulates the choice with the job's faults, if it has any and the run has few enough events. */
gt_status gt_planner_disturb(gt_planner *p);
/* Returns the cost that compares sets: USD, or machine hours if no price is known. */
double gt_planner_cost(const gt_planner *p, const gt_planner_outcome *o);
/* Returns the ranks of a region with these counts, including its PS. */
int64_t gt_planner_ranks(const gt_planner *p, size_t region, const int64_t *counts);

/* search.c: finds and simulates the candidate's set. */
gt_status gt_planner_find(const gt_planner *p, gt_planner_candidate *c);

/* limits.c: the limits of a set, by its high figure. gt_planner_asked: true with a deadline or a
   budget; gt_planner_limited: true with one of these or a limit on bytes; gt_planner_allowed:
   returns the seconds that the run may take (INFINITY: no limit).  The remaining functions take a
   set with simulated expected and high cases. */
bool gt_planner_asked(const gt_planner *p);
bool gt_planner_limited(const gt_planner *p);
double gt_planner_allowed(const gt_job *job);
/* Returns the factor by which the set exceeds its limits; it fits if this is at most 1. */
double gt_planner_over(const gt_planner *p, const gt_planner_set *set);
/* True if the set fits; otherwise `why` names the limit that it exceeds. whole: the set is
   everything everywhere. */
bool gt_planner_fits(const gt_planner *p, const gt_planner_set *set, bool whole, char *why,
                     size_t size);

/* planner.c: finds the cheapest candidate, the fastest, the choice, and the time limit for Slurm.
   GT_ERR_JOB: no candidate fits. */
gt_status gt_planner_choose(gt_planner *p);
/* write.c: writes the text of a job to a file, completely or not at all.  GT_ERR_JOB: the file
   cannot be written, or the text is not a job. */
gt_status gt_planner_put(const char *path, const char *text);
