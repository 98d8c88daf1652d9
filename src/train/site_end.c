/* The end of a run in a region that is an MPI job of its own: the final model and the summary,
   which the lead sends, in this region's run directory.  The model is durable before the summary
   refers to it. */
#include <string.h>

#include "ending.h"
#include "geotrain/ps_ending.h"
#include "stages.h"

#define TEXT_MAX ((size_t)64 << 20) /* of summary.json: 4,096 links take about 5 MB */

struct gt_site_end {
  gt_server *server;
  size_t lead; /* the region that sends */
  gt_final_model final;
  gt_stage_model *parts; /* in a pipeline */
  bool has_model, alone;
  char *text; /* of summary.json */
  size_t have, bytes;
  gt_summary_file *summary; /* NULL: the text is not complete */
  bool published;
};

gt_site_end *gt_site_end_open(gt_server *s, size_t lead, bool alone) {
  gt_site_end *e = GT_NEW(gt_site_end);
  e->server = s;
  e->lead = lead;
  e->alone = e->has_model = alone;
  if (s->run->pipe) e->parts = gt_stage_model_open(s);
  return e;
}

void gt_site_end_close(gt_site_end *e) {
  if (!e) return;
  gt_final_model_close(&e->final);
  gt_stage_model_close(e->parts);
  gt_summary_close(e->summary);
  gt_free(e->text);
  gt_free(e);
}

void gt_site_end_model(gt_site_end *e) {
  e->has_model = true;
}

void gt_site_end_piece(gt_site_end *e, const gt_frame_header *head, const void *payload) {
  e->has_model = gt_stage_model_copy(e->parts, head, payload);
}

void gt_site_end_text(gt_site_end *e, const gt_frame_header *head, const void *payload) {
  const size_t n = (size_t)head->message_bytes;
  if (head->detail > TEXT_MAX)
    gt_gateway_refuse(e->server->gateway, e->lead,
                      "a summary of %llu more bytes; expected at most %zu",
                      (unsigned long long)head->detail, TEXT_MAX);
  if (!e->text) {
    e->bytes = n + (size_t)head->detail;
    e->text = gt_alloc(e->bytes + 1, 1);
  }
  if (n == 0 || head->value != e->have || head->detail != e->bytes - e->have - n ||
      n > e->bytes - e->have)
    gt_gateway_refuse(e->server->gateway, e->lead,
                      "%zu bytes of the summary from byte %llu on; expected the bytes from %zu on "
                      "of %zu",
                      n, (unsigned long long)head->value, e->have, e->bytes);
  memcpy(e->text + e->have, payload, n);
  e->have += n;
  if (e->have == e->bytes && gt_summary_parse(&e->summary, e->text, "the summary") != GT_OK)
    gt_gateway_refuse(e->server->gateway, e->lead, "%s", gt_error_text());
}

bool gt_site_end_writes(const gt_site_end *e) {
  return e->final.writer && !e->final.durable;
}

/* True when the model is durable. */
static bool write_model(gt_site_end *e, gt_vec params, gt_vec buffers) {
  const gt_summary *sum = gt_summary_of(e->summary);
  const gt_region_result all = gt_final_model_total(sum->regions, sum->nregions);
  char sha256[GT_SHA256_HEX];
  gt_failpoint("ending.site");
  if (e->alone) return true;
  if (e->parts) {
    gt_stage_model_finish(e->parts, &all, sha256);
    return true;
  }
  if (!e->final.writer) gt_final_model_begin(&e->final, e->server, NULL, &all, params, buffers);
  return gt_final_model_durable(&e->final, e->server);
}

bool gt_site_end_step(gt_site_end *e, gt_vec params, gt_vec buffers) {
  if (e->published) return true;
  if (!e->has_model || !e->summary || !write_model(e, params, buffers)) return false;
  const gt_status status = gt_summary_write_text(e->server->run->run_dir, e->text);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
  gt_live_end(e->server->live);
  gt_summary_print(stdout, gt_summary_of(e->summary));
  fflush(stdout);
  return e->published = true;
}
