/* Opens the regions' data and finds this rank's samples.  All ranks get the description of every
   region's data, so that all reach the same verdict and the same division. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

static gt_status agree(const gt_run *run, gt_status local) {
  return gt_agree(run->roles.world, local, run->start_limit_s);
}

/* True if this region has data. */
static bool reads(const gt_run *run) {
  return gt_job_reads(run->job, run->roles.region_id);
}

static gt_status open_own(gt_run *run) {
  if (!reads(run)) return GT_OK;
  GT_TRY(gt_data_open(&run->dataset, run->job, run->roles.region_id));
  run->data = *gt_dataset_describe(run->dataset);
  return GT_OK;
}

/* Gathers `bytes` from every PS, in region order, on all ranks; of a late region, what the first one
   has.  Collective over the world; the caller frees the result. */
static void *gather(const gt_run *run, const void *own, size_t bytes) {
  static const char what[] = "what the other regions' data are";
  const gt_roles *roles = &run->roles;
  char *of_all = gt_alloc(run->job->nregions, bytes);
  if (roles->is_ps) gt_peers_gather(roles->ps, own, bytes, of_all, what, run->start_limit_s);
  gt_peers_share(roles->region, 0, of_all, bytes * run->job->nregions, what, run->start_limit_s);
  return of_all;
}

/* Gathers a number from every PS, as gather; a region whose number is too large ends the run. */
static size_t *gather_sizes(const gt_run *run, size_t own, const char *what) {
  size_t *all = gather(run, &own, sizeof own);
  for (size_t r = 0; r < run->job->nregions; r++) {
    const gt_status status = gt_data_check_size(run->job, r, what, all[r]);
    if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
  }
  return all;
}

/* Checks that this rank reads the same file as its PS: on another machine the same name can be
   another file. */
static gt_status same_as_ps(const gt_run *run, const gt_dataset_info *ps) {
  const gt_dataset_info *own = &run->data;
  if (strcmp(own->schema_sha256, ps->schema_sha256) == 0 &&
      strcmp(own->samples_sha256, ps->samples_sha256) == 0 &&
      strcmp(own->tests_sha256, ps->tests_sha256) == 0)
    return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "rank %d finds another %s (%zu training samples) than the PS of its region %s "
                 "(%zu); expected the same file",
                 run->roles.world_rank, gt_data_path(run->job, run->roles.region_id), own->ntrain,
                 run->region, ps->ntrain);
}

/* Opens a data set without samples: a region that only aggregates needs the description of the
   others' data for its model and files. */
static void open_empty(gt_run *run, const gt_dataset_info *first, const float *norm) {
  run->dataset = gt_dataset_empty(first);
  gt_dataset_normalise(run->dataset, norm, norm + first->c);
  run->data = *gt_dataset_describe(run->dataset);
}

/* Returns `bytes` bytes of a region, which it gives, on all ranks.  Collective over the world; the
   caller frees the result. */
static void *share(const gt_run *run, size_t region, const void *given, size_t bytes) {
  static const char what[] = "a description of another region's data";
  char *all = gt_alloc(bytes + 1, 1);
  if (run->roles.region_id == region && bytes > 0) memcpy(all, given, bytes);
  if (run->roles.is_ps)
    gt_peers_share(run->roles.ps, region, all, bytes + 1, what, run->start_limit_s);
  gt_peers_share(run->roles.region, 0, all, bytes + 1, what, run->start_limit_s);
  return all;
}

/* Returns means, then standard deviations, of the first region with data; the caller frees them. */
static float *first_norm(const gt_run *run, const gt_dataset_info *infos) {
  const size_t first = gt_data_first(run->job), c = infos[first].c;
  float *own = GT_NEW_ARRAY(float, 2 * c);
  if (run->roles.region_id == first) {
    memcpy(own, gt_dataset_mean(run->dataset), c * sizeof *own);
    memcpy(own + c, gt_dataset_std(run->dataset), c * sizeof *own);
  }
  float *norm = share(run, first, own, 2 * c * sizeof *own);
  gt_free(own);
  return norm;
}

/* Returns the names of the classes of every region, most + 1 bytes each, on all ranks.  Collective
   over the world; the caller frees the result. */
static char *gather_names(const gt_run *run, size_t most) {
  char *own = gt_alloc(most + 1, 1);
  const size_t bytes = reads(run) ? run->data.class_names_bytes : 0;
  if (bytes > 0 && bytes <= most) /* those of a late region can be longer */
    memcpy(own, run->data.class_names, run->data.class_names_bytes);
  char *all = gather(run, own, most + 1);
  for (size_t r = 0; r < run->job->nregions; r++) all[r * (most + 1) + most] = '\0';
  gt_free(own);
  return all;
}

