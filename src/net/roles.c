/* Roles: the region of each rank, from host lists, and the communicators derived from it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internal.h"

/* ---- host lists: plain names, and Slurm's compressed form node[01-16,18] --------------------- */

#define MAX_DIGITS 9

/* True if names are equal, or one is the other without its domain. */
static bool same_host(const char *pattern, size_t length, const char *host, size_t host_length) {
  const char *dot = memchr(pattern, '.', length), *host_dot = memchr(host, '.', host_length);
  if (!dot && host_dot) host_length = (size_t)(host_dot - host);
  if (dot && !host_dot) length = (size_t)(dot - pattern);
  return length == host_length && strncasecmp(pattern, host, length) == 0;
}

static gt_status malformed(const char *text, const char *what) {
  return GT_FAIL(GT_ERR_JOB,
                 "regions[].hosts has \"%s\": %s; expected names or a form like node[01-16,18]",
                 text, what);
}

/* Reads digits at *at; their number is the width for leading zeros. */
static bool read_number(const char **at, const char *end, unsigned long *value, size_t *digits) {
  const char *start = *at;
  *value = 0;
  while (*at < end && isdigit((unsigned char)**at) && *at - start < MAX_DIGITS)
    *value = *value * 10 + (unsigned long)(*(*at)++ - '0');
  *digits = (size_t)(*at - start);
  return *digits > 0;
}

/* Returns the number of digits if the digits at the start of `host` are a number in low..high
   printed with at least `width` digits; else 0. */
static size_t number_matches(const char *host, size_t take, unsigned long low, unsigned long high,
                             size_t width) {
  unsigned long value = 0;
  for (size_t i = 0; i < take; i++) value = value * 10 + (unsigned long)(host[i] - '0');
  if (value < low || value > high) return 0;
  bool padded_right = take == width || (take > width && host[0] != '0');
  return padded_right ? take : 0;
}

static bool match_name(const char *pattern, const char *end, const char *host);

/* Tries every range for the digits at the start of host, then matches the text after ']'.
   `pattern` is after '['. */
static bool match_ranges(const char *pattern, const char *end, const char *host) {
  const char *close = memchr(pattern, ']', (size_t)(end - pattern));
  size_t digits = 0;
  while (digits < MAX_DIGITS && isdigit((unsigned char)host[digits])) digits++;
  for (const char *at = pattern; at < close; at++) {
    unsigned long low, high;
    size_t width, unused;
    read_number(&at, close, &low, &width);
    high = low;
    if (*at == '-') {
      at++;
      read_number(&at, close, &high, &unused);
    }
    for (size_t take = width; take <= digits; take++) {
      if (number_matches(host, take, low, high, width) && match_name(close + 1, end, host + take))
        return true;
    }
  }
  return false;
}

static bool match_name(const char *pattern, const char *end, const char *host) {
  const char *open = memchr(pattern, '[', (size_t)(end - pattern));
  if (!open) return same_host(pattern, (size_t)(end - pattern), host, strlen(host));
  size_t prefix = (size_t)(open - pattern);
  return strncasecmp(pattern, host, prefix) == 0 && match_ranges(open + 1, end, host + prefix);
}

/* Checks the text inside one pair of brackets: numbers and ranges separated by commas. */
static gt_status check_ranges(const char *text, const char *at, const char *close) {
  for (;;) {
    unsigned long low, high;
    size_t digits;
    if (!read_number(&at, close, &low, &digits))
      return malformed(text, "a number is missing between the brackets");
    if (at < close && *at == '-') {
      at++;
      if (!read_number(&at, close, &high, &digits)) return malformed(text, "a range has no end");
      if (high < low) return malformed(text, "a range ends before it begins");
    }
    if (at == close) return GT_OK;
    if (*at++ != ',')
      return malformed(text, "only digits, '-' and ',' can stand between the brackets");
  }
}

/* Finds the end of the name at `at`: the next comma outside brackets, or the end of the text. */
static gt_status name_end(const char *text, const char *at, const char **end) {
  const char *start = at;
  for (; *at && *at != ','; at++) {
    if (*at == ']') return malformed(text, "a ']' has no '['");
    if (isspace((unsigned char)*at)) return malformed(text, "it holds a space");
    if (*at != '[') continue;
    const char *close = strchr(at, ']');
    if (!close) return malformed(text, "a '[' has no ']'");
    GT_TRY(check_ranges(text, at + 1, close));
    at = close;
  }
  if (at == start) return malformed(text, "a name is empty");
  *end = at;
  return GT_OK;
}

