/* Selected positions of a chunk: selection by magnitude, and their encoding in 12 bits. */
#include "internal.h"

size_t gt_positions_bytes(size_t count) {
  return (count * 12 + 7) / 8;
}

void gt_positions_pack(unsigned char *out, const uint16_t *index, size_t count) {
  for (size_t i = 0; i + 2 <= count; i += 2, out += 3) {
    out[0] = (unsigned char)index[i];
    out[1] = (unsigned char)(index[i] >> 8 | (index[i + 1] & 15) << 4);
    out[2] = (unsigned char)(index[i + 1] >> 4);
  }
  if (count % 2) {
    out[0] = (unsigned char)index[count - 1];
    out[1] = (unsigned char)(index[count - 1] >> 8);
  }
}

void gt_positions_unpack(uint16_t *index, const unsigned char *in, size_t count) {
  for (size_t i = 0; i + 2 <= count; i += 2, in += 3) {
    index[i] = (uint16_t)(in[0] | (in[1] & 15) << 8);
    index[i + 1] = (uint16_t)(in[1] >> 4 | in[2] << 4);
  }
  if (count % 2) index[count - 1] = (uint16_t)(in[0] | (in[1] & 15) << 8);
}

bool gt_positions_valid(const unsigned char *in, size_t count, size_t n) {
  uint16_t index[GT_CODEC_CHUNK];
  gt_positions_unpack(index, in, count);
  for (size_t i = 0; i < count; i++)
    if (index[i] >= n || (i > 0 && index[i] <= index[i - 1])) return false;
  return count % 2 == 0 || in[gt_positions_bytes(count) - 1] < 16;
}

void gt_positions_open(gt_codec *codec, size_t count) {
  if (codec->spec.shapes_only) return;
  codec->index = GT_NEW_ARRAY(uint16_t, GT_CODEC_CHUNK);
  codec->candidates = GT_NEW_ARRAY(uint16_t, GT_CODEC_CHUNK);
  codec->keys = GT_NEW_ARRAY(uint32_t, GT_CODEC_CHUNK);
  codec->picked = GT_NEW_ARRAY(float, count);
}

static uint32_t magnitude(const float *x, size_t i) {
  uint32_t bits;
  memcpy(&bits, &x[i], sizeof bits);
  return bits & 0x7fffffffU;
}

/* Moves the guess until between k and 4 k values reach it (k to n if k is large or many values are
   equal): in steps of half an octave, then by bisection. */
static uint32_t guess(const gt_codec_loops *loops, const float *x, size_t n, size_t k,
                      uint32_t least) {
  uint32_t low = 0, high = 0x80000000U, step = 1U << 22; /* low: enough values; high: too few */
  for (;;) {
    const size_t found = loops->count(x, least, n);
    if (found >= k && found <= 4 * k) return least;
    if (found >= k)
      low = least;
    else
      high = least;
    if (high - low <= 1) return low;
    if (low == 0 && high > step)
      least = high - step, step *= 2;
    else if (high == 0x80000000U && low < high - step)
      least = low + step, step *= 2;
    else
      least = low + (high - low) / 2;
  }
}

/* Returns the k-th largest magnitude of `count` >= k candidates (Hoare's selection). */
static uint32_t kth(uint32_t *keys, size_t count, size_t k) {
  size_t from = 0, to = count; /* the answer is in [from, to) of descending order */
  for (;;) {
    if (to - from == 1) return keys[from];
    const uint32_t pivot = keys[from + (to - from) / 2];
    size_t above = from, equal = from, below = to; /* [from,above) > pivot; [above,equal) = */
    while (equal < below) {
      const uint32_t key = keys[equal];
      if (key > pivot) {
        keys[equal++] = keys[above];
        keys[above++] = key;
      } else if (key < pivot) {
        keys[equal] = keys[--below];
        keys[below] = key;
      } else {
        equal++;
      }
    }
    if (k <= above)
      to = above;
    else if (k <= equal)
      return pivot;
    else
      from = equal;
  }
}

void gt_positions_select(gt_codec *codec, const float *x, size_t n, size_t k, uint32_t *threshold) {
  uint16_t *index = codec->index, *candidates = codec->candidates;
  if (k >= n) {
    for (size_t i = 0; i < n; i++) index[i] = (uint16_t)i;
    return;
  }
  const uint32_t least = guess(codec->loops, x, n, k, *threshold);
  const size_t found = codec->loops->collect(candidates, x, least, n);
  for (size_t i = 0; i < found; i++) codec->keys[i] = magnitude(x, candidates[i]);
  const uint32_t last = kth(codec->keys, found, k);
  /* The next chunk is similar, so a slightly lower guess usually finds all values in one pass. */
  *threshold = last > (1U << 20) ? last - (1U << 20) : 0;
  size_t above = 0;
  for (size_t i = 0; i < found; i++) above += magnitude(x, candidates[i]) > last;
  size_t taken = 0, ties = k - above;
  for (size_t i = 0; i < found; i++) {
    const uint32_t key = magnitude(x, candidates[i]);
    if (key < last || (key == last && ties == 0)) continue;
    if (key == last) ties--;
    index[taken++] = candidates[i];
  }
}
