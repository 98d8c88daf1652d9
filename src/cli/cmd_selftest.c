/* geotrain selftest: trains a small model in two regions on this machine, resumes the run
   from its middle, and compares the bits. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "geotrain/data.h"
#include "geotrain/record.h"
#include "options.h"

#define LIMIT_S 120.0
#define LOG     "selftest.log"
enum { WORDS = 64 };

/* Synchronous throughout, so that its bits do not depend on timing. */
static const char job[] =
    "name: selftest\n"
    "model: {name: lenet5}\n"
    "data: {path: data.h5}\n"
    "train: {until: {steps: 160}, batch: 16, choices: rule, optimizer: {name: sgd, lr: 0.05, "
    "momentum: 0.5}}\n"
    "regions: [{name: east, ranks: 2}, {name: west, ranks: 2}]\n"
    "sync: {local: sync, strategy: sma, period: 4}\n"
    "checkpoint: {every: {steps: 80}, keep: 9}\n"
    "wan: {emulate: true, default: {bandwidth: 1 Gbit/s, latency: 1 ms}}\n";

/* Settings of launchers for ranks that share a machine, as in jobs/mpi.env. */
static const char *const settings[][2] = {
    {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"PRTE_MCA_rmaps_default_mapping_policy", "slot:oversubscribe"},
    {"PRTE_MCA_hwloc_default_binding_policy", "none"},
    {"I_MPI_PIN", "0"},
    {"OMP_NUM_THREADS", "1"},
    {"OPENBLAS_NUM_THREADS", "1"}};

static const char *folder; /* of this test, which is the current one */

static gt_status failed(const char *doing, const char *found) {
  return GT_FAIL(GT_ERR_NOGO, "selftest: %s: %s; the output is in %s/" LOG, doing, found, folder);
}

/* Waits for the process; after LIMIT_S kills its group.  A signal to this process ends the
   launcher. */
static gt_status wait_for(pid_t child, const char *doing) {
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  char text[64];
  int status = 0;
  bool told = false;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (gt_stop_requested() && !told) told = kill(-child, SIGTERM) == 0;
    if (gt_now() < until) {
      gt_sleep(GT_SECOND / 50);
      continue;
    }
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
    snprintf(text, sizeof text, "no end within %.0f s", LIMIT_S);
    return failed(doing, text);
  }
  if (gt_stop_requested()) return GT_FAIL(GT_STOPPED, "selftest: stopped by a signal");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return GT_OK;
  snprintf(text, sizeof text, "the launcher ended with %s %d",
           WIFEXITED(status) ? "exit code" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  return failed(doing, text);
}

/* Runs LAUNCHER geotrain train job.yaml WORDS; the words end with NULL. */
static gt_status train(const char *launcher, const char *doing, const char *const *more) {
  char program[4096], *copy = gt_strdup(launcher), *rest = copy, *words[WORDS] = {NULL};
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  size_t n = 0;
  program[length > 0 ? length : 0] = '\0';
  for (char *word; (word = strsep(&rest, " ")) && n < WORDS / 2;)
    if (*word) words[n++] = word;
  words[n++] = program;
  words[n++] = (char[]){"train"};
  words[n++] = (char[]){"job.yaml"};
  while (*more) words[n++] = (char *)(uintptr_t)*more++;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t group;
  pid_t child;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, LOG, O_WRONLY | O_CREAT | O_APPEND,
                                   0666);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_init(&group);
  posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(&child, words[0], &actions, &group, words, environ);
  posix_spawnattr_destroy(&group);
  posix_spawn_file_actions_destroy(&actions);
  const gt_status status =
      error ? GT_FAIL(GT_ERR_JOB,
                      "selftest: %s cannot be started (%s); expected a launcher of MPI, as in "
                      "--launcher \"srun -n 4\"",
                      words[0], strerror(error))
            : wait_for(child, doing);
  gt_free(copy);
  return status;
}

