/* A worker that is not bound to a core may run on any that it is allowed, and the cores of a machine
   differ: by what else runs there, in a virtual machine by its neighbours.  So it is measured on all
   of them in turn. */
#include "fleet.h"

/* The number of the n-th core that is allowed. */
static size_t core_at(const gt_probe_cores *c, size_t n) {
  size_t core = 0;
  while (!CPU_ISSET(core, &c->allowed) || n-- > 0) core++;
  return core;
}

void gt_probe_cores_open(gt_probe_cores *cores, size_t place) {
  *cores = (gt_probe_cores){0};
  if (sched_getaffinity(0, sizeof cores->allowed, &cores->allowed) != 0) return;
  cores->n = (size_t)CPU_COUNT(&cores->allowed);
  cores->first = cores->n > 0 ? place % cores->n : 0;
}

void gt_probe_cores_take(const gt_probe_cores *cores, size_t turn) {
  cpu_set_t one;
  if (cores->n < 2) return;
  CPU_ZERO(&one);
  CPU_SET(core_at(cores, (cores->first + turn) % cores->n), &one);
  sched_setaffinity(0, sizeof one, &one); /* if that fails, it runs where it is */
}

void gt_probe_cores_close(const gt_probe_cores *cores) {
  if (cores->n > 1) sched_setaffinity(0, sizeof cores->allowed, &cores->allowed);
}
