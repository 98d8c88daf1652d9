/* The transport over TCP: makes the connections of its lanes, by dialling or from the port. */
#include <string.h>

#include "internal.h"
#include "lane.h"
#include "relay.h"

#define SILENCE_MAX_S 30.0
#define CONNECT_LIMIT                                                                              \
  (3 * GT_SECOND)  /* the kernel would ask again at longer and longer intervals */
#define PART_S 5.0 /* how long the others may take to say that they need nothing more */
/* number of the transport of a group; those of gateways are random */
#define PEERS_ID UINT64_C(1)

/* The kernel gives a silent connection up early enough that another one can be made. */
static void limit_silence(const gt_tcp *tcp, const gt_connection *c) {
  const double half = tcp->base.patience_s / 2;
  gt_connection_patience(c, half < SILENCE_MAX_S ? half : SILENCE_MAX_S);
}

/* ---- dialling -------------------------------------------------------------------------------- */

/* Returns the region that the peer's connection is dialled at: its own, or a relay. */
static size_t region_at(const gt_tcp *tcp, size_t peer) {
  const size_t relay = gt_tcp_relay(tcp, tcp->base.self, peer);
  return relay < tcp->base.nregions ? relay : peer;
}

static void dial(gt_transport *t, size_t peer, gt_stream *s) {
  if (gt_now() < s->dial_at) return;
  const gt_tcp_site *site = &t->tcp->sites[region_at(t->tcp, peer)], *proxy = &t->tcp->proxy;
  if (!s->address) s->address = (proxy->address ? proxy : site)->addresses;
  const struct addrinfo *to = s->address;
  s->address = to->ai_next;
  const char *through = proxy->address ? site->address : NULL;
  if (gt_connection_dial(&s->c, to->ai_addr, to->ai_addrlen, through) < 0)
    gt_lane_lose(t, peer, s, s->c.fault);
}

/* Continues until the peer has answered. */
static void connect_further(gt_transport *t, size_t peer, gt_stream *s) {
  if (s->c.fd < 0) {
    dial(t, peer, s);
    return;
  }
  const int done = s->said ? 1 : gt_connection_advance(&s->c, t->tcp->tls, false);
  if (done < 0) {
    gt_lane_lose(t, peer, s, s->c.fault);
  } else if (done > 0 && !s->said) {
    if (t->tcp->tls && !gt_tls_is(s->c.ssl, t->tcp->base.names[region_at(t->tcp, peer)])) {
      gt_lane_lose(t, peer, s, "its certificate has another name");
      return;
    }
    limit_silence(t->tcp, &s->c);
    gt_lane_say_hello(t, peer, s);
  } else if (gt_now() - s->c.since > gt_from_seconds(GT_TCP_HANDSHAKE_S)) {
    gt_lane_lose(t, peer, s,
                 s->said && gt_tcp_relay(t->tcp, t->tcp->base.self, peer) < t->tcp->base.nregions
                     ? "it has not come to the region that relays"
                     : "its handshake took more than 10 s");
  } else if (!s->c.connected && gt_now() - s->c.since > CONNECT_LIMIT) {
    gt_lane_lose(t, peer, s, "it does not answer");
  }
}

/* ---- connections from the port --------------------------------------------------------------- */

/* Returns why a connection that was accepted cannot be used; NULL: it can. */
static const char *hello_fault(const gt_tcp *tcp, const gt_connection *c,
                               const gt_tcp_record *hello) {
  const size_t peer = hello->from;
  if (hello->magic != GT_TCP_MAGIC || hello->kind != GT_TCP_HELLO) return "it is no gateway";
  if (hello->version != GT_TCP_VERSION) return "it speaks another version of the protocol";
  if (peer >= tcp->base.nregions || peer == tcp->base.self || gt_tcp_dials(tcp, peer))
    return "it is of a region that does not dial this one";
  if (hello->to != tcp->base.self && (hello->to >= tcp->base.nregions || hello->to == peer ||
                                      gt_tcp_relay(tcp, peer, hello->to) != tcp->base.self))
    return "it is for a region to which this one does not relay";
  if (tcp->tls && !gt_tls_is(c->ssl, tcp->base.names[peer]))
    return "its certificate has the name of another region";
  if (!tcp->tls && gt_tcp_sum(hello, NULL) != hello->sum) return "its greeting is damaged";
  return hello->stream < tcp->nstreams ? NULL : "it has more streams than this region";
}

