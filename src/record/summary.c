/* Results as JSON and back, one table of fields per object: a region's results for the lead, and
   summary.json.  Keys are only added, never changed. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- fields ---------------------------------------------------------------------------------- */

/* TEXT: an array of characters, null if empty.  STRING: a pointer.  MEASURED: a number, null if it
   is 0 (not measured).  Kinds ending in IF are left out if empty, NULL or 0, as in most runs, to
   keep the text for the lead short. */
/* clang-format off */
typedef enum {
  TEXT, TEXT_IF, STRING, STRING_IF, BOOL, INT, INT64, INT64_IF, NUMBER, NUMBER_IF, MEASURED
} kind;
/* clang-format on */

typedef struct {
  const char *name;
  kind kind;
  size_t offset, size;
} field;

#define NAMED(name, type, member, kind)                                                            \
  { name, kind, offsetof(type, member), sizeof(((type *)0)->member) }
#define FIELD(type, member, kind) NAMED(#member, type, member, kind)
#define ALL(array)                array, sizeof(array) / sizeof((array)[0])

/* Returns the value of a field, or NULL if it is left out. */
static json_t *field_value(const field *f, const void *from) {
  const void *at = (const char *)from + f->offset;
  const char *text = f->kind == TEXT || f->kind == TEXT_IF ? at : NULL;
  if (f->kind == STRING || f->kind == STRING_IF) text = *(const char *const *)at;
  if (text && !*text) text = NULL;
  switch (f->kind) {
  case TEXT:
  case STRING:
    return gt_json_text(text);
  case TEXT_IF:
  case STRING_IF:
    return text ? gt_json_text(text) : NULL;
  case BOOL:
    return json_boolean(*(const bool *)at);
  case INT:
    return json_integer(*(const int *)at);
  case INT64:
    return json_integer(*(const int64_t *)at);
  case INT64_IF:
    return *(const int64_t *)at ? json_integer(*(const int64_t *)at) : NULL;
  case NUMBER:
    return gt_json_number(*(const double *)at);
  case NUMBER_IF:
    return *(const double *)at > 0 ? gt_json_number(*(const double *)at) : NULL;
  case MEASURED:
    return gt_json_number(*(const double *)at == 0 ? NAN : *(const double *)at);
  }
  return NULL;
}

/* Adds the fields to the object; existing keys keep their place. */
static json_t *encode_into(json_t *object, const field *fields, size_t n, const void *from) {
  for (size_t i = 0; i < n; i++) {
    json_t *value = field_value(&fields[i], from);
    if (value) json_object_set_new(object, fields[i].name, value);
  }
  return object;
}

static json_t *encode(const field *fields, size_t n, const void *from) {
  return encode_into(json_object(), fields, n, from);
}

/* Writes the field.  Returns false if the value is not of its kind: a number is then NaN, others
   are empty or 0.  Strings are borrowed from the value, "-" if it is missing. */
static bool take_value(const field *f, const json_t *value, void *to) {
  void *at = (char *)to + f->offset;
  const bool absent = !value || json_is_null(value);
  const char *text = json_string_value(value);
  switch (f->kind) {
  case TEXT:
    if (!text || json_string_length(value) >= f->size) return false;
    memcpy(at, text, json_string_length(value) + 1);
    return true;
  case TEXT_IF:
    snprintf(at, f->size, "%s", text ? text : "");
    return absent || text;
  case STRING:
    *(const char **)at = text ? text : "-";
    return text;
  case STRING_IF:
    *(const char **)at = text;
    return absent || text;
  case BOOL:
    *(bool *)at = json_is_true(value);
    return json_is_boolean(value);
  case INT:
    *(int *)at = (int)json_integer_value(value);
    return json_is_integer(value);
  case INT64:
  case INT64_IF:
    *(int64_t *)at = json_integer_value(value);
    return json_is_integer(value) || (f->kind == INT64_IF && !value);
  case NUMBER:
    *(double *)at = json_is_number(value) ? json_number_value(value) : NAN;
    return json_is_number(value) || json_is_null(value);
  case NUMBER_IF:
    *(double *)at = json_number_value(value);
    return !value || json_is_number(value);
  case MEASURED:
    *(double *)at = json_number_value(value);
    return json_is_number(value) || json_is_null(value);
  }
  return false;
}

/* Takes the existing fields. */
static void take(const field *fields, size_t n, const json_t *from, void *to) {
  for (size_t i = 0; i < n; i++) take_value(&fields[i], json_object_get(from, fields[i].name), to);
}

