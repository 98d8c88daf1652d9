/* Internals of job: the tree of a YAML text, the table of keys, functions shared by the files of
   this part. */
#pragma once

#include <string.h>

#include "geotrain/job.h"
#include "geotrain/job_prices.h"
#include "geotrain/job_fleet.h"

#define JOB_PATH_MAX ((size_t)192)
#define JOB_KEYS_MAX ((size_t)288) /* maximum number of rows in the table (checked in schema.c) */

/* ---- the tree (tree.c, yaml.c) --------------------------------------------------------------- */

typedef enum { NODE_SCALAR, NODE_MAP, NODE_LIST } node_kind;

/* A value of a YAML text.  A node owns its text, its key and its items. */
typedef struct job_node {
  node_kind kind;
  char *key;     /* if in a map; otherwise NULL */
  char *text;    /* if a scalar */
  bool plain;    /* a scalar without quotes: only then "null" means no value */
  bool from_set; /* given by --set */
  size_t line;   /* in the file; 0: not from a file */
  struct job_node **items;
  size_t n, capacity;
} job_node;

job_node *gt_job_node_new(node_kind kind, const char *key, const char *text);
void gt_job_node_close(job_node *node);
void gt_job_node_add(job_node *parent, job_node *child);
void gt_job_node_remove(job_node *parent, size_t index);
/* Returns the child of a map whose key is the first `length` characters of key, or NULL. */
job_node *gt_job_node_find(const job_node *map, const char *key, size_t length);
/* Returns the child of a map with this key, or NULL; map can be NULL. */
static inline job_node *gt_job_node_child(const job_node *map, const char *key) {
  return map ? gt_job_node_find(map, key, strlen(key)) : NULL;
}
/* Returns the node at a path of map keys "a.b.c", or NULL.  *parent (unless NULL) receives the map
   of its last key, NULL if that does not exist. */
job_node *gt_job_node_at(job_node *map, const char *path, job_node **parent);
/* Stores a value at a path of map keys "a.b.c" and creates missing maps.  Takes ownership of
   `value`. */
void gt_job_node_put(job_node *map, const char *path, job_node *value);
/* Returns a deep copy, key included. */
job_node *gt_job_node_copy(const job_node *node);
/* Removes a key from a map, if present. */
void gt_job_node_drop(job_node *map, const char *key);
/* Returns the list at a path of map keys, created if missing. */
job_node *gt_job_node_list(job_node *map, const char *path);
/* True for a plain scalar that YAML reads as null. */
bool gt_job_node_null(const job_node *node);

/* Parses a text to a tree.  Errors begin with SOURCE:LINE.  *out is written on success and owned by
   the caller. */
gt_status gt_job_yaml_parse(job_node **out, const char *source, const char *text, size_t size);
/* Returns text that parses to the same tree; the caller frees it. one_line: one line per key of the
   top level. */
char *gt_job_yaml_emit(const job_node *root, bool one_line);

/* ---- the table of keys (schema.c, keys.c) ---------------------------------------------------- */

typedef enum {
  KEY_STRING,
  KEY_CHOICE,  /* an enum: the index of the text in `values`, at least `min` */
  KEY_INT,     /* int */
  KEY_I64,     /* int64_t */
  KEY_U64,     /* uint64_t */
  KEY_REAL,    /* double */
  KEY_BOOL,    /* bool */
  KEY_TIME,    /* double, seconds; written with a unit */
  KEY_RATE,    /* double, bit/s */
  KEY_SIZE,    /* double, bytes */
  KEY_SPEED,   /* double, samples/s; the unit is optional */
  KEY_INTS,    /* int64_t * and a count; this type and the following ones are written as lists */
  KEY_REALS,   /* double * and a count */
  KEY_STRINGS, /* char ** and a count */
  KEY_CHOICES, /* an array of enums and a count; see KEY_CHOICE */
  KEY_PAIR,    /* two adjacent char * */
  KEY_MAPS     /* an array of structs and a count; their rows have paths "this[].key" */
} key_type;

