/* Files of the format safetensors. */
#include "geotrain/ckpt_safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers are written as they lie in memory");

enum { ALIGNMENT = 8, HEADER_MAX = 100 << 20, BLOCK = 4096 };

static const struct {
  const char *name;
  size_t bytes;
} types[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}};

/* Returns the number of elements; SIZE_MAX: too many to count. */
static size_t elements_of(const gt_safetensor *t) {
  size_t n = 1;
  for (int d = 0; d < t->ndims; d++)
    if (__builtin_mul_overflow(n, t->shape[d], &n)) return SIZE_MAX;
  return n;
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t bytes_of(const gt_safetensor *t) {
  return elements_of(t) * types[t->type].bytes;
}

/* Returns {"dtype": "F32", "shape": [6, 1, 5, 5], "data_offsets": [0, 600]}. */
static json_t *entry(const gt_safetensor *t, size_t at) {
  const size_t end = at + bytes_of(t);
  json_t *shape = json_array();
  for (int d = 0; d < t->ndims; d++)
    json_array_append_new(shape, json_integer((json_int_t)t->shape[d]));
  return json_pack("{s:s, s:o, s:[I,I]}", "dtype", types[t->type].name, "shape", shape,
                   "data_offsets", (json_int_t)at, (json_int_t)end);
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

/* The header is padded with spaces. */
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

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads the length of the header and compares it with the size of the file.  0: not such a file. */
static size_t header_length(FILE *file, size_t *size) {
  uint64_t length;
  struct stat at;
  if (!file || fread(&length, sizeof length, 1, file) != 1 || fstat(fileno(file), &at) != 0)
    return 0;
  *size = (size_t)at.st_size;
  return length <= (uint64_t)at.st_size - sizeof length && length <= HEADER_MAX ? length : 0;
}

bool gt_is_safetensors(const char *path) {
  size_t size;
  FILE *file = fopen(path, "rbe");
  const bool is = header_length(file, &size) > 0 && fgetc(file) == '{';
  if (file) fclose(file);
  return is;
}

static gt_status wrong(const gt_safetensors *f, const char *name) {
  return GT_FAIL(GT_ERR_CKPT,
                 "%s: tensor \"%.80s\" has no valid type, shape and position; expected a complete "
                 "file, as PyTorch's safetensors writes it",
                 f->path, name);
}

/* Reads an entry of the header; the tensors lie in [start, size) of the file. */
static gt_status read_entry(gt_safetensors *f, const char *name, const json_t *of, size_t start,
                            size_t size) {
  gt_safetensor *t = &f->tensors[f->n];
  const json_t *shape = json_object_get(of, "shape"), *span = json_object_get(of, "data_offsets");
  const char *type = json_string_value(json_object_get(of, "dtype"));
  const json_int_t from = json_integer_value(json_array_get(span, 0)),
                   to = json_integer_value(json_array_get(span, 1));
  if (!type || !json_is_array(shape) || json_array_size(span) != 2 || from < 0 || to < from ||
      (size_t)to > size - start)
    return wrong(f, name);
  *t = (gt_safetensor){.ndims = (int)json_array_size(shape), .at = start + (size_t)from};
  if (strlen(name) >= sizeof t->name || t->ndims < 0) return wrong(f, name);
  memcpy(t->name, name, strlen(name));
  while (t->type < GT_SAFETENSOR_OTHER && strcmp(type, types[t->type].name) != 0) t->type++;
  f->n++;
  if (t->ndims > 4) return GT_OK;
  for (int d = 0; d < t->ndims; d++) {
    const json_int_t length = json_integer_value(json_array_get(shape, (size_t)d));
    if (length < 0) return wrong(f, name);
    t->shape[d] = (size_t)length;
  }
  if (t->type == GT_SAFETENSOR_OTHER) return GT_OK;
  const size_t bytes = types[t->type].bytes, n = elements_of(t);
  return (size_t)(to - from) % bytes == 0 && n == (size_t)(to - from) / bytes ? GT_OK
                                                                              : wrong(f, name);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const gt_safetensor *)a)->name, ((const gt_safetensor *)b)->name);
}

