/* A lane numbers frames and keeps them until the peer has acknowledged them.  A broken connection
   is made again, and the peer's greeting says from which frame on to continue, so every frame is
   delivered once and in order.  Frames can take any of the lane's connections: the receiver puts
   them in order. */
#include "lane.h"

#include <math.h>
#include <string.h>

#define OUT_BYTES        ((size_t)64 << 10)
#define DIAL_AGAIN_S     0.05 /* doubles with each failure */
#define DIAL_AGAIN_MAX_S 5.0
#define DOUBLINGS        7
#define CHECK_EVERY      (GT_SECOND / 5)

/* ---- life of a connection -------------------------------------------------------------------- */

/* Several attempts fit into the patience. */
static void dial_later(const gt_tcp *tcp, gt_lane *l, gt_stream *s) {
  const int doublings = s->failures < DOUBLINGS ? s->failures : DOUBLINGS;
  const double most_s = fmin(DIAL_AGAIN_MAX_S, tcp->base.patience_s / 4);
  const double delay_s = fmin(DIAL_AGAIN_S * (double)(1 << doublings), most_s);
  s->dial_at = gt_now() + gt_from_seconds(delay_s * (0.5 + gt_rng_uniform(&l->rng)));
  s->failures++;
}

static gt_lane_entry *entry_at(const gt_lane *l, uint64_t sequence) {
  return &l->queue[sequence % l->window];
}

/* Forgets everything that belongs to the connection: frames that the peer has not acknowledged have
   no carrier again.  A frame that has been acknowledged, or is next, stays for its release. */
static void drop(gt_lane *l, gt_stream *s) {
  gt_connection_close(&s->c);
  if (s->greeted) l->lost = gt_now();
  s->said = s->greeted = s->sending = false;
  s->last = 0;
  s->out_at = s->out_end = s->have = 0;
  if (s->sequence > l->received + 1) s->ready = false;
  for (uint64_t n = l->acked + 1; n <= l->queued; n++)
    if (entry_at(l, n)->carrier == s) entry_at(l, n)->carrier = NULL;
}

void gt_lane_lose(gt_transport *t, size_t peer, gt_stream *s, const char *why) {
  gt_lane *l = &t->lanes[peer];
  size_t unsaid;
  if (!t->closing && !l->left && gt_quiet_over(&l->quiet, &unsaid))
    gt_log(GT_LOG_WARN, "no connection with region %s: %s; trying again (%zu others not logged)",
           t->tcp->base.names[peer], why, unsaid);
  drop(l, s);
  dial_later(t->tcp, l, s);
}

bool gt_lane_here(const gt_transport *t, size_t peer) {
  bool here = false;
  for (size_t i = 0; i < t->nstreams; i++) here |= t->lanes[peer].streams[i].greeted;
  return here;
}

bool gt_lane_absent(const gt_transport *t, size_t peer) {
  const gt_lane *l = &t->lanes[peer];
  return !gt_lane_here(t, peer) && l->start != 0 && !l->left &&
         gt_now() > l->lost + gt_from_seconds(t->tcp->base.patience_s);
}

void gt_lane_check(gt_transport *t, size_t peer, gt_ns now) {
  for (size_t i = 0; i < t->nstreams; i++) {
    gt_stream *s = &t->lanes[peer].streams[i];
    if (!s->said || now < s->checked + CHECK_EVERY) continue;
    s->checked = now;
    if (gt_connection_silent(&s->c)) gt_lane_lose(t, peer, s, "it has been silent for 1 s");
  }
}

void gt_lane_open(gt_transport *t, size_t peer, size_t window) {
  gt_lane *l = &t->lanes[peer];
  l->window = l->nslots = window;
  l->heard = gt_now();
  l->queue = GT_NEW_ARRAY(gt_lane_entry, window);
  l->slot_sequence = GT_NEW_ARRAY(uint64_t, window);
  l->rng = gt_rng_make(t->tcp->base.start, GT_RNG_JITTER, t->tcp->base.self, peer);
  l->streams = GT_NEW_ARRAY(gt_stream, t->nstreams);
  for (size_t i = 0; i < t->nstreams; i++) {
    gt_stream *s = &l->streams[i];
    s->c.fd = -1;
  }
}

