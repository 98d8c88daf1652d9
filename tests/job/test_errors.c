/* Every kind of error in a job file: exit status 2 and a sentence that names the file, the key,
   what was found and what was expected. */
#include <unistd.h>

#include "world.h"
#include "internal.h"

static const char base[] =
    "name: tiny\nmodel: {name: lenet5}\ndata: {path: d.h5}\ntrain: {until: {steps: 5}, optimizer: "
    "{lr: 0.1}}\n"
    "regions:\n  - {name: shanghai, ranks: 2}\n  - {name: chongqing, ranks: 3}\n";

/* `expected` is the whole sentence; a leading '@' stands for the file's name. */
static void refused(const char *text, const char *set, const char *expected) {
  assert_true(expected[0] == '@' || strncmp(expected, "--set", 5) == 0);
  w_refused(text, NULL, &set, set ? 1 : 0, expected);
}

static void with(const char *more, const char *expected) {
  w_refused(base, more, NULL, 0, expected);
}

static void set(const char *assignment, const char *expected) {
  refused(base, assignment, expected);
}

#define REMOVE "give a value, or remove the key; # begins a comment unless in quotes"

/* A key without a value is not the same as one that is null. */
static void no_values(void) {
  with("sync: {strategy:sma, period:2}\n",
       "@:8: sync.strategy:sma has no value; a space must follow the colon: strategy: sma");
  with("wan: {emulate: true,\n  jitter:5 ms}\n",
       "@:9: wan.jitter:5 ms has no value; a space must follow the colon: jitter: 5 ms");
  with("checkpoint: {keep: 0,9}\n",
       "@:8: checkpoint.9 has no value; a decimal point instead of a comma: keep: 0.9");
  with("sync:\n  perod:\n", "@:9: sync.perod has no value; " REMOVE);
  with("slurm:\n", "@:8: slurm has no value; " REMOVE);
  with("wan:\n  links: [{between: [shanghai, chongqing], loss: }]\n",
       "@:9: wan.links.0.loss has no value; " REMOVE);
  with("sync: {perod: null}\n", "@: unknown key sync.perod; did you mean sync.period?");
  with("wan: {links: [{between: [shanghai, chongqing], los: ~}]}\n",
       "@: unknown key wan.links.0.los; did you mean wan.links.0.loss?");
  set("train.until={steps:1}", "--set train.until: train.until.steps:1 has no value; a space must "
                               "follow the colon: steps: 1");
  set("slurm.account=#1", "--set slurm.account has no value; # begins a comment unless in quotes, "
                          "as in slurm.account='\"#1\"'");
  set("train.until={stpes: null}", "--set train.until: unknown key train.until.stpes; did you mean "
                                   "train.until.steps?");
}

static void keys(void) {
  with("sync: {perod: 8}\n", "@: unknown key sync.perod; did you mean sync.period?");
  with("period: 8\n", "@: unknown key period; did you mean sync.period?");
  with("snyc: {period: 8}\n", "@: unknown key snyc; did you mean sync?");
  with("sync.period: 8\n",
       "@: unknown key sync.period; expected one of name, seed, model, data, train, regions, "
       "pipeline, sync, wan, faults, compute, profile, checkpoint, limits, log, plan, slurm there");
  with("checkpoint: {colour: red}\n",
       "@: unknown key checkpoint.colour; expected one of every, keep there");
  with("wan: {links: [{between: [shanghai, chongqing], latncy: 3 ms}]}\n",
       "@: unknown key wan.links.0.latncy; did you mean wan.links.0.latency?");
  with("seed: 1\nseed: 2\n", "@:9: key seed is given twice in one place; expected once");
  with("sync: {period: 1, period: 2}\n",
       "@:8: key period is given twice in one place; expected once");
  with("sync: 5\n", "@: sync is \"5\"; expected a mapping of keys");
  with("seed: [1]\n", "@: seed is a list; expected an integer, 0 or more");
  with("sync: {period: {a: 1}}\n", "@: sync.period is a mapping; expected an integer, 1 or more");
  set("sync.perod=8", "--set: unknown key sync.perod; did you mean sync.period?");
  set("regions.0.rank=8", "--set: unknown key regions.0.rank; did you mean regions.0.ranks?");
  set("regions.3.ranks=8",
      "--set: regions has entries 0 to 2, the last one new; regions.3 is none of them");
  set("regions.x.ranks=8", "--set: regions has entries 0 to 2, the last one new; regions.x is none "
                           "of them; they go by number: shanghai is regions.0");
  set("regions.chongqing.ranks=3", "--set: regions has entries 0 to 2, the last one new; "
                                   "regions.chongqing is none of them; chongqing is regions.1");
  with("wan: {links: [{between: [shanghai, chongqing], bw: 3}]}\n",
       "@: unknown key wan.links.0.bw; expected one of between, from, to, bandwidth, latency, "
       "jitter, loss, trace, setup, eager, window, idle there");
  set("regions.0.samples_per_s=8",
      "--set: unknown key regions.0.samples_per_s; did you mean regions.0.compute.samples_per_s?");
  set("name.x=8", "--set: name is not a mapping in the job file; name.x cannot be set");
  set("sync", "--set sync: expected key=value, as in sync.period=4");
  set("=4", "--set =4: expected key=value, as in sync.period=4");
  set("sync.period=",
      "--set sync.period: nothing follows the =; expected a value, or null for the default");
  set("sync.period= ",
      "--set sync.period: nothing follows the =; expected a value, or null for the default");
  set("sync.period={", "--set sync.period:2: is not YAML: did not find expected node content while "
                       "parsing a flow node");
}

