/* A data set without a name is named after its source folder. */
#include "tests.h"
#include "import.h"

static void assert_name(const char *folder, const char *expected) {
  char name[64];
  gt_import_name(folder, "mnist", name);
  assert_string_equal(name, expected);
}

static void test_the_last_folder_names_it(void) {
  assert_name("/usr/share/datasets/fashion-mnist", "fashion-mnist");
  assert_name("/usr/share/datasets/fashion-mnist//", "fashion-mnist");
  assert_name("kmnist", "kmnist");
}

static void test_where_there_is_no_name_the_format_has_one(void) {
  assert_name("", "mnist");
  assert_name("/", "mnist");
  assert_name("./", "mnist");
  assert_name("data/..", "mnist");
}

static void test_a_long_name_is_cut(void) {
  char folder[100] = "/", expected[64] = "";
  memset(folder + 1, 'x', 98);
  memset(expected, 'x', 63);
  assert_name(folder, expected);
}

TESTS(test_the_last_folder_names_it, test_where_there_is_no_name_the_format_has_one,
      test_a_long_name_is_cut)
