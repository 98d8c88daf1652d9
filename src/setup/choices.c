/* Settles how the products of each layer are computed, before the model is built. train.choices and
   the clock decide the source: a file, the checkpoint that the run resumes from, or measurement.
   Workers on identical machines use the same choices: the first of them measures while the others
   wait. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define MEASURED "# measured" /* marker in a text of choices */

/* The machine, a line feed, then the precision: ranks on identical machines can have different
   precisions. */
enum { MACHINE = sizeof((gt_choices *)0)->machine, KEY = MACHINE + 8 };

/* ---- sources of choices ---- */

/* Reads the file's text; the caller frees it. */
static gt_status read_file(const char *path, char **text) {
  char block[4096];
  size_t size = 0, n;
  FILE *file = fopen(path, "re");
  *text = NULL;
  if (!file)
    return GT_FAIL(GT_ERR_JOB,
                   "train.choices: %s cannot be opened: %s; expected measure, rule or a file", path,
                   strerror(errno));
  while ((n = fread(block, 1, sizeof block, file)) > 0) {
    char *longer = GT_NEW_ARRAY(char, size + n + 1);
    if (size) memcpy(longer, *text, size);
    memcpy(longer + size, block, n);
    gt_free(*text);
    *text = longer;
    size += n;
  }
  const bool broken = ferror(file) != 0;
  fclose(file);
  if (broken)
    return GT_FAIL(GT_ERR_JOB, "train.choices: %s cannot be read: %s", path, strerror(errno));
  if (!*text) *text = gt_strdup("");
  return GT_OK;
}

/* Checks that all ranks read the same contents; of regions that are jobs of their own, which can
   have different choices, those of the region. */
static gt_status same_file(const gt_run *run, const char *path, const char *text) {
  gt_peers *all = run->options->region ? run->roles.region : run->roles.world;
  char own[GT_SHA256_HEX], first[GT_SHA256_HEX];
  gt_sha256_hex(text ? text : "", text ? strlen(text) : 0, own);
  memcpy(first, own, sizeof first);
  gt_peers_share(all, 0, first, sizeof first, "the first rank's file of choices",
                 run->start_limit_s);
  if (!text || strcmp(own, first) == 0) return GT_OK;
  return GT_FAIL(
      GT_ERR_JOB,
      "train.choices: rank %d (region %s) reads another %s (%.12s) than rank %d (%.12s); "
      "all ranks need the same",
      run->roles.world_rank, run->region, path, own, run->roles.world_rank - (int)all->rank, first);
}

/* True if train.choices names a file. */
static bool names_file(const gt_job *job) {
  return strcmp(job->train.choices, "rule") != 0 && strcmp(job->train.choices, "measure") != 0;
}

static gt_status check_use(const gt_job *job) {
  if (!names_file(job) || job->pipeline.nstages == 0) return GT_OK;
  return GT_FAIL(
      GT_ERR_JOB,
      "train.choices is %s, and with a pipeline products are computed by the rule; expected rule",
      job->train.choices);
}

gt_status gt_setup_check_choices(const gt_job *job) {
  char *text = NULL;
  bool found;
  gt_choices all = {0};
  GT_TRY(check_use(job));
  if (!names_file(job)) return GT_OK;
  gt_status status = read_file(job->train.choices, &text);
  if (status == GT_OK && job->train.kernels == GT_KERNELS_AUTO)
    status = gt_choices_parse(&all, job->train.choices, text, &found);
  gt_choices_close(&all);
  gt_free(text);
  return status;
}

static gt_status open_file(const gt_run *run, char **text) {
  const char *path = run->job->train.choices;
  gt_status status = read_file(path, text);
  const gt_status differs = same_file(run, path, status == GT_OK ? *text : NULL);
  return status != GT_OK ? status : differs;
}

/* Returns the text stored in a checkpoint file; NULL: none. */
static char *text_of(const gt_state *state) {
  const gt_state_item *item = gt_state_find(state, "train/", "choices");
  if (!item || item->type != GT_TYPE_U8) return NULL;
  char *text = GT_NEW_ARRAY(char, item->count + 1);
  memcpy(text, item->data, item->count);
  return text;
}

/* Returns the text of the round that the run resumes from, or of the newest readable round; NULL:
   none.  On the PS. */
static char *kept_text(gt_run *run) {
  int64_t rounds[GT_MAX_ROUNDS];
  const gt_setup_options *o = run->options;
  if (o->resume == GT_RESUME_NO || !o->run_dir) return NULL;
  if (o->resume_round > 0 && gt_setup_read_round(run, o->resume_round) != GT_ROUND_DAMAGED)
    return text_of(&run->kept.state);
  for (size_t n = gt_ckpt_rounds(o->run_dir, run->region, rounds, GT_MAX_ROUNDS); n-- > 0;)
    if (gt_setup_read_round(run, rounds[n]) != GT_ROUND_DAMAGED) return text_of(&run->kept.state);
  return NULL;
}

