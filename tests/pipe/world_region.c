#include "world_region.h"
#include "internal.h"
#include "tests.h"

typedef enum {
  BEGINS,  /* a worker's step */
  ENDED,   /* a pass */
  ON_LINK, /* a packet has reached the link */
  FRAME,   /* one has reached the receiver's access; not the last */
  LAST,    /* the last of its packet */
  PASSED,  /* a frame has passed the access of a region */
  LEAVES,  /* the packet's bytes are read */
  LEFT,    /* and the region hears of it */
  THERE
} event;

#define EVENT_BITS 4
#define POISON     UINT64_MAX
#define LAST_FRAME (UINT64_C(1) << 32)

static void push(r_world *w, gt_ns at, event what, size_t of, size_t bytes) {
  gt_heap_push(&w->events, (gt_heap_entry){.at = at,
                                           .key = w->nevents++,
                                           .a = (uint32_t)(bytes << EVENT_BITS | what),
                                           .b = (uint32_t)of});
}

static gt_ns draw(r_world *w, uint64_t most) {
  return (gt_ns)gt_rng_below(&w->rng, most + 1);
}

static void trace(r_world *w, const size_t *numbers, size_t n) {
  for (size_t i = 0; i < n; i++) {
    gt_rng mix = gt_rng_make(w->trace, GT_RNG_TEST, numbers[i], 0);
    w->trace = gt_rng_u64(&mix);
  }
}

static void ok(gt_status status) {
  must(status);
}

/* ---- what samples hold ----------------------------------------------------------------------- */

static uint64_t token(bool gradient, size_t span, size_t micro, int64_t step, size_t sample) {
  return (uint64_t)gradient << 56 | (uint64_t)span << 48 | (uint64_t)micro << 32 |
         (uint64_t)step << 16 | sample;
}

static bool forward(const r_world *w, const r_worker *worker) {
  return w->spec.steps[worker->step] > 0;
}

/* The whole input is there, each sample once. */
static void check_input(const r_world *w, const r_worker *worker) {
  const gt_pipe_order *o = &worker->order;
  const r_region *region = &w->regions[worker->region];
  bool seen[R_SAMPLES_MAX] = {false};
  size_t n = 0;
  for (size_t i = 0; i < o->npieces; i++) {
    const gt_pipe_input *p = &o->pieces[i];
    const r_worker *from = region->workers[p->worker];
    const uint64_t *data = p->landed ? from->landing : from->out;
    assert_true(!p->landed || from == worker);
    assert_true(p->at + p->count <= from->share && p->first + p->count <= worker->share);
    for (size_t k = 0; k < p->count; k++) {
      const size_t sample = p->first + k;
      assert_false(seen[sample]);
      seen[sample] = true;
      n++;
      assert_true(data[p->buffer * from->share + p->at + k] ==
                  token(o->kind != GT_PASS_F, o->span, o->micro, o->step,
                        worker->replica * worker->share + sample));
    }
  }
  const size_t spans = w->spec.layout->stages * w->spec.layout->chunks;
  const bool needs = o->kind == GT_PASS_F   ? o->span > 0
                     : o->kind == GT_PASS_W ? false
                                            : o->span + 1 < spans;
  assert_int_equal(n, needs ? worker->share : 0);
}

