/* plan: which devices each region uses, what they cost, and where to aggregate.  Layer 5.  Computes
   with numbers only, without MPI or files; only plan_job.h reads jobs.  All functions are local.
   Times in seconds, prices in USD per hour of one device or rank, costs in USD. */
#pragma once

#include "geotrain/base.h"
#include "geotrain/link.h"

/* ---- elastic scheduling -------------------------------------------------------------------------

   geotrain's rule sizes each region by its load power, LP = sum over its devices of count x power /
   samples held: the region with the least LP keeps all its devices, every other region takes the
   cheapest set with at least that LP.  (The idea is Cloudless-Training's, whose abstract gives no
   rule.)  That is the rule for epochs, `local: async` and no barrier.  Here the rule for every case
   follows from the time of a plan: each region takes its cheapest devices that are not slower than
   a limit.

     x_rt        number of devices of type t in region r, 0 <= x_rt <= count_rt,
                 ranks_min <= sum_t x_rt <= ranks_max; one device is one worker rank
     step_r(x)   seconds between two steps of the region, at least wan_step_s (the WAN's limit):
                 `async` (a step is one worker's batch) batch / sum_t x_rt power_rt;
                 `sync` (a step is one batch of every worker)
                 batch / min over x_rt > 0 of power_rt
     steps_r(x)  until steps: steps; otherwise the batches left, and with `sync`
                 ceil(batches / sum_t x_rt).  Batches are counted as in a run: until epochs
                 ceil(epochs x ceil(samples held / batch)), until samples (of each region)
                 ceil(samples / batch).  For T(x), with `together` and `sync`: the batches of all
                 regions that hold samples / their ranks, the same in each region
     own_r(x)    steps_r(x) step_r(x), and with a barrier exchange_s for each of its exchanges
     T(x)        no barrier: max over r of own_r(x); the other regions wait (and are paid for until
                 all are done);
                 barrier: exchanges are every `period` steps of all regions that still make steps;
                 a region's last exchange comes after its remaining steps.  The sum over exchanges k
                 of exchange_s + max over those regions of the time of their steps before it

   `Everything everywhere` is all devices or, if ranks_max forbids that, the most powerful ones (the
   cheapest of equally powerful ones).  Times and costs with a relative difference below 1e-12 count
   as equal. */

typedef struct {
  int64_t count;
  double power; /* samples/s of one device, > 0 */
  double price; /* USD per hour of one device, 0 or more */
} gt_plan_device;

typedef struct {
  const gt_plan_device *devices;
  size_t ndevices;
  double samples;               /* held by the region: one epoch */
  int64_t ranks_min, ranks_max; /* workers; 0: at least 1, no maximum */
  double ps_price;              /* USD per hour of its PS rank */
  /* minimum mean time between two steps that the WAN allows; 0: no limit */
  double wan_step_s;
} gt_plan_region;

/* A set is an array of counts, one per device of each region, in order. */
typedef struct {
  const gt_plan_region *regions;
  size_t nregions;
  bool local_sync, barrier;
  int64_t batch;     /* samples of one worker's step */
  int64_t period;    /* barrier: steps between exchanges */
  double exchange_s; /* barrier: time that an exchange adds */
  double epochs;     /* exactly one of these is > 0 */
  int64_t steps, samples;
  int64_t together; /* with samples: number of regions that make the same number of steps, or 0 */
} gt_plan_problem;

/* Writes the set of everything everywhere to counts. */
void gt_plan_everything(const gt_plan_problem *problem, int64_t *counts);
/* Returns T(x), in seconds; counts has at least one device in each region. */
double gt_plan_time(const gt_plan_problem *problem, const int64_t *counts);
/* Finds the set with the least own_r(x) of every region.  Returns the greatest of these times, or
   INFINITY if a region has too few devices. */
double gt_plan_fastest(const gt_plan_problem *problem, int64_t *counts);
/* Applies the rule: writes the cheapest set of every region with own_r(x) <= limit_s.  Returns
   false if a region has no such set; counts is then unspecified.  *rate: a lower bound for the USD
   per hour of all such sets, equal to the rate of this one unless the search of a region reached
   its limit of nodes.  The limit is a count, so that the same problem always has the same
   answer. */
