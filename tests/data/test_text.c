/* Text: the windows that become samples, the merged pairs (compared with a slow and plain trainer),
   decoding restores any bytes, the vocabulary is in the file and can be reused. */
#include "scratch.h"

#include <hdf5.h>

#include "import.h"
#include "tokens.h"

static const double no_tests = 0, half = 0.5;

static gt_status import_as(const char *out, const gt_import_options *options,
                           gt_text_found *found) {
  const char *file = scratch("t.txt");
  return gt_data_import("text", &file, 1, scratch(out), options, found);
}

static void put(const char *bytes, size_t n) {
  scratch_write(scratch("t.txt"), bytes, n);
}

/* Reads the samples of a split; the caller frees them. */
static int32_t *samples(const char *name, gt_split split, size_t *n, size_t *row) {
  gt_dataset *dataset;
  gt_loader *loader;
  assert_int_equal(gt_dataset_open(&dataset, scratch(name)), GT_OK);
  assert_int_equal(gt_loader_create(&loader, dataset, split, NULL, 0), GT_OK);
  *n = gt_loader_samples(loader);
  *row = gt_dataset_describe(dataset)->c;
  int32_t *x = GT_NEW_ARRAY(int32_t, *n * *row + 1), *y = GT_NEW_ARRAY(int32_t, *n + 1);
  gt_loader_range(loader, 0, *n, x, y);
  for (size_t i = 0; i < *n; i++) assert_int_equal(y[i], 0);
  gt_free(y);
  gt_loader_close(loader);
  gt_dataset_close(dataset);
  return x;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Every id but the first is predicted once: samples begin with the last id of the previous one. */
static void test_windows(void) {
  static const char text[] = "0123456789abcdefghijk";
  gt_text_found found;
  gt_dataset *dataset;
  size_t n, row;
  put(text, 21);
  assert_int_equal(
      import_as("t.h5", &(gt_import_options){.length = 3, .test_share = &half}, &found), GT_OK);
  assert_int_equal(found.bytes, 21);
  assert_int_equal(found.vocabulary, 256);
  assert_int_equal(found.left[0], 0); /* 10 bytes: 0 is the first, then 3 x 3 */
  assert_int_equal(found.left[1], 1); /* 11 bytes */
  for (size_t s = 0; s < 2; s++) {
    const char *part = s == GT_SPLIT_TRAIN ? text : text + 10;
    int32_t *x = samples("t.h5", (gt_split)s, &n, &row);
    assert_int_equal(n, 3);
    assert_int_equal(found.samples[s], 3);
    assert_int_equal(row, 4);
    for (size_t i = 0; i < n; i++)
      for (size_t k = 0; k < row; k++) assert_int_equal(x[i * row + k], part[3 * i + k]);
    gt_free(x);
  }
  assert_int_equal(gt_dataset_open(&dataset, scratch("t.h5")), GT_OK);
  const gt_dataset_info *d = gt_dataset_describe(dataset);
  assert_non_null(gt_dataset_tokens(dataset));
  assert_int_equal(d->features, 256);
  assert_int_equal(d->classes, 256);
  assert_string_equal(d->name, "t");
  assert_int_equal(strlen(d->vocabulary_sha256), 64);
  gt_dataset_close(dataset);
}

/* The test part does not begin inside a UTF-8 character; a text can do without a test part. */
static void test_parts(void) {
  gt_text_found found;
  size_t n, row;
  put("abc\xE2\x82\xAC"
      "defgh",
      11);
  const gt_import_options halves = {.length = 2, .test_share = &half};
  assert_int_equal(import_as("t.h5", &halves, &found), GT_OK);
  int32_t *x = samples("t.h5", GT_SPLIT_TEST, &n, &row);
  assert_int_equal(x[0], 'd');
  gt_free(x);
  assert_int_equal(
      import_as("t.h5", &(gt_import_options){.length = 10, .test_share = &no_tests}, &found),
      GT_OK);
  assert_int_equal(found.samples[0], 1);
  assert_int_equal(found.samples[1], 0);
  assert_int_equal(found.left[0] + found.left[1], 0);
}

/* Several files are one text; gzip or plain. */
static void test_files(void) {
  const char *files[3] = {scratch("a.txt"), scratch("b.txt.gz"), scratch("c.txt")};
  size_t n, row;
  scratch_write(files[0], "abcd", 4);
  scratch_gzip(files[1], "efgh", 4);
  scratch_write(files[2], "", 0);
  const gt_import_options o = {.length = 7, .test_share = &no_tests};
  assert_int_equal(gt_data_import("text", files, 3, scratch("three.h5"), &o, NULL), GT_OK);
  int32_t *x = samples("three.h5", GT_SPLIT_TRAIN, &n, &row);
  assert_int_equal(n, 1);
  for (int i = 0; i < 8; i++) assert_int_equal(x[i], 'a' + i);
  gt_free(x);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static const struct {
  const char *text, *pieces; /* pieces: each followed by a '|' */
} cuts[] = {
    {"A good film.", "A| good| film|.|"},
    {"a  b", "a| | b|"},
    {"a \n b", "a| \n| b|"},
    {"a\n\nb", "a|\n\n|b|"},
    {"don't, 12x!? ", "don|'|t|,| 12|x|!?| |"},
    {" ", " |"},
    {"   ", "   |"},
    {" ...", " ...|"},
    {"\xC3\xA4h \xC3\xB6", "\xC3\xA4h| \xC3\xB6|"},
};

static void test_pieces(void) {
  char found[64];
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    const char *text = cuts[i].text;
    found[0] = 0;
    for (size_t at = 0, n = strlen(text), step; at < n; at += step) {
      step = gt_piece_next(text + at, n - at);
      snprintf(found + strlen(found), sizeof found - strlen(found), "%.*s|", (int)step, text + at);
    }
    assert_string_equal(found, cuts[i].pieces);
  }
  /* no longer than the most, whatever it begins with and whatever follows */
  char run[300];
  for (size_t blanks = 0; blanks < 70; blanks++) {
    memset(run, ' ', blanks);
    memset(run + blanks, 'x', sizeof run - blanks);
    size_t at = 0;
    for (size_t step; at < sizeof run; at += step) {
      step = gt_piece_next(run + at, sizeof run - at);
      assert_in_range(step, 1, GT_PIECE_MAX);
    }
    assert_int_equal(at, sizeof run);
  }
}

/* ---- merges ---------------------------------------------------------------------------------- */

enum { MOST = 4096 };

/* A text as tokens, with the ends of its pieces. */
typedef struct {
  int32_t ids[MOST];
  bool last[MOST]; /* of its piece */
  size_t n;
} plain;

static void plain_of(plain *p, const char *text, size_t n) {
  p->n = n;
  for (size_t i = 0; i < n; i++) p->ids[i] = (unsigned char)text[i], p->last[i] = false;
  for (size_t at = 0; at < n;) {
    at += gt_piece_next(text + at, n - at);
    p->last[at - 1] = true;
  }
}

static void plain_merge(plain *p, int32_t left, int32_t right, int32_t id) {
  size_t to = 0;
  for (size_t i = 0; i < p->n; i++, to++) {
    const bool found = i + 1 < p->n && !p->last[i] && p->ids[i] == left && p->ids[i + 1] == right;
    if (found) i++;
    p->last[to] = p->last[i];
    p->ids[to] = found ? id : p->ids[i];
  }
  p->n = to;
}

/* Finds the most frequent pair by counting from scratch; false: none occurs twice. */
static bool plain_best(const plain *p, int32_t pair[2]) {
  size_t best = 1;
  for (size_t i = 0; i + 1 < p->n; i++) {
    const int32_t a = p->ids[i], b = p->ids[i + 1];
    size_t count = 0;
    if (p->last[i]) continue;
    for (size_t k = 0; k + 1 < p->n; k++)
      count += !p->last[k] && p->ids[k] == a && p->ids[k + 1] == b;
    const bool first = a < pair[0] || (a == pair[0] && b < pair[1]);
    if (count > best || (count == best && best > 1 && first)) {
      best = count;
      pair[0] = a;
      pair[1] = b;
    }
  }
  return best > 1;
}

/* Makes texts of few letters, so that pairs overlap and are equally frequent. */
static void invent(gt_rng *rng, char *text, size_t n, size_t letters) {
  static const char alphabet[] = "ab c\n0.\xC3\0d";
  for (size_t i = 0; i < n; i++) text[i] = alphabet[gt_rng_below(rng, letters)];
}

static void compare(const char *text, size_t n, size_t count) {
  plain *p = GT_NEW(plain);
  gt_tokens *tokens = gt_merges_learn(text, n, count);
  size_t learnt;
  const int64_t *merges = gt_tokens_merges(tokens, &learnt);
  int32_t pair[2] = {0}, *ids = GT_NEW_ARRAY(int32_t, n + 1);
  size_t k = 0;
  plain_of(p, text, n);
  for (; k < count - GT_TOKEN_BYTES && plain_best(p, pair); k++) {
    assert_true(k < learnt);
    assert_int_equal(merges[2 * k], pair[0]);
    assert_int_equal(merges[2 * k + 1], pair[1]);
    plain_merge(p, pair[0], pair[1], (int32_t)(GT_TOKEN_BYTES + k));
  }
  assert_int_equal(k, learnt);
  /* encoding is the merges in their order */
  assert_int_equal(gt_tokens_encode(tokens, text, n, ids), p->n);
  assert_memory_equal(ids, p->ids, p->n * sizeof *ids);
  gt_free(ids);
  gt_free(p);
  gt_tokens_close(tokens);
}

static void test_merges(void) {
  static char text[MOST];
  for (uint64_t i = 0; i < 60; i++) {
    gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 71, i);
    const size_t n = 1 + gt_rng_below(&rng, 400), letters = 1 + gt_rng_below(&rng, 10);
    invent(&rng, text, n, letters);
    compare(text, n, GT_TOKEN_BYTES + gt_rng_below(&rng, 60));
  }
  compare("aaabdaaabac", 11, 260);
  compare("", 0, 300);
}

