/* The final table of a run: regions, the average mini-batch, links, totals. */
#include "internal.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "geotrain/record_table.h"

#define MANY_LINKS   12 /* with more links, only sums and the busiest are printed */
#define BUSIEST      5
#define LABEL        15 /* columns of the name of a total */
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- cells ---- */

#define CELL ((size_t)40)

static const char *count_text(char out[CELL], int64_t n) {
  if (n < 10000000)
    snprintf(out, CELL, "%" PRId64, n);
  else
    gt_format_count(out, CELL, (double)n);
  return out;
}

/* Returns seconds and their share of the region's wall time, "12.3 s 87%"; long times in hours. */
static gt_cell share_cell(char out[CELL], double seconds, double wall) {
  char share[16] = "";
  if (!isfinite(seconds)) return (gt_cell){0};
  if (wall > 0) snprintf(share, sizeof share, " %.0f%%", 100 * seconds / wall);
  if (seconds < 99.95)
    snprintf(out, CELL, "%.1f s%s", seconds, share);
  else if (seconds < 9999.5)
    snprintf(out, CELL, "%.0f s%s", seconds, share);
  else
    snprintf(out, CELL, "%.1f h%s", seconds / 3600, share);
  return gt_cell_text(out);
}

/* ---- regions ---- */

/* The score of the table: AUC with two labels, Recall@20 for a recommender. */
typedef struct {
  const char *title;
  size_t own, mean; /* of the region's model, and of the mean: offsets in gt_region_result */
  size_t total;     /* offset in gt_summary */
} merit;

