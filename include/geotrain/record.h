/* record: a region's JSON Lines, summary.json, the live line and the final table.  Layer 4.  Local;
   no MPI.  Each line of a record is one write(2), so that complete lines survive a kill. */
#pragma once

#include <stdio.h>

#include "geotrain/base.h"
#include "geotrain/base_phases.h"

/* ---- the region's record --------------------------------------------------------------------- */

typedef struct gt_record gt_record;

/* Opens DIR/<region>.jsonl, empty or for appending after a resume.  Removes an incomplete last line
   of an earlier run.  GT_ERR_CKPT names the path and the system's reason. */
gt_status gt_record_open(gt_record **out, const char *run_dir, const char *region, bool append);
void gt_record_close(gt_record *record);

/* Writes one line {"t": seconds, "event": "...", ...}. Fields follow the event as name, type and
   value; NULL ends them, as in gt_record_line(r, t, "eval", "step", 'i', (int64_t)12, "loss", 'f',
   0.25, "model", 's', "lenet5", NULL).  Types: 'i' int64_t, 'f' double (non-finite: null), 's'
   string, 'b' int as bool, 'j' a string inserted as JSON. */
gt_status gt_record_line(gt_record *record, double t_s, const char *event, ...);

/* ---- summary --------------------------------------------------------------------------------- */

/* The mean model on a region's test set, as in gt_region_result; perplexity 0: not a text. */
typedef struct {
  int64_t samples; /* of the test set; 0: no score of the mean model, or no other region has one */
  double accuracy, loss, auc, recall20, mrr20, perplexity;
} gt_mean_result;

/* Work of a region's codec: bytes of float32 that it encoded, bytes of the payloads, bytes of
   float32 that it decoded; name "": none. */
typedef struct {
  char name[16];
  int64_t raw_bytes, wire_bytes, decoded_bytes;
  double encode_s, decode_s;
} gt_codec_result;

/* What a region has asked of a store, in all its starts as far as its record has them; all 0: it has
   none.  control: for other messages than data. */
typedef struct {
  int64_t writes, reads, failed_reads, lists, deletes, bytes_in, bytes_out;
  int64_t control_writes, control_reads;
  /* messages to several regions that were one object: bytes of the others, which bytes_out lacks */
  int64_t bytes_shared;
  double function_s; /* of the region's function: of all its invocations */
  double gb_s; /* 1e9 bytes for a second in the store: of this region's objects (virtual clock), or
                        of those that it has deleted */
} gt_store_result;
/* Adds every field of `more` to `sum`. */
void gt_store_add(gt_store_result *sum, const gt_store_result *more);
/* Writes the counts and gb_s as JSON, for gt_past_read. */
#define GT_STORE_TEXT ((size_t)512)
void gt_store_text(const gt_store_result *result, char text[GT_STORE_TEXT]);

/* Seconds and bytes; seconds of a region are means over its workers.  Under the virtual clock all
   times are virtual, including wall_s. */
typedef struct {
  char name[64];
  int workers;
  int64_t steps, samples;
  /* of its final model, if it is that of an earlier round; else 0 */
  int64_t best_steps, best_samples;
  double compute_s, encode_s, wan_wait_s, local_wait_s, idle_s, wall_s;
  double update_s; /* the PS applies steps and messages */
  double wire_s;   /* transmission time of this region's frames, sum over its links */
  /* Per average mini-batch of a worker: the sum of the parts is the training time divided by the
     number of mini-batches per worker (docs/time-split.md). */
  double split_train_s, split_upload_s, split_aggregate_s, split_download_s;
  double phase_s[GT_NPHASES];       /* of a pipeline's workers; all 0 without a pipeline */
  double emulation_cpu_s, ps_cpu_s; /* 0 under the virtual clock */
  double test_accuracy, test_loss, train_loss; /* NaN: not measured */
  double test_auc;                             /* NaN: not a task with two labels */
  double test_recall20, test_mrr20;            /* NaN: not a recommender */
  double test_perplexity;                      /* 0: not a text */
  gt_codec_result codec;
  gt_store_result store;
  gt_mean_result mean; /* on the lead at the end, if regions have different test sets */
  int64_t nonfinite, excluded, missed; /* as in gt_ps_view */
  double residual;                     /* gt_exchange_residual */
  /* of earlier starts after their last checkpoint, for lost work; not in wall_s */
  double lost_s;
  int64_t earlier_starts;
  char warning[128]; /* text from gt_trend_collapsed; "": none */
  /* changes of the pipeline that pipeline.adapt made, in words; "": none, or the first stage is in
     another region */
  char adapted[640];
} gt_region_result;

