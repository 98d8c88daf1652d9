/* Frames: what a message of a given size puts on the wire. */
#include "geotrain/link.h"

_Static_assert(sizeof(gt_frame_header) == GT_FRAME_HEADER_BYTES, "the header is 64 bytes on the wire");

size_t gt_wire_bytes(size_t payload_bytes) {
  size_t frames = payload_bytes / GT_FRAME_PAYLOAD_MAX + (payload_bytes % GT_FRAME_PAYLOAD_MAX != 0);
  if (frames == 0) frames = 1; /* an empty message is one header */
  return payload_bytes + frames * GT_FRAME_HEADER_BYTES;
}