static gt_status decode(const field *fields, size_t n, const json_t *from, void *to) {
  for (size_t i = 0; i < n; i++)
    if (!take_value(&fields[i], json_object_get(from, fields[i].name), to))
      return GT_FAIL(GT_ERR_FAULT,
                     "a region's result has no valid '%s'; expected one version in all regions",
                     fields[i].name);
  return GT_OK;
}

static gt_status decode_if(const field *fields, size_t n, const json_t *from, void *to) {
  return from ? decode(fields, n, from, to) : GT_OK;
}

/* ---- regions and links ----------------------------------------------------------------------- */

static const field region_fields[] = {
    FIELD(gt_region_result, name, TEXT),
    FIELD(gt_region_result, workers, INT),
    FIELD(gt_region_result, steps, INT64),
    FIELD(gt_region_result, samples, INT64),
    FIELD(gt_region_result, best_steps, INT64_IF),
    FIELD(gt_region_result, best_samples, INT64_IF),
    FIELD(gt_region_result, compute_s, NUMBER),
    FIELD(gt_region_result, wan_wait_s, NUMBER),
    FIELD(gt_region_result, local_wait_s, NUMBER),
    FIELD(gt_region_result, encode_s, NUMBER),
    FIELD(gt_region_result, update_s, NUMBER),
    FIELD(gt_region_result, wire_s, NUMBER),
    FIELD(gt_region_result, idle_s, NUMBER),
    FIELD(gt_region_result, wall_s, NUMBER),
    FIELD(gt_region_result, test_accuracy, NUMBER),
    FIELD(gt_region_result, test_loss, NUMBER),
    FIELD(gt_region_result, test_auc, NUMBER),
    FIELD(gt_region_result, test_recall20, NUMBER),
    FIELD(gt_region_result, test_mrr20, NUMBER),
    FIELD(gt_region_result, train_loss, NUMBER),
    FIELD(gt_region_result, emulation_cpu_s, NUMBER),
    FIELD(gt_region_result, ps_cpu_s, NUMBER),
    FIELD(gt_region_result, nonfinite, INT64),
    FIELD(gt_region_result, warning, TEXT_IF),
    FIELD(gt_region_result, adapted, TEXT_IF),
    FIELD(gt_region_result, earlier_starts, INT64_IF),
    FIELD(gt_region_result, lost_s, NUMBER_IF),
    FIELD(gt_region_result, excluded, INT64_IF),
    FIELD(gt_region_result, missed, INT64_IF),
    FIELD(gt_region_result, residual, NUMBER_IF),
    FIELD(gt_region_result, test_perplexity, NUMBER_IF),
};

static const field split_fields[] = {
    NAMED("train_s", gt_region_result, split_train_s, NUMBER),
    NAMED("upload_s", gt_region_result, split_upload_s, NUMBER),
    NAMED("aggregate_s", gt_region_result, split_aggregate_s, NUMBER),
    NAMED("download_s", gt_region_result, split_download_s, NUMBER),
};

static const field mean_fields[] = {
    NAMED("samples", gt_region_result, mean.samples, INT64),
    NAMED("test_accuracy", gt_region_result, mean.accuracy, NUMBER),
    NAMED("test_loss", gt_region_result, mean.loss, NUMBER),
    NAMED("test_auc", gt_region_result, mean.auc, NUMBER),
    NAMED("test_recall20", gt_region_result, mean.recall20, NUMBER),
    NAMED("test_mrr20", gt_region_result, mean.mrr20, NUMBER),
    NAMED("test_perplexity", gt_region_result, mean.perplexity, NUMBER_IF),
};

static const field codec_fields[] = {
    NAMED("name", gt_region_result, codec.name, TEXT),
    NAMED("raw_bytes", gt_region_result, codec.raw_bytes, INT64),
    NAMED("wire_bytes", gt_region_result, codec.wire_bytes, INT64),
    NAMED("encode_s", gt_region_result, codec.encode_s, NUMBER),
    NAMED("decoded_bytes", gt_region_result, codec.decoded_bytes, INT64),
    NAMED("decode_s", gt_region_result, codec.decode_s, NUMBER),
};

#define STORE_COUNT(member) NAMED(#member, gt_region_result, store.member, INT64),
static const field store_fields[] = {
    GT_STORE_COUNTS(STORE_COUNT) NAMED("function_s", gt_region_result, store.function_s, NUMBER),
    NAMED("gb_s", gt_region_result, store.gb_s, NUMBER)};

