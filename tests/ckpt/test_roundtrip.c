/* Checkpoints are read back as written: all types, empty items, large items, long job texts; other
   programs can open the files. */
#include "fixture.h"

static void test_every_type_and_empty_items(void) {
  char path[256];
  gt_ckpt_writer *writer;
  must(gt_ckpt_writer_create(&writer, in_folder(""), "shanghai"));
  must(write_round(writer, 1));
  gt_status status;
  assert_int_equal(gt_ckpt_poll(writer, &status), GT_CKPT_IDLE);
  must(write_round(writer, 2));
  gt_ckpt_writer_close(writer);
  assert_true(holds_round(gt_ckpt_path(path, sizeof path, in_folder(""), 1, "shanghai"), 1));
  assert_true(holds_round(gt_ckpt_path(path, sizeof path, in_folder(""), 2, "shanghai"), 2));
  assert_false(holds_round(path, 1)); /* the comparison can fail */
}

static void test_close_waits_and_write_while_busy_is_refused(void) {
  char path[256];
  static sample s;
  gt_ckpt_writer *writer;
  sample_open(&s, 5);
  must(gt_ckpt_writer_create(&writer, in_folder(""), "shanghai"));
  must(gt_ckpt_write(writer, &s.info, &s.state));
  /* a write is pending, or its result has not been polled */
  assert_int_equal(gt_ckpt_write(writer, &s.info, &s.state), GT_ERR_FAULT);
  gt_ckpt_writer_close(writer);
  sample_close(&s);
  assert_true(holds_round(gt_ckpt_path(path, sizeof path, in_folder(""), 5, "shanghai"), 5));
}

static void test_large_state_and_long_job(void) {
  size_t n = 3000000, text = 300000;
  float *numbers = GT_NEW_ARRAY(float, n);
  char *yaml = gt_alloc(text + 1, 1), path[256];
  for (size_t i = 0; i < n; i++) numbers[i] = (float)i;
  memset(yaml, 'y', text);
  gt_state state = {0}, back;
  gt_state_add(&state, "", "big", GT_TYPE_F32, numbers, n);
  gt_ckpt_info info = {.round = 7, .job_yaml = yaml, .region = "r"}, read;
  gt_ckpt_writer *writer;
  gt_status status;
  must(gt_ckpt_writer_create(&writer, in_folder(""), "r"));
  must(gt_ckpt_write(writer, &info, &state));
  gt_ckpt_progress progress;
  while ((progress = gt_ckpt_poll(writer, &status)) == GT_CKPT_BUSY) usleep(200);
  assert_int_equal(progress, GT_CKPT_DONE);
  assert_int_equal(status, GT_OK);
  gt_ckpt_writer_close(writer);
  must(gt_ckpt_read(gt_ckpt_path(path, sizeof path, in_folder(""), 7, "r"), &read, &back));
  assert_string_equal(read.job_yaml, yaml);
  assert_int_equal(back.n, 1);
  assert_int_equal(back.items[0].count, n);
  assert_memory_equal(back.items[0].data, numbers, n * sizeof *numbers);
  gt_state_close(&back);
  gt_ckpt_info_close(&read);
  gt_state_close(&state);
  gt_free(numbers);
  gt_free(yaml);
}

/* A name that is both a dataset and a folder cannot be written: the error names it, and the writer
   still works afterwards. */
static void test_clashing_names_are_refused(void) {
  double one = 1;
  gt_state state = {0};
  gt_state_add(&state, "", "a", GT_TYPE_F64, &one, 1);
  gt_state_add(&state, "a/", "b", GT_TYPE_F64, &one, 1);
  gt_ckpt_info info = {.round = 8};
  gt_ckpt_writer *writer;
  must(gt_ckpt_writer_create(&writer, in_folder(""), "shanghai"));
  must_fail(gt_ckpt_write(writer, &info, &state), GT_ERR_CKPT, "a/b");
  must(write_round(writer, 9));
  gt_ckpt_writer_close(writer);
  gt_state_close(&state);
}

/* The same state always gives the same bytes. */
static void test_bytes_depend_on_the_state_only(void) {
  char path[2][256];
  unsigned char bytes[2][100000];
  size_t size[2];
  for (int i = 0; i < 2; i++) {
    const char *run = in_folder(i ? "same1" : "same0");
    gt_ckpt_writer *writer;
    must(gt_ckpt_writer_create(&writer, run, "shanghai"));
    if (i) sleep(1);
    must(write_round(writer, 4));
    gt_ckpt_writer_close(writer);
    FILE *file = fopen(gt_ckpt_path(path[i], sizeof path[i], run, 4, "shanghai"), "r");
    assert_non_null(file);
    size[i] = fread(bytes[i], 1, sizeof bytes[i], file);
    fclose(file);
  }
  assert_true(size[0] > 4 * PARAMS && size[0] < sizeof bytes[0]);
  assert_int_equal(size[0], size[1]);
  assert_memory_equal(bytes[0], bytes[1], size[0]);
  /* The superblock records its position behind the user block: its base address, bytes 24 to 31, is
     512. */
  static const unsigned char base[8] = {0, 2};
  assert_memory_equal(bytes[0] + 512 + 24, base, 8);
}

/* h5dump finds the image after the user block. */
static void test_h5dump_reads_it(void) {
  char path[256], command[512], line[256];
  bool params = false, region = false;
  if (system("command -v h5dump >/dev/null 2>&1") != 0) {
    print_message("h5dump is not installed: skipped\n");
    skip();
  }
  snprintf(command, sizeof command, "h5dump -A %s 2>&1",
           gt_ckpt_path(path, sizeof path, in_folder(""), 1, "shanghai"));
  FILE *dump = popen(command, "r");
  while (fgets(line, sizeof line, dump)) {
    if (strstr(line, "DATASET \"params\"")) params = true;
    if (strstr(line, "\"shanghai\"")) region = true;
  }
  assert_int_equal(pclose(dump), 0);
  assert_true(params && region);
}

