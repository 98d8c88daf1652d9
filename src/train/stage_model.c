/* The final model of a pipeline.  Regions send their parts in pieces; the lead writes each piece to
   the file on arrival, so that no rank holds the whole model.  With several replicas of the
   pipeline the file holds their mean, with the bits of data parallelism (mean.c): parts of later
   replicas are held until all replicas of a part have arrived, and then added in region order. */
#include "ending.h"
#include "geotrain/ps_ending.h"
#include "stages.h"

#include <string.h>

#define AT_ONCE ((size_t)1 << 18) /* floats */

struct gt_stage_model {
  const gt_server *server;
  gt_ckpt_parts *file; /* NULL: nothing has been written */
  size_t *taken;       /* of each region: floats received */
  float **held;        /* of each region: its part, if an earlier region has the same stages */
  bool *whole;         /* of each region: its part is complete */
  float *piece;        /* of the whole model, on its way to other sites */
  size_t at;           /* floats of the whole model sent to them, or received from the lead */
  size_t bad;          /* the first region with a non-finite part; nregions: none */
};

gt_stage_model *gt_stage_model_open(const gt_server *s) {
  gt_stage_model *m = GT_NEW(gt_stage_model);
  m->server = s;
  m->bad = s->run->job->nregions;
  m->taken = GT_NEW_ARRAY(size_t, s->run->job->nregions);
  m->held = GT_NEW_ARRAY(float *, s->run->job->nregions);
  m->whole = GT_NEW_ARRAY(bool, s->run->job->nregions);
  return m;
}

void gt_stage_model_close(gt_stage_model *m) {
  if (!m) return;
  gt_ckpt_parts_close(m->file);
  for (size_t r = 0; r < m->server->run->job->nregions; r++) gt_free(m->held[r]);
  gt_free(m->held);
  gt_free(m->whole);
  gt_free(m->taken);
  gt_free(m->piece);
  gt_free(m);
}

/* Limits the write: the region's main thread writes, so a disk that does not answer would block it.
   The limit is half of the time that its workers and other regions wait for a silent server. */
static void begin_write(const gt_stage_model *m) {
  const gt_job *job = m->server->run->job;
  const double local = job->limits.local_s, wan = job->limits.wan_patience_s,
               least = local < wan ? local : wan;
  gt_watch_begin("the write of final.h5 to the run directory", least / 2, GT_ERR_CKPT);
}

static void end_write(const gt_stage_model *m, gt_status status) {
  gt_watch_end();
  gt_server_must_write(m->server, status);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Sends parameters and buffers from their place, because they no longer change.  A piece has floats
   of one of them. */
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
  end_write(m, gt_ckpt_parts_open(&m->file, run->run_dir, whole->params.n, whole->buffers.n));
}

/* Writes the floats [at, at + n) of a region's parameters or buffers to their position in the
   model. */
static void put(gt_stage_model *m, const gt_part_ranges *ranges, bool buffers, size_t at, size_t n,
                const float *data) {
  for (size_t i = 0; i < ranges->n; i++) {
    const gt_part_range *r = &ranges->ranges[i];
    const size_t first = at > r->own ? at : r->own,
                 end = at + n < r->own + r->count ? at + n : r->own + r->count,
                 place = r->whole + (first - r->own);
    if (first >= end) continue;
    begin_write(m);
    end_write(m, gt_ckpt_parts_put(m->file, buffers, place, data + (first - at), end - first));
  }
}

static void check_finite(gt_stage_model *m, size_t region, const float *data, size_t n) {
  if (region < m->bad && !gt_vec_finite(gt_vec_of((float *)(uintptr_t)data, n))) m->bad = region;
}

size_t gt_stage_model_bad(const gt_stage_model *m) {
  return m->bad;
}

static size_t floats_of(const gt_region_part *part) {
  return part->params.floats + part->buffers.floats;
}

/* ---- several replicas ------------------------------------------------------------------------ */

