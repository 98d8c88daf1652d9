/* What regions have asked of a store: sums, and JSON for the record. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>

void gt_store_add(gt_store_result *sum, const gt_store_result *more) {
#define ADD(member) sum->member += more->member;
  GT_STORE_COUNTS(ADD)
#undef ADD
  sum->function_s += more->function_s;
  sum->gb_s += more->gb_s;
}

void gt_store_text(const gt_store_result *result, char text[GT_STORE_TEXT]) {
  int used = snprintf(text, GT_STORE_TEXT, "{\"gb_s\":%.9g", result->gb_s);
#define PUT(member)                                                                                \
  used += snprintf(text + used, GT_STORE_TEXT - (size_t)used, ",\"" #member "\":%" PRId64,         \
                   result->member);
  GT_STORE_COUNTS(PUT)
#undef PUT
  snprintf(text + used, GT_STORE_TEXT - (size_t)used, "}");
}

void gt_store_take(gt_store_result *out, const json_t *from) {
#define TAKE(member) out->member = json_integer_value(json_object_get(from, #member));
  GT_STORE_COUNTS(TAKE)
#undef TAKE
  out->gb_s = json_number_value(json_object_get(from, "gb_s"));
}
