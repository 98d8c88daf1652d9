/* Accesses and rates found by a probe: streams over a known WAN are measured as a probe measures
   them, and the profile's WAN must carry the same at once. */
#include "tests.h"
#include "cases.h"
#include "internal.h"

#define N_MAX     6
#define LATENCY_S 0.005
#define STREAM_S  1.2
#define M         1e6
#define SHAPING   2 /* as in links.c */

/* Regions, and links in bit/s; up and down: accesses, 0: none. */
typedef struct {
  size_t n;
  double link[N_MAX * N_MAX], up[N_MAX], down[N_MAX];
} wan;

/* ---- streams over the link model ---- */

static int by_time(const void *a, const void *b) {
  const gt_landing_frame *x = a, *y = b;
  return (x->arrive > y->arrive) - (x->arrive < y->arrive);
}

/* The sender's links take one frame each in turn, as they become free. */
static void send_row(const wan *w, size_t from, const double *bits, gt_landing_frame **frames,
                     size_t *nframes) {
  gt_link_state links[N_MAX];
  gt_access up = {.rate_bps = w->up[from]};
  double left[N_MAX];
  for (size_t to = 0; to < w->n; to++) {
    links[to] = gt_link_start(1, from, to, 0);
    left[to] = to == from ? 0 : bits[from * w->n + to] / 8;
  }
  for (;;) {
    size_t next = w->n;
    for (size_t to = 0; to < w->n; to++)
      if (left[to] > 0 && (next == w->n || links[to].busy_until < links[next].busy_until))
        next = to;
    if (next == w->n) return;
    gt_link_spec spec = {
        .bandwidth_bps = w->link[from * w->n + next], .latency_s = LATENCY_S, .back_s = LATENCY_S};
    size_t bytes = left[next] < 65536 ? (size_t)left[next] + 1 : 65536;
    left[next] -= (double)bytes;
    frames[next][nframes[next]++] =
        (gt_landing_frame){.arrive = gt_link_step(&links[next], &spec, &up, bytes, 0).arrive,
                           .from = from,
                           .bytes = bytes,
                           .stream_bps = gt_link_stream_bps(&spec, up.rate_bps),
                           .of.number = from * w->n + next};
  }
}

static void passed(void *seconds, const gt_landing_frame *frame, gt_ns at) {
  ((double *)seconds)[frame->of.number] = gt_seconds(at) - LATENCY_S;
}

/* Streams of these bits, all started at once: seconds of each. */
static void carry(const wan *w, const double *bits, double *seconds) {
  gt_landing_frame *frames[N_MAX];
  size_t nframes[N_MAX] = {0};
  for (size_t r = 0; r < w->n; r++) {
    double all = 0;
    for (size_t from = 0; from < w->n; from++) all += bits[from * w->n + r];
    frames[r] = GT_NEW_ARRAY(gt_landing_frame, (size_t)(all / 8 / 65536) + w->n + 1);
  }
  for (size_t r = 0; r < w->n; r++) send_row(w, r, bits, frames, nframes);
  for (size_t r = 0; r < w->n; r++) {
    qsort(frames[r], nframes[r], sizeof *frames[r], by_time);
    gt_landing down;
    gt_landing_open(&down, w->n, w->down[r]);
    gt_landing_all(&down, frames[r], nframes[r], passed, seconds);
    gt_landing_close(&down);
    gt_free(frames[r]);
  }
}

/* ---- streams as with TCP: an access is divided evenly ---- */

/* The rate at which the links without a rate yet fill an access evenly. */
static double level_of(const wan *w, const double *left, const double *rate, size_t first,
                       size_t stride, double access) {
  double level = 0;
  for (size_t k = 0; access > 0 && k <= w->n; k++) {
    double rest = access;
    size_t open = 0;
    for (size_t i = 0, at = first; i < w->n; i++, at += stride) {
      if (left[at] <= 0) continue;
      if (rate[at] >= 0)
        rest -= rate[at];
      else if (w->link[at] <= level)
        rest -= w->link[at];
      else
        open++;
    }
    if (open == 0) return INFINITY;
    level = rest / (double)open;
  }
  return access > 0 ? level : INFINITY;
}

/* Rates of the streams that have bits left, starting with the narrowest access. */
static void share(const wan *w, const double *left, double *rate) {
  size_t all = w->n * w->n;
  for (size_t i = 0; i < all; i++) rate[i] = left[i] > 0 ? -1 : 0;
  for (;;) {
    double least = INFINITY;
    size_t first = 0, stride = 0;
    for (size_t r = 0; r < w->n; r++) {
      double up = level_of(w, left, rate, r * w->n, 1, w->up[r]),
             down = level_of(w, left, rate, r, w->n, w->down[r]);
      if (up < least) least = up, first = r * w->n, stride = 1;
      if (down < least) least = down, first = r, stride = w->n;
    }
    if (stride == 0) break;
    for (size_t i = 0, at = first; i < w->n; i++, at += stride)
      if (rate[at] < 0) rate[at] = fmin(w->link[at], least);
  }
  for (size_t i = 0; i < all; i++)
    if (rate[i] < 0) rate[i] = w->link[i];
}

