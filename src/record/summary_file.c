/* summary.json on disk. */
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void name_file(char path[PATH_MAX], const char *run_dir) {
  snprintf(path, PATH_MAX, "%s/summary.json", run_dir);
}

gt_status gt_summary_write_text(const char *run_dir, const char *text) {
  char path[PATH_MAX];
  name_file(path, run_dir);
  return gt_file_replace(path, text, strlen(text))
             ? GT_OK
             : GT_FAIL(GT_ERR_CKPT, "%s: the summary could not be written: %s", path,
                       strerror(errno));
}

gt_status gt_summary_write(const char *run_dir, const gt_summary *summary) {
  char *text;
  GT_TRY(gt_summary_text(&text, summary));
  const gt_status status = gt_summary_write_text(run_dir, text);
  gt_free(text);
  return status;
}

gt_status gt_summary_read(gt_summary_file **out, const char *run_dir) {
  char path[PATH_MAX], *text = NULL;
  size_t size = 0;
  name_file(path, run_dir);
  *out = NULL;
  FILE *file = fopen(path, "re");
  if (!file)
    return GT_FAIL(GT_ERR_CKPT, "%s: the summary could not be opened: %s", path, strerror(errno));
  const ssize_t read = getdelim(&text, &size, '\0', file);
  fclose(file);
  const gt_status status = gt_summary_parse(out, read < 0 ? "" : text, path);
  free(text);
  return status;
}
