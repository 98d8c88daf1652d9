/* Any bytes as an idx file, plain or gzip, give GT_ERR_DATA with a sentence or a data set, without
   crashes or leaks.  The first byte of the input selects which of the four files it replaces. */
#include "fuzz.h"

static const char *const files[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                    "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
/* Four images of 2 x 2 and their labels. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0,  0,  2,  0,  0,  0,  2,
                                 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 2, 3};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  for (size_t i = 0; i < 4; i++) {
    if (i == data[0] % 4U)
      fuzz_put(files[i], data + 1, size - 1);
    else
      fuzz_put(files[i], i % 2 ? labels : images, i % 2 ? sizeof labels : sizeof images);
  }
  fuzz_import("mnist");
  return 0;
}
