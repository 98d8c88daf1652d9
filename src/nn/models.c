/* The list of models. */
#include "models.h"

#include <string.h>

static const gt_model *const models[] = {&gt_model_lenet5, &gt_model_resnet18, &gt_model_deepfm, &gt_model_dummy};
enum { NMODELS = sizeof models / sizeof *models };

const gt_model *gt_model_find(const char *name) {
  for (size_t i = 0; i < NMODELS; i++)
    if (strcmp(models[i]->name, name) == 0) return models[i];
  return NULL;
}

/* Beside the list above, for a static array cannot be filled from it. */
const char *const *gt_model_names(void) {
  static const char *const names[NMODELS + 1] = {"lenet5", "resnet18", "deepfm", "dummy"};
  return names;
}
