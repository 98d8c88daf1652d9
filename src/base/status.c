/* Status: the text of the calling thread's last error. */
#include "geotrain/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void (*bug_handler)(const char *text);
static _Thread_local char last_error[GT_ERROR_TEXT_MAX];

static bool is_c1(unsigned char c) {
  return c >= 0x80 && c <= 0x9f;
}

size_t gt_control_find(const char *text, size_t size) {
  const unsigned char *c = (const unsigned char *)text;
  for (size_t i = 0; i < size; i++) {
    if (c[i] < 0x20 || c[i] == 0x7f || is_c1(c[i])) return i;
    if (c[i] == 0xc2 && i + 1 < size && is_c1(c[i + 1])) return i;
    if (c[i] >= 0xc0)
      for (int k = 0; k < 3 && i + 1 < size && (c[i + 1] & 0xc0) == 0x80; k++) i++;
  }
  return size;
}

void gt_text_flatten(char *text) {
  const size_t size = strlen(text);
  for (size_t i = 0; (i += gt_control_find(text + i, size - i)) < size; i++)
    text[i] = strchr("\n\r\t", text[i]) ? ' ' : '?';
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

gt_status gt_fail(gt_status code, const char *file, int line, const char *format, ...) {
  char text[GT_ERROR_TEXT_MAX]; /* not last_error itself: an argument can point to it */
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (length < 0) snprintf(text, sizeof text, "an error whose text could not be formatted");
  /* Only internal faults name a source line; for other errors it does not help users. */
  if (code == GT_ERR_FAULT && length >= 0 && (size_t)length < sizeof text) {
    snprintf(text + length, sizeof text - (size_t)length, " (%s:%d)", base_name(file), line);
  }
  gt_text_flatten(text); /* it goes into logs and records, and can quote files */
  memcpy(last_error, text, sizeof text);
  return code;
}

const char *gt_error_text(void) {
  return last_error;
}

void gt_on_bug(void (*handler)(const char *text)) {
  bug_handler = handler;
}

void gt_bug(const char *format, ...) {
  char text[GT_ERROR_TEXT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (bug_handler) bug_handler(text);
  gt_log(GT_LOG_ERROR, "broken invariant: %s", text);
  _exit(GT_ERR_FAULT);
}
