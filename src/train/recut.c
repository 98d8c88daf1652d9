/* A resume can divide the model at other places, or move stages to other regions.  Parameters that
   a region then needs and that are missing in its own file of the round come from the files of the
   other regions. */
#include "stages.h"

#include <stdio.h>
#include <string.h>

/* ---- the part of a checkpoint ---------------------------------------------------------------- */

/* Parameters or buffers: their array, and the position of its floats in the whole model (position
   and count, range by range). */
typedef struct {
  const char *array, *places;
} part_names;
enum { PARAMS, BUFFERS, NPARTS };
static const part_names NAMES[NPARTS] = {{"params", "params_at"}, {"buffers", "buffers_at"}};

int64_t *gt_recut_places(const gt_part_ranges *ranges) {
  int64_t *at = GT_NEW_ARRAY(int64_t, 2 * ranges->n + 1);
  for (size_t i = 0; i < ranges->n; i++) {
    at[2 * i] = (int64_t)ranges->ranges[i].whole;
    at[2 * i + 1] = (int64_t)ranges->ranges[i].count;
  }
  return at;
}

void gt_recut_save(const gt_region_part *part, int64_t *params, int64_t *buffers, gt_state *state) {
  gt_state_add(state, "model/", NAMES[PARAMS].places, GT_TYPE_I64, params, 2 * part->params.n);
  gt_state_add(state, "model/", NAMES[BUFFERS].places, GT_TYPE_I64, buffers, 2 * part->buffers.n);
}

typedef struct {
  const int64_t *at; /* (n, 2): position and count; NULL: a file of an earlier version */
  size_t n, floats;
} cut;

static gt_status cut_of(const gt_state *state, int kind, cut *out) {
  const gt_state_item *array = gt_state_find(state, "model/", NAMES[kind].array),
                      *places = gt_state_find(state, "model/", NAMES[kind].places);
  if (!array) return GT_FAIL(GT_ERR_CKPT, "it has no model/%s", NAMES[kind].array);
  *out = (cut){.floats = array->count};
  if (!places) return GT_OK;
  bool sound = places->type == GT_TYPE_I64 && places->count % 2 == 0;
  size_t left = array->count;
  out->at = places->data;
  out->n = sound ? places->count / 2 : 0;
  for (size_t i = 0; i < out->n && sound; i++) {
    sound = out->at[2 * i] >= 0 && out->at[2 * i + 1] >= 0 && (size_t)out->at[2 * i + 1] <= left;
    if (sound) left -= (size_t)out->at[2 * i + 1];
  }
  if (sound && left == 0) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT, "its model/%s are not the positions of its %zu floats of model/%s",
                 NAMES[kind].places, array->count, NAMES[kind].array);
}

static bool is_cut(const cut *c, const gt_part_ranges *ranges) {
  bool same = c->n == ranges->n;
  for (size_t i = 0; i < c->n && same; i++)
    same = (size_t)c->at[2 * i] == ranges->ranges[i].whole &&
           (size_t)c->at[2 * i + 1] == ranges->ranges[i].count;
  return same;
}

/* ---- arrays of the new division -------------------------------------------------------------- */

/* An array of the own file, and its replacement. */
typedef struct {
  gt_state_item *item;
  float *data;
} moved;

typedef struct {
  const gt_part_ranges *to; /* the ranges of the new part */
  size_t covered;           /* number of its floats found so far */
  moved *arrays;
  size_t n;
} part;

typedef struct {
  gt_server *server;
  const gt_ckpt_info *info; /* of the own file */
  gt_state *own;
  part parts[NPARTS];
} recut;

/* True for the model's array; with the parameters also for the arrays of the optimizer, which have
   the same number of floats. */
static bool is_moved(const gt_state_item *item, int kind, size_t floats) {
  char name[sizeof item->name];
  snprintf(name, sizeof name, "model/%s", NAMES[kind].array);
  if (strcmp(item->name, name) == 0) return true;
  return kind == PARAMS && strncmp(item->name, "optim/", 6) == 0 && item->type == GT_TYPE_F32 &&
         item->count == floats;
}

static void open_part(recut *r, int kind, const gt_part_ranges *to) {
  part *p = &r->parts[kind];
  const size_t floats = gt_state_find(r->own, "model/", NAMES[kind].array)->count;
  p->to = to;
  p->arrays = GT_NEW_ARRAY(moved, r->own->n);
  for (size_t i = 0; i < r->own->n; i++)
    if (is_moved(&r->own->items[i], kind, floats))
      p->arrays[p->n++] = (moved){&r->own->items[i], GT_NEW_ARRAY(float, to->floats + 1)};
}

/* Replaces the arrays of the own file by those of the new part. */
static void take_over(part *p) {
  for (size_t i = 0; i < p->n; i++) {
    gt_free(p->arrays[i].item->data);
    p->arrays[i].item->data = p->arrays[i].data;
    p->arrays[i].item->count = p->to->floats;
    p->arrays[i].data = NULL;
  }
}

static void close_part(part *p) {
  for (size_t i = 0; i < p->n; i++) gt_free(p->arrays[i].data);
  gt_free(p->arrays);
}

