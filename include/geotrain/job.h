/* job: the job file: schema, defaults, ranges, units, overrides, the resolved job.  Layer 1.  All
   functions are local.  One table in src/job/schema.c drives validation, defaults, nearest-name
   errors and `geotrain help job`. */
#pragma once

#include <stdio.h>

/* wan.proxy begins so */
#define GT_WAN_PROXY "http://"

#include "geotrain/base.h"
#include "geotrain/base_families.h"

/* "every: {epochs: 1}", "until: {steps: 100}": at most one is > 0; all 0: never. */
typedef struct {
  double epochs;
  int64_t steps, samples;
  double minutes;
} gt_job_interval;

/* Rates of a codec, in bits of float32 per second; 0: it takes no time. */
typedef struct {
  double encode_bps, decode_bps;
} gt_job_codec_cost;

/* The cost of work, for the virtual clock and for compute.emulate. 0: not given. */
typedef struct {
  double samples_per_s; /* training rate of one worker */
  double step_s;        /* alternative: time of one full batch on one worker */
  /* factor on the two rates above; the real clock slows the worker to it (0 < speed <= 1) */
  double speed;
  double eval_samples_per_s; /* evaluation rate of one worker */
  /* from a push to the next order and its parameters, without the work of the PS */
  double local_s;
  /* additional time of each of the first steps after an idle wait (ps.h: GT_RESUME_WAIT,
     GT_RESUME_STEPS) */
  double resume_s;
  double pass_s;         /* constant time of each pass of a pipeline */
  double update_s;       /* time in which the PS applies a step */
  double apply_s;        /* time in which the PS applies a message */
  double encode_s;       /* time in which the PS prepares a message */
  double checkpoint_bps; /* write rate of the checkpoint directory, bit/s */
  gt_job_codec_cost codecs[GT_CODEC_KINDS];
} gt_job_compute;

/* The model of a store, as a region reaches it (link.h).  Rates 0: unlimited. */
typedef struct {
  double upload_bps, download_bps;
  double latency_s; /* one way */
  double request_s; /* time in which the store answers a request */
} gt_job_store;

/* Devices of one type in a region; one device is one worker rank. */
typedef struct {
  char *type;
  int64_t count;
  double power; /* training rate of one device; 0: not given (see gt_job_device_power) */
  /* USD per hour of one device; below 0: not given (region's price, else that of the catalogue, by
     place) */
  double price;
} gt_job_device;

typedef struct {
  char *name;
  char *data_path; /* the region's own file; NULL: data.path */
  char **hosts;    /* host names of the region, or NULL */
  size_t nhosts;
  /* including the PS rank; 1: no workers, the region only aggregates (gt_job_trains); 0: auto,
     chosen by a plan (gt_job_check_run) */
  int ranks;
  /* with wan.transport tcp, "host:port": at which the others reach it (NULL: it only dials), and at
     which its PS listens (NULL: address) */
  char *address, *listen;
  double access_bps;      /* in each direction, shared by the region's links; 0: unlimited */
  gt_job_store store;     /* a field that is 0 has the job's value */
  gt_job_compute compute; /* a field that is 0 has the job's value */
  double *speeds;         /* one per worker, multiplied by compute.speed; NULL: all 1 */
  size_t nspeeds;
  /* measured by probe, one per worker, relative to samples_per_s (speeds: set by the user); NULL:
     all 1 */
  double *measured;
  size_t nmeasured;
  gt_job_device *devices; /* or NULL */
  size_t ndevices;
  char *place; /* name in the catalogue of rates, or NULL */
  /* USD per hour of a worker rank whose device has no price, and of the PS rank; below 0: not
     given, then that of the catalogue, by place */
  double price, ps_price;
  /* samples of the region, for a plan or a simulation without a data set; 0: not given */
  int64_t samples;
  int ranks_min, ranks_max; /* limits for the workers that a plan chooses; 0: not given */
  struct {                  /* request to the batch system, if it differs from that of the job */
    char *partition, *constraint;
    int nodes; /* whole nodes for this region only; 0: not given */
    char **options;
    size_t noptions;
  } slurm;
} gt_job_region;

typedef struct {
  char *a, *b;     /* `between`: names of two regions, both directions */
  char *from, *to; /* or one direction; NULL: both directions */
  size_t ia, ib;   /* ids of the regions; one direction: from ia to ib */
  double bandwidth_bps, latency_s, jitter_s, loss;
  char *trace;                                          /* file, or NULL */
  double setup_rtts, eager_bytes, window_bytes, idle_s; /* transport model (link.h); 0: none */
} gt_job_link;

