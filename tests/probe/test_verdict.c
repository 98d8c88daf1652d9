/* GO or NO-GO, and warnings: each fault is reported once with its own text, and nothing is reported
   without a fault. */
#include "world.h"

#define TWO "[{name: east, ranks: 2}, {name: west, ranks: 3}]"
#define WAN "{links: [{between: [east, west], bandwidth: 100 Mbit/s, latency: 10 ms}]}"

static void check_reasons(const gt_probe_state *p, size_t needed, const char *sentence) {
  size_t n;
  const char *found = w_reasons(p, &n);
  assert_int_equal(n, needed);
  assert_int_equal(w_lines(found), needed);
  must_contain(found, sentence);
}

static void check_warnings(const gt_probe_state *p, size_t needed, const char *sentence) {
  const char *found = w_print(p, gt_probe_warnings);
  if (w_lines(found) != needed || !strstr(found, sentence))
    fail_msg("%zu warnings are needed: %s\nfound: %s", needed, sentence, found);
}

static void test_all_is_well(void) {
  gt_probe_state *p = w_found(TWO, WAN);
  check_reasons(p, 0, "");
  check_warnings(p, 0, "");
  w_close(p);
}

/* ---- reasons --------------------------------------------------------------------------------- */

static void test_reasons(void) {
  gt_probe_state *p = w_found(TWO, WAN);
  snprintf(p->data_error, sizeof p->data_error, "nowhere.h5 cannot be opened");
  check_reasons(p, 1, "  nowhere.h5 cannot be opened\n");
  snprintf(p->folder_error, sizeof p->folder_error, "no room");
  check_reasons(p, 2, "  the checkpoint directory cannot be used: no room\n");
  snprintf(w_rank(p, 1, -1)->checkpoint_error, 20, "full");
  check_reasons(p, 3, "  region west: the checkpoint directory cannot be used: full\n");
  snprintf(w_rank(p, 0, -1)->checkpoint_error, 20, "read-only");
  check_reasons(p, 4, "  region east: the checkpoint directory cannot be used: read-only\n");
  w_close(p);
}

/* Only a PS writes checkpoints. */
static void test_workers_have_no_folder(void) {
  gt_probe_state *p = w_found(TWO, WAN);
  snprintf(w_rank(p, 1, 1)->checkpoint_error, 20, "not asked for");
  check_reasons(p, 0, "");
  w_close(p);
}

/* ---- machines -------------------------------------------------------------------------------- */

static void all_ranks(gt_probe_state *p, int32_t machine_cores, int32_t threads) {
  for (int i = 0; i < p->run.roles.world_size; i++)
    p->ranks[i].machine_cores = machine_cores, p->ranks[i].threads = threads;
}

/* Once per machine, for any number of its ranks. */
static void test_cores(void) {
  gt_probe_state *p = w_found(TWO, WAN);
  all_ranks(p, 4, 1);
  check_warnings(p, 1, "host has 5 ranks on 4 cores: more ranks than cores");
  all_ranks(p, 9, 2);
  snprintf(p->ranks[0].environment, sizeof p->ranks[0].environment, "OMP_NUM_THREADS=2");
  check_warnings(p, 1,
                 "host has 5 ranks of 2 OpenBLAS threads each on 9 cores (OMP_NUM_THREADS=2)");
  all_ranks(p, 10, 2);
  check_warnings(p, 0, "");
  w_close(p);
}

/* Ranks on two machines with the same name, as in containers: each machine is counted
   separately. */
static void test_machines_are_told_apart(void) {
  gt_probe_state *p = w_found(TWO, WAN);
  all_ranks(p, 2, 1);
  for (int i = 0; i < 2; i++) snprintf(p->ranks[i].kernel, sizeof p->ranks[i].kernel, "boot-2");
  check_warnings(p, 1, "host has 3 ranks on 2 cores");
  p->ranks[1].blas_pinned = 1; /* another rank of the machine reports it */
  check_warnings(p, 1, "");
  p->ranks[0].blas_pinned = 1;
  check_warnings(p, 2, "the environment pins OpenBLAS to Core");
  w_close(p);
}

static void test_transport(void) {
  gt_probe_state *p = w_found(TWO, WAN);
  snprintf(p->ranks[0].single_copy, sizeof p->ranks[0].single_copy, "none");
  check_warnings(p, 1, "twice (single copy: none)");
  snprintf(p->ranks[0].single_copy, sizeof p->ranks[0].single_copy, "emulated");
  check_warnings(p, 1, "twice (single copy: emulated)");
  p->ranks[0].single_copy[0] = '\0';
  check_warnings(p, 0, ""); /* unknown */
  snprintf(p->ranks[0].pml, sizeof p->ranks[0].pml, "unknown");
  check_warnings(p, 1, "which transport this MPI library uses cannot be told (Open MPI)");
  w_rank(p, 1, -1)->address_excluded = 1;
  check_warnings(p, 2, "the route from the PS of region west goes by an interface");
  w_close(p);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void test_slow_link(void) {
  gt_probe_state *p = w_found(TWO, WAN);
  gt_probe_link *l = w_link(p, 1, 0);
  l->bandwidth_bps = 71e6;
  check_warnings(p, 0, "");
  l->bandwidth_bps = 69e6;
  check_warnings(p, 1,
                 "the link from west to east is slower than the job says: 69.0 Mbit/s measured, "
                 "100.0 Mbit/s stated");
  l->fit_bandwidth_bps = 95e6; /* the stream was disturbed, the messages were not */
  check_warnings(p, 0, "");
  w_close(p);
}

static void test_long_link(void) {
  gt_probe_state *p = w_found(TWO, WAN);
  w_link(p, 0, 1)->latency_s = 0.0149;
  check_warnings(p, 0, "");
  w_link(p, 0, 1)->latency_s = 0.0151;
  check_warnings(p, 1,
                 "the link from east to west is longer than the job says: 15.1 ms one way "
                 "measured, 10.0 ms stated");
  w_close(p);
}

/* Half a round trip is measured, even if the two directions differ. */
static void test_latency_that_differs(void) {
  gt_probe_state *p =
      w_found(TWO, "{links: [{from: east, to: west, bandwidth: 100 Mbit/s, latency: 4 ms},"
                   " {from: west, to: east, bandwidth: 100 Mbit/s, latency: 16 ms}]}");
  w_link(p, 0, 1)->latency_s = w_link(p, 1, 0)->latency_s = 0.010;
  check_warnings(p, 0, "");
  w_close(p);
}

static void test_poor_fit(void) {
  gt_probe_state *p = w_found(TWO, WAN);
  w_link(p, 0, 1)->fit_error = 0.25;
  check_warnings(p, 0, "");
  w_link(p, 0, 1)->fit_error = 0.26;
  check_warnings(p, 1, "the transport from east to west is fitted poorly (error 26%)");
  w_close(p);
}

/* A warning does not prevent a run from starting. */
static void test_a_warning_is_no_reason(void) {
  gt_probe_state *p = w_found(TWO, WAN);
  all_ranks(p, 1, 1);
  w_link(p, 0, 1)->bandwidth_bps = 1;
  w_link(p, 0, 1)->latency_s = 10;
  check_warnings(p, 3, "");
  check_reasons(p, 0, "");
  w_close(p);
}

TESTS(test_all_is_well, test_reasons, test_workers_have_no_folder, test_cores,
      test_machines_are_told_apart, test_transport, test_slow_link, test_long_link,
      test_latency_that_differs, test_poor_fit, test_a_warning_is_no_reason)
