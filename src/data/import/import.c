/* The list of import formats. */
#include "import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Format NAME is read by gt_import_NAME. */
#define FORMATS(X) X(mnist) X(cifar) X(libfm)

#define AS_NAME(name)   #name,
#define AS_IMPORT(name) gt_import_##name,
static const char *const names[] = {FORMATS(AS_NAME) NULL};
static gt_status (*const imports[])(const char *source, const char *out) = {FORMATS(AS_IMPORT)};
#define NFORMATS (sizeof imports / sizeof imports[0])

const char *const *gt_data_formats(void) {
  return names;
}

static gt_status unknown_format(const char *format) {
  char known[128] = "";
  for (size_t i = 0, at = 0; i < NFORMATS; i++, at = strlen(known))
    snprintf(known + at, sizeof known - at, "%s%.31s", i ? ", " : "", names[i]);
  const char *near = gt_nearest(format, names, NFORMATS);
  return GT_FAIL(GT_ERR_JOB, "format `%.80s` is not known; one of %s is needed%s%s%s", format,
                 known, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static bool is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static gt_status no_folder(const char *path) {
  struct stat about;
  if (stat(path, &about) == 0)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: is a file; the folder that holds the files to import is needed", path);
  return GT_FAIL(
      GT_ERR_DATA,
      "%s: there is no such folder (%s); the one that holds the files to import is needed", path,
      strerror(errno));
}

gt_status gt_data_import(const char *format, const char *source, const char *out) {
  for (size_t i = 0; i < NFORMATS; i++)
    if (strcmp(names[i], format) == 0)
      return is_folder(source) ? imports[i](source, out) : no_folder(source);
  return unknown_format(format);
}
