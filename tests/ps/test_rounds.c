/* Checkpoint rounds: stops at random moments, crashes at random events, resumes with a longer end
   or with other workers; also if some regions only aggregate. */
#include "cases.h"
#include "world.h"

#define SEEDS 24

typedef void w_law(w_spec *spec);

static void for_all(w_law *law, int all, uint64_t seed) {
  const int seeds = (int)cases((size_t)all, (size_t)all / 6);
  static const size_t regions[] = {1, 2, 3, 5};
  for (const char *const *name = gt_strategy_names; *name; name++)
    for (int async = 0; async < 2; async++)
      for (int k = 0; k < seeds; k++) {
        w_spec spec = w_random(*name, async, regions[k % 4], seed++);
        w_place(&spec);
        w_spec some = spec;
        law(&spec);
        if (some.nregions == 1) continue;
        w_aggregate(&some);
        law(&some);
      }
}

static int64_t events_of(const w_spec *spec) {
  world *w = w_finished(spec);
  int64_t events = w->events;
  w_close(w);
  return events;
}

/* At the end of a longer `until` every batch is counted once. */
static void check_end(world *w, const w_spec *spec) {
  if (spec->until.epochs > 0) w_check_epochs(w, (int64_t)spec->until.epochs);
  if (spec->until.steps > 0) w_check_steps(w, spec->until.steps);
  if (w_lockstep(spec)) w_check_identical(w);
}

/* ---- stops ----------------------------------------------------------------------------------- */

/* True if all have ended: a complete region stops, too, when a stop reaches it. */
static bool all_ended(const world *w) {
  if (w_all_in(w, GT_PS_STOPPED)) return true;
  for (size_t i = 0; i < w->n; i++)
    if (w_view(w, i).stop_code != GT_OK) return false;
  return w_all_in(w, GT_PS_COMPLETE);
}

static void stop(w_spec *spec) {
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 3, 0);
  spec->until.epochs = 2;
  if (spec->seed % 2) spec->checkpoint_every.steps = 3;
  int64_t events = (int64_t)gt_rng_below(&rng, (uint64_t)events_of(spec));
  world *w = w_open(spec);
  w_steps(w, events);
  size_t who = (size_t)gt_rng_below(&rng, w->n);
  gt_ps_stop(w->regions[who].ps, GT_STOPPED, w->now);
  if (w->n > 2) gt_ps_stop(w->regions[(who + 1) % w->n].ps, GT_STOPPED, w->now);
  gt_ns limit = w->now + 600 * GT_SECOND;
  while (!all_ended(w)) w_check(w, w_step(w) && w->now < limit);
  for (size_t i = 0; i < w->n; i++) {
    gt_ps_view v = w_view(w, i);
    if (v.phase == GT_PS_STOPPED)
      w_check(w, v.stop_code == GT_STOPPED && v.whole_round == w_view(w, 0).whole_round &&
                     v.round == v.whole_round);
  }
  if (w_all_in(w, GT_PS_STOPPED)) {
    int64_t round = w_view(w, 0).whole_round;
    w_check(w, w_crash(w) == round);
    w_run_until(w, GT_PS_COMPLETE);
  }
  check_end(w, spec);
  w_close(w);
}

static void test_stop_at_any_moment(void) {
  for_all(stop, SEEDS, 1000);
}

/* A limit in one region and a signal in another at the same moment: all regions end with the
   limit. */
static void test_two_reasons_to_stop(void) {
  for (uint64_t seed = 1500; seed < 1530; seed++) {
    w_spec spec = w_random("asgd", seed % 2, 3, seed);
    spec.until.epochs = 2;
    world *w = w_open(&spec);
    w_steps(w, 40);
    gt_ps_stop(w->regions[seed % 3].ps, GT_STOPPED, w->now);
    gt_ps_stop(w->regions[(seed + 1) % 3].ps, GT_ERR_LIMIT, w->now);
    w_run_until(w, GT_PS_STOPPED);
    for (size_t i = 0; i < w->n; i++) w_check(w, w_view(w, i).stop_code == GT_ERR_LIMIT);
    w_close(w);
  }
}

/* A message with a round that this region has not seen: its checkpoint comes first and does not
   contain the message. */
