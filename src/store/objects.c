/* Objects in a store: a queue of requests, and threads that make them. */
#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "objects.h"

#define THREADS     4
#define AGAIN_S     0.1 /* after a failure; doubled up to AGAIN_MAX_S */
#define AGAIN_MAX_S 5.0
#define CLOSE_S     5
#define WARN_S      1.0  /* a request that has failed for so long is reported, */
#define WARN_EVERY  10.0 /* at most once in this time */
#define FOLDER      "file://"

struct gt_objects {
  const store_kind *kind;
  char *place, *shown, *owner; /* shown: the URL as given */
  char start[GT_RUN_ID];
  store_credentials credentials;
  double patience_s;
  pthread_mutex_t lock;
  pthread_cond_t filled, closing;
  gt_object_request *first, *last; /* those that no thread has taken */
  bool stops;
  gt_ns warned;
  pthread_t threads[THREADS];
  size_t nthreads;
};

/* ---- one request ----------------------------------------------------------------------------- */

/* Writes the SHA-256 of body and notes behind the notes. */
static void seal(const void *body, size_t bytes, uint8_t tail[STORE_TAIL]) {
  EVP_MD_CTX *sum = EVP_MD_CTX_new();
  if (!sum || !EVP_DigestInit_ex(sum, EVP_sha256(), NULL) || !EVP_DigestUpdate(sum, body, bytes) ||
      !EVP_DigestUpdate(sum, tail, STORE_NOTES) ||
      !EVP_DigestFinal_ex(sum, tail + STORE_NOTES, NULL))
    gt_bug("OpenSSL cannot calculate a SHA-256");
  EVP_MD_CTX_free(sum);
}

static gt_object_state get(const gt_objects *o, void *handle, gt_object_request *r, bool *again) {
  uint8_t found[STORE_TAIL], needed[STORE_TAIL];
  size_t bytes = r->bytes;
  const gt_object_state state =
      o->kind->get(handle, r->name, r->body, &bytes, found, &r->moved, r->fault, again);
  if (state != GT_OBJECT_DONE) return state;
  memcpy(needed, found, STORE_NOTES);
  seal(r->body, bytes, needed);
  if (memcmp(found, needed, STORE_TAIL) != 0) {
    *again = true; /* half written, as far as this reader sees */
    snprintf(r->fault, sizeof r->fault, "the object has another SHA-256 than it says");
    return GT_OBJECT_FAILED;
  }
  r->bytes = bytes;
  memcpy(r->notes, found, STORE_NOTES);
  return GT_OBJECT_DONE;
}

static gt_object_state attempt(const gt_objects *o, void *handle, gt_object_request *r,
                               bool *again) {
  uint8_t tail[STORE_TAIL];
  if (r->op == GT_OBJECT_GET) return get(o, handle, r, again);
  if (r->op == GT_OBJECT_DELETE) return o->kind->remove(handle, r->name, r->fault, again);
  memcpy(tail, r->notes, STORE_NOTES);
  seal(r->body, r->bytes, tail);
  return o->kind->put(handle, r->name, r->body, r->bytes, tail, r->fault, again);
}

/* Waits before another attempt; false: the store is being closed. */
static bool wait_again(gt_objects *o, double wait_s) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  const int64_t ns = until.tv_nsec + gt_from_seconds(wait_s);
  until.tv_sec += ns / GT_SECOND;
  until.tv_nsec = ns % GT_SECOND;
  pthread_mutex_lock(&o->lock);
  while (!o->stops && pthread_cond_timedwait(&o->closing, &o->lock, &until) == 0) continue;
  const bool goes_on = !o->stops;
  pthread_mutex_unlock(&o->lock);
  return goes_on;
}

/* Says that a request fails, in case that the others notice first, and the run ends. */
static void warn(gt_objects *o, const gt_object_request *r, gt_ns since) {
  const gt_ns now = gt_now();
  if (gt_seconds(now - since) < WARN_S) return;
  pthread_mutex_lock(&o->lock);
  const bool now_and_then = o->warned == 0 || gt_seconds(now - o->warned) > WARN_EVERY;
  if (now_and_then) o->warned = now;
  pthread_mutex_unlock(&o->lock);
  if (now_and_then)
    gt_log(GT_LOG_WARN, "the store fails, and is tried again for %.0f s: %s: %s",
           o->patience_s - gt_seconds(now - since), r->name, r->fault);
}

