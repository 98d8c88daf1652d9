/* Finds the file that a region of a job reads, and its training samples. */
#include <stdio.h>
#include <string.h>

#include "dataset.h"

const char *gt_data_path(const gt_job *job, size_t region) {
  const char *own = job->regions[region].data_path;
  return own ? own : job->data.path;
}

gt_status gt_data_open(gt_dataset **out, const gt_job *job, size_t region) {
  const char *path = gt_data_path(job, region);
  GT_TRY(gt_dataset_open(out, path));
  const gt_dataset_info *info = gt_dataset_describe(*out);
  const bool ids = info->input == GT_INPUT_IDS, table = info->h * info->w == 1;
  if ((!ids && !table) || job->data.augment == GT_AUGMENT_NONE) return GT_OK;
  gt_dataset_close(*out);
  *out = NULL;
  return GT_FAIL(GT_ERR_JOB, "data.augment is %s, but the samples of %s are %s; expected images",
                 gt_augment_names[job->data.augment], path, ids ? "ids" : "rows of a table");
}

size_t gt_data_namesake(const gt_job *job, size_t region) {
  size_t r = 0;
  while (!gt_job_reads(job, r) || strcmp(gt_data_path(job, r), gt_data_path(job, region)) != 0) r++;
  return r;
}

size_t gt_data_first(const gt_job *job) {
  size_t r = 0;
  while (!gt_job_reads(job, r)) r++;
  return r;
}

gt_status gt_data_unite(const gt_job *job, const gt_class_names *names,
                        const gt_dataset_info *infos, gt_class_names *all) {
  *all = (gt_class_names){0};
  for (size_t r = 0; r < job->nregions; r++) {
    if (!gt_job_reads(job, r) || (infos && !infos[r].h)) continue;
    if (names[r].n == 0)
      return GT_FAIL(GT_ERR_DATA,
                     "data.classes is union, and the classes of region %s (%s) have no names; "
                     "expected the attribute class_names, as an import writes it",
                     job->regions[r].name, gt_data_path(job, r));
    gt_class_names_join(all, &names[r]);
  }
  return GT_OK;
}

/* ---- what other regions say ------------------------------------------------------------------ */

gt_status gt_data_check_size(const gt_job *job, size_t region, const char *what, size_t n) {
  if (n <= GT_DATA_SIZE_MAX) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "region %s says that its data has %zu %s; expected at most %zu",
                 job->regions[region].name, n, what, GT_DATA_SIZE_MAX);
}

