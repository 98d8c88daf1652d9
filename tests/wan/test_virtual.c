/* ranks: 3; processors: 1 */
/* The gateway under the virtual clock: three regions run a small random program of timers; each
   timer sends a message.  The arrivals agree with the link model to the nanosecond, however long
   the ranks really take. */
#include "geotrain/net_mpi.h"
#include "internal.h"
#include "tests.h"

#define REGIONS     ((size_t)3)
#define LIMIT_S     20.0
#define PAYLOAD_MAX ((size_t)3 << 20)
#define LOG_MAX     4096
#define SEED        11
#define LAST        UINT32_C(1) /* range of a region's last message */
#define NO_EVENT    (GT_NEVER - 1)

static gt_peers *world;
static int rank;
static uint8_t *pool; /* the same bytes on every rank: payloads are parts of it */

/* One run; every rank can compute all of it. */
typedef struct {
  gt_link_spec links[REGIONS][REGIONS]; /* row: sender */
  double access_bps[REGIONS];
  /* Of the region's program; GT_NEVER: it has no program, and ends when it has received the last
     message of every other region */
  gt_ns end[REGIONS];
  double gap_s; /* mean time between timers */
  size_t size_max;
  int large_every; /* one message in so many has up to PAYLOAD_MAX bytes; 0: none */
  int hops;        /* how often a message is forwarded */
} scenario;

typedef struct {
  gt_ns at;
  uint64_t from, sequence, bytes, sent_at;
} entry;

typedef struct {
  const scenario *sc;
  gt_gateway *g;
  gt_ns at, safe;
  gt_ns timer;
  int64_t ntimers;
  uint64_t sent[REGIONS];
  int lasts;
  gt_rng nap;
  gt_ns nap_max;
  entry log[LOG_MAX];
  size_t nlog;
} side;

/* ---- the program ----------------------------------------------------------------------------- */

/* The action of a region's timer, by its number: every rank can compute it for every other. */
typedef struct {
  gt_ns gap; /* since the previous timer */
  size_t to, bytes;
} turn;

static turn turn_of(const scenario *sc, size_t region, int64_t number) {
  gt_rng rng = gt_rng_make(SEED, GT_RNG_TEST, region, (uint64_t)number);
  turn t = {.gap = 1 + gt_from_seconds(2 * sc->gap_s * gt_rng_uniform(&rng))};
  t.to = (region + 1 + gt_rng_below(&rng, REGIONS - 1)) % REGIONS;
  bool large = sc->large_every > 0 && number % sc->large_every == 0;
  t.bytes = gt_rng_below(&rng, (large ? PAYLOAD_MAX : sc->size_max) + 1);
  return t;
}

static void send(side *s, size_t to, size_t bytes, uint32_t range, uint64_t hops) {
  uint64_t sequence = ++s->sent[to];
  gt_frame_header head = {.kind = GT_MSG_UPDATE,
                          .sequence = sequence,
                          .value = (uint64_t)s->at,
                          .detail = hops,
                          .range = range};
  gt_gateway_send(s->g, to, &head, pool + sequence % 1000, bytes, sequence, s->at);
}

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  side *s = ctx;
  assert_int_equal(now, s->at);
  assert_true(now >= (gt_ns)head->value + gt_link_delay_min(&s->sc->links[peer][rank]));
  if (head->message_bytes)
    assert_memory_equal(payload, pool + head->sequence % 1000, head->message_bytes);
  assert_true(s->nlog < LOG_MAX);
  s->log[s->nlog++] = (entry){now, peer, head->sequence, head->message_bytes, head->value};
  s->lasts += head->range == LAST;
  if (head->detail > 0)
    send(s,
         (peer + head->sequence) % REGIONS == (size_t)rank ? peer
                                                           : (peer + head->sequence) % REGIONS,
         500, 0, head->detail - 1);
}

static void set_timer(side *s, gt_ns at) {
  s->timer = at < s->sc->end[rank] ? at : s->sc->end[rank];
}

static void on_timer(side *s) {
  size_t self = (size_t)rank;
  if (s->at == s->sc->end[self]) {
    for (size_t p = 0; p < REGIONS; p++)
      if (p != self) send(s, p, 8, LAST, 0);
    s->timer = GT_NEVER;
    return;
  }
  turn now = turn_of(s->sc, self, s->ntimers++), next = turn_of(s->sc, self, s->ntimers);
  send(s, now.to, now.bytes, 0, (uint64_t)s->sc->hops);
  set_timer(s, s->timer + next.gap);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void nap(side *s) {
  if (s->nap_max > 0 && gt_rng_below(&s->nap, 8) == 0)
    gt_sleep((gt_ns)gt_rng_below(&s->nap, (uint64_t)s->nap_max));
}

static void agree(side *s, gt_ns next) {
  gt_ns before = s->safe, deadline = gt_now() + gt_from_seconds(LIMIT_S);
  gt_backoff backoff = {0};
  gt_gateway_propose(s->g, next == GT_NEVER ? NO_EVENT : next);
  while (!gt_gateway_agreed(s->g, &s->safe)) {
    if (gt_now() > deadline)
      gt_panic(GT_ERR_LOST, "region %d waited %.0f s for an agreement at %.9f s", rank, LIMIT_S,
               gt_seconds(s->at));
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, GT_NEVER);
  }
  assert_true(s->safe >= before); /* an agreed time stays agreed */
}