/* Shares the class names of all regions, for the error message if they differ: sets
   infos[].class_names, which point into the result; the caller frees it. */
static char *share_names(const gt_run *run, gt_dataset_info *infos) {
  const size_t n = run->job->nregions;
  size_t most = 0;
  for (size_t r = 0; r < n; r++)
    if (infos[r].class_names_bytes > most) most = infos[r].class_names_bytes;
  if (gt_data_renamed(run->job, infos) == n) return NULL;
  char *all = gather_names(run, most);
  for (size_t r = 0; r < n; r++)
    if (infos[r].class_names_bytes > 0) infos[r].class_names = all + r * (most + 1);
  return all;
}

/* Logs how many classes there are together, and the regions that do not have all of them. */
static void say_union(const gt_job *job, const gt_class_names *names, size_t n) {
  char text[1024] = "";
  size_t at = 0;
  for (size_t r = 0; r < job->nregions && at < sizeof text; r++)
    if (gt_job_reads(job, r) && names[r].n < n)
      at += (size_t)snprintf(text + at, sizeof text - at, "%s %s has %zu", at ? "," : "; region",
                             job->regions[r].name, names[r].n);
  gt_log_job(GT_LOG_INFO, "the regions have %zu classes together%s", n, text);
}

/* data.classes union: numbers the classes of this region as all regions do. */
static gt_status unite_classes(gt_run *run) {
  const size_t n = run->job->nregions, own = reads(run) ? run->data.class_names_bytes : 0;
  size_t *bytes = gather_sizes(run, own, "bytes of class names"), most = 0;
  gt_class_names *names = GT_NEW_ARRAY(gt_class_names, n), all = {0};
  for (size_t r = 0; r < n; r++)
    if (bytes[r] > most) most = bytes[r];
  char *texts = gather_names(run, most);
  for (size_t r = 0; r < n; r++) {
    names[r] = (gt_class_names){.text = texts + r * (most + 1), .bytes = bytes[r]};
    for (size_t i = 0; i < bytes[r]; i++) names[r].n += names[r].text[i] == '\0';
  }
  gt_status status = gt_data_unite(run->job, names, NULL, &all);
  if (status == GT_OK) say_union(run->job, names, all.n);
  if (status == GT_OK && reads(run)) {
    status = gt_dataset_number_classes(run->dataset, &all, "the union");
    run->data = *gt_dataset_describe(run->dataset);
  }
  gt_free(all.text);
  gt_free(texts);
  gt_free(names);
  gt_free(bytes);
  return status;
}

/* Returns the text's merges, concatenated. */
static const int64_t *merges_of(const gt_run *run, size_t *n) {
  const gt_tokens *tokens = gt_dataset_tokens(run->dataset);
  *n = run->nmerges;
  if (!tokens) return run->merges;
  const int64_t *merges = gt_tokens_merges(tokens, n);
  *n *= 2;
  return merges;
}

/* Sends the merges of the first region with data to regions without: the final model, which they
   can write, is only useful with its vocabulary. */
static void share_merges(gt_run *run, const gt_dataset_info *infos) {
  const size_t first = gt_data_first(run->job);
  const bool gives = run->roles.region_id == first;
  const int64_t *given = NULL;
  size_t n = 0;
  if (!infos[first].text) return;
  if (gives) given = merges_of(run, &n);
  size_t *counts = gather_sizes(run, n, "merges");
  n = counts[first];
  gt_free(counts);
  run->merges = share(run, first, given, n * sizeof *given);
  run->nmerges = n;
}

/* Gives all ranks the text of the first region that has one, of *bytes bytes; NULL: none has.  The
   caller frees it. */
static char *settle(const gt_run *run, const char *own, size_t *bytes) {
  size_t *sizes = gather_sizes(run, *bytes, "bytes of names"), region = 0;
  while (region < run->job->nregions && sizes[region] == 0) region++;
  *bytes = region < run->job->nregions ? sizes[region] : 0;
  gt_free(sizes);
  return *bytes > 0 ? share(run, region, own, *bytes) : NULL;
}

/* Finds the names of the classes, and the columns of a table, for model files. */
static gt_status settle_texts(gt_run *run) {
  char *columns = NULL;
  const gt_status status = agree(
      run, reads(run) ? gt_dataset_columns(run->dataset, &columns, &run->columns_bytes) : GT_OK);
  if (status == GT_OK) {
    run->class_names_bytes = reads(run) ? run->data.class_names_bytes : 0;
    run->class_names = settle(run, run->data.class_names, &run->class_names_bytes);
    run->columns = settle(run, columns, &run->columns_bytes);
  }
  gt_free(columns);
  return status;
}

