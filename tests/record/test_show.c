/* Output for users: the exact final table, the live line and its widths, the lines of a log, and
   the detection of terminals. */
#include <unistd.h>

#include "world.h"

/* Neither a ranking nor recommendations were tested. */
#define UNRANKED .test_auc = NAN, .test_recall20 = NAN, .test_mrr20 = NAN

/* The table of a run, no line of which is wider than 80 columns; the caller frees it. */
static char *printed(const gt_summary *s) {
  char *text;
  FILE *to = open_text(&text);
  gt_summary_print(to, s);
  fclose(to);
  for (const char *line = text; *line; line = strchr(line, '\n') + 1)
    assert_true(strchr(line, '\n') - line <= 80);
  return text;
}

static void shows(const gt_summary *s, const char *part) {
  char *text = printed(s);
  must_contain(text, part);
  free(text);
}

static void lacks(const gt_summary *s, const char *part) {
  char *text = printed(s);
  if (strstr(text, part)) fail_msg("%s\nhas\n%s", text, part);
  free(text);
}

/* ---- table ---- */

static void test_table(void) {
  static const gt_region_result regions[2] = {
      {.name = "shanghai",
       .workers = 2,
       .steps = 1876,
       .samples = 120064,
       .compute_s = 10.1,
       .wan_wait_s = 1.25,
       .local_wait_s = 0.04,
       .idle_s = 0.52,
       .wall_s = 12.0,
       .split_train_s = 0.00538,
       .split_upload_s = 0.000041,
       .split_aggregate_s = 0.00063,
       .split_download_s = 0,
       .test_accuracy = 0.8912,
       .test_loss = 0.301,
       UNRANKED},
      {.name = "a-region-with-a-long-name",
       .workers = 1,
       .steps = 938,
       .samples = 60032,
       .compute_s = 100000,
       .wan_wait_s = 240,
       .local_wait_s = 0,
       .idle_s = NAN,
       .wall_s = 100240,
       .split_train_s = 106.6,
       .split_upload_s = 0.25,
       .split_aggregate_s = 0.009,
       .split_download_s = 0.0061,
       .test_accuracy = NAN,
       .test_loss = NAN,
       UNRANKED},
  };
  static const gt_link_result links[2] = {
      {.from = "shanghai",
       .to = "a-region-with-a-long-name",
       .bytes_sent = 29148000,
       .messages = 118,
       .bytes_other = 1234,
       .bandwidth_bps_measured = 98.76e6,
       .latency_s_measured = 0.02537},
      {.from = "a-region-with-a-long-name",
       .to = "shanghai",
       .bytes_sent = 0,
       .messages = 0,
       .bytes_other = 99},
  };
  gt_summary s = {.job = "lenet-2-regions",
                  .strategy = "asgd-ga",
                  .clock = "real",
                  .model = "lenet5",
                  .parameters = 61706,
                  .wall_s = 12.34,
                  .virtual_s = NAN,
                  .samples = 180096,
                  .samples_per_s = 14594.5,
                  .test_accuracy = 0.89,
                  .test_loss = 0.3,
                  UNRANKED,
                  .regions = regions,
                  .nregions = 2,
                  .links = links,
                  .nlinks = 2};
  char *text = printed(&s);
  static const char want[] =
      "\n"
      "lenet-2-regions: lenet5, 61706 parameters, asgd-ga, real clock\n"
      "\n"
      "region            workers  steps  samples  accuracy   loss\n"
      "shanghai                2   1876   120064    0.8912  0.301\n"
      "a-region-with-..        1    938    60032         -      -\n"
      "\n"
      "time of a worker    wall      compute   wan wait  local wait      idle\n"
      "shanghai          12.0 s   10.1 s 84%  1.2 s 10%    0.0 s 0%  0.5 s 4%\n"
      "a-region-with-..  27.8 h  27.8 h 100%   240 s 0%    0.0 s 0%         -\n"
      "\n"
      "mini-batch           train upload aggregate, wait download       sum wan wait\n"
      "                        ms     ms              ms       ms        ms        %\n"
      "shanghai              5.38   0.04            0.63     0.00      6.05     10.4\n"
      "a-region-with-.. 106600.00 250.00            9.00     6.10 106865.10      0.2\n"
      "\n"
      "link                           sent  messages  other  measured  latency\n"
      "                                 MB                B    Mbit/s       ms\n"
      "shanghai -> a-region-with-..  29.15       118   1234      98.8     25.4\n"
      "a-region-with-.. -> shanghai   0.00         0     99         -        -\n"
      "\n"
      "wall time      12.3 s\n"
      "samples/s      14.6 k  (180096 samples)\n"
      "test accuracy  0.8900  loss 0.300  (mean model)\n"
      "WAN traffic    29.15 MB in 118 messages, 0.001 MB other\n";
  assert_string_equal(text, want);
  free(text);

  /* Regions with different test sets score the mean each. */
  gt_region_result scored[2];
  memcpy(scored, regions, sizeof scored);
  scored[0].mean = (gt_mean_result){.samples = 300, .accuracy = 0.9, .loss = 0.2};
  scored[1].mean = (gt_mean_result){.samples = 100, .accuracy = 0.86, .loss = 0.6};
  s.regions = scored;
  shows(&s, "\n\n"
            "mean model        test samples  accuracy   loss\n"
            "shanghai                   300    0.9000  0.200\n"
            "a-region-with-..           100    0.8600  0.600\n"
            "all                        400    0.8900  0.300\n"
            "\n");
  shows(&s, "loss 0.300  (mean model, on all test sets)\n");
  s.regions = regions;

  /* What has followed the network takes as many lines as it needs. */
  s.adapted = "the order of passes changed 4 times; 8 micro-batches, from step 31 on 16, from step "
              "1075 on 32, from step 2075 on 8";
  shows(&s, "\npipeline       the order of passes changed 4 times; 8 "
            "micro-batches, from step\n               31 on 16, from step 1075 "
            "on 32, from step 2075 on 8\n");
  s.adapted = NULL;

  /* Without a mean model and links (strategy none, one region) no empty table is printed. */
  s.nlinks = 0;
  s.test_accuracy = NAN;
  lacks(&s, "MB sent");
  shows(&s, "test accuracy  -");
}

