/* The table of job keys.  Validation, defaults, nearest names, the job struct, the resolved job and
   `geotrain help job` all come from it.  A new key is one row here and one member in gt_job. */
#include <limits.h>

#include "internal.h"
#include "schema_rows.h"

#define AT(member)         .offset = offsetof(gt_job, member)
#define COUNT(member)      .count_offset = offsetof(gt_job, member)
#define IN_REGION(member)  .offset = offsetof(gt_job_region, member)
#define IN_LINK(member)    .offset = offsetof(gt_job_link, member)
#define IN_DEFAULT(member) AT(wan.fallback.member)
#define IN_OUTAGE(member)  .offset = offsetof(gt_job_outage, member)
#define IN_DEVICE(member)  .offset = offsetof(gt_job_device, member)
#define IN_FACTOR(member)  .offset = offsetof(gt_job_factor, member)
#define IN_STAGE(member)   .offset = offsetof(gt_job_stage, member)
#define COUNT_MAX          1e9
#define TLS                (KEY_OPTIONAL | KEY_ON_RESUME | KEY_PATH)
#define PLANNED            (KEY_OPTIONAL | KEY_ON_RESUME)
#define AT_SITE            (PLANNED | KEY_AT_SITE)
/* prices and predicted figures: optional; 0 is a valid value */
#define RATE  (KEY_UNSAID | KEY_ON_RESUME)
#define BATCH (AT_SITE | KEY_SCRIPT)
/* Options that only these strategies, or only this model, have.  OF: bits, joined by |. */
#define OF(value)       ((uint32_t)1 << (value))
#define STRATEGIES(set) .choice = "sync.strategy", .compared = "plan.strategies", .having = (set)
#define MODELS(set)     .choice = "model.name", .having = (set)
#define OPTIMIZERS(set) .choice = "train.optimizer.name", .having = (set)
#define SCHEDULES(set)  .choice = "train.schedule.name", .having = (set)
#define LOSSES(set)     .choice = "sync.on_loss", .having = (set)
#define OF_PIPELINE     .with = "pipeline.stages"
#define DECODERS                                                                                   \
  (OF(GT_MODEL_GPT) | OF(GT_MODEL_GPT_TINY) | OF(GT_MODEL_GPT_SMALL) | OF(GT_MODEL_GPT_124M))
#define SGD   OF(GT_OPTIMIZER_SGD)
#define ADAMS (OF(GT_OPTIMIZER_ADAM) | OF(GT_OPTIMIZER_ADAMW))

