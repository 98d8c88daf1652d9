/* plan: which devices each region takes, what that costs, and where to aggregate.  Layer 5.  Numbers only: no MPI, no files; no job but in plan_job.h.  Everything is local.
   Times in seconds, prices in USD an hour of one device or rank, costs in USD. */
#ifndef GEOTRAIN_PLAN_H
#define GEOTRAIN_PLAN_H

#include "geotrain/base.h"
#include "geotrain/link.h"

/* ---- elastic scheduling --------------------------------------------------------------------------------------------

   geotrain's rule (the idea is Cloudless-Training's, whose abstract gives no rule) sizes each region by its load power, LP = sum over its devices of count x power / samples held: the
   region with the least LP keeps all it has, every other takes the cheapest set that reaches it.  That is the rule for epochs, `local: async` and no barrier.  Here it is derived for every case from one objective:

     x_rt        devices of type t that region r takes, 0 <= x_rt <= count_rt, ranks_min <= sum_t x_rt <= ranks_max; one device is one worker rank
     step_r(x)   seconds between two steps of the region: `async` (a step is one worker's batch) batch / sum_t x_rt power_rt; `sync` (a step is one batch of every worker)
                 batch / min over x_rt > 0 of power_rt; and never less than wan_step_s, at which the WAN lets steps go
     steps_r(x)  until steps: steps; else the batches to go, and with `sync` ceil(batches / sum_t x_rt); batches, as a run counts them: until epochs
                 ceil(epochs x ceil(samples held / batch)), until samples (of each region) ceil(samples / batch)
     T(x)        no barrier: max over r of steps_r(x) step_r(x), and the others wait (they are paid for until all are done);
                 barrier: exchanges are every `period` steps of all regions that still make steps, a region's last one after what steps are left: the sum over exchanges k of
                 exchange_s + max over those regions of the time of their steps before it
     cost(x)     (start_s + T(x)) / 3600 x sum over r of (ps_price_r + sum_t x_rt price_rt)

   `Everything everywhere` is all devices, or where ranks_max forbids that the most powerful ones (of equally powerful ones the cheapest).
   A deadline:              least cost subject to T(x) <= deadline_s, and to cost(x) <= budget where there is one.
   Neither:                 least cost subject to T(x) <= T(everything everywhere).
   A budget, no deadline:   least T(x) subject to cost(x) <= budget, however slow; of plans equally fast the cheapest.
   A plan is never dearer than everything everywhere.  Times and costs that differ by less than 1e-12 of themselves are the same. */

typedef struct {
  int64_t count;
  double power; /* samples/s of one device, > 0 */
  double price; /* USD an hour of one, 0 or more */
} gt_plan_device;

typedef struct {
  const gt_plan_device *devices;
  size_t ndevices;
  double samples;               /* held: what an epoch takes */
  int64_t ranks_min, ranks_max; /* workers; 0: 1, and no upper end */
  double ps_price;              /* USD an hour of its PS rank */
  double wan_step_s;            /* the WAN lets no two steps be closer, on average; 0: it does not matter */
} gt_plan_region;

typedef struct {
  const gt_plan_region *regions;
  size_t nregions;
  bool local_sync, barrier;
  int64_t batch;     /* samples of one worker's step */
  int64_t period;    /* barrier: steps between exchanges */
  double exchange_s; /* barrier: what an exchange adds */
  double epochs;     /* exactly one of these is > 0 */
  int64_t steps, samples;
  double start_s;    /* paid for before the first step; no deadline counts it */
  double deadline_s; /* 0: none */
  double budget;     /* USD; 0: none */
} gt_plan_problem;

typedef struct {
  int64_t *counts;     /* of all regions' devices, one after another in their order; gt_plan_counts many; the caller's */
  double time_s, cost; /* T(x), cost(x) */
  double bound;        /* no feasible plan costs less; cost when exact.  With a budget and no deadline: none takes less time; time_s when exact */
  bool exact;          /* proven: cost (time) is the least there is */
  size_t slowest;      /* region whose own steps and exchanges take longest: at the end all wait for it */
  size_t wan_bound;    /* regions whose steps go at the WAN's pace and not at their devices' */
} gt_plan_answer;

