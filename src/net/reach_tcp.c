/* Tests plain TCP connections between the job's hosts before MPI opens its own.  Open MPI ends the
   job with its own exit code if a connection is refused or a host is unreachable, so this must be
   known first.  A launcher's name service exchanges the addresses, because no link can be trusted
   yet.  Best effort: without such a service (Slurm's PMIx has none), MPI's own messages are the
   only test. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

void gt_reach_name(char *buf, size_t size, const gt_reach_rank *rank, int number,
                   const gt_region_plan *plan, size_t nregions) {
  char host[80] = "";
  if (rank->host[0]) snprintf(host, sizeof host, " on %s", rank->host);
  int region = rank->region;
  /* contiguous blocks, as in roles.c if no rank knows its region */
  if (region < 0 && plan && nregions > 0) {
    int at = 0;
    for (size_t r = 0; r < nregions && region < 0; r++)
      if ((at += plan[r].ranks) > number) region = (int)r;
  }
  if (region >= 0 && plan && (size_t)region < nregions)
    snprintf(buf, size, "region %s (rank %d%s)", plan[region].name, number, host);
  else
    snprintf(buf, size, "rank %d%s", number, host);
}

#define MAX_HOSTS   ((size_t)64) /* largest number of hosts that are tested with one another */
#define FIRST_RETRY ((gt_ns)2000000)
#define LAST_RETRY  ((gt_ns)50000000)

/* ---- name service ---- */

static void service(char name[128], const char *what, int rank) {
  const char *job = getenv("PMIX_NAMESPACE");
  snprintf(name, 128, "geotrain-%.64s-%s-%d", job ? job : "", what, rank);
}

static bool publish(const char *what, int rank, const char *text) {
  char name[128];
  service(name, what, rank);
  return MPI_Publish_name(name, MPI_INFO_NULL, text) == MPI_SUCCESS;
}

/* Looks the name up repeatedly until it is published. */
static bool look_up(const char *what, int rank, char text[MPI_MAX_PORT_NAME], gt_ns until) {
  char name[128];
  service(name, what, rank);
  for (gt_ns pause = FIRST_RETRY;; pause = pause < LAST_RETRY ? 2 * pause : pause) {
    memset(text, 0, MPI_MAX_PORT_NAME);
    int error = MPI_Lookup_name(name, MPI_INFO_NULL, text), kind = MPI_SUCCESS;
    if (error == MPI_SUCCESS) return true;
    MPI_Error_class(error, &kind);
    if (kind != MPI_ERR_NAME || gt_now() > until) return false;
    gt_sleep(pause);
  }
}

/* ---- cards ---- */

static void write_card(const gt_reach_rank *r, char text[MPI_MAX_PORT_NAME]) {
  int used = snprintf(text, MPI_MAX_PORT_NAME, "%s %s %d %d %u", r->host, r->kernel, (int)r->region,
                      (int)r->pid, (unsigned)r->port);
  for (size_t i = 0; i < r->naddresses && used < MPI_MAX_PORT_NAME; i++)
    used +=
        snprintf(text + used, (size_t)(MPI_MAX_PORT_NAME - used), " %u", (unsigned)r->addresses[i]);
}

static bool read_card(char *text, gt_reach_rank *r) {
  char *rest = NULL, *words[5];
  for (size_t i = 0; i < 5; i++)
    if (!(words[i] = strtok_r(i == 0 ? text : NULL, " ", &rest))) return false;
  *r = (gt_reach_rank){.region = (int32_t)strtol(words[2], NULL, 10),
                       .pid = (int32_t)strtol(words[3], NULL, 10),
                       .port = (uint16_t)strtoul(words[4], NULL, 10)};
  snprintf(r->host, sizeof r->host, "%s", words[0]);
  snprintf(r->kernel, sizeof r->kernel, "%s", words[1]);
  for (const char *word; r->naddresses < GT_REACH_ADDRESSES && (word = strtok_r(NULL, " ", &rest));)
    r->addresses[r->naddresses++] = (uint32_t)strtoul(word, NULL, 10);
  return true;
}

