/* The PS ranks of regions that are MPI jobs of their own, as a group whose messages travel over TCP.
   Everything is sent in pieces, one after the other: these messages are few and short. */
#include <string.h>

#include "internal.h"
#include "tcp.h"

#define PIECE_BYTES ((size_t)64 << 10)
#define CLOSE_S     5.0 /* how long the last acknowledgements may take */

/* Before each piece: regions at the same point of a run send and expect the same. */
typedef struct {
  uint64_t number, bytes;
} piece_head;

typedef struct {
  gt_peers peers;
  gt_tcp *tcp; /* borrowed */
  gt_transport *transport;
  uint64_t number;
  /* Every piece sent so far, with its head: a region that starts again gets them again. */
  uint8_t **pieces;
  size_t npieces, room;
  bool *awaited; /* of each region */
} group;

/* One piece: sent to all regions, received from one or from all of them, or both. */
typedef struct {
  const uint8_t *own; /* NULL: nothing is sent */
  size_t bytes, from; /* from: nregions: of all; this region: of none */
  uint8_t *to;        /* that of region r at r * stride */
  size_t stride;
} piece;

static uint8_t *keep(group *g, size_t bytes) {
  if (g->npieces == g->room) {
    g->room = 2 * g->room + 8;
    uint8_t **pieces = GT_NEW_ARRAY(uint8_t *, g->room);
    if (g->npieces) memcpy(pieces, g->pieces, g->npieces * sizeof *pieces);
    gt_free(g->pieces);
    g->pieces = pieces;
  }
  return g->pieces[g->npieces++] = gt_alloc(bytes, 1);
}

static void send_piece(group *g, const piece *p) {
  const piece_head head = {g->number, p->bytes};
  uint8_t *frame = keep(g, sizeof head + p->bytes);
  memcpy(frame, &head, sizeof head);
  memcpy(frame + sizeof head, p->own, p->bytes);
  for (size_t r = 0; r < g->peers.size; r++)
    if (r != g->peers.rank)
      gt_transport_tcp.send_frame(g->transport, r, 0, frame, sizeof head + p->bytes);
}

static void take_piece(group *g, const piece *p, size_t region, const uint8_t *frame,
                       size_t bytes) {
  piece_head head = {0};
  memcpy(&head, frame, bytes < sizeof head ? bytes : sizeof head);
  if (bytes != sizeof head + p->bytes || head.number != g->number || head.bytes != p->bytes)
    gt_panic(GT_ERR_LOST, "region %s is at another point of its run than region %s",
             g->tcp->sites[region].name, g->tcp->sites[g->peers.rank].name);
  memcpy(p->to + (p->from < g->peers.size ? 0 : region * p->stride), frame + sizeof head, p->bytes);
  gt_transport_tcp.release(g->transport, region);
  g->awaited[region] = false;
}

/* Returns a region that has not sent its piece or not acknowledged this one's; size: none. */
static size_t advance(group *g, const piece *p) {
  size_t missing = g->peers.size, bytes;
  gt_transport_tcp.progress(g->transport);
  for (size_t r = 0; r < g->peers.size; r++) {
    if (r == g->peers.rank) continue;
    /* also reads acknowledgements; a frame of the next exchange stays where it is */
    const uint8_t *frame = gt_transport_tcp.receive(g->transport, r, &bytes);
    if (frame && g->awaited[r]) take_piece(g, p, r, frame, bytes);
    if (g->awaited[r] || (p->own && !gt_transport_tcp.sent(g->transport, r, 0))) missing = r;
  }
  return missing;
}

static void exchange(group *g, const piece *p, const gt_peers_wait *wait) {
  const gt_ns until = gt_now() + gt_from_seconds(wait->limit_s);
  gt_backoff backoff = {0};
  g->number++;
  for (size_t r = 0; r < g->peers.size; r++)
    g->awaited[r] = r != g->peers.rank && (p->from == r || p->from == g->peers.size);
  if (p->own) send_piece(g, p);
  for (size_t missing; (missing = advance(g, p)) < g->peers.size;) {
    if (gt_now() > until)
      gt_panic(GT_ERR_LOST, "waited %.0f s for region %s: %s", wait->limit_s,
               g->tcp->sites[missing].name, wait->what);
    if (wait->progress) wait->progress(wait->context);
    if (!wait->sleeps) gt_backoff_sleep(&backoff, GT_BACKOFF_IDLE, GT_NEVER);
  }
  gt_transport_tcp.progress(g->transport); /* the acknowledgements leave */
}

/* Exchanges `whole` in pieces, at least one, whose position is added to own and to. */
static void in_pieces(group *g, piece whole, const gt_peers_wait *wait) {
  size_t at = 0;
  do {
    piece p = whole;
    p.bytes = whole.bytes - at < PIECE_BYTES ? whole.bytes - at : PIECE_BYTES;
    if (p.own) p.own += at;
    if (p.to) p.to += at;
    exchange(g, &p, wait);
    at += p.bytes;
  } while (at < whole.bytes);
}

static void gather(gt_peers *peers, const void *own, size_t bytes, void *all,
                   const gt_peers_wait *wait) {
  memcpy((uint8_t *)all + peers->rank * bytes, own, bytes);
  in_pieces((group *)peers,
            (piece){.own = own, .bytes = bytes, .from = peers->size, .to = all, .stride = bytes},
            wait);
}

static void share(gt_peers *peers, size_t from, void *data, size_t bytes,
                  const gt_peers_wait *wait) {
  piece p = {.bytes = bytes, .from = from, .to = data};
  if (peers->rank == from) p.own = data;
  in_pieces((group *)peers, p, wait);
}

static void close_group(gt_peers *peers) {
  group *g = (group *)peers;
  gt_on_panic(NULL, NULL);
  gt_tcp_say_bye(g->transport, GT_OK);
  gt_transport_tcp.close(g->transport, CLOSE_S);
  for (size_t i = 0; i < g->npieces; i++) gt_free(g->pieces[i]);
  gt_free(g->pieces);
  gt_free(g->awaited);
  gt_free(g);
}

static const gt_peers_ops by_tcp = {gather, share, close_group};

gt_peers *gt_tcp_peers(gt_tcp *tcp) {
  group *g = GT_NEW(group);
  size_t *windows = GT_NEW_ARRAY(size_t, tcp->nregions);
  for (size_t r = 0; r < tcp->nregions; r++) windows[r] = 1;
  const gt_transport_spec spec = {.nregions = tcp->nregions,
                                  .self = tcp->self,
                                  .windows = windows,
                                  .frame_bytes = sizeof(piece_head) + PIECE_BYTES,
                                  .tcp = tcp};
  *g = (group){.peers = {&by_tcp, tcp->self, tcp->nregions},
               .tcp = tcp,
               .transport = gt_transport_tcp.open(NULL, &spec),
               .awaited = GT_NEW_ARRAY(bool, tcp->nregions)};
  gt_on_panic(gt_tcp_say_bye, g->transport);
  gt_free(windows);
  return &g->peers;
}
