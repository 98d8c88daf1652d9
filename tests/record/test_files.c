/* The files of a run: JSON Lines survive an incomplete line, summary.json has its keys, results are
   converted to text and back unchanged. */
#include <jansson.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"
#include "geotrain/link.h"

static const char *folder;

static void test_lines(void) {
  char text[4096];
  gt_record *record;
  must(gt_record_open(&record, folder, "a", false));
  must(gt_record_line(record, 0.25, "eval", "step", 'i', (int64_t)12, "loss", 'f', 0.1, "acc", 'f',
                      NAN, "model", 's', "le\"net5", "last", 'b', 1, "job", 'j', "{\"x\": [1, 2]}",
                      "none", 's', (char *)NULL, NULL));
  must(gt_record_line(record, 1e9, "end", "big", 'i', INT64_MAX, NULL));
  gt_record_close(record);
  const char *path = in_folder("a.jsonl");
  read_file(path, text, sizeof text);
  assert_string_equal(
      text, "{\"t\":0.25,\"event\":\"eval\",\"step\":12,\"loss\":0.1,\"acc\":null,\"model\":"
            "\"le\\\"net5\",\"last\":true,\"job\":{\"x\":[1,2]},"
            "\"none\":null}\n{\"t\":1000000000.0,\"event\":\"end\",\"big\":9223372036854775807}\n");
  must(gt_record_open(&record, folder, "a", false)); /* not appending */
  must_fail(gt_record_line(record, 0, "x", "bad", 'j', "{broken", NULL), GT_ERR_FAULT, "bad");
  must(gt_record_line(record, 0, "latin\xe9", NULL));
  gt_record_close(record);
  read_file(path, text, sizeof text);
  assert_string_equal(text, "{\"t\":0.0,\"event\":\"latin?\"}\n");
}

/* An incomplete line, as after a kill during a write, is removed when the file is opened for
   appending. */
static void test_torn_last_line_is_cut(void) {
  char long_torn[9001], text[16384];
  memset(long_torn, 'z', sizeof long_torn - 1);
  long_torn[sizeof long_torn - 1] = '\0';
  const char *torn[] = {"", "{\"t\":2,\"ev", "{", long_torn};
  static const char *const wholes[] = {"", "{\"t\":1}\n"};
  const char *path = in_folder("b.jsonl");
  for (int w = 0; w < 2; w++)
    for (int i = 0; i < 4; i++) {
      snprintf(text, sizeof text, "%s%s", wholes[w], torn[i]);
      write_text(path, text);
      gt_record *record;
      must(gt_record_open(&record, folder, "b", true));
      must(gt_record_line(record, 3, "on", NULL));
      gt_record_close(record);
      char want[128];
      snprintf(want, sizeof want, "%s{\"t\":3.0,\"event\":\"on\"}\n", wholes[w]);
      read_file(path, text, sizeof text);
      assert_string_equal(text, want);
    }
}

static void test_unwritable_places(void) {
  const char *nowhere = in_folder("nowhere");
  gt_record *record;
  gt_summary summary = {.job = "j"};
  must_fail(gt_record_open(&record, nowhere, "a", true), GT_ERR_CKPT, nowhere);
  assert_null(record);
  must_fail(gt_summary_write(nowhere, &summary), GT_ERR_CKPT, nowhere);
}

/* On a full disk a line is rejected as a whole: the file contains only complete lines. */
static int full_disk(void) {
  static char pad[6001];
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("gt", folder, "tmpfs", 0, "size=16k") != 0)
    return 77;
  memset(pad, 'p', sizeof pad - 1);
  gt_record *record;
  gt_summary summary = {.job = pad, .model = pad, .strategy = pad};
  int written = 0;
  if (gt_record_open(&record, folder, "full", false) != GT_OK) return 1;
  while (written < 10 && gt_record_line(record, written, "pad", "text", 's', pad, NULL) == GT_OK)
    written++;
  if (written == 0 || written == 10 || !strstr(gt_error_text(), "full.jsonl")) return 2;
  gt_record_close(record);
  if (gt_summary_write(folder, &summary) != GT_ERR_CKPT) return 3;
  char *text = gt_alloc(100000, 1);
  if (access(in_folder("summary.json"), F_OK) == 0) return 4;
  const size_t n = read_file(in_folder("full.jsonl"), text, 100000);
  int lines = 0;
  for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
  bool whole = lines == written && text[n - 1] == '\n';
  gt_free(text);
  return whole ? 0 : 5;
}

