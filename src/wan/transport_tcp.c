/* The transport over TCP: frames to a peer are numbered and kept until the peer has acknowledged
   them.  A broken connection is made again, and the peer's greeting says from which frame on to
   continue, so every frame is delivered once and in order. */
#include <string.h>

#include "internal.h"
#include "tcp.h"

#define OUT_BYTES        ((size_t)64 << 10)
#define DIAL_AGAIN_S     0.05 /* doubles with each failure */
#define DIAL_AGAIN_MAX_S 5.0
#define DOUBLINGS        7
#define SILENCE_MAX_S    30.0
/* number of the transport of a group; those of gateways are random */
#define PEERS_ID UINT64_C(1)

typedef struct {
  const uint8_t *frame; /* borrowed from the gateway until it is acknowledged */
  size_t bytes;
} entry;

/* The connection with a peer, and the frames in both directions, which outlive connections. */
typedef struct {
  gt_connection c;
  bool said, greeted; /* this side's and the peer's HELLO have been written and read */
  bool left;          /* the peer is done: it needs nothing more */
  gt_quiet quiet;
  /* dialling; a peer that dials has none of it */
  gt_ns dial_at;
  int failures;
  const struct addrinfo *address; /* the next to try */
  gt_rng rng;
  /* sending: acked <= cursor <= queued */
  entry *queue;            /* a ring of `window`; frame n is at n % window */
  uint64_t *slot_sequence; /* the last frame of each slot */
  size_t window;
  uint64_t queued, cursor, acked; /* cursor: the last frame written to this connection */
  bool sending;                   /* frame cursor + 1 has been begun, with `taken` bytes */
  size_t taken;
  uint8_t *out; /* OUT_BYTES: bytes out_at to out_end wait for the socket */
  size_t out_at, out_end;
  /* receiving */
  bool ack_due, ready; /* ready: a frame waits for its release */
  gt_tcp_record head;
  size_t have; /* bytes of head and frame */
  uint8_t *frame;
  size_t frame_bytes;
  uint64_t received;
} lane;

struct gt_transport {
  gt_peers *servers; /* NULL: the transport of a group */
  gt_tcp *tcp;
  uint64_t id; /* the same in all regions; another in each transport */
  size_t frame_bytes;
  lane *lanes;  /* of all regions; that of this one is unused */
  bool closing; /* every frame of this side is acknowledged; the others may hang up */
};

/* ---- life of a connection -------------------------------------------------------------------- */

static void dial_later(lane *l) {
  const int doublings = l->failures < DOUBLINGS ? l->failures : DOUBLINGS;
  double delay_s = DIAL_AGAIN_S * (double)(1 << doublings);
  if (delay_s > DIAL_AGAIN_MAX_S) delay_s = DIAL_AGAIN_MAX_S;
  l->dial_at = gt_now() + gt_from_seconds(delay_s * (0.5 + gt_rng_uniform(&l->rng)));
  l->failures++;
}

/* Forgets everything that belongs to the connection; frames stay. */
static void drop_connection(lane *l) {
  gt_connection_close(&l->c);
  l->said = l->greeted = l->sending = false;
  l->out_at = l->out_end = l->have = 0;
}

static void lose(gt_transport *t, size_t peer, const char *why) {
  lane *l = &t->lanes[peer];
  size_t unsaid;
  if (!t->closing && !l->left && gt_quiet_over(&l->quiet, &unsaid))
    gt_log(GT_LOG_WARN, "no connection with region %s: %s; trying again (%zu others not logged)",
           t->tcp->sites[peer].name, why, unsaid);
  drop_connection(l);
  dial_later(l);
}

