/* From a job to the problem of its search, with measured devices of its profile; from a pipeline to
   settings of the job. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/job_fleet.h"
#include "of_job.h"
#include "search.h"

#define MASTER_COPIES 2.0 /* parameters and gradients */

/* ---- measured devices ------------------------------------------------------------------------ */

/* Returns the device of a worker, which probe names by its region and number. */
static const gt_job_fleet_device *device_of(const gt_job_fleet *fleet, const char *region,
                                            size_t worker) {
  char name[128];
  snprintf(name, sizeof name, "%s.%zu", region, worker);
  for (size_t i = 0; i < fleet->n; i++)
    if (strcmp(fleet->devices[i].name, name) == 0) return &fleet->devices[i];
  return NULL;
}

static gt_status use_devices(gt_pipe_job_search *s, const gt_job_fleet *fleet, size_t region) {
  const gt_job *job = s->job;
  gt_pipe_site *site = &s->sites[region];
  const bool limited = job->pipeline.memory_bytes > 0;
  for (size_t w = 0; w < site->workers; w++) {
    const gt_job_fleet_device *d = device_of(fleet, job->regions[region].name, w);
    if (!d)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: the fleet of %s has no device %s.%zu, and region %s has %zu workers; "
                     "expected a device for each, as `geotrain probe --fleet` measures them",
                     job->name, job->fleet, job->regions[region].name, w, job->regions[region].name,
                     site->workers);
    s->power[region][w] = d->power;
    if (!limited && (s->memory_bytes == 0 || d->memory_bytes < s->memory_bytes))
      s->memory_bytes = floor(d->memory_bytes);
  }
  return GT_OK;
}

static gt_status use_times(gt_pipe_job_search *s, const gt_job_fleet *fleet) {
  bool same = fleet->noperations == s->problem.npieces;
  for (size_t k = 0; k < s->problem.npieces && same; k++) {
    const gt_job_fleet_operation *o = &fleet->operations[k];
    same = o->first == s->spans[k].first && o->last + 1 == s->spans[k].end;
    s->pieces[k].work.forward_s = o->forward_s;
    s->pieces[k].work.input_s = o->input_s;
    s->pieces[k].work.weight_s = o->weight_s;
  }
  if (same) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: the fleet of %s has times of %zu runs of operations, which are not those of "
                 "model %s (%zu runs); expected a fleet measured with this model",
                 s->job->name, s->job->fleet, fleet->noperations,
                 gt_model_names[s->job->model.name], s->problem.npieces);
}

/* Takes powers, memory and times from the fleet of the job's profile, if it has times of
   operations.  GT_ERR_JOB: the fleet lacks a device of a worker, or has other operations. */
