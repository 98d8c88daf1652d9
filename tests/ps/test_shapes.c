/* Passes of a pipeline of two regions, a worker each, that changes the number of its micro-batches
   between steps: every pass of every step is made, each on buffers of its shape; a region that goes
   ahead sends before the other one has changed; two that do not agree find out. */
#include "internal.h"
#include "jobs.h"
#include "tests.h"

#define REGIONS 2
#define WAITING 64

typedef struct world world;

typedef struct {
  world *world;
  size_t id;
  gt_ps_host host;
  gt_ps_passes *passes;
  bool busy, ended;                 /* its worker makes a pass; has ended the step */
  size_t forward, landed[5], early; /* F of this step; packets that have landed, by shape */
} region;

typedef struct {
  size_t to;
  gt_frame_header head;
  uint64_t cookie;
} packet;

struct world {
  gt_job *job;
  gt_pipe_job *pipe;
  region regions[REGIONS];
  packet packets[WAITING]; /* in flight */
  size_t npackets;
};

/* ---- host ------------------------------------------------------------------------------------ */

static void on_pass(void *ctx, size_t worker, const gt_ps_order *order, const gt_pipe_order *pass,
                    bool begins, gt_ns cost) {
  region *r = ctx;
  (void)order, (void)begins;
  assert_int_equal(worker, 0);
  r->busy = true;
  r->forward += pass->kind == GT_PASS_F;
  const gt_pipe_job *shape = gt_pipe_job_shape(r->world->pipe, gt_ps_passes_shape(r->passes));
  assert_int_equal(cost, gt_ps_pass_time(shape, 0, pass->span, pass->kind));
}

static void on_end(void *ctx, size_t worker, const gt_ps_order *order) {
  (void)worker, (void)order;
  ((region *)ctx)->ended = true;
}

static void on_send(void *ctx, size_t to, const gt_frame_header *head, const gt_pipe_packet *p,
                    uint64_t cookie) {
  region *r = ctx;
  gt_frame_header copy = *head;
  copy.message_bytes = p->bytes;
  copy.from = (uint16_t)r->id;
  assert_true(r->world->npackets < WAITING);
  r->world->packets[r->world->npackets++] = (packet){to, copy, cookie};
}

static void on_land(void *ctx, size_t shape, const gt_pipe_packet *p, const void *payload) {
  region *r = ctx;
  const gt_pipe_layout *l = &gt_pipe_job_shape(r->world->pipe, shape)->layout;
  assert_ptr_equal(payload, r->world);
  assert_int_equal(p->count, l->micro_samples);
  assert_true(p->buffer < gt_pipe_landing_all(l, p->to_stage).count);
  r->landed[shape]++;
  r->early += shape != gt_ps_passes_shape(r->passes);
}

static gt_ns on_clock(void *ctx) {
  (void)ctx;
  return 0;
}

/* ---- world ----------------------------------------------------------------------------------- */

static void open_world(world *w) {
  static const char text[] =
      "name: shapes\nmodel: {name: gpt, layers: 2, width: 16, heads: 2, context: 8, untied: true}\n"
      "data: {path: d.h5}\ntrain: {until: {steps: 5}, batch: 8, optimizer: {lr: 0.1}}\n"
      "regions: [{name: a, ranks: 2}, {name: b, ranks: 2}]\n"
      "wan: {default: {bandwidth: 100 Mbit/s, latency: 20 ms}}\ncompute: {step: 0.1 s}\n"
      "pipeline: {stages: [{region: a, last: transformer.h.0}, {region: b}], micro_batches: 4, "
      "adapt: micro_batches, labels: send}\n";
  *w = (world){.job = job_as("%s", text)};
  gt_graph_spec model = gt_graph_spec_of(w->job);
  model.shape = (gt_sample_shape){1, 1, 9, 256, 256};
  model.text = true;
  model.kernels = gt_kernels_find("ref");
  must(gt_pipe_job_open(&w->pipe, w->job, &model, 0));
  for (size_t r = 0; r < REGIONS; r++) {
    w->regions[r] = (region){.world = w,
                             .id = r,
                             .host = {.ctx = &w->regions[r],
                                      .pass = on_pass,
                                      .end = on_end,
                                      .packet = on_send,
                                      .land = on_land,
                                      .clock = on_clock}};
    const ps_passes_spec spec = {
        .job = w->pipe, .region = r, .test_samples = 5, .host = &w->regions[r].host};
    must(gt_ps_passes_open(&w->regions[r].passes, &spec));
  }
}

static void close_world(world *w) {
  for (size_t r = 0; r < REGIONS; r++) gt_ps_passes_close(w->regions[r].passes);
  gt_pipe_job_close(w->pipe);
  gt_job_close(w->job);
}

static void order(world *w, size_t r, bool scores) {
  const gt_ps_order of = {.kind = scores ? GT_PS_EVAL : GT_PS_TRAIN, .count = 5};
  w->regions[r].ended = false;
  w->regions[r].forward = 0;
  must(gt_ps_passes_order(w->regions[r].passes, 0, &of));
}

