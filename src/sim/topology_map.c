/* The links of a job, for the search for a topology. */
#include <math.h>

#include "geotrain/ps_of_job.h"
#include "topology.h"

#define PIECE_FLOATS (GT_FRAME_PAYLOAD_MAX / sizeof(float))

static double seconds(double bytes, double rate_bps) {
  return rate_bps > 0 ? 8 * bytes / rate_bps : 0;
}

static double latency_of(const gt_link_spec *link, double bytes) {
  const double setup_s =
      bytes > link->eager_bytes ? link->setup_rtts * (link->latency_s + link->back_s) : 0;
  return gt_seconds(gt_link_delay_min(link)) + setup_s;
}

/* A frame passes link and both accesses as one stream. */
static void fill(topology_map *map, const gt_link_spec *link, size_t from, size_t to, double first,
                 double last) {
  const size_t i = from * map->n + to;
  const double rate_bps = gt_rate_lower(gt_link_goodput(link),
                                        gt_rate_lower(map->access_bps[from], map->access_bps[to]));
  map->first_s[i] = seconds(first, rate_bps);
  map->last_s[i] = seconds(last, rate_bps);
  map->latency_s[i] = latency_of(link, first);
  map->rate_bps[i] = rate_bps;
}

void gt_topology_map_open(topology_map *map, const gt_sim_spec *spec, bool rounds) {
  const gt_job *job = spec->job;
  const gt_exchange_codec codec = gt_ps_codec_of(job, spec->tensors, spec->ntensors);
  const gt_exchange_pieces of = gt_exchange_pieces_of(&codec, spec->parameters, PIECE_FLOATS);
  const size_t n = job->nregions, pairs = n * n;
  const double header = GT_FRAME_HEADER_MAX, last = header + (double)of.last,
               first = header + (double)of.least;
  *map = (topology_map){.n = n,
                        .rounds = rounds,
                        .bytes = (double)of.bytes,
                        .frames = (double)of.pieces,
                        .contributes = GT_NEW_ARRAY(bool, n),
                        .first_s = GT_NEW_ARRAY(double, pairs),
                        .last_s = GT_NEW_ARRAY(double, pairs),
                        .latency_s = GT_NEW_ARRAY(double, pairs),
                        .rate_bps = GT_NEW_ARRAY(double, pairs),
                        .piece_s = GT_NEW_ARRAY(double, n),
                        .access_bps = GT_NEW_ARRAY(double, n)};
  for (size_t r = 0; r < n; r++) {
    map->contributes[r] = job->regions[r].ranks > 1;
    map->members += map->contributes[r];
    const gt_link_access access = gt_links_access(spec->links, r);
    map->access_bps[r] = gt_rate_lower(access.up_bps, access.down_bps);
    map->piece_s[r] = seconds(first, map->access_bps[r]);
  }
  for (size_t a = 0; a < n; a++)
    for (size_t b = 0; b < n; b++)
      if (a != b) fill(map, &gt_links_from(spec->links, a)[b], a, b, first, last);
}

void gt_topology_map_close(topology_map *map) {
  gt_free(map->contributes);
  gt_free(map->first_s);
  gt_free(map->last_s);
  gt_free(map->latency_s);
  gt_free(map->rate_bps);
  gt_free(map->piece_s);
  gt_free(map->access_bps);
}
