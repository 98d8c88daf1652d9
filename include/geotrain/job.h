/* job: the job file: schema, defaults, ranges, units, overrides, the resolved job.  Layer 1.  Everything is local.
   src/job/schema.c holds the one table behind validation, defaults, nearest-name errors and `geotrain help job`. */
#ifndef GEOTRAIN_JOB_H
#define GEOTRAIN_JOB_H

#include <stdio.h>

#include "geotrain/base.h"
#include "geotrain/base_families.h"

/* "every: {epochs: 1}", "until: {steps: 100}": exactly one is > 0; all 0: never. */
typedef struct {
  double epochs;
  int64_t steps, samples;
  double minutes;
} gt_job_interval;

/* What work costs: for the virtual clock, and in real time with compute.emulate.  0: not said. */
typedef struct {
  double samples_per_s;      /* of one worker in training */
  double step_s;             /* or the time of one worker's full batch */
  double speed;              /* a worker's speed in proportion to what the two above say; under the real clock it is slowed so (0 < speed <= 1) */
  double eval_samples_per_s; /* of one worker in evaluation */
  double local_s;            /* from a push to the next order and its parameters, beside the PS's own work */
  double resume_s;           /* what each of the first steps after an idle wait takes longer (ps.h: GT_RESUME_WAIT, GT_RESUME_STEPS) */
  double update_s;           /* the PS applies a step */
  double apply_s;            /* the PS applies a message */
  double encode_s;           /* the PS prepares a message */
  double checkpoint_bps;     /* the checkpoint directory takes so many bits a second */
} gt_job_compute;

/* Devices of one type that a region has; one device is one worker rank. */
typedef struct {
  char *type;
  int64_t count;
  double power; /* samples/s of one in training; 0: not said (gt_job_device_power says what holds) */
  double price; /* USD an hour of one; below 0: not said, the region's, else the catalogue's by place */
} gt_job_device;

typedef struct {
  char *name;
  char *data_path; /* the region's own file, or NULL: data.path */
  char **hosts;    /* host names of the region, or NULL */
  size_t nhosts;
  int ranks;              /* PS rank included; 2 or more; 0: auto, which a plan resolves (gt_job_check_run) */
  double access_bps;      /* of each direction, shared by the region's links; 0: unlimited */
  gt_job_compute compute; /* 0: the job's */
  double *speeds;         /* one a worker, times compute.speed; NULL: all 1 */
  size_t nspeeds;
  double *measured; /* one a worker, in proportion to samples_per_s, as probe found it: what it is, while speeds are what it shall be; NULL: all 1 */
  size_t nmeasured;
  gt_job_device *devices; /* or NULL */
  size_t ndevices;
  char *place; /* in the catalogue of rates, or NULL */
  /* USD an hour of a worker rank (of a device that has none), and of the PS rank; below 0: not said, the catalogue's by place. */
  double price, ps_price;
  int64_t samples;          /* that the region holds, where a plan or a simulation has no data set at hand; 0: not said */
  int ranks_min, ranks_max; /* workers that a plan may choose; 0: not said */
  struct {                  /* how the batch system is asked for it, where that is not as for the whole job */
    char *partition, *constraint;
    int nodes; /* whole nodes of its own; 0: not said */
    char **options;
    size_t noptions;
  } slurm;
} gt_job_region;

typedef struct {
  char *a, *b;     /* names of regions: `between`, both directions */
  char *from, *to; /* or one direction; NULL: both */
  size_t ia, ib;   /* their ids; one direction: from ia to ib */
  double bandwidth_bps, latency_s, jitter_s, loss;
  char *trace;                                          /* file, or NULL */
  double setup_rtts, eager_bytes, window_bytes, idle_s; /* the transport term (link.h); 0: none */
} gt_job_link;

/* How many times as many samples a candidate needs as the others. */
typedef struct {
  gt_strategy strategy;
  int64_t period; /* 0: whatever it is */
  double factor;
} gt_job_factor;

/* Between two regions, both directions, no bit leaves for for_s from from_s on.  In any order; those of one pair do not overlap. */
typedef struct {
  char *a, *b;
  size_t ia, ib;
  double from_s, for_s;
} gt_job_outage;

