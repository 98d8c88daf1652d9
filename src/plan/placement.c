/* Times of a placement's mini-batches: training, upload of gradients to storage, functions that add
   gradients, workers that poll for the model (Phalak et al., section 3). */
#include "geotrain/plan.h"

#include <math.h>

/* The times of one batch at one aggregator. */
typedef struct {
  gt_ns last;  /* the last gradient (or sum) is in its storage */
  gt_ns model; /* the model is in the storage that its workers read */
  gt_ns ended; /* its function's last invocation has ended and the gradients are deleted */
  gt_ns *in;   /* arrival of each object; nin entries */
  size_t nin;
  gt_ns model_before; /* of the previous batch; negative: none */
} point_time;

typedef struct {
  const gt_plan_placement *p;
  const gt_plan_pace *pace;
  gt_plan_use *use;
  gt_ns *ready; /* start of each worker's batch; nworkers */
  /* time when each worker knows that its gradient is stored, and asks for the model */
  gt_ns *asked;
  gt_ns *in;         /* memory for `in` of all points, nworkers + nregional */
  point_time *point; /* nregional + 1, the global one last */
  gt_plan_split sum; /* over workers and batches, not yet divided */
  size_t bytes;
} course;

/* From a machine or function to a storage. */
static const gt_link_spec *up(const course *c, size_t site, size_t storage) {
  return &c->p->sites->up[site * c->p->sites->n + storage];
}

/* From a storage to a machine or function. */
static const gt_link_spec *down(const course *c, size_t storage, size_t site) {
  return &c->p->sites->down[storage * c->p->sites->n + site];
}

static gt_ns back(const gt_link_spec *link) {
  return gt_from_seconds(link->back_s);
}

/* Sends `objects` one after another over a new connection, or without set-up over an open one.
   Returns the arrival time of the last. */
static gt_ns send(const course *c, const gt_link_spec *link, bool open, size_t objects,
                  gt_ns ready) {
  gt_link_spec spec = *link;
  gt_wire wire = {.link = gt_link_start(1, 0, 1, ready)};
  gt_ns arrive = ready;
  if (open) spec.setup_rtts = 0;
  for (size_t i = 0; i < objects; i++)
    arrive = gt_wire_send(&wire, &spec, NULL, c->bytes, ready).arrive;
  return arrive;
}

/* ---- an aggregator --------------------------------------------------------------------------- */

/* Returns the time of a function's first request to its storage: set-up and one round trip. */
static gt_ns list_time(const course *c, const gt_plan_point *point) {
  const gt_link_spec *spec = up(c, point->function, point->storage);
  return gt_from_seconds((1 + spec->setup_rtts) * (spec->latency_s + spec->back_s));
}

/* Adds up the objects: every invocation lists, the last one then reads all objects and adds them.
   Returns the time of the sum. */
static gt_ns add_up(course *c, const gt_plan_point *point, point_time *t, gt_plan_use *use) {
  const gt_ns list = list_time(c, point);
  t->last = t->in[0];
  for (size_t i = 1; i < t->nin; i++)
    if (t->in[i] > t->last) t->last = t->in[i];
  use->function_s += (double)(t->nin - 1) * gt_seconds(list);
  const gt_link_spec *from = down(c, point->storage, point->function);
  const double add_s_per_gb = c->p->sites->rates[point->function].add_s_per_gb;
  gt_ns listed = t->last + gt_from_seconds(c->pace->start_s) + list,
        read = send(c, from, true, t->nin, listed + back(from));
  return read + gt_from_seconds(add_s_per_gb * (double)t->nin * (double)c->bytes / 1e9);
}

/* Adds the time of the last invocation, and the storage time of the gradients up to their
   deletion. */
static void end_invocation(course *c, point_time *t, gt_plan_use *use, gt_ns ended) {
  t->ended = ended;
  use->function_s += gt_seconds(ended - t->last) - c->pace->start_s;
  for (size_t i = 0; i < t->nin; i++)
    use->stored_gb_s += gt_seconds(ended - t->in[i]) * (double)c->bytes / 1e9;
}

/* Replaces the previous model. */
static void keep_model(course *c, point_time *t, gt_plan_use *use, gt_ns model) {
  if (t->model_before >= 0)
    use->stored_gb_s += gt_seconds(model - t->model_before) * (double)c->bytes / 1e9;
  t->model = t->model_before = model;
}

static void aggregate_central(course *c) {
  const gt_plan_point *point = &c->p->global;
  const gt_link_spec *to = up(c, point->function, point->storage);
  point_time *t = &c->point[0];
  gt_ns model = send(c, to, true, 1, add_up(c, point, t, &c->use[0]));
  end_invocation(c, t, &c->use[0], model + back(to));
  keep_model(c, t, &c->use[0], model);
}

/* Regional functions write sums to the global storage.  The global function writes the model to all
   regional storages at the same time. */
static void aggregate_regional(course *c) {
  const gt_plan_placement *p = c->p;
  const size_t top = p->nregional;
  point_time *global = &c->point[top];
  for (size_t r = 0; r < top; r++) {
    const gt_plan_point *point = &p->regional[r];
    const gt_link_spec *to = up(c, point->function, p->global.storage);
    point_time *t = &c->point[r];
    global->in[r] = send(c, to, false, 1, add_up(c, point, t, &c->use[r]));
    end_invocation(c, t, &c->use[r], global->in[r] + back(to));
  }
  gt_ns added = add_up(c, &p->global, global, &c->use[top]), ended = added;
  for (size_t r = 0; r < top; r++) {
    const gt_link_spec *to = up(c, p->global.function, p->regional[r].storage);
    gt_ns model = send(c, to, false, 1, added), acked = model + back(to);
    keep_model(c, &c->point[r], &c->use[r], model);
    if (acked > ended) ended = acked;
  }
  end_invocation(c, global, &c->use[top], ended);
}