/* A stage of a pipeline. */
typedef struct {
  char *region;
  size_t id;   /* of the region */
  int workers; /* of the region, for this stage; those of the region's stages follow each other */
  /* Names of the last operations of its spans (gt_job_chunks), or NULL.  The model's last span can
     omit its name. */
  char **last;
  size_t nlast;
} gt_job_stage;

/* Another replica of a pipeline: its regions, each for one region of pipeline.stages, in the order
   of their first occurrence there. */
typedef struct {
  char **regions;
  size_t nregions;
} gt_job_copy;

/* A candidate needs `factor` times as many samples as the others. */
typedef struct {
  gt_strategy strategy;
  gt_codec_kind codec;
  int64_t period; /* 0: any period */
  double factor;
} gt_job_factor;

/* No bit leaves between two regions, in either direction, from from_s for for_s.  In any order;
   outages of one pair do not overlap. */
typedef struct {
  char *a, *b;
  size_t ia, ib;
  double from_s, for_s;
} gt_job_outage;

/* A fault of a rehearsal; times from the start of the run.  One of four kinds: a region is lost
   (lost_s); a link is cut (cut_s); the first region that is up is lost (coordinator_s); a region,
   or each one, is lost at random times (mtbf_s > 0). */
typedef struct {
  char *region, *a, *b;                 /* NULL: not given; a, b: `link` */
  size_t id, ia, ib;                    /* of these regions; id: nregions without a region */
  double lost_s, cut_s, coordinator_s;  /* below 0: not given */
  double back_s, for_s, mtbf_s, mttr_s; /* 0: not given */
} gt_job_fault;