/* Decoding restores any bytes, also those that did not occur in training. */
static void test_round_trip(void) {
  static char seen[MOST], other[MOST], back[MOST];
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 72, 0);
  invent(&rng, seen, MOST, 9);
  gt_tokens *tokens = gt_merges_learn(seen, MOST, 500);
  int32_t *ids = GT_NEW_ARRAY(int32_t, MOST);
  for (size_t i = 0; i < MOST; i++)
    other[i] = gt_rng_below(&rng, 2) ? (char)gt_rng_below(&rng, 256) : seen[i];
  const size_t n = gt_tokens_encode(tokens, other, MOST, ids);
  size_t at = 0, bytes;
  for (size_t i = 0; i < n; at += bytes, i++) {
    const char *token = gt_tokens_bytes(tokens, ids[i], &bytes);
    assert_true(at + bytes <= MOST);
    memcpy(back + at, token, bytes);
  }
  assert_int_equal(at, MOST);
  assert_memory_equal(back, other, MOST);
  assert_true(n < MOST);
  gt_free(ids);
  gt_tokens_close(tokens);
}

/* ---- the vocabulary in the file -------------------------------------------------------------- */

static const char verse[] =
    "to be, or not to be: that is the question: whether 'tis nobler in the "
    "mind to suffer the slings and arrows of outrageous fortune, or to take";