/* Strings are owned by the job.  Numbers are in the units of their names. */
typedef struct {
  char *name;
  uint64_t seed;
  struct {
    gt_model_id name;
    int64_t parameters; /* of the model "dummy"; 0: its own few */
    int64_t embedding;  /* of the model "deepfm": numbers of an id's vector; 0: its own */
    int64_t *mlp;       /* of the model "deepfm": widths of hidden layers; NULL: its own */
    size_t nmlp;
  } model;
  struct {
    char *path;
    struct {
      gt_part_kind by;
      double *shares; /* one a region, or NULL: equal */
      size_t nshares;
      double alpha;
    } partition;
    gt_augment augment;
    double *mean, *std; /* one a channel, both or neither; NULL: as the files say */
    size_t nmean, nstd;
  } data;
  struct {
    gt_job_interval until, eval_every;
    int batch;
    struct {
      gt_optimizer name;
      double lr, momentum, weight_decay, beta1, beta2, epsilon;
      bool nesterov;
    } optimizer;
    struct {
      gt_lr_kind name;
      double gamma, lr_min;
      int64_t warmup_steps, step_every;
    } schedule;
    gt_precision precision;
    gt_kernels_id kernels;
    char *choices; /* measure | rule | a file of choices */
    char *init;    /* checkpoint file to take parameters from, or NULL */
  } train;
  gt_job_region *regions;
  size_t nregions;
  struct {
    gt_local local;
    gt_strategy strategy;
    int64_t period;
    gt_topology topology;
    char *hub; /* name of the region that adds up; NULL: the one that all reach soonest */
    gt_weights weights;
    gt_scale scale;
  } sync;
  struct {
    bool emulate;
    int outbox;
    gt_job_link *links; /* each direction is named once */
    size_t nlinks;
    gt_job_link fallback; /* wan.default: of every direction that links do not name; has no ends and no trace; all 0: not given, unlimited */
    char *matrix;         /* CSV of links (from,to,mbit_s,ms[,jitter_ms[,loss]]); read when the job is loaded, and part of `links` since; then NULL */
    gt_job_outage *outages;
    size_t noutages;
  } wan;
  gt_job_compute compute;   /* of every region that says nothing else */
  double compute_variation; /* standard deviation of a step's time over its mean, seeded */
  bool compute_emulate;     /* under the real clock too, a step takes at least what compute says */
  char *profile;            /* file that `geotrain probe` wrote; merged when the job is loaded; then NULL */
  struct {
    gt_job_interval every;
    int keep;
  } checkpoint;
  struct {
    double wan_patience_s, local_s;
    int nonfinite;
    double wan_bytes; /* 0: none */
  } limits;
  struct {
    double every_s; /* seconds between progress lines in a log */
  } log;
  struct {                   /* what `geotrain plan` goes by and what it found; training itself takes no notice, the summary's cost and plan do */
    gt_strategy *strategies; /* candidates, times periods; NULL: the job's own */
    size_t nstrategies;
    int64_t *periods;
    size_t nperiods;
    gt_job_factor *factors;
    size_t nfactors;
    double deadline_s, budget; /* budget in USD; 0: none */
    double start_s, billing_s; /* from allocation to the first step; what machines are billed by */
    char *catalogue;           /* file or folder of rates, or NULL */
    struct {
      gt_strategy strategy;                                          /* GT_STRATEGY_NONE: no prediction */
      double wall_s, wall_low_s, wall_high_s, step_s, samples_per_s; /* 0: not said */
      double wan_bytes, waiting, cost;                               /* waiting is a share of the time, cost in USD; below 0: not said */
      char *made;                                                    /* by which version and when */
    } predicted;
  } plan;
  struct { /* what slurm/submit asks for; the program itself takes no notice.  But for the prologue, strings have nothing in them that a shell takes
              apart */
    char *partition, *constraint, *account, *qos, *reservation;
    double time_s;          /* the job's time limit; 0: not said */
    double signal_before_s; /* how long before it the ranks are told to stop with a checkpoint */
    int cpus_per_rank;
    double memory_per_cpu; /* bytes; 0: not said */
    char *mpi;             /* srun's --mpi, or "mpirun" */
    char **options;
    size_t noptions;
    char **prologue; /* lines of shell: they stand in the script as they are */
    size_t nprologue;
  } slurm;
} gt_job;

/* Reads, overrides, fills defaults, checks.  sets: nsets strings "a.b=value".  GT_ERR_JOB with one sentence that names the file, the key, what was found and
   what is needed; an unknown key or value is answered with the nearest known one.  The caller owns *out and closes it. */
gt_status gt_job_load(gt_job **out, const char *path, const char *const *sets, size_t nsets);
/* The same with regions of a CSV file, a line each, below a first line that names its columns: name and ranks, and of samples, place, step, samples_per_s, speed, access,
   price and ps_price what there is; an empty field is not given.  They take the place of the job file's regions and of what names those: wan.links, wan.matrix,
   wan.outages, data.partition.shares; wan.default is the link of all.  sets come after.  Errors name the file, its line and the column.  regions_csv NULL: gt_job_load. */