/* The parameters or the buffers of the region `first` and of those with the same stages. */
typedef struct {
  gt_stage_model *m;
  size_t first;
  bool buffers;
  float *here, *mean; /* AT_ONCE */
} group;

/* A piece: n floats from float `own` of the part on, which is float `at` of the model. */
typedef struct {
  size_t own, at, n;
} piece;

static bool is_replica(const gt_stage_model *m, size_t a, size_t b) {
  const gt_job *job = m->server->run->job;
  return gt_job_replica(job, a, gt_job_replica_of(job, b)) == b;
}

/* Returns another region's floats of the piece. */
static const float *held_of(const group *g, size_t region, const piece *p) {
  const gt_region_part *part = &g->m->server->run->pipe->parts[region];
  return g->m->held[region] + (g->buffers ? part->params.floats : 0) + p->own;
}

static bool differs(const group *g, const piece *p) {
  bool same = true;
  for (size_t r = g->first + 1; r < g->m->server->run->job->nregions; r++)
    if (is_replica(g->m, g->first, r))
      same = same && memcmp(g->here, held_of(g, r, p), p->n * sizeof(float)) == 0;
  return !same;
}

static bool average(const group *g, const piece *p) {
  const double *weights = g->m->server->weights;
  const gt_vec mean = gt_vec_of(g->mean, p->n);
  gt_vec_zero(mean);
  gt_vec_axpy(mean, (float)weights[g->first], gt_vec_of(g->here, p->n));
  for (size_t r = g->first + 1; r < g->m->server->run->job->nregions; r++)
    if (is_replica(g->m, g->first, r))
      gt_vec_axpy(mean, (float)weights[r], gt_vec_of((float *)(uintptr_t)held_of(g, r, p), p->n));
  begin_write(g->m);
  end_write(g->m, gt_ckpt_parts_put(g->m->file, g->buffers, p->at, g->mean, p->n));
  return false;
}

/* Reads the file back piece by piece until `each` is true; false: it never was. */
static bool go_through(const group *g, bool (*each)(const group *g, const piece *p)) {
  const gt_region_part *part = &g->m->server->run->pipe->parts[g->first];
  const gt_part_ranges *ranges = g->buffers ? &part->buffers : &part->params;
  for (size_t i = 0; i < ranges->n; i++) {
    const gt_part_range *r = &ranges->ranges[i];
    for (size_t done = 0; done < r->count;) {
      const size_t left = r->count - done;
      const piece p = {r->own + done, r->whole + done, left < AT_ONCE ? left : AT_ONCE};
      begin_write(g->m);
      end_write(g->m, gt_ckpt_parts_get(g->m->file, g->buffers, p.at, g->here, p.n));
      if (each(g, &p)) return true;
      done += p.n;
    }
  }
  return false;
}

/* Computes the mean of a group: the part of `first` is in the file, and those of its replicas are
   held.  Values that are equal in all replicas are kept unchanged. */
static void settle(gt_stage_model *m, size_t first) {
  group g = {.m = m, .first = first};
  g.here = GT_NEW_ARRAY(float, AT_ONCE);
  g.mean = GT_NEW_ARRAY(float, AT_ONCE);
  for (size_t buffers = 0; buffers < 2; buffers++) {
    g.buffers = buffers != 0;
    if (go_through(&g, differs)) go_through(&g, average);
  }
  for (size_t r = first + 1; r < m->server->run->job->nregions; r++) {
    if (!is_replica(m, first, r)) continue;
    gt_free(m->held[r]);
    m->held[r] = NULL;
  }
  gt_free(g.here);
  gt_free(g.mean);
}

