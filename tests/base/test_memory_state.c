/* Memory is zeroed, aligned and counted; named state is found only by its exact name, type and
   count. */
#include "geotrain/base.h"
#include "tests.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define GT_THREAD_SANITIZER
#endif
#endif

static void memory_is_zeroed_and_aligned(void) {
  for (size_t n = 0; n < 300; n += 7) {
    unsigned char *m = gt_alloc(n, 3);
    assert_int_equal((uintptr_t)m % 64, 0);
    for (size_t i = 0; i < 3 * n; i++) assert_int_equal(m[i], 0);
    memset(m, 0xff, 3 * n); /* so that reused memory is dirty */
    gt_free(m);
  }
}

/* Reused memory is dirty before it is reserved; pages that are never written are not in memory. */
static void reserved_memory_is_zeroed_and_not_there(void) {
  const size_t large = (size_t)256 << 20;
  for (size_t n = 1; n < 100000; n = 3 * n + 1) {
    unsigned char *dirty = gt_alloc(n, 1);
    memset(dirty, 0xff, n);
    gt_free(dirty);
    unsigned char *m = gt_reserve(n, 1);
    assert_int_equal((uintptr_t)m % 64, 0);
    for (size_t i = 0; i < n; i++) assert_int_equal(m[i], 0);
    memset(m, 0xff, n);
    gt_free(m);
  }
  const size_t before = gt_resident_now();
  unsigned char *m = gt_reserve(large, 1);
  memset(m + large / 2, 1, large / 8);
  const size_t grown = gt_resident_now() - before;
  assert_true(grown >= large / 8);
#ifndef GT_THREAD_SANITIZER /* which keeps shadow memory for written pages */
  assert_true(grown < large / 4);
#endif
  /* the kernel counts pages per CPU, and adds them up from time to time */
  assert_true(gt_resident_peak() + ((size_t)4 << 20) >= before + large / 8);
  assert_true(m[0] == 0 && m[large / 2] == 1 && m[large - 1] == 0);
  gt_free(m);
}

static void *allocate_a_lot(void *unused) {
  for (int i = 0; i < 20000; i++) gt_free(gt_alloc(1, 8));
  return unused;
}

static void memory_is_counted_over_threads(void) {
  int64_t alive = gt_alloc_alive(), total = gt_alloc_total();
  char *copy = gt_strdup("text");
  assert_string_equal(copy, "text");
  assert_int_equal(gt_alloc_alive(), alive + 1);
  gt_free(copy);
  gt_free(NULL);
  assert_null(gt_strdup(NULL));
  assert_int_equal(gt_alloc_alive(), alive);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, allocate_a_lot, NULL), 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_int_equal(gt_alloc_alive(), alive);
  assert_int_equal(gt_alloc_total(), total + 1 + 2 * 20000);
}

