/* The download of a URL to its copy here: a partial file that grows, also over several starts, and
   is renamed when it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "internal.h"
#include "request.h"

#define AGAIN_S     1.0 /* after a failure; doubled up to AGAIN_MAX_S */
#define AGAIN_MAX_S 30.0
#define WATCH_S     0.2 /* how often the other process's copy is looked for */
/* of a request without a body */
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct gt_fetch {
  store_url url;
  store_credentials credentials;
  char *copy, *part, *tag_path; /* tag: of the version that the partial file is of */
  int lock, file;               /* -1: not open */
  bool again, locked;
  double patience_s, again_s;
  gt_ns heard, next; /* when bytes last arrived; when to ask again */
  CURLM *multi;
  CURL *request; /* NULL: none is in progress */
  struct curl_slist *headers;
  char tag[256], new_tag[256];       /* "": none */
  int64_t have, whole, from;         /* from: where the request begins */
  int64_t offered;                   /* where the answer begins */
  bool taken;                        /* the answer's first bytes have been handled */
  ino_t wrong;                       /* the copy that has another SHA-256 */
  char reason[STORE_REASON_MAX + 1]; /* what the server says if it refuses */
  int fault;                         /* errno of a write */
};

/* ---- files ----------------------------------------------------------------------------------- */

static gt_status not_written(const char *path, int error) {
  return GT_FAIL(GT_ERR_DATA, "%s: cannot be written: %s", path, strerror(error));
}

static char *with_end(const char *path, const char *end) {
  const size_t size = strlen(path) + strlen(end) + 1;
  char *out = gt_alloc(size, 1);
  snprintf(out, size, "%s%s", path, end);
  return out;
}

static void read_tag(gt_fetch *f) {
  FILE *file = fopen(f->tag_path, "r");
  if (!file) return;
  if (!fgets(f->tag, sizeof f->tag, file)) f->tag[0] = '\0';
  fclose(file);
}

static bool write_tag(const gt_fetch *f) {
  FILE *file = fopen(f->tag_path, "w");
  if (!file) return false;
  const bool good = fputs(f->tag, file) >= 0;
  return fclose(file) == 0 && good;
}

gt_status gt_store_hash(const char *path, char sha256[GT_SHA256_HEX]) {
  enum { PIECE = 1 << 20 };
  FILE *file = fopen(path, "rb");
  if (!file) return GT_FAIL(GT_ERR_DATA, "%s: cannot be read: %s", path, strerror(errno));
  gt_sha256 *hash = gt_sha256_begin();
  uint8_t *piece = gt_alloc(PIECE, 1);
  for (size_t n; (n = fread(piece, 1, PIECE, file)) > 0;) gt_sha256_add(hash, piece, n);
  const bool failed = ferror(file) != 0;
  gt_sha256_end(hash, sha256);
  gt_free(piece);
  fclose(file);
  return failed ? GT_FAIL(GT_ERR_DATA, "%s: cannot be read to its end", path) : GT_OK;
}

/* Compares the SHA-256 of a file with the URL's. */
static gt_status check_hash(const gt_fetch *f, const char *path) {
  char hex[GT_SHA256_HEX];
  if (!f->url.sha256[0]) return GT_OK;
  GT_TRY(gt_store_hash(path, hex));
  if (strcmp(hex, f->url.sha256) == 0) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: the SHA-256 is %s; expected %s", f->url.shown, hex,
                 f->url.sha256);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Copies the value of a header line to `to`; false: it is another header. */
static bool header_value(const char *line, size_t size, const char *name, char *to, size_t most) {
  const size_t n = strlen(name);
  if (size <= n || strncasecmp(line, name, n) != 0) return false;
  const char *end = line + size;
  line += n;
  while (line < end && *line == ' ') line++;
  while (end > line && strchr("\r\n ", end[-1])) end--;
  if ((size_t)(end - line) < most) snprintf(to, most, "%.*s", (int)(end - line), line);
  return true;
}

