# processors: 2
# Where the time of a pipeline's workers goes: the phases add up to the time of training under both
# clocks and after a resume; a simulation has the same ones, to the nanosecond.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/libpipeline.sh"
cat >sums.py <<'PY'
import json, sys
run, apart = sys.argv[1], float(sys.argv[2])
regions = json.load(open(run + "/summary.json"))["regions"]
for r in regions:
    p, trained = r["phases"], r["steps"] * sum(r["split"].values())
    assert min(p.values()) >= 0, p
    assert abs(sum(p.values()) - trained) < apart, (r["name"], sum(p.values()), trained)
    passes = p["forward_s"] + p["backward_input_s"] + p["backward_weight_s"] + p["backward_s"]
    # in real time the end of a gradient is in compute_s, and here in update_s
    least = r["compute_s"] - apart if apart < 1e-6 else 0.5 * r["compute_s"]
    assert least < passes < r["compute_s"] + apart, (r["name"], passes, r["compute_s"])
    assert p["bubble_s"] > 0 and p["transfer_s"] > 0 and p["evaluation_s"] > 0, p
    assert r["wan_wait_s"] >= p["transfer_s"] - apart, (r["name"], r["wan_wait_s"], p)
    lines = [json.loads(l) for l in open(f"{run}/{r['name']}.jsonl")]
    told = [l for l in lines if l["event"] == "phases"][-1]
    assert told["step"] == r["steps"]
    for key in p:
        mean = sum(w[key] for w in told["workers"]) / len(told["workers"])
        assert abs(mean - p[key]) < max(apart, 2e-9), (r["name"], key, mean, p[key])
PY
sums() { /usr/bin/python3 sums.py "$@" 2>why || { tail -n 1 why && false; }; }

completes "virtual" 6 four.yaml --run-dir virtual --clock virtual --set pipeline.schedule=zb-h1
check "virtual: phases add up" sums virtual 1e-8
check "the table has them" grep -qE '^east +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$' out
"$GEOTRAIN" simulate four.yaml --set pipeline.schedule=zb-h1 --out simulated >simulated.out 2>&1
check "a simulation has the same" /usr/bin/python3 - <<'PY'
import json
a, b = ([r["phases"] for r in json.load(open(d + "/summary.json"))["regions"]] for d in ("virtual", "simulated"))
assert a == b, (a, b)
PY

cp -r virtual resumed
completes "resumed" 6 four.yaml --run-dir resumed --clock virtual --resume --set train.until.steps=18 --set pipeline.schedule=1f1b
check "after a resume phases add up" sums resumed 1e-8

completes "real" 6 four.yaml --run-dir real --set pipeline.schedule=1f1b --set compute.emulate=true
check "real: phases add up" sums real 0.02
check "real: passes take what compute says or longer" /usr/bin/python3 - <<'PY'
import json
for r in json.load(open("real/summary.json"))["regions"]:
    p = r["phases"]
    # 12 steps of 24 ms on the whole model, of which these two workers have a part
    planned = {"east": 0.060 / 2 * 2, "west": 0.036}[r["name"]]
    got = p["forward_s"] + p["backward_s"]
    assert 0.9 * planned < got, (r["name"], got)
PY
finish
