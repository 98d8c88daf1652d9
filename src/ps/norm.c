/* Clipping by the norm of all stages, where several copies of a pipeline apply the mean of their
   gradients.  A region knows its own part of a mean only.  It tells its mates the squares of the
   part's tensors, and adds those of all in the order of the model's tensors: so all have the same
   norm, bit for bit that of one process (Pascanu, Mikolov and Bengio 2013 for the clipping).

   A region tells of round n + 1 when it has taken the norm of round n, for which it needs the
   squares of all others.  So at most the squares of two rounds are in use.  What is told is lost
   when a run stops: after a resume every region tells its last two rounds again. */
#include <math.h>
#include <string.h>

#include "internal.h"

/* ---- open and close -------------------------------------------------------------------------- */

static ps_squares *own_of(const gt_ps *ps) {
  return &ps->norm.of[ps->mates.self];
}

/* Owners become numbers among the mates. */
void gt_ps_norm_open(gt_ps *ps) {
  ps_norm *a = &ps->norm;
  const gt_ps_spec *spec = &ps->spec;
  a->owners = GT_NEW_ARRAY(size_t, spec->nowners);
  for (size_t i = 0; i < spec->nowners; i++) {
    a->owners[i] = ps->mates.of[spec->owners[i]];
    if (a->owners[i] == PS_NONE) gt_bug("tensor %zu is of another copy of the pipeline", i);
  }
  a->of_means = spec->copies.ntwins > 0 && spec->nowners > 0 && spec->copies.strategy->lockstep;
  if (!a->of_means) return;
  a->of = GT_NEW_ARRAY(ps_squares, ps->mates.n);
  a->counts = GT_NEW_ARRAY(size_t, ps->mates.n);
  for (size_t i = 0; i < spec->nowners; i++) a->of[a->owners[i]].tensors++;
  for (size_t m = 0; m < ps->mates.n; m++)
    for (size_t i = 0; i < 2; i++) a->of[m].squares[i] = GT_NEW_ARRAY(double, a->of[m].tensors);
  if (spec->params.data && own_of(ps)->tensors > 0 &&
      own_of(ps)->tensors != gt_optim_tensors(spec->optim))
    gt_bug("%zu tensors of the model are this region's, and its optimizer has %zu",
           own_of(ps)->tensors, gt_optim_tensors(spec->optim));
}

