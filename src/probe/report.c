/* Prints the results of a probe for users, the warnings, and the reasons for a NO-GO. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define SLOW_BANDWIDTH 0.7 /* of the rate in the job */
#define SLOW_LATENCY   1.5
#define POOR_FIT       0.25

static const char *name_of(const gt_probe_state *p, size_t region) {
  return p->run.job->regions[region].name;
}

static const gt_probe_link *link_of(const gt_probe_state *p, size_t from, size_t to) {
  return &p->all_links[from * p->run.job->nregions + to];
}

/* ---- tables ---- */

/* 0: not measured */
static gt_cell figure(double value) {
  return gt_cell_number(value > 0 ? value : NAN);
}

/* ---- machines ---- */

/* Returns the number of world ranks on the machine of rank i; 0 if an earlier rank on that machine
   has reported it. */
static int ranks_on_machine(const gt_probe_state *p, int i) {
  int count = 0;
  for (int k = 0; k < p->run.roles.world_size; k++) {
    if (strcmp(p->ranks[k].kernel, p->ranks[i].kernel) != 0) continue;
    if (k < i) return 0;
    count++;
  }
  return count;
}

static bool region_on_one_host(const gt_probe_state *p, size_t region) {
  const gt_probe_rank *ps = gt_probe_ps(p, region), *w;
  for (int i = 0; (w = gt_probe_worker(p, region, i)); i++)
    if (strcmp(w->host, ps->host) != 0) return false;
  return true;
}

static void report_machines(const gt_probe_state *p, FILE *to) {
  const gt_probe_rank *first = &p->ranks[0];
  gt_print_wrapped(to, 2, "MPI: %s, pml %s%s%s; single copy inside a node: %s", first->mpi,
                   first->pml, first->btl[0] ? ", btl " : "", first->btl,
                   first->single_copy[0] ? first->single_copy : "unknown");
  fprintf(to, "links were tested %s\n",
          p->reach.by_launcher ? "by TCP between the hosts, then by MPI messages"
                               : "by MPI messages");
  for (int i = 0; i < p->run.roles.world_size; i++) {
    const gt_probe_rank *r = &p->ranks[i];
    int count = ranks_on_machine(p, i);
    if (count > 0)
      gt_print_wrapped(to, 2,
                       "machine of %s: %d rank%s, %d cores (rank %d may use %d); OpenBLAS core %s, "
                       "%d thread%s a rank",
                       r->host, count, count == 1 ? "" : "s", r->machine_cores, i, r->cores,
                       r->blas_core, r->threads, r->threads == 1 ? "" : "s");
  }
  for (size_t r = 0; r < p->run.job->nregions; r++) {
    const bool shared = gt_probe_ps(p, r)->plane_shared && region_on_one_host(p, r);
    gt_print_wrapped(to, 2, "local plane of region %s: %s; PS: %s", name_of(p, r),
                     shared ? "shared memory" : "messages", gt_probe_ps(p, r)->address);
  }
}

/* ---- compute ---- */

static void report_codecs(const gt_probe_state *p, FILE *to) {
  char in[32], out[32];
  for (size_t r = 0; r < p->run.job->nregions; r++)
    for (size_t k = 0; k < GT_CODEC_KINDS; k++) {
      const gt_job_codec_cost *c = &gt_probe_ps(p, r)->codecs[k];
      if (c->encode_bps > 0)
        gt_print_wrapped(to, 2, "codec %s at %s: encodes %s of float32, decodes %s",
                         gt_codec_names[k], name_of(p, r),
                         gt_format_rate(in, sizeof in, c->encode_bps),
                         gt_format_rate(out, sizeof out, c->decode_bps));
    }
}

static void report_compute(const gt_probe_state *p, FILE *to) {
  static const gt_column worker[] = {{.title = "region"},
                                     {.title = "worker", .format = GT_COLUMN_WHOLE},
                                     NUMBER("training", "samples/s"),
                                     NUMBER("evaluation", "samples/s"),
                                     NUMBER("turn-around", "ms"),
                                     NUMBER("+ after a wait", "ms")};
  static const gt_column server[] = {{.title = "PS of"},        NUMBER("update", "ms"),
                                     NUMBER("apply", "ms"),     NUMBER("encode", "ms"),
                                     NUMBER("in region", "ms"), NUMBER("in region", "Mbit/s")};
  gt_table *workers = gt_table_create(GT_ARRAY(worker)),
           *servers = gt_table_create(GT_ARRAY(server));
  for (size_t r = 0; r < p->run.job->nregions; r++) {
    const gt_probe_rank *w, *s = gt_probe_ps(p, r);
    for (int i = 0; (w = gt_probe_worker(p, r, i)); i++)
      gt_table_add(workers,
                   GT_ROW(gt_cell_text(name_of(p, r)), gt_cell_whole(i), figure(w->samples_per_s),
                          figure(w->eval_samples_per_s), figure(w->local_s), figure(w->resume_s)));
    gt_table_add(servers, GT_ROW(gt_cell_text(name_of(p, r)), figure(s->update_s),
                                 figure(s->apply_s), figure(s->encode_s),
                                 figure(s->inside_latency_s), figure(s->inside_bandwidth_bps)));
  }
  fprintf(to, "\ncompute, model %s, batch %d, all workers at once:\n",
          gt_model_names[p->run.job->model.name], p->run.job->train.batch);
  gt_table_finish(to, workers);
  gt_table_finish(to, servers);
  report_codecs(p, to);
}