#define PHASE(constant, key, title)                                                                \
  {key, NUMBER, offsetof(gt_region_result, phase_s) + (constant) * sizeof(double), sizeof(double)},
static const field phase_fields[] = {GT_PHASE_LIST(PHASE)};
#undef PHASE

static const field kind_fields[] = {
    NAMED("messages", gt_kind_result, messages, INT64),
    NAMED("payload_bytes", gt_kind_result, payload, INT64),
    NAMED("wire_bytes", gt_kind_result, wire, INT64),
};

static const field link_fields[] = {
    FIELD(gt_link_result, from, TEXT),
    FIELD(gt_link_result, to, TEXT),
    FIELD(gt_link_result, bytes_sent, INT64),
    FIELD(gt_link_result, messages, INT64),
    FIELD(gt_link_result, bytes_other, INT64),
    FIELD(gt_link_result, payload_bytes, INT64),
    FIELD(gt_link_result, bytes_lost, INT64_IF),
    FIELD(gt_link_result, bytes_relayed, INT64_IF),
    FIELD(gt_link_result, bandwidth_bps_measured, MEASURED),
    FIELD(gt_link_result, latency_s_measured, MEASURED),
    FIELD(gt_link_result, staleness_s, NUMBER_IF),
    FIELD(gt_link_result, staleness_s_longest, NUMBER_IF),
};

double gt_phases_sum(const gt_region_result *region) {
  double sum = 0;
  for (size_t i = 0; i < GT_NPHASES; i++) sum += region->phase_s[i];
  return sum;
}

static json_t *json_region(const gt_region_result *region) {
  json_t *object = encode(ALL(region_fields), region);
  json_object_set_new(object, "split", encode(ALL(split_fields), region));
  if (gt_phases_sum(region) > 0)
    json_object_set_new(object, "phases", encode(ALL(phase_fields), region));
  if (region->codec.name[0])
    json_object_set_new(object, "codec", encode(ALL(codec_fields), region));
  if (region->store.control_writes > 0)
    json_object_set_new(object, "store", encode(ALL(store_fields), region));
  if (region->mean.samples > 0)
    json_object_set_new(object, "mean_model", encode(ALL(mean_fields), region));
  return object;
}

static json_t *json_link(const gt_link_result *link) {
  json_t *object = encode(ALL(link_fields), link), *kinds = json_object();
  for (size_t i = 0; i < GT_RESULT_KINDS && link->kinds[i].messages > 0; i++)
    json_object_set_new(kinds, link->kinds[i].kind, encode(ALL(kind_fields), &link->kinds[i]));
  json_object_set_new(object, "kinds", kinds);
  return object;
}

static gt_status take_region(const json_t *from, gt_region_result *region) {
  *region = (gt_region_result){0};
  GT_TRY(decode(ALL(region_fields), from, region));
  GT_TRY(decode_if(ALL(phase_fields), json_object_get(from, "phases"), region));
  GT_TRY(decode_if(ALL(codec_fields), json_object_get(from, "codec"), region));
  GT_TRY(decode_if(ALL(store_fields), json_object_get(from, "store"), region));
  GT_TRY(decode_if(ALL(mean_fields), json_object_get(from, "mean_model"), region));
  return decode(ALL(split_fields), json_object_get(from, "split"), region);
}

static gt_status decode_kinds(json_t *from, gt_kind_result *kinds) {
  const char *name;
  json_t *value;
  size_t n = 0;
  if (!json_is_object(from) || json_object_size(from) > GT_RESULT_KINDS)
    return GT_FAIL(GT_ERR_FAULT,
                   "a region's result has no valid 'kinds' of a link: at most %d are expected",
                   GT_RESULT_KINDS);
  json_object_foreach(from, name, value) {
    if (!*name || strlen(name) >= sizeof kinds->kind)
      return GT_FAIL(GT_ERR_FAULT, "a region's result has a kind of messages named '%.80s'", name);
    GT_TRY(decode(ALL(kind_fields), value, &kinds[n]));
    if (kinds[n].messages < 1)
      return GT_FAIL(GT_ERR_FAULT, "a region's result has the kind '%s' without a message", name);
    memcpy(kinds[n++].kind, name, strlen(name) + 1);
  }
  return GT_OK;
}

