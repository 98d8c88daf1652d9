/* The rates at which the PS encodes and decodes messages with the codec of the job, and with those
   that a plan compares. */
#include <string.h>

#include "geotrain/ps_of_job.h"
#include "internal.h"

#define LONG_S  0.5
#define LEAST   5
#define MOST    100
#define TYPICAL 1e-3F /* standard deviation of the numbers of a message */

typedef struct {
  gt_codec *codec;
  gt_codec_turn turn;
  size_t steps, n, payload_bytes;
  bool decodes; /* the sender applies its own message as the others decode it */
  float *x, *y, *residual;
  unsigned char *payload;
} messages;

static gt_status open_messages(messages *m, const gt_job *job, const gt_exchange_codec *with) {
  gt_rng rng = gt_rng_make(job->seed, GT_RNG_COMPUTE, 0, 0);
  *m = (messages){.steps = gt_codec_facts_of(with->kind).steps,
                  .decodes = gt_sync_of(job->sync.strategy)->waits &&
                             !gt_codec_has(with->kind, GT_RESUMS)};
  GT_TRY(gt_codec_open(&m->codec, with->kind, &with->spec, with->tensors, with->ntensors));
  m->n = gt_codec_values(m->codec);
  for (size_t step = 0; step < m->steps; step++) {
    const size_t bytes = gt_codec_bound(m->codec, &(gt_codec_turn){.step = step});
    if (bytes > m->payload_bytes) m->payload_bytes = bytes;
  }
  m->x = GT_NEW_ARRAY(float, m->n);
  m->y = GT_NEW_ARRAY(float, m->n);
  m->residual = GT_NEW_ARRAY(float, gt_codec_facts_of(with->kind).residuals * m->n);
  m->payload = GT_NEW_ARRAY(unsigned char, m->payload_bytes);
  for (size_t i = 0; i < m->n; i++) m->x[i] = TYPICAL * (float)gt_rng_normal(&rng);
  return GT_OK;
}

static void close_messages(messages *m) {
  gt_codec_close(m->codec);
  gt_free(m->x);
  gt_free(m->y);
  gt_free(m->residual);
  gt_free(m->payload);
}

static void decode(const messages *m) {
  memset(m->y, 0, m->n * sizeof *m->y);
  gt_codec_add(m->codec, &m->turn, m->payload, 1.0F, m->y);
}

/* Encodes a message, all steps. */
static void encode(messages *m) {
  m->turn.round++;
  for (m->turn.step = 0;; m->turn.step++) {
    (void)gt_codec_encode(m->codec, &m->turn, m->x, m->residual, m->payload);
    if (m->turn.step + 1 == m->steps) break;
    gt_codec_agree(m->codec, &m->turn, m->payload, 1.0F);
  }
  if (m->decodes) decode(m);
}

static void time_messages(messages *m, double *encode_s, double *decode_s) {
  double encodes[MOST], decodes[MOST];
  size_t n = 0;
  const gt_ns end = gt_now() + gt_from_seconds(LONG_S);
  while (n < LEAST || (n < MOST && gt_now() < end)) {
    const gt_ns from = gt_now();
    encode(m);
    const gt_ns encoded = gt_now();
    decode(m);
    const gt_ns decoded = gt_now();
    if (m->steps > 1) gt_codec_agree(m->codec, &m->turn, m->payload, 1.0F);
    decodes[n] = gt_seconds(decoded - encoded);
    encodes[n++] = gt_seconds(encoded - from + gt_now() - decoded);
  }
  *encode_s = gt_probe_median(encodes, n);
  *decode_s = gt_probe_median(decodes, n);
}

static gt_status time_codec(gt_probe_state *p, gt_codec_kind kind) {
  const gt_arrays *a = gt_graph_arrays(p->run.graph);
  const double bits = 8 * (double)(a->params.n * sizeof(float));
  gt_job job = *p->run.job;
  job.sync.codec.name = kind;
  const gt_exchange_codec with = gt_ps_codec_of(&job, a->views, a->nviews);
  messages m;
  double encode_s, decode_s;
  const gt_status status = open_messages(&m, &job, &with);
  if (status == GT_OK) {
    time_messages(&m, &encode_s, &decode_s);
    p->own.codecs[kind] =
        (gt_job_codec_cost){.encode_bps = bits / encode_s, .decode_bps = bits / decode_s};
  }
  close_messages(&m);
  return status;
}

static bool is_compared(const gt_job *job, gt_codec_kind kind) {
  for (size_t i = 0; i < job->plan.ncodecs; i++)
    if (job->plan.codecs[i] == kind) return true;
  return job->sync.codec.name == kind;
}

gt_status gt_probe_codecs(gt_probe_state *p) {
  for (gt_codec_kind kind = GT_CODEC_NONE + 1; kind < GT_CODEC_KINDS; kind++)
    if (p->run.job->nregions > 1 && is_compared(p->run.job, kind)) GT_TRY(time_codec(p, kind));
  return GT_OK;
}