/* Devices of all regions together: how long gt_plan_answer.counts is. */
size_t gt_plan_counts(const gt_plan_problem *problem);
/* Writes everything everywhere to counts (gt_plan_counts many). */
void gt_plan_everything(const gt_plan_problem *problem, int64_t *counts);
/* T(x) and cost(x), slowest and wan_bound of answer->counts, with one device or more in each region; the other fields are left alone. */
void gt_plan_value(const gt_plan_problem *problem, gt_plan_answer *answer);
/* Finds the best plan.  Exact where the search ends within its work limit (a count of steps, not a time: the same problem gets the same answer); else `bound` says how far from it the
   plan can be.  With a barrier and regions that make different numbers of steps the search is exact for few regions with few devices (4 regions of 3 or 8 types, as tried: within 0.03); beyond 32
   regions it guesses, and the bound, that of regions which wait for nobody, says little (0.6 to 0.8 for 1,000 regions).
   GT_ERR_JOB: no plan is possible, in one sentence that says why: a number that cannot be, region (by number, from 0) without a device, ranks_min above what there is, deadline before
   the fastest plan's end (which it names), budget below the cheapest plan's cost (likewise); answer is then unspecified. */
gt_status gt_plan_elastic(const gt_plan_problem *problem, gt_plan_answer *answer);

/* ---- cost ------------------------------------------------------------------------------------------------------------

   The cost model of "Towards Geo-Distributed Training of ML Models in a Multi-Cloud Environment" (Phalak et al., ICPE 2024 Companion), equations (1) to (9), and its
   architecture: workers on VMs write gradients to object storage, a function aggregates them and writes the model, workers poll for it and read it.  Every term is a field.
   A GB is 1e9 bytes; a month is GT_PLAN_MONTH_S.  What the study leaves open, and what is chosen here, is in docs/planning-cost.md. */

#define GT_PLAN_MONTH_S (730.0 * 3600)

/* From so many GB of its pool's month on, a GB costs so much. */
typedef struct {
  double from_gb, usd_per_gb;
} gt_plan_tier;

/* What moving data from one site to another costs: tiers ascend, the first is from 0; none: nothing.  Volumes of one pool (one vendor's, of one kind) count together. */
typedef struct {
  const gt_plan_tier *tiers; /* borrowed */
  size_t ntiers, pool;
} gt_plan_tariff;

/* So much data, moved by that tariff. */
typedef struct {
  const gt_plan_tariff *tariff; /* borrowed */
  double gb, usd;               /* usd is written */
} gt_plan_flow;

/* Writes usd of every flow.  All flows of a pool move at the same time, in proportion, after used_gb[pool] that the month has seen before (npools many; NULL: nothing), so that
   their order does not matter: a flow costs its gb times its tariff's mean price over what the pool moves.  Local; never fails. */
void gt_plan_egress(gt_plan_flow *flows, size_t nflows, const double *used_gb, size_t npools);

/* Rates of a site: one vendor at one place. */
typedef struct {
  double vm_hour;           /* R_vm, USD an hour of one machine */
  double function_gb_s;     /* R_mem, USD a GB of memory and second */
  double storage_gb_month;  /* R_st */
  double read, write, list; /* R_reads, R_writes, R_lists: USD of one request, a thousandth of equation (5)'s */
} gt_plan_rates;

/* Sites by number; tariffs and links [from * n + to] (links may be NULL where only cost is asked for).  All borrowed. */
typedef struct {
  size_t n;
  const gt_plan_rates *rates;
  const gt_plan_tariff *tariffs;
  const gt_link_spec *links;
} gt_plan_sites;

typedef struct {
  size_t site;    /* of its VM */
  size_t point;   /* where its gradients go: its regional aggregator; without any, 0 */
  double train_s; /* of a mini-batch */
} gt_plan_worker;

/* An aggregator: sites of its function and of the storage that gradients wait in. */
typedef struct {
  size_t function, storage;
} gt_plan_point;

/* Where everything is.  Without regional aggregators (nregional 0) workers write to the storage of `global`, whose function writes the model there.
   With them: a worker writes to its region's storage; the region's function reads and adds these gradients and writes the sum to the storage of `global`; the global
   function reads the sums, and writes the model to every region's storage, where the workers poll for it. */
typedef struct {
  const gt_plan_sites *sites;
  const gt_plan_worker *workers;
  size_t nworkers;
  gt_plan_point global;
  const gt_plan_point *regional;
  size_t nregional;
  double model_bytes; /* m: gradient, sum and model are equally large */
  double memory_gb;   /* M_GB of each function */
  int64_t batches;    /* of the run: tiers see them all */
} gt_plan_placement;

/* What an aggregator takes for a mini-batch, mean over the run. */
typedef struct {
  double function_s;   /* T_FaaS: of all its invocations */
  double stored_gb_s;  /* GB times seconds that lie in its storage */
  double failed_reads; /* l: reads of its storage before the model is there */
} gt_plan_use;

