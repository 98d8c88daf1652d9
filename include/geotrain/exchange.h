/* exchange: two collectives between regions, all-reduce and broadcast, over one of several
   topologies.  Layer 5.  Local: a collective is a state machine.  Its input comes with events; its
   messages go to an outbox.  It never calls MPI, waits, reads a clock or does I/O.  R regions, w_i
   the weight of region i, n floats. */
#pragma once

#include "geotrain/base_families.h"
#include "geotrain/codec.h"
#include "geotrain/outbox.h"
#include "geotrain/tensor.h"

typedef struct gt_exchange gt_exchange;
typedef struct gt_allreduce gt_allreduce;

/* The two directions of a codec. */
typedef enum { GT_ENCODED, GT_DECODED, GT_CODINGS } gt_coding;

/* Callbacks to the owner of an exchange; each can be NULL. */
typedef struct {
  void *ctx;
  /* Called before and after a message body is written.  floats: number of floats written; 0 if the
     body is that of the previous message. */
  void (*filling)(void *ctx);
  void (*filled)(void *ctx, gt_msg_kind kind, size_t floats);
  /* Called before and after the codec encodes or decodes a message of `raw` bytes of float32 and
     `wire` encoded bytes; of a codec with several steps, each step has an equal part of raw. */
  void (*coding)(void *ctx);
  void (*coded)(void *ctx, gt_coding direction, size_t raw, size_t wire);
  /* Called when a message of `region` was dropped because it was non-finite.  Only for a message
     that arrives in pieces, which is checked when the last piece has arrived. */
  void (*nonfinite)(void *ctx, size_t region);
} gt_exchange_events;

/* The codec of an exchange. */
typedef struct {
  gt_codec_kind kind;
  gt_codec_spec spec;
  const gt_view *tensors; /* parts of the first vector of every collective; borrowed */
  size_t ntensors;
} gt_exchange_codec;

/* Returns the maximum length of a payload of all tensors, in bytes. */
size_t gt_exchange_codec_bytes(const gt_exchange_codec *codec);

/* The messages into which an all-reduce over a hub or a tree divides a body, in bytes of payload.
   Of a codec with several steps: those of the last one. */
typedef struct {
  size_t pieces, bytes; /* number; all together */
  size_t least, last;   /* the smallest but for the last one, if it is not the only one; the last */
} gt_exchange_pieces;

/* Returns the pieces of a body of `floats` floats, each of at most `most`, with the maximum length
   of what the codec writes; the first floats are the codec's tensors. */
gt_exchange_pieces gt_exchange_pieces_of(const gt_exchange_codec *codec, size_t floats,
                                         size_t most);

/* All pointers are borrowed and must outlive the exchange; the struct itself is copied. */
typedef struct {
  size_t nregions, self;
  const double *weights; /* nregions, sum 1 */
  size_t inflight;       /* maximum number of messages in flight per link */
  bool with_memory;      /* false: vectors have no data (simulation) */
  gt_topology topology;
  /* Next hop of each region (nregions entries).  hub, tree, central: its parent; the root is its
     own parent.  ring: the next region on the ring.  mesh: NULL. */
  const size_t *next;
  const size_t *workers; /* central: number of workers of each region; else NULL */
  /* hub, tree: maximum floats per message; with a codec messages begin at its chunks, and a longer
     chunk is not divided */
  size_t piece;
  /* NULL: messages are float32.
     mesh: each region decodes all payloads and adds them in region order.
     hub, tree: each region that forwards decodes payloads, adds them and encodes the sum, with
     error feedback of its own.
     ring: the codec must be one whose payloads add up without decoding (GT_RESUMS).
     Payloads of GT_RESUMS codecs are added without decoding in every topology. */
  const gt_exchange_codec *codec;
  gt_outbox *outbox;
  const size_t *regions; /* index of each region in the outbox; NULL: the same */
  gt_exchange_events events;
} gt_exchange_spec;