static void test_a_later_round_in_a_message(void) {
  w_spec spec = w_random("asgd", false, 2, 1600);
  spec.until.epochs = 2;
  world *w = w_open(&spec);
  w_steps(w, 10);
  float update[W_PARAMS], before[W_PARAMS], saved[W_PARAMS];
  for (size_t j = 0; j < W_PARAMS; j++) update[j] = 1;
  memcpy(before, w->regions[1].params, sizeof before);
  gt_frame_header head = {.kind = GT_MSG_UPDATE,
                          .round = 1,
                          .sequence = 1 + (uint64_t)w->regions[1].kept.applied[0],
                          .value = 9,
                          .message_bytes = sizeof update};
  gt_ps_message(w->regions[1].ps, 0, &head, update, w->now);
  w_check(w, w_view(w, 1).round == 1 && w->regions[1].ncopies == 1);
  must(gt_state_get(&w->regions[1].copies[0].state, "model/", "params", GT_TYPE_F32, saved,
                    W_PARAMS));
  assert_memory_equal(saved, before, sizeof saved);
  for (size_t j = 0; j < W_PARAMS; j++) w_check(w, w->regions[1].params[j] == before[j] + 1);
  w_close(w);
}

/* A round that one region considers unsound is whole, and unsound for all (w_whole checks it);
   those before and after are sound. */
static void test_an_unsound_round(void) {
  for (uint64_t seed = 1700; seed < 1712; seed++) {
    w_spec spec = w_random("asgd", seed % 2, 3, seed);
    spec.until.epochs = 4;
    spec.checkpoint_every.steps = 2;
    spec.unsound = 2;
    world *w = w_finished(&spec);
    for (size_t i = 0; i < w->n; i++) w_check(w, w->regions[i].wholes >= 2);
    w_close(w);
  }
}

/* ---- messages in flight ---------------------------------------------------------------------- */

/* Opens a world in which region 0 has messages queued for every peer. */
static world *open_waiting(uint64_t seed, bool async) {
  w_spec spec = w_random("asgd", async, 5, seed);
  spec.until.epochs = 2;
  spec.checkpoint_every.steps = 2;
  spec.outbox = spec.window = 2;
  spec.link = (gt_link_spec){.bandwidth_bps = 1e5, .latency_s = 0.05};
  world *w = w_open(&spec);
  for (bool all = false; !all;) {
    all = true;
    w_check(w, w_step(w));
    for (size_t p = 1; p < w->n; p++) {
      gt_ps_link link;
      gt_ps_get_link(w->regions[0].ps, p, &link);
      all = all && link.unacknowledged >= 2;
    }
  }
  return w;
}

/* A message queued for four peers is in a checkpoint once. */
static void test_a_message_is_saved_once(void) {
  world *w = open_waiting(1800, false);
  size_t most = 0, bodies = 0;
  gt_state saved = {0};
  gt_ps_save(w->regions[0].ps, &saved);
  for (size_t p = 1; p < w->n; p++) {
    gt_ps_link link;
    gt_ps_get_link(w->regions[0].ps, p, &link);
    if (link.unacknowledged > most) most = link.unacknowledged;
  }
  for (size_t i = 0; i < saved.n; i++)
    bodies += saved.items[i].type == GT_TYPE_F32 && strncmp(saved.items[i].name, "ps/", 3) == 0;
  assert_int_equal(bodies, most);
  gt_state_close(&saved);
  w_close(w);
}

/* Converts to the old layout, in which every peer's messages have bodies of their own. */
static void to_old_layout(gt_state *state) {
  gt_state old = {.owns_data = true};
  for (size_t i = 0; i < state->n; i++) {
    const gt_state_item *item = &state->items[i], *body = item;
    char name[96], *end;
    snprintf(name, sizeof name, "%s", item->name);
    if (strncmp(name, "ps/message/", 11) == 0) continue;
    if (strstr(name, "unacknowledged") && (end = strstr(name, "/message"))) {
      char number[32];
      snprintf(number, sizeof number, "%lld", (long long)*(int64_t *)item->data);
      assert_non_null(body = gt_state_find(state, "ps/message/", number));
      memcpy(end, "/payload", 9);
    }
    size_t size = body->count * gt_type_size(body->type);
    void *data = gt_alloc(size + 1, 1);
    if (size) memcpy(data, body->data, size);
    gt_state_add(&old, "", name, body->type, data, body->count);
  }
  gt_state_close(state);
  *state = old;
}