enum {
  KEY_REQUIRED = 1,
  KEY_ABOVE_MIN = 2,  /* min itself is not allowed */
  KEY_BELOW_MAX = 4,  /* max itself is not allowed */
  KEY_ONE_OF = 8,     /* the keys of its map exclude each other; zeros are not given */
  KEY_OPTIONAL = 16,  /* 0 or NULL if not given, and then not written */
  KEY_ON_RESUME = 32, /* a resume may change it */
  /* text for a batch script, without characters that are special to a shell or sbatch */
  KEY_SCRIPT = 64,
  KEY_WORD = 128,     /* text without spaces */
  KEY_AUTO = 256,     /* an integer, whose 0 is written auto; a KEY_MAPS that can also be auto */
  KEY_UNSAID = 512,   /* a number that can be 0; -1 if not given, and then not written */
  KEY_FILLED = 1024,  /* a list that must not be empty if given */
  KEY_LENIENT = 2048, /* only some values of a choice have it; others ignore it */
  KEY_SINGLE = 4096,  /* a list; one value without brackets becomes a list of one */
  /* regions that are MPI jobs of their own can have other values; with KEY_PATH, the key must still
     be given in all of them or in none */
  KEY_AT_SITE = 8192,
  KEY_PATH = 16384
};

typedef struct {
  const char *path;
  key_type type;
  unsigned flags;
  size_t offset;        /* in gt_job, or in the struct of a list entry */
  size_t count_offset;  /* for lists */
  size_t item_size;     /* for KEY_MAPS */
  const char *fallback; /* the default, or NULL */
  double min, max;      /* for numbers; max 0: no upper bound */
  const char *const *values;
  /* Only some values of another key, a KEY_CHOICE, have this key: bit v of `having` is set for
     value v.  NULL: it depends on none. compared: the list of values that a plan compares, which
     also count; or NULL. */
  const char *choice, *compared;
  uint32_t having;
  /* Only a job with this list, a KEY_MAPS, has the key and its default; NULL: any job. */
  const char *with;
  size_t auto_offset; /* for KEY_MAPS with KEY_AUTO: a bool, true if it is auto */
  const char *meaning;
  const char *why; /* reason after "expected ..." in an error, or NULL */
} job_key;

extern const job_key gt_job_keys[];
extern const size_t gt_job_nkeys;

/* Returns the row of a path ("wan.links[].latency"), or NULL. */
const job_key *gt_job_key_find(const char *path);
/* True if the value of a row is written as a list: of values, of two names or of mappings. */
bool gt_job_key_list(const job_key *row);
/* True if a row is below this path. */
bool gt_job_key_prefix(const char *path);
/* Writes the allowed values of a row: "1 or more", "a time such as 25 ms, more than 0", "one of a,
   b".  `full` adds article and type. */
char *gt_job_key_range(char *buf, size_t size, const job_key *row, bool full);
/* Returns GT_ERR_JOB: "SOURCE: unknown key PATH; did you mean OTHER?".  `map`, `pattern`: path of
   the enclosing map as written and as in the table. */
gt_status gt_job_key_unknown(const char *source, const char *map, const char *pattern,
                             const char *key);
/* True if the tree has the list that the row requires. */
bool gt_job_key_fits(job_node *root, const job_key *row);
/* owners.c.  Writes the values of its choice that have the key: "asgd, asgd-ga"; "" if it depends
   on none.  Returns buf. */
char *gt_job_key_owners(char *buf, size_t size, const job_key *row);
/* GT_ERR_JOB names a given key that the chosen value does not have, or whose list is missing.
   Requires gt_job_values, and no defaults yet. */
gt_status gt_job_check_owners(job_node *root, const char *source);
/* Returns the chosen value if it ignores this key, otherwise NULL. */
const char *gt_job_key_idle(job_node *root, const job_key *row);
/* Removes the keys that gt_job_check_owners rejects. */
void gt_job_drop_foreign(job_node *root);
/* Joins "a" and "b" to "a.b", "" and "b" to "b". */
void gt_job_path_join(char *buf, size_t size, const char *map, const char *key);

