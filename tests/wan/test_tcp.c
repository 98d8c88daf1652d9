/* ranks: 1; processors: 1 */
/* The transport over TCP between two ends in one process: frames of all sizes arrive once and in
   order, however often connections are cut, with TLS and without; everybody else is refused. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <netinet/in.h>
#include <unistd.h>

#include "geotrain/net_mpi.h"
#include "geotrain/wan_cert.h"
#include "lane.h"
#include "port.h"
#include "tests.h"

#define LIMIT_S   60.0
#define FRAME_MAX ((size_t)200000)
#define WINDOW    ((size_t)8)
#define FILES     256
#define DAY       86400.0

typedef struct {
  gt_endpoint *tcp;
  gt_transport *t;
  uint8_t *frames[WINDOW];
  uint64_t sent, received, wanted;
} end;

static char folder[] = "/tmp/geotrain-tcp-XXXXXX";
static int port;
static size_t streams = 1;
static gt_peers *alone; /* a group of this rank */
/* A client by hand continues what the last one of its region began. */
#define CLIENT_START 77
static uint64_t end_start; /* of the end that it talks to */

/* ---- certificates ---------------------------------------------------------------------------- */

/* Makes a certificate NAME.pem with the key NAME.key, for the name, valid for some days. */
static void make_cert(const char *ca, const char *name, double days) {
  char csr[128], pem[128];
  snprintf(csr, sizeof csr, "%s.csr", name);
  snprintf(pem, sizeof pem, "%s.pem", name);
  assert_int_equal(gt_cert_request(name), GT_OK);
  assert_int_equal(gt_cert_sign(ca, csr, pem, days * DAY), GT_OK);
}

static int set_up(void **state) {
  (void)state;
  if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
  assert_int_equal(gt_cert_init("ca"), GT_OK);
  assert_int_equal(gt_cert_init("other"), GT_OK);
  make_cert("ca", "a", 1);
  make_cert("ca", "b", 1);
  make_cert("ca", "c", 1);
  if (chdir("other") != 0) return -1;
  make_cert(".", "b", 1);
  if (chdir("..") != 0) return -1;
  assert_int_equal(system("cat ca/ca.pem other/ca.pem >both.pem"), 0);
  port = find_port();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return chdir("/") != 0 || system(command) != 0;
}

/* ---- two ends -------------------------------------------------------------------------------- */

static const char *names[] = {"a", "b"};

/* Region 0, a, listens; region 1, b, dials.  ca NULL: without TLS. */
static gt_status try_open(gt_endpoint **tcp, size_t self, const char *ca, const char *cert,
                          uint64_t run_id) {
  static char at[32];
  char pem[32], key[32];
  snprintf(at, sizeof at, "127.0.0.1:%d", port);
  snprintf(pem, sizeof pem, "%s.pem", cert);
  snprintf(key, sizeof key, "%s.key", cert);
  const gt_tcp_region regions[] = {{names[0], at}, {names[1], NULL}};
  const gt_tcp_spec spec = {.regions = regions,
                            .nregions = 2,
                            .self = self,
                            .listen = self == 0 ? at : NULL,
                            .ca = ca,
                            .cert = ca ? pem : NULL,
                            .key = ca ? key : NULL,
                            .streams = streams,
                            .patience_s = 20};
  GT_TRY(gt_tcp_open(tcp, &spec));
  gt_endpoint_set_run(*tcp, run_id);
  return GT_OK;
}

static void open_transport(end *e, size_t self) {
  const size_t windows[] = {WINDOW, WINDOW};
  const gt_transport_spec spec = {.nregions = 2,
                                  .self = self,
                                  .windows = windows,
                                  .frame_bytes = FRAME_MAX,
                                  .endpoint = e->tcp};
  e->t = gt_transport_tcp.open(alone, &spec);
  for (size_t i = 0; i < WINDOW; i++) e->frames[i] = gt_alloc(FRAME_MAX, 1);
}

static void open_end(end *e, size_t self, const char *ca) {
  *e = (end){0};
  const gt_status status = try_open(&e->tcp, self, ca, names[self], 7);
  if (status != GT_OK) fail_msg("%s", gt_error_text());
  if (self == 0) end_start = e->tcp->start;
  open_transport(e, self);
}

