/* The memory of a PS for the stages of its region. */
#include "geotrain/ps_memory.h"

#include "geotrain/ps_ending.h"
#include "geotrain/ps_of_job.h"

static size_t floats_of(const gt_pipe_job *p, size_t region, bool buffers) {
  const gt_pipe_layout *l = &p->layout;
  size_t sum = 0;
  for (size_t k = 0; k < l->stages * l->chunks; k++)
    if (l->places[gt_pipe_stage_of(l->stages, k)].region == region)
      sum += gt_graph_span_floats(p->graph, p->spans[k], buffers);
  return sum;
}

size_t gt_ps_stages_message_max(const gt_pipe_job *pipe) {
  const gt_pipe_layout *l = &pipe->layout;
  size_t most = 0;
  for (size_t r = 0; r < l->nregions; r++) {
    const size_t all = floats_of(pipe, r, false) + floats_of(pipe, r, true);
    const bool whole = all < GT_MODEL_PIECE || gt_job_replicas(pipe->job) > 1;
    const size_t message = (whole ? all : GT_MODEL_PIECE) * sizeof(float);
    if (message > most) most = message;
  }
  for (size_t i = 0; i < gt_pipe_job_shapes(pipe); i++) {
    const gt_pipe_layout *shape = &gt_pipe_job_shape(pipe, i)->layout;
    for (size_t span = 0; span < l->stages * l->chunks; span++)
      if (shape->micro_samples * gt_pipe_sample_bytes(shape, span, false) > most)
        most = shape->micro_samples * gt_pipe_sample_bytes(shape, span, false);
  }
  return most;
}

static size_t passing_of(const gt_pipe_layout *l, size_t stage) {
  size_t sum = gt_pipe_landing_all(l, stage).bytes;
  for (size_t chunk = 0; chunk < l->chunks; chunk++)
    for (int gradient = 0; gradient < 2; gradient++) {
      const size_t span = gt_pipe_span_of(l->stages, chunk, stage);
      const bool edge = gradient ? span == 0 : span + 1 == l->stages * l->chunks;
      const gt_pipe_buffers out = gt_pipe_out_buffers(l, stage, chunk, gradient);
      if (edge) continue;
      const size_t to = gt_pipe_stage_of(l->stages, gradient ? span - 1 : span + 1);
      if (l->places[to].region != l->places[stage].region) sum += out.count * out.bytes;
    }
  return sum;
}

/* Returns the bytes of a worker's area for packets of other regions (or the whole area), of one
   shape at a time. */
static size_t passing(const gt_pipe_job *p, size_t stage, bool all) {
  size_t most = 0;
  for (size_t i = 0; i < gt_pipe_job_shapes(p); i++) {
    const gt_pipe_layout *l = &gt_pipe_job_shape(p, i)->layout;
    const size_t sum = all ? gt_pipe_landing_all(l, stage).bytes + gt_pipe_out_all(l, stage).bytes
                           : passing_of(l, stage);
    if (sum > most) most = sum;
  }
  return most;
}

/* Returns a worker's gradients and buffers; its arrays are parameters, gradients and buffers. */
static size_t pushed(const gt_pipe_job *p, size_t stage, size_t buffers) {
  return (p->holds[stage].arrays - buffers) / 2 + buffers;
}

/* True if workers compute with a copy of the parameters, because the parameters change
   meanwhile. */
static bool lends(const gt_job *job) {
  return gt_job_replicas(job) > 1 && !gt_sync_of(job->sync.strategy)->between_steps;
}

/* Without shared memory the server has a copy of each worker's area and gradients, and of the
   parameters that it sends, unless it lends a copy. */
static size_t of_workers(const gt_pipe_job *p, size_t place, bool apart) {
  const gt_pipe_layout *l = &p->layout;
  size_t sum = 0;
  for (size_t s = 0; s < l->stages; s++) {
    size_t buffers = 0;
    if (l->places[s].region != place) continue;
    for (size_t c = 0; c < l->chunks; c++)
      buffers += gt_graph_span_floats(p->graph, p->spans[gt_pipe_span_of(l->stages, c, s)], true) *
                 sizeof(float);
    const size_t arrays = pushed(p, s, buffers), sent = apart && !lends(p->job) ? arrays : 0;
    sum += l->places[s].workers * (arrays + sent + passing(p, s, apart));
  }
  return sum;
}

