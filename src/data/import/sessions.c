/* Imports sessions of clicks, as in the data sets of SR-GNN (Wu et al. 2019) and NISER (Gupta et
   al. 2019): a sample is the last items of a session before one of its items, and this item is its
   label. */
#include <stdio.h>
#include <string.h>

#include "import.h"
#include "lines.h"
#include "pickle.h"
#include "store.h"

/* ---- files: a pickle, or a text, gzip or plain ----------------------------------------------- */

#define GT_ITEMS_MAX 1000000 /* the highest number of an item; the lowest is 1 */

/* A session of n items.  paired: the last item is the target that the file gives for the others. */
typedef struct {
  const int32_t *items; /* NULL: no more sessions */
  size_t n;
  bool paired;
} clicks;

typedef struct {
  char *path, where[64];
  gt_lines *lines;   /* NULL: a pickle */
  gt_pickle *pickle; /* NULL: a text */
  gt_pickle_list sessions, targets;
  bool paired;
  size_t at;      /* the next session of the pickle */
  int32_t *items; /* of the last session */
  size_t nitems, capacity;
} session_file;

static gt_status check_item(const session_file *f, int64_t item) {
  if (item >= 1 && item <= GT_ITEMS_MAX) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: %s has item %lld; expected numbers from 1 to %d", f->path,
                 f->where, (long long)item, GT_ITEMS_MAX);
}

static void keep(session_file *f, int32_t item) {
  GT_GROW(f->items, f->nitems, f->capacity, 64);
  f->items[f->nitems++] = item;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *text) {
  return text + strspn(text, " \t");
}

/* Returns a printable excerpt of the text, for messages. */
static const char *quote(const char *text, char out[25]) {
  snprintf(out, 25, "%.*s", (int)strcspn(text, " \t"), text);
  for (char *p = out; *p; p++)
    if (*p < ' ' || *p > '~') *p = '?';
  return out;
}

/* Reads the number at *text, and advances *text. */
static gt_status take_item(session_file *f, const char **text) {
  const char *end = *text;
  char found[25];
  int64_t item = 0;
  for (; is_digit(*end); end++)
    if (item <= GT_ITEMS_MAX) item = item * 10 + (*end - '0');
  if (end == *text || (*end && *end != ' ' && *end != '\t') || item > GT_ITEMS_MAX || item < 1)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: %s has `%s`; expected numbers of items, 1 to %d, separated by blanks",
                   f->path, f->where, quote(*text, found), GT_ITEMS_MAX);
  keep(f, (int32_t)item);
  *text = end;
  return GT_OK;
}

static gt_status next_line(session_file *f, clicks *session) {
  const char *text;
  f->nitems = 0;
  do {
    GT_TRY(gt_lines_next(f->lines, &text));
    if (!text) return GT_OK;
    snprintf(f->where, sizeof f->where, "line %zu", gt_lines_number(f->lines));
    for (text = skip_blanks(text); *text; text = skip_blanks(text)) GT_TRY(take_item(f, &text));
  } while (f->nitems == 0);
  *session = (clicks){.items = f->items, .n = f->nitems};
  return GT_OK;
}

static gt_status wrong_form(const session_file *f, uint64_t offset, const char *found) {
  return GT_FAIL(GT_ERR_DATA,
                 "%s: byte %llu begins %s; expected a list of sessions, which are lists of "
                 "numbers, or a pair of such a list and the list of their targets",
                 f->path, (unsigned long long)offset, found);
}

/* True if these are the sessions and their targets, not two sessions. */
static bool is_pair(const gt_pickle *p, const gt_pickle_list *top) {
  if (top->n != 2 || top->values[0] >= 0 || top->values[1] >= 0) return false;
  const gt_pickle_list first = gt_pickle_list_of(p, top->values[0]);
  return first.n > 0 && first.values[0] < 0;
}

static gt_status open_top(session_file *f) {
  if (gt_pickle_top(f->pickle) >= 0)
    return GT_FAIL(GT_ERR_DATA, "%s: is the pickle of a number; expected one of sessions", f->path);
  f->sessions = gt_pickle_list_of(f->pickle, gt_pickle_top(f->pickle));
  f->paired = is_pair(f->pickle, &f->sessions);
  if (!f->paired) return GT_OK;
  f->targets = gt_pickle_list_of(f->pickle, f->sessions.values[1]);
  f->sessions = gt_pickle_list_of(f->pickle, f->sessions.values[0]);
  if (f->sessions.n == f->targets.n) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: has %zu sessions but %zu targets; expected the same number",
                 f->path, f->sessions.n, f->targets.n);
}

