/* Candidates: every combination of the axes' values, stored as overrides of the job. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/sync.h"
#include "internal.h"

#define FIRST 8 /* initial room for candidates and overrides */

/* ---- axes ------------------------------------------------------------------------------------ */

static bool strategy_value(char *text, size_t size, const gt_job *job, size_t i) {
  const size_t n = job->plan.nstrategies;
  if (i >= (n > 0 ? n : 1)) return false;
  snprintf(text, size, "%s",
           gt_strategy_names[n > 0 ? job->plan.strategies[i] : job->sync.strategy]);
  return true;
}

static bool period_value(char *text, size_t size, const gt_job *job, size_t i) {
  const size_t n = job->plan.nperiods;
  if (i >= (n > 0 ? n : 1)) return false;
  snprintf(text, size, "%" PRId64, n > 0 ? job->plan.periods[i] : job->sync.period);
  return true;
}

static bool codec_value(char *text, size_t size, const gt_job *job, size_t i) {
  if (i >= job->plan.ncodecs) return false;
  snprintf(text, size, "%s", gt_codec_names[job->plan.codecs[i]]);
  return true;
}

static bool has_period(const gt_planner_candidate *c) {
  return gt_job_key_used("sync.period", gt_planner_value(c, "sync.strategy"));
}

const gt_planner_axis gt_planner_axes[] = {
    {"sync.strategy", "strategy", false, strategy_value, NULL},
    {"sync.period", "period", true, period_value, has_period},
    {"sync.codec.name", "codec", false, codec_value, NULL},
    {.key = NULL},
};

const char *gt_planner_value(const gt_planner_candidate *c, const char *key) {
  const size_t length = strlen(key);
  for (size_t i = 0; i < c->noverrides; i++)
    if (strncmp(c->overrides[i], key, length) == 0 && c->overrides[i][length] == '=')
      return c->overrides[i] + length + 1;
  return NULL;
}

/* ---- combinations ---------------------------------------------------------------------------- */

static void push(gt_planner_candidate *c, const char *key, const char *value) {
  char text[128];
  snprintf(text, sizeof text, "%s=%s", key, value);
  GT_GROW(c->overrides, c->noverrides, c->room, FIRST);
  c->overrides[c->noverrides++] = gt_strdup(text);
}

static void pop(gt_planner_candidate *c) {
  gt_free(c->overrides[--c->noverrides]);
}

static bool same(const gt_planner_candidate *a, const gt_planner_candidate *b) {
  bool equal = a->noverrides == b->noverrides;
  for (size_t i = 0; equal && i < a->noverrides; i++)
    equal = strcmp(a->overrides[i], b->overrides[i]) == 0;
  return equal;
}

static char *label_of(const gt_planner_candidate *c) {
  char text[256] = "";
  for (size_t i = 0, at = 0; i < c->noverrides && at < sizeof text; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? " " : "",
                           strchr(c->overrides[i], '=') + 1);
  return gt_strdup(text);
}

static size_t index_of(const char *const *names, const char *name) {
  size_t i = 0;
  while (strcmp(names[i], name) != 0) i++;
  return i;
}

/* True if the candidate's codec, of two lists, does not suit its strategy. */
static bool is_unsound(const gt_job *job, const gt_planner_candidate *c) {
  const char *strategy = gt_planner_value(c, "sync.strategy"),
             *codec = gt_planner_value(c, "sync.codec.name");
  return strategy && codec &&
         gt_job_unsound_codec(job, (gt_strategy)index_of(gt_strategy_names, strategy),
                              (gt_codec_kind)index_of(gt_codec_names, codec), job->sync.topology);
}

/* Adds a copy, unless the list has it already or its codec is unsound. */
static void add(gt_planner *p, const gt_planner_candidate *c) {
  if (is_unsound(p->job, c)) return;
  for (size_t i = 0; i < p->ncandidates; i++)
    if (same(&p->candidates[i], c)) return;
  GT_GROW(p->candidates, p->ncandidates, p->room, FIRST);
  gt_planner_candidate *copy = &p->candidates[p->ncandidates++];
  *copy = (gt_planner_candidate){.label = label_of(c)};
  for (size_t i = 0; i < c->noverrides; i++) {
    GT_GROW(copy->overrides, copy->noverrides, copy->room, FIRST);
    copy->overrides[copy->noverrides++] = gt_strdup(c->overrides[i]);
  }
}

