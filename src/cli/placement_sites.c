/* The sites of a placement sweep: rates, tariffs and links from catalogues, as input for plan.h. */
#include <string.h>

#include "placement.h"

/* The roles of a site in this sweep. */
typedef struct {
  bool worker, function, storage;
} role;

static bool has(const word_list *list, const char *name) {
  for (size_t i = 0; i < list->n; i++)
    if (strcmp(list->names[i], name) == 0) return true;
  return false;
}

static void take_names(word_list *into, const word_list *from) {
  for (size_t i = 0; i < from->n; i++)
    if (!has(into, from->names[i])) into->names[into->n++] = from->names[i];
}

static role role_of(const placement_options *o, const char *cloud, const char *place) {
  bool aggregates = has(&o->places, place) || (o->hierarchy && has(&o->workers_at, place));
  return (role){has(&o->clouds, cloud) && has(&o->workers_at, place),
                aggregates && has(&o->functions, cloud), aggregates && has(&o->storages, cloud)};
}

size_t gt_placement_site(const placement_sites *s, const char *cloud, const char *place) {
  size_t c = 0, p = 0;
  while (c + 1 < s->clouds.n && strcmp(s->clouds.names[c], cloud) != 0) c++;
  while (p + 1 < s->places.n && strcmp(s->places.names[p], place) != 0) p++;
  return c * s->places.n + p;
}

static gt_rate_site name_of(const placement_sites *s, size_t site) {
  return (gt_rate_site){s->clouds.names[site / s->places.n], s->places.names[site % s->places.n]};
}

/* ---- from the catalogue ---------------------------------------------------------------------- */

static gt_status take(placement_sites *s, const gt_catalogue *c, gt_rate_kind kind, size_t site,
                      double *out) {
  const gt_rate *rate;
  size_t n;
  GT_TRY(gt_catalogue_rate(c, kind, name_of(s, site), NULL, &rate, &n));
  *out = rate->value;
  s->count[kind].used++;
  s->count[kind].assumed += rate->assumed;
  return GT_OK;
}

static gt_status take_rates(placement_sites *s, const gt_catalogue *c, size_t site, role r) {
  gt_plan_rates *rates = &s->rates[site];
  if (r.worker) GT_TRY(take(s, c, GT_RATE_VM_HOUR, site, &rates->vm_hour));
  if (r.function) GT_TRY(take(s, c, GT_RATE_FUNCTION_GB_S, site, &rates->function_gb_s));
  if (!r.storage) return GT_OK;
  GT_TRY(take(s, c, GT_RATE_STORAGE_GB_MONTH, site, &rates->storage_gb_month));
  GT_TRY(take(s, c, GT_RATE_READ, site, &rates->read));
  GT_TRY(take(s, c, GT_RATE_WRITE, site, &rates->write));
  return take(s, c, GT_RATE_LIST, site, &rates->list);
}

/* Returns the pool of the tier for traffic between two sites.  Traffic within a site counts in no
   tier.  A cloud's traffic between its own places and its traffic to other clouds are two pools. */
static size_t pool_of(const placement_sites *s, size_t from, size_t to) {
  size_t cloud = from / s->places.n;
  return from == to ? 2 * s->clouds.n : 2 * cloud + (cloud != to / s->places.n);
}

static gt_status take_tariff(placement_sites *s, const gt_catalogue *c, size_t from, size_t to) {
  const gt_rate *rate;
  size_t n, pair = from * s->sites.n + to;
  gt_rate_site receiver = name_of(s, to);
  GT_TRY(gt_catalogue_rate(c, GT_RATE_EGRESS_GB, name_of(s, from), &receiver, &rate, &n));
  s->tiers[pair] = GT_NEW_ARRAY(gt_plan_tier, n);
  for (size_t i = 0; i < n; i++) s->tiers[pair][i] = (gt_plan_tier){rate[i].from_gb, rate[i].value};
  s->tariffs[pair] = (gt_plan_tariff){s->tiers[pair], n, pool_of(s, from, to)};
  s->count[GT_RATE_EGRESS_GB].used++;
  s->count[GT_RATE_EGRESS_GB].assumed += rate->assumed;
  return GT_OK;
}

