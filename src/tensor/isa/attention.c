/* Causal attention of one head in blocks of GT_ATTENTION_BLOCK queries by as many keys, so that
   only the scores of one block exist at a time: forward with a running maximum and sum for each
   query (Milakov and Gimelshein 2018; Rabe and Staats 2021), backward with the scores recomputed
   from the logarithms of the sums (Dao et al. 2022, Alg. 4). */
#include <math.h>

#include "functions_vector.h"
#include "loops.h"

enum {
  BLOCK = GT_ATTENTION_BLOCK,
  VECTORS = BLOCK / GT_LANES,
  ROWS = GT_OUTPUTS(2) < 8 ? GT_OUTPUTS(2) : 8 /* rows of a block of sums in registers */
};

/* ---- products ---- */

/* A left factor: element (r,k) is at r rows + k steps, so that either order costs the same. */
typedef struct {
  const float *at;
  size_t rows, steps;
} left;

/* Adds a b to y (R,W GT_LANES), rows ldy apart; b (K,...), rows ldb apart. */
GT_INLINE void block(float *y, size_t ldy, left a, const float *b, size_t ldb, size_t K,
                     const size_t R, const size_t W) {
  gt_vf sum[ROWS][2];
  for (size_t r = 0; r < R; r++)
    for (size_t w = 0; w < W; w++) sum[r][w] = *(const gt_vf *)(y + r * ldy + w * GT_LANES);
  for (size_t k = 0; k < K; k++, b += ldb) {
    gt_vf right[2];
    for (size_t w = 0; w < W; w++) right[w] = *(const gt_vf *)(b + w * GT_LANES);
    for (size_t r = 0; r < R; r++)
      for (size_t w = 0; w < W; w++) sum[r][w] += a.at[r * a.rows + k * a.steps] * right[w];
  }
  for (size_t r = 0; r < R; r++)
    for (size_t w = 0; w < W; w++) *(gt_vf *)(y + r * ldy + w * GT_LANES) = sum[r][w];
}

/* One function per block size, as in panels.c. */
typedef void block_of(float *y, size_t ldy, left a, const float *b, size_t ldb, size_t K);
#define BLOCK_OF(name, R, W)                                                                       \
  static __attribute__((noinline)) void name(float *y, size_t ldy, left a, const float *b,         \
                                             size_t ldb, size_t K) {                               \
    block(y, ldy, a, b, ldb, K, R, W);                                                             \
  }
BLOCK_OF(wide_most, ROWS, 2)
BLOCK_OF(wide_4, 4, 2)
BLOCK_OF(wide_2, 2, 2)
BLOCK_OF(wide_1, 1, 2)
BLOCK_OF(narrow_most, ROWS, 1)
BLOCK_OF(narrow_4, 4, 1)
BLOCK_OF(narrow_2, 2, 1)
BLOCK_OF(narrow_1, 1, 1)
static const struct {
  size_t rows;
  block_of *wide, *narrow;
} cuts[] = {{ROWS, wide_most, narrow_most},
            {4, wide_4, narrow_4},
            {2, wide_2, narrow_2},
            {1, wide_1, narrow_1}};

/* Adds a (rows,K) b (K,N) to y (rows,N); N a multiple of GT_LANES. */
static void multiply(float *y, size_t ldy, left a, const float *b, size_t ldb, size_t rows,
                     size_t K, size_t N) {
  for (size_t n = 0; n < N; n += 2 * GT_LANES)
    for (size_t r = 0, c = 0; r < rows; r += cuts[c].rows) {
      while (rows - r < cuts[c].rows) c++;
      const left from = {a.at + r * a.rows, a.rows, a.steps};
      (n + 2 * GT_LANES <= N ? cuts[c].wide : cuts[c].narrow)(y + r * ldy + n, ldy, from, b + n,
                                                              ldb, K);
    }
}

/* ---- copies ---- */

/* Copies the columns of a head in `from` to `to` (T,width); zero beyond its size. */
static void copy_rows(float *to, const float *from, size_t stride, const gt_attention_head *h) {
  for (size_t t = 0; t < h->T; t++, to += h->width, from += stride) {
    memcpy(to, from, h->size * sizeof *to);
    memset(to + h->size, 0, (h->width - h->size) * sizeof *to);
  }
}

/* Copies, for each block of positions, its transpose (size,BLOCK); zero beyond T. */
static void copy_turned(float *to, const float *from, size_t stride, const gt_attention_head *h) {
  for (size_t first = 0; first < h->T; first += BLOCK, to += h->size * BLOCK)
    for (size_t t = 0; t < BLOCK; t++)
      for (size_t d = 0; d < h->size; d++)
        to[d * BLOCK + t] = first + t < h->T ? from[(first + t) * stride + d] : 0.0F;
}

