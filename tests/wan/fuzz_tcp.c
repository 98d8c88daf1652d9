/* Any bytes of a region behind TLS are frames in order, or break the connection, without leaks.
   The first byte says which records are made valid but for what the input has chosen. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lane.h"

#define FRAME_MAX ((size_t)512)
#define START     UINT64_C(7)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void gather(gt_peers *peers, const void *own, size_t bytes, void *all,
                   const gt_peers_wait *wait) {
  (void)peers, (void)wait;
  memcpy(all, own, bytes);
}

static const gt_peers_ops by_itself = {.gather = gather};
static gt_peers alone = {&by_itself, 0, 1};

/* Takes a connection of region 1 for each stream; there[i]: its other end. */
static void adopt(gt_transport *t, int there[2]) {
  for (uint32_t i = 0; i < 2; i++) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) abort();
    gt_connection c;
    gt_connection_take(&c, ends[0]);
    c.connected = true;
    const gt_tcp_record hello = {.stream = i, .sequence = t->id, .start = START};
    gt_lane_adopt(t, 1, &t->lanes[1].streams[i], &c, &hello);
    there[i] = ends[1];
  }
}

static void take_frames(gt_transport *t) {
  size_t bytes;
  uint8_t sum = 0;
  for (const uint8_t *frame; (frame = gt_transport_tcp.receive(t, 1, &bytes)) != NULL;) {
    if (bytes == 0 || bytes > FRAME_MAX) abort();
    for (size_t i = 0; i < bytes; i++) sum ^= frame[i];
    gt_transport_tcp.release(t, 1);
  }
  (void)gt_transport_tcp.lost(t, 1);
  (void)sum;
}

/* Makes most of the header valid, and the sum fit. */
static void mend(const gt_transport *t, gt_tcp_record *head, const uint8_t *frame, size_t stream,
                 uint8_t as) {
  if (as & 1) head->magic = GT_TCP_MAGIC;
  if (as & 2) head->version = GT_TCP_VERSION;
  if (as & 4) head->from = 1;
  if (as & 8) head->to = 0;
  if (as & 16) head->start = START;
  if (as & 32) head->peer_start = t->tcp->base.start;
  if (as & 64) head->stream = (uint32_t)stream;
  if (as & 128) head->kind = (uint16_t)(1 + head->kind % 5);
  if (head->bytes <= FRAME_MAX) head->sum = gt_tcp_sum(head, frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const size_t windows[] = {4, 4};
  static uint8_t own[4][100];
  int64_t alive = gt_alloc_alive();
  const gt_tcp_region regions[] = {{"a", NULL}, {"b", NULL}};
  const gt_tcp_spec spec = {
      .regions = regions, .nregions = 2, .streams = 2, .patience_s = 1e6, .restarts = true};
  gt_endpoint *tcp;
  int there[2];
  gt_log_threshold(GT_LOG_ERROR);
  if (gt_tcp_open(&tcp, &spec) != GT_OK) abort();
  const gt_transport_spec of = {
      .nregions = 2, .windows = windows, .frame_bytes = FRAME_MAX, .endpoint = tcp};
  gt_transport *t = gt_transport_tcp.open(&alone, &of);
  adopt(t, there);
  for (size_t i = 0; i < 3; i++) gt_transport_tcp.send_frame(t, 1, i, own[i], sizeof own[i]);
  while (size > 1 + sizeof(gt_tcp_record)) {
    uint8_t record[sizeof(gt_tcp_record) + FRAME_MAX] = {0};
    gt_tcp_record head;
    const uint8_t as = data[0];
    memcpy(&head, data + 1, sizeof head);
    const size_t stream = head.sequence % 2, left = size - 1 - sizeof head,
                 frame = head.bytes < left ? head.bytes : left,
                 bytes = frame < FRAME_MAX ? frame : FRAME_MAX;
    memcpy(record + sizeof head, data + 1 + sizeof head, bytes);
    mend(t, &head, record + sizeof head, stream, as);
    memcpy(record, &head, sizeof head);
    if (send(there[stream], record, sizeof head + bytes, MSG_NOSIGNAL) < 0) break;
    take_frames(t);
    data += 1 + sizeof head + bytes;
    size -= 1 + sizeof head + bytes;
  }
  t->lanes[1].left = true;
  gt_transport_tcp.close(t, 0);
  gt_endpoint_close(tcp);
  for (int i = 0; i < 2; i++) close(there[i]);
  if (gt_alloc_alive() != alive) abort();
  return 0;
}