gt_status gt_job_load_regions(gt_job **out, const char *path, const char *const *sets, size_t nsets, const char *regions_csv);
/* The same of a resolved job's text, as checkpoints hold it; errors name `source`. */
gt_status gt_job_parse(gt_job **out, const char *source, const char *text);
void gt_job_close(gt_job *job);
/* The resolved job as YAML that gt_job_load reads back to the same job; the caller frees it. */
char *gt_job_resolved(const gt_job *job);
/* The resolved job for scripts: a line a value, `path=value`, entries of lists by their number from 0 (`regions.0.name=eu`); times in seconds, rates in bit/s
   and sizes in bytes, as decimal numbers without exponent or unit; what is not given is left out. */
void gt_job_flat(const gt_job *job, FILE *to);
/* Ranks that the job needs; of a job that gt_job_check_run takes. */
int gt_job_ranks(const gt_job *job);
/* GT_ERR_JOB names a region whose ranks are auto. */
gt_status gt_job_check_ranks(const gt_job *job);
/* What planning and simulating can do without and a run cannot: ranks that are numbers, and a data set.  GT_ERR_JOB says what is missing. */
gt_status gt_job_check_run(const gt_job *job);
/* Tells, a sentence each, what the job says and most likely does not mean: a momentum that adam does not have, emulation without
   links, a warm-up longer than the run.  `tell` gets text that lives until it returns. */
void gt_job_warn(const gt_job *job, void (*tell)(const char *text));
/* The same of a region that holds so many samples: a warm-up longer than its part of the run, a batch larger than what it holds. */
void gt_job_warn_region(const gt_job *job, size_t region, int64_t samples, void (*tell)(const char *text));
/* What work costs in a region: its own figures where it gives them (a profile's went before them when the job was loaded), else the job's, else samples_per_s is
   the power of its fastest device; speed 1, evaluation three times as fast as training where nothing is said. */
gt_job_compute gt_job_compute_of(const gt_job *job, size_t region);
/* The speed of a worker's device in proportion to that: 1, but where devices say it and are of several types; workers take them in the order of the list. */
double gt_job_worker_share(const gt_job *job, size_t region, size_t worker);
/* samples/s of one worker with this device of the region, the share of the time that it shall run (compute.speed) in it: what a profile, else compute, else the
   device itself says; 0: nothing does. */
double gt_job_device_power(const gt_job *job, size_t region, size_t device);
/* The link from region a to region b (ids): the one that names them, else wan.default, else NULL: unlimited. */
const gt_job_link *gt_job_link_between(const gt_job *job, size_t a, size_t b);
/* Names the first key in which two resolved jobs differ, with both values: "sync.period is 8 there and 4 here"; empty when they are the same.
   Keys that a resume may change (train.until, checkpoint, limits, ranks, hosts, speeds, measured, devices, prices, plan, log, slurm) are passed over when `for_resume`. */
void gt_job_difference(const char *here, const char *there, bool for_resume, char *text, size_t size);
/* `geotrain help job`: every key with type, unit, default, range and meaning, then an example. */
void gt_job_help(FILE *to);
/* The same as the page docs/job-file.md. */
void gt_job_help_markdown(FILE *to);

/* ---- catalogues of rates -----------------------------------------------------------------------------------------------

   CSV files of prices and links of clouds at places, a line a rate: `rate,cloud,place,to_cloud,to_place,from_gb,value,assumed`.  place, to_cloud and to_place may be `*`: any;
   the line that is most exact counts: to_place before `*`, then to_cloud, then place.  to_cloud and to_place belong to
   egress and links; from_gb to egress, one line a tier, the first from 0.  assumed: empty, or the word `assumed`.  Empty lines, and what follows a #, are passed over. */

typedef enum {
  GT_RATE_VM_HOUR,          /* vm_hour: USD an hour of one machine */
  GT_RATE_VM_STEP_S,        /* vm_step_s: its time is billed in steps of so many seconds */
  GT_RATE_VM_MIN_S,         /* vm_min_s: and for so many at least */
  GT_RATE_FUNCTION_GB_S,    /* function_gb_s: USD a GB of memory and second */
  GT_RATE_STORAGE_GB_MONTH, /* storage_gb_month: USD */
  GT_RATE_READ,             /* read_request: USD of one */
  GT_RATE_WRITE,            /* write_request */
  GT_RATE_LIST,             /* list_request */
  GT_RATE_EGRESS_GB,        /* egress_gb: USD a GB */
  GT_RATE_LINK_MBIT_S,      /* link_mbit_s: of one TCP stream */
  GT_RATE_LINK_RTT_MS,      /* link_rtt_ms: there and back */
  GT_RATES
} gt_rate_kind;

typedef struct {
  double from_gb, value;
  bool assumed;
  const char *file; /* and line: where it stands; lives as long as the catalogue */
  size_t line;
} gt_rate;

