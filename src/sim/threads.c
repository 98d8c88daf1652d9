/* Threads that do tasks during the simulation, each its own in the order in which they were
   begun. */
#include <pthread.h>

#include "internal.h"

typedef struct {
  pthread_t id;
  sim_task *first, *last; /* begun, and not done */
  sim_threads *of;
} helper;

struct sim_threads {
  pthread_mutex_t lock; /* protects the lists, `closing` and the tasks' `pending` */
  pthread_cond_t changed;
  bool closing;
  size_t n;
  helper *helpers;
};

static void *work(void *context) {
  helper *h = context;
  sim_threads *t = h->of;
  pthread_mutex_lock(&t->lock);
  for (;;) {
    while (!h->first && !t->closing) pthread_cond_wait(&t->changed, &t->lock);
    sim_task *task = h->first;
    if (!task) break;
    pthread_mutex_unlock(&t->lock);
    task->run(task->of);
    pthread_mutex_lock(&t->lock);
    h->first = task->next;
    task->pending = false;
    pthread_cond_broadcast(&t->changed);
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

sim_threads *gt_sim_threads_open(size_t n) {
  sim_threads *t = GT_NEW(sim_threads);
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->changed, NULL);
  t->helpers = GT_NEW_ARRAY(helper, n);
  for (; t->n < n; t->n++) {
    t->helpers[t->n].of = t;
    if (pthread_create(&t->helpers[t->n].id, NULL, work, &t->helpers[t->n]) != 0) break;
  }
  if (t->n < n) gt_log(GT_LOG_WARN, "only %zu threads could be started; expected %zu", t->n, n);
  return t;
}

void gt_sim_threads_close(sim_threads *t) {
  if (!t) return;
  pthread_mutex_lock(&t->lock);
  t->closing = true;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
  for (size_t i = 0; i < t->n; i++) pthread_join(t->helpers[i].id, NULL);
  pthread_mutex_destroy(&t->lock);
  pthread_cond_destroy(&t->changed);
  gt_free(t->helpers);
  gt_free(t);
}

void gt_sim_task_begin(sim_threads *t, size_t number, sim_task *task) {
  if (t->n == 0) {
    task->run(task->of);
    return;
  }
  helper *h = &t->helpers[number % t->n];
  task->next = NULL;
  pthread_mutex_lock(&t->lock);
  task->pending = true;
  if (h->first)
    h->last->next = task;
  else
    h->first = task;
  h->last = task;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
}

void gt_sim_task_wait(sim_threads *t, const sim_task *task) {
  pthread_mutex_lock(&t->lock);
  while (task->pending) pthread_cond_wait(&t->changed, &t->lock);
  pthread_mutex_unlock(&t->lock);
}
