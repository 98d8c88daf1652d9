/* Sessions: the samples made from them; pickles of every protocol and texts give the same; a pickle
   that could execute anything is refused, and so is every malformed file. */
#include "scratch.h"

#include "bytes.h"
#include "pickle.h"

static const char good_test[] = "1 2\n";

static void put(const char *name, const void *data, size_t size) {
  char path[64];
  mkdir(scratch("s"), 0777);
  snprintf(path, sizeof path, "s/%s", name);
  scratch_write(scratch(path), data, size);
}

/* Writes the training file of this name and the test file. */
static void write_pair(const char *name, const void *train, size_t size, const char *test) {
  unlink(scratch("s/train.txt"));
  unlink(scratch("s/all_train_seq.txt"));
  put(name, train, size);
  put("test.txt", test, strlen(test));
}

static void write_texts(const char *name, const char *train, const char *test) {
  write_pair(name, train, strlen(train), test);
}

static gt_status import(uint64_t length) {
  return gt_data_import("sessions", (const char *[]){scratch("s")}, 1, scratch("s.h5"),
                        &(gt_import_options){.length = length}, NULL);
}

static void assert_samples(gt_split split, size_t n, size_t length, const int32_t *ids,
                           const int32_t *labels, size_t items) {
  gt_dataset *dataset;
  gt_loader *loader;
  int32_t x[256], y[32];
  assert_int_equal(gt_dataset_open(&dataset, scratch("s.h5")), GT_OK);
  const gt_dataset_info *info = gt_dataset_describe(dataset);
  assert_string_equal(info->name, "s");
  assert_true(info->input == GT_INPUT_IDS && info->classes == items && info->features == items + 1);
  assert_true((split == GT_SPLIT_TRAIN ? info->ntrain : info->ntest) == n && info->c == length);
  assert_int_equal(gt_loader_create(&loader, dataset, split, NULL, 0), GT_OK);
  gt_loader_range(loader, 0, n, x, y);
  assert_memory_equal(x, ids, n * length * sizeof *ids);
  assert_memory_equal(y, labels, n * sizeof *labels);
  gt_loader_close(loader);
  gt_dataset_close(dataset);
}

/* ---- samples --------------------------------------------------------------------------------- */

static void test_whole_sessions(void) {
  static const char train[] = "3 1 2\n\n4\n5\t6 \r\n  7 7";
  const int32_t all[] = {0, 0, 3, 0, 3, 1, 0, 0, 5, 0, 0, 7}, cut[] = {3, 1, 5, 7},
                labels[] = {0, 1, 5, 6};
  write_texts("all_train_seq.txt", train, "1 2 3 9\n4 1\n");
  assert_int_equal(import(3), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 4, 3, all, labels, 9);
  assert_samples(GT_SPLIT_TEST, 2, 3, (int32_t[]){1, 2, 3, 0, 0, 4}, (int32_t[]){8, 0}, 9);
  assert_int_equal(import(1), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 4, 1, cut, labels, 9);
  assert_int_equal(import(0), GT_OK); /* the default */
  gt_dataset *dataset;
  assert_int_equal(gt_dataset_open(&dataset, scratch("s.h5")), GT_OK);
  assert_int_equal(gt_dataset_describe(dataset)->c, 50);
  gt_dataset_close(dataset);
}

static void test_last_item(void) {
  write_texts("train.txt", "3 1 2\n5 6", good_test);
  assert_int_equal(import(2), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 2, 2, (int32_t[]){3, 1, 0, 5}, (int32_t[]){1, 5}, 6);
  put("all_train_seq.txt", "bad", 3); /* train.txt comes first */
  assert_int_equal(import(2), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 2, 2, (int32_t[]){3, 1, 0, 5}, (int32_t[]){1, 5}, 6);
}

