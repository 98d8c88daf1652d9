/* TLS 1.3, mutual, by OpenSSL: contexts, and the check of certificates at each handshake. */
#include "tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

struct gt_tls {
  SSL_CTX *context;
  char ca[GT_CERT_PATH_MAX];
};

/* ---- contexts -------------------------------------------------------------------------------- */

/* Called for each certificate of the other side's chain: the one of the region must not be
   revoked. */
static int check_revoked(int valid, X509_STORE_CTX *store) {
  if (!valid || X509_STORE_CTX_get_error_depth(store) > 0) return valid;
  const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
  const gt_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
  if (!gt_cert_revoked(tls->ca, X509_STORE_CTX_get_current_cert(store))) return 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REVOKED);
  return 0;
}

static const char *reason(void) {
  const char *text = ERR_reason_error_string(ERR_peek_last_error());
  return text ? text : "no reason given";
}

/* Returns why a file was refused: the system's reason if it has one, otherwise OpenSSL's first; its
   last is as general as "PEM lib". */
static const char *file_reason(const char *path) {
  FILE *file = fopen(path, "re");
  const int error = !file || (fgetc(file) == EOF && ferror(file)) ? errno : 0;
  if (file) fclose(file);
  const char *text = ERR_reason_error_string(ERR_peek_error());
  return error ? strerror(error) : text ? text : "no reason given";
}

static gt_status check_name(X509 *cert, const char *path, const char *region) {
  char name[GT_CERT_NAME_MAX];
  if (!gt_cert_name(cert, name)) snprintf(name, sizeof name, "none");
  if (strcmp(name, region) == 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "wan.tls.cert: %s has the name %s; expected that of region %s", path,
                 name, region);
}

/* The region's own certificate must pass the check that the others make. */
static gt_status check_own(const gt_tls *tls, const char *path, const char *region) {
  X509 *cert = SSL_CTX_get0_certificate(tls->context);
  GT_TRY(check_name(cert, path, region));
  X509_STORE_CTX *store = X509_STORE_CTX_new();
  gt_status status = GT_OK;
  if (!store || !X509_STORE_CTX_init(store, SSL_CTX_get_cert_store(tls->context), cert, NULL))
    status = GT_FAIL(GT_ERR_FAULT, "wan.tls: OpenSSL cannot check a certificate");
  else if (X509_verify_cert(store) != 1)
    status = GT_FAIL(GT_ERR_JOB, "wan.tls.cert: %s is not valid: %s", path,
                     X509_verify_cert_error_string(X509_STORE_CTX_get_error(store)));
  else if (gt_cert_revoked(tls->ca, cert))
    status = GT_FAIL(GT_ERR_JOB, "wan.tls.cert: %s is revoked", path);
  X509_STORE_CTX_free(store);
  return status;
}

static gt_status read_files(gt_tls *tls, const char *ca, const char *cert, const char *key) {
  SSL_CTX *c = tls->context;
  ERR_clear_error();
  if (SSL_CTX_load_verify_file(c, ca) != 1)
    return GT_FAIL(GT_ERR_DATA, "wan.tls.ca: %s cannot be read: %s", ca, file_reason(ca));
  if (SSL_CTX_use_certificate_file(c, cert, SSL_FILETYPE_PEM) != 1)
    return GT_FAIL(GT_ERR_DATA, "wan.tls.cert: %s cannot be read: %s", cert, file_reason(cert));
  if (SSL_CTX_use_PrivateKey_file(c, key, SSL_FILETYPE_PEM) != 1)
    return GT_FAIL(GT_ERR_DATA, "wan.tls.key: %s cannot be read, or is not the key of %s: %s", key,
                   cert, file_reason(key));
  return GT_OK;
}

/* Sessions are never resumed: each connection checks the certificate again. */
static bool configure(gt_tls *tls) {
  SSL_CTX *c = tls->context;
  if (!c || !SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION)) return false;
  SSL_CTX_set_app_data(c, tls);
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, check_revoked);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_default_passwd_cb(c, gt_cert_no_password);
  SSL_CTX_set_read_ahead(c, 1);
  return SSL_CTX_set_num_tickets(c, 0) == 1;
}

gt_status gt_tls_open(gt_tls **out, const char *ca, const char *cert, const char *key,
                      const char *region) {
  gt_tls *tls = GT_NEW(gt_tls);
  tls->context = SSL_CTX_new(TLS_method());
  snprintf(tls->ca, sizeof tls->ca, "%s", ca);
  gt_status status = configure(tls) ? read_files(tls, ca, cert, key)
                                    : GT_FAIL(GT_ERR_FAULT, "wan.tls: OpenSSL cannot do TLS 1.3");
  if (status == GT_OK) status = check_own(tls, cert, region);
  if (status == GT_OK)
    *out = tls;
  else
    gt_tls_close(tls);
  return status;
}

void gt_tls_close(gt_tls *tls) {
  if (!tls) return;
  SSL_CTX_free(tls->context);
  gt_free(tls);
}

/* ---- connections ----------------------------------------------------------------------------- */

SSL *gt_tls_begin(gt_tls *tls, int fd, bool accept) {
  SSL *ssl = SSL_new(tls->context);
  if (!ssl) return NULL;
  if (SSL_set_fd(ssl, fd) != 1) {
    SSL_free(ssl);
    return NULL;
  }
  if (accept)
    SSL_set_accept_state(ssl);
  else
    SSL_set_connect_state(ssl);
  return ssl;
}

void gt_tls_fault(const SSL *ssl, int error, char *text, size_t size) {
  const long verified = SSL_get_verify_result(ssl);
  if (verified != X509_V_OK)
    snprintf(text, size, "its certificate is refused: %s", X509_verify_cert_error_string(verified));
  else if (error == SSL_ERROR_SSL)
    snprintf(text, size, "TLS: %s", reason());
  else if (error == SSL_ERROR_SYSCALL && errno != 0)
    snprintf(text, size, "%s", strerror(errno));
  else
    snprintf(text, size, "the other side has closed the connection");
}

bool gt_tls_is(const SSL *ssl, const char *region) {
  char name[GT_CERT_NAME_MAX];
  X509 *cert = SSL_get0_peer_certificate(ssl);
  return cert && gt_cert_name(cert, name) && strcmp(name, region) == 0;
}