static size_t on_header(char *line, size_t one, size_t size, void *context) {
  gt_fetch *f = context;
  char value[256] = "";
  size *= one;
  if (size > 5 && memcmp(line, "HTTP/", 5) == 0) { /* of another answer */
    f->new_tag[0] = '\0';
    f->offered = 0;
  }
  if (header_value(line, size, "Content-Range: bytes ", value, sizeof value))
    f->offered = strtoll(value, NULL, 10);
  /* a weak tag names no bytes */
  if (header_value(line, size, "ETag:", value, sizeof value) && value[0] == '"')
    memcpy(f->new_tag, value, sizeof value);
  if (header_value(line, size, "Last-Modified:", value, sizeof value) && !f->new_tag[0])
    memcpy(f->new_tag, value, sizeof value);
  return size;
}

static long code_of(const gt_fetch *f) {
  long code = 0;
  curl_easy_getinfo(f->request, CURLINFO_RESPONSE_CODE, &code);
  return code;
}

static bool has_room(gt_fetch *f, curl_off_t coming) {
  struct statvfs disk;
  if (coming <= 0 || fstatvfs(f->file, &disk) != 0) return true;
  if ((double)coming <= (double)disk.f_bavail * (double)disk.f_frsize) return true;
  f->fault = ENOSPC;
  return false;
}

/* True if the answer is not the rest of the partial file: another part, or one of another version,
   from a server that ignores If-Range. */
static bool is_other_part(const gt_fetch *f) {
  if (f->offered == 0) return false; /* the whole file */
  return code_of(f) != 206 || f->offered != f->from ||
         (f->new_tag[0] && strcmp(f->new_tag, f->tag) != 0);
}

/* Begins with the answer's first bytes: the rest of the partial file, or the whole file. */
static bool take_first(gt_fetch *f) {
  curl_off_t coming = 0;
  curl_easy_getinfo(f->request, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &coming);
  f->taken = true;
  if (is_other_part(f)) return false;
  if (f->offered == 0) {
    f->have = 0;
    memcpy(f->tag, f->new_tag, sizeof f->tag);
    if (ftruncate(f->file, 0) != 0 || !write_tag(f)) {
      f->fault = errno;
      return false;
    }
  }
  f->whole = coming > 0 ? f->have + coming : 0;
  return has_room(f, coming);
}

static void keep_reason(gt_fetch *f, const char *bytes, size_t size) {
  const size_t at = strlen(f->reason), room = STORE_REASON_MAX - at;
  snprintf(f->reason + at, room + 1, "%.*s", (int)(size < room ? size : room), bytes);
}

static size_t on_bytes(char *bytes, size_t one, size_t size, void *context) {
  gt_fetch *f = context;
  const long code = code_of(f);
  size *= one;
  if (code != 200 && code != 206) {
    keep_reason(f, bytes, size);
    return size;
  }
  f->heard = gt_now();
  if (!f->taken && !take_first(f)) return 0;
  for (size_t done = 0; done < size;) {
    const ssize_t n = pwrite(f->file, bytes + done, size - done, f->have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      f->fault = errno;
      return 0;
    }
    done += (size_t)n;
    f->have += n;
  }
  return size;
}

/* ---- the request ----------------------------------------------------------------------------- */

/* The rest of the partial file is valid only if the server still has the same version. */
static void ask_for_rest(gt_fetch *f) {
  char text[300];
  if (f->have == 0 || !f->tag[0]) return;
  snprintf(text, sizeof text, "%lld-", (long long)f->have);
  curl_easy_setopt(f->request, CURLOPT_RANGE, text);
  snprintf(text, sizeof text, "If-Range: %s", f->tag);
  f->headers = curl_slist_append(f->headers, text);
}