/* ---- topologies of a job --------------------------------------------------------------------- */

/* The topology of a run and the next hop of each region.  next: as in gt_exchange_spec; NULL for a
   mesh; owned. */
typedef struct {
  gt_topology topology;
  size_t *next;
} gt_routes;

/* Returns a copy, which the caller closes. */
gt_routes gt_routes_copy(const gt_routes *routes, size_t nregions);
void gt_routes_close(gt_routes *routes);
/* True if routes are valid: a hub or tree has one root that all regions reach; a ring visits every
   region. */
bool gt_routes_sound(const gt_routes *routes, size_t nregions);

/* True if each worker's contribution is sent separately to one region, which answers each worker
   (central). */
bool gt_topology_per_worker(gt_topology topology);
/* True if the topology has a broadcast; otherwise it has only an all-reduce. */
bool gt_topology_broadcasts(gt_topology topology);
/* Writes gt_exchange_spec.next (nregions entries) for a message of `bytes` bytes over the job's
   links.  The result depends only on the arguments, so it is the same in every region.  Not for a
   mesh.
   hub, central: the root is `hub`; with hub = nregions, the region that all others reach soonest.
   tree: as for hub, a star; gt_topology_choose finds better trees.
   ring: with up to 8 regions, the ring whose slowest link is fastest; with more, each region is
   followed by the nearest region that is not in the ring yet. */
void gt_topology_place(gt_topology topology, const gt_links *links, size_t nregions, size_t bytes,
                       size_t hub, size_t *next);
/* Does the same for n of the regions.  hub and the entries of next are indices into `regions`. */
void gt_topology_place_among(gt_topology topology, const gt_links *links, const size_t *regions,
                             size_t n, size_t bytes, size_t hub, size_t *next);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Kind of collective.  ROUNDS: an all-reduce.  UPDATES: a broadcast of updates.  MODELS: a
   broadcast of models, in which a newer model replaces one that has not been sent yet. */
typedef enum { GT_CAST_ROUNDS, GT_CAST_UPDATES, GT_CAST_MODELS } gt_cast;

/* Memory of a collective with messages of n floats, in floats, if one message per link is in
   flight. */
typedef struct {
  size_t kept;   /* means and pending messages */
  size_t bodies; /* message bodies, including the initial pool */
  size_t saved;  /* maximum part of kept and bodies that a checkpoint contains */
} gt_exchange_need;

/* Returns the memory that a collective of an exchange needs.  Reads only topology, next, nregions,
   self, inflight and piece of the spec.  Not for central. */
gt_exchange_need gt_exchange_need_of(const gt_exchange_spec *spec, gt_cast cast, size_t n);

gt_exchange *gt_exchange_create(const gt_exchange_spec *spec);
/* Closes the exchange.  Close its collectives first. */
void gt_exchange_close(gt_exchange *x);

/* ---- events ---------------------------------------------------------------------------------- */

/* Events of a peer. */
typedef enum {
  /* Once for every region after a resume, never at a fresh start.  Every message that the region
     sent before the resume has been received.  counts: its gt_exchange_rounds.  DONE follows if the
     region has finished its steps. */
  GT_PEER_JOINED,
  /* As JOINED, for a region that was done before the resume and may make steps again. */
  GT_PEER_REJOINED,
  /* The region makes no more steps, like DONE; counts: NULL. */
  GT_PEER_LEFT,
  /* The region makes no more steps.  It still applies messages, and has weight 0 in the means of
     later rounds.  In a mesh, every message that it sent has been received.  counts: its
     gt_exchange_count. */
  GT_PEER_DONE
} gt_peer_event;

/* Call when training starts or resumes, and when an event outside the exchange lets the owner of a
   collective continue. */
void gt_exchange_start(gt_exchange *x);
/* Call when the outbox to `region` has room again. */
void gt_exchange_room(gt_exchange *x, size_t region);
/* True if the message with this header is not encoded, or is encoded by the codec of its
   collective. */
