/* Decodes an HDF5 image to a state list.  The image is untrusted: types, ranks, names and sizes are
   all checked. */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/data_h5.h"
#include "internal.h"

/* More groups than a name of 95 bytes has in practice. */
#define MAX_DEPTH 16

typedef struct {
  const char *path;
  gt_state *state;
  gt_ckpt_info *info;
  bool without_model; /* skips the arrays of the model */
} reading;

static gt_status get_number(const reading *r, hid_t image, const char *name, hid_t memory,
                            H5T_class_t class, size_t count, void *out) {
  hid_t attribute = H5Aopen(image, name, H5P_DEFAULT);
  if (attribute < 0)
    return GT_FAIL(GT_ERR_CKPT, "%s: the attribute '%s' is missing", r->path, name);
  hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
  bool ok = H5Tget_class(type) == class && H5Sget_simple_extent_npoints(space) == (hssize_t)count &&
            H5Aread(attribute, memory, out) >= 0;
  H5Sclose(space);
  H5Tclose(type);
  H5Aclose(attribute);
  if (!ok)
    return GT_FAIL(GT_ERR_CKPT, "%s: the attribute '%s' is not %zu numbers of its type", r->path,
                   name, count);
  return GT_OK;
}

static gt_status get_text(const reading *r, hid_t image, const char *name, size_t capacity,
                          char *out) {
  hid_t attribute = H5Aopen(image, name, H5P_DEFAULT);
  if (attribute < 0)
    return GT_FAIL(GT_ERR_CKPT, "%s: the attribute '%s' is missing", r->path, name);
  hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
  size_t size = H5Tget_size(type);
  bool ok = H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && size <= capacity &&
            H5Sget_simple_extent_npoints(space) == 1 && H5Aread(attribute, type, out) >= 0;
  out[capacity - 1] = '\0';
  H5Sclose(space);
  H5Tclose(type);
  H5Aclose(attribute);
  if (!ok)
    return GT_FAIL(GT_ERR_CKPT, "%s: the attribute '%s' is not a text of at most %zu bytes",
                   r->path, name, capacity - 1);
  return GT_OK;
}

static gt_status get_info(const reading *r, hid_t image) {
  int64_t schema = 0;
  GT_TRY(get_number(r, image, "geotrain_checkpoint", H5T_NATIVE_INT64, H5T_INTEGER, 1, &schema));
  if (schema != CKPT_SCHEMA)
    return GT_FAIL(GT_ERR_CKPT, "%s: its schema is %lld; this program reads %d", r->path,
                   (long long)schema, CKPT_SCHEMA);
  for (size_t i = 0; i < gt_ckpt_nfields; i++) {
    const gt_ckpt_field *field = &gt_ckpt_fields[i];
    char *to = (char *)r->info + field->offset;
    if (field->later && H5Aexists(image, field->name) == 0) continue;
    switch (field->kind) {
    case CKPT_TEXT:
      GT_TRY(get_text(r, image, field->name, field->count, to));
      break;
    case CKPT_I64:
      GT_TRY(get_number(r, image, field->name, H5T_NATIVE_INT64, H5T_INTEGER, field->count, to));
      break;
    case CKPT_F64:
      GT_TRY(get_number(r, image, field->name, H5T_NATIVE_DOUBLE, H5T_FLOAT, field->count, to));
      break;
    }
  }
  return GT_OK;
}

static gt_status get_job(const reading *r, hid_t set) {
  hid_t type = H5Dget_type(set), space = H5Dget_space(set);
  bool ok = H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
            H5Sget_simple_extent_npoints(space) == 1 && !r->info->job_yaml;
  if (ok) {
    r->info->job_yaml = gt_alloc(H5Tget_size(type) + 1, 1);
    ok = H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, r->info->job_yaml) >= 0;
  }
  H5Sclose(space);
  H5Tclose(type);
  if (!ok) return GT_FAIL(GT_ERR_CKPT, "%s: '%s' is not one text", r->path, CKPT_JOB_DATASET);
  return GT_OK;
}

