/* Adapts a pipeline to the network.  Once a step, before it announces its gradient, a region sends
   its measurements of its links to all others.  So when a step is committed, the region with the
   first stage knows the costs of all links, and decides (pipe_adapt.h).  It announces a new order
   with the next step; when that is committed, all regions have the order, and it applies.

   The sender measures the time of a message: until its acknowledgement, less half a round trip at
   either end.  Messages that follow each other without a pause are a run; its bits over its time
   are the link's rate.  The round trip is that of an echo at the start of the step.  In the region
   that starts the step first the links are idle, so the shorter one of both ends counts. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Kinds of notes: the range of a message of kind ADAPT.  Its value is 0; of a rate or round trip 2
   x the region at the other end + step % 2; of a pass or order step % 2. */
enum { NOTE_ACK, NOTE_ECHO, NOTE_ECHOED, NOTE_RATE, NOTE_RTT, NOTE_PASS, NOTE_ORDER, NOTES };

#define RUN_SIZES 16

typedef struct {
  gt_ns posted;
  double bits;
} sent_message;

/* The path to a peer. */
typedef struct {
  bool used;
  sent_message *sent; /* ring of the last `capacity` messages */
  int64_t nsent, acknowledged, landed;
  int64_t old;     /* messages up to this one are of earlier steps */
  gt_ns rtt;       /* of this step; 0: not known yet */
  gt_ns rtt_known; /* the shorter one of both ends, of the last step; 0: none */
  gt_ns run_from, run_until;
  double run_bits;
  size_t run_messages;
  /* Of this step: the largest rate of a run of 2^i messages or more, fewer than twice as many. */
  double rates[RUN_SIZES];
} path;

/* An announced order. */
typedef struct {
  int64_t *passes; /* gt_pipe_adapt_passes */
  size_t n;
  bool whole;
} told_order;

/* Changes of the order so far, for the summary; a checkpoint has their exact values. */
#define CHANGES_TOLD 12
typedef struct {
  int64_t all; /* of the order of passes */
  /* Changes of the number of micro-batches; those listed, with their first step and number. */
  int64_t others, told, steps[CHANGES_TOLD], micro_batches[CHANGES_TOLD];
} ps_changes;
#define PS_CHANGES (sizeof(ps_changes) / sizeof(int64_t))

struct ps_adapt {
  gt_pipe_adapt *adapt;
  size_t lead; /* the region that decides */
  size_t capacity;
  path *paths; /* nregions */
  /* Announced for step s: [s % 2][from * nregions + to], [s % 2]. */
  gt_pipe_cost *costs[2];
  told_order orders[2];
  gt_pipe_cost *links; /* of the current step */
  bool anew;           /* the checkpoint's order does not apply now, which is to be reported */
  ps_changes changes;
};

/* ---- open and close -------------------------------------------------------------------------- */

/* Returns more than can be in flight: all packets of a step, from each worker to each. */
static size_t packets_of(const gt_pipe_job *pipe) {
  const gt_pipe_layout *l = &pipe->layout;
  size_t most = 1, micro_batches = 0;
  for (size_t s = 0; s < l->stages; s++)
    if (l->places[s].workers > most) most = l->places[s].workers;
  for (size_t i = 0; i < gt_pipe_job_shapes(pipe); i++) {
    const size_t m = gt_pipe_job_shape(pipe, i)->layout.micro_batches;
    if (m > micro_batches) micro_batches = m;
  }
  return 4 * l->stages * l->chunks * micro_batches * most;
}

/* The PS orders no passes during a search for an order, so a large pipeline tries fewer orders. */
static size_t variants_of(const gt_pipe_layout *l) {
  const size_t variants = GT_PIPE_VARIANTS * 96 / (3 * l->stages * l->chunks * l->micro_batches);
  return variants > GT_PIPE_VARIANTS ? GT_PIPE_VARIANTS : variants < 50 ? 50 : variants;
}

