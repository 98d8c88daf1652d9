/* Batch normalisation with residual sum and ReLU, and means over images, against ref: channels that
   fill registers and channels that do not, a single row, float32 and bf16.  ref itself is tested
   against the definition in float64. */
#include "numbers.h"

static const char *const tables[] = {"blas", "auto"};
enum { NTABLES = 2 };

/* A test case: all arguments of a call.  y and saved are those of the fast forward pass, so that
   both backward passes see the same ReLU. */
typedef struct {
  gt_norm_shape s;
  bool add, second, in_place;
  values x, plus, dy, dy2;
  float *gamma, *beta, *mean, *var, *work;
} sample;

static void fill(sample *c) {
  const size_t n = c->s.M * c->s.C, C = c->s.C;
  c->x = values_of(c->s.type, n), c->plus = values_of(c->s.type, n),
  c->dy = values_of(c->s.type, n), c->dy2 = values_of(c->s.type, n);
  for (size_t i = 0; i < n; i++) c->x.f[i] += (float)(i % C % 5) - 2.0F; /* means differ from 0 */
  values_write(&c->x), values_read(&c->x);
  c->gamma = numbers(C), c->beta = numbers(C), c->mean = numbers(C), c->var = numbers(C),
  c->work = numbers(gt_norm_work(C));
  for (size_t i = 0; i < C; i++) c->var[i] = 0.2F + fabsf(c->var[i]);
}

static sample make(size_t round) {
  static const size_t channels[] = {64, 128, 512, 16, 32, 33, 65, 1, 7, 80, 200};
  const size_t rows[] = {1, 2, 63, 64, 65, 130};
  sample c = {.s = {.M = round % 3 ? rows[between(0, 5)] : between(1, 300),
                    .C = round < 22 ? channels[round % 11] : between(1, 150),
                    .type = round % 2 ? GT_BF16 : GT_F32,
                    .relu = round % 5 < 3,
                    .epsilon = 1e-5F,
                    .momentum = 0.1F},
              .add = (round / 2) % 2 == 1,
              .second = (round / 4) % 2 == 1,
              .in_place = (round / 8) % 2 == 1};
  fill(&c);
  return c;
}

static void drop(sample *c) {
  const size_t C = c->s.C;
  values_release(&c->x), values_release(&c->plus), values_release(&c->dy), values_release(&c->dy2);
  release(c->gamma, C), release(c->beta, C), release(c->mean, C), release(c->var, C),
      release(c->work, gt_norm_work(C));
}

/* Relative tolerance of 1/deviation: sums of 64 squares in float32, however far from 0 the values
   are. */
#define SLACK 4e-6

/* The tolerance follows the terms of y before they cancel, and the error of 1/deviation. */
static void same_y(const sample *c, const values *found, const values *right, const float *means,
                   const float *inverses) {
  for (size_t i = 0; i < found->n; i++) {
    const size_t k = i % c->s.C;
    const double mean = (double)means[k], inverse = (double)inverses[k], x = (double)c->x.f[i],
                 a = fabs((double)c->gamma[k] * inverse);
    const double size = a * (fabs(x) + fabs(mean)) + fabs((double)c->beta[k]) + 1.0,
                 off = a * fabs(x - mean) * SLACK;
    near(found->f[i], right->f[i],
         1e-6 * size + off + last_bit(c->s.type, fabs((double)right->f[i])), "y", i);
  }
}

static void check_forward(const gt_kernels *kernels, const sample *c, values *y, float *saved) {
  const gt_kernels *ref = gt_kernels_find("ref");
  const size_t C = c->s.C;
  const void *add = c->add ? c->plus.at : NULL;
  float *m0 = numbers(C), *v0 = numbers(C), *m1 = numbers(C), *v1 = numbers(C),
        *right_saved = numbers(2 * C);
  values right = values_of(c->s.type, y->n);
  memcpy(m0, c->mean, C * sizeof *m0), memcpy(m1, c->mean, C * sizeof *m0),
      memcpy(v0, c->var, C * sizeof *m0), memcpy(v1, c->var, C * sizeof *m0);
  ref->norm_forward(right.at, c->x.at, add, c->gamma, c->beta, m0, v0, right_saved, &c->s, NULL);
  kernels->norm_forward(y->at, c->x.at, add, c->gamma, c->beta, m1, v1, saved, &c->s, c->work);
  for (size_t k = 0; k < C; k++) {
    const double mean = (double)right_saved[k], inverse = (double)right_saved[C + k];
    near(saved[k], right_saved[k], 2e-6 * (1.0 + fabs(mean)), "mean", k);
    near(saved[C + k], right_saved[C + k], inverse * SLACK, "1/deviation", k);
    near(m1[k], m0[k], 1e-6 * (1.0 + fabs(mean)), "running mean", k);
    near(v1[k], v0[k], 1e-6 + 2.0 * SLACK / (inverse * inverse), "running variance", k);
  }
  values_read(y), values_read(&right);
  same_y(c, y, &right, right_saved, right_saved + C);
  ref->norm_infer(right.at, c->x.at, add, c->gamma, c->beta, c->mean, c->var, &c->s, NULL);
  values infer = values_of(c->s.type, y->n);
  kernels->norm_infer(infer.at, c->x.at, add, c->gamma, c->beta, c->mean, c->var, &c->s, c->work);
  for (size_t k = 0; k < C; k++) v0[k] = 1.0F / sqrtf(c->var[k] + c->s.epsilon);
  values_read(&infer), values_read(&right);
  same_y(c, &infer, &right, c->mean, v0);
  values_release(&infer), values_release(&right);
  release(m0, C), release(v0, C), release(m1, C), release(v1, C), release(right_saved, 2 * C);
}

