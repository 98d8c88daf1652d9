/* Reads lines of any length word by word through a fixed buffer. */
#include "libfm_text.h"

#include <string.h>

#include "dataset.h"

/* WORD: the longest valid word is 2147483645:1.000...; longer ones are rejected. */
enum { BUFFER = 1 << 16, WORD = 40 };
enum { END_OF_FILE = -1, FAILED = -2 };

struct gt_libfm {
  gt_bytes *file;
  size_t line, at, have; /* positions in buffer */
  char word[WORD];
  unsigned char buffer[BUFFER];
};

gt_status gt_libfm_open(gt_libfm **out, const char *path) {
  gt_bytes *file;
  *out = NULL;
  GT_TRY(gt_bytes_open(&file, path));
  *out = GT_NEW(gt_libfm);
  (*out)->file = file;
  return GT_OK;
}

const char *gt_libfm_path(const gt_libfm *l) {
  return gt_bytes_path(l->file);
}

size_t gt_libfm_line(const gt_libfm *l) {
  return l->line;
}

gt_status gt_libfm_rewind(gt_libfm *l) {
  l->line = l->at = l->have = 0;
  return gt_bytes_rewind(l->file);
}

void gt_libfm_close(gt_libfm *l) {
  if (!l) return;
  gt_bytes_close(l->file);
  gt_free(l);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The next byte without consuming it, END_OF_FILE or FAILED. */
static int peek(gt_libfm *l) {
  if (l->at < l->have) return l->buffer[l->at];
  int64_t got = gt_bytes_read(l->file, l->buffer, BUFFER);
  if (got < 0) return FAILED;
  if (got < BUFFER && gt_bytes_whole(l->file) != GT_OK) return FAILED;
  l->at = 0;
  l->have = (size_t)got;
  return got > 0 ? l->buffer[0] : END_OF_FILE;
}

static bool is_blank(int byte) {
  return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Reads the next word of the line into l->word; empty at the end of the line, which is not
   consumed. */
static gt_status next_word(gt_libfm *l) {
  size_t n = 0;
  int byte;
  while (is_blank(byte = peek(l))) l->at++;
  for (; byte >= 0 && byte != '\n' && !is_blank(byte); l->at++, byte = peek(l)) {
    /* printable, since messages quote it */
    if (n + 1 < WORD) l->word[n] = (char)(byte > ' ' && byte < 127 ? byte : '?');
    n++;
  }
  if (byte == FAILED) return GT_ERR_DATA;
  l->word[n < WORD ? n : WORD - 1] = 0;
  if (n >= WORD)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: line %zu has a word of more than %d bytes, `%.16s...`; `label id:1 id:1 "
                   "...` is needed",
                   gt_libfm_path(l), l->line, WORD - 1, l->word);
  return GT_OK;
}

/* Reads a whole number written as 1, +1, -1 or 1.0.  Returns the text after it, NULL if there is
   none or it is 2^32 or more. */
static const char *take_number(const char *text, bool *negative, uint64_t *out) {
  *negative = *text == '-';
  if (*text == '-' || *text == '+') text++;
  if (*text < '0' || *text > '9') return NULL;
  for (*out = 0; *text >= '0' && *text <= '9'; text++)
    if ((*out = *out * 10 + (uint64_t)(*text - '0')) > UINT32_MAX) return NULL;
  return text;
}

static const char *skip_zeros(const char *text) {
  if (*text == '.')
    for (text++; *text == '0';) text++;
  return text;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static gt_status parse_label(const gt_libfm *l, int32_t *label) {
  bool negative;
  uint64_t value;
  const char *rest = take_number(l->word, &negative, &value);
  if (!rest || *skip_zeros(rest) || value > 1)
    return GT_FAIL(GT_ERR_DATA, "%s: line %zu begins with `%s`; a label 1, 0 or -1 is needed",
                   gt_libfm_path(l), l->line, l->word);
  *label = value == 1 && !negative;
  return GT_OK;
}

static gt_status parse_field(const gt_libfm *l, size_t field, int32_t *id) {
  bool negative;
  uint64_t value, one;
  const char *rest = take_number(l->word, &negative, &value);
  if (!strchr(l->word, ':'))
    return GT_FAIL(GT_ERR_DATA, "%s: field %zu of line %zu is `%s`; `id:1` is needed",
                   gt_libfm_path(l), field + 1, l->line, l->word);
  if (!rest || *rest != ':' || negative || value >= GT_DATA_MAX_FEATURES)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: the id in field %zu of line %zu is `%.*s`; a whole number from 0 to %d is needed",
        gt_libfm_path(l), field + 1, l->line, (int)strcspn(l->word, ":"), l->word,
        GT_DATA_MAX_FEATURES - 1);
  const char *end = take_number(rest + 1, &negative, &one);
  if (!end || negative || one != 1 || *skip_zeros(end))
    return GT_FAIL(GT_ERR_DATA,
                   "%s: the value in field %zu of line %zu is `%s`; 1 is needed, as only "
                   "categories (ids) are read",
                   gt_libfm_path(l), field + 1, l->line, rest + 1);
  *id = (int32_t)value;
  return GT_OK;
}

/* After an empty line: only blanks may follow up to the end of the file. */
static gt_status expect_end(gt_libfm *l) {
  int byte;
  while (is_blank(byte = peek(l)) || byte == '\n') l->at++;
  if (byte == FAILED) return GT_ERR_DATA;
  if (byte == END_OF_FILE) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: line %zu is empty, and others follow; `label id:1 id:1 ...` is needed",
                 gt_libfm_path(l), l->line);
}

gt_status gt_libfm_next(gt_libfm *l, bool *more, int32_t *label, int32_t *ids, size_t *fields) {
  *more = false;
  l->line++;
  GT_TRY(next_word(l));
  if (!l->word[0]) return expect_end(l);
  GT_TRY(parse_label(l, label));
  for (*fields = 0;; ++*fields) {
    GT_TRY(next_word(l));
    if (!l->word[0]) break;
    if (*fields == GT_LIBFM_MAX_FIELDS)
      return GT_FAIL(GT_ERR_DATA, "%s: line %zu has more than %d fields; at most so many are read",
                     gt_libfm_path(l), l->line, GT_LIBFM_MAX_FIELDS);
    GT_TRY(parse_field(l, *fields, &ids[*fields]));
  }
  if (*fields == 0)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: line %zu has a label and no fields; `label id:1 id:1 ...` is needed",
                   gt_libfm_path(l), l->line);
  if (peek(l) == '\n') l->at++;
  *more = true;
  return GT_OK;
}
