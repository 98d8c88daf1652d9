/* Traces: both formats, bits over time and over periods, refused files, and arbitrary files. */
#include "scratch.h"
#include "trace.h"

#include <math.h>

/* ---- reading --------------------------------------------------------------------------------- */

static void a_csv_trace_is_what_it_says(void) {
  gt_link_trace *t = trace_of("a.csv", "# a comment\n\ntime_s, bandwidth, latency\n0, 10 Mbit/s, "
                                       "20 ms\r\n 2 ,0,\n3 s,4e6,0.005\n5000 ms,1,1\n");
  assert_true(gt_link_trace_period_s(t) == 5.0);
  assert_true(gt_link_trace_latency_min_s(t) == 0.005);
  const double at[][2] = {{0, 0},        {1, 1e7},   {2, 2e7},    {2.5, 2e7},
                          {3, 2e7},      {4, 2.4e7}, {5, 2.8e7},  {6, 3.8e7},
                          {12.5, 7.6e7}, {-1, -4e6}, {-6, -3.2e7}};
  for (size_t i = 0; i < COUNT(at); i++)
    assert_true(fabs(gt_link_trace_bits(t, at[i][0]) - at[i][1]) < 1e-6);
  assert_true(gt_trace_latency_at(t, 1.0, 0.1) == 0.020);
  assert_true(gt_trace_latency_at(t, 2.5, 0.1) == 0.1); /* that of the link */
  assert_true(gt_trace_latency_at(t, 9.0, 0.1) == 0.005);
  assert_true(gt_trace_latency_least(t, 0.001) == 0.001);
  assert_true(fabs(gt_trace_latency_mean(t, 0.1) - (2 * 0.020 + 0.1 + 2 * 0.005) / 5) < 1e-15);
  gt_link_trace_close(t);
}

static void a_trace_with_latency_everywhere_hides_the_links_own(void) {
  gt_link_trace *t = trace_of("a.csv", "0,1e6,0.03\n1,1e6,0.02\n2,1e6\n");
  assert_true(gt_trace_latency_least(t, 0.001) == 0.02);
  gt_link_spec spec = {.latency_s = 0.001, .trace = t};
  assert_int_equal(gt_link_delay_min(&spec), 20 * MS);
  gt_link_trace_close(t);
  t = trace_of("a.csv", "0,1e6\n1,2e6,\n2,1e6\n");
  assert_true(gt_link_trace_latency_min_s(t) < 0);
  assert_true(gt_trace_latency_least(t, 0.001) == 0.001);
  gt_link_trace_close(t);
}

/* Opportunities at 0 0 1 in the first bin, two in the third, one in the fourth; the fifth ends the
   period. */
static void a_mahimahi_trace_spreads_packets_over_their_milliseconds(void) {
  gt_link_trace *t = trace_of("a.down", "0\n0\n1\n3\n3\n4\n7\n");
  assert_true(gt_link_trace_period_s(t) == 0.007);
  assert_true(gt_link_trace_latency_min_s(t) < 0);
  const double packets[] = {0, 3, 3, 5, 6, 6, 6, 7, 10, 10, 12};
  for (size_t ms = 0; ms < COUNT(packets); ms++)
    assert_true(fabs(gt_link_trace_bits(t, (double)ms / 1e3) - 12000 * packets[ms]) < 1e-6);
  assert_true(fabs(gt_link_trace_bits(t, 0.0025) - 12000 * 4) < 1e-6); /* half of the third bin */
  assert_int_equal(t->n, 6);
  gt_link_trace_close(t);
}