/* The cost of a mini-batch in USD, mean over the run.  Numbers are those of the study's equations. */
typedef struct {
  double total;                         /* (1) compute + storage + transfer */
  double compute, iaas, faas;           /* (2) iaas + faas, (3), (4) */
  double storage;                       /* (5) stored + reads + writes + lists */
  double stored, reads, writes, lists;  /* terms of (5) */
  double transfer;                      /* (6) dt_iaas + dt_faas + dt_storage */
  double dt_iaas, dt_faas, dt_storage;  /* (7), (8), (9) to_function + to_workers */
  double dt_to_function, dt_to_workers; /* terms of (9) */
  double n_reads, n_writes, n_lists;    /* requests: of the central architecture 2n + l, n + 1 and n */
} gt_plan_terms;

/* Equations (1) to (9) of a placement whose workers take vm_s[nworkers] (T_vm of a mini-batch, mean over the run) and whose aggregators take use[nregional + 1], the global
   one last.  used_gb, npools: as for gt_plan_egress.  Local; never fails. */
gt_plan_terms gt_plan_cost(const gt_plan_placement *placement, const double *vm_s, const gt_plan_use *use, const double *used_gb, size_t npools);

/* ---- placement: the mini-batch of a placement in time ---------------------------------------------------------------- */

/* What takes time beside training and the links. */
typedef struct {
  double poll_s;       /* a worker asks for the model so long after it asked last, or when the answer is back */
  double start_s;      /* from an object's arrival to the function that it invokes; not billed */
  double add_s_per_gb; /* the function's own work on a GB that it has read */
} gt_plan_pace;

/* A mini-batch, means over the run and, of phases, over workers: train_s + upload_s + wait_s + download_s is a worker's whole mini-batch. */
typedef struct {
  double batch_s;            /* the run's time over its batches */
  double train_s, upload_s;  /* upload: until the storage has said that it has the gradient */
  double wait_s, download_s; /* wait: until the request that finds the model is at the storage; download: until the model is at the worker */
  double
      aggregate_s; /* of wait_s: from the last gradient's arrival until the model is in the storage; the rest waits for other workers, or between requests */
  double request_s;                    /* of wait_s: from then until a worker's request finds it */
  double upload_max_s, download_max_s; /* of the slowest worker */
} gt_plan_split;

/* Runs all batches on the clock of the link model: each object goes over a link of its own (gt_link_step on a fresh state), set up anew (setup_rtts) where a worker uploads and where
   a function first asks a storage, without set-up where a connection is there already (models that workers poll for, objects that a function has listed).  Workers go on to the next batch
   on their own.  Writes vm_s[nworkers] and use[nregional + 1], as gt_plan_cost takes them.  sites->links are needed.  Local; never fails. */
gt_plan_split gt_plan_place(const gt_plan_placement *placement, const gt_plan_pace *pace, double *vm_s, gt_plan_use *use);

/* ---- cost of geotrain's own topology: rates times use, planned or measured; not a bill --------------------------------- */

/* How machine time is billed: in steps of step_s, begun ones too, and min_s at least.  0: to the second's fraction, and from none on. */
typedef struct {
  double step_s, min_s;
} gt_plan_billing;

/* What is billed of so many seconds, in seconds. */
double gt_plan_billed(double seconds, const gt_plan_billing *billing);

/* A region: worker ranks and its PS rank, for so long; the last four are written, in USD. */
typedef struct {
  int64_t workers;
  double worker_price, ps_price; /* USD an hour of one rank */
  double seconds;
  gt_plan_billing billing;
  double worker_usd, ps_usd, egress_usd, usd; /* egress: of the links that begin here; usd: the sum */
} gt_plan_cost_region;

/* One direction, and what crossed it (all traffic: vendors count every byte); usd is written. */
typedef struct {
  size_t from, to; /* regions */
  double bytes;
  gt_plan_tariff tariff;
  double usd;
} gt_plan_cost_link;

typedef struct {
  double worker_usd, ps_usd, machine_usd, egress_usd, usd; /* machine: the first two; usd: machine and egress */
  double machine_hours;                                    /* billed, of all ranks */
} gt_plan_cost_sum;

/* Machine hours and egress of a run, by term, by region and by link.  Local; never fails. */
gt_plan_cost_sum gt_plan_topology_cost(gt_plan_cost_region *regions, size_t nregions, gt_plan_cost_link *links, size_t nlinks, const double *used_gb,
                                       size_t npools);

#endif