static void change(world *w, size_t r, size_t micro_batches) {
  const size_t shape = gt_pipe_job_shape_of(w->pipe, micro_batches);
  must(gt_ps_passes_reorder(w->regions[r].passes,
                            gt_pipe_job_shape(w->pipe, shape)->layout.schedule));
  assert_int_equal(gt_ps_passes_shape(w->regions[r].passes), shape);
}

/* Delivers the packets in flight, in order. */
static gt_status deliver(world *w) {
  gt_status status = GT_OK;
  while (w->npackets > 0 && status == GT_OK) {
    const packet p = w->packets[0];
    w->npackets--;
    memmove(w->packets, w->packets + 1, w->npackets * sizeof *w->packets);
    if (p.cookie) must(gt_ps_passes_departed(w->regions[p.head.from].passes, p.cookie));
    status = gt_ps_passes_message(w->regions[p.to].passes, &p.head, w, GT_NEVER);
  }
  return status;
}

/* Passes of one region end until it waits. */
static bool run(world *w, size_t r) {
  bool any = false;
  for (; w->regions[r].busy; any = true) {
    w->regions[r].busy = false;
    must(gt_ps_passes_done(w->regions[r].passes, 0, 0, 0));
  }
  return any;
}

static void finish(world *w, size_t forward) {
  for (bool any = true; any;) {
    any = w->npackets > 0;
    must(deliver(w));
    for (size_t r = 0; r < REGIONS; r++) any |= run(w, r);
  }
  for (size_t r = 0; r < REGIONS; r++) {
    assert_true(w->regions[r].ended);
    assert_int_equal(w->regions[r].forward, forward);
    assert_int_equal(gt_ps_passes_samples(w->regions[r].passes, 0), 8);
  }
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* All numbers one after the other, with an evaluation of five samples between steps. */
static void every_number_in_turn(void) {
  static const size_t numbers[] = {4, 8, 8, 1, 2, 8, 4, 1};
  world w;
  open_world(&w);
  for (size_t k = 0; k < COUNT(numbers); k++) {
    const size_t m = numbers[k], n = 8 / m;
    for (size_t r = 0; r < REGIONS; r++) change(&w, r, m);
    if (k % 3 == 1) {
      for (size_t r = 0; r < REGIONS; r++) order(&w, r, true);
      finish(&w, (5 + n - 1) / n);
    }
    for (size_t r = 0; r < REGIONS; r++) order(&w, r, false);
    finish(&w, m);
    assert_int_equal(gt_ps_passes_share(w.regions[0].passes, 0), n);
  }
  assert_int_equal(w.regions[0].early + w.regions[1].early, 0);
  close_world(&w);
}

/* Region a has heard of all others and begins; b has not, and changes later. */
static void one_region_is_ahead(void) {
  static const size_t numbers[] = {4, 8, 2, 2, 1, 8, 4};
  world w;
  size_t changes = 0;
  open_world(&w);
  for (size_t k = 0; k < COUNT(numbers); k++) {
    const size_t m = numbers[k];
    w.regions[1].early = 0;
    change(&w, 0, m);
    order(&w, 0, false);
    run(&w, 0);
    must(deliver(&w));
    assert_true(w.regions[1].early > 0 || k == 0 || m == numbers[k - 1]);
    changes += w.regions[1].early > 0;
    change(&w, 1, m);
    order(&w, 1, false);
    finish(&w, m);
  }
  assert_int_equal(changes, 5);
  close_world(&w);
}

static void both_must_agree(void) {
  world w;
  open_world(&w);
  change(&w, 0, 8);
  order(&w, 0, false);
  run(&w, 0);
  must(deliver(&w));
  const gt_ps_order of = {.kind = GT_PS_TRAIN};
  must_fail(gt_ps_passes_order(w.regions[1].passes, 0, &of), GT_ERR_FAULT,
            "a step has 4 micro-batches here, and another region has "
            "sent some of 8");
  close_world(&w);
  /* in a step, no packet of another shape can come */
  open_world(&w);
  order(&w, 1, false);
  change(&w, 0, 2);
  order(&w, 0, false);
  run(&w, 0);
  must_fail(deliver(&w), GT_ERR_FAULT,
            "cannot go over to 2 micro-batches while worker 0 is in "
            "one of 4");
  w.npackets = 0;
  close_world(&w);
  /* a shape that there is not */
  open_world(&w);
  order(&w, 0, false);
  run(&w, 0);
  for (size_t i = 0; i < w.npackets; i++) w.packets[i].head.detail = 9 << 1;
  must_fail(deliver(&w), GT_ERR_FAULT, "micro-batches of shape 9; there are 4");
  w.npackets = 0;
  close_world(&w);
}

TESTS(every_number_in_turn, one_region_is_ahead, both_must_agree)
