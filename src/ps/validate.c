/* Validation: every checkpoint round is judged by the loss of its models.

   After its checkpoint a region evaluates that model on the samples that it has held back, and
   tells all others the sums (SCORE, range 0).  A region with the sums of all judges the round:
   their loss, weighted by samples, is the lowest so far, or it is not.  It tells the others
   (range 1), and they take over what they have not judged themselves.  A region opens a round
   only when it has judged the last one, and it tells so before its next sums; no region can judge
   without these sums, so all judge every round alike.  A round that is not sound has no loss, and
   one that stops the run is not judged.  After a resume the regions tell what they had judged,
   and judge the round from which they continue.  All skip it if it had stopped the run, also if it
   had done so in one region only, which had not heard yet that another one had opened it; but it
   replaces one of the same steps that was not judged yet.

   A round counts against the patience if regions have made steps since the one judged before: the
   last round of a run can be of the same models.

   The regions' own models are evaluated, not their mean: it would have to be sent. */
#include <math.h>
#include <string.h>

#include "internal.h"

/* The other payload of a SCORE. */
typedef struct {
  double best, best_loss, since, steps, loss, accuracy;
} judgement;
_Static_assert(sizeof(ps_sums) == GT_SCORE_BYTES && sizeof(judgement) == GT_SCORE_BYTES,
               "both are as long");

void gt_ps_validation_open(gt_ps *ps) {
  ps_validation *v = &ps->validation;
  if (!ps->spec.validates) return;
  if (ps->plane->whole || ps->spec.members.change) gt_bug("stages or members, and validation");
  v->told = GT_NEW_ARRAY(int64_t, ps->spec.nregions);
  v->sums = GT_NEW_ARRAY(ps_sums, ps->spec.nregions);
  v->best_loss = INFINITY;
  const bool with_memory = ps->spec.params.data != NULL;
  v->params =
      gt_vec_of(with_memory ? GT_NEW_ARRAY(float, ps->spec.params.n) : NULL, ps->spec.params.n);
  v->buffers = gt_vec_of(with_memory ? GT_NEW_ARRAY(float, ps->spec.buffers.n + 1) : NULL,
                         ps->spec.buffers.n);
}

void gt_ps_validation_close(gt_ps *ps) {
  gt_free(ps->validation.told);
  gt_free(ps->validation.sums);
  gt_free(ps->validation.params.data);
  gt_free(ps->validation.buffers.data);
}

bool gt_ps_is_judged(const gt_ps *ps) {
  return ps->validation.judged >= ps->validation.round;
}

bool gt_ps_gave_up(const gt_ps *ps) {
  return ps->spec.patience > 0 && ps->validation.since >= ps->spec.patience;
}

static void tell(gt_ps *ps, size_t peer, bool judged) {
  const ps_validation *v = &ps->validation;
  const judgement j = {(double)v->best,  v->best_loss, (double)v->since,
                       (double)v->steps, v->loss,      v->accuracy};
  gt_outbox_control(ps->outbox, peer,
                    (gt_frame_header){.kind = GT_MSG_SCORE,
                                      .range = judged,
                                      .value = (uint64_t)(judged ? v->judged : v->round)},
                    judged ? (const void *)&j : &v->sums[ps->spec.self], sizeof j);
}

static void tell_all(gt_ps *ps, bool judged) {
  for (size_t p = 0; p < ps->spec.nregions; p++)
    if (p != ps->spec.self) tell(ps, p, judged);
}

/* Call when a round has been judged, here or by another region. */
static void settled(gt_ps *ps) {
  const ps_validation *v = &ps->validation;
  tell_all(ps, true);
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_JUDGED, (double)v->judged, (double)v->best);
}

/* A loss that is not a number is not the best one.  Training that has ended early does not
   continue. */
static void judge(gt_ps *ps) {
  ps_validation *v = &ps->validation;
  ps_sums all = {0};
  if (gt_ps_is_judged(ps)) return;
  for (size_t p = 0; p < ps->spec.nregions; p++) {
    if (v->told[p] < v->round) return;
    all.loss_sum += v->sums[p].loss_sum;
    all.samples += v->sums[p].samples;
    all.correct += v->sums[p].correct;
    all.steps += v->sums[p].steps;
    all.stopped += v->sums[p].stopped;
  }
  if (all.stopped > 0) {
    v->round = v->judged;
    return;
  }
  const double each = ps->spec.predictions ? (double)ps->spec.predictions : 1;
  v->judged = v->round;
  v->loss = all.loss_sum / all.samples;
  v->accuracy = all.correct / (all.samples * each);
  const bool better = v->loss < v->best_loss;
  if (better && !gt_ps_gave_up(ps))
    v->since = 0;
  else if (all.steps > (double)v->steps)
    v->since++;
  v->steps = (int64_t)all.steps;
  if (better) v->best = v->round;
  if (better) v->best_loss = v->loss;
  settled(ps);
}

