/* Who takes part in a round is seen from what arrives: a region whose next message is of a later
   round, or that is done and has none, does not.  A region that is done follows: it applies what
   the others' rounds give.  One whose training was made longer takes part again from the round
   after the newest that anyone had applied when all resumed. */
#include "rounds.h"

void gt_rounds_again(gt_allreduce *r) {
  ((gt_rounds *)r)->clear = 0;
}

typedef enum { OUT, IN, AWAITED } part;

/* Whether the region takes part in the round that is next. */
static part part_of(const gt_rounds *t, size_t region) {
  const gt_allreduce *r = &t->base;
  const int64_t round = r->applied + 1;
  if (region == r->base.x->spec.self) {
    if (round <= r->own) return r->posted >= round ? IN : AWAITED;
    return (r->over && !r->rejoins) || round <= gt_allreduce_floor(r) ? OUT : AWAITED;
  }
  const gt_inbox_slot *slot = gt_inbox_front(&t->inbox, region);
  /* After a resume, all earlier messages are here, and later ones are of rounds after the floor. */
  const int64_t floor = r->base.x->late[region] ? gt_allreduce_floor(r) : r->floor;
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

/* What is known of a region stays so until the round is applied, but for peers' joining: a thousand
   messages look at a thousand regions once, not each. */
bool gt_rounds_complete(gt_rounds *t) {
  const size_t n = t->base.base.x->spec.nregions;
  if (t->base.unheard) return false;
  while (t->clear < n && part_of(t, t->clear) != AWAITED) t->clear++;
  if (t->clear < n) return false;
  for (size_t i = 0; i < n; i++)
    if (gt_rounds_takes(t, i)) return true;
  return false;
}

double gt_rounds_weight(const gt_rounds *t) {
  const gt_exchange_spec *spec = &t->base.base.x->spec;
  double total = 0;
  for (size_t i = 0; i < spec->nregions; i++)
    if (gt_rounds_takes(t, i)) total += spec->weights[i];
  return total;
}
