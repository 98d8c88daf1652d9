/* central: the contribution of a region: the parts of its workers, each of which is a message. */
#include "central.h"

gt_own_part *gt_central_add_part(gt_central *t) {
  const gt_allreduce *r = &t->rounds.base;
  if ((size_t)t->n.given == t->nparts) {
    GT_GROW(t->parts, t->nparts, t->capacity, 4);
    float *data = gt_central_x(t)->spec.with_memory ? GT_NEW_ARRAY(float, r->a.n) : NULL;
    t->parts[t->nparts++].x = gt_vec_of(data, r->a.n);
  }
  return &t->parts[t->n.given++];
}

int64_t gt_central_samples(const gt_central *t) {
  int64_t sum = 0;
  for (int64_t i = 0; i < t->n.given; i++) sum += t->parts[i].about[1];
  if (t->n.given > 0) return sum;
  return t->rounds.base.samples > 0 ? t->rounds.base.samples : 1;
}

/* a and b are every worker's: the samples are divided among the messages. */
static int64_t samples_of_part(const gt_central *t, int64_t i) {
  if (t->n.given > 0) return t->parts[i].about[1];
  const int64_t all = gt_central_samples(t);
  return all * (i + 1) / t->n.posts - all * i / t->n.posts;
}

static void post_part(const gt_central *t, int64_t i) {
  const gt_allreduce *r = &t->rounds.base;
  const gt_exchange *x = gt_central_x(t);
  const bool given = t->n.given > 0;
  gt_message m = {.of = GT_BODY_OWN,
                  .value = (uint64_t)r->own,
                  .detail = (uint64_t)samples_of_part(t, i),
                  .route = {.origin = (uint16_t)x->spec.self,
                            .origin_rank = (uint16_t)(given ? t->parts[i].about[0] : i + 1),
                            .destination = (uint16_t)*gt_central_root(x),
                            .weight = (double)gt_central_samples(t)},
                  .to = gt_central_root(x),
                  .nto = 1};
  const gt_vec body = gt_exchange_fill(x, &m, r->base.n);
  if (given)
    gt_vec_copy(body, t->parts[i].x);
  else
    gt_allreduce_copy_own(r, body);
  gt_exchange_send(&r->base, &m);
}

/* Each message as soon as there is room for it: a resume may find more of them than the region has
   workers now. */
void gt_central_post_own(gt_central *t) {
  gt_allreduce *r = &t->rounds.base;
  gt_exchange *x = gt_central_x(t);
  if (t->n.posts == 0)
    t->n.posts = t->n.given > 0 ? t->n.given : (int64_t)gt_central_workers(x, x->spec.self);
  for (; t->n.sent < t->n.posts && gt_exchange_can_post(x, gt_central_root(x), 1, 1, r->base.n);
       t->n.sent++)
    post_part(t, t->n.sent);
  if (t->n.sent < t->n.posts) return;
  r->posted = r->own;
  r->samples = t->n.given = t->n.posts = t->n.sent = 0;
}
