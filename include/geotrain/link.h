/* link: the model of a WAN link, traces, the message header, frames.  Layer 2.  No MPI and no
   clock: pure functions of state and time. */
#pragma once

#include "geotrain/base_heap.h"
#include "geotrain/job.h"

/* ---- traces ---------------------------------------------------------------------------------- */

/* Bandwidth and latency over time, piecewise constant and periodic.  Read once, shared by any
   number of links, never changed. */
typedef struct gt_link_trace gt_link_trace;

/* Reads a trace.  A file whose name ends in ".csv" has lines `time_s,bandwidth,latency`: seconds or
   times with a unit; rates and times as in a job, plain numbers are bit/s and seconds; bandwidth 0:
   nothing passes; an empty latency: that of the link.  Each line is valid from its time to that of
   the next.  The first time must be 0; the last line's time ends the period (its rate is ignored).
   An optional first line `time_s,...` names the columns.
   Any other file is in mahimahi's packet-delivery format: one integer per line, the millisecond at
   which 1,500 bytes can be delivered; the last one ends the period.  The bytes pass evenly in the
   millisecond that ends then; 0 counts as the first one.
   In both formats, empty lines and lines that begin with # are ignored.  Refused: files above 16
   MiB, periods below 1 ms, traces in which nothing passes.  Local; GT_ERR_JOB names file, line,
   what was found and what was expected.  The caller owns *out. */
gt_status gt_link_trace_read(gt_link_trace **out, const char *path);
void gt_link_trace_close(gt_link_trace *trace);
double gt_link_trace_period_s(const gt_link_trace *trace);
/* Returns the bits that pass from time 0 of the trace until t_s, over any number of periods. */
double gt_link_trace_bits(const gt_link_trace *trace, double t_s);
/* Returns the lowest latency in the trace; negative: the trace has no latencies. */
double gt_link_trace_latency_min_s(const gt_link_trace *trace);

/* Returns the lower of two rates in bit/s; 0: unlimited. */
static inline double gt_rate_lower(double a, double b) {
  return a <= 0 || (b > 0 && b < a) ? b : a;
}

/* ---- the link model -------------------------------------------------------------------------- */

/* No bit leaves the sender from from_s to from_s + for_s after the link's origin.  Bits that have
   left still arrive. */
typedef struct {
  double from_s, for_s;
} gt_link_outage;

/* One direction between two regions; pointers are borrowed and must outlive it.  bandwidth_bps 0:
   unlimited. */
typedef struct {
  /* One-way latency; jitter: standard deviation of a seeded normal distribution, truncated at 3
     standard deviations; it never reorders frames. */
  double bandwidth_bps, latency_s, jitter_s;
  /* Share of packets lost, at least 0 and below 1; its only effect is on the goodput
     (gt_link_goodput). */
  double loss;
  double back_s; /* latency of the other direction: the round trip is latency_s + back_s */
  /* The transport model, as for TCP.  Rendezvous: a frame larger than eager_bytes is ready
     setup_rtts round trips after it was queued.  Slow start: at the link's origin, and after an
     idle time of more than idle_s (0: never again), at most window_bytes leave in the first round
     trip. The bytes that left in a round trip are added to the window of the next, so a used-up
     window doubles.  Slow start ends when the window is goodput times round trip, or 1 GiB.  0:
     off. */
  double setup_rtts, eager_bytes, window_bytes, idle_s;
  /* Over a store: a message is one object.  Its receiver looks for it, which takes look_s; if it is
     not there, it looks again every_s after that look began.  latency_s: from an object's last bit
     until its first bit comes back, if the receiver looks at once.  0: not over a store. */
  double look_s, every_s;
  const gt_link_outage *outages; /* noutages, ascending, disjoint */
  size_t noutages;
  /* Replaces bandwidth_bps, and latency_s where the trace has one; NULL: none. */
  const gt_link_trace *trace;
} gt_link_spec;

/* busy_until: when the last frame given to the link has left the sender; last_arrival: lower bound
   for the arrival of later frames; origin: the start of the link's trace and outages; window_*:
   slow start.  All times are of one clock: gt_link_shift converts them to another. */
