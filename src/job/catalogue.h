/* Internals of a catalogue: its lines in order, and the names in them. */
#ifndef GEOTRAIN_JOB_CATALOGUE_H
#define GEOTRAIN_JOB_CATALOGUE_H

#include "internal.h"

/* A line.  Texts point into the text of its file; "*": any; "" if the rate does not use the
   field. */
typedef struct {
  gt_rate_kind kind;
  const char *cloud, *place, *to_cloud, *to_place;
  size_t layer; /* files read later override earlier ones */
  gt_rate rate;
} catalogue_row;

typedef struct {
  const char **names; /* NULL after the last */
  size_t n, capacity;
} name_list;

struct gt_catalogue {
  char *path;          /* as first given */
  catalogue_row *rows; /* by key, then later layers first, then by tier */
  gt_rate *rates;      /* copies from the rows, so that the tiers are contiguous */
  size_t n, capacity, layers;
  name_list clouds, places, texts, files; /* owns texts and files */
};

/* By rate, cloud, place, to_cloud and to_place. */
int gt_catalogue_compare(const catalogue_row *a, const catalogue_row *b);
/* Whether a rate goes from one site to another. */
bool gt_rate_has_to(gt_rate_kind kind);

#endif
