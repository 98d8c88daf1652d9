/* The cost of work: all workers compute at once, driven through the local plane as in training, and
   each PS applies what they push; then the PS's other work, alone. */
#include "geotrain/ps_of_job.h"
#include "compute.h"

#define WORK_S   0.3
#define WORK_MIN 5
#define WORK_MAX 200

/* ---- material of a PS ---- */

/* The run's optimizer with a constant rate, as the probe's number of steps is open.  The length of
   a run's schedule depends on every region's samples, so the region's own samples are used here. */
static gt_optim_spec optimizer_of(const gt_run *run) {
  int64_t *samples = GT_NEW_ARRAY(int64_t, run->job->nregions);
  for (size_t r = 0; r < run->job->nregions; r++) samples[r] = (int64_t)run->npart;
  gt_optim_spec spec = gt_ps_optim_of(run->job, run->roles.region_id, samples);
  spec.schedule = (gt_lr_schedule){.kind = GT_LR_CONSTANT, .lr = spec.schedule.lr};
  gt_free(samples);
  return spec;
}

static gt_status open_material(const gt_run *run, gt_probe_material *m) {
  const gt_arrays *a = gt_graph_arrays(run->graph);
  gt_optim_spec spec = optimizer_of(run);
  spec.tensors = a->views;
  spec.ntensors = a->nviews;
  m->params = a->params, m->grads = a->grads;
  m->message = gt_vec_of(GT_NEW_ARRAY(float, a->params.n), a->params.n);
  return gt_optim_create(&m->optim, &spec, a->params.n, true);
}

static void close_material(gt_probe_material *m) {
  gt_optim_close(m->optim);
  gt_free(m->message.data);
}

/* ---- the PS's work on messages ---- */

static void do_apply(gt_probe_material *m) {
  gt_vec_axpy(m->params, 1e-6F, m->message);
}
static void do_encode(gt_probe_material *m) {
  gt_vec_copy(m->message, m->grads);
}

static double time_work(gt_probe_material *m, void (*what)(gt_probe_material *)) {
  double times[WORK_MAX];
  size_t n = 0;
  gt_ns end = gt_now() + gt_from_seconds(WORK_S);
  what(m);
  while (n < WORK_MIN || (n < WORK_MAX && gt_now() < end)) {
    gt_ns from = gt_now();
    what(m);
    times[n++] = gt_seconds(gt_now() - from);
  }
  return gt_probe_median(times, n);
}

static void time_ps(gt_probe_state *p, gt_probe_material *m) {
  p->own.apply_s = time_work(m, do_apply);
  p->own.encode_s = time_work(m, do_encode);
}

/* ---- both ---- */

void gt_probe_compute(gt_probe_state *p) {
  gt_run *run = &p->run;
  gt_probe_steps *steps = NULL;
  gt_probe_material m = {0};
  gt_status status = run->roles.is_ps ? open_material(run, &m) : gt_probe_steps_open(&steps, p);
  status = gt_agree(run->roles.world, status, p->limit_s);
  if (status == GT_OK) {
    if (run->roles.is_ps)
      gt_probe_serve(p, &m);
    else
      gt_probe_steps_run(steps);
    gt_probe_meet(p, "the other workers' speed");
    /* Regions may share a machine: the PS ranks work one after another. */
    for (size_t r = 0; r < run->job->nregions; r++) {
      if (run->roles.is_ps && r == run->roles.region_id) time_ps(p, &m);
      gt_probe_meet(p, "the work of another region's PS");
    }
  }
  if (status != GT_OK) snprintf(p->data_error, sizeof p->data_error, "%s", gt_error_text());
  close_material(&m);
  gt_probe_steps_close(steps);
}
