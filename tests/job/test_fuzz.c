/* Damaged job files and --set texts are rejected or read, without crashes or leaks. */
#include <unistd.h>

#include "cases.h"
#include "internal.h"
#include "world.h"

static const char *file;

static size_t read_quickstart(char *text, size_t size) {
  char path[1024];
  snprintf(path, sizeof path, "%.*s/jobs/quickstart.yaml",
           (int)(strlen(__FILE__) - strlen("/tests/job/test_fuzz.c")), __FILE__);
  const size_t n = read_file(path, text, size);
  assert_true(n > 500 && n < size - 1);
  return n;
}

static void load_and_judge(const char *const *sets, size_t nsets, size_t *good) {
  gt_job *job = NULL;
  gt_status status = gt_job_load(&job, file, sets, nsets);
  if (status == GT_OK) {
    gt_job_close(w_again(job));
    ++*good;
  } else if (status != GT_ERR_JOB) {
    fail_msg("status %d: %s", (int)status, gt_error_text());
  } else {
    assert_true(strlen(gt_error_text()) > 10);
    assert_null(strchr(gt_error_text(), '\n'));
  }
  gt_job_close(job);
}

static void damaged_files(void) {
  const int rounds = (int)cases(2000, 1000);
  static char whole[8192], text[8192];
  size_t size = read_quickstart(whole, sizeof whole), good = 0;
  gt_rng rng = gt_rng_make(7, GT_RNG_TEST, 0, 0);
  for (int i = 0; i < rounds; i++) {
    memcpy(text, whole, size);
    size_t n = w_damage(text, size, &rng);
    write_bytes(file, text, n);
    load_and_judge(NULL, 0, &good);
  }
  /* Damage inside comments leaves a valid file; most other damage does not. */
  assert_in_range(good, 1, rounds - 1);
}

static void damaged_sets(void) {
  const int rounds = (int)cases(1000, 500);
  static const char *const sets[] = {
      "regions.0={name: a, ranks: 2, hosts: [x]}",
      "wan.links.0.between=[shanghai, chongqing]",
      "sync={local: async, period: 3}",
      "wan.links.0={from: chongqing, to: shanghai, loss: 0.1}",
      "wan.outages=[{between: [shanghai, chongqing], from: 1 s, for: 2 s}]",
      "regions.1.compute={step: 1 ms, speeds: [0.5]}",
      "data.partition.shares.1=4.5e-3",
      "train.until.samples=99",
      "regions.1={name: b, ranks: auto, devices: [{type: a, count: 3, power: 9 samples/s, price: "
      "0}]}",
      "regions.0.devices.0={type: x, count: 64}",
      "wan.default={latency: 3 ms, bandwidth: 1 Gbit/s}",
      "plan={strategies: [sma], periods: [1, 8], budget: 3, samples_factor: [{strategy: sma, "
      "factor: 2}]}",
      "plan.predicted={strategy: sma, cost: 0, waiting: 0.5, wall: 3 h}"};
  static char whole[8192];
  size_t size = read_quickstart(whole, sizeof whole), good = 0;
  gt_rng rng = gt_rng_make(8, GT_RNG_TEST, 0, 0);
  for (int i = 0; i < rounds; i++) {
    char text[256] = "";
    const char *set = sets[gt_rng_below(&rng, COUNT(sets))];
    size_t n = strlen(set);
    memcpy(text, set, n);
    if (i % 4) n = w_damage(text, n, &rng);
    text[n] = '\0';
    write_bytes(file, whole, size);
    const char *given = text;
    load_and_judge(&given, 1, &good);
  }
  assert_in_range(good, 1, rounds - 1);
}

int main(void) {
  file = in_folder("job.yaml");
  return RUN_TESTS(NULL, NULL, damaged_files, damaged_sets);
}
