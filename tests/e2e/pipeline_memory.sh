# labels: full
# timeout: 900
# processors: 2
# The memory of a pipeline's ranks is what was planned: a GPT that does not fit into
# pipeline.memory in one place trains as stages, and no rank uses 10 % more or less than its plan
# says, also where each runs under a control group that would not let it, where the ranks of a region
# share no memory, and where several copies exchange.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
"$GEOTRAIN" data import text words.txt long.h5 --length 64 >data.log 2>&1 || fail "data" "$(cat data.log)"
LIMIT=280
link='[{between: [east, west], bandwidth: 1 Gbit/s, latency: 5 ms}]'
large() {
  pipeline_job "$1" "$2" "$3" | sed -e 's/layers: 4, width: 16, heads: 2, context: 16/layers: 4, width: 768, heads: 12, context: 64/' \
    -e 's/words.h5/long.h5/; s/steps: 12/steps: 2/; s/batch: 24/batch: 6/; s/eval_every: {steps: 6}/eval_every: {steps: 2}/; s/every: {steps: 5}/every: {steps: 2}/' \
    -e 's/schedule: {name: cosine, warmup_steps: 4}//; s/local: 30 s/local: 300 s/; s/wan_patience: 30 s/wan_patience: 300 s/; s/step: 24 ms/step: 1 s/'
}
large '{name: east, ranks: 2}' '{region: east, workers: 1}' '[]' >one.yaml
memory=(--set "pipeline.memory=200 MiB" --set pipeline.schedule=1f1b)
large '{name: east, ranks: 3}, {name: west, ranks: 2}' '{region: east, last: transformer.h.0}, {region: west, last: transformer.h.2}, {region: east}' "$link" >three.yaml

train "one worker" 2 one.yaml --run-dir one "${memory[@]}"
ended "one worker has not enough memory" 2 'pipeline.memory is 200 MiB'

# near DIRECTORY [LEAST]: every rank's peak, less what it had before its model, is within 10 % of its
# plan, or between LEAST of it and 10 % more.  The code and the buffers of OpenBLAS and MPI, which the
# first steps touch, are in no plan: up to 12 MB.
near() {
  /usr/bin/python3 - "$1" "${2:-0.9}" <<'PY'
import glob, json, sys
bad = []
for name in sorted(glob.glob(sys.argv[1] + "/*.jsonl")):
    told = [l for l in map(json.loads, open(name)) if l["event"] == "memory"][-1]
    for r in told["ranks"]:
        used = r["peak_bytes"] - r["start_bytes"]
        line = f"{name}: {r['rank']}: planned {r['planned_bytes'] / 1e6:.1f} MB, used {used / 1e6:.1f} MB, {100 * used / r['planned_bytes'] - 100:+.1f} %"
        print("      " + line)
        if not float(sys.argv[2]) * r["planned_bytes"] <= used <= max(1.1 * r["planned_bytes"], r["planned_bytes"] + 12e6): bad.append(line)
        assert r["planned_bytes"] > 60e6, line
sys.exit(1 if bad else 0)
PY
}

completes "three stages" 5 three.yaml --run-dir three "${memory[@]}"
check "three stages use what is planned" near three
check "the plan is told before the run" grep -q 'planned memory, MB of a worker of stage: 0 ' err
GEOTRAIN_LOCAL_PLANE=messages completes "messages" 5 three.yaml --run-dir messages "${memory[@]}"
check "the parameters are the same" same "$(weights messages)" "$(weights three)"
check "messages: what is planned is used" near messages

# planned RUN JOB PLAN-ARGUMENTS...: what `plan` says of each server is what the run has recorded.
planned() {
  local run=$1 job=$2
  shift 2
  "$GEOTRAIN" plan "$job" --json "$@" >plan.json 2>plan.err || { cat plan.err; return 1; }
  /usr/bin/python3 - "$run" <<'PY'
import glob, json, sys
told = {}
def walk(x):
    for v in (x.values() if isinstance(x, dict) else x if isinstance(x, list) else ()): walk(v)
    if isinstance(x, dict) and "exchange_bytes" in x: told[x["region"]] = x["memory_bytes"]
walk(json.load(open("plan.json")))
for name in glob.glob(sys.argv[1] + "/*.jsonl"):
    lines = list(map(json.loads, open(name)))
    rank = [l for l in lines if l["event"] == "memory"][-1]["ranks"][0]
    region = name.split("/")[-1][:-6]
    assert told[region] == rank["planned_bytes"], (region, told[region], rank)
PY
}
check "the plan says what the run says" planned three three.yaml "${memory[@]}"
check "of several hosts, too" planned messages three.yaml "${memory[@]}" \
  --set 'regions.0.hosts=[a, b]' --set 'regions.1.hosts=[c, d]'

