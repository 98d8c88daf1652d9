/* What the files of `geotrain placement` share: options, the sites that they name, results. */
#ifndef GEOTRAIN_CLI_PLACEMENT_H
#define GEOTRAIN_CLI_PLACEMENT_H

#include <stdio.h>

#include "geotrain/job.h"
#include "geotrain/plan.h"

/* "a,b,c" cut at its commas; owns its text. */
typedef struct {
  char *text;
  const char **names;
  size_t n;
} word_list;

typedef struct {
  double model_bytes, memory_gb, train_s, setup_rtts, window_bytes;
  gt_plan_pace pace;
  int64_t batches, each; /* each: workers a place */
  word_list workers_at, places, clouds, functions, storages;
  const char **files; /* catalogues, later ones over earlier ones; nfiles */
  size_t nfiles;
  const char *csv, *plot;
  bool hierarchy;
} placement_options;

/* How many rates of a kind were used, and how many of them are assumed. */
typedef struct {
  size_t used, assumed;
} rate_count;

/* Sites are all clouds of the options at all their places. */
typedef struct {
  word_list clouds, places; /* of all options, each once */
  gt_plan_sites sites;
  gt_plan_rates *rates;
  gt_plan_tariff *tariffs;
  gt_plan_tier **tiers; /* of each pair, or NULL */
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

/* Takes what the options need from the catalogues; GT_ERR_JOB names what is missing.  Close what it has filled, also after an error. */
gt_status gt_placement_sites(placement_sites *out, const placement_options *options);
void gt_placement_sites_close(placement_sites *sites);
size_t gt_placement_site(const placement_sites *sites, const char *cloud, const char *place);

/* The tables. */
void gt_placement_print(FILE *to, const placement_options *options, const placement_sites *sites, const placement_result *results, size_t n);
gt_status gt_placement_csv(const char *path, const placement_result *results, size_t n);
/* GT_ERR_JOB where there is no gnuplot in PATH. */
gt_status gt_placement_can_plot(void);
gt_status gt_placement_plot(const char *path, const placement_options *options, const placement_result *results, size_t n);

#endif
