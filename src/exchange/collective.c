/* The part of the collectives that does not depend on the topology.  All-reduce: the round of the
   region, whether it waits, and the steps of a codec; the topology finds the members of a round and
   computes its mean.  Broadcast: a message is filled, then posted. */
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const gt_allreduce_ops *ops_of(const gt_allreduce *r) {
  return r->base.x->topology->allreduce;
}

static gt_vec vector_of(const gt_exchange *x, size_t n) {
  return gt_vec_of(x->spec.with_memory && n ? GT_NEW_ARRAY(float, n) : NULL, n);
}

static gt_coder_use coder_use(const gt_collective_spec *spec) {
  return (gt_coder_use){.feedback = spec->kind == GT_MSG_UPDATE || spec->additive,
                        .tensors = spec->tensors,
                        .ntensors = spec->ntensors};
}

/* True if the topology adds payloads, because those of the codec add up without decoding.  Other
   codecs encode each message. */
static bool packs(const gt_exchange *x) {
  return x->spec.codec && gt_codec_has(x->spec.codec->kind, GT_RESUMS) && x->spec.nregions > 1;
}

static gt_allreduce *open_plain(gt_exchange *x, const gt_collective_spec *spec, gt_vec a, gt_vec b,
                                gt_coder *coder) {
  const gt_allreduce_ops *ops = x->topology->allreduce;
  gt_allreduce *r = gt_alloc(1, ops->size);
  r->a = a;
  r->b = b;
  gt_exchange_add(x, &r->base, spec, a.n + b.n, coder);
  r->base.allreduce = r;
  r->quorum.grace = GT_NEVER;
  if (spec->quorum > 0) r->quorum.included = GT_NEW_ARRAY(int64_t, GT_QUORUM_REGIONS);
  r->mean = vector_of(x, a.n + b.n);
  ops->open(r);
  return r;
}

/* Returns a vector for a payload.  A collective must have at least one float. */
static gt_vec payload_of(gt_exchange *x, const gt_coder *packer, size_t step) {
  const size_t floats = gt_coder_bound(packer, &(gt_codec_turn){.step = step}) / sizeof(float);
  return vector_of(x, floats > 0 ? floats : 1);
}

static gt_allreduce *open_packed(gt_exchange *x, const gt_collective_spec *spec, gt_vec a,
                                 gt_vec b) {
  gt_coder *packer = gt_coder_open(&x->spec, a.n, coder_use(spec));
  const size_t last = gt_codec_facts_of(x->spec.codec->kind).steps - 1;
  gt_allreduce *first = NULL;
  if (last > 0) {
    first = open_plain(x, spec, payload_of(x, packer, 0), gt_vec_of(NULL, 0), NULL);
    snprintf(first->owner, sizeof first->owner, "%sfirst/", spec->owner);
    first->base.spec.owner = first->owner;
  }
  gt_allreduce *r = open_plain(x, spec, payload_of(x, packer, last), b, NULL);
  r->first = first;
  r->packer = packer;
  r->whole = a;
  r->decoded = vector_of(x, a.n + b.n);
  return r;
}

static gt_coder_use plain_use(const gt_exchange *x, const gt_collective_spec *spec) {
  gt_coder_use use = coder_use(spec);
  use.sums = x->topology->routed;
  use.decodes = true;
  return use;
}

gt_allreduce *gt_allreduce_open(gt_exchange *x, const gt_collective_spec *spec, gt_vec a,
                                gt_vec b) {
  if (packs(x)) return open_packed(x, spec, a, b);
  return open_plain(x, spec, a, b, gt_coder_open(&x->spec, a.n + b.n, plain_use(x, spec)));
}

static void close_plain(gt_allreduce *r) {
  ops_of(r)->close(r);
  gt_free(r->quorum.included);
  gt_free(r->mean.data);
  gt_exchange_remove(&r->base);
}

void gt_allreduce_close(gt_allreduce *r) {
  if (!r) return;
  if (r->first) {
    gt_free(r->first->a.data);
    close_plain(r->first);
  }
  if (r->packer) gt_free(r->a.data);
  gt_coder_close(r->packer);
  gt_free(r->decoded.data);
  close_plain(r);
}

void gt_allreduce_behind(gt_allreduce *r, uint64_t samples) {
  r->samples += (int64_t)samples;
}

/* A region that has returned takes part again, from the next round on. */
static void rejoin(gt_allreduce *r) {
  if (r->rejoins) r->own = r->posted = r->applied;
  r->rejoins = false;
}