/* Sets the type of an item and its HDF5 memory type; false if the type is not supported. */
static bool item_type(hid_t type, gt_type *out, hid_t *memory) {
  if (H5Tequal(type, H5T_IEEE_F32LE) > 0)
    return *out = GT_TYPE_F32, *memory = H5T_NATIVE_FLOAT, true;
  if (H5Tequal(type, H5T_IEEE_F64LE) > 0)
    return *out = GT_TYPE_F64, *memory = H5T_NATIVE_DOUBLE, true;
  if (H5Tequal(type, H5T_STD_I64LE) > 0)
    return *out = GT_TYPE_I64, *memory = H5T_NATIVE_INT64, true;
  if (H5Tequal(type, H5T_STD_U8LE) > 0) return *out = GT_TYPE_U8, *memory = H5T_NATIVE_UINT8, true;
  return false;
}

/* Requires that a dataset stores all the data that it declares, as in every checkpoint, so that
   reading it needs no more memory than the file has bytes. */
static gt_status check_set(const reading *r, hid_t set, const char *name) {
  GT_TRY(gt_data_h5_check_layout(GT_ERR_CKPT, set, r->path, name));
  hid_t type = H5Dget_type(set), space = H5Dget_space(set), plist = H5Dget_create_plist(set);
  const bool chunked = H5Pget_layout(plist) == H5D_CHUNKED;
  const hssize_t points = H5Sget_simple_extent_npoints(space);
  hsize_t bytes = H5Tget_size(type);
  const bool overflow = points < 0 || __builtin_mul_overflow(bytes, (hsize_t)points, &bytes);
  H5Pclose(plist);
  H5Sclose(space);
  H5Tclose(type);
  if (!overflow && !chunked && (bytes == 0 || H5Dget_storage_size(set) >= bytes)) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 "%s: '%s' declares %llu bytes and the file holds %llu of them; expected all, "
                 "without compression",
                 r->path, name, (unsigned long long)bytes,
                 (unsigned long long)H5Dget_storage_size(set));
}

static gt_status get_item(const reading *r, hid_t set, const char *name) {
  hid_t type = H5Dget_type(set), space = H5Dget_space(set), memory = H5I_INVALID_HID;
  gt_type ours = GT_TYPE_U8;
  bool ok = item_type(type, &ours, &memory) && H5Sget_simple_extent_ndims(space) == 1;
  hssize_t count = ok ? H5Sget_simple_extent_npoints(space) : -1;
  H5Sclose(space);
  H5Tclose(type);
  if (count < 0)
    return GT_FAIL(GT_ERR_CKPT, "%s: '%s' is not a list of float32, float64, int64 or uint8",
                   r->path, name);
  void *data = gt_alloc(count ? (size_t)count : 1, gt_type_size(ours));
  if (count && H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) {
    gt_free(data);
    return GT_FAIL(GT_ERR_CKPT, "%s: HDF5 could not read '%s'", r->path, name);
  }
  gt_state_add(r->state, "", name, ours, data, (size_t)count);
  return GT_OK;
}

static gt_status walk(const reading *r, hid_t group, const char *prefix, int depth);

static gt_status take_dataset(const reading *r, hid_t set, const char *name) {
  GT_TRY(check_set(r, set, name));
  if (strcmp(name, CKPT_JOB_DATASET) == 0) return get_job(r, set);
  const bool model = strcmp(name, CKPT_PARAMS) == 0 || strcmp(name, CKPT_BUFFERS) == 0;
  return model && r->without_model ? GT_OK : get_item(r, set, name);
}

static gt_status take_object(const reading *r, hid_t object, const char *name, int depth) {
  H5I_type_t kind = H5Iget_type(object);
  if (kind == H5I_DATASET) return take_dataset(r, object, name);
  if (kind == H5I_GROUP && depth < MAX_DEPTH) return walk(r, object, name, depth + 1);
  return GT_FAIL(GT_ERR_CKPT, "%s: '%s' is neither a dataset nor a group of at most %d levels",
                 r->path, name, MAX_DEPTH);
}