/* The training loss of a region over time, in parts of equal shares of the training; initialised to
   zero. */
#define GT_TREND_PARTS 20
typedef struct {
  double loss_sum[GT_TREND_PARTS];
  int64_t samples[GT_TREND_PARTS], steps[GT_TREND_PARTS];
} gt_trend;
/* Adds a step's loss, summed over its samples. done: share of the training, 0 to 1.  Ignores
   non-finite values. */
void gt_trend_add(gt_trend *trend, double done, double loss_sum, int64_t samples);
/* True if the training collapsed or never progressed: throughout its last 20 % the loss was at the
   guessing level (within 2 % of ln(classes)), or above 3 times its minimum.  `text` is a sentence
   about it.  False if the last 20 % have fewer than 50 steps. */
bool gt_trend_collapsed(const gt_trend *trend, size_t classes, char *text, size_t size);

/* Resources that all starts in a region's record used, including lost work.  Seconds are those of
   the run's clock.  A killed start ends with its last line in the record. */
typedef struct {
  int64_t starts;
  double used_s;
  double *bytes; /* sent over the WAN to each of the n regions, by the starts that recorded it */
  size_t n;
  gt_store_result store;
} gt_past;
/* Reads DIR/<region>.jsonl for a job of nregions; a missing file gives zeros. trend (unless NULL)
   receives the training losses of the region's first `samples` samples, which are the share `done`
   of the training.  The caller closes *out. */
void gt_past_read(gt_past *out, const char *run_dir, const char *region, size_t nregions,
                  gt_trend *trend, int64_t samples, double done);
void gt_past_close(gt_past *past);

/* Returns the name of a message kind (gt_msg_kind): "update", "state", "ack", ...; NULL for an
   unknown number. */
const char *gt_record_kind_name(unsigned kind);

#define GT_RESULT_KINDS 20
typedef struct {
  char kind[16]; /* from gt_record_kind_name; a link has at most one entry per kind */
  int64_t messages, payload, wire; /* bytes */
} gt_kind_result;

typedef struct {
  char from[64], to[64];
  gt_kind_result kinds[GT_RESULT_KINDS]; /* from the ledger; messages 0 ends the list */
  /* bytes_sent: the training's traffic on the wire with headers (gt_msg_is_traffic) */
  int64_t bytes_sent, messages, bytes_other;
  int64_t payload_bytes;
  /* sent by earlier starts for lost work; not included elsewhere */
  int64_t bytes_lost;
  /* copied to this receiver for other senders, whose links have the same bytes (the relay) */
  int64_t bytes_relayed;
  double bandwidth_bps_measured, latency_s_measured; /* 0: not measured */
  double staleness_s, staleness_s_longest;           /* 0: no message was acknowledged */
} gt_link_result;

/* Sums over all links of a region, as in gt_link_result. */
typedef struct {
  int64_t messages, bytes_sent, bytes_received, bytes_other;
  double slowest_bps; /* lowest measured rate of the outgoing links; NaN: not measured */
} gt_region_traffic;

/* ---- links of many regions ---- */

/* Chooses links to list one by one, because a thousand regions have a million links.  Up to
   GT_TOLD_REGIONS regions: all.  With more: of the links with messages of the strategy, the
   GT_TOLD_LINKS busiest. */
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
/* Adds a link; call once per link.  Of equally busy links the earlier ones are listed. */
void gt_told_add(gt_told *told, size_t from, size_t to, const gt_link_traffic *traffic);
/* Returns the links to list, by sender, then by receiver, *n of them; borrowed until the next
   call. */