void gt_ps_norm_close(gt_ps *ps) {
  ps_norm *a = &ps->norm;
  for (size_t m = 0; a->of && m < ps->mates.n; m++)
    for (size_t i = 0; i < 2; i++) gt_free(a->of[m].squares[i]);
  gt_free(a->of);
  gt_free(a->counts);
  gt_free(a->owners);
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void tell(gt_ps *ps, int64_t round) {
  const ps_squares *own = own_of(ps);
  const double *squares = own->squares[round % 2];
  for (size_t m = 0; m < ps->mates.n; m++)
    for (size_t i = 0; m != ps->mates.self && i < own->tensors; i += GT_CONTROL_NUMBERS) {
      const size_t left = own->tensors - i;
      gt_ps_tell_numbers(ps, ps->mates.regions[m], round, i, squares + i,
                         left < GT_CONTROL_NUMBERS ? left : GT_CONTROL_NUMBERS);
    }
}

void gt_ps_norm_tell(void *ctx, gt_vec mean) {
  gt_ps *ps = ctx;
  ps_squares *own = own_of(ps);
  if (own->told != ps->norm.taken)
    gt_bug("the mean of round %lld is there, and the norm of round %lld is to come",
           (long long)own->told + 1, (long long)ps->norm.taken + 1);
  own->told++;
  if (own->tensors > 0) gt_optim_squares(ps->spec.optim, mean, own->squares[own->told % 2]);
  tell(ps, own->told);
}

void gt_ps_norm_tell_again(gt_ps *ps) {
  if (!ps->norm.of_means) return;
  const int64_t told = own_of(ps)->told;
  for (int64_t round = told > 1 ? told - 1 : 1; round <= told; round++) tell(ps, round);
}

/* ---- the norm -------------------------------------------------------------------------------- */

/* The squares of all mates are there.  A region without parameters needs none. */
static bool is_known(const gt_ps *ps) {
  const ps_norm *a = &ps->norm;
  if (own_of(ps)->tensors == 0) return true;
  for (size_t m = 0; m < ps->mates.n; m++)
    if (a->of[m].tensors > 0 && a->of[m].told <= a->taken) return false;
  return true;
}

bool gt_ps_norm_take(void *ctx, double *norm) {
  gt_ps *ps = ctx;
  ps_norm *a = &ps->norm;
  double sum = 0;
  if (!is_known(ps)) return false;
  a->taken++;
  memset(a->counts, 0, ps->mates.n * sizeof *a->counts);
  for (size_t i = 0; i < ps->spec.nowners; i++) {
    const size_t m = a->owners[i];
    sum += a->of[m].squares[a->taken % 2][a->counts[m]++];
  }
  *norm = sqrt(sum);
  return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* After a resume a mate begins with a round that it had told of before: one that this region has
   taken, the one before it, or one after it. */
gt_status gt_ps_norm_check(const gt_ps *ps, size_t from, int64_t round, size_t first, size_t n) {
  const ps_squares *other = &ps->norm.of[ps->mates.of[from]], *own = own_of(ps);
  const bool anew = other->told < 0;
  const int64_t least = ps->norm.taken > 3 ? ps->norm.taken - 2 : 1;
  const size_t left = other->tensors - other->got;
  const bool due = anew ? round >= least : round == other->told + 1;
  if (own->tensors == 0) return GT_OK;
  if (due && round <= own->told + 1 && first == other->got && left > 0 &&
      n == (left < GT_CONTROL_NUMBERS ? left : GT_CONTROL_NUMBERS))
    return GT_OK;
  return GT_FAIL(GT_ERR_FAULT,
                 "it sends the squares of %zu tensors from tensor %zu on, of round %lld; it has "
                 "%zu, of which %zu are there, of round %lld, at most %lld",
                 n, first, (long long)round, other->tensors, other->got,
                 (long long)(anew ? least : other->told + 1), (long long)own->told + 1);
}

void gt_ps_norm_note(gt_ps *ps, size_t from, int64_t round, size_t first, const void *numbers,
                     size_t n) {
  ps_squares *other = &ps->norm.of[ps->mates.of[from]];
  if (own_of(ps)->tensors == 0) return;
  if (numbers) memcpy(other->squares[round % 2] + first, numbers, n * sizeof(double));
  other->got += n;
  if (other->got < other->tensors) return;
  other->got = 0;
  other->told = round;
  gt_exchange_start(ps->exchange);
}

/* ---- state ----------------------------------------------------------------------------------- */

#define PREFIX "ps/norm/"
static const char *const names[] = {"even", "odd"};

void gt_ps_norm_save(gt_ps *ps, gt_state *state) {
  ps_norm *a = &ps->norm;
  if (!a->of_means) return;
  ps_squares *own = own_of(ps);
  gt_state_add(state, PREFIX, "told", GT_TYPE_I64, &own->told, 1);
  gt_state_add(state, PREFIX, "taken", GT_TYPE_I64, &a->taken, 1);
  for (size_t i = 0; i < 2 && own->tensors > 0; i++)
    gt_state_add(state, PREFIX, names[i], GT_TYPE_F64, own->squares[i], own->tensors);
}

gt_status gt_ps_norm_load(gt_ps *ps, const gt_state *state) {
  ps_norm *a = &ps->norm;
  if (!a->of_means) return GT_OK;
  ps_squares *own = own_of(ps);
  GT_TRY(gt_state_get(state, PREFIX, "told", GT_TYPE_I64, &own->told, 1));
  GT_TRY(gt_state_get(state, PREFIX, "taken", GT_TYPE_I64, &a->taken, 1));
  if (a->taken < 0 || own->told < a->taken || own->told > a->taken + 1)
    return GT_FAIL(GT_ERR_CKPT,
                   PREFIX "told is %lld and " PREFIX "taken %lld; the same or one less is needed",
                   (long long)own->told, (long long)a->taken);
  for (size_t i = 0; i < 2 && own->tensors > 0; i++)
    GT_TRY(gt_state_get(state, PREFIX, names[i], GT_TYPE_F64, own->squares[i], own->tensors));
  for (size_t m = 0; m < ps->mates.n; m++)
    if (m != ps->mates.self) a->of[m].told = -1;
  return GT_OK;
}
