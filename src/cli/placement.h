/* The internal interface of `geotrain placement`: options, the sites that they name, results. */
#pragma once

#include <stdio.h>

#include "geotrain/job.h"
#include "geotrain/plan.h"

/* "a,b,c" split at its commas; owns its text. */
typedef struct {
  char *text;
  const char **names;
  size_t n;
} word_list;

typedef struct {
  double model_bytes, memory_gb, train_s, setup_rtts, window_bytes;
  gt_plan_pace pace;
  int64_t batches, each; /* each: workers per place */
  word_list workers_at, places, clouds, functions, storages;
  const char **files; /* nfiles catalogues; later ones override earlier ones */
  size_t nfiles;
  const char *csv, *plot;
  bool hierarchy;
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
  gt_link_spec *links;
  rate_count count[GT_RATES];
} placement_sites;

/* One point of the sweep. */
typedef struct {
  const char *cloud, *function, *storage, *place;
  bool regional;
  gt_plan_split split;
  gt_plan_terms terms;
} placement_result;

/* Prints the tables. */
void gt_placement_print(FILE *to, const placement_options *options, const placement_sites *sites,
                        const placement_result *results, size_t n);
gt_status gt_placement_csv(const char *path, const placement_result *results, size_t n);
