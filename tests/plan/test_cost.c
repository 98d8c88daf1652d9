/* The study's cost equations against separate computations, term by term; tiers of egress;
   geotrain's own topology. */
#include "geotrain/plan.h"
#include "tests.h"

#define PLACES  4
#define NEAR    1e-9
#define BATCHES 100

static void near_to(double found, double needed) {
  if (fabs(found - needed) > NEAR * fabs(needed))
    fail_msg("found %.17g, needed %.17g", found, needed);
}

/* ---- a market of four places, two vendors: sites 0 to 3 of the one, 4 to 7 of the other ------ */

typedef struct {
  gt_plan_rates rates[2 * PLACES];
  gt_plan_tier tiers[2 * PLACES][2 * PLACES][3];
  gt_plan_tariff tariffs[4 * PLACES * PLACES];
  gt_plan_sites sites;
} market;

static void make_market(market *m, size_t ntiers, uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < 2 * PLACES; i++) {
    double x[6];
    for (size_t k = 0; k < 6; k++) x[k] = 0.5 + gt_rng_uniform(&rng);
    m->rates[i] = (gt_plan_rates){0.1 * x[0],  1.6e-5 * x[1], 0.023 * x[2], 4e-7 * x[3],
                                  5e-6 * x[4], 5e-6 * x[5],   x[0],         0};
    for (size_t j = 0; j < 2 * PLACES; j++) {
      bool same = i == j;
      for (size_t k = 0; k < ntiers; k++) /* the 3.4 GB of a run span several tiers */
        m->tiers[i][j][k] = (gt_plan_tier){
            2.5 * (double)k, same ? 0 : (0.02 + 0.1 * gt_rng_uniform(&rng)) / (double)(k + 1)};
      /* traffic within a site does not count */
      size_t pool = same ? 4 : 2 * (i / PLACES) + (i / PLACES != j / PLACES);
      m->tariffs[i * 2 * PLACES + j] = (gt_plan_tariff){m->tiers[i][j], ntiers, pool};
    }
  }
  m->sites = (gt_plan_sites){2 * PLACES, m->rates, m->tariffs, NULL, NULL};
}

static double price(const market *m, size_t from, size_t to) {
  return m->tiers[from][to][0].usd_per_gb;
}

/* ---- equations (1) to (9), central ----------------------------------------------------------- */

/* NISER (17 MB) and LSTM (49 MB), 4 workers, 100 batches, every aggregator place and vendor of
   function and storage: the equations as in the study, m in GB. */
