/* Regions meet in pairs: each pair once, and no region meets two others at a time, so that no other
   link of the two is in use during a measurement. */
#include "tests.h"
#include "internal.h"

#define MOST 64

static void test_every_pair_once(void) {
  static int met[MOST][MOST];
  for (size_t n = 2; n <= MOST; n++) {
    memset(met, 0, sizeof met);
    for (size_t round = 0; round + 1 < n + n % 2; round++)
      for (size_t self = 0; self < n; self++) {
        const size_t peer = gt_probe_partner(n, round, self);
        if (peer == n) continue;
        assert_true(peer < n && peer != self);
        assert_int_equal(gt_probe_partner(n, round, peer), self);
        met[self][peer]++;
      }
    for (size_t a = 0; a < n; a++)
      for (size_t b = 0; b < n; b++) assert_int_equal(met[a][b], a != b);
  }
}

/* With an odd number of regions, one has no partner in each round, and each region once. */
static void test_who_waits(void) {
  for (size_t n = 2; n <= 9; n++) {
    int waits[MOST] = {0};
    for (size_t round = 0; round + 1 < n + n % 2; round++)
      for (size_t self = 0; self < n; self++) waits[self] += gt_probe_partner(n, round, self) == n;
    for (size_t self = 0; self < n; self++) assert_int_equal(waits[self], n % 2);
  }
}

TESTS(test_every_pair_once, test_who_waits)
