/* How long a region waits for a sign of life of another: by the link from that region, not the one
   to it. */
#include "geotrain/link.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define BYTES ((size_t)1000000) /* 8 s at 1 Mbit/s */

static void waits(const gt_links *links, size_t self, size_t peer, double needed) {
  double found = gt_links_patience(links, peer, self, BYTES, 30);
  if (!(fabs(found - needed) < 1e-6 * needed))
    fail_msg("region %zu waits %g s for region %zu; %g s are needed", self, found, peer, needed);
}

static void by_the_link_from_the_peer(void **state) {
  (void)state;
  gt_job *job = NULL;
  gt_links *links = NULL;
  const char *text = "name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\ntrain: {until: {steps: "
                     "1}, optimizer: {lr: 0.1}}\n"
                     "regions: [{name: a, ranks: 2}, {name: b, ranks: 2}, {name: c, ranks: 2}]\n"
                     "wan:\n  links:\n"
                     "    - {from: a, to: b, bandwidth: 100 Mbit/s, latency: 1 ms}\n"
                     "    - {from: b, to: a, bandwidth: 1 Mbit/s, latency: 1 ms}\n"
                     "    - {between: [a, c], bandwidth: 2 Mbit/s, latency: 1 ms}\n";
  if (gt_job_parse(&job, "t.yaml", text) != GT_OK) fail_msg("%s", gt_error_text());
  assert_int_equal(gt_links_create(&links, job), GT_OK);
  waits(links, 0, 1, 80);
  waits(links, 1, 0, 30);
  waits(links, 0, 2, 40);
  waits(links, 2, 0, 40);
  waits(links, 1, 2, 30); /* the job gives this link no bandwidth */
  gt_links_close(links);
  gt_job_close(job);
  assert_int_equal(gt_alloc_alive(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_the_link_from_the_peer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
