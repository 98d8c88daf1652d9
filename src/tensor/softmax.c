/* Softmax and cross-entropy over many classes: each row in one pass for the largest logit and one for
   the exponentials and their sum. */
#include <math.h>

#include "kernels.h"
#include "loops.h"

double gt_softmax_many(float *dx, const float *x, const int32_t *labels, size_t B, size_t O,
                       size_t *correct) {
  const gt_loop_tables *loops = gt_loops();
  double total = 0.0;
  for (size_t n = 0; n < B; n++) {
    const float *row = x + n * O;
    float *to = dx ? dx + n * O : NULL;
    const size_t label = (size_t)labels[n], best = loops->softmax->best(row, O);
    const double sum = loops->softmax->exponentials(to, row, row[best], O);
    total += log(sum) - (double)(row[label] - row[best]);
    *correct += best == label && !isnan(sum);
    if (!dx) continue;
    loops->vec->scale(to, (float)(1.0 / (sum * (double)B)), O);
    to[label] -= 1.0F / (float)B;
  }
  return total;
}
