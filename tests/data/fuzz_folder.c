/* Any bytes as a picture give a data set, without crashes or leaks; if it cannot be read it is left
   out, or refused.  The first bit of the input: --strict. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  /* a black PNG of 1 x 1 */
  static const uint8_t dot[] = {0x89, 'P', 'N', 'G',  '\r', '\n', 0x1a, '\n', 0,    0, 0, 13,
                                'I',  'H', 'D', 'R',  0,    0,    0,    1,    0,    0, 0, 1,
                                8,    0,   0,   0,    0,    0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0,
                                10,   'I', 'D', 'A',  'T',  0x78, 0x9c, 0x63, 0x60, 0, 0, 0,
                                2,    0,   1,   0x48, 0xaf, 0xa4, 0x71, 0,    0,    0, 0, 'I',
                                'E',  'N', 'D', 0xae, 0x42, 0x60, 0x82};
  static bool made;
  if (size < 1) return 0;
  fuzz_put("unused", data, 0);
  fuzz_take("unused");
  if (!made) {
    char path[96];
    static const char *const folders[] = {"train", "train/a", "train/b", "test", "test/a"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
      snprintf(path, sizeof path, "%s/%s", fuzz_folder, folders[i]);
      if (mkdir(path, 0700) != 0) abort();
    }
    fuzz_put("train/a/1.png", dot, sizeof dot);
    fuzz_put("train/b/1.png", dot, sizeof dot);
    fuzz_put("test/a/1.png", dot, sizeof dot);
    made = true;
  }
  fuzz_put("train/a/2.jpg", data + 1, size - 1);
  fuzz_import_as("folder", fuzz_folder,
                 &(gt_import_options){.height = 3, .width = 4, .strict = data[0] & 1});
  return 0;
}
