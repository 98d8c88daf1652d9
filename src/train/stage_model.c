/* The final model of a pipeline.  Regions send their parts in pieces; the lead writes each piece to
   the file as it comes, so that no rank holds the whole model.  Of several copies of the pipeline it
   is the mean: parts of further copies are held until they are whole and it is their turn, in region
   order, so that the mean does not depend on which came first. */
#include "ending.h"
#include "geotrain/ps_ending.h"
#include "stages.h"

#include <stdio.h>
#include <string.h>

struct gt_stage_model {
  const gt_server *server;
  gt_ckpt_parts *file; /* NULL: nothing has been written */
  size_t *taken;       /* of each region: floats that have come */
  float **held;        /* of each region: its part, if it waits for its turn */
  bool *averaged;      /* of each region: its part is in the file */
};

gt_stage_model *gt_stage_model_open(const gt_server *s) {
  gt_stage_model *m = GT_NEW(gt_stage_model);
  m->server = s;
  m->taken = GT_NEW_ARRAY(size_t, s->run->job->nregions);
  m->held = GT_NEW_ARRAY(float *, s->run->job->nregions);
  m->averaged = GT_NEW_ARRAY(bool, s->run->job->nregions);
  return m;
}

void gt_stage_model_close(gt_stage_model *m) {
  if (!m) return;
  gt_ckpt_parts_close(m->file);
  for (size_t r = 0; r < m->server->run->job->nregions; r++) gt_free(m->held[r]);
  gt_free(m->held);
  gt_free(m->averaged);
  gt_free(m->taken);
  gt_free(m);
}

static void must(gt_status status) {
  if (status != GT_OK)
    gt_panic(status, "%s; the last checkpoint is whole, and --resume makes the final model again",
             gt_error_text());
}

/* The thread that runs the region writes, so a disk that does not answer would hold it.  Its limit
   is half of what its workers and other regions wait for a silent server. */
static void begin_write(const gt_stage_model *m) {
  const gt_job *job = m->server->run->job;
  const double local = job->limits.local_s, wan = job->limits.wan_patience_s,
               least = local < wan ? local : wan;
  gt_watch_begin("the write of final.h5 to the run directory", least / 2, GT_ERR_CKPT);
}

