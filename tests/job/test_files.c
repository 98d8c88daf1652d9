/* wan.matrix and profile: which values take precedence, what is rejected, and that the resolved job
   needs neither file. */
#include <sys/stat.h>
#include <unistd.h>

#include "world.h"
#include "internal.h"
#include "jobs.h"

static const char *job_file, *matrix_file, *profile_file;

static const char base[] =
    "name: tiny\nmodel: {name: lenet5}\ndata: {path: d.h5}\ntrain: {until: {steps: 5}, batch: 10, "
    "optimizer: {lr: 0.1}}\n"
    "regions:\n  - {name: a, ranks: 2}\n  - {name: b, ranks: 3}\n  - {name: c, ranks: 4}\n";

static gt_status load(gt_job **job, const char *more) {
  return w_load(job, base, more, NULL, 0);
}

static gt_job *loaded(const char *more) {
  gt_job *job = NULL;
  must(load(&job, more));
  assert_null(job->wan.matrix);
  assert_null(job->profile);
  return job;
}

/* Checks that the resolved job loads without those files and gives the same job.  Closes the
   job. */
static void close_complete(gt_job *job) {
  write_text(matrix_file, "nothing");
  write_text(profile_file, "nothing");
  gt_job *again = w_again(job);
  assert_int_equal(again->wan.nlinks, job->wan.nlinks);
  for (size_t i = 0; i < job->wan.nlinks; i++) {
    const gt_job_link *x = &job->wan.links[i], *y = &again->wan.links[i];
    assert_true(x->ia == y->ia && x->ib == y->ib && x->bandwidth_bps == y->bandwidth_bps &&
                x->latency_s == y->latency_s);
    assert_true(x->jitter_s == y->jitter_s && x->loss == y->loss &&
                x->setup_rtts == y->setup_rtts && x->window_bytes == y->window_bytes);
  }
  gt_job_close(again);
  gt_job_close(job);
}

/* A leading '@' stands for the name of `file`. */
static void refused(const char *more, const char *file, const char *expected) {
  gt_job *job = NULL;
  must_say(load(&job, more), GT_ERR_JOB, w_sentence(file, expected));
  assert_null(job);
}

typedef struct {
  const char *text, *expected;
} mistake;

static void all_refused(const char *more, const char *file, const mistake *cases, size_t n) {
  for (size_t i = 0; i < n; i++) {
    write_text(file, cases[i].text);
    refused(more, file, cases[i].expected);
  }
}

/* ---- the matrix ------------------------------------------------------------------------------ */

#define MATRIX "wan: {matrix: m.csv}\n"

static const gt_job_link *link_of(const gt_job *job, size_t from, size_t to) {
  const gt_job_link *link = link_between(job, from, to);
  assert_non_null(link);
  return link;
}

static void matrix_becomes_links(void) {
  write_text(matrix_file,
             "\xef\xbb\xbf# figures of a test\n\nfrom,to,mbit_s,ms,jitter_ms,loss\r\n"
             "a, b, 100, 25, 2, 0.01\nb,a,50,125 # the way back\nz,a,1,1\na,c,,7\nc,b,80,\n");
  gt_job *job = loaded(MATRIX);
  assert_int_equal(job->wan.nlinks, 6);
  const gt_job_link *ab = link_of(job, 0, 1), *ba = link_of(job, 1, 0);
  assert_true(ab->bandwidth_bps == 100e6 && ab->latency_s == 0.025 && ab->jitter_s == 0.002 &&
              ab->loss == 0.01);
  assert_string_equal(ab->from, "a");
  assert_string_equal(ab->to, "b");
  assert_true(ba->bandwidth_bps == 50e6 && ba->latency_s == 0.125 && ba->jitter_s == 0 &&
              ba->loss == 0);
  /* Empty fields are not given; a direction missing in the file has the values of the opposite
     one. */
  assert_true(link_of(job, 0, 2)->bandwidth_bps == 0 && link_of(job, 0, 2)->latency_s == 0.007);
  assert_true(link_of(job, 2, 0)->bandwidth_bps == 0 && link_of(job, 2, 0)->latency_s == 0.007);
  assert_true(link_of(job, 1, 2)->bandwidth_bps == 80e6 && link_of(job, 1, 2)->latency_s == 0);
  close_complete(job);
}

