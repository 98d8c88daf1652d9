/* wan_store: PS ranks of regions joined by objects in a store that all of them reach: a folder of a
   shared file system, or S3.  No region needs an open port.  Layer 4. */
#pragma once

#include "geotrain/store.h"
#include "geotrain/wan_endpoint.h"

typedef struct {
  const char *url;          /* as for gt_objects_open */
  const char *const *names; /* nregions, borrowed for the call */
  size_t nregions, self;
  /* From one look for a message that has not come to the next, and, nregions, for messages of each
     region in a run; borrowed for the call. */
  double poll_s;
  const double *polls_s;
  double patience_s; /* how long a region may be silent, and the store may fail */
  bool restarts;     /* as gt_tcp_spec.restarts */
} gt_store_spec;

/* Opens the store; waits for nothing.  Errors as gt_objects_open.  Local. */
gt_status gt_store_join(gt_endpoint **out, const gt_store_spec *spec);
/* Requests that have ended.  A failed read is one of an object that is not there yet.  byte_s:
   bytes of objects times the seconds for which they were in the store, by the clocks of both
   regions.  bytes_shared: of messages whose payload was written for another region, too. */
typedef struct {
  int64_t writes, reads, failed_reads, deletes, bytes_in, bytes_out, bytes_shared;
  double byte_s;
} gt_store_counts;

/* Writes what this start of the region has asked of the store: data[0], for messages with data, for
   looks at what is not there yet, and for deletes; data[1], all others.  Local. */
void gt_store_count(const gt_endpoint *endpoint, gt_store_counts data[2]);
