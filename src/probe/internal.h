/* Private to the probe: the measurements of each rank, and the functions that make them.
   Everything in these structs is sent to rank 0 as it lies in memory. */
#pragma once

#include <math.h>
#include <sched.h>
#include <stdio.h>

#include "geotrain/nn_span.h"
#include "geotrain/pipe_groups.h"
#include "geotrain/probe.h"
#include "geotrain/record_table.h"
#include "geotrain/setup.h"
#include "geotrain/store.h"

/* long, because the probe of many regions takes its time; a lost rank aborts the job by itself */
#define GT_PROBE_MEET_S 3600.0

/* The message sizes to which the transport term is fitted. */
#define GT_PROBE_SIZES 7
extern const size_t gt_probe_sizes[GT_PROBE_SIZES];
#define GT_PROBE_FRESH ((size_t)512 << 10)

/* The passes of a sample through operations that a pipeline cannot cut apart. */
typedef struct {
  double forward_s, input_s, weight_s;
} gt_probe_passes;

/* The bits that a stream carried until its answer, and its time without the round trip of the
   answer. */
typedef struct {
  double bits, s;
} gt_probe_stream;
/* The reference tasks behind a device's power. */
enum {
  GT_PROBE_PRODUCT,
  GT_PROBE_PRODUCT_BF16,
  GT_PROBE_CONVOLUTION,
  GT_PROBE_ATTENTION,
  GT_PROBE_CELL,
  GT_PROBE_TASKS
};
#define GT_PROBE_BOOT_ID 40 /* characters */

#define GT_PROBE_ROUNDS 5 /* rounds of streams in every direction at once */

/* One direction between two regions, measured by its sender.  Times are one-way; 0: not
   measured. */
typedef struct {
  double latency_s, bandwidth_bps; /* with nothing else on the two regions' links */
  /* with every direction in use at once; for the rate see gt_probe_access */
  double busy_latency_s, busy_bandwidth_bps;
  gt_probe_stream together[GT_PROBE_ROUNDS]; /* after the first rounds they also end together */
  double pause_s, time_s[GT_PROBE_SIZES];    /* of a message after a pause */
  /* for messages of the model's size, every direction at once */
  double sustained_bps;
  double fresh_s; /* the first message of GT_PROBE_FRESH bytes on the connection */
  /* The fit: parameters with which gt_wire_send gives these times. */
  double fit_bandwidth_bps, fit_latency_s, setup_rtts, eager_bytes, window_bytes, idle_s;
  /* fit_error: root mean square of relative errors */
  double predicted_s[GT_PROBE_SIZES], fresh_predicted_s, fit_error;
  double profile_bps; /* the rate in the profile (gt_probe_access) */
  /* for a fleet: of messages of GT_PIPE_SMALL_BYTES and GT_PIPE_LARGE_BYTES, one after the other */
  double small_s, large_s;
} gt_probe_link;

/* A rank. */
typedef struct {
  int32_t region, region_rank, pid;
  int32_t cores;                  /* available to this process */
  int32_t machine_cores, threads; /* of the whole machine; of OpenBLAS in this process */
  int32_t blas_pinned, plane_shared;
  char host[64], kernel[GT_PROBE_BOOT_ID];
  /* environment: settings that reduce performance */
  char mpi[64], pml[32], btl[160], single_copy[32], blas_core[32], environment[200];
  char address[200]; /* PS: interface, address and how it was chosen */
  int32_t address_excluded;
  /* Of a worker. rate_error: standard error of samples_per_s, relative; resume_s: negative if steps
     after a pause took less. */
  double samples_per_s, rate_error, eval_samples_per_s, local_s, resume_s;
  /* number of steps behind these means; paused: behind resume_s */
  int64_t steps, paused;
  double update_s, apply_s, encode_s;       /* of a PS */
  gt_job_codec_cost codecs[GT_CODEC_KINDS]; /* of a PS; 0: the job does not use this one */
  double inside_latency_s, inside_bandwidth_bps;
  /* for a fleet; memory_bytes: available on the host */
  double task_s[GT_PROBE_TASKS], power, memory_bytes;
  double checkpoint_s, checkpoint_bytes;
  char checkpoint_error[400];
} gt_probe_rank;

