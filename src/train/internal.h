/* Private to train: what a PS rank keeps of its run, and the functions that its modules offer one
   another. */
#ifndef GEOTRAIN_TRAIN_INTERNAL_H
#define GEOTRAIN_TRAIN_INTERNAL_H

#include "clock.h"
#include "geotrain/ps_state.h"
#include "geotrain/ps_time_split.h"
#include "geotrain/record.h"
#include "geotrain/setup.h"
#include "geotrain/train.h"

#define GT_MAX_REGIONS 64

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
  size_t *next; /* as in gt_exchange_spec */
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
gt_status gt_server_open(gt_server *s, gt_run *run, const gt_clock_ops *clock, gt_live_mode live);
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

/* planned.c: the job's prediction beside what was measured; false: it has none. */
bool gt_train_planned(gt_plan_result *out, const gt_job *job, const gt_figures *measured);

/* job_file.c: writes job.yaml, by a temporary name: the regions may share the folder.  Local. */
gt_status gt_train_write_job(const gt_run *run);

/* worker.c */
/* What the region's plane carries. */
gt_plane_size gt_train_plane_size(const gt_run *run);
gt_status gt_worker_run(gt_run *run, const gt_clock_ops *clock);

#endif