static void values(void) {
  with("sync: {period: 0}\n", "@: sync.period is 0; expected 1 or more");
  with("sync: {period: -3}\n", "@: sync.period is -3; expected 1 or more");
  with("sync: {period: 1.5}\n", "@: sync.period is \"1.5\"; expected an integer, 1 or more");
  with("sync: {period: many}\n", "@: sync.period is \"many\"; expected an integer, 1 or more");
  with("sync: {period: 99999999999999999999}\n",
       "@: sync.period is 99999999999999999999; expected at most 1e+15");
  with("sync: {strategy: asgdga}\n", "@: sync.strategy is \"asgdga\"; expected one of none, ssgd, "
                                     "asgd, asgd-ga, ama, sma; did you mean asgd-ga?");
  with("sync: {strategy: telepathy}\n",
       "@: sync.strategy is \"telepathy\"; expected one of none, ssgd, asgd, asgd-ga, ama, sma");
  with("sync: {local: both}\n", "@: sync.local is \"both\"; expected one of sync, async");
  with("sync: {topology: star}\n",
       "@: sync.topology is \"star\"; expected one of mesh, hub, tree, ring, auto");
  with("sync: {topology: ring, hub: a}\n",
       "@: sync.hub is \"a\" and sync.topology ring; sync.hub requires topology hub");
  with("sync: {topology: hub, hub: nowhere}\n",
       "@: sync.hub is \"nowhere\", which is not a region of the job; expected the name of one");
  with("faults: [{lost: 10 s}]\n", "@: faults.0 has lost without region; expected both");
  with("faults: [{region: shanghai}]\n",
       "@: faults.0 has 0 of lost, cut, coordinator and mtbf; expected exactly one");
  with("faults: [{region: shanghai, lost: 1 s, mtbf: 1 h}]\n",
       "@: faults.0 has 2 of lost, cut, coordinator and mtbf; expected exactly one");
  with("faults: [{mtbf: 1 h}]\n", "@: faults.0 has mtbf without mttr; expected both");
  with("faults: [{coordinator: 0 s, for: 5 s}, {link: [shanghai, chongqing], cut: 0 s}]\n",
       "@: faults.1 has cut without for; expected both");
  with("faults: [{coordinator: 0 s, for: 5 s, back: 9 s}]\n",
       "@: faults.0 has coordinator and back; expected one of them");
  with("faults: [{region: shanghai, lost: 10 s, back: 10 s}]\n",
       "@: faults.0.back is 10 s and lost 10 s; back must be later");
  with("faults: [{region: hai, lost: 10 s}]\n",
       "@: faults.0.region is \"hai\", which is not a region of the job; expected the name of one");
  with("faults: [{link: [shanghai, shanghai], cut: 10 s, for: 1 s}]\n",
       "@: faults.0.link names shanghai twice; expected two regions");
  with("faults: [{link: [shanghai, chongqing], cut: 1 s, for: 10 s}, {link: [chongqing, shanghai], "
       "cut: 10 s, for: 1 s}]\n",
       "@: faults.0 and faults.1 cut the link of chongqing and shanghai at the same time; expected "
       "one cut for all of it");
  with("faults: [{mtbf: 1 h, mttr: 6 min}]\nlimits: {wan_bytes: 1 GiB}\n",
       "@: faults is given with limits.wan_bytes; expected one of them");
  with("sync: {on_loss: continue, tie: nowhere}\n",
       "@: sync.tie is \"nowhere\", which is not a region of the job; expected the name of one");
  with("sync: {tie: a}\n", "@: sync.tie is given and sync.on_loss is stop; it is for sync.on_loss "
                           "continue only");
  with("sync: {strategy: ssgd, on_loss: continue, central: shanghai}\n",
       "@: sync.on_loss is continue with sync.central; expected stop");
  with("sync: {on_loss: continue}\nlimits: {wan_bytes: 1 GiB}\n",
       "@: sync.on_loss is continue with limits.wan_bytes; expected stop");
  with("sync: {on_loss: continue, min_regions: 3}\n",
       "@: sync.min_regions is 3, and regions has 2 entries; expected at most as many");
  with(
      "sync: {on_loss: continue, min_regions: 1}\n",
      "@: sync.min_regions is given, and regions.0.samples is not; expected the number of training "
      "samples of every region that trains");
  refused(
      "name: tiny\nmodel: {name: lenet5}\ndata: {path: d.h5}\n"
      "train: {until: {steps: 5}, optimizer: {lr: 0.1}}\n"
      "regions: [{name: a, ranks: 1}, {name: b, ranks: 2, samples: 9}]\n"
      "sync: {on_loss: continue, min_regions: 1}\n",
      NULL,
      "@: sync.min_regions is given, and region a, the first, does not train; expected one that "
      "trains, because no run begins without it");
  with("sync: {min_regions: 1}\n",
       "@: sync.min_regions is given and sync.on_loss is stop; it is for "
       "sync.on_loss continue only");
  with("sync: {strategy: sma, period: 129, fragments: 129, on_loss: continue}\n",
       "@: sync.fragments is 129 with sync.on_loss continue; expected at most 128");
  with("sync: {strategy: ssgd, central: shangai}\n",
       "@: sync.central is \"shangai\", which is not a region of the job; expected the name of "
       "one; did you mean shanghai?");
  with("sync: {strategy: ssgd, central: shanghai, topology: hub}\n",
       "@: sync.central is \"shanghai\" and sync.topology hub; expected one of the two");
  with("sync: {strategy: ssgd, central: shanghai, hub: chongqing}\n",
       "@: sync.central is \"shanghai\" and sync.hub \"chongqing\"; expected one of the two");
  with("sync: {strategy: ssgd, central: shanghai, local: async}\n",
       "@: sync.central is \"shanghai\" and sync.local async; sync.central requires sync.local "
       "sync");
  with("sync: {strategy: sma, topology: hub, quorum: 0.5}\n",
       "@: sync.quorum is 0.5; expected more than 0.5 and at most 1");
  with("sync: {strategy: sma, quorum: 0.6}\n",
       "@: sync.quorum is 0.6 with sync.topology mesh; expected sync.topology hub");
  with("sync: {strategy: sma, central: shanghai, quorum: 0.6}\n",
       "@: sync.quorum is 0.6 with sync.central; expected sync.topology hub");
  with("sync: {strategy: sma, topology: hub, quorum: 0.6, codec: {name: mask}}\n",
       "@: sync.codec.name is mask with strategy sma and topology hub: the codec's payloads add up "
       "within one round; it requires sync.quorum 1");
  with("sync: {strategy: sma, topology: hub, quorum: 0.6}\nplan: {codecs: [powersgd]}\n",
       "@: plan.codecs is powersgd with strategy sma and topology hub: the codec's payloads add up "
       "within one round; it requires sync.quorum 1");
  with("sync: {strategy: ssgd, topology: tree, codec: {name: dgc}}\n",
       "@: sync.codec.name is dgc with strategy ssgd and topology tree: the codec would apply its "
       "momentum to sums, too; it requires topology mesh");
  with("sync: {strategy: sma, codec: {name: mask, density: 0.3}}\n",
       "@: sync.codec.density is 0.3; with sync.codec.name mask it must be 1/k for a whole number "
       "k, such as 0.33333");
  with("sync: {strategy: ssgd, codec: {name: topk, density: 0.7}}\nplan: {codecs: [topk, dgc]}\n",
       "@: sync.codec.density is 0.7; with sync.codec.name dgc it must be from 1/4096 to 0.5");
  with(
      "sync: {strategy: ama, codec: {name: int8, decay: 0.5}}\n",
      "@: sync.codec.decay is 0.5 with strategy ama, whose models have no error feedback; expected "
      "1");
  with("sync: {strategy: sma, central: shanghai, guard: {outlier: 3}}\n",
       "@: sync.guard is given with sync.central; expected one message of each region");
  char central[1024];
  snprintf(central, sizeof central, "%ssync: {strategy: ssgd, central: shanghai}\n", base);
  refused(central, "regions.1.ranks=65537",
          "@: sync.central is \"shanghai\" and regions.1.ranks 65537; with sync.central, ranks "
          "must be at most 65536");
  with("wan: {outbox: 0}\n", "@: wan.outbox is 0; expected 1 or more and at most 1024");
  with("wan: {emulate: maybe}\n", "@: wan.emulate is \"maybe\"; expected true or false");
  with("limits: {local: 0 s}\n",
       "@: limits.local is 0 s; expected a time such as 25 ms, more than 0 s");
  with("limits: {nonfinite: 0}\n", "@: limits.nonfinite is 0; expected 1 or more");
  with("checkpoint: {keep: 0}\n", "@: checkpoint.keep is 0; expected 1 or more and at most 63");
  with("seed: -1\n", "@: seed is -1; expected 0 or more");
  with("seed: 99999999999999999999999\n",
       "@: seed is 99999999999999999999999; expected at most 1.8e+19");
  with("data: {partition: {alpha: 0}}\n",
       "@:8: key data is given twice in one place; expected once");
  set("data.partition.alpha=0", "--set: data.partition.alpha is 0; expected more than 0");
  set("data.partition.shares=[1, -1]", "--set: data.partition.shares.1 is -1; expected 0 or more");
  set("data.partition.shares=[1, 0]",
      "@: data.partition.shares.1 is 0, and region chongqing trains; expected a number above 0");
  set("train.batch=0", "--set: train.batch is 0; expected 1 or more");
  set("train.batch=1e3", "--set: train.batch is \"1e3\"; expected an integer, 1 or more");
  set("train.optimizer.lr=0", "--set: train.optimizer.lr is 0; expected more than 0");
  set("train.optimizer.lr=-0.1", "--set: train.optimizer.lr is -0.1; expected more than 0");
  set("train.optimizer.lr=nan",
      "--set: train.optimizer.lr is \"nan\"; expected a number, more than 0");
  set("train.optimizer.lr=0x1",
      "--set: train.optimizer.lr is \"0x1\"; expected a number, more than 0");
  set("train.optimizer.lr=1e999", "--set: train.optimizer.lr is 1e999; expected at most 1e+06");
  set("train.optimizer.momentum=1",
      "--set: train.optimizer.momentum is 1; expected 0 or more and less than 1");
  set("train.optimizer.momentum=-0.1",
      "--set: train.optimizer.momentum is -0.1; expected 0 or more and less than 1");
  set("train.optimizer.name=adamv", "--set: train.optimizer.name is \"adamv\"; expected one of "
                                    "sgd, adam, adamw; did you mean adam?");
  set("train.schedule.gamma=1.5",
      "--set: train.schedule.gamma is 1.5; expected more than 0 and at most 1");
  set("train.precision=f16",
      "--set: train.precision is \"f16\"; expected one of f32, bf16; did you mean bf16?");
  set("train.kernels=cuda",
      "--set: train.kernels is \"cuda\"; expected one of auto, dnn, blas, ref");
  set("data.path=\"\"", "--set: data.path is empty; expected text");
  set("data.path=\"a\\nb\"", "--set data.path:1: a value has a control character or a line break "
                             "in it; expected one line of text");
  set("regions.0.ranks=0", "--set: regions.0.ranks is 0; expected 1 or more (or auto)");
  set("data.path=\"\\u009b31m\"", "--set data.path:1: a value has a control character or a line "
                                  "break in it; expected one line of text");
  set("regions=[]", "--set: regions is an empty list; expected 1 or more entries");
  set("regions=[5]", "--set: regions.0 is \"5\"; expected a mapping");
}

