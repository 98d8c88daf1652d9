/* Keys in which two resolved jobs differ: the first one, or all; the job of a run that has
   begun. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

typedef struct {
  bool for_resume;
  FILE *sets; /* if not NULL, all differences are printed here */
  bool all;   /* all differences are appended to text */
  char *text;
  size_t size;
  size_t more; /* keys that did not fit into text */
} finding;

#define REST_MAX ((size_t)24) /* characters kept for " and N more" */

/* True for keys that a resume may change.  All keys of train.until count as one. */
static bool passed_over(const finding *f, const char *pattern) {
  if (!f->for_resume) return false;
  size_t n = strlen(pattern);
  bool any = false;
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    if (strncmp(row->path, pattern, n) != 0 || (row->path[n] != '\0' && row->path[n] != '.'))
      continue;
    if (!(row->flags & KEY_ON_RESUME)) return false;
    any = true;
  }
  return any;
}

/* True if the key has its default, which it has in a job of an earlier version without the key. */
static bool is_default(const job_node *node, const char *pattern) {
  const job_key *row = gt_job_key_find(pattern);
  return row && node && row->fallback && !(row->flags & KEY_ONE_OF) && node->kind == NODE_SCALAR &&
         strcmp(node->text, row->fallback) == 0;
}

static void value_text(const job_node *node, char *buf, size_t size) {
  if (!node)
    snprintf(buf, size, "not given");
  else if (node->kind == NODE_SCALAR)
    snprintf(buf, size, "%.100s", node->text);
  else if (node->kind == NODE_MAP)
    snprintf(buf, size, "a mapping of %zu", node->n);
  else if (node->n && node->items[0]->kind != NODE_SCALAR)
    snprintf(buf, size, "a list of %zu", node->n);
  else {
    size_t used = (size_t)snprintf(buf, size, "[");
    for (size_t i = 0; i < node->n && used < size - 32; i++)
      used += (size_t)snprintf(buf + used, size - used, "%s%.24s", i ? ", " : "",
                               node->items[i]->text ? node->items[i]->text : "...");
    snprintf(buf + used, size - used, "]");
  }
}

static bool differ(finding *f, const job_node *here, const job_node *there, const char *path,
                   const char *pattern);

/* Appends "KEY: OLD -> NEW". */
static void list(finding *f, const char *path, const char *before, const char *now) {
  char item[JOB_PATH_MAX + 400];
  const size_t used = strlen(f->text);
  const int length =
      snprintf(item, sizeof item, "%s%s: %s -> %s", used ? ", " : "", path, before, now);
  if (f->more || used + (size_t)length + REST_MAX >= f->size)
    f->more++;
  else
    memcpy(f->text + used, item, (size_t)length + 1);
}

/* Prints the --set that gives a key its value here. */
static void print_set(FILE *to, const job_node *here, const char *path) {
  job_node *map = gt_job_node_new(NODE_MAP, NULL, NULL);
  if (!here) {
    fprintf(to, "%s=null\n", path);
  } else {
    job_node *value = gt_job_node_copy(here);
    gt_free(value->key);
    value->key = gt_strdup("v");
    gt_job_node_add(map, value);
    char *text = gt_job_yaml_emit(map, true);
    fprintf(to, "%s=%s", path, text + strlen("v: "));
    gt_free(text);
  }
  gt_job_node_close(map);
}

/* Reports a difference.  Returns true if the search ends here. */
static bool say(finding *f, const job_node *here, const job_node *there, const char *path) {
  if (f->sets) {
    print_set(f->sets, here, path);
    return false;
  }
  char h[160], t[160];
  value_text(here, h, sizeof h);
  value_text(there, t, sizeof t);
  if (f->all) {
    list(f, path, t, h);
    return false;
  }
  snprintf(f->text, f->size, "%s is %s there and %s here", *path ? path : "the job", t, h);
  return true;
}

static bool maps_differ(finding *f, const job_node *here, const job_node *there, const char *path,
                        const char *pattern) {
  const job_node *sides[2] = {here, there};
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; i < sides[side]->n; i++) {
      const job_node *mine = sides[side]->items[i],
                     *other = gt_job_node_find(sides[!side], mine->key, strlen(mine->key));
      if (side && other) continue; /* already compared */
      char p[JOB_PATH_MAX], q[JOB_PATH_MAX];
      gt_job_path_join(p, sizeof p, path, mine->key);
      gt_job_path_join(q, sizeof q, pattern, mine->key);
      if (differ(f, side ? other : mine, side ? mine : other, p, q)) return true;
    }
  }
  return false;
}

