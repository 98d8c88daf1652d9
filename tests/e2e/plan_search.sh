# processors: 1
# geotrain plan of a job whose stages are to be found: what it prints and writes is the same
# pipeline, and as fast as it says; commands that need stages say so; what is refused.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=/usr/bin/python3

cat >job.yaml <<'Y'
name: auto
model: {name: gpt-tiny, width: 32, heads: 2}
data: {path: none.h5}
train: {until: {steps: 20}, batch: 16, optimizer: {lr: 0.1}}
regions:
  - {name: east, ranks: 3, samples: 640}
  - {name: west, ranks: 3, compute: {speeds: [1, 0.5]}}
pipeline: {stages: auto}
wan: {links: [{between: [east, west], bandwidth: 100 Mbit/s, latency: 25 ms}]}
compute: {step: 200 ms}
Y
"$GEOTRAIN" plan job.yaml --write found.yaml --svg found.svg >plan.txt 2>err
check "a pipeline is found" same $? 0
check "so it is told" grep -qE '^auto: [0-9]+ candidates, [0-9]+ feasible, [0-9]+ simulated; best:$' plan.txt
check "data parallelism is beside it" same "$(grep -cE '^data parallel, (ssgd|sma, period 8|asgd-ga, period 8) +[0-9]' plan.txt)" 3
check "its schedule is drawn" grep -q '^<svg ' found.svg

# The printed section, in place of the job's.
sed -n '/^pipeline:$/,/^$/p' plan.txt >section.yaml
grep -v '^pipeline:' job.yaml >pasted.yaml
cat section.yaml >>pasted.yaml
"$GEOTRAIN" plan pasted.yaml >pasted.txt 2>err
check "the section can be pasted" same $? 0
"$GEOTRAIN" plan found.yaml >written.txt 2>err
check "the job that was written can be planned" same $? 0
check "and has the same plan" cmp pasted.txt written.txt
check "which the search printed, too" "$python" - plan.txt pasted.txt <<'PY'
import sys
search, plan = (open(name).read() for name in sys.argv[1:])
assert search.endswith(plan + "\nwrote found.yaml; it is for 6 ranks: mpirun -n 6 geotrain train found.yaml\n")
PY
"$GEOTRAIN" simulate found.yaml >simulated.txt 2>err
check "it can be simulated" same $? 0

"$GEOTRAIN" plan job.yaml --json --write again.yaml >plan.json 2>err
check "the search as JSON" same $? 0
check "a search gives the same again" cmp found.yaml again.yaml
check "says the same" "$python" - plan.json plan.txt <<'PY'
import json, sys
p = json.load(open(sys.argv[1]))
s = p["search"]
assert len(s["stages"]) == len(p["stages"]) and s["micro_batches"] == p["micro_batches"]
assert p["period_s"] == min(x["period_s"] for x in p["schedules"] if x["possible"])
assert sum(x["workers"] for x in s["stages"]) == 4 and s["stages"][0]["region"] == "east"
ways = {w["strategy"]: w for w in s["data_parallel"]}
assert set(ways) == {"ssgd", "sma", "asgd-ga"} and all(w["possible"] for w in ways.values())
best = max(ways.values(), key=lambda w: w["samples_per_s"])
faster = best["samples_per_s"] > p["samples_per_s"]
assert s["faster"] == (best["strategy"] if faster else None)
assert ("is faster than the pipeline" in open(sys.argv[2]).read()) == faster
PY

# A way's rate is that of the job which the plan proposes for it.
"$GEOTRAIN" simulate job.yaml --set pipeline=null --set sync.strategy=ssgd --set train.batch=4 --set 'compute.step=50 ms' \
  --set regions.1.samples=640 --set 'train.until={steps: 100}' --set train.eval_every.epochs=0 --out ssgd >out 2>err
check "data parallelism can be simulated as proposed" same $? 0
check "at the rate that the search says" "$python" - plan.json ssgd/summary.json <<'PY'
import json, sys
p, s = (json.load(open(name)) for name in sys.argv[1:])
rate = [w["samples_per_s"] for w in p["search"]["data_parallel"] if w["strategy"] == "ssgd"][0]
assert abs(rate / s["samples_per_s"] - 1) < 0.03, (rate, s["samples_per_s"])
PY

# refused NAME WORD COMMAND...: exit 2 and one sentence.
refused() {
  local name=$1 word=$2
  shift 2
  plain "$@"
  ended "$name" 2 "$word"
}
refused "simulating stages that are to be found" 'pipeline.stages is auto; `geotrain plan JOB --write OUT.yaml`' simulate job.yaml
refused "training them" 'pipeline.stages is auto; `geotrain plan JOB --write OUT.yaml`' train job.yaml
refused "a margin" '--margin is for jobs whose ranks are planned' plan job.yaml --margin 0.2
refused "a batch that no stages can share" 'no pipeline can use all workers of all regions' plan job.yaml --set train.batch=1 --set regions.1.ranks=40 --set regions.1.compute=null
refused "memory for no pipeline" 'pipeline' plan job.yaml --set 'pipeline.memory=1 KiB'
refused "no times" 'compute.step is not given for region east' plan job.yaml --set compute=null --set regions.1.compute=null
refused "two regions with data" 'a pipeline reads the data of one region' plan job.yaml --set regions.1.samples=10 --set regions.0.samples=10
refused "a number in place of stages" 'pipeline.stages' plan job.yaml --set pipeline.stages=4
finish