typedef struct {
  const gt_probe_options *options;
  gt_setup_options setup;
  gt_run run;
  gt_peers *world; /* all ranks of this MPI job */
  gt_reach reach;
  gt_probe_rank own;
  gt_probe_link *links;    /* nregions: the directions from this PS */
  gt_pipe_link *pairs;     /* to the workers of the region, by number; NULL: no fleet is measured */
  gt_probe_passes *passes; /* of this rank, noperations; NULL: not measured */
  size_t noperations;
  char operations_error[GT_ERROR_TEXT_MAX]; /* the reason, if they are NULL */
  double limit_s;                           /* for any wait in the probe */
  int kept; /* length of the part of the checkpoint folder's path that existed before */
  char data_error[GT_ERROR_TEXT_MAX], folder_error[GT_ERROR_TEXT_MAX];
  /* on rank 0 */
  gt_probe_rank *ranks;     /* all of the world */
  gt_probe_link *all_links; /* nregions x nregions, row: sender */
  /* world_size x world_size, row: pairs of a rank; NULL: no fleet */
  gt_pipe_link *all_pairs;
  gt_probe_passes *all_passes; /* world_size x noperations, row: rank */
  double *access_bps;          /* nregions: rate shared by a region's links; 0: none detected */
} gt_probe_state;

/* Sums over a worker's steps of one kind. */
typedef struct {
  double compute_s, compute_s2, wait_s, samples; /* compute_s2: sum of squares */
  int64_t steps;
} gt_probe_tally;

/* ranks.c: a barrier at which ranks sleep while they wait.  Collective over the world. */
void gt_probe_meet(gt_probe_state *p, const char *what);
/* On rank 0: return the PS of a region, and the i-th worker of a region (NULL: none).  Local. */
const gt_probe_rank *gt_probe_ps(const gt_probe_state *p, size_t region);
const gt_probe_rank *gt_probe_worker(const gt_probe_state *p, size_t region, int worker);
/* Returns the median; 0 for no values.  Sorts the values.  Local. */
double gt_probe_median(double *values, size_t n);

/* host.c: the environment of this rank.  Collective over the PS ranks (addresses). */
void gt_probe_host(gt_probe_state *p);
/* codec.c: measures the codecs of the job and of plan.codecs at this PS.  GT_ERR_JOB: their options
   are invalid.  Local. */
gt_status gt_probe_codecs(gt_probe_state *p);

/* compute.c: collective over the world. */
void gt_probe_compute(gt_probe_state *p);
/* compute.c, local.  Returns the kind of a worker's step with this number (from 0): not measured
   (caches are cold), in direct succession, or after a pause. */
typedef enum { GT_PROBE_COLD, GT_PROBE_WARM, GT_PROBE_PAUSED, GT_PROBE_PHASES } gt_probe_phase;
gt_probe_phase gt_probe_phase_of(int64_t step);
/* True if the worker pauses before this step. */
bool gt_probe_pause_before(int64_t step);
/* True if a worker has made enough steps, given their number and the seconds since the first. */
bool gt_probe_enough(int64_t steps, double passed_s);
/* links.c: collective over the world.  First messages come before anything else large is sent
   between the regions, as a connection's congestion window only grows at first. */
void gt_probe_first_messages(gt_probe_state *p);
void gt_probe_links(gt_probe_state *p);
/* sites.c: between regions that are MPI jobs of their own; prints the figures and GO or NO-GO at
   each site.  Collective over all ranks of the run; GT_ERR_NOGO. */
gt_status gt_probe_sites(gt_probe_state *p);
/* store.c: a store as one site uses it.  0: not measured, and fault says why. */
typedef struct {
  double request_s, up_bps, down_bps; /* request_s: a look at an object that is not there */
  char fault[400];
} gt_probe_store;
/* Local; on a PS rank.  Errors as gt_objects_open. */
gt_status gt_probe_store_measure(const gt_run *run, gt_probe_store *own);
/* all: a row for each region. */
void gt_probe_store_print(const gt_job *job, const gt_probe_store *all);
/* Writes a catalogue of rates; GT_ERR_CKPT names the file.  check: GT_ERR_JOB if there can be
   none. */
gt_status gt_probe_store_check(const gt_job *job, const char *out);
gt_status gt_probe_store_rates(const gt_job *job, const gt_probe_store *all, const char *out);
/* inside.c: messages between the PS and the workers of a region, one region after another.
   Collective over the world. */
void gt_probe_inside(gt_probe_state *p);
/* fleet.c: power and memory of the workers, and the messages between those of a region.  Collective
   over the world. */
void gt_probe_fleet(gt_probe_state *p);
/* fleet.c: the cores on which this rank can run; it uses them in turn.  Ranks of a host with
   consecutive `places` have different cores, if it has enough.  Local; without the right to choose
   a core they do nothing. */