# Two copies of two stages.
stages='stages: [{region: east, last: [transformer.h.0, lm_head]}, {region: west, last: [transformer.h.1.attn, transformer.h.1]}], copies: [{regions: [london, paris]}]'
large '{name: east, ranks: 2}, {name: west, ranks: 2}, {name: london, ranks: 2}, {name: paris, ranks: 2}' '' '[]' |
  sed -e 's/layers: 4/layers: 2/; s/until: {steps: 2}/until: {steps: 4}/; s/eval_every: {steps: 2}/eval_every: {steps: 4}/' \
    -e "s@^pipeline: .*@pipeline: {$stages, micro_batches: 6}@" \
    -e 's/^wan: .*/wan: {emulate: true, default: {bandwidth: 1 Gbit\/s, latency: 5 ms}}\nsync: {strategy: ssgd, period: 2}/' >copies.yaml

# copies NAME LEAST ARGUMENTS...: no rank of two copies uses more or less than is planned.
copies() {
  local name=$1 least=$2 dir
  dir=copies-$(tr -c 'a-z0-9\n' - <<<"$name")
  shift 2
  completes "$name" 8 copies.yaml --run-dir "$dir" "$@"
  check "$name: what is planned is used" near "$dir" "$least"
  check "$name: what is planned, by plan" planned "$dir" copies.yaml "$@"
  rm -rf "$dir" # a gigabyte
}
# A region that is always last holds no message of the other: 8 % of the plan.
copies "ssgd" 0.8
told=$(sed -n 's/.*planned memory, MB of the server of: //p' err)
check "the servers of both copies are told" grep -qE '^east ([0-9.]+), west ([0-9.]+), london \1, paris \2$' <<<"$told"
copies "ssgd clipped" 0.8 --set train.clip=1
copies "sma" 0.8 --set sync.strategy=sma
copies "asgd-ga" 0.8 --set sync.strategy=asgd-ga
copies "ama" 0.8 --set sync.strategy=ama
# What a checkpoint has of messages in pieces depends on when it is taken.
copies "ssgd over a hub" 0.8 --set sync.topology=hub
copies "asgd-ga over a hub" 0.8 --set sync.strategy=asgd-ga --set sync.topology=hub
GEOTRAIN_LOCAL_PLANE=messages completes "copies by messages" 8 copies.yaml --run-dir apart --set sync.strategy=asgd-ga --set train.batch=48
check "copies by messages: what is planned is used" near apart
rm -rf apart

# Each rank in a control group of its own.
groups=/sys/fs/cgroup/memory limit=memory.limit_in_bytes
[ -d $groups ] || groups=/sys/fs/cgroup limit=memory.max
box=$groups/geotrain-$$
if mkdir "$box" 2>/dev/null && [ -e "$box/$limit" ]; then
  /usr/bin/python3 - >limits <<'PY'
import json
for region in ("east", "west"):
    told = [l for l in map(json.loads, open(f"three/{region}.jsonl")) if l["event"] == "memory"][-1]
    for r in told["ranks"]:
        print(int(r["start_bytes"] + 1.1 * r["planned_bytes"]))
PY
  cat >boxed.sh <<SH
#!/bin/bash
rank=\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}
mkdir -p $box-\$rank && sed -n "\$((rank + 1))p" limits >$box-\$rank/$limit && echo \$\$ >$box-\$rank/cgroup.procs || exit 99
exec "$GEOTRAIN" "\$@"
SH
  chmod +x boxed.sh
  outer=$GEOTRAIN
  GEOTRAIN=$PWD/boxed.sh
  train "boxed" 5 three.yaml --run-dir boxed "${memory[@]}"
  GEOTRAIN=$outer
  ended "ranks end within their control groups" 0
  check "boxed: the parameters" same "$(weights boxed)" "$(weights three)"
  rmdir "$box"-* "$box"
else
  skip "control groups" "no group with a limit of memory can be made in $groups here"
fi
finish