static bool lists_differ(finding *f, const job_node *here, const job_node *there, const char *path,
                         const char *pattern) {
  if (here->n != there->n || (here->n && here->items[0]->kind == NODE_SCALAR)) {
    bool same = here->n == there->n;
    for (size_t i = 0; same && i < here->n; i++)
      same = there->items[i]->kind == NODE_SCALAR && here->items[i]->kind == NODE_SCALAR &&
             strcmp(here->items[i]->text, there->items[i]->text) == 0;
    return !same && say(f, here, there, path);
  }
  for (size_t i = 0; i < here->n; i++) {
    char p[JOB_PATH_MAX], q[JOB_PATH_MAX], index[24];
    snprintf(index, sizeof index, "%zu", i);
    gt_job_path_join(p, sizeof p, path, index);
    snprintf(q, sizeof q, "%.*s[]", (int)(sizeof q - 3), pattern);
    if (differ(f, here->items[i], there->items[i], p, q)) return true;
  }
  return false;
}

static bool differ(finding *f, const job_node *here, const job_node *there, const char *path,
                   const char *pattern) {
  if (*pattern && passed_over(f, pattern)) return false;
  /* a map on one side only: reports its first key, unless a resume may change it */
  job_node nothing = {.kind = NODE_MAP};
  if (here && !there && here->kind == NODE_MAP)
    return maps_differ(f, here, &nothing, path, pattern);
  if (!here && there && there->kind == NODE_MAP)
    return maps_differ(f, &nothing, there, path, pattern);
  if ((!here || !there) && is_default(here ? here : there, pattern)) return false;
  if (!here || !there || here->kind != there->kind) return say(f, here, there, path);
  if (here->kind == NODE_MAP) return maps_differ(f, here, there, path, pattern);
  if (here->kind == NODE_LIST) return lists_differ(f, here, there, path, pattern);
  return strcmp(here->text, there->text) != 0 && say(f, here, there, path);
}

static void compare(finding *f, const char *here, const char *there) {
  job_node *a = NULL, *b = NULL;
  f->text[0] = '\0';
  if (gt_job_yaml_parse(&a, "here", here, strlen(here)) != GT_OK ||
      gt_job_yaml_parse(&b, "there", there, strlen(there)) != GT_OK)
    snprintf(f->text, f->size, "a job is not YAML: %s", gt_error_text());
  else
    differ(f, a, b, "", "");
  gt_job_node_close(a);
  gt_job_node_close(b);
  const size_t used = strlen(f->text);
  if (f->more) snprintf(f->text + used, f->size - used, " and %zu more", f->more);
}

void gt_job_difference(const char *here, const char *there, bool for_resume, char *text,
                       size_t size) {
  finding f = {.for_resume = for_resume, .text = text, .size = size};
  compare(&f, here, there);
}

/* Prints the values of --set that make the second job from the first, one per line. */
static void print_sets(FILE *to, const char *now, const char *before) {
  char text[512];
  finding f = {.sets = to, .text = text, .size = sizeof text};
  compare(&f, now, before);
}

/* Lists all keys in which two resolved jobs differ, as "KEY: OLD -> NEW"; "" if they are equal. */
static void changes(const char *now, const char *before, char *text, size_t size) {
  finding f = {.all = true, .text = text, .size = size};
  compare(&f, now, before);
}

/* ---- job.yaml of a run directory and the job file of this start ------------------------------ */

const char gt_job_on_resume[] =
    "a resume may change train.until, checkpoint, limits, ranks, hosts, transport, speeds, prices, "
    "plan, log, slurm, model.stem, train.keep, train.patience and a pipeline's stages, schedule, "
    "micro_batches, memory and adapt only";

bool gt_job_began(const gt_job *run, const gt_job *named) {
  return strcmp(named->sha256, run->began_sha256) == 0 || strcmp(named->sha256, run->sha256) == 0;
}

gt_status gt_job_load_run(gt_job **out, const gt_job *named, const char *named_path,
                          const char *path, const char *const *sets, size_t nsets) {
  gt_job *run = NULL;
  GT_TRY(gt_job_load(&run, path, sets, nsets));
  char *before = gt_job_resolved(run), *now = gt_job_resolved(named), text[640] = "";
  if (!gt_job_began(run, named)) changes(now, before, text, sizeof text);
  gt_free(before);
  gt_free(now);
  if (!text[0]) {
    *out = run;
    return GT_OK;
  }
  gt_job_close(run);
  return GT_FAIL(GT_ERR_JOB,
                 "%.120s is not the job of the run (%.120s): %s; give these keys by --set, or name "
                 "%.120s to resume the run unchanged",
                 named_path, path, text, path);
}

gt_status gt_job_run_sets(FILE *to, const gt_job *named, const gt_job *run) {
  char *now = gt_job_resolved(named), *before = gt_job_resolved(run), text[512];
  gt_job_difference(now, before, true, text, sizeof text);
  const bool fits = !text[0];
  if (fits && !gt_job_began(run, named)) print_sets(to, now, before);
  gt_free(now);
  gt_free(before);
  return fits ? GT_OK : GT_FAIL(GT_ERR_JOB, "%s; %s", text, gt_job_on_resume);
}
