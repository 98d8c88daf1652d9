/* Values of a pipeline in a search: a bound of its period, and the period in simulated time. */
#include <math.h>
#include <string.h>

#include "search.h"

/* ---- pipelines ------------------------------------------------------------------------------- */

gt_pipe_found gt_pipe_found_copy(const gt_pipe_found *found) {
  gt_pipe_found copy = *found;
  copy.places = GT_NEW_ARRAY(gt_pipe_place, found->stages);
  copy.ends = GT_NEW_ARRAY(size_t, found->stages * found->chunks);
  memcpy(copy.places, found->places, found->stages * sizeof *copy.places);
  memcpy(copy.ends, found->ends, found->stages * found->chunks * sizeof *copy.ends);
  return copy;
}

void gt_pipe_found_close(gt_pipe_found *found) {
  gt_free(found->places);
  gt_free(found->ends);
  *found = (gt_pipe_found){0};
}

bool gt_pipe_found_same(const gt_pipe_found *a, const gt_pipe_found *b) {
  if (a->stages != b->stages || a->chunks != b->chunks || a->micro_batches != b->micro_batches)
    return false;
  for (size_t s = 0; s < a->stages; s++)
    if (a->places[s].region != b->places[s].region || a->places[s].workers != b->places[s].workers)
      return false;
  return memcmp(a->ends, b->ends, a->stages * a->chunks * sizeof *a->ends) == 0;
}

static size_t begin_of(const gt_pipe_found *f, size_t span) {
  return span == 0 ? 0 : f->ends[span - 1];
}

static size_t site_of(const gt_pipe_found *f, size_t span) {
  return f->places[gt_pipe_stage_of(f->stages, span)].region;
}

static size_t span_with(const gt_pipe_found *f, size_t piece) {
  size_t k = 0;
  while (piece >= f->ends[k]) k++;
  return k;
}

static bool piece_allowed(const gt_pipe_search_problem *p, const gt_pipe_found *f, size_t span,
                          size_t piece) {
  const gt_pipe_piece *it = &p->pieces[piece];
  const size_t stage = gt_pipe_stage_of(f->stages, span);
  if ((it->samples && span > 0) || (it->alone && f->places[stage].workers > 1)) return false;
  return it->owner >= p->npieces || site_of(f, span_with(f, it->owner)) == site_of(f, span);
}

bool gt_pipe_found_allowed(const gt_pipe_search_problem *problem, const gt_pipe_found *found) {
  const size_t n = found->stages * found->chunks;
  if (problem->batch % found->micro_batches != 0) return false;
  for (size_t s = 0; s < found->stages; s++)
    if (found->places[s].workers < 1 ||
        problem->batch / found->micro_batches % found->places[s].workers != 0)
      return false;
  for (size_t k = 0; k < n; k++) {
    if (found->ends[k] <= begin_of(found, k)) return false;
    for (size_t i = begin_of(found, k); i < found->ends[k]; i++)
      if (!piece_allowed(problem, found, k, i)) return false;
  }
  return !problem->labels_stay || site_of(found, n - 1) == site_of(found, 0);
}

double gt_pipe_found_passes(const gt_pipe_found *found) {
  return 3.0 * (double)(found->stages * found->chunks * found->micro_batches) *
         (double)(1 + GT_PIPE_STEADY);
}

/* ---- its problem ----------------------------------------------------------------------------- */

/* The problem of its schedule, and its storage. */
typedef struct {
  gt_pipe_problem problem;
  gt_pipe_wan wan;
  gt_pipe_span *spans;
  gt_pipe_hop *hops;
  size_t *regions;
  double *slots, *update_s, *agree_s;
} posed;

static void close_posed(posed *q) {
  gt_free(q->spans);
  gt_free(q->hops);
  gt_free(q->regions);
  gt_free(q->slots);
  gt_free(q->update_s);
  gt_free(q->agree_s);
}

/* Returns the samples of a micro-batch; those per worker of each stage are whole numbers. */
static double micro_samples(const gt_pipe_search_problem *p, const gt_pipe_found *f) {
  const size_t n = p->batch / f->micro_batches;
  return (double)n;
}

