/* The transport between regions: addresses, and TLS unless they are loopback addresses. */
#include "internal.h"

/* True for 127.x, localhost and [::1], with a port. */
static bool is_loopback(const char *address) {
  return !address || strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0 ||
         strncmp(address, "[::1]:", 6) == 0;
}

static bool has_port(const char *address) {
  const char *colon = strrchr(address, ':');
  return colon && colon != address && colon[1] != '\0' &&
         colon[1 + strspn(colon + 1, "0123456789")] == '\0';
}

static gt_status check_address(const char *address, const char *source, size_t region,
                               const char *key) {
  if (!address || has_port(address)) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: regions.%zu.%s is \"%.80s\"; expected host:port", source, region,
                 key, address);
}

static gt_status check_region(const gt_job *job, const char *source, size_t region) {
  const gt_job_region *r = &job->regions[region];
  GT_TRY(check_address(r->address, source, region, "address"));
  GT_TRY(check_address(r->listen, source, region, "listen"));
  if (r->listen && !r->address)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: regions.%zu.listen is given without regions.%zu.address; expected the "
                   "address at which the others reach the region",
                   source, region, region);
  if (!job->wan.tls.ca && (!is_loopback(r->address) || !is_loopback(r->listen)))
    return GT_FAIL(GT_ERR_JOB,
                   "%s: wan.tls is missing, and region %s has an address other than loopback; "
                   "expected wan.tls.ca, wan.tls.cert and wan.tls.key",
                   source, r->name);
  return GT_OK;
}

gt_status gt_job_check_transport(const gt_job *job, const char *source) {
  const int files =
      (job->wan.tls.ca != NULL) + (job->wan.tls.cert != NULL) + (job->wan.tls.key != NULL);
  size_t dialler = job->nregions;
  if (job->wan.transport == GT_WAN_MPI) return GT_OK;
  if (files != 0 && files != 3)
    return GT_FAIL(GT_ERR_JOB, "%s: wan.tls has %d of ca, cert and key; expected all or none",
                   source, files);
  const char *proxy = job->wan.proxy;
  if (proxy && (strncmp(proxy, GT_WAN_PROXY, strlen(GT_WAN_PROXY)) != 0 ||
                !has_port(proxy + strlen(GT_WAN_PROXY))))
    return GT_FAIL(GT_ERR_JOB, "%s: wan.proxy is \"%.80s\"; expected http://host:port", source,
                   proxy);
  for (size_t r = 0; r < job->nregions; r++) {
    GT_TRY(check_region(job, source, r));
    if (job->regions[r].address) continue;
    if (dialler < job->nregions)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: regions %s and %s have no address; with wan.transport tcp, expected "
                     "regions[].address of all regions but one",
                     source, job->regions[dialler].name, job->regions[r].name);
    dialler = r;
  }
  return GT_OK;
}
