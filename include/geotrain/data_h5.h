/* data_h5: safe reading of HDF5 files from untrusted sources, for all parts.  References to other
   files are refused, so that a file cannot include others that its reader can access.  Local. */
#pragma once

#include <hdf5.h>

#include "geotrain/base.h"

/* Returns access properties of this class (H5P_LINK_ACCESS, H5P_DATASET_ACCESS) with which HDF5
   follows no external link; *met becomes true when one is found.  The caller closes the list before
   *met goes out of scope. */
hid_t gt_data_h5_inside(hid_t class, bool *met);
/* Returns `code` with the error text for an external link. */
gt_status gt_data_h5_leads_out(gt_status code, const char *path, const char *name);
/* Fails with `code` if values of the data set are in another file (external storage, virtual), or
   if one chunk needs more memory than all values.  `name`: for messages. */
gt_status gt_data_h5_check_layout(gt_status code, hid_t dset, const char *path, const char *name);