static void carry_evenly(const wan *w, const double *bits, double *seconds) {
  double left[N_MAX * N_MAX], rate[N_MAX * N_MAX];
  size_t all = w->n * w->n;
  memcpy(left, bits, all * sizeof *left);
  for (double now = 0;;) {
    double step = INFINITY;
    share(w, left, rate);
    for (size_t i = 0; i < all; i++)
      if (left[i] > 0) step = fmin(step, left[i] / rate[i]);
    if (isinf(step)) return;
    now += step;
    for (size_t i = 0; i < all; i++) {
      if (left[i] <= 0) continue;
      left[i] -= step * rate[i];
      if (left[i] < 1) left[i] = 0, seconds[i] = now;
    }
  }
}

/* ---- a probe of the WAN ---- */

static bool evenly; /* the WAN that is probed */

static void go(const wan *w, const double *bits, double *seconds) {
  if (evenly)
    carry_evenly(w, bits, seconds);
  else
    carry(w, bits, seconds);
}

static double noisy(double value, double noise, gt_rng *rng) {
  /* disturbances only reduce a rate */
  return value * (1 - noise * (double)gt_rng_below(rng, 1000) / 1000);
}

static void measure_alone(const wan *w, gt_probe_link *links, double noise, gt_rng *rng) {
  for (size_t i = 0; i < w->n * w->n; i++) {
    double bits[N_MAX * N_MAX] = {0}, seconds[N_MAX * N_MAX] = {0};
    if (i / w->n == i % w->n) continue;
    bits[i] = STREAM_S * w->link[i];
    go(w, bits, seconds);
    links[i] = (gt_probe_link){.latency_s = LATENCY_S,
                               .bandwidth_bps = noisy(bits[i] / seconds[i], noise, rng)};
  }
}

static void measure_together(const wan *w, gt_probe_link *links, double noise, gt_rng *rng) {
  double rate[N_MAX * N_MAX], bits[N_MAX * N_MAX] = {0}, seconds[N_MAX * N_MAX] = {0};
  size_t all = w->n * w->n;
  for (size_t i = 0; i < all; i++) rate[i] = links[i].bandwidth_bps;
  for (int round = 0; round < GT_PROBE_ROUNDS; round++) {
    for (size_t i = 0; i < all && round <= SHAPING; i++) bits[i] = STREAM_S * rate[i];
    go(w, bits, seconds);
    for (size_t i = 0; i < all; i++) {
      if (bits[i] <= 0) continue;
      rate[i] = noisy(bits[i] / seconds[i], noise, rng);
      links[i].together[round] = (gt_probe_stream){bits[i], bits[i] / rate[i]};
    }
  }
}

/* The WAN according to the profile. */
static wan probed(const wan *w, double noise, gt_rng *rng) {
  gt_probe_link links[N_MAX * N_MAX] = {{0}};
  wan said = {.n = w->n};
  measure_alone(w, links, noise, rng);
  measure_together(w, links, noise, rng);
  gt_probe_access(links, w->n, said.up);
  memcpy(said.down, said.up, sizeof said.up);
  for (size_t i = 0; i < w->n * w->n; i++) said.link[i] = links[i].profile_bps;
  return said;
}

static wan plainly_probed(const wan *w) {
  gt_rng rng = gt_rng_make(1, GT_RNG_COMPUTE, 0, 0);
  return probed(w, 0, &rng);
}

/* Seconds until every region has sent a message of this size to every other. */
static double exchange_s(const wan *w, double bits_each) {
  double bits[N_MAX * N_MAX], seconds[N_MAX * N_MAX] = {0}, last = 0;
  for (size_t i = 0; i < w->n * w->n; i++) bits[i] = i / w->n == i % w->n ? 0 : bits_each;
  carry(w, bits, seconds);
  for (size_t i = 0; i < w->n * w->n; i++) last = fmax(last, seconds[i]);
  return last;
}

static void assert_near(const char *what, double found, double needed, double share) {
  if (!(fabs(found - needed) <= share * needed))
    fail_msg("%s: found %.4g, needed %.4g", what, found, needed);
}

static void links_of(wan *w, double bps) {
  for (size_t i = 0; i < w->n * w->n; i++) w->link[i] = i / w->n == i % w->n ? 0 : bps;
}

static void assert_exchange(const wan *w, const wan *said) {
  assert_near("seconds of an exchange at once", exchange_s(said, 40 * M), exchange_s(w, 40 * M),
              0.03);
}

/* ---- cases ---- */