/* ---- links ---- */

static void add_link(gt_table *links, gt_table *messages, const char *link,
                     const gt_probe_link *l) {
  char size[32];
  gt_table_add(links,
               GT_ROW(gt_cell_text(link), figure(l->latency_s), figure(l->bandwidth_bps),
                      figure(l->busy_latency_s), figure(l->busy_bandwidth_bps),
                      figure(l->sustained_bps), figure(l->profile_bps),
                      figure(l->fit_bandwidth_bps), figure(l->fit_latency_s), figure(l->setup_rtts),
                      figure(l->setup_rtts > 0 ? l->eager_bytes : 0), figure(l->window_bytes),
                      figure(l->window_bytes > 0 ? l->idle_s : 0), figure(l->fit_error)));
  for (int i = 0; i <= GT_PROBE_SIZES && l->fit_bandwidth_bps > 0; i++) {
    const bool first = i == GT_PROBE_SIZES; /* the first message of all */
    const double time_s = first ? l->fresh_s : l->time_s[i],
                 predicted_s = first ? l->fresh_predicted_s : l->predicted_s[i];
    gt_format_size(size, sizeof size, (double)(first ? GT_PROBE_FRESH : gt_probe_sizes[i]));
    if (time_s > 0)
      gt_table_add(messages, GT_ROW(gt_cell_text(link), gt_cell_text(size), figure(time_s),
                                    figure(predicted_s), gt_cell_number(predicted_s / time_s - 1),
                                    gt_cell_flag(first)));
  }
}

static void report_links(const gt_probe_state *p, FILE *to) {
  static const gt_column links[] = {
      {.title = "link"},           NUMBER("latency", "ms"),
      NUMBER("alone", "Mbit/s"),   NUMBER("at once", "ms"),
      NUMBER("at once", "Mbit/s"), NUMBER("sustained", "Mbit/s"),
      NUMBER("profile", "Mbit/s"), NUMBER("fit: rate", "Mbit/s", .breaks = true),
      NUMBER("latency", "ms"),     NUMBER("set-up", "trips"),
      NUMBER("above", "kB"),       NUMBER("window", "kB"),
      NUMBER("after", "s"),        NUMBER("error", "%")};
  static const gt_column messages[] = {{.title = "link"},        {.title = "message"},
                                       NUMBER("measured", "ms"), NUMBER("predicted", "ms"),
                                       NUMBER("error", "%"),     {.title = "first of all"}};
  const size_t n = p->run.job->nregions;
  char text[GT_LINK_NAME];
  gt_table *all = gt_table_create(GT_ARRAY(links)), *sent = gt_table_create(GT_ARRAY(messages));
  for (size_t i = 0; i < n * n; i++)
    if (i / n != i % n)
      add_link(all, sent, gt_link_name(text, name_of(p, i / n), name_of(p, i % n)),
               &p->all_links[i]);
  fputc('\n', to);
  gt_print_wrapped(to, 2,
                   "links, %s; latency: half the round trip of 64 bytes; alone: no other link of "
                   "the two regions in use; at once: every direction; fit: to the one-way times of "
                   "messages after a pause of %.1f s",
                   p->run.job->wan.emulate ? "emulated as the job says" : "real",
                   link_of(p, 0, 1)->pause_s);
  gt_table_finish(to, all);
  for (size_t r = 0; r < n; r++)
    if (p->access_bps[r] > 0)
      fprintf(to, "  region %s: its links share %s (access)\n", name_of(p, r),
              gt_format_rate(text, sizeof text, p->access_bps[r]));
  fputc('\n', to);
  gt_table_finish(to, sent);
}

static void report_disk(const gt_probe_state *p, FILE *to) {
  static const gt_column columns[] = {{.title = "region"},
                                      NUMBER("size", "MB"),
                                      NUMBER("durable in", "ms"),
                                      NUMBER("rate", "MB/s")};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t r = 0; r < p->run.job->nregions; r++) {
    const gt_probe_rank *s = gt_probe_ps(p, r);
    if (!s->checkpoint_error[0])
      gt_table_add(t, GT_ROW(gt_cell_text(name_of(p, r)), figure(s->checkpoint_bytes),
                             figure(s->checkpoint_s),
                             figure(1e-6 * s->checkpoint_bytes / s->checkpoint_s)));
  }
  fputc('\n', to);
  gt_print_wrapped(to, 2, "checkpoints in %s/ckpt%s:", p->run.run_dir,
                   p->options->run_dir ? "" : " (the directory of train without --run-dir)");
  gt_table_finish(to, t);
}

