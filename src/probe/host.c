/* The environment of a rank: MPI's transport, single copy, cores, OpenBLAS, and the network
   interface used to reach the other regions. */
#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "geotrain/net_mpi.h"
#include "internal.h"

/* ---- MPI ---- */

static void look_at_mpi(gt_probe_rank *r) {
  static const char *const pmls[] = {"ob1", "ucx", "cm"};
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", name[64], value[2048];
  int length = 0;
  MPI_Get_library_version(version, &length);
  snprintf(r->mpi, sizeof r->mpi, "%.*s", (int)strcspn(version, ",\n"), version);
  /* Settings of a component that was not selected are gone once it is closed. */
  snprintf(r->pml, sizeof r->pml, "unknown");
  for (size_t i = 0; i < sizeof pmls / sizeof *pmls; i++) {
    snprintf(name, sizeof name, "pml_%s_priority", pmls[i]);
    if (gt_mpi_setting(name, value, sizeof value)) snprintf(r->pml, sizeof r->pml, "%s", pmls[i]);
  }
  if (strcmp(r->pml, "ob1") == 0) {
    static const char *const btls[][2] = {
        {"btl_vader_single_copy_mechanism", "vader (shared memory)"},
        {"btl_tcp_port_min_v4", "tcp"},
        {"btl_openib_verbose", "openib"}};
    for (size_t i = 0; i < sizeof btls / sizeof *btls; i++)
      if (gt_mpi_setting(btls[i][0], value, sizeof value))
        snprintf(r->btl + strlen(r->btl), sizeof r->btl - strlen(r->btl), "%s%s",
                 r->btl[0] ? ", " : "", btls[i][1]);
  }
  if (gt_mpi_setting("btl_vader_single_copy_mechanism", value, sizeof value))
    snprintf(r->single_copy, sizeof r->single_copy, "%.31s", value);
}

/* ---- cores and OpenBLAS ---- */

static int number_of(const char *name) {
  const char *text = getenv(name);
  return text ? (int)strtol(text, NULL, 10) : 0;
}

static void add_setting(gt_probe_rank *r, const char *name) {
  const char *value = getenv(name);
  size_t used = strlen(r->environment);
  if (value)
    snprintf(r->environment + used, sizeof r->environment - used, "%s%s=%.40s", used ? ", " : "",
             name, value);
}

static void look_at_cpu(gt_probe_rank *r) {
  cpu_set_t set;
  r->machine_cores = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
  r->cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : r->machine_cores;
  snprintf(r->blas_core, sizeof r->blas_core, "%s", gt_kernels_blas_core());
  r->blas_pinned = gt_kernels_blas_pinned();
  int threads = number_of("OPENBLAS_NUM_THREADS");
  if (threads <= 0) threads = number_of("GOTO_NUM_THREADS");
  if (threads <= 0) threads = number_of("OMP_NUM_THREADS");
  r->threads = threads > 0 ? threads : 1; /* geotrain's own default */
  add_setting(r, "OPENBLAS_CORETYPE");
  add_setting(r, "OPENBLAS_L2_SIZE");
  if (r->threads > 1) {
    add_setting(r, "OPENBLAS_NUM_THREADS");
    add_setting(r, "OMP_NUM_THREADS");
  }
}

/* ---- addresses ---- */

typedef struct {
  char host[64];
  uint32_t n;
  gt_net_address at[GT_REACH_ADDRESSES];
} address_card;

/* Returns the source address that the kernel would use to reach `to`; 0: no route.  Sends
   nothing. */
static uint32_t source_towards(uint32_t to) {
  struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = to},
                     own = {0};
  socklen_t length = sizeof own;
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  bool ok = connect(fd, (struct sockaddr *)&peer, sizeof peer) == 0 &&
            getsockname(fd, (struct sockaddr *)&own, &length) == 0;
  close(fd);
  return ok ? own.sin_addr.s_addr : 0;
}

static const gt_net_address *find_address(const address_card *card, uint32_t ip) {
  for (uint32_t i = 0; i < card->n; i++)
    if (card->at[i].ip == ip) return &card->at[i];
  return NULL;
}

/* Returns the peer's address in one of this host's networks, else its first address. */
static const gt_net_address *nearest(const address_card *own, const address_card *peer) {
  for (uint32_t i = 0; i < peer->n; i++)
    for (uint32_t k = 0; k < own->n; k++)
      if (((peer->at[i].ip ^ own->at[k].ip) & own->at[k].mask) == 0) return &peer->at[i];
  return peer->n > 0 ? &peer->at[0] : NULL;
}

static void add_route(gt_probe_state *p, const address_card *own, const address_card *peer,
                      const char *region) {
  char from[INET_ADDRSTRLEN] = "", to[INET_ADDRSTRLEN] = "", line[160];
  const gt_net_address *there = nearest(own, peer);
  uint32_t source = there ? source_towards(there->ip) : 0;
  if (!source) return;
  const gt_net_address *here = find_address(own, source);
  inet_ntop(AF_INET, &source, from, sizeof from);
  inet_ntop(AF_INET, &there->ip, to, sizeof to);
  if (!here) p->own.address_excluded = 1;
  snprintf(line, sizeof line, "%s %s",
           here ? here->interface : "an interface that btl_tcp_if_include/exclude leaves out,",
           from);
  size_t used = strlen(p->own.address);
  if (used > 0 && strstr(p->own.address, line)) return;
  snprintf(p->own.address + used, sizeof p->own.address - used,
           "%s%s, on the route to region %s at %s", used ? "; " : "", line, region, to);
}

static void look_at_addresses(gt_probe_state *p) {
  const gt_run *run = &p->run;
  size_t n = run->job->nregions;
  address_card own = {0}, *cards = GT_NEW_ARRAY(address_card, n);
  snprintf(own.host, sizeof own.host, "%s", p->own.host);
  own.n = (uint32_t)gt_net_addresses(own.at, GT_REACH_ADDRESSES);
  gt_peers_gather(run->roles.ps, &own, sizeof own, cards, "the addresses of the other regions",
                  p->limit_s);
  for (size_t r = 0; r < n; r++)
    if (strcmp(cards[r].host, own.host) != 0)
      add_route(p, &own, &cards[r], run->job->regions[r].name);
  if (!p->own.address[0])
    snprintf(p->own.address, sizeof p->own.address, "shared memory: all regions are on this host");
  gt_free(cards);
}

/* ---- entry point ---- */

void gt_probe_host(gt_probe_state *p) {
  gt_probe_rank *r = &p->own;
  char host[MPI_MAX_PROCESSOR_NAME + 1] = "";
  int length;
  GT_MPI(MPI_Get_processor_name(host, &length));
  snprintf(r->host, sizeof r->host, "%.63s", host);
  FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (f && fgets(r->kernel, sizeof r->kernel, f)) r->kernel[strcspn(r->kernel, "\n")] = '\0';
  if (f) fclose(f);
  r->region = (int32_t)p->run.roles.region_id;
  r->region_rank = p->run.roles.region_rank;
  r->pid = (int32_t)getpid();
  const char *plane = getenv("GEOTRAIN_LOCAL_PLANE");
  r->plane_shared = !(plane && strcmp(plane, "messages") == 0);
  look_at_mpi(r);
  look_at_cpu(r);
  if (p->run.roles.is_ps) look_at_addresses(p);
}
