/* record: a region's JSON Lines, summary.json, the live line and the final table.  Layer 4.  Local;
   no MPI.  Each line of a record is one write(2), so that complete lines survive a kill. */
#ifndef GEOTRAIN_RECORD_H
#define GEOTRAIN_RECORD_H

#include <stdio.h>

#include "geotrain/base.h"
#include "geotrain/base_phases.h"

/* ---- the region's record --------------------------------------------------------------------- */

typedef struct gt_record gt_record;

/* Opens DIR/<region>.jsonl for appending (resume) or empty.  An incomplete last line of an earlier
   run is removed.  GT_ERR_CKPT names the path and the system's reason. */
gt_status gt_record_open(gt_record **out, const char *run_dir, const char *region, bool append);
void gt_record_close(gt_record *record);

/* Writes one line {"t": seconds, "event": "...", ...}.  After the event come fields of name, type
   and value, then NULL, as in gt_record_line(r, t, "eval", "step", 'i', (int64_t)12, "loss", 'f',
   0.25, "model", 's', "lenet5", NULL): 'i' int64_t, 'f' double (non-finite: null), 's' string, 'b'
   int as bool, 'j' a string inserted as JSON. */
gt_status gt_record_line(gt_record *record, double t_s, const char *event, ...);

/* ---- summary --------------------------------------------------------------------------------- */

/* Of the mean model on a region's test set, as in gt_region_result; perplexity 0: not of texts. */
typedef struct {
  int64_t samples; /* of the test set; 0: the region does not score it, or is the only one */
  double accuracy, loss, auc, recall20, mrr20, perplexity;
} gt_mean_result;

/* Seconds and bytes; seconds of a region are means over its workers.  Under the virtual clock all
   times are virtual, including wall_s. */
typedef struct {
  char name[64];
  int workers;
  int64_t steps, samples;
  double compute_s, encode_s, wan_wait_s, local_wait_s, idle_s, wall_s;
  double update_s; /* the PS applies steps and messages */
  double wire_s;   /* transmission time of this region's frames, sum over its links */
  /* Per average mini-batch of a worker: the sum of the parts is the training time divided by the
     number of mini-batches per worker (docs/time-split.md). */
  double split_train_s, split_upload_s, split_aggregate_s, split_download_s;
  double phase_s[GT_NPHASES];                  /* of a pipeline's workers; all 0: there is none */
  double emulation_cpu_s, ps_cpu_s;            /* 0 under the virtual clock */
  double test_accuracy, test_loss, train_loss; /* NaN: not measured */
  double test_auc;                             /* NaN: not a task with two labels */
  double test_recall20, test_mrr20;            /* NaN: not a recommender */
  double test_perplexity;                      /* 0: not of texts */
  gt_mean_result mean; /* on the lead at the end, if regions have different test sets */
  int64_t nonfinite;
  /* time of earlier starts for lost work (after their last checkpoint); not in wall_s */
  double lost_s;
  int64_t earlier_starts;
  char warning[128]; /* text from gt_trend_collapsed; "": none */
  /* how the pipeline has changed that follows the network, and whose first stage is here; "": there
     is none */
  char adapted[640];
} gt_region_result;

/* The training loss of a region over time, in parts of equal shares of the training; initialised to
   zero. */
#define GT_TREND_PARTS 20
typedef struct {
  double loss_sum[GT_TREND_PARTS];
  int64_t samples[GT_TREND_PARTS], steps[GT_TREND_PARTS];
} gt_trend;
/* Adds a step's loss, summed over its samples; done: the share of the training, 0 to 1.  Values
   that are not finite are ignored. */
void gt_trend_add(gt_trend *trend, double done, double loss_sum, int64_t samples);
/* True if the loss, as `text` then says in a sentence, was at the guessing level (within 2 % of
   ln(classes)), or above 3 times its minimum, throughout the last 20 % of the training: it
   collapsed or never fell.  False if these are fewer than 50 steps. */
bool gt_trend_collapsed(const gt_trend *trend, size_t classes, char *text, size_t size);

