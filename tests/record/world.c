/* A short run's results and their summary; JSON by path. */
#include "world.h"

gt_region_result w_region(const char *name, double wall_s) {
  gt_region_result region = {.workers = 1,
                             .steps = 10,
                             .samples = 640,
                             .wall_s = wall_s,
                             .test_accuracy = NAN,
                             .test_loss = NAN,
                             .test_auc = NAN,
                             .test_recall20 = NAN,
                             .test_mrr20 = NAN};
  snprintf(region.name, sizeof region.name, "%s", name);
  return region;
}

gt_summary w_summary(const gt_region_result *regions, size_t n) {
  return (gt_summary){.job = "j",
                      .strategy = "sma",
                      .clock = "real",
                      .model = "m",
                      .virtual_s = NAN,
                      .test_accuracy = NAN,
                      .test_auc = NAN,
                      .test_recall20 = NAN,
                      .test_mrr20 = NAN,
                      .regions = regions,
                      .nregions = n};
}

const json_t *w_find(const json_t *root, const char *path) {
  const json_t *at = root;
  for (const char *word = path; at && *word;) {
    char key[64];
    const size_t n = strcspn(word, "/");
    snprintf(key, sizeof key, "%.*s", (int)n, word);
    at = json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) : json_object_get(at, key);
    word += n + (word[n] == '/');
  }
  if (!at) fail_msg("%s is missing", path);
  return at;
}

double w_number(const json_t *root, const char *path) {
  return json_number_value(w_find(root, path));
}

bool w_null(const json_t *root, const char *path) {
  return json_is_null(w_find(root, path));
}
