/* Launchers recognised by the environment: those that join their processes are accepted; the others
   are rejected with a sentence that says how to fix it. */
#include "tests.h"
#include "internal.h"

#define LIBRARY "Open MPI v4.1.4"

/* Removes the variables of the test's own launcher, then sets NAME=VALUE arguments up to NULL. */
static void environment(const char *first, ...) {
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "PMIX_RANK",
                                      "PMIX_NAMESPACE",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "MPI_LOCALNRANKS",
                                      "SLURM_JOB_ID",
                                      "SLURM_STEP_ID",
                                      "SLURM_PROCID",
                                      "SLURM_NTASKS",
                                      "SLURM_HET_SIZE",
                                      "SLURM_MPI_TYPE",
                                      "SLURM_STEP_NUM_TASKS"};
  for (size_t i = 0; i < COUNT(names); i++) unsetenv(names[i]);
  va_list words;
  va_start(words, first);
  for (const char *word = first; word; word = va_arg(words, const char *)) {
    char name[64];
    size_t length = strcspn(word, "=");
    memcpy(name, word, length);
    name[length] = '\0';
    setenv(name, word + length + 1, 1);
  }
  va_end(words);
}

static void fits(bool reads_pmi) {
  must(gt_launch_fits(LIBRARY, reads_pmi));
}

static void refused(const char *words) {
  must_fail(gt_launch_fits(LIBRARY, false), GT_ERR_JOB, words);
}

static void what_fits(void) {
  environment(NULL);
  fits(false);
  environment("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=1", NULL);
  fits(false);
  /* mpirun inside an allocation, on another node: its daemon is an srun step. */
  environment("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "SLURM_STEP_ID=0",
              "SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=1", NULL);
  fits(false);
  environment("PMIX_RANK=1", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=1", NULL);
  fits(false);
  /* A batch script's own process is not in a step. */
  environment("SLURM_JOB_ID=7", "SLURM_NTASKS=4", "SLURM_PROCID=0", NULL);
  fits(false);
  environment("PMI_RANK=1", "PMI_SIZE=4", "SLURM_STEP_ID=0", "SLURM_MPI_TYPE=pmi2", NULL);
  fits(true);
  environment("PMI_RANK=1", "PMI_SIZE=4", NULL);
  fits(true);
}

static void what_does_not(void) {
  environment("SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=1", NULL);
  refused("srun --mpi=none started 4 tasks, which " LIBRARY
          " cannot join into one world; use srun --mpi=pmix");
  environment("SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0", NULL);
  refused("srun --mpi=none started 1 task, which");
  environment("SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_MPI_TYPE=pmi2", "PMI_RANK=1",
              "PMI_SIZE=4", NULL);
  refused("srun --mpi=pmi2 started 4 tasks");
  environment("PMI_RANK=1", "PMI_SIZE=4", NULL);
  refused("another MPI's launcher started 4 processes");
  /* MPICH's mpirun inside an allocation. */
  environment("PMI_RANK=1", "PMI_SIZE=4", "MPI_LOCALNRANKS=2", "SLURM_STEP_ID=0",
              "SLURM_STEP_NUM_TASKS=2", NULL);
  refused("another MPI's launcher started 4 processes");
}

/* One process prints an error; in a valid start that is the first rank. */
static void one_speaks(void) {
  environment(NULL);
  assert_true(gt_launch_first());
  environment("SLURM_STEP_ID=0", "SLURM_PROCID=1", NULL);
  assert_false(gt_launch_first());
  environment("SLURM_STEP_ID=0", "SLURM_PROCID=0", NULL);
  assert_true(gt_launch_first());
  environment("PMI_RANK=2", "SLURM_STEP_ID=0", "SLURM_PROCID=0", NULL);
  assert_false(gt_launch_first());
  environment("OMPI_COMM_WORLD_RANK=3", "SLURM_PROCID=0", NULL);
  assert_false(gt_launch_first());
}

static void check_advice(const char *expected) {
  char text[96];
  assert_string_equal(gt_launch_advice(text, sizeof text, 5), expected);
}

static void advice(void) {
  environment("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=3", "SLURM_JOB_ID=7",
              "SLURM_STEP_ID=0", NULL);
  check_advice("mpirun -n 5");
  assert_int_equal(gt_launch_tasks(), 3);
  environment("PMIX_RANK=0", "SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4",
              "SLURM_NTASKS=8", NULL);
  check_advice("srun -n 5");
  assert_int_equal(gt_launch_tasks(), 4);
  environment("PMIX_RANK=0", "SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_HET_SIZE=3", NULL);
  check_advice("srun --het-group=0-2, with 5 tasks in all");
  environment("SLURM_JOB_ID=7", "SLURM_NTASKS=4", NULL);
  check_advice("srun --mpi=pmix -n 5, or mpirun -n 5");
  assert_int_equal(gt_launch_tasks(), 0);
  environment(NULL);
  check_advice("mpirun -n 5");
}

/* Worlds of one rank each: the advice is never the command that was typed. */
static void apart(void) {
  environment("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=0", NULL);
  must_say(gt_launch_apart("MPICH Version:\t4.0.2", 4, 4, "a 2, b 2"), GT_ERR_JOB,
           "Open MPI's mpirun started 4 processes, but this geotrain was built with "
           "MPICH Version: 4.0.2, which cannot join them into one world; the job needs "
           "one of 4 (a 2, b 2): use the mpirun of that MPI -n 4, by its path, or a "
           "geotrain built with Open MPI");
  environment("SLURM_STEP_ID=0", "SLURM_PROCID=0", NULL);
  must_say(gt_launch_apart("MPICH Version:\t4.0.2", 4, 4, "a 2, b 2"), GT_ERR_JOB,
           "4 tasks were started, but each is a world of 1 rank; the job needs one of 4 "
           "ranks (a 2, b 2): use srun --mpi=pmix, or mpirun -n 4");
}

TESTS(what_fits, what_does_not, one_speaks, advice, apart)
