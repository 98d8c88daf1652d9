# processors: 1
# A run with a plan: the predicted and the measured figures and the cost are reported, the cost as
# computed here from the same run's regions and links; impossible prices are refused before anything
# runs.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=/usr/bin/python3

data data.h5
cat >rates.csv <<'CSV'
vm_hour,a,here,,,,3.6,
vm_min_s,a,*,,,,5,assumed
egress_gb,a,here,b,*,0,20,
egress_gb,a,here,b,*,0.0001,10,assumed
egress_gb,b,*,a,*,0,50,
vm_hour,b,there,,,,7.2,assumed
CSV
cat >job.yaml <<'YAML'
name: planned
seed: 5
model: {name: lenet5}
data: {path: data.h5}
train: {until: {steps: 12}, batch: 32, optimizer: {name: sgd, lr: 0.02}, eval_every: {steps: 7}}
regions:
  - {name: east, ranks: 3, place: 'a:here'}
  - {name: west, ranks: 2, place: 'b:there', price: 1.8, ps_price: 0, compute: {speed: 0.5}}
sync: {local: sync, strategy: asgd-ga, period: 3}
wan: {links: [{between: [east, west], bandwidth: 20 Mbit/s, latency: 30 ms}]}
compute: {samples_per_s: 1000, local: 1 ms, update: 0.4 ms, apply: 0.3 ms, encode: 0.5 ms, checkpoint: 100 Mbit/s}
plan:
  catalogue: rates.csv
  start: 0.5 s
  billing: 0.7 s
  predicted: {strategy: asgd-ga, wall: 1500 ms, wall_low: 1 s, wall_high: 10 s, step: 50 ms, samples_per_s: 1000, wan_bytes: 2 MB, waiting: 0.25, cost: 0.05,
    made: 'by hand'}
YAML

cat >check.py <<'PY'
import json, math, sys
s = json.load(open(sys.argv[1]))
rate = {"east": (3.6, 3.6), "west": (1.8, 0)}
steps = lambda seconds: math.ceil(seconds / 0.7) * 0.7
assert s["virtual_s"] < 4 # so that the least time counts, and is not a whole number of steps
billed = {"east": steps(5), "west": steps(0.5 + s["virtual_s"])}
sent = {l["from"]: l["bytes_sent"] + l["bytes_other"] for l in s["links"]}
gb = {r: b / 1e9 for r, b in sent.items()}
egress = {"east": min(gb["east"], 1e-4) * 20 + max(gb["east"] - 1e-4, 0) * 10, "west": gb["west"] * 50}
assert gb["east"] > 1e-4, gb # the second tier is reached
cost = 0
for r in s["cost"]["regions"]:
    name, workers = r["name"], {"east": 2, "west": 1}[r["name"]]
    want = (workers * rate[name][0] * billed[name] / 3600, rate[name][1] * billed[name] / 3600, egress[name])
    for key, w in zip(("worker_usd", "ps_usd", "egress_usd"), want): assert math.isclose(r[key], w, rel_tol=1e-9), (name, key, r[key], w)
    assert math.isclose(r["usd"], sum(want), rel_tol=1e-9)
    cost += sum(want)
assert math.isclose(s["cost"]["usd"], cost, rel_tol=1e-9) and s["cost"]["assumed"] is True and s["cost"]["missing"] == []
assert math.isclose(s["cost"]["machine_usd"] + s["cost"]["egress_usd"], cost, rel_tol=1e-9)
assert math.isclose(s["cost"]["machine_hours"], (3 * billed["east"] + 2 * billed["west"]) / 3600, rel_tol=1e-9)
measured = {
    "wall": s["virtual_s"],
    "step": max((r["compute_s"] + r["wan_wait_s"] + r["local_wait_s"]) / r["steps"] for r in s["regions"]),
    "samples_per_s": s["samples"] / s["virtual_s"],
    "wan_bytes": sum(l["bytes_sent"] for l in s["links"]),
    "waiting": sum(r["wan_wait_s"] / r["wall_s"] for r in s["regions"]) / len(s["regions"]),
    "cost": cost,
}
predicted = {"wall": 1.5, "step": 0.05, "samples_per_s": 1000, "wan_bytes": 2e6, "waiting": 0.25, "cost": 0.05}
assert s["plan"]["strategy"] == "asgd-ga" and s["plan"]["made"] == "by hand"
for key, p in predicted.items():
    q, m = s["plan"][key], measured[key]
    assert q["predicted"] == p, (key, q)
    assert math.isclose(q["measured"], m, rel_tol=1e-9), (key, q, m)
    assert math.isclose(q["error_percent"], 100 * (p - m) / m, rel_tol=1e-9, abs_tol=1e-9), (key, q)