static void put_rows(float *to, const float *from, size_t stride, const gt_attention_head *h,
                     size_t rows) {
  for (size_t t = 0; t < rows; t++)
    memcpy(to + t * stride, from + t * h->width, h->size * sizeof *to);
}

/* ---- a block of scores ---- */

static size_t rows_of(const gt_attention_head *h, size_t first) {
  return h->T - first < BLOCK ? h->T - first : BLOCK;
}

/* Computes the scores (rows,BLOCK) of the queries from `first` on; keys: a block of copy_turned. */
static void score(float *scores, const float *q, size_t stride, const float *keys, size_t rows,
                  size_t size) {
  memset(scores, 0, rows * BLOCK * sizeof *scores);
  multiply(scores, BLOCK, (left){q, stride, 1}, keys, BLOCK, rows, size, BLOCK);
}

/* Returns the mask of the keys that a query attends to in a block: all, or on the diagonal those up
   to its own. */
GT_INLINE gt_vi seen(size_t v, size_t keys) {
  gt_vi number;
  for (int i = 0; i < GT_LANES; i++) number[i] = i;
  return number + (int32_t)(v * GT_LANES) < (int32_t)keys;
}

GT_INLINE float total_of(gt_vf x) {
  float sum = 0.0F;
  for (size_t i = 0; i < GT_LANES; i++) sum += x[i];
  return sum;
}

GT_INLINE float most_of(gt_vf x) {
  float most = x[0];
  for (size_t i = 1; i < GT_LANES; i++) most = x[i] > most ? x[i] : most;
  return most;
}

/* Replaces the scores of a query by exponentials relative to its running maximum, and rescales the
   sum and the output so far to the new maximum. */
static void weigh(float *scores, float *out, float *most, float *sum, size_t keys,
                  const gt_attention_head *h) {
  const gt_vf never = (gt_vf){0} - INFINITY;
  gt_vf s[VECTORS], top = never, all = {0};
  for (size_t v = 0; v < VECTORS; v++) {
    s[v] = gt_choose(seen(v, keys), *(gt_vf *)(scores + v * GT_LANES) * h->scale, never);
    top = gt_choose((gt_vi)(s[v] > top), s[v], top);
  }
  const float before = *most, now = most_of(top) > before ? most_of(top) : before;
  for (size_t v = 0; v < VECTORS; v++) {
    const gt_vf e = gt_choose(seen(v, keys), gt_exponential(s[v] - now), (gt_vf){0});
    *(gt_vf *)(scores + v * GT_LANES) = e;
    all += e;
  }
  const gt_vf fade = gt_exponential((gt_vf){0} + (before - now));
  *most = now;
  *sum = *sum * fade[0] + total_of(all);
  for (size_t d = 0; d < h->width; d += GT_LANES) *(gt_vf *)(out + d) *= fade;
}

/* ---- forward ---- */

/* Computes the queries from `first` on. */
static void forward_block(float *y, float *lse, const float *q, const float *keys,
                          const float *values, size_t first, const gt_attention_head *h,
                          float *work) {
  const size_t rows = rows_of(h, first);
  float *scores = work, *out = scores + BLOCK * BLOCK, most[BLOCK], sum[BLOCK] = {0};
  for (size_t r = 0; r < rows; r++) most[r] = -INFINITY;
  memset(out, 0, rows * h->width * sizeof *out);
  for (size_t from = 0; from <= first; from += BLOCK) {
    score(scores, q, 3 * h->D, keys + from * h->size, rows, h->size);
    for (size_t r = 0; r < rows; r++)
      weigh(scores + r * BLOCK, out + r * h->width, &most[r], &sum[r], from < first ? BLOCK : r + 1,
            h);
    multiply(out, h->width, (left){scores, BLOCK, 1}, values + from * h->width, h->width, rows,
             rows_of(h, from), h->width);
  }
  for (size_t r = 0; r < rows; r++) {
    lse[r] = most[r] + logf(sum[r]);
    for (size_t d = 0; d < h->size; d++) y[r * h->D + d] = out[r * h->width + d] / sum[r];
  }
}

static void forward(float *y, float *lse, const float *qkv, const gt_attention_head *h,
                    float *work) {
  const size_t stride = 3 * h->D;
  float *keys = work, *values = keys + h->rows * h->width, *rest = values + h->rows * h->width;
  copy_turned(keys, qkv + h->D, stride, h);
  copy_rows(values, qkv + 2 * h->D, stride, h);
  for (size_t t = 0; t < h->T; t += BLOCK)
    forward_block(y + t * h->D, lse + t, qkv + t * stride, keys, values, t, h, rest);
}

