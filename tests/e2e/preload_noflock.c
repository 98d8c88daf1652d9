/* For LD_PRELOAD: flock fails as on a file system without locks. */
#include <errno.h>
#include <sys/file.h>

int flock(int fd, int operation) {
  (void)fd;
  if ((operation & ~LOCK_NB) == LOCK_UN) return 0;
  errno = ENOLCK;
  return -1;
}
