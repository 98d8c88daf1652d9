/* Certificates of regions: keys on the curve P-256, a CA in a folder, and a list of the serial
   numbers that it has revoked. */
#include "geotrain/wan_cert.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cert.h"

#define CA_VALID_S  (10 * 365.25 * 86400)
#define SERIAL_BITS 127
/* A certificate is valid from a moment before it was signed: clocks of sites differ. */
#define EARLY_S 300

/* ---- files ----------------------------------------------------------------------------------- */

static gt_status not_written(const char *path) {
  return GT_FAIL(errno == EEXIST ? GT_ERR_JOB : GT_ERR_DATA, "%s: cannot be created: %s", path,
                 strerror(errno));
}

/* Creates the file; an existing one, or a link, is never overwritten. */
static gt_status write_new(const char *path, BIO *pem, mode_t mode) {
  char *text;
  const long size = BIO_get_mem_data(pem, &text);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return not_written(path);
  const bool whole = gt_write_all(fd, text, (size_t)size);
  if (close(fd) == 0 && whole) return GT_OK;
  return not_written(path);
}

typedef int (*pem_writer)(BIO *pem, const void *object);

static int put_key(BIO *pem, const void *key) {
  return PEM_write_bio_PrivateKey(pem, key, NULL, NULL, 0, NULL, NULL);
}

static int put_cert(BIO *pem, const void *cert) {
  return PEM_write_bio_X509(pem, cert);
}

static int put_request(BIO *pem, const void *request) {
  return PEM_write_bio_X509_REQ(pem, request);
}

static gt_status write_pem(const char *path, mode_t mode, pem_writer put, const void *object) {
  BIO *pem = BIO_new(BIO_s_mem());
  gt_status status = pem && put(pem, object)
                         ? write_new(path, pem, mode)
                         : GT_FAIL(GT_ERR_FAULT, "%s: OpenSSL cannot write it as PEM", path);
  BIO_free(pem);
  return status;
}

int gt_cert_no_password(char *buf, int size, int writing, void *context) {
  (void)buf, (void)size, (void)writing, (void)context;
  return -1;
}

typedef void *(*pem_reader)(FILE *file);

static void *get_key(FILE *file) {
  return PEM_read_PrivateKey(file, NULL, gt_cert_no_password, NULL);
}

static void *get_cert(FILE *file) {
  return PEM_read_X509(file, NULL, NULL, NULL);
}

static void *get_request(FILE *file) {
  return PEM_read_X509_REQ(file, NULL, NULL, NULL);
}

/* Returns NULL after GT_FAIL(GT_ERR_DATA). */
static void *read_pem(const char *path, pem_reader get, const char *what) {
  FILE *file = fopen(path, "re");
  if (!file) {
    (void)GT_FAIL(GT_ERR_DATA, "%s: cannot be read: %s", path, strerror(errno));
    return NULL;
  }
  void *object = get(file);
  fclose(file);
  if (!object) (void)GT_FAIL(GT_ERR_DATA, "%s: is not %s in PEM", path, what);
  return object;
}

static gt_status read_cert(X509 **out, const char *path) {
  *out = read_pem(path, get_cert, "a certificate");
  return *out ? GT_OK : GT_ERR_DATA;
}

static gt_status make_folders(const char *dir) {
  char path[GT_CERT_PATH_MAX];
  snprintf(path, sizeof path, "%s", dir);
  for (char *at = path + 1;; at++) {
    const char end = *at;
    if (end != '/' && end != '\0') continue;
    *at = '\0';
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return not_written(path);
    if (end == '\0') return GT_OK;
    *at = end;
  }
}

static char *in_folder(char path[GT_CERT_PATH_MAX], const char *dir, const char *name) {
  snprintf(path, GT_CERT_PATH_MAX, "%s/%s", dir, name);
  return path;
}

/* ---- names ----------------------------------------------------------------------------------- */

static gt_status check_name(const char *name) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  const size_t length = strlen(name);
  if (length > 0 && length < GT_CERT_NAME_MAX && name[strspn(name, letters)] == '\0' &&
      name[0] != '.' && name[0] != '-')
    return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "\"%.80s\" is not a region's name; expected 1 to 63 letters, digits, dots, dashes "
                 "and underscores, a letter or digit first",
                 name);
}

static bool name_in(const X509_NAME *subject, char name[GT_CERT_NAME_MAX]) {
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return false;
  const ASN1_STRING *text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
  const size_t length = (size_t)ASN1_STRING_length(text);
  if (length >= GT_CERT_NAME_MAX || memchr(ASN1_STRING_get0_data(text), '\0', length)) return false;
  memcpy(name, ASN1_STRING_get0_data(text), length);
  name[length] = '\0';
  return true;
}

bool gt_cert_name(X509 *cert, char name[GT_CERT_NAME_MAX]) {
  return name_in(X509_get_subject_name(cert), name);
}

/* ---- certificates ---------------------------------------------------------------------------- */

