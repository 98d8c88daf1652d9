/* Any bytes as an array, or as an archive of arrays, give GT_ERR_DATA with a sentence or a data
   set, without crashes or leaks.  The first byte of the input: 0 an archive, else the samples. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char header[] = "\x93NUMPY\1\0\x37\0{'descr': '|u1', 'fortran_order': False, "
                               "'shape': (4,)}";
  char path[96];
  if (size < 1) return 0;
  fuzz_put(data[0] ? "x.npy" : "a.npz", data + 1, size - 1);
  snprintf(path, sizeof path, "%s%s", fuzz_folder, data[0] ? "" : "/a.npz");
  if (data[0]) {
    char labels[96];
    memcpy(labels, header, sizeof header - 1);
    memcpy(labels + sizeof header - 1, "\0\1\0\1", 4);
    fuzz_put("y.npy", labels, sizeof header + 3);
  }
  fuzz_import_as("npy", path, NULL);
  return 0;
}