/* One packet a millisecond is 12 Mbit/s, in one segment. */
static void equal_neighbours_are_one_segment(void) {
  char text[8000] = "";
  for (int ms = 1; ms <= 1000; ms++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%d\n", ms);
  gt_link_trace *t = trace_of("a.up", text);
  assert_int_equal(t->n, 1);
  assert_true(fabs(gt_link_trace_bits(t, 86400.0) - 86400 * 12e6) < 1e-3);
  gt_link_trace_close(t);
  t = trace_of("a.csv", "0,1e6\n1,1 Mbit/s\n2,2e6\n3,0\n");
  assert_int_equal(t->n, 2);
  gt_link_trace_close(t);
}

/* ---- bits and times -------------------------------------------------------------------------- */

/* Bits after n periods and a position are n times a period's plus the position's; time is the
   inverse of bits and never late; after a day the error is still below 1 us. */
static void bits_and_times_are_inverse_over_many_periods(void) {
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  for (int k = 0; k < 50; k++) {
    gt_link_trace *t = random_trace(&rng, 1 + gt_rng_below(&rng, 40), false);
    double period = gt_link_trace_period_s(t), whole = gt_link_trace_bits(t, period);
    for (int i = 0; i < 200; i++) {
      double from = 2 * 86400.0 * gt_rng_uniform(&rng),
             bits = whole * 5 * gt_rng_uniform(&rng) * gt_rng_uniform(&rng);
      double n = floor(from / period);
      assert_true(fabs(gt_link_trace_bits(t, from) - n * whole -
                       gt_link_trace_bits(t, from - n * period)) < 1e-6 * 5e7);
      double wait = gt_trace_wait_s(t, from, bits);
      assert_true(fabs(gt_link_trace_bits(t, from + wait) - gt_link_trace_bits(t, from) - bits) <
                  1e-6 * 5e7);
      if (wait > 2e-6)
        assert_true(gt_link_trace_bits(t, from + wait - 1e-6) < gt_link_trace_bits(t, from) + bits);
    }
    gt_link_trace_close(t);
  }
}

/* The last bit before a pause passes before it, also at the end of a period. */
static void a_pause_is_waited_for_only_by_what_comes_after_it(void) {
  gt_link_trace *t = trace_of("a.csv", "0,1e6\n1,0\n3,1e6\n4,0\n5,0\n");
  assert_true(gt_trace_wait_s(t, 0, 1e6) == 1.0);
  assert_true(fabs(gt_trace_wait_s(t, 0, 1e6 + 1) - 3.000001) < 1e-12);
  assert_true(gt_trace_wait_s(t, 0, 2e6) == 4.0);
  assert_true(gt_trace_wait_s(t, 0, 20e6) == 49.0);
  assert_true(gt_trace_wait_s(t, 1.5, 0) == 0.0);
  assert_true(gt_trace_wait_s(t, 4.5, 1e6) == 1.5);
  gt_link_trace_close(t);
}

static void splitting_what_is_sent_does_not_change_its_end(void) {
  gt_rng rng = gt_rng_make(2, GT_RNG_TEST, 0, 0);
  for (int k = 0; k < 20; k++) {
    gt_link_trace *t = random_trace(&rng, 20, false);
    double from = 1000 * gt_rng_uniform(&rng), now = from, sum = 0;
    for (int i = 0; i < 100; i++) {
      double bits = 8e6 * gt_rng_uniform(&rng);
      sum += bits;
      now += gt_trace_wait_s(t, now, bits);
    }
    assert_true(fabs(now - from - gt_trace_wait_s(t, from, sum)) < 1e-8);
    gt_link_trace_close(t);
  }
}

/* ---- refused files --------------------------------------------------------------------------- */

static const char *bytes_in(const char *name, const void *data, size_t size) {
  write_bytes(in_folder(name), data, size);
  return in_folder(name);
}

static void refused(const char *path, const char *says) {
  gt_link_trace *t = (gt_link_trace *)1;
  gt_status status = gt_link_trace_read(&t, path);
  const char *text = gt_error_text();
  if (status != GT_ERR_JOB || t || !strstr(text, says) || !strstr(text, path) || strchr(text, '\n'))
    fail_msg("status %d: %s\n  lacks: %s", status, text, says);
}

static void mistakes_are_named_with_their_line(void) {
  static const struct {
    const char *name, *text, *says;
  } cases[] = {
      {"a.csv", "", "has 0 lines"},
      {"a.csv", "# nothing\n\n", "has 0 lines"},
      {"a.csv", "0,1e6\n", "has 1 lines of \"time_s,bandwidth,latency\"; expected 2 or more"},
      {"a.csv", "0,1e6\n2,1e6\n2,1e6\n", "line 3: the time 2 s follows 2 s; expected ascending"},
      {"a.csv", "0,1e6\n\n2,1e6\n1,1e6\n", "line 4: the time 1 s follows 2 s; expected ascending"},
      {"a.csv", "1,1e6\n2,1e6\n", "line 1: the first time is 1 s; expected 0"},
      {"a.csv", "-1,1e6\n2,1e6\n", "line 1: \"-1\" was found; expected a time"},
      {"a.csv", "0,-1e6\n2,1e6\n", "line 1: \"-1e6\" was found; expected a rate"},
      {"a.csv", "0,1e6\n2,1e6,-1 ms\n", "line 2: \"-1 ms\" was found; expected a latency"},
      {"a.csv", "0,10 Mb\n2,1e6\n", "line 1: \"10 Mb\" was found; expected a rate"},
      {"a.csv", "0,nan\n2,1e6\n", "line 1: \"nan\" was found; expected a rate"},
      {"a.csv", "0,0x10\n2,1e6\n", "line 1: \"0x10\" was found; expected a rate"},
      {"a.csv", "0,1e16\n2,1e6\n", "line 1: \"1e16\" was found; expected a rate"},
      {"a.csv", "0,1e6\n1e10,1e6\n", "line 2: \"1e10\" was found; expected a time"},
      {"a.csv", "0,\n2,1e6\n", "line 1: \"\" was found; expected a rate"},
      {"a.csv", "0\n2,1e6\n", "line 1: \"0\" was found; expected \"time_s,bandwidth,latency\""},
      {"a.csv", "0,1e6,1,2\n2,1e6\n",
       "line 1: \"0,1e6,1,2\" was found; expected \"time_s,bandwidth,latency\""},
      {"a.csv", "0,1e6\ntime_s,bandwidth\n", "line 2: \"time_s\" was found; expected a time"},
      {"a.csv", "0,0\n2,0\n3,1e6\n", "lets nothing pass in its 3 s"},
      {"a.csv", "0,1e6\n1 us,1e6\n", "expected a period of 1 ms or more"},
      {"a.up", "", "has no line"},
      {"a.up", "0\n0\n", "expected a period of 1 ms or more"},
      {"a.up", "5\n4\n", "line 2: 4 follows 5; expected ascending"},
      {"a.up", "-5\n", "line 1: \"-5\" was found; expected a millisecond"},
      {"a.up", "5.5\n", "line 1: \"5.5\" was found; expected a millisecond"},
      {"a.up", "1\n2 3\n", "line 2: \"2 3\" was found; expected a millisecond"},
      {"a.up", "1\n10000000000000\n",
       "line 2: \"10000000000000\" was found; expected a millisecond"},
      {"a.up", "\x7f\x01 what is this, and why is it so long that nobody reads it\n",
       "line 1: \"?? what is this, and why is it so long t...\" was found"},
  };
  for (size_t i = 0; i < COUNT(cases); i++)
    refused(file_with(cases[i].name, cases[i].text), cases[i].says);
  refused(bytes_in("a.csv", "0,1e6\n\0,1e6\n", 12), "has a zero byte");
}

static void files_that_cannot_be_read_are_named(void) {
  refused("/nonexistent/trace.csv", "cannot be opened (No such file or directory)");
  refused(in_folder(""), "cannot be read");
  size_t size = ((size_t)16 << 20) + 1;
  char *large = gt_alloc(size, 1);
  memset(large, '\n', size);
  refused(bytes_in("large.csv", large, size), "has more than 16 MiB");
  refused(bytes_in("large.csv", large, size - 1), "has 0 lines");
  gt_free(large);
}

/* ---- arbitrary files ------------------------------------------------------------------------- */

/* Checks the laws of a trace. */
static void check_laws(const gt_link_trace *t) {
  double period = gt_link_trace_period_s(t), whole = gt_link_trace_bits(t, period);
  assert_true(isfinite(period) && period > 0 && isfinite(whole) && whole > 0);
  double wait = gt_trace_wait_s(t, 0.3 * period, 2.5 * whole);
  assert_true(wait >= 2 * period * (1 - 1e-9) && wait <= 3 * period * (1 + 1e-9));
}

static void random_bytes_are_a_trace_or_a_sentence(void) {
  static const char *const pieces[] = {"0",      "1",      "2",  "17",  ",",   ",",  "\n",
                                       "\n",     "\r\n",   " ",  "e",   ".",   "-",  "#",
                                       "time_s", "Mbit/s", "ms", "1e6", "inf", "\"", "\x80"};
  gt_rng rng = gt_rng_make(3, GT_RNG_TEST, 0, 0);
  int read = 0;
  for (int k = 0; k < 6000; k++) {
    char text[400];
    size_t size = 0, n = gt_rng_below(&rng, 60);
    if (k % 2) size = (size_t)snprintf(text, sizeof text, k % 4 == 1 ? "0,5e6\n1,1e6\n" : "1\n");
    for (size_t i = 0; i < n; i++) {
      const char *piece = pieces[gt_rng_below(&rng, COUNT(pieces))];
      if (k % 8 == 7)
        text[size++] = (char)gt_rng_below(&rng, 256);
      else
        size += (size_t)snprintf(text + size, sizeof text - size, "%s", piece);
    }
    gt_link_trace *t;
    gt_status status =
        gt_link_trace_read(&t, bytes_in(k % 4 < 2 ? "fuzz.csv" : "fuzz.up", text, size));
    if (status == GT_OK) {
      check_laws(t);
      read++;
    } else {
      assert_int_equal(status, GT_ERR_JOB);
      assert_null(t);
      assert_true(strlen(gt_error_text()) > 20);
    }
    gt_link_trace_close(t);
  }
  assert_true(read > 100);
}

static void none_is_closed(void) {
  gt_link_trace_close(NULL);
}

TESTS(a_csv_trace_is_what_it_says, a_trace_with_latency_everywhere_hides_the_links_own,
      a_mahimahi_trace_spreads_packets_over_their_milliseconds, equal_neighbours_are_one_segment,
      bits_and_times_are_inverse_over_many_periods,
      a_pause_is_waited_for_only_by_what_comes_after_it,
      splitting_what_is_sent_does_not_change_its_end, mistakes_are_named_with_their_line,
      files_that_cannot_be_read_are_named, random_bytes_are_a_trace_or_a_sentence, none_is_closed)
