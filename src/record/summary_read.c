/* Reads summary.json. */
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

struct gt_summary_file {
  json_t *root;
  gt_summary summary;
  gt_region_result *regions;
  gt_link_result *links;
  gt_region_traffic *traffic;
  gt_plan_result plan;
  gt_cost_result cost;
};

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "-";
}

static double number_of(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

static int64_t whole_of(const json_t *object, const char *name) {
  return json_integer_value(json_object_get(object, name));
}

static void take_figures(gt_summary_file *f) {
  const json_t *plan = json_object_get(f->root, "plan"), *cost = json_object_get(f->root, "cost");
  if (json_is_object(plan)) {
    gt_json_take_plan(plan, &f->plan);
    f->summary.plan = &f->plan;
  }
  if (!json_is_object(cost)) return;
  gt_json_take_cost(cost, &f->cost);
  f->summary.cost = &f->cost;
}

/* Texts remain owned by the JSON object. */
static void take_head(gt_summary_file *f) {
  const json_t *root = f->root, *build = json_object_get(root, "build"),
               *hash = json_object_get(root, "params_sha256");
  f->summary =
      (gt_summary){.job = text_of(root, "job"),
                   .strategy = text_of(root, "strategy"),
                   .clock = text_of(root, "clock"),
                   .wall_s = number_of(root, "wall_s"),
                   .virtual_s = number_of(root, "virtual_s"),
                   .samples = whole_of(root, "samples"),
                   .samples_per_s = number_of(root, "samples_per_s"),
                   .test_accuracy = number_of(root, "test_accuracy"),
                   .test_loss = number_of(root, "test_loss"),
                   .test_auc = number_of(root, "test_auc"),
                   .test_recall20 = number_of(root, "test_recall20"),
                   .test_mrr20 = number_of(root, "test_mrr20"),
                   .tokens_per_s = json_number_value(json_object_get(root, "tokens_per_s")),
                   .test_perplexity = json_number_value(json_object_get(root, "test_perplexity")),
                   .version = text_of(build, "version"),
                   .kernels = text_of(build, "kernels"),
                   .precision = text_of(build, "precision"),
                   .blas_core = text_of(build, "blas_core"),
                   .model = text_of(root, "model"),
                   .parameters = whole_of(root, "parameters"),
                   .resumes = whole_of(root, "resumes"),
                   .adapted = json_string_value(json_object_get(root, "adapted")),
                   .links_left_out = (size_t)whole_of(root, "links_left_out")};
  if (json_is_string(hash))
    snprintf(f->summary.params_sha256, sizeof f->summary.params_sha256, "%s",
             json_string_value(hash));
}

static gt_status take_traffic(gt_summary_file *f, const json_t *regions) {
  f->traffic = GT_NEW_ARRAY(gt_region_traffic, f->summary.nregions);
  f->summary.traffic = f->traffic;
  for (size_t i = 0; i < f->summary.nregions; i++)
    GT_TRY(gt_json_take_traffic(json_object_get(json_array_get(regions, i), "traffic"),
                                &f->traffic[i]));
  return GT_OK;
}

static gt_status take_lists(gt_summary_file *f) {
  const json_t *regions = json_object_get(f->root, "regions"),
               *links = json_object_get(f->root, "links");
  size_t nregions = json_array_size(regions), nlinks = json_array_size(links);
  if (nregions == 0) return GT_FAIL(GT_ERR_CKPT, "it has no regions");
  f->regions = GT_NEW_ARRAY(gt_region_result, nregions);
  f->links = GT_NEW_ARRAY(gt_link_result, nlinks);
  for (size_t i = 0; i < nregions; i++)
    GT_TRY(gt_json_take_region(json_array_get(regions, i), &f->regions[i]));
  for (size_t i = 0; i < nlinks; i++)
    GT_TRY(gt_json_take_link(json_array_get(links, i), &f->links[i]));
  f->summary.regions = f->regions;
  f->summary.nregions = nregions;
  f->summary.links = f->links;
  f->summary.nlinks = nlinks;
  return f->summary.links_left_out > 0 ? take_traffic(f, regions) : GT_OK;
}

gt_status gt_summary_read(gt_summary_file **out, const char *run_dir) {
  char path[PATH_MAX], why[GT_ERROR_TEXT_MAX];
  json_error_t error;
  snprintf(path, sizeof path, "%s/summary.json", run_dir);
  *out = NULL;
  FILE *file = fopen(path, "re");
  if (!file)
    return GT_FAIL(GT_ERR_CKPT, "%s: the summary could not be opened: %s", path, strerror(errno));
  json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
  fclose(file);
  if (!root)
    return GT_FAIL(GT_ERR_CKPT, "%s is not JSON: line %d: %s", path, error.line, error.text);
  gt_summary_file *f = GT_NEW(gt_summary_file);
  f->root = root;
  take_head(f);
  take_figures(f);
  if (take_lists(f) != GT_OK) {
    snprintf(why, sizeof why, "%s", gt_error_text());
    gt_summary_close(f);
    return GT_FAIL(GT_ERR_CKPT, "%s is not a run's summary: %s", path, why);
  }
  *out = f;
  return GT_OK;
}

const gt_summary *gt_summary_of(const gt_summary_file *f) {
  return &f->summary;
}

void gt_summary_close(gt_summary_file *f) {
  if (!f) return;
  json_decref(f->root);
  gt_free(f->regions);
  gt_free(f->links);
  gt_free(f->traffic);
  gt_free(f->cost.regions);
  gt_free(f->cost.missing);
  gt_free(f);
}