static void close_end(end *e) {
  gt_transport_tcp.close(e->t, LIMIT_S);
  gt_endpoint_close(e->tcp);
  for (size_t i = 0; i < WINDOW; i++) gt_free(e->frames[i]);
}

/* Both sides compute frame n of a sender. */
static size_t make_frame(uint8_t *frame, size_t from, uint64_t n) {
  static const size_t special[] = {1, 31, 32, 33, 65503, 65504, 65505, FRAME_MAX};
  gt_rng rng = gt_rng_make(3, GT_RNG_TEST, from, n);
  const size_t bytes =
      n < 8 ? special[n] : 1 + (size_t)gt_rng_below(&rng, n % 8 == 0 ? FRAME_MAX : 3000);
  for (size_t i = 0; i < bytes; i++) frame[i] = (uint8_t)((i + n) * 31 + from + (i >> 8));
  return bytes;
}

static void send_some(end *e, size_t self) {
  while (e->sent < e->wanted && gt_transport_tcp.sent(e->t, 1 - self, e->sent % WINDOW)) {
    uint8_t *frame = e->frames[e->sent % WINDOW];
    const size_t bytes = make_frame(frame, self, e->sent);
    gt_transport_tcp.send_frame(e->t, 1 - self, e->sent % WINDOW, frame, bytes);
    e->sent++;
  }
}

static void take_some(end *e, size_t self) {
  static uint8_t expected[FRAME_MAX];
  size_t bytes;
  for (const void *frame; (frame = gt_transport_tcp.receive(e->t, 1 - self, &bytes)) != NULL;) {
    assert_int_equal(bytes, make_frame(expected, 1 - self, e->received));
    assert_memory_equal(frame, expected, bytes);
    gt_transport_tcp.release(e->t, 1 - self);
    e->received++;
  }
}

static void step(end *e, size_t self) {
  gt_transport_tcp.progress(e->t);
  send_some(e, self);
  take_some(e, self);
}

static bool all_acknowledged(const end *e, size_t self) {
  for (size_t slot = 0; slot < WINDOW; slot++)
    if (!gt_transport_tcp.sent(e->t, 1 - self, slot)) return false;
  return e->sent == e->wanted;
}

/* True if the file is one end of a connection. */
static bool is_end(int fd, bool dialler) {
  struct sockaddr_in here, there;
  socklen_t size = sizeof here, other = sizeof there;
  return getpeername(fd, (struct sockaddr *)&there, &other) == 0 && there.sin_family == AF_INET &&
         getsockname(fd, (struct sockaddr *)&here, &size) == 0 &&
         ntohs(dialler ? there.sin_port : here.sin_port) == port;
}

/* Closes one end of the connection, with the bytes that it has not read; of several connections,
   about half of them. */
static void cut(bool dialler) {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 3; fd < FILES; fd++)
    if ((streams == 1 || fd % 4 >= 2) && is_end(fd, dialler))
      assert_int_equal(dup2(nowhere, fd), fd);
  close(nowhere);
}

/* Makes the system's buffers smaller than many frames, so that frames leave on all connections. */
static void narrow(int bytes) {
  for (int fd = 3; fd < FILES; fd++)
    if (is_end(fd, false) || is_end(fd, true)) {
      setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
      setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    }
}

/* cuts: breaks the connection so many times, at moments drawn. */
static void exchange(end ends[2], uint64_t frames, int cuts) {
  gt_rng rng = gt_rng_make(9, GT_RNG_TEST, frames, (uint64_t)cuts);
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  uint64_t next = gt_rng_below(&rng, 8);
  for (int i = 0; i < 2; i++) ends[i].wanted += frames;
  const uint64_t all = ends[0].wanted;
  while (ends[0].received < all || ends[1].received < all || !all_acknowledged(&ends[0], 0) ||
         !all_acknowledged(&ends[1], 1)) {
    assert_true(gt_now() < until);
    if (streams > 1) narrow(65536);
    for (size_t i = 0; i < 2; i++) {
      step(&ends[i], i);
      if (cuts == 0 || ends[0].received + ends[1].received < next) continue;
      cut(i == 0); /* the other end has not read what this one has just sent */
      cuts--;
      next += gt_rng_below(&rng, 4 * frames / 10);
    }
    gt_sleep(20000);
  }
  assert_int_equal(cuts, 0);
}

