/* The final table of a run: regions, the average mini-batch, links, totals, in 100 columns. */
#include "internal.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#define MAX_COLUMNS 12
#define LINE_WIDTH  100
#define NAME_WIDTH  11
#define END_WIDTH   16 /* of a name in tables with fewer columns */
#define MANY_LINKS  12 /* with more links, only sums and the busiest are printed */
#define BUSIEST     5

typedef struct {
  char text[40];
} cell;

/* rows x columns of cells; the first row is the heading.  The first column is left-aligned, the
   others right-aligned. */
typedef struct {
  cell *cells;
  size_t rows, columns;
} table;

static table table_create(size_t rows, size_t columns, const char *const *heading) {
  table t = {GT_NEW_ARRAY(cell, (rows + 1) * columns), rows + 1, columns};
  for (size_t c = 0; c < columns; c++)
    snprintf(t.cells[c].text, sizeof t.cells[c].text, "%s", heading[c]);
  return t;
}

static char *cell_at(table *t, size_t row, size_t column) {
  return t->cells[(row + 1) * t->columns + column].text;
}

/* Two spaces between columns if they fit, else one. */
static void table_print(FILE *to, const table *t) {
  size_t widths[MAX_COLUMNS] = {0}, total = 0;
  for (size_t c = 0; c < t->columns; c++) {
    for (size_t r = 0; r < t->rows; r++) {
      size_t w = strlen(t->cells[r * t->columns + c].text);
      if (w > widths[c]) widths[c] = w;
    }
    total += widths[c];
  }
  int gap = total + 2 * (t->columns - 1) <= LINE_WIDTH ? 2 : 1;
  for (size_t r = 0; r < t->rows; r++) {
    fprintf(to, "%-*s", (int)widths[0], t->cells[r * t->columns].text);
    for (size_t c = 1; c < t->columns; c++)
      fprintf(to, "%*s%*s", gap, "", (int)widths[c], t->cells[r * t->columns + c].text);
    fputc('\n', to);
  }
}

/* ---- cells ---- */

#define CELL sizeof(((cell *)0)->text)

/* A name in at most `width` characters; ".." replaces what is cut. */
static void put_name(char *out, const char *name, int width) {
  if (strlen(name) <= (size_t)width)
    snprintf(out, CELL, "%s", name);
  else
    snprintf(out, CELL, "%.*s..", width - 2, name);
}

static void put_count(char *out, int64_t n) {
  if (n < 10000000)
    snprintf(out, CELL, "%" PRId64, n);
  else
    gt_format_count(out, CELL, (double)n);
}

static void put_number(char *out, double value, int digits) {
  if (isfinite(value))
    snprintf(out, CELL, "%.*f", digits, value);
  else
    snprintf(out, CELL, "-");
}

static void put_ms(char *out, double seconds) {
  double ms = 1e3 * seconds;
  put_number(out, ms, ms < 99.995 ? 2 : ms < 9999.5 ? 1 : 0);
}

/* Seconds and their share of the region's wall time: "12.3 s 87%"; hours if seconds would be
   long. */
static void put_share(char *out, double seconds, double wall) {
  char share[16] = "";
  if (wall > 0 && isfinite(seconds)) snprintf(share, sizeof share, " %.0f%%", 100 * seconds / wall);
  if (!isfinite(seconds))
    snprintf(out, CELL, "-");
  else if (seconds < 99.95)
    snprintf(out, CELL, "%.1f s%s", seconds, share);
  else if (seconds < 9999.5)
    snprintf(out, CELL, "%.0f s%s", seconds, share);
  else
    snprintf(out, CELL, "%.1f h%s", seconds / 3600, share);
}

/* ---- regions ---- */

/* The figure that is shown: with two labels the AUC, of a recommender Recall@20. */
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

