/* Host lists: plain names and Slurm's compressed form. */
#include "internal.h"
#include "tests.h"

static bool contains(const char *text, const char *host) {
  bool found = false;
  must(gt_hosts_contain(text, host, &found));
  return found;
}

static void plain_names(void) {
  assert_true(contains("hosta", "hosta"));
  assert_true(contains("hosta,hostb", "hostb"));
  assert_true(contains("HostA", "hosta"));
  assert_false(contains("hosta,hostb", "host"));
  assert_false(contains("host", "hosta"));
  assert_true(contains("hosta", "hosta.example.org"));
  assert_true(contains("hosta.example.org", "hosta"));
  assert_true(contains("hosta.example.org", "hosta.example.org"));
  assert_false(contains("hosta.example.org", "hosta.example.com"));
}

static void compressed_names(void) {
  const char *list = "node[01-16,18],gpu7";
  assert_true(contains(list, "node01"));
  assert_true(contains(list, "node16"));
  assert_true(contains(list, "node18"));
  assert_true(contains(list, "gpu7"));
  assert_true(contains(list, "node05.cluster"));
  assert_false(contains(list, "node17"));
  assert_false(contains(list, "node00"));
  assert_false(contains(list, "node1"));
  assert_false(contains(list, "node001"));
  assert_false(contains(list, "node011"));
  assert_false(contains(list, "node"));
  assert_false(contains(list, "gpu"));
}

/* Without leading zeros widths differ: node[8-11] is node8 to node11; node[098-101] always has
   three digits. */
static void widths(void) {
  assert_true(contains("node[8-11]", "node8"));
  assert_true(contains("node[8-11]", "node11"));
  assert_false(contains("node[8-11]", "node08"));
  assert_true(contains("node[098-101]", "node099"));
  assert_true(contains("node[098-101]", "node101"));
  assert_false(contains("node[098-101]", "node99"));
}

static void several_brackets(void) {
  assert_true(contains("r[0-1]n[00-03]-ib", "r1n02-ib"));
  assert_false(contains("r[0-1]n[00-03]-ib", "r2n02-ib"));
  assert_false(contains("r[0-1]n[00-03]-ib", "r1n04-ib"));
  assert_false(contains("r[0-1]n[00-03]-ib", "r1n02"));
  assert_true(contains("a[1-2,10]0", "a100"));
  assert_true(contains("a[1-2,10]0", "a20"));
  assert_false(contains("a[1-2,10]0", "a30"));
}

static void malformed_lists(void) {
  static const char *const bad[] = {"",       "a,,b",      "a,",        "node[",     "node[1-",
                                    "node[]", "node[1-]",  "node[5-2]", "node[1;2]", "node]",
                                    "a b",    "node[a-b]", "node[1,]"};
  for (size_t i = 0; i < COUNT(bad); i++) {
    bool found;
    must_fail(gt_hosts_contain(bad[i], "x", &found), GT_ERR_JOB, bad[i]);
  }
}

TESTS(plain_names, compressed_names, widths, several_brackets, malformed_lists)