/* ---- steps of loading ------------------------------------------------------------------------ */

/* Applies --set a.b=value. */
gt_status gt_job_set(job_node *root, const char *assignment);
/* Removes keys with the value `null`.  GT_ERR_JOB names the line, the key and the probable cause of
   a key without a value, or an unknown key that is null. of_job: the tree has the keys of a job. */
gt_status gt_job_prune(job_node *root, const char *source, bool of_job);
/* Checks for unknown keys, types and ranges.  Then every scalar is plain: a number in base units,
   true or false. */
gt_status gt_job_values(job_node *root, const char *source);
/* Adds defaults; GT_ERR_JOB names a missing required key.  With a pipeline the default of
   sync.strategy is none. */
gt_status gt_job_defaults(job_node *root, const char *source);
/* Merges the file that a checked job names into its tree and removes the key. */
gt_status gt_job_matrix(job_node *root, const gt_job *job, const char *source);
/* Likewise.  *fleet: the file's path if it has a section fleet, freed by the caller; otherwise
   NULL. */
gt_status gt_job_profile(job_node *root, const gt_job *job, const char *source, char **fleet);
/* Checks a region's name, which also names files.  `where`: "regions.0.name". */
gt_status gt_job_check_name(const char *name, const char *source, const char *where);
/* Checks conditions on several keys. */
gt_status gt_job_check(gt_job *job, const job_node *root, const char *source);

/* Checks that `value`, of the key, is the name of a region. */
gt_status gt_job_check_region(const gt_job *job, const char *source, const char *key,
                              const char *value);
/* Checks the pipeline; also sets the region ids of its stages. */
gt_status gt_job_check_pipeline(gt_job *job, const char *source);
/* check_sync.c */
gt_status gt_job_check_sync(const gt_job *job, const char *source);
/* Checks regions that only aggregate. */
gt_status gt_job_check_aggregating(const gt_job *job, const char *source);
/* Checks wan.links and wan.outages; also sets their region ids. */
gt_status gt_job_check_links(gt_job *job, const char *source);
/* Checks faults; also sets their region ids. */
gt_status gt_job_check_faults(gt_job *job, const char *source);
/* Returns what binds the regions together, so that none can be missing; NULL: every region has a
   whole model, and no account is common to all. */
const char *gt_job_bound(const gt_job *job);

/* Returns the pointer stored at this address in a job. */
static inline void *gt_job_pointer_at(const void *at) {
  void *value;
  memcpy(&value, at, sizeof value);
  return value;
}

/* Writes the canonical text of one value to buf.  The sentence of GT_ERR_JOB does not name the
   source. */
gt_status gt_job_value_read(const job_key *row, const char *path, const char *text, char *buf,
                            size_t size);
/* Writes the shortest text that reads back to the same number, with a readable unit for times,
   rates and sizes. */
void gt_job_number_text(char *buf, size_t size, key_type type, double value);

/* Returns the resolved job as a tree, keys in table order.  `bare`: numbers for scripts, in base
   units.  The caller closes it. */
job_node *gt_job_tree(const gt_job *job, bool bare);
/* Writes the shortest decimal text, without exponent, that reads back to the same number. */
void gt_job_bare_text(char *buf, size_t size, double value);

/* ---- regions by name, links by direction (links.c) ------------------------------------------- */

typedef struct {
  const char *name;
  size_t id;
} job_name;

typedef struct {
  uint64_t key;
  size_t link; /* index in wan.links */
} job_direction;

/* Returns the job's regions sorted by name; the caller frees them. */
job_name *gt_job_names(const gt_job *job);
/* Returns the region's id, or n. */
size_t gt_job_name_id(const job_name *names, size_t n, const char *name);
/* Returns the nearest name, or NULL. */
const char *gt_job_name_near(const job_name *names, size_t n, const char *name);
/* Returns all directions in wan.links of a checked job, ordered by ids; the caller frees them. */
job_direction *gt_job_directions(const gt_job *job, size_t *n);
/* Returns wan.default, or NULL if it is not given. */
const gt_job_link *gt_job_link_default(const gt_job *job);
/* Returns the entry of this direction, or NULL. */
job_direction *gt_job_direction_find(job_direction *list, size_t n, size_t from, size_t to);