gt_status gt_data_check_infos(const gt_job *job, gt_dataset_info *infos) {
  for (size_t r = 0; r < job->nregions; r++) {
    gt_dataset_info *d = &infos[r];
    const struct {
      const char *what;
      size_t n;
    } sizes[] = {{"rows", d->h},
                 {"columns", d->w},
                 {"channels", d->c},
                 {"classes", d->classes},
                 {"features", d->features},
                 {"bytes of class names", d->class_names_bytes}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      GT_TRY(gt_data_check_size(job, r, sizes[i].what, sizes[i].n));
    if ((unsigned)d->input > GT_INPUT_IDS ||
        (d->class_names_sha256[0] && d->class_names_bytes < d->classes))
      return GT_FAIL(GT_ERR_FAULT, "region %s sends a description of its data that is damaged",
                     job->regions[r].name);
    d->class_names = NULL; /* a pointer of another process */
    d->name[sizeof d->name - 1] = d->vocabulary_sha256[64] = d->class_names_sha256[64] = '\0';
    d->schema_sha256[64] = d->samples_sha256[64] = d->tests_sha256[64] = '\0';
  }
  return GT_OK;
}

gt_status gt_data_check_names(const gt_job *job, const gt_dataset_info *infos) {
  for (size_t r = 0; r < job->nregions; r++) {
    const gt_dataset_info *d = &infos[r];
    size_t n = 0;
    for (size_t i = 0; d->class_names && i < d->class_names_bytes; i++)
      n += d->class_names[i] == '\0';
    if (d->class_names && n < d->classes)
      return GT_FAIL(GT_ERR_FAULT, "region %s sends %zu class names; expected %zu",
                     job->regions[r].name, n, d->classes);
  }
  return GT_OK;
}

/* ---- comparison of regions ------------------------------------------------------------------- */

/* Writes "28 x 28 x 1 uint8 of 10 classes". */
static const char *describe(const gt_dataset_info *d, char buf[128]) {
  int at = snprintf(buf, 128, "%zu x %zu x %zu %s of %zu classes", d->h, d->w, d->c,
                    gt_data_input_names[d->input], d->classes);
  if (d->input == GT_INPUT_IDS)
    at += snprintf(buf + at, 128 - (size_t)at, " and %zu features", d->features);
  if (d->vocabulary_sha256[0])
    snprintf(buf + at, 128 - (size_t)at, ", vocabulary %.8s", d->vocabulary_sha256);
  return buf;
}

static bool same_shape(const gt_dataset_info *a, const gt_dataset_info *b) {
  return a->h == b->h && a->w == b->w && a->c == b->c && a->classes == b->classes &&
         a->input == b->input && a->features == b->features &&
         strcmp(a->vocabulary_sha256, b->vocabulary_sha256) == 0;
}

#define NUMBER_ALIKE                                                                               \
  "number classes, ids and columns alike: `geotrain data schema` makes one schema of the files, "  \
  "which `geotrain data import --schema` or `data classes --schema` uses; data.classes union "     \
  "joins "                                                                                         \
  "the classes of all regions by their names"

/* Returns advice if regions differ in something that can be numbered in more than one way; "":
   their data differ in kind. */
static const char *advice(const gt_dataset_info *a, const gt_dataset_info *b) {
  const bool table = a->scaled && a->input == GT_INPUT_FLOATS;
  if (a->h == b->h && a->w == b->w && a->c + b->c == 4 && a->c != b->c &&
      a->input == GT_INPUT_BYTES && b->input == GT_INPUT_BYTES)
    return ": import pictures with one --channels, 1 (gray) or 3 (RGB), in all regions";
  if (a->h != b->h || a->w != b->w || (a->c != b->c && !table) || a->input != b->input ||
      a->text != b->text)
    return "";
  return a->text ? ": import one of them, and the others with --vocabulary-of that file"
                 : ": " NUMBER_ALIKE;
}

static gt_status check_shape(const gt_job *job, const gt_dataset_info *infos, size_t region) {
  char here[128], there[128];
  const size_t first = gt_data_first(job);
  if (same_shape(&infos[first], &infos[region])) return GT_OK;
  return GT_FAIL(
      GT_ERR_DATA,
      "region %s has samples of %s (%s), region %s of %s (%s); all regions need the same%s",
      job->regions[region].name, describe(&infos[region], there), gt_data_path(job, region),
      job->regions[first].name, describe(&infos[first], here), gt_data_path(job, first),
      advice(&infos[first], &infos[region]));
}

/* Returns the first region whose classes have names; nregions: none. */
static size_t first_named(const gt_job *job, const gt_dataset_info *infos) {
  size_t r = 0;
  while (r < job->nregions && !infos[r].class_names_sha256[0]) r++;
  return r;
}

size_t gt_data_renamed(const gt_job *job, const gt_dataset_info *infos) {
  const size_t first = first_named(job, infos);
  size_t r = first;
  while (r < job->nregions &&
         (!infos[r].class_names_sha256[0] ||
          strcmp(infos[r].class_names_sha256, infos[first].class_names_sha256) == 0))
    r++;
  return r;
}

static gt_status check_names(const gt_job *job, const gt_dataset_info *infos) {
  const size_t region = gt_data_renamed(job, infos), first = first_named(job, infos);
  gt_class_difference d = {0};
  if (region == job->nregions) return GT_OK;
  gt_class_names_differ(infos[first].class_names, infos[region].class_names, infos[first].classes,
                        &d);
  return GT_FAIL(GT_ERR_DATA,
                 "regions %s and %s number their classes differently: class %zu is `%s` in %s (%s) "
                 "and `%s` in %s (%s); " NUMBER_ALIKE,
                 job->regions[first].name, job->regions[region].name, d.class, d.a,
                 job->regions[first].name, gt_data_path(job, first), d.b, job->regions[region].name,
                 gt_data_path(job, region));
}

/* Checks the files of one path, which can be different files on different machines only if the job
   says so (data.partition.by file). */
static gt_status check_path(const gt_job *job, const gt_dataset_info *infos, size_t region) {
  const size_t other = gt_data_namesake(job, region);
  if (strcmp(infos[other].samples_sha256, infos[region].samples_sha256) == 0 ||
      job->data.partition.by == GT_PART_FILE)
    return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "regions %s and %s both name %s and find other training samples there (%zu in "
                 "region %s, %zu in region %s); expected the same file, or data.partition.by file "
                 "where each region has one of its own",
                 job->regions[other].name, job->regions[region].name, gt_data_path(job, region),
                 infos[other].ntrain, job->regions[other].name, infos[region].ntrain,
                 job->regions[region].name);
}