static void frames_arrive(const char *ca, int cuts) {
  end ends[2];
  for (size_t i = 0; i < 2; i++) open_end(&ends[i], i, ca);
  exchange(ends, 60, cuts);
  for (size_t i = 0; i < 2; i++) close_end(&ends[i]);
}

static void frames_arrive_with_tls(void) {
  frames_arrive("ca/ca.pem", 0);
}

static void frames_arrive_without_tls(void) {
  frames_arrive(NULL, 0);
}

static void cut_connections_are_made_again(void) {
  frames_arrive("ca/ca.pem", 4);
  frames_arrive(NULL, 4);
}

/* Frames of several connections come in order, also if some of these are cut. */
static void frames_of_several_connections_are_in_order(void) {
  static const size_t counts[] = {2, 4, 7};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    streams = counts[i];
    frames_arrive(i == 1 ? "ca/ca.pem" : NULL, 0);
    frames_arrive(i == 1 ? "ca/ca.pem" : NULL, 4);
  }
  streams = 1;
}

/* The frames of a cut connection wait for a new one: behind a later frame, which waits for them,
   they would not be read until that connection is given up, too. */
static void frames_do_not_follow_later_ones(void) {
  end ends[2];
  streams = 2;
  for (size_t i = 0; i < 2; i++) open_end(&ends[i], i, NULL);
  exchange(ends, 8, 0);
  narrow(8192);
  ends[0].wanted += 2;
  step(&ends[0], 0); /* a long frame, and a short one */
  gt_stream *s = ends[0].t->lanes[1].streams;
  assert_true(s[0].sending != s[1].sending && gt_transport_tcp.waits(ends[0].t, 1));
  gt_lane_lose(ends[0].t, 1, s[0].sending ? &s[0] : &s[1], "cut");
  ends[0].wanted -= 2;
  const gt_ns start = gt_now();
  exchange(ends, 2, 0);
  assert_true(gt_now() - start < 5 * GT_SECOND);
  ends[0].wanted++;
  step(&ends[0], 0); /* this frame has left, and is not acknowledged */
  assert_false(all_acknowledged(&ends[0], 0) || gt_transport_tcp.waits(ends[0].t, 1));
  ends[0].wanted--;
  exchange(ends, 1, 0);
  for (size_t i = 0; i < 2; i++) close_end(&ends[i]);
  streams = 1;
}

/* ---- a path that loses everything ------------------------------------------------------------ */

static bool connected(const end *e, size_t self) {
  return e->t->lanes[1 - self].streams->greeted;
}

/* In a network of its own, which only root can have.  Later tests stay in it. */
#if defined(__aarch64__)
#define SILENCE_S 15 /* by QEMU, under load */
#else
#define SILENCE_S 4
#endif

static void a_silent_path_is_noticed(void) {
  end ends[2];
  if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0 || system("ip link set lo up") != 0) {
    print_message("skipped: needs root and ip\n");
    return;
  }
  for (size_t i = 0; i < 2; i++) open_end(&ends[i], i, "ca/ca.pem");
  exchange(ends, 20, 0);
  assert_int_equal(system("ip link set lo down"), 0);
  const gt_ns began = gt_now();
  ends[0].wanted++; /* only one end has something to send */
  for (gt_ns lost[2] = {0}; lost[0] == 0 || lost[1] == 0; gt_sleep(1000000)) {
    assert_true(gt_now() - began < SILENCE_S * GT_SECOND);
    for (size_t i = 0; i < 2; i++) {
      step(&ends[i], i);
      if (lost[i] == 0 && !connected(&ends[i], i)) lost[i] = gt_now() - began;
    }
    if (lost[0] && lost[1])
      print_message("silence found after %.2f s sending, %.2f s idle\n", gt_seconds(lost[0]),
                    gt_seconds(lost[1]));
  }
  assert_int_equal(system("ip link set lo up"), 0);
  ends[1].wanted++;
  exchange(ends, 20, 0);
  for (size_t i = 0; i < 2; i++) close_end(&ends[i]);
}

/* ---- who is refused -------------------------------------------------------------------------- */

/* A client by hand.  The CA file has both authorities, so that it accepts every peer. */
typedef struct {
  gt_connection c;
  gt_tls *tls;
} client;