/* Keeps a connection until its transport is opened here. */
static void park(gt_tcp *tcp, const gt_connection *c, const gt_tcp_record *hello) {
  gt_parked *parked = &tcp->parked[hello->from * tcp->nstreams + hello->stream];
  gt_connection_close(&parked->c);
  *parked = (gt_parked){*c, *hello};
}

/* Answers a start of a region that comes while another one is connected. */
static void turn_away(const gt_transport *t, gt_connection *c, const gt_tcp_record *hello) {
  gt_tcp_record no =
      gt_lane_record(t, hello->from, t->lanes[hello->from].streams, GT_TCP_REFUSED, 0);
  if (!t->tcp->tls) no.sum = gt_tcp_sum(&no, NULL);
  (void)gt_connection_write(c, &no, sizeof no);
  gt_listener_refuse(&t->tcp->listener, "another start of the region is connected");
  gt_connection_close(c);
}

/* A peer dials again before this side has seen the end of the last connection. */
static void adopt(gt_transport *t, gt_connection *c, const gt_tcp_record *hello) {
  const size_t peer = hello->from;
  gt_stream *s = t->lanes[peer].streams + hello->stream;
  if (gt_lane_has_other(t, peer, hello)) {
    turn_away(t, c, hello);
    return;
  }
  const char *fault = hello->stream < t->nstreams ? gt_lane_greeting_fault(t, peer, s, hello)
                                                  : "it belongs to another stream";
  if (fault) {
    gt_listener_refuse(&t->tcp->listener, fault);
    gt_connection_close(c);
    return;
  }
  limit_silence(t->tcp, c);
  gt_lane_adopt(t, peer, s, c, hello);
}

/* Gives a connection to its transport. */
static void place(gt_tcp *tcp, gt_connection *c, const gt_tcp_record *hello) {
  const char *fault = hello_fault(tcp, c, hello);
  gt_transport *of = NULL;
  if (!fault && hello->to != tcp->base.self) {
    limit_silence(tcp, c);
    gt_relay_take(tcp, c, hello);
    return;
  }
  for (size_t i = 0; i < GT_TCP_TRANSPORTS; i++)
    if (tcp->open[i] && tcp->open[i]->id == hello->sequence) of = tcp->open[i];
  if (!fault && !of && !tcp->open[GT_TCP_OF_PEERS]) fault = "it belongs to another run";
  if (fault) {
    gt_listener_refuse(&tcp->listener, fault);
    gt_connection_close(c);
  } else if (of) {
    adopt(of, c, hello);
  } else {
    park(tcp, c, hello);
  }
}

/* Adopts the connections that were parked for a transport. */
static void adopt_parked(gt_transport *t) {
  for (size_t i = 0; i < t->tcp->base.nregions * t->tcp->nstreams; i++) {
    gt_parked *parked = &t->tcp->parked[i];
    if (parked->c.fd < 0 || parked->hello.sequence != t->id) continue;
    gt_connection c = parked->c;
    parked->c = (gt_connection){.fd = -1};
    adopt(t, &c, &parked->hello);
  }
}

static void pump(gt_transport *t) {
  const gt_ns now = gt_now();
  for (size_t peer = 0; peer < t->tcp->base.nregions; peer++) {
    if (peer == t->tcp->base.self) continue;
    gt_lane *l = &t->lanes[peer];
    for (size_t i = 0; gt_tcp_dials(t->tcp, peer) && !l->left && i < t->nstreams; i++)
      /* the others wait for the first one: then the peer knows this host */
      if (!l->streams[i].greeted && (i == 0 || l->streams[0].greeted))
        connect_further(t, peer, &l->streams[i]);
    gt_lane_check(t, peer, now);
    gt_lane_pump_out(t, peer);
    if (!t->servers) gt_lane_pump_in(t, peer);
    /* a region that returns repeats its messages */
    while (t->past && gt_lane_next(t, peer)) gt_lane_release(t, peer);
  }
}

