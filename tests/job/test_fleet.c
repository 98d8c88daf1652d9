/* Fleets from profiles and CSV files: values read, the sentence of every mistake, damage. */
#include <sys/stat.h>
#include <unistd.h>

#include "geotrain/job.h"
#include "geotrain/job_fleet.h"
#include "world.h"

#define ROUNDS 2000

static const char *folder, *devices_file, *links_file, *profile_file;

static gt_job_fleet *load(const char *path) {
  gt_job_fleet *fleet = NULL;
  must(gt_job_fleet_load(&fleet, path));
  return fleet;
}

static void assert_link(const gt_job_fleet *f, size_t from, size_t to, double small_s,
                        double large_s) {
  const gt_job_fleet_link *l = &f->links[from * f->n + to];
  if (fabs(l->small_s - small_s) > 1e-12 || fabs(l->large_s - large_s) > 1e-12)
    fail_msg("from %zu to %zu: %.9g s and %.9g s; expected %.9g s and %.9g s", from, to, l->small_s,
             l->large_s, small_s, large_s);
}

/* ---- a profile ------------------------------------------------------------------------------- */

static const char profile[] =
    "regions: [{name: eu, compute: {samples_per_s: 5}}]\n"
    "fleet:\n"
    "  theta: 5 ms\n"
    "  devices:\n"
    "    - {name: eu.0, host: \"n 1\", region: eu, power: 810.5, memory: 4 GiB}\n"
    "    - {name: eu.1, host: \"n 1\", region: eu, power: 405.25, memory: 100 B, links: eu.0}\n"
    "    - {name: us.0, power: 1e3, memory: 1 MiB}\n"
    "  links: # a comment\n"
    "    - {from: us.0, small_us: [0, 25001.5], large_us: [0, 360000]}\n"
    "    - {from: eu.0, small_us: [25000, 2], large_us: [1e6, 900]}\n"
    "  operations:\n"
    "    - {name: conv1, first: 0, last: 0, forward_us: 1000, input_us: 0, weight_us: 2e3}\n"
    "    - {name: \"a .. b\", first: 1, last: 3, forward_us: 1, input_us: 2, weight_us: 0}\n";

static void a_profile(void) {
  write_text(profile_file, profile);
  gt_job_fleet *f = load(profile_file);
  assert_int_equal(f->n, 3);
  assert_string_equal(f->devices[0].name, "eu.0");
  assert_string_equal(f->devices[0].host, "n 1");
  assert_string_equal(f->devices[1].region, "eu");
  assert_string_equal(f->devices[2].host, "");
  assert_true(f->devices[0].power == 810.5 && f->devices[1].power == 405.25 &&
              f->devices[2].power == 1e3);
  assert_true(f->devices[0].memory_bytes == 0x1p32 && f->devices[1].memory_bytes == 100);
  assert_true(f->theta_s == 0.005);
  assert_link(f, 0, 1, 2e-6, 900e-6); /* both on one host, whose first device has the links */
  assert_link(f, 1, 0, 2e-6, 900e-6);
  assert_link(f, 1, 2, 25e-3, 1);
  assert_link(f, 2, 1, 25.0015e-3, 0.36);
  assert_link(f, 2, 2, 0, 0);
  assert_int_equal(f->noperations, 2);
  assert_string_equal(f->operations[1].name, "a .. b");
  assert_true(f->operations[0].first == 0 && f->operations[0].last == 0 &&
              f->operations[1].first == 1 && f->operations[1].last == 3);
  assert_true(fabs(f->operations[0].forward_s - 1e-3) < 1e-12 && f->operations[0].input_s == 0 &&
              fabs(f->operations[0].weight_s - 2e-3) < 1e-12);
  assert_true(fabs(f->operations[1].input_s - 2e-6) < 1e-12 && f->operations[1].weight_s == 0);
  gt_job_fleet_close(f);
}