typedef struct {
  gt_ns busy_until, last_arrival, origin;
  gt_ns window_from; /* when the current round trip of slow start began */
  /* Of the current round trip; 0: slow start is over or off; negative: no frame has passed yet. */
  double window_bytes;
  double window_left; /* unused part of window_bytes */
  gt_rng rng;
} gt_link_state;

/* left_ns: time of an access between `from` and `until` that no frame has used, spread evenly. */
typedef struct {
  gt_ns from, until;
  double left_ns;
} gt_access_gap;

/* Number of gaps remembered.  A forgotten gap delays a frame by at most the frame's own time at the
   access. */
#define GT_ACCESS_GAPS 64

/* A region's access to the WAN, one direction, shared by all its links.  rate_bps 0: unlimited.
   gaps: before busy_until, ascending; used on the receiving side only. */
typedef struct {
  double rate_bps;
  gt_ns busy_until;
  size_t ngaps;
  gt_access_gap gaps[GT_ACCESS_GAPS];
} gt_access;

typedef struct {
  gt_ns depart; /* the frame's last bit has left the sender */
  gt_ns arrive; /* the frame is at the receiver (at its access, if rate-limited) */
} gt_link_times;

/* Returns the initial state of the direction from -> to, with this origin. */
gt_link_state gt_link_start(uint64_t seed, size_t from, size_t to, gt_ns origin);
/* Adds `by` to every time in the state. */
void gt_link_shift(gt_link_state *state, gt_ns by);
/* Gives the link a frame of size_bytes that is ready at `ready`; first come, first served; `up`
   (NULL is allowed) is the sender's access.
   begin = max(ready + set-up, busy_until), or the end of the outage that contains it.
   depart: when 8 size bits have been served from `begin` on, by bandwidth or trace, outside
   outages, within the windows of slow start, and by the access.  The access serves concurrently (a
   frame passes both as one stream) and takes frames in the order of the calls, from max(ready,
   busy_until) on: a link that waits for its set-up or an outage does not delay the others.
   arrive = max(last_arrival, depart + flight), flight = latency at depart + jitter, never less than
   gt_link_delay_min.  Over a store: the first time since then at which a look ends, where the first
   look follows last_arrival.
   Times end at INT64_MAX / 2: a frame with that time never arrives. */
gt_link_times gt_link_step(gt_link_state *state, const gt_link_spec *spec, gt_access *up,
                           size_t size_bytes, gt_ns ready);
/* Messages of a region that have passed a store, and the bytes of those with data. */
typedef struct {
  int64_t data, control, data_bytes;
} gt_link_objects;
/* Counts a whole message; bytes: on the wire. */
void gt_link_object(gt_link_objects *sum, uint32_t kind, size_t bytes);
/* A link to which a sender gives one frame at a time. */
typedef struct {
  gt_link_state link;
  gt_ns used, until; /* used: time in which frames were leaving; until: the end of the last such
                        interval */
} gt_wire;

/* Calls gt_link_step, and counts the time in which the frame leaves. */
gt_link_times gt_wire_send(gt_wire *wire, const gt_link_spec *spec, gt_access *up,
                           size_t size_bytes, gt_ns ready);
/* Counts an interval in which a frame was leaving; overlapping intervals count once. */
void gt_wire_add(gt_wire *wire, gt_ns from, gt_ns until);
/* True if the link sends the first queued control frame before the first other frame; control,
   other: times at which these were queued.  The decision is that of the time at which the link
   became free, because the poll can be late: a control frame does not overtake a frame whose
   sending should have begun before the control frame was queued. */
bool gt_wire_control_first(const gt_wire *wire, gt_ns control, gt_ns other);
/* Returns the first peer when a region sends a frame to each: its successor if the access is
   limited, so that regions do not all send to the same peer at once. */
static inline size_t gt_access_first(const gt_access *up, size_t self) {
  return up->rate_bps > 0 ? self + 1 : 0;
}
/* Returns the rate in bit/s at which a frame comes in over the link, from a sender whose access has
   up_bps (0: unlimited): the lower of up_bps and the goodput.  0: unlimited, as over a store, which
   has the whole object. */
