/* What the fast kernels share: vector types, and functions compiled for several instruction sets of which the loader picks one. */
#ifndef GEOTRAIN_TENSOR_SIMD_H
#define GEOTRAIN_TENSOR_SIMD_H

#include <stdint.h>

/* gcc alone: clang 14 gives the chosen function another name than its callers use. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__has_attribute) && !defined(__clang__)
#if __has_attribute(target_clones)
#define GT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif
#ifndef GT_CLONES
#define GT_CLONES
#endif

#define GT_INLINE static inline __attribute__((always_inline))

/* Unaligned vectors: a compiler without such registers splits them. */
typedef float gt_v8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float gt_v16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t gt_m8 __attribute__((vector_size(32), aligned(4), may_alias));

#endif