bool gt_exchange_decodes(const gt_exchange *x, const gt_frame_header *head);
/* Returns the size that a message with this header must have, in bytes; 0: no collective takes it.
   The size of an encoded message varies: returns the size in its header, limited to the maximum. */
size_t gt_exchange_bytes(const gt_exchange *x, const gt_frame_header *head);
/* Checks the body of an encoded message.  GT_ERR_FAULT: the codec does not write such a body. */
gt_status gt_exchange_check_body(const gt_exchange *x, const gt_frame_header *head,
                                 const void *body);
/* True if a collective takes messages of this kind. */
bool gt_exchange_takes(const gt_exchange *x, unsigned kind);
/* Returns the maximum number of messages that one exchange sends over a link.  Valid once every
   collective is open. */
size_t gt_exchange_unit(const gt_exchange *x);
/* Returns the maximum size of a body, in bytes.  Valid once every collective is open. */
size_t gt_exchange_body_max(const gt_exchange *x);
/* Checks a header.  GT_ERR_FAULT: the next message from `from` cannot have this route, position in
   the range, or round. */
gt_status gt_exchange_check(const gt_exchange *x, size_t from, const gt_frame_header *head);
/* Result of gt_exchange_receive. */
typedef enum {
  GT_RECEIPT_TAKEN,    /* acknowledge it now */
  GT_RECEIPT_HELD,     /* pending; the exchange acknowledges it later */
  GT_RECEIPT_NONFINITE /* dropped */
} gt_receipt;
/* Takes a message.  Call once per message, in the order of sending, after its header and body have
   been checked.  body: gt_exchange_bytes bytes, borrowed; NULL in a simulation. */
gt_receipt gt_exchange_receive(gt_exchange *x, size_t from, const gt_frame_header *head,
                               const void *body);
/* Reports an event of a peer.  counts: one number for every range, as the event requires; borrowed
   for the call. */
void gt_exchange_peer(gt_exchange *x, size_t region, gt_peer_event event, const int64_t *counts);
/* Returns the newest all-reduce round of the range that this region has applied or begun to add up;
   0: none, or the range is a broadcast. */
int64_t gt_exchange_rounds(const gt_exchange *x, size_t range);

/* ---- change of members ----------------------------------------------------------------------- */

/* The rounds of a range: the last one applied, and the last one that the region has contributed
   to.  Both 0: a broadcast. */
typedef struct {
  int64_t applied, own;
} gt_exchange_progress;
gt_exchange_progress gt_exchange_progress_of(const gt_exchange *x, size_t range);
/* True if the range has a common state of its own; false: it is a step of another range. */
bool gt_exchange_has_state(const gt_exchange *x, size_t range);
/* True if a message to a member that stays is not lost when others leave. */
bool gt_exchange_continues(const gt_exchange *x);
/* True if this region has returned, and has not contributed to every range since. */
bool gt_exchange_is_late(const gt_exchange *x);

/* New members of an exchange, with the meaning of gt_exchange_spec; the arrays are borrowed like
   those of the spec, the last three for the call.  late: nregions; the region takes part in the
   rounds of a range after `floor` of the range, and voids its earlier contributions.  applied: of
   each range, the newest round that any member has applied.  again: this region has returned, and
   lacks the result of that round even if it has applied one of the same number.  Contributions to
   the next round remain, and are posted again. */
typedef struct {
  size_t nregions, self;
  const double *weights;
  const size_t *next, *regions;
  const bool *late;
  const int64_t *applied, *floor;
  bool again;
} gt_exchange_group;
/* Holds all messages that arrive from now on, or takes them again; call gt_exchange_start then. */
void gt_exchange_pause(gt_exchange *x, bool paused);
/* Continues among these members, without any message on its way; a region that has not applied
   the newest round gets its result by gt_allreduce_adopt. */
