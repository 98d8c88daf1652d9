/* The MPI transport: one frame is one message between PS ranks.  A message is matched first
   (MPI_Improbe) and received only if it fits: Open MPI writes a longer message past the end of the
   buffer.  Receives complete in the order of the messages. */
#include "geotrain/net_mpi.h"
#include "internal.h"

#define FRAME_TAG 7
#define POSTED    GT_LINK_POSTED

typedef struct {
  MPI_Request *sends; /* window */
  size_t window;
  uint8_t *buffers[POSTED];
  MPI_Request receives[POSTED];
  size_t sizes[POSTED]; /* bytes of each message */
  size_t next, posted;  /* the receive that completes next, and the number of pending receives */
} lane;

struct gt_transport {
  gt_peers *servers;
  MPI_Comm comm; /* of the servers */
  size_t nregions, self, frame_bytes;
  lane *lanes; /* nregions; [self] unused */
};

/* Starts receiving the next message; false: none is there.  A message that is too long is not
   received: the gateway refuses it. */
static bool post(gt_transport *t, size_t peer) {
  lane *l = &t->lanes[peer];
  const size_t i = (l->next + l->posted) % POSTED;
  int there = 0, count = 0;
  MPI_Message message;
  MPI_Status status;
  GT_MPI(MPI_Improbe((int)peer, FRAME_TAG, t->comm, &there, &message, &status));
  if (!there) return false;
  GT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
  l->sizes[i] = (size_t)count;
  l->receives[i] = MPI_REQUEST_NULL;
  if (l->sizes[i] <= t->frame_bytes)
    GT_MPI(MPI_Imrecv(l->buffers[i], count, MPI_BYTE, &message, &l->receives[i]));
  l->posted++;
  return true;
}

static gt_transport *mpi_open(gt_peers *servers, const gt_transport_spec *spec) {
  gt_transport *t = GT_NEW(gt_transport);
  *t = (gt_transport){.servers = servers,
                      .comm = gt_peers_mpi(servers),
                      .nregions = spec->nregions,
                      .self = spec->self,
                      .frame_bytes = spec->frame_bytes};
  t->lanes = GT_NEW_ARRAY(lane, spec->nregions);
  for (size_t peer = 0; peer < spec->nregions; peer++) {
    if (peer == spec->self) continue;
    lane *l = &t->lanes[peer];
    l->window = spec->windows[peer];
    l->sends = GT_NEW_ARRAY(MPI_Request, l->window);
    for (size_t i = 0; i < l->window; i++) l->sends[i] = MPI_REQUEST_NULL;
    for (size_t i = 0; i < POSTED; i++) l->buffers[i] = gt_alloc(spec->frame_bytes, 1);
  }
  return t;
}

static void mpi_send_frame(gt_transport *t, size_t peer, size_t slot, const void *frame,
                           size_t bytes) {
  GT_MPI(MPI_Isend(frame, (int)bytes, MPI_BYTE, (int)peer, FRAME_TAG, t->comm,
                   &t->lanes[peer].sends[slot]));
}

static bool mpi_sent(gt_transport *t, size_t peer, size_t slot) {
  int done = 0;
  GT_MPI(MPI_Test(&t->lanes[peer].sends[slot], &done, MPI_STATUS_IGNORE));
  return done != 0;
}

static const void *mpi_receive(gt_transport *t, size_t peer, size_t *bytes) {
  lane *l = &t->lanes[peer];
  int arrived = 0;
  while (l->posted < POSTED && post(t, peer)) continue;
  if (l->posted == 0) return NULL;
  GT_MPI(MPI_Test(&l->receives[l->next], &arrived, MPI_STATUS_IGNORE));
  *bytes = l->sizes[l->next];
  return arrived ? l->buffers[l->next] : NULL;
}

static void mpi_release(gt_transport *t, size_t peer) {
  lane *l = &t->lanes[peer];
  l->next = (l->next + 1) % POSTED;
  l->posted--;
}

/* Frames that are no longer needed must still be received, or their senders would wait. */
static void drop_arrivals(void *context) {
  gt_transport *t = context;
  size_t bytes;
  for (size_t peer = 0; peer < t->nregions; peer++) {
    if (peer == t->self) continue;
    while (mpi_receive(t, peer, &bytes)) mpi_release(t, peer);
  }
}

/* No receive is pending: every peer has waited for its sends. */
static void close_lane(lane *l) {
  for (size_t i = 0; i < POSTED; i++) gt_free(l->buffers[i]);
  gt_free(l->sends);
}

static void mpi_close(gt_transport *t, double limit_s) {
  for (size_t peer = 0; peer < t->nregions; peer++) {
    if (peer != t->self)
      gt_wait_all(t->lanes[peer].sends, (int)t->lanes[peer].window,
                  "another region to take the last frames", limit_s, drop_arrivals, t);
  }
  gt_peers_meet(t->servers, &(gt_peers_wait){.what = "the other regions to close their links",
                                             .limit_s = limit_s,
                                             .progress = drop_arrivals,
                                             .context = t});
  drop_arrivals(t);
  for (size_t peer = 0; peer < t->nregions; peer++) {
    if (peer != t->self) close_lane(&t->lanes[peer]);
  }
  gt_free(t->lanes);
  gt_free(t);
}

const gt_transport_ops gt_transport_mpi = {
    .name = "mpi",
    .open = mpi_open,
    .send_frame = mpi_send_frame,
    .sent = mpi_sent,
    .receive = mpi_receive,
    .release = mpi_release,
    .close = mpi_close,
};
