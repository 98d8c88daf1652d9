/* central: what a message must be: a contribution's next part in the central region, the next copy
   of its answer elsewhere. */
#include "central.h"

static gt_status check_part(const gt_central *t, size_t from, const gt_frame_header *head) {
  const gt_frame_route *route = &head->route;
  const gt_inbox_slot *begun = gt_inbox_front(&t->rounds.inbox, from);
  const double left = route->weight - (double)t->here[from];
  if (head->kind != t->rounds.base.base.spec.kind)
    return GT_FAIL(GT_ERR_FAULT, "a contribution is of kind %u; %d is needed", head->kind,
                   (int)t->rounds.base.base.spec.kind);
  if (route->origin != from || route->origin_rank == 0 || route->destination_rank != 0)
    return GT_FAIL(GT_ERR_FAULT,
                   "a contribution is of rank %u of region %u; a worker of region %zu is needed",
                   route->origin_rank, route->origin, from);
  if (begun && !t->partial[from])
    return GT_FAIL(GT_ERR_FAULT, "a contribution comes before the last one was answered");
  if (!(route->weight >= 1 && route->weight <= 0x1p53) || !((double)head->detail <= left) ||
      (begun && (begun->value != (int64_t)head->value || route->weight != (double)t->whole[from])))
    return GT_FAIL(GT_ERR_FAULT,
                   "a part of round %lld is behind %llu of %g samples; %lld of %lld are here",
                   (long long)head->value, (unsigned long long)head->detail, route->weight,
                   (long long)t->here[from], (long long)t->whole[from]);
  return GT_OK;
}

static gt_status check_answer(const gt_central *t, size_t from, const gt_frame_header *head) {
  const gt_frame_route *route = &head->route;
  const gt_allreduce *r = &t->rounds.base;
  const gt_msg_kind kind = r->base.spec.answer ? r->base.spec.answer : r->base.spec.kind;
  const bool waits = gt_central_has_answer(t);
  const int64_t before = waits ? 0 : t->n.got, round = r->applied + 1 + waits;
  if (from != *gt_central_root(gt_central_x(t)) || head->kind != kind || route->origin != from ||
      route->origin_rank != 0)
    return GT_FAIL(GT_ERR_FAULT,
                   "data is of kind %u and region %zu; kind %d of region %zu is needed", head->kind,
                   from, (int)kind, *gt_central_root(gt_central_x(t)));
  if ((int64_t)head->value != round || route->destination != gt_central_x(t)->spec.self ||
      route->destination_rank != before + 1 || head->detail < route->destination_rank ||
      head->detail > GT_CENTRAL_MOST || (before > 0 && (int64_t)head->detail != t->n.copies))
    return GT_FAIL(GT_ERR_FAULT,
                   "the model of round %lld is for rank %u of %llu of region %u; that of round "
                   "%lld for rank %lld of region %zu is needed",
                   (long long)head->value, route->destination_rank,
                   (unsigned long long)head->detail, route->destination, (long long)round,
                   (long long)before + 1, gt_central_x(t)->spec.self);
  if (!(route->weight > 0 && route->weight < 2))
    return GT_FAIL(GT_ERR_FAULT, "a model has weight %g; above 0, and 1 at most, is needed",
                   route->weight);
  return GT_OK;
}

gt_status gt_central_check(const gt_allreduce *r, size_t from, const gt_frame_header *head) {
  const gt_central *t = (const gt_central *)r;
  GT_TRY(gt_central_is_root(r->base.x) ? check_part(t, from, head) : check_answer(t, from, head));
  return gt_exchange_check_part(head, 0, r->base.n);
}