/* Strings are owned by the job.  Numbers have the units in their names. */
typedef struct {
  char *name;
  uint64_t seed;
  struct {
    gt_model_id name;
    int64_t parameters; /* of the model "dummy"; 0: its default */
    int64_t embedding;  /* of a model of ids: length of an id's vector; 0: its default */
    int64_t hidden;     /* of "lstm" and "niser": width of its state; 0: its default */
    double scale;       /* of the model "niser": sigma; 0: its default */
    int64_t layers, width, heads, context; /* of the models "gpt"; 0: the preset's */
    bool untied;                           /* of the models "gpt"; the head has its own weights */
    bool positions;                        /* of "niser" */
    gt_stem stem;                          /* of the model "resnet18" */
    double dropout;                        /* probability; 0: none */
    int64_t *mlp; /* of "deepfm" and "mlp": widths of the hidden layers; NULL: its default */
    size_t nmlp;
  } model;
  struct {
    char *path;
    struct {
      gt_part_kind by;
      double *shares; /* one per region; NULL: equal */
      size_t nshares;
      double alpha;
    } partition;
    gt_class_set classes;
    gt_augment augment;
    double *mean, *std; /* one per channel, both or neither; NULL: those of the files */
    size_t nmean, nstd;
    double validation; /* share of a region's training samples; 0: none */
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
    double clip; /* maximum norm of a gradient; 0: no clipping */
    gt_precision precision;
    gt_kernels_id kernels;
    char *choices; /* measure | rule | a file of choices */
    char *init;    /* checkpoint file to load the parameters from, or NULL */
    gt_kept_model keep;
    int patience; /* 0: training does not end early */
  } train;
  gt_job_region *regions;
  size_t nregions;
  /* The model, divided into stages; nstages 0: no pipeline, or stages: auto. */
  struct {
    gt_job_stage *stages;
    size_t nstages;
    bool search;         /* stages: auto; gt_pipe_search_run finds the stages for a plan */
    gt_job_copy *copies; /* further replicas; that of `stages` is the first */
    size_t ncopies;
    int micro_batches; /* of a step, whose batch is train.batch; 0: found with the stages */
    gt_pipe_kind schedule;
    gt_labels labels;
    double memory_bytes; /* of a worker; 0: no limit */
    gt_adapt adapt;      /* changes that follow the measured links */
  } pipeline;
  struct {
    gt_local local;
    gt_strategy strategy;
    int64_t period;
    gt_period_unit period_unit;
    gt_topology topology;
    char *hub; /* name of the hub's region; NULL: the one that the others reach soonest */
    /* name of the region that every worker's message goes to; NULL: none */
    char *central;
    gt_weights weights;
    gt_scale scale;
    gt_exchanged exchange;
    gt_merge merge;
    struct {
      gt_outer name;
      double lr, lr_min, momentum; /* lr_min 0: the rate is constant */
    } outer;
    struct {
      double clip, outlier;
      int64_t warmup;
    } guard;
    double quorum, grace_s; /* quorum 1: rounds have all regions */
    int fragments;
    int64_t delay;
    gt_late late;
    double local_weight;
    gt_on_loss on_loss;
    char *tie;       /* name of a region; NULL: none */
    int min_regions; /* 0: all */
    struct {
      gt_codec_kind name;
      double density, decay, momentum;
      int bits, rank;
      int64_t warmup;
      gt_rounding rounding;
    } codec;
  } sync;
  struct {
    gt_wan_transport transport;
    struct {
      char *ca, *cert, *key; /* paths, in which <region> is the region's name; NULL: no TLS */
    } tls;
    struct {
      char *url, *place;
      double poll_s, lag_s;
      gt_trigger trigger;
      double start_s;  /* of a function (link.h) */
      gt_job_store of; /* for regions without their own */
    } store;
    int streams; /* 0: auto (gt_links_streams) */
    char *proxy; /* GT_WAN_PROXY, host:port; NULL: none */
    bool emulate;
    int outbox;
    gt_job_link *links; /* each direction occurs once */
    size_t nlinks;
    /* wan.default: for every direction missing in `links`; without ends and trace; all 0:
       unlimited */
    gt_job_link fallback;
    /* CSV of links (from,to,mbit_s,ms[,jitter_ms[,loss]]); NULL after loading, which merges it into
       `links` */
    char *matrix;
    gt_job_outage *outages;
    size_t noutages;
  } wan;
  gt_job_fault *faults;
  size_t nfaults;
  gt_job_compute compute;   /* for regions without their own */
  double compute_variation; /* standard deviation of a step's time relative to its mean, seeded */
  /* under the real clock, a step takes at least the time that compute gives */
  bool compute_emulate;
  /* file written by `geotrain probe`; NULL after loading, which merges it */
  char *profile;
  char
      *fleet; /* not a key: the file named by `profile` if it has a section fleet, otherwise NULL */
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
  /* input and result of `geotrain plan`; training ignores it, the summary's cost and plan use it */
  struct {
    gt_strategy *strategies; /* candidates, combined with periods; NULL: the strategy of the job */
    size_t nstrategies;
    int64_t *periods;
    size_t nperiods;
    gt_codec_kind *codecs;
    size_t ncodecs;
    gt_job_factor *factors;
    size_t nfactors;
    double deadline_s, budget; /* budget in USD; 0: none */
    double start_s, billing_s; /* from allocation to the first step; billing step of the machines */
    char *catalogue;           /* file or folder of rates; NULL: gt_catalogue_default */
    struct {
      /* GT_STRATEGY_NONE: no prediction */
      gt_strategy strategy;
      double wall_s, wall_low_s, wall_high_s, step_s, samples_per_s; /* 0: not given */
      /* waiting: share of the time; cost: USD; below 0: not given */
      double wan_bytes, waiting, cost;
      char *made; /* program version and date */
    } predicted;
  } plan;
  /* requests of slurm/submit; the program does not use them.  Only strings of the prologue can have
     characters that are special to a shell. */
  struct {
    char *partition, *constraint, *account, *qos, *reservation;
    double time_s; /* time limit of the job; 0: not given */
    /* time before the limit at which ranks get the signal to stop with a checkpoint */
    double signal_before_s;
    int cpus_per_rank;
    double memory_per_cpu; /* bytes; 0: not given */
    char *mpi;             /* srun's --mpi, or "mpirun" */
    char **options;
    size_t noptions;
    char **prologue; /* lines of shell, copied to the script unchanged */
    size_t nprologue;
  } slurm;
  /* Set by gt_job_load. sha256: of the job file. began_sha256: of the file with which the run
     began, if this one is the job.yaml of a run directory, otherwise "". */
  char sha256[GT_SHA256_HEX], began_sha256[GT_SHA256_HEX];
  char
      *source; /* the job file, or the `source` of gt_job_parse; NULL in a job that code has made */
} gt_job;

/* Reads a job, overrides keys, adds defaults and checks it. sets: nsets strings "a.b=value".
   GT_ERR_JOB: one sentence names the file, the key, what was found and what was expected; for an
   unknown key or value also the nearest known one.  The caller owns *out and closes it. */
gt_status gt_job_load(gt_job **out, const char *path, const char *const *sets, size_t nsets);
/* Loads a job as gt_job_load does, with the regions from a CSV file, one per line.  The first line
   names the columns: name and ranks are required; samples, place, step, samples_per_s, speed,
   access, price and ps_price are optional.  An empty field is not given.  These regions replace
   those of the job file and all that refers to them: wan.links, wan.matrix, wan.outages,
   data.partition.shares; all links are wan.default. sets are applied afterwards.  Errors name the
   file, its line and the column. regions_csv NULL: gt_job_load. */
