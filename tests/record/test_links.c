/* wraps: strcmp.  Links of many regions: the order in which they are told of, what a region's carry
   together, and that neither looks at all names for each link. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "rooms.h"

/* Names are compared by strcmp alone, which the linker sends here first. */
static size_t compared;
int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b) {
  compared++;
  return __real_strcmp(a, b);
}

#define MANY 100
static gt_region_result regions[MANY];
static gt_link_result *links;

/* Every region to every other one, from last to first; r -> p has sent 1000 r + p bytes in p
   messages.  Regions do not stand in the order of their names. */
static gt_summary backwards(void) {
  size_t n = 0;
  for (size_t r = 0; r < MANY; r++) snprintf(regions[r].name, sizeof regions[r].name, "r%zu", r * 37 % MANY);
  for (size_t r = MANY; r-- > 0;)
    for (size_t p = MANY; p-- > 0;) {
      if (p == r) continue;
      gt_link_result *l = &links[n++];
      *l = (gt_link_result){
          .bytes_sent = (int64_t)(1000 * r + p), .messages = (int64_t)p, .bytes_other = 7, .bandwidth_bps_measured = 1e6 + (double)p};
      memcpy(l->from, regions[r].name, sizeof l->from);
      memcpy(l->to, regions[p].name, sizeof l->to);
    }
  return (gt_summary){
      .job = "j", .strategy = "sma", .clock = "real", .model = "m", .regions = regions, .nregions = MANY, .links = links, .nlinks = n};
}

static void test_order(void **unused) {
  (void)unused;
  gt_summary s = backwards();
  const gt_link_result **ordered = gt_links_ordered(&s);
  for (size_t r = 0, i = 0; r < MANY; r++)
    for (size_t p = 0; p < MANY; p++) {
      if (p == r) continue;
      assert_string_equal(ordered[i]->from, regions[r].name);
      assert_string_equal(ordered[i++]->to, regions[p].name);
    }
  gt_free(ordered);
}

/* Equal ones, and those of no region, keep the order that they have. */
static void test_order_of_strangers(void **unused) {
  (void)unused;
  gt_summary s = backwards();
  s.nlinks = 4;
  memcpy(links[0].from, "nobody", 7);
  memcpy(links[1].from, "nobody", 7);
  memcpy(links[1].to, links[0].to, sizeof links[1].to);
  memcpy(links[3].to, links[2].to, sizeof links[3].to);
  const gt_link_result **ordered = gt_links_ordered(&s);
  assert_ptr_equal(ordered[0], &links[2]);
  assert_ptr_equal(ordered[1], &links[3]);
  assert_ptr_equal(ordered[2], &links[0]);
  assert_ptr_equal(ordered[3], &links[1]);
  gt_free(ordered);
}

/* Of a thousand regions, looking at every name for each link were 2e9 comparisons. */
static void test_names_are_looked_up(void **unused) {
  (void)unused;
  gt_summary s = backwards();
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  compared = 0;
  gt_summary_print(to, &s);
  fclose(to);
  if (compared > 50 * s.nlinks) fail_msg("%zu comparisons of names for %zu links", compared, s.nlinks);
  /* r 3 has sent 3000 p bytes and more, to all but itself. */
  char want[128];
  snprintf(want, sizeof want, "%-8s%9.2f%13.2f%10d%13d%16.1f\n", regions[3].name, 1e-6 * (3000 * 99 + 99 * 50 - 3),
           1e-6 * (1000 * (99 * 50 - 3) + 3 * 99), 99 * 50 - 3, 99 * 7, 1.0);
  if (!strstr(text, want)) fail_msg("%s is not in %.2000s", want, text);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_order_of_strangers),
      cmocka_unit_test(test_names_are_looked_up),
  };
  links = malloc(MANY * MANY * sizeof *links);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(links);
  return failed;
}
