/* stages: regions that hold the stages of one pipeline make every step together, or together drop
   it.  A step needs the work of every region, so its gradient is there in all or in none; what they
   still have to agree on is that all gradients are finite.  Each tells all others, once a step, and
   no region applies a step before all have told it.  So a region is at most one step behind
   another.

   To clip gradients by the norm of all stages, a region sends the squares of its tensors first.
   Each region adds those of all, in the order of the model's tensors, and so has the same norm. */
#include "internal.h"

#include <math.h>
#include <string.h>

typedef struct {
  int64_t told;        /* the newest step of which the region has told */
  bool spoilt[2];      /* its gradient of step s was not finite: [s % 2], for the last two steps */
  double *squares[2];  /* of its tensors, likewise */
  size_t tensors, got; /* got: tensors whose squares of step told + 1 are there */
} teller;

typedef struct {
  gt_sync base;
  int64_t applied; /* steps that are made, applied or dropped */
  teller *regions; /* this one, too */
  gt_vec grads;    /* the own gradient of a step that is told and not made */
  size_t *counts;  /* of each region: tensors whose squares have been added */
} stages;

static teller *self_of(const gt_sync *s) {
  return &((const stages *)s)->regions[s->env.self];
}

static bool all_told(const stages *a) {
  for (size_t r = 0; r < a->base.env.nregions; r++)
    if (a->regions[r].told <= a->applied) return false;
  return true;
}

/* The first region whose gradient of the step is not finite; nregions: there is none. */
static size_t spoilt_by(const stages *a, int64_t step) {
  size_t r = 0;
  while (r < a->base.env.nregions && !a->regions[r].spoilt[step % 2]) r++;
  return r;
}

/* Of the gradient of all regions. */
static double norm_of(const stages *a, int64_t step) {
  const gt_sync_env *env = &a->base.env;
  double sum = 0;
  for (size_t r = 0; r < env->nregions; r++) a->counts[r] = 0;
  for (size_t i = 0; i < env->nowners; i++) {
    const size_t r = env->owners[i];
    sum += a->regions[r].squares[step % 2][a->counts[r]++];
  }
  return sqrt(sum);
}

/* The step, or what its maker needs to know of it. */
static void apply(stages *a, int64_t step) {
  const gt_sync_env *env = &a->base.env;
  if (env->nowners > 0) gt_optim_norm(env->optim, norm_of(a, step));
  if (!env->made_elsewhere) gt_sync_step(&a->base, a->grads);
}

/* Makes the step that all have told, if there is one, then holds or releases the workers. */
static void advance(gt_sync *s) {
  stages *a = (stages *)s;
  const gt_sync_host *host = &s->env.host;
  if (all_told(a)) {
    const size_t spoilt = spoilt_by(a, a->applied + 1);
    if (spoilt == s->env.nregions) apply(a, a->applied + 1);
    a->applied++;
    host->made(host->ctx, spoilt);
  }
  gt_sync_hold_while(s, self_of(s)->told > a->applied);
}

static void tell(gt_sync *s, bool spoilt) {
  teller *own = self_of(s);
  const gt_sync_host *host = &s->env.host;
  if (own->told != ((stages *)s)->applied)
    gt_bug("stages: a gradient came before step %lld was made", (long long)own->told);
  own->told++;
  own->got = 0;
  own->spoilt[own->told % 2] = spoilt;
  for (size_t r = 0; r < s->env.nregions; r++)
    if (r != s->env.self) host->tell(host->ctx, r, own->told, spoilt);
  advance(s);
}

static size_t piece(size_t first, size_t tensors) {
  return tensors - first < GT_CONTROL_NUMBERS ? tensors - first : GT_CONTROL_NUMBERS;
}

static void tell_squares(gt_sync *s) {
  const teller *own = self_of(s);
  const gt_sync_host *host = &s->env.host;
  const int64_t step = own->told + 1;
  double *squares = own->squares[step % 2];
  if (own->tensors == 0) return;
  gt_optim_squares(s->env.optim, ((stages *)s)->grads, squares);
  for (size_t r = 0; r < s->env.nregions; r++)
    for (size_t i = 0; r != s->env.self && i < own->tensors; i += GT_CONTROL_NUMBERS)
      host->tell_numbers(host->ctx, r, step, i, squares + i, piece(i, own->tensors));
}

static void stages_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now, (void)samples;
  gt_vec_copy(((stages *)s)->grads, grads);
  tell_squares(s);
  tell(s, false);
}

static void stages_on_spoilt(gt_sync *s, gt_ns now) {
  (void)now;
  tell(s, true);
}