const gt_told_link *gt_told_links(gt_told *told, size_t *n);
size_t gt_told_left_out(const gt_told *told);
/* Returns sums over all links, listed or not: nregions entries, borrowed. */
const gt_region_traffic *gt_told_traffic(const gt_told *told);

/* ---- figures of a run, planned and measured ---- */

/* NaN: unknown. */
typedef struct {
  double
      /* on the run's clock, from the first step to the end; includes last evaluation, checkpoint
         and evaluation of the mean, excludes start-up */
      wall_s;
  /* of the slowest region: the maximum over regions of (compute_s + wan_wait_s + local_wait_s) /
     steps */
  double step_s;
  double samples_per_s; /* of all regions, over wall_s */
  double wan_bytes;     /* bytes_sent of all links */
  double waiting;       /* share of time, mean over regions of wan_wait_s / wall_s */
  double cost;          /* USD: rates times usage */
} gt_figures;

/* Returns the figures of a run or of a plan (results of a simulation). wan_bytes and cost are as in
   gt_figures; cost is NaN if no price is known. */
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

/* A term of the cost of a run in the multi-cloud study (Phalak et al., equations 1 to 9), in USD:
   by the equations, and as the messages of the run were counted; NaN: not counted. */
#define GT_COST_TERMS 10
typedef struct {
  const char *name;
  double equations, counted;
} gt_cost_term;

/* Rates times usage; not a bill. */
typedef struct {
  double usd, worker_usd, ps_usd, egress_usd; /* usd: the sum, with store_usd */
  double store_usd;                           /* requests to a store */
  double machine_hours;                       /* billed, for all ranks */
  bool assumed;                               /* includes a rate that is marked as assumed */
  gt_cost_region *regions;
  size_t nregions;
  bool has_terms; /* a region is a function, and all prices are known */
  gt_cost_term terms[GT_COST_TERMS];
  char **missing; /* items without a known price, which are not included: "PS of eu" */
  size_t nmissing;
} gt_cost_result;

/* The faults of a simulated run. */
typedef struct {
  /* losses of regions; ended: of these, regions that the others have excluded, or that had no
     majority, and that have ended with 75 */
  int64_t losses, ended;
  /* the outcomes of losses: the others have taken the region in again; all have resumed the run;
     lost again before that; refused by the others; not back before the end */
  int64_t returned, resumed, again, refused, away;
  /* cuts of links; resumes of the run; the number of the last epoch */
  int64_t cuts, resumes, epochs;
  /* Samples of the final model divided by those of an undisturbed run of the same duration; the
     difference; and samples that were trained, lost, and trained again. */
  double goodput;
  int64_t not_trained, repeated;
  double away_s; /* time in which regions did not run, sum over regions */
} gt_fault_result;

/* ---- a run ---- */

/* Arithmetic of the workers.  If workers differ, each text occurs once: "bf16+f32". */
typedef struct {
  char kernels[512], precision[16], blas_core[40];
} gt_build_texts;

typedef struct {
  const char *job, *strategy, *clock;
  double wall_s, virtual_s; /* virtual_s NaN under the real clock */
  int64_t samples;
  /* NaN: null (strategy none; not a task with two labels; not a recommender) */
  double samples_per_s, test_accuracy, test_loss, test_auc, test_recall20, test_mrr20;
  double tokens_per_s, test_perplexity; /* of texts; 0: not a text */
  char params_sha256[65];
  const gt_region_result *regions;
  /* kernels of each region, one line per layer; NULL: by rule, or no computation */
  const char *const *choices;
  const char *choices_how; /* "rule", "measured", "checkpoint", "file", or NULL */
  /* the instruction sets that each region used, or NULL: no computation */
  const char *const *isas;
  /* One entry per region for its workers, or NULL: no computation. */
  const gt_build_texts *builds;
  size_t nregions;
  const gt_link_result *links;
  size_t nlinks, links_left_out;
  /* nregions, sums over all links, if some links are not listed; otherwise NULL */
  const gt_region_traffic *traffic;
  bool unwritten; /* summary.json is not written */
  const char *version, *kernels, *precision, *blas_core, *model;
  int64_t parameters, resumes;
  /* changes of an adapting pipeline, in words; NULL: none */
  const char *adapted;
  /* How the checkpoints were judged, and which model is the final one; NULL: without validation.
     The loss of the best one; 0: none. */
  const char *validation;
  double validation_loss;
  const gt_plan_result *plan;    /* NULL: the job had no plan */
  const gt_cost_result *cost;    /* NULL: no price is known */
  const gt_fault_result *faults; /* NULL: the job has none */
} gt_summary;

