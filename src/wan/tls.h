/* TLS 1.3 with certificates on both sides. */
#pragma once

#include <openssl/ssl.h>

#include "cert.h"

typedef struct gt_tls gt_tls;

/* Reads CA, certificate and key of a region.  GT_ERR_DATA: one cannot be read; GT_ERR_JOB: they do
   not fit together, the certificate is not valid now, or it has another name. */
gt_status gt_tls_open(gt_tls **out, const char *ca, const char *cert, const char *key,
                      const char *region);
void gt_tls_close(gt_tls *tls);
/* Begins a handshake over a connected socket; NULL: OpenSSL has no memory. */
SSL *gt_tls_begin(gt_tls *tls, int fd, bool accept);
/* Writes why the last call on the connection failed. */
void gt_tls_fault(const SSL *ssl, int error, char *text, size_t size);
/* True if the other side's certificate has this name. */
bool gt_tls_is(const SSL *ssl, const char *region);
