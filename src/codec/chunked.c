/* Tensors of codecs that encode each chunk separately. */
#include "internal.h"

size_t gt_chunked_bound(const gt_codec *codec, const gt_codec_tensor *t, size_t step) {
  (void)step;
  const gt_codec_chunk_ops *chunk = codec->ops->chunk;
  const size_t whole = t->count / GT_CODEC_CHUNK, rest = t->count % GT_CODEC_CHUNK;
  return whole * chunk->bytes(&codec->spec, GT_CODEC_CHUNK) +
         (rest ? chunk->bytes(&codec->spec, rest) : 0);
}

/* Returns the key of a tensor's random numbers, the same in sender and receiver. */
static uint32_t key_of_tensor(const gt_codec *codec, const gt_codec_turn *turn,
                              const gt_codec_tensor *t) {
  const uint32_t sender = codec->ops->chunk->shared_key ? UINT32_MAX : turn->sender;
  gt_rng rng =
      gt_rng_make(codec->spec.seed, GT_RNG_CODEC, turn->round, (uint64_t)t->number << 32 | sender);
  return (uint32_t)gt_rng_u64(&rng);
}

static uint32_t key_of_chunk(uint32_t key, const gt_codec_tensor *t, size_t start) {
  return key ^ (uint32_t)((t->skipped + start) / GT_CODEC_CHUNK) * 0x85ebca6bU;
}

size_t gt_chunked_encode(gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                         const float *a, unsigned char *out) {
  const gt_codec_chunk_ops *chunk = codec->ops->chunk;
  const uint32_t key = key_of_tensor(codec, turn, t);
  unsigned char *at = out;
  for (size_t start = 0; start < t->count; start += GT_CODEC_CHUNK) {
    const size_t n = gt_codec_chunk_values(t->count, start);
    chunk->encode(codec, key_of_chunk(key, t, start), at, a + start, n);
    at += chunk->bytes(&codec->spec, n);
  }
  return (size_t)(at - out);
}

size_t gt_chunked_check(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                        const unsigned char *in, size_t left) {
  const gt_codec_chunk_ops *chunk = codec->ops->chunk;
  const size_t all = gt_chunked_bound(codec, t, turn->step);
  if (left < all) return 0;
  for (size_t start = 0; start < t->count; start += GT_CODEC_CHUNK) {
    const size_t n = gt_codec_chunk_values(t->count, start);
    if (!chunk->check(codec, in, n)) return 0;
    in += chunk->bytes(&codec->spec, n);
  }
  return all;
}

size_t gt_chunked_add(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                      const unsigned char *in, float scale, float *y) {
  const gt_codec_chunk_ops *chunk = codec->ops->chunk;
  const uint32_t key = key_of_tensor(codec, turn, t);
  const unsigned char *at = in;
  for (size_t start = 0; start < t->count; start += GT_CODEC_CHUNK) {
    const size_t n = gt_codec_chunk_values(t->count, start);
    chunk->add(codec, key_of_chunk(key, t, start), at, scale, y + start, n);
    at += chunk->bytes(&codec->spec, n);
  }
  return (size_t)(at - in);
}
