/* Evaluation by threads.  Each thread has a graph and takes batches by number.  The results of a
   test set are stored by batch number and added in that order. */
#include "evaluate.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- batches by threads ---------------------------------------------------------------------- */

typedef struct {
  const gt_cli_batches *all;
  _Atomic size_t next;
  pthread_mutex_t lock; /* protects all fields below, and calls of all->make */
  gt_status status;
  char text[GT_ERROR_TEXT_MAX]; /* the error text of the thread that failed, because error texts are
                                   per thread */
} work;

static void *compute(void *context) {
  work *w = context;
  gt_graph *graph = NULL;
  pthread_mutex_lock(&w->lock);
  gt_status status = w->all->make(w->all->ctx, &graph);
  if (status != GT_OK && w->status == GT_OK) {
    w->status = status;
    snprintf(w->text, sizeof w->text, "%s", gt_error_text());
  }
  pthread_mutex_unlock(&w->lock);
  if (status != GT_OK) return NULL;
  for (size_t b; (b = atomic_fetch_add(&w->next, 1)) < w->all->n;)
    w->all->batch(w->all->of, graph, b);
  gt_graph_close(graph);
  return NULL;
}

/* The caller is one of the threads.  If another thread cannot be created, the existing ones do its
   work. */
gt_status gt_cli_compute(const gt_cli_batches *all) {
  work w = {.all = all, .lock = PTHREAD_MUTEX_INITIALIZER};
  size_t more = all->threads - 1, started = 0;
  pthread_t *threads = GT_NEW_ARRAY(pthread_t, more + 1);
  while (started < more && pthread_create(&threads[started], NULL, compute, &w) == 0) started++;
  if (started < more)
    gt_log(GT_LOG_WARN, "only %zu threads could be started; expected %zu", started + 1, more + 1);
  compute(&w);
  for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
  gt_free(threads);
  return w.status == GT_OK ? GT_OK : GT_FAIL(w.status, "%s", w.text);
}

/* ---- a test set ------------------------------------------------------------------------------ */

typedef struct {
  const gt_cli_evaluation *e;
  size_t samples, batches;
  gt_metrics *found; /* of every batch */
  float *scores;     /* of every sample, or NULL */
} scoring;

/* The first of the largest logits; a model of two classes can have one, that of the second. */
static int32_t class_of(const float *logits, size_t outputs) {
  size_t best = 0;
  if (outputs == 1) return logits[0] > 0;
  for (size_t k = 1; k < outputs; k++)
    if (logits[k] > logits[best]) best = k;
  return (int32_t)best;
}

static void score_batch(void *context, gt_graph *graph, size_t b) {
  const scoring *w = context;
  const gt_sample_shape *s = &w->e->shape;
  const size_t first = b * w->e->batch, left = w->samples - first,
               n = left < w->e->batch ? left : w->e->batch;
  float *x = GT_NEW_ARRAY(float, n * s->h * s->w * s->c);
  int32_t *y = GT_NEW_ARRAY(int32_t, n);
  gt_loader_range(w->e->test, first, n, x, y);
  gt_graph_step(graph, x, y, n, false, &w->found[b]);
  if (w->scores) w->e->ranking->take(graph, y, n, w->scores + first);
  const size_t outputs = gt_graph_outputs(graph);
  for (size_t i = 0; w->e->predicted && i < n; i++)
    w->e->predicted[first + i] = class_of(gt_graph_scores(graph) + i * outputs, outputs);
  gt_free(y);
  gt_free(x);
}

static void sum_up(const scoring *w, gt_cli_score *out) {
  *out = (gt_cli_score){.ranks = gt_ranks_none()};
  for (size_t b = 0; b < w->batches; b++) {
    out->sum.loss_sum += w->found[b].loss_sum;
    out->sum.correct += w->found[b].correct;
    out->sum.samples += w->found[b].samples;
  }
  if (!w->scores) return;
  uint32_t *scratch = GT_NEW_ARRAY(uint32_t, w->samples);
  out->ranks = w->e->ranking->judge(w->scores, w->e->labels, w->samples, scratch);
  gt_free(scratch);
}

gt_status gt_cli_evaluate(gt_cli_score *out, const gt_cli_evaluation *e) {
  const size_t samples = gt_loader_samples(e->test), batches = (samples + e->batch - 1) / e->batch;
  scoring w = {.e = e,
               .samples = samples,
               .batches = batches,
               .found = GT_NEW_ARRAY(gt_metrics, batches + 1)};
  const gt_cli_batches all = {.make = e->make,
                              .ctx = e->ctx,
                              .batch = score_batch,
                              .of = &w,
                              .n = batches,
                              .threads = e->threads};
  if (e->ranking) w.scores = GT_NEW_ARRAY(float, samples);
  const gt_status status = gt_cli_compute(&all);
  if (status == GT_OK) sum_up(&w, out);
  gt_free(w.scores);
  gt_free(w.found);
  return status;
}

/* ---- number of threads ----------------------------------------------------------------------- */

static size_t cores(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0
             ? (size_t)CPU_COUNT(&set)
             : 1;
}

size_t gt_cli_threads(size_t asked, size_t batches, const char **why) {
  size_t n = cores();
  const char *said = getenv("OMP_NUM_THREADS");
  long most = said ? strtol(said, NULL, 10) : 0; /* "4,2": use the outermost level */
  *why = "--threads";
  if (asked > 0) return asked;
  *why = "one per core available to this process";
  if (most > 0 && (size_t)most < n) {
    n = (size_t)most;
    *why = "OMP_NUM_THREADS allows no more";
  }
  if (batches < n) {
    n = batches > 0 ? batches : 1;
    *why = "no more batches at a time";
  }
  return n;
}

size_t gt_cli_threads_choose(size_t asked, size_t batches) {
  const char *why;
  const size_t threads = gt_cli_threads(asked, batches, &why);
  gt_log(GT_LOG_INFO, "%zu thread%s: %s", threads, threads == 1 ? "" : "s", why);
  unsetenv("OMP_NUM_THREADS");
  unsetenv("OPENBLAS_NUM_THREADS");
  unsetenv("GOTO_NUM_THREADS");
  return threads;
}

gt_status gt_cli_threads_read(size_t *threads, const char *command, const char *text) {
  char *end;
  const long n = strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || n < 1 || n > GT_CLI_THREADS_MOST)
    return GT_FAIL(GT_ERR_JOB, "%s: --threads is '%s'; expected a number from 1 to %d", command,
                   text, GT_CLI_THREADS_MOST);
  *threads = (size_t)n;
  return GT_OK;
}
