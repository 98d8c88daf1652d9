/* Finds the model file of a command in a run directory. */
#include "run_model.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "geotrain/ckpt.h"

static bool is_folder(const char *path) {
  struct stat at;
  return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

static gt_status absent(const char *run_dir, const char *region, const char *path) {
  char there[1024];
  gt_ckpt_list(there, sizeof there, run_dir);
  return GT_FAIL(GT_ERR_CKPT, "%s does not exist: a run writes it at its end%s; %s holds %s", path,
                 region ? ", where regions keep models of their own (strategy none)"
                        : " (strategy none: one a region, to be named)",
                 run_dir, there);
}

gt_status gt_cli_run_model(char *path, size_t size, const char *named, const char *region) {
  if (!region && !is_folder(named)) {
    snprintf(path, size, "%s", named);
    return GT_OK;
  }
  if (!is_folder(named))
    return GT_FAIL(GT_ERR_JOB,
                   "%s is not a run directory; a REGION (%s) applies to run directories only",
                   named, region);
  gt_ckpt_final_model_path(path, size, named, region);
  return access(path, F_OK) == 0 ? GT_OK : absent(named, region, path);
}

void gt_cli_describe_model(char *text, size_t size, const gt_ckpt_info *info) {
  if (info->mean_of == 0)
    snprintf(text, size, "round %lld of region %s", (long long)info->round, info->region);
  else if (info->region[0])
    snprintf(text, size, "the final model of region %s", info->region);
  else if (info->mean_of == 1)
    snprintf(text, size, "the final model");
  else
    snprintf(text, size, "the final model, the mean of %lld regions", (long long)info->mean_of);
}
