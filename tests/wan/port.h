/* port: a free port of the loopback interface. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests.h"

/* Below the ports that the kernel gives to connections: such a port could be taken again before the
   test listens on it. */
static inline int find_port(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  gt_rng rng = gt_rng_make((uint64_t)getpid(), GT_RNG_JITTER, (uint64_t)gt_now(), 0);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  bool bound = false;
  for (int i = 0; i < 1000 && !bound; i++) {
    at.sin_port = htons((uint16_t)(20000 + gt_rng_below(&rng, 12000)));
    bound = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
  }
  assert_true(bound);
  close(fd);
  return ntohs(at.sin_port);
}