static void what_nothing_passes(void) {
  static const char text[] =
      "fleet: {devices: [{name: a, power: 1, memory: 1 B}, {name: b, power: 1, memory: 1 B}],\n"
      "links: [{from: a, small_us: [0, .inf], large_us: [0, inf]}, {from: b, small_us: [1, 0], "
      "large_us: [1, 0]}]}";
  write_text(profile_file, text);
  gt_job_fleet *f = load(profile_file);
  assert_true(isinf(f->links[1].small_s) && isinf(f->links[1].large_s));
  assert_link(f, 1, 0, 1e-6, 1e-6);
  assert_true(f->theta_s == 0);
  gt_job_fleet_close(f);
}

/* A job reads the rest of such a profile, and refuses damage in its fleet. */
static void a_job_with_the_profile(void) {
  char text[2048], damaged[2048], expected[512];
  gt_job *job = NULL;
  snprintf(text, sizeof text,
           "name: t\nmodel: {name: lenet5}\ndata: {path: d.h5}\ntrain: {until: {steps: 5}, "
           "optimizer: {lr: 0.1}}\nregions: [{name: eu, ranks: 2}]\nprofile: %s\n",
           profile_file);
  write_text(profile_file, profile);
  must(gt_job_parse(&job, "test", text));
  assert_true(gt_job_compute_of(job, 0).samples_per_s == 5);
  gt_job_close(job);
  job = NULL;
  snprintf(damaged, sizeof damaged, "%s", profile);
  memcpy(strstr(damaged, "1e6"), "inf", 3);
  write_text(profile_file, damaged);
  assert_int_equal(gt_job_parse(&job, "test", text), GT_ERR_JOB);
  snprintf(expected, sizeof expected,
           "%s: fleet.links.1, entry 0: a message of 64 B takes 0.025 s and one of 4 MiB inf s; "
           "expected times above 0, that of the larger one not below the other, or inf for both",
           profile_file);
  assert_string_equal(gt_error_text(), expected);
}

/* `path` precedes `expected` in the message. */
static void refused(const char *load_path, const char *path, const char *expected) {
  gt_job_fleet *fleet = NULL;
  char full[1024];
  snprintf(full, sizeof full, "%s%s", path, expected);
  must_say(gt_job_fleet_load(&fleet, load_path), GT_ERR_JOB, full);
  assert_null(fleet);
}

#define D               "devices: [{name: a, power: 1, memory: 1 B}, {name: b, power: 1, memory: 1 B}]"
#define L               "links: [{from: a, small_us: [0, 1], large_us: [0, 1]}, " BL "]"
#define BL              "{from: b, small_us: [1, 0], large_us: [1, 0]}"
#define OPS(operations) "fleet: {" D ", " L ", operations: " operations "}"
#define OP0             "{name: o, first: 0, last: 1, forward_us: 1, input_us: 1, weight_us: 1}"
#define OF(devices)     "fleet: {devices: " devices ", " L "}"

