/* A state list as an HDF5 image in memory: items are datasets named by their paths; the info is
   stored as attributes of the root. */
#include <errno.h>
#include <hdf5.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* ---- an image in memory ---------------------------------------------------------------------- */

#define FIELD(member, kind, count)                                                                 \
  { #member, kind, false, offsetof(gt_ckpt_info, member), count }
const gt_ckpt_field gt_ckpt_fields[] = {
    FIELD(job_name, CKPT_TEXT, sizeof(((gt_ckpt_info *)0)->job_name)),
    FIELD(region, CKPT_TEXT, sizeof(((gt_ckpt_info *)0)->region)),
    FIELD(model, CKPT_TEXT, sizeof(((gt_ckpt_info *)0)->model)),
    FIELD(model_hash, CKPT_TEXT, sizeof(((gt_ckpt_info *)0)->model_hash)),
    FIELD(round, CKPT_I64, 1),
    FIELD(step, CKPT_I64, 1),
    FIELD(samples, CKPT_I64, 1),
    FIELD(elapsed_s, CKPT_F64, 1),
    FIELD(shape, CKPT_I64, 4),
    {"features", CKPT_I64, true, offsetof(gt_ckpt_info, features), 1},
    {"run_id", CKPT_TEXT, true, offsetof(gt_ckpt_info, run_id), GT_RUN_ID},
    {"kernels", CKPT_TEXT, true, offsetof(gt_ckpt_info, kernels),
     sizeof(((gt_ckpt_info *)0)->kernels)},
    {"doubtful", CKPT_I64, true, offsetof(gt_ckpt_info, doubtful), 1},
    {"mean_of", CKPT_I64, true, offsetof(gt_ckpt_info, mean_of), 1},
    {"params_sha256", CKPT_TEXT, true, offsetof(gt_ckpt_info, params_sha256),
     sizeof(((gt_ckpt_info *)0)->params_sha256)},
};
const size_t gt_ckpt_nfields = sizeof(gt_ckpt_fields) / sizeof(gt_ckpt_fields[0]);

/* Types on disk are little-endian on every machine. */
static hid_t disk_type(gt_type type) {
  switch (type) {
  case GT_TYPE_F32:
    return H5T_IEEE_F32LE;
  case GT_TYPE_F64:
    return H5T_IEEE_F64LE;
  case GT_TYPE_I64:
    return H5T_STD_I64LE;
  case GT_TYPE_U8:
    return H5T_STD_U8LE;
  }
  return H5I_INVALID_HID;
}

static hid_t memory_type(gt_type type) {
  switch (type) {
  case GT_TYPE_F32:
    return H5T_NATIVE_FLOAT;
  case GT_TYPE_F64:
    return H5T_NATIVE_DOUBLE;
  case GT_TYPE_I64:
    return H5T_NATIVE_INT64;
  case GT_TYPE_U8:
    return H5T_NATIVE_UINT8;
  }
  return H5I_INVALID_HID;
}

/* Writes a dataset of `count` elements and creates missing groups.  No times are stored: the same
   state gives the same bytes. */
static bool put_dataset(hid_t file, const char *name, hid_t disk, hid_t memory, size_t count,
                        const void *data) {
  hsize_t dims = count;
  hid_t space = H5Screate_simple(1, &dims, NULL), link = H5Pcreate(H5P_LINK_CREATE),
        create = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_create_intermediate_group(link, 1);
  H5Pset_obj_track_times(create, 0);
  hid_t set = H5Dcreate2(file, name, disk, space, link, create, H5P_DEFAULT);
  bool ok =
      set >= 0 && (count == 0 || H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
  if (set >= 0) ok = H5Dclose(set) >= 0 && ok;
  H5Pclose(create);
  H5Pclose(link);
  H5Sclose(space);
  return ok;
}

static bool put_attribute(hid_t file, const char *name, hid_t disk, hid_t memory, size_t count,
                          const void *data) {
  hsize_t dims = count;
  hid_t space = count == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &dims, NULL);
  hid_t attribute = H5Acreate2(file, name, disk, space, H5P_DEFAULT, H5P_DEFAULT);
  bool ok = attribute >= 0 && H5Awrite(attribute, memory, data) >= 0;
  if (attribute >= 0) H5Aclose(attribute);
  H5Sclose(space);
  return ok;
}

static hid_t text_type(size_t bytes) {
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, bytes);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

/* put_info writes the attributes to an open HDF5 file, put_item an item; false: HDF5 failed. */
static bool put_info(int64_t file, const gt_ckpt_info *info) {
  int64_t schema = CKPT_SCHEMA;
  bool ok = put_attribute(file, "geotrain_checkpoint", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &schema);
  for (size_t i = 0; ok && i < gt_ckpt_nfields; i++) {
    const gt_ckpt_field *field = &gt_ckpt_fields[i];
    const char *value = (const char *)info + field->offset;
    if (field->kind == CKPT_TEXT) {
      hid_t type = text_type(strnlen(value, field->count - 1) + 1);
      ok = put_attribute(file, field->name, type, type, 1, value);
      H5Tclose(type);
    } else if (field->kind == CKPT_I64) {
      ok = put_attribute(file, field->name, H5T_STD_I64LE, H5T_NATIVE_INT64, field->count, value);
    } else {
      ok = put_attribute(file, field->name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, field->count, value);
    }
  }
  if (!ok) return false;
  const char *yaml = info->job_yaml ? info->job_yaml : "";
  hid_t type = text_type(strlen(yaml) + 1);
  ok = put_dataset(file, CKPT_JOB_DATASET, type, type, 1, yaml);
  H5Tclose(type);
  return ok;
}

static bool put_item(int64_t file, const gt_state_item *item) {
  return put_dataset(file, item->name, disk_type(item->type), memory_type(item->type), item->count,
                     item->data);
}

/* Version bounds are fixed to the oldest sufficient format, which every HDF5 tool reads.  Its
   superblock has no checksum: HDF5 1.10's H5Fget_file_image leaves a stale one in newer
   superblocks. */
static hid_t create(const char *name, hid_t access) {
  hid_t how = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  H5Pset_userblock(how, CKPT_BLOCK);
  H5Pset_obj_track_times(how, 0);
  hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, how, access);
  H5Pclose(how);
  H5Pclose(access);
  return file;
}

