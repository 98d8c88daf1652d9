/* Checkpoints of a PS: their contents, their times, and the resume from one. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "geotrain/ps_of_job.h"
#include "internal.h"
#include "stages.h"

/* ---- writing --------------------------------------------------------------------------------- */

/* Saves or loads the model and the counters of train. */
static gt_status fields_of(gt_server *s, gt_state_direction direction) {
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  const gt_state_field fields[] = {
      {"model/params", GT_TYPE_F32, a->params.data, a->params.n},
      {"model/buffers", GT_TYPE_F32, a->buffers.data, a->buffers.n},
      {"train/resumes", GT_TYPE_I64, &s->resumes, 1},
      {"train/split", GT_TYPE_I64, &s->split.use, sizeof s->split.use / sizeof(int64_t)}};
  return GT_STATE_FIELDS(direction, "", fields);
}

int64_t gt_server_relayed(const gt_server *s, size_t region) {
  const gt_endpoint *e = s->run->endpoint;
  return s->relayed_before[region] + (e ? (int64_t)gt_endpoint_relayed(e, region) : 0);
}

static void save_relayed(gt_server *s, gt_state *state) {
  const size_t n = s->run->job->nregions;
  for (size_t r = 0; r < n; r++) s->relayed[r] = gt_server_relayed(s, r);
  if (s->run->endpoint) gt_state_add(state, "train/", "relayed", GT_TYPE_I64, s->relayed, n);
}

/* One MPI job, and older files, do not have it. */
static void load_relayed(gt_server *s, const gt_state *state) {
  const gt_state_item *item = gt_state_find(state, "train/", "relayed");
  const size_t n = s->run->job->nregions;
  if (item && item->type == GT_TYPE_I64 && item->count == n)
    memcpy(s->relayed_before, item->data, n * sizeof *s->relayed_before);
}

static void collect(gt_server *s, gt_ns now, gt_state *state) {
  (void)fields_of(s, (gt_state_direction){.to = state});
  if (s->run->choices_text)
    gt_state_add(state, "train/", "choices", GT_TYPE_U8, s->run->choices_text,
                 strlen(s->run->choices_text));
  save_relayed(s, state);
  gt_ps_save(s->ps, state);
  gt_gateway_save(s->gateway, now, state);
}

static double state_bytes(const gt_state *state) {
  double sum = 0;
  for (size_t i = 0; i < state->n; i++)
    sum += (double)(state->items[i].count *
                    (state->items[i].type == GT_TYPE_F32 ? sizeof(float) : sizeof(int64_t)));
  return sum;
}

/* Writes everything but the job that determines the bits of a run; empty in a region that only
   aggregates. */
static void name_kernels(const gt_run *run, char *text, size_t size) {
  const gt_build_texts *b = &run->builds[run->roles.region_id];
  text[0] = '\0';
  if (b->kernels[0]) snprintf(text, size, "%.255s %s %s", b->kernels, b->precision, b->blas_core);
}

void gt_server_describe(const gt_server *s, gt_ckpt_info *info) {
  const gt_run *run = s->run;
  gt_ps_view view;
  gt_ps_get_view(s->ps, gt_server_now(s), &view);
  *info = (gt_ckpt_info){.job_yaml = run->resolved,
                         .round = view.round,
                         .step = view.steps,
                         .samples = view.samples,
                         .elapsed_s = gt_server_elapsed(s),
                         .shape = {(int64_t)run->data.h, (int64_t)run->data.w, (int64_t)run->data.c,
                                   (int64_t)run->data.classes},
                         .features = (int64_t)run->data.features};
  snprintf(info->job_name, sizeof info->job_name, "%s", run->job->name);
  snprintf(info->region, sizeof info->region, "%s", run->region);
  memcpy(info->run_id, s->run_id, sizeof info->run_id);
  snprintf(info->model, sizeof info->model, "%s", gt_model_names[run->job->model.name]);
  gt_graph_hash(run->model, info->model_hash);
  name_kernels(run, info->kernels, sizeof info->kernels);
}

/* True if at least two gradients in a row were non-finite and none was finite since: the parameters
   are still finite, but training cannot recover. */
static bool doubtful(const gt_server *s) {
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  return s->bad_in_row >= 2 && v.batches - s->bad_gradients == s->good_gradients;
}

