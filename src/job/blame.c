/* Errors about a loaded job: puts the name of its file first. */
#include <stdio.h>

#include "internal.h"

/* True if the sentence begins with a key of the table, where regions.2.ranks and shares[2] are
   regions[].ranks and shares.  A word without dots must stand alone: "plan: ..." is about a
   command. */
static bool begins_with_key(const char *text) {
  char pattern[JOB_PATH_MAX];
  const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.[]");
  size_t n = 0;
  if (length == 0 || length >= sizeof pattern / 3) return false;
  for (size_t i = 0; i < length; i++) {
    const size_t digits = strspn(text + i, "0123456789");
    if (digits > 0 && i > 0 && (text[i - 1] == '.' || text[i - 1] == '[')) {
      if (text[i - 1] == '.') pattern[n - 1] = '[', pattern[n++] = ']';
      i += digits - 1;
    } else
      pattern[n++] = text[i];
  }
  if (n > 2 && pattern[n - 1] == ']') n -= 2;
  pattern[n] = '\0';
  if (!strchr(pattern, '.') && text[length] != ' ') return false;
  return gt_job_key_find(pattern) || gt_job_key_prefix(pattern);
}

gt_status gt_job_blame(const gt_job *job, gt_status status) {
  if (status != GT_ERR_JOB || !job || !job->source) return status;
  char text[GT_ERROR_TEXT_MAX];
  snprintf(text, sizeof text, "%s", gt_error_text());
  const size_t name = strlen(job->name);
  const bool named = strncmp(text, job->name, name) == 0 && strncmp(text + name, ": ", 2) == 0;
  if (!named && !begins_with_key(text)) return status;
  return GT_FAIL(status, "%s: %s", job->source, named ? text + name + 2 : text);
}
