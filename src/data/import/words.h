/* words: splits texts into words, and numbers the most frequent ones.  Local; never fails. */
#ifndef GEOTRAIN_DATA_IMPORT_WORDS_H
#define GEOTRAIN_DATA_IMPORT_WORDS_H

#include "geotrain/base.h"

/* Bytes of a word; of longer ones the first count. */
#define GT_WORD_MAX ((size_t)63)

/* Copies the next word of the text at *text in lower case to `word`, sets *text behind it, and
   returns its length; 0: there is none.  docs/data-format.md says what a word is. */
size_t gt_word_next(const char **text, char word[GT_WORD_MAX + 1]);

/* The numbers of texts: GT_ID_PADDING in front of short ones, GT_ID_UNKNOWN for words that are not
   in the vocabulary, then the words. */
enum { GT_ID_PADDING, GT_ID_UNKNOWN, GT_ID_WORDS };

typedef struct gt_vocabulary gt_vocabulary;

gt_vocabulary *gt_vocabulary_create(void);
void gt_vocabulary_close(gt_vocabulary *vocabulary);
/* Counts a word of this length once more; returns the number of different words so far. */
size_t gt_vocabulary_count(gt_vocabulary *vocabulary, const char *word, size_t length);
/* Keeps the `most` most frequent words, in the order of their frequency; among equals those that
   are first in the order of their bytes.  No word is counted after that. */
void gt_vocabulary_choose(gt_vocabulary *vocabulary, size_t most);
/* After gt_vocabulary_choose: the id of a word, GT_ID_UNKNOWN if it was not kept. */
int32_t gt_vocabulary_id(const gt_vocabulary *vocabulary, const char *word, size_t length);
/* The number of ids, and what each of them is: a word, "<padding>" or "<unknown>". */
size_t gt_vocabulary_ids(const gt_vocabulary *vocabulary);
const char *gt_vocabulary_text(const gt_vocabulary *vocabulary, size_t id);

#endif