void gt_server_checkpoint(void *server, int64_t round) {
  gt_server *s = server;
  gt_ns now = gt_server_now(s);
  gt_ckpt_info info;
  gt_server_describe(s, &info);
  info.round = round;
  gt_state state = {0};
  collect(s, now, &state);
  const double bytes = state_bytes(&state);
  /* a few numbers: not counted as written bytes by the virtual clock */
  gt_setup_save_data(s->run, &state);
  gt_server_save_routes(s, &state);
  if (s->stages) gt_server_stages_save(s->stages, &state);
  info.doubtful = doubtful(s);
  if (info.doubtful || gt_setup_nonfinite(&state)) gt_ps_round_unsound(s->ps);
  gt_status status = gt_ckpt_write(s->writer, &info, &state);
  s->clock->writing(s, bytes);
  gt_state_close(&state);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
  s->written_round = round;
  s->writing_since = gt_now();
  s->write_slow = false;
}

double gt_server_write_limit(const gt_server *s) {
  const gt_job *job = s->run->job;
  return job->limits.local_s > job->limits.wan_patience_s ? job->limits.local_s
                                                          : job->limits.wan_patience_s;
}

/* Warns of a disk that does not answer.  If the caller is idle, or the run has stopped training,
   the wait is limited and ends the run. */
void gt_server_watch_writer(gt_server *s, gt_ns now, bool idle) {
  double limit = gt_server_write_limit(s), waited = gt_seconds(now - s->writing_since);
  if (s->written_round == 0 || waited < limit) return;
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  if (idle || gt_stop_requested() || v.phase != GT_PS_TRAINING)
    gt_panic(GT_ERR_CKPT,
             "waited %.0f s for checkpoint round %lld of region %s to be written to %s", waited,
             (long long)s->written_round, s->run->region, s->run->run_dir);
  if (!s->write_slow)
    gt_log(GT_LOG_WARN,
           "checkpoint round %lld of region %s has been written to %s for %.0f s and is not done; "
           "training continues",
           (long long)s->written_round, s->run->region, s->run->run_dir, waited);
  s->write_slow = true;
}

void gt_server_must_write(const gt_server *s, gt_status result) {
  gt_ps_view v;
  if (result == GT_OK) return;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  if (v.whole_round > 0)
    gt_panic(result, "%s; checkpoint round %lld is whole, and --resume continues from it",
             gt_error_text(), (long long)v.whole_round);
  gt_panic(result, "%s; no checkpoint round is whole yet; --resume starts from the beginning",
           gt_error_text());
}

void gt_server_written(gt_server *s, gt_status result, gt_ns now) {
  int64_t round = s->written_round;
  s->written_round = 0;
  gt_server_must_write(s, result);
  gt_ps_written(s->ps, round, now);
}

void gt_server_poll_writer(gt_server *s, gt_ns now) {
  gt_status result;
  if (s->written_round == 0) return;
  if (gt_ckpt_poll(s->writer, &result) != GT_CKPT_DONE) {
    gt_server_watch_writer(s, now, false);
    return;
  }
  gt_server_written(s, result, now);
}

/* Removes this region's file of a round, and its folder if it becomes empty. */
static void remove_file(const gt_server *s, int64_t round) {
  char path[1300];
  unlink(gt_ckpt_path(path, sizeof path, s->run->run_dir, round, s->run->region));
  *strrchr(path, '/') = 0;
  rmdir(path);
}

/* Keeps only the newest of the unsound rounds, for inspection.  It never replaces a round that a
   run could resume from. */
static void keep_unsound(gt_server *s, int64_t round) {
  if (s->unsound_round > 0) remove_file(s, s->unsound_round);
  s->unsound_round = round;
}

/* Keeps the newest `checkpoint.keep` whole rounds.  A round that stops the run removes none: its
   file does not know how rounds have been judged since, so a resume can need an older one. */
void gt_server_whole(void *server, int64_t round) {
  gt_server *s = server;
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  if (!s->whole_marked && gt_ckpt_mark_whole(s->run->run_dir, s->run->region) != GT_OK)
    gt_panic(GT_ERR_CKPT, "%s", gt_error_text());
  s->whole_marked = true;
  const bool sound = gt_ps_whole_sound(s->ps);
  keep_unsound(s, sound ? 0 : round);
  if (!sound || v.stop_code != GT_OK) return;
  int64_t rounds[GT_MAX_ROUNDS];
  size_t n = gt_ckpt_rounds(s->run->run_dir, s->run->region, rounds, GT_MAX_ROUNDS),
         keep = (size_t)s->run->job->checkpoint.keep;
  while (n > 0 && rounds[n - 1] > round) n--;
  if (n > keep) gt_ckpt_prune(s->writer, rounds[n - keep], v.best_round);
}

