/* Between sites, each an MPI job of its own: addresses, certificates, and the round trip and rate
   of every direction, measured by the messages of a run's gateway. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define PINGS       5
#define BULK_LEAST  ((size_t)64 << 10)
#define BULK_MOST   ((size_t)16 << 20)
#define BULK_S      0.5 /* least time of the message that gives the rate */
#define BULK_WAIT_S 300.0

/* A site, as it says of itself. */
typedef struct {
  char address[128];
  gt_setup_cert cert;
} site;

/* One direction, measured by its sender; 0: nothing came back. */
typedef struct {
  double round_trip_s, bps;
} direction;

typedef struct {
  gt_gateway *gateway;
  uint64_t answer; /* value of the last PONG */
  bool departed;
} probing;

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  probing *p = ctx;
  (void)payload;
  const gt_frame_header pong = {.kind = GT_MSG_PONG, .value = head->value};
  if (head->kind == GT_MSG_PING) gt_gateway_send(p->gateway, peer, &pong, NULL, 0, 0, now);
  if (head->kind == GT_MSG_PONG) p->answer = head->value;
}

static void on_departed(void *ctx, size_t peer, uint64_t cookie, gt_ns now) {
  (void)peer, (void)cookie, (void)now;
  ((probing *)ctx)->departed = true;
}

static void keep_polling(void *ctx) {
  (void)gt_gateway_poll(((probing *)ctx)->gateway, gt_now());
}

static bool answered(const probing *p, uint64_t value) {
  return value > 0 ? p->answer == value : p->departed;
}

/* Waits for the answer to a ping, or (value 0) until the message has left.  Returns the seconds; 0:
   nothing came in time. */
static double wait_for(probing *p, uint64_t value, double limit_s) {
  const gt_ns since = gt_now();
  gt_backoff backoff = {0};
  gt_backoff_reset(&backoff);
  while (!answered(p, value)) {
    if (gt_seconds(gt_now() - since) > limit_s) return 0;
    if (!gt_gateway_poll(p->gateway, gt_now()))
      gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, GT_NEVER);
    else
      gt_backoff_reset(&backoff);
  }
  return gt_seconds(gt_now() - since);
}

static double round_trip(probing *p, size_t peer, double limit_s) {
  double least = 0;
  for (uint64_t i = 1; i <= PINGS; i++) {
    const gt_frame_header ping = {.kind = GT_MSG_PING, .value = i};
    p->answer = 0;
    gt_gateway_send(p->gateway, peer, &ping, NULL, 0, 0, gt_now());
    const double s = wait_for(p, i, limit_s);
    if (s == 0) return 0;
    if (least == 0 || s < least) least = s;
  }
  return least;
}

/* A message has left when it is acknowledged, so its time has one round trip. */
static double rate(probing *p, size_t peer, double round_trip_s, const char *bulk) {
  const gt_frame_header head = {.kind = GT_MSG_MODEL};
  for (size_t bytes = BULK_LEAST;; bytes *= 2) {
    p->departed = false;
    gt_gateway_send(p->gateway, peer, &head, bulk, bytes, 1, gt_now());
    const double s = wait_for(p, 0, BULK_WAIT_S);
    if (s == 0) return 0;
    if (s >= BULK_S + round_trip_s || bytes == BULK_MOST)
      return 8.0 * (double)bytes / fmax(s - round_trip_s, 1e-6);
  }
}

/* Measures every direction in turn, while the other regions answer. */
static void measure(gt_probe_state *state, direction *own) {
  const size_t n = state->run.job->nregions, self = state->run.roles.region_id;
  const double limit_s = state->options->link_limit_s > 0 ? state->options->link_limit_s : 10;
  probing p = {0};
  const gt_gateway_events events = {&p, on_message, on_departed, NULL};
  char *bulk = gt_alloc(BULK_MOST, 1);
  p.gateway = gt_setup_gateway(&state->run, BULK_MOST, &events);
  const gt_peers_wait turn = {.what = "the measurements of the other regions",
                              .limit_s = GT_PROBE_MEET_S,
                              .progress = keep_polling,
                              .context = &p};
  for (size_t from = 0; from < n; from++) {
    for (size_t to = 0; to < n; to++) {
      if (from == to) continue;
      if (from == self) own[to].round_trip_s = round_trip(&p, to, limit_s);
      if (from == self && own[to].round_trip_s > 0)
        own[to].bps = rate(&p, to, own[to].round_trip_s, bulk);
      gt_peers_meet(state->run.roles.ps, &turn);
    }
  }
  gt_gateway_close(p.gateway, GT_PROBE_MEET_S);
  gt_free(bulk);
}

/* Measures the store from each region in turn. */
static gt_status measure_store(gt_probe_state *p, gt_probe_store *own) {
  gt_status status = GT_OK;
  const gt_peers_wait turn = {.what = "the measurements of the store by the other regions",
                              .limit_s = GT_PROBE_MEET_S};
  for (size_t r = 0; r < p->run.job->nregions; r++) {
    if (r == p->run.roles.region_id) status = gt_probe_store_measure(&p->run, own);
    gt_peers_meet(p->run.roles.ps, &turn);
  }
  return status;
}

/* ---- what is said ---------------------------------------------------------------------------- */

