/* Lines of comma-separated values, as in tables of links and regions.  No quotes, blanks around a
   field are ignored, `#` begins a comment. */
#include <ctype.h>
#include <string.h>

#include "internal.h"

static char *trim(char *text) {
  while (isspace((unsigned char)*text)) text++;
  for (size_t n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--) text[n - 1] = '\0';
  return text;
}

/* Splits a line at its commas: fields[0 .. returned - 1]; returns max + 1 if there are more. */
static size_t cut(char *line, const char **fields, size_t max) {
  size_t n = 0;
  for (char *comma; line; line = comma ? comma + 1 : NULL) {
    comma = strchr(line, ',');
    if (comma) *comma = '\0';
    if (n == max) return max + 1;
    fields[n++] = trim(line);
  }
  return n;
}

gt_status gt_job_csv_open(job_csv *csv, const char *path, const char *needed) {
  size_t size = 0;
  *csv = (job_csv){.path = path};
  GT_TRY(gt_job_read_file(path, needed, &csv->text, &size));
  /* skips a byte order mark, as spreadsheets write it */
  csv->next = strncmp(csv->text, "\xef\xbb\xbf", 3) == 0 ? csv->text + 3 : csv->text;
  size_t at = 0, line = 1;
  while ((at += gt_control_find(csv->text + at, size - at)) < size &&
         memchr("\t\r\n", csv->text[at], 3))
    line += csv->text[at++] == '\n';
  if (at == size) return GT_OK;
  gt_job_csv_close(csv);
  return GT_FAIL(GT_ERR_JOB, "%s:%zu: has a control character in it; %s is needed", path, line,
                 needed);
}

bool gt_job_csv_line(job_csv *csv, const char **fields, size_t max, size_t *n) {
  for (size_t i = 0; i < max; i++) fields[i] = "";
  while (csv->next) {
    char *line = csv->next, *end = strchr(line, '\n');
    csv->next = end ? end + 1 : NULL;
    csv->line++;
    if (end) *end = '\0';
    line[strcspn(line, "#")] = '\0';
    if (*trim(line) == '\0') continue;
    *n = cut(line, fields, max);
    return true;
  }
  return false;
}

void gt_job_csv_close(job_csv *csv) {
  gt_free(csv->text);
  csv->text = csv->next = NULL;
}