static void test_the_old_layout_resumes(void) {
  for (uint64_t seed = 1810; seed < 1818; seed++) {
    size_t messages = 0;
    world *w = open_waiting(seed, seed % 2);
    int64_t newest, round;
    for (round = 0; messages < 4; round = w_whole_round(w, &newest)) {
      w_check(w, w_step(w));
      messages = 0;
      const w_copy *c = round ? w_find_copy(&w->regions[0], round) : NULL;
      for (size_t i = 0; c && i < c->state.n; i++)
        messages += strstr(c->state.items[i].name, "/head") != NULL;
    }
    for (size_t r = 0; r < w->n; r++)
      for (size_t i = 0; i < w->regions[r].ncopies; i++)
        to_old_layout(&w->regions[r].copies[i].state);
    w_check(w, w_crash(w) == round);
    w_run_until(w, GT_PS_COMPLETE);
    w_check_epochs(w, 2);
    w_close(w);
  }
}

/* ---- crashes --------------------------------------------------------------------------------- */

static void crash(w_spec *spec) {
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 4, 0);
  spec->until.epochs = 2;
  if (spec->seed % 2)
    spec->checkpoint_every.steps = 1 + (int64_t)(spec->seed % 5);
  else
    spec->checkpoint_every.epochs = 0.25;
  world *quiet = w_finished(spec);
  world *w = w_open(spec);
  for (int k = 0; k < 4; k++) {
    w_steps(w, (int64_t)gt_rng_below(&rng, (uint64_t)quiet->events));
    w_crash(w);
  }
  w_run_until(w, GT_PS_COMPLETE);
  check_end(w, spec);
  if (w_lockstep(spec) && !spec->local_async) w_check_same(w, quiet);
  w_close(w);
  w_close(quiet);
}

static void test_crashes_at_any_event(void) {
  for_all(crash, SEEDS, 2000);
}

/* At most one interval is lost, plus the training while a round is written. */
static void interval(w_spec *spec) {
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 5, 0);
  spec->until.epochs = 4;
  spec->checkpoint_every.steps = 4;
  spec->write_s = 0.004;
  spec->link = (gt_link_spec){.bandwidth_bps = 1e7, .latency_s = 0.001};
  spec->optim.momentum = 0;
  for (size_t i = 0; i < spec->nregions; i++) spec->slow[i] = 1;
  int64_t events = (int64_t)gt_rng_below(&rng, (uint64_t)events_of(spec)), before[W_REGIONS];
  world *w = w_open(spec);
  w_steps(w, events);
  for (size_t i = 0; i < w->n; i++) before[i] = w_view(w, i).steps;
  int64_t taken = w->regions[0].wholes;
  w_crash(w);
  for (size_t i = 0; i < w->n; i++) {
    int64_t lost = before[i] - w_view(w, i).steps;
    /* a round opens after 4 steps; its files and the news of them take at most 4 + 1 ms and a few
       frames: no worker makes more than 3 steps meanwhile */
    int64_t meanwhile = (int64_t)(spec->local_async ? 4 * spec->workers[i] : 4);
    w_check(w, lost >= 0 && lost <= 4 + meanwhile);
    w_check(w, before[i] < 12 + 3 * meanwhile || taken > 0);
  }
  w_close(w);
}

static void test_an_interval_at_most_is_lost(void) {
  for_all(interval, SEEDS, 3000);
}

/* The first region opens the round: a region with few samples waits for no other. */
static void test_whoever_is_first_opens(void) {
  w_spec spec = w_random("none", false, 3, 4000);
  spec.until.epochs = 1;
  spec.samples[0] = spec.samples[1] = 20;
  spec.samples[2] = 300;
  spec.batch = 5;
  spec.workers[2] = 1;
  spec.checkpoint_every.steps = 10;
  spec.write_s = 0.01;
  spec.link = (gt_link_spec){.bandwidth_bps = 1e7, .latency_s = 0.002};
  world *w = w_finished(&spec);
  for (size_t i = 0; i < w->n; i++)
    w_check(w, w->regions[i].rounds >= 5 && w->regions[i].rounds <= 6 &&
                   w_view(w, i).round == w_view(w, 2).round);
  w_close(w);
}

