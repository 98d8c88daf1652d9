/* The region's buffers come from its workers; exchanges change them while workers compute. */
#include "internal.h"

void gt_ps_buffers_open(gt_ps *ps) {
  const gt_vec *buffers = &ps->spec.buffers;
  ps->nmoved = ps->spec.local_async ? ps->spec.nworkers : 1;
  ps->moved = GT_NEW_ARRAY(ps_moved, ps->nmoved);
  for (size_t i = 0; i < ps->nmoved; i++)
    ps->moved[i].add =
        gt_vec_of(buffers->data && buffers->n ? GT_NEW_ARRAY(float, buffers->n) : NULL, buffers->n);
}

void gt_ps_buffers_close(gt_ps *ps) {
  for (size_t i = 0; i < ps->nmoved; i++) gt_free(ps->moved[i].add.data);
  gt_free(ps->moved);
}

static ps_moved *moved_of(const gt_ps *ps, size_t worker) {
  return &ps->moved[ps->spec.local_async ? worker : 0];
}

void gt_ps_buffers_ordered(gt_ps *ps, size_t worker) {
  moved_of(ps, worker)->any = false;
}

void gt_ps_buffers_moved(void *ctx, float keep, float share, gt_vec other) {
  gt_ps *ps = ctx;
  for (size_t i = 0; i < ps->nmoved; i++) {
    ps_moved *m = &ps->moved[i];
    if (m->any) {
      gt_vec_scale(m->add, keep);
      gt_vec_axpy(m->add, share, other);
    } else
      gt_vec_set_scaled(m->add, share, other);
    m->keep = (m->any ? m->keep : 1) * keep;
    m->any = true;
  }
}

/* Applies the changes of exchanges in `m` to floats that were just replaced by those of a worker
   that began before the exchanges.  Adding the changes of both could make a variance negative. */
static void move(gt_ps *ps, const ps_moved *m, size_t offset, size_t count) {
  const gt_vec y = gt_vec_range(ps->spec.buffers, offset, count);
  if (!m->any) return;
  if (m->keep == 0) { /* whatever they are, non-finite too */
    gt_vec_copy(y, gt_vec_range(m->add, offset, count));
    return;
  }
  gt_vec_scale(y, m->keep);
  gt_vec_axpy(y, 1, gt_vec_range(m->add, offset, count));
}

static void catch_up(gt_ps *ps, const ps_moved *m, const float *buffers) {
  if (buffers) move(ps, m, 0, ps->spec.buffers.n);
}

/* Replaces the region's buffers by those of a worker. */
static void take(gt_ps *ps, const float *buffers) {
  gt_vec_copy(ps->spec.buffers, gt_vec_of((float *)(uintptr_t)buffers, ps->spec.buffers.n));
}

void gt_ps_buffers_take(gt_ps *ps, size_t worker) {
  const float *buffers = ps->workers[worker].push.buffers;
  take(ps, buffers);
  catch_up(ps, moved_of(ps, worker), buffers);
}

/* The buffers of a single worker are copied, because a mean of one could round. */
void gt_ps_buffers_mean(gt_ps *ps) {
  if (ps->parts.n == 1)
    take(ps, ps->parts.buffers[0]);
  else
    gt_vec_mean(ps->spec.buffers, ps->parts.buffers, ps->parts.samples, ps->parts.n);
  catch_up(ps, &ps->moved[0], ps->parts.buffers[0]);
}

void gt_ps_buffers_again(gt_ps *ps, size_t offset, size_t count) {
  move(ps, &ps->moved[0], offset, count);
}