static bool over(const side *s) {
  gt_ns end = s->sc->end[rank];
  return end == GT_NEVER ? s->lasts == (int)REGIONS - 1 : s->timer == GT_NEVER && s->at >= end;
}

static void turn_of_events(side *s) {
  while (!over(s)) {
    gt_ns frame = gt_gateway_arrival(s->g), link = gt_gateway_next(s->g, NULL), next = frame;
    if (link < next) next = link;
    if (s->timer < next) next = s->timer;
    if (next < s->at) next = s->at;
    if (next >= s->safe) {
      agree(s, next);
      continue;
    }
    s->at = next;
    nap(s);
    if (frame <= link && frame <= s->timer)
      gt_gateway_deliver(s->g, s->at);
    else if (link <= s->timer)
      gt_gateway_poll(s->g, s->at);
    else
      on_timer(s);
  }
}

/* Sends everything queued; then the others continue alone. */
static void leave(side *s) {
  for (gt_ns due; (due = gt_gateway_next(s->g, NULL)) != GT_NEVER;) {
    if (due > s->at) s->at = due;
    gt_gateway_poll(s->g, s->at);
  }
  gt_gateway_propose(s->g, GT_NEVER);
}

static double stream_of(const scenario *sc, size_t from) {
  return gt_link_stream_bps(&sc->links[from][rank], sc->access_bps[from]);
}

static side *run(const scenario *sc, uint64_t nap_seed, gt_ns nap_max) {
  side *s = GT_NEW(side);
  gt_ns delays[REGIONS * REGIONS] = {0};
  for (size_t i = 0; i < REGIONS * REGIONS; i++)
    if (i / REGIONS != i % REGIONS)
      delays[i] = gt_link_delay_min(&sc->links[i / REGIONS][i % REGIONS]);
  double streams[REGIONS];
  for (size_t p = 0; p < REGIONS; p++) streams[p] = stream_of(sc, p);
  gt_gateway_spec spec = {.nregions = REGIONS,
                          .names = (const char *const[]){"a", "b", "c"},
                          .self = (size_t)rank,
                          .links = sc->links[rank],
                          .access = {sc->access_bps[rank], sc->access_bps[rank]},
                          .stream_bps = streams,
                          .virtual_clock = true,
                          .seed = SEED,
                          .payload_max = PAYLOAD_MAX};
  gt_gateway_events events = {.ctx = s, .on_message = on_message};
  s->sc = sc;
  s->nap = gt_rng_make(nap_seed, GT_RNG_TEST, (uint64_t)rank, 0);
  s->nap_max = nap_max;
  if (sc->end[rank] == GT_NEVER)
    s->timer = GT_NEVER;
  else
    set_timer(s, turn_of(sc, (size_t)rank, 0).gap);
  /* Uses its own communicator, because a region can end while frames of the others are in
     flight. */
  MPI_Comm comm;
  MPI_Comm_dup(gt_peers_mpi(world), &comm);
  gt_peers *own = gt_peers_of_mpi(comm, true);
  s->g = gt_gateway_create(own, &spec, &events);
  gt_gateway_virtual(s->g, delays);
  turn_of_events(s);
  leave(s);
  gt_gateway_close(s->g, LIMIT_S);
  gt_peers_close(own);
  return s;
}

/* ---- expected results ------------------------------------------------------------------------ */

typedef struct {
  gt_ns arrive;
  size_t bytes;
  bool last;
  entry message;
} frame;

typedef struct {
  frame *at;
  size_t n, capacity;
} frames;

static void put_message(frames *fs, gt_link_state *link, const gt_link_spec *spec, entry m) {
  size_t left = m.bytes;
  do {
    const size_t bytes = gt_frame_take(&left, GT_FRAME_HEADER_BYTES, false);
    assert_true(fs->n < fs->capacity);
    fs->at[fs->n++] = (frame){gt_link_step(link, spec, NULL, bytes, (gt_ns)m.sent_at).arrive, bytes,
                              left == 0, m};
  } while (left > 0);
}

