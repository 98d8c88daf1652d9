/* job: a fleet: devices with the times of messages between them, from a profile that `geotrain
   probe --fleet` wrote or from CSV files.  Layer 1.  Local. docs/fleets.md, "Profile". */
#pragma once

#include "geotrain/base.h"

/* more require over 256 MiB for their links */
#define GT_JOB_FLEET_MAX ((size_t)4096)

typedef struct {
  char *name;
  char *host, *region; /* as in probe or the file, for users; "": not given */
  double power;        /* tasks per second, > 0 */
  double memory_bytes; /* > 0 */
} gt_job_fleet_device;

/* One direction between two devices: times of a message of 64 B and of 4 MiB, 0 < small_s <=
   large_s.  Both INFINITY: no connection. */
typedef struct {
  double small_s, large_s;
} gt_job_fleet_link;

/* Operations first..last of a model, which stay in one stage: times of a sample on a device of
   power 1. */
typedef struct {
  char *name;
  size_t first, last;
  double forward_s, input_s, weight_s; /* forward, backward-input, backward-weight */
} gt_job_fleet_operation;

typedef struct {
  size_t n; /* devices, 1 to GT_JOB_FLEET_MAX */
  gt_job_fleet_device *devices;
  gt_job_fleet_link *links;           /* [from * n + to]; the diagonal is 0 */
  gt_job_fleet_operation *operations; /* in the model's order; NULL: not given */
  size_t noperations;
  double theta_s; /* fleet.theta of the profile; 0: not given */
} gt_job_fleet;

/* Reads a fleet. path: a profile with a section `fleet`, or a folder with devices.csv and
   links.csv.  Every pair of devices has a time in both directions; a missing one is that of the
   other direction.  GT_ERR_JOB: one sentence names the file, the place and what was expected; *out
   is not written.  The caller closes *out. */
gt_status gt_job_fleet_load(gt_job_fleet **out, const char *path);
void gt_job_fleet_close(gt_job_fleet *fleet);
