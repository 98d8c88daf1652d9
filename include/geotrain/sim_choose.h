/* sim_choose: chooses the topology of a job's exchange, when sync.topology is auto or tree: the one
   with the shortest rounds in simulation (docs/topologies.md).  Layer 8.  Local. */
#pragma once

#include "geotrain/exchange.h"
#include "geotrain/job.h"

/* Number of topologies to choose from. */
#define GT_TOPOLOGY_KINDS ((size_t)GT_TOPOLOGY_AUTO)

/* The best candidate of a topology. */
typedef struct {
  gt_routes routes; /* owned */
  /* time of a round, or of an exchange if the strategy never waits; NaN: no candidate */
  double seconds;
} gt_topology_score;

typedef struct {
  gt_topology_score of[GT_TOPOLOGY_KINDS]; /* by topology */
  gt_topology best;                        /* the fastest; the first among equals */
  /* True: every hub, tree and ring was simulated, or is proven to be slower.  False: a faster one
     can exist. */
  bool exact;
  /* True: `seconds` are from formulas, because the regions are too many to simulate or, for a tree,
     a pair of regions has no latency. */
  bool estimated;
} gt_topology_choice;

/* Sizes of a model, in floats. */
typedef struct {
  size_t parameters, buffers;
  const gt_view *tensors; /* of the parameters, for the codec; NULL: no codec */
  size_t ntensors;
} gt_model_sizes;

/* Chooses the topology for a model of this size, among all candidates or, if sync.topology is tree,
   among trees; a hub counts as a tree.  Simulates consecutive rounds without steps in between,
   until their time is steady.  Uses the job's links with jitter, loss, traces, transport and
   access, but without outages, and the job's codec, and its times for update, apply and encode.
   Topologies that the codec does not suit are no candidates.  The same job gives the same choice.
   links: of the job; NULL: creates them.  GT_ERR_JOB: with auto, a pair of regions has no latency.
   The caller closes *out. */
gt_status gt_topology_choose(gt_topology_choice *out, const gt_job *job, const gt_links *links,
                             const gt_model_sizes *sizes);
void gt_topology_choice_close(gt_topology_choice *choice);
/* Writes "tree, 1.6 s a round; mesh 3.8 s, hub at oregon 3.9 s, ring 6.6 s". */
void gt_topology_choice_text(const gt_topology_choice *choice, const gt_job *job, char *text,
                             size_t size);

/* Finds the routes of the job; chooses them if sync.topology is auto or tree.  With several
   replicas of a pipeline, finds routes among the replicas for each stage.  The caller closes
   *out. */
gt_status gt_routes_of(gt_routes *out, const gt_job *job, const gt_links *links,
                       const gt_model_sizes *sizes);
