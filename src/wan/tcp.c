/* The port of a region: addresses, and connections until they have said who they are.  The port
   faces the internet: their number and time are bounded, and refusals cost one line a minute. */
#include "relay.h"
#include "tcp.h"

#include "geotrain/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define ACCEPTED_AT_ONCE 16
#define HALF_OPEN_SOURCE 8 /* of GT_TCP_HALF_OPEN, from one unknown host */
#define QUIET_S          60
#define BACKLOG          256
#define RESOLVE_LIMIT_S  30.0
#define KEY_MAX          ((size_t)96)
/* of the patience, after which the others have lost a start that a proxy keeps connected */
#define REFUSED 1.5

/* ---- addresses ------------------------------------------------------------------------------- */

/* Splits "host:port" and "[host]:port"; the caller frees *host.  False: it has another form. */
static bool split(const char *address, char **host, const char **port) {
  const char *colon = strrchr(address, ':');
  if (!colon || colon == address || colon[1] == '\0') return false;
  const bool bracketed = address[0] == '[' && colon[-1] == ']';
  *host = gt_strdup(address + bracketed);
  (*host)[colon - address - 2 * bracketed] = '\0';
  *port = colon + 1;
  return bracketed || !strchr(*host, ':');
}

/* key: of the job, with the region's name. */
static gt_status resolve(struct addrinfo **out, const char *address, int flags, const char *key) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
  char *host = NULL;
  const char *port;
  gt_status status = GT_OK;
  if (!split(address, &host, &port))
    status = GT_FAIL(GT_ERR_JOB, "%s is \"%.80s\"; expected host:port", key, address);
  else {
    gt_watch_begin(key, RESOLVE_LIMIT_S, GT_ERR_LOST);
    const int error = getaddrinfo(host, port, &hints, out);
    gt_watch_end();
    if (error != 0)
      status = GT_FAIL(GT_ERR_LOST, "%s is \"%.80s\", for which this host knows no address: %s",
                       key, address, gai_strerror(error));
  }
  gt_free(host);
  return status;
}

/* ---- log ------------------------------------------------------------------------------------- */

bool gt_quiet_over(gt_quiet *quiet, size_t *unsaid) {
  const gt_ns now = gt_now();
  *unsaid = quiet->unsaid;
  if (now < quiet->silent_until) {
    quiet->unsaid++;
    return false;
  }
  *quiet = (gt_quiet){.silent_until = now + QUIET_S * GT_SECOND};
  return true;
}

void gt_listener_refuse(gt_listener *l, const char *why) {
  size_t unsaid;
  if (gt_quiet_over(&l->quiet, &unsaid))
    gt_log(GT_LOG_WARN, "a connection to the WAN port was refused: %s (%zu others not logged)", why,
           unsaid);
}

/* ---- the port -------------------------------------------------------------------------------- */

static gt_status bind_port(gt_listener *l, const char *address, const struct addrinfo *to,
                           const char *key) {
  const int on = 1;
  l->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (l->fd >= 0 && setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      bind(l->fd, to->ai_addr, to->ai_addrlen) == 0 && listen(l->fd, BACKLOG) == 0)
    return GT_OK;
  return GT_FAIL(
      GT_ERR_LOST,
      "%s is \"%s\", where this host cannot listen: %s; expected a free port of an address "
      "of the host with the PS",
      key, address, strerror(errno));
}

static gt_status open_port(gt_listener *l, const char *address, const gt_tcp_region *own) {
  char key[KEY_MAX];
  struct addrinfo *to = NULL;
  snprintf(key, sizeof key, "regions[].%s of region %.64s",
           own->address && strcmp(own->address, address) == 0 ? "address" : "listen", own->name);
  GT_TRY(resolve(&to, address, AI_PASSIVE, key));
  const gt_status status = bind_port(l, address, to, key);
  freeaddrinfo(to);
  return status;
}

