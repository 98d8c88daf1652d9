# processors: 1
# geotrain plan of a job with a pipeline: its table, JSON and picture, and that a simulation agrees;
# what is refused.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=/usr/bin/python3

job=$GEOTRAIN_SOURCE/jobs/gpt-pipeline-2-regions.yaml
told=(--set regions.0.samples=8640)
"$GEOTRAIN" plan "$job" "${told[@]}" --svg plan.svg >plan.txt 2>err
check "the pipeline that comes with geotrain is planned" same $? 0
check "its stages are shown" same "$(grep -cE '^ +[0-3] +(east|west) +1 ' plan.txt)" 4
check "a stage's operations are shown" grep -q 'transformer.h.1.ln_1 to$' plan.txt
check "its schedule is drawn" same "$(grep -cE '^stage [0-3]   \|[FBW.]{68}\|$' plan.txt)" 4
check "the other schedules are there" same "$(grep -cE '^(gpipe|1f1b|zb-h1|zb-h2|auto) +(yes +)?[0-9]' plan.txt)" 5
check "the chosen one is marked" grep -qE '^auto +yes ' plan.txt
check "traffic of both links is there" same "$(grep -cE '^(east +-> west|west +-> east) ' plan.txt)" 2
check "so is the run" grep -q '^the run: 810 steps, ' plan.txt
check "the picture is an SVG" grep -q '^<svg ' plan.svg
"$GEOTRAIN" plan "$job" "${told[@]}" >again.txt 2>err
check "a plan is the same again" cmp plan.txt again.txt

"$GEOTRAIN" plan "$job" "${told[@]}" --json >plan.json 2>err
check "the plan as JSON" same $? 0
check "has the same figures" "$python" - plan.json <<'PY'
import json, sys
p = json.load(open(sys.argv[1]))
assert [s["region"] for s in p["stages"]] == ["east", "west", "west", "east"]
assert abs(p["samples_per_s"] - p["batch"] / p["period_s"]) < 1e-9 * p["samples_per_s"]
assert abs(p["wall_s"] - p["steps"] * p["period_s"]) < 1e-9 * p["wall_s"]
# 8 micro-batches cross each way twice: an output and a gradient of 4 samples, 128 positions, 128 numbers
assert [l["step_bytes"] for l in p["links"]] == 2 * [2 * 8 * (4 * 128 * 128 * 4 + 96)]
chosen = [s for s in p["schedules"] if s["chosen"]]
assert len(chosen) == 1 and chosen[0]["period_s"] == min(s["period_s"] for s in p["schedules"] if s["possible"])
passes = sum(t[k] for s in p["stages"] for t in s["parts"] for k in ("forward_s", "backward_input_s", "backward_weight_s"))
assert abs(passes - 0.4 / 32 * 4) < 1e-9
for s in p["stages"]:
    assert s["memory_bytes"] == s["arrays_bytes"] + s["scratch_bytes"] + s["slots"] * s["slot_bytes"] + s["passing_bytes"] + s["samples_bytes"]
    f, part = s["phases"], s["parts"][0]
    work = f["forward_s"] + f["backward_input_s"] + f["backward_weight_s"] + f["backward_s"]
    assert abs(work - 8 * sum(part[k] for k in ("forward_s", "backward_input_s", "backward_weight_s"))) < 1e-6, (work, part)
    assert f["bubble_s"] > 0 and f["transfer_s"] > 0
assert [r["region"] for r in p["servers"]] == ["east", "west"]
for r in p["servers"]:
    always = sum(r[k + "_bytes"] for k in ("arrays", "optimizer", "workers", "frames", "exchange"))
    assert r["memory_bytes"] == always + max(r["checkpoint_bytes"], r["ending_bytes"]), r
    assert r["exchange_bytes"] == 0, r
PY
check "servers' memory is shown" same "$(grep -cE '^(east|west) +([0-9.]+ +){5}[0-9.]+$' plan.txt)" 2

# The simulation also has the checkpoints and the end of the run.
"$GEOTRAIN" simulate "$job" "${told[@]}" --out simulated >simulated.txt 2>err
check "the job is simulated" same $? 0
check "to what was planned" "$python" - plan.json simulated/summary.json <<'PY'
import json, sys
p, s = (json.load(open(name)) for name in sys.argv[1:])
assert p["wall_s"] < s["virtual_s"] < 1.002 * p["wall_s"], (p["wall_s"], s["virtual_s"])
assert [l["bytes_sent"] for l in s["links"]] == [p["steps"] * l["step_bytes"] for l in p["links"]]
PY

# The text goes to the last stage with the activations: 129 ids of 4 samples in each message.
away=(--set regions.0.ranks=2 --set regions.1.ranks=4 --set pipeline.stages.3.region=west --set model.untied=true --set pipeline.labels=send)
"$GEOTRAIN" plan "$job" "${told[@]}" "${away[@]}" --json >sent.json 2>err
check "labels that are sent are planned" same $? 0
"$GEOTRAIN" simulate "$job" "${told[@]}" "${away[@]}" --out sent >sent.txt 2>err
check "and simulated" same $? 0
check "to the same bytes" "$python" - sent.json sent/summary.json <<'PY'
import json, sys
p, s = (json.load(open(name)) for name in sys.argv[1:])
assert [l["step_bytes"] for l in p["links"]] == [8 * (4 * 128 * 128 * 4 + 4 * 129 * 4 + 96), 8 * (4 * 128 * 128 * 4 + 96)]
assert [l["bytes_sent"] for l in s["links"]] == [p["steps"] * l["step_bytes"] for l in p["links"]]
assert p["wall_s"] < s["virtual_s"] < 1.002 * p["wall_s"], (p["wall_s"], s["virtual_s"])
PY

# refused NAME WORD COMMAND...: exit 2 and one sentence.
refused() {
  local name=$1 word=$2
  shift 2
  plain "$@"
  ended "$name" 2 "$word"
}
refused "a cut where none can be" 'transformer.h.0.attn.sum' plan "$job" "${told[@]}" --set pipeline.stages.0.last=transformer.h.0.ln_1
refused "memory that is too small" 'pipeline.memory is 1 MiB' plan "$job" "${told[@]}" --set 'pipeline.memory=1 MiB'
refused "stages that want other workers" 'regions.1.ranks is 4' plan "$job" "${told[@]}" --set regions.1.ranks=4
refused "a plan to write" '--write is for jobs whose ranks are planned' plan "$job" "${told[@]}" --write planned.yaml
refused "a picture of no pipeline" '--svg draws a pipeline' plan "$GEOTRAIN_SOURCE/jobs/plan-2-regions.yaml" --svg no.svg
finish
