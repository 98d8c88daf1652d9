/* setup: one rank's view of a run before its work begins, the same for a training run and for a
   probe: job, role, machine, links, data, model, run directory.  Layer 7.  Over MPI: what one rank
   finds out is agreed on before the next step begins. */
#ifndef GEOTRAIN_SETUP_H
#define GEOTRAIN_SETUP_H

#include "geotrain/ckpt.h"
#include "geotrain/data.h"
#include "geotrain/job.h"
#include "geotrain/net.h"
#include "geotrain/nn.h"
#include "geotrain/record.h"
#include "geotrain/setup_options.h"
#include "geotrain/wan.h"

#define GT_MAX_ROUNDS 64           /* that are looked at in a run directory: the newest */
#define GT_SETUP_ISA  ((size_t)32) /* characters of a region's instruction sets */

/* What a file of a round is worth to a run that is to go on: the worst of the regions' counts. */
typedef enum {
  GT_ROUND_SOUND,
  GT_ROUND_DOUBTFUL,   /* finite, but its region's last gradients all were not */
  GT_ROUND_NOT_FINITE, /* a parameter, or what else is kept in float32 */
  GT_ROUND_DAMAGED
} gt_round_verdict;

/* A file of a round in memory, so that it is read once however often it is asked for. */
typedef struct {
  int64_t round; /* 0: none */
  gt_round_verdict verdict;
  gt_ckpt_info info;
  gt_state state;              /* both are empty where it is damaged */
  char why[GT_ERROR_TEXT_MAX]; /* it is not sound */
} gt_kept;

/* What one rank knows of its run.  Made by gt_setup_open; gt_setup_close frees all that it points to,
   but for what is said to be borrowed. */
typedef struct {
  const gt_setup_options *options; /* borrowed */
  gt_job *job;
  char *resolved; /* job as YAML */
  char run_dir[1024];
  gt_roles roles;
  const char *region; /* this rank's region's name */
  double start_limit_s;
  double end_limit_s; /* for the other ranks to come to the end: one may be in a step, and send then what is under way */
  gt_dataset *dataset;
  gt_dataset_info data;
  uint32_t *part; /* the region's samples */
  size_t npart;
  size_t tester; /* the first region with test samples scores the mean; nregions: none has any */
  gt_graph *graph;
  char (*isas)[GT_SETUP_ISA]; /* of each region's ranks: "avx2", or "avx2+avx512" */
  gt_precision precision;     /* that is computed in; on a PS: by its first worker */
  gt_build_texts *builds;     /* of each region's workers, and behind them of all */
  gt_choices choices;         /* of this rank's machine; empty: by rule */
  char *choices_text;         /* of all machines of the region; NULL: by rule */
  char **all_choices;         /* on a PS: of every region */
  const char *choices_how;    /* "rule", "measured", "checkpoint", "file" */
  size_t batch;               /* samples of a training batch */
  size_t batch_max;           /* samples at a time, in training or evaluation */
  gt_order order;
  gt_links *links;
  gt_job_prices prices; /* the lead's; elsewhere nothing is known */
  gt_kept kept;         /* a PS's, until it has gone on from it */
  bool init_missing;    /* train.init could not be read, and the run has checkpoints of its own */
} gt_run;

/* From options to a rank that knows its role, data and model.  Collective over the world, after
   gt_net_start; every rank gets the same status.  GT_ERR_JOB: ranks, jobs, model or options do not
   fit together; GT_ERR_DATA: the data; GT_ERR_CKPT: train.init, or the run directory, which is the
   last to be opened (made where it is missing).  After an error what was settled before it stays in
   *run, so that a probe can measure the rest; the caller closes it in any case. */
gt_status gt_setup_open(gt_run *run, const gt_setup_options *options);
/* Also of one that is all 0 with roles of MPI_COMM_NULL.  Collective over the world. */
void gt_setup_close(gt_run *run);

/* What roles are made of: one a region, in the job's order.  Names and hosts stay the job's; the
   caller frees the array.  Local. */
gt_region_plan *gt_setup_regions(const gt_job *job);
/* Makes those folders of the path that are missing.  False: `part` (size characters, more than the
   path has) names the one that cannot be made, errno says why.  Local. */
bool gt_setup_make_folders(const char *path, char *part, size_t size);
/* The region's gateway as the job says; payload_max: bytes of the largest message.  Collective over
   the PS ranks; the caller closes it. */
gt_gateway *gt_setup_gateway(const gt_run *run, size_t payload_max, const gt_gateway_events *events);
/* The first n of the region's own training samples, augmented as the job says, in memory; the
   caller closes *out, after an error too.  GT_ERR_DATA: they cannot be read; GT_ERR_JOB: they
   cannot be augmented.  Local. */
gt_status gt_setup_loader(const gt_run *run, size_t n, gt_loader **out);

/* ---- what a file of a round holds ------------------------------------------------------------ */

/* Setup reads in the round that a run goes on from how its products were computed; training then
   takes the rest from the same file. */

/* Reads the region's file of a round into run->kept, unless it is there.  On a PS; local. */
gt_round_verdict gt_setup_read_round(gt_run *run, int64_t round);
void gt_setup_close_kept(gt_kept *kept);
/* The first float32 item of the list that is not finite everywhere; NULL: all are.  Local. */
const char *gt_setup_spoilt(const gt_state *state);
/* Adds how images are normalised, data/mean and data/std, to what a file with a model holds.
   Local. */
void gt_setup_save_data(const gt_run *run, gt_state *state);
/* GT_ERR_CKPT: a file's model was trained on images normalised otherwise.  Local. */
gt_status gt_setup_check_data(const gt_run *run, const gt_state *state);

#endif
