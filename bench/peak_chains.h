/* What bench/peak_chains.c fills for each instruction set. */
#pragma once

enum { PEAK_CHAINS = 12 };
typedef struct {
  int lanes; /* floats in a register */
  float (*run)(long rounds);
} peak_chains;
