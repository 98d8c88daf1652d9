/* Texts broken into lines. */
#include "geotrain/base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void gt_wrap(FILE *to, size_t at, size_t indent, const char *text) {
  bool begun = false; /* the line has a word */
  while (*text) {
    const size_t spaces = strspn(text, " "), word = strcspn(text + spaces, " ");
    if (word > 0 && at + spaces + word > GT_LINE_WIDTH && begun) {
      fprintf(to, "\n%*s", (int)indent, "");
      at = indent;
    } else if (word > 0) {
      fprintf(to, "%*s", (int)spaces, "");
      at += spaces;
    }
    fprintf(to, "%.*s", (int)word, text + spaces);
    at += word;
    text += spaces + word;
    begun = true;
  }
  fputc('\n', to);
}

void gt_print_wrapped(FILE *to, size_t indent, const char *format, ...) {
  char *text = NULL;
  va_list list;
  va_start(list, format);
  if (vasprintf(&text, format, list) < 0) gt_bug("no memory for a line");
  va_end(list);
  gt_wrap(to, 0, indent, text);
  free(text);
}
