/* Models by number and by name. */
#include "models.h"

#include <string.h>

#define TABLE(constant, name, table) [constant] = &table,
static const gt_model *const models[] = {GT_MODELS(TABLE)};

const gt_model *gt_model_find(const char *name) {
  for (size_t i = 0; gt_model_names[i]; i++)
    if (strcmp(gt_model_names[i], name) == 0) return models[i];
  return NULL;
}