/* Two labels: the AUC is shown for each region and in the totals. */
static void test_table_of_two_classes(void) {
  gt_region_result regions[2] = {w_region("east", 10), w_region("west", 10)};
  regions[0].test_loss = 0.3;
  regions[0].test_auc = 0.91234;
  regions[1].test_loss = 0.4;
  gt_summary s = w_summary(regions, 2);
  s.test_accuracy = 0.84;
  s.test_loss = 0.29;
  s.test_auc = 0.925;
  shows(&s, "\nregion  workers  steps  samples     auc   loss\n"
            "east          1     10      640  0.9123  0.300\n"
            "west          1     10      640       -  0.400\n");
  shows(&s, "\ntest accuracy  0.8400  auc 0.9250  loss 0.290  (mean model)\n");
}

/* A recommender: Recall@20 of a region, and both figures of the mean model. */
static void test_recommender(void) {
  gt_region_result region = w_region("east", 2);
  region.test_loss = 5.25;
  region.test_recall20 = 0.53125;
  region.test_mrr20 = 0.25;
  gt_summary s = w_summary(&region, 1);
  s.test_accuracy = 0.125;
  s.test_loss = 5.5;
  s.test_recall20 = 0.5;
  s.test_mrr20 = 0.1875;
  shows(&s, "  recall@20   loss\n");
  shows(&s, "     0.5312  5.250\n");
  shows(&s, "\ntest accuracy  0.1250  recall@20 0.5000  mrr@20 0.1875  loss 5.500  (mean model)\n");
}

