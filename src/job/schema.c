/* The one table of job keys.  Validation, defaults, nearest names, the job itself, the resolved job and `geotrain help job` all come from it: a new key is
   one row here and one member in gt_job. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define AT(member)        .offset = offsetof(gt_job, member)
#define COUNT(member)     .count_offset = offsetof(gt_job, member)
#define IN_REGION(member) .offset = offsetof(gt_job_region, member)
#define IN_LINK(member)   .offset = offsetof(gt_job_link, member)
#define IN_OUTAGE(member) .offset = offsetof(gt_job_outage, member)
#define IN_DEVICE(member) .offset = offsetof(gt_job_device, member)
#define IN_FACTOR(member) .offset = offsetof(gt_job_factor, member)
#define COUNT_MAX         1e9
#define PLANNED           (KEY_OPTIONAL | KEY_ON_RESUME)
#define RATE              (KEY_UNSAID | KEY_ON_RESUME) /* of the catalogue, or a user's own; 0 is one */
#define BATCH             (KEY_OPTIONAL | KEY_ON_RESUME | KEY_SCRIPT)

/* What work costs, of all regions and of one. */
#define COMPUTE_ROWS(prefix, in, member)                                                                                                             \
  {prefix "samples_per_s",   KEY_REAL,    KEY_OPTIONAL | KEY_ABOVE_MIN,                                                                              \
   in(member samples_per_s), .max = 1e15, .meaning = "speed of one worker in training, for the virtual clock"},                                      \
      {prefix "step", KEY_TIME, KEY_OPTIONAL | KEY_ABOVE_MIN, in(member step_s), .max = 1e6, .meaning = "or the time of one worker's full batch"},   \
      {prefix "speed",   KEY_REAL, KEY_OPTIONAL | KEY_ABOVE_MIN,                                                                                     \
       in(member speed), .max = 1, .meaning = "share of that speed at which workers run; under the real clock they are slowed"},                     \
      {prefix "eval_samples_per_s",   KEY_REAL,    KEY_OPTIONAL | KEY_ABOVE_MIN,                                                                     \
       in(member eval_samples_per_s), .max = 1e15, .meaning = "speed of one worker in evaluation; not given: three times training"},                 \
      {prefix "local",     KEY_TIME,   KEY_OPTIONAL,                                                                                                 \
       in(member local_s), .max = 1e6, .meaning = "from a worker's gradient to its next parameters, beside the server's own work"},                  \
      {prefix "resume",     KEY_TIME,   KEY_OPTIONAL,                                                                                                \
       in(member resume_s), .max = 1e6, .meaning = "each of the first 8 steps takes so much longer after a worker waited 5 ms or more"},             \
      {prefix "update", KEY_TIME, KEY_OPTIONAL, in(member update_s), .max = 1e6, .meaning = "the parameter server applies a step"},                  \
      {prefix "apply", KEY_TIME, KEY_OPTIONAL, in(member apply_s), .max = 1e6, .meaning = "the parameter server applies a message"},                 \
      {prefix "encode", KEY_TIME, KEY_OPTIONAL, in(member encode_s), .max = 1e6, .meaning = "the parameter server prepares a message"}, {            \
    prefix "checkpoint", KEY_RATE, KEY_OPTIONAL | KEY_ABOVE_MIN, in(member checkpoint_bps), .meaning = "speed at which checkpoints are written"      \
  }