/* Returns the text of the region's PS on all its ranks; the caller frees it; NULL: none. */
static char *share_kept(gt_run *run) {
  char *own = run->roles.is_ps ? kept_text(run) : NULL,
       *shared = gt_peers_share_text(run->roles.region, own, "the choices of the checkpoint",
                                     run->start_limit_s);
  gt_free(own);
  return shared;
}

/* ---- one choice per kind of machine ---- */

/* True if `chosen` contains every layer of `needed`. */
static bool covers(const gt_choices *chosen, const gt_choices *needed) {
  for (size_t i = 0; i < needed->n; i++)
    if (!gt_choices_find(chosen, &needed->items[i].layer, needed->items[i].batch)) return false;
  return true;
}

/* Copies this machine's entries for the needed layers; false: some are missing. */
static bool take_text(gt_choices *needed, const char *source, const char *text) {
  gt_choices chosen = {0};
  bool found, whole = false;
  snprintf(chosen.machine, sizeof chosen.machine, "%s", needed->machine);
  if (gt_choices_parse(&chosen, source, text, &found) == GT_OK && found &&
      covers(&chosen, needed)) {
    for (size_t i = 0; i < needed->n; i++)
      needed->items[i] = *gt_choices_find(&chosen, &needed->items[i].layer, needed->items[i].batch);
    whole = true;
  }
  gt_choices_close(&chosen);
  return whole;
}

/* Returns the rank of the region's first worker with the same machine key as worker `of`. */
static int first_like(const char (*keys)[KEY], int of) {
  int rank = 1;
  while (strcmp(keys[rank], keys[of]) != 0) rank++;
  return rank;
}

/* Gathers the texts of all ranks of a group; the caller frees each and the array. */
static char **gather_texts(const gt_run *run, gt_peers *peers, const char *text) {
  return gt_peers_gather_texts(peers, text, "the choices of other ranks", run->start_limit_s);
}

/* Returns the texts of the region's ranks as one; the caller frees it. */
static char *join_texts(const gt_run *run, const char *text) {
  const size_t n = run->roles.region->size;
  char **texts = gather_texts(run, run->roles.region, text);
  size_t bytes = 1;
  for (size_t i = 0; i < n; i++) bytes += strlen(texts[i]);
  char *all = GT_NEW_ARRAY(char, bytes), *end = all;
  for (size_t i = 0; i < n; i++) {
    end = stpcpy(end, texts[i]);
    gt_free(texts[i]);
  }
  gt_free(texts);
  return all;
}

/* Returns the choices of this rank, the first of its kind: from `text`, or measured if that is
   NULL. */
static char *settle_kind(gt_run *run, const char *source, const char *text) {
  gt_choices *c = &run->choices;
  if (!text || !take_text(c, source, text)) {
    if (text)
      gt_log(GT_LOG_WARN,
             "%s has no choices for this machine (%s) and batches of %zu: they are measured",
             source, c->machine, run->batch);
    gt_choices_measure(c, gt_kernels_find(gt_kernels_names[run->job->train.kernels]));
  }
  return gt_choices_text(c);
}

static void settle_region(gt_run *run, const char *source, const char *text) {
  const gt_roles *roles = &run->roles;
  gt_choices *c = &run->choices;
  char own[KEY], (*keys)[KEY] = gt_alloc((size_t)roles->region_size, KEY);
  snprintf(own, sizeof own, "%s\n%s", c->machine, run->precision == GT_BF16 ? "bf16" : "f32");
  gt_peers_gather(roles->region, own, sizeof own, keys, "the machines of the region's ranks",
                  run->start_limit_s);
  const bool first = !roles->is_ps &&
                     first_like((const char(*)[KEY])keys, roles->region_rank) == roles->region_rank;
  char *mine = first ? settle_kind(run, source, text) : gt_strdup("");
  run->choices_text = join_texts(run, mine);
  gt_free(mine);
  if (!first && roles->region_size > 1) {
    if (roles->is_ps) /* a PS computes nothing; it uses the machine of the first worker */
      snprintf(c->machine, sizeof c->machine, "%.*s", (int)strcspn(keys[1], "\n"), keys[1]);
    if (!take_text(c, "the choices of this region's first worker", run->choices_text))
      gt_bug("%s", gt_error_text());
  }
  gt_free(keys);
}

/* ---- log ---- */