/* A region tells step s + 1 when it has applied step s, of which this one has told. */
static gt_status stages_check_control(const gt_sync *s, size_t peer, int64_t value,
                                      int64_t detail) {
  const teller *other = &((const stages *)s)->regions[peer];
  const int64_t next = other->told + 1, most = self_of(s)->told + 1;
  if (value != next || value > most || (detail != 0 && detail != 1))
    return GT_FAIL(GT_ERR_FAULT,
                   "its gradient of step %lld is there, with mark %lld; step %lld, at most %lld, "
                   "and mark 0 or 1 are needed",
                   (long long)value, (long long)detail, (long long)next, (long long)most);
  if (other->got == (detail ? 0 : other->tensors)) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT,
                 "its gradient of step %lld is there, with mark %lld and the squares of %zu "
                 "tensors; those of %zu are needed",
                 (long long)value, (long long)detail, other->got, detail ? 0 : other->tensors);
}

static gt_status stages_check_numbers(const gt_sync *s, size_t peer, int64_t value, size_t first,
                                      size_t n) {
  const teller *other = &((const stages *)s)->regions[peer];
  const int64_t next = other->told + 1, most = self_of(s)->told + 1;
  const size_t left = other->tensors - other->got;
  if (value == next && value <= most && first == other->got && left > 0 &&
      n == piece(first, other->tensors))
    return GT_OK;
  return GT_FAIL(GT_ERR_FAULT,
                 "it sends the squares of %zu tensors from tensor %zu on, of step %lld; it has "
                 "%zu, of which %zu are there, of step %lld, at most %lld",
                 n, first, (long long)value, other->tensors, other->got, (long long)next,
                 (long long)most);
}

static void stages_on_numbers(gt_sync *s, gt_ns now, size_t peer, int64_t value, size_t first,
                              const void *numbers, size_t n) {
  (void)now;
  teller *other = &((stages *)s)->regions[peer];
  if (numbers) memcpy(other->squares[value % 2] + first, numbers, n * sizeof(double));
  other->got += n;
}

static void stages_on_control(gt_sync *s, gt_ns now, size_t peer, int64_t value, int64_t detail) {
  (void)now;
  teller *other = &((stages *)s)->regions[peer];
  other->told = value;
  other->got = 0;
  other->spoilt[value % 2] = detail != 0;
  advance(s);
}

static void stages_open(gt_sync *s) {
  stages *a = (stages *)s;
  a->regions = GT_NEW_ARRAY(teller, s->env.nregions);
  a->grads = gt_sync_vec(s, s->env.params.n);
  a->counts = GT_NEW_ARRAY(size_t, s->env.nregions);
  for (size_t i = 0; i < s->env.nowners; i++) a->regions[s->env.owners[i]].tensors++;
  for (size_t r = 0; r < s->env.nregions; r++)
    for (size_t i = 0; i < 2; i++)
      a->regions[r].squares[i] = GT_NEW_ARRAY(double, a->regions[r].tensors);
  if (s->env.nowners > 0 && a->grads.data && self_of(s)->tensors != gt_optim_tensors(s->env.optim))
    gt_bug("stages: %zu tensors of the model are this region's, and its optimizer has %zu",
           self_of(s)->tensors, gt_optim_tensors(s->env.optim));
}

static void stages_close(gt_sync *s) {
  stages *a = (stages *)s;
  for (size_t r = 0; r < s->env.nregions; r++)
    for (size_t i = 0; i < 2; i++) gt_free(a->regions[r].squares[i]);
  gt_free(a->regions);
  gt_free(a->counts);
  gt_free(a->grads.data);
}

/* All regions go on from the same step, of whose successor none has told. */
static gt_status stages_state(gt_sync *s, gt_state_way way) {
  stages *a = (stages *)s;
  const gt_state_field applied = {"applied", GT_TYPE_I64, &a->applied, 1};
  GT_TRY(gt_state_fields(way, "sync/", &applied, 1));
  if (a->applied < 0 || a->applied > INT64_MAX / 2)
    return GT_FAIL(GT_ERR_CKPT, "sync/applied is %lld, which is no number of steps",
                   (long long)a->applied);
  for (size_t r = 0; way.from && r < s->env.nregions; r++) {
    a->regions[r].told = a->applied;
    a->regions[r].got = 0;
  }
  return GT_OK;
}

const gt_sync_ops gt_sync_stages = {
    .name = "stages",
    .source = "regions of one pipeline",
    .waits = true,
    .between_steps = true,
    .lockstep = true,
    .size = sizeof(stages),
    .open = stages_open,
    .close = stages_close,
    .on_gradient = stages_on_gradient,
    .on_spoilt = stages_on_spoilt,
    .on_control = stages_on_control,
    .check_control = stages_check_control,
    .on_numbers = stages_on_numbers,
    .check_numbers = stages_check_numbers,
    .state = stages_state,
};
