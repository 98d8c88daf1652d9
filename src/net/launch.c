/* How this process was started, according to the environment before MPI begins: by which launcher,
   as one of how many, and whether this MPI would join them in one world.  A mismatch would give
   many worlds of one rank, or pages of library messages from every process.  It is detected here
   and reported once. */
#include "internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static bool given(const char *name) {
  const char *value = getenv(name);
  return value && *value;
}

static int number(const char *name) {
  const char *value = getenv(name);
  return value ? (int)strtol(value, NULL, 10) : 0;
}

/* mpirun inside an allocation keeps Slurm's variables and adds its own. */
bool gt_launch_by_srun(void) {
  return given("SLURM_STEP_ID") && !given("OMPI_COMM_WORLD_RANK") && !given("MPI_LOCALNRANKS");
}

bool gt_launch_first(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (given(names[i])) return number(names[i]) == 0;
  return !gt_launch_by_srun() || number("SLURM_PROCID") == 0;
}

int gt_launch_tasks(void) {
  if (given("OMPI_COMM_WORLD_SIZE")) return number("OMPI_COMM_WORLD_SIZE");
  if (gt_launch_by_srun())
    return number(given("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
  return number("PMI_SIZE");
}

char *gt_launch_advice(char *buf, size_t size, int ranks) {
  int components = number("SLURM_HET_SIZE");
  if (gt_launch_by_srun() && components > 1)
    snprintf(buf, size, "srun --het-group=0-%d, with %d tasks in all", components - 1, ranks);
  else if (gt_launch_by_srun())
    snprintf(buf, size, "srun -n %d", ranks);
  else if (given("SLURM_JOB_ID") && !given("OMPI_COMM_WORLD_RANK"))
    snprintf(buf, size, "srun --mpi=pmix -n %d, or mpirun -n %d", ranks, ranks);
  else
    snprintf(buf, size, "mpirun -n %d", ranks);
  return buf;
}

/* ---- mismatches ------------------------------------------------------------------------------ */

static gt_status srun_without(const char *library) {
  const char *type = getenv("SLURM_MPI_TYPE");
  int tasks = gt_launch_tasks();
  return GT_FAIL(
      GT_ERR_JOB,
      "srun --mpi=%s started %d task%s, and %s cannot make one world of them; srun --mpi=pmix can "
      "(srun --mpi=list shows whether the site "
      "has it), and where there is no pmix, mpirun inside the allocation (slurm.mpi: mpirun)",
      type && *type ? type : "none", tasks, tasks == 1 ? "" : "s", library);
}

gt_status gt_launch_fits(const char *library, bool reads_pmi) {
  if (given("OMPI_COMM_WORLD_RANK") || given("PMIX_RANK") || given("PMIX_NAMESPACE")) return GT_OK;
  if (reads_pmi && (given("PMI_RANK") || given("SLURM_MPI_TYPE"))) return GT_OK;
  if (gt_launch_by_srun()) return srun_without(library);
  if (number("PMI_SIZE") > 1)
    return GT_FAIL(GT_ERR_JOB,
                   "another MPI's launcher started %d processes (PMI_SIZE is set, PMIX_RANK is "
                   "not), and %s would make a world of each; its own mpirun "
                   "-n %d, or srun --mpi=pmix, is needed",
                   number("PMI_SIZE"), library, number("PMI_SIZE"));
  return GT_OK;
}

/* Open MPI's mpirun knows nothing of the processes of another MPI: the mpirun that was called is the
   wrong one. */
gt_status gt_launch_apart(const char *library, int tasks, int needed, const char *regions) {
  if (given("OMPI_COMM_WORLD_RANK") && strncmp(library, "Open MPI", strlen("Open MPI")) != 0)
    return GT_FAIL(GT_ERR_JOB,
                   "Open MPI's mpirun started %d processes, but this geotrain was built with %s, "
                   "which makes a world of each; the job needs one of %d (%s): the mpirun of that "
                   "MPI -n %d, by its path, or a geotrain that was built with Open MPI",
                   tasks, library, needed, regions, needed);
  return GT_FAIL(GT_ERR_JOB,
                 "%d tasks were started, but each is a world of 1 rank, and the job needs one of "
                 "%d (%s): srun --mpi=pmix, or mpirun -n %d",
                 tasks, needed, regions, needed);
}

/* MPICH and its derivatives read PMI.  Open MPI does if it was built with a component for it; then
   the component's version is among its settings. */
static bool reads_pmi(bool open_mpi) {
  static const char *const settings[] = {"pmix_s1_major_version", "pmix_s2_major_version",
                                         "pmix_cray_major_version"};
  char version[64];
  for (size_t i = 0; open_mpi && i < sizeof settings / sizeof *settings; i++)
    if (gt_mpi_setting(settings[i], version, sizeof version)) return true;
  return !open_mpi;
}

char *gt_launch_library(char *buf, size_t size) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  snprintf(buf, size, "%.*s", (int)strcspn(text, ",\n"), text);
  return buf;
}

gt_status gt_launch_check(void) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  gt_launch_library(library, sizeof library);
  bool open_mpi = strncmp(library, "Open MPI", strlen("Open MPI")) == 0;
  return gt_launch_fits(library,
                        (given("PMI_RANK") || given("SLURM_MPI_TYPE")) && reads_pmi(open_mpi));
}

/* ---- the launcher's death ---- */

static bool parent_is(const char *name) {
  char path[64], comm[64] = "";
  snprintf(path, sizeof path, "/proc/%ld/comm", (long)getppid());
  FILE *file = fopen(path, "r");
  bool is = file && fgets(comm, sizeof comm, file) && strncmp(comm, name, strlen(name)) == 0;
  if (file) fclose(file);
  return is;
}

/* Slurm's step daemon keeps this process's place in the job, its output and its PMI connection.
   After the daemon's death Slurm does not know the process any more, and its output and exit code
   are lost; it would hold cores, files and peers until a deadline.  So the process is killed with
   the daemon.  Strictly, the signal comes when the parent thread ends; that thread lives as long as
   the step (otherwise tests/slurm would see ranks die at once). */
void gt_launch_follow(void) {
  if (parent_is("slurmstepd") && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    gt_log(GT_LOG_WARN, "PR_SET_PDEATHSIG: %s", strerror(errno));
}