static void check_backward(const gt_kernels *kernels, const sample *c, const values *y,
                           const float *saved) {
  const gt_kernels *ref = gt_kernels_find("ref");
  const size_t C = c->s.C, n = y->n;
  const double sums = 2e-5 * sqrt((double)c->s.M + 1.0);
  values dx = values_of(c->s.type, n), dadd = values_of(c->s.type, n),
         right = values_of(c->s.type, n), right_add = values_of(c->s.type, n);
  float *dgamma = numbers(C), *dbeta = numbers(C), *g = numbers(C), *b = numbers(C);
  const void *dy2 = c->second ? c->dy2.at : NULL;
  ref->norm_backward(right.at, c->add ? right_add.at : NULL, g, b, c->dy.at, dy2, y->at, c->x.at,
                     c->gamma, c->beta, saved, &c->s, NULL);
  if (c->in_place) memcpy(dx.at, c->dy.at, n * gt_precision_bytes(c->s.type));
  kernels->norm_backward(dx.at, c->add ? dadd.at : NULL, dgamma, dbeta,
                         c->in_place ? dx.at : c->dy.at, dy2, y->at, c->x.at, c->gamma, c->beta,
                         saved, &c->s, c->work);
  values_read(&dx), values_read(&dadd), values_read(&right), values_read(&right_add);
  for (size_t k = 0; k < C; k++) {
    near(dgamma[k], g[k], sums * (1.0 + fabs((double)g[k])), "dgamma", k);
    near(dbeta[k], b[k], sums * (1.0 + fabs((double)b[k])), "dbeta", k);
  }
  for (size_t i = 0; i < n; i++) {
    const size_t k = i % C;
    const double inverse = (double)saved[C + k], a = fabs((double)c->gamma[k] * inverse),
                 hat = fabs((double)c->x.f[i] - (double)saved[k]) * inverse;
    /* ref rounds dz to the type; the other kernel does not have to */
    const double size = a * (fabs((double)c->dy.f[i]) + fabs((double)c->dy2.f[i]) +
                             (hat + inverse) * fabs((double)g[k]) / (double)c->s.M + 1.0);
    near(dx.f[i], right.f[i],
         2e-6 * size + last_bit(c->s.type, fabs((double)right.f[i]) + size / 2), "dx", i);
    if (c->add) near(dadd.f[i], right_add.f[i], 1e-6, "dadd", i);
  }
  values_release(&dx), values_release(&dadd), values_release(&right), values_release(&right_add);
  release(dgamma, C), release(dbeta, C), release(g, C), release(b, C);
}

static void norms_match_ref(void) {
  for (size_t round = 0; round < 200; round++) {
    sample c = make(round);
    for (size_t t = 0; t < NTABLES; t++) {
      values y = values_of(c.s.type, c.x.n);
      float *saved = numbers(2 * c.s.C);
      check_forward(gt_kernels_find(tables[t]), &c, &y, saved);
      check_backward(gt_kernels_find(tables[t]), &c, &y, saved);
      release(saved, 2 * c.s.C);
      values_release(&y);
    }
    drop(&c);
  }
}

/* Values a thousand deviations from 0 and more: the variance is that of their differences.  In bf16
   their spacing is as large as the deviation; ref has the same rounded values. */
static void variance_far_from_zero(void) {
  static const float means[] = {0.0F, 1.0F, -1000.0F, 30000.0F};
  for (size_t round = 0; round < 32; round++) {
    const float far = means[round % 4];
    sample c = {.s = {.M = between(100, 700),
                      .C = between(1, 90),
                      .type = round / 4 % 2 ? GT_BF16 : GT_F32,
                      .epsilon = 1e-5F,
                      .momentum = 1.0F}};
    fill(&c);
    for (size_t i = 0; i < c.x.n; i++) c.x.f[i] += far;
    values_write(&c.x), values_read(&c.x);
    for (size_t t = 0; t < NTABLES; t++) {
      values y = values_of(c.s.type, c.x.n);
      float *saved = numbers(2 * c.s.C);
      check_forward(gt_kernels_find(tables[t]), &c, &y, saved);
      release(saved, 2 * c.s.C);
      values_release(&y);
    }
    drop(&c);
  }
}

/* Returns the sum of dy y over channel k in float64, from the definition; gradients of ref are
   compared with its finite differences. */
