/* ranks: 3; processors: 1 */
/* Groups whose messages travel over TCP: rank 0 is one region, ranks 1 and 2 are another; their PS
   ranks, 0 and 1, are joined by TCP, and all three ranks through them. */
#include <arpa/inet.h>
#include <unistd.h>

#include "geotrain/net.h"
#include "geotrain/net_mpi.h"
#include "geotrain/wan_tcp.h"
#include "port.h"
#include "tests.h"

#define LIMIT_S 40.0
#define WHAT    "the other ranks"
#define LARGE   ((size_t)200001) /* more than three pieces, and no whole number of them */

static gt_peers *world, *region, *servers, *joined;
static gt_endpoint *tcp;

static int set_up(void **state) {
  (void)state;
  static const size_t ranks[] = {1, 2};
  const size_t own = world->rank > 0;
  int port = world->rank == 0 ? find_port() : 0;
  char at[32];
  gt_peers_share(world, 0, &port, sizeof port, WHAT, LIMIT_S);
  snprintf(at, sizeof at, "127.0.0.1:%d", port);
  MPI_Comm comm;
  GT_MPI(MPI_Comm_split(gt_peers_mpi(world), (int)own, 0, &comm));
  region = gt_peers_of_mpi(comm, true);
  const gt_tcp_region regions[] = {{"a", at}, {"b", NULL}};
  const gt_tcp_spec spec = {.regions = regions,
                            .nregions = 2,
                            .self = own,
                            .listen = own == 0 ? at : NULL,
                            .patience_s = LIMIT_S};
  if (region->rank == 0) {
    assert_int_equal(gt_tcp_open(&tcp, &spec), GT_OK);
    servers = gt_endpoint_peers(tcp);
  }
  joined = gt_peers_join(region, servers, own, ranks, 2);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  gt_peers_close(joined);
  gt_peers_close(servers);
  gt_endpoint_close(tcp);
  gt_peers_close(region);
  return 0;
}

static void ranks_are_numbered_by_region(void) {
  assert_int_equal(joined->size, 3);
  assert_int_equal(joined->rank, world->rank);
  assert_int_equal(region->size, world->rank == 0 ? 1 : 2);
  if (servers) assert_int_equal(servers->size, 2);
}

static uint8_t byte_of(size_t rank, size_t i) {
  return (uint8_t)(31 * rank + i + i / 251);
}

static void check_gather(gt_peers *peers, size_t bytes) {
  uint8_t *own = gt_alloc(bytes + 1, 1), *all = gt_alloc(peers->size, bytes + 1);
  for (size_t i = 0; i < bytes; i++) own[i] = byte_of(peers->rank, i);
  gt_peers_gather(peers, own, bytes, all, WHAT, LIMIT_S);
  for (size_t r = 0; r < peers->size; r++)
    for (size_t i = 0; i < bytes; i++)
      if (all[r * bytes + i] != byte_of(r, i)) fail_msg("byte %zu of rank %zu", i, r);
  gt_free(all);
  gt_free(own);
}

static void check_share(gt_peers *peers, size_t bytes) {
  uint8_t *data = gt_alloc(bytes, 1);
  for (size_t from = 0; from < peers->size; from++) {
    for (size_t i = 0; i < bytes; i++) data[i] = byte_of(peers->rank, i);
    gt_peers_share(peers, from, data, bytes, WHAT, LIMIT_S);
    for (size_t i = 0; i < bytes; i++)
      if (data[i] != byte_of(from, i)) fail_msg("byte %zu from rank %zu", i, from);
  }
  gt_free(data);
}

static void values_of_servers(void) {
  static const size_t sizes[] = {0, 1, 65536, LARGE};
  for (size_t i = 0; servers && i < sizeof sizes / sizeof *sizes; i++) {
    check_gather(servers, sizes[i]);
    check_share(servers, sizes[i] + 1);
  }
}

static void values_of_all_ranks(void) {
  check_gather(joined, 1);
  check_share(joined, 100);
  check_gather(joined, LARGE);
  check_share(joined, LARGE);
}

static void each_rank_fails_in_turn(void) {
  assert_int_equal(gt_agree(joined, GT_OK, LIMIT_S), GT_OK);
  for (size_t bad = 0; bad < joined->size; bad++) {
    char expected[64];
    snprintf(expected, sizeof expected, "rank %zu has no data", bad);
    const gt_status local = joined->rank == bad ? GT_FAIL(GT_ERR_DATA, "%s", expected) : GT_OK;
    assert_int_equal(gt_agree(joined, local, LIMIT_S), GT_ERR_DATA);
    assert_string_equal(gt_error_text(), expected);
  }
}

static void texts_of_all(void) {
  static const char *const of[] = {"", "a longer one, of rank 1", "x"};
  char **texts = gt_peers_gather_texts(joined, of[joined->rank], WHAT, LIMIT_S);
  for (size_t i = 0; i < joined->size; i++) {
    assert_string_equal(texts[i], of[i]);
    gt_free(texts[i]);
  }
  gt_free(texts);
}

int main(void) {
  world = gt_net_start(LIMIT_S);
  const int failed = RUN_TESTS(set_up, tear_down, ranks_are_numbered_by_region, values_of_servers,
                               values_of_all_ranks, each_rank_fails_in_turn, texts_of_all);
  gt_net_finalize(world, LIMIT_S);
  return failed;
}
