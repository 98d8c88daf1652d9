/* CPU: its name, from /proc/cpuinfo. */
#include "geotrain/base.h"

#include <stdio.h>
#include <string.h>

/* Returns the value of a line "key   : value"; NULL if the line has another key. */
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
    if ((value = value_of(line, "CPU implementer")))
      snprintf(implementer, sizeof implementer, "%s", value);
    if ((value = value_of(line, "CPU part"))) snprintf(part, sizeof part, "%s", value);
    if (!implementer[0] || !part[0]) continue;
    snprintf(name, size, "Arm, implementer %s, part %s", implementer, part);
    break;
  }
  if (file) fclose(file);
}

void gt_cpu_kind(char *kind, size_t size, const char *cpuinfo) {
  static const char *const keys[] = {"cpu family", "model", "stepping"};
  char line[8192], numbers[3][16] = {"", "", ""};
  gt_cpu_name(kind, size, cpuinfo);
  FILE *file = fopen(cpuinfo, "r");
  while (file && !numbers[2][0] && fgets(line, sizeof line, file))
    for (size_t i = 0; i < 3; i++) {
      const char *value = value_of(line, keys[i]);
      if (value) snprintf(numbers[i], sizeof numbers[i], "%s", value);
    }
  if (file) fclose(file);
  const size_t used = strlen(kind);
  if (numbers[0][0])
    snprintf(kind + used, size - used, " %s-%s-%s", numbers[0], numbers[1], numbers[2]);
}
