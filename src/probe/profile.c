/* The profile: a fragment of a job in YAML that `profile: FILE` merges; the measurements precede it
   as comments. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* ---- the work of a region -------------------------------------------------------------------- */

#define ERRORS 3 /* standard errors: workers that differ by less count as equal */

/* Means per worker; 0: not measured. */
typedef struct {
  double samples_per_s, eval_samples_per_s;
  double local_s, resume_s; /* local_s: without the PS's update */
  bool alike;               /* its workers differ by no more than their errors */
} work_means;

static bool are_alike(const gt_probe_state *p, size_t region, double mean) {
  const gt_probe_rank *w;
  for (int i = 0; (w = gt_probe_worker(p, region, i)); i++)
    if (fabs(w->samples_per_s - mean) > ERRORS * w->rate_error * w->samples_per_s) return false;
  return true;
}

static double over(double sum, int n) {
  return n > 0 && sum > 0 ? sum / n : 0;
}

static work_means work_of(const gt_probe_state *p, size_t region) {
  const gt_probe_rank *w;
  work_means sum = {0};
  int n = 0, paused = 0;
  for (; (w = gt_probe_worker(p, region, n)); n++) {
    sum.samples_per_s += w->samples_per_s;
    sum.eval_samples_per_s += w->eval_samples_per_s;
    sum.local_s += w->local_s - gt_probe_ps(p, region)->update_s;
    sum.resume_s += w->resume_s;
    paused += w->paused > 0;
  }
  double mean = over(sum.samples_per_s, n);
  return (work_means){.samples_per_s = mean,
                      .eval_samples_per_s = over(sum.eval_samples_per_s, n),
                      .local_s = over(sum.local_s, n),
                      .resume_s = over(sum.resume_s, paused),
                      .alike = are_alike(p, region, mean)};
}

/* Returns a worker's speed relative to that mean. */
static double share_of(const work_means *work, const gt_probe_rank *worker) {
  return work->alike ? 1 : worker->samples_per_s / work->samples_per_s;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Writes one figure of a flow map; `between` is the separator before it. */
__attribute__((format(printf, 3, 4))) static void put(FILE *f, const char **between,
                                                      const char *format, ...) {
  va_list args;
  fputs(*between, f);
  va_start(args, format);
  vfprintf(f, format, args);
  va_end(args);
  *between = ", ";
}

static void put_time(FILE *f, const char **between, const char *key, double s) {
  if (s > 0) put(f, between, "%s: %.6g us", key, s * 1e6);
}

static void put_codecs(FILE *f, const char **between, const gt_probe_rank *ps) {
  bool any = false;
  for (size_t k = 0; k < GT_CODEC_KINDS; k++) {
    const gt_job_codec_cost *c = &ps->codecs[k];
    if (c->encode_bps <= 0) continue;
    put(f, between, "%s%s: {encode: %.6g Mbit/s, decode: %.6g Mbit/s}", any ? "" : "codec: {",
        gt_codec_names[k], 1e-6 * c->encode_bps, 1e-6 * c->decode_bps);
    any = true;
  }
  if (any) fputs("}", f);
}

static void put_speeds(FILE *f, const gt_probe_state *p, size_t region, const work_means *work) {
  const gt_probe_rank *w;
  fprintf(f, ", measured: [");
  for (int i = 0; (w = gt_probe_worker(p, region, i)); i++)
    fprintf(f, "%s%.6g", i ? ", " : "", share_of(work, w));
  fprintf(f, "]");
}

static void put_region(FILE *f, const gt_probe_state *p, size_t region) {
  const gt_probe_rank *ps = gt_probe_ps(p, region);
  const work_means work = work_of(p, region);
  const char *between = "";
  fprintf(f, "  - name: %s\n", p->run.job->regions[region].name);
  if (p->access_bps[region] > 0)
    fprintf(f, "    access: %.6g Mbit/s\n", 1e-6 * p->access_bps[region]);
  fprintf(f, "    compute: {");
  if (work.samples_per_s > 0) put(f, &between, "samples_per_s: %.6g", work.samples_per_s);
  if (work.eval_samples_per_s > 0)
    put(f, &between, "eval_samples_per_s: %.6g", work.eval_samples_per_s);
  put_time(f, &between, "local", work.local_s);
  put_time(f, &between, "resume", work.resume_s);
  put_time(f, &between, "update", ps->update_s);
  put_time(f, &between, "apply", ps->apply_s);
  put_time(f, &between, "encode", ps->encode_s);
  if (ps->checkpoint_s > 0 && !ps->checkpoint_error[0])
    put(f, &between, "checkpoint: %.6g Mbit/s", 8e-6 * ps->checkpoint_bytes / ps->checkpoint_s);
  put_codecs(f, &between, ps);
  if (work.samples_per_s > 0) put_speeds(f, p, region, &work);
  fprintf(f, "}\n");
}

static void put_link(FILE *f, const gt_probe_state *p, size_t from, size_t to) {
  const gt_probe_link *l = &p->all_links[from * p->run.job->nregions + to];
  fprintf(f, "    - {from: %s, to: %s, bandwidth: %.6g Mbit/s, latency: %.6g ms",
          p->run.job->regions[from].name, p->run.job->regions[to].name, 1e-6 * l->profile_bps,
          1e3 * (l->fit_bandwidth_bps > 0 ? l->fit_latency_s : l->latency_s));
  if (l->setup_rtts > 0) fprintf(f, ", setup: %g, eager: %.0f B", l->setup_rtts, l->eager_bytes);
  if (l->window_bytes > 0) fprintf(f, ", window: %.0f B", l->window_bytes);
  if (l->window_bytes > 0 && l->idle_s > 0) fprintf(f, ", idle: %.4g ms", 1e3 * l->idle_s);
  fprintf(f, "}\n");
}

/* Writes the report, with '#' before every line. */
static void put_report(FILE *f, const gt_probe_state *p) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  if (!memory) return;
  gt_probe_report(p, memory);
  fclose(memory);
  char *rest = NULL;
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
    fprintf(f, "# %s\n", line);
  free(text);
}

static void put_profile(FILE *f, const void *state) {
  const gt_probe_state *p = state;
  const gt_job *job = p->run.job;
  size_t n = job->nregions;
  char stamp[64];
  time_t now = time(NULL);
  strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S %z", localtime(&now));
  fprintf(f,
          "# What `geotrain probe` measured on %s (geotrain " GT_VERSION
          "); use: geotrain train JOB.yaml --set profile=FILE\n",
          stamp);
  fprintf(f, "# job %s, model %s, batch %d, links %s\n#\n", job->name,
          gt_model_names[job->model.name], job->train.batch,
          job->wan.emulate ? "emulated (wan.emulate: true)" : "real (wan.emulate: false)");
  put_report(f, p);
  fprintf(f, "\nregions:\n");
  for (size_t r = 0; r < n; r++) put_region(f, p, r);
  if (n > 1) fprintf(f, "wan:\n  links:\n");
  for (size_t a = 0; a < n; a++)
    for (size_t b = 0; b < n; b++)
      if (a != b) put_link(f, p, a, b);
  if (p->all_pairs) gt_probe_put_fleet(f, p);
}

gt_status gt_probe_profile(const gt_probe_state *p, const char *path) {
  if (gt_file_compose(path, put_profile, p)) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT, "the profile %s cannot be written: %s", path, strerror(errno));
}
