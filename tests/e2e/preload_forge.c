/* Preloaded into a rank (tests/e2e/forged.sh), changes one frame that it sends to another region.
   FORGE, numbers: RANK KIND NTH ACTION [A B].  The rank's NTH frame of this kind (0: of any; NTH
   from 1) is dropped (action "drop"), sent twice ("repeat"), sent with A bytes more or less
   ("length"), or sent with byte A set to B ("byte").  Says so on standard error. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_TAG 7
#define KIND      4 /* offset in a header */

static struct {
  int rank, kind, nth, a, b;
  char action[16];
} forge = {.rank = -1};

__attribute__((constructor)) static void read_forge(void) {
  const char *text = getenv("FORGE"), *rank = getenv("OMPI_COMM_WORLD_RANK");
  if (!rank) rank = getenv("PMI_RANK"); /* MPICH */
  if (!text || !rank ||
      sscanf(text, "%d %d %d %15s %d %d", &forge.rank, &forge.kind, &forge.nth, forge.action,
             &forge.a, &forge.b) < 4 ||
      atoi(rank) != forge.rank)
    forge.rank = -1;
}

static int is(const char *action) {
  return strcmp(forge.action, action) == 0;
}

int MPI_Isend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
  const uint8_t *frame = buf;
  if (forge.rank < 0 || tag != FRAME_TAG || (forge.kind && frame[KIND] != forge.kind) ||
      --forge.nth != 0)
    return PMPI_Isend(buf, count, type, to, tag, comm, request);
  fprintf(stderr, "forge: %s %d %d: a frame of kind %d, %d bytes, to PS %d\n", forge.action,
          forge.a, forge.b, frame[KIND], count, to);
  forge.rank = -1;
  if (is("drop")) {
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
  if (is("repeat")) {
    MPI_Request first;
    PMPI_Isend(buf, count, type, to, tag, comm, &first);
    MPI_Request_free(&first);
    return PMPI_Isend(buf, count, type, to, tag, comm, request);
  }
  const int longer = is("length") ? forge.a : 0;
  uint8_t *copy = calloc((size_t)(count + (longer > 0 ? longer : 0)), 1); /* kept until the end */
  memcpy(copy, buf, (size_t)count);
  if (is("byte") && forge.a < count) copy[forge.a] = (uint8_t)forge.b;
  return PMPI_Isend(copy, count + longer > 0 ? count + longer : 0, type, to, tag, comm, request);
}
