/* The use of earlier starts, from a record with kills and resumes. */
#include "tests.h"
#include "geotrain/record.h"

/* Three starts: killed at 70 s; resumed from 50 s and killed at 60 s; resumed from 50 s again.  The
   file ends with an incomplete line. */
static void starts_add_up(void) {
  gt_past past;
  file_with(
      "east.jsonl",
      "{\"t\":0.0,\"event\":\"start\",\"samples\":0,\"wan_bytes_to\":[0,100]}\n"
      "{\"t\":50.0,\"event\":\"checkpoint\",\"round\":1}\n"
      "{\"t\":70.0,\"event\":\"progress\",\"samples\":700,\"loss\":1.0,\"wan_bytes_to\":[0,7100]}\n"
      "{\"t\":50.0,\"event\":\"resumed\",\"samples\":500,\"wan_bytes_to\":[0,5200]}\n"
      "{\"t\":60.0,\"event\":\"progress\",\"samples\":600,\"loss\":1.0,\"wan_bytes_to\":[0,6200]}\n"
      "{\"t\":50.0,\"event\":\"resumed\",\"samples\":500,\"wan_bytes_to\":[0,5200]}\n"
      "{\"t\":51.5,\"event\":\"eval\"}\n{\"t\":52.0,\"eve");
  gt_past_read(&past, in_folder(""), "east", 2, NULL, 0, 0);
  assert_int_equal(past.starts, 3);
  assert_true(fabs(past.used_s - (70 + 10 + 1.5)) < 1e-9);
  assert_true(past.bytes[0] == 0 && past.bytes[1] == 7000 + 1000);
  gt_past_close(&past);
}

/* Of each start the last line counts. */
static void requests_add_up(void) {
  gt_past past;
  gt_store_result last = {
      .writes = 70, .control_reads = 7, .bytes_in = INT64_C(1) << 40, .gb_s = 0.25};
  char line[GT_STORE_TEXT], text[2048];
  gt_store_text(&last, line);
  snprintf(text, sizeof text,
           "{\"t\":0,\"event\":\"start\"}\n"
           "{\"t\":1,\"event\":\"progress\",\"store\":{\"writes\":60,\"lists\":3}}\n"
           "{\"t\":2,\"event\":\"progress\",\"store\":%s}\n"
           "{\"t\":1,\"event\":\"resumed\"}\n{\"t\":2,\"event\":\"progress\"}\n"
           "{\"t\":1,\"event\":\"resumed\"}\n"
           "{\"t\":2,\"event\":\"progress\",\"store\":%s}\n",
           line, line);
  file_with("east.jsonl", text);
  gt_past_read(&past, in_folder(""), "east", 1, NULL, 0, 0);
  assert_true(past.store.writes == 140 && past.store.control_reads == 14 && past.store.lists == 0);
  assert_true(past.store.bytes_in == INT64_C(1) << 41 && past.store.gb_s == 0.5);
  gt_past_close(&past);
}

/* Older records have no bytes by region, and a record can be missing. */
static void what_is_not_there(void) {
  gt_past past;
  file_with("east.jsonl", "{\"t\":0.0,\"event\":\"start\"}\nno "
                          "JSON\n{\"t\":9.0,\"event\":\"progress\",\"wan_bytes\":12}\n");
  gt_past_read(&past, in_folder(""), "east", 2, NULL, 0, 0);
  assert_true(past.starts == 1 && past.used_s == 9 && past.bytes[1] == 0);
  gt_past_close(&past);
  gt_past_read(&past, in_folder(""), "west", 2, NULL, 0, 0);
  assert_true(past.starts == 0 && past.used_s == 0 && past.bytes[1] == 0);
  gt_past_close(&past);
}

/* A start that is resumed near the end gets the earlier losses; lost work does not count. */
static void losses_come_back(void) {
  gt_past past;
  gt_trend trend = {0};
  char text[2048], *at = text;
  at += sprintf(at, "{\"t\":0.0,\"event\":\"start\",\"samples\":0}\n");
  for (int i = 1; i <= 24; i++)
    at += sprintf(at, "{\"t\":%d.0,\"event\":\"progress\",\"samples\":%d,\"loss\":%s}\n", i, 10 * i,
                  i > 19 ? "9.0" : "0.5");
  file_with("east.jsonl", text);
  gt_past_read(&past, in_folder(""), "east", 1, &trend, 190, 0.95);
  gt_past_close(&past);
  for (int part = 0; part < 19; part++)
    assert_true(trend.samples[part] == 10 && fabs(trend.loss_sum[part] - 5) < 1e-9);
  assert_true(trend.samples[19] == 0);
}

TESTS(starts_add_up, requests_add_up, what_is_not_there, losses_come_back)
