/* geotrain generate: continues a text with the model of a checkpoint. */
#include "cli.h"
#include "checkpoint_model.h"
#include "geotrain/data_text.h"
#include "geotrain/net.h"
#include "options.h"
#include "sample.h"
#include "geotrain/net_mpi.h"
#include "geotrain/nn_span.h"
#include "geotrain/ckpt.h"
#include "geotrain/net_peers.h"
#include "geotrain/nn.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the model, in parts --------------------------------------------------------------------- */

/* A model of text in parts, one on each rank. */

#define LIMIT_S 300.0
enum { TAG_ACTIVATION = 1, TAG_LOGITS = 2 };

typedef struct {
  gt_peers *world;
  int rank;
  size_t nparts;           /* ranks with a part, the first ones */
  gt_graph *whole;         /* sizes only */
  gt_graph *part;          /* NULL: this rank has no part */
  float *params, *buffers; /* of the part, which has no gradients */
  size_t span;             /* of the part's graph: its operations */
  size_t in_bytes, out_bytes;
  size_t T, V;    /* positions, vocabulary */
  int32_t *order; /* (T+2): the requested position, or -1: the end; then the window */
  float *logits;  /* (V) */
} text_stages;

/* ---- division into parts --------------------------------------------------------------------- */

/* Returns the end of the part that begins at `first` and has at most `most` parameters, or one
   piece that cannot be divided. */
static size_t part_end(const gt_graph *whole, size_t first, size_t most) {
  const size_t n = gt_graph_operations(whole);
  size_t end = first, sum = 0;
  for (size_t i = first; i < n; i++) {
    const gt_operation op = gt_graph_operation(whole, i);
    sum += op.params;
    if (!op.ends && i + 1 < n) continue;
    if (sum > most && end > first) break;
    end = i + 1;
  }
  return end;
}

static size_t parts_of(const gt_graph *whole, size_t most) {
  size_t n = 0;
  for (size_t at = 0; at < gt_graph_operations(whole); n++) at = part_end(whole, at, most);
  return n;
}

/* Returns the smallest limit of parameters per part with which the number of parts is at most that
   of the ranks. */
static size_t least_most(const gt_graph *whole, size_t ranks) {
  size_t low = 0, high = gt_graph_arrays(whole)->params.n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (parts_of(whole, middle) <= ranks)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static gt_span part_of(const text_stages *s, size_t most) {
  gt_span span = {0, 0};
  for (int rank = 0; rank <= s->rank; rank++)
    span = (gt_span){span.end, part_end(s->whole, span.end, most)};
  return span;
}

/* ---- the own part ---------------------------------------------------------------------------- */

/* Returns the operation before the span whose weights the span borrows (a tied head); SIZE_MAX:
   none. */
static size_t lender(const gt_graph *whole, gt_span span) {
  for (size_t i = span.first; i < span.end; i++) {
    const size_t owner = gt_graph_operation(whole, i).borrows;
    if (owner < span.first) return owner;
  }
  return SIZE_MAX;
}

/* Reads parameters and buffers of the spans, one after the other. */
static gt_status load(const text_stages *s, const gt_ckpt_source *from, const gt_span *spans,
                      size_t n) {
  for (int buffers = 0; buffers < 2; buffers++) {
    float *to = buffers ? s->buffers : s->params;
    for (size_t i = 0; i < n; i++) {
      const size_t at = gt_graph_span_floats(s->whole, (gt_span){0, spans[i].first}, buffers),
                   count = gt_graph_span_floats(s->whole, spans[i], buffers);
      GT_TRY(gt_ckpt_source_get(from, buffers, at, to, count));
      to += count;
    }
  }
  return GT_OK;
}

static gt_status open_part(text_stages *s, const char *path, const gt_ckpt_source *from,
                           const gt_ckpt_info *info, gt_graph_spec *spec, gt_span own) {
  const size_t owner = lender(s->whole, own);
  gt_span spans[2] = {{owner, owner + 1}, own};
  bool runs[2] = {false, true};
  s->span = owner == SIZE_MAX ? 0 : 1;
  spec->sizes_only = false;
  spec->slots = spec->micro_batches = 1;
  spec->spans = spans + 1 - s->span;
  spec->runs = runs + 1 - s->span;
  spec->nspans = s->span + 1;
  spec->lent = true;
  GT_TRY(gt_cli_checkpoint_graph(&s->part, path, info, gt_ckpt_source_floats(from, false), spec));
  const gt_arrays *a = gt_graph_arrays(s->part);
  s->params = GT_NEW_ARRAY(float, a->params.n + 1);
  s->buffers = GT_NEW_ARRAY(float, a->buffers.n + 1);
  gt_graph_adopt(s->part, s->params, NULL, s->buffers);
  if (own.first > 0) s->in_bytes = gt_graph_operation(s->whole, own.first - 1).output_bytes;
  s->out_bytes = gt_graph_operation(s->whole, own.end - 1).output_bytes;
  return load(s, from, spec->spans, spec->nspans);
}

static gt_status open_here(text_stages *s, const char *path, const gt_ckpt_source *from,
                           const gt_ckpt_info *info, const gt_sample_shape *shape) {
  gt_graph_spec spec = {.shape = *shape, .batch_max = 1, .sizes_only = true};
  GT_TRY(gt_cli_checkpoint_graph(&s->whole, path, info, gt_ckpt_source_floats(from, false), &spec));
  GT_TRY(gt_cli_checkpoint_hash(s->whole, path, info));
  const size_t most = least_most(s->whole, s->world->size);
  s->nparts = parts_of(s->whole, most);
  s->T = gt_graph_predictions(s->whole);
  s->V = gt_graph_outputs(s->whole);
  s->order = GT_NEW_ARRAY(int32_t, s->T + 2);
  s->logits = GT_NEW_ARRAY(float, s->V);
  if ((size_t)s->rank >= s->nparts) return GT_OK;
  return open_part(s, path, from, info, &spec, part_of(s, most));
}

/* NULL is allowed.  Local. */
static void stages_close(text_stages *stages) {
  if (!stages) return;
  gt_graph_close(stages->part);
  gt_graph_close(stages->whole);
  gt_free(stages->params);
  gt_free(stages->buffers);
  gt_free(stages->order);
  gt_free(stages->logits);
  gt_free(stages);
}

/* Opens this rank's part of the model, with its parameters; if the model has fewer parts than there
   are ranks, the last ranks have none.  Collective over `world`, which is borrowed until the close:
   all ranks get the same status.  status: of this rank so far; `from`, `info` and `shape` are not
   read if it is an error. */
static gt_status stages_open(text_stages **out, gt_peers *world, gt_status status, const char *path,
                             const gt_ckpt_source *from, const gt_ckpt_info *info,
                             const gt_sample_shape *shape) {
  text_stages *s = GT_NEW(text_stages);
  s->world = world;
  s->rank = (int)world->rank;
  if (status == GT_OK) status = open_here(s, path, from, info, shape);
  status = gt_agree(world, status, LIMIT_S);
  if (status == GT_OK)
    *out = s;
  else
    stages_close(s);
  return status;
}

/* ---- computing ------------------------------------------------------------------------------- */

static void receive(text_stages *s, void *to, size_t bytes, int from, int tag, const char *what) {
  MPI_Request request;
  GT_MPI(MPI_Irecv(to, (int)bytes, MPI_BYTE, from, tag, gt_peers_mpi(s->world), &request));
  gt_wait_all(&request, 1, what, LIMIT_S, NULL, NULL);
}

static void give(text_stages *s, const void *data, size_t bytes, int to, int tag,
                 const char *what) {
  MPI_Request request;
  GT_MPI(MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, gt_peers_mpi(s->world), &request));
  gt_wait_all(&request, 1, what, LIMIT_S, NULL, NULL);
}

