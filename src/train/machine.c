/* The instruction sets that the ranks compute with: one wish for all, and who has which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"

enum { NAME = 16 };

/* A launcher may keep rank 0's environment from other hosts: rank 0's wish holds where none is set. */
static gt_status take_wish(const gt_run *run) {
  const char *own = getenv("GEOTRAIN_ISA"), *core;
  char wish[NAME] = "";
  MPI_Request request;
  if (run->roles.world_rank == 0 && own) snprintf(wish, sizeof wish, "%s", own);
  GT_MPI(MPI_Ibcast(wish, NAME, MPI_CHAR, 0, run->roles.world, &request));
  gt_wait_all(&request, 1, "the instruction set of rank 0", run->start_limit_s, NULL, NULL);
  if (!wish[0] || (own && *own)) return GT_OK;
  GT_TRY(gt_isa_choose(wish));
  if ((core = gt_isa_blas_cap()))
    gt_log(GT_LOG_WARN,
           "GEOTRAIN_ISA is %s at rank 0 and did not reach this rank's environment: OpenBLAS keeps its core %s here (OPENBLAS_CORETYPE=%s lowers it)",
           wish, gt_kernels_blas_core(), core);
  return GT_OK;
}

/* "avx512", or "avx2+avx512" where a region's ranks differ. */
static void name_sets(char *text, const bool *has) {
  text[0] = 0;
  for (int isa = 0; isa < GT_ISAS; isa++)
    if (has[isa]) snprintf(text + strlen(text), GT_RUN_ISA - strlen(text), "%s%s", text[0] ? "+" : "", gt_isa_name((gt_isa)isa));
}

/* Different sets give products and reductions of different bits: no fault, but good to know. */
static void note_difference(const gt_run *run) {
  char text[1024] = "";
  bool differ = false;
  for (size_t r = 0; r < run->job->nregions; r++) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "", run->job->regions[r].name, run->isas[r]);
    differ = differ || strcmp(run->isas[r], run->isas[0]) != 0 || strchr(run->isas[r], '+');
  }
  if (differ)
    gt_log_job(GT_LOG_INFO, "instruction sets differ (%s): gradients differ in their last bits with the CPU that computes them, means do not", text);
}

gt_status gt_run_open_machine(gt_run *run) {
  const gt_roles *roles = &run->roles;
  GT_TRY(gt_agree(roles->world, take_wish(run), run->start_limit_s));
  int own[2] = {(int)roles->region_id, (int)gt_isa_used()}, *all = GT_NEW_ARRAY(int, 2 * (size_t)roles->world_size);
  MPI_Request request;
  GT_MPI(MPI_Iallgather(own, 2, MPI_INT, all, 2, MPI_INT, roles->world, &request));
  gt_wait_all(&request, 1, "the instruction sets of all ranks", run->start_limit_s, NULL, NULL);
  run->isas = gt_alloc(run->job->nregions, sizeof *run->isas);
  for (size_t r = 0; r < run->job->nregions; r++) {
    bool has[GT_ISAS] = {false};
    for (int i = 0; i < roles->world_size; i++)
      if (all[2 * i] == (int)r) has[all[2 * i + 1]] = true;
    name_sets(run->isas[r], has);
  }
  gt_free(all);
  note_difference(run);
  return GT_OK;
}
