/* A safetensors file: the length of the header in 8 bytes, the header in JSON with the position of
   every tensor, padded with spaces to 8 bytes, then the tensors one after another, all
   little-endian. */
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers are written as they lie in memory");

enum { ALIGNMENT = 8 };

static size_t bytes_of(const gt_safetensor *t) {
  size_t bytes = t->type == GT_SAFETENSOR_I64 ? sizeof(int64_t) : sizeof(float);
  for (int d = 0; d < t->ndims; d++) bytes *= t->shape[d];
  return bytes;
}

/* Returns {"dtype": "F32", "shape": [6, 1, 5, 5], "data_offsets": [0, 600]}. */
static json_t *entry(const gt_safetensor *t, size_t at) {
  const size_t end = at + bytes_of(t);
  json_t *shape = json_array();
  for (int d = 0; d < t->ndims; d++)
    json_array_append_new(shape, json_integer((json_int_t)t->shape[d]));
  return json_pack("{s:s, s:o, s:[I,I]}", "dtype", t->type == GT_SAFETENSOR_I64 ? "I64" : "F32",
                   "shape", shape, "data_offsets", (json_int_t)at, (json_int_t)end);
}

/* Returns the header as text; the caller frees it with free(). */
static char *header(const gt_safetensor *tensors, size_t n, const gt_safetensor_note *notes,
                    size_t nnotes) {
  json_t *root = json_object(), *metadata = json_object();
  size_t at = 0;
  for (size_t i = 0; i < nnotes; i++)
    json_object_set_new(metadata, notes[i].key, json_string(notes[i].value));
  json_object_set_new(root, "__metadata__", metadata);
  for (size_t i = 0; i < n; i++) {
    json_object_set_new(root, tensors[i].name, entry(&tensors[i], at));
    at += bytes_of(&tensors[i]);
  }
  char *text = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER);
  json_decref(root);
  return text;
}

static bool put(FILE *file, const void *data, size_t bytes) {
  return fwrite(data, 1, bytes, file) == bytes;
}

static bool put_all(FILE *file, const char *text, const gt_safetensor *tensors, size_t n) {
  const size_t used = strlen(text), padding = (ALIGNMENT - used % ALIGNMENT) % ALIGNMENT;
  const uint64_t length = used + padding;
  bool ok =
      put(file, &length, sizeof length) && put(file, text, used) && put(file, "        ", padding);
  for (size_t i = 0; ok && i < n; i++) ok = put(file, tensors[i].data, bytes_of(&tensors[i]));
  return ok && fflush(file) == 0 && fsync(fileno(file)) == 0;
}

/* Writes the file under its temporary name and renames it. */
static gt_status publish(const char *path, const char *text, const gt_safetensor *tensors,
                         size_t n) {
  char temporary[4096];
  const int fd = gt_temporary_create(temporary, sizeof temporary, path);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
  if (!file) return GT_FAIL(GT_ERR_DATA, "%s: cannot be written (%s)", path, strerror(errno));
  bool ok = put_all(file, text, tensors, n);
  int reason = errno;
  if (fclose(file) != 0 && ok) ok = false, reason = errno;
  if (ok && rename(temporary, path) != 0) ok = false, reason = errno;
  if (!ok) {
    unlink(temporary);
    return GT_FAIL(GT_ERR_DATA, "%s: cannot be written (%s)", path, strerror(reason));
  }
  if (!gt_name_sync(path))
    return GT_FAIL(GT_ERR_DATA, "%s: its folder cannot be made durable (%s)", path,
                   strerror(errno));
  return GT_OK;
}

gt_status gt_safetensors_write(const char *path, const gt_safetensor *tensors, size_t n,
                               const gt_safetensor_note *notes, size_t nnotes) {
  char *text = header(tensors, n, notes, nnotes);
  if (!text) gt_bug("jansson made no header for %s", path);
  const gt_status status = publish(path, text, tensors, n);
  free(text);
  return status;
}

bool gt_safetensors_is(const char *path) {
  uint64_t length;
  char first = 0;
  FILE *file = fopen(path, "rbe");
  const bool read =
      file && fread(&length, sizeof length, 1, file) == 1 && fread(&first, 1, 1, file) == 1;
  struct stat at;
  const bool fits =
      read && fstat(fileno(file), &at) == 0 && length <= (uint64_t)at.st_size - sizeof length;
  if (file) fclose(file);
  return fits && first == '{';
}
