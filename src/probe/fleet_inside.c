/* Messages between the workers of a region, over MPI, one direction of a pair at a time. */
#include <math.h>
#include <string.h>

#include "fleet.h"

#define PINGS    20
#define MESSAGES 3

typedef struct {
  gt_probe_state *p;
  uint8_t *room;
  size_t n, self; /* workers; n: this rank is none */
  size_t *point;
} region;

/* From this worker to another one, or back; the sender keeps the times. */
static void measure(const region *r, size_t other, bool sends) {
  double small_s = INFINITY, large_s = INFINITY;
  for (int i = 0; i < PINGS; i++)
    small_s = fmin(
        small_s, gt_probe_exchange(r->p, (int)other + 1, sends, r->room, GT_PIPE_SMALL_BYTES) / 2);
  for (int i = 0; i < MESSAGES; i++)
    large_s =
        fmin(large_s, gt_probe_exchange(r->p, (int)other + 1, sends, r->room, GT_PIPE_LARGE_BYTES));
  if (!sends) return;
  large_s -= small_s; /* of the answer */
  r->p->pairs[other] = (gt_pipe_link){small_s, fmax(large_s, small_s)};
}

/* Until all ranks of the region have come. */
static void meet(const region *r) {
  MPI_Request request;
  GT_MPI(MPI_Ibarrier(r->p->run.roles.region, &request));
  gt_wait_all(&request, 1, "the messages of other workers", GT_PROBE_MEET_S, NULL, NULL);
}

/* Both directions with the partner of this step; n: none. */
static void step(const region *r, size_t partner) {
  for (int half = 0; half < 2; half++) {
    meet(r);
    if (partner < r->n) measure(r, partner, (r->self < partner) == (half == 0));
  }
}

/* The partner on the same host, for a worker that stands for others, and for the first of these. */
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

/* The boot ids of the region's workers decide who stands for whom. */
static void open_region(region *r, gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  const size_t ranks = (size_t)roles->region_size;
  char(*hosts)[GT_PROBE_BOOT_ID] = gt_alloc(ranks, sizeof *hosts);
  MPI_Request request;
  GT_MPI(MPI_Iallgather(p->own.kernel, GT_PROBE_BOOT_ID, MPI_CHAR, hosts, GT_PROBE_BOOT_ID,
                        MPI_CHAR, roles->region, &request));
  gt_wait_all(&request, 1, "the hosts of the region", p->limit_s, NULL, NULL);
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
