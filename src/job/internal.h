/* Internals of job: the tree of a YAML text, the table of keys, and functions shared by the files
   of this part. */
#ifndef GEOTRAIN_JOB_INTERNAL_H
#define GEOTRAIN_JOB_INTERNAL_H

#include <string.h>

#include "geotrain/job.h"
#include "geotrain/job_fleet.h"

#define JOB_PATH_MAX ((size_t)192)
#define JOB_KEYS_MAX ((size_t)232) /* maximum number of rows in the table (checked in schema.c) */

/* ---- the tree (tree.c, yaml.c) --------------------------------------------------------------- */

typedef enum { NODE_SCALAR, NODE_MAP, NODE_LIST } node_kind;

/* One value of a YAML text.  A node owns its text, its key and its items. */
typedef struct job_node {
  node_kind kind;
  char *key;     /* if in a map; else NULL */
  char *text;    /* if a scalar */
  bool plain;    /* a scalar without quotes; only then "null" means no value */
  bool from_set; /* given by --set */
  size_t line;   /* in the file; 0: from elsewhere */
  struct job_node **items;
  size_t n, capacity;
} job_node;

job_node *gt_job_node_new(node_kind kind, const char *key, const char *text);
void gt_job_node_close(job_node *node);
void gt_job_node_add(job_node *parent, job_node *child);
void gt_job_node_remove(job_node *parent, size_t index);
/* The child of a map whose key is the first `length` characters of key, or NULL. */
job_node *gt_job_node_find(const job_node *map, const char *key, size_t length);
/* The child of a map with this key, or NULL; map may be NULL. */
static inline job_node *gt_job_node_child(const job_node *map, const char *key) {
  return map ? gt_job_node_find(map, key, strlen(key)) : NULL;
}
/* The node at a path of map keys "a.b.c", or NULL.  *parent (unless NULL) receives the map that
   holds it or would hold it; NULL if that does not exist. */
job_node *gt_job_node_at(job_node *map, const char *path, job_node **parent);
/* Stores a value at a path of map keys "a.b.c" and creates missing maps.  Takes ownership of
   `value`. */
void gt_job_node_put(job_node *map, const char *path, job_node *value);
/* A deep copy, key included. */
job_node *gt_job_node_copy(const job_node *node);
/* Removes a key from a map, if present. */
void gt_job_node_drop(job_node *map, const char *key);
/* The list at a path of map keys; created if missing. */
job_node *gt_job_node_list(job_node *map, const char *path);
/* A plain scalar that YAML reads as null. */
bool gt_job_node_null(const job_node *node);

/* Text to tree.  Errors begin with SOURCE:LINE.  *out is written on success and is owned by the
   caller. */
gt_status gt_job_yaml_parse(job_node **out, const char *source, const char *text, size_t size);
/* Tree to text that parses to the same tree; the caller frees it.  one_line: a line for each key of
   the top level. */
char *gt_job_yaml_emit(const job_node *root, bool one_line);

/* ---- the table of keys (schema.c) ------------------------------------------------------------ */

typedef enum {
  KEY_STRING,
  KEY_CHOICE,  /* an enum: the index of the text in `values`; indices below `min` are not allowed */
  KEY_INT,     /* int */
  KEY_I64,     /* int64_t */
  KEY_U64,     /* uint64_t */
  KEY_REAL,    /* double */
  KEY_BOOL,    /* bool */
  KEY_TIME,    /* double, seconds; written with a unit */
  KEY_RATE,    /* double, bit/s */
  KEY_SIZE,    /* double, bytes */
  KEY_SPEED,   /* double, samples/s; the unit is optional */
  KEY_INTS,    /* int64_t * and a count; this type and those below are written as lists */
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
  KEY_ONE_OF = 8,     /* the keys of its map exclude each other; zeros do not count */
  KEY_OPTIONAL = 16,  /* 0 or NULL if not given; then it is not written */
  KEY_ON_RESUME = 32, /* a resume may change it */
  /* text for a batch script: no characters that are special to a shell or sbatch */
  KEY_SCRIPT = 64,
  KEY_WORD = 128,     /* text without spaces */
  KEY_AUTO = 256,     /* an integer; 0 is written auto.  Of KEY_MAPS: may be auto, too */
  KEY_UNSAID = 512,   /* a number that may be 0; -1 if not given; then it is not written */
  KEY_FILLED = 1024,  /* a list that must not be empty if given */
  KEY_LENIENT = 2048, /* of some values of a choice; with the others it is read and does nothing */
  KEY_SINGLE = 4096   /* a list; one value without brackets is a list of one */
};

