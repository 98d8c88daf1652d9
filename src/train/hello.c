/* The handshake of the PS ranks: compares by name what must agree, and finds the round to resume
   from by messages alone. */
#include <string.h>
#include <unistd.h>

#include "internal.h"

_Static_assert(sizeof(gt_hello) == GT_HELLO_BYTES, "a simulation counts it");

void gt_server_hello_message(gt_server *s, size_t peer, const gt_frame_header *head,
                             const void *payload) {
  if (head->message_bytes != sizeof(gt_hello))
    gt_panic(
        GT_ERR_JOB, "region %s runs another build: its greeting has %llu bytes, %zu are needed",
        s->run->job->regions[peer].name, (unsigned long long)head->message_bytes, sizeof(gt_hello));
  if (s->hellos[peer].protocol == 0) s->nhellos++;
  gt_hello *h = &s->hellos[peer];
  memcpy(h, payload, sizeof *h);
  /* refused later; its other fields may have a different layout */
  if (h->protocol != GT_PROTOCOL_VERSION) h->nrounds = 0;
  if (h->nrounds < 0 || h->nrounds > GT_MAX_ROUNDS)
    gt_gateway_refuse(s->gateway, peer, "HELLO names %lld rounds", (long long)h->nrounds);
  char *const texts[] = {h->job, h->traces, h->data, h->model, h->weights};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) texts[i][GT_SHA256_HEX - 1] = '\0';
  h->error[sizeof h->error - 1] = '\0';
}

static gt_status differs(const gt_server *s, size_t peer, const char *what, const char *there,
                         const char *here) {
  return GT_FAIL(
      GT_ERR_JOB,
      "region %s has another %s than region %s: %s there, %s here; all regions need the same",
      s->run->job->regions[peer].name, what, s->run->region, there, here);
}

/* Statuses with which a region can refuse to begin. */
static bool is_refusal(uint32_t status) {
  return status == GT_ERR_JOB || status == GT_ERR_DATA || status == GT_ERR_CKPT ||
         status == GT_ERR_FAULT;
}

static gt_status compare(const gt_server *s, size_t peer, const gt_hello *own) {
  const gt_hello *h = &s->hellos[peer];
  if (h->protocol != GT_PROTOCOL_VERSION)
    return GT_FAIL(GT_ERR_JOB,
                   "region %s speaks protocol %u, this is protocol %d; all regions need the same "
                   "version of geotrain",
                   s->run->job->regions[peer].name, h->protocol, GT_PROTOCOL_VERSION);
  if (h->status != GT_OK && !is_refusal(h->status))
    return GT_FAIL(GT_ERR_LOST, "region %s: HELLO has status %u, which is none",
                   s->run->job->regions[peer].name, h->status);
  if (h->status != GT_OK)
    return GT_FAIL((gt_status)h->status, "region %s: %.500s", s->run->job->regions[peer].name,
                   h->error);
  if (strcmp(h->job, own->job) != 0) return differs(s, peer, "job", h->job, own->job);
  if (strcmp(h->traces, own->traces) != 0)
    return differs(s, peer, "set of bandwidth traces (wan.links[].trace)", h->traces, own->traces);
  if (strcmp(h->data, own->data) != 0) {
    (void)differs(s, peer, "data schema (image size, classes, type or normalisation)", h->data,
                  own->data);
    return GT_FAIL(GT_ERR_DATA, "%s", gt_error_text());
  }
  if (strcmp(h->model, own->model) != 0) return differs(s, peer, "model", h->model, own->model);
  return GT_OK;
}

static bool has_final_model(const gt_run *run) {
  char path[1300];
  return access(gt_ckpt_final_model_path(path, sizeof path, run->run_dir, NULL), F_OK) == 0 ||
         access(gt_ckpt_final_model_path(path, sizeof path, run->run_dir, run->region), F_OK) == 0;
}

/* There is no round to go on from.  Checks that only this region can make: a round was whole
   everywhere, or a final model would be replaced, or the initial weights could not be read. */
