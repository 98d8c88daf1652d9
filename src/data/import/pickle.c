/* Reads a pickle opcode by opcode, without executing it: opcodes that build lists, tuples and whole
   numbers are read, all others are refused. */
#include "pickle.h"

#include <stdlib.h>
#include <string.h>

/* ---- state of the reader --------------------------------------------------------------------- */

/* A stack of values with marks, lists, and the memo of stored values.  Lists
   share one pool of values: a list that grows but is not the last one moves to the end, with twice
   its capacity. */

enum { DIGITS = 24 };

/* A list in the pool of values, with room for `capacity`. */
typedef struct {
  uint32_t start, n, capacity;
  bool tuple;
  uint64_t offset;
} place;

struct gt_pickle {
  place *lists;
  int32_t *pool;
  size_t nlists, lists_capacity, npool, pool_capacity;
  int32_t top;
};

typedef struct {
  gt_bytes *file;
  gt_pickle *made;
  uint64_t at, opcode_at; /* offsets of the next byte and of the current opcode */
  const char *opcode;     /* its name */
  bool stopped;
  int32_t *stack, *memo;
  size_t nstack, stack_capacity, nmemo, memo_capacity;
  size_t marks[GT_PICKLE_DEPTH_MAX], nmarks; /* heights of the stack */
} reader;

#define NOT_SET INT32_MIN /* in the memo; no value is that low */

static gt_status take(reader *r, uint8_t *byte) {
  const int next = gt_bytes_next(r->file);
  if (next == GT_BYTES_FAILED) return GT_ERR_DATA;
  if (next == GT_BYTES_END)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: ends after %llu bytes, within its pickle; expected a whole file",
                   gt_bytes_path(r->file), (unsigned long long)r->at);
  *byte = (uint8_t)next;
  r->at++;
  return GT_OK;
}

static gt_status expect_end(reader *r) {
  const int next = gt_bytes_next(r->file);
  if (next < 0) return next == GT_BYTES_END ? GT_OK : GT_ERR_DATA;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: continues after its pickle, which ends at byte %llu; expected one pickle",
                 gt_bytes_path(r->file), (unsigned long long)r->at);
}

/* Reads a number of n <= 8 bytes, little endian. */
static gt_status take_number(reader *r, size_t n, uint64_t *out) {
  uint8_t byte = 0;
  *out = 0;
  for (size_t i = 0; i < n; i++) {
    GT_TRY(take(r, &byte));
    *out |= (uint64_t)byte << (8 * i);
  }
  return GT_OK;
}

static gt_status damaged(const reader *r, const char *why) {
  return GT_FAIL(GT_ERR_DATA, "%s: opcode %s at byte %llu %s; the pickle is damaged",
                 gt_bytes_path(r->file), r->opcode, (unsigned long long)r->opcode_at, why);
}

static gt_status too_large(const reader *r) {
  return GT_FAIL(GT_ERR_DATA,
                 "%s: the number at byte %llu is negative or above 2147483647; expected whole "
                 "numbers from 0 to 2147483647",
                 gt_bytes_path(r->file), (unsigned long long)r->opcode_at);
}

/* Reads the rest of the line, without its newline. */
static gt_status take_line(reader *r, char text[DIGITS]) {
  uint8_t byte = 0;
  for (size_t n = 0;; n++) {
    GT_TRY(take(r, &byte));
    if (n == DIGITS - 1) return damaged(r, "has no number of up to 22 digits and a newline");
    text[n] = byte == '\n' ? 0 : (char)byte;
    if (byte == '\n') return GT_OK;
  }
}

/* Returns the number of values above the last mark. */
static size_t above_mark(const reader *r) {
  return r->nstack - (r->nmarks ? r->marks[r->nmarks - 1] : 0);
}

static gt_status push(reader *r, int32_t value) {
  if (r->nstack == GT_PICKLE_VALUES_MAX) return damaged(r, "is one of too many values");
  GT_GROW(r->stack, r->nstack, r->stack_capacity, 1024);
  r->stack[r->nstack++] = value;
  return GT_OK;
}

static gt_status pop_mark(reader *r, size_t *height) {
  if (r->nmarks == 0) return damaged(r, "finds no mark");
  *height = r->marks[--r->nmarks];
  return GT_OK;
}

static gt_status grow_pool(reader *r, size_t count) {
  gt_pickle *p = r->made;
  if (count > GT_PICKLE_VALUES_MAX - p->npool)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: needs memory for more than %zu values up to byte %llu, the maximum",
                   gt_bytes_path(r->file), GT_PICKLE_VALUES_MAX, (unsigned long long)r->at);
  while (p->pool_capacity < p->npool + count)
    p->pool = gt_grown(p->pool, &p->pool_capacity, 1024, sizeof *p->pool);
  p->npool += count;
  return GT_OK;
}

