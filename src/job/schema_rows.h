/* For the table of job keys: the masks of strategies and codecs that have a key; rows that the
   table has twice, of a gt_job_compute, of a link and of a gt_job_store; and those of a store and
   of a fault.  Private to schema.c, whose macros OF, AT, COUNT, IN_REGION and IN_LINK they use. */
#pragma once

/* The strategies with a key, and the codecs with one: base_families.h. */
#define IF_PERIODIC(constant, name, table, facts) | ((facts)&GT_HAS_PERIOD ? OF(constant) : 0)
#define IF_UPDATES(constant, name, table, facts)  | ((facts)&GT_HAS_UPDATES ? OF(constant) : 0)
#define IF_MERGES(constant, name, table, facts)   | ((facts)&GT_HAS_MERGE ? OF(constant) : 0)
#define IF_OUTER(constant, name, table, facts)    | ((facts)&GT_HAS_OUTER ? OF(constant) : 0)
#define AVERAGING                                 (0 GT_STRATEGIES(IF_OUTER))
#define IF_SENDS(constant, name, table, facts)    | ((facts)&GT_SENDS ? OF(constant) : 0)
#define SENDING                                   (0 GT_STRATEGIES(IF_SENDS))
#define CODECS(set)                               .choice = "sync.codec.name", .compared = "plan.codecs", .having = (set)
#define IF_ROUNDS(constant, name, table, facts)   | ((facts)&GT_ROUNDS ? OF(constant) : 0)
#define IF_DENSITY(constant, name, table, facts)  | ((facts)&GT_DENSITY ? OF(constant) : 0)
#define IF_MOMENTUM(constant, name, table, facts) | ((facts)&GT_MOMENTUM ? OF(constant) : 0)
#define ROUNDING                                  (0 GT_CODECS(IF_ROUNDS))
#define SPARSE                                    (0 GT_CODECS(IF_DENSITY))
#define MOMENTUM                                  (0 GT_CODECS(IF_MOMENTUM))
#define DECAYING                                  ((OF(GT_CODEC_KINDS) - 2) & ~(MOMENTUM))
#define OUTERS(set)                               .choice = "sync.outer.name", .having = (set)
#define PERIODIC                                  (0 GT_STRATEGIES(IF_PERIODIC))
#define UPDATES                                   (0 GT_STRATEGIES(IF_UPDATES))
#define MERGES                                    (0 GT_STRATEGIES(IF_MERGES))

#define OPTIONAL(key, type, flags, at, most, list, text)                                           \
  { key, type, KEY_OPTIONAL | (flags), at, .max = (most), .with = (list), .meaning = (text) }
/* The keys of a gt_job_compute, of all regions and of one. */
#define COMPUTE_ROWS(p, in)                                                                        \
  OPTIONAL(p "samples_per_s", KEY_REAL, KEY_ABOVE_MIN, in(compute.samples_per_s), 1e15, NULL,      \
           "speed of one worker in training, for the virtual clock"),                              \
      OPTIONAL(p "step", KEY_TIME, KEY_ABOVE_MIN, in(compute.step_s), 1e6, NULL,                   \
               "time of a full batch on one worker; instead of samples_per_s"),                    \
      OPTIONAL(                                                                                    \
          p "speed", KEY_REAL, KEY_ABOVE_MIN, in(compute.speed), 1, NULL,                          \
          "factor on the speed of the workers; under the real clock, workers are slowed down "     \
          "to it"),                                                                                \
      OPTIONAL(p "eval_samples_per_s", KEY_REAL, KEY_ABOVE_MIN, in(compute.eval_samples_per_s),    \
               1e15, NULL,                                                                         \
               "speed of one worker in evaluation; default: three times that of training"),        \
      OPTIONAL(                                                                                    \
          p "local", KEY_TIME, 0, in(compute.local_s), 1e6, NULL,                                  \
          "time from a worker's gradient to its next parameters, without the work of the PS"),     \
      OPTIONAL(p "resume", KEY_TIME, 0, in(compute.resume_s), 1e6, NULL,                           \
               "extra time of each of the first 8 steps after a worker has waited 5 ms or more"),  \
      OPTIONAL(p "pass", KEY_TIME, 0, in(compute.pass_s), 1e6, "pipeline.stages",                  \
               "constant time added to each F, B and W pass of a pipeline"),                       \
      OPTIONAL(p "update", KEY_TIME, 0, in(compute.update_s), 1e6, NULL,                           \
               "time that the parameter server takes to apply a step"),                            \
      OPTIONAL(p "apply", KEY_TIME, 0, in(compute.apply_s), 1e6, NULL,                             \
               "time that the parameter server takes to apply a message"),                         \
      OPTIONAL(p "encode", KEY_TIME, 0, in(compute.encode_s), 1e6, NULL,                           \
               "time that the parameter server takes to prepare a message"),                       \
      OPTIONAL(p "checkpoint", KEY_RATE, KEY_ABOVE_MIN, in(compute.checkpoint_bps), 0, NULL,       \
               "rate at which checkpoints are written")

