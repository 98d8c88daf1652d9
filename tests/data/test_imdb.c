/* Reviews: the definition of words, the words that get ids, the words kept of a text; the message
   names every invalid line; the vocabulary is in the file, and regions compare it. */
#include "scratch.h"

#include <hdf5.h>

#include "lines.h"
#include "words.h"

#define HEADER "label\trating\tid\ttext\n"
static const char good_test[] = HEADER "0\t1\t0\tbad bad unseen\n";

/* Writes these texts into folder f. */
static void write_pair(const char *train, const char *test) {
  mkdir(scratch("f"), 0777);
  scratch_write(scratch("f/imdb_train.tsv"), train, strlen(train));
  scratch_write(scratch("f/imdb_test.tsv"), test, strlen(test));
}

static gt_status import(uint64_t vocabulary, uint64_t length) {
  const char *folder = scratch("f");
  return gt_data_import("imdb", &folder, 1, scratch("f.h5"),
                        &(gt_import_options){.vocabulary = vocabulary, .length = length}, NULL);
}

/* ---- words ----------------------------------------------------------------------------------- */

static const struct {
  const char *text, *words; /* words: each followed by a '|' */
} splits[] = {
    {"A good film.", "a|good|film|"},
    {"  ", ""},
    {"", ""},
    {"Don't 'quote' me, it's the '90s'", "don't|quote|me|it's|the|90s|"},
    {"rock'n'roll o''clock '", "rock'n'roll|o|clock|"},
    {"one<br /><br />two<BR>three<br/>four<br  >five", "one|two|three|four|five|"},
    {"<br <br/ a <b>bold</b>", "br|br|a|b|bold|b|"},
    {"10/10, 7.5 sci-fi under_score", "10|10|7|5|sci|fi|under|score|"},
    {"tab\tand\x01 control", "tab|and|control|"},
    {"caf\xc3\xa9 NA\xc3\x8fVE \xe6\x97\xa5\xe6\x9c\xac",
     "caf\xc3\xa9|na\xc3\x8fve|\xe6\x97\xa5\xe6\x9c\xac|"},
    {"\xe2\x80\x9cquoted\xe2\x80\x9d\xe2\x80\x94\xc2\xa3"
     "50\xc2\x96x",
     "quoted|50|x|"},
    {"cut\xe2\x80", "cut|"},
    {"cut\xc2", "cut|"},
    {"cut\xe2"
     "off\xc2two",
     "cut|off|two|"},
};

static void test_words(void) {
  char word[GT_WORD_MAX + 1], long_text[200], found[256];
  for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
    const char *at = splits[i].text;
    size_t used = 0;
    for (size_t n; (n = gt_word_next(&at, word)) > 0;) {
      assert_int_equal(strlen(word), n);
      used += (size_t)sprintf(found + used, "%s|", word);
    }
    found[used] = 0;
    assert_string_equal(found, splits[i].words);
    assert_true(*at == 0);
  }
  memset(long_text, 'A', 199);
  long_text[150] = ' ';
  long_text[199] = 0;
  const char *at = long_text;
  assert_int_equal(gt_word_next(&at, word), GT_WORD_MAX);
  assert_int_equal(strspn(word, "a"), GT_WORD_MAX);
  assert_int_equal(gt_word_next(&at, word), 48);
  assert_int_equal(gt_word_next(&at, word), 0);
}