/* A round opens with the step that completes its interval. */
static void test_a_round_opens_with_the_last_step_of_its_interval(void) {
  static const struct {
    gt_ps_interval every;
    int64_t steps;
  } intervals[] = {{{.steps = 4}, 4}, {{.samples = 20}, 4}, {{.epochs = 0.5}, 6}};
  for (size_t k = 0; k < COUNT(intervals); k++) {
    w_spec spec = w_random("none", k % 2, 1, 4100);
    spec.until.epochs = 2;
    spec.samples[0] = 60;
    spec.batch = 5;
    spec.workers[0] = 1;
    spec.checkpoint_every = intervals[k].every;
    world *w = w_open(&spec);
    while (w_view(w, 0).round == 0) w_check(w, w_step(w));
    w_check(w, w_view(w, 0).steps == intervals[k].steps);
    w_close(w);
  }
}

/* ---- resumes that change the job ------------------------------------------------------------- */

static void finish_with_round(world *w) {
  w_run_until(w, GT_PS_COMPLETE);
  gt_ps_last_round(w->regions[0].ps, w->now);
  gt_ns limit = w->now + 600 * GT_SECOND;
  for (size_t i = 0; i < w->n; i++)
    while (w_view(w, i).whole_round < w_view(w, 0).round) w_check(w, w_step(w) && w->now < limit);
  w_check(w, w_all_in(w, GT_PS_COMPLETE));
}

static void change_workers(world *w, gt_rng *rng) {
  for (size_t i = 0; i < w->n; i++)
    if (w->spec.workers[i] > 0) w->spec.workers[i] = 1 + (size_t)gt_rng_below(rng, W_WORKERS);
}

static void longer(w_spec *spec) {
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 6, 0);
  bool by_steps = spec->seed % 2;
  spec->until = by_steps ? (gt_ps_interval){.steps = 7} : (gt_ps_interval){.epochs = 1};
  world *w = w_open(spec);
  finish_with_round(w);
  for (int k = 2; k < 4; k++) {
    w->spec.until = by_steps ? (gt_ps_interval){.steps = 7 * k} : (gt_ps_interval){.epochs = k};
    if (spec->seed % 3 == 0) change_workers(w, &rng);
    w_check(w, w_crash(w) > 0);
    finish_with_round(w);
    check_end(w, &w->spec);
  }
  w_crash(w); /* the end is already reached */
  w_run_until(w, GT_PS_COMPLETE);
  check_end(w, &w->spec);
  w_close(w);
}

static void test_a_longer_end(void) {
  for_all(longer, SEEDS, 5000);
}

/* The end is extended while some regions have finished and others have not. */
static void longer_midway(w_spec *spec) {
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 7, 0);
  spec->until.epochs = 1;
  spec->checkpoint_every.steps = 2;
  int64_t events = events_of(spec);
  world *w = w_open(spec);
  w_steps(w, events / 2 + (int64_t)gt_rng_below(&rng, (uint64_t)events / 2));
  w->spec.until.epochs = 2;
  w_crash(w);
  w_run_until(w, GT_PS_COMPLETE);
  check_end(w, &w->spec);
  w_close(w);
}

static void test_a_longer_end_midway(void) {
  for_all(longer_midway, SEEDS, 6000);
}

static void other_workers(w_spec *spec) {
  gt_rng rng = gt_rng_make(spec->seed, GT_RNG_TEST, 8, 0);
  spec->until.epochs = 2;
  spec->checkpoint_every.steps = 2;
  int64_t events = events_of(spec);
  world *w = w_open(spec);
  for (int k = 0; k < 3; k++) {
    w_steps(w, (int64_t)gt_rng_below(&rng, (uint64_t)events));
    change_workers(w, &rng);
    w_crash(w);
  }
  w_run_until(w, GT_PS_COMPLETE);
  check_end(w, spec);
  w_close(w);
}

static void test_other_workers(void) {
  for_all(other_workers, SEEDS, 7000);
}

TESTS(test_stop_at_any_moment, test_two_reasons_to_stop, test_a_later_round_in_a_message,
      test_an_unsound_round, test_a_message_is_saved_once, test_the_old_layout_resumes,
      test_crashes_at_any_event, test_an_interval_at_most_is_lost, test_whoever_is_first_opens,
      test_a_round_opens_with_the_last_step_of_its_interval, test_a_longer_end,
      test_a_longer_end_midway, test_other_workers)
