/* The peak of float32 multiply-adds of one core: independent chains in registers, as many as hide
   the latency. */
#ifndef GEOTRAIN_BENCH_PEAK_H
#define GEOTRAIN_BENCH_PEAK_H

/* In GFLOP/s (a multiply-add is two); measured at the first call, a few tenths of a second. */
double peak_gflops(void);

#endif
