/* Denormal numbers are flushed to 0.  Otherwise, if gradients stay 0, momentum would decay to
   denormal numbers, stay there, and slow down every step. */
#include <float.h>
#include <pthread.h>

#include "tests.h"
#include "geotrain/nn.h"

enum { N = 100, STEPS = 2000 };

/* Returns the largest state value of an optimizer whose gradients have been 0 for a long time. */
static float left_over(gt_optimizer kind) {
  static float w[N], g[N];
  const gt_optim_spec spec = {.kind = kind,
                              .schedule = {.lr = 1e-3},
                              .momentum = 0.9,
                              .beta1 = 0.9,
                              .beta2 = 0.9,
                              .epsilon = 1e-8};
  gt_optim *optim;
  gt_state state = {0};
  float most = 0;
  must(gt_optim_create(&optim, &spec, N, true));
  for (int t = 0; t < STEPS; t++) {
    for (size_t i = 0; i < N; i++) g[i] = t == 0 ? 1.0F : 0.0F;
    gt_optim_step(optim, gt_vec_of(w, N), gt_vec_of(g, N), gt_vec_of(NULL, N));
  }
  gt_optim_save(optim, "", &state);
  for (size_t k = 0; k < state.n; k++)
    for (size_t i = 0; state.items[k].type == GT_TYPE_F32 && i < N; i++) {
      const float value = ((const float *)state.items[k].data)[i];
      if (value > most) most = value;
    }
  gt_state_close(&state);
  gt_optim_close(optim);
  return most;
}

static void states_reach_zero(void) {
  for (int isa = 0; isa <= (int)gt_isa_best(); isa++) {
    must(gt_isa_choose(gt_isa_name((gt_isa)isa)));
    assert_true(left_over(GT_OPTIMIZER_SGD) == 0.0F);
    assert_true(left_over(GT_OPTIMIZER_ADAM) == 0.0F);
  }
}

static void *halve(void *ctx) {
  volatile float *x = ctx;
  *x = *x / 2;
  return NULL;
}

static void so_do_threads(void) {
  pthread_t thread;
  float x = FLT_MIN;
  (void)gt_isa_used();
  assert_int_equal(pthread_create(&thread, NULL, halve, &x), 0);
  pthread_join(thread, NULL);
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  assert_int_equal(bits, 0);
}

TESTS(states_reach_zero, so_do_threads)
