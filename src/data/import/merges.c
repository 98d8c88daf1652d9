/* Byte pair encoding (Sennrich, Haddow and Birch 2016, Alg. 1): pairs are counted once; a merge
   changes only the counts of the pieces in which its pair occurs. */
#include "merges.h"

#include <string.h>

#include "geotrain/base_heap.h"
#include "pairs.h"
#include "pieces.h"

typedef struct {
  size_t first, length; /* its tokens, in learner.ids */
  int64_t count;
} word;

typedef struct {
  uint64_t key;
  int64_t count;
  size_t place; /* the last one, as 1 + index; 0: none */
} pair;

/* A word in which a pair occurs, or did before another merge. */
typedef struct {
  uint32_t word;
  size_t before; /* the place before, as in pair */
} place;

typedef struct {
  word *words;
  size_t nwords;
  int32_t *ids;
  gt_pairs numbers; /* of pairs, in `pairs` */
  pair *pairs;
  size_t npairs, pairs_capacity;
  place *places;
  size_t nplaces, places_capacity;
  gt_heap heap; /* by falling counts; those that have changed since are put in again */
  int64_t *merges;
  size_t nmerges;
} learner;

static void take_words(learner *l, const char *text, size_t length) {
  size_t at = 0;
  gt_piece *pieces = gt_pieces_count(text, length, &l->nwords);
  l->words = GT_NEW_ARRAY(word, l->nwords);
  for (size_t i = 0; i < l->nwords; i++) at += pieces[i].length;
  l->ids = GT_NEW_ARRAY(int32_t, at);
  at = 0;
  for (size_t i = 0; i < l->nwords; i++) {
    l->words[i] = (word){at, pieces[i].length, (int64_t)pieces[i].count};
    for (size_t k = 0; k < pieces[i].length; k++) l->ids[at++] = (unsigned char)pieces[i].text[k];
  }
  gt_free(pieces);
}

static pair *pair_at(learner *l, uint64_t key) {
  const uint32_t *number = gt_pairs_find(&l->numbers, key);
  if (number) return &l->pairs[*number];
  GT_GROW(l->pairs, l->npairs, l->pairs_capacity, 4096);
  gt_pairs_add(&l->numbers, key, (uint32_t)l->npairs);
  l->pairs[l->npairs] = (pair){.key = key};
  return &l->pairs[l->npairs++];
}

static void add_place(learner *l, pair *p, uint32_t at) {
  if (p->place > 0 && l->places[p->place - 1].word == at) return;
  GT_GROW(l->places, l->nplaces, l->places_capacity, 4096);
  l->places[l->nplaces] = (place){at, p->place};
  p->place = ++l->nplaces;
}

/* Adds the pairs of a word to the counts, or takes them away (sign -1).  Notes the word as the
   place of those that have the token `fresh`; -1: of all. */
static void count_word(learner *l, uint32_t at, int64_t sign, int32_t fresh) {
  const word *w = &l->words[at];
  const int32_t *ids = l->ids + w->first;
  for (size_t i = 0; i + 1 < w->length; i++) {
    pair *p = pair_at(l, gt_pair_of(ids[i], ids[i + 1]));
    p->count += sign * w->count;
    if (sign > 0 && (fresh < 0 || ids[i] == fresh || ids[i + 1] == fresh)) add_place(l, p, at);
  }
}

/* Puts `id` in the place of each pair. */
static void replace(learner *l, word *w, int32_t left, int32_t right, int32_t id) {
  int32_t *ids = l->ids + w->first;
  size_t to = 0;
  for (size_t i = 0; i < w->length; to++) {
    const bool found = i + 1 < w->length && ids[i] == left && ids[i + 1] == right;
    ids[to] = found ? id : ids[i];
    i += found ? 2 : 1;
  }
  w->length = to;
}

static bool occurs(const learner *l, const word *w, int32_t left, int32_t right) {
  const int32_t *ids = l->ids + w->first;
  for (size_t i = 0; i + 1 < w->length; i++)
    if (ids[i] == left && ids[i + 1] == right) return true;
  return false;
}

static void push_pairs(learner *l, size_t from) {
  for (size_t i = from; i < l->npairs; i++)
    if (l->pairs[i].count > 1)
      gt_heap_push(
          &l->heap,
          (gt_heap_entry){.at = -l->pairs[i].count, .key = l->pairs[i].key, .a = (uint32_t)i});
}

static void merge(learner *l, size_t number) {
  const pair merged = l->pairs[number];
  const int32_t left = (int32_t)(merged.key >> 32), right = (int32_t)(uint32_t)merged.key,
                id = (int32_t)(GT_TOKEN_BYTES + l->nmerges);
  const size_t before = l->npairs;
  for (size_t at = merged.place; at > 0; at = l->places[at - 1].before) {
    const uint32_t i = l->places[at - 1].word;
    if (!occurs(l, &l->words[i], left, right)) continue;
    count_word(l, i, -1, id);
    replace(l, &l->words[i], left, right, id);
    count_word(l, i, 1, id);
  }
  push_pairs(l, before);
  l->merges[2 * l->nmerges] = left;
  l->merges[2 * l->nmerges + 1] = right;
  l->nmerges++;
}

static void learn(learner *l, size_t most) {
  for (uint32_t i = 0; i < l->nwords; i++) count_word(l, i, 1, -1);
  push_pairs(l, 0);
  while (l->nmerges < most && l->heap.n > 0) {
    gt_heap_entry next = gt_heap_pop(&l->heap);
    const int64_t count = l->pairs[next.a].count;
    if (count > 1 && count == -next.at)
      merge(l, next.a);
    else if (count > 1) {
      next.at = -count;
      gt_heap_push(&l->heap, next);
    }
  }
}

gt_tokens *gt_merges_learn(const char *text, size_t length, size_t count) {
  learner l = {.merges = GT_NEW_ARRAY(int64_t, 2 * (count - GT_TOKEN_BYTES))};
  gt_tokens *tokens;
  if (count > GT_TOKEN_BYTES) {
    take_words(&l, text, length);
    learn(&l, count - GT_TOKEN_BYTES);
  }
  if (gt_tokens_create(&tokens, "learnt", l.merges, l.nmerges) != GT_OK)
    gt_bug("a vocabulary was learnt that cannot be: %s", gt_error_text());
  gt_heap_close(&l.heap);
  gt_pairs_close(&l.numbers);
  gt_free(l.merges);
  gt_free(l.places);
  gt_free(l.pairs);
  gt_free(l.ids);
  gt_free(l.words);
  return tokens;
}