static gt_status may_begin(const gt_server *s, const gt_hello *own) {
  const gt_run *run = s->run;
  char path[1300];
  if (own->nrounds > 0 && gt_ckpt_was_whole(run->run_dir, run->region))
    return GT_FAIL(
        GT_ERR_CKPT,
        "%s was whole in every region, and another region has lost it; restore its files or begin "
        "in another --run-dir",
        gt_ckpt_path(path, sizeof path, run->run_dir, own->rounds[own->nrounds - 1], run->region));
  if (gt_ckpt_was_whole(run->run_dir, run->region))
    return GT_FAIL(GT_ERR_CKPT,
                   "%s/ckpt: a checkpoint was whole in every region, and all its rounds are lost; "
                   "restore them or begin in another --run-dir",
                   run->run_dir);
  if (run->options->resume != GT_RESUME_NO && has_final_model(run))
    return GT_FAIL(GT_ERR_CKPT,
                   "%s holds a final model and no checkpoint to go on from; restore %s/ckpt or "
                   "begin in another --run-dir",
                   run->run_dir, run->run_dir);
  if (run->init_missing)
    return GT_FAIL(GT_ERR_CKPT,
                   "train.init %s cannot be read, and there is no checkpoint to go on from",
                   run->job->train.init);
  return GT_OK;
}

static gt_status same_weights(const gt_server *s, const gt_hello *own) {
  for (size_t p = 0; p < s->run->job->nregions; p++)
    if (strcmp(s->hellos[p].weights, own->weights) != 0)
      return differs(s, p, "set of initial weights (train.init)", s->hellos[p].weights,
                     own->weights);
  return GT_OK;
}

gt_status gt_server_hello(gt_server *s, const gt_hello *own, int64_t *round, int64_t *newest) {
  size_t n = s->run->job->nregions, self = s->run->roles.region_id;
  gt_ns deadline = gt_now() + gt_from_seconds(s->run->start_limit_s);
  gt_backoff backoff = {0};
  gt_frame_header head = {.kind = GT_MSG_HELLO};
  s->hellos[self] = *own;
  for (size_t p = 0; p < n; p++)
    if (p != self) gt_gateway_send(s->gateway, p, &head, own, sizeof *own, 0, gt_now());
  gt_backoff_reset(&backoff);
  /* This region's own greetings must also have been sent: nothing drives the gateway until all
     ranks have agreed to start. */
  for (bool large = true;
       s->nhellos + 1 < n || large || gt_gateway_next(s->gateway, &large) != GT_NEVER;) {
    gt_ns now = gt_now();
    if (gt_gateway_poll(s->gateway, now)) {
      gt_backoff_reset(&backoff);
      continue;
    }
    if (now > deadline) {
      size_t missing = 0;
      while (missing < n && (missing == self || s->hellos[missing].protocol != 0)) missing++;
      if (missing == n)
        gt_panic(GT_ERR_LOST, "waited %.0f s for the greetings of region %s to leave",
                 s->run->start_limit_s, s->run->region);
      gt_panic(GT_ERR_LOST, "waited %.0f s for the greeting of region %s", s->run->start_limit_s,
               s->run->job->regions[missing].name);
    }
    gt_backoff_sleep(&backoff, GT_BACKOFF_IDLE, gt_gateway_next(s->gateway, &large));
  }
  gt_status status =
      own->status == GT_OK ? GT_OK : GT_FAIL((gt_status)own->status, "%s", own->error);
  for (size_t p = 0; p < n && status == GT_OK; p++)
    if (p != self) status = compare(s, p, own);
  *round = 0;
  if (status == GT_OK) status = gt_server_settle_round(s, round);
  if (*round == 0 && status == GT_OK) status = may_begin(s, own);
  if (*round == 0 && status == GT_OK) status = same_weights(s, own);
  *newest = 0;
  for (size_t p = 0; p < n; p++)
    if (s->hellos[p].newest_round > *newest) *newest = s->hellos[p].newest_round;
  return status;
}
