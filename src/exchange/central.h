/* What the modules of central share.  Private to exchange. */
#ifndef GEOTRAIN_EXCHANGE_CENTRAL_H
#define GEOTRAIN_EXCHANGE_CENTRAL_H

#include "rounds.h"

#define GT_CENTRAL_MOST UINT16_MAX /* messages of a contribution: a rank in a route has 16 bits */

typedef struct {
  int64_t about[2]; /* rank of the worker; samples behind x */
  gt_vec x;
} gt_own_part;

/* Saved as they are. */
typedef struct {
  int64_t given;       /* parts of the own contribution; 0: it is a and b */
  int64_t posts, sent; /* its messages; 0: none has been sent */
  /* Elsewhere: messages of the next answer that are here; of all of it. */
  int64_t got, copies;
} gt_central_counts;
#define GT_CENTRAL_COUNTS (sizeof(gt_central_counts) / sizeof(int64_t))

typedef struct {
  gt_rounds rounds; /* in the central region: parts, each with its samples as weight */
  /* In the central region, nregions: samples behind the parts of the region's next contribution
     that are here, and behind all of it; 0: none is here.  partial: some are, but not all. */
  int64_t *here, *whole;
  bool *partial;
  gt_own_part *parts;      /* of the own contribution */
  size_t nparts, capacity; /* nparts: that have memory */
  gt_central_counts n;
  double weight; /* of the regions that take part in the round */
} gt_central;

static inline gt_exchange *gt_central_x(const gt_central *t) {
  return t->rounds.base.base.x;
}

static inline const size_t *gt_central_root(const gt_exchange *x) {
  return &x->spec.next[x->spec.self];
}

static inline bool gt_central_is_root(const gt_exchange *x) {
  return *gt_central_root(x) == x->spec.self;
}

/* A region without workers has a model, too. */
static inline size_t gt_central_workers(const gt_exchange *x, size_t region) {
  return x->spec.workers[region] > 0 ? x->spec.workers[region] : 1;
}

/* All of an answer is here and has not been applied. */
static inline bool gt_central_has_answer(const gt_central *t) {
  return t->n.got > 0 && t->n.got == t->n.copies;
}

/* central_own.c */
/* The next part of the own contribution, to be filled. */
gt_own_part *gt_central_add_part(gt_central *t);
/* Samples behind the own contribution. */
int64_t gt_central_samples(const gt_central *t);
/* Sends what there is room for; then the contribution has been posted. */
void gt_central_post_own(gt_central *t);

/* central_check.c, central_state.c: of gt_allreduce_ops */
gt_status gt_central_check(const gt_allreduce *r, size_t from, const gt_frame_header *head);
void gt_central_save(gt_allreduce *r, const char *prefix, gt_state *state);
gt_status gt_central_load(gt_allreduce *r, const char *prefix, const gt_state *state);

#endif