/* Logs that regions share samples, which is perhaps unintended: copies, links, or one file where
   each region should have its own. */
static void say_shared(const gt_job *job, const size_t *files) {
  for (size_t r = 0; r < job->nregions; r++) {
    if (files[r] == r) continue;
    const char *here = gt_data_path(job, r), *there = gt_data_path(job, files[r]);
    if (strcmp(here, there) == 0 && job->data.partition.by != GT_PART_FILE) continue;
    gt_log_job(
        GT_LOG_WARN,
        "regions %s and %s read the same training samples (%s, %s): they are divided between them",
        job->regions[files[r]].name, job->regions[r].name, there, here);
  }
}

/* Logs that some regions name their classes and others do not, so they are not compared. */
static void say_unnamed(const gt_job *job, const gt_dataset_info *infos) {
  size_t with = job->nregions, without = job->nregions;
  for (size_t r = job->nregions; r-- > 0;)
    if (gt_job_reads(job, r)) *(infos[r].class_names_sha256[0] ? &with : &without) = r;
  if (with == job->nregions || without == job->nregions) return;
  gt_log_job(
      GT_LOG_WARN,
      "the classes of region %s have names and those of region %s do not, so their numbering "
      "is not compared",
      job->regions[with].name, job->regions[without].name);
}

/* ---- regions that join later ---- */

/* Describes them like the first region, with the samples of the region whose path they have, by the
   job of the first region: paths can differ between sites. */
static void assume_late(const gt_run *run, gt_dataset_info *infos) {
  const gt_job *job = run->job;
  if (!run->late) return;
  for (size_t r = 0; r < job->nregions; r++) {
    if (!run->late[r] || !gt_job_reads(job, r)) continue;
    const size_t of = job->data.partition.by == GT_PART_FILE ? r : gt_data_namesake(job, r);
    char *samples = infos[r].samples_sha256;
    if (run->late[of])
      snprintf(samples, sizeof infos[r].samples_sha256, "late %zu", of);
    else
      memcpy(samples, infos[of].samples_sha256, sizeof infos[r].samples_sha256);
  }
  gt_peers_share(run->roles.world, 0, infos, job->nregions * sizeof *infos,
                 "what is assumed of the data of other regions", run->start_limit_s);
}

/* Their test sets are not known. */
static void leave_out_late_tests(gt_run *run) {
  for (size_t r = 0; r < run->job->nregions; r++)
    if (gt_setup_is_late(run, r)) run->tests[r] = (gt_ps_tests){.first = r};
}

/* Checks the data of a region that joins against what the others have assumed. */
static gt_status check_late(const gt_run *run, const gt_dataset_info *infos, const size_t *files) {
  const size_t n = run->job->nregions, self = run->roles.region_id, first = gt_data_first(run->job);
  const char *path = gt_data_path(run->job, self);
  gt_dataset_info *found = GT_NEW_ARRAY(gt_dataset_info, n);
  size_t *of = GT_NEW_ARRAY(size_t, n), other = 0;
  memcpy(found, infos, n * sizeof *found);
  found[self] = run->data;
  found[self].class_names_sha256[0] = '\0';
  gt_status status = gt_data_files(run->job, found, of);
  while (status == GT_OK && other < n && of[other] == files[other]) other++;
  if (status == GT_OK && other < n)
    status = GT_FAIL(GT_ERR_DATA,
                     "region %s joins a run that has begun without it, and its training samples "
                     "(%s) are %s; expected %s",
                     run->region, path,
                     files[self] == self ? "those of another region" : "not those of the others",
                     files[self] == self ? "samples of its own" : "the same file");
  if (status == GT_OK && run->data.class_names_sha256[0] && infos[first].class_names_sha256[0] &&
      strcmp(run->data.class_names_sha256, infos[first].class_names_sha256) != 0)
    status =
        GT_FAIL(GT_ERR_DATA,
                "region %s joins a run that has begun without it, and its classes (%s) are not "
                "those of region %s in the same order; renumber them with geotrain data schema",
                run->region, path, run->job->regions[first].name);
  gt_free(of);
  gt_free(found);
  return status;
}