static gt_status take_link(const json_t *from, gt_link_result *link) {
  *link = (gt_link_result){0};
  GT_TRY(decode(ALL(link_fields), from, link));
  return decode_kinds(json_object_get(from, "kinds"), link->kinds);
}

char *gt_result_encode(const gt_region_result *region, const gt_link_result *links, size_t nlinks) {
  json_t *list = json_array(), *root = json_object();
  for (size_t i = 0; i < nlinks; i++) json_array_append_new(list, json_link(&links[i]));
  json_object_set_new(root, "region", json_region(region));
  json_object_set_new(root, "links", list);
  char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
  json_decref(root);
  char *copy = gt_strdup(text ? text : "");
  free(text);
  return copy;
}

static gt_status decode_root(const json_t *root, gt_region_result *region, gt_link_result *links,
                             size_t max, size_t *nlinks) {
  const json_t *list = json_object_get(root, "links");
  if (!json_is_array(list)) return GT_FAIL(GT_ERR_FAULT, "a region's result has no list of links");
  if (json_array_size(list) > max)
    return GT_FAIL(GT_ERR_FAULT, "a region's result has %zu links; at most %zu are expected",
                   json_array_size(list), max);
  GT_TRY(take_region(json_object_get(root, "region"), region));
  for (size_t i = 0; i < json_array_size(list); i++)
    GT_TRY(take_link(json_array_get(list, i), &links[i]));
  *nlinks = json_array_size(list);
  return GT_OK;
}

gt_status gt_result_decode(const char *text, size_t size, gt_region_result *region,
                           gt_link_result *links, size_t max, size_t *nlinks) {
  json_error_t error;
  *nlinks = 0;
  *region = (gt_region_result){0};
  while (size > 0 && text[size - 1] == '\0') size--; /* the text was sent with its NUL */
  json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  if (!root)
    return GT_FAIL(GT_ERR_FAULT, "a region's result of %zu bytes is not JSON: %s at byte %d", size,
                   error.text, error.position);
  gt_status status = decode_root(root, region, links, max, nlinks);
  json_decref(root);
  return status;
}

/* ---- the cost -------------------------------------------------------------------------------- */

static const field cost_region_fields[] = {
    FIELD(gt_cost_region, name, TEXT),
    FIELD(gt_cost_region, worker_usd, NUMBER),
    FIELD(gt_cost_region, ps_usd, NUMBER),
    FIELD(gt_cost_region, egress_usd, NUMBER),
};

static const field cost_fields[] = {
    FIELD(gt_cost_result, usd, NUMBER),           FIELD(gt_cost_result, worker_usd, NUMBER),
    FIELD(gt_cost_result, ps_usd, NUMBER),        FIELD(gt_cost_result, egress_usd, NUMBER),
    FIELD(gt_cost_result, store_usd, NUMBER_IF),  FIELD(gt_cost_result, assumed, BOOL),
    FIELD(gt_cost_result, machine_hours, NUMBER),
};

static const field fault_fields[] = {
    FIELD(gt_fault_result, losses, INT64),   FIELD(gt_fault_result, ended, INT64),
    FIELD(gt_fault_result, returned, INT64), FIELD(gt_fault_result, resumed, INT64),
    FIELD(gt_fault_result, again, INT64),    FIELD(gt_fault_result, refused, INT64),
    FIELD(gt_fault_result, away, INT64),     FIELD(gt_fault_result, cuts, INT64),
    FIELD(gt_fault_result, resumes, INT64),  FIELD(gt_fault_result, epochs, INT64),
    FIELD(gt_fault_result, goodput, NUMBER), FIELD(gt_fault_result, not_trained, INT64),
    FIELD(gt_fault_result, repeated, INT64), FIELD(gt_fault_result, away_s, NUMBER),
};

static json_t *cost_region(const gt_cost_region *r) {
  json_t *region = json_pack("{s:o, s:o}", "name", gt_json_text(r->name), "usd",
                             gt_json_number(r->worker_usd + r->ps_usd + r->egress_usd));
  return encode_into(region, ALL(cost_region_fields), r);
}

