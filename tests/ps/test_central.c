/* sync.central: each worker's gradient, or its copy of the model, crosses the WAN individually, and
   the model returns once for each; the sums of the central region are compared with a direct
   computation in the order of regions and workers; invalid messages are refused. */
#include "cases.h"
#include "world.h"

#define ROOT 1

static w_spec three(const char *strategy) {
  w_spec s = {.strategy = strategy,
              .nregions = 3,
              .workers = {3, 2, 1},
              .samples = {95, 60, 23},
              .by_samples = true,
              .options.period = 3,
              .optim.momentum = 0.9,
              .until = {.steps = 12},
              .topology = GT_TOPOLOGY_CENTRAL,
              .next = {ROOT, ROOT, ROOT},
              .link = {.bandwidth_bps = 1e5, .latency_s = 0.01},
              .seed = 11};
  return s;
}

/* ---- direct computation ---------------------------------------------------------------------- */

typedef struct {
  const world *w;
  gt_optim *optim[W_REGIONS];
  float params[W_REGIONS][W_PARAMS], mean[W_PARAMS];
  bool first;
} direct;

static gt_vec vec(float *data) {
  return gt_vec_of(data, W_PARAMS);
}

static void open_direct(direct *d, const world *w) {
  *d = (direct){.w = w};
  for (size_t r = 0; r < w->n; r++) {
    must(gt_optim_create(&d->optim[r], &w->spec.optim, W_PARAMS, true));
    for (size_t j = 0; j < W_PARAMS; j++) d->params[r][j] = w_start(j);
  }
}

static void close_direct(direct *d) {
  for (size_t r = 0; r < d->w->n; r++) gt_optim_close(d->optim[r]);
}

/* Batches are assigned in rank order. */
static int64_t batch_of(const direct *d, size_t region, int64_t step, size_t worker) {
  return step * (int64_t)d->w->spec.workers[region] + (int64_t)worker;
}

static int64_t samples_in(const direct *d, size_t region, int64_t step, size_t worker) {
  const gt_order order = w_order_of(&d->w->spec, region);
  return (int64_t)gt_order_batch_size(&order, batch_of(d, region, step, worker));
}

static bool is_bad(const direct *d, size_t region, int64_t step, size_t worker) {
  const int64_t every = d->w->spec.bad_every;
  return region == 0 && every && batch_of(d, region, step, worker) % every == every - 1;
}

static void gradient(const direct *d, size_t region, int64_t step, size_t worker, float *grads) {
  for (size_t j = 0; j < W_PARAMS; j++)
    grads[j] = (float)w_gradient(region, batch_of(d, region, step, worker), j,
                                 (double)d->params[region][j]);
}

static void add(direct *d, double weight, float *x) {
  if (d->first)
    gt_vec_set_scaled(vec(d->mean), (float)weight, vec(x));
  else
    gt_vec_axpy(vec(d->mean), (float)weight, vec(x));
  d->first = false;
}

static double total(const direct *d) {
  double sum = 0;
  for (size_t r = 0; r < d->w->n; r++) sum += d->w->weights[r];
  return sum;
}

/* Adds every gradient, weighted by its samples within the region and by the weight of the
   region. */
static void add_gradients(direct *d, size_t region, int64_t step) {
  int64_t all = 0;
  const size_t workers = d->w->spec.workers[region];
  for (size_t k = 0; k < workers; k++)
    if (!is_bad(d, region, step, k)) all += samples_in(d, region, step, k);
  for (size_t k = 0; k < workers; k++) {
    float grads[W_PARAMS];
    if (is_bad(d, region, step, k)) continue;
    gradient(d, region, step, k, grads);
    const double share = (double)samples_in(d, region, step, k) / (double)all;
    add(d, d->w->weights[region] * share / total(d), grads);
  }
}

static void direct_ssgd(direct *d, int64_t steps) {
  for (int64_t step = 0; step < steps; step++) {
    d->first = true;
    for (size_t r = 0; r < d->w->n; r++) add_gradients(d, r, step);
    gt_optim_step(d->optim[ROOT], vec(d->params[ROOT]), vec(d->mean), vec(NULL));
    for (size_t r = 0; r < d->w->n; r++) gt_vec_copy(vec(d->params[r]), vec(d->params[ROOT]));
  }
}

