/* The internal interface of `geotrain placement`: options, the sites that they name, results. */
#pragma once

#include <stdio.h>

#include "geotrain/job_prices.h"
#include "geotrain/plan.h"

/* "a,b,c" split at its commas; owns its text. */
typedef struct {
  char *text;
  const char **names;
  size_t n;
} word_list;

/* Where workers are, an entry of --workers-at. */
typedef struct {
  const char *cloud, *place; /* cloud NULL: each of --clouds in turn */
  size_t point;              /* the place's number in worker_places */
} worker_spot;

typedef struct {
  /* add_s_per_gb: negative: that of the catalogue, or 1 if it has none */
  double model_bytes, memory_gb, train_s, setup_rtts, window_bytes, add_s_per_gb;
  gt_plan_pace pace;
  int64_t batches, each; /* each: workers per spot */
  word_list workers_at, worker_places, places, clouds, functions, storages;
  worker_spot *spots; /* workers_at.n; their texts are in workers_at */
  const char **files; /* nfiles catalogues; later ones override earlier ones */
  size_t nfiles;
  const char *csv, *plot;
  bool hierarchy, objects_by_month;
} placement_options;

/* The number of rates of a kind in use, and how many of them are assumed. */
typedef struct {
  size_t used, assumed;
} rate_count;

/* Sites are all clouds of the options at all their places. */
typedef struct {
  word_list clouds, places; /* of all options, without duplicates */
  gt_plan_sites sites;
  gt_plan_rates *rates;
  gt_plan_tariff *tariffs;
  gt_plan_tier **tiers; /* of each pair of sites, or NULL */
  gt_link_spec *up, *down;
  rate_count count[GT_RATES];
} placement_sites;

/* One point of the sweep. */
typedef struct {
  const char *cloud, *function, *storage, *place;
  bool regional;
  bool one_cloud; /* for function and storage, and for workers, unless they are on several */
  gt_plan_split split;
  gt_plan_terms terms;
} placement_result;

/* Reads the rates for the options from the catalogues; GT_ERR_JOB names a missing one, or a
   function without enough memory.  The caller closes *out, also after an error. */
gt_status gt_placement_find_sites(placement_sites *out, const placement_options *options);
void gt_placement_close_sites(placement_sites *sites);
/* Returns the number of a cloud's site at a place, which both are in the options. */
size_t gt_placement_site(const placement_sites *sites, const char *cloud, const char *place);

/* Prints the tables. */
void gt_placement_print(FILE *to, const placement_options *options, const placement_sites *sites,
                        const placement_result *results, size_t n);
gt_status gt_placement_csv(const char *path, const placement_result *results, size_t n);
