/* A non-blocking TCP connection, with or without TLS, and the records on it. */
#ifndef GEOTRAIN_WAN_CONNECTION_H
#define GEOTRAIN_WAN_CONNECTION_H

#include <sys/socket.h>

#include "tls.h"

#define GT_TCP_MAGIC       UINT32_C(0x31525447) /* "GTR1" */
#define GT_TCP_HANDSHAKE_S 10.0

typedef enum { GT_TCP_HELLO = 1, GT_TCP_FRAME, GT_TCP_ACK, GT_TCP_BYE } gt_tcp_kind;

/* The header of a record; `bytes` bytes of a frame follow. */
typedef struct {
  uint32_t magic;
  uint16_t kind, from;
  uint32_t bytes;
  uint32_t sum; /* without TLS: CRC-32 of the record, computed with sum 0 */
  uint64_t
      sequence; /* of a frame, from 1; of HELLO: the number of its transport; of BYE: the exit code */
  uint64_t ack; /* frames received so far */
} gt_tcp_record;

typedef struct {
  int fd; /* -1: none */
  SSL *ssl;
  bool connected, secure; /* TCP; TLS, if it is used */
  gt_ns since;            /* when it began */
  char fault[160];
} gt_connection;

/* Each of these functions returns the bytes moved, or 1; 0: not now; -1: broken, and c->fault says
   why. */
/* Dials an address. */
int gt_connection_dial(gt_connection *c, const struct sockaddr *to, socklen_t size);
/* Continues connecting and the handshake; tls NULL: none.  Returns 1 when both are complete. */
int gt_connection_advance(gt_connection *c, gt_tls *tls, bool accept);
long gt_connection_read(gt_connection *c, void *to, size_t bytes);
long gt_connection_write(gt_connection *c, const void *from, size_t bytes);

/* Takes a socket that has been accepted. */
void gt_connection_take(gt_connection *c, int fd);
/* Sets after how long without any acknowledgement the kernel gives the connection up. */
void gt_connection_patience(const gt_connection *c, double seconds);
void gt_connection_close(gt_connection *c);

/* Returns the CRC-32 of a record with its frame. */
uint32_t gt_tcp_sum(const gt_tcp_record *record, const void *frame);

#endif