void gt_lane_close(gt_transport *t, size_t peer) {
  gt_lane *l = &t->lanes[peer];
  for (size_t i = 0; l->streams && i < t->nstreams; i++) {
    gt_connection_close(&l->streams[i].c);
    gt_free(l->streams[i].out);
    gt_free(l->streams[i].frame);
  }
  gt_free(l->streams);
  gt_free(l->queue);
  gt_free(l->slot_sequence);
}

/* ---- records --------------------------------------------------------------------------------- */

/* A frame that is next and waits for its release is not lost with a connection, so it counts as
   received. */
static uint64_t have_received(const gt_transport *t, const gt_lane *l) {
  for (size_t i = 0; i < t->nstreams; i++)
    if (l->streams[i].ready && l->streams[i].sequence == l->received + 1) return l->received + 1;
  return l->received;
}

gt_tcp_record gt_lane_record(const gt_transport *t, size_t peer, const gt_stream *s,
                             gt_tcp_kind kind, uint64_t sequence) {
  const gt_lane *l = &t->lanes[peer];
  return (gt_tcp_record){.magic = GT_TCP_MAGIC,
                         .kind = (uint16_t)kind,
                         .version = GT_TCP_VERSION,
                         .from = (uint16_t)t->tcp->base.self,
                         .to = (uint16_t)peer,
                         .stream = (uint32_t)(s - l->streams),
                         .sequence = sequence,
                         .ack = have_received(t, l),
                         .start = t->tcp->base.start,
                         .peer_start = l->start};
}

static void put_record(gt_transport *t, size_t peer, gt_stream *s, gt_tcp_kind kind,
                       uint64_t sequence, const gt_lane_entry *e) {
  gt_tcp_record record = gt_lane_record(t, peer, s, kind, sequence);
  if (e) record.bytes = (uint32_t)e->bytes;
  if (!t->tcp->tls) record.sum = gt_tcp_sum(&record, e ? e->frame : NULL);
  memcpy(s->out + s->out_end, &record, sizeof record);
  s->out_end += sizeof record;
  t->lanes[peer].ack_due = false;
}