wall = s["plan"]["wall"]
assert wall["low"] == 1 and wall["high"] == 10 and wall["within"] is (1 <= s["virtual_s"] <= 10), wall
PY

virtual() { # NAME [OPTIONS]
  train "$1" 5 job.yaml --clock virtual --run-dir "$1" "${@:2}"
}

virtual planned
ended "planned" 0 '^plan \(by hand\), predicted and measured:' '^plan +predicted +measured +error' '^time +1.500 s .* 1.000 s to 10.000 s: within' '^cost  .*egress .*rates partly assumed'
check "planned: figures and costs as computed apart" "$python" check.py planned/summary.json
"$GEOTRAIN" watch planned >watch.out 2>&1
check "watch: the same lines" same "$(sed -n '/^cost  /,$p' watch.out)" "$(sed -n '/^cost  /,$p' out)"

# A simulation costs the same as the run, except for the bytes that depend on training.
"$GEOTRAIN" simulate job.yaml --out simulated >simulated.out 2>&1
check "simulate: the run's cost, to a thousandth" "$python" -c 'import json
a, b = (json.load(open(f"{r}/summary.json"))["cost"]["usd"] for r in ("planned", "simulated"))
assert abs(a - b) < 1e-3 * a, (a, b)'
plain simulate job.yaml --set plan.catalogue=none.csv
ended "simulate: no catalogue" 2 'none.csv'

# Without a plan and prices nothing of it is printed; without a price, everything but the cost.
virtual plain --set plan=null --set regions.0.place=null --set regions.1.place=null --set regions.1.price=null --set regions.1.ps_price=null
ended "plain" 0
check "plain: no plan, no cost" same "$(grep -cE '"(plan|cost)":' plain/summary.json)" 0
check "plain: the same run" same "$(field plain params_sha256) $(field plain virtual_s)" "$(field planned params_sha256) $(field planned virtual_s)"
virtual partly --set regions.0.place=null --set plan.predicted.cost=null --set plan.predicted.wall_low=5s
ended "partly" 0 'without workers of east, PS of east, egress of east: no price is known' 'not within'
check "partly: nothing to compare the cost with" \
  "$python" -c 'import json; p = json.load(open("partly/summary.json"))["plan"]["cost"]; assert p["predicted"] is None and p["error_percent"] is None and p["measured"] > 0'

# Refused in one sentence before the run starts; simulate reads the same section.
refused() { # NAME WORDS OPTIONS...
  if [ $full = yes ] || [ "$1" = place ]; then
    virtual "$1" "${@:3}"
  else
    plain simulate job.yaml "${@:3}"
  fi
  ended "$1" 2 "$2"
  check "$1: no run" [ ! -e "$1" ]
}
refused "negative price" 'regions\.1\.price .*0' --set regions.1.price=-3
refused "place" 'regions\.0\.place names the place "her".* did you mean here' --set regions.0.place=a:her
grep -v '^vm_hour,a' rates.csv >machines.csv
refused "no rate" 'machines.csv: has no vm_hour of a at here; expected a line `vm_hour,a,here' --set plan.catalogue=machines.csv
sed 's/^vm_hour,a,here,,,,3.6/vm_hour,a,here,,,,-3.6/' rates.csv >negative.csv
refused "negative rate" 'negative.csv:1: value of vm_hour is "-3.6"' --set plan.catalogue=negative.csv
grep -v '^egress_gb,b' rates.csv >egress.csv
refused "no egress" 'egress.csv: has no egress_gb of b at there to a at here' --set plan.catalogue=egress.csv
refused "no catalogue" 'none.csv' --set plan.catalogue=none.csv
refused "waiting" 'plan\.predicted\.waiting' --set plan.predicted.waiting=1.5

# geotrain finds its own rates from any folder.
virtual own --set plan.catalogue=null --set regions.0.place=aws:london --set regions.1.place=gcp:oregon
ended "own rates" 0 '^cost '
finish
