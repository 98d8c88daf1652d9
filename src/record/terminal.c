/* Decides if a user sees a redrawn line.  Open MPI gives its ranks pseudo-terminals even if its own
   output is a file; under a launcher, the launcher's stream decides. */
#include "internal.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool gt_terminal_is_launcher(const char *comm) {
  /* The kernel keeps 15 characters of a process name. */
  static const char *const launchers[] = {"mpirun",        "orterun",         "mpiexec",
                                          "mpiexec.hydra", "prterun",         "orted",
                                          "prted",         "hydra_pmi_proxy", "slurmstepd"};
  for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++)
    if (strncmp(comm, launchers[i], 15) == 0 && strlen(comm) == strnlen(launchers[i], 15))
      return true;
  return false;
}

static bool is_terminal_path(const char *target) {
  return strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0 ||
         strcmp(target, "/dev/console") == 0;
}

bool gt_terminal_decide(bool is_tty, const char *parent_comm, const char *parent_target) {
  return gt_terminal_is_launcher(parent_comm) ? is_terminal_path(parent_target) : is_tty;
}

/* Finds the stream of the parent that corresponds to ours. */
static void parent_stream(FILE *to, char path[64]) {
  snprintf(path, 64, "/proc/%ld/fd/%d", (long)getppid(), fileno(to) == STDERR_FILENO ? 2 : 1);
}

static void parent_name(char comm[64]) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/comm", (long)getppid());
  comm[0] = '\0';
  FILE *file = fopen(path, "re");
  if (!file) return;
  if (!fgets(comm, 64, file)) comm[0] = '\0';
  comm[strcspn(comm, "\n")] = '\0';
  fclose(file);
}

bool gt_terminal_reaches(FILE *to) {
  char comm[64], stream[64], target[PATH_MAX] = "";
  parent_name(comm);
  parent_stream(to, stream);
  ssize_t n = readlink(stream, target, sizeof target - 1);
  target[n > 0 ? n : 0] = '\0';
  return gt_terminal_decide(isatty(fileno(to)), comm, target);
}

/* Uses the size of the launcher's terminal for a rank's pseudo-terminal, which has none. */
size_t gt_terminal_width(FILE *to) {
  struct winsize size = {0};
  char comm[64], stream[64];
  if (ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  parent_name(comm);
  if (!gt_terminal_is_launcher(comm)) return 80;
  parent_stream(to, stream);
  int fd = open(stream, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return 80;
  int found = ioctl(fd, TIOCGWINSZ, &size);
  close(fd);
  return found == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

size_t gt_terminal_rows(FILE *to) {
  struct winsize size = {0};
  return ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}
