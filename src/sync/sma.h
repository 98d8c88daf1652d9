/* sma: the state of the strategy and of its fragments; contributions and means (sma_rounds.c). */
#pragma once

#include "fragment.h"
#include "guard.h"
#include "internal.h"

enum { GT_SMA_HERE = 1, GT_SMA_EMPTY = 2 };

/* A part of the model with rounds of its own. */
typedef struct {
  gt_sync *of;
  gt_fragment part;
  gt_allreduce *rounds;
  gt_vec buffers; /* those of the model in the last fragment, which has them all; else empty */
  int64_t steps;  /* since the last contribution */
  int64_t left;   /* 1: the last contribution has been made */
  bool open;      /* its last contribution is in no round yet */
  gt_vec sent;    /* the contribution: parameters, or anchor - parameters */
  /* With a delay: parameters and buffers as they were sent; a mean that is not due yet. */
  gt_vec before, sent_buffers, mean;
  int64_t arrived; /* GT_SMA_HERE: that mean is here; GT_SMA_EMPTY: there is none */
  float share;     /* of the own contribution in it */
  gt_norm_history guard;
  int64_t renewed; /* 1: the next anchor replaces the parameters, also after a delay */
  /* With a quorum, as 0 or 1.  missed: the mean that is not due yet does not contain the region's
     steps.  prompt: it is due at the next step.  late: the last contribution is in flight, and the
     newest mean does not contain it.  behind: the region has missed a mean, and makes steps while
     its contribution is in flight; owes: it has made those of the next contribution, and waits. */
  int64_t missed, prompt, late, behind, owes;
  /* With an outer optimizer, a lossy codec, a guard or a quorum; else NULL and empty. */
  gt_optim *outer;
  gt_vec anchor;
  gt_vec anchor_buffers; /* with a guard: those of the last mean, at first the initial ones */
  gt_vec agreed;         /* options.regroups: parameters, then buffers, after the last round */
  char owner[32];        /* prefix of its state */
} gt_sma_fragment;

typedef struct {
  gt_sync base;
  size_t count;
  gt_sma_fragment *fragments;
  int64_t steps;    /* of the period */
  int64_t anchored; /* 1: the anchors have been set */
  bool draining;
  bool stepping, held; /* between two steps; the workers wait */
} gt_sma;

static inline bool gt_sma_has_quorum(const gt_sma *a) {
  return a->base.env.options.quorum > 0;
}

static inline bool gt_sma_is_anchored(const gt_sma_fragment *f) {
  return f->outer != NULL;
}

/* Without a copy, the contribution is the model itself, which does not change while the region
   waits. */
static inline bool gt_sma_lends_model(const gt_sma *a) {
  const gt_sync_options *options = &a->base.env.options;
  return a->count == 1 && options->delay == 0 && !gt_sync_anchored(options);
}

/* sma_rounds.c */
/* Sets the anchors of the first rounds: the initial model. */
void gt_sma_set_anchors(gt_sma *a);
/* Writes the contribution, from the parameters as they are or, with a delay, as they were sent. */
void gt_sma_fill(const gt_sma *a, gt_sma_fragment *f);
/* Goes back to the anchor where parameters are not finite; the optimizer then starts again. */
void gt_sma_renew(gt_sma *a);
/* Contributes to the fragment's next round, or abstains. */
void gt_sma_contribute(gt_sma *a, gt_sma_fragment *f);
/* Takes complete rounds, as far as they are due. */
void gt_sma_take_means(gt_sma *a, gt_sma_fragment *f);
/* True if the delay between the last contribution and its mean is over. */
bool gt_sma_is_delay_over(const gt_sma *a, const gt_sma_fragment *f);
/* True if the mean is to be applied now. */
bool gt_sma_is_due(const gt_sma *a, const gt_sma_fragment *f);
/* Takes the state that members have in common, which another member has saved; arrived: that
   member's. */
void gt_sma_adopt(gt_sma *a, gt_sma_fragment *f, int64_t arrived);
