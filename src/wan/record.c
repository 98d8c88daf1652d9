/* The sum of a record. */
#include "record.h"

#include <zlib.h>

uint32_t gt_tcp_sum(const gt_tcp_record *record, const void *frame) {
  gt_tcp_record head = *record;
  head.sum = 0;
  const uLong sum = crc32(0, (const Bytef *)&head, sizeof head);
  return (uint32_t)(record->bytes ? crc32(sum, frame, record->bytes) : sum);
}