void gt_lane_say_hello(gt_transport *t, size_t peer, gt_stream *s) {
  if (!s->out) {
    s->out = gt_alloc(OUT_BYTES, 1);
    s->frame = gt_alloc(t->frame_bytes, 1);
  }
  put_record(t, peer, s, GT_TCP_HELLO, t->id, NULL);
  s->said = true;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Kept frames are at their own number: the ring never turns. */
static void make_room(gt_lane *l) {
  const size_t window = 2 * l->window + 2;
  gt_lane_entry *queue = GT_NEW_ARRAY(gt_lane_entry, window);
  memcpy(queue, l->queue, l->window * sizeof *queue);
  gt_free(l->queue);
  l->queue = queue;
  l->window = window;
}

void gt_lane_queue(gt_transport *t, size_t peer, size_t slot, const void *frame, size_t bytes) {
  gt_lane *l = &t->lanes[peer];
  if (l->restarted || l->forgotten) return; /* the frame is for an earlier start */
  l->queued++;
  if (t->keeps && l->queued >= l->window) make_room(l);
  *entry_at(l, l->queued) = (gt_lane_entry){frame, bytes, NULL};
  l->slot_sequence[slot] = l->queued;
}

void gt_lane_queue_past(gt_transport *t, size_t peer) {
  for (size_t i = 0; i < t->npast; i++)
    gt_lane_queue(t, peer, 0, t->past[i].frame, t->past[i].bytes);
}

/* Returns the first frame that the connection can carry; 0: none.  A connection that has carried a
   later frame cannot: the receiver would find the earlier one behind the later one. */
static uint64_t next_frame(const gt_lane *l, const gt_stream *s) {
  for (uint64_t n = (s->last > l->acked ? s->last : l->acked) + 1; n <= l->queued; n++)
    if (!entry_at(l, n)->carrier) return n;
  return 0;
}

static void begin_frame(gt_transport *t, size_t peer, gt_stream *s, uint64_t sequence) {
  gt_lane *l = &t->lanes[peer];
  gt_lane_entry *e = entry_at(l, sequence);
  put_record(t, peer, s, GT_TCP_FRAME, sequence, e);
  e->carrier = s;
  s->last = sequence;
  s->sending = true;
  s->taken = 0;
  if (l->begun < sequence) l->begun = sequence;
}

static void put_part(const gt_lane *l, gt_stream *s) {
  const gt_lane_entry *e = entry_at(l, s->last);
  const size_t left = e->bytes - s->taken, room = OUT_BYTES - s->out_end,
               count = left < room ? left : room;
  memcpy(s->out + s->out_end, e->frame + s->taken, count);
  s->out_end += count;
  s->taken += count;
  if (s->taken == e->bytes) s->sending = false;
}

/* Copies the next records to `out`, of several connections at most one frame.  False: there are
   none. */
static bool fill(gt_transport *t, size_t peer, gt_stream *s) {
  gt_lane *l = &t->lanes[peer];
  const bool alone = t->nstreams == 1;
  uint64_t next;
  s->out_at = s->out_end = 0;
  while (s->out_end + sizeof(gt_tcp_record) <= OUT_BYTES) {
    if (s->sending)
      put_part(l, s);
    else if ((alone || s->out_end == 0) && (next = next_frame(l, s)) != 0)
      begin_frame(t, peer, s, next);
    else if (l->ack_due)
      put_record(t, peer, s, GT_TCP_ACK, 0, NULL);
    else
      break;
  }
  return s->out_end > 0;
}

/* Writes until a frame has ended: then true; false: the socket takes no more, or there is no
   more. */
static bool pump_out(gt_transport *t, size_t peer, gt_stream *s) {
  while (s->said) {
    if (s->out_at == s->out_end && (!s->greeted || !fill(t, peer, s))) return false;
    const long n = gt_connection_write(&s->c, s->out + s->out_at, s->out_end - s->out_at);
    if (n < 0) gt_lane_lose(t, peer, s, s->c.fault);
    if (n <= 0) return false;
    s->out_at += (size_t)n;
    if (s->out_at == s->out_end && !s->sending) return true;
  }
  return false;
}

/* Connections take one frame in turn. */
void gt_lane_pump_out(gt_transport *t, size_t peer) {
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < t->nstreams; i++) more |= pump_out(t, peer, &t->lanes[peer].streams[i]);
  }
}

void gt_lane_say_bye(gt_transport *t, size_t peer, gt_status code) {
  for (size_t i = 0; i < t->nstreams; i++) {
    gt_stream *s = &t->lanes[peer].streams[i];
    if (!s->greeted || s->sending || s->out_at < s->out_end) continue;
    s->out_at = s->out_end = 0;
    put_record(t, peer, s, GT_TCP_BYE, (uint64_t)code, NULL);
    (void)pump_out(t, peer, s);
    return;
  }
}

/* ---- starts ---------------------------------------------------------------------------------- */

static bool is_former(const gt_lane *l, uint64_t start) {
  const size_t known = l->nformer < GT_TCP_FORMER ? l->nformer : GT_TCP_FORMER;
  for (size_t i = 0; i < known; i++)
    if (l->former[i] == start) return true;
  return false;
}

/* True if the peer is lost to a transport: connections that it still has to another one can be
   those of a proxy that has not noticed its end. */
static bool is_lost(const gt_tcp *tcp, size_t peer) {
  bool lost = false;
  for (size_t i = 0; i < GT_TCP_TRANSPORTS; i++)
    lost |= tcp->open[i] && tcp->open[i]->lanes[peer].forgotten;
  return lost;
}

