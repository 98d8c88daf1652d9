/* Any bytes as a schema give GT_ERR_DATA with a sentence or a schema, whose text gives it again,
   and which a table can be imported with or not, without crashes or leaks. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char table[] = "x,color,??,y\n1,red,1,no\n2,blue,1,yes\n";
  char path[96], source[96];
  const char *const paths[] = {path, path};
  char *text, *again;
  const int64_t alive = gt_alloc_alive();
  fuzz_put("a.json", data, size);
  fuzz_put("a.csv", table, sizeof table - 1);
  snprintf(path, sizeof path, "%s/a.json", fuzz_folder);
  snprintf(source, sizeof source, "%s/a.csv", fuzz_folder);
  const gt_status status = gt_data_schema(paths, 2, &text);
  if (status == GT_OK) {
    fuzz_put("a.json", text, strlen(text));
    if (gt_data_schema(paths, 1, &again) != GT_OK || strcmp(text, again) != 0) abort();
    gt_free(again);
  } else if (status != GT_ERR_DATA || gt_error_text()[0] == '\0')
    abort();
  gt_free(text);
  if (gt_alloc_alive() != alive) abort();
  const double share = 0;
  fuzz_import_as(
      "csv", source,
      &(gt_import_options){.label = "y", .test_share = &share, .seed = 1, .schema = path});
  return 0;
}
