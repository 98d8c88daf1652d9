/* Properties of the arena, over random requests: each address is aligned and inside the block;
   requests that are in use at the same time do not overlap; the block is not larger than without
   sharing, and not smaller than the memory in use at any time. */
#include "numbers.h"

enum { MOST = 60 };
typedef struct {
  size_t ticket, count, from, to;
  float *at;
} request;

static size_t lines(size_t count) {
  return (count + 15) / 16 * 16;
}

static bool together(const request *a, const request *b) {
  return a->from <= b->to && b->from <= a->to;
}

static void check(const gt_arena *arena, const request *r, size_t n) {
  size_t all = 0, busiest = 0;
  const float *least = r[0].at, *most = r[0].at;
  for (size_t i = 0; i < n; i++) {
    size_t now = 0;
    assert_int_equal((uintptr_t)r[i].at % 64, 0);
    if (r[i].at < least) least = r[i].at;
    if (r[i].at + r[i].count > most) most = r[i].at + r[i].count;
    all += lines(r[i].count);
    for (size_t k = 0; k < n; k++) {
      if (r[k].from <= r[i].from && r[i].from <= r[k].to) now += lines(r[k].count);
      if (k == i || !together(&r[i], &r[k])) continue;
      if (r[i].at < r[k].at + r[k].count && r[k].at < r[i].at + r[i].count)
        fail_msg("requests %zu (%zu from %zu to %zu) and %zu (%zu from %zu to %zu) overlap", i,
                 r[i].count, r[i].from, r[i].to, k, r[k].count, r[k].from, r[k].to);
    }
    if (now > busiest) busiest = now;
  }
  assert_true((size_t)(most - least) * sizeof(float) <= gt_arena_bytes(arena));
  assert_true(gt_arena_bytes(arena) <= all * sizeof(float));
  assert_true(gt_arena_bytes(arena) >= busiest * sizeof(float));
}

static void random_requests(void) {
  for (size_t round = 0; round < 300; round++) {
    const size_t n = between(1, MOST), moments = between(1, 40);
    request r[MOST];
    gt_arena *arena = gt_arena_create();
    for (size_t i = 0; i < n; i++) {
      r[i] = (request){.count = between(0, 9) ? between(1, 700) : 0, .to = SIZE_MAX};
      if (between(0, 5)) { /* else for the arena's whole life */
        r[i].from = between(0, moments), r[i].to = between(r[i].from, moments);
        r[i].ticket = gt_arena_reserve_span(arena, r[i].count, r[i].from, r[i].to);
      } else {
        r[i].ticket = gt_arena_reserve(arena, r[i].count);
      }
    }
    gt_arena_commit(arena);
    for (size_t i = 0; i < n; i++) r[i].at = gt_arena_at(arena, r[i].ticket);
    check(arena, r, n);
    gt_arena_commit(arena); /* a second call changes nothing */
    for (size_t i = 0; i < n; i++) assert_ptr_equal(gt_arena_at(arena, r[i].ticket), r[i].at);
    gt_arena_close(arena);
  }
}

/* Requests with disjoint times share memory; requests whose times overlap do not. */
static void shares_what_it_can(void) {
  gt_arena *turns = gt_arena_create(), *touching = gt_arena_create();
  for (size_t i = 0; i < 10; i++) {
    gt_arena_reserve_span(turns, 1000, 2 * i, 2 * i + 1);
    gt_arena_reserve_span(touching, 1000, i, i + 1);
  }
  gt_arena_commit(turns), gt_arena_commit(touching);
  assert_int_equal(gt_arena_bytes(turns), lines(1000) * sizeof(float));
  assert_int_equal(gt_arena_bytes(touching), 2 * lines(1000) * sizeof(float));
  gt_arena_close(turns), gt_arena_close(touching);
  gt_arena_close(NULL);
}

int main(void) {
  rng = gt_rng_make(24, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, random_requests, shares_what_it_can);
}
