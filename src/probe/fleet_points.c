/* Which workers measure their links, and with whom in which round. */
#include <string.h>

#include "fleet.h"

void gt_probe_points(const char (*hosts)[GT_PROBE_BOOT_ID], size_t n, bool all, size_t *point) {
  for (size_t i = 0; i < n; i++) {
    size_t first = all ? i : 0;
    while (strcmp(hosts[first], hosts[i]) != 0) first++;
    point[i] = first;
  }
}

size_t gt_probe_point_rounds(const size_t *point, size_t n) {
  size_t points = 0;
  for (size_t i = 0; i < n; i++) points += point[i] == i;
  return points < 2 ? 0 : points - 1 + points % 2;
}

size_t gt_probe_point_partner(const size_t *point, size_t n, size_t round, size_t self) {
  size_t points = 0, own = 0;
  if (point[self] != self) return n;
  for (size_t i = 0; i < n; i++) {
    if (i == self) own = points;
    points += point[i] == i;
  }
  const size_t other = gt_probe_partner(points, round, own);
  if (other >= points) return n;
  size_t at = 0;
  for (size_t i = 0; i < n; i++)
    if (point[i] == i && at++ == other) return i;
  return n;
}

size_t gt_probe_point_second(const size_t *point, size_t n, size_t first) {
  for (size_t i = 0; i < n; i++)
    if (i != first && point[i] == first) return i;
  return n;
}
