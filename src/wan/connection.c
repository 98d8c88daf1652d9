/* A non-blocking TCP connection, with or without TLS. */
#include "connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define SILENT_MS     1000u
#define SILENT_ROUNDS 4u /* and so many round trips */
#define HTTP_END      UINT32_C(0x0d0a0d0a)
#define HTTP_MAX      ((size_t)8192)

static int broken(gt_connection *c, const char *why) {
  snprintf(c->fault, sizeof c->fault, "%s", why);
  return -1;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void set(int fd, int level, int option, int value) {
  (void)setsockopt(fd, level, option, &value, sizeof value);
}

void gt_connection_take(gt_connection *c, int fd) {
  *c = (gt_connection){.fd = fd, .since = gt_now()};
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void gt_connection_patience(const gt_connection *c, double seconds) {
  set(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(1000 * seconds));
  set(c->fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(c->fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
}

/* TCP_USER_TIMEOUT alone would also end a connection whose other side is busy for a second and does
   not read. */
bool gt_connection_silent(const gt_connection *c) {
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  const uint32_t limit_ms = SILENT_MS + info.tcpi_rtt / 1000 * SILENT_ROUNDS;
  return info.tcpi_last_ack_recv > limit_ms && (info.tcpi_retransmits > 1 || info.tcpi_probes > 1);
}

bool gt_connection_closed(const gt_connection *c) {
  struct pollfd at = {.fd = c->fd, .events = POLLRDHUP};
  return poll(&at, 1, 0) > 0 && (at.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

int gt_connection_dial(gt_connection *c, const struct sockaddr *to, socklen_t size,
                       const char *through) {
  const int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return broken(c, strerror(errno));
  gt_connection_take(c, fd);
  c->through = through;
  if (connect(fd, to, size) == 0 || errno == EINPROGRESS) return 1;
  return broken(c, strerror(errno));
}

void gt_connection_close(gt_connection *c) {
  SSL_free(c->ssl);
  c->ssl = NULL;
  if (c->fd >= 0) close(c->fd);
  c->fd = -1;
}

/* ---- handshake ------------------------------------------------------------------------------- */

static int finish_connect(gt_connection *c) {
  struct pollfd p = {.fd = c->fd, .events = POLLOUT};
  int error = 0;
  socklen_t size = sizeof error;
  if (poll(&p, 1, 0) <= 0) return 0;
  if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return broken(c, strerror(error));
  c->answer.reached = true;
  c->connected = !c->through;
  return 1;
}

/* A request is short: a new socket takes it whole. */
static int ask_proxy(gt_connection *c) {
  char text[640];
  const int size = snprintf(text, sizeof text, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
                            c->through, c->through);
  if (size >= (int)sizeof text) return broken(c, "the address is too long for a proxy");
  c->answer.asked = true;
  return send(c->fd, text, (size_t)size, MSG_NOSIGNAL) == size ? 1 : broken(c, strerror(errno));
}

static bool is_accepted(const char *line) {
  return strncmp(line, "HTTP/1.", 7) == 0 && strncmp(line + 8, " 200 ", 5) == 0;
}

static int refused_by_proxy(gt_connection *c) {
  c->answer.line[strcspn(c->answer.line, "\r\n")] = '\0';
  for (char *at = c->answer.line; *at; at++)
    if (*at < ' ' || *at > '~') *at = '?';
  snprintf(c->fault, sizeof c->fault, "the proxy answers \"%s\"", c->answer.line);
  return -1;
}

/* Reads the answer byte by byte: what follows it belongs to TLS. */
static int hear_proxy(gt_connection *c) {
  gt_connection_answer *a = &c->answer;
  char byte;
  while (a->tail != HTTP_END) {
    const ssize_t n = recv(c->fd, &byte, 1, 0);
    if (n == 0) return broken(c, "the proxy has closed the connection");
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : broken(c, strerror(errno));
    if (a->bytes < sizeof a->line - 1) a->line[a->bytes] = byte;
    a->tail = a->tail << 8 | (uint8_t)byte;
    if (++a->bytes > HTTP_MAX) return broken(c, "the proxy's answer does not end");
  }
  if (!is_accepted(a->line)) return refused_by_proxy(c);
  c->connected = true;
  return 1;
}

/* Nothing is allocated before the first byte arrives. */
static int begin_tls(gt_connection *c, gt_tls *tls, bool accept) {
  char byte;
  if (accept && recv(c->fd, &byte, 1, MSG_PEEK) < 0)
    return errno == EAGAIN || errno == EINTR ? 0 : broken(c, strerror(errno));
  c->ssl = gt_tls_begin(tls, c->fd, accept);
  return c->ssl ? 1 : broken(c, "OpenSSL has no memory");
}

/* Returns what a call of OpenSSL means. */
static int outcome(gt_connection *c, int result) {
  if (result > 0) return result;
  const int error = SSL_get_error(c->ssl, result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return 0;
  gt_tls_fault(c->ssl, error, c->fault, sizeof c->fault);
  return -1;
}

static void clear_errors(void) {
  ERR_clear_error();
  errno = 0;
}

int gt_connection_advance(gt_connection *c, gt_tls *tls, bool accept) {
  if (!c->connected && !c->answer.reached) {
    const int done = finish_connect(c);
    if (done <= 0) return done;
  }
  if (!c->connected) {
    const int asked = c->answer.asked ? 1 : ask_proxy(c), done = asked > 0 ? hear_proxy(c) : asked;
    if (done <= 0) return done;
  }
  if (!tls || c->secure) return 1;
  if (!c->ssl) {
    const int begun = begin_tls(c, tls, accept);
    if (begun <= 0) return begun;
  }
  clear_errors();
  const int done = outcome(c, SSL_do_handshake(c->ssl));
  c->secure = done > 0;
  return done;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int most(size_t bytes) {
  return bytes < (1 << 20) ? (int)bytes : 1 << 20;
}

long gt_connection_read(gt_connection *c, void *to, size_t bytes) {
  if (c->ssl) {
    clear_errors();
    return outcome(c, SSL_read(c->ssl, to, most(bytes)));
  }
  const ssize_t n = recv(c->fd, to, bytes, 0);
  if (n > 0) return n;
  if (n == 0) return broken(c, "the other side has closed the connection");
  return errno == EAGAIN || errno == EINTR ? 0 : broken(c, strerror(errno));
}

long gt_connection_write(gt_connection *c, const void *from, size_t bytes) {
  if (c->ssl) {
    clear_errors();
    return outcome(c, SSL_write(c->ssl, from, most(bytes)));
  }
  const ssize_t n = send(c->fd, from, bytes, MSG_NOSIGNAL);
  if (n > 0) return n;
  return n == 0 || errno == EAGAIN || errno == EINTR ? 0 : broken(c, strerror(errno));
}