static void give(gt_ps *ps, ps_sums own) {
  ps_validation *v = &ps->validation;
  v->due = false;
  own.steps = (double)ps->steps_at_round;
  own.last = (double)v->last;
  v->sums[ps->spec.self] = own;
  v->told[ps->spec.self] = v->round;
  tell_all(ps, false);
  judge(ps);
}

void gt_ps_validation_take(gt_ps *ps, int64_t round) {
  ps_validation *v = &ps->validation;
  if (!ps->spec.validates || ps->stop_code != GT_OK) return;
  const bool stopped = v->saved < 0, sound = ps->unsound != round && !stopped;
  v->round = round;
  v->due = ps->spec.validation > 0 && sound;
  if (!v->due) give(ps, (ps_sums){.loss_sum = sound ? 0 : NAN, .stopped = stopped});
  if (!v->due) return;
  gt_vec_copy(v->params, ps->spec.params);
  gt_vec_copy(v->buffers, ps->spec.buffers);
}

bool gt_ps_validation_begins(gt_ps *ps) {
  const bool begins = ps->validation.due && !ps->eval.active;
  if (begins) ps->validation.due = false;
  return begins;
}

void gt_ps_validated(gt_ps *ps, const ps_chunk *own) {
  give(ps, (ps_sums){.loss_sum = own->loss_sum,
                     .samples = (double)own->samples,
                     .correct = (double)own->correct});
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool is_whole(double x, double most) {
  return x >= 0 && x <= most && x == floor(x);
}

gt_status gt_ps_validation_check(const gt_frame_header *head, const void *body) {
  const double round = (double)head->value, most = 9007199254740992.0;
  if (head->range == 0) {
    ps_sums s;
    memcpy(&s, body, sizeof s);
    if (is_whole(s.samples, most) && is_whole(s.correct, most) && is_whole(s.steps, most) &&
        is_whole(s.stopped, 1) && is_whole(s.last, round))
      return GT_OK;
    return GT_FAIL(GT_ERR_FAULT,
                   "it was right %g times in the validation of %g samples after %g steps, stopped "
                   "%g, last round %g, which cannot be",
                   s.correct, s.samples, s.steps, s.stopped, s.last);
  }
  judgement j;
  memcpy(&j, body, sizeof j);
  if (is_whole(j.best, round) && is_whole(j.since, round) && is_whole(j.steps, most)) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT,
                 "it has judged round %g after %g steps: the best is %g, %g rounds ago, which "
                 "cannot be",
                 round, j.steps, j.best, j.since);
}

void gt_ps_validation_message(gt_ps *ps, size_t from, const gt_frame_header *head,
                              const void *body) {
  ps_validation *v = &ps->validation;
  const int64_t round = (int64_t)head->value;
  if (head->range == 0) {
    memcpy(&v->sums[from], body, sizeof v->sums[from]);
    v->told[from] = round;
    if (v->sums[from].last > 0) v->last = (int64_t)v->sums[from].last;
    judge(ps);
    return;
  }
  judgement j;
  memcpy(&j, body, sizeof j);
  if (round <= v->judged) return;
  v->judged = round;
  v->best = (int64_t)j.best;
  v->best_loss = j.best_loss;
  v->since = (int64_t)j.since;
  v->steps = (int64_t)j.steps;
  v->loss = j.loss;
  v->accuracy = j.accuracy;
  settled(ps);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

gt_status gt_ps_validation_state(gt_ps *ps, gt_state_direction direction) {
  ps_validation *v = &ps->validation;
  const bool replaces = !gt_ps_is_judged(ps) && ps->totals.steps == ps->steps_at_round;
  v->saved = ps->stop_code == GT_OK || replaces ? ps->round : -ps->round;
  const gt_state_field fields[] = {{"judged", GT_TYPE_I64, &v->judged, 1},
                                   {"best", GT_TYPE_I64, &v->best, 1},
                                   {"since", GT_TYPE_I64, &v->since, 1},
                                   {"saved", GT_TYPE_I64, &v->saved, 1},
                                   {"best_loss", GT_TYPE_F64, &v->best_loss, 1},
                                   {"loss", GT_TYPE_F64, &v->loss, 1},
                                   {"accuracy", GT_TYPE_F64, &v->accuracy, 1},
                                   {"steps", GT_TYPE_I64, &v->steps, 1},
                                   {"round_steps", GT_TYPE_I64, &ps->steps_at_round, 1},
                                   {"round_samples", GT_TYPE_I64, &ps->samples_at_round, 1}};
  const bool older = direction.from && !gt_state_find(direction.from, "validation/", "steps");
  if (!ps->spec.validates || older) return GT_OK;
  return GT_STATE_FIELDS(direction, "validation/", fields);
}

void gt_ps_validation_start(gt_ps *ps) {
  ps_validation *v = &ps->validation;
  if (!ps->spec.validates || !ps->resumed) return;
  tell_all(ps, true);
  const int64_t saved = v->saved < 0 ? -v->saved : v->saved;
  if (saved > v->judged) gt_ps_validation_take(ps, saved);
}
