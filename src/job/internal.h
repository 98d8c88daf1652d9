/* job's inside: the tree that a YAML text becomes, the table of keys, and what the files of this part share. */
#ifndef GEOTRAIN_JOB_INTERNAL_H
#define GEOTRAIN_JOB_INTERNAL_H

#include <string.h>

#include "geotrain/job.h"

#define JOB_PATH_MAX ((size_t)192)
#define JOB_KEYS_MAX ((size_t)224) /* rows that the table may have (schema.c sees to it) */

/* ---- the tree (tree.c, yaml.c) ---------------------------------------------------------------------------------- */

typedef enum { NODE_SCALAR, NODE_MAP, NODE_LIST } node_kind;

/* One value of a YAML text.  A node owns its text, its key and its items. */
typedef struct job_node {
  node_kind kind;
  char *key;     /* in a map; else NULL */
  char *text;    /* of a scalar */
  bool plain;    /* a scalar without quotes: "null" is nothing only then */
  bool from_set; /* given by --set */
  struct job_node **items;
  size_t n, capacity;
} job_node;

job_node *gt_job_node_new(node_kind kind, const char *key, const char *text);
void gt_job_node_close(job_node *node);
void gt_job_node_add(job_node *parent, job_node *child);
void gt_job_node_remove(job_node *parent, size_t index);
/* The child of a map named by the first `length` letters of key, or NULL. */
job_node *gt_job_node_find(const job_node *map, const char *key, size_t length);
/* The node at a path of map keys "a.b.c", or NULL; *parent, unless NULL: the map that holds it or would,
   NULL where that is not there. */
job_node *gt_job_node_at(job_node *map, const char *path, job_node **parent);
/* Puts a value at a path of map keys "a.b.c", making maps on the way; takes `value` over. */
void gt_job_node_put(job_node *map, const char *path, job_node *value);
/* A whole copy, key included. */
job_node *gt_job_node_copy(const job_node *node);
/* Takes a key out of a map, where it is there. */
void gt_job_node_drop(job_node *map, const char *key);
/* The list at a path of map keys, made when it is not there. */
job_node *gt_job_node_list(job_node *map, const char *path);
/* A plain scalar that YAML reads as nothing. */
bool gt_job_node_null(const job_node *node);

/* Text to tree.  Errors say SOURCE:LINE.  *out is written on success and is the caller's. */
gt_status gt_job_yaml_parse(job_node **out, const char *source, const char *text, size_t size);
/* Tree to text that parses to the same tree; the caller frees it. */
char *gt_job_yaml_emit(const job_node *root);

/* ---- the table of keys (schema.c) --------------------------------------------------------------------------------- */

typedef enum {
  KEY_STRING,
  KEY_CHOICE,  /* an enum, the place in `values` of what is written; those before `min` are not allowed */
  KEY_INT,     /* int */
  KEY_I64,     /* int64_t */
  KEY_U64,     /* uint64_t */
  KEY_REAL,    /* double */
  KEY_BOOL,    /* bool */
  KEY_TIME,    /* double, seconds; written with a unit */
  KEY_RATE,    /* double, bit/s */
  KEY_SIZE,    /* double, bytes */
  KEY_SPEED,   /* double, samples/s; the unit may be left out */
  KEY_INTS,    /* int64_t * and a count; this and what follows is written as a list */
  KEY_REALS,   /* double * and a count */
  KEY_STRINGS, /* char ** and a count */
  KEY_CHOICES, /* an array of enums and a count; as KEY_CHOICE */
  KEY_PAIR,    /* two char * that lie side by side */
  KEY_MAPS     /* an array of structs and a count; rows below have paths "this[].key" */
} key_type;

enum {
  KEY_REQUIRED = 1,
  KEY_ABOVE_MIN = 2,  /* min itself is not allowed */
  KEY_BELOW_MAX = 4,  /* max itself is not allowed */
  KEY_ONE_OF = 8,     /* one of the keys of its map is given; zeros do not count */
  KEY_OPTIONAL = 16,  /* 0 or NULL when not given, and then not written */
  KEY_ON_RESUME = 32, /* a resume may change it */
  KEY_SCRIPT = 64,    /* text that goes into a batch script: nothing that a shell or sbatch takes apart */
  KEY_WORD = 128,     /* text without spaces */
  KEY_AUTO = 256,     /* an integer whose 0 is written auto */
  KEY_UNSAID = 512,   /* a number that may be 0; -1 when not given, and then not written */
  KEY_FILLED = 1024   /* a list that has an entry when it is given */
};

typedef struct {
  const char *path;
  key_type type;
  unsigned flags;
  size_t offset;        /* in gt_job, or in the struct of the list */
  size_t count_offset;  /* lists */
  size_t item_size;     /* KEY_MAPS */
  const char *fallback; /* the default, or NULL */
  double min, max;      /* numbers; max 0: no upper end */
  const char *const *values;
  const char *meaning;
  const char *why; /* said after "... is needed" when a value is refused, or NULL */
} job_key;

extern const job_key gt_job_keys[];
extern const size_t gt_job_nkeys;