static void units(void) {
  set("slurm.time=4:00:00",
      "--set: slurm.time is \"4:00:00\"; expected a time with its unit, as in 4 h");
  set("slurm.time=1-12:30:00",
      "--set: slurm.time is \"1-12:30:00\"; expected a time with its unit, as in 2190 min");
  with("wan: {links: [{between: [shanghai, chongqing], latency: 25}]}\n",
       "@: wan.links.0.latency: \"25\" is not a time; expected a number of 0 or more with one of "
       "the units ns, us, ms, s, min, h, d, as in \"25 ms\"");
  with("wan: {links: [{between: [shanghai, chongqing], bandwidth: 100 MB/s}]}\n",
       "@: wan.links.0.bandwidth: \"100 MB/s\" is not a rate; expected a number of 0 or more with "
       "one of the units bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, as in \"100 Mbit/s\"");
  with("wan: {links: [{between: [shanghai, chongqing], bandwidth: 0 bit/s}]}\n",
       "@: wan.links.0.bandwidth is 0 bit/s; expected a rate such as 100 Mbit/s, more than 0");
}

static void across_keys(void) {
  set("data.partition.shares=[1, 2, 3]",
      "@: data.partition.shares has 3 numbers; expected 2, one per region");
  set("data.partition.shares=1,2",
      "--set: data.partition.shares is \"1,2\"; expected a list of numbers, in brackets: [1,2]");
  set("data.partition.shares=[]",
      "@: data.partition.shares has 0 numbers; expected 2, one per region");
  set("data.partition.by=file", "@: regions.0.data.path is missing; data.partition.by is file, so "
                                "every region needs its own data set");
  set("data.path=null",
      "@: data.path is missing; expected an HDF5 data set (region shanghai has none of its own)");
  set("train.until={steps: 5, epochs: 1}",
      "@: train.until has 2 of epochs, steps, samples; expected exactly one");
  set("train.until=null",
      "@: train.until has none of epochs, steps, samples above 0; expected exactly one");
  set("train.until.steps=0",
      "@: train.until has none of epochs, steps, samples above 0; expected exactly one");
  set("checkpoint.every={steps: 5, minutes: 1}",
      "@: checkpoint.every has 2 of epochs, steps, minutes; expected exactly one");
  set("train.schedule.name=step",
      "@: train.schedule.step_every is 0; with train.schedule.name step, it must be at least 1");
  set("train.schedule.lr_min=1",
      "@: train.schedule.lr_min is 1; expected at most train.optimizer.lr, 0.1");
  set("sync={strategy: sma, outer: {name: sgd, lr: 0.5, lr_min: 0.7}}",
      "@: sync.outer.lr_min is 0.7; expected at most sync.outer.lr, 0.5");
  set("sync={strategy: sma, outer: {name: nesterov, momentum: 0}}",
      "@: sync.outer.name is nesterov and sync.outer.momentum 0; expected a momentum above 0, or "
      "sync.outer.name sgd");
  set("train.optimizer.nesterov=true", "@: train.optimizer.nesterov is true and "
                                       "train.optimizer.momentum 0; expected a momentum above 0");
  set("compute={samples_per_s: 5, step: 1 s}",
      "@: compute has samples_per_s and step; expected one of them");
  set("regions.1.name=Shanghai",
      "@: regions.0 and regions.1 are both named Shanghai; expected different names");
  set("name=../../esc", "@: name is \"../../esc\"; expected a name for a folder, without slash and "
                        "not beginning with a dot");
  set("name=a/b", "@: name is \"a/b\"; expected a name for a folder, without slash and not "
                  "beginning with a dot");
  set("regions.1.name=a/b", "@: regions.1.name is \"a/b\"; expected a name for files: letters, "
                            "digits, dot, dash and underscore, a letter or digit first");
  set("regions.1.name=..", "@: regions.1.name is \"..\"; expected a name for files: letters, "
                           "digits, dot, dash and underscore, a letter or digit first");
  set("regions.1.name=0123456789012345678901234567890123456789012345678901234567890123",
      "@: regions.1.name has 64 letters; expected at most 63");
  set("regions.1.hosts=[n1]", "@: regions.1.hosts and regions.0.hosts are given in one region "
                              "only; expected hosts of all regions or of none");
  set("regions=[{name: a, ranks: 2, hosts: [n1, n2]}, {name: b, ranks: 2, hosts: [n2]}]",
      "@: host \"n2\" is named in regions.0.hosts and again in regions.1.hosts; expected once");
  with(
      "wan: {transport: store, store: {url: file:///a, poll: 2 s}}\nlimits: {wan_patience: 5 s}\n",
      "@: wan.store.poll is 2 s and limits.wan_patience 5 s; expected a patience of three polls or "
      "more, so that no region counts as lost between two looks");
  set("wan.links=[{between: [shanghai, chonqing]}]",
      "@: wan.links.0.between names \"chonqing\"; expected the name of a region; did you mean "
      "chongqing?");
  set("wan.links=[{between: [shanghai, shanghai]}]",
      "@: wan.links.0.between names shanghai twice; expected two regions");
  set("wan.links=[{between: [shanghai]}]",
      "--set: wan.links.0.between has 1 entries; expected two names of regions");
  set("wan.links=[{latency: 1 ms}]",
      "@: wan.links.0 has neither between nor from and to; expected one of the two");
  set("wan.links=[{between: [shanghai, chongqing]}, {between: [chongqing, shanghai]}]",
      "@: wan.links.0 and wan.links.1 are both between chongqing and shanghai; expected one for "
      "both directions");
}