/* Begins the region's next round. */
static void contribute(gt_allreduce *r) {
  ops_of(r)->again(r);
  rejoin(r);
  r->over = 0;
  r->own++;
  r->quorum.from = r->own > r->quorum.missed ? r->own - r->quorum.missed : 1;
  r->quorum.made++;
}

/* Encodes the contribution of a codec's step to the all-reduce of that step. */
static void pack(gt_allreduce *r, gt_allreduce *to, size_t step) {
  const gt_codec_turn turn = {
      .round = (uint64_t)to->own, .sender = (uint32_t)r->base.x->spec.self, .step = step};
  const size_t bound = gt_coder_bound(r->packer, &turn);
  if (step == 0) gt_vec_copy(gt_coder_sent(r->packer), r->whole);
  if (gt_coder_encode(r->packer, false, &turn, to->a.data) < bound)
    to->a.data[0] = NAN;
  else if (bound == 0 && to->a.data) /* the float that payload_of adds tells it */
    to->a.data[0] = gt_coder_accepts(r->packer) ? 0 : NAN;
}

static gt_allreduce *take_part(gt_allreduce *r, bool abstains) {
  gt_allreduce *to = r->first ? r->first : r;
  contribute(to);
  rejoin(r);
  r->staged = r->first != NULL;
  r->abstained = to->abstained = abstains;
  return to;
}

void gt_allreduce_contribute(gt_allreduce *r) {
  gt_allreduce *to = take_part(r, false);
  if (r->packer) pack(r, to, 0);
}

void gt_allreduce_abstain(gt_allreduce *r) {
  (void)take_part(r, true);
}

void gt_allreduce_part(gt_allreduce *r, size_t rank, gt_vec x, uint64_t samples) {
  ops_of(r)->part(r, rank, x, samples);
}

static void leave(gt_allreduce *r) {
  r->over = 1;
  r->rejoins = false;
}

void gt_allreduce_leave(gt_allreduce *r) {
  if (r->first) leave(r->first);
  r->leaving = r->staged;
  if (!r->staged) leave(r);
}

/* Takes the mean of a codec's first step, and contributes to the second step. */
static void next_step(gt_allreduce *r) {
  gt_allreduce *first = r->first;
  if (first->applied > r->applied || !ops_of(first)->next(first)) return;
  first->applied++;
  ops_of(first)->again(first);
  const gt_codec_turn turn = {.round = (uint64_t)first->applied};
  if (!first->empty) gt_coder_agree(r->packer, &turn, first->mean.data);
  if (!r->staged) return;
  r->staged = 0;
  contribute(r);
  if (!r->abstained) pack(r, r, 1);
  if (r->leaving) leave(r);
  r->leaving = 0;
}

/* Decodes the mean of payloads. */
static gt_vec unpack(gt_allreduce *r) {
  const gt_codec_turn turn = {.round = (uint64_t)r->applied, .step = r->first != NULL};
  const gt_vec payload = gt_vec_range(r->mean, 0, r->a.n);
  gt_vec_copy(gt_vec_range(r->decoded, 0, r->whole.n),
              gt_coder_decode(r->packer, &turn, payload.data, payload.n * sizeof(float)));
  gt_vec_copy(gt_vec_range(r->decoded, r->whole.n, r->b.n), gt_vec_range(r->mean, r->a.n, r->b.n));
  if (r->first) gt_coder_agree(r->packer, &turn, payload.data);
  return r->decoded;
}

bool gt_allreduce_next(gt_allreduce *r, gt_vec *mean, float *share) {
  if (gt_allreduce_lacks(r)) return false;
  if (r->first) next_step(r);
  if (!ops_of(r)->next(r)) return false;
  r->applied++;
  ops_of(r)->again(r);
  *mean = r->empty ? gt_vec_of(NULL, 0) : r->packer ? unpack(r) : r->mean;
  *share = r->share;
  return true;
}

bool gt_allreduce_answered(const gt_allreduce *r) {
  return ops_of(r)->answered && ops_of(r)->answered(r);
}

void gt_allreduce_answer(gt_allreduce *r, gt_vec made) {
  if (ops_of(r)->answer) ops_of(r)->answer(r, made);
}

bool gt_allreduce_waiting(const gt_allreduce *r) {
  return r->own > r->applied || r->staged;
}

gt_ns gt_allreduce_grace(const gt_allreduce *r) {
  return r->quorum.grace > gt_outbox_now(r->base.x->spec.outbox) ? r->quorum.grace : GT_NEVER;
}

int64_t gt_allreduce_applied(const gt_allreduce *r, size_t region) {
  const size_t *regions = r->base.x->spec.regions;
  if (r->base.spec.quorum <= 0) return r->applied;
  return r->quorum.included[regions ? regions[region] : region];
}

