# processors: 1
# model.dropout: the mask of a batch depends on the seed, the region and the number of the batch, so a
# run repeats to the bit, also when it is resumed; a run without dropout ends elsewhere; eval and
# export need no word about it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

words words.txt 4000
"$GEOTRAIN" data import text words.txt words.h5 --length 16 >/dev/null || fail "import"
cat >job.yaml <<'YAML'
name: drops
model: {name: gpt, layers: 2, width: 16, heads: 2, context: 16, dropout: 0.2}
data: {path: words.h5}
train: {until: {steps: 24}, batch: 8, choices: rule, optimizer: {name: adamw, lr: 0.01}}
regions: [{name: a, ranks: 3}, {name: b, ranks: 2}]
sync: {local: sync, strategy: sma, period: 4, weights: samples}
checkpoint: {every: {steps: 12}, keep: 3}
YAML
completes "dropout" 5 job.yaml --run-dir whole
completes "the first half" 5 job.yaml --run-dir half --set train.until.steps=12
completes "the second half" 5 job.yaml --run-dir half --resume --set train.until.steps=24
check "resumed to the same bits" same "$(field half params_sha256)" "$(field whole params_sha256)"
completes "without" 5 job.yaml --run-dir without --set model.dropout=0
check "other bits without dropout" test "$(field without params_sha256)" != "$(field whole params_sha256)"
completes "from the trained model, without" 5 job.yaml --run-dir next --set model.dropout=0 --set train.init=whole/final.h5
check "eval" "$GEOTRAIN" eval whole words.h5
"$GEOTRAIN" eval whole words.h5 --classes >out 2>err
code=$?
ended "eval --classes of a text" 2 '--classes is given, and model gpt does not classify'
# One sample, which nothing is learnt from: only the masks of two batches differ.
"$GEOTRAIN" data synth one.h5 --train 1 --test 1 --classes 2 >/dev/null
cat >one.yaml <<'YAML'
name: one
model: {name: mlp, dropout: 0.5}
data: {path: one.h5}
train: {until: {steps: 1}, batch: 1, optimizer: {name: sgd, lr: 1e-30}, eval_every: {epochs: 0}}
regions: [{name: a, ranks: 2}]
YAML
for steps in 1 2; do completes "$steps batches" 2 one.yaml --run-dir "steps-$steps" --set train.until.steps=$steps; done
loss() { sed -n 's/.*"event":"progress".*"loss":\([0-9.]*\),.*/\1/p' "$1/a.jsonl" | tail -n 1; }
check "each batch has its mask" test -n "$(loss steps-1)" -a "$(loss steps-1)" != "$(loss steps-2)"

train "lenet5" 5 job.yaml --run-dir lenet5 --set 'model={name: lenet5, dropout: 0.2}'
ended "dropout for lenet5" 2 'model.dropout is given and model.name is lenet5'
train "a pipeline" 4 job.yaml --run-dir pipe --set regions.0.ranks=2 --set 'pipeline={stages: [{region: a}, {region: b}], labels: send, micro_batches: 2}' --set sync=null
ended "dropout in a pipeline" 2 'model.dropout is 0.2 with a pipeline; expected 0'
finish