void gt_exchange_regroup(gt_exchange *x, const gt_exchange_group *group);
/* Counts the rounds up to the newest one as applied; returns the share of this region's
   contribution in its mean, 0: it did not contribute. */
float gt_allreduce_adopt(gt_allreduce *r);
/* Returns the range of the all-reduce. */
size_t gt_allreduce_range(const gt_allreduce *r);

/* True if this region has posted all its contributions and messages. */
bool gt_exchange_drained(const gt_exchange *x);
/* True if all other regions are done, all their messages have arrived, and no message is
   pending. */
bool gt_exchange_settled(const gt_exchange *x);
/* Returns the norm of what codecs have left out of this region's messages and have not sent
   since. */
double gt_exchange_residual(const gt_exchange *x);
/* Returns the number of open collectives.  A range is the index of a collective, in the order of
   opening. */
size_t gt_exchange_ranges(const gt_exchange *x);
/* Returns the last round that this region contributed to (all-reduce; with a quorum the number of
   its contributions), or the `value` of its last gt_broadcast_post (broadcast). */
int64_t gt_exchange_count(const gt_exchange *x, size_t range);

/* ---- collectives ----------------------------------------------------------------------------- */

/* Parameters of a collective.  All regions must open their collectives in the same order, because
   the header of a message has the index of its collective in this order (its range). */
typedef struct {
  const char *owner;  /* prefix of the names of its state, as "sync/"; borrowed */
  gt_msg_kind kind;   /* GT_MSG_UPDATE: additive; GT_MSG_STATE: a model */
  gt_msg_kind answer; /* kind of gt_allreduce_answer's messages, if not `kind`; else 0 */
  /* kind GT_MSG_STATE: bodies are differences of models, so a codec applies error feedback to them,
     as it does to updates. */
  bool additive;
  /* All-reduce: regions may abstain; checkpoints then contain which contributions are empty. */
  bool abstains;
  /* All-reduce over a hub: above 0, a round is complete when contributions with this share of the
     weight of the regions that train have arrived, and `grace` has passed since.  A later
     contribution is in the next round, with the weight w / (1 + s / 4) if s rounds have passed
     without its region.  At most GT_QUORUM_REGIONS regions. */
  double quorum;
  gt_ns grace;
  /* Tensors of the first vector, for the codec; NULL: the tensors of the exchange. */
  const gt_view *tensors;
  size_t ntensors;
  /* Called within events when progress is possible: the outbox has room, a contribution has
     arrived, or a region is done. */
  void (*changed)(void *ctx);
  /* Broadcast only.  Called once for each body from region `origin`, in the order of posting; the
     body is borrowed. */
  void (*received)(void *ctx, size_t origin, gt_vec body);
  void *ctx;
} gt_collective_spec;

/* ---- all-reduce: numbered rounds; every region gets the same weighted mean, bit for bit ------ */

/* Opens an all-reduce.  The contribution of this region is a, followed by b (b.n can be 0).  Both
   are borrowed while the all-reduce is open, and must not change from gt_allreduce_contribute until
   its round is applied. */
gt_allreduce *gt_allreduce_open(gt_exchange *x, const gt_collective_spec *spec, gt_vec a, gt_vec b);
void gt_allreduce_close(gt_allreduce *r);
/* Adds to the number of samples behind the next contribution, that is, those from which the region
   computes it. */
void gt_allreduce_behind(gt_allreduce *r, uint64_t samples);
/* Call when the region's contribution to its next round is complete. */
void gt_allreduce_contribute(gt_allreduce *r);
/* Does the same with weight 0 and without a payload: the region is neither in the sum nor in the
   divisor.  Requires spec.abstains; not over a topology with gt_topology_per_worker. */
void gt_allreduce_abstain(gt_allreduce *r);
/* Copies x (a.n floats, computed from `samples` samples), the part of worker `rank` (in the region,
   from 1) of the next contribution.  The contribution then consists of such parts instead of a.
   Requires gt_topology_per_worker and b.n = 0. */
