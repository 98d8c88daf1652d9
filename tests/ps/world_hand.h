/* One PS that a test drives by hand: region 0 of one or two, with plain SGD at a rate of 1. */
#pragma once

#include "geotrain/ps_state.h"
#include "tests.h"

#define H_WORKERS ((size_t)5)
#define H_PARAMS  ((size_t)3)
#define H_BUFFERS ((size_t)2)
#define H_MODEL   (H_PARAMS + H_BUFFERS)

typedef struct {
  gt_ps *ps;
  gt_optim *optim;
  size_t nworkers;
  float params[H_PARAMS], grads[H_PARAMS], buffers[H_BUFFERS], snapshot[H_MODEL];
  gt_ps_order orders[H_WORKERS]; /* the last of each worker; kind 0: none, or answered */
  float given[H_WORKERS];        /* its first parameter */
  float lent[H_WORKERS][H_PARAMS], own[H_WORKERS][H_BUFFERS];
  const float *reduced;    /* what host.reduced returns */
  float sent[H_MODEL];     /* the last update or model */
  gt_frame_header joined;  /* the last JOINED that was sent */
  uint64_t sequence;       /* of the other region's last message */
  int asked, taken, notes; /* notes: of non-finite values */
} hand;

/* Zeroes `h` and returns a specification, which a test can change: 16 samples in batches of 4, 1000
   steps, regions of equal weight. */
gt_ps_spec h_spec(hand *h, const char *strategy, size_t nregions, size_t workers);
void h_open(hand *h, const gt_ps_spec *spec);
/* Starts the PS; all workers are ready. */
void h_start(hand *h);
void h_close(hand *h);
/* The worker answers its order to train; its gradient and buffers are all g and b. */
void h_push(hand *h, size_t worker, int64_t samples, float g, float b);
