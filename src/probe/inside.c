/* Messages inside a region, over MPI: between its PS and each of its workers and, for a fleet,
   between its workers. */
#include <math.h>
#include <string.h>

#include "geotrain/net_mpi.h"
#include "internal.h"

/* ---- pairs of workers: representatives, and partners by round -------------------------------- */

void gt_probe_points(const char (*hosts)[GT_PROBE_BOOT_ID], size_t n, bool all, size_t *point) {
  for (size_t i = 0; i < n; i++) {
    size_t first = all ? i : 0;
    while (strcmp(hosts[first], hosts[i]) != 0) first++;
    point[i] = first;
  }
}

size_t gt_probe_point_rounds(const size_t *point, size_t n) {
  size_t points = 0;
  for (size_t i = 0; i < n; i++) points += point[i] == i;
  return points < 2 ? 0 : points - 1 + points % 2;
}

size_t gt_probe_point_partner(const size_t *point, size_t n, size_t round, size_t self) {
  size_t points = 0, own = 0;
  if (point[self] != self) return n;
  for (size_t i = 0; i < n; i++) {
    if (i == self) own = points;
    points += point[i] == i;
  }
  const size_t other = gt_probe_partner(points, round, own);
  if (other >= points) return n;
  size_t at = 0;
  for (size_t i = 0; i < n; i++)
    if (point[i] == i && at++ == other) return i;
  return n;
}

size_t gt_probe_point_second(const size_t *point, size_t n, size_t first) {
  for (size_t i = 0; i < n; i++)
    if (i != first && point[i] == first) return i;
  return n;
}

/* ---- between the PS and its workers ---------------------------------------------------------- */

#define INSIDE_PINGS   20
#define INSIDE_WORKERS 8
#define INSIDE_LARGEST ((size_t)16 << 20)
#define INSIDE_LONG_S  0.1
enum { TAG_THERE = 91, TAG_BACK };

/* Sends one message between two ranks of the region, which is answered with 64 bytes; `other` is
   the region rank of the other one.  The rank that asks sends `bytes` of room and gets the seconds
   of the round trip, the other one gets 0.  Collective over the two. */
static double exchange(const gt_probe_state *p, int other, bool asks, uint8_t *room, size_t bytes) {
  MPI_Comm region = gt_peers_mpi(p->run.roles.region);
  uint64_t word[8] = {0};
  MPI_Request requests[2];
  gt_ns from = gt_now();
  if (asks) {
    GT_MPI(MPI_Irecv(word, (int)sizeof word, MPI_BYTE, other, TAG_BACK, region, &requests[0]));
    GT_MPI(MPI_Isend(room, (int)bytes, MPI_BYTE, other, TAG_THERE, region, &requests[1]));
    gt_wait_all(requests, 2, "an answer inside the region", p->limit_s, NULL, NULL);
    return gt_seconds(gt_now() - from);
  }
  GT_MPI(MPI_Irecv(room, (int)bytes, MPI_BYTE, other, TAG_THERE, region, &requests[0]));
  gt_wait_all(requests, 1, "a message inside the region", p->limit_s, NULL, NULL);
  GT_MPI(MPI_Isend(word, (int)sizeof word, MPI_BYTE, other, TAG_BACK, region, &requests[0]));
  gt_wait_all(requests, 1, "an answer to leave", p->limit_s, NULL, NULL);
  return 0;
}

static double with_worker(const gt_probe_state *p, int worker, uint8_t *room, size_t bytes) {
  return exchange(p, p->run.roles.is_ps ? worker : 0, p->run.roles.is_ps, room, bytes);
}

/* The PS first sends the size of its next message; 0 ends the measurement. */
static void inside_with(gt_probe_state *p, int worker, uint8_t *room) {
  double times[INSIDE_PINGS], latency, rate = 0;
  for (int i = 0; i < INSIDE_PINGS; i++)
    times[i] = with_worker(p, worker, room, GT_FRAME_HEADER_BYTES);
  latency = gt_probe_median(times, INSIDE_PINGS) / 2;
  for (size_t bytes = (size_t)1 << 20; bytes;) {
    double best = with_worker(p, worker, room, bytes), again = with_worker(p, worker, room, bytes);
    if (again < best) best = again;
    double carried = best - latency > best / 2 ? best - latency : best / 2;
    if (carried > 0) rate = 8 * (double)bytes / carried;
    uint64_t next = best > INSIDE_LONG_S || bytes >= INSIDE_LARGEST ? 0 : 4 * bytes;
    memcpy(room, &next, sizeof next);
    with_worker(p, worker, room, GT_FRAME_HEADER_BYTES);
    memcpy(&next, room, sizeof next);
    bytes = (size_t)next;
  }
  gt_probe_rank *own = &p->own;
  if (!p->run.roles.is_ps) return;
  if (latency > own->inside_latency_s) own->inside_latency_s = latency;
  if (own->inside_bandwidth_bps <= 0 || rate < own->inside_bandwidth_bps)
    own->inside_bandwidth_bps = rate;
}