double gt_link_stream_bps(const gt_link_spec *spec, double up_bps);
/* Passes a frame over the receiver's access and returns when it has passed.  Its last bit reaches
   the access at `arrive`; its bits come in evenly at stream_bps (0: all at once).  The frame uses
   access time that earlier frames left unused, from its first bit on; no bit passes before it is
   there.  The result is at least `arrive`, and not before any earlier frame.  Call it in order of
   `arrive`. */
gt_ns gt_access_pass(gt_access *down, size_t size_bytes, double stream_bps, gt_ns arrive);
/* ---- functions ---- */

/* What a region writes to a store, once for all regions: with `shares`, messages of
   GT_LINK_SHARED_MIN bytes; or its PS is a function in a cloud that the store invokes for each
   object of data (wan.store.trigger event).  Each invocation lists the objects; the one that finds
   all of a round reads them, adds them up, and writes the result (Phalak et al., 3.1). */
typedef struct {
  bool shares;
  size_t objects; /* of a round; 0: the region is no function */
  /* from an object's arrival in the store to the function's start; of a request with its answer;
     from the store to the region, with the request */
  gt_ns start, request, back;
  /* results */
  gt_ns complete;          /* when the last object of a round was in the store */
  double seconds;          /* of all invocations */
  double byte_s;           /* bytes of data times the seconds until another region finds them */
  int64_t lists, shared;   /* shared: messages without data of their own */
  int64_t shared_bytes;    /* of these */
  struct gt_link_written { /* the last object written */
    gt_ns queued, depart, there; /* there: until when it is in the store */
    uint64_t value;
    size_t bytes;
    uint32_t kind, range;
  } written;
} gt_link_function;
/* Gives the link a message of the region, as gt_wire_send does.  Messages to several regions with
   the same kind, value, range and size are one object.  With `shares`, the regions after the first
   get a reference to it, written when it is in the store, and read it after that. */
gt_link_times gt_function_write(gt_link_function *f, gt_wire *wire, const gt_link_spec *spec,
                                gt_access *up, const struct gt_link_written *what);

/* A frame at the receiver's access: arrival time, sending region, bytes, kind of the message, rate
   as above, and the caller's identifier. */
typedef struct {
  gt_ns arrive;
  size_t from, bytes;
  uint32_t kind;
  double stream_bps;
  union {
    void *frame;
    uint64_t number;
  } of;
} gt_landing_frame;

/* The receiver's access with its queue of frames.  One frame is served at a time; then senders with
   queued frames take turns, so that each gets an equal share. */
typedef struct {
  gt_access access;
  bool busy; /* a frame is in service, and passes at `passes` */
  gt_landing_frame served;
  gt_ns passes;
  int64_t tag, *tags; /* of the frame in service; nregions: of the last frame of each sender */
  gt_heap waiting;    /* by (tag, sender) */
  struct gt_landing_place {
    gt_landing_frame frame;
    uint32_t next; /* free list: index of the next free entry */
  } * places;      /* the queued frames */
  size_t nplaces, capacity;
  uint32_t spare;
  gt_link_function *function; /* borrowed; NULL: objects are read as they come */
  uint32_t held;              /* objects of the round that is not complete, newest first */
  size_t nheld;
} gt_landing;

/* Opens an access.  rate_bps: of the access; 0: unlimited.  If the caller
   then sets a function, data is read when its round is complete, or when a message comes that is
   neither data nor an acknowledgement nor a heartbeat. */
void gt_landing_open(gt_landing *landing, size_t nregions, double rate_bps);
void gt_landing_close(gt_landing *landing);
/* Adds a frame.  Call it in order of `arrive`, after taking all frames that pass earlier.  True:
   the frame has passed at once. */
bool gt_landing_put(gt_landing *landing, const gt_landing_frame *frame);
/* Returns when the next frame passes; GT_NEVER: none is queued. */
gt_ns gt_landing_next(const gt_landing *landing);
/* Gives up rounds: what is held for a function is read now. */
void gt_landing_release(gt_landing *landing, gt_ns now);
/* Takes the next frame. */
gt_landing_frame gt_landing_take(gt_landing *landing);
/* Passes all n frames, in order of `arrive`; the queue must be empty.  Calls `passed` for each when
   it passes. */
void gt_landing_all(gt_landing *landing, const gt_landing_frame *frames, size_t n,
                    void (*passed)(void *ctx, const gt_landing_frame *frame, gt_ns at), void *ctx);

