/* Evaluation by all workers of a region: one model, independent of messages that arrive meanwhile;
   the same metrics to the bit for any number and order of workers; and the effect of a stop, a lost
   worker and a late one. */
#include "world_hand.h"
#include "geotrain/ps_of_job.h"

#define NTEST   ((size_t)75) /* 8 chunks, the last of 5 */
#define CHUNK   ((size_t)10)
#define NCHUNKS ((NTEST + CHUNK - 1) / CHUNK)

typedef struct {
  hand h;
  int32_t labels[NTEST];
  const float *models[H_WORKERS][2]; /* the parameters and buffers under evaluation */
  int given[NCHUNKS];                /* how often a chunk was assigned */
  int evals, trained, asked;
  int64_t checkpoint, steps; /* steps: the step count reported with the last evaluation */
  gt_ps_score score;
} fixture;

/* ---- the model: loss, correctness and ranking of a sample ------------------------------------ */

static double loss_of(const float *params, const float *buffers, size_t i) {
  return exp((double)params[i % H_PARAMS]) / (double)(i + 3) + (double)buffers[i % H_BUFFERS];
}

static float score_of(const float *params, size_t i) {
  return (float)((i * 37) % 41) * params[0] + (float)(i % 3) * params[1];
}

static bool right(const float *params, size_t i) {
  return score_of(params, i) > 4;
}

/* Computes the score like a single evaluator, chunk by chunk. */
static gt_ps_score expected(const float *params, const float *buffers, const int32_t *labels) {
  float scores[NTEST];
  uint32_t scratch[NTEST];
  double sum = 0;
  int correct = 0;
  for (size_t first = 0; first < NTEST; first += CHUNK) {
    double chunk = 0;
    for (size_t i = first; i < NTEST && i < first + CHUNK; i++) {
      chunk += loss_of(params, buffers, i);
      correct += right(params, i);
      scores[i] = score_of(params, i);
    }
    sum += chunk;
  }
  return (gt_ps_score){sum / (double)NTEST,
                       correct / (double)NTEST,
                       gt_auc(scores, labels, NTEST, scratch),
                       NAN,
                       NAN,
                       0};
}

static void is_score(const gt_ps_score *found, const gt_ps_score *wanted) {
  assert_memory_equal(found, wanted, sizeof *found);
}

/* ---- host ------------------------------------------------------------------------------------ */

static void on_order(void *ctx, size_t worker, const gt_ps_order *o) {
  fixture *f = ctx;
  if (o->kind == GT_PS_KEEPALIVE) return;
  assert_int_equal(f->h.orders[worker].kind, 0);
  f->h.orders[worker] = *o;
  if (o->kind == GT_PS_TRAIN) {
    f->trained++;
    f->models[worker][0] = f->models[worker][1] = NULL; /* it has other parameters now */
  }
  if (o->kind == GT_PS_EVAL) f->given[(size_t)o->first / CHUNK]++;
  if (o->kind != GT_PS_EVAL || !o->params.data) return;
  f->models[worker][0] = o->params.data;
  f->models[worker][1] = o->buffers.data;
}

static void on_checkpoint(void *ctx, int64_t round) {
  ((fixture *)ctx)->checkpoint = round;
}

static void on_whole(void *ctx, int64_t round) {
  (void)ctx, (void)round;
}

static void on_note(void *ctx, gt_ps_note note, double a, double b) {
  fixture *f = ctx;
  gt_ps_view v;
  (void)b;
  if (note != GT_NOTE_EVAL) return;
  gt_ps_get_view(f->h.ps, 1, &v);
  f->evals++;
  f->steps = (int64_t)a;
  f->score = v.last_eval;
}

static void on_done(void *ctx, const gt_ps_score *score) {
  ((fixture *)ctx)->score = *score;
  ((fixture *)ctx)->asked++;
}