/* Each region has an access that is slower than the sum of its links; each single link is faster
   than the access. */
static void test_shared_by_all(void) {
  for (size_t n = 3; n <= N_MAX; n++) {
    wan w = {.n = n};
    links_of(&w, 100 * M);
    for (size_t r = 0; r < n; r++) w.up[r] = w.down[r] = 50 * M;
    wan said = plainly_probed(&w);
    for (size_t r = 0; r < n; r++) assert_near("access", said.up[r], 50 * M, 0.02);
    for (size_t i = 1; i < n; i++) assert_near("a link alone", said.link[i], 50 * M, 0.02);
    assert_exchange(&w, &said);
  }
}

/* One region has an access; it slows the others' links, but they have no access. */
static void test_shared_by_one(void) {
  wan w = {.n = 4, .up = {60 * M}, .down = {60 * M}};
  links_of(&w, 50 * M);
  wan said = plainly_probed(&w);
  assert_near("access", said.up[0], 60 * M, 0.03);
  for (size_t r = 1; r < 4; r++) assert_true(said.up[r] == 0);
  for (size_t i = 1; i < 4; i++) assert_near("a link alone", said.link[i], 50 * M, 0.02);
  assert_exchange(&w, &said);
}

/* Links that differ: the slow ones reach their own rates, the fast ones share the rest. */
static void test_links_that_differ(void) {
  static const double pairs[4][4] = {
      {0, 100, 20, 100}, {100, 0, 100, 100}, {20, 100, 0, 100}, {100, 100, 100, 0}};
  wan w = {.n = 4, .up = {120 * M}, .down = {120 * M}};
  for (size_t i = 0; i < 16; i++) w.link[i] = pairs[i / 4][i % 4] * M;
  wan said = plainly_probed(&w);
  assert_near("access", said.up[0], 120 * M, 0.03);
  assert_near("the slow link", said.link[2], 20 * M, 0.02);
  assert_near("a fast link", said.link[1], 100 * M, 0.02);
  assert_exchange(&w, &said);
}

/* An access that receives faster than it sends cannot be expressed: each link gets its rate at
   once. */
static void test_other_rate_each_way(void) {
  wan w = {.n = 3, .up = {30 * M}};
  links_of(&w, 100 * M);
  wan said = plainly_probed(&w);
  for (size_t r = 0; r < 3; r++) assert_true(said.up[r] == 0);
  assert_near("sent", said.link[1], 15 * M, 0.02);
  assert_near("received", said.link[3], 100 * M, 0.02);
  assert_exchange(&w, &said);
}

static void test_nothing_shared(void) {
  wan w = {.n = 4};
  links_of(&w, 100 * M);
  w.link[1] = 10 * M;
  gt_rng rng = gt_rng_make(2, GT_RNG_COMPUTE, 0, 0);
  for (size_t k = 0; k < cases(200, 40); k++) {
    wan said = probed(&w, 0.1, &rng);
    for (size_t r = 0; r < 4; r++) assert_true(said.up[r] == 0);
    for (size_t i = 0; i < 16; i++)
      if (w.link[i] > 0) assert_near("a link", said.link[i], w.link[i], 0.11);
  }
}

/* Two regions: a link that carries less while the other direction is in use. */
static void test_two_regions(void) {
  gt_probe_link links[4] = {{0}};
  double access[2];
  for (int i = 1; i < 3; i++) {
    links[i] = (gt_probe_link){.bandwidth_bps = 100 * M, .fit_bandwidth_bps = 98 * M};
    for (int k = 0; k < GT_PROBE_ROUNDS; k++) links[i].together[k] = (gt_probe_stream){60 * M, i};
  }
  gt_probe_access(links, 2, access);
  assert_true(access[0] == 0 && access[1] == 0);
  assert_near("slowed to", links[1].profile_bps, 60 * M, 1e-9);
  assert_near("slowed to", links[2].profile_bps, 30 * M, 1e-9);
}

/* Streams that share a rate unevenly, with changes over time. */
static void test_uneven(void) {
  static const double first[] = {30, 35, 20};
  gt_probe_link links[9] = {{0}};
  double access[3];
  for (size_t i = 0; i < 9; i++) {
    if (i / 3 == i % 3) continue;
    links[i] = (gt_probe_link){.bandwidth_bps = 50 * M};
    bool is_first = (i % 3 + 3 - i / 3) % 3 == 1;
    for (int k = 0; k < GT_PROBE_ROUNDS; k++)
      links[i].together[k] =
          (gt_probe_stream){(is_first ? first[k % 3] : 50 - first[k % 3]) * M, 1};
  }
  gt_probe_access(links, 3, access);
  for (size_t r = 0; r < 3; r++) assert_near("access", access[r], 50 * M, 1e-9);
  for (size_t i = 0; i < 9; i++)
    if (i / 3 != i % 3) assert_near("a link alone", links[i].profile_bps, 50 * M, 1e-9);
}

