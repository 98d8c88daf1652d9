/* A region's result of maximum length, with a link to each of 63 other regions, fits into a
   message. */
#include "geotrain/record.h"
#include "geotrain/wan.h"
#include "tests.h"

#define MOST      ((size_t)64)
#define UNEVEN    (-1.2345678901234567e-300) /* a number of maximum length */
#define LONG_NAME "a-region-whose-name-is-as-long-as-a-name-of-a-region-can-ever-b"

static void fill_link(gt_link_result *l) {
  *l = (gt_link_result){.bytes_sent = INT64_MIN,
                        .messages = INT64_MIN,
                        .bytes_other = INT64_MIN,
                        .payload_bytes = INT64_MIN,
                        .bandwidth_bps_measured = UNEVEN,
                        .latency_s_measured = UNEVEN};
  snprintf(l->from, sizeof l->from, "%s", LONG_NAME);
  snprintf(l->to, sizeof l->to, "%s", LONG_NAME);
  size_t n = 0;
  for (unsigned k = 0; k < 64 && n < GT_RESULT_KINDS; k++) {
    if (!gt_record_kind_name(k)) continue;
    l->kinds[n] = (gt_kind_result){.messages = INT64_MAX, .payload = INT64_MIN, .wire = INT64_MIN};
    snprintf(l->kinds[n].kind, sizeof l->kinds[n].kind, "%s", gt_record_kind_name(k));
    n++;
  }
}

static void the_longest_report_has_room(void) {
  gt_region_result region = {.workers = INT32_MIN,
                             .steps = INT64_MIN,
                             .samples = INT64_MIN,
                             .compute_s = UNEVEN,
                             .wall_s = UNEVEN};
  snprintf(region.name, sizeof region.name, "%s", LONG_NAME);
  for (size_t n = 2; n <= MOST; n++) {
    gt_link_result *links = GT_NEW_ARRAY(gt_link_result, n - 1);
    for (size_t i = 0; i < n - 1; i++) fill_link(&links[i]);
    char *text = gt_result_encode(&region, links, n - 1);
    size_t length = strlen(text), room = gt_gateway_report_max(n);
    gt_free(text);
    gt_free(links);
    if (length > room)
      fail_msg("the result of a region with %zu links has %zu bytes; a message has room for %zu",
               n - 1, length, room);
  }
}

TESTS(the_longest_report_has_room)
