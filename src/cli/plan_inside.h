/* What the files of `geotrain plan` share: what is asked, candidates, sets of devices and what simulations say of them. */
#ifndef GEOTRAIN_CLI_PLAN_INSIDE_H
#define GEOTRAIN_CLI_PLAN_INSIDE_H

#include "geotrain/job.h"
#include "geotrain/plan.h"
#include "geotrain/plan_job.h"
#include "geotrain/record.h"
#include "geotrain/sim.h"
#include "geotrain/sim_shape.h"
#include "options.h"

#define PLANNER_TOLERANCE 0.01 /* a set is not slower than everything everywhere if it is by no more than this share */

typedef struct {
  gt_job_words words;
  const char *regions_csv, *write;
  double margin; /* computing and links may be so much faster or slower, as a share */
  bool json;
} planner_options;

/* What a region's set is chosen from: n counts from `first` on among those of all regions. */
typedef struct {
  size_t first, n;
  bool fixed; /* it keeps its ranks: its one count is that of its workers */
} planner_pool;

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
} planner_outcome;

typedef enum { PLANNER_LOW, PLANNER_EXPECTED, PLANNER_HIGH, PLANNER_CASES } planner_case;

/* Devices of all regions, and what is to be expected of them. */
typedef struct {
  int64_t *counts; /* NULL: there is none */
  planner_outcome at[PLANNER_CASES];
  gt_sim_forecast forecast; /* expected */
} planner_set;

typedef struct {
  gt_strategy strategy;
  int64_t period; /* 0: the strategy has none */
  double factor;  /* times as many samples */
  planner_set everything, set;
  bool whole;      /* the set is everything everywhere; set.counts is NULL then */
  bool fits;       /* deadline, budget and limits.wan_bytes hold; else `why` says which does not */
  bool *wan_bound; /* nregions: there the WAN and not computing sets the pace */
  int adjusted;    /* sets that a simulation showed to be too slow or too dear before this one */
  bool exact;      /* proven: every set there is was simulated, or cannot be better, and this one's bill is the best */
  double gap;      /* a set can be cheaper (or, with a budget and no deadline, faster) by this share at most; NAN: not known */
  int64_t sets;    /* so many sets were simulated */
  char why[256];
} planner_candidate;

typedef struct {
  const planner_options *options;
  gt_job *job; /* as given */
  gt_sim_shape shape;
  gt_job_prices prices;
  planner_pool *pools;
  size_t ncounts;
  int64_t max_events; /* of a simulation */
  double sets_most;   /* with more sets than that they are not gone through one by one */
  planner_candidate *candidates;
  size_t ncandidates;
  size_t cheapest, fastest, choice; /* of candidates */
  double slurm_s;                   /* what to ask Slurm for */
  char **notes;
  size_t nnotes;
} planner;

/* plan_candidates.c: the job's candidates, pools and checks.  GT_ERR_JOB says what a plan cannot do with. */
gt_status gt_planner_open(planner *p, const planner_options *options);
void gt_planner_close(planner *p);
/* "asgd-ga 8"; buf holds 64. */
char *gt_planner_name(char *buf, size_t size, const planner_candidate *c);
/* Another sentence for the end of the table. */
__attribute__((format(printf, 2, 3))) void gt_planner_note(planner *p, const char *format, ...);
/* The set that is proposed. */
const planner_set *gt_planner_set(const planner_candidate *c);

/* plan_forecast.c: the candidate's job with these devices, computing and links so many times as fast; the caller closes it. */
gt_status gt_planner_job(gt_job **out, const planner *p, const planner_candidate *c, const int64_t *counts, double speed);
/* Simulates a case of a set, unless it is known already. */
gt_status gt_planner_simulate(const planner *p, const planner_candidate *c, planner_set *set, planner_case which);
void gt_planner_set_close(planner_set *set);
/* The cost that sets are compared by: USD, or machine hours where no price is known. */
double gt_planner_cost(const planner *p, const planner_outcome *o);
/* Ranks of a region with these counts, its server included. */
int64_t gt_planner_ranks(const planner *p, size_t region, const int64_t *counts);

/* plan_sets.c: finds and simulates the candidate's set. */
gt_status gt_planner_find(const planner *p, planner_candidate *c);

/* plan_limits.c: what a set must hold, by its high figure.  Is a deadline or a budget asked for; are these or bytes limited; seconds that the run may take
   (INFINITY: as many as it likes).  All but these take a set that is simulated as expected and at the high figure. */
bool gt_planner_asked(const planner *p);
bool gt_planner_limited(const planner *p);
double gt_planner_allowed(const gt_job *job);
/* The factor by which it misses; 1 or less: it holds. */
double gt_planner_over(const planner *p, const planner_set *set);
/* whole: it is everything everywhere.  `why` says what does not hold. */
bool gt_planner_fits(const planner *p, const planner_set *set, bool whole, char *why, size_t size);

/* plan_bill.c: of everything everywhere, the candidate's set and as many others as the candidate's share of events allows, the
   best by the simulated bill becomes the candidate's set, which may then have to be simulated.  problem: what the regions'
   sets may be; power: of each of its devices, before simulations corrected it; limit_s: the run may take so long, as
   expected. */
gt_status gt_planner_bill(const planner *p, planner_candidate *c, const gt_plan_problem *problem, const double *power, double limit_s);

/* plan_choose.c: the cheapest, the fastest and the choice; notes; the time to ask Slurm for.  GT_ERR_JOB: no candidate keeps what is asked for. */
gt_status gt_planner_choose(planner *p);

/* plan_table.c, plan_json.c, plan_write.c */
void gt_planner_print(FILE *to, const planner *p);
gt_status gt_planner_json(FILE *to, const planner *p);
gt_status gt_planner_write(const planner *p, const char *path);

#endif
