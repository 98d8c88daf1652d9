/* What a kind of store does with one attempt at a request; called by threads. */
#pragma once

#include "internal.h"

/* What follows the body of every object: the notes, and the SHA-256 of both. */
#define STORE_NOTES (GT_OBJECT_NOTES * sizeof(uint64_t))
#define STORE_TAIL  (STORE_NOTES + 32)

typedef struct {
  /* Opens what a thread needs; NULL: nothing.  place: a folder, or an https URL without the last /;
     owner: as for gt_objects_open; start: random, the same for all threads. */
  void *(*open)(const char *place, const char *owner, const char *start,
                const store_credentials *credentials);
  void (*close)(void *handle);
  /* Each writes why it has failed to fault, of 256 bytes; *again: another attempt can succeed. */
  gt_object_state (*put)(void *handle, const char *name, const void *body, size_t bytes,
                         const uint8_t tail[STORE_TAIL], char *fault, bool *again);
  /* Reads at most *bytes bytes and the tail behind them, and sets *bytes without the tail; adds to
     *moved what has arrived so far. */
  gt_object_state (*get)(void *handle, const char *name, void *body, size_t *bytes,
                         uint8_t tail[STORE_TAIL], _Atomic size_t *moved, char *fault, bool *again);
  gt_object_state (*remove)(void *handle, const char *name, char *fault, bool *again);
} store_kind;

extern const store_kind store_folder, store_s3;
