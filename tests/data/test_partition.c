/* Properties of a partition: every sample in exactly one region, same result for the same seed,
   sizes as defined for each kind, never an empty region. */
#include "scratch.h"

#include <math.h>
#include <time.h>

enum { N = 3000, CLASSES = 10, MAX_REGIONS = 8 };

static int32_t labels[N];
static uint32_t *parts[MAX_REGIONS];
static size_t sizes[MAX_REGIONS];

static int make_labels(void **state) {
  (void)state;
  gt_rng rng = gt_rng_make(1, GT_RNG_TEST, 0, 0);
  for (size_t i = 0; i < N; i++) labels[i] = (int32_t)gt_rng_below(&rng, CLASSES);
  return 0;
}

static void drop_parts(void) {
  for (int r = 0; r < MAX_REGIONS; r++) {
    gt_free(parts[r]);
    parts[r] = NULL;
  }
}

/* Makes all parts, and checks the properties of every kind: sorted, disjoint, complete. */
static void make_parts(const gt_partition *p) {
  static uint8_t seen[N];
  size_t total = 0;
  memset(seen, 0, sizeof seen);
  for (size_t r = 0; r < p->nregions; r++) {
    assert_int_equal(gt_partition_part(p, labels, N, r, &parts[r], &sizes[r]), GT_OK);
    assert_true(sizes[r] > 0);
    for (size_t i = 0; i < sizes[r]; i++) {
      assert_true(parts[r][i] < N && !seen[parts[r][i]]);
      assert_true(i == 0 || parts[r][i] > parts[r][i - 1]);
      seen[parts[r][i]] = 1;
    }
    total += sizes[r];
  }
  assert_int_equal(total, N);
}

static bool same_parts(const gt_partition *p, const gt_partition *q) {
  bool same = true;
  make_parts(p);
  for (size_t r = 0; r < q->nregions; r++) {
    uint32_t *part;
    size_t n;
    assert_int_equal(gt_partition_part(q, labels, N, r, &part, &n), GT_OK);
    same = same && n == sizes[r] && memcmp(part, parts[r], n * sizeof *part) == 0;
    gt_free(part);
  }
  drop_parts();
  return same;
}

static void count_labels(size_t region, size_t counts[CLASSES]) {
  memset(counts, 0, CLASSES * sizeof *counts);
  for (size_t i = 0; i < sizes[region]; i++) counts[labels[parts[region][i]]]++;
}

static void test_seed(void) {
  /* by label, the seed orders labels of equal size */
  for (size_t i = 0; i < N; i++) labels[i] = (int32_t)(i % CLASSES);
  for (int kind = GT_PART_SHARES; kind <= GT_PART_DIRICHLET; kind++) {
    gt_partition a = {.kind = (gt_part_kind)kind, .nregions = 3, .alpha = 1, .seed = 5}, b = a;
    assert_true(same_parts(&a, &b));
    b.seed = 6;
    assert_false(same_parts(&a, &b));
  }
  make_labels(NULL);
}

static void test_shares(void) {
  const double shares[5] = {2, 1, 0.5, 7, 0.013}, sum = 10.513;
  size_t counts[CLASSES];
  gt_partition p = {.kind = GT_PART_SHARES, .nregions = 5, .shares = shares, .seed = 2};
  make_parts(&p);
  for (size_t r = 0; r < 5; r++) assert_true(fabs((double)sizes[r] - N * shares[r] / sum) <= 1);
  /* a random split contains all labels about equally often: 4.5 standard deviations */
  count_labels(3, counts);
  for (int k = 0; k < CLASSES; k++)
    assert_true(fabs((double)counts[k] - (double)sizes[3] / CLASSES) < 4.5 * sqrt(N / CLASSES));
  drop_parts();
  p.nregions = 7;
  p.shares = NULL;
  make_parts(&p);
  for (size_t r = 0; r < 7; r++) assert_true(fabs((double)sizes[r] - N / 7.0) <= 1);
  drop_parts();
  p.nregions = 1;
  make_parts(&p);
  drop_parts();
}

static void test_label(void) {
  const double shares[3] = {5, 3, 2}, lopsided[3] = {1000, 1, 1};
  size_t counts[CLASSES], holders[CLASSES] = {0};
  gt_partition p = {.kind = GT_PART_LABEL, .nregions = 3, .shares = shares, .seed = 2};
  make_parts(&p);
  for (size_t r = 0; r < 3; r++) {
    count_labels(r, counts);
    for (int k = 0; k < CLASSES; k++) holders[k] += counts[k] > 0;
    /* within half a label */
    assert_true(fabs((double)sizes[r] - N * shares[r] / 10) < N / CLASSES / 2.0);
  }
  for (int k = 0; k < CLASSES; k++) assert_int_equal(holders[k], 1);
  drop_parts();
  p.shares = lopsided; /* a share smaller than a label still gets one */
  make_parts(&p);
  assert_true(sizes[0] > 7 * N / CLASSES);
  drop_parts();
}

static void test_dirichlet(void) {
  size_t counts[CLASSES];
  gt_partition p = {.kind = GT_PART_DIRICHLET, .nregions = 4, .alpha = 1e5, .seed = 3};
  make_parts(&p); /* a huge alpha: every label evenly in all regions */
  for (size_t r = 0; r < 4; r++) {
    count_labels(r, counts);
    for (int k = 0; k < CLASSES; k++) assert_true(fabs((double)counts[k] - N / CLASSES / 4.0) < 20);
  }
  drop_parts();
  p.alpha = 0.01; /* a tiny alpha: nearly every label in one region */
  p.nregions = 2;
  make_parts(&p);
  size_t mixed = 0;
  for (size_t r = 0; r < 2; r++) {
    count_labels(r, counts);
    for (int k = 0; k < CLASSES; k++) mixed += counts[k] > 15 && counts[k] < 240;
  }
  assert_true(mixed <= 4);
  drop_parts();
}

