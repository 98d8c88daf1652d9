/* A final model written in parts, in any order, is read back like one written at once; it has its
   name only when finished. */
#include "fixture.h"

#define FLOATS ((size_t)700001) /* more than one block of the reader */
#define OTHERS ((size_t)37)

static float value_of(bool buffers, size_t i) {
  return (buffers ? -0.25F : 0.5F) * (float)(i % 65521);
}

/* Writes floats [at, end) in pieces of up to 90,000, the last piece first. */
static void put(gt_ckpt_parts *parts, bool buffers, size_t at, size_t end) {
  const size_t most = 90000, n = end - at < most ? end - at : most;
  float *piece = GT_NEW_ARRAY(float, n + 1);
  if (at + n < end) put(parts, buffers, at + n, end);
  for (size_t i = 0; i < n; i++) piece[i] = value_of(buffers, at + i);
  must(gt_ckpt_parts_put(parts, buffers, at, piece, n));
  gt_free(piece);
}

static void is_read_back(const char *path, const char *hash) {
  gt_ckpt_info info;
  gt_state state;
  float *params = GT_NEW_ARRAY(float, FLOATS), buffers[OTHERS];
  char found[GT_SHA256_HEX];
  int64_t extra = 0;
  must(gt_ckpt_read(path, &info, &state));
  must(gt_state_get(&state, "model/", "params", GT_TYPE_F32, params, FLOATS));
  must(gt_state_get(&state, "model/", "buffers", GT_TYPE_F32, buffers, OTHERS));
  must(gt_state_get(&state, "data/", "extra", GT_TYPE_I64, &extra, 1));
  for (size_t i = 0; i < FLOATS; i++)
    if (params[i] != value_of(false, i)) fail_msg("parameter %zu is %g", i, (double)params[i]);
  for (size_t i = 0; i < OTHERS; i++) assert_true(buffers[i] == value_of(true, i));
  gt_sha256_hex(params, FLOATS * sizeof *params, found);
  assert_string_equal(found, hash);
  assert_string_equal(info.params_sha256, hash);
  assert_string_equal(info.job_yaml, "name: parts\n");
  assert_int_equal(info.step, 12);
  assert_int_equal(extra, 5);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  gt_free(params);
}

static void test_parts_become_one_file(void) {
  gt_ckpt_parts *parts;
  gt_ckpt_info info = {.job_yaml = (char *)(uintptr_t) "name: parts\n", .step = 12, .mean_of = 1};
  gt_state rest = {0};
  int64_t extra = 5;
  char path[256];
  gt_ckpt_final_model_path(path, sizeof path, in_folder(""), NULL);
  gt_state_add(&rest, "data/", "extra", GT_TYPE_I64, &extra, 1);
  must(gt_ckpt_parts_open(&parts, in_folder(""), FLOATS, OTHERS));
  put(parts, true, 0, OTHERS);
  put(parts, false, 300000, FLOATS);
  put(parts, false, 0, 300000);
  assert_int_equal(access(path, F_OK), -1);
  must(gt_ckpt_parts_finish(parts, &info, &rest));
  gt_ckpt_parts_close(parts);
  is_read_back(path, info.params_sha256);
  gt_state_close(&rest);
}

static void flip_byte(const char *path, long at) {
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, at, SEEK_SET), 0);
  const int byte = fgetc(file);
  assert_int_equal(fseek(file, at, SEEK_SET), 0);
  fputc(byte ^ 1, file);
  fclose(file);
}

