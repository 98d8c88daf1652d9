/* geotrain report RUN-DIR...: one page about runs, and its numbers and figures. */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "geotrain/report.h"
#include "options.h"

typedef struct {
  const char *html, *csv, *json, *svg;
} outputs;

static gt_status write_file(const char *path, const gt_report *report,
                            void (*write)(FILE *to, const void *report)) {
  if (!gt_file_compose(path, write, report))
    return GT_FAIL(GT_ERR_JOB, "report: %s cannot be written: %s", path, strerror(errno));
  printf("wrote %s\n", path);
  return GT_OK;
}

static gt_status write_all(const gt_report *report, const outputs *to) {
  GT_TRY(write_file(to->html, report, gt_report_html));
  if (to->csv) GT_TRY(write_file(to->csv, report, gt_report_csv));
  if (to->json) GT_TRY(write_file(to->json, report, gt_report_json));
  if (!to->svg) return GT_OK;
  GT_TRY(gt_report_svg(to->svg, report));
  printf("wrote the figures to %s\n", to->svg);
  return GT_OK;
}

/* Refuses to overwrite a file that gt_report_open reads. */
static gt_status check_output(const char *out, char *const *run_dirs, size_t n) {
  char input[PATH_MAX];
  for (size_t r = 0; out && r < n; r++) {
    DIR *dir = opendir(run_dirs[r]);
    gt_status status = GT_OK;
    for (struct dirent *e; status == GT_OK && dir && (e = readdir(dir));) {
      const char *end = strrchr(e->d_name, '.');
      snprintf(input, sizeof input, "%s/%s", run_dirs[r], e->d_name);
      if (end && (strcmp(end, ".jsonl") == 0 || strcmp(e->d_name, "job.yaml") == 0 ||
                  strcmp(e->d_name, "summary.json") == 0))
        status = gt_output_may_replace(out, input, NULL, NULL);
    }
    if (dir) closedir(dir);
    GT_TRY(status);
  }
  return GT_OK;
}

const struct option gt_options_report[] = {{"out", required_argument, NULL, 'o'},
                                           {"csv", required_argument, NULL, 'c'},
                                           {"json", required_argument, NULL, 'j'},
                                           {"svg", required_argument, NULL, 's'},
                                           {0}};

gt_status gt_cmd_report(int argc, char **argv) {
  outputs to = {.html = "report.html"};
  gt_report *report = NULL;
  opterr = 0;
  for (int o; (o = getopt_long(argc, argv, "", gt_options_report, NULL)) != -1;) {
    if (o == 'o')
      to.html = optarg;
    else if (o == 'c')
      to.csv = optarg;
    else if (o == 'j')
      to.json = optarg;
    else if (o == 's')
      to.svg = optarg;
    else
      return gt_option_refused(argc, argv, "report");
  }
  const char *const files[] = {to.html, to.csv, to.json};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    GT_TRY(check_output(files[i], argv + optind, (size_t)(argc - optind)));
  GT_TRY(gt_report_open(&report, argv + optind, (size_t)(argc - optind)));
  const gt_status status = write_all(report, &to);
  gt_report_close(report);
  return status;
}
