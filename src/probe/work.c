/* The cost of work in a region, from the measurements of each of its workers.  Local, and without
   MPI. */
#include <math.h>

#include "internal.h"

#define ERRORS 3 /* standard errors: workers that differ by less count as equal */

/* ---- a worker ---- */

/* resume_s may be negative: clipping at 0 before averaging would turn noise around 0 into a
   positive mean. */
void gt_probe_tell(gt_probe_rank *own, const gt_probe_tally *warm, const gt_probe_tally *paused) {
  if (warm->steps == 0) return;
  double n = (double)warm->steps, mean = warm->compute_s / n;
  double each = mean + warm->wait_s / n;
  own->steps = warm->steps;
  own->samples_per_s = warm->samples / warm->compute_s;
  own->rate_error = n > 1 ? sqrt(fmax(warm->compute_s2 / n - mean * mean, 0) / (n - 1)) / mean : 0;
  own->local_s = warm->wait_s / n;
  own->paused = paused->steps;
  if (paused->steps > 0)
    own->resume_s = (paused->compute_s + paused->wait_s) / (double)paused->steps - each;
}

/* ---- a region ---- */

static bool are_alike(const gt_probe_state *p, size_t region, double mean) {
  const gt_probe_rank *w;
  for (int i = 0; (w = gt_probe_worker(p, region, i)); i++)
    if (fabs(w->samples_per_s - mean) > ERRORS * w->rate_error * w->samples_per_s) return false;
  return true;
}

static double over(double sum, int n) {
  return n > 0 && sum > 0 ? sum / n : 0;
}

gt_probe_work gt_probe_work_of(const gt_probe_state *p, size_t region) {
  const gt_probe_rank *w;
  gt_probe_work sum = {0};
  int n = 0, paused = 0;
  for (; (w = gt_probe_worker(p, region, n)); n++) {
    sum.samples_per_s += w->samples_per_s;
    sum.eval_samples_per_s += w->eval_samples_per_s;
    sum.local_s += w->local_s - gt_probe_ps(p, region)->update_s;
    sum.resume_s += w->resume_s;
    paused += w->paused > 0;
  }
  double mean = over(sum.samples_per_s, n);
  return (gt_probe_work){.samples_per_s = mean,
                         .eval_samples_per_s = over(sum.eval_samples_per_s, n),
                         .local_s = over(sum.local_s, n),
                         .resume_s = over(sum.resume_s, paused),
                         .alike = are_alike(p, region, mean)};
}

double gt_probe_work_share(const gt_probe_work *work, const gt_probe_rank *worker) {
  return work->alike ? 1 : worker->samples_per_s / work->samples_per_s;
}
