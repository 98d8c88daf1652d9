/* Texts broken into lines of at most GT_LINE_WIDTH columns. */
#include <string.h>

#include "tests.h"
#include "geotrain/base.h"

static void wrapped(size_t at, size_t indent, const char *text, const char *expected) {
  char *out;
  FILE *to = open_text(&out);
  gt_wrap(to, at, indent, text);
  fclose(to);
  assert_string_equal(out, expected);
  free(out);
}

/* 80 columns fit, 81 do not; spaces inside a line stay, those at a break do not. */
static void breaks(void) {
  char words[200] = "", whole[202], broken[200];
  for (int i = 0; i < 8; i++) strcat(words, "nine99999 ");
  strcpy(words + 79, "");
  snprintf(whole, sizeof whole, "%s\n", words);
  wrapped(0, 4, words, whole);
  wrapped(1, 4, words, whole);
  snprintf(broken, sizeof broken, "%.69s\n    nine99999\n", words);
  wrapped(2, 4, words, broken);
  wrapped(0, 2, "  name   two  words ", "  name   two  words\n");
  wrapped(0, 2, "", "\n");
}

static void long_words(void) {
  char word[100] = "", text[256], expected[300];
  memset(word, 'x', 90);
  snprintf(text, sizeof text, "a %s b", word);
  snprintf(expected, sizeof expected, "a\n  %s\n  b\n", word);
  wrapped(0, 2, text, expected);
}

/* A number stays on the line of its unit. */
static void numbers(void) {
  wrapped(65, 2, "computed in 0.1 s", "computed in\n  0.1 s\n");
  wrapped(65, 2, "takes up to (90 %)", "takes up to\n  (90 %)\n");
  wrapped(65, 2, "with data of 12 regions", "with data of 12\n  regions\n");
}

TESTS(breaks, long_words, numbers)
