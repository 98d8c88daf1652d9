/* job_prices: catalogues of rates, and the prices of a job.  Layer 1.  Local. */
#pragma once

#include "geotrain/job.h"

/* ---- catalogues of rates ------------------------------------------------------------------------

   CSV files of cloud prices and links by place, one rate per line:
   `rate,cloud,place,to_cloud,to_place,from_gb,value,assumed`.  place, to_cloud and to_place may be
   `*`: any.  The most specific line applies: to_place is compared before to_cloud, to_cloud before
   place.  Only egress, links and the rates of storage have to_cloud and to_place.  from_gb: one
   line per tier: of egress, the first from 0; of function_gb_s, the sizes of memory that a vendor
   offers, or one line without it: any size.  assumed: empty, or the word `assumed`.  Empty lines
   and comments (#) are ignored. */

typedef enum {
  GT_RATE_VM_HOUR,          /* vm_hour: USD per hour of one machine */
  GT_RATE_VM_STEP_S,        /* vm_step_s: billing step of its time, seconds */
  GT_RATE_VM_MIN_S,         /* vm_min_s: minimum billed time, seconds */
  GT_RATE_FUNCTION_GB_S,    /* function_gb_s: USD per GB of memory and second */
  GT_RATE_FUNCTION_ADD,     /* function_add_s_per_gb: seconds in which a function adds a GB */
  GT_RATE_STORAGE_GB_MONTH, /* storage_gb_month: USD */
  GT_RATE_READ,             /* read_request: USD per request */
  GT_RATE_WRITE,            /* write_request */
  GT_RATE_LIST,             /* list_request */
  GT_RATE_EGRESS_GB,        /* egress_gb: USD per GB */
  GT_RATE_LINK_MBIT_S,      /* link_mbit_s: of one TCP stream */
  GT_RATE_LINK_RTT_MS,      /* link_rtt_ms: round trip */
  GT_RATE_STORAGE_UP,       /* storage_up_mbit_s: one upload, from a machine or function */
  GT_RATE_STORAGE_DOWN,     /* storage_down_mbit_s: one download, to a machine or function */
  GT_RATES
} gt_rate_kind;

typedef struct {
  double from_gb, value;
  bool assumed;
  const char *file; /* with line: origin of the rate; valid as long as the catalogue */
  size_t line;
} gt_rate;

typedef struct gt_catalogue gt_catalogue;

/* A place of a cloud. */
typedef struct {
  const char *cloud, *place;
} gt_rate_site;

/* Reads a CSV file, or all files of a folder with names that end in ".csv".  GT_ERR_JOB names the
   file, the line, what was found and what was expected: a line that cannot be parsed, a negative
   value, two lines for one rate, tiers that do not begin at 0, a receiving place or cloud without
   its own rates.  The caller owns *out. */
gt_status gt_catalogue_read(gt_catalogue **out, const char *path);
/* Adds rates to an existing catalogue; they replace rates with the same name, cloud, place,
   to_cloud and to_place.  After an error the catalogue can only be closed. */
gt_status gt_catalogue_add(gt_catalogue *catalogue, const char *path);
void gt_catalogue_close(gt_catalogue *catalogue);
/* Checks the name of a cloud or place.  GT_ERR_JOB, with the nearest known name, if the catalogue
   does not have it.  `where`: the option or key for the error text ("--clouds"). */
gt_status gt_catalogue_has_cloud(const gt_catalogue *catalogue, const char *where,
                                 const char *cloud);
gt_status gt_catalogue_has_place(const gt_catalogue *catalogue, const char *where,
                                 const char *place);
/* Converts "CLOUD:PLACE" to names in the catalogue, borrowed.  GT_ERR_JOB: wrong form, or no such
   cloud or place in the catalogue.  `where` as above ("regions.0.place"). */
gt_status gt_catalogue_site(const gt_catalogue *catalogue, const char *where, const char *text,
                            gt_rate_site *out);
/* Finds the rate of a site, or from one site to another (`to` is NULL for rates of one site): *n
   tiers at *out, borrowed; only egress and functions have more than one.  GT_ERR_JOB: it is
   missing; the text has the line to add. */
gt_status gt_catalogue_rate(const gt_catalogue *catalogue, gt_rate_kind kind, gt_rate_site site,
                            const gt_rate_site *to, const gt_rate **out, size_t *n);
/* Returns the first of *n tiers of such a rate; NULL: it is missing. */
const gt_rate *gt_catalogue_find(const gt_catalogue *catalogue, gt_rate_kind kind,
                                 gt_rate_site site, const gt_rate_site *to, size_t *n);
/* Returns the name of a rate, as in "vm_hour". */
const char *gt_rate_name(gt_rate_kind kind);
/* Finds geotrain's own rates: jobs/prices in the current folder, else share/geotrain/prices next to
   the program or one folder up, else jobs/prices. */
void gt_catalogue_default(char *path, size_t size);

/* ---- prices of a job ----------------------------------------------------------------------------

   The prices given in the job, else those of the catalogue (plan.catalogue, else
   gt_catalogue_default) for regions[].place.  Plans and runs both use them. */

typedef struct {
  double usd; /* per hour; below 0: not known */
  bool assumed;
} gt_job_price;

typedef struct {
  /* one price per entry of the region's devices; without devices one entry: the price of a worker
     rank */
  gt_job_price *devices;
  gt_job_price ps; /* of the PS rank */
  /* minimum billed time of a machine (vm_min_s of its place; 0 without a place); billing step:
     plan.billing */
  double min_s;
  bool has_place, assumed; /* assumed: applies to min_s */
  size_t site;             /* of the place */
  /* Of a region that is a function, with a place: USD per GB of memory and second, by size,
     borrowed from the catalogue. */
  const gt_rate *function;
  size_t nfunction;
} gt_job_region_prices;

/* The cost of data from one site to another: rates in USD per GB, borrowed from the catalogue, in
   ascending tiers (none if no two regions use it).  Each cloud has two pools of volumes for the
   tiers: data to its own places, and data to other clouds. */
typedef struct {
  const gt_rate *rates;
  size_t n, pool;
} gt_job_tariff;

typedef struct {
  bool known; /* a price or place is given, so that a cost can be computed */
  gt_job_region_prices *regions;
  size_t nregions;
  gt_job_tariff *tariffs; /* nsites x nsites; row: sender */
  size_t nsites, npools;
  struct {
    bool known;                     /* all traffic passes a store with a place */
    size_t site;                    /* of the store */
    gt_job_price read, write, list; /* of a request */
    double gb_month;                /* USD, as the study counts it; 0: not known */
  } store;
  /* prices that are not known, for messages: "workers of eu", "PS of eu", "egress of eu", "requests
     of the store"; none if `known` is false */
  char **missing;
  size_t nmissing;
  gt_catalogue *catalogue; /* NULL: not used */
} gt_job_prices;

/* Finds prices.  A device: its own price, else regions[].price, else vm_hour of the place.  The PS
   rank: ps_price, else vm_hour of the place.  Egress of a region without a place is not known.
   GT_ERR_JOB names a region whose place is not in the catalogue, or the missing line.  The caller
   closes *out. */
gt_status gt_job_prices_of(gt_job_prices *out, const gt_job *job);
void gt_job_prices_close(gt_job_prices *prices);
/* Returns the USD per hour of a worker rank of the region: mean over `workers`, which take its
   devices in list order. */
gt_job_price gt_job_worker_price(const gt_job *job, const gt_job_prices *prices, size_t region,
                                 int64_t workers);
