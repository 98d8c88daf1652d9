/* Any bytes as reviews, plain or gzip, give GT_ERR_DATA with a sentence or a data set, without
   crashes or leaks.  The first byte of the input selects which of the two files it replaces. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char text[] = "label\trating\tid\ttext\n1\t9\t0\tA good film.<br />Don't miss it\n";
  if (size < 1) return 0;
  fuzz_put("imdb_train.tsv", text, sizeof text - 1);
  fuzz_put("imdb_test.tsv", text, sizeof text - 1);
  fuzz_put(data[0] % 2 ? "imdb_test.tsv" : "imdb_train.tsv", data + 1, size - 1);
  fuzz_import("imdb");
  return 0;
}
