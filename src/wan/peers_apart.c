/* The PS ranks of regions that are MPI jobs of their own, as a group whose messages travel over the
   transport of an endpoint.  Everything is sent in pieces, one after the other: these messages are
   few and short. */
#include <string.h>

#include "internal.h"

#define PIECE_BYTES ((size_t)64 << 10)
#define CLOSE_S     5.0 /* how long the last acknowledgements may take */
#define PAST_MAX    ((size_t)1 << 16)

/* Before each piece: regions at the same point of a run send and expect the same.  kind: PAST is a
   piece of `region` that was sent at the start of the run, END follows the last of them; BEGIN names
   the regions without which the run begins. */
enum { PIECE, PAST, END, BEGIN };
typedef struct {
  uint64_t number, bytes, what; /* what: a hash of the wait's text */
  uint32_t region, kind;
} piece_head;

/* Frames, each a piece with its head; owned. */
typedef struct {
  gt_past_frame *frames;
  size_t n, room;
} past;

typedef struct {
  gt_peers peers;
  gt_endpoint *endpoint; /* borrowed */
  const gt_transport_ops *ops;
  gt_transport *transport;
  uint64_t number;
  past sent;  /* every piece sent so far: a region that starts again gets them again */
  past all;   /* if regions are taken back: every piece sent and received, for one that returns */
  past *told; /* nregions: what each region has told this one about the start of the run */
  const past *start; /* of those the one that this region repeats; NULL: it does not return */
  size_t at;         /* its next frame */
  bool *awaited;     /* of each region */
  /* a run that begins without some regions: in the first region, how many are connected; since when
     these, or in all regions since it begins; and that it has logged that they are too few */
  bool early, waits;
  size_t here;
  gt_ns since;
} group;

/* One piece: sent to all regions, received from one or from all of them, or both. */
typedef struct {
  const uint8_t *own; /* NULL: nothing is sent */
  size_t bytes, from; /* from: nregions: of all; this region: of none */
  uint8_t *to;        /* that of region r at r * stride */
  size_t stride;
  uint64_t what;
} piece;

static uint8_t *keep(past *p, const piece_head *head, const void *bytes) {
  const size_t size = sizeof *head + head->bytes;
  GT_GROW(p->frames, p->n, p->room, 8);
  uint8_t *frame = gt_alloc(size, 1);
  memcpy(frame, head, sizeof *head);
  if (head->bytes) memcpy(frame + sizeof *head, bytes, head->bytes);
  p->frames[p->n++] = (gt_past_frame){frame, size};
  return frame;
}

static void forget(past *p) {
  for (size_t i = 0; i < p->n; i++) gt_free(p->frames[i].frame);
  gt_free(p->frames);
}

static piece_head head_of(const past *p, size_t i) {
  piece_head head;
  memcpy(&head, p->frames[i].frame, sizeof head);
  return head;
}

/* FNV-1a. */
static uint64_t hash_of(const char *text) {
  uint64_t hash = UINT64_C(14695981039346656037);
  while (*text) hash = (hash ^ (unsigned char)*text++) * UINT64_C(1099511628211);
  return hash;
}

static void keep_for_later(group *g, piece_head head, size_t region, const uint8_t *bytes) {
  head.kind = PAST;
  head.region = (uint32_t)region;
  if (g->endpoint->restarts) keep(&g->all, &head, bytes);
}

static void send_to_all(group *g, const uint8_t *frame, size_t bytes) {
  for (size_t r = 0; r < g->peers.size; r++)
    if (r != g->peers.rank && !g->endpoint->late[r])
      g->ops->send_frame(g->transport, r, 0, frame, bytes);
}

static void send_piece(group *g, const piece *p) {
  const piece_head head = {.number = g->number, .bytes = p->bytes, .what = p->what};
  const uint8_t *frame = keep(&g->sent, &head, p->own);
  keep_for_later(g, head, g->peers.rank, p->own);
  send_to_all(g, frame, sizeof head + p->bytes);
}

static _Noreturn void other_point(const group *g, size_t region) {
  gt_panic(GT_ERR_LOST, "region %s is at another point of its run than region %s",
           g->endpoint->names[region], g->endpoint->names[g->peers.rank]);
}

static uint8_t *place_of(const piece *p, const group *g, size_t region) {
  return p->to + (p->from < g->peers.size ? 0 : region * p->stride);
}

static void take_piece(group *g, const piece *p, size_t region, const uint8_t *frame,
                       const piece_head *head) {
  if (head->number != g->number || head->bytes != p->bytes || head->what != p->what)
    other_point(g, region);
  memcpy(place_of(p, g, region), frame + sizeof *head, p->bytes);
  keep_for_later(g, *head, region, frame + sizeof *head);
  g->awaited[region] = false;
}

/* ---- a run that begins without some regions ---- */

