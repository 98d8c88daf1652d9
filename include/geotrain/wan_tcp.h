/* wan_tcp: TCP between the PS ranks of regions, by TLS 1.3 with certificates on both sides.  Layer
   4.  Used by PS ranks only. */
#pragma once

#include "geotrain/net_peers.h"

typedef struct {
  const char *name;
  const char *address; /* "host:port" at which the others reach it; NULL: it only dials */
} gt_tcp_region;

typedef struct {
  const gt_tcp_region *regions; /* nregions, borrowed for the call */
  size_t nregions, self;
  const char *listen; /* "host:port" of this region's port; NULL: none */
  const char *proxy;  /* "host:port" of an HTTP proxy, through which it dials; NULL: none */
  /* files; all NULL: no TLS, for loopback addresses only */
  const char *ca, *cert, *key;
  size_t streams;    /* connections of two gateways, in parallel; 0: 1 */
  double patience_s; /* how long a region may be silent */
  /* The run continues when a region is lost, and a region that starts again is taken back
     (gt_gateway_events.on_lost); else the run ends. */
  bool restarts;
} gt_tcp_spec;

typedef struct gt_tcp gt_tcp;

/* Reads certificates, resolves addresses and opens the port; waits for name servers only, at most
   30 s each.
   GT_ERR_JOB: an address has a wrong form, or a certificate does not fit; GT_ERR_DATA: a file cannot
   be read; GT_ERR_LOST: a name is not known, or the port is not free.  Local. */
gt_status gt_tcp_open(gt_tcp **out, const gt_tcp_spec *spec);
void gt_tcp_close(gt_tcp *tcp);

/* Returns the PS ranks of all regions as a group, for regions that are MPI jobs of their own.  Its
   messages have their own connections, made when they are first needed and again when they break.
   A panic then tells the other regions its code, and without gt_tcp_spec.restarts they end with 5.
   A region that starts again gets every message again, and its own are dropped as far as they have
   been received before.  Borrows tcp.  Local. */
gt_peers *gt_tcp_peers(gt_tcp *tcp);
/* Call when the run has started, after the last use of the group, if regions are taken back: a
   region that starts again from now on returns.  It repeats the start alone: of each message that
   it expects it gets the one that was sent at the start, its own included.  Local. */
void gt_tcp_begun(gt_peers *peers);
/* Returns the number of this start of the region: random, never 0.  Local. */
uint64_t gt_tcp_start(const gt_tcp *tcp);
/* True if this region returns.  Local. */
bool gt_tcp_returns(const gt_tcp *tcp);
/* Returns the bytes that this start has copied to the region for others (the relay).  Local. */
uint64_t gt_tcp_relayed(const gt_tcp *tcp, size_t region);
/* Call before the gateway is closed: the region ends with this code, and regions that continue
   without it need not wait for it.  Without gt_tcp_spec.restarts, no effect.  Local. */
void gt_tcp_leave(gt_tcp *tcp, gt_status code);
/* Sets the number of the run, the same in all regions and in no other run: call before a gateway is
   opened.  Local. */
void gt_tcp_set_run(gt_tcp *tcp, uint64_t id);
