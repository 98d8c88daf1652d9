/* Reads a pickle opcode by opcode, without executing it: opcodes that build lists, tuples and whole
   numbers are read, all others are refused. */
#include "pickle.h"

#include <stdlib.h>
#include <string.h>

/* ---- state of the reader --------------------------------------------------------------------- */

/* The bytes of the file, a stack of values with marks, lists, and the memo of stored values.  Lists
   share one pool of values: a list that grows but is not the last one moves to the end, with twice
   its capacity. */

enum { BUFFER = 1 << 16, DIGITS = 24 };

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
  size_t used, have;                         /* of buffer */
  uint8_t buffer[BUFFER];
} reader;

#define NOT_SET INT32_MIN /* in the memo; no value is that low */

static gt_status fill(reader *r) {
  const int64_t got = gt_bytes_read(r->file, r->buffer, BUFFER);
  if (got < 0) return GT_ERR_DATA;
  r->used = 0;
  r->have = (size_t)got;
  return got < BUFFER ? gt_bytes_whole(r->file) : GT_OK;
}

static gt_status take(reader *r, uint8_t *byte) {
  if (r->used == r->have) GT_TRY(fill(r));
  if (r->have == 0)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: ends after %llu bytes, within its pickle; expected a whole file",
                   gt_bytes_path(r->file), (unsigned long long)r->at);
  *byte = r->buffer[r->used++];
  r->at++;
  return GT_OK;
}

