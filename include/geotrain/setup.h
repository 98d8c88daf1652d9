/* setup: one rank's view of a run before its work begins, for training and for a probe: job, role,
   machine, links, data, model, run directory.  Layer 8.  All ranks agree on the result of
   each step before the next begins. */
#pragma once

#include "geotrain/ckpt.h"
#include "geotrain/data.h"
#include "geotrain/job.h"
#include "geotrain/job_prices.h"
#include "geotrain/net.h"
#include "geotrain/nn.h"
#include "geotrain/pipe_job.h"
#include "geotrain/ps_of_job.h"
#include "geotrain/record.h"
#include "geotrain/setup_options.h"
#include "geotrain/wan.h"

/* newest rounds considered in a run directory; older ones are ignored */
#define GT_MAX_ROUNDS 64
#define GT_SETUP_ISA  ((size_t)32) /* size of the text of a region's instruction sets */

/* The verdict on a checkpoint file that a run could resume from.  For a round the worst verdict of
   any region counts. */
typedef enum {
  GT_ROUND_SOUND,
  GT_ROUND_DOUBTFUL,   /* finite, but the region's last gradients were not */
  GT_ROUND_NOT_FINITE, /* a parameter or another float32 value is not finite */
  GT_ROUND_DAMAGED
} gt_round_verdict;

/* A file of a round in memory, so that it is read only once. */
typedef struct {
  int64_t round; /* 0: none */
  gt_round_verdict verdict;
  gt_ckpt_info info;
  gt_state state;              /* both are empty if the file is damaged */
  char why[GT_ERROR_TEXT_MAX]; /* why the file is invalid */
} gt_kept;

/* The spans of a pipeline as ranges of floats: in the arrays of their region, and in those of the
   whole model. */
typedef struct {
  size_t span, own, whole, count;
} gt_part_range;
typedef struct {
  gt_part_range *ranges; /* in the model's order */
  size_t n, floats;
} gt_part_ranges;
/* A region's part of the model. */
typedef struct {
  gt_part_ranges params, buffers;
  bool again; /* an earlier region has the same part, in another replica of the pipeline */
} gt_region_part;

/* The pipeline of a run. */
typedef struct {
  gt_pipe_job *job;             /* of this region's replica */
  const gt_pipe_layout *layout; /* the job's */
  gt_region_part *parts;        /* of each region */
  gt_ps_stage *stages;          /* of this region */
  size_t nstages;
  gt_plane_part *workers; /* each worker's part in this region */
  gt_plane_range *ranges; /* after them */
  /* On a worker: its graph for each shape of micro-batches (gt_pipe_job_shape), of which the first
     is the run's; they share memory and are used one at a time. */
  gt_graph **graphs;
  float *memory;
  size_t ntest; /* test samples of the region with the first stage */
  size_t first; /* that region */
} gt_run_pipe;

/* One rank's state of a run.  Created by gt_setup_open; gt_setup_close frees everything except
   members marked as borrowed. */
typedef struct {
  const gt_setup_options *options; /* borrowed */
  gt_job *job;
  char *resolved; /* job as YAML */
  char run_dir[1024];
  gt_roles roles;
  const char *region; /* this rank's region's name */
  double start_limit_s;
  /* how long to wait for the other ranks at the end, which can still be in a step or sending */
  double end_limit_s;
  gt_dataset *dataset;
  gt_dataset_info data;
  uint32_t *part; /* the region's samples */
  size_t npart;
  gt_data_samples held; /* held back for validation */
  int64_t *merges;      /* of a text, in a region without data */
  size_t nmerges;
  char *class_names; /* for model files, as gt_class_names.text; NULL: the classes have no names */
  char *columns;     /* for model files: gt_dataset_columns; NULL: not from a table */
  size_t class_names_bytes, columns_bytes;
  gt_ps_tests *tests; /* nregions */
  gt_graph *graph;    /* this rank's part of the model */
  /* The whole model: `graph`; with a pipeline, another graph without memory.  Borrowed. */
  const gt_graph *model;
  gt_run_pipe *pipe; /* NULL: the job has no pipeline */
  /* per region, the instruction sets of its ranks: "avx2", or "avx2+avx512" */
  char (*isas)[GT_SETUP_ISA];
  gt_precision precision;  /* of the computation; on a PS: that of its first worker */
  gt_build_texts *builds;  /* of each region's workers; the last entry is for all regions */
  gt_choices choices;      /* for this rank's machine; empty: by rule */
  char *choices_text;      /* for all machines of the region; NULL: by rule */
  char **all_choices;      /* on a PS: of all regions */
  const char *choices_how; /* "rule", "measured", "checkpoint", "file" */
  size_t batch;            /* samples of a training batch */
  size_t batch_max;        /* largest number of samples at a time, in training or evaluation */
  gt_order order;
  gt_links *links;
  bool *late;            /* nregions: the run has begun without the region; NULL: with all */
  gt_endpoint *endpoint; /* on a PS, if regions are MPI jobs of their own; else NULL */
  gt_job_prices prices;  /* on the lead; unset on other ranks */
  gt_kept kept;          /* on a PS, until it has resumed from it */
  size_t resident_start; /* bytes of this process before it had a model */
  bool init_missing;     /* train.init could not be read, but the run has checkpoints */
} gt_run;

