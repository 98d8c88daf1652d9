/* A schedule in simulated time: handles events of stages and of messages in the order of time; all
   events of one time precede the passes that start at that time.  Regions make steps together: a
   region starts its updates when all regions have announced that the passes of their stages have
   ended. */
#include "internal.h"

#include <math.h>

#include "geotrain/base_heap.h"

#define DEPTH_ROUNDING 1e-9

/* ---- the routes of messages ------------------------------------------------------------------ */

static double hop_s(const gt_pipe_hop *hop, double bytes) {
  return hop->delay_s + (hop->bandwidth_bps > 0.0 ? 8.0 * bytes / hop->bandwidth_bps : 0.0);
}

gt_pipe_route gt_pipe_route_of(const gt_pipe_problem *problem, const gt_pipe_message *message) {
  const size_t p = problem->stages, k = message->span, sender = message->gradient ? k + 1 : k - 1;
  gt_pipe_route route = {.from = gt_pipe_stage_of(p, sender),
                         .to = gt_pipe_stage_of(p, k),
                         .bytes = problem->spans[message->gradient ? k : sender].output_bytes +
                                  (message->gradient ? 0 : problem->spans[sender].label_bytes)};
  if (route.from == route.to) return route;
  route.local_s = hop_s(
      route.from < route.to ? &problem->ahead[route.from] : &problem->back[route.to], route.bytes);
  const gt_pipe_wan *wan = problem->wan;
  if (!wan || wan->region[route.from] == wan->region[route.to]) return route;
  route.from_region = wan->region[route.from];
  route.to_region = wan->region[route.to];
  route.link = &wan->links[route.from_region * wan->nregions + route.to_region];
  return route;
}

/* Returns the time of a message on idle links. */
static double route_s(const gt_pipe_route *route) {
  if (!route->link) return route->local_s;
  const double rate = gt_link_goodput(route->link);
  return route->local_s + route->link->latency_s + (rate > 0.0 ? 8.0 * route->bytes / rate : 0.0);
}

/* Returns the time from a span to the next one and back. */
static double there_and_back_s(const gt_pipe_problem *problem, size_t span) {
  gt_pipe_message out = {false, (uint32_t)(span + 1), 0}, in = {true, (uint32_t)span, 0};
  gt_pipe_route ahead = gt_pipe_route_of(problem, &out), back = gt_pipe_route_of(problem, &in);
  return route_s(&ahead) + route_s(&back);
}

static size_t held_at_most(const gt_pipe_problem *problem, size_t span) {
  const double each = problem->spans[span].activation,
               limit = gt_pipe_limit(problem, gt_pipe_stage_of(problem->stages, span));
  return each > 0.0 && limit < each * (double)problem->micro_batches ? (size_t)(limit / each)
                                                                     : problem->micro_batches;
}

size_t gt_pipe_depth(const gt_pipe_problem *problem, size_t span) {
  const size_t n = problem->stages * problem->chunks;
  const double forward_s = problem->spans[span].forward_s;
  double away_s = 0.0;
  for (size_t k = span; k + 1 < n; k++)
    away_s += problem->spans[k + 1].forward_s + problem->spans[k + 1].backward_s +
              there_and_back_s(problem, k);
  double more = away_s > 0.0 ? ceil(away_s / forward_s - DEPTH_ROUNDING) : 0.0;
  size_t most = held_at_most(problem, span);
  size_t depth = more < (double)most ? 1 + (size_t)more : most;
  if (depth > most) depth = most;
  return depth > 0 ? depth : 1;
}

/* ---- steps together -------------------------------------------------------------------------- */

/* Of a problem with agree_s. */
typedef struct {
  const gt_pipe_problem *problem;
  struct {
    size_t left; /* stages that have not ended the step */
    gt_ns end;   /* end of the last one */
  } * regions;
  size_t regions_left; /* with such stages */
} together;

static void begin_together(together *t) {
  const gt_pipe_wan *wan = t->problem->wan;
  t->regions_left = 0;
  for (size_t s = 0; s < t->problem->stages; s++)
    t->regions_left += t->regions[wan->region[s]].left++ == 0;
}

static together open_together(const gt_pipe_problem *problem) {
  together t = {.problem = problem};
  if (!problem->agree_s) return t;
  t.regions = gt_alloc(problem->wan->nregions, sizeof *t.regions);
  begin_together(&t);
  return t;
}

static void close_together(together *t) {
  gt_free(t->regions);
  t->regions = NULL;
}

