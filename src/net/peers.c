/* Groups of ranks: texts, meetings, and the agreement on the worst status, from the two messages
   that each kind of group has. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

void gt_peers_gather(gt_peers *peers, const void *own, size_t bytes, void *all, const char *what,
                     double limit_s) {
  peers->ops->gather(peers, own, bytes, all, &(gt_peers_wait){.what = what, .limit_s = limit_s});
}

void gt_peers_share(gt_peers *peers, size_t from, void *data, size_t bytes, const char *what,
                    double limit_s) {
  peers->ops->share(peers, from, data, bytes, &(gt_peers_wait){.what = what, .limit_s = limit_s});
}

void gt_peers_meet(gt_peers *peers, const gt_peers_wait *wait) {
  const uint8_t own = 1;
  uint8_t *all = GT_NEW_ARRAY(uint8_t, peers->size);
  peers->ops->gather(peers, &own, sizeof own, all, wait);
  gt_free(all);
}

void gt_peers_close(gt_peers *peers) {
  if (peers) peers->ops->close(peers);
}

/* ---- texts ----------------------------------------------------------------------------------- */

#define TEXT_MAX ((uint64_t)256 << 20)

/* Lengths and texts come from other ranks: each text is ended here. */
static void check_length(uint64_t bytes, size_t rank, const char *what) {
  if (bytes > TEXT_MAX)
    gt_panic(GT_ERR_JOB, "%s: a text of rank %zu has %llu bytes; expected at most %llu", what, rank,
             (unsigned long long)bytes, (unsigned long long)TEXT_MAX);
}

char *gt_peers_share_text(gt_peers *peers, const char *text, const char *what, double limit_s) {
  const bool own = peers->rank == 0 && text;
  uint64_t bytes = own ? strlen(text) + 1 : 0;
  gt_peers_share(peers, 0, &bytes, sizeof bytes, what, limit_s);
  if (bytes == 0) return NULL;
  check_length(bytes, 0, what);
  char *shared = gt_alloc(bytes, 1);
  /* of a region that returns, both are those of its first start */
  if (own) memcpy(shared, text, bytes <= strlen(text) ? bytes : strlen(text) + 1);
  gt_peers_share(peers, 0, shared, bytes, what, limit_s);
  shared[bytes - 1] = '\0';
  return shared;
}

char **gt_peers_gather_texts(gt_peers *peers, const char *text, const char *what, double limit_s) {
  const size_t n = peers->size;
  const uint64_t bytes = strlen(text) + 1;
  uint64_t *sizes = GT_NEW_ARRAY(uint64_t, n), most = 0;
  gt_peers_gather(peers, &bytes, sizeof bytes, sizes, what, limit_s);
  for (size_t i = 0; i < n; i++) {
    check_length(sizes[i], i, what);
    if (sizes[i] > most) most = sizes[i];
  }
  char *own = gt_alloc(most, 1), *all = gt_alloc(n, most), **texts = GT_NEW_ARRAY(char *, n);
  memcpy(own, text, bytes < most ? bytes : most);
  gt_peers_gather(peers, own, most, all, what, limit_s);
  for (size_t i = 0; i < n; i++) {
    all[(i + 1) * most - 1] = '\0';
    texts[i] = gt_strdup(all + i * most);
  }
  gt_free(all);
  gt_free(own);
  gt_free(sizes);
  return texts;
}

/* ---- agreement ------------------------------------------------------------------------------- */

gt_status gt_agree(gt_peers *peers, gt_status local, double limit_s) {
  const int32_t own = (int32_t)local;
  int32_t *all = GT_NEW_ARRAY(int32_t, peers->size);
  size_t source = 0;
  gt_peers_gather(peers, &own, sizeof own, all, "the other ranks to agree", limit_s);
  all[peers->rank] = own;
  for (size_t i = 1; i < peers->size; i++)
    if (all[i] > all[source]) source = i;
  const gt_status status = (gt_status)all[source];
  gt_free(all);
  if (status == GT_OK) return GT_OK;

  char text[GT_ERROR_TEXT_MAX];
  snprintf(text, sizeof text, "%s", gt_error_text());
  gt_peers_share(peers, source, text, sizeof text, "the text of another rank's error", limit_s);
  text[sizeof text - 1] = '\0';
  /* The text is complete, with a source line if it has one.  GT_ERR_LOST: this code does not add
     another one. */
  if (peers->rank != source) (void)GT_FAIL(GT_ERR_LOST, "%s", text);
  return status;
}