static gt_status walk(const reading *r, hid_t group, const char *prefix, int depth) {
  H5G_info_t members;
  if (H5Gget_info(group, &members) < 0)
    return GT_FAIL(GT_ERR_CKPT, "%s: HDF5 could not list '/%s'", r->path, prefix);
  gt_status status = GT_OK;
  for (hsize_t i = 0; status == GT_OK && i < members.nlinks; i++) {
    char link[sizeof(((gt_state_item *)0)->name)], name[2 * sizeof link];
    ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, link,
                                        sizeof link, H5P_DEFAULT);
    if (length <= 0 || (size_t)length >= sizeof link)
      return GT_FAIL(GT_ERR_CKPT, "%s: a name in '/%s' has %zd bytes; expected 1 to %zu", r->path,
                     prefix, length, sizeof link - 1);
    int total = snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "/" : "", link);
    if ((size_t)total >= sizeof link)
      return GT_FAIL(GT_ERR_CKPT, "%s: the name '%s' has %d bytes; expected at most %zu", r->path,
                     name, total, sizeof link - 1);
    bool met;
    hid_t access = gt_data_h5_inside(H5P_LINK_ACCESS, &met), object = H5Oopen(group, link, access);
    H5Pclose(access);
    if (met) return gt_data_h5_leads_out(GT_ERR_CKPT, r->path, name);
    if (object < 0) return GT_FAIL(GT_ERR_CKPT, "%s: HDF5 could not open '%s'", r->path, name);
    status = take_object(r, object, name, depth);
    H5Oclose(object);
  }
  return status;
}

static gt_status read_image(const reading *r, hid_t image) {
  if (image < 0)
    return GT_FAIL(
        GT_ERR_CKPT,
        "%s: its SHA-256 is right but HDF5 cannot open it; expected a checkpoint of this program",
        r->path);
  GT_TRY(get_info(r, image));
  hid_t root = H5Gopen2(image, "/", H5P_DEFAULT);
  if (root < 0) return GT_FAIL(GT_ERR_CKPT, "%s: HDF5 could not open its root", r->path);
  gt_status status = walk(r, root, "", 0);
  H5Gclose(root);
  if (status == GT_OK && !r->info->job_yaml)
    return GT_FAIL(GT_ERR_CKPT, "%s: the dataset '%s' is missing", r->path, CKPT_JOB_DATASET);
  return status;
}

gt_status gt_ckpt_image_decode(const gt_ckpt_file *file, const char *path, gt_ckpt_info *info,
                               gt_state *state) {
  *info = (gt_ckpt_info){0};
  *state = (gt_state){.owns_data = true};
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, 1u << 20, 0);
  H5Pset_file_image(access, file->bytes, file->size);
  hid_t image = H5Fopen("geotrain-checkpoint", H5F_ACC_RDONLY, access);
  gt_status status = read_image(&(reading){path, state, info, false}, image);
  if (image >= 0) H5Fclose(image);
  H5Pclose(access);
  gt_ckpt_speak(before);
  if (status != GT_OK) {
    gt_state_close(state);
    gt_ckpt_info_close(info);
  }
  return status;
}

/* Decodes an open HDF5 file (negative: HDF5 could not open it), without the arrays of the model. */
static gt_status decode_file(int64_t file, const char *path, gt_ckpt_info *info, gt_state *state) {
  *info = (gt_ckpt_info){0};
  *state = (gt_state){.owns_data = true};
  const gt_status status = read_image(&(reading){path, state, info, true}, file);
  if (status != GT_OK) {
    gt_state_close(state);
    gt_ckpt_info_close(info);
  }
  return status;
}

void gt_ckpt_info_close(gt_ckpt_info *info) {
  if (!info) return;
  gt_free(info->job_yaml);
  info->job_yaml = NULL;
}

gt_status gt_ckpt_read(const char *path, gt_ckpt_info *info, gt_state *state) {
  gt_ckpt_file file;
  *info = (gt_ckpt_info){0};
  *state = (gt_state){.owns_data = true};
  GT_TRY(gt_ckpt_file_read(&file, path));
  gt_status status = gt_ckpt_image_decode(&file, path, info, state);
  gt_free(file.bytes);
  return status;
}

