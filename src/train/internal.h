/* Private to train: what one rank knows of its run, and the functions that its modules offer one another. */
#ifndef GEOTRAIN_TRAIN_INTERNAL_H
#define GEOTRAIN_TRAIN_INTERNAL_H

#include "clock.h"
#include "geotrain/ckpt.h"
#include "geotrain/data.h"
#include "geotrain/job.h"
#include "geotrain/nn.h"
#include "geotrain/ps.h"
#include "geotrain/record.h"
#include "geotrain/train.h"
#include "geotrain/wan.h"

#define GT_EVAL_BATCH ((size_t)32) /* samples at a time in evaluation, unless training takes more */
#define GT_MAX_ROUNDS 64
#define GT_RUN_ISA    ((size_t)32) /* characters of a region's instruction sets */

#define GT_MAX_REGIONS 64

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

/* One rank's view, made by gt_run_open. */
typedef struct {
  const gt_train_options *options;
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
  char (*isas)[GT_RUN_ISA]; /* of each region's ranks: "avx2", or "avx2+avx512" */
  gt_precision precision;   /* that is computed in; on a PS: by its first worker */
  gt_build_texts *builds;   /* of each region's workers, and behind them of all */
  gt_choices choices;       /* of this rank's machine; empty: by rule */
  char *choices_text;       /* of all machines of the region; NULL: by rule */
  char **all_choices;       /* on a PS: of every region */
  const char *choices_how;  /* "rule", "measured", "checkpoint", "file" */
  size_t batch;             /* samples of a training batch */
  size_t batch_max;         /* samples at a time, in training or evaluation */
  gt_order order;
  gt_links *links;
  gt_job_prices prices; /* the lead's; elsewhere nothing is known */
  gt_kept kept;         /* a PS's, until it has gone on from it */
  bool init_missing;    /* train.init could not be read, and the run has checkpoints of its own */
} gt_run;

/* setup.c: each is collective over the world and gives every rank the same status. */
gt_status gt_run_open(gt_run *run, const gt_train_options *options);
void gt_run_close(gt_run *run);
/* Writes job.yaml, by a temporary name: the regions may share the folder.  Local. */
gt_status gt_run_write_job(const gt_run *run);

/* data.c: opens the region's data set and settles which of its samples are the region's and how
   images are normalised.  Collective over the world; GT_ERR_DATA, GT_ERR_JOB say which region has
   what. */
gt_status gt_run_open_data(gt_run *run);
/* Adds how images are normalised, data/mean and data/std, to what a file with a model holds.
   Local. */
void gt_run_save_data(const gt_run *run, gt_state *state);
/* GT_ERR_CKPT: a file's model was trained on images normalised otherwise.  Local. */
gt_status gt_run_check_data(const gt_run *run, const gt_state *state);

/* choices.c: settles which way products are computed, before the model is built.  Collective over the world; GT_ERR_JOB: train.choices. */
gt_status gt_run_open_choices(gt_run *run, const gt_graph_spec *spec);
/* The text of every region's choices, empty where it computes by rule.  Collective over the PS ranks; the caller frees the texts and the list. */
char **gt_run_gather_choices(const gt_run *run);

/* machine.c: settles which instruction set computes, before kernels are used.  Collective over the world. */
gt_status gt_run_open_machine(gt_run *run);

/* Settles run->precision: bf16 where the job wants it and this rank has it; a worker that has not says
   why.  Collective over the region. */
void gt_run_open_precision(gt_run *run, const gt_kernels *kernels);
/* Once there is a model: what every region's workers compute by, in run->builds; a difference is said
   once.  Collective over the world. */
void gt_run_gather_builds(gt_run *run);

/* What the region's plane carries. */
gt_plane_size gt_run_plane_size(const gt_run *run);

/* worker.c: the first n of the region's own training samples, augmented as the job says.  Local. */
gt_status gt_train_loader(const gt_run *run, size_t n, gt_loader **out);
/* The region's gateway as the job says; payload_max: bytes.  Collective over the PS ranks. */
gt_gateway *gt_run_gateway(const gt_run *run, size_t payload_max, const gt_gateway_events *events);

