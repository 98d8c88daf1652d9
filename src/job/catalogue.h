/* A catalogue's inside: its lines in order, and the names in them. */
#ifndef GEOTRAIN_JOB_CATALOGUE_H
#define GEOTRAIN_JOB_CATALOGUE_H

#include "internal.h"

/* A line.  Texts lie in the text of its file; "*": any; "" where they do not belong to the rate. */
typedef struct {
  gt_rate_kind kind;
  const char *cloud, *place, *to_cloud, *to_place;
  size_t layer; /* later files take the place of earlier ones */
  gt_rate rate;
} catalogue_row;

typedef struct {
  const char **names; /* a NULL after the last */
  size_t n, capacity;
} name_list;

struct gt_catalogue {
  char *path;          /* as first given */
  catalogue_row *rows; /* by key, later layers first, then by tier */
  gt_rate *rates;      /* of the rows, so that tiers lie side by side */
  size_t n, capacity, layers;
  name_list clouds, places, texts, files; /* texts and files are owned */
};

/* By rate, cloud, place, to_cloud and to_place. */
int gt_catalogue_compare(const catalogue_row *a, const catalogue_row *b);
/* Whether a rate is from one site to another. */
bool gt_rate_has_to(gt_rate_kind kind);

#endif
