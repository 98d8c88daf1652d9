/* The peaks of multiply-adds of one core: independent chains in registers, as many as hide the
   latency. */
#pragma once

/* In GFLOP/s (a multiply-add is two); measured at the first call, a few tenths of a second. */
double peak_gflops(void); /* float32, at the instruction set in use */
/* Products of bf16 that are added up in float32; 0 if the CPU or the set in use has no instruction
   for them. */
double peak_bf16_gflops(void);