/* Regions can share a machine, so they are measured one after another. */
void gt_probe_inside(gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  uint8_t *room = gt_alloc(INSIDE_LARGEST, 1);
  for (size_t r = 0; r < p->run.job->nregions; r++) {
    gt_probe_meet(p, "the measurement inside another region");
    if (r != roles->region_id) continue;
    for (int w = 1; w < roles->region_size && w <= INSIDE_WORKERS; w++)
      if (roles->is_ps || roles->region_rank == w) inside_with(p, w, room);
  }
  gt_free(room);
  gt_probe_meet(p, "the measurement inside another region");
}

/* ---- between workers, one direction of a pair at a time -------------------------------------- */

#define PAIR_PINGS    20
#define PAIR_MESSAGES 3

typedef struct {
  gt_probe_state *p;
  uint8_t *room;
  size_t n, self; /* workers; n: this rank is not one */
  size_t *point;
} region;

/* Measures from this worker to another one, or back; the sender keeps the times. */
static void measure(const region *r, size_t other, bool sends) {
  double small_s = INFINITY, large_s = INFINITY;
  for (int i = 0; i < PAIR_PINGS; i++)
    small_s =
        fmin(small_s, exchange(r->p, (int)other + 1, sends, r->room, GT_PIPE_SMALL_BYTES) / 2);
  for (int i = 0; i < PAIR_MESSAGES; i++)
    large_s = fmin(large_s, exchange(r->p, (int)other + 1, sends, r->room, GT_PIPE_LARGE_BYTES));
  if (!sends) return;
  large_s -= small_s; /* of the answer */
  r->p->pairs[other] = (gt_pipe_link){small_s, fmax(large_s, small_s)};
}

/* Waits until all ranks of the region have come. */
static void meet(const region *r) {
  gt_peers_meet(r->p->run.roles.region, &(gt_peers_wait){.what = "the messages of other workers",
                                                         .limit_s = GT_PROBE_MEET_S});
}

/* Measures both directions with the partner of this step; n: none. */
static void step(const region *r, size_t partner) {
  for (int half = 0; half < 2; half++) {
    meet(r);
    if (partner < r->n) measure(r, partner, (r->self < partner) == (half == 0));
  }
}

/* Returns the partner on the same host, for a worker that represents others, and for the first of
   these. */
static size_t neighbour(const region *r) {
  if (r->self >= r->n) return r->n;
  const size_t first = r->point[r->self], second = gt_probe_point_second(r->point, r->n, first);
  if (second == r->n) return r->n;
  return r->self == first ? second : r->self == second ? first : r->n;
}

static void measure_region(region *r) {
  const size_t rounds = gt_probe_point_rounds(r->point, r->n);
  for (size_t round = 0; round < rounds; round++)
    step(r, r->self < r->n ? gt_probe_point_partner(r->point, r->n, round, r->self) : r->n);
  step(r, neighbour(r));
}

/* Finds the representatives by the boot ids of the region's workers. */
static void open_region(region *r, gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  const size_t ranks = (size_t)roles->region_size;
  char(*hosts)[GT_PROBE_BOOT_ID] = gt_alloc(ranks, sizeof *hosts);
  gt_peers_gather(roles->region, p->own.kernel, sizeof *hosts, hosts, "the hosts of the region",
                  p->limit_s);
  *r = (region){.p = p,
                .room = gt_alloc(GT_PIPE_LARGE_BYTES, 1),
                .n = ranks - 1,
                .self = roles->is_ps ? ranks - 1 : (size_t)roles->region_rank - 1};
  r->point = GT_NEW_ARRAY(size_t, ranks);
  gt_probe_points((const char(*)[GT_PROBE_BOOT_ID])hosts + 1, r->n,
                  roles->world_size <= GT_PROBE_ALL_PAIRS, r->point);
  gt_free(hosts);
}

void gt_probe_pairs(gt_probe_state *p) {
  region r;
  p->pairs = GT_NEW_ARRAY(gt_pipe_link, (size_t)p->run.roles.world_size);
  open_region(&r, p);
  for (size_t id = 0; id < p->run.job->nregions; id++) {
    gt_probe_meet(p, "the messages inside another region");
    if (id == p->run.roles.region_id) measure_region(&r);
  }
  gt_probe_meet(p, "the messages inside another region");
  gt_free(r.room);
  gt_free(r.point);
}