void gt_allreduce_part(gt_allreduce *r, size_t rank, gt_vec x, uint64_t samples);
/* Call when the region makes no more steps, after its last contribution. */
void gt_allreduce_leave(gt_allreduce *r);
/* Posts all messages for which the outbox has room.  Then returns true if the next round is
   complete, with its mean (a.n + b.n floats, valid until the next call; none if all
   abstained) and the share of this
   region's contribution in the mean (0: the region did not contribute).  Call it until it returns
   false. */
bool gt_allreduce_next(gt_allreduce *r, gt_vec *mean, float *share);
/* True if this region receives answers instead of means: with gt_topology_per_worker, only the root
   gets the means, and answers the others. */
bool gt_allreduce_answered(const gt_allreduce *r);
/* Answers the other regions with `made` (a.n + b.n floats, borrowed for the call), computed from
   the mean that gt_allreduce_next has just returned.  Call after each mean.  No effect without
   gt_topology_per_worker. */
void gt_allreduce_answer(gt_allreduce *r, gt_vec made);
/* True if the round of this region's contribution has not been applied yet. */
bool gt_allreduce_waiting(const gt_allreduce *r);
/* Returns when the grace of a round ends: call gt_exchange_start then.  GT_NEVER: no round has a
   quorum and waits for others.  Only with a quorum. */
gt_ns gt_allreduce_grace(const gt_allreduce *r);
/* Returns the number of this region's contributions minus those that are in means: 1 or 0; below 0
   if a region that has returned has the counts of the group.  Only with a quorum. */
int64_t gt_allreduce_open_contributions(const gt_allreduce *r);
/* Saves or loads what all regions know about the contributions in means, a part of the state that
   members have in common.  Only with a quorum. */
gt_status gt_allreduce_included_state(gt_allreduce *r, gt_state_direction direction);
/* True if the region must not make a step: gt_allreduce_waiting, or, after a resume, rounds of
   other regions are still to be applied. */
bool gt_allreduce_holds(const gt_allreduce *r);
/* Saves or loads the state.  Names: "<owner>rounds/...", "<owner>inbox/...". */
gt_status gt_allreduce_state(gt_allreduce *r, gt_state_direction direction);

/* ---- broadcast: every other region gets each message once, in the order of posting ----------- */

typedef struct gt_broadcast gt_broadcast;

/* Opens a broadcast of messages of n floats.  replace: a newer message replaces one whose sending
   has not begun. */
gt_broadcast *gt_broadcast_open(gt_exchange *x, const gt_collective_spec *spec, size_t n,
                                bool replace);
void gt_broadcast_close(gt_broadcast *b);
/* True if a message can be posted now; always true if R = 1. */
bool gt_broadcast_room(const gt_broadcast *b);
/* Returns the body of the next message, to be filled: n floats, contents undefined.  Requires
   gt_broadcast_room and R > 1. */
gt_vec gt_broadcast_begin(gt_broadcast *b);
/* Posts the filled body.  value: the sender's step, larger than in its last message; samples:
   number of samples from which the body was computed. */
void gt_broadcast_post(gt_broadcast *b, uint64_t value, uint64_t samples);
/* True if the residual has parts of earlier updates, which a codec left out. */
bool gt_broadcast_rests(const gt_broadcast *b);
/* Returns the residual of this region's messages, borrowed; 0 floats without error feedback, and in
   a simulation.  Other regions have not got it yet. */
gt_vec gt_broadcast_residual(const gt_broadcast *b);
/* Posts the residual as float32, if it has parts of updates and there is room.  Call after the last
   update. */
void gt_broadcast_post_rest(gt_broadcast *b);
/* Saves or loads the messages that this region is forwarding; a mesh forwards none.  Names:
   "<owner>broadcast/...". */
gt_status gt_broadcast_state(gt_broadcast *b, gt_state_direction direction);
