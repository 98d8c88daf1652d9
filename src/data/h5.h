/* h5: wrappers for HDF5: no printed errors, its error stack as one sentence, rows read by number.
   Local. */
#pragma once

#include <hdf5.h>

#include "geotrain/data.h"

extern const char *const gt_data_split_names[2]; /* indexed by gt_split: "train", "test" */

/* The words of ids, a data set, and the root's attribute with their SHA-256. */
#define GT_DATA_VOCABULARY      "vocabulary"
#define GT_DATA_VOCABULARY_HASH "vocabulary_sha256"
/* The merges of a text's tokens (M,2), a data set; largest number of tokens, because tokens are
   classes. */
#define GT_DATA_MERGES     "merges"
#define GT_DATA_TOKENS_MAX 1000000

/* Stops HDF5 from printing its error stack.  Every entry point of this part calls it, because the
   setting is per thread. */
void gt_data_h5_quiet(void);
/* Returns the innermost reason of the last failed HDF5 call, on one line, in buf.  Call it before
   any other HDF5 function. */
char *gt_data_h5_reason(char *buf, size_t size);

/* Opens a file for reading; the caller closes *file.  GT_ERR_DATA with the system's or HDF5's
   reason. */
gt_status gt_data_h5_open(hid_t *file, const char *path);

/* Closes an HDF5 id of any kind; a negative one is ignored. */
void gt_data_h5_close(hid_t id);

/* Returns the name of a type in messages, in buf: "uint8", "float64", "string". */
char *gt_data_h5_type_name(hid_t type, char *buf, size_t size);

/* Sets *there: true if `name` exists in this file.  GT_ERR_DATA if it links to another file. */
gt_status gt_data_h5_exists(hid_t file, const char *path, const char *name, bool *there);
/* Opens the data set `name`; `shape` describes the expected shape in messages.  The caller closes
   *dset, also after an error, if it is not negative.  GT_ERR_DATA: it cannot be opened, its values
   are in another file, or one chunk needs more memory than all its values. */
gt_status gt_data_h5_open_set(hid_t file, const char *path, const char *name, const char *shape,
                              hid_t *dset);

/* Reads rows [first, first+count) of a data set of any rank into `out`, converted to
   `memory_type`. */
gt_status gt_data_h5_read_rows(hid_t dset, const char *path, const char *name, hid_t memory_type,
                               size_t first, size_t count, void *out);
/* Returns the number of rows to read at a time: about 4 MiB, and whole chunks if the data set is
   chunked. */
size_t gt_data_h5_block_rows(hid_t dset, size_t rows, size_t row_bytes);
