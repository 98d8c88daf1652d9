"""The cells of bench/virtual: small jobs that together use every strategy, topology and exchange
setting, every schedule of a pipeline, and replicas of pipelines.

A cell is a job, its number of ranks and its settings.  It is run under the virtual clock in parts,
which end at a fixed point of virtual time: by default a whole run, and the same run resumed from its
first checkpoint round, with the messages that were pending then.  Other parts are a run that
limits.wan_bytes ends (exit code 6) and its resume, and a run that is resumed with a larger
train.until."""
import dataclasses

STRATEGIES = ["ssgd", "asgd", "asgd-ga", "ama", "sma", "none"]
LIMIT_REACHED = 6  # exit code of geotrain

# Parts: (suffix of the line's name, or None: no line; words of the command line; exit code).
ROUND = (("", (), 0), ("+resumed", ("--resume-round", "1"), 0))
LIMIT = ((None, ("--set", "limits.wan_bytes=3MB"), LIMIT_REACHED), ("+resumed", ("--resume", "--set", "limits.wan_bytes=null"), 0))
LONGER = (("", ("--set", "train.until={steps: 11}"), 0), ("+resumed", ("--resume", "--set", "train.until={steps: 20}"), 0))


@dataclasses.dataclass(frozen=True)
class Cell:
    name: str
    job: str  # key of JOBS
    ranks: int
    sets: tuple = ()  # KEY=VALUE
    parts: tuple = ROUND
    env: tuple = ()  # (NAME, value)


# ---- jobs ---------------------------------------------------------------------------------------

LENET = """\
name: virtual
seed: 5
model: {name: lenet5}
train: {until: {epochs: 0.75}, batch: 32, choices: rule, optimizer: {name: sgd, lr: 0.05}, eval_every: {steps: 20}}
sync: {period: 4, weights: samples, scale: mean}
compute: {samples_per_s: 1500, variation: 0.2, local: 1 ms, update: 0.4 ms, apply: 0.3 ms, encode: 0.5 ms, checkpoint: 100 Mbit/s}
checkpoint: {every: {steps: 10}, keep: 63}
log: {every: 1 s}
"""

# Three regions with an uneven number of workers; four that differ in data and speed.
JOBS = {
    "3": LENET + """\
data: {path: data.h5, partition: {by: shares, shares: [4, 2, 1]}}
regions:
  - {name: london, ranks: 4, access: 60 Mbit/s, compute: {speeds: [1, 0.8, 0.5]}}
  - {name: mumbai, ranks: 2, compute: {speed: 0.6}}
  - {name: oregon, ranks: 2, compute: {samples_per_s: 900}}
wan:
  links:
    - {between: [london, mumbai], bandwidth: 50 Mbit/s, latency: 55 ms, jitter: 4 ms}
    - {between: [london, oregon], bandwidth: 80 Mbit/s, latency: 65 ms, jitter: 2 ms}
    - {from: mumbai, to: oregon, bandwidth: 20 Mbit/s, latency: 110 ms, jitter: 9 ms, loss: 0.0001}
    - {from: oregon, to: mumbai, bandwidth: 30 Mbit/s, latency: 100 ms, jitter: 9 ms, window: 20 kB, idle: 1 s}
  outages: [{between: [london, oregon], from: 600 ms, for: 500 ms}]
""",
    "4": LENET + """\
data: {path: data.h5, partition: {by: shares, shares: [4, 3, 2, 1]}}
regions:
  - {name: london, ranks: 2}
  - {name: mumbai, ranks: 2, compute: {speed: 0.7}}
  - {name: oregon, ranks: 2, compute: {speed: 0.45}}
  - {name: sydney, ranks: 2, access: 40 Mbit/s, compute: {samples_per_s: 600}}
wan:
  links:
    - {between: [london, mumbai], bandwidth: 50 Mbit/s, latency: 55 ms, jitter: 4 ms}
    - {between: [london, oregon], bandwidth: 80 Mbit/s, latency: 65 ms, jitter: 2 ms}
    - {between: [london, sydney], bandwidth: 30 Mbit/s, latency: 130 ms, jitter: 10 ms}
    - {between: [mumbai, oregon], bandwidth: 20 Mbit/s, latency: 110 ms, jitter: 9 ms}
    - {between: [mumbai, sydney], bandwidth: 40 Mbit/s, latency: 75 ms, jitter: 5 ms}
    - {between: [oregon, sydney], bandwidth: 40 Mbit/s, latency: 70 ms, jitter: 5 ms}
""",
}

