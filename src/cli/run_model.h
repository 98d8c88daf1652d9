/* The input model of a command: a file, or the result of a run. */
#ifndef GEOTRAIN_CLI_RUN_MODEL_H
#define GEOTRAIN_CLI_RUN_MODEL_H

#include "geotrain/ckpt.h"

/* Writes the path of the model to path: `named` itself or, if it is a run directory, its final
   model (region NULL) or that of a region.  GT_ERR_CKPT: no such model; the text lists the existing
   ones.  GT_ERR_JOB: a region was given, but `named` is not a directory. */
gt_status gt_cli_run_model(char *path, size_t size, const char *named, const char *region);
/* Writes "round 7 of region a", or "the final model, the mean of 2 regions", to text. */
void gt_cli_describe_model(char *text, size_t size, const gt_ckpt_info *info);

#endif