static gt_status expect_end(reader *r) {
  if (r->used == r->have) GT_TRY(fill(r));
  if (r->have == 0) return GT_OK;
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

static gt_status push_number(reader *r, int64_t value) {
  return value < 0 || value > INT32_MAX ? too_large(r) : push(r, (int32_t)value);
}

static gt_status push_mark(reader *r) {
  if (r->nmarks == GT_PICKLE_DEPTH_MAX)
    return GT_FAIL(GT_ERR_DATA, "%s: at byte %llu lists are nested more than %d deep, the maximum",
                   gt_bytes_path(r->file), (unsigned long long)r->opcode_at, GT_PICKLE_DEPTH_MAX);
  r->marks[r->nmarks++] = r->nstack;
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

/* An opcode of Python's module pickletools.  run NULL: refused; name NULL: undefined. */
typedef struct {
  const char *name;
  gt_status (*run)(reader *r);
} opcode;
static gt_status parse(const reader *r, const char *text, char end, int64_t *out) {
  char *rest;
  *out = strtoll(text, &rest, 10);
  if (*rest == end && end) rest++;
  const char first = text[0] == '-' ? text[1] : text[0];
  if (first < '0' || first > '9' || *rest) return damaged(r, "has no whole number");
  return GT_OK;
}

static gt_status proto(reader *r) {
  uint8_t version = 0;
  GT_TRY(take(r, &version));
  if (version <= 5) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: is a pickle of protocol %u; expected 0 to 5",
                 gt_bytes_path(r->file), version);
}

/* Frames only help readers that read in blocks. */
static gt_status frame(reader *r) {
  uint64_t size;
  return take_number(r, 8, &size);
}

static gt_status stop(reader *r) {
  if (above_mark(r) != 1 || r->nmarks > 0) return damaged(r, "does not find one value");
  r->made->top = r->stack[0];
  r->stopped = true;
  return GT_OK;
}

static gt_status binint(reader *r) {
  uint64_t bits;
  GT_TRY(take_number(r, 4, &bits));
  return push_number(r, (int32_t)(uint32_t)bits);
}

static gt_status small_int(reader *r, size_t bytes) {
  uint64_t value;
  GT_TRY(take_number(r, bytes, &value));
  return push_number(r, (int64_t)value);
}

static gt_status binint1(reader *r) {
  return small_int(r, 1);
}

static gt_status binint2(reader *r) {
  return small_int(r, 2);
}

/* Reads a number of this many bytes in two's complement. */
static gt_status wide_int(reader *r, uint64_t bytes) {
  uint64_t value;
  if (bytes > 8) return too_large(r);
  GT_TRY(take_number(r, bytes, &value));
  const bool negative = bytes > 0 && value >> (8 * bytes - 1);
  return negative || value > INT32_MAX ? too_large(r) : push_number(r, (int64_t)value);
}

static gt_status long1(reader *r) {
  uint64_t bytes;
  GT_TRY(take_number(r, 1, &bytes));
  return wide_int(r, bytes);
}

static gt_status long4(reader *r) {
  uint64_t bytes;
  GT_TRY(take_number(r, 4, &bytes));
  return wide_int(r, bytes);
}

static gt_status text_int(reader *r) {
  char text[DIGITS];
  int64_t value;
  GT_TRY(take_line(r, text));
  if (strcmp(text, "00") == 0 || strcmp(text, "01") == 0)
    return damaged(r, "is a truth value; expected a whole number");
  GT_TRY(parse(r, text, 0, &value));
  return push_number(r, value);
}

static gt_status text_long(reader *r) {
  char text[DIGITS];
  int64_t value;
  GT_TRY(take_line(r, text));
  GT_TRY(parse(r, text, 'L', &value));
  return push_number(r, value);
}

static gt_status text_index(reader *r, gt_status (*use)(reader *r, uint64_t where)) {
  char text[DIGITS];
  int64_t value;
  GT_TRY(take_line(r, text));
  GT_TRY(parse(r, text, 0, &value));
  return use(r, (uint64_t)value);
}

static gt_status index_of(reader *r, size_t bytes, gt_status (*use)(reader *r, uint64_t where)) {
  uint64_t where;
  GT_TRY(take_number(r, bytes, &where));
  return use(r, where);
}

static gt_status put(reader *r) {
  return text_index(r, remember);
}

static gt_status binput(reader *r) {
  return index_of(r, 1, remember);
}

static gt_status long_binput(reader *r) {
  return index_of(r, 4, remember);
}

static gt_status memoize(reader *r) {
  return remember(r, r->nmemo);
}

static gt_status get(reader *r) {
  return text_index(r, recall);
}

static gt_status binget(reader *r) {
  return index_of(r, 1, recall);
}

static gt_status long_binget(reader *r) {
  return index_of(r, 4, recall);
}

static gt_status empty_list(reader *r) {
  return make(r, false, r->nstack);
}

static gt_status empty_tuple(reader *r) {
  return make(r, true, r->nstack);
}

static gt_status from_mark(reader *r, bool tuple) {
  size_t height;
  GT_TRY(pop_mark(r, &height));
  return make(r, tuple, height);
}

static gt_status list_of_mark(reader *r) {
  return from_mark(r, false);
}

static gt_status tuple_of_mark(reader *r) {
  return from_mark(r, true);
}

static gt_status tuple_of(reader *r, size_t n) {
  return above_mark(r) < n ? damaged(r, "finds too few values") : make(r, true, r->nstack - n);
}

static gt_status tuple1(reader *r) {
  return tuple_of(r, 1);
}

static gt_status tuple2(reader *r) {
  return tuple_of(r, 2);
}

static gt_status tuple3(reader *r) {
  return tuple_of(r, 3);
}

static gt_status append(reader *r) {
  return above_mark(r) < 2 ? damaged(r, "finds too few values") : extend(r, r->nstack - 1);
}

static gt_status appends(reader *r) {
  size_t height;
  GT_TRY(pop_mark(r, &height));
  return extend(r, height);
}

static const opcode opcodes[256] = {
    ['('] = {"MARK", push_mark},
    [')'] = {"EMPTY_TUPLE", empty_tuple},
    ['.'] = {"STOP", stop},
    ['0'] = {"POP", NULL},
    ['1'] = {"POP_MARK", NULL},
    ['2'] = {"DUP", NULL},
    ['B'] = {"BINBYTES", NULL},
    ['C'] = {"SHORT_BINBYTES", NULL},
    ['F'] = {"FLOAT", NULL},
    ['G'] = {"BINFLOAT", NULL},
    ['I'] = {"INT", text_int},
    ['J'] = {"BININT", binint},
    ['K'] = {"BININT1", binint1},
    ['L'] = {"LONG", text_long},
    ['M'] = {"BININT2", binint2},
    ['N'] = {"NONE", NULL},
    ['P'] = {"PERSID", NULL},
    ['Q'] = {"BINPERSID", NULL},
    ['R'] = {"REDUCE", NULL},
    ['S'] = {"STRING", NULL},
    ['T'] = {"BINSTRING", NULL},
    ['U'] = {"SHORT_BINSTRING", NULL},
    ['V'] = {"UNICODE", NULL},
    ['X'] = {"BINUNICODE", NULL},
    [']'] = {"EMPTY_LIST", empty_list},
    ['a'] = {"APPEND", append},
    ['b'] = {"BUILD", NULL},
    ['c'] = {"GLOBAL", NULL},
    ['d'] = {"DICT", NULL},
    ['e'] = {"APPENDS", appends},
    ['g'] = {"GET", get},
    ['h'] = {"BINGET", binget},
    ['i'] = {"INST", NULL},
    ['j'] = {"LONG_BINGET", long_binget},
    ['l'] = {"LIST", list_of_mark},
    ['o'] = {"OBJ", NULL},
    ['p'] = {"PUT", put},
    ['q'] = {"BINPUT", binput},
    ['r'] = {"LONG_BINPUT", long_binput},
    ['s'] = {"SETITEM", NULL},
    ['t'] = {"TUPLE", tuple_of_mark},
    ['u'] = {"SETITEMS", NULL},
    ['}'] = {"EMPTY_DICT", NULL},
    [0x80] = {"PROTO", proto},
    [0x81] = {"NEWOBJ", NULL},
    [0x82] = {"EXT1", NULL},
    [0x83] = {"EXT2", NULL},
    [0x84] = {"EXT4", NULL},
    [0x85] = {"TUPLE1", tuple1},
    [0x86] = {"TUPLE2", tuple2},
    [0x87] = {"TUPLE3", tuple3},
    [0x88] = {"NEWTRUE", NULL},
    [0x89] = {"NEWFALSE", NULL},
    [0x8a] = {"LONG1", long1},
    [0x8b] = {"LONG4", long4},
    [0x8c] = {"SHORT_BINUNICODE", NULL},
    [0x8d] = {"BINUNICODE8", NULL},
    [0x8e] = {"BINBYTES8", NULL},
    [0x8f] = {"EMPTY_SET", NULL},
    [0x90] = {"ADDITEMS", NULL},
    [0x91] = {"FROZENSET", NULL},
    [0x92] = {"NEWOBJ_EX", NULL},
    [0x93] = {"STACK_GLOBAL", NULL},
    [0x94] = {"MEMOIZE", memoize},
    [0x95] = {"FRAME", frame},
    [0x96] = {"BYTEARRAY8", NULL},
    [0x97] = {"NEXT_BUFFER", NULL},
    [0x98] = {"READONLY_BUFFER", NULL},
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
  r->opcode = opcodes[byte].name;
  return opcodes[byte].run ? opcodes[byte].run(r) : refuse(r, byte);
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