/* More words than the first table has room for; ties are in the order of their bytes. */
static void test_vocabulary(void) {
  enum { N = 5000, KEPT = 3000 };
  char word[GT_WORD_MAX + 1];
  gt_vocabulary *v = gt_vocabulary_create();
  for (size_t round = 0; round < 3; round++)
    for (size_t i = 0; i < N; i++) /* word i: once, and every third of the first thousand 3 times */
      if (round == 0 || (i < 1000 && i % 3 == 0)) {
        const size_t length = (size_t)sprintf(word, "w%04zu", (i * 2741) % N);
        const size_t seen = gt_vocabulary_count(v, word, length);
        if (round == 0) assert_int_equal(seen, i + 1);
      }
  gt_vocabulary_choose(v, KEPT);
  assert_int_equal(gt_vocabulary_ids(v), KEPT + GT_ID_WORDS);
  assert_string_equal(gt_vocabulary_text(v, 0), "<padding>");
  assert_string_equal(gt_vocabulary_text(v, 1), "<unknown>");
  size_t frequent = 0, kept = 0;
  for (size_t i = 0; i < N; i++) {
    const size_t length = (size_t)sprintf(word, "w%04zu", (i * 2741) % N);
    const int32_t id = gt_vocabulary_id(v, word, length);
    const bool often = i < 1000 && i % 3 == 0;
    frequent += often;
    if (often) assert_true(id >= GT_ID_WORDS && id < GT_ID_WORDS + 334);
    if (id == GT_ID_UNKNOWN) continue;
    kept++;
    assert_string_equal(gt_vocabulary_text(v, (size_t)id), word);
  }
  assert_true(frequent == 334 && kept == KEPT);
  for (size_t id = GT_ID_WORDS + 1; id < KEPT + GT_ID_WORDS; id++)
    if (id != GT_ID_WORDS + 334)
      assert_true(strcmp(gt_vocabulary_text(v, id - 1), gt_vocabulary_text(v, id)) < 0);
  assert_int_equal(gt_vocabulary_id(v, "other", 5), GT_ID_UNKNOWN);
  gt_vocabulary_close(v);
}

/* ---- samples --------------------------------------------------------------------------------- */

static void assert_samples(gt_split split, size_t n, size_t length, const int32_t *ids,
                           const int32_t *labels, size_t features) {
  gt_dataset *dataset;
  gt_loader *loader;
  int32_t x[64], y[8];
  assert_int_equal(gt_dataset_open(&dataset, scratch("f.h5")), GT_OK);
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  assert_string_equal(info->name, "f");
  assert_true(info->input == GT_INPUT_IDS && info->classes == 2 && info->features == features);
  assert_true((split == GT_SPLIT_TRAIN ? info->ntrain : info->ntest) == n && info->h == 1 &&
              info->w == 1 && info->c == length);
  assert_int_equal(gt_loader_create(&loader, dataset, split, NULL, 0), GT_OK);
  gt_loader_range(loader, 0, n, x, y);
  assert_memory_equal(x, ids, n * length * sizeof *ids);
  assert_memory_equal(y, labels, n * sizeof *labels);
  gt_loader_close(loader);
  gt_dataset_close(dataset);
}

/* Frequencies: the 3, good 2, bad 2, then film, is, it's; so the ids are the 2, bad 3, good 4, film
   5, is 6, it's 7. */
static void test_samples(void) {
  static const char train[] = HEADER "1\t9\t0\tThe good film: the GOOD!\n"
                                     "0\t2\t1\tthe bad<br /><br />bad is it's\n"
                                     "1\t7\t2\t\n";
  const int32_t all[] = {2, 4, 5, 2, 4, 2, 3, 3, 6, 7, 0, 0, 0, 0, 0},
                cut[] = {5, 2, 4, 3, 6, 7, 0, 0, 0}, test[] = {0, 0, 3, 3, 1}, labels[] = {1, 0, 1};
  write_pair(train, good_test);
  assert_int_equal(import(0, 5), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 3, 5, all, labels, 8);
  assert_samples(GT_SPLIT_TEST, 1, 5, test, (int32_t[]){0}, 8);
  assert_int_equal(import(100, 3), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 3, 3, cut, labels, 8);
  assert_int_equal(import(2, 5), GT_OK); /* the and bad */
  assert_samples(GT_SPLIT_TRAIN, 3, 5, (int32_t[]){2, 1, 1, 2, 1, 2, 3, 3, 1, 1, 0, 0, 0, 0, 0},
                 labels, 4);
  assert_int_equal(import(2, 1), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 3, 1, (int32_t[]){1, 1, 0}, labels, 4);
  /* other line ends, no newline at the end, gzip */
  static const char other[] = "label\trating\tid\ttext\r\n1\t9\t0\tThe good film: the GOOD!\r\n"
                              "0\t2\t1\tthe bad\tbad is it's\r\n1\t7\t2\t";
  write_pair(other, good_test);
  assert_int_equal(import(0, 5), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 3, 5, all, labels, 8);
  scratch_gzip(scratch("f/imdb_train.tsv.gz"), train, sizeof train - 1);
  write_pair("", good_test);
  assert_int_equal(import(0, 5), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 3, 5, all, labels, 8);
  unlink(scratch("f/imdb_train.tsv.gz"));
  write_pair(HEADER "1\t1\t0\t...\n", good_test); /* a vocabulary of no words */
  assert_int_equal(import(0, 2), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 1, 2, (int32_t[]){0, 0}, labels, 2);
}