/* Copies a value if it is the number of an item. */
static gt_status copy_item(session_file *f, gt_pickle_value value) {
  if (value < 0)
    return wrong_form(f, gt_pickle_list_of(f->pickle, value).offset, "a list within a session");
  GT_TRY(check_item(f, value));
  keep(f, value);
  return GT_OK;
}

static gt_status next_list(session_file *f, clicks *session) {
  if (f->at == f->sessions.n) return GT_OK;
  const gt_pickle_value value = f->sessions.values[f->at];
  if (value >= 0) return wrong_form(f, f->sessions.offset, "a list that has numbers");
  const gt_pickle_list list = gt_pickle_list_of(f->pickle, value);
  f->nitems = 0;
  snprintf(f->where, sizeof f->where, "session %zu, at byte %llu,", f->at + 1,
           (unsigned long long)list.offset);
  for (size_t i = 0; i < list.n; i++) GT_TRY(copy_item(f, list.values[i]));
  if (f->paired) GT_TRY(copy_item(f, f->targets.values[f->at]));
  keep(f, 0); /* so that an empty session has an address */
  *session = (clicks){.items = f->items, .n = f->nitems - 1, .paired = f->paired};
  f->at++;
  return GT_OK;
}

static gt_status read_pickle(session_file *f, gt_bytes *bytes) {
  GT_TRY(gt_bytes_rewind(bytes));
  GT_TRY(gt_pickle_read(&f->pickle, bytes));
  return open_top(f);
}

static gt_status open_form(session_file *f) {
  gt_bytes *bytes;
  uint8_t first = 0;
  GT_TRY(gt_bytes_open(&bytes, f->path));
  gt_status status = gt_bytes_read(bytes, &first, 1) < 0 ? GT_ERR_DATA : GT_OK;
  const bool pickled = gt_pickle_begins(first);
  if (status == GT_OK && pickled) status = read_pickle(f, bytes);
  gt_bytes_close(bytes);
  return status == GT_OK && !pickled ? gt_lines_open(&f->lines, f->path) : status;
}

static void close_file(session_file *f) {
  if (!f) return;
  gt_pickle_close(f->pickle);
  gt_lines_close(f->lines);
  gt_free(f->items);
  gt_free(f->path);
  gt_free(f);
}

/* Opens a file.  If its first byte begins a pickle of a list or tuple, it is a pickle: a list of
   sessions, or a pair of such a list and the list of their targets.  Otherwise it is a text: one
   session per line, numbers separated by blanks.  GT_ERR_DATA names the file and the error. */
static gt_status open_file(session_file **out, const char *path) {
  session_file *f = GT_NEW(session_file);
  f->path = gt_strdup(path);
  const gt_status status = open_form(f);
  *out = status == GT_OK ? f : NULL;
  if (status != GT_OK) close_file(f);
  return status;
}

static gt_status next_session(session_file *f, clicks *session) {
  *session = (clicks){0};
  return f->pickle ? next_list(f, session) : next_line(f, session);
}

static gt_status rewind_file(session_file *f) {
  f->at = 0;
  return f->lines ? gt_lines_rewind(f->lines) : GT_OK;
}

/* ---- splits ---------------------------------------------------------------------------------- */

enum { BLOCK_BYTES = 1 << 20 };
#define MAX_SAMPLES 100000000 /* per split; a larger number means other data or a damaged file */

typedef struct {
  const char *name;
  bool whole; /* every item from the second on is a target; else only the last one */
} file_kind;

typedef struct {
  const char *folder;
  size_t length; /* items of a sample */
  int32_t items; /* the highest number */
  bool whole[2]; /* see file_kind; indexed by gt_split, like all that follow */
  session_file *files[2];
  size_t n[2];
  int32_t *block, *labels;
  size_t filled, room, stored; /* samples: in the block; capacity of the block; written before */
  gt_data_store *store;
} sessions;

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
  const gt_status status = open_file(&s->files[split], path);
  gt_free(path);
  return status;
}

/* ---- samples --------------------------------------------------------------------------------- */