static void source_of(const struct sockaddr_storage *from, uint8_t source[16]) {
  memset(source, 0, 16);
  if (from->ss_family == AF_INET)
    memcpy(source, &((const struct sockaddr_in *)from)->sin_addr, 4);
  else if (from->ss_family == AF_INET6)
    memcpy(source, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* A handshake takes about 0.6 ms of CPU time.  Under any number of connections a second, these
   limits leave 4 % of a core: 20 from all strangers together, 50 from the hosts of regions. */
typedef struct {
  double reserve, per_s;
} rule;

static const rule of_known = {256, 50}, of_strangers = {32, 20};

static double filled(const gt_allowance *a, const rule *r, gt_ns now) {
  const double left = a->left + r->per_s * gt_seconds(now - a->at);
  return a->at == 0 || left > r->reserve ? r->reserve : left;
}

static bool take(gt_allowance *a, const rule *r, gt_ns now) {
  const double left = filled(a, r, now);
  *a = (gt_allowance){left < 1 ? left : left - 1, now};
  return left >= 1;
}

static gt_source *find_source(gt_listener *l, const uint8_t address[16]) {
  for (size_t i = 0; i < l->nsources; i++)
    if (memcmp(l->sources[i].address, address, 16) == 0) return &l->sources[i];
  return NULL;
}

/* A new host takes the place of the stranger that came longest ago, or of any. */
static gt_source *add_source(gt_listener *l, const uint8_t address[16]) {
  gt_source *s = &l->sources[0];
  if (l->nsources < GT_TCP_SOURCES) {
    s = &l->sources[l->nsources++];
  } else {
    for (size_t i = 1; i < GT_TCP_SOURCES; i++) {
      const gt_source *other = &l->sources[i];
      if (other->known < s->known ||
          (other->known == s->known && other->allowance.at < s->allowance.at))
        s = &l->sources[i];
    }
  }
  *s = (gt_source){.known = false};
  memcpy(s->address, address, 16);
  return s;
}

/* True if a handshake with the host may begin now. */
static bool is_allowed(gt_listener *l, const uint8_t address[16]) {
  const gt_ns now = gt_now();
  gt_source *s = find_source(l, address);
  if (!s) s = add_source(l, address);
  if (s->known) return take(&s->allowance, &of_known, now);
  /* equal shares: attackers from many hosts do not keep out one that comes for the first time */
  const rule of_one = {4, of_strangers.per_s / (double)l->nsources};
  return take(&s->allowance, &of_one, now) && take(&l->strangers, &of_strangers, now);
}

static void know(gt_listener *l, const gt_half_open *h) {
  gt_source *s = find_source(l, h->source);
  if (!s || s->known || h->hello.magic != GT_TCP_MAGIC) return;
  s->known = true;
  s->allowance = (gt_allowance){0}; /* that of a stranger does not count */
}

static size_t open_from(const gt_listener *l, const uint8_t source[16]) {
  size_t n = 0;
  for (size_t i = 0; i < l->n; i++) n += memcmp(l->half[i].source, source, 16) == 0;
  return n;
}

/* The host of a region takes the place of the oldest handshake. */
static bool make_place(gt_listener *l, const gt_source *s) {
  size_t oldest = 0;
  if (!s || !s->known) return false;
  for (size_t i = 1; i < l->n; i++)
    if (l->half[i].c.since < l->half[oldest].c.since) oldest = i;
  gt_connection_close(&l->half[oldest].c);
  l->half[oldest] = l->half[--l->n];
  return true;
}

static void accept_some(gt_listener *l) {
  for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof from;
    uint8_t source[16];
    const int fd = accept4(l->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    source_of(&from, source);
    const gt_source *s = find_source(l, source);
    const size_t most = s && s->known ? GT_TCP_HALF_OPEN / 2 : HALF_OPEN_SOURCE;
    const char *fault = NULL;
    if (open_from(l, source) >= most || (l->n == GT_TCP_HALF_OPEN && !make_place(l, s)))
      fault = "too many are in their handshake";
    else if (!is_allowed(l, source))
      fault = "too many come from its host, or from unknown hosts";
    if (fault) {
      close(fd);
      gt_listener_refuse(l, fault);
      continue;
    }
    gt_half_open *h = &l->half[l->n++];
    *h = (gt_half_open){.have = 0};
    gt_connection_take(&h->c, fd);
    h->c.connected = true;
    memcpy(h->source, source, sizeof source);
  }
}

/* Returns 1 when the connection has said who it is. */
static long advance(gt_half_open *h, gt_tls *tls) {
  long done = gt_connection_advance(&h->c, tls, true);
  while (done > 0 && h->have < sizeof h->hello) {
    done = gt_connection_read(&h->c, (char *)&h->hello + h->have, sizeof h->hello - h->have);
    if (done > 0) h->have += (size_t)done;
  }
  if (done == 0 && gt_now() - h->c.since > gt_from_seconds(GT_TCP_HANDSHAKE_S)) {
    snprintf(h->c.fault, sizeof h->c.fault, "its handshake took more than %.0f s",
             GT_TCP_HANDSHAKE_S);
    return -1;
  }
  return done;
}

bool gt_listener_next(gt_listener *l, gt_tls *tls, gt_connection *c, gt_tcp_record *hello) {
  if (l->fd < 0) return false;
  accept_some(l);
  for (size_t i = 0; i < l->n;) {
    const long done = advance(&l->half[i], tls);
    if (done == 0) {
      i++;
      continue;
    }
    gt_half_open h = l->half[i];
    l->half[i] = l->half[--l->n];
    if (done > 0) {
      know(l, &h);
      *c = h.c;
      *hello = h.hello;
      return true;
    }
    gt_listener_refuse(l, h.c.fault);
    gt_connection_close(&h.c);
  }
  return false;
}

/* ---- life ------------------------------------------------------------------------------------ */

size_t gt_tcp_relay(const gt_tcp *tcp, size_t a, size_t b) {
  size_t r = 0;
  if (tcp->sites[a].address || tcp->sites[b].address) return tcp->base.nregions;
  while (r < tcp->base.nregions && !tcp->sites[r].address) r++;
  return r;
}

bool gt_tcp_dials(const gt_tcp *tcp, size_t peer) {
  if (gt_tcp_relay(tcp, tcp->base.self, peer) < tcp->base.nregions) return true;
  return tcp->sites[peer].address && (!tcp->sites[tcp->base.self].address || tcp->base.self > peer);
}

/* Through a proxy, addresses of other regions are the proxy's to resolve. */
static gt_status open_site(gt_tcp *tcp, size_t region, const gt_tcp_region *as, bool resolves) {
  gt_tcp_site *site = &tcp->sites[region];
  char key[KEY_MAX];
  if (!as->address) return GT_OK;
  site->address = gt_strdup(as->address);
  snprintf(key, sizeof key, "regions[].address of region %.64s", as->name);
  return resolves ? resolve(&site->addresses, as->address, 0, key) : GT_OK;
}

static gt_status open_proxy(gt_tcp *tcp, const char *address) {
  tcp->proxy.address = gt_strdup(address);
  return resolve(&tcp->proxy.addresses, address, 0, "wan.proxy");
}

static void close_site(gt_tcp_site *site) {
  if (site->addresses) freeaddrinfo(site->addresses);
  gt_free(site->address);
}

static void close_tcp(gt_endpoint *endpoint) {
  gt_tcp *tcp = (gt_tcp *)endpoint;
  gt_relay_close(tcp);
  for (size_t i = 0; i < tcp->listener.n; i++) gt_connection_close(&tcp->listener.half[i].c);
  if (tcp->listener.fd >= 0) close(tcp->listener.fd);
  for (size_t i = 0; i < tcp->base.nregions * tcp->nstreams; i++)
    gt_connection_close(&tcp->parked[i].c);
  for (size_t r = 0; r < tcp->base.nregions; r++) close_site(&tcp->sites[r]);
  close_site(&tcp->proxy);
  gt_tls_close(tcp->tls);
  gt_free(tcp->ended);
  gt_free(tcp->parked);
  gt_free(tcp->sites);
  gt_endpoint_free(endpoint);
  gt_free(tcp);
}

gt_status gt_tcp_create(gt_endpoint **out, const gt_tcp_spec *spec, const gt_transport_ops *ops) {
  gt_tcp *tcp = GT_NEW(gt_tcp);
  const char **names = GT_NEW_ARRAY(const char *, spec->nregions);
  for (size_t r = 0; r < spec->nregions; r++) names[r] = spec->regions[r].name;
  gt_endpoint_init(&tcp->base, ops, names, spec->nregions, spec->self);
  gt_free(names);
  tcp->base.close = close_tcp;
  tcp->base.restarts = spec->restarts;
  tcp->ended = GT_NEW_ARRAY(uint64_t, spec->nregions);
  tcp->nstreams = spec->streams > 0 ? spec->streams : 1;
  tcp->base.patience_s = spec->patience_s;
  tcp->refused_s = REFUSED * spec->patience_s;
  tcp->listener.fd = -1;
  tcp->sites = GT_NEW_ARRAY(gt_tcp_site, spec->nregions);
  tcp->parked = GT_NEW_ARRAY(gt_parked, spec->nregions * tcp->nstreams);
  for (size_t i = 0; i < spec->nregions * tcp->nstreams; i++) tcp->parked[i].c.fd = -1;
  gt_status status = GT_OK;
  for (size_t r = 0; r < spec->nregions && status == GT_OK; r++)
    status = open_site(tcp, r, &spec->regions[r], !spec->proxy && r != spec->self);
  if (status == GT_OK && spec->proxy) status = open_proxy(tcp, spec->proxy);
  if (status == GT_OK && spec->ca)
    status =
        gt_tls_open(&tcp->tls, spec->ca, spec->cert, spec->key, spec->regions[spec->self].name);
  if (status == GT_OK && spec->listen)
    status = open_port(&tcp->listener, spec->listen, &spec->regions[spec->self]);
  if (status == GT_OK)
    *out = &tcp->base;
  else
    close_tcp(&tcp->base);
  return status;
}