static int64_t local_step(direct *d, size_t region, int64_t step) {
  float grads[W_WORKERS][W_PARAMS], mean[W_PARAMS];
  const float *all[W_WORKERS];
  int64_t samples[W_WORKERS], sum = 0;
  const size_t workers = d->w->spec.workers[region];
  for (size_t k = 0; k < workers; k++) {
    gradient(d, region, step, k, grads[k]);
    all[k] = grads[k];
    sum += samples[k] = samples_in(d, region, step, k);
  }
  if (workers == 1)
    gt_vec_copy(vec(mean), vec(grads[0]));
  else
    gt_vec_mean(vec(mean), all, samples, workers);
  gt_optim_step(d->optim[region], vec(d->params[region]), vec(mean), vec(NULL));
  return sum;
}

/* Adds a region's model once for each of its workers, in the central region once for all. */
static void add_models(direct *d, size_t region, int64_t samples) {
  const int64_t n = region == ROOT ? 1 : (int64_t)d->w->spec.workers[region];
  for (int64_t k = 0; k < n; k++) {
    const double share = (double)(samples * (k + 1) / n - samples * k / n) / (double)samples;
    add(d, d->w->weights[region] * share / total(d), d->params[region]);
  }
}

static void direct_sma(direct *d, int64_t steps) {
  int64_t samples[W_REGIONS] = {0};
  for (int64_t step = 0; step < steps; step++) {
    for (size_t r = 0; r < d->w->n; r++) samples[r] += local_step(d, r, step);
    if ((step + 1) % d->w->spec.options.period != 0) continue;
    d->first = true;
    for (size_t r = 0; r < d->w->n; r++) add_models(d, r, samples[r]);
    for (size_t r = 0; r < d->w->n; r++) gt_vec_copy(vec(d->params[r]), vec(d->mean));
    memset(samples, 0, sizeof samples);
  }
}

static void check_direct(const w_spec *spec, void (*compute)(direct *d, int64_t steps)) {
  world *w = w_finished(spec);
  direct d;
  open_direct(&d, w);
  compute(&d, spec->until.steps);
  for (size_t r = 0; r < w->n; r++)
    w_check(w, memcmp(d.params[r], w->regions[r].params, sizeof d.params[r]) == 0);
  close_direct(&d);
  w_close(w);
}

static void test_ssgd_adds_in_the_order_of_workers(void) {
  w_spec s = three("ssgd");
  check_direct(&s, direct_ssgd);
  s.by_samples = false;
  check_direct(&s, direct_ssgd);
}

static void test_what_is_not_finite_is_left_out(void) {
  w_spec s = three("ssgd");
  s.bad_every = 8;
  s.nonfinite_limit = 100;
  check_direct(&s, direct_ssgd);
}

static void test_sma_adds_a_copy_for_every_worker(void) {
  w_spec s = three("sma");
  check_direct(&s, direct_sma);
}

/* It continues to aggregate for the others. */
static void test_the_central_region_is_done_first(void) {
  for (int k = 0; k < 2; k++) {
    w_spec s = three(k ? "sma" : "ssgd");
    s.until = (gt_ps_interval){.epochs = 1};
    s.samples[ROOT] = 10;
    world *w = w_finished(&s);
    w_check_epochs(w, 1);
    w_check_identical(w);
    w_close(w);
  }
}

/* ---- traffic --------------------------------------------------------------------------------- */

static void sent(const world *w, size_t from, size_t to, int64_t messages) {
  if (w->links[from][to].data_sent != messages) {
    w_print(w);
    fail_msg("%lld messages from %zu to %zu; expected %lld",
             (long long)w->links[from][to].data_sent, from, to, (long long)messages);
  }
}

