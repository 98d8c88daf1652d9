/* base: the variants that a job file can choose from, in one list for each choice.  An entry has a
   constant, a name and, in some lists, a function table.  A new strategy, model or optimizer needs
   one line here and one file in the part that owns the list.  Other code reads the properties of a
   variant from its table and never compares names.  Layer 0, because the job (which reads the
   names) and the parts (which have the tables) both use it. */
#pragma once

#include <stdbool.h>

/* sync.strategy: gt_sync_ops of src/sync, and its facts for the job file: whether it sends
   messages, whether these are gradients, and whether it has the keys sync.period, sync.scale,
   sync.exchange, sync.merge and sync.outer. */
#define GT_STRATEGIES(X)                                                                           \
  X(GT_STRATEGY_NONE, "none", gt_sync_none, 0)                                                     \
  X(GT_STRATEGY_SSGD, "ssgd", gt_sync_ssgd, GT_SENDS | GT_GRADIENTS)                               \
  X(GT_STRATEGY_ASGD, "asgd", gt_sync_asgd, GT_SENDS | GT_HAS_UPDATES)                             \
  X(GT_STRATEGY_ASGD_GA, "asgd-ga", gt_sync_asgd_ga, GT_SENDS | GT_HAS_UPDATES | GT_HAS_PERIOD)    \
  X(GT_STRATEGY_AMA, "ama", gt_sync_ama, GT_SENDS | GT_HAS_PERIOD | GT_HAS_MERGE)                  \
  X(GT_STRATEGY_SMA, "sma", gt_sync_sma, GT_SENDS | GT_HAS_PERIOD | GT_HAS_OUTER)
enum {
  GT_SENDS = 1,
  GT_HAS_PERIOD = 2,
  GT_HAS_UPDATES = 4,
  GT_HAS_MERGE = 8,
  GT_HAS_OUTER = 16,
  GT_GRADIENTS = 32
};

/* model.name: gt_model of src/nn. */
#define GT_MODELS(X)                                                                               \
  X(GT_MODEL_LENET5, "lenet5", gt_model_lenet5)                                                    \
  X(GT_MODEL_RESNET18, "resnet18", gt_model_resnet18)                                              \
  X(GT_MODEL_DEEPFM, "deepfm", gt_model_deepfm)                                                    \
  X(GT_MODEL_DUMMY, "dummy", gt_model_dummy)                                                       \
  X(GT_MODEL_LSTM, "lstm", gt_model_lstm)                                                          \
  X(GT_MODEL_GPT, "gpt", gt_model_gpt)                                                             \
  X(GT_MODEL_GPT_TINY, "gpt-tiny", gt_model_gpt_tiny)                                              \
  X(GT_MODEL_GPT_SMALL, "gpt-small", gt_model_gpt_small)                                           \
  X(GT_MODEL_GPT_124M, "gpt-124m", gt_model_gpt_124m)                                              \
  X(GT_MODEL_NISER, "niser", gt_model_niser)                                                       \
  X(GT_MODEL_MLP, "mlp", gt_model_mlp)

/* model.stem: the first layers of resnet18. */
#define GT_STEMS(X)                                                                                \
  X(GT_STEM_AUTO, "auto")                                                                          \
  X(GT_STEM_SMALL, "small")                                                                        \
  X(GT_STEM_LARGE, "large")

/* train.optimizer.name: gt_optim_kind of src/nn. */
#define GT_OPTIMIZERS(X)                                                                           \
  X(GT_OPTIMIZER_SGD, "sgd", gt_optim_sgd)                                                         \
  X(GT_OPTIMIZER_ADAM, "adam", gt_optim_adam)                                                      \
  X(GT_OPTIMIZER_ADAMW, "adamw", gt_optim_adamw)

/* train.kernels: gt_kernels of src/tensor. */
#define GT_KERNEL_TABLES(X)                                                                        \
  X(GT_KERNELS_AUTO, "auto", gt_kernels_auto)                                                      \
  X(GT_KERNELS_DNN, "dnn", gt_kernels_dnn)                                                         \
  X(GT_KERNELS_BLAS, "blas", gt_kernels_blas)                                                      \
  X(GT_KERNELS_REF, "ref", gt_kernels_ref)

/* train.schedule.name: src/nn/schedule.c. */
#define GT_SCHEDULES(X)                                                                            \
  X(GT_LR_CONSTANT, "constant")                                                                    \
  X(GT_LR_STEP, "step")                                                                            \
  X(GT_LR_COSINE, "cosine")