static json_t *json_cost(const gt_cost_result *cost) {
  json_t *regions = json_array(), *missing = json_array(),
         *root = json_pack("{s:o, s:o}", "usd", gt_json_number(cost->usd), "machine_usd",
                           gt_json_number(cost->worker_usd + cost->ps_usd));
  encode_into(root, ALL(cost_fields), cost);
  for (size_t i = 0; i < cost->nmissing; i++)
    json_array_append_new(missing, gt_json_text(cost->missing[i]));
  for (size_t i = 0; i < cost->nregions; i++)
    json_array_append_new(regions, cost_region(&cost->regions[i]));
  if (cost->has_terms) json_object_set_new(root, "equations", gt_json_terms(cost));
  json_object_set_new(root, "missing", missing);
  json_object_set_new(root, "regions", regions);
  return root;
}

/* Takes the cost.  The caller frees the lists regions and missing, but not their texts. */
static void take_cost(const json_t *from, gt_cost_result *cost) {
  const json_t *all = json_object_get(from, "regions"), *missing = json_object_get(from, "missing");
  take(ALL(cost_fields), from, cost);
  cost->nregions = json_array_size(all);
  cost->nmissing = json_array_size(missing);
  cost->regions = GT_NEW_ARRAY(gt_cost_region, cost->nregions + 1);
  cost->missing = GT_NEW_ARRAY(char *, cost->nmissing + 1);
  for (size_t i = 0; i < cost->nregions; i++)
    take(ALL(cost_region_fields), json_array_get(all, i), &cost->regions[i]);
  for (size_t i = 0; i < cost->nmissing; i++) {
    const char *text = json_string_value(json_array_get(missing, i));
    cost->missing[i] = (char *)(uintptr_t)(text ? text : "-");
  }
}

/* ---- summary.json ---------------------------------------------------------------------------- */

static const field summary_fields[] = {
    FIELD(gt_summary, job, STRING),
    FIELD(gt_summary, model, STRING),
    FIELD(gt_summary, parameters, INT64),
    FIELD(gt_summary, strategy, STRING),
    FIELD(gt_summary, clock, STRING),
    FIELD(gt_summary, wall_s, NUMBER),
    FIELD(gt_summary, virtual_s, NUMBER),
    FIELD(gt_summary, resumes, INT64),
    FIELD(gt_summary, samples, INT64),
    FIELD(gt_summary, samples_per_s, NUMBER),
    FIELD(gt_summary, test_accuracy, NUMBER),
    FIELD(gt_summary, test_loss, NUMBER),
    FIELD(gt_summary, test_auc, NUMBER),
    FIELD(gt_summary, test_recall20, NUMBER),
    FIELD(gt_summary, test_mrr20, NUMBER),
    FIELD(gt_summary, tokens_per_s, NUMBER_IF),
    FIELD(gt_summary, test_perplexity, NUMBER_IF),
    FIELD(gt_summary, params_sha256, TEXT),
    FIELD(gt_summary, adapted, STRING_IF),
    FIELD(gt_summary, validation, STRING_IF),
    FIELD(gt_summary, validation_loss, NUMBER_IF),
};

static const field build_fields[] = {
    FIELD(gt_summary, version, STRING),
    FIELD(gt_summary, kernels, STRING),
    FIELD(gt_summary, precision, STRING),
    FIELD(gt_summary, blas_core, STRING),
    NAMED("choices", gt_summary, choices_how, STRING_IF),
};

static const field region_build_fields[] = {
    FIELD(gt_build_texts, kernels, TEXT),
    FIELD(gt_build_texts, precision, TEXT),
    FIELD(gt_build_texts, blas_core, TEXT),
};

static const field traffic_fields[] = {
    FIELD(gt_region_traffic, messages, INT64),       FIELD(gt_region_traffic, bytes_sent, INT64),
    FIELD(gt_region_traffic, bytes_received, INT64), FIELD(gt_region_traffic, bytes_other, INT64),
    FIELD(gt_region_traffic, slowest_bps, NUMBER),
};

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

/* CPU seconds are null under the virtual clock: else they would differ between equal runs. */
static json_t *regions_of(const gt_summary *s) {
  json_t *regions = json_array();
  for (size_t i = 0; i < s->nregions; i++) {
    json_t *region = json_region(&s->regions[i]);
    if (gt_summary_is_virtual(s)) {
      json_object_set_new(region, "emulation_cpu_s", json_null());
      json_object_set_new(region, "ps_cpu_s", json_null());
    }
    if (s->isas) json_object_set_new(region, "isa", gt_json_text(s->isas[i]));
    if (s->builds && s->builds[i].kernels[0])
      encode_into(region, ALL(region_build_fields), &s->builds[i]);
    if (s->choices) json_object_set_new(region, "choices", lines_of(s->choices[i]));
    if (s->traffic)
      json_object_set_new(region, "traffic", encode(ALL(traffic_fields), &s->traffic[i]));
    json_array_append_new(regions, region);
  }
  return regions;
}

