/* Texts broken into lines. */
#include "geotrain/base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* True if `word` is a unit, perhaps with punctuation after it. */
static bool is_unit(const char *word) {
  static const char *const units[] = {
      "ns",  "us",    "ms",     "s",      "min",    "h",      "d",        "B",   "kB",
      "KB",  "MB",    "GB",     "TB",     "%",      "USD",    "KiB",      "MiB", "GiB",
      "TiB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "samples/s"};
  const size_t length = strcspn(word, " ,.;:)");
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strlen(units[i]) == length && strncmp(word, units[i], length) == 0) return true;
  return false;
}

/* Returns the length of the word, or of a number with its unit. */
static size_t word_at(const char *text) {
  const size_t word = strcspn(text, " ");
  char *end = NULL;
  strtod(*text == '(' ? text + 1 : text, &end);
  if (end != text + word || *end == '\0' || !is_unit(end + 1)) return word;
  return word + 1 + strcspn(end + 1, " ");
}

void gt_wrap(FILE *to, size_t at, size_t indent, const char *text) {
  bool begun = false; /* the line has a word */
  while (*text) {
    const size_t spaces = strspn(text, " "), word = word_at(text + spaces);
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

void gt_csv_text(FILE *to, const char *text) {
  fputc('"', to);
  for (; *text; text++) {
    if (*text == '"') fputc('"', to);
    fputc(*text, to);
  }
  fputc('"', to);
}
