/* Three regions joined by a folder, in one process: a payload for two of them, when one of these is
   lost or leaves. */
#include <unistd.h>

#include "geotrain/wan_store.h"
#include "store.h"
#include "tests.h"

#define REGIONS ((size_t)3)
#define PAYLOAD GT_LINK_SHARED_MIN
#define BYTES   (GT_FRAME_HEADER_BYTES + PAYLOAD)
#define LIMIT_S 20.0

enum { A, B, C };
static gt_transport *site[REGIONS];
static uint8_t *frames[REGIONS]; /* of A, to each other region */

static const gt_transport_ops *ops(void) {
  return site[A]->store->base.ops;
}

static void progress_all(void) {
  for (size_t r = 0; r < REGIONS; r++) ops()->progress(site[r]);
}

static bool all_met(void) {
  for (size_t i = 0; i < REGIONS * REGIONS; i++)
    if (i / REGIONS != i % REGIONS && !site[i / REGIONS]->store->peers[i % REGIONS].start)
      return false;
  return true;
}

static void open_sites(const char *folder) {
  static const char *const names[] = {"a", "b", "c"};
  static const double polls_s[] = {1e-3, 1e-3, 1e-3};
  static const size_t windows[] = {8, 8, 8};
  static char url[512], servers; /* servers: not used if regions return */
  snprintf(url, sizeof url, "file://%s", in_folder(folder));
  for (size_t r = 0; r < REGIONS; r++) {
    gt_endpoint *endpoint = NULL;
    must(gt_store_join(&endpoint, &(gt_store_spec){.url = url,
                                                   .names = names,
                                                   .nregions = REGIONS,
                                                   .self = r,
                                                   .poll_s = 1e-3,
                                                   .polls_s = polls_s,
                                                   .patience_s = LIMIT_S,
                                                   .restarts = true}));
    site[r] = endpoint->ops->open((gt_peers *)(void *)&servers,
                                  &(gt_transport_spec){REGIONS, r, windows, BYTES, endpoint});
    frames[r] = gt_alloc(BYTES, 1);
  }
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  while (!all_met() && gt_now() < until) progress_all();
  assert_true(all_met());
}

static void close_sites(void) {
  for (size_t r = 0; r < REGIONS; r++) {
    for (size_t peer = 0; site[r] && peer < REGIONS; peer++)
      site[r]->store->peers[peer].ended = true; /* so that nobody waits */
    gt_endpoint *endpoint = site[r] ? &site[r]->store->base : NULL;
    if (site[r]) endpoint->ops->close(site[r], 0.1);
    gt_endpoint_close(endpoint);
    gt_free(frames[r]);
    site[r] = NULL;
  }
}

/* Sends the same payload from A to B, then C. */
static void send_to_both(void) {
  const gt_frame_header head = {
      .kind = GT_MSG_STATE, .frame_bytes = PAYLOAD, .message_bytes = PAYLOAD, .sequence = 1};
  for (size_t peer = B; peer <= C; peer++) {
    memcpy(frames[peer], &head, GT_FRAME_HEADER_BYTES);
    memset(frames[peer] + GT_FRAME_HEADER_BYTES, 1, PAYLOAD);
    ops()->send_frame(site[A], peer, 0, frames[peer], BYTES);
  }
}

/* Returns what C receives; NULL: nothing comes. */
static const uint8_t *received(bool with_a) {
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  const uint8_t *frame = NULL;
  size_t bytes = 0;
  while (!frame && gt_now() < until) {
    if (with_a) ops()->progress(site[A]);
    ops()->progress(site[C]);
    frame = ops()->receive(site[C], A, &bytes);
  }
  if (frame) assert_int_equal(bytes, BYTES);
  return frame;
}

/* B has the object that C is to read, and is lost while it is written: the frame has another content
   then. */
static void a_region_is_lost_while_its_object_is_written(void) {
  open_sites("lost");
  write_text(in_folder("lost/0-1"), "no folder"); /* nothing can be written for B */
  send_to_both();
  ops()->forget(site[A], B);
  memset(frames[B] + GT_FRAME_HEADER_BYTES, 2, PAYLOAD);
  unlink(in_folder("lost/0-1"));
  const uint8_t *frame = received(true);
  assert_non_null(frame);
  assert_memory_equal(frame, frames[C], BYTES);
  close_sites();
}

static void a_region_leaves_while_its_object_is_written(void) {
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  open_sites("left");
  write_text(in_folder("left/0-1"), "no folder");
  send_to_both();
  site[A]->store->peers[B].ended = true;
  site[A]->store->peers[B].ended_at = gt_now();
  while (!ops()->left(site[A], B) && gt_now() < until) ops()->progress(site[A]);
  assert_false(ops()->sent(site[A], B, 0)); /* C is to read it */
  unlink(in_folder("left/0-1"));
  assert_non_null(received(true));
  assert_true(ops()->sent(site[A], B, 0));
  close_sites();
}

TESTS(a_region_is_lost_while_its_object_is_written, a_region_leaves_while_its_object_is_written)
