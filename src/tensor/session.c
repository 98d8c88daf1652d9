/* Rows of unit length, gates and attention of session graphs: functions of gt_kernels on the loops
   of isa/attend.c and isa/gru.c. */
#include "kernels.h"
#include "loops.h"

void gt_unit_forward(float *y, float *norms, const float *x, size_t M, size_t K) {
  gt_loops()->attend->unit_forward(y, norms, x, M, K);
}

void gt_unit_backward(float *dx, const float *dy, const float *y, const float *norms, size_t M,
                      size_t K) {
  gt_loops()->attend->unit_backward(dx, dy, y, norms, M, K);
}

void gt_gru_forward(float *y, float *gates, const float *h, const float *gi, const float *gh,
                    size_t M, size_t H) {
  gt_loops()->gru->forward(y, gates, h, gi, gh, M, H);
}

void gt_gru_backward(float *dgi, float *dgh, float *dh, const float *dy, const float *gates,
                     const float *h, size_t M, size_t H) {
  gt_loops()->gru->backward(dgi, dgh, dh, dy, gates, h, M, H);
}

void gt_attend_forward(float *y, float *gates, float *alpha, const float *q1, const float *h,
                       const float *w, const gt_session_shape *s) {
  gt_loops()->attend->attend_forward(y, gates, alpha, q1, h, w, s);
}

void gt_attend_backward(float *dh, float *dq1, float *dq2, float *dw, const float *dy,
                        const float *gates, const float *alpha, const float *h, const float *w,
                        const gt_session_shape *s) {
  gt_loops()->attend->attend_backward(dh, dq1, dq2, dw, dy, gates, alpha, h, w, s);
}
