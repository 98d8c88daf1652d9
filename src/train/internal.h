/* Private to train: the state of a PS rank's run, and the functions shared between its modules. */
#pragma once

#include "clock.h"
#include "geotrain/ps_state.h"
#include "geotrain/ps_time_split.h"
#include "geotrain/record.h"
#include "geotrain/setup.h"
#include "geotrain/sim_choose.h"
#include "geotrain/train.h"

/* What a PS tells the others before training starts (kind HELLO, sent as it lies in memory, little
   endian). */
typedef struct {
  uint32_t protocol, status;
  char region[64], job[GT_SHA256_HEX], model[GT_SHA256_HEX], weights[GT_SHA256_HEX],
      data[GT_SHA256_HEX], traces[GT_SHA256_HEX];
  /* the run of the sender's files, empty if all are damaged; without files: of a new run, made by
     the lead, else empty */
  char run_id[GT_RUN_ID];
  char error[471];
  int64_t fresh; /* 1: started without --resume */
  int64_t samples, newest_round, nrounds;
  int64_t damaged;               /* the newest round whose file at the sender is damaged; 0: none */
  int64_t rounds[GT_MAX_ROUNDS]; /* whole files of the sender, ascending */
} gt_hello;

typedef struct gt_server_ending gt_server_ending;
typedef struct gt_server_stages gt_server_stages;

/* A PS rank's run. */
struct gt_server {
  gt_run *run;
  char run_id[GT_RUN_ID];
  const gt_clock_ops *clock;
  void *clock_state;
  gt_gateway *gateway;
  gt_plane_ps *plane;
  gt_ps *ps;
  gt_optim *optim;
  gt_ckpt_lock *lock; /* of the run directory */
  gt_ckpt_writer *writer;
  gt_record *record;
  gt_live *live;
  gt_time_split split;
  gt_trend trend;
  double *weights;     /* of each region's model, or part of it, in means */
  gt_ps_groups groups; /* of a pipeline */
  gt_routes routes;
  gt_topology_choice choice; /* on the lead, if chosen at this start */
  int wired_by;              /* source of the topology (routes.c) */
  int64_t *saved_routes;     /* topology, then routes; NULL: the job determines both */
  size_t *workers;           /* as in gt_exchange_spec */
  gt_hello *hellos;          /* of every region */
  size_t nhellos;
  gt_server_stages *stages; /* NULL: no pipeline */
  gt_server_ending *ending;
  int64_t written_round; /* pending write */
  /* newest round that is kept although no run would resume from it; 0: none */
  int64_t unsound_round;
  /* Since this start: non-finite gradients, how many of them in a row, and the number of finite
     gradients when the last non-finite one arrived. */
  int64_t bad_gradients, bad_in_row, good_gradients;
  /* At this start: the newest round whose file at that region is non-finite; 0: none. */
  int64_t nonfinite_round[GT_MAX_REGIONS];
  int64_t resumes;
  int64_t best_steps, best_samples; /* of the final model, if it is that of an earlier round */
  /* steps of the learning rate schedule for this job, and for the checkpoint's job (negative:
     unknown) */
  int64_t planned, planned_before;
  double elapsed_s; /* before this start */
  gt_past past;     /* resource use of earlier starts; bytes: of lost work only */
  double lost_s;    /* the part of past.used_s that is not in elapsed_s */
  /* nregions: bytes relayed to each before this start, and up to the last checkpoint */
  int64_t *relayed_before, *relayed;
  gt_ns begun_wall, started, progress_at, watched_at, record_at, recorded_at;
  struct {
    gt_meter samples, sent, received;
  } meters;             /* on the lead */
  double data_received; /* bytes of the training's traffic, including headers */
  double rate_samples, rate_bps, rate_in_bps;
  double patience_s[GT_MAX_REGIONS];
  uint64_t beats_at_work; /* heartbeats at which workers or the disk were busy */
  bool stop_told, whole_marked, write_slow, codec_slow;
  bool partial;              /* regions of this start do not all continue from one round */
  bool leaves_late;          /* the note is about a late region */
  bool returns;              /* to a run that continues without this region */
  bool gone[GT_MAX_REGIONS]; /* each region has started again, or ended, since this start */
  gt_ns alone_since;         /* it has no majority, or is no member; 0: it is one */
  bool alone_stopped;        /* and therefore stops */
  gt_ns writing_since;       /* wall time */
};

