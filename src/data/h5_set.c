/* Opens a data set that is stored in the file itself.  A file must not redirect the reader to
   another file, nor make it allocate more memory than its data need. */
#include <stdio.h>

#include "geotrain/data_h5.h"
#include "h5.h"

/* Memory allowed for one chunk, whatever the size of the data set. */
#define CHUNK_BYTES ((hsize_t)16 << 20)

/* Called by HDF5 before it opens the file that an external link names. */
static herr_t refuse_link(const char *from, const char *group, const char *to, const char *object,
                          unsigned *flags, hid_t access, void *met) {
  (void)from, (void)group, (void)to, (void)object, (void)flags, (void)access;
  *(bool *)met = true;
  return -1;
}

hid_t gt_data_h5_inside(hid_t class, bool *met) {
  hid_t access = H5Pcreate(class);
  *met = false;
  H5Pset_elink_cb(access, refuse_link, met);
  return access;
}

gt_status gt_data_h5_leads_out(gt_status code, const char *path, const char *name) {
  return GT_FAIL(code,
                 "%s: %s leads to another file (an external link); data in this one are needed",
                 path, name);
}

gt_status gt_data_h5_exists(hid_t file, const char *path, const char *name, bool *there) {
  bool met;
  hid_t access = gt_data_h5_inside(H5P_LINK_ACCESS, &met);
  *there = H5Lexists(file, name, access) > 0 && H5Oexists_by_name(file, name, access) > 0;
  gt_data_h5_close(access);
  return met ? gt_data_h5_leads_out(GT_ERR_DATA, path, name) : GT_OK;
}

/* Accepts chunks larger than the data set up to CHUNK_BYTES: extendible data sets have them. */
static gt_status check_chunks(gt_status code, hid_t dset, hid_t plist, const char *path,
                              const char *name) {
  hsize_t chunk[H5S_MAX_RANK];
  hid_t type = H5Dget_type(dset), space = H5Dget_space(dset);
  const hsize_t element = H5Tget_size(type),
                held = element * (hsize_t)H5Sget_simple_extent_npoints(space);
  const int ndims = H5Pget_chunk(plist, H5S_MAX_RANK, chunk);
  hsize_t bytes = element;
  bool overflow = ndims < 1;
  for (int i = 0; i < ndims; i++) overflow |= __builtin_mul_overflow(bytes, chunk[i], &bytes);
  gt_data_h5_close(space);
  gt_data_h5_close(type);
  if (!overflow && (bytes <= CHUNK_BYTES || bytes <= held)) return GT_OK;
  return GT_FAIL(code,
                 "%s: %s has chunks of %llu bytes, and holds %llu; chunks of at most %llu, or of "
                 "what it holds, are needed",
                 path, name, (unsigned long long)bytes, (unsigned long long)held,
                 (unsigned long long)CHUNK_BYTES);
}

gt_status gt_data_h5_check_layout(gt_status code, hid_t dset, const char *path, const char *name) {
  static const char needed[] = "contiguous, compact or chunked storage in this one is needed";
  hid_t plist = H5Dget_create_plist(dset);
  const H5D_layout_t layout = H5Pget_layout(plist);
  gt_status status = GT_OK;
  if (layout == H5D_VIRTUAL)
    status = GT_FAIL(code, "%s: %s is stored in other files (virtual); %s", path, name, needed);
  else if (layout == H5D_CHUNKED)
    status = check_chunks(code, dset, plist, path, name);
  else if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS)
    status =
        GT_FAIL(code, "%s: %s is stored in no way that this program knows; %s", path, name, needed);
  else if (H5Pget_external_count(plist) != 0)
    status = GT_FAIL(code, "%s: %s is stored in another file; %s", path, name, needed);
  gt_data_h5_close(plist);
  return status;
}

gt_status gt_data_h5_open_set(hid_t file, const char *path, const char *name, const char *shape,
                              hid_t *dset) {
  char reason[256];
  bool met;
  hid_t access = gt_data_h5_inside(H5P_DATASET_ACCESS, &met);
  *dset = H5Dopen2(file, name, access);
  if (*dset < 0) gt_data_h5_reason(reason, sizeof reason);
  gt_data_h5_close(access);
  if (met) return gt_data_h5_leads_out(GT_ERR_DATA, path, name);
  if (*dset < 0)
    return GT_FAIL(GT_ERR_DATA, "%s: %s cannot be opened (%s); a data set %s is needed", path, name,
                   reason, shape);
  return gt_data_h5_check_layout(GT_ERR_DATA, *dset, path, name);
}