/* Adds every frame that region `from` sends to this one. */
static void put_region(frames *fs, const scenario *sc, size_t from) {
  gt_link_state link = gt_link_start(SEED, from, (size_t)rank, 0);
  uint64_t sequence = 0;
  gt_ns at = 0;
  if (sc->end[from] == GT_NEVER) return;
  for (int64_t i = 0;; i++) {
    turn t = turn_of(sc, from, i);
    at += t.gap;
    if (at >= sc->end[from]) break;
    if (t.to == (size_t)rank)
      put_message(fs, &link, &sc->links[from][rank],
                  (entry){0, from, ++sequence, t.bytes, (uint64_t)at});
  }
  put_message(fs, &link, &sc->links[from][rank],
              (entry){0, from, ++sequence, 8, (uint64_t)sc->end[from]});
}

static int by_arrival(const void *a, const void *b) {
  const frame *x = a, *y = b;
  if (x->arrive != y->arrive) return x->arrive < y->arrive ? -1 : 1;
  if (x->message.from != y->message.from) return x->message.from < y->message.from ? -1 : 1;
  return x < y ? -1 : 1; /* as sent */
}

typedef struct {
  const side *s;
  size_t n; /* messages that have passed */
} landed;

/* Compares the frames that pass the access with the log. */
static void check_landed(void *ctx, const gt_landing_frame *landing, gt_ns at) {
  landed *l = ctx;
  const frame *f = landing->of.frame;
  if (!f->last || at > l->s->sc->end[rank]) return;
  assert_true(l->n < l->s->nlog);
  entry expected = f->message;
  expected.at = at;
  assert_memory_equal(&l->s->log[l->n++], &expected, sizeof expected);
}

/* Checks the log by the link model alone: frames of all senders in the order of arrival, through
   this region's access. */
static void check_by_the_model(const side *s) {
  frames fs = {.capacity = 4 * (size_t)LOG_MAX};
  fs.at = GT_NEW_ARRAY(frame, fs.capacity);
  gt_landing down;
  landed l = {.s = s};
  gt_landing_open(&down, REGIONS, s->sc->access_bps[rank]);
  for (size_t p = 0; p < REGIONS; p++)
    if (p != (size_t)rank) put_region(&fs, s->sc, p);
  qsort(fs.at, fs.n, sizeof *fs.at, by_arrival);
  gt_landing_frame *landing = GT_NEW_ARRAY(gt_landing_frame, fs.n);
  for (size_t i = 0; i < fs.n; i++) {
    frame *f = &fs.at[i];
    landing[i] = (gt_landing_frame){.arrive = f->arrive,
                                    .from = f->message.from,
                                    .bytes = f->bytes,
                                    .stream_bps = stream_of(s->sc, f->message.from),
                                    .of.frame = f};
  }
  gt_landing_all(&down, landing, fs.n, check_landed, &l);
  assert_int_equal(l.n, s->nlog);
  gt_free(landing);
  gt_landing_close(&down);
  gt_free(fs.at);
}

static void check_order(const side *s) {
  uint64_t sequence[REGIONS] = {0};
  for (size_t i = 0; i < s->nlog; i++) {
    if (i > 0) assert_true(s->log[i].at >= s->log[i - 1].at);
    assert_int_equal(s->log[i].sequence, ++sequence[s->log[i].from]);
  }
}

/* Runs twice; in one run the ranks are slow, each at other moments.  Returns the log of the
   first. */
static side *run_twice(const scenario *sc) {
  side *quick = run(sc, 1, 0), *slow = run(sc, 2, 3 * GT_SECOND / 1000);
  assert_int_equal(quick->nlog, slow->nlog);
  assert_memory_equal(quick->log, slow->log, quick->nlog * sizeof(entry));
  check_order(quick);
  gt_free(slow);
  return quick;
}

static void done(side *s) {
  gt_free(s);
  assert_int_equal(gt_alloc_alive(), 2); /* the pool and the world */
}

