/* Replacing a file: through a link, and into a pipe; and the temporary file of a process that dies. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "geotrain/base.h"
#include "tests.h"

static void a_link_stays_a_link(void) {
  const char *target = file_with("target", "old"), *link = in_folder("link");
  struct stat at;
  char text[16];
  assert_int_equal(symlink("target", link), 0);
  assert_true(gt_file_replace(link, "new", 3));
  assert_true(lstat(link, &at) == 0 && S_ISLNK(at.st_mode));
  assert_int_equal(read_file(target, text, sizeof text), 3);
  assert_string_equal(text, "new");
}

static void a_pipe_is_written_to(void) {
  const char *path = in_folder("pipe");
  struct stat at;
  char text[4] = "";
  assert_int_equal(mkfifo(path, 0600), 0);
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  assert_true(gt_file_replace(path, "abc", 3));
  assert_int_equal(read(fd, text, 3), 3);
  assert_string_equal(text, "abc");
  assert_true(stat(path, &at) == 0 && S_ISFIFO(at.st_mode));
  close(fd);
}

static void a_folder_is_no_output(void) {
  must_fail(gt_output_may_replace(in_folder("."), NULL, NULL, NULL), GT_ERR_JOB,
            "is a folder; expected the name of a file to write");
}

/* Dies in a child by a signal, or for want of memory, and returns whether the temporary file is
   left. */
static bool leaves(int number) {
  char temporary[4096];
  int status, ends[2];
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    signal(number, SIG_DFL);
    gt_temporary_guard();
    close(gt_temporary_create(temporary, sizeof temporary, in_folder("out")));
    if (write(ends[1], temporary, sizeof temporary) != sizeof temporary) _exit(9);
    if (number == 0) gt_free(gt_alloc(SIZE_MAX, SIZE_MAX));
    raise(number);
    _exit(0);
  }
  assert_int_equal(read(ends[0], temporary, sizeof temporary), sizeof temporary);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(number == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == GT_ERR_FAULT
                          : WIFSIGNALED(status) && WTERMSIG(status) == number);
  close(ends[0]);
  close(ends[1]);
  return access(temporary, F_OK) == 0;
}

static void no_temporary_file_is_left(void) {
  static const int numbers[] = {0, SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
  for (size_t i = 0; i < COUNT(numbers); i++) assert_false(leaves(numbers[i]));
}

TESTS(a_link_stays_a_link, a_pipe_is_written_to, a_folder_is_no_output, no_temporary_file_is_left)
