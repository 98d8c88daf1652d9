/* How long the passes of a job's pipeline take, and the problem that its schedule solves. */
#include <string.h>

#include "of_job.h"

enum { F, B, W, KINDS };

/* ---- passes ---------------------------------------------------------------------------------- */

/* Seconds of a training step of the whole model, a sample; 0: compute does not say. */
static double step_sample_s(const gt_job *job, const gt_job_compute *c) {
  if (c->step_s > 0) return c->step_s / job->train.batch;
  return c->samples_per_s > 0 ? 1 / c->samples_per_s : 0;
}

static void add_work(const gt_pipe_job *p, const gt_span *span, double work[KINDS]) {
  for (size_t i = span->first; i < span->end; i++) {
    const gt_operation op = gt_graph_operation(p->graph, i);
    work[F] += op.forward;
    work[B] += op.backward_input;
    work[W] += op.backward_weight;
  }
}

static void find_times(gt_pipe_job *p) {
  const size_t n = gt_pipe_job_nspans(p);
  const gt_span whole = {0, gt_graph_operations(p->graph)};
  double all[KINDS] = {0};
  add_work(p, &whole, all);
  p->timed = true;
  p->sample_s = GT_NEW_ARRAY(double, KINDS *n);
  for (size_t k = 0; k < n; k++) {
    const gt_job_compute c = gt_job_compute_of(p->job, gt_pipe_job_place(p, k)->region);
    const double step_s = step_sample_s(p->job, &c);
    double work[KINDS] = {0};
    add_work(p, &p->spans[k], work);
    p->timed &= step_s > 0;
    for (size_t kind = 0; kind < KINDS; kind++)
      p->sample_s[KINDS * k + kind] = step_s * work[kind] / (all[F] + all[B] + all[W]);
  }
  if (!p->timed) memset(p->sample_s, 0, KINDS * n * sizeof *p->sample_s);
}

/* Seconds of a pass, which is not BW: a part that is always the same, and that of the samples. */
static double pass_s(const gt_pipe_job *p, size_t span, size_t kind, size_t samples,
                     size_t worker) {
  const gt_pipe_place *at = gt_pipe_job_place(p, span);
  const gt_job_compute c = gt_job_compute_of(p->job, at->region);
  if (!p->timed) return 0;
  return c.pass_s + (double)samples * p->sample_s[KINDS * span + kind] /
                        gt_job_worker_speed(p->job, at->region, &c, at->first_worker + worker);
}

gt_ns gt_pipe_job_time(const gt_pipe_job *pipe, size_t span, gt_pass_kind kind, size_t samples,
                       size_t worker) {
  static const size_t of[] = {[GT_PASS_F] = F, [GT_PASS_B] = B, [GT_PASS_W] = W};
  if (kind != GT_PASS_BW) return gt_from_seconds(pass_s(pipe, span, of[kind], samples, worker));
  return gt_from_seconds(pass_s(pipe, span, B, samples, worker)) +
         gt_from_seconds(pass_s(pipe, span, W, samples, worker));
}

/* Seconds of a pass of a micro-batch on the slowest worker of the span's stage. */
static double slowest_s(const gt_pipe_job *p, size_t span, size_t kind) {
  const size_t workers = gt_pipe_job_place(p, span)->workers;
  double most = 0;
  for (size_t w = 0; w < workers; w++) {
    const double s = pass_s(p, span, kind, p->layout.micro_samples / workers, w);
    if (s > most) most = s;
  }
  return most;
}

/* ---- updates --------------------------------------------------------------------------------- */

static size_t params_of(const gt_pipe_job *p, size_t first, size_t end) {
  size_t params = 0;
  for (size_t i = first; i < end; i++) params += gt_graph_operation(p->graph, i).params;
  return params;
}

double gt_pipe_job_update_share(const gt_pipe_job *p, size_t region) {
  const gt_pipe_layout *l = &p->layout;
  const size_t all = params_of(p, 0, gt_graph_operations(p->graph));
  size_t own = 0;
  for (size_t stage = 0; stage < l->stages; stage++) {
    for (size_t chunk = 0; l->places[stage].region == region && chunk < l->chunks; chunk++) {
      const gt_span *span = &p->spans[gt_pipe_span_of(l->stages, chunk, stage)];
      own += params_of(p, span->first, span->end);
    }
  }
  return all > 0 ? (double)own / (double)all : 0;
}

