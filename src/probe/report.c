/* Prints the results of a probe for users, the warnings, and the reasons for a NO-GO. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

static const char *rate(char buf[32], double bps) {
  return bps > 0 ? gt_format_rate(buf, 32, bps) : "-";
}

static const char *span(char buf[32], double s) {
  return s > 0 ? gt_format_time(buf, 32, s) : "-";
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
  fprintf(to, "MPI: %s, pml %s%s%s; single copy inside a node: %s\n", first->mpi, first->pml,
          first->btl[0] ? ", btl " : "", first->btl,
          first->single_copy[0] ? first->single_copy : "unknown");
  fprintf(to, "links were tested %s\n",
          p->reach.by_launcher ? "by TCP between the hosts, then by MPI messages"
                               : "by MPI messages");
  for (int i = 0; i < p->run.roles.world_size; i++) {
    const gt_probe_rank *r = &p->ranks[i];
    int count = ranks_on_machine(p, i);
    if (count > 0)
      fprintf(to,
              "machine of %s: %d rank%s, %d cores (rank %d may use %d); OpenBLAS core %s, %d "
              "thread%s a rank\n",
              r->host, count, count == 1 ? "" : "s", r->machine_cores, i, r->cores, r->blas_core,
              r->threads, r->threads == 1 ? "" : "s");
  }
  for (size_t r = 0; r < p->run.job->nregions; r++)
    fprintf(to, "PS of region %s: %s; local plane: %s\n", name_of(p, r), gt_probe_ps(p, r)->address,
            gt_probe_ps(p, r)->plane_shared && region_on_one_host(p, r) ? "shared memory"
                                                                        : "messages");
}

/* ---- compute ---- */

static void report_compute(const gt_probe_state *p, FILE *to) {
  char a[32], b[32], c[32], d[32];
  if (!p->run.graph) return;
  fprintf(to, "\ncompute, model %s, batch %d, all workers at once:\n",
          gt_model_names[p->run.job->model.name], p->run.job->train.batch);
  fprintf(to, "  %-16s %6s %14s %14s %12s %14s\n", "region", "worker", "train samples/s",
          "eval samples/s", "turn-around", "+ after a wait");
  for (size_t r = 0; r < p->run.job->nregions; r++) {
    const gt_probe_rank *w;
    for (int i = 0; (w = gt_probe_worker(p, r, i)); i++)
      fprintf(to, "  %-16s %6d %14.0f %14.0f %12s %14s\n", name_of(p, r), i, w->samples_per_s,
              w->eval_samples_per_s, span(a, w->local_s),
              w->resume_s > 0 ? span(b, w->resume_s) : "-");
  }
  fprintf(to, "  %-16s %12s %12s %12s %s\n", "server of", "update", "apply", "encode",
          "inside the region: latency, bandwidth");
  for (size_t r = 0; r < p->run.job->nregions; r++) {
    const gt_probe_rank *s = gt_probe_ps(p, r);
    char e[32];
    fprintf(to, "  %-16s %12s %12s %12s %s, %s\n", name_of(p, r), span(a, s->update_s),
            span(b, s->apply_s), span(c, s->encode_s), span(d, s->inside_latency_s),
            rate(e, s->inside_bandwidth_bps));
  }
}

/* ---- links ---- */

/* Prints the rates that regions' links share. */
static void report_access(const gt_probe_state *p, FILE *to) {
  size_t n = p->run.job->nregions;
  char a[32];
  for (size_t r = 0; r < n; r++)
    if (p->access_bps[r] > 0)
      fprintf(to, "  region %s: its links share %s (access)\n", name_of(p, r),
              rate(a, p->access_bps[r]));
}

static void report_links(const gt_probe_state *p, FILE *to) {
  size_t n = p->run.job->nregions;
  char a[32], b[32], c[32], d[32], e[32];
  if (n < 2 || !p->run.links) return;
  fprintf(to,
          "\nlinks, %s; latency: half the round trip of 64 bytes; alone: no other link of the two "
          "regions in use; at once: every direction\n",
          p->run.job->wan.emulate ? "emulated as the job says" : "real");
  fprintf(to, "  %-16s %-16s %12s %14s %12s %14s %14s\n", "from", "to", "latency", "bandwidth",
          "at once", "", "in the profile");
  for (size_t i = 0; i < n * n; i++) {
    const gt_probe_link *l = &p->all_links[i];
    if (i / n == i % n) continue;
    fprintf(to, "  %-16s %-16s %12s %14s %12s %14s %14s\n", name_of(p, i / n), name_of(p, i % n),
            span(a, l->latency_s), rate(b, l->bandwidth_bps), span(c, l->busy_latency_s),
            rate(d, l->busy_bandwidth_bps), rate(e, l->profile_bps));
  }
  report_access(p, to);
}