static double share_of(const gt_pipe_search_problem *p, const gt_pipe_found *f, size_t stage) {
  return micro_samples(p, f) / (double)f->places[stage].workers;
}

/* Returns the seconds of a micro-batch per second of a sample on a worker of power 1. */
static double unit_of(const gt_pipe_search_problem *p, const gt_pipe_found *f, size_t stage) {
  const gt_pipe_place *place = &f->places[stage];
  double power = INFINITY;
  for (size_t w = 0; w < place->workers; w++)
    power = fmin(power, p->sites[place->region].power[place->first_worker + w]);
  return share_of(p, f, stage) / power;
}

static void pose_span(posed *q, const gt_pipe_search_problem *p, const gt_pipe_found *f, size_t k) {
  const size_t stage = gt_pipe_stage_of(f->stages, k);
  const double unit = unit_of(p, f, stage);
  gt_pipe_span *s = &q->spans[k];
  s->forward_s = s->backward_s = s->weight_s = p->sites[f->places[stage].region].fixed_s;
  for (size_t i = begin_of(f, k); i < f->ends[k]; i++) {
    const gt_pipe_operation *o = &p->pieces[i].work;
    s->forward_s += unit * o->forward_s;
    s->backward_s += unit * o->input_s;
    s->weight_s += unit * o->weight_s;
  }
  s->activation = s->weight_share = 1;
  if (f->ends[k] < p->npieces)
    s->output_bytes = micro_samples(p, f) * p->pieces[f->ends[k]].work.cut_bytes;
}

static double parameters_of(const gt_pipe_search_problem *p, size_t from, size_t to) {
  double bytes = 0;
  for (size_t i = from; i < to; i++) bytes += p->pieces[i].work.parameter_bytes;
  return bytes;
}

static double tied_bytes(const gt_pipe_search_problem *p, const gt_pipe_found *f, size_t span) {
  double bytes = 0;
  for (size_t i = begin_of(f, span); i < f->ends[span]; i++) {
    const size_t owner = p->pieces[i].owner;
    if (owner < p->npieces &&
        gt_pipe_stage_of(f->stages, span_with(f, owner)) != gt_pipe_stage_of(f->stages, span))
      bytes += p->pieces[i].tied_bytes;
  }
  return bytes;
}

/* Writes the slots of a stage, and its update. false: memory for less than one micro-batch. */
static bool pose_stage(posed *q, const gt_pipe_search_problem *p, const gt_pipe_found *f,
                       size_t stage) {
  const gt_pipe_site *site = &p->sites[f->places[stage].region];
  const double share = share_of(p, f, stage), most = (double)(f->chunks * f->micro_batches);
  double parameters = 0, held = 0, tied = 0;
  for (size_t c = 0; c < f->chunks; c++) {
    const size_t k = gt_pipe_span_of(f->stages, c, stage);
    parameters += parameters_of(p, begin_of(f, k), f->ends[k]);
    tied += tied_bytes(p, f, k);
    for (size_t i = begin_of(f, k); i < f->ends[k]; i++)
      held += p->pieces[i].work.activation_bytes + p->pieces[i].work.kept_bytes;
  }
  q->regions[stage] = f->places[stage].region;
  q->slots[stage] = most;
  if (site->memory_bytes == INFINITY) return true;
  const double room = site->memory_bytes - p->copies * parameters - tied - share * p->scratch_bytes;
  if (room < share * held * (double)f->chunks) return false;
  if (share * held * most > room) q->slots[stage] = floor(room / (share * held));
  return true;
}

/* Sets the updates: a PS updates all parameters of its region at once. */
static void pose_updates(posed *q, const gt_pipe_search_problem *p, const gt_pipe_found *f) {
  const double all = parameters_of(p, 0, p->npieces);
  for (size_t stage = 0; stage < f->stages; stage++) {
    const size_t region = f->places[stage].region;
    const gt_pipe_site *site = &p->sites[region];
    double own = 0;
    for (size_t k = 0; k < f->stages * f->chunks; k++)
      if (f->places[gt_pipe_stage_of(f->stages, k)].region == region)
        own += parameters_of(p, begin_of(f, k), f->ends[k]);
    q->update_s[stage] = site->local_s + (all > 0 ? site->update_s * own / all : 0);
  }
}