static void dial_port(client *k) {
  const struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  assert_int_equal(gt_connection_dial(&k->c, (const struct sockaddr *)&to, sizeof to, NULL), 1);
}

/* cert NULL: without TLS */
static void open_client(client *k, const char *cert) {
  char pem[32], key[32];
  *k = (client){.tls = NULL};
  snprintf(pem, sizeof pem, "%s.pem", cert ? cert : "");
  snprintf(key, sizeof key, "%s.key", cert ? cert : "");
  const char *slash = cert ? strrchr(cert, '/') : NULL, *name = slash ? slash + 1 : cert;
  if (cert && gt_tls_open(&k->tls, "both.pem", pem, key, name) != GT_OK)
    fail_msg("%s", gt_error_text());
  dial_port(k);
}

static void close_client(client *k) {
  gt_connection_close(&k->c);
  gt_tls_close(k->tls);
}

/* Continues until the client has sent these bytes; false: the other side has hung up. */
static bool say(client *k, end *a, const void *bytes, size_t size) {
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  for (size_t at = 0; at < size;) {
    assert_true(gt_now() < until);
    step(a, 0);
    long n = gt_connection_advance(&k->c, k->tls, false);
    if (n > 0) n = gt_connection_write(&k->c, (const char *)bytes + at, size - at);
    if (n < 0) return false;
    at += (size_t)n;
    gt_sleep(20000);
  }
  return true;
}

/* Returns the bytes of an answer of at most `size`; 0: the other side has hung up instead. */
static size_t hear(client *k, end *a, void *answer, size_t size) {
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  size_t have = 0;
  while (have < size) {
    assert_true(gt_now() < until);
    step(a, 0);
    const long n = gt_connection_read(&k->c, (char *)answer + have, size - have);
    if (n < 0) return 0;
    have += (size_t)n;
    gt_sleep(20000);
  }
  return have;
}

static gt_tcp_record record_of(gt_tcp_kind kind, uint64_t sequence, uint32_t bytes) {
  return (gt_tcp_record){.magic = GT_TCP_MAGIC,
                         .kind = (uint16_t)kind,
                         .version = GT_TCP_VERSION,
                         .from = 1,
                         .bytes = bytes,
                         .sequence = sequence,
                         .start = CLIENT_START,
                         .peer_start = kind == GT_TCP_HELLO ? 0 : end_start};
}

/* True if the end answers the greeting of a client with this certificate. */
static bool is_greeted(end *a, const char *cert, uint16_t from, uint64_t run_id) {
  client k;
  gt_tcp_record hello = record_of(GT_TCP_HELLO, run_id, 0), answer;
  hello.from = from;
  open_client(&k, cert);
  const bool greeted = say(&k, a, &hello, sizeof hello) && hear(&k, a, &answer, sizeof answer);
  close_client(&k);
  return greeted;
}

static void only_the_region_is_greeted(void) {
  end a;
  open_end(&a, 0, "ca/ca.pem");
  assert_true(is_greeted(&a, "b", 1, 7));
  assert_false(is_greeted(&a, "c", 1, 7));       /* the same CA, another region's name */
  assert_false(is_greeted(&a, "other/b", 1, 7)); /* the name of b by another CA */
  assert_false(is_greeted(&a, "b", 0, 7));       /* says that it is a */
  assert_false(is_greeted(&a, "b", 9, 7));       /* no region */
  assert_false(is_greeted(&a, "b", 1, 8));       /* another run */
  assert_false(is_greeted(&a, NULL, 1, 7));      /* without TLS */
  assert_true(is_greeted(&a, "b", 1, 7));
  assert_int_equal(gt_cert_revoke("ca", "b.pem"), GT_OK); /* read at each handshake */
  assert_false(is_greeted(&a, "b", 1, 7));
  assert_int_equal(unlink("ca/revoked"), 0);
  assert_true(is_greeted(&a, "b", 1, 7));
  close_end(&a);
}

