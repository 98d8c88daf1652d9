/* The two clocks of a run, as far as they work without MPI: the current time, durations of work,
   and the times in a summary. */
#include "internal.h"
#include "tests.h"

#define MS ((gt_ns)1000000)

/* A server of a region with two workers. */
typedef struct {
  gt_job *job;
  gt_run run;
  gt_server server;
} world;

static void open_world(world *w, const gt_clock_ops *clock, const char *limit) {
  char text[1024];
  memset(w, 0, sizeof *w);
  snprintf(text, sizeof text,
           "name: t\nmodel: {name: dummy}\ndata: {path: d.h5}\n"
           "train: {until: {steps: 9}, batch: 32, optimizer: {lr: 0.1}}\n"
           "regions: [{name: a, ranks: 3}, {name: b, ranks: 2}]\n"
           "sync: {strategy: sma, codec: {name: int8}}\n"
           "compute: {step: 10 ms, update: 4 ms, apply: 3 ms, encode: 5 ms, "
           "codec: {int8: {encode: 8 Gbit/s, decode: 4 Gbit/s}}}\nlimits: {local: %s}\n",
           limit);
  must(gt_job_parse(&w->job, "t.yaml", text));
  w->run = (gt_run){
      .job = w->job, .roles = {.region_size = 3}, .order = {.seed = 1, .n = 320, .batch = 32}};
  w->server = (gt_server){
      .run = &w->run, .clock = clock, .begun_wall = gt_now() - 2 * GT_SECOND, .elapsed_s = 100};
  w->server.clock_state = clock->open(&w->server);
}

static void close_world(world *w) {
  w->server.clock->close(w->server.clock_state);
  w->server.clock->close(NULL);
  gt_job_close(w->job);
}

static void they_are_told_apart_by_name(void) {
  assert_string_equal(gt_clock_real.name, "real");
  assert_string_equal(gt_clock_virtual.name, "virtual");
}

/* Only the PS's work advances the virtual clock, by the time given in the job. */
static void work_takes_virtual_time(void) {
  world w;
  open_world(&w, &gt_clock_virtual, "8 s");
  gt_server *s = &w.server;
  assert_int_equal(gt_server_now(s), 0);
  s->clock->worked(s, GT_WORK_UPDATE, 1);
  assert_int_equal(gt_server_now(s), 4 * MS);
  s->clock->worked(s, GT_WORK_APPLY, 1);
  assert_int_equal(gt_server_now(s), 7 * MS);
  s->clock->worked(s, GT_WORK_COPY, 1);
  assert_int_equal(gt_server_now(s), 12 * MS);
  s->clock->worked(s, GT_WORK_ENCODE, 1e6);
  assert_int_equal(gt_server_now(s), 13 * MS);
  s->clock->worked(s, GT_WORK_DECODE, 1e6);
  assert_int_equal(gt_server_now(s), 15 * MS);
  s->clock->ordered(s, 1, &(gt_ps_order){.kind = GT_PS_TRAIN});
  s->clock->writing(s, 1e9);
  gt_sleep(2 * MS);
  assert_int_equal(gt_server_now(s), 15 * MS);
  /* The frame left while the PS was busy. */
  assert_int_equal(s->clock->attended(s, 5 * MS), 15 * MS);
  close_world(&w);
}

static void real_time_goes_on_by_itself(void) {
  world w;
  open_world(&w, &gt_clock_real, "8 s");
  gt_server *s = &w.server;
  gt_ns before = gt_now(), now = gt_server_now(s);
  assert_true(now >= before && now <= gt_now());
  s->clock->worked(s, GT_WORK_UPDATE, 1);
  s->clock->ordered(s, 1, &(gt_ps_order){.kind = GT_PS_TRAIN});
  s->clock->writing(s, 1e9);
  assert_int_equal(s->clock->attended(s, before), before);
  assert_false(s->clock->wait(s));
  close_world(&w);
}

/* Keepalives are sent after a quarter of limits.local, at most 5 s; under the virtual clock the
   PS's own timer never fires. */
static void workers_are_kept_alive(void) {
  world w;
  open_world(&w, &gt_clock_real, "8 s");
  assert_int_equal(w.server.clock->keepalive(&w.server), 2 * GT_SECOND);
  close_world(&w);
  open_world(&w, &gt_clock_real, "120 s");
  assert_int_equal(w.server.clock->keepalive(&w.server), 5 * GT_SECOND);
  close_world(&w);
  open_world(&w, &gt_clock_virtual, "8 s");
  assert_true(w.server.clock->keepalive(&w.server) > 1000000 * GT_SECOND);
  close_world(&w);
}

/* A run that was resumed after 100 s and began 2 s ago. */
static void what_a_summary_says(void) {
  world w;
  gt_summary sum = {0};
  open_world(&w, &gt_clock_real, "8 s");
  w.server.clock->summarise(&w.server, &sum);
  assert_true(sum.wall_s >= 102 && sum.wall_s < 110);
  assert_true(isnan(sum.virtual_s));
  close_world(&w);
  open_world(&w, &gt_clock_virtual, "8 s");
  w.server.clock->worked(&w.server, GT_WORK_UPDATE, 1);
  w.server.clock->summarise(&w.server, &sum);
  assert_true(sum.wall_s >= 2 && sum.wall_s < 10);
  assert_true(fabs(sum.virtual_s - 100.004) < 1e-9);
  close_world(&w);
  assert_true(gt_clock_real.cpu_s() > 0);
  assert_true(gt_clock_virtual.cpu_s() == 0);
}

static void count(void *ctx) {
  ++*(int *)ctx;
}

/* Checks that the clock sleeps for the rest of the required time, with progress of messages. */
static gt_ns compute(const gt_clock_ops *clock, gt_ns ago, gt_ns cost, double slowdown,
                     int *turns) {
  gt_ns now = gt_now();
  *turns = 0;
  clock->computed(now - ago, cost, slowdown, count, turns);
  return gt_now() - now;
}

static void real_workers_take_the_jobs_time(void) {
  int turns;
  assert_true(compute(&gt_clock_real, 10 * MS, 0, 1, &turns) < 10 * MS);
  assert_int_equal(turns, 0);
  assert_true(compute(&gt_clock_real, 10 * MS, 5 * MS, 1, &turns) < 10 * MS); /* it took longer */
  assert_int_equal(turns, 0);
  assert_true(compute(&gt_clock_real, 10 * MS, 40 * MS, 1, &turns) >= 30 * MS);
  assert_true(turns > 1);
  assert_true(compute(&gt_clock_real, 10 * MS, 0, 4, &turns) >= 30 * MS);
  assert_true(turns > 1);
  compute(&gt_clock_virtual, 10 * MS, 40 * MS, 4, &turns);
  assert_int_equal(turns, 0);
}

TESTS(they_are_told_apart_by_name, work_takes_virtual_time, real_time_goes_on_by_itself,
      workers_are_kept_alive, what_a_summary_says, real_workers_take_the_jobs_time)
