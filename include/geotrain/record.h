/* record: a region's JSON Lines, summary.json, the live line and the final table.  Layer 4.  Local; no MPI.
   Files are written line by line with one write(2), so that what was said survives a kill. */
#ifndef GEOTRAIN_RECORD_H
#define GEOTRAIN_RECORD_H

#include <stdio.h>

#include "geotrain/base.h"

/* ---- the region's record ----------------------------------------------------------------------------------------- */

typedef struct gt_record gt_record;

/* Opens DIR/<region>.jsonl for appending (resume) or anew.  A torn last line of an earlier run is cut.  GT_ERR_CKPT names the path and the system's reason. */
gt_status gt_record_open(gt_record **out, const char *run_dir, const char *region, bool append);
void gt_record_close(gt_record *record);

/* One line {"t": seconds, "event": "...", ...}.  Behind the event come its fields, name, type, value, and NULL, as in
   gt_record_line(r, t, "eval", "step", 'i', (int64_t)12, "loss", 'f', 0.25, "model", 's', "lenet5", NULL): 'i' int64_t, 'f' double (non-finite: null),
   's' string, 'b' int as bool, 'j' a string of JSON put in as it is. */
gt_status gt_record_line(gt_record *record, double t_s, const char *event, ...);

/* ---- summary ------------------------------------------------------------------------------------------------------ */

/* Seconds and bytes; seconds of a region are means over its workers.  Under the virtual clock every time here is virtual, wall_s included. */
typedef struct {
  char name[64];
  int workers;
  int64_t steps, samples;
  double compute_s, encode_s, wan_wait_s, local_wait_s, idle_s, wall_s;
  double update_s; /* the PS: applying steps and messages */
  double wire_s;   /* frames of this region were leaving, sum over its links */
  /* The average mini-batch of a worker: the parts add up to the time of training over the mini-batches that a worker had (docs/time-split.md). */
  double split_train_s, split_upload_s, split_aggregate_s, split_download_s;
  double emulation_cpu_s, ps_cpu_s;            /* 0 under the virtual clock */
  double test_accuracy, test_loss, train_loss; /* NaN: not measured */
  double test_auc;                             /* NaN: labels are not two */
  int64_t nonfinite;
  double lost_s; /* that earlier starts used for work that was lost: after their last checkpoint; not in wall_s */
  int64_t earlier_starts;
  char warning[128]; /* what gt_trend_collapsed says; "": nothing */
} gt_region_result;

/* The course of a region's training loss, in parts of equal shares of the training; zero at first. */
#define GT_TREND_PARTS 20
typedef struct {
  double loss_sum[GT_TREND_PARTS];
  int64_t samples[GT_TREND_PARTS], steps[GT_TREND_PARTS];
} gt_trend;
/* A step's loss, summed over its samples; done: the share of the training, 0 to 1.  What is not finite does not count. */
void gt_trend_add(gt_trend *trend, double done, double loss_sum, int64_t samples);
/* True, with a sentence in `text`, where the loss was that of guessing (within 2 % of ln(classes)), or above 3 times its least, throughout the last 20 % of the
   training: it has collapsed or never begun.  Fewer than 50 steps in these say nothing. */
bool gt_trend_collapsed(const gt_trend *trend, size_t classes, char *text, size_t size);

/* What the starts have used that a region's record knows of, lost work and all; seconds are of the run's clock.  A start that was killed has used, as far as is
   known, what its last line says. */
typedef struct {
  int64_t starts;
  double used_s;
  double *bytes; /* that left over the WAN to each of the n regions; of starts whose record has them */
  size_t n;
} gt_past;
/* From DIR/<region>.jsonl, of a job of nregions; a file that is not there has nothing.  Where trend is not NULL it receives the losses of the training up to `samples`
   of the region, which are the share `done` of it.  The caller closes *out. */
void gt_past_read(gt_past *out, const char *run_dir, const char *region, size_t nregions, gt_trend *trend, int64_t samples, double done);
void gt_past_close(gt_past *past);

/* What a kind of message (gt_msg_kind) is called: "update", "state", "ack", ...; NULL: there is none of this number. */
const char *gt_record_kind_name(unsigned kind);

#define GT_RESULT_KINDS 16
typedef struct {
  char kind[16];                   /* gt_record_kind_name; each once in a link */
  int64_t messages, payload, wire; /* bytes */
} gt_kind_result;

typedef struct {
  char from[64], to[64];
  gt_kind_result kinds[GT_RESULT_KINDS];     /* the ledger, what was used of it; messages 0: the end */
  int64_t bytes_sent, messages, bytes_other; /* bytes_sent: strategy traffic on the wire, headers in */
  int64_t payload_bytes;
  int64_t bytes_lost;                                /* that earlier starts sent for work that was lost; in no other figure */
  double bandwidth_bps_measured, latency_s_measured; /* 0: not measured */
} gt_link_result;