/* ---- the learning rate, if the number of steps differs from that of the original schedule ---- */

/* Returns the number of steps of the learning rate schedule for this job (YAML); negative: the job
   cannot be read. */
static int64_t planned_steps(const gt_server *s, const char *job_yaml) {
  gt_job *job = NULL;
  size_t n = s->run->job->nregions;
  if (gt_job_parse(&job, "job.yaml of the checkpoint", job_yaml) != GT_OK) return -1;
  int64_t *samples = GT_NEW_ARRAY(int64_t, n), steps = -1;
  for (size_t r = 0; r < n; r++) samples[r] = s->hellos[r].samples;
  if (job->nregions == n && s->run->pipe)
    steps = gt_ps_stages_optim_of(job, &s->run->order, samples).schedule.total_steps;
  else if (job->nregions == n)
    steps = gt_ps_optim_of(job, s->run->roles.region_id, samples).schedule.total_steps;
  gt_free(samples);
  gt_job_close(job);
  return steps;
}

/* Agrees on the values of all regions.  If every region applies every step (lockstep), all must
   change their rates at the same step and end at the same step.  One can be a step ahead of
   another, so the largest values are used. *planned: negative if unknown to a region. */
static void agree_on_steps(const gt_server *s, int64_t *step, int64_t *end, int64_t *planned) {
  const int64_t own[3] = {*step, *end, *planned};
  int64_t all[GT_MAX_REGIONS][3];
  if (!gt_sync_of(s->run->job->sync.strategy)->lockstep) return;
  gt_peers_gather(s->run->roles.ps, own, sizeof own, all, "the steps that other regions have left",
                  s->run->start_limit_s);
  for (size_t r = 0; r < s->run->job->nregions; r++) {
    if (all[r][0] > *step) *step = all[r][0];
    if (all[r][1] > *end) *end = all[r][1];
    if (all[r][2] < *planned) *planned = all[r][2];
  }
}

/* Logs the change.  A schedule that had ended would leave no rate to train with: it moves back to
   the position of a run of this length. */
static void say(const gt_server *s, int64_t planned, const gt_lr_part *part, bool ended,
                double before) {
  double rate = gt_lr_at(gt_optim_schedule(s->optim), part->step);
  int64_t left = part->end - part->step;
  if (ended)
    gt_log(GT_LOG_WARN,
           "the learning rate schedule had ended (%lld steps), and the training is longer now: the "
           "rate rises from %.4g to %.4g, as in a run of which %.1f %% is done, and the schedule "
           "ends %lld steps from here",
           (long long)planned, before, rate, 100 * part->share, (long long)left);
  else
    gt_log(GT_LOG_INFO,
           "the learning rate schedule was for %lld steps: it continues at %.1f %%, "
           "rate %.4g, over the remaining %lld steps",
           (long long)planned, 100 * part->share, rate, (long long)left);
  gt_status status = gt_record_line(s->record, s->elapsed_s, "schedule", "step", 'i', part->step,
                                    "share", 'f', part->share, "left", 'i', left, "lr_before", 'f',
                                    before, "lr", 'f', rate, NULL);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
}

void gt_server_spread(gt_server *s) {
  gt_lr_schedule *schedule = gt_optim_schedule(s->optim);
  int64_t planned = s->planned_before, step = gt_optim_steps(s->optim),
          end = step + gt_ps_steps_left(s->ps);
  if (schedule->kind != GT_LR_COSINE) return;
  agree_on_steps(s, &step, &end, &planned);
  if (planned < 0)
    gt_log(GT_LOG_WARN, "the job in the checkpoint cannot be read: the learning rate follows the "
                        "steps of this job alone");
  if (planned < 0 || planned == s->planned || step >= end) return;
  schedule->total_steps = planned;
  gt_lr_part part = {step, end, gt_lr_share(schedule, step)};
  double before = gt_lr_at(schedule, step);
  bool ended = part.share >= 1;
  if (ended) part.share = (double)step / (double)end;
  gt_lr_spread(schedule, &part);
  say(s, planned, &part, ended, before);
}

