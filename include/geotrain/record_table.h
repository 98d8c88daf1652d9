/* record_table: a table of results, printed as text of 80 columns, CSV or JSON.  Layer 4.  Local;
   no MPI. */
#pragma once

#include <stdio.h>

#include "geotrain/base.h"

typedef enum {
  GT_COLUMN_TEXT,   /* left-aligned; all others are right-aligned */
  GT_COLUMN_WHOLE,  /* "17"; from 10 million on "17.0 M" */
  GT_COLUMN_FIXED,  /* with `digits` decimals */
  GT_COLUMN_DIGITS, /* with `digits` significant digits */
} gt_column_format;

/* A column.  Cells of numbers, and CSV and JSON, have the program's units: s, bytes, bit/s, shares,
   counts.  Text has `unit`: "us", "ms", "kB", "MB", "GB", "Mbit/s", "%", "USD/1k"; any other unit
   is only printed. */
typedef struct {
  const char *key;   /* in CSV and JSON; NULL: only in text */
  const char *title; /* in text; NULL: only in CSV and JSON */
  const char *unit;  /* below the title; NULL: none */
  gt_column_format format;
  int digits;
  bool breaks; /* text starts a second table here, with the first column repeated */
} gt_column;

/* The value of a row in a column; all zero: none. */
typedef struct {
  enum { GT_CELL_NONE, GT_CELL_NUMBER, GT_CELL_WHOLE, GT_CELL_FLAG, GT_CELL_TEXT } kind;
  double number;
  int64_t whole;
  const char *text;
} gt_cell;

/* A non-finite number is "-" in text, an empty field in CSV, null in JSON. */
static inline gt_cell gt_cell_number(double value) {
  return (gt_cell){.kind = GT_CELL_NUMBER, .number = value};
}

static inline gt_cell gt_cell_whole(int64_t value) {
  return (gt_cell){.kind = GT_CELL_WHOLE, .whole = value};
}

static inline gt_cell gt_cell_flag(bool value) {
  return (gt_cell){.kind = GT_CELL_FLAG, .whole = value};
}

/* Borrowed until the row is added.  NULL: null in JSON, otherwise no value. */
static inline gt_cell gt_cell_text(const char *text) {
  return (gt_cell){.kind = GT_CELL_TEXT, .text = text};
}

typedef struct gt_table gt_table;

/* Creates a table without rows.  The columns are borrowed until gt_table_close. */
gt_table *gt_table_create(const gt_column *columns, size_t ncolumns);
/* An array of columns or cells, and their number. */
#define GT_ARRAY(array) (array), (sizeof(array) / sizeof *(array))
void gt_table_close(gt_table *table);
/* Adds a row of n cells for the first n columns; the other columns have none.  Texts are copied. */
void gt_table_add(gt_table *table, const gt_cell *cells, size_t n);
/* The cells of a row, and their number. */
#define GT_ROW(...) (gt_cell[]){__VA_ARGS__}, sizeof((gt_cell[]){__VA_ARGS__}) / sizeof(gt_cell)
/* Adds a line of text below the last row, for text only. */
__attribute__((format(printf, 2, 3))) void gt_table_note(gt_table *table, const char *format, ...);

/* Prints the table in lines of at most GT_LINE_WIDTH columns: heading, units, rows; nothing without
   rows.  Omits columns without values.  A long text is broken into lines, and no column follows it.
   Columns that do not fit follow in a second table with the first column. */
void gt_table_print(FILE *to, const gt_table *table);
/* Prints the table and closes it. */
void gt_table_finish(FILE *to, gt_table *table);
/* Writes the keys and the rows as CSV. */
void gt_table_csv(FILE *to, const gt_table *table);
/* Returns an array with an object per row, owned by the caller.  A cell without a value has no
   key. */
struct json_t *gt_table_json(const gt_table *table);

/* Writes the name of a region or machine in at most 16 characters; ".." replaces the rest.  Returns
   buf. */
#define GT_SHORT_NAME ((size_t)17)
char *gt_short_name(char buf[GT_SHORT_NAME], const char *name);
/* Writes the names of a link: "east -> west".  Returns buf. */
#define GT_LINK_NAME (2 * GT_SHORT_NAME + 3)
char *gt_link_name(char buf[GT_LINK_NAME], const char *from, const char *to);