static void test_a_message_for_every_worker(void) {
  static const char *const names[] = {"ssgd", "sma"};
  for (size_t k = 0; k < 2; k++) {
    w_spec s = three(names[k]);
    const int64_t rounds = k ? 4 : 12;
    world *w = w_finished(&s);
    for (size_t r = 0; r < 3; r++) {
      if (r == ROOT) continue;
      sent(w, r, ROOT, rounds * (int64_t)s.workers[r]);
      sent(w, ROOT, r, rounds * (int64_t)s.workers[r]);
    }
    sent(w, 0, 2, 0);
    sent(w, 2, 0, 0);
    w_close(w);
  }
}

/* A non-finite gradient is not sent, and a finished region gets its model once. */
static void test_what_does_not_cross(void) {
  w_spec s = three("ssgd");
  s.bad_every = 8; /* of 36 batches 4 */
  s.nonfinite_limit = 100;
  world *w = w_finished(&s);
  sent(w, 0, ROOT, 12 * 3 - 4);
  sent(w, ROOT, 0, 12 * 3);
  w_close(w);
  s = three("ssgd");
  s.until = (gt_ps_interval){.epochs = 1};
  s.samples[0] = 60; /* 2 steps of 3 batches */
  s.samples[2] = 90; /* 9 steps of one */
  w = w_finished(&s);
  sent(w, 0, ROOT, 6);
  sent(w, ROOT, 0, 2 * 3 + 7);
  sent(w, 2, ROOT, 9);
  sent(w, ROOT, 2, 9);
  w_close(w);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* The limit is never exceeded; a run resumed without it has the bits of an uninterrupted run. */
static void test_a_limit_on_bytes(void) {
  int stopped = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    w_spec s = w_random(seed % 2 ? "ssgd" : "sma", false, 2 + seed % 3, 8000 + seed);
    s.topology = GT_TOPOLOGY_CENTRAL;
    for (size_t i = 0; i < s.nregions; i++) s.next[i] = seed % s.nregions;
    s.until.epochs = 2;
    world *quiet = w_finished(&s);
    s.wan_bytes_limit = w_sent_bytes(quiet) * (0.3 + 0.02 * (double)(seed % 30));
    world *w = w_open(&s);
    while (!w_all_in(w, GT_PS_COMPLETE) && !w_all_in(w, GT_PS_STOPPED)) {
      w_check(w, w_step(w) && w->now < 600 * GT_SECOND);
      w_check(w, w_sent_bytes(w) <= s.wan_bytes_limit);
    }
    if (w_all_in(w, GT_PS_STOPPED)) {
      stopped++;
      w->spec.wan_bytes_limit = 0;
      w_crash(w);
      w_run_until(w, GT_PS_COMPLETE);
    }
    w_check_same(w, quiet);
    w_close(w);
    w_close(quiet);
  }
  assert_true(stopped > 40);
}

static void test_no_allocation_in_the_step_loop(void) {
  for (int k = 0; k < 4; k++) {
    w_spec s = three(k % 2 ? "ssgd" : "sma");
    s.until.steps = 60;
    s.outbox = 1 + (size_t)k / 2;
    world *w = w_open(&s);
    while (w_view(w, 0).steps < 20) w_check(w, w_step(w));
    int64_t before = gt_alloc_total();
    while (w_view(w, 0).steps < 50) w_check(w, w_step(w));
    w_check(w, gt_alloc_total() == before);
    w_close(w);
  }
}

/* ---- invalid messages ------------------------------------------------------------------------ */

static void refused(world *w, size_t from, size_t to, const gt_frame_header *head,
                    const char *words) {
  static const float body[W_MODEL] = {1, 1, 1};
  must_fail(gt_ps_message(w->regions[to].ps, from, head, body, w->now), GT_ERR_FAULT, words);
}

static gt_frame_header of_worker(void) {
  return (gt_frame_header){
      .kind = GT_MSG_UPDATE,
      .sequence = 1,
      .value = 1,
      .detail = 10,
      .message_bytes = W_PARAMS * sizeof(float),
      .flags = GT_FRAME_ROUTED,
      .route = {
          .origin = 0, .origin_rank = 1, .destination = ROOT, .count = W_PARAMS, .weight = 30}};
}

