/* The machine of each rank: one requested instruction set for all, the precision of each rank, the
   resulting kernels, and the ranks that use each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { NAME = 16 };

/* Applies rank 0's request to ranks without one, because launchers do not always pass the
   environment to other hosts. */
static gt_status take_wish(const gt_run *run) {
  const char *own = getenv("GEOTRAIN_ISA"), *core;
  char wish[NAME] = "";
  if (run->roles.world_rank == 0 && own) snprintf(wish, sizeof wish, "%s", own);
  gt_peers_share(run->roles.world, 0, wish, sizeof wish, "the instruction set of rank 0",
                 run->start_limit_s);
  if (!wish[0] || (own && *own)) return GT_OK;
  GT_TRY(gt_isa_choose(wish));
  if ((core = gt_isa_blas_cap()))
    gt_log(GT_LOG_WARN,
           "GEOTRAIN_ISA is %s at rank 0 and did not reach this rank's environment: OpenBLAS keeps "
           "its core %s here (OPENBLAS_CORETYPE=%s lowers it)",
           wish, gt_kernels_blas_core(), core);
  return GT_OK;
}

/* Writes "avx512", or "avx2+avx512" if a region's ranks differ. */
static void name_sets(char *text, const bool *has) {
  text[0] = 0;
  for (int isa = 0; isa < GT_ISAS; isa++)
    if (has[isa])
      snprintf(text + strlen(text), GT_SETUP_ISA - strlen(text), "%s%s", text[0] ? "+" : "",
               gt_isa_name((gt_isa)isa));
}

/* Logs different instruction sets: their products and reductions have different bits, which is not
   an error. */
static void note_difference(const gt_run *run) {
  char text[1024] = "";
  bool differ = false;
  for (size_t r = 0; r < run->job->nregions; r++) {
    const size_t used = strlen(text);
    if (gt_setup_is_late(run, r)) continue;
    snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "",
             run->job->regions[r].name, run->isas[r]);
    differ = differ || strcmp(run->isas[r], run->isas[0]) != 0 || strchr(run->isas[r], '+');
  }
  if (differ)
    gt_log_job(GT_LOG_INFO,
               "instruction sets differ (%s): gradients differ in their last bits with the CPU "
               "that computes them, means do not",
               text);
}

gt_status gt_setup_open_machine(gt_run *run) {
  const gt_roles *roles = &run->roles;
  GT_TRY(gt_agree(roles->world, take_wish(run), run->start_limit_s));
  int own[2] = {(int)roles->region_id, (int)gt_isa_used()},
      *all = GT_NEW_ARRAY(int, 2 * (size_t)roles->world_size);
  gt_peers_gather(roles->world, own, sizeof own, all, "the instruction sets of all ranks",
                  run->start_limit_s);
  run->isas = gt_alloc(run->job->nregions, sizeof *run->isas);
  for (int i = 0; i < roles->world_size; i++)
    if (all[2 * i + 1] < 0 || all[2 * i + 1] >= GT_ISAS)
      gt_panic(GT_ERR_JOB, "rank %d has the instruction set %d; expected 0 to %d", i,
               all[2 * i + 1], GT_ISAS - 1);
  for (size_t r = 0; r < run->job->nregions; r++) {
    bool has[GT_ISAS] = {false};
    for (int i = 0; i < roles->world_size; i++)
      if (all[2 * i] == (int)r) has[all[2 * i + 1]] = true;
    name_sets(run->isas[r], has);
    if (gt_setup_is_late(run, r) && r != roles->region_id)
      snprintf(run->isas[r], sizeof run->isas[r], "not known");
  }
  gt_free(all);
  note_difference(run);
  return GT_OK;
}

/* ---- precision ---- */

static bool computes(const gt_roles *roles) {
  return !roles->is_ps;
}

