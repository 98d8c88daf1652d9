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

/* ---- objects --------------------------------------------------------------------------------- */

/* Objects below file:///FOLDER, which several machines can share, or below s3://BUCKET/PREFIX, with
   credentials as for gt_fetch_open.  Requests are made by threads, so that the caller does not wait
   for a slow store; those that fail are repeated for patience_s.  An object carries its
   SHA-256. */
typedef struct gt_objects gt_objects;

typedef enum { GT_OBJECT_PUT, GT_OBJECT_GET, GT_OBJECT_DELETE } gt_object_op;
typedef enum {
  GT_OBJECT_BUSY,
  GT_OBJECT_DONE,
  GT_OBJECT_MISSING, /* a GET: there is no such object */
  GT_OBJECT_FAILED   /* `fault` says why */
} gt_object_state;

#define GT_OBJECT_NAME  ((size_t)128)
#define GT_OBJECT_NOTES 3
/* A request.  The caller sets the first members, and keeps all until it is no longer busy. */
typedef struct gt_object_request {
  gt_object_op op;
  char name[GT_OBJECT_NAME]; /* of letters, digits and /_.- */
  void *body;   /* PUT: what is written; GET: room for what is read; not changed by PUT */
  size_t bytes; /* of body; after a GET, those that were read */
  uint64_t
      notes[GT_OBJECT_NOTES]; /* of the caller: PUT writes them behind the body, GET reads them */
  /* set by the store */
  _Atomic int state;    /* gt_object_state */
  _Atomic size_t moved; /* bytes of a GET that have arrived, of all attempts */
  char fault[256];
  struct gt_object_request *next;
} gt_object_request;

/* Opens a store; nothing is asked yet.  owner: of letters, digits and -; the first PUT removes what
   killed processes of this owner have left of theirs.  GT_ERR_JOB: the URL is malformed;
   GT_ERR_DATA: credentials. */
gt_status gt_objects_open(gt_objects **out, const char *url, const char *owner, double patience_s);
/* Starts a request; PUT replaces an object of this name.  Local, as all of these. */
void gt_objects_begin(gt_objects *objects, gt_object_request *request);
/* Returns the state; once it is not GT_OBJECT_BUSY, the request belongs to the caller again. */
gt_object_state gt_objects_state(const gt_object_request *request);
/* Ends the threads; requests in progress are waited for, at most 5 s.  False: one has not ended,
   and still uses its memory and the store, which is not freed. */
bool gt_objects_close(gt_objects *objects);