gt_status gt_job_load_regions(gt_job **out, const char *path, const char *const *sets, size_t nsets,
                              const char *regions_csv);
/* Loads a job as gt_job_load does, from the text of a resolved job, as in a checkpoint; errors name
   `source`. */
gt_status gt_job_parse(gt_job **out, const char *source, const char *text);
/* Reads the job of a resume: job.yaml of the run directory, at `path`, with sets.  `named` is the
   job file of this start, with the same sets.  GT_ERR_JOB lists the keys in which `named` differs,
   with both values, unless `named` is the unchanged file with which the run began; then the sets of
   that start explain the differences.  The caller owns *out. */
gt_status gt_job_load_run(gt_job **out, const gt_job *named, const char *named_path,
                          const char *path, const char *const *sets, size_t nsets);
/* The first line of a run's job.yaml, followed by gt_job.began_sha256. */
#define GT_JOB_BEGAN "# began with the job file of sha256 "
/* True if `named` was read from the file with which the run began, or from the run's own
   job.yaml. */
bool gt_job_began(const gt_job *run, const gt_job *named);
void gt_job_close(gt_job *job);
/* Returns why the codec does not suit the strategy over the topology (auto: over any) in this job;
   NULL: it does. */
const char *gt_job_unsound_codec(const gt_job *job, gt_strategy strategy, gt_codec_kind codec,
                                 gt_topology topology);
/* True if the key applies to this value of the key that it depends on, as "sync.period" to strategy
   "asgd-ga", or if it depends on no other key. */
bool gt_job_key_used(const char *key, const char *value);
/* Returns the resolved job as YAML, without options that its strategy or model does not have.
   gt_job_load reads it back to the same job.  The caller frees it. */
char *gt_job_resolved(const gt_job *job);
/* Returns the part of the resolved job that must be the same at all sites: without keys such as
   slurm.partition, and without the values of paths.  The caller frees it. */
char *gt_job_common(const gt_job *job);
/* Prints the resolved job for scripts: one line `path=value` per value; list entries have numbers
   from 0 (`regions.0.name=eu`).  Times are in seconds, rates in bit/s and sizes in bytes, as
   decimal numbers without exponent or unit.  Omits values that are not given. */
void gt_job_flat(const gt_job *job, FILE *to);
/* Returns the number of ranks of a job that has passed gt_job_check_run. */
int gt_job_ranks(const gt_job *job);
/* True if the region trains: it has workers and data.  Otherwise its only rank, the PS, aggregates:
   it adds up and forwards messages of the others.  It then has no samples, no weight in means, and
   makes no steps. */
bool gt_job_trains(const gt_job *job, size_t region);
/* True if the region has data: it trains and, with a pipeline, has its first stage (with stages:
   auto, can get it). */
bool gt_job_reads(const gt_job *job, size_t region);
/* Returns the number of replicas of the pipeline, that of pipeline.stages included; 1 without a
   pipeline. */
size_t gt_job_replicas(const gt_job *job);
/* Returns the replica of the region; gt_job_replicas(job) if it has none, as in a job that is not
   checked. */
size_t gt_job_replica_of(const gt_job *job, size_t region);
#define GT_REPLICA_TEXT ((size_t)192)
/* Writes its name for messages, "replica 2 (london, paris)", with "..." for names that do not fit;
   size: 20 or more.  Returns text. */
char *gt_job_replica_text(const gt_job *job, size_t replica, char *text, size_t size);
/* Returns the region of `replica` that has the same stages as `region` in its own. */
size_t gt_job_replica(const gt_job *job, size_t region, size_t replica);
/* Returns the region of a replica that has the stage. */
size_t gt_job_stage_region(const gt_job *job, size_t replica, size_t stage);
/* Returns the spans (sequences of operations) of each stage of the job's pipeline: 2 if it is
   folded, otherwise 1. */
size_t gt_job_chunks(const gt_job *job);
/* Returns the number of regions that train; 1 or more. */
size_t gt_job_training(const gt_job *job);
/* Returns the workers of a region; 0 if it only aggregates or its ranks are auto. */
size_t gt_job_workers(const gt_job *job, size_t region);
/* Checks that all numbers of ranks are known.  GT_ERR_JOB names a region with ranks: auto, or
   pipeline.stages: auto. */