static double update_s(const gt_pipe_job *p, size_t stage) {
  const size_t region = p->layout.places[stage].region;
  const gt_job_compute c = gt_job_compute_of(p->job, region);
  return c.local_s + c.update_s * gt_pipe_job_update_share(p, region);
}

/* ---- steps over regions ---------------------------------------------------------------------- */

/* What a region tells of its gradient: that it is there, and with train.clip before it the squares
   of its tensors. */
static size_t told_bytes(const gt_pipe_job *p, size_t region) {
  size_t tensors = 0;
  for (size_t i = 0; i < p->nowners; i++) tensors += p->owners[i] == region;
  if (!(p->job->train.clip > 0)) tensors = 0;
  const size_t messages = 1 + (tensors + GT_CONTROL_NUMBERS - 1) / GT_CONTROL_NUMBERS;
  return messages * GT_FRAME_HEADER_BYTES + tensors * sizeof(double);
}

/* Over a link where nothing else is under way. */
static void find_agreement(gt_pipe_job *p) {
  const size_t n = p->layout.nregions;
  p->agree_s = GT_NEW_ARRAY(double, n *n);
  for (size_t i = 0; i < n * n; i++) {
    const gt_link_spec *link = &p->link_specs[i];
    const double rate = gt_link_goodput(link);
    if (i / n == i % n) continue;
    p->agree_s[i] = link->latency_s + (rate > 0 ? 8.0 * (double)told_bytes(p, i / n) / rate : 0);
  }
}

/* ---- the problem ----------------------------------------------------------------------------- */

static gt_status open_wan(gt_pipe_job *p) {
  const gt_job *job = p->job;
  const size_t n = job->nregions;
  p->regions = GT_NEW_ARRAY(size_t, p->layout.stages);
  p->access_bps = GT_NEW_ARRAY(double, n);
  p->link_specs = GT_NEW_ARRAY(gt_link_spec, n * n);
  for (size_t s = 0; s < p->layout.stages; s++) p->regions[s] = p->layout.places[s].region;
  for (size_t r = 0; r < n; r++) p->access_bps[r] = job->regions[r].access_bps;
  GT_TRY(gt_links_create(&p->links, job));
  for (size_t r = 0; r < n; r++)
    memcpy(&p->link_specs[r * n], gt_links_from(p->links, r), n * sizeof *p->link_specs);
  p->wan = (gt_pipe_wan){.nregions = n,
                         .region = p->regions,
                         .links = p->link_specs,
                         .up_bps = p->access_bps,
                         .down_bps = p->access_bps,
                         .seed = job->seed};
  return GT_OK;
}

gt_status gt_pipe_job_find_problem(gt_pipe_job *p) {
  const gt_pipe_layout *l = &p->layout;
  const size_t n = gt_pipe_job_nspans(p);
  find_times(p);
  GT_TRY(open_wan(p));
  p->problem_spans = GT_NEW_ARRAY(gt_pipe_span, n);
  p->hops = GT_NEW_ARRAY(gt_pipe_hop, l->stages);
  p->update_s = GT_NEW_ARRAY(double, l->stages);
  for (size_t k = 0; k < n; k++)
    p->problem_spans[k] =
        (gt_pipe_span){.forward_s = slowest_s(p, k, F),
                       .backward_s = slowest_s(p, k, B),
                       .weight_s = slowest_s(p, k, W),
                       .activation = 1,
                       .weight_share = 1,
                       .output_bytes = (double)(l->micro_samples * l->output_bytes[k]),
                       .label_bytes = (double)(l->micro_samples * l->label_bytes)};
  find_agreement(p);
  for (size_t s = 0; s < l->stages; s++) p->update_s[s] = p->timed ? update_s(p, s) : 0;
  p->problem = (gt_pipe_problem){.stages = l->stages,
                                 .chunks = l->chunks,
                                 .micros = l->micros,
                                 .spans = p->problem_spans,
                                 .ahead = p->hops,
                                 .back = p->hops,
                                 .wan = &p->wan,
                                 .memory = p->slots_most,
                                 .update_s = p->update_s,
                                 .agree_s = p->agree_s};
  return GT_OK;
}