static void expired_certificates_are_refused(void) {
  end a;
  client k;
  gt_tcp_record hello = record_of(GT_TCP_HELLO, 7, 0), answer;
  gt_endpoint *tcp;
  open_end(&a, 0, "ca/ca.pem");
  make_cert("ca", "late", 2.0 / DAY);
  open_client(&k, "late");
  gt_sleep(3 * GT_SECOND);
  assert_true(!say(&k, &a, &hello, sizeof hello) || !hear(&k, &a, &answer, sizeof answer));
  close_client(&k);
  close_end(&a);
  const char *own = names[1];
  names[1] = "late";
  assert_int_equal(try_open(&tcp, 1, "ca/ca.pem", "late", 7), GT_ERR_JOB);
  assert_non_null(strstr(gt_error_text(), "expired"));
  names[1] = own;
}

/* A region's own files are checked before the run. */
static void own_files_must_fit(void) {
  gt_endpoint *tcp;
  assert_int_equal(try_open(&tcp, 1, "ca/ca.pem", "c", 7), GT_ERR_JOB);
  assert_non_null(strstr(gt_error_text(), "has the name c"));
  assert_int_equal(try_open(&tcp, 1, "other/ca.pem", "b", 7), GT_ERR_JOB);
  assert_int_equal(try_open(&tcp, 1, "ca/ca.pem", "none", 7), GT_ERR_DATA);
}

/* The side that dials checks the name of the side that answers. */
static void an_impostor_is_not_sent_to(void) {
  end a = {0}, b;
  names[0] = "c";
  assert_int_equal(try_open(&a.tcp, 0, "ca/ca.pem", "c", 7), GT_OK);
  open_transport(&a, 0);
  names[0] = "a";
  open_end(&b, 1, "ca/ca.pem");
  b.wanted = 1;
  for (const gt_ns until = gt_now() + GT_SECOND / 2; gt_now() < until; gt_sleep(100000)) {
    step(&a, 0);
    step(&b, 1);
  }
  assert_int_equal(a.received, 0);
  assert_false(all_acknowledged(&b, 1));
  close_end(&a);
  open_end(&a, 0, "ca/ca.pem"); /* the region itself */
  for (const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S); !all_acknowledged(&b, 1);) {
    assert_true(gt_now() < until);
    step(&a, 0);
    step(&b, 1);
    gt_sleep(20000);
  }
  assert_int_equal(a.received, 1);
  close_end(&a);
  close_end(&b);
}

/* ---- a region that breaks the rules ---------------------------------------------------------- */

static void greet(client *k, end *a, gt_tcp_record *answer) {
  const gt_tcp_record hello = record_of(GT_TCP_HELLO, 7, 0);
  open_client(k, "b");
  assert_true(say(k, a, &hello, sizeof hello));
  assert_int_equal(hear(k, a, answer, sizeof *answer), sizeof *answer);
  assert_int_equal(answer->kind, GT_TCP_HELLO);
}

/* Sends a record and a frame of region 1; true if the end hangs up. */
static bool hangs_up(end *a, const gt_tcp_record *record, size_t bytes) {
  client k;
  gt_tcp_record answer;
  uint8_t frame[4096] = {0};
  memcpy(frame, record, sizeof *record);
  greet(&k, a, &answer);
  (void)say(&k, a, frame, sizeof *record + bytes);
  const bool hung_up = hear(&k, a, &answer, sizeof answer) == 0;
  close_client(&k);
  return hung_up;
}

static void wrong_records_break_the_connection(void) {
  end a;
  open_end(&a, 0, "ca/ca.pem");
  gt_tcp_record oversize = record_of(GT_TCP_FRAME, 1, (uint32_t)FRAME_MAX + 1),
                gap = record_of(GT_TCP_FRAME, 2, 5), empty = record_of(GT_TCP_FRAME, 1, 0),
                again = record_of(GT_TCP_HELLO, 7, 0), unknown = record_of(9, 1, 0),
                magic = record_of(GT_TCP_ACK, 0, 0), other = magic, unsent = magic,
                long_ack = magic;
  magic.magic++;
  other.from = 0;
  unsent.ack = 1;
  long_ack.bytes = 4;
  const gt_tcp_record *const wrong[] = {&oversize, &gap,   &empty,  &again,   &unknown,
                                        &magic,    &other, &unsent, &long_ack};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (!hangs_up(&a, wrong[i], 8)) fail_msg("record %zu is taken", i);
  assert_int_equal(a.received, 0);
  close_end(&a);
}