/* Over many seeds the proportion of a label in a region has the mean and variance of
   Dirichlet(alpha): 1/R and (R-1)/(R^2 (R alpha + 1)). */
static void test_dirichlet_moments(void) {
  enum { SEEDS = 120, R = 2 };
  double sum = 0, squares = 0, of_label[CLASSES] = {0}, n = 0;
  size_t counts[CLASSES];
  for (size_t i = 0; i < N; i++) of_label[labels[i]]++;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    gt_partition p = {.kind = GT_PART_DIRICHLET, .nregions = R, .alpha = 0.5, .seed = seed};
    make_parts(&p);
    count_labels(0, counts);
    for (int k = 0; k < CLASSES; k++, n++) {
      double q = (double)counts[k] / of_label[k];
      sum += q;
      squares += q * q;
    }
    drop_parts();
  }
  double mean = sum / n, variance = squares / n - mean * mean;
  assert_true(fabs(mean - 0.5) < 0.04);
  assert_true(fabs(variance - 1.0 / (R * R * (R * 0.5 + 1))) < 0.012);
  /* Unequal shares are met on average. */
  const double shares[R] = {3, 1};
  sum = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    gt_partition p = {
        .kind = GT_PART_DIRICHLET, .nregions = R, .shares = shares, .alpha = 1, .seed = seed};
    make_parts(&p);
    sum += (double)sizes[0] / N;
    drop_parts();
  }
  assert_true(fabs(sum / SEEDS - 0.75) < 0.03);
}

static void test_file(void) {
  gt_partition p = {.kind = GT_PART_FILE, .nregions = 3, .seed = 3};
  for (size_t r = 0; r < 3; r++) {
    assert_int_equal(gt_partition_part(&p, labels, N, r, &parts[0], &sizes[0]), GT_OK);
    assert_int_equal(sizes[0], N);
    for (size_t i = 0; i < N; i++) assert_int_equal(parts[0][i], i);
    drop_parts();
  }
}

static void refused(const gt_partition *p, size_t n, gt_status status, const char *text) {
  size_t size;
  for (size_t r = 0; r < p->nregions; r++) { /* every region gets the same result */
    assert_failed(gt_partition_part(p, labels, n, r, &parts[r], &size), status, text);
    assert_null(parts[r]);
  }
}

static void test_refused(void) {
  double shares[3] = {1, 1e-9, 1};
  gt_partition p = {.kind = GT_PART_SHARES, .nregions = 3, .shares = shares, .seed = 1};
  refused(&p, N, GT_ERR_DATA, "region 1 of 3 would get 0 of 3000 training samples");
  shares[1] = -1;
  refused(&p, N, GT_ERR_JOB, "data.partition.shares[1] is -1");
  shares[1] = (double)NAN;
  refused(&p, N, GT_ERR_JOB, "data.partition.shares[1] is nan");
  p.shares = NULL;
  refused(&p, 2, GT_ERR_DATA, "would get 0 of 2");
  refused(&p, 0, GT_ERR_DATA, "would get 0 of 0");
  p.kind = GT_PART_FILE;
  refused(&p, 0, GT_ERR_DATA, "would get 0 of 0");
  p.kind = GT_PART_DIRICHLET;
  refused(&p, N, GT_ERR_JOB, "data.partition.alpha is 0");
  p.alpha = 1e-6;
  p.nregions = 8;
  p.seed = 1;
  refused(&p, 20, GT_ERR_DATA, "another seed or a larger data.partition.alpha");
  int32_t kept[3] = {labels[0], labels[1], labels[2]};
  labels[0] = labels[1] = labels[2] = 4;
  p.kind = GT_PART_LABEL;
  p.nregions = 2;
  refused(&p, 3, GT_ERR_DATA, "1 different labels for 2 regions");
  memcpy(labels, kept, sizeof kept);
}

/* Hundreds of thousands of labels, half of them with twice the samples, take about a second. */
static void test_many_labels(void) {
  enum { LABELS = 300000 };
  int32_t *many = GT_NEW_ARRAY(int32_t, 2 * LABELS);
  const gt_partition p = {.kind = GT_PART_LABEL, .nregions = 2, .seed = 1};
  uint32_t *part;
  size_t n = 0, of_part, all = 0;
  for (int32_t k = 0; k < LABELS; k++)
    for (int32_t i = 0; i <= k % 2; i++) many[n++] = k;
  const clock_t began = clock();
  for (size_t r = 0; r < 2; r++, all += of_part) {
    assert_int_equal(gt_partition_part(&p, many, n, r, &part, &of_part), GT_OK);
    assert_true(of_part == n / 2);
    gt_free(part);
  }
  const double took_s = (double)(clock() - began) / CLOCKS_PER_SEC;
  assert_int_equal(all, n);
  gt_free(many);
  if (took_s > 5) fail_msg("%.1f s for %d labels; expected at most 5 s", took_s, LABELS);
}

TESTS_BETWEEN(make_labels, NULL, test_seed, test_shares, test_label, test_dirichlet,
              test_dirichlet_moments, test_file, test_refused, test_many_labels)
