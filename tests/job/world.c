#include "world.h"

size_t w_damage(char *text, size_t n, gt_rng *rng) {
  static const char marks[] = "{}[]:,-#&*!|>'\"%@`?~ \n\t0";
  for (uint64_t edits = 1 + gt_rng_below(rng, 4); edits > 0 && n > 2; edits--) {
    size_t at = gt_rng_below(rng, n), length = 1 + gt_rng_below(rng, 20);
    if (at + length > n) length = n - at;
    switch (gt_rng_below(rng, 5)) {
    case 0:
      text[at] = (char)(text[at] ^ (1 << gt_rng_below(rng, 8)));
      break;
    case 1:
      text[at] = marks[gt_rng_below(rng, sizeof marks - 1)];
      break;
    case 2:
      n = at + 1;
      break;
    case 3:
      memmove(text + at, text + at + length, n - at - length), n -= length;
      break;
    default:
      memmove(text + gt_rng_below(rng, n - length + 1), text + at, length);
      break;
    }
  }
  return n;
}

void w_write(const char *path, const void *data, size_t size) {
  FILE *to = fopen(path, "wb");
  assert_non_null(to);
  assert_int_equal(fwrite(data, 1, size, to), size);
  assert_int_equal(fclose(to), 0);
}

void w_write_text(const char *path, const char *text) {
  w_write(path, text, strlen(text));
}
