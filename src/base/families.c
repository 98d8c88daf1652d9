/* The names of the variants in each list. */
#include "geotrain/base_families.h"

#include <stddef.h>

#define NAME(constant, name, ...)           name,
#define FACTS(constant, name, table, facts) facts,

const unsigned gt_strategy_facts[] = {GT_STRATEGIES(FACTS)};
const unsigned gt_topology_facts[] = {GT_TOPOLOGIES(FACTS) GT_TOPOLOGY_TO_CHOOSE(FACTS)
                                          GT_TOPOLOGY_OF_CENTRAL(FACTS)};
const unsigned gt_codec_kind_facts[] = {GT_CODEC_IDENTITY(FACTS) GT_CODECS(FACTS)};

const char *const gt_strategy_names[] = {GT_STRATEGIES(NAME) NULL};
const char *const gt_model_names[] = {GT_MODELS(NAME) NULL};
const char *const gt_stem_names[] = {GT_STEMS(NAME) NULL};
const char *const gt_optimizer_names[] = {GT_OPTIMIZERS(NAME) NULL};
const char *const gt_kernels_names[] = {GT_KERNEL_TABLES(NAME) NULL};
const char *const gt_schedule_names[] = {GT_SCHEDULES(NAME) NULL};
const char *const gt_pipe_names[] = {GT_PIPES(NAME) NULL};
const char *const gt_labels_names[] = {GT_LABELS(NAME) NULL};
const char *const gt_adapt_names[] = {GT_ADAPTS(NAME) NULL};
const char *const gt_partition_names[] = {GT_PARTITIONS(NAME) NULL};
const char *const gt_class_set_names[] = {GT_CLASS_SETS(NAME) NULL};
const char *const gt_augment_names[] = {GT_AUGMENTS(NAME) NULL};
const char *const gt_kept_names[] = {GT_KEEPS(NAME) NULL};
const char *const gt_precision_names[] = {GT_PRECISIONS(NAME) NULL};
const char *const gt_local_names[] = {GT_LOCALS(NAME) NULL};
const char *const gt_topology_names[] = {GT_TOPOLOGIES(NAME) GT_TOPOLOGY_TO_CHOOSE(NAME) NULL};
const char *const gt_weights_names[] = {GT_WEIGHTS(NAME) NULL};
const char *const gt_scale_names[] = {GT_SCALES(NAME) NULL};
const char *const gt_exchanged_names[] = {GT_EXCHANGED(NAME) NULL};
const char *const gt_period_unit_names[] = {GT_PERIOD_UNITS(NAME) NULL};
const char *const gt_merge_names[] = {GT_MERGES(NAME) NULL};
const char *const gt_outer_names[] = {GT_OUTERS(NAME) NULL};
const char *const gt_wan_transport_names[] = {GT_WAN_TRANSPORTS(NAME) NULL};
const char *const gt_trigger_names[] = {GT_TRIGGERS(NAME) NULL};
const char *const gt_late_names[] = {GT_LATES(NAME) NULL};
const char *const gt_on_loss_names[] = {GT_ON_LOSSES(NAME) NULL};
const char *const gt_rounding_names[] = {GT_ROUNDINGS(NAME) NULL};
const char *const gt_codec_names[] = {GT_CODEC_IDENTITY(NAME) GT_CODECS(NAME) NULL};