/* Without backing store. */
static int64_t create_image(size_t bytes) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, bytes, 0);
  return create("geotrain-checkpoint", access);
}

static int64_t create_file(const char *path) {
  return create(path, H5Pcreate(H5P_FILE_ACCESS));
}

static size_t image_bytes(const gt_state *state) {
  size_t bytes = 1u << 20;
  for (size_t i = 0; i < state->n; i++)
    bytes += state->items[i].count * gt_type_size(state->items[i].type);
  return bytes;
}

/* Copies the image after the user block.  In some library versions the image includes the user
   block; the position of the signature shows it. */
static bool take_image(hid_t image, gt_ckpt_file *file) {
  static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  if (H5Fflush(image, H5F_SCOPE_GLOBAL) < 0) return false;
  ssize_t size = H5Fget_file_image(image, NULL, 0);
  if (size < CKPT_BLOCK) return false;
  file->bytes = GT_NEW_ARRAY(unsigned char, (size_t)size + CKPT_BLOCK);
  file->size = (size_t)size + CKPT_BLOCK;
  unsigned char *body = file->bytes + CKPT_BLOCK;
  if (H5Fget_file_image(image, body, (size_t)size) != size) return false;
  if (memcmp(body, signature, sizeof signature) != 0) {
    memmove(file->bytes, body, (size_t)size);
    file->size = (size_t)size;
    memset(file->bytes, 0, CKPT_BLOCK);
  }
  return memcmp(body, signature, sizeof signature) == 0;
}

