/* A non-blocking TCP connection, with or without TLS. */
#pragma once

#include <sys/socket.h>

#include "tls.h"

#define GT_TCP_HANDSHAKE_S 10.0

/* A proxy's answer to CONNECT. */
typedef struct {
  bool reached, asked;
  char line[96]; /* the first one, as far as it fits */
  size_t bytes;  /* so far */
  uint32_t tail; /* the last four */
} gt_connection_answer;

typedef struct {
  int fd; /* -1: none */
  SSL *ssl;
  bool connected, secure; /* TCP, and through the proxy; TLS, if it is used */
  gt_ns since;            /* when it began */
  const char *through;    /* "host:port" that a proxy is asked for, borrowed; NULL: none */
  gt_connection_answer answer;
  char fault[160];
} gt_connection;

/* Each of these functions returns the bytes moved, or 1; 0: not now; -1: broken, and c->fault says
   why. */
/* Dials an address.  through NULL: that of the other side; else of an HTTP proxy, which is asked
   for this host and port. */
int gt_connection_dial(gt_connection *c, const struct sockaddr *to, socklen_t size,
                       const char *through);
/* Continues connecting and the handshake; tls NULL: none.  Returns 1 when both are complete. */
int gt_connection_advance(gt_connection *c, gt_tls *tls, bool accept);
long gt_connection_read(gt_connection *c, void *to, size_t bytes);
long gt_connection_write(gt_connection *c, const void *from, size_t bytes);

/* Takes a socket that has been accepted. */
void gt_connection_take(gt_connection *c, int fd);
/* Sets after how long the kernel gives the connection up if nothing can be sent; and has it ask the
   other side for a sign every second in which nothing is sent. */
void gt_connection_patience(const gt_connection *c, double seconds);
/* True if the other side's kernel has not acknowledged anything for about a second, in which it was
   asked at least twice.  A program that does not read is not silent. */
bool gt_connection_silent(const gt_connection *c);
/* True if the other side sends nothing more: what it has sent can still be read. */
bool gt_connection_closed(const gt_connection *c);
void gt_connection_close(gt_connection *c);