/* predictions: per sample of a text; 0: labelled samples. */
static void create_for(fixture *f, const char *strategy, size_t workers, bool async,
                       gt_ps_interval eval_every, size_t predictions) {
  static const float params[H_PARAMS] = {0.5f, -0.25f, 1.5f}, buffers[H_BUFFERS] = {0.01f, 0.02f};
  *f = (fixture){.evals = 0};
  gt_ps_spec spec = h_spec(&f->h, strategy, 2, workers);
  memcpy(f->h.params, params, sizeof params);
  memcpy(f->h.buffers, buffers, sizeof buffers);
  for (size_t i = 0; i < NTEST; i++) f->labels[i] = (int32_t)((i * 13 / 5) % 2);
  spec.local_async = async;
  spec.eval_every = eval_every;
  spec.test_samples = NTEST;
  spec.ranking = gt_ranking_of("", 2);
  spec.test_labels = f->labels;
  spec.predictions = predictions;
  spec.eval_chunk = CHUNK;
  spec.host.order = on_order;
  spec.host.checkpoint = on_checkpoint;
  spec.host.whole = on_whole;
  spec.host.note = on_note;
  h_open(&f->h, &spec);
}

static void create(fixture *f, const char *strategy, size_t workers, bool async,
                   int64_t eval_every) {
  create_for(f, strategy, workers, async, (gt_ps_interval){.steps = eval_every}, 0);
}

static void begin(fixture *f, const char *strategy, size_t workers, bool async,
                  int64_t eval_every) {
  create(f, strategy, workers, async, eval_every);
  h_start(&f->h);
}

/* ---- workers --------------------------------------------------------------------------------- */

static void train(fixture *f, size_t worker) {
  h_push(&f->h, worker, 4, 0.001f * (float)(worker + 1), 0.03f + 0.001f * (float)worker);
}

/* Answers an evaluation; the worker reads the model now, not at the order. */
static void answer(fixture *f, size_t worker) {
  const gt_ps_order o = f->h.orders[worker];
  const float *params = f->models[worker][0], *buffers = f->models[worker][1];
  float scores[CHUNK];
  gt_ps_push p = {.samples = o.count, .scores = scores};
  assert_int_equal(o.kind, GT_PS_EVAL);
  assert_non_null(params);
  for (int64_t i = 0; i < o.count; i++) {
    size_t sample = (size_t)(o.first + i);
    p.loss_sum += loss_of(params, buffers, sample);
    p.correct += right(params, sample);
    scores[i] = score_of(params, sample);
  }
  f->h.orders[worker].kind = 0;
  gt_ps_evaluated(f->h.ps, worker, &p, 1);
}

/* Workers answer in an order given by `seed`, until none evaluates. */
static void answer_all(fixture *f, size_t workers, uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, workers, 0);
  for (;;) {
    size_t busy[H_WORKERS], n = 0;
    for (size_t w = 0; w < workers; w++)
      if (f->h.orders[w].kind == GT_PS_EVAL) busy[n++] = w;
    if (n == 0) return;
    answer(f, busy[gt_rng_below(&rng, n)]);
  }
}

static void every_chunk_once(const fixture *f) {
  for (size_t c = 0; c < NCHUNKS; c++) assert_int_equal(f->given[c], 1);
}

static void an_update_comes(fixture *f, int64_t sequence) {
  const float update[H_PARAMS] = {1, 2, 3};
  gt_frame_header head = {.kind = GT_MSG_UPDATE,
                          .from = 1,
                          .sequence = (uint64_t)sequence,
                          .message_bytes = sizeof update};
  gt_ps_message(f->h.ps, 1, &head, update, 1);
}

/* ---- laws ------------------------------------------------------------------------------------ */

static void the_same_bits_however_many_score(void) {
  for (size_t workers = 1; workers <= H_WORKERS; workers++)
    for (uint64_t seed = 0; seed < 20; seed++) {
      fixture f;
      create(&f, "none", workers, false, 0);
      gt_ps_score wanted = expected(f.h.params, f.h.buffers, f.labels);
      gt_ps_evaluate(f.h.ps, gt_vec_of(f.h.params, H_PARAMS), gt_vec_of(f.h.buffers, H_BUFFERS),
                     on_done, &f, 0);
      for (size_t w = 0; w < workers; w++) { /* late workers join */
        gt_ps_ready(f.h.ps, w, 0);
        assert_int_equal(f.h.orders[w].kind, GT_PS_EVAL);
      }
      f.h.params[0] = 100; /* the model was lent only for the call */
      answer_all(&f, workers, seed);
      assert_int_equal(f.asked, 1);
      every_chunk_once(&f);
      is_score(&f.score, &wanted);
      assert_true(f.score.auc > 0.2 && f.score.auc < 0.8 && f.score.accuracy > 0.2 &&
                  f.score.accuracy < 0.8);
      h_close(&f.h);
    }
}