GPT = """\
name: words
seed: 3
model: {name: gpt, layers: 4, width: 16, heads: 2, context: 16}
data: {path: words.h5}
train:
  until: {steps: 11}
  batch: 24
  choices: rule
  optimizer: {name: adamw, lr: 0.01}
  schedule: {name: cosine, warmup_steps: 4}
  eval_every: {steps: 6}
compute: {step: 24 ms, local: 100 us, update: 500 us, apply: 700 us, encode: 300 us, resume: 200 us, checkpoint: 100 Mbit/s}
checkpoint: {every: {steps: 4}, keep: 63}
"""
LINK = "links: [{between: [east, west], bandwidth: 100 Mbit/s, latency: 5 ms, jitter: 1 ms, loss: 0.001}]"
ROUGH = ("links: [{between: [east, west], trace: saw.csv, latency: 15 ms, jitter: 2 ms}], "
         "outages: [{between: [east, west], from: 300 ms, for: 500 ms}]")
# Two replicas: the link of the second is slower.
PAIRS = ("default: {bandwidth: 100 Mbit/s, latency: 5 ms}, links: [{between: [east, west], bandwidth: 20 Mbit/s, latency: 2 ms}, "
         "{between: [london, paris], trace: fall.csv, latency: 2 ms}]")


def stages(regions, pipeline, wan):
    return GPT + f"regions: [{regions}]\npipeline: {{{pipeline}, micro_batches: 6}}\nwan: {{{wan}}}\n"


FOUR = ("stages: [{region: east, last: transformer.h.0}, {region: west, last: transformer.h.1}, "
        "{region: west, last: transformer.h.2}, {region: east}]")
FOLDED = "stages: [{region: east, last: [transformer.h.0, lm_head]}, {region: west, last: [transformer.h.1, transformer.h.2]}]"
JOBS.update({
    "stages": stages("{name: east, ranks: 3}, {name: west, ranks: 3}", FOUR, LINK),
    "rough": stages("{name: east, ranks: 3, access: 200 Mbit/s}, "
                    "{name: west, ranks: 3, access: 30 Mbit/s, compute: {step: 40 ms, speeds: [1, 0.7]}}", FOUR, ROUGH),
    "folded": stages("{name: east, ranks: 2}, {name: west, ranks: 2}", FOLDED, LINK),
    # Two workers share the stage in the middle.
    "wide": stages("{name: east, ranks: 3}, {name: west, ranks: 3}", "stages: [{region: east, workers: 1, last: transformer.h.0}, "
                   "{region: west, workers: 2, last: transformer.h.2}, {region: east, workers: 1}]", LINK),
    # Two workers share each stage, and the first and the last stage a tied parameter.
    "twos": stages("{name: east, ranks: 5}", "stages: [{region: east, workers: 2, last: transformer.h.1}, {region: east, workers: 2}]", ""),
    # The loss is in another region than the data.
    "sent": stages("{name: west, ranks: 3}, {name: east, ranks: 2}",
                   "stages: [{region: east, last: transformer.h.1}, {region: west, workers: 2}], labels: send", ROUGH),
    "replicas": stages("{name: east, ranks: 2}, {name: london, ranks: 2}, {name: west, ranks: 2}, {name: paris, ranks: 2}",
                       FOLDED + ", copies: [{regions: [london, paris]}]", PAIRS),
    # Four replicas of one stage.
    "single": stages("{name: east, ranks: 2}, {name: london, ranks: 2}, {name: west, ranks: 2}, {name: paris, ranks: 2}",
                     "stages: [{region: east}], copies: [{regions: london}, {regions: west}, {regions: paris}]", PAIRS),
})

TRACES = {
    "saw.csv": "time_s,bandwidth,latency\n0,40 Mbit/s,\n0.2,90 Mbit/s,\n0.35,10 Mbit/s,\n0.5,0,\n",
    "fall.csv": "time_s,bandwidth,latency\n0,20 Mbit/s,\n3,2.5 Mbit/s,\n10000,0,\n",
}


def words():
    """A text of few words, the same everywhere."""
    names, state, text = ["apple", "banana", "cherry", "orange", "quince"], 1, []
    for i in range(3000):
        state = (1103515245 * state + 12345) % 2**31
        text.append(names[(state >> 16) % len(names)] + ("\n" if i % 9 == 8 else " "))
    return "".join(text)


# ---- cells --------------------------------------------------------------------------------------

# More than one frame of 1 MiB in a message.
LARGE = ("model={name: gpt, layers: 2, width: 128, heads: 4, context: 16}", "data.path=words.h5", "train.batch=4", "train.until={steps: 8}",
         "train.optimizer={name: adamw, lr: 0.01}", "checkpoint.every={steps: 3}", "sync.period=2")