/* Adds `c` with every combination of values of this axis and the following ones. */
static void combine(gt_planner *p, gt_planner_candidate *c, const gt_planner_axis *axis) {
  char value[96];
  if (!axis->key) {
    add(p, c);
    return;
  }
  size_t n = 0;
  while ((!axis->applies || axis->applies(c)) && axis->value(value, sizeof value, p->job, n)) {
    push(c, axis->key, value);
    combine(p, c, axis + 1);
    pop(c);
    n++;
  }
  if (n == 0) combine(p, c, axis + 1);
}

gt_status gt_planner_list_candidates(gt_planner *p, const gt_planner_axis *axes) {
  gt_planner_candidate none = {0};
  if (p->job->plan.nstrategies == 0 && !gt_sync_of(p->job->sync.strategy)->sends)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.strategy is none, with which regions exchange nothing; expected "
                   "plan.strategies, or another strategy",
                   p->job->name);
  combine(p, &none, axes);
  gt_free(none.overrides);
  return GT_OK;
}

/* ---- a candidate's job ----------------------------------------------------------------------- */

/* Returns the factor for its period, else the one for any period, else NULL. */
static const gt_job_factor *factor_of(const gt_job *job, const gt_planner_candidate *c) {
  const gt_job_factor *any = NULL;
  for (size_t i = 0; i < job->plan.nfactors; i++) {
    const gt_job_factor *f = &job->plan.factors[i];
    const bool of_job = job->plan.ncodecs == 0 && f->codec == GT_CODEC_NONE;
    if (f->strategy != c->strategy || (f->codec != c->codec && !of_job)) continue;
    if (f->period == c->period) return f;
    if (f->period == 0) any = f;
  }
  return any;
}

gt_status gt_planner_load(gt_job **out, const gt_planner *p, const gt_planner_candidate *c,
                          const char *const *more, size_t nmore) {
  const gt_planner_options *o = &p->options;
  const char **sets = GT_NEW_ARRAY(const char *, o->nsets + c->noverrides + nmore);
  size_t n = 0;
  for (size_t i = 0; i < o->nsets; i++) sets[n++] = o->sets[i];
  for (size_t i = 0; i < c->noverrides; i++) sets[n++] = c->overrides[i];
  for (size_t i = 0; i < nmore; i++) sets[n++] = more[i];
  gt_status status = gt_job_load_regions(out, o->job_path, sets, n, o->regions_csv);
  gt_free(sets);
  return status;
}

/* Chooses one topology for all sets of devices: it depends on links and messages only. */
static gt_status choose_topology(const gt_planner *p, gt_planner_candidate *c, const gt_job *job) {
  c->chosen = gt_topology_has(job->sync.topology, GT_SEARCHED);
  if (!c->chosen) return GT_OK;
  const gt_model_sizes sizes = {p->shape.parameters, p->shape.buffers, p->shape.tensors,
                                p->shape.ntensors};
  return gt_topology_choose(&c->topology, job, NULL, &sizes);
}

gt_status gt_planner_open_candidates(gt_planner *p) {
  for (size_t i = 0; i < p->ncandidates; i++) {
    gt_planner_candidate *c = &p->candidates[i];
    gt_job *job = NULL;
    GT_TRY(gt_planner_load(&job, p, c, NULL, 0));
    const gt_status status = choose_topology(p, c, job);
    c->strategy = job->sync.strategy;
    c->period =
        gt_job_key_used("sync.period", gt_strategy_names[c->strategy]) ? job->sync.period : 0;
    c->codec = job->sync.codec.name;
    const gt_job_factor *factor = factor_of(p->job, c);
    c->factor = factor ? factor->factor : 1;
    c->unproven = p->job->plan.ncodecs > 0 && c->codec != GT_CODEC_NONE && !factor;
    c->wan_bound = GT_NEW_ARRAY(bool, p->job->nregions);
    gt_job_close(job);
    GT_TRY(status);
  }
  return GT_OK;
}

const gt_planner_set *gt_planner_proposed(const gt_planner_candidate *c) {
  return c->whole ? &c->everything : &c->set;
}