static void test_full_disk(void) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) _exit(full_disk());
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    print_message("a tmpfs may not be mounted here: skipped\n");
    skip();
  }
  assert_int_equal(status, 0);
}

static gt_region_result region_of(int i) {
  gt_region_result r = {.workers = 2 - i,
                        .steps = 1876,
                        .samples = 120064 + i,
                        .compute_s = 10.1,
                        .encode_s = 0.01,
                        .wan_wait_s = 1.0 / 3,
                        .local_wait_s = 2,
                        .idle_s = 0.5,
                        .wall_s = 13.5,
                        .update_s = 0.7,
                        .wire_s = 1.25,
                        .split_train_s = 0.0054,
                        .split_upload_s = 1e-4 / 3,
                        .split_aggregate_s = 0.0013,
                        .split_download_s = 0.0002,
                        .emulation_cpu_s = 0.02,
                        .ps_cpu_s = 1.5,
                        .test_accuracy = 0.8912,
                        .test_loss = 0.301,
                        .test_auc = i ? NAN : 0.9012345678901234,
                        .test_recall20 = i ? 0.5312345678901234 : NAN,
                        .test_mrr20 = i ? 0.1812345678901234 : NAN,
                        .train_loss = NAN,
                        .nonfinite = 3,
                        .warning = "it guesses",
                        .adapted = "nothing changed",
                        .codec = {"topk", 4000000, 62500 + i, 8000000, 0.125, 0.03125},
                        .earlier_starts = 3,
                        .lost_s = 12.5};
  snprintf(r.name, sizeof r.name, i ? "chongqing" : "shanghai");
  return r;
}

static gt_link_result link_of(int i) {
  gt_link_result l = {.kinds = {{"update", 118, INT64_C(4999990000), INT64_C(5000000000)},
                                {"ack", 12 + i, 0, 64 * (12 + i)}},
                      .bytes_sent = INT64_C(5000000000) + i,
                      .messages = 118,
                      .bytes_other = 1234,
                      .bytes_lost = 77,
                      .payload_bytes = 4999990000,
                      .bandwidth_bps_measured = i ? 0 : 98.7654321e6,
                      .latency_s_measured = i ? 0 : 0.025};
  snprintf(l.from, sizeof l.from, i ? "chongqing" : "shanghai");
  snprintf(l.to, sizeof l.to, i ? "shanghai" : "chongqing");
  return l;
}

/* Clears padding bytes, which a compiler need not copy. */
static void clear_padding(gt_region_result *r) {
  const size_t from = offsetof(gt_region_result, workers) + sizeof r->workers;
  memset((char *)r + from, 0, offsetof(gt_region_result, steps) - from);
}

static void test_result_round_trip(void) {
  gt_region_result region = region_of(0), back;
  gt_link_result links[2] = {link_of(0), link_of(1)}, links_back[2] = {0};
  size_t n = 0;
  char *text = gt_result_encode(&region, links, 2);
  must(gt_result_decode(text, strlen(text) + 1, &back, links_back, 2, &n));
  assert_int_equal(n, 2);
  assert_memory_equal(links, links_back, sizeof links);
  assert_true(isnan(back.train_loss));
  back.train_loss = region.train_loss;
  clear_padding(&region);
  clear_padding(&back);
  assert_memory_equal(&region, &back, sizeof region);
  gt_free(text);
  region = region_of(1); /* no AUC */
  text = gt_result_encode(&region, links, 2);
  must(gt_result_decode(text, strlen(text), &back, links_back, 2, &n));
  assert_true(isnan(back.test_auc) && back.test_recall20 == region.test_recall20 &&
              back.test_mrr20 == region.test_mrr20);

  /* too many links */
  assert_int_equal(gt_result_decode(text, strlen(text), &back, links_back, 1, &n), GT_ERR_FAULT);
  for (size_t cut = 0; cut < strlen(text); cut++)
    assert_int_equal(gt_result_decode(text, cut, &back, links_back, 2, &n), GT_ERR_FAULT);
  gt_free(text);
}

