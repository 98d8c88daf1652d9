/* Any bytes as sessions, pickled or a text, plain or gzip, give GT_ERR_DATA with a sentence or a
   data set, without crashes or leaks.  The first byte of the input selects which of the three files
   it replaces. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const files[] = {"train.txt", "test.txt", "all_train_seq.txt"};
  static const char text[] = "1 2 3\n3 1\n";
  if (size < 1) return 0;
  const size_t which = data[0] % 3;
  for (size_t i = 0; i < 3; i++) fuzz_put(files[i], text, sizeof text - 1);
  if (which == 2) fuzz_take("train.txt");
  fuzz_put(files[which], data + 1, size - 1);
  fuzz_import("sessions");
  return 0;
}
