/* The mean of many vectors: the order of its tree, its rounding, and that a part has the same bits
   as the whole. */
#include "geotrain/tensor.h"
#include "tests.h"

#define N    ((size_t)1500)
#define MOST ((size_t)11)

static float data[MOST][N];
static int64_t samples[MOST];

static void fill(void) {
  for (size_t w = 0; w < MOST; w++) {
    samples[w] = (int64_t)(64 - 7 * (w % 3));
    for (size_t i = 0; i < N; i++)
      data[w][i] = (float)((i * 2654435761u + w * 40503u) % 100003) / 7.0f - 7000.0f;
  }
}

/* Level by level, x[i] += x[i + 2^level]; every step is rounded. */
static float by_levels(size_t n, size_t at) {
  volatile float sum[MOST] = {0};
  int64_t all = 0;
  for (size_t w = 0; w < n; w++) {
    sum[w] = (float)samples[w] * data[w][at];
    all += samples[w];
  }
  for (size_t far = 1; far < n; far *= 2)
    for (size_t w = 0; w + far < n; w += 2 * far) sum[w] = sum[w] + sum[w + far];
  return (float)(1.0 / (double)all) * sum[0];
}

static void is_the_tree(void) {
  float y[N];
  const float *x[MOST];
  for (size_t w = 0; w < MOST; w++) x[w] = data[w];
  for (size_t n = 1; n <= MOST; n++) {
    gt_vec_mean(gt_vec_of(y, N), x, samples, n);
    for (size_t i = 0; i < N; i++) assert_true(y[i] == by_levels(n, i));
  }
}

static void parts_have_the_bits_of_the_whole(void) {
  static const size_t cuts[] = {0, 1, 17, 511, 512, 513, 1033, N};
  float whole[N], part[N];
  const float *x[MOST];
  for (size_t w = 0; w < MOST; w++) x[w] = data[w];
  gt_vec_mean(gt_vec_of(whole, N), x, samples, 7);
  for (size_t c = 0; c + 1 < COUNT(cuts); c++) {
    for (size_t w = 0; w < MOST; w++) x[w] = data[w] + cuts[c];
    gt_vec_mean(gt_vec_of(part + cuts[c], cuts[c + 1] - cuts[c]), x, samples, 7);
  }
  assert_memory_equal(whole, part, sizeof whole);
}

static void nothing_is_done_with_nothing(void) {
  float y[2] = {3, 4};
  const float *x[2] = {data[0], NULL};
  gt_vec_mean(gt_vec_of(y, 2), x, samples, 2);
  assert_true(y[0] == 3 && y[1] == 4);
  gt_vec_mean(gt_vec_of(NULL, 2), x, samples, 1);
}

int main(void) {
  fill();
  return RUN_TESTS(NULL, NULL, is_the_tree, parts_have_the_bits_of_the_whole,
                   nothing_is_done_with_nothing);
}