static gt_pipe_adapt *adapt_of(const gt_pipe_job *pipe, bool decides) {
  gt_pipe_problem *others = GT_NEW_ARRAY(gt_pipe_problem, pipe->nothers);
  for (size_t i = 0; i < pipe->nothers; i++) others[i] = pipe->others[i]->problem;
  const gt_pipe_adapt_spec spec = {
      .problem = &pipe->problem,
      .others = others,
      .nothers = pipe->nothers,
      .schedule = pipe->layout.schedule,
      .search = {.seed = pipe->job->seed, .variants = variants_of(&pipe->layout)},
      .decides = decides};
  gt_pipe_adapt *adapt = gt_pipe_adapt_create(&spec);
  gt_free(others);
  return adapt;
}

void gt_ps_adapt_open(gt_ps *ps) {
  const gt_pipe_job *pipe = ps->spec.adapts;
  const size_t n = ps->spec.nregions;
  if (!pipe) return;
  struct ps_adapt *a = ps->adapt = GT_NEW(struct ps_adapt);
  a->lead = pipe->layout.places[0].region;
  a->adapt = adapt_of(pipe, a->lead == ps->spec.self);
  a->capacity = packets_of(pipe);
  a->paths = GT_NEW_ARRAY(path, n);
  a->links = GT_NEW_ARRAY(gt_pipe_cost, n * n);
  for (size_t i = 0; i < 2; i++) {
    a->costs[i] = GT_NEW_ARRAY(gt_pipe_cost, n * n);
    a->orders[i].passes = GT_NEW_ARRAY(int64_t, gt_pipe_adapt_passes(a->adapt));
  }
  for (size_t p = 0; p < n; p++) {
    a->paths[p].used = gt_pipe_adapt_uses(a->adapt, ps->spec.self, p);
    if (a->paths[p].used) a->paths[p].sent = GT_NEW_ARRAY(sent_message, a->capacity);
  }
}

void gt_ps_adapt_close(gt_ps *ps) {
  struct ps_adapt *a = ps->adapt;
  if (!a) return;
  gt_pipe_adapt_close(a->adapt);
  for (size_t p = 0; p < ps->spec.nregions; p++) gt_free(a->paths[p].sent);
  for (size_t i = 0; i < 2; i++) {
    gt_free(a->costs[i]);
    gt_free(a->orders[i].passes);
  }
  gt_free(a->links);
  gt_free(a->paths);
  gt_free(a);
}

