/* Checks that the job allows a message of a peer, before it is used. */
#include "internal.h"

/* True if the PS takes messages of this kind in this job. */
static bool takes(const gt_ps *ps, unsigned kind) {
  if (gt_msg_is_data(kind)) return gt_exchange_takes(ps->exchange, kind);
  if (kind == GT_MSG_STRATEGY) return ps->plane->check != NULL;
  if (kind == GT_MSG_ADAPT) return ps->adapt != NULL;
  if (kind == GT_MSG_SCORE) return ps->spec.validates;
  return kind >= GT_MSG_ACK && kind <= GT_MSG_JOINED;
}

static bool is_of_pipeline(const gt_frame_header *head) {
  return head->kind == GT_MSG_STRATEGY || head->kind == GT_MSG_ADAPT;
}

static gt_status check_data(const gt_ps *ps, size_t from, const gt_frame_header *head,
                            const void *body) {
  bool dropped = gt_ps_frozen(ps) || ps->peers[from].rejected; /* so gaps are possible */
  int64_t sequence = (int64_t)head->sequence,
          next = gt_outbox_get_view(ps->outbox, from).received + 1;
  if (sequence < 1 || (sequence > next && !dropped))
    return GT_FAIL(GT_ERR_FAULT, "data has sequence %lld; expected %lld or one before it",
                   (long long)sequence, (long long)next);
  if (dropped || sequence < next) return GT_OK;
  GT_TRY(gt_exchange_check(ps->exchange, ps->replicas.of[from], head));
  return gt_exchange_check_body(ps->exchange, head, body);
}

static gt_status check_round(int64_t round, int64_t least, int64_t most) {
  if (round >= least && round <= most) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "it is of checkpoint round %lld; %lld to %lld is what can be",
                 (long long)round, (long long)least, (long long)most);
}

/* `detail` is the last message that the region has sent.  Those that are unacknowledged fit in its
   outbox. */
static gt_status check_numbers(const gt_ps *ps, size_t from, const gt_frame_header *head,
                               const char *what) {
  const gt_outbox_view v = gt_outbox_get_view(ps->outbox, from);
  const int64_t value = (int64_t)head->value, last = (int64_t)head->detail, least = v.taken,
                most = least + (int64_t)v.most;
  if (value >= 0 && last >= least && last <= most) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT,
                 "a region that %s names step or round %lld and message %lld; expected a step or "
                 "round of 0 or more and a message from %lld to %lld",
                 what, (long long)value, (long long)last, (long long)least, (long long)most);
}

static gt_status check_code(uint64_t code) {
  if (code == GT_OK || code == GT_STOPPED || code == GT_ERR_LIMIT) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "a round stops the run with code %lld; expected 0, %d or %d",
                 (long long)code, (int)GT_ERR_LIMIT, (int)GT_STOPPED);
}

static gt_status check_committed(int64_t steps, int64_t least, int64_t most) {
  if (steps >= least && steps <= most) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT,
                 "it has made %lld steps of the pipeline; %lld to %lld is what can be",
                 (long long)steps, (long long)least, (long long)most);
}

/* Checks that the peer can have made these steps: as many as this region, or the one that this
   region has announced. */
static gt_status check_step(const gt_ps *ps, size_t from, int64_t steps) {
  return ps->plane->together && ps->stage_group.of[from] != PS_NONE
             ? check_committed(steps, ps->totals.steps, ps->totals.steps + ps->stages.given)
             : GT_OK;
}

/* rounds.c explains why all regions are at the same step. */
static gt_status check_round_step(const gt_ps *ps, size_t from, const gt_frame_header *head) {
  const int64_t round = (int64_t)head->value, steps = (int64_t)head->sequence;
  if (!ps->plane->together || ps->stage_group.of[from] == PS_NONE) return GT_OK;
  if (round == ps->stages.deferred.round && ps->stages.deferred.steps >= 0)
    return check_committed(steps, ps->stages.deferred.steps, ps->stages.deferred.steps);
  if (round > ps->round) return check_step(ps, from, steps);
  return check_committed(steps, round == ps->round ? ps->steps_at_round : 0, ps->steps_at_round);
}

static gt_status check_ack(const gt_ps *ps, size_t from, int64_t sequence) {
  const int64_t sent = gt_outbox_get_view(ps->outbox, from).sent;
  if (sequence >= 0 && sequence <= sent) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "it acknowledges message %lld; 0 to %lld were sent",
                 (long long)sequence, (long long)sent);
}

