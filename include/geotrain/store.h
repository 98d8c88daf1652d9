/* store: files at a URL (https, S3) and their copies on this machine.  Layer 2.  Local: no function
   communicates with other ranks. */
#pragma once

#include "geotrain/base.h"

/* True if the path begins with https://, http:// or s3://. */
bool gt_store_is_url(const char *path);

/* Writes the path of the URL's copy, in $GEOTRAIN_CACHE, else $XDG_CACHE_HOME/geotrain, else
   ~/.cache/geotrain; the caller frees it.  The name depends on the URL alone.  GT_ERR_DATA: the URL
   is malformed or has a password, or there is no such folder. */
gt_status gt_store_copy(const char *url, char **path);

/* A download of a URL to its copy.  Processes that share a folder download once: one of them has
   the lock, the others wait for it.  A copy that exists is not compared with the URL, except its
   SHA-256 if the URL ends in `#sha256=` and 64 hexadecimal digits. */
typedef struct gt_fetch gt_fetch;

/* Begins a download.  patience_s: how long nothing may arrive; again: even if there is a copy.
   Credentials for s3:// are those of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
   AWS_SESSION_TOKEN) or of the profile AWS_PROFILE in ~/.aws/credentials; without any, the request
   is anonymous.  AWS_REGION; AWS_ENDPOINT_URL names a store other than Amazon's.  GT_ERR_DATA as
   above, or the folder cannot be written to. */
gt_status gt_fetch_open(gt_fetch **out, const char *url, double patience_s, bool again);
/* Continues for at most `seconds`.  *done: the copy is there, whole and durable.  A connection that
   breaks is made again, and the rest of the file is asked for; what has arrived stays for a later
   start.  GT_ERR_DATA: the server refuses, nothing arrived for patience_s, the disk is full, or the
   SHA-256 differs. */
gt_status gt_fetch_step(gt_fetch *fetch, double seconds, bool *done);
/* Returns the bytes that have arrived; *whole: the size of the file, 0: not known. */
int64_t gt_fetch_bytes(const gt_fetch *fetch, int64_t *whole);
/* Writes the SHA-256 of a file.  GT_ERR_DATA: it cannot be read. */
gt_status gt_store_hash(const char *path, char sha256[GT_SHA256_HEX]);
/* Ends a download; what has arrived stays.  NULL is allowed. */
void gt_fetch_close(gt_fetch *fetch);
