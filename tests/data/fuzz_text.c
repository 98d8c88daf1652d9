/* Any bytes as text, plain or gzip, give GT_ERR_DATA with a sentence or a data set, without crashes
   or leaks, and are restored from their tokens.  The first bytes of the input are the options. */
#include "fuzz.h"
#include "import.h"

/* Checks that decoding the tokens gives the text. */
static void round_trip(const char *text, size_t n, size_t vocabulary) {
  gt_tokens *tokens = gt_merges_learn(text, n / 2, vocabulary);
  int32_t *ids = GT_NEW_ARRAY(int32_t, n + 1);
  const size_t count = gt_tokens_encode(tokens, text, n, ids);
  size_t at = 0, bytes;
  for (size_t i = 0; i < count; at += bytes, i++) {
    if (ids[i] < 0 || (size_t)ids[i] >= gt_tokens_count(tokens)) abort();
    const char *token = gt_tokens_bytes(tokens, ids[i], &bytes);
    if (bytes > n - at || memcmp(token, text + at, bytes) != 0) abort();
  }
  if (at != n) abort();
  gt_free(ids);
  gt_tokens_close(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[96];
  if (size < 3) return 0;
  const size_t vocabulary = GT_TOKEN_BYTES + data[0];
  const double share = data[2] / 256.0;
  const gt_import_options options = {
      .vocabulary = vocabulary, .length = 1 + data[1] % 16, .test_share = &share};
  fuzz_put("text", data + 3, size - 3);
  snprintf(path, sizeof path, "%s/text", fuzz_folder);
  fuzz_import_as("text", path, &options);
  round_trip((const char *)data + 3, size - 3, vocabulary);
  return 0;
}