/* Broadcasts rank 0's request; false: the end. */
static bool exchange_order(text_stages *s) {
  gt_peers_share(s->world, 0, s->order, (s->T + 2) * sizeof *s->order, "the next ids from rank 0",
                 LIMIT_S);
  return s->order[0] >= 0;
}

/* Runs this rank's part of a pass.  The last part has the logits, and sends the requested ones to
   rank 0. */
static void run_part(text_stages *s) {
  const int last = (int)s->nparts - 1;
  const gt_micro_batch batch = {.samples = s->order + 1, .n = 1};
  gt_metrics metrics;
  if (!s->part) return;
  if (s->rank > 0)
    receive(s, gt_graph_span_input(s->part, s->span, 0), s->in_bytes, s->rank - 1, TAG_ACTIVATION,
            "an activation of the part before");
  gt_graph_forward(s->part, s->span, 0, &batch, false, &metrics);
  const void *output = gt_graph_span_output(s->part, s->span, 0);
  if (s->rank < last) {
    give(s, output, s->out_bytes, s->rank + 1, TAG_ACTIVATION,
         "the part behind to take an activation");
    return;
  }
  memcpy(s->logits, (const float *)output + (size_t)s->order[0] * s->V, s->V * sizeof(float));
  if (last > 0)
    give(s, s->logits, s->V * sizeof(float), 0, TAG_LOGITS, "rank 0 to take the logits");
}

/* Returns the logits (V) of the id after position `last` of the window (T+1), valid until the next
   call.  On rank 0, while the others serve. */
static const float *stages_logits(text_stages *s, const int32_t *window, size_t last) {
  s->order[0] = (int32_t)last;
  memcpy(s->order + 1, window, (s->T + 1) * sizeof *window);
  exchange_order(s);
  run_part(s);
  if (s->nparts > 1)
    receive(s, s->logits, s->V * sizeof(float), (int)s->nparts - 1, TAG_LOGITS,
            "the logits of the last part");
  return s->logits;
}

/* Serves requests until rank 0 ends it.  On rank 0: ends it. */
static void stages_serve(text_stages *s) {
  if (s->rank > 0) {
    while (exchange_order(s)) run_part(s);
    return;
  }
  s->order[0] = -1;
  exchange_order(s);
}

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
  text_stages *stages;
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
  if (w->stages) return stages_logits(w->stages, w->window, last);
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
  stages_close(w->stages);
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
  status = stages_open(&w->stages, world, status, path, from, &info, &shape);
  gt_ckpt_source_close(from);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  if (status == GT_OK) w->T = w->stages->T;
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
    stages_serve(w.stages);
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

const struct option gt_options_generate[] = {
    {"prompt", required_argument, NULL, 'p'},      {"tokens", required_argument, NULL, 'n'},
    {"temperature", required_argument, NULL, 't'}, {"top", required_argument, NULL, 'k'},
    {"seed", required_argument, NULL, 's'},        {0}};

static gt_status read_request(request *r, int argc, char **argv) {
  *r = (request){.prompt = "", .tokens = TOKENS, .seed = 1, .sampling = {.temperature = 0.8}};
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, "", gt_options_generate, NULL)) != -1;) {
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
