/* Reads attributes of exactly one kind: an integer, a text, or n float32. */
#include <stdio.h>
#include <string.h>

#include "h5.h"

static const char *where(hid_t object, char *buf, size_t size) {
  ssize_t n = H5Iget_name(object, buf, size);
  if (n <= 0) snprintf(buf, size, "/");
  return buf;
}

/* Opens the attribute and its type, and counts its elements; `rank` 0 is a scalar. */
static gt_status attr_open(hid_t object, const char *path, const char *name, hid_t *attr,
                           hid_t *type, int *rank, hssize_t *count) {
  char at[128], reason[256];
  *attr = *type = -1;
  if (H5Aexists(object, name) <= 0)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: the attribute `%s` of %s is missing; docs/data-format.md lists what is needed", path,
        name, where(object, at, sizeof at));
  *attr = H5Aopen(object, name, H5P_DEFAULT);
  if (*attr < 0)
    return GT_FAIL(GT_ERR_DATA, "%s: the attribute `%s` cannot be opened (%s)", path, name,
                   gt_data_h5_reason(reason, sizeof reason));
  *type = H5Aget_type(*attr);
  hid_t space = H5Aget_space(*attr);
  *rank = H5Sget_simple_extent_ndims(space);
  *count = H5Sget_simple_extent_npoints(space);
  gt_data_h5_close(space);
  if (*type >= 0 && *rank >= 0 && *count >= 0) return GT_OK;
  gt_data_h5_close(*type);
  gt_data_h5_close(*attr);
  return GT_FAIL(GT_ERR_DATA, "%s: the attribute `%s` has no readable type or shape", path, name);
}

static gt_status unreadable(const char *path, const char *name) {
  char reason[256];
  return GT_FAIL(GT_ERR_DATA, "%s: the attribute `%s` cannot be read (%s)", path, name,
                 gt_data_h5_reason(reason, sizeof reason));
}

gt_status gt_data_h5_attr_int(hid_t object, const char *path, const char *name, int64_t *out) {
  char found[48];
  hid_t attr, type;
  int rank;
  hssize_t count;
  gt_status status = GT_OK;
  GT_TRY(attr_open(object, path, name, &attr, &type, &rank, &count));
  if (H5Tget_class(type) != H5T_INTEGER || count != 1)
    status = GT_FAIL(GT_ERR_DATA,
                     "%s: the attribute `%s` is %s with %lld elements; one integer is needed", path,
                     name, gt_data_h5_type_name(type, found, sizeof found), (long long)count);
  else if (H5Aread(attr, H5T_NATIVE_INT64, out) < 0)
    status = unreadable(path, name);
  gt_data_h5_close(type);
  gt_data_h5_close(attr);
  return status;
}

/* h5py writes texts of variable length, this program writes fixed length. */
static gt_status read_text(hid_t attr, hid_t type, const char *path, const char *name, char *out,
                           size_t size) {
  hid_t memory = H5Tcopy(H5T_C_S1);
  gt_status status = GT_OK;
  H5Tset_cset(memory, H5Tget_cset(type));
  if (H5Tis_variable_str(type) > 0) {
    char *text = NULL;
    H5Tset_size(memory, H5T_VARIABLE);
    if (H5Aread(attr, memory, &text) < 0)
      status = unreadable(path, name);
    else
      snprintf(out, size, "%s", text ? text : "");
    H5free_memory(text);
  } else {
    H5Tset_size(memory, size);
    memset(out, 0, size);
    if (H5Aread(attr, memory, out) < 0) status = unreadable(path, name);
    out[size - 1] = 0;
  }
  gt_data_h5_close(memory);
  return status;
}

gt_status gt_data_h5_attr_text(hid_t object, const char *path, const char *name, char *out,
                               size_t size) {
  char found[48];
  hid_t attr, type;
  int rank;
  hssize_t count;
  gt_status status;
  GT_TRY(attr_open(object, path, name, &attr, &type, &rank, &count));
  if (H5Tget_class(type) != H5T_STRING || count != 1)
    status = GT_FAIL(GT_ERR_DATA,
                     "%s: the attribute `%s` is %s with %lld elements; one string is needed", path,
                     name, gt_data_h5_type_name(type, found, sizeof found), (long long)count);
  else
    status = read_text(attr, type, path, name, out, size);
  for (char *p = out; status == GT_OK && *p; p++) /* the text is printed in messages and tables */
    if ((unsigned char)*p < ' ' || *p == 127) *p = '?';
  gt_data_h5_close(type);
  gt_data_h5_close(attr);
  return status;
}

gt_status gt_data_h5_attr_floats(hid_t object, const char *path, const char *name, float *out,
                                 size_t n) {
  char found[48];
  hid_t attr, type;
  int rank;
  hssize_t count;
  gt_status status = GT_OK;
  GT_TRY(attr_open(object, path, name, &attr, &type, &rank, &count));
  if (H5Tget_class(type) != H5T_FLOAT || H5Tget_size(type) != sizeof(float) || rank != 1 ||
      (size_t)count != n)
    status = GT_FAIL(GT_ERR_DATA,
                     "%s: the attribute `%s` is %s with %lld elements in %d dimensions; float32 "
                     "with %zu (one a channel) is needed",
                     path, name, gt_data_h5_type_name(type, found, sizeof found), (long long)count,
                     rank, n);
  else if (H5Aread(attr, H5T_NATIVE_FLOAT, out) < 0)
    status = unreadable(path, name);
  gt_data_h5_close(type);
  gt_data_h5_close(attr);
  return status;
}