static void links_go_before_the_matrix(void) {
  write_text(matrix_file, "a,b,100,25\na,c,200,35\n");
  gt_job *job = loaded("wan: {matrix: m.csv, links: [{between: [c, b], latency: 1 ms}, {from: b, "
                       "to: a, bandwidth: 3 Mbit/s}]}\n");
  assert_int_equal(job->wan.nlinks, 5);
  assert_true(link_of(job, 1, 2)->latency_s == 0.001 && link_of(job, 2, 1)->latency_s == 0.001);
  assert_true(link_of(job, 1, 0)->bandwidth_bps == 3e6 && link_of(job, 1, 0)->latency_s == 0);
  assert_true(link_of(job, 0, 1)->bandwidth_bps == 100e6 && link_of(job, 0, 1)->latency_s == 0.025);
  close_complete(job);
}

static void matrix_mistakes(void) {
  static const mistake cases[] = {
      {"a,b,1,1\na,c,1,1\n",
       "@: has no line for b and c; expected one for every pair of the job's regions that "
       "wan.links leaves out"},
      {"# nothing\n",
       "@: has no line for a and b; expected one for every pair of the job's regions that "
       "wan.links leaves out"},
      {"aa,b,1,1\naa,c,1,1\nb,c,1,1\n",
       "@: has no line for a and b; expected one for every pair of the job's regions that "
       "wan.links leaves out; did you mean aa by a?"},
      {"# x\na,b,1\n",
       "@:2: has 3 fields; expected from,to,mbit_s,ms and, if need be, jitter_ms,loss"},
      {"a,b,1,2,3,0.4,5\n",
       "@:1: has more than 6 fields; expected from,to,mbit_s,ms and, if need be, jitter_ms,loss"},
      {"a,b,1,1\na,c,fast,2\n",
       "@:2: mbit_s: \"fast Mbit/s\" is not a rate; expected a number of 0 or more with one of "
       "the units bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, as in \"100 Mbit/s\""},
      {"from,to,mbit_s,ms\na,b,0,2\n",
       "@:2: mbit_s is 0 Mbit/s; expected a rate such as 100 Mbit/s, more than 0"},
      {"a,b,1,2,3,1\n", "@:1: loss is 1; expected 0 or more and less than 1"},
      {"a,,1,2\n", "@:1: to is empty; expected the name of a region"},
      {"a,a,1,2\n", "@:1: from and to are both a; expected two regions"},
      {"a,b,1,2\nb,a,1,2\n\na,b,1,2\n",
       "@:4: line 1 gives the direction from a to b already; expected one"},
      {"from,to,ms,mbit_s\na,b,1,2\n",
       "@:1: mbit_s is \"ms\"; expected a number, or on line 1 also the names from,to,mbit_s,ms "
       "and, if need be, jitter_ms,loss, in this order"},
      {"from,to,mbit_s,ms,loss\na,b,1,2,0\n",
       "@:1: mbit_s is \"mbit_s\"; expected a number, or on line 1 also the names "
       "from,to,mbit_s,ms and, if need be, jitter_ms,loss, in this order"},
  };
  all_refused(MATRIX, matrix_file, cases, COUNT(cases));
}