static void end_write(gt_status status) {
  gt_watch_end();
  must(status);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Parameters and buffers no longer change, so they are sent from where they are.  A piece has
   floats of one of them. */
void gt_stage_model_send(gt_server *s, uint64_t cookie) {
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  const size_t all = a->params.n + a->buffers.n;
  size_t at = 0;
  do {
    size_t n;
    const gt_frame_header head = gt_ending_piece(a->params.n, all, at, &n);
    const float *from =
        at < a->params.n ? a->params.data + at : a->buffers.data + (at - a->params.n);
    at += n;
    gt_gateway_send(s->gateway, 0, &head, from, n * sizeof *from, at < all ? 0 : cookie,
                    gt_server_now(s));
  } while (at < all);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void open_file(gt_stage_model *m) {
  const gt_run *run = m->server->run;
  const gt_arrays *whole = gt_graph_arrays(run->model);
  if (m->file) return;
  begin_write(m);
  end_write(gt_ckpt_parts_open(&m->file, run->run_dir, whole->params.n, whole->buffers.n));
}

/* The floats [at, at + n) of a region's parameters or buffers, to where they are in the model; the
   mean of what is there moves towards them by `share` (1: they take its place). */
static void put(gt_stage_model *m, const gt_part_ranges *ranges, bool buffers, size_t at, size_t n,
                const float *data, double share) {
  for (size_t i = 0; i < ranges->n; i++) {
    const gt_part_range *r = &ranges->ranges[i];
    const size_t first = at > r->own ? at : r->own,
                 end = at + n < r->own + r->count ? at + n : r->own + r->count,
                 place = r->whole + (first - r->own);
    if (first >= end) continue;
    const float *from = data + (first - at);
    begin_write(m);
    end_write(share == 1
                  ? gt_ckpt_parts_put(m->file, buffers, place, from, end - first)
                  : gt_ckpt_parts_average(m->file, buffers, place, from, end - first, share));
  }
}

static size_t floats_of(const gt_region_part *part) {
  return part->params.floats + part->buffers.floats;
}

/* ---- several copies -------------------------------------------------------------------------- */

/* The weight of the region's part in the mean of it and of those before it; 0: they are not all in
   the file. */
static double share_of(const gt_stage_model *m, size_t region) {
  const gt_server *s = m->server;
  double sum = s->weights[region];
  for (size_t c = 0; c < gt_job_copies(s->run->job); c++) {
    const size_t twin = gt_job_twin(s->run->job, region, c);
    if (twin >= region) continue;
    if (!m->averaged[twin]) return 0;
    sum += s->weights[twin];
  }
  return s->weights[region] / sum;
}

/* Averages the parts whose turn it is. */
static void average(gt_stage_model *m) {
  const gt_run *run = m->server->run;
  for (size_t r = 0; r < run->job->nregions; r++) {
    const gt_region_part *part = &run->pipe->parts[r];
    const double share = m->held[r] && m->taken[r] == floats_of(part) ? share_of(m, r) : 0;
    if (share <= 0) continue;
    put(m, &part->params, false, 0, part->params.floats, m->held[r], share);
    put(m, &part->buffers, true, 0, part->buffers.floats, m->held[r] + part->params.floats, share);
    gt_free(m->held[r]);
    m->held[r] = NULL;
    m->averaged[r] = true;
  }
}

/* ---- pieces ---------------------------------------------------------------------------------- */

void gt_stage_model_own(gt_stage_model *m) {
  const gt_run *run = m->server->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  const gt_region_part *part = &run->pipe->parts[run->roles.region_id];
  open_file(m);
  put(m, &part->params, false, 0, a->params.n, a->params.data, 1);
  put(m, &part->buffers, true, 0, a->buffers.n, a->buffers.data, 1);
  m->averaged[run->roles.region_id] = true;
  average(m);
}

static void take_piece(gt_stage_model *m, size_t peer, size_t at, size_t n, const void *payload) {
  const gt_region_part *part = &m->server->run->pipe->parts[peer];
  const size_t params = part->params.floats;
  if (part->again) {
    if (!m->held[peer]) m->held[peer] = GT_NEW_ARRAY(float, floats_of(part));
    memcpy(m->held[peer] + at, payload, n * sizeof(float));
  } else if (at < params) {
    put(m, &part->params, false, at, n, payload, 1);
  } else {
    put(m, &part->buffers, true, at - params, n, payload, 1);
  }
}

bool gt_stage_model_take(gt_stage_model *m, size_t peer, const gt_frame_header *head,
                         const void *payload) {
  const gt_run *run = m->server->run;
  const gt_region_part *part = &run->pipe->parts[peer];
  const size_t all = floats_of(part), at = m->taken[peer];
  size_t n;
  const gt_frame_header due = gt_ending_piece(part->params.floats, all, at, &n);
  if (head->value != at || head->detail != due.detail || head->message_bytes != n * sizeof(float) ||
      (at == all && all > 0))
    gt_panic(
        GT_ERR_FAULT,
        "region %s sent %llu bytes of its model from float %llu on, and %zu floats from %zu on "
        "are needed",
        run->job->regions[peer].name, (unsigned long long)head->message_bytes,
        (unsigned long long)head->value, n, at);
  open_file(m);
  take_piece(m, peer, at, n, payload);
  m->taken[peer] += n;
  if (m->taken[peer] < all) return false;
  m->averaged[peer] = !part->again;
  average(m);
  return true;
}

void gt_stage_model_finish(gt_stage_model *m, const gt_region_result *of,
                           char params_sha256[GT_SHA256_HEX]) {
  gt_ckpt_info info;
  gt_state rest = {0};
  gt_server_describe(m->server, &info);
  info.step = of->steps;
  info.samples = of->samples;
  info.mean_of = 1;
  info.region[0] = '\0';
  gt_setup_save_data(m->server->run, &rest);
  begin_write(m);
  end_write(gt_ckpt_parts_finish(m->file, &info, &rest));
  gt_state_close(&rest);
  memcpy(params_sha256, info.params_sha256, GT_SHA256_HEX);
}
