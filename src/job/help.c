/* `geotrain help job`, generated from the table of keys, in 80 columns. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

const char gt_job_example[] =
    "name: lenet-2-regions\n"
    "seed: 1\n"
    "model: {name: lenet5}\n"
    "data: {path: datasets/fashion-mnist.h5, partition: {by: shares, shares: [2, 1]}}\n"
    "train:\n"
    "  until: {epochs: 3}\n"
    "  batch: 64\n"
    "  optimizer: {name: sgd, lr: 0.02, momentum: 0.9}\n"
    "regions:\n"
    "  - {name: shanghai, ranks: 3}\n"
    "  - {name: chongqing, ranks: 2}\n"
    "sync: {local: async, strategy: asgd-ga, period: 8, topology: mesh,\n"
    "       weights: samples}\n"
    "wan:\n"
    "  emulate: true\n"
    "  links:\n"
    "    - {between: [shanghai, chongqing], bandwidth: 100 Mbit/s, latency: 25 ms,\n"
    "       jitter: 2 ms}\n"
    "checkpoint: {every: {epochs: 1}, keep: 2}\n";

static const char *default_text(const job_key *row) {
  if (row->fallback && !(row->flags & KEY_ONE_OF && strcmp(row->fallback, "0") == 0))
    return row->fallback;
  return row->flags & KEY_REQUIRED ? "(required)" : "-";
}

#define HELP_WIDTH ((size_t)80)

static const char intro[] =
    "These are the keys of a job file, which is YAML. Keys are written as paths:\n"
    "`sync.period` is the key `period` below `sync`; `regions[].name` is a key of\n"
    "every entry of the list `regions`.  On the command line `--set sync.period=4`\n"
    "or `--set regions.0.ranks=3` overrides the file, and `--set train.init=null`\n"
    "removes a key.  Times, rates and sizes have a unit: 25 ms, 100 Mbit/s, 1 GiB.\n"
    "Exactly one key of `until` must be given, and at most one key of each `every`.\n"
    "A link has `between`, or `from` and `to`; a link with a `trace` has no\n"
    "`bandwidth`; `compute` has `samples_per_s` or `step`.  Paths of files (data,\n"
    "matrix, trace, profile) start at the folder where geotrain runs; matrix and\n"
    "profile are also searched in the folder of the job file.  Some keys are for\n"
    "some strategies, models, optimizers or transports only: their meaning begins\n"
    "with the names.\n";

/* True if the row begins a new section; writes its name to `section`. */
static bool begins(char section[64], const job_key *row) {
  size_t length = strcspn(row->path, ".[");
  if (strlen(section) == length && strncmp(section, row->path, length) == 0) return false;
  snprintf(section, 64, "%.*s", (int)length, row->path);
  return true;
}

/* Prints a text with an indentation of four, broken at spaces. */
static void put_wrapped(FILE *to, const char *text) {
  while (*text) {
    size_t n = strlen(text);
    if (n > HELP_WIDTH - 4) {
      for (n = HELP_WIDTH - 4; n > 0 && text[n] != ' '; n--) continue;
      if (n == 0) n = strcspn(text, " ");
    }
    fprintf(to, "    %.*s\n", (int)n, text);
    text += n;
    text += strspn(text, " ");
  }
}

static void put_key(FILE *to, const job_key *row) {
  char range[256], owners[128], text[1024];
  fprintf(to, "%-40s %s\n", row->path, default_text(row));
  snprintf(text, sizeof text, "%s%s%s", gt_job_key_range(range, sizeof range, row, true),
           row->why ? ": " : "", row->why ? row->why : "");
  put_wrapped(to, text);
  gt_job_key_owners(owners, sizeof owners, row);
  snprintf(text, sizeof text, "%s%s%s", owners, *owners ? ": " : "", row->meaning);
  put_wrapped(to, text);
}

/* Writes the path without numbers and brackets: regions.0.ranks and regions[].ranks are
   regions.ranks. */
static void plain_path(char *out, size_t size, const char *path) {
  size_t n = 0;
  for (const char *at = path; *at && n + 1 < size; at++) {
    if (*at == '.' && isdigit((unsigned char)at[1])) {
      at += strspn(at + 1, "0123456789");
    } else if (*at != '[' && *at != ']') {
      out[n++] = *at;
    }
  }
  out[n] = '\0';
}

/* True if the row is this key or below it. */
static bool is_below(const job_key *row, const char *plain) {
  char path[96];
  plain_path(path, sizeof path, row->path);
  const size_t n = strlen(plain);
  return strncmp(path, plain, n) == 0 && (path[n] == '\0' || path[n] == '.');
}

gt_status gt_job_help_key(FILE *to, const char *key) {
  char plain[96];
  size_t found = 0;
  plain_path(plain, sizeof plain, key);
  for (size_t i = 0; i < gt_job_nkeys && *plain; i++) {
    if (!is_below(&gt_job_keys[i], plain)) continue;
    if (found++ > 0) fputc('\n', to);
    put_key(to, &gt_job_keys[i]);
  }
  if (found > 0) return GT_OK;
  const char **paths = GT_NEW_ARRAY(const char *, gt_job_nkeys);
  for (size_t i = 0; i < gt_job_nkeys; i++) paths[i] = gt_job_keys[i].path;
  const char *near = gt_nearest(key, paths, gt_job_nkeys);
  gt_free(paths);
  return GT_FAIL(GT_ERR_JOB,
                 "%.80s is not a key of a job file; `geotrain help job` lists them%s%s%s", key,
                 near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

void gt_job_help(FILE *to) {
  char section[64] = "";
  fprintf(to,
          "A job file with the keys that most jobs have:\n\n%s\n%s\n"
          "Each key is followed by its default, its values and its meaning.\n"
          "`geotrain help job sync` prints one section, and `geotrain help job sync.period`\n"
          "one key.\n",
          gt_job_example, intro);
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    if (begins(section, &gt_job_keys[i])) fprintf(to, "\n---- %s ----\n", section);
    fputc('\n', to);
    put_key(to, &gt_job_keys[i]);
  }
}

/* Writes a text into a table cell; escapes characters that end the cell or begin a tag. */
static void put_cell(FILE *to, const char *text) {
  for (; *text; text++) {
    if (strchr("|<\\", *text)) fputc('\\', to);
    fputc(*text, to);
  }
}

static void put_row(FILE *to, const job_key *row) {
  char range[256], owners[128];
  const char *given = default_text(row), *quote = given == row->fallback ? "`" : "";
  fprintf(to, "| `%s` | %s%s%s | ", row->path, quote, given, quote);
  put_cell(to, gt_job_key_range(range, sizeof range, row, true));
  if (row->why) fprintf(to, ": %s", row->why);
  gt_job_key_owners(owners, sizeof owners, row);
  fprintf(to, " | %s%s", owners, *owners ? ": " : "");
  put_cell(to, row->meaning);
  fprintf(to, " |\n");
}

void gt_job_help_markdown(FILE *to) {
  char section[64] = "";
  fprintf(to, "# The job file\n\n%s", intro);
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    if (begins(section, &gt_job_keys[i]))
      fprintf(to, "\n## %s\n\n| key | default | value | meaning |\n| --- | --- | --- | --- |\n",
              section);
    put_row(to, &gt_job_keys[i]);
  }
  fprintf(to, "\n## An example\n\n```yaml\n%s```\n", gt_job_example);
}