static void links(void) {
  set("wan.links=[{from: shanghai}]",
      "@: wan.links.0.to is missing; expected from and to together");
  set("wan.links=[{to: shanghai}]",
      "@: wan.links.0.from is missing; expected from and to together");
  set("wan.links=[{between: [shanghai, chongqing], to: shanghai}]",
      "@: wan.links.0 has between and to; expected between, or from and to");
  set("wan.links=[{from: shanghia, to: chongqing}]",
      "@: wan.links.0.from names \"shanghia\"; expected the name of a region; did you mean "
      "shanghai?");
  set("wan.links=[{from: shanghai, to: berlin}]",
      "@: wan.links.0.to names \"berlin\"; expected the name of a region");
  set("wan.links=[{from: shanghai, to: shanghai}]",
      "@: wan.links.0.from and to are both shanghai; expected two regions");
  set("wan.links=[{from: shanghai, to: chongqing}, {from: shanghai, to: chongqing}]",
      "@: wan.links.0 and wan.links.1 both give the direction from shanghai to chongqing; expected "
      "one");
  set("wan.links=[{from: chongqing, to: shanghai}, {between: [shanghai, chongqing]}]",
      "@: wan.links.0 and wan.links.1 both give the direction from chongqing to shanghai; expected "
      "one");
  set("wan.links=[{from: shanghai, to: chongqing, trace: t.csv, bandwidth: 1 Mbit/s}]",
      "@: wan.links.0 has trace and bandwidth; expected one of them");
  set("wan.links=[{from: shanghai, to: chongqing, loss: 1}]",
      "--set: wan.links.0.loss is 1; expected 0 or more and less than 1");
  set("wan.links=[{from: shanghai, to: chongqing, windw: 1 KiB}]",
      "--set: unknown key wan.links.0.windw; did you mean wan.links.0.window?");
  set("regions.0.access=0 bit/s",
      "--set: regions.0.access is 0 bit/s; expected a rate such as 100 Mbit/s, more than 0");
}

