/* Opens HDF5 files and reads rows; every failure gives a one-sentence error. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "geotrain/data_h5.h"
#include "h5.h"

const char *const gt_data_split_names[2] = {"train", "test"};

void gt_data_h5_quiet(void) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

typedef struct {
  char *buf;
  size_t size;
} reason_context;

/* Takes the innermost description.  If it quotes the system's message among addresses and sizes,
   takes only that message. */
static herr_t take_first(unsigned n, const H5E_error2_t *error, void *context) {
  static const char quote[] = "error message = '";
  reason_context *c = context;
  if (n != 0 || !error->desc) return 0;
  const char *system = strstr(error->desc, quote),
             *end = system ? strchr(system + sizeof quote - 1, '\'') : NULL;
  if (end)
    snprintf(c->buf, c->size, "%.*s", (int)(end - system - (long)sizeof quote + 1),
             system + sizeof quote - 1);
  else
    snprintf(c->buf, c->size, "%s", error->desc);
  return 0;
}

char *gt_data_h5_reason(char *buf, size_t size) {
  snprintf(buf, size, "no reason given");
  reason_context context = {buf, size};
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &context);
  for (char *p = buf; *p; p++)
    if (*p == '\n' || *p == '\r') *p = ' ';
  return buf;
}

/* The formats of datasets/get; each creates NAME.h5. */
static const char *const published[] = {"mnist", "fashion-mnist", "cifar10",   "frappe",
                                        "imdb",  "shakespeare",   "diginetica"};

static gt_status missing(const char *path, int error) {
  const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
  for (size_t i = 0; error == ENOENT && i < sizeof published / sizeof *published; i++) {
    const size_t n = strlen(published[i]);
    if (strncmp(file, published[i], n) == 0 && strcmp(file + n, ".h5") == 0)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: cannot be opened (%s); `datasets/get %s` fetches and imports it", path,
                     strerror(error), published[i]);
  }
  return GT_FAIL(GT_ERR_DATA, "%s: cannot be opened (%s); expected an HDF5 data set", path,
                 strerror(error));
}

/* Finds the system's own errors first, because HDF5 reports them badly. */
static gt_status check_readable(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return missing(path, errno);
  struct stat st;
  int failed = fstat(fd, &st);
  close(fd);
  if (failed) return GT_FAIL(GT_ERR_DATA, "%s: cannot be examined (%s)", path, strerror(errno));
  if (!S_ISREG(st.st_mode))
    return GT_FAIL(GT_ERR_DATA, "%s: is not a file; expected an HDF5 data set", path);
  return GT_OK;
}

gt_status gt_data_h5_open(hid_t *file, const char *path) {
  char reason[256];
  gt_data_h5_quiet();
  GT_TRY(check_readable(path));
  htri_t is_hdf5 = H5Fis_hdf5(path);
  if (is_hdf5 == 0)
    return GT_FAIL(
        GT_ERR_DATA,
        "%s: is not an HDF5 file; make one with `geotrain data import` or `geotrain data synth`",
        path);
  *file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (*file < 0) {
    gt_data_h5_reason(reason, sizeof reason);
    return GT_FAIL(GT_ERR_DATA, "%s: HDF5 cannot open it (%s); expected a whole file", path,
                   reason);
  }
  return GT_OK;
}

void gt_data_h5_close(hid_t id) {
  if (id < 0) return;
  if (H5Iget_type(id) == H5I_FILE)
    H5Fclose(id);
  else
    H5Idec_ref(id);
}

