/* Units are parsed exactly, rejected with an error text and printed briefly; the nearest name is
   found; SHA-256 gives the standard's digests. */
#include "geotrain/base.h"
#include "tests.h"

typedef gt_status parser(const char *, double *);

static void reads(parser *parse, const char *text, double want) {
  double got = -1;
  if (parse(text, &got) != GT_OK) fail_msg("\"%s\": %s", text, gt_error_text());
  if (!(got >= want * (1 - 1e-15) && got <= want * (1 + 1e-15)))
    fail_msg("\"%s\" is %g, not %g", text, got, want);
}

static void refuses(parser *parse, const char *text, const char *says) {
  double got = 123;
  if (parse(text, &got) != GT_ERR_JOB) fail_msg("\"%s\" was read as %g", text, got);
  assert_true(got == 123);
  if (text) must_contain(gt_error_text(), text);
  must_contain(gt_error_text(), says);
}

static void what_people_write_is_read(void) {
  reads(gt_parse_rate_bps, "100 Mbit/s", 1e8);
  reads(gt_parse_rate_bps, "1.5Gbit/s", 1.5e9);
  reads(gt_parse_rate_bps, "0 bit/s", 0);
  reads(gt_parse_rate_bps, "64 kbit/s", 64e3);
  reads(gt_parse_time_s, "25 ms", 0.025);
  reads(gt_parse_time_s, ".5 us", 0.5e-6);
  reads(gt_parse_time_s, "300 s", 300);
  reads(gt_parse_time_s, "2 min", 120);
  reads(gt_parse_time_s, "1e3 h", 3.6e6);
  reads(gt_parse_size_bytes, "1 GiB", 1073741824.0);
  reads(gt_parse_size_bytes, "10 MB", 1e7);
  reads(gt_parse_size_bytes, "17 B", 17);
}

static void what_is_no_quantity_is_refused(void) {
  const char *const bad[] = {"",           "100",        "Mbit/s",      "-1 Mbit/s",
                             "inf Mbit/s", "nan Mbit/s", "0x10 Mbit/s", "1 Mbit/s extra",
                             " 1 Mbit/s",  "1 mbit/s"};
  for (size_t i = 0; i < COUNT(bad); i++)
    refuses(gt_parse_rate_bps, bad[i], "bit/s, kbit/s, Mbit/s");
  refuses(gt_parse_rate_bps, NULL, "Mbit/s");
  refuses(gt_parse_rate_bps, "1e999 Mbit/s", "is too large; expected a rate");
  refuses(gt_parse_rate_bps, "1e300 Gbit/s", "is too large; expected a rate");
  refuses(gt_parse_time_s, "25 Mbit/s", "ns, us, ms, s, min, h");
  refuses(gt_parse_size_bytes, "5 ms", "KiB, MiB, GiB");
}

static void prints(char *(*format)(char *, size_t, double), double value, const char *want) {
  char buf[32];
  assert_string_equal(format(buf, sizeof buf, value), want);
}

static void quantities_are_printed_for_people(void) {
  prints(gt_format_rate, 98.3e6, "98.3 Mbit/s");
  prints(gt_format_rate, 999.96e3, "1.0 Mbit/s");
  prints(gt_format_rate, 12, "12 bit/s");
  prints(gt_format_rate, 0, "0 bit/s");
  prints(gt_format_time, 0.025, "25.0 ms");
  prints(gt_format_time, 90, "1.5 min");
  prints(gt_format_time, 3.2, "3.2 s");
  prints(gt_format_time, 0, "0.0 s");
  prints(gt_format_time, 12e-6, "12.0 us");
  prints(gt_format_size, 1.2 * 1048576, "1.2 MiB");
  prints(gt_format_size, 1023, "1023 B");
  prints(gt_format_size, 0, "0 B");
  prints(gt_format_size, 3e12, "2.7 TiB");
}

static void the_nearest_name_is_found(void) {
  const char *const keys[] = {"period", "patience", "strategy", "local", "lr",
                              "batch",  "asgd",     "asgd-ga",  "ama",   "sma"};
  size_t n = COUNT(keys);
  assert_string_equal(gt_nearest("peroid", keys, n), "period");
  assert_string_equal(gt_nearest("Strategie", keys, n), "strategy");
  assert_string_equal(gt_nearest("asgd_ga", keys, n), "asgd-ga");
  assert_string_equal(gt_nearest("asdg", keys, n), "asgd");
  assert_string_equal(gt_nearest("l", keys, n), "lr");
  assert_null(gt_nearest("zzzzzz", keys, n));
  assert_null(gt_nearest("completely different", keys, n));
  assert_null(gt_nearest("", keys, n));
  assert_null(gt_nearest("period", keys, 0));
  char huge[5000];
  memset(huge, 'p', sizeof huge - 1);
  huge[sizeof huge - 1] = '\0';
  assert_null(gt_nearest(huge, keys, n));
}

static void sha256_is_the_standards(void) {
  char hex[GT_SHA256_HEX];
  gt_sha256_hex(NULL, 0, hex);
  assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  gt_sha256_hex("abc", 3, hex);
  assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  gt_sha256 *hash = gt_sha256_begin();
  gt_sha256_add(hash, "a", 1);
  gt_sha256_add(hash, NULL, 0);
  gt_sha256_add(hash, "bc", 2);
  char parts[GT_SHA256_HEX];
  gt_sha256_end(hash, parts);
  gt_sha256_hex("abc", 3, hex);
  assert_string_equal(parts, hex);
}

TESTS(what_people_write_is_read, what_is_no_quantity_is_refused, quantities_are_printed_for_people,
      the_nearest_name_is_found, sha256_is_the_standards)
