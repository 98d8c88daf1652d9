/* `geotrain info JOB.yaml --check`: a line for each region, then a verdict. */
#include "check_job.h"

#include <unistd.h>

#include "geotrain/ckpt.h"
#include "geotrain/ps_of_job.h"
#include "geotrain/setup.h"
#include "geotrain/sim_shape.h"

/* Sets *elsewhere: a region whose hosts are other machines has its data there. */
static gt_status find_elsewhere(bool *elsewhere, const gt_job *job, bool here) {
  char host[256] = "";
  gt_status status = GT_OK;
  gt_region_plan *plan = gt_setup_regions(job);
  if (gethostname(host, sizeof host) == 0) host[sizeof host - 1] = '\0';
  for (size_t r = 0; r < job->nregions && status == GT_OK; r++) {
    bool found = plan[r].nhosts == 0;
    if (!found) status = gt_region_has_host(&plan[r], host, &found);
    elsewhere[r] = here || !found;
  }
  gt_free(plan);
  return status;
}

static gt_status check_init(const char *path) {
  gt_ckpt_source *from;
  gt_ckpt_info info;
  gt_state state;
  if (!path) return GT_OK;
  const gt_status status = gt_ckpt_source_open(&from, path, &info, &state);
  gt_ckpt_source_close(from);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  return status;
}

static gt_status check_links(const gt_job *job) {
  gt_links *links = NULL;
  GT_TRY(gt_ps_check_routes(job));
  GT_TRY(gt_links_create(&links, job));
  gt_links_close(links);
  return GT_OK;
}

/* Checks the other files that ranks read; if data are on other machines, these files can be,
   too. */
static gt_status check_files(const gt_job *job) {
  GT_TRY(gt_setup_check_choices(job));
  return check_init(job->train.init);
}

gt_status gt_cli_check_job(const gt_job *job, bool here, FILE *to) {
  bool *elsewhere = GT_NEW_ARRAY(bool, job->nregions);
  size_t naway = 0;
  gt_status status = find_elsewhere(elsewhere, job, here);
  if (status == GT_OK && !here) status = gt_job_check_run(job);
  if (status == GT_OK && !here) status = check_links(job);
  if (status == GT_OK) status = gt_sim_shape_check(job, elsewhere, to, &naway);
  if (status == GT_OK && naway == 0 && !here) status = check_files(job);
  gt_free(elsewhere);
  if (status != GT_OK) return status;
  if (naway > 0)
    fprintf(to,
            "check: ok as far as this machine can tell; data of %zu of %zu regions not checked\n",
            naway, job->nregions);
  else
    fprintf(to, "check: ok\n");
  return GT_OK;
}
