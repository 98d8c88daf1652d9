/* wraps: strcmp.  Links of many regions: the order in which they are listed, the sums of a region's
   links, and that neither compares all names for each link. */
#include "world.h"

/* Names are only compared with strcmp; the linker redirects it to this function. */
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

/* Links from every region to every other one, from last to first; r -> p has sent 1000 r + p bytes
   in p messages.  Regions are not sorted by name. */
static gt_summary backwards(void) {
  size_t n = 0;
  for (size_t r = 0; r < MANY; r++)
    snprintf(regions[r].name, sizeof regions[r].name, "r%zu", r * 37 % MANY);
  for (size_t r = MANY; r-- > 0;)
    for (size_t p = MANY; p-- > 0;) {
      if (p == r) continue;
      gt_link_result *l = &links[n++];
      *l = (gt_link_result){.bytes_sent = (int64_t)(1000 * r + p),
                            .messages = (int64_t)p,
                            .bytes_other = 7,
                            .bandwidth_bps_measured = 1e6 + (double)p};
      memcpy(l->from, regions[r].name, sizeof l->from);
      memcpy(l->to, regions[p].name, sizeof l->to);
    }
  gt_summary s = w_summary(regions, MANY);
  s.links = links;
  s.nlinks = n;
  return s;
}

static void test_order(void) {
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

/* Equal links, and links of unknown regions, keep their order. */
static void test_order_of_strangers(void) {
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

/* With a thousand regions, comparing every name for each link would take 2e9 comparisons. */
static void test_names_are_looked_up(void) {
  gt_summary s = backwards();
  char *text;
  FILE *to = open_text(&text);
  compared = 0;
  gt_summary_print(to, &s);
  fclose(to);
  if (compared > 50 * s.nlinks)
    fail_msg("%zu comparisons of names for %zu links", compared, s.nlinks);
  /* r 3 has sent more than 3000 p bytes, to all regions except itself. */
  char want[128];
  snprintf(want, sizeof want, "%-8s  %4.2f  %8.2f  %8d  %5d  %7.1f\n", regions[3].name,
           1e-6 * (3000 * 99 + 99 * 50 - 3), 1e-6 * (1000 * (99 * 50 - 3) + 3 * 99), 99 * 50 - 3,
           99 * 7, 1.0);
  must_contain(text, want);
  free(text);
}

/* ---- listed links ---------------------------------------------------------------------------- */

#define CROWD 70

/* Every link with the traffic given by `of`. */
static gt_told *told_of(size_t n, gt_link_traffic (*of)(size_t from, size_t to)) {
  gt_told *told = gt_told_create(n);
  for (size_t a = 0; a < n; a++)
    for (size_t b = 0; b < n; b++) {
      gt_link_traffic l = of(a, b);
      if (a != b) gt_told_add(told, a, b, &l);
    }
  return told;
}

static gt_link_traffic none(size_t from, size_t to) {
  (void)from, (void)to;
  return (gt_link_traffic){.bytes_other = 10};
}

static gt_link_traffic equal(size_t from, size_t to) {
  (void)from, (void)to;
  return (gt_link_traffic){2, 500, 10, 1e6};
}

/* All traffic goes through the first region; the region of the highest number has the slowest
   link. */
static gt_link_traffic hub(size_t from, size_t to) {
  if (from != 0 && to != 0) return none(from, to);
  return (gt_link_traffic){1, 100, 10, 1e6 - (double)(from + to)};
}

/* Later links are busier. */
static gt_link_traffic rising(size_t from, size_t to) {
  return (gt_link_traffic){1, (int64_t)(1000 * from + to), 10, 1e6};
}

static void assert_told(size_t n, gt_link_traffic (*of)(size_t, size_t), size_t count,
                        gt_told_link first, gt_told_link last) {
  gt_told *told = told_of(n, of);
  size_t found = 0;
  const gt_told_link *at = gt_told_links(told, &found);
  assert_int_equal(found, count);
  assert_int_equal(gt_told_left_out(told), n * (n - 1) - count);
  for (size_t i = 1; i < found; i++)
    assert_true(at[i - 1].from < at[i].from ||
                (at[i - 1].from == at[i].from && at[i - 1].to < at[i].to));
  if (count > 0) {
    assert_memory_equal(&at[0], &first, sizeof first);
    assert_memory_equal(&at[count - 1], &last, sizeof last);
  }
  gt_told_close(told);
}

static void test_told(void) {
  const size_t all = GT_TOLD_REGIONS * (GT_TOLD_REGIONS - 1),
               left = CROWD * (CROWD - 1) - GT_TOLD_LINKS;
  assert_told(GT_TOLD_REGIONS, none, all, (gt_told_link){0, 1},
              (gt_told_link){GT_TOLD_REGIONS - 1, GT_TOLD_REGIONS - 2});
  assert_told(CROWD, none, 0, (gt_told_link){0}, (gt_told_link){0});
  assert_told(CROWD, hub, 2 * (CROWD - 1), (gt_told_link){0, 1}, (gt_told_link){CROWD - 1, 0});
  assert_told(CROWD, equal, GT_TOLD_LINKS, (gt_told_link){0, 1},
              (gt_told_link){GT_TOLD_LINKS / (CROWD - 1), GT_TOLD_LINKS % (CROWD - 1) - 1});
  assert_told(CROWD, rising, GT_TOLD_LINKS,
              (gt_told_link){left / (CROWD - 1), left % (CROWD - 1) + 1},
              (gt_told_link){CROWD - 1, CROWD - 2});
}

static void test_told_sums(void) {
  gt_told *told = told_of(CROWD, hub);
  const gt_region_traffic *sums = gt_told_traffic(told);
  assert_int_equal(sums[0].messages, CROWD - 1);
  assert_int_equal(sums[0].bytes_sent, 100 * (CROWD - 1));
  assert_int_equal(sums[0].bytes_received, 100 * (CROWD - 1));
  assert_int_equal(sums[0].bytes_other, 10 * (CROWD - 1));
  assert_true(sums[0].slowest_bps == 1e6 - (CROWD - 1));
  assert_int_equal(sums[5].bytes_sent, 100);
  assert_int_equal(sums[5].bytes_other, 10 * (CROWD - 1));
  gt_told_close(told);
}

/* If links are omitted, the table has their number, the sums of all regions, and where to find
   more. */
static void test_table_of_some(void) {
  gt_summary s = backwards();
  gt_region_traffic traffic[MANY] = {[2] = {.messages = 5,
                                            .bytes_sent = 7000000,
                                            .bytes_received = 1000000,
                                            .bytes_other = 123000,
                                            .slowest_bps = 5e6}};
  char *text = NULL;
  s.links_left_out = s.nlinks - 2;
  s.nlinks = 2;
  s.traffic = traffic;
  FILE *to = open_text(&text);
  gt_summary_print(to, &s);
  fclose(to);
  must_contain(text, "\nr74       7.00      1.00         5  123000      5.0\n");
  must_contain(text,
               "\nthe 2 of 9900 links whose traffic takes longest (2 of them: summary.json)\n");
  must_contain(text, "\nWAN traffic    7.00 MB in 5 messages, 0.123 MB other\n");
  free(text);
  s.links_left_out = 0;
  s.nlinks = 13;
  s.traffic = NULL;
  s.unwritten = true; /* a simulation without a folder */
  to = open_text(&text);
  gt_summary_print(to, &s);
  fclose(to);
  assert_non_null(
      strstr(text, "\nthe 5 of 13 links whose traffic takes longest (all of them: --out DIR)\n"));
  free(text);
}

/* Written to the file and read back. */
static void test_some_come_back(void) {
  gt_summary s = backwards();
  gt_region_traffic traffic[MANY] = {[2] = {5, 7000000, 1000000, 123000, 5e6}};
  gt_summary_file *file = NULL;
  s.links_left_out = s.nlinks - 2;
  s.nlinks = 2;
  s.traffic = traffic;
  must(gt_summary_write(in_folder(""), &s));
  must(gt_summary_read(&file, in_folder("")));
  const gt_summary *back = gt_summary_of(file);
  assert_int_equal(back->nlinks, 2);
  assert_int_equal(back->links_left_out, s.links_left_out);
  assert_memory_equal(&back->traffic[2], &traffic[2], sizeof *traffic);
  gt_summary_close(file);
}

int main(void) {
  links = malloc(MANY * MANY * sizeof *links);
  int failed = RUN_TESTS(NULL, NULL, test_order, test_order_of_strangers, test_names_are_looked_up,
                         test_told, test_told_sums, test_table_of_some, test_some_come_back);
  free(links);
  return failed;
}