gt_status gt_ckpt_read_round(const char *run_dir, int64_t round, const char *region,
                             gt_ckpt_info *info, gt_state *state) {
  char path[PATH_MAX];
  GT_TRY(gt_ckpt_read(gt_ckpt_path(path, sizeof path, run_dir, round, region), info, state));
  if (info->round == round && strcmp(info->region, region) == 0) return GT_OK;
  gt_status status =
      GT_FAIL(GT_ERR_CKPT,
              "%s: it is the file of round %lld of region %s; expected round %lld of region %s",
              path, (long long)info->round, info->region, (long long)round, region);
  gt_state_close(state);
  gt_ckpt_info_close(info);
  return status;
}

/* ---- a file that stays open ------------------------------------------------------------------ */

/* A file whose model is read range by range. */

struct gt_ckpt_source {
  char path[PATH_MAX];
  hid_t file, sets[2]; /* negative: not open; sets: parameters, buffers */
  size_t floats[2];
};

/* Opens a list of float32 and gets its length. */
static bool open_set(gt_ckpt_source *s, int kind, const char *name) {
  s->sets[kind] = H5Dopen2(s->file, name, H5P_DEFAULT);
  if (s->sets[kind] < 0) return false;
  hid_t type = H5Dget_type(s->sets[kind]), space = H5Dget_space(s->sets[kind]);
  const bool list = H5Tequal(type, H5T_IEEE_F32LE) > 0 && H5Sget_simple_extent_ndims(space) == 1;
  const hssize_t count = list ? H5Sget_simple_extent_npoints(space) : -1;
  H5Sclose(space);
  H5Tclose(type);
  s->floats[kind] = count > 0 ? (size_t)count : 0;
  return count >= 0;
}

static gt_status open_file(gt_ckpt_source *s, gt_ckpt_info *info, gt_state *state) {
  s->file = H5Fopen(s->path, H5F_ACC_RDONLY, H5P_DEFAULT);
  GT_TRY(decode_file(s->file, s->path, info, state));
  if (open_set(s, 0, CKPT_PARAMS) && open_set(s, 1, CKPT_BUFFERS)) return GT_OK;
  gt_state_close(state);
  gt_ckpt_info_close(info);
  return GT_FAIL(GT_ERR_CKPT, "%s: it holds no model; expected %s and %s, lists of float32",
                 s->path, CKPT_PARAMS, CKPT_BUFFERS);
}

gt_status gt_ckpt_source_open(gt_ckpt_source **out, const char *path, gt_ckpt_info *info,
                              gt_state *state) {
  *out = NULL;
  *info = (gt_ckpt_info){0};
  *state = (gt_state){.owns_data = true};
  GT_TRY(gt_ckpt_file_check(path));
  gt_ckpt_source *s = GT_NEW(gt_ckpt_source);
  *s = (gt_ckpt_source){.file = -1, .sets = {-1, -1}};
  snprintf(s->path, sizeof s->path, "%s", path);
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  const gt_status status = open_file(s, info, state);
  gt_ckpt_speak(before);
  if (status == GT_OK)
    *out = s;
  else
    gt_ckpt_source_close(s);
  return status;
}

void gt_ckpt_source_close(gt_ckpt_source *source) {
  if (!source) return;
  for (int kind = 0; kind < 2; kind++)
    if (source->sets[kind] >= 0) H5Dclose(source->sets[kind]);
  if (source->file >= 0) H5Fclose(source->file);
  gt_free(source);
}

size_t gt_ckpt_source_floats(const gt_ckpt_source *source, bool buffers) {
  return source->floats[buffers];
}

gt_status gt_ckpt_source_get(const gt_ckpt_source *source, bool buffers, size_t at, float *data,
                             size_t n) {
  const char *name = buffers ? CKPT_BUFFERS : CKPT_PARAMS;
  const size_t all = source->floats[buffers];
  if (at > all || n > all - at)
    return GT_FAIL(GT_ERR_CKPT, "%s: it has %zu floats of %s; expected %zu from %zu on",
                   source->path, all, name, n, at);
  if (n == 0) return GT_OK;
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  const bool ok = gt_ckpt_move(source->sets[buffers], at, data, n, true);
  gt_ckpt_speak(before);
  return ok ? GT_OK : GT_FAIL(GT_ERR_CKPT, "%s: HDF5 could not read %s", source->path, name);
}
