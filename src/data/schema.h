/* schema: the names and numbers that regions must have in common, without samples, as JSON
   (docs/data-format.md).  Local. */
#pragma once

#include "class_names.h"

#define GT_DATA_COLUMNS    "columns" /* data set: the columns of a table, a schema as text */
#define GT_COLUMN_EDGES    63        /* at most, of 64 bins */
#define GT_SCHEMA_WORD_MAX 63        /* bytes of a word or a value of a column */
#define GT_SCHEMA_TEXT_MAX ((size_t)1 << 28) /* bytes of the texts of a data set */

/* A column of a table. */
typedef struct {
  char *name;
  bool numbers;  /* else it has `values` */
  bool binned;   /* numbers as ids; else as numbers */
  double *edges; /* nedges, ascending: the upper ends of all bins but the last */
  size_t nedges;
  gt_class_names values;
} gt_schema_column;

/* Parts that a data set does not have are empty. */
struct gt_schema {
  gt_class_names classes, words;
  gt_schema_column *columns;
  size_t ncolumns, columns_room,
      ids; /* ids: their number, for ids that are numbers in the source */
};

/* Reads a schema from its text, or from a data set.  The caller closes *out.  GT_ERR_DATA names the
   file, the place and what was found and expected. */
gt_status gt_schema_read(gt_schema **out, const char *path);
/* The same from a text of `size` bytes; `path`: for messages.  The caller closes *out, also after
   an error. */
gt_status gt_schema_parse(gt_schema **out, const char *text, size_t size, const char *path);
void gt_schema_close(gt_schema *schema);
/* Appends an empty column with this name (copied). */
gt_schema_column *gt_schema_add(gt_schema *schema, const char *name);
/* True if the text is UTF-8, as names and values must be. */
bool gt_schema_is_utf8(const char *text);
/* Returns the schema as JSON, which the caller frees.  GT_ERR_DATA: a name is not UTF-8. */
gt_status gt_schema_text(const gt_schema *schema, const char *path, char **text);
