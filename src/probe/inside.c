/* Messages inside a region, between its PS and each of its workers. */
#include <string.h>

#include "internal.h"

#define INSIDE_PINGS   20
#define INSIDE_WORKERS 8
#define INSIDE_LARGEST ((size_t)16 << 20)
#define INSIDE_LONG_S  0.1
enum { TAG_THERE = 91, TAG_BACK };

double gt_probe_exchange(const gt_probe_state *p, int other, bool asks, uint8_t *room,
                         size_t bytes) {
  const gt_roles *roles = &p->run.roles;
  uint64_t word[8] = {0};
  MPI_Request requests[2];
  gt_ns from = gt_now();
  if (asks) {
    GT_MPI(
        MPI_Irecv(word, (int)sizeof word, MPI_BYTE, other, TAG_BACK, roles->region, &requests[0]));
    GT_MPI(MPI_Isend(room, (int)bytes, MPI_BYTE, other, TAG_THERE, roles->region, &requests[1]));
    gt_wait_all(requests, 2, "an answer inside the region", p->limit_s, NULL, NULL);
    return gt_seconds(gt_now() - from);
  }
  GT_MPI(MPI_Irecv(room, (int)bytes, MPI_BYTE, other, TAG_THERE, roles->region, &requests[0]));
  gt_wait_all(requests, 1, "a message inside the region", p->limit_s, NULL, NULL);
  GT_MPI(MPI_Isend(word, (int)sizeof word, MPI_BYTE, other, TAG_BACK, roles->region, &requests[0]));
  gt_wait_all(requests, 1, "an answer to leave", p->limit_s, NULL, NULL);
  return 0;
}

static double exchange(const gt_probe_state *p, int worker, uint8_t *room, size_t bytes) {
  return gt_probe_exchange(p, p->run.roles.is_ps ? worker : 0, p->run.roles.is_ps, room, bytes);
}

/* The PS first sends the size of its next message; 0 ends the measurement. */
static void inside_with(gt_probe_state *p, int worker, uint8_t *room) {
  double times[INSIDE_PINGS], latency, rate = 0;
  for (int i = 0; i < INSIDE_PINGS; i++)
    times[i] = exchange(p, worker, room, GT_FRAME_HEADER_BYTES);
  latency = gt_probe_median(times, INSIDE_PINGS) / 2;
  for (size_t bytes = (size_t)1 << 20; bytes;) {
    double best = exchange(p, worker, room, bytes), again = exchange(p, worker, room, bytes);
    if (again < best) best = again;
    double carried = best - latency > best / 2 ? best - latency : best / 2;
    if (carried > 0) rate = 8 * (double)bytes / carried;
    uint64_t next = best > INSIDE_LONG_S || bytes >= INSIDE_LARGEST ? 0 : 4 * bytes;
    memcpy(room, &next, sizeof next);
    exchange(p, worker, room, GT_FRAME_HEADER_BYTES);
    memcpy(&next, room, sizeof next);
    bytes = (size_t)next;
  }
  gt_probe_rank *own = &p->own;
  if (!p->run.roles.is_ps) return;
  if (latency > own->inside_latency_s) own->inside_latency_s = latency;
  if (own->inside_bandwidth_bps <= 0 || rate < own->inside_bandwidth_bps)
    own->inside_bandwidth_bps = rate;
}

/* One region after another, because they may share a machine. */
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
