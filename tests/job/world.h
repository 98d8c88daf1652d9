/* Job files for tests of readers: loaded, refused, resolved and damaged ones. */
#pragma once

#include "geotrain/job.h"
#include "tests.h"

/* Flips, cuts, copies of parts, and characters that are special in YAML and CSV; returns the new
   length, n at most. */
size_t w_damage(char *text, size_t n, gt_rng *rng);

/* Loads `text`, with `more` appended (NULL: nothing), as job.yaml in the folder of the test. */
gt_status w_load(gt_job **job, const char *text, const char *more, const char *const *sets,
                 size_t nsets);
gt_job *w_job(const char *text, const char *more, const char *const *sets, size_t nsets);
/* Returns `expected`, valid until the next call; the name of `file` takes the place of a leading
   '@'. */
const char *w_sentence(const char *file, const char *expected);
/* Checks that w_load fails with this sentence; '@' stands for the job file. */
void w_refused(const char *text, const char *more, const char *const *sets, size_t nsets,
               const char *expected);
/* Checks how the second job differs from the first (gt_job_difference). */
void w_differ(const gt_job *here, const gt_job *there, bool for_resume, const char *expected);
/* The job for scripts (gt_job_flat); the caller frees it. */
char *w_flat(const gt_job *job);
/* Loads the resolved job, which must resolve to the same text; the caller closes the job. */
gt_job *w_again(const gt_job *job);
