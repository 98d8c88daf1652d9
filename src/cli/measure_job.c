/* `geotrain info JOB --measure`: makes the measurements of the start of a training run, and stores
   them for runs that must be repeatable. */
#include "measure_job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/sim_shape.h"

static gt_status list_layers(gt_choices *out, const gt_job *job) {
  gt_sim_shape shape;
  gt_graph *graph = NULL;
  const char *why;
  const bool bf16 = job->train.precision == GT_BF16;
  GT_TRY(gt_sim_shape_of(&shape, job));
  if (bf16 && !gt_kernels_bf16(&why))
    fprintf(stderr, "geotrain: train.precision is bf16, and %s: f32 is measured\n", why);
  gt_graph_spec spec = gt_graph_spec_of(job);
  spec.shape = shape.sample;
  spec.kernels = gt_kernels_find("auto");
  spec.precision = bf16 && gt_kernels_bf16(&why) ? GT_BF16 : GT_F32;
  const gt_status status = gt_graph_create(&graph, &spec);
  for (size_t r = 0; status == GT_OK && r < job->nregions; r++)
    gt_graph_layers(
        graph, (size_t)(shape.samples[r] < job->train.batch ? shape.samples[r] : job->train.batch),
        out);
  gt_graph_close(graph);
  gt_sim_shape_close(&shape);
  return status;
}

static gt_status write_text(const char *out, const char *text) {
  FILE *file = out ? fopen(out, "we") : stdout;
  bool whole = file && fputs(text, file) >= 0;
  if (out && file && fclose(file) != 0) whole = false;
  return whole ? GT_OK
               : GT_FAIL(GT_ERR_JOB, "info: %s cannot be written: %s",
                         out ? out : "standard output", strerror(errno));
}

gt_status gt_cli_measure_job(const gt_job *job, const char *out) {
  gt_choices choices = {0};
  gt_status status = list_layers(&choices, job);
  if (status == GT_OK) {
    gt_choices_measure(&choices, gt_kernels_find("auto"));
    char *text = gt_choices_text(&choices);
    status = write_text(out, text);
    gt_free(text);
  }
  if (status == GT_OK && out)
    fprintf(stderr,
            "geotrain: %zu layers measured in %.2f s; use them with --set train.choices=%s\n",
            choices.n, choices.seconds, out);
  gt_choices_close(&choices);
  return status;
}