static void files_that_are_not_there(void) {
  char expected[512];
  snprintf(expected, sizeof expected,
           "@: wan.matrix is \"x.csv\": no such file here or in the job's folder %s",
           in_folder(""));
  refused("wan: {matrix: x.csv}\n", job_file, expected);
  snprintf(expected, sizeof expected,
           "@: profile is \".\": no such file here or in the job's folder %s", in_folder(""));
  refused("profile: .\n", job_file, expected);
  refused("profile: /x.yaml\n", job_file, "@: profile is \"/x.yaml\": no such file");
}

/* A file in the current folder takes precedence over one of the same name in the job's folder. */
static void files_here_come_first(void) {
  char here[64], more[128];
  snprintf(here, sizeof here, "m-%ld.csv", (long)getpid());
  snprintf(more, sizeof more, "wan: {matrix: %s}\n", here);
  write_text(here, "a,b,1,1\na,c,1,1\nb,c,1,1\n");
  gt_job *job = NULL;
  gt_status status = load(&job, more);
  unlink(here);
  must(status);
  gt_job_close(job);
}

/* Neither links nor the matrix need to name the directions that wan.default covers. */
static void default_after_the_matrix(void) {
  write_text(matrix_file, "from,to,mbit_s,ms\na,b,90,20\n");
  gt_job *job = loaded(
      "wan: {matrix: m.csv, default: {latency: 7 ms}, links: [{from: a, to: c, latency: 8 ms}]}\n");
  assert_int_equal(job->wan.nlinks, 3); /* a to c, a to b, b to a */
  assert_true(link_between(job, 1, 0)->latency_s == 0.02 &&
              link_between(job, 0, 2)->latency_s == 0.008);
  assert_true(link_between(job, 2, 0)->latency_s == 0.007 &&
              link_between(job, 1, 2)->latency_s == 0.007);
  close_complete(job);
}

/* ---- the profile ----------------------------------------------------------------------------- */

#define PROFILE "profile: p.yaml\n"

static void profile_figures_of_work(void) {
  write_text(profile_file,
             "# written by a probe\nregions:\n"
             "  - {name: a, compute: {samples_per_s: 100, update: 1 ms, speed: 0.1}}\n"
             "  - {name: b, compute: {step: 5 ms, measured: [1, 0.5]}}\n"
             "  - {name: c, compute: {measured: [1, 0.5], checkpoint: 8 Gbit/s}}\n"
             "  - {name: elsewhere, compute: {step: 1 ms}}\n");
  gt_job *job = loaded(PROFILE "compute: {step: 10 ms, speed: 0.5, apply: 3 ms}\n");
  gt_job_compute a = gt_job_compute_of(job, 0), b = gt_job_compute_of(job, 1),
                 c = gt_job_compute_of(job, 2);
  assert_true(a.samples_per_s == 100 && a.step_s == 0 && a.update_s == 0.001 &&
              a.apply_s == 0.003 && a.speed == 0.5);
  assert_true(b.samples_per_s == 0 && b.step_s == 0.005 && b.speed == 0.5 &&
              b.eval_samples_per_s == 6000);
  assert_true(c.step_s == 0.01 && c.checkpoint_bps == 8e9);
  assert_int_equal(job->regions[1].nmeasured, 2);
  assert_true(job->regions[1].measured[1] == 0.5 && job->regions[1].speeds == NULL);
  /* measured with two workers, but there are three */
  assert_int_equal(job->regions[2].nmeasured, 0);
  close_complete(job);
}

static void profile_goes_before_a_region(void) {
  write_text(profile_file,
             "regions: [{name: b, compute: {step: 5 ms, speeds: [1, 1], measured: [1, 0.5], "
             "local: 2 ms}}]\n");
  gt_job *job = NULL;
  const char *sets[] = {"profile=p.yaml", "regions.1.compute={samples_per_s: 9, speed: 0.25, "
                                          "speeds: [0.5, 1], local: 9 ms, encode: 4 ms}"};
  write_text(job_file, base);
  must(gt_job_load(&job, job_file, sets, 2));
  const gt_job_region *b = &job->regions[1];
  assert_true(b->compute.samples_per_s == 0 && b->compute.step_s == 0.005 &&
              b->compute.speed == 0.25);
  assert_true(b->compute.local_s == 0.002 && b->compute.encode_s == 0.004);
  assert_true(b->speeds[0] == 0.5 && b->speeds[1] == 1 && b->measured[1] == 0.5);
  close_complete(job);
}