static bool has_prefixes(const sessions *s, gt_split split, const clicks *session) {
  return s->whole[split] && !session->paired;
}

/* Returns the first item of a session that is a label; the last one always is. */
static gt_status first_label(const sessions *s, gt_split split, const clicks *session,
                             size_t *first) {
  if (has_prefixes(s, split, session)) return *first = 1, GT_OK;
  *first = session->n - 1;
  if (session->n >= 2) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: %s has no item before its target; expected 1 or more in front of it",
                 s->files[split]->path, s->files[split]->where);
}

static int32_t highest(const clicks *session) {
  int32_t highest = 0;
  for (size_t i = 0; i < session->n; i++)
    if (session->items[i] > highest) highest = session->items[i];
  return highest;
}

/* First pass: counts the samples, and finds the highest number. */
static gt_status measure(sessions *s, gt_split split) {
  clicks session;
  size_t first;
  for (;;) {
    GT_TRY(next_session(s->files[split], &session));
    if (!session.items) break;
    GT_TRY(first_label(s, split, &session, &first));
    if (highest(&session) > s->items) s->items = highest(&session);
    if (session.n > first) s->n[split] += session.n - first;
    if (s->n[split] > MAX_SAMPLES)
      return GT_FAIL(GT_ERR_DATA, "%s: has more than %d samples up to %s, the maximum",
                     s->files[split]->path, MAX_SAMPLES, s->files[split]->where);
  }
  if (s->n[split] == 0)
    return GT_FAIL(GT_ERR_DATA, "%s: has no session of 2 items; expected 1 or more such",
                   s->files[split]->path);
  return rewind_file(s->files[split]);
}

static gt_status flush(sessions *s, gt_split split) {
  if (s->filled == 0) return GT_OK;
  GT_TRY(gt_data_store_samples(s->store, split, s->stored, s->filled, s->block));
  GT_TRY(gt_data_store_labels(s->store, split, s->stored, s->filled, s->labels));
  s->stored += s->filled;
  s->filled = 0;
  return GT_OK;
}

/* Adds the items before position `label`, after padding; labels count from 0. */
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
                 s->files[split]->path);
}

static gt_status copy_split(sessions *s, gt_split split) {
  clicks session;
  size_t label;
  s->stored = 0;
  for (;;) {
    GT_TRY(next_session(s->files[split], &session));
    if (!session.items) break;
    GT_TRY(first_label(s, split, &session, &label));
    if (highest(&session) > s->items) return changed(s, split);
    for (; label < session.n && s->stored + s->filled < s->n[split]; label++)
      GT_TRY(add_sample(s, split, session.items, label));
  }
  GT_TRY(flush(s, split));
  return s->stored == s->n[split] ? GT_OK : changed(s, split);
}

static gt_status convert(sessions *s, const char *out, const gt_schema *names) {
  char name[64];
  for (int i = 0; i < 2; i++) GT_TRY(open_split(s, (gt_split)i));
  for (int i = 0; i < 2; i++) GT_TRY(measure(s, (gt_split)i));
  if (s->items < 2)
    return GT_FAIL(GT_ERR_DATA, "%s: has item 1 only; expected 2 or more items", s->folder);
  const size_t row = s->length * sizeof *s->block;
  s->room = 1 + BLOCK_BYTES / row;
  s->block = gt_alloc(s->room, row);
  s->labels = GT_NEW_ARRAY(int32_t, s->room);
  size_t ids = (size_t)s->items + 1;
  GT_TRY(gt_import_ids(s->folder, names, &ids));
  const gt_data_shape shape = {
      .n = {s->n[0], s->n[1]}, .h = 1, .w = 1, .c = s->length, .features = ids, .schema = names};
  GT_TRY(gt_data_store_create(&s->store, out, &shape));
  for (int i = 0; i < 2; i++) GT_TRY(copy_split(s, (gt_split)i));
  gt_import_name(s->folder, "sessions", name);
  return gt_data_store_finish(s->store, name, ids - 1);
}

gt_status gt_import_sessions(const char *source, const char *out,
                             const gt_import_options *options) {
  sessions s = {.folder = source, .length = options->length};
  const gt_status status = convert(&s, out, options->names);
  gt_data_store_close(s.store);
  for (int i = 0; i < 2; i++) close_file(s.files[i]);
  gt_free(s.labels);
  gt_free(s.block);
  return status;
}