/* Returns a lower bound of the time from `ready` to the arrival of any frame, the lookahead of the
   virtual clock: max(latency - 3 jitter, latency / 10), with the lowest latency of a trace. */
gt_ns gt_link_delay_min(const gt_link_spec *spec);
/* Returns the goodput of TCP over the link in bit/s: bandwidth (of a trace: its mean) times (1 -
   loss), limited by the throughput of one CUBIC stream at this loss and round trip (RFC 8312, 5.1:
   the larger of its own average window and that of Reno, with segments of 1448 bytes).  0:
   unlimited. */
double gt_link_goodput(const gt_link_spec *spec);

/* ---- the links of a job ---------------------------------------------------------------------- */

/* All directions between two regions of the job, with traces and outages; the job outlives it.
   GT_ERR_JOB names a trace that cannot be read.  *out is written even after an error; the caller
   closes it. */
typedef struct gt_links gt_links;
#define GT_STREAMS_UNKNOWN ((size_t)4)
#define GT_STREAMS_MAX     ((size_t)16)
gt_status gt_links_create(gt_links **out, const gt_job *job);
/* Returns the links among n of the regions, renumbered from 0, without outages.  regions: NULL: the
   first n.  `links` outlives it; the caller closes it. */
gt_links *gt_links_among(const gt_links *links, const size_t *regions, size_t n);
/* Returns the links for a run of this share of the training of the job, whose whole run takes
   run_s.  Outages last `outages` times as long (0: none), and the time between them is shorter by
   `share`.  A trace is so much faster that the run meets several of its periods, or as many
   as the whole run.  `links` outlives it; the caller closes it. */
gt_links *gt_links_shorter(const gt_links *links, const gt_job *job, double run_s, double share,
                           double outages);
void gt_links_close(gt_links *links);
/* A region's access to the WAN, or to the store, in each direction; 0: unlimited. */
typedef struct {
  double up_bps, down_bps;
} gt_link_access;
gt_link_access gt_links_access(const gt_links *links, size_t region);
/* Returns how often a region that has read so many objects has looked in vain in this time. */
int64_t gt_links_vain_looks(const gt_links *links, size_t region, double seconds, int64_t objects);
/* Returns the function that the region is. */
gt_link_function gt_links_function(const gt_links *links, size_t region);
/* Returns nregions links, from `region` to each other region; owned by links. */
const gt_link_spec *gt_links_from(const gt_links *links, size_t region);
/* Returns the seconds that `self` waits for a heartbeat from `peer`: least_s, or ten times the
   transfer time of the largest message from the peer if that is longer, because the heartbeat
   can be queued behind one.  Over a store: by the peer's upload and self's download. */
double gt_links_patience(const gt_links *links, size_t peer, size_t self, size_t message_bytes,
                         double least_s);
/* Returns the TCP connections that two regions need, so that the windows of all hold the bytes in
   flight on the path with most of them; GT_STREAMS_UNKNOWN or more if a bandwidth is not known. */
size_t gt_links_streams(const gt_links *links);
/* Writes the SHA-256 of the numbers of bits that the traces deliver, to compare traces between
   regions. */
void gt_links_hash(const gt_links *links, char hex[GT_SHA256_HEX]);
/* Checks that every link has a latency; why: what needs it.  GT_ERR_JOB names one without. */
gt_status gt_links_timed(const gt_links *links, const gt_job *job, const char *why);
/* Fills delay_min (nregions x nregions, row: sender). */
void gt_links_delays(const gt_links *links, gt_ns *delay_min);

/* ---- messages and frames --------------------------------------------------------------------- */

#define GT_FRAME_HEADER_BYTES   64
#define GT_FRAME_HEADER_MAX     96
#define GT_FRAME_PAYLOAD_MAX    ((size_t)1 << 20)
#define GT_LINK_REFERENCE_BYTES ((size_t)256)     /* of an object that names another one */
#define GT_LINK_SHARED_MIN      ((size_t)1 << 20) /* bytes of an object that several regions read */
#define GT_OBJECT_MAX           ((size_t)1 << 30) /* bytes of a message that is one object */
#define GT_CONTROL_NUMBERS      ((size_t)512) /* maximum number of float64 in a control message */
#define GT_PROTOCOL_VERSION     18
#define GT_HELLO_BYTES          ((size_t)1456) /* payload of a HELLO, which opens every link */
#define GT_SCORE_BYTES          (6 * sizeof(double)) /* payload of a SCORE */

