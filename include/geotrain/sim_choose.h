/* sim_choose: chooses the topology of a job's exchange, when sync.topology is auto or tree: the one
   with the shortest rounds in simulation (docs/topologies.md).  Layer 8.  Local. */
#ifndef GEOTRAIN_SIM_CHOOSE_H
#define GEOTRAIN_SIM_CHOOSE_H

#include "geotrain/exchange.h"
#include "geotrain/job.h"

/* Number of topologies to choose from. */
#define GT_TOPOLOGY_KINDS ((size_t)GT_TOPOLOGY_AUTO)

/* The best candidate of a topology. */
typedef struct {
  gt_routes routes; /* owned */
  /* of a round (of an exchange, if no region waits for another); NaN: no candidate */
  double seconds;
} gt_topology_score;

typedef struct {
  gt_topology_score of[GT_TOPOLOGY_KINDS]; /* by topology */
  gt_topology best;                        /* the fastest one, the first of equals */
  /* Every hub, tree and ring was simulated, or is proven to be slower; else a better one can
     exist. */
  bool exact;
  /* seconds are from formulas: too many regions to simulate, or, for a tree, a pair of regions
     without latency */
  bool estimated;
} gt_topology_choice;

/* Chooses for messages of a model of this size: among all candidates, or, if sync.topology is tree,
   among trees, of which a hub is one.  Simulates consecutive rounds without computing between them,
   until they are steady, on the job's links (with jitter, loss, traces, transport and access,
   without outages), with the times of compute for update, apply and encode.  The same job gives the
   same choice.  links: of the job; NULL: creates them.  GT_ERR_JOB: of auto, a pair of regions has
   no latency.  The caller closes *out. */
gt_status gt_topology_choose(gt_topology_choice *out, const gt_job *job, const gt_links *links,
                             size_t parameters, size_t buffers);
void gt_topology_choice_close(gt_topology_choice *choice);
/* Writes "tree, 1.6 s a round; mesh 3.8 s, hub at oregon 3.9 s, ring 6.6 s". */
void gt_topology_choice_text(const gt_topology_choice *choice, const gt_job *job, char *text,
                             size_t size);

/* Finds the routes of the job: by its topology, chosen if that is auto or tree; of several replicas
   of a pipeline, for each place.  The caller closes them. */
gt_status gt_routes_of(gt_routes *out, const gt_job *job, const gt_links *links, size_t parameters,
                       size_t buffers);

#endif
