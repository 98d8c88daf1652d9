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

static void take_name(word_list *into, const char *name) {
  if (!has(into, name)) into->names[into->n++] = name;
}

static void take_names(word_list *into, const word_list *from) {
  for (size_t i = 0; i < from->n; i++) take_name(into, from->names[i]);
}

static role role_of(const placement_options *o, const char *cloud, const char *place) {
  bool aggregates = has(&o->places, place) || (o->hierarchy && has(&o->worker_places, place));
  role r = {false, aggregates && has(&o->functions, cloud), aggregates && has(&o->storages, cloud)};
  for (size_t i = 0; i < o->workers_at.n; i++) {
    const worker_spot *spot = &o->spots[i];
    bool here = spot->cloud ? strcmp(spot->cloud, cloud) == 0 : has(&o->clouds, cloud);
    r.worker |= here && strcmp(spot->place, place) == 0;
  }
  return r;
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

static void count(placement_sites *s, gt_rate_kind kind, const gt_rate *rate) {
  s->count[kind].used++;
  s->count[kind].assumed += rate->assumed;
}

static gt_status take(placement_sites *s, const gt_catalogue *c, gt_rate_kind kind, size_t site,
                      double *out) {
  const gt_rate *rate;
  size_t n;
  GT_TRY(gt_catalogue_rate(c, kind, name_of(s, site), NULL, &rate, &n));
  *out = rate->value;
  count(s, kind, rate);
  return GT_OK;
}

/* Takes the smallest size of memory that is enough, and its price. */
static gt_status take_memory(placement_sites *s, const gt_catalogue *c, double asked, size_t site) {
  const gt_rate *rate;
  const gt_rate_site where = name_of(s, site);
  size_t n, i = 0;
  GT_TRY(gt_catalogue_rate(c, GT_RATE_FUNCTION_GB_S, where, NULL, &rate, &n));
  const bool any = rate->from_gb == 0;
  while (!any && i < n && rate[i].from_gb < asked) i++;
  if (i == n)
    return GT_FAIL(GT_ERR_JOB,
                   "placement: --memory-gb is %g; expected at most %g, the largest function of %s "
                   "at %s (%s:%zu)",
                   asked, rate[n - 1].from_gb, where.cloud, where.place, rate[n - 1].file,
                   rate[n - 1].line);
  s->rates[site].function_gb_s = rate[i].value;
  s->rates[site].memory_gb = any ? asked : rate[i].from_gb;
  count(s, GT_RATE_FUNCTION_GB_S, &rate[i]);
  return GT_OK;
}

static gt_status take_function(placement_sites *s, const gt_catalogue *c,
                               const placement_options *o, size_t site) {
  size_t n;
  gt_plan_rates *rates = &s->rates[site];
  const gt_rate *add = gt_catalogue_find(c, GT_RATE_FUNCTION_ADD, name_of(s, site), NULL, &n);
  rates->add_s_per_gb = o->add_s_per_gb;
  if (o->add_s_per_gb < 0) rates->add_s_per_gb = add ? add->value : 1;
  if (o->add_s_per_gb < 0 && add) count(s, GT_RATE_FUNCTION_ADD, add);
  return take_memory(s, c, o->memory_gb, site);
}

static gt_status take_rates(placement_sites *s, const gt_catalogue *c, const placement_options *o,
                            size_t site, role r) {
  gt_plan_rates *rates = &s->rates[site];
  if (r.worker) GT_TRY(take(s, c, GT_RATE_VM_HOUR, site, &rates->vm_hour));
  if (r.function) GT_TRY(take_function(s, c, o, site));
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
  count(s, GT_RATE_EGRESS_GB, rate);
  return GT_OK;
}

/* storage: the rate of one object to or from a storage; if it is missing, that of the link. */
static gt_status take_link(placement_sites *s, const gt_catalogue *c, const placement_options *o,
                           gt_rate_kind storage, size_t from, size_t to, gt_link_spec *links) {
  const gt_rate *mbit_s, *rtt_ms;
  size_t n;
  gt_rate_site sender = name_of(s, from), receiver = name_of(s, to);
  mbit_s = gt_catalogue_find(c, storage, sender, &receiver, &n);
  if (!mbit_s) storage = GT_RATE_LINK_MBIT_S;
  if (!mbit_s) GT_TRY(gt_catalogue_rate(c, storage, sender, &receiver, &mbit_s, &n));
  GT_TRY(gt_catalogue_rate(c, GT_RATE_LINK_RTT_MS, sender, &receiver, &rtt_ms, &n));
  double one_way_s = rtt_ms->value / 2000;
  links[from * s->sites.n + to] = (gt_link_spec){.bandwidth_bps = mbit_s->value * 1e6,
                                                 .latency_s = one_way_s,
                                                 .back_s = one_way_s,
                                                 .setup_rtts = o->setup_rtts,
                                                 .window_bytes = o->window_bytes};
  count(s, storage, mbit_s);
  count(s, GT_RATE_LINK_RTT_MS, rtt_ms);
  return GT_OK;
}

/* Takes the rates of sites, then those of the pairs between which objects move. */
static gt_status take_all(placement_sites *s, const gt_catalogue *c, const placement_options *o) {
  for (size_t i = 0; i < s->sites.n; i++) {
    gt_rate_site from = name_of(s, i);
    role a = role_of(o, from.cloud, from.place);
    GT_TRY(take_rates(s, c, o, i, a));
    for (size_t j = 0; j < s->sites.n; j++) {
      gt_rate_site to = name_of(s, j);
      role b = role_of(o, to.cloud, to.place);
      bool near = o->hierarchy || i % s->places.n == j % s->places.n,
           up = b.storage && (a.worker || (a.function && near)),
           down = a.storage && (b.worker || (b.function && near));
      if (up || down) GT_TRY(take_tariff(s, c, i, j));
      if (up) GT_TRY(take_link(s, c, o, GT_RATE_STORAGE_UP, i, j, s->up));
      if (down) GT_TRY(take_link(s, c, o, GT_RATE_STORAGE_DOWN, i, j, s->down));
    }
  }
  return GT_OK;
}

static gt_status check_names(const gt_catalogue *c, const placement_options *o) {
  const struct {
    const char *option;
    const word_list *list;
    gt_status (*has)(const gt_catalogue *, const char *, const char *);
  } checks[] = {
      {"--clouds", &o->clouds, gt_catalogue_has_cloud}, /* not read if workers name theirs */
      {"--workers-at", &o->worker_places, gt_catalogue_has_place},
      {"--places", &o->places, gt_catalogue_has_place},
      {"--functions", &o->functions, gt_catalogue_has_cloud},
      {"--storage", &o->storages, gt_catalogue_has_cloud}};
  for (size_t k = o->spots->cloud ? 1 : 0; k < sizeof checks / sizeof *checks; k++)
    for (size_t i = 0; i < checks[k].list->n; i++)
      GT_TRY(checks[k].has(c, checks[k].option, checks[k].list->names[i]));
  for (size_t i = 0; i < o->workers_at.n; i++)
    if (o->spots[i].cloud) GT_TRY(gt_catalogue_has_cloud(c, "--workers-at", o->spots[i].cloud));
  return GT_OK;
}

gt_status gt_placement_find_sites(placement_sites *s, const placement_options *o) {
  gt_catalogue *c = NULL;
  *s = (placement_sites){0};
  GT_TRY(gt_catalogue_read(&c, o->files[0]));
  gt_status status = GT_OK;
  for (size_t i = 1; i < o->nfiles && status == GT_OK; i++)
    status = gt_catalogue_add(c, o->files[i]);
  if (status == GT_OK) status = check_names(c, o);
  s->clouds.names =
      GT_NEW_ARRAY(const char *, o->workers_at.n + o->clouds.n + o->functions.n + o->storages.n);
  s->places.names = GT_NEW_ARRAY(const char *, o->workers_at.n + o->places.n);
  for (size_t i = 0; i < o->workers_at.n; i++)
    if (o->spots[i].cloud) take_name(&s->clouds, o->spots[i].cloud);
  if (!o->spots->cloud) take_names(&s->clouds, &o->clouds);
  take_names(&s->clouds, &o->functions);
  take_names(&s->clouds, &o->storages);
  take_names(&s->places, &o->worker_places);
  take_names(&s->places, &o->places);
  size_t n = s->clouds.n * s->places.n;
  s->rates = GT_NEW_ARRAY(gt_plan_rates, n);
  s->tariffs = GT_NEW_ARRAY(gt_plan_tariff, n * n);
  s->tiers = GT_NEW_ARRAY(gt_plan_tier *, n * n);
  s->up = GT_NEW_ARRAY(gt_link_spec, n * n);
  s->down = GT_NEW_ARRAY(gt_link_spec, n * n);
  s->sites = (gt_plan_sites){n, s->rates, s->tariffs, s->up, s->down};
  if (status == GT_OK) status = take_all(s, c, o);
  gt_catalogue_close(c);
  return status;
}

void gt_placement_close_sites(placement_sites *s) {
  for (size_t i = 0; s->tiers && i < s->sites.n * s->sites.n; i++) gt_free(s->tiers[i]);
  gt_free(s->tiers);
  gt_free(s->tariffs);
  gt_free(s->rates);
  gt_free(s->up);
  gt_free(s->down);
  gt_free(s->clouds.names);
  gt_free(s->places.names);
  *s = (placement_sites){0};
}