/* ---- sockets ---- */

static int setting_number(const char *name, int otherwise) {
  char text[32];
  return gt_mpi_setting(name, text, sizeof text) ? (int)strtol(text, NULL, 10) : otherwise;
}

/* Listens in the port range that MPI uses, because a firewall can restrict ports to it. */
static int listen_somewhere(uint16_t *port) {
  int first = setting_number("btl_tcp_port_min_v4", 0),
      range = setting_number("btl_tcp_port_range_v4", 1);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  socklen_t length = sizeof at;
  for (int i = 0; fd >= 0 && i < range; i++) {
    at.sin_port = htons((uint16_t)(first + i));
    if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1024) == 0) break;
    if (i + 1 == range) {
      close(fd);
      return -1;
    }
  }
  if (fd >= 0 && getsockname(fd, (struct sockaddr *)&at, &length) == 0) *port = ntohs(at.sin_port);
  return fd;
}

/* One connection attempt: one address of one host. */
typedef struct {
  size_t host;
  int fd;
} attempt;

/* error 0: connected; ETIMEDOUT: no answer. */
typedef struct {
  int rank, error;
  gt_reach_rank card;
  char address[INET_ADDRSTRLEN]; /* the last address tried */
} tcp_host;

static void settle(tcp_host *h, int error) {
  if (error == 0)
    h->error = 0;
  else if (h->error != 0 && error != ETIMEDOUT)
    h->error = error;
}

static bool has_address(const gt_reach_rank *r, uint32_t address) {
  for (size_t i = 0; i < r->naddresses; i++)
    if (r->addresses[i] == address) return true;
  return false;
}

/* Skips addresses that this host has, too (such as a container bridge's): connections would reach
   this host itself. */
static size_t start_attempts(const tcp_host *own, tcp_host *h, size_t host, attempt *out) {
  size_t n = 0;
  for (size_t i = 0; i < h->card.naddresses; i++) {
    if (has_address(&own->card, h->card.addresses[i])) continue;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(h->card.port),
                             .sin_addr.s_addr = h->card.addresses[i]};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    inet_ntop(AF_INET, &to.sin_addr, h->address, sizeof h->address);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS)
      out[n++] = (attempt){host, fd};
    else {
      settle(h, errno);
      close(fd);
    }
  }
  return n;
}

/* Waits until every host is connected or has refused on all its addresses, or until the
   deadline. */
static void await_attempts(tcp_host *hosts, attempt *a, size_t n, gt_ns until) {
  struct pollfd *polls = GT_NEW_ARRAY(struct pollfd, n + 1);
  for (;;) {
    nfds_t open = 0;
    for (size_t i = 0; i < n; i++)
      if (a[i].fd >= 0) {
        if (hosts[a[i].host].error == 0) {
          close(a[i].fd);
          a[i].fd = -1;
        } else
          polls[open++] = (struct pollfd){.fd = a[i].fd, .events = POLLOUT};
      }
    double left_s = gt_seconds(until - gt_now());
    if (open == 0 || left_s <= 0 || poll(polls, open, (int)(left_s * 1e3) + 1) <= 0) break;
    nfds_t at = 0;
    for (size_t i = 0; i < n; i++) {
      if (a[i].fd < 0 || polls[at++].revents == 0) continue;
      int error = 0;
      socklen_t length = sizeof error;
      getsockopt(a[i].fd, SOL_SOCKET, SO_ERROR, &error, &length);
      settle(&hosts[a[i].host], error);
      close(a[i].fd);
      a[i].fd = -1;
    }
  }
  for (size_t i = 0; i < n; i++)
    if (a[i].fd >= 0) close(a[i].fd);
  gt_free(polls);
}