gt_status gt_data_files(const gt_job *job, const gt_dataset_info *infos, size_t *files) {
  for (size_t r = 0; r < job->nregions; r++)
    if (gt_job_reads(job, r)) GT_TRY(check_shape(job, infos, r));
  GT_TRY(check_names(job, infos));
  for (size_t r = 0; r < job->nregions; r++) {
    files[r] = r;
    if (!gt_job_reads(job, r)) continue;
    GT_TRY(check_path(job, infos, r));
    files[r] = gt_data_first(job);
    while (!gt_job_reads(job, files[r]) ||
           strcmp(infos[files[r]].samples_sha256, infos[r].samples_sha256) != 0)
      files[r]++;
  }
  return GT_OK;
}

/* ---- partition ------------------------------------------------------------------------------- */

/* Returns the partition of a file's readers.  A single reader gets all of it.  With `by: file`, a
   file that several regions read is divided by shares. */
static gt_part_kind kind_of(const gt_job *job, size_t readers) {
  const gt_part_kind by = job->data.partition.by;
  return readers == 1 ? GT_PART_FILE : by == GT_PART_FILE ? GT_PART_SHARES : by;
}

gt_status gt_data_held(const gt_job *job, size_t region, size_t n, size_t *held) {
  *held = (size_t)(job->data.validation * (double)n + 0.5);
  if (job->data.validation <= 0 || (*held > 0 && *held < n)) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "data.validation is %g and region %s has %zu training samples, of which %zu would "
                 "be held back; expected at least one, and one to train with",
                 job->data.validation, job->regions[region].name, n, *held);
}

/* Moves samples of the region's part to *held: as many as gt_data_held says, each set of them as
   likely (selection sampling: Knuth, The Art of Computer Programming 2, 3.4.2). */
static gt_status hold_back(const gt_job *job, size_t region, gt_data_samples *part,
                           gt_data_samples *held) {
  const size_t all = part->n;
  size_t want;
  GT_TRY(gt_data_held(job, region, all, &want));
  gt_rng rng = gt_rng_make(job->seed, GT_RNG_HELD_BACK, region, 0);
  held->samples = GT_NEW_ARRAY(uint32_t, want);
  part->n = 0;
  for (size_t i = 0; i < all; i++) {
    gt_data_samples *to = gt_rng_below(&rng, all - i) < want - held->n ? held : part;
    to->samples[to->n++] = part->samples[i];
  }
  return GT_OK;
}

gt_status gt_data_part(const gt_job *job, const size_t *files, size_t region, const int32_t *labels,
                       size_t n, gt_data_samples *part, gt_data_samples *held) {
  double *shares = GT_NEW_ARRAY(double, job->nregions);
  const char **names = GT_NEW_ARRAY(const char *, job->nregions);
  size_t readers = 0, place = 0;
  for (size_t r = 0; r < job->nregions; r++) {
    if (files[r] != files[region]) continue;
    if (r == region) place = readers;
    names[readers] = job->regions[r].name;
    shares[readers++] = job->data.partition.shares ? job->data.partition.shares[r] : 1;
  }
  const gt_partition p = {.kind = kind_of(job, readers),
                          .nregions = readers,
                          .shares = shares,
                          .names = names,
                          .alpha = job->data.partition.alpha,
                          .seed = job->seed};
  *part = *held = (gt_data_samples){0};
  gt_status status = gt_partition_part(&p, labels, n, place, &part->samples, &part->n);
  if (status == GT_OK && job->data.validation > 0) status = hold_back(job, region, part, held);
  gt_free(names);
  gt_free(shares);
  return status;
}

gt_norm_source gt_data_norm_source(const gt_job *job, const gt_dataset_info *infos) {
  const size_t first = gt_data_first(job);
  if (job->data.nmean > 0) return GT_NORM_JOB;
  if (job->sync.min_regions > 0) return GT_NORM_FIRST;
  for (size_t r = first + 1; r < job->nregions; r++)
    if (gt_job_reads(job, r) && strcmp(infos[first].schema_sha256, infos[r].schema_sha256) != 0)
      return GT_NORM_SUMS;
  return GT_NORM_FILES;
}

gt_status gt_data_normalise(gt_dataset *dataset, const gt_job *job, const char *path) {
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  const size_t c = info->c;
  if (!info->scaled)
    return GT_FAIL(GT_ERR_JOB,
                   "data.mean is given, but the samples of %s are not scaled; expected uint8 "
                   "images or a table",
                   path);
  if (job->data.nmean != c)
    return GT_FAIL(
        GT_ERR_JOB,
        "data.mean has %zu numbers, and the samples of %s %zu channels; expected one a channel",
        job->data.nmean, path, c);
  float *norm = GT_NEW_ARRAY(float, 2 * c);
  for (size_t i = 0; i < c; i++) {
    norm[i] = (float)job->data.mean[i];
    norm[c + i] = (float)job->data.std[i];
  }
  gt_dataset_normalise(dataset, norm, norm + c);
  gt_free(norm);
  return GT_OK;
}
