/* `geotrain help job`, generated from the table of keys. */
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
    "sync: {local: async, strategy: asgd-ga, period: 8, topology: mesh, weights: samples}\n"
    "wan:\n"
    "  emulate: true\n"
    "  links:\n"
    "    - {between: [shanghai, chongqing], bandwidth: 100 Mbit/s, latency: 25 ms, jitter: 2 ms}\n"
    "checkpoint: {every: {epochs: 1}, keep: 2}\n";

static const char *default_text(const job_key *row) {
  if (row->fallback && !(row->flags & KEY_ONE_OF && strcmp(row->fallback, "0") == 0))
    return row->fallback;
  return row->flags & KEY_REQUIRED ? "(required)" : "-";
}

static const char intro[] =
    "These are the keys of a job file, which is YAML.  Keys are written as paths: `sync.period` "
    "is\n"
    "the key `period` below `sync`; `regions[].name` is a key of every entry of the list "
    "`regions`.\n"
    "On the command line `--set sync.period=4` or `--set regions.0.ranks=3` overrides the file, "
    "and\n"
    "`--set train.init=null` removes a key.  Times, rates and sizes have a unit: 25 ms, 100 "
    "Mbit/s,\n"
    "1 GiB.  Exactly one key of `until` must be given, and at most one key of each `every`.  A "
    "link\n"
    "has `between`, or `from` and `to`; a link with a `trace` has no `bandwidth`; `compute` has\n"
    "`samples_per_s` or `step`.  Paths of files (data, matrix, trace, profile) start at the "
    "folder\n"
    "where geotrain runs; matrix and profile are also searched in the folder of the job file.  "
    "Some\n"
    "keys are for some strategies, models or optimizers only: their meaning begins with the "
    "names.\n";

/* Whether the row begins a new section; its name is written to `section`. */
static bool begins(char section[64], const job_key *row) {
  size_t length = strcspn(row->path, ".[");
  if (strlen(section) == length && strncmp(section, row->path, length) == 0) return false;
  snprintf(section, 64, "%.*s", (int)length, row->path);
  return true;
}

void gt_job_help(FILE *to) {
  fputs(intro, to);
  char section[64] = "";
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    char range[256], owners[128];
    gt_job_key_owners(owners, sizeof owners, row);
    if (begins(section, row)) fprintf(to, "\n");
    fprintf(to, "%-38s %-10s %s%s%s\n%38s %-10s %s%s%s\n", row->path, default_text(row), owners,
            *owners ? ": " : "", row->meaning, "", "",
            gt_job_key_range(range, sizeof range, row, true), row->why ? ": " : "",
            row->why ? row->why : "");
  }
  fprintf(to, "\nThe second column is the default.  An example:\n\n%s", gt_job_example);
}

/* Writes a text into a table cell: escapes characters that would end the cell or begin a tag. */
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
