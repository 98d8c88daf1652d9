# labels: full
# processors: 1
# A region of one rank only aggregates.  As a hub it gives the bits of a mesh of the other regions,
# under both clocks; every link carries exactly its payload; a killed run is resumed to the same
# bits, also where the lead itself only aggregates; and what cannot be is refused in one sentence.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

job two.yaml
sed -i -e 's/links:.*/default: {bandwidth: 200 Mbit\/s, latency: 3 ms}/' -e 's/^sync:/compute: {step: 2 ms}\n&/' \
  -e 's/{name: east, ranks: 2}/{name: east, ranks: 3}/' -e 's/{epochs: 0}}$/{steps: 20}}/' two.yaml
sed -e '/name: west/a\  - {name: hub, ranks: 1}' -e 's/shares: \[1, 1\]/shares: [1, 1, 0]/' \
  -e 's/topology: mesh/topology: hub, hub: hub/' two.yaml >job.yaml
sed -e 's/^regions:/&\n  - {name: hub, ranks: 1}/' -e 's/shares: \[1, 1\]/shares: [0, 1, 1]/' \
  -e 's/topology: mesh/topology: hub, hub: hub/' two.yaml >lead.yaml
virtual=(--clock virtual)

# ---- the bits of the others alone ---------------------------------------------------------------

for strategy in ssgd sma; do
  only=(--set sync.strategy=$strategy --set train.until.steps=40)
  completes "$strategy alone" 5 two.yaml --run-dir $strategy-alone "${virtual[@]}" "${only[@]}"
  for clock in virtual real; do
    name=$strategy-$clock
    train "$name" 6 job.yaml --run-dir $name --clock $clock "${only[@]}"
    ended "$name" 0 '^hub +0 +- +- '
    for key in params_sha256 samples test_accuracy test_loss; do
      check "$name: $key of the others alone" same "$(field $name $key)" "$(field $strategy-alone $key)"
    done
  done
done

# What crosses: a model up and a model down on each link of the hub in every round, and nothing
# between the others.
python3 - sma-virtual 10 <<'PY' && ok "payload: to the byte" || fail "payload" "see above"
import json, sys
run, rounds = json.load(open(sys.argv[1] + "/summary.json")), int(sys.argv[2])
model = 4 * run["parameters"]
found = {(l["from"], l["to"]): l["payload_bytes"] for l in run["links"]}
wanted = {(a, b): rounds * model if "hub" in (a, b) else 0 for a, b in found}
sys.exit(0 if found == wanted and len(found) == 6 else print(found, wanted) or 1)
PY
check "its record has no evaluation" test "$(grep -c '"eval"' sma-virtual/hub.jsonl)" = 0
check "the others' have one each 20 steps" test "$(grep -c '"eval"' sma-virtual/east.jsonl)" = 1
newest=$(newest_round sma-real)
scored() { "$GEOTRAIN" eval "sma-real/ckpt/$newest/$1.h5" data.h5 2>/dev/null | sed 's/ (.*//'; }
check "its checkpoint has the model of all" same "$(scored hub)" "$(scored east)"

# The lead of a run may aggregate: another region scores the mean for it.
train "a lead" 6 lead.yaml --run-dir lead "${virtual[@]}" --set train.until.steps=40
ended "a lead" 0 '^test accuracy  [01]\.'
check "a lead: the final model is there" "$GEOTRAIN" eval lead/final.h5 data.h5

# Other strategies and topologies; where it saves nothing, a warning says so.
for strategy in asgd asgd-ga ama; do
  completes "$strategy" 6 job.yaml --run-dir "$strategy" --set sync.strategy=$strategy --set train.until.steps=40
done
for topology in tree ring mesh; do
  train "sma-$topology" 6 job.yaml --run-dir "sma-$topology" "${virtual[@]}" --set sync.hub=null --set sync.topology=$topology --set train.until.steps=40
  ended "sma-$topology" 0 $([ $topology = tree ] || echo 'it adds traffic and saves none')
done
check "a mesh: the bits of the others alone" same "$(field sma-mesh params_sha256)" "$(field sma-alone params_sha256)"

# ---- killed and resumed -------------------------------------------------------------------------

for name in job lead; do
  start 6 $name.yaml --run-dir killed-$name --set train.until.steps=120
  wait_round killed-$name 2
  kill -KILL "$(rank_pid $([ $name = job ] && echo 5 || echo 0))"
  wait_end "killed $name" 60
  gone "killed $name"
  train "resumed $name" 6 $name.yaml --run-dir killed-$name --resume --set train.until.steps=120
  ended "resumed $name" 0 'continues from round'
  completes "whole $name" 6 $name.yaml --run-dir whole-$name --set train.until.steps=120
  check "$name: the same bits after a kill" same "$(field killed-$name params_sha256)" "$(field whole-$name params_sha256)"
done
completes "longer" 6 job.yaml --run-dir whole-job --resume --set train.until.steps=160
train "at once" 6 job.yaml --run-dir at-once --set train.until.steps=160
check "made longer: the same bits" same "$(field whole-job params_sha256)" "$(field at-once params_sha256)"

# ---- refused ------------------------------------------------------------------------------------

train "another kind" 7 job.yaml --run-dir whole-job --resume --set regions.2.ranks=2 --set 'data.partition.shares=[1, 1, 1]'
ended "another kind of parts" 2 'data.partition.shares'
completes "no shares" 6 job.yaml --run-dir plain --set train.until.steps=20 --set data.partition.shares=null
train "another kind" 7 job.yaml --run-dir plain --resume --set train.until.steps=40 --set data.partition.shares=null --set regions.2.ranks=2
ended "another kind" 4 'regions.2.ranks is 1 there and 2 here, .* must not change whether a region trains'
check "another kind: one sentence" test "$(grep -c 'geotrain: ' err)" = 1
train "none" 6 job.yaml --run-dir no --set 'sync={strategy: none}'
ended "none" 2 'region hub \(ranks 1\) only aggregates'
check "none: nothing was made" [ ! -e no/job.yaml ]

finish