/* More samples than are written at a time. */
static void test_many(void) {
  enum { N = 3000, LENGTH = 1000 };
  char *text = gt_alloc(N, 16);
  size_t used = 0;
  for (int i = 0; i < N; i++) used += (size_t)sprintf(text + used, "%d %d\n", i + 1, N - i);
  write_pair("train.txt", text, used, good_test);
  gt_free(text);
  assert_int_equal(import(LENGTH), GT_OK);
  gt_dataset *dataset;
  gt_loader *loader;
  int32_t x[LENGTH], y;
  assert_int_equal(gt_dataset_open(&dataset, scratch("s.h5")), GT_OK);
  assert_int_equal(gt_dataset_describe(dataset)->ntrain, N);
  assert_int_equal(gt_loader_create(&loader, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  for (int i = 0; i < N; i++) {
    gt_loader_range(loader, (size_t)i, 1, x, &y);
    assert_true(x[LENGTH - 1] == i + 1 && y == N - i - 1 && x[LENGTH - 2] == 0);
  }
  gt_loader_close(loader);
  gt_dataset_close(dataset);
}

/* ---- pickles --------------------------------------------------------------------------------- */

/* pickle.dumps(([[1, 2, 3], [4], [2, 1]], [5, 300, 70000]), p) of Python 3.11 for p = 0 to 5. */
static const struct {
  const char *bytes;
  size_t size;
} pairs[] = {
#define PICKLE(text)                                                                               \
  { text, sizeof(text) - 1 }
    PICKLE("((lp0\n(lp1\nI1\naI2\naI3\naa(lp2\nI4\naa(lp3\nI2\naI1\naa(lp4\nI5\naI300\naI70000\n"
           "atp5\n."),
    PICKLE("(]q\0(]q\1(K\1K\2K\3e]q\2K\4a]q\3(K\2K\1ee]q\4(K\5M,\1Jp\x11\1\0etq\5."),
    PICKLE("\x80\2]q\0(]q\1(K\1K\2K\3e]q\2K\4a]q\3(K\2K\1ee]q\4(K\5M,\1Jp\x11\1\0e\x86q\5."),
    PICKLE("\x80\3]q\0(]q\1(K\1K\2K\3e]q\2K\4a]q\3(K\2K\1ee]q\4(K\5M,\1Jp\x11\1\0e\x86q\5."),
    PICKLE("\x80\4\x95,\0\0\0\0\0\0\0]\x94(]\x94(K\1K\2K\3e]\x94K\4a]\x94(K\2K\1ee]\x94(K\5M,\1Jp"
           "\x11\1\0e\x86\x94."),
    PICKLE("\x80\5\x95,\0\0\0\0\0\0\0]\x94(]\x94(K\1K\2K\3e]\x94K\4a]\x94(K\2K\1ee]\x94(K\5M,\1Jp"
           "\x11\1\0e\x86\x94."),
    /* a tuple of tuples; longs, as protocol 0 and 2 write them; lists stored and used again */
    PICKLE("(((I1\nL2L\nI3\nt(I4\ntp7\n(I2\nI1\ntt(I5\nL300L\nI70000\ntt."),
    PICKLE("\x80\2]((\x8a\1\1\x8a\2\2\0K\3l\x8b\1\0\0\0\4\x85r\7\0\0\0K\2K\1\x86"
           "e(K\5M,\1Jp\x11\1\0l\x86."),
};

static void test_protocols(void) {
  const int32_t ids[] = {1, 2, 3, 0, 0, 4, 0, 2, 1}, labels[] = {4, 299, 69999};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    for (size_t whole = 0; whole < 2; whole++) { /* a pair is one in any file */
      write_pair(whole ? "all_train_seq.txt" : "train.txt", pairs[i].bytes, pairs[i].size,
                 good_test);
      assert_int_equal(import(3), GT_OK);
      assert_samples(GT_SPLIT_TRAIN, 3, 3, ids, labels, 70000);
    }
  unlink(scratch("s/train.txt"));
  scratch_gzip(scratch("s/train.txt.gz"), pairs[2].bytes, pairs[2].size);
  assert_int_equal(import(3), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 3, 3, ids, labels, 70000);
  unlink(scratch("s/train.txt.gz"));
}

/* [[1, 2, 3], [4], [], s, s], s = [5, 6]: whole sessions, or the last item of each. */
static void test_list_of_sessions(void) {
  static const char list[] = "\x80\2](](K\1K\2K\3e]K\4a]]q\0(K\5K\6eh\0e.",
                    full[] = "\x80\2](](K\1K\2K\3e]q\0(K\5K\6eh\0e.";
  write_pair("all_train_seq.txt", list, sizeof list - 1, good_test);
  assert_int_equal(import(2), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 4, 2, (int32_t[]){0, 1, 1, 2, 0, 5, 0, 5}, (int32_t[]){1, 2, 5, 5},
                 6);
  write_pair("train.txt", full, sizeof full - 1, good_test);
  assert_int_equal(import(2), GT_OK);
  assert_samples(GT_SPLIT_TRAIN, 3, 2, (int32_t[]){1, 2, 0, 5, 0, 5}, (int32_t[]){2, 5, 5}, 6);
}

/* A list that grows but is not the last, like the lists of a dump in blocks of 1000. */
static void test_growing_list(void) {
  enum { N = 2000 };
  char *bytes = gt_alloc(N, 16);
  size_t size = 1;
  bytes[0] = ']';
  for (int i = 0; i < N; i++) {
    memcpy(bytes + size, "](M..M..ea", 10);
    bytes[size + 3] = bytes[size + 6] = (char)(i % 256);
    bytes[size + 4] = (char)(i / 256);
    bytes[size + 7] = (char)(1 + i / 256);
    bytes[size + 6] = 1;
    if (i == 0) bytes[size + 3] = 1;
    size += 10;
  }
  bytes[size++] = '.';
  write_pair("train.txt", bytes, size, good_test);
  gt_free(bytes);
  assert_int_equal(import(1), GT_OK);
  gt_dataset *dataset;
  gt_loader *loader;
  int32_t x, y;
  assert_int_equal(gt_dataset_open(&dataset, scratch("s.h5")), GT_OK);
  assert_int_equal(gt_loader_create(&loader, dataset, GT_SPLIT_TRAIN, NULL, 0), GT_OK);
  assert_int_equal(gt_loader_samples(loader), N);
  for (int i = 1; i < N; i++) {
    gt_loader_range(loader, (size_t)i, 1, &x, &y);
    assert_true(x == i && y == 256 * (1 + i / 256));
  }
  gt_loader_close(loader);
  gt_dataset_close(dataset);
}

/* ---- refused files --------------------------------------------------------------------------- */

static void refused(const char *said) {
  const int entries = scratch_entries();
  assert_failed(import_from("sessions", scratch("s"), scratch("bad.h5")), GT_ERR_DATA, said);
  assert_int_equal(scratch_entries(), entries);
}

static const struct {
  const char *train, *test, *said;
} texts[] = {
    {"", good_test, "train.txt: has no session of 2 items; expected 1 or more such"},
    {"\n \n", good_test, "train.txt: has no session of 2 items"},
    {"1 2\n", "", "test.txt: has no session of 2 items"},
    {"1 2\n3\n", good_test,
     "train.txt: line 2 has no item before its target; expected 1 or more in front of it"},
    {"1 2\n1 x2 3\n", good_test,
     "train.txt: line 2 has `x2`; expected numbers of items, 1 to 1000000, separated by blanks"},
    {"1 2\n", "1 0\n", "test.txt: line 1 has `0`; expected numbers of items"},
    {"1 1000001\n", good_test, "line 1 has `1000001`; expected numbers of items"},
    {"1 99999999999999999999999999999999\n", good_test, "line 1 has `999999999999999999999999`;"},
    {"1 -2\n", good_test, "line 1 has `-2`;"},
    {"1,2\n", good_test, "line 1 has `1,2`;"},
    {"1 2.5\n", good_test, "line 1 has `2.5`;"},
    {"1 1\n", "1 1\n", "s: has item 1 only; expected 2 or more items"},
};

#define REFUSED(text, said)                                                                        \
  { text, sizeof(text) - 1, said }
static const struct {
  const char *bytes;
  size_t size;
  const char *said;
} pickles[] = {
    REFUSED("cos\nsystem\n(S'true'\ntR.", "line 1 has `cos`"),
    REFUSED("(cos\nsystem\n(S'true'\ntR.", "train.txt: opcode GLOBAL at byte 1 is refused; only "
                                           "lists, tuples and whole numbers are read, and nothing "
                                           "is executed"),
    REFUSED("\x80\4\x8c\2os\x8c\6system\x93.", "opcode SHORT_BINUNICODE at byte 2 is refused"),
    REFUSED("\x80\2]K\1R.", "opcode REDUCE at byte 5 is refused"),
    REFUSED("\x80\2](K\1i", "opcode INST at byte 6 is refused"),
    REFUSED("\x80\2](G", "opcode BINFLOAT at byte 4 is refused"),
    REFUSED("\x80\2](\x88", "opcode NEWTRUE at byte 4 is refused"),
    REFUSED("]\x94}", "opcode EMPTY_DICT at byte 2 is refused"),
    REFUSED("]?", "byte 1 is 0x3f, which is no opcode; the pickle is damaged"),
    REFUSED("\x80\6].", "train.txt: is a pickle of protocol 6; expected 0 to 5"),
    REFUSED("\x80", "train.txt: ends after 1 bytes, within its pickle; expected a whole file"),
    REFUSED("](K\1", "ends after 4 bytes"),
    REFUSED("](M\1", "ends after 4 bytes"),
    REFUSED("](I12", "ends after 5 bytes"),
    REFUSED("].]", "train.txt: continues after its pickle, which ends at byte 2"),
    REFUSED("](J\xff\xff\xff\xff",
            "the number at byte 2 is negative or above 2147483647; expected whole"),
    REFUSED("](I-1\n", "the number at byte 2 is negative"),
    REFUSED("](I2147483648\n", "the number at byte 2 is negative or above 2147483647"),
    REFUSED("](I99999999999999999999\n", "the number at byte 2 is negative or above"),
    REFUSED("](I999999999999999999999999999\n", "opcode INT at byte 2 has no number of up to 22"),
    REFUSED("](L5\n.", "the pickle"),
    REFUSED("](I5x\n", "opcode INT at byte 2 has no whole number; the pickle is damaged"),
    REFUSED("](I\n", "opcode INT at byte 2 has no whole number"),
    REFUSED("](I 5\n", "opcode INT at byte 2 has no whole number"),
    REFUSED("](I01\n", "opcode INT at byte 2 is a truth value; expected a whole number"),
    REFUSED("](\x8a\1\x80", "the number at byte 2 is negative"),
    REFUSED("](\x8a\11\0\0\0\0\0\0\0\0\0", "the number at byte 2 is negative or above"),
    REFUSED("](\x8b\xff\xff\xff\xff", "the number at byte 2 is negative or above"),
    REFUSED("]K\1K\2", "ends after 5 bytes"),
    REFUSED("]a", "opcode APPEND at byte 1 finds too few values"),
    REFUSED("](K\1a", "opcode APPEND at byte 4 finds too few values"),
    REFUSED(")K\1a", "opcode APPEND at byte 3 finds a tuple in place of a list"),
    REFUSED("]K\1K\2a", "opcode APPEND at byte 5 finds no list"),
    REFUSED("]e", "opcode APPENDS at byte 1 finds no mark"),
    REFUSED("((e", "opcode APPENDS at byte 2 finds no list"),
    REFUSED("](]((e", "opcode APPENDS at byte 5 finds no list"),
    REFUSED("]t", "opcode TUPLE at byte 1 finds no mark"),
    REFUSED("](K\1\x86", "opcode TUPLE2 at byte 4 finds too few values"),
    REFUSED("(q\0", "opcode BINPUT at byte 1 finds no value"),
    REFUSED("]h\0", "opcode BINGET at byte 1 asks for a value that was not stored"),
    REFUSED("]q\2h\1", "opcode BINGET at byte 3 asks for a value that was not stored"),
    REFUSED("]r\xff\xff\xff\xff", "opcode LONG_BINPUT at byte 1 has too high a number"),
    REFUSED("]p-1\n", "opcode PUT at byte 1 has too high a number"),
    REFUSED("]].", "opcode STOP at byte 2 does not find one value"),
    REFUSED("(].", "opcode STOP at byte 2 does not find one value"),
    REFUSED("((((((((((((((((((", "at byte 16 lists are nested more than 16 deep"),
    REFUSED("\x80\2K\5.", "train.txt: is the pickle of a number; expected one of sessions"),
    REFUSED("].", "train.txt: has no session of 2 items"),
    REFUSED("]K\1a.",
            "byte 0 begins a list that has numbers; expected a list of sessions, which are lists"),
    REFUSED("](](K\1]ee.", "byte 6 begins a list within a session; expected a list of sessions"),
    REFUSED("]q\0h\0a.", "byte 0 begins a list within a session"), /* a list in itself */
    REFUSED("](](K\1]e](K\1ee.", "byte 6 begins a list within a session"),
    REFUSED("(](](K\1e]K\1ae](K\2et.",
            "train.txt: has 2 sessions but 1 targets; expected the same number"),
    REFUSED("(](](K\1e]e](K\2K\2et.",
            "train.txt: session 2, at byte 8, has no item before its target; expected 1 or more"),
    REFUSED("(](](K\1ee](K\0et.",
            "session 1, at byte 3, has item 0; expected numbers from 1 to 1000000"),
    REFUSED("](](J\x41\x42\x0f\0K\1ee.",
            "session 1, at byte 2, has item 1000001; expected numbers from 1"),
};

static void test_refused(void) {
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    write_texts("train.txt", texts[i].train, texts[i].test);
    refused(texts[i].said);
  }
  for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
    write_pair("train.txt", pickles[i].bytes, pickles[i].size, good_test);
    refused(pickles[i].said);
  }
  write_pair("all_train_seq.txt", "](]K\1a]e.", 9, good_test);
  refused("all_train_seq.txt: has no session of 2 items");
  unlink(scratch("s/all_train_seq.txt"));
  refused("s: train.txt or all_train_seq.txt is missing, with .gz and without");
  put("train.txt", "1 2\n", 4);
  unlink(scratch("s/test.txt"));
  refused("s: test.txt is missing, with .gz and without");
  scratch_gzip(scratch("s/train.txt.gz"), pairs[2].bytes, pairs[2].size);
  put("test.txt", good_test, sizeof good_test - 1);
  size_t size;
  uint8_t *bytes = scratch_read(scratch("s/train.txt.gz"), &size);
  scratch_write(scratch("s/train.txt.gz"), bytes, size - 3);
  gt_free(bytes);
  refused("train.txt.gz: its gzip data end before their check sum");
  unlink(scratch("s/train.txt.gz"));
}

/* No prefix of a pickle is valid: every truncation is refused. */
static void test_cut(void) {
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    for (size_t size = 1; size < pairs[i].size; size++) {
      write_pair("train.txt", pairs[i].bytes, size, good_test);
      refused("bytes, within its pickle; expected a whole file");
    }
}

static void test_options(void) {
  write_texts("train.txt", "1 2\n", good_test);
  assert_failed(import(65537), GT_ERR_JOB, "data import --length is 65537; expected 1 to 65536");
  assert_failed(
      gt_data_import("sessions", (const char *[]){scratch("s")}, 1, scratch("bad.h5"),
                     &(gt_import_options){.vocabulary = 4}, NULL),
      GT_ERR_JOB,
      "data import --vocabulary is not an option of format sessions; --length and --schema are");
  assert_int_equal(import(65536), GT_OK);
}

TESTS_BETWEEN(NULL, scratch_remove, test_whole_sessions, test_last_item, test_many, test_protocols,
              test_list_of_sessions, test_growing_list, test_refused, test_cut, test_options)