gt_status gt_hosts_contain(const char *text, const char *host, bool *found) {
  *found = false;
  for (const char *at = text;;) {
    const char *end = at;
    GT_TRY(name_end(text, at, &end));
    if (match_name(at, end, host)) *found = true;
    if (*end == '\0') return GT_OK;
    at = end + 1;
  }
}

gt_status gt_region_has_host(const gt_region_plan *region, const char *host, bool *found) {
  const char *node = getenv("SLURMD_NODENAME");
  *found = false;
  for (size_t h = 0; h < region->nhosts; h++) {
    bool own, slurm = false;
    GT_TRY(gt_hosts_contain(region->hosts[h], host, &own));
    if (node && *node) GT_TRY(gt_hosts_contain(region->hosts[h], node, &slurm));
    *found = *found || own || slurm;
  }
  return GT_OK;
}

#define MAP_LIMIT_S 120.0
#define UNSET       (-1)

/* ---- this rank's own region ------------------------------------------------------------------ */

/* `given`: what gives the name, for the error. */
gt_status gt_region_named(const char *given, const char *name, const gt_region_plan *plan,
                          size_t nregions, int *region) {
  const char **names = GT_NEW_ARRAY(const char *, nregions);
  *region = UNSET;
  for (size_t r = 0; r < nregions; r++) {
    names[r] = plan[r].name;
    if (strcmp(plan[r].name, name) == 0) *region = (int)r;
  }
  gt_status status = GT_OK;
  if (*region == UNSET) {
    const char *near = gt_nearest(name, names, nregions);
    status = near ? GT_FAIL(GT_ERR_JOB,
                            "%s is \"%s\", which is no region of the job; did you mean \"%s\"?",
                            given, name, near)
                  : GT_FAIL(GT_ERR_JOB, "%s is \"%s\", which is no region of the job (\"%s\" is)",
                            given, name, plan[0].name);
  }
  gt_free(names);
  return status;
}

/* Finds the region whose list contains this host, by its own name or by Slurm's.  Reads every list,
   so that a malformed one is always reported. */
static gt_status from_hosts(const gt_region_plan *plan, size_t nregions, int *region) {
  char host[MPI_MAX_PROCESSOR_NAME + 1] = "";
  int length;
  GT_MPI(MPI_Get_processor_name(host, &length));
  for (size_t r = 0; r < nregions; r++) {
    bool found;
    GT_TRY(gt_region_has_host(&plan[r], host, &found));
    if (!found) continue;
    if (*region != UNSET)
      return GT_FAIL(
          GT_ERR_JOB,
          "regions[].hosts: host %s is in the lists of %s and %s; GEOTRAIN_REGION must say which "
          "region its ranks belong to",
          host, plan[*region].name, plan[r].name);
    *region = (int)r;
  }
  if (*region == UNSET)
    return GT_FAIL(
        GT_ERR_JOB,
        "regions[].hosts: host %s is in no region's list of hosts; every host must be in one",
        host);
  return GT_OK;
}

static bool any_hosts(const gt_region_plan *plan, size_t nregions) {
  for (size_t r = 0; r < nregions; r++) {
    if (plan[r].nhosts > 0) return true;
  }
  return false;
}

gt_status gt_roles_own(const gt_region_plan *plan, size_t nregions, int *region) {
  *region = UNSET;
  const char *name = getenv("GEOTRAIN_REGION");
  if (name && *name) return gt_region_named("GEOTRAIN_REGION", name, plan, nregions, region);
  return any_hosts(plan, nregions) ? from_hosts(plan, nregions, region) : GT_OK;
}

/* ---- the map, the same on all ranks ---- */

static int ranks_needed(const gt_region_plan *plan, size_t nregions) {
  int sum = 0;
  for (size_t r = 0; r < nregions; r++) sum += plan[r].ranks;
  return sum;
}

/* "shanghai 3, chongqing 2" */
static void list_regions(char *buf, size_t size, const gt_region_plan *plan, size_t nregions) {
  size_t used = 0;
  buf[0] = '\0';
  for (size_t r = 0; r < nregions && used < size; r++)
    used += (size_t)snprintf(buf + used, size - used, "%s%s %d", r ? ", " : "", plan[r].name,
                             plan[r].ranks);
}