/* The longest possible cells: columns that do not fit follow in a second table. */
static void test_wide_table(void) {
  gt_region_result region = {.workers = 9999999,
                             .steps = 9999999,
                             .samples = INT64_C(999000000000),
                             .compute_s = 9876,
                             .wan_wait_s = 99.9,
                             .local_wait_s = 8000,
                             .idle_s = 7654,
                             .wall_s = 9999,
                             .split_train_s = 1234567.891,
                             .split_upload_s = 1234567.891,
                             .split_aggregate_s = 1234567.891,
                             .split_download_s = 1234567.891,
                             .test_accuracy = 0.9999,
                             .test_loss = 12.345};
  gt_link_result link = {.bytes_sent = INT64_C(123456789012345),
                         .messages = 9999999,
                         .bytes_other = 9999999,
                         .bandwidth_bps_measured = 400e9,
                         .latency_s_measured = 12.5};
  memset(region.name, 'r', sizeof region.name - 1);
  memset(link.from, 'f', sizeof link.from - 1);
  memset(link.to, 't', sizeof link.to - 1);
  gt_summary s = w_summary(&region, 1);
  s.clock = "virtual";
  s.virtual_s = 1;
  s.links = &link;
  s.nlinks = 1;
  shows(&s, "rrrrrrrrrrrrrr..  9999999");
  shows(&s, "\nj: m, 0 parameters, sma, virtual time 1.0 s, computed in 0.0 s\n");
  shows(&s, "rrrrrrrrrrrrrr..  1234567891.00  1234567891.00");
}

/* Under the virtual clock real time appears only as the time of the computation. */
static void test_virtual_head(void) {
  const gt_region_result region = w_region("east", 123.4);
  gt_summary s = w_summary(&region, 1);
  s.clock = "virtual";
  s.wall_s = 5.61;
  s.virtual_s = 123.4;
  shows(&s, "\nj: m, 0 parameters, sma, virtual time 123.4 s, computed in 5.6 s\n\nregion ");
  shows(&s, "\nvirtual time   123.4 s  (computed in 5.6 s)\nsamples/s ");
  lacks(&s, "wall time");
  lacks(&s, "mini-batch"); /* the time of a step is not known */
}

/* ---- plan and cost ---- */

static void test_plan_and_cost(void) {
  char ps[] = "PS of eu", egress[] = "egress of eu", more[] = "workers of ap";
  char *missing[] = {ps, egress, more, more, more};
  gt_cost_result cost = {
      .usd = 0.1234567, .worker_usd = 0.1, .ps_usd = 0.02, .egress_usd = 0.0034567};
  gt_plan_result plan = {.made = "0.1.0, 2026-01-02",
                         .predicted = {110, 0.05, 41234, 1.5e6, 0.124999, 0.25},
                         .measured = {100, 0.2, 40000, 1.5e6, 0.125, 0.1234567},
                         .low_s = 105,
                         .high_s = NAN};
  const gt_region_result region = w_region("east", 123.4);
  gt_summary s = w_summary(&region, 1);
  lacks(&s, "cost");
  lacks(&s, "predicted");
  s.plan = &plan;
  s.cost = &cost;
  static const char want[] =
      "\ncost           0.123457 USD  (machines 0.120000 USD, egress 0.003457 USD)\n"
      "\n"
      "plan (0.1.0, 2026-01-02), predicted and measured:\n"
      "plan            predicted      measured      error  predicted range\n"
      "time              110.0 s       100.0 s   +10.00 %  105.0 s to -: not within\n"
      "step            50.000 ms       0.200 s   -75.00 %  -\n"
      "samples/s          41.2 k        40.0 k    +3.08 %  -\n"
      "WAN traffic       1.50 MB       1.50 MB        0 %  -\n"
      "waiting            12.5 %        12.5 %    +0.00 %  -\n"
      "cost         0.250000 USD  0.123457 USD  +102.50 %  -\n";
  shows(&s, want);
  cost = (gt_cost_result){
      .usd = 1234.5, .worker_usd = 1234.5, .assumed = true, .missing = missing, .nmissing = 5};
  plan = (gt_plan_result){.predicted = {NAN, NAN, NAN, NAN, 0, NAN},
                          .measured = {100, NAN, 1, 1, 0, NAN},
                          .low_s = NAN,
                          .high_s = NAN};
  shows(&s, "\ncost           1234.50 USD  (machines 1234.50 USD, egress 0.000000 USD; rates\n"
            "               partly assumed)\n"
            "               without PS of eu, egress of eu, workers of ap and 2 more: no\n"
            "               price is known\n"
            "\nplan     predicted  measured  error\n"
            "waiting      0.0 %     0.0 %    0 %\n");
}