/* Writes "dnn 9, dnn-gemm 3": the kernels of a pass, with the number of layers that use each. */
static void list_pass(char *text, size_t size, const gt_choices *choices, int pass) {
  text[0] = '\0';
  for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++) {
    size_t n = 0, used = strlen(text);
    for (size_t i = 0; i < choices->n; i++) {
      const gt_choice *c = &choices->items[i];
      n += c->algorithms[pass] == (gt_algorithm)algorithm &&
           (pass != GT_PASS_INPUT || c->layer.conv.needs_input_gradient);
    }
    if (n > 0)
      snprintf(text + used, size - used, "%s%s %zu", used > 0 ? ", " : "",
               gt_algorithm_name((gt_algorithm)algorithm), n);
  }
}

/* source: NULL if measured. */
static void say(const gt_run *run, const char *source) {
  gt_log_job(GT_LOG_INFO, "kernels of %zu layers: %s%s (--verbose lists them)", run->choices.n,
             source ? "from " : "chosen by measurement", source ? source : "");
  for (int pass = 0; pass < GT_PASSES; pass++) {
    char text[256];
    list_pass(text, sizeof text, &run->choices, pass);
    gt_log(GT_LOG_DEBUG, "kernels, %s: %s", gt_pass_name((gt_pass_id)pass), text);
  }
}

/* ---- entry point ---- */

static void list_layers(gt_run *run, const gt_graph_spec *spec) {
  gt_graph *graph;
  gt_graph_spec bare = *spec;
  bare.batch_max = 0;
  /* the error is reported when the model is built */
  if (gt_graph_create(&graph, &bare) != GT_OK) return;
  gt_graph_layers(graph, run->batch, &run->choices);
  gt_graph_close(graph);
}

/* Checks that the file's text is valid and, under the virtual clock (no measuring), covers this
   machine.  The PS computes nothing. */
static gt_status check_text(const gt_run *run, const char *text) {
  const char *path = run->job->train.choices;
  gt_choices all = {0};
  bool found;
  if (run->roles.is_ps) return GT_OK;
  gt_status status = gt_choices_parse(&all, path, text, &found);
  if (status == GT_OK && run->options->virtual_clock && (!found || !covers(&all, &run->choices)))
    status = GT_FAIL(GT_ERR_JOB,
                     "train.choices: %s has no choices for rank %d's machine (%s) and batches of "
                     "%zu, and nothing is measured under --clock virtual; "
                     "`geotrain info JOB --measure --out FILE` makes them",
                     path, run->roles.world_rank, run->choices.machine, run->batch);
  gt_choices_close(&all);
  return status;
}

/* Settles the choices from the text of a file or of the checkpoint, or by measuring (NULL). */
static void settle(gt_run *run, bool named, const char *text) {
  const char *source = named ? run->job->train.choices : "the checkpoint";
  settle_region(run, source, text);
  const bool measured = strstr(run->choices_text, MEASURED) != NULL;
  run->choices_how = measured ? "measured" : named ? "file" : "checkpoint";
  if (run->roles.is_ps && run->choices.n > 0) say(run, measured ? NULL : source);
}

gt_status gt_setup_open_choices(gt_run *run, const gt_graph_spec *spec) {
  const gt_job *job = run->job;
  const bool by_rule = strcmp(job->train.choices, "rule") == 0, named = names_file(job);
  char *text = NULL;
  run->choices_how = "rule";
  gt_status status = check_use(job);
  if (status == GT_OK && named) status = open_file(run, &text);
  /* the workers of a pipeline have different layers and shares of a batch */
  const bool settled = by_rule || run->pipe || job->train.kernels != GT_KERNELS_AUTO ||
                       (!named && run->options->virtual_clock);
  if (status == GT_OK && !settled) {
    gt_machine_key(run->choices.machine, sizeof run->choices.machine);
    if (gt_job_trains(job, run->roles.region_id)) list_layers(run, spec);
    if (named) status = check_text(run, text);
  }
  /* one exchange of all regions, whatever the choices of each */
  status = gt_agree(run->roles.world, status, run->start_limit_s);
  if (status == GT_OK && !settled) {
    if (!named) text = share_kept(run);
    settle(run, named, text);
  }
  gt_free(text);
  return status;
}

char **gt_setup_gather_choices(gt_run *run) {
  const char *own = run->choices_text ? run->choices_text : "";
  char **texts = gather_texts(run, run->roles.ps, own);
  for (size_t r = 0; r < run->job->nregions; r++) {
    if (!gt_setup_is_late(run, r)) continue;
    gt_free(texts[r]);
    texts[r] = gt_strdup(r == run->roles.region_id ? own : "");
  }
  /* a region without workers has measured nothing */
  for (size_t i = 0; i < run->job->nregions; i++)
    if (!gt_job_trains(run->job, run->roles.region_id) && strstr(texts[i], MEASURED))
      run->choices_how = "measured";
  return texts;
}
