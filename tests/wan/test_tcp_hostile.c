/* processors: 1; timeout: 180 */
/* The port under attack: thousands of connections a second that say nothing, or garbage, or begin
   TLS, take little memory and time, and a region still comes through. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "geotrain/wan_cert.h"
#include "tcp.h"
#include "port.h"
#include "tests.h"

#define RATE     1000 /* connections a second */
#define ATTACK_S 2.0
#define OPEN     200 /* those that the attacker keeps open */

static char folder[] = "/tmp/geotrain-hostile-XXXXXX";
static int port;

static int set_up(void **state) {
  (void)state;
  (void)signal(SIGPIPE, SIG_IGN); /* as gt_net_start does */
  if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
  assert_int_equal(gt_cert_init("ca"), GT_OK);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(gt_cert_request(i ? "b" : "a"), GT_OK);
    assert_int_equal(gt_cert_sign("ca", i ? "b.csr" : "a.csr", i ? "b.pem" : "a.pem", 86400),
                     GT_OK);
  }
  port = find_port();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return chdir("/") != 0 || system(command) != 0;
}

static gt_endpoint *open_port(void) {
  char at[32];
  gt_endpoint *tcp;
  snprintf(at, sizeof at, "127.0.0.1:%d", port);
  const gt_tcp_region regions[] = {{"a", at}, {"b", NULL}};
  const gt_tcp_spec spec = {.regions = regions,
                            .nregions = 2,
                            .listen = at,
                            .ca = "ca/ca.pem",
                            .cert = "a.pem",
                            .key = "a.key",
                            .patience_s = 20};
  if (gt_tcp_open(&tcp, &spec) != GT_OK) fail_msg("%s", gt_error_text());
  return tcp;
}

/* ---- attackers ------------------------------------------------------------------------------- */

typedef enum { SILENT, GARBAGE, TLS, NKINDS } kind;

/* host: the last byte of the address in 127.0.0.x that it comes from. */
static int connect_from(int host) {
  const struct sockaddr_in from = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + (uint32_t)host)},
                           to = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  (void)bind(fd, (const struct sockaddr *)&from, sizeof from);
  (void)connect(fd, (const struct sockaddr *)&to, sizeof to);
  return fd;
}

static void disturb(int fd, kind as, SSL_CTX *tls) {
  if (as == GARBAGE) (void)send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
  if (as != TLS) return;
  gt_sleep(20000); /* until it is connected */
  SSL *ssl = SSL_new(tls);
  SSL_set_fd(ssl, fd);
  (void)SSL_connect(ssl); /* sends a ClientHello; the server pays for its answer */
  SSL_free(ssl);
}

/* A process that connects at the rate, so often. */
static pid_t attack(kind as, int rate, int connections, int hosts) {
  const pid_t child = fork();
  if (child != 0) return child;
  (void)signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int open[OPEN];
  memset(open, -1, sizeof open);
  SSL_CTX *tls = SSL_CTX_new(TLS_method());
  const gt_ns began = gt_now();
  for (int i = 0; i < connections; i++) {
    close(open[i % OPEN]);
    const int fd = open[i % OPEN] = connect_from(2 + i % hosts);
    disturb(fd, as, tls);
    const gt_ns next = began + (gt_ns)i * GT_SECOND / rate;
    if (next > gt_now()) gt_sleep(next - gt_now());
  }
  _exit(0);
}

/* ---- the port -------------------------------------------------------------------------------- */

static double cpu_s(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Polls the port as a PS does until the attackers end; returns the CPU time.  seen: whether a
   region has come. */
static double serve(gt_endpoint *endpoint, double least_s, pid_t attacker, bool *seen) {
  gt_tcp *tcp = (gt_tcp *)endpoint;
  const gt_ns until = gt_now() + gt_from_seconds(least_s);
  const double began = cpu_s();
  gt_connection c;
  gt_tcp_record hello;
  int ended;
  for (bool lives = attacker > 0; lives || gt_now() < until; gt_sleep(GT_SECOND / 1000)) {
    while (gt_listener_next(&tcp->listener, tcp->tls, &c, &hello)) {
      if (hello.from == 1) *seen = true;
      gt_connection_close(&c);
    }
    assert_true(tcp->listener.n <= GT_TCP_HALF_OPEN);
    if (lives && waitpid(attacker, &ended, WNOHANG) == attacker) lives = false;
  }
  return cpu_s() - began;
}

/* The most of a core; an emulator and sanitizers make each connection dearer. */
#ifdef GEOTRAIN_EMULATED
#define SHARE_MOST 0.5
#elif defined __SANITIZE_ADDRESS__
#define SHARE_MOST 0.15
#else
#define SHARE_MOST 0.05
#endif

static void connections_cost_little(void) {
  gt_endpoint *tcp = open_port();
  bool seen = false;
  (void)serve(tcp, 0.2, 0, &seen);
  const double idle = serve(tcp, ATTACK_S, 0, &seen);
  for (kind as = SILENT; as < NKINDS; as++) {
    const gt_ns began = gt_now();
    const pid_t attacker = attack(as, RATE, (int)(RATE * ATTACK_S), as == SILENT ? 1 : 40);
    const double busy = serve(tcp, 0, attacker, &seen), took = gt_seconds(gt_now() - began),
                 share = (busy - idle * took / ATTACK_S) / took;
    print_message("kind %d: %.0f connections/s, %.1f %% of a core\n", (int)as,
                  RATE * ATTACK_S / took, 100 * share);
    assert_true(share <= SHARE_MOST);
  }
  assert_false(seen);
  gt_endpoint_close(tcp);
}

/* The region's process: dials until the port has taken its greeting. */
static pid_t start_region(void) {
  const pid_t child = fork();
  if (child != 0) return child;
  (void)signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  gt_tls *tls;
  gt_tcp_record hello = {.magic = GT_TCP_MAGIC, .kind = GT_TCP_HELLO, .from = 1};
  if (gt_tls_open(&tls, "ca/ca.pem", "b.pem", "b.key", "b") != GT_OK) _exit(1);
  for (;;) {
    gt_connection c;
    gt_connection_take(&c, connect_from(1));
    const gt_ns until = gt_now() + GT_SECOND;
    int done = 0;
    while ((done = gt_connection_advance(&c, tls, false)) == 0 && gt_now() < until)
      gt_sleep(1000000);
    if (done > 0) (void)gt_connection_write(&c, &hello, sizeof hello);
    gt_sleep(GT_SECOND / 10);
    gt_connection_close(&c);
  }
}

static void a_region_comes_through(void) {
  gt_endpoint *tcp = open_port();
  bool seen = false;
  const pid_t attacker = attack(GARBAGE, 3000, 10000, 40), region = start_region();
  (void)serve(tcp, 0, attacker, &seen);
  kill(region, SIGKILL);
  waitpid(region, NULL, 0);
  assert_true(seen);
  gt_endpoint_close(tcp);
}

TESTS_BETWEEN(set_up, tear_down, connections_cost_little, a_region_comes_through)
