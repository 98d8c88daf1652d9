/* sim_choose: the topology by which the regions of a job exchange, when sync.topology is auto or
   tree: the one whose rounds take least in simulation (docs/topologies.md).  Layer 8.  Local. */
#ifndef GEOTRAIN_SIM_CHOOSE_H
#define GEOTRAIN_SIM_CHOOSE_H

#include "geotrain/exchange.h"
#include "geotrain/job.h"

/* The topologies to choose from: those of the list. */
#define GT_TOPOLOGY_KINDS ((size_t)GT_TOPOLOGY_AUTO)

/* The best candidate of a topology. */
typedef struct {
  gt_routes routes; /* owned */
  /* of a round (of an exchange, if no region waits for another); NaN: there is none */
  double seconds;
} gt_topology_score;

typedef struct {
  gt_topology_score of[GT_TOPOLOGY_KINDS]; /* by topology */
  gt_topology best;                        /* the one that takes least, the first of equals */
  /* Every hub, tree and ring was simulated, or is known to take longer; else there may be better
     ones. */
  bool exact;
  /* seconds are from formulas: there are too many regions to simulate, or, of a tree, a pair of
     regions has no latency */
  bool estimated;
} gt_topology_choice;

/* Chooses for the job with messages of a model of so many floats: among all candidates, or, if
   sync.topology is tree, among trees, of which a hub is one.  Simulates rounds that follow one
   another without computing between them, until they are steady, on the job's links (jitter, loss,
   traces, transport and access included, outages left out), with what compute says of update, apply
   and encode.  The same job gives the same choice.  links: of the job; NULL: they are made.
   GT_ERR_JOB: of auto, a pair of regions has no latency.  The caller closes *out. */
gt_status gt_topology_choose(gt_topology_choice *out, const gt_job *job, const gt_links *links,
                             size_t parameters, size_t buffers);
void gt_topology_choice_close(gt_topology_choice *choice);
/* Writes "tree, 1.6 s a round; mesh 3.8 s, hub at oregon 3.9 s, ring 6.6 s". */
void gt_topology_choice_text(const gt_topology_choice *choice, const gt_job *job, char *text,
                             size_t size);

/* Finds the topology of the job: what its topology says, chosen if that is auto or tree; of several
   replicas of a pipeline, for each place.  The caller closes it. */
gt_status gt_routes_of(gt_routes *out, const gt_job *job, const gt_links *links, size_t parameters,
                       size_t buffers);

#endif