/* Makes room for `count` more values: at the end of the pool, unless the list has room. */
static gt_status reserve(reader *r, place *l, size_t count) {
  gt_pickle *p = r->made;
  if (l->capacity - l->n >= count) return GT_OK;
  if (l->start + l->capacity != p->npool) {
    const size_t from = l->start, capacity = 2 * (size_t)l->n;
    l->start = (uint32_t)p->npool;
    GT_TRY(grow_pool(r, capacity));
    memcpy(p->pool + l->start, p->pool + from, l->n * sizeof *p->pool);
    l->capacity = (uint32_t)capacity;
  }
  const size_t more = l->n + count > l->capacity ? l->n + count - l->capacity : 0;
  GT_TRY(grow_pool(r, more));
  l->capacity += (uint32_t)more;
  return GT_OK;
}

/* Moves the values of the stack from `height` on to the end of a list. */
static gt_status move(reader *r, place *l, size_t height) {
  const size_t count = r->nstack - height;
  if (count == 0) return GT_OK;
  GT_TRY(reserve(r, l, count));
  memcpy(r->made->pool + l->start + l->n, r->stack + height, count * sizeof *r->stack);
  l->n += (uint32_t)count;
  r->nstack = height;
  return GT_OK;
}

/* Replaces the values of the stack from `height` on by a list of them. */
static gt_status make(reader *r, bool tuple, size_t height) {
  gt_pickle *p = r->made;
  if (p->nlists == GT_PICKLE_LISTS_MAX)
    return GT_FAIL(GT_ERR_DATA, "%s: has more than %zu lists up to byte %llu, the maximum",
                   gt_bytes_path(r->file), GT_PICKLE_LISTS_MAX, (unsigned long long)r->at);
  GT_GROW(p->lists, p->nlists, p->lists_capacity, 1024);
  place *l = &p->lists[p->nlists++];
  *l = (place){.start = (uint32_t)p->npool, .tuple = tuple, .offset = r->opcode_at};
  GT_TRY(move(r, l, height));
  return push(r, -(int32_t)p->nlists);
}

/* Adds the values of the stack from `height` on to the list below them. */
static gt_status extend(reader *r, size_t height) {
  const size_t fence = r->nstack - above_mark(r);
  if (height <= fence || r->stack[height - 1] >= 0) return damaged(r, "finds no list");
  place *l = &r->made->lists[-1 - r->stack[height - 1]];
  return l->tuple ? damaged(r, "finds a tuple in place of a list") : move(r, l, height);
}

static gt_status remember(reader *r, uint64_t where) {
  if (above_mark(r) == 0) return damaged(r, "finds no value");
  if (where >= GT_PICKLE_LISTS_MAX) return damaged(r, "has too high a number");
  while (r->nmemo <= where) {
    GT_GROW(r->memo, r->nmemo, r->memo_capacity, 1024);
    r->memo[r->nmemo++] = NOT_SET;
  }
  r->memo[where] = r->stack[r->nstack - 1];
  return GT_OK;
}

static gt_status recall(reader *r, uint64_t where) {
  if (where >= r->nmemo || r->memo[where] == NOT_SET)
    return damaged(r, "asks for a value that was not stored");
  return push(r, r->memo[where]);
}

/* ---- opcodes --------------------------------------------------------------------------------- */

/* Argument of an opcode: so many bytes, little endian, or a decimal number with a newline. */
enum {
  NOTHING = 0,
  BYTE = 1,
  BYTES_2 = 2,
  BYTES_4 = 4,
  BYTES_8 = 8,
  INT_4,
  LINE,
  LINE_INT,
  LINE_L
};

/* An opcode of Python's module pickletools.  run NULL: refused; name NULL: undefined. */
typedef struct {
  const char *name;
  gt_status (*run)(reader *r, uint64_t value);
  int argument;
  uint64_t value; /* if it has no argument */
} opcode;

static gt_status take_decimal(reader *r, int kind, uint64_t *out) {
  char text[DIGITS], *rest;
  GT_TRY(take_line(r, text));
  if (kind == LINE_INT && (strcmp(text, "00") == 0 || strcmp(text, "01") == 0))
    return damaged(r, "is a truth value; expected a whole number");
  *out = (uint64_t)strtoll(text, &rest, 10);
  if (kind == LINE_L && *rest == 'L') rest++;
  const char first = text[0] == '-' ? text[1] : text[0];
  return first < '0' || first > '9' || *rest ? damaged(r, "has no whole number") : GT_OK;
}

