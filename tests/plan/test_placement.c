/* The time of a placement's mini-batch, computed by hand, and its general properties. */
#include "geotrain/plan.h"
#include "tests.h"

#define SITES 4

static void near_to(double found, double needed) {
  if (fabs(found - needed) > 1e-6 * fabs(needed) + 2e-8)
    fail_msg("found %.12g, needed %.12g", found, needed);
}

/* Sites 0 to 3: 17 MB take 1 s at 136 Mbit/s over the WAN and 0.1 s within a site; latency is 0.1 s
   and 0.001 s. */
static void make_links(gt_link_spec *links) {
  for (size_t i = 0; i < SITES; i++)
    for (size_t j = 0; j < SITES; j++) {
      double latency = i == j ? 0.001 : 0.1;
      links[i * SITES + j] = (gt_link_spec){.bandwidth_bps = i == j ? 1360e6 : 136e6,
                                            .latency_s = latency,
                                            .back_s = latency,
                                            .setup_rtts = 2};
    }
}

static gt_plan_placement central(const gt_plan_sites *sites, const gt_plan_worker *workers,
                                 size_t n, int64_t batches) {
  return (gt_plan_placement){sites, workers, n, {0, 0}, NULL, 0, 17e6, batches, false};
}

/* Worker 0 next to the aggregator, worker 1 over the WAN, one batch. */
static void a_central_batch_by_hand(void) {
  gt_link_spec links[SITES * SITES];
  const gt_plan_rates rates[SITES] = {{.add_s_per_gb = 10}};
  gt_plan_sites sites = {SITES, rates, NULL, links, links};
  const gt_plan_worker workers[] = {{0, 0, 2}, {1, 0, 3}};
  gt_plan_placement p = central(&sites, workers, 2, 1);
  const gt_plan_pace pace = {.poll_s = 0.5, .start_s = 0.05};
  double vm_s[2];
  gt_plan_use use;
  make_links(links);
  gt_plan_split s = gt_plan_place(&p, &pace, vm_s, &use);
  double up0 = 2 + 0.004 + 0.1 + 0.001, up1 = 3 + 0.4 + 1 + 0.1; /* arrival in the storage */
  double list = 3 * 0.002, added = up1 + 0.05 + list + 0.001 + 0.2 + 0.001 + 10 * 0.034,
         model = added + 0.1 + 0.001, ended = model + 0.001;
  near_to(s.train_s, 2.5);
  near_to(s.upload_s, (up0 - 2 + 0.001 + up1 - 3 + 0.1) / 2);
  double ask0 = up0 + 0.001 + 0.001, ask1 = up1 + 0.1 + 0.1, failed0 = ceil((model - ask0) / 0.5),
         failed1 = ceil((model - ask1) / 0.5);
  near_to(use.failed_reads, failed0 + failed1);
  double found0 = ask0 + 0.5 * failed0, found1 = ask1 + 0.5 * failed1;
  near_to(vm_s[0], found0 + 0.1 + 0.001);
  near_to(vm_s[1], found1 + 1 + 0.1);
  near_to(s.batch_s, vm_s[1]);
  near_to(s.aggregate_s, model - up1);
  near_to(use.function_s, list + ended - up1 - 0.05);
  near_to(use.stored_gb_s, 0.017 * (ended - up0 + ended - up1 + vm_s[1] - model));
  near_to(s.train_s + s.upload_s + s.wait_s + s.download_s, (vm_s[0] + vm_s[1]) / 2);
  near_to(s.request_s, (found0 + found1) / 2 - model);
}

/* One worker in each of two regions, the global aggregator in a third. */
static void a_regional_batch_by_hand(void) {
  gt_link_spec links[SITES * SITES];
  const gt_plan_rates rates[SITES] = {{0}};
  gt_plan_sites sites = {SITES, rates, NULL, links, links};
  const gt_plan_worker workers[] = {{0, 0, 1}, {1, 1, 1}};
  const gt_plan_point regional[] = {{0, 0}, {1, 1}};
  gt_plan_placement p = {&sites, workers, 2, {2, 2}, regional, 2, 17e6, 1, false};
  const gt_plan_pace pace = {.poll_s = 0.001, .start_s = 0};
  double vm_s[2];
  gt_plan_use use[3];
  make_links(links);
  gt_plan_split s = gt_plan_place(&p, &pace, vm_s, use);
  double up = 1 + 0.004 + 0.1 + 0.001, sum = up + 0.006 + 0.001 + 0.101,
         there = sum + 0.4 + 1 + 0.1;
  double added = there + 0.006 + 0.001 + 0.201, model = added + 0.4 + 1 + 0.1;
  near_to(use[0].function_s, there + 0.1 - up);
  near_to(use[2].function_s, 0.006 + model + 0.1 - there);
  near_to(use[2].stored_gb_s, 2 * 0.017 * (model + 0.1 - there));
  near_to(s.aggregate_s, model - there);
  assert_true(s.batch_s >= model + 0.101 && s.batch_s <= model + 0.101 + 0.0021);
  assert_true(use[0].failed_reads == floor(use[0].failed_reads) && use[0].failed_reads > 100);
  assert_true(use[2].failed_reads == 0);
}