static void tcp_progress(gt_transport *t) {
  gt_connection c;
  gt_tcp_record hello;
  while (gt_listener_next(&t->tcp->listener, t->tcp->tls, &c, &hello)) place(t->tcp, &c, &hello);
  for (size_t i = 0; i < GT_TCP_TRANSPORTS; i++)
    if (t->tcp->open[i]) pump(t->tcp->open[i]);
  (void)gt_relay_pump(t->tcp);
}

/* ---- the transport --------------------------------------------------------------------------- */

static size_t place_of(const gt_transport *t) {
  return t->servers ? GT_TCP_OF_GATEWAY : GT_TCP_OF_PEERS;
}

static gt_transport *tcp_open(gt_peers *servers, const gt_transport_spec *spec) {
  gt_transport *t = GT_NEW(gt_transport);
  gt_tcp *tcp = (gt_tcp *)spec->endpoint;
  *t = (gt_transport){.servers = servers,
                      .tcp = tcp,
                      .id = servers ? tcp->base.run_id : PEERS_ID,
                      .frame_bytes = spec->frame_bytes,
                      .nstreams = servers ? tcp->nstreams : 1,
                      .keeps = !servers};
  t->lanes = GT_NEW_ARRAY(gt_lane, spec->nregions);
  for (size_t peer = 0; peer < spec->nregions; peer++)
    if (peer != spec->self) gt_lane_open(t, peer, spec->windows[peer]);
  tcp->open[place_of(t)] = t;
  adopt_parked(t);
  return t;
}

static void tcp_send_frame(gt_transport *t, size_t peer, size_t slot, const void *frame,
                           size_t bytes) {
  gt_lane_queue(t, peer, slot, frame, bytes);
  gt_lane_pump_out(t, peer);
}

static bool tcp_sent(gt_transport *t, size_t peer, size_t slot) {
  const gt_lane *l = &t->lanes[peer];
  return l->left || l->slot_sequence[slot] <= l->acked;
}

/* Frames that have left are kept until they are acknowledged, but nothing can be done for them. */
static bool tcp_waits(const gt_transport *t, size_t peer) {
  bool waits = false;
  for (size_t i = 0; i < t->nstreams; i++) {
    const gt_stream *s = &t->lanes[peer].streams[i];
    waits |= s->greeted && (s->sending || s->out_at < s->out_end);
  }
  return waits;
}

static const void *tcp_receive(gt_transport *t, size_t peer, size_t *bytes) {
  gt_lane_pump_in(t, peer);
  const gt_stream *s = gt_lane_next(t, peer);
  if (!s) {
    if (t->lanes[peer].ack_due) gt_lane_pump_out(t, peer);
    return NULL;
  }
  *bytes = s->frame_bytes;
  return s->frame;
}

static gt_ns tcp_heard(const gt_transport *t, size_t peer) {
  return t->lanes[peer].heard;
}

static bool tcp_left(const gt_transport *t, size_t peer) {
  return t->lanes[peer].left;
}