static gt_status fill_image(hid_t image, const gt_ckpt_info *info, const gt_state *state,
                            gt_ckpt_file *file) {
  if (image < 0)
    return GT_FAIL(GT_ERR_CKPT,
                   "HDF5 could not create an image in memory; expected the core driver");
  if (!put_info(image, info))
    return GT_FAIL(GT_ERR_CKPT, "HDF5 rejected the checkpoint's attributes of region %s",
                   info->region);
  for (size_t i = 0; i < state->n; i++) {
    const gt_state_item *item = &state->items[i];
    if (!put_item(image, item))
      return GT_FAIL(
          GT_ERR_CKPT,
          "HDF5 rejected the state item '%s' of %zu elements; names must be distinct paths",
          item->name, item->count);
  }
  if (!take_image(image, file))
    return GT_FAIL(GT_ERR_CKPT, "HDF5 could not return the image of region %s", info->region);
  return GT_OK;
}

gt_ckpt_silence gt_ckpt_be_silent(void) {
  H5E_auto2_t print;
  gt_ckpt_silence before;
  H5Eget_auto2(H5E_DEFAULT, &print, &before.data);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  before.print = print;
  return before;
}

void gt_ckpt_speak(gt_ckpt_silence before) {
  H5Eset_auto2(H5E_DEFAULT, before.print, before.data);
}

gt_status gt_ckpt_image_encode(gt_ckpt_file *file, const gt_ckpt_info *info,
                               const gt_state *state) {
  *file = (gt_ckpt_file){0};
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  hid_t image = create_image(image_bytes(state));
  gt_status status = fill_image(image, info, state, file);
  if (image >= 0) H5Fclose(image);
  gt_ckpt_speak(before);
  if (status != GT_OK) {
    gt_free(file->bytes);
    *file = (gt_ckpt_file){0};
  }
  return status;
}

/* ---- a file on disk, part by part ------------------------------------------------------------ */

/* A final model written in parts: the datasets are created first, and every part is a hyperslab of
   them. */

#define READ_AT_ONCE ((size_t)1 << 18) /* floats */

struct gt_ckpt_parts {
  char temporary[PATH_MAX], final[PATH_MAX + 64];
  hid_t file, params, buffers; /* negative: not open */
  size_t nparams, nbuffers;
  bool finished;
};

static gt_status refused(const gt_ckpt_parts *p, const char *what) {
  return GT_FAIL(GT_ERR_CKPT, "%s: the final model could not be %s: %s", p->temporary, what,
                 errno ? strerror(errno) : "HDF5 refused");
}

/* HDF5 writes nothing before the first part. */
static hid_t create_set(hid_t file, const char *name, size_t count) {
  hsize_t dims = count;
  hid_t space = H5Screate_simple(1, &dims, NULL), link = H5Pcreate(H5P_LINK_CREATE),
        how = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_create_intermediate_group(link, 1);
  H5Pset_obj_track_times(how, 0);
  H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
  hid_t set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, link, how, H5P_DEFAULT);
  H5Pclose(how);
  H5Pclose(link);
  H5Sclose(space);
  return set;
}

gt_status gt_ckpt_parts_open(gt_ckpt_parts **out, const char *run_dir, size_t nparams,
                             size_t nbuffers) {
  gt_ckpt_parts *p = GT_NEW(gt_ckpt_parts);
  *p = (gt_ckpt_parts){
      .file = -1, .params = -1, .buffers = -1, .nparams = nparams, .nbuffers = nbuffers};
  *out = NULL;
  gt_ckpt_final_model_path(p->final, sizeof p->final, run_dir, NULL);
  const int fd = gt_temporary_create(p->temporary, sizeof p->temporary, p->final);
  if (fd < 0) {
    gt_free(p);
    return GT_FAIL(GT_ERR_CKPT, "%s/final.h5: the final model could not be created: %s", run_dir,
                   strerror(errno));
  }
  close(fd);
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  errno = 0;
  p->file = create_file(p->temporary);
  if (p->file >= 0) {
    p->params = create_set(p->file, CKPT_PARAMS, nparams);
    p->buffers = create_set(p->file, CKPT_BUFFERS, nbuffers);
  }
  gt_ckpt_speak(before);
  if (p->params >= 0 && p->buffers >= 0) {
    *out = p;
    return GT_OK;
  }
  const gt_status status = refused(p, "begun");
  gt_ckpt_parts_close(p);
  return status;
}