static void wrote(const char *path) {
  (void)path;
}

/* Another program can read the vocabulary; it is kept in a split; and regions compare it. */
static void test_vocabulary_in_file(void) {
  char words[3][16] = {{0}}, sha256[2][65];
  static const char *const right[] = {"<padding>", "<unknown>", "zebra"};
  write_pair(HEADER "1\t9\t0\tzebra\n0\t1\t1\tzebra\n", good_test);
  assert_int_equal(import(0, 2), GT_OK);
  assert_int_equal(gt_data_split(scratch("f.h5"),
                                 &(gt_partition){.kind = GT_PART_SHARES, .nregions = 2, .seed = 1},
                                 GT_TESTS_ALL, NULL, false, wrote),
                   GT_OK);
  for (size_t i = 0; i < 2; i++) {
    const char *path = scratch(i == 0 ? "f.h5" : "f-2.h5");
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT),
          set = H5Dopen2(file, "vocabulary", H5P_DEFAULT), type = H5Tcopy(H5T_C_S1),
          space = H5Dget_space(set);
    H5Tset_size(type, sizeof words[0]);
    assert_int_equal(H5Sget_simple_extent_npoints(space), 3);
    assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, words) >= 0);
    for (size_t k = 0; k < 3; k++) assert_string_equal(words[k], right[k]);
    H5Sclose(space), H5Tclose(type), H5Dclose(set), H5Fclose(file);
    gt_dataset *dataset;
    assert_int_equal(gt_dataset_open(&dataset, path), GT_OK);
    assert_int_equal(strlen(gt_dataset_describe(dataset)->vocabulary_sha256), 64);
    memcpy(sha256[i], gt_dataset_describe(dataset)->schema_sha256, 65);
    gt_dataset_close(dataset);
  }
  assert_string_equal(sha256[0], sha256[1]);
  write_pair(HEADER "1\t9\t0\tzebu\n0\t1\t1\tzebu\n", good_test);
  assert_int_equal(import(0, 2), GT_OK);
  gt_dataset *dataset;
  assert_int_equal(gt_dataset_open(&dataset, scratch("f.h5")), GT_OK);
  assert_string_not_equal(gt_dataset_describe(dataset)->schema_sha256, sha256[0]);
  gt_dataset_close(dataset);
}

/* ---- refused files --------------------------------------------------------------------------- */

static const struct {
  const char *train, *test, *said;
} cases[] = {
    {"", good_test,
     "imdb_train.tsv: line 1 is ``; expected the header `label rating id text`, separated by"},
    {"1\t9\t0\tgood\n", good_test, "imdb_train.tsv: line 1 is `1?9?0?good`; expected the header"},
    {HEADER, good_test, "imdb_train.tsv: has no reviews; expected 1 or more behind the header"},
    {HEADER "1\t9\t0\tgood\n", HEADER, "imdb_test.tsv: has no reviews"},
    {HEADER "1\t9\t0\tgood\n1\t9\t0\n", good_test,
     "imdb_train.tsv: line 3, `1?9?0`, has 3 fields; expected 4, separated by tabs: label, rating, "
     "id, text"},
    {HEADER "1 9 0 good\n", good_test, "line 2, `1 9 0 good`, has 1 fields; expected 4"},
    {HEADER "\n1\t9\t0\tgood\n", good_test, "line 2, ``, has 1 fields"},
    {HEADER "1\t9\t0\tgood\n", HEADER "2\t9\t0\tgood\n",
     "imdb_test.tsv: line 2 begins with `2?9?0?good`; expected a label 0 or 1"},
    {HEADER "01\t9\t0\tgood\n", good_test,
     "line 2 begins with `01?9?0?good`; expected a label 0 or 1"},
    {HEADER "\t9\t0\tgood\n", good_test, "line 2 begins with `?9?0?good`; expected a label 0 or 1"},
    {HEADER "pos\t9\t0\tgood\n", good_test,
     "line 2 begins with `pos?9?0?good`; expected a label 0 or 1"},
};

