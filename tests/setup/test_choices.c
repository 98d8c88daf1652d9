/* ranks: 3 */
/* How products are computed: the source of the choice, the same choice on identical machines, and
   no measurement where it is not allowed. */
#include "world.h"

#define REGIONS "[{name: a, ranks: 3}]"
#define LAYERS  5 /* of LeNet-5 */

static gt_run run;
static gt_choices written; /* contents of the files: for every pass the last possible method */

static gt_graph_spec spec_of(const gt_job *job) {
  gt_graph_spec spec = gt_graph_spec_of(job);
  spec.shape = (gt_sample_shape){.h = 28, .w = 28, .c = 1, .classes = 10};
  spec.kernels = gt_kernels_find("auto");
  return spec;
}

static gt_status open_choices(const gt_setup_options *options, const char *choices,
                              const char *kernels) {
  char train[512];
  snprintf(train, sizeof train, "choices: %s, kernels: %s", choices, kernels);
  w_begin(&run, options, REGIONS, "path: none.h5", train);
  run.batch = 8;
  const gt_graph_spec spec = spec_of(run.job);
  return gt_setup_open_choices(&run, &spec);
}

static void opened(const gt_setup_options *options, const char *choices, const char *kernels,
                   const char *how) {
  must(open_choices(options, choices, kernels));
  assert_string_equal(run.choices_how, how);
}

static void end(void) {
  gt_setup_close(&run);
}

/* Returns the number of machines in the region's text. */
static int machines(void) {
  int n = 0;
  for (const char *at = run.choices_text; (at = strstr(at, "machine ")); at++)
    n += at == run.choices_text || at[-1] == '\n';
  return n;
}

static void check_by_rule(void) {
  assert_int_equal(run.choices.n, 0);
  assert_null(run.choices_text);
  end();
}

/* Checks that all ranks of the region, including the PS, have the same methods and text. */
static void check_alike(void) {
  assert_int_equal(run.choices.n, LAYERS);
  for (size_t i = 0; i < LAYERS; i++) {
    gt_algorithm algorithms[GT_PASSES];
    memcpy(algorithms, run.choices.items[i].algorithms, sizeof algorithms);
    gt_peers_share(w_world, 1, algorithms, sizeof algorithms, "rank 1", W_LIMIT_S);
    assert_memory_equal(algorithms, run.choices.items[i].algorithms, sizeof algorithms);
  }
  char hash[GT_SHA256_HEX], of_ps[GT_SHA256_HEX];
  gt_sha256_hex(run.choices_text, strlen(run.choices_text), hash);
  memcpy(of_ps, hash, sizeof of_ps);
  gt_peers_share(w_world, 0, of_ps, sizeof of_ps, "the PS", W_LIMIT_S);
  assert_string_equal(hash, of_ps);
}

static void check_as_written(void) {
  assert_int_equal(run.choices.n, LAYERS);
  for (size_t i = 0; i < LAYERS; i++) {
    const gt_choice *found = gt_choices_find(&run.choices, &written.items[i].layer, 8);
    assert_non_null(found);
    assert_memory_equal(found->algorithms, written.items[i].algorithms, sizeof found->algorithms);
  }
  check_alike();
  end();
}

/* ---- by rule --------------------------------------------------------------------------------- */

static void test_by_rule(void) {
  const gt_setup_options virtual = {.virtual_clock = true};
  opened(NULL, "rule", "auto", "rule");
  check_by_rule();
  opened(NULL, "measure", "blas", "rule"); /* this kernel table has only one method */
  check_by_rule();
  opened(&virtual, "measure", "auto", "rule"); /* measured choices differ from run to run */
  check_by_rule();
}

/* ---- by measuring ---------------------------------------------------------------------------- */

static void test_one_measures_for_its_kind(void) {
  opened(NULL, "measure", "auto", "measured");
  assert_int_equal(machines(), 1);
  assert_true(run.choices.seconds > 0 ? w_rank == 1 : w_rank != 1);
  check_alike();
  end();
}

/* Ranks with different precisions are of different kinds, even on identical machines. */
static void test_kinds(void) {
  w_begin(&run, NULL, REGIONS, "path: none.h5", "choices: measure");
  run.batch = 8;
  run.precision = w_rank == 2 ? GT_BF16 : GT_F32;
  const gt_graph_spec spec = spec_of(run.job);
  must(gt_setup_open_choices(&run, &spec));
  assert_int_equal(machines(), 2);
  assert_true(run.choices.seconds > 0 ? w_rank != 0 : w_rank == 0);
  end();
}

/* ---- from a file ----------------------------------------------------------------------------- */

static void test_a_file(void) {
  const gt_setup_options virtual = {.virtual_clock = true};
  opened(NULL, in_folder("choices"), "auto", "file");
  check_as_written();
  opened(&virtual, in_folder("choices"), "auto", "file");
  check_as_written();
}