static gt_status take_argument(reader *r, const opcode *op, uint64_t *out) {
  *out = op->value;
  if (op->argument >= LINE) return take_decimal(r, op->argument, out);
  if (op->argument != INT_4)
    return op->argument ? take_number(r, (size_t)op->argument, out) : GT_OK;
  GT_TRY(take_number(r, 4, out));
  *out = (uint64_t)(int32_t)(uint32_t)*out;
  return GT_OK;
}

static gt_status proto(reader *r, uint64_t version) {
  if (version <= 5) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: is a pickle of protocol %u; expected 0 to 5",
                 gt_bytes_path(r->file), (unsigned)version);
}

/* Frames only help readers that read in blocks. */
static gt_status frame(reader *r, uint64_t size) {
  (void)r;
  (void)size;
  return GT_OK;
}

static gt_status mark(reader *r, uint64_t nothing) {
  (void)nothing;
  if (r->nmarks == GT_PICKLE_DEPTH_MAX)
    return GT_FAIL(GT_ERR_DATA, "%s: at byte %llu lists are nested more than %d deep, the maximum",
                   gt_bytes_path(r->file), (unsigned long long)r->opcode_at, GT_PICKLE_DEPTH_MAX);
  r->marks[r->nmarks++] = r->nstack;
  return GT_OK;
}

static gt_status stop(reader *r, uint64_t nothing) {
  (void)nothing;
  if (above_mark(r) != 1 || r->nmarks > 0) return damaged(r, "does not find one value");
  r->made->top = r->stack[0];
  r->stopped = true;
  return GT_OK;
}

/* value: in two's complement. */
static gt_status number(reader *r, uint64_t value) {
  return value > INT32_MAX ? too_large(r) : push(r, (int32_t)value);
}

/* Reads a number of this many bytes in two's complement. */
static gt_status wide(reader *r, uint64_t bytes) {
  uint64_t value;
  if (bytes > 8) return too_large(r);
  GT_TRY(take_number(r, bytes, &value));
  return bytes > 0 && value >> (8 * bytes - 1) ? too_large(r) : number(r, value);
}

static gt_status memoize(reader *r, uint64_t nothing) {
  (void)nothing;
  return remember(r, r->nmemo);
}

static gt_status empty(reader *r, uint64_t tuple) {
  return make(r, tuple, r->nstack);
}

static gt_status from_mark(reader *r, uint64_t tuple) {
  size_t height;
  GT_TRY(pop_mark(r, &height));
  return make(r, tuple, height);
}

static gt_status tuple_of(reader *r, uint64_t n) {
  return above_mark(r) < n ? damaged(r, "finds too few values") : make(r, true, r->nstack - n);
}

static gt_status append(reader *r, uint64_t nothing) {
  (void)nothing;
  return above_mark(r) < 2 ? damaged(r, "finds too few values") : extend(r, r->nstack - 1);
}

static gt_status appends(reader *r, uint64_t nothing) {
  size_t height;
  (void)nothing;
  GT_TRY(pop_mark(r, &height));
  return extend(r, height);
}