/* Reads the result of the run, which has ended. */
static gt_status read_result(const char *doing, char hash[GT_SHA256_HEX], double *accuracy) {
  gt_follow *follow = gt_follow_create("run");
  gt_follow_poll(follow);
  const gt_summary *summary = gt_follow_summary(follow);
  if (summary) {
    snprintf(hash, GT_SHA256_HEX, "%.64s", summary->params_sha256);
    *accuracy = summary->test_accuracy;
  }
  gt_follow_close(follow);
  return summary ? GT_OK : failed(doing, "the run has no summary");
}

static gt_status run_all(const char *launcher) {
  static const char *const run[] = {"--run-dir", "run", NULL};
  static const char *const again[] = {"--resume=run", "--resume-round", "1", NULL};
  char hashes[2][GT_SHA256_HEX];
  double accuracy;
  const gt_ns begun = gt_now();
  GT_TRY(train(launcher, "training", run));
  GT_TRY(read_result("training", hashes[0], &accuracy));
  printf("training: 2 regions, 4 ranks, 160 steps: accuracy %.2f (guessing: 0.10)\n", accuracy);
  if (!(accuracy >= 0.5)) return failed("training", "the model has learnt nothing");
  GT_TRY(train(launcher, "resume", again));
  GT_TRY(read_result("resume", hashes[1], &accuracy));
  printf("resumed from step 80: parameters %.16s, before %.16s\n", hashes[1], hashes[0]);
  if (strcmp(hashes[0], hashes[1]) != 0)
    return failed("resume", "the parameters differ from those of the first run");
  printf("selftest: passed in %.1f s\n", gt_seconds(gt_now() - begun));
  return GT_OK;
}

static gt_status write_inputs(void) {
  gt_synth_spec synth = gt_synth_default();
  FILE *file = fopen("job.yaml", "we");
  synth.ntrain = 1000;
  synth.ntest = 200;
  const bool written = file && fputs(job, file) >= 0;
  if ((file && fclose(file) != 0) || !written)
    return GT_FAIL(GT_ERR_JOB, "selftest: %s/job.yaml cannot be written (%s)", folder,
                   strerror(errno));
  return gt_data_synth("data.h5", &synth);
}

/* Removes the folder, which only this test has written. */
static void remove_all(void) {
  char *words[] = {(char[]){"rm"}, (char[]){"-rf"}, (char[]){"--"}, (char *)(uintptr_t)folder,
                   NULL};
  pid_t child;
  if (chdir("/") == 0 && posix_spawnp(&child, words[0], NULL, NULL, words, environ) == 0)
    waitpid(child, NULL, 0);
}

const struct option gt_options_selftest[] = {
    {"launcher", required_argument, NULL, 'l'}, {"keep", no_argument, NULL, 'k'}, {0}};

gt_status gt_cmd_selftest(int argc, char **argv) {
  const char *launcher = GT_LAUNCHER " -n 4", *above = getenv("TMPDIR");
  char path[4096];
  bool keep = false;
  opterr = 0;
  for (int o; (o = getopt_long(argc, argv, "", gt_options_selftest, NULL)) != -1;) {
    if (o == '?') return gt_option_refused(argc, argv, "selftest");
    if (o == 'l') launcher = optarg;
    if (o == 'k') keep = true;
  }
  if (optind < argc)
    return GT_FAIL(GT_ERR_JOB, "selftest: `%s` is given; expected no files", argv[optind]);
  snprintf(path, sizeof path, "%s/geotrain-selftest-XXXXXX", above && *above ? above : "/tmp");
  gt_stop_install();
  if (!mkdtemp(path) || chdir(path) != 0 || !getcwd(path, sizeof path))
    return GT_FAIL(GT_ERR_JOB, "selftest: %s cannot be made (%s); TMPDIR names another folder",
                   path, strerror(errno));
  folder = path;
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
    setenv(settings[i][0], settings[i][1], 0);
  gt_status status = write_inputs();
  if (status == GT_OK) status = run_all(launcher);
  if (keep)
    printf("selftest: files are in %s\n", path);
  else if (status != GT_ERR_NOGO)
    remove_all();
  gt_end_by_signal();
  return status;
}
