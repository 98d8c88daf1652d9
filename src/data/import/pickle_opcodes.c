/* The opcodes of Python's pickles (the module pickletools describes them): those that build lists,
   tuples and whole numbers, and the names of the others, which are refused. */
#include <stdlib.h>
#include <string.h>

#include "pickle_machine.h"

static gt_status parse(const gt_pickle_reader *r, const char *text, char end, int64_t *out) {
  char *rest;
  *out = strtoll(text, &rest, 10);
  if (*rest == end && end) rest++;
  const char first = text[0] == '-' ? text[1] : text[0];
  if (first < '0' || first > '9' || *rest) return gt_pickle_damaged(r, "has no whole number");
  return GT_OK;
}

static gt_status proto(gt_pickle_reader *r) {
  uint8_t version = 0;
  GT_TRY(gt_pickle_take(r, &version));
  if (version <= 5) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: is a pickle of protocol %u; 0 to 5 are read",
                 gt_bytes_path(r->file), version);
}

/* Frames only help those who read in blocks. */
static gt_status frame(gt_pickle_reader *r) {
  uint64_t size;
  return gt_pickle_take_number(r, 8, &size);
}

static gt_status stop(gt_pickle_reader *r) {
  if (gt_pickle_above_mark(r) != 1 || r->nmarks > 0)
    return gt_pickle_damaged(r, "does not find one value");
  r->made->top = r->stack[0];
  r->stopped = true;
  return GT_OK;
}

static gt_status binint(gt_pickle_reader *r) {
  uint64_t bits;
  GT_TRY(gt_pickle_take_number(r, 4, &bits));
  return gt_pickle_push_number(r, (int32_t)(uint32_t)bits);
}

static gt_status small_int(gt_pickle_reader *r, size_t bytes) {
  uint64_t value;
  GT_TRY(gt_pickle_take_number(r, bytes, &value));
  return gt_pickle_push_number(r, (int64_t)value);
}

static gt_status binint1(gt_pickle_reader *r) {
  return small_int(r, 1);
}

static gt_status binint2(gt_pickle_reader *r) {
  return small_int(r, 2);
}

/* A number of this many bytes in two's complement. */
static gt_status wide_int(gt_pickle_reader *r, uint64_t bytes) {
  uint64_t value;
  if (bytes > 8) return gt_pickle_too_large(r);
  GT_TRY(gt_pickle_take_number(r, bytes, &value));
  const bool negative = bytes > 0 && value >> (8 * bytes - 1);
  return negative || value > INT32_MAX ? gt_pickle_too_large(r)
                                       : gt_pickle_push_number(r, (int64_t)value);
}

static gt_status long1(gt_pickle_reader *r) {
  uint64_t bytes;
  GT_TRY(gt_pickle_take_number(r, 1, &bytes));
  return wide_int(r, bytes);
}

static gt_status long4(gt_pickle_reader *r) {
  uint64_t bytes;
  GT_TRY(gt_pickle_take_number(r, 4, &bytes));
  return wide_int(r, bytes);
}

static gt_status text_int(gt_pickle_reader *r) {
  char text[GT_PICKLE_DIGITS];
  int64_t value;
  GT_TRY(gt_pickle_take_line(r, text));
  if (strcmp(text, "00") == 0 || strcmp(text, "01") == 0)
    return gt_pickle_damaged(r, "is a truth value where a whole number is needed");
  GT_TRY(parse(r, text, 0, &value));
  return gt_pickle_push_number(r, value);
}

static gt_status text_long(gt_pickle_reader *r) {
  char text[GT_PICKLE_DIGITS];
  int64_t value;
  GT_TRY(gt_pickle_take_line(r, text));
  GT_TRY(parse(r, text, 'L', &value));
  return gt_pickle_push_number(r, value);
}

static gt_status text_index(gt_pickle_reader *r,
                            gt_status (*use)(gt_pickle_reader *r, uint64_t where)) {
  char text[GT_PICKLE_DIGITS];
  int64_t value;
  GT_TRY(gt_pickle_take_line(r, text));
  GT_TRY(parse(r, text, 0, &value));
  return use(r, (uint64_t)value);
}

static gt_status index_of(gt_pickle_reader *r, size_t bytes,
                          gt_status (*use)(gt_pickle_reader *r, uint64_t where)) {
  uint64_t where;
  GT_TRY(gt_pickle_take_number(r, bytes, &where));
  return use(r, where);
}

static gt_status put(gt_pickle_reader *r) {
  return text_index(r, gt_pickle_remember);
}

static gt_status binput(gt_pickle_reader *r) {
  return index_of(r, 1, gt_pickle_remember);
}

static gt_status long_binput(gt_pickle_reader *r) {
  return index_of(r, 4, gt_pickle_remember);
}

static gt_status memoize(gt_pickle_reader *r) {
  return gt_pickle_remember(r, r->nmemo);
}

static gt_status get(gt_pickle_reader *r) {
  return text_index(r, gt_pickle_recall);
}

static gt_status binget(gt_pickle_reader *r) {
  return index_of(r, 1, gt_pickle_recall);
}

static gt_status long_binget(gt_pickle_reader *r) {
  return index_of(r, 4, gt_pickle_recall);
}

static gt_status empty_list(gt_pickle_reader *r) {
  return gt_pickle_make(r, false, r->nstack);
}

static gt_status empty_tuple(gt_pickle_reader *r) {
  return gt_pickle_make(r, true, r->nstack);
}

static gt_status from_mark(gt_pickle_reader *r, bool tuple) {
  size_t height;
  GT_TRY(gt_pickle_pop_mark(r, &height));
  return gt_pickle_make(r, tuple, height);
}

static gt_status list_of_mark(gt_pickle_reader *r) {
  return from_mark(r, false);
}

static gt_status tuple_of_mark(gt_pickle_reader *r) {
  return from_mark(r, true);
}

static gt_status tuple_of(gt_pickle_reader *r, size_t n) {
  return gt_pickle_above_mark(r) < n ? gt_pickle_damaged(r, "finds too few values")
                                     : gt_pickle_make(r, true, r->nstack - n);
}

static gt_status tuple1(gt_pickle_reader *r) {
  return tuple_of(r, 1);
}

static gt_status tuple2(gt_pickle_reader *r) {
  return tuple_of(r, 2);
}

static gt_status tuple3(gt_pickle_reader *r) {
  return tuple_of(r, 3);
}

static gt_status append(gt_pickle_reader *r) {
  return gt_pickle_above_mark(r) < 2 ? gt_pickle_damaged(r, "finds too few values")
                                     : gt_pickle_extend(r, r->nstack - 1);
}

static gt_status appends(gt_pickle_reader *r) {
  size_t height;
  GT_TRY(gt_pickle_pop_mark(r, &height));
  return gt_pickle_extend(r, height);
}

const gt_pickle_opcode gt_pickle_opcodes[256] = {
    ['('] = {"MARK", gt_pickle_push_mark},
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
    [0x97] = {"NEXT_GT_PICKLE_BUFFER", NULL},
    [0x98] = {"READONLY_GT_PICKLE_BUFFER", NULL},
};