static void central_costs_are_the_equations(void) {
  static const double models[] = {17e6, 49e6};
  market m;
  make_market(&m, 1, 7);
  for (size_t k = 0; k < 2 * 2 * PLACES * 2 * PLACES; k++) {
    const size_t agg = k / 2 % (2 * PLACES), st = k / 2 / (2 * PLACES), n = 4;
    const double mb = models[k % 2], gb = mb / 1e9, T_vm[] = {14.1, 13.2, 12.3, 15.7}, T_faas = 3.7,
                 M_gb = m.rates[agg].memory_gb, l = 17, residency_s = 9.5;
    gt_plan_worker workers[] = {{0, 0, 0}, {1, 0, 0}, {6, 0, 0}, {3, 0, 0}};
    gt_plan_placement p = {&m.sites, workers, n, {agg, st}, NULL, 0, mb, BATCHES, false};
    gt_plan_use use = {T_faas, gb * residency_s, l};
    gt_plan_terms t = gt_plan_cost(&p, T_vm, &use, NULL, 0);
    double eq3 = 0, eq7 = 0, down = 0;
    for (size_t i = 0; i < n; i++) {
      eq3 += T_vm[i] * m.rates[workers[i].site].vm_hour / 3600;
      eq7 += gb * price(&m, workers[i].site, st);
      down += gb * price(&m, st, workers[i].site);
    }
    double eq4 = T_faas * M_gb * m.rates[agg].function_gb_s, eq8 = gb * price(&m, agg, st),
           eq9 = 4 * gb * price(&m, st, agg) + down;
    const gt_plan_rates *s = &m.rates[st];
    double eq5 = gb * (residency_s / (365.0 * 24 * 3600 / 12)) * s->storage_gb_month +
                 (4 * 2 + l) * (1000 * s->read) / 1000 + (4 + 1) * (1000 * s->write) / 1000 +
                 4 * (1000 * s->list) / 1000;
    near_to(t.iaas, eq3);
    near_to(t.faas, eq4);
    near_to(t.compute, eq3 + eq4);
    near_to(t.stored, gb * residency_s / 2628000 * s->storage_gb_month);
    near_to(t.reads, 25 * s->read);
    near_to(t.writes, 5 * s->write);
    near_to(t.lists, 4 * s->list);
    near_to(t.storage, eq5);
    near_to(t.dt_iaas, eq7);
    near_to(t.dt_faas, eq8);
    near_to(t.dt_to_function, 4 * gb * price(&m, st, agg));
    near_to(t.dt_to_workers, down);
    near_to(t.dt_storage, eq9);
    near_to(t.transfer, eq7 + eq8 + eq9);
    near_to(t.total, eq3 + eq4 + eq5 + eq7 + eq8 + eq9);
    near_to(t.n_reads, 25);
    near_to(t.n_writes, 5);
    near_to(t.n_lists, 4);
    p.objects_by_month = true; /* to the letter */
    near_to(gt_plan_cost(&p, T_vm, &use, NULL, 0).storage,
            eq5 - t.stored + gb * s->storage_gb_month);
  }
}

/* ---- regional aggregators -------------------------------------------------------------------- */

/* Three workers in place 0, two in place 1; global aggregator in place 2; objects and requests
   counted by hand. */
static void regional_costs_are_counted_by_hand(void) {
  market m;
  make_market(&m, 1, 8);
  const double gb = 0.017, vm_s[] = {10, 11, 12, 13, 14};
  gt_plan_worker workers[] = {{0, 0, 0}, {0, 0, 0}, {4, 0, 0}, {1, 1, 0}, {5, 1, 0}};
  const gt_plan_point regional[] = {{0, 4}, {1, 1}}, global = {2, 6};
  gt_plan_placement p = {&m.sites, workers, 5, global, regional, 2, 17e6, BATCHES, false};
  const gt_plan_use use[] = {{1, 0.1, 5}, {2, 0.2, 6}, {3, 0.3, 0}};
  gt_plan_terms t = gt_plan_cost(&p, vm_s, use, NULL, 0);
  const gt_plan_rates *r = m.rates;
  near_to(t.iaas,
          ((10 + 11) * r[0].vm_hour + 12 * r[4].vm_hour + 13 * r[1].vm_hour + 14 * r[5].vm_hour) /
              3600);
  near_to(t.faas, 1 * r[0].memory_gb * r[0].function_gb_s +
                      2 * r[1].memory_gb * r[1].function_gb_s +
                      3 * r[2].memory_gb * r[2].function_gb_s);
  near_to(t.stored, (0.1 * r[4].storage_gb_month + 0.2 * r[1].storage_gb_month +
                     0.3 * r[6].storage_gb_month) /
                        2628000);
  /* the function's, the workers', failed ones */
  near_to(t.reads, (3 + 3 + 5) * r[4].read + (2 + 2 + 6) * r[1].read + 2 * r[6].read);
  /* gradients and the model; sums */
  near_to(t.writes, (3 + 1) * r[4].write + (2 + 1) * r[1].write + 2 * r[6].write);
  near_to(t.lists, 3 * r[4].list + 2 * r[1].list + 2 * r[6].list);
  near_to(t.dt_iaas, gb * (2 * price(&m, 0, 4) + price(&m, 1, 1) + price(&m, 5, 1)));
  near_to(t.dt_faas, gb * (price(&m, 0, 6) + price(&m, 1, 6) + price(&m, 2, 4) + price(&m, 2, 1)));
  near_to(t.dt_to_function, gb * (3 * price(&m, 4, 0) + 2 * price(&m, 6, 2)));
  near_to(t.dt_to_workers, gb * (2 * price(&m, 4, 0) + price(&m, 1, 5)));
  near_to(t.total, t.iaas + t.faas + t.stored + t.reads + t.writes + t.lists + t.dt_iaas +
                       t.dt_faas + t.dt_to_function + t.dt_to_workers);
}

