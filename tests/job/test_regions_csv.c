/* Regions from a CSV file, instead of those of the job file. */
#include <unistd.h>

#include "world.h"
#include "internal.h"
#include "jobs.h"

static const char *file, *csv;

/* Keys that name the job's own regions are removed with them. */
static const char base[] =
    "name: tiny\nmodel: {name: lenet5}\ndata: {path: d.h5, partition: {shares: [1, 2]}}\n"
    "train: {until: {steps: 5}, optimizer: {lr: 0.1}}\n"
    "regions: [{name: a, ranks: auto, devices: [{type: x, count: 3}]}, {name: b, ranks: 2}]\n"
    "compute: {step: 10 ms}\n"
    "wan:\n  default: {bandwidth: 100 Mbit/s, latency: 25 ms}\n  links: [{between: [a, b], "
    "latency: 1 ms}]\n"
    "  matrix: nowhere.csv\n  outages: [{between: [a, b], for: 1 s}]\n";

static gt_job *load(const char *rows, const char *const *sets, size_t nsets) {
  gt_job *job = NULL;
  write_text(csv, rows);
  must(gt_job_load_regions(&job, file, sets, nsets, csv));
  return job;
}

static void every_column(void) {
  const char *set = "regions.1.ranks=9";
  gt_job *job =
      load("\xef\xbb\xbfname, ranks,samples,place,step,speed,access,price,ps_price,samples_per_s # "
           "a comment\r\n\n"
           "london,11,7680,aws:london,20 ms,0.5,1 Gbit/s,0.111,0,\r\n# nothing\n  oregon, "
           "3,,,,,,,, 900\nsydney,2,,,,,,,,",
           &set, 1);
  assert_int_equal(job->nregions, 3);
  const gt_job_region *r = job->regions;
  assert_string_equal(r[0].name, "london");
  assert_string_equal(r[0].place, "aws:london");
  assert_true(r[0].ranks == 11 && r[0].samples == 7680 && r[0].compute.step_s == 0.02 &&
              r[0].compute.speed == 0.5 && r[0].access_bps == 1e9);
  assert_true(r[0].price == 0.111 && r[0].ps_price == 0 && r[0].ndevices == 0);
  assert_string_equal(r[1].name, "oregon");
  assert_true(r[1].ranks == 9 && r[1].samples == 0 && !r[1].place && r[1].price < 0 &&
              r[1].compute.samples_per_s == 900 && r[1].access_bps == 0);
  assert_true(gt_job_compute_of(job, 2).step_s == 0.01);
  assert_true(job->wan.nlinks == 0 && job->wan.noutages == 0 && !job->wan.matrix &&
              job->data.partition.nshares == 0);
  assert_true(link_between(job, 2, 0)->latency_s == 0.025);
  gt_job_close(job);
}

static void without_a_file(void) {
  const char *sets[] = {"wan.matrix=null"};
  gt_job *job = NULL;
  must(gt_job_load_regions(&job, file, sets, 1, NULL));
  assert_int_equal(job->nregions, 2);
  assert_int_equal(job->wan.nlinks, 1);
  gt_job_close(job);
}

static void ten_thousand(void) {
  size_t n = 10000, room = n * 64, used;
  char *text = gt_alloc(room, 1);
  used = (size_t)snprintf(text, room, "name,ranks,samples,step,price\n");
  for (size_t i = 0; i < n; i++)
    used +=
        (size_t)snprintf(text + used, room - used, "region-%zu,11,%zu,10 ms,0.1\n", i, 7680 + i);
  gt_job *job = load(text, NULL, 0);
  assert_int_equal(job->nregions, n);
  assert_string_equal(job->regions[n - 1].name, "region-9999");
  assert_int_equal(job->regions[n - 1].samples, 7680 + n - 1);
  assert_int_equal(gt_job_ranks(job), 11 * (int)n);
  gt_job_close(job);
  gt_free(text);
}