static double weighed(const sample *c, const double *x, size_t k, double gamma, double beta) {
  double mean = 0.0, var = 0.0, sum = 0.0;
  for (size_t m = 0; m < c->s.M; m++) mean += x[m] / (double)c->s.M;
  for (size_t m = 0; m < c->s.M; m++) var += (x[m] - mean) * (x[m] - mean) / (double)c->s.M;
  for (size_t m = 0; m < c->s.M; m++) {
    const size_t i = m * c->s.C + k;
    double y =
        gamma * (x[m] - mean) / sqrt(var + 1e-5) + beta + (c->add ? (double)c->plus.f[i] : 0.0);
    if (c->s.relu) y = fmax(y, 0.0);
    sum += y * ((double)c->dy.f[i] + (c->second ? (double)c->dy2.f[i] : 0.0));
  }
  return sum;
}

/* Returns the slope of `weighed` along one of its arguments, which is restored. */
static double slope(const sample *c, const double *x, size_t k, const double *gamma,
                    const double *beta, double *along) {
  const double was = *along, h = 1e-5;
  *along = was + h;
  const double up = weighed(c, x, k, *gamma, *beta);
  *along = was - h;
  const double down = weighed(c, x, k, *gamma, *beta);
  *along = was;
  return (up - down) / (2.0 * h);
}

static void ref_matches_definition(void) {
  const gt_kernels *ref = gt_kernels_find("ref");
  for (size_t round = 0; round < 16; round++) {
    sample c = {.s = {.M = between(2, 20), .C = between(1, 9), .relu = round % 2, .epsilon = 1e-5F},
                .add = true,
                .second = round % 3 == 0};
    fill(&c);
    const size_t n = c.x.n, C = c.s.C;
    values y = values_of(GT_F32, n), dx = values_of(GT_F32, n), dadd = values_of(GT_F32, n);
    float *saved = numbers(2 * C), *dgamma = numbers(C), *dbeta = numbers(C);
    double *x = GT_NEW_ARRAY(double, c.s.M);
    /* Away from the kink of the ReLU. */
    for (size_t i = 0; i < n; i++) c.plus.f[i] = i % 3 ? 20.0F : -20.0F;
    ref->norm_forward(y.f, c.x.f, c.plus.f, c.gamma, c.beta, c.mean, c.var, saved, &c.s, NULL);
    ref->norm_backward(dx.f, dadd.f, dgamma, dbeta, c.dy.f, c.second ? c.dy2.f : NULL, y.f, c.x.f,
                       c.gamma, c.beta, saved, &c.s, NULL);
    for (size_t k = 0; k < C; k++) {
      double gamma = (double)c.gamma[k], beta = (double)c.beta[k];
      for (size_t m = 0; m < c.s.M; m++) x[m] = (double)c.x.f[m * C + k];
      near(dgamma[k], (float)slope(&c, x, k, &gamma, &beta, &gamma), 1e-4, "dgamma", k);
      near(dbeta[k], (float)slope(&c, x, k, &gamma, &beta, &beta), 1e-4, "dbeta", k);
      for (size_t m = 0; m < c.s.M; m++)
        near(dx.f[m * C + k], (float)slope(&c, x, k, &gamma, &beta, &x[m]), 1e-4, "dx", m * C + k);
    }
    gt_free(x);
    release(saved, 2 * C), release(dgamma, C), release(dbeta, C);
    values_release(&y), values_release(&dx), values_release(&dadd);
    drop(&c);
  }
}

static void means_match_ref(void) {
  const gt_kernels *ref = gt_kernels_find("ref");
  for (size_t round = 0; round < 60; round++) {
    const gt_precision type = round % 2 ? GT_BF16 : GT_F32;
    const size_t N = between(1, 5), HW = between(1, 70), C = round < 4 ? 512 : between(1, 100);
    values x = values_of(type, N * HW * C), dx = values_of(type, N * HW * C),
           right = values_of(type, N * HW * C);
    float *y = numbers(N * C), *right_y = numbers(N * C);
    ref->mean_forward(right_y, x.at, type, N, HW, C);
    ref->mean_backward(right.at, right_y, type, N, HW, C);
    values_read(&right);
    for (size_t t = 0; t < NTABLES; t++) {
      gt_kernels_find(tables[t])->mean_forward(y, x.at, type, N, HW, C);
      for (size_t i = 0; i < N * C; i++) near(y[i], right_y[i], 1e-6, "mean", i);
      gt_kernels_find(tables[t])->mean_backward(dx.at, right_y, type, N, HW, C);
      values_read(&dx);
      for (size_t i = 0; i < dx.n; i++)
        near(dx.f[i], right.f[i], fabs((double)right.f[i]) * (type == GT_BF16 ? 1.0 / 128 : 2e-7),
             "dx", i);
    }
    release(y, N * C), release(right_y, N * C);
    values_release(&x), values_release(&dx), values_release(&right);
  }
}

int main(void) {
  rng = gt_rng_make(22, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, norms_match_ref, variance_far_from_zero, ref_matches_definition,
                   means_match_ref);
}
