# processors: 1
# Regions with different test sets: the mean model is scored on each of them once, test_accuracy and
# test_loss are those over all test samples, as `eval` of the final model finds them; the mean travels
# once to each region that scores it, in a run, a simulation and a plan; a region that shares a test
# set, or has none, scores nothing; a run that ends while a region scores is resumed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$GEOTRAIN" data synth whole.h5 --train 600 --test 50 >/dev/null
"$GEOTRAIN" data synth other.h5 --train 400 --test 150 --seed 9 >/dev/null
"$GEOTRAIN" data split whole.h5 --regions 2 >/dev/null
"$GEOTRAIN" data split other.h5 --regions 2 --test last >/dev/null # other-1.h5 has no test samples
cat >job.yaml <<'YAML'
name: sets
seed: 3
model: {name: lenet5}
data: {partition: {by: file}}
train: {until: {steps: 16}, batch: 16, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}, eval_every: {steps: 8}}
regions:
  - {name: east, ranks: 2, data: {path: whole-1.h5}}
  - {name: west, ranks: 2, data: {path: other.h5}}
  - {name: north, ranks: 2, data: {path: whole-2.h5}}
sync: {local: sync, strategy: sma, period: 4}
compute: {samples_per_s: 800, local: 1 ms, update: 500 us, apply: 700 us, encode: 300 us}
wan: {default: {bandwidth: 40 Mbit/s, latency: 20 ms}}
checkpoint: {every: {steps: 8}}
YAML
virtual=(--clock virtual)

# scores RUN REGION=SAMPLES...: these regions have scored the mean, and the summary has the total.
scores() {
  /usr/bin/python3 - "$@" <<'PY'
import json, sys
run, wanted = json.load(open(sys.argv[1] + "/summary.json")), dict(word.split("=") for word in sys.argv[2:])
means = {r["name"]: r["mean_model"] for r in run["regions"] if "mean_model" in r}
found = {name: str(m["samples"]) for name, m in means.items()}
samples = sum(m["samples"] for m in means.values())
for key in ("test_accuracy", "test_loss"):
    total = sum(m[key] * m["samples"] for m in means.values()) / samples
    if abs(total - run[key]) > 1e-12:
        sys.exit(f"      {key} is {run[key]}, over all samples {total}")
sys.exit(f"      found {found}, expected {wanted}" if found != wanted else 0)
PY
}
# as_evaluated RUN REGION FILE: `eval` finds what the region found.
as_evaluated() {
  local of_run of_eval
  of_run=$(/usr/bin/python3 -c 'import json, sys
m = [r["mean_model"] for r in json.load(open(sys.argv[1] + "/summary.json"))["regions"] if r["name"] == sys.argv[2]][0]
print("accuracy %.4f  loss %.3f  (%d samples" % (m["test_accuracy"], m["test_loss"], m["samples"]))' "$1" "$2")
  of_eval=$("$GEOTRAIN" eval "$1/final.h5" "$3" 2>/dev/null | cut -d , -f 1)
  same "$of_eval" "$of_run"
}
# bytes RUN [PLAN]: the mean continuesce from the lead to west, to no other region.  PLAN: the links of
# the lead carry as many other bytes in the plan, and BYE, which a run sends after its summary.
bytes() {
  /usr/bin/python3 - "$@" <<'PY'
import json, sys
run = json.load(open(sys.argv[1] + "/summary.json"))
models = {l["to"]: l["kinds"].get("model", {}).get("messages", 0) for l in run["links"] if l["from"] == "east"}
if models != {"west": 1, "north": 0}:
    sys.exit(f"      models sent by the lead: {models}")
if len(sys.argv) > 2:
    plan = json.load(open(sys.argv[2]))["candidates"][0]["plan"]["links"]
    other = [{l["to"]: l["bytes_other"] for l in links if l["from"] == "east"} for links in (run["links"], plan)]
    if {name: n + 64 for name, n in other[0].items()} != other[1]:
        sys.exit(f"      other bytes of the lead: {other[0]} in the run, {other[1]} in the plan")
PY
}

# ---- two test sets, one of them in two regions ---------------------------------------------------

train "two sets" 6 job.yaml --run-dir two "${virtual[@]}"
ended "two sets" 0 '^mean model +test samples +accuracy +loss$' '^east +50 +[01]\.' '^west +150 +[01]\.' '^all +200 +[01]\.' '\(mean model, on all test sets\)$'
check "the total of east and west" scores two east=50 west=150
check "east's score" as_evaluated two east whole.h5
check "west's score" as_evaluated two west other.h5
simulates "two sets" two 1e-4 job.yaml
"$GEOTRAIN" plan job.yaml --json >plan.json 2>/dev/null
check "the mean travels once, and is planned" bytes two plan.json
train "again" 6 job.yaml --run-dir again "${virtual[@]}"
check "it repeats" cmp <(grep -v '^  "wall_s"' two/summary.json) <(grep -v '^  "wall_s"' again/summary.json)
train "real clock" 6 job.yaml --run-dir real
ended "real clock" 0 '^all +200 +[01]\.'
check "the same scores" same "$(field real test_loss) $(field real test_accuracy)" "$(field two test_loss) $(field two test_accuracy)"
check "the mean travels once" bytes real

# ---- one test set, and none ----------------------------------------------------------------------

train "one set" 6 job.yaml --run-dir one "${virtual[@]}" --set regions.1.data.path=whole-1.h5
ended "one set" 0 '\(mean model\)$'
check "one set: no table of scores" test "$(grep -c '^mean model' out)" = 0
check "one set: no score of a region" test "$(grep -c mean_model one/summary.json)" = 0
train "none at the lead" 6 job.yaml --run-dir lead "${virtual[@]}" --set regions.0.data.path=other-1.h5
ended "none at the lead" 0 '^east .* - +-$'
check "none at the lead: the others' total" scores lead west=150 north=50
completes "none elsewhere" 6 job.yaml --run-dir else "${virtual[@]}" --set regions.2.data.path=other-1.h5
check "none elsewhere: the total" scores else east=50 west=150
train "no mean" 6 job.yaml --run-dir none "${virtual[@]}" --set sync=null --set sync.strategy=none
ended "no mean" 0 '^test accuracy  -  \(see the regions\)$'
check "no mean: no score of one" test "$(grep -c mean_model none/summary.json)" = 0

# ---- the run ends while west scores --------------------------------------------------------------

run "killed" -n 2 "$GEOTRAIN" train job.yaml --run-dir killed "${choices[@]}" : -n 2 env GEOTRAIN_FAILPOINT=ending.score "$GEOTRAIN" train job.yaml --run-dir killed "${choices[@]}" : -n 2 "$GEOTRAIN" train job.yaml --run-dir killed "${choices[@]}"
ended "killed" 137
check "killed: no summary" test ! -e killed/summary.json
completes "resumed" 6 job.yaml --run-dir killed --resume
check "resumed: the total" same "$(field killed test_loss) $(field killed test_accuracy)" "$(field two test_loss) $(field two test_accuracy)"
lost=(job.yaml --run-dir lost "${choices[@]}" --set limits.wan_patience=3s)
run "lost" -n 2 "$GEOTRAIN" train "${lost[@]}" : -n 2 env GEOTRAIN_FAILPOINT=ending.score:1:hang "$GEOTRAIN" train "${lost[@]}" : -n 2 "$GEOTRAIN" train "${lost[@]}"
ended "lost" 5 'waited [0-9]+ s \(limits.wan_patience\) for any sign of the PS of region west'
finish
