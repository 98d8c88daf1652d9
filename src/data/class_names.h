/* class_names: the names of a data set's classes, class 0 first, as an attribute of its file.
   Local. */
#pragma once

#include "h5.h"

#define GT_DATA_CLASS_NAMES "class_names"

/* Bytes of one name, without its NUL, and of all names with theirs. */
enum { GT_CLASS_NAME_MAX = 255, GT_CLASS_NAMES_MAX = 1 << 20 };

/* Writes map[k], the place in `to` of name k of `from`.  Returns the first name that `to` lacks;
   NULL: none. */
const char *gt_class_names_map(const gt_class_names *from, const gt_class_names *to, int32_t *map);
/* Returns a name that is there twice; NULL: none. */
const char *gt_class_names_repeated(const gt_class_names *names);
/* Returns GT_ERR_DATA, naming `path` and the class, if a name is empty, too long, or used twice. */
gt_status gt_class_names_check(const gt_class_names *names, const char *path);
/* Writes the SHA-256 of all names; empty if there are none. */
void gt_class_names_hash(const gt_class_names *names, char hash[65]);

/* Reads the names of `classes` classes; none if the file has none.  The caller frees names->text,
   also after an error.  GT_ERR_DATA names the file, what was found and what was expected. */
gt_status gt_class_names_read(gt_class_names *names, hid_t file, const char *path, size_t classes);
/* Writes the names; false: HDF5 failed. */
bool gt_class_names_write(const gt_class_names *names, hid_t file);
