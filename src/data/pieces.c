/* Cuts texts at spaces and between letters, digits and signs, like the expression of GPT-2 (Radford
   et al. 2019) without its rules for English. */
#include "pieces.h"

#include <string.h>

typedef enum { BLANK, LETTER, DIGIT, SIGN } kind;

/* Bytes of 128 and more are parts of letters in UTF-8, mostly. */
static kind kind_of(char c) {
  if (c == ' ' || (c >= '\t' && c <= '\r')) return BLANK;
  if (c >= '0' && c <= '9') return DIGIT;
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) ? LETTER : SIGN;
}

/* The end of the run of one kind that begins at `at`. */
static size_t run(const char *text, size_t at, size_t n) {
  const kind first = kind_of(text[at]);
  while (at < n && kind_of(text[at]) == first) at++;
  return at;
}

size_t gt_piece_next(const char *text, size_t n) {
  const size_t most = n < GT_PIECE_MAX + 1 ? n : GT_PIECE_MAX + 1;
  size_t end = run(text, 0, most);
  /* the last space before a word belongs to the word */
  if (kind_of(text[0]) == BLANK && end < most && text[end - 1] == ' ')
    end = end > 1 ? end - 1 : run(text, end, most);
  return end < GT_PIECE_MAX ? end : GT_PIECE_MAX;
}

/* ---- counts ---------------------------------------------------------------------------------- */

enum { FIRST = 1024 }; /* room */

typedef struct {
  gt_piece *pieces;
  size_t n, capacity;
  uint32_t *slots; /* 0, or 1 + a piece */
  size_t nslots;   /* a power of two, more than twice the pieces */
} table;

/* The slot of the piece: its own, or the empty one where it belongs.  FNV-1a, linear probing. */
static uint32_t *slot_of(const table *t, const char *text, size_t length) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3U;
  for (size_t at = (size_t)(hash ^ hash >> 32);; at++) {
    uint32_t *slot = &t->slots[at & (t->nslots - 1)];
    if (*slot == 0) return slot;
    const gt_piece *p = &t->pieces[*slot - 1];
    if (p->length == length && memcmp(p->text, text, length) == 0) return slot;
  }
}

static void make_slots(table *t, size_t nslots) {
  gt_free(t->slots);
  t->nslots = nslots;
  t->slots = GT_NEW_ARRAY(uint32_t, nslots);
  for (size_t i = 0; i < t->n; i++)
    *slot_of(t, t->pieces[i].text, t->pieces[i].length) = (uint32_t)(i + 1);
}

static void count(table *t, const char *text, size_t length) {
  uint32_t *slot = slot_of(t, text, length);
  if (*slot > 0) {
    t->pieces[*slot - 1].count++;
    return;
  }
  GT_GROW(t->pieces, t->n, t->capacity, FIRST);
  t->pieces[t->n] = (gt_piece){.text = text, .length = length, .count = 1};
  *slot = (uint32_t)++t->n;
  if (2 * (t->n + 1) >= t->nslots) make_slots(t, 2 * t->nslots);
}

gt_piece *gt_pieces_count(const char *text, size_t length, size_t *n) {
  table t = {.pieces = GT_NEW_ARRAY(gt_piece, FIRST), .capacity = FIRST};
  make_slots(&t, FIRST);
  for (size_t at = 0, step; at < length; at += step) {
    step = gt_piece_next(text + at, length - at);
    count(&t, text + at, step);
  }
  gt_free(t.slots);
  *n = t.n;
  return t.pieces;
}