/* pipeline.schedule: gt_pipe_ops of src/pipe. */
#define GT_PIPES(X)                                                                                \
  X(GT_PIPE_GPIPE, "gpipe", gt_pipe_gpipe)                                                         \
  X(GT_PIPE_1F1B, "1f1b", gt_pipe_1f1b)                                                            \
  X(GT_PIPE_ZB_H1, "zb-h1", gt_pipe_zb_h1)                                                         \
  X(GT_PIPE_ZB_H2, "zb-h2", gt_pipe_zb_h2)                                                         \
  X(GT_PIPE_ZB_V, "zb-v", gt_pipe_zb_v)                                                            \
  X(GT_PIPE_AUTO, "auto", gt_pipe_auto)

/* pipeline.labels: where the loss of a pipeline gets its labels. */
#define GT_LABELS(X)                                                                               \
  X(GT_LABELS_KEEP, "keep")                                                                        \
  X(GT_LABELS_SEND, "send")

/* pipeline.adapt: what is adapted to the network while training; "true": the order of the passes
   only. */
#define GT_ADAPTS(X)                                                                               \
  X(GT_ADAPT_NOTHING, "false")                                                                     \
  X(GT_ADAPT_ORDER, "true")                                                                        \
  X(GT_ADAPT_MICRO_BATCHES, "micro_batches")

/* data.partition.by: src/data/partition.c.  The values are used as keys of random numbers: add new
   ones at the end. */
#define GT_PARTITIONS(X)                                                                           \
  X(GT_PART_SHARES, "shares")                                                                      \
  X(GT_PART_LABEL, "label")                                                                        \
  X(GT_PART_DIRICHLET, "dirichlet")                                                                \
  X(GT_PART_FILE, "file")

/* data.classes: src/data/of_job.c. */
#define GT_CLASS_SETS(X)                                                                           \
  X(GT_CLASSES_SAME, "same")                                                                       \
  X(GT_CLASSES_UNION, "union")

/* data.augment: src/data/loader.c. */
#define GT_AUGMENTS(X)                                                                             \
  X(GT_AUGMENT_NONE, "none")                                                                       \
  X(GT_AUGMENT_CROP_FLIP, "crop-flip")

/* train.keep: src/train/resume.c. */
#define GT_KEEPS(X)                                                                                \
  X(GT_KEEP_LAST, "last")                                                                          \
  X(GT_KEEP_BEST, "best")

/* train.precision: src/tensor. */
#define GT_PRECISIONS(X)                                                                           \
  X(GT_F32, "f32")                                                                                 \
  X(GT_BF16, "bf16")

/* sync.local: src/net's plane, src/ps/local.c. */
#define GT_LOCALS(X)                                                                               \
  X(GT_LOCAL_SYNC, "sync")                                                                         \
  X(GT_LOCAL_ASYNC, "async")

/* sync.topology: gt_topology_ops of src/exchange, and what the job file needs to know of it: all
   exchange with all, so that no region has a place; messages go through a root, which sync.hub may
   name; one of the topologies is chosen when the run starts; simulations find the places of its
   regions. */
#define GT_TOPOLOGIES(X)                                                                           \
  X(GT_TOPOLOGY_MESH, "mesh", gt_topology_mesh, GT_ALL_WITH_ALL)                                   \
  X(GT_TOPOLOGY_HUB, "hub", gt_topology_hub, GT_ROOTED | GT_ROOT_NAMED | GT_HAS_QUORUM)            \
  X(GT_TOPOLOGY_TREE, "tree", gt_topology_tree, GT_ROOTED | GT_SEARCHED)                           \
  X(GT_TOPOLOGY_RING, "ring", gt_topology_ring, 0)
enum {
  GT_ALL_WITH_ALL = 1,
  GT_ROOTED = 2,
  GT_ROOT_NAMED = 4,
  GT_CHOSEN = 8,
  GT_SEARCHED = 16,
  GT_HAS_QUORUM = 32
};
#define GT_QUORUM_REGIONS 64 /* with a quorum: maximum number of regions */

/* sync.topology: one of those above is chosen when the run starts. */
#define GT_TOPOLOGY_TO_CHOOSE(X) X(GT_TOPOLOGY_AUTO, "auto", none, GT_CHOSEN | GT_SEARCHED)

/* The topology of sync.central.  sync.topology cannot select it. */
#define GT_TOPOLOGY_OF_CENTRAL(X) X(GT_TOPOLOGY_CENTRAL, "central", gt_topology_central, GT_ROOTED)

/* sync.codec.name: gt_codec_ops of src/codec, and its facts for the job file: it encodes updates,
   not models; encodes gradients only, with momentum of its own; its payloads add up without
   decoding; rounds to nearest or at random; has a density; has dependent sums. */