static int64_t included_of(const gt_allreduce *r) {
  return gt_allreduce_applied(r, r->base.x->spec.self);
}

int64_t gt_allreduce_open_contributions(const gt_allreduce *r) {
  return r->quorum.made - included_of(r);
}

bool gt_allreduce_holds(const gt_allreduce *r) {
  return gt_allreduce_waiting(r) || gt_allreduce_lacks(r) ||
         (r->rejoins && (r->unheard || r->applied < gt_allreduce_floor(r, true)));
}

bool gt_allreduce_is_last(const gt_allreduce *r) {
  const gt_exchange *x = r->base.x;
  for (size_t i = 0; i < x->spec.nregions; i++)
    if (i != x->spec.self && (!x->done[i] || r->base.count[i] > gt_allreduce_applied(r, i)))
      return false;
  return true;
}

/* ---- sums ------------------------------------------------------------------------------------ */

void gt_allreduce_add(gt_vec sum, float share, gt_vec x, bool first) {
  if (first)
    gt_vec_set_scaled(sum, share, x);
  else
    gt_vec_axpy(sum, share, x);
}

void gt_allreduce_add_own(const gt_allreduce *r, gt_vec sum, float share, size_t first_float,
                          bool first) {
  const size_t in_a = first_float < r->a.n ? r->a.n - first_float : 0,
               from_a = in_a < sum.n ? in_a : sum.n;
  if (from_a)
    gt_allreduce_add(gt_vec_range(sum, 0, from_a), share, gt_vec_range(r->a, first_float, from_a),
                     first);
  if (from_a == sum.n) return;
  const size_t in_b = first_float + from_a - r->a.n;
  gt_allreduce_add(gt_vec_range(sum, from_a, sum.n - from_a), share,
                   gt_vec_range(r->b, in_b, sum.n - from_a), first);
}

double gt_allreduce_weight(const gt_allreduce *r) {
  const gt_exchange_spec *spec = &r->base.x->spec;
  return r->abstained ? 0 : spec->weights[spec->self];
}

void gt_allreduce_copy_own(const gt_allreduce *r, gt_vec body) {
  if (r->abstained) return;
  gt_vec_copy(gt_vec_range(body, 0, r->a.n), r->a);
  if (r->b.n) gt_vec_copy(gt_vec_range(body, r->a.n, r->b.n), r->b);
}

/* ---- state ----------------------------------------------------------------------------------- */

gt_status gt_allreduce_included_state(gt_allreduce *r, gt_state_direction direction) {
  const gt_state_field included = {"included", GT_TYPE_I64, r->quorum.included, GT_QUORUM_REGIONS};
  return gt_state_fields(direction, r->base.spec.owner, &included, 1);
}

static gt_status quorum_state(gt_allreduce *r, const char *prefix, gt_state_direction direction) {
  const gt_state_field fields[] = {{"mask", GT_TYPE_I64, &r->quorum.mask, 1},
                                   {"from", GT_TYPE_I64, &r->quorum.from, 1},
                                   {"missed", GT_TYPE_I64, &r->quorum.missed, 1},
                                   {"made", GT_TYPE_I64, &r->quorum.made, 1}};
  GT_TRY(GT_STATE_FIELDS(direction, prefix, fields));
  return gt_allreduce_included_state(r, direction);
}

static gt_status plain_state(gt_allreduce *r, gt_state_direction direction) {
  char prefix[64];
  const gt_state_field counters[] = {{"own", GT_TYPE_I64, &r->own, 1},
                                     {"posted", GT_TYPE_I64, &r->posted, 1},
                                     {"applied", GT_TYPE_I64, &r->applied, 1},
                                     {"samples", GT_TYPE_I64, &r->samples, 1},
                                     {"over", GT_TYPE_I64, &r->over, 1}};
  const gt_state_field abstained = {"abstained", GT_TYPE_I64, &r->abstained, 1};
  snprintf(prefix, sizeof prefix, "%srounds/", r->base.spec.owner);
  GT_TRY(GT_STATE_FIELDS(direction, prefix, counters));
  if (r->base.spec.abstains) GT_TRY(gt_state_fields(direction, prefix, &abstained, 1));
  if (r->base.spec.quorum > 0) GT_TRY(quorum_state(r, prefix, direction));
  if (direction.from) {
    ops_of(r)->again(r);
    r->rejoins = r->over != 0;
    r->floor = r->applied;
    r->unheard = r->base.x->spec.nregions - 1;
  }
  GT_TRY(ops_of(r)->state(r, prefix, direction));
  if (!r->base.coder) return GT_OK;
  return gt_coder_state(r->base.coder, prefix, r->posted > r->applied, direction);
}