# A fourth region that only aggregates, at the hub.
AGGREGATES = ("regions.3.ranks=1", "data.partition.shares=[4, 3, 2, 0]", "sync.topology=hub", "sync.hub=sydney")
# A model with normalisations, whose statistics are sent, too.
STATISTICS = ("model.name=resnet18", "data={path: few.h5, partition: {by: shares, shares: [2, 1]}}", "train.batch=2", "train.until={steps: 2}",
              "regions=[{name: london, ranks: 3}, {name: mumbai, ranks: 2, compute: {samples_per_s: 1}}]",
              "wan={default: {bandwidth: 1 Gbit/s, latency: 9 ms}}",
              "checkpoint={every: {steps: 1}, keep: 9}", "sync.period=1")
ADAPT = ("train.until={steps: 60}", "train.eval_every={steps: 25}", "checkpoint.every={steps: 15}", "compute.step=240 ms", "compute.pass=700 us",
         "model.width=32")


def sync(strategy, *more):
    return ("sync.strategy=" + strategy, *more)


def mesh_cells():
    for strategy in STRATEGIES:
        for job, local in (("3", "sync"), ("3", "async"), ("4", "sync")):  # in job 4 a region has one worker
            yield Cell(f"mesh/{strategy}/{job}/{local}", job, 8, sync(strategy, "sync.local=" + local))


def topology_cells():
    few = ("train.until={steps: 24}",)
    for topology in ("hub", "tree", "ring"):
        for strategy in STRATEGIES[:-1]:
            if topology == "ring" and strategy not in ("ssgd", "sma"):
                continue
            yield Cell(f"{topology}/{strategy}", "4", 8, sync(strategy, "sync.topology=" + topology, *few))
    for topology, strategy in (("hub", "ssgd"), ("tree", "sma"), ("tree", "asgd-ga"), ("ring", "ssgd"), ("ring", "sma")):
        yield Cell(f"{topology}/{strategy}/large", "4", 8, sync(strategy, "sync.topology=" + topology, *LARGE))
    yield Cell("central/ssgd/large", "4", 8, sync("ssgd", "sync.central=mumbai", *LARGE))
    for strategy in ("ssgd", "sma"):
        yield Cell(f"central/{strategy}", "3", 8, sync(strategy, "sync.central=mumbai", *few))
    yield Cell("auto/ssgd", "4", 8, sync("ssgd", "sync.topology=auto", *few))
    yield Cell("tree/ama/async", "3", 8, sync("ama", "sync.topology=tree", "sync.local=async", *few))
    for strategy in ("sma", "asgd-ga"):
        yield Cell(f"hub/{strategy}/aggregates", "4", 7, sync(strategy, *AGGREGATES, *few))


def option_cells():
    """Settings that change the contributions of a sum, their weights, or their time."""
    options = [
        ("weights/ssgd", "ssgd", ["sync.weights=equal"]),
        ("weights/ama", "ama", ["sync.weights=equal"]),
        ("weights/sma", "sma", ["sync.weights=equal"]),
        ("weights/asgd-ga", "asgd-ga", ["sync.weights=equal", "sync.scale=average"]),
        ("scale/sum/asgd", "asgd", ["sync.scale=sum"]),
        ("scale/average/asgd", "asgd", ["sync.scale=average"]),
        ("scale/average/asgd-ga", "asgd-ga", ["sync.scale=average", "train.optimizer.momentum=0.5"]),
        ("exchange/asgd", "asgd", ["sync.exchange=gradient", "sync.scale=sum"]),
        ("exchange/asgd-ga", "asgd-ga", ["sync.exchange=gradient", "train.schedule={name: cosine, warmup_steps: 3}"]),
        ("merge/ama", "ama", ["sync.merge=half"]),
        ("pass/asgd-ga", "asgd-ga", ["sync.period_unit=pass", "sync.local=async"]),
        ("pass/sma", "sma", ["sync.period_unit=pass", "sync.local=async"]),
        ("clip/ssgd", "ssgd", ["train.clip=0.5"]),
        ("clip/sma", "sma", ["train.clip=0.5", "sync.local=async"]),
        ("outbox/asgd", "asgd", ["wan.outbox=1"]),
        ("optimizer/sma", "sma", ["train.optimizer={name: sgd, lr: 0.02, momentum: 0.9, nesterov: true, weight_decay: 0.01}"]),
        ("precision/sma", "sma", ["train.precision=bf16"]),
        ("links/asgd-ga", "asgd-ga", ["wan.links.0={between: [london, mumbai], trace: saw.csv, latency: 55 ms}",
                                      "wan.links.1.setup=1", "wan.links.1.eager=4 kB"]),
        ("access/ssgd", "ssgd", ["regions.1.access=15 Mbit/s", "regions.2.access=25 Mbit/s"]),
        ("outages/ama", "ama", ["wan.outages=[{between: [london, mumbai], from: 100 ms, for: 900 ms}, "
                                "{between: [mumbai, oregon], from: 500 ms, for: 300 ms}]"]),
    ]
    for name, strategy, sets in options:
        yield Cell(name, "3", 8, ("train.until={steps: 24}", *sync(strategy, *sets)))
    for strategy, local in (("ama", "async"), ("sma", "sync")):
        yield Cell(f"statistics/{strategy}", "3", 5, sync(strategy, "sync.local=" + local, *STATISTICS))
    for strategy in ("ssgd", "asgd-ga"):
        yield Cell(f"messages/{strategy}", "3", 8, sync(strategy, "train.until={steps: 24}"),
                   env=(("GEOTRAIN_LOCAL_PLANE", "messages"),))


