/* The results of a probe of a job on rank 0, for tests of the report, the profile and the
   verdict. */
#pragma once

#include "tests.h"
#include "internal.h"

/* A job with these regions (YAML, such as "[{name: a, ranks: 2}]") and this wan section (YAML). */
gt_job *w_job(const char *regions, const char *wan);

/* For a job of `ranks` ranks a region, without faults: one machine with a core for each rank, links
   as in the job.  A test changes what it tests.  The caller closes it. */
gt_probe_state *w_found(const char *regions, const char *wan);
void w_close(gt_probe_state *p);
gt_probe_link *w_link(const gt_probe_state *p, size_t from, size_t to);
/* The worker (-1: the PS) of a region. */
gt_probe_rank *w_rank(const gt_probe_state *p, size_t region, int worker);

/* The output of `print`; valid until the next call. */
const char *w_print(const gt_probe_state *p, void (*print)(const gt_probe_state *p, FILE *to));
/* The reasons for a NO-GO as text, valid until the next call; *n: their number. */
const char *w_reasons(const gt_probe_state *p, size_t *n);
size_t w_lines(const char *text);
