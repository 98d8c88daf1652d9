/* Derives the name of a data set from its source folder. */
#include "import.h"

#include <stdio.h>
#include <string.h>

void gt_import_name(const char *folder, const char *fallback, char name[64]) {
  size_t end = strlen(folder);
  while (end > 0 && folder[end - 1] == '/') end--;
  size_t begin = end;
  while (begin > 0 && folder[begin - 1] != '/') begin--;
  snprintf(name, 64, "%.*s", (int)(end - begin < 63 ? end - begin : 63), folder + begin);
  if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
    snprintf(name, 64, "%s", fallback);
}
