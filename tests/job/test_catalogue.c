/* Catalogues: the most specific line, tiers, files that override files, sites by name, nearest
   names. */
#include "geotrain/job_prices.h"
#include "world.h"

static gt_catalogue *read_as(const char *name, const char *text) {
  gt_catalogue *c = NULL;
  must(gt_catalogue_read(&c, file_with(name, text)));
  return c;
}

static const gt_rate *rate(const gt_catalogue *c, gt_rate_kind kind, const char *cloud,
                           const char *place, const char *to_cloud, const char *to_place,
                           size_t needed) {
  const gt_rate *found = NULL;
  const gt_rate_site to = {to_cloud, to_place};
  size_t n = 0;
  must(gt_catalogue_rate(c, kind, (gt_rate_site){cloud, place}, to_cloud ? &to : NULL, &found, &n));
  assert_int_equal(n, needed);
  return found;
}

static const char prices[] = "rate,cloud,place,to_cloud,to_place,from_gb,value,assumed\n"
                             "# a comment\n\n"
                             "vm_hour, a, *,,,, 0.5, assumed # behind a line\n"
                             "vm_hour,a,here,,,,0.25,\n"
                             "vm_hour,b,there,,,,1\n"
                             "egress_gb,a,*,*,*,100,0.08,assumed\n"
                             "egress_gb,a,*,*,*,0,0.09,\n"
                             "egress_gb,a,*,a,*,0,0.02,\n"
                             "egress_gb,a,here,*,there,0,0.07,\n"
                             "egress_gb,a,here,a,here,0,0,\n";

static void the_most_exact_line_counts(void) {
  gt_catalogue *c = read_as("prices.csv", prices);
  assert_true(rate(c, GT_RATE_VM_HOUR, "a", "here", NULL, NULL, 1)->value == 0.25);
  const gt_rate *any = rate(c, GT_RATE_VM_HOUR, "a", "there", NULL, NULL, 1);
  assert_true(any->value == 0.5 && any->assumed && any->line == 4 &&
              strstr(any->file, "prices.csv"));
  assert_true(rate(c, GT_RATE_EGRESS_GB, "a", "here", "a", "here", 1)->value == 0);
  assert_true(rate(c, GT_RATE_EGRESS_GB, "a", "there", "a", "here", 1)->value == 0.02);
  assert_true(rate(c, GT_RATE_EGRESS_GB, "a", "here", "b", "there", 1)->value == 0.07);
  /* the receiver's place has precedence over its cloud */
  assert_true(rate(c, GT_RATE_EGRESS_GB, "a", "here", "a", "there", 1)->value == 0.07);
  const gt_rate *tiers = rate(c, GT_RATE_EGRESS_GB, "a", "there", "b", "there", 2);
  assert_true(tiers[0].from_gb == 0 && tiers[0].value == 0.09 && tiers[1].from_gb == 100 &&
              tiers[1].value == 0.08 && tiers[1].assumed);
  gt_catalogue_close(c);
}

static void a_later_file_takes_the_place_of_a_rate_with_all_its_tiers(void) {
  gt_catalogue *c = read_as("prices.csv", prices);
  must(gt_catalogue_add(
      c, file_with("mine.csv",
                   "vm_hour,a,*,,,,0.75\negress_gb,a,*,*,*,0,0.01\nvm_hour,c,here,,,,3\n")));
  assert_true(rate(c, GT_RATE_VM_HOUR, "a", "there", NULL, NULL, 1)->value == 0.75);
  /* another key */
  assert_true(rate(c, GT_RATE_VM_HOUR, "a", "here", NULL, NULL, 1)->value == 0.25);
  assert_true(rate(c, GT_RATE_VM_HOUR, "c", "here", NULL, NULL, 1)->value == 3);
  assert_true(rate(c, GT_RATE_EGRESS_GB, "a", "there", "b", "there", 1)->value == 0.01);
  gt_catalogue_close(c);
}

static void a_site_is_a_cloud_and_a_place(void) {
  gt_catalogue *c = read_as("prices.csv", prices);
  gt_rate_site site;
  must(gt_catalogue_site(c, "regions.0.place", "b:there", &site));
  assert_string_equal(site.cloud, "b");
  assert_string_equal(site.place, "there");
  const struct {
    const char *text, *needed;
  } wrong[] = {
      {"a:her", "did you mean here?"}, {"here", "CLOUD:PLACE"},
      {"x:here", "the cloud \"x\""},   {"x:here", "has no rates; expected one that it has: a, b"},
      {"a:", "the place \"\""},        {":here", "the cloud \"\""}};
  for (size_t i = 0; i < COUNT(wrong); i++) {
    must_fail(gt_catalogue_site(c, "regions.0.place", wrong[i].text, &site), GT_ERR_JOB,
              wrong[i].needed);
    must_contain(gt_error_text(), "regions.0.place");
  }
  gt_catalogue_close(c);
}

static void wrong_lines_are_named(void) {
  static const char *const texts[] = {"vm_hour,a,here,,,,-1\n",
                                      "vm_hour,a\n",
                                      "x,a,here,,,,1\n",
                                      "egress_gb,a,here,*,nowhere,0,1\n",
                                      "vm_hour,a,here,b,,,1\n",
                                      "vm_hour,a,here,,,5,1\n",
                                      "vm_hour,*,here,,,,1\n",
                                      "vm_hour,a,,,,,1\n",
                                      "vm_hour,a,here,,,,nan\n",
                                      "vm_hour,a,here,,,,1e999\n",
                                      "vm_hour,a,here,,,,1,,\n",
                                      "egress_gb,a,here,a,here,1,1\n",
                                      "egress_gb,a,here,a,,0,1\n",
                                      "storage_up_mbit_s,a,here,,,,5\n",
                                      "storage_down_mbit_s,a,here,a,here,,0\n",
                                      "function_add_s_per_gb,a,here,,,1,5\n"};
  for (size_t i = 0; i < COUNT(texts); i++) {
    gt_catalogue *c = NULL;
    must_fail(gt_catalogue_read(&c, file_with("wrong.csv", texts[i])), GT_ERR_JOB, "wrong.csv:1: ");
  }
}

/* The sizes of memory that a vendor offers, or one line for any size. */
static void functions_have_sizes(void) {
  gt_catalogue *c = read_as("sizes.csv", "function_gb_s,a,*,,,1,0.5\nfunction_gb_s,a,*,,,0.5,0.75\n"
                                         "function_gb_s,b,*,,,,3\n");
  const gt_rate *sizes = rate(c, GT_RATE_FUNCTION_GB_S, "a", "here", NULL, NULL, 2);
  assert_true(sizes[0].from_gb == 0.5 && sizes[1].from_gb == 1 && sizes[1].value == 0.5);
  assert_true(rate(c, GT_RATE_FUNCTION_GB_S, "b", "here", NULL, NULL, 1)->from_gb == 0);
  size_t n;
  assert_null(gt_catalogue_find(c, GT_RATE_FUNCTION_ADD, (gt_rate_site){"a", "here"}, NULL, &n));
  gt_catalogue_close(c);
  must_fail(gt_catalogue_read(&c, file_with("both.csv", "function_gb_s,a,*,,,,1\n"
                                                        "function_gb_s,a,*,,,2,1\n")),
            GT_ERR_JOB, "both.csv:2: from_gb is 2, but ");
}

TESTS(the_most_exact_line_counts, a_later_file_takes_the_place_of_a_rate_with_all_its_tiers,
      a_site_is_a_cloud_and_a_place, wrong_lines_are_named, functions_have_sizes)