static void mistakes_in_profiles(void) {
  static const struct {
    const char *text, *expected;
  } cases[] = {
      {"regions: []", ": has no section fleet; expected a profile that `geotrain probe JOB.yaml "
                      "--fleet` wrote, or a folder with devices.csv and links.csv"},
      {"[1, 2]", ": has no section fleet; expected a profile that `geotrain probe JOB.yaml "
                 "--fleet` wrote, or a folder with devices.csv and links.csv"},
      {"fleet: 3", ": fleet is not a mapping of keys"},
      {"fleet: {device: []}", ": unknown key fleet.device; did you mean devices?"},
      {"fleet: {links: []}", ": fleet.devices is not a list of 1 to 4096 entries"},
      {"fleet: {devices: [], " L "}", ": fleet.devices is not a list of 1 to 4096 entries"},
      {"fleet: {" D "}", ": fleet.links is not a list of 1 to 4096 entries"},
      {"fleet: {theta: 0 s, " D ", " L "}",
       ": fleet.theta is \"0 s\"; expected a time, more than 0, as in 5 ms"},
      {"fleet: {theta: [1], " D ", " L "}",
       ": fleet.theta is a list or a mapping; expected a single value"},
      {OF("[3]"), ": fleet.devices.0 is not a mapping of keys"},
      {OF("[{nam: a}]"), ": unknown key fleet.devices.0.nam; did you mean name?"},
      {OF("[{power: 1}]"), ": fleet.devices.0.name is missing; expected a single value"},
      {OF("[{name: \"\"}]"),
       ": fleet.devices.0.name is \"\"; expected a name of 1 to 256 ASCII characters"},
      {OF("[{name: a, host: \xc3\xa4}]"),
       ": fleet.devices.0.host is \"\xc3\xa4\"; expected a name of 1 to 256 ASCII characters"},
      {OF("[{name: a}]"), ": fleet.devices.0.power is missing; expected a single value"},
      {OF("[{name: a, power: 0}]"), ": fleet.devices.0.power is \"0\"; expected a number above 0"},
      {OF("[{name: a, power: 1x}]"),
       ": fleet.devices.0.power is \"1x\"; expected a number above 0"},
      {OF("[{name: a, power: inf}]"),
       ": fleet.devices.0.power is \"inf\"; expected a number above 0"},
      {OF("[{name: a, power: 1}]"), ": fleet.devices.0.memory is missing; expected a single value"},
      {OF("[{name: a, power: 1, memory: 5}]"),
       ": fleet.devices.0.memory is \"5\"; expected a size above 0, as in 4 GiB"},
      {OF("[{name: a, power: 1, memory: 1 B}, {name: a, power: 1, memory: 1 B}]"),
       ": fleet.devices.0 and fleet.devices.1 are both named a; expected one"},
      {"fleet: {" D ", links: [3]}", ": fleet.links.0 is not a mapping of keys"},
      {"fleet: {" D ", links: [{fro: a}]}", ": unknown key fleet.links.0.fro; did you mean from?"},
      {"fleet: {" D ", links: [{small_us: [0]}]}",
       ": fleet.links.0.from is missing; expected a single value"},
      {"fleet: {" D ", links: [{from: c}]}",
       ": fleet.links.0.from names \"c\"; expected one of fleet.devices"},
      {"fleet: {" D ", links: [" BL ", " BL "]}",
       ": fleet.links.0 and fleet.links.1 are both from b; expected one"},
      {"fleet: {" D ", links: [" BL "]}",
       ": fleet.links has no entry from a; expected one, or `links: NAME` at the device with the "
       "name of one that has such an entry"},
      {"fleet: {" D ", links: [{from: a}, " BL "]}",
       ": fleet.links.0.small_us is not a list of 2 times; expected one per entry of fleet.links, "
       "in that order"},
      {"fleet: {" D ", links: [{from: a, small_us: [0, 1], large_us: [1]}, " BL "]}",
       ": fleet.links.0.large_us is not a list of 2 times; expected one per entry of fleet.links, "
       "in that order"},
      {"fleet: {" D ", links: [{from: a, small_us: [0, -1], large_us: [0, 1]}, " BL "]}",
       ": fleet.links.0.small_us.1 is \"-1\"; expected a time as a number without unit, or inf "
       "without a connection"},
      {"fleet: {" D ", links: [{from: a, small_us: [0, [1]], large_us: [0, 1]}, " BL "]}",
       ": fleet.links.0.small_us.1 is \"\"; expected a time as a number without unit, or inf "
       "without a connection"},
      {"fleet: {" D ", links: [{from: a, small_us: [0, 0], large_us: [0, 1]}, " BL "]}",
       ": fleet.links.0, entry 1: a message of 64 B takes 0 s and one of 4 MiB 1e-06 s; expected "
       "times above 0, that of the larger one not below the other, or inf for both"},
      {"fleet: {" D ", links: [{from: a, small_us: [0, 3], large_us: [0, 1]}, " BL "]}",
       ": fleet.links.0, entry 1: a message of 64 B takes 3e-06 s and one of 4 MiB 1e-06 s; "
       "expected times above 0, that of the larger one not below the other, or inf for both"},
      {OF("[{name: a, power: 1, memory: 1 B}, {name: b, power: 1, memory: 1 B}, {name: bb, power: "
          "1, memory: 1 B, links: bbb}]"),
       ": fleet.devices.2.links names \"bbb\"; expected one of fleet.devices; did you mean bb?"},
      {OF("[{name: a, power: 1, memory: 1 B}, {name: b, power: 1, memory: 1 B}, {name: c, power: "
          "1, memory: 1 B, links: b}]"),
       ": b and c have the links of b, whose time to itself is 0; it must be the time between two "
       "devices of its host"},
      {OPS("[]"), ": fleet.operations is not a list of 1 to 4096 entries"},
      {OPS("[3]"), ": fleet.operations.0 is not a mapping of keys"},
      {OPS("[{names: o}]"), ": unknown key fleet.operations.0.names; did you mean name?"},
      {OPS("[{first: 0}]"), ": fleet.operations.0.name is missing; expected a single value"},
      {OPS("[{name: o}]"), ": fleet.operations.0.first is missing; expected a single value"},
      {OPS("[{name: o, first: 0.5}]"),
       ": fleet.operations.0.first is \"0.5\"; expected a whole number, 0 or more"},
      {OPS("[{name: o, first: 1}]"),
       ": fleet.operations.0.first is 1; expected 0, because operations follow each other"},
      {OPS("[" OP0 ", {name: o, first: 1}]"),
       ": fleet.operations.1.first is 1; expected 2, because operations follow each other"},
      {OPS("[" OP0 ", {name: o, first: 2, last: 1}]"),
       ": fleet.operations.1.last is \"1\"; expected a whole number, 2 or more"},
      {OPS("[{name: o, first: 0, last: 0, forward_us: -1}]"),
       ": fleet.operations.0.forward_us is \"-1\"; expected a number, 0 or more"},
      {OPS("[{name: o, first: 0, last: 0, forward_us: 1, input_us: inf}]"),
       ": fleet.operations.0.input_us is \"inf\"; expected a number, 0 or more"},
      {OPS("[{name: o, first: 0, last: 0, forward_us: 1, input_us: 1}]"),
       ": fleet.operations.0.weight_us is missing; expected a single value"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    write_text(profile_file, cases[i].text);
    refused(profile_file, profile_file, cases[i].expected);
  }
  write_bytes(profile_file, "fleet: [", 8);
  gt_job_fleet *fleet = NULL;
  must_fail(gt_job_fleet_load(&fleet, profile_file), GT_ERR_JOB, "is not YAML");
  refused("nothing.yaml", "nothing.yaml", ": cannot be opened: No such file or directory");
}

/* ---- CSV files ------------------------------------------------------------------------------- */

static const char devices[] = "\xef\xbb\xbf"
                              "device,host,region,power,memory_bytes # a comment\r\n\n"
                              "a1, ha ,eu,10,1e9\n"
                              "a2,ha,eu,20,2e9\n"
                              "b,b,eu,30,3e9\n"
                              "c,,us,40,4e9";

static gt_job_fleet *load_csv(const char *rows) {
  write_text(devices_file, devices);
  write_text(links_file, rows);
  return load(folder);
}

/* The narrower line counts; a direction without a line is like the other one. */
static void csv_files(void) {
  gt_job_fleet *f = load_csv("from,to,small_s,large_s\n"
                             "eu,us,0.025,0.36\nus,eu,0.026,0.37 # a comment\n"
                             "eu,eu,0.001,0.01\n"
                             "ha,b,0.002,0.02\n"
                             "ha,ha,1e-6,1e-3\n"
                             "a1,b,inf,inf\n"
                             "c,a2,3,4\n");
  assert_int_equal(f->n, 4);
  assert_string_equal(f->devices[0].name, "a1");
  assert_string_equal(f->devices[0].host, "ha");
  assert_string_equal(f->devices[3].host, "");
  assert_string_equal(f->devices[3].region, "us");
  assert_true(f->devices[1].power == 20 && f->devices[3].memory_bytes == 4e9 && f->theta_s == 0);
  assert_link(f, 0, 1, 1e-6, 1e-3);
  assert_link(f, 1, 0, 1e-6, 1e-3);
  assert_true(isinf(f->links[2].small_s) && isinf(f->links[8].large_s));
  assert_link(f, 1, 2, 0.002, 0.02);
  assert_link(f, 2, 1, 0.002, 0.02);
  assert_link(f, 0, 3, 0.025, 0.36);
  assert_link(f, 3, 0, 0.026, 0.37);
  assert_link(f, 3, 1, 3, 4);
  assert_link(f, 1, 3, 3, 4);
  assert_link(f, 3, 3, 0, 0);
  gt_job_fleet_close(f);
}

#define ALL   "eu,us,1,2\neu,eu,1,2\n"
#define NONE  "from,to,small_s,large_s\n"
#define DLINE "a,h,r,1,1\n"

static void mistakes_in_csv_files(void) {
  static const struct {
    const char *devices, *links; /* NULL: as above, and valid */
    const char *expected;
  } cases[] = {
      {"", ALL,
       ": has no device; expected one line per device: device,host,region,power,memory_bytes"},
      {"device,host,region,power,memory_bytes\n", ALL,
       ": has no device; expected one line per device: device,host,region,power,memory_bytes"},
      {"a,h,r,1\n", ALL, ":1: has 4 fields; expected device,host,region,power,memory_bytes"},
      {DLINE "a,h,r,1,1,1\n", ALL,
       ":2: has more than 5 fields; expected device,host,region,power,memory_bytes"},
      {",h,r,1,1\n", ALL, ":1: device is \"\"; expected a name of 1 to 256 ASCII characters"},
      {"a,h,\xff,1,1\n", ALL,
       ":1: region is \"\xff\"; expected a name of 1 to 256 ASCII characters"},
      {"a,h,r,,1\n", ALL, ":1: power is \"\"; expected a number above 0"},
      {"a,h,r,-1,1\n", ALL, ":1: power is \"-1\"; expected a number above 0"},
      {"a,h,r,1,nan\n", ALL, ":1: memory_bytes is \"nan\"; expected a number above 0"},
      {"a,h,r,1,4 GiB\n", ALL, ":1: memory_bytes is \"4 GiB\"; expected a number above 0"},
      {DLINE "b,,,1,1\n" DLINE, ALL, ": devices 1 and 3 are both named a; expected one"},
      {NULL, "",
       ": has no line for a1 and a2; expected one for every pair of devices, of their hosts or of "
       "their regions"},
      {NULL, NONE "eu,eu,1,2\n",
       ": has no line for a1 and c; expected one for every pair of devices, of their hosts or of "
       "their regions"},
      {NULL, NONE "eu,us,1\n", ":2: has 3 fields; expected from,to,small_s,large_s"},
      {NULL, "eu,us,1,2,\n", ":1: has more than 4 fields; expected from,to,small_s,large_s"},
      {NULL, "eu,us,x,2\n",
       ":1: small_s is \"x\"; expected a time as a number without unit, or inf without a "
       "connection"},
      {NULL, "eu,us,1,\n",
       ":1: large_s is \"\"; expected a time as a number without unit, or inf without a "
       "connection"},
      {NULL, "eu,us,0,2\n",
       ":1: a message of 64 B takes 0 s and one of 4 MiB 2 s; expected times above 0, that of the "
       "larger one not below the other, or inf for both"},
      {NULL, "eu,us,2,1\n",
       ":1: a message of 64 B takes 2 s and one of 4 MiB 1 s; expected times above 0, that of the "
       "larger one not below the other, or inf for both"},
      {NULL, "eu,us,1,inf\n",
       ":1: a message of 64 B takes 1 s and one of 4 MiB inf s; expected times above 0, that of "
       "the larger one not below the other, or inf for both"},
      {NULL, "a1,a1,1,2\n", ":1: from and to are both a1; expected two devices"},
      {NULL, "a1,a22,1,2\n",
       ":1: to is \"a22\"; expected a device, host or region of devices.csv; did you mean a2?"},
      {NULL, "nowhere,us,1,2\n",
       ":1: from is \"nowhere\"; expected a device, host or region of devices.csv"},
      {NULL, "a1,us,1,2\n",
       ":1: a1 is a device and us a region; expected two devices, two hosts or two regions"},
      {NULL, "ha,eu,1,2\n",
       ":1: ha is a host and eu a region; expected two devices, two hosts or two regions"},
      {NULL, "eu,us,1,2\n# a comment\neu,us,1,2\n",
       ":3: an earlier line gives the direction from eu to us; expected one"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    const char *rows = cases[i].devices ? cases[i].devices : devices;
    write_text(devices_file, rows);
    write_text(links_file, cases[i].links);
    refused(folder, cases[i].devices ? devices_file : links_file, cases[i].expected);
  }
  write_bytes(devices_file, DLINE, strlen(DLINE) + 1);
  refused(folder, devices_file,
          ":2: has a control character in it; expected a CSV file of devices");
  write_text(devices_file, DLINE);
  unlink(links_file);
  refused(folder, links_file, ": cannot be opened: No such file or directory");
}

static void too_many_devices(void) {
  FILE *to = fopen(devices_file, "w");
  assert_non_null(to);
  for (int i = 0; i <= 4096; i++) fprintf(to, "d%d,,eu,1,1\n", i);
  assert_int_equal(fclose(to), 0);
  write_text(links_file, ALL);
  refused(folder, devices_file, ":4097: has more than 4096 devices, the maximum");
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void judge(const char *path, size_t *good) {
  gt_job_fleet *fleet = NULL;
  const gt_status status = gt_job_fleet_load(&fleet, path);
  if (status == GT_OK) {
    ++*good;
    for (size_t i = 0; i < fleet->n * fleet->n; i++)
      assert_true(i % (fleet->n + 1) == 0 || fleet->links[i].small_s > 0);
  } else if (status != GT_ERR_JOB || fleet) {
    fail_msg("status %d: %s", (int)status, gt_error_text());
  } else {
    assert_true(strlen(gt_error_text()) > 10);
    assert_null(strchr(gt_error_text(), '\n'));
  }
  gt_job_fleet_close(fleet);
}

/* Damaged files are rejected or read, without crashes or leaks. */
static void damaged(void) {
  static const char links[] = NONE "eu,us,0.025,0.36\neu,eu,0.001,0.01\nha,b,0.002,0.02\n"
                                   "a1,b,inf,inf\nc,a2,3,4\n";
  gt_rng rng = gt_rng_make(9, GT_RNG_TEST, 0, 0);
  size_t good[3] = {0};
  for (int i = 0; i < ROUNDS; i++) {
    char text[2048];
    const char *const whole[] = {devices, links, profile};
    const char *const files[] = {devices_file, links_file, profile_file};
    const int which = i % 3;
    write_text(devices_file, devices);
    write_text(links_file, links);
    snprintf(text, sizeof text, "%s", whole[which]);
    write_bytes(files[which], text, w_damage(text, strlen(text), &rng));
    judge(which < 2 ? folder : profile_file, &good[which]);
  }
  for (int which = 0; which < 3; which++) assert_in_range(good[which], 1, ROUNDS / 3 - 1);
}

int main(void) {
  folder = in_folder("");
  devices_file = in_folder("devices.csv");
  links_file = in_folder("links.csv");
  profile_file = in_folder("profile.yaml");
  return RUN_TESTS(NULL, NULL, a_profile, what_nothing_passes, a_job_with_the_profile,
                   mistakes_in_profiles, csv_files, mistakes_in_csv_files, too_many_devices,
                   damaged);
}