/* The use of all starts in a region's record, including lost work; seconds are those of the run's
   clock.  For a killed start, the last line of its record counts. */
typedef struct {
  int64_t starts;
  double used_s;
  double *bytes; /* sent over the WAN to each of the n regions, by starts that recorded it */
  size_t n;
} gt_past;
/* Reads DIR/<region>.jsonl, for a job of nregions; a missing file gives zeros.  trend (unless NULL)
   receives the training losses up to `samples` samples of the region, which are the share `done` of
   the training.  The caller closes *out. */
void gt_past_read(gt_past *out, const char *run_dir, const char *region, size_t nregions,
                  gt_trend *trend, int64_t samples, double done);
void gt_past_close(gt_past *past);

/* Returns the name of a message kind (gt_msg_kind): "update", "state", "ack", ...; NULL for an
   unknown number. */
const char *gt_record_kind_name(unsigned kind);

#define GT_RESULT_KINDS 17
typedef struct {
  char kind[16];                   /* gt_record_kind_name; at most one entry per kind in a link */
  int64_t messages, payload, wire; /* bytes */
} gt_kind_result;

typedef struct {
  char from[64], to[64];
  gt_kind_result kinds[GT_RESULT_KINDS]; /* the ledger; messages 0 ends the list */
  /* bytes_sent: the training's traffic on the wire (gt_msg_is_traffic), including headers */
  int64_t bytes_sent, messages, bytes_other;
  int64_t payload_bytes;
  /* sent by earlier starts for lost work; in no other figure */
  int64_t bytes_lost;
  double bandwidth_bps_measured, latency_s_measured; /* 0: not measured */
} gt_link_result;

/* Sums over all links of a region, as in gt_link_result. */
typedef struct {
  int64_t messages, bytes_sent, bytes_received, bytes_other;
  double slowest_bps; /* lowest measured rate of the outgoing links; NaN: not measured */
} gt_region_traffic;

/* ---- links of many regions ---- */

/* Which links are listed individually: with up to GT_TOLD_REGIONS regions all; with more, the
   GT_TOLD_LINKS busiest of those with messages of the strategy.  A thousand regions have a million
   links. */
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
/* Adds a link; call once per link.  Of equally busy links the earlier ones are kept. */
void gt_told_add(gt_told *told, size_t from, size_t to, const gt_link_traffic *traffic);
/* Returns the links to list, by sender, then by receiver, *n of them; borrowed until the next
   call. */
const gt_told_link *gt_told_links(gt_told *told, size_t *n);
size_t gt_told_left_out(const gt_told *told);
/* Returns sums over all links, listed or not: nregions entries, borrowed. */
const gt_region_traffic *gt_told_traffic(const gt_told *told);

/* ---- figures of a run, planned and measured ---- */

/* NaN: not given, or not measured. */
typedef struct {
  double
      /* on the run's clock, from the first step to the end, including last evaluation, checkpoint
         and evaluation of the mean, without start-up */
      wall_s;
  /* time per step of the slowest region: the maximum of (compute_s + wan_wait_s + local_wait_s) /
     steps over the regions */
  double step_s;
  double samples_per_s; /* of all regions, over wall_s */
  double wan_bytes;     /* bytes_sent of all links */
  double waiting;       /* share of time, mean over regions of wan_wait_s / wall_s */
  double cost;          /* USD: rates times usage */
} gt_figures;

/* Calculates the figures of both plans (results of a simulation) and runs; wan_bytes and cost as in
   gt_figures, cost is NaN if no price is known. */
gt_figures gt_figures_of(double wall_s, const gt_region_result *regions, size_t nregions,
                         double samples, double wan_bytes, double cost);

/* Planned and measured figures of a run. */
typedef struct {
  const char *strategy, *made; /* of the plan; NULL: not given */
  gt_figures predicted, measured;
  double low_s, high_s; /* of the predicted wall_s; NaN: not given */
} gt_plan_result;

typedef struct {
  char name[64];
  double worker_usd, ps_usd, egress_usd; /* egress: of the links that begin in this region */
} gt_cost_region;