typedef struct {
  const char *path;
  key_type type;
  unsigned flags;
  size_t offset;        /* in gt_job, or in the struct of the list entry */
  size_t count_offset;  /* for lists */
  size_t item_size;     /* for KEY_MAPS */
  const char *fallback; /* the default, or NULL */
  double min, max;      /* for numbers; max 0: no upper bound */
  const char *const *values;
  /* Only some values of another key, a KEY_CHOICE, have this key: bit v of `having` is set for
     value v.  NULL: it depends on none.  compared: the list of values that a plan compares; those
     count too; or NULL. */
  const char *choice, *compared;
  uint32_t having;
  /* Only a job with this list, a KEY_MAPS, has the key, its default included; NULL: any job. */
  const char *with;
  size_t auto_offset; /* for KEY_MAPS with KEY_AUTO: a bool, true if it is auto */
  const char *meaning;
  const char *why; /* reason added after "expected ..." in an error, or NULL */
} job_key;

extern const job_key gt_job_keys[];
extern const size_t gt_job_nkeys;

/* The row of a path ("wan.links[].latency"), or NULL. */
const job_key *gt_job_key_find(const char *path);
/* Whether the value of a row is written as a list: of values, of two names or of mappings. */
bool gt_job_key_list(const job_key *row);
/* Whether any row lies below this path. */
bool gt_job_key_prefix(const char *path);
/* The allowed values of a row: "1 or more", "a time such as 25 ms, more than 0", "one of a, b".
   `full` adds article and type. */
char *gt_job_key_range(char *buf, size_t size, const job_key *row, bool full);
/* GT_ERR_JOB: "SOURCE: unknown key PATH; did you mean OTHER?".  `map` and `pattern` are the path of
   the enclosing map as written and as in the table. */
gt_status gt_job_key_unknown(const char *source, const char *map, const char *pattern,
                             const char *key);
/* Whether the tree has the list that the row needs. */
bool gt_job_key_fits(job_node *root, const job_key *row);
/* owners.c.  The values of its choice that have the key: "asgd, asgd-ga"; "" if it depends on none.
   Returns buf. */
char *gt_job_key_owners(char *buf, size_t size, const job_key *row);
/* GT_ERR_JOB names a key that is given, and that the chosen value does not have, or whose list is
   missing.  The tree has passed gt_job_values and has no defaults yet. */
gt_status gt_job_check_owners(job_node *root, const char *source);
/* The chosen value, if it does not have this key and the key is one that does nothing then; else
   NULL. */
const char *gt_job_key_idle(job_node *root, const job_key *row);
/* Removes the keys that gt_job_check_owners would refuse. */
void gt_job_drop_foreign(job_node *root);
/* "a" + "b" is "a.b"; "" + "b" is "b". */
void gt_job_path_join(char *buf, size_t size, const char *map, const char *key);

/* ---- steps of loading ------------------------------------------------------------------------ */

/* --set a.b=value. */
gt_status gt_job_set(job_node *root, const char *assignment);
/* Removes keys whose value is `null`.  GT_ERR_JOB names the line, the key and the probable
   cause if a key has no value, and an unknown key that is null.  of_job: the tree is a job, or has
   the keys of one. */
gt_status gt_job_prune(job_node *root, const char *source, bool of_job);
/* Checks for unknown keys, types and ranges.  Afterwards every scalar is plain: a number in base
   units, true or false. */
gt_status gt_job_values(job_node *root, const char *source);
/* Adds defaults; GT_ERR_JOB names a required key that is missing.  A pipeline makes the default of
   sync.strategy none. */
gt_status gt_job_defaults(job_node *root, const char *source);
/* Merge the files that a checked job names into its tree and remove the key that names the file. */
gt_status gt_job_matrix(job_node *root, const gt_job *job, const char *source);
/* *fleet: the file's path if it has a section fleet, for the caller to free; else NULL. */
gt_status gt_job_profile(job_node *root, const gt_job *job, const char *source, char **fleet);
/* Replaces the regions in the tree by the rows of a CSV file.  Removes the keys that refer to the
   old regions: links, matrix, outages, shares. */
gt_status gt_job_regions(job_node *root, const char *path);
/* A region's name is also used in file names.  `where`: "regions.0.name". */
gt_status gt_job_check_name(const char *name, const char *source, const char *where);
/* Checks that involve several keys. */
gt_status gt_job_check(gt_job *job, const job_node *root, const char *source);

/* GT_ERR_JOB unless `value`, of the key, is the name of a region. */
gt_status gt_job_check_region(const gt_job *job, const char *source, const char *key,
                              const char *value);