static void report_fit(const gt_probe_state *p, FILE *to, size_t from, size_t dest) {
  const gt_probe_link *l = link_of(p, from, dest);
  char a[32], b[32], c[32];
  if (l->fit_bandwidth_bps <= 0) return;
  fprintf(to, "  %s to %s: %s, %s", name_of(p, from), name_of(p, dest),
          rate(a, l->fit_bandwidth_bps), span(b, l->fit_latency_s));
  if (l->setup_rtts > 0)
    fprintf(to, ", set-up %g round trips above %s", l->setup_rtts,
            gt_format_size(c, sizeof c, l->eager_bytes));
  if (l->window_bytes > 0 && l->idle_s > 0)
    fprintf(to, ", window %.0f B after %.2g s of silence", l->window_bytes, l->idle_s);
  else if (l->window_bytes > 0)
    fprintf(to, ", window %.0f B at first", l->window_bytes);
  if (l->sustained_bps > 0)
    fprintf(to, ", sustained on all links at once %s", rate(a, l->sustained_bps));
  fprintf(to, "; error %.1f%%\n", 100 * l->fit_error);
  for (int i = 0; i < GT_PROBE_SIZES; i++)
    if (l->time_s[i] > 0)
      fprintf(to, "    %10s %12s %12s %+7.1f%%\n",
              gt_format_size(a, sizeof a, (double)gt_probe_sizes[i]), span(b, l->time_s[i]),
              span(c, l->predicted_s[i]), 100 * (l->predicted_s[i] / l->time_s[i] - 1));
  if (l->fresh_s > 0)
    fprintf(to, "    %10s %12s %12s %+7.1f%%  (the first message of all)\n",
            gt_format_size(a, sizeof a, (double)GT_PROBE_FRESH), span(b, l->fresh_s),
            span(c, l->fresh_predicted_s), 100 * (l->fresh_predicted_s / l->fresh_s - 1));
}

static void report_fits(const gt_probe_state *p, FILE *to) {
  size_t n = p->run.job->nregions;
  if (n < 2 || !p->run.links) return;
  fprintf(to,
          "\ntransport, fitted to messages after a pause of %.1f s (size, measured, predicted, "
          "error; one way, by round trips less the answer's "
          "latency):\n",
          link_of(p, 0, 1)->pause_s);
  for (size_t i = 0; i < n * n; i++)
    if (i / n != i % n) report_fit(p, to, i / n, i % n);
}

static void report_disk(const gt_probe_state *p, FILE *to) {
  char a[32], b[32], c[32];
  if (p->folder_error[0]) return;
  fprintf(to, "\ncheckpoints in %s/ckpt%s:\n", p->run.run_dir,
          p->options->run_dir ? "" : " (what train would take without --run-dir)");
  for (size_t r = 0; r < p->run.job->nregions; r++) {
    const gt_probe_rank *s = gt_probe_ps(p, r);
    if (!s->checkpoint_error[0])
      fprintf(to, "  %-16s %s durable in %s (%s/s)\n", name_of(p, r),
              gt_format_size(a, sizeof a, s->checkpoint_bytes), span(b, s->checkpoint_s),
              gt_format_size(c, sizeof c, s->checkpoint_bytes / s->checkpoint_s));
  }
}

void gt_probe_report(const gt_probe_state *p, FILE *to) {
  report_machines(p, to);
  report_compute(p, to);
  report_links(p, to);
  report_fits(p, to);
  report_disk(p, to);
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
            name_of(p, from), name_of(p, dest), rate(a, found), rate(b, said->bandwidth_bps));
  if (latency > 0 && l->latency_s > SLOW_LATENCY * latency)
    fprintf(to,
            "warning: the link from %s to %s is longer than the job says: %s one way measured, %s "
            "stated\n",
            name_of(p, from), name_of(p, dest), span(a, l->latency_s), span(b, latency));
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