/* A frame that comes twice is acknowledged twice and delivered once. */
static void duplicates_are_dropped(void) {
  end a;
  client k;
  gt_tcp_record answer, head;
  uint8_t record[sizeof head + 1];
  open_end(&a, 0, "ca/ca.pem");
  greet(&k, &a, &answer);
  assert_int_equal(make_frame(record + sizeof head, 1, 0), 1);
  head = record_of(GT_TCP_FRAME, 1, 1);
  memcpy(record, &head, sizeof head);
  gt_ns heard = gt_transport_tcp.heard(a.t, 1);
  assert_true(say(&k, &a, record, 10));
  while (gt_transport_tcp.heard(a.t, 1) == heard) step(&a, 0); /* a part counts */
  for (int i = 0; i < 2; i++) {
    const size_t from = i == 0 ? 10 : 0;
    assert_true(say(&k, &a, record + from, sizeof record - from));
    assert_int_equal(hear(&k, &a, &answer, sizeof answer), sizeof answer);
    assert_int_equal(answer.ack, 1);
  }
  assert_int_equal(a.received, 1);
  close_client(&k);
  close_end(&a);
}

/* Without TLS a frame that was changed on its way is sent again. */
static void damaged_frames_are_refused(void) {
  end a;
  client k;
  gt_tcp_record hello = record_of(GT_TCP_HELLO, 7, 0), answer, head;
  uint8_t record[sizeof head + 1];
  open_end(&a, 0, NULL);
  head = record_of(GT_TCP_FRAME, 1, 1);
  hello.sum = gt_tcp_sum(&hello, NULL);
  open_client(&k, NULL);
  assert_true(say(&k, &a, &hello, sizeof hello));
  assert_int_equal(hear(&k, &a, &answer, sizeof answer), sizeof answer);
  make_frame(record + sizeof head, 1, 0);
  head.sum = gt_tcp_sum(&head, record + sizeof head) ^ 1;
  memcpy(record, &head, sizeof head);
  assert_true(say(&k, &a, record, sizeof record));
  assert_int_equal(hear(&k, &a, &answer, sizeof answer), 0);
  assert_int_equal(a.received, 0);
  close_client(&k);
  close_end(&a);
}

/* Connections that say nothing, or garbage, are few and end; frames arrive meanwhile. */
static void strangers_do_not_disturb(void) {
  end ends[2];
  client garbage[2], silent[12];
  char noise[300];
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)(i * 77 + 3);
  open_end(&ends[0], 0, "ca/ca.pem");
  for (int i = 0; i < 2; i++) {
    open_client(&garbage[i], NULL);
    (void)say(&garbage[i], &ends[0], i % 2 ? noise : "GET / HTTP/1.0\r\n\r\n", i % 2 ? 300 : 18);
  }
  for (int i = 0; i < 12; i++) open_client(&silent[i], NULL);
  for (int i = 0; i < 50; i++) step(&ends[0], 0);
  gt_listener *l = &((gt_tcp *)ends[0].tcp)->listener;
  assert_in_range(l->n, 1, 8); /* at most 8 of one source */
  for (size_t i = 0; i < l->n; i++) l->half[i].c.since -= gt_from_seconds(GT_TCP_HANDSHAKE_S);
  step(&ends[0], 0);
  assert_int_equal(l->n, 0);
  open_end(&ends[1], 1, "ca/ca.pem");
  exchange(ends, 20, 0);
  for (int i = 0; i < 2; i++) close_client(&garbage[i]);
  for (int i = 0; i < 12; i++) close_client(&silent[i]);
  for (size_t i = 0; i < 2; i++) close_end(&ends[i]);
}

int main(void) {
  gt_peers *world = gt_net_start(LIMIT_S);
  alone = gt_peers_of_mpi(MPI_COMM_SELF, false);
  const int failed =
      RUN_TESTS(set_up, tear_down, frames_arrive_with_tls, frames_arrive_without_tls,
                cut_connections_are_made_again, frames_of_several_connections_are_in_order,
                frames_do_not_follow_later_ones, only_the_region_is_greeted,
                expired_certificates_are_refused, own_files_must_fit, an_impostor_is_not_sent_to,
                wrong_records_break_the_connection, duplicates_are_dropped,
                damaged_frames_are_refused, strangers_do_not_disturb, a_silent_path_is_noticed);
  gt_peers_close(alone);
  gt_net_finalize(world, LIMIT_S);
  return failed;
}