/* Rates that drop after the first second: both an access and a single link get the sustained
   rate. */
static void test_sustained(void) {
  gt_probe_link links[9] = {{0}};
  double access[3];
  for (size_t i = 0; i < 9; i++) {
    if (i / 3 == i % 3) continue;
    links[i] = (gt_probe_link){.bandwidth_bps = 100 * M, .sustained_bps = 40 * M};
    for (int k = 0; k < GT_PROBE_ROUNDS; k++) links[i].together[k] = (gt_probe_stream){50 * M, 1};
  }
  gt_probe_access(links, 3, access);
  for (size_t r = 0; r < 3; r++) assert_near("access", access[r], 80 * M, 1e-9);
  assert_near("a link alone", links[1].profile_bps, 100 * M, 1e-9);
  for (size_t i = 0; i < 9; i++)
    for (int k = 0; k < GT_PROBE_ROUNDS && i / 3 != i % 3; k++)
      links[i].together[k] = (gt_probe_stream){100 * M, 1};
  gt_probe_access(links, 3, access);
  assert_true(access[0] == 0);
  assert_near("a link alone", links[1].profile_bps, 40 * M, 1e-9);
}

/* ---- any WAN ---- */

static double one_of(gt_rng *rng, const double *values, size_t n) {
  return values[gt_rng_below(rng, n)] * M;
}

static wan random_wan(gt_rng *rng, bool both_ways) {
  static const double rates[] = {10, 20, 50, 100, 200}, accesses[] = {0, 0, 40, 80, 150};
  wan w = {.n = 2 + gt_rng_below(rng, N_MAX - 1)};
  for (size_t i = 0; i < w.n * w.n; i++) w.link[i] = i / w.n == i % w.n ? 0 : one_of(rng, rates, 5);
  for (size_t r = 0; r < w.n; r++) {
    w.up[r] = one_of(rng, accesses, 5);
    w.down[r] = both_ways ? w.up[r] : one_of(rng, accesses, 5);
  }
  return w;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The relative error of the time of streams at once in the profile's WAN: for messages of one size,
   or for what each link carried in the known WAN, as in the probe's last rounds. */
static double off_by(const wan *w, const wan *said, bool equal) {
  double bits[N_MAX * N_MAX], seconds[2][N_MAX * N_MAX] = {{0}}, last[2] = {0};
  size_t all = w->n * w->n;
  for (size_t i = 0; i < all; i++) bits[i] = i / w->n == i % w->n ? 0 : 40 * M;
  for (int round = 0; round < 3 && !equal; round++) {
    go(w, bits, seconds[0]);
    for (size_t i = 0; i < all; i++) bits[i] = bits[i] > 0 ? STREAM_S * bits[i] / seconds[0][i] : 0;
  }
  go(w, bits, seconds[0]);
  carry(said, bits, seconds[1]);
  for (size_t i = 0; i < all; i++) {
    last[0] = fmax(last[0], seconds[0][i]);
    last[1] = fmax(last[1], seconds[1][i]);
  }
  return fabs(last[1] / last[0] - 1);
}

static void assert_near_enough(bool both_ways, bool equal, double most) {
  double off[300];
  const size_t n = cases(COUNT(off), 100);
  gt_rng rng = gt_rng_make(3, GT_RNG_COMPUTE, both_ways, 0);
  for (size_t k = 0; k < n; k++) {
    wan w = random_wan(&rng, both_ways), said = probed(&w, 0.03, &rng);
    off[k] = off_by(&w, &said, equal);
  }
  qsort(off, n, sizeof *off, by_value);
  print_message("%s, %s, %s: off by %.1f%% in the median, %.1f%% in 19 of 20, %.1f%% at most\n",
                evenly ? "TCP" : "emulated", both_ways ? "one rate both ways" : "a rate each way",
                equal ? "equal messages" : "streams as measured", 100 * off[n / 2],
                100 * off[n * 19 / 20], 100 * off[n - 1]);
  assert_true(off[n / 2] < 0.04 && off[n * 19 / 20] < most);
}

/* Emulated links take turns at the receiver's access, as they do in a simulation, frame by frame;
   TCP streams divide it evenly at any time. */
static void test_any(void) {
  assert_near_enough(true, true, 0.05);
  assert_near_enough(true, false, 0.25);
  evenly = true;
  assert_near_enough(true, true, 0.05);
  assert_near_enough(true, false, 0.25);
  assert_near_enough(false, true, 0.05);
  assert_near_enough(false, false, 0.25);
  evenly = false;
}

TESTS(test_shared_by_all, test_shared_by_one, test_links_that_differ, test_other_rate_each_way,
      test_nothing_shared, test_two_regions, test_uneven, test_sustained, test_any)
