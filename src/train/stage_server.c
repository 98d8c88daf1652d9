/* A PS rank's part in a pipeline: the passes that the PS orders (ps_passes.h), and its packets, go
   to the local plane and the gateway.  The bytes of activations stay in the workers' areas: the
   gateway sends from there, and what arrives is copied there. */
#include <stdio.h>
#include <string.h>

#include "geotrain/ps_memory.h"
#include "stages.h"

/* ---- where buffers lie in the activation area of a worker ------------------------------------ */

/* Where the buffers of a stage's workers are in their activation areas: bytes from the begin. */
typedef struct {
  size_t *out, *landing; /* of each buffer */
  size_t bytes;          /* of all */
} gt_stage_area;

#define ALIGNMENT ((size_t)64)

static size_t place(size_t *at, const gt_pipe_buffers *buffers, size_t end) {
  for (size_t i = 0; i < buffers->count; i++) {
    at[buffers->first + i] = end;
    end += (buffers->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  return end;
}

static gt_stage_area areas_of_stage(const gt_pipe_layout *layout, size_t stage) {
  gt_stage_area area = {.out = GT_NEW_ARRAY(size_t, gt_pipe_out_all(layout, stage).count),
                        .landing = GT_NEW_ARRAY(size_t, gt_pipe_landing_all(layout, stage).count)};
  for (size_t chunk = 0; chunk < layout->chunks; chunk++)
    for (int gradient = 0; gradient < 2; gradient++) {
      const gt_pipe_buffers out = gt_pipe_out_buffers(layout, stage, chunk, gradient),
                            landing = gt_pipe_landing_buffers(layout, stage, chunk, gradient);
      area.bytes = place(area.out, &out, area.bytes);
      area.bytes = place(area.landing, &landing, area.bytes);
    }
  return area;
}

static void close_area(gt_stage_area *area) {
  gt_free(area->out);
  gt_free(area->landing);
  *area = (gt_stage_area){0};
}

static size_t largest(const gt_pipe_layout *layout, size_t region) {
  size_t most = 0;
  for (size_t stage = 0; stage < layout->stages; stage++) {
    if (layout->places[stage].region != region) continue;
    gt_stage_area area = areas_of_stage(layout, stage);
    if (area.bytes > most) most = area.bytes;
    close_area(&area);
  }
  return most;
}

size_t gt_stage_area_max(const gt_pipe_job *pipe, size_t region) {
  size_t most = 0;
  for (size_t i = 0; i < gt_pipe_job_shapes(pipe); i++) {
    const size_t bytes = largest(&gt_pipe_job_shape(pipe, i)->layout, region);
    if (bytes > most) most = bytes;
  }
  return most;
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Memory of a rank: the most so far, and before it had a model. */
typedef struct {
  size_t peak, start;
} gt_resident;

struct gt_server_stages {
  gt_server *server;
  const gt_pipe_layout *layout;
  struct {
    bool busy;   /* makes a pass */
    gt_ns since; /* wall time of its last order */
    gt_resident used;
    gt_stage_area *areas; /* of each shape of micro-batches */
  } * workers;
  /* Borrowed by a checkpoint: the phases of each worker, and where the region's part lies. */
  gt_phase_times *saved;
  int64_t *params_at, *buffers_at;
};

static void fault(void *ctx, gt_status status) {
  (void)ctx;
  gt_panic(status, "%s", gt_error_text());
}

static gt_ps_passes *passes_of(const gt_server_stages *g) {
  return gt_ps_passes_of(g->server->ps);
}

/* Bytes per sample of what a pass reads, and of what it writes. */
static size_t input_bytes(const gt_pipe_layout *l, const gt_pipe_order *o) {
  const bool gradient = o->kind != GT_PASS_F;
  return gt_pipe_sample_bytes(l, gradient ? o->span : o->span - 1, gradient);
}

static size_t output_bytes(const gt_pipe_layout *l, const gt_pipe_order *o) {
  const bool gradient = o->kind != GT_PASS_F;
  return gt_pipe_sample_bytes(l, gradient ? o->span - 1 : o->span, gradient);
}

/* Where the buffers of steps that begin now are. */
static const gt_stage_area *area_of(const gt_server_stages *g, size_t worker) {
  return &g->workers[worker].areas[gt_ps_passes_shape(passes_of(g))];
}

static void name_input(const gt_server_stages *g, size_t worker, const gt_pipe_order *o,
                       gt_pass_msg *pass) {
  if (o->npieces > GT_PASS_PIECES)
    gt_bug("a pass has %zu pieces; %d is the most", o->npieces, GT_PASS_PIECES);
  pass->npieces = (uint32_t)o->npieces;
  for (size_t i = 0; i < o->npieces; i++) {
    const gt_pipe_input *piece = &o->pieces[i];
    const size_t from = piece->landed ? worker : piece->worker, each = input_bytes(g->layout, o);
    const gt_stage_area *area = area_of(g, from);
    const size_t *at = piece->landed ? area->landing : area->out;
    pass->pieces[i] = (gt_pass_piece){.from = at[piece->buffer] + piece->at * each,
                                      .to = piece->first * each,
                                      .bytes = piece->count * each,
                                      .worker = (uint32_t)from};
  }
}

static void give(gt_server_stages *g, size_t worker, const gt_order_msg *order,
                 const gt_ps_order *of, gt_ns cost) {
  g->workers[worker].busy = true;
  g->workers[worker].since = gt_now();
  gt_plane_ps_order(g->server->plane, worker, order, of->params.data, of->buffers.data);
  g->server->clock->passing(g->server, worker, cost);
}

static void order_pass(void *ctx, size_t worker, const gt_ps_order *of, const gt_pipe_order *o,
                       bool begins, gt_ns cost) {
  gt_server_stages *g = ((gt_server *)ctx)->stages;
  gt_order_msg order = {.kind = GT_ORDER_PASS,
                        .with_params = begins && of->params.data != NULL,
                        .batch = of->first,
                        .count = of->count,
                        .step = of->step,
                        .common = of->common,
                        .pass = {.kind = o->kind,
                                 .chunk = (uint32_t)o->chunk,
                                 .span = o->span,
                                 .micro = o->micro,
                                 .slot = (uint32_t)o->slot,
                                 .shape = (uint32_t)gt_ps_passes_shape(passes_of(g)),
                                 .flags = (begins ? GT_STAGE_BEGIN : 0) |
                                          (o->first ? GT_STAGE_WEIGHT : 0) |
                                          (of->kind == GT_PS_EVAL ? GT_STAGE_SCORE : 0)}};
  name_input(g, worker, o, &order.pass);
  if (o->out != GT_PIPE_NONE) {
    order.pass.out = area_of(g, worker)->out[o->out];
    order.pass.out_bytes = gt_ps_passes_share(passes_of(g), worker) * output_bytes(g->layout, o);
  }
  give(g, worker, &order, of, cost);
}

static void order_end(void *ctx, size_t worker, const gt_ps_order *of) {
  const gt_order_msg order = {.kind = of->kind == GT_PS_EVAL ? GT_ORDER_EVAL : GT_ORDER_TRAIN,
                              .batch = of->first,
                              .count = of->count,
                              .step = of->step};
  const gt_ps_order nothing = {0};
  give(((gt_server *)ctx)->stages, worker, &order, &nothing, 0);
}

void gt_server_stages_pushed(gt_server_stages *g, size_t worker, const gt_push_msg *push) {
  g->workers[worker].busy = false;
  if (push->kind == GT_PUSH_PASS) return;
  g->workers[worker].used = (gt_resident){push->resident_peak, push->resident_start};
}

bool gt_server_stages_busy(const gt_server_stages *g, size_t worker, gt_ns *since) {
  *since = g->workers[worker].since;
  return g->workers[worker].busy;
}

/* ---- other regions --------------------------------------------------------------------------- */

static void send(void *ctx, size_t region, const gt_frame_header *head, const gt_pipe_packet *p,
                 uint64_t cookie) {
  gt_server *s = ctx;
  const gt_server_stages *g = s->stages;
  const uint8_t *payload = NULL;
  if (p->bytes > 0)
    payload = gt_plane_ps_area(s->plane, p->from_worker) +
              area_of(g, p->from_worker)->out[p->buffer] + p->at * (p->bytes / p->count);
  gt_gateway_send(s->gateway, region, head, payload, p->bytes, cookie, gt_server_now(s));
}

static void land(void *ctx, size_t shape, const gt_pipe_packet *p, const void *payload) {
  const gt_server_stages *g = ((gt_server *)ctx)->stages;
  memcpy(gt_plane_ps_area(g->server->plane, p->to_worker) +
             g->workers[p->to_worker].areas[shape].landing[p->buffer] +
             p->at * (p->bytes / p->count),
         payload, p->bytes);
}

static gt_ns here(void *ctx, size_t peer, gt_ns theirs) {
  const gt_server *s = ctx;
  return s->clock->here(s, peer, theirs);
}

void gt_server_stages_host(gt_ps_host *host) {
  host->pass = order_pass;
  host->end = order_end;
  host->packet = send;
  host->land = land;
  host->here = here;
  host->fault = fault;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static gt_resident resident_of(const gt_server_stages *g, size_t worker) {
  return g->workers[worker].used;
}

static size_t workers_of(const gt_server *s) {
  return gt_plane_ps_workers(s->plane);
}

static const gt_region_part *own_part(const gt_server *s) {
  return &s->run->pipe->parts[s->run->roles.region_id];
}

/* A checkpoint has the phases of all workers, one after the other, and says where in the model the
   region's part lies. */
void gt_server_stages_save(gt_server_stages *g, gt_state *state) {
  const size_t n = workers_of(g->server);
  for (size_t w = 0; w < n; w++) g->saved[w] = gt_ps_passes_phases(passes_of(g), w);
  gt_state_add(state, "train/", "phases", GT_TYPE_I64, g->saved, n * GT_NPHASES);
  gt_recut_save(own_part(g->server), g->params_at, g->buffers_at, state);
}

/* Older checkpoints have no phases.  With another number of workers the phases of a checkpoint do
   not apply, and begin at 0. */
gt_status gt_server_stages_load(gt_server_stages *g, const gt_state *state) {
  const size_t n = workers_of(g->server);
  const gt_state_item *saved = gt_state_find(state, "train/", "phases");
  if (!saved || saved->count != n * GT_NPHASES) return GT_OK;
  GT_TRY(gt_state_get(state, "train/", "phases", GT_TYPE_I64, g->saved, n * GT_NPHASES));
  for (size_t w = 0; w < n; w++) gt_ps_passes_had(passes_of(g), w, &g->saved[w]);
  return GT_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

static size_t stage_of(const gt_server *s, size_t worker) {
  return gt_pipe_stage_at(s->run->pipe->layout, s->run->roles.region_id, worker);
}

static gt_stage_area *open_areas(const gt_server_stages *g, size_t worker) {
  const gt_pipe_job *pipe = g->server->run->pipe->job;
  const size_t n = gt_pipe_job_shapes(pipe), stage = stage_of(g->server, worker);
  gt_stage_area *areas = GT_NEW_ARRAY(gt_stage_area, n);
  for (size_t i = 0; i < n; i++)
    areas[i] = areas_of_stage(&gt_pipe_job_shape(pipe, i)->layout, stage);
  return areas;
}

static void close_areas(const gt_server_stages *g, gt_stage_area *areas) {
  for (size_t i = 0; i < gt_pipe_job_shapes(g->server->run->pipe->job); i++) close_area(&areas[i]);
  gt_free(areas);
}

gt_server_stages *gt_server_stages_open(gt_server *s) {
  const gt_run *run = s->run;
  const size_t workers = (size_t)run->roles.region_size - 1;
  gt_server_stages *g = GT_NEW(gt_server_stages);
  g->server = s;
  g->layout = run->pipe->layout;
  g->workers = gt_alloc(workers, sizeof *g->workers);
  g->saved = GT_NEW_ARRAY(gt_phase_times, workers);
  g->params_at = gt_recut_places(&own_part(s)->params);
  g->buffers_at = gt_recut_places(&own_part(s)->buffers);
  for (size_t w = 0; w < workers; w++) g->workers[w].areas = open_areas(g, w);
  return g;
}

void gt_server_stages_close(gt_server_stages *g) {
  if (!g) return;
  for (size_t w = 0; w < gt_plane_ps_workers(g->server->plane); w++)
    close_areas(g, g->workers[w].areas);
  gt_free(g->saved);
  gt_free(g->params_at);
  gt_free(g->buffers_at);
  gt_free(g->workers);
  gt_free(g);
}

/* ---- phases in the record and the result ----------------------------------------------------- */

/* "stage": 0 and a number for each phase. */
#define WORKER_TEXT ((size_t)64 * (GT_NPHASES + 2))

static size_t write_worker(char *text, const gt_server *s, size_t worker) {
#define KEY(constant, key, title) key,
  static const char *const keys[] = {GT_PHASE_LIST(KEY)};
#undef KEY
  const gt_phase_times times = gt_ps_passes_phases(gt_ps_passes_of(s->ps), worker);
  size_t used = (size_t)snprintf(text, WORKER_TEXT, "%s{\"stage\":%zu", worker > 0 ? "," : "",
                                 stage_of(s, worker));
  for (size_t i = 0; i < GT_NPHASES; i++)
    used += (size_t)snprintf(text + used, WORKER_TEXT - used, ",\"%s\":%.9f", keys[i],
                             gt_seconds(times.of[i]));
  used += (size_t)snprintf(text + used, WORKER_TEXT - used, "}");
  return used;
}

gt_status gt_server_stages_record(const gt_server *s) {
  if (!s->stages) return GT_OK;
  const size_t workers = workers_of(s);
  char *text = gt_alloc(workers * WORKER_TEXT + 3, 1);
  gt_ps_view v;
  size_t used = 0;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  text[used++] = '[';
  for (size_t w = 0; w < workers; w++) used += write_worker(text + used, s, w);
  snprintf(text + used, 2, "]");
  const gt_status status = gt_record_line(s->record, gt_server_elapsed(s), "phases", "step", 'i',
                                          v.steps, "workers", 'j', text, NULL);
  gt_free(text);
  return status;
}

/* ---- memory, planned and used ---------------------------------------------------------------- */

static gt_ps_need server_need(const gt_server *s, size_t region, bool apart) {
  const gt_run *run = s->run;
  const gt_ps_setting how = {.modelled = run->job->wan.emulate || run->options->virtual_clock,
                             .apart = apart,
                             .routes = &s->routes};
  return gt_ps_need_of(run->pipe->job, region, &how);
}

/* Which regions have no shared memory: each tells the others.  Collective over the servers. */
static void find_apart(const gt_server *s, int *apart) {
  const gt_run *run = s->run;
  const int own = !gt_plane_ps_wakes(s->plane);
  gt_peers_gather(run->roles.ps, &own, sizeof own, apart, "the other regions to say how they run",
                  run->start_limit_s);
}

void gt_server_stages_say_memory(const gt_server *s) {
  const gt_run *run = s->run;
  char text[900] = "";
  size_t used = 0;
  int apart[GT_MAX_REGIONS];
  if (!run->pipe) return;
  find_apart(s, apart);
  for (size_t i = 0; i < run->pipe->layout->stages && used + 64 < sizeof text; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu %.4g", i > 0 ? ", " : "", i,
                             1e-6 * (double)gt_pipe_job_memory(run->pipe->job, i));
  gt_log_job(GT_LOG_INFO, "planned memory, MB of a worker of stage: %s", text);
  used = 0;
  for (size_t r = 0; r < run->job->nregions && used + 96 < sizeof text; r++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%.63s %.4g", r > 0 ? ", " : "",
                             run->job->regions[r].name,
                             1e-6 * (double)server_need(s, r, apart[r] != 0).all);
  gt_log_job(GT_LOG_INFO, "planned memory, MB of the server of: %s", text);
}

#define RANK_TEXT ((size_t)192)

static size_t write_rank(char *text, const gt_server *s, const char *who, size_t planned,
                         gt_resident used) {
  size_t n = (size_t)snprintf(text, RANK_TEXT, "{%s,\"planned_bytes\":%zu", who, planned);
  if (s->clock->measures)
    n += (size_t)snprintf(text + n, RANK_TEXT - n, ",\"peak_bytes\":%zu,\"start_bytes\":%zu}",
                          used.peak, used.start);
  else
    n += (size_t)snprintf(text + n, RANK_TEXT - n, ",\"peak_bytes\":null,\"start_bytes\":null}");
  return n;
}

gt_status gt_server_stages_record_memory(const gt_server *s) {
  if (!s->stages) return GT_OK;
  const gt_run *run = s->run;
  const size_t workers = workers_of(s);
  char *text = gt_alloc((workers + 1) * RANK_TEXT + 4, 1), who[64];
  size_t used = 1;
  text[0] = '[';
  used += write_rank(text + used, s, "\"rank\":\"server\"",
                     server_need(s, run->roles.region_id, !gt_plane_ps_wakes(s->plane)).all,
                     (gt_resident){gt_resident_peak(), run->resident_start});
  for (size_t w = 0; w < workers; w++) {
    const size_t stage = stage_of(s, w);
    snprintf(who, sizeof who, "\"rank\":\"worker %zu\",\"stage\":%zu", w, stage);
    text[used++] = ',';
    used += write_rank(text + used, s, who, gt_pipe_job_memory(run->pipe->job, stage),
                       resident_of(s->stages, w));
  }
  snprintf(text + used, 2, "]");
  const gt_status status =
      gt_record_line(s->record, gt_server_elapsed(s), "memory", "ranks", 'j', text, NULL);
  gt_free(text);
  return status;
}