static void print_regions(FILE *to, const gt_summary *s) {
  const merit shown = shown_merit(s);
  const char *const heading[] = {"region",   "workers",    "steps", "samples",   "compute",
                                 "wan wait", "local wait", "idle",  shown.title, "loss"};
  table t = table_create(s->nregions, 10, heading);
  for (size_t i = 0; i < s->nregions; i++) {
    const gt_region_result *r = &s->regions[i];
    put_name(cell_at(&t, i, 0), r->name, NAME_WIDTH);
    put_count(cell_at(&t, i, 1), r->workers);
    for (size_t c = 2; c < 10; c++) put_number(cell_at(&t, i, c), NAN, 0);
    if (r->workers == 0) continue; /* it only aggregates */
    put_count(cell_at(&t, i, 2), r->steps);
    put_count(cell_at(&t, i, 3), r->samples);
    put_share(cell_at(&t, i, 4), r->compute_s, r->wall_s);
    put_share(cell_at(&t, i, 5), r->wan_wait_s, r->wall_s);
    put_share(cell_at(&t, i, 6), r->local_wait_s, r->wall_s);
    put_share(cell_at(&t, i, 7), r->idle_s, r->wall_s);
    put_number(cell_at(&t, i, 8), number_at(r, shown.own), 4);
    put_number(cell_at(&t, i, 9), r->test_loss, 3);
  }
  table_print(to, &t);
  gt_free(t.cells);
}

/* The regions that scored the mean model; 0: not more than one did. */
static size_t scoring_regions(const gt_summary *s) {
  size_t n = 0;
  for (size_t i = 0; i < s->nregions; i++) n += s->regions[i].mean.samples > 0;
  return n;
}

static void put_mean(table *t, size_t row, const char *name, int64_t samples, double figure,
                     double loss) {
  put_name(cell_at(t, row, 0), name, NAME_WIDTH);
  put_count(cell_at(t, row, 1), samples);
  put_number(cell_at(t, row, 2), figure, 4);
  put_number(cell_at(t, row, 3), loss, 3);
}

static void print_mean(FILE *to, const gt_summary *s) {
  const merit shown = shown_merit(s);
  const char *const heading[] = {"mean model", "test samples", shown.title, "loss"};
  const size_t n = scoring_regions(s);
  size_t row = 0;
  int64_t all = 0;
  if (n == 0) return;
  table t = table_create(n + 1, 4, heading);
  for (size_t i = 0; i < s->nregions; i++) {
    const gt_region_result *r = &s->regions[i];
    if (r->mean.samples == 0) continue;
    put_mean(&t, row++, r->name, r->mean.samples, number_at(r, shown.mean), r->mean.loss);
    all += r->mean.samples;
  }
  put_mean(&t, row, "all", all, number_at(s, shown.total), s->test_loss);
  fputc('\n', to);
  table_print(to, &t);
  gt_free(t.cells);
}

static double split_sum(const gt_region_result *r) {
  return r->split_train_s + r->split_upload_s + r->split_aggregate_s + r->split_download_s;
}

static bool has_split(const gt_summary *s) {
  for (size_t i = 0; i < s->nregions; i++)
    if (split_sum(&s->regions[i]) > 0) return true;
  return false;
}

static void print_split(FILE *to, const gt_summary *s) {
  static const char *const heading[] = {"mini-batch, ms", "train", "upload",  "aggregate and wait",
                                        "download",       "sum",   "wan wait"};
  if (!has_split(s)) return;
  table t = table_create(s->nregions, 7, heading);
  for (size_t i = 0; i < s->nregions; i++) {
    const gt_region_result *r = &s->regions[i];
    double share = r->wall_s > 0 ? r->wan_wait_s / r->wall_s : NAN;
    put_name(cell_at(&t, i, 0), r->name, END_WIDTH);
    for (size_t c = 1; c < 7; c++) put_number(cell_at(&t, i, c), NAN, 0);
    if (r->workers == 0) continue;
    put_ms(cell_at(&t, i, 1), r->split_train_s);
    put_ms(cell_at(&t, i, 2), r->split_upload_s);
    put_ms(cell_at(&t, i, 3), r->split_aggregate_s);
    put_ms(cell_at(&t, i, 4), r->split_download_s);
    put_ms(cell_at(&t, i, 5), split_sum(r));
    if (isfinite(share)) snprintf(cell_at(&t, i, 6), CELL, "%.1f%%", 100 * share);
  }
  fputc('\n', to);
  table_print(to, &t);
  gt_free(t.cells);
}

/* ---- phases of a pipeline ---- */