/* Each region tells the others, so that the first one, if it starts again, does not choose again. */
static void begin_without(group *g, const uint8_t *late) {
  const piece_head head = {.bytes = g->peers.size, .kind = BEGIN};
  g->early = true;
  g->since = gt_now();
  for (size_t r = 0; r < g->peers.size; r++) {
    g->endpoint->late[r] = late[r];
    if (late[r])
      gt_log(GT_LOG_WARN, "the run begins without region %s, which can join later",
             g->endpoint->names[r]);
  }
  send_to_all(g, keep(&g->sent, &head, late), sizeof head + g->peers.size);
}

static void take_beginning(group *g, size_t region, const uint8_t *late, size_t bytes) {
  const bool fits = bytes == g->peers.size && !late[g->peers.rank] && !late[0];
  if (fits && !g->early) begin_without(g, late);
  for (size_t r = 0; r < g->peers.size; r++)
    if (!fits || (late[r] != 0) != g->endpoint->late[r]) other_point(g, region);
}

static bool is_here(const group *g, size_t region) {
  return region == g->peers.rank || g->ops->here(g->transport, region);
}

/* True in the first region if it can begin without others, while regions meet. */
static bool chooses(const group *g) {
  return g->endpoint->enough && g->number == 1 && g->peers.rank == 0;
}

/* In the first region, while regions meet: begins without those that have not come, or have
   gone. */
static void begin_early(group *g) {
  const gt_endpoint *e = g->endpoint;
  if (!chooses(g) || g->early) return;
  size_t n = 0;
  for (size_t r = 0; r < g->peers.size; r++) n += is_here(g, r);
  if (n != g->here) {
    g->here = n;
    g->since = gt_now();
  }
  if (gt_now() < g->since + gt_from_seconds(e->patience_s)) return;
  bool *there = GT_NEW_ARRAY(bool, g->peers.size);
  uint8_t *late = GT_NEW_ARRAY(uint8_t, g->peers.size);
  for (size_t r = 0; r < g->peers.size; r++) {
    there[r] = !g->awaited[r] && is_here(g, r); /* its message has come, too */
    late[r] = !there[r];
  }
  g->since = gt_now();
  if (e->enough(e->enough_ctx, there)) {
    begin_without(g, late);
  } else if (!g->waits) {
    gt_log(GT_LOG_INFO, "the run waits for more regions: those that are there are too few "
                        "(sync.min_regions), or have too little of the weight");
    g->waits = true;
  }
  gt_free(there);
  gt_free(late);
}

/* A late region has gathered values of the first one. */
static void assume_late(group *g, const piece *p) {
  const piece_head head = {.number = g->number, .bytes = p->bytes, .what = p->what};
  for (size_t r = 0; r < g->peers.size; r++) {
    if (!g->endpoint->late[r] || p->from == g->peers.rank) continue;
    if (p->from == r) gt_bug("region %zu shares, and the run has begun without it", r);
    if (p->from < g->peers.size) continue;
    memcpy(place_of(p, g, r), place_of(p, g, 0), p->bytes);
    keep_for_later(g, head, r, place_of(p, g, r));
  }
}

/* ---- receiving ---- */

/* The run has begun without this region: it repeats what the first region tells to the end. */
static void take_past(group *g, size_t region, const uint8_t *frame, const piece_head *head) {
  if (g->told[region].n == PAST_MAX) other_point(g, region);
  if (head->kind == PAST && head->region < g->peers.size)
    keep(&g->told[region], head, frame + sizeof *head);
  else if (!g->start)
    g->start = &g->told[region];
  g->endpoint->returns = g->start != NULL;
}

/* Takes the frame; false: it is of a later exchange. */
static bool take_frame(group *g, const piece *p, size_t region, const uint8_t *frame,
                       size_t bytes) {
  piece_head head = {0};
  memcpy(&head, frame, bytes < sizeof head ? bytes : sizeof head);
  if (bytes < sizeof head || bytes - sizeof head != head.bytes || head.kind > BEGIN)
    other_point(g, region);
  if (head.kind == BEGIN)
    take_beginning(g, region, frame + sizeof head, head.bytes);
  else if (head.kind != PIECE)
    take_past(g, region, frame, &head);
  else if (g->awaited[region] && !g->endpoint->late[region])
    take_piece(g, p, region, frame, &head);
  else if (!g->endpoint->late[region]) /* a late one does not know yet: its pieces do not count */
    return false;
  g->ops->release(g->transport, region);
  return true;
}

/* Returns a region that has not sent its piece or not acknowledged this one's, or has gone since;
   size: none. */
static size_t advance(group *g, const piece *p) {
  size_t missing = g->peers.size, bytes;
  g->ops->progress(g->transport);
  for (size_t r = 0; r < g->peers.size; r++) {
    if (r == g->peers.rank) continue;
    /* also reads acknowledgements; a frame of the next exchange stays where it is */
    const uint8_t *frame = g->ops->receive(g->transport, r, &bytes);
    while (frame && take_frame(g, p, r, frame, bytes))
      frame = g->ops->receive(g->transport, r, &bytes);
    if (g->endpoint->late[r]) continue;
    if (g->awaited[r] || (p->own && !g->ops->sent(g->transport, r, 0)) ||
        (chooses(g) && !is_here(g, r)))
      missing = r;
  }
  return missing;
}

