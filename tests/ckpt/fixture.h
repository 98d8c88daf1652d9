/* Shared by the tests of ckpt: new folders, a state with every type, and the comparison of
   read and written states. */
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include "tests.h"
#include "geotrain/ckpt.h"

#define PARAMS 5000

typedef struct {
  float params[PARAMS];
  double means[7];
  int64_t counters[3];
  unsigned char flags[11];
  gt_state state;
  gt_ckpt_info info;
} sample;

/* Returns a new folder. */
static inline const char *new_folder(void) {
  static int n;
  char name[16];
  snprintf(name, sizeof name, "run-%d", n++);
  const char *path = in_folder(name);
  assert_int_equal(mkdir(path, 0777), 0);
  return path;
}

/* Creates a state that differs between rounds. */
static inline void sample_open(sample *s, int64_t round) {
  memset(s, 0, sizeof *s);
  for (int i = 0; i < PARAMS; i++) s->params[i] = (float)i * 0.25f + (float)round;
  for (int i = 0; i < 7; i++) s->means[i] = 1.0 / (double)(i + 1 + round);
  for (int i = 0; i < 3; i++) s->counters[i] = INT64_MAX - i - round;
  for (int i = 0; i < 11; i++) s->flags[i] = (unsigned char)(250 + i + round);
  gt_state_add(&s->state, "", "model/params", GT_TYPE_F32, s->params, PARAMS);
  gt_state_add(&s->state, "", "model/buffers", GT_TYPE_F32, NULL, 0);
  gt_state_add(&s->state, "optim/", "means", GT_TYPE_F64, s->means, 7);
  gt_state_add(&s->state, "optim/deep/", "counters", GT_TYPE_I64, s->counters, 3);
  gt_state_add(&s->state, "", "flags", GT_TYPE_U8, s->flags, 11);
  gt_state_add(&s->state, "links/", "none", GT_TYPE_I64, NULL, 0);
  s->info = (gt_ckpt_info){.round = round,
                           .step = 938 + round,
                           .samples = 60032,
                           .elapsed_s = 12.375,
                           .shape = {28, 28, 1, 10},
                           .features = 5382,
                           .doubtful = 1};
  s->info.job_yaml = (char *)"name: lenet-2-regions\nseed: 1\n";
  snprintf(s->info.run_id, sizeof s->info.run_id, "0123456789abcdef0123456789abcdef");
  snprintf(s->info.job_name, sizeof s->info.job_name, "lenet-2-regions");
  snprintf(s->info.region, sizeof s->info.region, "shanghai");
  snprintf(s->info.model, sizeof s->info.model, "lenet5");
  snprintf(s->info.kernels, sizeof s->info.kernels, "plain");
  memset(s->info.model_hash, 'a', 64);
}

static inline void sample_close(sample *s) {
  gt_state_close(&s->state);
}

/* True if the file at `path` contains exactly the state of sample_open(round). */
static inline bool holds_round(const char *path, int64_t round) {
  static sample want;
  gt_ckpt_info info;
  gt_state state;
  sample_open(&want, round);
  bool same = gt_ckpt_read(path, &info, &state) == GT_OK;
  if (same) {
    same = info.round == round && info.step == 938 + round && info.samples == 60032 &&
           info.elapsed_s == 12.375 &&
           memcmp(info.shape, want.info.shape, sizeof info.shape) == 0 && info.features == 5382 &&
           info.doubtful == 1 && strcmp(info.run_id, want.info.run_id) == 0 &&
           strcmp(info.kernels, "plain") == 0 && strcmp(info.job_yaml, want.info.job_yaml) == 0 &&
           strcmp(info.job_name, want.info.job_name) == 0 && strcmp(info.region, "shanghai") == 0 &&
           strcmp(info.model, "lenet5") == 0 &&
           strcmp(info.model_hash, want.info.model_hash) == 0 && state.n == want.state.n;
    for (size_t i = 0; same && i < want.state.n; i++) {
      const gt_state_item *a = &want.state.items[i], *b = gt_state_find(&state, "", a->name);
      same = b && b->type == a->type && b->count == a->count &&
             (a->count == 0 || memcmp(a->data, b->data, a->count * gt_type_size(a->type)) == 0);
    }
    gt_state_close(&state);
    gt_ckpt_info_close(&info);
  }
  sample_close(&want);
  return same;
}

/* Writes a round and waits for it. */
static inline gt_status write_round(gt_ckpt_writer *writer, int64_t round) {
  static sample s;
  gt_status status;
  sample_open(&s, round);
  status = gt_ckpt_write(writer, &s.info, &s.state);
  memset(s.params, 0, sizeof s.params); /* the writer has its own copy */
  sample_close(&s);
  if (status != GT_OK) return status;
  while (gt_ckpt_poll(writer, &status) != GT_CKPT_DONE) usleep(200);
  return status;
}