/* Saves or loads the payload until its round is applied: the residual no longer contains it. */
static gt_status payload_state(gt_allreduce *r, gt_state_direction direction) {
  const gt_state_field payload = {"payload", GT_TYPE_F32, r->a.data, r->a.n};
  if (r->own <= r->applied) return GT_OK;
  return gt_state_fields(direction, r->base.spec.owner, &payload, 1);
}

static gt_status first_state(gt_allreduce *r, gt_state_direction direction) {
  const gt_state_field fields[] = {{"staged", GT_TYPE_I64, &r->staged, 1},
                                   {"leaving", GT_TYPE_I64, &r->leaving, 1}};
  GT_TRY(plain_state(r->first, direction));
  GT_TRY(payload_state(r->first, direction));
  return GT_STATE_FIELDS(direction, r->first->owner, fields);
}

gt_status gt_allreduce_state(gt_allreduce *r, gt_state_direction direction) {
  GT_TRY(plain_state(r, direction));
  if (r->first) GT_TRY(first_state(r, direction));
  if (!r->packer) return GT_OK;
  GT_TRY(payload_state(r, direction));
  return gt_coder_state(r->packer, r->base.spec.owner, false, direction);
}

/* ---- broadcast ------------------------------------------------------------------------------- */

static const gt_broadcast_ops *cast_ops_of(const gt_broadcast *b) {
  return b->base.x->topology->broadcast;
}

gt_broadcast *gt_broadcast_open(gt_exchange *x, const gt_collective_spec *spec, size_t n,
                                bool replace) {
  const gt_broadcast_ops *ops = x->topology->broadcast;
  gt_broadcast *b = gt_alloc(1, ops->size);
  gt_exchange_add(x, &b->base, spec, n, gt_coder_open(&x->spec, n, coder_use(spec)));
  b->base.broadcast = b;
  b->replace = replace;
  if (ops->open) ops->open(b);
  return b;
}

void gt_broadcast_close(gt_broadcast *b) {
  if (!b) return;
  if (cast_ops_of(b)->close) cast_ops_of(b)->close(b);
  gt_exchange_remove(&b->base);
}

bool gt_broadcast_room(const gt_broadcast *b) {
  return b->base.x->spec.nregions == 1 || cast_ops_of(b)->room(b);
}

gt_vec gt_broadcast_begin(gt_broadcast *b) {
  if (cast_ops_of(b)->begin) {
    gt_vec own = cast_ops_of(b)->begin(b);
    if (own.n) return own;
  }
  b->filling.route = (gt_frame_route){0};
  return gt_exchange_fill(&b->base, &b->filling, b->base.n);
}

void gt_broadcast_post(gt_broadcast *b, uint64_t value, uint64_t samples) {
  const uint64_t next = (uint64_t)b->posted + 1;
  b->filling.value = value > next ? value : next;
  b->filling.detail = samples;
  b->posted = (int64_t)b->filling.value;
  cast_ops_of(b)->post(b, &b->filling);
}

bool gt_broadcast_rests(const gt_broadcast *b) {
  return b->base.coder && gt_coder_has_rest(b->base.coder);
}

gt_vec gt_broadcast_residual(const gt_broadcast *b) {
  return b->base.coder ? gt_coder_residual(b->base.coder) : gt_vec_of(NULL, 0);
}

void gt_broadcast_post_rest(gt_broadcast *b) {
  if (!gt_broadcast_rests(b)) return;
  b->filling.exact = true; /* the bytes of float32 need room */
  if (gt_broadcast_room(b)) {
    gt_coder_rest(b->base.coder, gt_exchange_fill(&b->base, &b->filling, b->base.n));
    gt_broadcast_post(b, 0, 0);
  }
  b->filling.exact = false;
}

gt_status gt_broadcast_state(gt_broadcast *b, gt_state_direction direction) {
  char prefix[64];
  snprintf(prefix, sizeof prefix, "%sbroadcast/", b->base.spec.owner);
  if (cast_ops_of(b)->state) GT_TRY(cast_ops_of(b)->state(b, prefix, direction));
  const gt_state_field lost = {"lost", GT_TYPE_I64, &b->lost, 1};
  if (direction.to ? b->lost > 0 : gt_state_find(direction.from, prefix, "lost") != NULL)
    GT_TRY(gt_state_fields(direction, prefix, &lost, 1));
  if (!b->base.coder) return GT_OK;
  const gt_state_field value = {"coded_value", GT_TYPE_I64, &b->posted, 1};
  GT_TRY(gt_state_fields(direction, prefix, &value, 1));
  return gt_coder_state(b->base.coder, prefix, false, direction);
}

