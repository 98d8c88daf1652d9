#include "jobs.h"
#include "world.h"

int w_rank;
gt_peers *w_world;

static gt_job *job_of(const char *regions, const char *data, const char *train) {
  return job_as(
      "name: setup\nseed: 1\nmodel: {name: lenet5}\ndata: {%s}\ntrain: {until: {steps: 1}, "
      "batch: 8, optimizer: {lr: 0.1}%s%s}\n"
      "regions: %s\nsync: {strategy: none}\n",
      data, *train ? ", " : "", train, regions);
}

void w_begin(gt_run *run, const gt_setup_options *options, const char *regions, const char *data,
             const char *train) {
  static const gt_setup_options none;
  *run = (gt_run){
      .options = options ? options : &none, .start_limit_s = W_LIMIT_S, .end_limit_s = W_LIMIT_S};
  run->job = job_of(regions, data, train);
  gt_region_plan *plan = gt_setup_regions(run->job);
  must(gt_roles_create(&run->roles, w_world, plan, run->job->nregions, W_LIMIT_S));
  run->region = run->job->regions[run->roles.region_id].name;
  gt_free(plan);
}

void w_begin_alone(gt_run *run, const gt_setup_options *options) {
  *run = (gt_run){.options = options, .region = "a"};
}

void w_end_alone(gt_run *run) {
  gt_setup_close_kept(&run->kept);
}

void w_write_round(const char *run_dir, const char *region, int64_t round, bool doubtful,
                   gt_state *state) {
  gt_ckpt_writer *writer;
  gt_ckpt_info info = {.job_yaml = (char[]){"name: setup\n"}, .round = round, .doubtful = doubtful};
  snprintf(info.region, sizeof info.region, "%s", region);
  must(gt_ckpt_writer_create(&writer, run_dir, region));
  must(gt_ckpt_write(writer, &info, state));
  gt_ckpt_writer_close(writer);
}

void w_meet(void) {
  gt_peers_meet(w_world,
                &(gt_peers_wait){.what = "the other ranks of the test", .limit_s = W_LIMIT_S});
}

int w_start_ranks(void **unused) {
  w_world = gt_net_start(W_LIMIT_S);
  w_rank = (int)w_world->rank;
  (void)unused;
  char folder[256] = "";
  if (w_rank == 0) snprintf(folder, sizeof folder, "%s", in_folder(""));
  gt_peers_share(w_world, 0, folder, sizeof folder, "the folder of the test", W_LIMIT_S);
  if (w_rank != 0) use_folder(folder);
  return 0;
}

int w_end_ranks(void **unused) {
  (void)unused;
  w_meet();
  gt_net_finalize(w_world, W_LIMIT_S);
  return 0;
}