/* A file for another machine, or without one of the layers, can be used if measuring is allowed. */
static void test_a_file_that_does_not_cover(void) {
  const char *const names[] = {"foreign", "short"};
  const gt_setup_options virtual = {.virtual_clock = true};
  for (size_t i = 0; i < 2; i++) {
    opened(NULL, in_folder(names[i]), "auto", "measured");
    check_alike();
    end();
    must_fail(open_choices(&virtual, in_folder(names[i]), "auto"), GT_ERR_JOB,
              "and nothing is measured under --clock virtual");
    end();
  }
}

static void test_a_file_that_cannot_be(void) {
  must_fail(open_choices(NULL, in_folder("nowhere"), "auto"), GT_ERR_JOB,
            "nowhere cannot be opened: No such file or directory");
  end();
  must_fail(open_choices(NULL, in_folder("malformed"), "auto"), GT_ERR_JOB, "malformed, line ");
  end();
}

/* ---- from a checkpoint ----------------------------------------------------------------------- */

static void test_a_checkpoint(void) {
  const char *folder = in_folder("run");
  gt_setup_options options = {.run_dir = folder, .resume = GT_RESUME_AUTO};
  opened(&options, "measure", "auto", "checkpoint");
  check_as_written();
  options.resume_round = 1; /* has no choices stored */
  opened(&options, "measure", "auto", "measured");
  end();
  options.resume_round = 0;
  options.resume = GT_RESUME_NO;
  opened(&options, "measure", "auto", "measured");
  end();
}

/* A file named by the job takes precedence over a checkpoint. */
static void test_a_file_at_a_resume(void) {
  const char *folder = in_folder("run");
  const gt_setup_options options = {.run_dir = folder, .resume = GT_RESUME_YES};
  opened(&options, in_folder("choices"), "auto", "file");
  check_as_written();
  opened(&options, "rule", "auto", "rule");
  check_by_rule();
}

/* ---- all regions ----------------------------------------------------------------------------- */

static void test_gathered(void) {
  opened(NULL, in_folder("choices"), "auto", "file");
  if (run.roles.is_ps) {
    run.all_choices = gt_setup_gather_choices(&run);
    assert_string_equal(run.all_choices[0], run.choices_text);
  }
  end();
  opened(NULL, "rule", "auto", "rule");
  if (run.roles.is_ps) {
    run.all_choices = gt_setup_gather_choices(&run);
    assert_string_equal(run.all_choices[0], "");
  }
  end();
  gt_choices_close(&written); /* it is the last test */
}

/* ---- files ----------------------------------------------------------------------------------- */

static void list(gt_choices *choices) {
  gt_graph *graph;
  gt_graph_spec spec = spec_of(run.job);
  must(gt_graph_create(&graph, &spec));
  gt_machine_key(choices->machine, sizeof choices->machine);
  gt_graph_layers(graph, 8, choices);
  gt_graph_close(graph);
  assert_int_equal(choices->n, LAYERS);
  for (size_t i = 0; i < choices->n; i++)
    for (int pass = 0; pass < GT_PASSES; pass++)
      for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++)
        if (gt_algorithm_can(&choices->items[i].layer, 8, (gt_pass_id)pass,
                             (gt_algorithm)algorithm))
          choices->items[i].algorithms[pass] = (gt_algorithm)algorithm;
}

static void write_files(void) {
  char *text = gt_choices_text(&written), *foreign = gt_alloc(strlen(text) + 32, 1);
  file_with("choices", text);
  sprintf(foreign, "machine another\n%s", strchr(text, '\n') + 1);
  file_with("foreign", foreign);
  gt_free(foreign);
  file_with("malformed", "machine\nno such line\n");
  gt_state none = {0}, state = {0};
  w_write_round(in_folder("run"), "a", 1, false, &none);
  gt_state_add(&state, "train/", "choices", GT_TYPE_U8, text, strlen(text));
  w_write_round(in_folder("run"), "a", 2, false, &state);
  gt_state_close(&state);
  text[strlen(text) - 1] = '\0';
  *(strrchr(text, '\n') + 1) = '\0';
  file_with("short", text); /* without its last layer */
  gt_free(text);
}

static void test_make_files(void) {
  w_begin(&run, NULL, REGIONS, "path: none.h5", "");
  list(&written);
  if (w_rank == 0) write_files();
  w_meet();
  end();
}

TESTS_BETWEEN(w_start_ranks, w_end_ranks, test_make_files, test_by_rule,
              test_one_measures_for_its_kind, test_kinds, test_a_file,
              test_a_file_that_does_not_cover, test_a_file_that_cannot_be, test_a_checkpoint,
              test_a_file_at_a_resume, test_gathered)