/* The rates of one codec; a list of rows, each with a comma. */
#define CODEC_ROWS(p, in, constant, name)                                                          \
  OPTIONAL(p "codec." name ".encode", KEY_RATE, KEY_ABOVE_MIN,                                     \
           in(compute.codecs[constant].encode_bps), 0, NULL,                                       \
           "float32 that the parameter server encodes with " name                                  \
           " per second; default: encoding takes no time"),                                        \
      OPTIONAL(p "codec." name ".decode", KEY_RATE, KEY_ABOVE_MIN,                                 \
               in(compute.codecs[constant].decode_bps), 0, NULL,                                   \
               "float32 that it decodes per second"),
#define CODEC_ROWS_OF_JOB(constant, name, table, facts) CODEC_ROWS("compute.", AT, constant, name)
#define CODEC_ROWS_OF_REGION(constant, name, table, facts)                                         \
  CODEC_ROWS("regions[].compute.", IN_REGION, constant, name)

/* The keys of a link with the default that the job gives for all links, or the model's. */
#define LINK_ROWS(p, in)                                                                           \
  OPTIONAL(p "setup", KEY_REAL, 0, in(setup_rtts), 100, NULL,                                      \
           "round trips before a frame larger than eager is sent"),                                \
      OPTIONAL(p "eager", KEY_SIZE, 0, in(eager_bytes), 0, NULL,                                   \
               "frames up to this size need no set-up"),                                           \
      OPTIONAL(p "window", KEY_SIZE, 0, in(window_bytes), 0, NULL,                                 \
               "bytes that leave in the first round trip after idle; doubles every round trip "    \
               "(slow start)"),                                                                    \
      OPTIONAL(p "idle", KEY_TIME, 0, in(idle_s), 86400, NULL,                                     \
               "idle time after which slow start begins again")

#define TRANSPORT(constant) .choice = "wan.transport", .having = OF(constant)
#define OF_STORE(key, type, flags, at, most, text)                                                 \
  {                                                                                                \
    key, type, KEY_OPTIONAL | KEY_LENIENT | (flags), at, .max = (most), TRANSPORT(GT_WAN_STORE),   \
                                                         .meaning = (text)                         \
  }
/* The keys of a gt_job_store, of all regions and of one. */
#define STORE_ROWS(p, in)                                                                          \
  OF_STORE(p "upload", KEY_RATE, KEY_ABOVE_MIN, in(upload_bps), 0,                                 \
           "model of the store: rate of a region's writes; default: unlimited"),                   \
      OF_STORE(p "download", KEY_RATE, KEY_ABOVE_MIN, in(download_bps), 0,                         \
               "model of the store: rate of a region's reads; default: unlimited"),                \
      OF_STORE(p "latency", KEY_TIME, 0, in(latency_s), 86400,                                     \
               "model of the store: time of a bit from a region to it, or back"),                  \
      OF_STORE(p "request", KEY_TIME, 0, in(request_s), 86400,                                     \
               "model of the store: time in which it answers a request of a region")

