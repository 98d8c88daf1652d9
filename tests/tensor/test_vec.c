/* Vector operations, and the arena. */
#include "tests.h"
#include "geotrain/tensor.h"

enum { N = 1003 };

static void against_loops(void) {
  static float x[N], y[N], right[N];
  const float a = 0.375f; /* few bits and small integers: every operation is exact */
  for (int op = 0; op < 6; op++) {
    for (size_t i = 0; i < N; i++) {
      x[i] = (float)(i % 17);
      y[i] = (float)(i % 23);
      const float values[6] = {
          0.0f, x[i], a * y[i], y[i] + a * x[i], a * x[i], y[i] + a * (x[i] - y[i])};
      right[i] = values[op];
    }
    const gt_vec vx = gt_vec_of(x, N), vy = gt_vec_of(y, N);
    switch (op) {
    case 0:
      gt_vec_zero(vy);
      break;
    case 1:
      gt_vec_copy(vy, vx);
      break;
    case 2:
      gt_vec_scale(vy, a);
      break;
    case 3:
      gt_vec_axpy(vy, a, vx);
      break;
    case 4:
      gt_vec_set_scaled(vy, a, vx);
      break;
    default:
      gt_vec_lerp(vy, a, vx);
    }
    assert_memory_equal(y, right, sizeof y);
  }
}

static void null_data_does_nothing(void) {
  float y[3] = {1.0f, 2.0f, 3.0f};
  const gt_vec none = gt_vec_of(NULL, 3), some = gt_vec_of(y, 3);
  gt_vec_zero(none);
  gt_vec_scale(none, 2.0f);
  gt_vec_copy(none, some);
  gt_vec_copy(some, none);
  gt_vec_axpy(some, 1.0f, none);
  gt_vec_lerp(some, 1.0f, none);
  gt_vec_set_scaled(some, 1.0f, none);
  assert_true(y[0] == 1.0f && y[1] == 2.0f && y[2] == 3.0f);
  assert_true(gt_vec_finite(none));
  assert_null(gt_vec_range(none, 1, 2).data);
}

static void finite_finds_each_place(void) {
  static float x[9000];
  const float bad[3] = {NAN, INFINITY, -INFINITY};
  for (size_t i = 0; i < 9000; i++) x[i] = i % 2 ? 3.4e38f : -1e-40f;
  assert_true(gt_vec_finite(gt_vec_of(x, 9000)));
  for (size_t i = 0; i < 9000; i += i < 40 ? 1 : 997) {
    const float was = x[i];
    x[i] = bad[i % 3];
    assert_false(gt_vec_finite(gt_vec_of(x, 9000)));
    assert_true(gt_vec_finite(gt_vec_range(gt_vec_of(x, 9000), 0, i)));
    assert_true(gt_vec_finite(gt_vec_range(gt_vec_of(x, 9000), i + 1, 9000 - i - 1)));
    x[i] = was;
  }
}

static void ranges(void) {
  float x[10];
  const gt_vec part = gt_vec_range(gt_vec_of(x, 10), 4, 6);
  assert_ptr_equal(part.data, x + 4);
  assert_int_equal(part.n, 6);
  assert_int_equal(gt_vec_range(part, 6, 0).n, 0);
}

static void arena_places(void) {
  gt_arena *arena = gt_arena_create();
  size_t tickets[40];
  for (size_t i = 0; i < 40; i++) tickets[i] = gt_arena_reserve(arena, i * 7);
  /* offsets are known without memory */
  const int64_t planning = gt_alloc_alive();
  gt_arena_plan(arena);
  assert_int_equal(gt_alloc_alive(), planning);
  const size_t bytes = gt_arena_bytes(arena);
  gt_arena_commit(arena);
  assert_int_equal(gt_arena_bytes(arena), bytes);
  for (size_t i = 0; i < 40; i++) {
    assert_ptr_equal(gt_arena_at(arena, tickets[i]), gt_arena_at(arena, tickets[39]) +
                                                         gt_arena_offset(arena, tickets[i]) -
                                                         gt_arena_offset(arena, tickets[39]));
    float *place = gt_arena_at(arena, tickets[i]);
    assert_int_equal((uintptr_t)place % 64, 0);
    for (size_t k = 0; k < i * 7; k++) {
      assert_true(place[k] == 0.0f); /* not shared with others, and zero at first */
      place[k] = (float)i;
    }
  }
  for (size_t i = 1; i < 40; i++)
    for (size_t k = 0; k < i * 7; k++) assert_true(gt_arena_at(arena, tickets[i])[k] == (float)i);
  assert_true(gt_arena_bytes(arena) >= 4 * 7 * 780 &&
              gt_arena_bytes(arena) <= 4 * (7 * 780 + 40 * 16));
  gt_arena_close(arena);
  gt_arena_close(NULL);
}

/* The definition, an element at a time. */
static uint32_t hashed(uint32_t i, uint64_t key) {
  uint32_t h = i ^ (uint32_t)key;
  for (int k = 0; k < 2; k++) {
    h = (h ^ (h >> 16)) * 0x85ebca6bU;
    h = (h ^ (h >> 13)) * 0xc2b2ae35U;
    h = (h ^ (h >> 16)) + (uint32_t)(key >> 32);
  }
  return h;
}

static void dropout(void) {
  enum { LONG = 100003 };
  static float x[LONG], y[LONG];
  static const double ps[] = {0, 0.1, 0.5, 0.99};
  for (size_t k = 0; k < COUNT(ps); k++) {
    const uint64_t key = 0x123456789abcdef * (k + 1);
    const float scale = (float)(1 / (1 - ps[k]));
    size_t dropped = 0, pairs = 0;
    for (size_t i = 0; i < LONG; i++) x[i] = 1.0F + (float)(i % 7);
    gt_vec_drop(gt_vec_of(y, LONG), gt_vec_of(x, LONG), ps[k], key);
    for (size_t i = 0; i < LONG; i++) {
      const bool drops = hashed((uint32_t)i, key) < (uint32_t)(ps[k] * 0x1p32);
      assert_true(y[i] == (drops ? 0.0F : scale * x[i]));
      dropped += drops;
      pairs += i > 0 && drops && y[i - 1] == 0.0F;
    }
    /* five standard deviations, of single elements and of neighbours */
    const double sd = sqrt(LONG * ps[k] * (1 - ps[k])), both = ps[k] * ps[k];
    assert_true(fabs((double)dropped - LONG * ps[k]) <= 5 * sd);
    assert_true(fabs((double)pairs - LONG * both) <= 5 * sqrt(3 * LONG * both * (1 - both)));
    gt_vec_drop(gt_vec_of(x, LONG), gt_vec_of(x, LONG), ps[k], key); /* in place */
    assert_memory_equal(x, y, sizeof x);
  }
}

TESTS(dropout, against_loops, null_data_does_nothing, finite_finds_each_place, ranges, arena_places)
