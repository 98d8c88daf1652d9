/* central: what is saved: the parts of the own contribution that have not been sent, an answer of
   which only a part is here, and the parts that wait for others'. */
#include <stdio.h>
#include <string.h>

#include "central.h"

static void name_part(char *text, size_t size, const char *prefix, int64_t i) {
  snprintf(text, size, "%spart/%lld/", prefix, (long long)i);
}

/* Parts that have been sent are in messages. */
void gt_central_save(gt_allreduce *r, const char *prefix, gt_state *state) {
  gt_central *t = (gt_central *)r;
  char part[96];
  gt_state_add(state, prefix, "counts", GT_TYPE_I64, &t->n, GT_CENTRAL_COUNTS);
  for (int64_t i = 0; i < t->n.given; i++) {
    gt_own_part *p = &t->parts[i];
    name_part(part, sizeof part, prefix, i);
    gt_state_add(state, part, "about", GT_TYPE_I64, p->about, 2);
    if (i >= t->n.sent) gt_state_add(state, part, "data", GT_TYPE_F32, p->x.data, p->x.n);
  }
  gt_state_add(state, prefix, "weight", GT_TYPE_F64, &t->weight, 1);
  if (t->n.got > 0) gt_state_add(state, prefix, "mean", GT_TYPE_F32, r->mean.data, r->mean.n);
  gt_state_add(state, prefix, "here", GT_TYPE_I64, t->here, r->base.x->spec.nregions);
  gt_state_add(state, prefix, "whole", GT_TYPE_I64, t->whole, r->base.x->spec.nregions);
  gt_inbox_save(&t->rounds.inbox, r->base.spec.owner, state);
}

static gt_status load_parts(gt_central *t, const char *prefix, const gt_state *state) {
  const int64_t given = t->n.given;
  char part[96];
  t->n.given = 0;
  for (int64_t i = 0; i < given; i++) {
    gt_own_part *p = gt_central_add_part(t);
    name_part(part, sizeof part, prefix, i);
    GT_TRY(gt_state_get(state, part, "about", GT_TYPE_I64, p->about, 2));
    if (i >= t->n.sent && p->x.data)
      GT_TRY(gt_state_get(state, part, "data", GT_TYPE_F32, p->x.data, p->x.n));
  }
  return GT_OK;
}

static gt_status load_counts(gt_central *t, const char *prefix, const gt_state *state) {
  int64_t all[GT_CENTRAL_COUNTS];
  bool fit = true;
  GT_TRY(gt_state_get(state, prefix, "counts", GT_TYPE_I64, all, GT_CENTRAL_COUNTS));
  memcpy(&t->n, all, sizeof all);
  for (size_t i = 0; i < GT_CENTRAL_COUNTS; i++) fit &= all[i] >= 0 && all[i] <= GT_CENTRAL_MOST;
  if (fit && t->n.sent <= t->n.posts && t->n.got <= t->n.copies &&
      (t->n.given == 0 || t->n.posts == 0 || t->n.posts == t->n.given))
    return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 "state \"%scounts\" has %lld parts, %lld of %lld messages sent and %lld of %lld "
                 "taken, which cannot be",
                 prefix, (long long)t->n.given, (long long)t->n.sent, (long long)t->n.posts,
                 (long long)t->n.got, (long long)t->n.copies);
}

gt_status gt_central_load(gt_allreduce *r, const char *prefix, const gt_state *state) {
  gt_central *t = (gt_central *)r;
  const size_t n = r->base.x->spec.nregions;
  GT_TRY(load_counts(t, prefix, state));
  GT_TRY(load_parts(t, prefix, state));
  GT_TRY(gt_state_get(state, prefix, "weight", GT_TYPE_F64, &t->weight, 1));
  if (t->n.got > 0 && r->mean.data)
    GT_TRY(gt_state_get(state, prefix, "mean", GT_TYPE_F32, r->mean.data, r->mean.n));
  GT_TRY(gt_state_get(state, prefix, "here", GT_TYPE_I64, t->here, n));
  GT_TRY(gt_state_get(state, prefix, "whole", GT_TYPE_I64, t->whole, n));
  for (size_t i = 0; i < n; i++) t->partial[i] = t->here[i] < t->whole[i];
  return gt_inbox_load(&t->rounds.inbox, r->base.spec.owner, state);
}