#define IN_STORE(member) AT(wan.store.of.member)
#define IN_OWN(member)   IN_REGION(store.member)
#define WAN_STORE_ROWS                                                                             \
  OF_STORE("wan.store.url", KEY_STRING, TLS, AT(wan.store.url), 0,                                 \
           "file:///FOLDER, which all regions reach, or s3://BUCKET/PREFIX"),                      \
      {"wan.store.poll",                                                                           \
       KEY_TIME,                                                                                   \
       KEY_ABOVE_MIN | KEY_ON_RESUME | KEY_LENIENT,                                                \
       AT(wan.store.poll_s),                                                                       \
       .fallback = "200 ms",                                                                       \
       .max = 60,                                                                                  \
       TRANSPORT(GT_WAN_STORE),                                                                    \
       .meaning = "time between two looks for a message that has not come"},                       \
      OF_STORE("wan.store.place", KEY_STRING, PLANNED | KEY_WORD, AT(wan.store.place), 0,          \
               "place of the store in the catalogue of rates, CLOUD:PLACE; default: no cost"),     \
      STORE_ROWS("wan.store.", IN_STORE),                                                          \
      OF_STORE("wan.store.lag", KEY_TIME, 0, AT(wan.store.lag_s), 86400,                           \
               "model of the store: time until others see what a region has written"),             \
      {"wan.store.trigger",                                                                        \
       KEY_CHOICE,                                                                                 \
       KEY_LENIENT,                                                                                \
       AT(wan.store.trigger),                                                                      \
       .fallback = "poll",                                                                         \
       .values = gt_trigger_names,                                                                 \
       TRANSPORT(GT_WAN_STORE),                                                                    \
       .meaning = "model of the store: regions look for messages; or the region of sync.central "  \
                  "or sync.hub is a function that the store invokes for every message"},           \
      OF_STORE("wan.store.start", KEY_TIME, 0, AT(wan.store.start_s), 86400,                       \
               "trigger event: time from an object's arrival to the start of the function")

#define IN_FAULT(member) .offset = offsetof(gt_job_fault, member)
#define FAULT(key, type, flags, member, text)                                                      \
  OPTIONAL("faults[]." key, type, flags, IN_FAULT(member), 1e8, NULL, text)
/* A time that can be 0. */
#define FAULT_TIME(key, member, text)                                                              \
  { "faults[]." key, KEY_TIME, KEY_UNSAID, IN_FAULT(member), .max = 1e8, .meaning = (text) }
#define FAULT_ROWS                                                                                 \
  {"faults",                                                                                       \
   KEY_MAPS,                                                                                       \
   KEY_OPTIONAL | KEY_ON_RESUME,                                                                   \
   AT(faults),                                                                                     \
   COUNT(nfaults),                                                                                 \
   sizeof(gt_job_fault),                                                                           \
   .max = 1e6,                                                                                     \
   .meaning = "list of faults, for `geotrain simulate` and `plan`: regions are lost and return, "  \
              "links are cut; times are counted from the start of the run"},                       \
      FAULT("region", KEY_STRING, 0, region, "name of the region that is lost, or of mtbf"),       \
      FAULT_TIME("lost", lost_s, "time at which the region is lost"),                              \
      FAULT("back", KEY_TIME, KEY_ABOVE_MIN, back_s,                                               \
            "time at which it has started again; default: it does not return"),                    \
      FAULT("link", KEY_PAIR, 0, a, "names of two regions"),                                       \
      FAULT_TIME("cut", cut_s, "time at which the link is cut"),                                   \
      FAULT_TIME("coordinator", coordinator_s,                                                     \
                 "time at which the first region in job order that is not lost is lost"),          \
      FAULT("for", KEY_TIME, KEY_ABOVE_MIN, for_s, "length of a cut, or of that loss"),            \
      FAULT("mtbf", KEY_TIME, KEY_ABOVE_MIN, mtbf_s,                                               \
            "mean time from the start of the region to its loss; both times are exponential, by "  \
            "the job's seed; default: in every region"),                                           \
      FAULT("mttr", KEY_TIME, KEY_ABOVE_MIN, mttr_s, "mean time until it has started again")