static void refused(const char *said) {
  const int entries = scratch_entries();
  assert_failed(import_from("imdb", scratch("f"), scratch("bad.h5")), GT_ERR_DATA, said);
  assert_int_equal(scratch_entries(), entries);
}

static void test_refused(void) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_pair(cases[i].train, cases[i].test);
    refused(cases[i].said);
  }
  write_pair("", good_test);
  scratch_write(scratch("f/imdb_train.tsv"), HEADER "1\t9\t0\tgo\0od\n", sizeof HEADER + 11);
  refused("imdb_train.tsv: line 2 has a byte 0; expected text");
  unlink(scratch("f/imdb_test.tsv"));
  refused("f: imdb_test.tsv is missing, with .gz and without");
}

/* The longest line, over several blocks of the reader, and one byte more. */
static void test_long_lines(void) {
  char *text = gt_alloc(GT_LINE_MAX + 100, 1);
  const size_t before = sizeof HEADER - 1;
  for (size_t extra = 0; extra < 2; extra++) {
    memcpy(text, HEADER "1\t9\t0\t", before + 6);
    for (size_t i = 6; i < GT_LINE_MAX + extra; i++) text[before + i] = i % 2 ? 'x' : ' ';
    text[before + GT_LINE_MAX + extra] = '\n';
    text[before + GT_LINE_MAX + extra + 1] = 0;
    write_pair(text, good_test);
    if (extra == 0) {
      assert_int_equal(import(0, 3), GT_OK);
      continue;
    }
    refused("imdb_train.tsv: line 2 has more than 1048576 bytes, the maximum");
  }
  gt_free(text);
  scratch_gzip(scratch("f/imdb_train.tsv.gz"), HEADER "1\t9\t0\tgood\n", sizeof HEADER + 10);
  size_t size;
  uint8_t *bytes = scratch_read(scratch("f/imdb_train.tsv.gz"), &size);
  scratch_write(scratch("f/imdb_train.tsv.gz"), bytes, size - 3);
  refused("imdb_train.tsv.gz: its gzip data end before their check sum");
  gt_free(bytes);
}

static void test_options(void) {
  unlink(scratch("f/imdb_train.tsv.gz"));
  write_pair(HEADER "1\t9\t0\tgood\n", good_test);
  assert_failed(import(1000001, 0), GT_ERR_JOB,
                "data import --vocabulary is 1000001; expected 1 to 1000000");
  assert_failed(import(0, 65537), GT_ERR_JOB, "data import --length is 65537; expected 1 to 65536");
  const char *folder = scratch("f");
  const double share = 0.5;
  assert_failed(gt_data_import("libfm", &folder, 1, scratch("bad.h5"),
                               &(gt_import_options){.length = 4}, NULL),
                GT_ERR_JOB, "data import --length is not an option of format libfm; --schema is");
  assert_failed(gt_data_import("imdb", &folder, 1, scratch("bad.h5"),
                               &(gt_import_options){.test_share = &share}, NULL),
                GT_ERR_JOB,
                "data import --test-share is not an option of format imdb; --vocabulary, "
                "--length and --schema are");
  assert_int_equal(import(0, 65536), GT_OK);
}

TESTS_BETWEEN(NULL, scratch_remove, test_words, test_vocabulary, test_samples,
              test_vocabulary_in_file, test_refused, test_long_lines, test_options)