/* Rates times usage; not a bill. */
typedef struct {
  double usd, worker_usd, ps_usd, egress_usd; /* usd: the sum */
  double machine_hours;                       /* billed, for all ranks */
  bool assumed;                               /* a rate that was used is marked assumed */
  gt_cost_region *regions;
  size_t nregions;
  char **missing; /* items not included because no price is known: "PS of eu" */
  size_t nmissing;
} gt_cost_result;

/* ---- a run ---- */

/* How workers compute.  If workers differ, each text occurs once: "bf16+f32". */
typedef struct {
  char kernels[512], precision[16], blas_core[40];
} gt_build_texts;

typedef struct {
  const char *job, *strategy, *clock;
  double wall_s, virtual_s; /* virtual_s NaN under the real clock */
  int64_t samples;
  /* NaN: null (strategy none; not a task with two labels; not a recommender) */
  double samples_per_s, test_accuracy, test_loss, test_auc, test_recall20, test_mrr20;
  double tokens_per_s, test_perplexity; /* of texts; 0: not of texts */
  char params_sha256[65];
  const gt_region_result *regions;
  /* how each region's products were computed, one line per layer; NULL: by rule, or no
     computation */
  const char *const *choices;
  const char *choices_how; /* "rule", "measured", "checkpoint", "file", or NULL */
  /* the instruction sets that each region used, or NULL: no computation */
  const char *const *isas;
  /* One entry per region for its workers, or NULL: no computation. */
  const gt_build_texts *builds;
  size_t nregions;
  const gt_link_result *links;
  size_t nlinks, links_left_out;
  /* nregions sums over all links, if some links are not listed; else NULL */
  const gt_region_traffic *traffic;
  bool unwritten; /* summary.json is not written */
  const char *version, *kernels, *precision, *blas_core, *model;
  int64_t parameters, resumes;
  /* how a pipeline that follows the network has changed, in words; NULL: there is none */
  const char *adapted;
  const gt_plan_result *plan; /* NULL: the job had no plan */
  const gt_cost_result *cost; /* NULL: no price is known */
} gt_summary;

/* Returns the `adapted` of a summary of these regions; the caller frees it.  NULL: no region has
   any. */
char *gt_adapted_text(const gt_region_result *regions, size_t nregions);

/* Writes DIR/summary.json under a temporary name, fsyncs and renames it.  Links are sorted by
   region, whatever their order here.  If clock is "virtual", CPU seconds are null, and two runs
   with the same results give the same file except for wall_s of the run. */
gt_status gt_summary_write(const char *run_dir, const gt_summary *summary);
/* Prints the final table: regions, links, totals. */
void gt_summary_print(FILE *to, const gt_summary *summary);

/* Converts the results of a region and its links to JSON text (the caller frees it with gt_free),
   and back.  The text is sent to the lead region. */
char *gt_result_encode(const gt_region_result *region, const gt_link_result *links, size_t nlinks);
/* Reads the text of gt_result_encode.  links has room for max entries; *nlinks receives their
   number. */
gt_status gt_result_decode(const char *text, size_t size, gt_region_result *region,
                           gt_link_result *links, size_t max, size_t *nlinks);

/* Returns the columns of the terminal that shows `to`; 80 if it is none. */
size_t gt_terminal_width(FILE *to);

/* ---- progress -------------------------------------------------------------------------------- */

typedef struct {
  double elapsed_s, epoch, epochs; /* epochs: target; NaN if training ends by steps or samples */
  double done;                     /* share of the training done, 0..1 */
  double loss, accuracy;           /* NaN: none yet */
  double auc, recall20, mrr20;     /* NaN: none yet, or never */
  double samples_per_s;
  /* of the lead: the training's traffic, sent and received; NaN: not known */
  double wan_bps, wan_in_bps;
  int64_t under_way; /* messages that it has posted and that are not yet acknowledged */
  /* share of its time spent waiting for the WAN, as wan_wait_s / wall_s of its result: 0..1 */
  double waiting;
  int64_t step;
} gt_progress;