const gt_pipe_schedule *gt_ps_schedule(const gt_ps *ps) {
  return ps->adapt ? gt_pipe_adapt_schedule(ps->adapt->adapt) : NULL;
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Reports the order that applies from the next step on. */
static void tell_choice(gt_ps *ps, const char *why) {
  char hash[GT_SHA256_HEX], choice[96];
  if (!ps->spec.host.decided) return;
  gt_pipe_hash(gt_pipe_adapt_schedule(ps->adapt->adapt), hash);
  const int used = snprintf(choice, sizeof choice, "%.12s from step %lld on", hash,
                            (long long)ps->totals.steps + 1);
  if (ps->spec.adapts->nothers > 0)
    snprintf(choice + used, sizeof choice - (size_t)used, ", %zu micro-batches",
             ps->stages.micro_batches);
  ps->spec.host.decided(ps->spec.host.ctx, "pipeline.schedule", choice, why);
}

static const char *rate_text(char *text, size_t size, double bps) {
  if (bps > 0) return gt_format_rate(text, size, bps);
  snprintf(text, size, "any rate");
  return text;
}

static void say(gt_ps *ps) {
  const gt_pipe_job *pipe = ps->spec.adapts;
  const struct ps_adapt *a = ps->adapt;
  const gt_pipe_adapt_reason why = gt_pipe_adapt_why(a->adapt);
  char reason[400], found[32], planned[32], here[32], there[32];
  if (a->lead != ps->spec.self)
    snprintf(reason, sizeof reason, "%s has decided so", pipe->job->regions[a->lead].name);
  else
    snprintf(reason, sizeof reason,
             "%s to %s has %s and %s one way, planned were %s and %s; a step takes %.4g s instead "
             "of %.4g s%s",
             pipe->job->regions[why.from].name, pipe->job->regions[why.to].name,
             rate_text(found, sizeof found, why.found.rate_bps),
             gt_format_time(here, sizeof here, why.found.latency_s),
             rate_text(planned, sizeof planned, why.planned.rate_bps),
             gt_format_time(there, sizeof there, why.planned.latency_s), why.after_s, why.before_s,
             why.back ? "; the order before it had fallen behind" : "");
  tell_choice(ps, reason);
}

static void say_anew(gt_ps *ps) {
  ps->adapt->anew = false;
  tell_choice(ps,
              "the checkpoint has orders of another plan, or of numbers of micro-batches that a "
              "step may not have now; the plan of the start is followed");
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void note(gt_ps *ps, size_t peer, int kind, size_t of, int64_t detail) {
  gt_ps_tell_member(
      ps, peer,
      (gt_frame_header){
          .kind = GT_MSG_ADAPT, .range = (uint32_t)kind, .value = of, .detail = (uint64_t)detail});
}

/* Sends a note to all other regions of the pipeline. */
static void note_all(gt_ps *ps, int kind, size_t of, int64_t detail) {
  for (size_t i = 0; i < ps->stage_group.n; i++)
    if (i != ps->stage_group.self) note(ps, ps->stage_group.regions[i], kind, of, detail);
}

/* True for a message of an evaluation. */
static bool is_score(const gt_frame_header *head) {
  return head->detail & 1;
}

void gt_ps_posted(gt_ps *ps, size_t peer, const gt_frame_header *head, double bytes, gt_ns now) {
  struct ps_adapt *a = ps->adapt;
  gt_outbox_left(ps->outbox, bytes);
  if (!a || is_score(head)) return;
  path *w = &a->paths[peer];
  w->sent[(size_t)w->nsent++ % a->capacity] = (sent_message){now, 8 * bytes};
}

void gt_ps_landed(gt_ps *ps, size_t peer, const gt_frame_header *head, gt_ns now) {
  gt_ps_at(ps, now);
  if (ps->adapt && !is_score(head) && !gt_ps_frozen(ps))
    note(ps, peer, NOTE_ACK, 0, ++ps->adapt->paths[peer].landed);
}

/* Returns the shorter one of two times; 0: none. */
static gt_ns sooner(gt_ns a, gt_ns b) {
  if (a == 0 || b == 0) return a + b;
  return a < b ? a : b;
}

static void count_run(path *w, double seconds) {
  size_t i = 0;
  while (i + 1 < RUN_SIZES && w->run_messages >> (i + 1) > 0) i++;
  w->rates[i] = fmax(w->rates[i], w->run_bits / seconds);
}

/* The message arrived half a round trip before its acknowledgement; its post appears half a round
   trip earlier at the receiver. */
static void acknowledged(const gt_ps *ps, path *w) {
  const size_t at = (size_t)w->acknowledged++ % ps->adapt->capacity;
  const gt_ns rtt = sooner(w->rtt, w->rtt_known), there = ps->now - rtt;
  if (w->nsent - w->acknowledged >= (int64_t)ps->adapt->capacity) return;
  const sent_message *m = &w->sent[at];
  if (w->acknowledged <= w->old || rtt == 0) return;
  if (m->posted >= w->run_until) {
    w->run_from = m->posted;
    w->run_bits = 0;
    w->run_messages = 0;
  }
  w->run_bits += m->bits;
  w->run_messages++;
  w->run_until = there;
  if (there > w->run_from) count_run(w, gt_seconds(there - w->run_from));
}

void gt_ps_adapt_begin(gt_ps *ps) {
  const gt_ns clock = gt_ps_clock(ps), now = clock > ps->now ? clock : ps->now;
  struct ps_adapt *a = ps->adapt;
  if (a && a->anew) say_anew(ps);
  for (size_t p = 0; a && p < ps->spec.nregions; p++) {
    if (!a->paths[p].used) continue;
    const gt_pipe_cost last = gt_pipe_adapt_cost(a->adapt, ps->spec.self, p);
    a->paths[p].rtt_known = gt_from_seconds(2 * last.latency_s);
    note(ps, p, NOTE_ECHO, 0, now);
  }
}

/* ---- announcing ------------------------------------------------------------------------------ */

/* Returns the fastest rate of the long runs: waiting for a frame of the other direction delays an
   acknowledgement and makes a rate too small, with less effect on a longer run. */
static double rate_of(const path *w) {
  size_t i = RUN_SIZES;
  while (i > 0 && w->rates[i - 1] <= 0) i--;
  if (i == 0) return 0;
  return i > 1 ? fmax(w->rates[i - 1], w->rates[i - 2]) : w->rates[0];
}

static gt_pipe_cost cost_of(int64_t rate_bps, gt_ns rtt) {
  return (gt_pipe_cost){(double)rate_bps, gt_seconds(rtt) / 2};
}

/* Announces the step's measurements of the path to region q, and clears them for the next step. */
static void tell_cost(gt_ps *ps, size_t q, size_t half) {
  path *w = &ps->adapt->paths[q];
  const int64_t rate_bps = llround(rate_of(w));
  ps->adapt->costs[half][ps->spec.self * ps->spec.nregions + q] = cost_of(rate_bps, w->rtt);
  note_all(ps, NOTE_RATE, 2 * q + half, rate_bps);
  note_all(ps, NOTE_RTT, 2 * q + half, w->rtt);
  w->old = w->nsent;
  w->rtt = w->run_from = w->run_until = 0;
  memset(w->rates, 0, sizeof w->rates);
}

void gt_ps_adapt_tell(gt_ps *ps) {
  struct ps_adapt *a = ps->adapt;
  if (!a) return;
  const size_t half = (size_t)(ps->totals.steps + 1) % 2;
  const int64_t *passes;
  const size_t n = gt_pipe_adapt_told(a->adapt, &passes);
  for (size_t q = 0; q < ps->spec.nregions; q++)
    if (a->paths[q].used) tell_cost(ps, q, half);
  for (size_t i = 0; i < n; i++) note_all(ps, NOTE_PASS, half, passes[i]);
  if (n > 0) note_all(ps, NOTE_ORDER, half, (int64_t)n);
}

/* ---- notes of others ------------------------------------------------------------------------- */

static gt_status wrong(const char *what, int64_t found, const char *needed) {
  return GT_FAIL(GT_ERR_FAULT, "it tells %s %lld of the pipeline's links; expected %s", what,
                 (long long)found, needed);
}

static gt_status check_cost(const gt_ps *ps, size_t from, uint64_t of, int64_t detail) {
  const struct ps_adapt *a = ps->adapt;
  if (of / 2 >= ps->spec.nregions || !gt_pipe_adapt_uses(a->adapt, from, (size_t)of / 2))
    return wrong("a cost of link", (int64_t)(of / 2), "one that it uses");
  return detail < 0 ? wrong("cost", detail, "0 or more") : GT_OK;
}

static gt_status check_order(const struct ps_adapt *a, size_t from, uint32_t kind, size_t half,
                             int64_t detail) {
  const told_order *order = &a->orders[half];
  if (from != a->lead) return wrong("order", detail, "none from a region that does not decide");
  if (order->whole || (kind == NOTE_PASS && order->n == gt_pipe_adapt_passes(a->adapt)))
    return wrong("pass", detail, "no more than a step has");
  if (kind == NOTE_PASS) return GT_OK;
  if (detail != (int64_t)order->n) return wrong("order of passes", detail, "all that were told");
  if (gt_pipe_adapt_check(a->adapt, order->passes, order->n) == GT_OK) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "it tells an order that is not sound: %s", gt_error_text());
}

gt_status gt_ps_adapt_check(const gt_ps *ps, size_t from, const gt_frame_header *head) {
  const struct ps_adapt *a = ps->adapt;
  const uint32_t kind = head->range;
  const uint64_t of = head->value;
  const int64_t detail = (int64_t)head->detail;
  const path *w = &a->paths[from];
  if (kind >= NOTES) return wrong("note", kind, "one that there is");
  if (kind == NOTE_RATE || kind == NOTE_RTT) return check_cost(ps, from, of, detail);
  if (of > (kind == NOTE_PASS || kind == NOTE_ORDER))
    return wrong("a note about", (int64_t)of, "one that there is");
  if (kind == NOTE_PASS || kind == NOTE_ORDER)
    return check_order(a, from, kind, (size_t)of, detail);
  if (!w->used) return wrong("note", kind, "none from a region that is no neighbour");
  if (kind == NOTE_ACK && (detail != w->acknowledged + 1 || detail > w->nsent))
    return wrong("that it has message", detail, "the next one that was sent");
  if (kind == NOTE_ECHOED && (detail < 0 || detail > ps->now))
    return wrong("an echo of time", detail, "one that has been");
  return GT_OK;
}

void gt_ps_adapt_note(gt_ps *ps, size_t from, const gt_frame_header *head) {
  struct ps_adapt *a = ps->adapt;
  const size_t of = (size_t)head->value;
  const int64_t detail = (int64_t)head->detail;
  gt_pipe_cost *cost = &a->costs[of % 2][from * ps->spec.nregions + of / 2];
  path *w = &a->paths[from];
  switch (head->range) {
  case NOTE_ACK:
    acknowledged(ps, w);
    break;
  case NOTE_ECHO:
    note(ps, from, NOTE_ECHOED, 0, detail);
    break;
  case NOTE_ECHOED:
    if (w->rtt == 0 || ps->now - detail < w->rtt) w->rtt = ps->now - detail;
    break;
  case NOTE_RATE:
    cost->rate_bps = cost_of(detail, 0).rate_bps;
    break;
  case NOTE_RTT:
    cost->latency_s = cost_of(0, detail).latency_s;
    break;
  case NOTE_PASS:
    a->orders[of].passes[a->orders[of].n++] = detail;
    break;
  default:
    a->orders[of].whole = true;
  }
}

/* ---- deciding -------------------------------------------------------------------------------- */

/* Returns the shorter round trip of both ends, which has waited less. */
static double shorter(double a, double b) {
  if (a <= 0 || b <= 0) return a > 0 ? a : b;
  return a < b ? a : b;
}

static void find_links(struct ps_adapt *a, size_t n, size_t half) {
  const gt_pipe_cost *told = a->costs[half];
  for (size_t i = 0; i < n * n; i++)
    a->links[i] = (gt_pipe_cost){told[i].rate_bps,
                                 shorter(told[i].latency_s, told[i % n * n + i / n].latency_s)};
}

static void set_micro_batches(gt_ps *ps) {
  ps->stages.micro_batches = gt_pipe_adapt_schedule(ps->adapt->adapt)->micro_batches;
}

/* Adds a change: from this step on, the order has this number of micro-batches instead of
   `from`. */
static void add_change(gt_ps *ps, int64_t step, size_t from, size_t micro_batches) {
  ps_changes *c = &ps->adapt->changes;
  c->all++;
  if (micro_batches == from) return;
  c->others++;
  if (c->told == CHANGES_TOLD) return;
  c->steps[c->told] = step;
  c->micro_batches[c->told++] = (int64_t)micro_batches;
}

bool gt_ps_adapt_committed(gt_ps *ps) {
  struct ps_adapt *a = ps->adapt;
  if (!a) return false;
  const size_t half = (size_t)ps->totals.steps % 2, from = ps->stages.micro_batches;
  told_order *order = &a->orders[half];
  if (order->whole && gt_pipe_adapt_take(a->adapt, order->passes, order->n) != GT_OK)
    gt_bug("an order that was checked: %s", gt_error_text());
  order->n = 0;
  order->whole = false;
  find_links(a, ps->spec.nregions, half);
  if (!gt_pipe_adapt_step(a->adapt, a->links)) return false;
  set_micro_batches(ps);
  add_change(ps, ps->totals.steps + 1, from, ps->stages.micro_batches);
  say(ps);
  return true;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static void save_changes(gt_ps *ps, gt_state *state) {
  gt_state_add(state, "adapt/", "changes", GT_TYPE_I64, &ps->adapt->changes, PS_CHANGES);
}

/* True if the loaded changes belong to another plan, which a resume has replaced: they end with
   another number of micro-batches. */
static bool is_other(const gt_ps *ps) {
  const ps_changes *c = &ps->adapt->changes;
  const int64_t last =
      c->told > 0 ? c->micro_batches[c->told - 1] : (int64_t)ps->spec.micro_batches;
  return c->others == c->told && last != (int64_t)ps->stages.micro_batches;
}

/* Call when the number in force is known.  Older checkpoints have no changes. */
static gt_status load_changes(gt_ps *ps, const gt_state *state) {
  ps_changes *c = &ps->adapt->changes;
  if (!gt_state_find(state, "adapt/", "changes")) return GT_OK;
  GT_TRY(gt_state_get(state, "adapt/", "changes", GT_TYPE_I64, c, PS_CHANGES));
  if (c->told < 0 || c->told > CHANGES_TOLD)
    return GT_FAIL(GT_ERR_CKPT, "adapt/changes has %" PRId64 " of them; expected 0 to %d", c->told,
                   CHANGES_TOLD);
  if (is_other(ps)) *c = (ps_changes){0};
  return GT_OK;
}

void gt_ps_adapt_save(gt_ps *ps, gt_state *state) {
  if (!ps->adapt) return;
  gt_pipe_adapt_save(ps->adapt->adapt, state);
  save_changes(ps, state);
}

gt_status gt_ps_adapt_load(gt_ps *ps, const gt_state *state) {
  if (!ps->adapt) return GT_OK;
  bool used;
  GT_TRY(gt_pipe_adapt_load(ps->adapt->adapt, state, &used));
  ps->adapt->anew = !used;
  set_micro_batches(ps);
  return load_changes(ps, state);
}

/* ---- summary -----------------------------------------------------------------------------------
   */

/* True if the region reports for those of its pipeline. */
static bool has_first(const gt_ps *ps) {
  for (size_t i = 0; i < ps->spec.nstages; i++)
    if (ps->spec.stages[i].counts) return true;
  return false;
}

char *gt_ps_changes_text(const gt_ps *ps, char *text, size_t size) {
  const gt_pipe_job *pipe = ps->spec.adapts;
  char replica[GT_REPLICA_TEXT];
  size_t used = 0;
  text[0] = '\0';
  if (!pipe || !has_first(ps)) return text;
  const ps_changes *c = &ps->adapt->changes;
  if (gt_job_replicas(pipe->job) > 1)
    used = (size_t)snprintf(
        text, size, "%s: ", gt_job_replica_text(pipe->job, pipe->replica, replica, sizeof replica));
  used +=
      (size_t)snprintf(text + used, size - used, "the order of passes changed %" PRId64 " time%s",
                       c->all, c->all == 1 ? "" : "s");
  if (pipe->nothers == 0) return text;
  used += (size_t)snprintf(text + used, size - used, "; %zu micro-batches", ps->spec.micro_batches);
  for (int64_t i = 0; i < c->told && used + 48 < size; i++)
    used += (size_t)snprintf(text + used, size - used, ", from step %" PRId64 " on %" PRId64,
                             c->steps[i], c->micro_batches[i]);
  if (c->others > c->told && used + 48 < size)
    snprintf(text + used, size - used, ", and %" PRId64 " more", c->others - c->told);
  return text;
}