/* The region's part is complete: settles its group if it was the last one. */
static void came(gt_stage_model *m, size_t region) {
  const gt_run *run = m->server->run;
  size_t first = run->job->nregions;
  bool all = gt_job_replicas(run->job) > 1;
  m->whole[region] = true;
  for (size_t r = run->job->nregions; r-- > 0;) {
    if (!is_replica(m, region, r)) continue;
    all = all && m->whole[r];
    first = r;
  }
  if (all) settle(m, first);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

void gt_stage_model_own(gt_stage_model *m) {
  const gt_run *run = m->server->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  const gt_region_part *part = &run->pipe->parts[run->roles.region_id];
  open_file(m);
  check_finite(m, run->roles.region_id, a->params.data, a->params.n);
  check_finite(m, run->roles.region_id, a->buffers.data, a->buffers.n);
  put(m, &part->params, false, 0, a->params.n, a->params.data);
  put(m, &part->buffers, true, 0, a->buffers.n, a->buffers.data);
  came(m, run->roles.region_id);
}

static void take_piece(gt_stage_model *m, size_t peer, size_t at, size_t n, const void *payload) {
  const gt_region_part *part = &m->server->run->pipe->parts[peer];
  const size_t params = part->params.floats;
  if (part->again) {
    if (!m->held[peer]) m->held[peer] = GT_NEW_ARRAY(float, floats_of(part));
    memcpy(m->held[peer] + at, payload, n * sizeof(float));
  } else if (at < params) {
    put(m, &part->params, false, at, n, payload);
  } else {
    put(m, &part->buffers, true, at - params, n, payload);
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
    gt_gateway_refuse(m->server->gateway, peer,
                      "%llu bytes of its model from float %llu on; expected %zu floats from %zu on",
                      (unsigned long long)head->message_bytes, (unsigned long long)head->value, n,
                      at);
  open_file(m);
  check_finite(m, peer, payload, n);
  take_piece(m, peer, at, n, payload);
  m->taken[peer] += n;
  if (m->taken[peer] < all) return false;
  came(m, peer);
  return true;
}

/* ---- the whole model at other sites ---------------------------------------------------------- */

/* Returns the header of the next piece, and its number of floats. */
static gt_frame_header next_piece(const gt_stage_model *m, size_t *n) {
  const gt_arrays *whole = gt_graph_arrays(m->server->run->model);
  return gt_ending_piece(whole->params.n, whole->params.n + whole->buffers.n, m->at, n);
}

static bool of_buffers(const gt_stage_model *m, size_t *at) {
  const size_t params = gt_graph_arrays(m->server->run->model)->params.n;
  *at = m->at < params ? m->at : m->at - params;
  return m->at >= params;
}

size_t gt_stage_model_spread(gt_stage_model *m, uint64_t cookie) {
  const gt_server *s = m->server;
  size_t n, at;
  const gt_frame_header head = next_piece(m, &n);
  if (n == 0) return 0;
  if (!m->piece) m->piece = GT_NEW_ARRAY(float, GT_MODEL_PIECE);
  const bool buffers = of_buffers(m, &at);
  begin_write(m);
  end_write(m, gt_ckpt_parts_get(m->file, buffers, at, m->piece, n));
  for (size_t p = 1; p < s->run->job->nregions; p++)
    gt_gateway_send(s->gateway, p, &head, m->piece, n * sizeof(float), cookie, gt_server_now(s));
  m->at += n;
  return s->run->job->nregions - 1;
}

bool gt_stage_model_copy(gt_stage_model *m, const gt_frame_header *head, const void *payload) {
  size_t n, at;
  const gt_frame_header due = next_piece(m, &n);
  if (n == 0 || head->value != m->at || head->detail != due.detail ||
      head->message_bytes != n * sizeof(float))
    gt_gateway_refuse(m->server->gateway, 0,
                      "%llu bytes of the final model from float %llu on; expected %zu floats from "
                      "%zu on",
                      (unsigned long long)head->message_bytes, (unsigned long long)head->value, n,
                      m->at);
  open_file(m);
  const bool buffers = of_buffers(m, &at);
  begin_write(m);
  end_write(m, gt_ckpt_parts_put(m->file, buffers, at, payload, n));
  m->at += n;
  return head->detail == 0;
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
  end_write(m, gt_ckpt_parts_finish(m->file, &info, &rest));
  gt_state_close(&rest);
  memcpy(params_sha256, info.params_sha256, GT_SHA256_HEX);
}