/* The kernel gives a silent connection up early enough that another one can be made. */
static void limit_silence(const gt_transport *t, const lane *l) {
  const double half = t->tcp->patience_s / 2;
  gt_connection_patience(&l->c, half < SILENCE_MAX_S ? half : SILENCE_MAX_S);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* A frame that waits for its release is not lost with a connection, so it counts as received. */
static uint64_t have_received(const lane *l) {
  return l->received + l->ready;
}

static void put_record(gt_transport *t, lane *l, gt_tcp_kind kind, uint64_t sequence,
                       const entry *e) {
  gt_tcp_record record = {.magic = GT_TCP_MAGIC,
                          .kind = (uint16_t)kind,
                          .from = (uint16_t)t->tcp->self,
                          .bytes = e ? (uint32_t)e->bytes : 0,
                          .sequence = sequence,
                          .ack = have_received(l)};
  if (!t->tcp->tls) record.sum = gt_tcp_sum(&record, e ? e->frame : NULL);
  memcpy(l->out + l->out_end, &record, sizeof record);
  l->out_end += sizeof record;
  l->ack_due = false;
}

static void say_hello(gt_transport *t, lane *l) {
  put_record(t, l, GT_TCP_HELLO, t->id, NULL);
  l->said = true;
}

static const entry *frame_at(const lane *l, uint64_t sequence) {
  return &l->queue[sequence % l->window];
}

static void put_part(lane *l) {
  const entry *e = frame_at(l, l->cursor + 1);
  const size_t left = e->bytes - l->taken, room = OUT_BYTES - l->out_end,
               count = left < room ? left : room;
  memcpy(l->out + l->out_end, e->frame + l->taken, count);
  l->out_end += count;
  l->taken += count;
  if (l->taken < e->bytes) return;
  l->sending = false;
  l->cursor++;
}

/* Copies the next records to `out`.  False: there are none. */
static bool fill(gt_transport *t, lane *l) {
  l->out_at = l->out_end = 0;
  while (l->out_end + sizeof(gt_tcp_record) <= OUT_BYTES) {
    if (l->sending) {
      put_part(l);
    } else if (l->cursor < l->queued) {
      put_record(t, l, GT_TCP_FRAME, l->cursor + 1, frame_at(l, l->cursor + 1));
      l->sending = true;
      l->taken = 0;
    } else if (l->ack_due) {
      put_record(t, l, GT_TCP_ACK, 0, NULL);
    } else {
      break;
    }
  }
  return l->out_end > 0;
}

static void pump_out(gt_transport *t, size_t peer) {
  lane *l = &t->lanes[peer];
  while (l->said) {
    if (l->out_at == l->out_end && (!l->greeted || !fill(t, l))) return;
    const long n = gt_connection_write(&l->c, l->out + l->out_at, l->out_end - l->out_at);
    if (n < 0) lose(t, peer, l->c.fault);
    if (n <= 0) return;
    l->out_at += (size_t)n;
  }
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Returns what is wrong with the header; NULL: nothing. */
static const char *record_fault(const gt_transport *t, size_t peer, const gt_tcp_record *head,
                                bool greeted) {
  const lane *l = &t->lanes[peer];
  if (head->magic != GT_TCP_MAGIC) return "a record does not begin with GTR1";
  if (head->from != peer) return "a record names another sender";
  if ((head->kind == GT_TCP_HELLO) == greeted) return "a greeting is missing or repeated";
  if (head->ack < l->acked || head->ack > l->queued || (greeted && head->ack > l->cursor))
    return "a record acknowledges frames that were not sent";
  if (head->kind == GT_TCP_HELLO && head->sequence != t->id) return "it belongs to another run";
  if (head->kind == GT_TCP_FRAME) {
    if (head->bytes == 0 || head->bytes > t->frame_bytes) return "a frame has a wrong length";
    return head->sequence > l->received + 1 ? "a frame is missing" : NULL;
  }
  if (head->kind > GT_TCP_BYE || head->kind == 0) return "a record has an unknown kind";
  return head->bytes == 0 ? NULL : "a record has a wrong length";
}

static bool sum_fits(const gt_transport *t, const gt_tcp_record *head, const void *frame) {
  return t->tcp->tls || gt_tcp_sum(head, frame) == head->sum;
}

static void take_greeting(lane *l, const gt_tcp_record *head) {
  l->acked = l->cursor = head->ack;
  l->greeted = true;
  l->failures = 0;
}

/* Takes a complete record.  False: it is damaged. */
static bool take_record(gt_transport *t, size_t peer) {
  lane *l = &t->lanes[peer];
  const gt_tcp_record *head = &l->head;
  if (!sum_fits(t, head, l->frame)) return false;
  l->have = 0;
  l->acked = head->ack;
  if (head->kind == GT_TCP_HELLO) take_greeting(l, head);
  if (head->kind == GT_TCP_BYE) l->left = true;
  if (head->kind == GT_TCP_BYE && head->sequence != GT_OK)
    gt_panic(GT_ERR_LOST, "region %s has ended with code %d; its own log says why",
             t->tcp->sites[peer].name, (int)head->sequence);
  if (head->kind != GT_TCP_FRAME) return true;
  l->ready = head->sequence == l->received + 1;
  l->frame_bytes = head->bytes;
  l->ack_due = true;
  return true;
}

/* Reads the next bytes of a record: of its header, then of its frame. */
static long read_part(lane *l) {
  if (l->have < sizeof l->head)
    return gt_connection_read(&l->c, (char *)&l->head + l->have, sizeof l->head - l->have);
  const size_t at = l->have - sizeof l->head;
  return gt_connection_read(&l->c, l->frame + at, l->head.bytes - at);
}

static void pump_in(gt_transport *t, size_t peer) {
  lane *l = &t->lanes[peer];
  while (l->said && !l->ready) {
    const long n = read_part(l);
    const char *fault = n < 0 ? l->c.fault : NULL;
    if (n == 0) return;
    if (n > 0) l->have += (size_t)n;
    if (n > 0 && l->have == sizeof l->head) fault = record_fault(t, peer, &l->head, l->greeted);
    if (!fault && l->have >= sizeof l->head && l->have == sizeof l->head + l->head.bytes &&
        !take_record(t, peer))
      fault = "a record is damaged";
    if (fault) {
      lose(t, peer, fault);
      return;
    }
  }
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void dial(gt_transport *t, size_t peer) {
  lane *l = &t->lanes[peer];
  if (gt_now() < l->dial_at) return;
  if (!l->address) l->address = t->tcp->sites[peer].addresses;
  const struct addrinfo *to = l->address;
  l->address = to->ai_next;
  if (gt_connection_dial(&l->c, to->ai_addr, to->ai_addrlen) < 0) lose(t, peer, l->c.fault);
}

/* Continues until the peer has answered. */
static void connect_further(gt_transport *t, size_t peer) {
  lane *l = &t->lanes[peer];
  if (l->c.fd < 0) {
    dial(t, peer);
    return;
  }
  const int done = l->said ? 1 : gt_connection_advance(&l->c, t->tcp->tls, false);
  if (done < 0) {
    lose(t, peer, l->c.fault);
  } else if (done > 0 && !l->said) {
    if (t->tcp->tls && !gt_tls_is(l->c.ssl, t->tcp->sites[peer].name)) {
      lose(t, peer, "its certificate has another name");
      return;
    }
    limit_silence(t, l);
    say_hello(t, l);
  } else if (gt_now() - l->c.since > gt_from_seconds(GT_TCP_HANDSHAKE_S)) {
    lose(t, peer, "its handshake took more than 10 s");
  }
}

/* Returns why a connection that was accepted cannot be used; NULL: it can. */
static const char *greeting_fault(const gt_transport *t, const gt_connection *c,
                                  const gt_tcp_record *hello) {
  const gt_tcp *tcp = t->tcp;
  const size_t peer = hello->from;
  if (hello->magic != GT_TCP_MAGIC || hello->kind != GT_TCP_HELLO) return "it is no gateway";
  if (peer >= tcp->nregions || peer == tcp->self || gt_tcp_dials(tcp, peer))
    return "it is of a region that does not dial this one";
  if (tcp->tls && !gt_tls_is(c->ssl, tcp->sites[peer].name))
    return "its certificate has the name of another region";
  if (!sum_fits(t, hello, NULL)) return "its greeting is damaged";
  return NULL;
}

/* Keeps a connection until its transport is opened here. */
static void park(gt_tcp *tcp, const gt_connection *c, const gt_tcp_record *hello) {
  gt_parked *parked = &tcp->parked[hello->from];
  gt_connection_close(&parked->c);
  *parked = (gt_parked){*c, *hello};
}

/* A peer dials again before this side has seen the end of the last connection. */
static void adopt(gt_transport *t, gt_connection *c, const gt_tcp_record *hello) {
  const char *fault = greeting_fault(t, c, hello);
  gt_transport *of = t;
  for (size_t i = 0; i < GT_TCP_TRANSPORTS; i++)
    if (t->tcp->open[i] && t->tcp->open[i]->id == hello->sequence) of = t->tcp->open[i];
  if (!fault && of->id != hello->sequence && t->tcp->open[GT_TCP_OF_PEERS]) {
    park(t->tcp, c, hello);
    return;
  }
  t = of;
  if (!fault) fault = record_fault(t, hello->from, hello, false);
  if (fault) {
    gt_listener_refuse(&t->tcp->listener, fault);
    gt_connection_close(c);
    return;
  }
  lane *l = &t->lanes[hello->from];
  drop_connection(l);
  l->c = *c;
  take_greeting(l, hello);
  limit_silence(t, l);
  say_hello(t, l);
}

/* Adopts the connections that were parked for a transport. */
static void adopt_parked(gt_transport *t) {
  for (size_t peer = 0; peer < t->tcp->nregions; peer++) {
    gt_parked *parked = &t->tcp->parked[peer];
    if (parked->c.fd < 0 || parked->hello.sequence != t->id) continue;
    gt_connection c = parked->c;
    parked->c = (gt_connection){.fd = -1};
    adopt(t, &c, &parked->hello);
  }
}

static void pump(gt_transport *t) {
  for (size_t peer = 0; peer < t->tcp->nregions; peer++) {
    if (peer == t->tcp->self) continue;
    if (gt_tcp_dials(t->tcp, peer) && !t->lanes[peer].greeted && !t->lanes[peer].left)
      connect_further(t, peer);
    pump_out(t, peer);
    if (!t->servers) pump_in(t, peer);
  }
}

static void tcp_progress(gt_transport *t) {
  gt_connection c;
  gt_tcp_record hello;
  while (gt_listener_next(&t->tcp->listener, t->tcp->tls, &c, &hello)) adopt(t, &c, &hello);
  for (size_t i = 0; i < GT_TCP_TRANSPORTS; i++)
    if (t->tcp->open[i]) pump(t->tcp->open[i]);
}

/* ---- the transport --------------------------------------------------------------------------- */

static size_t place_of(const gt_transport *t) {
  return t->servers ? GT_TCP_OF_GATEWAY : GT_TCP_OF_PEERS;
}

static gt_transport *tcp_open(gt_peers *servers, const gt_transport_spec *spec) {
  gt_transport *t = GT_NEW(gt_transport);
  *t = (gt_transport){.servers = servers,
                      .tcp = spec->tcp,
                      .id = servers ? spec->tcp->run_id : PEERS_ID,
                      .frame_bytes = spec->frame_bytes};
  t->lanes = GT_NEW_ARRAY(lane, spec->nregions);
  for (size_t peer = 0; peer < spec->nregions; peer++) {
    lane *l = &t->lanes[peer];
    l->c.fd = -1;
    if (peer == spec->self) continue;
    l->window = spec->windows[peer];
    l->queue = GT_NEW_ARRAY(entry, l->window);
    l->slot_sequence = GT_NEW_ARRAY(uint64_t, l->window);
    l->out = gt_alloc(OUT_BYTES, 1);
    l->frame = gt_alloc(spec->frame_bytes, 1);
    l->rng = gt_rng_make(spec->tcp->run_id, GT_RNG_JITTER, spec->self, peer);
  }
  spec->tcp->open[place_of(t)] = t;
  adopt_parked(t);
  return t;
}

static void tcp_send_frame(gt_transport *t, size_t peer, size_t slot, const void *frame,
                           size_t bytes) {
  lane *l = &t->lanes[peer];
  l->queued++;
  l->queue[l->queued % l->window] = (entry){frame, bytes};
  l->slot_sequence[slot] = l->queued;
  pump_out(t, peer);
}

static bool tcp_sent(gt_transport *t, size_t peer, size_t slot) {
  const lane *l = &t->lanes[peer];
  return l->left || l->slot_sequence[slot] <= l->acked;
}

static const void *tcp_receive(gt_transport *t, size_t peer, size_t *bytes) {
  lane *l = &t->lanes[peer];
  pump_in(t, peer);
  if (!l->ready) {
    if (l->ack_due) pump_out(t, peer);
    return NULL;
  }
  *bytes = l->frame_bytes;
  return l->frame;
}

static void tcp_release(gt_transport *t, size_t peer) {
  lane *l = &t->lanes[peer];
  l->ready = false;
  l->received++;
  l->ack_due = true;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* True if every frame has been acknowledged.  Frames that still arrive are dropped. */
static bool settle(gt_transport *t) {
  bool settled = true;
  size_t bytes;
  tcp_progress(t);
  for (size_t peer = 0; peer < t->tcp->nregions; peer++) {
    if (peer == t->tcp->self) continue;
    while (tcp_receive(t, peer, &bytes)) tcp_release(t, peer);
    settled &= t->lanes[peer].left || t->lanes[peer].acked == t->lanes[peer].queued;
  }
  return settled;
}

static void keep_settling(void *context) {
  (void)settle(context);
}

static void tcp_close(gt_transport *t, double limit_s) {
  t->closing = !t->servers;
  gt_backoff backoff = {0};
  const gt_ns until = gt_now() + gt_from_seconds(limit_s);
  while (!settle(t)) {
    if (gt_now() > until && !t->servers) break;
    if (gt_now() > until)
      gt_panic(GT_ERR_LOST, "waited %.0f s for another region to take the last frames", limit_s);
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, until);
  }
  t->closing = true;
  if (t->servers)
    gt_peers_meet(t->servers, &(gt_peers_wait){.what = "the other regions to close their links",
                                               .limit_s = limit_s,
                                               .progress = keep_settling,
                                               .context = t});
  for (size_t peer = 0; peer < t->tcp->nregions; peer++) {
    lane *l = &t->lanes[peer];
    gt_connection_close(&l->c);
    gt_free(l->queue);
    gt_free(l->slot_sequence);
    gt_free(l->out);
    gt_free(l->frame);
  }
  /* the next gateway of the run takes none of this one's connections */
  if (t->servers) t->tcp->run_id++;
  t->tcp->open[place_of(t)] = NULL;
  gt_free(t->lanes);
  gt_free(t);
}

/* Never waits: a connection that is busy is left alone. */
void gt_tcp_say_bye(void *transport, gt_status code) {
  gt_transport *t = transport;
  for (size_t peer = 0; peer < t->tcp->nregions; peer++) {
    lane *l = &t->lanes[peer];
    if (peer == t->tcp->self || !l->greeted || l->sending || l->out_at < l->out_end) continue;
    l->out_at = l->out_end = 0;
    put_record(t, l, GT_TCP_BYE, (uint64_t)code, NULL);
    pump_out(t, peer);
  }
}

const gt_transport_ops gt_transport_tcp = {
    .name = "tcp",
    .open = tcp_open,
    .progress = tcp_progress,
    .send_frame = tcp_send_frame,
    .sent = tcp_sent,
    .receive = tcp_receive,
    .release = tcp_release,
    .close = tcp_close,
};
