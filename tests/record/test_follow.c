/* Following a run through its files: incomplete lines, truncated and rewritten files, stops,
   resumes, the end; and the text lines for users. */
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "world.h"

static char folder[64];

static const char *at(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void put(const char *name, const char *mode, const char *text) {
  FILE *file = fopen(at(name), mode);
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int make_folder(void **unused) {
  (void)unused;
  snprintf(folder, sizeof folder, "follow-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **unused) {
  (void)unused;
  static const char *const names[] = {"east.jsonl",   "west.jsonl",    "new.jsonl",
                                      "summary.json", ".hidden.jsonl", "x.jsonl"};
  for (size_t i = 0; i < COUNT(names); i++) unlink(at(names[i]));
  return rmdir(folder);
}

/* ---- tails ---- */

typedef struct {
  char events[256];
  int anew;
} heard;

static void hear(void *ctx, const json_t *line) {
  heard *h = ctx;
  size_t used = strlen(h->events);
  snprintf(h->events + used, sizeof h->events - used, "%s ",
           json_string_value(json_object_get(line, "event")));
}

static void hear_anew(void *ctx) {
  ((heard *)ctx)->anew++;
}

static void expect(gt_tail *tail, gt_tail_found found, const char *events, int anew) {
  heard h = {{0}, 0};
  assert_int_equal(gt_tail_poll(tail, hear_anew, hear, &h), found);
  assert_string_equal(h.events, events);
  assert_int_equal(h.anew, anew);
}

static void test_tail(void **unused) {
  (void)unused;
  gt_tail *tail = gt_tail_create(at("x.jsonl"));
  expect(tail, GT_TAIL_ABSENT, "", 0);
  put("x.jsonl", "w", "");
  expect(tail, GT_TAIL_MORE, "", 0);
  expect(tail, GT_TAIL_SAME, "", 0);
  put("x.jsonl", "a", "{\"event\":\"a\"}\n{\"event\":\"b\"}\n{\"eve");
  expect(tail, GT_TAIL_MORE, "a b ", 0);
  put("x.jsonl", "a", "nt\":\"c\"");
  expect(tail, GT_TAIL_MORE, "", 0);
  put("x.jsonl", "a", "}\n");
  expect(tail, GT_TAIL_MORE, "c ", 0);
  /* An incomplete line from a kill is removed by the next start, which appends after the last
     complete line. */
  put("x.jsonl", "a", "{\"event\":\"torn");
  expect(tail, GT_TAIL_MORE, "", 0);
  struct stat is;
  assert_int_equal(stat(at("x.jsonl"), &is), 0);
  assert_int_equal(truncate(at("x.jsonl"), is.st_size - 14), 0);
  expect(tail, GT_TAIL_MORE, "", 0);
  put("x.jsonl", "a", "{\"event\":\"d\"}\nthis is no JSON\n[1]\n{\"event\":\"e\"}\n");
  expect(tail, GT_TAIL_MORE, "d e ", 0);
  gt_tail_close(tail);
}

/* A shorter file, one of the same length, a longer file: each is read from its beginning. */
static void test_tail_anew(void **unused) {
  (void)unused;
  gt_tail *tail = gt_tail_create(at("x.jsonl"));
  put("x.jsonl", "w", "{\"event\":\"a\"}\n{\"event\":\"b\"}\n");
  expect(tail, GT_TAIL_MORE, "a b ", 0);
  put("x.jsonl", "w", "{\"event\":\"c\"}\n");
  expect(tail, GT_TAIL_MORE, "c ", 1);
  put("x.jsonl", "w", "{\"event\":\"d\"}\n");
  struct utimbuf later = {time(NULL) + 5, time(NULL) + 5};
  utime(at("x.jsonl"), &later);
  expect(tail, GT_TAIL_MORE, "d ", 1);
  put("x.jsonl", "w", "{\"event\":\"e\"}\n{\"event\":\"f\"}\n{\"event\":\"g\"}\n");
  expect(tail, GT_TAIL_MORE, "e f g ", 1);
  /* Another file that begins with the same bytes. */
  put("new.jsonl", "w",
      "{\"event\":\"e\"}\n{\"event\":\"f\"}\n{\"event\":\"g\"}\n{\"event\":\"h\"}\n");
  char from[128];
  snprintf(from, sizeof from, "%s", at("new.jsonl"));
  assert_int_equal(rename(from, at("x.jsonl")), 0);
  expect(tail, GT_TAIL_MORE, "e f g h ", 1);
  gt_tail_close(tail);
}

static void test_tail_long_lines(void **unused) {
  (void)unused;
  gt_tail *tail = gt_tail_create(at("x.jsonl"));
  FILE *file = fopen(at("x.jsonl"), "w");
  fputs("{\"event\":\"a\"}\n", file);
  for (int i = 0; i < 200000; i++) fputc('z', file);
  fputs("\n{\"event\":\"b\"}\n", file);
  for (int i = 0; i < 20000; i++) fputs("{\"other\":1}\n", file);
  for (int i = 0; i < 70000; i++) fputc('z', file);
  fclose(file);
  heard h = {{0}, 0};
  assert_int_equal(gt_tail_poll(tail, hear_anew, hear, &h), GT_TAIL_MORE);
  assert_memory_equal(h.events, "a b ", 4);
  put("x.jsonl", "a", "\n{\"event\":\"c\"}\n");
  expect(tail, GT_TAIL_MORE, "c ", 0);
  gt_tail_close(tail);
}

/* ---- runs ---- */

#define START                                                                                      \
  "{\"t\":0.0,\"event\":\"start\",\"job\":\"drill\",\"region\":\"east\",\"lead\":true,"            \
  "\"workers\":1,\"clock\":\"real\",\"every_s\":10.0,"                                             \
  "\"round\":0,\"resumes\":0}\n"
#define OTHER                                                                                      \
  "{\"t\":0.0,\"event\":\"start\",\"job\":\"drill\",\"region\":\"west\",\"lead\":false,"           \
  "\"workers\":1,\"clock\":\"real\",\"every_s\":10.0,"                                             \
  "\"round\":0,\"resumes\":0}\n"
#define RESUMED                                                                                    \
  "{\"t\":12.0,\"event\":\"resumed\",\"job\":\"drill\",\"region\":\"east\",\"lead\":true,"         \
  "\"workers\":1,\"clock\":\"real\",\"every_s\":10.0,"                                             \
  "\"round\":3,\"resumes\":1}\n"
#define PROGRESS(t, epoch, done)                                                                   \
  "{\"t\":" #t ",\"event\":\"progress\",\"step\":150,\"samples\":2400,\"epoch\":" #epoch           \
  ",\"loss\":0.412,\"epochs\":6.0,\"done\":" #done                                                 \
  ",\"accuracy\":0.871,\"auc\":null,\"recall20\":null,\"mrr20\":null,\"samples_per_s\":41234.0,"   \
  "\"wan_bps\":12340000.0,\"waiting\":"                                                            \
  "0.04}\n"
#define LINE(epoch, left)                                                                          \
  "epoch " epoch                                                                                   \
  "/6  loss 0.412  acc 0.871  41.2 k samples/s  WAN 12.3 Mbit/s  waiting 4%  left " left

static void says(const gt_follow *f, const char *text) {
  char line[512];
  gt_follow_text(f, line, sizeof line, 400);
  assert_string_equal(line, text);
}

static void write_summary(int64_t resumes) {
  const gt_region_result regions[] = {w_region("east", 5), w_region("west", 5)};
  gt_link_result link = {
      .from = "east", .to = "west", .bytes_sent = 5000, .messages = 5, .payload_bytes = 4000};
  snprintf(link.kinds[0].kind, sizeof link.kinds[0].kind, "update");
  link.kinds[0].messages = 5;
  gt_summary s = w_summary(regions, 2);
  s.job = "drill";
  s.wall_s = 5.6;
  s.samples = 12800;
  s.samples_per_s = 2286;
  s.test_accuracy = 0.977;
  s.test_loss = 0.08;
  strcpy(s.params_sha256, "abc");
  s.links = &link;
  s.nlinks = 1;
  s.version = "0";
  s.kernels = "ref";
  s.precision = "f32";
  s.blas_core = "c";
  s.parameters = 61706;
  s.resumes = resumes;
  must(gt_summary_write(folder, &s));
}

static void test_run(void **unused) {
  (void)unused;
  gt_follow *f = gt_follow_create(folder);
  assert_int_equal(gt_follow_poll(f)->state, GT_RUN_NOTHING);
  says(f, "no record yet");
  put("west.jsonl", "w", OTHER PROGRESS(1, 1, 0.1)); /* not the lead: only a sign of activity */
  assert_int_equal(gt_follow_poll(f)->state, GT_RUN_NOTHING);
  put("east.jsonl", "w", START);
  const gt_run_view *v = gt_follow_poll(f);
  assert_int_equal(v->state, GT_RUN_RUNNING);
  assert_string_equal(v->job, "drill");
  says(f, "started, no progress yet");
  put("east.jsonl", "a", PROGRESS(10, 1, 0.2));
  gt_follow_poll(f);
  says(f, LINE("1.00", "-:--"));
  put("east.jsonl", "a", PROGRESS(20, 3, 0.6));
  assert_false(gt_follow_poll(f)->silent);
  says(f, LINE("3.00", "0:10")); /* 0.4 took 10 s, so the remaining 0.4 take 10 s */
  char narrow[64];
  gt_follow_text(f, narrow, sizeof narrow, 40);
  assert_string_equal(narrow, "epoch 3.00/6  loss 0.412  left 0:10");

  put("east.jsonl", "a",
      "{\"t\":21.0,\"event\":\"stopped\",\"code\":75,\"reason\":\"signal\",\"step\":160,\"round\":"
      "3}\n");
  v = gt_follow_poll(f);
  assert_int_equal(v->state, GT_RUN_STOPPED);
  assert_int_equal(v->code, 75);
  assert_int_equal(v->round, 3);
  says(f, "stopped by a signal at step 160, checkpoint of round 3 written");
  /* Its time goes back to that of the checkpoint; the estimate of the time left uses only this
     start. */
  put("east.jsonl", "a", RESUMED PROGRESS(12, 1, 0.2) PROGRESS(17, 3, 0.6));
  v = gt_follow_poll(f);
  assert_int_equal(v->state, GT_RUN_RUNNING);
  assert_int_equal(v->starts, 2);
  says(f, LINE("3.00", "0:05") "  resumed 1x");

  /* A summary of an earlier start does not count for this one. */
  write_summary(0);
  assert_int_equal(gt_follow_poll(f)->state, GT_RUN_RUNNING);
  put("east.jsonl", "a", "{\"t\":30.0,\"event\":\"complete\",\"step\":400}\n");
  assert_int_equal(gt_follow_poll(f)->state, GT_RUN_ENDING);
  assert_null(gt_follow_summary(f));
  says(f, "trained; last evaluation and checkpoint");
  write_summary(1);
  assert_int_equal(gt_follow_poll(f)->state, GT_RUN_DONE);
  says(f, "done: 5.6 s  12.8 k samples  accuracy 0.9770  resumed 1x");
  assert_int_equal(gt_follow_summary(f)->nregions, 2);
  assert_string_equal(gt_follow_summary(f)->links[0].kinds[0].kind, "update");
  /* The run is resumed to be longer. */
  put("east.jsonl", "a", RESUMED);
  assert_int_equal(gt_follow_poll(f)->state, GT_RUN_RUNNING);
  assert_null(gt_follow_summary(f));
  gt_follow_close(f);
}

static void test_limit_and_anew(void **unused) {
  (void)unused;
  gt_follow *f = gt_follow_create(folder);
  put("east.jsonl", "w",
      START PROGRESS(10, 1, 0.2) "{\"t\":21.0,\"event\":\"stopped\",\"code\":6,\"reason\":"
                                 "\"limit\",\"step\":9,\"round\":1}\n");
  assert_int_equal(gt_follow_poll(f)->code, 6);
  says(f, "ended by a limit (limits.nonfinite or limits.wan_bytes) at step 9, checkpoint of round "
          "1 written");
  /* The record of another run in the same place. */
  put("east.jsonl", "w", START);
  const gt_run_view *v = gt_follow_poll(f);
  assert_int_equal(v->state, GT_RUN_RUNNING);
  assert_int_equal(v->starts, 1);
  assert_false(v->has_progress);
  gt_follow_close(f);
}

/* A record written some time ago: the file's modification time is used, since no process saw the
   write. */
static void test_silence(void **unused) {
  (void)unused;
  put("east.jsonl", "w", START PROGRESS(10, 1, 0.2));
  struct utimbuf before = {time(NULL) - 45, time(NULL) - 45};
  utime(at("east.jsonl"), &before);
  gt_follow *f = gt_follow_create(folder);
  const gt_run_view *v = gt_follow_poll(f);
  char line[512], want[512];
  assert_true(v->silent);
  assert_true(v->quiet_s > 43 && v->quiet_s < 60);
  snprintf(want, sizeof want, "no activity for %.0f s  %s", v->quiet_s, LINE("1.00", "-:--"));
  gt_follow_text(f, line, sizeof line, 400);
  assert_string_equal(line, want);
  put("west.jsonl", "w", OTHER); /* of any region */
  assert_false(gt_follow_poll(f)->silent);
  gt_follow_close(f);
}

/* ---- regions ---- */

#define REGION(t, step, samples, epoch, compute, wait, wan)                                        \
  "{\"t\":" #t ",\"event\":\"progress\",\"step\":" #step ",\"samples\":" #samples                  \
  ",\"epoch\":" #epoch ",\"loss\":0.5,\"compute_s\":" #compute ",\"wait_s\":" #wait                \
  ",\"wan_wait_s\":" #wan "}\n"

static void region_says(const gt_region_view *v, const char *text) {
  char line[512];
  gt_region_text(v, line, sizeof line, 6, 400, false);
  assert_string_equal(line, text);
}

static void test_regions(void **unused) {
  (void)unused;
  size_t n;
  gt_follow *f = gt_follow_create(folder);
  put("west.jsonl", "w", OTHER REGION(0, 0, 0, 0, 0, 0, 0));
  gt_follow_poll(f);
  const gt_region_view *v = gt_follow_regions(f, &n)[0];
  assert_int_equal(n, 1);
  region_says(
      v,
      "  west   [....................]   -   loss 0.5          -/s  waits: WAN   - , local   - ");
  put("west.jsonl", "a", REGION(10, 100, 6400, 3, 8, 2, 1) REGION(20, 200, 19200, 4.5, 10, 10, 5));
  put("east.jsonl", "w", START PROGRESS(10, 1, 0.2));
  gt_follow_poll(f);
  v = gt_follow_regions(f, &n)[1]; /* by name, whatever the order in which files appear */
  assert_int_equal(n, 2);
  assert_true(gt_follow_regions(f, &n)[0]->lead);
  /* Of the last interval: 12800 samples in 10 s; 2 s of computing, 8 of waiting, 4 for the WAN. */
  region_says(
      v,
      "  west   [###############.....]  75%  loss 0.5     1.28 k/s  waits: WAN  40%, local  40%");
  char line[512];
  gt_region_text(v, line, sizeof line, 0, 400, true);
  must_contain(line, "[\033[32m###############\033[0m.....");
  must_contain(line, "WAN \033[33m 40%\033[0m,");
  /* A terminal of 80 columns shows 79. */
  gt_region_text(v, line, sizeof line, 8, 80, false);
  assert_string_equal(
      line, "  west     [######...]  75%  loss 0.5     1.28 k/s  waits: WAN  40%, local  40%");
  assert_int_equal(strlen(line), 79);
  gt_region_text(v, line, sizeof line, 30, 80, false);
  must_contain(line, " []  75%  loss");
  put("west.jsonl", "a", "{\"t\":21.0,\"event\":\"done\",\"step\":400,\"samples\":25600}\n");
  gt_follow_poll(f);
  assert_true(v->done == 1 && v->trained);
  region_says(
      v,
      "  west   [####################] 100%  loss 0.5     trained   waits: WAN  40%, local  40%");
  char *text = gt_follow_json(f, "a run", -1, "the line");
  json_t *root = json_loads(text, 0, NULL);
  assert_true(w_null(root, "code"));
  assert_true(w_number(root, "regions/1/wan_waiting") == 0.4);
  assert_true(w_number(root, "done") == 0.2);
  json_decref(root);
  gt_free(text);
  put("west.jsonl", "w", OTHER); /* another run in the same place */
  gt_follow_poll(f);
  assert_true(isnan(v->loss) && !v->trained && v->samples == 0);
  gt_follow_close(f);
}

#define PHASES(a, b)                                                                               \
  "{\"event\":\"phases\",\"step\":1,\"workers\":[{\"transfer_s\":" #a "},{\"transfer_s\":" #b      \
  "}]}\n"

/* In a pipeline the waits for links are part of the WAN's, as in the summary. */
static void test_waits_of_pipelines(void **unused) {
  (void)unused;
  size_t n;
  gt_follow *f = gt_follow_create(folder);
  put("east.jsonl", "w", START REGION(10, 100, 6400, 3, 8, 2, 1) PHASES(0.5, 0.5));
  put("east.jsonl", "a", REGION(20, 200, 9600, 4.5, 10, 10, 3) PHASES(3, 2));
  gt_follow_poll(f);
  /* 2 s of computing, 8 of waiting: 2 held for the WAN, and 4 of transfer. */
  const gt_region_view *v = gt_follow_regions(f, &n)[0];
  assert_true(fabs(v->wan_waiting - 0.6) < 1e-9 && fabs(v->local_waiting - 0.2) < 1e-9);
  /* The transfers of a step that has not ended: no wait is more than all waits. */
  put("east.jsonl", "a", REGION(30, 300, 12800, 6, 14, 11, 3) PHASES(6, 4));
  gt_follow_poll(f);
  assert_true(fabs(v->wan_waiting - 0.2) < 1e-9 && v->local_waiting == 0);
  gt_follow_close(f);
}

/* ---- summaries ---- */

static void test_summary_comes_back(void **unused) {
  (void)unused;
  gt_summary_file *file;
  must_fail(gt_summary_read(&file, folder), GT_ERR_CKPT, "summary.json");
  write_summary(2);
  char *texts[2] = {0};
  must(gt_summary_read(&file, folder));
  /* Written again, it gives the same file. */
  for (int i = 0; i < 2; i++) {
    json_t *root = json_load_file(at("summary.json"), 0, NULL);
    texts[i] = json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    must(gt_summary_write(folder, gt_summary_of(file)));
  }
  assert_string_equal(texts[0], texts[1]);
  free(texts[0]);
  free(texts[1]);
  gt_summary_close(file);
  put("summary.json", "w", "{\"regions\": [{\"name\": \"east\"}]}");
  must_fail(gt_summary_read(&file, folder), GT_ERR_CKPT, "workers");
  put("summary.json", "w", "{\"regions\": [");
  assert_int_equal(gt_summary_read(&file, folder), GT_ERR_CKPT);
  gt_summary_close(NULL);
}

/* ---- boards ---- */

static void test_board_in_place(void **unused) {
  (void)unused;
  char *text;
  FILE *to = open_text(&text);
  gt_board_line a = {.text = "one"}, b = {.text = "two"}, none = {.text = ""},
                *lines[] = {&a, &none, &b};
  gt_board *board = gt_board_create(to, GT_LIVE_LINE);
  gt_board_show(board, lines, 3);
  gt_board_show(board, lines, 3); /* nothing new */
  snprintf(b.text, sizeof b.text, "%0100d", 0);
  gt_board_show(board, lines, 3);
  /* Colors take no columns, and end with the line. */
  snprintf(b.text, sizeof b.text, "\033[32m%0100d\033[0m", 0);
  gt_board_show(board, lines, 3);
  gt_board_close(board);
  fclose(to);
  char want[512];
  snprintf(
      want, sizeof want,
      "\rone\033[K\n\rtwo\033[K\033[J\033[1A\rone\033[K\n\r%079d\033[K\033[J\033[1A\rone\033[K\n\r"
      "\033[32m%079d\033[0m\033[K\033[J\n",
      0, 0);
  assert_string_equal(text, want);
  free(text);
}

/* 24 rows if there is no terminal. */
static void test_board_of_many(void **unused) {
  (void)unused;
  char *text;
  size_t rows = 1;
  FILE *to = open_text(&text);
  gt_board_line *all = GT_NEW_ARRAY(gt_board_line, 40), *lines[40];
  for (int i = 0; i < 40; i++) {
    lines[i] = &all[i];
    snprintf(all[i].text, sizeof all[i].text, "run%d", i);
    all[i].over = i % 10 == 0;
  }
  gt_board *board = gt_board_create(to, GT_LIVE_LINE);
  gt_board_show(board, lines, 40);
  fflush(to);
  for (const char *c = text; *c; c++) rows += *c == '\n';
  assert_int_equal(rows, 23);
  assert_null(strstr(text, "run10"));
  must_contain(text, "run24");
  assert_null(strstr(text, "run25"));
  must_contain(text, "and 18 more runs; 4 of 40 have ended");
  gt_board_close(board);
  gt_free(all);
  fclose(to);
  free(text);
}

static void test_board_in_a_log(void **unused) {
  (void)unused;
  char *text;
  FILE *to = open_text(&text);
  gt_board_line a = {.text = "one", .phase = 1, .every_s = 0.05},
                b = {.text = "two", .every_s = 1000}, *lines[] = {&a, &b};
  gt_board *board = gt_board_create(to, GT_LIVE_LOG);
  gt_board_show(board, lines, 2);
  gt_board_show(board, lines, 2);
  snprintf(a.text, sizeof a.text, "one more");
  gt_board_show(board, lines, 2); /* too soon */
  a.phase = 2;
  gt_board_show(board, lines, 2); /* changed */
  gt_sleep(GT_SECOND / 10);
  gt_board_show(board, lines, 2); /* already printed */
  snprintf(a.text, sizeof a.text, "again");
  snprintf(b.text, sizeof b.text, "not yet");
  gt_board_show(board, lines, 2);
  gt_board_close(board);
  fclose(to);
  assert_string_equal(text, "one\ntwo\none more\nagain\n");
  free(text);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(test_tail),
      IN_FOLDER(test_tail_anew),
      IN_FOLDER(test_tail_long_lines),
      IN_FOLDER(test_run),
      IN_FOLDER(test_limit_and_anew),
      IN_FOLDER(test_silence),
      IN_FOLDER(test_regions),
      IN_FOLDER(test_waits_of_pipelines),
      IN_FOLDER(test_summary_comes_back),
      cmocka_unit_test(test_board_in_place),
      cmocka_unit_test(test_board_of_many),
      cmocka_unit_test(test_board_in_a_log),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
