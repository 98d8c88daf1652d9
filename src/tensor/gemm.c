/* OpenBLAS's product. */
#include "kernels.h"

#include <cblas.h>
#undef I /* complex.h defines I, here the number of inputs of a linear layer */

void gt_gemm(bool ta, bool tb, size_t m, size_t n, size_t k, const float *a, const float *b,
             float beta, float *y) {
  cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
              (blasint)m, (blasint)n, (blasint)k, 1.0f, a, (blasint)(ta ? m : k), b,
              (blasint)(tb ? k : n), beta, y, (blasint)n);
}
