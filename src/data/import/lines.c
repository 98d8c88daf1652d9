/* Reads lines. */
#include "lines.h"

#include <string.h>

struct gt_lines {
  gt_bytes *file;
  size_t number;
  char line[GT_LINE_MAX + 1];
};

gt_status gt_lines_open(gt_lines **out, const char *path) {
  gt_bytes *file;
  *out = NULL;
  GT_TRY(gt_bytes_open(&file, path));
  *out = GT_NEW(gt_lines);
  (*out)->file = file;
  return GT_OK;
}

const char *gt_lines_path(const gt_lines *l) {
  return gt_bytes_path(l->file);
}

size_t gt_lines_number(const gt_lines *l) {
  return l->number;
}

gt_status gt_lines_rewind(gt_lines *l) {
  l->number = 0;
  return gt_bytes_rewind(l->file);
}

void gt_lines_close(gt_lines *l) {
  if (!l) return;
  gt_bytes_close(l->file);
  gt_free(l);
}

gt_status gt_lines_next(gt_lines *l, const char **text) {
  size_t n = 0;
  int byte;
  *text = NULL;
  l->number++;
  while ((byte = gt_bytes_next(l->file)) >= 0 && byte != '\n') {
    if (n == GT_LINE_MAX)
      return GT_FAIL(GT_ERR_DATA, "%s: line %zu has more than %zu bytes, the maximum",
                     gt_lines_path(l), l->number, GT_LINE_MAX);
    l->line[n++] = (char)byte;
  }
  if (byte == GT_BYTES_FAILED) return GT_ERR_DATA;
  if (n == 0 && byte == GT_BYTES_END) return GT_OK;
  if (memchr(l->line, 0, n))
    return GT_FAIL(GT_ERR_DATA, "%s: line %zu has a byte 0; expected text", gt_lines_path(l),
                   l->number);
  if (n > 0 && l->line[n - 1] == '\r') n--;
  l->line[n] = 0;
  *text = l->line + (l->number == 1 && strncmp(l->line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
  return GT_OK;
}