/* The power of devices is used only if nothing else gives the rate. */
static void profile_goes_before_devices(void) {
  write_text(profile_file, "regions: [{name: b, compute: {samples_per_s: 500}}]\n");
  const char *sets[] = {
      "regions.1.devices=[{type: x, count: 1, power: 900}, {type: y, count: 1, power: 300}]",
      "profile=p.yaml"};
  gt_job *job = NULL;
  write_text(job_file, base);
  must(gt_job_load(&job, job_file, sets, 1));
  assert_true(gt_job_device_power(job, 1, 1) == 300 &&
              gt_job_worker_share(job, 1, 1) == 300. / 900);
  gt_job_close(job);
  must(gt_job_load(&job, job_file, sets, 2));
  assert_true(gt_job_device_power(job, 1, 1) == 500 && gt_job_worker_share(job, 1, 1) == 1);
  gt_job_close(job);
}

static void profile_links(void) {
  write_text(
      profile_file,
      "wan:\n  links:\n"
      "    - {from: a, to: b, bandwidth: 90 Mbit/s, latency: 24 ms, setup: 1, eager: 64 KiB, "
      "window: 100 KiB, idle: 200 ms}\n"
      "    - {from: b, to: a, bandwidth: 80 Mbit/s, latency: 23 ms, setup: 2, window: 10 KiB}\n"
      "    - {from: a, to: c, bandwidth: 70 Mbit/s, latency: 22 ms, setup: 3}\n"
      "    - {from: c, to: a, bandwidth: 60 Mbit/s, latency: 21 ms}\n"
      "    - {from: b, to: c, bandwidth: 50 Mbit/s, latency: 20 ms, setup: 4}\n"
      "    - {from: a, to: elsewhere, latency: 20 ms}\n");
  gt_job *job = loaded(PROFILE "wan: {links: [{between: [b, a], bandwidth: 100 Mbit/s, setup: 7}, "
                               "{between: [b, c], latency: 5 ms}]}\n");
  const gt_job_link *ab = link_of(job, 0, 1), *ba = link_of(job, 1, 0), *bc = link_of(job, 1, 2),
                    *cb = link_of(job, 2, 1);
  assert_int_equal(job->wan.nlinks, 6);
  assert_true(ab->bandwidth_bps == 100e6 && ab->latency_s == 0 && ab->setup_rtts == 7 &&
              ab->eager_bytes == 65536 && ab->idle_s == 0.2);
  assert_true(ab->window_bytes == 102400);
  assert_true(ba->bandwidth_bps == 100e6 && ba->setup_rtts == 7 && ba->eager_bytes == 0 &&
              ba->window_bytes == 10240);
  assert_true(bc->latency_s == 0.005 && bc->bandwidth_bps == 0 && bc->setup_rtts == 4);
  assert_true(cb->latency_s == 0.005 && cb->bandwidth_bps == 0 && cb->setup_rtts == 0);
  assert_true(link_of(job, 0, 2)->bandwidth_bps == 70e6 && link_of(job, 0, 2)->latency_s == 0.022 &&
              link_of(job, 0, 2)->setup_rtts == 3);
  assert_true(link_of(job, 2, 0)->bandwidth_bps == 60e6 && link_of(job, 2, 0)->setup_rtts == 0);
  close_complete(job);
}