/* ---- many links ---- */

#define MANY 11
static gt_region_result many_regions[MANY];
static gt_link_result many_links[MANY * MANY];

/* n regions with links in both directions between any two, all with the same traffic. */
static gt_summary mesh(size_t n) {
  size_t count = 0;
  for (size_t r = 0; r < n; r++) {
    char name[24];
    snprintf(name, sizeof name, "r%02zu", r);
    many_regions[r] = w_region(name, 10);
    many_regions[r].wan_wait_s = 2.5;
    many_regions[r].split_train_s = 0.75;
    many_regions[r].split_upload_s = 0.25;
    for (size_t p = 0; p < n; p++) {
      if (p == r) continue;
      gt_link_result *l = &many_links[count++];
      *l = (gt_link_result){.bytes_sent = 1000000,
                            .messages = 3,
                            .bytes_other = 100,
                            .bandwidth_bps_measured = 50e6,
                            .latency_s_measured = 0.01};
      snprintf(l->from, sizeof l->from, "r%02zu", r);
      snprintf(l->to, sizeof l->to, "r%02zu", p);
    }
  }
  gt_summary s = w_summary(many_regions, n);
  s.links = many_links;
  s.nlinks = count;
  return s;
}

static void test_many_links(void) {
  gt_summary s = mesh(MANY);
  many_links[3].bandwidth_bps_measured = 10e6; /* r00 -> r04: slow, 0.8 s */
  many_links[109].bytes_sent = 9000000;        /* r10 -> r09: busy, 1.44 s */
  /* r05 -> r00: not measured, so not among the slowest */
  many_links[50].bandwidth_bps_measured = 0;
  many_links[50].bytes_sent = 500000000;
  many_links[20].bytes_sent = 0; /* r02 -> r00: slow, but idle */
  many_links[20].bandwidth_bps_measured = 1e6;
  char *text = printed(&s);
  size_t lines = 0;
  for (const char *at = text; *at; at++) lines += *at == '\n';
  static const char want[] =
      "links of    sent  received  messages  other  slowest\n"
      "              MB        MB                B   Mbit/s\n"
      "r00        10.00    508.00        30   1000     10.0\n"
      "r01        10.00     10.00        30   1000     50.0\n"
      "r02         9.00     10.00        30   1000      1.0\n"
      "r03        10.00     10.00        30   1000     50.0\n"
      "r04        10.00     10.00        30   1000     50.0\n"
      "r05       509.00     10.00        30   1000     50.0\n"
      "r06        10.00     10.00        30   1000     50.0\n"
      "r07        10.00     10.00        30   1000     50.0\n"
      "r08        10.00     10.00        30   1000     50.0\n"
      "r09        10.00     18.00        30   1000     50.0\n"
      "r10        18.00     10.00        30   1000     50.0\n"
      "\n"
      "the 5 of 110 links whose traffic takes longest (all of them: summary.json)\n"
      "link        sent  messages  other  measured  latency\n"
      "              MB                B    Mbit/s       ms\n"
      "r10 -> r09  9.00         3    100      50.0     10.0\n"
      "r00 -> r04  1.00         3    100      10.0     10.0\n"
      "r00 -> r01  1.00         3    100      50.0     10.0\n"
      "r00 -> r02  1.00         3    100      50.0     10.0\n"
      "r00 -> r03  1.00         3    100      50.0     10.0\n"
      "\n"
      "wall time ";
  must_contain(text, want);
  assert_in_range(lines, 1, 75);
  free(text);
}

/* With a dozen links all are listed, in the order of the regions, for any order of their
   reports. */
