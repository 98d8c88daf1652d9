/* Requests to a server by libcurl. */
#include <stdlib.h>
#include <string.h>

#include "request.h"

#define CONNECT_LIMIT_S 30L
#define SILENT_S        15L /* a connection on which nothing comes is given up */

void store_request_set(CURL *r, const char *https) {
  const bool tls = strncmp(https, "https:", 6) == 0;
  curl_easy_setopt(r, CURLOPT_URL, https);
  curl_easy_setopt(r, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(r, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(r, CURLOPT_REDIR_PROTOCOLS_STR, tls ? "https" : "http,https");
  curl_easy_setopt(r, CURLOPT_CONNECTTIMEOUT, CONNECT_LIMIT_S);
  curl_easy_setopt(r, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(r, CURLOPT_LOW_SPEED_TIME, SILENT_S);
  curl_easy_setopt(r, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(r, CURLOPT_USERAGENT, "geotrain/" GT_VERSION);
  if (getenv("SSL_CERT_FILE")) curl_easy_setopt(r, CURLOPT_CAINFO, getenv("SSL_CERT_FILE"));
}

void store_request_sign(CURL *r, struct curl_slist **headers, const store_credentials *c,
                        const char *sha256) {
  char text[STORE_TEXT_MAX + 64];
  if (!*c->key) return;
  snprintf(text, sizeof text, "aws:amz:%s:s3", c->region);
  curl_easy_setopt(r, CURLOPT_AWS_SIGV4, text);
  curl_easy_setopt(r, CURLOPT_USERNAME, c->key);
  curl_easy_setopt(r, CURLOPT_PASSWORD, c->secret);
  snprintf(text, sizeof text, "x-amz-content-sha256: %s", sha256);
  *headers = curl_slist_append(*headers, text);
  if (!*c->token) return;
  snprintf(text, sizeof text, "x-amz-security-token: %s", c->token);
  *headers = curl_slist_append(*headers, text);
}

bool store_request_passes(CURLcode result, long code) {
  switch (result) {
  case CURLE_UNSUPPORTED_PROTOCOL:
  case CURLE_URL_MALFORMAT:
  case CURLE_TOO_MANY_REDIRECTS:
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CACERT_BADFILE:
    return false;
  case CURLE_OK:
    return code == 408 || code == 409 || code == 416 || code == 429 || code >= 500;
  default:
    return true;
  }
}

bool store_request_expired(const char *answer) {
  return strstr(answer, "<Code>ExpiredToken<") || strstr(answer, "<Code>RequestExpired<") ||
         strstr(answer, "<Code>TokenRefreshRequired<");
}

const char *store_request_reason(char *answer) {
  char *code = strstr(answer, "<Code>"), *text = code ? code + strlen("<Code>") : answer;
  text[strcspn(text, code ? "<" : "\r\n")] = '\0';
  gt_text_flatten(text);
  return text;
}
