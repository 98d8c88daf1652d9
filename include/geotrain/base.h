/* base: status, log, memory, random numbers, clock, units, hashes, named state.  Layer 0.
   Everything here is local: no function communicates. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- status ---------------------------------------------------------------------------------- */

/* Status codes; each is also the program's exit code.  In gt_agree the largest one wins. */
typedef enum {
  GT_OK = 0,
  GT_ERR_FAULT = 1, /* a fault of geotrain itself */
  GT_ERR_JOB = 2,   /* usage or job file */
  GT_ERR_DATA = 3,  /* data set */
  GT_ERR_CKPT = 4,  /* checkpoint */
  GT_ERR_LOST = 5,  /* a peer or a link was lost, or a wait passed its deadline */
  GT_ERR_LIMIT = 6, /* a limit ended the run */
  GT_ERR_NOGO = 7,  /* probe or selftest says NO-GO */
  GT_STOPPED = 75   /* stopped by a signal, checkpoint written: requeue */
} gt_status;

#define GT_ERROR_TEXT_MAX 1024

/* Stores the error text of the calling thread (printf style) and returns `code`.  Usually called
   through GT_FAIL. */
gt_status gt_fail(gt_status code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Returns `code`.  Bypasses gt_fail, so that compilers and static analysers can tell that the
   status is not GT_OK. */
static inline gt_status gt_failed_as(gt_status kept, gt_status code) {
  (void)kept;
  return code;
}
#define GT_FAIL(code, ...) gt_failed_as(gt_fail((code), __FILE__, __LINE__, __VA_ARGS__), (code))
/* Returns the last error's text: one sentence, no newline; never NULL; valid until the thread's
   next gt_fail. */
const char *gt_error_text(void);

/* Reports a broken invariant in one line and ends the process with exit code 1.  A handler, if one
   is set, is called first (net sets one that ends the whole job). */
_Noreturn void gt_bug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void gt_on_bug(void (*handler)(const char *text));

/* Returns from the calling function when `expr` fails.  Not for use between two communications. */
#define GT_TRY(expr)                                                                               \
  do {                                                                                             \
    gt_status gt_try_status = (expr);                                                              \
    if (gt_try_status != GT_OK) return gt_try_status;                                              \
  } while (0)

/* Returns the index of the first control character in a UTF-8 text, line breaks and tabs included;
   `size` if the text has none.  A text from a file could otherwise control the terminal. */
size_t gt_control_find(const char *text, size_t size);
/* Replaces line breaks and tabs by blanks, and other control characters by `?`. */
void gt_text_flatten(char *text);

/* ---- log ------------------------------------------------------------------------------------- */

typedef enum { GT_LOG_ERROR, GT_LOG_WARN, GT_LOG_INFO, GT_LOG_DEBUG } gt_log_level;

/* Sets the prefix of this rank's lines, and whether this rank prints the lines of gt_log_job.
   Called once, after roles are known.  `who` is copied. */
void gt_log_identity(const char *who, bool speaks_for_job);
void gt_log_threshold(gt_log_level level);
/* Logs a warning.  Has the type of the callbacks that report sentences. */
void gt_log_warning(const char *text);
/* Writes a line to stderr from this rank: "geotrain: WHO: text".  Text without newline. */
void gt_log(gt_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints a line once per job: only on the rank with speaks_for_job. */
void gt_log_job(gt_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Draws a line on a terminal, on stderr, over the last one; the next line of the log replaces
   it.  "": removes it. */
void gt_log_draw(const char *text);

/* ---- progress -------------------------------------------------------------------------------- */

/* Starts the progress lines of a command of one process.  Without it gt_progress_tell prints
   nothing. */
void gt_progress_begin(const char *what);
/* Sets the prefix of later gt_progress_tell lines, as in "candidate 3 of 6: ". */
void gt_progress_part(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "geotrain: WHAT: 20 s so far; PREFIX text" to stderr, at most every 10 s. */
void gt_progress_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Shows "done of all UNIT": on a terminal a bar with the time left, five times a second, else by
   gt_progress_tell.  all 0: unknown.  `unit` is a constant; another one begins another bar. */
void gt_progress_of(size_t done, size_t all, const char *unit);
/* Removes the bar, before other output. */
void gt_progress_end(void);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Returns zeroed memory, aligned to 64 bytes and counted.  Never returns NULL: if memory is not
   available, the process prints an error and exits with code 1.  An array of 256 MiB or more is
   compared with the host's free memory before it is written to.  The caller frees it with gt_free
   (NULL is allowed). */
void *gt_alloc(size_t count, size_t size);
void gt_free(void *memory);
/* Returns a copy of `text` owned by the caller (gt_free); NULL gives NULL. */
char *gt_strdup(const char *text);
/* Returns the number of live allocations; it must be 0 at exit.  The second function returns the
   number of allocations so far; it must not grow in the step loop. */
int64_t gt_alloc_alive(void);
int64_t gt_alloc_total(void);

#define GT_NEW(type)          ((type *)gt_alloc(1, sizeof(type)))
#define GT_NEW_ARRAY(type, n) ((type *)gt_alloc((n), sizeof(type)))

/* Ensures room for one more entry in `array`, which has n entries and room for `capacity`.  A full
   array is replaced by a copy of twice the capacity.  The first capacity is `first`. */
#define GT_GROW(array, n, capacity, first)                                                         \
  ((n) < (capacity) ? (void)0                                                                      \
                    : (void)((array) = gt_grown((array), &(capacity), (first), sizeof *(array))))
/* Returns the copy and writes its capacity to *capacity; frees the old array. */
void *gt_grown(void *array, size_t *capacity, size_t first, size_t size);

/* Returns zeroed memory like gt_alloc's.  Pages that are never written occupy no memory: use it for
   arrays of which a process writes only a part. */
void *gt_reserve(size_t count, size_t size);
/* Gives the whole pages of a part of such memory back to the system; they read as zeros. */
void gt_discard(void *memory, size_t size);

/* Returns the resident set size of this process, shared pages included.  The second function
   returns its peak. */
size_t gt_resident_now(void);
size_t gt_resident_peak(void);

/* Returns the bytes that programs can still allocate on this host: the minimum of MemAvailable and
   the free memory of this process's control groups, read below `root` ("", or a folder that has
   proc and sys). */
double gt_memory_free(const char *root);
/* Memory shared by all processes with the same id.  INFINITY: no known limit. */
typedef struct {
  uint64_t id;
  double free_bytes;
} gt_memory_pool;
/* Finds the memory pools of this process: the host's, and that of its control groups. */
void gt_memory_pools(gt_memory_pool pools[2]);
/* Fails with `code` if `bytes` exceeds `free_bytes`; the error text begins with `what`.  Call it
   before a large allocation. */
gt_status gt_memory_check(gt_status code, const char *what, double bytes, double free_bytes);

/* ---- random numbers -------------------------------------------------------------------------- */

/* Counter-based random numbers (SplitMix64 finalizer over a keyed counter): the same key gives the
   same sequence on every machine and every rank.  The purpose of a draw is part of its key. */
typedef struct {
  uint64_t key, counter;
} gt_rng;

typedef enum {
  GT_RNG_INIT = 1,
  GT_RNG_ORDER,
  GT_RNG_AUGMENT,
  GT_RNG_PARTITION,
  GT_RNG_JITTER,
  GT_RNG_SYNTH,
  GT_RNG_TEST,
  GT_RNG_COMPUTE,
  GT_RNG_SCHEDULE,
  GT_RNG_GENERATE,
  GT_RNG_CODEC,
  GT_RNG_HELD_BACK,
  GT_RNG_FAULT,
  GT_RNG_DROPOUT
} gt_rng_purpose;

gt_rng gt_rng_make(uint64_t seed, gt_rng_purpose purpose, uint64_t a, uint64_t b);
uint64_t gt_rng_u64(gt_rng *rng);
/* Returns a uniform number in [0, 1), 53 bits. */
double gt_rng_uniform(gt_rng *rng);
/* Returns a standard normal number (Box-Muller; uses two uniform draws for one value). */
double gt_rng_normal(gt_rng *rng);
/* Returns a uniform number in 0..n-1 without bias; n > 0. */
uint64_t gt_rng_below(gt_rng *rng, uint64_t n);
/* Returns a draw from Gamma(shape, 1), shape > 0 (Marsaglia and Tsang 2000). */
double gt_rng_gamma(gt_rng *rng, double shape);
/* Writes 128 random bits from the system, in hexadecimal: the id of a run.  Never fails. */
#define GT_RUN_ID 33
void gt_random_id(char id[GT_RUN_ID]);

/* ---- clock ----------------------------------------------------------------------------------- */

/* Times are int64 nanoseconds since the process started its clock (first call).  Monotonic. */
typedef int64_t gt_ns;
#define GT_NEVER  INT64_MAX
#define GT_SECOND ((gt_ns)1000000000)
gt_ns gt_now(void);
/* Sleeps for about `ns`.  For precision, the thread's timer slack is set to 1 us on first use. */
void gt_sleep(gt_ns ns);
static inline double gt_seconds(gt_ns ns) {
  return (double)ns * 1e-9;
}
static inline gt_ns gt_from_seconds(double s) {
  return (gt_ns)(s * 1e9 + 0.5);
}

/* ---- units ----------------------------------------------------------------------------------- */

/* Parses "100 Mbit/s", "25 ms", "1 GiB": number, optional space, unit.  Rates become bit/s, times
   seconds, sizes bytes.  `*out` is written only on success.  GT_ERR_JOB: the error text names the
   input and the allowed units. */
gt_status gt_parse_rate_bps(const char *text, double *out);
gt_status gt_parse_time_s(const char *text, double *out);
gt_status gt_parse_size_bytes(const char *text, double *out);
/* Prints a rate, time or size in readable form into buf ("98.3 Mbit/s", "25.0 ms", "1.2 MiB");
   return buf. */
char *gt_format_rate(char *buf, size_t size, double bps);
char *gt_format_time(char *buf, size_t size, double s);
char *gt_format_size(char *buf, size_t size, double bytes);

/* Returns the entry of `known` (count n) nearest to `name` by edit distance, or NULL when none is
   near. */
const char *gt_nearest(const char *name, const char *const *known, size_t n);

/* ---- lines ----------------------------------------------------------------------------------- */

#define GT_LINE_WIDTH ((size_t)80) /* of everything that a command prints */

/* Prints `text`, breaks it at spaces into lines of at most GT_LINE_WIDTH columns, and ends the last
   one.  The first line begins at column `at`, the others are indented by `indent`.  A number and
   its unit stay together; a longer word has a line of its own. */
void gt_wrap(FILE *to, size_t at, size_t indent, const char *text);
/* Prints as fprintf does, from column 0, broken as by gt_wrap. */
__attribute__((format(printf, 3, 4))) void gt_print_wrapped(FILE *to, size_t indent,
                                                            const char *format, ...);
/* Prints a field of CSV (RFC 4180), in quotes. */
void gt_csv_text(FILE *to, const char *text);

/* ---- hashes ---------------------------------------------------------------------------------- */

#define GT_SHA256_HEX 65
/* Writes the SHA-256 of `size` bytes as 64 lower-case hex digits and a NUL. */
void gt_sha256_hex(const void *data, size_t size, char hex[GT_SHA256_HEX]);
/* Computes the SHA-256 of data given in parts.  gt_sha256_end frees the state. */
typedef struct gt_sha256 gt_sha256;
gt_sha256 *gt_sha256_begin(void);
void gt_sha256_add(gt_sha256 *hash, const void *data, size_t size);
void gt_sha256_end(gt_sha256 *hash, char hex[GT_SHA256_HEX]);

/* ---- CPU ------------------------------------------------------------------------------------- */

/* Writes the CPU name listed in the file (GT_CPUINFO), truncated to size; "unknown" if none is
   listed.  Arm kernels list only numbers: "Arm, implementer 0x41, part 0xd0c". */
#define GT_CPUINFO "/proc/cpuinfo"
void gt_cpu_name(char *name, size_t size, const char *cpuinfo);
/* Writes gt_cpu_name's text and the numbers of family, model and stepping if they are listed.  CPUs
   with the same text behave alike. */
void gt_cpu_kind(char *kind, size_t size, const char *cpuinfo);

/* ---- named state ----------------------------------------------------------------------------- */

/* Components with state add their arrays to a list by name.  To save, the list borrows their
   pointers; to load, they look names up in a list that was read.  Names are paths:
   "optim/momentum". */
typedef enum { GT_TYPE_F32, GT_TYPE_F64, GT_TYPE_I64, GT_TYPE_U8 } gt_type;
size_t gt_type_size(gt_type type);

typedef struct {
  char name[96];
  gt_type type;
  size_t count;
  void *data;
} gt_state_item;

typedef struct {
  gt_state_item *items;
  size_t n, capacity;
  uint32_t *slots; /* nslots: a hash table of the names; each slot holds the index of an item plus
                      1, or 0 if free */
  size_t nslots;
  bool owns_data; /* items' data are freed with the list */
} gt_state;

/* Adds an item.  data is borrowed until the list is closed (unless owns_data).  It is NULL for
   vectors without data (simulation), which are never written to a file.  prefix is "" or ends in
   '/'. */
void gt_state_add(gt_state *state, const char *prefix, const char *name, gt_type type, void *data,
                  size_t count);
/* Returns the item or NULL. */
const gt_state_item *gt_state_find(const gt_state *state, const char *prefix, const char *name);
/* Returns the first item of `here` that `there` has with another type, count or value; NULL:
   none. */
const gt_state_item *gt_state_changed(const gt_state *here, const gt_state *there);
/* Copies an item of exactly this type and count to data; GT_ERR_CKPT names the item, what was found
   and what was expected. */
gt_status gt_state_get(const gt_state *state, const char *prefix, const char *name, gt_type type,
                       void *data, size_t count);

/* One array or number of a component.  A table of fields lists the saved state once, for saving and
   for loading. */
typedef struct {
  const char *name; /* NULL: the field is skipped */
  gt_type type;
  void *data; /* NULL: a vector without data (simulation), which is not loaded */
  size_t count;
} gt_state_field;

/* The direction: exactly one of the two is set, the list to save to or the list to load from. */
typedef struct {
  gt_state *to;
  const gt_state *from;
} gt_state_direction;

/* Adds the n fields in order (gt_state_add), or reads them (gt_state_get) and stops at the first
   error.  Saving never fails. */
gt_status gt_state_fields(gt_state_direction direction, const char *prefix,
                          const gt_state_field *fields, size_t n);
/* As gt_state_fields, for an array of fields. */
#define GT_STATE_FIELDS(direction, prefix, fields)                                                 \
  gt_state_fields(direction, prefix, fields, sizeof(fields) / sizeof *(fields))
/* Saves or loads n flags, stored as bytes, as gt_state_fields does. */
gt_status gt_state_flags(gt_state_direction direction, const char *prefix, const char *name,
                         bool *flags, size_t n);
void gt_state_close(gt_state *state);

/* ---- files ----------------------------------------------------------------------------------- */

/* Creates a temporary file that will be renamed to `path`, and opens it for reading and writing:
   ".NAME.tmp-PID-RANDOM" in the same folder.  Removes temporary files of the same NAME that have
   not been written for an hour.  Returns the descriptor, or -1 with errno; `temporary` receives the
   path. */
int gt_temporary_create(char *temporary, size_t size, const char *path);
/* Removes the last temporary file, if it has not been renamed, as the process ends without cleaning
   up.  Async-signal-safe. */
void gt_temporary_remove(void);
/* Makes SIGINT, SIGTERM, SIGHUP, SIGPIPE and SIGQUIT call gt_temporary_remove before they end the
   process, unless they are ignored or handled.  For commands of one process. */
void gt_temporary_guard(void);
/* True if `name` is a name that gt_temporary_create gives for a file `of`. */
bool gt_temporary_is(const char *name, const char *of);
/* Returns false with errno. */
bool gt_write_all(int fd, const void *bytes, size_t size);
/* Makes the name of a file or folder durable: syncs its parent folder.  Returns false with
   errno. */
bool gt_name_sync(const char *path);
/* Creates or replaces a file atomically: after a crash it has either the old or the new contents.
   A link keeps its place, and its target is replaced; a pipe or device is written to.  Returns
   false with errno. */
bool gt_file_replace(const char *path, const void *bytes, size_t size);
/* Does the same with the text that `write` writes to the stream. */
bool gt_file_compose(const char *path, void (*write)(FILE *to, const void *what), const void *what);
/* Succeeds if a command is allowed to write `out`.  GT_ERR_JOB if `out` is the command's own
   `input` (NULL: none) or a folder, or if it exists and is_kind says that it is not of this
   `kind` ("HDF5"; NULL: any existing file is replaced). */
gt_status gt_output_may_replace(const char *out, const char *input, const char *kind,
                                bool (*is_kind)(const char *path));

/* ---- drills ---------------------------------------------------------------------------------- */

/* Marks a fail point for tests.  If GEOTRAIN_FAILPOINT is "name" or "name:K", the process kills
   itself with SIGKILL when it passes this point for the first or K-th time.  With "name:K:hang" the
   thread blocks here until the process ends. */
void gt_failpoint(const char *name);

/* ---- signals --------------------------------------------------------------------------------- */

/* Installs handlers by which SIGUSR1, SIGTERM, SIGINT and SIGHUP request a stop (SIGHUP only if the
   process does not ignore it).  gt_stop_requested returns the number of the first such signal, or
   0. */
void gt_stop_install(void);
int gt_stop_requested(void);
