/* Loops compiled for several instruction sets, of which the loader picks one. */
#ifndef GEOTRAIN_NN_SIMD_H
#define GEOTRAIN_NN_SIMD_H

/* gcc alone: clang 14 gives the chosen function another name than its callers use. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__has_attribute) && !defined(__clang__)
#if __has_attribute(target_clones)
#define GT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif
#ifndef GT_CLONES
#define GT_CLONES
#endif

#endif
