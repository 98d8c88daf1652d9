/* geotrain generate: continues a text with the model of a checkpoint. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_model.h"
#include "geotrain/data_text.h"
#include "geotrain/net.h"
#include "options.h"
#include "sample.h"
#include "text_stages.h"

#define USAGE                                                                                      \
  "usage: geotrain generate CHECKPOINT|RUN_DIR [REGION] --prompt TEXT [--tokens N] [--temperature" \
  " X] [--top K] [--seed S]"

enum { TOKENS = 256, TOKENS_MAX = 1000000 };
#define START_LIMIT_S 300.0

typedef struct {
  const char *prompt;
  uint64_t tokens, seed;
  gt_cli_sampling sampling;
} request;

/* ---- generating ------------------------------------------------------------------------------ */

/* A model, here or in parts on several ranks, its vocabulary, and the text so far. */
typedef struct {
  gt_graph *graph;
  gt_text_stages *stages;
  gt_tokens *tokens;
  size_t T;     /* positions of the model */
  int32_t *ids; /* all ids so far */
  size_t n;
  int32_t *window; /* (T+1): a sample of the model */
  gt_cli_candidate *candidates;
  gt_rng rng;
} writer;

/* Returns the logits of the id after position `last` of the window. */
static const float *logits_of(writer *w, size_t last) {
  if (w->stages) return gt_text_stages_logits(w->stages, w->window, last);
  return gt_graph_infer(w->graph, w->window, 1) + last * gt_graph_outputs(w->graph);
}

/* Appends the next id, predicted from at most the last T. */
static gt_status next_id(writer *w, const gt_cli_sampling *sampling) {
  const size_t count = w->n < w->T ? w->n : w->T;
  size_t id;
  memcpy(w->window, w->ids + w->n - count, count * sizeof *w->ids);
  const float *logits = logits_of(w, count - 1);
  GT_TRY(gt_cli_sample(&id, logits, gt_tokens_count(w->tokens), sampling, &w->rng, w->candidates));
  w->ids[w->n++] = (int32_t)id;
  return GT_OK;
}

static void print_last(const writer *w) {
  size_t n;
  const char *bytes = gt_tokens_bytes(w->tokens, w->ids[w->n - 1], &n);
  fwrite(bytes, 1, n, stdout);
  fflush(stdout);
}

static gt_status write_text(writer *w, const request *r) {
  const size_t prompt = strlen(r->prompt), V = gt_tokens_count(w->tokens);
  w->ids = GT_NEW_ARRAY(int32_t, prompt + r->tokens);
  w->window = GT_NEW_ARRAY(int32_t, w->T + 1);
  w->candidates = GT_NEW_ARRAY(gt_cli_candidate, V);
  w->rng = gt_rng_make(r->seed, GT_RNG_GENERATE, 0, 0);
  w->n = gt_tokens_encode(w->tokens, r->prompt, prompt, w->ids);
  fputs(r->prompt, stdout);
  for (uint64_t i = 0; i < r->tokens; i++) {
    GT_TRY(next_id(w, &r->sampling));
    print_last(w);
  }
  putchar('\n');
  return GT_OK;
}

/* ---- the checkpoint -------------------------------------------------------------------------- */

static gt_status open_tokens(gt_tokens **out, const char *path, const gt_ckpt_info *info,
                             const gt_state *state) {
  const gt_model *model = gt_model_find(info->model);
  const gt_state_item *merges = gt_state_find(state, "data/", "merges");
  if (model && !model->decodes)
    return GT_FAIL(GT_ERR_CKPT,
                   "%s: its model, %s, does not continue texts; expected a model like gpt", path,
                   info->model);
  if (!merges || merges->type != GT_TYPE_I64 || merges->count % 2 != 0)
    return GT_FAIL(GT_ERR_CKPT,
                   "%s: holds no vocabulary; expected a model trained on a text that `geotrain "
                   "data import text` has imported",
                   path);
  if (gt_tokens_create(out, path, merges->data, merges->count / 2) != GT_OK)
    return GT_FAIL(GT_ERR_CKPT, "%s", gt_error_text());
  if ((int64_t)gt_tokens_count(*out) == info->features) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 "%s: its model has %lld ids and its vocabulary %zu; expected the same number",
                 path, (long long)info->features, gt_tokens_count(*out));
}

static gt_status open_writer(writer *w, const char *path, const gt_ckpt_info *info,
                             const gt_state *state) {
  gt_sample_shape shape;
  GT_TRY(gt_cli_checkpoint_whole(path, info));
  GT_TRY(open_tokens(&w->tokens, path, info, state));
  GT_TRY(gt_cli_checkpoint_shape(path, info, &shape));
  GT_TRY(gt_cli_checkpoint_model(&w->graph, path, info, state, &shape, 1));
  w->T = gt_graph_predictions(w->graph);
  return GT_OK;
}

static void close_writer(writer *w) {
  gt_free(w->candidates);
  gt_free(w->window);
  gt_free(w->ids);
  gt_tokens_close(w->tokens);
  gt_graph_close(w->graph);
  gt_text_stages_close(w->stages);
}