/* ---- messages of other regions --------------------------------------------------------------- */

/* Returns the bytes of the largest packet from one region of the pipeline to another. */
static size_t packet_of(const gt_pipe_layout *l, size_t from, size_t to) {
  size_t most = 0;
  for (size_t span = 0; span + 1 < l->stages * l->chunks; span++) {
    const gt_pipe_place *a = &l->places[gt_pipe_stage_of(l->stages, span)],
                        *b = &l->places[gt_pipe_stage_of(l->stages, span + 1)];
    const size_t samples = l->micro_samples / (a->workers > b->workers ? a->workers : b->workers);
    size_t each = 0;
    if (a->region == from && b->region == to) each = gt_pipe_sample_bytes(l, span, false);
    if (b->region == from && a->region == to) each = gt_pipe_sample_bytes(l, span + 1, true);
    if (samples * each > most) most = samples * each;
  }
  return most;
}

static size_t activations_of(const gt_pipe_job *p, size_t from, size_t to) {
  size_t most = 0;
  for (size_t i = 0; i < gt_pipe_job_shapes(p); i++) {
    const size_t bytes =
        packet_of(&gt_pipe_job_shape(p, i)->layout, gt_job_replica(p->job, from, p->replica),
                  gt_job_replica(p->job, to, p->replica));
    if (bytes > most) most = bytes;
  }
  return most;
}

/* In a hub or tree messages are frames. */
static size_t exchanged_of(const gt_routes *routes, size_t replicas, size_t from, size_t to,
                           size_t bytes) {
  if (!routes->next) return bytes;
  const bool ring = !gt_topology_has(routes->topology, GT_ROOTED);
  return ring && routes->next[from] == to ? bytes / replicas : 0;
}

/* Returns the bytes of the largest message of the peer before the end of the run. */
static size_t coming_of(const gt_pipe_job *p, const gt_ps_setting *how, size_t from, size_t to,
                        size_t bytes) {
  const gt_job *job = p->job;
  const size_t replicas = gt_job_replicas(job);
  if (gt_job_replica_of(job, from) == gt_job_replica_of(job, to))
    return activations_of(p, from, to);
  const bool same_stages = gt_job_replica(job, from, gt_job_replica_of(job, to)) == to;
  return same_stages ? exchanged_of(how->routes, replicas, from, to, bytes) : 0;
}

static size_t frames_of(const gt_pipe_job *p, const gt_ps_setting *how, size_t region,
                        size_t bytes) {
  const size_t message = gt_ps_stages_message_max(p);
  size_t sum = 0;
  /* whole messages: two on the way out, one read */
  if (p->job->wan.transport == GT_WAN_STORE) return 3 * (p->job->nregions - 1) * message;
  for (size_t r = 0; r < p->job->nregions; r++)
    if (r != region)
      sum += gt_link_frames_bytes(&gt_links_from(p->wan.links, region)[r], how->modelled, message,
                                  coming_of(p, how, r, region, bytes));
  return sum;
}

/* ---- several replicas ------------------------------------------------------------------------ */

typedef struct {
  size_t params, buffers; /* bytes */
} part;

static part part_of(const gt_pipe_job *p, size_t region) {
  const size_t place = gt_job_replica(p->job, region, p->replica);
  return (part){floats_of(p, place, false) * sizeof(float),
                floats_of(p, place, true) * sizeof(float)};
}