/* Phases add up to the workers' time; equal batches take as long as one; a faster WAN, or less
   data, is never slower; regional aggregators are not faster here. */
static void laws_of_many_batches(void) {
  gt_link_spec links[SITES * SITES];
  const gt_plan_rates each = {.add_s_per_gb = 1}, rates[SITES] = {each, each, each, each};
  gt_plan_sites sites = {SITES, rates, NULL, links, links};
  const gt_plan_worker workers[] = {{0, 0, 2}, {1, 1, 3}, {2, 2, 1}, {3, 3, 2}};
  const gt_plan_point regional[] = {{0, 0}, {1, 1}, {2, 2}, {3, 3}};
  gt_plan_placement p = central(&sites, workers, 4, 100);
  const gt_plan_pace pace = {.poll_s = 0.01, .start_s = 0.05};
  double vm_s[4], sum = 0;
  gt_plan_use use[5];
  make_links(links);
  gt_plan_split s = gt_plan_place(&p, &pace, vm_s, use);
  for (size_t i = 0; i < 4; i++) sum += vm_s[i] / 4;
  near_to(s.train_s + s.upload_s + s.wait_s + s.download_s, sum);
  const gt_plan_use of_100 = use[0];
  p.batches = 1000;
  gt_plan_split more = gt_plan_place(&p, &pace, vm_s, use);
  assert_true(fabs(more.batch_s - s.batch_s) < 0.02 * s.batch_s);
  assert_true(fabs(use[0].stored_gb_s - of_100.stored_gb_s) < 0.02 * of_100.stored_gb_s);
  assert_true(fabs(use[0].function_s - of_100.function_s) < 0.02 * of_100.function_s);
  assert_true(fabs(use[0].failed_reads - of_100.failed_reads) < 0.02 * of_100.failed_reads);
  for (size_t i = 0; i < SITES * SITES; i++) links[i].bandwidth_bps *= 2;
  gt_plan_split fast = gt_plan_place(&p, &pace, vm_s, use);
  assert_true(fast.batch_s < more.batch_s && fast.upload_s < more.upload_s &&
              fast.download_s < more.download_s);
  p.regional = regional;
  p.nregional = 4;
  assert_true(gt_plan_place(&p, &pace, vm_s, use).batch_s > fast.batch_s);
}

/* Uploads take the rate of `up`, downloads that of `down`, and each function its own time to
   add. */
static void each_direction_has_its_rate(void) {
  gt_link_spec up[SITES * SITES], down[SITES * SITES];
  const gt_plan_rates rates[SITES] = {{.add_s_per_gb = 10}, {.add_s_per_gb = 20}};
  gt_plan_sites sites = {SITES, rates, NULL, up, down};
  const gt_plan_worker worker = {2, 0, 0};
  gt_plan_placement p = central(&sites, &worker, 1, 1);
  const gt_plan_pace pace = {.poll_s = 0.001};
  double vm_s;
  gt_plan_use use;
  make_links(up);
  make_links(down);
  for (size_t i = 0; i < SITES * SITES; i++) down[i].bandwidth_bps /= 4;
  gt_plan_split s = gt_plan_place(&p, &pace, &vm_s, &use);
  near_to(s.upload_s, 0.4 + 1 + 0.1 + 0.1);
  near_to(s.download_s, 4 + 0.1);
  near_to(s.aggregate_s, 0.006 + 0.001 + 0.4 + 0.001 + 0.17 + 0.1 + 0.001);
  p.global = (gt_plan_point){1, 1};
  near_to(gt_plan_place(&p, &pace, &vm_s, &use).aggregate_s, s.aggregate_s + 0.17);
}

TESTS(a_central_batch_by_hand, a_regional_batch_by_hand, laws_of_many_batches,
      each_direction_has_its_rate)