static gt_loss tcp_lost(gt_transport *t, size_t peer) {
  gt_lane *l = &t->lanes[peer];
  if (l->restarted) {
    l->restarted = false;
    return GT_STARTED_AGAIN;
  }
  if (l->start == 0 || t->tcp->ended[peer] != l->start || l->forgotten) return GT_NOT_LOST;
  gt_lane_forget(t, peer);
  return GT_ENDED;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* A region that leaves alone does not wait for another one that it does not hear from. */
static bool is_waited_for(const gt_transport *t, const gt_lane *l) {
  const bool leaves = t->tcp->base.code == GT_STOPPED;
  return l->start != 0 && !l->left && !l->forgotten && l->acked < l->queued &&
         (!leaves || gt_now() < l->heard + gt_from_seconds(GT_LEAVE_S));
}

/* Returns a region that has not acknowledged every frame; nregions: none.  Frames that still arrive
   are dropped. */
static size_t settle(gt_transport *t) {
  size_t missing = t->tcp->base.nregions, bytes;
  tcp_progress(t);
  for (size_t peer = 0; peer < t->tcp->base.nregions; peer++) {
    if (peer == t->tcp->base.self) continue;
    while (tcp_receive(t, peer, &bytes)) gt_lane_release(t, peer);
    if (is_waited_for(t, &t->lanes[peer])) missing = peer;
  }
  return missing;
}

static void keep_settling(void *context) {
  (void)settle(context);
}

/* True if every region has said that it needs nothing more, or is not connected. */
static bool all_left(gt_transport *t) {
  bool left = true;
  (void)settle(t);
  for (size_t peer = 0; peer < t->tcp->base.nregions; peer++) {
    if (peer == t->tcp->base.self || t->lanes[peer].left) continue;
    for (size_t i = 0; i < t->nstreams; i++) left &= !t->lanes[peer].streams[i].greeted;
  }
  return left;
}

/* A connection that is busy is left alone. */
static void say_bye(void *transport, gt_status code) {
  gt_transport *t = transport;
  for (size_t peer = 0; peer < t->tcp->base.nregions; peer++)
    if (peer != t->tcp->base.self) gt_lane_say_bye(t, peer, code);
}

static void tcp_repeat(gt_transport *t, const gt_past_frame *frames, size_t n, const bool *late) {
  t->past = frames;
  t->npast = n;
  for (size_t peer = 0; peer < t->tcp->base.nregions; peer++) {
    if (peer == t->tcp->base.self || (!late[peer] && t->lanes[peer].start != 0)) continue;
    t->lanes[peer].returned = true;
    gt_lane_queue_past(t, peer);
  }
}

/* Ends with the regions that are there. */
static void part(gt_transport *t) {
  gt_backoff backoff = {0};
  const gt_ns until = gt_now() + gt_from_seconds(PART_S);
  say_bye(t, t->tcp->base.code);
  while (!all_left(t) && gt_now() < until) gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, until);
}

static void tcp_close(gt_transport *t, double limit_s) {
  const bool needs_all = t->servers && !t->tcp->base.restarts;
  t->closing = !t->servers;
  gt_backoff backoff = {0};
  const gt_ns until = gt_now() + gt_from_seconds(limit_s);
  for (size_t missing; (missing = settle(t)) < t->tcp->base.nregions;) {
    if (gt_now() > until && !needs_all) break;
    if (gt_now() > until)
      gt_panic(GT_ERR_LOST, "waited %.0f s for region %s to take the last frames", limit_s,
               t->tcp->base.names[missing]);
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, until);
  }
  t->closing = true;
  if (t->servers && t->tcp->base.restarts) part(t);
  if (needs_all)
    gt_peers_meet(t->servers, &(gt_peers_wait){.what = "the other regions to close their links",
                                               .limit_s = limit_s,
                                               .progress = keep_settling,
                                               .context = t});
  /* those that it relays between still say that they end */
  while (!t->servers && gt_relay_pump(t->tcp) && gt_now() < until)
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, until);
  for (size_t peer = 0; peer < t->tcp->base.nregions; peer++) gt_lane_close(t, peer);
  /* the next gateway of the run takes none of this one's connections */
  if (t->servers) t->tcp->base.run_id++;
  t->tcp->open[place_of(t)] = NULL;
  gt_free(t->lanes);
  gt_free(t);
}

const gt_transport_ops gt_transport_tcp = {
    .name = "tcp",
    .open = tcp_open,
    .progress = tcp_progress,
    .send_frame = tcp_send_frame,
    .sent = tcp_sent,
    .waits = tcp_waits,
    .receive = tcp_receive,
    .release = gt_lane_release,
    .lost = tcp_lost,
    .forget = gt_lane_forget,
    .left = tcp_left,
    .heard = tcp_heard,
    .close = tcp_close,
    .say_bye = say_bye,
    .here = gt_lane_here,
    .absent = gt_lane_absent,
    .repeat = tcp_repeat,
};

gt_status gt_tcp_open(gt_endpoint **out, const gt_tcp_spec *spec) {
  return gt_tcp_create(out, spec, &gt_transport_tcp);
}