static void write_output(const r_worker *worker, bool whole) {
  const gt_pipe_order *o = &worker->order;
  if (o->out == GT_PIPE_NONE) return;
  const bool gradient = o->kind != GT_PASS_F;
  for (size_t k = 0; k < worker->share; k++)
    worker->out[o->out * worker->share + k] =
        whole ? token(gradient, gradient ? o->span - 1 : o->span + 1, o->micro, o->step,
                      worker->replica * worker->share + k)
              : POISON;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void check_pass(const r_world *w, r_worker *worker, const gt_pipe_order *o) {
  const gt_pipe_layout *l = w->spec.layout;
  const gt_pipe_list *list = &l->schedule->lists[worker->stage];
  size_t n = list->n;
  assert_int_equal(o->step, worker->step);
  assert_int_equal(o->chunk, o->span / l->stages);
  assert_int_equal(gt_pipe_stage_of(l->stages, o->span), worker->stage);
  assert_true(o->forward_only == forward(w, worker));
  if (o->forward_only) {
    assert_int_equal(o->kind, GT_PASS_F);
    assert_int_equal(o->micro, worker->next[o->chunk]++);
    n = l->chunks * w->spec.steps[worker->step];
    assert_true(o->micro < w->spec.steps[worker->step]);
  } else {
    const gt_pass *pass = &list->passes[worker->counter];
    assert_true(worker->counter < n && o->kind == pass->kind && o->span == pass->span &&
                o->micro == pass->micro);
  }
  assert_true(o->last == (++worker->counter == n));
  const bool weights = o->kind == GT_PASS_W || o->kind == GT_PASS_BW;
  assert_true(o->first == (weights && !worker->weighed[o->chunk]));
  worker->weighed[o->chunk] |= weights;
}

static void check_slot(const r_world *w, r_worker *worker, const gt_pipe_order *o) {
  const uint64_t holds = token(true, o->span, o->micro, o->step, 0);
  assert_true(o->slot < w->spec.layout->slots[worker->stage]);
  if (o->kind == GT_PASS_F) {
    assert_int_equal(worker->slots[o->slot], 0);
    for (size_t i = 0; i < o->slot; i++) assert_int_not_equal(worker->slots[i], 0);
    worker->slots[o->slot] = holds;
    if (++worker->used > worker->peak) worker->peak = worker->used;
  }
  assert_true(worker->slots[o->slot] == holds);
}

static void check_buffers(r_world *w, const r_worker *worker, const gt_pipe_order *o) {
  const gt_pipe_layout *l = w->spec.layout;
  const bool gradient = o->kind != GT_PASS_F;
  const gt_pipe_buffers out = gt_pipe_out_buffers(l, worker->stage, o->chunk, gradient),
                        landing = gt_pipe_landing_buffers(l, worker->stage, o->chunk, gradient);
  if (o->kind == GT_PASS_W || out.count == 0) {
    assert_true(o->out == GT_PIPE_NONE);
  } else {
    assert_true(o->out >= out.first && o->out < out.first + out.count);
    w->full_out += out.count > 1 && o->out + 1 == out.first + out.count;
  }
  for (size_t i = 0; i < o->npieces; i++) {
    const size_t b = o->pieces[i].buffer;
    if (!o->pieces[i].landed) continue;
    assert_true(b >= landing.first && b < landing.first + landing.count);
    w->full_landing += landing.count > 1 && b + 1 == landing.first + landing.count;
  }
}

static void on_pass(void *ctx, size_t number, const gt_pipe_order *order) {
  r_region *region = ctx;
  r_world *w = region->world;
  r_worker *worker = region->workers[number];
  assert_non_null(worker);
  assert_false(worker->ordered || worker->busy);
  check_pass(w, worker, order);
  check_slot(w, worker, order);
  check_buffers(w, worker, order);
  worker->order = *order;
  assert_true(order->npieces <= R_PIECES_MAX);
  for (size_t i = 0; i < order->npieces; i++) worker->pieces[i] = order->pieces[i];
  worker->order.pieces = worker->pieces;
  worker->ordered = true;
  trace(w,
        (size_t[]){region->number, number, (size_t)order->kind, order->span, order->micro,
                   order->slot, order->out},
        7);
}

static gt_ns time_of(r_world *w, const r_worker *worker) {
  const gt_pipe_problem *problem = w->spec.problem;
  if (!problem) return draw(w, 5);
  const gt_pipe_span *span = &problem->spans[worker->order.span];
  const gt_ns f = gt_from_seconds(span->forward_s), b = gt_from_seconds(span->backward_s),
              v = gt_from_seconds(span->weight_s);
  const gt_pass_kind kind = worker->order.kind;
  return kind == GT_PASS_F ? f : kind == GT_PASS_B ? b : kind == GT_PASS_W ? v : b + v;
}

static void start(r_world *w, size_t i) {
  r_worker *worker = &w->workers[i];
  const gt_ns end = w->now + time_of(w, worker);
  worker->ordered = false;
  worker->busy = true;
  w->passes++;
  check_input(w, worker);
  write_output(worker, false);
  if (worker->step == 0 && worker->replica == 0)
    w->times[worker->stage][worker->counter - 1] = (gt_pipe_time){w->now, end};
  push(w, end, ENDED, i, 0);
}

static void pass_ended(r_world *w, r_worker *worker) {
  const gt_pass_kind kind = worker->order.kind;
  check_input(w, worker);
  write_output(worker, true);
  worker->busy = false;
  if (kind == GT_PASS_W || kind == GT_PASS_BW || worker->order.forward_only) {
    worker->slots[worker->order.slot] = 0;
    worker->used--;
  }
  ok(gt_pipe_region_done(w->regions[worker->region].region, worker->number));
}

/* ---- steps ----------------------------------------------------------------------------------- */

static gt_ns update_of(const r_world *w, size_t stage) {
  return w->spec.problem->update_s ? gt_from_seconds(w->spec.problem->update_s[stage]) : 0;
}

/* As the evaluation has it: one worker a stage. */
static void end_as_evaluated(r_world *w, size_t i) {
  const gt_pipe_problem *problem = w->spec.problem;
  if (w->workers[i].step == 0 && w->now > w->makespan) w->makespan = w->now;
  if (!problem->agree_s) {
    push(w, w->now + update_of(w, i), BEGINS, i, 0);
    return;
  }
  w->ended_at[w->workers[i].region] = w->now;
  if (++w->ended < w->nworkers) return;
  w->ended = 0;
  for (size_t k = 0; k < w->nworkers; k++) {
    const size_t to = w->workers[k].region;
    gt_ns at = 0;
    for (size_t j = 0; j < w->nworkers; j++) {
      const size_t from = w->workers[j].region;
      const gt_ns heard =
          w->ended_at[from] +
          (from == to ? 0 : gt_from_seconds(problem->agree_s[from * problem->wan->nregions + to]));
      if (heard > at) at = heard;
    }
    push(w, at + update_of(w, k), BEGINS, k, 0);
  }
}

static void on_ended(void *ctx, size_t number) {
  r_region *region = ctx;
  r_world *w = region->world;
  r_worker *worker = region->workers[number];
  const gt_pipe_layout *l = w->spec.layout;
  assert_false(worker->ordered || worker->busy);
  assert_int_equal(worker->counter, forward(w, worker) ? l->chunks * w->spec.steps[worker->step]
                                                       : l->schedule->lists[worker->stage].n);
  assert_int_equal(worker->used, 0);
  if (!forward(w, worker)) {
    assert_int_equal(worker->peak, gt_pipe_slots(l->schedule, worker->stage));
    assert_int_equal(worker->peak, l->slots[worker->stage]);
  }
  const size_t i = (size_t)(worker - w->workers);
  if (w->spec.problem)
    end_as_evaluated(w, i);
  else
    push(w, w->now + draw(w, 12), BEGINS, i, 0);
}

static void begin_step(r_world *w, r_worker *worker) {
  if (worker->step + 1 > 0 && w->now > w->finish[worker->step]) w->finish[worker->step] = w->now;
  worker->step++;
  worker->counter = worker->peak = 0;
  memset(worker->next, 0, sizeof worker->next);
  memset(worker->weighed, 0, sizeof worker->weighed);
  if (worker->step < w->spec.nsteps)
    ok(gt_pipe_region_step(w->regions[worker->region].region, worker->number, (int64_t)worker->step,
                           w->spec.steps[worker->step]));
}

/* ---- packets --------------------------------------------------------------------------------- */

static void on_send(void *ctx, size_t to, const gt_pipe_packet *packet) {
  r_region *region = ctx;
  r_world *w = region->world;
  assert_true(to != region->number && to < w->spec.layout->nregions);
  GT_GROW(w->packets, w->npackets, w->capacity, 64);
  const size_t i = w->npackets++;
  w->packets[i] = (r_packet){.packet = *packet, .from = region->number, .to = to};
  w->sent++;
  trace(w, (size_t[]){to, packet->span, packet->micro, packet->first, packet->buffer}, 5);
  if (w->spec.problem) {
    const gt_pipe_message message = {packet->gradient, packet->span, packet->micro};
    const gt_pipe_route route = gt_pipe_route_of(w->spec.problem, &message);
    assert_true((double)packet->bytes == route.bytes);
    const gt_ns at = w->now + gt_from_seconds(route.local_s);
    if (!route.link) push(w, at, LEAVES, i, 0);
    push(w, at, route.link ? ON_LINK : THERE, i, 0);
    return;
  }
  const gt_ns leaves = w->now + draw(w, 6), there = leaves + draw(w, 12);
  push(w, leaves, LEAVES, i, 0);
  push(w, there, THERE, i, 0);
}

static void left(r_world *w, const r_packet *p) {
  if (p->packet.buffer == GT_PIPE_NONE) return;
  ok(gt_pipe_region_departed(w->regions[p->from].region, p->packet.from_worker, p->packet.buffer));
}

/* Its samples are read from the out buffer. */
static void leave(r_world *w, size_t i) {
  r_packet *p = &w->packets[i];
  const gt_pipe_packet *packet = &p->packet;
  const r_worker *from = w->regions[p->from].workers[packet->from_worker];
  for (size_t k = 0; k < packet->count && packet->buffer != GT_PIPE_NONE; k++)
    p->samples[k] = from->out[packet->buffer * from->share + packet->at + k];
  if (w->spec.late)
    push(w, w->now + draw(w, 40), LEFT, i, 0);
  else
    left(w, p);
}

static void on_land(void *ctx, const gt_pipe_packet *packet) {
  r_region *region = ctx;
  const r_packet *p = &region->world->packets[region->world->arriving];
  const r_worker *to = region->workers[packet->to_worker];
  for (size_t k = 0; k < packet->count; k++)
    to->landing[packet->buffer * to->share + packet->at + k] = p->samples[k];
}

static void there(r_world *w, size_t i) {
  const r_packet *p = &w->packets[i];
  gt_pipe_packet packet = p->packet;
  const r_region *region = &w->regions[p->to];
  const r_worker *to = region->workers[packet.to_worker];
  const uint64_t number = gt_pipe_region_number(region->region, packet.step, packet.micro);
  int64_t step;
  uint32_t micro;
  gt_pipe_region_of_number(region->region, number, &step, &micro);
  assert_true(step == packet.step && micro == packet.micro);
  packet.buffer = packet.at = 12345;
  w->arriving = i;
  w->early += packet.step > (int64_t)to->step;
  ok(gt_pipe_region_message(region->region, &packet));
}

/* ---- links, as the evaluation has them ------------------------------------------------------- */

static const gt_link_spec *link_of(const r_world *w, const r_packet *p) {
  return &w->spec.problem->wan->links[p->from * w->spec.problem->wan->nregions + p->to];
}

static void give_to_link(r_world *w, size_t i) {
  const r_packet *p = &w->packets[i];
  gt_link_state *link = &w->links[p->from * w->spec.problem->wan->nregions + p->to];
  size_t left = p->packet.bytes;
  do {
    const size_t bytes = gt_frame_take(&left, GT_FRAME_HEADER_MAX, false);
    const gt_link_times times = gt_link_step(link, link_of(w, p), &w->up[p->from], bytes, w->now);
    if (left == 0) push(w, times.depart, LEAVES, i, 0);
    push(w, times.arrive, left == 0 ? LAST : FRAME, i, bytes);
  } while (left > 0);
}

static void wait_for_access(r_world *w, size_t region) {
  const gt_ns passes = gt_landing_next(&w->down[region]);
  if (passes != GT_NEVER) push(w, passes, PASSED, region, 0);
}

static void put_on_access(r_world *w, size_t i, size_t bytes, bool last) {
  const r_packet *p = &w->packets[i];
  gt_landing *down = &w->down[p->to];
  const gt_landing_frame frame = {.arrive = w->now,
                                  .from = p->from,
                                  .bytes = bytes,
                                  .stream_bps =
                                      gt_link_stream_bps(link_of(w, p), w->up[p->from].rate_bps),
                                  .of.number = (last ? LAST_FRAME : 0) | i};
  const bool waits = down->busy, through = gt_landing_put(down, &frame);
  if (through && last) push(w, w->now, THERE, i, 0);
  if (!through && !waits) wait_for_access(w, p->to);
}

static void pass_access(r_world *w, size_t region) {
  const uint64_t number = gt_landing_take(&w->down[region]).of.number;
  if (number & LAST_FRAME) push(w, w->now, THERE, (uint32_t)number, 0);
  wait_for_access(w, region);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void happen(r_world *w, const gt_heap_entry *e) {
  const size_t bytes = e->a >> EVENT_BITS;
  switch ((event)(e->a & ((1u << EVENT_BITS) - 1))) {
  case BEGINS:
    begin_step(w, &w->workers[e->b]);
    break;
  case ENDED:
    pass_ended(w, &w->workers[e->b]);
    break;
  case ON_LINK:
    give_to_link(w, e->b);
    break;
  case FRAME:
    put_on_access(w, e->b, bytes, false);
    break;
  case LAST:
    put_on_access(w, e->b, bytes, true);
    break;
  case PASSED:
    pass_access(w, e->b);
    break;
  case LEAVES:
    leave(w, e->b);
    break;
  case LEFT:
    left(w, &w->packets[e->b]);
    break;
  case THERE:
    there(w, e->b);
    break;
  }
}

static void check_end(r_world *w) {
  char text[200];
  for (size_t i = 0; i < w->nworkers; i++) {
    const r_worker *worker = &w->workers[i];
    if (worker->step != w->spec.nsteps)
      fail_msg("step %zu: %s", worker->step,
               gt_pipe_region_text(w->regions[worker->region].region, worker->number, text,
                                   sizeof text));
  }
  for (size_t i = 0; i < w->spec.layout->nregions; i++)
    w->stalls += gt_pipe_region_stalls(w->regions[i].region);
}

void r_run(r_world *w) {
  for (size_t i = 0; i < w->nworkers; i++) push(w, w->spec.problem ? 0 : draw(w, 12), BEGINS, i, 0);
  while (w->events.n > 0) {
    const gt_heap_entry e = gt_heap_pop(&w->events);
    w->now = e.at;
    happen(w, &e);
    if (w->events.n > 0 && w->events.at[0].at == e.at) continue;
    for (size_t i = 0; i < w->nworkers; i++)
      if (w->workers[i].ordered) start(w, i);
  }
  check_end(w);
}

/* ---- open and close -------------------------------------------------------------------------- */

static void open_workers(r_world *w) {
  const gt_pipe_layout *l = w->spec.layout;
  for (size_t s = 0; s < l->stages; s++) w->nworkers += l->places[s].workers;
  w->workers = GT_NEW_ARRAY(r_worker, w->nworkers);
  r_worker *worker = w->workers;
  for (size_t s = 0; s < l->stages; s++)
    for (size_t r = 0; r < l->places[s].workers; r++, worker++) {
      const gt_pipe_place *place = &l->places[s];
      const size_t share = l->micro_samples / place->workers;
      assert_true(place->first_worker + r < R_WORKERS_MAX);
      *worker =
          (r_worker){.stage = s,
                     .replica = r,
                     .region = place->region,
                     .number = place->first_worker + r,
                     .share = share,
                     .step = SIZE_MAX,
                     .out = GT_NEW_ARRAY(uint64_t, gt_pipe_out_all(l, s).count * share),
                     .landing = GT_NEW_ARRAY(uint64_t, gt_pipe_landing_all(l, s).count * share),
                     .slots = GT_NEW_ARRAY(uint64_t, l->slots[s])};
      w->regions[place->region].workers[worker->number] = worker;
    }
}

static void open_links(r_world *w) {
  const gt_pipe_wan *wan = w->spec.problem ? w->spec.problem->wan : NULL;
  if (!wan) return;
  const size_t n = wan->nregions;
  w->links = GT_NEW_ARRAY(gt_link_state, n * n);
  w->up = GT_NEW_ARRAY(gt_access, n);
  w->down = GT_NEW_ARRAY(gt_landing, n);
  for (size_t i = 0; i < n * n; i++) w->links[i] = gt_link_start(wan->seed, i / n, i % n, 0);
  for (size_t i = 0; i < n; i++) {
    w->up[i].rate_bps = wan->up_bps ? wan->up_bps[i] : 0.0;
    gt_landing_open(&w->down[i], n, wan->down_bps ? wan->down_bps[i] : 0.0);
  }
}

void r_open(r_world *w, const r_spec *spec) {
  const gt_pipe_layout *l = spec->layout;
  *w = (r_world){.spec = *spec,
                 .rng = gt_rng_make(spec->seed, GT_RNG_TEST, 1, 0),
                 .finish = GT_NEW_ARRAY(gt_ns, spec->nsteps),
                 .times = GT_NEW_ARRAY(gt_pipe_time *, l->stages)};
  assert_true(l->nregions <= R_REGIONS_MAX && l->micro_samples <= R_SAMPLES_MAX);
  for (size_t s = 0; s < l->stages; s++) {
    const size_t n = l->schedule->lists[s].n, f = l->chunks * R_FORWARD_MOST;
    w->times[s] = GT_NEW_ARRAY(gt_pipe_time, n > f ? n : f);
  }
  open_workers(w);
  open_links(w);
  for (size_t i = 0; i < l->nregions; i++) {
    r_region *region = &w->regions[i];
    region->world = w;
    region->number = i;
    ok(gt_pipe_region_create(
        &region->region,
        &(gt_pipe_region_spec){.layout = l,
                               .region = i,
                               .forward_micro_batches = R_FORWARD_MOST,
                               .host = {region, on_pass, on_send, on_land, on_ended}}));
  }
}

void r_close(r_world *w) {
  for (size_t i = 0; i < w->nworkers; i++) {
    gt_free(w->workers[i].out);
    gt_free(w->workers[i].landing);
    gt_free(w->workers[i].slots);
  }
  for (size_t i = 0; i < w->spec.layout->nregions; i++) {
    gt_pipe_region_close(w->regions[i].region);
    if (w->down) gt_landing_close(&w->down[i]);
  }
  for (size_t s = 0; s < w->spec.layout->stages; s++) gt_free(w->times[s]);
  gt_heap_close(&w->events);
  void *owned[] = {w->workers, w->packets, w->links, w->up, w->down, w->finish, w->times};
  for (size_t i = 0; i < COUNT(owned); i++) gt_free(owned[i]);
}