/* Counts a stage that has ended its passes of the step; true for the last one. */
static bool stage_ended(together *t, size_t stage, gt_ns now) {
  const size_t region = t->problem->wan->region[stage];
  if (--t->regions[region].left > 0) return false;
  t->regions[region].end = now;
  if (--t->regions_left > 0) return false;
  begin_together(t);
  return true;
}

/* Returns the time from which the stage may update, after all have ended. */
static gt_ns updates_from(const together *t, size_t stage) {
  const gt_pipe_wan *wan = t->problem->wan;
  const size_t to = wan->region[stage];
  gt_ns from = 0;
  for (size_t s = 0; s < t->problem->stages; s++) {
    const size_t r = wan->region[s];
    const gt_ns heard =
        t->regions[r].end +
        (r == to ? 0 : gt_from_seconds(t->problem->agree_s[r * wan->nregions + to]));
    if (heard > from) from = heard;
  }
  return from;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Kinds of events; `b` of an entry is a stage (first three), the place of a message, or a
   region. */
typedef enum {
  ENDED,   /* a pass */
  UPDATED, /* the stage's parameters, after a step */
  WAKE,    /* a stage is asked again */
  ON_LINK, /* the message has reached the link */
  FRAME,   /* a frame other than the last has reached the receiver's access */
  LAST,    /* the last frame of the message has */
  PASSED,  /* a frame has passed the receiver's access; `b` is its region */
  THERE    /* the message has arrived at the stage */
} event;

/* A frame's size shares a word with its event. */
#define EVENT_BITS 3
#define EVENT_MASK ((1u << EVENT_BITS) - 1)

typedef struct {
  gt_pipe_progress progress;
  gt_pass pass; /* the current pass */
  bool busy;    /* runs a pass or an update */
  size_t left;  /* units of F, B and W of this step; BW is two */
  gt_ns first, last;
  gt_ns since; /* if idle: the end of its last pass or update */
  gt_ns wake;  /* the last requested one */
} stage_run;

struct gt_pipe_run {
  gt_pipe_run_spec spec;
  const gt_pipe_problem *problem;
  const gt_pipe_schedule *schedule;
  stage_run *stages;
  uint64_t *marked;      /* bits of the stages to ask for a pass */
  gt_ns (*took)[4];      /* of each span and kind of pass */
  gt_pipe_route *routes; /* of the messages to each span, outputs first */
  gt_ns *due;            /* messages by place; 0: unknown */
  gt_ns *sent;           /* likewise, times of sending */
  gt_wire *links;
  gt_access *up; /* of each region */
  gt_landing *down;
  gt_heap events;
  uint64_t nevents;
  together steps;
  size_t whole;  /* stages that have ended all steps */
  gt_ns *finish; /* last update of each step */
  gt_ns makespan;
  gt_ns unused[GT_NPHASES]; /* for phases without a result */
};

static gt_ns later(gt_ns a, gt_ns b) {
  return a > b ? a : b;
}

static void push(gt_pipe_run *run, gt_ns at, event what, size_t of, size_t bytes) {
  gt_heap_push(&run->events, (gt_heap_entry){.at = at,
                                             .key = run->nevents++,
                                             .a = (uint32_t)(bytes << EVENT_BITS | what),
                                             .b = (uint32_t)of});
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Returns the place of a message in an array of `2 stages chunks micro_batches`. */
static size_t place_of(const gt_pipe_schedule *s, const gt_pipe_message *message) {
  return (message->gradient * s->stages * s->chunks + message->span) * s->micro_batches +
         message->micro;
}

static gt_pipe_message message_at(const gt_pipe_schedule *s, size_t place) {
  const size_t spans = s->stages * s->chunks, row = place / s->micro_batches;
  return (gt_pipe_message){row >= spans, (uint32_t)(row % spans),
                           (uint32_t)(place % s->micro_batches)};
}

static const gt_pipe_route *route_of(const gt_pipe_run *run, const gt_pipe_message *message) {
  const size_t spans = run->schedule->stages * run->schedule->chunks;
  return &run->routes[message->gradient * spans + message->span];
}

/* Marks a stage after an event with which it may start a pass. */
static void mark(gt_pipe_run *run, size_t stage) {
  run->marked[stage / 64] |= UINT64_C(1) << stage % 64;
}

static void deliver(gt_pipe_run *run, const gt_pipe_message *message) {
  const size_t to = route_of(run, message)->to;
  gt_pipe_arrived(&run->stages[to].progress, message);
  mark(run, to);
}

/* Sets the expected time of a message, for choosers. */
static void expect(gt_pipe_run *run, const gt_pipe_message *message, gt_ns at) {
  run->due[place_of(run->schedule, message)] = at;
  if (run->spec.choose) mark(run, route_of(run, message)->to);
}

static void send(gt_pipe_run *run, const gt_pipe_message *message, gt_ns now) {
  const gt_pipe_route *route = route_of(run, message);
  run->sent[place_of(run->schedule, message)] = now;
  if (route->from == route->to)
    deliver(run, message);
  else
    push(run, now + gt_from_seconds(route->local_s), route->link ? ON_LINK : THERE,
         place_of(run->schedule, message), 0);
}

/* Gives all frames of a message to the link at once.  Those before the last matter only to an
   access that they occupy. */
static void give_to_link(gt_pipe_run *run, size_t place, gt_ns now) {
  const gt_pipe_message message = message_at(run->schedule, place);
  const gt_pipe_route *route = route_of(run, &message);
  gt_wire *link = &run->links[route->from_region * run->problem->wan->nregions + route->to_region];
  const bool passes = run->down[route->to_region].access.rate_bps > 0.0;
  size_t left = (size_t)route->bytes;
  gt_ns arrive;
  do {
    const size_t bytes = gt_frame_take(&left, GT_FRAME_HEADER_MAX, route->link->look_s > 0);
    arrive = gt_wire_send(link, route->link, &run->up[route->from_region], bytes, now).arrive;
    if (left == 0 || passes) push(run, arrive, left == 0 ? LAST : FRAME, place, bytes);
  } while (left > 0);
  expect(run, &message, arrive);
}

#define LAST_FRAME (UINT64_C(1) << 32)

/* Waits until the next frame has passed the access. */
static void wait_for_access(gt_pipe_run *run, size_t region) {
  const gt_ns passes = gt_landing_next(&run->down[region]);
  if (passes != GT_NEVER) push(run, passes, PASSED, region, 0);
}

static void put_on_access(gt_pipe_run *run, size_t place, size_t bytes, bool last, gt_ns now) {
  const gt_pipe_message message = message_at(run->schedule, place);
  const gt_pipe_route *route = route_of(run, &message);
  gt_landing *down = &run->down[route->to_region];
  const gt_landing_frame frame = {
      .arrive = now,
      .from = route->from_region,
      .bytes = bytes,
      .stream_bps = gt_link_stream_bps(route->link, run->up[route->from_region].rate_bps),
      .of.number = (last ? LAST_FRAME : 0) | place};
  const bool waits = down->busy, through = gt_landing_put(down, &frame);
  if (through && last) push(run, now, THERE, place, 0);
  if (!through && !waits) wait_for_access(run, route->to_region);
}

static void pass_access(gt_pipe_run *run, size_t region, gt_ns now) {
  const uint64_t number = gt_landing_take(&run->down[region]).of.number;
  if (number & LAST_FRAME) push(run, now, THERE, (uint32_t)number, 0);
  wait_for_access(run, region);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static gt_ns *phases_of(gt_pipe_run *run, size_t s) {
  return run->spec.result ? run->spec.result->stages[s].phases : run->unused;
}

/* Counts the wait of a stage before its pass: for a message on a link, and before that for a
   message that was not sent yet. */
static void count_wait(gt_pipe_run *run, size_t s, gt_ns now) {
  const stage_run *stage = &run->stages[s];
  gt_pipe_message message;
  gt_ns sent = now, *phases = phases_of(run, s);
  if (gt_pipe_needs(run->schedule, &stage->pass, &message) && route_of(run, &message)->from != s)
    sent = later(run->sent[place_of(run->schedule, &message)], stage->since);
  phases[GT_PHASE_TRANSFER] += now - sent;
  phases[GT_PHASE_BUBBLE] += sent - stage->since;
}

static void begin(gt_pipe_run *run, size_t s, gt_ns now) {
  stage_run *stage = &run->stages[s];
  gt_pipe_message message;
  const gt_ns end = now + run->took[stage->pass.span][stage->pass.kind];
  stage->busy = true;
  count_wait(run, s, now);
  phases_of(run, s)[stage->pass.kind] += end - now;
  if (stage->progress.step == 0) {
    if (run->spec.result)
      run->spec.result->stages[s].times[stage->progress.counter] = (gt_pipe_time){now, end};
    if (stage->progress.counter == 0) stage->first = now;
    stage->last = end;
  }
  gt_pipe_begun(&stage->progress);
  push(run, end, ENDED, s, 0);
  if (run->spec.choose && gt_pipe_sends(run->schedule, &stage->pass, &message))
    expect(run, &message, end + gt_from_seconds(route_s(route_of(run, &message))));
}

static void ask(gt_pipe_run *run, size_t s, gt_ns now) {
  stage_run *stage = &run->stages[s];
  if (stage->busy || stage->left == 0) return;
  if (run->spec.choose) run->spec.choose(run, s, now);
  const gt_pass *pass = gt_pipe_next(&stage->progress);
  if (!pass) return;
  stage->pass = *pass;
  begin(run, s, now);
}

/* Asks marked stages in their order.  A new mark counts in this round for a later stage, otherwise
   at the next event. */
static void ask_marked(gt_pipe_run *run, gt_ns now) {
  const size_t words = (run->schedule->stages + 63) / 64;
  for (size_t w = 0; w < words; w++) {
    uint64_t done = 0, left;
    while ((left = run->marked[w] & ~done) != 0) {
      const uint64_t first = left & (~left + 1);
      done = first | (first - 1);
      run->marked[w] &= ~first;
      ask(run, 64 * w + (size_t)__builtin_ctzll(first), now);
    }
  }
}

static gt_ns update_time(const gt_pipe_run *run, size_t s) {
  return run->problem->update_s ? gt_from_seconds(run->problem->update_s[s]) : 0;
}

/* Ends the step of a stage, after its last pass. */
static void end_step(gt_pipe_run *run, size_t s, gt_ns now) {
  run->stages[s].busy = true;
  if (run->stages[s].progress.step == 0) run->makespan = later(run->makespan, now);
  if (!run->problem->agree_s)
    push(run, now + update_time(run, s), UPDATED, s, 0);
  else if (stage_ended(&run->steps, s, now))
    for (size_t i = 0; i < run->problem->stages; i++)
      push(run, updates_from(&run->steps, i) + update_time(run, i), UPDATED, i, 0);
}

static void pass_ended(gt_pipe_run *run, size_t s, gt_ns now) {
  stage_run *stage = &run->stages[s];
  gt_pipe_message message;
  stage->busy = false;
  mark(run, s);
  stage->since = now;
  stage->left -= stage->pass.kind == GT_PASS_BW ? 2 : 1;
  if (gt_pipe_sends(run->schedule, &stage->pass, &message)) send(run, &message, now);
  if (stage->left == 0) end_step(run, s, now);
}

static size_t units(const gt_pipe_run *run) {
  return 3 * run->schedule->chunks * run->schedule->micro_batches;
}

static void updated(gt_pipe_run *run, size_t s, gt_ns now) {
  stage_run *stage = &run->stages[s];
  const size_t step = (size_t)stage->progress.step;
  run->finish[step] = later(run->finish[step], now);
  gt_pipe_next_step(&stage->progress);
  phases_of(run, s)[GT_PHASE_UPDATE] += update_time(run, s);
  phases_of(run, s)[GT_PHASE_STEP_END] += now - update_time(run, s) - stage->since;
  stage->since = now;
  stage->busy = false;
  mark(run, s);
  if (step + 1 < run->spec.steps)
    stage->left = units(run);
  else
    run->whole++;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void happen(gt_pipe_run *run, const gt_heap_entry *e) {
  gt_pipe_message message;
  switch ((event)(e->a & EVENT_MASK)) {
  case ENDED:
    pass_ended(run, e->b, e->at);
    break;
  case UPDATED:
    updated(run, e->b, e->at);
    break;
  case WAKE:
    mark(run, e->b);
    break;
  case ON_LINK:
    give_to_link(run, e->b, e->at);
    break;
  case FRAME:
    put_on_access(run, e->b, e->a >> EVENT_BITS, false, e->at);
    break;
  case LAST:
    put_on_access(run, e->b, e->a >> EVENT_BITS, true, e->at);
    break;
  case PASSED:
    pass_access(run, e->b, e->at);
    break;
  case THERE:
    message = message_at(run->schedule, e->b);
    deliver(run, &message);
    break;
  }
}

static void go(gt_pipe_run *run) {
  while (run->events.n > 0) {
    gt_heap_entry e = gt_heap_pop(&run->events);
    happen(run, &e);
    if (run->events.n > 0 && run->events.at[0].at == e.at) continue;
    ask_marked(run, e.at);
  }
}

static void open_wan(gt_pipe_run *run) {
  const gt_pipe_wan *wan = run->problem->wan;
  if (!wan) return;
  const size_t n = wan->nregions;
  run->links = GT_NEW_ARRAY(gt_wire, n * n);
  run->up = GT_NEW_ARRAY(gt_access, n);
  run->down = GT_NEW_ARRAY(gt_landing, n);
  for (size_t i = 0; i < n * n; i++) run->links[i].link = gt_link_start(wan->seed, i / n, i % n, 0);
  for (size_t i = 0; i < n; i++) {
    run->up[i].rate_bps = wan->up_bps ? wan->up_bps[i] : 0.0;
    gt_landing_open(&run->down[i], n, wan->down_bps ? wan->down_bps[i] : 0.0);
  }
}

static void open_spans(gt_pipe_run *run) {
  const gt_pipe_problem *problem = run->problem;
  const size_t n = problem->stages * problem->chunks;
  run->took = gt_alloc(n, sizeof *run->took);
  run->routes = GT_NEW_ARRAY(gt_pipe_route, 2 * n);
  for (size_t k = 0; k < n; k++) {
    const gt_pipe_span *span = &problem->spans[k];
    const gt_pipe_message out = {false, (uint32_t)k, 0}, in = {true, (uint32_t)k, 0};
    run->took[k][GT_PASS_F] = gt_from_seconds(span->forward_s);
    run->took[k][GT_PASS_B] = gt_from_seconds(span->backward_s);
    run->took[k][GT_PASS_W] = gt_from_seconds(span->weight_s);
    run->took[k][GT_PASS_BW] = run->took[k][GT_PASS_B] + run->took[k][GT_PASS_W];
    if (k > 0) run->routes[k] = gt_pipe_route_of(problem, &out);
    if (k + 1 < n) run->routes[n + k] = gt_pipe_route_of(problem, &in);
  }
}

static void open_stages(gt_pipe_run *run) {
  const gt_pipe_schedule *s = run->schedule;
  run->stages = GT_NEW_ARRAY(stage_run, s->stages);
  run->marked = GT_NEW_ARRAY(uint64_t, (s->stages + 63) / 64);
  for (size_t i = 0; i < s->stages; i++) {
    run->stages[i] = (stage_run){.progress = gt_pipe_progress_open(s, i), .left = units(run)};
    mark(run, i);
  }
}

static gt_pipe_run_times times_of(const gt_pipe_run *run) {
  const size_t steps = run->spec.steps, half = steps / 2;
  gt_pipe_run_times t = {.whole = run->whole == run->schedule->stages, .makespan = run->makespan};
  for (size_t s = 0; s < run->schedule->stages; s++)
    t.cost = later(t.cost, run->stages[s].last - run->stages[s].first);
  t.period =
      (run->finish[steps - 1] - (half > 0 ? run->finish[half - 1] : 0)) / (gt_ns)(steps - half);
  return t;
}

static void close_run(gt_pipe_run *run) {
  for (size_t s = 0; s < run->schedule->stages; s++)
    gt_pipe_progress_close(&run->stages[s].progress);
  for (size_t i = 0; run->down && i < run->problem->wan->nregions; i++)
    gt_landing_close(&run->down[i]);
  close_together(&run->steps);
  gt_heap_close(&run->events);
  void *owned[] = {run->stages, run->marked, run->took, run->routes, run->due,
                   run->sent,   run->links,  run->up,   run->down,   run->finish};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) gt_free(owned[i]);
}

gt_pipe_run_times gt_pipe_run_steps(const gt_pipe_run_spec *spec) {
  const gt_pipe_schedule *s = spec->schedule;
  gt_pipe_run run = {.spec = *spec,
                     .problem = spec->problem,
                     .schedule = s,
                     .due = GT_NEW_ARRAY(gt_ns, 2 * s->stages * s->chunks * s->micro_batches),
                     .sent = GT_NEW_ARRAY(gt_ns, 2 * s->stages * s->chunks * s->micro_batches),
                     .finish = GT_NEW_ARRAY(gt_ns, spec->steps)};
  open_spans(&run);
  open_wan(&run);
  open_stages(&run);
  run.steps = open_together(run.problem);
  push(&run, 0, WAKE, 0, 0);
  go(&run);
  gt_pipe_run_times times = times_of(&run);
  close_run(&run);
  return times;
}

/* ---- for choosers ---------------------------------------------------------------------------- */

void *gt_pipe_run_context(const gt_pipe_run *run) {
  return run->spec.context;
}

gt_ns gt_pipe_run_due(const gt_pipe_run *run, const gt_pipe_message *message, gt_ns now) {
  const gt_pipe_progress *to = &run->stages[route_of(run, message)->to].progress;
  if (gt_pipe_has(to, message)) return now;
  gt_ns due = run->due[place_of(run->schedule, message)];
  return due > now ? due : GT_NEVER;
}

void gt_pipe_run_wake(gt_pipe_run *run, size_t stage, gt_ns at) {
  mark(run, stage); /* until then the stage may choose again after every event */
  if (!run->problem->wan || run->stages[stage].wake == at) return;
  run->stages[stage].wake = at;
  push(run, at, WAKE, stage, 0);
}
