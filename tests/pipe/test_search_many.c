/* labels: full, timeout: 900 */
/* The search for a pipeline against all pipelines of 1,000 small problems; its time for 48
   operations on 100 devices. */
#include <time.h>

#include "world_search.h"
#include "tests.h"

static void many(void) {
  ws_compare(0, 1000, 0.3);
}

static void a_hundred_devices(void) {
  static const size_t sites[] = {1, 2, 4, 5};
  for (size_t i = 0; i < COUNT(sites); i++) {
    search_world w;
    gt_pipe_search_result r;
    ws_large(&w, sites[i], 100 / sites[i]);
    const clock_t began = clock();
    must(gt_pipe_search_run(&r, &w.problem));
    const double took_s = (double)(clock() - began) / CLOCKS_PER_SEC;
    print_message(
        "48 operations, 100 devices, %zu regions: %zu pipelines, %zu simulations, a period "
        "of %.4g s, %.2f s of CPU\n",
        sites[i], r.looked, r.simulated, r.found[0].period_s, took_s);
    gt_pipe_search_close(&r);
    /* a search should take 5 s; other tests can share this core's caches */
    if (took_s > 10) fail_msg("%.1f s for 100 devices; expected at most 10 s", took_s);
  }
}

TESTS(a_hundred_devices, many)