/* ---- workers --------------------------------------------------------------------------------- */

static size_t storage_of(const gt_plan_placement *p, size_t worker) {
  return p->nregional ? p->regional[p->workers[worker].point].storage : p->global.storage;
}

static void train_and_upload(course *c) {
  const gt_plan_placement *p = c->p;
  for (size_t k = 0; k <= p->nregional; k++)
    c->point[k].nin = k < p->nregional || !p->nregional ? 0 : p->nregional;
  for (size_t i = 0; i < p->nworkers; i++) {
    const gt_plan_worker *w = &p->workers[i];
    const gt_link_spec *to = up(c, w->site, storage_of(p, i));
    point_time *t = &c->point[p->nregional ? w->point : 0];
    gt_ns trained = c->ready[i] + gt_from_seconds(w->train_s),
          there = send(c, to, false, 1, trained);
    t->in[t->nin++] = there;
    c->asked[i] = there + back(to);
    double upload_s = gt_seconds(c->asked[i] - trained);
    c->sum.train_s += w->train_s;
    c->sum.upload_s += upload_s;
    c->sum.upload_max_s = fmax(c->sum.upload_max_s, upload_s);
  }
}

/* Polls until the model is in the storage, then reads it. */
static void poll_and_download(course *c, size_t i) {
  const gt_plan_placement *p = c->p;
  const size_t site = p->workers[i].site, storage = storage_of(p, i),
               k = p->nregional ? p->workers[i].point : 0;
  const gt_link_spec *to = up(c, site, storage);
  const gt_ns every =
      gt_from_seconds(fmax(fmax(c->pace->poll_s, to->latency_s + to->back_s), 1e-6));
  /* arrival of the first request at the storage */
  gt_ns first = c->asked[i] + gt_from_seconds(to->latency_s), model = c->point[k].model;
  int64_t failed = first >= model ? 0 : (model - first + every - 1) / every;
  gt_ns found = first + failed * every,
        last = p->nregional ? c->point[p->nregional].last : c->point[0].last;
  c->use[k].failed_reads += (double)failed;
  c->ready[i] = send(c, down(c, storage, site), true, 1, found);
  double download_s = gt_seconds(c->ready[i] - found);
  c->sum.wait_s += gt_seconds(found - c->asked[i]);
  c->sum.aggregate_s += gt_seconds(model - last);
  c->sum.request_s += gt_seconds(found - model);
  c->sum.download_s += download_s;
  c->sum.download_max_s = fmax(c->sum.download_max_s, download_s);
}

/* ---- the run --------------------------------------------------------------------------------- */

static course begin(const gt_plan_placement *p, const gt_plan_pace *pace, gt_plan_use *use) {
  course c = {.p = p, .pace = pace, .use = use, .bytes = (size_t)p->model_bytes};
  c.ready = GT_NEW_ARRAY(gt_ns, p->nworkers);
  c.asked = GT_NEW_ARRAY(gt_ns, p->nworkers);
  c.in = GT_NEW_ARRAY(gt_ns, p->nworkers + p->nregional);
  c.point = GT_NEW_ARRAY(point_time, p->nregional + 1);
  gt_ns *room = c.in;
  for (size_t k = 0; k <= p->nregional; k++) {
    size_t n = k < p->nregional ? 0 : p->nregional ? p->nregional : p->nworkers;
    for (size_t i = 0; k < p->nregional && i < p->nworkers; i++) n += p->workers[i].point == k;
    c.point[k] = (point_time){.in = room, .model_before = -1};
    room += n;
    use[k] = (gt_plan_use){0, 0, 0};
  }
  return c;
}

static gt_plan_split end(course *c, double *vm_s) {
  const gt_plan_placement *p = c->p;
  const double batches = (double)p->batches, all = batches * (double)p->nworkers;
  gt_ns over = 0;
  gt_plan_split *s = &c->sum;
  for (size_t i = 0; i < p->nworkers; i++) {
    vm_s[i] = gt_seconds(c->ready[i]) / batches;
    if (c->ready[i] > over) over = c->ready[i];
  }
  for (size_t k = 0; k <= p->nregional; k++) {
    if (c->point[k].model_before >= 0) keep_model(c, &c->point[k], &c->use[k], over);
    c->use[k].function_s /= batches;
    c->use[k].stored_gb_s /= batches;
    c->use[k].failed_reads /= batches;
  }
  s->batch_s = gt_seconds(over) / batches;
  double *means[] = {&s->train_s,    &s->upload_s,    &s->wait_s,
                     &s->download_s, &s->aggregate_s, &s->request_s};
  for (size_t i = 0; i < sizeof means / sizeof *means; i++) *means[i] /= all;
  gt_free(c->point);
  gt_free(c->in);
  gt_free(c->asked);
  gt_free(c->ready);
  return c->sum;
}

gt_plan_split gt_plan_place(const gt_plan_placement *placement, const gt_plan_pace *pace,
                            double *vm_s, gt_plan_use *use) {
  course c = begin(placement, pace, use);
  for (int64_t b = 0; b < placement->batches; b++) {
    train_and_upload(&c);
    if (placement->nregional)
      aggregate_regional(&c);
    else
      aggregate_central(&c);
    for (size_t i = 0; i < placement->nworkers; i++) poll_and_download(&c, i);
  }
  return end(&c, vm_s);
}