/* Sets the announcements between regions that a gradient is complete (gt_pipe_problem).  Omits the
   squares for train.clip, which depend on the owners of the tensors. */
static void pose_agreement(posed *q) {
  const size_t n = q->wan.nregions;
  for (size_t i = 0; i < n * n; i++) {
    const gt_link_spec *link = &q->wan.links[i];
    const double rate = gt_link_goodput(link);
    if (i / n == i % n) continue;
    q->agree_s[i] = link->latency_s + (rate > 0 ? 8.0 * GT_FRAME_HEADER_BYTES / rate : 0);
  }
}

static bool pose(posed *q, const gt_pipe_search_problem *p, const gt_pipe_found *f) {
  const size_t n = f->stages * f->chunks;
  bool fits = true;
  *q = (posed){.wan = *p->wan,
               .spans = GT_NEW_ARRAY(gt_pipe_span, n),
               .hops = GT_NEW_ARRAY(gt_pipe_hop, f->stages),
               .regions = GT_NEW_ARRAY(size_t, f->stages),
               .slots = GT_NEW_ARRAY(double, f->stages),
               .update_s = GT_NEW_ARRAY(double, f->stages),
               .agree_s = GT_NEW_ARRAY(double, p->wan->nregions * p->wan->nregions)};
  pose_agreement(q);
  for (size_t k = 0; k < n; k++) pose_span(q, p, f, k);
  for (size_t s = 0; s < f->stages; s++) fits = pose_stage(q, p, f, s) && fits;
  pose_updates(q, p, f);
  q->wan.region = q->regions;
  q->problem = (gt_pipe_problem){.stages = f->stages,
                                 .chunks = f->chunks,
                                 .micro_batches = f->micro_batches,
                                 .spans = q->spans,
                                 .ahead = q->hops,
                                 .back = q->hops,
                                 .wan = &q->wan,
                                 .memory = q->slots,
                                 .update_s = q->update_s,
                                 .agree_s = q->agree_s};
  return fits;
}

double gt_pipe_wan_occupied_s(const gt_pipe_wan *wan, size_t from, size_t to, double bytes) {
  const double rates[] = {gt_link_goodput(&wan->links[from * wan->nregions + to]),
                          wan->up_bps ? wan->up_bps[from] : 0,
                          wan->down_bps ? wan->down_bps[to] : 0};
  double least = INFINITY;
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
    if (rates[i] > 0) least = fmin(least, rates[i]);
  return from == to ? 0 : 8 * bytes / least;
}

double gt_pipe_wan_transfer_s(const gt_pipe_wan *wan, size_t from, size_t to, double bytes) {
  if (from == to) return 0;
  return wan->links[from * wan->nregions + to].latency_s +
         gt_pipe_wan_occupied_s(wan, from, to, bytes);
}

/* ---- the bound ------------------------------------------------------------------------------- */

static double there_s(const posed *q, size_t span, bool ahead) {
  const size_t p = q->problem.stages, a = q->regions[gt_pipe_stage_of(p, span)],
               b = q->regions[gt_pipe_stage_of(p, span + 1)];
  return gt_pipe_wan_transfer_s(&q->wan, ahead ? a : b, ahead ? b : a, q->spans[span].output_bytes);
}

/* Returns the bound by a stage: it makes all its passes, and its slots hold every micro-batch for
   some time. */
static double bound_of_stage(const posed *q, const double *held_s, size_t s) {
  const gt_pipe_problem *p = &q->problem;
  double work = 0, held = 0;
  for (size_t c = 0; c < p->chunks; c++) {
    const size_t k = gt_pipe_span_of(p->stages, c, s);
    work += p->spans[k].forward_s + p->spans[k].backward_s + p->spans[k].weight_s;
    held += held_s[k];
  }
  return (double)p->micro_batches * fmax(work, held / q->slots[s]) + p->update_s[s];
}