/* With intervals in epochs and samples, too, an evaluation follows immediately the step that makes
   it due, including the first one; an epoch has 4 batches here. */
static void each_is_made_after_its_step(void) {
  const gt_ps_interval every[] = {{.epochs = 0.25}, {.epochs = 0.5}, {.samples = 4}, {.steps = 1}};
  const int steps[] = {1, 2, 1, 1};
  for (int k = 0; k < 8; k++) {
    fixture f;
    create_for(&f, "none", 1, k % 2, every[k / 2], 0);
    h_start(&f.h);
    for (int step = 1; step <= 10; step++) {
      train(&f, 0);
      answer_all(&f, 1, 1);
      assert_int_equal(f.evals, step / steps[k / 2]);
      assert_int_equal(f.steps, step / steps[k / 2] * steps[k / 2]);
    }
    h_close(&f.h);
  }
}

/* A sample of a text is right or wrong in each of its predictions. */
static void texts_have_many_predictions(void) {
  fixture f;
  create_for(&f, "none", 2, false, (gt_ps_interval){0}, 4);
  gt_ps_score wanted = expected(f.h.params, f.h.buffers, f.labels);
  gt_ps_evaluate(f.h.ps, gt_vec_of(f.h.params, H_PARAMS), gt_vec_of(f.h.buffers, H_BUFFERS),
                 on_done, &f, 0);
  for (size_t w = 0; w < 2; w++) gt_ps_ready(f.h.ps, w, 0);
  answer_all(&f, 2, 1);
  assert_true(f.score.loss == wanted.loss);
  assert_true(f.score.accuracy == wanted.accuracy / 4);
  assert_true(f.score.perplexity == exp(wanted.loss));
  h_close(&f.h);
}

/* Between two steps all evaluate, and then all train. */
static void in_step_all_evaluate_then_all_train(void) {
  for (size_t workers = 1; workers <= H_WORKERS; workers++) {
    fixture f;
    begin(&f, "none", workers, false, 2);
    for (int step = 0; step < 2; step++)
      for (size_t w = 0; w < workers; w++) train(&f, w);
    gt_ps_score wanted = expected(f.h.params, f.h.buffers, f.labels);
    int trained = f.trained;
    for (size_t w = 0; w < workers; w++) assert_int_equal(f.h.orders[w].kind, GT_PS_EVAL);
    for (size_t c = 0; c < NCHUNKS; c++) {
      assert_int_equal(f.trained, trained);
      answer(&f, c % workers);
    }
    assert_int_equal(f.trained, trained + (int)workers);
    for (size_t w = 0; w < workers; w++)
      assert_true(f.h.orders[w].kind == GT_PS_TRAIN && f.h.orders[w].step == 3);
    assert_int_equal(f.evals, 1);
    assert_int_equal(f.steps, 2);
    every_chunk_once(&f);
    is_score(&f.score, &wanted);
    h_close(&f.h);
  }
}

static void messages_do_not_change_what_is_scored(void) {
  for (int async = 0; async < 2; async++)
    for (size_t workers = 1; workers <= 3; workers++) {
      fixture f;
      begin(&f, "asgd", workers, async, 1);
      for (size_t w = 0; w < (async ? 1 : workers); w++) train(&f, w);
      gt_ps_score wanted = expected(f.h.params, f.h.buffers, f.labels);
      float before[H_PARAMS];
      memcpy(before, f.h.params, sizeof before);
      for (int64_t k = 1; f.evals == 0; k++) {
        an_update_comes(&f, k);
        for (size_t w = 0; w < workers && f.evals == 0; w++)
          if (f.h.orders[w].kind == GT_PS_EVAL) answer(&f, w);
      }
      for (size_t i = 0; i < H_PARAMS; i++) assert_true(f.h.params[i] != before[i]);
      is_score(&f.score, &wanted);
      h_close(&f.h);
    }
}

/* A training worker continues, joins when it returns, and leaves when all chunks are assigned; its
   pushes meanwhile change only the live model. */
