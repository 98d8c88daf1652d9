/* Settings that are probably unintended give a warning, and no others do. */
#include "world.h"

static const char base[] = "name: tiny\nmodel: {name: lenet5}\ndata: {path: d.h5}\nregions: "
                           "[{name: a, ranks: 3}, {name: b, ranks: 2}]\n";

static char told[1024];

static void tell(const char *text) {
  snprintf(told + strlen(told), sizeof told - strlen(told), "%s\n", text);
}

/* Expects these warnings for the job with `more`, and for its first region with this number of
   samples. */
static void expect(const char *more, int64_t samples, const char *expected) {
  gt_job *job = w_job(base, more, NULL, 0);
  told[0] = '\0';
  gt_job_warn(job, tell);
  if (samples > 0) gt_job_warn_region(job, 0, samples, tell);
  gt_job_close(job);
  assert_string_equal(told, expected);
}

#define SGD "optimizer: {lr: 0.1}"

static void nothing_to_tell(void) {
  expect("train: {until: {steps: 9}, optimizer: {lr: 0.1, momentum: 0.9}, schedule: {name: cosine, "
         "warmup_steps: 9}}\n",
         64, "");
  expect("train: {until: {epochs: 1}, optimizer: {name: adam, lr: 0.1}}\nwan: {emulate: true, "
         "default: {latency: 1 ms}}\n",
         64, "");
  expect("train: {until: {epochs: 1}, " SGD ", schedule: {name: cosine, warmup_steps: 5}}\n", 640,
         "");
}

/* As expect, for images with this mean and std. */
static void expect_norm(const char *mean, const char *std, const char *expected) {
  gt_job *job =
      w_job(base, "train: {until: {steps: 9}, " SGD "}\n", (const char *[]){mean, std}, 2);
  told[0] = '\0';
  gt_job_warn(job, tell);
  gt_job_close(job);
  assert_string_equal(told, expected);
}

static void units_are_told(void) {
  expect_norm("data.mean=[0.5]", "data.std=[1]", "");
  expect_norm("data.mean=[0.5, 128]", "data.std=[0.25, 64]",
              "data.mean has 128 and data.std 64, where images are 0 to 1: both are in units of "
              "255, as 0.502 and 0.251\n");
}

static void each_is_told(void) {
  expect("train: {until: {steps: 9}, optimizer: {name: adam, lr: 0.1, momentum: 0.9}}\n", 0,
         "train.optimizer.momentum is 0.9 and does nothing: train.optimizer.name is adam; it is "
         "for sgd only\n");
  expect(
      "train: {until: {steps: 9}, optimizer: {lr: 0.1, beta2: 0.99}, schedule: {lr_min: 0.01}}\n"
      "sync: {strategy: ssgd, period: 4}\n",
      0,
      "train.optimizer.beta2 is 0.99 and does nothing: train.optimizer.name is sgd; it is for "
      "adam, adamw only\n"
      "train.schedule.lr_min is 0.01 and does nothing: train.schedule.name is constant; it is for "
      "cosine only\n"
      "sync.period is 4 and does nothing: sync.strategy is ssgd; it is for asgd-ga, ama, sma "
      "only\n");
  expect("train: {until: {steps: 9}, optimizer: {name: adam, lr: 0.1}}\nsync: {exchange: "
         "gradient}\n",
         0,
         "sync.exchange is gradient and train.optimizer.name adam: other regions subtract the "
         "gradient times train.optimizer.lr, a rate that fits sgd\n");
  expect("train: {until: {steps: 9}, " SGD "}\nwan: {emulate: true}\n", 0,
         "wan.emulate is true and no link is given, so that no message is delayed; set wan.links, "
         "wan.matrix or wan.default\n");
  expect(
      "train: {until: {steps: 9}, " SGD "}\nwan: {transport: store, store: {url: s3://b/p}, "
      "default: {latency: 1 ms}}\n",
      0,
      "wan.transport is store, and wan.links, wan.matrix, wan.default and wan.outages do nothing: "
      "the model of the store is in wan.store and regions[].store\n");
  expect("train: {until: {steps: 9}, " SGD ", schedule: {name: cosine, warmup_steps: 10}}\n", 0,
         "train.schedule.warmup_steps is 10 and the run ends after 9 steps: the rate never reaches "
         "train.optimizer.lr\n");
  expect("train: {until: {epochs: 1}, " SGD ", schedule: {name: cosine, warmup_steps: 7}}\n", 640,
         "train.schedule.warmup_steps is 7 and region a ends after 5 steps: the rate never reaches "
         "train.optimizer.lr\n");
  expect("train: {until: {epochs: 1}, " SGD "}\n", 63,
         "train.batch is 64 and region a holds 63 samples: every batch has all of them\n");
}

static void expect_wan(const char *wan, const char *expected) {
  static const char own[] = "regions.1.address=h:1", store[] = "regions.1.store.latency=1 ms";
  gt_job *job =
      w_job(base, "train: {until: {steps: 9}, " SGD "}\n", (const char *[]){wan, own, store}, 3);
  told[0] = '\0';
  gt_job_warn(job, tell);
  gt_job_close(job);
  assert_string_equal(told, expected);
}

static void keys_of_another_transport_are_told(void) {
  expect_wan("wan={transport: tcp, tls: {ca: c, cert: d, key: e}, streams: 4}",
             "regions.1.store.latency is 1 ms and does nothing: wan.transport is tcp; it is for "
             "store only\n");
  expect_wan("wan={transport: store, store: {url: s3://b/p, poll: 1 s}}",
             "regions.1.address is h:1 and does nothing: wan.transport is store; it is for tcp "
             "only\n");
  expect_wan(
      "wan={tls: {ca: c, cert: d, key: e}, streams: auto, store: {url: s3://b/p, poll: 1 s}}",
      "regions.1.address is h:1 and does nothing: wan.transport is mpi; it is for tcp only\n"
      "regions.1.store.latency is 1 ms and does nothing: wan.transport is mpi; it is for "
      "store only\n"
      "wan.store.url is s3://b/p and does nothing: wan.transport is mpi; it is for store "
      "only\n"
      "wan.store.poll is 1 s and does nothing: wan.transport is mpi; it is for store only\n"
      "wan.streams is auto and does nothing: wan.transport is mpi; it is for tcp only\n"
      "wan.tls is given and wan.transport is mpi, which does not encrypt the messages "
      "between regions; wan.tls is for tcp only\n");
}

TESTS(nothing_to_tell, units_are_told, each_is_told, keys_of_another_transport_are_told)