static void begin(gt_fetch *f) {
  CURL *r = f->request = curl_easy_init();
  if (!r) gt_bug("libcurl has no memory for a request");
  f->taken = false;
  f->offered = 0;
  f->reason[0] = '\0';
  f->new_tag[0] = '\0';
  store_request_set(r, f->url.https);
  curl_easy_setopt(r, CURLOPT_FOLLOWLOCATION, f->url.s3 ? 0L : 1L); /* the token stays there */
  curl_easy_setopt(r, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(r, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(r, CURLOPT_HEADERDATA, f);
  curl_easy_setopt(r, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(r, CURLOPT_WRITEDATA, f);
  ask_for_rest(f);
  if (f->url.s3) store_request_sign(r, &f->headers, &f->credentials, EMPTY_SHA256);
  if (f->headers) curl_easy_setopt(r, CURLOPT_HTTPHEADER, f->headers);
  curl_multi_add_handle(f->multi, r);
}

static void end(gt_fetch *f) {
  if (!f->request) return;
  curl_multi_remove_handle(f->multi, f->request);
  curl_easy_cleanup(f->request);
  curl_slist_free_all(f->headers);
  f->request = NULL;
  f->headers = NULL;
}

/* ---- the end of a request -------------------------------------------------------------------- */

static void drop_part(gt_fetch *f) {
  f->have = 0;
  f->tag[0] = '\0';
  if (ftruncate(f->file, 0) != 0) f->fault = errno;
}

static gt_status finish(gt_fetch *f, bool *done) {
  const gt_status status = check_hash(f, f->part);
  if (status != GT_OK) {
    drop_part(f);
    return status;
  }
  if (fsync(f->file) != 0 || rename(f->part, f->copy) != 0) return not_written(f->copy, errno);
  (void)unlink(f->tag_path);
  GT_TRY(gt_name_sync(f->copy) ? GT_OK : not_written(f->copy, errno));
  *done = true;
  return GT_OK;
}

static gt_status refused(gt_fetch *f, long code) {
  const char *reason = store_request_reason(f->reason);
  return GT_FAIL(GT_ERR_DATA, "%s: the server answers %ld%s%.200s%s; expected the file%s",
                 f->url.shown, code, *reason ? " (" : "", reason, *reason ? ")" : "",
                 f->url.s3 && code == 403 ? "; are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and "
                                            "AWS_REGION those of the bucket?"
                                          : "");
}

static void try_later(gt_fetch *f, const char *why) {
  gt_log(GT_LOG_INFO, "%s: %s; asks again in %.0f s", f->url.shown, why, f->again_s);
  f->next = gt_now() + gt_from_seconds(f->again_s);
  f->again_s = f->again_s * 2 > AGAIN_MAX_S ? AGAIN_MAX_S : f->again_s * 2;
}

static gt_status take_result(gt_fetch *f, CURLcode result, bool *done) {
  const long code = code_of(f);
  const bool other = is_other_part(f);
  char why[64];
  if (result == CURLE_OK && code == 200 && !f->taken) (void)take_first(f); /* an empty file */
  if (f->taken && f->have > f->from) f->again_s = AGAIN_S;
  if (other) drop_part(f);
  end(f);
  if (f->fault) return not_written(f->part, f->fault);
  if (other) {
    try_later(f, "the server answers another part than was asked for");
    return GT_OK;
  }
  if (result == CURLE_OK && (code == 200 || code == 206)) return finish(f, done);
  const bool renewed =
      f->url.s3 && store_request_expired(f->reason) && store_credentials_renew(&f->credentials);
  if (!renewed && !store_request_passes(result, code))
    return result == CURLE_OK ? refused(f, code)
                              : GT_FAIL(GT_ERR_DATA, "%s: cannot be fetched: %s", f->url.shown,
                                        curl_easy_strerror(result));
  if (code == 416) drop_part(f); /* the file has become shorter */
  snprintf(why, sizeof why, "the server answers %ld", code);
  try_later(f, result == CURLE_OK ? why : curl_easy_strerror(result));
  return GT_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

gt_status gt_fetch_open(gt_fetch **out, const char *url, double patience_s, bool again) {
  gt_fetch *f = GT_NEW(gt_fetch);
  *f = (gt_fetch){.lock = -1, .file = -1, .patience_s = patience_s, .again_s = AGAIN_S};
  f->again = again;
  f->heard = gt_now();
  gt_status status = store_url_read(&f->url, url);
  if (status == GT_OK && f->url.s3) status = store_credentials_find(&f->credentials);
  if (status == GT_OK) status = store_url_copy(&f->url, &f->copy);
  if (status == GT_OK && !store_make_folders(f->copy)) status = not_written(f->copy, errno);
  if (status != GT_OK) {
    gt_fetch_close(f);
    return status;
  }
  f->part = with_end(f->copy, ".part");
  f->tag_path = with_end(f->copy, ".tag");
  f->multi = curl_multi_init();
  if (!f->multi) gt_bug("libcurl has no memory");
  *out = f;
  return GT_OK;
}

/* True if the copy is there, and has the URL's SHA-256 if it was given. */
static bool has_copy(gt_fetch *f) {
  struct stat about;
  if (f->again || stat(f->copy, &about) != 0 || about.st_ino == f->wrong) return false;
  if (check_hash(f, f->copy) == GT_OK) return true;
  f->wrong = about.st_ino;
  return false;
}

/* Takes the lock, if it is free, and opens the partial file. */
static gt_status take_lock(gt_fetch *f) {
  struct stat about;
  char *path = with_end(f->copy, ".lock");
  gt_status status = GT_OK;
  if (f->lock < 0) f->lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  if (f->lock < 0) status = not_written(path, errno);
  gt_free(path);
  GT_TRY(status);
  f->locked = flock(f->lock, LOCK_EX | LOCK_NB) == 0;
  if (!f->locked)
    return errno == EWOULDBLOCK || errno == EINTR ? GT_OK : not_written(f->copy, errno);
  f->file = open(f->part, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  if (f->file < 0 || fstat(f->file, &about) != 0) return not_written(f->part, errno);
  f->have = about.st_size;
  read_tag(f);
  if (!f->tag[0]) f->have = 0;
  f->heard = gt_now();
  if (f->have > 0)
    gt_log(GT_LOG_INFO, "%s: %lld bytes are there; asks for the rest", f->url.shown,
           (long long)f->have);
  return GT_OK;
}

/* Another process downloads: its partial file grows. */
static void watch_other(gt_fetch *f) {
  struct stat about;
  if (stat(f->part, &about) == 0 && about.st_size != f->have) {
    f->have = about.st_size;
    f->heard = gt_now();
  }
  gt_sleep(gt_from_seconds(WATCH_S));
}

static gt_status transfer(gt_fetch *f, bool *done) {
  int running, left;
  if (!f->request) {
    if (gt_now() < f->next) {
      gt_sleep(gt_from_seconds(WATCH_S));
      return GT_OK;
    }
    f->from = f->have;
    begin(f);
  }
  CURLMcode fault = curl_multi_perform(f->multi, &running);
  if (fault == CURLM_OK && running)
    fault = curl_multi_poll(f->multi, NULL, 0, (int)(1000 * WATCH_S), NULL);
  if (fault != CURLM_OK)
    return GT_FAIL(GT_ERR_DATA, "%s: cannot be fetched: %s", f->url.shown,
                   curl_multi_strerror(fault));
  const CURLMsg *message = curl_multi_info_read(f->multi, &left);
  return message && message->msg == CURLMSG_DONE ? take_result(f, message->data.result, done)
                                                 : GT_OK;
}

static gt_status advance(gt_fetch *f, bool *done) {
  if (!f->locked) {
    *done = has_copy(f);
    if (*done) return GT_OK;
    GT_TRY(take_lock(f));
    /* the process that had the lock may have ended with the copy */
    *done = f->locked && has_copy(f);
    if (*done) {
      (void)unlink(f->part);
      return GT_OK;
    }
  }
  if (gt_now() - f->heard > gt_from_seconds(f->patience_s))
    return GT_FAIL(GT_ERR_DATA, "%s: nothing arrived for %.0f s%s", f->url.shown, f->patience_s,
                   f->locked ? "" : " at the process that downloads it");
  if (f->locked) return transfer(f, done);
  watch_other(f);
  return GT_OK;
}

gt_status gt_fetch_step(gt_fetch *fetch, double seconds, bool *done) {
  const gt_ns until = gt_now() + gt_from_seconds(seconds);
  *done = false;
  do GT_TRY(advance(fetch, done));
  while (!*done && gt_now() < until);
  return GT_OK;
}

int64_t gt_fetch_bytes(const gt_fetch *fetch, int64_t *whole) {
  *whole = fetch->whole;
  return fetch->have;
}

void gt_fetch_close(gt_fetch *f) {
  if (!f) return;
  end(f);
  if (f->multi) curl_multi_cleanup(f->multi);
  if (f->file >= 0) close(f->file);
  if (f->lock >= 0) close(f->lock); /* and the lock is free */
  store_url_close(&f->url);
  gt_free(f->copy);
  gt_free(f->part);
  gt_free(f->tag_path);
  gt_free(f);
}