/* Reads the file of the previous test. */
static void test_ranges_are_read(void) {
  gt_ckpt_source *source;
  gt_ckpt_info info;
  gt_state state;
  char path[256];
  float x[1000];
  int64_t extra = 0;
  gt_ckpt_final_model_path(path, sizeof path, in_folder(""), NULL);
  must(gt_ckpt_source_open(&source, path, &info, &state));
  assert_int_equal(gt_ckpt_source_floats(source, false), FLOATS);
  assert_int_equal(gt_ckpt_source_floats(source, true), OTHERS);
  must(gt_state_get(&state, "data/", "extra", GT_TYPE_I64, &extra, 1));
  assert_int_equal(extra, 5);
  assert_string_equal(info.job_yaml, "name: parts\n");
  assert_null(gt_state_find(&state, "model/", "params"));
  for (size_t at = 0; at + 1000 <= FLOATS; at += 69000) {
    must(gt_ckpt_source_get(source, false, at, x, 1000));
    for (size_t i = 0; i < 1000; i++) assert_true(x[i] == value_of(false, at + i));
  }
  must(gt_ckpt_source_get(source, true, 7, x, OTHERS - 7));
  for (size_t i = 7; i < OTHERS; i++) assert_true(x[i - 7] == value_of(true, i));
  must(gt_ckpt_source_get(source, true, OTHERS, x, 0));
  must_fail(gt_ckpt_source_get(source, true, 8, x, OTHERS - 7), GT_ERR_CKPT,
            "37 floats of model/buffers; expected 30 from 8 on");
  gt_ckpt_source_close(source);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  flip_byte(path, 100000);
  must_fail(gt_ckpt_source_open(&source, path, &info, &state), GT_ERR_CKPT, "it is damaged");
  assert_null(source);
  flip_byte(path, 100000);
}

/* Written floats are read back, changed and written again. */
static void test_parts_are_read_back(void) {
  enum { FROM = 400000, SOME = 300 };
  gt_ckpt_parts *parts;
  gt_ckpt_info info = {.job_yaml = (char *)(uintptr_t) "name: parts\n", .mean_of = 1};
  gt_state rest = {0}, state;
  char path[256];
  float *x = GT_NEW_ARRAY(float, FLOATS), buffers[OTHERS];
  gt_ckpt_final_model_path(path, sizeof path, in_folder(""), NULL);
  gt_ckpt_remove_final_model(in_folder(""), NULL);
  must(gt_ckpt_parts_open(&parts, in_folder(""), FLOATS, OTHERS));
  put(parts, false, 0, FLOATS);
  put(parts, true, 0, OTHERS);
  must(gt_ckpt_parts_get(parts, false, FROM, x, SOME));
  for (size_t i = 0; i < SOME; i++) assert_true(x[i] == value_of(false, FROM + i));
  must(gt_ckpt_parts_get(parts, true, 1, buffers, OTHERS - 1));
  for (size_t i = 0; i + 1 < OTHERS; i++) assert_true(buffers[i] == value_of(true, i + 1));
  must(gt_ckpt_parts_get(parts, true, OTHERS, buffers, 0));
  for (size_t i = 0; i < SOME; i++) x[i] += 8;
  must(gt_ckpt_parts_put(parts, false, FROM, x, SOME));
  must(gt_ckpt_parts_finish(parts, &info, &rest));
  gt_ckpt_parts_close(parts);
  must(gt_ckpt_read(path, &info, &state));
  must(gt_state_get(&state, "model/", "params", GT_TYPE_F32, x, FLOATS));
  for (size_t i = 0; i < FLOATS; i++)
    if (x[i] != value_of(false, i) + (i >= FROM && i < FROM + SOME ? 8 : 0))
      fail_msg("parameter %zu is %g", i, (double)x[i]);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  gt_free(x);
}

static void test_what_is_not_finished_is_removed(void) {
  gt_ckpt_parts *parts;
  char text[512];
  gt_ckpt_remove_final_model(in_folder(""), NULL);
  must(gt_ckpt_parts_open(&parts, in_folder(""), 10, 0));
  put(parts, false, 0, 10);
  gt_ckpt_parts_close(parts);
  assert_string_equal(gt_ckpt_list(text, sizeof text, in_folder("")), "nothing");
  must_fail(gt_ckpt_parts_open(&parts, in_folder("nowhere"), 10, 0), GT_ERR_CKPT, "/nowhere/");
  assert_null(parts);
}

TESTS(test_parts_become_one_file, test_ranges_are_read, test_parts_are_read_back,
      test_what_is_not_finished_is_removed)