/* Repeats what can succeed later. */
static void serve(gt_objects *o, void *handle, gt_object_request *r) {
  const gt_ns since = gt_now(), until = since + gt_from_seconds(o->patience_s);
  double wait_s = AGAIN_S;
  for (;;) {
    bool again = false;
    const gt_object_state state = attempt(o, handle, r, &again);
    if (state != GT_OBJECT_FAILED || !again || gt_now() > until || !wait_again(o, wait_s)) {
      atomic_store(&r->state, (int)state);
      return;
    }
    warn(o, r, since);
    wait_s = wait_s * 2 > AGAIN_MAX_S ? AGAIN_MAX_S : wait_s * 2;
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

static gt_object_request *take(gt_objects *o) {
  pthread_mutex_lock(&o->lock);
  while (!o->first && !o->stops) pthread_cond_wait(&o->filled, &o->lock);
  gt_object_request *r = o->first;
  if (r) o->first = r->next;
  if (!o->first) o->last = NULL;
  pthread_mutex_unlock(&o->lock);
  return r;
}

static void *work(void *context) {
  gt_objects *o = context;
  void *handle = o->kind->open(o->place, o->owner, o->start, &o->credentials);
  for (gt_object_request *r; (r = take(o));) serve(o, handle, r);
  o->kind->close(handle);
  return NULL;
}

static gt_status find_place(gt_objects *o, const char *url) {
  store_url u;
  if (strncmp(url, FOLDER "/", strlen(FOLDER) + 1) == 0) {
    o->kind = &store_folder;
    o->place = gt_strdup(url + strlen(FOLDER));
    return GT_OK;
  }
  if (strncmp(url, "s3://", 5) != 0)
    return GT_FAIL(GT_ERR_JOB, "%.200s is no store; expected file:///FOLDER or s3://BUCKET/PREFIX",
                   url);
  o->kind = &store_s3;
  gt_status status = store_url_read(&u, url);
  if (status == GT_OK) o->place = gt_strdup(u.https);
  store_url_close(&u);
  return status == GT_OK ? store_credentials_find(&o->credentials) : status;
}

gt_status gt_objects_open(gt_objects **out, const char *url, const char *owner, double patience_s) {
  gt_objects *o = GT_NEW(gt_objects);
  o->patience_s = patience_s;
  o->shown = gt_strdup(url);
  o->owner = gt_strdup(owner);
  gt_random_id(o->start);
  pthread_mutex_init(&o->lock, NULL);
  pthread_cond_init(&o->filled, NULL);
  pthread_cond_init(&o->closing, NULL);
  const gt_status status = find_place(o, url);
  if (status != GT_OK) {
    gt_objects_close(o);
    return status;
  }
  for (size_t n = strlen(o->place); n > 1 && o->place[n - 1] == '/'; n--) o->place[n - 1] = '\0';
  for (; o->nthreads < THREADS; o->nthreads++)
    if (pthread_create(&o->threads[o->nthreads], NULL, work, o) != 0)
      gt_bug("a thread for the store cannot be started");
  *out = o;
  return GT_OK;
}

void gt_objects_begin(gt_objects *objects, gt_object_request *request) {
  gt_objects *o = objects;
  atomic_store(&request->state, GT_OBJECT_BUSY);
  atomic_store(&request->moved, 0);
  request->fault[0] = '\0';
  request->next = NULL;
  pthread_mutex_lock(&o->lock);
  if (o->last)
    o->last->next = request;
  else
    o->first = request;
  o->last = request;
  pthread_cond_signal(&o->filled);
  pthread_mutex_unlock(&o->lock);
}

gt_object_state gt_objects_state(const gt_object_request *request) {
  return (gt_object_state)atomic_load(&request->state);
}

/* A thread that a dead file system holds is left behind, with what it uses. */
bool gt_objects_close(gt_objects *o) {
  struct timespec until;
  bool all = true;
  if (!o) return true;
  pthread_mutex_lock(&o->lock);
  o->stops = true;
  pthread_cond_broadcast(&o->filled);
  pthread_cond_broadcast(&o->closing);
  pthread_mutex_unlock(&o->lock);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += CLOSE_S;
  for (size_t i = 0; i < o->nthreads; i++)
    all &= pthread_timedjoin_np(o->threads[i], NULL, &until) == 0;
  if (!all) {
    gt_log(GT_LOG_WARN, "%s: a request did not end within %d s", o->shown, CLOSE_S);
    return false;
  }
  pthread_mutex_destroy(&o->lock);
  pthread_cond_destroy(&o->filled);
  pthread_cond_destroy(&o->closing);
  gt_free(o->place);
  gt_free(o->shown);
  gt_free(o->owner);
  gt_free(o);
  return true;
}