/* hello.c */
void gt_server_hello_message(gt_server *s, size_t peer, const gt_frame_header *head,
                             const void *payload);
/* Exchanges HELLO, compares, finds the round to resume from (0: start from the beginning).
   GT_ERR_JOB/DATA/CKPT name the region and the difference. */
gt_status gt_server_hello(gt_server *s, const gt_hello *own, int64_t *round, int64_t *newest);

/* members.c: members that change; without sync.on_loss continue, members_change is false, and
   nothing happens. */
bool gt_server_members_change(const gt_server *s);
/* GT_ERR_CKPT: the file of the epoch cannot be read. */
gt_status gt_server_members(const gt_server *s, gt_ps_members *out);
void gt_server_members_host(gt_ps_host *host);
/* The peer has been silent for too long.  False: its loss ends the run. */
bool gt_server_give_up(gt_server *s, size_t peer, gt_ns now);
/* Leaves out the regions without which the run begins. */
void gt_server_begin_without(gt_server *s, gt_ns now);
/* At the end: nothing more is sent to regions that are no members; from a region that leaves alone,
   to none that is silent. */
void gt_server_leave_others(gt_server *s, gt_ns now);
/* Stops a region without a majority, or without the others. */
void gt_server_watch_members(gt_server *s, gt_ns now);

/* routes.c */
/* Settles the topology and the routes between regions: those in the checkpoint of the round, else
   those that the lead finds or chooses.  status: of this region so far; the result is the same in
   every region. Collective over the PS ranks. */
gt_status gt_server_settle_routes(gt_server *s, gt_status status, int64_t round);
/* Adds them to the state of a checkpoint, unless the job determines both. */
void gt_server_save_routes(gt_server *s, gt_state *state);
/* Writes them to the record, unless the job determines both. */
void gt_server_tell_routes(const gt_server *s);

/* Lists the rounds for which this region has files in own->rounds, without reading the files. */
void gt_server_rounds(gt_server *s, gt_hello *own);

/* resume.c */
/* Fills in the description for a file of this run, except mean_of and params_sha256. job_yaml is
   borrowed. */
void gt_server_describe(const gt_server *s, gt_ckpt_info *info);
/* Ends the run if a file of the run directory could not be written, and reports what is left of
   it. */
void gt_server_must_write(const gt_server *s, gt_status result);
/* Returns the wall seconds after which a disk counts as lost if the run can do nothing else. */
double gt_server_write_limit(const gt_server *s);
/* Removes, before training, a final model that this start will write again. round: the one resumed
   from. */
void gt_server_remove_final_model(const gt_server *s, int64_t round);
/* Reads the round's file into params, buffers, the optimizer, the strategy and the gateway's
   ledger. */
gt_status gt_server_resume(gt_server *s, int64_t round);
/* Removes files of rounds newer than the one resumed from: they were incomplete or unsound, or an
   older round was requested.  Their numbers are not reused. */
void gt_server_remove_newer(const gt_server *s, int64_t round);
/* Returns the bytes that this region has copied to another for others, in all starts. */
int64_t gt_server_relayed(const gt_server *s, size_t region);
/* train.keep best: ends the run if this region's file of the best checkpoint is missing.  Call when
   one has been judged. */
void gt_server_check_best(const gt_server *s, const gt_ps_view *v);
/* train.keep best: this region's model becomes that of the best checkpoint. */
void gt_server_take_best(gt_server *s);
/* Callbacks of the PS: write the checkpoint of a round; a round is whole in all regions. */
void gt_server_checkpoint(void *server, int64_t round);
void gt_server_whole(void *server, int64_t round);
/* Handles the result of the pending write. */
void gt_server_written(gt_server *s, gt_status result, gt_ns now);
/* Checks whether the pending write has ended. */
void gt_server_poll_writer(gt_server *s, gt_ns now);
/* Warns of a write that takes too long, and ends the run (GT_ERR_CKPT) if it can do nothing else.
   now: wall time; idle: the caller only waits for the write. */
void gt_server_watch_writer(gt_server *s, gt_ns now, bool idle);

