/* A final model that is written in parts: the datasets are on disk from the begin, and every part
   is a hyperslab of them. */
#include "internal.h"

#include <errno.h>
#include <hdf5.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* Nothing is written before the first part. */
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
    return GT_FAIL(GT_ERR_CKPT, "%s/final.h5: the final model could not be begun: %s", run_dir,
                   strerror(errno));
  }
  close(fd);
  const gt_ckpt_silence before = gt_ckpt_be_silent();
  errno = 0;
  p->file = gt_ckpt_create_file(p->temporary);
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

/* The parameters as they are on disk: the file is what the summary refers to. */
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
  bool ok = hash_params(parts, info->params_sha256) && gt_ckpt_put_info(parts->file, info);
  for (size_t i = 0; ok && i < rest->n; i++) ok = gt_ckpt_put_item(parts->file, &rest->items[i]);
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