static const opcode opcodes[256] = {
    ['('] = {"MARK", mark, NOTHING, 0},
    [')'] = {"EMPTY_TUPLE", empty, NOTHING, true},
    ['.'] = {"STOP", stop, NOTHING, 0},
    ['0'] = {.name = "POP"},
    ['1'] = {.name = "POP_MARK"},
    ['2'] = {.name = "DUP"},
    ['B'] = {.name = "BINBYTES"},
    ['C'] = {.name = "SHORT_BINBYTES"},
    ['F'] = {.name = "FLOAT"},
    ['G'] = {.name = "BINFLOAT"},
    ['I'] = {"INT", number, LINE_INT, 0},
    ['J'] = {"BININT", number, INT_4, 0},
    ['K'] = {"BININT1", number, BYTE, 0},
    ['L'] = {"LONG", number, LINE_L, 0},
    ['M'] = {"BININT2", number, BYTES_2, 0},
    ['N'] = {.name = "NONE"},
    ['P'] = {.name = "PERSID"},
    ['Q'] = {.name = "BINPERSID"},
    ['R'] = {.name = "REDUCE"},
    ['S'] = {.name = "STRING"},
    ['T'] = {.name = "BINSTRING"},
    ['U'] = {.name = "SHORT_BINSTRING"},
    ['V'] = {.name = "UNICODE"},
    ['X'] = {.name = "BINUNICODE"},
    [']'] = {"EMPTY_LIST", empty, NOTHING, false},
    ['a'] = {"APPEND", append, NOTHING, 0},
    ['b'] = {.name = "BUILD"},
    ['c'] = {.name = "GLOBAL"},
    ['d'] = {.name = "DICT"},
    ['e'] = {"APPENDS", appends, NOTHING, 0},
    ['g'] = {"GET", recall, LINE, 0},
    ['h'] = {"BINGET", recall, BYTE, 0},
    ['i'] = {.name = "INST"},
    ['j'] = {"LONG_BINGET", recall, BYTES_4, 0},
    ['l'] = {"LIST", from_mark, NOTHING, false},
    ['o'] = {.name = "OBJ"},
    ['p'] = {"PUT", remember, LINE, 0},
    ['q'] = {"BINPUT", remember, BYTE, 0},
    ['r'] = {"LONG_BINPUT", remember, BYTES_4, 0},
    ['s'] = {.name = "SETITEM"},
    ['t'] = {"TUPLE", from_mark, NOTHING, true},
    ['u'] = {.name = "SETITEMS"},
    ['}'] = {.name = "EMPTY_DICT"},
    [0x80] = {"PROTO", proto, BYTE, 0},
    [0x81] = {.name = "NEWOBJ"},
    [0x82] = {.name = "EXT1"},
    [0x83] = {.name = "EXT2"},
    [0x84] = {.name = "EXT4"},
    [0x85] = {"TUPLE1", tuple_of, NOTHING, 1},
    [0x86] = {"TUPLE2", tuple_of, NOTHING, 2},
    [0x87] = {"TUPLE3", tuple_of, NOTHING, 3},
    [0x88] = {.name = "NEWTRUE"},
    [0x89] = {.name = "NEWFALSE"},
    [0x8a] = {"LONG1", wide, BYTE, 0},
    [0x8b] = {"LONG4", wide, BYTES_4, 0},
    [0x8c] = {.name = "SHORT_BINUNICODE"},
    [0x8d] = {.name = "BINUNICODE8"},
    [0x8e] = {.name = "BINBYTES8"},
    [0x8f] = {.name = "EMPTY_SET"},
    [0x90] = {.name = "ADDITEMS"},
    [0x91] = {.name = "FROZENSET"},
    [0x92] = {.name = "NEWOBJ_EX"},
    [0x93] = {.name = "STACK_GLOBAL"},
    [0x94] = {"MEMOIZE", memoize, NOTHING, 0},
    [0x95] = {"FRAME", frame, BYTES_8, 0},
    [0x96] = {.name = "BYTEARRAY8"},
    [0x97] = {.name = "NEXT_BUFFER"},
    [0x98] = {.name = "READONLY_BUFFER"},
};

/* ---- all of a file --------------------------------------------------------------------------- */

static gt_status refuse(const reader *r, uint8_t byte) {
  if (!r->opcode)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: byte %llu is 0x%02x, which is no opcode; the pickle is damaged",
                   gt_bytes_path(r->file), (unsigned long long)r->opcode_at, byte);
  return GT_FAIL(GT_ERR_DATA,
                 "%s: opcode %s at byte %llu is refused; only lists, tuples and whole numbers "
                 "are read, and nothing is executed",
                 gt_bytes_path(r->file), r->opcode, (unsigned long long)r->opcode_at);
}

static gt_status step(reader *r) {
  uint8_t byte = 0;
  r->opcode_at = r->at;
  GT_TRY(take(r, &byte));
  const opcode *op = &opcodes[byte];
  r->opcode = op->name;
  if (!op->run) return refuse(r, byte);
  uint64_t value;
  GT_TRY(take_argument(r, op, &value));
  return op->run(r, value);
}

bool gt_pickle_begins(uint8_t byte) {
  return byte == 0x80 || byte == '(' || byte == ')' || byte == ']';
}

gt_status gt_pickle_read(gt_pickle **out, gt_bytes *file) {
  reader *r = GT_NEW(reader);
  r->file = file;
  r->made = GT_NEW(gt_pickle);
  gt_status status = GT_OK;
  while (status == GT_OK && !r->stopped) status = step(r);
  if (status == GT_OK) status = expect_end(r);
  *out = status == GT_OK ? r->made : NULL;
  if (status != GT_OK) gt_pickle_close(r->made);
  gt_free(r->memo);
  gt_free(r->stack);
  gt_free(r);
  return status;
}

void gt_pickle_close(gt_pickle *p) {
  if (!p) return;
  gt_free(p->pool);
  gt_free(p->lists);
  gt_free(p);
}

gt_pickle_value gt_pickle_top(const gt_pickle *p) {
  return p->top;
}

gt_pickle_list gt_pickle_list_of(const gt_pickle *p, gt_pickle_value value) {
  const place *l = &p->lists[-1 - value];
  return (gt_pickle_list){.values = l->n ? p->pool + l->start : NULL,
                          .n = l->n,
                          .tuple = l->tuple,
                          .offset = l->offset};
}