/* What a PS tells the others before training starts (kind HELLO, little endian as is). */
typedef struct {
  uint32_t protocol, status;
  char region[64], job[GT_SHA256_HEX], model[GT_SHA256_HEX], weights[GT_SHA256_HEX], data[GT_SHA256_HEX], traces[GT_SHA256_HEX];
  char error[512];
  int64_t samples, newest_round, nrounds;
  int64_t damaged;               /* the newest round whose file at the sender is damaged; 0: none */
  int64_t rounds[GT_MAX_ROUNDS]; /* whole at the sender, ascending */
} gt_hello;

typedef struct gt_server_ending gt_server_ending;

/* A PS rank's run. */
struct gt_server {
  gt_run *run;
  const gt_clock_ops *clock;
  void *clock_state;
  gt_gateway *gateway;
  gt_plane_ps *plane;
  gt_ps *ps;
  gt_optim *optim;
  gt_ckpt_writer *writer;
  gt_record *record;
  gt_live *live;
  gt_time_split split;
  gt_trend trend;
  double *weights;
  gt_hello *hellos; /* of every region */
  size_t nhellos;
  gt_server_ending *ending;
  int64_t written_round; /* being written */
  int64_t unsound_round; /* that lies here although nobody would go on from it; 0: none */
  /* Of this start: gradients that were not finite, how many of them in a row, and how many had been
     finite when the last of them came. */
  int64_t bad_gradients, bad_in_row, good_gradients;
  /* At the start: the newest round whose file at the region is not finite; 0: none. */
  int64_t spoilt[GT_MAX_REGIONS];
  int64_t resumes;
  int64_t planned, planned_before; /* steps that the learning rate's schedule is for by this job, and by the checkpoint's (negative: not known) */
  double elapsed_s;                /* before this start */
  gt_past past;                    /* what earlier starts used; bytes: of lost work */
  double lost_s;                   /* of it what is not in elapsed_s */
  gt_ns begun_wall, started, progress_at, watched_at, record_at, recorded_at;
  struct {
    gt_meter samples, sent, received;
  } meters;             /* the lead's */
  double data_received; /* bytes of strategy traffic, headers in */
  double rate_samples, rate_bps, rate_in_bps;
  double patience_s[GT_MAX_REGIONS];
  bool stop_told, whole_marked, write_slow;
  gt_ns writing_since; /* wall time */
};

/* hello.c */
void gt_server_hello_message(gt_server *s, size_t peer, const gt_frame_header *head, const void *payload);
/* Exchanges HELLO, compares, finds the round to resume from (0: from the beginning).  GT_ERR_JOB/DATA/CKPT name the region and what differs. */
gt_status gt_server_hello(gt_server *s, const gt_hello *own, int64_t *round, int64_t *newest);

/* kept.c */
/* The first float32 item of the list that is not finite everywhere; NULL: all are. */
const char *gt_state_spoilt(const gt_state *state);
/* Reads the region's file of a round into run->kept, unless it is there.  On a PS; local. */
gt_round_verdict gt_run_read_round(gt_run *run, int64_t round);
void gt_kept_close(gt_kept *kept);
/* Lists the rounds that this region has files of in own->rounds; none is read. */
void gt_server_rounds(gt_server *s, gt_hello *own);
/* Of the rounds that all greetings list the newest that is whole and sound in every region, or the
   one that --resume-round names; 0: training begins.  Collective over the PS ranks.  GT_ERR_CKPT:
   there are files, and none to go on from; GT_ERR_JOB: ranks were told different rounds. */
gt_status gt_server_settle_round(gt_server *s, int64_t *round);

/* resume.c */
/* What a file of this run says of itself now: all but mean_of and params_sha256.  job_yaml is
   lent. */
void gt_server_describe(const gt_server *s, gt_ckpt_info *info);
/* Seconds of wall time after which a disk counts as lost where nothing else goes on. */
double gt_server_write_limit(const gt_server *s);
/* Before training: a final model that this start will make another of is removed.  round: gone
   on from. */