/* Returns the bound by the first stage, which waits for the last gradient: one micro-batch passes
   all spans, and one of these works for all others before or after it. */
static double bound_of_passes(const posed *q) {
  const gt_pipe_problem *p = &q->problem;
  const size_t n = p->stages * p->chunks;
  double pass = 0, to = 0, bound = 0;
  const double more = (double)(p->micro_batches - 1);
  for (size_t k = 0; k < n; k++) {
    pass += p->spans[k].forward_s + p->spans[k].backward_s;
    if (k + 1 < n) pass += there_s(q, k, true) + there_s(q, k, false);
  }
  for (size_t k = 0; k < n; k++) {
    const gt_pipe_span *s = &p->spans[k];
    bound = fmax(bound, pass + more * fmax(s->forward_s, s->backward_s));
    bound = fmax(bound, to + (more + 1) * (s->forward_s + s->backward_s));
    to += s->forward_s + s->backward_s;
    if (k + 1 < n) to += there_s(q, k, true) + there_s(q, k, false);
  }
  return bound + p->spans[0].weight_s + p->update_s[0];
}

/* Returns the bound by links: all messages of a step in a direction occupy its link. */
static double bound_of_links(const posed *q) {
  const gt_pipe_problem *p = &q->problem;
  const size_t sites = q->wan.nregions;
  double *busy = GT_NEW_ARRAY(double, sites *sites), bound = 0;
  for (size_t k = 0; k + 1 < p->stages * p->chunks; k++) {
    const size_t a = q->regions[gt_pipe_stage_of(p->stages, k)],
                 b = q->regions[gt_pipe_stage_of(p->stages, k + 1)];
    busy[a * sites + b] += gt_pipe_wan_occupied_s(&q->wan, a, b, p->spans[k].output_bytes);
    busy[b * sites + a] += gt_pipe_wan_occupied_s(&q->wan, b, a, p->spans[k].output_bytes);
  }
  for (size_t i = 0; i < sites * sites; i++)
    bound = fmax(bound, (double)p->micro_batches * busy[i]);
  gt_free(busy);
  return bound;
}

bool gt_pipe_found_bound(const gt_pipe_search_problem *problem, gt_pipe_found *found) {
  posed q;
  const bool fits = pose(&q, problem, found);
  const size_t n = found->stages * found->chunks;
  double *held_s = GT_NEW_ARRAY(double, n), behind = 0;
  for (size_t k = n; k-- > 0;) {
    const gt_pipe_span *s = &q.spans[k];
    behind += s->forward_s + s->backward_s;
    if (k + 1 < n) behind += there_s(&q, k, true) + there_s(&q, k, false);
    held_s[k] = behind + s->weight_s;
  }
  if (fits) found->bound_s = fmax(bound_of_passes(&q), bound_of_links(&q));
  for (size_t s = 0; fits && s < found->stages; s++)
    found->bound_s = fmax(found->bound_s, bound_of_stage(&q, held_s, s));
  gt_free(held_s);
  close_posed(&q);
  return fits;
}

/* ---- the period ------------------------------------------------------------------------------ */

double gt_pipe_search_period(const gt_pipe_search_problem *problem, const gt_pipe_found *found,
                             size_t variants) {
  const gt_pipe_search search = {
      .aim = GT_PIPE_PERIOD, .variants = variants, .seed = problem->seed};
  posed q;
  gt_pipe_schedule *schedule = NULL;
  gt_pipe_result result = {0};
  double period_s = INFINITY;
  gt_progress_tell("pipelines of %zu stages are tried", found->stages);
  if (pose(&q, problem, found) &&
      gt_pipe_make(&schedule, problem->kind, &q.problem, &search) == GT_OK &&
      gt_pipe_evaluate(&result, schedule, &q.problem, GT_PIPE_STEADY) == GT_OK)
    period_s = gt_seconds(result.period);
  gt_pipe_result_close(&result);
  gt_pipe_schedule_close(schedule);
  close_posed(&q);
  return period_s;
}