static void ignore(const char *path) {
  (void)path;
}

static void check_hash(const char *name, const char *hash) {
  gt_tokens *tokens;
  assert_int_equal(gt_tokens_open(&tokens, scratch(name)), GT_OK);
  assert_string_equal(gt_tokens_hash(tokens), hash);
  gt_tokens_close(tokens);
}

/* Another file with the first one's vocabulary has its hash; the parts of a split have it, too. */
static void test_shared(void) {
  gt_text_found found;
  gt_dataset *dataset;
  char hash[65];
  const char *first = scratch("verse.h5");
  const gt_import_options learns = {.vocabulary = 258, .length = 4, .test_share = &half},
                          uses = {.vocabulary_of = first, .length = 4, .test_share = &half};
  const gt_partition two = {.kind = GT_PART_SHARES, .nregions = 2, .seed = 1};
  put(verse, sizeof verse - 1);
  assert_int_equal(import_as("verse.h5", &learns, &found), GT_OK);
  assert_int_equal(found.vocabulary, 258);
  assert_int_equal(gt_dataset_open(&dataset, first), GT_OK);
  snprintf(hash, sizeof hash, "%s", gt_dataset_describe(dataset)->vocabulary_sha256);
  gt_dataset_close(dataset);
  check_hash("verse.h5", hash);
  assert_int_equal(gt_data_split(first, &two, GT_TESTS_ALL, NULL, false, ignore), GT_OK);
  check_hash("verse-2.h5", hash);
  put(verse + 40, sizeof verse - 41);
  assert_int_equal(import_as("other.h5", &uses, &found), GT_OK);
  assert_int_equal(found.vocabulary, 258);
  check_hash("other.h5", hash);
  /* the same text with a vocabulary of its own has another one */
  assert_int_equal(import_as("other.h5", &learns, &found), GT_OK);
  gt_tokens *tokens;
  assert_int_equal(gt_tokens_open(&tokens, scratch("other.h5")), GT_OK);
  assert_string_not_equal(gt_tokens_hash(tokens), hash);
  gt_tokens_close(tokens);
}