static gt_status divide(gt_run *run, const gt_dataset_info *infos) {
  const size_t region = run->roles.region_id;
  gt_data_samples part = {0};
  size_t *files = GT_NEW_ARRAY(size_t, run->job->nregions);
  const bool late = gt_setup_is_late(run, region);
  gt_dataset_info ps = late ? run->data : infos[region];
  if (late)
    gt_peers_share(run->roles.region, 0, &ps, sizeof ps, "what its PS has found",
                   run->start_limit_s);
  gt_status status = reads(run) ? same_as_ps(run, &ps) : GT_OK;
  if (status == GT_OK) status = gt_data_files(run->job, infos, files);
  if (status == GT_OK && late) status = check_late(run, infos, files);
  if (status == GT_OK && reads(run))
    status = gt_data_part(run->job, files, region, gt_dataset_labels(run->dataset, GT_SPLIT_TRAIN),
                          run->data.ntrain, &part, &run->held);
  run->part = part.samples;
  run->npart = part.n;
  if (status == GT_OK) say_shared(run->job, files);
  if (status == GT_OK) say_unnamed(run->job, infos);
  if (status == GT_OK && run->roles.is_ps && reads(run) && files[region] == region)
    status = gt_dataset_doubts(run->dataset, gt_log_warning);
  run->order = (gt_order){.seed = run->job->seed,
                          .region = region,
                          .n = run->npart,
                          .batch = (size_t)run->job->train.batch};
  gt_free(files);
  return status;
}

/* ---- normalisation --------------------------------------------------------------------------- */

static void normalise(gt_run *run, const float *mean, const float *std) {
  gt_dataset_normalise(run->dataset, mean, std);
  run->data = *gt_dataset_describe(run->dataset);
}

/* Uses the mean and std given in the job. */
static gt_status from_job(gt_run *run) {
  const gt_job *job = run->job;
  const size_t region = reads(run) ? run->roles.region_id : gt_data_first(job);
  GT_TRY(gt_data_normalise(run->dataset, job, gt_data_path(job, region)));
  run->data = *gt_dataset_describe(run->dataset);
  return GT_OK;
}

/* Writes "mean 0.286041, std 0.353024" of the data set. */
static void describe(const gt_dataset *dataset, char *text, size_t size) {
  const float *const values[2] = {gt_dataset_mean(dataset), gt_dataset_std(dataset)};
  const size_t c = gt_dataset_describe(dataset)->c;
  size_t at = 0;
  if (c > 4) snprintf(text, size, "mean and std of %zu columns", c);
  for (size_t v = 0; v < 2 && c <= 4; v++)
    for (size_t i = 0; i < c && at < size; i++)
      at += (size_t)snprintf(text + at, size - at, "%s %.6g",
                             i > 0    ? ""
                             : v == 0 ? "mean"
                                      : ", std",
                             (double)values[v][i]);
}

/* Computes them from all training samples of all regions, each counted once.  The sums are added in
   region order; those of images are integers. */
static gt_status from_sums(gt_run *run) {
  const size_t c = run->data.c, n = GT_DATA_SUMS(c);
  double *own = GT_NEW_ARRAY(double, n), *sums = GT_NEW_ARRAY(double, n);
  float *norm = GT_NEW_ARRAY(float, 2 * c);
  const bool sums_up = run->roles.is_ps && reads(run);
  gt_status status =
      agree(run, sums_up ? gt_dataset_sums(run->dataset, run->part, run->npart, own) : GT_OK);
  if (status == GT_OK) {
    char text[256];
    double *all = gather(run, own, n * sizeof *own);
    for (size_t i = 0; i < n * run->job->nregions; i++) sums[i % n] += all[i];
    gt_free(all);
    gt_data_moments(run->data.input, sums, c, norm, norm + c);
    normalise(run, norm, norm + c);
    describe(run->dataset, text, sizeof text);
    gt_log_job(
        GT_LOG_INFO,
        "the regions' files differ in mean or std: those of all their training %s are used, %s",
        run->data.input == GT_INPUT_BYTES ? "images" : "rows", text);
  }
  gt_free(norm);
  gt_free(sums);
  gt_free(own);
  return status;
}

static gt_status from_first(gt_run *run, const gt_dataset_info *infos) {
  float *norm = first_norm(run, infos);
  normalise(run, norm, norm + run->data.c);
  gt_free(norm);
  return GT_OK;
}

/* Settles one normalisation for all regions, so that the same image gives the same input
   everywhere. */
static gt_status settle_normalisation(gt_run *run, const gt_dataset_info *infos) {
  switch (gt_data_norm_source(run->job, infos)) {
  case GT_NORM_JOB:
    return agree(run, from_job(run));
  case GT_NORM_FIRST:
    return from_first(run, infos);
  case GT_NORM_SUMS:
    return from_sums(run);
  default:
    return GT_OK;
  }
}