static void outages(void) {
  set("wan.outages=[{from: 1 s, for: 2 s}]",
      "@: wan.outages.0.between is missing; the job must give it: names of two regions");
  set("wan.outages=[{between: [shanghai, chongqing], from: 1 s}]",
      "@: wan.outages.0.for is missing; the job must give it: length of the outage");
  set("wan.outages=[{between: [shanghai, chongqing], for: 0 s}]",
      "--set: wan.outages.0.for is 0 s; expected a time such as 25 ms, more than 0 s");
  set("wan.outages=[{between: [shanghai, chonqing], for: 2 s}]",
      "@: wan.outages.0.between names \"chonqing\"; expected the name of a region; did you mean "
      "chongqing?");
  set("wan.outages=[{between: [shanghai, shanghai], for: 2 s}]",
      "@: wan.outages.0.between names shanghai twice; expected two regions");
  set("wan.outages=[{between: [shanghai, chongqing], from: 5 s, for: 2 s}, {between: [chongqing, "
      "shanghai], from: 4 s, for: 1.5 s}]",
      "@: wan.outages.1 and wan.outages.0 of shanghai and chongqing overlap; expected one outage "
      "for that time");
}

static void work(void) {
  set("regions.1.compute={samples_per_s: 5, step: 1 s}",
      "@: regions.1.compute has samples_per_s and step; expected one of them");
  set("regions.1.compute.speeds=[1]",
      "@: regions.1.compute.speeds has 1 numbers; ranks is 3, so expected 2, one per worker");
  set("regions.1.compute.measured=[1]",
      "@: regions.1.compute.measured has 1 numbers; ranks is 3, so expected 2, one per worker");
  set("regions.1.compute.speeds=[]",
      "@: regions.1.compute.speeds has 0 numbers; ranks is 3, so expected 2, one per worker");
  set("regions.1.compute.speeds=[1, 1.5]",
      "--set: regions.1.compute.speeds.1 is 1.5; expected more than 0 and at most 1");
  set("compute.speed=0", "--set: compute.speed is 0; expected more than 0 and at most 1");
  set("compute.variation=1", "--set: compute.variation is 1; expected 0 or more and less than 1");
  set("model.parameters=1000", "@: model.parameters is 1000 and model.name lenet5; a number of "
                               "parameters is for model.name dummy only");
  set("model.embedding=16",
      "@: model.embedding is given and model.name is lenet5; it is for model.name deepfm, lstm "
      "only");
  set("model={name: deepfm, hidden: 8}",
      "@: model.hidden is given and model.name is deepfm; it is for model.name lstm, niser "
      "only");
  set("model.scale=8",
      "@: model.scale is given and model.name is lenet5; it is for model.name niser "
      "only");
  set("model={name: niser, scale: 0}", "--set: model.scale is 0; expected more than 0");
  set("model={name: lstm, hidden: 0}",
      "--set: model.hidden is 0; expected 1 or more and at most 65536");
  set("model.mlp=[64]",
      "@: model.mlp is given and model.name is lenet5; it is for model.name deepfm, mlp only");
  set("model={name: deepfm, mlp: []}",
      "@: model.mlp is empty; expected the width of 1 layer or more");
  set("model={name: deepfm, mlp: [64, 0]}",
      "--set: model.mlp.1 is 0; expected 1 or more and at most 65536");
  set("model={name: deepfm, mlp: [64.5]}",
      "--set: model.mlp.0 is \"64.5\"; expected an integer, 1 or more and at most 65536");
  set("model={name: deepfm, mlp: [70000]}", "--set: model.mlp.0 is 70000; expected at most 65536");
  set("model={name: deepfm, mlp: 64}",
      "--set: model.mlp is \"64\"; expected a list of integers, in brackets: [64]");
  set("model={name: deepfm, embedding: 0}",
      "--set: model.embedding is 0; expected 1 or more and at most 65536");
  set("model.parameters=2000000000",
      "--set: model.parameters is 2000000000; expected at most 1e+09");
  set("regions.0.speed=0.5",
      "--set: unknown key regions.0.speed; did you mean regions.0.compute.speed?");
  set("local=async", "--set: unknown key local; did you mean sync.local?");
  set("regions.1.compute.sped=0.5",
      "--set: unknown key regions.1.compute.sped; did you mean regions.1.compute.speed?");
}

