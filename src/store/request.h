/* Requests to a server by libcurl, as a download and a store make them. */
#pragma once

#include <curl/curl.h>

#include "internal.h"

#define STORE_REASON_MAX ((size_t)400)

/* Sets the address and what all requests have in common. */
void store_request_set(CURL *request, const char *https);
/* Signs a request to S3 (AWS Signature Version 4), unless the credentials are empty.  sha256: of
   the body, or UNSIGNED-PAYLOAD.  Headers are added to the list. */
void store_request_sign(CURL *request, struct curl_slist **headers, const store_credentials *c,
                        const char *sha256);
/* True if a request that ended so can succeed later. */
bool store_request_passes(CURLcode result, long code);
/* True if the server refuses because a session's token has expired; of its answer. */
bool store_request_expired(const char *answer);
/* Returns why the server refuses, from its answer, which is changed: the text between <Code> and
   </Code>, as S3 says it, or the first line. */
const char *store_request_reason(char *answer);