/* A measured access rate is used if the job does not give one, even if the job names the links. */
static void profile_access(void) {
  write_text(profile_file,
             "regions: [{name: a, access: 50 Mbit/s}, {name: b, access: 40 Mbit/s, compute: "
             "{step: 5 ms}}]\n");
  write_text(job_file, base);
  const char *sets[] = {"profile=p.yaml", "regions.1.access=90 Mbit/s",
                        "wan.default.bandwidth=70 Mbit/s"};
  gt_job *job = NULL;
  must(gt_job_load(&job, job_file, sets, 3));
  assert_true(job->regions[0].access_bps == 50e6 && job->regions[1].access_bps == 90e6 &&
              job->regions[2].access_bps == 0);
  assert_true(job->regions[1].compute.step_s == 0.005);
  close_complete(job);
}

static void profile_after_the_matrix(void) {
  write_text(matrix_file, "a,b,100,25\na,c,200,35\nb,c,300,45\n");
  write_text(profile_file,
             "wan: {links: [{from: b, to: a, bandwidth: 80 Mbit/s, latency: 23 ms, setup: 2}]}\n");
  gt_job *job = loaded(PROFILE MATRIX);
  const gt_job_link *ba = link_of(job, 1, 0);
  assert_true(ba->bandwidth_bps == 100e6 && ba->latency_s == 0.025 && ba->setup_rtts == 2);
  assert_true(link_of(job, 0, 1)->setup_rtts == 0);
  assert_int_equal(job->wan.nlinks, 6);
  close_complete(job);
}

#define HOLDS                                                                                      \
  "has no place in a profile, which holds regions[].name, access and compute, wan.links[].from, "  \
  "to and figures, and fleet"

static void profile_mistakes(void) {
  static const mistake cases[] = {
      {"seed: 3\n", "@: seed " HOLDS},
      {"wan: {outbox: 3}\n", "@: wan.outbox " HOLDS},
      {"regions: [{name: a, ranks: 3}]\n", "@: regions.0.ranks " HOLDS},
      {"wan: {links: [{between: [a, b]}]}\n", "@: wan.links.0.between " HOLDS},
      {"wan: {lniks: []}\n", "@: unknown key wan.lniks; did you mean wan.links?"},
      {"regions: [{compute: {step: 1 ms}}]\n",
       "@: regions.0.name is missing; expected the name of a region"},
      {"regions: [{name: q}, {name: q}]\n",
       "@: regions.0 and regions.1 are both named q; expected one"},
      {"regions: [{name: q, compute: {step: 1 ms, samples_per_s: 3}}]\n",
       "@: regions.0.compute has samples_per_s and step; expected one of them"},
      {"wan: {links: [{from: a, latency: 3 ms}]}\n",
       "@: wan.links.0.to is missing; expected the name of a region"},
      {"wan: {links: [{from: a, to: a}]}\n",
       "@: wan.links.0.from and to are both a; expected two regions"},
      {"wan: {links: [{from: a, to: b}, {from: b, to: a}, {from: a, to: b}]}\n",
       "@: wan.links.0 and wan.links.2 both give the direction from a to b; expected one"},
      {"# nothing\n",
       "@: is not a mapping of keys; expected a profile that `geotrain probe` wrote"},
      {"regions: [{name: a, compute: {step: 1}}]\n",
       "@: regions.0.compute.step: \"1\" is not a time; expected a number of 0 or more with one "
       "of the units ns, us, ms, s, min, h, d, as in \"25 ms\""},
  };
  all_refused(PROFILE, profile_file, cases, COUNT(cases));
}

int main(void) {
  job_file = in_folder("job.yaml");
  matrix_file = in_folder("m.csv");
  profile_file = in_folder("p.yaml");
  return RUN_TESTS(NULL, NULL, matrix_becomes_links, links_go_before_the_matrix, matrix_mistakes,
                   files_that_are_not_there, files_here_come_first, profile_figures_of_work,
                   default_after_the_matrix, profile_goes_before_devices, profile_links,
                   profile_goes_before_a_region, profile_after_the_matrix, profile_mistakes,
                   profile_access);
}