/* What all links of a region carry together, as in gt_link_result. */
typedef struct {
  int64_t messages, bytes_sent, bytes_received, bytes_other;
  double slowest_bps; /* measured, of those that begin there; NaN: none was */
} gt_region_traffic;

/* ---- links of many regions ---- */

/* Which links are told of one by one: of up to GT_TOLD_REGIONS regions all; of more those that
   messages of the strategy took, and of these the GT_TOLD_LINKS busiest: a thousand regions have a
   million links. */
#define GT_TOLD_REGIONS ((size_t)64)
#define GT_TOLD_LINKS   ((size_t)4096)

typedef struct {
  int64_t messages, bytes_sent, bytes_other; /* as in gt_link_result */
  double measured_bps;                       /* 0: not measured */
} gt_link_traffic;

typedef struct {
  size_t from, to;
} gt_told_link;

typedef struct gt_told gt_told;
gt_told *gt_told_create(size_t nregions);
void gt_told_close(gt_told *told);
/* Each link once.  Of equally busy ones the first stay. */
void gt_told_add(gt_told *told, size_t from, size_t to, const gt_link_traffic *traffic);
/* Those that are told of, by sender, then by receiver, *n of them; borrowed until the next call. */
const gt_told_link *gt_told_links(gt_told *told, size_t *n);
size_t gt_told_left_out(const gt_told *told);
/* Of all links, those left out too: nregions, borrowed. */
const gt_region_traffic *gt_told_traffic(const gt_told *told);

/* ---- figures of a run, planned and measured ---- */

/* NaN: not given, or not measured. */
typedef struct {
  double
      wall_s; /* of the run's clock, from the first step to the end: last evaluation, checkpoint and the mean's evaluation included, start-up not */
  double step_s;        /* between two steps of the slowest region: the greatest (compute_s + wan_wait_s + local_wait_s) / steps of a region */
  double samples_per_s; /* of all regions, over wall_s */
  double wan_bytes;     /* bytes_sent of all links */
  double waiting;       /* share, mean over regions of wan_wait_s / wall_s */
  double cost;          /* USD: rates times use */
} gt_figures;

/* The one definition for plans (results of a simulation) and runs; wan_bytes and cost as in gt_figures, cost NaN where no price is known. */
gt_figures gt_figures_of(double wall_s, const gt_region_result *regions, size_t nregions, double samples, double wan_bytes, double cost);

/* What a run was planned to be, and was. */
typedef struct {
  const char *strategy, *made; /* of the plan; NULL: not said */
  gt_figures predicted, measured;
  double low_s, high_s; /* of the predicted wall_s; NaN: not given */
} gt_plan_result;

typedef struct {
  char name[64];
  double worker_usd, ps_usd, egress_usd; /* egress: of the links that begin here */
} gt_cost_region;

/* Rates times use, not a bill. */
typedef struct {
  double usd, worker_usd, ps_usd, egress_usd; /* usd: the sum */
  double machine_hours;                       /* billed, of all ranks */
  bool assumed;                               /* a rate that counted is marked assumed */
  gt_cost_region *regions;
  size_t nregions;
  char **missing; /* what is not in it because no price is known: "PS of eu" */
  size_t nmissing;
} gt_cost_result;

/* ---- a run ---- */

/* What workers compute by; where they differ, each text once: "bf16+f32". */
typedef struct {
  char kernels[512], precision[16], blas_core[40];
} gt_build_texts;

typedef struct {
  const char *job, *strategy, *clock;
  double wall_s, virtual_s; /* virtual_s NaN under the real clock */
  int64_t samples;
  double samples_per_s, test_accuracy, test_loss, test_auc; /* NaN: null (strategy none; labels that are not two) */
  char params_sha256[65];
  const gt_region_result *regions;
  const char *const *choices; /* how each region's products were computed, a line a layer; NULL: by rule, or nothing was computed */
  const char *choices_how;    /* "rule", "measured", "checkpoint", "file", or NULL */
  const char *const *isas;    /* the instruction sets that each region computed with, or NULL: nothing was computed */
  /* Of each region's workers, or NULL: nothing was computed. */
  const gt_build_texts *builds;
  size_t nregions;
  const gt_link_result *links;
  size_t nlinks, links_left_out;
  const gt_region_traffic *traffic; /* nregions, of all links where some are left out; else NULL */
  bool unwritten;                   /* there is no summary.json of it */
  const char *version, *kernels, *precision, *blas_core, *model;
  int64_t parameters, resumes;
  const gt_plan_result *plan; /* NULL: the job had no plan */
  const gt_cost_result *cost; /* NULL: no price is known */
} gt_summary;

/* DIR/summary.json, written under a temporary name, fsynced and renamed.  Links stand in the order of the regions whatever their order here.  Where
   clock is "virtual", CPU seconds are null, and two runs with the same results have the same file but for wall_s of the run. */
gt_status gt_summary_write(const char *run_dir, const gt_summary *summary);
/* The table a person reads at the end: regions, links, totals. */
void gt_summary_print(FILE *to, const gt_summary *summary);

