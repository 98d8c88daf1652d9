/* Messages between the regions while work is measured: servers that send and receive take time,
   cores and caches from workers on the same machine. */
#include <string.h>

#include "internal.h"

#define LARGEST ((size_t)4 << 20) /* bytes: a larger model would occupy slow links for long */

struct gt_probe_traffic {
  gt_gateway *gateway;
  size_t n, self;
  size_t under_way; /* messages that have not left */
  gt_vec params, payload;
  uint64_t sequence;
};

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  gt_probe_traffic *t = ctx;
  (void)peer, (void)now;
  size_t n = (size_t)head->message_bytes / sizeof(float);
  gt_vec_axpy(gt_vec_range(t->params, 0, n), 1e-6F, gt_vec_of((float *)(uintptr_t)payload, n));
}

static void on_departed(void *ctx, size_t peer, uint64_t cookie, gt_ns now) {
  (void)peer, (void)cookie, (void)now;
  ((gt_probe_traffic *)ctx)->under_way--;
}

gt_probe_traffic *gt_probe_traffic_open(const gt_run *run, gt_vec params) {
  gt_probe_traffic *t = GT_NEW(gt_probe_traffic);
  size_t floats = params.n * sizeof(float) < LARGEST ? params.n : LARGEST / sizeof(float);
  *t = (gt_probe_traffic){.n = run->job->nregions, .self = run->roles.region_id, .params = params};
  t->payload = gt_vec_of(GT_NEW_ARRAY(float, floats), floats);
  t->gateway = gt_setup_gateway(run, floats * sizeof(float),
                                &(gt_gateway_events){t, on_message, on_departed});
  gt_gateway_begin(t->gateway, gt_now());
  return t;
}

void gt_probe_traffic_send(gt_probe_traffic *t, gt_vec grads) {
  if (t->under_way > 0) return;
  gt_frame_header head = {.kind = GT_MSG_UPDATE, .sequence = ++t->sequence};
  gt_vec_copy(t->payload, gt_vec_range(grads, 0, t->payload.n));
  for (size_t peer = 0; peer < t->n; peer++) {
    if (peer == t->self) continue;
    t->under_way++;
    gt_gateway_send(t->gateway, peer, &head, t->payload.data, t->payload.n * sizeof(float),
                    t->sequence, gt_now());
  }
}

bool gt_probe_traffic_poll(gt_probe_traffic *t) {
  return gt_gateway_poll(t->gateway, gt_now());
}

gt_ns gt_probe_traffic_next(const gt_probe_traffic *t, bool *large) {
  return gt_gateway_next(t->gateway, large);
}

static void progress(void *ctx) {
  gt_probe_traffic_poll(ctx);
}

void gt_probe_traffic_close(gt_probe_traffic *t, const gt_run *run, double limit_s) {
  gt_ns until = gt_now() + gt_from_seconds(limit_s);
  gt_backoff backoff;
  bool large = false;
  gt_backoff_reset(&backoff);
  for (gt_ns next;
       ((next = gt_probe_traffic_next(t, &large)) != GT_NEVER || large) && gt_now() < until;) {
    if (gt_probe_traffic_poll(t))
      gt_backoff_reset(&backoff);
    else
      gt_backoff_sleep(&backoff, GT_BACKOFF_IDLE, next);
  }
  MPI_Request request;
  GT_MPI(MPI_Ibarrier(run->roles.ps, &request));
  gt_wait_all(&request, 1, "the other regions' servers to have measured", GT_PROBE_MEET_S, progress,
              t);
  gt_gateway_close(t->gateway, run->end_limit_s);
  gt_free(t->payload.data);
  gt_free(t);
}
