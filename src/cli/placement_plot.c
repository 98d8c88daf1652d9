/* Plots a placement sweep with gnuplot: one panel per cloud of workers, phases stacked, costs as
   points on the right axis. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement.h"

gt_status gt_placement_can_plot(void) {
  const char *path = getenv("PATH");
  char file[4096];
  for (const char *at = path; at && *at; at += strcspn(at, ":"), at += *at == ':') {
    snprintf(file, sizeof file, "%.*s/gnuplot", (int)strcspn(at, ":"), at);
    if (access(file, X_OK) == 0) return GT_OK;
  }
  return GT_FAIL(GT_ERR_JOB, "placement: --plot needs gnuplot, which is not in PATH; install "
                             "it, or omit --plot (--csv writes the same figures)");
}

/* Writes a text in single quotes, with quotes doubled. */
static void put_quoted(FILE *to, const char *text) {
  fputc('\'', to);
  for (; *text; text++) fprintf(to, *text == '\'' ? "''" : "%c", *text);
  fputc('\'', to);
}

/* Writes the panel's lines as a data block; returns their number. */
static size_t put_data(FILE *to, size_t panel, const char *cloud, const placement_result *results,
                       size_t n) {
  size_t lines = 0;
  fprintf(to, "$data%zu << EOD\n", panel);
  for (size_t i = 0; i < n; i++) {
    const placement_result *r = &results[i];
    if (strcmp(r->cloud, cloud) != 0) continue;
    fprintf(to, "\"%s+%s %s%s\" %.6g %.6g %.6g %.6g %.6g\n", r->function, r->storage, r->place,
            r->regional ? ", regional" : "", r->split.train_s, r->split.upload_s, r->split.wait_s,
            r->split.download_s, 1000 * r->terms.total);
    lines++;
  }
  fprintf(to, "EOD\n");
  return lines;
}

static void put_script(FILE *to, const char *path, const placement_options *o,
                       const placement_result *results, size_t n) {
  size_t panels = o->clouds.n, lines = 0;
  for (size_t c = 0; c < panels; c++) lines = put_data(to, c, o->clouds.names[c], results, n);
  fprintf(to, "set terminal pngcairo size %zu,%zu noenhanced\nset output ", 400 + 28 * lines,
          420 * panels);
  put_quoted(to, path);
  fprintf(to,
          "\nset multiplot layout %zu,1\nset style data histograms\nset style histogram "
          "rowstacked\nset style fill solid\nset boxwidth 0.7\nset "
          "yrange [0:*]\n"
          "set y2range [0:*]\nset ytics nomirror\nset y2tics\nset xtics rotate by -45\nset ylabel "
          "'s of a mini-batch'\nset y2label 'USD of 1,000'\n"
          "set key outside right\n",
          panels);
  for (size_t c = 0; c < panels; c++) {
    fprintf(to, "set title ");
    put_quoted(to, o->clouds.names[c]);
    fprintf(to,
            "\nplot $data%zu using 2:xtic(1) title 'train', '' using 3 title 'upload', '' using 4 "
            "title 'wait', '' using 5 title 'download', "
            "'' using 0:6 axes x1y2 with points pt 7 lc rgb 'black' title 'cost'\n",
            c);
  }
  fprintf(to, "unset multiplot\n");
}

gt_status gt_placement_plot(const char *path, const placement_options *o,
                            const placement_result *results, size_t n) {
  /* NOLINT(cert-env33-c): a program that the user asks for by name */
  FILE *to = popen("gnuplot", "w");
  if (!to) return GT_FAIL(GT_ERR_JOB, "placement: gnuplot cannot be started");
  put_script(to, path, o, results, n);
  if (pclose(to) != 0 || access(path, R_OK) != 0)
    return GT_FAIL(GT_ERR_JOB, "placement: gnuplot did not write %s; see its messages above", path);
  return GT_OK;
}