/* The child's exit code shows that the process ended with an error message, not with a crash. */
static void memory_that_cannot_be_had_ends_the_process(void) {
  /* Linux grants the last one, and would kill the process while it is written. */
  const size_t impossible[][2] = {{SIZE_MAX, 2},
                                  {SIZE_MAX, 1},
                                  {(size_t)1 << 33, (size_t)1 << 33},
                                  {2 * (size_t)gt_memory_free(""), 1}};
  for (size_t i = 0; i < COUNT(impossible); i++) {
    pid_t child = fork();
    if (child == 0) {
      fclose(stderr);
      stderr = fopen("/dev/null", "w");
      volatile unsigned char *m = gt_alloc(impossible[i][0], impossible[i][1]);
      _exit(m ? 0 : 99);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
  }
}

static void free_memory_is_below_every_limit(void) {
  static const char *const folders[] = {"proc",
                                        "proc/self",
                                        "sys",
                                        "sys/fs",
                                        "sys/fs/cgroup",
                                        "sys/fs/cgroup/a",
                                        "sys/fs/cgroup/a/b",
                                        "sys/fs/cgroup/memory",
                                        "sys/fs/cgroup/memory/c"};
  const char *root = in_folder("");
  assert_true(gt_memory_free(root) > 1e6); /* free memory of this machine */
  for (size_t i = 0; i < COUNT(folders); i++)
    assert_int_equal(mkdir(in_folder(folders[i]), 0700), 0);
  file_with("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    5000 kB\nMemFree: 1 kB\n");
  assert_true(gt_memory_free(root) == 5000 * 1024);
  file_with("proc/self/cgroup", "0::/a/b\n");
  file_with("sys/fs/cgroup/a/b/memory.max", "max\n");
  assert_true(gt_memory_free(root) == 5000 * 1024);
  file_with("sys/fs/cgroup/a/memory.max", "4000000\n");
  assert_true(gt_memory_free(root) == 4000000);
  file_with("sys/fs/cgroup/a/b/memory.max", "3000000\n");
  assert_true(gt_memory_free(root) == 3000000);
  file_with("proc/self/cgroup", "5:cpu,memory2:/a\n4:memory:/c\n1:name=x:/a\n");
  file_with("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "2000000\n");
  assert_true(gt_memory_free(root) == 2000000);
  file_with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  assert_true(gt_memory_free(root) == 2000000);
}

static void a_need_is_compared_with_what_is_free(void) {
  must(gt_memory_check(GT_ERR_DATA, "a.h5", 5000, 5000));
  must_fail(gt_memory_check(GT_ERR_DATA, "a.h5", 0x3p30, 0x1p29), GT_ERR_DATA,
            "a.h5 needs at least 3.0 GiB of memory; expected at most "
            "the 512.0 MiB that host ");
}

static void processes_of_a_host_share_its_memory(void) {
  gt_memory_pool own[2], other[2];
  int ends[2], status;
  gt_memory_pools(own);
  assert_true(own[0].id != own[1].id && own[0].free_bytes > 1e6 && own[1].free_bytes > 1e6);
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    gt_memory_pools(other);
    _exit(write(ends[1], other, sizeof other) == sizeof other ? 0 : 99);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(read(ends[0], other, sizeof other), sizeof other);
  assert_true(other[0].id == own[0].id && other[1].id == own[1].id);
  close(ends[0]);
  close(ends[1]);
}

static void state_is_found_by_its_whole_name(void) {
  gt_state state = {0};
  float w[2] = {1.5F, -2.0F};
  int64_t step = 42;
  gt_state_add(&state, "optim/", "w", GT_TYPE_F32, w, 2);
  gt_state_add(&state, "", "step", GT_TYPE_I64, &step, 1);
  assert_ptr_equal(gt_state_find(&state, "optim/", "w")->data, w);
  assert_ptr_equal(gt_state_find(&state, "", "optim/w")->data, w);
  assert_null(gt_state_find(&state, "", "w"));
  assert_null(gt_state_find(&state, "optim/", "w2"));
  assert_null(gt_state_find(&state, "", "ste"));
  float out[2] = {0};
  must(gt_state_get(&state, "optim/", "w", GT_TYPE_F32, out, 2));
  assert_memory_equal(out, w, sizeof w);
  gt_state_close(&state);
  assert_int_equal(state.n, 0);
  gt_state_close(&state);
  gt_state_close(NULL);
}

static void state_that_does_not_fit_is_refused_by_name(void) {
  gt_state state = {0};
  float w[4] = {0};
  gt_state_add(&state, "optim/", "momentum", GT_TYPE_F32, w, 4);
  double sink[4] = {7, 7, 7, 7};
  must_say(gt_state_get(&state, "optim/", "momentum", GT_TYPE_F64, sink, 4), GT_ERR_CKPT,
           "state \"optim/momentum\" is 4 x f32; expected 4 x f64");
  assert_int_equal(gt_state_get(&state, "optim/", "momentum", GT_TYPE_F32, sink, 3), GT_ERR_CKPT);
  must_fail(gt_state_get(&state, "optim/", "m2", GT_TYPE_F32, sink, 4), GT_ERR_CKPT, "optim/m2");
  assert_true(sink[0] == 7 && sink[3] == 7);
  gt_state_close(&state);
}

/* One table is saved and loaded.  A field without a name is skipped, a field without data is not
   loaded, and the first mismatch is returned. */
static void fields_are_read_both_ways(void) {
  int64_t steps = 3, hidden = 4;
  float w[2] = {1, 2};
  gt_state_field fields[] = {{"steps", GT_TYPE_I64, &steps, 1},
                             {NULL, GT_TYPE_I64, &hidden, 1},
                             {"w", GT_TYPE_F32, w, 2},
                             {"simulated", GT_TYPE_F32, NULL, 9}};
  gt_state state = {0};
  must(GT_STATE_FIELDS((gt_state_direction){.to = &state}, "a/", fields));
  assert_int_equal(state.n, 3);
  assert_string_equal(state.items[0].name, "a/steps");
  assert_string_equal(state.items[1].name, "a/w");
  assert_string_equal(state.items[2].name, "a/simulated");

  int64_t loaded = 0, untouched = 5;
  float x[2] = {0, 0};
  gt_state_field to[] = {{"steps", GT_TYPE_I64, &loaded, 1},
                         {NULL, GT_TYPE_I64, &untouched, 1},
                         {"simulated", GT_TYPE_F32, NULL, 8},
                         {"w", GT_TYPE_F32, x, 2}};
  const gt_state_direction load = {.from = &state};
  must(GT_STATE_FIELDS(load, "a/", to));
  assert_true(loaded == 3 && untouched == 5 && x[0] == 1 && x[1] == 2);

  to[0].name = "stops";
  x[0] = 7;
  must_fail(GT_STATE_FIELDS(load, "a/", to), GT_ERR_CKPT, "\"a/stops\" is not there");
  assert_true(x[0] == 7);
  gt_state_close(&state);
}

/* With a linear search for each name this would take minutes. */
static void a_very_long_list(void) {
  gt_state state = {0};
  char name[16];
  for (int i = 0; i < 200000; i++) {
    snprintf(name, sizeof name, "%d", i);
    gt_state_add(&state, "list/", name, GT_TYPE_U8, NULL, (size_t)i);
  }
  for (int i = 0; i < 200000; i++) {
    snprintf(name, sizeof name, "t/%d", i);
    assert_true(gt_state_find(&state, "lis", name)->count == (size_t)i);
  }
  assert_null(gt_state_find(&state, "list/", "200000"));
  gt_state_close(&state);
}

static void a_long_list_keeps_order_and_frees_what_it_owns(void) {
  gt_state state = {.owns_data = true};
  for (int i = 0; i < 200; i++) {
    char name[16];
    snprintf(name, sizeof name, "item%d", i);
    int64_t *value = GT_NEW(int64_t);
    *value = i;
    gt_state_add(&state, "list/", name, GT_TYPE_I64, value, 1);
  }
  int64_t value = 0;
  must(gt_state_get(&state, "list/", "item137", GT_TYPE_I64, &value, 1));
  assert_int_equal(value, 137);
  assert_string_equal(state.items[199].name, "list/item199");
  gt_state_close(&state);
}

static void on_bug(const char *text) {
  _exit(strstr(text, "\"optim/w\" is added twice") ? 42 : 41);
}

static void a_name_that_is_added_twice_is_a_bug(void) {
  pid_t child = fork();
  if (child == 0) {
    gt_state state = {0};
    float w = 0;
    gt_on_bug(on_bug);
    gt_state_add(&state, "optim/", "w", GT_TYPE_F32, &w, 1);
    gt_state_add(&state, "", "optim/w", GT_TYPE_F32, &w, 1);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 42);
}

static void types_have_their_sizes(void) {
  assert_int_equal(gt_type_size(GT_TYPE_F32), 4);
  assert_int_equal(gt_type_size(GT_TYPE_F64), 8);
  assert_int_equal(gt_type_size(GT_TYPE_I64), 8);
  assert_int_equal(gt_type_size(GT_TYPE_U8), 1);
}

TESTS(memory_is_zeroed_and_aligned, reserved_memory_is_zeroed_and_not_there,
      memory_is_counted_over_threads, memory_that_cannot_be_had_ends_the_process,
      free_memory_is_below_every_limit, a_need_is_compared_with_what_is_free,
      processes_of_a_host_share_its_memory, state_is_found_by_its_whole_name,
      state_that_does_not_fit_is_refused_by_name, fields_are_read_both_ways, a_very_long_list,
      a_long_list_keeps_order_and_frees_what_it_owns, a_name_that_is_added_twice_is_a_bug,
      types_have_their_sizes)
