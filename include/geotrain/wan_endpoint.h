/* wan_endpoint: what joins the PS ranks of regions that are MPI jobs of their own: TCP (wan_tcp.h)
   or a store (wan_store.h).  Layer 4.  Used by PS ranks only; every function is local. */
#pragma once

#include "geotrain/net_peers.h"

typedef struct gt_endpoint gt_endpoint;

void gt_endpoint_close(gt_endpoint *endpoint); /* NULL is allowed */

/* Returns the PS ranks of all regions as a group.  Its messages have a transport of their own, made
   when it is first needed.  A panic then tells the other regions its code, and if no region is
   taken back they end with 5.  A region that starts again gets every message again, and its own are
   dropped as far as they have been received before.  Borrows endpoint. */
gt_peers *gt_endpoint_peers(gt_endpoint *endpoint);
/* Call when the run has started, after the last use of the group, if regions are taken back: a
   region that starts again from now on returns.  It repeats the start alone: of each message that
   it expects it gets the one that was sent at the start, its own included. */
void gt_endpoint_begun(gt_peers *peers);
/* Lets the run begin without some regions, which join later: the first region begins it when enough
   are there and no other has come for the patience.  `enough` is called in the first region only,
   with the regions that are there; ctx is borrowed.  Call before the first message of the group,
   if regions are taken back. */
void gt_endpoint_begin_early(gt_endpoint *endpoint,
                             bool (*enough)(const void *ctx, const bool *there), const void *ctx);
/* Returns the regions without which the run begins, nregions, borrowed: known after the first
   message, except in these regions.  Their gathered values are those of the first region; they
   cannot share. */
const bool *gt_endpoint_late(const gt_endpoint *endpoint);
/* Returns the number of this start of the region: random, never 0. */
uint64_t gt_endpoint_start(const gt_endpoint *endpoint);
/* True if this region returns. */
bool gt_endpoint_returns(const gt_endpoint *endpoint);
/* Returns the bytes that this start has copied to the region for others (the relay). */
uint64_t gt_endpoint_relayed(const gt_endpoint *endpoint, size_t region);
/* Call before the gateway is closed: the region ends with this code, and regions that continue
   without it need not wait for it.  No effect if no region is taken back. */
void gt_endpoint_leave(gt_endpoint *endpoint, gt_status code);
/* Sets the number of the run, the same in all regions and in no other run: call before a gateway is
   opened. */
void gt_endpoint_set_run(gt_endpoint *endpoint, uint64_t id);