static void test_a_dozen_links(void) {
  gt_summary s = mesh(4);
  for (size_t i = 0; i < 6; i++) {
    gt_link_result other = many_links[i];
    many_links[i] = many_links[(5 * i + 7) % 12];
    many_links[(5 * i + 7) % 12] = other;
  }
  char *text = printed(&s);
  assert_null(strstr(text, "links of"));
  assert_null(strstr(text, "takes longest"));
  const char *at = text;
  for (int from = 0; from < 4; from++)
    for (int end = 0; end < 4; end++) {
      char name[32];
      if (from == end) continue;
      snprintf(name, sizeof name, "\nr%02d -> r%02d ", from, end);
      at = strstr(at, name);
      assert_non_null(at);
    }
  free(text);
}

/* ---- live line ---- */

static const gt_progress halfway = {.elapsed_s = 16.5,
                                    .epoch = 2.41,
                                    .epochs = 6,
                                    .done = 0.4017,
                                    .loss = 0.412,
                                    .accuracy = 0.871,
                                    .auc = NAN,
                                    .recall20 = NAN,
                                    .mrr20 = NAN,
                                    .samples_per_s = 41234,
                                    .wan_bps = 12.34e6,
                                    .wan_in_bps = NAN,
                                    .waiting = 0.04,
                                    .step = 1500};

static void test_line_text(void) {
  char text[256];
  gt_live_format(text, sizeof text, &halfway, 23, sizeof text);
  assert_string_equal(text, "epoch 2.41/6  loss 0.412  acc 0.871  41.2 k samples/s  WAN 12.3 "
                            "Mbit/s  waiting 4%  left 0:23");
  gt_live_format(text, sizeof text, &halfway, 23, 80);
  assert_string_equal(
      text, "epoch 2.41/6  loss 0.412  acc 0.871  41.2 k samples/s  waiting 4%  left 0:23");
  gt_live_format(text, sizeof text, &halfway, 23, 40);
  assert_string_equal(text, "epoch 2.41/6  loss 0.412  left 0:23");
  for (size_t width = 1; width < 100; width++) {
    gt_live_format(text, sizeof text, &halfway, 23, width);
    assert_true(strlen(text) < width);
  }
  gt_progress p = halfway;
  p.wan_in_bps = 45.6e6;
  p.in_flight = 3;
  gt_live_format(text, sizeof text, &p, 23, sizeof text);
  assert_string_equal(text, "epoch 2.41/6  loss 0.412  acc 0.871  41.2 k samples/s  WAN 12.3 "
                            "Mbit/s out, 45.6 Mbit/s in, 3 in flight  waiting 4%  left 0:23");
  p = halfway;
  p.auc = 0.9034;
  gt_live_format(text, sizeof text, &p, 23, sizeof text);
  assert_string_equal(text, "epoch 2.41/6  loss 0.412  acc 0.871  auc 0.903  41.2 k samples/s  WAN "
                            "12.3 Mbit/s  waiting 4%  left 0:23");
  gt_live_format(text, sizeof text, &p, 23, 64);
  assert_string_equal(text, "epoch 2.41/6  loss 0.412  auc 0.903  waiting 4%  left 0:23");
  p.auc = NAN;
  p.recall20 = 0.5312;
  p.mrr20 = 0.18;
  gt_live_format(text, sizeof text, &p, 23, 80);
  assert_string_equal(
      text, "epoch 2.41/6  loss 0.412  recall@20 0.531  mrr@20 0.180  waiting 4%  left 0:23");
  p = halfway;
  p.epochs = p.loss = p.accuracy = NAN;
  gt_live_format(text, sizeof text, &p, NAN, sizeof text);
  assert_string_equal(text, "step 1500  epoch 2.41  done 40%  loss -  acc -  41.2 k samples/s  WAN "
                            "12.3 Mbit/s  waiting 4%  left -:--");
  assert_string_equal(gt_format_left(text, sizeof text, 3723), "1:02:03");
  assert_string_equal(gt_format_left(text, sizeof text, 59.6), "1:00");
  assert_string_equal(gt_format_count(text, sizeof text, 999.7), "1000");
  assert_string_equal(gt_format_count(text, sizeof text, 2100000), "2.10 M");
}

