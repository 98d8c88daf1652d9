/* Credentials for S3, where Amazon's own tools have them: the environment, or a profile of
   ~/.aws/credentials.  They are never written or logged. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static gt_status put(char *to, size_t size, const char *name, const char *value) {
  if (strlen(value) < size) {
    snprintf(to, size, "%s", value);
    return GT_OK;
  }
  return GT_FAIL(GT_ERR_DATA, "%s is longer than %zu characters", name, size - 1);
}

/* Removes blanks at both ends. */
static char *trim(char *text) {
  text += strspn(text, " \t");
  size_t n = strlen(text);
  while (n > 0 && strchr(" \t\r\n", text[n - 1])) text[--n] = '\0';
  return text;
}

static gt_status take_line(store_credentials *c, char *line) {
  char *equals = strchr(line, '=');
  if (!equals) return GT_OK;
  *equals = '\0';
  const char *name = trim(line), *value = trim(equals + 1);
  if (strcmp(name, "aws_access_key_id") == 0) return put(c->key, sizeof c->key, name, value);
  if (strcmp(name, "aws_secret_access_key") == 0)
    return put(c->secret, sizeof c->secret, name, value);
  if (strcmp(name, "aws_session_token") == 0) return put(c->token, sizeof c->token, name, value);
  return GT_OK;
}

/* Reads the section of the profile. */
static gt_status read_profile(store_credentials *c, FILE *file, const char *profile) {
  char text[STORE_TEXT_MAX + 64];
  bool ours = false;
  gt_status status = GT_OK;
  while (status == GT_OK && fgets(text, sizeof text, file)) {
    char *line = trim(text);
    if (*line == '[') {
      line[strcspn(line, "]")] = '\0';
      ours = strcmp(trim(line + 1), profile) == 0;
    } else if (ours && *line != '#' && *line != ';') {
      status = take_line(c, line);
    }
  }
  return status;
}

static gt_status read_file(store_credentials *c) {
  const char *given = getenv("AWS_SHARED_CREDENTIALS_FILE"), *home = getenv("HOME"),
             *profile = getenv("AWS_PROFILE");
  char path[4096];
  if (given)
    snprintf(path, sizeof path, "%s", given);
  else
    snprintf(path, sizeof path, "%s/.aws/credentials", home ? home : "");
  FILE *file = fopen(path, "r");
  if (!file && !given && !profile) return GT_OK;
  if (!file)
    return GT_FAIL(GT_ERR_DATA, "%s cannot be read: %s; expected the credentials of profile %s",
                   path, strerror(errno), profile ? profile : "default");
  gt_status status = read_profile(c, file, profile ? profile : "default");
  fclose(file);
  if (status == GT_OK && profile && !*c->key)
    status = GT_FAIL(GT_ERR_DATA, "%s has no profile %s with an aws_access_key_id", path, profile);
  return status;
}

gt_status store_credentials_find(store_credentials *out) {
  const char *key = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY"),
             *token = getenv("AWS_SESSION_TOKEN"), *region = getenv("AWS_REGION");
  *out = (store_credentials){.region = "us-east-1"};
  if (!region) region = getenv("AWS_DEFAULT_REGION");
  if (region) GT_TRY(put(out->region, sizeof out->region, "AWS_REGION", region));
  if (!key) return read_file(out);
  GT_TRY(put(out->key, sizeof out->key, "AWS_ACCESS_KEY_ID", key));
  if (!secret)
    return GT_FAIL(GT_ERR_DATA, "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not; "
                                "expected both, or neither");
  GT_TRY(put(out->secret, sizeof out->secret, "AWS_SECRET_ACCESS_KEY", secret));
  return token ? put(out->token, sizeof out->token, "AWS_SESSION_TOKEN", token) : GT_OK;
}

bool store_credentials_renew(store_credentials *c) {
  store_credentials found;
  if (getenv("AWS_ACCESS_KEY_ID")) return false;
  if (store_credentials_find(&found) == GT_OK && *found.key && *found.secret) *c = found;
  return true;
}
