/* pickle_machine: what the opcodes of a pickle work on: the bytes of the file, a stack of values
   with marks, lists, and the memo of stored values.  Every failure gives one sentence with the
   file, the opcode and its place.  Local. */
#ifndef GEOTRAIN_DATA_IMPORT_PICKLE_MACHINE_H
#define GEOTRAIN_DATA_IMPORT_PICKLE_MACHINE_H

#include "pickle.h"

enum { GT_PICKLE_BUFFER = 1 << 16, GT_PICKLE_DIGITS = 24 };

/* A list in the pool of values, where it has room for `capacity`. */
typedef struct {
  uint32_t start, n, capacity;
  bool tuple;
  uint64_t offset;
} gt_pickle_place;

struct gt_pickle {
  gt_pickle_place *lists;
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
  uint8_t buffer[GT_PICKLE_BUFFER];
} gt_pickle_reader;

/* An opcode of Python's module pickletools.  run NULL: it is refused; name NULL: there is none. */
typedef struct {
  const char *name;
  gt_status (*run)(gt_pickle_reader *r);
} gt_pickle_opcode;
/* pickle_opcodes.c: by byte. */
extern const gt_pickle_opcode gt_pickle_opcodes[256];

/* The next byte; that there is none; a number of n <= 8 bytes, the lowest first; the rest of a
   line, without its newline. */
gt_status gt_pickle_take(gt_pickle_reader *r, uint8_t *byte);
gt_status gt_pickle_expect_end(gt_pickle_reader *r);
gt_status gt_pickle_take_number(gt_pickle_reader *r, size_t n, uint64_t *out);
gt_status gt_pickle_take_line(gt_pickle_reader *r, char text[GT_PICKLE_DIGITS]);
/* GT_ERR_DATA: the opcode `why`; its number is too large or negative. */
gt_status gt_pickle_damaged(const gt_pickle_reader *r, const char *why);
gt_status gt_pickle_too_large(const gt_pickle_reader *r);

/* The number of values above the last mark. */
size_t gt_pickle_above_mark(const gt_pickle_reader *r);
gt_status gt_pickle_push_number(gt_pickle_reader *r, int64_t value);
gt_status gt_pickle_push_mark(gt_pickle_reader *r);
gt_status gt_pickle_pop_mark(gt_pickle_reader *r, size_t *height);
/* Replaces the values of the stack from `height` on by a list of them. */
gt_status gt_pickle_make(gt_pickle_reader *r, bool tuple, size_t height);
/* Adds the values of the stack from `height` on to the list below them. */
gt_status gt_pickle_extend(gt_pickle_reader *r, size_t height);
/* Stores the value on top of the stack; pushes a stored value. */
gt_status gt_pickle_remember(gt_pickle_reader *r, uint64_t where);
gt_status gt_pickle_recall(gt_pickle_reader *r, uint64_t where);

#endif