void gt_probe_report(const gt_probe_state *p, FILE *to) {
  report_machines(p, to);
  if (p->run.graph) report_compute(p, to);
  if (p->run.links && p->run.job->nregions > 1) report_links(p, to);
  if (!p->folder_error[0]) report_disk(p, to);
  if (p->all_pairs) gt_probe_report_fleet(p, to);
}

/* ---- warnings ---- */

static void warn_cores(const gt_probe_state *p, FILE *to) {
  for (int i = 0; i < p->run.roles.world_size; i++) {
    const gt_probe_rank *r = &p->ranks[i];
    int count = ranks_on_machine(p, i);
    if (count > r->machine_cores)
      fprintf(to, "warning: %s has %d ranks on %d cores: more ranks than cores, they take turns\n",
              r->host, count, r->machine_cores);
    else if (count > 0 && count * r->threads > r->machine_cores)
      fprintf(to,
              "warning: %s has %d ranks of %d OpenBLAS threads each on %d cores (%s): they take "
              "turns\n",
              r->host, count, r->threads, r->machine_cores, r->environment);
    if (count > 0 && r->blas_pinned)
      fprintf(to,
              "warning: on %s the environment pins OpenBLAS to %s, and the CPU can do more (%s); "
              "unset it\n",
              r->host, r->blas_core, r->environment);
  }
}

static void warn_transport(const gt_probe_state *p, FILE *to) {
  const gt_probe_rank *first = &p->ranks[0];
  if (strcmp(first->single_copy, "none") == 0 || strcmp(first->single_copy, "emulated") == 0)
    fprintf(to,
            "warning: MPI copies messages between ranks of a node twice (single copy: %s); CMA "
            "needs ptrace to be allowed "
            "(/proc/sys/kernel/yama/ptrace_scope 0, or CAP_SYS_PTRACE in a container)\n",
            first->single_copy);
  if (strcmp(first->pml, "unknown") == 0)
    fprintf(to,
            "warning: which transport this MPI library uses cannot be told (%s); figures were "
            "measured on Open MPI\n",
            first->mpi);
  for (size_t r = 0; r < p->run.job->nregions; r++)
    if (gt_probe_ps(p, r)->address_excluded)
      fprintf(to,
              "warning: the route from the PS of region %s goes by an interface that "
              "btl_tcp_if_include/exclude leaves out: %s\n",
              name_of(p, r), gt_probe_ps(p, r)->address);
}

static void warn_link(const gt_probe_state *p, FILE *to, size_t from, size_t dest) {
  const gt_probe_link *l = link_of(p, from, dest);
  const gt_link_spec *said = &gt_links_from(p->run.links, from)[dest];
  double latency = (said->latency_s + said->back_s) / 2;
  char a[32], b[32];
  /* a disturbed stream, or pauses between its frames, do not make a slow link */
  double found = fmax(l->bandwidth_bps, l->fit_bandwidth_bps);
  if (said->bandwidth_bps > 0 && found < SLOW_BANDWIDTH * said->bandwidth_bps)
    fprintf(to,
            "warning: the link from %s to %s is slower than the job says: %s measured, %s stated\n",
            name_of(p, from), name_of(p, dest), gt_format_rate(a, sizeof a, found),
            gt_format_rate(b, sizeof b, said->bandwidth_bps));
  if (latency > 0 && l->latency_s > SLOW_LATENCY * latency)
    fprintf(to,
            "warning: the link from %s to %s is longer than the job says: %s one way measured, %s "
            "stated\n",
            name_of(p, from), name_of(p, dest), gt_format_time(a, sizeof a, l->latency_s),
            gt_format_time(b, sizeof b, latency));
  if (l->fit_error > POOR_FIT)
    fprintf(to,
            "warning: the transport from %s to %s is fitted poorly (error %.0f%%); predictions for "
            "this link are rough\n",
            name_of(p, from), name_of(p, dest), 100 * l->fit_error);
}

void gt_probe_warnings(const gt_probe_state *p, FILE *to) {
  size_t n = p->run.job->nregions;
  warn_cores(p, to);
  warn_transport(p, to);
  for (size_t i = 0; p->run.links && i < n * n; i++)
    if (i / n != i % n) warn_link(p, to, i / n, i % n);
}

/* ---- reasons ---- */

size_t gt_probe_reasons(const gt_probe_state *p, FILE *to) {
  size_t n = 0;
  if (p->data_error[0]) {
    fprintf(to, "  %s\n", p->data_error);
    n++;
  }
  if (p->folder_error[0]) {
    fprintf(to, "  the checkpoint directory cannot be used: %s\n", p->folder_error);
    n++;
  }
  for (size_t r = 0; r < p->run.job->nregions; r++) {
    const gt_probe_rank *s = gt_probe_ps(p, r);
    if (!s->checkpoint_error[0]) continue;
    fprintf(to, "  region %s: the checkpoint directory cannot be used: %s\n", name_of(p, r),
            s->checkpoint_error);
    n++;
  }
  return n;
}