/* Takes the pieces of this exchange from the start of the run.  This start of the region can leave
   out some exchanges of it, and share texts that no other region has. */
static void repeat(group *g, const piece *p) {
  size_t at = g->at;
  piece_head head = {0};
  for (; at < g->start->n; at++) {
    head = head_of(g->start, at);
    if (head.what == p->what && head.bytes == p->bytes) break;
  }
  if (at == g->start->n && p->from == g->peers.rank) return;
  if (at == g->start->n)
    gt_panic(GT_ERR_CKPT,
             "region %s does not start as it did when the run began; start it with the same job, "
             "data and number of ranks",
             g->endpoint->names[g->peers.rank]);
  const uint64_t number = head.number;
  for (; at < g->start->n && (head = head_of(g->start, at)).number == number; at++)
    if (head.bytes == p->bytes && (p->from == g->peers.size || p->from == head.region))
      memcpy(place_of(p, g, head.region), g->start->frames[at].frame + sizeof head, p->bytes);
  g->at = at;
}

static _Noreturn void lost(const group *g, size_t region, const gt_peers_wait *wait) {
  gt_panic(GT_ERR_LOST, "waited %g s for region %s, which was lost: %s", g->endpoint->patience_s,
           g->endpoint->names[region], wait->what);
}

/* A region that was lost is not waited for to the limit once all regions have met (exchange 1), if
   it cannot return, and while they meet, if the run begins without others. */
static void check_present(const group *g, size_t missing, const gt_peers_wait *wait) {
  if (g->number == 1 && g->early && gt_now() > g->since + gt_from_seconds(g->endpoint->patience_s))
    lost(g, missing, wait);
  if (g->endpoint->restarts || g->number == 1) return;
  for (size_t r = 0; r < g->peers.size; r++)
    if (r != g->peers.rank && g->ops->absent(g->transport, r)) lost(g, r, wait);
}

static void exchange(group *g, const piece *p, const gt_peers_wait *wait) {
  const gt_ns until = gt_now() + gt_from_seconds(wait->limit_s);
  gt_backoff backoff = {0};
  g->number++;
  if (g->start) {
    repeat(g, p);
    return;
  }
  for (size_t r = 0; r < g->peers.size; r++)
    g->awaited[r] = r != g->peers.rank && (p->from == r || p->from == g->peers.size);
  if (p->own) send_piece(g, p);
  for (size_t missing; (missing = advance(g, p)) < g->peers.size;) {
    if (g->start) {
      repeat(g, p);
      return;
    }
    begin_early(g);
    check_present(g, missing, wait);
    if (gt_now() > until)
      gt_panic(GT_ERR_LOST, "waited %.0f s for region %s: %s", wait->limit_s,
               g->endpoint->names[missing], wait->what);
    if (wait->progress) wait->progress(wait->context);
    if (!wait->sleeps) gt_backoff_sleep(&backoff, GT_BACKOFF_IDLE, GT_NEVER);
  }
  assume_late(g, p);
  g->endpoint->meeting = false;
  g->ops->progress(g->transport); /* the acknowledgements leave */
}

/* Exchanges `whole` in pieces, at least one, whose position is added to own and to. */
static void in_pieces(group *g, piece whole, const gt_peers_wait *wait) {
  size_t at = 0;
  whole.what = hash_of(wait->what);
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
  g->ops->say_bye(g->transport, g->endpoint->code);
  g->ops->close(g->transport, CLOSE_S);
  for (size_t r = 0; r < g->peers.size; r++) forget(&g->told[r]);
  forget(&g->sent);
  forget(&g->all);
  gt_free(g->told);
  gt_free(g->awaited);
  gt_free(g);
}

static const gt_peers_ops apart = {gather, share, close_group};

gt_peers *gt_endpoint_peers(gt_endpoint *e) {
  group *g = GT_NEW(group);
  size_t *windows = GT_NEW_ARRAY(size_t, e->nregions);
  for (size_t r = 0; r < e->nregions; r++) windows[r] = 1;
  const gt_transport_spec spec = {.nregions = e->nregions,
                                  .self = e->self,
                                  .windows = windows,
                                  .frame_bytes = sizeof(piece_head) + PIECE_BYTES,
                                  .endpoint = e};
  *g = (group){.peers = {&apart, e->self, e->nregions},
               .endpoint = e,
               .ops = e->ops,
               .transport = e->ops->open(NULL, &spec),
               .told = GT_NEW_ARRAY(past, e->nregions),
               .awaited = GT_NEW_ARRAY(bool, e->nregions)};
  e->meeting = true;
  gt_on_panic(g->ops->say_bye, g->transport);
  gt_free(windows);
  return &g->peers;
}

/* A region that has returned tells what it has been told. */
void gt_endpoint_begun(gt_peers *peers) {
  group *g = (group *)peers;
  past *all = g->start ? &g->told[g->start - g->told] : &g->all;
  keep(all, &(piece_head){.kind = END}, NULL);
  g->ops->repeat(g->transport, all->frames, all->n, g->endpoint->late);
}
