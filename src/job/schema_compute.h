/* The keys of a gt_job_compute: rows of the table of job keys.  Private to schema.c, whose macros
   AT and IN_REGION they use. */
#pragma once

#define COMPUTE(key, type, flags, at, most, list, text)                                            \
  { key, type, KEY_OPTIONAL | (flags), at, .max = (most), .with = (list), .meaning = (text) }
/* The keys of a gt_job_compute, of all regions and of one. */
#define COMPUTE_ROWS(p, in)                                                                        \
  COMPUTE(p "samples_per_s", KEY_REAL, KEY_ABOVE_MIN, in(compute.samples_per_s), 1e15, NULL,       \
          "speed of one worker in training, for the virtual clock"),                               \
      COMPUTE(p "step", KEY_TIME, KEY_ABOVE_MIN, in(compute.step_s), 1e6, NULL,                    \
              "time of a full batch on one worker; instead of samples_per_s"),                     \
      COMPUTE(p "speed", KEY_REAL, KEY_ABOVE_MIN, in(compute.speed), 1, NULL,                      \
              "factor on the speed of the workers; under the real clock, workers are slowed down " \
              "to it"),                                                                            \
      COMPUTE(p "eval_samples_per_s", KEY_REAL, KEY_ABOVE_MIN, in(compute.eval_samples_per_s),     \
              1e15, NULL,                                                                          \
              "speed of one worker in evaluation; default: three times that of training"),         \
      COMPUTE(p "local", KEY_TIME, 0, in(compute.local_s), 1e6, NULL,                              \
              "time from a worker's gradient to its next parameters, without the work of the PS"), \
      COMPUTE(p "resume", KEY_TIME, 0, in(compute.resume_s), 1e6, NULL,                            \
              "extra time of each of the first 8 steps after a worker has waited 5 ms or more"),   \
      COMPUTE(p "pass", KEY_TIME, 0, in(compute.pass_s), 1e6, "pipeline.stages",                   \
              "constant time added to each F, B and W pass of a pipeline"),                        \
      COMPUTE(p "update", KEY_TIME, 0, in(compute.update_s), 1e6, NULL,                            \
              "time that the parameter server takes to apply a step"),                             \
      COMPUTE(p "apply", KEY_TIME, 0, in(compute.apply_s), 1e6, NULL,                              \
              "time that the parameter server takes to apply a message"),                          \
      COMPUTE(p "encode", KEY_TIME, 0, in(compute.encode_s), 1e6, NULL,                            \
              "time that the parameter server takes to prepare a message"),                        \
      COMPUTE(p "checkpoint", KEY_RATE, KEY_ABOVE_MIN, in(compute.checkpoint_bps), 0, NULL,        \
              "rate at which checkpoints are written")

/* The rates of one codec; a list of rows, each with a comma. */
#define CODEC_ROWS(p, in, constant, name)                                                          \
  COMPUTE(p "codec." name ".encode", KEY_RATE, KEY_ABOVE_MIN,                                      \
          in(compute.codecs[constant].encode_bps), 0, NULL,                                        \
          "float32 that the parameter server encodes with " name                                   \
          " per second; default: encoding takes no time"),                                         \
      COMPUTE(p "codec." name ".decode", KEY_RATE, KEY_ABOVE_MIN,                                  \
              in(compute.codecs[constant].decode_bps), 0, NULL,                                    \
              "float32 that it decodes per second"),
#define CODEC_ROWS_OF_JOB(constant, name, table, facts) CODEC_ROWS("compute.", AT, constant, name)
#define CODEC_ROWS_OF_REGION(constant, name, table, facts)                                         \
  CODEC_ROWS("regions[].compute.", IN_REGION, constant, name)