#define GT_CODEC_IDENTITY(X) X(GT_CODEC_NONE, "none", none, 0)
#define GT_CODECS(X)                                                                               \
  X(GT_CODEC_BF16, "bf16", gt_codec_bf16, 0)                                                       \
  X(GT_CODEC_FP16, "fp16", gt_codec_fp16, 0)                                                       \
  X(GT_CODEC_INT8, "int8", gt_codec_int8, GT_ROUNDS)                                               \
  X(GT_CODEC_E3M0, "e3m0", gt_codec_e3m0, GT_ROUNDS)                                               \
  X(GT_CODEC_TOPK, "topk", gt_codec_topk, GT_ADDITIVE | GT_DENSITY)                                \
  X(GT_CODEC_MASK, "mask", gt_codec_mask, GT_ADDITIVE | GT_DENSITY | GT_RESUMS)                    \
  X(GT_CODEC_POWERSGD, "powersgd", gt_codec_powersgd, GT_ADDITIVE | GT_RESUMS | GT_DEPENDENT)      \
  X(GT_CODEC_DGC, "dgc", gt_codec_dgc, GT_ADDITIVE | GT_DENSITY | GT_MOMENTUM)
enum {
  GT_ADDITIVE = 1,
  GT_MOMENTUM = 2,
  GT_RESUMS = 4,
  GT_ROUNDS = 8,
  GT_DENSITY = 16,
  GT_DEPENDENT = 32
};

/* wan.transport. */
#define GT_WAN_TRANSPORTS(X)                                                                       \
  X(GT_WAN_MPI, "mpi")                                                                             \
  X(GT_WAN_TCP, "tcp")                                                                             \
  X(GT_WAN_STORE, "store")

/* wan.store.trigger. */
#define GT_TRIGGERS(X)                                                                             \
  X(GT_TRIGGER_POLL, "poll")                                                                       \
  X(GT_TRIGGER_EVENT, "event")

/* sync.late. */
#define GT_LATES(X)                                                                                \
  X(GT_LATE_CARRY, "carry")                                                                        \
  X(GT_LATE_BLEND, "blend")                                                                        \
  X(GT_LATE_REPLACE, "replace")

/* sync.on_loss: what the others do when a region is lost. */
#define GT_ON_LOSSES(X)                                                                            \
  X(GT_ON_LOSS_STOP, "stop")                                                                       \
  X(GT_ON_LOSS_CONTINUE, "continue")

/* sync.codec.rounding. */
#define GT_ROUNDINGS(X)                                                                            \
  X(GT_ROUNDING_NEAREST, "nearest")                                                                \
  X(GT_ROUNDING_STOCHASTIC, "stochastic")

/* sync.weights: how regions are weighted in means. */
#define GT_WEIGHTS(X)                                                                              \
  X(GT_WEIGHTS_EQUAL, "equal")                                                                     \
  X(GT_WEIGHTS_SAMPLES, "samples")

/* sync.scale: the factor of a remote additive update. */
#define GT_SCALES(X)                                                                               \
  X(GT_SCALE_SUM, "sum")                                                                           \
  X(GT_SCALE_MEAN, "mean")                                                                         \
  X(GT_SCALE_AVERAGE, "average")

/* sync.exchange: what an additive strategy sends: updates or gradients. */
#define GT_EXCHANGED(X)                                                                            \
  X(GT_EXCHANGED_UPDATE, "update")                                                                 \
  X(GT_EXCHANGED_GRADIENT, "gradient")

/* sync.period_unit: what sync.period counts. */
#define GT_PERIOD_UNITS(X)                                                                         \
  X(GT_PERIOD_STEP, "step")                                                                        \
  X(GT_PERIOD_PASS, "pass")

/* sync.merge: how far a received model moves the local model. */
#define GT_MERGES(X)                                                                               \
  X(GT_MERGE_WEIGHT, "weight")                                                                     \
  X(GT_MERGE_HALF, "half")

/* sync.outer.name: the optimizer of the models that regions agree on. */
#define GT_OUTERS(X)                                                                               \
  X(GT_OUTER_NONE, "none")                                                                         \
  X(GT_OUTER_SGD, "sgd")                                                                           \
  X(GT_OUTER_NESTEROV, "nesterov")                                                                 \
  X(GT_OUTER_ADAM, "adam")

#define GT_FAMILY_CONSTANT(constant, ...) constant,

