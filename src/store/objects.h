/* What a kind of store does with one attempt at a request; called by threads. */
#pragma once

#include "internal.h"

#define STORE_SEAL ((size_t)32) /* bytes of a SHA-256, at the end of every object */

typedef struct {
  /* Opens what a thread needs; NULL: nothing.  place: a folder, or an https URL without the last /. */
  void *(*open)(const char *place, const store_credentials *credentials);
  void (*close)(void *handle);
  /* Each writes why it has failed to fault, of 256 bytes; *again: another attempt can succeed. */
  gt_object_state (*put)(void *handle, const char *name, const void *body, size_t bytes,
                         const uint8_t seal[STORE_SEAL], char *fault, bool *again);
  /* Reads at most *bytes bytes with the seal behind them, and sets *bytes without the seal. */
  gt_object_state (*get)(void *handle, const char *name, void *body, size_t *bytes,
                         uint8_t seal[STORE_SEAL], char *fault, bool *again);
  gt_object_state (*remove)(void *handle, const char *name, char *fault, bool *again);
} store_kind;

extern const store_kind store_folder, store_s3;
