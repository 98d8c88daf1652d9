/* Reads lines through a fixed buffer. */
#include "lines.h"

#include <string.h>

enum { BUFFER = 1 << 16 };

struct gt_lines {
  gt_bytes *file;
  size_t number, at, have; /* at, have: positions in buffer */
  char buffer[BUFFER], line[GT_LINE_MAX + 1];
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
  l->number = l->at = l->have = 0;
  return gt_bytes_rewind(l->file);
}

void gt_lines_close(gt_lines *l) {
  if (!l) return;
  gt_bytes_close(l->file);
  gt_free(l);
}

/* Fills the buffer; l->have is 0 at the end of the file. */
static gt_status fill(gt_lines *l) {
  const int64_t got = gt_bytes_read(l->file, l->buffer, BUFFER);
  if (got < 0) return GT_ERR_DATA;
  l->at = 0;
  l->have = (size_t)got;
  return got < BUFFER ? gt_bytes_whole(l->file) : GT_OK;
}

/* Moves the buffered part of the line to l->line, which has *n bytes; *ended: the line is
   complete. */
static gt_status take(gt_lines *l, size_t *n, bool *ended) {
  const char *from = l->buffer + l->at, *end = memchr(from, '\n', l->have - l->at);
  const size_t count = end ? (size_t)(end - from) : l->have - l->at;
  if (count > GT_LINE_MAX - *n)
    return GT_FAIL(GT_ERR_DATA, "%s: line %zu has more than %zu bytes, the maximum",
                   gt_lines_path(l), l->number, GT_LINE_MAX);
  memcpy(l->line + *n, from, count);
  *n += count;
  *ended = end != NULL;
  l->at += count + *ended;
  return GT_OK;
}

gt_status gt_lines_next(gt_lines *l, const char **text) {
  size_t n = 0;
  bool ended = false;
  *text = NULL;
  l->number++;
  while (!ended) {
    if (l->at == l->have) GT_TRY(fill(l));
    if (l->have == 0) break;
    GT_TRY(take(l, &n, &ended));
  }
  if (n == 0 && !ended) return GT_OK;
  if (memchr(l->line, 0, n))
    return GT_FAIL(GT_ERR_DATA, "%s: line %zu has a byte 0; expected text", gt_lines_path(l),
                   l->number);
  if (n > 0 && l->line[n - 1] == '\r') n--;
  l->line[n] = 0;
  *text = l->line;
  return GT_OK;
}
