/* The two forms of a file of sessions: a pickle, which is in memory, and a text, read line by
   line. */
#include "session_file.h"

#include <stdio.h>
#include <string.h>

#include "lines.h"
#include "pickle.h"

typedef struct {
  gt_status (*next)(gt_session_file *f, gt_session *session);
  gt_status (*rewind)(gt_session_file *f);
} form;

struct gt_session_file {
  char *path, where[64];
  const form *form;
  gt_lines *lines;
  gt_pickle *pickle;
  gt_pickle_list sessions, targets;
  bool paired;
  size_t at;      /* the next session of the pickle */
  int32_t *items; /* of the last session */
  size_t nitems, capacity;
};

static gt_status check_item(const gt_session_file *f, int64_t item) {
  if (item >= 1 && item <= GT_ITEMS_MAX) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: %s has item %lld; numbers from 1 to %d are needed", f->path,
                 f->where, (long long)item, GT_ITEMS_MAX);
}

static void keep(gt_session_file *f, int32_t item) {
  GT_GROW(f->items, f->nitems, f->capacity, 64);
  f->items[f->nitems++] = item;
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *text) {
  return text + strspn(text, " \t");
}

/* A printable piece of text, for messages. */
static const char *quote(const char *text, char out[25]) {
  snprintf(out, 25, "%.*s", (int)strcspn(text, " \t"), text);
  for (char *p = out; *p; p++)
    if (*p < ' ' || *p > '~') *p = '?';
  return out;
}

/* Reads the number at *text, and moves behind it. */
static gt_status take_item(gt_session_file *f, const char **text) {
  const char *end = *text;
  char found[25];
  int64_t item = 0;
  for (; is_digit(*end); end++)
    if (item <= GT_ITEMS_MAX) item = item * 10 + (*end - '0');
  if (end == *text || (*end && *end != ' ' && *end != '\t') || item > GT_ITEMS_MAX || item < 1)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: %s has `%s`; numbers of items, 1 to %d, separated by blanks, are needed",
                   f->path, f->where, quote(*text, found), GT_ITEMS_MAX);
  keep(f, (int32_t)item);
  *text = end;
  return GT_OK;
}

static gt_status next_line(gt_session_file *f, gt_session *session) {
  const char *text;
  f->nitems = 0;
  do {
    GT_TRY(gt_lines_next(f->lines, &text));
    if (!text) return GT_OK;
    snprintf(f->where, sizeof f->where, "line %zu", gt_lines_number(f->lines));
    for (text = skip_blanks(text); *text; text = skip_blanks(text)) GT_TRY(take_item(f, &text));
  } while (f->nitems == 0);
  *session = (gt_session){.items = f->items, .n = f->nitems};
  return GT_OK;
}

static gt_status rewind_lines(gt_session_file *f) {
  return gt_lines_rewind(f->lines);
}

static const form as_text = {next_line, rewind_lines};

/* ---- pickle ---------------------------------------------------------------------------------- */

static gt_status wrong_form(const gt_session_file *f, uint64_t offset, const char *found) {
  return GT_FAIL(GT_ERR_DATA,
                 "%s: byte %llu begins %s; a list of sessions, which are lists of numbers, is "
                 "needed, or a pair of such a list and the list of their targets",
                 f->path, (unsigned long long)offset, found);
}

/* Whether these are the sessions and their targets, not two sessions. */
static bool is_pair(const gt_pickle *p, const gt_pickle_list *top) {
  if (top->n != 2 || top->values[0] >= 0 || top->values[1] >= 0) return false;
  const gt_pickle_list first = gt_pickle_list_of(p, top->values[0]);
  return first.n > 0 && first.values[0] < 0;
}

static gt_status open_top(gt_session_file *f) {
  if (gt_pickle_top(f->pickle) >= 0)
    return GT_FAIL(GT_ERR_DATA, "%s: is the pickle of a number; one of sessions is needed",
                   f->path);
  f->sessions = gt_pickle_list_of(f->pickle, gt_pickle_top(f->pickle));
  f->paired = is_pair(f->pickle, &f->sessions);
  if (!f->paired) return GT_OK;
  f->targets = gt_pickle_list_of(f->pickle, f->sessions.values[1]);
  f->sessions = gt_pickle_list_of(f->pickle, f->sessions.values[0]);
  if (f->sessions.n == f->targets.n) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: has %zu sessions but %zu targets; the same number is needed",
                 f->path, f->sessions.n, f->targets.n);
}

/* Copies a value if it is the number of an item. */
static gt_status copy_item(gt_session_file *f, gt_pickle_value value) {
  if (value < 0)
    return wrong_form(f, gt_pickle_list_of(f->pickle, value).offset, "a list within a session");
  GT_TRY(check_item(f, value));
  keep(f, value);
  return GT_OK;
}

static gt_status next_list(gt_session_file *f, gt_session *session) {
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
  *session = (gt_session){.items = f->items, .n = f->nitems - 1, .paired = f->paired};
  f->at++;
  return GT_OK;
}

static gt_status rewind_list(gt_session_file *f) {
  f->at = 0;
  return GT_OK;
}

static const form as_pickle = {next_list, rewind_list};

/* ---- files ----------------------------------------------------------------------------------- */

static gt_status read_pickle(gt_session_file *f, gt_bytes *bytes) {
  f->form = &as_pickle;
  GT_TRY(gt_bytes_rewind(bytes));
  GT_TRY(gt_pickle_read(&f->pickle, bytes));
  return open_top(f);
}

static gt_status open_text(gt_session_file *f) {
  f->form = &as_text;
  return gt_lines_open(&f->lines, f->path);
}

static gt_status open_form(gt_session_file *f) {
  gt_bytes *bytes;
  uint8_t first = 0;
  GT_TRY(gt_bytes_open(&bytes, f->path));
  gt_status status = gt_bytes_read(bytes, &first, 1) < 0 ? GT_ERR_DATA : GT_OK;
  const bool pickled = gt_pickle_begins(first);
  if (status == GT_OK && pickled) status = read_pickle(f, bytes);
  gt_bytes_close(bytes);
  return status == GT_OK && !pickled ? open_text(f) : status;
}

gt_status gt_session_file_open(gt_session_file **out, const char *path) {
  gt_session_file *f = GT_NEW(gt_session_file);
  f->path = gt_strdup(path);
  const gt_status status = open_form(f);
  *out = status == GT_OK ? f : NULL;
  if (status != GT_OK) gt_session_file_close(f);
  return status;
}

void gt_session_file_close(gt_session_file *f) {
  if (!f) return;
  gt_pickle_close(f->pickle);
  gt_lines_close(f->lines);
  gt_free(f->items);
  gt_free(f->path);
  gt_free(f);
}

const char *gt_session_file_path(const gt_session_file *f) {
  return f->path;
}

gt_status gt_session_file_next(gt_session_file *f, gt_session *session) {
  *session = (gt_session){0};
  return f->form->next(f, session);
}

const char *gt_session_file_where(const gt_session_file *f) {
  return f->where;
}

gt_status gt_session_file_rewind(gt_session_file *f) {
  return f->form->rewind(f);
}
