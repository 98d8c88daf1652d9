/* Settings of the MPI library, and the addresses available to its TCP transport. */
#include "internal.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

/* Writes the name of an enumeration's value. */
static void name_value(MPI_T_enum names, int value, char *buf, size_t size) {
  char name[128];
  int n = 0, length = (int)sizeof name, given;
  if (MPI_T_enum_get_info(names, &n, name, &length) != MPI_SUCCESS) return;
  for (int i = 0; i < n; i++) {
    length = (int)sizeof name;
    if (MPI_T_enum_get_item(names, i, &given, name, &length) == MPI_SUCCESS && given == value)
      snprintf(buf, size, "%s", name);
  }
}

static bool read_setting(int index, MPI_Datatype type, MPI_T_enum names, char *buf, size_t size) {
  MPI_T_cvar_handle handle;
  int count = 0;
  if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS) return false;
  /* The library writes `count` elements of any type: 16 bytes are enough for each. */
  char *value = gt_alloc((size_t)count + 1, 16);
  bool ok = MPI_T_cvar_read(handle, value) == MPI_SUCCESS;
  int number = 0;
  memcpy(&number, value, sizeof number);
  if (ok && type == MPI_CHAR)
    snprintf(buf, size, "%s", value);
  else if (ok) {
    snprintf(buf, size, "%d", number);
    if (names != MPI_T_ENUM_NULL) name_value(names, number, buf, size);
  }
  MPI_T_cvar_handle_free(&handle);
  gt_free(value);
  return ok;
}

bool gt_mpi_setting(const char *name, char *buf, size_t size) {
  int provided, index, verbosity, bind, scope, name_length = 0, text_length = 0;
  MPI_Datatype type;
  MPI_T_enum names;
  buf[0] = '\0';
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return false;
  bool ok = MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS;
  ok = ok && MPI_T_cvar_get_info(index, NULL, &name_length, &verbosity, &type, &names, NULL,
                                 &text_length, &bind, &scope) == MPI_SUCCESS;
  ok = ok && read_setting(index, type, names, buf, size);
  MPI_T_finalize();
  return ok;
}

/* ---- addresses ---- */

/* True if `list` ("eth0,10.0.0.0/8") has the name or the network of this interface. */
static bool listed(const char *list, const gt_net_address *a) {
  char copy[1024], *rest = NULL;
  snprintf(copy, sizeof copy, "%s", list);
  for (char *word = strtok_r(copy, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
    char *slash = strchr(word, '/');
    struct in_addr net;
    if (strcmp(word, a->interface) == 0) return true;
    if (!slash) continue;
    *slash = '\0';
    long bits = strtol(slash + 1, NULL, 10);
    if (bits < 0 || bits > 32 || inet_pton(AF_INET, word, &net) != 1) continue;
    uint32_t mask = bits == 0 ? 0 : htonl(UINT32_MAX << (32 - bits));
    if ((net.s_addr & mask) == (a->ip & mask)) return true;
  }
  return false;
}

size_t gt_net_addresses(gt_net_address *out, size_t max) {
  char include[1024], exclude[1024];
  struct ifaddrs *all;
  size_t n = 0;
  bool only = gt_mpi_setting("btl_tcp_if_include", include, sizeof include) && include[0];
  if (!gt_mpi_setting("btl_tcp_if_exclude", exclude, sizeof exclude)) exclude[0] = '\0';
  if (getifaddrs(&all) != 0) return 0;
  for (const struct ifaddrs *i = all; i && n < max; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !i->ifa_netmask ||
        !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
      continue;
    struct sockaddr_in ip, mask;
    memcpy(&ip, i->ifa_addr, sizeof ip);
    memcpy(&mask, i->ifa_netmask, sizeof mask);
    gt_net_address a = {.ip = ip.sin_addr.s_addr, .mask = mask.sin_addr.s_addr};
    snprintf(a.interface, sizeof a.interface, "%s", i->ifa_name);
    if (only ? listed(include, &a) : !listed(exclude, &a)) out[n++] = a;
  }
  freeifaddrs(all);
  return n;
}