/* With the same rates everywhere, k workers per region and aggregators next to them: without
   regional aggregators, k times as much leaves a region. */
static void regional_aggregators_divide_what_leaves_a_region(void) {
  enum { K = 3 };
  market m;
  make_market(&m, 1, 9);
  for (size_t i = 0; i < PLACES; i++)
    for (size_t j = 0; j < PLACES; j++) m.tiers[i][j][0].usd_per_gb = i == j ? 0 : 0.02;
  gt_plan_worker workers[K * PLACES];
  gt_plan_point regional[PLACES];
  double vm_s[K * PLACES] = {0};
  gt_plan_use use[PLACES + 1] = {{0}};
  for (size_t i = 0; i < K * PLACES; i++) workers[i] = (gt_plan_worker){i % PLACES, i % PLACES, 0};
  for (size_t i = 0; i < PLACES; i++) regional[i] = (gt_plan_point){i, i};
  gt_plan_placement p = {&m.sites, workers, K * PLACES, {1, 1}, regional,
                         PLACES,   17e6,    BATCHES,    false};
  double regions = gt_plan_cost(&p, vm_s, use, NULL, 0).transfer;
  near_to(regions, 2 * (PLACES - 1) * 0.017 * 0.02);
  p.nregional = 0;
  near_to(gt_plan_cost(&p, vm_s, use, NULL, 0).transfer, K * regions);
}

/* ---- tiers ----------------------------------------------------------------------------------- */

/* All flows of a pool progress at the same rate: added up in small steps. */
static void tiers_are_those_of_the_whole_pool(void) {
  enum { STEPS = 1000 };
  static const gt_plan_tier a[] = {{0, 0.09}, {10, 0.085}, {50, 0.07}},
                            b[] = {{0, 0.11}, {25, 0.01}}, c[] = {{0, 0.12}, {1, 0.08}};
  const gt_plan_tariff tariffs[] = {{a, 3, 0}, {b, 2, 0}, {c, 2, 1}, {NULL, 0, 1}};
  const double used[] = {5, 0}, gb[] = {30, 60, 4, 3};
  const gt_plan_tier *tiers[] = {a, b, c, NULL};
  gt_plan_flow flows[4];
  for (size_t i = 0; i < 4; i++) flows[i] = (gt_plan_flow){&tariffs[i], gb[i], -1};
  gt_plan_egress(flows, 4, used, 2);
  for (size_t i = 0; i < 4; i++) {
    double sum = 0, pool = i < 2 ? 90 : 7, before = i < 2 ? 5 : 0;
    for (size_t k = 0; k < STEPS; k++) { /* no tier begins within a step */
      double at = before + pool * ((double)k + 0.5) / STEPS, rate = 0;
      for (size_t j = 0; j < tariffs[i].ntiers; j++)
        if (tiers[i][j].from_gb <= at) rate = tiers[i][j].usd_per_gb;
      sum += gb[i] / STEPS * rate;
    }
    if (fabs(flows[i].usd - sum) > 2e-3 * fabs(sum))
      fail_msg("flow %zu: %.9g by steps %.9g", i, flows[i].usd, sum);
  }
  near_to(flows[0].usd, 30.0 / 90 * (5 * 0.09 + 40 * 0.085 + 45 * 0.07));
  near_to(flows[1].usd, 60.0 / 90 * (20 * 0.11 + 70 * 0.01));
  near_to(flows[2].usd, 4.0 / 7 * (1 * 0.12 + 6 * 0.08));
  near_to(flows[3].usd, 0);
}

