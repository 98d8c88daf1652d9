/* What endpoints have in common, whatever carries their frames. */
#include "internal.h"

#include <sys/random.h>
#include <unistd.h>

static uint64_t draw_start(void) {
  uint64_t start;
  if (getrandom(&start, sizeof start, 0) != sizeof start || start == 0)
    start = (uint64_t)gt_now() ^ (uint64_t)getpid() << 32;
  return start;
}

void gt_endpoint_init(gt_endpoint *e, const gt_transport_ops *ops, const char *const *names,
                      size_t nregions, size_t self) {
  *e = (gt_endpoint){.ops = ops, .nregions = nregions, .self = self, .start = draw_start()};
  e->relayed = GT_NEW_ARRAY(uint64_t, nregions);
  e->late = GT_NEW_ARRAY(bool, nregions);
  e->names = GT_NEW_ARRAY(const char *, nregions);
  for (size_t r = 0; r < nregions; r++) e->names[r] = gt_strdup(names[r]);
}

void gt_endpoint_free(gt_endpoint *e) {
  for (size_t r = 0; r < e->nregions; r++) gt_free((void *)(uintptr_t)e->names[r]);
  gt_free(e->names);
  gt_free(e->relayed);
  gt_free(e->late);
}

void gt_endpoint_close(gt_endpoint *endpoint) {
  if (endpoint) endpoint->close(endpoint);
}

void gt_endpoint_set_run(gt_endpoint *endpoint, uint64_t id) {
  endpoint->run_id = id;
}

uint64_t gt_endpoint_start(const gt_endpoint *endpoint) {
  return endpoint->start;
}

void gt_endpoint_begin_early(gt_endpoint *endpoint,
                             bool (*enough)(const void *ctx, const bool *there), const void *ctx) {
  endpoint->enough = enough;
  endpoint->enough_ctx = ctx;
}

const bool *gt_endpoint_late(const gt_endpoint *endpoint) {
  return endpoint->late;
}

void gt_endpoint_leave(gt_endpoint *endpoint, gt_status code) {
  if (endpoint->restarts) endpoint->code = code;
}

bool gt_endpoint_returns(const gt_endpoint *endpoint) {
  return endpoint->returns;
}

uint64_t gt_endpoint_relayed(const gt_endpoint *endpoint, size_t region) {
  return endpoint->relayed[region];
}
