/* pickle: reads Python pickles (protocols 0 to 5) that hold only lists, tuples and whole numbers.
   Nothing is executed: every other opcode is refused.  Local. */
#pragma once

#include "bytes.h"

/* Limits that bound memory: lists and tuples per pickle, values in them, and nesting depth. */
#define GT_PICKLE_LISTS_MAX  ((size_t)1 << 24)
#define GT_PICKLE_VALUES_MAX ((size_t)1 << 28)
#define GT_PICKLE_DEPTH_MAX  16

typedef struct gt_pickle gt_pickle;

/* A number (not negative), or a list or tuple (negative). */
typedef int32_t gt_pickle_value;

typedef struct {
  const gt_pickle_value *values; /* owned by the pickle */
  size_t n;
  bool tuple;
  uint64_t offset; /* of the opcode that created it, in the unpacked file */
} gt_pickle_list;

/* True if the file with this first byte is a pickle of a list or tuple rather than a text of
   numbers. */
bool gt_pickle_begins(uint8_t byte);
/* Reads a whole file, from its current position.  The caller closes *out.  GT_ERR_DATA names the
   file, the byte, and the problem: a damaged pickle, another opcode, a number that is negative or
   above 2^31 - 1, or more than the limits above. */
gt_status gt_pickle_read(gt_pickle **out, gt_bytes *file);
void gt_pickle_close(gt_pickle *pickle);
/* Returns the pickled value. */
gt_pickle_value gt_pickle_top(const gt_pickle *pickle);
/* Returns the list of a negative value. */
gt_pickle_list gt_pickle_list_of(const gt_pickle *pickle, gt_pickle_value value);
