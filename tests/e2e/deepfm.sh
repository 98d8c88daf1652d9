# processors: 1
# DeepFM on clicks that depend only on pairs of ids: two regions learn them; the bytes on the WAN; a
# checkpoint evaluates, exports and resumes with the widths of its job; and errors.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# clicks LINES: user 0-19, thing 20-39, and an id without information, 40-49; a click if user and
# thing are both even or both odd.
clicks() {
  awk -v n="$1" -v seed="$2" 'BEGIN {
    srand(seed)
    for (i = 0; i < n; i++) {
      u = int(rand() * 20); t = int(rand() * 20); x = 40 + int(rand() * 10)
      print ((u + t) % 2 == 0 ? 1 : -1), u ":1", 20 + t ":1", x ":1"
    }
    print -1, "0:1 21:1 49:1" # the largest id
  }'
}
mkdir clicks
clicks 2000 1 >clicks/clicks.train.libfm
clicks 400 2 >clicks/clicks.test.libfm
check "clicks are imported" "$GEOTRAIN" data import libfm clicks clicks.h5
data_train=400 data images.h5

cat >job.yaml <<'YAML'
name: clicks
seed: 3
model: {name: deepfm, embedding: 5, mlp: [16, 8]}
data: {path: clicks.h5}
train: {until: {steps: 160}, batch: 32, optimizer: {name: adam, lr: 0.02}, eval_every: {epochs: 0}}
regions:
  - {name: east, ranks: 3}
  - {name: west, ranks: 2}
sync: {local: sync, strategy: sma, period: 8}
checkpoint: {every: {steps: 40}, keep: 2}
limits: {wan_patience: 30 s, local: 30 s}
YAML
params=$((50 * 5 + 50 + 1 + 16 * 15 + 16 + 8 * 16 + 8 + 8 + 1))
last() { echo "$1/ckpt/$(newest_round "$1")/east.h5"; }
above() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a > b)}' || { echo "      found '$1', needed more than $2" && false; }; }

train "deepfm" 5 job.yaml --run-dir run
ended "deepfm" 0 "clicks: deepfm, $params parameters" 'auc'
check "it learns the pairs" above "$(field run test_auc)" 0.95
sent=$(field run bytes_sent) messages=$(field run messages)
check "the WAN carries every parameter, 4 bytes each" same "$sent" $((messages * (4 * params + 64)))

# evaluated CHECKPOINT: prints its AUC.
evaluated() { "$GEOTRAIN" eval "$1" clicks.h5 | sed -nE 's/^accuracy .*  auc ([0-9.]+)  \(.*/\1/p'; }
check "eval builds the same model" same "$(evaluated "$(last run)")" "$(sed -nE '/"name": "east"/,/^    \}/s/^ *"test_auc": ([0-9.]+),?$/\1/p' run/summary.json | awk '{printf "%.6f", $1}')"
check "export builds it, too" "$GEOTRAIN" export "$(last run)" clicks.safetensors
check "with PyTorch's names" grep -qa '"mlp.4.weight"' clicks.safetensors

refused "resumed with other widths" 2 'model.mlp is \[16, 8\] there and \[16, 9\] here' --run-dir run --resume --set 'model.mlp=[16, 9]' --set train.until.steps=170
train "resumed" 5 job.yaml --run-dir run --resume --set train.until.steps=200
ended "resumed" 0 'auc'
checked "images for deepfm" 3 'images of .* model deepfm takes ids' --set data.path=images.h5
checked "ids for lenet5" 3 '3 ids each, below 50; model lenet5 takes images' --set 'model={name: lenet5}'
checked "widths for lenet5" 2 'model.embedding is given and model.name is lenet5' --set model.name=lenet5
"$GEOTRAIN" eval "$(last run)" images.h5 2>err
check "images for its checkpoint: exit 3" same "$?" 3

one=(--set 'regions=[{name: east, ranks: 2}]' --set checkpoint=null) # a worker has what is tested
for kernels in ref blas; do
  train "kernels $kernels" 2 job.yaml --run-dir "$kernels" --set train.kernels=$kernels "${one[@]}"
  ended "kernels $kernels" 0
  check "kernels $kernels learn" above "$(field "$kernels" test_auc)" 0.95
done
train "async, asgd-ga" 4 job.yaml --run-dir async --set regions.0.ranks=2 --set sync='{local: async, strategy: asgd-ga, period: 8, scale: mean}'
ended "async, asgd-ga" 0
check "async, asgd-ga learn" above "$(field async test_auc)" 0.9
finish