void gt_server_remove_final_model(const gt_server *s, int64_t round);
/* Reads the round's file into params, buffers, the optimizer, the strategy, the gateway's ledger. */
gt_status gt_server_resume(gt_server *s, int64_t round);
/* Removes files of rounds newer than the one that is gone on from: they were not whole or not
   sound, or an older one was named.  Their numbers are not used again. */
void gt_server_remove_newer(const gt_server *s, int64_t round);
gt_status gt_run_init_params(gt_run *run);
/* Host of the PS: take the checkpoint of a round; a round is whole. */
void gt_server_checkpoint(void *server, int64_t round);
void gt_server_whole(void *server, int64_t round);
/* The write that was under way has ended so. */
void gt_server_written(gt_server *s, gt_status result, gt_ns now);
/* Looks whether one has. */
void gt_server_poll_writer(gt_server *s, gt_ns now);
/* A write that takes too long is said, and where nothing else goes on it ends the run (GT_ERR_CKPT).
   now: wall time; idle: whoever calls waits for the write and does nothing else. */
void gt_server_watch_writer(gt_server *s, gt_ns now, bool idle);

/* schedule.c */
/* The steps that the learning rate's schedule is for by this job (YAML); negative: it cannot be read. */
int64_t gt_server_planned_steps(const gt_server *s, const char *job_yaml);
/* Of a run that was resumed: where the job now makes other steps, the schedule keeps its position and the rest of it takes the steps that are left; says so.
   Collective over the PS ranks. */
void gt_server_spread(gt_server *s);

/* time.c: the server's clock and what its time goes to. */
gt_ns gt_server_now(const gt_server *s);
double gt_server_elapsed(const gt_server *s);
/* Everything that has left for the peer. */
double gt_server_wire_bytes(const gt_server *s, size_t peer);
/* Books the time up to now under what kept the region. */
void gt_server_account(gt_server *s, gt_ns now);

/* server.c */
gt_status gt_server_open(gt_server *s, gt_run *run, const gt_clock_ops *clock);
void gt_server_close(gt_server *s);

/* notes.c: what the PS tells of goes to the record. */
void gt_server_note(void *server, gt_ps_note note, double a, double b);

/* loop.c: for the loops of the clocks. */
/* How long workers may wait before they hear that the PS is there. */
gt_ns gt_server_keepalive(const gt_server *s);
/* A worker's gradient or evaluation, with what it says of its time; floats (gradients or scores)
   and buffers as in gt_plane_ps_poll. */
void gt_server_pushed(gt_server *s, size_t worker, const gt_push_msg *p, float *floats, const float *buffers, gt_ns now);
/* now: wall time.  GT_ERR_LOST for a region of which nothing was heard for too long. */
void gt_server_watch_regions(const gt_server *s, gt_ns now);
/* Looks at the PS and moves the ending on.  True when the run is over; code: what it ends with. */
bool gt_server_over(gt_server *s, gt_ns now, gt_status *code);
/* Tells the workers that it is over. */
void gt_server_end_workers(gt_server *s, gt_status status);

/* progress.c */
/* A gradient's loss belongs to the course of the training. */
void gt_server_learnt(gt_server *s, const gt_ps_push *push);
void gt_server_progress(gt_server *s, gt_ns now, bool last);
/* The record's first line of this start; round: that it resumes from, 0: none. */
void gt_server_started(const gt_server *s, int64_t round);
/* The record's last line of a run that ends with a checkpoint: code 75 or 6. */
void gt_server_stopped(const gt_server *s, gt_status code);

/* result.c: as they stand now; own: the score of the region's model; one row a peer, in region order. */
void gt_server_result(const gt_server *s, const gt_ps_score *own, gt_region_result *result);
void gt_server_link_results(const gt_server *s, gt_link_result *links);

/* bill.c: the job's prediction beside what was measured; false: it has none. */
bool gt_run_planned(gt_plan_result *out, const gt_job *job, const gt_figures *measured);

/* worker.c */
gt_status gt_worker_run(gt_run *run, const gt_clock_ops *clock);

#endif