/* ---- resuming -------------------------------------------------------------------------------- */

void gt_server_remove_newer(const gt_server *s, int64_t round) {
  int64_t rounds[GT_MAX_ROUNDS];
  size_t n = gt_ckpt_rounds(s->run->run_dir, s->run->region, rounds, GT_MAX_ROUNDS);
  for (size_t i = 0; i < n; i++)
    if (rounds[i] > round) remove_file(s, rounds[i]);
}

/* True if the lead's final model is of the same job and round: no region has anything left to
   train. */
static bool committed_again(const gt_server *s, int64_t round) {
  char path[1300];
  gt_ckpt_source *model;
  gt_ckpt_info info;
  gt_state state;
  gt_ckpt_final_model_path(path, sizeof path, s->run->run_dir, NULL);
  bool same = gt_ckpt_source_open(&model, path, &info, &state) == GT_OK && info.round == round &&
              strcmp(info.job_yaml, s->run->resolved) == 0;
  gt_ckpt_source_close(model);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  return same;
}

void gt_server_remove_final_model(const gt_server *s, int64_t round) {
  const gt_run *run = s->run;
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  bool trains = v.phase == GT_PS_TRAINING || v.phase == GT_PS_DRAINING;
  if (trains) gt_ckpt_remove_final_model(run->run_dir, run->region);
  if (trains || (run->roles.reports && !committed_again(s, round)))
    gt_ckpt_remove_final_model(run->run_dir, NULL);
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_stage(const gt_job_stage *a, const gt_job_stage *b) {
  bool same = strcmp(a->region, b->region) == 0 && a->workers == b->workers && a->nlast == b->nlast;
  for (size_t i = 0; same && i < a->nlast; i++) same = same_text(a->last[i], b->last[i]);
  return same;
}

static bool same_stages(const gt_job *a, const gt_job *b) {
  bool same = a->pipeline.nstages == b->pipeline.nstages && gt_job_chunks(a) == gt_job_chunks(b);
  for (size_t i = 0; same && i < a->pipeline.nstages; i++)
    same = same_stage(&a->pipeline.stages[i], &b->pipeline.stages[i]);
  return same;
}

/* Checks that the new division is allowed: the first stage, where samples are counted, must stay in
   its region; with several replicas, which exchange ranges of the model, no stage can change. */
static gt_status may_recut(const gt_job *here, const gt_job *there) {
  if ((here->pipeline.nstages == 0) != (there->pipeline.nstages == 0))
    return GT_FAIL(GT_ERR_CKPT,
                   "its job has %s pipeline and this one has %s; a resume must not "
                   "change that",
                   there->pipeline.nstages ? "a" : "no", here->pipeline.nstages ? "one" : "none");
  if (here->pipeline.nstages == 0) return GT_OK;
  const char *first = here->pipeline.stages[0].region, *before = there->pipeline.stages[0].region;
  if (strcmp(first, before) != 0)
    return GT_FAIL(GT_ERR_CKPT,
                   "pipeline.stages begins in region %s there and in region %s here; a resume can "
                   "divide the model differently, but not move its first stage to another region",
                   before, first);
  if (gt_job_replicas(here) > 1 && !same_stages(here, there))
    return GT_FAIL(GT_ERR_CKPT, "pipeline.stages differ there, and with pipeline.copies a "
                                "resume must not change them");
  return GT_OK;
}

/* Checks that the region has the same kind of file: it depends on whether the region trains, and on
   the stages.  *recut: the division of the model could have changed. */
static gt_status same_kinds(const gt_server *s, const char *job_yaml, bool *recut) {
  const gt_job *here = s->run->job;
  gt_job *there = NULL;
  gt_status status = gt_job_parse(&there, "job.yaml of the checkpoint", job_yaml);
  *recut = status == GT_OK && !same_stages(here, there);
  if (status == GT_OK) status = may_recut(here, there);
  for (size_t r = 0; status == GT_OK && r < here->nregions; r++)
    if (gt_job_trains(here, r) != gt_job_trains(there, r))
      status = GT_FAIL(GT_ERR_CKPT,
                       "regions.%zu.ranks is %d there and %d here, and with 1 region %s only "
                       "aggregates; a resume must not change whether a region trains",
                       r, there->regions[r].ranks, here->regions[r].ranks, here->regions[r].name);
  gt_job_close(there);
  return status == GT_ERR_JOB ? GT_OK : status;
}

static gt_status restore(gt_server *s, const gt_ckpt_info *info, gt_state *state) {
  char model[GT_SHA256_HEX], text[512];
  bool recut;
  gt_job_difference(s->run->resolved, info->job_yaml, true, text, sizeof text);
  if (text[0]) return GT_FAIL(GT_ERR_JOB, "%s; %s", text, gt_job_on_resume);
  GT_TRY(same_kinds(s, info->job_yaml, &recut));
  gt_graph_hash(s->run->model, model);
  if (strcmp(model, info->model_hash) != 0)
    return GT_FAIL(GT_ERR_CKPT,
                   "it holds model %s (%.12s), the job needs %s (%.12s); expected the `model` with "
                   "which the run began",
                   info->model, info->model_hash, gt_model_names[s->run->job->model.name], model);
  GT_TRY(gt_setup_check_data(s->run, state));
  if (s->stages) GT_TRY(gt_recut(s, info, state, !recut));
  GT_TRY(fields_of(s, (gt_state_direction){.from = state}));
  GT_TRY(gt_gateway_load(s->gateway, gt_server_now(s), state));
  load_relayed(s, state);
  GT_TRY(gt_ps_load(s->ps, gt_server_now(s), state));
  if (s->stages) GT_TRY(gt_server_stages_load(s->stages, state));
  name_kernels(s->run, text, sizeof text);
  if (info->kernels[0] && strcmp(text, info->kernels) != 0)
    gt_log(GT_LOG_WARN,
           "the checkpoint was computed with the kernels \"%s\", and this run uses \"%s\": it "
           "continues, but not with the same bits",
           info->kernels, text);
  s->planned_before = planned_steps(s, info->job_yaml);
  s->elapsed_s = info->elapsed_s;
  s->resumes++;
  return GT_OK;
}

gt_status gt_server_resume(gt_server *s, int64_t round) {
  char path[1300];
  gt_kept *kept = &s->run->kept;
  gt_round_verdict verdict = gt_setup_read_round(s->run, round);
  gt_status status = verdict > GT_ROUND_DOUBTFUL ? GT_FAIL(GT_ERR_CKPT, "%s", kept->why)
                                                 : restore(s, &kept->info, &kept->state);
  if (status != GT_OK && verdict <= GT_ROUND_DOUBTFUL)
    status = GT_FAIL(status, "%s: %s",
                     gt_ckpt_path(path, sizeof path, s->run->run_dir, round, s->run->region),
                     gt_error_text());
  gt_setup_close_kept(kept);
  return status;
}

static void no_best(gt_status status, int64_t round) {
  gt_panic(status,
           "checkpoint round %lld is the best one, and cannot be read: %s; --resume with --set "
           "train.keep=last keeps the last model",
           (long long)round, gt_error_text());
}

void gt_server_check_best(const gt_server *s, const gt_ps_view *v) {
  char path[1300];
  if (s->run->job->train.keep == GT_KEEP_LAST || v->best_round == 0 || v->best_round == v->judged)
    return;
  gt_ckpt_path(path, sizeof path, s->run->run_dir, v->best_round, s->run->region);
  if (access(path, R_OK) != 0)
    no_best(GT_FAIL(GT_ERR_CKPT, "%s: %s", path, strerror(errno)), v->best_round);
}

void gt_server_take_best(gt_server *s) {
  gt_run *run = s->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  if (v.best_round == 0)
    gt_log_job(GT_LOG_WARN, "no checkpoint has a finite validation loss: the last model is kept");
  if (v.best_round == 0 || v.best_round == v.last_round) return;
  const gt_state_field fields[] = {{"model/params", GT_TYPE_F32, a->params.data, a->params.n},
                                   {"model/buffers", GT_TYPE_F32, a->buffers.data, a->buffers.n}};
  gt_status status = GT_OK;
  if (gt_setup_read_round(run, v.best_round) == GT_ROUND_DAMAGED)
    status = GT_FAIL(GT_ERR_CKPT, "%s", run->kept.why);
  if (status == GT_OK)
    status = GT_STATE_FIELDS(((gt_state_direction){.from = &run->kept.state}), "", fields);
  if (status != GT_OK) no_best(status, v.best_round);
  s->best_steps = run->kept.info.step;
  s->best_samples = run->kept.info.samples;
  gt_setup_close_kept(&run->kept);
}