bool gt_lane_has_other(const gt_transport *t, size_t peer, const gt_tcp_record *hello) {
  const gt_lane *l = &t->lanes[peer];
  bool connected = false;
  if (l->start == 0 || hello->start == l->start) return false;
  for (size_t i = 0; i < t->nstreams && !is_lost(t->tcp, peer); i++)
    /* a frame that waits keeps this region from reading the end */
    connected |= l->streams[i].greeted && !gt_connection_closed(&l->streams[i].c);
  return connected || is_former(l, hello->start);
}

/* Nothing that was sent or received counts. */
static void clear(gt_transport *t, gt_lane *l) {
  l->acked = l->begun = l->queued = l->received = 0;
  memset(l->slot_sequence, 0, l->nslots * sizeof *l->slot_sequence);
  for (size_t i = 0; i < t->nstreams; i++) l->streams[i].ready = false;
}

void gt_lane_forget(gt_transport *t, size_t peer) {
  gt_lane *l = &t->lanes[peer];
  /* the run has begun without it, but it is there by now */
  if (t->tcp->base.late[peer] && l->start && !l->queued && !l->received) {
    l->restarted = true;
    return;
  }
  for (size_t i = 0; i < t->nstreams; i++) drop(l, &l->streams[i]);
  clear(t, l);
  l->forgotten = true;
}

/* True for a gateway that has reached an earlier start of the peer only, and has not given it up, if
   the group has taken this start before the run began: the peer begins the run with the others, and
   is not lost to it. */
static bool begins_the_run(const gt_transport *t, size_t peer, uint64_t start) {
  const gt_transport *group = t->tcp->open[GT_TCP_OF_PEERS];
  const gt_lane *l = &t->lanes[peer];
  return !t->keeps && !l->forgotten && l->acked == 0 && l->received == 0 && group &&
         group->lanes[peer].start == start && !group->lanes[peer].returned;
}

/* The peer has started again, or comes for the first time after the others have begun, and knows
   nothing of the frames so far.  A gateway's frames are dropped; those of a group are sent again,
   and those received from it count, unless the run has begun or begins without the peer. */
static void begin_anew(gt_transport *t, size_t peer, const gt_stream *on, uint64_t start) {
  gt_lane *l = &t->lanes[peer];
  if (!gt_endpoint_takes_back(&t->tcp->base))
    gt_panic(
        GT_ERR_LOST,
        "region %s has started again, and this run cannot take it back: end every region, then "
        "start each with --resume",
        t->tcp->base.names[peer]);
  if (l->start == 0 && t->keeps)
    gt_log(GT_LOG_INFO, "region %s has come", t->tcp->base.names[peer]);
  if (l->start != 0) {
    gt_log(GT_LOG_WARN, "region %s has started again", t->tcp->base.names[peer]);
    l->former[l->nformer++ % GT_TCP_FORMER] = l->start;
  }
  const bool begins = begins_the_run(t, peer, start);
  l->left = l->forgotten = false;
  for (size_t i = 0; i < t->nstreams; i++)
    if (&l->streams[i] != on) drop(l, &l->streams[i]);
  if ((t->keeps && !t->past && !t->tcp->base.late[peer]) || begins) {
    l->acked = l->begun = 0;
    for (uint64_t n = 1; n <= l->queued; n++) entry_at(l, n)->carrier = NULL;
    return;
  }
  clear(t, l);
  l->restarted = !t->keeps;
  l->returned = t->keeps;
  gt_lane_queue_past(t, peer);
}

/* Returns how many frames of this start the greeting acknowledges.  One that knows an earlier start
   acknowledges none; but a group has the same frames in each. */
static uint64_t greeted_ack(const gt_transport *t, const gt_tcp_record *hello) {
  return hello->peer_start == t->tcp->base.start || t->keeps ? hello->ack : 0;
}

/* The peer is there: every transport dials it now. */
static void dial_now(const gt_tcp *tcp, size_t peer) {
  for (size_t i = 0; i < GT_TCP_TRANSPORTS; i++)
    for (size_t k = 0; tcp->open[i] && k < tcp->open[i]->nstreams; k++)
      tcp->open[i]->lanes[peer].streams[k].dial_at = 0;
}

