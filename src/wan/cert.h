/* Functions on certificates shared by cert.c and tls.c. */
#pragma once

#include <openssl/x509.h>

#include "geotrain/base.h"

#define GT_CERT_NAME_MAX ((size_t)64)
#define GT_CERT_PATH_MAX ((size_t)4096)

/* Has OpenSSL refuse keys with a password, instead of asking for it. */
int gt_cert_no_password(char *buf, int size, int writing, void *context);
/* Writes the region's name in the certificate; false: it has none. */
bool gt_cert_name(X509 *cert, char name[GT_CERT_NAME_MAX]);
/* True unless the list of revoked serial numbers next to the CA file can be read, or is absent, and
   does not have this certificate's. */
bool gt_cert_revoked(const char *ca, X509 *cert);