static void connect_all(tcp_host *hosts, size_t n, int own_rank, double limit_s) {
  attempt *attempts = GT_NEW_ARRAY(attempt, n * GT_REACH_ADDRESSES + 1);
  size_t started = 0;
  const tcp_host *own = hosts;
  for (size_t i = 0; i < n; i++)
    if (hosts[i].rank == own_rank) own = &hosts[i];
  for (size_t i = 0; i < n; i++) {
    bool testable =
        hosts[i].rank != own_rank && hosts[i].card.port != 0 && hosts[i].card.naddresses > 0;
    hosts[i].error = testable ? ETIMEDOUT : 0;
    if (testable) started += start_attempts(own, &hosts[i], i, attempts + started);
  }
  await_attempts(hosts, attempts, started, gt_now() + gt_from_seconds(limit_s));
  gt_free(attempts);
}

/* ---- hosts ---- */

/* The first rank of every host. */
static size_t list_hosts(const gt_reach_rank *ranks, int size, char text[MPI_MAX_PORT_NAME]) {
  size_t n = 0, used = 0;
  text[0] = '\0';
  for (int i = 0; i < size && n < MAX_HOSTS; i++) {
    bool first = true;
    for (int k = 0; k < i && first; k++) first = strcmp(ranks[k].host, ranks[i].host) != 0;
    if (!first) continue;
    used += (size_t)snprintf(text + used, MPI_MAX_PORT_NAME - used, "%d ", i);
    n++;
  }
  return n;
}

static size_t read_hosts(const char *text, tcp_host *hosts) {
  size_t n = 0;
  char *end;
  for (long rank = strtol(text, &end, 10); end != text && n < MAX_HOSTS;
       rank = strtol(text, &end, 10)) {
    hosts[n++] = (tcp_host){.rank = (int)rank};
    text = end;
  }
  return n;
}

/* "3 113 10.0.0.2;": rank, error and address of each host that this host cannot reach. */
static void write_result(const tcp_host *hosts, size_t n, char text[MPI_MAX_PORT_NAME]) {
  size_t used = (size_t)snprintf(text, MPI_MAX_PORT_NAME, "-;");
  for (size_t i = 0; i < n && used + 40 < MPI_MAX_PORT_NAME; i++)
    if (hosts[i].error)
      used += (size_t)snprintf(text + used, MPI_MAX_PORT_NAME - used, "%d %d %s;", hosts[i].rank,
                               hosts[i].error, hosts[i].address);
}

__attribute__((format(printf, 2, 3))) static void add_line(char text[GT_REACH_TEXT],
                                                           const char *format, ...) {
  size_t used = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + used, GT_REACH_TEXT - used, format, args);
  va_end(args);
}

typedef struct {
  const gt_region_plan *plan;
  size_t nregions;
  const gt_reach_rank *ranks;
  int size;
  double limit_s;
} names;

static void say_failure(char text[GT_REACH_TEXT], const names *s, int from, int to, int error,
                        const char *address) {
  char a[160], b[160];
  if (to < 0 || to >= s->size) return;
  gt_reach_name(a, sizeof a, &s->ranks[from], from, s->plan, s->nregions);
  gt_reach_name(b, sizeof b, &s->ranks[to], to, s->plan, s->nregions);
  if (error == ETIMEDOUT)
    add_line(text,
             "no TCP connection from %s to %s (%s) within %g s: the link is blocked, "
             "or a firewall drops MPI's ports\n",
             a, b, address, s->limit_s);
  else
    add_line(text, "no TCP connection from %s to %s (%s): %s; a firewall or a route refuses it\n",
             a, b, address, strerror(error));
}

/* On rank 0: collects the failures of all hosts, one per line. */
static void gather_results(const tcp_host *hosts, size_t n, const names *s, gt_ns until,
                           char text[GT_REACH_TEXT]) {
  char result[MPI_MAX_PORT_NAME], *rest = NULL;
  for (size_t i = 0; i < n; i++) {
    if (!look_up("result", hosts[i].rank, result, until)) continue;
    strtok_r(result, ";", &rest);
    for (char *entry; (entry = strtok_r(NULL, ";", &rest));) {
      char *end;
      int to = (int)strtol(entry, &end, 10), error = (int)strtol(end, &end, 10);
      say_failure(text, s, hosts[i].rank, to, error, *end ? end + 1 : "");
    }
  }
}

