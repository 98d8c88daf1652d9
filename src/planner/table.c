/* The table of a plan: one line per candidate, the choice by region and by link, the
   assumptions. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define FEW ((size_t)6) /* largest number of regions that are shown one by one */

/* "3+5": ranks of each region, or their sum. */
static const char *ranks_text(char *buf, size_t size, const gt_planner *p, const int64_t *counts) {
  int64_t sum = 0;
  size_t n = p->job->nregions, at = 0;
  for (size_t r = 0; r < n; r++) {
    int64_t ranks = gt_planner_ranks(p, r, counts);
    sum += ranks;
    if (n <= FEW && at < size)
      at += (size_t)snprintf(buf + at, size - at, "%s%" PRId64, r ? "+" : "", ranks);
  }
  if (n > FEW) snprintf(buf, size, "%" PRId64, sum);
  return buf;
}

/* "*" after a cost that contains assumptions. */
static const char *mark(const gt_planner_outcome *o) {
  return o->cost.assumed ? "*" : "";
}

/* The difference in percent. */
static double percent(double now, double before) {
  return before > 0 ? 100 * (now / before - 1) : 0;
}

static const char *money(char buf[32], const gt_planner *p, double usd, const char *star) {
  if (!p->prices.known) return "-";
  snprintf(buf, 32, "%.4g%s", usd, usd > 0 ? star : "");
  return buf;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static void print_head(FILE *to, const gt_planner *p) {
  const gt_job *job = p->job;
  double margin = 100 * p->options.margin;
  bool factor = false;
  for (size_t i = 0; i < p->ncandidates; i++) factor |= p->candidates[i].factor != 1;
  fprintf(to, "%s: %s, %zu parameters, %zu regions; %zu candidate%s, compared at %s\n", job->name,
          gt_model_names[job->model.name], p->shape.parameters, job->nregions, p->ncandidates,
          p->ncandidates == 1 ? "" : "s",
          factor ? "so many times the samples as plan.samples_factor says" : "equal samples");
  fprintf(to,
          "low, expected, high: computing and links %g %% faster, as the job says, %g %% slower; "
          "of the run, without %g s to its first step\n\n",
          margin, margin, job->plan.start_s);
  fprintf(to, "%-12s %-11s %9s %9s %9s %9s %10s %9s %6s %9s %9s %8s %8s  %-11s %9s %9s %7s %7s\n",
          "candidate", "ranks", "step ms", "low s", "time s", "high s", "samples/s", "WAN MB",
          "waits", p->prices.known ? "USD" : "hours", "workers", "PS", "egress", "everything",
          "time s", p->prices.known ? "USD" : "hours", "saved", "longer");
}

static void print_candidate(FILE *to, const gt_planner *p, const gt_planner_candidate *c) {
  const gt_planner_set *set = gt_planner_proposed(c);
  const gt_planner_outcome *o = &set->at[GT_PLANNER_EXPECTED],
                           *all = &c->everything.at[GT_PLANNER_EXPECTED];
  const char *star = mark(o);
  char ranks[128], all_ranks[128], a[32], b[32], d[32], cost[40], before[40];
  snprintf(cost, sizeof cost, "%.4g%s", gt_planner_cost(p, o), p->prices.known ? star : "");
  snprintf(before, sizeof before, "%.4g%s", gt_planner_cost(p, all),
           p->prices.known ? mark(all) : "");
  fprintf(to, "%-12s %-11s %9.4g %9.2f %9.2f %9.2f %10.1f %9.2f %5.1f%% %9s %9s %8s %8s  ",
          c->label, ranks_text(ranks, sizeof ranks, p, set->counts), 1e3 * o->figures.step_s,
          set->at[GT_PLANNER_LOW].figures.wall_s, o->figures.wall_s,
          set->at[GT_PLANNER_HIGH].figures.wall_s, o->figures.samples_per_s,
          1e-6 * o->figures.wan_bytes, 100 * fmax(0, o->figures.waiting), cost,
          money(a, p, o->cost.worker_usd, star), money(b, p, o->cost.ps_usd, star),
          money(d, p, o->cost.egress_usd, star));
  if (c->whole)
    fprintf(to, "the same\n");
  else
    fprintf(to, "%-11s %9.2f %9s %6.1f%% %+6.1f%%\n",
            ranks_text(all_ranks, sizeof all_ranks, p, c->everything.counts), all->figures.wall_s,
            before, -percent(gt_planner_cost(p, o), gt_planner_cost(p, all)),
            percent(o->figures.wall_s, all->figures.wall_s));
  if (!c->fits) fprintf(to, "  not possible: %s\n", c->why);
  if (c->factor != 1)
    fprintf(to, "  at %g times the samples: %" PRId64 "\n", c->factor, o->samples);
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* "2 of 4 v100, 1 of 1 t4". */
static void print_devices(FILE *to, const gt_planner *p, size_t r, const int64_t *counts) {
  const gt_job_region *region = &p->job->regions[r];
  if (p->pools[r].fixed)
    fprintf(to, gt_job_trains(p->job, r) ? "as the job says" : "none: it only aggregates");
  for (size_t d = 0; d < region->ndevices && !p->pools[r].fixed; d++)
    fprintf(to, "%s%" PRId64 " of %" PRId64 " %s", d ? ", " : "", counts[p->pools[r].first + d],
            region->devices[d].count, region->devices[d].type);
  fprintf(to, "\n");
}

static void print_regions(FILE *to, const gt_planner *p, const gt_planner_set *set,
                          const char *star) {
  fprintf(to, "\n%-14s %6s %8s %10s %8s %9s %9s %9s %9s  %s\n", "region", "ranks", "steps",
          "samples", "waits", "USD", "workers", "PS", "egress", "devices");
  for (size_t r = 0; r < p->job->nregions; r++) {
    const gt_cost_region *cost = &set->at[GT_PLANNER_EXPECTED].cost.regions[r];
    const gt_region_result *seen = &set->forecast.regions[r];
    char a[32], b[32], c[32], d[32];
    fprintf(to, "%-14s %6" PRId64 " ", p->job->regions[r].name,
            gt_planner_ranks(p, r, set->counts));
    if (gt_job_trains(p->job, r))
      fprintf(to, "%8" PRId64 " %10" PRId64 " %7.1f%%", seen->steps, seen->samples,
              seen->wall_s > 0 ? 100 * seen->wan_wait_s / seen->wall_s : 0);
    else
      fprintf(to, "%8s %10s %8s", "-", "-", "-");
    fprintf(to, " %9s %9s %9s %9s  ",
            money(a, p, cost->worker_usd + cost->ps_usd + cost->egress_usd, star),
            money(b, p, cost->worker_usd, star), money(c, p, cost->ps_usd, star),
            money(d, p, cost->egress_usd, star));
    print_devices(to, p, r, set->counts);
  }
}

static void print_links(FILE *to, const gt_planner *p, const gt_planner_set *set) {
  size_t n = p->job->nregions, width = 4;
  for (size_t r = 0; r < n; r++)
    width = strlen(p->job->regions[r].name) > width ? strlen(p->job->regions[r].name) : width;
  if (n < 2) return;
  fprintf(to, "\n%-*s  %9s %9s %9s\n", (int)(2 * width + 4), "link", "MB sent", "messages",
          "other MB");
  for (size_t a = 0; a < n; a++)
    for (size_t b = 0; b < n; b++) {
      const gt_sim_traffic *traffic = &set->forecast.links[a * n + b];
      if (a != b)
        fprintf(to, "%-*s -> %-*s  %9.2f %9.0f %9.3f\n", (int)width, p->job->regions[a].name,
                (int)width, p->job->regions[b].name, 1e-6 * traffic->bytes_sent, traffic->messages,
                1e-6 * traffic->bytes_other);
    }
}

static void print_one(FILE *to, const gt_planner *p, const char *title, size_t i) {
  const gt_planner_candidate *c = &p->candidates[i];
  const gt_planner_outcome *o = &gt_planner_proposed(c)->at[GT_PLANNER_EXPECTED];
  fprintf(to, "%-10s %s: %.2f s, %.4g %s%s\n", title, c->label, o->figures.wall_s,
          gt_planner_cost(p, o), p->prices.known ? "USD" : "machine hours",
          c->fits ? "" : " (not possible)");
}

static void print_choice(FILE *to, const gt_planner *p) {
  const gt_planner_candidate *c = &p->candidates[p->choice];
  const gt_job *job = p->job;
  print_one(to, p, "cheapest", p->cheapest);
  print_one(to, p, "fastest", p->fastest);
  fprintf(to, "%-10s %s, ", "choice", c->label);
  if (job->plan.deadline_s > 0)
    fprintf(to, "the cheapest whose high figure and start end within %.10g s%s\n",
            job->plan.deadline_s, job->plan.budget > 0 ? " and within the budget" : "");
  else if (job->plan.budget > 0)
    fprintf(to, "the fastest whose high figure costs at most %.10g USD\n", job->plan.budget);
  else
    fprintf(to, "the cheapest\n");
}

static bool any_assumed(const gt_planner *p) {
  for (size_t i = 0; i < p->ncandidates; i++)
    if (gt_planner_proposed(&p->candidates[i])->at[GT_PLANNER_EXPECTED].cost.assumed ||
        p->candidates[i].everything.at[GT_PLANNER_EXPECTED].cost.assumed)
      return true;
  return false;
}

void gt_planner_print(FILE *to, const gt_planner *p) {
  const gt_planner_set *set = gt_planner_proposed(&p->candidates[p->choice]);
  print_head(to, p);
  for (size_t i = 0; i < p->ncandidates; i++) print_candidate(to, p, &p->candidates[i]);
  fprintf(to, "\n");
  print_choice(to, p);
  if (p->job->nregions <= 2 * FEW) print_regions(to, p, set, mark(&set->at[GT_PLANNER_EXPECTED]));
  if (p->job->nregions <= FEW) print_links(to, p, set);
  int64_t minutes = (int64_t)(p->slurm_s / 60);
  fprintf(to,
          "\nask Slurm for %" PRId64 ":%02" PRId64
          ":00: start, the high figure (evaluation, checkpoints and drain are in it) and "
          "slurm.signal_before\n",
          minutes / 60, minutes % 60);
  for (size_t i = 0; i < p->nnotes; i++) fprintf(to, "%s\n", p->notes[i]);
  if (any_assumed(p)) fprintf(to, "* rates in it are assumed, as their catalogue says\n");
}
