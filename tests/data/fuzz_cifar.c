/* Any bytes as a binary CIFAR file, plain or gzip, give GT_ERR_DATA with a sentence or a data set,
   without crashes or leaks.  The first byte of the input selects the file that it replaces: one of
   two of CIFAR-10 or one of two of CIFAR-100. */
#include "fuzz.h"

static const char *const files[] = {"data_batch_3.bin", "test_batch.bin", "train.bin", "test.bin"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t record[2 + 3072] = {1, 2, 3};
  if (size < 1) return 0;
  size_t which = data[0] % 4, first = which / 2 * 2;
  for (size_t i = 0; i < 4; i++) fuzz_put(files[i], "", 0); /* creates the folder */
  for (size_t i = 0; i < 4; i++) fuzz_take(files[i]);
  for (size_t i = first; i < first + 2; i++)
    fuzz_put(files[i], record, first ? sizeof record : sizeof record - 1);
  fuzz_put(files[which], data + 1, size - 1);
  fuzz_import("cifar");
  return 0;
}