bool gt_plan_elastic(const gt_plan_problem *problem, double limit_s, int64_t *counts, double *rate);

/* ---- cost ---------------------------------------------------------------------------------------

   The cost model of "Towards Geo-Distributed Training of ML Models in a Multi-Cloud Environment"
   (Phalak et al., ICPE 2024 Companion), equations (1) to (9), and its architecture: workers on VMs
   write gradients to object storage, a function aggregates them and writes the model, workers poll
   for the model and read it.  Every term is a field.  A GB is 1e9 bytes; a month is
   GT_PLAN_MONTH_S.  docs/planning-cost.md lists what the study leaves open and what is chosen
   here. */

#define GT_PLAN_MONTH_S (730.0 * 3600)

/* A tier: the price of a GB above from_gb of the pool's volume in a month. */
typedef struct {
  double from_gb, usd_per_gb;
} gt_plan_tier;

/* The price of moving data from one site to another.  Tiers ascend, and the first starts at 0;
   without tiers it is free.  The volumes of one pool (one vendor, one kind of data) are added
   up. */
typedef struct {
  const gt_plan_tier *tiers; /* borrowed */
  size_t ntiers, pool;
} gt_plan_tariff;

/* An amount of data with its tariff. */
typedef struct {
  const gt_plan_tariff *tariff; /* borrowed */
  double gb, usd;               /* usd is output */
} gt_plan_flow;

/* Computes usd of every flow: gb times the mean price of its tariff over the pool's volume.
   Assumes that all flows of a pool progress in proportion, so that their order does not matter, and
   that used_gb[pool] moved earlier in the month (npools entries; NULL: none).  Local; never
   fails. */
void gt_plan_egress(gt_plan_flow *flows, size_t nflows, const double *used_gb, size_t npools);

/* Rates of a site: one vendor at one place. */
typedef struct {
  double vm_hour;          /* R_vm, USD per hour of one machine */
  double function_gb_s;    /* R_mem, USD per GB of memory and second */
  double storage_gb_month; /* R_st */
  /* R_reads, R_writes, R_lists: USD per request, a thousandth of the rates in equation (5) */
  double read, write, list;
  double memory_gb;    /* M_GB of a function */
  double add_s_per_gb; /* a function's own work per GB read, seconds */
} gt_plan_rates;

/* Sites by number; tariffs and links [from * n + to].  All traffic is from a machine or function to
   a storage (`up`), or back (`down`).  up and down may be NULL if only cost is computed.  All
   borrowed. */
typedef struct {
  size_t n;
  const gt_plan_rates *rates;
  const gt_plan_tariff *tariffs;
  const gt_link_spec *up, *down;
} gt_plan_sites;

typedef struct {
  size_t site;    /* of its VM */
  size_t point;   /* its regional aggregator; 0: none */
  double train_s; /* per mini-batch */
} gt_plan_worker;

/* An aggregator: the sites of its function and of the storage that holds the gradients. */
typedef struct {
  size_t function, storage;
} gt_plan_point;

/* The sites of all parts.  Without regional aggregators (nregional 0), workers write to the storage
   of `global`, whose function writes the model there.  With them, a worker writes to its region's
   storage.  The region's function reads and adds these gradients and writes the sum to the storage
   of `global`.  The global function reads the sums and writes the model to every region's storage,
   where the workers poll for it. */
typedef struct {
  const gt_plan_sites *sites;
  const gt_plan_worker *workers;
  size_t nworkers;
  gt_plan_point global;
  const gt_plan_point *regional;
  size_t nregional;
  double model_bytes;    /* m: size of a gradient, a sum and the model */
  int64_t batches;       /* of the run: tiers apply to its total volume */
  bool objects_by_month; /* (5) to the letter: one object stays a month per batch and aggregator;
                            false: objects stay for as long as they are needed */
} gt_plan_placement;

/* Resources that an aggregator uses per mini-batch, mean over the run. */
typedef struct {
  double function_s;   /* T_FaaS: of all its invocations */
  double stored_gb_s;  /* GB times seconds in its storage */
  double failed_reads; /* l: reads of its storage before the model is available */
} gt_plan_use;

/* The cost of a mini-batch in USD, mean over the run.  Numbers in parentheses are those of the
   study's equations. */