static gt_status take_link(placement_sites *s, const gt_catalogue *c, const placement_options *o,
                           size_t from, size_t to) {
  const gt_rate *mbit_s, *rtt_ms;
  size_t n;
  gt_rate_site receiver = name_of(s, to);
  GT_TRY(gt_catalogue_rate(c, GT_RATE_LINK_MBIT_S, name_of(s, from), &receiver, &mbit_s, &n));
  GT_TRY(gt_catalogue_rate(c, GT_RATE_LINK_RTT_MS, name_of(s, from), &receiver, &rtt_ms, &n));
  double one_way_s = rtt_ms->value / 2000;
  s->links[from * s->sites.n + to] = (gt_link_spec){.bandwidth_bps = mbit_s->value * 1e6,
                                                    .latency_s = one_way_s,
                                                    .back_s = one_way_s,
                                                    .setup_rtts = o->setup_rtts,
                                                    .window_bytes = o->window_bytes};
  s->count[GT_RATE_LINK_MBIT_S].used++;
  s->count[GT_RATE_LINK_MBIT_S].assumed += mbit_s->assumed;
  s->count[GT_RATE_LINK_RTT_MS].used++;
  s->count[GT_RATE_LINK_RTT_MS].assumed += rtt_ms->assumed;
  return GT_OK;
}

/* Takes the rates of sites, then those of the pairs between which objects move. */
static gt_status take_all(placement_sites *s, const gt_catalogue *c, const placement_options *o) {
  for (size_t i = 0; i < s->sites.n; i++) {
    gt_rate_site from = name_of(s, i);
    role a = role_of(o, from.cloud, from.place);
    GT_TRY(take_rates(s, c, i, a));
    for (size_t j = 0; j < s->sites.n; j++) {
      gt_rate_site to = name_of(s, j);
      role b = role_of(o, to.cloud, to.place);
      bool workers = (a.worker && b.storage) || (a.storage && b.worker);
      bool functions = ((a.function && b.storage) || (a.storage && b.function)) &&
                       (o->hierarchy || i % s->places.n == j % s->places.n);
      if (!workers && !functions) continue;
      GT_TRY(take_tariff(s, c, i, j));
      GT_TRY(take_link(s, c, o, i, j));
    }
  }
  return GT_OK;
}

static gt_status check_names(const gt_catalogue *c, const placement_options *o) {
  const struct {
    const char *option;
    const word_list *list;
    gt_status (*has)(const gt_catalogue *, const char *, const char *);
  } checks[] = {{"--workers-at", &o->workers_at, gt_catalogue_has_place},
                {"--places", &o->places, gt_catalogue_has_place},
                {"--clouds", &o->clouds, gt_catalogue_has_cloud},
                {"--functions", &o->functions, gt_catalogue_has_cloud},
                {"--storage", &o->storages, gt_catalogue_has_cloud}};
  for (size_t k = 0; k < sizeof checks / sizeof *checks; k++)
    for (size_t i = 0; i < checks[k].list->n; i++)
      GT_TRY(checks[k].has(c, checks[k].option, checks[k].list->names[i]));
  return GT_OK;
}

gt_status gt_placement_sites(placement_sites *s, const placement_options *o) {
  gt_catalogue *c = NULL;
  *s = (placement_sites){0};
  GT_TRY(gt_catalogue_read(&c, o->files[0]));
  gt_status status = GT_OK;
  for (size_t i = 1; i < o->nfiles && status == GT_OK; i++)
    status = gt_catalogue_add(c, o->files[i]);
  if (status == GT_OK) status = check_names(c, o);
  s->clouds.names = GT_NEW_ARRAY(const char *, o->clouds.n + o->functions.n + o->storages.n);
  s->places.names = GT_NEW_ARRAY(const char *, o->workers_at.n + o->places.n);
  take_names(&s->clouds, &o->clouds);
  take_names(&s->clouds, &o->functions);
  take_names(&s->clouds, &o->storages);
  take_names(&s->places, &o->workers_at);
  take_names(&s->places, &o->places);
  size_t n = s->clouds.n * s->places.n;
  s->rates = GT_NEW_ARRAY(gt_plan_rates, n);
  s->tariffs = GT_NEW_ARRAY(gt_plan_tariff, n * n);
  s->tiers = GT_NEW_ARRAY(gt_plan_tier *, n * n);
  s->links = GT_NEW_ARRAY(gt_link_spec, n * n);
  s->sites = (gt_plan_sites){n, s->rates, s->tariffs, s->links};
  if (status == GT_OK) status = take_all(s, c, o);
  gt_catalogue_close(c);
  return status;
}

void gt_placement_sites_close(placement_sites *s) {
  for (size_t i = 0; s->tiers && i < s->sites.n * s->sites.n; i++) gt_free(s->tiers[i]);
  gt_free(s->tiers);
  gt_free(s->tariffs);
  gt_free(s->rates);
  gt_free(s->links);
  gt_free(s->clouds.names);
  gt_free(s->places.names);
  *s = (placement_sites){0};
}
