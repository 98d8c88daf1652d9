/* exchange: two collectives over regions, all-reduce and broadcast, over one of several topologies.
   Layer 5.  Local: a collective is a state machine.  It never calls MPI, waits, reads a clock or
   does I/O: events bring its input, and it posts to an outbox.
   R regions, w_i the weight of region i, n floats. */
#ifndef GEOTRAIN_EXCHANGE_H
#define GEOTRAIN_EXCHANGE_H

#include "geotrain/base_families.h"
#include "geotrain/codec.h"
#include "geotrain/outbox.h"
#include "geotrain/tensor.h"

typedef struct gt_exchange gt_exchange;

/* What an exchange tells its owner; each may be NULL. */
typedef struct {
  void *ctx;
  /* Called before and after a message body of `floats` floats is written. */
  void (*filling)(void *ctx);
  void (*filled)(void *ctx, gt_msg_kind kind, size_t floats);
  /* Called when a message of `region`, assembled from pieces, was non-finite and was dropped. */
  void (*nonfinite)(void *ctx, size_t region);
} gt_exchange_events;

/* How messages are encoded. */
typedef struct {
  gt_codec_kind kind;
  gt_codec_spec spec;
  const gt_view *tensors; /* of the first vector of every collective; borrowed */
  size_t ntensors;
} gt_exchange_codec;

/* Returns the length of the longest payload of all tensors, in bytes. */
size_t gt_exchange_codec_bytes(const gt_exchange_codec *codec);

/* All pointers are borrowed and must outlive the exchange; the struct itself is copied. */
typedef struct {
  size_t nregions, self;
  const double *weights; /* nregions, sum 1 */
  size_t inflight;       /* most messages in flight per link */
  bool with_memory;      /* false: vectors have no data (simulation) */
  gt_topology topology;
  /* nregions.  hub, tree, central: the parent of each region, the region itself at the root; ring:
     the next region; mesh: NULL. */
  const size_t *next;
  const size_t *workers; /* central: workers of each region; else NULL */
  size_t piece;          /* floats in a message of a hub or tree; with a codec, all */
  /* NULL: float32.  A mesh adds all decoded payloads in region order; each node of a hub or tree
     adds decoded payloads and encodes the sum, with feedback of its own; a ring takes only codecs
     that add up without decoding (GT_RESUMS), which all topologies add as they are. */
  const gt_exchange_codec *codec;
  gt_outbox *outbox;
  const size_t *regions; /* outbox index of each region; NULL: identity */
  gt_exchange_events events;
} gt_exchange_spec;

/* ---- topologies of a job --------------------------------------------------------------------- */

/* The topology of a run, and the next hop of each region.  next: as in gt_exchange_spec; NULL with
   a mesh; owned. */
typedef struct {
  gt_topology topology;
  size_t *next;
} gt_routes;

gt_routes gt_routes_copy(const gt_routes *routes, size_t nregions);
void gt_routes_close(gt_routes *routes);
/* True if routes are valid: a hub or tree has one root that all regions reach; a ring visits every
   region. */
bool gt_routes_sound(const gt_routes *routes, size_t nregions);

/* True if each worker's contribution is sent separately to one region, which answers each worker.
   */
bool gt_topology_per_worker(gt_topology topology);
/* True if the topology has a broadcast; otherwise it has only an all-reduce. */
bool gt_topology_broadcasts(gt_topology topology);
/* Writes gt_exchange_spec.next (nregions entries); not for a mesh.  links: of the job; bytes:
   message size; hub: index of the root (hub, central); nregions: choose the region that the others
   reach soonest. The result is the same in every region.  tree: that of a hub; gt_topology_choose
   finds better ones.  ring: the ring whose slowest link is fastest (up to 8 regions); with more
   regions, each is followed by its nearest unused one. */
void gt_topology_place(gt_topology topology, const gt_links *links, size_t nregions, size_t bytes,
                       size_t hub, size_t *next);
/* Does the same for n of the regions; hub and next are indices into `regions`. */
void gt_topology_place_among(gt_topology topology, const gt_links *links, const size_t *regions,
                             size_t n, size_t bytes, size_t hub, size_t *next);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Kind of collective: rounds of an all-reduce; updates; models, where a newer one replaces one that
   is not sent yet. */
typedef enum { GT_CAST_ROUNDS, GT_CAST_UPDATES, GT_CAST_MODELS } gt_cast;

/* Memory of a collective of messages of n floats, in floats, with one message in flight per link.
   */