static bool all_read(const gt_job *job) {
  for (size_t r = 0; r < job->nregions; r++)
    if (!gt_job_reads(job, r)) return false;
  return true;
}

/* The regions of a pipeline take the batches of the region of their replica that has the data.  All
   batches are full, so that micro-batches are. */
static gt_status open_batches(gt_run *run, const gt_dataset_info *infos) {
  const gt_job *job = run->job;
  const size_t first = gt_job_stage_region(job, gt_job_replica_of(job, run->roles.region_id), 0);
  const int64_t own = (int64_t)run->npart;
  int64_t *parts = gather(run, &own, sizeof own);
  run->pipe = GT_NEW(gt_run_pipe);
  run->pipe->first = first;
  run->pipe->ntest = infos[first].ntest;
  run->order.n = (size_t)parts[first];
  run->order.whole = true;
  const gt_status status = gt_ps_check_stages(job, parts);
  gt_free(parts);
  return status;
}

gt_status gt_setup_open_data(gt_run *run) {
  GT_TRY(agree(run, open_own(run)));
  if (run->job->data.classes == GT_CLASSES_UNION) GT_TRY(agree(run, unite_classes(run)));
  gt_dataset_info *infos = gather(run, &run->data, sizeof run->data);
  assume_late(run, infos);
  gt_status status = gt_data_check_infos(run->job, infos);
  if (status != GT_OK) {
    gt_free(infos);
    return status;
  }
  char *names = share_names(run, infos);
  run->tests = GT_NEW_ARRAY(gt_ps_tests, run->job->nregions);
  gt_ps_tests_of(run->job, infos, run->tests);
  leave_out_late_tests(run);
  if (!all_read(run->job)) {
    float *norm = first_norm(run, infos);
    if (!reads(run)) open_empty(run, &infos[gt_data_first(run->job)], norm);
    gt_free(norm);
    share_merges(run, infos);
  }
  status = gt_data_check_names(run->job, infos);
  if (status == GT_OK) status = settle_texts(run);
  if (status == GT_OK) status = agree(run, divide(run, infos));
  gt_free(names);
  if (status == GT_OK) status = settle_normalisation(run, infos);
  if (status == GT_OK && run->job->pipeline.nstages > 0)
    status = agree(run, open_batches(run, infos));
  gt_free(infos);
  return status;
}

gt_status gt_setup_loader(const gt_run *run, size_t n, gt_loader **out) {
  GT_TRY(gt_loader_create(out, run->dataset, GT_SPLIT_TRAIN, run->part, n));
  return gt_loader_augment(*out, run->job->data.augment);
}

gt_status gt_setup_loader_held(const gt_run *run, gt_loader **out) {
  return gt_loader_create(out, run->dataset, GT_SPLIT_TRAIN, run->held.samples, run->held.n);
}

/* Adds the meaning of ids and columns. */
static void save_ids(const gt_run *run, gt_state *state) {
  size_t n = 0;
  const int64_t *merges = run->data.text ? merges_of(run, &n) : NULL;
  gt_data_save_ids(state, run->data.text, merges, n, run->columns, run->columns_bytes,
                   run->data.vocabulary_sha256);
}

void gt_setup_save_data(const gt_run *run, gt_state *state) {
  save_ids(run, state);
  if (run->class_names)
    gt_state_add(state, "data/", "class_names", GT_TYPE_U8, run->class_names,
                 run->class_names_bytes);
  if (!run->data.scaled) return;
  gt_state_add(state, "data/", "mean", GT_TYPE_F32, (float *)gt_dataset_mean(run->dataset),
               run->data.c);
  gt_state_add(state, "data/", "std", GT_TYPE_F32, (float *)gt_dataset_std(run->dataset),
               run->data.c);
}

/* Compares the items that both have, and closes `here`. */
static gt_status compare(const gt_run *run, gt_state *here, const gt_state *state) {
  const gt_state_item *item = gt_state_changed(here, state);
  const size_t region = reads(run) ? run->roles.region_id : gt_data_first(run->job);
  const gt_status status =
      item ? GT_FAIL(GT_ERR_CKPT,
                     "its %s differs from that of %s; expected the data with which it was trained",
                     item->name, gt_data_path(run->job, region))
           : GT_OK;
  gt_state_close(here);
  return status;
}

gt_status gt_setup_check_data(const gt_run *run, const gt_state *state) {
  gt_state here = {0};
  gt_setup_save_data(run, &here);
  return compare(run, &here, state);
}

gt_status gt_setup_check_ids(const gt_run *run, const gt_state *state) {
  gt_state here = {0};
  save_ids(run, &here);
  return compare(run, &here, state);
}
