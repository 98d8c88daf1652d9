/* Softmax and cross-entropy over many classes, row by row on the loops of isa/softmax.c. */
#include "kernels.h"
#include "loops.h"

double gt_softmax_many(float *dx, const float *x, const int32_t *labels, size_t B, size_t O,
                       size_t *correct) {
  const float scale = 1.0F / (float)B;
  double total = 0.0;
  for (size_t n = 0; n < B; n++)
    total += gt_loops()->softmax->xent(dx ? dx + n * O : NULL, x + n * O, (size_t)labels[n], O,
                                       scale, correct);
  return total;
}
