/* CPU: its name, from the kernel's list. */
#include "geotrain/base.h"

#include <stdio.h>
#include <string.h>

/* The value of a line "key   : value"; NULL: the line has another key. */
static const char *value_of(char *line, const char *key) {
  size_t length = strlen(key);
  if (strncmp(line, key, length) != 0) return NULL;
  const char *at = line + length + strspn(line + length, " \t");
  if (*at != ':') return NULL;
  line[strcspn(line, "\n")] = '\0';
  return at + 1 + strspn(at + 1, " ");
}

void gt_cpu_name(char *name, size_t size, const char *cpuinfo) {
  char line[8192], implementer[32] = "", part[32] = "";
  snprintf(name, size, "unknown");
  FILE *file = fopen(cpuinfo, "r");
  while (file && fgets(line, sizeof line, file)) {
    const char *value = value_of(line, "model name");
    if (value) {
      snprintf(name, size, "%s", value);
      break;
    }
    if ((value = value_of(line, "CPU implementer"))) snprintf(implementer, sizeof implementer, "%s", value);
    if ((value = value_of(line, "CPU part"))) snprintf(part, sizeof part, "%s", value);
    if (!implementer[0] || !part[0]) continue;
    snprintf(name, size, "Arm, implementer %s, part %s", implementer, part);
    break;
  }
  if (file) fclose(file);
}