static bool has_phase(const gt_summary *s, size_t phase) {
  for (size_t i = 0; i < s->nregions; i++)
    if (s->regions[i].phase_s[phase] > 0) return true;
  return false;
}

/* Phases that no region has are left out. */
static void print_phases(FILE *to, const gt_summary *s) {
#define TITLE(constant, key, title) title,
  static const char *const titles[] = {GT_PHASE_LIST(TITLE)};
#undef TITLE
  const char *heading[MAX_COLUMNS] = {"stages' workers"};
  size_t phases[GT_NPHASES], n = 0;
  for (size_t p = 0; p < GT_NPHASES; p++)
    if (has_phase(s, p)) phases[n++] = p;
  if (n == 0) return;
  for (size_t c = 0; c < n; c++) heading[1 + c] = titles[phases[c]];
  heading[1 + n] = "sum, s";
  table t = table_create(s->nregions, n + 2, heading);
  for (size_t i = 0; i < s->nregions; i++) {
    const double sum = gt_phases_sum(&s->regions[i]);
    put_name(cell_at(&t, i, 0), s->regions[i].name, END_WIDTH);
    for (size_t c = 0; c < n && sum > 0; c++)
      snprintf(cell_at(&t, i, 1 + c), CELL, "%.1f%%", 100 * s->regions[i].phase_s[phases[c]] / sum);
    put_number(cell_at(&t, i, 1 + n), sum, sum < 99.95 ? 2 : 0);
  }
  fputc('\n', to);
  table_print(to, &t);
  gt_free(t.cells);
}

/* ---- links ---- */

static void put_link(table *t, size_t row, const gt_link_result *l) {
  char from[CELL], end[CELL];
  put_name(from, l->from, END_WIDTH);
  put_name(end, l->to, END_WIDTH);
  snprintf(cell_at(t, row, 0), CELL, "%.16s -> %.16s", from, end);
  put_number(cell_at(t, row, 1), (double)l->bytes_sent * 1e-6, 2);
  put_count(cell_at(t, row, 2), l->messages);
  put_count(cell_at(t, row, 3), l->bytes_other);
  put_number(cell_at(t, row, 4),
             l->bandwidth_bps_measured > 0 ? l->bandwidth_bps_measured * 1e-6 : NAN, 1);
  put_number(cell_at(t, row, 5), l->latency_s_measured > 0 ? l->latency_s_measured * 1e3 : NAN, 1);
}

static void print_links(FILE *to, const gt_link_result *const *links, size_t n) {
  static const char *const heading[] = {"link",        "MB sent",         "messages",
                                        "other bytes", "measured Mbit/s", "latency ms"};
  table t = table_create(n, 6, heading);
  for (size_t i = 0; i < n; i++) put_link(&t, i, links[i]);
  table_print(to, &t);
  gt_free(t.cells);
}

