/* Several concurrent all-reduces over ranges of different length, each at its own pace, among all
   regions or some of them: a group is a set of regions with an exchange of its own, and all share
   the links.  Every member gets the same bits, the weighted mean of the contributions. */
#include "tests.h"
#include "geotrain/exchange.h"

#define REGIONS 5
#define GROUPS  3
#define RANGES  3
#define FLOATS  7 /* most in a range */
#define ROUNDS  9 /* most in a range */
#define PIECE   2
#define QUEUE   512
#define PLACES  24 /* of an outbox */

typedef struct {
  size_t n, members[REGIONS], next[REGIONS]; /* next: as in gt_exchange_spec, of members */
  gt_topology topology;
  size_t nranges;
} group_spec;

typedef struct {
  gt_frame_header head;
  size_t group;
  float body[FLOATS];
} message;

typedef struct {
  message queue[QUEUE];
  size_t first, count;
  size_t in_flight;    /* messages, until they are acknowledged */
  size_t acks[GROUPS]; /* acknowledgements in flight */
  int64_t acked[GROUPS];
} wire;

struct world;
struct member;

typedef struct {
  struct member *of;
  size_t id;
} range_name;

typedef struct member {
  struct world *world;
  size_t group, self; /* self: of the members */
  gt_outbox *outbox;
  gt_exchange *exchange;
  gt_allreduce *ranges[RANGES];
  range_name names[RANGES];
  double weights[REGIONS];
  float own[RANGES][FLOATS];
  int64_t made[RANGES];
  size_t turn;
  float means[RANGES][ROUNDS][FLOATS];
  int64_t applied[RANGES];
  bool left, told[REGIONS]; /* told: the member has learned that this one has finished */
} member;

typedef struct world {
  size_t ngroups;
  group_spec groups[GROUPS];
  member members[GROUPS][REGIONS];
  wire wires[REGIONS][REGIONS];
  gt_rng rng;
} world;

/* ---- the problem ----------------------------------------------------------------------------- */

static size_t floats_of(size_t range) {
  return range == 0 ? FLOATS : range == 1 ? 3 : 1;
}

/* Every region contributes to the ranges in turn, some more often than others: the last
   contribution can be to any of them. */
static size_t turns_of(size_t region) {
  return RANGES + (4 * region) % 7;
}

static int64_t rounds_of(const group_spec *spec, size_t region, size_t range) {
  return (int64_t)((turns_of(region) + spec->nranges - 1 - range) / spec->nranges);
}

static float value_of(size_t region, size_t range, int64_t round, size_t j) {
  return (float)(sin(1 + (double)region + 10 * (double)range + 100 * (double)round) + (double)j);
}

static double weight_of(size_t region) {
  return 1 + (double)(region % 3);
}

static const group_spec *spec_of(const member *m) {
  return &m->world->groups[m->group];
}

static size_t region_of(const member *m) {
  return spec_of(m)->members[m->self];
}

/* ---- gateway --------------------------------------------------------------------------------- */

static wire *wire_to(const member *m, size_t to) {
  return &m->world->wires[region_of(m)][spec_of(m)->members[to]];
}

static void send(void *ctx, size_t to, const gt_frame_header *head, const void *body, size_t bytes,
                 uint64_t cookie) {
  const member *m = ctx;
  world *w = m->world;
  wire *link = &w->wires[region_of(m)][to];
  if (head->kind == GT_MSG_ACK) {
    w->wires[to][region_of(m)].acks[m->group]++;
    return;
  }
  assert_true(link->count < QUEUE && cookie != 0);
  message *sent = &link->queue[(link->first + link->count++) % QUEUE];
  *sent = (message){.head = *head, .group = m->group};
  sent->head.message_bytes = bytes;
  memcpy(sent->body, body, bytes);
  link->in_flight++;
}

static void nonfinite(void *ctx, size_t from) {
  (void)ctx;
  fail_msg("a message of member %zu is called not finite", from);
}

/* Keeps the means of the range that are ready. */
static void keep_means(void *ctx) {
  const range_name *name = ctx;
  member *m = name->of;
  gt_vec mean;
  float share;
  while (gt_allreduce_next(m->ranges[name->id], &mean, &share)) {
    assert_true(m->applied[name->id] < ROUNDS);
    memcpy(m->means[name->id][m->applied[name->id]++], mean.data, mean.n * sizeof(float));
  }
}

/* ---- the world ------------------------------------------------------------------------------- */