/* ---- the test ---- */

static bool cards_of_all(gt_reach_rank *ranks, int size, gt_ns until) {
  char text[MPI_MAX_PORT_NAME];
  for (int i = 0; i < size; i++)
    if (!look_up("card", i, text, until) || !read_card(text, &ranks[i])) return false;
  return true;
}

/* One host's part of the test: connects to the others and publishes the result. */
static void test_hosts(const char *list, tcp_host *hosts, size_t *n, int rank, double limit_s,
                       gt_ns until) {
  char text[MPI_MAX_PORT_NAME];
  bool mine = false;
  *n = read_hosts(list, hosts);
  for (size_t i = 0; i < *n; i++) mine |= hosts[i].rank == rank;
  if (!mine || *n < 2) return;
  for (size_t i = 0; i < *n; i++)
    if (look_up("card", hosts[i].rank, text, until)) read_card(text, &hosts[i].card);
  connect_all(hosts, *n, rank, limit_s);
  write_result(hosts, *n, text);
  publish("result", rank, text);
}

/* True if MPI's messages use TCP; otherwise plain TCP is no valid test. */
static bool over_tcp(void) {
  char text[64];
  return gt_mpi_setting("pml_ob1_priority", text, sizeof text) &&
         gt_mpi_setting("btl_tcp_port_min_v4", text, sizeof text);
}

static bool exchange(gt_reach_rank *ranks, const names *s, int rank, char text[GT_REACH_TEXT],
                     bool *tested) {
  char list[MPI_MAX_PORT_NAME], verdict[MPI_MAX_PORT_NAME] = "go";
  tcp_host *hosts = GT_NEW_ARRAY(tcp_host, MAX_HOSTS);
  gt_ns until = gt_now() + gt_from_seconds(s->limit_s);
  size_t n = 0;
  if (rank == 0) {
    list[0] = '\0';
    if (over_tcp() && cards_of_all(ranks, s->size, until)) list_hosts(ranks, s->size, list);
    publish("hosts", 0, list[0] ? list : "-");
  }
  if (look_up("hosts", 0, list, until + GT_SECOND))
    test_hosts(list, hosts, &n, rank, s->limit_s, until + GT_SECOND);
  if (n > 1) {
    until = gt_now() + gt_from_seconds(2 * s->limit_s) + GT_SECOND;
    if (rank == 0) {
      gather_results(hosts, n, s, until, text);
      publish("verdict", 0, text[0] ? "stop" : "go");
    }
    *tested = look_up("verdict", 0, verdict, until + GT_SECOND);
  }
  gt_free(hosts);
  return strcmp(verdict, "stop") != 0;
}

bool gt_reach_tcp(gt_reach_rank *own, gt_reach_rank *ranks, const gt_peers *world,
                  const gt_region_plan *plan, size_t nregions, double limit_s,
                  char text[GT_REACH_TEXT], bool *tested) {
  gt_net_address addresses[GT_REACH_ADDRESSES];
  char card[MPI_MAX_PORT_NAME];
  const int rank = (int)world->rank, size = (int)world->size;
  *tested = false;
  text[0] = '\0';
  if (size == 1) return true;
  int listener = listen_somewhere(&own->port);
  own->naddresses = (uint16_t)gt_net_addresses(addresses, GT_REACH_ADDRESSES);
  for (size_t i = 0; i < own->naddresses; i++) own->addresses[i] = addresses[i].ip;
  write_card(own, card);
  bool fine = true;
  /* srun has no name service, and Open MPI prints long messages when asked for it */
  if (!gt_launch_by_srun() && publish("card", rank, card)) {
    names s = {plan, nregions, ranks, size, limit_s};
    fine = exchange(ranks, &s, rank, text, tested);
  }
  if (listener >= 0) close(listener);
  return fine;
}
