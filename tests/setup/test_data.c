/* ranks: 4; processors: 1 */
/* The training samples of a region, depending on the files that all ranks find under the regions'
   names; and the same normalisation of images everywhere. */
#include <sys/stat.h>

#include "geotrain/net_mpi.h"
#include "world.h"

#define REGIONS "[{name: a, ranks: 2}, {name: b, ranks: 2}]"
enum { N = 300, OTHER = 200 };

static gt_run run;

static const char *yaml(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *yaml(const char *format, ...) {
  static char text[2][1024];
  static int next;
  va_list args;
  next = !next;
  va_start(args, format);
  vsnprintf(text[next], sizeof text[next], format, args);
  va_end(args);
  return text[next];
}

/* Returns regions that read a file of their own. */
static const char *own_files(const char *a, const char *b) {
  return yaml("[{name: a, ranks: 2, data: {path: %s}}, {name: b, ranks: 2, data: {path: %s}}]", a,
              b);
}

static gt_status open_data(const char *regions, const char *data) {
  w_begin(&run, NULL, regions, data, "");
  return gt_setup_open_data(&run);
}

static void opened(const char *regions, const char *data) {
  must(open_data(regions, data));
}

static void end(void) {
  gt_setup_close(&run);
}

/* Opens it in a run that can begin without all regions; late: without b, which joins. */
static gt_status open_early(const char *regions, const char *data, bool late) {
  w_begin(&run, NULL, regions, data, "");
  run.job->sync.min_regions = 1;
  run.late = GT_NEW_ARRAY(bool, 2);
  run.late[1] = late;
  return gt_setup_open_data(&run);
}

/* Checks a refusal on all ranks. */
static void refused(const char *regions, const char *data, gt_status status, const char *sentence) {
  must_fail(open_data(regions, data), status, sentence);
  end();
}

/* Checks that all ranks of a region have the same samples, and that each sample of a file of n is
   in the same number of regions. */
static void check_parts(size_t n, int regions) {
  int *seen = GT_NEW_ARRAY(int, n);
  uint32_t *of_ps = GT_NEW_ARRAY(uint32_t, n);
  uint64_t size = run.npart;
  gt_peers_share(run.roles.region, 0, &size, sizeof size, "the PS", W_LIMIT_S);
  assert_int_equal(size, run.npart);
  memcpy(of_ps, run.part, run.npart * sizeof *of_ps);
  gt_peers_share(run.roles.region, 0, of_ps, run.npart * sizeof *of_ps, "the PS", W_LIMIT_S);
  assert_memory_equal(of_ps, run.part, run.npart * sizeof *of_ps);
  for (size_t i = 0; i < run.npart && run.roles.is_ps; i++) seen[run.part[i]]++;
  GT_MPI(MPI_Allreduce(MPI_IN_PLACE, seen, (int)n, MPI_INT, MPI_SUM, gt_peers_mpi(w_world)));
  for (size_t i = 0; i < n; i++) assert_int_equal(seen[i], regions);
  gt_free(of_ps);
  gt_free(seen);
}

/* Checks on all ranks which regions score the mean. */
static void check_scores(bool first, bool second) {
  assert_int_equal(run.tests[0].scores, first);
  assert_int_equal(run.tests[1].scores, second);
  assert_int_equal(run.tests[run.roles.region_id].samples, run.data.ntest);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void test_one_file(void) {
  opened(REGIONS, yaml("path: %s, partition: {shares: [2, 1]}", in_folder("one.h5")));
  assert_int_equal(run.npart, run.roles.region_id == 0 ? 200 : 100);
  check_parts(N, 1);
  assert_true(run.order.seed == 1 && run.order.region == run.roles.region_id &&
              run.order.n == run.npart && run.order.batch == 8);
  check_scores(true, false); /* one test set */
  end();
}

static void test_files_of_their_own(void) {
  opened(own_files(in_folder("one.h5"), in_folder("other.h5")), "partition: {by: file}");
  assert_int_equal(run.npart, run.roles.region_id == 0 ? N : OTHER);
  for (size_t i = 0; i < run.npart; i++) assert_int_equal(run.part[i], i);
  end();
}

/* The same samples under two names are divided as well: no sample is trained on twice. */
static void test_a_copy(void) {
  opened(own_files(in_folder("one.h5"), in_folder("copy.h5")), "partition: {by: file}");
  assert_int_equal(run.npart, N / 2);
  check_parts(N, 1);
  end();
}

static void test_files_that_do_not_fit(void) {
  refused(own_files(in_folder("one.h5"), in_folder("large.h5")), "partition: {by: file}",
          GT_ERR_DATA, "region b has samples of 10 x 10 x 1");
  refused(own_files(in_folder("one.h5"), in_folder("nowhere.h5")), "partition: {by: file}",
          GT_ERR_DATA, "nowhere.h5");
}

/* A name that is a different file on one rank: on a worker only, or in one region. */
static void in_another_folder(bool elsewhere, const char *sentence) {
  char here[1024];
  assert_non_null(getcwd(here, sizeof here));
  assert_int_equal(chdir(in_folder(elsewhere ? "there" : "here")), 0);
  refused(REGIONS, "path: data.h5", GT_ERR_DATA, sentence);
  assert_int_equal(chdir(here), 0);
}

static void test_ranks_that_see_another_file(void) {
  in_another_folder(
      w_rank == 3,
      "rank 3 finds another data.h5 (200 training samples) than the PS of its region b (300)");
  in_another_folder(w_rank >= 2,
                    "regions a and b both name data.h5 and find other training samples there");
}

static void test_who_scores(void) {
  opened(own_files(in_folder("one-1.h5"), in_folder("one-2.h5")), "partition: {by: file}");
  check_scores(false, true);
  assert_int_equal(run.data.ntest > 0, run.roles.region_id == 1);
  end();
  opened(own_files(in_folder("one-1.h5"), in_folder("one-1.h5")), "partition: {by: file}");
  check_scores(false, false);
  end();
  opened(own_files(in_folder("one.h5"), in_folder("other.h5")), "partition: {by: file}");
  check_scores(true, false); /* with the strategy `none` there is no mean model */
  end();
}

static void test_loader(void) {
  gt_loader *loader;
  opened(REGIONS, yaml("path: %s", in_folder("one.h5")));
  must(gt_setup_loader(&run, 10, &loader));
  assert_int_equal(gt_loader_samples(loader), 10);
  float *x = GT_NEW_ARRAY(float, 64), *needed = GT_NEW_ARRAY(float, 64);
  int32_t y, label;
  gt_loader_range(loader, 9, 1, x, &y);
  gt_loader_close(loader);
  must(gt_loader_create(&loader, run.dataset, GT_SPLIT_TRAIN, &run.part[9], 1));
  gt_loader_range(loader, 0, 1, needed, &label);
  assert_int_equal(y, label);
  assert_memory_equal(x, needed, 64 * sizeof *x);
  gt_loader_close(loader);
  gt_free(x);
  gt_free(needed);
  end();
}

/* ---- normalisation --------------------------------------------------------------------------- */

static void check_normalised(float mean, float std) {
  assert_memory_equal(gt_dataset_mean(run.dataset), &mean, sizeof mean);
  assert_memory_equal(gt_dataset_std(run.dataset), &std, sizeof std);
}

/* Computes the moments of one.h5 and other.h5 together, from scratch. */
static void moments_of_both(float *mean, float *std) {
  const char *const names[2] = {"one.h5", "other.h5"};
  double sums[GT_DATA_SUMS(1)] = {0}, own[GT_DATA_SUMS(1)];
  for (size_t f = 0; f < 2; f++) {
    gt_dataset *d;
    uint32_t all[N];
    for (uint32_t i = 0; i < N; i++) all[i] = i;
    must(gt_dataset_open(&d, in_folder(names[f])));
    must(gt_dataset_sums(d, all, gt_dataset_describe(d)->ntrain, own));
    for (size_t i = 0; i < GT_DATA_SUMS(1); i++) sums[i] += own[i];
    gt_dataset_close(d);
  }
  gt_data_moments(GT_INPUT_BYTES, sums, 1, mean, std);
}

static void test_files_that_differ(void) {
  float mean, std;
  char schema[65];
  moments_of_both(&mean, &std);
  opened(own_files(in_folder("one.h5"), in_folder("other.h5")), "partition: {by: file}");
  check_normalised(mean, std);
  memcpy(schema, run.data.schema_sha256, sizeof schema);
  gt_peers_share(w_world, 0, schema, sizeof schema, "rank 0", W_LIMIT_S);
  assert_string_equal(schema, run.data.schema_sha256); /* compared in the regions' greetings */
  end();
}

/* It is the same whichever regions begin the run, and when it resumes with all of them. */
static void test_normalised_by_the_first(void) {
  const char *files = own_files(in_folder("one.h5"), in_folder("other.h5"));
  float norm[2];
  gt_dataset *first;
  must(gt_dataset_open(&first, in_folder("one.h5")));
  norm[0] = *gt_dataset_mean(first);
  norm[1] = *gt_dataset_std(first);
  gt_dataset_close(first);
  for (int late = 0; late < 2; late++) {
    must(open_early(files, "partition: {by: file}", late == 1));
    check_normalised(norm[0], norm[1]);
    end();
  }
}

static void test_what_the_job_says(void) {
  opened(REGIONS, yaml("path: %s, mean: [0.25], std: [0.5]", in_folder("one.h5")));
  check_normalised(0.25F, 0.5F);
  end();
  refused(REGIONS, yaml("path: %s, mean: [0.5, 0.5], std: [1, 1]", in_folder("one.h5")), GT_ERR_JOB,
          "data.mean has 2 numbers");
}

/* The normalisation stored in a model file, and its comparison with the current one. */
static void test_kept_with_a_model(void) {
  gt_state state = {0}, none = {0};
  opened(REGIONS, yaml("path: %s, mean: [0.25], std: [0.5]", in_folder("one.h5")));
  gt_setup_save_data(&run, &state);
  must(gt_setup_check_data(&run, &state));
  must(gt_setup_check_data(&run, &none)); /* older files do not have it */
  float another[1] = {0.75F};
  gt_state changed = {0};
  gt_state_add(&changed, "data/", "mean", GT_TYPE_F32, another, 1);
  must_fail(gt_setup_check_data(&run, &changed), GT_ERR_CKPT,
            "its data/mean differs from that of ");
  gt_state_close(&changed);
  gt_state_add(&changed, "data/", "columns", GT_TYPE_U8, "{}", 2);
  must(gt_setup_check_data(&run, &changed)); /* the data set has no columns */
  run.columns = gt_strdup("[]");
  run.columns_bytes = 2;
  must_fail(gt_setup_check_data(&run, &changed), GT_ERR_CKPT, "its data/columns differs from that");
  gt_state_close(&changed);
  gt_state_close(&state);
  end();
}

/* ---- regions that join later ----------------------------------------------------------------- */

/* A region with a path of its own has samples of its own; its test set is not evaluated. */
static void test_a_late_region(void) {
  must_fail(open_early(own_files(in_folder("one.h5"), in_folder("copy.h5")), "", true), GT_ERR_DATA,
            "expected samples of its own");
  end();
  must(open_early(own_files(in_folder("one.h5"), in_folder("other.h5")), "", true));
  assert_int_equal(run.npart, run.roles.region_id == 0 ? N : OTHER);
  assert_int_equal(run.tests[1].first, 1);
  assert_int_equal(run.tests[1].samples, 0);
  assert_false(run.tests[1].scores);
  end();
  must(open_early(REGIONS, yaml("path: %s", in_folder("one.h5")), true));
  assert_int_equal(run.npart, N / 2);
  end();
}

/* ---- files ----------------------------------------------------------------------------------- */

static void synth(const char *name, uint64_t seed, size_t n, size_t side) {
  const gt_synth_spec spec = {
      .seed = seed, .ntrain = n, .ntest = 20, .h = side, .w = side, .classes = 10};
  must(gt_data_synth(in_folder(name), &spec));
}

static void wrote(const char *path) {
  (void)path;
}

static void test_make_files(void) {
  if (w_rank == 0) {
    const gt_partition halves = {.kind = GT_PART_SHARES, .nregions = 2, .seed = 1};
    synth("one.h5", 1, N, 8);
    synth("copy.h5", 1, N, 8);
    synth("other.h5", 2, OTHER, 8);
    synth("large.h5", 1, N, 10);
    assert_true(mkdir(in_folder("here"), 0777) == 0 && mkdir(in_folder("there"), 0777) == 0);
    synth("here/data.h5", 1, N, 8);
    synth("there/data.h5", 2, OTHER, 8);
    must(gt_data_split(in_folder("one.h5"), &halves, GT_TESTS_LAST, NULL, false, wrote));
  }
  w_meet();
}

TESTS_BETWEEN(w_start_ranks, w_end_ranks, test_make_files, test_one_file, test_files_of_their_own,
              test_a_copy, test_files_that_do_not_fit, test_ranks_that_see_another_file,
              test_who_scores, test_loader, test_files_that_differ, test_normalised_by_the_first,
              test_what_the_job_says, test_kept_with_a_model, test_a_late_region)