static void open_member(world *w, size_t group, size_t self) {
  member *m = &w->members[group][self];
  const group_spec *spec = &w->groups[group];
  double all = 0;
  m->world = w;
  m->group = group;
  m->self = self;
  for (size_t i = 0; i < spec->n; i++) all += m->weights[i] = weight_of(spec->members[i]);
  for (size_t i = 0; i < spec->n; i++) m->weights[i] /= all;
  const gt_outbox_spec outbox = {.nregions = REGIONS,
                                 .self = spec->members[self],
                                 .outbox = PLACES,
                                 .window = 1,
                                 .with_memory = true,
                                 .gateway = {.ctx = m, .send = send}};
  m->outbox = gt_outbox_create(&outbox);
  gt_outbox_open(m->outbox, &(gt_outbox_use){.unit = 1, .origin = self});
  const gt_exchange_spec exchange_spec = {.nregions = spec->n,
                                          .self = self,
                                          .weights = m->weights,
                                          .inflight = PLACES,
                                          .with_memory = true,
                                          .topology = spec->topology,
                                          .next = spec->next,
                                          .piece = PIECE,
                                          .outbox = m->outbox,
                                          .regions = spec->members,
                                          .events = {.ctx = m, .nonfinite = nonfinite}};
  static const char *const owners[RANGES] = {"a/", "b/", "c/"};
  m->exchange = gt_exchange_create(&exchange_spec);
  for (size_t k = 0; k < spec->nranges; k++) {
    m->names[k] = (range_name){m, k};
    const gt_collective_spec c = {
        .owner = owners[k], .kind = GT_MSG_UPDATE, .changed = keep_means, .ctx = &m->names[k]};
    m->ranges[k] =
        gt_allreduce_open(m->exchange, &c, gt_vec_of(m->own[k], floats_of(k)), gt_vec_of(NULL, 0));
  }
  assert_int_equal(gt_exchange_ranges(m->exchange), spec->nranges);
  gt_exchange_start(m->exchange);
}

static void close_world(world *w) {
  for (size_t g = 0; g < w->ngroups; g++)
    for (size_t i = 0; i < w->groups[g].n; i++) {
      member *m = &w->members[g][i];
      for (size_t k = 0; k < w->groups[g].nranges; k++) gt_allreduce_close(m->ranges[k]);
      gt_exchange_close(m->exchange);
      gt_outbox_close(m->outbox);
    }
}

/* Returns the region's member of the group; NULL: none. */
static member *member_of(world *w, size_t group, size_t region, size_t *self) {
  for (*self = 0; *self < w->groups[group].n; ++*self)
    if (w->groups[group].members[*self] == region) return &w->members[group][*self];
  return NULL;
}

static void acknowledge(world *w, size_t a, size_t b, size_t group) {
  size_t self, peer;
  wire *link = &w->wires[a][b];
  const member *m = member_of(w, group, a, &self);
  link->acks[group]--;
  link->in_flight--;
  assert_true(gt_outbox_acknowledged(m->outbox, b, ++link->acked[group], false));
  member_of(w, group, b, &peer);
  gt_exchange_room(m->exchange, peer);
}

static void deliver(world *w, size_t a, size_t b) {
  wire *link = &w->wires[a][b];
  const message got = link->queue[link->first];
  size_t self, from;
  const member *m = member_of(w, got.group, b, &self);
  member_of(w, got.group, a, &from);
  link->first = (link->first + 1) % QUEUE;
  link->count--;
  assert_int_equal(gt_exchange_bytes(m->exchange, &got.head), got.head.message_bytes);
  must(gt_exchange_check(m->exchange, from, &got.head));
  const gt_receipt receipt = gt_exchange_receive(m->exchange, from, &got.head, got.body);
  assert_int_not_equal(receipt, GT_RECEIPT_NONFINITE);
  if (receipt == GT_RECEIPT_TAKEN) gt_outbox_ack(m->outbox, a, 1);
}

/* Contributes to the next range, unless it waits for its last round; several ranges can be in
   flight.  False: no more contributions. */
static bool contribute(member *m) {
  const size_t k = m->turn % spec_of(m)->nranges;
  if (m->turn == turns_of(region_of(m))) return false;
  if (gt_allreduce_waiting(m->ranges[k])) return true;
  m->turn++;
  m->made[k]++;
  for (size_t j = 0; j < floats_of(k); j++) m->own[k][j] = value_of(region_of(m), k, m->made[k], j);
  gt_allreduce_contribute(m->ranges[k]);
  keep_means(&m->names[k]);
  return true;
}

/* Announces that it has finished when everything it sent has been taken. */
static bool tell_done(world *w, member *m) {
  const group_spec *spec = spec_of(m);
  int64_t counts[RANGES];
  bool all = true;
  if (!m->left)
    for (size_t k = 0; k < spec->nranges; k++) {
      gt_allreduce_leave(m->ranges[k]);
      m->left = true;
      keep_means(&m->names[k]);
    }
  if (!gt_exchange_drained(m->exchange)) return false;
  for (size_t k = 0; k < spec->nranges; k++) counts[k] = gt_exchange_count(m->exchange, k);
  for (size_t i = 0; i < spec->n; i++) {
    if (i == m->self || m->told[i]) continue;
    const wire *link = wire_to(m, i);
    all = false;
    if (link->count > 0 || link->in_flight > 0) continue;
    m->told[i] = true;
    gt_exchange_peer(w->members[m->group][i].exchange, m->self, GT_PEER_DONE, counts);
  }
  return all;
}