static void async_workers_join_when_they_are_free(void) {
  fixture f;
  begin(&f, "none", 3, true, 2);
  train(&f, 1);
  assert_int_equal(f.h.orders[1].kind, GT_PS_TRAIN);
  train(&f, 1);
  gt_ps_score wanted = expected(f.h.params, f.h.buffers, f.labels);
  assert_true(f.h.orders[0].kind == GT_PS_TRAIN && f.h.orders[1].kind == GT_PS_EVAL &&
              f.h.orders[2].kind == GT_PS_TRAIN);
  answer(&f, 1);
  train(&f, 0);
  assert_true(f.h.orders[0].kind == GT_PS_EVAL && f.h.orders[0].params.data == f.h.snapshot);
  answer(&f, 0);
  assert_true(f.h.orders[0].kind == GT_PS_EVAL &&
              !f.h.orders[0].params.data); /* it has the model */
  for (int chunk = 0; chunk < 4; chunk++) answer(&f, 1);
  assert_int_equal(f.h.orders[1].kind, GT_PS_EVAL);
  train(&f, 2);
  assert_int_equal(f.h.orders[2].kind, GT_PS_TRAIN); /* all chunks are out */
  train(&f, 2);
  assert_int_equal(f.evals, 0);
  answer(&f, 1);
  assert_int_equal(f.h.orders[1].kind, GT_PS_TRAIN);
  every_chunk_once(&f);
  answer(&f, 0);
  assert_int_equal(f.evals, 1);
  assert_int_equal(f.steps, 2); /* and not the 5 that are made by now */
  is_score(&f.score, &wanted);
  h_close(&f.h);
}

/* ---- stops and losses ------------------------------------------------------------------------ */

static void a_stop_ends_it_and_a_resume_makes_it(void) {
  for (int k = 0; k < 4; k++) {
    fixture f;
    gt_ps_view v;
    bool async = k % 2, late = k / 2; /* late: nothing is left to assign */
    begin(&f, "none", 2, async, 1);
    for (size_t w = 0; w < (async ? 1 : 2); w++) train(&f, w);
    if (async) train(&f, 1);
    assert_true(f.h.orders[0].kind == GT_PS_EVAL && f.h.orders[1].kind == GT_PS_EVAL);
    for (size_t c = 0; c < (late ? NCHUNKS - 2 : 1); c++) answer(&f, 1);
    gt_ps_stop(f.h.ps, GT_STOPPED, 1);
    assert_int_equal(f.checkpoint, 1);
    gt_state saved = {0};
    gt_ps_save(f.h.ps, &saved);
    for (size_t w = 0; w < 2; w++) {
      answer(&f, w);
      assert_int_equal(f.h.orders[w].kind, 0); /* nothing more: it waits for the end */
      gt_ns since;
      int64_t batch;
      assert_false(gt_ps_computing(f.h.ps, w, &since, &batch));
    }
    gt_ps_written(f.h.ps, 1, 1);
    gt_frame_header written = {.kind = GT_MSG_WRITTEN, .from = 1, .round = 1, .value = 1};
    gt_ps_message(f.h.ps, 1, &written, NULL, 1);
    gt_ps_get_view(f.h.ps, 1, &v);
    assert_true(v.phase == GT_PS_STOPPED && v.stop_code == GT_STOPPED && f.evals == 0 &&
                isnan(v.last_eval.loss));

    fixture again;
    create(&again, "none", 2, async, 1);
    must(gt_ps_load(again.h.ps, 0, &saved));
    memcpy(again.h.params, f.h.params, sizeof f.h.params);
    memcpy(again.h.buffers, f.h.buffers, sizeof f.h.buffers);
    gt_state_close(&saved);
    gt_ps_score wanted = expected(again.h.params, again.h.buffers, again.labels);
    h_start(&again.h);
    answer_all(&again, 2, 7);
    assert_int_equal(again.evals, 1);
    is_score(&again.score, &wanted);
    h_close(&again.h);
    h_close(&f.h);
  }
}

/* The others do the rest; the lost worker is named in a view, and without its chunk there is no
   score. */
