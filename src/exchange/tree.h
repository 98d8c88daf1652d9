/* Shared by the files of hub and tree.  Private to exchange. */
#ifndef GEOTRAIN_EXCHANGE_TREE_H
#define GEOTRAIN_EXCHANGE_TREE_H

#include "internal.h"

extern const gt_allreduce_ops gt_tree_allreduce;
extern const gt_broadcast_ops gt_tree_broadcast;

#endif
