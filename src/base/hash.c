/* Hashes: SHA-256 in hex, by OpenSSL. */
#include "geotrain/base.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

/* Callers cannot continue without the digest, so a failure ends the process. */
void gt_sha256_hex(const void *data, size_t size, char hex[GT_SHA256_HEX]) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(size ? data : "", size, digest, &length, EVP_sha256(), NULL) != 1 ||
      length != (GT_SHA256_HEX - 1) / 2) {
    fprintf(
        stderr,
        "geotrain: OpenSSL does not compute SHA-256; a build of libcrypto that has it is needed\n");
    _Exit(GT_ERR_FAULT);
  }
  for (size_t i = 0; i < length; i++) {
    hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  hex[GT_SHA256_HEX - 1] = '\0';
}