static void a_lost_worker_is_seen(void) {
  fixture f;
  gt_ns since;
  int64_t batch;
  begin(&f, "none", 3, false, 1);
  for (size_t w = 0; w < 3; w++) train(&f, w);
  for (size_t c = 0; c < NCHUNKS - 1; c++) answer(&f, 2 * (c % 2));
  assert_int_equal(f.evals, 0);
  assert_true(f.h.orders[0].kind == 0 && f.h.orders[2].kind == 0);
  assert_false(gt_ps_computing(f.h.ps, 0, &since, &batch) ||
               gt_ps_computing(f.h.ps, 2, &since, &batch));
  assert_true(gt_ps_computing(f.h.ps, 1, &since, &batch));
  assert_true(since == 1 && batch == -1);
  h_close(&f.h);
}

static void nothing_is_allocated(void) {
  for (int async = 0; async < 2; async++) {
    fixture f;
    begin(&f, "none", 2, async, 1);
    int64_t total = gt_alloc_total();
    while (f.evals < 3)
      for (size_t w = 0; w < 2; w++) {
        if (f.h.orders[w].kind == GT_PS_TRAIN) train(&f, w);
        if (f.h.orders[w].kind == GT_PS_EVAL) answer(&f, w);
      }
    assert_int_equal(gt_alloc_total(), total);
    h_close(&f.h);
  }
}

/* The total of several test sets equals that of one set of all samples; the AUC is the mean of the
   known ones. */
static void test_sets_together(void) {
  const gt_ps_score scores[] = {
      {.loss = 1, .accuracy = 0.5, .auc = 0.9, .recall20 = NAN, .mrr20 = NAN},
      {.loss = NAN, .accuracy = NAN, .auc = NAN}, /* it does not score */
      {.loss = 3, .accuracy = 0.25, .auc = NAN, .recall20 = NAN, .mrr20 = NAN},
      {.loss = 2, .accuracy = 1, .auc = 0.6, .recall20 = NAN, .mrr20 = NAN}};
  const gt_ps_tests tests[] = {{40, true, 0}, {70, false, 0}, {120, true, 2}, {20, true, 3}};
  gt_ps_score all = gt_ps_scores_total(scores, tests, 4);
  assert_true(fabs(all.loss - (40 * 1.0 + 120 * 3 + 20 * 2) / 180) < 1e-15);
  assert_true(fabs(all.accuracy - (20.0 + 30 + 20) / 180) < 1e-15);
  assert_true(fabs(all.auc - (40 * 0.9 + 20 * 0.6) / 60) < 1e-15);
  assert_true(isnan(all.recall20) && isnan(all.mrr20) && all.perplexity == 0);
  const gt_ps_score texts[] = {{.loss = 1, .perplexity = exp(1)},
                               {.loss = 2, .perplexity = exp(2)}},
                    sessions[] = {{.auc = NAN, .recall20 = 0.5, .mrr20 = 0.25},
                                  {.auc = NAN, .recall20 = 1, .mrr20 = 0.75}};
  const gt_ps_tests two[] = {{30, true, 0}, {10, true, 1}};
  assert_true(fabs(gt_ps_scores_total(texts, two, 2).perplexity - exp(1.25)) < 1e-14);
  all = gt_ps_scores_total(sessions, two, 2);
  assert_true(isnan(all.auc) && all.recall20 == 0.625 && all.mrr20 == 0.375);
}

static void one_test_set_has_its_score(void) {
  const gt_ps_score scores[] = {{0}, {1.0 / 3, 0.1, 0.7, 0.3, 1.0 / 7, 0}};
  const gt_ps_tests second[] = {{0, false, 0}, {49, true, 1}}, none[2] = {{0}};
  const gt_ps_score all = gt_ps_scores_total(scores, second, 2),
                    nothing = gt_ps_scores_total(scores, none, 2);
  assert_memory_equal(&all, &scores[1], sizeof all);
  assert_true(isnan(nothing.loss) && isnan(nothing.accuracy) && nothing.perplexity == 0);
}

TESTS(the_same_bits_however_many_score, each_is_made_after_its_step, texts_have_many_predictions,
      in_step_all_evaluate_then_all_train, messages_do_not_change_what_is_scored,
      async_workers_join_when_they_are_free, a_stop_ends_it_and_a_resume_makes_it,
      a_lost_worker_is_seen, nothing_is_allocated, test_sets_together, one_test_set_has_its_score)