/* The rate of a count that grows in jumps, possibly rare ones; initialised to zero. */
typedef struct {
  bool begun;
  gt_ns at;
  double seen, last, spans[2], gains[2];
} gt_meter;
/* Returns the rate per second, over the last two windows, each of at least two seconds and ending
   with a jump; NaN: not known yet.  The rate falls while the next jump is late. */
double gt_meter_rate(gt_meter *meter, gt_ns now, double total);

typedef struct gt_live gt_live;
typedef enum { GT_LIVE_AUTO, GT_LIVE_LINE, GT_LIVE_LOG, GT_LIVE_NONE } gt_live_mode;
/* Creates a live line.  AUTO: on a terminal (also one of a launcher on this host) one line that is
   redrawn, in a log one line every `every_s`. */
gt_live *gt_live_create(FILE *to, gt_live_mode mode, double every_s);
/* Draws the line; may be called at any rate: it draws at most 5 times a second (line) or every
   every_s (log). */
void gt_live_update(gt_live *live, const gt_progress *progress);
/* Ends the line, so that other output starts on a new line. */
void gt_live_end(gt_live *live);
void gt_live_close(gt_live *live);

/* ---- following a run ------------------------------------------------------------------------- */

/* The state of a run as read from its directory, by a process that shares nothing else with the
   run: docs/record-format.md. */
typedef enum {
  GT_RUN_NOTHING, /* no record yet */
  GT_RUN_RUNNING,
  GT_RUN_ENDING,  /* training is over; last evaluation and checkpoint */
  GT_RUN_STOPPED, /* with a checkpoint; see code */
  GT_RUN_DONE     /* summary.json belongs to the last start */
} gt_run_state;

typedef struct {
  gt_run_state state;
  char job[64], clock[16];
  /* starts in the record; resumes from a checkpoint as counted by the run */
  int64_t starts, resumes;
  double every_s; /* interval of progress lines, on the run's clock */
  bool has_progress;
  gt_progress progress; /* the latest, of this start */
  double quiet_s;       /* since the last activity of any region */
  bool silent;          /* for longer than a healthy run is silent */
  int code;             /* for STOPPED: 75 or 6 */
  int64_t step, round;  /* for STOPPED: the step at the stop, the round to resume from */
} gt_run_view;

typedef struct gt_follow gt_follow;
/* Follows a run directory, which need not exist yet. */
gt_follow *gt_follow_create(const char *run_dir);
void gt_follow_close(gt_follow *follow);
/* Reads what was added since the last call; the view is borrowed until the next call. */
const gt_run_view *gt_follow_poll(gt_follow *follow);
/* Writes one line with the state of the run; for a run in training its live line in at most width -
   1 columns. */
void gt_follow_text(const gt_follow *follow, char *text, size_t size, size_t width);
/* Returns the summary of a run that is DONE, borrowed until the next poll; else NULL. */
const gt_summary *gt_follow_summary(const gt_follow *follow);

/* ---- one line per run ------------------------------------------------------------------------ */

typedef struct {
  char text[512]; /* "": nothing is shown */
  int phase;      /* in a log a changed text is printed only if phase has changed */
  double every_s; /* or after this time */
  /* the run has ended; such lines are dropped first if the terminal has too few rows */
  bool over;
  struct { /* private to the board: what was shown last; initialise to zero */
    char text[512];
    int phase;
    bool any;
    gt_ns at;
  } shown;
} gt_board_line;

typedef struct gt_board gt_board;
/* Creates a board.  AUTO, LINE, LOG as for gt_live. */
gt_board *gt_board_create(FILE *to, gt_live_mode mode);
/* Returns the width available to a line, in columns. */
size_t gt_board_width(const gt_board *board);
/* Shows the lines from top to bottom.  Lines with a text are drawn or, in a log, printed if they
   are due. */
void gt_board_show(gt_board *board, gt_board_line *const *lines, size_t n);
/* Lets other output start on a new line; the next gt_board_show draws everything again. */
void gt_board_end(gt_board *board);
void gt_board_close(gt_board *board);

#endif
