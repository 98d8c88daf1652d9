/* The regions that read the same file, and the division of the file among these only; also for a
   pipeline. */
#include "scratch.h"

enum { N = 900, OWN = 300 };

static int32_t labels[N];
static gt_dataset_info infos[4];

/* a and b use data.path, c and d the given paths (NULL: data.path too). */
static gt_job *load(const char *by, const char *c, const char *d) {
  static char text[1024];
  gt_job *job = NULL;
  snprintf(text, sizeof text,
           "name: files\nmodel: {name: lenet5}\ndata: {path: common.h5, partition: {by: %s, "
           "shares: [1, 2, 3, 4]}}\n"
           "train: {until: {steps: 1}, optimizer: {lr: 1}}\nregions:\n  - {name: a, ranks: 2, "
           "data: {path: common.h5}}\n"
           "  - {name: b, ranks: 2, data: {path: common.h5}}\n  - {name: c, ranks: 2, data: {path: "
           "%s}}\n"
           "  - {name: d, ranks: 2, data: {path: %s}}\nsync: {strategy: none}\n",
           by, c ? c : "common.h5", d ? d : "common.h5");
  if (gt_job_parse(&job, "files.yaml", text) != GT_OK) fail_msg("%s", gt_error_text());
  return job;
}

/* Sets region r's data set to the samples identified by `samples`. */
static void holds(size_t r, const char *samples, size_t n) {
  infos[r] = (gt_dataset_info){.h = 4, .w = 5, .c = 1, .classes = 3, .ntrain = n, .ntest = 1};
  snprintf(infos[r].samples_sha256, sizeof infos[r].samples_sha256, "%s", samples);
}

static void set_up(void) {
  for (size_t i = 0; i < N; i++) labels[i] = (int32_t)(i % 3);
  for (size_t r = 0; r < 4; r++) holds(r, "common", N);
}

/* Computes the number of samples of every region; each sample of a file is in exactly one of the
   regions that read it, to train with or held back. */
static void divide(const gt_job *job, size_t sizes[4]) {
  static uint8_t seen[4][N];
  size_t files[4];
  memset(seen, 0, sizeof seen);
  assert_int_equal(gt_data_files(job, infos, files), GT_OK);
  for (size_t r = 0; r < 4; r++) {
    gt_data_samples part, held;
    if (gt_data_part(job, files, r, labels, infos[r].ntrain, &part, &held) != GT_OK)
      fail_msg("%s", gt_error_text());
    sizes[r] = part.n;
    for (size_t i = 0; i < part.n; i++) assert_int_equal(seen[files[r]][part.samples[i]]++, 0);
    for (size_t i = 0; i < held.n; i++) assert_int_equal(seen[files[r]][held.samples[i]]++, 0);
    size_t want;
    assert_int_equal(gt_data_held(job, r, part.n + held.n, &want), GT_OK);
    assert_int_equal(held.n, want);
    gt_free(part.samples);
    gt_free(held.samples);
  }
  for (size_t r = 0; r < 4; r++)
    for (size_t i = 0; i < infos[r].ntrain; i++) assert_int_equal(seen[files[r]][i], 1);
}

static void check_sizes(const char *by, const char *c, const char *d, const size_t needed[4]) {
  gt_job *job = load(by, c, d);
  size_t sizes[4];
  divide(job, sizes);
  for (size_t r = 0; r < 4; r++) assert_int_equal(sizes[r], needed[r]);
  gt_job_close(job);
}

static void test_all_one_file(void) {
  set_up();
  check_sizes("shares", NULL, NULL, (size_t[]){90, 180, 270, 360});
}

/* c has a file of its own and gets all of it; a, b and d divide theirs by their shares, 1 : 2 :
   4. */
static void test_some_own(void) {
  set_up();
  holds(2, "own", OWN);
  check_sizes("shares", "own.h5", NULL, (size_t[]){129, 257, OWN, 514});
}

/* Two regions share one file, two others another. */
static void test_pairs(void) {
  set_up();
  holds(2, "own", OWN);
  holds(3, "own", OWN);
  check_sizes("shares", "own.h5", "own.h5", (size_t[]){300, 600, 129, 171});
}

/* Copies and links count as one file, also with partition.by file; then one path can be two
   files. */