static void take_greeting(gt_transport *t, size_t peer, gt_stream *s, const gt_tcp_record *hello) {
  gt_lane *l = &t->lanes[peer];
  const bool late = l->forgotten || (t->keeps && t->tcp->base.late[peer]);
  if (l->start == 0 ? late : l->start != hello->start) begin_anew(t, peer, s, hello->start);
  const uint64_t ack = greeted_ack(t, hello);
  l->start = hello->start;
  l->refused_till = 0;
  if (l->acked < ack) l->acked = ack;
  if (l->begun < l->acked) l->begun = l->acked;
  s->greeted = true;
  s->failures = 0;
  dial_now(t->tcp, peer);
}

void gt_lane_adopt(gt_transport *t, size_t peer, gt_stream *s, const gt_connection *c,
                   const gt_tcp_record *hello) {
  drop(&t->lanes[peer], s);
  s->c = *c;
  take_greeting(t, peer, s, hello);
  gt_lane_say_hello(t, peer, s);
}

/* This start of the region came while another one was connected.  The peer can need a moment to see
   that the other one has died. */
static void take_refusal(gt_transport *t, size_t peer) {
  gt_lane *l = &t->lanes[peer];
  const gt_ns now = gt_now();
  if (l->refused_till == 0) {
    l->refused_till = now + gt_from_seconds(t->tcp->refused_s);
    gt_log(GT_LOG_WARN,
           "another start of region %s is connected with region %s; this one tries for %.0f s, in "
           "case the other one has died",
           t->tcp->base.names[t->tcp->base.self], t->tcp->base.names[peer], t->tcp->refused_s);
  }
  if (now > l->refused_till)
    gt_panic(
        GT_ERR_CKPT,
        "another start of region %s is connected with region %s; end it before this one starts",
        t->tcp->base.names[t->tcp->base.self], t->tcp->base.names[peer]);
}

/* ---- receiving ------------------------------------------------------------------------------- */

const char *gt_lane_greeting_fault(const gt_transport *t, size_t peer, const gt_stream *s,
                                   const gt_tcp_record *hello) {
  const gt_lane *l = &t->lanes[peer];
  const bool anew = l->start != 0 && l->start != hello->start;
  if (hello->sequence != t->id) return "it belongs to another run";
  if (hello->stream != (size_t)(s - l->streams)) return "it belongs to another stream";
  if (hello->start == 0) return "its start has no number";
  if (hello->bytes != 0) return "a record has a wrong length";
  if (is_former(l, hello->start)) return "it is of an earlier start of the region";
  if (l->forgotten && l->start == hello->start) return "it was lost; it must start again to return";
  if (!t->keeps && greeted_ack(t, hello) > (anew ? 0 : l->begun))
    return "a record acknowledges frames that were not sent";
  return NULL;
}

static const char *frame_fault(const gt_transport *t, const gt_lane *l, const gt_tcp_record *head) {
  if (head->bytes == 0 || head->bytes > t->frame_bytes) return "a frame has a wrong length";
  /* of several connections another one can have it */
  return t->nstreams == 1 && head->sequence > l->received + 1 ? "a frame is missing" : NULL;
}

/* Returns what is wrong with the header; NULL: nothing. */
static const char *record_fault(const gt_transport *t, size_t peer, const gt_stream *s) {
  const gt_tcp_record *head = &s->head;
  const gt_lane *l = &t->lanes[peer];
  if (head->magic != GT_TCP_MAGIC) return "a record does not begin with GTR1";
  if (head->version != GT_TCP_VERSION) return "it speaks another version of the protocol";
  if (head->from != peer || head->to != t->tcp->base.self) return "a record names another pair";
  if (head->kind != GT_TCP_FRAME && head->bytes != 0) return "a record has a wrong length";
  if (head->kind == GT_TCP_REFUSED && !s->greeted) return NULL;
  if ((head->kind == GT_TCP_HELLO) == s->greeted) return "a greeting is missing or repeated";
  if (head->kind == GT_TCP_HELLO) return gt_lane_greeting_fault(t, peer, s, head);
  if (head->start != l->start || head->peer_start != t->tcp->base.start)
    return "a record is of another start";
  if (head->ack > l->begun) return "a record acknowledges frames that were not sent";
  if (head->kind == GT_TCP_FRAME) return frame_fault(t, l, head);
  return head->kind == GT_TCP_ACK || head->kind == GT_TCP_BYE ? NULL
                                                              : "a record has an unknown kind";
}

