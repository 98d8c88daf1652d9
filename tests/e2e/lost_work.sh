# labels: full
# processors: 1
# Work lost by kills is paid for: a run that was killed twice after its checkpoint costs the time
# and bytes of all its starts.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=$(command -v python3) || { skip "costs" "no python3" && finish; }

job job.yaml
sed -i -e 's/{steps: 60}/{steps: 200}/' -e 's/every: {steps: 10}/every: {steps: 100}/' -e 's/{name: east, ranks: 2}/{name: east, ranks: 2, place: "a:here", price: 3.6, ps_price: 3.6}/' \
  -e 's/{name: west, ranks: 2}/{name: west, ranks: 2, place: "b:there", price: 3.6, ps_price: 3.6}/' job.yaml
cat >>job.yaml <<'YAML'
compute: {emulate: true, step: 20 ms, eval_samples_per_s: 100000}
log: {every: 1 s}
plan: {start: 10 s, billing: 10 ms, catalogue: prices.csv}
YAML
printf 'egress_gb,a,here,b,there,0,1000,\negress_gb,b,there,a,here,0,1000,\n' >prices.csv

# killed NAME SECONDS: kills everything this long after the first line of progress.
killed() {
  start 4 job.yaml --run-dir run --resume=auto
  sleep 1
  [ "$1" = first ] && wait_round run 1
  sleep "$2"
  kill -KILL "$launcher" $(living) 2>/dev/null
  wait_end "$1" 20
  gone "$1"
}
killed first 1.5
killed second 0.8
train "the rest" 4 job.yaml --run-dir run --resume=auto
ended "the rest" 0 '^earlier starts 2, with [0-9.]+ s and [0-9.]+ MB after the last checkpoint'
cat >check.py <<'PY'
import json, math
s = json.load(open("run/summary.json"))
# For each start, the time between its first and its last line, and 10 s until its first step.
used = {}
for region in ("east", "west"):
    starts = []
    for line in map(json.loads, open(f"run/{region}.jsonl")):
        if line["event"] in ("start", "resumed"):
            starts.append([line["t"], line["t"]])
        starts[-1][1] = max(starts[-1][1], line["t"])
    used[region] = sum(b - a for a, b in starts) + 10 * len(starts)
assert len(starts) == 3, starts
paid = s["cost"]["machine_hours"] * 3600 / 4
print("paid", paid, "used", used)
assert paid > 0.99 * max(used.values()) and paid < max(used.values()) + 1, (paid, used)
assert paid > s["wall_s"] + 30.3, (paid, s["wall_s"])
lost = sum(l["bytes_lost"] for l in s["links"])
sent = sum(l["bytes_sent"] + l["bytes_other"] for l in s["links"])
assert lost > 1e5, lost
assert math.isclose(s["cost"]["egress_usd"], (lost + sent) / 1e6, rel_tol=1e-6), (s["cost"]["egress_usd"], lost, sent)
PY
check "what all starts used is paid" "$python" check.py
finish