static gt_status use_fleet(gt_pipe_job_search *search) {
  gt_job_fleet *fleet = NULL;
  gt_status status = gt_job_fleet_load(&fleet, search->job->fleet);
  search->by_fleet = status == GT_OK && fleet->noperations > 0;
  if (search->by_fleet) status = use_times(search, fleet);
  for (size_t r = 0; r < search->job->nregions && search->by_fleet && status == GT_OK; r++)
    status = use_devices(search, fleet, r);
  for (size_t r = 0; r < search->job->nregions && search->memory_bytes > 0; r++)
    search->sites[r].memory_bytes = search->memory_bytes;
  gt_job_fleet_close(fleet);
  return status;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Finds the operations of each piece; returns the work of the model. */
static double find_spans(gt_pipe_job_search *s) {
  const size_t n = gt_graph_operations(s->graph);
  double work = 0;
  size_t pieces = 0;
  s->spans = GT_NEW_ARRAY(gt_span, n);
  for (size_t i = 0, first = 0; i < n; i++) {
    const gt_operation o = gt_graph_operation(s->graph, i);
    work += gt_pipe_work_of(&o);
    if (!o.ends && i + 1 < n) continue;
    s->spans[pieces++] = (gt_span){first, i + 1};
    first = i + 1;
  }
  s->problem.npieces = pieces;
  return work;
}

static size_t piece_with(const gt_pipe_job_search *s, size_t operation) {
  size_t k = 0;
  while (operation >= s->spans[k].end) k++;
  return k;
}

/* Adds an operation, whose times are shares of a step of a sample. */
static void add_operation(gt_pipe_job_search *s, size_t piece, size_t i, double work) {
  const gt_operation o = gt_graph_operation(s->graph, i);
  gt_pipe_piece *p = &s->pieces[piece];
  p->work.forward_s += o.forward / work;
  p->work.input_s += o.backward_input / work;
  p->work.weight_s += o.backward_weight / work;
  p->work.parameter_bytes += (double)(sizeof(float) * o.params);
  p->samples |= o.samples;
  p->alone |= o.buffers > 0;
  if (o.borrows >= gt_graph_operations(s->graph)) return;
  const size_t params = gt_graph_operation(s->graph, o.borrows).params;
  p->owner = piece_with(s, o.borrows);
  p->tied_bytes += MASTER_COPIES * (double)(sizeof(float) * params);
}

static void find_pieces(gt_pipe_job_search *s) {
  const double work = find_spans(s);
  s->pieces = GT_NEW_ARRAY(gt_pipe_piece, s->problem.npieces);
  for (size_t k = 0; k < s->problem.npieces; k++) {
    const gt_span *span = &s->spans[k];
    s->pieces[k].owner = SIZE_MAX;
    if (k > 0)
      s->pieces[k].work.cut_bytes =
          (double)gt_graph_operation(s->graph, span->first - 1).output_bytes;
    for (size_t i = span->first; i < span->end; i++) add_operation(s, k, i, work);
  }
  s->problem.pieces = s->pieces;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Opens a graph of all pieces separately, for micro-batches of n samples. */
static gt_status open_apart(gt_graph **out, const gt_pipe_job_search *s, const gt_graph_spec *model,
                            size_t n) {
  gt_graph_spec spec = *model;
  bool *runs = GT_NEW_ARRAY(bool, s->problem.npieces);
  for (size_t k = 0; k < s->problem.npieces; k++) runs[k] = true;
  spec.sizes_only = true;
  spec.batch_max = n;
  spec.batch = 0;
  spec.slots = 1;
  spec.spans = s->spans;
  spec.runs = runs;
  spec.nspans = s->problem.npieces;
  spec.fused = false;
  spec.micro_batches = 1;
  const gt_status status = gt_graph_create(out, &spec);
  gt_free(runs);
  return status;
}

/* Computes the memory of a sample as that of two samples minus that of one.  The common part is
   small, or belongs to the whole model. */
static gt_status find_memory(gt_pipe_job_search *s, const gt_graph_spec *model) {
  gt_graph *one = NULL, *two = NULL;
  gt_status status = open_apart(&one, s, model, 1);
  if (status == GT_OK) status = open_apart(&two, s, model, 2);
  for (size_t k = 0; k < s->problem.npieces && status == GT_OK; k++)
    s->pieces[k].work.activation_bytes =
        (double)gt_graph_span_bytes(two, k) - (double)gt_graph_span_bytes(one, k);
  if (status == GT_OK)
    s->problem.scratch_bytes =
        fmax(0, (double)gt_graph_memory(two).shared - (double)gt_graph_memory(one).shared);
  gt_graph_close(two);
  gt_graph_close(one);
  return status;
}

/* ---- regions --------------------------------------------------------------------------------- */

static gt_status find_site(gt_pipe_job_search *s, size_t r) {
  const gt_job *job = s->job;
  const gt_job_compute c = gt_job_compute_of(job, r);
  const double step_s = gt_pipe_step_sample_s(job, &c);
  const size_t workers = gt_job_workers(job, r);
  if (workers == 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.stages is auto and regions.%zu.ranks %s; expected 2 ranks or "
                   "more, one of them the parameter server",
                   job->name, r, job->regions[r].ranks == 0 ? "is auto" : "1");
  if (step_s <= 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: pipeline.stages is auto and compute.step is not given for region %s; "
        "expected it, as in --set 'compute.step=10 ms', or a profile of `geotrain probe`",
        job->name, job->regions[r].name);
  double *power = s->power[r] = GT_NEW_ARRAY(double, workers);
  for (size_t w = 0; w < workers; w++) power[w] = gt_job_worker_speed(job, r, &c, w) / step_s;
  s->sites[r] = (gt_pipe_site){
      .workers = workers,
      .power = power,
      .memory_bytes = job->pipeline.memory_bytes > 0 ? job->pipeline.memory_bytes : INFINITY,
      .local_s = c.local_s,
      .update_s = c.update_s,
      .fixed_s = c.pass_s,
      .starts = gt_job_reads(job, r)};
  return GT_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

static gt_status find_all(gt_pipe_job_search *s, const gt_graph_spec *model) {
  const gt_job *job = s->job;
  gt_graph_spec spec = *model;
  spec.sizes_only = true;
  spec.batch_max = 0;
  s->problem = (gt_pipe_search_problem){.sites = s->sites,
                                        .nsites = job->nregions,
                                        .wan = &s->wan.wan,
                                        .batch = (size_t)job->train.batch,
                                        .micro_batches = (size_t)job->pipeline.micro_batches,
                                        .kind = job->pipeline.schedule,
                                        .labels_stay = job->pipeline.labels == GT_LABELS_KEEP,
                                        .copies = MASTER_COPIES,
                                        .seed = job->seed};
  GT_TRY(gt_graph_create(&s->graph, &spec));
  find_pieces(s);
  for (size_t r = 0; r < job->nregions; r++) GT_TRY(find_site(s, r));
  if (job->fleet) GT_TRY(use_fleet(s));
  if (job->pipeline.memory_bytes > 0 || s->memory_bytes > 0) GT_TRY(find_memory(s, model));
  return gt_pipe_job_wan_open(&s->wan, job);
}

gt_status gt_pipe_job_search_open(gt_pipe_job_search **out, const gt_job *job,
                                  const gt_graph_spec *model) {
  gt_pipe_job_search *s = GT_NEW(gt_pipe_job_search);
  *s = (gt_pipe_job_search){.job = job,
                            .sites = GT_NEW_ARRAY(gt_pipe_site, job->nregions),
                            .power = GT_NEW_ARRAY(double *, job->nregions)};
  const gt_status status = find_all(s, model);
  *out = status == GT_OK ? s : NULL;
  if (status != GT_OK) gt_pipe_job_search_close(s);
  return status;
}

void gt_pipe_job_search_close(gt_pipe_job_search *search) {
  if (!search) return;
  for (size_t r = 0; r < search->job->nregions; r++) gt_free(search->power[r]);
  void *owned[] = {search->power, search->sites, search->pieces, search->spans};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) gt_free(owned[i]);
  gt_pipe_job_wan_close(&search->wan);
  gt_graph_close(search->graph);
  gt_free(search);
}

/* ---- settings of the job --------------------------------------------------------------------- */

static bool begins(const char *name, const char *with, size_t n) {
  return strncmp(name, with, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

/* True for the last operation whose name begins with these letters. */
static bool is_last(const gt_graph *graph, size_t operation, const char *name, size_t n) {
  for (size_t i = operation + 1; i < gt_graph_operations(graph); i++)
    if (begins(gt_graph_operation(graph, i).name, name, n)) return false;
  return true;
}

/* Returns the number of letters that identify the name: three words or more. */
static size_t enough(const gt_graph *graph, size_t operation, const char *name) {
  size_t words = 1;
  for (size_t n = 0; name[n]; n++)
    if (name[n] == '.' && ++words > 3 && is_last(graph, operation, name, n)) return n;
  return strlen(name);
}

static void write_name(FILE *to, const gt_pipe_job_search *s, size_t end) {
  const size_t operation = s->spans[end - 1].end - 1;
  const char *name = gt_graph_operation(s->graph, operation).name;
  fprintf(to, "%.*s", (int)enough(s->graph, operation, name), name);
}

/* Writes a stage; the part that ends the model has no name. */
static void write_stage(FILE *to, const gt_pipe_job_search *s, const gt_pipe_found *f, size_t i) {
  const gt_pipe_place *place = &f->places[i];
  fprintf(to, "{region: %s, workers: %zu", s->job->regions[place->region].name, place->workers);
  for (size_t c = 0; c < f->chunks; c++) {
    const size_t end = f->ends[gt_pipe_span_of(f->stages, c, i)];
    if (end == s->problem.npieces) continue;
    fputs(c == 0 ? ", last: [" : ", ", to);
    write_name(to, s, end);
  }
  fputs(f->ends[i] == s->problem.npieces ? "}" : "]}", to);
}

static char *stages_text(const gt_pipe_job_search *s, const gt_pipe_found *f) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (!to) gt_bug("no memory for the text of a pipeline");
  fprintf(to, "pipeline.stages=[");
  for (size_t i = 0; i < f->stages; i++) {
    fputs(i > 0 ? ", " : "", to);
    write_stage(to, s, f, i);
  }
  fprintf(to, "]");
  fclose(to);
  char *copy = gt_strdup(text);
  free(text);
  return copy;
}

size_t gt_pipe_job_search_sets(const gt_pipe_job_search *search, const gt_pipe_found *found,
                               char *sets[GT_PIPE_SETS]) {
  char micro_batches[64], schedule[64], memory[64];
  size_t n = 0;
  snprintf(micro_batches, sizeof micro_batches, "pipeline.micro_batches=%zu", found->micro_batches);
  snprintf(schedule, sizeof schedule, "pipeline.schedule=%s", gt_pipe_names[search->problem.kind]);
  snprintf(memory, sizeof memory, "pipeline.memory=%.0f B", search->memory_bytes);
  sets[n++] = stages_text(search, found);
  sets[n++] = gt_strdup(micro_batches);
  sets[n++] = gt_strdup(schedule);
  if (search->memory_bytes > 0) sets[n++] = gt_strdup(memory);
  return n;
}