/* A text in which no pair occurs twice has a smaller vocabulary than wanted. */
static void test_few_pairs(void) {
  gt_text_found found;
  put("abcdefg", 7);
  const gt_import_options o = {.vocabulary = 1000, .length = 4, .test_share = &no_tests};
  assert_int_equal(import_as("t.h5", &o, &found), GT_OK);
  assert_int_equal(found.vocabulary, 256);
}

/* ---- refused options and files --------------------------------------------------------------- */

static void refused(const gt_import_options *o, gt_status status, const char *said) {
  const int entries = scratch_entries();
  assert_failed(import_as("bad.h5", o, NULL), status, said);
  assert_int_equal(scratch_entries(), entries);
}

static void test_short(void) {
  const gt_import_options whole = {.length = 4, .test_share = &no_tests},
                          halves = {.length = 4, .test_share = &half};
  put("", 0);
  refused(&whole, GT_ERR_DATA,
          "t.txt: the text for the train split, 0 bytes, is 0 tokens; expected 5 or");
  put("abcd", 4);
  refused(&whole, GT_ERR_DATA,
          "the text for the train split, 4 bytes, is 4 tokens; expected 5 or more for a sample "
          "(--length 4, and the one that follows)");
  put("abcdefghi", 9);
  refused(&halves, GT_ERR_DATA,
          "the text for the train split, 4 bytes, is 4 tokens; expected 5 or more");
  put("abcd\xC3\xA4xyz", 9); /* train gets 4 bytes and the rest of a character */
  refused(&halves, GT_ERR_DATA, "train split, 4 bytes");
  const double tenth = 0.1;
  put("abcdefghijk", 11);
  refused(&(gt_import_options){.length = 4, .test_share = &tenth}, GT_ERR_DATA,
          "t.txt: the text for the test split, 2 bytes, is 2 tokens; expected 5 or more");
  put("abcde", 5);
  assert_int_equal(import_as("t.h5", &whole, NULL), GT_OK);
  put("\0\0\xff\xfe\x80", 5);
  assert_int_equal(import_as("t.h5", &whole, NULL), GT_OK);
}

static void test_files_refused(void) {
  const char *file = scratch("nowhere.txt"), *folder = scratch("folder");
  const gt_import_options o = {.length = 4, .test_share = &no_tests};
  assert_failed(gt_data_import("text", &file, 1, scratch("bad.h5"), &o, NULL), GT_ERR_DATA,
                "nowhere.txt: cannot be opened (No such file or directory)");
  mkdir(folder, 0777);
  assert_failed(gt_data_import("text", &folder, 1, scratch("bad.h5"), &o, NULL), GT_ERR_DATA,
                "folder: is a folder; expected a file of text");
  size_t size;
  scratch_gzip(scratch("cut.gz"), verse, sizeof verse);
  uint8_t *bytes = scratch_read(scratch("cut.gz"), &size);
  scratch_write(scratch("t.txt"), bytes, size - 3);
  gt_free(bytes);
  refused(&o, GT_ERR_DATA, "t.txt: its gzip data end before their check sum");
}