/* Its checks of the pipeline; also sets the region ids of its stages. */
gt_status gt_job_check_pipeline(gt_job *job, const char *source);
/* Its checks of regions that only aggregate. */
gt_status gt_job_check_aggregating(const gt_job *job, const char *source);
/* Its checks of wan.links and wan.outages; also sets their region ids. */
gt_status gt_job_check_links(gt_job *job, const char *source);

/* The pointer stored at this address in a job. */
static inline void *gt_job_pointer_at(const void *at) {
  void *value;
  memcpy(&value, at, sizeof value);
  return value;
}

/* Writes the canonical text of one value to buf; the sentence of GT_ERR_JOB does not name the
   source. */
gt_status gt_job_value_read(const job_key *row, const char *path, const char *text, char *buf,
                            size_t size);
/* The shortest text of a number that reads back to the same number, with a readable unit for times,
   rates and sizes. */
void gt_job_number_text(char *buf, size_t size, key_type type, double value);

/* The resolved job as a tree, keys in table order.  `bare`: numbers for scripts, in base units.
   The caller closes it. */
job_node *gt_job_tree(const gt_job *job, bool bare);
/* The shortest decimal text of a number, without exponent, that reads back to the same number. */
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

/* The job's regions sorted by name; the caller frees it. */
job_name *gt_job_names(const gt_job *job);
/* A region's id; n if there is none. */
size_t gt_job_name_id(const job_name *names, size_t n, const char *name);
/* The name nearest to this one, or NULL. */
const char *gt_job_name_near(const job_name *names, size_t n, const char *name);
/* All directions that wan.links of a checked job names, ordered by ids.  The caller frees it. */
job_direction *gt_job_directions(const gt_job *job, size_t *n);
/* wan.default if given, or NULL. */
const gt_job_link *gt_job_link_default(const gt_job *job);
/* The entry of this direction, or NULL. */
job_direction *gt_job_direction_find(job_direction *list, size_t n, size_t from, size_t to);

/* ---- files (files.c) ------------------------------------------------------------------------- */

/* The contents of a file with a NUL appended; the caller frees *text.  `needed` describes the
   expected file in errors. */
gt_status gt_job_read_file(const char *path, const char *needed, char **text, size_t *size);
/* Finds the file that `key` of the job file `source` names: in the current folder, else in the
   job's folder. */
gt_status gt_job_find_file(char *buf, size_t size, const char *source, const char *key,
                           const char *name);

/* ---- columns (csv.c) ------------------------------------------------------------------------- */

typedef enum {
  COLUMN_OTHER,  /* its owner reads it */
  COLUMN_NAME,   /* char *, which the struct owns: 1 to 256 ASCII characters */
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
  size_t n, least, least_header; /* least numbers of fields in a line, and in one of names */
  const char *needed;            /* for errors: the columns' names */
} job_table;

/* Whether the text is a value of this type; *out: the number, as written. */
bool gt_job_column_accepts(column_type type, const char *text, double *out);
/* The error if it is none.  `place` begins it, such as "FILE:3: power". */
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

/* `needed` describes the expected file in errors, as in "a CSV file of links". */
gt_status gt_job_csv_open(job_csv *csv, const char *path, const char *needed);
/* The same of a text that has been read. */
job_csv gt_job_csv_of(const char *path, char *text);
/* The next line that is not empty.  Sets *n to its number of fields, max + 1 if there are more than
   max; missing fields are empty.  False at the end. */
bool gt_job_csv_line(job_csv *csv, const char **fields, size_t max, size_t *n);
/* Calls on_row for each line of a table but the one that names its columns; stops at its first
   error. GT_ERR_JOB names a line with another number of fields. */
gt_status gt_job_csv_rows(job_csv *csv, const job_table *table,
                          gt_status (*on_row)(void *ctx, const char *const *fields), void *ctx);
/* Reads the fields of a line into the struct at `to`. */
gt_status gt_job_csv_fill(const job_csv *csv, const job_table *table, const char *const *fields,
                          void *to);
/* gt_job_value_read of a field; the sentence begins with file and line. */
gt_status gt_job_csv_value(const job_csv *csv, const job_key *row, const char *where,
                           const char *text, char *buf, size_t size);
/* "FILE:LINE" or "FILE:LINE: FIELD".  Returns buf. */
const char *gt_job_csv_place(const job_csv *csv, const char *field, char buf[512]);
void gt_job_csv_close(job_csv *csv);

/* ---- fleets (fleet.c) ------------------------------------------------------------------------ */

/* The section `fleet` of a profile; the caller closes it. */
gt_status gt_job_fleet_of_profile(gt_job_fleet **out, const char *file, const job_node *section);

/* The example at the end of `geotrain help job`. */
extern const char gt_job_example[];

#endif