/* ---- files (files.c) ------------------------------------------------------------------------- */

/* Reads a file and appends a NUL; the caller frees *text.  `needed` describes the expected file in
   errors. */
gt_status gt_job_read_file(const char *path, const char *needed, char **text, size_t *size);
/* Finds the file of a key of the job file `source`: in the current folder, else in the job's
   folder. */
gt_status gt_job_find_file(char *buf, size_t size, const char *source, const char *key,
                           const char *name);

/* ---- columns (csv.c) ------------------------------------------------------------------------- */

typedef enum {
  COLUMN_OTHER,  /* read by its owner */
  COLUMN_NAME,   /* char *, owned by the struct: 1 to 256 ASCII characters */
  COLUMN_LABEL,  /* the same, or "" */
  COLUMN_AMOUNT, /* double, > 0 */
  COLUMN_SIZE,   /* double, bytes > 0; written with a unit */
  COLUMN_TIME,   /* double, >= 0 or infinite */
  COLUMN_PASS    /* double, s; written as a number of us */
} column_type;

typedef struct {
  const char *name;
  column_type type;
  size_t offset; /* in the struct of a row */
} job_column;

#define JOB_COLUMNS_MAX 8

typedef struct {
  const job_column *columns;
  size_t n, least, least_header; /* minimum numbers of fields in a line, and in a line of names */
  const char *needed;            /* names of the columns, for errors */
} job_table;

/* True if the text is a value of this type; *out: the number as written. */
bool gt_job_column_accepts(column_type type, const char *text, double *out);
/* Returns the error for a text that is not.  `place` begins it, such as "FILE:3: power". */
gt_status gt_job_column_no(column_type type, const char *place, const char *text);
/* Reads a field into its place in the struct at `to`; GT_ERR_JOB as above. */
gt_status gt_job_column_read(const job_column *column, const char *place, const char *text,
                             void *to);

/* A CSV file.  Fields point into its text and are valid until it is closed. */
typedef struct {
  const char *path;
  char *text, *next;
  size_t line; /* number of the last line read */
} job_csv;

/* Opens the file.  `needed` describes the expected file in errors, as in "a CSV file of links". */
gt_status gt_job_csv_open(job_csv *csv, const char *path, const char *needed);
/* Returns the CSV file of a text that was read. */
job_csv gt_job_csv_of(const char *path, char *text);
/* Reads the next line that is not empty; false at the end.  Sets *n to its number of fields, max +
   1 if it has more than max.  Missing fields are empty. */
bool gt_job_csv_line(job_csv *csv, const char **fields, size_t max, size_t *n);
/* Calls on_row for each line of a table except the line of names; stops at its first error.
   GT_ERR_JOB names a line with a wrong number of fields. */
gt_status gt_job_csv_rows(job_csv *csv, const job_table *table,
                          gt_status (*on_row)(void *ctx, const char *const *fields), void *ctx);
/* Reads the fields of a line into the struct at `to`. */
gt_status gt_job_csv_fill(const job_csv *csv, const job_table *table, const char *const *fields,
                          void *to);
/* Reads a field as gt_job_value_read does; the sentence begins with file and line. */
gt_status gt_job_csv_value(const job_csv *csv, const job_key *row, const char *where,
                           const char *text, char *buf, size_t size);
/* Writes "FILE:LINE" or "FILE:LINE: FIELD".  Returns buf. */
const char *gt_job_csv_place(const job_csv *csv, const char *field, char buf[512]);
void gt_job_csv_close(job_csv *csv);

/* ---- fleets (fleet.c) ------------------------------------------------------------------------ */

/* Reads the section `fleet` of a profile; the caller closes it. */
gt_status gt_job_fleet_of_profile(gt_job_fleet **out, const char *file, const job_node *section);

/* The example at the end of `geotrain help job`. */
extern const char gt_job_example[];