/* 1 ms, 30 ms and 300 ms, different rates in the two directions, jitter. */
static scenario uneven(double end_s) {
  static const double latency_s[REGIONS][REGIONS] = {
      {0, 0.001, 0.3}, {0.001, 0, 0.03}, {0.3, 0.02, 0}};
  static const double bandwidth_bps[REGIONS][REGIONS] = {
      {0, 100e6, 50e6}, {20e6, 0, 100e6}, {30e6, 0, 0}};
  scenario sc = {.gap_s = 0.03, .size_max = 40000};
  for (size_t a = 0; a < REGIONS; a++) {
    sc.end[a] = gt_from_seconds(end_s);
    for (size_t b = 0; b < REGIONS; b++)
      sc.links[a][b] = (gt_link_spec){.bandwidth_bps = bandwidth_bps[a][b],
                                      .latency_s = latency_s[a][b],
                                      .jitter_s = latency_s[a][b] / 10,
                                      .back_s = latency_s[b][a]};
  }
  return sc;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void arrivals_are_those_of_the_link_model(void) {
  scenario sc = uneven(4);
  static const gt_link_outage outage = {0.5, 0.7};
  sc.large_every = 9;
  sc.links[1][0].outages = &outage;
  sc.links[1][0].noutages = 1;
  side *s = run_twice(&sc);
  assert_true(s->nlog > 60);
  check_by_the_model(s);
  done(s);
}

/* A message that is forwarded at once can be the next event in any region: chains through a third
   region are faster than the direct link. */
static void messages_that_cause_messages(void) {
  scenario sc = uneven(2);
  sc.hops = 5;
  side *s = run_twice(&sc);
  assert_true(s->nlog > 100);
  done(s);
}

/* Fast in one direction around the three regions, slow in the other: a region's message returns to
   it through both others sooner than over any direct link. */
static void a_chain_over_all_regions(void) {
  scenario sc = uneven(1.5);
  sc.hops = 9;
  for (size_t a = 0; a < REGIONS; a++) {
    sc.links[a][(a + 1) % REGIONS] = (gt_link_spec){.bandwidth_bps = 100e6, .latency_s = 0.002};
    sc.links[(a + 1) % REGIONS][a] = (gt_link_spec){.bandwidth_bps = 100e6, .latency_s = 0.3};
  }
  side *s = run_twice(&sc);
  assert_true(s->nlog > 150);
  done(s);
}

static void a_region_without_events(void) {
  for (size_t idle = 0; idle < REGIONS; idle++) {
    scenario sc = uneven(2);
    sc.end[idle] = GT_NEVER;
    side *s = run_twice(&sc);
    check_by_the_model(s);
    done(s);
  }
}

/* Messages to a region that has ended are dropped, and the others continue. */
static void a_region_that_ends_early(void) {
  scenario sc = uneven(3);
  sc.end[2] = gt_from_seconds(0.7);
  sc.end[1] = gt_from_seconds(2.2);
  side *s = run_twice(&sc);
  check_by_the_model(s);
  done(s);
}

/* All regions but one have no events: that one alone advances the time, one step per message. */
static void one_region_alone(void) {
  scenario sc = uneven(3);
  sc.end[0] = sc.end[1] = gt_from_seconds(0.01);
  sc.large_every = 4;
  side *s = run_twice(&sc);
  check_by_the_model(s);
  done(s);
}

static void two_senders_share_an_access(void) {
  scenario sc = uneven(4);
  sc.access_bps[0] = 5e6;
  sc.gap_s = 0.05;
  sc.size_max = 60000;
  for (size_t a = 1; a < REGIONS; a++) sc.links[0][a].latency_s = sc.links[a][0].latency_s = 0.04;
  sc.links[0][1].back_s = sc.links[1][0].back_s = sc.links[0][2].back_s = sc.links[2][0].back_s =
      0.04;
  side *s = run(&sc, 1, 0), *slow = run(&sc, 3, GT_SECOND / 200);
  assert_int_equal(s->nlog, slow->nlog);
  assert_memory_equal(s->log, slow->log, s->nlog * sizeof(entry));
  /* Its own access delays its messages, so only its receptions follow from the model alone. */
  if (rank == 0) check_by_the_model(s);
  double bytes = 0;
  for (size_t i = 0; i < s->nlog; i++) {
    if (rank != 0 && s->log[i].from != 0) continue;
    bytes += (double)s->log[i].bytes + GT_FRAME_HEADER_BYTES;
    assert_true(8 * bytes <= 5e6 * gt_seconds(s->log[i].at));
  }
  assert_true(8 * bytes > 5e5);
  check_order(s);
  gt_free(slow);
  done(s);
}

/* Many small messages over a long link: more are in flight than the window holds.  The link does
   not wait for slots. */
static void more_messages_than_slots(void) {
  scenario sc = uneven(1);
  sc.gap_s = 0.001;
  sc.size_max = 100;
  side *s = run_twice(&sc);
  assert_true(s->nlog > 300);
  check_by_the_model(s);
  done(s);
}

int main(void) {
  world = gt_net_start(LIMIT_S);
  rank = (int)world->rank;
  pool = gt_alloc(PAYLOAD_MAX + 1000, 1);
  gt_rng rng = gt_rng_make(SEED, GT_RNG_TEST, 77, 0);
  for (size_t i = 0; i < PAYLOAD_MAX + 1000; i++) pool[i] = (uint8_t)gt_rng_u64(&rng);
  int failed =
      RUN_TESTS(NULL, NULL, arrivals_are_those_of_the_link_model, messages_that_cause_messages,
                a_chain_over_all_regions, a_region_without_events, a_region_that_ends_early,
                one_region_alone, two_senders_share_an_access, more_messages_than_slots);
  gt_free(pool);
  gt_net_finalize(world, LIMIT_S);
  return failed;
}
