/* Free memory of a host and of control groups. */
#include "geotrain/base.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the number at the start of a file; INFINITY if the file has none ("max") or does not
   exist. */
static double number_in(const char *path) {
  double bytes;
  FILE *file = fopen(path, "r");
  bool found = file && fscanf(file, "%lf", &bytes) == 1;
  if (file) fclose(file);
  return found && bytes > 0 ? bytes : INFINITY;
}

static double available(const char *root) {
  char path[512], line[256];
  uint64_t kib;
  double bytes = INFINITY;
  snprintf(path, sizeof path, "%s/proc/meminfo", root);
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1) bytes = 1024 * (double)kib;
  if (file) fclose(file);
  return bytes;
}

/* Returns the lowest limit of a control group and its ancestors. */
static double limit_of(const char *root, const char *mount, char *group, const char *name) {
  char path[1536];
  double least = INFINITY;
  for (;;) {
    snprintf(path, sizeof path, "%s%s%s/%s", root, mount, group, name);
    least = fmin(least, number_in(path));
    char *slash = strrchr(group, '/');
    if (!slash) return least;
    *slash = '\0';
  }
}

/* In version 2 a process is in one group ("0::/PATH"), in version 1 in one per controller
   ("N:memory:/PATH"). */
static double limit(const char *root) {
  char path[512], line[1024];
  double least = INFINITY;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : 0;
    if (!group) continue;
    *group++ = '\0';
    if (controllers[1] == '\0')
      least = fmin(least, limit_of(root, "/sys/fs/cgroup", group, "memory.max"));
    else if (strcmp(controllers + 1, "memory") == 0)
      least = fmin(least, limit_of(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
  }
  if (file) fclose(file);
  return least;
}

double gt_memory_free(const char *root) {
  const double least = fmin(available(root), limit(root));
  if (isfinite(least)) return least;
  return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

static uint64_t fnv1a(const char *text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char *c = text; *c; c++) hash = (hash ^ (uint8_t)*c) * 0x100000001b3;
  return hash;
}

void gt_memory_pools(gt_memory_pool pools[2]) {
  char text[4096] = "";
  gethostname(text, sizeof text / 2);
  pools[0] = (gt_memory_pool){fnv1a(text), available("")};
  const size_t n = strlen(text);
  FILE *file = fopen("/proc/self/cgroup", "re");
  if (file) (void)!fread(text + n, 1, sizeof text - n - 1, file);
  if (file) fclose(file);
  pools[1] = (gt_memory_pool){fnv1a(text), limit("")};
}

gt_status gt_memory_check(gt_status code, const char *what, double bytes, double free_bytes) {
  char need[32], have[32], host[256] = "this host";
  if (bytes <= free_bytes) return GT_OK;
  if (gethostname(host, sizeof host) == 0) host[sizeof host - 1] = '\0';
  return GT_FAIL(code,
                 "%s needs at least %s of memory; expected at most the %s that host %s has free",
                 what, gt_format_size(need, sizeof need, bytes),
                 gt_format_size(have, sizeof have, free_bytes), host);
}
