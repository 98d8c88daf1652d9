/* geotrain data fetch: makes the copy of a data set at a URL before a run needs it. */
#include <stdio.h>

#include "cli.h"
#include "geotrain/store.h"

#define PATIENCE_S 60.0
#define STEP_S     0.2
#define MB         ((size_t)1000000)

static gt_status say(const char *url) {
  char *path, hex[GT_SHA256_HEX];
  GT_TRY(gt_store_copy(url, &path));
  const gt_status status = gt_store_hash(path, hex);
  if (status == GT_OK) printf("copy    %s\nsha256  %s\n", path, hex);
  gt_free(path);
  return status;
}

gt_status gt_data_fetch(const char *url, bool again) {
  gt_fetch *fetch;
  gt_status status;
  bool done = false;
  GT_TRY(gt_fetch_open(&fetch, url, PATIENCE_S, again));
  gt_progress_begin("data fetch");
  while ((status = gt_fetch_step(fetch, STEP_S, &done)) == GT_OK && !done) {
    int64_t whole;
    const int64_t have = gt_fetch_bytes(fetch, &whole);
    gt_progress_of((size_t)have / MB, (size_t)whole / MB, "MB");
  }
  gt_progress_end();
  gt_fetch_close(fetch);
  return status == GT_OK ? say(url) : status;
}
