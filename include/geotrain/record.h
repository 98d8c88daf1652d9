/* record: a region's JSON Lines, summary.json, the live line and the final table.  Floor 4.  Local; no MPI.
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

/* One line {"t": seconds, "event": "...", ...}.  `format` describes the fields: a list of "name" , type pairs as in
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
} gt_region_result;

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
  double bandwidth_bps_measured, latency_s_measured; /* 0: not measured */
} gt_link_result;

typedef struct {
  const char *job, *strategy, *clock;
  double wall_s, virtual_s; /* virtual_s NaN under the real clock */
  int64_t samples;
  double samples_per_s, test_accuracy, test_loss, test_auc; /* NaN: null (strategy none; labels that are not two) */
  char params_sha256[65];
  const gt_region_result *regions;
  size_t nregions;
  const gt_link_result *links;
  size_t nlinks;
  const char *version, *kernels, *precision, *blas_core, *model;
  int64_t parameters, resumes;
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
  double elapsed_s, epoch, epochs;        /* epochs: to reach; NaN when training ends by steps or samples */
  double done;                            /* share of the training done, 0..1 */
  double loss, accuracy;                  /* NaN: none yet */
  double auc;                             /* NaN: none yet, or never */
  double samples_per_s, wan_bps, waiting; /* waiting: share of worker time spent waiting for the WAN, 0..1 */
  int64_t step;
} gt_progress;

typedef struct gt_live gt_live;
typedef enum { GT_LIVE_AUTO, GT_LIVE_LINE, GT_LIVE_LOG, GT_LIVE_NONE } gt_live_mode;
/* AUTO: one line drawn over and over on a terminal (also when a launcher on this host holds the terminal), a line every `every_s` in a log. */
gt_live *gt_live_create(FILE *to, gt_live_mode mode, double every_s);
/* Called as often as one likes; draws at most 5 times a second (line) or every every_s (log). */
void gt_live_update(gt_live *live, const gt_progress *progress);
/* Ends the line, so that other output starts on a fresh one. */
void gt_live_end(gt_live *live);
void gt_live_close(gt_live *live);

#endif
