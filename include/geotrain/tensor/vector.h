/* Vector types for code that is compiled once per instruction set (src/<part>/isa).  CMake defines
   the set: GT_ISA is its name, GT_LANES the number of floats in a register.  Everything in such a
   file is static except one table of functions, named with GT_FOR_ISA; otherwise the linker could
   use code of a higher set on a CPU without it.  For the same reason these files use only static
   functions of headers. */
#pragma once

#include <stdint.h>

#if !defined(GT_ISA) || !defined(GT_LANES)
#error "vector.h is for src/<part>/isa, where CMake defines GT_ISA and GT_LANES"
#endif

/* name_avx512, name_avx2, name_plain */
#define GT_FOR_ISA(name)            GT_FOR_ISA_JOIN(name, GT_ISA)
#define GT_FOR_ISA_JOIN(name, isa)  GT_FOR_ISA_PASTE(name, isa)
#define GT_FOR_ISA_PASTE(name, isa) name##_##isa

#define GT_INLINE static inline __attribute__((always_inline))

/* One register of floats, of signed and of unsigned 32-bit words; and as many 16-bit words.
   Unaligned. */
typedef float gt_vf __attribute__((vector_size(4 * GT_LANES), aligned(4), may_alias));
typedef int32_t gt_vi __attribute__((vector_size(4 * GT_LANES), aligned(4), may_alias));
typedef uint32_t gt_vu __attribute__((vector_size(4 * GT_LANES), aligned(4), may_alias));
typedef uint16_t gt_vh __attribute__((vector_size(2 * GT_LANES), aligned(2), may_alias));

/* Layouts are multiples of 8 or 16 floats with every set; GT_IN8 and GT_IN16 registers hold them.
   If a register is longer than 8 floats, gt_vf8 and gt_vi8 are half a register. */
#if GT_LANES > 8
enum { GT_LANES8 = 8 };
typedef float gt_vf8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t gt_vi8 __attribute__((vector_size(32), aligned(4), may_alias));
#else
enum { GT_LANES8 = GT_LANES };
typedef gt_vf gt_vf8;
typedef gt_vi gt_vi8;
#endif
enum { GT_IN8 = 8 / GT_LANES8, GT_IN16 = 16 / GT_LANES };

/* GT_REGISTERS: vector registers available for sums and weights; excluded are those for a broadcast
   input and, in sets without fused multiply-add, for products.  GT_OUTPUTS: outputs that fit when
   each has `wide` registers of sums and `wide` more hold weights; at most 10. */
#if defined(__aarch64__) || defined(__AVX512F__)
enum { GT_REGISTERS = 30 };
#elif defined(__FMA__)
enum { GT_REGISTERS = 14 };
#else
enum { GT_REGISTERS = 12 };
#endif
#define GT_OUTPUTS(wide) (GT_REGISTERS / (wide) > 10 ? 10 : GT_REGISTERS / (wide)-1)
