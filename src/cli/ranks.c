/* What a command under mpirun knows of its rank before MPI starts. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool gt_cli_first_rank(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *rank = getenv(names[i]);
    if (rank) return strcmp(rank, "0") == 0;
  }
  return true;
}
