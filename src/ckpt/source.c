/* A file whose model is read range by range. */
#include "internal.h"

#include <hdf5.h>
#include <stdio.h>

struct gt_ckpt_source {
  char path[PATH_MAX];
  hid_t file, sets[2]; /* negative: not open; sets: parameters, buffers */
  size_t floats[2];
};

/* A list of float32, and its length. */
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
  GT_TRY(gt_ckpt_file_decode(s->file, s->path, info, state));
  if (open_set(s, 0, CKPT_PARAMS) && open_set(s, 1, CKPT_BUFFERS)) return GT_OK;
  gt_state_close(state);
  gt_ckpt_info_close(info);
  return GT_FAIL(GT_ERR_CKPT, "%s: it holds no model: %s and %s, lists of float32, are needed",
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
    return GT_FAIL(GT_ERR_CKPT, "%s: it has %zu floats of %s; %zu from %zu on are needed",
                   source->path, all, name, n, at);
  if (n == 0) return GT_OK;
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  const bool ok = gt_ckpt_move(source->sets[buffers], at, data, n, true);
  gt_ckpt_speak(before);
  return ok ? GT_OK : GT_FAIL(GT_ERR_CKPT, "%s: HDF5 could not read %s", source->path, name);
}