static gt_status read_header(gt_safetensors *f, const char *text, size_t length, size_t size) {
  json_error_t error;
  json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
  const char *name;
  json_t *of;
  gt_status status = GT_OK;
  if (!json_is_object(root))
    status = GT_FAIL(GT_ERR_CKPT, "%s: its header is not valid JSON (%s)", f->path,
                     root ? "no object" : error.text);
  f->tensors = GT_NEW_ARRAY(gt_safetensor, json_object_size(root) + 1);
  json_object_foreach(root, name, of) {
    if (status == GT_OK && strcmp(name, "__metadata__") != 0)
      status = read_entry(f, name, of, sizeof(uint64_t) + length, size);
  }
  json_decref(root);
  qsort(f->tensors, f->n, sizeof *f->tensors, by_name);
  return status;
}

gt_status gt_safetensors_open(gt_safetensors *out, const char *path) {
  *out = (gt_safetensors){.file = fopen(path, "rbe")};
  snprintf(out->path, sizeof out->path, "%s", path);
  if (!out->file) return GT_FAIL(GT_ERR_CKPT, "%s: cannot be opened (%s)", path, strerror(errno));
  size_t size;
  const size_t length = header_length(out->file, &size);
  if (length == 0)
    return GT_FAIL(GT_ERR_CKPT, "%s: is not a complete file of the format safetensors", path);
  char *text = gt_alloc(length, 1);
  const gt_status status =
      fread(text, 1, length, out->file) == length
          ? read_header(out, text, length, size)
          : GT_FAIL(GT_ERR_CKPT, "%s: cannot be read (%s)", path, strerror(errno));
  gt_free(text);
  return status;
}

void gt_safetensors_close(gt_safetensors *file) {
  if (file->file) fclose(file->file);
  gt_free(file->tensors);
  *file = (gt_safetensors){0};
}

const gt_safetensor *gt_safetensors_find(const gt_safetensors *file, const char *name) {
  gt_safetensor key = {0};
  snprintf(key.name, sizeof key.name, "%s", name);
  return file->n ? bsearch(&key, file->tensors, file->n, sizeof key, by_name) : NULL;
}

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* IEEE 754 binary16: a subnormal is its fraction times 2^-24. */
static float from_half(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000U) << 16, exponent = h >> 10 & 31U, low = h & 1023U;
  if (exponent == 0) return (sign ? -1.0F : 1.0F) * (float)low * 0x1p-24F;
  return from_bits(sign | (exponent == 31 ? 0x7f800000U : (exponent + 112) << 23) | low << 13);
}

gt_status gt_safetensors_read(const gt_safetensors *file, const gt_safetensor *tensor, float *out) {
  const size_t n = elements_of(tensor);
  const bool half = tensor->type == GT_SAFETENSOR_F16;
  uint16_t block[BLOCK];
  if (tensor->type > GT_SAFETENSOR_BF16 || tensor->ndims > 4)
    return GT_FAIL(GT_ERR_CKPT, "%s: tensor %s has elements of another type than F32, F16 and BF16",
                   file->path, tensor->name);
  errno = 0;
  bool ok = fseeko(file->file, (off_t)tensor->at, SEEK_SET) == 0;
  if (tensor->type == GT_SAFETENSOR_F32) ok = ok && fread(out, sizeof *out, n, file->file) == n;
  for (size_t at = 0; ok && tensor->type != GT_SAFETENSOR_F32 && at < n; at += BLOCK) {
    const size_t count = n - at < BLOCK ? n - at : BLOCK;
    ok = fread(block, sizeof *block, count, file->file) == count;
    for (size_t i = 0; ok && i < count; i++)
      out[at + i] = half ? from_half(block[i]) : from_bits((uint32_t)block[i] << 16);
  }
  return ok ? GT_OK
            : GT_FAIL(GT_ERR_CKPT, "%s: tensor %s cannot be read (%s)", file->path, tensor->name,
                      errno ? strerror(errno) : "it ends early");
}