#define MERIT(title, name)                                                                         \
  {                                                                                                \
    title, offsetof(gt_region_result, test_##name), offsetof(gt_region_result, mean.name),         \
        offsetof(gt_summary, test_##name)                                                          \
  }

static double number_at(const void *from, size_t offset) {
  double value;
  memcpy(&value, (const char *)from + offset, sizeof value);
  return value;
}

static merit shown_merit(const gt_summary *s) {
  static const merit all[] = {MERIT("auc", auc), MERIT("recall@20", recall20),
                              MERIT("accuracy", accuracy)};
  const size_t last = sizeof all / sizeof *all - 1;
  for (size_t k = 0; k < last; k++)
    for (size_t i = 0; i < s->nregions; i++)
      if (isfinite(number_at(&s->regions[i], all[k].own))) return all[k];
  return all[last];
}

/* Prints the regions; one without workers only aggregates. */
static void print_regions(FILE *to, const gt_summary *s) {
  const merit best = shown_merit(s);
  const gt_column columns[] = {{.title = "region"},
                               {.title = "workers", .format = GT_COLUMN_WHOLE},
                               {.title = "steps", .format = GT_COLUMN_WHOLE},
                               {.title = "samples", .format = GT_COLUMN_WHOLE},
                               {.title = best.title, .format = GT_COLUMN_FIXED, .digits = 4},
                               {.title = "loss", .format = GT_COLUMN_FIXED, .digits = 3}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  char name[GT_SHORT_NAME];
  for (size_t i = 0; i < s->nregions; i++) {
    const gt_region_result *r = &s->regions[i];
    gt_cell row[COUNT(columns)] = {gt_cell_text(gt_short_name(name, r->name)),
                                   gt_cell_whole(r->workers)};
    if (r->workers > 0) {
      row[2] = gt_cell_whole(r->steps);
      row[3] = gt_cell_whole(r->samples);
      row[4] = gt_cell_number(number_at(r, best.own));
      row[5] = gt_cell_number(r->test_loss);
    }
    gt_table_add(t, row, COUNT(columns));
  }
  gt_table_finish(to, t);
}

static void print_times(FILE *to, const gt_summary *s) {
  static const gt_column columns[] = {{.title = "time of a worker"},
                                      {.title = "wall", .format = GT_COLUMN_FIXED},
                                      {.title = "compute", .format = GT_COLUMN_FIXED},
                                      {.title = "wan wait", .format = GT_COLUMN_FIXED},
                                      {.title = "local wait", .format = GT_COLUMN_FIXED},
                                      {.title = "idle", .format = GT_COLUMN_FIXED}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  char name[GT_SHORT_NAME], text[5][CELL];
  for (size_t i = 0; i < s->nregions; i++) {
    const gt_region_result *r = &s->regions[i];
    if (r->workers == 0) continue;
    gt_table_add(t, GT_ROW(gt_cell_text(gt_short_name(name, r->name)),
                           share_cell(text[0], r->wall_s, 0),
                           share_cell(text[1], r->compute_s, r->wall_s),
                           share_cell(text[2], r->wan_wait_s, r->wall_s),
                           share_cell(text[3], r->local_wait_s, r->wall_s),
                           share_cell(text[4], r->idle_s, r->wall_s)));
  }
  fputc('\n', to);
  gt_table_finish(to, t);
}

/* Returns the number of regions that scored the mean model; 0: one or none. */
static size_t scoring_regions(const gt_summary *s) {
  size_t n = 0;
  for (size_t i = 0; i < s->nregions; i++) n += s->regions[i].mean.samples > 0;
  return n;
}

static void print_mean(FILE *to, const gt_summary *s) {
  const merit best = shown_merit(s);
  const gt_column columns[] = {{.title = "mean model"},
                               {.title = "test samples", .format = GT_COLUMN_WHOLE},
                               {.title = best.title, .format = GT_COLUMN_FIXED, .digits = 4},
                               {.title = "loss", .format = GT_COLUMN_FIXED, .digits = 3}};
  char name[GT_SHORT_NAME];
  int64_t all = 0;
  if (scoring_regions(s) == 0) return;
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t i = 0; i < s->nregions; i++) {
    const gt_region_result *r = &s->regions[i];
    if (r->mean.samples == 0) continue;
    gt_table_add(t,
                 GT_ROW(gt_cell_text(gt_short_name(name, r->name)), gt_cell_whole(r->mean.samples),
                        gt_cell_number(number_at(r, best.mean)), gt_cell_number(r->mean.loss)));
    all += r->mean.samples;
  }
  gt_table_add(t, GT_ROW(gt_cell_text("all"), gt_cell_whole(all),
                         gt_cell_number(number_at(s, best.total)), gt_cell_number(s->test_loss)));
  fputc('\n', to);
  gt_table_finish(to, t);
}

static double split_sum(const gt_region_result *r) {
  return r->split_train_s + r->split_upload_s + r->split_aggregate_s + r->split_download_s;
}

static bool has_split(const gt_summary *s) {
  for (size_t i = 0; i < s->nregions; i++)
    if (split_sum(&s->regions[i]) > 0) return true;
  return false;
}

#define MS(name)                                                                                   \
  { .title = name, .unit = "ms", .format = GT_COLUMN_FIXED, .digits = 2 }

static void print_split(FILE *to, const gt_summary *s) {
  static const gt_column columns[] = {
      {.title = "mini-batch"},
      MS("train"),
      MS("upload"),
      MS("aggregate, wait"),
      MS("download"),
      MS("sum"),
      {.title = "wan wait", .unit = "%", .format = GT_COLUMN_FIXED, .digits = 1}};
  char name[GT_SHORT_NAME];
  if (!has_split(s)) return;
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t i = 0; i < s->nregions; i++) {
    const gt_region_result *r = &s->regions[i];
    if (r->workers == 0) continue;
    gt_table_add(t, GT_ROW(gt_cell_text(gt_short_name(name, r->name)),
                           gt_cell_number(r->split_train_s), gt_cell_number(r->split_upload_s),
                           gt_cell_number(r->split_aggregate_s),
                           gt_cell_number(r->split_download_s), gt_cell_number(split_sum(r)),
                           gt_cell_number(r->wall_s > 0 ? r->wan_wait_s / r->wall_s : NAN)));
  }
  fputc('\n', to);
  gt_table_finish(to, t);
}

/* ---- phases of a pipeline ---- */

static bool has_phase(const gt_summary *s, size_t phase) {
  for (size_t i = 0; i < s->nregions; i++)
    if (s->regions[i].phase_s[phase] > 0) return true;
  return false;
}

/* Prints the phases, except those that no region has. */
static void print_phases(FILE *to, const gt_summary *s) {
#define COLUMN(constant, key, name)                                                                \
  {.title = name, .unit = "%", .format = GT_COLUMN_FIXED, .digits = 1},
  static const gt_column columns[] = {
      {.title = "stages' workers"},
      GT_PHASE_LIST(COLUMN){.title = "sum", .unit = "s", .format = GT_COLUMN_FIXED, .digits = 2}};
#undef COLUMN
  char name[GT_SHORT_NAME];
  bool any = false;
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t i = 0; i < s->nregions; i++) {
    const double sum = gt_phases_sum(&s->regions[i]);
    gt_cell row[COUNT(columns)] = {gt_cell_text(gt_short_name(name, s->regions[i].name))};
    any |= sum > 0;
    for (size_t p = 0; p < GT_NPHASES && sum > 0; p++)
      if (has_phase(s, p)) row[1 + p] = gt_cell_number(s->regions[i].phase_s[p] / sum);
    row[1 + GT_NPHASES] = gt_cell_number(sum);
    gt_table_add(t, row, COUNT(columns));
  }
  if (any) {
    fputc('\n', to);
    gt_table_print(to, t);
  }
  gt_table_close(t);
}

/* ---- links ---- */

static double or_unknown(double measured) {
  return measured > 0 ? measured : NAN;
}

static void print_links(FILE *to, const gt_link_result *const *links, size_t n) {
  static const gt_column columns[] = {
      {.title = "link"},
      {.title = "sent", .unit = "MB", .format = GT_COLUMN_FIXED, .digits = 2},
      {.title = "messages", .format = GT_COLUMN_WHOLE},
      {.title = "other", .unit = "B", .format = GT_COLUMN_WHOLE},
      {.title = "measured", .unit = "Mbit/s", .format = GT_COLUMN_FIXED, .digits = 1},
      {.title = "latency", .unit = "ms", .format = GT_COLUMN_FIXED, .digits = 1}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  char name[GT_LINK_NAME];
  for (size_t i = 0; i < n; i++) {
    const gt_link_result *l = links[i];
    gt_table_add(t, GT_ROW(gt_cell_text(gt_link_name(name, l->from, l->to)),
                           gt_cell_number((double)l->bytes_sent), gt_cell_whole(l->messages),
                           gt_cell_whole(l->bytes_other),
                           gt_cell_number(or_unknown(l->bandwidth_bps_measured)),
                           gt_cell_number(or_unknown(l->latency_s_measured))));
  }
  gt_table_finish(to, t);
}

static void print_traffic(FILE *to, const gt_summary *s) {
  static const gt_column columns[] = {
      {.title = "links of"},
      {.title = "sent", .unit = "MB", .format = GT_COLUMN_FIXED, .digits = 2},
      {.title = "received", .unit = "MB", .format = GT_COLUMN_FIXED, .digits = 2},
      {.title = "messages", .format = GT_COLUMN_WHOLE},
      {.title = "other", .unit = "B", .format = GT_COLUMN_WHOLE},
      {.title = "slowest", .unit = "Mbit/s", .format = GT_COLUMN_FIXED, .digits = 1}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  gt_region_traffic *sums = gt_links_traffic(s);
  char name[GT_SHORT_NAME];
  for (size_t i = 0; i < s->nregions; i++)
    gt_table_add(t, GT_ROW(gt_cell_text(gt_short_name(name, s->regions[i].name)),
                           gt_cell_number((double)sums[i].bytes_sent),
                           gt_cell_number((double)sums[i].bytes_received),
                           gt_cell_whole(sums[i].messages), gt_cell_whole(sums[i].bytes_other),
                           gt_cell_number(sums[i].slowest_bps)));
  gt_table_finish(to, t);
  gt_free(sums);
}

/* Says where to find more links than the table shows. */
static void print_where(FILE *to, const gt_summary *s) {
  if (s->unwritten)
    fprintf(to, "(all of them: --out DIR)\n");
  else if (s->links_left_out > 0)
    fprintf(to, "(%zu of them: summary.json)\n", s->nlinks);
  else
    fprintf(to, "(all of them: summary.json)\n");
}

static void print_busiest(FILE *to, const gt_summary *s, const gt_link_result *const *links) {
  const gt_link_result *busiest[BUSIEST];
  size_t n = s->nlinks < BUSIEST ? s->nlinks : BUSIEST;
  if (n == 0) return;
  gt_links_busiest(links, s->nlinks, busiest, n);
  fprintf(to, "\nthe %zu of %zu links whose traffic takes longest ", n,
          s->nlinks + s->links_left_out);
  print_where(to, s);
  print_links(to, busiest, n);
}

static void print_wan(FILE *to, const gt_summary *s) {
  size_t n = s->nlinks + s->links_left_out;
  if (n == 0) return;
  const gt_link_result **links = gt_links_ordered(s);
  fputc('\n', to);
  if (n <= MANY_LINKS)
    print_links(to, links, s->nlinks);
  else {
    print_traffic(to, s);
    print_busiest(to, s, links);
  }
  gt_free(links);
}

/* ---- the codec ---- */

/* Prints the codec's work in each region. */
static void print_codec(FILE *to, const gt_summary *s) {
  static const gt_column columns[] = {
      {.title = "codec"},
      {.title = "region"},
      {.title = "float32", .unit = "MB", .format = GT_COLUMN_FIXED, .digits = 2},
      {.title = "encoded", .unit = "MB", .format = GT_COLUMN_FIXED, .digits = 2},
      {.title = "encode", .unit = "s", .format = GT_COLUMN_FIXED, .digits = 2},
      {.title = "decoded", .unit = "MB", .format = GT_COLUMN_FIXED, .digits = 2},
      {.title = "decode", .unit = "s", .format = GT_COLUMN_FIXED, .digits = 2}};
  char name[GT_SHORT_NAME];
  if (s->nregions == 0 || !s->regions[0].codec.name[0]) return;
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t i = 0; i < s->nregions; i++) {
    const gt_codec_result *c = &s->regions[i].codec;
    gt_table_add(t, GT_ROW(gt_cell_text(c->name),
                           gt_cell_text(gt_short_name(name, s->regions[i].name)),
                           gt_cell_number((double)c->raw_bytes),
                           gt_cell_number((double)c->wire_bytes), gt_cell_number(c->encode_s),
                           gt_cell_number((double)c->decoded_bytes), gt_cell_number(c->decode_s)));
  }
  fputc('\n', to);
  gt_table_finish(to, t);
}

/* ---- head and totals ---- */

static void print_head(FILE *to, const gt_summary *s) {
  char clock[64];
  snprintf(clock, sizeof clock, "%s clock", s->clock);
  if (gt_summary_is_virtual(s))
    snprintf(clock, sizeof clock, "virtual time %.1f s, computed in %.1f s", s->virtual_s,
             s->wall_s);
  fputc('\n', to);
  gt_print_wrapped(to, 2, "%s: %s, %" PRId64 " parameters, %s, %s", s->job, s->model, s->parameters,
                   s->strategy, clock);
  fputc('\n', to);
}

static bool regions_tell(const gt_summary *s) {
  for (size_t i = 0; i < s->nregions; i++)
    if (isfinite(s->regions[i].test_accuracy)) return true;
  return false;
}

static void add_traffic(gt_region_traffic *to, int64_t messages, int64_t sent, int64_t other) {
  to->messages += messages;
  to->bytes_sent += sent;
  to->bytes_other += other;
}

static gt_region_traffic total_of(const gt_summary *s) {
  gt_region_traffic all = {0};
  for (size_t i = 0; s->traffic && i < s->nregions; i++)
    add_traffic(&all, s->traffic[i].messages, s->traffic[i].bytes_sent, s->traffic[i].bytes_other);
  for (size_t i = 0; !s->traffic && i < s->nlinks; i++)
    add_traffic(&all, s->links[i].messages, s->links[i].bytes_sent, s->links[i].bytes_other);
  return all;
}

static void print_totals(FILE *to, const gt_summary *s) {
  char rate[32], tokens[32], samples[CELL], ranks[64] = "";
  gt_region_traffic all = total_of(s);
  if (gt_summary_is_virtual(s))
    fprintf(to, "virtual time   %.1f s  (computed in %.1f s)\n", s->virtual_s, s->wall_s);
  else
    fprintf(to, "wall time      %.1f s\n", s->wall_s);
  fprintf(to, "samples/s      %s  (%s samples)\n",
          gt_format_count(rate, sizeof rate, s->samples_per_s), count_text(samples, s->samples));
  if (s->tokens_per_s > 0)
    fprintf(to, "tokens/s       %s\n", gt_format_count(tokens, sizeof tokens, s->tokens_per_s));
  if (isfinite(s->test_auc)) snprintf(ranks, sizeof ranks, "auc %.4f  ", s->test_auc);
  if (isfinite(s->test_recall20))
    snprintf(ranks, sizeof ranks, "recall@20 %.4f  mrr@20 %.4f  ", s->test_recall20, s->test_mrr20);
  if (s->test_perplexity > 0)
    snprintf(ranks, sizeof ranks, "perplexity %.3f  ", s->test_perplexity);
  if (isfinite(s->test_accuracy))
    gt_print_wrapped(to, LABEL, "test accuracy  %.4f  %sloss %.3f  (mean model%s)",
                     s->test_accuracy, ranks, s->test_loss,
                     scoring_regions(s) > 0 ? ", on all test sets" : "");
  else
    fprintf(to, "test accuracy  -  (%s)\n",
            regions_tell(s) ? "see the regions" : "nothing was evaluated");
  fprintf(to, "WAN traffic    %.2f MB in %" PRId64 " messages, %.3f MB other\n",
          (double)all.bytes_sent * 1e-6, all.messages, (double)all.bytes_other * 1e-6);
  if (s->validation) gt_print_wrapped(to, LABEL, "validation     %s", s->validation);
  if (s->adapted) gt_print_wrapped(to, LABEL, "pipeline       %s", s->adapted);
}

/* Prints the work of earlier starts after their last checkpoint, which also has a cost: lost work,
   or the end of a complete run. */
static void print_earlier(FILE *to, const gt_summary *s) {
  double seconds = 0, bytes = 0;
  int64_t starts = 0;
  for (size_t i = 0; i < s->nregions; i++) {
    seconds = fmax(seconds, s->regions[i].lost_s);
    if (s->regions[i].earlier_starts > starts) starts = s->regions[i].earlier_starts;
  }
  for (size_t i = 0; i < s->nlinks; i++) bytes += (double)s->links[i].bytes_lost;
  if (seconds < 0.05 && bytes < 5000) return;
  gt_print_wrapped(to, LABEL,
                   "earlier starts %" PRId64
                   ", with %.1f s and %.2f MB after the last checkpoint of each%s",
                   starts, seconds, bytes * 1e-6, s->cost ? "; in the cost" : "");
}

char *gt_adapted_text(const gt_region_result *regions, size_t nregions) {
  const size_t size = nregions * (sizeof regions->adapted + 2);
  size_t used = 0;
  char *text = gt_alloc(size, 1);
  for (size_t i = 0; i < nregions; i++)
    if (regions[i].adapted[0])
      used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? "; " : "",
                               regions[i].adapted);
  if (used > 0) return text;
  gt_free(text);
  return NULL;
}

/* Prints what the relay, one region, has sent for others: its own network carries it, too. */
static void print_relayed(FILE *to, const gt_summary *s) {
  const gt_link_result *last = NULL;
  double bytes = 0;
  for (size_t i = 0; i < s->nlinks; i++) {
    if (s->links[i].bytes_relayed == 0) continue;
    bytes += (double)s->links[i].bytes_relayed;
    last = &s->links[i];
  }
  if (last)
    gt_print_wrapped(to, LABEL, "relayed        %.2f MB by %s%s", bytes * 1e-6, last->from,
                     s->cost ? "; in the cost" : "");
}

/* Prints the requests of all regions to their store: vendors bill each. */
static void print_store(FILE *to, const gt_summary *s) {
  gt_store_result sum = {0};
  for (size_t i = 0; i < s->nregions; i++) gt_store_add(&sum, &s->regions[i].store);
  if (sum.control_writes > 0)
    gt_print_wrapped(to, LABEL,
                     "store          %" PRId64 " writes, %" PRId64 " reads, %" PRId64
                     " before an object was there, %" PRId64 " deletes; for other messages %" PRId64
                     " writes, %" PRId64 " reads",
                     sum.writes, sum.reads, sum.failed_reads, sum.deletes, sum.control_writes,
                     sum.control_reads);
  if (sum.lists > 0)
    gt_print_wrapped(to, LABEL, "function       %" PRId64 " invocations, %.3f s", sum.lists,
                     sum.function_s);
}

static void print_warnings(FILE *to, const gt_summary *s) {
  for (size_t i = 0; i < s->nregions; i++)
    if (s->regions[i].warning[0])
      gt_print_wrapped(to, LABEL, "warning        %s: %s", s->regions[i].name,
                       s->regions[i].warning);
}

void gt_summary_print(FILE *to, const gt_summary *s) {
  print_head(to, s);
  print_regions(to, s);
  print_times(to, s);
  print_mean(to, s);
  print_split(to, s);
  print_phases(to, s);
  print_wan(to, s);
  print_codec(to, s);
  fputc('\n', to);
  print_totals(to, s);
  if (s->faults) gt_print_faults(to, s->faults);
  print_relayed(to, s);
  print_store(to, s);
  print_earlier(to, s);
  print_warnings(to, s);
  if (s->cost) gt_print_cost(to, s->cost);
  if (s->cost && s->cost->has_terms) gt_print_terms(to, s->cost);
  if (s->plan) gt_print_plan(to, s->plan);
  fflush(to);
}