gt_status gt_roles_fits(const gt_region_plan *plan, size_t nregions, int world_size) {
  int needed = ranks_needed(plan, nregions);
  for (size_t r = 0; r < nregions; r++) {
    if (plan[r].ranks < 1)
      return GT_FAIL(GT_ERR_JOB, "region %s has %d ranks; expected 1 or more", plan[r].name,
                     plan[r].ranks);
  }
  if (world_size == needed) return GT_OK;
  char list[512], advice[96], library[MPI_MAX_LIBRARY_VERSION_STRING];
  list_regions(list, sizeof list, plan, nregions);
  int tasks = gt_launch_tasks();
  if (world_size == 1 && tasks > 1)
    return gt_launch_apart(gt_launch_library(library, sizeof library), tasks, needed, list);
  return GT_FAIL(GT_ERR_JOB, "%d rank%s started, but the job needs %d (%s): %s", world_size,
                 world_size == 1 ? " was" : "s were", needed, list,
                 gt_launch_advice(advice, sizeof advice, needed));
}

/* Fills contiguous blocks if no rank knows its region.  It is an error if only some ranks do. */
static gt_status fill_map(const gt_region_plan *plan, size_t nregions, int *map, int size) {
  int set = UNSET, unset = UNSET;
  for (int i = size - 1; i >= 0; i--) *(map[i] == UNSET ? &unset : &set) = i;
  if (set != UNSET && unset != UNSET)
    return GT_FAIL(GT_ERR_JOB,
                   "rank %d has GEOTRAIN_REGION in its environment, but rank %d has not; all ranks "
                   "need it, or none",
                   set, unset);
  if (set != UNSET) return GT_OK;
  int at = 0;
  for (size_t r = 0; r < nregions; r++) {
    for (int i = 0; i < plan[r].ranks && at < size; i++) map[at++] = (int)r;
  }
  return GT_OK;
}

static gt_status check_counts(const gt_region_plan *plan, size_t nregions, const int *map,
                              int size) {
  for (size_t r = 0; r < nregions; r++) {
    int count = 0;
    for (int i = 0; i < size; i++) count += map[i] == (int)r;
    if (count != plan[r].ranks)
      return GT_FAIL(GT_ERR_JOB, "region %s got %d rank%s, but the job says %d", plan[r].name,
                     count, count == 1 ? "" : "s", plan[r].ranks);
  }
  return GT_OK;
}

gt_status gt_roles_fill(const gt_region_plan *plan, size_t nregions, int *map, int size) {
  GT_TRY(fill_map(plan, nregions, map, size));
  return check_counts(plan, nregions, map, size);
}

static gt_status make_map(gt_peers *world, const gt_region_plan *plan, size_t nregions, int *map,
                          double limit_s) {
  int own = UNSET;
  gt_status status = gt_roles_fits(plan, nregions, (int)world->size);
  if (status == GT_OK) status = gt_roles_own(plan, nregions, &own);
  GT_TRY(gt_agree(world, status, limit_s));
  gt_peers_gather(world, &own, sizeof own, map, "the regions of the other ranks", limit_s);
  return gt_roles_fill(plan, nregions, map, (int)world->size);
}

/* ---- groups ---- */

/* MPI_Comm_split blocks and spins, so all ranks first meet in a sleeping barrier.  Returns NULL for
   color MPI_UNDEFINED. */
static gt_peers *split(gt_peers *world, int color, int key, const char *name, double limit_s) {
  MPI_Comm comm;
  gt_peers_meet(world, &(gt_peers_wait){.what = "the other ranks before communicators are made",
                                        .limit_s = limit_s});
  gt_watch_begin(name, limit_s, GT_ERR_LOST);
  GT_MPI(MPI_Comm_split(gt_peers_mpi(world), color, key, &comm));
  gt_watch_end();
  return comm == MPI_COMM_NULL ? NULL : gt_peers_of_mpi(comm, true);
}

static void fill_region(gt_roles *out, gt_peers *world, int region, size_t nregions,
                        double limit_s) {
  out->region_id = (size_t)region;
  out->nregions = nregions;
  out->region = split(world, region, (int)world->rank, "MPI_Comm_split by region", limit_s);
  out->region_rank = (int)out->region->rank;
  out->region_size = (int)out->region->size;
  out->is_ps = out->region_rank == 0;
  out->is_lead = out->reports = out->is_ps && region == 0;
}

static void fill_roles(gt_roles *out, gt_peers *world, const int *map, size_t nregions,
                       double limit_s) {
  const int region = map[out->world_rank];
  fill_region(out, world, region, nregions, limit_s);
  out->world = world;
  out->ps = split(world, out->is_ps ? 0 : MPI_UNDEFINED, region, "MPI_Comm_split of the PS ranks",
                  limit_s);
}

gt_status gt_roles_create(gt_roles *out, gt_peers *world, const gt_region_plan *plan,
                          size_t nregions, double limit_s) {
  *out = (gt_roles){.world_rank = (int)world->rank, .world_size = (int)world->size};
  int *map = GT_NEW_ARRAY(int, world->size);
  gt_status status = make_map(world, plan, nregions, map, limit_s);
  if (status == GT_OK) fill_roles(out, world, map, nregions, limit_s);
  gt_free(map);
  return status;
}

