/* words: splits texts into words, and numbers the most frequent ones.  Local; never fails. */
#pragma once

#include "geotrain/base.h"

/* Maximum bytes of a word; longer ones are truncated. */
#define GT_WORD_MAX ((size_t)63)

/* Copies the next word of the text at *text in lower case to `word`, advances *text past it, and
   returns its length; 0: no more words.  docs/data-format.md defines words. */
size_t gt_word_next(const char **text, char word[GT_WORD_MAX + 1]);

/* Ids of texts: GT_ID_PADDING before short ones, GT_ID_UNKNOWN for words outside the vocabulary,
   then the words. */
enum { GT_ID_PADDING, GT_ID_UNKNOWN, GT_ID_WORDS };

typedef struct gt_vocabulary gt_vocabulary;

gt_vocabulary *gt_vocabulary_create(void);
void gt_vocabulary_close(gt_vocabulary *vocabulary);
/* Counts a word of this length once more; returns the number of different words so far. */
size_t gt_vocabulary_count(gt_vocabulary *vocabulary, const char *word, size_t length);
/* Keeps the `most` most frequent words, in the order of their frequency; ties in the order of their
   bytes.  No more words can be counted afterwards. */
void gt_vocabulary_choose(gt_vocabulary *vocabulary, size_t most);
/* Returns, after gt_vocabulary_choose, the id of a word; GT_ID_UNKNOWN if it was not kept. */
int32_t gt_vocabulary_id(const gt_vocabulary *vocabulary, const char *word, size_t length);
/* Returns the number of ids; the second function, the text of an id: a word, "<padding>" or
   "<unknown>". */
size_t gt_vocabulary_ids(const gt_vocabulary *vocabulary);
const char *gt_vocabulary_text(const gt_vocabulary *vocabulary, size_t id);
