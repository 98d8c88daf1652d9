/* Any bytes as a table give GT_ERR_DATA with a sentence or a data set, without crashes or leaks.
   The first byte of the input selects how missing values are treated, and ids or numbers. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const missing[] = {"refuse", "drop", "mean"};
  char path[96];
  if (size < 1) return 0;
  fuzz_put("a.csv", data + 1, size - 1);
  snprintf(path, sizeof path, "%s/a.csv", fuzz_folder);
  fuzz_import_as("csv", path,
                 &(gt_import_options){.label = "y",
                                      .missing = missing[data[0] % 3],
                                      .as = data[0] & 4 ? "numbers" : "ids"});
  return 0;
}