/* ---- regions that are MPI jobs of their own ---- */

/* Returns the rank of a region's PS in the whole run. */
static int first_rank(const gt_region_plan *plan, size_t region) {
  int first = 0;
  for (size_t r = 0; r < region; r++) first += plan[r].ranks;
  return first;
}

static gt_status find_alone(const gt_region_plan *plan, size_t nregions, const char *name,
                            size_t ranks, int *region) {
  *region = UNSET;
  GT_TRY(gt_region_named("--region", name, plan, nregions, region));
  if (ranks == (size_t)plan[*region].ranks) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "--region %s was started with %zu rank%s; the job gives it %d", name,
                 ranks, ranks == 1 ? "" : "s", plan[*region].ranks);
}

gt_status gt_roles_create_alone(gt_roles *out, gt_peers *world, const gt_region_plan *plan,
                                size_t nregions, const char *name, double limit_s) {
  int region;
  *out = (gt_roles){0};
  GT_TRY(gt_agree(world, find_alone(plan, nregions, name, world->size, &region), limit_s));
  fill_region(out, world, region, nregions, limit_s);
  out->reports = out->is_ps;
  out->world_rank = first_rank(plan, (size_t)region) + out->region_rank;
  out->world_size = ranks_needed(plan, nregions);
  return GT_OK;
}

void gt_roles_join(gt_roles *roles, gt_peers *servers, const gt_region_plan *plan) {
  size_t *ranks = GT_NEW_ARRAY(size_t, roles->nregions);
  for (size_t r = 0; r < roles->nregions; r++) ranks[r] = (size_t)plan[r].ranks;
  roles->ps = servers;
  roles->joined = gt_peers_join(roles->region, servers, roles->region_id, ranks, roles->nregions);
  roles->world = roles->joined;
  gt_free(ranks);
}

void gt_roles_close(gt_roles *roles, double limit_s) {
  if (!roles || !roles->region) return;
  gt_watch_begin("MPI_Comm_free", limit_s, GT_ERR_LOST);
  gt_peers_close(roles->joined);
  gt_peers_close(roles->ps);
  gt_peers_close(roles->region);
  gt_watch_end();
  roles->world = roles->joined = roles->ps = roles->region = NULL;
}

/* ---- the map as text ---- */

typedef struct {
  int region;
  char host[64];
} place;

static void print_region(FILE *out, const char *name, int region, const place *places, int size) {
  fprintf(out, "region %s: rank%s", name, size == 1 ? "" : "s");
  const char *separator = " ";
  for (int i = 0; i < size; i++) {
    if (places[i].region != region) continue;
    fprintf(out, "%s%d%s", separator, i, separator[0] == ' ' ? " (PS)" : "");
    separator = ", ";
  }
  separator = " on ";
  for (int i = 0; i < size; i++) {
    if (places[i].region != region) continue;
    bool named = false;
    for (int k = 0; k < i; k++)
      named |= places[k].region == region && strcmp(places[k].host, places[i].host) == 0;
    if (named) continue;
    fprintf(out, "%s%s", separator, places[i].host);
    separator = ", ";
  }
  fputc('\n', out);
}

char *gt_roles_map(const gt_roles *roles, const gt_region_plan *plan, const bool *late) {
  char host[MPI_MAX_PROCESSOR_NAME + 1] = "";
  int length;
  GT_MPI(MPI_Get_processor_name(host, &length));
  place own = {.region = (int)roles->region_id};
  snprintf(own.host, sizeof own.host, "%.63s", host);
  place *places = GT_NEW_ARRAY(place, (size_t)roles->world_size);
  gt_peers_gather(roles->world, &own, sizeof own, places, "the hosts of the other ranks",
                  MAP_LIMIT_S);
  /* regions that can be late are MPI jobs of their own: their ranks follow each other */
  for (size_t r = 0; late && r < roles->nregions; r++)
    for (int i = 0; late[r] && i < plan[r].ranks; i++)
      places[first_rank(plan, r) + i].region = UNSET;
  char *text = NULL, *copy = NULL;
  size_t size = 0;
  FILE *out = roles->world_rank == 0 ? open_memstream(&text, &size) : NULL;
  if (out) {
    for (size_t r = 0; r < roles->nregions; r++)
      if (late && late[r])
        fprintf(out, "region %s: it is not there yet\n", plan[r].name);
      else
        print_region(out, plan[r].name, (int)r, places, roles->world_size);
    fclose(out);
    copy = gt_strdup(text);
    free(text);
  }
  gt_free(places);
  return copy;
}