def stop_cells():
    for strategy in STRATEGIES[:-1]:
        yield Cell(f"limit/{strategy}", "3", 8, sync(strategy, "sync.local=async"), LIMIT)
    for strategy, topology in (("ssgd", "tree"), ("ssgd", "ring"), ("asgd", "tree")):
        yield Cell(f"limit/{strategy}/{topology}", "4", 8, sync(strategy, "sync.topology=" + topology), LIMIT)
    yield Cell("limit/sma/central", "3", 8, sync("sma", "sync.central=mumbai"), LIMIT)
    for strategy in ("asgd-ga", "sma"):
        yield Cell(f"longer/{strategy}", "3", 8, sync(strategy), LONGER)


def pipeline_cells():
    for schedule in ("gpipe", "1f1b", "zb-h1", "zb-h2", "auto"):
        yield Cell(f"stages/{schedule}", "stages", 6, ("pipeline.schedule=" + schedule,))
    yield Cell("stages/clip", "stages", 6, ("pipeline.schedule=1f1b", "train.clip=0.2"))
    yield Cell("stages/rough", "rough", 6, ("pipeline.schedule=zb-h2",))
    yield Cell("stages/folded", "folded", 4, ("pipeline.schedule=zb-v",))
    yield Cell("stages/wide", "wide", 6, ("pipeline.schedule=zb-h1", "train.clip=0.2"))
    yield Cell("stages/twos", "twos", 5, ("pipeline.schedule=1f1b",))
    yield Cell("stages/sent", "sent", 5, ("pipeline.schedule=zb-h1", "model.untied=true"))
    adapt = ("pipeline.schedule=1f1b", "wan.links=[{between: [east, west], trace: fall.csv, latency: 2 ms}]", *ADAPT)
    yield Cell("adapt/order", "stages", 6, ("pipeline.adapt=true", "pipeline.micro_batches=12", *adapt))
    yield Cell("adapt/micro_batches", "stages", 6, ("pipeline.adapt=micro_batches", "pipeline.micro_batches=4", *adapt))


def replica_cells():
    for strategy in STRATEGIES[:-1]:
        yield Cell(f"replicas/{strategy}", "replicas", 8, sync(strategy, "sync.period=3", "pipeline.schedule=zb-v"))
    uneven = ("data.partition.shares=[1, 2, 0, 0]", "train.until={epochs: 0.6}", "train.eval_every={steps: 0}")
    for strategy in ("ssgd", "sma"):
        yield Cell(f"replicas/{strategy}/uneven", "replicas", 8,
                   sync(strategy, "sync.period=3", "pipeline.schedule=zb-v", "train.clip=0.2", *uneven))
    for strategy, topology in (("ssgd", "hub"), ("asgd-ga", "hub"), ("sma", "tree"), ("asgd", "tree"), ("ssgd", "ring"), ("sma", "ring")):
        yield Cell(f"replicas/{strategy}/{topology}", "single", 8,
                   sync(strategy, "sync.period=3", "sync.topology=" + topology, "pipeline.schedule=gpipe"))
    for strategy, option in (("asgd", "scale=average"), ("asgd-ga", "exchange=gradient"), ("ama", "merge=half")):
        yield Cell(f"replicas/{strategy}/{option.split('=')[0]}", "single", 8,
                   sync(strategy, "sync.period=3", "sync." + option, "train.schedule=null", "pipeline.schedule=1f1b"))
    adapt = ("pipeline.schedule=zb-v", "sync.period=3", *ADAPT, "train.until={steps: 36}")
    yield Cell("replicas/ssgd/adapt", "replicas", 8, sync("ssgd", "pipeline.adapt=true", "pipeline.micro_batches=12", *adapt))
    yield Cell("replicas/sma/micro_batches", "replicas", 8, sync("sma", "pipeline.adapt=micro_batches", "pipeline.micro_batches=2", *adapt))


CELLS = [*mesh_cells(), *topology_cells(), *option_cells(), *stop_cells(), *pipeline_cells(), *replica_cells()]