bool gt_ckpt_move(int64_t set, size_t at, void *data, size_t n, bool reads) {
  hsize_t start = at, count = n;
  hid_t memory = H5Screate_simple(1, &count, NULL), space = H5Dget_space(set);
  bool ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0;
  if (ok && reads)
    ok = H5Dread(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, data) >= 0;
  else if (ok)
    ok = H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, data) >= 0;
  H5Sclose(space);
  H5Sclose(memory);
  return ok;
}

static void check_place(const gt_ckpt_parts *p, bool buffers, size_t at, size_t n) {
  const size_t all = buffers ? p->nbuffers : p->nparams;
  if (at > all || n > all - at)
    gt_bug("floats %zu to %zu of a final model with %zu", at, at + n, all);
}

gt_status gt_ckpt_parts_put(gt_ckpt_parts *parts, bool buffers, size_t at, const float *data,
                            size_t n) {
  check_place(parts, buffers, at, n);
  if (n == 0) return GT_OK;
  gt_failpoint("ckpt.part");
  errno = 0;
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  const bool ok =
      gt_ckpt_move(buffers ? parts->buffers : parts->params, at, (void *)(uintptr_t)data, n, false);
  gt_ckpt_speak(before);
  return ok ? GT_OK : refused(parts, "written");
}

gt_status gt_ckpt_parts_get(gt_ckpt_parts *parts, bool buffers, size_t at, float *data, size_t n) {
  check_place(parts, buffers, at, n);
  if (n == 0) return GT_OK;
  errno = 0;
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  const bool ok = gt_ckpt_move(buffers ? parts->buffers : parts->params, at, data, n, true);
  gt_ckpt_speak(before);
  return ok ? GT_OK : refused(parts, "read");
}

/* Hashes the parameters as read back from disk, because the summary's hash refers to the file. */
static bool hash_params(const gt_ckpt_parts *p, char hex[GT_SHA256_HEX]) {
  float *part = GT_NEW_ARRAY(float, READ_AT_ONCE);
  gt_sha256 *hash = gt_sha256_begin();
  bool ok = true;
  for (size_t at = 0, n; ok && at < p->nparams; at += n) {
    n = p->nparams - at < READ_AT_ONCE ? p->nparams - at : READ_AT_ONCE;
    ok = gt_ckpt_move(p->params, at, part, n, true);
    gt_sha256_add(hash, part, n * sizeof *part);
  }
  gt_sha256_end(hash, hex);
  gt_free(part);
  return ok;
}

static bool close_file(gt_ckpt_parts *p) {
  bool ok = true;
  if (p->params >= 0) ok = H5Dclose(p->params) >= 0 && ok;
  if (p->buffers >= 0) ok = H5Dclose(p->buffers) >= 0 && ok;
  if (p->file >= 0) ok = H5Fclose(p->file) >= 0 && ok;
  p->file = p->params = p->buffers = -1;
  return ok;
}

gt_status gt_ckpt_parts_finish(gt_ckpt_parts *parts, gt_ckpt_info *info, const gt_state *rest) {
  errno = 0;
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  bool ok = hash_params(parts, info->params_sha256) && put_info(parts->file, info);
  for (size_t i = 0; ok && i < rest->n; i++) ok = put_item(parts->file, &rest->items[i]);
  ok = close_file(parts) && ok;
  gt_ckpt_speak(before);
  if (!ok) return refused(parts, "completed");
  GT_TRY(gt_ckpt_file_finish(parts->temporary, parts->final));
  parts->finished = true;
  return GT_OK;
}

void gt_ckpt_parts_close(gt_ckpt_parts *parts) {
  if (!parts) return;
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  close_file(parts);
  gt_ckpt_speak(before);
  if (!parts->finished) unlink(parts->temporary);
  gt_free(parts);
}