static void test_by_file(void) {
  set_up();
  holds(2, "own", OWN);
  holds(3, "own", OWN);
  check_sizes("file", "own.h5", "copy.h5", (size_t[]){300, 600, 129, 171});
  holds(1, "another", N);
  check_sizes("file", "own.h5", "copy.h5", (size_t[]){N, N, 129, 171});
}

/* By label and by Dirichlet, in whole groups. */
static void test_kinds(void) {
  const char *const kinds[] = {"label", "dirichlet"};
  set_up();
  holds(3, "own", OWN);
  for (size_t k = 0; k < 2; k++) {
    size_t sizes[4];
    gt_job *job = load(kinds[k], NULL, "own.h5");
    divide(job, sizes);
    assert_int_equal(sizes[0] + sizes[1] + sizes[2], N);
    assert_int_equal(sizes[3], OWN);
    gt_job_close(job);
  }
}

/* Samples are held back before training, in each region; others for another seed. */
static void test_validation(void) {
  size_t sizes[4], files[4];
  gt_data_samples part, held[2];
  set_up();
  holds(2, "own", OWN);
  gt_job *job = load("shares", "own.h5", NULL);
  job->data.validation = 0.1;
  divide(job, sizes);
  assert_int_equal(sizes[2], 270);
  assert_int_equal(gt_data_files(job, infos, files), GT_OK);
  for (size_t i = 0; i < 2; i++, job->seed++) {
    assert_int_equal(gt_data_part(job, files, 2, labels, OWN, &part, &held[i]), GT_OK);
    gt_free(part.samples);
  }
  assert_int_equal(held[0].n, held[1].n);
  assert_memory_not_equal(held[0].samples, held[1].samples, held[0].n * sizeof *part.samples);
  for (size_t i = 0; i < 2; i++) gt_free(held[i].samples);
  job->data.validation = 0.001;
  assert_failed(
      gt_data_part(job, files, 2, labels, OWN, &part, &held[0]), GT_ERR_DATA,
      "data.validation is 0.001 and region c has 300 training samples, of which 0 would be "
      "held back; expected at least one, and one to train with");
  gt_free(part.samples);
  gt_job_close(job);
}

/* Only the region of a pipeline's first stage, here b, reads the file, and gets all of it. */
static void test_pipeline(void) {
  gt_job *job = NULL;
  size_t files[4];
  gt_data_samples part, held;
  set_up();
  infos[0] = (gt_dataset_info){0};
  if (gt_job_parse(
          &job, "files.yaml",
          "name: files\nmodel: {name: lenet5}\ndata: {path: common.h5}\n"
          "train: {until: {steps: 1}, batch: 8, optimizer: {lr: 1}}\n"
          "regions: [{name: a, ranks: 2}, {name: b, ranks: 3}]\n"
          "pipeline: {micro_batches: 2, stages: [{region: b}, {region: a}, {region: b}]}\n") !=
      GT_OK)
    fail_msg("%s", gt_error_text());
  assert_int_equal(gt_data_first(job), 1);
  assert_int_equal(gt_data_files(job, infos, files), GT_OK);
  assert_true(files[0] == 0 && files[1] == 1);
  assert_int_equal(gt_data_part(job, files, 1, labels, N, &part, &held), GT_OK);
  assert_int_equal(part.n, N);
  gt_free(part.samples);
  gt_job_close(job);
}

static void refused(const gt_job *job, const char *sentence) {
  size_t files[4];
  assert_failed(gt_data_files(job, infos, files), GT_ERR_DATA, sentence);
}

/* Names region r's classes with these three concatenated names. */
static void name(size_t r, const char *names) {
  infos[r].class_names = names;
  infos[r].class_names_bytes = 12;
  gt_sha256_hex(names, 12, infos[r].class_names_sha256);
}

/* Names are compared if both regions have some. */
static void test_class_names(void) {
  static const char order[12] = "cat\0dog\0owl", other[12] = "cat\0owl\0dog";
  size_t files[4];
  set_up();
  gt_job *job = load("file", "c.h5", "d.h5");
  name(1, order);
  name(3, order);
  assert_int_equal(gt_data_renamed(job, infos), 4);
  assert_int_equal(gt_data_files(job, infos, files), GT_OK);
  name(3, other);
  assert_int_equal(gt_data_renamed(job, infos), 3);
  refused(
      job,
      "regions b and d number their classes differently: class 1 is `dog` in b (common.h5) "
      "and `owl` in d (d.h5); number classes, ids and columns alike: `geotrain data schema` makes "
      "one schema of the files, which `geotrain data import --schema` or `data classes --schema` "
      "uses");
  gt_job_close(job);
}