static json_t *links_of(const gt_summary *s) {
  json_t *list = json_array();
  const gt_link_result **links = gt_links_ordered(s);
  for (size_t i = 0; i < s->nlinks; i++) json_array_append_new(list, json_link(links[i]));
  gt_free(links);
  return list;
}

static json_t *summary_of(const gt_summary *s) {
  json_t *root = encode(ALL(summary_fields), s);
  json_object_set_new(root, "regions", regions_of(s));
  json_object_set_new(root, "links", links_of(s));
  if (s->links_left_out > 0)
    json_object_set_new(root, "links_left_out", json_integer((json_int_t)s->links_left_out));
  if (s->plan) json_object_set_new(root, "plan", gt_json_plan(s->plan));
  if (s->cost) json_object_set_new(root, "cost", json_cost(s->cost));
  if (s->faults) json_object_set_new(root, "faults", encode(ALL(fault_fields), s->faults));
  json_object_set_new(root, "build", encode(ALL(build_fields), s));
  return root;
}

gt_status gt_summary_text(char **text, const gt_summary *summary) {
  json_t *root = summary_of(summary);
  char *dump = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
  json_decref(root);
  if (!dump) return GT_FAIL(GT_ERR_FAULT, "the summary is not a JSON object");
  *text = gt_strdup(dump);
  free(dump);
  return GT_OK;
}

/* ---- reading it ------------------------------------------------------------------------------ */

struct gt_summary_file {
  json_t *root;
  gt_summary summary;
  gt_region_result *regions;
  gt_link_result *links;
  gt_region_traffic *traffic;
  gt_plan_result plan;
  gt_cost_result cost;
  gt_fault_result faults;
};

/* Texts remain owned by the JSON object. */
static void take_figures(gt_summary_file *f) {
  const json_t *plan = json_object_get(f->root, "plan"), *cost = json_object_get(f->root, "cost"),
               *faults = json_object_get(f->root, "faults");
  take(ALL(summary_fields), f->root, &f->summary);
  take(ALL(build_fields), json_object_get(f->root, "build"), &f->summary);
  f->summary.links_left_out =
      (size_t)json_integer_value(json_object_get(f->root, "links_left_out"));
  if (json_is_object(plan)) {
    gt_json_take_plan(plan, &f->plan);
    f->summary.plan = &f->plan;
  }
  if (json_is_object(faults)) {
    take(ALL(fault_fields), faults, &f->faults);
    f->summary.faults = &f->faults;
  }
  if (!json_is_object(cost)) return;
  take_cost(cost, &f->cost);
  f->summary.cost = &f->cost;
}

static gt_status take_traffic(gt_summary_file *f, const json_t *regions) {
  f->traffic = GT_NEW_ARRAY(gt_region_traffic, f->summary.nregions);
  f->summary.traffic = f->traffic;
  for (size_t i = 0; i < f->summary.nregions; i++)
    GT_TRY(decode(ALL(traffic_fields), json_object_get(json_array_get(regions, i), "traffic"),
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
    GT_TRY(take_region(json_array_get(regions, i), &f->regions[i]));
  for (size_t i = 0; i < nlinks; i++) GT_TRY(take_link(json_array_get(links, i), &f->links[i]));
  f->summary.regions = f->regions;
  f->summary.nregions = nregions;
  f->summary.links = f->links;
  f->summary.nlinks = nlinks;
  return f->summary.links_left_out > 0 ? take_traffic(f, regions) : GT_OK;
}

gt_status gt_summary_parse(gt_summary_file **out, const char *text, const char *source) {
  char why[GT_ERROR_TEXT_MAX];
  json_error_t error;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  *out = NULL;
  if (!root)
    return GT_FAIL(GT_ERR_CKPT, "%s is not JSON: line %d: %s", source, error.line, error.text);
  gt_summary_file *f = GT_NEW(gt_summary_file);
  f->root = root;
  take_figures(f);
  if (take_lists(f) != GT_OK) {
    snprintf(why, sizeof why, "%s", gt_error_text());
    gt_summary_close(f);
    return GT_FAIL(GT_ERR_CKPT, "%s is not a run's summary: %s", source, why);
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