/* A group's farewell is of the whole region: its gateway is lost, too. */
static const char *take_bye(gt_transport *t, size_t peer, uint64_t code) {
  t->lanes[peer].left = code == GT_OK;
  if (code != GT_OK) t->tcp->ended[peer] = t->lanes[peer].start;
  if (code != GT_OK && !gt_endpoint_takes_back(&t->tcp->base))
    gt_panic(GT_ERR_LOST, "region %s has ended with code %d; its own log says why",
             t->tcp->base.names[peer], (int)code);
  return code == GT_OK ? NULL : "it has ended with an error; its own log says why";
}

static void take_frame(gt_lane *l, gt_stream *s) {
  s->ready = s->head.sequence > l->received;
  s->sequence = s->head.sequence;
  s->frame_bytes = s->head.bytes;
  l->ack_due = true;
}

/* Takes a complete record.  Returns why the connection breaks; NULL: it continues. */
static const char *take_record(gt_transport *t, size_t peer, gt_stream *s) {
  gt_lane *l = &t->lanes[peer];
  const gt_tcp_record *head = &s->head;
  if (!t->tcp->tls && gt_tcp_sum(head, s->frame) != head->sum) return "a record is damaged";
  s->have = 0;
  if (head->kind == GT_TCP_HELLO) {
    take_greeting(t, peer, s, head);
    return NULL;
  }
  if (head->kind == GT_TCP_REFUSED) {
    take_refusal(t, peer);
    return "another start of this region is connected";
  }
  if (l->acked < head->ack) l->acked = head->ack;
  if (head->kind == GT_TCP_BYE) return take_bye(t, peer, head->sequence);
  if (head->kind == GT_TCP_FRAME) take_frame(l, s);
  return NULL;
}

/* Reads the next bytes of a record: of its header, then of its frame. */
static long read_part(gt_stream *s) {
  if (s->have < sizeof s->head)
    return gt_connection_read(&s->c, (char *)&s->head + s->have, sizeof s->head - s->have);
  const size_t at = s->have - sizeof s->head;
  return gt_connection_read(&s->c, s->frame + at, s->head.bytes - at);
}

static void pump_in(gt_transport *t, size_t peer, gt_stream *s) {
  while (s->said && !s->ready) {
    const long n = read_part(s);
    const char *fault = n < 0 ? s->c.fault : NULL;
    if (n == 0) return;
    if (n > 0) {
      t->lanes[peer].heard = gt_now();
      s->have += (size_t)n;
      if (s->have == sizeof s->head) fault = record_fault(t, peer, s);
    }
    if (!fault && s->have >= sizeof s->head && s->have == sizeof s->head + s->head.bytes)
      fault = take_record(t, peer, s);
    if (fault) {
      gt_lane_lose(t, peer, s, fault);
      return;
    }
  }
}

void gt_lane_pump_in(gt_transport *t, size_t peer) {
  for (size_t i = 0; i < t->nstreams; i++) pump_in(t, peer, &t->lanes[peer].streams[i]);
}

gt_stream *gt_lane_next(gt_transport *t, size_t peer) {
  gt_lane *l = &t->lanes[peer];
  if (l->restarted) return NULL;
  for (size_t i = 0; i < t->nstreams; i++) {
    gt_stream *s = &l->streams[i];
    if (!s->ready) continue;
    if (s->sequence == l->received + 1) return l->current = s;
    if (s->sequence <= l->received) s->ready = false; /* another connection had it, too */
  }
  return NULL;
}

void gt_lane_release(gt_transport *t, size_t peer) {
  gt_lane *l = &t->lanes[peer];
  l->current->ready = false;
  l->current = NULL;
  l->received++;
  l->ack_due = true;
}
