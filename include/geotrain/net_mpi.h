/* net_mpi: MPI calls outside net, of code whose messages travel by MPI alone.  Layer 2. */
#pragma once

#include <mpi.h>

#include "geotrain/net_peers.h"

/* Panics with MPI's text if an MPI_ call failed. */
void gt_mpi_check(int error, const char *call);
#define GT_MPI(call) gt_mpi_check((call), #call)

/* Waits until all n requests are complete, alternating tests and sleeps; calls `progress` (NULL is
   allowed) between tests.  After the deadline: panic with 5, "waited N s for WHAT". */
void gt_wait_all(MPI_Request *requests, int n, const char *what, double limit_s,
                 void (*progress)(void *), void *context);

/* Returns the ranks of a communicator as a group; owned: gt_peers_close frees the communicator.
   Local. */
gt_peers *gt_peers_of_mpi(MPI_Comm comm, bool owned);
/* Returns the communicator of a group from gt_peers_of_mpi.  Local. */
MPI_Comm gt_peers_mpi(const gt_peers *peers);
