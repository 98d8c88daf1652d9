/* The name of a rank in messages about reachability, before the map of ranks exists. */
#include "internal.h"

#include <stdio.h>

void gt_reach_name(char *buf, size_t size, const gt_reach_rank *rank, int number,
                   const gt_region_plan *plan, size_t nregions) {
  char host[80] = "";
  if (rank->host[0]) snprintf(host, sizeof host, " on %s", rank->host);
  int region = rank->region;
  /* contiguous blocks, as in roles.c if no rank knows its region */
  if (region < 0 && plan && nregions > 0) {
    int at = 0;
    for (size_t r = 0; r < nregions && region < 0; r++)
      if ((at += plan[r].ranks) > number) region = (int)r;
  }
  if (region >= 0 && plan && (size_t)region < nregions)
    snprintf(buf, size, "region %s (rank %d%s)", plan[region].name, number, host);
  else
    snprintf(buf, size, "rank %d%s", number, host);
}