typedef enum { GT_STRATEGIES(GT_FAMILY_CONSTANT) } gt_strategy;
typedef enum { GT_MODELS(GT_FAMILY_CONSTANT) } gt_model_id;
typedef enum { GT_STEMS(GT_FAMILY_CONSTANT) } gt_stem;
typedef enum { GT_OPTIMIZERS(GT_FAMILY_CONSTANT) } gt_optimizer;
typedef enum { GT_KERNEL_TABLES(GT_FAMILY_CONSTANT) } gt_kernels_id;
typedef enum { GT_SCHEDULES(GT_FAMILY_CONSTANT) } gt_lr_kind;
typedef enum { GT_PIPES(GT_FAMILY_CONSTANT) } gt_pipe_kind;
typedef enum { GT_LABELS(GT_FAMILY_CONSTANT) } gt_labels;
typedef enum { GT_ADAPTS(GT_FAMILY_CONSTANT) } gt_adapt;
typedef enum { GT_PARTITIONS(GT_FAMILY_CONSTANT) } gt_part_kind;
typedef enum { GT_CLASS_SETS(GT_FAMILY_CONSTANT) } gt_class_set;
typedef enum { GT_AUGMENTS(GT_FAMILY_CONSTANT) } gt_augment;
typedef enum { GT_KEEPS(GT_FAMILY_CONSTANT) } gt_kept_model;
typedef enum { GT_PRECISIONS(GT_FAMILY_CONSTANT) } gt_precision;
typedef enum { GT_LOCALS(GT_FAMILY_CONSTANT) } gt_local;
typedef enum {
  GT_TOPOLOGIES(GT_FAMILY_CONSTANT) GT_TOPOLOGY_TO_CHOOSE(GT_FAMILY_CONSTANT)
      GT_TOPOLOGY_OF_CENTRAL(GT_FAMILY_CONSTANT)
} gt_topology;
typedef enum {
  GT_CODEC_IDENTITY(GT_FAMILY_CONSTANT) GT_CODECS(GT_FAMILY_CONSTANT) GT_CODEC_KINDS
} gt_codec_kind;
typedef enum { GT_WEIGHTS(GT_FAMILY_CONSTANT) } gt_weights;
typedef enum { GT_SCALES(GT_FAMILY_CONSTANT) } gt_scale;
typedef enum { GT_EXCHANGED(GT_FAMILY_CONSTANT) } gt_exchanged;
typedef enum { GT_PERIOD_UNITS(GT_FAMILY_CONSTANT) } gt_period_unit;
typedef enum { GT_MERGES(GT_FAMILY_CONSTANT) } gt_merge;
typedef enum { GT_OUTERS(GT_FAMILY_CONSTANT) } gt_outer;
typedef enum { GT_WAN_TRANSPORTS(GT_FAMILY_CONSTANT) } gt_wan_transport;
typedef enum { GT_TRIGGERS(GT_FAMILY_CONSTANT) } gt_trigger;
typedef enum { GT_LATES(GT_FAMILY_CONSTANT) } gt_late;
typedef enum { GT_ON_LOSSES(GT_FAMILY_CONSTANT) } gt_on_loss;
typedef enum { GT_ROUNDINGS(GT_FAMILY_CONSTANT) } gt_rounding;

/* The facts of each variant, in the order of the constants; true if a variant has one of
   `facts`. */
extern const unsigned gt_strategy_facts[], gt_topology_facts[], gt_codec_kind_facts[];
static inline bool gt_strategy_has(gt_strategy strategy, unsigned facts) {
  return (gt_strategy_facts[strategy] & facts) != 0;
}
static inline bool gt_topology_has(gt_topology topology, unsigned facts) {
  return (gt_topology_facts[topology] & facts) != 0;
}
static inline bool gt_codec_has(gt_codec_kind codec, unsigned facts) {
  return (gt_codec_kind_facts[codec] & facts) != 0;
}

/* The names in the order of the constants, NULL after the last. */
extern const char *const gt_pipe_names[], *const gt_labels_names[], *const gt_adapt_names[],
                                                                        *const gt_stem_names[];
extern const char *const gt_strategy_names[],
    *const gt_model_names[], *const gt_optimizer_names[],
                                 *const gt_kernels_names[],
                                     *const gt_schedule_names[],
                                         *const gt_partition_names[],
                                             *const gt_class_set_names[],
                                                 *const gt_augment_names[],
                                                     *const gt_kept_names[],
                                                         *const gt_precision_names[],
                                                             *const gt_local_names[],
                                                                 *const gt_topology_names[],
                                                                     *const gt_weights_names[],
                                                                         *const gt_scale_names[];
extern const char *const gt_exchanged_names[],
    *const gt_period_unit_names[], *const gt_merge_names[],
                                       *const gt_outer_names[],
                                           *const gt_codec_names[],
                                               *const gt_rounding_names[],
                                                   *const gt_trigger_names[],
                                                       *const gt_late_names[],
                                                           *const gt_wan_transport_names[],
                                                               *const gt_on_loss_names[];
