/* The CPU's name is found in the lists of Linux on x86 and Arm. */
#include "geotrain/base.h"
#include "tests.h"

static void named(const char *listed, const char *want) {
  char name[64];
  gt_cpu_name(name, sizeof name, file_with("cpuinfo", listed));
  assert_string_equal(name, want);
}

static void names(void) {
  named(
      "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763 64-Core Processor\nflags\t: fpu\n",
      "AMD EPYC 7763 64-Core Processor");
  /* Most Arm kernels list only numbers. */
  named("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU "
        "architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n"
        "CPU revision\t: 1\n\nprocessor\t: 1\nCPU implementer\t: 0x48\nCPU part\t: 0xd01\n",
        "Arm, implementer 0x41, part 0xd0c");
  named("processor\t: 0\n", "unknown");
  named("", "unknown");
}

static void kinds(void) {
  char kind[64];
  const char *listed =
      "cpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\nstepping\t: 2\ncpu family\t: 26\n";
  gt_cpu_kind(kind, sizeof kind, file_with("cpuinfo", listed));
  assert_string_equal(kind, "AMD EPYC 25-1-2");
  gt_cpu_kind(kind, sizeof kind, "/nonexistent/cpuinfo");
  assert_string_equal(kind, "unknown");
}

static void nothing_to_read(void) {
  char name[64];
  gt_cpu_name(name, sizeof name, "/nonexistent/cpuinfo");
  assert_string_equal(name, "unknown");
  char small[8];
  gt_cpu_name(small, sizeof small, "/nonexistent/cpuinfo");
  assert_string_equal(small, "unknown");
}

TESTS(names, kinds, nothing_to_read)
