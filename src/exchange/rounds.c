/* Membership of a round follows from the messages that have arrived.  A region does not take part
   if its next message is of a later round, or if it is done and has no message.  A region that is
   done still applies the means of later rounds.  If its training is longer after a resume, it takes
   part again after the newest round that any region had applied at the resume. */
#include "rounds.h"

void gt_rounds_again(gt_allreduce *r) {
  ((gt_rounds *)r)->clear = 0;
}

typedef enum { OUT, IN, AWAITED } part;

/* Returns the part of the region in the next round. */
static part part_of(const gt_rounds *t, size_t region) {
  const gt_allreduce *r = &t->base;
  const int64_t round = r->applied + 1;
  if (region == r->base.x->spec.self) {
    if (round <= r->own) return r->posted >= round ? IN : AWAITED;
    return (r->over && !r->rejoins) || round <= gt_allreduce_floor(r, r->rejoins) ? OUT : AWAITED;
  }
  const gt_inbox_slot *slot = gt_inbox_front(&t->inbox, region);
  /* After a resume, all earlier messages have arrived, and new messages are of rounds after the
     floor. */
  const int64_t floor = r->base.x->late[region] ? gt_allreduce_floor(r, true) : r->floor;
  if (!slot) return r->base.x->done[region] || round <= floor ? OUT : AWAITED;
  if (slot->value < round)
    gt_bug("region %zu's oldest message is of round %lld; round %lld is next", region,
           (long long)slot->value, (long long)round);
  if (slot->value > round) return OUT;
  return t->partial && t->partial[region] ? AWAITED : IN;
}

bool gt_rounds_takes(const gt_rounds *t, size_t region) {
  return part_of(t, region) == IN;
}

/* The part of a region is final until the round is applied or a peer joins.  So each region is
   examined once per round, not once per message. */
bool gt_rounds_complete(gt_rounds *t) {
  const size_t n = t->base.base.x->spec.nregions;
  if (t->base.unheard) return false;
  while (t->clear < n && part_of(t, t->clear) != AWAITED) t->clear++;
  if (t->clear < n) return false;
  for (size_t i = 0; i < n; i++)
    if (gt_rounds_takes(t, i)) return true;
  return false;
}

bool gt_rounds_abstains(const gt_rounds *t, size_t region) {
  const gt_collective *c = &t->base.base;
  if (!c->spec.abstains || !gt_rounds_takes(t, region)) return false;
  return region == c->x->spec.self ? t->base.abstained != 0
                                   : gt_inbox_front(&t->inbox, region)->floats == 0;
}

double gt_rounds_weight(const gt_rounds *t) {
  const gt_exchange_spec *spec = &t->base.base.x->spec;
  double total = 0;
  for (size_t i = 0; i < spec->nregions; i++)
    if (gt_rounds_takes(t, i) && !gt_rounds_abstains(t, i)) total += spec->weights[i];
  return total;
}
