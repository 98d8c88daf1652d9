/* The peak of bf16 multiply-adds of one core: chains of the widest instruction that multiplies
   pairs of bf16 and adds them up in float32, which is what oneDNN uses for matrix products. */
#include "geotrain/tensor.h"
#include "peak.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 1 << 20, TURNS = 5, AMX_ROWS = 16, AMX_ROW_BYTES = 64, AMX_PALETTE = 1 };

/* AVX512_BF16: 12 chains of 32 products each. */
enum { VECTOR_PRODUCTS = 12 * 32 };

__attribute__((target("avx512f,avx512bf16"))) static float vectors(long rounds) {
  static volatile float start = 1e-3F; /* or a compiler would take the call out of the timing */
  const __m512 one = _mm512_set1_ps(start);
  const __m512bh x = _mm512_cvtne2ps_pbh(one, one);
  /* Written out and all different, as in peak_chains.c. */
  __m512 a = one, b = one * 2, c = one * 3, d = one * 4, e = one * 5, f = one * 6, g = one * 7,
         h = one * 8, i = one * 9, j = one * 10, k = one * 11, l = one * 12;
  for (long n = 0; n < rounds; n++) {
    a = _mm512_dpbf16_ps(a, x, x), b = _mm512_dpbf16_ps(b, x, x), c = _mm512_dpbf16_ps(c, x, x);
    d = _mm512_dpbf16_ps(d, x, x), e = _mm512_dpbf16_ps(e, x, x), f = _mm512_dpbf16_ps(f, x, x);
    g = _mm512_dpbf16_ps(g, x, x), h = _mm512_dpbf16_ps(h, x, x), i = _mm512_dpbf16_ps(i, x, x);
    j = _mm512_dpbf16_ps(j, x, x), k = _mm512_dpbf16_ps(k, x, x), l = _mm512_dpbf16_ps(l, x, x);
  }
  return _mm512_reduce_add_ps(a + b + c + d + e + f + g + h + i + j + k + l);
}

/* AMX: 4 tiles of 16 x 16 sums, each over 32 products. */
enum { TILE_PRODUCTS = 4 * 16 * 16 * 32 };

__attribute__((target("amx-tile,amx-bf16"))) static float tiles(long rounds) {
  _Alignas(64) struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } shape = {.palette = AMX_PALETTE};
  _Alignas(64) static float sums[AMX_ROWS * AMX_ROW_BYTES / sizeof(float)];
  for (int tile = 0; tile < 6; tile++)
    shape.row_bytes[tile] = AMX_ROW_BYTES, shape.rows[tile] = AMX_ROWS;
  _tile_loadconfig(&shape);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, sums, AMX_ROW_BYTES);
  _tile_loadd(5, sums, AMX_ROW_BYTES);
  for (long n = 0; n < rounds; n++) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, sums, AMX_ROW_BYTES);
  _tile_release();
  return sums[0];
}

/* CPUID, leaf 7: AVX512_BF16 is bit 5 of EAX of subleaf 1. */
static bool has_vectors(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}

/* AMX-BF16 is bit 22 of EDX of subleaf 0; Linux lends the tiles to a process that asks for them
   (arch_prctl(2)). */
static bool has_tiles(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) &&
         syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static double fastest(float (*run)(long rounds), long rounds, double products) {
  static volatile float sink;
  double best = 0;
  for (int turn = 0; turn < TURNS; turn++) {
    const gt_ns from = gt_now();
    sink = run(rounds);
    const double rate = 2 * products * (double)rounds / gt_seconds(gt_now() - from) * 1e-9;
    if (rate > best) best = rate;
  }
  (void)sink;
  return best;
}

double peak_bf16_gflops(void) {
  static double best;
  if (best > 0 || gt_isa_used() != GT_ISA_AVX512) return best;
  if (has_tiles())
    best = fastest(tiles, ROUNDS, TILE_PRODUCTS);
  else if (has_vectors())
    best = fastest(vectors, ROUNDS, VECTOR_PRODUCTS);
  return best;
}

#else

double peak_bf16_gflops(void) {
  return 0;
}

#endif