static bool set_serial(X509 *cert) {
  BIGNUM *number = BN_new();
  const bool set = number && BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
                   BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
  BN_free(number);
  return set;
}

static bool extend(X509 *cert, X509 *issuer, int kind, const char *value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
  const bool added = extension && X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
  return added;
}

static bool set_name(X509_NAME *subject, const char *name) {
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1,
                                    -1, 0);
}

static bool set_validity(X509 *cert, double valid_s) {
  return X509_gmtime_adj(X509_getm_notBefore(cert), -EARLY_S) &&
         X509_time_adj_ex(X509_getm_notAfter(cert), (int)(valid_s / 86400), (long)valid_s % 86400,
                          NULL);
}

/* issuer NULL: the certificate is a CA's own. */
static X509 *make_cert(const char *name, EVP_PKEY *public, X509 *issuer, EVP_PKEY *signer,
                       double valid_s) {
  X509 *cert = X509_new();
  X509 *by = issuer ? issuer : cert;
  const bool made = cert && X509_set_version(cert, X509_VERSION_3) && set_serial(cert) &&
                    set_validity(cert, valid_s) && set_name(X509_get_subject_name(cert), name) &&
                    X509_set_issuer_name(cert, X509_get_subject_name(by)) &&
                    X509_set_pubkey(cert, public) &&
                    extend(cert, by, NID_basic_constraints,
                           issuer ? "critical,CA:FALSE" : "critical,CA:TRUE,pathlen:0") &&
                    extend(cert, by, NID_key_usage,
                           issuer ? "critical,digitalSignature" : "critical,keyCertSign") &&
                    (!issuer || extend(cert, by, NID_ext_key_usage, "serverAuth,clientAuth")) &&
                    extend(cert, by, NID_subject_key_identifier, "hash") &&
                    extend(cert, by, NID_authority_key_identifier, "keyid") &&
                    X509_sign(cert, signer, EVP_sha256());
  if (made) return cert;
  X509_free(cert);
  (void)GT_FAIL(GT_ERR_FAULT, "OpenSSL cannot make a certificate for %s", name);
  return NULL;
}

gt_status gt_cert_init(const char *dir) {
  char path[GT_CERT_PATH_MAX];
  GT_TRY(make_folders(dir));
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *cert = key ? make_cert("geotrain CA", key, NULL, key, CA_VALID_S) : NULL;
  gt_status status =
      cert ? write_pem(in_folder(path, dir, "ca.key"), 0600, put_key, key)
           : GT_FAIL(GT_ERR_FAULT, "%s: OpenSSL cannot make a certificate authority", dir);
  if (status == GT_OK) status = write_pem(in_folder(path, dir, "ca.pem"), 0644, put_cert, cert);
  X509_free(cert);
  EVP_PKEY_free(key);
  return status;
}

gt_status gt_cert_request(const char *name) {
  char key_path[GT_CERT_NAME_MAX + 8], path[GT_CERT_NAME_MAX + 8];
  GT_TRY(check_name(name));
  snprintf(key_path, sizeof key_path, "%s.key", name);
  snprintf(path, sizeof path, "%s.csr", name);
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509_REQ *request = X509_REQ_new();
  const bool made = key && request && set_name(X509_REQ_get_subject_name(request), name) &&
                    X509_REQ_set_pubkey(request, key) && X509_REQ_sign(request, key, EVP_sha256());
  gt_status status = made ? write_pem(key_path, 0600, put_key, key)
                          : GT_FAIL(GT_ERR_FAULT, "OpenSSL cannot make a request for %s", name);
  if (status == GT_OK) status = write_pem(path, 0644, put_request, request);
  X509_REQ_free(request);
  EVP_PKEY_free(key);
  return status;
}

/* The request proves that its sender has the key. */
static gt_status check_request(X509_REQ *request, const char *csr, char name[GT_CERT_NAME_MAX]) {
  if (X509_REQ_verify(request, X509_REQ_get0_pubkey(request)) != 1)
    return GT_FAIL(GT_ERR_JOB, "%s: its signature does not fit its key", csr);
  if (!name_in(X509_REQ_get_subject_name(request), name))
    return GT_FAIL(GT_ERR_JOB, "%s: has no name of a region", csr);
  return check_name(name);
}

typedef struct {
  X509 *cert;
  EVP_PKEY *key;
} authority;

static gt_status read_authority(authority *out, const char *dir) {
  char path[GT_CERT_PATH_MAX];
  GT_TRY(read_cert(&out->cert, in_folder(path, dir, "ca.pem")));
  out->key = read_pem(in_folder(path, dir, "ca.key"), get_key, "a key without a password");
  if (!out->key) return GT_ERR_DATA;
  if (X509_check_private_key(out->cert, out->key) == 1) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: ca.key is not the key of ca.pem", dir);
}