static void test_log_mode(void) {
  char *text;
  FILE *to = open_text(&text);
  gt_progress p = halfway, q = halfway;
  p.elapsed_s = 10;
  p.done = 0.2;
  q.elapsed_s = 20;
  q.done = 0.6; /* 0.4 took 10 s, so the remaining 0.4 take 10 s */
  gt_live *live = gt_live_create(to, GT_LIVE_LOG, 0.05);
  gt_live_update(live, &p);
  assert_int_equal(ftell(to), 0); /* nothing is due yet */
  gt_sleep(60 * (GT_SECOND / 1000));
  gt_live_update(live, &q);
  gt_live_update(live, &q);
  gt_live_end(live);
  gt_live_close(live);
  fclose(to);
  assert_string_equal(text, "epoch 2.41/6  loss 0.412  acc 0.871  41.2 k samples/s  WAN 12.3 "
                            "Mbit/s  waiting 4%  left 0:10\n");
  free(text);
}

static void test_line_mode(void) {
  char *text;
  FILE *to = open_text(&text);
  gt_live *live = gt_live_create(to, GT_LIVE_LINE, 30);
  gt_progress p = halfway;
  gt_live_update(live, &halfway);
  p.epoch = 2.42;
  gt_live_update(live, &p); /* too soon: printed at the end */
  gt_live_end(live);
  gt_live_end(live); /* no second newline */
  gt_sleep(GT_SECOND / 4);
  gt_live_update(live, &p); /* nothing behind the table, however long the end takes */
  gt_live_close(live);
  fclose(to);
  /* 80 columns if there is no terminal: the WAN rate is dropped. */
  assert_string_equal(
      text,
      "\repoch 2.41/6  loss 0.412  acc 0.871  41.2 k samples/s  waiting 4%  left -:--\033[K"
      "\repoch 2.42/6  loss 0.412  acc 0.871  41.2 k samples/s  waiting 4%  left -:--\033[K\n");
  free(text);
}

static void test_silent_and_auto(void) {
  FILE *to = tmpfile();
  gt_live *live = gt_live_create(to, GT_LIVE_NONE, 0);
  gt_live_update(live, &halfway);
  gt_live_close(live);
  assert_int_equal(ftell(to), 0);
  assert_false(isatty(fileno(to)));
  /* a file, or a launcher's own stream: must not crash */
  live = gt_live_create(to, GT_LIVE_AUTO, 0);
  gt_live_update(live, &halfway);
  gt_live_close(live);
  assert_true(ftell(to) > 0);
  fclose(to);
  gt_live_close(NULL);
}

/* ---- terminals ---- */

static void test_terminal_decision(void) {
  static const struct {
    bool is_tty;
    const char *parent, *target;
    bool want;
  } cases[] = {
      {true, "bash", "/dev/pts/0", true},
      {false, "bash", "/dev/pts/0", false},
      {true, "bash", "", true},
      {true, "mpirun", "/tmp/log", false},
      {true, "mpirun", "pipe:[123]", false},
      {true, "mpirun", "/dev/null", false},
      {true, "mpirun", "", false},
      {true, "mpirun", "/dev/pts/12", true},
      {false, "mpirun", "/dev/tty1", true},
      {true, "orted", "/dev/null", false},
      {false, "slurmstepd", "socket:[1]", false},
      {true, "prterun", "/dev/console", true},
      {true, "hydra_pmi_proxy", "pipe:[1]", false},
      {true, "mpirunner", "/tmp/log", true},
      {true, "", "", true},
  };
  for (size_t i = 0; i < COUNT(cases); i++)
    if (gt_terminal_decide(cases[i].is_tty, cases[i].parent, cases[i].target) != cases[i].want)
      fail_msg("case %zu: %s with its stream at %s", i, cases[i].parent, cases[i].target);
}

TESTS(test_table, test_plan_and_cost, test_table_of_two_classes, test_recommender, test_wide_table,
      test_virtual_head, test_many_links, test_a_dozen_links, test_line_text, test_log_mode,
      test_line_mode, test_silent_and_auto, test_terminal_decision)