/* A batch of a run that reaches a higher tier costs the mean: 100 batches of 0.68 GB each way, of
   which 2.5 GB are in the expensive tier. */
static void a_run_sees_tiers_as_a_whole(void) {
  market m;
  make_market(&m, 2, 10);
  gt_plan_worker worker = {0, 0, 0};
  double vm_s = 0;
  gt_plan_use use = {0, 0, 0};
  gt_plan_placement p = {&m.sites, &worker, 1, {1, 1}, NULL, 0, 17e6, BATCHES, false};
  for (size_t i = 0; i < PLACES; i++)
    for (size_t j = 0; j < PLACES; j++)
      if (i != j) m.tiers[i][j][0].usd_per_gb = 0.1, m.tiers[i][j][1].usd_per_gb = 0.04;
  double run = gt_plan_cost(&p, &vm_s, &use, NULL, 0).transfer * BATCHES;
  near_to(run, 2.5 * 0.1 + (2 * 1.7 - 2.5) * 0.04);
  const double used[] = {0.5, 1000};
  near_to(gt_plan_cost(&p, &vm_s, &use, used, 2).transfer * BATCHES,
          2.0 * 0.1 + (2 * 1.7 - 2.0) * 0.04);
}

/* ---- geotrain's own topology ----------------------------------------------------------------- */

static void a_run_costs_machine_hours_and_egress(void) {
  static const gt_plan_tier dear[] = {{0, 0.09}, {10, 0.05}}, cheap[] = {{0, 0.02}};
  gt_plan_cost_region regions[] = {
      {.workers = 3, .worker_price = 0.4, .ps_price = 0.1, .seconds = 3601, .billing = {60, 0}},
      {.workers = 1, .worker_price = 0.2, .ps_price = 0.2, .seconds = 30, .billing = {1, 60}},
      {.workers = 2, .worker_price = 1, .ps_price = 1, .seconds = 0, .billing = {3600, 3600}}};
  gt_plan_cost_link links[] = {
      {0, 1, 12e9, {dear, 2, 0}, 0}, {1, 0, 12e9, {cheap, 1, 1}, 0}, {0, 2, 8e9, {dear, 2, 0}, 0}};
  gt_plan_cost_sum sum = gt_plan_topology_cost(regions, 3, links, 3, NULL, 0);
  near_to(regions[0].worker_usd, 3 * 0.4 * 3660 / 3600);
  near_to(regions[0].ps_usd, 0.1 * 3660 / 3600);
  near_to(regions[1].worker_usd + regions[1].ps_usd, 2 * 0.2 / 60);
  near_to(regions[2].usd, 0);
  near_to(links[0].usd, 12.0 / 20 * (10 * 0.09 + 10 * 0.05));
  near_to(links[1].usd, 12 * 0.02);
  near_to(regions[0].egress_usd, 10 * 0.09 + 10 * 0.05);
  near_to(regions[1].usd, 2 * 0.2 / 60 + 0.24);
  near_to(sum.machine_usd, sum.worker_usd + sum.ps_usd);
  near_to(sum.machine_hours, 4 * 3660.0 / 3600 + 2.0 / 60);
  near_to(sum.usd, regions[0].usd + regions[1].usd);
  near_to(sum.egress_usd, 1.4 + 0.24);
}

TESTS(central_costs_are_the_equations, regional_costs_are_counted_by_hand,
      regional_aggregators_divide_what_leaves_a_region, tiers_are_those_of_the_whole_pool,
      a_run_sees_tiers_as_a_whole, a_run_costs_machine_hours_and_egress)
