/* What the rooms of record share: results as JSON by one table of fields, terminals, numbers for people. */
#ifndef GEOTRAIN_RECORD_ROOMS_H
#define GEOTRAIN_RECORD_ROOMS_H

#include <jansson.h>

#include "geotrain/record.h"

/* ---- result.c ---- */

json_t *gt_json_text(const char *text); /* NULL: null; bytes that are not UTF-8 become '?' */
json_t *gt_json_number(double value);   /* not finite: null */
json_t *gt_json_region(const gt_region_result *region);
json_t *gt_json_link(const gt_link_result *link);

/* ---- links.c ---- */

/* The links in the order of the regions, by sender, then by receiver: the caller frees the list with gt_free.  They are borrowed. */
const gt_link_result **gt_links_ordered(const gt_summary *summary);
/* Of the n links, the `most` whose traffic takes longest at the rate that was measured, longest first; not measured: by their bytes, last. */
void gt_links_busiest(const gt_link_result *const *links, size_t n, const gt_link_result **busiest, size_t most);

/* ---- summary.c ---- */

bool gt_summary_is_virtual(const gt_summary *summary);

/* ---- live.c ---- */

/* The live line's text for a width of `width` columns, at most width - 1 characters; left_s NaN: not known yet. */
void gt_live_format(char *text, size_t size, const gt_progress *progress, double left_s, size_t width);
/* "0:23", "1:02:03", "-:--" for NaN. */
char *gt_format_left(char *buf, size_t size, double s);
/* "41.2 k", "0.83", "2.1 M". */
char *gt_format_count(char *buf, size_t size, double value);

/* ---- terminal.c ---- */

/* Whether `comm`, the name of the parent process, is a launcher that holds its ranks' output. */
bool gt_terminal_is_launcher(const char *comm);
/* Whether a line drawn over and over would reach a person: `is_tty` is isatty of our stream, parent_comm the parent's name, parent_target where the parent's
   same stream points ("/dev/pts/3", "/tmp/log", "pipe:[1]"; "" when not known). */
bool gt_terminal_decide(bool is_tty, const char *parent_comm, const char *parent_target);
bool gt_terminal_reaches(FILE *to);
size_t gt_terminal_width(FILE *to);

#endif