gt_status gt_cert_sign(const char *dir, const char *csr, const char *pem, double valid_s) {
  char name[GT_CERT_NAME_MAX];
  authority ca = {0};
  X509_REQ *request = NULL;
  X509 *cert = NULL;
  gt_status status = read_authority(&ca, dir);
  if (status == GT_OK) {
    request = read_pem(csr, get_request, "a certificate request");
    status = request ? GT_OK : GT_ERR_DATA;
  }
  if (status == GT_OK) status = check_request(request, csr, name);
  if (status == GT_OK) {
    cert = make_cert(name, X509_REQ_get0_pubkey(request), ca.cert, ca.key, valid_s);
    status = cert ? write_pem(pem, 0644, put_cert, cert) : GT_ERR_FAULT;
  }
  X509_free(cert);
  X509_REQ_free(request);
  X509_free(ca.cert);
  EVP_PKEY_free(ca.key);
  return status;
}

/* ---- reading and revoking -------------------------------------------------------------------- */

/* Returns the serial number in hexadecimal; the caller frees it with OPENSSL_free. */
static char *serial_text(X509 *cert) {
  BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
  char *text = number ? BN_bn2hex(number) : NULL;
  BN_free(number);
  return text;
}

static void print_time(FILE *to, const char *label, const ASN1_TIME *time) {
  struct tm at;
  char text[32];
  if (ASN1_TIME_to_tm(time, &at) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &at))
    fprintf(to, "%s%s UTC\n", label, text);
}

gt_status gt_cert_show(FILE *to, const char *pem) {
  X509 *cert = NULL;
  char name[GT_CERT_NAME_MAX], issuer[GT_CERT_NAME_MAX];
  GT_TRY(read_cert(&cert, pem));
  char *serial = serial_text(cert);
  const bool named = gt_cert_name(cert, name);
  fprintf(to, "name       %s\n", named ? name : "none");
  fprintf(to, "serial     %s\n", serial ? serial : "none");
  fprintf(to, "issuer     %s\n", name_in(X509_get_issuer_name(cert), issuer) ? issuer : "unnamed");
  print_time(to, "from       ", X509_get0_notBefore(cert));
  print_time(to, "until      ", X509_get0_notAfter(cert));
  OPENSSL_free(serial);
  X509_free(cert);
  return GT_OK;
}

gt_status gt_cert_until(const char *pem, double *left_s, char text[32]) {
  X509 *cert = NULL;
  int days = 0, seconds = 0;
  struct tm end = {0};
  GT_TRY(read_cert(&cert, pem));
  const ASN1_TIME *until = X509_get0_notAfter(cert);
  const bool ok =
      ASN1_TIME_diff(&days, &seconds, NULL, until) == 1 && ASN1_TIME_to_tm(until, &end) == 1;
  X509_free(cert);
  if (!ok) return GT_FAIL(GT_ERR_DATA, "%s: its end of validity is not a time", pem);
  *left_s = 86400.0 * days + seconds;
  strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &end);
  return GT_OK;
}

static gt_status add_line(const char *path, const char *text) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  char line[128];
  const int length = snprintf(line, sizeof line, "%s\n", text);
  if (fd < 0) return not_written(path);
  const bool whole = gt_write_all(fd, line, (size_t)length) && fsync(fd) == 0;
  return close(fd) == 0 && whole ? GT_OK : not_written(path);
}

static gt_status check_issuer(const char *dir, const char *pem, X509 *cert) {
  char path[GT_CERT_PATH_MAX];
  X509 *ca = NULL;
  GT_TRY(read_cert(&ca, in_folder(path, dir, "ca.pem")));
  const bool signed_by = X509_verify(cert, X509_get0_pubkey(ca)) == 1;
  X509_free(ca);
  return signed_by ? GT_OK : GT_FAIL(GT_ERR_JOB, "%s: the CA in %s has not signed it", pem, dir);
}

gt_status gt_cert_revoke(const char *dir, const char *pem) {
  char path[GT_CERT_PATH_MAX];
  X509 *cert = NULL;
  GT_TRY(read_cert(&cert, pem));
  char *serial = serial_text(cert);
  gt_status status = check_issuer(dir, pem, cert);
  if (status == GT_OK && !serial) status = GT_FAIL(GT_ERR_DATA, "%s: has no serial number", pem);
  if (status == GT_OK) status = add_line(in_folder(path, dir, "revoked"), serial);
  OPENSSL_free(serial);
  X509_free(cert);
  return status;
}

static bool list_has(FILE *list, const char *serial) {
  char line[128];
  bool found = false;
  while (!found && fgets(line, sizeof line, list)) {
    line[strcspn(line, "\r\n")] = '\0';
    found = strcasecmp(line, serial) == 0;
  }
  return found;
}

bool gt_cert_revoked(const char *ca, X509 *cert) {
  char path[GT_CERT_PATH_MAX];
  const char *slash = strrchr(ca, '/');
  snprintf(path, sizeof path, "%.*srevoked", slash ? (int)(slash - ca + 1) : 0, ca);
  FILE *list = fopen(path, "re");
  if (!list) return errno != ENOENT;
  char *serial = serial_text(cert);
  const bool revoked = !serial || list_has(list, serial) || ferror(list);
  OPENSSL_free(serial);
  fclose(list);
  return revoked;
}
