/* Reads the resources of earlier starts from the region's record, because a checkpoint does not
   include work that was lost after it. */
#include "internal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

typedef struct {
  gt_past *past;
  gt_trend *trend;
  int64_t samples_kept;
  double share_of_sample;
  /* of the start being read */
  double from_s, until_s;
  double *from, *until; /* bytes to each region; from negative: not recorded */
  int64_t samples;
  gt_store_result store;
} reader;

/* Adds the resources of this start before the next one begins. */
static void settle(reader *r) {
  gt_past *p = r->past;
  if (r->until_s > r->from_s) p->used_s += r->until_s - r->from_s;
  for (size_t i = 0; i < p->n; i++) {
    if (r->from[i] >= 0 && r->until[i] > r->from[i]) p->bytes[i] += r->until[i] - r->from[i];
    r->from[i] = -1;
  }
  gt_store_add(&p->store, &r->store);
  r->store = (gt_store_result){0};
}

static void take_bytes(reader *r, const json_t *line) {
  const json_t *bytes = json_object_get(line, "wan_bytes_to");
  if (json_array_size(bytes) != r->past->n) return;
  for (size_t i = 0; i < r->past->n; i++) {
    r->until[i] = json_number_value(json_array_get(bytes, i));
    if (r->from[i] < 0) r->from[i] = r->until[i];
  }
}

/* Adds the mean loss since the previous line, for samples that the checkpoint includes. */
static void take_loss(reader *r, const json_t *line) {
  double loss = gt_json_number_of(line, "loss"), share;
  int64_t before = r->samples;
  r->samples = json_integer_value(json_object_get(line, "samples"));
  if (!r->trend || !isfinite(loss) || r->samples <= before || r->samples > r->samples_kept) return;
  share = 0.5 * (double)(before + r->samples) * r->share_of_sample;
  gt_trend_add(r->trend, share, loss * (double)(r->samples - before), r->samples - before);
}

static void on_line(void *ctx, const json_t *line) {
  reader *r = ctx;
  const char *event = json_string_value(json_object_get(line, "event"));
  double t = gt_json_number_of(line, "t");
  if (!event || !isfinite(t)) return;
  if (strcmp(event, "start") == 0 || strcmp(event, "resumed") == 0) {
    settle(r);
    r->past->starts++;
    r->from_s = r->until_s = t;
    r->samples = json_integer_value(json_object_get(line, "samples"));
  }
  if (t > r->until_s) r->until_s = t;
  take_bytes(r, line);
  if (json_object_get(line, "store")) gt_store_take(&r->store, json_object_get(line, "store"));
  if (strcmp(event, "progress") == 0) take_loss(r, line);
}

static void on_anew(void *ctx) {
  (void)ctx; /* the file is read once */
}

void gt_past_read(gt_past *out, const char *run_dir, const char *region, size_t nregions,
                  gt_trend *trend, int64_t samples, double done) {
  char path[PATH_MAX];
  *out = (gt_past){.bytes = GT_NEW_ARRAY(double, nregions), .n = nregions};
  reader r = {.past = out,
              .trend = trend,
              .samples_kept = samples,
              .share_of_sample = samples > 0 ? done / (double)samples : 0,
              .from = GT_NEW_ARRAY(double, nregions),
              .until = GT_NEW_ARRAY(double, nregions)};
  for (size_t i = 0; i < nregions; i++) r.from[i] = -1;
  snprintf(path, sizeof path, "%s/%s.jsonl", run_dir, region);
  gt_tail *tail = gt_tail_create(path);
  gt_tail_poll(tail, on_anew, on_line, &r);
  settle(&r);
  gt_tail_close(tail);
  gt_free(r.from);
  gt_free(r.until);
}

void gt_past_close(gt_past *past) {
  gt_free(past->bytes);
  *past = (gt_past){0};
}