/* A region opens a new round only when the last one is durable in all regions, including this
   one. */
gt_status gt_ps_check(const gt_ps *ps, size_t from, const gt_frame_header *head, const void *body) {
  int64_t value = (int64_t)head->value, newest = ps->round + 1;
  if (from >= ps->spec.nregions || from == ps->spec.self)
    return GT_FAIL(GT_ERR_FAULT, "there is no link from region %zu to region %zu", from,
                   ps->spec.self);
  if (!takes(ps, head->kind))
    return GT_FAIL(GT_ERR_FAULT, "a message of kind %u is none that strategy %s has use for",
                   head->kind, ps->spec.strategy->name);
  if ((gt_msg_is_data(head->kind) && ps->replicas.of[from] == PS_NONE) ||
      (is_of_pipeline(head) && ps->stage_group.of[from] == PS_NONE))
    return GT_FAIL(GT_ERR_FAULT,
                   "a message of kind %u is from region %zu; expected one from a region that %s",
                   head->kind, from,
                   gt_msg_is_data(head->kind) ? "holds the same stages in another copy"
                                              : "is of the same copy of the pipeline");
  const bool ranged =
      gt_msg_is_data(head->kind) || head->kind == GT_MSG_DONE || head->kind == GT_MSG_JOINED;
  const uint64_t bytes = gt_msg_is_data(head->kind)      ? gt_exchange_bytes(ps->exchange, head)
                         : gt_ps_agree_has_numbers(head) ? head->message_bytes
                         : head->kind == GT_MSG_SCORE    ? GT_SCORE_BYTES
                                                         : 0;
  const bool any_range =
      gt_ps_agree_has_numbers(head) || head->kind == GT_MSG_PING || head->kind == GT_MSG_ADAPT;
  const size_t ranges = ranged                       ? gt_ps_dones(ps)
                        : any_range                  ? SIZE_MAX
                        : head->kind == GT_MSG_SCORE ? 2
                                                     : 1;
  const bool decodes =
      gt_msg_is_data(head->kind) ? gt_exchange_decodes(ps->exchange, head) : head->codec == 0;
  if (!decodes || head->range >= ranges)
    return GT_FAIL(GT_ERR_FAULT,
                   "a message of kind %u has codec %u and range %u; expected %s and a range below "
                   "%zu",
                   head->kind, head->codec, head->range,
                   ps->spec.codec.kind ? "the job's codec or 0" : "codec 0", ranges);
  if (head->message_bytes != bytes)
    return GT_FAIL(GT_ERR_FAULT, "a message of kind %u has %llu bytes; expected %llu", head->kind,
                   (unsigned long long)head->message_bytes, (unsigned long long)bytes);
  GT_TRY(check_round(head->round, 0, newest));
  switch ((gt_msg_kind)head->kind) {
  case GT_MSG_ACK:
    return check_ack(ps, from, value);
  case GT_MSG_PONG:
    if (value <= ps->now) return GT_OK;
    return GT_FAIL(GT_ERR_FAULT, "a PONG answers a PING of %lld ns, which is to come",
                   (long long)value);
  case GT_MSG_ROUND:
    GT_TRY(check_round(value, 1, newest));
    GT_TRY(check_round_step(ps, from, head));
    return check_code(head->detail);
  case GT_MSG_WRITTEN:
    return check_round(value, 0, newest);
  case GT_MSG_SCORE:
    GT_TRY(check_round(value, 0, newest));
    return gt_ps_validation_check(head, body);
  case GT_MSG_DONE:
    GT_TRY(check_numbers(ps, from, head, "is done"));
    return check_step(ps, from, value);
  case GT_MSG_STRATEGY:
  case GT_MSG_ADAPT:
    /* messages that would be dropped are not checked */
    return gt_ps_frozen(ps) ? GT_OK : ps->plane->check(ps, from, head);
  case GT_MSG_JOINED:
    return check_numbers(ps, from, head, "resumes");
  default:
    if (!gt_msg_is_data(head->kind)) return GT_OK;
    if (head->acknowledged > 0) GT_TRY(check_ack(ps, from, (int64_t)head->acknowledged));
    return check_data(ps, from, head, body);
  }
}