static gt_status generate(const char *named, const char *region, const request *r) {
  char path[4096];
  gt_ckpt_info info;
  gt_state state;
  writer w = {0};
  GT_TRY(gt_cli_run_model(path, sizeof path, named, region));
  GT_TRY(gt_ckpt_read(path, &info, &state));
  gt_status status = open_writer(&w, path, &info, &state);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  if (status == GT_OK) status = write_text(&w, r);
  close_writer(&w);
  return status;
}

/* ---- several ranks --------------------------------------------------------------------------- */

/* Opens the parts of the model.  Collective; all ranks get the same status. */
static gt_status open_parts(writer *w, gt_peers *world, const char *named, const char *region) {
  char path[4096];
  gt_ckpt_source *from = NULL;
  gt_ckpt_info info = {0};
  gt_state state = {0};
  gt_sample_shape shape = {0};
  gt_status status = gt_cli_run_model(path, sizeof path, named, region);
  if (status == GT_OK) status = gt_ckpt_source_open(&from, path, &info, &state);
  if (status == GT_OK) status = gt_cli_checkpoint_whole(path, &info);
  if (status == GT_OK) status = open_tokens(&w->tokens, path, &info, &state);
  if (status == GT_OK) status = gt_cli_checkpoint_shape(path, &info, &shape);
  status = gt_text_stages_open(&w->stages, world, status, path, from, &info, &shape);
  gt_ckpt_source_close(from);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  if (status == GT_OK) w->T = gt_text_stages_positions(w->stages);
  return status;
}

static void say(gt_status status) {
  if (status != GT_OK && gt_launch_first()) gt_log(GT_LOG_ERROR, "%s", gt_error_text());
}

/* Rank 0 generates, the others compute their parts.  Rank 0 reports a failure before any rank ends,
   because the launcher kills the other ranks when one ends with an error. */
static gt_status generate_in_parts(const char *named, const char *region, const request *r) {
  writer w = {0};
  gt_peers *world = gt_net_start(START_LIMIT_S);
  gt_status status = open_parts(&w, world, named, region);
  if (status == GT_OK) {
    if (gt_launch_first()) status = write_text(&w, r);
    gt_text_stages_serve(w.stages);
  }
  say(status);
  close_writer(&w);
  gt_net_finalize(world, START_LIMIT_S);
  return status;
}

/* ---- options --------------------------------------------------------------------------------- */

static gt_status parse_count(const char *option, const char *text, uint64_t most, uint64_t *out) {
  char *end;
  errno = 0;
  const unsigned long long n = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end || errno || n > most)
    return GT_FAIL(GT_ERR_JOB, "generate: --%s is `%s`; expected a whole number up to %llu", option,
                   text, (unsigned long long)most);
  *out = n;
  return GT_OK;
}

static gt_status parse_temperature(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  if (end != text && *end == 0 && isfinite(*out) && *out >= 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "generate: --temperature is `%s`; expected a number, 0 or more", text);
}

static gt_status take(request *r, int option, const char *text) {
  uint64_t top;
  switch (option) {
  case 'p':
    r->prompt = text;
    return GT_OK;
  case 'n':
    return parse_count("tokens", text, TOKENS_MAX, &r->tokens);
  case 't':
    return parse_temperature(text, &r->sampling.temperature);
  case 'k':
    GT_TRY(parse_count("top", text, SIZE_MAX, &top));
    r->sampling.top = (size_t)top;
    return GT_OK;
  default:
    return parse_count("seed", text, UINT64_MAX, &r->seed);
  }
}

static gt_status read_request(request *r, int argc, char **argv) {
  static const struct option options[] = {
      {"prompt", required_argument, NULL, 'p'},      {"tokens", required_argument, NULL, 'n'},
      {"temperature", required_argument, NULL, 't'}, {"top", required_argument, NULL, 'k'},
      {"seed", required_argument, NULL, 's'},        {0}};
  *r = (request){.prompt = "", .tokens = TOKENS, .seed = 1, .sampling = {.temperature = 0.8}};
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (option == '?') return gt_option_refused(argc, argv, "generate");
    GT_TRY(take(r, option, optarg));
  }
  const int given = argc - optind;
  if (given != 1 && given != 2)
    return GT_FAIL(GT_ERR_JOB, "generate: %d files are given; " USAGE, given);
  if (r->prompt[0]) return GT_OK;
  return GT_FAIL(
      GT_ERR_JOB,
      "generate: --prompt is empty or missing; expected a text that the model continues");
}

gt_status gt_cmd_generate(int argc, char **argv) {
  request r;
  gt_status status = read_request(&r, argc, argv);
  if (status == GT_OK) status = gt_launch_check();
  const char *named = argv[optind], *region = argc - optind == 2 ? argv[optind + 1] : NULL;
  if (status == GT_OK && gt_launch_tasks() > 1) return generate_in_parts(named, region, &r);
  if (status == GT_OK) status = generate(named, region, &r);
  say(status);
  return status;
}
