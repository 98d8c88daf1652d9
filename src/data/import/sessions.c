/* Imports sessions of clicks, as in the data sets of SR-GNN (Wu et al. 2019) and NISER (Gupta et
   al. 2019): a sample is the last items of a session before one of its items, and this item is its
   label. */
#include <string.h>

#include "import.h"
#include "session_file.h"
#include "store.h"

enum { BLOCK_BYTES = 1 << 20 };
#define MAX_SAMPLES 100000000 /* of a split: more means other data or a damaged file */

typedef struct {
  const char *name;
  bool whole; /* every item from the second on is a target; else the last one is */
} file_kind;

typedef struct {
  const char *folder;
  size_t length; /* items of a sample */
  int32_t items; /* the highest number */
  bool whole[2]; /* see file_kind; indexed by gt_split, as all that follow */
  gt_session_file *files[2];
  size_t n[2];
  int32_t *block, *labels;
  size_t filled, room, stored; /* samples: in the block; that fit; written before */
  gt_data_store *store;
} sessions;

/* ---- files ----------------------------------------------------------------------------------- */

static const file_kind kinds[2][2] = {
    {{"train.txt", false}, {"all_train_seq.txt", true}},
    {{"test.txt", false}, {NULL, false}},
};

static gt_status open_split(sessions *s, gt_split split) {
  const file_kind *kind = kinds[split];
  char *path = gt_bytes_find(s->folder, kind->name);
  if (!path && kind[1].name) path = gt_bytes_find(s->folder, (++kind)->name);
  if (!path)
    return GT_FAIL(GT_ERR_DATA, "%s: %s is missing, with .gz and without", s->folder,
                   split == GT_SPLIT_TRAIN ? "train.txt or all_train_seq.txt" : kind->name);
  s->whole[split] = kind->whole;
  const gt_status status = gt_session_file_open(&s->files[split], path);
  gt_free(path);
  return status;
}

/* ---- samples --------------------------------------------------------------------------------- */

static bool has_prefixes(const sessions *s, gt_split split, const gt_session *session) {
  return s->whole[split] && !session->paired;
}

/* The first item of a session that is a label; the last one always is. */
static gt_status first_label(const sessions *s, gt_split split, const gt_session *session,
                             size_t *first) {
  if (has_prefixes(s, split, session)) return *first = 1, GT_OK;
  *first = session->n - 1;
  if (session->n >= 2) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: %s has no item before its target; 1 or more in front of it are needed",
                 gt_session_file_path(s->files[split]), gt_session_file_where(s->files[split]));
}

static int32_t highest(const gt_session *session) {
  int32_t highest = 0;
  for (size_t i = 0; i < session->n; i++)
    if (session->items[i] > highest) highest = session->items[i];
  return highest;
}

/* First pass: counts the samples, and finds the highest number. */
static gt_status measure(sessions *s, gt_split split) {
  gt_session session;
  size_t first;
  for (;;) {
    GT_TRY(gt_session_file_next(s->files[split], &session));
    if (!session.items) break;
    GT_TRY(first_label(s, split, &session, &first));
    if (highest(&session) > s->items) s->items = highest(&session);
    if (session.n > first) s->n[split] += session.n - first;
    if (s->n[split] > MAX_SAMPLES)
      return GT_FAIL(GT_ERR_DATA, "%s: has more than %d samples up to %s; at most so many are read",
                     gt_session_file_path(s->files[split]), MAX_SAMPLES,
                     gt_session_file_where(s->files[split]));
  }
  if (s->n[split] == 0)
    return GT_FAIL(GT_ERR_DATA, "%s: has no session of 2 items; 1 or more such are needed",
                   gt_session_file_path(s->files[split]));
  return gt_session_file_rewind(s->files[split]);
}

static gt_status flush(sessions *s, gt_split split) {
  if (s->filled == 0) return GT_OK;
  GT_TRY(gt_data_store_ids(s->store, split, s->stored, s->filled, s->block));
  GT_TRY(gt_data_store_labels(s->store, split, s->stored, s->filled, s->labels));
  s->stored += s->filled;
  s->filled = 0;
  return GT_OK;
}

/* The last items before number `label`, behind padding; labels count from 0. */
static gt_status add_sample(sessions *s, gt_split split, const int32_t *items, size_t label) {
  const size_t kept = label < s->length ? label : s->length, padding = s->length - kept;
  int32_t *row = s->block + s->filled * s->length;
  memset(row, 0, padding * sizeof *row);
  memcpy(row + padding, items + label - kept, kept * sizeof *row);
  s->labels[s->filled++] = items[label] - 1;
  return s->filled == s->room ? flush(s, split) : GT_OK;
}

static gt_status changed(const sessions *s, gt_split split) {
  return GT_FAIL(GT_ERR_DATA, "%s: changed while it was read; import it again",
                 gt_session_file_path(s->files[split]));
}

static gt_status copy_split(sessions *s, gt_split split) {
  gt_session session;
  size_t label;
  s->stored = 0;
  for (;;) {
    GT_TRY(gt_session_file_next(s->files[split], &session));
    if (!session.items) break;
    GT_TRY(first_label(s, split, &session, &label));
    if (highest(&session) > s->items) return changed(s, split);
    for (; label < session.n && s->stored + s->filled < s->n[split]; label++)
      GT_TRY(add_sample(s, split, session.items, label));
  }
  GT_TRY(flush(s, split));
  return s->stored == s->n[split] ? GT_OK : changed(s, split);
}

static gt_status convert(sessions *s, const char *out) {
  char name[64];
  for (int i = 0; i < 2; i++) GT_TRY(open_split(s, (gt_split)i));
  for (int i = 0; i < 2; i++) GT_TRY(measure(s, (gt_split)i));
  if (s->items < 2)
    return GT_FAIL(GT_ERR_DATA, "%s: has item 1 only; 2 or more items are needed", s->folder);
  const size_t row = s->length * sizeof *s->block;
  s->room = 1 + BLOCK_BYTES / row;
  s->block = gt_alloc(s->room, row);
  s->labels = GT_NEW_ARRAY(int32_t, s->room);
  const gt_data_shape shape = {
      .n = {s->n[0], s->n[1]}, .h = 1, .w = 1, .c = s->length, .features = (size_t)s->items + 1};
  GT_TRY(gt_data_store_create(&s->store, out, &shape));
  for (int i = 0; i < 2; i++) GT_TRY(copy_split(s, (gt_split)i));
  gt_import_name(s->folder, "sessions", name);
  return gt_data_store_finish(s->store, name, (size_t)s->items);
}

gt_status gt_import_sessions(const char *source, const char *out, const gt_text_options *options) {
  sessions s = {.folder = source, .length = options->length};
  const gt_status status = convert(&s, out);
  gt_data_store_close(s.store);
  for (int i = 0; i < 2; i++) gt_session_file_close(s.files[i]);
  gt_free(s.labels);
  gt_free(s.block);
  return status;
}
