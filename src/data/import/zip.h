/* zip: reads a member of a zip archive from front to back, stored or deflated.  Local. */
#ifndef GEOTRAIN_DATA_IMPORT_ZIP_H
#define GEOTRAIN_DATA_IMPORT_ZIP_H

#include "geotrain/data.h"

typedef struct gt_zip gt_zip;

/* Opens the member `name`; *out NULL: the archive does not have it.  GT_ERR_DATA: no zip archive, a
   damaged one, or a member that is encrypted or compressed by another method. */
gt_status gt_zip_open(gt_zip **out, const char *path, const char *name);
/* Reads the next n bytes, or fewer at the end; -1 with an error text: the data are damaged. */
int64_t gt_zip_read(gt_zip *zip, void *out, size_t n);
/* Checks, after the last byte, the checksum of the member. */
gt_status gt_zip_whole(const gt_zip *zip);
void gt_zip_close(gt_zip *zip);

#endif
