/* wan_tcp: TCP between the PS ranks of regions, by TLS 1.3 with certificates on both sides.  Layer
   4.  Used by PS ranks only. */
#pragma once

#include "geotrain/wan_endpoint.h"

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

/* Reads certificates, resolves addresses and opens the port; waits for name servers only, at most
   30 s each.  GT_ERR_JOB: an address has a wrong form, or a certificate does not fit; GT_ERR_DATA:
   a file cannot be read; GT_ERR_LOST: a name is not known, or the port is not free.  Local. */
gt_status gt_tcp_open(gt_endpoint **out, const gt_tcp_spec *spec);
