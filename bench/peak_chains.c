/* Independent chains of multiply-adds in registers, as many as hide their latency: compiled once
   for each instruction set. */
#include "peak_chains.h"

#include "geotrain/tensor/vector.h"

/* Written out: a loop over an array of chains would live in memory. */
static float chains(long rounds) {
  const gt_vf zero = {0}, x = zero + 0.999F, y = {1e-3F, 1e-4F};
  /* All different: equal chains would be one to the compiler. */
  gt_vf a = y, b = y * 2, c = y * 3, d = y * 4, e = y * 5, f = y * 6, g = y * 7, h = y * 8,
        i = y * 9, j = y * 10, k = y * 11, l = y * 12;
  for (long n = 0; n < rounds; n++) {
    a = a * x + y, b = b * x + y, c = c * x + y, d = d * x + y, e = e * x + y, f = f * x + y;
    g = g * x + y, h = h * x + y, i = i * x + y, j = j * x + y, k = k * x + y, l = l * x + y;
  }
  const gt_vf sum = a + b + c + d + e + f + g + h + i + j + k + l;
  return sum[0] + sum[1];
}

const peak_chains GT_FOR_ISA(peak_chains) = {.lanes = GT_LANES, .run = chains};