/* Texts for batch scripts: no characters that are special to sbatch or a shell. */
static void slurm(void) {
  static const char need[] = "expected text for a batch script, without quotes, backslash, $, #";
  char expected[512];
  static const char *const bad[][3] = {{"slurm.account", "a\"b", "\""},
                                       {"slurm.qos", "a'b", "'"},
                                       {"slurm.partition", "a`id`", "`"},
                                       {"slurm.mpi", "a$b", "$"},
                                       {"slurm.constraint", "a#b", "#"}};
  for (size_t i = 0; i < COUNT(bad); i++) {
    char text[128], quoted[64];
    snprintf(quoted, sizeof quoted, strchr(bad[i][1], '\'') ? "\"%s\"" : "'%s'", bad[i][1]);
    snprintf(text, sizeof text, "%s=%s", bad[i][0], quoted);
    snprintf(expected, sizeof expected, "--set: %s is \"%s\" and has %s in it; %s or space",
             bad[i][0], bad[i][1], bad[i][2], need);
    set(text, expected);
  }
  snprintf(expected, sizeof expected,
           "--set: regions.0.slurm.partition is \"a b\" and has a space in it; %s or space", need);
  set("regions.0.slurm.partition=a b", expected);
  snprintf(expected, sizeof expected,
           "--set: slurm.options.1 is \"--a='b'\" and has ' in it; %s or line break", need);
  set("slurm.options=[--x, \"--a='b'\"]", expected);
  set("slurm.options=[exclusive]", "--set: slurm.options.0 is \"exclusive\"; expected an option of "
                                   "sbatch, with its dashes, as in --exclusive");
  set("regions.1.slurm.nodes=0", "--set: regions.1.slurm.nodes is 0; expected 1 or more");
  set("slurm.cpus_per_rank=0",
      "--set: slurm.cpus_per_rank is 0; expected 1 or more and at most 65535");
  set("slurm.signal_before=0 s", "--set: slurm.signal_before is 0 s; expected a time such as 25 "
                                 "ms, more than 0 s and at most 65535 s");
  set("slurm.signal_before=70000 s",
      "--set: slurm.signal_before is 70000 s; expected at most 65535 s");
  set("slurm.tiem=1 h", "--set: unknown key slurm.tiem; did you mean slurm.time?");
  with("slurm: {time: 1 min}\n", "@: slurm.signal_before is 120 s and slurm.time 60 s; "
                                 "slurm.signal_before must be less than slurm.time");
}

