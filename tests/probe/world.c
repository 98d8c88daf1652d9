#include "jobs.h"
#include "world.h"

gt_job *w_job(const char *regions, const char *wan) {
  return job_as("name: probed\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
                "train: {until: {steps: 10}, batch: 10, optimizer: {name: sgd, lr: 0.1}}\nregions: "
                "%s\nwan: %s\n",
                regions, wan);
}

static gt_probe_rank healthy(size_t region, int region_rank, int ranks) {
  gt_probe_rank r = {.region = (int32_t)region,
                     .region_rank = region_rank,
                     .cores = 1,
                     .machine_cores = ranks,
                     .threads = 1};
  snprintf(r.host, sizeof r.host, "host");
  snprintf(r.kernel, sizeof r.kernel, "boot-1");
  snprintf(r.mpi, sizeof r.mpi, "Open MPI");
  snprintf(r.pml, sizeof r.pml, "ob1");
  snprintf(r.single_copy, sizeof r.single_copy, "cma");
  snprintf(r.blas_core, sizeof r.blas_core, "Core");
  r.checkpoint_bytes = 1e6, r.checkpoint_s = 0.01;
  return r;
}

gt_probe_state *w_found(const char *regions, const char *wan) {
  static const gt_probe_options options;
  gt_probe_state *p = GT_NEW(gt_probe_state);
  const gt_job *job = p->run.job = w_job(regions, wan);
  const size_t n = job->nregions;
  int at = 0;
  p->options = &options;
  must(gt_links_create(&p->run.links, job));
  for (size_t r = 0; r < n; r++) p->run.roles.world_size += job->regions[r].ranks;
  p->ranks = GT_NEW_ARRAY(gt_probe_rank, (size_t)p->run.roles.world_size);
  for (size_t r = 0; r < n; r++)
    for (int i = 0; i < job->regions[r].ranks; i++)
      p->ranks[at++] = healthy(r, i, p->run.roles.world_size);
  p->all_links = GT_NEW_ARRAY(gt_probe_link, n * n);
  p->access_bps = GT_NEW_ARRAY(double, n);
  for (size_t i = 0; i < n * n; i++) {
    const gt_link_spec *said = &gt_links_from(p->run.links, i / n)[i % n];
    if (i / n == i % n) continue;
    p->all_links[i] = (gt_probe_link){.latency_s = said->latency_s,
                                      .bandwidth_bps = said->bandwidth_bps,
                                      .profile_bps = said->bandwidth_bps};
  }
  return p;
}

void w_close(gt_probe_state *p) {
  gt_links_close(p->run.links);
  gt_job_close(p->run.job);
  gt_free(p->ranks);
  gt_free(p->all_links);
  gt_free(p->all_pairs);
  gt_free(p->all_passes);
  gt_free(p->access_bps);
  gt_free(p);
}

gt_probe_link *w_link(const gt_probe_state *p, size_t from, size_t to) {
  return &p->all_links[from * p->run.job->nregions + to];
}

gt_probe_rank *w_rank(const gt_probe_state *p, size_t region, int worker) {
  const gt_probe_rank *rank = gt_probe_worker(p, region, worker);
  assert_non_null(rank);
  return &p->ranks[rank - p->ranks];
}

static char text[16384];

static FILE *begin(void) {
  memset(text, 0, sizeof text);
  FILE *f = fmemopen(text, sizeof text - 1, "w");
  assert_non_null(f);
  return f;
}

const char *w_print(const gt_probe_state *p, void (*print)(const gt_probe_state *p, FILE *to)) {
  FILE *f = begin();
  print(p, f);
  fclose(f);
  return text;
}

const char *w_reasons(const gt_probe_state *p, size_t *n) {
  FILE *f = begin();
  *n = gt_probe_reasons(p, f);
  fclose(f);
  return text;
}

size_t w_lines(const char *of) {
  size_t n = 0;
  for (; *of; of++) n += *of == '\n';
  return n;
}