static void test_contributions(void) {
  w_spec s = three("ssgd");
  world *w = w_open(&s);
  const gt_frame_header head = of_worker();
  const float body[W_PARAMS] = {0};
  gt_frame_header h = head;
  h.flags = 0;
  refused(w, 0, ROOT, &h, "route");
  h = head, h.kind = GT_MSG_STATE;
  refused(w, 0, ROOT, &h, "kind 2");
  h = head, h.route.origin = 2;
  refused(w, 0, ROOT, &h, "of region 2");
  h = head, h.route.origin_rank = 0;
  refused(w, 0, ROOT, &h, "rank 0");
  h = head, h.route.destination_rank = 1;
  refused(w, 0, ROOT, &h, "rank 1");
  h = head, h.detail = 31;
  refused(w, 0, ROOT, &h, "31 of 30");
  h = head, h.route.weight = NAN;
  refused(w, 0, ROOT, &h, "samples");
  h = head, h.value = 0;
  refused(w, 0, ROOT, &h, "round 0");
  h = head, h.route.offset = 1, h.route.count--, h.message_bytes -= sizeof(float);
  refused(w, 0, ROOT, &h, "from 1 on");
  must(gt_ps_message(w->regions[ROOT].ps, 0, &head, body, w->now));
  h = head, h.sequence = 2, h.detail = 21;
  refused(w, 0, ROOT, &h, "21 of 30 samples; 10 of 30 are here");
  h.detail = 20, h.value = 2;
  refused(w, 0, ROOT, &h, "round 2");
  h.value = 1, h.route.weight = 31;
  refused(w, 0, ROOT, &h, "of 31");
  h.route.weight = 30;
  must(gt_ps_message(w->regions[ROOT].ps, 0, &h, body, w->now));
  h.sequence = 3;
  refused(w, 0, ROOT, &h, "before the last one was answered");
  w_close(w);
}

static gt_frame_header of_root(void) {
  return (gt_frame_header){
      .kind = GT_MSG_STATE,
      .sequence = 1,
      .value = 1,
      .detail = 3,
      .message_bytes = W_PARAMS * sizeof(float),
      .flags = GT_FRAME_ROUTED,
      .route = {
          .origin = ROOT, .destination = 0, .destination_rank = 1, .count = W_PARAMS, .weight = 1}};
}

static void test_answers(void) {
  w_spec s = three("ssgd");
  world *w = w_open(&s);
  const gt_frame_header head = of_root();
  const float body[W_PARAMS] = {0};
  gt_frame_header h = head;
  h.kind = GT_MSG_UPDATE;
  refused(w, ROOT, 0, &h, "kind 1");
  refused(w, 2, 0, &head, "region 2");
  h = head, h.route.destination = 2;
  refused(w, ROOT, 0, &h, "of region 2");
  h = head, h.route.destination_rank = 2;
  refused(w, ROOT, 0, &h, "rank 2 of 3");
  h = head, h.detail = 0;
  refused(w, ROOT, 0, &h, "rank 1 of 0");
  h = head, h.value = 2;
  refused(w, ROOT, 0, &h, "round 2");
  h = head, h.route.weight = 0;
  refused(w, ROOT, 0, &h, "weight 0");
  must(gt_ps_message(w->regions[0].ps, ROOT, &head, body, w->now));
  h = head, h.sequence = 2;
  refused(w, ROOT, 0, &h, "rank 1 of 3");
  h.route.destination_rank = 2, h.detail = 2;
  refused(w, ROOT, 0, &h, "rank 2 of 2");
  w_close(w);
}

TESTS(test_ssgd_adds_in_the_order_of_workers, test_what_is_not_finite_is_left_out,
      test_sma_adds_a_copy_for_every_worker, test_the_central_region_is_done_first,
      test_a_message_for_every_worker, test_what_does_not_cross, test_a_limit_on_bytes,
      test_no_allocation_in_the_step_loop, test_contributions, test_answers)
