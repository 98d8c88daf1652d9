# processors: 1
# geotrain plan: two regions with data 2:1 and equal devices, where half of the smaller one's are
# enough; a WAN that is too slow for all devices; devices of two types; deadlines, budgets and what
# they need; 4 regions with 12 candidates.  The planned jobs train, with the predicted time and
# bytes.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=/usr/bin/python3

data data.h5
cat >rates.csv <<'CSV'
rate,cloud,place,to_cloud,to_place,from_gb,value,assumed
vm_hour,here,*,,,,0.2,
vm_hour,here,east,,,,0.2,
vm_min_s,here,west,,,,1,
vm_hour,here,west,,,,0.1,
egress_gb,here,*,here,*,0,0.02,
CSV
cat >two.yaml <<'YAML'
name: two
seed: 3
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [2, 1]}}
train: {until: {epochs: 2}, batch: 16, optimizer: {name: sgd, lr: 0.02}, eval_every: {epochs: 0}}
regions:
  - {name: large, ranks: auto, place: here:east, devices: [{type: v100, count: 4, power: 400, price: 2.5}]}
  - {name: small, ranks: auto, place: here:west, devices: [{type: v100, count: 4, power: 400, price: 2.5}]}
sync: {local: async, strategy: asgd-ga, period: 8}
wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}
plan: {catalogue: rates.csv, start: 20 s}
YAML
cat >mixed.yaml <<'YAML'
name: mixed
seed: 3
model: {name: lenet5}
data: {path: data.h5, partition: {by: shares, shares: [2, 1]}}
train: {until: {epochs: 2}, batch: 16, optimizer: {name: sgd, lr: 0.02}, eval_every: {epochs: 1}}
regions:
  - {name: large, ranks: auto, price: 1, devices: [{type: k80, count: 3, power: 200, price: 0.1}, {type: v100, count: 1, power: 300}]}
  - {name: small, ranks: auto, ps_price: 0.5, devices: [{type: k80, count: 2, power: 200, price: 0.2}, {type: v100, count: 2, power: 300, price: 3}]}
sync: {local: async, strategy: asgd-ga, period: 8}
wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}
compute: {local: 1 ms, update: 200 us}
plan: {start: 2 min}
YAML

# plan NAME OPTIONS...: runs it; $code; its table in NAME.out, its output in out and err.
plan() {
  local name=$1
  shift
  plain plan "$@"
  cp out "$name.out"
}

