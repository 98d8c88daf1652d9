/* Frames: the size of a message on the wire. */
#include <stddef.h>

#include "geotrain/link.h"

_Static_assert(offsetof(gt_frame_header, route) == GT_FRAME_HEADER_BYTES,
               "the header is 64 bytes on the wire");
_Static_assert(sizeof(gt_frame_header) == GT_FRAME_HEADER_MAX, "with its route it is 96 bytes");

static size_t wire_bytes(size_t payload_bytes, size_t header_bytes) {
  size_t frames =
      payload_bytes / GT_FRAME_PAYLOAD_MAX + (payload_bytes % GT_FRAME_PAYLOAD_MAX != 0);
  if (frames == 0) frames = 1; /* an empty message is one header */
  return payload_bytes + frames * header_bytes;
}

size_t gt_wire_bytes(size_t payload_bytes) {
  return wire_bytes(payload_bytes, GT_FRAME_HEADER_BYTES);
}

size_t gt_message_wire_bytes(const gt_frame_header *head, size_t payload_bytes) {
  return wire_bytes(payload_bytes, gt_header_bytes(head));
}