typedef struct {
  size_t kept;   /* means, and pending messages */
  size_t bodies; /* message bodies, including the initial pool */
  size_t saved;  /* the most of both in a checkpoint */
} gt_exchange_need;

/* Returns the memory that an exchange needs.  Reads only topology, next, nregions, self, inflight
   and piece.  Not for central. */
gt_exchange_need gt_exchange_need_of(const gt_exchange_spec *spec, gt_cast cast, size_t n);

gt_exchange *gt_exchange_create(const gt_exchange_spec *spec);
/* Closes the exchange, after the collectives have been closed by their owners. */
void gt_exchange_close(gt_exchange *x);

/* ---- events ---------------------------------------------------------------------------------- */

typedef enum { GT_PEER_JOINED, GT_PEER_REJOINED, GT_PEER_LEFT, GT_PEER_DONE } gt_peer_event;

/* Call at the start or resume of training, and when something that a collective's owner waited for
   has happened. */
void gt_exchange_start(gt_exchange *x);
/* Call when the outbox of the region has room again. */
void gt_exchange_room(gt_exchange *x, size_t region);
/* True if the codec in this header is that of its collective, or none. */
bool gt_exchange_decodes(const gt_exchange *x, const gt_frame_header *head);
/* Returns the size that a message with this header must have, in bytes; 0: no collective takes it.
   Encoded messages may be shorter than the longest: their own size, up to that. */
size_t gt_exchange_bytes(const gt_exchange *x, const gt_frame_header *head);
/* Checks the body of an encoded message; GT_ERR_FAULT. */
gt_status gt_exchange_check_body(const gt_exchange *x, const gt_frame_header *head,
                                 const void *body);
/* True if some collective takes messages of this kind. */
bool gt_exchange_takes(const gt_exchange *x, unsigned kind);
/* Returns the largest number of messages that one exchange sends over a link.  Valid once every
   collective is open. */
size_t gt_exchange_unit(const gt_exchange *x);
/* Returns the size of the largest body, in bytes.  Valid once every collective is open. */
size_t gt_exchange_body_max(const gt_exchange *x);
/* Returns the most bytes on the wire that `region` posts in one event.  Valid once every collective
   is open. */
size_t gt_exchange_at_once(const gt_exchange *x, size_t region);
/* True if the region forwards messages of others, even after its own last step. */
bool gt_exchange_forwards(const gt_exchange *x, size_t region);
/* Checks a header.  Returns GT_ERR_FAULT if it is impossible for the next message from `from`:
   wrong route, position in the range, or round. */
gt_status gt_exchange_check(const gt_exchange *x, size_t from, const gt_frame_header *head);
/* Result of gt_exchange_receive. */
typedef enum {
  GT_RECEIPT_TAKEN,    /* acknowledge it now */
  GT_RECEIPT_HELD,     /* pending; the exchange acknowledges it later */
  GT_RECEIPT_NONFINITE /* dropped */
} gt_receipt;
/* Takes a message, each once and in order; its body has gt_exchange_bytes, has been checked and is
   borrowed; NULL in a simulation. */
gt_receipt gt_exchange_receive(gt_exchange *x, size_t from, const gt_frame_header *head,
                               const void *body);
/* Sets the state of a peer.  DONE: the region makes no more steps; counts: its gt_exchange_count of
   every range.  It stays, applies messages, and counts zero in means of later rounds.  With a mesh
   every message that it ever sent has been received.  JOINED: after a resume, never in a fresh
   start, once for every region; REJOINED: one that was done and may make steps again; counts: its
   gt_exchange_rounds of every range; every message that it sent before the resume has been received.  counts is
   borrowed for the call. */
void gt_exchange_peer(gt_exchange *x, size_t region, gt_peer_event event, const int64_t *counts);
/* Returns the newest all-reduce round that this region has applied or begun to add up; 0: none. */
int64_t gt_exchange_rounds(const gt_exchange *x, size_t range);
/* True if this region has posted everything. */
bool gt_exchange_drained(const gt_exchange *x);
/* True if all other regions are done, their messages have arrived, and nothing is pending. */
bool gt_exchange_settled(const gt_exchange *x);
/* Returns the number of open collectives.  A range is the number of a collective, in order of
   opening. */
size_t gt_exchange_ranges(const gt_exchange *x);
/* Returns the last round of the range that this region contributed to, or the value of its last
   broadcast. */
int64_t gt_exchange_count(const gt_exchange *x, size_t range);

/* ---- collectives ----------------------------------------------------------------------------- */

/* Parameters of both collectives.  All regions must open theirs in the same order, because a
   message names its collective by its number in that order (the range in its header). */