typedef struct {
  cpu_set_t allowed;
  size_t n, first;
} gt_probe_cores;
void gt_probe_cores_open(gt_probe_cores *cores, size_t place);
void gt_probe_cores_take(const gt_probe_cores *cores, size_t turn);
void gt_probe_cores_close(const gt_probe_cores *cores); /* allows all of them again */

/* fleet.c: times of the reference tasks on this rank, s each: the mean of 12 medians, each of
   the repeats in about 50 ms a task on one of its cores; place: as above.  Without bf16 its task is
   computed in float32, as training would.  Local. */
void gt_probe_reference(double times_s[GT_PROBE_TASKS], size_t place);
extern const char *const gt_probe_tasks[GT_PROBE_TASKS]; /* names */

/* fleet.c: the runs of operations that a pipeline can cut apart; returns their number.
   `spans` (as many) may be NULL.  Local. */
size_t gt_probe_spans(const gt_graph *graph, gt_span *spans);
/* Times the passes of each of the graph's n spans, per sample of the batch, the best of several
   turns within 2 s; the graph has one slot or more, and is prepared for the batch.  Local. */
void gt_probe_passes_of(gt_graph *graph, const gt_span *spans, size_t n,
                        const gt_micro_batch *batch, gt_probe_passes *passes);
/* In a world of more ranks, one worker per host stands for all of them in the links. */
#define GT_PROBE_ALL_PAIRS 64
/* links.c: the partner of `self` in this round of a tournament of n (circle method); n: none.  Each
   pair meets once in n - 1 rounds, or in n rounds if n is odd.  Local. */
size_t gt_probe_partner(size_t n, size_t round, size_t self);
/* inside.c: finds the worker that represents each of n workers of a region in the links: itself, if
   `all`, else the first one on the same host.  `hosts`: boot ids.  Local. */
void gt_probe_points(const char (*hosts)[GT_PROBE_BOOT_ID], size_t n, bool all, size_t *point);
/* Representatives meet in pairs, as in a tournament: the number of rounds, and the partner of
   `self` in a round; n: none.  Local. */
size_t gt_probe_point_rounds(const size_t *point, size_t n);
size_t gt_probe_point_partner(const size_t *point, size_t n, size_t round, size_t self);
/* Returns the first of the others that `first` represents; n: none. */
size_t gt_probe_point_second(const size_t *point, size_t n, size_t first);
/* inside.c: between the workers of a region, one region after another; writes p->pairs.  Collective
   over the world. */
void gt_probe_pairs(gt_probe_state *p);
/* fit.c: local. */
void gt_probe_fit(gt_probe_link *link);
/* compute.c, local.  Computes a worker's figures from its steps: in direct succession (warm), and
   after a pause. */
void gt_probe_tell(gt_probe_rank *own, const gt_probe_tally *warm, const gt_probe_tally *paused);
/* access.c: local.  For n x n links (row: sender).  Reads bandwidth_bps and together, and the fit
   and sustained_bps if available; writes busy_bandwidth_bps, profile_bps and n accesses. */
void gt_probe_access(gt_probe_link *links, size_t n, double *access_bps);
/* disk.c: before the run directory is created; after that; on all PS ranks at once.  Local. */
void gt_probe_disk_before(gt_probe_state *p);
void gt_probe_disk(gt_probe_state *p);
void gt_probe_disk_after(gt_probe_state *p);
/* A column of numbers in a table for users: title, unit, further members. */
#define NUMBER(name, ...)                                                                          \
  { .title = name, .format = GT_COLUMN_DIGITS, .digits = 3, .unit = __VA_ARGS__ }
/* A cell of a table; 0: not measured. */
static inline gt_cell gt_probe_measured(double value) {
  return gt_cell_number(value > 0 ? value : NAN);
}
/* report.c: on rank 0.  Text for users; reasons and warnings are one per line. */
void gt_probe_report(const gt_probe_state *p, FILE *to);
void gt_probe_warnings(const gt_probe_state *p, FILE *to);
/* profile_fleet.c: prints the table of a measured fleet for users, and its section of the
   profile. */
void gt_probe_report_fleet(const gt_probe_state *p, FILE *to);
void gt_probe_put_fleet(FILE *f, const gt_probe_state *p);
/* Returns the number of reasons. */
size_t gt_probe_reasons(const gt_probe_state *p, FILE *to);
/* profile.c: on rank 0.  GT_ERR_CKPT names the file and the system's reason. */
gt_status gt_probe_profile(const gt_probe_state *p, const char *path);