/* A region's and its links' results as one JSON text (the caller frees it with gt_free), and back: what travels to the lead region. */
char *gt_result_encode(const gt_region_result *region, const gt_link_result *links, size_t nlinks);
/* links has room for max; *nlinks receives their number. */
gt_status gt_result_decode(const char *text, size_t size, gt_region_result *region, gt_link_result *links, size_t max, size_t *nlinks);

/* ---- progress ----------------------------------------------------------------------------------------------------- */

typedef struct {
  double elapsed_s, epoch, epochs; /* epochs: to reach; NaN when training ends by steps or samples */
  double done;                     /* share of the training done, 0..1 */
  double loss, accuracy;           /* NaN: none yet */
  double auc;                      /* NaN: none yet, or never */
  double samples_per_s;
  double wan_bps, wan_in_bps; /* of the lead: strategy traffic that leaves it, that reaches it; NaN: not known */
  int64_t under_way;          /* messages that it has posted and that are not acknowledged */
  double waiting;             /* share of its time that waited for the WAN, as wan_wait_s / wall_s of its result: 0..1 */
  int64_t step;
} gt_progress;

/* The rate of a count that grows in jumps, however rare; zero at first. */
typedef struct {
  bool begun;
  gt_ns at;
  double seen, last, spans[2], gains[2];
} gt_meter;
/* Per second, over the last two windows of two seconds or more that end with a jump; NaN: not known yet.  When the next jump is late it falls. */
double gt_meter_rate(gt_meter *meter, gt_ns now, double total);

typedef struct gt_live gt_live;
typedef enum { GT_LIVE_AUTO, GT_LIVE_LINE, GT_LIVE_LOG, GT_LIVE_NONE } gt_live_mode;
/* AUTO: one line drawn over and over on a terminal (also when a launcher on this host holds the terminal), a line every `every_s` in a log. */
gt_live *gt_live_create(FILE *to, gt_live_mode mode, double every_s);
/* Called as often as one likes; draws at most 5 times a second (line) or every every_s (log). */
void gt_live_update(gt_live *live, const gt_progress *progress);
/* Ends the line, so that other output starts on a fresh one. */
void gt_live_end(gt_live *live);
void gt_live_close(gt_live *live);

/* ---- following a run ----------------------------------------------------------------------------------------------- */

/* Where a run stands as its directory tells, for a process that shares nothing else with it: docs/record-format.md. */
typedef enum {
  GT_RUN_NOTHING, /* no record yet */
  GT_RUN_RUNNING,
  GT_RUN_ENDING,  /* trained: last evaluation, last checkpoint */
  GT_RUN_STOPPED, /* with a checkpoint: code */
  GT_RUN_DONE     /* summary.json is of the last start */
} gt_run_state;

typedef struct {
  gt_run_state state;
  char job[64], clock[16];
  int64_t starts, resumes; /* starts that the record knows of; resumes from a checkpoint, as the run counts them */
  double every_s;          /* between two signs of progress, on the run's clock */
  bool has_progress;
  gt_progress progress; /* the last, of this start */
  double quiet_s;       /* since the last sign of life of any region */
  bool silent;          /* for longer than a run that is well is ever silent */
  int code;             /* of STOPPED: 75 or 6 */
  int64_t step, round;  /* of STOPPED: where it stopped, what it can resume from */
} gt_run_view;

typedef struct gt_follow gt_follow;
/* The directory need not be there yet. */
gt_follow *gt_follow_create(const char *run_dir);
void gt_follow_close(gt_follow *follow);
/* Reads what was added since the last call; the view is borrowed until the next one. */
const gt_run_view *gt_follow_poll(gt_follow *follow);
/* One line about where the run stands: of a run that trains, its live line in at most width - 1 columns. */
void gt_follow_text(const gt_follow *follow, char *text, size_t size, size_t width);
/* Of a run that is DONE, borrowed until the next poll; else NULL. */
const gt_summary *gt_follow_summary(const gt_follow *follow);

/* ---- a line a run -------------------------------------------------------------------------------------------------- */

typedef struct {
  char text[512]; /* "": nothing is shown */
  int phase;      /* in a log a text that differs from the last is printed when this has changed, */
  double every_s; /* or so much time has passed */
  bool over;      /* the run has ended: where the terminal has too few rows such lines give way */
  struct {        /* the board's own: what was shown last; zero at first */
    char text[512];
    int phase;
    bool any;
    gt_ns at;
  } shown;
} gt_board_line;

typedef struct gt_board gt_board;
/* AUTO, LINE, LOG as for gt_live. */
gt_board *gt_board_create(FILE *to, gt_live_mode mode);
/* Columns that a line may take. */
size_t gt_board_width(const gt_board *board);
/* The lines, from top to bottom; those with a text are drawn or, in a log, printed when there is news. */
void gt_board_show(gt_board *board, gt_board_line *const *lines, size_t n);
/* Other output starts on a fresh line, and the next gt_board_show draws anew. */
void gt_board_end(gt_board *board);
void gt_board_close(gt_board *board);

#endif
