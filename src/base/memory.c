/* Memory: zeroed, aligned to a cache line, counted. */
#include "geotrain/base.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define ALIGNMENT ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)
#define LARGE     (4 * HUGE_PAGE)
#define LOOKED_AT ((size_t)256 << 20) /* compared with the free memory */

static atomic_int_least64_t alive, total;

/* Uses _Exit: other threads can hold locks that exit handlers need. */
static _Noreturn void out_of_memory(size_t count, size_t size) {
  char have[32];
  fprintf(stderr, "geotrain: an array of %zu x %zu bytes does not fit into memory (%s free)\n",
          count, size, gt_format_size(have, sizeof have, gt_memory_free("")));
  gt_temporary_remove();
  _Exit(GT_ERR_FAULT);
}

static size_t bytes_of(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - HUGE_PAGE)
    out_of_memory(count, size);
  return bytes;
}

static void count_one(void) {
  atomic_fetch_add_explicit(&alive, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&total, 1, memory_order_relaxed);
}

void *gt_alloc(size_t count, size_t size) {
  size_t bytes = bytes_of(count, size);
  /* Large arrays are read sequentially; huge pages, if available, need far fewer address
     translations. */
  const size_t alignment = bytes >= LARGE ? HUGE_PAGE : ALIGNMENT;
  bytes = bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
  /* Linux overcommits memory, and kills processes that then use it. */
  const bool short_of = bytes >= LOOKED_AT && (double)bytes > gt_memory_free("");
  void *memory = short_of ? NULL : aligned_alloc(alignment, bytes);
  if (!memory) out_of_memory(count, size);
  if (bytes >= LARGE) madvise(memory, bytes, MADV_HUGEPAGE);
  memset(memory, 0, bytes);
  count_one();
  return memory;
}

/* After MADV_DONTNEED the pages are released and read as zeros. */
void *gt_reserve(size_t count, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), asked = bytes_of(count, size),
               bytes = (asked / page + 1) * page;
  void *memory = aligned_alloc(page, bytes);
  if (!memory) out_of_memory(count, size);
  if (madvise(memory, bytes, MADV_DONTNEED) != 0) memset(memory, 0, bytes);
  count_one();
  return memory;
}

void gt_discard(void *memory, size_t size) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)memory,
                  first = (from + page - 1) / page * page, end = (from + size) / page * page;
  if (end > first) (void)madvise((uint8_t *)memory + (first - from), end - first, MADV_DONTNEED);
}

void gt_free(void *memory) {
  if (!memory) return;
  atomic_fetch_sub_explicit(&alive, 1, memory_order_relaxed);
  free(memory);
}

char *gt_strdup(const char *text) {
  if (!text) return NULL;
  size_t size = strlen(text) + 1;
  char *copy = gt_alloc(size, 1);
  memcpy(copy, text, size);
  return copy;
}

void *gt_grown(void *array, size_t *capacity, size_t first, size_t size) {
  const size_t room = *capacity ? 2 * *capacity : first;
  void *copy = gt_alloc(room, size);
  if (*capacity) memcpy(copy, array, *capacity * size);
  gt_free(array);
  *capacity = room;
  return copy;
}

int64_t gt_alloc_alive(void) {
  return atomic_load_explicit(&alive, memory_order_relaxed);
}

int64_t gt_alloc_total(void) {
  return atomic_load_explicit(&total, memory_order_relaxed);
}

size_t gt_resident_now(void) {
  unsigned long all = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file) return 0;
  if (fscanf(file, "%lu %lu", &all, &resident) != 2) resident = 0;
  fclose(file);
  return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

size_t gt_resident_peak(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (size_t)used.ru_maxrss * 1024;
}
