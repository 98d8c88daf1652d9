/* ranks: 1 2 4; processors: 1 */
/* Groups of ranks: values and texts of all ranks, of one rank, and meetings. */
#include <sys/resource.h>

#include "geotrain/net.h"
#include "geotrain/net_peers.h"
#include "ranks.h"

#define WHAT "the other ranks"

static void values_of_all(void) {
  const int64_t own = 100 + (int64_t)world->rank;
  int64_t *all = GT_NEW_ARRAY(int64_t, world->size);
  gt_peers_gather(world, &own, sizeof own, all, WHAT, LIMIT_S);
  for (size_t i = 0; i < world->size; i++) assert_int_equal(all[i], 100 + i);
  gt_free(all);
}

static void values_of_each_rank_in_turn(void) {
  for (size_t from = 0; from < world->size; from++) {
    size_t value[3] = {world->rank, 7, world->rank};
    gt_peers_share(world, from, value, 2 * sizeof *value, WHAT, LIMIT_S);
    assert_int_equal(value[0], from);
    assert_int_equal(value[2], world->rank); /* beyond the bytes */
  }
}

static void text_of_the_first(void) {
  for (int given = 0; given < 3; given++) {
    static const char *const texts[] = {NULL, "", "the first rank's"};
    char *text =
        gt_peers_share_text(world, world->rank == 0 ? texts[given] : "another", WHAT, LIMIT_S);
    assert_int_equal(text != NULL, given > 0);
    if (text) assert_string_equal(text, texts[given]);
    gt_free(text);
  }
}

/* The texts have different lengths, the longest in the middle. */
static const char *text_of(size_t of) {
  static const char *const texts[] = {"ab", "a longer one, of rank 1", "", "x"};
  return texts[of];
}

static void texts_of_all(void) {
  char **texts = gt_peers_gather_texts(world, text_of(world->rank), WHAT, LIMIT_S);
  for (size_t i = 0; i < world->size; i++) {
    assert_string_equal(texts[i], text_of(i));
    gt_free(texts[i]);
  }
  gt_free(texts);
}

static void count(void *context) {
  (*(int *)context)++;
}

static long sleeps_so_far(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

/* Progress is made while others are awaited, without sleep if it sleeps itself. */
static void meetings(void) {
  for (int sleeps = 0; sleeps < 2; sleeps++) {
    int turns = 0;
    const long before = sleeps_so_far();
    if (world->rank > 0) gt_sleep(GT_SECOND / 5);
    gt_peers_meet(world, &(gt_peers_wait){.what = WHAT,
                                          .limit_s = LIMIT_S,
                                          .progress = count,
                                          .context = &turns,
                                          .sleeps = sleeps != 0});
    if (world->rank > 0 || world->size == 1) continue;
    assert_true(turns > 10);
    assert_int_equal(sleeps_so_far() - before < turns / 2, sleeps);
  }
}

/* ---- a region that returns ------------------------------------------------------------------- */

/* Groups of one rank: the servers', which shares what it shared at the start of the run, and the
   region's, which notes what it shares. */
static const char *then;
static char shared[64];

static void share_then(gt_peers *peers, size_t from, void *data, size_t bytes,
                       const gt_peers_wait *wait) {
  const uint64_t whole = strlen(then) + 1;
  (void)peers, (void)from, (void)wait;
  assert_null(memchr(data, '#', bytes));
  memcpy(data, bytes == whole ? (const void *)then : &whole, bytes);
}

static void share_here(gt_peers *peers, size_t from, void *data, size_t bytes,
                       const gt_peers_wait *wait) {
  (void)peers, (void)from, (void)wait;
  memcpy(shared, data, bytes);
}

static gt_peers servers = {&(gt_peers_ops){.share = share_then}, 0, 2},
                region = {&(gt_peers_ops){.share = share_here}, 0, 2};

static void a_text_can_be_longer_than_at_the_start(void) {
  const char own[64] = "short\0##############";
  then = "a longer one";
  char *text = gt_peers_share_text(&servers, own, WHAT, LIMIT_S);
  assert_string_equal(text, then);
  gt_free(text);
}

static void all_ranks_of_the_region_have_what_was_said(void) {
  static const size_t ranks[] = {2, 1};
  gt_peers *joined = gt_peers_join(&region, &servers, 0, ranks, 2);
  then = "12345";
  for (size_t from = 0; from < 2; from++) {
    char data[6] = "now";
    gt_peers_share(joined, from, data, sizeof data, WHAT, LIMIT_S);
    assert_string_equal(data, then);
    assert_string_equal(shared, then);
  }
  gt_peers_close(joined);
}

RANK_TESTS(values_of_all, values_of_each_rank_in_turn, text_of_the_first, texts_of_all, meetings,
           a_text_can_be_longer_than_at_the_start, all_ranks_of_the_region_have_what_was_said)
