/* A hash table of words with open addressing, and the splitting of texts. */
#include "words.h"

#include <stdlib.h>
#include <string.h>

/* ---- words of a text ------------------------------------------------------------------------- */

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Returns the bytes of the character at p; *letter: true if it belongs to words.  In UTF-8, U+0080
   to U+00BF and U+2000 to U+2FFF are punctuation and symbols; other bytes of 128 and more belong to
   letters. */
static size_t character(const char *p, bool *letter) {
  const unsigned char c = (unsigned char)*p;
  const size_t n = c == 0xC2 ? 2 : c == 0xE2 ? 3 : 1;
  *letter = c < 128 ? is_letter(*p) : n == 1;
  for (size_t k = 1; k < n; k++)
    if (((unsigned char)p[k] & 0xC0) != 0x80) return k; /* truncated */
  return n;
}

/* Returns the length of an HTML line break at p, such as "<br />"; 0: none. */
static size_t html_break(const char *p) {
  size_t n = 3;
  if (p[0] != '<' || (p[1] | 0x20) != 'b' || (p[2] | 0x20) != 'r') return 0;
  while (p[n] == ' ') n++;
  n += p[n] == '/';
  return p[n] == '>' ? n + 1 : 0;
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

size_t gt_word_next(const char **text, char word[GT_WORD_MAX + 1]) {
  const char *p = *text;
  size_t n = 0, bytes;
  bool letter, next;
  for (; *p; p += bytes) {
    bytes = character(p, &letter);
    if (*p == '\'' && n > 0 && character(p + 1, &next) > 0 && next) letter = true;
    if (letter) {
      if (n < GT_WORD_MAX) word[n++] = lower(*p);
      continue;
    }
    if (n > 0) break;
    if (html_break(p) > 0) bytes = html_break(p);
  }
  word[n] = 0;
  *text = p;
  return n;
}

/* ---- vocabulary ------------------------------------------------------------------------------ */

typedef struct {
  char text[GT_WORD_MAX + 1];
  uint64_t count;
} entry;

struct gt_vocabulary {
  entry *entries;
  size_t n, capacity;
  uint32_t *slots; /* 0, or 1 + an entry */
  size_t nslots;   /* a power of two, more than twice the entries */
};

gt_vocabulary *gt_vocabulary_create(void) {
  gt_vocabulary *v = GT_NEW(gt_vocabulary);
  v->nslots = 1024;
  v->slots = GT_NEW_ARRAY(uint32_t, v->nslots);
  return v;
}

void gt_vocabulary_close(gt_vocabulary *v) {
  if (!v) return;
  gt_free(v->slots);
  gt_free(v->entries);
  gt_free(v);
}

/* Returns the slot of the word, or the empty slot for it.  FNV-1a, linear probing. */
static uint32_t *slot_of(const gt_vocabulary *v, const char *word, size_t length) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)word[i]) * 0x100000001b3U;
  for (size_t at = (size_t)(hash ^ hash >> 32);; at++) {
    uint32_t *slot = &v->slots[at & (v->nslots - 1)];
    if (*slot == 0 || strcmp(v->entries[*slot - 1].text, word) == 0) return slot;
  }
}

static void fill_slots(gt_vocabulary *v) {
  memset(v->slots, 0, v->nslots * sizeof *v->slots);
  for (size_t i = 0; i < v->n; i++)
    *slot_of(v, v->entries[i].text, strlen(v->entries[i].text)) = (uint32_t)(i + 1);
}

static void grow(gt_vocabulary *v) {
  if (2 * (v->n + 1) < v->nslots) return;
  gt_free(v->slots);
  v->nslots *= 2;
  v->slots = GT_NEW_ARRAY(uint32_t, v->nslots);
  fill_slots(v);
}

size_t gt_vocabulary_count(gt_vocabulary *v, const char *word, size_t length) {
  grow(v);
  uint32_t *slot = slot_of(v, word, length);
  if (*slot == 0) {
    GT_GROW(v->entries, v->n, v->capacity, 1024);
    memcpy(v->entries[v->n].text, word, length + 1);
    *slot = (uint32_t)++v->n;
  }
  v->entries[*slot - 1].count++;
  return v->n;
}

static int by_frequency(const void *a, const void *b) {
  const entry *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return strcmp(x->text, y->text);
}

void gt_vocabulary_choose(gt_vocabulary *v, size_t most) {
  if (v->n > 0) qsort(v->entries, v->n, sizeof *v->entries, by_frequency);
  if (v->n > most) v->n = most;
  fill_slots(v);
}

int32_t gt_vocabulary_id(const gt_vocabulary *v, const char *word, size_t length) {
  const uint32_t slot = *slot_of(v, word, length);
  return slot == 0 ? (int32_t)GT_ID_UNKNOWN : (int32_t)(slot - 1) + GT_ID_WORDS;
}

size_t gt_vocabulary_ids(const gt_vocabulary *v) {
  return v->n + GT_ID_WORDS;
}

const char *gt_vocabulary_text(const gt_vocabulary *v, size_t id) {
  return id >= GT_ID_WORDS     ? v->entries[id - GT_ID_WORDS].text
         : id == GT_ID_PADDING ? "<padding>"
                               : "<unknown>";
}
