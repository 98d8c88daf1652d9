/* The port, certificates and addresses of a region, from which its transport over TCP is made. */
#pragma once

#include <netdb.h>

#include "connection.h"
#include "internal.h"
#include "record.h"
#include "geotrain/wan_tcp.h"

#define GT_TCP_HALF_OPEN 64
#define GT_TCP_SOURCES   128

/* A connection that has been accepted and has not said who it is. */
typedef struct {
  gt_connection c;
  uint8_t source[16]; /* its IP address */
  gt_tcp_record hello;
  size_t have; /* bytes of hello */
} gt_half_open;

/* A message that recurs is logged once a minute. */
typedef struct {
  gt_ns silent_until;
  size_t unsaid;
} gt_quiet;

/* Handshakes that may begin: a reserve, filled at a rate. */
typedef struct {
  double left;
  gt_ns at;
} gt_allowance;

/* A host that has tried to connect. */
typedef struct {
  uint8_t address[16];
  bool known; /* a region has connected from there */
  gt_allowance allowance;
} gt_source;

typedef struct {
  int fd; /* -1: none */
  gt_half_open half[GT_TCP_HALF_OPEN];
  size_t n;
  gt_source sources[GT_TCP_SOURCES];
  size_t nsources;
  gt_allowance strangers; /* of all hosts that are not known */
  gt_quiet quiet;
} gt_listener;

typedef struct {
  char *address;              /* NULL: it only dials */
  struct addrinfo *addresses; /* NULL also if a proxy finds them */
} gt_tcp_site;

/* A connection whose transport is not open yet: the peer is ahead. */
typedef struct {
  gt_connection c; /* fd -1: none */
  gt_tcp_record hello;
} gt_parked;

typedef struct gt_leg gt_leg;
enum { GT_TCP_OF_PEERS, GT_TCP_OF_GATEWAY, GT_TCP_TRANSPORTS };

typedef struct {
  gt_endpoint base;
  gt_tcp_site *sites; /* nregions */
  gt_tcp_site proxy;  /* address NULL: none */
  gt_tls *tls;        /* NULL: none */
  gt_listener listener;
  size_t nstreams; /* connections of a lane between gateways */
  uint64_t *ended; /* nregions: the start of each region that has ended with an error; 0: none */
  gt_transport *open[GT_TCP_TRANSPORTS]; /* NULL: not open */
  gt_parked *parked;                     /* nregions x nstreams */
  gt_leg *legs;                          /* of the relay */
  double refused_s; /* how long other regions may take another start of this one for connected */
} gt_tcp;

/* Returns the region that relays between two regions that both only dial; nregions: none does. */
size_t gt_tcp_relay(const gt_tcp *tcp, size_t a, size_t b);
/* gt_tcp_open, whose transport has these operations. */
gt_status gt_tcp_create(gt_endpoint **out, const gt_tcp_spec *spec, const gt_transport_ops *ops);
/* True if this region dials the peer, or its relay; else the peer dials this region. */
bool gt_tcp_dials(const gt_tcp *tcp, size_t peer);
/* True if it is time to log a message; then *unsaid is the number of those not logged since the
   last. */
bool gt_quiet_over(gt_quiet *quiet, size_t *unsaid);
/* Logs why a connection was refused. */
void gt_listener_refuse(gt_listener *l, const char *why);
/* Accepts connections and continues their handshakes.  True: *c has been handed over, with what it
   says first. */
bool gt_listener_next(gt_listener *l, gt_tls *tls, gt_connection *c, gt_tcp_record *hello);