typedef enum {
  /* strategy traffic: ordered, acknowledged, saved until acknowledged */
  GT_MSG_UPDATE = 1, /* additive: gradients or parameter updates */
  GT_MSG_STATE = 2,  /* a model */
  /* control: one frame each, sent before data, neither ordered with data nor resent */
  GT_MSG_HELLO = 16,
  GT_MSG_ACK, /* value: the last applied sequence */
  /* the heartbeat.  value: the sender's clock; samples: that the sender has trained on;
     posted_bytes; most_bytes; range: a number that changes while the region works.  PONG answers
     with the same value */
  GT_MSG_PING,
  GT_MSG_PONG,
  /* value: the checkpoint round that the sender opens; detail: exit code with which the run ends
     after the round, or 0; sequence, between regions of one pipeline: steps completed by the
     sender */
  GT_MSG_ROUND,
  GT_MSG_WRITTEN, /* value: round durable at the sender; detail: 1: the file is invalid */
  /* value: the region's last step; detail: its last data sequence; sequence: its last all-reduce
     round or the step of its last broadcast. */
  GT_MSG_DONE,
  /* After a resume; value: the sender's newest all-reduce round; detail: its last data sequence;
     sequence: GT_JOINED_ACTIVE, _DONE or _LATE. */
  GT_MSG_JOINED,
  GT_MSG_BYE, /* value: the exit code of the run */
  /* Of a pipeline.  The sender has a gradient: value: the step; detail: 1 if the gradient is
     non-finite; posted_bytes.  Or sums of squares: value; range: index of the first tensor;
     payload: float64. */
  GT_MSG_STRATEGY,
  /* A note of a pipeline's adapter (ps/adapt.c).  range: kind of the note; value, detail: as the
     kind requires; posted_bytes */
  GT_MSG_ADAPT,
  /* Membership (ps/members.c).  range: what the message says; value: an epoch; payload: int64 */
  GT_MSG_MEMBERS,
  /* Validation (ps/validate.c).  value: a checkpoint round; range 0: the sender's sums of its model
     then; range 1: how the sender has judged the round; payload: 6 float64 */
  GT_MSG_SCORE,
  /* bulk: framed like data, and in one queue with data; not numbered, not acknowledged, never
     resent */
  GT_MSG_REPORT = 32, /* a region's result, JSON; value: 1: its test loss is not finite */
  GT_MSG_MODEL,       /* a region's final model */
  /* Of a pipeline, always with a route: the output of the origin's span for the next span, and the
     gradient of that output, which is sent back.  value: step x micro-batches + micro-batch; range:
     the receiver's span; route: offset and count of the samples of the micro-batch, weight 0. */
  GT_MSG_ACTIVATION,
  GT_MSG_ACT_GRADIENT,
  /* The group's state of a range, for a member that lacks it (ps/recover.c).  value: the epoch */
  GT_MSG_GROUP,
  /* between gateways under the virtual clock: no traffic, neither counted nor delayed */
  GT_MSG_CLOCK = 48
} gt_msg_kind;

/* State of the region that sends JOINED: it still trains; it has finished, and DONE follows; it had
   finished, and can resume training. */
enum { GT_JOINED_ACTIVE, GT_JOINED_DONE, GT_JOINED_LATE };

static inline bool gt_msg_is_data(uint32_t kind) {
  return kind == GT_MSG_UPDATE || kind == GT_MSG_STATE;
}

static inline bool gt_msg_is_activation(uint32_t kind) {
  return kind == GT_MSG_ACTIVATION || kind == GT_MSG_ACT_GRADIENT;
}

/* True for training traffic, which counts as bytes_sent in summaries; false for control
   messages. */
static inline bool gt_msg_is_traffic(uint32_t kind) {
  return gt_msg_is_data(kind) || gt_msg_is_activation(kind);
}

static inline bool gt_msg_is_control(uint32_t kind) {
  return kind >= GT_MSG_HELLO && kind <= GT_MSG_SCORE;
}