char *gt_data_h5_type_name(hid_t type, char *buf, size_t size) {
  size_t bits = H5Tget_size(type) * 8;
  switch (H5Tget_class(type)) {
  case H5T_INTEGER:
    snprintf(buf, size, "%sint%zu", H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
    break;
  case H5T_FLOAT:
    snprintf(buf, size, "float%zu", bits);
    break;
  case H5T_STRING:
    snprintf(buf, size, "a string");
    break;
  case H5T_ENUM:
    snprintf(buf, size, "an enumeration");
    break;
  case H5T_COMPOUND:
    snprintf(buf, size, "a compound");
    break;
  default:
    snprintf(buf, size, "of another type");
    break;
  }
  return buf;
}

/* Finds the first filter of the data set that this HDF5 does not have: its name as stored, "filter"
   if it has none, and its number; false: none is missing. */
static bool lacks_filter(hid_t dset, char *name, size_t size, H5Z_filter_t *id) {
  hid_t plist = H5Dget_create_plist(dset);
  const int n = H5Pget_nfilters(plist);
  bool lacks = false;
  for (int i = 0; i < n && !lacks; i++) {
    unsigned flags, config;
    size_t values = 0;
    name[0] = 0;
    *id = H5Pget_filter2(plist, (unsigned)i, &flags, &values, NULL, size, name, &config);
    lacks = *id >= 0 && H5Zfilter_avail(*id) <= 0;
  }
  gt_data_h5_close(plist);
  if (lacks && !name[0]) snprintf(name, size, "filter");
  return lacks;
}

/* Returns the error of a failed read, with HDF5's reason. */
static gt_status unreadable(hid_t dset, const char *path, const char *name, size_t row,
                            const char *reason) {
  char filter[64];
  H5Z_filter_t id;
  if (lacks_filter(dset, filter, sizeof filter, &id))
    return GT_FAIL(GT_ERR_DATA,
                   "%s: %s is compressed with %s (HDF5 filter %d), which this program's HDF5 does "
                   "not have; write it again with gzip, or without compression: in h5py "
                   "create_dataset(..., compression=\"gzip\")",
                   path, name, filter, (int)id);
  return GT_FAIL(GT_ERR_DATA, "%s: %s cannot be read at row %zu (%s)", path, name, row, reason);
}

gt_status gt_data_h5_read_rows(hid_t dset, const char *path, const char *name, hid_t memory_type,
                               size_t first, size_t count, void *out) {
  char reason[256];
  if (count == 0) return GT_OK;
  hsize_t start[H5S_MAX_RANK] = {first}, dims[H5S_MAX_RANK] = {0};
  hid_t file_space = H5Dget_space(dset);
  int ndims = H5Sget_simple_extent_dims(file_space, dims, NULL);
  dims[0] = count;
  hid_t memory_space = H5Screate_simple(ndims, dims, NULL);
  bool ok = H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, dims, NULL) >= 0 &&
            H5Dread(dset, memory_type, memory_space, file_space, H5P_DEFAULT, out) >= 0;
  if (!ok) gt_data_h5_reason(reason, sizeof reason);
  gt_data_h5_close(memory_space);
  gt_data_h5_close(file_space);
  return ok ? GT_OK : unreadable(dset, path, name, first, reason);
}

size_t gt_data_h5_block_rows(hid_t dset, size_t rows, size_t row_bytes) {
  const size_t target = (size_t)4 << 20;
  size_t block = row_bytes < target ? target / row_bytes : 1;
  hsize_t chunk[H5S_MAX_RANK];
  hid_t plist = H5Dget_create_plist(dset);
  /* A block that ends inside a chunk would decompress that chunk twice. */
  if (plist >= 0 && H5Pget_layout(plist) == H5D_CHUNKED &&
      H5Pget_chunk(plist, H5S_MAX_RANK, chunk) > 0 && chunk[0] > 0 &&
      chunk[0] <= 16 * target / row_bytes)
    block = block < chunk[0] ? (size_t)chunk[0] : block / chunk[0] * chunk[0];
  gt_data_h5_close(plist);
  return block < rows ? block : rows;
}

/* ---- data sets ------------------------------------------------------------------------------- */

/* Opens a data set that is stored in the file itself.  A file must not redirect the reader to
   another file, nor make it allocate more memory than its data need. */

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
  return GT_FAIL(code, "%s: %s leads to another file (an external link); expected data in this one",
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
                 "%s: %s has chunks of %llu bytes, and holds %llu; expected chunks of at most "
                 "%llu, or of what it holds",
                 path, name, (unsigned long long)bytes, (unsigned long long)held,
                 (unsigned long long)CHUNK_BYTES);
}

gt_status gt_data_h5_check_layout(gt_status code, hid_t dset, const char *path, const char *name) {
  static const char needed[] = "expected contiguous, compact or chunked storage in this file";
  hid_t plist = H5Dget_create_plist(dset);
  const H5D_layout_t layout = H5Pget_layout(plist);
  gt_status status = GT_OK;
  if (layout == H5D_VIRTUAL)
    status = GT_FAIL(code, "%s: %s is stored in other files (virtual); %s", path, name, needed);
  else if (layout == H5D_CHUNKED)
    status = check_chunks(code, dset, plist, path, name);
  else if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS)
    status = GT_FAIL(code, "%s: %s has an unknown storage layout; %s", path, name, needed);
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
    return GT_FAIL(GT_ERR_DATA, "%s: %s cannot be opened (%s); expected a data set %s", path, name,
                   reason, shape);
  return gt_data_h5_check_layout(GT_ERR_DATA, *dset, path, name);
}