/* For a resumed run: if the job now has a different number of steps, the schedule keeps its
   position and its rest is spread over the remaining steps.  Logs the change.  Collective over the
   PS ranks. */
void gt_server_spread(gt_server *s);

/* time.c: the server's clock. */
gt_ns gt_server_now(const gt_server *s);
double gt_server_elapsed(const gt_server *s);
/* Returns all bytes sent to the peer. */
double gt_server_wire_bytes(const gt_server *s, size_t peer);

/* progress.c: writes the PS's notes to the record. */
void gt_server_note(void *server, gt_ps_note note, double a, double b);
void gt_server_decided(void *server, const char *what, const char *choice, const char *why);

/* loop.c: shared by the loops of both clocks. */
/* Returns the longest time that workers wait without a keepalive from the PS. */
gt_ns gt_server_keepalive(const gt_server *s);
/* Passes a worker's gradient or evaluation and its timing on to the PS; floats (gradients or
   scores) and buffers as in gt_plane_ps_poll. */
void gt_server_pushed(gt_server *s, size_t worker, const gt_push_msg *p, float *floats,
                      const float *buffers, gt_ns now);
/* Returns true if the worker is busy, and since when and on which batch; false: it waits, in a
   pipeline possibly within a step. */
bool gt_server_at_work(const gt_server *s, size_t worker, gt_ns *since, int64_t *batch);
/* Charges the time up to now to the activity of the region and, in a pipeline, of its workers;
   called after every event. */
void gt_server_account(gt_server *s, gt_ns now);
/* Gives a region up that has been silent for too long, or panics (GT_ERR_LOST).  now: wall time. */
void gt_server_watch_regions(gt_server *s, gt_ns now);
/* Implements `advance` of a gt_ps_host. */
uint64_t gt_server_advance(void *server);
/* Panics (GT_ERR_LOST) if there was no progress between the regions for too long; the text names
   what this region waits for. */
void gt_server_watch_advance(const gt_server *s);
/* Checks the PS and advances the end of the run.  True when the run is over; code: its exit
   status. */
bool gt_server_over(gt_server *s, gt_ns now, gt_status *code);
/* Tells the workers that the run is over. */
void gt_server_end_workers(gt_server *s, gt_status status);

/* progress.c */
/* Adds a gradient's loss to the trend of the training loss. */
void gt_server_learnt(gt_server *s, const gt_ps_push *push);
void gt_server_progress(gt_server *s, gt_ns now, bool last);
/* Writes the record's first line of this start; round: the one resumed from, 0: none. */
void gt_server_started(const gt_server *s, int64_t round);
/* True for signals, 0: none, that launchers act on themselves: they can kill the ranks before they
   have stopped, and do not return their code. */
bool gt_server_is_launchers(int number);
/* Tells the PS once that a signal stops the run, or ends this region's part in it.  number: 0: not
   known.  If the launcher could have got the signal too, it could kill the ranks before they end;
   the lead then warns. */
void gt_server_stop(gt_server *s, int number, gt_ns now);
/* Writes the record's last line of a run that ends with a checkpoint: code 75 or 6. */
void gt_server_stopped(const gt_server *s, gt_status code);

/* summary.c: fills in the current figures; own: the score of the region's model; one row per peer,
   in region order. */
void gt_server_result(const gt_server *s, const gt_ps_score *own, gt_region_result *result);
/* The figures of a region that is lost at the end of the run, as far as they are known. */
void gt_server_lost_result(const gt_server *s, size_t region, gt_region_result *result);
/* Writes what this start has asked of the store; false: the regions have none. */
bool gt_server_store(const gt_server *s, gt_store_result *of);
void gt_server_link_results(const gt_server *s, gt_link_result *links);
/* Returns the measured rate of the link to the peer; 0: not measured. */
double gt_server_link_bps(const gt_server *s, size_t peer);

/* worker.c */
/* Returns the buffer sizes of the region's plane. */
gt_plane_size gt_train_plane_size(const gt_run *run);
/* Returns the number of test samples of an evaluation in which this region takes part. */
size_t gt_train_tests(const gt_run *run);
/* Returns how evaluations rank the test samples; NULL: they do not. */
const gt_ranking *gt_train_ranking(const gt_run *run);
gt_status gt_worker_run(gt_run *run, const gt_clock_ops *clock);