/* Returns the `adapted` of a summary of these regions; the caller frees it.  NULL: no region has
   any. */
char *gt_adapted_text(const gt_region_result *regions, size_t nregions);

/* Writes DIR/summary.json under a temporary name, fsyncs and renames it.  Sorts links by region.
   If clock is "virtual", CPU seconds are null, and two runs with the same results write the same
   file except for wall_s of the run. */
gt_status gt_summary_write(const char *run_dir, const gt_summary *summary);
/* Writes the contents of the file to *text, which the caller frees, and writes such a text to
   DIR/summary.json. */
gt_status gt_summary_text(char **text, const gt_summary *summary);
gt_status gt_summary_write_text(const char *run_dir, const char *text);
/* Reads the text of a summary; `source` names it in errors (GT_ERR_CKPT).  The caller closes
   *out. */
typedef struct gt_summary_file gt_summary_file;
gt_status gt_summary_parse(gt_summary_file **out, const char *text, const char *source);
const gt_summary *gt_summary_of(const gt_summary_file *file); /* borrowed from file */
void gt_summary_close(gt_summary_file *file);                 /* NULL is allowed */
/* Prints the final table: regions, links, totals. */
void gt_summary_print(FILE *to, const gt_summary *summary);
/* Prints its lines about faults. */
void gt_print_faults(FILE *to, const gt_fault_result *faults);

/* Converts the results of a region and its links to JSON text for the lead; the caller frees it
   with gt_free. */
char *gt_result_encode(const gt_region_result *region, const gt_link_result *links, size_t nlinks);
/* Reads the text of gt_result_encode. links has room for max entries; *nlinks receives their
   number. */
gt_status gt_result_decode(const char *text, size_t size, gt_region_result *region,
                           gt_link_result *links, size_t max, size_t *nlinks);

/* Returns the columns of the terminal of `to`, or 80 if it is not a terminal. */
size_t gt_terminal_width(FILE *to);

/* ---- progress -------------------------------------------------------------------------------- */

typedef struct {
  double elapsed_s, epoch, epochs; /* epochs: target; NaN if steps or samples end the training */
  double done;                     /* share of the training done, 0..1 */
  double loss, accuracy;           /* NaN: none yet */
  double auc, recall20, mrr20;     /* NaN: none yet, or never */
  double samples_per_s;
  /* of the lead, the training's traffic sent and received; NaN: not known */
  double wan_bps, wan_in_bps;
  int64_t in_flight; /* messages of the lead that are not acknowledged yet */
  /* share of the lead's time spent waiting for the WAN, as wan_wait_s / wall_s of its result:
     0..1 */
  double waiting;
  int64_t step;
} gt_progress;

/* The rate of a count that grows in jumps, possibly rare ones; initialised to zero. */
typedef struct {
  bool begun;
  gt_ns at;
  double seen, last, spans[2], gains[2];
} gt_meter;
/* Returns the rate per second over the last two windows; NaN: not known yet.  A window takes at
   least two seconds and ends with a jump.  The rate falls while the next jump is late. */
double gt_meter_rate(gt_meter *meter, gt_ns now, double total);

typedef struct gt_live gt_live;
typedef enum { GT_LIVE_AUTO, GT_LIVE_LINE, GT_LIVE_LOG, GT_LIVE_NONE } gt_live_mode;
/* Creates a live line.  AUTO: on a terminal (or a launcher's on this host) one line that is
   redrawn, in a log one line every `every_s`. */
gt_live *gt_live_create(FILE *to, gt_live_mode mode, double every_s);
/* Draws the line, at most 5 times a second on a terminal and every every_s in a log.  Call at any
   rate. */
