/* Reads a fleet from where it is: a profile or a folder. */
#include <sys/stat.h>

#include "fleet.h"

static gt_status read_profile(gt_job_fleet **out, const char *path) {
  char *text = NULL;
  size_t size = 0;
  job_node *profile = NULL;
  GT_TRY(gt_job_read_file(path, "a profile", &text, &size));
  gt_status status = gt_job_yaml_parse(&profile, path, text, size);
  gt_free(text);
  GT_TRY(status);
  status = gt_job_prune(profile, path, false);
  const job_node *section = gt_job_node_find(profile, "fleet", strlen("fleet"));
  if (status == GT_OK)
    status = section
                 ? gt_job_fleet_of_profile(out, path, section)
                 : GT_FAIL(GT_ERR_JOB,
                           "%s: has no section fleet; a profile is needed that `geotrain probe "
                           "JOB.yaml --fleet` wrote, or a folder with devices.csv and links.csv",
                           path);
  gt_job_node_close(profile);
  return status;
}

gt_status gt_job_fleet_load(gt_job_fleet **out, const char *path) {
  struct stat about;
  if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return gt_job_fleet_of_folder(out, path);
  return read_profile(out, path);
}
