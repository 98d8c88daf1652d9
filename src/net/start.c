/* The start and end of a process: launcher checks, initialisation, finalisation, and the watchdog
   for blocking calls. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* ---- the launcher ---------------------------------------------------------------------------- */

/* How this process was started, according to the environment before MPI_Init: the launcher, the
   number of processes, and whether this MPI would join them into one world.  A mismatch would give
   many worlds of one rank, or pages of library messages from every process; it is detected here and
   reported once. */

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
      "srun --mpi=%s started %d task%s, which %s cannot join into one world; use srun --mpi=pmix "
      "(srun --mpi=list shows whether the site has it) or, without pmix, mpirun inside the "
      "allocation (slurm.mpi: mpirun)",
      type && *type ? type : "none", tasks, tasks == 1 ? "" : "s", library);
}

gt_status gt_launch_fits(const char *library, bool reads_pmi) {
  if (given("OMPI_COMM_WORLD_RANK") || given("PMIX_RANK") || given("PMIX_NAMESPACE")) return GT_OK;
  if (reads_pmi && (given("PMI_RANK") || given("SLURM_MPI_TYPE"))) return GT_OK;
  if (gt_launch_by_srun()) return srun_without(library);
  if (number("PMI_SIZE") > 1)
    return GT_FAIL(
        GT_ERR_JOB,
        "another MPI's launcher started %d processes (PMI_SIZE is set, PMIX_RANK is not), which %s "
        "cannot join into one world; use its own mpirun -n %d, or srun --mpi=pmix",
        number("PMI_SIZE"), library, number("PMI_SIZE"));
  return GT_OK;
}

/* Open MPI's mpirun cannot join the processes of another MPI: the wrong mpirun was called. */
gt_status gt_launch_apart(const char *library, int tasks, int needed, const char *regions) {
  if (given("OMPI_COMM_WORLD_RANK") && strncmp(library, "Open MPI", strlen("Open MPI")) != 0)
    return GT_FAIL(GT_ERR_JOB,
                   "Open MPI's mpirun started %d processes, but this geotrain was built with %s, "
                   "which cannot join them into one world; the job needs one of %d (%s): use the "
                   "mpirun of that MPI -n %d, by its path, or a geotrain built with Open MPI",
                   tasks, library, needed, regions, needed);
  return GT_FAIL(GT_ERR_JOB,
                 "%d tasks were started, but each is a world of 1 rank; the job needs one of %d "
                 "ranks (%s): use srun --mpi=pmix, or mpirun -n %d",
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

/* Has the kernel kill this process when Slurm's step daemon dies.  The daemon keeps the process's
   place in the job, its output and its PMI connection.  Without the daemon Slurm no longer knows
   the process, its output and exit code are lost, and it would hold cores, files and peers until a
   deadline.  Strictly, the signal comes when the parent thread ends; that thread lives as long as
   the step (otherwise tests/slurm would see ranks die at once). */
static void follow_launcher(void) {
  if (parent_is("slurmstepd") && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    gt_log(GT_LOG_WARN, "PR_SET_PDEATHSIG: %s", strerror(errno));
}

/* ---- watchdog ---- */

#define TICK_S 1.0

static struct {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  bool running, done;
  char name[96];
  double limit_s;
  gt_status code;
} watch;

/* Waits until the watched call ends, at most one tick. */
static void wait_tick(double tick_s) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  gt_ns ns = until.tv_nsec + gt_from_seconds(tick_s);
  until.tv_sec += (time_t)(ns / GT_SECOND);
  until.tv_nsec = (long)(ns % GT_SECOND);
  pthread_cond_timedwait(&watch.wake, &watch.lock, &until);
}

/* Counts ticks instead of comparing times, because time in which the process was stopped must not
   count. */
static void *watch_main(void *unused) {
  (void)unused;
  pthread_mutex_lock(&watch.lock);
  double left_s = watch.limit_s;
  while (!watch.done && left_s > 0.0) {
    double tick_s = left_s < TICK_S ? left_s : TICK_S;
    gt_ns before = gt_now();
    wait_tick(tick_s);
    double passed_s = gt_seconds(gt_now() - before);
    left_s -= passed_s < tick_s ? passed_s : tick_s;
  }
  if (!watch.done) {
    gt_log(GT_LOG_ERROR, "waited %g s in %s", watch.limit_s, watch.name);
    _exit((int)watch.code);
  }
  pthread_mutex_unlock(&watch.lock);
  return NULL;
}

void gt_watch_begin(const char *name, double limit_s, gt_status code) {
  gt_watch_end();
  snprintf(watch.name, sizeof watch.name, "%s", name);
  watch.limit_s = limit_s;
  watch.code = code;
  watch.done = false;
  pthread_mutex_init(&watch.lock, NULL);
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&watch.wake, &attr);
  pthread_condattr_destroy(&attr);
  /* Signals are for the main thread. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&watch.thread, NULL, watch_main, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error)
    gt_panic(GT_ERR_FAULT, "the watchdog thread for %s could not be started: %s", name,
             strerror(error));
  watch.running = true;
}

void gt_watch_end(void) {
  if (!watch.running) return;
  pthread_mutex_lock(&watch.lock);
  watch.done = true;
  pthread_cond_signal(&watch.wake);
  pthread_mutex_unlock(&watch.lock);
  pthread_join(watch.thread, NULL);
  pthread_cond_destroy(&watch.wake);
  pthread_mutex_destroy(&watch.lock);
  watch.running = false;
}

/* ---- start and end ---- */

static void end_for_bug(const char *text) {
  gt_panic(GT_ERR_FAULT, "broken invariant: %s", text);
}

/* Over TCP, Open MPI asks the receiver before it sends a message larger than 64 KiB.  Between
   regions that costs a round trip per frame; frames sent together also end together, so the link is
   then idle for that time.  With the higher limit a gateway's frame (1 MiB and its header) is sent
   at once.  Values set by the user are kept. */
static void prefer_eager_frames(void) {
  (void)setenv("OMPI_MCA_btl_tcp_eager_limit", "1114112", 0);
  /* number of such buffers allocated at a time */
  (void)setenv("OMPI_MCA_btl_tcp_free_list_inc", "4", 0);
}

gt_peers *gt_net_start(double limit_s) {
  gt_on_bug(end_for_bug);
  follow_launcher();
  /* Writing to a connection closed by a lost peer must return an error with a message, not end the
     process. */
  (void)signal(SIGPIPE, SIG_IGN);
  prefer_eager_frames();
  gt_watch_begin("MPI_Init", limit_s, GT_ERR_LOST);
  int provided = MPI_THREAD_SINGLE;
  int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  gt_watch_end();
  gt_mpi_check(error, "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED)
    gt_panic(GT_ERR_JOB, "this MPI gives thread level %d; expected MPI_THREAD_FUNNELED (%d)",
             provided, MPI_THREAD_FUNNELED);
  GT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  GT_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  return gt_peers_of_mpi(MPI_COMM_WORLD, false);
}

/* MPI_Finalize waits for all ranks and can spin, so they first meet in a sleeping barrier. */
void gt_net_finalize(gt_peers *world, double limit_s) {
  gt_peers_meet(world, &(gt_peers_wait){.what = "the end of the other ranks", .limit_s = limit_s});
  gt_peers_close(world);
  gt_watch_begin("MPI_Finalize", limit_s, GT_ERR_LOST);
  GT_MPI(MPI_Finalize());
  gt_watch_end();
}