const job_key gt_job_keys[] = {
    {"name", KEY_STRING, KEY_REQUIRED, AT(name), .meaning = "what the run is called in records and checkpoints"},
    {"seed", KEY_U64, 0, AT(seed), .fallback = "1", .meaning = "of initial weights, partition, order of samples and jitter"},
    {"model.name", KEY_CHOICE, KEY_REQUIRED, AT(model.name), .values = gt_model_names, .meaning = "the network, as `geotrain info` tells of them"},
    {"model.parameters", KEY_I64, KEY_OPTIONAL, AT(model.parameters), .max = 1e9,
     .meaning = "dummy: how many it has; most of them do nothing but travel"},
    {"model.embedding", KEY_I64, KEY_OPTIONAL, AT(model.embedding), .min = 1, .max = 65536,
     .meaning = "deepfm: numbers of the vector of an id; not given: 10"},
    {"model.mlp", KEY_INTS, KEY_OPTIONAL, AT(model.mlp), COUNT(model.nmlp), .min = 1, .max = 65536,
     .meaning = "deepfm: widths of the perceptron's hidden layers; not given: 400, 400, 400"},
    {"data.path", KEY_STRING, KEY_OPTIONAL, AT(data.path), .meaning = "HDF5 data set of the regions that name none of their own"},
    {"data.partition.by", KEY_CHOICE, 0, AT(data.partition.by), .fallback = "shares", .values = gt_partition_names,
     .meaning = "how the samples of a file go to the regions that read it: at random by shares, whole labels, Dirichlet(alpha) per label; or one "
                "file per region"},
    {"data.partition.shares", KEY_REALS, KEY_OPTIONAL | KEY_ABOVE_MIN, AT(data.partition.shares), COUNT(data.partition.nshares), .max = 1e12,
     .meaning = "one number a region, in proportion to its part (by shares, label and dirichlet); not given: equal parts"},
    {"data.partition.alpha", KEY_REAL, KEY_ABOVE_MIN, AT(data.partition.alpha), .fallback = "0.5", .max = 1e6,
     .meaning = "of the Dirichlet distribution; small is uneven"},
    {"data.augment", KEY_CHOICE, 0, AT(data.augment), .fallback = "none", .values = gt_augment_names,
     .meaning = "training images: as they are, or a random window of the image in a border of 4, every second one flipped"},
    {"data.mean", KEY_REALS, KEY_OPTIONAL | KEY_FILLED, AT(data.mean), COUNT(data.nmean), .min = -1e6, .max = 1e6,
     .meaning = "of uint8 images, one number a channel in units of 255; not given: as the regions' files say, or where they differ of all training "
                "images together"},
    {"data.std", KEY_REALS, KEY_OPTIONAL | KEY_FILLED | KEY_ABOVE_MIN, AT(data.std), COUNT(data.nstd), .max = 1e6,
     .meaning = "standard deviations that go with data.mean"},
    {"train.until.epochs", KEY_REAL, KEY_ONE_OF | KEY_ON_RESUME, AT(train.until.epochs), .fallback = "0", .max = COUNT_MAX,
     .meaning = "end of training: passes over the region's own samples"},
    {"train.until.steps", KEY_I64, KEY_ONE_OF | KEY_ON_RESUME, AT(train.until.steps), .fallback = "0", .max = 1e15,
     .meaning = "end of training: the region's own steps"},
    {"train.until.samples", KEY_I64, KEY_ONE_OF | KEY_ON_RESUME, AT(train.until.samples), .fallback = "0", .max = 1e15,
     .meaning = "end of training: the region's own samples"},
    {"train.batch", KEY_INT, 0, AT(train.batch), .fallback = "64", .min = 1, .max = 1e6, .meaning = "samples a worker takes per step"},
    {"train.optimizer.name", KEY_CHOICE, 0, AT(train.optimizer.name), .fallback = "sgd", .values = gt_optimizer_names,
     .meaning = "the rule of the local update"},
    {"train.optimizer.lr", KEY_REAL, KEY_REQUIRED | KEY_ABOVE_MIN, AT(train.optimizer.lr), .max = 1e6, .meaning = "learning rate"},
    {"train.optimizer.momentum", KEY_REAL, KEY_BELOW_MAX, AT(train.optimizer.momentum), .fallback = "0", .max = 1,
     .meaning = "sgd: share of the last step kept"},
    {"train.optimizer.nesterov", KEY_BOOL, 0, AT(train.optimizer.nesterov), .fallback = "false", .meaning = "sgd: look ahead along the momentum"},
    {"train.optimizer.weight_decay", KEY_REAL, 0, AT(train.optimizer.weight_decay), .fallback = "0", .max = 1e6,
     .meaning = "pull of weights towards zero"},
    {"train.optimizer.beta1", KEY_REAL, KEY_BELOW_MAX, AT(train.optimizer.beta1), .fallback = "0.9", .max = 1,
     .meaning = "adam, adamw: memory of the mean"},
    {"train.optimizer.beta2", KEY_REAL, KEY_BELOW_MAX, AT(train.optimizer.beta2), .fallback = "0.999", .max = 1,
     .meaning = "adam, adamw: memory of the square"},
    {"train.optimizer.epsilon", KEY_REAL, KEY_ABOVE_MIN, AT(train.optimizer.epsilon), .fallback = "1e-08", .max = 1,
     .meaning = "adam, adamw: added to the root"},
    {"train.schedule.name", KEY_CHOICE, 0, AT(train.schedule.name), .fallback = "constant", .values = gt_schedule_names,
     .meaning = "how the learning rate moves after warm-up"},
    {"train.schedule.warmup_steps", KEY_I64, 0, AT(train.schedule.warmup_steps), .fallback = "0", .max = 1e15,
     .meaning = "steps over which the rate rises from 0"},
    {"train.schedule.step_every", KEY_I64, 0, AT(train.schedule.step_every), .fallback = "0", .max = 1e15,
     .meaning = "step: steps between falls of the rate"},
    {"train.schedule.gamma", KEY_REAL, KEY_ABOVE_MIN, AT(train.schedule.gamma), .fallback = "0.1", .max = 1,
     .meaning = "step: the rate is multiplied by it"},
    {"train.schedule.lr_min", KEY_REAL, 0, AT(train.schedule.lr_min), .fallback = "0", .max = 1e6, .meaning = "cosine: the rate at the end"},
    {"train.precision", KEY_CHOICE, 0, AT(train.precision), .fallback = "f32", .values = gt_precision_names,
     .meaning =
         "of the heavy operations' arithmetic and of what they pass on; parameters, gradients and sums are f32; without bf16 in CPU or build: f32"},
    {"train.kernels", KEY_CHOICE, 0, AT(train.kernels), .fallback = "auto", .values = gt_kernels_names,
     .meaning = "arithmetic: the fastest built in for each operation, oneDNN wherever it can, OpenBLAS, or plain loops"},
    {"train.choices", KEY_STRING, KEY_ON_RESUME, AT(train.choices), .fallback = "measure",
     .meaning = "of kernels auto: measure (the ways of each product are timed at the start; under the virtual clock: rule), rule (a fixed one), or a "
                "file of "
                "`info JOB --measure`"},
    {"train.init", KEY_STRING, KEY_OPTIONAL, AT(train.init),
     .meaning = "checkpoint file, or final.h5 of a run, whose parameters training starts from; not given: by seed"},
    {"train.eval_every.epochs", KEY_REAL, KEY_ONE_OF, AT(train.eval_every.epochs), .fallback = "1", .max = COUNT_MAX,
     .meaning = "passes between evaluations on the test set; 0: only at the end"},
    {"train.eval_every.steps", KEY_I64, KEY_ONE_OF, AT(train.eval_every.steps), .fallback = "0", .max = 1e15, .meaning = "steps between evaluations"},
    {"regions", KEY_MAPS, KEY_REQUIRED, AT(regions), COUNT(nregions), sizeof(gt_job_region), .min = 1, .max = 65535,
     .meaning = "a list of regions, sets of ranks that are close to each other"},
    {"regions[].name", KEY_STRING, KEY_REQUIRED, IN_REGION(name),
     .meaning = "its name and that of its files (letters, digits, dot, dash, underscore)"},
    {"regions[].ranks", KEY_INT, KEY_REQUIRED | KEY_ON_RESUME | KEY_AUTO, IN_REGION(ranks), .min = 2, .max = 1e6,
     .meaning = "MPI ranks: one parameter server and the workers; auto: as many as `geotrain plan` takes of the devices"},
    {"regions[].data.path", KEY_STRING, KEY_OPTIONAL, IN_REGION(data_path), .meaning = "the region's own data set; not given: data.path"},
    {"regions[].hosts", KEY_STRINGS, KEY_OPTIONAL | KEY_ON_RESUME, IN_REGION(hosts), .count_offset = offsetof(gt_job_region, nhosts),
     .meaning = "host names whose ranks belong to the region; not given: ranks in order"},
    {"regions[].access", KEY_RATE, KEY_OPTIONAL | KEY_ABOVE_MIN, IN_REGION(access_bps),
     .meaning = "of each direction of the region's access to the WAN, shared by its links; not given: unlimited"},
    COMPUTE_ROWS("regions[].compute.", IN_REGION, compute.),
    {"regions[].compute.speeds", KEY_REALS, KEY_OPTIONAL | KEY_ABOVE_MIN | KEY_ON_RESUME, IN_REGION(speeds),
     .count_offset = offsetof(gt_job_region, nspeeds), .max = 1, .meaning = "one number a worker, times speed"},
    {"regions[].compute.measured", KEY_REALS, KEY_OPTIONAL | KEY_ABOVE_MIN | KEY_ON_RESUME, IN_REGION(measured),
     .count_offset = offsetof(gt_job_region, nmeasured),
     .meaning = "one number a worker: its speed in proportion to samples_per_s or step, as probe measured it; slows nobody under the real clock"},
    {"regions[].slurm.partition", KEY_STRING, BATCH | KEY_WORD, IN_REGION(slurm.partition),
     .meaning = "partition of the region's nodes; with several, the job is a heterogeneous one; not given: slurm.partition"},
    {"regions[].slurm.constraint", KEY_STRING, BATCH | KEY_WORD, IN_REGION(slurm.constraint),
     .meaning = "features of the region's nodes; not given: slurm.constraint"},
    {"regions[].slurm.nodes", KEY_INT, KEY_OPTIONAL | KEY_ON_RESUME, IN_REGION(slurm.nodes), .min = 1, .max = 1e6,
     .meaning = "whole nodes of the region's own, over which its ranks are spread; not given: as many as its ranks need"},
    {"regions[].slurm.options", KEY_STRINGS, BATCH, IN_REGION(slurm.options), .count_offset = offsetof(gt_job_region, slurm.noptions),
     .meaning = "further sbatch options of the region's component of a heterogeneous job"},
    {"regions[].devices", KEY_MAPS, PLANNED, IN_REGION(devices), offsetof(gt_job_region, ndevices), sizeof(gt_job_device), .min = 1, .max = 1024,
     .meaning = "a list of what the region has to compute with, each device one worker's"},
    {"regions[].devices[].type", KEY_STRING, KEY_REQUIRED | KEY_WORD, IN_DEVICE(type), .meaning = "what it is called, as in xeon"},
    {"regions[].devices[].count", KEY_I64, KEY_REQUIRED, IN_DEVICE(count), .max = COUNT_MAX, .meaning = "how many there are"},
    {"regions[].devices[].power", KEY_SPEED, KEY_OPTIONAL | KEY_ABOVE_MIN, IN_DEVICE(power), .max = 1e15,
     .meaning = "samples/s of one in training; a profile and compute go before it"},
    {"regions[].devices[].price", KEY_REAL, KEY_UNSAID, IN_DEVICE(price), .max = 1e9,
     .meaning = "USD an hour of one; not given: regions[].price, else the catalogue's, by place"},
    {"regions[].place", KEY_STRING, PLANNED | KEY_WORD, IN_REGION(place),
     .meaning = "where it is, in the catalogue of rates: CLOUD:PLACE, as in aws:london"},
    {"regions[].price", KEY_REAL, RATE, IN_REGION(price), .max = 1e9,
     .meaning = "USD an hour of a worker rank, or of a device without a price of its own; not given: the catalogue's, by place"},
    {"regions[].ps_price", KEY_REAL, RATE, IN_REGION(ps_price), .max = 1e9,
     .meaning = "USD an hour of the parameter server's rank; not given: the catalogue's, by place"},
    {"regions[].samples", KEY_I64, PLANNED, IN_REGION(samples), .min = 1, .max = 1e15,
     .meaning = "samples that the region holds, for plans and simulations without a data set"},
    {"regions[].ranks_min", KEY_INT, PLANNED, IN_REGION(ranks_min), .min = 1, .max = 1e6, .meaning = "least workers that a plan may choose"},
    {"regions[].ranks_max", KEY_INT, PLANNED, IN_REGION(ranks_max), .min = 1, .max = 1e6, .meaning = "most workers that a plan may choose"},
    {"sync.local", KEY_CHOICE, 0, AT(sync.local), .fallback = "sync", .values = gt_local_names,
     .meaning = "workers of a region: in step, or each at its own pace"},
    {"sync.strategy", KEY_CHOICE, 0, AT(sync.strategy), .fallback = "asgd-ga", .values = gt_strategy_names,
     .meaning = "what regions exchange over the WAN, and when"},
    {"sync.period", KEY_I64, 0, AT(sync.period), .fallback = "8", .min = 1, .max = 1e15, .meaning = "steps between exchanges (asgd-ga, ama, sma)"},
    {"sync.topology", KEY_CHOICE, 0, AT(sync.topology), .fallback = "mesh", .values = gt_topology_names,
     .meaning = "who exchanges with whom: everyone with everyone", .why = "this build has no other topology"},
    {"sync.weights", KEY_CHOICE, 0, AT(sync.weights), .fallback = "samples", .values = gt_weights_names,
     .meaning = "of regions in means: the same, or by their samples"},
    {"sync.scale", KEY_CHOICE, 0, AT(sync.scale), .fallback = "sum", .values = gt_scale_names,
     .meaning =
         "asgd, asgd-ga: remote updates in full, or times 1/regions; average: every update times its region's weight, own too once they are sent"},
    {"wan.emulate", KEY_BOOL, 0, AT(wan.emulate), .fallback = "false", .meaning = "hold messages back as the links below would"},
    {"wan.outbox", KEY_INT, 0, AT(wan.outbox), .fallback = "2", .min = 1, .max = 1024, .meaning = "messages that may wait for a peer"},
    {"wan.links", KEY_MAPS, KEY_OPTIONAL, AT(wan.links), COUNT(wan.nlinks), sizeof(gt_job_link), .max = 1e6,
     .meaning = "a list of links; a direction that none of them and no matrix names is wan.default, or unlimited"},
    {"wan.links[].between", KEY_PAIR, KEY_OPTIONAL, IN_LINK(a), .meaning = "names of two regions: both directions"},
    {"wan.links[].from", KEY_STRING, KEY_OPTIONAL, IN_LINK(from), .meaning = "or name of the sending region: one direction"},
    {"wan.links[].to", KEY_STRING, KEY_OPTIONAL, IN_LINK(to), .meaning = "and name of the receiving one"},
    {"wan.links[].bandwidth", KEY_RATE, KEY_OPTIONAL | KEY_ABOVE_MIN, IN_LINK(bandwidth_bps), .meaning = "of each direction; not given: unlimited"},
    {"wan.links[].latency", KEY_TIME, 0, IN_LINK(latency_s), .fallback = "0 s", .max = 86400, .meaning = "one way"},
    {"wan.links[].jitter", KEY_TIME, 0, IN_LINK(jitter_s), .fallback = "0 s", .max = 86400, .meaning = "standard deviation of the latency"},
    {"wan.links[].loss", KEY_REAL, KEY_OPTIONAL | KEY_BELOW_MAX, IN_LINK(loss), .max = 1,
     .meaning = "share of packets lost; counts as the goodput that it leaves TCP"},
    {"wan.links[].trace", KEY_STRING, KEY_OPTIONAL, IN_LINK(trace),
     .meaning = "file of bandwidth over time: CSV time_s,bandwidth,latency or mahimahi's packet-delivery format; in place of bandwidth"},
    {"wan.links[].setup", KEY_REAL, KEY_OPTIONAL, IN_LINK(setup_rtts), .max = 100, .meaning = "round trips before a frame larger than eager moves"},
    {"wan.links[].eager", KEY_SIZE, KEY_OPTIONAL, IN_LINK(eager_bytes), .meaning = "frames up to it need no set-up"},
    {"wan.links[].window", KEY_SIZE, KEY_OPTIONAL, IN_LINK(window_bytes),
     .meaning = "bytes that leave in the first round trip after idle; doubled every round trip (slow start)"},
    {"wan.links[].idle", KEY_TIME, KEY_OPTIONAL, IN_LINK(idle_s), .max = 86400, .meaning = "silence after which the window is small again"},
    {"wan.matrix", KEY_STRING, KEY_OPTIONAL, AT(wan.matrix),
     .meaning = "CSV file of links, a line a direction (one alone is for both): from,to,mbit_s,ms and, if need be, jitter_ms,loss; links above go "
                "before it"},
    {"wan.default.bandwidth", KEY_RATE, KEY_OPTIONAL | KEY_ABOVE_MIN, AT(wan.fallback.bandwidth_bps),
     .meaning = "of each direction that no link and no matrix names; not given: unlimited"},
    {"wan.default.latency", KEY_TIME, KEY_OPTIONAL, AT(wan.fallback.latency_s), .max = 86400, .meaning = "one way"},
    {"wan.default.jitter", KEY_TIME, KEY_OPTIONAL, AT(wan.fallback.jitter_s), .max = 86400, .meaning = "standard deviation of the latency"},
    {"wan.default.loss", KEY_REAL, KEY_OPTIONAL | KEY_BELOW_MAX, AT(wan.fallback.loss), .max = 1, .meaning = "share of packets lost"},
    {"wan.default.setup", KEY_REAL, KEY_OPTIONAL, AT(wan.fallback.setup_rtts), .max = 100,
     .meaning = "round trips before a frame larger than eager moves"},
    {"wan.default.eager", KEY_SIZE, KEY_OPTIONAL, AT(wan.fallback.eager_bytes), .meaning = "frames up to it need no set-up"},
    {"wan.default.window", KEY_SIZE, KEY_OPTIONAL, AT(wan.fallback.window_bytes), .meaning = "bytes that leave in the first round trip after idle"},
    {"wan.default.idle", KEY_TIME, KEY_OPTIONAL, AT(wan.fallback.idle_s), .max = 86400, .meaning = "silence after which the window is small again"},
    {"wan.outages", KEY_MAPS, KEY_OPTIONAL, AT(wan.outages), COUNT(wan.noutages), sizeof(gt_job_outage), .max = 1e6,
     .meaning = "a list of times at which two regions cannot reach each other"},
    {"wan.outages[].between", KEY_PAIR, KEY_REQUIRED, IN_OUTAGE(a), .meaning = "names of two regions"},
    {"wan.outages[].from", KEY_TIME, 0, IN_OUTAGE(from_s), .fallback = "0 s", .max = 1e8, .meaning = "since the start of the run"},
    {"wan.outages[].for", KEY_TIME, KEY_REQUIRED | KEY_ABOVE_MIN, IN_OUTAGE(for_s), .max = 1e8, .meaning = "how long"},
    COMPUTE_ROWS("compute.", AT, compute.),
    {"compute.variation", KEY_REAL, KEY_BELOW_MAX, AT(compute_variation), .fallback = "0", .max = 1,
     .meaning = "standard deviation of a step's time over its mean, seeded"},
    {"compute.emulate", KEY_BOOL, 0, AT(compute_emulate), .fallback = "false",
     .meaning = "under the real clock too, a step takes at least the time that compute says"},
    {"profile", KEY_STRING, KEY_OPTIONAL, AT(profile),
     .meaning = "file that `geotrain probe` wrote: measured figures, which go before those under compute"},
    {"checkpoint.every.epochs", KEY_REAL, KEY_ONE_OF | KEY_ON_RESUME, AT(checkpoint.every.epochs), .fallback = "0", .max = COUNT_MAX,
     .meaning = "passes between checkpoints; none of the three: only when the run ends or is stopped"},
    {"checkpoint.every.steps", KEY_I64, KEY_ONE_OF | KEY_ON_RESUME, AT(checkpoint.every.steps), .fallback = "0", .max = 1e15,
     .meaning = "or steps between them"},
    {"checkpoint.every.minutes", KEY_REAL, KEY_ONE_OF | KEY_ON_RESUME, AT(checkpoint.every.minutes), .fallback = "0", .max = COUNT_MAX,
     .meaning = "or minutes between them"},
    {"checkpoint.keep", KEY_INT, KEY_ON_RESUME, AT(checkpoint.keep), .fallback = "2", .min = 1, .max = 63,
     .meaning = "whole rounds that stay on disk"},
    {"limits.wan_patience", KEY_TIME, KEY_ON_RESUME | KEY_ABOVE_MIN, AT(limits.wan_patience_s), .fallback = "300 s", .max = 1e8,
     .meaning = "longest silence of another region"},
    {"limits.local", KEY_TIME, KEY_ON_RESUME | KEY_ABOVE_MIN, AT(limits.local_s), .fallback = "120 s", .max = 1e8,
     .meaning = "longest wait inside a region"},
    {"limits.nonfinite", KEY_INT, KEY_ON_RESUME, AT(limits.nonfinite), .fallback = "3", .min = 1, .max = COUNT_MAX,
     .meaning = "non-finite gradients or messages that end the run"},
    {"limits.wan_bytes", KEY_SIZE, KEY_ON_RESUME | KEY_OPTIONAL | KEY_ABOVE_MIN, AT(limits.wan_bytes),
     .meaning = "strategy traffic that is never passed: the run ends before, with a checkpoint; not given: none"},
    {"log.every", KEY_TIME, KEY_ON_RESUME | KEY_ABOVE_MIN, AT(log.every_s), .fallback = "10 s", .max = 1e8,
     .meaning = "time between progress lines in a log"},
    {"plan.strategies", KEY_CHOICES, PLANNED | KEY_FILLED, AT(plan.strategies), COUNT(plan.nstrategies), .values = gt_strategy_names, .min = 1,
     .meaning = "strategies that `geotrain plan` compares; not given: sync.strategy"},
    {"plan.periods", KEY_INTS, PLANNED | KEY_FILLED, AT(plan.periods), COUNT(plan.nperiods), .min = 1, .max = 1e15,
     .meaning = "periods that it compares, each with each strategy; not given: sync.period"},
    {"plan.samples_factor", KEY_MAPS, PLANNED, AT(plan.factors), COUNT(plan.nfactors), sizeof(gt_job_factor), .min = 1, .max = 1e6,
     .meaning = "a list: candidates that need more samples than others, or fewer, to be as accurate; not given: all alike"},
    {"plan.samples_factor[].strategy", KEY_CHOICE, KEY_REQUIRED, IN_FACTOR(strategy), .values = gt_strategy_names, .min = 1,
     .meaning = "of the candidate"},
    {"plan.samples_factor[].period", KEY_I64, KEY_OPTIONAL, IN_FACTOR(period), .min = 1, .max = 1e15,
     .meaning = "of the candidate; not given: any that has no factor of its own"},
    {"plan.samples_factor[].factor", KEY_REAL, KEY_REQUIRED | KEY_ABOVE_MIN, IN_FACTOR(factor), .max = 1e9,
     .meaning = "how many times as many samples it needs, from pilot runs"},
    {"plan.deadline", KEY_TIME, PLANNED | KEY_ABOVE_MIN, AT(plan.deadline_s), .max = 1e10, .meaning = "longest wall time of the run"},
    {"plan.budget", KEY_REAL, PLANNED | KEY_ABOVE_MIN, AT(plan.budget), .max = 1e15, .meaning = "most USD that the run may cost"},
    {"plan.start", KEY_TIME, KEY_ON_RESUME, AT(plan.start_s), .fallback = "30 s", .max = 1e8, .meaning = "from the allocation to the first step"},
    {"plan.billing", KEY_TIME, KEY_ON_RESUME | KEY_ABOVE_MIN, AT(plan.billing_s), .fallback = "1 s", .max = 1e8,
     .meaning = "machines are paid for in whole ones of it"},
    {"plan.catalogue", KEY_STRING, PLANNED, AT(plan.catalogue), .meaning = "file or folder of rates; not given: those that geotrain comes with"},
    {"plan.predicted.strategy", KEY_CHOICE, PLANNED, AT(plan.predicted.strategy), .values = gt_strategy_names, .min = 1,
     .meaning = "what `geotrain plan --write` chose; this and what follows goes with the run and is compared with it"},
    {"plan.predicted.wall", KEY_TIME, PLANNED, AT(plan.predicted.wall_s), .meaning = "wall time, as expected"},
    {"plan.predicted.wall_low", KEY_TIME, PLANNED, AT(plan.predicted.wall_low_s), .meaning = "at least"},
    {"plan.predicted.wall_high", KEY_TIME, PLANNED, AT(plan.predicted.wall_high_s), .meaning = "at most"},
    {"plan.predicted.step", KEY_TIME, PLANNED, AT(plan.predicted.step_s), .meaning = "time between two steps of a region"},
    {"plan.predicted.samples_per_s", KEY_REAL, PLANNED, AT(plan.predicted.samples_per_s), .max = 1e15, .meaning = "of all regions together"},
    {"plan.predicted.wan_bytes", KEY_SIZE, RATE, AT(plan.predicted.wan_bytes), .meaning = "traffic of the strategy"},
    {"plan.predicted.waiting", KEY_REAL, RATE, AT(plan.predicted.waiting), .max = 1, .meaning = "share of the time that waits for the WAN"},
    {"plan.predicted.cost", KEY_REAL, RATE, AT(plan.predicted.cost), .max = 1e15, .meaning = "USD"},
    {"plan.predicted.made", KEY_STRING, PLANNED, AT(plan.predicted.made), .meaning = "by which version, and when"},
    {"slurm.partition", KEY_STRING, BATCH | KEY_WORD, AT(slurm.partition), .meaning = "sbatch --partition; not given: the site's default"},
    {"slurm.constraint", KEY_STRING, BATCH | KEY_WORD, AT(slurm.constraint), .meaning = "sbatch --constraint: features that nodes must have"},
    {"slurm.account", KEY_STRING, BATCH | KEY_WORD, AT(slurm.account), .meaning = "sbatch --account: who pays"},
    {"slurm.qos", KEY_STRING, BATCH | KEY_WORD, AT(slurm.qos), .meaning = "sbatch --qos"},
    {"slurm.reservation", KEY_STRING, BATCH | KEY_WORD, AT(slurm.reservation), .meaning = "sbatch --reservation"},
    {"slurm.time", KEY_TIME, KEY_OPTIONAL | KEY_ABOVE_MIN | KEY_ON_RESUME, AT(slurm.time_s), .max = 1e8,
     .meaning = "sbatch --time, the limit of one job; not given: the partition's"},
    {"slurm.signal_before", KEY_TIME, KEY_ABOVE_MIN | KEY_ON_RESUME, AT(slurm.signal_before_s), .fallback = "120 s", .max = 65535,
     .meaning = "how long before the limit the ranks are told to stop with a checkpoint"},
    {"slurm.cpus_per_rank", KEY_INT, KEY_ON_RESUME, AT(slurm.cpus_per_rank), .fallback = "1", .min = 1, .max = 65535,
     .meaning = "cores of a rank: sbatch --cpus-per-task, and the threads of its arithmetic"},
    {"slurm.memory_per_cpu", KEY_SIZE, KEY_OPTIONAL | KEY_ABOVE_MIN | KEY_ON_RESUME, AT(slurm.memory_per_cpu),
     .meaning = "sbatch --mem-per-cpu; not given: the partition's"},
    {"slurm.mpi", KEY_STRING, KEY_ON_RESUME | KEY_SCRIPT | KEY_WORD, AT(slurm.mpi), .fallback = "pmix",
     .meaning = "srun --mpi, of which `srun --mpi=list` shows what the site has; mpirun: ranks are started by mpirun where it has no pmix"},
    {"slurm.options", KEY_STRINGS, BATCH, AT(slurm.options), COUNT(slurm.noptions),
     .meaning = "further sbatch options, a text each, as in [--exclusive, --mail-type=END]"},
    {"slurm.prologue", KEY_STRINGS, KEY_OPTIONAL | KEY_ON_RESUME, AT(slurm.prologue), COUNT(slurm.nprologue),
     .meaning = "lines of shell that the batch script begins with, as in [module load mpi]"},
};
const size_t gt_job_nkeys = sizeof gt_job_keys / sizeof *gt_job_keys;
_Static_assert(sizeof gt_job_keys / sizeof *gt_job_keys <= JOB_KEYS_MAX, "JOB_KEYS_MAX is too small for the table");

const job_key *gt_job_key_find(const char *path) {
  for (size_t i = 0; i < gt_job_nkeys; i++)
    if (strcmp(gt_job_keys[i].path, path) == 0) return &gt_job_keys[i];
  return NULL;
}

bool gt_job_key_list(const job_key *row) {
  return row->type >= KEY_INTS;
}

bool gt_job_key_prefix(const char *path) {
  size_t n = strlen(path);
  for (size_t i = 0; i < gt_job_nkeys; i++)
    if (strncmp(gt_job_keys[i].path, path, n) == 0 && gt_job_keys[i].path[n] == '.') return true;
  return n == 0;
}