/* ---- change of members ----------------------------------------------------------------------- */

void gt_collective_interrupt(gt_collective *c) {
  const gt_topology_ops *topology = c->x->topology;
  if (c->allreduce) {
    topology->allreduce->close(c->allreduce);
    memset((char *)c->allreduce + sizeof *c->allreduce, 0,
           topology->allreduce->size - sizeof *c->allreduce);
  } else if (topology->broadcast->close) {
    topology->broadcast->close(c->broadcast);
    memset((char *)c->broadcast + sizeof *c->broadcast, 0,
           topology->broadcast->size - sizeof *c->broadcast);
  }
}

static gt_coder *coder_again(gt_coder *coder, const gt_exchange_spec *spec, size_t n,
                             gt_coder_use use) {
  gt_coder_close(coder);
  return gt_coder_open(spec, n, use);
}

static void open_again(gt_allreduce *r, int64_t applied, int64_t floor) {
  r->target = r->floor = applied;
  if (r->applied > applied) r->applied = applied;
  r->late_floor = floor;
  r->unheard = 0;
  r->quorum.grace = GT_NEVER;
  gt_exchange_cut(&r->base);
  ops_of(r)->open(r);
}

/* Sets the region's part in the round after `applied`.  open: it has a contribution to it. */
static void set_own(gt_allreduce *r, int64_t applied, bool open) {
  if (open) r->own = applied + 1;
  if (!open && r->own > applied) r->own = applied;
  r->posted = open ? applied : r->own;
  if (open) r->quorum.from = r->own;
}

/* Contributes again, with the codec's first step. */
static void pack_again(gt_allreduce *r, int64_t applied) {
  if (r->first) {
    set_own(r, applied, false);
    r->staged = 1;
    r->leaving = r->leaving || r->over;
    r->over = 0;
  }
  if (!r->abstained) pack(r, r->first ? r->first : r, 0);
}

void gt_allreduce_regroup(gt_allreduce *r, int64_t applied, int64_t floor, bool late, bool again) {
  gt_exchange_spec spec = r->base.x->spec;
  const bool open = !late && (r->own > applied || (r->staged && r->own == applied));
  if (late) {
    const bool is_void = !again && gt_allreduce_waiting(r); /* contributes again */
    r->over = (r->over || r->leaving) && !is_void;
    r->rejoins = !r->over;
    r->abstained = r->leaving = 0;
  }
  r->staged = 0;
  if (!r->packer)
    r->base.coder =
        coder_again(r->base.coder, &spec, r->base.n, plain_use(r->base.x, &r->base.spec));
  open_again(r, applied, floor);
  set_own(r, applied, open);
  if (again) r->applied = applied - 1;
  if (r->base.spec.quorum > 0 && !open && !gt_allreduce_lacks(r))
    r->quorum.made = included_of(r); /* one in flight is void */
  if (r->first) {
    r->first->rejoins = r->rejoins;
    r->first->applied = applied;
    open_again(r->first, applied, floor);
    set_own(r->first, applied, open);
  }
  if (!r->packer) return;
  spec.nregions = 2; /* the only member keeps its packer */
  r->packer = coder_again(r->packer, &spec, r->whole.n, coder_use(&r->base.spec));
  if (open) pack_again(r, applied);
}

void gt_broadcast_regroup(gt_broadcast *b) {
  const gt_exchange_spec *spec = &b->base.x->spec;
  const gt_coder_use use = coder_use(&b->base.spec);
  const bool continues = !cast_ops_of(b)->close;
  if (!continues || !b->base.coder)
    b->base.coder = coder_again(b->base.coder, spec, b->base.n, use);
  gt_exchange_cut(&b->base);
  if (!continues) b->lost = b->posted;
  if (cast_ops_of(b)->open) cast_ops_of(b)->open(b);
}

float gt_allreduce_adopt(gt_allreduce *r) {
  const bool has_quorum = r->base.spec.quorum > 0,
             counts = has_quorum ? gt_allreduce_open_contributions(r) <= 0 : r->own == r->target,
             took_part = !r->rejoins && counts && !r->abstained;
  r->applied = r->target;
  if (has_quorum) {
    r->quorum.missed = counts ? 0 : r->quorum.missed + 1;
    if (r->own <= r->applied) { /* one in flight is lost */
      r->own = r->posted = r->applied;
      r->quorum.made = included_of(r);
    }
  }
  ops_of(r)->again(r);
  return took_part ? (float)gt_allreduce_weight(r) : 0;
}

size_t gt_allreduce_range(const gt_allreduce *r) {
  return r->base.id;
}
