/* Frames: the size of a message on the wire, and how many are in flight to a peer. */
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

/* ---- frames in flight ------------------------------------------------------------------------ */

#define WINDOW_MIN       ((size_t)4)
#define WINDOW_MAX       ((size_t)256)
#define WINDOW_BYTES_MAX ((size_t)64 << 20)

/* Enough frames to fill the link for twice its round-trip time, within 64 MiB of memory. */
size_t gt_link_window(const gt_link_spec *spec, bool modelled, size_t frame_bytes) {
  size_t most = WINDOW_BYTES_MAX / frame_bytes;
  if (most > WINDOW_MAX) most = WINDOW_MAX;
  double rate_bps = gt_link_goodput(spec), round_trip_s = spec->latency_s + spec->back_s;
  double frames = 2.0 * rate_bps / 8.0 * round_trip_s / (double)frame_bytes;
  if (modelled && rate_bps <= 0.0 && round_trip_s > 0.0) frames = (double)most;
  if (frames > (double)most) frames = (double)most;
  size_t window = (size_t)frames + 1;
  return (window > WINDOW_MIN ? window : WINDOW_MIN) + GT_LINK_CONTROL_FRAMES;
}

size_t gt_link_frame_payload(size_t payload_max) {
  const size_t least = payload_max > GT_FRAME_MIN ? payload_max : GT_FRAME_MIN;
  return least < GT_FRAME_PAYLOAD_MAX ? least : GT_FRAME_PAYLOAD_MAX;
}

size_t gt_link_frames_bytes(const gt_link_spec *spec, bool modelled, size_t payload_max,
                            size_t coming) {
  const size_t payload = gt_link_frame_payload(payload_max),
               frames = gt_link_window(spec, modelled, payload) + GT_LINK_POSTED;
  return frames * (payload + GT_FRAME_HEADER_MAX) + (coming > payload ? payload_max : 0);
}
