/* Objects in S3, or a store that speaks its protocol. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"
#include "request.h"

#define UNSIGNED "UNSIGNED-PAYLOAD" /* the SHA-256 in the tail protects the body */

typedef struct {
  char *place;
  store_credentials credentials;
  CURL *request;
} handle;

/* The body of one request or answer: `bytes` bytes, then the tail. */
typedef struct {
  handle *h;
  const uint8_t *out; /* NULL: an answer */
  uint8_t *in;
  size_t bytes, room, at;
  _Atomic size_t *moved; /* of an answer */
  uint8_t tail[STORE_TAIL];
  char answer[STORE_REASON_MAX + 1]; /* of an error */
} transfer;

static void *s3_open(const char *place, const char *owner, const char *start,
                     const store_credentials *credentials) {
  (void)owner, (void)start;
  handle *h = GT_NEW(handle);
  *h = (handle){gt_strdup(place), *credentials, curl_easy_init()};
  if (!h->request) gt_bug("libcurl has no memory");
  return h;
}

static void s3_close(void *context) {
  handle *h = context;
  curl_easy_cleanup(h->request);
  gt_free(h->place);
  gt_free(h);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static size_t give(char *to, size_t one, size_t size, void *context) {
  transfer *t = context;
  size_t given = 0;
  size *= one;
  while (given < size && t->at < t->bytes + STORE_TAIL) {
    const bool body = t->at < t->bytes;
    const uint8_t *from = body ? t->out + t->at : t->tail + (t->at - t->bytes);
    size_t n = (body ? t->bytes : t->bytes + STORE_TAIL) - t->at;
    if (n > size - given) n = size - given;
    memcpy(to + given, from, n);
    t->at += n;
    given += n;
  }
  return given;
}

static long code_of(CURL *r) {
  long code = 0;
  curl_easy_getinfo(r, CURLINFO_RESPONSE_CODE, &code);
  return code;
}

/* The last bytes of the answer are the tail: those that have come last are held back. */
static size_t take(char *bytes, size_t one, size_t size, void *context) {
  transfer *t = context;
  size *= one;
  if (code_of(t->h->request) != 200) {
    const size_t at = strlen(t->answer), room = STORE_REASON_MAX - at;
    snprintf(t->answer + at, room + 1, "%.*s", (int)(size < room ? size : room), bytes);
    return size;
  }
  if (!t->in) return size; /* of PUT or DELETE */
  atomic_fetch_add(t->moved, size);
  for (size_t done = 0; done < size;) {
    const size_t n = t->at < t->room ? t->room - t->at : t->room + STORE_TAIL - t->at;
    const size_t some = n < size - done ? n : size - done;
    if (some == 0) return 0; /* larger than any object of this run */
    memcpy(t->at < t->room ? t->in + t->at : t->tail + (t->at - t->room), bytes + done, some);
    t->at += some;
    done += some;
  }
  return size;
}

/* Moves the tail from where it lies behind the body. */
static bool split(transfer *t) {
  uint8_t tail[STORE_TAIL];
  if (t->at < STORE_TAIL) return false;
  t->bytes = t->at - STORE_TAIL;
  for (size_t i = 0; i < STORE_TAIL; i++) {
    const size_t at = t->bytes + i;
    tail[i] = at < t->room ? t->in[at] : t->tail[at - t->room];
  }
  memcpy(t->tail, tail, STORE_TAIL);
  return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

static gt_object_state judge(transfer *t, CURLcode result, char *fault, bool *again) {
  const long code = code_of(t->h->request);
  if (result == CURLE_OK && (code == 200 || code == 204)) return GT_OBJECT_DONE;
  if (result == CURLE_OK && code == 404 && !t->out) return GT_OBJECT_MISSING;
  *again = store_request_passes(result, code);
  if (result == CURLE_WRITE_ERROR) *again = false;
  if (strstr(t->answer, "<Code>RequestTimeout<")) *again = true; /* with code 400 */
  if (store_request_expired(t->answer)) *again = store_credentials_renew(&t->h->credentials);
  const char *reason = store_request_reason(t->answer);
  if (result != CURLE_OK)
    snprintf(fault, 256, "%s",
             result == CURLE_WRITE_ERROR ? "an object is larger than any of this run"
                                         : curl_easy_strerror(result));
  else
    snprintf(fault, 256, "the server answers %ld%s%.150s%s", code, *reason ? " (" : "", reason,
             *reason ? ")" : "");
  return GT_OBJECT_FAILED;
}

/* Makes a request with the connection of the last one. */
static gt_object_state perform(transfer *t, const char *name, const char *method, char *fault,
                               bool *again) {
  handle *h = t->h;
  CURL *r = h->request;
  struct curl_slist *headers = NULL;
  char url[STORE_TEXT_MAX + GT_OBJECT_NAME];
  snprintf(url, sizeof url, "%s/%s", h->place, name);
  curl_easy_reset(r);
  store_request_set(r, url);
  curl_easy_setopt(r, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(r, CURLOPT_WRITEDATA, t);
  if (t->out) {
    curl_easy_setopt(r, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(r, CURLOPT_READFUNCTION, give);
    curl_easy_setopt(r, CURLOPT_READDATA, t);
    curl_easy_setopt(r, CURLOPT_INFILESIZE_LARGE, (curl_off_t)(t->bytes + STORE_TAIL));
    /* without the header Expect, libcurl's signature would be of one that is not sent */
    curl_easy_setopt(r, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
  }
  if (method) curl_easy_setopt(r, CURLOPT_CUSTOMREQUEST, method);
  store_request_sign(r, &headers, &h->credentials, UNSIGNED);
  if (headers) curl_easy_setopt(r, CURLOPT_HTTPHEADER, headers);
  const CURLcode result = curl_easy_perform(r);
  curl_slist_free_all(headers);
  return judge(t, result, fault, again);
}

static gt_object_state s3_put(void *context, const char *name, const void *body, size_t bytes,
                              const uint8_t tail[STORE_TAIL], char *fault, bool *again) {
  transfer t = {.h = context, .out = body, .bytes = bytes};
  memcpy(t.tail, tail, STORE_TAIL);
  gt_failpoint("store.put");
  const gt_object_state state = perform(&t, name, NULL, fault, again);
  gt_failpoint("store.did_put");
  return state;
}

static gt_object_state s3_get(void *context, const char *name, void *body, size_t *bytes,
                              uint8_t tail[STORE_TAIL], _Atomic size_t *moved, char *fault,
                              bool *again) {
  transfer t = {.h = context, .in = body, .room = *bytes, .moved = moved};
  gt_object_state state = perform(&t, name, NULL, fault, again);
  if (state != GT_OBJECT_MISSING) gt_failpoint("store.did_get"); /* as in a folder */
  if (state == GT_OBJECT_DONE && !split(&t)) {
    *again = true;
    snprintf(fault, 256, "an object has %zu bytes; expected at least %zu", t.at, STORE_TAIL);
    state = GT_OBJECT_FAILED;
  }
  *bytes = t.bytes;
  memcpy(tail, t.tail, STORE_TAIL);
  return state;
}

static gt_object_state s3_remove(void *context, const char *name, char *fault, bool *again) {
  transfer t = {.h = context};
  gt_failpoint("store.delete");
  const gt_object_state state = perform(&t, name, "DELETE", fault, again);
  return state == GT_OBJECT_MISSING ? GT_OBJECT_DONE : state;
}

const store_kind store_s3 = {s3_open, s3_close, s3_put, s3_get, s3_remove};
