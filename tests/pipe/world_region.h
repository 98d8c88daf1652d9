/* Regions that run a pipeline together, in one process and simulated time.  Buffers hold a number
   for each sample, which says what it is; readers check it, so that a buffer that is reused too
   soon is found. */
#pragma once

#include "geotrain/base_heap.h"
#include "geotrain/pipe_region.h"

#define R_STAGES_MAX   8
#define R_REGIONS_MAX  8
#define R_WORKERS_MAX  24 /* of a region */
#define R_SAMPLES_MAX  24
#define R_PIECES_MAX   4
#define R_FORWARD_MOST 20

/* Everything is borrowed. */
typedef struct {
  const gt_pipe_layout *layout;
  /* Times, hops, links and updates are those of gt_pipe_evaluate; NULL: drawn at random. */
  const gt_pipe_problem *problem;
  uint64_t seed;
  /* It is said late that packets have left: after they have arrived. */
  bool late;
  const size_t *steps; /* micro-batches of each evaluation; 0: a training step */
  size_t nsteps;
} r_spec;

typedef struct {
  size_t stage, replica, region, number; /* number: in its region */
  size_t share;                          /* samples */
  uint64_t *out, *landing;               /* of each buffer and sample */
  uint64_t *slots;                       /* 0: free; else what it holds */
  size_t used, peak;                     /* slots */
  bool ordered, busy;
  gt_pipe_order order;
  gt_pipe_input pieces[R_PIECES_MAX];
  size_t step, counter; /* passes that have begun in the step */
  uint32_t next[2];     /* of each chunk, in an evaluation */
  bool weighed[2];
} r_worker;

typedef struct {
  gt_pipe_packet packet;
  size_t from, to; /* regions */
  uint64_t samples[R_SAMPLES_MAX];
} r_packet;

typedef struct r_world r_world;
typedef struct {
  r_world *world;
  size_t number;
  gt_pipe_region *region;
  r_worker *workers[R_WORKERS_MAX];
} r_region;

struct r_world {
  r_spec spec;
  r_region regions[R_REGIONS_MAX];
  r_worker *workers; /* of all stages, in their order */
  size_t nworkers;
  r_packet *packets;
  size_t npackets, capacity, arriving;
  gt_heap events;
  uint64_t nevents;
  gt_ns now;
  gt_rng rng;
  gt_link_state *links;
  gt_access *up;
  gt_landing *down;
  /* Where regions make steps together: stages that have ended the step, and when those of a region
     have. */
  size_t ended;
  gt_ns ended_at[R_REGIONS_MAX];
  gt_ns *finish; /* of each step: the last update */
  gt_ns makespan;
  gt_pipe_time **times; /* of each stage: passes of the first step, of its first worker */
  uint64_t trace;       /* hash of all orders and packets */
  /* Passes; packets; those of a step that the receiver had not begun; buffers of one kind that were
     all in use at some time; passes that waited for a buffer. */
  size_t passes, sent, early, full_out, full_landing, stalls;
};

void r_open(r_world *world, const r_spec *spec);
/* Runs all steps, and fails the test at the first thing that is wrong. */
void r_run(r_world *world);
void r_close(r_world *world);