static void test_options(void) {
  const double whole = 1, negative = -0.1;
  put(verse, sizeof verse - 1);
  refused(&(gt_import_options){.vocabulary = 255}, GT_ERR_JOB,
          "data import --vocabulary is 255; expected 256 to 1000000");
  refused(&(gt_import_options){.length = 65537}, GT_ERR_JOB,
          "data import --length is 65537; expected 1 to 65536");
  refused(&(gt_import_options){.test_share = &whole}, GT_ERR_JOB,
          "data import --test-share is 1; expected 0 or more, and less than 1");
  refused(&(gt_import_options){.test_share = &negative}, GT_ERR_JOB,
          "--test-share is -0.1; expected 0 or");
  refused(&(gt_import_options){.vocabulary = 300, .vocabulary_of = scratch("verse.h5")}, GT_ERR_JOB,
          "data import has --vocabulary and --vocabulary-of; expected one of them");
  refused(&(gt_import_options){.vocabulary_of = scratch("t.txt")}, GT_ERR_DATA, "t.txt: ");
  const gt_synth_spec images = {.seed = 1, .ntrain = 4, .ntest = 4, .h = 4, .w = 4, .classes = 2};
  assert_int_equal(gt_data_synth(scratch("images.h5"), &images), GT_OK);
  refused(&(gt_import_options){.vocabulary_of = scratch("images.h5")}, GT_ERR_DATA,
          "images.h5: has no /merges, so it is not a data set of text");
}

/* Replaces the merges of a file. */
static void spoil(hid_t type, int rank, const hsize_t *dims, const int32_t *values) {
  const gt_import_options o = {.vocabulary = 260, .length = 4, .test_share = &no_tests};
  put(verse, sizeof verse - 1);
  assert_int_equal(import_as("spoilt.h5", &o, NULL), GT_OK);
  hid_t file = H5Fopen(scratch("spoilt.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
  assert_true(file >= 0 && H5Ldelete(file, "merges", H5P_DEFAULT) >= 0);
  hid_t space = H5Screate_simple(rank, dims, NULL);
  hid_t set = H5Dcreate2(file, "merges", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(set >= 0 &&
              H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  H5Dclose(set);
  H5Sclose(space);
  assert_true(H5Fclose(file) >= 0);
}

static const struct {
  int rank;
  hsize_t dims[2];
  int32_t values[24];
  const char *said;
} spoilt[] = {
    {1, {4, 0}, {1, 2, 3, 4}, "/merges has another shape; expected int32 (M,2), M at most 999744"},
    {2, {1, 3}, {1, 2, 3}, "/merges has another shape"},
    {2, {2, 2}, {65, 66, 257, 3}, "merge 1 joins token 257; expected 0 to 256"},
    {2, {2, 2}, {65, -1, 256, 3}, "merge 0 joins token -1; expected 0 to 255"},
    {2, {2, 2}, {65, 66, 65, 66}, "merge 1 is there twice; each must occur once"},
    {2,
     {7, 2},
     {65, 65, 256, 256, 257, 257, 258, 258, 259, 259, 260, 260, 261, 261},
     "merge 6 gives a token of more than 64 bytes"},
};

static void test_spoilt(void) {
  gt_tokens *tokens;
  for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
    spoil(H5T_STD_I32LE, spoilt[i].rank, spoilt[i].dims, spoilt[i].values);
    assert_failed(gt_tokens_open(&tokens, scratch("spoilt.h5")), GT_ERR_DATA, spoilt[i].said);
    assert_null(tokens);
    gt_dataset *dataset;
    assert_failed(gt_dataset_open(&dataset, scratch("spoilt.h5")), GT_ERR_DATA, spoilt[i].said);
  }
  gt_dataset *dataset;
  spoil(H5T_STD_I32LE, 2, (const hsize_t[]){1, 2}, (const int32_t[]){65, 66});
  assert_failed(gt_dataset_open(&dataset, scratch("spoilt.h5")), GT_ERR_DATA,
                "features is 260 and /merges makes 257 tokens; expected the same number");
  spoil(H5T_IEEE_F64LE, 2, (const hsize_t[]){1, 2}, (const int32_t[]){65, 66});
  assert_failed(gt_tokens_open(&tokens, scratch("spoilt.h5")), GT_ERR_DATA, "another shape");
}

TESTS_BETWEEN(NULL, scratch_remove, test_windows, test_parts, test_files, test_pieces, test_merges,
              test_round_trip, test_shared, test_few_pairs, test_short, test_files_refused,
              test_options, test_spoilt)
