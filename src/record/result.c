/* Results of regions and links as JSON and back, each by one table of fields. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MEASURED: a number; 0 means not measured and is null in JSON.  Kinds ending in IF are left out if
   empty or 0, as in most runs, to keep the text sent to the lead region short. */
typedef enum { TEXT, INT, INT64, NUMBER, MEASURED, TEXT_IF, INT64_IF, NUMBER_IF } kind;

typedef struct {
  const char *name;
  kind kind;
  size_t offset, size;
} field;

#define NAMED(name, type, member, kind)                                                            \
  { name, kind, offsetof(type, member), sizeof(((type *)0)->member) }
#define FIELD(type, member, kind) NAMED(#member, type, member, kind)
#define COUNT(array)              (sizeof(array) / sizeof((array)[0]))

static const field region_fields[] = {
    FIELD(gt_region_result, name, TEXT),
    FIELD(gt_region_result, workers, INT),
    FIELD(gt_region_result, steps, INT64),
    FIELD(gt_region_result, samples, INT64),
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

#define PHASE(constant, key, title)                                                                \
  {key, NUMBER, offsetof(gt_region_result, phase_s) + (constant) * sizeof(double), sizeof(double)},
static const field phase_fields[] = {GT_PHASE_LIST(PHASE)};
#undef PHASE

static const field traffic_fields[] = {
    FIELD(gt_region_traffic, messages, INT64),       FIELD(gt_region_traffic, bytes_sent, INT64),
    FIELD(gt_region_traffic, bytes_received, INT64), FIELD(gt_region_traffic, bytes_other, INT64),
    FIELD(gt_region_traffic, slowest_bps, NUMBER),
};

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
    FIELD(gt_link_result, bandwidth_bps_measured, MEASURED),
    FIELD(gt_link_result, latency_s_measured, MEASURED),
};

json_t *gt_json_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *gt_json_text(const char *text) {
  if (!text) return json_null();
  json_t *json = json_string(text);
  if (json) return json;
  char *plain = gt_strdup(text);
  for (char *c = plain; *c; c++)
    if ((unsigned char)*c >= 0x80) *c = '?';
  json = json_string(plain);
  gt_free(plain);
  return json;
}

static json_t *field_value(const field *f, const void *from) {
  const char *at = (const char *)from + f->offset;
  double number;
  switch (f->kind) {
  case TEXT:
    return gt_json_text(at);
  case TEXT_IF:
    return *at ? gt_json_text(at) : NULL;
  case INT:
    return json_integer(*(const int *)(const void *)at);
  case INT64:
    return json_integer(*(const int64_t *)(const void *)at);
  case INT64_IF:
    return *(const int64_t *)(const void *)at ? json_integer(*(const int64_t *)(const void *)at)
                                              : NULL;
  case NUMBER_IF:
    number = *(const double *)(const void *)at;
    return number == 0 ? NULL : gt_json_number(number);
  case NUMBER:
    return gt_json_number(*(const double *)(const void *)at);
  case MEASURED:
    number = *(const double *)(const void *)at;
    return number == 0 ? json_null() : gt_json_number(number);
  }
  return NULL;
}

static json_t *encode(const field *fields, size_t n, const void *from) {
  json_t *object = json_object();
  for (size_t i = 0; i < n; i++) {
    json_t *value = field_value(&fields[i], from);
    if (value) json_object_set_new(object, fields[i].name, value);
  }
  return object;
}

double gt_phases_sum(const gt_region_result *region) {
  double sum = 0;
  for (size_t i = 0; i < GT_NPHASES; i++) sum += region->phase_s[i];
  return sum;
}

json_t *gt_json_region(const gt_region_result *region) {
  json_t *object = encode(region_fields, COUNT(region_fields), region);
  json_object_set_new(object, "split", encode(split_fields, COUNT(split_fields), region));
  if (gt_phases_sum(region) > 0)
    json_object_set_new(object, "phases", encode(phase_fields, COUNT(phase_fields), region));
  if (region->mean.samples > 0)
    json_object_set_new(object, "mean_model", encode(mean_fields, COUNT(mean_fields), region));
  return object;
}

json_t *gt_json_link(const gt_link_result *link) {
  json_t *object = encode(link_fields, COUNT(link_fields), link), *kinds = json_object();
  for (size_t i = 0; i < GT_RESULT_KINDS && link->kinds[i].messages > 0; i++)
    json_object_set_new(kinds, link->kinds[i].kind,
                        encode(kind_fields, COUNT(kind_fields), &link->kinds[i]));
  json_object_set_new(object, "kinds", kinds);
  return object;
}

json_t *gt_json_traffic(const gt_region_traffic *traffic) {
  return encode(traffic_fields, COUNT(traffic_fields), traffic);
}

char *gt_result_encode(const gt_region_result *region, const gt_link_result *links, size_t nlinks) {
  json_t *list = json_array(), *root = json_object();
  for (size_t i = 0; i < nlinks; i++) json_array_append_new(list, gt_json_link(&links[i]));
  json_object_set_new(root, "region", gt_json_region(region));
  json_object_set_new(root, "links", list);
  char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
  json_decref(root);
  char *copy = gt_strdup(text ? text : "");
  free(text);
  return copy;
}