/* '@' stands for the file's name. */
static void refused(const char *rows, size_t size, const char *expected) {
  gt_job *job = NULL;
  write_bytes(csv, rows, size);
  must_say(gt_job_load_regions(&job, file, NULL, 0, csv), GT_ERR_JOB, w_sentence(csv, expected));
  assert_null(job);
}

static void mistakes(void) {
  static const struct {
    const char *rows, *expected;
  } cases[] = {
      {"", "@: is empty; expected a line that names columns and a line a region"},
      {"name,ranks\n", "@: has no region below its first line; expected 1 or more"},
      {"name,samples\n", "@:1: no column is named ranks; every region must have one"},
      {"\nranks\n", "@:2: no column is named name; every region must have one"},
      {"name,ranks,sample\n",
       "@:1: column 3 is named \"sample\"; expected one of name, ranks, samples, place, step, "
       "samples_per_s, speed, access, price, ps_price; did you mean samples?"},
      {"london,3\n", "@:1: column 1 is named \"london\"; expected one of name, ranks, samples, "
                     "place, step, samples_per_s, speed, access, price, ps_price"},
      {"name,ranks,name\n", "@:1: columns 1 and 3 are both named name; expected one"},
      {"name,ranks,a,b,c,d,e,f,g,h,i\n",
       "@:1: has more than 10 columns; the known ones are name, ranks, samples, place, step, "
       "samples_per_s, speed, access, price, ps_price"},
      {"name,ranks\na,2\nb\n", "@:3: has 1 fields; expected 2, as in the first line"},
      {"name,ranks\na,2,\n", "@:2: has more than 2 fields; expected 2, as in the first line"},
      {"name,ranks\na,0\n", "@:2: ranks (column 2) is 0; expected 1 or more"},
      {"name,ranks\na,\n", "@:2: ranks (column 2) is \"\"; expected an integer, 1 or more"},
      {"ranks,name\n2,\n", "@:2: name (column 2) is empty; expected text"},
      {"name,ranks\na,auto\n", "@:2: ranks (column 2) is \"auto\"; expected an integer, 1 or more"},
      {"name,ranks\na/b,2\n",
       "@:2: name (column 1) is \"a/b\"; expected a name for files: letters, "
       "digits, dot, dash and underscore, a letter or digit first"},
      {"name,ranks,price\na,2,-1\n", "@:2: price (column 3) is -1; expected 0 or more"},
      {"name,ranks,samples\na,2,1e3\n",
       "@:2: samples (column 3) is \"1e3\"; expected an integer, 1 or more"},
      {"name,ranks,step\na,2,5\n",
       "@:2: step (column 3): \"5\" is not a time; expected a number of 0 or more with one of the "
       "units ns, us, ms, s, min, h, d, as in \"25 ms\""},
      {"name,ranks,place\na,2,new york\n",
       "@:2: place (column 3) is \"new york\"; expected one word without space or comma"},
      {"name,ranks,place\na,2,\xff\n",
       "@:2: place (column 3) has a non-ASCII character; expected ASCII text"},
      {"name,ranks,step,samples_per_s\na,2,1 s,5\n",
       "@:2: has step and samples_per_s; expected one of them"},
      {"name,ranks\na,2\nb,2\n#\nA,3\n", "@:5: name is A, as on line 2; expected different names"},
  };
  for (size_t i = 0; i < COUNT(cases); i++)
    refused(cases[i].rows, strlen(cases[i].rows), cases[i].expected);
  refused("name,ranks\0", 11, "@:1: has a control character in it; expected a CSV file of regions");
  refused("name,ranks\r\n\ta,2\r\nb\x1b]0;x\x07,2\r\n", 29,
          "@:3: has a control character in it; expected a CSV file of regions");
  unlink(csv);
  gt_job *job = NULL;
  must_say(gt_job_load_regions(&job, file, NULL, 0, "nothing.csv"), GT_ERR_JOB,
           "nothing.csv: cannot be opened: No such file or directory");
}

int main(void) {
  file = file_with("job.yaml", base);
  csv = in_folder("regions.csv");
  return RUN_TESTS(NULL, NULL, every_column, without_a_file, ten_thousand, mistakes);
}