/* ---- backward ---- */

/* Copies of a head: queries, keys and gradients of the output as rows; keys and values transposed;
   the gradients of queries, and those of a block of keys and values. */
typedef struct {
  float *q, *k, *dy, *keys, *values, *dq, *dk, *dv, *delta, *scores, *gradients;
} copies;

static copies copies_of(float *work, const gt_attention_head *h) {
  const size_t n = h->rows * h->width;
  copies c = {.q = work,
              .k = work + n,
              .dy = work + 2 * n,
              .keys = work + 3 * n,
              .values = work + 4 * n,
              .dq = work + 5 * n,
              .dk = work + 6 * n,
              .dv = work + 7 * n,
              .delta = work + 8 * n};
  c.scores = c.delta + h->rows;
  c.gradients = c.scores + BLOCK * BLOCK;
  return c;
}

/* Replaces the scores of a query by its weights, and the gradients of the weights by those of the
   scores. */
static void differentiate(float *scores, float *gradients, float lse, float delta, size_t keys,
                          float scale) {
  for (size_t v = 0; v < VECTORS; v++) {
    gt_vf *s = (gt_vf *)(scores + v * GT_LANES), *g = (gt_vf *)(gradients + v * GT_LANES);
    const gt_vf share = gt_choose(seen(v, keys), gt_exponential(*s * scale - lse), (gt_vf){0});
    *s = share;
    *g = share * (*g - delta) * scale;
  }
}

/* Adds the contribution of the queries from `first` on to the gradients of the keys from `from`
   on. */
static void backward_block(const copies *c, const float *lse, size_t first, size_t from,
                           const gt_attention_head *h) {
  const size_t rows = rows_of(h, first), keys = rows_of(h, from), W = h->width;
  const float *q = c->q + first * W, *dy = c->dy + first * W;
  score(c->scores, q, W, c->keys + from * h->size, rows, h->size);
  score(c->gradients, dy, W, c->values + from * h->size, rows, h->size);
  for (size_t r = 0; r < rows; r++)
    differentiate(c->scores + r * BLOCK, c->gradients + r * BLOCK, lse[first + r],
                  c->delta[first + r], from < first ? BLOCK : r + 1, h->scale);
  multiply(c->dv, W, (left){c->scores, 1, BLOCK}, dy, W, keys, rows, W);
  multiply(c->dk, W, (left){c->gradients, 1, BLOCK}, q, W, keys, rows, W);
  multiply(c->dq + first * W, W, (left){c->gradients, BLOCK, 1}, c->k + from * W, W, rows, keys, W);
}

static void find_delta(float *delta, const float *dy, const float *y, const gt_attention_head *h) {
  for (size_t t = 0; t < h->T; t++) {
    float sum = 0.0F;
    for (size_t d = 0; d < h->size; d++) sum += dy[t * h->D + d] * y[t * h->D + d];
    delta[t] = sum;
  }
}

static void backward(float *dqkv, const float *dy, const float *y, const float *lse,
                     const float *qkv, const gt_attention_head *h, float *work) {
  const size_t stride = 3 * h->D, W = h->width;
  const copies c = copies_of(work, h);
  copy_rows(c.q, qkv, stride, h);
  copy_rows(c.k, qkv + h->D, stride, h);
  copy_rows(c.dy, dy, h->D, h);
  copy_turned(c.keys, qkv + h->D, stride, h);
  copy_turned(c.values, qkv + 2 * h->D, stride, h);
  find_delta(c.delta, dy, y, h);
  memset(c.dq, 0, h->rows * W * sizeof *c.dq);
  for (size_t from = 0; from < h->T; from += BLOCK) {
    const size_t keys = rows_of(h, from);
    memset(c.dk, 0, keys * W * sizeof *c.dk);
    memset(c.dv, 0, keys * W * sizeof *c.dv);
    for (size_t first = from; first < h->T; first += BLOCK) backward_block(&c, lse, first, from, h);
    put_rows(dqkv + h->D + from * stride, c.dk, stride, h, keys);
    put_rows(dqkv + 2 * h->D + from * stride, c.dv, stride, h, keys);
  }
  put_rows(dqkv, c.dq, stride, h, h->T);
}

const gt_attention_loops GT_FOR_ISA(gt_attention_loops) = {.forward = forward,
                                                           .backward = backward};
