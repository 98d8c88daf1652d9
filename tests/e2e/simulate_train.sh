# processors: 2
# timeout: 900
# `simulate --train` ends with the model of `train --clock virtual`, to the bit, after the same
# virtual time but for the length of the regions' results; with --out the summary has the scores.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=/usr/bin/python3

data data.h5
cat >job.yaml <<'YAML'
name: both
seed: 3
model: {name: lenet5}
data: {path: data.h5}
train: {until: {steps: 24}, batch: 32, optimizer: {name: sgd, lr: 0.05, momentum: 0.9}, eval_every: {steps: 10}}
regions: [{name: a, ranks: 3}, {name: b, ranks: 2}]
sync: {local: sync, strategy: sma, period: 4}
wan: {links: [{between: [a, b], bandwidth: 20 Mbit/s, latency: 25 ms, jitter: 2 ms, loss: 0.01}]}
compute: {step: 50 ms}
checkpoint: {every: {steps: 10}}
YAML

cat >same.py <<'PY'
import json, sys
trained, simulated = (json.load(open(f"{folder}/summary.json")) for folder in sys.argv[1:])
for key in ("params_sha256", "samples", "test_loss", "test_accuracy"):
    assert trained[key] == simulated[key], (key, trained[key], simulated[key])
assert len(trained["params_sha256"]) == 64
assert abs(trained["virtual_s"] - simulated["virtual_s"]) < 1e-4, (trained["virtual_s"], simulated["virtual_s"])
for a, b in zip(trained["regions"], simulated["regions"]):
    for key in ("steps", "samples", "test_loss", "nonfinite", "excluded", "residual", "compute_s", "wan_wait_s"):
        assert a.get(key) == b.get(key), (a["name"], key, a.get(key), b.get(key))
PY

# both NAME SETTING...: trains in both ways.
both() {
  local name=$1 sets=() s
  shift
  for s in "$@"; do sets+=(--set "$s"); done
  train "$name" 5 job.yaml --clock virtual --run-dir "$name.run" "${sets[@]}"
  check "$name: a run ends with 0" same "$code" 0
  "$GEOTRAIN" simulate job.yaml --train --out "$name.out" "${sets[@]}" >"$name.txt" 2>&1
  check "$name: so does its simulation" same $? 0
  check "$name: the models are the same" $python same.py "$name.run" "$name.out"
}

both sma sync.period=4
both fragments 'sync.codec={name: e3m0}' 'sync.outer={name: nesterov, lr: 1, momentum: 0.5}' sync.fragments=2 sync.delay=1
both asgd-async sync.strategy=asgd sync.local=async
if [ $full = yes ]; then
  for strategy in ssgd asgd-ga ama none; do both $strategy sync.strategy=$strategy; done
  for codec in int8 topk mask powersgd; do both $codec "sync.codec={name: $codec}"; done
  both dgc sync.strategy=ssgd 'sync.codec={name: dgc}' train.optimizer.momentum=0
  both hub sync.topology=hub data.partition.by=label
  both statistics model.name=resnet18 train.until.steps=3 train.batch=8 train.eval_every.steps=0
  both guard 'sync.guard={outlier: 3, clip: 1}' train.optimizer.name=adamw train.optimizer.lr=0.002
fi

# with losses
"$GEOTRAIN" simulate job.yaml --train --out calm.out --set train.until.steps=60 >calm.txt 2>&1
check "a longer simulation ends with 0" same $? 0
"$GEOTRAIN" simulate job.yaml --train --out lost.out --set train.until.steps=60 --set 'limits.wan_patience=1 s' \
  --set 'faults=[{mtbf: 3 s, mttr: 1 s}]' >lost.txt 2>&1
check "so does one with losses" same $? 0
check "its scores are printed" grep -q '^test accuracy' lost.txt
check "a run that resumes ends with the model of one without losses" $python -c '
import json
calm, lost = (json.load(open(f"{name}.out/summary.json")) for name in ("calm", "lost"))
assert lost["faults"]["resumes"] > 0 and lost["virtual_s"] > calm["virtual_s"]
assert lost["params_sha256"] == calm["params_sha256"] and lost["test_loss"] == calm["test_loss"]'

"$GEOTRAIN" simulate job.yaml --train --set train.optimizer.lr=1e6 >bad.txt 2>&1
check "gradients that are not finite end it with 6" same $? 6
check "and a sentence names the limit" grep -q '(limits.nonfinite)' bad.txt
"$GEOTRAIN" simulate job.yaml --threads 2 >threads.txt 2>&1
check "--threads without --train ends with 2" same $? 2
check "and says so" grep -q 'without --train' threads.txt
finish