static bool take_value(const field *f, const json_t *value, void *to) {
  char *at = (char *)to + f->offset;
  switch (f->kind) {
  case TEXT:
    if (!json_is_string(value) || json_string_length(value) >= f->size) return false;
    memcpy(at, json_string_value(value), json_string_length(value) + 1);
    return true;
  case TEXT_IF:
    if (json_is_string(value)) snprintf(at, f->size, "%s", json_string_value(value));
    return !value || json_is_string(value) || json_is_null(value);
  case INT64_IF:
    *(int64_t *)(void *)at = json_integer_value(value);
    return !value || json_is_integer(value);
  case NUMBER_IF:
    *(double *)(void *)at = json_number_value(value);
    return !value || json_is_number(value);
  case INT:
    *(int *)(void *)at = (int)json_integer_value(value);
    return json_is_integer(value);
  case INT64:
    *(int64_t *)(void *)at = json_integer_value(value);
    return json_is_integer(value);
  case NUMBER:
  case MEASURED:
    *(double *)(void *)at =
        json_is_null(value) ? (f->kind == NUMBER ? NAN : 0.0) : json_number_value(value);
    return json_is_number(value) || json_is_null(value);
  }
  return false;
}

static gt_status decode(const field *fields, size_t n, const json_t *from, void *to) {
  for (size_t i = 0; i < n; i++)
    if (!take_value(&fields[i], json_object_get(from, fields[i].name), to))
      return GT_FAIL(GT_ERR_FAULT,
                     "a region's result has no proper '%s'; the same version of the program is "
                     "needed in all regions",
                     fields[i].name);
  return GT_OK;
}

gt_status gt_json_take_region(const json_t *from, gt_region_result *region) {
  *region = (gt_region_result){0};
  const json_t *phases = json_object_get(from, "phases"),
               *mean = json_object_get(from, "mean_model");
  GT_TRY(decode(region_fields, COUNT(region_fields), from, region));
  if (phases) GT_TRY(decode(phase_fields, COUNT(phase_fields), phases, region));
  if (mean) GT_TRY(decode(mean_fields, COUNT(mean_fields), mean, region));
  return decode(split_fields, COUNT(split_fields), json_object_get(from, "split"), region);
}

gt_status gt_json_take_traffic(const json_t *from, gt_region_traffic *traffic) {
  return decode(traffic_fields, COUNT(traffic_fields), from, traffic);
}

/* The order of the members is that of the encoding. */
static gt_status decode_kinds(json_t *from, gt_kind_result *kinds) {
  const char *name;
  json_t *value;
  size_t n = 0;
  if (!json_is_object(from) || json_object_size(from) > GT_RESULT_KINDS)
    return GT_FAIL(GT_ERR_FAULT,
                   "a region's result has no proper 'kinds' of a link: at most %d are expected",
                   GT_RESULT_KINDS);
  json_object_foreach(from, name, value) {
    if (!*name || strlen(name) >= sizeof kinds->kind)
      return GT_FAIL(GT_ERR_FAULT, "a region's result has a kind of messages named '%.80s'", name);
    GT_TRY(decode(kind_fields, COUNT(kind_fields), value, &kinds[n]));
    if (kinds[n].messages < 1)
      return GT_FAIL(GT_ERR_FAULT, "a region's result has the kind '%s' without a message", name);
    memcpy(kinds[n++].kind, name, strlen(name) + 1);
  }
  return GT_OK;
}

gt_status gt_json_take_link(const json_t *from, gt_link_result *link) {
  *link = (gt_link_result){0};
  GT_TRY(decode(link_fields, COUNT(link_fields), from, link));
  return decode_kinds(json_object_get(from, "kinds"), link->kinds);
}

static gt_status decode_root(const json_t *root, gt_region_result *region, gt_link_result *links,
                             size_t max, size_t *nlinks) {
  const json_t *list = json_object_get(root, "links");
  if (!json_is_array(list)) return GT_FAIL(GT_ERR_FAULT, "a region's result has no list of links");
  if (json_array_size(list) > max)
    return GT_FAIL(GT_ERR_FAULT, "a region's result has %zu links; at most %zu are expected",
                   json_array_size(list), max);
  GT_TRY(gt_json_take_region(json_object_get(root, "region"), region));
  for (size_t i = 0; i < json_array_size(list); i++)
    GT_TRY(gt_json_take_link(json_array_get(list, i), &links[i]));
  *nlinks = json_array_size(list);
  return GT_OK;
}

gt_status gt_result_decode(const char *text, size_t size, gt_region_result *region,
                           gt_link_result *links, size_t max, size_t *nlinks) {
  json_error_t error;
  *nlinks = 0;
  *region = (gt_region_result){0};
  while (size > 0 && text[size - 1] == '\0') size--; /* a NUL that was sent with the text */
  json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  if (!root)
    return GT_FAIL(GT_ERR_FAULT, "a region's result of %zu bytes is not JSON: %s at byte %d", size,
                   error.text, error.position);
  gt_status status = decode_root(root, region, links, max, nlinks);
  json_decref(root);
  return status;
}
