/* From the files that the regions name to this rank's samples: what every region has is told to
   all, so that all come to the same verdict and the same division. */
#include <string.h>

#include "impl.h"

static gt_status agree(const gt_run *run, gt_status local) {
  return gt_agree(run->roles.world, local, run->start_limit_s);
}

static gt_status open_own(gt_run *run) {
  const char *path = gt_data_path(run->job, run->roles.region_id);
  GT_TRY(gt_dataset_open(&run->dataset, path));
  run->data = *gt_dataset_describe(run->dataset);
  if (run->data.input != GT_INPUT_IDS || strcmp(run->job->data.augment, "none") == 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data.augment is %s, but the samples of %s are ids; images are needed", run->job->data.augment, path);
}

/* `bytes` of every PS, in region order, to all ranks.  Collective over the world; the caller frees it. */
static void *gather(const gt_run *run, const void *own, size_t bytes) {
  static const char what[] = "what the other regions' data are";
  const int count = (int)bytes, all = (int)(bytes * run->job->nregions);
  char *of_all = gt_alloc(run->job->nregions, bytes);
  MPI_Request request;
  if (run->roles.is_ps) {
    GT_MPI(MPI_Iallgather(own, count, MPI_BYTE, of_all, count, MPI_BYTE, run->roles.ps, &request));
    gt_wait_all(&request, 1, what, run->start_limit_s, NULL, NULL);
  }
  GT_MPI(MPI_Ibcast(of_all, all, MPI_BYTE, 0, run->roles.region, &request));
  gt_wait_all(&request, 1, what, run->start_limit_s, NULL, NULL);
  return of_all;
}

/* The ranks of a region may be on machines that have another file by that name. */
static gt_status same_as_ps(const gt_run *run, const gt_dataset_info *ps) {
  const gt_dataset_info *own = &run->data;
  if (strcmp(own->schema_sha256, ps->schema_sha256) == 0 && strcmp(own->samples_sha256, ps->samples_sha256) == 0 && own->ntest == ps->ntest)
    return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "rank %d finds another %s (%zu training samples) than the PS of its region %s (%zu); the same file is needed",
                 run->roles.world_rank, gt_data_path(run->job, run->roles.region_id), own->ntrain, run->region, ps->ntrain);
}

static gt_status divide(gt_run *run, const gt_dataset_info *infos) {
  const size_t region = run->roles.region_id;
  size_t *files = GT_NEW_ARRAY(size_t, run->job->nregions);
  gt_status status = same_as_ps(run, &infos[region]);
  if (status == GT_OK) status = gt_data_files(run->job, infos, files);
  if (status == GT_OK)
    status = gt_data_part(run->job, files, region, gt_dataset_labels(run->dataset, GT_SPLIT_TRAIN), run->data.ntrain, &run->part, &run->npart);
  run->order = (gt_order){run->job->seed, region, run->npart, (size_t)run->job->train.batch};
  gt_free(files);
  return status;
}

gt_status gt_run_open_data(gt_run *run) {
  GT_TRY(agree(run, open_own(run)));
  gt_dataset_info *infos = gather(run, &run->data, sizeof run->data);
  gt_status status = agree(run, divide(run, infos));
  gt_free(infos);
  return status;
}
