/* wan_cert: the certificates of regions: a CA in a folder, one certificate per region, and the list
   of revoked ones.  Layer 4.  Everything here is local. */
#pragma once

#include <stdio.h>

#include "geotrain/base.h"

/* Creates a CA: DIR/ca.key (mode 0600) and DIR/ca.pem, valid for 10 years; the folder is created if
   missing.  GT_ERR_JOB: there is one already; GT_ERR_DATA: a file cannot be written. */
gt_status gt_cert_init(const char *dir);
/* Creates a key NAME.key (mode 0600) and a request NAME.csr in the current folder.  GT_ERR_JOB: the
   name is not one of a region, or one of the files exists; GT_ERR_DATA as above. */
gt_status gt_cert_request(const char *name);
/* Signs the request with the CA of the folder: writes the certificate to `pem`, valid for this
   time.  Takes nothing from the request but the region's name and the public key. */
gt_status gt_cert_sign(const char *dir, const char *csr, const char *pem, double valid_s);
/* Prints name, serial number, issuer and validity of a certificate. */
gt_status gt_cert_show(FILE *to, const char *pem);
/* Finds the end of a certificate's validity: seconds from now (negative: it has expired), and the
   time as text, "2027-11-27 22:10:00 UTC".  Errors as gt_cert_show. */
gt_status gt_cert_until(const char *pem, double *left_s, char text[32]);
/* Adds the certificate's serial number to DIR/revoked.  GT_ERR_JOB: another CA has signed it. */
gt_status gt_cert_revoke(const char *dir, const char *pem);
