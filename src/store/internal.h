/* The internal interface of store: URLs as requests. */
#pragma once

#include "geotrain/store.h"

#define STORE_TEXT_MAX 2048

/* A URL, taken apart; owns its texts. */
typedef struct {
  char *https;                /* the address to ask, without credentials and fragment */
  char *shown;                /* for messages: as given, without fragment */
  char *name;                 /* of the copy: without folder */
  char sha256[GT_SHA256_HEX]; /* "": not given */
  bool s3;
} store_url;

gt_status store_url_read(store_url *out, const char *url);
void store_url_close(store_url *url);
/* As gt_store_copy. */
gt_status store_url_copy(const store_url *url, char **path);
/* Makes the folders of a path, which is the same again after the call; false with errno. */
bool store_make_folders(char *path);

/* What signs requests to S3; "": anonymous. */
typedef struct {
  char key[256], secret[256], token[STORE_TEXT_MAX], region[64];
} store_credentials;

/* Reads the environment, else the file of credentials. */
gt_status store_credentials_find(store_credentials *out);
/* Reads them again, after a session's token has expired; unchanged if there are none.  False: they
   are those of the environment, which stay the same. */
bool store_credentials_renew(store_credentials *c);
