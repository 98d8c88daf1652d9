/* summary.json: the results of a run in one object.  Keys are only added, never changed. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void name_build(json_t *to, const char *kernels, const char *precision,
                       const char *blas_core) {
  json_object_set_new(to, "kernels", gt_json_text(kernels));
  json_object_set_new(to, "precision", gt_json_text(precision));
  json_object_set_new(to, "blas_core", gt_json_text(blas_core));
}

static json_t *build_of(const gt_summary *s) {
  json_t *build = json_object();
  json_object_set_new(build, "version", gt_json_text(s->version));
  name_build(build, s->kernels, s->precision, s->blas_core);
  if (s->choices_how) json_object_set_new(build, "choices", gt_json_text(s->choices_how));
  return build;
}

bool gt_summary_is_virtual(const gt_summary *s) {
  return s->clock && strcmp(s->clock, "virtual") == 0;
}

static json_t *lines_of(const char *text) {
  json_t *lines = json_array();
  for (const char *next = text; *next;) {
    const size_t length = strcspn(next, "\n");
    json_array_append_new(lines, json_stringn(next, length));
    next += length + (next[length] == '\n');
  }
  return lines;
}

/* CPU seconds are real: under the virtual clock they would be the only difference between two
   runs. */
static json_t *regions_of(const gt_summary *s) {
  json_t *regions = json_array();
  for (size_t i = 0; i < s->nregions; i++) {
    json_t *region = gt_json_region(&s->regions[i]);
    if (gt_summary_is_virtual(s)) {
      json_object_set_new(region, "emulation_cpu_s", json_null());
      json_object_set_new(region, "ps_cpu_s", json_null());
    }
    if (s->isas) json_object_set_new(region, "isa", gt_json_text(s->isas[i]));
    if (s->builds && s->builds[i].kernels[0])
      name_build(region, s->builds[i].kernels, s->builds[i].precision, s->builds[i].blas_core);
    if (s->choices) json_object_set_new(region, "choices", lines_of(s->choices[i]));
    if (s->traffic) json_object_set_new(region, "traffic", gt_json_traffic(&s->traffic[i]));
    json_array_append_new(regions, region);
  }
  return regions;
}

static json_t *links_of(const gt_summary *s) {
  json_t *list = json_array();
  const gt_link_result **links = gt_links_ordered(s);
  for (size_t i = 0; i < s->nlinks; i++) json_array_append_new(list, gt_json_link(links[i]));
  gt_free(links);
  return list;
}

char *gt_adapted_text(const gt_region_result *regions, size_t nregions) {
  const size_t size = nregions * (sizeof regions->adapted + 2);
  size_t used = 0;
  char *text = gt_alloc(size, 1);
  for (size_t i = 0; i < nregions; i++)
    if (regions[i].adapted[0])
      used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? "; " : "",
                               regions[i].adapted);
  if (used > 0) return text;
  gt_free(text);
  return NULL;
}

static json_t *summary_of(const gt_summary *s) {
  json_t *root = json_object();
  json_object_set_new(root, "job", gt_json_text(s->job));
  json_object_set_new(root, "model", gt_json_text(s->model));
  json_object_set_new(root, "parameters", json_integer(s->parameters));
  json_object_set_new(root, "strategy", gt_json_text(s->strategy));
  json_object_set_new(root, "clock", gt_json_text(s->clock));
  json_object_set_new(root, "wall_s", gt_json_number(s->wall_s));
  json_object_set_new(root, "virtual_s", gt_json_number(s->virtual_s));
  json_object_set_new(root, "resumes", json_integer(s->resumes));
  json_object_set_new(root, "samples", json_integer(s->samples));
  json_object_set_new(root, "samples_per_s", gt_json_number(s->samples_per_s));
  json_object_set_new(root, "test_accuracy", gt_json_number(s->test_accuracy));
  json_object_set_new(root, "test_loss", gt_json_number(s->test_loss));
  json_object_set_new(root, "test_auc", gt_json_number(s->test_auc));
  json_object_set_new(root, "test_recall20", gt_json_number(s->test_recall20));
  json_object_set_new(root, "test_mrr20", gt_json_number(s->test_mrr20));
  if (s->tokens_per_s > 0)
    json_object_set_new(root, "tokens_per_s", gt_json_number(s->tokens_per_s));
  if (s->test_perplexity > 0)
    json_object_set_new(root, "test_perplexity", gt_json_number(s->test_perplexity));
  json_object_set_new(root, "params_sha256",
                      gt_json_text(*s->params_sha256 ? s->params_sha256 : NULL));
  if (s->adapted) json_object_set_new(root, "adapted", gt_json_text(s->adapted));
  json_object_set_new(root, "regions", regions_of(s));
  json_object_set_new(root, "links", links_of(s));
  if (s->links_left_out > 0)
    json_object_set_new(root, "links_left_out", json_integer((json_int_t)s->links_left_out));
  if (s->plan) json_object_set_new(root, "plan", gt_json_plan(s->plan));
  if (s->cost) json_object_set_new(root, "cost", gt_json_cost(s->cost));
  json_object_set_new(root, "build", build_of(s));
  return root;
}

gt_status gt_summary_write(const char *run_dir, const gt_summary *summary) {
  json_t *root = summary_of(summary);
  char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
  json_decref(root);
  if (!text)
    return GT_FAIL(GT_ERR_FAULT, "%s/summary.json: the summary is not a JSON object", run_dir);
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/summary.json", run_dir);
  const bool ok = gt_file_replace(path, text, strlen(text));
  free(text);
  return ok ? GT_OK
            : GT_FAIL(GT_ERR_CKPT, "%s: the summary could not be written: %s", path,
                      strerror(errno));
}
