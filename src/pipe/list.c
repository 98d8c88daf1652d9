/* The list of kinds, and the choice of a schedule. */
#include "internal.h"

#define DECLARE(constant, name, table) extern const gt_pipe_ops table;
#define TABLE(constant, name, table)   [constant] = &table,
GT_PIPES(DECLARE)
static const gt_pipe_ops *const tables[] = {GT_PIPES(TABLE)};

#define KINDS (sizeof tables / sizeof *tables)

size_t gt_pipe_chunks(gt_pipe_kind kind) {
  return tables[kind]->chunks;
}

static gt_pipe_schedule *ordered(const gt_pipe_ops *ops, const gt_pipe_problem *problem) {
  gt_pipe_schedule *s =
      gt_pipe_schedule_create(problem->stages, problem->chunks, problem->micro_batches);
  ops->order(s);
  return s;
}

static bool is_for(const gt_pipe_ops *ops, const gt_pipe_problem *problem) {
  return ops->chunks == 0 || ops->chunks == problem->chunks;
}

/* Returns the best schedule of the kinds without search that fit, and of the kinds that search. */
static gt_pipe_schedule *found(const gt_pipe_ops *ops, const gt_pipe_problem *problem,
                               const gt_pipe_search *search) {
  gt_pipe_best best = {.problem = problem};
  if (search) best.search = *search;
  for (size_t k = 0; k < KINDS; k++) {
    if (!tables[k]->order || !is_for(tables[k], problem)) continue;
    gt_pipe_schedule *s = ordered(tables[k], problem);
    if (gt_pipe_check(s, problem) == GT_OK)
      gt_pipe_offer(&best, s);
    else
      gt_pipe_schedule_close(s);
  }
  ops->search(&best);
  gt_free(best.offered);
  return best.schedule;
}

gt_status gt_pipe_make(gt_pipe_schedule **out, gt_pipe_kind kind, const gt_pipe_problem *problem,
                       const gt_pipe_search *search) {
  const gt_pipe_ops *ops = tables[kind];
  *out = NULL;
  GT_TRY(gt_pipe_check_problem(problem));
  if (!is_for(ops, problem))
    return GT_FAIL(GT_ERR_JOB, "schedule %s is for %zu spans per stage; this pipeline has %zu",
                   ops->name, ops->chunks, problem->chunks);
  gt_pipe_schedule *s = ops->order ? ordered(ops, problem) : found(ops, problem, search);
  if (!s) gt_bug("schedule %s found nothing", ops->name);
  gt_status status = gt_pipe_check(s, problem);
  if (status == GT_OK)
    *out = s;
  else
    gt_pipe_schedule_close(s);
  return status;
}