gt_status gt_job_check_ranks(const gt_job *job);
#define GT_MAX_REGIONS 64 /* of a run; plans and simulations accept more */
/* Checks the additional requirements of a run: numbers of ranks, at most GT_MAX_REGIONS, a data
   set.  GT_ERR_JOB names the missing one. */
gt_status gt_job_check_run(const gt_job *job);
/* Returns `status`, at the end of a command, for errors found after a job was loaded.  If it is
   GT_ERR_JOB and the sentence begins with the job's name or a key, puts the job file first: "FILE:
   KEY ...". job NULL: no effect. */
gt_status gt_job_blame(const gt_job *job, gt_status status);
/* Warns, one sentence each, about settings that are valid but probably not intended: momentum with
   adam, emulation without links, a warm-up longer than the run.  The text that `tell` gets is valid
   until it returns. */
void gt_job_warn(const gt_job *job, void (*tell)(const char *text));
/* Warns likewise about a region with this number of samples: a warm-up longer than its part of the
   run, a batch larger than its samples. */
void gt_job_warn_region(const gt_job *job, size_t region, int64_t samples,
                        void (*tell)(const char *text));
/* Returns the cost of work in a region: its own values, else those of the job, else the power of
   its fastest device as samples_per_s.  Loading a job replaces the region's own values by those of
   a profile.  Default speed: 1.  Default evaluation rate: three times the training rate. */
gt_job_compute gt_job_compute_of(const gt_job *job, size_t region);
/* True if the region is a function that the store invokes (wan.store.trigger). */
bool gt_job_is_function(const gt_job *job, size_t region);
/* Returns the seconds from one look of a region for messages of another to the next.  Regions that
   meet in a third one only, over a hub or with sync.central, exchange nothing but control messages,
   and look seldom. */
double gt_job_store_poll(const gt_job *job, size_t region, size_t peer);
/* Returns the model of the store as the region reaches it: its values, or those of the job. */
gt_job_store gt_job_store_of(const gt_job *job, size_t region);
/* Returns the speed of a worker's device relative to gt_job_compute_of: 1 unless the rate comes
   from devices of several types.  Workers take the devices in list order. */
double gt_job_worker_share(const gt_job *job, size_t region, size_t worker);
/* Returns the speed that the user sets for a worker, relative to its full speed: compute.speed and
   speeds. c: gt_job_compute_of. */
double gt_job_worker_wanted(const gt_job *job, size_t region, const gt_job_compute *c,
                            size_t worker);
/* Returns the speed of a worker relative to c: set by the user, measured, and that of its
   device. */
double gt_job_worker_speed(const gt_job *job, size_t region, const gt_job_compute *c,
                           size_t worker);
/* Returns the samples/s of one worker on this device of the region, multiplied by compute.speed:
   from the profile, else compute, else the device; 0: not given. */
double gt_job_device_power(const gt_job *job, size_t region, size_t device);
/* Returns the links of all pairs, nregions x nregions, from row to column: the one in wan.links,
   else wan.default, else NULL (unlimited).  The caller frees the table; the job owns the links.
   Reads wan.links once, because it can have millions. */
const gt_job_link **gt_job_link_table(const gt_job *job);
/* Names the first key in which two resolved jobs differ, with both values: "sync.period is 8 there
   and 4 here"; "" if they are equal. for_resume: ignores the keys that a resume may change
   (train.until, checkpoint, limits, ranks, hosts, transport, speeds, measured, devices, prices,
   plan, log, slurm, and pipeline.schedule, micro_batches, memory and adapt). */
void gt_job_difference(const char *here, const char *there, bool for_resume, char *text,
                       size_t size);
/* "a resume may change ... only" */
extern const char gt_job_on_resume[];
/* Prints the changes of `named` to a run's job as values of --set, one per line; nothing if
   gt_job_began.  GT_ERR_JOB: a resume cannot change it. */
gt_status gt_job_run_sets(FILE *to, const gt_job *named, const gt_job *run);
/* True if the job with this text has a pipeline with replicas over several regions: a region's
   checkpoint then has only a part of the model. */
bool gt_job_in_parts(const char *yaml);
/* Prints `geotrain help job`: an example, then every key with default, range and meaning, in 80
   columns. */
void gt_job_help(FILE *to);
/* Prints one key, or all keys below a section: "sync.period", "regions.0.ranks", "wan".
   GT_ERR_JOB: unknown key; the text has the nearest known one. */
gt_status gt_job_help_key(FILE *to, const char *key);
/* Prints the help as Markdown: the page docs/job-file.md. */
void gt_job_help_markdown(FILE *to);