static void missing(void) {
  set("name=null", "@: name is missing; the job must give it: name of the run in records "
                   "and checkpoints");
  set("train.optimizer.lr=null",
      "@: train.optimizer.lr is missing; the job must give it: learning rate");
  set("regions.1.name=~", "@: regions.1.name is missing; the job must give it: name of the region "
                          "and of its files (letters, digits, dot, dash, underscore)");
  set("regions=null",
      "@: regions is missing; the job must give it: list of regions; a region is a set of "
      "ranks that are close to each other");
}

static void text(void) {
  refused("", NULL, "@: is empty; expected a job (`geotrain help job` shows one)");
  refused("# nothing\n", NULL, "@: is empty; expected a job (`geotrain help job` shows one)");
  refused("- a\n", NULL, "@: is a list; expected a mapping of keys (`geotrain help job`)");
  refused("hello\n", NULL, "@: is one value; expected a mapping of keys (`geotrain help job`)");
  refused("hello\n", "sync.period=4",
          "--set: the job is not a mapping in the job file; sync cannot be set");
  refused("name: a\nmodel: {name: b\nseed: 1\n", NULL,
          "@:3: is not YAML: did not find expected ',' or '}' while parsing a flow mapping");
  refused("name: a\n\tseed: 1\n", NULL,
          "@:2: is not YAML: found a tab character that violates indentation while scanning a "
          "plain scalar");
  refused("name: &x a\nseed: *x\n", NULL,
          "@:2: anchors and aliases are not read in a job file; write the value out");
  refused("name: a\n---\nname: b\n", NULL, "@:3: a second document begins; expected one");
  refused("name: a\n? [x]\n: 5\n", NULL, "@:2: a key is a list or a mapping; expected a word");
  refused("name: [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]\n", NULL,
          "@:1: nested deeper than 12; a job file needs less");
  refused("name: \xff\n", NULL,
          "@: is not YAML text: invalid leading UTF-8 octet at byte 6; expected UTF-8 without "
          "control characters");
}

