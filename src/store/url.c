/* URLs of files: the address to ask, and the name of the copy. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "internal.h"

#define HASH "#sha256="

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

bool gt_store_is_url(const char *path) {
  return begins(path, "https://") || begins(path, "http://") || begins(path, "s3://");
}

static gt_status read_hash(store_url *u, const char *url, const char *fragment) {
  const char *hex = fragment + strlen(HASH);
  bool good = begins(fragment, HASH) && strlen(hex) == GT_SHA256_HEX - 1;
  for (size_t i = 0; good && i < GT_SHA256_HEX - 1; i++) {
    good = isxdigit((unsigned char)hex[i]);
    u->sha256[i] = (char)tolower((unsigned char)hex[i]);
  }
  if (good) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: ends in \"%.100s\"; expected #sha256= and 64 hexadecimal digits",
                 url, fragment);
}

/* The first 16 digits of the URL's hash, and its last name as far as a file can have it. */
static char *copy_name(const char *url) {
  char hex[GT_SHA256_HEX], *name = gt_alloc(16 + 1 + 100 + 1, 1);
  const char *last = strrchr(url, '/') + 1;
  gt_sha256_hex(url, strlen(url), hex);
  memcpy(name, hex, 16);
  name[16] = '-';
  for (size_t i = 0; i < 100 && last[i] && last[i] != '?'; i++)
    name[17 + i] = isalnum((unsigned char)last[i]) || strchr("._-", last[i]) ? last[i] : '_';
  return name;
}

/* Writes a key's bytes, those that a path cannot have as %XX. */
static void append_key(char *to, const char *key) {
  static const char plain[] = "-_.~/";
  for (; *key; key++)
    if (isalnum((unsigned char)*key) || strchr(plain, *key))
      *to++ = *key;
    else
      to += snprintf(to, 4, "%%%02X", (unsigned)(unsigned char)*key);
  *to = '\0';
}

/* s3://BUCKET/KEY: the bucket is part of the path, as every store of this protocol accepts. */
static gt_status read_s3(store_url *u) {
  const char *bucket = u->shown + strlen("s3://"), *key = strchr(bucket, '/');
  const char *endpoint = getenv("AWS_ENDPOINT_URL_S3"), *region = getenv("AWS_REGION");
  if (!endpoint) endpoint = getenv("AWS_ENDPOINT_URL");
  if (!region) region = getenv("AWS_DEFAULT_REGION");
  if (!key || key == bucket || !key[1])
    return GT_FAIL(GT_ERR_DATA, "%s: expected s3://BUCKET/KEY", u->shown);
  if (endpoint && !begins(endpoint, "https://") && !begins(endpoint, "http://"))
    return GT_FAIL(GT_ERR_DATA, "AWS_ENDPOINT_URL is \"%.100s\"; expected an https:// URL",
                   endpoint);
  const size_t size = strlen(u->shown) * 3 + (endpoint ? strlen(endpoint) : 128) + 2;
  u->https = gt_alloc(size, 1);
  if (endpoint)
    snprintf(u->https, size, "%s", endpoint);
  else
    snprintf(u->https, size, "https://s3.%.60s.amazonaws.com", region ? region : "us-east-1");
  char *end = u->https + strlen(u->https);
  while (end[-1] == '/') end--;
  *end = '/';
  append_key(end + 1, bucket);
  u->s3 = true;
  return GT_OK;
}

static gt_status read_https(store_url *u) {
  const char *host = strchr(u->shown, ':') + 3, *end = host + strcspn(host, "/?");
  const char *at = memrchr(host, '@', (size_t)(end - host));
  if (at)
    return GT_FAIL(
        GT_ERR_DATA,
        "a URL of a data set has a password (before @%.100s); expected none, because job "
        "files and records are read by others",
        at + 1);
  if (end == host || *end != '/' || !end[1])
    return GT_FAIL(GT_ERR_DATA, "%s: expected https://HOST/FILE", u->shown);
  u->https = gt_strdup(u->shown);
  u->shown[strcspn(u->shown, "?")] = '\0'; /* a query can be a signature */
  return GT_OK;
}

gt_status store_url_read(store_url *out, const char *url) {
  *out = (store_url){.shown = gt_strdup(url)};
  char *fragment = strchr(out->shown, '#');
  if (fragment) *fragment = '\0';
  if (gt_control_find(url, strlen(url)) < strlen(url) || strchr(url, ' '))
    return GT_FAIL(
        GT_ERR_DATA,
        "the URL of a data set has a blank or a control character; expected %%20 or the like");
  out->name = copy_name(out->shown);
  GT_TRY(begins(url, "s3://") ? read_s3(out) : read_https(out));
  return fragment ? read_hash(out, out->shown, strchr(url, '#')) : GT_OK;
}

void store_url_close(store_url *url) {
  gt_free(url->https);
  gt_free(url->shown);
  gt_free(url->name);
  *url = (store_url){0};
}

/* ---- the folder of copies -------------------------------------------------------------------- */

bool store_make_folders(char *path) {
  for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
    *at = '\0';
    const bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
    *at = '/';
    if (!made) return false;
  }
  return true;
}

gt_status store_url_copy(const store_url *url, char **path) {
  const char *own = getenv("GEOTRAIN_CACHE"), *base = getenv("XDG_CACHE_HOME"),
             *below = "/geotrain";
  if (own && *own) base = own, below = "";
  if (!base || !*base) base = getenv("HOME"), below = "/.cache/geotrain";
  if (!base || !*base)
    return GT_FAIL(GT_ERR_DATA,
                   "%s needs a folder for its copy, but GEOTRAIN_CACHE and HOME are not set; "
                   "expected one of them",
                   url->shown);
  const size_t size = strlen(base) + strlen(below) + strlen(url->name) + 2;
  *path = gt_alloc(size, 1);
  snprintf(*path, size, "%s%s/%s", base, below, url->name);
  return GT_OK;
}

gt_status gt_store_copy(const char *url, char **path) {
  store_url u;
  *path = NULL;
  gt_status status = store_url_read(&u, url);
  if (status == GT_OK) status = store_url_copy(&u, path);
  store_url_close(&u);
  return status;
}