void gt_live_update(gt_live *live, const gt_progress *progress);
/* Ends the line, so that other output starts on a new line.  Later updates draw nothing. */
void gt_live_end(gt_live *live);
void gt_live_close(gt_live *live);

/* ---- following a run ------------------------------------------------------------------------- */

/* The state of a run, read only from its directory: docs/record-format.md. */
typedef enum {
  GT_RUN_NOTHING, /* no record yet */
  GT_RUN_RUNNING,
  GT_RUN_ENDING,  /* training has ended; last evaluation and checkpoint */
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
  gt_progress progress; /* the latest of this start */
  double quiet_s;       /* since the last activity of any region */
  bool silent;          /* quiet_s is longer than a healthy run takes between two lines */
  int code;             /* for STOPPED: 75 or 6 */
  int64_t step, round;  /* for STOPPED: step at the stop, round for the resume */
} gt_run_view;

/* A region of a run, by its own record.  NaN: not known yet. */
typedef struct {
  char name[64];
  bool lead, trained; /* trained: it has finished its own training */
  int64_t step, samples;
  double t_s, epoch, loss, compute_s, wait_s, wan_wait_s; /* as in the last progress line */
  double transfer_s; /* sum over the workers of a pipeline, as in the last phases line; else 0 */
  double done;       /* share of its training, 0..1 */
  /* in the last interval of the record: samples, and shares of the workers' time spent waiting for
     the WAN and for their server */
  double samples_per_s, wan_waiting, local_waiting;
} gt_region_view;

typedef struct gt_follow gt_follow;
/* Follows a run directory, which need not exist yet. */
gt_follow *gt_follow_create(const char *run_dir);
void gt_follow_close(gt_follow *follow);
/* Reads all new lines; the view is borrowed until the next call. */
const gt_run_view *gt_follow_poll(gt_follow *follow);
/* Writes the state of the run in one line: in training its live line, in at most width - 1
   columns. */
void gt_follow_text(const gt_follow *follow, char *text, size_t size, size_t width);
/* Returns the regions whose records are in the directory, by name, *n of them; borrowed until the
   next poll. */
const gt_region_view *const *gt_follow_regions(const gt_follow *follow, size_t *n);
/* Writes the region in one line, its name in at least `name_width` columns, with a bar that leaves
   room for the figures in width - 1 columns.  color: with escape sequences for colors. */
void gt_region_text(const gt_region_view *region, char *text, size_t size, int name_width,
                    size_t width, bool color);
/* Writes the state of the run and of its regions as one JSON object.  code: of a run that is over,
   else -1; text: its line.  The caller frees the result. */
char *gt_follow_json(const gt_follow *follow, const char *path, int code, const char *text);
/* Returns the summary of a DONE run, borrowed until the next poll; otherwise NULL. */
const gt_summary *gt_follow_summary(const gt_follow *follow);

/* ---- one line per run ------------------------------------------------------------------------ */

typedef struct {
  char text[512]; /* "": the line is not shown */
  int phase;      /* in a log a changed text is printed only if phase has changed */
  double every_s; /* or after this time */
  /* the run has ended; if the terminal has too few rows, such lines are dropped first */
  bool over;
  struct { /* private to the board: the text last shown; initialise to zero */
    char text[512];
    int phase;
    bool any;
    gt_ns at;
  } shown;
} gt_board_line;

/* True if a board of this mode is drawn in place on `to`. */
bool gt_board_in_place(FILE *to, gt_live_mode mode);

typedef struct gt_board gt_board;
/* Creates a board.  AUTO, LINE, LOG as for gt_live. */
gt_board *gt_board_create(FILE *to, gt_live_mode mode);
/* Returns the width available to a line, in columns, and the number of lines that can be drawn;
   SIZE_MAX in a log. */
size_t gt_board_width(const gt_board *board);
size_t gt_board_rows(const gt_board *board);
/* Shows the lines from top to bottom: draws those with a text or, in a log, prints those that are
   due. */
void gt_board_show(gt_board *board, gt_board_line *const *lines, size_t n);
/* Ends the drawing, so that other output starts on a new line.  The next gt_board_show redraws
   all. */
void gt_board_end(gt_board *board);
void gt_board_close(gt_board *board);