/* Returns the need of the exchange between the replicas of the region. */
static gt_exchange_need exchange_of(const gt_pipe_job *p, const gt_ps_setting *how, size_t region,
                                    const gt_order *order, part own) {
  const gt_job *job = p->job;
  const gt_sync_ops *strategy = gt_sync_of(job->sync.strategy);
  const size_t n = gt_job_replicas(job), floats = own.params / sizeof(float),
               model = floats + own.buffers / sizeof(float);
  const gt_ps_spec ps = gt_ps_spec_of(&(gt_ps_basis){.job = job,
                                                     .order = order,
                                                     .links = p->wan.links,
                                                     .routes = how->routes,
                                                     .parameters = floats});
  const bool models = strategy->sends == GT_MSG_STATE;
  const gt_cast cast = strategy->waits ? GT_CAST_ROUNDS : models ? GT_CAST_MODELS : GT_CAST_UPDATES;
  size_t *next = GT_NEW_ARRAY(size_t, n);
  for (size_t c = 0; how->routes->next && c < n; c++)
    next[c] = gt_job_replica_of(job, how->routes->next[gt_job_replica(job, region, c)]);
  const gt_exchange_spec spec = {.nregions = n,
                                 .self = gt_job_replica_of(job, region),
                                 .inflight = ps.outbox + ps.window,
                                 .topology = how->routes->topology,
                                 .next = next};
  const gt_exchange_need need = gt_exchange_need_of(&spec, cast, models ? model : floats);
  gt_free(next);
  return need;
}

/* The lead joins pieces of all parts, and holds the messages of further replicas. */
static size_t ending_of(const gt_pipe_job *p, size_t region) {
  const gt_job *job = p->job;
  size_t sum = 0;
  for (size_t r = 0; region == 0 && r < job->nregions; r++) {
    const part of = part_of(p, r);
    const size_t all = of.params + of.buffers, piece = GT_MODEL_PIECE * sizeof(float);
    if (r != region) sum += all < piece ? all : piece;
    if (gt_job_replica_of(job, r) > 0) sum += all;
  }
  return sum;
}

/* ---- all ------------------------------------------------------------------------------------- */

static size_t optimizer_of(const gt_job *job, const gt_order *order, size_t params) {
  int64_t *samples = GT_NEW_ARRAY(int64_t, job->nregions);
  for (size_t r = 0; r < job->nregions; r++) samples[r] = job->train.batch;
  const gt_optim_spec optim = gt_ps_stages_optim_of(job, order, samples);
  gt_free(samples);
  return gt_optim_arrays(&optim) * params;
}

/* Adds the exchange of replicas, and its part in a checkpoint. */
static void add_exchange(gt_ps_need *n, const gt_pipe_job *p, const gt_ps_setting *how,
                         size_t region, const gt_order *order, part own) {
  const gt_sync_ops *strategy = gt_sync_of(p->job->sync.strategy);
  const gt_exchange_need need = exchange_of(p, how, region, order, own);
  const gt_sync_options options = {.outer = p->job->sync.outer.name,
                                   .outer_momentum = p->job->sync.outer.momentum};
  /* a mean whose norm is not known yet */
  const size_t clipped = strategy->lockstep && p->job->train.clip > 0;
  n->exchange = (gt_sync_keeps(strategy, &options) + clipped) * own.params +
                (need.kept + need.bodies) * sizeof(float);
  n->checkpoint +=
      2 * (gt_sync_saves(strategy, &options) * own.params + need.saved * sizeof(float));
}

gt_ps_need gt_ps_need_of(const gt_pipe_job *pipe, size_t region, const gt_ps_setting *how) {
  const gt_job *job = pipe->job;
  const part own = part_of(pipe, region);
  const size_t params = own.params, buffers = own.buffers, batch = (size_t)job->train.batch;
  const gt_order order = {.region = region, .n = batch, .batch = batch, .whole = true};
  gt_ps_need n = {.arrays = 3 * params + buffers,
                  .optimizer = optimizer_of(job, &order, params),
                  .workers =
                      of_workers(pipe, gt_job_replica(job, region, pipe->replica), how->apart),
                  .frames = frames_of(pipe, how, region, params + buffers),
                  .ending = ending_of(pipe, region)};
  if (lends(job) || how->apart) n.arrays += params + buffers;
  n.checkpoint = 2 * (params + buffers + n.optimizer) + ((size_t)1 << 20);
  if (gt_job_replicas(job) > 1) add_exchange(&n, pipe, how, region, &order, own);
  n.all = n.arrays + n.optimizer + n.workers + n.frames + n.exchange +
          (n.checkpoint > n.ending ? n.checkpoint : n.ending);
  return n;
}