static void print_traffic(FILE *to, const gt_summary *s) {
  static const char *const heading[] = {"links of", "MB sent",     "MB received",
                                        "messages", "other bytes", "slowest Mbit/s"};
  table t = table_create(s->nregions, 6, heading);
  gt_region_traffic *sums = gt_links_traffic(s);
  for (size_t i = 0; i < s->nregions; i++) {
    put_name(cell_at(&t, i, 0), s->regions[i].name, END_WIDTH);
    put_number(cell_at(&t, i, 1), (double)sums[i].bytes_sent * 1e-6, 2);
    put_number(cell_at(&t, i, 2), (double)sums[i].bytes_received * 1e-6, 2);
    put_count(cell_at(&t, i, 3), sums[i].messages);
    put_count(cell_at(&t, i, 4), sums[i].bytes_other);
    put_number(cell_at(&t, i, 5), sums[i].slowest_bps * 1e-6, 1);
  }
  table_print(to, &t);
  gt_free(sums);
  gt_free(t.cells);
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

/* ---- head and totals ---- */

static void print_head(FILE *to, const gt_summary *s) {
  fprintf(to, "\n%s: %s, %" PRId64 " parameters, %s, ", s->job, s->model, s->parameters,
          s->strategy);
  if (gt_summary_is_virtual(s))
    fprintf(to, "virtual time %.1f s, computed in %.1f s\n\n", s->virtual_s, s->wall_s);
  else
    fprintf(to, "%s clock\n\n", s->clock);
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

/* In as many lines as it needs.  NULL: nothing. */
static void print_adapted(FILE *to, const char *text) {
  int column = text ? fprintf(to, "pipeline      ") : 0;
  while (text && *text) {
    const size_t word = strcspn(text, " ");
    if (column + 1 + (int)word > LINE_WIDTH) column = fprintf(to, "\n%14s", "") - 1;
    column += fprintf(to, " %.*s", (int)word, text);
    text += word + strspn(text + word, " ");
  }
  if (column > 0) fputc('\n', to);
}

static void print_totals(FILE *to, const gt_summary *s) {
  char rate[32], tokens[32], samples[CELL], ranks[64] = "";
  gt_region_traffic all = total_of(s);
  put_count(samples, s->samples);
  if (gt_summary_is_virtual(s))
    fprintf(to, "virtual time   %.1f s  (computed in %.1f s)\n", s->virtual_s, s->wall_s);
  else
    fprintf(to, "wall time      %.1f s\n", s->wall_s);
  fprintf(to, "samples/s      %s  (%s samples)\n",
          gt_format_count(rate, sizeof rate, s->samples_per_s), samples);
  if (s->tokens_per_s > 0)
    fprintf(to, "tokens/s       %s\n", gt_format_count(tokens, sizeof tokens, s->tokens_per_s));
  if (isfinite(s->test_auc)) snprintf(ranks, sizeof ranks, "auc %.4f  ", s->test_auc);
  if (isfinite(s->test_recall20))
    snprintf(ranks, sizeof ranks, "recall@20 %.4f  mrr@20 %.4f  ", s->test_recall20, s->test_mrr20);
  if (s->test_perplexity > 0)
    snprintf(ranks, sizeof ranks, "perplexity %.3f  ", s->test_perplexity);
  if (isfinite(s->test_accuracy))
    fprintf(to, "test accuracy  %.4f  %sloss %.3f  (mean model%s)\n", s->test_accuracy, ranks,
            s->test_loss, scoring_regions(s) > 0 ? ", on all test sets" : "");
  else
    fprintf(to, "test accuracy  -  (%s)\n",
            regions_tell(s) ? "see the regions" : "nothing was evaluated");
  fprintf(to, "WAN traffic    %.2f MB in %" PRId64 " messages, %.3f MB beside them\n",
          (double)all.bytes_sent * 1e-6, all.messages, (double)all.bytes_other * 1e-6);
  print_adapted(to, s->adapted);
}

/* What earlier starts used after their last checkpoint has a cost, too: work that was lost, or the
   end of a complete run. */
static void print_earlier(FILE *to, const gt_summary *s) {
  double seconds = 0, bytes = 0;
  int64_t starts = 0;
  for (size_t i = 0; i < s->nregions; i++) {
    seconds = fmax(seconds, s->regions[i].lost_s);
    if (s->regions[i].earlier_starts > starts) starts = s->regions[i].earlier_starts;
  }
  for (size_t i = 0; i < s->nlinks; i++) bytes += (double)s->links[i].bytes_lost;
  if (seconds < 0.05 && bytes < 5000) return;
  fprintf(to,
          "earlier starts %" PRId64
          ", with %.1f s and %.2f MB after the last checkpoint of each%s\n",
          starts, seconds, bytes * 1e-6, s->cost ? "; in the cost" : "");
}

static void print_warnings(FILE *to, const gt_summary *s) {
  char name[CELL];
  for (size_t i = 0; i < s->nregions; i++) {
    if (!s->regions[i].warning[0]) continue;
    put_name(name, s->regions[i].name, NAME_WIDTH);
    fprintf(to, "warning        %s: %s\n", name, s->regions[i].warning);
  }
}

void gt_summary_print(FILE *to, const gt_summary *s) {
  print_head(to, s);
  print_regions(to, s);
  print_mean(to, s);
  print_split(to, s);
  print_phases(to, s);
  print_wan(to, s);
  fputc('\n', to);
  print_totals(to, s);
  print_earlier(to, s);
  print_warnings(to, s);
  if (s->cost) gt_print_cost(to, s->cost);
  if (s->plan) gt_print_plan(to, s->plan);
  fflush(to);
}