typedef struct gt_catalogue gt_catalogue;

/* A cloud at a place. */
typedef struct {
  const char *cloud, *place;
} gt_rate_site;

/* Reads a CSV file, or all files of a folder whose names end in ".csv".  GT_ERR_JOB names file, line, what was found and what is needed: a line that cannot be read, a negative value, two lines
   of one rate, tiers that do not begin at 0, a receiving place or cloud that has no rates of its own.  The caller owns *out. */
gt_status gt_catalogue_read(gt_catalogue **out, const char *path);
/* Likewise into a catalogue that is there: its rates take the place of those with the same rate, cloud, place, to_cloud and to_place.  On an error the catalogue can only be closed. */
gt_status gt_catalogue_add(gt_catalogue *catalogue, const char *path);
void gt_catalogue_close(gt_catalogue *catalogue);
/* GT_ERR_JOB, with the nearest known name, where the catalogue has no such cloud or place; `where` says who asks ("--clouds"). */
gt_status gt_catalogue_has_cloud(const gt_catalogue *catalogue, const char *where, const char *cloud);
gt_status gt_catalogue_has_place(const gt_catalogue *catalogue, const char *where, const char *place);
/* "CLOUD:PLACE" as the catalogue's names, borrowed; GT_ERR_JOB where it is not of that form or the catalogue has no such cloud or place.  `where` as above ("regions.0.place"). */
gt_status gt_catalogue_site(const gt_catalogue *catalogue, const char *where, const char *text, gt_rate_site *out);
/* The rate of a site, or from one to another (`to` NULL for rates of one site): *n tiers at *out, borrowed; one for all but egress.  GT_ERR_JOB where it is missing, with the line that
   is needed. */
gt_status gt_catalogue_rate(const gt_catalogue *catalogue, gt_rate_kind kind, gt_rate_site site, const gt_rate_site *to, const gt_rate **out,
                            size_t *n);
/* Names of places, in the order in which they first stand in the files; NULL after the last.  Borrowed. */
const char *const *gt_catalogue_places(const gt_catalogue *catalogue);
/* "vm_hour" and so on. */
const char *gt_rate_name(gt_rate_kind kind);
/* The rates that geotrain comes with: jobs/prices here, else share/geotrain/prices beside the program or one folder up.  Where there are none, path is jobs/prices. */
void gt_catalogue_default(char *path, size_t size);

/* ---- prices of a job -----------------------------------------------------------------------------------------------------

   What the job says, else the catalogue (plan.catalogue, else gt_catalogue_default) by regions[].place: the one answer for plans and for runs. */

typedef struct {
  double usd; /* an hour; below 0: not known */
  bool assumed;
} gt_job_price;

typedef struct {
  gt_job_price *devices;   /* of one of each of the region's devices; without devices one entry, a worker rank's */
  gt_job_price ps;         /* of its PS rank */
  double min_s;            /* machines are billed for so long at least (vm_min_s of its place; 0 without one), and in steps of plan.billing */
  bool has_place, assumed; /* assumed: min_s */
  size_t site;             /* of its place */
} gt_job_region_prices;

/* What data costs from one site to another: rates are USD a GB, borrowed from the catalogue, ascending tiers (none: no two regions need it).  What one cloud sends to its own
   places, and what it sends to others, count together in a pool each. */
typedef struct {
  const gt_rate *rates;
  size_t n, pool;
} gt_job_tariff;

typedef struct {
  bool known; /* any price or place is given: there is a cost to speak of */
  gt_job_region_prices *regions;
  size_t nregions;
  gt_job_tariff *tariffs; /* nsites x nsites, row: sender */
  size_t nsites, npools;
  char **missing; /* what is not known, for people: "workers of eu", "PS of eu", "egress of eu"; none where nothing is known */
  size_t nmissing;
  gt_catalogue *catalogue; /* NULL: none was needed */
} gt_job_prices;

/* Price of a device: its own, else regions[].price, else vm_hour of the place; of the PS rank: ps_price, else vm_hour of the place.  A region without a place moves data for nothing known.
   GT_ERR_JOB names the region whose place the catalogue does not have, or the line that it lacks.  The caller closes *out. */
gt_status gt_job_prices_of(gt_job_prices *out, const gt_job *job);
void gt_job_prices_close(gt_job_prices *prices);
/* USD an hour of a worker rank of the region, mean over `workers` that take its devices in the order of the list. */
gt_job_price gt_job_worker_price(const gt_job *job, const gt_job_prices *prices, size_t region, int64_t workers);
/* The tariff from one region to another; NULL where one of them has no place. */
const gt_job_tariff *gt_job_tariff_between(const gt_job_prices *prices, size_t from, size_t to);

#endif