/* As many kinds as fit, with names of maximum length, and none at all. */
static void test_kinds_round_trip(void) {
  gt_region_result region = region_of(0), back;
  gt_link_result links[2] = {link_of(0), link_of(1)}, links_back[2];
  size_t n = 0;
  memset(links_back, 'x', sizeof links_back); /* old contents must be overwritten */
  memset(links[0].kinds, 0, sizeof links[0].kinds);
  for (int k = 0; k < GT_RESULT_KINDS; k++) {
    gt_kind_result *row = &links[1].kinds[k];
    *row = (gt_kind_result){
        .messages = INT64_C(9007199254740993) + k, .payload = k, .wire = INT64_MAX - k};
    snprintf(row->kind, sizeof row->kind, "zyxwvutsrqpo%03d", 900 - k);
  }
  char *text = gt_result_encode(&region, links, 2);
  must(gt_result_decode(text, strlen(text), &back, links_back, 2, &n));
  assert_memory_equal(links, links_back, sizeof links);
  gt_free(text);
}

/* `text` with the first `old` replaced. */
static char *altered(const char *text, const char *old, const char *new) {
  const char *at = strstr(text, old);
  if (!at) fail_msg("%s is not in %s", old, text);
  size_t size = strlen(text) + strlen(new) + 1;
  char *copy = gt_alloc(size, 1);
  snprintf(copy, size, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
  return copy;
}

static void test_improper_results_are_refused(void) {
  static const struct {
    const char *old, *new, *says;
  } cases[] = {
      {"\"steps\"", "\"stops\"", "'steps'"},
      {"\"update_s\":", "\"update\":", "'update_s'"},
      {"\"wire_s\":1.25", "\"wire_s\":\"1.25\"", "'wire_s'"},
      {"\"split\":{", "\"splits\":{", "'train_s'"},
      {"\"aggregate_s\":", "\"aggregate\":", "'aggregate_s'"},
      {"\"download_s\":0", "\"download_s\":true,\"x\":0", "'download_s'"},
      {"\"kinds\":{", "\"kind\":{", "'kinds'"},
      {"\"kinds\":{", "\"kinds\":[],\"x\":{", "'kinds'"},
      {"\"update\":{", "\"\":{", "named ''"},
      {"\"update\":{", "\"sixteen-letters!\":{", "sixteen-letters!"},
      {"\"messages\":118,\"payload_bytes\":4999990000,\"wire_bytes\"",
       "\"messages\":0,\"payload_bytes\":1,\"wire_bytes\"", "'update' without"},
      {"\"messages\":12,", "\"messages\":-12,", "'ack' without"},
      {"\"messages\":12,", "\"messages\":1.5,", "'messages'"},
      {"\"wire_bytes\":768", "\"wire_bytes\":null", "'wire_bytes'"},
      {"\"ack\":{", "\"ack\":7,\"pong\":{", "'messages'"},
      {"\"ack\":{", "\"update\":{", "not JSON"},
      {"\"ack\":{", "\"ack\":{\"k\":[}", "not JSON"},
  };
  gt_region_result region = region_of(0), back;
  gt_link_result link = link_of(0), link_back;
  size_t n = 0;
  char *text = gt_result_encode(&region, &link, 1), crowd[2048] = "";
  for (size_t i = 0; i < COUNT(cases); i++) {
    char *bad = altered(text, cases[i].old, cases[i].new);
    must_fail(gt_result_decode(bad, strlen(bad), &back, &link_back, 1, &n), GT_ERR_FAULT,
              cases[i].says);
    assert_int_equal(n, 0);
    gt_free(bad);
  }
  for (int k = 0; k < GT_RESULT_KINDS - 1; k++) /* with the two existing ones, one too many */
    snprintf(crowd + strlen(crowd), sizeof crowd - strlen(crowd),
             "\"k%d\":{\"messages\":1,\"payload_bytes\":0,\"wire_bytes\":64},", k);
  snprintf(crowd + strlen(crowd), sizeof crowd - strlen(crowd), "\"ack\":{");
  char *bad = altered(text, "\"ack\":{", crowd);
  must_fail(gt_result_decode(bad, strlen(bad), &back, &link_back, 1, &n), GT_ERR_FAULT,
            "at most 20");
  gt_free(bad);
  gt_free(text);
}

/* Every kind of message in a ledger has a unique name that is short enough, and all kinds fit. */
static void test_kind_names(void) {
  const unsigned kinds[] = {GT_MSG_UPDATE, GT_MSG_STATE,    GT_MSG_HELLO,      GT_MSG_ACK,
                            GT_MSG_PING,   GT_MSG_PONG,     GT_MSG_ROUND,      GT_MSG_WRITTEN,
                            GT_MSG_DONE,   GT_MSG_JOINED,   GT_MSG_BYE,        GT_MSG_REPORT,
                            GT_MSG_MODEL,  GT_MSG_STRATEGY, GT_MSG_ACTIVATION, GT_MSG_ACT_GRADIENT,
                            GT_MSG_ADAPT,  GT_MSG_MEMBERS,  GT_MSG_GROUP,      GT_MSG_SCORE};
  const size_t n = COUNT(kinds);
  size_t named = 0;
  for (size_t i = 0; i < n; i++) {
    assert_non_null(gt_record_kind_name(kinds[i]));
    assert_in_range(strlen(gt_record_kind_name(kinds[i])), 1,
                    sizeof((gt_kind_result *)0)->kind - 1);
    for (size_t j = 0; j < i; j++)
      assert_string_not_equal(gt_record_kind_name(kinds[i]), gt_record_kind_name(kinds[j]));
  }
  for (unsigned kind = 0; kind < 300; kind++) named += gt_record_kind_name(kind) != NULL;
  assert_int_equal(named, n);
  assert_in_range(named, 1, GT_RESULT_KINDS);
  assert_string_equal(gt_record_kind_name(GT_MSG_UPDATE), "update");
  assert_string_equal(gt_record_kind_name(GT_MSG_STATE), "state");
  assert_string_equal(gt_record_kind_name(GT_MSG_ACK), "ack");
  assert_string_equal(gt_record_kind_name(GT_MSG_MODEL), "model");
}

static void assert_keys(const json_t *object, const char *keys) {
  char list[512];
  size_t n = 0;
  snprintf(list, sizeof list, "%s", keys);
  for (char *key = strtok(list, " "); key; key = strtok(NULL, " "), n++)
    if (!json_object_get(object, key)) fail_msg("the key '%s' is missing", key);
  assert_int_equal(json_object_size(object), n);
}

static void test_summary(void) {
  gt_region_result regions[2] = {region_of(0), region_of(1)};
  gt_link_result links[2] = {link_of(0), link_of(1)};
  gt_summary s = {.job = "lenet",
                  .strategy = "asgd-ga",
                  .clock = "real",
                  .wall_s = 13.5,
                  .virtual_s = NAN,
                  .samples = 240129,
                  .samples_per_s = 17787.3,
                  .test_accuracy = 0.1,
                  .test_loss = INFINITY,
                  .test_auc = 0.75,
                  .test_recall20 = NAN,
                  .test_mrr20 = NAN,
                  .regions = regions,
                  .nregions = 2,
                  .links = links,
                  .nlinks = 2,
                  .version = "0.1.0",
                  .kernels = "conv=blas",
                  .precision = "f32",
                  .blas_core = "Zen",
                  .model = "lenet5",
                  .parameters = 61706,
                  .resumes = 1};
  memset(s.params_sha256, 'e', 64);
  must(gt_summary_write(folder, &s));
  const char *path = in_folder("summary.json");
  json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(root);
  assert_keys(root, "job strategy clock wall_s virtual_s samples samples_per_s test_accuracy "
                    "test_loss test_auc test_recall20 test_mrr20 params_sha256 regions links build "
                    "model parameters "
                    "resumes");
  for (size_t i = 0; i < 2; i++) {
    assert_keys(
        json_array_get(json_object_get(root, "regions"), i),
        "name workers steps samples compute_s wan_wait_s local_wait_s encode_s "
        "test_accuracy test_loss test_auc test_recall20 test_mrr20 idle_s wall_s "
        "train_loss emulation_cpu_s "
        "ps_cpu_s nonfinite warning adapted earlier_starts lost_s update_s wire_s split codec");
    assert_keys(json_array_get(json_object_get(root, "links"), i),
                "from to bytes_sent messages bytes_other bandwidth_bps_measured latency_s_measured "
                "payload_bytes bytes_lost kinds");
  }
  const json_t *region = w_find(root, "regions/1");
  assert_keys(w_find(region, "split"), "train_s upload_s aggregate_s download_s");
  assert_true(w_number(region, "split/train_s") == 0.0054);
  assert_true(w_number(region, "split/aggregate_s") == 0.0013);
  assert_true(w_number(region, "split/download_s") == 0.0002);
  assert_true(w_number(region, "update_s") == 0.7);
  assert_true(w_number(region, "wire_s") == 1.25);
  assert_true(w_number(region, "ps_cpu_s") == 1.5);
  assert_keys(w_find(root, "build"), "version kernels precision blas_core");
  assert_true(w_null(root, "virtual_s") && w_null(root, "test_loss"));
  assert_true(w_number(root, "test_accuracy") == 0.1);
  assert_true(w_number(root, "test_auc") == 0.75);
  assert_true(w_null(region, "test_auc")); /* not a task with two labels */
  assert_int_equal(json_integer_value(w_find(root, "samples")), 240129);
  assert_int_equal(json_string_length(w_find(root, "params_sha256")), 64);
  assert_true(json_integer_value(w_find(root, "links/0/bytes_sent")) == INT64_C(5000000000));
  assert_true(w_number(root, "links/0/bandwidth_bps_measured") == 98.7654321e6);
  assert_true(w_null(root, "links/1/latency_s_measured"));
  const json_t *kinds = w_find(root, "links/1/kinds");
  assert_keys(kinds, "update ack");
  assert_keys(w_find(kinds, "ack"), "messages payload_bytes wire_bytes");
  assert_int_equal(json_integer_value(w_find(kinds, "update/messages")), 118);
  assert_int_equal(json_integer_value(w_find(kinds, "ack/messages")), 13);
  assert_int_equal(json_integer_value(w_find(kinds, "ack/payload_bytes")), 0);
  assert_int_equal(json_integer_value(w_find(kinds, "ack/wire_bytes")), 832);
  json_decref(root);
  /* Regions with test sets of their own have scored the mean; these come back. */
  const gt_mean_result mean = {300, 0.75, 0.5, 0.875, NAN, NAN, 0};
  gt_summary_file *file;
  regions[1].mean = mean;
  must(gt_summary_write(folder, &s));
  root = json_load_file(path, 0, NULL);
  assert_keys(w_find(root, "regions/1/mean_model"),
              "samples test_accuracy test_loss test_auc test_recall20 test_mrr20");
  assert_null(json_object_get(w_find(root, "regions/0"), "mean_model"));
  json_decref(root);
  must(gt_summary_read(&file, folder));
  const gt_mean_result *back = &gt_summary_of(file)->regions[1].mean;
  assert_true(back->samples == 300 && back->accuracy == 0.75 && back->loss == 0.5 &&
              back->auc == 0.875 && isnan(back->recall20) && back->perplexity == 0);
  assert_true(gt_summary_of(file)->regions[0].mean.samples == 0);
  gt_summary_close(file);
  s.params_sha256[0] = '\0'; /* no mean model */
  s.virtual_s = 2.5;
  must(gt_summary_write(folder, &s));
  root = json_load_file(path, 0, NULL);
  assert_true(w_null(root, "params_sha256"));
  assert_true(w_number(root, "virtual_s") == 2.5);
  json_decref(root);
}

/* Plan and cost come back as written; null values stay unknown. */
static void test_plan_and_cost_come_back(void) {
  gt_region_result region = region_of(0);
  char ps[] = "PS of eu";
  char *missing[] = {ps};
  gt_cost_region costs[2] = {{"eu", 0.5, 0.25, 0.125}, {"us", 1, 0, 2}};
  const gt_cost_result cost = {.usd = 3.875,
                               .worker_usd = 1.5,
                               .ps_usd = 0.25,
                               .egress_usd = 2.125,
                               .machine_hours = 12.5,
                               .assumed = true,
                               .regions = costs,
                               .nregions = 2,
                               .missing = missing,
                               .nmissing = 1};
  const gt_plan_result plan = {.strategy = "sma",
                               .predicted = {110, NAN, 300, 5e9, 0.25, 4.65},
                               .measured = {100, 0.5, 400, 5e9, 0, 3.875},
                               .low_s = 90,
                               .high_s = 99.5};
  gt_summary s = w_summary(&region, 1);
  s.plan = &plan;
  s.cost = &cost;
  must(gt_summary_write(folder, &s));
  const char *path = in_folder("summary.json");
  json_t *root = json_load_file(path, 0, NULL);
  assert_keys(w_find(root, "plan"), "strategy made wall step samples_per_s wan_bytes waiting cost");
  assert_keys(w_find(root, "plan/wall"), "predicted measured error_percent low high within");
  assert_keys(w_find(root, "plan/cost"), "predicted measured error_percent");
  assert_true(w_number(root, "plan/wall/error_percent") == 10);
  assert_true(json_is_false(w_find(root, "plan/wall/within")));
  assert_true(w_number(root, "plan/samples_per_s/error_percent") == -25);
  assert_true(w_number(root, "plan/wan_bytes/error_percent") == 0);
  /* there is no measurement to compare with */
  assert_true(w_null(root, "plan/waiting/error_percent"));
  assert_true(w_null(root, "plan/step/predicted"));
  assert_true(w_null(root, "plan/made"));
  assert_keys(w_find(root, "cost"),
              "usd machine_usd worker_usd ps_usd egress_usd machine_hours assumed missing regions");
  assert_true(w_number(root, "cost/machine_usd") == 1.75);
  json_decref(root);
  gt_summary_file *file;
  must(gt_summary_read(&file, folder));
  const gt_plan_result *p = gt_summary_of(file)->plan;
  const gt_cost_result *c = gt_summary_of(file)->cost;
  assert_string_equal(p->strategy, "sma");
  assert_true(!p->made && p->low_s == 90 && p->high_s == 99.5 && isnan(p->predicted.step_s));
  assert_true(p->predicted.wall_s == 110 && p->predicted.samples_per_s == 300 &&
              p->predicted.wan_bytes == 5e9 && p->predicted.waiting == 0.25);
  assert_true(p->predicted.cost == 4.65);
  const gt_figures *m = &p->measured;
  assert_true(m->wall_s == 100 && m->step_s == 0.5 && m->samples_per_s == 400 &&
              m->wan_bytes == 5e9 && m->waiting == 0 && m->cost == 3.875);
  assert_true(c->usd == 3.875 && c->worker_usd == 1.5 && c->ps_usd == 0.25 &&
              c->egress_usd == 2.125 && c->machine_hours == 12.5 && c->assumed);
  assert_true(c->nregions == 2 && c->nmissing == 1 && c->regions[1].worker_usd == 1 &&
              c->regions[1].egress_usd == 2 && c->regions[0].ps_usd == 0.25);
  assert_string_equal(c->regions[1].name, "us");
  assert_string_equal(c->missing[0], "PS of eu");
  assert_null(gt_summary_of(file)->adapted);
  gt_summary_close(file);
  s.plan = NULL;
  s.cost = NULL;
  s.adapted = "nothing changed";
  must(gt_summary_write(folder, &s));
  must(gt_summary_read(&file, folder));
  assert_true(!gt_summary_of(file)->plan && !gt_summary_of(file)->cost);
  assert_string_equal(gt_summary_of(file)->adapted, "nothing changed");
  gt_summary_close(file);
}

/* Regions that have none are left out. */
static void test_adapted(void) {
  gt_region_result regions[3] = {
      {.adapted = "replica 1: a"}, {.workers = 1}, {.adapted = "replica 2: b"}};
  char *text = gt_adapted_text(regions, 3);
  assert_string_equal(text, "replica 1: a; replica 2: b");
  gt_free(text);
  text = gt_adapted_text(regions, 2);
  assert_string_equal(text, "replica 1: a");
  gt_free(text);
  assert_null(gt_adapted_text(regions + 1, 1));
}

/* summary.json of three regions under the virtual clock, without its own wall_s.  Real times
   (`noise`), the folder and the order of the reports differ in each call. */
static void virtual_summary(char *text, size_t size, const char *name, int noise) {
  static const char *const names[] = {"shanghai", "chongqing", "beijing"};
  char file[64];
  const char *dir = in_folder(name);
  gt_region_result regions[3];
  gt_link_result links[6];
  assert_int_equal(mkdir(dir, 0777), 0);
  for (int r = 0, n = 0; r < 3; r++) {
    regions[r] = region_of(r);
    snprintf(regions[r].name, sizeof regions[r].name, "%s", names[r]);
    regions[r].emulation_cpu_s = noise * 0.1 + r;
    regions[r].ps_cpu_s = noise * 7.5 + r;
    for (int p = 0, from = (r + noise) % 3; p < 3; p++) {
      if (p == from) continue;
      links[n] = link_of(0);
      links[n].bytes_sent = 10 * from + p;
      snprintf(links[n].from, sizeof links[n].from, "%s", names[from]);
      snprintf(links[n++].to, sizeof links[0].to, "%s", names[p]);
    }
  }
  gt_summary s = {.job = "lenet",
                  .strategy = "asgd",
                  .clock = "virtual",
                  .model = "lenet5",
                  .wall_s = 1.5 + noise,
                  .virtual_s = 123.25,
                  .samples_per_s = 100,
                  .test_accuracy = 0.5,
                  .test_loss = 1,
                  .params_sha256 = "ab",
                  .regions = regions,
                  .nregions = 3,
                  .links = links,
                  .nlinks = 6};
  must(gt_summary_write(dir, &s));
  snprintf(file, sizeof file, "%s/summary.json", name);
  read_file(in_folder(file), text, size);
  char *own = strstr(text, "\n  \"wall_s\"");
  assert_non_null(own);
  memmove(own, strchr(own + 1, '\n'), strlen(strchr(own + 1, '\n')) + 1);
}

static void test_virtual_summary_repeats(void) {
  static char first[32768], other[32768];
  virtual_summary(first, sizeof first, "v0", 0);
  for (int noise = 1; noise < 3; noise++) {
    virtual_summary(other, sizeof other, noise == 1 ? "v1" : "v2", noise);
    assert_string_equal(first, other);
  }
  json_t *root = json_loads(first, 0, NULL);
  assert_true(w_number(root, "virtual_s") == 123.25);
  for (size_t r = 0; r < 3; r++) {
    const json_t *region = json_array_get(w_find(root, "regions"), r);
    assert_true(w_null(region, "emulation_cpu_s") && w_null(region, "ps_cpu_s"));
    assert_true(w_number(region, "wall_s") == 13.5);
  }
  static const int want[] = {1, 2, 10, 12, 20, 21};
  for (size_t i = 0; i < 6; i++)
    assert_true(w_number(json_array_get(w_find(root, "links"), i), "bytes_sent") == want[i]);
  json_decref(root);
}

int main(void) {
  folder = in_folder("");
  return RUN_TESTS(NULL, NULL, test_lines, test_torn_last_line_is_cut, test_unwritable_places,
                   test_full_disk, test_result_round_trip, test_kinds_round_trip,
                   test_improper_results_are_refused, test_kind_names, test_adapted, test_summary,
                   test_plan_and_cost_come_back, test_virtual_summary_repeats);
}
