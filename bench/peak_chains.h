/* What bench/peak_chains.c fills for each instruction set. */
#ifndef GEOTRAIN_BENCH_PEAK_CHAINS_H
#define GEOTRAIN_BENCH_PEAK_CHAINS_H

enum { PEAK_CHAINS = 12 };
typedef struct {
  int lanes; /* floats in a register */
  float (*run)(long rounds);
} peak_chains;

#endif