const job_key gt_job_keys[] = {
    {"name", KEY_STRING, KEY_REQUIRED, AT(name),
     .meaning = "name of the run in records and checkpoints"},
    {"seed", KEY_U64, 0, AT(seed), .fallback = "1",
     .meaning = "seed of initial weights, partition, order of samples and jitter"},
    {"model.name", KEY_CHOICE, KEY_REQUIRED, AT(model.name), .values = gt_model_names,
     .meaning = "the network; `geotrain info` describes them"},
    {"model.parameters", KEY_I64, KEY_OPTIONAL, AT(model.parameters), .max = 1e9,
     .meaning = "dummy: number of parameters; most of them are sent but not trained"},
    {"model.embedding", KEY_I64, KEY_OPTIONAL, AT(model.embedding), .min = 1, .max = 65536,
     MODELS(OF(GT_MODEL_DEEPFM) | OF(GT_MODEL_LSTM)),
     .meaning = "embedding dimension; default: deepfm 10, lstm 128"},
    {"model.hidden", KEY_I64, KEY_OPTIONAL, AT(model.hidden), .min = 1, .max = 65536,
     MODELS(OF(GT_MODEL_LSTM) | OF(GT_MODEL_NISER)),
     .meaning = "width of the hidden state; default: lstm 128, niser 100"},
    {"model.scale", KEY_REAL, KEY_OPTIONAL | KEY_ABOVE_MIN, AT(model.scale), .max = 1e6,
     MODELS(OF(GT_MODEL_NISER)),
     .meaning = "sigma, the factor of the cosine of session and item; default: 16"},
    {"model.layers", KEY_I64, KEY_OPTIONAL, AT(model.layers), .min = 1, .max = 1024,
     MODELS(DECODERS), .meaning = "number of blocks; default: that of the preset, gpt 4"},
    {"model.width", KEY_I64, KEY_OPTIONAL, AT(model.width), .min = 1, .max = 65536,
     MODELS(DECODERS), .meaning = "embedding dimension; default: that of the preset, gpt 128"},
    {"model.heads", KEY_I64, KEY_OPTIONAL, AT(model.heads), .min = 1, .max = 65536,
     MODELS(DECODERS),
     .meaning = "attention heads; must divide the width; default: that of the preset, gpt 4"},
    {"model.context", KEY_I64, KEY_OPTIONAL, AT(model.context), .min = 1, .max = 65536,
     MODELS(DECODERS), .meaning = "context length in tokens; default: that of the preset, gpt 256"},
    {"model.untied", KEY_BOOL, 0, AT(model.untied), .fallback = "false", MODELS(DECODERS),
     .meaning = "the output head does not share the weights of the embedding"},
    {"model.positions", KEY_BOOL, 0, AT(model.positions), .fallback = "false",
     MODELS(OF(GT_MODEL_NISER)), .meaning = "vectors of the positions of clicks, as in NISER+"},
    {"model.stem", KEY_CHOICE, KEY_ON_RESUME, AT(model.stem), .fallback = "auto",
     .values = gt_stem_names, MODELS(OF(GT_MODEL_RESNET18)),
     .meaning =
         "first layers: small (a 3x3 convolution) or large (7x7 with stride 2, and pooling); "
         "auto: large if images have 64 x 64 pixels or more"},
    {"model.dropout", KEY_REAL, 0, AT(model.dropout), .fallback = "0", .max = 0.99,
     MODELS(OF(GT_MODEL_DEEPFM) | OF(GT_MODEL_LSTM) | OF(GT_MODEL_NISER) | OF(GT_MODEL_MLP) |
            DECODERS),
     .meaning = "probability with which training sets an activation to 0; not with a pipeline"},
    {"model.mlp", KEY_INTS, KEY_OPTIONAL, AT(model.mlp), COUNT(model.nmlp), .min = 1, .max = 65536,
     MODELS(OF(GT_MODEL_DEEPFM) | OF(GT_MODEL_MLP)),
     .meaning = "widths of the perceptron's hidden layers; default: deepfm 400, 400, 400, mlp 256, "
                "256"},
    {"data.path", KEY_STRING, KEY_OPTIONAL | KEY_PATH, AT(data.path),
     .meaning = "HDF5 data set of the regions that do not name their own; a file, or a URL"},
    {"data.partition.by", KEY_CHOICE, 0, AT(data.partition.by), .fallback = "shares",
     .values = gt_partition_names,
     .meaning = "how the samples of a file are divided among the regions that read it: at random "
                "by shares, by whole labels, by Dirichlet(alpha) "
                "for each label; file: one file per region"},
    {"data.partition.shares", KEY_REALS, KEY_OPTIONAL, AT(data.partition.shares),
     COUNT(data.partition.nshares), .max = 1e12,
     .meaning = "one number per region, proportional to its part (with shares, label and "
                "dirichlet); 0 for a region that only aggregates or does not have the first stage "
                "of a pipeline; default: equal parts"},
    {"data.partition.alpha", KEY_REAL, KEY_ABOVE_MIN, AT(data.partition.alpha), .fallback = "0.5",
     .max = 1e6,
     .meaning = "parameter of the Dirichlet distribution; small values give uneven parts"},
    {"data.classes", KEY_CHOICE, 0, AT(data.classes), .fallback = "same",
     .values = gt_class_set_names,
     .meaning = "same: the classes of all regions have the same names in the same order; union: "
                "every region has classes of its own, and names decide which are the same"},
    {"data.augment", KEY_CHOICE, 0, AT(data.augment), .fallback = "none",
     .values = gt_augment_names,
     .meaning = "training images; none: unchanged; crop-flip: a random window of the image with a "
                "border of 4 pixels, mirrored with probability 1/2"},
    {"data.validation", KEY_REAL, KEY_OPTIONAL | KEY_ABOVE_MIN, AT(data.validation), .max = 0.5,
     .meaning =
         "share of each region's training samples that is held back: their loss judges every "
         "checkpoint; default: none"},
    {"data.mean", KEY_REALS, KEY_OPTIONAL | KEY_FILLED, AT(data.mean), COUNT(data.nmean),
     .min = -1e6, .max = 1e6,
     .meaning = "mean of uint8 images, one number per channel in units of 255; default: that of "
                "the regions' files, or if they differ, that of all "
                "training images together"},
    {"data.std", KEY_REALS, KEY_OPTIONAL | KEY_FILLED | KEY_ABOVE_MIN, AT(data.std),
     COUNT(data.nstd), .max = 1e6,
     .meaning = "standard deviation of uint8 images, in the same form"},
    {"train.until.epochs", KEY_REAL, KEY_ONE_OF | KEY_ON_RESUME, AT(train.until.epochs),
     .fallback = "0", .max = COUNT_MAX,
     .meaning = "end of training, in epochs: passes over the region's own samples"},
    {"train.until.steps", KEY_I64, KEY_ONE_OF | KEY_ON_RESUME, AT(train.until.steps),
     .fallback = "0", .max = 1e15, .meaning = "end of training: the region's own steps"},
    {"train.until.samples", KEY_I64, KEY_ONE_OF | KEY_ON_RESUME, AT(train.until.samples),
     .fallback = "0", .max = 1e15, .meaning = "end of training: the region's own samples"},
    {"train.batch", KEY_INT, 0, AT(train.batch), .fallback = "64", .min = 1, .max = 1e6,
     .meaning = "batch size of a worker; of a pipeline: batch size of the whole pipeline"},
    {"train.optimizer.name", KEY_CHOICE, 0, AT(train.optimizer.name), .fallback = "sgd",
     .values = gt_optimizer_names, .meaning = "optimizer of the local steps"},
    {"train.optimizer.lr", KEY_REAL, KEY_REQUIRED | KEY_ABOVE_MIN, AT(train.optimizer.lr),
     .max = 1e6, .meaning = "learning rate"},
    {"train.optimizer.momentum", KEY_REAL, KEY_BELOW_MAX | KEY_LENIENT,
     AT(train.optimizer.momentum), .fallback = "0", .max = 1, OPTIMIZERS(SGD),
     .meaning = "momentum factor"},
    {"train.optimizer.nesterov", KEY_BOOL, KEY_LENIENT, AT(train.optimizer.nesterov),
     .fallback = "false", OPTIMIZERS(SGD), .meaning = "use Nesterov's momentum"},
    {"train.optimizer.weight_decay", KEY_REAL, 0, AT(train.optimizer.weight_decay), .fallback = "0",
     .max = 1e6, .meaning = "weight decay"},
    {"train.optimizer.beta1", KEY_REAL, KEY_BELOW_MAX | KEY_LENIENT, AT(train.optimizer.beta1),
     .fallback = "0.9", .max = 1, OPTIMIZERS(ADAMS), .meaning = "decay rate of the first moment"},
    {"train.optimizer.beta2", KEY_REAL, KEY_BELOW_MAX | KEY_LENIENT, AT(train.optimizer.beta2),
     .fallback = "0.999", .max = 1, OPTIMIZERS(ADAMS),
     .meaning = "decay rate of the second moment"},
    {"train.optimizer.epsilon", KEY_REAL, KEY_ABOVE_MIN | KEY_LENIENT, AT(train.optimizer.epsilon),
     .fallback = "1e-08", .max = 1, OPTIMIZERS(ADAMS), .meaning = "added to the denominator"},
    {"train.schedule.name", KEY_CHOICE, 0, AT(train.schedule.name), .fallback = "constant",
     .values = gt_schedule_names, .meaning = "how the learning rate changes after warm-up"},
    {"train.schedule.warmup_steps", KEY_I64, 0, AT(train.schedule.warmup_steps), .fallback = "0",
     .max = 1e15, .meaning = "steps over which the learning rate rises from 0"},
    {"train.schedule.step_every", KEY_I64, KEY_LENIENT, AT(train.schedule.step_every),
     .fallback = "0", .max = 1e15, SCHEDULES(OF(GT_LR_STEP)),
     .meaning = "steps between two decreases of the learning rate"},
    {"train.schedule.gamma", KEY_REAL, KEY_ABOVE_MIN | KEY_LENIENT, AT(train.schedule.gamma),
     .fallback = "0.1", .max = 1, SCHEDULES(OF(GT_LR_STEP)), .meaning = "factor of each decrease"},
    {"train.schedule.lr_min", KEY_REAL, KEY_LENIENT, AT(train.schedule.lr_min), .fallback = "0",
     .max = 1e6, SCHEDULES(OF(GT_LR_COSINE)), .meaning = "learning rate at the end"},
    {"train.clip", KEY_REAL, 0, AT(train.clip), .fallback = "0", .max = 1e6,
     .meaning =
         "gradient clipping: the largest L2 norm of the gradient of a step; a gradient with a "
         "larger norm is scaled down to it; 0: no clipping"},
    {"train.precision", KEY_CHOICE, 0, AT(train.precision), .fallback = "f32",
     .values = gt_precision_names,
     .meaning = "precision of the heavy operations and their results; parameters, gradients and "
                "sums stay f32; f32 if the CPU or the build has no bf16"},
    {"train.kernels", KEY_CHOICE, 0, AT(train.kernels), .fallback = "auto",
     .values = gt_kernels_names,
     .meaning = "kernels: auto: the fastest for each operation; dnn: oneDNN where possible; blas: "
                "OpenBLAS; ref: plain loops"},
    {"train.choices", KEY_STRING, KEY_ON_RESUME | KEY_AT_SITE, AT(train.choices),
     .fallback = "measure",
     .meaning = "kernels auto: measure (time the algorithms at the start; under the virtual clock: "
                "rule), rule (a fixed one), or a file by `info JOB --measure`"},
    {"train.init", KEY_STRING, KEY_OPTIONAL | KEY_PATH, AT(train.init),
     .meaning = "checkpoint, final.h5 or safetensors file to start from; default: random, by seed"},
    {"train.keep", KEY_CHOICE, KEY_ON_RESUME, AT(train.keep), .fallback = "last",
     .values = gt_kept_names,
     .meaning = "the final model: of the last step, or of the best checkpoint by data.validation"},
    {"train.patience", KEY_INT, KEY_OPTIONAL | KEY_ON_RESUME, AT(train.patience), .min = 1,
     .max = 1e6,
     .meaning = "keep best: number of checkpoints in a row that are not the best so far, "
                "after which training ends; default: none"},
    {"train.eval_every.epochs", KEY_REAL, KEY_ONE_OF, AT(train.eval_every.epochs), .fallback = "1",
     .max = COUNT_MAX, .meaning = "epochs between evaluations on the test set; 0: only at the end"},
    {"train.eval_every.steps", KEY_I64, KEY_ONE_OF, AT(train.eval_every.steps), .fallback = "0",
     .max = 1e15, .meaning = "steps between evaluations"},
    {"regions", KEY_MAPS, KEY_REQUIRED, AT(regions), COUNT(nregions), sizeof(gt_job_region),
     .min = 1, .max = 65535,
     .meaning = "list of regions; a region is a set of ranks that are close to each other"},
    {"regions[].name", KEY_STRING, KEY_REQUIRED, IN_REGION(name),
     .meaning = "name of the region and of its files (letters, digits, dot, dash, underscore)"},
    {"regions[].ranks", KEY_INT, KEY_REQUIRED | KEY_ON_RESUME | KEY_AUTO, IN_REGION(ranks),
     .min = 1, .max = 1e6,
     .meaning = "MPI ranks: one parameter server and the workers; 1: no workers and no data, the "
                "region only aggregates; auto: as many as `geotrain plan` chooses"},
    {"regions[].data.path", KEY_STRING, KEY_OPTIONAL | KEY_PATH, IN_REGION(data_path),
     .meaning = "the region's own data set; default: data.path"},
    {"regions[].hosts", KEY_STRINGS, AT_SITE, IN_REGION(hosts),
     .count_offset = offsetof(gt_job_region, nhosts),
     .meaning = "host names whose ranks belong to the region; default: ranks in order"},
    {"regions[].access", KEY_RATE, KEY_OPTIONAL | KEY_ABOVE_MIN, IN_REGION(access_bps),
     .meaning = "rate of each direction of the region's access to the WAN, shared by its links; "
                "default: unlimited"},
    {"regions[].address", KEY_STRING, KEY_OPTIONAL | KEY_ON_RESUME | KEY_WORD, IN_REGION(address),
     .meaning = "transport tcp: host:port at which others reach its PS; default: it only dials"},
    {"regions[].listen", KEY_STRING, AT_SITE | KEY_WORD, IN_REGION(listen),
     .meaning = "transport tcp: host:port at which its PS listens; default: address"},
    COMPUTE_ROWS("regions[].compute.", IN_REGION),
    GT_CODECS(CODEC_ROWS_OF_REGION){"regions[].compute.speeds", KEY_REALS,
                                    KEY_OPTIONAL | KEY_ABOVE_MIN | KEY_ON_RESUME, IN_REGION(speeds),
                                    .count_offset = offsetof(gt_job_region, nspeeds), .max = 1,
                                    .meaning = "one number per worker, multiplied by speed"},
    {"regions[].compute.measured", KEY_REALS, KEY_OPTIONAL | KEY_ABOVE_MIN | KEY_ON_RESUME,
     IN_REGION(measured), .count_offset = offsetof(gt_job_region, nmeasured),
     .meaning = "one number per worker: its speed relative to samples_per_s or step, measured by "
                "probe; does not slow workers under the real clock"},
    {"regions[].slurm.partition", KEY_STRING, BATCH | KEY_WORD, IN_REGION(slurm.partition),
     .meaning = "partition of the region's nodes; with several, the job is heterogeneous; default: "
                "slurm.partition"},
    {"regions[].slurm.constraint", KEY_STRING, BATCH | KEY_WORD, IN_REGION(slurm.constraint),
     .meaning = "features of the region's nodes; default: slurm.constraint"},
    {"regions[].slurm.nodes", KEY_INT, AT_SITE, IN_REGION(slurm.nodes), .min = 1, .max = 1e6,
     .meaning = "number of whole nodes for this region only, over which its ranks are spread; "
                "default: as many as its ranks need"},
    {"regions[].slurm.options", KEY_STRINGS, BATCH, IN_REGION(slurm.options),
     .count_offset = offsetof(gt_job_region, slurm.noptions),
     .meaning = "further sbatch options of the region's component of a heterogeneous job"},
    {"regions[].devices", KEY_MAPS, PLANNED, IN_REGION(devices), offsetof(gt_job_region, ndevices),
     sizeof(gt_job_device), .min = 1, .max = 1024,
     .meaning = "list of the region's devices; a device is one worker rank"},
    {"regions[].devices[].type", KEY_STRING, KEY_REQUIRED | KEY_WORD, IN_DEVICE(type),
     .meaning = "name of the device type, as in xeon"},
    {"regions[].devices[].count", KEY_I64, KEY_REQUIRED, IN_DEVICE(count), .max = COUNT_MAX,
     .meaning = "number of devices of this type"},
    {"regions[].devices[].power", KEY_SPEED, KEY_OPTIONAL | KEY_ABOVE_MIN, IN_DEVICE(power),
     .max = 1e15,
     .meaning = "samples/s of one device in training; a profile and compute take precedence"},
    {"regions[].devices[].price", KEY_REAL, KEY_UNSAID, IN_DEVICE(price), .max = 1e9,
     .meaning = "USD per hour of one device; default: regions[].price, else that of the catalogue, "
                "by place"},
    {"regions[].place", KEY_STRING, PLANNED | KEY_WORD, IN_REGION(place),
     .meaning = "place of the region in the catalogue of rates: CLOUD:PLACE, such as aws:london"},
    {"regions[].price", KEY_REAL, RATE, IN_REGION(price), .max = 1e9,
     .meaning = "USD per hour of a worker rank, or of a device without its own price; default: "
                "that of the catalogue, by place"},
    {"regions[].ps_price", KEY_REAL, RATE, IN_REGION(ps_price), .max = 1e9,
     .meaning = "USD per hour of the parameter server's rank; default: the catalogue's, by place"},
    {"regions[].samples", KEY_I64, PLANNED, IN_REGION(samples), .min = 1, .max = 1e15,
     .meaning = "number of samples in the region, for plans and simulations without a data set"},
    {"regions[].ranks_min", KEY_INT, PLANNED, IN_REGION(ranks_min), .min = 1, .max = 1e6,
     .meaning = "smallest number of workers that a plan may choose"},
    {"regions[].ranks_max", KEY_INT, PLANNED, IN_REGION(ranks_max), .min = 1, .max = 1e6,
     .meaning = "largest number of workers that a plan may choose"},
    {"pipeline.stages", KEY_MAPS, KEY_OPTIONAL | KEY_AUTO | KEY_ON_RESUME, AT(pipeline.stages),
     COUNT(pipeline.nstages), .auto_offset = offsetof(gt_job, pipeline.search),
     .item_size = sizeof(gt_job_stage), .min = 1, .max = 1024,
     .meaning =
         "list of the pipeline's stages, in the model's order; train.batch is then the batch "
         "of the whole pipeline, and sync.strategy must be none without pipeline.copies; auto: "
         "`geotrain plan` finds the stages"},
    {"pipeline.stages[].region", KEY_STRING, KEY_REQUIRED | KEY_ON_RESUME, IN_STAGE(region),
     .meaning = "region of the stage"},
    {"pipeline.stages[].workers", KEY_INT, KEY_ON_RESUME, IN_STAGE(workers), .fallback = "1",
     .min = 1, .max = 65535,
     .meaning = "workers that share the samples of the stage's micro-batches; the stages of a "
                "region must use all of its workers"},
    {"pipeline.stages[].last", KEY_STRINGS, KEY_OPTIONAL | KEY_FILLED | KEY_SINGLE | KEY_ON_RESUME,
     IN_STAGE(last), .count_offset = offsetof(gt_job_stage, nlast),
     .meaning = "name of the stage's last operation, or of its last group of operations (the name "
                "before the dot); two names in a folded pipeline, whose stages have two parts of "
                "the model; may be left out for the last part; default in all stages: parts with "
                "equal multiply-adds per worker"},
    {"pipeline.copies", KEY_MAPS, KEY_OPTIONAL, AT(pipeline.copies), COUNT(pipeline.ncopies),
     sizeof(gt_job_copy), .max = 1024, OF_PIPELINE,
     .meaning = "replicas of the pipeline, synchronized by sync.strategy; each replica makes steps "
                "of train.batch samples of its own"},
    {"pipeline.copies[].regions", KEY_STRINGS, KEY_REQUIRED | KEY_FILLED | KEY_SINGLE,
     .offset = offsetof(gt_job_copy, regions), .count_offset = offsetof(gt_job_copy, nregions),
     .meaning =
         "regions of the replica: the first stands for the first region that pipeline.stages "
         "names, and so on; each must have as many ranks as the region that it stands for"},
    {"pipeline.micro_batches", KEY_INT, KEY_AUTO | KEY_ON_RESUME, AT(pipeline.micro_batches),
     .fallback = "auto", .min = 1, .max = 1e6, OF_PIPELINE,
     .meaning = "number of micro-batches; must divide train.batch; auto: `geotrain plan` finds it, "
                "with stages: auto"},
    {"pipeline.schedule", KEY_CHOICE, KEY_ON_RESUME, AT(pipeline.schedule), .fallback = "auto",
     .values = gt_pipe_names, OF_PIPELINE,
     .meaning = "pipeline schedule; zb-v: a folded pipeline; auto: the fastest one found, by the "
                "times of compute and of the links"},
    {"pipeline.adapt", KEY_CHOICE, KEY_ON_RESUME, AT(pipeline.adapt), .fallback = "false",
     .values = gt_adapt_names, OF_PIPELINE,
     .meaning =
         "true: the order of the passes follows the measured links; workers then have as many "
         "slots as pipeline.memory allows; micro_batches: the number of micro-batches "
         "follows too, and with it the last bits of the parameters"},
    {"pipeline.labels", KEY_CHOICE, 0, AT(pipeline.labels), .fallback = "keep",
     .values = gt_labels_names, OF_PIPELINE,
     .meaning = "keep: labels stay in the region of the first stage, which must also have the last "
                "one; send: labels (of a text, the text itself) are sent to the last stage"},
    {"pipeline.memory", KEY_SIZE, KEY_OPTIONAL | KEY_ABOVE_MIN | KEY_ON_RESUME,
     AT(pipeline.memory_bytes), OF_PIPELINE,
     .meaning = "limit on the memory of a worker; the schedule stays within it; default: no limit"},
    {"sync.local", KEY_CHOICE, 0, AT(sync.local), .fallback = "sync", .values = gt_local_names,
     .meaning = "workers of a region: in step, or each at its own pace"},
    {"sync.strategy", KEY_CHOICE, 0, AT(sync.strategy), .fallback = "asgd-ga",
     .values = gt_strategy_names, .meaning = "what regions exchange over the WAN, and when"},
    {"sync.period", KEY_I64, KEY_LENIENT, AT(sync.period), .fallback = "8", .min = 1, .max = 1e15,
     STRATEGIES(PERIODIC), .meaning = "steps, or passes, between exchanges"},
    {"sync.period_unit", KEY_CHOICE, 0, AT(sync.period_unit), .fallback = "step",
     .values = gt_period_unit_names, STRATEGIES(PERIODIC),
     .meaning = "what the period counts: the region's steps, or passes of all its workers; with "
                "local async, a pass is one step of each worker; with local sync, every step is a "
                "pass"},
    {"sync.topology", KEY_CHOICE, 0, AT(sync.topology), .fallback = "mesh",
     .values = gt_topology_names,
     .meaning = "how regions exchange: mesh: all with all; hub: through one region; tree: along "
                "the best links; ring: each with the next; auto: the one of these with the "
                "shortest rounds, chosen at the start"},
    {"sync.hub", KEY_STRING, KEY_OPTIONAL, AT(sync.hub),
     .meaning =
         "name of the region that is the hub; default: the one that the others reach soonest"},
    {"sync.central", KEY_STRING, KEY_OPTIONAL, AT(sync.central),
     .meaning = "ssgd, sma: name of the region that computes all means and, with ssgd, the "
                "optimizer's steps; every worker's gradient or model is sent there separately, and "
                "the new model back to every worker; for comparisons; replaces sync.topology"},
    {"sync.weights", KEY_CHOICE, 0, AT(sync.weights), .fallback = "samples",
     .values = gt_weights_names,
     .meaning = "weights of regions in means: equal, or by their samples"},
    {"sync.scale", KEY_CHOICE, KEY_LENIENT, AT(sync.scale), .fallback = "sum",
     .values = gt_scale_names, STRATEGIES(UPDATES),
     .meaning = "weight of an update; sum: 1; mean: 1/regions in other regions; average: the "
                "weight of the region that made it (there 1 until it is sent)"},
    {"sync.exchange", KEY_CHOICE, 0, AT(sync.exchange), .fallback = "update",
     .values = gt_exchanged_names, STRATEGIES(UPDATES),
     .meaning = "what is sent; update: what the sender's optimizer added to its parameters; "
                "gradient: the gradient, which the receiver subtracts times its own learning rate"},
    {"sync.merge", KEY_CHOICE, 0, AT(sync.merge), .fallback = "weight", .values = gt_merge_names,
     STRATEGIES(MERGES),
     .meaning = "how far the region's own model moves towards a received one; weight: by the "
                "weight of that model's region; half: half way"},
    {"sync.outer.name", KEY_CHOICE, 0, AT(sync.outer.name), .fallback = "none",
     .values = gt_outer_names, STRATEGIES(AVERAGING),
     .meaning = "optimizer that moves the model of the last round by the mean of the regions' "
                "changes to it (DiLoCo); none: the next model is the mean of the regions' models"},
    {"sync.outer.lr", KEY_REAL, KEY_ABOVE_MIN, AT(sync.outer.lr), .fallback = "0.7", .max = 1e6,
     OUTERS(OF(GT_OUTER_SGD) | OF(GT_OUTER_NESTEROV) | OF(GT_OUTER_ADAM)),
     .meaning = "learning rate of the outer optimizer"},
    {"sync.outer.lr_min", KEY_REAL, 0, AT(sync.outer.lr_min), .fallback = "0", .max = 1e6,
     OUTERS(OF(GT_OUTER_SGD) | OF(GT_OUTER_NESTEROV) | OF(GT_OUTER_ADAM)),
     .meaning = "over the last quarter of the rounds the outer learning rate falls along a cosine "
                "to this rate; 0: it is constant"},
    {"sync.outer.momentum", KEY_REAL, KEY_BELOW_MAX, AT(sync.outer.momentum), .fallback = "0.9",
     .max = 1, OUTERS(OF(GT_OUTER_SGD) | OF(GT_OUTER_NESTEROV) | OF(GT_OUTER_ADAM)),
     .meaning = "momentum factor of the outer optimizer; adam: decay rate of its first moment"},
    {"sync.guard.outlier", KEY_REAL, 0, AT(sync.guard.outlier), .fallback = "0", .max = 1e6,
     STRATEGIES(AVERAGING),
     .meaning = "a region's part of a mean is left out if its norm is so many standard deviations "
                "above the mean of earlier ones (EDiT: 3), or if it is not finite; 0: none is"},
    {"sync.guard.clip", KEY_REAL, 0, AT(sync.guard.clip), .fallback = "0", .max = 1e15,
     STRATEGIES(AVERAGING),
     .meaning = "largest norm of the mean change of the model, or of a fragment, in a round; parts "
                "that are not finite are left out; 0: unlimited"},
    {"sync.guard.warmup", KEY_I64, 0, AT(sync.guard.warmup), .fallback = "20", .max = 1e15,
     STRATEGIES(AVERAGING),
     .meaning = "rounds of a region, or fragment, before one can be an outlier"},
    {"sync.quorum", KEY_REAL, KEY_ABOVE_MIN, AT(sync.quorum), .fallback = "1", .max = 1,
     STRATEGIES(AVERAGING),
     .meaning = "over a hub: a round ends with parts of this share of the weight, after the grace; "
                "a later part is in the next round, with less weight"},
    {"sync.grace", KEY_TIME, 0, AT(sync.grace_s), .fallback = "1 s", .max = 86400,
     STRATEGIES(AVERAGING), .meaning = "how long a round with its quorum waits for other regions"},
    {"sync.fragments", KEY_INT, 0, AT(sync.fragments), .fallback = "1", .min = 1, .max = 1024,
     STRATEGIES(AVERAGING),
     .meaning = "parts of the model with rounds of their own, evenly over the period, which they "
                "divide: shorter messages, more often"},
    {"sync.delay", KEY_I64, 0, AT(sync.delay), .fallback = "0", .max = 1e15, STRATEGIES(AVERAGING),
     .meaning = "steps between sending a part of a mean and taking the mean; less than the period"},
    {"sync.late", KEY_CHOICE, 0, AT(sync.late), .fallback = "carry", .values = gt_late_names,
     STRATEGIES(AVERAGING),
     .meaning = "what becomes of the steps of the delay; carry: they are added to the mean; blend: "
                "the model becomes the weighted mean of both; replace: they are lost"},
    {"sync.local_weight", KEY_REAL, 0, AT(sync.local_weight), .fallback = "0.5", .max = 1,
     .choice = "sync.late", .having = OF(GT_LATE_BLEND),
     .meaning = "weight of the region's own model with blend"},
    {"sync.on_loss", KEY_CHOICE, 0, AT(sync.on_loss), .fallback = "stop",
     .values = gt_on_loss_names, STRATEGIES(SENDING),
     .meaning = "when a region is lost, the run ends, or the others continue while they have most "
                "of the weight, and it can return; for regions that are MPI jobs of their own"},
    {"sync.tie", KEY_STRING, KEY_OPTIONAL, AT(sync.tie), LOSSES(OF(GT_ON_LOSS_CONTINUE)),
     .meaning = "name of the region that continues if half of the weight is left"},
    {"sync.codec.name", KEY_CHOICE, 0, AT(sync.codec.name), .fallback = "none",
     .values = gt_codec_names, STRATEGIES(SENDING),
     .meaning = "lossy encoding of messages; the part that a message leaves out is added to the "
                "next one; bf16, fp16: 16 bits per value; int8: 8; e3m0: 4; topk: the largest "
                "values; mask: values at random; powersgd: factors of low rank; dgc: the largest "
                "values of gradients, with momentum; none: float32"},
    {"sync.codec.density", KEY_REAL, KEY_ABOVE_MIN, AT(sync.codec.density), .fallback = "0.015625",
     .max = 1, CODECS(SPARSE), .meaning = "share of the values that are sent"},
    {"sync.codec.bits", KEY_INT, 0, AT(sync.codec.bits), .fallback = "2", .min = 2, .max = 8,
     CODECS(OF(GT_CODEC_TOPK)), .meaning = "bits of a value that is sent: 2 or 8"},
    {"sync.codec.rank", KEY_INT, 0, AT(sync.codec.rank), .fallback = "4", .min = 1, .max = 1024,
     CODECS(OF(GT_CODEC_POWERSGD)), .meaning = "rank of the factors of each tensor"},
    {"sync.codec.rounding", KEY_CHOICE, 0, AT(sync.codec.rounding), .fallback = "nearest",
     .values = gt_rounding_names, CODECS(ROUNDING),
     .meaning = "how values are rounded; stochastic: up or down at random, without bias"},
    {"sync.codec.decay", KEY_REAL, 0, AT(sync.codec.decay), .fallback = "1", .max = 1,
     CODECS(DECAYING),
     .meaning = "factor of the values left out, each time they are added to the next message"},
    {"sync.codec.momentum", KEY_REAL, KEY_BELOW_MAX, AT(sync.codec.momentum), .fallback = "0.9",
     .max = 1, CODECS(MOMENTUM),
     .meaning = "momentum factor of the gradients, in place of the optimizer's"},
    {"sync.codec.warmup", KEY_I64, 0, AT(sync.codec.warmup), .fallback = "0", .max = 1e15,
     CODECS(MOMENTUM),
     .meaning = "steps in which the density falls from 1/4 to its value, by factors of 4"},
    {"wan.transport", KEY_CHOICE, KEY_ON_RESUME, AT(wan.transport), .fallback = "mpi",
     .values = gt_wan_transport_names,
     .meaning = "what carries frames between regions: MPI, or TCP with TLS 1.3"},
    {"wan.tls.ca", KEY_STRING, TLS, AT(wan.tls.ca),
     .meaning = "file of the CA; the file `revoked` next to it lists revoked certificates; without "
                "wan.tls there is no TLS, and every address must be a loopback address"},
    {"wan.tls.cert", KEY_STRING, TLS, AT(wan.tls.cert),
     .meaning = "file of the region's certificate; <region> in the path is the region's name"},
    {"wan.tls.key", KEY_STRING, TLS, AT(wan.tls.key),
     .meaning = "file of the region's key; <region> in the path is the region's name"},
    {"wan.streams", KEY_INT, KEY_AUTO | KEY_ON_RESUME, AT(wan.streams), .fallback = "1", .min = 1,
     .max = 64,
     .meaning = "transport tcp: parallel connections of two regions, so that a lost packet "
                "does not slow all bytes down; auto: by bandwidth and latency"},
    {"wan.proxy", KEY_STRING, AT_SITE, AT(wan.proxy),
     .meaning = "transport tcp: http://host:port of a proxy by which the region dials (CONNECT)"},
    {"wan.emulate", KEY_BOOL, 0, AT(wan.emulate), .fallback = "false",
     .meaning = "delay messages as the links below would delay them"},
    {"wan.outbox", KEY_INT, 0, AT(wan.outbox), .fallback = "2", .min = 1, .max = 1024,
     .meaning = "number of messages that may wait to be sent to each other region"},
    {"wan.links", KEY_MAPS, KEY_OPTIONAL, AT(wan.links), COUNT(wan.nlinks), sizeof(gt_job_link),
     .max = 1e6,
     .meaning = "list of links; a direction that is neither in the list nor in the matrix uses "
                "wan.default, or is unlimited"},
    {"wan.links[].between", KEY_PAIR, KEY_OPTIONAL, IN_LINK(a),
     .meaning = "names of two regions: both directions"},
    {"wan.links[].from", KEY_STRING, KEY_OPTIONAL, IN_LINK(from),
     .meaning = "name of the sending region: one direction; instead of between"},
    {"wan.links[].to", KEY_STRING, KEY_OPTIONAL, IN_LINK(to),
     .meaning = "name of the receiving region, with from"},
    {"wan.links[].bandwidth", KEY_RATE, KEY_OPTIONAL | KEY_ABOVE_MIN, IN_LINK(bandwidth_bps),
     .meaning = "bandwidth of each direction; default: unlimited"},
    {"wan.links[].latency", KEY_TIME, 0, IN_LINK(latency_s), .fallback = "0 s", .max = 86400,
     .meaning = "one-way latency"},
    {"wan.links[].jitter", KEY_TIME, 0, IN_LINK(jitter_s), .fallback = "0 s", .max = 86400,
     .meaning = "standard deviation of the latency"},
    {"wan.links[].loss", KEY_REAL, KEY_OPTIONAL | KEY_BELOW_MAX, IN_LINK(loss), .max = 1,
     .meaning = "share of packets that are lost; reduces the goodput as it would for TCP"},
    {"wan.links[].trace", KEY_STRING, KEY_OPTIONAL | KEY_PATH, IN_LINK(trace),
     .meaning = "file of bandwidth over time: CSV time_s,bandwidth,latency or mahimahi's "
                "packet-delivery format; instead of bandwidth"},
    LINK_ROWS("wan.links[].", IN_LINK),
    {"wan.matrix", KEY_STRING, KEY_OPTIONAL, AT(wan.matrix),
     .meaning = "CSV file of links, one line per direction (a single line is for both): "
                "from,to,mbit_s,ms and optionally jitter_ms,loss; the links "
                "above take precedence"},
    {"wan.default.bandwidth", KEY_RATE, KEY_OPTIONAL | KEY_ABOVE_MIN,
     AT(wan.fallback.bandwidth_bps),
     .meaning = "bandwidth of each direction that is not in links or matrix; default: unlimited"},
    {"wan.default.latency", KEY_TIME, KEY_OPTIONAL, AT(wan.fallback.latency_s), .max = 86400,
     .meaning = "one-way latency"},
    {"wan.default.jitter", KEY_TIME, KEY_OPTIONAL, AT(wan.fallback.jitter_s), .max = 86400,
     .meaning = "standard deviation of the latency"},
    {"wan.default.loss", KEY_REAL, KEY_OPTIONAL | KEY_BELOW_MAX, AT(wan.fallback.loss), .max = 1,
     .meaning = "share of packets that are lost"},
    LINK_ROWS("wan.default.", IN_DEFAULT),
    {"wan.outages", KEY_MAPS, KEY_OPTIONAL, AT(wan.outages), COUNT(wan.noutages),
     sizeof(gt_job_outage), .max = 1e6,
     .meaning = "list of outages, during which two regions cannot reach each other"},
    {"wan.outages[].between", KEY_PAIR, KEY_REQUIRED, IN_OUTAGE(a),
     .meaning = "names of two regions"},
    {"wan.outages[].from", KEY_TIME, 0, IN_OUTAGE(from_s), .fallback = "0 s", .max = 1e8,
     .meaning = "start of the outage, counted from the start of the run"},
    {"wan.outages[].for", KEY_TIME, KEY_REQUIRED | KEY_ABOVE_MIN, IN_OUTAGE(for_s), .max = 1e8,
     .meaning = "length of the outage"},
    FAULT_ROWS,
    COMPUTE_ROWS("compute.", AT),
    GT_CODECS(CODEC_ROWS_OF_JOB){
        "compute.variation", KEY_REAL, KEY_BELOW_MAX, AT(compute_variation), .fallback = "0",
        .max = 1, .meaning = "standard deviation of a step's time divided by its mean; seeded"},
    {"compute.emulate", KEY_BOOL, 0, AT(compute_emulate), .fallback = "false",
     .meaning = "under the real clock, a step takes at least the time that compute gives"},
    {"profile", KEY_STRING, KEY_OPTIONAL, AT(profile),
     .meaning = "file written by `geotrain probe`: measured figures, which take precedence over "
                "those under compute"},
    {"checkpoint.every.epochs", KEY_REAL, KEY_ONE_OF | KEY_ON_RESUME, AT(checkpoint.every.epochs),
     .fallback = "0", .max = COUNT_MAX,
     .meaning = "epochs between checkpoints; if none of the three keys is given: only when the run "
                "ends or is stopped"},
    {"checkpoint.every.steps", KEY_I64, KEY_ONE_OF | KEY_ON_RESUME, AT(checkpoint.every.steps),
     .fallback = "0", .max = 1e15, .meaning = "steps between checkpoints"},
    {"checkpoint.every.minutes", KEY_REAL, KEY_ONE_OF | KEY_ON_RESUME, AT(checkpoint.every.minutes),
     .fallback = "0", .max = COUNT_MAX, .meaning = "minutes between checkpoints"},
    {"checkpoint.keep", KEY_INT, KEY_ON_RESUME, AT(checkpoint.keep), .fallback = "2", .min = 1,
     .max = 63, .meaning = "number of complete checkpoint rounds to keep on disk"},
    {"limits.wan_patience", KEY_TIME, KEY_ON_RESUME | KEY_ABOVE_MIN, AT(limits.wan_patience_s),
     .fallback = "300 s", .max = 1e8,
     .meaning = "how long another region may be silent before the run ends"},
    {"limits.local", KEY_TIME, KEY_ON_RESUME | KEY_ABOVE_MIN, AT(limits.local_s),
     .fallback = "120 s", .max = 1e8,
     .meaning = "how long a wait inside a region may take before the run ends"},
    {"limits.nonfinite", KEY_INT, KEY_ON_RESUME, AT(limits.nonfinite), .fallback = "3", .min = 1,
     .max = COUNT_MAX, .meaning = "number of non-finite gradients or messages that ends the run"},
    {"limits.wan_bytes", KEY_SIZE, KEY_ON_RESUME | KEY_OPTIONAL | KEY_ABOVE_MIN,
     AT(limits.wan_bytes),
     .meaning =
         "limit on strategy traffic: the run ends with a checkpoint before it would exceed the "
         "limit, or with a pipeline after the step that exceeded it; default: no limit"},
    {"log.every", KEY_TIME, KEY_ON_RESUME | KEY_ABOVE_MIN, AT(log.every_s), .fallback = "10 s",
     .max = 1e8, .meaning = "time between progress lines in a log"},
    {"plan.strategies", KEY_CHOICES, PLANNED | KEY_FILLED, AT(plan.strategies),
     COUNT(plan.nstrategies), .values = gt_strategy_names, .min = 1,
     .meaning = "strategies that `geotrain plan` compares; default: sync.strategy"},
    {"plan.periods", KEY_INTS, PLANNED | KEY_FILLED, AT(plan.periods), COUNT(plan.nperiods),
     .min = 1, .max = 1e15,
     .meaning =
         "periods that `geotrain plan` compares, each with each strategy; default: sync.period"},
    {"plan.codecs", KEY_CHOICES, PLANNED | KEY_FILLED, AT(plan.codecs), COUNT(plan.ncodecs),
     .values = gt_codec_names,
     .meaning = "codecs that `geotrain plan` compares, each with each strategy and period; those "
                "other than none are chosen only with a plan.samples_factor of their own; default: "
                "sync.codec.name"},
    {"plan.samples_factor", KEY_MAPS, PLANNED, AT(plan.factors), COUNT(plan.nfactors),
     sizeof(gt_job_factor), .min = 1, .max = 1e6,
     .meaning = "list of candidates that need more or fewer samples than others for the same "
                "accuracy; default: all need the same number"},
    {"plan.samples_factor[].strategy", KEY_CHOICE, KEY_REQUIRED, IN_FACTOR(strategy),
     .values = gt_strategy_names, .min = 1, .meaning = "strategy of the candidate"},
    {"plan.samples_factor[].period", KEY_I64, KEY_OPTIONAL, IN_FACTOR(period), .min = 1,
     .max = 1e15,
     .meaning = "period of the candidate; default: every period without its own factor"},
    {"plan.samples_factor[].codec", KEY_CHOICE, KEY_OPTIONAL, IN_FACTOR(codec),
     .values = gt_codec_names, .min = 1,
     .meaning = "codec of the candidate; default: none; without plan.codecs that of the job"},
    {"plan.samples_factor[].factor", KEY_REAL, KEY_REQUIRED | KEY_ABOVE_MIN, IN_FACTOR(factor),
     .max = 1e9, .meaning = "ratio of the samples that the candidate needs, from pilot runs"},
    {"plan.deadline", KEY_TIME, PLANNED | KEY_ABOVE_MIN, AT(plan.deadline_s), .max = 1e10,
     .meaning = "largest wall time of the run, including plan.start"},
    {"plan.budget", KEY_REAL, PLANNED | KEY_ABOVE_MIN, AT(plan.budget), .max = 1e15,
     .meaning = "largest cost of the run in USD"},
    {"plan.start", KEY_TIME, KEY_ON_RESUME, AT(plan.start_s), .fallback = "30 s", .max = 1e8,
     .meaning = "time from the allocation to the first step"},
    {"plan.billing", KEY_TIME, KEY_ON_RESUME | KEY_ABOVE_MIN, AT(plan.billing_s), .fallback = "1 s",
     .max = 1e8, .meaning = "machine time is billed in whole multiples of this time"},
    {"plan.catalogue", KEY_STRING, PLANNED, AT(plan.catalogue),
     .meaning = "file or folder of rates; default: those that come with geotrain"},
    {"plan.predicted.strategy", KEY_CHOICE, PLANNED, AT(plan.predicted.strategy),
     .values = gt_strategy_names, .min = 1,
     .meaning = "strategy that `geotrain plan --write` chose; the run compares itself with this "
                "prediction"},
    {"plan.predicted.wall", KEY_TIME, PLANNED, AT(plan.predicted.wall_s),
     .meaning = "expected wall time"},
    {"plan.predicted.wall_low", KEY_TIME, PLANNED, AT(plan.predicted.wall_low_s),
     .meaning = "low estimate of the wall time"},
    {"plan.predicted.wall_high", KEY_TIME, PLANNED, AT(plan.predicted.wall_high_s),
     .meaning = "high estimate of the wall time"},
    {"plan.predicted.step", KEY_TIME, PLANNED, AT(plan.predicted.step_s),
     .meaning = "time between two steps of a region"},
    {"plan.predicted.samples_per_s", KEY_REAL, PLANNED, AT(plan.predicted.samples_per_s),
     .max = 1e15, .meaning = "rate of all regions together"},
    {"plan.predicted.wan_bytes", KEY_SIZE, RATE, AT(plan.predicted.wan_bytes),
     .meaning = "traffic of the strategy"},
    {"plan.predicted.waiting", KEY_REAL, RATE, AT(plan.predicted.waiting), .max = 1,
     .meaning = "share of the time spent waiting for the WAN"},
    {"plan.predicted.cost", KEY_REAL, RATE, AT(plan.predicted.cost), .max = 1e15,
     .meaning = "cost in USD"},
    {"plan.predicted.made", KEY_STRING, PLANNED, AT(plan.predicted.made),
     .meaning = "version of geotrain that made the plan, and when"},
    {"slurm.partition", KEY_STRING, BATCH | KEY_WORD, AT(slurm.partition),
     .meaning = "sbatch --partition; default: that of the site"},
    {"slurm.constraint", KEY_STRING, BATCH | KEY_WORD, AT(slurm.constraint),
     .meaning = "sbatch --constraint: features that nodes must have"},
    {"slurm.account", KEY_STRING, BATCH | KEY_WORD, AT(slurm.account),
     .meaning = "sbatch --account: the account to charge"},
    {"slurm.qos", KEY_STRING, BATCH | KEY_WORD, AT(slurm.qos), .meaning = "sbatch --qos"},
    {"slurm.reservation", KEY_STRING, BATCH | KEY_WORD, AT(slurm.reservation),
     .meaning = "sbatch --reservation"},
    {"slurm.time", KEY_TIME, AT_SITE | KEY_ABOVE_MIN, AT(slurm.time_s), .max = 1e8,
     .meaning = "sbatch --time, the time limit of one job; default: that of the partition"},
    {"slurm.signal_before", KEY_TIME, KEY_ABOVE_MIN | KEY_ON_RESUME | KEY_AT_SITE,
     AT(slurm.signal_before_s), .fallback = "120 s", .max = 65535,
     .meaning = "time before the limit at which the ranks get a signal to stop with a checkpoint"},
    {"slurm.cpus_per_rank", KEY_INT, KEY_ON_RESUME | KEY_AT_SITE, AT(slurm.cpus_per_rank),
     .fallback = "1", .min = 1, .max = 65535,
     .meaning = "cores per rank: sbatch --cpus-per-task, and the number of compute threads"},
    {"slurm.memory_per_cpu", KEY_SIZE, AT_SITE | KEY_ABOVE_MIN, AT(slurm.memory_per_cpu),
     .meaning = "sbatch --mem-per-cpu; default: that of the partition"},
    {"slurm.mpi", KEY_STRING, KEY_ON_RESUME | KEY_AT_SITE | KEY_SCRIPT | KEY_WORD, AT(slurm.mpi),
     .fallback = "pmix",
     .meaning = "srun --mpi (`srun --mpi=list` shows what the site supports); mpirun: start ranks "
                "with mpirun, for sites without pmix"},
    {"slurm.options", KEY_STRINGS, BATCH, AT(slurm.options), COUNT(slurm.noptions),
     .meaning =
         "further sbatch options, one text each, for example [--exclusive, --mail-type=END]"},
    {"slurm.prologue", KEY_STRINGS, AT_SITE, AT(slurm.prologue), COUNT(slurm.nprologue),
     .meaning = "shell lines at the start of the batch script, for example [module load mpi]"},
};
const size_t gt_job_nkeys = sizeof gt_job_keys / sizeof *gt_job_keys;
_Static_assert(sizeof gt_job_keys / sizeof *gt_job_keys <= JOB_KEYS_MAX,
               "JOB_KEYS_MAX is too small for the table");