/* Sets up a rank from its options: role, data, model.  Collective over `world`, from gt_net_start;
   every rank gets the same status.  GT_ERR_JOB: ranks, jobs, model or options do not fit together;
   GT_ERR_DATA: the data; GT_ERR_CKPT: train.init, or the run directory, which is opened last (and
   created if missing).  After an error *run keeps everything set up so far, so that a probe can
   measure the rest; the caller closes it in any case. */
gt_status gt_setup_open(gt_run *run, gt_peers *world, const gt_setup_options *options);
/* Closes the run; also accepts a zeroed *run.  Collective over the
   world. */
void gt_setup_close(gt_run *run);

/* True if the run has begun without the region (sync.min_regions). */
static inline bool gt_setup_is_late(const gt_run *run, size_t region) {
  return run->late && run->late[region];
}
/* Returns the first region after region 0 that is not late; 0: none. */
size_t gt_setup_second(const gt_run *run);

/* Writes the run directory's job.yaml, which gt_job_load_run reads.  Regions can share the folder.
   Local; GT_ERR_CKPT. */
gt_status gt_setup_write_job(const gt_run *run);

/* ---- the pipeline, local ---- */

/* Returns the region with the last span of this region's replica. */
size_t gt_setup_judge(const gt_run_pipe *pipe);
/* True if the span ends with the loss, or (gt_setup_span_reads) needs the region's samples or their
   labels. */
bool gt_setup_span_judges(const gt_run_pipe *pipe, size_t span);
bool gt_setup_span_reads(const gt_run *run, size_t span);
/* Returns the index of a span among the spans of this region, as in gt_graph_spec.spans. */
size_t gt_setup_own_span(const gt_run *run, size_t span);

/* Returns the input for gt_roles_create: one entry per region, in the job's order.  Names and hosts
   are borrowed from the job; the caller frees the array.  Local. */
gt_region_plan *gt_setup_regions(const gt_job *job);
/* Checks the file of train.choices, if given: it can be read, holds choices, and is allowed for the
   job.  GT_ERR_JOB.  Local. */
gt_status gt_setup_check_choices(const gt_job *job);
/* Checks the file of train.init; NULL: no file.  Local; GT_ERR_CKPT. */
gt_status gt_setup_check_init(const char *path);
/* A region's certificate: its path ("": no TLS), and the end of its validity. */
typedef struct {
  char path[512], until[32];
  double left_s; /* from now; INFINITY: no TLS */
} gt_setup_cert;
/* Reads it.  GT_ERR_DATA.  Local. */
gt_status gt_setup_certificate(const gt_job *job, size_t region, gt_setup_cert *out);
/* Checks what one site of a job needs before it starts: the names of the addresses, and the
   certificate, which must be valid for slurm.time.  Errors as gt_tcp_open; GT_ERR_JOB also: the job
   cannot run as one MPI job per region.  Local. */
gt_status gt_setup_check_site(const gt_job *job, size_t region, gt_setup_cert *cert);
/* Creates the missing folders of the path.  False: `part` names the folder that cannot be created,
   and errno has the reason.  size: of `part`, larger than the length of the path.  Local. */
bool gt_setup_make_folders(const char *path, char *part, size_t size);
/* Checks the contents of the run directory: a run resumes only on request, and is never
   overwritten.  GT_ERR_JOB, or GT_ERR_CKPT without a checkpoint to resume from. */
gt_status gt_setup_check_folder(const gt_run *run);
/* Returns the spec of the run's graph, from which a probe builds another graph.  It borrows from
   the run.  Local; after gt_setup_open. */
gt_graph_spec gt_setup_graph_spec(const gt_run *run);
/* Opens the region's gateway as configured by the job; payload_max: bytes of the largest message.
   Collective over the PS ranks; the caller closes it. */
gt_gateway *gt_setup_gateway(const gt_run *run, size_t payload_max,
                             const gt_gateway_events *events);
/* Loads the first n of the region's own training samples, augmented as the job requires, into
   memory; the caller closes *out, after an error too.  GT_ERR_DATA: they cannot be read;
   GT_ERR_JOB: they cannot be augmented.  Local. */
gt_status gt_setup_loader(const gt_run *run, size_t n, gt_loader **out);
/* Does the same for all samples held back, unchanged. */
gt_status gt_setup_loader_held(const gt_run *run, gt_loader **out);

/* ---- a file of a round ----------------------------------------------------------------------- */

/* On a resume, setup reads from the round's file how products were computed; training then takes
   the rest from the same file. */

/* Reads the region's file of a round into run->kept, unless it is already there.  On a PS;
   local. */
gt_round_verdict gt_setup_read_round(gt_run *run, int64_t round);
void gt_setup_close_kept(gt_kept *kept);
/* Returns the name of the first float32 item in the list with a value that is not finite; NULL: all
   are finite.  Local. */
const char *gt_setup_nonfinite(const gt_state *state);
/* Adds the meaning of the model's input and output to the state of a model file: the normalisation
   of images, data/mean and data/std; the vocabulary of a text, data/merges, or the hash of that of
   words, data/vocabulary_sha256; the columns of a table, data/columns; and the names of the
   classes, data/class_names.  Local. */
void gt_setup_save_data(const gt_run *run, gt_state *state);
/* Compares a model file's data with the run's.  GT_ERR_CKPT: an item of gt_setup_save_data differs.
   Older files lack some.  Local. */
gt_status gt_setup_check_data(const gt_run *run, const gt_state *state);