typedef struct {
  double total;                         /* (1) compute + storage + transfer */
  double compute, iaas, faas;           /* (2) iaas + faas, (3), (4) */
  double storage;                       /* (5) stored + reads + writes + lists */
  double stored, reads, writes, lists;  /* terms of (5) */
  double transfer;                      /* (6) dt_iaas + dt_faas + dt_storage */
  double dt_iaas, dt_faas, dt_storage;  /* (7), (8), (9) to_function + to_workers */
  double dt_to_function, dt_to_workers; /* terms of (9) */
  /* numbers of requests; in the central architecture 2n + l, n + 1 and n */
  double n_reads, n_writes, n_lists;
} gt_plan_terms;

/* Returns equations (1) to (9) for a placement.  Workers use vm_s[nworkers] (T_vm per mini-batch,
   mean over the run), aggregators use[nregional + 1], the global one last. used_gb, npools: as for
   gt_plan_egress.  Local; never fails. */
gt_plan_terms gt_plan_cost(const gt_plan_placement *placement, const double *vm_s,
                           const gt_plan_use *use, const double *used_gb, size_t npools);

/* ---- placement: the time of a mini-batch ----------------------------------------------------- */

/* Times in addition to training and the links. */
typedef struct {
  /* time between a worker's requests for the model, or the round trip if that is longer */
  double poll_s;
  /* from an object's arrival to the start of the function that it invokes; not billed */
  double start_s;
} gt_plan_pace;

/* A mini-batch: means over the run and, for phases, over workers. train_s + upload_s + wait_s +
   download_s is a worker's whole mini-batch. */
typedef struct {
  double batch_s;           /* the run's time divided by its batches */
  double train_s, upload_s; /* upload: until the storage acknowledges the gradient */
  /* wait: until the request that finds the model reaches the storage; download: until the worker
     has the model */
  double wait_s, download_s;
  /* part of wait_s: from the last gradient's arrival until the model is in the storage; the rest is
     waiting for other workers, or between requests */
  double aggregate_s;
  /* part of wait_s: from then until a worker's request finds the model */
  double request_s;
  double upload_max_s, download_max_s; /* of the slowest worker */
} gt_plan_split;

/* Simulates all batches with the link model.  Each object has its own link (gt_wire_send on a fresh
   one).  A worker's upload and a function's first request to a storage have a set-up (setup_rtts);
   models that workers poll for and objects that a function has listed use existing connections.
   Workers start their next batch independently.  Writes vm_s[nworkers] and use[nregional + 1] for
   gt_plan_cost.  Requires sites->up and down.  Local; never fails. */
gt_plan_split gt_plan_place(const gt_plan_placement *placement, const gt_plan_pace *pace,
                            double *vm_s, gt_plan_use *use);

/* ---- cost of geotrain's own topology: rates times use, planned or measured; no invoice ---- */

/* Billing of machine time: in whole steps of step_s, at least min_s. 0: no steps, no minimum. */
typedef struct {
  double step_s, min_s;
} gt_plan_billing;

/* Returns the billed time of a run of `seconds`, in seconds. */
double gt_plan_billed(double seconds, const gt_plan_billing *billing);

/* A region's worker ranks, PS rank and time.  The last four fields are output, in USD. */
typedef struct {
  int64_t workers;
  double worker_price, ps_price; /* USD per hour of one rank */
  double seconds;
  gt_plan_billing billing;
  /* egress: of the links that start here; usd: the sum */
  double worker_usd, ps_usd, egress_usd, usd;
} gt_plan_cost_region;

/* One direction and all its traffic, since vendors bill every byte. usd is output. */
typedef struct {
  size_t from, to; /* regions */
  double bytes;
  gt_plan_tariff tariff;
  double usd;
} gt_plan_cost_link;

typedef struct {
  /* machine: sum of the first two; usd: machine and egress */
  double worker_usd, ps_usd, machine_usd, egress_usd, usd;
  double machine_hours; /* billed, of all ranks */
} gt_plan_cost_sum;

/* Computes machine hours and egress of a run, in total, by region and by link.  Local; never
   fails. */
gt_plan_cost_sum gt_plan_topology_cost(gt_plan_cost_region *regions, size_t nregions,
                                       gt_plan_cost_link *links, size_t nlinks,
                                       const double *used_gb, size_t npools);