static void files(void) {
  gt_job *job = NULL;
  must_say(gt_job_load(&job, "nothing.yaml", NULL, 0), GT_ERR_JOB,
           "nothing.yaml: cannot be opened: No such file or directory");
  must_say(gt_job_load(&job, ".", NULL, 0), GT_ERR_JOB, ".: cannot be read: Is a directory");
  const char *file = file_with("empty.yaml", "");
  assert_int_equal(truncate(file, ((off_t)128 << 20) + 1), 0);
  must_fail(gt_job_load(&job, file, NULL, 0), GT_ERR_JOB,
            "is longer than 128 MiB; expected a job file");
}

/* Checks a sentence about the job that other parts print after it was loaded. */
static void blamed(const gt_job *job, const char *said, const char *expected) {
  must_say(gt_job_blame(job, GT_FAIL(GT_ERR_JOB, "%s", said)), GT_ERR_JOB,
           w_sentence(in_folder("job.yaml"), expected));
}

static void found_later(void) {
  gt_job *job = w_job(base, NULL, NULL, 0);
  blamed(job, "train.batch is 3; expected 4", "@: train.batch is 3; expected 4");
  blamed(job, "regions.12.ranks is auto", "@: regions.12.ranks is auto");
  blamed(job, "regions.1 (a) has no data", "@: regions.1 (a) has no data");
  blamed(job, "regions.0.devices.2 (cpu) has", "@: regions.0.devices.2 (cpu) has");
  blamed(job, "data.partition.shares[1] is 0", "@: data.partition.shares[1] is 0");
  blamed(job, "wan.links: the link is", "@: wan.links: the link is");
  blamed(job, "compute says nothing", "@: compute says nothing");
  blamed(job, "tiny: no plan is possible", "@: no plan is possible");
  blamed(job, "plan: --svg draws", "plan: --svg draws");
  blamed(job, "train.bitch is 3", "train.bitch is 3");
  blamed(job, "1 rank was started", "1 rank was started");
  blamed(job, "--out x cannot be made", "--out x cannot be made");
  blamed(job, "rates.csv:2: rate is", "rates.csv:2: rate is");
  blamed(NULL, "train.batch is 3", "train.batch is 3");
  GT_FAIL(GT_ERR_DATA, "train.batch is 3");
  must_say(gt_job_blame(job, GT_ERR_DATA), GT_ERR_DATA, "train.batch is 3");
  must(gt_job_blame(job, GT_OK));
  gt_job_close(job);
}

TESTS(no_values, keys, values, units, across_keys, links, outages, work, missing, slurm, text,
      files, found_later)
