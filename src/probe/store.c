/* A store, as each site uses it: the time of a request, and the rates of writing and reading one
   object (Phalak et al., 6.1). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define LOOKS      5
#define LEAST      ((size_t)64 << 10)
#define MOST       ((size_t)64 << 20)
#define TRANSFER_S 0.5 /* least time of the object that gives a rate, */
#define LONG_S     5.0 /* unless the other direction takes this long */

typedef struct {
  gt_objects *objects;
  gt_object_request request;
  uint8_t *body;
} asking;

/* Makes a request, and returns its seconds; NAN: it has failed.  A folder that never answers ends
   the probe: a thread would use memory that is freed. */
static double ask(asking *a, gt_object_op op, const char *name, size_t bytes) {
  const gt_ns since = gt_now();
  gt_backoff backoff = {0};
  a->request.op = op;
  a->request.body = a->body;
  a->request.bytes = bytes;
  snprintf(a->request.name, sizeof a->request.name, "%s", name);
  gt_objects_begin(a->objects, &a->request);
  while (gt_objects_state(&a->request) == GT_OBJECT_BUSY) {
    if (gt_seconds(gt_now() - since) > GT_PROBE_MEET_S)
      gt_panic(GT_ERR_LOST, "waited %.0f s for the store to answer a request for %s",
               GT_PROBE_MEET_S, name);
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, GT_NEVER);
  }
  return gt_objects_state(&a->request) == GT_OBJECT_FAILED ? NAN : gt_seconds(gt_now() - since);
}

/* Returns the least time of a look at an object that is not there. */
static double look(asking *a, const char *name) {
  double least = INFINITY;
  for (int i = 0; i < LOOKS; i++) least = fmin(least, ask(a, GT_OBJECT_GET, name, MOST));
  return least;
}

static double rate(size_t bytes, double s, double request_s) {
  return 8.0 * (double)bytes / fmax(s - request_s, 1e-6);
}

/* Writes and reads larger objects, until both take long enough, or one of them much longer. */
static void transfer(asking *a, const char *name, gt_probe_store *own) {
  double up_s = 0, down_s = 0;
  for (size_t bytes = LEAST; bytes <= MOST; bytes *= 2) {
    if (fmin(up_s, down_s) >= TRANSFER_S || fmax(up_s, down_s) >= LONG_S) return;
    up_s = ask(a, GT_OBJECT_PUT, name, bytes);
    down_s = ask(a, GT_OBJECT_GET, name, MOST);
    if (isnan(up_s + down_s)) return;
    own->up_bps = rate(bytes, up_s, own->request_s);
    own->down_bps = rate(bytes, down_s, own->request_s);
  }
}

gt_status gt_probe_store_measure(const gt_run *run, gt_probe_store *own) {
  asking a = {0};
  char owner[32], name[GT_OBJECT_NAME];
  snprintf(owner, sizeof owner, "rate-%zu", run->roles.region_id);
  snprintf(name, sizeof name, "probe/%s", owner);
  *own = (gt_probe_store){0};
  GT_TRY(
      gt_objects_open(&a.objects, run->job->wan.store.url, owner, run->job->limits.wan_patience_s));
  a.body = gt_alloc(MOST, 1);
  own->request_s = look(&a, name);
  if (isfinite(own->request_s)) transfer(&a, name, own);
  if (own->up_bps > 0) (void)ask(&a, GT_OBJECT_DELETE, name, 0);
  if (own->up_bps <= 0) snprintf(own->fault, sizeof own->fault, "%s: %s", name, a.request.fault);
  if (gt_objects_close(a.objects)) gt_free(a.body);
  return GT_OK;
}

/* ---- what is said ---------------------------------------------------------------------------- */

void gt_probe_store_print(const gt_job *job, const gt_probe_store *all) {
  static const gt_column columns[] = {{.title = "region"},
                                      NUMBER("request", "ms"),
                                      NUMBER("write", "Mbit/s"),
                                      NUMBER("read", "Mbit/s")};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t r = 0; r < job->nregions; r++)
    gt_table_add(t, GT_ROW(gt_cell_text(job->regions[r].name), gt_probe_measured(all[r].request_s),
                           gt_probe_measured(all[r].up_bps), gt_probe_measured(all[r].down_bps)));
  printf("\nthe store, used by one region at a time\n");
  gt_table_finish(stdout, t);
  printf("\nin a job, for the virtual clock, simulate and plan:\nregions:\n");
  for (size_t r = 0; r < job->nregions; r++)
    if (all[r].up_bps > 0)
      printf(
          "  - {name: %s, store: {upload: %.6g Mbit/s, download: %.6g Mbit/s, latency: %.4g ms}}\n",
          job->regions[r].name, 1e-6 * all[r].up_bps, 1e-6 * all[r].down_bps,
          1e3 * all[r].request_s / 2);
}

/* ---- rates for a catalogue ------------------------------------------------------------------- */

typedef struct {
  const gt_job *job;
  const gt_probe_store *all;
} findings;

/* Writes CLOUD:PLACE as two fields. */
static void put_place(FILE *f, const char *place) {
  for (; *place; place++) fputc(*place == ':' ? ',' : *place, f);
}

static void put_rate(FILE *f, const char *rate, const char *from, const char *to, double bps) {
  fprintf(f, "%s,", rate);
  put_place(f, from);
  fputc(',', f);
  put_place(f, to);
  fprintf(f, ",,%.6g,\n", 1e-6 * bps);
}

static void put_rates(FILE *f, const void *what) {
  const findings *found = what;
  const char *store = found->job->wan.store.place;
  fprintf(f, "# Measured by `geotrain probe`, of one object to and from %s.\n",
          found->job->wan.store.url);
  for (size_t r = 0; r < found->job->nregions; r++)
    if (found->job->regions[r].place)
      fprintf(f, "# region %s, %s: %.4g ms for a request\n", found->job->regions[r].name,
              found->job->regions[r].place, 1e3 * found->all[r].request_s);
  fprintf(f, "rate,cloud,place,to_cloud,to_place,from_gb,value,assumed\n");
  for (size_t r = 0; r < found->job->nregions; r++) {
    const char *place = found->job->regions[r].place;
    if (!place) continue;
    put_rate(f, "storage_up_mbit_s", place, store, found->all[r].up_bps);
    put_rate(f, "storage_down_mbit_s", store, place, found->all[r].down_bps);
  }
}

gt_status gt_probe_store_check(const gt_job *job, const char *out) {
  size_t places = 0;
  if (job->wan.transport != GT_WAN_STORE)
    return GT_FAIL(GT_ERR_JOB,
                   "probe --region: --out is for the rates of a store, and wan.transport is %s",
                   gt_wan_transport_names[job->wan.transport]);
  for (size_t r = 0; r < job->nregions; r++) places += job->regions[r].place != NULL;
  if (places > 0 && job->wan.store.place) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "probe --region: %s has rates between places; expected "
                 "wan.store.place and regions[].place",
                 out);
}

gt_status gt_probe_store_rates(const gt_job *job, const gt_probe_store *all, const char *out) {
  if (gt_file_compose(out, put_rates, &(findings){job, all})) {
    printf("\nrates: %s (use: geotrain placement --network %s)\n", out, out);
    return GT_OK;
  }
  return GT_FAIL(GT_ERR_CKPT, "the rates %s cannot be written: %s", out, strerror(errno));
}
