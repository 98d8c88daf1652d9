/* Hashes: SHA-256 in hex, by OpenSSL. */
#include "geotrain/base.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

struct gt_sha256 {
  EVP_MD_CTX *context;
};

/* Callers cannot continue without the digest, so a failure ends the process. */
static void must(int done) {
  if (done == 1) return;
  fprintf(
      stderr,
      "geotrain: OpenSSL does not compute SHA-256; expected a build of libcrypto that has it\n");
  _Exit(GT_ERR_FAULT);
}

gt_sha256 *gt_sha256_begin(void) {
  gt_sha256 *hash = GT_NEW(gt_sha256);
  hash->context = EVP_MD_CTX_new();
  must(hash->context && EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL));
  return hash;
}

void gt_sha256_add(gt_sha256 *hash, const void *data, size_t size) {
  must(EVP_DigestUpdate(hash->context, size ? data : "", size));
}

void gt_sha256_end(gt_sha256 *hash, char hex[GT_SHA256_HEX]) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  must(EVP_DigestFinal_ex(hash->context, digest, &length));
  must(length == (GT_SHA256_HEX - 1) / 2);
  for (size_t i = 0; i < length; i++) {
    hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  hex[GT_SHA256_HEX - 1] = '\0';
  EVP_MD_CTX_free(hash->context);
  gt_free(hash);
}

void gt_sha256_hex(const void *data, size_t size, char hex[GT_SHA256_HEX]) {
  gt_sha256 *hash = gt_sha256_begin();
  gt_sha256_add(hash, data, size);
  gt_sha256_end(hash, hex);
}