static void test_rounds_and_prune(void) {
  const char *run = in_folder("rounds");
  char path[256];
  int64_t rounds[4];
  gt_ckpt_writer *writer;
  assert_int_equal(gt_ckpt_rounds(run, "shanghai", rounds, 4), 0);
  must(gt_ckpt_writer_create(&writer, run, "shanghai"));
  static const int64_t written[] = {10, 2, 0, 33};
  for (int i = 0; i < 4; i++) must(write_round(writer, written[i]));
  /* Unknown names and files of another region. */
  static const char *const foreign[] = {
      "ckpt/notes", "ckpt/002",           "ckpt/-1", "ckpt/99999999999999999999", "ckpt/7",
      "ckpt/44",    "ckpt/44/shanghai.h5"};
  for (int i = 0; i < 7; i++) {
    snprintf(path, sizeof path, "%s/%s", run, foreign[i]);
    assert_int_equal(mkdir(path, 0777), 0);
  }
  snprintf(path, sizeof path, "%s/ckpt/2/chongqing.h5", run);
  fclose(fopen(path, "w"));
  snprintf(path, sizeof path, "%s/ckpt/12", run);
  fclose(fopen(path, "w"));
  assert_int_equal(gt_ckpt_rounds(run, "shanghai", rounds, 4), 4);
  static const int64_t ascending[] = {0, 2, 10, 33};
  assert_memory_equal(rounds, ascending, sizeof ascending);
  assert_int_equal(gt_ckpt_rounds(run, "shanghai", rounds, 2), 2); /* the newest */
  assert_memory_equal(rounds, ascending + 2, 2 * sizeof *rounds);

  gt_ckpt_prune(writer, 10, 2);
  assert_int_equal(gt_ckpt_rounds(run, "shanghai", rounds, 4), 3);
  assert_memory_equal(rounds, ascending + 1, 3 * sizeof *rounds);
  gt_ckpt_prune(writer, 10, -1);
  assert_int_equal(gt_ckpt_rounds(run, "shanghai", rounds, 4), 2);
  assert_memory_equal(rounds, ascending + 2, 2 * sizeof *rounds);
  assert_int_equal(gt_ckpt_rounds(run, "chongqing", rounds, 4), 1);
  snprintf(path, sizeof path, "%s/ckpt/0", run);
  assert_int_not_equal(access(path, F_OK), 0); /* the empty folder is gone */
  assert_true(holds_round(gt_ckpt_path(path, sizeof path, run, 33, "shanghai"), 33));
  gt_ckpt_writer_close(writer);
}

static void write_final(const char *run, const char *region, int64_t round) {
  static sample s;
  gt_ckpt_writer *writer;
  gt_status status;
  sample_open(&s, round);
  s.info.mean_of = region ? 1 : 3;
  memset(s.info.params_sha256, 'b', 64);
  must(gt_ckpt_write_final_model(&writer, run, region, &s.info, &s.state));
  memset(s.params, 0, sizeof s.params); /* the writer has its own copy */
  sample_close(&s);
  while (gt_ckpt_poll(writer, &status) != GT_CKPT_DONE) usleep(200);
  gt_ckpt_writer_close(writer);
  assert_int_equal(status, GT_OK);
}

/* Final models: replaced atomically, listed with the other models, removed with their temporary
   files. */
static void test_final_models(void) {
  const char *run = in_folder("final");
  char path[256], begun[256], text[256];
  gt_ckpt_writer *writer;
  gt_ckpt_info info;
  gt_state state;
  must(gt_ckpt_writer_create(&writer, run, "shanghai"));
  assert_string_equal(gt_ckpt_list(text, sizeof text, run), "nothing");
  must(write_round(writer, 2));
  must(write_round(writer, 10));
  write_final(run, NULL, 4);
  write_final(run, NULL, 5);
  write_final(run, "shanghai", 6);
  assert_true(holds_round(gt_ckpt_final_model_path(path, sizeof path, run, NULL), 5));
  must(gt_ckpt_read(path, &info, &state));
  assert_int_equal(info.mean_of, 3);
  assert_int_equal(strlen(info.params_sha256), 64);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  assert_string_equal(gt_ckpt_list(text, sizeof text, run),
                      "final-shanghai.h5, final.h5, ckpt/10/shanghai.h5, ckpt/2/shanghai.h5");

  snprintf(begun, sizeof begun, "%s/.final.h5.tmp-77", run);
  fclose(fopen(begun, "w"));
  gt_ckpt_remove_final_model(run, NULL);
  assert_int_not_equal(access(path, F_OK), 0);
  assert_int_not_equal(access(begun, F_OK), 0);
  assert_true(holds_round(gt_ckpt_final_model_path(path, sizeof path, run, "shanghai"), 6));
  gt_ckpt_remove_final_model(run, "shanghai");
  assert_string_equal(gt_ckpt_list(text, sizeof text, run),
                      "ckpt/10/shanghai.h5, ckpt/2/shanghai.h5");
  for (int64_t round = 11; round < 19; round++) must(write_round(writer, round));
  must_contain(gt_ckpt_list(text, sizeof text, run), "ckpt/11/shanghai.h5 and 2 more");
  gt_ckpt_writer_close(writer);
}

TESTS(test_every_type_and_empty_items, test_close_waits_and_write_while_busy_is_refused,
      test_large_state_and_long_job, test_clashing_names_are_refused,
      test_bytes_depend_on_the_state_only, test_h5dump_reads_it, test_rounds_and_prune,
      test_final_models)
