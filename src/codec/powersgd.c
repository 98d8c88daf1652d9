/* powersgd: a matrix M (rows, cols) as the product of two matrices of rank r (Vogels et al. 2019,
   arXiv 1905.13727, algorithm 1).  Step 0 sums P = M Q, with the Q of the last message; then every
   region makes the columns of the sum orthonormal.  Step 1 sums Q = M^T P; the decoded sum is P
   Q^T.  Both sums are of float32 and linear, so that the result is that of the mean of all M.
   Tensors that do not become at least GAIN times smaller are sent as float32 in step 1.
   State of a tensor: P (rows, r), Q (cols, r). */
#include <math.h>

#include "internal.h"

enum { GAIN = 2 };

static size_t rank_of(const gt_codec *codec, const gt_codec_tensor *t) {
  const size_t least = t->rows < t->cols ? t->rows : t->cols;
  return codec->spec.rank < least ? codec->spec.rank : least;
}

static float *p_of(const gt_codec *codec, const gt_codec_tensor *t) {
  return codec->state.data + t->shared;
}

static float *q_of(const gt_codec *codec, const gt_codec_tensor *t) {
  return p_of(codec, t) + t->rows * rank_of(codec, t);
}

static gt_status open(gt_codec *codec) {
  if (codec->spec.rank == 0)
    return GT_FAIL(GT_ERR_JOB, "the rank of powersgd is 0; it must be at least 1");
  size_t state = 0;
  for (size_t i = 0; i < codec->ntensors; i++) {
    gt_codec_tensor *t = &codec->tensors[i];
    const size_t factors = rank_of(codec, t) * (t->rows + t->cols);
    t->dense = t->dense || factors * GAIN > t->count;
    t->shared = state;
    if (!t->dense) state += factors;
  }
  codec->state = gt_vec_of(gt_codec_scratch(codec, state), state);
  codec->work = gt_codec_scratch(codec, codec->largest);
  if (codec->spec.shapes_only) return GT_OK;
  for (size_t i = 0; i < codec->ntensors; i++) {
    const gt_codec_tensor *t = &codec->tensors[i];
    if (t->dense) continue;
    gt_rng rng = gt_rng_make(codec->spec.seed, GT_RNG_CODEC, UINT64_MAX, i);
    for (size_t j = 0; j < t->cols * rank_of(codec, t); j++)
      q_of(codec, t)[j] = (float)gt_rng_normal(&rng);
  }
  return GT_OK;
}

static size_t floats(const gt_codec *codec, const gt_codec_tensor *t, size_t step) {
  return rank_of(codec, t) * (step == 0 ? t->rows : t->cols);
}

static size_t bound(const gt_codec *codec, const gt_codec_tensor *t, size_t step) {
  return floats(codec, t, step) * sizeof(float);
}

static size_t encode(gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                     const float *a, unsigned char *out) {
  const size_t r = rank_of(codec, t);
  if (turn->step == 0)
    gt_gemm(false, false, t->rows, r, t->cols, a, q_of(codec, t), 0.0F, codec->work);
  else
    gt_gemm(true, false, t->cols, r, t->rows, a, p_of(codec, t), 0.0F, codec->work);
  memcpy(out, codec->work, bound(codec, t, turn->step));
  return bound(codec, t, turn->step);
}

static size_t check(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                    const unsigned char *in, size_t left) {
  const size_t all = bound(codec, t, turn->step);
  return left >= all && gt_floats_valid(codec->loops, in, floats(codec, t, turn->step)) ? all : 0;
}

/* Rows of y at a time, so that Q^T stays in the cache. */
static size_t add(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                  const unsigned char *in, float scale, float *y) {
  const size_t r = rank_of(codec, t);
  float *q = codec->work;
  for (size_t j = 0; j < t->cols * r; j++) q[j] = scale * gt_get_float(in + j * sizeof(float));
  gt_gemm(false, true, t->rows, t->cols, r, p_of(codec, t), q, 1.0F, y);
  return bound(codec, t, turn->step);
}

static double product(const float *a, const float *b, size_t n, size_t stride) {
  double sum = 0.0;
  for (size_t i = 0; i < n; i++) sum += (double)a[i * stride] * (double)b[i * stride];
  return sum;
}

/* Modified Gram-Schmidt.  A column that depends on those before it becomes 0. */
static void orthonormalize(float *p, size_t rows, size_t r) {
  for (size_t j = 0; j < r; j++) {
    const double before = product(p + j, p + j, rows, r);
    for (size_t i = 0; i < j; i++) {
      const double along = product(p + i, p + j, rows, r);
      for (size_t k = 0; k < rows; k++) p[k * r + j] -= (float)(along * (double)p[k * r + i]);
    }
    const double after = product(p + j, p + j, rows, r);
    const double factor = after > 1e-12 * before ? 1.0 / sqrt(after) : 0.0;
    for (size_t k = 0; k < rows; k++) p[k * r + j] = (float)(factor * (double)p[k * r + j]);
  }
}

/* Keeps the last Q where the new Q is 0, because a P computed from a Q of 0 is always 0. */
static void take_q(float *q, const float *sum, float scale, size_t cols, size_t r) {
  for (size_t j = 0; j < r; j++) {
    if (!(product(sum + j, sum + j, cols, r) > 0.0)) continue;
    for (size_t k = 0; k < cols; k++) q[k * r + j] = scale * sum[k * r + j];
  }
}

static void agree(gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                  const float *sum, float scale) {
  const size_t r = rank_of(codec, t);
  if (turn->step == 1) {
    take_q(q_of(codec, t), sum, scale, t->cols, r);
    return;
  }
  float *p = p_of(codec, t);
  for (size_t i = 0; i < t->rows * r; i++) p[i] = scale * sum[i];
  orthonormalize(p, t->rows, r);
}

const gt_codec_ops gt_codec_powersgd = {.facts = {.steps = 2, .residuals = 1},
                                        .open = open,
                                        .bound = bound,
                                        .encode = encode,
                                        .check = check,
                                        .add = add,
                                        .agree = agree};
