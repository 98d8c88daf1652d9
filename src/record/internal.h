/* Shared by the modules of record: results as JSON by one table of fields, terminals, readable
   numbers. */
#pragma once

#include <jansson.h>
#include <time.h>

#include "geotrain/record.h"

/* ---- jsonl.c ---- */

json_t *gt_json_text(const char *text); /* NULL: null; bytes that are not UTF-8 become '?' */
json_t *gt_json_number(double value);   /* not finite: null */
/* Returns the number of this key, or NaN. */
double gt_json_number_of(const json_t *object, const char *key);

/* ---- summary.c ---- */

/* Returns the sum of its phases; 0: it has no stages of a pipeline. */
double gt_phases_sum(const gt_region_result *region);
bool gt_summary_is_virtual(const gt_summary *summary);
/* Reads DIR/summary.json.  The caller closes *out; GT_ERR_CKPT names the file and the error. */
gt_status gt_summary_read(gt_summary_file **out, const char *run_dir);

/* ---- store_use.c ---- */

#define GT_STORE_COUNTS(X)                                                                         \
  X(writes)                                                                                        \
  X(reads)                                                                                         \
  X(failed_reads)                                                                                  \
  X(lists) X(deletes) X(bytes_in) X(bytes_out) X(bytes_shared) X(control_writes) X(control_reads)
/* Reads the text of gt_store_text. */
void gt_store_take(gt_store_result *out, const json_t *from);

/* ---- figures.c ---- */

json_t *gt_json_plan(const gt_plan_result *plan);
json_t *gt_json_terms(const gt_cost_result *cost);
/* Texts remain owned by the JSON object. */
void gt_json_take_plan(const json_t *from, gt_plan_result *plan);
/* Print lines of the final table: the cost; the study's terms (gt_cost_result.has_terms); predicted
   and measured figures. */
void gt_print_cost(FILE *to, const gt_cost_result *cost);
void gt_print_terms(FILE *to, const gt_cost_result *cost);
void gt_print_plan(FILE *to, const gt_plan_result *plan);

/* ---- links.c ---- */

/* Returns the links sorted by sender, then by receiver, in the order of the regions.  The links are
   borrowed; the caller frees the list with gt_free. */
const gt_link_result **gt_links_ordered(const gt_summary *summary);
/* Returns sums over each region's links, nregions entries; the caller frees the list with
   gt_free. */
gt_region_traffic *gt_links_traffic(const gt_summary *summary);
/* Finds the `most` of the n links whose traffic takes longest at the measured rate, longest first.
   Links without a measured rate come last, by bytes. */
void gt_links_busiest(const gt_link_result *const *links, size_t n, const gt_link_result **busiest,
                      size_t most);

/* ---- live.c ---- */

/* Writes the live line for a terminal of `width` columns, at most width - 1 characters. left_s NaN:
   not known yet. */
void gt_live_format(char *text, size_t size, const gt_progress *progress, double left_s,
                    size_t width);
/* Returns the seconds left, at the rate since the first progress of this start: earlier starts do
   not count.  NaN: not known yet. */
double gt_live_left(const gt_progress *first, const gt_progress *last);
/* "45 s", "3 min", "2.5 h". */
char *gt_format_ago(char *buf, size_t size, double s);
/* "0:23", "1:02:03", "-:--" for NaN. */
char *gt_format_left(char *buf, size_t size, double s);
/* "41.2 k", "0.83", "2.1 M". */
char *gt_format_count(char *buf, size_t size, double value);

/* ---- terminal.c ---- */

/* True if `comm`, the name of the parent process, is a launcher that forwards the output of its
   ranks. */
bool gt_terminal_is_launcher(const char *comm);
/* True if a user would see a redrawn line. is_tty: isatty of our stream. parent_comm: the parent's
   name. parent_target: the target of the parent's same stream ("/dev/pts/3", "/tmp/log",
   "pipe:[1]"; "" if not known). */
bool gt_terminal_decide(bool is_tty, const char *parent_comm, const char *parent_target);
bool gt_terminal_reaches(FILE *to);
size_t gt_terminal_rows(FILE *to); /* 24 if not known */

/* ---- tail.c ---- */

/* Reads a JSON Lines file that may grow, lose an incomplete last line, be rewritten, or not exist
   yet. */
typedef struct gt_tail gt_tail;
typedef enum { GT_TAIL_ABSENT, GT_TAIL_SAME, GT_TAIL_MORE } gt_tail_found;
gt_tail *gt_tail_create(const char *path);
void gt_tail_close(gt_tail *tail);
const char *gt_tail_path(const gt_tail *tail);
/* Calls on_line for every line completed since the last call that is a JSON object (borrowed);
   ignores other lines.  If the file was rewritten or replaced, calls on_anew first and reads it
   from the beginning.  Does not read an incomplete last line.  MORE: the file has changed. */
gt_tail_found gt_tail_poll(gt_tail *tail, void (*on_anew)(void *ctx),
                           void (*on_line)(void *ctx, const json_t *line), void *ctx);
/* Returns the modification time of the file by the file server's clock; 0: not seen yet. */
struct timespec gt_tail_changed(const gt_tail *tail);