static void test_refused(void) {
  set_up();
  gt_job *job = load("shares", "own.h5", NULL);
  holds(2, "own", OWN);
  holds(1, "stale", 899);
  refused(job, "regions a and b both name common.h5 and find other training samples there (900 in "
               "region a, 899 in region b); expected the same file, or data.partition.by file "
               "where each region has one of its own");
  holds(1, "common", N);
  infos[2].h = 8;
  refused(job, "region c has samples of 8 x 5 x 1 uint8 of 3 classes (own.h5), region a of 4 x 5 x "
               "1 uint8 of 3 classes (common.h5); all "
               "regions need the same");
  infos[2].h = 4;
  infos[2].c = 3;
  refused(job,
          "all regions need the same: import pictures with one --channels, 1 (gray) or 3 (RGB)");
  infos[2].c = 1;
  infos[2].classes = 4;
  refused(job, "region c has samples of 4 x 5 x 1 uint8 of 4 classes (own.h5)");
  refused(job, "all regions need the same: number classes, ids and columns alike: `geotrain data "
               "schema` makes one schema of the files");
  infos[2].classes = 3;
  strcpy(infos[2].vocabulary_sha256, "0123456789");
  refused(job,
          "region c has samples of 4 x 5 x 1 uint8 of 3 classes, vocabulary 01234567 (own.h5), "
          "region a of 4 x 5 x 1 uint8 of 3 classes (common.h5)");
  gt_job_close(job);
  job = load("label", "own.h5", NULL);
  size_t files[4];
  gt_data_samples part, held;
  set_up();
  for (size_t i = 0; i < N; i++) labels[i] = 0;
  assert_int_equal(gt_data_files(job, infos, files), GT_OK);
  assert_failed(gt_data_part(job, files, 0, labels, N, &part, &held), GT_ERR_DATA,
                "1 different labels for 4 regions");
  gt_job_close(job);
}

/* Whatever another region sends, its texts end, and sizes that no data set has are refused. */
static void test_what_others_say(void) {
  gt_job *job = load("file", "own.h5", NULL);
  size_t *const sizes[] = {&infos[1].h,       &infos[1].w,        &infos[1].c,
                           &infos[1].classes, &infos[1].features, &infos[1].class_names_bytes};
  set_up();
  memset(infos[3].name, 'x', sizeof infos[3].name);
  memset(infos[3].schema_sha256, 'x', sizeof infos[3].schema_sha256);
  memset(infos[3].tests_sha256, 'x', sizeof infos[3].tests_sha256);
  infos[3].class_names = infos[3].name;
  must(gt_data_check_infos(job, infos));
  assert_int_equal(strlen(infos[3].name), sizeof infos[3].name - 1);
  assert_int_equal(strlen(infos[3].schema_sha256), 64);
  assert_int_equal(strlen(infos[3].tests_sha256), 64);
  assert_null(infos[3].class_names);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const size_t kept = *sizes[i];
    *sizes[i] = SIZE_MAX;
    assert_failed(gt_data_check_infos(job, infos), GT_ERR_FAULT,
                  "region b says that its data has 18446744073709551615 ");
    *sizes[i] = kept;
  }
  infos[2].input = (gt_input)7;
  assert_failed(gt_data_check_infos(job, infos), GT_ERR_FAULT,
                "region c sends a description of its data that is damaged");
  infos[2].input = GT_INPUT_BYTES;
  name(2, "one\0two\0six");
  infos[2].class_names_bytes = 2;
  assert_failed(gt_data_check_infos(job, infos), GT_ERR_FAULT, "damaged");
  infos[2].class_names_bytes = 8;
  infos[2].class_names = "one\0two";
  assert_failed(gt_data_check_names(job, infos), GT_ERR_FAULT,
                "region c sends 2 class names; expected 3");
  gt_job_close(job);
}

TESTS(test_all_one_file, test_some_own, test_pairs, test_by_file, test_kinds, test_validation,
      test_pipeline, test_class_names, test_refused, test_what_others_say)
