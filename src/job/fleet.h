/* Private to the readers of fleets. */
#ifndef GEOTRAIN_JOB_FLEET_READERS_H
#define GEOTRAIN_JOB_FLEET_READERS_H

#include "geotrain/job_fleet.h"
#include "internal.h"

/* ---- fleet_values.c: what both sources have in common ---------------------------------------- */

/* A fleet of n devices, each without a name, with no times yet. */
gt_job_fleet *gt_job_fleet_new(size_t n);
/* The errors of these begin with `at`, such as "FILE:3: power". */
gt_status gt_job_fleet_name(const char *at, const char *text);
gt_status gt_job_fleet_amount(const char *at, const char *text, double *out);
/* For a million of times: their place is only made into text if there is an error.  Whether the
   text is a time (infinite is one, too), and whether the times of a link are possible. */
bool gt_job_fleet_is_time(const char *text, double *out);
gt_status gt_job_fleet_no_time(const char *at, const char *text);
bool gt_job_fleet_is_link(const gt_job_fleet_link *link);
gt_status gt_job_fleet_no_link(const char *at, const gt_job_fleet_link *link);
/* The devices by name; the caller frees them. */
job_name *gt_job_fleet_names(const gt_job_fleet *fleet);
/* Whether a name is there twice; *first < *again are its numbers. */
bool gt_job_fleet_twice(const job_name *names, size_t n, size_t *first, size_t *again);

/* ---- sources --------------------------------------------------------------------------------- */

/* fleet_profile.c: the section `fleet` of a profile. */
gt_status gt_job_fleet_of_profile(gt_job_fleet **out, const char *file, const job_node *section);
/* fleet_csv.c: devices.csv and links.csv in a folder. */
gt_status gt_job_fleet_of_folder(gt_job_fleet **out, const char *folder);

#endif
