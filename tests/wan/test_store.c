/* Three regions joined by a folder, in one process: a payload for two of them, when one of these is
   lost or leaves, or their writer ends. */
#include <sys/wait.h>
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

static const gt_transport_ops *ops;

static void progress_all(void) {
  for (size_t r = 0; r < REGIONS; r++) ops->progress(site[r]);
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
    ops = endpoint->ops;
    site[r] = ops->open((gt_peers *)(void *)&servers,
                        &(gt_transport_spec){REGIONS, r, windows, BYTES, endpoint});
    frames[r] = gt_alloc(BYTES, 1);
  }
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  while (!all_met() && gt_now() < until) progress_all();
  assert_true(all_met());
}

static void close_site(size_t r) {
  gt_endpoint *endpoint = site[r] ? &site[r]->store->base : NULL;
  if (site[r]) ops->close(site[r], 0.1);
  gt_endpoint_close(endpoint);
  site[r] = NULL;
}

static void close_sites(void) {
  for (size_t r = 0; r < REGIONS; r++) {
    for (size_t peer = 0; site[r] && peer < REGIONS; peer++)
      site[r]->store->peers[peer].ended = true; /* so that no site waits */
    close_site(r);
    gt_free(frames[r]);
  }
}

/* Sends the same payload from A to B, then C. */
static void send_to_both(void) {
  const gt_frame_header head = {
      .kind = GT_MSG_STATE, .frame_bytes = PAYLOAD, .message_bytes = PAYLOAD, .sequence = 1};
  for (size_t peer = B; peer <= C; peer++) {
    memcpy(frames[peer], &head, GT_FRAME_HEADER_BYTES);
    memset(frames[peer] + GT_FRAME_HEADER_BYTES, 1, PAYLOAD);
    ops->send_frame(site[A], peer, 0, frames[peer], BYTES);
  }
}

/* Returns what C receives; NULL: nothing comes. */
static const uint8_t *received(bool with_a) {
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  const uint8_t *frame = NULL;
  size_t bytes = 0;
  while (!frame && gt_now() < until) {
    if (with_a) ops->progress(site[A]);
    ops->progress(site[C]);
    frame = ops->receive(site[C], A, &bytes);
  }
  if (frame) assert_int_equal(bytes, BYTES);
  return frame;
}

/* B has the object that C is to read, and is lost while it is written: the frame has another
   content then. */
static void a_region_is_lost_while_its_object_is_written(void) {
  open_sites("lost");
  write_text(in_folder("lost/0-1"), "no folder"); /* nothing can be written for B */
  send_to_both();
  ops->forget(site[A], B);
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
  while (!ops->left(site[A], B) && gt_now() < until) ops->progress(site[A]);
  assert_false(ops->sent(site[A], B, 0)); /* C is to read it */
  unlink(in_folder("left/0-1"));
  assert_non_null(received(true));
  assert_true(ops->sent(site[A], B, 0));
  close_sites();
}

static void all_is_written(void) {
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  send_to_both();
  while (!(ops->sent(site[A], B, 0) && ops->sent(site[A], C, 0)) && gt_now() < until)
    ops->progress(site[A]);
}

/* True if C finds that A has ended. */
static bool a_is_lost(void) {
  const gt_ns until = gt_now() + gt_from_seconds(LIMIT_S);
  gt_loss loss = GT_NOT_LOST;
  while (loss == GT_NOT_LOST && gt_now() < until) {
    ops->progress(site[C]);
    loss = ops->lost(site[C], A);
  }
  return loss == GT_ENDED;
}

static void a_writer_that_ends_leaves_what_is_not_read(void) {
  open_sites("ends");
  all_is_written();
  gt_endpoint_leave(&site[A]->store->base, GT_ERR_CKPT);
  close_site(A);
  const uint8_t *frame = received(false);
  assert_non_null(frame);
  assert_memory_equal(frame, frames[C], BYTES);
  ops->release(site[C], A);
  assert_true(a_is_lost());
  close_sites();
}

static void a_writer_ends_and_its_object_is_gone(void) {
  char path[512];
  open_sites("gone");
  all_is_written();
  snprintf(path, sizeof path, "%s/%s", in_folder("gone"), site[A]->latest->deletion.name);
  assert_int_equal(unlink(path), 0);
  ops->say_bye(site[A], GT_ERR_CKPT);
  assert_true(a_is_lost());
  close_sites();
}

/* A writer that leaves while an object is written waits for it, and deletes it. */
static void a_writer_leaves_while_its_object_is_written(void) {
  char path[512];
  open_sites("slow");
  write_text(in_folder("slow/0-1"), "no folder");
  send_to_both();
  snprintf(path, sizeof path, "%s/%s", in_folder("slow"), site[A]->latest->deletion.name);
  const char *blocked = in_folder("slow/0-1");
  const pid_t child = fork();
  if (child == 0) {
    sleep(1);
    unlink(blocked);
    _exit(0);
  }
  const gt_ns since = gt_now();
  close_sites();
  assert_true(gt_now() - since < gt_from_seconds(LIMIT_S / 2));
  assert_int_not_equal(access(path, F_OK), 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
}

TESTS(a_region_is_lost_while_its_object_is_written, a_region_leaves_while_its_object_is_written,
      a_writer_that_ends_leaves_what_is_not_read, a_writer_ends_and_its_object_is_gone,
      a_writer_leaves_while_its_object_is_written)