/* Header flag: `route` follows the header on the wire.  Set for a piece of a range, a sum, a
   message of a pipeline, and a message forwarded for another region. */
#define GT_FRAME_ROUTED ((uint16_t)1)

typedef struct {
  uint16_t origin, origin_rank, destination, destination_rank; /* region; rank in it, 0: its PS */
  /* floats in the collective's range; pipeline: samples in the micro-batch */
  uint64_t offset, count;
  double weight; /* sum of the weights of the regions in a sum; 0: not a sum */
} gt_frame_route;

/* The header of every frame: 64 bytes, or 96 with its route, little endian, in this order
   (docs/wire-format.md). */
typedef struct {
  uint32_t magic;       /* "GTF1" */
  uint8_t kind, codec;  /* gt_msg_kind; codec 0: none */
  uint16_t from;        /* region id of the sender */
  uint32_t frame_bytes; /* payload bytes in this frame */
  uint32_t round;       /* the sender's checkpoint round */
  union {
    uint64_t sequence;     /* data: per link, from 1; ROUND, DONE, JOINED: see there; else 0 */
    uint64_t clock;        /* PONG, activations: the sender's, in ns */
    uint64_t posted_bytes; /* PING, STRATEGY, ADAPT: traffic that the sender has posted */
  };
  union {
    uint64_t frame_offset; /* of this frame's payload in the message; control: 0 */
    uint64_t most_bytes;   /* PING: the most bytes that the sender has wanted to post at a time */
    /* Data that is one object (GT_OBJECT_MAX): as the value of an ACK; 0: none */
    uint64_t acknowledged;
  };
  uint64_t message_bytes; /* payload bytes of the whole message */
  uint64_t value;         /* data: the sender's step or round number; others: see kinds */
  union {
    uint64_t detail;  /* data: samples behind the update; control: see kinds */
    uint64_t samples; /* PING */
    /* PONG of region 0: bytes that the receiver may post in total; 0: not known */
    uint64_t allowed_bytes;
  };
  uint32_t range;       /* fragment; 0: the whole model; of a pipeline: a span */
  uint16_t flags;       /* GT_FRAME_ROUTED or 0 */
  uint16_t epoch;       /* the sender's membership epoch; HELLO: 0 */
  gt_frame_route route; /* zeros without GT_FRAME_ROUTED */
} gt_frame_header;

/* Returns the size of the header on the wire, in bytes. */
static inline size_t gt_header_bytes(const gt_frame_header *head) {
  return head->flags & GT_FRAME_ROUTED ? GT_FRAME_HEADER_MAX : GT_FRAME_HEADER_BYTES;
}

/* Frame slots of a gateway per peer: posted in each direction, and reserved for control. */
#define GT_LINK_POSTED         ((size_t)4)
#define GT_LINK_CONTROL_FRAMES ((size_t)4)
#define GT_FRAME_MIN           ((size_t)64 << 10)
/* Returns the number of frames that can be in flight to the peer.  modelled: frames follow the link
   model. */
size_t gt_link_window(const gt_link_spec *spec, bool modelled, size_t frame_bytes);
/* Returns the largest frame payload if messages have at most payload_max bytes. */
size_t gt_link_frame_payload(size_t payload_max);
/* Returns the memory for a peer: slots in both directions, and a reassembly buffer if the largest
   message from it, of `coming` bytes, exceeds a frame. */
size_t gt_link_frames_bytes(const gt_link_spec *spec, bool modelled, size_t payload_max,
                            size_t coming);

/* Takes the next frame of a message from the remaining payload; returns its bytes with the header.
   whole: a message is one frame. */
static inline size_t gt_frame_take(size_t *left, size_t header_bytes, bool whole) {
  const size_t payload = whole || *left < GT_FRAME_PAYLOAD_MAX ? *left : GT_FRAME_PAYLOAD_MAX;
  *left -= payload;
  return payload + header_bytes;
}
/* Returns the bytes of a message of payload_bytes on the wire: payload + 64 per frame. */
size_t gt_wire_bytes(size_t payload_bytes);
/* Returns the same for a message with this header. */
size_t gt_message_wire_bytes(const gt_frame_header *head, size_t payload_bytes);
