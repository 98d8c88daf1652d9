/* The model that a command takes: a file, or what a run ended with. */
#ifndef GEOTRAIN_CLI_RUN_MODEL_H
#define GEOTRAIN_CLI_RUN_MODEL_H

#include "geotrain/ckpt.h"

/* The file that is meant into path: `named` itself, or, where it is a run directory, its final
   model (region NULL) or that of a region.  GT_ERR_CKPT: there is none, and what there is;
   GT_ERR_JOB: a region of what is no directory. */
gt_status gt_cli_run_model(char *path, size_t size, const char *named, const char *region);
/* "round 7 of region a", "the final model, the mean of 2 regions'" into text. */
void gt_cli_describe_model(char *text, size_t size, const gt_ckpt_info *info);

#endif
