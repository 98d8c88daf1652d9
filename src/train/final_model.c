/* The file of a final model, durable before the summary refers to it. */
#include <stdio.h>

#include "ending.h"

gt_region_result gt_final_model_total(const gt_region_result *regions, size_t n) {
  gt_region_result all = {0};
  for (const gt_region_result *r = regions; r < regions + n; r++) {
    const int64_t steps = r->best_steps ? r->best_steps : r->steps;
    if (steps > all.steps) all.steps = steps;
    all.samples += r->best_samples ? r->best_samples : r->samples;
  }
  return all;
}

void gt_final_model_begin(gt_final_model *f, const gt_server *s, const char *region,
                          const gt_region_result *of, gt_vec params, gt_vec buffers) {
  gt_ckpt_info info;
  gt_state state = {0};
  gt_server_describe(s, &info);
  info.step = of->steps;
  info.samples = of->samples;
  info.mean_of = region ? 1 : (int64_t)gt_job_training(s->run->job);
  snprintf(info.region, sizeof info.region, "%s", region ? region : "");
  gt_sha256_hex(params.data, params.n * sizeof(float), info.params_sha256);
  gt_state_add(&state, "model/", "params", GT_TYPE_F32, params.data, params.n);
  gt_state_add(&state, "model/", "buffers", GT_TYPE_F32, buffers.data, buffers.n);
  gt_setup_save_data(s->run, &state);
  gt_status status = gt_ckpt_write_final_model(&f->writer, s->run->run_dir, region, &info, &state);
  gt_state_close(&state);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
  f->since = gt_now();
}

bool gt_final_model_durable(gt_final_model *f, gt_server *s) {
  gt_status result = GT_OK;
  if (f->durable) return true;
  while (gt_ckpt_poll(f->writer, &result) != GT_CKPT_DONE) {
    double limit = gt_server_write_limit(s), waited = gt_seconds(gt_now() - f->since);
    if (waited >= limit)
      gt_panic(GT_ERR_CKPT, "waited %.0f s for the final model of region %s to be written to %s",
               waited, s->run->region, s->run->run_dir);
    if (!s->clock->wait(s)) return false;
  }
  gt_server_must_write(s, result);
  return f->durable = true;
}

void gt_final_model_close(gt_final_model *f) {
  gt_ckpt_writer_close(f->writer);
}