# refused NAME PATTERN OPTIONS...: exit 2 and one sentence.
refused() {
  local name=$1 pattern=$2
  shift 2
  plan refused "$@"
  if [ "$code" = 2 ] && [ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -qE -- "$pattern" err; then ok "$name"; else fail "$name" "code $code: $(cat err)"; fi
}

# says NAME CONDITION: a condition on the plan's JSON: p everything, c the choice, ranks() of a set.
cat >says.py <<'PY'
import json, sys
p = json.load(open("plan.json"))
c = p["candidates"][p["choice"]]
by = {(k["strategy"], k["period"]): k for k in p["candidates"]}
ranks = lambda s: [r["ranks"] for r in s["regions"]]
if not eval(sys.argv[1]):
    sys.exit("not so; ranks %s, everything %s, %s" % (ranks(c["plan"]), ranks(c["everything"]), {k: v for k, v in c.items() if k not in ("plan", "everything")}))
PY
says() {
  local said
  said=$($python says.py "$2" 2>&1) && ok "$1" || fail "$1" "$(tail -n 1 <<<"$said")"
}

# trains NAME RANKS: trains the planned job under the virtual clock: the time is within 1 % of the
# prediction, the bytes are equal.
cat >trains.py <<'PY'
import json, sys
s, p = json.load(open(sys.argv[1] + "/summary.json")), json.load(open("plan.json"))
e = p["candidates"][p["choice"]]["plan"]["expected"]
bytes_sent = sum(l["bytes_sent"] for l in s["links"])
print("virtual %.6f s, planned %.6f s; %d and %d bytes" % (s["virtual_s"], e["wall_s"], bytes_sent, e["wan_bytes"]))
off = max(abs(q["error_percent"]) for k, q in s["plan"].items() if isinstance(q, dict) and q.get("error_percent") is not None)
sys.exit(abs(s["virtual_s"] / e["wall_s"] - 1) > 0.01 or bytes_sent != e["wan_bytes"] or off > 1)
PY
trains() {
  local said
  train "$1" "$2" out.yaml --clock virtual --run-dir "$1"
  [ "$code" = 0 ] || { fail "$1: the written job trains" "exit $code: $(tail -n 2 err)" && return; }
  said=$($python trains.py "$1") && ok "$1: $said" || fail "$1: as planned" "$said"
}

json() { "$GEOTRAIN" plan "$@" --json >plan.json 2>err || fail "plan --json $*" "$(cat err)"; }

# ---- sets ------------------------------------------------------------------------------------------------------------------------

json two.yaml --write out.yaml
says "data 2:1: the smaller one's set is halved" 'ranks(c["plan"]) == [5, 3] and ranks(c["everything"]) == [5, 5]'
says "no slower, and cheaper" 'abs(c["longer"]) < 0.01 and 0.2 < c["saved"] < 0.25'
says "cost by term" 'abs(sum(c["plan"]["expected"][k] for k in ("worker_usd", "ps_usd", "egress_usd")) - c["plan"]["expected"]["usd"]) < 1e-12'
says "low, expected, high" 'c["plan"]["low"]["wall_s"] < c["plan"]["expected"]["wall_s"] < c["plan"]["high"]["wall_s"]'
says "time for Slurm: start, high and the signal, in minutes" \
  'p["slurm_time_s"] % 60 == 0 and 0 <= p["slurm_time_s"] - 20 - 120 - c["plan"]["high"]["wall_s"] < 60'
trains halved 8
check "the written job: strategy, limits, prediction" grep -qE 'predicted: \{strategy: asgd-ga, wall: ' out.yaml
check "the written job: 2 devices of 4" grep -q 'count: 2,' out.yaml
"$GEOTRAIN" info out.yaml --flat >flat || fail "the written job loads" "$(cat flat)"
bytes=$(sed -n 's/^limits.wan_bytes=//p' flat)
says "limits.wan_bytes is 1.2 times as much" "abs($bytes - 1.2 * max(c['plan'][k]['wan_bytes'] for k in ('low', 'expected', 'high'))) <= 1"
json out.yaml
says "planned again, it stays" 'ranks(c["plan"]) == [5, 3] and c["is_everything"]'

plan auto two.yaml --set sync.topology=auto
grep -qE 'sync.topology auto, with asgd-ga 8: mesh, [0-9.]+ s a round; hub at large' auto.out && [ "$code" = 0 ] && ok 'auto: the topology is told' || fail 'auto: the topology' "exit $code; $(tail -n 3 auto.out)"
plan table two.yaml --set 'plan.strategies=[asgd, asgd-ga]' --set 'plan.samples_factor=[{strategy: asgd, factor: 0.5}]'
ended "a table" 0 '^asgd-ga 8 +5\+3 ' '^asgd-ga 8 +5\+5 .* [0-9]' '^choice +' '^region ' '^large -> small ' 'time limit for Slurm: 0:03:00' 'at 0.5 times the samples'

plan written two.yaml --write out.yaml
ended "what to do with the written job" 0 '^wrote out.yaml; it is for 8 ranks: mpirun -n 8 geotrain train out.yaml$'

json two.yaml --set sync.strategy=asgd --set 'wan.default.bandwidth=20 Mbit/s'
says "where the WAN sets the pace sets shrink further" 'ranks(c["plan"]) < [5, 3] and sorted(c["wan_bound"]) == ["large", "small"] and abs(c["longer"]) < 0.01'

json mixed.yaml --write out.yaml
says "devices of two types: not all, not slower" 'not c["is_everything"] and c["longer"] < 0.011 and sum(ranks(c["plan"])) <= 8'
says "what has no price counts as 0 and is named" 'p["missing_prices"] == ["PS of large", "egress of large", "egress of small"]'
trains mixed "$($python -c 'import json; p = json.load(open("plan.json")); print(sum(r["ranks"] for r in p["candidates"][p["choice"]]["plan"]["regions"]))')"

json mixed.yaml --set sync.local=sync --set compute.local=0s --set 'regions.0.devices.1.count=4' --set 'train.until={samples: 12800}'
says "local: sync: slow devices are left out" 'all(d["count"] == 0 for d in c["plan"]["regions"][0]["devices"] if d["type"] == "k80") or c["saved"] > 0'

# ---- deadline and budget -----------------------------------------------------------------------------------------------------------

# The best of all 16 sets, each of them simulated.
json two.yaml --set 'plan.deadline=40 s'
says "a deadline: the cheapest in time" 'c["possible"] and ranks(c["plan"]) == [2, 2] and 20 + c["plan"]["high"]["wall_s"] <= 40'
json two.yaml --set 'plan.deadline=30 s'
says "an earlier deadline" 'ranks(c["plan"]) == [3, 2] and 20 + c["plan"]["high"]["wall_s"] <= 30'
json two.yaml --set plan.budget=0.07
says "a budget: the fastest for it" 'ranks(c["plan"]) == [3, 2] and c["plan"]["high"]["usd"] <= 0.07'
json two.yaml --set plan.budget=0.12
says "more money" 'ranks(c["plan"]) == [5, 3] and c["plan"]["high"]["usd"] <= 0.12'
refused "an impossible deadline" 'plan.deadline is 22 s; (everything everywhere|the best set) takes up to [0-9.]+ s' two.yaml --set 'plan.deadline=22 s'
refused "an impossible budget" 'plan.budget is 0.01 USD; the best set costs up to 0.0[0-9]+ USD' two.yaml --set plan.budget=0.01
refused "a price that a budget needs" 'plan.budget is 5 USD and the price of PS of large is not known' mixed.yaml --set plan.budget=5
grep -vE "vm_hour,here,(\*|west)" rates.csv >fewer.csv
refused "a rate that the catalogue lacks" 'fewer.csv: has no vm_hour of here at west' two.yaml --set plan.catalogue=fewer.csv
refused "a negative price" 'regions.0.devices.0.price is -1; expected 0 or more' two.yaml --set regions.0.devices.0.price=-1
refused "a region without a device" 'regions.1 \(small\) has no device' two.yaml --set regions.1.devices.0.count=0
sed 's/, devices: \[{type: v100, count: 4, power: 400, price: 2.5}\]//' two.yaml >none.yaml
refused "ranks: auto without devices" 'regions.0.ranks is auto, without devices' none.yaml
sed 's/power: 400, //' two.yaml >powerless.yaml
refused "a device without power" 'regions.0.devices.0 \(v100 of large\) has no power' powerless.yaml
refused "a strategy that exchanges nothing" 'sync.strategy is none' two.yaml --set sync.strategy=none
refused "too much for limits.wan_bytes" 'limits.wan_bytes is 1000' two.yaml --set limits.wan_bytes=1kB
refused "a margin that is none" 'margin is "1"' two.yaml --margin 1
refused "no job" 'expected one job file' two.yaml mixed.yaml
refused "a folder that is not there" 'nowhere/out.yaml' two.yaml --write nowhere/out.yaml
refused "the job file itself" 'two.yaml is both the input and the output' two.yaml --write two.yaml
check "nothing is left beside the written job" same "$(find . -name '*.tmp-*')" ""

# ---- many -------------------------------------------------------------------------------------------------------------------------

cat >four.yaml <<'YAML'
name: four
model: {name: dummy, parameters: 1000000}
train: {until: {samples: 100000}, batch: 64, optimizer: {name: sgd, lr: 0.02}}
regions:
  - {name: n, ranks: auto, price: 2, ps_price: 0.1, samples: 600000, devices: [{type: v, count: 16, power: 400}, {type: t, count: 8, power: 150, price: 0.5}]}
  - {name: e, ranks: auto, price: 2, ps_price: 0.1, samples: 300000, devices: [{type: v, count: 8, power: 400}, {type: t, count: 8, power: 150, price: 0.5}]}
  - {name: s, ranks: auto, price: 2, ps_price: 0.1, samples: 300000, devices: [{type: v, count: 16, power: 400}, {type: t, count: 8, power: 150, price: 0.5}]}
  - {name: w, ranks: 9, price: 2, ps_price: 0.1, samples: 100000, compute: {samples_per_s: 300}}
wan: {default: {bandwidth: 200 Mbit/s, latency: 60 ms, jitter: 5 ms}}
plan: {strategies: [asgd-ga, ama, sma], periods: [4, 8, 16, 32], start: 2 min, billing: 1 min}
YAML
json four.yaml # bench/planning says how long it takes
says "12 candidates, each with its set" 'len(p["candidates"]) == 12 and all(ranks(k["plan"])[3] == 9 for k in p["candidates"])'
says "all in proportion: none is dearer than everything everywhere" 'all(k["saved"] >= 0 and k["longer"] < 0.0101 for k in p["candidates"])'

# ---- a store, and times that the margin changes ----------------------------------------------------------------------------------

json four.yaml --set 'plan.strategies=[sma]' --set 'plan.periods=[1]' --set 'compute.resume=1 s'
says "the margin changes compute.resume" 'c["plan"]["high"]["wall_s"] > 1.08 * c["plan"]["expected"]["wall_s"]'
cat >stored.yaml <<'YAML'
name: stored
model: {name: dummy, parameters: 2000000}
data: {path: none.h5}
train: {until: {steps: 40}, batch: 32, optimizer: {lr: 0.1}, eval_every: {epochs: 0}}
regions: [{name: a, ranks: 2, samples: 400, place: "aws:london"}, {name: b, ranks: 2, samples: 400, place: "aws:oregon"}, {name: c, ranks: 2, samples: 400, place: "aws:sydney"}]
sync: {strategy: sma, period: 4, on_loss: continue}
limits: {wan_patience: 3 s}
compute: {samples_per_s: 500}
wan: {transport: store, store: {url: "file:///none", place: "aws:oregon", upload: 200 Mbit/s, download: 300 Mbit/s, latency: 30 ms, request: 20 ms}}
YAML
echo "plan: {catalogue: $GEOTRAIN_SOURCE/jobs/prices}" >>stored.yaml
json stored.yaml --set 'faults=[{region: b, lost: 2 s, back: 4 s}]'
plain simulate stored.yaml --set 'faults=[{region: b, lost: 2 s, back: 4 s}]' --out stored
says "the cost over a store is that of simulate" 'abs(p["faults"]["usd"] / json.load(open("stored/summary.json"))["cost"]["usd"] - 1) < 1e-6'
says "the parts add up to the cost" '(lambda x: abs(x["worker_usd"] + x["ps_usd"] + x["egress_usd"] + x["store_usd"] - x["usd"]) < 1e-9)(c["plan"]["expected"])'

# ---- faults -----------------------------------------------------------------------------------------------------------------------

faults='faults=[{region: e, lost: 20 s, back: 40 s}]'
sed -i '/^plan:/s/strategies.*32\], //' four.yaml
json four.yaml --set sync.on_loss=continue --set 'limits.wan_patience=5 s' --set "$faults" --write faulty.yaml
says "faults: more time, also for Slurm" \
  'p["faults"]["losses"] == 1 and p["faults"]["wall_s"] > p["faults"]["undisturbed_s"] + 10 and p["slurm_time_s"] > 240 + c["plan"]["high"]["wall_s"] + 10'
"$GEOTRAIN" info faulty.yaml --flat >flat
check "the written job has no faults, and no limit that on_loss excludes" same "$(grep -E '^(faults|limits.wan_bytes)' flat)" ""
plain simulate faulty.yaml --set "$faults" --out faulty
says "the time is that of simulate" 'p["faults"]["wall_s"] == json.load(open("faulty/summary.json"))["virtual_s"]'
plan faulty four.yaml --set "$faults"
ended "a table with faults" 0 '^with faults +[0-9.]+ s instead of [0-9.]+ s, ' '^losses +1: ' 'has no faults'

finish
