/* base: the phases of a pipeline worker's time, in one list: a run measures them, the schedule
   model predicts them, and records show them (docs/time-split.md).  Layer 0.  An entry has a
   constant, its key in records, and the heading of its column. */
#pragma once

/* The first four are the kinds of passes, in the order of gt_pass_kind. */
#define GT_PHASE_LIST(X)                                                                           \
  X(GT_PHASE_FORWARD, "forward_s", "F")                                                            \
  X(GT_PHASE_BACKWARD_INPUT, "backward_input_s", "B")                                              \
  X(GT_PHASE_BACKWARD_WEIGHT, "backward_weight_s", "W")                                            \
  X(GT_PHASE_BACKWARD, "backward_s", "BW")                                                         \
  X(GT_PHASE_BUBBLE, "bubble_s", "bubble")                                                         \
  X(GT_PHASE_TRANSFER, "transfer_s", "transfer")                                                   \
  X(GT_PHASE_STEP_END, "step_end_s", "step end")                                                   \
  X(GT_PHASE_UPDATE, "update_s", "update")                                                         \
  X(GT_PHASE_EVALUATION, "evaluation_s", "evaluation")

#define GT_PHASE_CONSTANT(constant, key, title) constant,
typedef enum { GT_PHASE_LIST(GT_PHASE_CONSTANT) GT_NPHASES } gt_phase;
#undef GT_PHASE_CONSTANT
