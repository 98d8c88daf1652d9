/* store: writes a data set file under a temporary name in the same folder, then syncs and renames
   it.  Local. */
#pragma once

#include "schema.h"
#include "tokens.h"

typedef struct gt_data_store gt_data_store;

/* Contents of a file: n[split] samples: uint8 images h x w x c; float32 images if floats; if
   features > 0, c int32 ids below features (h and w are 1).  Borrowed until the store is closed. */
typedef struct {
  size_t n[2], h, w, c, features;
  bool floats;
  const gt_schema *schema;   /* numbers the classes; NULL: none */
  const gt_dataset *norm_of; /* has the mean and std; NULL: those of the samples */
} gt_data_shape;

/* Creates OUT with both splits.  GT_ERR_DATA with the path and the reason. */
gt_status gt_data_store_create(gt_data_store **out, const char *path, const gt_data_shape *shape);
/* Write samples, of the type that the shape says, or labels [first, first+count) of a split;
   training samples are counted for mean and std. */
gt_status gt_data_store_samples(gt_data_store *store, gt_split split, size_t first, size_t count,
                                const void *samples);
gt_status gt_data_store_labels(gt_data_store *store, gt_split split, size_t first, size_t count,
                               const int32_t *labels);
/* Writes the texts of n ids, at most `width` bytes each: words (n,width), padded with NULs. */
gt_status gt_data_store_vocabulary(gt_data_store *store, const char *words, size_t n, size_t width);
/* Writes the vocabulary of a text. */
gt_status gt_data_store_tokens(gt_data_store *store, const gt_tokens *tokens);
/* Writes the columns of a table, and the texts of n ids or columns of numbers, as above.
   GT_ERR_DATA: more than GT_SCHEMA_TEXT_MAX bytes. */
gt_status gt_data_store_columns(gt_data_store *store, const gt_schema *columns, const char *texts,
                                size_t n, size_t width);
/* Copies the vocabulary and the columns of another file, if it has them. */
gt_status gt_data_store_copy_vocabulary(gt_data_store *store, const gt_dataset *from);
/* Sets the names of the classes, if there are any, in the order of the labels that are written.
   Equal names make one class; with a schema, its classes are those of the file.  GT_ERR_DATA: the
   schema lacks a name. */
gt_status gt_data_store_class_names(gt_data_store *store, const gt_class_names *names);
/* Writes the attributes, makes the file durable and renames it. */
gt_status gt_data_store_finish(gt_data_store *store, const char *name, size_t classes);
/* Frees the store; removes an unfinished file.  NULL is allowed. */
void gt_data_store_close(gt_data_store *store);
