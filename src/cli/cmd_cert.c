/* geotrain cert: the CA of a run or project, and the certificates of its regions. */
#include "cli.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/wan_cert.h"
#include "options.h"

#define USAGE                                                                                      \
  "usage: geotrain cert init DIR | request NAME | sign CA CSR [--days N] | show FILE | revoke CA " \
  "FILE"
#define DAYS_MAX 3652.0

static gt_status init(char **words, double days) {
  (void)days;
  GT_TRY(gt_cert_init(words[0]));
  printf("%s/ca.pem: for every region\n%s/ca.key: secret; whoever has it can add regions\n",
         words[0], words[0]);
  return GT_OK;
}

static gt_status request(char **words, double days) {
  (void)days;
  GT_TRY(gt_cert_request(words[0]));
  printf("%s.csr: for `geotrain cert sign`\n%s.key: secret; stays here\n", words[0], words[0]);
  return GT_OK;
}

static gt_status sign(char **words, double days) {
  const char *csr = words[1];
  const size_t length = strlen(csr);
  if (length < 5 || strcmp(csr + length - 4, ".csr") != 0)
    return GT_FAIL(GT_ERR_JOB, "cert: \"%s\" is not a request; expected a file NAME.csr", csr);
  char *pem = gt_strdup(csr);
  memcpy(pem + length - 4, ".pem", 4);
  const gt_status status = gt_cert_sign(words[0], csr, pem, days * 86400);
  if (status == GT_OK) printf("%s: valid for %g days\n", pem, days);
  gt_free(pem);
  return status;
}

static gt_status show(char **words, double days) {
  (void)days;
  return gt_cert_show(stdout, words[0]);
}

static gt_status revoke(char **words, double days) {
  (void)days;
  GT_TRY(gt_cert_revoke(words[0], words[1]));
  printf("%s/revoked: copy it beside ca.pem at every region\n", words[0]);
  return GT_OK;
}

static const struct {
  const char *name;
  int words;
  gt_status (*run)(char **words, double days);
} actions[] = {
    {"init", 1, init}, {"request", 1, request}, {"sign", 2, sign},
    {"show", 1, show}, {"revoke", 2, revoke},
};

static gt_status read_days(double *days, const char *text) {
  char *end;
  *days = strtod(text, &end);
  if (end != text && *end == '\0' && *days >= 1 && *days <= DAYS_MAX) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "cert: --days is '%s'; it must be from 1 to %g", text, DAYS_MAX);
}

const struct option gt_options_cert[] = {{"days", required_argument, NULL, 'd'}, {0}};

gt_status gt_cmd_cert(int argc, char **argv) {
  double days = 365;
  opterr = 0;
  for (int o; (o = getopt_long(argc, argv, "", gt_options_cert, NULL)) != -1;) {
    if (o != 'd') return gt_option_refused(argc, argv, "cert");
    GT_TRY(read_days(&days, optarg));
  }
  const int given = argc - optind - 1;
  if (given < 0) return GT_FAIL(GT_ERR_JOB, "cert: no action is given; " USAGE);
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
    if (strcmp(argv[optind], actions[i].name) != 0) continue;
    if (given != actions[i].words)
      return GT_FAIL(GT_ERR_JOB, "cert: %s has %d names; expected %d; " USAGE, actions[i].name,
                     given, actions[i].words);
    return actions[i].run(argv + optind + 1, days);
  }
  return GT_FAIL(GT_ERR_JOB, "cert: unknown action '%s'; " USAGE, argv[optind]);
}