void gt_setup_open_precision(gt_run *run, const gt_kernels *kernels) {
  const gt_roles *roles = &run->roles;
  const char *why;
  const int own = (int)gt_kernels_precision(kernels, run->job->train.precision, &why);
  const bool speaks = roles->region_rank == 1;
  int first = own;
  gt_peers_share(roles->region, roles->region_size > 1, &first, sizeof first,
                 "the precision of the region's first worker", run->start_limit_s);
  run->precision = (gt_precision)(computes(roles) ? own : first);
  if (!kernels || run->precision == GT_BF16 || run->job->train.precision != GT_BF16) return;
  /* Other ranks log only if the first one has bf16. */
  if (speaks || (computes(roles) && first == (int)GT_BF16))
    gt_log(GT_LOG_WARN, "train.precision is bf16, and %s: computing in f32", why);
}

/* ---- result ---- */

typedef struct {
  int32_t region, computes;
  char kernels[256], precision[8], blas_core[32];
} built;

/* Appends the item after `between`, unless the text already contains it. */
static void join(char *text, size_t size, const char *between, const char *item) {
  const size_t n = strlen(item), used = strlen(text);
  for (const char *at = text, *end; *at; at = *end ? end + strlen(between) : end) {
    end = strstr(at, between);
    if (!end) end = at + strlen(at);
    if ((size_t)(end - at) == n && memcmp(at, item, n) == 0) return;
  }
  snprintf(text + used, size - used, "%s%s", used ? between : "", item);
}

/* Checks what another rank has sent, and ends its texts. */
static void check_build(built *b, size_t rank, size_t nregions) {
  if (b->region < 0 || (size_t)b->region >= nregions)
    gt_panic(GT_ERR_JOB, "rank %zu is of region %d; expected 0 to %zu", rank, (int)b->region,
             nregions - 1);
  b->kernels[sizeof b->kernels - 1] = '\0';
  b->precision[sizeof b->precision - 1] = '\0';
  b->blas_core[sizeof b->blas_core - 1] = '\0';
}

static void join_build(gt_build_texts *b, const built *of) {
  join(b->kernels, sizeof b->kernels, "; ", of->kernels);
  join(b->precision, sizeof b->precision, "+", of->precision);
  join(b->blas_core, sizeof b->blas_core, "+", of->blas_core);
}

/* Warns of mixed precisions: f32 workers are slower and bf16 gradients are coarser, against the
   job's intent. */
static void note_precision(const gt_run *run) {
  char text[1024] = "";
  if (!strchr(run->builds[run->job->nregions].precision, '+')) return;
  for (size_t r = 0; r < run->job->nregions; r++) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "",
             run->job->regions[r].name, run->builds[r].precision);
  }
  gt_log_job(GT_LOG_WARN,
             "workers compute in different precision (%s); all support train.precision f32", text);
}

void gt_setup_gather_builds(gt_run *run) {
  const gt_roles *roles = &run->roles;
  const size_t nregions = run->job->nregions;
  built own = {.region = (int32_t)roles->region_id, .computes = computes(roles)},
        *all = GT_NEW_ARRAY(built, (size_t)roles->world_size);
  snprintf(own.kernels, sizeof own.kernels, "%s", gt_graph_kernels(run->graph));
  snprintf(own.precision, sizeof own.precision, "%s", run->precision == GT_BF16 ? "bf16" : "f32");
  snprintf(own.blas_core, sizeof own.blas_core, "%s", gt_kernels_blas_core());
  gt_peers_gather(roles->world, &own, sizeof own, all, "the kernels of all ranks",
                  run->start_limit_s);
  run->builds = GT_NEW_ARRAY(gt_build_texts, nregions + 1);
  for (int i = 0; i < roles->world_size; i++) {
    check_build(&all[i], (size_t)i, nregions);
    if (!all[i].computes) continue;
    join_build(&run->builds[all[i].region], &all[i]);
    join_build(&run->builds[nregions], &all[i]);
  }
  gt_free(all);
  note_precision(run);
}
