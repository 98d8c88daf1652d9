/* Reads the class names from a text file in the data folder, one per line. */
#include <string.h>

#include "import.h"
#include "lines.h"

#define OWN "class-names.txt"

/* Removes trailing blanks: published lists end with an empty line. */
static char *trim(char *line) {
  size_t n = strlen(line);
  while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t')) n--;
  line[n] = 0;
  return line;
}

static gt_status read_lines(gt_class_names *names, gt_lines *lines) {
  const char *line;
  size_t blank = 0;
  for (;;) {
    GT_TRY(gt_lines_next(lines, &line));
    if (!line) return GT_OK;
    char *name = trim(gt_strdup(line));
    const bool empty = !*name, late = !empty && blank > 0;
    if (!empty && !late) gt_class_names_add(names, name);
    gt_free(name);
    if (late || names->bytes > GT_CLASS_NAMES_MAX) break;
    if (empty && blank == 0) blank = gt_lines_number(lines);
  }
  return blank > 0 ? GT_FAIL(GT_ERR_DATA, "%s: line %zu is empty; expected the name of a class",
                             gt_lines_path(lines), blank)
                   : GT_OK;
}

static gt_status read_file(gt_class_names *names, const char *path, size_t *classes) {
  gt_lines *lines;
  GT_TRY(gt_lines_open(&lines, path));
  gt_status status = read_lines(names, lines);
  gt_lines_close(lines);
  if (status == GT_OK) status = gt_class_names_check(names, path);
  if (status == GT_OK && names->n < *classes)
    status = GT_FAIL(GT_ERR_DATA,
                     "%s: names %zu classes, and the labels go up to %zu; expected a name for each "
                     "of the %zu classes, one a line, that of label 0 first",
                     path, names->n, *classes - 1, *classes);
  if (status == GT_OK) *classes = names->n;
  return status;
}

gt_status gt_import_class_names(gt_data_store *store, const char *folder, const char *published,
                                size_t *classes) {
  gt_class_names names = {0};
  char *path = gt_bytes_find(folder, OWN);
  if (!path && published) path = gt_bytes_find(folder, published);
  if (!path) return GT_OK;
  gt_status status = read_file(&names, path, classes);
  if (status == GT_OK) status = gt_data_store_class_names(store, &names);
  gt_free(names.text);
  gt_free(path);
  return status;
}