static void print_sites(const gt_job *job, const site *sites) {
  static const gt_column columns[] = {
      {.title = "region"}, {.title = "address"}, {.title = "certificate"}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t r = 0; r < job->nregions; r++) {
    const site *s = &sites[r];
    const bool store = job->wan.transport == GT_WAN_STORE;
    const char *found = s->address[0] ? s->address : store ? "by the store" : "dials only";
    char cert[512];
    snprintf(cert, sizeof cert, "%s", store ? "none" : "no TLS");
    if (s->cert.path[0])
      snprintf(cert, sizeof cert, "%s, of %s, until %s", s->cert.path, job->regions[r].name,
               s->cert.until);
    gt_table_add(
        t, GT_ROW(gt_cell_text(job->regions[r].name), gt_cell_text(found), gt_cell_text(cert)));
  }
  gt_table_finish(stdout, t);
}

static void print_directions(const gt_job *job, const direction *all) {
  static const gt_column columns[] = {
      {.title = "from"}, {.title = "to"}, NUMBER("round trip", "ms"), NUMBER("rate", "Mbit/s")};
  const size_t n = job->nregions;
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t i = 0; i < n * n; i++)
    if (i / n != i % n)
      gt_table_add(
          t, GT_ROW(gt_cell_text(job->regions[i / n].name), gt_cell_text(job->regions[i % n].name),
                    gt_probe_measured(all[i].round_trip_s), gt_probe_measured(all[i].bps)));
  putchar('\n');
  gt_table_finish(stdout, t);
}

/* Prints the reasons for a NO-GO; returns their number. */
static size_t print_reasons(const gt_probe_state *p, const site *sites, const direction *all,
                            const gt_probe_store *stores, FILE *to) {
  const gt_job *job = p->run.job;
  size_t reasons = 0;
  for (size_t r = 0; r < job->nregions; r++)
    if (sites[r].cert.left_s < job->slurm.time_s && ++reasons)
      fprintf(to,
              "  the certificate of region %s expires at %s, before the end of a job of %.0f s "
              "(slurm.time)\n",
              job->regions[r].name, sites[r].cert.until, job->slurm.time_s);
  for (size_t i = 0; i < job->nregions * job->nregions; i++)
    if (i / job->nregions != i % job->nregions && all[i].bps <= 0 && ++reasons)
      fprintf(to, "  from region %s nothing comes back to region %s\n",
              job->regions[i % job->nregions].name, job->regions[i / job->nregions].name);
  for (size_t r = 0; r < job->nregions; r++)
    if (stores[r].fault[0] && ++reasons)
      fprintf(to, "  region %s cannot use the store: %s\n", job->regions[r].name, stores[r].fault);
  if (p->data_error[0] && ++reasons) fprintf(to, "  %s\n", p->data_error);
  if (p->folder_error[0] && ++reasons) fprintf(to, "  %s\n", p->folder_error);
  return reasons;
}

static gt_status conclude(const gt_probe_state *p, const site *sites, const direction *all,
                          const gt_probe_store *stores) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  if (!memory) return GT_FAIL(GT_ERR_FAULT, "no memory for the verdict");
  const size_t reasons = print_reasons(p, sites, all, stores, memory);
  fclose(memory);
  print_sites(p->run.job, sites);
  print_directions(p->run.job, all);
  if (p->run.job->wan.transport == GT_WAN_STORE) gt_probe_store_print(p->run.job, stores);
  gt_status status = GT_OK;
  if (p->options->out && reasons == 0)
    status = gt_probe_store_rates(p->run.job, stores, p->options->out);
  printf("\n%s\n%s", reasons ? "NO-GO" : "GO", text);
  free(text);
  return reasons ? GT_FAIL(GT_ERR_NOGO, "NO-GO") : status;
}

static gt_status probe_servers(gt_probe_state *p) {
  const gt_run *run = &p->run;
  const gt_job_region *region = &run->job->regions[run->roles.region_id];
  const size_t n = run->job->nregions;
  site own = {0}, *sites = GT_NEW_ARRAY(site, n);
  direction *directions = GT_NEW_ARRAY(direction, n), *all = GT_NEW_ARRAY(direction, n * n);
  gt_probe_store store = {0}, *stores = GT_NEW_ARRAY(gt_probe_store, n);
  if (region->address) snprintf(own.address, sizeof own.address, "%s", region->address);
  gt_status status = gt_setup_certificate(run->job, run->roles.region_id, &own.cert);
  measure(p, directions);
  if (run->job->wan.transport == GT_WAN_STORE && status == GT_OK) status = measure_store(p, &store);
  static const char what[] = "the figures of the other regions";
  gt_peers_gather(run->roles.ps, &own, sizeof own, sites, what, p->limit_s);
  gt_peers_gather(run->roles.ps, directions, n * sizeof *all, all, what, p->limit_s);
  gt_peers_gather(run->roles.ps, &store, sizeof store, stores, what, p->limit_s);
  if (status == GT_OK) status = conclude(p, sites, all, stores);
  gt_free(sites);
  gt_free(stores);
  gt_free(directions);
  gt_free(all);
  return status;
}

gt_status gt_probe_sites(gt_probe_state *p) {
  return gt_agree(p->run.roles.world, p->run.roles.is_ps ? probe_servers(p) : GT_OK,
                  GT_PROBE_MEET_S);
}
