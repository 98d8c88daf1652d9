/* Any bytes as a libFM text, plain or gzip, give GT_ERR_DATA with a sentence or a data set, without
   crashes or leaks.  The first byte of the input selects which of the two files it replaces. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char text[] = "1 0:1 3:1\n-1 2:1 4:1\n";
  if (size < 1) return 0;
  fuzz_put("a.train.libfm", text, sizeof text - 1);
  fuzz_put("a.test.libfm", text, sizeof text - 1);
  fuzz_put(data[0] % 2 ? "a.test.libfm" : "a.train.libfm", data + 1, size - 1);
  fuzz_import("libfm");
  return 0;
}
