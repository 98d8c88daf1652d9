/* Measures links over the transport of training: the gateway, emulated if the job says so.  Clocks
   of hosts are never compared: times are round trips minus the one-way time of a 64-byte answer.
   Regions meet in pairs as in a round-robin tournament: while one direction of a pair is measured,
   no other link of the two regions is in use. */
#include "fleet.h"

size_t gt_probe_partner(size_t n, size_t round, size_t self) {
  size_t even = n + n % 2, last = even - 1, other;
  if (self == last)
    other = round;
  else if (self == round)
    other = last;
  else
    other = (2 * round + last - self) % last;
  return other < n ? other : n;
}

/* Each direction in its turn. */
static void in_turns(gt_prober *b, void (*measure)(gt_prober *b, size_t peer)) {
  for (size_t round = 0; round + 1 < b->n + b->n % 2; round++) {
    size_t peer = gt_probe_partner(b->n, round, b->self);
    for (int half = 0; half < 2; half++) {
      gt_prober_meet(b);
      if (peer < b->n && (b->self < peer) == (half == 0)) measure(b, peer);
    }
  }
  gt_prober_meet(b);
}

static void first_messages(gt_probe_state *p) {
  gt_prober b;
  gt_prober_open(&b, p);
  in_turns(&b, gt_probe_first);
  gt_prober_close(&b);
}

static void probe_ps(gt_probe_state *p) {
  gt_prober b;
  gt_prober_open(&b, p);
  in_turns(&b, gt_probe_alone);
  gt_probe_at_once(&b);
  if (p->options->fleet) in_turns(&b, gt_probe_direction);
  gt_prober_close(&b);
}

void gt_probe_first_messages(gt_probe_state *p) {
  p->links = GT_NEW_ARRAY(gt_probe_link, p->run.job->nregions);
  if (p->run.roles.is_ps) first_messages(p);
  gt_probe_meet(p, "the first messages between the regions");
}

void gt_probe_links(gt_probe_state *p) {
  if (p->run.roles.is_ps) probe_ps(p);
  gt_probe_meet(p, "the measurement of the links");
}
