/* Shared by the files of hub and tree.  Private to exchange. */
#pragma once

#include "internal.h"

extern const gt_allreduce_ops gt_tree_allreduce;
extern const gt_broadcast_ops gt_tree_broadcast;
