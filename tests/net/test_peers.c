/* ranks: 1 2 4; processors: 1 */
/* Groups of ranks: values and texts of all ranks, of one rank, and meetings. */
#include <sys/resource.h>

#include "geotrain/net.h"
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

RANK_TESTS(values_of_all, values_of_each_rank_in_turn, text_of_the_first, texts_of_all, meetings)