/* The row of a path ("wan.links[].latency"), or NULL. */
const job_key *gt_job_key_find(const char *path);
/* Whether a row's value is written as a list: of values, of two names, of mappings. */
bool gt_job_key_list(const job_key *row);
/* Whether some row lies below this path. */
bool gt_job_key_prefix(const char *path);
/* What values a row takes: "1 or more", "a time such as 25 ms, more than 0", "one of a, b".  With article and type when `full`. */
char *gt_job_key_range(char *buf, size_t size, const job_key *row, bool full);
/* GT_ERR_JOB: "SOURCE: unknown key PATH; did you mean OTHER?".  `map` and `pattern` are the path of its map as written and as in the table. */
gt_status gt_job_key_unknown(const char *source, const char *map, const char *pattern, const char *key);
/* "a" + "b" is "a.b"; "" + "b" is "b". */
void gt_job_path_join(char *buf, size_t size, const char *map, const char *key);

/* ---- steps of loading --------------------------------------------------------------------------------------------- */

/* --set a.b=value. */
gt_status gt_job_set(job_node *root, const char *assignment);
/* Takes out what is null. */
void gt_job_prune(job_node *node);
/* Unknown keys, types, ranges; afterwards every scalar is plain: numbers in base units, true and false. */
gt_status gt_job_values(job_node *root, const char *source);
/* Puts defaults in; GT_ERR_JOB names a required key that is missing. */
gt_status gt_job_defaults(job_node *root, const char *source);
/* The tree, checked and with defaults, becomes a job, which the caller owns. */
gt_job *gt_job_typed(job_node *root);
/* The files that a checked job names: their figures go into its tree, and the key that names the file out of it. */
gt_status gt_job_matrix(job_node *root, const gt_job *job, const char *source);
gt_status gt_job_profile(job_node *root, const gt_job *job, const char *source);
/* The rows of a CSV file take the place of the tree's regions, and what goes with those leaves it: links, matrix, outages, shares. */
gt_status gt_job_regions(job_node *root, const char *path);
/* A region's name is also the name of its files; `where`: "regions.0.name". */
gt_status gt_job_check_name(const char *name, const char *source, const char *where);
/* What one key cannot say alone. */
gt_status gt_job_check(gt_job *job, const job_node *root, const char *source);

/* The part of it that is about wan.links and wan.outages; writes their ids. */
gt_status gt_job_check_links(gt_job *job, const char *source);

/* The pointer that lies at this place of a job. */
static inline void *gt_job_pointer_at(const void *at) {
  void *value;
  memcpy(&value, at, sizeof value);
  return value;
}

/* One value's canonical text into buf; GT_ERR_JOB without a source in front. */
gt_status gt_job_value_read(const job_key *row, const char *path, const char *text, char *buf, size_t size);
/* A number's shortest text that reads back to the same number; a unit as people write it for times, rates and sizes. */
void gt_job_number_text(char *buf, size_t size, key_type type, double value);

/* The resolved job as a tree, keys in the order of the table; `bare`: numbers as scripts take them, in base units.  The caller closes it. */
job_node *gt_job_tree(const gt_job *job, bool bare);
/* A number's shortest decimal text without exponent that reads back to the same number. */
void gt_job_bare_text(char *buf, size_t size, double value);

/* ---- regions by name, links by direction (links.c) ----------------------------------------------------------------- */

typedef struct {
  const char *name;
  size_t id;
} job_name;

typedef struct {
  uint64_t key;
  size_t link; /* its place in wan.links */
} job_direction;

/* The job's regions in the order of their names; the caller frees it. */
job_name *gt_job_names(const gt_job *job);
/* A region's id; n when there is none. */
size_t gt_job_name_id(const job_name *names, size_t n, const char *name);
/* The name nearest to this one, or NULL. */
const char *gt_job_name_near(const job_name *names, size_t n, const char *name);
/* Every direction that wan.links names, in the order of ids; of a checked job.  The caller frees it. */
job_direction *gt_job_directions(const gt_job *job, size_t *n);
/* wan.default where it is given, or NULL. */
const gt_job_link *gt_job_link_default(const gt_job *job);
/* The entry of this direction, or NULL. */
job_direction *gt_job_direction_find(job_direction *list, size_t n, size_t from, size_t to);

/* ---- files (files.c) ------------------------------------------------------------------------------------------------ */

/* The whole of a file, a NUL after it; the caller frees *text.  `needed` says what it should have been. */
gt_status gt_job_read_file(const char *path, const char *needed, char **text, size_t *size);
/* Where the file is that `key` of the job file `source` names: here, or else in the job's folder. */
gt_status gt_job_find_file(char *buf, size_t size, const char *source, const char *key, const char *name);

/* A table as a file of comma-separated values.  Fields lie in its text until it is closed. */
typedef struct {
  const char *path;
  char *text, *next;
  size_t line; /* the number of the line read last */
} job_csv;

/* `needed` says what the file should be, as in "a CSV file of links". */
gt_status gt_job_csv_open(job_csv *csv, const char *path, const char *needed);
/* The next line that has something on it: its n fields, those missing of `max` empty, n = max + 1 when there are more.  False at the end. */
bool gt_job_csv_line(job_csv *csv, const char **fields, size_t max, size_t *n);
void gt_job_csv_close(job_csv *csv);

/* The example below `geotrain help job`. */
extern const char gt_job_example[];

#endif