typedef struct {
  const char *owner;  /* prefix of the names of its state, "sync/"; borrowed */
  gt_msg_kind kind;   /* GT_MSG_UPDATE: additive; GT_MSG_STATE: a model */
  gt_msg_kind answer; /* of gt_allreduce_answer, if it differs; else 0 */
  /* Bodies of a model add up (differences): with a codec they have error feedback, like updates. */
  bool additive;
  /* Of the first vector, for the codec; NULL: those of the exchange. */
  const gt_view *tensors;
  size_t ntensors;
  /* Progress may be possible: there is room, a contribution has arrived, or a region is done.
     Called within events. */
  void (*changed)(void *ctx);
  /* Broadcast only: a body from region `origin`; each once, in the order in which it was posted;
     borrowed. */
  void (*received)(void *ctx, size_t origin, gt_vec body);
  void *ctx;
} gt_collective_spec;

/* ---- all-reduce: numbered rounds; every region takes the same weighted mean, bit for bit ----- */

typedef struct gt_allreduce gt_allreduce;

/* Sets the contribution: a, then b (b.n may be 0): borrowed while the all-reduce lives, and
   unchanged from gt_allreduce_contribute until its round is applied. */
gt_allreduce *gt_allreduce_open(gt_exchange *x, const gt_collective_spec *spec, gt_vec a, gt_vec b);
void gt_allreduce_close(gt_allreduce *r);
/* Adds to the number of samples from which the next contribution is computed. */
void gt_allreduce_behind(gt_allreduce *r, uint64_t samples);
/* Call when the region has a contribution to its next round. */
void gt_allreduce_contribute(gt_allreduce *r);
/* Copies the contribution x of worker `rank` (in the region, from 1): a.n floats, from `samples`
   samples.  The next contribution consists of these parts instead of a; b.n is 0.  Requires
   gt_topology_per_worker. */
void gt_allreduce_part(gt_allreduce *r, size_t rank, gt_vec x, uint64_t samples);
/* Call when the region makes no more steps (after its last contribution). */
void gt_allreduce_leave(gt_allreduce *r);
/* Posts what can be posted.  Then, if the next round is complete, returns true, its mean (a.n + b.n
   floats, valid until the next call) and the weight of this region's contribution in it (0: there
   was none).  Call it until it returns false. */
bool gt_allreduce_next(gt_allreduce *r, gt_vec *mean, float *share);
/* True if this region receives answers instead of means: with gt_topology_per_worker, one region
   gets the means. */
bool gt_allreduce_answered(const gt_allreduce *r);
/* Sends `made` (a.n + b.n floats, borrowed for the call), computed from the mean that
   gt_allreduce_next just returned.  Call after each mean; no effect with other topologies. */
void gt_allreduce_answer(gt_allreduce *r, gt_vec made);
/* True if the round of this region's contribution has not been applied yet. */
bool gt_allreduce_waiting(const gt_allreduce *r);
/* True if the region must not make a step: it waits, or has not caught up after a resume. */
bool gt_allreduce_holds(const gt_allreduce *r);
/* Saves or loads the state.  Names: "<owner>rounds/...", "<owner>inbox/...". */
gt_status gt_allreduce_state(gt_allreduce *r, gt_state_direction direction);

/* ---- broadcast: every other region gets each message once, in the order of its origin -------- */

typedef struct gt_broadcast gt_broadcast;

/* Messages of n floats.  replace: a newer message replaces one that has not begun to leave. */
gt_broadcast *gt_broadcast_open(gt_exchange *x, const gt_collective_spec *spec, size_t n,
                                bool replace);
void gt_broadcast_close(gt_broadcast *b);
/* True if a message can be posted now; always true if there is no other region. */
bool gt_broadcast_room(const gt_broadcast *b);
/* Returns the body of the next message to fill: n floats, contents undefined.  Requires room and
   another region. */
gt_vec gt_broadcast_begin(gt_broadcast *b);
/* Posts the filled body.  value: the sender's step, larger than in its last message; samples: from
   which the body was computed. */
void gt_broadcast_post(gt_broadcast *b, uint64_t value, uint64_t samples);
/* True if a codec has left out parts of earlier updates. */
bool gt_broadcast_rests(const gt_broadcast *b);
/* Posts them as float32, after the last update; requires room. */
void gt_broadcast_post_rest(gt_broadcast *b);
/* Saves or loads the messages in flight in this region; a mesh has none.  Names:
   "<owner>broadcast/...". */
gt_status gt_broadcast_state(gt_broadcast *b, gt_state_direction direction);

#endif