/* True if all have finished and know it of each other, and nothing is in flight. */
static bool settled(const world *w) {
  for (size_t g = 0; g < w->ngroups; g++)
    for (size_t i = 0; i < w->groups[g].n; i++) {
      const member *m = &w->members[g][i];
      for (size_t k = 0; k < w->groups[g].n; k++)
        if (k != i && !m->told[k]) return false;
      if (!gt_exchange_settled(m->exchange)) return false;
    }
  return true;
}

static void step(world *w) {
  const size_t a = (size_t)gt_rng_below(&w->rng, REGIONS),
               b = (size_t)gt_rng_below(&w->rng, REGIONS),
               group = (size_t)gt_rng_below(&w->rng, w->ngroups);
  member *m = &w->members[group][gt_rng_below(&w->rng, w->groups[group].n)];
  const uint64_t what = gt_rng_below(&w->rng, 3);
  if (what == 0 && w->wires[a][b].count) deliver(w, a, b);
  if (what == 1 && w->wires[a][b].acks[group]) acknowledge(w, a, b, group);
  if (what == 2 && !contribute(m)) tell_done(w, m);
}

/* ---- laws ------------------------------------------------------------------------------------ */

/* Returns the mean over the members that contributed to the round. */
static double mean_of(const group_spec *spec, size_t range, int64_t round, size_t j) {
  double sum = 0, all = 0;
  for (size_t i = 0; i < spec->n; i++) {
    const size_t region = spec->members[i];
    if (rounds_of(spec, region, range) < round) continue;
    sum += weight_of(region) * (double)value_of(region, range, round, j);
    all += weight_of(region);
  }
  return sum / all;
}

static void assert_means(const world *w, size_t group) {
  const group_spec *spec = &w->groups[group];
  for (size_t k = 0; k < spec->nranges; k++) {
    int64_t most = 0;
    for (size_t i = 0; i < spec->n; i++)
      if (rounds_of(spec, spec->members[i], k) > most) most = rounds_of(spec, spec->members[i], k);
    const member *first = &w->members[group][0];
    for (size_t i = 0; i < spec->n; i++) {
      const member *m = &w->members[group][i];
      assert_int_equal(m->applied[k], most);
      assert_memory_equal(m->means[k], first->means[k], sizeof m->means[k]);
    }
    for (int64_t t = 1; t <= most; t++)
      for (size_t j = 0; j < floats_of(k); j++)
        assert_float_equal(first->means[k][t - 1][j], mean_of(spec, k, t, j), 1e-4);
  }
}

static void run(const group_spec *groups, size_t ngroups, uint64_t seed) {
  static world w;
  memset(&w, 0, sizeof w);
  w.ngroups = ngroups;
  w.rng = gt_rng_make(seed, GT_RNG_TEST, 3, 0);
  memcpy(w.groups, groups, ngroups * sizeof *groups);
  for (size_t g = 0; g < ngroups; g++)
    for (size_t i = 0; i < groups[g].n; i++) open_member(&w, g, i);
  for (int events = 0; !settled(&w); events++) {
    if (events == 1000000) fail_msg("seed %llu: it does not end", (unsigned long long)seed);
    step(&w);
  }
  for (size_t g = 0; g < ngroups; g++) assert_means(&w, g);
  close_world(&w);
}

#define CHAIN                                                                                      \
  { 1, 2, 2, 2, 3 }
#define CYCLE                                                                                      \
  { 3, 0, 4, 2, 1 }
#define HUB                                                                                        \
  { 1, 1, 1, 1, 1 }

static void test_ranges(void) {
  static const group_spec all[] = {
      {.n = 5, .members = {0, 1, 2, 3, 4}, .topology = GT_TOPOLOGY_MESH, .nranges = RANGES},
      {.n = 5, .members = {0, 1, 2, 3, 4}, .topology = GT_TOPOLOGY_HUB, .next = HUB, .nranges = 3},
      {.n = 5,
       .members = {0, 1, 2, 3, 4},
       .topology = GT_TOPOLOGY_TREE,
       .next = CHAIN,
       .nranges = 3},
      {.n = 5,
       .members = {0, 1, 2, 3, 4},
       .topology = GT_TOPOLOGY_RING,
       .next = CYCLE,
       .nranges = 3}};
  for (uint64_t seed = 0; seed < 200; seed++) run(&all[seed % 4], 1, seed);
}

static void test_members(void) {
  static const group_spec groups[GROUPS] = {
      {.n = 5,
       .members = {0, 1, 2, 3, 4},
       .topology = GT_TOPOLOGY_TREE,
       .next = CHAIN,
       .nranges = 2},
      {.n = 3, .members = {0, 2, 3}, .topology = GT_TOPOLOGY_HUB, .next = HUB, .nranges = 3},
      {.n = 2, .members = {3, 1}, .topology = GT_TOPOLOGY_MESH, .nranges = 1}};
  for (uint64_t seed = 0; seed < 100; seed++) run(groups, GROUPS, seed);
}

TESTS(test_ranges, test_members)
