/* The records on a TCP connection between two regions. */
#pragma once

#include "geotrain/base.h"

#define GT_TCP_MAGIC   UINT32_C(0x31525447) /* "GTR1" */
#define GT_TCP_VERSION 2

typedef enum {
  GT_TCP_HELLO = 1,
  GT_TCP_FRAME,
  GT_TCP_ACK,
  GT_TCP_BYE,
  GT_TCP_REFUSED /* instead of HELLO: another start of the region is connected */
} gt_tcp_kind;

/* The header of a record, in wire format; `bytes` bytes of a frame follow. */
typedef struct {
  uint32_t magic;
  uint16_t kind, version, from, to;
  uint32_t bytes;
  uint32_t sum;    /* without TLS: CRC-32 of the record, computed with sum 0 */
  uint32_t stream; /* number of the connection in its lane */
  /* of a frame: its number, from 1; of HELLO: the number of the transport; of BYE: the exit code */
  uint64_t sequence;
  uint64_t ack;        /* frames received so far */
  uint64_t start;      /* number of this start of the sender */
  uint64_t peer_start; /* that of the receiver, as far as the sender knows; 0: unknown */
} gt_tcp_record;

/* Returns the CRC-32 of a record with its frame. */
uint32_t gt_tcp_sum(const gt_tcp_record *record, const void *frame);
