/* The plane `stages`: the regions of a pipeline, its stage group, commit every step together, or
   drop it together.  A step needs the work of every region, so all regions have its gradient or
   none has; they still have to agree that all gradients are finite.  Each announces its gradient to
   all others, once a step, and no region applies a step before all have announced it.  So a region
   is at most one step behind another.

   To clip gradients by the norm of all stages (Pascanu, Mikolov and Bengio 2013), a region first
   sends the squares of its tensors.  Each region adds the squares of all, in the order of the
   model's tensors, so all have the same norm, bit for bit that of one process.  The gradient of
   step s is clipped, and its squares precede the announcement of the step.  If several replicas of
   a pipeline apply the mean of their gradients, the mean of round s is clipped.  A region announces
   round n + 1 after it has taken the norm of round n, which needs the squares of all others.  So at
   most the squares of two rounds are in use.  Announcements are lost when a run stops: after a
   resume every region repeats its last two rounds. */
#include <math.h>
#include <string.h>

#include "internal.h"

static ps_member *own_of(const gt_ps *ps) {
  return &ps->agree.members[ps->stage_group.self];
}

void gt_ps_hold(gt_ps *ps, unsigned holder, bool holds) {
  ps->holders = holds ? ps->holders | holder : ps->holders & ~holder;
  if (ps->held == (ps->holders != 0)) return;
  if (ps->held) ps->held_total += ps->now - ps->held_since;
  ps->held_since = ps->now;
  ps->held = ps->holders != 0;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Converts owners to numbers in the stage group. */
void gt_ps_agree_open(gt_ps *ps) {
  ps_agree *a = &ps->agree;
  const gt_ps_spec *spec = &ps->spec;
  a->members = GT_NEW_ARRAY(ps_member, ps->stage_group.n);
  a->counts = GT_NEW_ARRAY(size_t, ps->stage_group.n);
  a->owners = GT_NEW_ARRAY(size_t, spec->nowners);
  a->of_means = ps->apart && spec->nowners > 0 && ps->between->lockstep;
  for (size_t i = 0; i < spec->nowners; i++) {
    a->owners[i] = ps->stage_group.of[spec->owners[i]];
    if (a->owners[i] == PS_NONE) gt_bug("tensor %zu is of another copy of the pipeline", i);
    a->members[a->owners[i]].tensors++;
  }
  for (size_t m = 0; m < ps->stage_group.n; m++)
    for (size_t i = 0; i < 2; i++)
      a->members[m].squares[i] = GT_NEW_ARRAY(double, a->members[m].tensors);
  const size_t own = own_of(ps)->tensors;
  if (spec->params.data && own > 0 && own != gt_optim_tensors(spec->optim))
    gt_bug("%zu tensors of the model are this region's, and its optimizer has %zu", own,
           gt_optim_tensors(spec->optim));
}

void gt_ps_agree_close(gt_ps *ps) {
  ps_agree *a = &ps->agree;
  for (size_t m = 0; a->members && m < ps->stage_group.n; m++)
    for (size_t i = 0; i < 2; i++) gt_free(a->members[m].squares[i]);
  gt_free(a->members);
  gt_free(a->counts);
  gt_free(a->owners);
}

/* ---- announcements --------------------------------------------------------------------------- */

/* Adds the bytes that this region has posted, for limits.wan_bytes. */
void gt_ps_tell_member(gt_ps *ps, size_t peer, gt_frame_header head) {
  head.posted_bytes = (uint64_t)gt_outbox_posted(ps->outbox);
  gt_outbox_control(ps->outbox, peer, head, NULL, 0);
}

/* ---- squares --------------------------------------------------------------------------------- */

static size_t piece(size_t first, size_t tensors) {
  return tensors - first < GT_CONTROL_NUMBERS ? tensors - first : GT_CONTROL_NUMBERS;
}

static void send_squares(gt_ps *ps, int64_t number) {
  const ps_member *own = own_of(ps);
  const double *squares = own->squares[number % 2];
  for (size_t m = 0; m < ps->stage_group.n; m++)
    for (size_t i = 0; m != ps->stage_group.self && i < own->tensors; i += GT_CONTROL_NUMBERS)
      gt_outbox_control(ps->outbox, ps->stage_group.regions[m],
                        (gt_frame_header){.kind = GT_MSG_STRATEGY,
                                          .value = (uint64_t)number,
                                          .range = (uint32_t)i},
                        squares + i, piece(i, own->tensors) * sizeof *squares);
}

static void tell_squares(gt_ps *ps, gt_vec x) {
  ps_member *own = own_of(ps);
  own->squared++;
  if (own->tensors > 0) gt_optim_squares(ps->spec.optim, x, own->squares[own->squared % 2]);
  send_squares(ps, own->squared);
}

static double norm_of(gt_ps *ps, int64_t number) {
  ps_agree *a = &ps->agree;
  double sum = 0;
  memset(a->counts, 0, ps->stage_group.n * sizeof *a->counts);
  for (size_t i = 0; i < ps->spec.nowners; i++) {
    const size_t m = a->owners[i];
    sum += a->members[m].squares[number % 2][a->counts[m]++];
  }
  return sqrt(sum);
}

void gt_ps_agree_mean(void *ctx, gt_vec mean) {
  gt_ps *ps = ctx;
  if (own_of(ps)->squared != ps->agree.taken)
    gt_bug("the mean of round %lld is there, and the norm of round %lld is to come",
           (long long)own_of(ps)->squared + 1, (long long)ps->agree.taken + 1);
  tell_squares(ps, mean);
}

/* A region without parameters needs no squares. */
bool gt_ps_agree_norm(void *ctx, double *norm) {
  gt_ps *ps = ctx;
  ps_agree *a = &ps->agree;
  for (size_t m = 0; own_of(ps)->tensors > 0 && m < ps->stage_group.n; m++)
    if (a->members[m].tensors > 0 && a->members[m].squared <= a->taken) return false;
  *norm = norm_of(ps, ++a->taken);
  return true;
}

void gt_ps_agree_again(gt_ps *ps) {
  if (!ps->agree.of_means) return;
  const int64_t told = own_of(ps)->squared;
  for (int64_t round = told > 1 ? told - 1 : 1; round <= told; round++) send_squares(ps, round);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool all_told(const gt_ps *ps) {
  for (size_t m = 0; m < ps->stage_group.n; m++)
    if (ps->agree.members[m].told <= ps->agree.committed) return false;
  return true;
}

/* Commits the step that all have announced, if any: applies it, or drops it because of the first
   member with a non-finite gradient.  Then holds or releases the workers. */
static void advance(gt_ps *ps) {
  ps_agree *a = &ps->agree;
  if (all_told(ps)) {
    const int64_t step = ++a->committed;
    size_t m = 0;
    while (m < ps->stage_group.n && !a->members[m].nonfinite[step % 2]) m++;
    ps->stages.committed = true;
    ps->stages.nonfinite = m < ps->stage_group.n ? ps->stage_group.regions[m] : ps->spec.nregions;
    if (m == ps->stage_group.n && ps->spec.nowners > 0 && !a->of_means)
      gt_optim_norm(ps->spec.optim, norm_of(ps, step));
  }
  gt_ps_hold(ps, PS_HOLDER_AGREE, own_of(ps)->told > a->committed);
}

void gt_ps_agree_tell(gt_ps *ps, bool nonfinite) {
  ps_member *own = own_of(ps);
  if (own->told != ps->agree.committed)
    gt_bug("a gradient came before step %lld was made", (long long)own->told);
  if (!nonfinite && !ps->agree.of_means) tell_squares(ps, ps->spec.grads);
  own->told++;
  if (!ps->agree.of_means) own->squared = own->told;
  own->nonfinite[own->told % 2] = nonfinite;
  const gt_frame_header told = {
      .kind = GT_MSG_STRATEGY, .value = (uint64_t)own->told, .detail = nonfinite};
  for (size_t m = 0; m < ps->stage_group.n; m++)
    if (m != ps->stage_group.self) gt_ps_tell_member(ps, ps->stage_group.regions[m], told);
  advance(ps);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* After a resume a member begins with the means of an announced round: one that this region has
   taken, the one before it, or one after it. */
static gt_status check_squares(const gt_ps *ps, const ps_member *other, int64_t number,
                               size_t first, size_t n) {
  const ps_agree *a = &ps->agree;
  const ps_member *own = own_of(ps);
  const bool anew = other->squared < 0;
  const int64_t least = anew ? (a->taken > 3 ? a->taken - 2 : 1) : other->squared + 1,
                most = (a->of_means ? own->squared : own->told) + 1;
  if (a->of_means && own->tensors == 0) return GT_OK;
  if ((anew ? number >= least : number == least) && number <= most && first == other->got &&
      other->got < other->tensors && n == piece(first, other->tensors))
    return GT_OK;
  return GT_FAIL(
      GT_ERR_FAULT,
      "it sends the squares of %zu tensors from tensor %zu on, of step or round %lld; it "
      "has %zu, of which %zu are there, of step or round %lld, at most %lld",
      n, first, (long long)number, other->tensors, other->got, (long long)least, (long long)most);
}

/* A region announces step s + 1 after it has applied step s, which this region has announced. */
static gt_status check_told(const gt_ps *ps, const ps_member *other, int64_t step, int64_t mark) {
  const int64_t next = other->told + 1, most = own_of(ps)->told + 1;
  if (step != next || step > most || (mark != 0 && mark != 1))
    return GT_FAIL(GT_ERR_FAULT,
                   "its gradient of step %lld is there, with mark %lld; expected step %lld, at "
                   "most %lld, and mark 0 or 1",
                   (long long)step, (long long)mark, (long long)next, (long long)most);
  const size_t got = other->squared == step ? other->tensors : other->got,
               needed = mark ? 0 : other->tensors;
  if (ps->agree.of_means || got == needed) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT,
                 "its gradient of step %lld is there, with mark %lld and the squares of %zu "
                 "tensors; expected those of %zu",
                 (long long)step, (long long)mark, got, needed);
}

/* True for a message with numbers, which have a place and a length. */
bool gt_ps_agree_has_numbers(const gt_frame_header *head) {
  return head->kind == GT_MSG_STRATEGY && head->message_bytes > 0 &&
         head->message_bytes % sizeof(double) == 0;
}

gt_status gt_ps_agree_check(const gt_ps *ps, size_t from, const gt_frame_header *head) {
  const ps_member *other = &ps->agree.members[ps->stage_group.of[from]];
  const int64_t value = (int64_t)head->value;
  return gt_ps_agree_has_numbers(head) ? check_squares(ps, other, value, head->range,
                                                       (size_t)head->message_bytes / sizeof(double))
                                       : check_told(ps, other, value, (int64_t)head->detail);
}

static void take_squares(gt_ps *ps, ps_member *other, int64_t number, size_t first,
                         const void *squares, size_t n) {
  const bool of_means = ps->agree.of_means;
  if (of_means && own_of(ps)->tensors == 0) return;
  if (squares) memcpy(other->squares[number % 2] + first, squares, n * sizeof(double));
  other->got += n;
  if (other->got < other->tensors) return;
  other->got = 0;
  other->squared = number;
  if (of_means) gt_exchange_start(ps->exchange);
}

void gt_ps_agree_message(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body) {
  ps_member *other = &ps->agree.members[ps->stage_group.of[from]];
  const int64_t value = (int64_t)head->value;
  if (gt_ps_agree_has_numbers(head)) {
    take_squares(ps, other, value, head->range, body, (size_t)head->message_bytes / sizeof(double));
    return;
  }
  other->told = value;
  if (!ps->agree.of_means) other->squared = value;
  other->nonfinite[value % 2] = head->detail != 0;
  advance(ps);
}

/* ---- state ----------------------------------------------------------------------------------- */

/* All regions continue from the same step; none has announced the next one. */
static gt_status steps_state(gt_ps *ps, gt_state_direction direction) {
  ps_agree *a = &ps->agree;
  const gt_state_field committed = {"applied", GT_TYPE_I64, &a->committed, 1};
  GT_TRY(gt_state_fields(direction, "sync/", &committed, 1));
  if (a->committed < 0 || a->committed > INT64_MAX / 2)
    return GT_FAIL(GT_ERR_CKPT, "sync/applied is %lld, which is no number of steps",
                   (long long)a->committed);
  for (size_t m = 0; direction.from && m < ps->stage_group.n; m++) {
    a->members[m].told = a->committed;
    a->members[m].squared = a->of_means ? -1 : a->committed;
  }
  return GT_OK;
}

gt_status gt_ps_agree_state(gt_ps *ps, gt_state_direction direction) {
  ps_agree *a = &ps->agree;
  if (!a->members) return GT_OK;
  GT_TRY(steps_state(ps, direction));
  if (!ps->agree.of_means) return GT_OK;
  ps_member *own = own_of(ps);
  const bool has = own->tensors > 0;
  const gt_state_field fields[] = {
      {"told", GT_TYPE_I64, &own->squared, 1},
      {"taken", GT_TYPE_I64, &a->taken, 1},
      {has ? "even" : NULL, GT_TYPE_F64, own->squares[0], own->tensors},
      {has ? "odd" : NULL, GT_TYPE_F64, own->squares[1], own->tensors}};
  GT_TRY(GT_STATE_FIELDS(direction, "ps/norm/", fields));
  if (a->taken >= 0 && own->squared >= a->taken && own->squared <= a->taken + 1) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 "ps/norm/told is %lld and ps/norm/taken %lld; expected the same or one less",
                 (long long)own->squared, (long long)a->taken);
}

static void step(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now, (void)samples;
  gt_optim_step(s->env.optim, s->env.params, grads, gt_vec_of(NULL, s->env.params.n));
}

const gt_sync_ops gt_ps_lockstep = {.name = "stages",
                                    .source = "regions of one pipeline",
                                    .waits = true,
                                    .between_steps = true,
                                    .lockstep = true,
                                    .size = sizeof(gt_sync),
                                    .on_gradient = step};