/* Copies the floats in both parts, if `target` is not NULL; returns their number. */
static size_t copy_common(const cut *from, const float *source, const gt_part_ranges *to,
                          float *target) {
  size_t at = 0, sum = 0;
  for (size_t i = 0; i < from->n; i++) {
    const size_t place = (size_t)from->at[2 * i], count = (size_t)from->at[2 * i + 1];
    for (size_t k = 0; k < to->n; k++) {
      const gt_part_range *range = &to->ranges[k];
      const size_t first = place > range->whole ? place : range->whole,
                   end = place + count < range->whole + range->count ? place + count
                                                                     : range->whole + range->count;
      if (first >= end) continue;
      sum += end - first;
      if (target)
        memcpy(target + range->own + (first - range->whole), source + at + (first - place),
               (end - first) * sizeof *target);
    }
    at += count;
  }
  return sum;
}

static gt_status take(part *p, int kind, const gt_state *from) {
  cut there;
  GT_TRY(cut_of(from, kind, &there));
  for (size_t i = 0; i < p->n; i++) {
    const gt_state_item *item = gt_state_find(from, "", p->arrays[i].item->name);
    if (!item || item->type != GT_TYPE_F32 || item->count != there.floats)
      return GT_FAIL(GT_ERR_CKPT, "it has no %zu x f32 of %s", there.floats,
                     p->arrays[i].item->name);
    copy_common(&there, item->data, p->to, p->arrays[i].data);
  }
  p->covered += copy_common(&there, NULL, p->to, NULL);
  return GT_OK;
}

static bool whole(const recut *r) {
  bool all = true;
  for (int kind = 0; kind < NPARTS; kind++)
    all = all && r->parts[kind].covered == r->parts[kind].to->floats;
  return all;
}

/* ---- the files of the other regions ---------------------------------------------------------- */

static gt_status take_file(recut *r, const gt_ckpt_info *info, const gt_state *state) {
  if (strcmp(info->job_yaml, r->info->job_yaml) != 0 ||
      strcmp(info->model_hash, r->info->model_hash) != 0)
    return GT_FAIL(GT_ERR_CKPT, "it is of job %s, and not of the same run", info->job_name);
  for (int kind = 0; kind < NPARTS; kind++) GT_TRY(take(&r->parts[kind], kind, state));
  return GT_OK;
}

static gt_status take_region(recut *r, size_t region) {
  const gt_run *run = r->server->run;
  char path[1300];
  gt_ckpt_info info = {0};
  gt_state state = {0};
  gt_ckpt_path(path, sizeof path, run->run_dir, r->info->round, run->job->regions[region].name);
  gt_status status = gt_ckpt_read_round(run->run_dir, r->info->round,
                                        run->job->regions[region].name, &info, &state);
  if (status == GT_OK) status = take_file(r, &info, &state);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  if (status == GT_OK) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 "pipeline.stages divides the model differently, so region %s needs %s of region "
                 "%s; copy it there: %s",
                 run->region, path, run->job->regions[region].name, gt_error_text());
}

/* Reads the own file first, then as many of the others as are needed. */
static gt_status take_all(recut *r) {
  const gt_run *run = r->server->run;
  GT_TRY(take_file(r, r->info, r->own));
  const size_t own = r->parts[PARAMS].covered;
  for (size_t region = 0; region < run->job->nregions && !whole(r); region++)
    if (region != run->roles.region_id) GT_TRY(take_region(r, region));
  if (!whole(r))
    return GT_FAIL(GT_ERR_CKPT,
                   "the files of round %lld have %zu of the %zu parameters of region %s's stages",
                   (long long)r->info->round, r->parts[PARAMS].covered, r->parts[PARAMS].to->floats,
                   run->region);
  gt_log(GT_LOG_INFO,
         "pipeline.stages divides the model differently than round %lld: of %zu parameters of "
         "region %s %zu come from other regions' files",
         (long long)r->info->round, r->parts[PARAMS].to->floats, run->region,
         r->parts[PARAMS].to->floats - own);
  return GT_OK;
}

gt_status gt_recut(gt_server *s, const gt_ckpt_info *info, gt_state *state, bool same_stages) {
  const gt_region_part *to = &s->run->pipe->parts[s->run->roles.region_id];
  cut params, buffers;
  GT_TRY(cut_of(state, PARAMS, &params));
  GT_TRY(cut_of(state, BUFFERS, &buffers));
  if (is_cut(&params, &to->params) && is_cut(&buffers, &to->buffers)) return GT_OK;
  if (!params.at || !buffers.at) {
    if (same_stages) return GT_OK;
    return GT_FAIL(GT_ERR_CKPT,
                   "it is of an earlier version and does not say which part of the model it has, "
                   "so pipeline.stages must be those of its job");
  }
  recut r = {.server = s, .info = info, .own = state};
  open_part(&r, PARAMS, &to->params);
  open_part(&r, BUFFERS, &to->buffers);
  const gt_status status = take_all(&r);
  for (int kind = 0; kind < NPARTS; kind++) {
    if (status == GT_OK) take_over(&r.parts[kind]);
    close_part(&r.parts[kind]);
  }
  return status;
}
